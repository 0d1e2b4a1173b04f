//! A relay that is held to what it did: a bundle checked offline, a receipt, a witness, the way of a message.

use super::{Person, Relay};
use crate::schema::{assert_valid, validator};
use crosstalk_cli::exit;
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
    let log = kalle.does(&[
        "audit", "log", "--data", &data, "--json", "--kind", "accepted",
    ]);
    let form = validator("audit-log");
    let entries: Vec<Value> = log
        .out
        .lines()
        .map(|l| assert_valid(&form, l, "log"))
        .collect();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1]["message"], id.as_str());
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
