//! A witness keeps what a relay signed, whatever the relay does to keep it from being compared.

use super::Person;
use crosstalk_cli::exit;
use crosstalk_envelope::{Algorithm, PrivateKey, base64};
use crosstalk_protocol::audit::{Checkpoint, NoteKey, Tree};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const NAME: &str = "relay.example";

/// What a relay answers: the checkpoint, and the proof with its status.
#[derive(Clone)]
struct Shown {
    checkpoint: String,
    proof: (u16, String),
}

fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap()
}

/// A log of so many entries; from the third on, those of another past have other ones.
fn tree(size: u8, past: u8) -> Tree {
    Tree::of((0..size).map(|n| [if n < 3 { n } else { n + past }; 32]))
}

fn note(tree: &Tree, size: u64) -> String {
    let (origin, root) = (NAME.to_owned(), tree.root(size).unwrap());
    Checkpoint { origin, size, root }.sign(&key()).unwrap()
}

fn proof(tree: &Tree, from: u64, to: u64) -> (u16, String) {
    let hashes = tree.consistency(from, to);
    let lines: Vec<String> = hashes.iter().map(|h| base64::encode(h) + "\n").collect();
    (200, lines.concat())
}

/// A relay that says what it is told to say.
fn relay(shown: &Arc<Mutex<Shown>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shown = Arc::clone(shown);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let _head = lines.take_while(|l| !l.is_empty()).count();
            let Shown { checkpoint, proof } = shown.lock().unwrap().clone();
            let (status, body) = match first.split(' ').nth(1).unwrap_or_default() {
                "/crosstalk/audit/checkpoint" => (200, checkpoint),
                "/crosstalk/audit/key" => {
                    let key = NoteKey::new(NAME, key().public()).unwrap();
                    (200, format!("{key}\n"))
                }
                _ => proof,
            };
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\
                 \r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn no_answer_of_a_relay_makes_a_witness_forget() {
    let kalle = Person::new("witness", "kalle");
    let (true_log, other, third) = (tree(9, 0), tree(9, 100), tree(9, 200));
    let shown = Arc::new(Mutex::new(Shown {
        checkpoint: note(&true_log, 5),
        proof: (404, String::new()),
    }));
    let url = relay(&shown);
    let file = |name: &str| kalle.home.path(name);
    let read = |name: &str| std::fs::read_to_string(file(name)).ok();
    let watch = |checkpoint: &str, proof: (u16, String)| {
        *shown.lock().unwrap() = Shown {
            checkpoint: checkpoint.to_owned(),
            proof,
        };
        let keep = file("held.note");
        let keep = keep.to_str().unwrap();
        kalle.run(&["audit", "watch", "--relay", &url, "--keep", keep])
    };
    let held = note(&true_log, 5);
    let first = watch(&held, (404, String::new()));
    assert_eq!(first.code, i32::from(exit::FIRST_CONTACT), "{}", first.err);

    // The log was rewritten, and there is no proof to be had: the signed note stays, as the first evidence.
    let forged = note(&other, 7);
    for (status, text) in [(404, ""), (500, ""), (429, ""), (200, "zzz\n")] {
        let ended = watch(&forged, (status, text.to_owned()));
        assert_eq!(ended.code, i32::from(exit::NOT_VERIFIED), "{status}");
        assert!(ended.out.contains("did not prove"), "{}", ended.out);
        assert_eq!(read("held.note"), Some(held.clone()), "{status}");
        assert_eq!(read("held.note.shown"), Some(forged.clone()), "{status}");
    }
    assert_eq!(read("held.note.shown.2"), None);

    // The same note with a proof of the wrong log, another fork, a log that was cut: each in a file of its own.
    let fork = watch(&forged, proof(&other, 5, 7));
    assert_eq!(fork.code, i32::from(exit::FORK), "{}", fork.out);
    let again = note(&third, 8);
    assert_eq!(
        watch(&again, proof(&third, 5, 8)).code,
        i32::from(exit::FORK)
    );
    let cut = note(&true_log, 2);
    assert_eq!(
        watch(&cut, (404, String::new())).code,
        i32::from(exit::FORK)
    );
    // What nobody signed takes the place of nothing.
    let garbage = watch("hello\n", (404, String::new()));
    assert_eq!(garbage.code, i32::from(exit::NOT_VERIFIED));
    assert_eq!(read("held.note.unsigned"), Some("hello\n".to_owned()));
    assert_eq!(read("held.note"), Some(held));
    for (name, note) in [
        (".shown", &forged),
        (".shown.2", &again),
        (".shown.3", &cut),
    ] {
        assert_eq!(
            read(&format!("held.note{name}")).as_ref(),
            Some(note),
            "{name}"
        );
    }
    assert_eq!(read("held.note.shown.4"), None);

    // What extends it is taken.
    let next = note(&true_log, 9);
    let ended = watch(&next, proof(&true_log, 5, 9));
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert_eq!(read("held.note"), Some(next));
}
