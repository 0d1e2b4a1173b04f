//! The messages of the load: 1.1 KB each, with ids of their own, written as requests before the clock starts.

use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp, id};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many characters a ULID has.
const ULID: usize = 26;
/// Messages of a thread.
const THREAD: u64 = 16;
/// Senders, whose names are in the messages.
const SENDERS: usize = 16;
/// Whose key signs.
const PKID: &str = "bench@example.com";

/// Milliseconds of the clock.
pub fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |t| t.as_millis() as u64)
}

/// The address of an inbox.
pub fn inbox(number: usize) -> String {
    format!("chatgpt://bench/inbox-{number}")
}

/// An envelope between two of the bench's addresses.
pub fn envelope(message: &str, thread: &str, sender: usize, receiver: &str) -> String {
    let mut text = format!(
        "[[claude://bench/s{}→{receiver} v1]]\nuser: kalle\nsession: 2025-10-09T16Z bench\nthread: {thread}\n\
         message: {message}\ncontext: token-refresh\nintent: REQUEST\n\nmeta: routing\nX-Priority: normal\n\n\
         meta: privacy\nPII: redacted\nScope: general\n\nbody: |\n",
        sender % SENDERS
    );
    for line in [
        "We store the refresh token in a cookie that is marked HttpOnly and Secure, with SameSite=Lax.",
        "The access token lives for ten minutes and is kept in memory only, never in local storage.",
        "Two questions:",
        "1. Is rotation on every refresh worth the extra writes to the session table under load?",
        "2. How do you handle two tabs of one browser that refresh at the same moment?",
        "Here is the handler as it stands today:",
        "    fn refresh(session: &Session) -> Result<Token, Error> {",
        "        session.rotate()?.issue(Duration::from_secs(600))",
        "    }",
        "Please answer with the trade-offs first and the code after that, both in plain text, and say what",
        "you would measure before you change anything here, because the table is large and always in use.",
        "We have a week for it.",
    ] {
        let _ = writeln!(text, "  {line}");
    }
    text + "sig: none\n[[END]]\n"
}

/// A request that carries some text.
pub fn request(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    (head + body).into_bytes()
}

/// The type of one envelope.
pub const ONE: &str = "text/plain; charset=utf-8";
/// The type of several.
pub const SEVERAL: &str = "application/vnd.crosstalk.batch";

/// Where the requests of a load come from.
#[derive(Clone)]
pub enum Letters {
    /// Made on the way: a request whose ids are written over each time.
    Fresh {
        /// How many envelopes a request has.
        batch: usize,
        /// To whom.
        receivers: usize,
    },
    /// Made before.
    Ready(Arc<Ready>),
}

/// Requests that were made before, each for one use.
pub struct Ready {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
}

impl Letters {
    /// One envelope in a request.
    pub fn single() -> Self {
        Self::Fresh {
            batch: 1,
            receivers: SENDERS,
        }
    }

    /// What one connection sends.
    pub fn of(&self, connection: usize) -> Quill {
        match self {
            Self::Fresh { batch, receivers } => {
                Quill::Fresh(Fresh::new(connection, *batch, *receivers))
            }
            Self::Ready(ready) => Quill::Ready(Arc::clone(ready)),
        }
    }
}

/// What one connection sends, one request after the other.
pub enum Quill {
    /// Written over.
    Fresh(Fresh),
    /// Taken from the heap.
    Ready(Arc<Ready>),
}

impl Quill {
    /// The next request, with the number of its first message; nothing if the heap is empty.
    pub fn next(&mut self, millis: u64) -> Option<&[u8]> {
        match self {
            Self::Fresh(fresh) => Some(fresh.next(millis)),
            Self::Ready(ready) => {
                let number = ready.next.fetch_add(1, Ordering::Relaxed);
                ready.requests.get(number).map(Vec::as_slice)
            }
        }
    }
}

/// A request whose ids are written over.
pub struct Fresh {
    bytes: Vec<u8>,
    /// Where the ids of messages and threads stand.
    places: Vec<(usize, usize)>,
    connection: u64,
    count: u64,
    random: u64,
}

impl Fresh {
    fn new(connection: usize, batch: usize, receivers: usize) -> Self {
        const MESSAGE: &str = "MMMMMMMMMMMMMMMMMMMMMMMMMM";
        const CONVERSATION: &str = "TTTTTTTTTTTTTTTTTTTTTTTTTT";
        let texts: Vec<String> = (0..batch)
            .map(|n| {
                let receiver = inbox((connection + n) % receivers.max(1));
                envelope(MESSAGE, CONVERSATION, connection + n, &receiver)
            })
            .collect();
        let bytes = match texts.as_slice() {
            [one] => request(ONE, one),
            several => request(SEVERAL, &several.join("\n")),
        };
        let find = |what: &str| memchr::memmem::find_iter(&bytes, what.as_bytes()).collect();
        let (messages, threads): (Vec<usize>, Vec<usize>) = (find(MESSAGE), find(CONVERSATION));
        Self {
            places: messages.into_iter().zip(threads).collect(),
            bytes,
            connection: connection as u64,
            count: 0,
            random: now_millis().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (connection as u64) << 32,
        }
    }

