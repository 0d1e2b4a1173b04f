//! What a store answers.

use super::arrival::{Side, Wait, Way};
use crate::verdict::Word;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is kept.
    Filed {
        /// The id under which it is kept.
        id: String,
        /// The thread that it belongs to.
        thread: String,
        /// The message that it settles.
        settled: Option<String>,
        /// Since when the thread was closed, if it was before this message came.
        closed: Option<Timestamp>,
        /// The id under which another message is kept now that had this id before: this one is verified, and that one
        /// was not.
        displaced: Option<String>,
    },
    /// It was there already: the same id and the same content.
    Known {
        /// The id under which it is kept.
        id: String,
        /// The thread that it belongs to.
        thread: String,
        /// Since when.
        since: Timestamp,
        /// Whether more is known about its signature now than then; that was kept.
        improved: bool,
    },
    /// Another message has this id. Nothing was kept.
    Conflict {
        /// The id.
        id: String,
        /// The thread of the message that has it.
        thread: String,
    },
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its place in the order of arrival.
    pub seq: u64,
    /// Its index in the log, if a relay took it.
    pub entry: Option<u64>,
    /// The id under which it is kept.
    pub id: String,
    /// Whether that is the id which the envelope carries.
    pub carries_id: bool,
    /// The thread that it belongs to.
    pub thread: String,
    /// The message that it is taken to answer, else the one that its envelope says it answers.
    pub parent: Option<String>,
    /// The v1.0 conversation.
    pub session: Option<String>,
    /// The left side of the direction line.
    pub sender: String,
    /// The right side of the direction line.
    pub receiver: String,
    /// Who speaks.
    pub user: Option<String>,
    /// What it is about.
    pub context: Option<String>,
    /// The intent as it was written.
    pub intent: Option<String>,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// When it came.
    pub at: Timestamp,
    /// When it was written, by its own words.
    pub written_at: Option<Timestamp>,
    /// What was found out about its signature when it came.
    pub verdict: Word,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// Whose it is.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// Who has to act on it next.
    pub wait: Wait,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// When it must not be handed out any more.
    pub expires: Option<Timestamp>,
    /// The envelope.
    pub text: String,
    /// What came in, where that is another text.
    pub received: Option<String>,
}

impl Record {
    /// The message as it was admitted: a kept text has one reading, the strict one.
    pub fn document(&self) -> Document<'_> {
        Document::parse(&self.text, Reading::Strict)
    }

    /// Whether its time is over: from then on it is not handed out.
    pub fn has_run_out(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its id.
    pub id: String,
    /// What it is about: the context of its first message.
    pub context: Option<String>,
    /// The session of its first message.
    pub session: Option<String>,
    /// Everyone who sent or was sent a message in it, in order of appearance; at most sixteen. Of a thread
    /// with many, the first 64 are kept.
    pub parties: Vec<String>,
    /// How many messages it has.
    pub messages: u64,
    /// How many of them wait for the person of this store.
    pub waiting: u64,
    /// How many of them wait for the other side.
    pub asked: u64,
    /// When the first message came.
    pub first_at: Timestamp,
    /// When the latest message came.
    pub last_at: Timestamp,
    /// The id of the latest message.
    pub last: String,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
}

/// What an id, or the beginning of one, means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A thread.
    Thread(String),
    /// A message.
    Message(String),
    /// Several: some of them, at most ten.
    Several(Vec<String>),
    /// Nothing.
    Nothing,
}

/// Which threads are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Only those that are not closed.
    pub open: bool,
    /// Only those in which something waits for the person of this store.
    pub waiting: bool,
    /// Only those with this party.
    pub with: Option<String>,
}

/// A part of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many entries at most.
    pub limit: usize,
    /// How many entries are left out at the beginning.
    pub skip: usize,
}

impl Page {
    /// The first entries.
    pub const fn first(limit: usize) -> Self {
        Self { limit, skip: 0 }
    }
}

/// Some entries, and whether there are more.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    /// The entries.
    pub items: Vec<T>,
    /// Whether there are more than these.
    pub more: bool,
}
