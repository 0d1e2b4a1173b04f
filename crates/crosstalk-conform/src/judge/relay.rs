//! What relays write and look up: hops, and the records of a domain. No network: the case holds what it would say.

use super::{
    Implementation, Judged, Outcome, accepted, accepted_or_refused, line, same_bytes, text,
};
use crate::case::CaseFile;
use crate::subset::subset;
use serde_json::Value;

/// Who adds a hop, and when.
#[derive(Clone, Debug)]
pub struct HopRequest<'c> {
    /// The time at which the message came.
    pub at: &'c str,
    /// The name of the relay.
    pub by: &'c str,
    /// The private key, its algorithm and its id.
    pub key: Option<([u8; 32], &'c str, &'c str)>,
}

/// What an implementation of level 3 offers besides its server.
pub trait Relays {
    /// The envelope with one hop more.
    fn hop(&self, text: &[u8], hop: &HopRequest<'_>) -> Outcome;
    /// `{"hop", "at", "by"}` of the last hop, if it is what the relay with this key wrote.
    ///
    /// # Errors
    /// The diagnostics of a rejection.
    fn check_hop(&self, text: &[u8], key: &str) -> Result<Value, Value>;
    /// `{"asks", "result", "relays", "wrong"}`: the relays of a domain, by what the DNS says.
    fn relays(&self, domain: &str, dns: &Value, private: bool) -> Value;
}

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let input = case.section("input")?;
    match case.op() {
        "hop" => {
            let key = match case.has("seed") {
                true => Some((
                    super::keys::seed(case.get("seed"))?,
                    case.get("algorithm"),
                    case.get("pkid"),
                )),
                false => None,
            };
            let hop = HopRequest {
                at: case.get("at"),
                by: case.get("by"),
                key,
            };
            same_bytes(case.section("output")?, &accepted(tested.hop(input, &hop))?)
        }
        "check-hop" => {
            let key = text(line(case.section("key")?)?)?;
            let came = tested.check_hop(input, key);
            accepted_or_refused(case, came, |hop| subset(&case.json("json")?, hop))
        }
        _ => {
            let dns = case.optional_json("dns")?.unwrap_or(Value::Null);
            let came = tested.relays(text(line(input)?)?, &dns, case.has("private"));
            subset(&case.json("json")?, &came)
        }
    }
}
