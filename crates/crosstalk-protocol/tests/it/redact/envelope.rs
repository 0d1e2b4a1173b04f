//! Personal data in envelopes: what is touched, what is marked, and what a signature forbids.

use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{
    Algorithm, Document, PrivateKey, Reading, Timestamp, scan, signing::Signer,
};
use crosstalk_protocol::redact::{PiiKind, RedactionRules, redact_envelope};

const PLAIN: &str = "[[jane@example.com→B v1]]\r\nuser: Jane <jane@example.com>\r\nsession: 555-010-0199\r\n\
    thread: 4111111111111111\r\nmessage: jane@example.com\r\ncontext:   about 192.0.2.7\r\nintent: REQUEST\r\n\
    X-Note: tel:+4930901820\r\n\r\nmeta: routing\r\nX-Reply-To: email:jane@example.com\r\n\
    X-Route: email:jane@example.com → B\r\n\r\nmeta: custom\r\nReason: 123-45-6789\r\nConsent-ID: jane@example.com\r\n\r\n\
    meta: audit\r\nHop: 1\r\nChain: jane@example.com\r\n\r\nbody: |\r\n  Hello  \r\n\r\n\tDE89 3704 0044 0532 0130 00\r\n\
    sig: none\r\n[[END]]\r\n";

fn strict(text: &str) -> Document<'_> {
    let document = Document::parse(text, Reading::Strict);
    assert!(document.is_accepted(), "{:?}", document.diagnostics());
    document
}

#[test]
fn free_text_is_redacted_and_all_else_stays() {
    let redacted = redact_envelope(&strict(PLAIN), &RedactionRules::default(), false).unwrap();
    let expected = PLAIN
        .replace("user: Jane <jane@example.com>", "user: Jane <[EMAIL]>")
        .replace("about 192.0.2.7", "about [IP]")
        .replace("tel:+4930901820", "tel:[PHONE]")
        .replace("Reason: 123-45-6789", "Reason: [NIN]")
        .replace("DE89 3704 0044 0532 0130 00", "[IBAN]")
        .replace(
            "\r\nbody: |",
            "\r\nmeta: privacy\r\nPII: redacted\r\nRedacted-Fields: iban, nin, email, ip, phone\r\n\r\nbody: |",
        );
    assert_eq!(redacted.text, expected);
    assert_eq!(redacted.count(), 5);
    assert_eq!(
        redacted.fields,
        [
            PiiKind::Iban,
            PiiKind::Nin,
            PiiKind::Email,
            PiiKind::Ip,
            PiiKind::Phone
        ]
    );
    for found in &redacted.found {
        assert!(!PLAIN[found.span.clone()].contains('\n'));
    }
    assert!(strict(&redacted.text).is_accepted());
    let again =
        redact_envelope(&strict(&redacted.text), &RedactionRules::default(), false).unwrap();
    assert_eq!((again.text, again.found), (redacted.text, vec![]));
}

#[test]
fn existing_privacy_fields_are_kept() {
    let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nmeta: privacy\nScope: general\nPII: present\n\
        Redacted-Fields: address, phone\nbody: |\n  +4930901820 and a@example.com\nsig: none\n[[END]]\n";
    let redacted = redact_envelope(&strict(text), &RedactionRules::default(), false).unwrap();
    let expected = text
        .replace("PII: present", "PII: redacted")
        .replace("address, phone", "address, phone, email")
        .replace("+4930901820 and a@example.com", "[PHONE] and [EMAIL]");
    assert_eq!(redacted.text, expected);
}

#[test]
fn nothing_found_is_nothing_said() {
    let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nmeta: privacy\nPII: none\nbody: |\n  x\nsig: none\n[[END]]\n";
    let redacted = redact_envelope(&strict(text), &RedactionRules::default(), false).unwrap();
    assert_eq!(redacted.text, text);
    assert_eq!((redacted.count(), redacted.fields.len()), (0, 0));
}

