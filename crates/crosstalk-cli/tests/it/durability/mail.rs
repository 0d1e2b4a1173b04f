//! SIGKILL while mail comes in. By LMTP: a mail that was answered with 250 is on disk, and sending all again changes nothing. From a
//! mailbox: each mail is taken, and once.

use super::relay_on_disk;
use crosstalk_testing::dovecot::Dovecot;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::loopback::own_ip;
use crosstalk_testing::tier;
use crosstalk_testing::wait::{LIMIT, wait_until};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;

/// Connections at once.
const CLIENTS: usize = 4;
/// Mails of one client.
const MAILS: usize = 40;
/// Accepted mails before the kill.
const FEW: usize = 20;

/// A mail with an envelope. Every other one has no id, and gets one from the relay.
fn mail(name: &str, number: usize) -> String {
    let id = match number % 2 {
        0 => format!("message: {name}\n"),
        _ => String::new(),
    };
    let text = format!(
        "[[email:x@y.example→BOB v1]]\nuser: x\nthread: T{name}\n{id}context: kill\nintent: NOTE\nbody: |\n  {name}\nsig: none\n[[END]]\n"
    );
    let head = format!(
        "Authentication-Results: mx.test; dmarc=pass header.from=y.example\nFrom: <x@y.example>\nMessage-ID: <{name}@y.example>\n\n"
    );
    (head + &text).replace('\n', "\r\n")
}

/// Hands a mail over: whether it was accepted, if there was an answer.
fn deliver(stream: &mut BufReader<TcpStream>, mail: &str) -> Option<bool> {
    let mut say = |text: &str, answers: usize| {
        stream.get_mut().write_all(text.as_bytes()).ok()?;
        let mut line = String::new();
        for _ in 0..answers {
            line.clear();
            stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        }
        Some(line)
    };
    say(
        "MAIL FROM:<x@y.example>\r\nRCPT TO:<crosstalk@relay.test>\r\nDATA\r\n",
        3,
    )?;
    let answer = say(&format!("{mail}.\r\n"), 1)?;
    Some(answer.starts_with("250"))
}

fn connect(address: SocketAddr) -> Option<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(b"LHLO client\r\n").ok()?;
    let mut line = String::new();
    while !line.starts_with("250 ") {
        line.clear();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
    }
    Some(stream)
}

#[test]
fn accepted_mails_survive_kills_and_come_once() {
    let data = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "mail");
    let port = TcpListener::bind((own_ip(), 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let config = format!(
        "[limits]\nrequests_per_minute = 0\n[email]\ndomain = \"relay.test\"\ntrust_results = \"mx.test\"\n[email.lmtp]\nlisten = \"{port}\"\n"
    );
    let mut relay = relay_on_disk().data(data.path()).config(config).start();
    let mut all = BTreeSet::new();
    for cycle in 0..tier::size(2, 20) {
        let accepted = Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let accepted = &accepted;
                scope.spawn(move || {
                    let Some(mut stream) = connect(port) else {
                        return;
                    };
                    for number in 0..MAILS {
                        let name = format!("M{cycle}-{client}-{number}");
                        match deliver(&mut stream, &mail(&name, number)) {
                            Some(is_accepted) => assert!(is_accepted, "{name}"),
                            None => return,
                        }
                        accepted.lock().unwrap().insert(name);
                    }
                });
            }
            wait_until("accepted mails", || accepted.lock().unwrap().len() >= FEW);
            relay.kill();
        });
        relay.start();
        let accepted = accepted.into_inner().unwrap();
        let kept = bodies(&data.path().join("relay.db"));
        for name in &accepted {
            assert!(
                kept.contains(name),
                "{name} was answered with 250 and is lost\n{}",
                relay.log()
            );
        }
        // The mail server sends everything again that it is not sure about.
        let mut stream = connect(port).unwrap();
        for client in 0..CLIENTS {
            for number in 0..MAILS {
                let name = format!("M{cycle}-{client}-{number}");
                assert_eq!(
                    deliver(&mut stream, &mail(&name, number)),
                    Some(true),
                    "{name}"
                );
                all.insert(name);
            }
        }
        let kept = bodies(&data.path().join("relay.db"));
        assert_eq!(kept.len(), all.len(), "nothing is there twice");
        assert_eq!(kept.into_iter().collect::<BTreeSet<_>>(), all);
    }
}

#[test]
fn mailbox_is_read_once_though_relay_and_mail_server_end() {
    let data = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "mailbox");
    let mut dovecot = Dovecot::start(&["relay"]);
    let imap = dovecot.imaps();
    let config = format!(
        "[limits]\nrequests_per_minute = 0\n[email]\ndomain = \"relay.test\"\ntrust_results = \"mx.test\"\n[email.imap]\nhost = \
         \"{}\"\nport = {}\nca_file = \"{}\"\nuser = \"relay\"\npassword_file = \"{}\"\n",
        imap.ip(),
        imap.port(),
        dovecot.authority().display(),
        dovecot.password_file().display()
    );
    let mut relay = relay_on_disk().data(data.path()).config(config).start();
    let store = data.path().join("relay.db");
    let mut all = BTreeSet::new();
    for cycle in 0..tier::size(4, 40) {
        for number in 0..MAILS {
            let name = format!("I{cycle}-{number}");
            dovecot.deliver("relay", mail(&name, number).as_bytes());
            all.insert(name);
        }
        let start = format!("I{cycle}-");
        wait_until("some mails", || {
            bodies(&store)
                .iter()
                .filter(|b| b.starts_with(&start))
                .count()
                >= FEW / 4
        });
        // In the middle of the rest: the relay, or the mail server and every connection with it.
        match cycle % 2 {
            0 => {
                relay.kill();
                relay.start();
            }
            _ => dovecot.restart(),
        }
    }
    wait_until("marks of all", || dovecot.seen("relay").len() == all.len());
    let kept = bodies(&store);
    assert_eq!(
        kept.len(),
        all.len(),
        "nothing is there twice\n{}",
        relay.log()
    );
    assert_eq!(kept.into_iter().collect::<BTreeSet<_>>(), all);
}

/// What the messages in a store say.
fn bodies(store: &Path) -> Vec<String> {
    let store = rusqlite::Connection::open(store).unwrap();
    let mut query = store.prepare("SELECT text FROM intake").unwrap();
    let texts = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let body = |text: String| {
        let (_, body) = text.split_once("body: |\n").unwrap();
        body.lines().next().unwrap().trim().to_owned()
    };
    texts.map(|text| body(text.unwrap())).collect()
}
