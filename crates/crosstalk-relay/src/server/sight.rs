//! Who may see which message.
//!
//! A message is seen by those who read for its sender, its receiver or one of its targets. Who names a thread does not
//! see it because of that: only an ESCALATE or a HANDOFF shows its recipient what came before, as far as whoever sent it
//! could see it.

use super::Site;
use super::surface::Call;
use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Refusal;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::consent::{self, Claim};
use crosstalk_protocol::relay::{
    Delivery, Handler, HeldMessage, Peer, Recipient, RelayStore, Rules,
};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// How many messages of a thread are looked at in one go.
pub(super) const PORTION: usize = 64;

/// How many references to attachments are looked at for one request, and a part of them with the texts of the messages.
pub(crate) const REFERENCES: usize = 4096;

/// What a caller may read, by its credential and the rules of the relay.
#[derive(Clone)]
pub(crate) struct Access {
    peer: Arc<Peer>,
    rules: Arc<Rules>,
}

/// The same for a caller of the server, who may also decide about messages that wait for a person.
#[derive(Clone)]
pub(super) struct Sight {
    site: Arc<Site>,
    access: Access,
}

impl Deref for Sight {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

/// What ESCALATEs and HANDOFFs show, for each who sent some: what came before, as far as its sender has a part in it.
pub(super) type Shown = HashMap<String, Handover>;

/// What those of one sender bring along.
#[derive(Default)]
pub(super) struct Handover {
    /// The place of the last.
    place: u64,
    /// Who got them.
    to: Vec<String>,
    /// The consents that were transferred with them, and the place of the last that did.
    consents: HashMap<String, u64>,
}

impl Handover {
    /// What one ESCALATE or HANDOFF brings along.
    pub(super) fn of(store: &dyn RelayStore, record: &Record) -> Result<Self, StoreError> {
        let mut handover = Self::default();
        handover.add(store, record)?;
        Ok(handover)
    }

    fn add(&mut self, store: &dyn RelayStore, record: &Record) -> Result<(), StoreError> {
        self.place = record.seq;
        let to = store.deliveries(&record.id)?.into_iter().map(|d| d.to);
        self.to.extend(to);
        let claim = Claim::of(&Document::parse(&record.text, Reading::Strict));
        let transfers = |c: &Claim| c.kind == Some(ConsentKind::Transferred);
        if let Some(claim) = claim.filter(transfers) {
            // With those that they go back to.
            for grant in store.known(&claim, &record.id)? {
                self.consents.insert(grant.id, record.seq);
            }
        }
        Ok(())
    }

