//! The operations of `crosstalk-binding` as WebAssembly. `js/src/index.js` gives them the names, types and defaults of JavaScript.
//!
//! Texts go in, texts come out. Functions that report about any input take it as UTF-8, because a string of JavaScript can hold
//! halves of surrogate pairs, which are no text (ENV-001). Results are JSON texts, which a JavaScript engine reads faster than it
//! builds an object call by call. A failure is thrown as the JSON text of its facts.

use crosstalk_binding::{self as binding, CrosstalkError, ReplyOptions, SignOptions};
use crosstalk_envelope::Timestamp;
use serde_json::json;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

type Thrown<T> = Result<T, JsValue>;

fn thrown(error: CrosstalkError) -> JsValue {
    let facts = json!({
        "message": error.message,
        "code": error.code.map(|code| code.as_str()),
        "rule": error.rule,
        "help": error.help,
        "line": error.line,
    });
    facts.to_string().into()
}

/// The time of a number of milliseconds since 1970, as `Date.now()` gives it.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a float of a date is far from the limits of the integer, and a cast saturates"
)]
const fn time(millis: f64) -> Timestamp {
    Timestamp::from_millis(millis as i64)
}

/// `crosstalk_binding::parse`.
#[wasm_bindgen]
pub fn parse(text: &[u8], reading: &str) -> Thrown<String> {
    let reading = binding::parse_reading(reading).map_err(thrown)?;
    Ok(binding::parse(text, reading))
}

/// `crosstalk_binding::build`.
#[wasm_bindgen]
pub fn build(json: &str) -> Thrown<String> {
    binding::build(json).map_err(thrown)
}

/// `crosstalk_binding::reply`.
#[wasm_bindgen]
pub fn reply(
    text: &str,
    body: &str,
    from: Option<String>,
    user: Option<String>,
    intent: Option<String>,
    context: Option<String>,
) -> Thrown<String> {
    let options = ReplyOptions {
        from: from.as_deref(),
        user: user.as_deref(),
        intent: intent.as_deref(),
        context: context.as_deref(),
    };
    binding::reply(text, body, options).map_err(thrown)
}

/// `crosstalk_binding::format`.
#[wasm_bindgen]
pub fn format(text: &str) -> Thrown<String> {
    binding::format(text).map_err(thrown)
}

/// `crosstalk_binding::migrate`.
#[wasm_bindgen]
pub fn migrate(text: &str) -> Thrown<String> {
    binding::migrate(text).map_err(thrown)
}

/// `crosstalk_binding::lint`.
#[wasm_bindgen]
pub fn lint(text: &[u8]) -> String {
    binding::lint(text)
}

/// The bytes of `crosstalk_binding::canonical`.
#[wasm_bindgen]
pub fn canonical(text: &str) -> Thrown<Vec<u8>> {
    let form = binding::canonical(text).map_err(thrown)?;
    Ok(form.into_bytes())
}

/// `crosstalk_binding::digest`.
#[wasm_bindgen]
pub fn digest(text: &str) -> Thrown<String> {
    binding::digest(text).map_err(thrown)
}

/// `crosstalk_binding::generate_key`.
#[wasm_bindgen]
pub fn generate_key(algorithm: Option<String>) -> Thrown<String> {
    let key = binding::generate_key(algorithm.as_deref()).map_err(thrown)?;
    Ok(json!(key).to_string())
}

/// `crosstalk_binding::sign`.
#[wasm_bindgen]
pub fn sign(
    text: &str,
    private_key_pem: &str,
    key_id: &str,
    with_key: bool,
    replace: bool,
    at: f64,
) -> Thrown<String> {
    let options = SignOptions {
        key_id,
        with_key,
        replace,
        at: time(at),
    };
    binding::sign(text, private_key_pem, options).map_err(thrown)
}

/// `crosstalk_binding::verify`; the keys are a JSON list of pairs of texts.
#[wasm_bindgen]
pub fn verify(text: &[u8], keys: &str, at: f64) -> Thrown<String> {
    let keys: Vec<(String, String)> = serde_json::from_str(keys).map_err(|_| {
        let error = CrosstalkError::usage("`keys` is not a list of keys");
        thrown(error.help("pass objects with the texts `id` and `key`"))
    })?;
    binding::verify(text, &keys, time(at)).map_err(thrown)
}

/// `crosstalk_binding::primer`.
#[wasm_bindgen]
pub fn primer(address: &str, me: &str) -> String {
    binding::primer(address, me)
}

/// `crosstalk_binding::new_id`.
#[wasm_bindgen]
pub fn new_id() -> String {
    binding::new_id()
}

/// `crosstalk_binding::parse_address`.
#[wasm_bindgen]
pub fn parse_address(text: &str) -> String {
    binding::parse_address(text)
}

/// `crosstalk_binding::redact`.
#[wasm_bindgen]
pub fn redact(text: &str) -> Thrown<String> {
    binding::redact(text).map_err(thrown)
}
