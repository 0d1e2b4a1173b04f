//! Who revokes what, and what they and others are told (threat 21).

use super::{ANN, KEY, as_revoke, from_ann, plan, revoke};
use crate::house::{House, Plan, START, key, letter, secret, signed};
use crate::http::{Answer, Ask};
use crate::storage::Storage;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading};
use crosstalk_protocol::relay::{DeliveryState, Peer, Retention, Role};
use crosstalk_testing::wait::{wait_for, wait_until};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

const BOT: &str = "agent://here.example/bot";
const SCOUT: &str = "agent://here.example/scout";

fn grant(id: &str, consent: &str) -> String {
    grant_to(BOT, id, consent)
}

fn grant_to(to: &str, id: &str, consent: &str) -> String {
    from_ann(to, id)
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "explicit_yes_2025-10-09T16:00Z")
        .meta("privacy", "Consent-ID", consent)
        .build()
        .unwrap()
}

/// A message of a recipient of the consent to another one.
fn under(consent: &str) -> String {
    letter(BOT, SCOUT, "M2")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Consent-ID", consent)
        .build()
        .unwrap()
}

/// The inbox of somebody, once there is something in it.
fn inbox_with(house: &House, address: &str, what: &str) -> String {
    wait_for(what, || {
        let inbox = house.get(&format!("/crosstalk/inbox?for={address}"));
        let text = inbox.text();
        text.contains(what).then(|| text.to_owned())
    })
}

fn rule(answer: &Answer) -> String {
    let document = Document::parse(answer.text(), Reading::Strict);
    document.meta("error", "Rule").unwrap_or("taken").to_owned()
}

fn holds(house: &House, consent: &str) -> bool {
    let grant = house.store().grant(consent).unwrap().unwrap();
    grant.revoked.is_none()
}

fn mallory() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap()
}

/// Only the granter revokes a consent, with a signature that counts. A rejected REVOKE changes nothing.
#[test]
fn only_the_granter_revokes_a_consent() {
    const MALLORY: &str = "human://here.example/mallory";
    let house = plan()
        .pin("mallory@here.example", &mallory(), MALLORY)
        .token("ann", Role::Person, &[ANN])
        .token("mallory", Role::Person, &[MALLORY])
        .token("wild", Role::Agent, &["*"])
        .open();
    let sent = house.ask(&Ask::send(grant("M1", "C1")).token(&secret("ann")));
    assert_eq!(sent.status, 200, "{}", sent.text());
    let own = as_revoke(from_ann(BOT, "R1").meta("revocation", "Consent-ID", "C1"));
    let theirs = letter(MALLORY, BOT, "R1").meta("revocation", "Consent-ID", "C1");
    let theirs = as_revoke(theirs);
    let to_a_name = as_revoke(from_ann("BOT", "R1").meta("revocation", "Consent-ID", "C1"));
    let cases = [
        ("unsigned", own.clone(), "ann", "INT-012"),
        (
            "by another",
            signed(&theirs, &mallory(), "mallory@here.example"),
            "mallory",
            "CON-032",
        ),
        (
            "in the name of Ann",
            signed(&own, &mallory(), "mallory@here.example"),
            "mallory",
            "TRU",
        ),
        (
            "to a name, good for anybody",
            signed(&to_a_name, &key(), KEY),
            "ann",
            "CON-031",
        ),
    ];
    for (about, text, token, wanted) in cases {
        let answer = house.ask(&Ask::send(&text).token(&secret(token)));
        assert_eq!(answer.status, 403, "{about}: {}", answer.text());
        if wanted != "TRU" {
            assert_eq!(rule(&answer), wanted, "{about}: {}", answer.text());
        }
        assert!(holds(&house, "C1"), "{about}");
        let path = format!("/crosstalk/inbox?for={BOT}");
        let inbox = house.ask(&Ask::get(&path).token(&secret("wild")));
        assert!(inbox.text().contains("Are they ripe?"), "{about}");
    }
    let answer = house.ask(&Ask::send(revoke("C1", BOT, "R2")).token(&secret("ann")));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!holds(&house, "C1"));
}

