//! Where simple names lead, by the crates under test.

use crosstalk_conform::CaseQuestion;
use crosstalk_protocol::dns::{AddressAnswer, Dnssec, address_name};
use crosstalk_protocol::{NameStep, NameTable, name_to_ask};
use serde_json::{Value, json};

pub(super) fn resolve(text: &str, q: &CaseQuestion) -> Value {
    let mut names = NameTable::default();
    for (name, address) in q.value("names").as_object().unwrap() {
        names.add(name, address.as_str().unwrap()).unwrap();
    }
    let asked = name_to_ask(text, &names).zip(q.get("domain"));
    let asked = asked.map(|(name, domain)| address_name(name, domain));
    let answer = match &asked {
        None => None,
        Some(Err(reason)) => Some(AddressAnswer::Unasked {
            reason: reason.clone(),
        }),
        Some(Ok(at)) => Some(answer(at, q.value("dns"))),
    };
    let answer = answer.map(|a| match q.get("dnssec") == Some("required") {
        true => a.protected(),
        false => a,
    });
    let resolution = crosstalk_protocol::resolve(text, &names, answer.as_ref());
    let steps: Vec<Value> = resolution.steps.iter().map(step).collect();
    json!({
        "name": resolution.asked,
        "result": resolution.result,
        "resolved": resolution.is_resolved(),
        "retry": resolution.is_retry(),
        "asks": asked.and_then(Result::ok),
        "steps": steps,
    })
}

fn answer(at: &str, dns: &Value) -> AddressAnswer {
    let word = dns["dnssec"].as_str().unwrap_or("indeterminate");
    let dnssec = Dnssec::parse(word).unwrap();
    if let Some(records) = dns["records"].as_array() {
        let records = records.iter().map(|r| Ok(r.as_str().unwrap().to_owned()));
        let ttl = u32::try_from(dns["ttl"].as_u64().unwrap()).unwrap();
        return AddressAnswer::of_records(at, records, ttl, dnssec);
    }
    let at = at.to_owned();
    match dns["unavailable"].as_str() {
        Some(reason) => AddressAnswer::Unavailable {
            reason: reason.to_owned(),
        },
        None => AddressAnswer::Absent { at, dnssec },
    }
}

fn step(step: &NameStep) -> Value {
    let mut value = json!({"step": step.as_str()});
    match step {
        NameStep::Url { address } => value["address"] = json!(address),
        NameStep::Table { name, address } => {
            value["name"] = json!(name);
            value["address"] = json!(address);
        }
        NameStep::NotInTable { name } | NameStep::TooLong { name } | NameStep::Person { name } => {
            value["name"] = json!(name);
        }
        NameStep::Dns {
            address,
            others,
            wrong,
            dnssec,
            ..
        } => {
            value["address"] = json!(address);
            value["others"] = json!(others);
            value["wrong"] = json!(wrong.len());
            value["dnssec"] = json!(dnssec.as_str());
        }
        NameStep::NotInDns { dnssec, .. } => value["dnssec"] = json!(dnssec.as_str()),
        _ => {}
    }
    value
}
