//! What a relay lets in, whom it passes it to, and what it leaves on it.

use crate::conversation::record;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::{
    Address, Algorithm, Document, ErrorCode, Intent, PrivateKey, Reading, Timestamp,
    signing::Signer,
};
use crosstalk_protocol::audit::{ChainId, LogPlace};
use crosstalk_protocol::consent::{Policy, Proof};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::relay::report::rejected_answer;
use crosstalk_protocol::relay::{
    Admission, AdmissionCandidate, Agent, Binding, ConversationId, Delivery, Directory, HOPS,
    Handler, HopFault, HopKey, Pattern, Peer, Priority, Receipted, RelayRules, Role, Route, Routes,
    Surroundings, TokenRecord, acknowledgement, add_hop, admit, check_hop,
};
use crosstalk_protocol::{
    KeyStanding, KnownKey, Origin, Trust, VerdictWord, VerifyContext, pin_of, verify,
};

const NOW: &str = "2026-11-16T08:00:00Z";

fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

/// An envelope with an intent and META lines.
fn envelope(from: &str, to: &str, intent: &str, meta: &str) -> String {
    let parent = match intent {
        "RESPOND" | "ACK" | "NACK" | "ERROR" => "parent: 01M7B00000000000000000000P\n",
        _ => "",
    };
    format!(
        "[[{from}→{to} v1]]\nuser: u\nthread: 01M7C00000000000000000000T\n{parent}message: 01M7D00000000000000000000M\n\
         context: c\nintent: {intent}\n{meta}body: |\n  Hello.\nsig: none\n[[END]]\n"
    )
}

fn agent(addresses: &[&str]) -> Peer {
    Peer {
        name: "token".into(),
        role: Role::Agent,
        addresses: addresses
            .iter()
            .map(|a| Pattern::parse(a).unwrap())
            .collect(),
        domain: None,
        courier: Vec::new(),
        is_local: false,
    }
}

fn let_in(
    text: &str,
    peer: &Peer,
    rules: &RelayRules,
    trust: &Trust,
) -> Result<Admission, Rejection> {
    let mut document = Document::parse(text, Reading::Strict);
    document.check();
    let verdict = verify(&document, trust, &VerifyContext::at(now()));
    let signer = Peer::signer(&verdict, trust, document.sender());
    let candidate = AdmissionCandidate {
        document: &document,
        verdict: &verdict,
        proof: Proof::of(&document, &verdict, trust, peer),
        peer: signer.as_ref().unwrap_or(peer),
        was_asked: false,
        at: now(),
    };
    admit(candidate, rules)
}

fn locally(text: &str, rules: &RelayRules) -> Result<Admission, Rejection> {
    let_in(text, &Peer::local(), rules, &Trust::default())
}

fn to(admission: &Admission) -> Vec<(&str, Handler)> {
    let recipients = admission.recipients.iter();
    recipients.map(|r| (r.address.as_str(), r.by)).collect()
}

