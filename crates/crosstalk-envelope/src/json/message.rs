//! A message in JSON.

#![allow(
    missing_docs,
    reason = "the fields are named after those of the envelope"
)]

use serde::{Deserialize, Serialize};

/// An envelope.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageJson {
    pub sender: String,
    pub receiver: String,
    pub version: String,
    pub user: Option<String>,
    pub session: Option<String>,
    pub thread: Option<String>,
    pub parent: Option<String>,
    pub message: Option<String>,
    pub context: Option<String>,
    pub intent: Option<MessageIntent>,
    pub headers: Vec<MessageField>,
    pub meta: Vec<MessageBlock>,
    pub body: String,
    /// `response` where the text stands under `response:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_name: Option<String>,
    pub sig: Option<String>,
    #[serde(skip_deserializing)]
    pub repairs: Vec<Finding>,
    #[serde(skip_deserializing)]
    pub diagnostics: Vec<Finding>,
}

/// An intent: the word alone, or what was written with what it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageIntent {
    Word(String),
    Both { written: String, meaning: String },
}

/// A header.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageField {
    pub name: String,
    pub value: String,
}

/// A META block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageBlock {
    pub namespace: String,
    pub fields: Vec<KeyValue>,
}

/// A key of a META block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyValue {
    pub key: String,
    pub value: String,
}

/// A diagnostic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: &'static str,
    pub code: Option<&'static str>,
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub help: &'static str,
}
