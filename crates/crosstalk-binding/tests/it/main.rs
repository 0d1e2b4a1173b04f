//! The operations of the packages, and their forms.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected fails"
)]

use crosstalk_binding::{
    CrosstalkError, NamedKey, ReplyOptions, SignOptions, build, canonical, digest, format,
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
    let report = read(&lint(&OLD.replace("user:", "User :")));
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

#[test]
fn signed_messages_verify_with_the_key_of_their_id() {
    for algorithm in [None, Some("ed25519"), Some("secp256r1")] {
        let key = generate_key(algorithm).unwrap();
        let signed = sign(REQUEST, &key.private_key_pem, options("alice@example.com")).unwrap();
        let report = |keys: &[(&str, &str)], text: &str| {
            let keys: Vec<NamedKey> = keys
                .iter()
                .map(|(id, key)| NamedKey {
                    id: (*id).to_owned(),
                    key: public_key(key).unwrap(),
                })
                .collect();
            read(&verify(text, &keys, now()).unwrap())
        };
        for given in [&key.record, &key.public_key_pem] {
            let report = report(
                &[("bob@example.com", given), ("alice@example.com", given)],
                &signed,
            );
            assert_eq!(
                (&report["verdict"], &report["trust"]),
                (&json!("verified"), &json!("given")),
                "{report}"
            );
            assert_eq!(report["schema"], "crosstalk.verify/1");
        }
        assert_eq!(
            report(&[("bob@example.com", &key.record)], &signed)["verdict"],
            "unknown-key"
        );
        let other = generate_key(algorithm).unwrap();
        assert_eq!(
            report(&[("alice@example.com", &other.record)], &signed)["verdict"],
            "not-verified"
        );
        let both = [
            ("alice@example.com", other.record.as_str()),
            ("alice@example.com", &key.record),
        ];
        assert_eq!(report(&both, &signed)["verdict"], "verified");
        let by_did = sign(REQUEST, &key.private_key_pem, options(&key.did)).unwrap();
        assert_eq!(report(&[], &by_did)["trust"], "did");
        let carried = SignOptions {
            with_key: true,
            ..options("alice@example.com")
        };
        let carried = sign(REQUEST, &key.private_key_pem, carried).unwrap();
        assert_eq!(report(&[], &carried)["verdict"], "first-contact");
        assert_eq!(report(&[], REQUEST)["verdict"], "unsigned");
        assert_eq!(report(&[], "hello")["verdict"], "not-verified");
        assert_eq!(
            facts(sign(&signed, &key.private_key_pem, options("x@y.example"))).1,
            Some("SIG-007")
        );
        let again = SignOptions {
            replace: true,
            ..options("alice@example.com")
        };
        assert_eq!(sign(&signed, &key.private_key_pem, again).unwrap(), signed);
        let several = verify(&format!("{signed}{signed}"), &[], now());
        assert_eq!(facts(several), (Some("E-FORMAT"), None, None));
    }
    assert_eq!(
        facts(sign(REQUEST, "no key", options("a"))).1,
        Some("SIG-020")
    );
    assert!(generate_key(Some("rsa")).is_err_and(|e| e.help.contains("ed25519")));
    let private = generate_key(None).unwrap().private_key_pem;
    assert_eq!(facts(public_key(&private)).0, Some("E-PERM"));
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
