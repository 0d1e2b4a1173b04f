//! Polls, counted by the crates under test.

use super::{Ours, decoded};
use crosstalk_conform::judge::{CollateRequest, Polls};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Reading, Timestamp, scan};
use crosstalk_protocol::poll::{Paper, collate};
use serde_json::{Value, json};

impl Polls for Ours {
    fn collate(&self, text: &[u8], count: &CollateRequest<'_>) -> Result<(Value, Vec<u8>), Value> {
        let found = scan(decoded(text)?, Reading::Strict);
        let papers: Vec<Paper<'_>> = found.documents.iter().map(Paper::of).collect();
        let at = count.at.map(|t| Timestamp::parse(t).unwrap());
        let collation = collate(&papers, count.poll, at).map_err(|fault| {
            json!([{"rule": rule::POLL_KEYS.id, "code": "E-FORMAT", "severity": "error",
                "message": fault.to_string()}])
        })?;
        let envelopes = collation.to_envelopes(None).unwrap().join("\n");
        Ok((
            serde_json::to_value(&collation).unwrap(),
            envelopes.into_bytes(),
        ))
    }
}
