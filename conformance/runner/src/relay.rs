//! Hops and the relays of a domain, by the crates under test.

use super::{Reply, broken, findings, input, need, time, trust, written};
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Document, PublicKey, Reading};
use crosstalk_protocol::dns::{Dnssec, RelayAnswer, RelayRecord, relay_name, relay_order};
use crosstalk_protocol::relay::{HopKey, add_hop, check_hop as check_hop_of};
use serde_json::{Value, json};

pub(super) fn hop(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let key = q.get("seed").map(|_| trust::private_key(q).unwrap());
    let key = key.as_ref().map(|key| HopKey {
        key,
        pkid: need(q, "pkid"),
    });
    let out = add_hop(&text, time(need(q, "at")), need(q, "by"), key);
    written(out.map_err(|fault| findings(&[fault], &text))?)
}

pub(super) fn check_hop(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = Document::parse(&text, Reading::Strict);
    let key = PublicKey::parse_record(need(q, "key")).unwrap();
    let hop =
        check_hop_of(&document, &key).map_err(|fault| broken(&rule::HTTP_HOP_PROOF, fault))?;
    Ok(json!({"hop": hop.number, "at": hop.received_at.to_string(), "by": hop.received_by}))
}

pub(super) fn relays(q: &CaseQuestion) -> Value {
    let dns = q.value("dns");
    let Ok(at) = relay_name(need(q, "input")) else {
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
            RelayAnswer::of_records(&at, records, 300, dnssec, q.value("private") == true)
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