#[test]
fn rejections_have_their_codes() {
    let rules = RelayRules::default();
    let long: Vec<String> = (0..257).map(|n| format!("agent://a/{n}")).collect();
    let long = format!("meta: routing\nTargets: {}\n", long.join(", "));
    for (text, code, word) in [
        (
            envelope("A", "B", "NOTE", "user: twice\n"),
            ErrorCode::Format,
            "user",
        ),
        (
            envelope("system", "B", "NOTE", ""),
            ErrorCode::Perm,
            "SYSTEM",
        ),
        (
            envelope("A", "B", "REVOKE", "meta: revocation\nConsent-ID: c\n"),
            ErrorCode::Perm,
            "signed",
        ),
        (
            envelope("A", "B", "NOTE", "meta: privacy\nConsent: explicit_no\n"),
            ErrorCode::Consent,
            "explicit_no",
        ),
        (
            envelope(
                "A",
                "B",
                "NOTE",
                "meta: privacy\nConsent: explicit_yes\nExpires: 2026-11-16T08:00:00Z\n",
            ),
            ErrorCode::Consent,
            "expired at",
        ),
        (
            envelope(
                "A",
                "B",
                "NOTE",
                "meta: privacy\nConsent: explicit_yes\nExpires: 2026-02-30T00:00:00Z\n",
            ),
            ErrorCode::Format,
            "2026-02-30",
        ),
        (
            envelope(
                "A",
                "B",
                "REQUEST",
                "meta: routing\nX-Deadline: 2026-11-16T07:59:59Z\n",
            ),
            ErrorCode::Timeout,
            "has passed",
        ),
        (
            envelope("A", "B", "REQUEST", "meta: routing\nX-Delivery: pigeon\n"),
            ErrorCode::Unsupported,
            "pigeon",
        ),
        (
            envelope("A", "B", "REQUEST", "meta: routing\nX-Delivery: exec\n"),
            ErrorCode::Route,
            "exec",
        ),
        (
            envelope("A", "email:b@example.com", "REQUEST", ""),
            ErrorCode::Unsupported,
            "mail",
        ),
        (
            envelope("A", "tel:+1-555-0100", "REQUEST", ""),
            ErrorCode::Unsupported,
            "telephone",
        ),
        (
            envelope("A", "slack://acme/general", "REQUEST", ""),
            ErrorCode::Unsupported,
            "slack",
        ),
        (
            envelope("A", "B", "ESCALATE", ""),
            ErrorCode::Route,
            "human://",
        ),
        (
            envelope(
                "A",
                "ANY",
                "HANDOFF",
                "meta: routing\nX-Capabilities-Required: sql\n",
            ),
            ErrorCode::Route,
            "sql",
        ),
        (
            envelope(
                "A",
                "B",
                "HANDOFF",
                "meta: routing\nX-Capabilities-Required: sql\n",
            ),
            ErrorCode::Unsupported,
            "sql",
        ),
        (
            envelope("A", "B", "BROADCAST", &long),
            ErrorCode::TooLarge,
            "257",
        ),
    ] {
        let refusal = locally(&text, &rules).expect_err(&text);
        assert_eq!(refusal.code, code, "{refusal:?}\n{text}");
        assert!(refusal.detail().contains(word), "{refusal:?}");
        assert!(refusal.detail().contains("What to do"), "{refusal:?}");
    }
}

#[test]
fn senders_need_a_credential_for_their_address() {
    let rules = RelayRules::default();
    let person = Peer {
        role: Role::Person,
        ..agent(&["human://acme.example/*"])
    };
    let relay = Peer {
        domain: Some("acme.example".into()),
        ..Peer::stranger()
    };
    for (peer, sender, may) in [
        (agent(&["claude://code/*"]), "claude://code/api", true),
        (agent(&["claude://code/*"]), "claude://chat/7", false),
        (agent(&["claude"]), "CLAUDE", true),
        (agent(&["*"]), "human://acme.example/ann", false),
        (person.clone(), "human://acme.example/ann", true),
        (person, "human://other.example/ann", false),
        (Peer::local(), "human://acme.example/ann", true),
        (Peer::stranger(), "CLAUDE", false),
        (relay.clone(), "agent://acme.example/x", true),
        (relay.clone(), "agent://ACME.example/x", true),
        (relay.clone(), "human://acme.example/x", false),
        (relay.clone(), "agent://evil.example/x", false),
        (relay, "CLAUDE", false),
    ] {
        let text = envelope(sender, "BOB", "NOTE", "");
        let result = let_in(&text, &peer, &rules, &Trust::default());
        assert_eq!(result.is_ok(), may, "{peer:?} {sender} {result:?}");
        if let Err(refusal) = result {
            assert_eq!(refusal.code, ErrorCode::Perm);
        }
    }
}

#[test]
fn a_signature_of_a_pinned_key_is_a_credential_and_a_broken_one_is_none() {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
    let block = crosstalk_protocol::rotation::key_block("ann@acme.example", &key.public(), None);
    let signer = Signer {
        key: &key,
        pkid: "ann@acme.example",
        at: now(),
        key_block: &block,
    };
    let text = envelope(
        "human://acme.example/ann",
        "https://b.example/x",
        "REVOKE",
        "meta: revocation\nConsent-ID: c\n",
    );
    let signed = signer
        .sign(&Document::parse(&text, Reading::Strict))
        .unwrap();
    let rules = RelayRules::default();
    let refused = let_in(&signed, &Peer::stranger(), &rules, &Trust::default()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Perm);

    let document = Document::parse(&signed, Reading::Strict);
    let verdict = verify(&document, &Trust::default(), &VerifyContext::at(now()));
    let mut trust = Trust::default();
    trust.pin(pin_of(&verdict, now()).unwrap()).unwrap();
    let taken = let_in(&signed, &Peer::stranger(), &rules, &trust).unwrap();
    assert_eq!(taken.arrival.pkid.as_deref(), Some("ann@acme.example"));
    assert_eq!(taken.arrival.text, signed);

    let altered = signed.replace("Hello.", "Hullo.");
    let refused = let_in(&altered, &Peer::local(), &rules, &trust).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Perm, "{refused:?}");
}

