//! The kinds of values in requests and responses, as JSON Schemas.
//!
//! `#[schemars(with = "…")]` names a type of this module for a field that holds the value as text, so that each kind
//! has one schema in the OpenAPI document.

use crosstalk_envelope::limit;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::consent;
use crosstalk_protocol::relay::{DeliveryState, Handler, Role as TokenRole};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// The longest text of a parameter, in characters.
pub const MAX_TEXT_CHARS: usize = 2000;
/// The longest id, in characters.
pub const MAX_ID_CHARS: usize = 200;
/// The longest name of a token, in characters.
pub const MAX_TOKEN_NAME_CHARS: usize = 64;

/// Text on one line, without control characters.
const ONE_LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$";
/// The same, with a `*` at the end at most.
const ADDRESS_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029*]*\*?$";
/// The value of `Prefer`: 1 to 60 seconds.
const PREFER: &str = "^wait=([1-9]|[1-5][0-9]|60)$";

/// Makes a schema part of a document.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type, as a reference to its definition where it has one.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The same schema with a property that is always there, and what it describes then.
pub(crate) fn require(mut schema: Schema, property: &str, description: &str) -> Schema {
    schema.insert("description".into(), description.into());
    let required = schema.ensure_object().entry("required");
    if let Value::Array(names) = required.or_insert_with(|| Value::Array(Vec::new())) {
        names.push(property.into());
    }
    schema
}

/// Defines kinds of values: a name, what it is, and its schema.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:tt;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema = schemars::json_schema!($schema);
                schema.insert("description".into(), concat!($($doc),+).trim().into());
                schema
            }
        }
    )+};
}

pub(crate) use kinds;

kinds! {
    /// A name or a URL, as in a direction line.
    Address = {
        "type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS, "pattern": ONE_LINE,
        "examples": ["claude://session/abc123", "CHATGPT"],
    };
    /// An address, the beginning of some and `*`, or `*`.
    AddressPattern = {
        "type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS, "pattern": ADDRESS_PATTERN,
    };
    /// The id of a message or a thread: opaque text, most often a ULID.
    Id = {
        "type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS, "pattern": ONE_LINE,
        "examples": ["01K74V6VX0S86Z5JATM52C3M7Z"],
    };
    /// A position in an inbox or a listing: text that has a meaning for the relay only.
    Cursor = { "type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS, "pattern": ONE_LINE };
    /// Text on one line.
    Text = { "type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS, "pattern": ONE_LINE };
    /// A capability of an agent.
    Capability = {
        "type": "string", "minLength": 1, "maxLength": crate::directory::MAX_CAPABILITY_CHARS, "pattern": ONE_LINE,
    };
    /// Bytes.
    Bytes = { "type": "string", "format": "binary" };
    /// A short text.
    Word = { "type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS };
    /// A time in UTC.
    Time = {
        "type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$",
        "examples": ["2025-10-09T16:00:01Z"],
    };
    /// The SHA-256 of some bytes.
    Digest = { "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" };
    /// A code of the error taxonomy.
    Code = { "type": "string", "enum": words(ErrorCode::ALL, |code| code.as_str()) };
    /// One envelope of AI Crosstalk v1.1.
    Envelope = {
        "type": "string", "pattern": r"^\[\[", "maxLength": limit::ENVELOPE_BYTES,
        "examples": ["[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: api design\n\
                      intent: REQUEST\nbody: |\n  Which endpoint should stay?\nsig: none\n[[END]]\n"],
    };
    /// How far a delivery is.
    State = { "type": "string", "enum": states() };
    /// A step on the way from a name to an address.
    Step = { "type": ["string", "object"] };
    /// How a message gets to its recipient.
    Way = { "type": "string", "enum": words(&Handler::ALL, |handler| handler.as_str()) };
    /// The role of a token.
    Role = { "type": "string", "enum": words(&TokenRole::ALL, |role| role.as_str()) };
    /// The name of a token.
    Name = {
        "type": "string", "minLength": 1, "maxLength": MAX_TOKEN_NAME_CHARS, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$",
    };
    /// A pairing code.
    PairingCode = {
        "type": "string", "minLength": 8, "maxLength": crate::pairing::MAX_CODE_CHARS, "pattern": ONE_LINE, "examples": ["7K3M-Q9XV"],
    };
    /// The secret of a token.
    Secret = { "type": "string", "pattern": "^xt_[A-Za-z0-9_-]{43}$" };
    /// The result of the verification of a signature.
    Signature = { "type": "string", "enum": ["verified", "first-contact", "unbound", "unsigned", "unknown-key"] };
    /// How well a consent was verified.
    Assurance = { "type": "string", "enum": words(&consent::Assurance::ALL, |level| level.as_str()) };
    /// The id of the last event that came.
    LastEventId = { "type": "string", "pattern": "^[!-~]{1,200}$" };
    /// How many seconds to wait, as `wait=N`.
    Prefer = { "type": "string", "pattern": PREFER, "examples": ["wait=20"] };
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|one| word(*one)).collect()
}

/// The states of deliveries, and of messages that are not delivered yet.
fn states() -> Vec<&'static str> {
    let not_yet = [DeliveryState::Held, DeliveryState::Quarantined];
    let all = DeliveryState::ALL.iter().chain(&not_yet);
    all.map(|state| state.as_str()).collect()
}
