//! Decides which messages and attachments a caller may read.
//!
//! A caller may read a message if it reads for the sender, the receiver or one of the targets. A caller that only names a
//! thread may not: an ESCALATE or a HANDOFF alone shows its recipient what came before, as far as its sender could read it.

use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::consent::{self, Claim};
use crosstalk_protocol::relay::port::{BlobQuery, GrantQuery, HeldQuery, RecordQuery, RelayStore};
use crosstalk_protocol::relay::{Delivery, Handler, HeldMessage, Peer, Recipient, RelayRules};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use std::collections::HashMap;
use std::sync::Arc;

/// How many messages of a thread are looked at in one go.
pub(crate) const PORTION: usize = 64;

/// How many references to attachments are looked at for one request, and a part of them with the texts of the messages.
pub(crate) const REFERENCES: usize = 4096;

/// What a caller may read, by its credential and the rules of the relay.
#[derive(Clone)]
pub(crate) struct Access {
    peer: Arc<Peer>,
    rules: Arc<RelayRules>,
}

/// The ESCALATEs and HANDOFFs of a thread, by sender: each shows the messages before it in which its sender took part.
pub(crate) type Handovers = HashMap<String, Handover>;

/// What those of one sender bring along.
#[derive(Default)]
pub(crate) struct Handover {
    /// The place of the last.
    place: u64,
    /// Their recipients.
    to: Vec<String>,
    /// The consents that were transferred with them, and the place of the last that did.
    consents: HashMap<String, u64>,
}

impl Handover {
    /// What one ESCALATE or HANDOFF brings along.
    pub(crate) async fn of(store: &dyn RelayStore, record: &Record) -> Result<Self, StoreError> {
        let mut handover = Self::default();
        handover.add(store, record).await?;
        Ok(handover)
    }

    async fn add(&mut self, store: &dyn RelayStore, record: &Record) -> Result<(), StoreError> {
        self.place = record.seq;
        let deliveries = store.deliveries_of(&record.id).await?;
        self.to.extend(deliveries.into_iter().map(|d| d.to));
        let claim = Claim::of(&Document::parse(&record.text, Reading::Strict));
        let transfers = |c: &Claim| c.kind == Some(ConsentKind::Transferred);
        if let Some(claim) = claim.filter(transfers) {
            // With those that they go back to.
            let names = claim.names(&record.id).map(str::to_owned).collect();
            for grant in store.grants(GrantQuery::Named(names)).await? {
                self.consents.insert(grant.id, record.seq);
            }
        }
        Ok(())
    }

    /// Whether an earlier message goes along (HTP-027): not if it must stay inside and they are not, and what needs a consent
    /// only if that was given to them or is transferred.
    pub(crate) async fn brings(
        &self,
        store: &dyn RelayStore,
        rules: &RelayRules,
        earlier: &Record,
    ) -> Result<bool, StoreError> {
        let document = Document::parse(&earlier.text, Reading::Strict);
        let is_out = |to: &String| {
            rules.routes.leaves(&Recipient {
                address: to.clone(),
                by: Handler::Inbox,
            })
        };
        if consent::keeps_inside(&document) && self.to.iter().any(is_out) {
            return Ok(false);
        }
        let Some(claim) = Claim::of(&document).filter(|c| c.needs().next().is_some()) else {
            return Ok(true);
        };
        let mut parties = recipients(store, earlier).await?;
        parties.push(earlier.sender.clone());
        let all_of = |addresses: &[String]| {
            let is_one = |to: &String| {
                let mut named = addresses.iter().map(|a| rules.routes.named(a));
                named.any(|a| is_same_party(a, to))
            };
            !self.to.is_empty() && self.to.iter().all(is_one)
        };
        if all_of(&parties) {
            return Ok(true);
        }
        let mut names = claim.ids.clone();
        if names.is_empty() {
            names.push(earlier.id.clone());
        }
        names.extend(claim.originals);
        let is_transferred = |name: &String| self.consents.get(name) > Some(&earlier.seq);
        if names.iter().any(is_transferred) {
            return Ok(true);
        }
        let grants = store.grants(GrantQuery::Named(names.clone())).await?;
        let mut named = grants.iter().filter(|grant| names.contains(&grant.id));
        Ok(named.any(|grant| all_of(&grant.to)))
    }
}

