//! What `crosstalk audit` prints for programs.

use crate::clock;
use crate::exit::Exit;
use crosstalk_envelope::Document;
use crosstalk_protocol::audit::bundle::{BundleReport, Wrong};
use crosstalk_protocol::audit::{
    ChainId, Checkpoint, EventKind, Fork, LogEntry, LogReceipt, NoteKey,
};
use crosstalk_protocol::relay::{HopStep, TraceFault};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What `crosstalk audit trace --json` prints for each envelope.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TraceReport {
    message: Option<String>,
    sender: String,
    receiver: String,
    digest: Option<String>,
    checked_at: String,
    hops: Vec<HopReport>,
    /// There if more than one file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    file: Option<String>,
}

/// A relay that had the message.
#[derive(Serialize, JsonSchema)]
struct HopReport {
    place: usize,
    by: Option<String>,
    at: Option<String>,
    from: Option<String>,
    chain: Option<String>,
    since_ms: Option<i64>,
    #[schemars(extend("enum" = ["verified", "unknown-key", "wrong", "unsigned"]))]
    signature: &'static str,
    #[schemars(extend("items" = serde_json::json!({"enum": TraceFault::ALL.map(TraceFault::as_str)})))]
    faults: Vec<&'static str>,
}

impl TraceReport {
    pub(crate) fn new(document: &Document<'_>, steps: &[HopStep], file: Option<&str>) -> Self {
        let envelope = document.envelope();
        Self {
            message: envelope.message.map(str::to_owned),
            sender: document.sender().to_owned(),
            receiver: envelope.receiver.as_str().to_owned(),
            digest: document.digest().ok().map(|d| d.to_string()),
            checked_at: clock::now().to_string(),
            hops: steps.iter().map(HopReport::new).collect(),
            file: file.map(str::to_owned),
        }
    }
}

impl HopReport {
    fn new(step: &HopStep) -> Self {
        let hop = step.hop.as_ref();
        Self {
            place: step.place,
            by: hop.map(|h| h.received_by.clone()),
            at: hop.map(|h| h.received_at.to_string()),
            from: hop.and_then(|h| h.previous_hop.clone()),
            chain: hop.and_then(|h| h.chain.clone()),
            since_ms: step.since,
            signature: step.signed.as_str(),
            faults: step.faults.iter().map(|f| f.as_str()).collect(),
        }
    }
}

/// What `crosstalk audit log --json` prints, a line for each entry. `from` and `to` are those of a message that was accepted and is
/// kept.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LogEntryReport {
    /// There if it is not the first chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    chain: Option<u64>,
    index: u64,
    at: String,
    #[schemars(extend("enum" = EventKind::ALL.map(EventKind::as_str)))]
    kind: &'static str,
    message: Option<String>,
    from: Option<String>,
    to: Option<String>,
    canonical: Option<String>,
    raw: Option<String>,
    /// Null where there is none, or it was erased.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    detail: Option<Map<String, Value>>,
    leaf: String,
}

impl LogEntryReport {
    pub(crate) fn new(chain: ChainId, entry: &LogEntry) -> Self {
        let leaf = &entry.leaf;
        let (from, to) = entry.parties.clone().unzip();
        let detail = entry.detail.as_ref().map(|(_, detail)| detail.pairs());
        Self {
            chain: (chain != ChainId::FIRST).then_some(chain.0),
            index: entry.index,
            at: leaf.at.to_string(),
            kind: leaf.kind.as_str(),
            message: leaf.id.clone(),
            from,
            to,
            canonical: leaf.canonical.map(|d| d.to_string()),
            raw: leaf.raw.map(|d| d.to_string()),
            detail: detail.map(|pairs| pairs.map(|(n, v)| (n.to_owned(), v.into())).collect()),
            leaf: leaf.to_string(),
        }
    }
}

/// What `crosstalk audit verify --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AuditReport {
    holds: bool,
    #[serde(flatten)]
    log: Option<CheckedLogReport>,
    #[serde(flatten)]
    bundle: Option<CheckedBundleReport>,
    /// The other chains of a bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<CheckedChainReport>")]
    chains: Vec<CheckedChainReport>,
    #[serde(flatten)]
    receipt: Option<CheckedReceiptReport>,
    /// The first thing that is wrong.
    wrong: Option<AuditFaultReport>,
}

