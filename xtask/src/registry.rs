//! `spec/registry/*.toml` as data.

mod source;

pub use source::source;

use serde::Deserialize;
use std::path::Path;
use std::{fs, io};

/// Where the generated source stands.
pub const GENERATED: &str = "crates/crosstalk-envelope/src/registry/generated.rs";

#[derive(Deserialize)]
struct Keys {
    denied: Vec<DeniedKey>,
}

#[derive(Deserialize)]
struct DeniedKey {
    key: String,
    reason: String,
}

#[derive(Deserialize)]
struct Redactions {
    kind: Vec<Redaction>,
    kept: Kept,
    label: LabelDistance,
    phone: Labels,
    ip: Words,
    card: Cards,
    iban: Ibans,
    national: Vec<NationalNumber>,
}

#[derive(Deserialize)]
struct LabelDistance {
    before: usize,
    behind: usize,
}

#[derive(Deserialize)]
struct Labels {
    labels: Vec<String>,
}

#[derive(Deserialize)]
struct Words {
    words: Vec<String>,
}

#[derive(Deserialize)]
struct Cards {
    issuers: Vec<CardIssuer>,
}

#[derive(Deserialize)]
struct CardIssuer {
    name: String,
    first: u32,
    last: u32,
    lengths: (usize, usize),
}

#[derive(Deserialize)]
struct Ibans {
    lengths: Vec<String>,
}

#[derive(Deserialize)]
struct NationalNumber {
    country: String,
    name: String,
    check: String,
    #[serde(default)]
    weights: Vec<Vec<u64>>,
    #[serde(default)]
    alphabets: Vec<String>,
    #[serde(default)]
    forms: Vec<String>,
    #[serde(default)]
    labelled: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Deserialize)]
struct Redaction {
    name: String,
    placeholder: String,
    summary: String,
}

#[derive(Deserialize)]
struct Kept {
    namespaces: Vec<String>,
    keys: Vec<String>,
}

#[derive(Deserialize)]
struct Errors {
    error: Vec<ErrorCode>,
}

#[derive(Deserialize)]
struct ErrorCode {
    code: String,
    name: String,
    http: u16,
    exit: u8,
    summary: String,
}

#[derive(Deserialize)]
struct Intents {
    intent: Vec<Intent>,
    legacy: Vec<Legacy>,
}

#[derive(Deserialize)]
struct Intent {
    name: String,
    summary: String,
    #[serde(default)]
    asks: bool,
    #[serde(default)]
    answers: bool,
    #[serde(default)]
    needs_parent: bool,
}

#[derive(Deserialize)]
struct Legacy {
    name: String,
    meaning: String,
}

#[derive(Deserialize)]
struct Schemes {
    scheme: Vec<Scheme>,
}

#[derive(Deserialize)]
struct Scheme {
    name: String,
    form: String,
    kind: String,
    summary: String,
}

#[derive(Deserialize)]
struct Namespaces {
    namespace: Vec<Namespace>,
}

#[derive(Deserialize)]
struct Namespace {
    name: String,
    summary: String,
    #[serde(default)]
    repeats: bool,
    #[serde(default)]
    hop: bool,
    numbered: Option<Numbered>,
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Numbered {
    prefix: String,
    r#type: String,
}

#[derive(Deserialize)]
struct Key {
    name: String,
    r#type: String,
    #[serde(default)]
    values: Vec<String>,
    /// The enum of the values in the code, and what it is for.
    r#enum: Option<(String, String)>,
    #[serde(default)]
    hop: bool,
}

#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

/// One numbered rule of `spec/`.
#[derive(Deserialize)]
pub struct Rule {
    /// Its id, such as `ENV-022`.
    pub id: String,
    /// Its constant in the code, if code refers to it.
    pub name: Option<String>,
    /// The code of the taxonomy that a violation carries.
    pub code: Option<String>,
    title: String,
    /// The way out, for the person who sees the diagnostic.
    pub help: Option<String>,
    /// Where its cases are, if not in `conformance/`.
    pub suite: Option<String>,
    /// A repair by this rule leaves text out.
    #[serde(default)]
    drops: bool,
}

fn read<T: serde::de::DeserializeOwned>(root: &Path, name: &str) -> io::Result<T> {
    let path = root.join("spec/registry").join(name);
    let text = fs::read_to_string(&path)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    toml::from_str(&text).map_err(|e| io::Error::other(format!("{}: {e}", path.display())))
}

/// The rules, in the order of the file.
pub fn rules(root: &Path) -> io::Result<Vec<Rule>> {
    read::<Rules>(root, "rules.toml").map(|r| r.rule)
}