/// A key that came by first contact revokes nothing, unless the person at this machine hands it in.
#[test]
fn first_contact_revokes_nothing() {
    let (keys, id) = (mallory(), "ann@here.example");
    let announced = |text: &str| {
        let document = Document::parse(text, Reading::Strict);
        let public = keys.public().record();
        let block = [("Key-ID", id.to_owned()), ("Public-Key", public)];
        let signer = crosstalk_envelope::signing::Signer {
            key: &keys,
            pkid: id,
            at: crosstalk_envelope::Timestamp::from_millis(crate::house::START),
            key_block: &block,
        };
        signer.sign(&document).unwrap()
    };
    let house = Plan::default()
        .config("name = \"here.example\"")
        .token("ann", Role::Person, &[ANN])
        .open();
    let first = house.ask(&Ask::send(announced(&grant("M1", "C1"))).token(&secret("ann")));
    assert_eq!(first.status, 200, "{}", first.text());
    let unsigned = as_revoke(from_ann(BOT, "R1").meta("revocation", "Consent-ID", "C1"));
    let answer = house.ask(&Ask::send(signed(&unsigned, &keys, id)).token(&secret("ann")));
    assert_eq!(
        (answer.status, rule(&answer).as_str()),
        (403, "CON-031"),
        "{}",
        answer.text()
    );
    assert!(holds(&house, "C1"));
}

/// The relay cancels queued messages and tells their senders; the party that revoked the consent gets a confirmation.
#[test]
fn revocation_is_confirmed_and_told() {
    let house = plan().open();
    house.take(&grant("M1", "C1"));
    // A message under the consent reaches a new recipient only after Ann has granted the consent to them.
    let answer = house.ask(&Ask::send(under("C1")));
    assert_eq!((answer.status, rule(&answer)), (403, "CON-025".to_owned()));
    house.take(&grant_to(SCOUT, "M3", "C1"));
    house.take(&under("C1"));
    house.take(&revoke("C1", BOT, "R1"));
    let confirmation = inbox_with(&house, ANN, "meta: withdrawal");
    for line in [
        "Consents: C1",
        "Erased: 3",
        "Cancelled: 3",
        "Passed-On: 0",
        "parent: R1",
    ] {
        assert!(confirmation.contains(line), "{line}: {confirmation}");
    }
    let told = inbox_with(&house, BOT, "intent: ERROR");
    for line in ["Code: E-CONSENT", "parent: M2"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // The deliveries failed for want of consent. Their texts are erased, so nobody can queue them again.
    let mut store = house.store();
    for id in ["M1", "M2", "M3"] {
        let deliveries = store.deliveries(id).unwrap();
        assert_eq!(deliveries.len(), 1, "{id}");
        let (state, reason) = (deliveries[0].state, deliveries[0].reason.as_deref());
        assert_eq!(state, DeliveryState::Failed, "{id}");
        assert!(reason.unwrap().starts_with("E-CONSENT"), "{id}: {reason:?}");
        assert_eq!(store.requeue(id, house.relay.now()).unwrap(), 0, "{id}");
    }
    assert!(store.dead_letters(10).unwrap().is_empty());
}

/// A relay that ended right after it took a REVOKE tells everybody about it when it starts again, each once.
#[test]
fn queued_notice_outlives_the_relay() {
    let data = tempfile::tempdir().unwrap();
    let clock = Arc::new(AtomicI64::new(START));
    let relay = plan().start(data.path(), &clock);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        for text in [
            grant("M1", "C1"),
            grant_to(SCOUT, "M3", "C1"),
            under("C1"),
            revoke("C1", BOT, "R1"),
        ] {
            let received = relay.take_in(&text, &Peer::local()).await;
            assert_eq!(received.status(), 200, "{}", received.answer());
        }
        relay.stop().await;
    });
    drop(relay);
    let mut house = House::open(plan(), data).unwrap();
    for _ in 0..2 {
        let told = inbox_with(&house, BOT, "Code: E-CONSENT");
        assert_eq!(told.matches("parent: M2").count(), 1, "{told}");
        let told = inbox_with(&house, ANN, "meta: withdrawal");
        assert_eq!(told.matches("meta: withdrawal").count(), 1, "{told}");
        let store = house.store();
        wait_until("everything is said", || {
            store.notices(1).unwrap().is_empty()
        });
        drop(store);
        house = House::open(plan(), house.close()).unwrap();
    }
}

