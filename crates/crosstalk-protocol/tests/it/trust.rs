//! Whom the trust store believes: pins, rotations, revocations (threats 10 and 11).

use crate::sample::{
    ALICE, MESSAGE, ask, key, now, outcome, pin, signed, signed_as, time, trusting_alice,
};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{
    KeyStanding, KnownKey, Learned, MAX_CONTACTS_PER_CREDENTIAL, MAX_FOREIGN_CONTACTS, Origin,
    PinError, Rotation, Trust, Unlearned, VerdictWord, VerifyContext, learn, pin_of,
};

/// An announcement of a new key, signed by it, with a proof by the old one.
fn announcement(
    old: (&str, &PrivateKey),
    new: (&str, &PrivateKey),
    grace: Timestamp,
    prover: &PrivateKey,
) -> String {
    let rotation = Rotation {
        old_id: old.0.to_owned(),
        old: old.1.public(),
        new_id: new.0.to_owned(),
        new: new.1.public(),
        grace,
    };
    let block = key_block(
        new.0,
        &new.1.public(),
        Some((&rotation, &rotation.prove(prover))),
    );
    let document = Document::parse(MESSAGE, Reading::Strict);
    let signer = Signer {
        key: new.1,
        pkid: new.0,
        at: now(),
        key_block: &block,
    };
    signer.sign(&document).unwrap()
}

fn revocation(id: &str, signer: (&str, &PrivateKey), target: Option<&PrivateKey>) -> String {
    let public = target.map_or(String::new(), |k| {
        format!("Public-Key: {}\n", k.public().record())
    });
    let text = MESSAGE
        .replace("intent: REQUEST", "intent: REVOKE")
        .replace(
            "meta: custom-acme\nTicket: 4711",
            &format!("meta: revocation\nKey-ID: {id}\n{public}Reason: stolen laptop"),
        );
    signed_as(&text, signer.1, signer.0)
}

#[test]
fn first_contact_pins_nothing_and_a_pin_holds() {
    let (sent, mut trust) = (signed(MESSAGE), Trust::default());
    let question = VerifyContext::at(now());
    let first = ask(&sent, &trust, &question);
    assert_eq!(outcome(&first), ("first-contact", "first-contact", None));
    let pin = pin_of(&first, now()).unwrap();
    trust.pin(pin).unwrap();
    assert_eq!(
        outcome(&ask(&sent, &trust, &question)),
        ("verified", "pinned", None)
    );
    assert_eq!(Trust::parse(&trust.to_text()).unwrap(), trust);
    assert_eq!(
        trust.keys()[0].by.as_deref(),
        Some("01K74V6W3G8D0T9V5Y2R4N6Q1X")
    );
    assert_eq!(trust.keys()[0].senders, ["CLAUDE"]);
}

#[test]
fn without_a_key_nothing_is_verified() {
    let document = Document::parse(MESSAGE, Reading::Strict);
    let signer = key(Algorithm::Ed25519, 1);
    let signer = Signer {
        key: &signer,
        pkid: ALICE,
        at: now(),
        key_block: &[],
    };
    let sent = signer.sign(&document).unwrap();
    let found = ask(&sent, &Trust::default(), &VerifyContext::at(now()));
    assert_eq!(
        outcome(&found),
        ("unknown-key", "unknown-key", Some("TRU-002"))
    );
    assert_eq!(
        ask(&sent, &trusting_alice(), &VerifyContext::at(now())).word(),
        VerdictWord::Verified
    );
}

