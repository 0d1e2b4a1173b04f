//! How the `json` section of a case is compared with what came.

use crate::question::CaseFailure;
use crosstalk_envelope::id::IdForm;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Compares the `json` section of a case with an answer, as `conformance/README.md` says.
///
/// # Errors
/// The path, and what is expected and was received there.
pub fn subset(expected: &Value, actual: &Value) -> Result<(), CaseFailure> {
    Comparison::default().value("", expected, actual)
}

/// The texts that the names in `{{name}}` stand for.
#[derive(Default)]
struct Comparison {
    texts: HashMap<String, String>,
}

impl Comparison {
    fn value(&mut self, path: &str, expected: &Value, actual: &Value) -> Result<(), CaseFailure> {
        match (expected, actual) {
            (Value::Object(wanted), Value::Object(map)) => {
                for (key, value) in wanted {
                    let came = map.get(key).unwrap_or(&Value::Null);
                    self.value(&format!("{path}.{key}"), value, came)?;
                }
                Ok(())
            }
            (Value::Object(wanted), Value::Array(fields)) => {
                self.value(path, expected, &Value::Object(named(wanted, fields)))
            }
            (Value::Array(wanted), Value::Array(items))
                if is_findings(path) && !wanted.is_empty() =>
            {
                self.findings(path, wanted, items)
            }
            (Value::Array(wanted), Value::Array(items)) if wanted.len() == items.len() => {
                let pairs = wanted.iter().zip(items).enumerate();
                for (index, (value, item)) in pairs {
                    self.value(&format!("{path}[{index}]"), value, item)?;
                }
                Ok(())
            }
            (Value::String(pattern), Value::String(came)) if self.fits(pattern, came) => Ok(()),
            _ if expected == actual => Ok(()),
            _ => {
                let path = if path.is_empty() { "." } else { path };
                Err(CaseFailure::mismatch(
                    format_args!("{path} = {expected}"),
                    format_args!("{path} = {actual}"),
                ))
            }
        }
    }

    /// Each one that is wanted came, in any order. Others may have come too: one mistake can break several rules.
    fn findings(
        &mut self,
        path: &str,
        wanted: &[Value],
        items: &[Value],
    ) -> Result<(), CaseFailure> {
        let mut left: Vec<&Value> = items.iter().collect();
        for (index, value) in wanted.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let fits = |item: &&Value| {
                let names = self.texts.clone();
                let is_fit = self.value(&path, value, item).is_ok();
                if !is_fit {
                    self.texts = names;
                }
                is_fit
            };
            let found = left.iter().position(fits).ok_or_else(|| {
                CaseFailure::mismatch(
                    format_args!("{path} = {value}"),
                    format_args!("none that fits in {}", Value::from(items)),
                )
            })?;
            left.remove(found);
        }
        Ok(())
    }

    /// `{{name}}` is any text that is not empty, the same one for the same name; `{{id…}}` is an id.
    fn fits(&mut self, pattern: &str, came: &str) -> bool {
        let name = pattern
            .strip_prefix("{{")
            .and_then(|p| p.strip_suffix("}}"));
        let Some(name) = name else {
            return false;
        };
        let formed =
            !came.is_empty() && (!name.starts_with("id") || IdForm::of(came) != IdForm::Opaque);
        let fresh = !self.texts.iter().any(|(n, text)| n != name && text == came);
        formed && fresh && self.texts.entry(name.into()).or_insert(came.into()) == came
    }
}

/// Whether the list at this path holds diagnostics.
fn is_findings(path: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or_default();
    ["errors", "diagnostics", "repairs"].contains(&key)
}

/// A list of `{"key" or "name", "value"}` as an object, with the names that are asked for.
fn named(wanted: &Map<String, Value>, fields: &[Value]) -> Map<String, Value> {
    let name = |field: &Value| {
        let name = field.get("key").or(field.get("name"))?;
        Some(name.as_str()?.to_owned())
    };
    let pair = |field: &Value| Some((name(field)?, field.get("value")?.clone()));
    let pairs = fields.iter().filter_map(pair);
    pairs.filter(|(n, _)| wanted.contains_key(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_told_from_other_objects() {
        let actual = serde_json::json!({"a": [1, {"b": "x", "c": null}], "f": [{"key": "K", "value": "v"}],
            "errors": [{"rule": "X", "line": 1}, {"rule": "Y"}, {"rule": "Z"}], "repairs": [],
            "i": "01K74V6R0074G0T7MAHPXVDNXW", "j": "01K74V6R0074G0T7MAHPXVDNXW"});
        let check = |expected| subset(&serde_json::from_str(expected).unwrap(), &actual);
        for good in [
            r#"{}"#,
            r#"{"a": [1, {"b": "x"}]}"#,
            r#"{"a": [1, {"c": null, "d": null}]}"#,
            r#"{"f": {"K": "v", "L": null}}"#,
            r#"{"i": "{{id1}}", "j": "{{id1}}"}"#,
            r#"{"errors": [{"rule": "Z"}, {"rule": "X", "line": 1}], "repairs": []}"#,
        ] {
            check(good).unwrap();
        }
        for bad in [
            r#"{"a": [1]}"#,
            r#"{"a": [1, {"b": "y"}]}"#,
            r#"{"b": 1}"#,
            r#"{"f": {"K": "w"}}"#,
            r#"{"f": {"L": "v"}}"#,
            r#"{"i": "{{id1}}", "j": "{{id2}}"}"#,
            r#"{"a": [1, {"b": "{{id1}}"}]}"#,
            r#"{"errors": [{"rule": "Z"}, {"rule": "Z"}]}"#,
            r#"{"errors": [{"rule": "X", "line": 2}]}"#,
            r#"{"errors": []}"#,
            r#"{"repairs": [{"rule": "X"}]}"#,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
