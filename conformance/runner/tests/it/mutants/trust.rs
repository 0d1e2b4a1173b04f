//! Implementations that are wrong about signatures, keys and trust.

use super::lenient::{self, Laxness};
use super::{Mutant, UNBROKEN, input, ours};
use crosstalk_conform::CaseQuestion;
use serde_json::{Value, json};

/// Changes each verdict.
fn each(q: &CaseQuestion, change: impl Fn(&mut Value)) -> Value {
    let mut result = ours(q);
    let verdicts = result["verdicts"].as_array_mut();
    verdicts.into_iter().flatten().for_each(change);
    result
}

/// Says `verified` in the place of a verdict.
pub(super) fn accept(verdict: &mut Value, q: &CaseQuestion) {
    verdict["verdict"] = "verified".into();
    verdict["rule"] = Value::Null;
    verdict["code"] = Value::Null;
    verdict["envelope"] = input(q).into();
}

/// Takes what a rule decides against as verified.
fn without(rule: &str, q: &CaseQuestion) -> Value {
    each(q, |v| {
        if v["rule"] == rule {
            accept(v, q);
        }
    })
}

/// Ours, with another value of a parameter.
fn with(q: &CaseQuestion, key: &str, value: impl Into<Value>) -> Value {
    ours(&q.clone().with(key, value))
}

/// Ours, without an answer of the DNS that has this key.
fn without_dns(q: &CaseQuestion, key: &str) -> Value {
    match q.value("dns")[key].is_null() {
        true => ours(q),
        false => with(q, "dns", Value::Null),
    }
}

fn contains(q: &CaseQuestion, part: &str) -> bool {
    input(q).contains(part)
}