#[test]
fn rotations() {
    let (old, new, mallory) = (
        key(Algorithm::Ed25519, 1),
        key(Algorithm::Secp256r1, 2),
        key(Algorithm::Ed25519, 66),
    );
    let (grace, question) = (time("2026-12-01"), VerifyContext::at(now()));
    for new_id in [ALICE, "alice@example.com/2027"] {
        let good = announcement((ALICE, &old), (new_id, &new), grace, &old);
        let mut trust = trusting_alice();
        let found = ask(&good, &trust, &question);
        assert_eq!(
            outcome(&found),
            ("verified", "pinned", None),
            "{}",
            found.sentence()
        );
        assert!(found.next().contains("trust import"));
        let learned = learn(
            &Document::parse(&good, Reading::Paste),
            &mut trust,
            &question,
        )
        .unwrap();
        assert!(matches!(learned, Learned::Rotated(_)));
        assert_eq!(
            outcome(&ask(&good, &trust, &question)),
            ("verified", "pinned", None)
        );
        assert_eq!(
            outcome(&ask(&signed_as(MESSAGE, &new, new_id), &trust, &question)),
            ("verified", "pinned", None)
        );
        // The old key signs until the end of the grace period, by what it says itself.
        assert_eq!(
            ask(&signed(MESSAGE), &trust, &question).word(),
            VerdictWord::Verified
        );
        let document = Document::parse(MESSAGE, Reading::Strict);
        let late = Signer {
            key: &old,
            pkid: ALICE,
            at: time("2026-12-02"),
            key_block: &[],
        };
        let late = late.sign(&document).unwrap();
        assert_eq!(outcome(&ask(&late, &trust, &question)).2, Some("TRU-011"));
        // Somebody who did not know the old key sees a first contact.
        assert_eq!(
            ask(&good, &Trust::default(), &question).word(),
            VerdictWord::FirstContact
        );
        // A proof by anybody else is worth nothing.
        let forged = announcement((ALICE, &old), (new_id, &mallory), grace, &mallory);
        let mut trust = trusting_alice();
        assert_eq!(
            outcome(&ask(&forged, &trust, &question)),
            ("not-verified", "first-contact", Some("TRU-010"))
        );
        let before = trust.clone();
        let refused = learn(
            &Document::parse(&forged, Reading::Paste),
            &mut trust,
            &question,
        );
        assert!(matches!(refused, Err(Unlearned::Unproven(r, _)) if *r == rule::ROTATION));
        assert_eq!(trust, before);
        // Nor does the proof count for another new key.
        let stolen = good.replace(&new.public().record(), &mallory.public().record());
        assert!(ask(&stolen, &trust, &question).word() >= VerdictWord::NotVerified);
    }
}

#[test]
fn revocations() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let question = VerifyContext::at(now());
    let take = |text: &str, trust: &mut Trust| {
        learn(&Document::parse(text, Reading::Paste), trust, &question)
    };
    let mut trust = trusting_alice();
    for forged in [
        revocation(ALICE, (ALICE, &mallory), None),
        revocation(ALICE, ("mallory@example.com", &mallory), None),
        revocation(ALICE, (ALICE, &mallory), Some(&alice)),
        revocation(ALICE, (ALICE, &alice), None).replace("stolen", "found"),
    ] {
        let before = trust.clone();
        let result = take(&forged, &mut trust);
        match result {
            // Mallory may give up her own key under whatever name.
            Ok(Learned::Revoked { key, .. }) => assert_eq!(*key, mallory.public()),
            Ok(other) => panic!("{other:?}"),
            Err(_) => assert_eq!(trust, before),
        }
        assert_eq!(
            ask(&signed(MESSAGE), &trust, &question).word(),
            VerdictWord::Verified
        );
    }
    let mut trust = trusting_alice();
    take(&revocation(ALICE, (ALICE, &alice), None), &mut trust).unwrap();
    let found = ask(&signed(MESSAGE), &trust, &question);
    assert_eq!(outcome(&found), ("revoked", "pinned", Some("TRU-012")));
    assert!(found.sentence().contains("stolen laptop") && found.verified().is_none());
    let earlier = VerifyContext::at(time("2026-11-14"));
    assert_eq!(
        ask(&signed(MESSAGE), &trust, &earlier).word(),
        VerdictWord::Verified
    );
    // Under another name it is revoked as well, and no pin brings it back.
    assert_eq!(
        ask(
            &signed_as(MESSAGE, &alice, "a@other.example"),
            &trust,
            &question
        )
        .word(),
        VerdictWord::Revoked
    );
    assert!(trust.pin_anyway(pin(ALICE, &alice, &[])).is_err());
    // The successor can revoke the key that it replaced, under the same id.
    let new = key(Algorithm::Ed25519, 2);
    let mut trust = trusting_alice();
    take(
        &announcement((ALICE, &alice), (ALICE, &new), time("2027-01-01"), &alice),
        &mut trust,
    )
    .unwrap();
    take(&revocation(ALICE, (ALICE, &new), Some(&alice)), &mut trust).unwrap();
    assert_eq!(
        ask(&signed(MESSAGE), &trust, &question).word(),
        VerdictWord::Revoked
    );
    assert_eq!(
        ask(&signed_as(MESSAGE, &new, ALICE), &trust, &question).word(),
        VerdictWord::Verified
    );
}