/// That a signature holds is not enough: anybody can make a key that holds.
#[test]
fn a_key_speaks_for_its_own_senders_alone() {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
    let did = key.public().to_did();
    let speaks = |pkid: &str, sender: &str, trust: &Trust, dns: Option<&DnsAnswer>| {
        let text = envelope(sender, "https://b.example/x", "NOTE", "");
        let at = now();
        let block = [];
        let signer = Signer {
            key: &key,
            pkid,
            at,
            key_block: &block,
        };
        let signed = signer
            .sign(&Document::parse(&text, Reading::Strict))
            .unwrap();
        let document = Document::parse(&signed, Reading::Strict);
        let question = VerifyContext {
            dns,
            ..VerifyContext::at(at)
        };
        let verdict = verify(&document, trust, &question);
        let peer = Peer::signer(&verdict, trust, sender);
        assert!(
            peer.as_ref()
                .is_none_or(|p| p.speaks_for(sender) && !p.speaks_for("human://x.example/y"))
        );
        (verdict.word() == VerdictWord::Verified, peer.is_some())
    };
    let nobody = Trust::default();
    // The id of the key is the key: it holds for everybody, and so proves nothing about the sender.
    assert_eq!(speaks(&did, "claude://a/b", &nobody, None), (true, false));
    let pinned = |id: &str| {
        let mut trust = Trust::default();
        let pin = KnownKey {
            id: id.into(),
            key: key.public(),
            since: now(),
            how: Origin::Manual,
            by: None,
            senders: vec!["claude://a/b".into()],
            standing: KeyStanding::Active,
            credential: None,
        };
        trust.pin(pin).unwrap();
        trust
    };
    for id in [did.as_str(), "ann@keys/1"] {
        assert_eq!(
            speaks(id, "claude://a/b", &pinned(id), None),
            (true, true),
            "{id}"
        );
        assert_eq!(
            speaks(id, "claude://a/c", &pinned(id), None),
            (true, false),
            "{id}"
        );
        assert_eq!(
            speaks(id, "human://acme.example/ann", &pinned(id), None),
            (true, false)
        );
    }
    // A domain vouches for keys, and they speak for addresses of this domain.
    let dns = DnsAnswer::Keys {
        keys: vec![key.public()],
        ttl: 60,
        dnssec: Dnssec::Insecure,
    };
    for (sender, may) in [
        ("human://acme.example/ann", true),
        ("claude://ACME.example/api", true),
        ("human://other.example/ann", false),
        ("human://acme.example.evil.example/ann", false),
        ("claude://a/b", false),
        ("ANN", false),
    ] {
        let spoken = speaks("ann@acme.example", sender, &nobody, Some(&dns));
        // What it says about a sender elsewhere binds nobody.
        assert_eq!(spoken, (may, may), "{sender}");
    }
}

