//! The rules of a relay: who may send what to whom, where a message goes, what the relay keeps of it. Nothing here does I/O.
//!
//! ```text
//! Document ─┐
//! Verdict ──┤                          Intake::accept ──> AcceptOutcome   one transaction for a batch
//! Peer ─────┼── admit ──> Admission ──┘      │
//! RelayRules ┘    │                          └─ plan_accept(AcceptFacts)  what depends on what came before
//!                 └─ Rejection: code, reason, place, way out
//! ```
//!
//! An adapter of [`port::RelayStore`] looks up what a batch asks for ([`AcceptNeeds`], [`AcceptFacts`]) and writes what
//! [`plan_accept`] says ([`AcceptChanges`]); it decides nothing itself.

mod accept;
mod admit;
mod capability;
mod courier;
mod delivery;
mod hold;
mod hop;
mod pairing;
mod pattern;
mod peer;
pub mod port;
mod receipt;
pub mod report;
mod route;
mod trace;

pub use accept::{
    AcceptChanges, AcceptFacts, AcceptNeeds, AcceptNumbers, AcceptOutcome, AcceptPlan,
    ConversationId, ConversationParties, DeliveryFacts, DisplacedMessage, HeldFacts,
    ImprovedMessage, KnownFacts, LoggedFacts, NewMessage, ParentFacts, ParentNeeds, PendingParties,
    PlannedEvent, PlannedOutcome, PlannedPlace, PollFacts, ReportedDelivery, SessionFacts,
    Surroundings, id_conflict, is_accepted_after_close, plan_accept,
};
pub use admit::{Admission, AdmissionCandidate, RelayRules, admit, admit_held};
pub use capability::{ANY, Agent, Directory};
pub use crosstalk_envelope::registry::Priority;
pub use delivery::{
    Attempt, Backoff, Delivery, DeliveryState, Handler, INTERRUPTED, Quarantined, Recipient,
    program_failure, public_reason, undelivered_help,
};
pub use hold::{
    HeldMessage, Hold, HoldChoice, HoldDecided, HoldDecision, HoldReason, Ruling, ended,
};
pub use hop::{HOPS, Hop, HopFault, HopKey, add_hop, add_logged_hop, check_hop, hops_of};
pub use pairing::{PAIRING_CODE_BYTES, PAIRING_SECONDS, pairing_code, pairing_digest};
pub use pattern::{Pattern, PatternError};
pub use peer::{KnownNames, Peer, Role, authority, is_human, is_system};
pub use port::{
    BLOB_BYTES_LEAST, DeadLetter, DueDelivery, DuePoll, Errand, FilledSearch, HandedOut,
    IndexProgress, Lease, MAX_COUNTED, PollState, QueueDepth, Retention, StoreGauges, TokenRecord,
};
pub use receipt::{Receipted, acknowledgement};
pub use route::{Binding, Route, Routes};
pub use trace::{HopSignature, HopStep, TraceFault, trace};
