//! Mailboxes: what waits for an address, and what its recipient did with it.

use super::StoreFuture;
use crate::relay::delivery::{DeliveryState, Handler};
use crate::store::Record;
use crosstalk_envelope::Timestamp;
use std::fmt;

/// What addresses have got.
pub trait Mailbox {
    /// What an address has got and not acknowledged, in the order of its cursors, indexed or not.
    fn inbox(&self, query: InboxQuery) -> StoreFuture<'_, Vec<InboxEntry>>;

    /// Whether this store may have given out a cursor.
    fn has_cursor(&self, cursor: &Cursor) -> StoreFuture<'_, bool>;

    /// Notes that messages were handed out: their deliveries are [`DeliveryState::Delivered`], where that may follow. Nobody
    /// waits for it: if it is lost, they are handed out again.
    fn hand_out(&self, handed: HandedOut);

    /// Changes the deliveries of messages to an address, together with what follows from it.
    /// [`MailboxAction::Reach`] gives the ids that are on their way to this address, changed or not;
    /// [`MailboxAction::NoteFailure`] those that changed.
    fn change_mailbox(&self, change: MailboxChange) -> StoreFuture<'_, Vec<String>>;

    /// Whether anything was ever handed out to an address, in the latest conversations that name it in one of these ways.
    fn was_handed_out(&self, address: &str, names: &[&str]) -> StoreFuture<'_, bool>;
}

/// A position in a mailbox. Only the store that gave it out knows what it means; whoever goes on from a cursor gets everything
/// that came later once, in whatever order it was committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(String);

impl Cursor {
    /// The cursor that was written as a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The position before everything in every mailbox.
impl Default for Cursor {
    fn default() -> Self {
        Self("0".to_owned())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A query for an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxQuery {
    /// Whose.
    pub address: String,
    /// Only what came after this position; without it, from the oldest.
    pub after: Option<Cursor>,
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
    /// Whether it was held, and a person approved it.
    pub is_approved: bool,
    /// Its position in the mailbox.
    pub cursor: Cursor,
    /// The message.
    pub record: Record,
}

/// A change of deliveries that wait for their recipient: everything of it in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxChange {
    /// The address of the mailbox.
    pub address: String,
    /// The messages.
    pub ids: Vec<String>,
    /// The change of their deliveries.
    pub action: MailboxAction,
    /// When.
    pub at: Timestamp,
    /// Notices that the relay has to send because of it.
    pub notices: Vec<String>,
    /// Notices that are acknowledged because of it.
    pub settled: Vec<SettledNotice>,
}

impl MailboxChange {
    /// Brings deliveries into a state, with nothing that follows from it.
    pub fn reach(address: &str, ids: Vec<String>, state: DeliveryState, at: Timestamp) -> Self {
        Self {
            address: address.to_owned(),
            ids,
            action: MailboxAction::Reach(state),
            at,
            notices: Vec::new(),
            settled: Vec::new(),
        }
    }
}

/// A change of deliveries that wait for their recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxAction {
    /// They come into a state, where that may follow their present one.
    Reach(DeliveryState),
    /// The program of the recipient failed on messages that it fetched: it counts as an attempt. Nothing changes where a
    /// delivery is read, acknowledged, a dead letter, or not fetched by its recipient.
    NoteFailure {
        /// Whether the deliveries become dead letters.
        is_final: bool,
    },
}

/// A notice of the relay that its recipient need not look at any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledNotice {
    /// The recipient.
    pub address: String,
    /// Its id.
    pub id: String,
}

/// Messages that were handed out to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOut {
    /// For whom.
    pub address: String,
    /// Their ids.
    pub ids: Vec<String>,
    /// When.
    pub at: Timestamp,
}
