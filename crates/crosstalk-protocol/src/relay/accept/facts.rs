//! The facts that accepting a batch asks for, and what a store answers.

use super::super::admit::Admission;
use super::super::delivery::{DeliveryState, Handler};
use super::ConversationId;
use super::is_accepted_after_close;
use crate::audit::LogPlace;
use crate::consent::Grant;
use crate::poll::may_be_ballot;
use crate::store::{Arrival, KnownMessage, party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a store has to look up to accept a batch. Everything is sorted, so that stores which lock rows do so in one order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptNeeds<'b> {
    /// Messages by id, with the digest of the message that comes.
    pub ids: BTreeSet<(&'b str, Digest)>,
    /// Messages that carry no id, by content.
    pub contents: BTreeSet<Digest>,
    /// Held messages by id.
    pub held_ids: BTreeSet<&'b str>,
    /// Held messages that carry no id, by content.
    pub held_contents: BTreeSet<Digest>,
    /// Messages that are answered, by id.
    pub parents: BTreeMap<&'b str, ParentNeeds<'b>>,
    /// Conversations that may be closed.
    pub closings: BTreeSet<ConversationId>,
    /// Conversations whose parties are asked for.
    pub parties: BTreeSet<ConversationId>,
    /// Conversations that may have been handed over.
    pub stewards: BTreeSet<ConversationId>,
    /// Sessions whose thread is asked for; of some, also whether that thread is closed, and its parties.
    pub sessions: BTreeMap<&'b str, bool>,
    /// Consents by name; those that they go back to are needed as well.
    pub consents: BTreeSet<&'b str>,
    /// Attachments that a credential may have uploaded.
    pub uploads: BTreeSet<(&'b str, Digest)>,
    /// Threads with polls that may be answered.
    pub polls: BTreeSet<&'b str>,
}

/// The facts that a plan needs about a message that others answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentNeeds<'b> {
    /// The threads that the answers name; nothing for one that names none.
    pub named: BTreeSet<Option<&'b str>>,
    /// Whether others of the batch answer the answer.
    pub is_deep: bool,
    /// Whether it is asked if its thread is closed.
    pub asks_closing: bool,
    /// The parties that report about their delivery of it.
    pub reporters: BTreeSet<String>,
    /// Whether an answer may be a ballot.
    pub asks_poll: bool,
}

impl ParentNeeds<'_> {
    /// Whether it is asked who has a part in the message and its thread, if it is in this thread: a message that names the thread
    /// itself needs no part in it.
    pub fn asks_parts(&self, thread: &str) -> bool {
        self.is_deep || self.named.iter().any(|named| *named != Some(thread))
    }
}

impl<'b> AcceptNeeds<'b> {
    /// The facts that are needed to accept a batch.
    pub fn of(batch: &'b [Admission]) -> Self {
        let mut needs = Self::default();
        let answered: HashSet<&str> = batch.iter().filter_map(|a| a.arrival.answered()).collect();
        for admission in batch {
            let is_answered = answered.contains(admission.arrival.id());
            needs.add(admission, is_answered);
        }
        needs.add_spare_ids(batch);
        needs
    }

    /// The same for a message that a person approved: its own hold does not count as a duplicate.
    pub fn of_approved(admission: &'b Admission) -> Self {
        let mut needs = Self::of(std::slice::from_ref(admission));
        needs.held_ids.clear();
        needs.held_contents.clear();
        needs
    }

