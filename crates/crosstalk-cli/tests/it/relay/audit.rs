//! A relay that is held to what it did: a bundle checked offline, a receipt, a witness, the way of a message.

use super::{Person, Relay};
use crate::run::with_end_ahead;
use crate::schema::{assert_valid, validator};
use crosstalk_cli::exit;
use crosstalk_testing::wait::{wait_for, wait_until};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn an_outsider_checks_what_a_relay_did() {
    let kalle = Person::new("audit", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let relay = Relay::start(&kalle.home, &[]);
    let (url, data) = (relay.url.clone(), path("relay"));
    let sent: Vec<Value> = ["One?", "Two?", "Three?"]
        .iter()
        .map(|body| {
            json(
                &kalle
                    .does(&["send", "BOT", body, "--relay", &url, "--json"])
                    .out,
            )
        })
        .collect();
    let id = sent[1]["message"]["id"].as_str().unwrap().to_owned();

    // A witness, from the first day.
    let watch = |more: &[&str]| {
        let words = ["audit", "watch", "--relay", &url, "--keep"];
        kalle.run(&[&words[..], &[&path("held.note")], more].concat())
    };
    let first = watch(&[]);
    assert_eq!(first.code, i32::from(exit::FIRST_CONTACT), "{}", first.err);
    let key = path("held.note.key");

    // The journal, with its schema.
    let form = validator("audit-log");
    let words = [
        "audit", "log", "--data", &data, "--json", "--kind", "accepted",
    ];
    // The parties are known when the messages are indexed.
    let entries = wait_for("the parties in the journal", || {
        let lines = kalle.does(&words).out;
        let entries: Vec<Value> = lines
            .lines()
            .map(|l| assert_valid(&form, l, "log"))
            .collect();
        let are_known = entries.iter().all(|entry| entry["from"].is_string());
        are_known.then_some(entries)
    });
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1]["message"], id.as_str());
    assert_eq!(
        (&entries[1]["from"], &entries[1]["to"]),
        (&"KALLE".into(), &"BOT".into())
    );
    let shown = kalle.does(&["audit", "log", "--relay", &url, "--message", &id]);
    assert!(
        shown.out.contains("accepted") && shown.out.contains(&id),
        "{}",
        shown.out
    );

    // A receipt, against the message and against another one.
    kalle.does(&[
        "audit",
        "receipt",
        &id,
        "--relay",
        &url,
        "--out",
        &path("r.tlog-proof"),
    ]);
    kalle.does(&["audit", "export", "--relay", &url, "--out", &path("bundle")]);
    let verify = |what: &str, more: &[&str]| {
        let words = ["audit", "verify", what, "--json"];
        let ended = kalle.run(&[&words[..], more].concat());
        let report = assert_valid(&validator("audit-verify"), &ended.out, &ended.err);
        (ended.code, report)
    };
    let receipt = |file: &str| {
        let message = path(&format!("bundle/messages/{file}.aict"));
        verify(
            &path("r.tlog-proof"),
            &["--message", &message, "--key", &key],
        )
    };
    assert_eq!(receipt("1").0, 0, "{:?}", receipt("1"));
    let (code, report) = receipt("0");
    assert_eq!(code, i32::from(exit::NOT_VERIFIED), "{report}");

    // The bundle: with a key from elsewhere, with its own, and against what the witness holds.
    let bundle = path("bundle");
    let (code, report) = verify(&bundle, &[]);
    assert_eq!(code, i32::from(exit::FIRST_CONTACT), "{report}");
    assert_eq!(
        (&report["messages"], &report["is_all"]),
        (&3.into(), &true.into())
    );
    let held = path("held.note");
    let (code, report) = verify(&bundle, &["--key", &key, "--checkpoint", &held]);
    assert_eq!((code, &report["extended"]), (0, &1.into()), "{report}");
    let part = path("part");
    let words = [
        "audit",
        "export",
        "--data",
        &data,
        "--message",
        &id,
        "--out",
        &part,
    ];
    kalle.does(&[&words[..], &["--checkpoint", &held]].concat());
    let (code, report) = verify(&part, &["--key", &key, "--checkpoint", &held]);
    assert_eq!((code, &report["messages"]), (0, &1.into()), "{report}");
    let message = path("bundle/messages/1.aict");
    let text = std::fs::read_to_string(&message).unwrap();
    std::fs::write(&message, text.replace("Two?", "Too?")).unwrap();
    let (code, report) = verify(&bundle, &["--key", &key]);
    assert_eq!(code, i32::from(exit::NOT_VERIFIED), "{report}");
    assert_eq!(report["wrong"]["file"], "messages/1.aict");

    // What was handed out shows its way, and where it is in the log.
    let out = kalle
        .does(&["inbox", "--relay", &url, "--for", "BOT", "--json"])
        .out;
    let envelope = json(&out)["messages"][1]["envelope"]
        .as_str()
        .unwrap()
        .to_owned();
    let file = path("handed.aict");
    std::fs::write(&file, &envelope).unwrap();
    let traced = kalle.run(&["audit", "trace", "--json", &file]);
    let report = assert_valid(&validator("audit-trace"), traced.out.trim(), &traced.err);
    assert_eq!(traced.code, i32::from(exit::FIRST_CONTACT));
    assert_eq!(report["hops"][0]["chain"], "localhost#1", "{report}");
    assert_eq!(
        report["hops"][0]["faults"],
        Value::Array(Vec::new()),
        "{report}"
    );
    std::fs::write(&file, envelope.replace("localhost#1", "localhost#2")).unwrap();
    let traced = kalle.run(&["audit", "trace", &file]);
    assert_eq!(traced.code, i32::from(exit::NOT_VERIFIED), "{}", traced.out);
    assert!(traced.out.contains("digest"), "{}", traced.out);

    // The key of the log is the key of the hops.
    std::fs::write(&file, &envelope).unwrap();
    kalle.does(&["audit", "trace", "--key", &key, &file]);

    // It goes on, and the witness is content; then the relay is put back to an older state, and is not.
    kalle.does(&["send", "BOT", "Four?", "--relay", &url]);
    assert_eq!(watch(&[]).code, 0);
    relay.stop();
    assert!(cut_off(&path("relay/relay.db")));
    let words = ["audit", "watch", "--data", &data, "--keep", &held];
    let cut = kalle.run(&words);
    assert_eq!(cut.code, i32::from(exit::FORK), "{}{}", cut.out, cut.err);
    assert!(kalle.home.path("held.note.shown").exists());
    let checked = kalle.run(&["fsck", "--data", &data]);
    assert_eq!(checked.code, 1, "{}", checked.out);
}

