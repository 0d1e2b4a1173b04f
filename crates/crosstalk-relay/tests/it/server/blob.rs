//! Attachments.

use crate::house::{House, Plan, has_file, key, letter, secret, signed};
use crate::http::Ask;
use crosstalk_envelope::Builder;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::Origin;
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::wait_until;
use serde_json::json;

fn path(bytes: &[u8]) -> String {
    format!("/crosstalk/blobs/{}", Digest::of(bytes))
}

#[test]
fn an_attachment_is_kept_under_its_digest() {
    let house = House::local();
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let path = path(&bytes);
    assert_eq!(house.get(&path).status, 404);
    let put = Ask::new("PUT", &path).body(&bytes);
    let answer = house.ask(&put);
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.json(),
        json!({"digest": Digest::of(&bytes).to_string(), "size": 300_000})
    );
    assert_eq!(house.ask(&put).status, 201);
    let answer = house.get(&path);
    assert_eq!((answer.status, &answer.body), (200, &bytes));
    let etag = format!("\"{}\"", Digest::of(&bytes));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("etag", &etag),
        ("content-length", "300000"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    let mut line = house.line();
    let head = Ask::new("HEAD", &path).on(&mut line);
    assert_eq!(
        (
            head.status,
            head.header("content-length"),
            head.header("etag")
        ),
        (200, Some("300000"), Some(etag.as_str()))
    );
    // The line can be used again.
    assert_eq!(Ask::get(&path).on(&mut line).body, bytes);
    assert_eq!(
        Ask::get(&path)
            .header("If-None-Match", &etag)
            .on(&mut line)
            .status,
        304
    );
    assert_eq!(
        Ask::get(&path)
            .header("If-None-Match", "\"x\"")
            .on(&mut line)
            .status,
        200
    );
    let empty = self::path(b"");
    assert_eq!(house.ask(&Ask::new("PUT", &empty).body("")).status, 201);
    let answer = house.get(&empty);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    // It is there after a restart.
    let data = house.close();
    let house = House::open(Plan::default(), data).unwrap();
    assert_eq!(house.get(&path).body, bytes);
    assert_eq!(house.ask(&put).status, 201);
}

/// Threat 17: who sends slowly holds up nobody.
#[test]
fn slow_uploads_do_not_stop_others() {
    let house = Plan::default()
        .config("[limits]\nbody_seconds = 600")
        .open();
    let mut slow: Vec<_> = (0..40).map(|_| house.line()).collect();
    for (n, line) in slow.iter_mut().enumerate() {
        let path = path(&[n as u8]);
        line.send(format!(
            "PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx"
        ));
    }
    // It answers, so that the folder is there.
    house.get("/healthz");
    let folder = house.data.path().join("blobs");
    wait_until("16 uploads", || {
        std::fs::read_dir(&folder).unwrap().count() >= 16
    });
    assert_eq!(
        house.ask(&Ask::new("PUT", &path(b"x")).body("x")).status,
        201
    );
}

/// Threat 37: attachments leave room for messages.
#[test]
fn no_attachment_takes_the_last_of_the_disk() {
    let house = Plan::default()
        .config("[limits]\nfree_bytes = 9223372036854775807")
        .open();
    let answer = house.ask(&Ask::new("PUT", &path(b"x")).body("x"));
    assert_eq!((answer.status, answer.code().as_str()), (503, "E-RATE"));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(house.get(&path(b"x")).status, 404);
    assert!(!has_file(&house.data.path().join("blobs"), ""));
    house.take(&letter("A", "chatgpt://x/y", "M1").build().unwrap());
}

