//! Hops and the relays of a domain, by the crates under test.

use super::{Ours, decoded, findings};
use crosstalk_conform::judge::{HopRequest, Outcome, Relays};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, PublicKey, Reading, Timestamp};
use crosstalk_protocol::dns::{Dnssec, RelayAnswer, RelayRecord, relay_name, relay_order};
use crosstalk_protocol::relay::{HopKey, add_hop, check_hop};
use serde_json::{Value, json};

impl Relays for Ours {
    fn hop(&self, text: &[u8], hop: &HopRequest<'_>) -> Outcome {
        let text = decoded(text)?;
        let key = hop.key.map(|(seed, algorithm, pkid)| {
            let algorithm = Algorithm::parse(algorithm).unwrap();
            (PrivateKey::from_seed(algorithm, &seed).unwrap(), pkid)
        });
        let key = key.as_ref().map(|(key, pkid)| HopKey { key, pkid });
        let out = add_hop(text, Timestamp::parse(hop.at).unwrap(), hop.by, key);
        out.map(String::into_bytes)
            .map_err(|fault| findings(&[fault], text))
    }

    fn check_hop(&self, text: &[u8], key: &str) -> Result<Value, Value> {
        let document = Document::parse(decoded(text)?, Reading::Strict);
        let key = PublicKey::parse_record(key).unwrap();
        let hop = check_hop(&document, &key).map_err(|fault| {
            let rule = &rule::HTTP_HOP_PROOF;
            json!([{"rule": rule.id, "code": rule.code.map(|c| c.as_str()), "severity": "error",
                "message": fault.to_string()}])
        })?;
        Ok(json!({"hop": hop.number, "at": hop.received_at.to_string(), "by": hop.received_by}))
    }

    fn relays(&self, domain: &str, dns: &Value, private: bool) -> Value {
        let Ok(at) = relay_name(domain) else {
            return json!({"asks": null, "result": "none", "relays": [], "wrong": 0});
        };
        let word = dns["dnssec"].as_str().unwrap_or("indeterminate");
        let dnssec = Dnssec::parse(word).unwrap();
        let answer = match (dns["records"].as_array(), dns["unavailable"].as_str()) {
            (_, Some(reason)) => RelayAnswer::Unavailable {
                reason: reason.into(),
            },
            (Some(records), _) => {
                let records = records.iter().map(|r| Ok(r.as_str().unwrap().to_owned()));
                RelayAnswer::of_records(&at, records, 300, dnssec, private)
            }
            _ => RelayAnswer::Absent {
                at: at.clone(),
                dnssec,
            },
        };
        let (result, relays, wrong) = match &answer {
            RelayAnswer::Found { relays, wrong, .. } => ("found", relays.as_slice(), wrong.len()),
            RelayAnswer::Absent { .. } | RelayAnswer::Wrong { .. } => ("none", &[][..], 0),
            RelayAnswer::Unavailable { .. } => ("later", &[][..], 0),
        };
        let mut groups: Vec<(u16, Vec<&str>)> = Vec::new();
        for RelayRecord { priority, url } in relay_order(relays, || 0) {
            match groups.last_mut().filter(|(p, _)| p == priority) {
                Some((_, urls)) => urls.push(url),
                None => groups.push((*priority, vec![url])),
            }
        }
        let groups: Vec<Vec<&str>> = groups.into_iter().map(|(_, urls)| urls).collect();
        json!({"asks": at, "result": result, "relays": groups, "wrong": wrong})
    }
}
