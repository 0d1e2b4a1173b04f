//! Who counts as whom at a relay that runs, and what keys a relay learns.

mod system;
mod table;

use crate::dns::Domains;
use crate::house::{House, Plan, START, key, letter, pinned, secret, signed, text};
use crate::http::{Answer, Ask, strict};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::relay::Role;
use crosstalk_protocol::{KeyStanding, Origin, Trust};
use crosstalk_relay::port::Keyring;
use crosstalk_testing::wait::wait_until;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

pub fn new_key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Ed25519).unwrap()
}

/// A message with a signature and the key that made it.
pub fn introduced(text: &str, key: &PrivateKey, pkid: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let record = key.public().record();
    let signer = Signer {
        key,
        pkid,
        at: Timestamp::from_millis(START),
        key_block: &[("Key-ID", pkid.into()), ("Public-Key", record)],
    };
    signer.sign(&document).unwrap()
}

/// The REVOKE of a key by itself.
pub fn key_revoke(from: &str, id: &str, key: &PrivateKey, pkid: &str) -> String {
    let note = letter(from, "bot://here.example/all", id)
        .meta("revocation", "Key-ID", pkid)
        .meta("revocation", "Reason", "it was stolen")
        .intent("BROADCAST");
    let text = note.build().unwrap();
    introduced(
        &text.replace("intent: BROADCAST", "intent: REVOKE"),
        key,
        pkid,
    )
}

fn as_token(house: &House, name: &str, text: &str) -> Answer {
    house.ask(&Ask::send(text).token(&secret(name)))
}

/// Whether the ACK says that the message waits for a person.
pub fn is_held(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text());
    strict(answer.text()).meta("receipt", "State") == Some("held")
}

fn sensitive(letter: Builder) -> String {
    letter
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "explicit_yes")
        .build()
        .unwrap()
}

const BOT: &str = "bot://here.example/b";
const TO: &str = "bot://here.example/to";

#[test]
fn self_made_did_key_is_first_contact() {
    let config = "name = \"here.example\"\nfirst_contact = \"note\"\n[consent]\nsigned = [\"*\"]\n\
                  [[hold]]\nsignature = [\"first-contact\", \"unsigned\", \"unknown-key\"]\n";
    let did = key().public().to_did();
    let message = signed(&text(BOT, TO, "M1"), &key(), &did);
    let consent = signed(&sensitive(letter(BOT, TO, "M2")), &key(), &did);
    let plan = || {
        let plan = Plan::default().config(config);
        plan.token("b", Role::Agent, &[BOT])
            .token("ops", Role::Admin, &["*"])
    };
    let house = plan().open();
    assert!(is_held(&as_token(&house, "b", &message)));
    let refused = as_token(&house, "b", &consent);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "E-CONSENT")
    );
    // A key that was pinned for somebody else is no better.
    let house = plan().pin(&did, &key(), "bot://here.example/c").open();
    assert!(is_held(&as_token(&house, "b", &message)));
    assert_eq!(as_token(&house, "b", &consent).status, 403);
    // Pinned for this sender it is.
    let house = plan().pin(&did, &key(), BOT).open();
    assert!(!is_held(&as_token(&house, "b", &message)));
    assert_eq!(as_token(&house, "b", &consent).status, 200);
}

#[test]
fn only_a_token_or_a_pin_of_the_operator_makes_a_person() {
    let hold = "name = \"here.example\"\n[federation]\nenabled = true\naccept = true\n[[hold]]\nto = [\"*\"]\n";
    let (eve, ann, bea) = (new_key(), new_key(), new_key());
    let (eves, anns, beas) = (
        "human://evil.example/eve",
        "human://here.example/ann",
        "human://here.example/bea",
    );
    let names = Domains::default().list("evil.example", &eve);
    let house = Plan::default()
        .config(hold)
        .resolver(Arc::new(names))
        .token("ann", Role::Person, &[anns])
        .pin("ann-key", &ann, anns)
        .pin_as(Origin::FirstContact, "bea-key", &bea, beas)
        .open();
    let by = |key, pkid: &str, from: &str, id: &str| signed(&text(from, TO, id), key, pkid);
    let vouched = house.ask(&Ask::send(by(&eve, "eve@evil.example", eves, "M1")));
    assert!(is_held(&vouched), "a domain makes no people");
    let met = house.ask(&Ask::send(by(&bea, "bea-key", beas, "M2")));
    assert!(is_held(&met), "nor does a first contact");
    let pinned = house.ask(&Ask::send(by(&ann, "ann-key", anns, "M3")));
    assert!(!is_held(&pinned));
    assert!(!is_held(&as_token(&house, "ann", &text(anns, TO, "M4"))));
}