#[test]
fn distrust_and_merge() {
    let alice = key(Algorithm::Ed25519, 1);
    let mut trust = trusting_alice();
    let standing = KeyStanding::Distrusted {
        at: now(),
        reason: Some("a hunch".into()),
    };
    trust.mark(ALICE, &alice.public(), now(), standing);
    let found = ask(&signed(MESSAGE), &trust, &VerifyContext::at(now()));
    assert_eq!(outcome(&found), ("not-verified", "pinned", Some("TRU-007")));
    // A yes of somebody else does not undo it, and their no is taken over.
    assert_eq!(trust.clone().merge(&trusting_alice()).len(), 1);
    let mut other = trusting_alice();
    assert!(other.merge(&trust).is_empty());
    assert_eq!(
        ask(&signed(MESSAGE), &other, &VerifyContext::at(now())).word(),
        VerdictWord::NotVerified
    );
    let mut stranger = Trust::default();
    stranger
        .pin(pin(ALICE, &key(Algorithm::Ed25519, 9), &[]))
        .unwrap();
    assert_eq!(
        stranger.merge(&trusting_alice()).len(),
        1,
        "another key for a known id"
    );
}

#[test]
fn a_did_is_its_key() {
    for algorithm in Algorithm::ALL {
        let signer = key(algorithm, 5);
        let sent = signed_as(MESSAGE, &signer, &signer.public().to_did());
        let question = VerifyContext::at(now());
        assert_eq!(
            outcome(&ask(&sent, &Trust::default(), &question)),
            ("verified", "did", None)
        );
        let other = key(algorithm, 6).public().to_did();
        let stolen = sent.replace(&signer.public().to_did(), &other);
        assert_eq!(
            ask(&stolen, &Trust::default(), &question).word(),
            VerdictWord::NotVerified
        );
        let mut trust = trusting_alice();
        assert_eq!(
            outcome(&ask(&sent, &trust, &question)).2,
            Some("TRU-006"),
            "CLAUDE is known as Alice"
        );
        trust.remove(ALICE, None);
        assert_eq!(ask(&sent, &trust, &question).word(), VerdictWord::Verified);
    }
}

#[test]
fn replaced_pin_is_distrusted() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let question = VerifyContext::at(now());
    // The wrong key was pinned first, and the mistake is mended.
    let mut trust = Trust::default();
    trust.pin(pin(ALICE, &mallory, &["CLAUDE"])).unwrap();
    trust.pin_anyway(pin(ALICE, &alice, &["CLAUDE"])).unwrap();
    assert_eq!(
        ask(&signed(MESSAGE), &trust, &question).word(),
        VerdictWord::Verified
    );
    let document = Document::parse(MESSAGE, Reading::Strict);
    let backdated = Signer {
        key: &mallory,
        pkid: ALICE,
        at: time("2020-01-01"),
        key_block: &[],
    };
    let backdated = backdated.sign(&document).unwrap();
    assert_eq!(
        outcome(&ask(&backdated, &trust, &question)).2,
        Some("TRU-007")
    );
}

