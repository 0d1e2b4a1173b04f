//! Polls: envelopes in, a collation out.

use super::{Implementation, Judged, carries, rejection, same_bytes, text};
use crate::case::CaseFile;
use crate::fault::Fault;
use crate::subset::subset;
use serde_json::Value;

/// Which poll is counted, and when.
#[derive(Clone, Copy, Debug)]
pub struct CollateRequest<'c> {
    /// The id of the poll, if the text has several.
    pub poll: Option<&'c str>,
    /// The time up to which answers count.
    pub at: Option<&'c str>,
}

/// What an implementation that counts polls offers.
pub trait Polls {
    /// The collation of the envelopes in a text as JSON, and its envelopes with a blank line between them.
    ///
    /// # Errors
    /// The diagnostics of a rejection.
    fn collate(&self, text: &[u8], request: &CollateRequest<'_>)
    -> Result<(Value, Vec<u8>), Value>;
}

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let get = |key| case.has(key).then(|| case.get(key));
    let request = CollateRequest {
        poll: get("poll"),
        at: get("at"),
    };
    let input = case.section("input")?;
    let (json, envelopes) = match (tested.collate(input, &request), case.get("expect")) {
        (Err(findings), "reject") => return carries(case, &findings),
        (Ok((came, _)), "reject") => return Err(Fault::mismatch(rejection(case), came)),
        (Err(findings), _) => return Err(Fault::mismatch("a collation", findings)),
        (Ok(collated), _) => collated,
    };
    // The order of the envelopes changes nothing.
    let mut parts: Vec<&str> = text(input)?.split_inclusive("[[END]]\n").collect();
    parts.reverse();
    let reversed = tested.collate(parts.concat().as_bytes(), &request);
    let (again, texts) = reversed
        .map_err(|findings| Fault::mismatch("the same with the envelopes reversed", findings))?;
    if again != json || texts != envelopes {
        return Err(Fault::mismatch(
            format_args!("the same with the envelopes reversed: {json}"),
            again,
        ));
    }
    if let Some(expected) = case.optional_json("json")? {
        subset(&expected, &json)?;
    }
    match case.optional("output") {
        Some(output) => same_bytes(output, &envelopes),
        None => Ok(()),
    }
}
