//! The audit log and the way of a message: what a text alone proves.

use super::{Implementation, Judged, line, text};
use crate::case::CaseFile;
use crate::fault::Fault;
use crate::subset::subset;
use serde_json::Value;

/// What an implementation that checks the logs of relays offers.
pub trait Audits {
    /// Reads or checks one thing: a leaf, a proof, a checkpoint, a receipt, a bundle.
    ///
    /// # Errors
    /// It does not hold; an object with what is known about it.
    fn audit(&self, what: &str, input: &Value) -> Result<Value, Value>;
    /// `{"hops": [{"by", "signature", "faults"}]}` of an envelope, with one key for every name.
    fn trace(&self, text: &[u8], key: Option<&str>) -> Value;
}

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    if case.op() == "trace" {
        let key = case.optional("key").map(line).transpose()?;
        let key = key.map(text).transpose()?;
        let came = tested.trace(case.section("input")?, key);
        return subset(&case.json("json")?, &came);
    }
    let expected = case.get("result");
    let came = match tested.audit(case.get("what"), &case.json("input")?) {
        Ok(came) if expected == "holds" => came,
        Err(came) if expected == "fails" => came,
        Ok(came) => return Err(Fault::mismatch(expected, format_args!("holds: {came}"))),
        Err(came) => return Err(Fault::mismatch(expected, format_args!("fails: {came}"))),
    };
    match case.optional_json("json")? {
        Some(expected) => subset(&expected, &came),
        None => Ok(()),
    }
}