#[test]
fn two_people_may_use_one_name() {
    let (alice, carol) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 3));
    let question = VerifyContext::at(now());
    let mut trust = trusting_alice();
    let by_carol = signed_as(MESSAGE, &carol, "carol@example.org");
    assert_eq!(
        outcome(&ask(&by_carol, &trust, &question)).2,
        Some("TRU-006")
    );
    trust
        .pin_anyway(pin("carol@example.org", &carol, &["CLAUDE"]))
        .unwrap();
    for (signer, id) in [(&alice, ALICE), (&carol, "carol@example.org")] {
        let sent = signed_as(MESSAGE, signer, id);
        assert_eq!(
            ask(&sent, &trust, &question).word(),
            VerdictWord::Verified,
            "{id}"
        );
    }
}

#[test]
fn a_stranger_s_revocation_stops_nobody() {
    let mallory = key(Algorithm::Ed25519, 66);
    let question = VerifyContext::at(now());
    let mut trust = Trust::default();
    let revoked = revocation(ALICE, (ALICE, &mallory), None);
    let document = Document::parse(&revoked, Reading::Paste);
    let before = ask(&revoked, &trust, &question);
    assert_eq!(before.word(), VerdictWord::FirstContact);
    assert!(before.next().contains("trust import"), "{}", before.next());
    assert!(
        pin_of(&before, now()).is_none(),
        "who gives up a key is not pinned"
    );
    learn(&document, &mut trust, &question).unwrap();
    assert_eq!(
        ask(&signed(MESSAGE), &trust, &question).word(),
        VerdictWord::FirstContact
    );
    assert_eq!(
        ask(&signed_as(MESSAGE, &mallory, ALICE), &trust, &question).word(),
        VerdictWord::Revoked
    );
    assert_eq!(Trust::parse(&trust.to_text()).unwrap(), trust);
}

#[test]
fn a_rotation_takes_nobody_s_name() {
    let (alice, mallory, next) = (
        key(Algorithm::Ed25519, 1),
        key(Algorithm::Ed25519, 66),
        key(Algorithm::Ed25519, 67),
    );
    let question = VerifyContext::at(now());
    let mut trust = trusting_alice();
    trust
        .pin(pin("mallory@example.org", &mallory, &[]))
        .unwrap();
    let stolen = announcement(
        ("mallory@example.org", &mallory),
        (ALICE, &next),
        time("2027-01-01"),
        &mallory,
    );
    let found = ask(&stolen, &trust, &question);
    assert_eq!(outcome(&found).2, Some("TRU-010"));
    assert!(found.report().key_change.is_some());
    let before = trust.clone();
    assert!(
        learn(
            &Document::parse(&stolen, Reading::Paste),
            &mut trust,
            &question
        )
        .is_err()
    );
    assert_eq!(trust, before);
    // Nor does a key rotate that was revoked under another name.
    let mut trust = trusting_alice();
    let standing = KeyStanding::Revoked {
        at: now(),
        reason: None,
        by: None,
    };
    trust.mark("a@elsewhere.example", &alice.public(), now(), standing);
    let good = announcement((ALICE, &alice), (ALICE, &next), time("2027-01-01"), &alice);
    assert_eq!(outcome(&ask(&good, &trust, &question)).2, Some("TRU-010"));
}