impl Access {
    pub(crate) fn of(peer: &Arc<Peer>, rules: Arc<RelayRules>) -> Self {
        Self {
            peer: Arc::clone(peer),
            rules,
        }
    }

    /// Whether an attachment can be read (HTP-051): this credential uploaded it and has not referred to it yet, or a message
    /// that is seen, and whose time is not over, refers to it so that it grants access. Only so many of the latest references
    /// are looked at: a caller without access must not make the relay read them all.
    pub(crate) async fn can_read_blob(
        &self,
        store: &dyn RelayStore,
        digest: Digest,
        now: Timestamp,
        most: usize,
    ) -> Result<bool, StoreError> {
        let query = BlobQuery {
            digest,
            by: (!self.is_admin()).then(|| self.peer.name.clone()),
            now,
            limit: most,
        };
        let usage = store.blob_use(query).await?;
        if usage.is_unused || usage.parties.iter().any(|a| self.reads_for(a)) {
            return Ok(true);
        }
        // Threads that were handed over, and what waits to be carried.
        let limit = (most / PORTION).max(1);
        let some = store
            .records(RecordQuery::Referring { digest, limit })
            .await?;
        for record in some.iter().filter(|r| !r.is_expired(now)) {
            if self.can_find(store, record).await? || self.can_carry(store, record).await? {
                return Ok(true);
            }
        }
        let held = store.held(HeldQuery::Referring { digest, limit }).await?;
        let is_shown = |h: &HeldMessage| h.text(now).is_some() && self.is_sender_of(h);
        Ok(held.iter().any(is_shown))
    }

    /// Whether this credential reads for the sender of a held message.
    pub(crate) fn is_sender_of(&self, held: &HeldMessage) -> bool {
        self.is_admin() || self.reads_for(&held.record.sender)
    }

    /// Whether everything is seen.
    pub(crate) fn is_admin(&self) -> bool {
        self.peer.is_admin()
    }

    /// Whether the caller speaks for an authority, which may revoke the consents of others.
    pub(crate) fn is_authority(&self) -> bool {
        let mut own = self.peer.addresses.iter();
        own.any(|a| self.rules.consent.is_authority(&a.to_string()))
    }

    /// Whether what an address gets is seen.
    pub(crate) fn reads_for(&self, address: &str) -> bool {
        self.rules.lets_read(&self.peer, address)
    }

    /// Whether a message is seen.
    pub(crate) async fn can_read(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        if self.is_admin() || self.reads_for(&record.sender) {
            return Ok(true);
        }
        let all = recipients(store, record).await?;
        Ok(all.iter().any(|a| self.reads_for(a)))
    }

    /// Whether a message is seen, by itself or because its thread was handed over.
    pub(crate) async fn can_find(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        if self.can_read(store, record).await? {
            return Ok(true);
        }
        // Only what was handed over later shows it.
        let shown = self
            .handovers_after(store, &record.thread, record.seq)
            .await?;
        let record = vec![record.clone()];
        let seen = self.filter_readable(store, record, &shown).await?;
        Ok(!seen.is_empty())
    }

    /// Whether a message waits for this person to carry it.
    pub(crate) async fn can_carry(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let is_errand = |d: &Delivery| self.rules.is_errand_of(&self.peer, record, d);
        if !self.peer.is_person() {
            return Ok(false);
        }
        let deliveries = store.deliveries_of(&record.id).await?;
        Ok(deliveries.iter().any(is_errand))
    }

    /// What a thread shows besides the messages that are seen anyway.
    pub(crate) async fn handovers_in(
        &self,
        store: &dyn RelayStore,
        thread: &str,
    ) -> Result<Handovers, StoreError> {
        self.handovers_after(store, thread, 0).await
    }

