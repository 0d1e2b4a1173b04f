//! Answers for programs: JSON that is also safe to look at.

use crate::failure::Failure;
use crosstalk_envelope::unicode::is_hidden;
use serde_json::Value;
use std::fmt::Write as _;

/// The JSON of a value over several lines, with a line end.
///
/// What could move the cursor, reorder or hide something is written as `\u…`: the same value for a
/// program, and visible for a person.
pub(crate) fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    visible(serde_json::to_string_pretty(value))
}

/// The JSON of a value on one line, with a line end.
pub(crate) fn line(value: &impl serde::Serialize) -> Result<String, Failure> {
    visible(serde_json::to_string(value))
}

fn visible(text: serde_json::Result<String>) -> Result<String, Failure> {
    let mut text = text.map_err(|e| Failure::io("the JSON form", e.into()))?;
    text.push('\n');
    // Outside of strings JSON is plain ASCII, so each such character is in a string.
    let harmful = |c: char| (c.is_control() && c != '\n') || is_hidden(c);
    if !text.contains(harmful) {
        return Ok(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

/// A part of an answer with the name of its file.
pub(crate) fn tagged(part: &impl serde::Serialize, file: &str) -> Result<Value, Failure> {
    let mut value = value(part)?;
    tag(&mut value, file);
    Ok(value)
}

/// A part of an answer.
pub(crate) fn value(part: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(part).map_err(|e| Failure::io("the JSON form", e.into()))
}

/// The answer that a value holds.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|e| Failure::io("the JSON form", e.into()))
}

/// Writes the name of its file into an object.
pub(crate) fn tag(object: &mut Value, file: &str) {
    set(object, "file", Some(file));
}

/// Writes a text, or null, into an object.
pub(crate) fn set(object: &mut Value, key: &str, text: Option<&str>) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.into(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_visible_and_the_value_is_the_same() {
        let value = serde_json::json!({"a": "x\u{1b}\u{9b}\u{202e}\u{e0041}\u{7f}→\n"});
        let text = pretty(&value).unwrap();
        assert!(
            text.contains(r"x\u001b\u009b\u202e\udb40\udc41\u007f→\n"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
