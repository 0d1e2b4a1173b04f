//! Implementations that are wrong about signatures, keys and trust.

use super::lenient::{self, Laxness};
use super::{Mutant, UNBROKEN};
use crosstalk_conform::judge::{Keys, Outcome, SignRequest, Signed, VerifyRequest};
use crosstalk_conformance::Ours;
use serde_json::{Value, json};

type Verdicts = Result<Vec<Value>, Value>;

/// What is done instead; ours, where nothing is wrong.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    sign: fn(&[u8], &SignRequest<'_>) -> Result<Signed, Value>,
    verify: fn(&[u8], &VerifyRequest<'_>) -> Verdicts,
    key: fn(&str) -> Result<Value, Value>,
    learn: fn(&[u8], &str, &str) -> Outcome,
    trust_file: fn(&str) -> Outcome,
    rc1: fn(&[u8], Option<&str>) -> String,
}

pub(super) const FAULTLESS: Faults = Faults {
    sign: |text, signer| Ours.sign(text, signer),
    verify: |text, asked| Ours.verify(text, asked),
    key: |text| Ours.key(text),
    learn: |text, trust, at| Ours.learn(text, trust, at),
    trust_file: |text| Ours.trust_file(text),
    rc1: |text, key| Ours.rc1(text, key),
};

impl Keys for Mutant {
    fn sign(&self, text: &[u8], signer: &SignRequest<'_>) -> Result<Signed, Value> {
        (self.keys.sign)(text, signer)
    }

    fn verify(&self, text: &[u8], asked: &VerifyRequest<'_>) -> Verdicts {
        (self.keys.verify)(text, asked)
    }

    fn key(&self, text: &str) -> Result<Value, Value> {
        (self.keys.key)(text)
    }

    fn learn(&self, text: &[u8], trust: &str, at: &str) -> Outcome {
        (self.keys.learn)(text, trust, at)
    }

    fn trust_file(&self, text: &str) -> Outcome {
        (self.keys.trust_file)(text)
    }

    fn rc1(&self, text: &[u8], key: Option<&str>) -> String {
        (self.keys.rc1)(text, key)
    }
}

/// Changes each verdict.
fn each(text: &[u8], asked: &VerifyRequest<'_>, change: impl Fn(&mut Value)) -> Verdicts {
    let mut verdicts = Ours.verify(text, asked)?;
    verdicts.iter_mut().for_each(change);
    Ok(verdicts)
}

/// Says `verified` in the place of a verdict.
pub(super) fn accept(verdict: &mut Value, text: &[u8]) {
    verdict["verdict"] = "verified".into();
    verdict["rule"] = Value::Null;
    verdict["code"] = Value::Null;
    verdict["envelope"] = String::from_utf8_lossy(text).into_owned().into();
}

/// Takes what a rule decides against as verified.
fn without(rule: &str, text: &[u8], asked: &VerifyRequest<'_>) -> Verdicts {
    each(text, asked, |v| {
        if v["rule"] == rule {
            accept(v, text);
        }
    })
}

/// The question, changed.
fn asked_so<'a>(
    asked: &'a VerifyRequest<'a>,
    change: impl FnOnce(&mut VerifyRequest<'a>),
) -> VerifyRequest<'a> {
    let mut other = VerifyRequest {
        at: asked.at,
        trust: asked.trust,
        key: asked.key,
        dns: asked.dns.clone(),
        requires_dnssec: asked.requires_dnssec,
    };
    change(&mut other);
    other
}

fn contains(text: &[u8], part: &str) -> bool {
    String::from_utf8_lossy(text).contains(part)
}

