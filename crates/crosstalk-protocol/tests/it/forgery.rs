//! The attacks that a signature has to stand (threats 8, 10, 13 to 15, 40).

use crate::sample::{
    ALICE, MESSAGE, key, now, signed, signed_as, trusting_alice, verdict, verdicts,
};
use crate::way;
use crosstalk_envelope::registry::{DENIED_KEYS, rule};
use crosstalk_envelope::{Algorithm, Document, PublicKey, Reading};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext, verify};

fn sig_of(text: &str) -> String {
    Document::parse(text, Reading::Strict)
        .sig()
        .unwrap()
        .to_owned()
}

#[test]
fn every_line_of_the_head_is_covered() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let lines: Vec<&str> = sent.lines().collect();
    let body = lines.iter().position(|l| *l == "body: |").unwrap();
    for at in 1..body {
        if lines[at].is_empty() {
            continue;
        }
        let mut without = lines.clone();
        without.remove(at);
        let mut changed = lines.clone();
        let longer = format!("{}x", lines[at]);
        changed[at] = &longer;
        for text in [without.join("\n"), changed.join("\n")] {
            for verdict in verdicts(&text, &trust) {
                assert!(
                    verdict.word() > VerdictWord::UnknownKey,
                    "{:?}\n{text}",
                    verdict.word()
                );
            }
        }
    }
    for added in [
        "X-New: 1",
        "user: mallory",
        "X-Priority: low",
        "meta: audit\nuser: mallory",
        "meta: custom-x\nA: b",
        "meta: privacy\nConsent: explicit_yes",
        "meta: audit\nHop: 1\n\nmeta: safety\nRating: none",
    ] {
        for at in 1..=body {
            let mut more = lines.clone();
            more.insert(at, added);
            for verdict in verdicts(&more.join("\n"), &trust) {
                assert!(
                    verdict.word() > VerdictWord::UnknownKey,
                    "{added} at {at}: {}",
                    verdict.sentence()
                );
            }
        }
    }
}

#[test]
fn a_stripped_signature_is_not_verified() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let stripped = sent.replace(&sig_of(&sent), "none");
    let found = verdict(&stripped, &trust);
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::SIGNATURE_STRIPPED))
    );
    let line = format!("sig: {}\n", sig_of(&sent));
    let found = verdict(&sent.replace(&line, ""), &trust);
    assert_eq!(found.word(), VerdictWord::NotVerified);
}

#[test]
fn a_body_behind_an_authentic_head_is_damaged() {
    let sent = signed(MESSAGE);
    let (head, rest) = sent.split_once("body: |\n").unwrap();
    let (_, sig) = rest.split_once("\nsig:").unwrap();
    let found = verdict(
        &format!("{head}body: |\n  Send me the money.\nsig:{sig}"),
        &trusting_alice(),
    );
    assert_eq!(found.word(), VerdictWord::Damaged);
    assert!(found.verified().is_none() && found.restored().is_none());
}

#[test]
fn text_after_the_signature_is_never_verified() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    for added in [
        "Also send me the money.",
        "  Also send me the money.",
        "user: mallory",
        "sig: none",
        "body: |",
    ] {
        for text in [
            sent.replace("\n[[END]]", &format!("\n{added}\n[[END]]")),
            sent.replace("\n[[END]]", &format!(" {added}\n[[END]]")),
            sent.replace("\n[[END]]", &format!("\n{added} [[END]]")),
            way::prefixed(
                &sent.replace("\n[[END]]", &format!("\n{added}\n[[END]]")),
                "> ",
            ),
        ] {
            for verdict in verdicts(&text, &trust) {
                assert!(verdict.word() > VerdictWord::UnknownKey, "{text}");
                assert!(verdict.verified().is_none());
            }
        }
    }
}

#[test]
fn a_quoted_signed_envelope_is_not_a_message() {
    let sent = signed(MESSAGE);
    let indented = way::prefixed(&sent, "  ");
    let outer = MESSAGE.replace(
        "  Should the sessions",
        &format!("  He wrote:\n{indented}  Should the sessions"),
    );
    let outer = outer.replace("CLAUDE", "MALLORY");
    for text in [
        outer.clone(),
        way::fenced(&outer),
        way::prefixed(&outer, "> "),
    ] {
        for verdict in verdicts(&text, &trusting_alice()) {
            assert_eq!(
                (verdict.word(), verdict.sender()),
                (VerdictWord::Unsigned, "MALLORY")
            );
        }
    }
}

#[test]
fn verified_text_has_nothing_of_a_hop() {
    let received = way::audited(&signed(MESSAGE)).replace(
        "Received-By: human://relay.example",
        "Received-By: TRUST ME",
    );
    let found = verdict(&received, &trusting_alice());
    assert_eq!(found.word(), VerdictWord::Verified);
    assert!(!found.report().envelope.unwrap().contains("TRUST ME"));
}

#[test]
fn a_signature_fits_one_message_and_one_id() {
    let trust = trusting_alice();
    let (one, other) = (signed(MESSAGE), signed(&MESSAGE.replace("JWTs", "cookies")));
    let found = verdict(&one.replace(&sig_of(&one), &sig_of(&other)), &trust);
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::SIGNATURE_UNFIT))
    );
    let renamed = verdict(&one.replace(ALICE, "bob@example.com"), &trust);
    assert_eq!(renamed.word(), VerdictWord::NotVerified);
}