#[test]
fn a_revocation_gives_no_time() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let question = VerifyContext::at(now());
    let earlier = VerifyContext::at(time("2026-11-10"));
    // A stranger who gives up a key in the far future is not pinned by that.
    let future = |id: &str, signer: &PrivateKey| {
        let text = MESSAGE
            .replace("intent: REQUEST", "intent: REVOKE")
            .replace(
                "meta: custom-acme\nTicket: 4711",
                &format!("meta: revocation\nKey-ID: {id}\nEffective: 9999-12-31"),
            );
        signed_as(&text, signer, id)
    };
    let mut trust = trusting_alice();
    let document = future(ALICE, &mallory);
    learn(
        &Document::parse(&document, Reading::Paste),
        &mut trust,
        &question,
    )
    .unwrap();
    let by_mallory = signed_as(MESSAGE, &mallory, ALICE);
    assert_eq!(
        ask(&by_mallory, &trust, &question).word(),
        VerdictWord::Revoked
    );
    assert_eq!(
        outcome(&ask(&by_mallory, &trust, &earlier)).2,
        Some("TRU-005")
    );
    assert_eq!(
        ask(&signed(MESSAGE), &trust, &question).word(),
        VerdictWord::Verified
    );
    // Distrust is not lifted by a revocation, whenever it holds from.
    let mut trust = trusting_alice();
    let distrusted = KeyStanding::Distrusted {
        at: time("2026-11-05"),
        reason: None,
    };
    trust.mark(ALICE, &alice.public(), now(), distrusted);
    let document = future(ALICE, &alice);
    learn(
        &Document::parse(&document, Reading::Paste),
        &mut trust,
        &question,
    )
    .unwrap();
    for question in [&question, &earlier] {
        assert_eq!(
            ask(&signed(MESSAGE), &trust, question).word(),
            VerdictWord::Revoked
        );
    }
}

#[test]
fn a_trust_file_of_others_weakens_nothing() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let question = VerifyContext::at(now());
    let replaced = KnownKey {
        standing: KeyStanding::Replaced {
            by: ALICE.to_owned(),
            key: alice.public(),
            at: now(),
            grace: time("9999-01-01"),
        },
        ..pin(ALICE, &mallory, &["CLAUDE"])
    };
    let file = |keys: &[KnownKey]| {
        let mut file = Trust::default();
        for known in keys {
            let standing = known.standing.clone();
            file.pin_anyway(KnownKey {
                standing: KeyStanding::Active,
                ..known.clone()
            })
            .unwrap();
            file.mark(&known.id, &known.key, now(), standing);
        }
        file
    };
    let mut trust = trusting_alice();
    assert_eq!(trust.merge(&file(&[replaced])).len(), 1);
    let by_mallory = signed_as(MESSAGE, &mallory, ALICE);
    assert_eq!(
        outcome(&ask(&by_mallory, &trust, &question)).2,
        Some("TRU-005")
    );
    // A sender does not change hands by an entry that counts for nothing.
    let distrusted = KnownKey {
        standing: KeyStanding::Distrusted {
            at: now(),
            reason: None,
        },
        ..pin("mallory@example.org", &mallory, &["CLAUDE"])
    };
    assert!(trust.merge(&file(&[distrusted])).is_empty());
    assert_eq!(trust.ids_of_sender("CLAUDE"), [ALICE]);
    // A no without a proof can be taken back.
    let revoked = KnownKey {
        standing: KeyStanding::Revoked {
            at: now(),
            reason: None,
            by: None,
        },
        ..pin(ALICE, &alice, &[])
    };
    assert!(trust.merge(&file(&[revoked])).is_empty());
    assert_eq!(
        outcome(&ask(&signed(MESSAGE), &trust, &question)).2,
        Some("TRU-007")
    );
    // Any other key of an id, whatever became of it, makes a new one a change.
    assert!(trust.pin(pin(ALICE, &mallory, &[])).is_err());
}

#[test]
fn a_time_that_is_to_come_is_told() {
    let document = Document::parse(MESSAGE, Reading::Strict);
    let alice = key(Algorithm::Ed25519, 1);
    for (at, told) in [("2026-11-16T11:00:00Z", false), ("2199-01-01", true)] {
        let signer = Signer {
            key: &alice,
            pkid: ALICE,
            at: time(at),
            key_block: &[],
        };
        let sent = signer.sign(&document).unwrap();
        let found = ask(&sent, &trusting_alice(), &VerifyContext::at(now()));
        assert_eq!(found.word(), VerdictWord::Verified);
        assert_eq!(found.sentence().contains("in the future"), told, "{at}");
    }
}