#[test]
fn recipients_and_handlers() {
    let rules = RelayRules {
        routes: Routes {
            table: vec![
                Route {
                    to: Pattern::parse("claude://code/*").unwrap(),
                    by: Handler::Exec,
                    inside: false,
                    open: false,
                },
                Route {
                    to: Pattern::parse("claude://*").unwrap(),
                    by: Handler::Http,
                    inside: false,
                    open: false,
                },
                Route {
                    to: Pattern::parse("claude://code/mailed").unwrap(),
                    by: Handler::Email,
                    inside: false,
                    open: false,
                },
                Route {
                    to: Pattern::parse("email:*").unwrap(),
                    by: Handler::Email,
                    inside: false,
                    open: false,
                },
            ],
            bindings: Vec::new(),
            names: [("BOB".to_owned(), "claude://code/bob".to_owned())].into(),
            domains: vec!["here.example".into()],
            federates: true,
            refuses_unknown: false,
        },
        directory: Directory::new([
            Agent {
                address: "agent://a/x".into(),
                capabilities: vec!["SQL".into(), "python".into()],
            },
            Agent {
                address: "agent://a/y".into(),
                capabilities: vec!["sql".into()],
            },
        ]),
        escalate_to: Some("human://here.example/queue".into()),
        answer_within: None,
        consent: Policy::default(),
        holds: Vec::new(),
        listed: Default::default(),
    };
    let routing = |line: &str| format!("meta: routing\n{line}\n");
    for (intent, receiver, meta, recipients) in [
        (
            "REQUEST",
            "claude://code/api",
            String::new(),
            vec![("claude://code/api", Handler::Exec)],
        ),
        (
            "REQUEST",
            "claude://chat/7",
            String::new(),
            vec![("claude://chat/7", Handler::Http)],
        ),
        (
            "REQUEST",
            "claude://code/api",
            routing("X-Delivery: http"),
            vec![("claude://code/api", Handler::Http)],
        ),
        (
            "REQUEST",
            "claude://code/api",
            routing("X-Delivery: inbox"),
            vec![("claude://code/api", Handler::Inbox)],
        ),
        (
            "REQUEST",
            "claude://code/api",
            routing("X-Delivery: copy_paste"),
            vec![("claude://code/api", Handler::CopyPaste)],
        ),
        (
            "REQUEST",
            "claude://code/mailed",
            routing("X-Delivery: email"),
            vec![("claude://code/mailed", Handler::Email)],
        ),
        (
            "REQUEST",
            "email:bo@people.example",
            String::new(),
            vec![("email:bo@people.example", Handler::Email)],
        ),
        (
            "REQUEST",
            "bob",
            String::new(),
            vec![("claude://code/bob", Handler::Exec)],
        ),
        (
            "REQUEST",
            "EVE",
            String::new(),
            vec![("EVE", Handler::CopyPaste)],
        ),
        // The correction of a ballot is for those who count: nobody carries it to the electorate.
        (
            "RESPOND",
            "VOTERS",
            "meta: vote\nCorrects: A1\nChoice: Monday\n".to_owned(),
            vec![("VOTERS", Handler::Inbox)],
        ),
        (
            "RESPOND",
            "EVE",
            "meta: vote\nChoice: Monday\n".to_owned(),
            vec![("EVE", Handler::CopyPaste)],
        ),
        (
            "REQUEST",
            "agent://here.example/x",
            String::new(),
            vec![("agent://here.example/x", Handler::Inbox)],
        ),
        (
            "REQUEST",
            "agent://there.example/x",
            String::new(),
            vec![("agent://there.example/x", Handler::Relay)],
        ),
        (
            "REQUEST",
            "agent://127.0.0.1/x",
            String::new(),
            vec![("agent://127.0.0.1/x", Handler::Inbox)],
        ),
        (
            "ESCALATE",
            "claude://chat/7",
            String::new(),
            vec![("human://here.example/queue", Handler::Inbox)],
        ),
        (
            "ESCALATE",
            "human://here.example/ann",
            String::new(),
            vec![("human://here.example/ann", Handler::Inbox)],
        ),
        (
            "HANDOFF",
            "ANY",
            routing("X-Capabilities-Required: sql, Python"),
            vec![("agent://a/x", Handler::Inbox)],
        ),
        (
            "HANDOFF",
            "agent://a/y",
            routing("X-Capabilities-Required: sql"),
            vec![("agent://a/y", Handler::Inbox)],
        ),
        (
            "HANDOFF",
            "human://here.example/ann",
            routing("X-Capabilities-Required: sql"),
            vec![("human://here.example/ann", Handler::Inbox)],
        ),
        (
            "BROADCAST",
            "EVERYBODY",
            routing("Targets: agent://a/x, EVE, eve"),
            vec![("agent://a/x", Handler::Inbox), ("EVE", Handler::CopyPaste)],
        ),
    ] {
        let text = envelope("A", receiver, intent, &meta);
        let admission = locally(&text, &rules).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        assert_eq!(to(&admission), recipients, "{text}");
    }
    for receiver in ["agent://there.example/x", "email:bo@people.example"] {
        let policy = routing("X-Policy: no_third_party");
        let secret = envelope("A", receiver, "REQUEST", &policy);
        let refusal = locally(&secret, &rules).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Perm, "{receiver}");
    }
    let strict = RelayRules {
        routes: Routes {
            refuses_unknown: true,
            federates: false,
            ..rules.routes.clone()
        },
        ..rules
    };
    for (receiver, code) in [
        ("EVE", Some(ErrorCode::Route)),
        ("agent://there.example/x", Some(ErrorCode::Route)),
        ("bob", None),
    ] {
        let result = locally(&envelope("A", receiver, "NOTE", ""), &strict);
        assert_eq!(result.err().map(|r| r.code), code, "{receiver}");
    }
}