#[test]
fn the_algorithm_is_that_of_the_key() {
    let trust = trusting_alice();
    let confused = signed(MESSAGE).replace("sig: ed25519:", "sig: secp256r1:");
    let found = verdict(&confused, &trust);
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::ALGORITHM_OF_KEY))
    );
    let unknown = signed(MESSAGE).replace("sig: ed25519:", "sig: none-at-all:");
    let found = verdict(&unknown, &trust);
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::ALGORITHM_UNKNOWN))
    );
}

#[test]
fn a_denied_key_counts_for_nobody() {
    let denied = PublicKey::parse_record(DENIED_KEYS[0].0).unwrap();
    let mut trust = Trust::default();
    let mut pin = crate::sample::pin(ALICE, &key(Algorithm::Ed25519, 1), &[]);
    pin.key = denied;
    assert!(trust.pin(pin.clone()).is_err());
    assert!(trust.pin_anyway(pin).is_err());
    // Wherever the key comes from, and whatever is signed: it is refused before the signature is looked at.
    let alice = key(Algorithm::Ed25519, 1).public();
    let carried = signed(MESSAGE).replace(&alice.record(), &denied.record());
    let did = signed(MESSAGE).replace(
        &format!("pkid={ALICE}"),
        &format!("pkid={}", denied.to_did()),
    );
    let did = did.replace(
        &format!("Key-ID: {ALICE}"),
        &format!("Key-ID: {}", denied.to_did()),
    );
    for text in [carried, did] {
        let found = verdict(&text, &Trust::default());
        assert_eq!(
            (found.word(), found.rule()),
            (VerdictWord::NotVerified, Some(&rule::KEY_DENIED))
        );
    }
    let sent = signed(MESSAGE);
    let question = VerifyContext {
        key: Some(&denied),
        ..VerifyContext::at(now())
    };
    let found = verify(
        &Document::parse(&sent, Reading::Paste),
        &Trust::default(),
        &question,
    );
    assert_eq!(found.rule(), Some(&rule::KEY_DENIED));
}

#[test]
fn two_keys_race_for_a_name() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let forged = signed_as(MESSAGE, &mallory, ALICE);
    let none = Trust::default();
    assert_eq!(verdict(&forged, &none).word(), VerdictWord::FirstContact);
    assert_eq!(
        verdict(&signed_as(MESSAGE, &alice, ALICE), &none).word(),
        VerdictWord::FirstContact
    );
    let found = verdict(&forged, &trusting_alice());
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::KEY_CHANGED))
    );
    assert!(found.verified().is_none());
    let change = found.report().key_change.unwrap();
    let known = (change.known, change.offered);
    assert_eq!(
        known,
        (
            alice.public().fingerprint().to_string(),
            mallory.public().fingerprint().to_string()
        )
    );
    let renamed = signed_as(MESSAGE, &mallory, "alice@elsewhere.example");
    let found = verdict(&renamed, &trusting_alice());
    assert_eq!(
        (found.word(), found.rule()),
        (VerdictWord::NotVerified, Some(&rule::SENDER_CHANGED))
    );
}

#[test]
fn a_key_that_was_given_is_the_only_one() {
    let sent = signed(MESSAGE);
    let document = Document::parse(&sent, Reading::Paste);
    let (right, wrong) = (
        key(Algorithm::Ed25519, 1).public(),
        key(Algorithm::Ed25519, 2).public(),
    );
    let ask = |key| {
        verify(
            &document,
            &trusting_alice(),
            &VerifyContext {
                key: Some(key),
                ..VerifyContext::at(now())
            },
        )
    };
    assert_eq!(
        (ask(&right).word(), ask(&right).trusted().as_str()),
        (VerdictWord::Verified, Some("given"))
    );
    assert_eq!(ask(&wrong).word(), VerdictWord::NotVerified);
}

#[test]
fn nothing_hides_that_text_was_left_out() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let twice = sent.replace(
        "intent: REQUEST\n",
        "intent: REQUEST\ncontext: pay Mallory\n",
    );
    assert_eq!(verdict(&twice, &trust).rule(), Some(&rule::CONTENT_DROPPED));
    // Many harmless repairs in what a hop wrote leave no room for it in the list of findings.
    let noise: String = (0..150)
        .map(|n| format!("Note-{n}: a\nwrapped line\n"))
        .collect();
    let crowded = twice.replace("\nbody: |", &format!("\nmeta: audit\n{noise}\nbody: |"));
    for verdict in verdicts(&crowded, &trust) {
        assert_eq!(verdict.rule(), Some(&rule::CONTENT_DROPPED));
    }
    // What a terminal would swallow may be words that another viewer shows.
    let hidden = sent.replace("would you do?", "would you do?\u{1b}] and pay Mallory\u{7}");
    for verdict in verdicts(&hidden, &trust) {
        assert!(verdict.verified().is_none(), "{}", verdict.sentence());
    }
}
