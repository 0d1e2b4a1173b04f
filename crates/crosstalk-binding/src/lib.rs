//! The surface of the packages for other languages: one function for each operation, and one error type.
//!
//! JavaScript (`crosstalk-wasm`) and Python call these functions and translate nothing but names and types. Results are the JSON
//! forms of the command line, as JSON texts: `crosstalk schema` has their schemas, and the command line prints the same types
//! ([`form`]). There is no I/O and no clock here, except that new ids contain the time: times are arguments.
//!
//! ```
//! use crosstalk_binding::{build, parse};
//! use crosstalk_envelope::Reading;
//! let text = build(r#"{"sender": "CLAUDE", "receiver": "CHATGPT", "user": "kalle", "context": "auth",
//!     "intent": "REQUEST", "body": "Should we use JWT?"}"#).unwrap();
//! assert!(text.starts_with("[[CLAUDE→CHATGPT v1]]\n"));
//! assert!(parse(&text, Reading::Strict).contains(r#""body":"Should we use JWT?""#));
//! ```

mod address;
mod error;
pub mod form;
mod key;
mod message;
mod redact;
mod signature;

pub use address::{AddressFinding, address_findings, parse_address};
pub use error::CrosstalkError;
pub use key::{GeneratedKey, generate_key, public_key};
pub use message::{
    ReplyOptions, build, canonical, digest, document_findings, format, lint, migrate,
    migrated_text, new_id, parse, parse_reading, primer, reply,
};
pub use redact::{RedactedText, redact, redact_text};
pub use signature::{
    SignOptions, is_repaired_by_signing, require_verified, sign, signing_faults, verify,
};