#[test]
fn earlier_messages_decide_too() {
    let rules = RelayRules {
        escalate_to: Some("human://x/q".into()),
        ..RelayRules::default()
    };
    let admitted = |intent: &str| locally(&envelope("A", "B", intent, ""), &rules).unwrap();
    let closed = Surroundings {
        closed: Some(now()),
        is_party: true,
        ..Surroundings::default()
    };
    for (intent, may) in [
        ("REQUEST", false),
        ("RESPOND", false),
        ("NOTE", false),
        ("CLOSE", false),
        ("ESCALATE", false),
        ("NACK", false),
        ("X-NEW", false),
        ("ACK", true),
    ] {
        let admission = admitted(intent);
        assert!(
            admission
                .rule(&Surroundings {
                    is_party: true,
                    ..Surroundings::default()
                })
                .is_ok()
        );
        let ruling = admission.rule(&closed);
        assert_eq!(ruling.is_ok(), may, "{intent}");
        assert!(ruling.is_ok() || ruling.unwrap_err().code == ErrorCode::Perm);
    }
    let error = envelope("A", "B", "ERROR", "meta: error\nCode: E-ROUTE\nReason: r\n");
    assert!(locally(&error, &rules).unwrap().rule(&closed).is_ok());

    let close = admitted("CLOSE");
    assert_eq!(
        close.closing(),
        Some(ConversationId::Thread("01M7C00000000000000000000T".into()))
    );
    assert_eq!(
        close.rule(&Surroundings::default()).unwrap_err().code,
        ErrorCode::Perm
    );
    let broadcast = Surroundings {
        answered: Some(Intent::Broadcast),
        ..Surroundings::default()
    };
    assert_eq!(
        admitted("RESPOND").rule(&broadcast).unwrap_err().code,
        ErrorCode::Perm
    );
    assert!(admitted("ACK").rule(&broadcast).is_ok());
    for (steward, sender, may) in [
        ("agent://c", "A", false),
        ("a", "A", true),
        ("agent://c", "human://x/y", true),
    ] {
        let facts = Surroundings {
            steward: Some(steward.into()),
            is_party: true,
            ..Surroundings::default()
        };
        let handoff = locally(&envelope(sender, "B", "HANDOFF", ""), &rules).unwrap();
        assert_eq!(handoff.rule(&facts).is_ok(), may, "{steward} {sender}");
    }
    let session = "[[A→B v1]]\nuser: u\nsession: 2025-10-09T16Z abc123\ncontext: c\nintent: CLOSE\nbody: |\n  x\nsig: none\n[[END]]\n";
    let closing = locally(session, &rules).unwrap().closing();
    assert_eq!(
        closing,
        Some(ConversationId::Session("2025-10-09T16Z abc123".into()))
    );
}

#[test]
fn an_answer_is_expected_until_a_deadline() {
    let later = Timestamp::parse("2026-11-16T09:00:00Z");
    let waiting = RelayRules {
        answer_within: Some(std::time::Duration::from_secs(60)),
        ..RelayRules::default()
    };
    let deadline = "meta: routing\nX-Priority: high\nX-Deadline: 2026-11-16T09:00:00Z\n";
    let asked = locally(&envelope("A", "B", "REQUEST", deadline), &waiting).unwrap();
    assert_eq!((asked.answer_by, asked.priority), (later, Priority::High));
    let asked = locally(&envelope("A", "B", "QUESTION", ""), &waiting).unwrap();
    assert_eq!(asked.answer_by, Timestamp::parse("2026-11-16T08:01:00Z"));
    assert_eq!(
        locally(&envelope("A", "B", "NOTE", deadline), &waiting)
            .unwrap()
            .answer_by,
        None
    );
    assert_eq!(
        locally(&envelope("A", "B", "REQUEST", ""), &RelayRules::default())
            .unwrap()
            .answer_by,
        None
    );
}

#[test]
fn hops_are_chained_and_signed_and_leave_the_message_alone() {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap();
    let hop_key = |pkid| Some(HopKey { key: &key, pkid });
    let routed = envelope("A", "B", "NOTE", "meta: routing\nX-Route: claude://a\n");
    let first = add_hop(&routed, now(), "one.example", hop_key("one.example")).unwrap();
    let second = add_hop(&first, now(), "two.example", hop_key("two.example")).unwrap();
    let digest = |text: &str| Document::parse(text, Reading::Strict).digest().unwrap();
    assert_eq!(digest(&routed), digest(&second));
    assert!(
        second.contains("X-Route: claude://a → one.example → two.example\n"),
        "{second}"
    );
    assert!(second.contains("Hop: 1\n") && second.contains("Hop: 2\n"));
    let check = |text: &str| check_hop(&Document::parse(text, Reading::Strict), &key.public());
    assert_eq!(check(&second).unwrap().received_by, "two.example");
    assert_eq!(check(&routed), Err(HopFault::None));
    for (old, new, fault) in [
        (
            "Received-By: two.example",
            "Received-By: evil.example",
            HopFault::Digest,
        ),
        ("Hop: 2", "Hop: 3", HopFault::Digest),
        ("  Hello.", "  Hullo.", HopFault::Digest),
        (
            "Hop-Signature: ed25519:pkid=two.example;sig=",
            "X-Gone: ",
            HopFault::Unsigned,
        ),
    ] {
        assert!(second.contains(old));
        let at = second.rfind(old).unwrap();
        let forged = format!("{}{}", &second[..at], second[at..].replacen(old, new, 1));
        assert_eq!(check(&forged), Err(fault), "{new}");
    }
    let other = PrivateKey::from_seed(Algorithm::Ed25519, &[8; 32])
        .unwrap()
        .public();
    let document = Document::parse(&second, Reading::Strict);
    assert_eq!(check_hop(&document, &other), Err(HopFault::Signature));
    // The digest of the first hop is what the second one goes on from.
    let blocks: Vec<_> = document
        .blocks()
        .filter(|b| b.namespace() == "audit")
        .collect();
    assert_eq!(
        blocks[1].get("Previous-Digest"),
        blocks[0].get("Hop-Digest")
    );
}

