//! The log over HTTP: checkpoints, proofs, receipts, entries.

use crate::house::{House, Plan, key, letter, secret, text};
use crate::http::Ask;
use crosstalk_envelope::base64;
use crosstalk_protocol::audit::{
    Hash, Leaf, LogReceipt, Note, NoteKey, ReceiptError, Tree, extends, is_included, leaf_hash,
};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::wait_for;
use serde_json::Value;

fn plan() -> Plan {
    Plan::default()
        .config("name = \"relay.example\"\n")
        .key(key())
}

fn public() -> NoteKey {
    NoteKey::new("relay.example", key().public()).unwrap()
}

fn hashes(text: &str) -> Vec<Hash> {
    let hash = |line: &str| base64::decode(line).unwrap().try_into().unwrap();
    text.lines().map(hash).collect()
}

/// A checkpoint that covers so many entries: one is signed within a second.
fn checkpoint(house: &House, size: u64) -> (String, crosstalk_protocol::audit::Checkpoint) {
    wait_for("a checkpoint", || {
        let answer = house.get("/crosstalk/audit/checkpoint");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let note = answer.text().to_owned();
        let opened = Note::parse(&note).unwrap().open(&public()).unwrap();
        (opened.size >= size).then_some((note, opened))
    })
}

#[test]
fn accepted_message_is_proved_over_http() {
    let house = plan().open();
    let sent: Vec<String> = (0..5)
        .map(|n| text("ANN", "CLAUDE", &format!("M{n}")))
        .collect();
    for (index, one) in sent.iter().enumerate() {
        let ack = house.take(one);
        let ack = crate::http::strict(ack.text());
        assert_eq!(
            ack.meta("receipt", "Index"),
            Some(index.to_string().as_str())
        );
    }
    let key = house.get("/crosstalk/audit/key");
    assert_eq!(key.text(), format!("{}\n", public()));
    // A receipt is signed at once, whatever the clock of checkpoints.
    let texts = |n: usize| house.get(&format!("/crosstalk/messages/M{n}/receipt"));
    let receipt = LogReceipt::parse(texts(3).text()).unwrap();
    assert!(receipt.open(&public()).unwrap().size >= 5);
    assert_eq!((receipt.index, receipt.is_of(&sent[3])), (3, Ok(())));
    assert_eq!(receipt.is_of(&sent[2]), Err(ReceiptError::Message));
    let (_, first) = checkpoint(&house, 5);
    // Proofs, from entries that anyone can hash.
    let entries = house
        .get("/crosstalk/audit/entries?texts=true&limit=500")
        .json();
    let leaf = |n: usize| entries["entries"][n]["leaf"].as_str().unwrap().to_owned();
    assert_eq!(entries["entries"][0]["text"], sent[0].as_str());
    let proof = house.get("/crosstalk/audit/inclusion?index=2&size=5");
    let (leaf, path) = (leaf_hash(leaf(2).as_bytes()), hashes(proof.text()));
    let leaves = (0..5).map(|n| entries["entries"][n]["leaf"].as_str().unwrap());
    let tree = Tree::of(leaves.map(|l| leaf_hash(l.as_bytes())));
    let root = tree.root(5).unwrap();
    assert!(is_included(&leaf, 2, 5, &path, &root));
    // It goes on, and extends what it was.
    assert_eq!(house.inbox("CLAUDE").len(), 5);
    house.take(&text("ANN", "CLAUDE", "M9"));
    let (_, second) = checkpoint(&house, first.size + 1);
    let path = format!(
        "/crosstalk/audit/consistency?from={}&to={}",
        first.size, second.size
    );
    let path = hashes(house.get(&path).text());
    assert!(extends(
        first.size,
        &first.root,
        second.size,
        &second.root,
        &path
    ));
    for wrong in [
        "inclusion?index=99999",
        "inclusion?index=1&size=99999",
        "inclusion",
        "inclusion?index=x",
        "consistency?from=99999",
        "consistency?from=3&to=2",
        "entries?kind=none",
        "entries?since=soon",
    ] {
        let answer = house.get(&format!("/crosstalk/audit/{wrong}"));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "E-FORMAT"),
            "{wrong}"
        );
    }
    assert_eq!(house.get("/crosstalk/messages/M77/receipt").status, 404);
}

/// A text whose consent is over is shown to nobody, also before it was erased; the log says that it is gone.
#[test]
fn expired_text_is_not_in_the_entries() {
    let house = plan().open();
    let soon = letter("ANN", "CLAUDE", "M1").meta("privacy", "Consent", "explicit_yes");
    let soon = soon.meta("privacy", "Expires", "2026-09-21T15:00:00Z");
    house.take(&soon.build().unwrap());
    house.take(&text("ANN", "CLAUDE", "M2"));
    let entries = || {
        let found = house.get("/crosstalk/audit/entries?texts=true&limit=500");
        found.json()["entries"].as_array().unwrap().clone()
    };
    let texts = |found: &[Value]| found.iter().filter(|e| e["text"].is_string()).count();
    assert_eq!(texts(&entries()), 2);
    assert_eq!(
        (&entries()[0]["from"], &entries()[0]["to"]),
        (&"ANN".into(), &"CLAUDE".into())
    );
    house.later(3600);
    let found = entries();
    assert_eq!(texts(&found), 1, "{found:?}");
    let last = found.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["message"]),
        (&"erased".into(), &"M1".into())
    );
    assert!(found[0]["from"].is_null(), "{found:?}");
}

