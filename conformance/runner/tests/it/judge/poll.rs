//! Polls: envelopes in, a collation out.

use super::{Implementation, carries, same_bytes};
use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;

/// What is counted.
pub(crate) struct Count<'c> {
    /// The poll, if there are several.
    pub(crate) poll: Option<&'c str>,
    /// Up to when.
    pub(crate) at: Option<&'c str>,
}

/// What an implementation that counts polls offers.
pub(crate) trait Polls {
    /// The collation as JSON, and its envelopes one after the other, of the envelopes in a text.
    fn collate(&self, text: &[u8], count: &Count<'_>) -> Result<(Value, Vec<u8>), Value>;
}

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let get = |key| case.has(key).then(|| case.get(key));
    let count = Count {
        poll: get("poll"),
        at: get("at"),
    };
    let input = case.section("input")?;
    let (json, envelopes) = match (tested.collate(input, &count), case.get("expect")) {
        (Err(findings), "reject") => return carries(case, &findings, "error"),
        (Ok(collated), "") => collated,
        (Ok((came, _)) | Err(came), _) => {
            return Err(format!("that was not expected\ncame {came}"));
        }
    };
    // The order of the envelopes changes nothing.
    let text = std::str::from_utf8(input).map_err(|e| e.to_string())?;
    let mut parts: Vec<&str> = text.split_inclusive("[[END]]\n").collect();
    parts.reverse();
    let turned = tested.collate(parts.concat().as_bytes(), &count);
    let (again, texts) = turned.map_err(|came| format!("the other way round came {came}"))?;
    if again != json || texts != envelopes {
        return Err(format!(
            "the other way round came {again}\nand first {json}"
        ));
    }
    if case.all("json").next().is_some() {
        subset(&case.json("json")?, &json)?;
    }
    match case.all("output").next() {
        Some(output) => same_bytes(output, &envelopes),
        None => Ok(()),
    }
}
