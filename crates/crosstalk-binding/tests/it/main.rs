//! The operations of the packages, and their forms.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected fails"
)]

use crosstalk_binding::{
    CrosstalkError, GeneratedKey, ReplyOptions, SignOptions, build, canonical, digest, format,
    generate_key, lint, migrate, new_id, parse, parse_address, parse_reading, public_key, redact,
    reply, sign, verify,
};
use crosstalk_envelope::id::IdForm;
use crosstalk_envelope::{ErrorCode, Reading, Timestamp};
use serde_json::{Value, json};

const REQUEST: &str = "[[CLAUDE→chatgpt://thread/1 v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nthread: 01J9J3D3M6A4M3WQX8G1ZQ0S7K\nmessage: 01J9J3DBC4N7P2Q3R5S7T9V1W2\ncontext: auth\nintent: REQUEST\nbody: |\n  Mail me: kalle@example.com\nsig: none\n[[END]]\n";
const OLD: &str = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: QUESTION\nbody: |\n  x\nsig: none\n[[END]]\n";

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-01-01T00:00:00Z")
}

fn options(key_id: &str) -> SignOptions<'_> {
    SignOptions {
        key_id,
        with_key: false,
        replace: false,
        at: now(),
    }
}

fn envelope(text: &str) -> Value {
    read(&parse(text, Reading::Strict))["envelopes"][0].clone()
}

/// Code, rule and line of an error.
fn facts<T: std::fmt::Debug>(
    result: Result<T, CrosstalkError>,
) -> (Option<&'static str>, Option<&'static str>, Option<usize>) {
    let error = result.unwrap_err();
    (error.code.map(ErrorCode::as_str), error.rule, error.line)
}

#[test]
fn parse_never_fails() {
    assert_eq!(envelope(REQUEST)["context"], "auth");
    let bad = read(&parse("hello", Reading::Paste));
    assert_eq!(bad["envelopes"], json!([]));
    assert_eq!(bad["errors"][0]["code"], "E-FORMAT");
    assert!(parse_reading("strict").is_ok() && parse_reading("loose").is_err());
}

#[test]
fn built_messages_get_ids_and_read_back() {
    let message = json!({"sender": "A", "receiver": "B", "user": "u", "context": "c", "intent": "REQUEST", "body": "hi"});
    let text = build(&message.to_string()).unwrap();
    let back = envelope(&text);
    assert_eq!(back["body"], "hi");
    let ids = ["thread", "message"].map(|key| IdForm::of(back[key].as_str().unwrap()));
    assert_eq!(ids, [IdForm::Ulid; 2]);
    assert_eq!(
        build(&json!([message, message]).to_string())
            .unwrap()
            .matches("[[END]]")
            .count(),
        2
    );
    assert_eq!(facts(build("{}")), (Some("E-FORMAT"), None, None));
    let unknown = json!({"sender": "A", "receiver": "B", "user": "u", "context": "c", "intent": "RESPOND", "message": "M"});
    assert_eq!(
        facts(build(&unknown.to_string())),
        (Some("E-FORMAT"), Some("INT-010"), None)
    );
}

#[test]
fn answers_keep_the_conversation() {
    let answer = envelope(&reply(REQUEST, "Yes.", ReplyOptions::default()).unwrap());
    assert_eq!(
        json!([
            answer["sender"],
            answer["receiver"],
            answer["user"],
            answer["intent"]["written"],
            answer["context"]
        ]),
        json!(["chatgpt://thread/1", "CLAUDE", "chatgpt", "RESPOND", "auth"])
    );
    assert_eq!(answer["parent"], "01J9J3DBC4N7P2Q3R5S7T9V1W2");
    assert_eq!(answer["session"], "2025-10-09T16Z abc123");
    let options = ReplyOptions {
        from: Some("BROTHER"),
        user: Some("anna"),
        intent: Some("REQUEST"),
        context: Some("more"),
    };
    let other = envelope(&reply(REQUEST, "Why?", options).unwrap());
    assert_eq!(
        json!([
            other["sender"],
            other["user"],
            other["intent"]["written"],
            other["context"]
        ]),
        json!(["BROTHER", "anna", "REQUEST", "more"])
    );
    let routed = REQUEST.replace(
        "\nbody: |",
        "\n\nmeta: routing\nX-Reply-To: human://kalle\n\nbody: |",
    );
    let routed = envelope(&reply(&routed, "Yes.", ReplyOptions::default()).unwrap());
    assert_eq!(routed["receiver"], "human://kalle");
    let two = format!("{REQUEST}\n{REQUEST}");
    assert_eq!(
        facts(reply(&two, "x", ReplyOptions::default())),
        (Some("E-FORMAT"), None, None)
    );
}