fn signed(body: &str) -> String {
    let text = format!(
        "[[A→B v1]]\nuser: u\nsession: s\nmessage: m1\ncontext: c\nintent: NOTE\nmeta: custom\nK: v\nbody: |\n  {body}\nsig: none\n[[END]]\n"
    );
    let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    let signer = Signer {
        key: &key,
        pkid: "u@example.com",
        at: Timestamp::from_millis(0),
        key_block: &[],
    };
    signer.sign(&strict(&text)).unwrap()
}

#[test]
fn a_signed_envelope_is_redacted_only_without_its_signature() {
    let text = signed("Ask a@example.com.");
    let fault = redact_envelope(&strict(&text), &RedactionRules::default(), false).unwrap_err();
    assert_eq!(fault.rule, &rule::REDACTION_SIGNED);
    assert_eq!(&text[fault.span.clone()], "a@example.com");
    assert!(fault.help().contains("--drop-signature"));
    let redacted = redact_envelope(&strict(&text), &RedactionRules::default(), true)
        .unwrap()
        .text;
    assert!(
        redacted.contains("\nsig: none\n[[END]]") && !redacted.contains("meta: integrity"),
        "{redacted}"
    );
    assert!(
        redacted.contains("meta: custom\nK: v\n\nmeta: privacy\nPII: redacted\n"),
        "{redacted}"
    );
    assert!(strict(&redacted).is_accepted());
    // A stripped signature leaves its measure behind.
    let at = text.find("\nsig: ").unwrap();
    let stripped = format!("{}\nsig: none\n[[END]]\n", &text[..at]);
    let fault = redact_envelope(&strict(&stripped), &RedactionRules::default(), false).unwrap_err();
    assert_eq!(fault.rule, &rule::REDACTION_SIGNED);
    // With nothing to take out, it stays as it is.
    let text = signed("Nothing.");
    for drop in [false, true] {
        assert_eq!(
            redact_envelope(&strict(&text), &RedactionRules::default(), drop)
                .unwrap()
                .text,
            text
        );
    }
}

#[test]
fn a_paste_is_redacted_as_it_was_read() {
    let chat = "> [[A=>B v1]]\n> User: Jane\n> Session: s\n> Context: c\n> Intent: NOTE\n> Body: |\n> Ask a@example.com,\n> Jane.\n> [[END]]\n";
    let found = scan(chat, Reading::Paste);
    let rules = RedactionRules::default().with_names(["Jane"]);
    let redacted = redact_envelope(&found.documents[0], &rules, false).unwrap();
    assert!(
        redacted.text.contains("user: [NAME]\n")
            && redacted.text.contains("  Ask [EMAIL],\n  [NAME].\n"),
        "{}",
        redacted.text
    );
    assert!(strict(&redacted.text).is_accepted());
}

#[test]
fn a_text_that_is_not_in_nfc_is_written_in_nfc() {
    let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: cafe\u{301}\nintent: NOTE\nbody: |\n  cafe\u{301} a@example.com\nsig: none\n[[END]]\n";
    let redacted = redact_envelope(&strict(text), &RedactionRules::default(), false).unwrap();
    assert!(
        redacted.text.contains("context: café\n") && redacted.text.contains("  café [EMAIL]\n")
    );
    let text = text.replace("a@example.com", "");
    let same = redact_envelope(&strict(&text), &RedactionRules::default(), false).unwrap();
    assert_eq!(same.text, text);
}

#[test]
fn attachments_are_counted_and_not_looked_into() {
    let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nmeta: attachments\n\
        A1: text/plain;name=a@example.com;digest=sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n\
        body: |\n  x\nsig: none\n[[END]]\n";
    let redacted = redact_envelope(&strict(text), &RedactionRules::default(), false).unwrap();
    assert_eq!((redacted.attachments, redacted.text.as_str()), (1, text));
}

#[test]
fn a_refused_envelope_is_not_redacted() {
    let document = Document::parse("[[A→B v1]]\nuser: u\n", Reading::Strict);
    assert!(redact_envelope(&document, &RedactionRules::default(), false).is_err());
}