fn contact(id: &str, key: &PrivateKey, sender: &str) -> KnownKey {
    KnownKey {
        how: Origin::FirstContact,
        ..pin(id, key, &[sender])
    }
}

fn new_key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Ed25519).unwrap()
}

#[test]
fn contacts_are_bounded_per_credential_and_for_all_strangers() {
    let mut trust = Trust::default();
    let mut meet = |credential: &str, number: usize| {
        let sender = format!("bot://{credential}/{number}");
        trust.pin_contact(contact("k", &new_key(), &sender), credential)
    };
    for number in 0..MAX_CONTACTS_PER_CREDENTIAL {
        meet("agent:a", number).unwrap();
    }
    assert_eq!(meet("agent:a", 999), Err(PinError::NoRoom));
    meet("agent:b", 0).unwrap();
    let domains = MAX_FOREIGN_CONTACTS / MAX_CONTACTS_PER_CREDENTIAL;
    for domain in 0..domains {
        for number in 0..MAX_CONTACTS_PER_CREDENTIAL {
            meet(&format!("domain:d{domain}.test"), number).unwrap();
        }
    }
    assert_eq!(meet("domain:new.test", 0), Err(PinError::NoRoom));
    meet("agent:b", 1).unwrap();
}

/// One key for many senders costs as much as many keys do, and nothing that is kept is long.
#[test]
fn senders_of_a_contact_are_bounded_too() {
    let (mut trust, key) = (Trust::default(), new_key());
    for number in 0..MAX_CONTACTS_PER_CREDENTIAL {
        let sender = format!("bot://a/{number}");
        trust
            .pin_contact(contact("k", &key, &sender), "agent:a")
            .unwrap();
    }
    let another = trust.pin_contact(contact("k", &key, "bot://a/x"), "agent:a");
    assert_eq!(another, Err(PinError::NoRoom));
    assert_eq!(trust.keys().len(), 1);
    let long = contact("l", &key, &"x".repeat(2000));
    assert_eq!(trust.pin_contact(long, "agent:b"), Err(PinError::NoRoom));
}

#[test]
fn domains_that_messages_name_are_bounded() {
    let mut trust = Trust::default();
    let answer = |ttl, dnssec| DnsAnswer::Keys {
        keys: vec![new_key().public(); 40],
        ttl,
        dnssec,
    };
    trust.remember_contact("first.test", &answer(300, Dnssec::Secure), now());
    for number in 0..1100 {
        let name = format!("d{number}.test");
        trust.remember_contact(&name, &answer(300, Dnssec::Insecure), now());
    }
    assert_eq!(trust.domains().len(), 1024);
    assert_eq!(trust.domains()[0].keys.len(), 16);
    // Those that have expired make room, but none that DNSSEC proved.
    let later = Timestamp::from_millis(now().as_millis() + 600_000);
    for number in 0..1100 {
        let name = format!("e{number}.test");
        trust.remember_contact(&name, &answer(300, Dnssec::Insecure), later);
    }
    assert_eq!(trust.domains().len(), 1024);
    assert!(trust.was_secure("first.test"));
    let text = trust.contacts_to_text();
    assert_eq!(trust.to_text(), Trust::default().to_text());
    assert_eq!(Trust::default().add_contacts(&text).unwrap(), trust);
}

/// Nobody fills the trust store by revoking keys that were never pinned.
#[test]
fn revocations_of_unknown_keys_are_charged() {
    let mut trust = trusting_alice();
    let revoke = |trust: &mut Trust, id: &str, key: &PrivateKey| {
        let before = trust.clone();
        let standing = KeyStanding::Revoked {
            at: now(),
            reason: Some("x".repeat(1000)),
            by: None,
        };
        trust.mark(id, &key.public(), now(), standing);
        let charged = trust.charge(&before, "domain:evil.test");
        charged.inspect_err(|_| *trust = before)
    };
    for _ in 0..MAX_CONTACTS_PER_CREDENTIAL {
        revoke(&mut trust, "x@evil.test", &new_key()).unwrap();
    }
    let more = revoke(&mut trust, "x@evil.test", &new_key());
    assert_eq!(more, Err(PinError::NoRoom));
    // That of a key that somebody pinned is always kept.
    let alice = key(Algorithm::Ed25519, 1);
    revoke(&mut trust, ALICE, &alice).unwrap();
    assert!(trust.keys()[0].standing.is_refused());
    assert!(trust.to_text().len() < 1000, "the rest is kept apart");
}