#[test]
fn a_message_that_goes_round_in_circles_is_stopped() {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap();
    let key = Some(HopKey {
        key: &key,
        pkid: "loop.example",
    });
    let mut text = envelope("A", "B", "NOTE", "");
    for hop in 0..HOPS {
        assert!(locally(&text, &RelayRules::default()).is_ok(), "hop {hop}");
        text = add_hop(&text, now(), "loop.example", key).unwrap();
    }
    let refusal = locally(&text, &RelayRules::default()).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Route);
    assert!(refusal.detail().contains("circles"));
}

#[test]
fn the_receipt_names_the_chain_unless_it_is_the_first() {
    let admission = locally(&envelope("A", "B", "REQUEST", ""), &RelayRules::default()).unwrap();
    for (chain, named) in [(0, None), (2, Some("relay.example/2#7"))] {
        let text = acknowledgement(&Receipted {
            arrival: &admission.arrival,
            ids: &admission.arrival.ids(),
            entry: LogPlace {
                chain: ChainId(chain),
                index: 7,
            },
            at: now(),
            by: "relay.example",
            is_held: false,
        });
        let mut document = Document::parse(&text, Reading::Strict);
        document.check();
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        assert_eq!(document.meta("receipt", "Index"), Some("7"));
        assert_eq!(document.meta("receipt", "Chain"), named);
    }
}

#[test]
fn the_same_message_gets_the_same_receipt() {
    let admission = locally(&envelope("A", "B", "REQUEST", ""), &RelayRules::default()).unwrap();
    let receipt = |at| {
        acknowledgement(&Receipted {
            arrival: &admission.arrival,
            ids: &admission.arrival.ids(),
            entry: LogPlace::first(7),
            at,
            by: "relay.example",
            is_held: false,
        })
    };
    let text = receipt(now());
    assert_eq!(text, receipt(now()));
    let mut document = Document::parse(&text, Reading::Strict);
    document.check();
    assert!(document.is_accepted(), "{:?}", document.diagnostics());
    assert_eq!((document.sender(), document.receiver()), ("B", "A"));
    assert_eq!(document.meta("receipt", "Index"), Some("7"));
    assert_eq!(
        document.meta("receipt", "Digest"),
        Some(admission.arrival.digest.to_string().as_str())
    );
    assert_eq!(
        document.envelope().parent,
        Some("01M7D00000000000000000000M")
    );
    assert_eq!(document.envelope().meaning(), Some(Intent::Ack));
    assert_ne!(
        text,
        receipt(Timestamp::parse("2026-11-16T08:00:01Z").unwrap())
    );
}

