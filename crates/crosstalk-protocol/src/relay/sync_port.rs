//! The synchronous port of a relay's store, with which relay and adapter work until they have changed to [`port`](super::port).
//!
//! A message takes two steps. [`RelayStore::accept_batch`] accepts it: the message and its deliveries are durable, its sender
//! gets an answer, and its recipients can fetch it. [`RelayStore::index`] indexes it right after: it derives threads and waits, in
//! larger batches, exactly once. [`RelayStore::fill_search`] makes its words searchable some time later. Everything that
//! [`Admission::rule`](super::Admission::rule) asks for is answered from accepted and from indexed messages.

use super::accept::{AcceptOutcome, ConversationId};
use super::admit::Admission;
use super::delivery::{Attempt, Delivery, DeliveryState, Handler};
use super::hold::HoldStore;
use super::port::{
    DeadLetter, DueDelivery, DuePoll, Errand, FilledSearch, HandedOut, IndexProgress, Lease,
    PollState, Retention, StoreGauges, TokenRecord,
};
use crate::audit::LogStore;
use crate::consent::LedgerStore;
use crate::store::{Page, Record, Search, Store, StoreError};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use std::collections::BTreeSet;

/// The part of a store that only a relay needs.
///
/// Methods that take `&mut self` are one transaction each, and what they answered for is on disk. One handle of a store
/// writes; others read what is committed, at the same time.
pub trait RelayStore: Store + LogStore + LedgerStore + HoldStore {
    /// Accepts messages: all that are not refused are on disk when this returns, with one fsync. One answer for each,
    /// in their order; later ones see earlier ones.
    ///
    /// # Errors
    /// If the store can't be written. Nothing of the batch was accepted then.
    fn accept_batch(&mut self, batch: &[Admission]) -> Result<Vec<AcceptOutcome>, StoreError>;

    /// Indexes what was accepted and is not indexed yet, the oldest first, at most so many.
    ///
    /// # Errors
    /// If the store can't be written. Nothing of this call was indexed then.
    fn index(&mut self, limit: usize) -> Result<IndexProgress, StoreError>;

    /// How far indexing is, and how much is left.
    fn index_progress(&self) -> Result<IndexProgress, StoreError>;

    /// Adds the words of indexed messages to the search index, the oldest first, at most so many messages. Other handles of the
    /// store can write meanwhile, but for a change that erases messages: it waits for this call.
    ///
    /// # Errors
    /// If the search index can't be written. The messages stay as they are, and the next call goes on from there.
    fn fill_search(&mut self, limit: usize) -> Result<SearchProgress, StoreError>;

    /// The messages that a search finds among those in the search index, the latest first. [`Store::search`] fills the index
    /// first, and may take long.
    fn search_filled(&self, search: &Search, page: Page) -> Result<FilledSearch, StoreError>;