/// An authority revokes a token, which ends before the answer comes.
#[test]
fn a_permission_ends_at_once() {
    let house = plan()
        .config("[consent]\nauthorities = [\"human://here.example/ann\"]")
        .token("ann", Role::Person, &[ANN])
        .token("ci", Role::Agent, &[BOT])
        .open();
    let look = Ask::get(&format!("/crosstalk/inbox?for={BOT}")).token(&secret("ci"));
    assert_eq!(house.ask(&look).status, 200);
    let text = as_revoke(from_ann(BOT, "R1").meta("revocation", "Permission", "token:ci"));
    let answer = house.ask(&Ask::send(signed(&text, &key(), KEY)).token(&secret("ann")));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(house.ask(&look).status, 401);
}

/// `no_third_party` stays inside, unless the route does: no program gets it, and nobody of another organisation by any way.
#[test]
fn text_that_must_not_leave_stays() {
    let routes = "[[route]]\nto = \"agent://here.example/out\"\nby = \"exec\"\ncommand = [\"true\"]\n\
                  [[route]]\nto = \"agent://here.example/in\"\nby = \"exec\"\ncommand = [\"true\"]\ninside = true\n\
                  [[route]]\nto = \"human://friend.example/*\"\nby = \"inbox\"\ninside = true\n\
                  [[route]]\nto = \"email:in@here.example\"\nby = \"email\"\ninside = true\n\
                  [[route]]\nto = \"email:*\"\nby = \"email\"\n[email]\ndomain = \"here.example\"\n\
                  [email.out]\nhost = \"127.0.0.1\"\n";
    let house = plan().config(routes).open();
    let plain = "no_third_party";
    for (number, (to, policy, wanted)) in [
        ("agent://here.example/out", plain, "CON-012"),
        ("agent://here.example/in", plain, "taken"),
        ("agent://here.example/box", plain, "taken"),
        ("agent://session/box", plain, "taken"),
        ("human://partner.example/joe", plain, "CON-012"),
        ("human://friend.example/joe", plain, "taken"),
        ("email:joe@here.example", plain, "CON-012"),
        ("email:in@here.example", plain, "taken"),
        // However it is written; what can't be read may say it.
        ("agent://here.example/out", "No_Third_Party", "CON-012"),
        (
            "agent://here.example/out",
            "ok_to_cache, NO-THIRD-PARTY.",
            "CON-012",
        ),
        ("agent://here.example/out", "[\"no_third_party\"", "CON-012"),
        (
            "agent://here.example/out",
            "[[\"no_third_party\"]]",
            "CON-012",
        ),
        ("agent://here.example/out", "[ok_to", "CON-012"),
        ("agent://here.example/out", "{a: b}", "CON-012"),
        ("agent://here.example/out", "[ok_to_cache]", "taken"),
        ("agent://here.example/out", "ok_to_cache", "taken"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = from_ann(to, &format!("M{number}")).meta("routing", "X-Policy", policy);
        let answer = house.ask(&Ask::send(text.build().unwrap()));
        assert_eq!(rule(&answer), wanted, "{to} {policy}");
    }
    let spelled = from_ann("agent://here.example/out", "S1").meta("routing", "x-policy", plain);
    let answer = house.ask(&Ask::send(spelled.build().unwrap()));
    assert_eq!(rule(&answer), "CON-012");
    let carried = from_ann("human://partner.example/joe", "C1")
        .meta("routing", "X-Policy", plain)
        .meta("routing", "X-Delivery", "copy_paste");
    let answer = house.ask(&Ask::send(carried.build().unwrap()));
    assert_eq!(
        (rule(&answer), answer.code()),
        ("CON-012".into(), "E-PERM".into())
    );
}

/// Erases until these messages are gone. The store leaves messages for later that are not indexed yet, and the relay itself
/// erases, too.
fn retire_all(store: &mut Storage, what: &Retention, gone: &[&str]) {
    wait_until(&format!("{gone:?} erased"), || {
        store.retire(what).unwrap();
        gone.iter().all(|id| store.record(id).unwrap().is_none())
    });
}

/// A sensitive message is erased some time after it was acknowledged, unless it may be kept.
#[test]
fn sensitive_texts_are_not_kept_for_long() {
    let house = plan().open();
    for (id, policy) in [("M1", Some("ok_to_cache")), ("M2", None), ("M3", None)] {
        let mut letter = from_ann(BOT, id).meta("privacy", "Scope", "medical").meta(
            "privacy",
            "Consent",
            "explicit_yes",
        );
        if let Some(policy) = policy {
            letter = letter.meta("routing", "X-Policy", policy);
        }
        house.take(&letter.build().unwrap());
    }
    house.inbox(BOT);
    let now = house.relay.now();
    let mut store = house.store();
    let read = ["M1".to_owned(), "M3".to_owned()];
    store
        .mark(BOT, &read, DeliveryState::Acknowledged, now)
        .unwrap();
    house.later(3600);
    let later = house.relay.now();
    let what = Retention {
        before: None,
        now: later,
        brief_before: Some(later),
        limit: 10,
    };
    retire_all(&mut store, &what, &["M3"]);
    for id in ["M1", "M2"] {
        assert!(store.record(id).unwrap().is_some(), "{id}");
    }
}

/// Whoever asks later what was agreed to needs the signed text.
#[test]
fn signed_grant_is_kept_as_long_as_its_consent_holds() {
    let house = plan().open();
    let named = signed(&grant("M1", "health"), &key(), KEY);
    // Of a consent without a name of its own, the message is the data as well.
    let nameless = from_ann(BOT, "M2")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "explicit_yes");
    let nameless = signed(&nameless.build().unwrap(), &key(), KEY);
    for text in [&named, &nameless, &grant("M3", "unsigned")] {
        house.take(text);
    }
    house.inbox(BOT);
    let mut store = house.store();
    let ids = ["M1", "M2", "M3"].map(str::to_owned);
    let now = house.relay.now();
    store
        .mark(BOT, &ids, DeliveryState::Acknowledged, now)
        .unwrap();
    house.later(3600);
    let later = house.relay.now();
    let what = Retention {
        before: None,
        now: later,
        brief_before: Some(later),
        limit: 10,
    };
    retire_all(&mut store, &what, &["M2", "M3"]);
    assert_eq!(store.record("M1").unwrap().unwrap().text, named);
    house.take(&revoke("health", BOT, "R1"));
    assert!(house.store().record("M1").unwrap().is_none());
}