/// A trust file without the marks of one kind.
fn unmarked(trust: &str, mark: &str) -> String {
    let paragraphs = trust.split("\n\n");
    let kept = paragraphs.filter(|p| !p.trim_start().starts_with(&format!("[key.{mark}]")));
    kept.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn unmarking(mark: &str, text: &[u8], asked: &VerifyRequest<'_>) -> Verdicts {
    let trust = unmarked(asked.trust, mark);
    // The mark went, and with two entries of one id both count now: that is another fault.
    let other = asked_so(asked, |a| a.trust = &trust);
    Ours.verify(text, &other)
        .or_else(|_| Ours.verify(text, asked))
}

fn signed_text(
    text: &[u8],
    signer: &SignRequest<'_>,
    change: impl Fn(String) -> String,
) -> Result<Signed, Value> {
    let mut signed = Ours.sign(text, signer)?;
    let envelope = String::from_utf8(signed.envelope).unwrap();
    signed.envelope = change(envelope).into_bytes();
    Ok(signed)
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
fn innermost(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let at = text.rfind(" v1]]").and_then(|at| text[..at].rfind('\n'));
    let inner = &text[at.map_or(0, |at| at + 1)..];
    let indent = inner.len() - inner.trim_start().len();
    let lines = inner.lines().map(|l| l.get(indent..).unwrap_or(""));
    lines
        .flat_map(|l| [l, "\n"])
        .collect::<String>()
        .into_bytes()
}

const fn mutant(name: &'static str, keys: Faults) -> Mutant {
    Mutant {
        name,
        keys,
        ..UNBROKEN
    }
}

const fn verifier(name: &'static str, verify: fn(&[u8], &VerifyRequest<'_>) -> Verdicts) -> Mutant {
    mutant(
        name,
        Faults {
            verify,
            ..FAULTLESS
        },
    )
}

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    verifier("verifies ed25519 without being strict", |t, a| lenient::verify(t, a, Laxness::Ed25519)),
    verifier("does not look at the key id in the signed bytes", |t, a| lenient::verify(t, a, Laxness::KeyId)),
    verifier("leaves the key id out of the signed bytes", |t, a| lenient::verify(t, a, Laxness::NoKeyId)),
    verifier("takes signatures without a preamble", |t, a| lenient::verify(t, a, Laxness::NoPreamble)),
    verifier("takes base64 with loose bits", |t, a| lenient::verify(t, a, Laxness::Base64)),
    verifier("takes DER for a signature", |t, a| lenient::verify(t, a, Laxness::Der)),
    verifier("takes the algorithm from the message", |t, a| lenient::verify(t, a, Laxness::Algorithm)),
    verifier("wants an s of the lower half", lenient::low_s_only),
    verifier("ignores what the reading left out", |t, a| without("SIG-012", t, a)),
    verifier("takes a stripped message as unsigned", |t, a| each(t, a, |v| if v["rule"] == "SIG-011" { v["verdict"] = "unsigned".into(); })),
    verifier("accepts any algorithm", |t, a| without("SIG-002", t, a)),
    verifier("accepts a malformed signature line", |t, a| each(t, a, |v| if v["rule"] == "ENV-051" { v["verdict"] = "unsigned".into(); })),
    verifier("accepts a body with another digest", |t, a| without("SIG-015", t, a)),
    verifier("accepts every key of the deny list", |t, a| without("SIG-022", t, a)),
    verifier("believes distrusted keys", |t, a| unmarking("distrusted", t, a)),
    verifier("ignores revocations", |t, a| unmarking("revoked", t, a)),
    verifier("believes the time that a message gives itself", |t, a| each(t, a, |v| if v["rule"] == "TRU-012" && v["signed_at"].as_str() < Some("2025-10-09") { accept(v, t); })),
    verifier("revokes a key under its own id alone", |t, a| each(t, a, |v| if v["rule"] == "TRU-012" && !a.trust.contains(&format!("{:?}", v["pkid"].as_str().unwrap())) { accept(v, t); })),
    verifier("trusts the key in the message over the pin", |t, a| if contains(t, "meta: key") { Ours.verify(t, &asked_so(a, |a| a.trust = "")) } else { Ours.verify(t, a) }),
    verifier("lets a domain vouch for any sender", |t, a| each(t, a, |v| if v["verdict"] == "unbound" { v["verdict"] = "verified".into(); v["rule"] = Value::Null; })),
    verifier("takes look-alikes for others", |t, a| each(t, a, |v| if v["rule"] == "TRU-009" { v["verdict"] = "verified".into(); v["rule"] = Value::Null; })),
    verifier("takes a first contact as verified", |t, a| each(t, a, |v| if v["verdict"] == "first-contact" { v["verdict"] = "verified".into(); })),
    verifier("lets a known sender change the key id", |t, a| without("TRU-006", t, a)),
    verifier("lets a key id change its key", |t, a| without("TRU-005", t, a)),
    verifier("does not compare the id of the key block", |t, a| without("TRU-008", t, a)),
    verifier("believes rotations without a proof", |t, a| without("TRU-010", t, a)),
    verifier("knows no end of a grace period", |t, a| without("TRU-011", t, a)),
    verifier("does not know rotations", |t, a| each(t, a, |v| if contains(t, "\nReplaces: ") && v["trust"] == "pinned" { v["trust"] = "first-contact".into(); v["verdict"] = "first-contact".into(); })),
    verifier("falls back to first use when DNS fails", |t, a| Ours.verify(t, &asked_so(a, |a| a.dns = a.dns.take().filter(|d| d["unavailable"].is_null())))),
    verifier("falls back to first use when a domain lists no key", |t, a| Ours.verify(t, &asked_so(a, |a| a.dns = a.dns.take().filter(|d| d["absent"].is_null())))),
    verifier("accepts a key that the domain does not list", |t, a| without("TRU-023", t, a)),
    verifier("never tells to try again", |t, a| each(t, a, |v| v["retry"] = false.into())),
    verifier("does not care about DNSSEC", |t, a| Ours.verify(t, &asked_so(a, |a| a.requires_dnssec = false))),
    verifier("uses answers for ever", |t, a| { let trust = a.trust.replace("2025-10-10T12:30:00Z", "2035-10-10T12:30:00Z"); Ours.verify(t, &asked_so(a, |a| a.trust = &trust)) }),
    verifier("keeps no answers", |t, a| { let trust = a.trust.split("[[dns]]").next().unwrap(); Ours.verify(t, &asked_so(a, |a| a.trust = trust)) }),
    verifier("ignores the key that the caller gives", |t, a| Ours.verify(t, &asked_so(a, |a| a.key = None))),
    verifier("ignores the trust file", |t, a| Ours.verify(t, &asked_so(a, |a| a.trust = ""))),
    verifier("shows the received text as verified", |t, a| each(t, a, |v| if v["envelope"].is_string() { v["envelope"] = String::from_utf8_lossy(t).into(); })),
    verifier("offers no restored text", |t, a| each(t, a, |v| v["restored"] = Value::Null)),
    verifier("calls a restored text verified", |t, a| each(t, a, |v| if v["restored"].is_string() { accept(v, t); })),
    verifier("calls all damage altered", |t, a| each(t, a, |v| if v["verdict"] == "damaged" { v["body"] = "altered".into(); })),
    verifier("calls damage a forgery", |t, a| each(t, a, |v| if v["verdict"] == "damaged" { v["verdict"] = "not-verified".into(); })),
    verifier("repairs no characters", |t, a| each(t, a, |v| if String::from_utf8_lossy(t).contains(['\u{a0}', '\u{200b}', '\u{ad}', '“', '’', '–', '—', '…']) && v["verdict"] == "verified" { v["verdict"] = "not-verified".into(); v["envelope"] = Value::Null; })),
    verifier("extracts what is quoted", |t, a| Ours.verify(&innermost(t), a)),
    verifier("looks at the first envelope alone", |t, a| Ours.verify(t, a).map(|mut v| { v.truncate(1); v })),
    mutant("takes weak keys", Faults { key: |t| Ours.key(t).or_else(|f| if f[0]["rule"] == "SIG-021" { Ok(json!({"record": t})) } else { Err(f) }), ..FAULTLESS }),
    mutant("takes records with loose bits", Faults { key: |t| Ours.key(&lenient::tight(t)), ..FAULTLESS }),
    mutant("shortens fingerprints", Faults { key: |t| Ours.key(t).map(|mut k| { k["fingerprint"] = k["fingerprint"].as_str().unwrap()[..23].into(); k }), ..FAULTLESS }),
    mutant("drops leading zeros of a fingerprint", Faults { key: |t| Ours.key(t).map(|mut k| { k["fingerprint"] = k["fingerprint"].as_str().unwrap().replace(" 0", " ").into(); k }), ..FAULTLESS }),
    mutant("ignores the fragment of a did:key", Faults { key: |t| Ours.key(t.split('#').next().unwrap()), ..FAULTLESS }),
    mutant("signs again what is signed", Faults { sign: |t, s| Ours.sign(t, &SignRequest { replace: true, ..*s }), ..FAULTLESS }),
    mutant("makes s low", Faults { sign: |t, s| signed_text(t, s, with_low_s), ..FAULTLESS }),
    mutant("never adds the key", Faults { sign: |t, s| Ours.sign(t, &SignRequest { with_key: false, ..*s }), ..FAULTLESS }),
    mutant("signs with another nonce or key", Faults { sign: |t, s| Ours.sign(t, &SignRequest { seed: [7; 32], ..*s }), ..FAULTLESS }),
    mutant("believes everybody's revocation", Faults { learn: |t, trust, at| Ours.learn(t, trust, at).or_else(|_| Ok(trust.as_bytes().to_vec())), ..FAULTLESS }),
    mutant("learns nothing", Faults { learn: |t, trust, at| Ours.learn(t, trust, at).map(|_| trust.as_bytes().to_vec()), ..FAULTLESS }),
    mutant("forgets why a key was revoked", Faults { learn: |t, trust, at| Ours.learn(t, trust, at).map(|f| String::from_utf8(f).unwrap().lines().filter(|l| !l.starts_with("reason")).flat_map(|l| [l, "\n"]).collect::<String>().into_bytes()), ..FAULTLESS }),
    mutant("takes any trust file", Faults { trust_file: |t| Ours.trust_file(t).or_else(|_| Ok(t.as_bytes().to_vec())), ..FAULTLESS }),
    mutant("loses a part of the trust file", Faults { trust_file: |t| Ours.trust_file(t).map(|f| unmarked(&String::from_utf8(f).unwrap(), "distrusted").into_bytes()), ..FAULTLESS }),
    mutant("takes every rc1 message", Faults { rc1: |_, _| "verified".into(), ..FAULTLESS }),
    mutant("takes no rc1 message", Faults { rc1: |_, _| "not-verified".into(), ..FAULTLESS }),
    mutant("normalises the rc1 form", Faults { rc1: |t, k| { use unicode_normalization::UnicodeNormalization as _; Ours.rc1(String::from_utf8_lossy(t).nfc().collect::<String>().as_bytes(), k) }, ..FAULTLESS }),
    mutant("takes line ends of the rc1 form as they are", Faults { rc1: |t, k| if contains(t, "\r\n") { "not-verified".into() } else { Ours.rc1(t, k) }, ..FAULTLESS }),
];