    fn add(&mut self, admission: &'b Admission, is_answered: bool) {
        let arrival = &admission.arrival;
        let is_after_close = arrival.meaning.is_some_and(is_accepted_after_close);
        self.ids.insert((arrival.id(), arrival.digest));
        self.held_ids.insert(arrival.id());
        if arrival.message.is_none() {
            self.contents.insert(arrival.digest);
            self.held_contents.insert(arrival.digest);
        }
        if let Some(claim) = &admission.claim {
            self.consents.extend(claim.names(arrival.id()));
        }
        let conversation = admission.conversation();
        if !is_after_close || is_answered {
            self.closings.extend(conversation.clone());
        }
        if is_answered {
            self.add_own_threads(arrival);
        }
        match arrival.meaning {
            Some(Intent::Close) => self.parties.extend(conversation),
            Some(Intent::Handoff) => {
                self.parties.extend(conversation.clone());
                self.stewards.extend(conversation);
            }
            Some(meaning) if may_be_ballot(meaning) => self.polls.extend(arrival.thread.as_deref()),
            _ => {}
        }
        if let Some(answered) = arrival.answered() {
            let parent = self.parents.entry(answered).or_default();
            parent.is_deep |= is_answered;
            parent.asks_closing |= !is_after_close || is_answered;
            if !is_after_close || arrival.thread.is_none() {
                parent.named.insert(arrival.thread.as_deref());
            }
            if arrival.reports_delivery().is_some() {
                parent.reporters.insert(party(&arrival.sender));
            }
            parent.asks_poll |= arrival.meaning.is_some_and(may_be_ballot);
        }
        if let Some(session) = arrival
            .session
            .as_deref()
            .filter(|_| arrival.thread.is_none())
        {
            *self.sessions.entry(session).or_default() |= is_answered;
        }
        let unread = |digest: &&Digest| !admission.readable.contains(digest);
        let uploads = admission.blobs.iter().filter(unread);
        let uploads = uploads.map(|digest| (admission.peer.as_str(), *digest));
        self.uploads.extend(uploads);
    }

    /// The threads that a message may get, which an answer of the same batch will be in.
    fn add_own_threads(&mut self, arrival: &Arrival) {
        let threads = [arrival.thread.as_ref(), Some(&arrival.generated.thread)];
        for thread in threads.into_iter().flatten() {
            let thread = ConversationId::Thread(thread.clone());
            self.closings.insert(thread.clone());
            self.parties.insert(thread);
        }
    }

    /// A message may get its generated id if another one of the batch wants the one that it carries.
    fn add_spare_ids(&mut self, batch: &'b [Admission]) {
        let mut seen: HashMap<&str, &Arrival> = HashMap::new();
        for Admission { arrival, .. } in batch {
            let before = seen.insert(arrival.id(), arrival);
            if let Some(before) = before.filter(|b| b.digest != arrival.digest) {
                self.ids.insert((&before.generated.message, before.digest));
                self.held_ids.insert(&before.generated.message);
            }
        }
    }
}

/// The facts that a store has for the needs of a batch ([`AcceptNeeds`]). A map has no entry for an unknown fact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceptFacts {
    /// Messages by id.
    pub ids: HashMap<String, KnownFacts>,
    /// The oldest message of each content that carries no id.
    pub contents: HashMap<Digest, KnownFacts>,
    /// Held messages by id, whatever was decided.
    pub held_ids: HashMap<String, HeldFacts>,
    /// Held messages that carry no id, by content.
    pub held_contents: HashMap<Digest, HeldFacts>,
    /// Messages that are answered.
    pub parents: HashMap<String, ParentFacts>,
    /// Since when conversations are closed.
    pub closings: BTreeMap<ConversationId, Timestamp>,
    /// The parties of conversations.
    pub parties: BTreeMap<ConversationId, ConversationParties>,
    /// The addresses that conversations were handed to.
    pub stewards: BTreeMap<ConversationId, String>,
    /// The threads of sessions.
    pub sessions: HashMap<String, SessionFacts>,
    /// Consents by name.
    pub grants: HashMap<String, Grant>,
    /// Attachments that a credential uploaded.
    pub uploads: HashSet<(String, Digest)>,
    /// Polls by thread.
    pub polls: HashMap<String, Vec<PollFacts>>,
}

/// A message with the id or the content of one that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFacts {
    /// The message.
    pub message: KnownMessage,
    /// Its place in the log; none if the person of the store accepted it.
    pub entry: Option<LogPlace>,
    /// The digest of its text, byte for byte, where it is not in the log.
    pub raw: Option<Digest>,
    /// Its sender, if its text is there. Only asked for where another message wants its id.
    pub sender: Option<String>,
    /// Whether a message has the id that was generated for it, this one or another.
    pub is_spare_taken: bool,
}

