//! Consent: what a message says about it, what it needs, what is kept of it, and what ends it (CON-001 to CON-034).
//!
//! ```text
//! Document ── Claim::of ──> Claim ── check(Policy) ──> Refusal              what can be told from the message alone
//!                             │
//! Grant, Grant … (ledger) ────┴── judge ──> Terms ──> the ledger             what depends on what was granted before
//! ```
//!
//! [`check`] and [`judge`] are the same for a relay and for a person's own store; an adapter looks grants up and writes
//! [`Terms`] down, in the transaction that takes the message.

mod cascade;
mod claim;
mod jurisdiction;
mod ledger;
mod policy;
mod proof;

pub use cascade::{
    CoveredHeld, CoveredMessage, RevocationChanges, RevocationFacts, grant_event, plan_cascade,
};
pub use claim::{Claim, Need, is_sensitive, scopes};
pub(crate) use claim::{SEVERAL, names};
pub use crosstalk_envelope::registry::Pii;
pub use jurisdiction::{Demand, Jurisdiction, JurisdictionError, Provision};
pub(crate) use ledger::is_same_scope;
pub use ledger::{
    Cancelled, Erased, Grant, GrantFilter, Judge, Party, Revocation, RevocationOrder,
    RevocationResult, Terms, judge, plan_revocation,
};
pub(crate) use policy::legible;
pub use policy::{
    Backing, BorderPolicy, ConsentContext, Policy, check, check_leaving, check_redacted, is_brief,
    keeps_inside,
};
pub use proof::{Assurance, Proof};

use crosstalk_envelope::registry::{ErrorCode, Rule};
use crosstalk_envelope::reply::Rejection;

/// A refusal that names the rule.
fn refuse(rule: &'static Rule, what: &str, todo: &str) -> Rejection {
    let code = rule.code.unwrap_or(ErrorCode::Consent);
    Rejection::new(code, format!("{what}."), format!("{todo}.")).with_rule(rule)
}

/// Text from outside, as it is shown.
fn shown(text: &str) -> String {
    crosstalk_envelope::unicode::escape(text).into_owned()
}
