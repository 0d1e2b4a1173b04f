//! Implementations that are wrong about personal data.

use super::{Mutant, UNBROKEN};
use crosstalk_conform::judge::{Redact, RedactRequest, RedactedText};
use crosstalk_conformance::Ours;
use serde_json::Value;

/// What is done instead; ours, where nothing is wrong.
pub(super) type Fault = fn(&[u8], &RedactRequest<'_>) -> Result<RedactedText, Value>;

pub(super) const FAULTLESS: Fault = |text, wanted| Ours.redact(text, wanted);

impl Redact for Mutant {
    fn redact(&self, text: &[u8], wanted: &RedactRequest<'_>) -> Result<RedactedText, Value> {
        (self.redact)(text, wanted)
    }
}

/// Ours, with the text changed before it is read.
fn reading(
    text: &[u8],
    wanted: &RedactRequest<'_>,
    change: impl Fn(&str) -> String,
) -> Result<RedactedText, Value> {
    let text = change(std::str::from_utf8(text).unwrap());
    Ours.redact(text.as_bytes(), wanted)
}

/// Ours, with the text changed after it was written.
fn writing(
    text: &[u8],
    wanted: &RedactRequest<'_>,
    change: impl Fn(&str) -> String,
) -> Result<RedactedText, Value> {
    let mut cleaned = Ours.redact(text, wanted)?;
    let written = String::from_utf8(cleaned.text).unwrap();
    cleaned.text = change(&written).into_bytes();
    Ok(cleaned)
}

/// Ours, without some kinds.
fn blind(text: &[u8], wanted: &RedactRequest<'_>, kind: &str) -> Result<RedactedText, Value> {
    let all = ["iban", "card", "nin", "email", "ip", "phone", "name"];
    let asked = |k: &&str| wanted.only.is_empty() || wanted.only.contains(k);
    let only = all.into_iter().filter(|k| *k != kind && asked(k)).collect();
    Ours.redact(text, &with(wanted, |w| w.only = only))
}

fn with<'c>(
    wanted: &RedactRequest<'c>,
    change: impl FnOnce(&mut RedactRequest<'c>),
) -> RedactRequest<'c> {
    let mut copy = RedactRequest {
        envelope: wanted.envelope,
        only: wanted.only.clone(),
        names: wanted.names.clone(),
        drop_signature: wanted.drop_signature,
    };
    change(&mut copy);
    copy
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
fn without_placeholders(text: &[u8], wanted: &RedactRequest<'_>) -> Result<RedactedText, Value> {
    reading(text, wanted, |t| {
        t.replace("[EMAIL]", "<EMAIL>").replace("[NAME]", "<NAME>")
    })
}

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant { name: "does not know mail addresses", redact: |t, w| blind(t, w, "email"), ..UNBROKEN },
    Mutant { name: "does not know phone numbers", redact: |t, w| blind(t, w, "phone"), ..UNBROKEN },
    Mutant { name: "does not know cards", redact: |t, w| blind(t, w, "card"), ..UNBROKEN },
    Mutant { name: "does not know account numbers", redact: |t, w| blind(t, w, "iban"), ..UNBROKEN },
    Mutant { name: "does not know national numbers", redact: |t, w| blind(t, w, "nin"), ..UNBROKEN },
    Mutant { name: "does not know IP addresses", redact: |t, w| blind(t, w, "ip"), ..UNBROKEN },
    Mutant { name: "does not know names", redact: |t, w| blind(t, w, "name"), ..UNBROKEN },
    Mutant { name: "looks for kinds that nobody asked for", redact: |t, w| Ours.redact(t, &with(w, |w| w.only.clear())), ..UNBROKEN },
    Mutant { name: "keeps no digits of a card", redact: |t, w| writing(t, w, without_card_digits), ..UNBROKEN },
    Mutant { name: "removes invisible characters for good", redact: |t, w| reading(t, w, |t| t.replace(['’', '²'], "")), ..UNBROKEN },
    Mutant { name: "looks into placeholders", redact: without_placeholders, ..UNBROKEN },
    Mutant { name: "trims what it writes", redact: |t, w| writing(t, w, |t| t.lines().map(|l| l.trim().to_owned() + "\n").collect()), ..UNBROKEN },
    Mutant { name: "takes any number for an IP address", redact: |t, w| reading(t, w, |t| t.replace("version ", "machine ")), ..UNBROKEN },
    Mutant { name: "needs no label", redact: |t, w| reading(t, w, |t| if t.contains("BSN") { t.replace('\n', " ").trim_end().to_owned() + "\n" } else { t.to_owned() }), ..UNBROKEN },
    Mutant { name: "redacts an envelope as any text", redact: |t, w| Ours.redact(t, &with(w, |w| w.envelope = false)), ..UNBROKEN },
    Mutant { name: "says nothing about what it did", redact: |t, w| writing(t, w, |t| t.replace("PII: redacted\n", "").replace("Redacted-Fields", "X-Fields")), ..UNBROKEN },
    Mutant { name: "claims that all is redacted", redact: |t, w| writing(t, w, |t| t.replace("PII: present", "PII: redacted")), ..UNBROKEN },
    Mutant { name: "drops signatures unasked", redact: |t, w| Ours.redact(t, &with(w, |w| w.drop_signature = true)), ..UNBROKEN },
    Mutant { name: "never drops a signature", redact: |t, w| Ours.redact(t, &with(w, |w| w.drop_signature = false)), ..UNBROKEN },
    Mutant { name: "knows names in their own spelling alone", redact: |t, w| if w.names.iter().all(|n| String::from_utf8_lossy(t).contains(n)) { Ours.redact(t, &with(w, |w| w.names.retain(|n| n.is_ascii()))) } else { blind(t, w, "name") }, ..UNBROKEN },
];
