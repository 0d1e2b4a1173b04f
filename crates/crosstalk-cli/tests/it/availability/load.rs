//! Senders that hand in messages while a cluster is broken, and write down what they are told. A sender repeats a message until
//! it gets an answer, as `crosstalk send` does.

use super::history::{Entry, Event, Log};
use crosstalk_testing::cluster::Cluster;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Senders at once.
pub(super) const SENDERS: usize = 8;
/// The pause of a sender between two messages: together they send at most 400 in a second.
const PACE: Duration = Duration::from_millis(20);
/// The pause before a message is repeated that got no answer.
const PAUSE: Duration = Duration::from_millis(100);
/// Messages of a sender at most, so that a load ends whatever happens.
const MOST: usize = 30_000;
/// How long a sender repeats a message. Later, it is stuck.
const PATIENCE: Duration = Duration::from_secs(180);
/// One in so many messages is sent a second time after it was accepted.
const REPEATED: usize = 16;

/// What a sender is told.
#[derive(Debug)]
pub(super) enum Answer {
    Accepted(String),
    /// Not for now.
    Later(String),
    /// For good.
    Refused(u16),
}

/// A way into the cluster, which one sender uses.
pub(super) trait Door {
    /// Hands in the message with this id: the same text each time.
    fn hand_in(&mut self, id: &str) -> io::Result<Answer>;
}

/// What a load goes to.
pub(super) trait Service: Sync {
    /// How many readers follow every message; there may be none.
    const READERS: usize;
    /// A new way in for a sender.
    fn door(&self) -> impl Door + Send;
    /// One reader. It ends after the senders have.
    fn read(&self, reader: usize, load: &Load);
    /// What nobody has acknowledged at the end.
    fn present(&self) -> Vec<String>;
    /// Starts a relay again where everything was killed.
    fn restart(&self, cluster: &mut Cluster, relay: usize);
}

/// A load and its logs.
#[derive(Debug)]
pub(super) struct Load {
    began: Instant,
    stop: AtomicBool,
    /// Senders that have not ended.
    senders: AtomicUsize,
    /// For each sender, how many messages were accepted.
    accepted: Vec<AtomicUsize>,
    logs: Mutex<Vec<Log>>,
    /// The last reason why a message got no answer.
    trouble: Mutex<String>,
}

impl Load {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            stop: AtomicBool::new(false),
            senders: AtomicUsize::new(SENDERS),
            accepted: (0..SENDERS).map(|_| AtomicUsize::new(0)).collect(),
            logs: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// The time since the beginning.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Every sender ends after the answer to its message.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether every sender has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.senders.load(Ordering::SeqCst) == 0
    }

    /// How many messages each sender got accepted.
    pub(super) fn accepted(&self) -> Vec<usize> {
        let each = self.accepted.iter();
        each.map(|count| count.load(Ordering::SeqCst)).collect()
    }

    /// Keeps the log of a client.
    pub(super) fn keep(&self, log: Log) {
        self.logs.lock().unwrap().push(log);
    }

    /// The logs of all clients, which have ended.
    pub(super) fn into_logs(self) -> Vec<Log> {
        self.logs.into_inner().unwrap()
    }

    /// Whether a message got no answer since the trouble was forgotten.
    pub(super) fn is_in_trouble(&self) -> bool {
        !self.trouble.lock().unwrap().is_empty()
    }

    pub(super) fn forget_trouble(&self) {
        self.trouble.lock().unwrap().clear();
    }

    /// Why the last message got no answer that did not get one.
    pub(super) fn trouble(&self) -> String {
        self.trouble.lock().unwrap().clone()
    }

    /// The id of a message.
    pub(super) fn id(sender: usize, number: usize) -> String {
        format!("K0000-{sender:02}-{number:06}")
    }

    /// One sender.
    pub(super) fn send(&self, sender: usize, mut door: impl Door) {
        let mut log = Log::default();
        for number in 0..MOST {
            if self.is_stopped() {
                break;
            }
            let id = Self::id(sender, number);
            let mut note = |event| {
                log.entries.push(Entry {
                    at: self.began.elapsed(),
                    id: id.clone(),
                    event,
                });
            };
            note(Event::Sent);
            match self.repeat(&mut door, &id) {
                Some(event) => note(event),
                None => break,
            }
            self.accepted[sender].fetch_add(1, Ordering::SeqCst);
            if number % REPEATED == 0 {
                self.repeat(&mut door, &id).into_iter().for_each(note);
            }
            thread::sleep(PACE);
        }
        self.keep(log);
        self.senders.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sends a message until it is accepted or rejected; `None` if it never is.
    fn repeat(&self, door: &mut impl Door, id: &str) -> Option<Event> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let reason = match door.hand_in(id) {
                Ok(Answer::Accepted(text)) => return Some(Event::Accepted(text)),
                Ok(Answer::Refused(status)) => return Some(Event::Refused(status)),
                Ok(Answer::Later(reason)) => reason,
                Err(error) => error.to_string(),
            };
            *self.trouble.lock().unwrap() = format!("{id}: {reason}");
            thread::sleep(PAUSE);
        }
        None
    }
}
