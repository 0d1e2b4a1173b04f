//! A mailbox whose server fails in the middle of things: it ends connections, says NO, and reports mails at awkward times.

use super::note;
use crate::house::{MailHouse, config};
use crosstalk_testing::wait::{LIMIT, wait_for_ok};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A way in which a command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The connection ends without an answer.
    End,
    /// The connection ends without an answer, each time.
    EndAlways,
    /// The answer is NO.
    No,
    /// A mail comes, and the answer to this command reports it. Nothing reports it again.
    Arrival,
}

/// A mailbox. The mail with the UID 1 is the first one.
#[derive(Debug, Default)]
struct Mailbox {
    mails: Vec<String>,
    seen: BTreeSet<usize>,
    copied: BTreeSet<usize>,
    /// Those that were copied and marked as deleted.
    done: BTreeSet<usize>,
    /// The commands that fail, each once, by their beginning.
    troubles: Vec<(&'static str, Trouble)>,
    /// A mail was reported, and not looked for since.
    is_told: bool,
    /// The client idled although it was told about a mail.
    idled_after_news: bool,
}

impl Mailbox {
    /// The lines of the answer, and whether it is OK; nothing if the connection ends.
    fn answer(&mut self, command: &str) -> Option<(String, bool)> {
        let found = self
            .troubles
            .iter()
            .position(|(b, _)| command.starts_with(b));
        let trouble = found.map(|place| self.troubles[place].1);
        if let Some(place) = found.filter(|_| trouble != Some(Trouble::EndAlways)) {
            self.troubles.remove(place);
        }
        match trouble {
            Some(Trouble::End | Trouble::EndAlways) => return None,
            Some(Trouble::No) => return Some((String::new(), false)),
            Some(Trouble::Arrival) | None => {}
        }
        let words: Vec<&str> = command.split(' ').collect();
        let count = self.mails.len();
        let mut lines = match words.as_slice() {
            ["CAPABILITY"] => "* CAPABILITY IMAP4rev1 IDLE\r\n".to_owned(),
            ["SELECT", _] => format!(
                "* {count} EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT {}] x\r\n",
                count + 1
            ),
            ["UID", "SEARCH", query @ ..] => {
                self.is_told = false;
                let first = match query {
                    ["UID", range] => range.trim_end_matches(":*").parse().unwrap(),
                    _ => 1,
                };
                let is_found = |uid: &usize| match query {
                    ["UNSEEN"] => !self.seen.contains(uid),
                    _ => *uid >= first || *uid == count,
                };
                let found = (1..=count).filter(is_found).map(|uid| format!(" {uid}"));
                format!("* SEARCH{}\r\n", found.collect::<String>())
            }
            ["UID", "FETCH", uid, _, item] => {
                let mail = &self.mails[uid.parse::<usize>().unwrap() - 1];
                let flags = format!("* {uid} FETCH (UID {uid} FLAGS (\\Recent))\r\n");
                match *item {
                    "RFC822.SIZE)" => format!(
                        "{flags}* {uid} FETCH (UID {uid} RFC822.SIZE {})\r\n{flags}",
                        mail.len()
                    ),
                    "BODY.PEEK[])" => format!(
                        "{flags}* {uid} FETCH (UID {uid} BODY[] {{{}}}\r\n{mail})\r\n{flags}",
                        mail.len()
                    ),
                    other => panic!("{other}"),
                }
            }
            ["UID", "STORE", uid, "+FLAGS.SILENT", "(\\Seen)"] => {
                self.seen.insert(uid.parse().unwrap());
                String::new()
            }
            ["UID", "STORE", uid, "+FLAGS.SILENT", "(\\Deleted)"] => {
                assert!(self.copied.contains(&uid.parse().unwrap()));
                self.done.insert(uid.parse().unwrap());
                String::new()
            }
            ["UID", "COPY", uid, "\"Done\""] => {
                self.copied.insert(uid.parse().unwrap());
                String::new()
            }
            ["LOGIN", ..] | ["LOGOUT"] => String::new(),
            other => panic!("{other:?}"),
        };
        if trouble == Some(Trouble::Arrival) {
            self.mails.push(note(&format!("S{}", count + 1)));
            self.is_told = true;
            lines.push_str(&format!("* {} EXISTS\r\n", count + 1));
        }
        Some((lines, true))
    }
}

fn serve(stream: &TcpStream, mailbox: &Mutex<Mailbox>) -> Option<()> {
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    out.write_all(b"* OK ready\r\n").ok()?;
    loop {
        let line = lines.next()?.ok()?;
        let (tag, command) = line.split_once(' ')?;
        if command == "IDLE" {
            let mut mailbox = mailbox.lock().unwrap();
            mailbox.idled_after_news |= mailbox.is_told;
            drop(mailbox);
            write!(out, "+ idling\r\n").ok()?;
            assert_eq!(lines.next()?.ok()?, "DONE");
            write!(out, "{tag} OK done\r\n").ok()?;
            continue;
        }
        let (lines, is_ok) = mailbox.lock().unwrap().answer(command)?;
        let word = if is_ok { "OK" } else { "NO [SERVERBUG]" };
        write!(out, "{lines}{tag} {word} said\r\n").ok()?;
    }
}

fn start(mailbox: &Arc<Mutex<Mailbox>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mailbox = Arc::clone(mailbox);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            serve(&stream, &mailbox);
        }
    });
    address
}

