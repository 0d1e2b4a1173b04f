//! The answer of a relay to a request that it rejects.

use crate::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request was rejected.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Error")]
pub struct ErrorAnswer {
    /// The fields of the rejection.
    pub error: ErrorFields,
}

/// The fields of a rejection.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ErrorFields {
    /// The code of the taxonomy.
    #[schemars(with = "schema::Code")]
    pub code: String,
    /// The reason, in one sentence.
    #[schemars(length(min = 1))]
    pub reason: String,
    /// The fault, its place, and the way out.
    #[schemars(length(min = 1))]
    pub detail: String,
    /// The fault and its place.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub what: String,
    /// The way out.
    #[serde(default)]
    pub help: Option<String>,
    /// The rule that was broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = r"^[A-Z]{3}-[0-9]{3}$"))]
    pub rule: Option<String>,
    /// The line of the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1))]
    pub line: Option<usize>,
    /// The column of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1))]
    pub column: Option<usize>,
    /// Seconds after which another attempt makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub retry_after: Option<u64>,
}

/// The meaning of each status of a rejected request.
pub(crate) const STATUSES: &[(u16, &str)] = &[
    (
        400,
        "E-FORMAT: the envelope, a parameter or the body is malformed.",
    ),
    (
        401,
        "E-PERM: a credential is needed, or this one is not valid.",
    ),
    (
        403,
        "E-PERM or E-CONSENT: it is not allowed, or not consented to; or Host or Origin is strange.",
    ),
    (
        404,
        "E-ROUTE: there is no such thing, or no way to the recipient.",
    ),
    (405, "E-UNSUPPORTED: the path has no such method."),
    (
        406,
        "E-UNSUPPORTED: the path has nothing of the types in Accept.",
    ),
    (408, "E-TIMEOUT: the request came too slowly."),
    (
        409,
        "It was already decided, has another text than the one that was shown, or can't be \
         approved any more (CON-065, CON-067).",
    ),
    (413, "E-TOO-LARGE: a limit is exceeded."),
    (414, "The path is too long. There is no envelope."),
    (
        415,
        "E-UNSUPPORTED: the type, charset or encoding of the body.",
    ),
    (422, "E-UNSUPPORTED: the version or a feature."),
    (429, "E-RATE: too many requests."),
    (
        431,
        "The head of the request is too large. There is no envelope.",
    ),
    (502, "E-ROUTE: another server on the way failed."),
    (503, "E-RATE: the relay accepts nothing for now."),
    (504, "E-TIMEOUT: a deadline has passed."),
];