#[test]
fn key_ids_are_per_sender_at_first_contact() {
    let (squatter, hr) = ("bot://here.example/x", "bot://here.example/hr");
    let house = Plan::default()
        .config("name = \"here.example\"")
        .token("x", Role::Agent, &[squatter])
        .token("hr", Role::Agent, &[hr])
        .open();
    let (first, second) = (new_key(), new_key());
    let id = "hr-department";
    let send = |name, from, number: &str, key| {
        let text = introduced(&text(from, TO, number), key, id);
        as_token(&house, name, &text).status
    };
    assert_eq!(send("x", squatter, "X1", &first), 200);
    assert_eq!(send("hr", hr, "H1", &second), 200, "the id is not taken");
    // Both are pinned now, each for its own sender.
    let stranger = |from, number: &str, key| {
        let text = introduced(&text(from, TO, number), key, id);
        house.ask(&Ask::send(text)).status
    };
    assert_eq!(stranger(squatter, "X2", &first), 200);
    assert_eq!(stranger(hr, "H2", &second), 200);
    assert_ne!(stranger(hr, "X3", &first), 200);
    assert_eq!(send("hr", hr, "H3", &first), 403, "its key is known");
}

/// Trust that can be told to fail or to wait.
#[derive(Default)]
struct Shelf {
    trust: Mutex<Trust>,
    is_broken: AtomicBool,
    writes: AtomicUsize,
    /// Whether whoever writes has to wait.
    closed: Mutex<bool>,
    opens: Condvar,
}

impl Shelf {
    fn close(&self, is_closed: bool) {
        *self.closed.lock().unwrap() = is_closed;
        self.opens.notify_all();
    }
}

struct Handle(Arc<Shelf>);

impl Keyring for Handle {
    fn read(&self) -> Result<Trust, String> {
        Ok(self.0.trust.lock().unwrap().clone())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        let closed = self.0.closed.lock().unwrap();
        drop(self.0.opens.wait_while(closed, |c| *c).unwrap());
        let mut trust = self.0.trust.lock().unwrap();
        let mut after = trust.clone();
        change(&mut after);
        if self.0.is_broken.load(Ordering::SeqCst) {
            return Err("the disk is full".into());
        }
        *trust = after.clone();
        Ok(after)
    }
}

/// A relay with three agents, and where it keeps its keys.
fn shelved() -> (House, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    let house = Plan::default()
        .config("name = \"here.example\"")
        .keyring(Box::new(Handle(Arc::clone(&shelf))))
        .token("flood", Role::Agent, &["bot://flood.here/*"])
        .token("b", Role::Agent, &[BOT])
        .token("c", Role::Agent, &["bot://here.example/c"])
        .open();
    (house, shelf)
}

#[test]
fn revocation_of_a_key_is_never_acknowledged_and_lost() {
    let (house, shelf) = shelved();
    let key = new_key();
    let pin = pinned("b-key", &key, BOT);
    shelf.trust.lock().unwrap().pin(pin).unwrap();
    house.relay.reload_keys();
    let revoke = key_revoke(BOT, "R1", &key, "b-key");
    shelf.is_broken.store(true, Ordering::SeqCst);
    let refused = as_token(&house, "b", &revoke);
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(!refused.text().contains("disk"), "{}", refused.text());
    shelf.is_broken.store(false, Ordering::SeqCst);
    let taken = as_token(&house, "b", &revoke);
    assert_eq!(taken.status, 200, "{}", taken.text());
    let standing = shelf.trust.lock().unwrap().keys()[0].standing.clone();
    assert!(matches!(standing, KeyStanding::Revoked { .. }));
    let after = signed(&text(BOT, TO, "M1"), &key, "b-key");
    assert_eq!(as_token(&house, "b", &after).status, 403);
}