#[test]
fn attachment_with_another_digest_is_not_kept() {
    let house = Plan::default().config("[limits]\nblob_bytes = 1000").open();
    let answer = house.ask(&Ask::new("PUT", &path(b"plum")).body("pear"));
    assert_eq!((answer.status, answer.code().as_str()), (400, "E-FORMAT"));
    assert_eq!(house.get(&path(b"plum")).status, 404);
    assert_eq!(house.get(&path(b"pear")).status, 404);
    for (size, status) in [(1000, 201), (1001, 413)] {
        let bytes = vec![b'x'; size];
        assert_eq!(
            house
                .ask(&Ask::new("PUT", &path(&bytes)).body(&bytes))
                .status,
            status
        );
        // Without a length, too.
        let bytes = vec![b'y'; size];
        let mut line = house.line();
        line.send(format!(
            "PUT {} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n",
            path(&bytes)
        ));
        line.send(&bytes);
        line.send("\r\n0\r\n\r\n");
        assert_eq!(line.answer().status, status);
    }
    // Half of one, and then nobody any more.
    let bytes = vec![b'z'; 900];
    let mut line = house.line();
    line.send(&Ask::new("PUT", &path(&bytes)).body(&bytes).bytes()[..500]);
    drop(line);
    for name in [
        "SHA256:00",
        "sha256:",
        "../../relay.db",
        "..%2F..%2Frelay.db",
        "sha256:ABCDEF",
    ] {
        for method in ["GET", "PUT"] {
            let status = house
                .ask(&Ask::new(method, &format!("/crosstalk/blobs/{name}")).body(""))
                .status;
            assert!(matches!(status, 400 | 404), "{method} {name} {status}");
        }
    }
    let gzip = Ask::new("PUT", &path(b"x"))
        .body("x")
        .header("Content-Encoding", "gzip");
    assert_eq!(house.ask(&gzip).status, 415);
    let data = house.close();
    assert!(!has_file(data.path(), "new-"), "something is left");
}

#[test]
fn an_attachment_stays_as_long_as_a_message_refers_to_it() {
    let house = House::local();
    let put = |bytes: &[u8]| house.ask(&Ask::new("PUT", &path(bytes)).body(bytes)).status;
    assert_eq!((put(b"used"), put(b"unused")), (201, 201));
    let attachment = format!("text/plain;name=a.txt;digest={}", Digest::of(b"used"));
    let sent = letter("A", "chatgpt://x/y", "M1").meta("attachments", "A1", &attachment);
    house.take(&sent.build().unwrap());
    // A day later, what nobody refers to is removed.
    let house = House::open_at(Plan::default(), house.close(), 25 * 3600).unwrap();
    wait_until("the unused attachment to be removed", || {
        house.get(&path(b"unused")).status == 404
    });
    assert_eq!(house.get(&path(b"used")).body, b"used");
}

