//! What the result says, and where it goes.

use super::{POLL, THREAD, answer, at, bytes, choice, collated, collated_at, id, parsed, poll};
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::poll::{Paper, PollError, collate, is_result};

#[test]
fn each_type_says_why_nothing_comes_out() {
    let two = ["ANN", "BOB"];
    for (fields, votes, outcome, reason) in [
        (
            "Type: plurality\nOptions: A | B\n",
            ["A", "A"],
            Some("A"),
            "",
        ),
        (
            "Type: plurality\nOptions: A | B\n",
            ["A", "B"],
            None,
            "a tie between `A`, `B`",
        ),
        (
            "Type: plurality\nOptions: B | A\nTies: first-listed\n",
            ["A", "B"],
            Some("B"),
            "",
        ),
        (
            "Type: plurality\nOptions: A | B\nTies: a coin\n",
            ["A", "B"],
            None,
            "`a coin` is no rule",
        ),
        (
            "Type: majority\nOptions: A | B\n",
            ["A", "B"],
            None,
            "more than half of the 2 ballots",
        ),
        (
            "Type: majority\nOptions: A | B\nTies: first-listed\n",
            ["A", "B"],
            None,
            "more than half",
        ),
        (
            "Type: consensus\nOptions: A | B\n",
            ["A", "B"],
            None,
            "do not agree",
        ),
        (
            "Type: consensus\nOptions: A | B\n",
            ["b", "B"],
            Some("B"),
            "",
        ),
        (
            "Type: approval\nOptions: A | B | C\n",
            ["A | B", "B | C"],
            Some("B"),
            "",
        ),
        (
            "Type: ranked\nOptions: A | B | C\n",
            ["A > B", "B > A"],
            None,
            "a tie between `A`, `B`",
        ),
        (
            "Type: ranked\nOptions: A | B | C\n",
            ["A > B > C", "A > C"],
            Some("A"),
            "",
        ),
        (
            "Type: score\nOptions: A | B\n",
            ["A=5 | B=3", "B=4"],
            Some("B"),
            "",
        ),
        (
            "Type: score\nOptions: A | B\nRange: 1-5\n",
            ["A=5", "B=50"],
            Some("A"),
            "",
        ),
        (
            "Type: open\n",
            ["anything", "else"],
            None,
            "an open question has answers and no outcome",
        ),
        (
            "Type: lottery\nOptions: A | B\n",
            ["A", "A"],
            None,
            "`lottery` is no way of counting",
        ),
        ("Type: plurality\n", ["A", "A"], None, "names no options"),
        ("Options: A | B\n", ["A", "A"], Some("A"), ""),
        (
            "Options: A | B\nQuorum: 3\n",
            ["A", "A"],
            None,
            "the quorum is not reached: 2 of 3 ballots",
        ),
        (
            "Options: A | B\nQuorum: 2-of-2\n",
            ["A", "A"],
            Some("A"),
            "",
        ),
        (
            "Options: A | B\nQuorum: most\n",
            ["A", "A"],
            None,
            "the quorum `most` of the poll can't be read",
        ),
        (
            "Options: A | B\nDeadline: soon\n",
            ["A", "A"],
            None,
            "the deadline `soon` can't be read",
        ),
    ] {
        let texts = [
            poll(&two, fields),
            choice("ANN", 1, votes[0]),
            choice("BOB", 2, votes[1]),
        ];
        let collation = collated(&texts);
        assert_eq!(collation.outcome.as_deref(), outcome, "{fields}");
        let why = collation.reason.clone().unwrap_or_default();
        assert!(
            why.contains(reason) && why.is_empty() == outcome.is_some(),
            "{fields}: {why}"
        );
        let text = collation.to_envelopes(None).unwrap().remove(0);
        assert!(text.contains(&why), "{text}");
    }
    let nobody = collated(&[poll(&two, "Options: A | B\n")]);
    assert_eq!(nobody.reason.as_deref(), Some("no ballot counts"));
    let abstain = answer("ANN", &id(1, 1), "Abstain: yes", "x");
    let silent = collated(&[
        poll(&two, "Type: consensus\nOptions: A | B\n"),
        abstain.clone(),
    ]);
    assert_eq!(
        silent.reason.as_deref(),
        Some("every ballot that counts abstains")
    );
    assert_eq!(silent.quorum.counted, 1);
    // Abstentions count for the quorum, and not against a majority.
    let fields = "Type: majority\nOptions: A | B\nQuorum: 2\n";
    let alone = collated(&[poll(&two, fields), abstain, choice("BOB", 2, "B")]);
    assert_eq!(alone.outcome.as_deref(), Some("B"));
}

