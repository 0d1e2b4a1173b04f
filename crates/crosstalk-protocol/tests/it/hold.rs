//! What waits for a person, and who decides.

use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::{
    Admission, AdmissionCandidate, DeliveryState, HeldMessage, Hold, HoldReason, Pattern, Peer,
    Recipient, RelayRules, Role, Routes, acknowledgement, admit,
};
use crosstalk_protocol::relay::{Handler, Receipted};
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{Trust, VerifyContext, verify};

fn now() -> Timestamp {
    Timestamp::parse("2026-11-16T08:00:00Z").unwrap()
}

fn peer(name: &str, role: Role, addresses: &[&str]) -> Peer {
    Peer {
        name: name.into(),
        role,
        addresses: addresses
            .iter()
            .map(|a| Pattern::parse(a).unwrap())
            .collect(),
        domain: None,
        courier: Vec::new(),
        is_local: false,
    }
}

fn let_in(from: &str, intent: &str, peer: &Peer, holds: Vec<Hold>) -> Admission {
    saying("", from, intent, peer, holds)
}

/// The same, with a block of metadata.
fn saying(block: &str, from: &str, intent: &str, peer: &Peer, holds: Vec<Hold>) -> Admission {
    let parent = match intent {
        "ERROR" | "ACK" => "parent: 01M7B00000000000000000000P\n",
        _ => "",
    };
    let meta = match intent {
        "ERROR" => "meta: error\nCode: E-PERM\nReason: no\n",
        _ => block,
    };
    let text = format!(
        "[[{from}→claude://code/api v1]]\nuser: u\nthread: 01M7C00000000000000000000T\n{parent}message: \
         01M7D00000000000000000000M\ncontext: c\nintent: {intent}\n{meta}body: |\n  Hello.\nsig: none\n[[END]]\n"
    );
    let mut document = Document::parse(&text, Reading::Strict);
    document.check();
    let verdict = verify(&document, &Trust::default(), &VerifyContext::at(now()));
    let candidate = AdmissionCandidate {
        document: &document,
        verdict: &verdict,
        proof: crosstalk_protocol::consent::Proof::default(),
        peer,
        was_asked: false,
        at: now(),
    };
    let rules = RelayRules {
        holds,
        ..RelayRules::default()
    };
    admit(candidate, &rules).unwrap()
}

fn everything() -> Hold {
    Hold {
        why: "all".into(),
        ..Hold::default()
    }
}

#[test]
fn messages_of_the_relay_and_of_people_are_not_held() {
    let agent = peer("relay", Role::Agent, &["*"]);
    let ann = peer(
        "ann",
        Role::Person,
        &["human://acme.example/ann", "bot://x"],
    );
    let human = "human://acme.example/ann";
    for (from, intent, peer, held) in [
        ("bot://x", "REQUEST", &agent, true),
        ("bot://x", "ERROR", &agent, true),
        ("bot://x", "ACK", &agent, true),
        ("bot://x", "ERROR", &Peer::itself(), false),
        ("bot://x", "ERROR", &Peer::local(), true),
        (human, "REQUEST", &ann, false),
        ("bot://x", "REQUEST", &ann, true),
    ] {
        let admission = let_in(from, intent, peer, vec![everything()]);
        assert_eq!(
            admission.held.is_some(),
            held,
            "{from} {intent} {}",
            peer.name
        );
    }
    let strict = Hold {
        people: true,
        ..everything()
    };
    assert!(let_in(human, "REQUEST", &ann, vec![strict]).held.is_some());
    assert!(let_in(human, "REQUEST", &ann, Vec::new()).held.is_none());
}

#[test]
fn the_first_rule_that_fits_counts() {
    let agent = peer("ci", Role::Agent, &["*"]);
    let rule = |why: &str, intent| Hold {
        why: why.into(),
        intents: vec![intent],
        deciders: vec![format!("human://acme.example/{why}")],
        ..Hold::default()
    };
    let rules = || {
        vec![
            rule("one", Intent::Handoff),
            rule("two", Intent::Request),
            everything(),
        ]
    };
    for (intent, why) in [("REQUEST", "two"), ("HANDOFF", "one"), ("BROADCAST", "all")] {
        let held = let_in("bot://x", intent, &agent, rules()).held.unwrap();
        assert_eq!(held.why, why);
        assert_eq!(held.deciders.is_empty(), why == "all");
    }
}