    /// What an address has got and not acknowledged, the oldest first, indexed or not.
    fn inbox_of(&self, inbox: &InboxQuery<'_>) -> Result<Vec<InboxEntry>, StoreError>;

    /// Messages that were accepted, by their place, indexed or not; those that are gone are left out.
    fn records_at(&self, places: &[u64]) -> Result<Vec<Record>, StoreError>;

    /// The message with an id, indexed or not.
    fn record(&self, id: &str) -> Result<Option<Record>, StoreError>;

    /// Whether somebody is a party of a thread or a session, in what is indexed and what is not.
    fn is_party(&self, closing: &ConversationId, address: &str) -> Result<bool, StoreError>;

    /// Brings the deliveries of messages to an address into a state, where that may follow their present one. Returns the ids
    /// that are on their way to this address, changed or not.
    fn mark(
        &mut self,
        address: &str,
        ids: &[String],
        state: DeliveryState,
        at: Timestamp,
    ) -> Result<Vec<String>, StoreError>;

    /// Notes that messages were handed out: their deliveries are [`DeliveryState::Delivered`], where that may follow.
    fn hand_out(&mut self, handed: &[HandedOut]) -> Result<(), StoreError>;

    /// The deliveries of a message.
    fn deliveries(&self, id: &str) -> Result<Vec<Delivery>, StoreError>;

    /// Leases queued deliveries of active handlers whose time has come, the most urgent first, then those that are due
    /// longest, then in the order in which they came. Nobody else gets one of them before the lease ends.
    fn due(
        &mut self,
        now: Timestamp,
        lease: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// When the next delivery of an active handler is due.
    fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Records the outcome of an attempt. `leased_at` names the lease that it was made under; a person who carries a message
    /// has none. False if the delivery is not queued any more, or is leased otherwise: nothing changes then.
    fn attempted(
        &mut self,
        id: &str,
        to: &str,
        leased_at: Option<Timestamp>,
        attempt: &Attempt,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Notes that the program of a recipient failed on messages that it fetched from its inbox: it counts as an attempt. If
    /// `is_final`, their deliveries become dead letters. Nothing changes where a delivery is read, acknowledged, given up, or not
    /// fetched by its recipient. The ids that changed.
    fn note_failure(
        &mut self,
        address: &str,
        ids: &[String],
        is_final: bool,
        at: Timestamp,
    ) -> Result<Vec<String>, StoreError>;

    /// Whether anything was ever handed out to an address, in the latest conversations that name it so.
    fn was_handed_out(&self, address: &str, name: &str) -> Result<bool, StoreError>;

    /// Moves the end of leases. Those that somebody else holds by now, or that are over, stay as they are. How many were
    /// renewed.
    fn renew(&mut self, leases: &[Lease], until: Timestamp) -> Result<u64, StoreError>;

    /// Gives leased deliveries back, to be given out again at a time; that counts as no attempt. Those that somebody else
    /// holds by now, or that are over, stay as they are. How many were given back.
    fn release(&mut self, leases: &[Lease], at: Timestamp) -> Result<u64, StoreError>;

    /// Gives all deliveries back that are leased, to be given out again at a time. For a relay that starts, and has the store
    /// to itself: those that had leased them are gone. How many they are.
    ///
    /// # Errors
    /// If the store can't be written.
    fn release_leases(&mut self, at: Timestamp) -> Result<u64, StoreError>;

    /// The messages that wait for a person to carry them and that `lets_carry` permits, the most urgent first, then the
    /// oldest.
    fn courier(
        &self,
        lets_carry: &dyn Fn(&Errand) -> bool,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreError>;

    /// Dead letters, the latest first.
    fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError>;

    /// Queues the deliveries of a message that are dead letters again. How many.
    fn requeue(&mut self, id: &str, at: Timestamp) -> Result<u64, StoreError>;

    /// Settles questions whose time has passed without an answer, at most so many: what their senders are told
    /// ([`report::unanswered`](super::report::unanswered)) is owed. How many are told.
    fn overdue(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;

    /// The notices that the relay has to send, the oldest first: a number and a text each. After a REVOKE that is everything of
    /// [`report::revocation_notices`](super::report::revocation_notices).
    fn notices(&self, limit: usize) -> Result<Vec<(u64, String)>, StoreError>;

    /// Enqueues notices. The relay sends each until it is settled, again after a crash.
    fn enqueue_notices(&mut self, texts: &[String]) -> Result<(), StoreError>;

    /// Removes notices that were sent.
    fn drop_notices(&mut self, owed: &[u64]) -> Result<(), StoreError>;

    /// When the next question is overdue; one that was settled by other than an answer may be among them.
    fn next_deadline(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Keeps a token that somebody created, and writes it into the log (AUD-003). False if there is one of this name, even
    /// a revoked one, or with this secret; nothing is changed then.
    fn add_token(&mut self, token: &TokenRecord, by: &str) -> Result<bool, StoreError>;

    /// All tokens, by name.
    fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;

    /// How many tokens there are, and how many of them are revoked. Tokens are never deleted, and nothing else about them
    /// changes but when they were last used: with the same numbers, [`tokens`](Self::tokens) gives the same otherwise.
    fn token_counts(&self) -> Result<TokenCounts, StoreError>;

    /// Revokes a token, and writes into the log (AUD-003) who did. False if there is none of this name, or it was revoked
    /// before; nothing is changed then.
    fn revoke_token(&mut self, name: &str, by: &str, at: Timestamp) -> Result<bool, StoreError>;

    /// Notes when tokens were last used, by the hash of their secret. An earlier time changes nothing.
    fn note_token_uses(&mut self, uses: &[(Digest, Timestamp)]) -> Result<(), StoreError>;

    /// What waits, and how large the store is, for monitoring. It counts up to [`MAX_COUNTED`](super::MAX_COUNTED) of each kind,
    /// so that it costs little however much waits.
    fn gauges(&self) -> Result<StoreGauges, StoreError>;

    /// Keeps what an agent says it can do, in place of what it said before.
    fn declare(&mut self, agent: &super::Agent, at: Timestamp) -> Result<(), StoreError>;

    /// What agents said they can do, by address.
    fn agents(&self) -> Result<Vec<super::Agent>, StoreError>;

    /// Notes that a credential uploaded an attachment, or did again. References in messages that the same credential
    /// handed in before grant access to it from now on.
    fn add_blob(&mut self, upload: &Upload<'_>, at: Timestamp) -> Result<(), StoreError>;

    /// How many bytes of attachments a credential has at the relay, besides one: each counts at least
    /// [`BLOB_BYTES_LEAST`](super::BLOB_BYTES_LEAST).
    fn uploaded_bytes(&self, by: &str, besides: Digest) -> Result<u64, StoreError>;

    /// Whether a credential, or any if none is named, uploaded an attachment and has not referred to it in a message.
    fn is_unused(&self, digest: Digest, by: Option<&str>) -> Result<bool, StoreError>;

    /// The latest messages whose reference to an attachment grants access, indexed or not, the newest first.
    fn referring(&self, digest: Digest, limit: usize) -> Result<Vec<Record>, StoreError>;

    /// Who sent and who got the latest of them, of those that are indexed and whose time is not over: without their texts, so
    /// that many can be looked at.
    fn referring_parties(
        &self,
        digest: Digest,
        now: Timestamp,
        limit: usize,
    ) -> Result<BTreeSet<String>, StoreError>;

    /// Attachments that came before a time and that no message refers to. They are forgotten; their bytes are the
    /// caller's to remove.
    fn drop_blobs(&mut self, before: Timestamp, limit: usize) -> Result<Vec<Digest>, StoreError>;

    /// The ESCALATEs and HANDOFFs of a thread after a place, the oldest first: where each is, and who gets it. The thread
    /// is not read for it.
    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<String>)>, StoreError>;

    /// Polls that have to be counted, at most so many: something came to them since they were counted, or they have
    /// ended. One without an end of its own ends `within` so many milliseconds.
    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DuePoll>, StoreError>;

    /// When the next open poll ends.
    fn next_poll_end(&self, within: Option<i64>) -> Result<Option<Timestamp>, StoreError>;

    /// Notes how a poll stands. What came to it after it was due stays to be counted.
    fn count_poll(&mut self, poll: &DuePoll, state: PollState) -> Result<(), StoreError>;

    /// Erases messages that a relay accepted and that are too old or have expired, as far as they are indexed: text and everything
    /// derived from it. The id and the digest stay, so that the same message does not come again as a new one.
    fn retire(&mut self, what: &Retention) -> Result<RetiredCount, StoreError>;
}

/// An attachment that a credential uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload<'a> {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many they are.
    pub size: u64,
    /// The name of the credential.
    pub by: &'a str,
}

/// A query for an inbox.
#[derive(Clone, Copy, Debug)]
pub struct InboxQuery<'a> {
    /// Whose.
    pub address: &'a str,
    /// Only what came after this place; without it, from the oldest.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// A message in an inbox, or one that waits for a person to carry it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxEntry {
    /// To whom: the receiver, or one of the targets.
    pub to: String,
    /// How it gets there.
    pub by: Handler,
    /// How far it is.
    pub state: DeliveryState,
    /// How often its recipient failed on it before.
    pub attempts: u32,
    /// The message.
    pub record: Record,
}

/// How far the search index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchProgress {
    /// The place of the last message whose words are in it.
    pub through: u64,
    /// How many indexed messages are not, at most; nothing is left exactly if this is 0.
    pub left: u64,
}

/// How many tokens were made and revoked: a version of the list of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// How many there are.
    pub made: u64,
    /// How many of them are revoked.
    pub revoked: u64,
}

impl TokenCounts {
    /// The counts of a list.
    pub fn of(tokens: &[TokenRecord]) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let revoked = tokens.iter().filter(|t| t.revoked_at.is_some());
        Self {
            made: count(tokens.len()),
            revoked: count(revoked.count()),
        }
    }
}

/// How many messages were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetiredCount {
    /// How many messages.
    pub messages: u64,
    /// Whether there are more.
    pub more: bool,
}
