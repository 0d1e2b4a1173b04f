//! What holds for every text.

use crosstalk_protocol::redact::{PiiKind, RedactionRules, find, redact};
use crosstalk_testing::tier;
use proptest::prelude::*;

fn rules() -> RedactionRules {
    RedactionRules::default().with_names([
        "Jane", "Jane Doe", "version", "E", "李", "2001", "ssn", "José", "a.b",
    ])
}

/// Texts that are made of what matters: pieces of addresses and numbers, signs between them, and tricks.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,5}",
        "[0-9]{9,19}",
        "[a-fA-F0-9:.]{1,12}",
        "[ .:/@+()\\[\\]-]{1,2}",
        "\\PC{1,3}",
        Just("\n".to_owned()),
        Just("\u{200b}".to_owned()),
        prop::sample::select(vec![
            "jane@example.com",
            "Jane",
            "Doe",
            "version ",
            "v",
            "ssn ",
            "bsn ",
            "tel:",
            "+49 30 901820",
            "192.0.2.7",
            "4111 1111 1111 1111",
            "DE89370400440532013000",
            "123-45-6789",
            "[EMAIL]",
            "[CARD-XXXX-1234]",
            "[CARD-XXXX-",
            "[[A→B v1]]",
            "2001:db8::1",
            "李",
            "José",
            "Jose\u{301}",
            "git@",
            "１２３",
            "٤٩",
            "2025-10-09",
            "a.b",
            "12345678-1234-1234-1234-123456789012",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The text outside of what was found, and that it stands in the output in the same order.
fn check(text: &str, rules: &RedactionRules) {
    let redaction = redact(text, rules);
    let mut at = 0;
    let mut out = redaction.text.as_str();
    for found in &redaction.found {
        assert!(
            found.span.start >= at && found.span.start < found.span.end,
            "{text:?}"
        );
        let between = text
            .get(at..found.span.start)
            .expect("a span is on characters");
        out = out.strip_prefix(between).expect("what is around stays");
        out = out
            .strip_prefix(found.placeholder.as_str())
            .expect("the placeholder stands there");
        at = found.span.end;
    }
    assert_eq!(text.get(at..), Some(out), "{text:?}");
    let again = redact(&redaction.text, rules);
    assert_eq!(again.found, [], "{text:?} -> {:?}", redaction.text);
    assert_eq!(again.text, redaction.text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tier::size(300, 1000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn surrounding_text_stays_and_no_personal_data_survives(text in text()) {
        check(&text, &rules());
    }

    #[test]
    fn any_text_will_do(text in "\\PC{0,80}|(?s).{0,80}") {
        check(&text, &rules());
    }

    #[test]
    fn each_kind_holds_alone(text in text(), kind in prop::sample::select(PiiKind::ALL.to_vec())) {
        check(&text, &rules().only(&[kind]));
        check(&text, &rules().without(&[kind]));
    }

    /// What is invisible changes nothing about what is found, wherever it is put in.
    #[test]
    fn invisible_characters_hide_nothing(at in 0usize..64, c in prop::sample::select(vec!['\u{200b}', '\u{ad}', '\u{2060}', '\u{202e}', '\u{e0041}', '\u{fe0f}'])) {
        for value in ["jane@example.com", "+49 30 901820", "4111 1111 1111 1111", "DE89370400440532013000", "123-45-6789", "192.0.2.7", "2001:db8::1", "Jane Doe"] {
            let mut text = value.to_owned();
            let inside = 1 + at % (value.len() - 1);
            text.insert(inside, c);
            let found = find(&text, &rules());
            assert_eq!(found.len(), 1, "{text:?}");
            assert_eq!(found[0].span, 0..text.len(), "{text:?}");
        }
    }
}

/// They end: no scanner looks at a symbol again and again.
#[test]
fn hostile_texts_are_read_in_no_time() {
    let rules = rules();
    for unit in [
        "1",
        "@",
        ":",
        "a@",
        "@a.",
        "1 ",
        "1-",
        "+1",
        "(",
        "[",
        "[EMAIL",
        "a.",
        "1.",
        "1:",
        "f:",
        "0 1 ",
        "jane ",
        "jane\n",
        " ",
        "\n",
        "ssn 123456789 ",
        "\u{200b}",
        "１",
        "DE89",
        "e\u{301}",
        "\"@",
        "\"",
        "v",
        "2025-10-09 ",
        "4111 ",
        "%",
        "a@[",
        "12345678-1234-",
        "::",
        ".@",
        "-@a-",
        "李",
    ] {
        check(
            &unit.repeat(tier::size(25_000, 100_000) / unit.len()),
            &rules,
        );
    }
}