/// Refusals are in the log soon, without a word of what was refused, and the relay that stops signs everything.
#[test]
fn refusals_are_written_down_and_the_end_is_signed() {
    let house = plan().open();
    house.take(&text("ANN", "CLAUDE", "M1"));
    let other = text("ANN", "CLAUDE", "M1").replace("pears", "secretpears");
    let other = other
        .replace("apples", "secretapples")
        .replace("context: ", "context: secret ");
    assert_eq!(house.ask(&Ask::send(&other)).status, 403);
    let data = house.close();
    let house = House::open(plan(), data).unwrap();
    let found = house.get("/crosstalk/audit/entries?kind=refused").json();
    let entry = &found["entries"][0];
    assert_eq!(entry["message"], "M1", "{found}");
    assert!(
        entry["detail"].as_str().unwrap().contains("code=E-PERM"),
        "{found}"
    );
    assert!(!found.to_string().contains("secret"), "{found}");
    let latest = house.store().checkpoint().unwrap().unwrap();
    assert_eq!(latest.size, house.store().log_size().unwrap());
    let all = house.get("/crosstalk/audit/entries?limit=500").json();
    let leaves = all["entries"].as_array().unwrap();
    let leaves = leaves.iter().map(|e| e["leaf"].as_str().unwrap());
    assert!(leaves.clone().all(|l| Leaf::parse(l).is_ok()));
    let tree = Tree::of(leaves.map(|l| leaf_hash(l.as_bytes())));
    assert_eq!(tree.root(latest.size), Some(latest.root));
}

/// The key of the log is for everyone, checkpoints and proofs for each credential, entries for the operator, and receipts for
/// callers who can read the message.
#[test]
fn each_role_sees_its_part_of_the_log() {
    let plan = plan()
        .token("ann", Role::Agent, &["ANN"])
        .token("bob", Role::Agent, &["BOB"])
        .token("root", Role::Admin, &[]);
    let house = plan.open();
    let sent = text("ANN", "CLAUDE", "M1");
    let ask = |path: &str, who: &str| house.ask(&Ask::get(path).token(&secret(who))).status;
    let taken = house.ask(&Ask::send(&sent).token(&secret("ann")));
    assert_eq!(taken.status, 200);
    for (path, without_token) in [
        ("checkpoint", 401),
        ("key", 200),
        ("inclusion?index=0", 401),
        ("consistency?from=0", 401),
    ] {
        let path = format!("/crosstalk/audit/{path}");
        assert_eq!(ask(&path, "bob"), 200, "{path}");
        assert_eq!(house.get(&path).status, without_token, "{path}");
    }
    let entries = "/crosstalk/audit/entries";
    assert_eq!((ask(entries, "ann"), ask(entries, "root")), (403, 200));
    assert_eq!(house.get(entries).status, 401);
    let receipt = "/crosstalk/messages/M1/receipt";
    assert_eq!((ask(receipt, "ann"), ask(receipt, "bob")), (200, 404));
}

#[test]
fn the_key_of_the_log_is_public() {
    let house = plan().token("ann", Role::Person, &["ANN"]).open();
    let key = house.ask(&Ask::get("/crosstalk/audit/key"));
    assert_eq!(
        (key.status, key.text()),
        (200, format!("{}\n", public()).as_str())
    );
    let checkpoint = house.ask(&Ask::get("/crosstalk/audit/checkpoint"));
    assert_eq!(checkpoint.status, 401);
}

#[test]
fn a_relay_without_a_key_says_so() {
    let house = House::local();
    house.take(&text("ANN", "CLAUDE", "M1"));
    for path in [
        "audit/checkpoint",
        "audit/key",
        "audit/inclusion?index=0",
        "messages/M1/receipt",
    ] {
        let answer = house.get(&format!("/crosstalk/{path}"));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (422, "E-UNSUPPORTED"),
            "{path}"
        );
    }
}

/// A relay with a store of its own has the first chain, with or without its number, and no other one.
#[test]
fn a_relay_on_its_own_has_one_chain() {
    const NAME: &str = "relay.example";
    let house = plan().open();
    house.take(&text("ANN", "CLAUDE", "M1"));
    let (note, opened) = checkpoint(&house, 1);
    let chains = house.get("/crosstalk/audit/chains").json();
    let only = &chains["chains"][0];
    assert_eq!(chains["chains"].as_array().unwrap().len(), 1);
    assert_eq!((&only["chain"], &only["origin"]), (&0.into(), &NAME.into()));
    assert_eq!(only["key"], public().to_string());
    assert!(only["signed"].as_u64() >= Some(opened.size), "{chains}");
    assert_eq!(opened.origin, NAME);
    assert!(note.starts_with(&format!("{NAME}\n")));
    for path in [
        "checkpoint?",
        "key?",
        "inclusion?index=0&",
        "consistency?from=1&",
        "entries?",
    ] {
        let ask = |chain: &str| house.get(&format!("/crosstalk/audit/{path}{chain}"));
        assert_eq!(ask("chain=0").status, 200, "{path}");
        let (other, bad) = (ask("chain=1"), ask("chain=first"));
        assert_eq!((other.status, bad.status), (404, 400), "{path}");
    }
}
