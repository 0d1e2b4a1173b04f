//! Contacts: data that a relay learns from messages without a decision of a person: keys at first contact, answers of domains, and the
//! revocation of keys that it never knew (TRU-004).
//!
//! Anybody who may send can bring these, so each credential has a bound, and what goes over it is not kept. They are
//! written apart from decisions: a flood of contacts never takes the room of a revocation.

use super::{Domain, KeyStanding, KnownKey, Origin, PinError, Trust};
use crate::dns::{DnsAnswer, Dnssec};
use crate::verify::MAX_KEYS;
use crosstalk_envelope::Timestamp;
use std::collections::HashMap;

/// How many senders one credential may bind to keys at first contact.
pub const MAX_CONTACTS_PER_CREDENTIAL: usize = 256;
/// The same for all that came without a token, from other domains: these cost nothing to make.
pub const MAX_FOREIGN_CONTACTS: usize = 2048;
/// How many domains are remembered because messages made a relay ask them.
pub const MAX_CONTACT_DOMAINS: usize = 1024;
/// A sender that is longer is not bound to a key by a first contact.
const MAX_SENDER_BYTES: usize = 1024;
/// A reason, or a message id, that is longer is not kept.
const MAX_NOTE_BYTES: usize = 200;
/// An answer that holds shorter is asked for again and not written again.
const MIN_TTL_SECONDS: u32 = 60;

/// The prefix of the credential of a caller from another domain.
pub(crate) const FOREIGN: &str = "domain:";

/// How much of its bound an entry takes.
fn cost(key: &KnownKey) -> usize {
    key.senders.len().max(1)
}

/// Leaves out a note that is too long to be kept.
fn shorten(note: &mut Option<String>) {
    *note = note.take().filter(|n| n.len() <= MAX_NOTE_BYTES);
}

impl Trust {
    /// Whether a credential may still bring a first contact.
    pub fn has_room_for(&self, credential: &str) -> bool {
        let of = |is_meant: &dyn Fn(&str) -> bool| -> usize {
            let meant = |k: &&KnownKey| k.credential.as_deref().is_some_and(is_meant);
            self.keys.iter().filter(meant).map(cost).sum()
        };
        let is_foreign = credential.starts_with(FOREIGN);
        of(&|c| c == credential) < MAX_CONTACTS_PER_CREDENTIAL
            && (!is_foreign || of(&|c| c.starts_with(FOREIGN)) < MAX_FOREIGN_CONTACTS)
    }

    /// Pins a key for its sender because a credential that speaks for the sender brought it, and nobody else decided.
    ///
    /// # Errors
    /// As [`Trust::pin`], or that the credential has no room for another one.
    pub fn pin_contact(&mut self, mut pin: KnownKey, credential: &str) -> Result<(), PinError> {
        self.may_pin(&pin)?;
        if pin.senders.iter().any(|s| s.len() > MAX_SENDER_BYTES) {
            return Err(PinError::NoRoom);
        }
        let known = self.entry(&pin.id, &pin.key);
        let payer = known.map_or(Some(credential), |k| k.credential.as_deref());
        let has_room = match payer {
            Some(payer) => self.has_room_for(payer),
            // It was pinned before contacts were kept apart.
            None => known.is_none_or(|k| cost(k) < MAX_CONTACTS_PER_CREDENTIAL),
        };
        if !has_room {
            return Err(PinError::NoRoom);
        }
        shorten(&mut pin.by);
        pin.how = Origin::FirstContact;
        pin.credential = Some(credential.to_owned());
        self.add(pin);
        Ok(())
    }

    /// Counts what was learned since `before` against the credential that brought it, and shortens what it says.
    ///
    /// # Errors
    /// If the credential has no room for it; then it must not be kept.
    pub fn charge(&mut self, before: &Self, credential: &str) -> Result<(), PinError> {
        let mut is_full = false;
        for key in self.keys.iter_mut() {
            let known = before.entry(&key.id, &key.key);
            if known == Some(&*key) {
                continue;
            }
            if let KeyStanding::Revoked { reason, by, .. } = &mut key.standing {
                shorten(reason);
                shorten(by);
            }
            if known.is_some() {
                continue;
            }
            shorten(&mut key.by);
            // The revocation of a key that was never pinned here protects nobody but its holder.
            if key.how == Origin::Revocation {
                key.credential = Some(credential.to_owned());
            }
            let payer = key.credential.as_deref();
            is_full |= payer.is_some_and(|payer| !before.has_room_for(payer));
        }
        match is_full {
            true => Err(PinError::NoRoom),
            false => Ok(()),
        }
    }

    /// Whether the answer of a domain says something that is not on record, or is worth keeping for a while.
    pub fn is_news(&self, name: &str, answer: &DnsAnswer, now: Timestamp) -> bool {
        let known = self
            .domains
            .iter()
            .find(|d| d.name.eq_ignore_ascii_case(name));
        match (answer, known) {
            (DnsAnswer::Unavailable { .. }, _) => false,
            (DnsAnswer::Keys { keys, ttl, dnssec }, Some(known)) => {
                !keys.iter().take(MAX_KEYS).eq(&known.keys)
                    || *dnssec != known.dnssec
                    || (now >= known.expires && *ttl >= MIN_TTL_SECONDS)
            }
            (DnsAnswer::Keys { .. }, None) => true,
            (_, known) => known.is_some_and(|k| !k.keys.is_empty()),
        }
    }

    /// Keeps what a domain said to a relay that asked because of a message. Where there are too many, those that were
    /// never proven by DNSSEC and have expired make room, the oldest first; else the new one is not kept, and asked again.
    pub fn remember_contact(&mut self, name: &str, answer: &DnsAnswer, now: Timestamp) {
        let is_known = self
            .domains
            .iter()
            .any(|d| d.name.eq_ignore_ascii_case(name));
        if !is_known && self.domains.iter().filter(|d| d.is_contact).count() >= MAX_CONTACT_DOMAINS
        {
            let is_spent =
                |d: &&Domain| d.is_contact && d.expires <= now && d.dnssec != Dnssec::Secure;
            let oldest = self
                .domains
                .iter()
                .filter(is_spent)
                .min_by_key(|d| d.asked.as_millis());
            let Some(oldest) = oldest.map(|d| d.name.clone()) else {
                return;
            };
            self.forget_domain(&oldest);
        }
        self.remember(name, answer, now);
        let kept = self
            .domains
            .iter_mut()
            .find(|d| d.name.eq_ignore_ascii_case(name));
        if let Some(kept) = kept {
            kept.is_contact = true;
            kept.keys.truncate(MAX_KEYS);
        }
    }

    /// Whether another one says the same, in whatever order.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let parts = |trust: &Self| (trust.to_text(), trust.contacts_to_text());
        parts(self) == parts(other)
    }

    /// Whether this trusts nothing that `before` did not: no key counts that did not count, and none for more senders.
    pub fn only_restricts(&self, before: &Self) -> bool {
        let active = |k: &&KnownKey| k.standing == KeyStanding::Active;
        let name = |k: &KnownKey| (k.id.clone(), k.key.record());
        let known: HashMap<_, _> = before
            .keys
            .iter()
            .filter(active)
            .map(|k| (name(k), k))
            .collect();
        let mut now = self.keys.iter().filter(active);
        now.all(|k| {
            let known = known.get(&name(k));
            known.is_some_and(|known| k.senders.iter().all(|s| known.binds(s)))
        })
    }
}