/// A scope has several names, and one that can't be read may be any.
#[test]
fn a_rule_holds_a_scope_under_every_name_of_it() {
    let agent = peer("ci", Role::Agent, &["*"]);
    for (scope, said, held) in [
        ("medical", "Scope: medical", true),
        ("medical", "Scope: PHI", true),
        ("phi", "Scope: general, Medical", true),
        ("medical", "Scope: financial", false),
        ("medical", "PII: present", false),
        ("pii", "PII: present", true),
        ("PII", "PII: Present", true),
        ("pii", "PII: redacted", false),
        ("pii", "Scope: pii", true),
        ("medical", "Scope: [medical", true),
        ("financial", "Scope: [[medical]]", true),
        ("location", "Scope: {medical: yes}", true),
        ("general", "Scope: [medical", false),
        ("medical", "Scope: [general, phi]", true),
        ("custom", "Scope: shoe-size", true),
        ("custom", "Scope: medical", false),
        ("medical", "Scope: custom", false),
    ] {
        let hold = Hold {
            scopes: vec![scope.into()],
            ..everything()
        };
        let block = format!("\nmeta: privacy\nConsent: explicit_yes\n{said}\n\n");
        let admission = saying(&block, "bot://x", "REQUEST", &agent, vec![hold]);
        assert_eq!(admission.held.is_some(), held, "{scope}: {said}");
    }
}

#[test]
fn the_receipt_says_that_it_waits() {
    let agent = peer("ci", Role::Agent, &["*"]);
    let admission = let_in("bot://x", "REQUEST", &agent, vec![everything()]);
    for (is_held, state) in [(true, Some("held")), (false, None)] {
        let text = acknowledgement(&Receipted {
            arrival: &admission.arrival,
            ids: &admission.arrival.ids(),
            entry: LogPlace::first(7),
            at: now(),
            by: "relay.example",
            is_held,
        });
        let mut document = Document::parse(&text, Reading::Strict);
        document.check();
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        assert_eq!(document.meta("receipt", "State"), state);
        assert_eq!(document.meta("receipt", "Index"), Some("7"));
    }
}

fn waiting(from: &str, by: &str, deciders: &[&str]) -> HeldMessage {
    let agent = peer(by, Role::Agent, &["*"]);
    let admission = let_in("bot://x", "REQUEST", &agent, Vec::new());
    let a = admission.arrival.as_ref().clone();
    HeldMessage {
        raw: a.digest,
        recipients: vec![Recipient {
            address: "claude://code/api".into(),
            by: Handler::Exec,
        }],
        peer: by.into(),
        held: HoldReason {
            why: "all".into(),
            deciders: deciders.iter().map(|d| (*d).to_owned()).collect(),
        },
        answer_by: None,
        decided: None,
        record: Record {
            sender: from.into(),
            ..Record::pending(a, 1, "T".into())
        },
    }
}

/// Threat 38: whose credential decides about what.
#[test]
fn deciders_of_a_held_message() {
    let ann = "human://acme.example/ann";
    let agent = peer("ci", Role::Agent, &["*"]);
    let wild = peer("wild", Role::Person, &["*"]);
    let person = peer("ann", Role::Person, &[ann, "bot://x"]);
    let other = peer("bob", Role::Person, &["human://acme.example/bob"]);
    let admin = peer("ops", Role::Admin, &[]);
    let relay = Peer {
        domain: Some("acme.example".into()),
        ..peer("acme.example", Role::Agent, &[])
    };
    let plain = || waiting("bot://x", "ci", &[]);
    for (held, peer, may) in [
        (plain(), &agent, false),
        (plain(), &relay, false),
        (plain(), &Peer::stranger(), false),
        (plain(), &person, true),
        (plain(), &other, true),
        (plain(), &admin, true),
        (plain(), &Peer::local(), true),
        (waiting("bot://x", "ann", &[]), &person, false),
        (waiting("bot://x", "ops", &[]), &admin, false),
        (waiting("bot://x", "local", &[]), &Peer::local(), true),
        (waiting(ann, "phone", &[]), &person, false),
        (waiting(ann, "phone", &[]), &wild, false),
        (waiting(ann, "phone", &[]), &other, true),
        (waiting("bot://x", "ci", &[ann]), &person, true),
        (waiting("bot://x", "ci", &[ann]), &other, false),
        (waiting("bot://x", "ci", &[ann]), &admin, true),
        (waiting("bot://x", "ci", &[ann]), &agent, false),
    ] {
        let own = Routes::default().of_person(&held.record.sender);
        let came = held.may_be_decided_by(peer, &own);
        assert_eq!(came.is_ok(), may, "{} {:?}", peer.name, held.held.deciders);
        if let Err(refusal) = came {
            assert!(
                refusal.detail().contains("What to do"),
                "{}",
                refusal.detail()
            );
        }
    }
    assert_eq!(plain().deliveries()[0].state, DeliveryState::Held);
}