    /// Whether an earlier message goes along (HTP-027): not if it must stay inside and they are not, and what needs a consent
    /// only if that was given to them or is transferred.
    pub(super) fn brings(
        &self,
        store: &dyn RelayStore,
        rules: &Rules,
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
        let mut parties = recipients(store, earlier)?;
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
        for name in &names {
            if self.consents.get(name) > Some(&earlier.seq) {
                return Ok(true);
            }
            if store.grant(name)?.is_some_and(|grant| all_of(&grant.to)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Sight {
    pub(super) fn of(call: &Call<'_>) -> Self {
        Self {
            site: Arc::clone(call.site),
            access: Access::of(&call.caller.peer, call.site.relay.rules()),
        }
    }

    /// Whether a message is seen that waits for a person: by its sender and by those who decide, not by who gets it.
    pub(super) fn sees_held(&self, held: &HeldMessage) -> bool {
        self.is_sender_of(held) || self.may_decide(held).is_ok()
    }

    /// Whether somebody may decide about a message that waits (CON-062).
    pub(super) fn may_decide(&self, held: &HeldMessage) -> Result<(), Refusal> {
        let (record, routes) = (&held.record, &self.rules.routes);
        let trust = self.site.relay.trust();
        let pkid = record.pkid.iter();
        let signers = pkid.flat_map(|id| trust.keys_for(id, &record.sender));
        // Without a look at the tokens, nobody decides.
        let people = self.site.credentials.addresses_of(&held.peer);
        let mut people = people.map_err(|error| {
            tracing::error!(reason = %error, "the tokens can't be read");
            Refusal::new(
                ErrorCode::Rate,
                "The store of the relay can't be used.",
                "try again later.",
            )
        })?;
        people.push(record.sender.clone());
        people.extend(signers.flat_map(|k| k.senders.iter().cloned()));
        let own: Vec<String> = people.iter().flat_map(|a| routes.of_person(a)).collect();
        held.may_be_decided_by(&self.peer, &own)
    }
}

impl Access {
    pub(crate) fn of(peer: &Arc<Peer>, rules: Arc<Rules>) -> Self {
        Self {
            peer: Arc::clone(peer),
            rules,
        }
    }

    /// Whether an attachment can be read (HTP-051): this credential uploaded it and has not referred to it yet, or a message
    /// that is seen, and whose time is not over, refers to it so that it grants access. Only so many of the latest references
    /// are looked at: whoever is denied must not make the relay read them all.
    pub(crate) fn can_read_blob(
        &self,
        store: &dyn RelayStore,
        digest: Digest,
        now: Timestamp,
        most: usize,
    ) -> Result<bool, StoreError> {
        let by = (!self.is_admin()).then_some(self.peer.name.as_str());
        if store.is_unused(digest, by)? {
            return Ok(true);
        }
        let parties = store.referring_parties(digest, now, most)?;
        if parties.iter().any(|a| self.reads(a)) {
            return Ok(true);
        }
        // Threads that were handed over, and what waits to be carried.
        let few = (most / PORTION).max(1);
        let some = store.referring(digest, few)?;
        for record in some.iter().filter(|r| !r.has_run_out(now)) {
            if self.finds(store, record)? || self.carries(store, record)? {
                return Ok(true);
            }
        }
        let held = store.held_referring(digest, few)?;
        let is_shown = |h: &HeldMessage| h.text(now).is_some() && self.is_sender_of(h);
        Ok(held.iter().any(is_shown))
    }

    /// Whether a message that waits for a person is by somebody for whom this credential reads.
    fn is_sender_of(&self, held: &HeldMessage) -> bool {
        self.is_admin() || self.reads(&held.record.sender)
    }

    /// Whether everything is seen.
    pub(super) fn is_admin(&self) -> bool {
        self.peer.is_admin()
    }

    /// Whether the caller speaks for one of those who may revoke the consents of others.
    pub(super) fn is_authority(&self) -> bool {
        let mut own = self.peer.addresses.iter();
        own.any(|a| self.rules.consent.is_authority(&a.to_string()))
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
        // Only what was handed over later shows it.
        let shown = self.shown_after(store, &record.thread, record.seq)?;
        let seen = self.filter(store, vec![record.clone()], &shown)?;
        Ok(!seen.is_empty())
    }

    /// Whether a message waits for this person to carry it.
    pub(super) fn carries(
        &self,
        store: &dyn RelayStore,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let is_errand = |d: &Delivery| self.rules.is_errand_of(&self.peer, record, d);
        Ok(self.peer.is_person() && store.deliveries(&record.id)?.iter().any(is_errand))
    }

    /// Whether a message is for somebody whose messages are seen.
    fn gets(&self, store: &dyn RelayStore, record: &Record) -> Result<bool, StoreError> {
        Ok(recipients(store, record)?.iter().any(|a| self.reads(a)))
    }

    /// What a thread shows besides the messages that are seen anyway.
    pub(super) fn shown(&self, store: &dyn RelayStore, thread: &str) -> Result<Shown, StoreError> {
        self.shown_after(store, thread, 0)
    }

    /// The same, by what was handed over after a place. The cost is that of the ESCALATEs and HANDOFFs alone: whoever is
    /// denied a message must not make the relay read its thread.
    fn shown_after(
        &self,
        store: &dyn RelayStore,
        thread: &str,
        mut after: u64,
    ) -> Result<Shown, StoreError> {
        let mut shown = Shown::new();
        if self.is_admin() {
            return Ok(shown);
        }
        loop {
            let some = store.handovers(thread, after, PORTION)?;
            let Some((last, _)) = some.last() else {
                return Ok(shown);
            };
            after = *last;
            let own = some
                .iter()
                .filter(|(_, to)| to.iter().any(|a| self.reads(a)));
            let places: Vec<u64> = own.map(|(seq, _)| *seq).collect();
            for record in store.taken(&places)? {
                let sender = self.rules.routes.named(&record.sender);
                let handover = shown.entry(sender.to_owned()).or_default();
                handover.add(store, &record)?;
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
            let mut is_seen = all.iter().any(|a| self.reads(a));
            let later = shown.iter().filter(|(_, h)| h.place > record.seq);
            for (_, handover) in later.filter(|(who, _)| has_part(who)) {
                is_seen = is_seen || handover.brings(store, &self.rules, &record)?;
            }
            if is_seen {
                out.push(record);
            }
        }
        Ok(out)
    }

    /// What the relay goes by.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
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
