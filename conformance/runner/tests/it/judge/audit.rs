//! Logs and ways: what is proved by a text alone.

use super::{Implementation, line};
use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;

/// What an implementation offers that holds relays to what they did.
pub(crate) trait Audits {
    /// Reads or checks one thing: a leaf, a proof, a checkpoint, a receipt, a bundle.
    fn audit(&self, what: &str, input: &Value) -> Result<Value, Value>;
    /// `{"hops": [{"by", "signature", "faults"}]}` of an envelope, with one key for every name.
    fn trace(&self, text: &[u8], key: Option<&str>) -> Value;
}

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    if case.op() == "trace" {
        let key = case.all("key").next();
        let key =
            key.map(|k| line(k).and_then(|l| std::str::from_utf8(l).map_err(|e| e.to_string())));
        let came = tested.trace(case.section("input")?, key.transpose()?);
        return subset(&case.json("json")?, &came);
    }
    let came = tested.audit(case.get("what"), &case.json("input")?);
    let (came, is_right) = match (came, case.get("result")) {
        (Ok(came), "holds") | (Err(came), "fails") => (came, true),
        (Ok(came) | Err(came), _) => (came, false),
    };
    if !is_right {
        return Err(format!("expected {}\ncame {came}", case.get("result")));
    }
    match case.all("json").next() {
        Some(_) => subset(&case.json("json")?, &came),
        None => Ok(()),
    }
}
