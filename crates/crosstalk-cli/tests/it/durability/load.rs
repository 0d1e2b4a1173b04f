//! Full load: senders, programs on a route, a reader that acknowledges, and a person who revokes consents, all at once.

use super::{Told, inbox_page};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::{Relay, Setup, envelope};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Senders at once, to inboxes.
const SENDERS: usize = 24;
/// Inboxes that they send to.
pub(crate) const INBOXES: usize = 3;
/// Senders that ask a program and wait for its answer.
const ASKERS: usize = 2;
/// A program answers under this address.
const PROGRAM: &str = "claude://durable/program";
/// The person who gives consents and revokes them.
const ANN: &str = "human://durable/ann";
const KEY_ID: &str = "ann@durable.example";
/// The agent that gets personal data.
const CLINIC: &str = "claude://durable/clinic";

const CONFIG: &str = "name = \"durable\"\n\
     [[route]]\nto = \"claude://durable/program\"\nby = \"exec\"\ninput = \"body\"\n\
     command = [\"sh\", \"-c\", \"cat > /dev/null; echo Done.\"]\n";

fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap()
}

/// Prepares a data folder and a relay in it: the key of the person who revokes is pinned, and a program is on a route.
pub(super) fn prepare(setup: Setup, data: &Path) -> Setup {
    let record = key().public().record();
    let pinned = Command::new(env!("CARGO_BIN_EXE_crosstalk"))
        .args(["trust", "pin", KEY_ID, "--key", &record, "--sender", ANN])
        .env("CROSSTALK_HOME", data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&pinned.stderr);
    assert!(pinned.status.success(), "{said}");
    setup.data(data).config(CONFIG)
}

/// The address of an inbox.
pub(crate) fn inbox(number: usize) -> String {
    format!("claude://durable/inbox-{}", number % INBOXES)
}

/// The sender of a message of the load.
fn sender_of(id: &str) -> usize {
    id.split('-').nth(1).unwrap().parse().unwrap()
}

/// Whether a message of the load is for the program.
pub(super) fn is_question(id: &str) -> bool {
    id.starts_with('K') && sender_of(id) >= SENDERS
}

/// Whether a message of the load is for an inbox.
pub(super) fn is_letter(id: &str) -> bool {
    id.starts_with('K') && sender_of(id) < SENDERS
}

/// The thread of a message of the load: a hundred messages of a sender have one together.
pub(super) fn thread_of(id: &str) -> String {
    format!("T-{}", &id[..id.len() - 2])
}

/// A word of the body that no other message has.
pub(super) fn word_of(id: &str) -> String {
    Digest::of(id.as_bytes()).to_string()[7..31].to_owned()
}

fn address_of(sender: usize) -> String {
    format!("chatgpt://durable/s{sender}")
}

/// A message of the load: the same text whenever it is sent.
pub(crate) fn letter(id: &str) -> String {
    let sender = sender_of(id);
    let to = match is_question(id) {
        true => PROGRAM.to_owned(),
        false => inbox(sender),
    };
    let text = envelope(id, &thread_of(id), &address_of(sender), &to);
    text.replacen("  1. Is", &format!("  {} is", word_of(id)), 1)
}

/// A message with personal data, under a consent of its own.
pub(super) fn secret(number: &str) -> String {
    let id = format!("S{number}");
    Builder::new(ANN, CLINIC)
        .user("ann")
        .thread(format!("T-{id}"))
        .message(&id)
        .context("health")
        .intent("REQUEST")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "PII", "present")
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Consent-ID", format!("C{number}"))
        .body(format!("The result is {}.", word_of(&id)))
        .build()
        .unwrap()
}

/// The revocation of a consent, signed.
fn revocation(number: &str) -> String {
    let id = format!("R{number}");
    let unsigned = Builder::new(ANN, CLINIC)
        .user("ann")
        .thread(format!("T-{id}"))
        .message(&id)
        .context("health")
        .intent("BROADCAST")
        .meta("revocation", "Consent-ID", format!("C{number}"))
        .body("It is over.")
        .build()
        .unwrap()
        // A builder does not write a REVOKE without a signature.
        .replace("intent: BROADCAST", "intent: REVOKE");
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let key = key();
    let signer = Signer {
        key: &key,
        pkid: KEY_ID,
        at: Timestamp::from_millis(i64::try_from(now).unwrap()),
        key_block: &[],
    };
    let document = Document::parse(&unsigned, Reading::Strict);
    signer.sign(&document).unwrap()
}

/// The load of one cycle.
#[derive(Debug)]
pub(super) struct Load {
    address: SocketAddr,
    cycle: usize,
    stop: AtomicBool,
    is_dark: AtomicBool,
    accepted: AtomicUsize,
}

/// How long the load goes on after the first answers: every place in the work of the relay is hit sooner or later, and every
/// eighth cycle has enough messages for checkpoints and a backlog.
pub(super) fn duration(cycle: usize) -> Duration {
    let short = Duration::from_micros((cycle as u64 * 7919) % 150_000);
    match cycle % 8 {
        7 => short * 10,
        _ => short,
    }
}

impl Load {
    pub(super) fn new(relay: &Relay, cycle: usize) -> Self {
        Self {
            address: relay.address(),
            cycle,
            stop: AtomicBool::new(false),
            is_dark: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
        }
    }

    /// Every client ends after its next answer.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The power is gone: answers from now on count for nothing, because a computer without power answers nobody.
    pub(super) fn darken(&self) {
        self.is_dark.store(true, Ordering::SeqCst);
    }

