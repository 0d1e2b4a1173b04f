//! Who may see which message.
//!
//! A message is seen by those who read for its sender, its receiver or one of its targets. Who names a thread does not
//! see it because of that: only an ESCALATE or a HANDOFF shows its recipient what came before, as far as whoever sent it
//! could see it.

use super::surface::Call;
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::relay::{Delivery, Handler, HeldMessage, Peer, RelayStore, Rules, State};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use std::collections::HashMap;
use std::sync::Arc;

/// How many messages of a thread are looked at in one go.
pub(super) const PORTION: usize = 64;

/// The eyes of somebody.
#[derive(Clone)]
pub(super) struct Sight {
    peer: Arc<Peer>,
    rules: Arc<Rules>,
}

/// What ESCALATEs and HANDOFFs show: for each who sent some, the place of the last. What came before it is seen, as
/// far as its sender has a part in it.
pub(super) type Shown = HashMap<String, u64>;

impl Sight {
    pub(super) fn of(call: &Call<'_>) -> Self {
        Self {
            peer: Arc::clone(&call.caller.peer),
            rules: call.site.relay.rules(),
        }
    }

    /// Whether everything is seen.
    pub(super) fn is_admin(&self) -> bool {
        self.peer.is_admin()
    }

    /// Whether what an address gets is seen.
    pub(super) fn reads(&self, address: &str) -> bool {
        self.rules.lets_read(&self.peer, address)
    }

    /// Whether a message is seen.
    pub(super) fn sees(&self, store: &dyn RelayStore, record: &Record) -> Result<bool, StoreError> {
        if self.is_admin() || self.reads(&record.sender) {
            return Ok(true);
        }
        self.gets(store, record)
    }

    /// Whether a message is seen, by itself or because its thread was handed over.
    pub(super) fn finds(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        if self.sees(store, record)? {
            return Ok(true);
        }
        let shown = self.shown(store, &record.thread)?;
        let seen = self.filter(store, vec![record.clone()], &shown)?;
        Ok(!seen.is_empty())
    }

    /// Whether a message waits for a person to carry it, and this is one.
    pub(super) fn carries(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let waits = |d: &Delivery| d.by == Handler::CopyPaste && d.state == State::Queued;
        Ok(self.peer.is_person() && store.deliveries(&record.id)?.iter().any(waits))
    }

    /// Whether a message is seen that waits for a person: by its sender and by those who decide, not by who gets it.
    pub(super) fn sees_held(&self, held: &HeldMessage) -> bool {
        let sender = &held.record.sender;
        self.is_admin() || self.reads(sender) || held.may_be_decided_by(&self.peer).is_ok()
    }

    /// Whether a message is for somebody whose messages are seen.
    fn gets(&self, store: &dyn RelayStore, record: &Record) -> Result<bool, StoreError> {
        Ok(recipients(store, record)?.iter().any(|a| self.reads(a)))
    }

    /// What a thread shows besides the messages that are seen anyway.
    pub(super) fn shown(&self, store: &dyn RelayStore, thread: &str) -> Result<Shown, StoreError> {
        let mut shown = Shown::new();
        if self.is_admin() {
            return Ok(shown);
        }
        let mut after = None;
        loop {
            let listing = store.messages(thread, after, PORTION)?;
            after = listing.items.last().map(|r| r.seq);
            for record in listing.items {
                if passes_on(&record) && self.gets(store, &record)? {
                    let sender = self.rules.routes.named(&record.sender);
                    shown.insert(sender.to_owned(), record.seq);
                }
            }
            if !listing.more || after.is_none() {
                return Ok(shown);
            }
        }
    }

    /// Those of some messages that are seen.
    pub(super) fn filter(
        &self,
        store: &dyn RelayStore,
        records: Vec<Record>,
        shown: &Shown,
    ) -> Result<Vec<Record>, StoreError> {
        let routes = &self.rules.routes;
        let mut out = Vec::with_capacity(records.len());
        for record in records {
            if self.is_admin() || self.reads(&record.sender) {
                out.push(record);
                continue;
            }
            let all = recipients(store, &record)?;
            let has_part = |who: &str| {
                let mut parties = std::iter::once(&record.sender).chain(&all);
                parties.any(|a| is_same_party(routes.named(a), who))
            };
            let mut later = shown.iter().filter(|(_, place)| **place > record.seq);
            if all.iter().any(|a| self.reads(a)) || later.any(|(who, _)| has_part(who)) {
                out.push(record);
            }
        }
        Ok(out)
    }

    /// Whether somebody sent or got a message.
    pub(super) fn has_part(
        &self,
        store: &dyn RelayStore,
        who: &str,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let routes = &self.rules.routes;
        let who = routes.named(who);
        let is_same = |a: &str| is_same_party(routes.named(a), who);
        Ok(is_same(&record.sender) || recipients(store, record)?.iter().any(|a| is_same(a)))
    }
}

/// Whether a message hands its thread to somebody else.
pub(super) fn passes_on(record: &Record) -> bool {
    matches!(record.meaning, Some(Intent::Escalate | Intent::Handoff))
}

/// Everybody who gets a message: the receiver, its targets, and to whom it was routed.
fn recipients(store: &dyn RelayStore, record: &Record) -> Result<Vec<String>, StoreError> {
    let mut all = vec![record.receiver.clone()];
    all.extend(store.deliveries(&record.id)?.into_iter().map(|d| d.to));
    if matches!(record.meaning, Some(Intent::Poll | Intent::Broadcast)) {
        let document = Document::parse(&record.text, Reading::Strict);
        let routing = document.envelope().routing();
        all.extend(routing.target_list().into_iter().map(|t| t.into_owned()));
    }
    Ok(all)
}
