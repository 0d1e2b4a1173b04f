//! After a REVOKE, nothing of what was erased is left in the data folder, and the log still proves.

use super::{ANN, from_ann, plan, revoke};
use crate::house::{House, key, letter, secret, signed};
use crate::http::Ask;
use crate::shared::relays;
use crate::storage::{self, Storage};
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::Role;
use crosstalk_testing::postgres::Database;
use crosstalk_testing::wait::{LIMIT, wait_until};
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

/// How many bytes in a row are a trace.
const RUN: usize = 16;

/// A body of words that stand nowhere else, long and short ones.
fn body(name: &str) -> String {
    let mut lines = Vec::new();
    for number in 0..30 {
        let digest = Digest::of(format!("{name} {number}").as_bytes()).to_string();
        let words = digest.trim_start_matches("sha256:");
        lines.push(format!(
            "{} {} {}",
            &words[..24],
            &words[24..31],
            &words[31..]
        ));
    }
    lines.join("\n")
}

/// Every run of bytes of the lines of a body.
fn runs(body: &str, runs: &mut HashSet<Vec<u8>>) {
    for line in body.lines() {
        runs.extend(line.as_bytes().windows(RUN).map(<[u8]>::to_vec));
    }
}

/// The files under a folder in which one of the runs is, in any case of its letters.
fn traces(folder: &Path, runs: &HashSet<Vec<u8>>) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(traces(&path, runs));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap().to_ascii_lowercase();
        if bytes.windows(RUN).any(|run| runs.contains(run)) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

fn under(consent: &str, to: &str, id: &str, body: &str) -> String {
    from_ann(to, id)
        .body(body)
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "PII", "present")
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Consent-ID", consent)
        .build()
        .unwrap()
}

/// A hand-off that quotes a message, under a consent that goes back to the one of the message.
fn handoff(quoted: &str) -> String {
    from_ann("agent://here.example/lab", "H1")
        .intent("HANDOFF")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "transferred_with_approval")
        .meta("privacy", "Consent-ID", "C1-lab")
        .meta("privacy", "Original-Consent-ID", "C1")
        .body(format!("Please go on. This was said:\n\n{quoted}"))
        .build()
        .unwrap()
}

fn put_blob(house: &House, content: &[u8]) -> Digest {
    let digest = Digest::of(content);
    let put = Ask::new("PUT", &format!("/crosstalk/blobs/{digest}"));
    let answer = house.ask(
        &put.header("Content-Type", "application/octet-stream")
            .body(content),
    );
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    digest
}

#[test]
fn no_run_of_an_erased_body_is_left_and_the_log_still_proves() {
    let hold = "[[hold]]\nto = [\"agent://here.example/held\"]\npeople = true\n";
    let house = plan().config(hold).open();
    let mut lost = HashSet::new();
    let mut kept = HashSet::new();
    let other = body("other");
    runs(&other, &mut kept);
    house.take(&under("C2", "agent://here.example/bot", "K1", &other));
    for number in 0..40 {
        let body = body(&format!("lost {number}"));
        runs(&body, &mut lost);
        let to = match number % 4 {
            0 => "agent://here.example/held",
            1 => "CHATGPT",
            _ => "agent://here.example/bot",
        };
        house.take(&under("C1", to, &format!("M{number}"), &body));
    }
    house.take(&handoff(&body("lost 2")));
    let file = body("attached");
    runs(&file, &mut lost);
    let digest = put_blob(&house, file.as_bytes());
    let attached = from_ann("agent://here.example/bot", "A1")
        .meta(
            "attachments",
            "A1",
            format!("text/plain;name=a.txt;digest={digest}"),
        )
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Consent-ID", "C1");
    house.take(&attached.build().unwrap());
    // Read by some, and found by its words.
    assert!(house.inbox("agent://here.example/bot").len() > 10);
    let searched = house.get(&format!("/crosstalk/search?q={}", &body("lost 2")[..20]));
    assert_eq!(searched.status, 200);
    assert!(!traces(house.data.path(), &lost).is_empty());

    house.take(&revoke("C1", "agent://here.example/bot", "R1"));
    wait_until("no trace is left", || {
        traces(house.data.path(), &lost).is_empty()
    });
    assert!(!traces(house.data.path(), &kept).is_empty(), "others stay");
    assert_eq!(house.get("/crosstalk/messages/M2").status, 404);
    assert_eq!(
        house.get("/crosstalk/messages/H1").status,
        404,
        "a copy goes with it"
    );
    assert_eq!(house.get("/crosstalk/messages/K1").status, 200);
    let data = house.close();
    let store = Storage::open(data.path());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(traces(data.path(), &lost), Vec::<String>::new());
}