/// Addresses of tokens are inboxes; whoever carries is a person, for their own messages or where they were assigned.
#[test]
fn couriers_carry_only_their_messages() {
    let token = |name: &str, role, addresses: &[&str], courier: &[&str]| TokenRecord {
        name: name.into(),
        hash: Digest::of(name.as_bytes()),
        role,
        addresses: addresses.iter().map(|a| (*a).to_owned()).collect(),
        courier: courier.iter().map(|a| (*a).to_owned()).collect(),
        created_at: Timestamp::from_millis(0),
        expires_at: None,
        revoked_at: Some(Timestamp::from_millis(1)),
        last_used_at: None,
    };
    let tokens = [
        token("bob", Role::Person, &["BOB"], &[]),
        token("bot", Role::Agent, &["bot://*"], &[]),
        token("named", Role::Agent, &["HELPER"], &[]),
        token("star", Role::Agent, &["*"], &[]),
    ];
    let names = [
        ("HELPER".to_owned(), "helper://code/1".to_owned()),
        ("GPT".to_owned(), "chatgpt://thread/x".to_owned()),
    ];
    let rules = RelayRules {
        routes: Routes {
            names: names.into(),
            bindings: Binding::of(&tokens),
            ..Routes::default()
        },
        ..RelayRules::default()
    };
    let routes = &rules.routes;
    for (address, is_bound) in [
        ("BOB", true),
        ("bob", true),
        ("bot://x", true),
        ("HELPER", true),
        ("helper://code/1", true),
        ("helper://code/2", false),
        ("CHATGPT", false),
    ] {
        assert_eq!(routes.is_bound(address), is_bound, "{address}");
        let by = routes.choose(routes.named(address), None).unwrap();
        let is_name = Address::split(routes.named(address)).is_name();
        let is_carried = by == Handler::CopyPaste;
        assert_eq!(is_carried, is_name && !is_bound, "{address}");
        let asked = routes.choose(routes.named(address), Some("copy_paste"));
        assert_eq!(asked.is_err(), is_bound, "{address}");
    }
    let peer = |role, addresses: &[&str], courier: &[&str]| {
        let patterns = |texts: &[&str]| texts.iter().map(|t| Pattern::parse(t).unwrap()).collect();
        Peer {
            role,
            addresses: patterns(addresses),
            courier: patterns(courier),
            ..Peer::stranger()
        }
    };
    let ann = peer(Role::Person, &["ANN"], &[]);
    let carl = peer(Role::Person, &["CARL"], &["GPT", "BOB"]);
    let agent = peer(Role::Agent, &["*"], &["*"]);
    let admin = peer(Role::Admin, &[], &[]);
    for (who, sender, to, may) in [
        (&ann, "ANN", "GEMINI", true),
        (&ann, "EVE", "GEMINI", false),
        (&ann, "ANN", "BOB", false),
        (&carl, "EVE", "chatgpt://thread/x", true),
        (&carl, "EVE", "GPT", true),
        (&carl, "EVE", "BOB", false),
        (&carl, "EVE", "GEMINI", false),
        (&agent, "ANN", "GEMINI", false),
        (&admin, "EVE", "GEMINI", true),
        (&admin, "EVE", "BOB", false),
    ] {
        assert_eq!(rules.lets_carry(who, sender, to), may, "{sender} {to}");
    }
    // A `*` of an agent is nobody whom the token of a person names.
    assert!(!rules.lets_read(&agent, "bob") && rules.lets_read(&agent, "CHATGPT"));
    assert!(rules.lets_read(&peer(Role::Agent, &["BOB"], &[]), "bob"));
}

/// Who can be anybody neither spends the money of the operator nor runs their tools.
#[test]
fn strangers_reach_neither_phones_nor_tools() {
    let route = |to: &str, by, open| Route {
        to: Pattern::parse(to).unwrap(),
        by,
        inside: false,
        open,
    };
    let rules = RelayRules {
        routes: Routes {
            table: vec![
                route("tel:+1*", Handler::Sms, true),
                route("tel:*", Handler::Sms, false),
                route("human://here.example/ann", Handler::Sms, false),
                route("mcp://open@docs", Handler::Mcp, true),
                route("mcp://*", Handler::Mcp, false),
                route("claude://*", Handler::Exec, false),
                route("email:*", Handler::Email, false),
            ],
            names: [("BOB".to_owned(), "tel:+49151".to_owned())].into(),
            ..Routes::default()
        },
        escalate_to: Some("human://here.example/ann".into()),
        ..RelayRules::default()
    };
    let speaks = |name: &str, role| Peer {
        name: name.into(),
        role,
        addresses: vec![Pattern::parse("email:x@evil.example").unwrap()],
        ..Peer::stranger()
    };
    let domain = Peer {
        domain: Some("evil.example".into()),
        ..speaks("evil.example", Role::Agent)
    };
    let strangers = [
        speaks("mail:x@evil.example", Role::Agent),
        speaks("did:key:z6Mk", Role::Signer).without_token(),
        speaks("x@evil.example", Role::Signer).without_token(),
        domain.without_token(),
    ];
    let known = [
        speaks("ci", Role::Agent),
        speaks("x@evil.example", Role::Person).without_token(),
        Peer::local(),
    ];
    let sent = |peer: &Peer, to: &str, intent: &str, meta: &str| {
        let text = envelope("email:x@evil.example", to, intent, meta);
        let_in(&text, peer, &rules, &Trust::default())
    };
    let all = "meta: routing\nTargets: claude://code/a, tel:+49151\n";
    let asked = "meta: routing\nX-Delivery: sms\n";
    for (to, intent, meta, is_open) in [
        ("tel:+49151", "NOTE", "", false),
        ("tel:+49151", "RESPOND", "", false),
        ("TEL:+49151", "NOTE", asked, false),
        ("bob", "NOTE", "", false),
        ("EVERYBODY", "BROADCAST", all, false),
        ("claude://code/a", "ESCALATE", "", false),
        ("human://here.example/ann", "REQUEST", "", false),
        ("mcp://look@docs", "REQUEST", "", false),
        ("mcp://open@docs", "REQUEST", "", true),
        ("tel:+1555", "NOTE", "", true),
        ("claude://code/a", "REQUEST", "", true),
        ("email:ann@here.example", "NOTE", "", true),
        ("agent://a/b", "NOTE", "", true),
    ] {
        for peer in &strangers {
            let outcome = sent(peer, to, intent, meta).map(drop).map_err(|r| r.code);
            let wanted = is_open.then_some(()).ok_or(ErrorCode::Perm);
            assert_eq!(outcome, wanted, "{} {to} {intent}", peer.name);
        }
        for peer in &known {
            let outcome = sent(peer, to, intent, meta);
            assert!(outcome.is_ok(), "{} {to} {intent} {outcome:?}", peer.name);
        }
    }
}

