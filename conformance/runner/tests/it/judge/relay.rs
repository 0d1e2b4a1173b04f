//! What relays write and look up: hops, and the records of a domain. No network: what it would say is in the case.

use super::{Implementation, Outcome, accepted, carries, line, same_bytes};
use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;

/// Who adds a hop, and when.
pub(crate) struct HopBy<'c> {
    pub(crate) at: &'c str,
    pub(crate) by: &'c str,
    /// The private key, its algorithm and its id.
    pub(crate) key: Option<([u8; 32], &'c str, &'c str)>,
}

/// What an implementation of level 3 offers besides its server.
pub(crate) trait Relays {
    /// The envelope with one hop more.
    fn hop(&self, text: &[u8], hop: &HopBy<'_>) -> Outcome;
    /// `{"hop", "at", "by"}` of the last hop, if it is what the relay with this key wrote.
    fn check_hop(&self, text: &[u8], key: &str) -> Result<Value, Value>;
    /// `{"asks", "result", "relays", "wrong"}`: the relays of a domain, by what the DNS says.
    fn relays(&self, domain: &str, dns: &Value, private: bool) -> Value;
}

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let input = case.section("input")?;
    let text = |bytes| std::str::from_utf8(bytes).map_err(|e| e.to_string());
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
            let hop = HopBy {
                at: case.get("at"),
                by: case.get("by"),
                key,
            };
            same_bytes(case.section("output")?, &accepted(tested.hop(input, &hop))?)
        }
        "check-hop" => {
            let key = text(line(case.section("key")?)?)?;
            match (tested.check_hop(input, key), case.get("expect")) {
                (Err(findings), "reject") => carries(case, &findings, "error"),
                (Ok(hop), "accept") => subset(&case.json("json")?, &hop),
                (Ok(came) | Err(came), wanted) => Err(format!("expected {wanted}\ncame {came}")),
            }
        }
        _ => {
            let dns = match case.all("dns").next() {
                Some(_) => case.json("dns")?,
                None => Value::Null,
            };
            let came = tested.relays(text(line(input)?)?, &dns, case.has("private"));
            subset(&case.json("json")?, &came)
        }
    }
}
