//! What `crosstalk audit` prints for programs.

use crate::clock;
use crate::exit::Exit;
use crosstalk_envelope::Document;
use crosstalk_protocol::audit::bundle::{BundleReport, Wrong};
use crosstalk_protocol::audit::{Checkpoint, EventKind, Fork, LogEntry, LogReceipt, NoteKey};
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
    pub(crate) fn new(entry: &LogEntry) -> Self {
        let leaf = &entry.leaf;
        let (from, to) = entry.parties.clone().unzip();
        let detail = entry.detail.as_ref().map(|(_, detail)| detail.pairs());
        Self {
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

impl AuditReport {
    fn of_log(key: &NoteKey, key_is_trusted: bool, checkpoint: &Checkpoint) -> Self {
        Self {
            holds: true,
            log: Some(CheckedLogReport {
                key_is_trusted,
                key: key.to_string(),
                origin: checkpoint.origin.clone(),
                size: checkpoint.size,
            }),
            bundle: None,
            receipt: None,
            wrong: None,
        }
    }

    pub(crate) fn of_bundle(checked: &BundleReport, key_is_trusted: bool) -> Self {
        let kinds = checked.kinds.iter();
        Self {
            bundle: Some(CheckedBundleReport {
                is_all: checked.is_all,
                kinds: kinds
                    .map(|(k, n)| (k.as_str().to_owned(), (*n).into()))
                    .collect(),
                messages: checked.messages,
                erased: checked.erased,
                withheld: checked.withheld,
                extended: checked.extended,
            }),
            ..Self::of_log(&checked.key, key_is_trusted, &checked.checkpoint)
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