/// A relay that reads the mailbox, and the file of its password.
fn reader_of(mailbox: &Arc<Mutex<Mailbox>>) -> (MailHouse, tempfile::NamedTempFile) {
    let address = start(mailbox);
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "secret").unwrap();
    let house = MailHouse::new(&config(&format!(
        "[email.imap]\nhost = \"{}\"\nport = {}\ntls = \"none\"\nuser = \"ann\"\ndone_folder = \"Done\"\npassword_file = \"{}\"\n",
        address.ip(),
        address.port(),
        password.path().display()
    )));
    (house, password)
}

/// One bad message never stops the rest.
#[test]
fn a_mail_that_ends_each_connection_stops_no_other() {
    let mailbox = Arc::new(Mutex::new(Mailbox {
        mails: (1..=3).map(|number| note(&format!("S{number}"))).collect(),
        troubles: vec![("UID FETCH 1 (UID BODY", Trouble::EndAlways)],
        ..Mailbox::default()
    }));
    let (_house, _password) = reader_of(&mailbox);
    wait_for_ok(|| {
        let mailbox = mailbox.lock().unwrap();
        match mailbox.done == BTreeSet::from([2, 3]) {
            true => Ok(()),
            false => Err(format!("the mails after the first: {mailbox:?}")),
        }
    });
}

#[test]
fn mails_are_taken_whatever_command_fails_and_whenever_they_are_reported() {
    let troubles = vec![
        ("UID SEARCH UNSEEN", Trouble::End),
        ("UID SEARCH UNSEEN", Trouble::No),
        ("UID FETCH 1 (UID RFC822.SIZE", Trouble::End),
        ("UID FETCH 2 (UID BODY", Trouble::End),
        ("UID STORE 3", Trouble::End),
        ("UID FETCH 4 (UID RFC822.SIZE", Trouble::No),
        ("UID FETCH 5 (UID BODY", Trouble::No),
        ("UID STORE 6", Trouble::No),
        ("UID SEARCH UID", Trouble::Arrival),
        ("UID FETCH 7 (UID BODY", Trouble::Arrival),
        ("UID STORE 8", Trouble::Arrival),
        ("UID COPY 9", Trouble::Arrival),
        ("UID COPY 10", Trouble::No),
    ];
    let mailbox = Arc::new(Mutex::new(Mailbox {
        mails: (1..=6).map(|number| note(&format!("S{number}"))).collect(),
        troubles,
        ..Mailbox::default()
    }));
    let (house, _password) = reader_of(&mailbox);
    wait_for_ok(|| {
        let mailbox = mailbox.lock().unwrap();
        match mailbox.done.len() == 10 && mailbox.troubles.is_empty() {
            true => Ok(()),
            false => Err(format!("ten mails: {mailbox:?}")),
        }
    });
    assert_eq!(house.thread("TS").len(), 10);
    let mailbox = mailbox.lock().unwrap();
    assert_eq!(mailbox.seen, mailbox.done);
    assert!(!mailbox.idled_after_news);
}
