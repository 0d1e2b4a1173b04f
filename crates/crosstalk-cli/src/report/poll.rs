//! A poll for programs: `crosstalk.poll/1`, as the protocol and relays write it.

use crosstalk_protocol::poll::Why;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `crosstalk poll status`, `collate` and `close` print with --json. `state` and what follows it are there if the poll comes
/// from a store or a relay.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct PollReport {
    pub(crate) poll: PollCallReport,
    pub(crate) at: Option<String>,
    pub(crate) veiled: bool,
    pub(crate) outcome: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) tally: BTreeMap<String, u64>,
    /// There if the poll is ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, u64>>")]
    pub(crate) pairwise: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    pub(crate) quorum: QuorumReport,
    pub(crate) counted: Vec<CountedReport>,
    pub(crate) not_counted: Vec<NotCountedReport>,
    pub(crate) missing: Vec<String>,
    agreement: Vec<AgreementReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = ["open", "closed"]))]
    pub(crate) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_at: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) past: bool,
}

/// The question of the poll.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct PollCallReport {
    message: String,
    digest: String,
    from: String,
    pub(crate) question: String,
    pub(crate) r#type: String,
    pub(crate) options: Vec<String>,
    pub(crate) invited: Vec<String>,
    pub(crate) deadline: Option<String>,
    ties: String,
    secret: bool,
}

/// How many ballots the poll needs, and how many it has.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct QuorumReport {
    pub(crate) required: Option<u64>,
    pub(crate) counted: u64,
    pub(crate) reached: bool,
}

/// A ballot that counts.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CountedReport {
    pub(crate) from: String,
    pub(crate) choice: Option<String>,
    abstains: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    confidence: Option<String>,
    #[schemars(extend("enum" = ["vote", "first-line", "correction"]))]
    pub(crate) read_from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CorrectedReport")]
    pub(crate) corrected: Option<CorrectedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    sender: Option<String>,
    message: Option<String>,
    digest: String,
    #[schemars(extend("enum" = ["holds", "unchecked", "none"]))]
    pub(crate) signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) pkid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    verdict: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) undated: bool,
    answer: String,
}

/// How a ballot is to be read, and who says so.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct CorrectedReport {
    pub(crate) by: String,
    message: Option<String>,
    read_as: Option<String>,
}

/// An answer that does not count.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct NotCountedReport {
    pub(crate) from: String,
    pub(crate) message: Option<String>,
    pub(crate) digest: String,
    #[schemars(extend("enum" = Why::ALL.map(Why::as_str)))]
    pub(crate) why: String,
    pub(crate) detail: String,
    answer: String,
}

/// A choice, and those who made it.
#[derive(Deserialize, Serialize, JsonSchema)]
struct AgreementReport {
    choice: Option<String>,
    voters: Vec<String>,
}
