//! AI Crosstalk envelopes: text ↔ [`Document`] ↔ [`Envelope`] ↔ canonical bytes.
//!
//! ```text
//! scan(text)            finds envelopes in prose, code fences, quoted mail, a chat transcript
//!   Document            lossless: the received bytes and a span for every part
//!     Envelope          the typed view: addresses, ids, intent, META
//!     canonical()       the bytes that a digest names and a signature covers
//! ```
//!
//! Nothing here does I/O, and nothing panics on input. Faults are data: see [`Diagnostic`].

pub mod base64;
pub mod canonical;
pub mod flow;
pub mod id;
pub mod json;
pub mod limit;
pub mod meta;
pub mod name;
pub mod rc1;
pub mod registry;
pub mod reply;
pub mod signing;
pub mod unicode;

mod address;
mod authentic;
mod builder;
mod check;
mod diagnosis;
mod diagnostic;
mod document;
mod edit;
mod envelope;
mod explanation;
mod grammar;
mod key;
mod layout;
mod lines;
mod lint;
mod migrate;
mod order;
mod paste;
mod signature;
mod text;
mod time;
mod words;

pub use address::{Address, AddressError, Schemes, has_whole_escapes};
pub use authentic::{Authentic, Unfit, Verified, authenticate, authenticate_and_restore};
pub use builder::{BuildError, Builder};
pub use diagnosis::{Diagnosis, diagnose};
pub use diagnostic::{Diagnostic, LineIndex, Position, Severity};
pub use document::{Document, MetaBlock, Reading};
pub use edit::{Edit, EditPlace};
pub use envelope::{Envelope, IntentField, Session};
pub use explanation::Explanation;
pub use grammar::{BodyKind, CoreHeader};
pub use key::{Algorithm, Fingerprint, KeyError, PrivateKey, PublicKey};
pub use layout::fence;
pub use lint::lint;
pub use migrate::{Defaults, Migration, Migrator};
pub use order::sort_by_number;
pub use paste::{Scan, decode, scan, scan_bytes};
pub use registry::{ErrorCode, Intent};
pub use signature::{Signature, is_key_id};
pub use time::Timestamp;