/// A text that is gone can't be delivered any more: its dead letter is no work for the operator.
#[test]
fn erased_messages_are_no_dead_letters() {
    let house = plan().open();
    house.take(&signed(&grant("M1", "health"), &key(), KEY));
    house.inbox(BOT);
    let now = house.relay.now();
    let mut store = house.store();
    let failed = store.mark(BOT, &["M1".to_owned()], DeliveryState::Failed, now);
    assert_eq!(failed.unwrap().len(), 1);
    assert_eq!(store.dead_letters(9).unwrap().len(), 1);
    assert_eq!(store.gauges().unwrap().dead_letters, 1);
    house.take(&revoke("health", BOT, "R1"));
    assert!(store.dead_letters(9).unwrap().is_empty());
    assert_eq!(store.gauges().unwrap().dead_letters, 0);
}

/// A store that was restored takes revocations over from a newer one: texts go, and the time is that of the REVOKE.
#[test]
fn revocation_of_a_newer_ledger_is_adopted_with_its_time() {
    use crosstalk_envelope::Timestamp;
    use crosstalk_protocol::consent::Revocation;
    let house = plan().open();
    house.take(&signed(&grant("M1", "health"), &key(), KEY));
    house.inbox(BOT);
    let mut store = house.store().own();
    let revocation = Revocation {
        at: Timestamp::from_millis(START - 5000),
        by: ANN.into(),
        message: "R1".into(),
        reason: None,
    };
    let now = house.relay.now();
    let done = store.adopt_revocation("health", &revocation, now).unwrap();
    assert_eq!(done.unwrap().erased.len(), 1);
    let known = store.grant("health").unwrap().unwrap();
    assert_eq!(known.revoked, Some(revocation.clone()));
    assert!(store.record("M1").unwrap().is_none());
    let again = store.adopt_revocation("health", &revocation, now).unwrap();
    assert!(again.unwrap().erased.is_empty());
    assert!(
        store
            .adopt_revocation("no", &revocation, now)
            .unwrap()
            .is_none()
    );
}