#[test]
fn approved_revocation_of_a_key_is_recorded_or_said_not_to_be() {
    let shelf = Arc::new(Shelf::default());
    let key = new_key();
    let pin = pinned("b-key", &key, BOT);
    shelf.trust.lock().unwrap().pin(pin).unwrap();
    let house = Plan::default()
        .config("name = \"here.example\"\n[[hold]]\nintents = [\"REVOKE\"]\n")
        .keyring(Box::new(Handle(Arc::clone(&shelf))))
        .token("b", Role::Agent, &[BOT])
        .token("ann", Role::Person, &["human://here.example/ann"])
        .open();
    assert!(is_held(&as_token(
        &house,
        "b",
        &key_revoke(BOT, "R1", &key, "b-key")
    )));
    let ask = |ask: Ask| house.ask(&ask.token(&secret("ann")).accept("application/json"));
    let held = ask(Ask::get("/crosstalk/approvals/R1")).json();
    let wish =
        serde_json::json!({"digest": held["digest"], "raw": held["raw"], "decision": "approve"});
    let approve = || ask(Ask::json("POST", "/crosstalk/approvals/R1", &wish)).status;
    shelf.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(approve(), 503);
    shelf.is_broken.store(false, Ordering::SeqCst);
    assert_eq!(approve(), 409, "it is approved already, and now recorded");
    let standing = shelf.trust.lock().unwrap().keys()[0].standing.clone();
    assert!(matches!(standing, KeyStanding::Revoked { .. }));
}

#[test]
fn first_contacts_are_bounded_per_credential() {
    const FLOOD: usize = 400;
    let (house, shelf) = shelved();
    let mut line = house.line();
    let mut send = |name: &str, from: &str, id: &str| {
        let text = introduced(&text(from, TO, id), &new_key(), "k");
        let answer = Ask::send(text).token(&secret(name)).on(&mut line);
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for number in 0..FLOOD {
        let from = format!("bot://flood.here/{number}");
        send("flood", &from, &format!("F{number}"));
    }
    let kept = shelf.trust.lock().unwrap().keys().len();
    assert_eq!(kept, 256);
    assert_eq!(
        shelf.writes.load(Ordering::SeqCst),
        kept,
        "no more was written"
    );
    send("b", BOT, "B1");
    let kept = shelf.trust.lock().unwrap().keys().len();
    assert_eq!(kept, 257, "others are not kept out");
}

/// Lets the senders go on, also when the test fails.
struct OpensAtTheEnd<'s>(&'s Shelf);

impl Drop for OpensAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.close(false);
    }
}

#[test]
fn slow_keyring_does_not_stop_the_relay() {
    const SENDERS: usize = 8;
    let (house, shelf) = shelved();
    shelf.close(true);
    std::thread::scope(|scope| {
        for number in 0..SENDERS {
            let house = &house;
            scope.spawn(move || {
                let from = format!("bot://flood.here/{number}");
                let text = introduced(&text(&from, TO, &format!("S{number}")), &new_key(), "k");
                assert_eq!(as_token(house, "flood", &text).status, 200);
            });
        }
        // Every message is on disk, each of its senders waits for the keyring, and others are served.
        let _open = OpensAtTheEnd(&shelf);
        wait_until("every message is accepted", || {
            house.store_count() == SENDERS as u64
        });
        let served = house.get("/healthz").status;
        assert_eq!(served, 200, "the relay stands still");
    });
    assert_eq!(shelf.trust.lock().unwrap().keys().len(), SENDERS);
}
