//! The rules of the protocol: trust, consent, polls, threads, redaction, audit and the work of a relay. There is no I/O, no clock
//! and no randomness here: times and answers of others are arguments.
//!
//! ```text
//! Document ─┐
//! Trust ────┼── verify ──> Verdict ── report ──> crosstalk.verify/1
//! Question ─┘                 │
//!                             └── learn, pin_of ──> Trust
//!
//! name ── resolve(Names, AddressAnswer) ──> Resolution       primer  how another AI answers
//!                                                            compose what is filled in for a person
//! ```
//!
//! [`store`] says what is kept of messages, [`bundle`] passes a thread on, [`chat`] reads exports of chats, [`archive`]
//! writes threads as files.

pub mod archive;
pub mod audit;
pub mod bundle;
pub mod chat;
pub mod compose;
pub mod consent;
pub mod dns;
pub mod poll;
pub mod port;
mod readdress;
pub mod redact;
pub mod relay;
pub mod rotation;
pub mod store;
pub mod url;

mod admitted;
mod follow_up;
mod learn;
mod name;
mod nearest;
mod primer;
mod program;
mod prompt;
mod trust;
mod verdict;
mod verify;

pub use admitted::Admitted;
pub use follow_up::{Ancestor, FollowUp, is_inquiry, may_reply_to_escalation};
pub use learn::{Learned, Unlearned, announces, learn, pin_of};
pub use name::{NameError, NameStep, NameTable, Resolution, name_to_ask, resolve, split_receivers};
pub use nearest::{edit_distance, intent_hint, nearest_address};
pub use primer::{Assistant, is_primer_example, needs_primer, primer, primer_of};
pub use program::{
    MESSAGE_VARIABLE_PREFIX, Printed, TRUNCATED_OUTPUT, agent_user, expects_answer, is_answer,
    is_quote, message_variables, printed_receiver,
};
pub use prompt::{carried, follow_up_prompt, program_prompt, standing};
pub use readdress::{answer_receiver, readdressed};
pub use rotation::Rotation;
pub use trust::{
    Domain, KeyStanding, KnownKey, MAX_CONTACTS_PER_CREDENTIAL, MAX_FOREIGN_CONTACTS, Origin,
    PinError, Trust, TrustFileError,
};
pub use verdict::{KeyChange, Trusted, Verdict, VerdictDetail, VerdictReport, VerdictWord};
pub use verify::{VerifyContext, domain_to_ask, verify};
