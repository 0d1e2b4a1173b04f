//! Implementations that are wrong about personal data.

use super::{Mutant, UNBROKEN, input, ours};
use crosstalk_conform::CaseQuestion;
use serde_json::{Value, json};

/// Ours, with the text changed before it is read.
fn reading(q: &CaseQuestion, change: impl Fn(&str) -> String) -> Value {
    with(q, "input", change(&input(q)))
}

/// Ours, with the text changed after it was written.
fn writing(q: &CaseQuestion, change: impl Fn(&str) -> String) -> Value {
    let mut result = ours(q);
    if let Some(text) = result["output"].as_str() {
        result["output"] = change(text).into();
    }
    result
}

/// The texts of a list of a question.
fn list<'q>(q: &'q CaseQuestion, key: &str) -> Vec<&'q str> {
    let list = q.value(key).as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Ours, without some kinds.
fn blind(q: &CaseQuestion, kind: &str) -> Value {
    let all = ["iban", "card", "nin", "email", "ip", "phone", "name"];
    let asked = list(q, "only");
    let is_asked = |k: &&str| asked.is_empty() || asked.contains(k);
    let only = all.into_iter().filter(|k| *k != kind && is_asked(k));
    with(q, "only", only.collect::<Vec<_>>())
}

/// Ours, with another value of a parameter.
fn with(q: &CaseQuestion, key: &str, value: impl Into<Value>) -> Value {
    ours(&q.clone().with(key, value))
}

/// Without the four digits that a card keeps.
fn without_card_digits(text: &str) -> String {
    let mut parts = text.split("[CARD-XXXX-");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |out, part| {
        out + "[CARD" + part.get(4..).unwrap_or("")
    })
}

/// Digits as words, so that no placeholder protects them.
fn without_placeholders(q: &CaseQuestion) -> Value {
    reading(q, |t| {
        t.replace("[EMAIL]", "<EMAIL>").replace("[NAME]", "<NAME>")
    })
}

/// Ours, without the names that are not ASCII, where all stand in the text as they are written.
fn without_folding(q: &CaseQuestion) -> Value {
    let (text, mut names) = (input(q), list(q, "names"));
    if !names.iter().all(|name| text.contains(name)) {
        return blind(q, "name");
    }
    names.retain(|name| name.is_ascii());
    with(q, "names", names)
}

const fn mutant(name: &'static str, redact: fn(&CaseQuestion) -> Value) -> Mutant {
    Mutant {
        name,
        instead: ("redact", redact),
        ..UNBROKEN
    }
}

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    mutant("does not know mail addresses", |q| blind(q, "email")),
    mutant("does not know phone numbers", |q| blind(q, "phone")),
    mutant("does not know cards", |q| blind(q, "card")),
    mutant("does not know account numbers", |q| blind(q, "iban")),
    mutant("does not know national numbers", |q| blind(q, "nin")),
    mutant("does not know IP addresses", |q| blind(q, "ip")),
    mutant("does not know names", |q| blind(q, "name")),
    mutant("looks for kinds that nobody asked for", |q| with(q, "only", json!([]))),
    mutant("keeps no digits of a card", |q| writing(q, without_card_digits)),
    mutant("removes invisible characters for good", |q| reading(q, |t| t.replace(['’', '²'], ""))),
    mutant("looks into placeholders", without_placeholders),
    mutant("trims what it writes", |q| writing(q, |t| t.lines().map(|l| l.trim().to_owned() + "\n").collect())),
    mutant("takes any number for an IP address", |q| reading(q, |t| t.replace("version ", "machine "))),
    mutant("needs no label", |q| reading(q, |t| if t.contains("BSN") { t.replace('\n', " ").trim_end().to_owned() + "\n" } else { t.to_owned() })),
    mutant("redacts an envelope as any text", |q| with(q, "as", Value::Null)),
    mutant("says nothing about what it did", |q| writing(q, |t| t.replace("PII: redacted\n", "").replace("Redacted-Fields", "X-Fields"))),
    mutant("claims that all is redacted", |q| writing(q, |t| t.replace("PII: present", "PII: redacted"))),
    mutant("drops signatures unasked", |q| with(q, "drop_signature", true)),
    mutant("never drops a signature", |q| with(q, "drop_signature", false)),
    mutant("knows names in their own spelling alone", without_folding),
];