/// An attachment goes with the message that brought it, though others name it; what others brought stays.
#[test]
fn message_that_merely_names_an_attachment_does_not_keep_it() {
    let house = plan()
        .token("ann", Role::Person, &[ANN])
        .token("bob", Role::Agent, &["agent://here.example/bob"])
        .token("ops", Role::Admin, &[])
        .open();
    let as_ = |name: &str, ask: Ask| house.ask(&ask.token(&secret(name)));
    let put = |name: &str, bytes: &[u8]| {
        let digest = Digest::of(bytes);
        let put = Ask::new("PUT", &format!("/crosstalk/blobs/{digest}"));
        assert!(matches!(as_(name, put.body(bytes)).status, 200 | 201));
        digest
    };
    let value = |digest: &Digest| format!("text/plain;name=a.txt;digest={digest}");
    let own = |digest: &Digest, id: &str, consent: Option<&str>| {
        let text = from_ann("agent://here.example/bot", id)
            .meta("attachments", "A1", value(digest))
            .meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Consent-ID", consent.unwrap_or(id));
        let answer = as_("ann", Ask::send(text.build().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let name = |digest: &Digest, id: &str| {
        let bob = "agent://here.example/bob";
        let text = letter(bob, bob, id).meta("attachments", "A1", value(digest));
        let answer = as_("bob", Ask::send(text.build().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let [named, earlier, again, both, of_bob] = [
        put("ann", b"named"),
        put("bob", b"earlier"),
        put("ann", b"again"),
        put("ann", b"both"),
        put("bob", b"of Bob"),
    ];
    name(&earlier, "B1");
    house.later(1);
    own(&named, "M1", Some("C1"));
    own(&earlier, "M2", Some("C1"));
    own(&again, "M3", Some("C1"));
    own(&both, "M4", Some("C1"));
    own(&both, "M5", None);
    own(&of_bob, "M6", Some("C1"));
    house.later(1);
    put("bob", b"again");
    for (digest, id) in [(&named, "B2"), (&again, "B3"), (&of_bob, "B4")] {
        name(digest, id);
    }
    let is_there = |digest: &Digest| {
        let get = |name| as_(name, Ask::get(&format!("/crosstalk/blobs/{digest}"))).status;
        let found = (get("bob"), get("ops"));
        found.0 == 200 || found.1 == 200
    };
    let all = [named, earlier, again, both, of_bob];
    assert!(all.iter().all(&is_there));
    let revoke = revoke("C1", "agent://here.example/bot", "R1");
    assert_eq!(as_("ann", Ask::send(revoke)).status, 200);
    let left = all.map(|digest| is_there(&digest));
    assert_eq!(left, [false, true, true, true, true]);
    let data = house.close();
    let store = Storage::open(data.path());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Relays on one database have the same attachments: every relay hands out what came to another one, and a REVOKE at any relay
/// erases it everywhere.
#[test]
fn attachments_are_served_and_erased_by_every_relay() {
    if storage::is_shared() {
        // The tests of the file run these relays, too.
        return;
    }
    const BOT: &str = "agent://here.example/bot";
    let database = Database::new();
    let office = || {
        plan()
            .token("ann", Role::Person, &[ANN])
            .token("bot", Role::Agent, &[BOT])
    };
    let relays = relays(&database, 3, office);
    // More than one part, and an empty one.
    let large: Vec<u8> = (0..700_001_u32).map(|n| n.to_le_bytes()[0] ^ 7).collect();
    for (round, bytes) in [large.as_slice(), b"", b"short"].into_iter().enumerate() {
        let relay = |number: usize| &relays[(round + number) % 3];
        let digest = Digest::of(bytes);
        let path = format!("/crosstalk/blobs/{digest}");
        // Whoever uploads it again stores nothing again.
        for again in 0..2 {
            let put = Ask::new("PUT", &path).body(bytes).token(&secret("ann"));
            assert_eq!(relay(again).ask(&put).status, 201);
        }
        let consent = format!("C{round}");
        let text = from_ann(BOT, &format!("M{round}"))
            .meta(
                "attachments",
                "A1",
                format!("text/plain;name=a.txt;digest={digest}"),
            )
            .meta("privacy", "Scope", "medical")
            .meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Consent-ID", &consent);
        let text = signed(&text.build().unwrap(), &key(), super::KEY);
        let sent = relay(0).ask(&Ask::send(text).token(&secret("ann")));
        assert_eq!(sent.status, 200, "{}", sent.text());
        let get = || Ask::get(&path).token(&secret("bot"));
        for relay in &relays {
            let got = relay.ask(&get());
            assert_eq!(
                (got.status, got.body == bytes),
                (200, true),
                "round {round}"
            );
            assert_eq!(
                got.header("content-length"),
                Some(bytes.len().to_string().as_str())
            );
        }
        let parts = "SELECT count(*), sum(length(bytes)) FROM blob_part";
        let count = bytes.len().div_ceil(256 << 10).max(1);
        assert_eq!(database.sql(parts), format!("{count}|{}", bytes.len()));
        let revoked = relay(2)
            .ask(&Ask::send(revoke(&consent, BOT, &format!("R{round}"))).token(&secret("ann")));
        assert_eq!(revoked.status, 200, "{}", revoked.text());
        for relay in &relays {
            assert_eq!(relay.ask(&get()).status, 404, "round {round}");
        }
        wait_until("no byte is left", || database.sql(parts) == "0|");
    }
}

/// Who reads a stream slowly does not get what is revoked meanwhile out of the memory of the relay.
#[test]
fn slow_stream_has_little_of_a_revoked_text() {
    const MESSAGES: usize = 16;
    let house = plan().open();
    let to = "agent://here.example/bot";
    // Far more than the buffers of a connection hold.
    let long = format!("secret {}\n", "x".repeat(990)).repeat(940);
    for number in 0..MESSAGES {
        house.take(&under("C1", to, &format!("M{number}"), &long));
    }
    let path = format!("/crosstalk/inbox?for={to}");
    let ask = Ask::get(&path).accept("text/event-stream").bytes();
    let open = || {
        let mut stream = TcpStream::connect(house.addr).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&ask).unwrap();
        stream
    };
    let (mut stream, mut said) = (open(), Vec::new());
    let mut read = |stream: &mut TcpStream| {
        let mut part = vec![0; 1 << 16];
        let size = stream.read(&mut part).unwrap();
        said.extend_from_slice(part.get(..size).unwrap_or_default());
        let is_cut = size == 0 || said.ends_with(b"\r\n0\r\n\r\n");
        (String::from_utf8_lossy(&said).into_owned(), is_cut)
    };
    while !read(&mut stream).0.contains("\nid: ") {}
    house.take(&revoke("C1", "human://here.example/ann", "R1"));
    house.take(&from_ann(to, "Z9").build().unwrap());
    // A stream that was cut in the middle of a message is opened again, as every client does.
    let said = loop {
        let (said, is_cut) = read(&mut stream);
        if said.contains("\"id\":\"Z9\"") {
            break said;
        }
        if is_cut {
            stream = open();
        }
    };
    let begun = said.matches("\nid: ").count() - 1;
    assert!(begun < MESSAGES - 2, "{begun} of {MESSAGES}");
}