/// The log that signed.
#[derive(Serialize, JsonSchema)]
struct CheckedLogReport {
    key_is_trusted: bool,
    key: String,
    origin: String,
    size: u64,
}

/// A chain after the first one.
#[derive(Serialize, JsonSchema)]
struct CheckedChainReport {
    chain: u64,
    #[serde(flatten)]
    log: CheckedLogReport,
    #[serde(flatten)]
    bundle: CheckedBundleReport,
}

/// What a bundle has.
#[derive(Serialize, JsonSchema)]
struct CheckedBundleReport {
    is_all: bool,
    #[schemars(with = "BTreeMap<String, u64>")]
    kinds: Map<String, Value>,
    messages: u64,
    erased: u64,
    withheld: u64,
    extended: usize,
}

/// The entry of a receipt.
#[derive(Serialize, JsonSchema)]
struct CheckedReceiptReport {
    index: u64,
    leaf: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct AuditFaultReport {
    file: String,
    #[schemars(range(min = 1))]
    line: Option<u64>,
    what: String,
    help: &'static str,
    exit: u8,
    fork: Option<ForkReport>,
}

/// Two checkpoints that do not fit together.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ForkReport {
    held: String,
    shown: String,
}

impl CheckedLogReport {
    fn new(key: &NoteKey, key_is_trusted: bool, checkpoint: &Checkpoint) -> Self {
        Self {
            key_is_trusted,
            key: key.to_string(),
            origin: checkpoint.origin.clone(),
            size: checkpoint.size,
        }
    }
}

impl CheckedBundleReport {
    fn new(checked: &BundleReport) -> Self {
        let kinds = checked.kinds.iter();
        Self {
            is_all: checked.is_all,
            kinds: kinds
                .map(|(k, n)| (k.as_str().to_owned(), (*n).into()))
                .collect(),
            messages: checked.messages,
            erased: checked.erased,
            withheld: checked.withheld,
            extended: checked.extended,
        }
    }
}

impl AuditReport {
    fn of_log(key: &NoteKey, key_is_trusted: bool, checkpoint: &Checkpoint) -> Self {
        Self {
            holds: true,
            log: Some(CheckedLogReport::new(key, key_is_trusted, checkpoint)),
            bundle: None,
            chains: Vec::new(),
            receipt: None,
            wrong: None,
        }
    }

    /// `is_trusted` tells whether the key of a chain is known from elsewhere.
    pub(crate) fn of_bundle(checked: &BundleReport, is_trusted: &dyn Fn(ChainId) -> bool) -> Self {
        let chain = |(id, report): &(ChainId, BundleReport)| CheckedChainReport {
            chain: id.0,
            log: CheckedLogReport::new(&report.key, is_trusted(*id), &report.checkpoint),
            bundle: CheckedBundleReport::new(report),
        };
        let is_first_trusted = is_trusted(ChainId::FIRST);
        Self {
            bundle: Some(CheckedBundleReport::new(checked)),
            chains: checked.others.iter().map(chain).collect(),
            ..Self::of_log(&checked.key, is_first_trusted, &checked.checkpoint)
        }
    }

    pub(crate) fn of_receipt(key: &NoteKey, checkpoint: &Checkpoint, receipt: &LogReceipt) -> Self {
        Self {
            receipt: Some(CheckedReceiptReport {
                index: receipt.index,
                leaf: receipt.leaf.to_string(),
            }),
            ..Self::of_log(key, true, checkpoint)
        }
    }

    pub(crate) fn of_fault(wrong: &Wrong, exit: Exit, fork: Option<&Fork>) -> Self {
        Self {
            holds: false,
            log: None,
            bundle: None,
            chains: Vec::new(),
            receipt: None,
            wrong: Some(AuditFaultReport {
                file: wrong.file.clone(),
                line: wrong.line,
                what: wrong.what.clone(),
                help: wrong.help,
                exit: exit.code(),
                fork: fork.map(|fork| ForkReport {
                    held: fork.held.clone(),
                    shown: fork.shown.clone(),
                }),
            }),
        }
    }
}