/// Takes the last entries away, and what was signed about them.
fn cut_off(path: &str) -> bool {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch("DELETE FROM log WHERE place >= 2; DELETE FROM checkpoint")
        .is_ok()
}

/// The messages of a bundle.
fn messages(folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(format!("{folder}/messages")).unwrap();
    let read = |f: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(f.unwrap().path());
    files.map(|f| read(f).unwrap()).collect()
}

#[test]
fn ids_are_found_by_their_beginning_and_nothing_is_no_evidence() {
    let kalle = Person::new("audit-short", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let relay = Relay::start(&kalle.home, &[]);
    let (url, data) = (relay.url.clone(), path("relay"));
    let send = ["send", "BOT", "--relay", &url, "--json", "One?"];
    let sent = json(&kalle.does(&send).out);
    kalle.does(&["send", "BOT", "--relay", &url, "Two?"]);
    let (id, thread) = (
        sent["message"]["id"].as_str().unwrap(),
        sent["message"]["thread"].as_str().unwrap(),
    );
    let local = ["--data", data.as_str()];
    let remote = ["--relay", url.as_str()];
    let mut number = 0;
    // Over the network first: then something is signed.
    for place in [remote, local] {
        for (filter, text) in [("--message", id), ("--thread", thread)] {
            number += 1;
            let (out, short) = (path(&format!("part{number}")), &text[..24]);
            let export = ["audit", "export", "--out", &out, filter, short];
            kalle.does(&[&export[..], &place].concat());
            assert_eq!(messages(&out).len(), 1, "{filter} {place:?}");
            let log = ["audit", "log", "--kind", "accepted", filter, short];
            let log = kalle.does(&[&log[..], &place].concat()).out;
            assert_eq!(log.lines().count(), 1, "{log}");
            assert!(log.contains("KALLE → BOT"), "{log}");

            let none = path(&format!("none{number}"));
            let export = ["audit", "export", "--out", &none, filter, "01KNOSUCH"];
            let log = ["audit", "log", filter, "01KNOSUCH"];
            for words in [&export[..], &log[..]] {
                let ended = kalle.run(&[words, &place].concat());
                assert_eq!(ended.code, 1, "{words:?}: {}", ended.out);
                assert!(ended.err.contains("01KNOSUCH"), "{}", ended.err);
            }
        }
        let receipt = ["audit", "receipt", &id[..24]];
        let receipt = kalle.does(&[&receipt[..], &place].concat()).out;
        assert!(receipt.starts_with("c2sp.org/tlog-proof"), "{receipt}");
        std::fs::write(path("r.proof"), receipt).unwrap();
    }

    // Without a data folder, the relay of the settings is asked.
    let ann = Person::new("audit-settings", "ann");
    let nowhere = ann.run(&["audit", "receipt", id]);
    assert_eq!(nowhere.code, 1, "{}", nowhere.err);
    let said = nowhere.err;
    assert!(
        said.contains("--relay URL") && !said.contains("serve"),
        "{said}"
    );
    ann.does(&["relay", "add", &url]);
    let receipt = ann.does(&["audit", "receipt", id]).out;
    assert!(receipt.starts_with("c2sp.org/tlog-proof"), "{receipt}");

    // What can't be read is said to be so, and not to be another message.
    let message = messages(&path("part1")).remove(0);
    let watch = ["audit", "watch", "--data", &data, "--keep", &path("w.note")];
    kalle.run(&watch);
    for (text, code, word) in [
        (message.clone(), 0, "holds"),
        (String::new(), i32::from(exit::FORMAT), "can't be read"),
        ("Hello?\n".into(), i32::from(exit::FORMAT), "can't be read"),
        (
            format!("{message}P.S.\n"),
            i32::from(exit::FORMAT),
            "can't be read",
        ),
    ] {
        std::fs::write(path("m.aict"), &text).unwrap();
        let (proof, key) = (path("r.proof"), path("w.note.key"));
        let verify = ["audit", "verify", &proof, "--key", &key, "--message"];
        let ended = kalle.run(&[&verify[..], &[&path("m.aict")]].concat());
        assert_eq!(ended.code, code, "{text}: {}", ended.out);
        let said: Vec<&str> = ended.out.split_whitespace().collect();
        assert!(said.join(" ").contains(word), "{}", ended.out);
    }
}

/// Expired messages are in no bundle, also if the relay has not erased it yet, and the bundle holds all the same.
#[test]
fn expired_messages_are_not_exported() {
    let kalle = Person::new("audit-over", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.clone();
    with_end_ahead(|end| {
        let send = ["send", "BOT", "140 to 90.", "--relay", &url];
        let under = ["--scope", "medical", "--consent", "explicit_yes"];
        let sent = kalle.run(&[&send[..], &under, &["--expires", end]].concat());
        (sent.code == 0).then_some(())
    });
    kalle.does(&["send", "BOT", "Stays.", "--relay", &url]);
    let inbox = ["inbox", "--relay", &url, "--for", "BOT", "--json"];
    wait_until("its end", || !kalle.does(&inbox).out.contains("140 to 90"));
    let export = |out: &str, place: [&str; 2]| {
        let words = ["audit", "export", "--out", out];
        kalle.does(&[&words[..], &place].concat());
        let texts = messages(out);
        assert!(texts.len() == 1 && texts[0].contains("Stays."), "{texts:?}");
        let verified = kalle.run(&["audit", "verify", out]);
        let holds = i32::from(exit::FIRST_CONTACT);
        assert_eq!(verified.code, holds, "{}", verified.out);
        assert!(verified.out.contains("1 erased"), "{}", verified.out);
        assert!(verified.out.contains("1 message, each"), "{}", verified.out);
    };
    export(&path("over-the-network"), ["--relay", &url]);
    export(&path("in-the-folder"), ["--data", relay.data()]);
}

/// A checkpoint that somebody else signed is no checkpoint of this relay; without a key nobody can say.
#[test]
fn checkpoints_are_checked_with_the_key_of_the_relay() {
    let kalle = Person::new("audit-signed", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["send", "BOT", "One?", "--relay", &relay.url]);
    let data = relay.data.clone();
    relay.stop();
    let fsck = ["fsck", "--data", data.to_str().unwrap(), "--json"];
    let sound = json(&kalle.does(&fsck).out);
    assert_eq!(sound["places"][0]["unchecked"], Value::Array(Vec::new()));
    let keys = data.join("keys");
    std::fs::rename(&keys, data.join("away")).unwrap();
    let unknown = json(&kalle.does(&fsck).out);
    let said = unknown["places"][0]["unchecked"][0].as_str().unwrap();
    assert!(said.contains("no key"), "{said}");
    assert!(!keys.exists(), "a check makes no key");
    std::fs::rename(data.join("away"), &keys).unwrap();

    let db = rusqlite::Connection::open(data.join("relay.db")).unwrap();
    let other =
        crosstalk_envelope::PrivateKey::from_seed(crosstalk_envelope::Algorithm::Ed25519, &[1; 32]);
    let note: String = db
        .query_row("SELECT note FROM checkpoint LIMIT 1", [], |row| row.get(0))
        .unwrap();
    let claim = crosstalk_protocol::audit::Note::parse(&note)
        .unwrap()
        .claim()
        .unwrap();
    let forged = claim.sign(&other.unwrap()).unwrap();
    db.execute(
        "UPDATE checkpoint SET note = ?1 WHERE note = ?2",
        [&forged, &note],
    )
    .unwrap();
    drop(db);
    let found = kalle.run(&fsck);
    assert_eq!(found.code, 1, "{}", found.out);
    assert!(
        found.out.contains("not signed by a key of the relay"),
        "{}",
        found.out
    );
}

/// A bundle holds the texts of messages: it is for its owner, who passes it on.
#[cfg(unix)]
#[test]
fn bundle_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let kalle = Person::new("bundle", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["send", "BOT", "Secret?", "--relay", &relay.url]);
    let out = kalle.home.path("bundle");
    let words = ["audit", "export", "--relay", &relay.url, "--out"];
    let words = [&words[..], &[out.to_str().unwrap()]].concat();
    wait_until("the log is signed", || kalle.run(&words).code == 0);
    let mut folders = vec![out];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    assert_eq!(mode(&path), 0o600, "{}", path.display());
                    files += 1;
                }
            }
        }
    }
    assert!(files > 3, "{files}");
    relay.stop();
}