#[test]
fn texts_are_formatted_and_migrated() {
    let quoted = format!(
        "Here:\n\n{}",
        REQUEST
            .replace('\n', "\n> ")
            .replace("[[CLAUDE", "> [[CLAUDE")
    );
    assert_eq!(format(&quoted).unwrap(), REQUEST);
    assert_eq!(facts(format("hello")).0, Some("E-FORMAT"));
    let new = migrate(&format!("{OLD}{OLD}{REQUEST}")).unwrap();
    let report = read(&parse(&new, Reading::Strict));
    assert_eq!(report["envelopes"][0]["intent"]["written"], "REQUEST");
    assert_eq!(
        report["envelopes"][0]["thread"],
        report["envelopes"][1]["thread"]
    );
    assert!(new.ends_with(REQUEST));
}

#[test]
fn lint_counts_the_findings() {
    let report = read(&lint(OLD.replace("user:", "User :")));
    assert_eq!(report["schema"], "crosstalk.lint/1");
    assert_eq!(report["envelopes"], 1);
    let counted: u64 = report["counts"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(
        counted,
        report["diagnostics"].as_array().unwrap().len() as u64
    );
    assert!(report["counts"]["repair"].as_u64() > Some(0), "{report}");
}

#[test]
fn only_strict_envelopes_have_a_canonical_form() {
    assert!(canonical(REQUEST).unwrap().starts_with("[[CLAUDE→"));
    assert!(digest(REQUEST).unwrap().starts_with("sha256:"));
    let (code, rule, line) = facts(canonical(&REQUEST.replace("user: kalle", "user kalle")));
    assert_eq!((code, line), (Some("E-FORMAT"), Some(2)));
    assert!(rule.is_some());
    assert_eq!(
        facts(digest(&format!("{REQUEST}{REQUEST}"))).0,
        Some("E-FORMAT")
    );
}

const ALICE: &str = "alice@example.com";

/// A key of an algorithm, and a message that it signed for [`ALICE`].
fn signed_by(algorithm: Option<&str>) -> (GeneratedKey, String) {
    let key = generate_key(algorithm).unwrap();
    let signed = sign(REQUEST, &key.private_key_pem, options(ALICE)).unwrap();
    (key, signed)
}

/// The report on a text, with public keys for their ids.
fn report(keys: &[(&str, &str)], text: &str) -> Value {
    let own = |(id, key): &(&str, &str)| ((*id).to_owned(), (*key).to_owned());
    let keys: Vec<(String, String)> = keys.iter().map(own).collect();
    read(&verify(text, &keys, now()).unwrap())
}

#[test]
fn signed_message_verifies_with_the_key_of_its_id() {
    for algorithm in [None, Some("ed25519"), Some("secp256r1")] {
        let (key, signed) = signed_by(algorithm);
        for given in [&key.record, &key.public_key_pem] {
            let report = report(&[("bob@example.com", given), (ALICE, given)], &signed);
            assert_eq!(
                (&report["verdict"], &report["trust"], &report["schema"]),
                (
                    &json!("verified"),
                    &json!("given"),
                    &json!("crosstalk.verify/1")
                ),
                "{report}"
            );
        }
    }
}

#[test]
fn key_of_another_id_does_not_count() {
    let (key, signed) = signed_by(None);
    let report = report(&[("bob@example.com", &key.record)], &signed);
    assert_eq!(report["verdict"], "unknown-key");
}

#[test]
fn best_verdict_counts_for_several_keys_of_one_id() {
    let (key, signed) = signed_by(None);
    let (other, _) = signed_by(None);
    let verdict = |keys: &[&str]| {
        let keys: Vec<(&str, &str)> = keys.iter().map(|key| (ALICE, *key)).collect();
        report(&keys, &signed)["verdict"].clone()
    };
    assert_eq!(verdict(&[&other.record]), "not-verified");
    assert_eq!(verdict(&[&other.record, &key.record]), "verified");
}

#[test]
fn id_that_is_the_key_needs_no_list() {
    let (key, _) = signed_by(None);
    let signed = sign(REQUEST, &key.private_key_pem, options(&key.did)).unwrap();
    assert_eq!(report(&[], &signed)["trust"], "did");
}

#[test]
fn key_in_the_message_is_a_first_contact() {
    let (key, _) = signed_by(None);
    let carried = SignOptions {
        with_key: true,
        ..options(ALICE)
    };
    let signed = sign(REQUEST, &key.private_key_pem, carried).unwrap();
    assert_eq!(report(&[], &signed)["verdict"], "first-contact");
}

#[test]
fn text_without_a_signature_or_a_message_gets_a_report() {
    assert_eq!(report(&[], REQUEST)["verdict"], "unsigned");
    assert_eq!(report(&[], "hello")["verdict"], "not-verified");
}

#[test]
fn signature_is_replaced_only_on_request() {
    let (key, signed) = signed_by(None);
    let pem = &key.private_key_pem;
    assert_eq!(facts(sign(&signed, pem, options(ALICE))).1, Some("SIG-007"));
    let again = SignOptions {
        replace: true,
        ..options(ALICE)
    };
    assert_eq!(sign(&signed, pem, again).unwrap(), signed);
}

#[test]
fn only_one_message_is_verified_at_a_time() {
    let (_, signed) = signed_by(None);
    let several = verify(format!("{signed}{signed}"), &[], now());
    assert_eq!(facts(several), (Some("E-FORMAT"), None, None));
}

#[test]
fn unusable_keys_are_rejected() {
    let (key, signed) = signed_by(None);
    assert_eq!(
        facts(sign(REQUEST, "no key", options("a"))).1,
        Some("SIG-020")
    );
    assert!(generate_key(Some("rsa")).is_err_and(|e| e.help.contains("ed25519")));
    assert!(sign(REQUEST, "no key", options(ALICE)).is_err_and(|e| e.help.contains("PKCS#8")));
    // A private key in the place of a public one.
    assert_eq!(facts(public_key(&key.private_key_pem)).0, Some("E-PERM"));
    let keys = [(ALICE.to_owned(), key.private_key_pem)];
    assert_eq!(facts(verify(&signed, &keys, now())).0, Some("E-PERM"));
}

#[test]
fn bytes_that_are_no_text_get_a_report() {
    let bytes = [REQUEST.as_bytes(), b"\xff\n"].concat();
    let parsed = read(&parse(&bytes, Reading::Paste));
    assert_eq!(parsed["errors"][0]["rule"], "ENV-001");
    assert_eq!(read(&lint(&bytes))["counts"]["error"], 1);
    let verdict = read(&verify(&bytes, &[], now()).unwrap());
    assert_eq!(
        (&verdict["verdict"], &verdict["rule"]),
        (&json!("not-verified"), &json!("ENV-001"))
    );
}

#[test]
fn a_text_that_is_too_large_is_not_redacted() {
    let filler = "x".repeat(64 << 20);
    assert_eq!(
        facts(redact(&format!("{REQUEST}{filler}"))).1,
        Some("ENV-063")
    );
}

#[test]
fn redaction_names_the_places() {
    let report = read(&redact(REQUEST).unwrap());
    assert_eq!(
        report["found"],
        json!([{"kind": "email", "line": 9, "column": 12, "placeholder": "[EMAIL]"}])
    );
    assert!(
        report["text"]
            .as_str()
            .unwrap()
            .contains("Mail me: [EMAIL]\n")
    );
    let key = generate_key(None).unwrap();
    let signed = sign(REQUEST, &key.private_key_pem, options("alice@example.com")).unwrap();
    assert_eq!(facts(redact(&signed)).0, Some("E-PERM"));
}

#[test]
fn addresses_and_ids() {
    let report = read(&parse_address("human://dr.smith@clinic.example/inbox"));
    assert_eq!(
        (&report["kind"], &report["valid"]),
        (&json!("person"), &json!(true))
    );
    assert_eq!(read(&parse_address("human://%zz"))["valid"], false);
    assert!(new_id() < new_id());
}