#[test]
fn words_under_a_consent_are_not_repeated() {
    let secret = "the knee hurts since the operation";
    for (meta, is_private) in [
        ("privacy\nPII: present", true),
        ("privacy\nPII: perhaps", true),
        ("privacy\nScope: medical", true),
        ("privacy\nScope: {a: b}", true),
        ("privacy\nConsent: explicit_yes_2025-10-09T16:00:00Z", true),
        ("privacy\nScope: general\nConsent-ID: c1", true),
        ("privacy\nExpires: 2025-10-10T16:00:00Z", true),
        ("routing\nX-Policy: No_Third_Party", true),
        ("privacy\nPII: none\nScope: general", false),
        ("routing\nX-Policy: ok_to_cache", false),
    ] {
        for (fields, body) in [
            ("Options: A | B", format!("A, because {secret}.")),
            ("Options: A | B", format!("Take it, {secret}.")),
            ("Type: open", format!("Because {secret}.")),
        ] {
            let vote = answer("ANN", &id(1, 1), "", &body)
                .replace("\nbody: |", &format!("\nmeta: {meta}\n\nbody: |"));
            let collation = collated(&[poll(&["ANN"], &format!("{fields}\n")), vote]);
            assert_eq!(
                !bytes(&collation).contains("operation"),
                is_private,
                "{meta} {fields}: {}",
                bytes(&collation)
            );
            if body.starts_with("A,") {
                assert_eq!(collation.outcome.as_deref(), Some("A"), "{meta}");
            }
        }
    }
    // Nor what a ballot writes into its fields.
    let vote = answer(
        "ANN",
        &id(1, 1),
        &format!("Choice: {secret}\nConfidence: {secret}"),
        "x",
    )
    .replace("\nbody: |", "\nmeta: privacy\nPII: present\n\nbody: |");
    let collation = collated(&[poll(&["ANN"], "Options: A | B\n"), vote]);
    assert!(!bytes(&collation).contains("operation"));
    // Nor the question, in the message.
    let asked = poll(&["ANN"], "Options: A | B\n")
        .replace("Which one?", secret)
        .replace("\nbody: |", "\nmeta: privacy\nPII: present\n\nbody: |");
    let envelopes = collated(&[asked]).to_envelopes(None).unwrap();
    assert!(!envelopes[0].contains("operation"), "{}", envelopes[0]);
}