/// A message with the id or the content of one that comes, which is held or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldFacts {
    /// Its position among those that were held.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The ids that were generated for it.
    pub generated: ReceivedIds,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// Its sender.
    pub sender: String,
    /// When it came.
    pub since: Timestamp,
    /// Its place in the log.
    pub entry: LogPlace,
    /// Whether a held message has the id that was generated for it, this one or another.
    pub is_spare_taken: bool,
}

/// A message that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentFacts {
    /// Its position.
    pub seq: u64,
    /// Its thread. Whether it is closed and who its parties are is among the facts about conversations.
    pub thread: String,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// Everybody whom it names and who got it, if that was asked for ([`ParentNeeds::asks_parts`]).
    pub parts: Vec<String>,
    /// Its deliveries to those who report about them.
    pub deliveries: Vec<DeliveryFacts>,
    /// Its entry in the log; nothing if it is not in the log.
    pub logged: Option<LoggedFacts>,
    /// If it is a poll: what is known of that.
    pub poll: Option<PollFacts>,
}

/// A delivery of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFacts {
    /// The party.
    pub party: String,
    /// Its address.
    pub address: String,
    /// How it gets there.
    pub by: Handler,
    /// How far it is.
    pub state: DeliveryState,
}

/// The digests of a message in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFacts {
    /// Of its canonical form.
    pub canonical: Digest,
    /// Of its text, byte for byte.
    pub raw: Option<Digest>,
}

/// The thread of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// That of its latest message that is indexed.
    pub indexed: Option<String>,
    /// That of its latest message that is not.
    pub pending: Option<String>,
}

/// A poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollFacts {
    /// Its position.
    pub seq: u64,
    /// When it was closed.
    pub closed: Option<Timestamp>,
}

/// The participants of a conversation: the indexed parties, and the messages that are not indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationParties {
    /// The parties that are indexed and count.
    pub indexed: BTreeSet<String>,
    /// The messages that are not indexed, in their order.
    pub pending: Vec<PendingParties>,
}

/// Whom a message that is not indexed yet brings into its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingParties {
    /// The party of its sender.
    sender: String,
    /// The parties that it is for.
    others: Vec<String>,
    /// [`Arrival::counts`].
    counts: bool,
    /// [`Arrival::joins_alone`].
    joins: bool,
    /// Whether it begins a conversation if there is none: a CLOSE does not.
    begins: bool,
}

impl PendingParties {
    /// Those of a message, and of those who get it.
    pub fn of<'a>(arrival: &'a Arrival, recipients: impl IntoIterator<Item = &'a str>) -> Self {
        let named = std::iter::once(&arrival.receiver).chain(&arrival.targets);
        let is_open = matches!(arrival.meaning, Some(Intent::Poll | Intent::Broadcast));
        let recipients = recipients
            .into_iter()
            .filter(|to| !is_open && !to.is_empty());
        let others = named.map(String::as_str).chain(recipients).map(party);
        Self {
            sender: party(&arrival.sender),
            others: others.collect(),
            counts: arrival.counts(),
            joins: arrival.joins_alone(),
            begins: arrival.meaning != Some(Intent::Close),
        }
    }
}

impl ConversationParties {
    /// Whether anything is known of the conversation.
    pub fn is_known(&self) -> bool {
        !self.indexed.is_empty() || !self.pending.is_empty()
    }

    /// Whether somebody takes part. By the rules of a thread: the sender who begins it is in it, and brings in those whom they
    /// write to.
    pub fn has(&self, address: &str) -> bool {
        let wanted = party(address);
        if self.pending.is_empty() {
            return self.indexed.contains(&wanted);
        }
        let mut parties = self.indexed.clone();
        for message in &self.pending {
            let begins = parties.is_empty() && message.begins;
            let brings = begins || message.joins || parties.contains(&message.sender);
            if message.counts && brings {
                parties.insert(message.sender.clone());
                parties.extend(message.others.iter().cloned());
            }
        }
        parties.contains(&wanted)
    }
}