#[test]
fn did_key_needs_a_pin_at_a_relay() {
    let key = key(Algorithm::Ed25519, 1);
    let text = signed_as(MESSAGE, &key, &key.public().to_did());
    let word = |trust: &Trust| ask(&text, trust, &VerifyContext::of_relay(now())).word();
    let did = key.public().to_did();
    let mut trust = Trust::default();
    assert_eq!(word(&trust), VerdictWord::FirstContact);
    trust.pin(pin(&did, &key, &["GEMINI"])).unwrap();
    assert_eq!(word(&trust), VerdictWord::FirstContact);
    trust.pin(pin(&did, &key, &["CLAUDE"])).unwrap();
    assert_eq!(word(&trust), VerdictWord::Verified);
}

/// A key that was pinned at first contact leads to no other sender, by a rotation neither.
#[test]
fn rotation_of_a_contact_is_for_its_senders_only() {
    let (old, new) = (new_key(), new_key());
    let text = announcement(
        ("mallory@keys", &old),
        ("new@keys", &new),
        time("2027-01-01"),
        &old,
    );
    let mut trust = Trust::default();
    let met = contact("mallory@keys", &old, "MALLORY");
    trust.pin_contact(met, "agent:mallory").unwrap();
    let question = VerifyContext::at(now());
    assert_eq!(
        ask(&text, &trust, &question).word(),
        VerdictWord::FirstContact
    );
    let document = Document::parse(&text, Reading::Strict);
    assert!(learn(&document, &mut trust.clone(), &question).is_err());
    let met = contact("mallory@keys", &old, "CLAUDE");
    trust.pin_contact(met, "agent:mallory").unwrap();
    assert_eq!(ask(&text, &trust, &question).word(), VerdictWord::Verified);
    learn(&document, &mut trust, &question).unwrap();
    assert_eq!(trust.keys()[1].credential.as_deref(), Some("agent:mallory"));
}

/// A person who pins a key binds its senders: those that were shown, and none that belongs to another key by now.
#[test]
fn a_pin_binds_the_senders_that_a_person_saw() {
    let (met, anna, ana) = (new_key(), new_key(), new_key());
    let mut trust = Trust::default();
    for sender in ["bob", "anna", "maria"] {
        let contact = contact("met@keys", &met, sender);
        trust.pin_contact(contact, "agent:x").unwrap();
    }
    let with = |senders: &[&str]| pin("met@keys", &met, senders);
    let unseen = trust.clone().pin_as_shown(with(&["bob"]), true);
    let left_out = vec!["anna".to_owned(), "maria".to_owned()];
    assert_eq!(unseen, Err(PinError::Unseen(left_out)));
    let all = ["bob", "anna", "maria"];
    trust.clone().pin_as_shown(with(&all), false).unwrap();
    // Somebody decided meanwhile who Anna is.
    let mut decided = trust.clone();
    let of_anna = pin("anna@keys", &anna, &["anna"]);
    decided.pin_anyway(of_anna).unwrap();
    let other = decided.clone().pin_by_person(with(&["bob"]), false);
    assert_eq!(
        other,
        Err(PinError::SenderChanged(vec!["anna@keys".to_owned()]))
    );
    decided.pin_by_person(with(&["bob"]), true).unwrap();
    let mut decided = trust.clone();
    let of_other = pin("other@keys", &ana, &["mar\u{456}a"]);
    decided.pin_anyway(of_other).unwrap();
    let like = decided.pin_by_person(with(&all), false);
    assert!(matches!(like, Err(PinError::LooksLike(name, _)) if name == "maria"));
}