    fn next(&mut self, millis: u64) -> &[u8] {
        for (message, thread) in &self.places {
            // The time, some randomness, and at the end the number of the message.
            self.random = mixed(self.random);
            let tail = u128::from(self.random & 0x00ff_ffff_ffff) << 40
                | u128::from(self.connection & 0xffff) << 24
                | u128::from(self.count & 0xff_ffff);
            write_ulid(&mut self.bytes, *message, millis, tail);
            if self.count.is_multiple_of(THREAD) || self.places.len() > 1 {
                let number = self.count / THREAD;
                let tail = u128::from(mixed(number ^ self.connection << 40)) << 8;
                // The time of a thread is that of its first message, nearly.
                write_ulid(&mut self.bytes, *thread, millis & !0xfff, tail);
            }
            self.count += 1;
        }
        &self.bytes
    }
}

/// A generator that is fast and good enough for ids that nobody guesses at.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn write_ulid(bytes: &mut [u8], place: usize, millis: u64, tail: u128) {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let value = u128::from(millis & 0xffff_ffff_ffff) << 80 | tail & ((1 << 80) - 1);
    if let Some(room) = bytes.get_mut(place..place + ULID) {
        for (n, byte) in room.iter_mut().rev().enumerate() {
            let digit = (value >> (n * 5)) as usize & 31;
            *byte = DIGITS.get(digit).copied().unwrap_or(b'0');
        }
    }
}

/// The connection and the number that [`Fresh`] wrote into an id.
pub fn origin(id: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(id.get(ULID.checked_sub(8)?..ULID)?).ok()?;
    let digit = |c: char| "0123456789ABCDEFGHJKMNPQRSTVWXYZ".find(c).map(|d| d as u64);
    let value = text.chars().try_fold(0, |v, c| Some(v << 5 | digit(c)?))?;
    Some((value >> 24 & 0xffff, value & 0xff_ffff))
}

/// Who signs the signed messages.
pub struct Hand {
    key: PrivateKey,
}

impl Hand {
    /// The same one always.
    pub fn new() -> Option<Self> {
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[42; 32]).ok()?;
        Some(Self { key })
    }

    /// The first message of each sender, with the key in it, so that the relay pins it.
    pub fn introductions(&self) -> Vec<String> {
        let block = [
            ("Key-ID", PKID.to_owned()),
            ("Public-Key", self.key.public().record()),
        ];
        let signed = (0..SENDERS).filter_map(|sender| self.sign(sender, &block));
        signed.collect()
    }

    /// So many requests with one signed message each, made by all cores.
    pub fn ready(&self, count: usize) -> Letters {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let make = |core: usize| {
            (core..count)
                .step_by(cores)
                .filter_map(|number| self.sign(number, &[]))
                .map(|text| request(ONE, &text))
                .collect::<Vec<_>>()
        };
        let requests = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|c| scope.spawn(move || make(c))).collect();
            let made = workers.into_iter().filter_map(|w| w.join().ok());
            made.flatten().collect()
        });
        Letters::Ready(Arc::new(Ready {
            requests,
            next: AtomicUsize::new(0),
        }))
    }

    fn sign(&self, number: usize, block: &[(&str, String)]) -> Option<String> {
        let thread = id::ulid_of(now_millis(), (number as u128 / 16) << 8);
        let text = envelope(&id::new_ulid(), &thread, number, &inbox(number % SENDERS));
        let document = Document::parse(&text, Reading::Strict);
        let signer = Signer {
            key: &self.key,
            pkid: PKID,
            at: Timestamp::from_millis(i64::try_from(now_millis()).unwrap_or(0)),
            key_block: block,
        };
        signer.sign(&document).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ids(request: &[u8], name: &str) -> Vec<String> {
        let text = std::str::from_utf8(request).unwrap();
        let lines = text.lines().filter_map(|l| l.strip_prefix(name));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn every_message_has_an_id_of_its_own_and_is_valid() {
        let letters = Letters::single();
        let mut seen = BTreeSet::new();
        for connection in 0..3 {
            let mut quill = letters.of(connection);
            for count in 0..40 {
                let request = quill.next(now_millis()).unwrap();
                let message = ids(request, "message: ");
                assert_eq!(
                    origin(message[0].as_bytes()),
                    Some((connection as u64, count))
                );
                assert!(seen.insert(message[0].clone()));
                let text = std::str::from_utf8(request).unwrap();
                let envelope = text.split_once("\r\n\r\n").unwrap().1;
                assert!((1000..1250).contains(&envelope.len()), "{}", envelope.len());
                assert!(text.contains(&format!("Content-Length: {}\r\n", envelope.len())));
                let document = Document::parse(envelope, Reading::Strict);
                assert!(document.is_accepted(), "{:?}", document.diagnostics());
            }
        }
    }

    #[test]
    fn batches_and_signed_ones_are_made() {
        let mut quill = Letters::Fresh {
            batch: 5,
            receivers: 2,
        }
        .of(1);
        let first = ids(quill.next(1).unwrap(), "message: ");
        let second = ids(quill.next(1).unwrap(), "message: ");
        let all: BTreeSet<_> = first.iter().chain(&second).collect();
        assert_eq!(all.len(), 10);
        let hand = Hand::new().unwrap();
        assert!(hand.introductions()[0].contains("Public-Key: ed25519:pk="));
        let mut quill = hand.ready(3).of(0);
        for _ in 0..3 {
            let text = String::from_utf8(quill.next(0).unwrap().to_vec()).unwrap();
            assert!(text.contains("sig: ed25519:pkid="));
        }
        assert!(quill.next(0).is_none());
    }
}
