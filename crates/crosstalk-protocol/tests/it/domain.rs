//! What domains say about keys, and what is made of it (threats 11 and 12).

use crate::sample::{
    ALICE, MESSAGE, ask, key, now, outcome, pin, signed, signed_as, trusting_alice,
};
use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext};

#[test]
fn domains_decide_where_they_are_asked() {
    let (alice, other) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 2));
    let sent = signed(MESSAGE);
    let answer = |keys: Vec<&PrivateKey>| DnsAnswer::Keys {
        keys: keys.iter().map(|k| k.public()).collect(),
        ttl: 60,
        dnssec: Dnssec::Insecure,
    };
    let both = answer(vec![&other, &alice]);
    let unbound = ("unbound", "dns", Some("TRU-026"));
    for (trust, vouched) in [
        (Trust::default(), unbound),
        (trusting_alice(), ("verified", "dns", None)),
    ] {
        for (dns, expected) in [
            (both.clone(), vouched),
            (answer(vec![&other]), ("not-verified", "", Some("TRU-023"))),
            (
                DnsAnswer::Absent {
                    dnssec: Dnssec::Secure,
                },
                ("not-verified", "", Some("TRU-021")),
            ),
            (
                DnsAnswer::Wrong {
                    reason: "no".into(),
                },
                ("not-verified", "", Some("TRU-021")),
            ),
            (
                DnsAnswer::Unavailable {
                    reason: "SERVFAIL".into(),
                },
                ("unknown-key", "unknown-key", Some("TRU-022")),
            ),
        ] {
            let question = VerifyContext {
                dns: Some(&dns),
                ..VerifyContext::at(now())
            };
            let found = ask(&sent, &trust, &question);
            assert_eq!(outcome(&found), expected, "{dns:?}");
            assert_eq!(found.retry(), matches!(dns, DnsAnswer::Unavailable { .. }));
            assert_eq!(found.verified().is_some(), expected.1 == "dns");
        }
        let question = VerifyContext {
            dns: Some(&both),
            require_dnssec: true,
            ..VerifyContext::at(now())
        };
        assert_eq!(outcome(&ask(&sent, &trust, &question)).2, Some("TRU-024"));
    }
    // DNS vouches for a changed key (threat 11).
    let rolled = signed_as(MESSAGE, &other, ALICE);
    let question = VerifyContext {
        dns: Some(&both),
        ..VerifyContext::at(now())
    };
    assert_eq!(
        outcome(&ask(&rolled, &trusting_alice(), &question)),
        ("verified", "dns", None)
    );
}

#[test]
fn an_answer_counts_as_long_as_it_says() {
    let alice = key(Algorithm::Ed25519, 1);
    let mut trust = Trust::default();
    let answer = DnsAnswer::Keys {
        keys: vec![alice.public()],
        ttl: 60,
        dnssec: Dnssec::Secure,
    };
    trust.remember("example.com", &answer, now());
    let at = |seconds: i64| {
        VerifyContext::at(Timestamp::from_millis(now().as_millis() + seconds * 1000))
    };
    assert_eq!(
        outcome(&ask(&signed(MESSAGE), &trust, &at(59))),
        ("unbound", "dns", Some("TRU-026"))
    );
    let late = ask(&signed(MESSAGE), &trust, &at(60));
    assert_eq!((late.word(), late.retry()), (VerdictWord::UnknownKey, true));
    trust.remember(
        "example.com",
        &DnsAnswer::Unavailable { reason: "x".into() },
        now(),
    );
    assert_eq!(trust.domains().len(), 1);
    trust.remember(
        "example.com",
        &DnsAnswer::Absent {
            dnssec: Dnssec::Secure,
        },
        now(),
    );
    // It has vouched before, and is to be asked: a key that comes along is not believed in its place.
    let gone = ask(&signed(MESSAGE), &trust, &at(0));
    assert_eq!((gone.word(), gone.retry()), (VerdictWord::UnknownKey, true));
    assert!(trust.forget_domain("example.com") && trust.domains().is_empty());
}

#[test]
fn dnssec_is_not_stripped() {
    let (alice, mallory) = (key(Algorithm::Ed25519, 1), key(Algorithm::Ed25519, 66));
    let answer = |key: &PrivateKey, dnssec| DnsAnswer::Keys {
        keys: vec![key.public()],
        ttl: 60,
        dnssec,
    };
    let mut trust = Trust::default();
    trust.remember("example.com", &answer(&alice, Dnssec::Secure), now());
    let forged = answer(&mallory, Dnssec::Indeterminate);
    trust.remember("example.com", &forged, now());
    assert!(trust.was_secure("example.com"));
    let question = VerifyContext {
        dns: Some(&forged),
        ..VerifyContext::at(now())
    };
    let found = ask(&signed_as(MESSAGE, &mallory, ALICE), &trust, &question);
    assert_eq!(
        (found.word(), found.retry()),
        (VerdictWord::UnknownKey, true)
    );
}

/// A domain vouches for its own people. It says nothing about those of others, nor about a simple name.
#[test]
fn a_domain_binds_its_keys_to_its_own_senders_alone() {
    let mallory = key(Algorithm::Ed25519, 66);
    let dns = DnsAnswer::Keys {
        keys: vec![mallory.public()],
        ttl: 60,
        dnssec: Dnssec::Secure,
    };
    let question = VerifyContext {
        dns: Some(&dns),
        ..VerifyContext::at(now())
    };
    let sent_as = |sender: &str| {
        let text = MESSAGE.replace("[[CLAUDE→", &format!("[[{sender}→"));
        signed_as(&text, &mallory, "mallory@evil.example")
    };
    for (sender, word) in [
        ("human://ann@acme.example/inbox", VerdictWord::Unbound),
        ("email:ann@acme.example", VerdictWord::Unbound),
        ("human://evil.example.acme.example/x", VerdictWord::Unbound),
        ("claude://evil/x", VerdictWord::Unbound),
        ("CLAUDE", VerdictWord::Unbound),
        ("human://mallory@evil.example/inbox", VerdictWord::Verified),
        ("human://mallory@EVIL.example/inbox", VerdictWord::Verified),
        ("email:mallory@evil.example", VerdictWord::Verified),
    ] {
        let found = ask(&sent_as(sender), &Trust::default(), &question);
        assert_eq!(found.word(), word, "{sender}");
        assert_eq!(found.rule().is_some(), word == VerdictWord::Unbound);
        let warns = found.sentence().contains("binds the key to the sender");
        assert_eq!(warns, word == VerdictWord::Unbound, "{}", found.sentence());
    }
    assert_eq!(VerdictWord::Unbound.exit_code(), 26);
    // A pin binds it.
    let mut trust = Trust::default();
    trust
        .pin(pin("mallory@evil.example", &mallory, &["CLAUDE"]))
        .unwrap();
    assert_eq!(
        ask(&sent_as("Claude"), &trust, &question).word(),
        VerdictWord::Verified
    );
    assert_eq!(
        ask(&sent_as("BOB"), &trust, &question).word(),
        VerdictWord::Unbound
    );
}