    /// How many messages were accepted so far.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Runs every client until it is stopped or the relay is gone, and gathers what they were told.
    pub(super) fn run(&self) -> Told {
        std::thread::scope(|scope| {
            let mut clients = Vec::new();
            for sender in 0..SENDERS {
                clients
                    .push(scope.spawn(move || self.client(|c, told| self.send(c, told, sender))));
            }
            for sender in SENDERS..SENDERS + ASKERS {
                clients.push(scope.spawn(move || self.client(|c, told| self.ask(c, told, sender))));
            }
            clients.push(scope.spawn(|| self.client(|c, told| self.acknowledge(c, told))));
            clients.push(scope.spawn(|| self.client(|c, told| self.revoke(c, told))));
            let mut told = Told::default();
            for client in clients {
                told.add(client.join().unwrap());
            }
            told
        })
    }

    /// One client. Its work ends with an error when the relay is gone.
    fn client(&self, work: impl Fn(&mut Connection, &mut Told) -> std::io::Result<()>) -> Told {
        let mut told = Told::default();
        if let Ok(mut connection) = Connection::open(self.address) {
            let _ = work(&mut connection, &mut told);
        }
        told
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Hands in a message. True if the relay answered for it.
    fn hand_in(
        &self,
        connection: &mut Connection,
        told: &mut Told,
        id: &str,
        text: &str,
    ) -> std::io::Result<bool> {
        told.unsure.insert(id.to_owned());
        let answer = connection.receive(text)?;
        if self.is_dark.load(Ordering::SeqCst) {
            return Ok(false);
        }
        told.unsure.remove(id);
        if answer.status == 200 {
            told.accepted.insert(id.to_owned(), answer.text());
            self.accepted.fetch_add(1, Ordering::SeqCst);
        } else {
            told.refused.insert(id.to_owned(), answer.status);
        }
        Ok(answer.status == 200)
    }

    fn send(
        &self,
        connection: &mut Connection,
        told: &mut Told,
        sender: usize,
    ) -> std::io::Result<()> {
        for number in 0.. {
            if self.is_stopped() {
                break;
            }
            let id = format!("K{:04}-{sender:02}-{number:06}", self.cycle);
            self.hand_in(connection, told, &id, &letter(&id))?;
        }
        Ok(())
    }

    /// Asks the program, waits for its answer and acknowledges it.
    fn ask(
        &self,
        connection: &mut Connection,
        told: &mut Told,
        sender: usize,
    ) -> std::io::Result<()> {
        for number in 0.. {
            let id = format!("K{:04}-{sender:02}-{number:06}", self.cycle);
            let mut is_answered = !self.hand_in(connection, told, &id, &letter(&id))?;
            while !is_answered && !self.is_stopped() {
                let answers = self.take_from_inbox(connection, told, &address_of(sender))?;
                let parent = format!("parent: {id}\n");
                is_answered = answers.iter().any(|text| text.contains(&parent));
            }
            if self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Reads an inbox and acknowledges everything that it finds.
    fn acknowledge(&self, connection: &mut Connection, told: &mut Told) -> std::io::Result<()> {
        while !self.is_stopped() {
            self.take_from_inbox(connection, told, &inbox(0))?;
        }
        Ok(())
    }

    /// The envelopes in an inbox, which are acknowledged after that.
    fn take_from_inbox(
        &self,
        connection: &mut Connection,
        told: &mut Told,
        address: &str,
    ) -> std::io::Result<Vec<String>> {
        let answer = inbox_page(connection, address, "&limit=20&wait=1")?;
        let Ok(page) = serde_json::from_slice::<Value>(&answer.body) else {
            return Ok(Vec::new());
        };
        let Some(messages) = page["messages"].as_array().filter(|m| !m.is_empty()) else {
            return Ok(Vec::new());
        };
        let field = |name: &str| -> Vec<String> {
            let of = |message: &Value| message[name].as_str().unwrap().to_owned();
            messages.iter().map(of).collect()
        };
        let ids = field("id");
        told.mark_unsure.extend(ids.iter().cloned());
        let body = json!({"for": address, "ids": ids, "state": "acknowledged"}).to_string();
        let answer = connection.post_json("/crosstalk/ack", &body)?;
        if answer.status == 200 && !self.is_dark.load(Ordering::SeqCst) {
            let changed: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(
                changed["changed"].as_array().unwrap().len(),
                ids.len(),
                "{changed}"
            );
            for id in ids {
                told.mark_unsure.remove(&id);
                assert!(
                    told.marked.insert(id.clone()),
                    "{id} was handed out after it was acknowledged"
                );
            }
        }
        Ok(field("envelope"))
    }

    /// Sends personal data under a consent and revokes the consent; every second time after a search has found the message.
    fn revoke(&self, connection: &mut Connection, told: &mut Told) -> std::io::Result<()> {
        for count in 0.. {
            if self.is_stopped() {
                break;
            }
            let number = format!("{:04}-{count:04}", self.cycle);
            let id = format!("S{number}");
            if !self.hand_in(connection, told, &id, &secret(&number))? {
                continue;
            }
            let path = format!("/crosstalk/search?q={}", word_of(&id));
            while count % 2 == 1
                && !self.is_stopped()
                && !connection.get(&path)?.text().contains(&id)
            {}
            let text = revocation(&number);
            told.revocations.insert(number.clone(), text.clone());
            self.hand_in(connection, told, &format!("R{number}"), &text)?;
        }
        Ok(())
    }
}