/// A trust file without the marks of one kind.
fn unmarked(trust: &str, mark: &str) -> String {
    let paragraphs = trust.split("\n\n");
    let kept = paragraphs.filter(|p| !p.trim_start().starts_with(&format!("[key.{mark}]")));
    kept.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn unmarking(mark: &str, q: &CaseQuestion) -> Value {
    let result = with(q, "trust", unmarked(trust(q), mark));
    // The mark went, and with two entries of one id both count now: that is another fault.
    match result["errors"].is_null() {
        true => result,
        false => ours(q),
    }
}

fn trust(q: &CaseQuestion) -> &str {
    q.get("trust").unwrap()
}

/// Ours, with another output.
fn writing(q: &CaseQuestion, change: impl Fn(String) -> String) -> Value {
    let mut result = ours(q);
    if let Some(text) = result["output"].as_str() {
        result["output"] = change(text.to_owned()).into();
    }
    result
}

/// Ours, with another output where ours rejects.
fn accepting(q: &CaseQuestion, output: &str) -> Value {
    let result = ours(q);
    match result["errors"].is_null() {
        true => result,
        false => json!({"output": output}),
    }
}

/// Ours, with another fingerprint.
fn fingerprint(q: &CaseQuestion, change: impl Fn(&str) -> String) -> Value {
    let mut result = ours(q);
    if let Some(fingerprint) = result["fingerprint"].as_str() {
        result["fingerprint"] = change(fingerprint).into();
    }
    result
}

/// The order of P-256, the highest byte first.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
    0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// An s of the lower half for one of the upper half.
fn with_low_s(envelope: String) -> String {
    use crosstalk_envelope::base64;
    let Some((before, rest)) = envelope.split_once("secp256r1:pkid=") else {
        return envelope;
    };
    let (id, rest) = rest.split_once(";sig=").unwrap();
    let (old, rest) = rest.split_once('\n').unwrap();
    let mut bytes = base64::decode(old).unwrap();
    if bytes[32] >= 0x80 {
        let mut borrow = 0;
        for at in (0..32).rev() {
            let difference = i16::from(ORDER[at]) - i16::from(bytes[32 + at]) - borrow;
            borrow = i16::from(difference < 0);
            bytes[32 + at] = difference.rem_euclid(256) as u8;
        }
    }
    let new = base64::encode(&bytes);
    format!("{before}secp256r1:pkid={id};sig={new}\n{rest}")
}

/// The part of a text from its last direction line on, without its indent.
fn innermost(text: &str) -> String {
    let at = text.rfind(" v1]]").and_then(|at| text[..at].rfind('\n'));
    let inner = &text[at.map_or(0, |at| at + 1)..];
    let indent = inner.len() - inner.trim_start().len();
    let lines = inner.lines().map(|l| l.get(indent..).unwrap_or(""));
    lines.flat_map(|l| [l, "\n"]).collect()
}

const fn mutant(
    name: &'static str,
    op: &'static str,
    answer: fn(&CaseQuestion) -> Value,
) -> Mutant {
    Mutant {
        name,
        instead: (op, answer),
        ..UNBROKEN
    }
}

const fn verifier(name: &'static str, verify: fn(&CaseQuestion) -> Value) -> Mutant {
    mutant(name, "verify", verify)
}

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    verifier("verifies ed25519 without being strict", |q| lenient::verify(q, Laxness::Ed25519)),
    verifier("does not look at the key id in the signed bytes", |q| lenient::verify(q, Laxness::KeyId)),
    verifier("leaves the key id out of the signed bytes", |q| lenient::verify(q, Laxness::NoKeyId)),
    verifier("takes signatures without a preamble", |q| lenient::verify(q, Laxness::NoPreamble)),
    verifier("takes base64 with loose bits", |q| lenient::verify(q, Laxness::Base64)),
    verifier("takes DER for a signature", |q| lenient::verify(q, Laxness::Der)),
    verifier("takes the algorithm from the message", |q| lenient::verify(q, Laxness::Algorithm)),
    verifier("wants an s of the lower half", lenient::low_s_only),
    verifier("ignores what the reading left out", |q| without("SIG-012", q)),
    verifier("takes a stripped message as unsigned", |q| each(q, |v| if v["rule"] == "SIG-011" { v["verdict"] = "unsigned".into(); })),
    verifier("accepts any algorithm", |q| without("SIG-002", q)),
    verifier("accepts a malformed signature line", |q| each(q, |v| if v["rule"] == "ENV-051" { v["verdict"] = "unsigned".into(); })),
    verifier("accepts a body with another digest", |q| without("SIG-015", q)),
    verifier("accepts every key of the deny list", |q| without("SIG-022", q)),
    verifier("believes distrusted keys", |q| unmarking("distrusted", q)),
    verifier("ignores revocations", |q| unmarking("revoked", q)),
    verifier("believes the time that a message gives itself", |q| each(q, |v| if v["rule"] == "TRU-012" && v["signed_at"].as_str() < Some("2025-10-09") { accept(v, q); })),
    verifier("revokes a key under its own id alone", |q| each(q, |v| if v["rule"] == "TRU-012" && !trust(q).contains(&format!("{:?}", v["pkid"].as_str().unwrap())) { accept(v, q); })),
    verifier("trusts the key in the message over the pin", |q| if contains(q, "meta: key") { with(q, "trust", "") } else { ours(q) }),
    verifier("lets a domain vouch for any sender", |q| each(q, |v| if v["verdict"] == "unbound" { v["verdict"] = "verified".into(); v["rule"] = Value::Null; })),
    verifier("takes look-alikes for others", |q| each(q, |v| if v["rule"] == "TRU-009" { v["verdict"] = "verified".into(); v["rule"] = Value::Null; })),
    verifier("takes a first contact as verified", |q| each(q, |v| if v["verdict"] == "first-contact" { v["verdict"] = "verified".into(); })),
    verifier("lets a known sender change the key id", |q| without("TRU-006", q)),
    verifier("lets a key id change its key", |q| without("TRU-005", q)),
    verifier("does not compare the id of the key block", |q| without("TRU-008", q)),
    verifier("believes rotations without a proof", |q| without("TRU-010", q)),
    verifier("knows no end of a grace period", |q| without("TRU-011", q)),
    verifier("does not know rotations", |q| each(q, |v| if contains(q, "\nReplaces: ") && v["trust"] == "pinned" { v["trust"] = "first-contact".into(); v["verdict"] = "first-contact".into(); })),
    verifier("falls back to first use when DNS fails", |q| without_dns(q, "unavailable")),
    verifier("falls back to first use when a domain lists no key", |q| without_dns(q, "absent")),
    verifier("accepts a key that the domain does not list", |q| without("TRU-023", q)),
    verifier("never tells to try again", |q| each(q, |v| v["retry"] = false.into())),
    verifier("does not care about DNSSEC", |q| with(q, "dnssec", Value::Null)),
    verifier("uses answers for ever", |q| with(q, "trust", trust(q).replace("2025-10-10T12:30:00Z", "2035-10-10T12:30:00Z"))),
    verifier("keeps no answers", |q| with(q, "trust", trust(q).split("[[dns]]").next().unwrap())),
    verifier("ignores the key that the caller gives", |q| with(q, "key", Value::Null)),
    verifier("ignores the trust file", |q| with(q, "trust", "")),
    verifier("shows the received text as verified", |q| each(q, |v| if v["envelope"].is_string() { v["envelope"] = input(q).into(); })),
    verifier("offers no restored text", |q| each(q, |v| v["restored"] = Value::Null)),
    verifier("calls a restored text verified", |q| each(q, |v| if v["restored"].is_string() { accept(v, q); })),
    verifier("calls all damage altered", |q| each(q, |v| if v["verdict"] == "damaged" { v["body"] = "altered".into(); })),
    verifier("calls damage a forgery", |q| each(q, |v| if v["verdict"] == "damaged" { v["verdict"] = "not-verified".into(); })),
    verifier("repairs no characters", |q| each(q, |v| if input(q).contains(['\u{a0}', '\u{200b}', '\u{ad}', '“', '’', '–', '—', '…']) && v["verdict"] == "verified" { v["verdict"] = "not-verified".into(); v["envelope"] = Value::Null; })),
    verifier("extracts what is quoted", |q| with(q, "input", innermost(&input(q)))),
    verifier("looks at the first envelope alone", |q| { let mut r = ours(q); if let Some(v) = r["verdicts"].as_array_mut() { v.truncate(1); } r }),
    mutant("takes weak keys", "key", |q| { let r = ours(q); if r["errors"][0]["rule"] == "SIG-021" { json!({"record": q.get("input")}) } else { r } }),
    mutant("takes records with loose bits", "key", |q| with(q, "input", lenient::tight(&input(q)))),
    mutant("shortens fingerprints", "key", |q| fingerprint(q, |f| f[..23].to_owned())),
    mutant("drops leading zeros of a fingerprint", "key", |q| fingerprint(q, |f| f.replace(" 0", " "))),
    mutant("ignores the fragment of a did:key", "key", |q| with(q, "input", input(q).split('#').next().unwrap())),
    mutant("signs again what is signed", "sign", |q| with(q, "replace", true)),
    mutant("makes s low", "sign", |q| writing(q, with_low_s)),
    mutant("never adds the key", "sign", |q| with(q, "with_key", false)),
    mutant("signs with another nonce or key", "sign", |q| with(q, "seed", "07".repeat(32))),
    mutant("believes everybody's revocation", "learn", |q| accepting(q, trust(q))),
    mutant("learns nothing", "learn", |q| writing(q, |_| trust(q).to_owned())),
    mutant("forgets why a key was revoked", "learn", |q| writing(q, |f| f.lines().filter(|l| !l.starts_with("reason")).flat_map(|l| [l, "\n"]).collect())),
    mutant("takes any trust file", "trust-file", |q| accepting(q, &input(q))),
    mutant("loses a part of the trust file", "trust-file", |q| writing(q, |f| unmarked(&f, "distrusted"))),
    mutant("takes every rc1 message", "rc1", |_| json!({"verdict": "verified"})),
    mutant("takes no rc1 message", "rc1", |_| json!({"verdict": "not-verified"})),
    mutant("normalises the rc1 form", "rc1", |q| { use unicode_normalization::UnicodeNormalization as _; with(q, "input", input(q).nfc().collect::<String>()) }),
    mutant("takes line ends of the rc1 form as they are", "rc1", |q| if contains(q, "\r\n") { json!({"verdict": "not-verified"}) } else { ours(q) }),
];
