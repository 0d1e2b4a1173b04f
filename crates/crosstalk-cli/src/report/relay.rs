//! What the relay commands print for programs.

use crosstalk_protocol::relay::Role;
use crosstalk_relay::client::{Approval, DeadLetterView};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What `crosstalk token list --json` prints: never a secret.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokensReport {
    pub(crate) tokens: Vec<TokenReport>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenReport {
    pub(crate) name: String,
    #[schemars(extend("enum" = ROLES.map(Role::as_str)))]
    pub(crate) role: &'static str,
    #[serde(rename = "for")]
    pub(crate) addresses: Vec<String>,
    pub(crate) courier: Vec<String>,
    #[schemars(extend("enum" = ["active", "expired", "revoked"]))]
    pub(crate) state: &'static str,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    pub(crate) last_used_at: Option<String>,
}

const ROLES: [Role; 4] = [Role::Agent, Role::Person, Role::Admin, Role::Monitor];

/// What `crosstalk relay list --json` prints, in the order of the settings, those of the profile first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RelaysReport {
    pub(crate) relays: Vec<RelaySettingReport>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RelaySettingReport {
    pub(crate) url: String,
    #[serde(rename = "for")]
    pub(crate) addresses: Vec<String>,
    pub(crate) token_file: Option<String>,
    pub(crate) profile: Option<String>,
    /// The line in the settings.
    pub(crate) line: usize,
}

/// What `crosstalk approve --json` prints: the messages that are held for a decision, the oldest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalsReport {
    pub(crate) approvals: Vec<Approval>,
}

/// What `crosstalk dead --json` prints: the dead letters, the latest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DeadReport {
    pub(crate) deliveries: Vec<DeadLetterView>,
}

/// What `crosstalk fsck --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FsckReport {
    pub(crate) sound: bool,
    /// Messages that could not be indexed.
    pub(crate) quarantine: Vec<QuarantineReport>,
    pub(crate) places: Vec<FsckPlaceReport>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct QuarantineReport {
    pub(crate) id: String,
    pub(crate) seq: u64,
    pub(crate) reason: String,
}

/// The result of one place.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct FsckPlaceReport {
    pub(crate) place: String,
    pub(crate) attachments: u64,
    pub(crate) findings: Vec<String>,
    pub(crate) repaired: Vec<String>,
    /// What could not be checked.
    pub(crate) unchecked: Vec<String>,
}

/// What `crosstalk serve --check --json` prints. `ready` is true if the relay would start: every `needed` check is good.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServeCheckReport {
    pub(crate) ready: bool,
    pub(crate) checks: Vec<StartCheckReport>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct StartCheckReport {
    pub(crate) what: &'static str,
    pub(crate) file: Option<String>,
    pub(crate) good: bool,
    pub(crate) needed: bool,
    pub(crate) message: String,
}

/// What `crosstalk demo --json` prints: the chapters up to the last, or to the first that failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DemoReport {
    pub(crate) chapters: Vec<ChapterReport>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ChapterReport {
    pub(crate) title: &'static str,
    pub(crate) ok: bool,
    pub(crate) facts: Map<String, Value>,
    pub(crate) error: Option<String>,
}