/// Who sees a message gets what it refers to, and nobody else; what waits for a person is seen by who decides.
#[test]
fn an_attachment_is_for_those_who_see_a_message_with_it() {
    let house = Plan::default()
        .config("[[hold]]\nto = [\"chatgpt://held\"]")
        .courier("ann", &["human://acme.example/ann"], &["SOMEBODY"])
        .token("bob", Role::Person, &["human://acme.example/bob"])
        .token("one", Role::Agent, &["chatgpt://one"])
        .token("two", Role::Agent, &["chatgpt://two", "chatgpt://held"])
        .token("other", Role::Agent, &["chatgpt://other"])
        .token("ops", Role::Admin, &[])
        .open();
    let as_ = |name: &str, ask: Ask| house.ask(&ask.token(&secret(name)));
    let who = |bytes: &[u8]| {
        let may = |name: &&str| {
            let head = as_(name, Ask::get(&path(bytes))).status;
            assert!(matches!(head, 200 | 404));
            head == 200
        };
        let all = ["ann", "bob", "one", "two", "other", "ops"];
        all.into_iter().filter(may).collect::<Vec<_>>()
    };
    let put = |bytes: &[u8]| as_("one", Ask::new("PUT", &path(bytes)).body(bytes)).status;
    assert_eq!((put(b"plum"), put(b"pear"), put(b"fig")), (201, 201, 201));
    assert_eq!(who(b"plum"), ["one", "ops"], "nothing refers to it yet");
    let refer = |bytes: &[u8], to: &str, id: &str| {
        let attachment = format!("text/plain;name=a.txt;digest={}", Digest::of(bytes));
        let sent = letter("chatgpt://one", to, id).meta("attachments", "A1", &attachment);
        let answer = as_("one", Ask::send(sent.build().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    refer(b"plum", "chatgpt://two", "M1");
    assert_eq!(who(b"plum"), ["one", "two", "ops"]);
    refer(b"pear", "chatgpt://held", "M2");
    assert_eq!(who(b"pear"), ["ann", "bob", "one", "ops"]);
    // Who carries a message carries what is attached to it.
    refer(b"fig", "SOMEBODY", "M3");
    assert_eq!(who(b"fig"), ["ann", "one", "ops"]);
}

/// A relay, and what callers do there with attachments.
struct Drawer(House);

impl Drawer {
    fn open(config: &str) -> Self {
        Self::of(Plan::default().config(config))
    }

    fn of(plan: Plan) -> Self {
        let plan = ["one", "two", "eve"].iter().fold(plan, |plan, name| {
            plan.token(name, Role::Agent, &[&format!("chatgpt://{name}")])
        });
        Self(plan.token("ops", Role::Admin, &[]).open())
    }

    fn ask(&self, name: &str, ask: Ask) -> crate::http::Answer {
        self.0.ask(&ask.token(&secret(name)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> crate::http::Answer {
        self.ask(name, Ask::new("PUT", &path(bytes)).body(bytes))
    }

    fn can_read(&self, name: &str, bytes: &[u8]) -> bool {
        let answer = self.ask(name, Ask::get(&path(bytes)));
        assert!(matches!(answer.status, 200 | 404), "{}", answer.status);
        answer.status == 200
    }

    fn readers(&self, bytes: &[u8]) -> Vec<&'static str> {
        let all = ["one", "two", "eve", "ops"];
        all.into_iter()
            .filter(|n| self.can_read(n, bytes))
            .collect()
    }

    /// A message that refers to an attachment.
    fn refer(&self, from: &str, to: &str, id: &str, bytes: &[u8]) {
        let attachment = format!("text/plain;name=a.txt;digest={}", Digest::of(bytes));
        let sent = letter(&format!("chatgpt://{from}"), &format!("chatgpt://{to}"), id)
            .thread(format!("T-{id}"))
            .meta("attachments", "A1", &attachment);
        let answer = self.ask(from, Ask::send(sent.build().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// Threat 48: whoever knows a digest can't read the attachment by naming it.
#[test]
fn naming_a_digest_grants_no_access() {
    let drawer = Drawer::open("");
    // Before it is there, while nothing refers to it, and once a message to somebody else does.
    drawer.refer("eve", "eve", "E1", b"plum");
    assert_eq!(drawer.put("one", b"plum").status, 201);
    drawer.refer("eve", "eve", "E2", b"plum");
    assert_eq!(drawer.readers(b"plum"), ["one", "ops"]);
    drawer.refer("one", "two", "M1", b"plum");
    drawer.refer("eve", "eve", "E3", b"plum");
    assert_eq!(drawer.readers(b"plum"), ["one", "two", "ops"]);
    // Whoever can read it may pass it on.
    drawer.refer("two", "eve", "M2", b"plum");
    assert_eq!(drawer.readers(b"plum"), ["one", "two", "eve", "ops"]);
    // Whoever has the bytes may refer to them, in messages that were sent before as well.
    assert_eq!(drawer.put("one", b"pear").status, 201);
    drawer.refer("eve", "two", "E4", b"pear");
    assert_eq!(drawer.readers(b"pear"), ["one", "ops"]);
    assert_eq!(drawer.put("eve", b"pear").status, 201);
    assert_eq!(drawer.readers(b"pear"), ["one", "two", "eve", "ops"]);
}

fn naming(letter: Builder, bytes: &[u8]) -> String {
    let attachment = format!("text/plain;name=a.txt;digest={}", Digest::of(bytes));
    let letter = letter.meta("attachments", "A1", attachment);
    letter.build().unwrap()
}

/// Threat 48: a key that is called like a token is not that token.
#[test]
fn key_called_like_a_token_has_none_of_its_uploads() {
    let plan = Plan::default();
    let drawer = Drawer::of(plan.pin_as(Origin::FirstContact, "one", &key(), "chatgpt://eve"));
    assert_eq!(drawer.put("one", b"plum").status, 201);
    let sent = naming(letter("chatgpt://eve", "chatgpt://eve", "E1"), b"plum");
    let answer = drawer.0.ask(&Ask::send(signed(&sent, &key(), "one")));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(drawer.readers(b"plum"), ["one", "ops"]);
    // Nor does it use them up, or end them.
    drawer.refer("one", "two", "M1", b"plum");
    assert_eq!(drawer.readers(b"plum"), ["one", "two", "ops"]);
}

/// Threat 48: a sender is one address, though a `*` is in it.
#[test]
fn star_in_the_name_of_a_sender_stands_for_nobody() {
    for sender in ["*", "chatgpt://*", "chatgpt://t*"] {
        let plan = Plan::default();
        let drawer = Drawer::of(plan.pin_as(Origin::FirstContact, "k", &key(), sender));
        assert_eq!(drawer.put("one", b"plum").status, 201);
        drawer.refer("one", "two", "M1", b"plum");
        let sent = naming(letter(sender, "chatgpt://eve", "E1"), b"plum");
        let answer = drawer.0.ask(&Ask::send(signed(&sent, &key(), "k")));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(drawer.readers(b"plum"), ["one", "two", "ops"], "{sender}");
    }
}

/// Threat 37: a message makes the relay look for a bounded number of attachments.
#[test]
fn message_names_a_bounded_number_of_attachments() {
    let drawer = Drawer::open("");
    let send = |id: &str, many: usize, kinds: usize| {
        let mut sent = letter("chatgpt://one", "chatgpt://two", id);
        for n in 0..many {
            let digest = Digest::of((n % kinds).to_string().as_bytes());
            let attachment = format!("text/plain;name=a.txt;digest={digest}");
            sent = sent.meta("attachments", format!("A{}", n + 1), attachment);
        }
        drawer.ask("one", Ask::send(sent.build().unwrap()))
    };
    let refused = send("M1", 65, 65);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (413, "E-TOO-LARGE")
    );
    // The same one counts once.
    assert_eq!(
        (send("M2", 64, 64).status, send("M3", 65, 1).status),
        (200, 200)
    );
}

/// Threat 37: how often others pass an attachment on changes nothing for who got it.
#[test]
fn first_of_many_references_counts() {
    let drawer = Drawer::open("[limits]\nrequests_per_minute = 0");
    assert_eq!(drawer.put("one", b"plum").status, 201);
    drawer.refer("one", "two", "M0", b"plum");
    for n in 1..80 {
        drawer.refer("one", "one", &format!("M{n}"), b"plum");
    }
    assert_eq!(drawer.readers(b"plum"), ["one", "two", "ops"]);
    drawer.refer("two", "eve", "N1", b"plum");
    assert!(drawer.can_read("eve", b"plum"));
}

/// Threat 48: an upload says nothing about what others have.
#[test]
fn an_upload_is_answered_alike_whether_others_have_the_bytes_or_not() {
    let drawer = Drawer::open("");
    assert_eq!(drawer.put("one", b"known").status, 201);
    drawer.refer("one", "two", "M1", b"known");
    let (known, new) = (drawer.put("eve", b"known"), drawer.put("eve", b"fresh"));
    assert_eq!((known.status, new.status), (201, 201));
    let shape = |answer: &crate::http::Answer, bytes: &[u8]| {
        let digest = Digest::of(bytes).to_string();
        let mut headers = answer.headers.clone();
        headers.retain(|(name, _)| name != "date" && !name.starts_with("ratelimit"));
        (headers, answer.text().replace(&digest, ""))
    };
    assert_eq!(shape(&known, b"known"), shape(&new, b"fresh"));
    // Both are as readable for whoever sent them.
    assert!(drawer.can_read("eve", b"known") && drawer.can_read("eve", b"fresh"));
}

/// Threat 37: one token does not fill the disk of the relay with attachments.
#[test]
fn a_token_has_a_quota_of_attachments() {
    let drawer = Drawer::open("[limits]\ntoken_blob_bytes = 20000");
    let put = |name: &str, fill: u8, size: usize| drawer.put(name, &vec![fill; size]).status;
    assert_eq!((put("one", 1, 9000), put("one", 2, 9001)), (201, 201));
    // Nothing of less than a block fits any more.
    let answer = drawer.put("one", &[3; 10]);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "E-TOO-LARGE")
    );
    assert!(
        answer.text().contains("token_blob_bytes"),
        "{}",
        answer.text()
    );
    assert!(!drawer.can_read("ops", &[3; 10]), "nothing is kept of it");
    // What it has may come again, and others have a quota of their own, also for the same bytes.
    assert_eq!((put("one", 1, 9000), put("two", 1, 9000)), (201, 201));
    assert_eq!((put("two", 4, 11_001), put("two", 4, 11_000)), (413, 201));
    // Without a length as well, and in many small ones.
    let mut line = drawer.0.line();
    line.send(format!(
        "PUT {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        path(&[5; 20_001]),
        secret("eve"),
        20_001
    ));
    line.send([5; 20_001]);
    line.send("\r\n0\r\n\r\n");
    assert_eq!(line.answer().status, 413);
    let small = (10..20).filter(|n| put("eve", *n, 1) == 201).count();
    assert_eq!(small, 4);
    // They count until nothing refers to them any more and their time is over.
    assert!(!has_file(&drawer.0.data.path().join("blobs"), "new-"));
}