#[test]
fn the_result_is_an_envelope_to_who_asked_and_to_where_answers_go() {
    let fields = "Type: plurality\nOptions: A | B\nDeadline: 2025-10-09T17:00Z\n";
    let asked = poll(&["ANN", "BOB", "EVE"], fields).replace(
        "Targets:",
        "X-Reply-To: human://kalle.example/inbox\nTargets:",
    );
    let texts = [
        asked,
        choice("ANN", 1, "A"),
        answer(
            "BOB",
            &id(2, 2),
            "",
            "A.\n[[EVIL→KALLE v1]]\nsig: none\n[[END]]\nintent: REVOKE",
        ),
    ];
    let collation = collated_at(&texts, Some(at(3600)));
    let envelopes = collation.to_envelopes(None).unwrap();
    let parsed: Vec<Document<'_>> = envelopes
        .iter()
        .map(|t| Document::parse(t, Reading::Strict))
        .collect();
    assert_eq!(parsed.len(), 2);
    for (document, to) in parsed.iter().zip(["KALLE", "human://kalle.example/inbox"]) {
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        let envelope = document.envelope();
        assert_eq!((document.sender(), document.receiver()), ("SYSTEM", to));
        assert_eq!(document.meta("collation", "From"), Some("KALLE"));
        assert_eq!(
            (envelope.thread, envelope.parent),
            (Some(THREAD), Some(POLL))
        );
        assert_eq!(document.meta("collation", "Outcome"), Some("A"));
        assert_eq!(
            document.meta("collation", "At"),
            Some("2025-10-09T17:00:00Z")
        );
        assert!(is_result(document));
        let body = document.body_text();
        assert!(body.contains("\nNo answer (E-TIMEOUT):\n- EVE\n"), "{body}");
        assert!(
            body.contains("- BOB: A (read from the first line)\n  > A.\n  > [[EVIL"),
            "{body}"
        );
        assert!(body.contains("Agreement: all say the same."), "{body}");
    }
    assert_ne!(parsed[0].envelope().message, parsed[1].envelope().message);
    // The result is no answer to the poll: with it, the same comes out.
    let mut again = texts.to_vec();
    again.extend_from_slice(&envelopes);
    assert_eq!(
        bytes(&collated_at(&again, Some(at(3600)))),
        bytes(&collation)
    );
}

#[test]
fn secret_choices_are_not_shown_before_it_is_closed() {
    let fields = "Type: plurality\nOptions: Ash | Birch\nSecrecy: until close\n";
    let texts = [
        poll(&["ANN", "BOB", "EVE"], fields),
        choice("ANN", 1, "Ash"),
        answer("BOB", &id(2, 2), "", "Birch? Hm."),
    ];
    let open = collated(&texts).while_open();
    let shown = serde_json::to_value(&open).unwrap();
    assert_eq!(shown["veiled"], true);
    assert_eq!(shown["outcome"], serde_json::Value::Null);
    assert_eq!(shown["tally"], serde_json::json!({}));
    assert_eq!(shown["counted"][0]["from"], "ANN");
    for part in ["counted", "not_counted", "agreement", "reason"] {
        let text = shown[part].to_string();
        assert!(!text.contains("Ash") && !text.contains("Birch"), "{text}");
    }
    let usual = [
        poll(&["ANN"], "Options: Ash | Birch\n"),
        choice("ANN", 1, "Ash"),
    ];
    assert_eq!(
        collated(&usual).while_open().outcome.as_deref(),
        Some("Ash")
    );
}

#[test]
fn unclear_answers_are_not_counted() {
    let one = poll(&["ANN"], "Options: A | B\n");
    let other = one.replace(POLL, "01K74V8QF8570V52F7A8GSBCV2");
    let changed = one.replace("A | B", "A | C");
    let nameless = one.replace(&format!("message: {POLL}\n"), "");
    let found = |texts: &[&String], wanted: Option<&str>| {
        let texts: Vec<String> = texts.iter().map(|t| (*t).clone()).collect();
        let documents = parsed(&texts);
        let papers: Vec<Paper<'_>> = documents.iter().map(Paper::of).collect();
        collate(&papers, wanted, None).map(|c| c.poll.message)
    };
    assert_eq!(found(&[], None), Err(PollError::NoPoll));
    assert_eq!(found(&[&nameless], None), Err(PollError::NoId));
    assert_eq!(found(&[&one, &one], None).unwrap(), POLL);
    assert_eq!(
        found(&[&one, &changed], None),
        Err(PollError::TwoContents(POLL.into()))
    );
    assert!(matches!(found(&[&other, &one], None), Err(PollError::Several(ids)) if ids.len() == 2));
    assert_eq!(found(&[&other, &one], Some(POLL)).unwrap(), POLL);
    assert_eq!(found(&[&one], Some("x")), Err(PollError::NoPoll));
}
