//! Questions to an implementation, and what can be read from its results. `conformance/README.md` lists both for every op.

use crosstalk_envelope::base64;
use serde_json::{Map, Value};
use std::fmt;

/// An operation and its parameters, without what the case expects.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseQuestion(Map<String, Value>);

/// An implementation of the protocol. The Rust crates implement the same trait as a program in another language.
pub trait Implementation {
    /// The result of a question, an object. A rejection is a result, too: `{"errors": [diagnostic, …]}`.
    ///
    /// # Errors
    /// The implementation does not have the operation, or gave no usable answer.
    fn answer(&self, question: &CaseQuestion) -> Result<Value, CaseFailure>;
}

/// Why an implementation does not pass a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFailure {
    /// The answer differs from what the case expects.
    Mismatch {
        /// The expectation of the case.
        expected: String,
        /// The answer of the implementation.
        received: String,
    },
    /// The implementation says that it does not have the operation.
    Unsupported,
    /// The implementation gave no usable answer: why.
    NoAnswer(String),
    /// The case file itself is wrong.
    Case(String),
}

impl CaseFailure {
    pub(crate) fn mismatch(expected: impl fmt::Display, received: impl fmt::Display) -> Self {
        Self::Mismatch {
            expected: expected.to_string(),
            received: received.to_string(),
        }
    }
}

impl From<String> for CaseFailure {
    fn from(fault: String) -> Self {
        Self::Case(fault)
    }
}

impl fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { expected, received } => {
                write!(f, "expected {expected}\nreceived {received}")
            }
            Self::Unsupported => f.write_str("the implementation does not support the operation"),
            Self::NoAnswer(why) => f.write_str(why),
            Self::Case(fault) => write!(f, "the case file is wrong: {fault}"),
        }
    }
}

impl CaseQuestion {
    /// A question about an operation, without parameters.
    pub fn new(op: &str) -> Self {
        Self(Map::from_iter([("op".to_owned(), Value::from(op))]))
    }

    /// Adds a parameter, or replaces it.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a parameter if there is a value.
    #[must_use]
    pub fn with_optional(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a text; one that is not UTF-8 is added in base64 under another key.
    #[must_use]
    pub fn with_bytes(self, key: &str, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.with(key, text),
            Err(_) => self.with(&format!("{key}_base64"), base64::encode(bytes)),
        }
    }

    /// The name of the operation.
    pub fn op(&self) -> &str {
        self.get("op").unwrap_or_default()
    }

    /// A parameter; null if there is none.
    pub fn value(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    /// A parameter that is a text.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.value(key).as_str()
    }

    /// A parameter that is a text, as bytes.
    pub fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        bytes_of(&self.0, key)
    }

    /// The operation and its parameters as one JSON object.
    pub fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The line that is sent to a program.
    #[cfg(feature = "remote")]
    pub(crate) fn line(&self, id: u64) -> Vec<u8> {
        let mut object = Map::from_iter([("id".to_owned(), Value::from(id))]);
        object.extend(self.0.clone());
        let mut line = Value::Object(object).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

impl From<Map<String, Value>> for CaseQuestion {
    fn from(parameters: Map<String, Value>) -> Self {
        Self(parameters)
    }
}

fn bytes_of(object: &Map<String, Value>, key: &str) -> Option<Vec<u8>> {
    match object.get(key).and_then(Value::as_str) {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => base64::decode(object.get(&format!("{key}_base64"))?.as_str()?),
    }
}

/// A part of a result; without it, the case can't be judged.
pub(crate) fn part<'r, T>(
    result: &'r Value,
    what: &str,
    read: impl FnOnce(&'r Value) -> Option<T>,
) -> Result<T, CaseFailure> {
    let expected = || CaseFailure::mismatch(format_args!("a result with {what}"), result);
    read(result).ok_or_else(expected)
}

/// A text of a result, as bytes.
pub(crate) fn bytes_in(result: &Value, key: &str) -> Result<Vec<u8>, CaseFailure> {
    let what = format!("`{key}`, a text");
    part(result, &what, |r| bytes_of(r.as_object()?, key))
}

/// A text of a result.
pub(crate) fn word_in<'r>(result: &'r Value, key: &str) -> Result<&'r str, CaseFailure> {
    part(result, &format!("`{key}`, a text"), |r| {
        r.get(key)?.as_str()
    })
}

/// A list of texts of a result.
pub(crate) fn words_in<'r>(result: &'r Value, key: &str) -> Result<Vec<&'r str>, CaseFailure> {
    let words = |r: &'r Value| r.get(key)?.as_array()?.iter().map(Value::as_str).collect();
    part(result, &format!("`{key}`, a list of texts"), words)
}

/// A value of a result.
pub(crate) fn value_in<'r>(result: &'r Value, key: &str) -> Result<&'r Value, CaseFailure> {
    part(result, &format!("`{key}`"), |r| r.get(key))
}

/// The diagnostics of a rejection.
pub(crate) fn rejection_in(result: &Value) -> Option<&Value> {
    let is_rejected = |errors: &&Value| errors.as_array().is_none_or(|e| !e.is_empty());
    result.get("errors").filter(is_rejected)
}