    /// The same, by what was handed over after a place. The cost is that of the ESCALATEs and HANDOFFs alone: whoever is
    /// denied a message must not make the relay read its thread.
    async fn handovers_after(
        &self,
        store: &dyn RelayStore,
        thread: &str,
        mut after: u64,
    ) -> Result<Handovers, StoreError> {
        let mut shown = Handovers::new();
        if self.is_admin() {
            return Ok(shown);
        }
        loop {
            let some = store.handovers(thread, after, PORTION).await?;
            let Some((last, _)) = some.last() else {
                return Ok(shown);
            };
            after = *last;
            let own = some
                .iter()
                .filter(|(_, to)| to.iter().any(|a| self.reads_for(a)));
            let own = RecordQuery::Seqs(own.map(|(seq, _)| *seq).collect());
            for record in store.records(own).await? {
                let sender = self.rules.routes.named(&record.sender);
                let handover = shown.entry(sender.to_owned()).or_default();
                handover.add(store, &record).await?;
            }
        }
    }

    /// Those of some messages that are seen.
    pub(crate) async fn filter_readable(
        &self,
        store: &dyn RelayStore,
        records: Vec<Record>,
        shown: &Handovers,
    ) -> Result<Vec<Record>, StoreError> {
        let routes = &self.rules.routes;
        let is_sender = |r: &Record| self.is_admin() || self.reads_for(&r.sender);
        let others = records.iter().filter(|r| !is_sender(r));
        let others: Vec<String> = others.map(|r| r.id.clone()).collect();
        let deliveries = match others.is_empty() {
            true => Vec::new(),
            false => store.deliveries(others).await?,
        };
        let mut deliveries = deliveries.into_iter();
        let mut out = Vec::with_capacity(records.len());
        for record in records {
            if is_sender(&record) {
                out.push(record);
                continue;
            }
            let all = recipients_by(&record, deliveries.next().unwrap_or_default());
            let has_part = |who: &str| {
                let mut parties = std::iter::once(&record.sender).chain(&all);
                parties.any(|a| is_same_party(routes.named(a), who))
            };
            let mut is_seen = all.iter().any(|a| self.reads_for(a));
            let later = shown.iter().filter(|(_, h)| h.place > record.seq);
            for (_, handover) in later.filter(|(who, _)| has_part(who)) {
                is_seen = is_seen || handover.brings(store, &self.rules, &record).await?;
            }
            if is_seen {
                out.push(record);
            }
        }
        Ok(out)
    }

    /// The caller.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The rules of the relay.
    pub(crate) fn rules(&self) -> &RelayRules {
        &self.rules
    }

    /// Whether an address sent or received a message, by the deliveries of the message.
    pub(crate) fn took_part(&self, who: &str, record: &Record, deliveries: Vec<Delivery>) -> bool {
        let routes = &self.rules.routes;
        let who = routes.named(who);
        let is_same = |a: &str| is_same_party(routes.named(a), who);
        let mut all = recipients_by(record, deliveries).into_iter();
        is_same(&record.sender) || all.any(|a| is_same(&a))
    }
}

/// Whether a message hands its thread over.
pub(crate) fn is_handover(record: &Record) -> bool {
    matches!(record.meaning, Some(Intent::Escalate | Intent::Handoff))
}

/// The recipients of a message: the receiver, its targets, and the addresses that it was routed to.
async fn recipients(store: &dyn RelayStore, record: &Record) -> Result<Vec<String>, StoreError> {
    let deliveries = store.deliveries_of(&record.id).await?;
    Ok(recipients_by(record, deliveries))
}

/// The same, by the deliveries of the message.
fn recipients_by(record: &Record, deliveries: Vec<Delivery>) -> Vec<String> {
    let mut all = vec![record.receiver.clone()];
    all.extend(deliveries.into_iter().map(|d| d.to));
    if matches!(record.meaning, Some(Intent::Poll | Intent::Broadcast)) {
        let document = Document::parse(&record.text, Reading::Strict);
        let routing = document.envelope().routing();
        all.extend(routing.target_list().into_iter().map(|t| t.into_owned()));
    }
    all
}