/// An answer reaches whoever asked, whatever the way.
#[test]
fn only_an_answer_to_the_asker_counts_as_asked_for() {
    let rules = RelayRules {
        routes: Routes {
            table: vec![Route {
                to: Pattern::parse("tel:*").unwrap(),
                by: Handler::Sms,
                inside: false,
                open: false,
            }],
            names: [("BOB".to_owned(), "tel:+49151".to_owned())].into(),
            ..Routes::default()
        },
        ..RelayRules::default()
    };
    let sender = "email:x@evil.example";
    let stranger = Peer {
        name: "mail:x@evil.example".into(),
        addresses: vec![Pattern::exact(sender)],
        ..Peer::stranger()
    };
    let was_asked = |to: &str, intent: &str, asker: &str, went_to: &str| {
        let question = envelope(asker, went_to, "REQUEST", "");
        let question = question.replace("message: 01M7D", "message: 01M7B");
        let question = question.replace("000000000M\n", "000000000P\n");
        let (record, _) = record(1, &question);
        let way = Delivery::queued(went_to, Handler::Email, now());
        let text = envelope(sender, to, intent, "");
        let document = Document::parse(&text, Reading::Strict);
        let envelope = document.envelope();
        let is_asked = rules.was_asked(&envelope, &record, &[way]);
        let asks = rules.asks_whether_asked(&stranger, &envelope);
        assert!(asks || !is_asked, "{to} {intent}");
        assert!(!rules.asks_whether_asked(&Peer::local(), &envelope));
        let verdict = verify(&document, &Trust::default(), &VerifyContext::at(now()));
        let candidate = AdmissionCandidate {
            document: &document,
            verdict: &verdict,
            proof: Proof::default(),
            peer: &stranger,
            was_asked: is_asked,
            at: now(),
        };
        assert_eq!(admit(candidate, &rules).is_ok(), is_asked, "{to} {intent}");
        is_asked
    };
    assert!(was_asked("tel:+49151", "RESPOND", "tel:+49151", sender));
    assert!(was_asked(
        "bob",
        "ACK",
        "tel:+49151",
        "EMAIL:x@EVIL.example"
    ));
    assert!(was_asked("tel:+49151", "NACK", "BOB", sender));
    assert!(!was_asked("tel:+49152", "RESPOND", "tel:+49151", sender));
    assert!(!was_asked(
        "tel:+49151",
        "RESPOND",
        "tel:+49151",
        "email:y@evil.example"
    ));
    assert!(!was_asked("tel:+49151", "REQUEST", "tel:+49151", sender));
}

/// Else a program that answers every ERROR would get one for each answer, for ever.
#[test]
fn the_answer_to_an_error_is_rejected_in_silence() {
    let refusal = Rejection::new(ErrorCode::TooLarge, "It is too large.", "send less.");
    let told = |intent: &str, sender: &str| {
        let text = envelope(sender, "email:ann@acme.example", intent, "");
        let (question, _) = record(1, &text);
        rejected_answer(&question, "email:ann@acme.example", "A1", &refusal)
    };
    assert!(told("REQUEST", "BOT").is_some());
    for intent in ["ERROR", "ACK", "NACK", "BROADCAST"] {
        assert_eq!(told(intent, "BOT"), None, "{intent}");
    }
    assert_eq!(told("NOTE", "SYSTEM"), None);
}
