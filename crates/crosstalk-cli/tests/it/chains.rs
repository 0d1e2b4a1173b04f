//! Relays that share a PostgreSQL database and have a key each: one log in chains, which anybody checks.

use crate::run::Home;
use crosstalk_cli::exit;
use crosstalk_protocol::audit::{LogReceipt, Note, NoteKey};
use crosstalk_testing::folder::Folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::postgres::Database;
use crosstalk_testing::relay::{Relay, Setup, envelope};
use crosstalk_testing::wait::wait_for_ok;
use serde_json::Value;
use std::fs;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crosstalk");

fn relay_on(url: &str, data: &Path, name: &str) -> Setup {
    Relay::of(PROGRAM)
        .data(data)
        .argument("--store")
        .argument(url)
        .argument("--name")
        .argument(name)
}

/// Two relays on a database, each with a data folder and a key of its own.
fn two_relays(database: &Database, folders: [&Folder; 2]) -> [Relay; 2] {
    let url = database.url();
    folders.map(|folder| relay_on(&url, folder.path(), "relay.example").start())
}

/// Asks a relay for something that it has.
fn get(relay: &Relay, path: &str) -> String {
    let answer = Connection::open(relay.address()).and_then(|mut c| c.get(path));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The ACK of a relay.
fn acknowledged(relay: &Relay, message: &str) -> String {
    let answer = Connection::open(relay.address()).and_then(|mut c| c.receive(message));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

#[test]
fn relays_with_keys_of_their_own_keep_one_log_in_chains() {
    let database = Database::new();
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let relays = two_relays(&database, [&one, &two]);
    let sent = ["M1", "M2", "M3"].map(|id| envelope(id, "T1", "ANN", "BOT"));
    // The relay that has a message first writes its entry; its answer is the answer of all.
    let mut acks = Vec::new();
    for (message, first) in sent.iter().zip([0, 1, 1]) {
        let ack = acknowledged(&relays[first], message);
        for relay in &relays {
            assert_eq!(acknowledged(relay, message), ack);
        }
        acks.push(ack);
    }
    assert!(
        acks[0].contains("\nIndex: 0\n") && !acks[0].contains("\nChain: "),
        "{}",
        acks[0]
    );
    let places = [
        "\nIndex: 0\nChain: relay.example/1#0\n",
        "\nIndex: 1\nChain: relay.example/1#1\n",
    ];
    for (ack, place) in acks[1..].iter().zip(places) {
        assert!(ack.contains(place), "{ack}");
    }
    for relay in &relays {
        // Each relay serves all chains, with their keys.
        let chains = json(&get(relay, "/crosstalk/audit/chains"));
        let listed: Vec<_> = chains["chains"].as_array().unwrap().iter().collect();
        let origins: Vec<&str> = listed
            .iter()
            .map(|c| c["origin"].as_str().unwrap())
            .collect();
        assert_eq!(origins, ["relay.example", "relay.example/1"]);
        let keys = ["", "?chain=1"].map(|query| {
            let text = get(relay, &format!("/crosstalk/audit/key{query}"));
            NoteKey::parse(text.trim_end()).unwrap()
        });
        for (chain, key) in listed.iter().zip(&keys) {
            assert_eq!(chain["key"], key.to_string());
        }
        assert_ne!(keys[0].key(), keys[1].key());
        // A receipt is found at any of them, and signed by the relay that wrote the entry.
        for (message, (id, chain, index)) in
            sent.iter().zip([("M1", 0, 0), ("M2", 1, 0), ("M3", 1, 1)])
        {
            let text = get(relay, &format!("/crosstalk/messages/{id}/receipt"));
            let receipt = LogReceipt::parse(&text).unwrap();
            let signed: &NoteKey = &keys[chain];
            assert!(receipt.open(signed).unwrap().size > index, "{text}");
            assert_eq!((receipt.index, receipt.is_of(message)), (index, Ok(())));
        }
        // Proofs and entries of a chain.
        let entries = json(&get(relay, "/crosstalk/audit/entries?chain=1&texts=true"));
        assert_eq!(
            (&entries["chain"], &entries["size"]),
            (&1.into(), &2.into())
        );
        assert_eq!(entries["entries"][1]["text"], sent[2].as_str());
        let note = get(relay, "/crosstalk/audit/checkpoint?chain=1");
        let size = Note::parse(&note).unwrap().open(&keys[1]).unwrap().size;
        assert!((1..=2).contains(&size), "{note}");
        get(relay, "/crosstalk/audit/inclusion?chain=1&index=0");
        get(relay, "/crosstalk/audit/consistency?chain=1&from=1");
        let unknown = Connection::open(relay.address())
            .and_then(|mut c| c.get("/crosstalk/audit/checkpoint?chain=2"));
        assert_eq!(unknown.unwrap().status, 404);
    }
}

#[test]
fn an_outsider_checks_all_chains_of_relays() {
    let database = Database::new();
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let relays = two_relays(&database, [&one, &two]);
    let sent = ["M1", "M2", "M3"].map(|id| envelope(id, id, "ANN", "BOT"));
    for (message, relay) in sent.iter().zip([&relays[0], &relays[1], &relays[1]]) {
        acknowledged(relay, message);
    }
    // Until all of it is signed.
    wait_for_ok(|| {
        let chains = json(&get(&relays[0], "/crosstalk/audit/chains"));
        let all = chains["chains"].as_array().unwrap();
        let is_signed = |c: &Value| c["size"] == c["signed"];
        match all.len() == 2 && all.iter().all(is_signed) {
            true => Ok(()),
            false => Err(chains.to_string()),
        }
    });
    let home = Home::new("chains");
    let path = |name: &str| home.path(name).to_str().unwrap().to_owned();
    let url = format!("http://{}", relays[0].address());
    let export = |more: &[&str], folder: &str| {
        let words = ["audit", "export", "--relay", &url, "--out", folder];
        let ended = home.run(&[&words[..], more].concat(), "");
        assert_eq!(ended.code, 0, "{}", ended.err);
    };
    let verify = |folder: &str, more: &[&str]| {
        let ended = home.run(&[&["audit", "verify", folder, "--json"], more].concat(), "");
        (ended.code, json(&ended.out))
    };
    let bundle = path("bundle");
    export(&[], &bundle);
    let keys =
        ["", "?chain=1"].map(|query| get(&relays[1], &format!("/crosstalk/audit/key{query}")));
    let keys = keys.each_ref().map(|key| key.trim_end());
    let both = ["--key", keys[0], "--key", keys[1]];
    let (code, report) = verify(&bundle, &both);
    assert_eq!(code, 0, "{report}");
    assert_eq!(
        (&report["messages"], &report["key_is_trusted"]),
        (&1.into(), &true.into())
    );
    let other = &report["chains"][0];
    assert_eq!(
        (&other["messages"], &other["origin"]),
        (&2.into(), &"relay.example/1".into())
    );
    assert_eq!(other["key_is_trusted"], true);
    // A key for each chain is needed, and the right one.
    let first_contact = i32::from(exit::FIRST_CONTACT);
    assert_eq!(verify(&bundle, &both[..2]).0, first_contact);
    // A checkpoint of a chain is compared with that chain.
    let note = path("held.note");
    fs::write(
        &note,
        get(&relays[0], "/crosstalk/audit/checkpoint?chain=1"),
    )
    .unwrap();
    let (code, report) = verify(&bundle, &[&both[..], &["--checkpoint", &note]].concat());
    assert_eq!(
        (code, &report["chains"][0]["extended"]),
        (0, &1.into()),
        "{report}"
    );
    // A part has the entries of each chain.
    let part = path("part");
    export(&["--message", "M2", "--checkpoint", &note], &part);
    let (code, report) = verify(&part, &[&both[..], &["--checkpoint", &note]].concat());
    assert_eq!(code, 0, "{report}");
    assert_eq!(
        (&report["messages"], &report["chains"][0]["messages"]),
        (&0.into(), &1.into())
    );
    // A file that is missing or changed in another chain makes the check fail.
    let not_verified = i32::from(exit::NOT_VERIFIED);
    let message = home.path("bundle/chain-1/messages/1.aict");
    let text = fs::read_to_string(&message).unwrap();
    fs::write(&message, text.replace("rotation", "Rotation")).unwrap();
    let (code, report) = verify(&bundle, &both);
    assert_eq!(
        (code, &report["wrong"]["file"]),
        (not_verified, &"chain-1/messages/1.aict".into())
    );
    fs::remove_file(&message).unwrap();
    assert_eq!(verify(&bundle, &both).0, not_verified);
    fs::write(&message, text).unwrap();
    fs::remove_dir_all(home.path("bundle/chain-1")).unwrap();
    let (code, report) = verify(&bundle, &both);
    assert_ne!(code, 0, "{report}");
}

#[test]
fn a_relay_with_another_name_does_not_start_on_the_database() {
    let database = Database::new();
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let url = database.url();
    let _first = relay_on(&url, one.path(), "relay.example").start();
    let other = relay_on(&url, two.path(), "other.example").try_start();
    let reason = other.map(drop).unwrap_err();
    for text in [
        "`relay.example`",
        "`other.example`",
        "docs/high-availability.md",
    ] {
        assert!(reason.contains(text), "{text} in {reason}");
    }
}
