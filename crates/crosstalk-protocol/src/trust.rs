//! The trust store: which key belongs to which key id, who used it, and since when (TRU-004, TRU-011, TRU-012, TRU-030).
//!
//! It is data: reading and writing its file is for an adapter. The text is TOML, for people to read and to exchange.

mod contact;
mod file;
mod list;

use crate::dns::{DnsAnswer, Dnssec};
use crate::rotation::Rotation;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::words;
use crosstalk_envelope::{PublicKey, Timestamp, sort_by_number};

pub(crate) use contact::FOREIGN;
pub use contact::{MAX_CONTACTS_PER_CREDENTIAL, MAX_FOREIGN_CONTACTS};
pub use file::TrustFileError;
use list::KeyList;

/// The known keys: pins, revocations and answers of domains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    keys: KeyList,
    domains: Vec<Domain>,
}

/// A key that was pinned, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownKey {
    /// Its id.
    pub id: String,
    /// The key.
    pub key: PublicKey,
    /// Since when it is known.
    pub since: Timestamp,
    /// How it came here.
    pub how: Origin,
    /// The message that introduced it: its id, or its digest.
    pub by: Option<String>,
    /// The senders that used it.
    pub senders: Vec<String>,
    /// Whether it still counts.
    pub standing: KeyStanding,
    /// The credential whose message brought it to a relay, if nobody decided about it ([`Trust::pin_contact`]).
    pub credential: Option<String>,
}

impl KnownKey {
    /// Whether a sender is bound to the key.
    pub fn binds(&self, sender: &str) -> bool {
        self.senders.iter().any(|s| same_name(s, sender))
    }

    /// Whether somebody decided that the id has this key. A first contact is no decision.
    const fn is_decided(&self) -> bool {
        matches!(self.how, Origin::Manual | Origin::Dns)
    }
}

words! {
    /// How a key came into the trust store. One that took the place of another came as that one did.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Origin {
        /// With a message, and a person or a policy took it.
        FirstContact = "first-contact",
        /// A person entered it.
        Manual = "manual",
        /// A domain vouched for it.
        Dns = "dns",
        /// It came to be known by being revoked, and was never pinned.
        Revocation = "revocation",
    }
}

/// Whether a key still counts.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyStanding {
    /// It does.
    Active,
    /// Another key took its place.
    Replaced {
        /// The id of the new key.
        by: String,
        /// The new key.
        key: PublicKey,
        /// Since when.
        at: Timestamp,
        /// Until when it may still sign.
        grace: Timestamp,
    },
    /// It was revoked.
    Revoked {
        /// From when on.
        at: Timestamp,
        /// Why.
        reason: Option<String>,
        /// The message that revoked it.
        by: Option<String>,
    },
    /// A person does not believe it.
    Distrusted {
        /// Since when.
        at: Timestamp,
        /// Why.
        reason: Option<String>,
    },
}

impl KeyStanding {
    /// Whether the key was revoked or is distrusted: it counts under no name.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Revoked { .. } | Self::Distrusted { .. })
    }

    /// Until when the key counted.
    const fn end(&self) -> Option<Timestamp> {
        match self {
            Self::Active => None,
            Self::Replaced { grace, .. } => Some(*grace),
            Self::Revoked { at, .. } | Self::Distrusted { at, .. } => Some(*at),
        }
    }

    /// The standing after another mark: a revocation stays one, and takes effect at the earliest of all times.
    fn marked(&self, mark: Self) -> Self {
        let at = self.end().into_iter().chain(mark.end()).min();
        match (self, mark) {
            (
                Self::Revoked {
                    at: first,
                    reason,
                    by,
                },
                _,
            ) => Self::Revoked {
                at: at.unwrap_or(*first),
                reason: reason.clone(),
                by: by.clone(),
            },
            (
                _,
                Self::Revoked {
                    at: first,
                    reason,
                    by,
                },
            ) => Self::Revoked {
                at: at.unwrap_or(first),
                reason,
                by,
            },
            (_, mark) => mark,
        }
    }
}

/// The last answer of a domain about its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// The domain.
    pub name: String,
    /// The keys that it listed.
    pub keys: Vec<PublicKey>,
    /// The DNSSEC status.
    pub dnssec: Dnssec,
    /// When it was asked.
    pub asked: Timestamp,
    /// Until when the answer may be used.
    pub expires: Timestamp,
    /// Whether a relay keeps it because a message made it ask ([`Trust::remember_contact`]).
    pub is_contact: bool,
}

/// Why a key is not pinned.
#[derive(Clone, Debug, PartialEq)]
pub enum PinError {
    /// The key is on the deny list: why.
    Denied(&'static str),
    /// The id has another key.
    Changed(Box<PublicKey>),
    /// The sender is known under these key ids.
    SenderChanged(Vec<String>),
    /// A name of a sender looks like another one, which is pinned under another key id: the name, and the pinned one.
    LooksLike(String, String),
    /// The key was revoked or is distrusted.
    Refused(Box<KeyStanding>),
    /// These senders use the key as well, and the person did not see them.
    Unseen(Vec<String>),
    /// The credential that brought the key has as many first contacts as it may have, or a text is too long.
    NoRoom,
}

impl PinError {
    /// Whether a person can't replace what is known either.
    fn is_final(&self) -> bool {
        match self {
            Self::Denied(_) | Self::NoRoom | Self::Unseen(_) => true,
            Self::Refused(standing) => !matches!(**standing, KeyStanding::Replaced { .. }),
            Self::Changed(_) | Self::SenderChanged(_) | Self::LooksLike(..) => false,
        }
    }
}

impl Trust {
    /// Every key, in the order in which it came.
    pub fn keys(&self) -> &[KnownKey] {
        &self.keys
    }

    /// Every answer of a domain.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The keys of an id, the active one first.
    pub fn of_id<'t>(&'t self, id: &str) -> Vec<&'t KnownKey> {
        let mut keys: Vec<&KnownKey> = self.keys.of_id(id).collect();
        sort_by_number(&mut keys, |k| {
            usize::from(k.standing != KeyStanding::Active)
        });
        keys
    }

    /// The keys that an id has for a sender, the active one first. A key that came at first contact is one for its own
    /// senders only, and for nobody once somebody has decided which key the id has (TRU-004).
    pub fn keys_for<'t>(&'t self, id: &str, sender: &str) -> Vec<&'t KnownKey> {
        self.keys_among(id, |k| k.binds(sender))
    }

    fn keys_among(&self, id: &str, binds: impl Fn(&KnownKey) -> bool) -> Vec<&KnownKey> {
        let mut keys = self.of_id(id);
        let is_decided = keys.iter().any(|k| k.is_decided());
        keys.retain(|k| match k.how {
            Origin::FirstContact => !is_decided && (k.senders.is_empty() || binds(k)),
            _ => true,
        });
        keys
    }

    /// The key that was pinned for an id and a sender, the active one before others.
    pub fn pinned_for(&self, id: &str, sender: &str) -> Option<&KnownKey> {
        self.pinned_among(id, &[sender.to_owned()])
    }

    fn pinned_among(&self, id: &str, senders: &[String]) -> Option<&KnownKey> {
        let keys = self.keys_among(id, |k| senders.iter().any(|s| k.binds(s)));
        keys.into_iter().find(|k| k.how != Origin::Revocation)
    }

    /// The key of an id that counts now: one that somebody decided about before one of a first contact.
    pub fn active(&self, id: &str) -> Option<&KnownKey> {
        let keys = self.keys.of_id(id);
        let active = keys.filter(|k| k.standing == KeyStanding::Active);
        active.min_by_key(|k| !k.is_decided())
    }

    /// The entry of a key under an id.
    pub fn entry(&self, id: &str, key: &PublicKey) -> Option<&KnownKey> {
        self.keys.of_id(id).find(|k| k.key == *key)
    }

    /// The entries of a key under whatever ids.
    pub fn of_key(&self, key: &PublicKey) -> impl Iterator<Item = &KnownKey> {
        self.keys.of_key(key)
    }

    /// The ids of the keys that a sender used, whatever became of them.
    pub fn ids_of_sender<'t>(&'t self, sender: &str) -> Vec<&'t str> {
        let used = self.keys.of_sender(sender);
        let mut ids: Vec<&str> = used.map(|k| k.id.as_str()).collect();
        ids.dedup();
        ids
    }

    /// A pinned sender that another name looks like, and the id of its key; none if the name is a pinned sender itself.
    pub fn look_alike<'t>(&'t self, name: &str) -> Option<(&'t str, &'t str)> {
        match self.keys.of_sender(name).next() {
            Some(_) => None,
            None => self.keys.look_alike(name),
        }
    }

    /// The answer of a domain, if it is still valid.
    pub fn domain(&self, name: &str, now: Timestamp) -> Option<&Domain> {
        let domain = self
            .domains
            .iter()
            .find(|d| d.name.eq_ignore_ascii_case(name))?;
        (domain.asked <= now && now < domain.expires).then_some(domain)
    }

    /// Whether the last answer of a domain was proven by DNSSEC.
    pub fn was_secure(&self, name: &str) -> bool {
        let mut domains = self.domains.iter();
        domains.any(|d| d.name.eq_ignore_ascii_case(name) && d.dnssec == Dnssec::Secure)
    }

    /// Forgets what a domain said; says whether there was something.
    pub fn forget_domain(&mut self, name: &str) -> bool {
        let before = self.domains.len();
        self.domains.retain(|d| !d.name.eq_ignore_ascii_case(name));
        self.domains.len() < before
    }

    /// Pins a key. The same key again only adds its sender.
    ///
    /// # Errors
    /// Why not: a person has to decide, or the key is rejected whatever they decide.
    pub fn pin(&mut self, pin: KnownKey) -> Result<(), PinError> {
        self.may_pin(&pin)?;
        for sender in &pin.senders {
            if let Some((like, id)) = self.look_alike(sender)
                && id != pin.id
            {
                return Err(PinError::LooksLike(sender.clone(), like.to_owned()));
            }
        }
        self.add(pin);
        Ok(())
    }

    fn may_pin(&self, pin: &KnownKey) -> Result<(), PinError> {
        if let Some(reason) = pin.key.denied() {
            return Err(PinError::Denied(reason));
        }
        for sender in &pin.senders {
            let ids = self.ids_of_sender(sender);
            if !ids.is_empty() && !ids.contains(&pin.id.as_str()) {
                return Err(PinError::SenderChanged(
                    ids.iter().map(|s| (*s).to_owned()).collect(),
                ));
            }
        }
        let same = self.entry(&pin.id, &pin.key);
        if let Some(known) = same.filter(|k| k.standing != KeyStanding::Active) {
            return Err(PinError::Refused(Box::new(known.standing.clone())));
        }
        // Any other key of the id, whatever became of it, makes this one a change.
        let known = self.pinned_among(&pin.id, &pin.senders);
        match known.filter(|k| k.key != pin.key) {
            Some(known) => Err(PinError::Changed(Box::new(known.key))),
            None => Ok(()),
        }
    }

    /// Adds an active key, or its senders to the one that is there.
    fn add(&mut self, pin: KnownKey) {
        match self.keys.entry_mut(&pin.id, &pin.key) {
            Some(known) => {
                let new = pin.senders.into_iter();
                let is_known = |s: &String| known.senders.iter().any(|k| same_name(k, s));
                let new: Vec<String> = new.filter(|s| !is_known(s)).collect();
                known.senders.extend(new);
            }
            None => self.keys.push(pin),
        }
    }

    /// Pins a key because a person says so: an active key of the same id is distrusted from now on, since nobody
    /// knows what it signed when. A sender may then have several key ids.
    ///
    /// # Errors
    /// If the key is rejected whatever a person decides.
    pub fn pin_anyway(&mut self, pin: KnownKey) -> Result<(), PinError> {
        if let Some(reason) = pin.key.denied() {
            return Err(PinError::Denied(reason));
        }
        for known in self.keys.iter_mut().filter(|k| k.id == pin.id) {
            let is_rival = known.is_decided()
                || known.senders.is_empty()
                || pin.senders.iter().any(|s| known.binds(s));
            if known.key != pin.key && known.standing == KeyStanding::Active && is_rival {
                known.standing = KeyStanding::Distrusted {
                    at: pin.since,
                    reason: Some("another key was pinned in its place".to_owned()),
                };
            }
        }
        let same = |k: &KnownKey| k.id == pin.id && k.key == pin.key;
        if let Some(known) = self.entry(&pin.id, &pin.key)
            && matches!(known.standing, KeyStanding::Revoked { .. })
        {
            return Err(PinError::Refused(Box::new(known.standing.clone())));
        }
        self.keys.retain(|k| !same(k));
        self.keys.push(pin);
        Ok(())
    }

    /// Pins a key that a person gives. The same one again gets what is new about it: a sender, or that a person has compared it.
    /// With `replace`, it takes the place of another key of the id, and its senders may be those of another id.
    ///
    /// # Errors
    /// Why not, if `replace` is missing, or the key is rejected whatever a person decides.
    pub fn pin_by_person(&mut self, mut pin: KnownKey, replace: bool) -> Result<(), PinError> {
        let known = self.undecided(&pin).cloned();
        if let Some(known) = &known {
            for sender in &known.senders {
                if !pin.senders.iter().any(|s| same_name(s, sender)) {
                    pin.senders.push(sender.clone());
                }
            }
            pin.since = known.since;
            pin.by = pin.by.or_else(|| known.by.clone());
            if let Err(fault) = self.check_bound(&pin)
                && !replace
            {
                return Err(fault);
            }
        }
        // The rules come first; on a copy, since a pin by hand may go on from here.
        let mut after = self.clone();
        match after.pin(pin.clone()) {
            Ok(()) => {}
            Err(fault) if !replace || fault.is_final() => return Err(fault),
            Err(_) => {
                after = self.clone();
                after.pin_anyway(pin.clone())?;
            }
        }
        if known.is_some() {
            after.pin_anyway(pin)?;
        }
        *self = after;
        Ok(())
    }

    /// The same for a person who was shown senders of the key: `pin.senders` has all of them, and no other one is bound.
    ///
    /// # Errors
    /// As above; [`PinError::Unseen`] if other senders used the key meanwhile.
    pub fn pin_as_shown(&mut self, pin: KnownKey, replace: bool) -> Result<(), PinError> {
        let known = self.undecided(&pin).map_or(&[][..], |k| &k.senders);
        let is_shown = |sender: &&String| pin.senders.iter().any(|s| same_name(s, sender));
        let unseen: Vec<String> = known.iter().filter(|s| !is_shown(s)).cloned().collect();
        match unseen.is_empty() {
            true => self.pin_by_person(pin, replace),
            false => Err(PinError::Unseen(unseen)),
        }
    }

    /// The active entry of a key that a person decides about now for the first time.
    fn undecided(&self, pin: &KnownKey) -> Option<&KnownKey> {
        let known = self.entry(&pin.id, &pin.key)?;
        let is_first = pin.how == Origin::Manual && known.how != Origin::Manual;
        (is_first && known.standing == KeyStanding::Active).then_some(known)
    }

    /// Checks the senders that a key gets, as if it had none of them yet: what was decided since they came counts.
    fn check_bound(&self, pin: &KnownKey) -> Result<(), PinError> {
        let mut others = self.clone();
        let is_other = |k: &KnownKey| k.id != pin.id && k.standing == KeyStanding::Active;
        others.keys.retain(is_other);
        for sender in &pin.senders {
            let ids = others.ids_of_sender(sender);
            if !ids.is_empty() {
                let ids = ids.iter().map(|s| (*s).to_owned()).collect();
                return Err(PinError::SenderChanged(ids));
            }
            if let Some((like, _)) = others.look_alike(sender) {
                return Err(PinError::LooksLike(sender.clone(), like.to_owned()));
            }
        }
        Ok(())
    }

    /// Whether a rotation leads on from a key that counts, no third key took its place, and the new id belongs to
    /// nobody else.
    pub fn vouches_for(&self, rotation: &Rotation) -> bool {
        let counts = |k: &KnownKey| match &k.standing {
            KeyStanding::Active => true,
            KeyStanding::Replaced { key, .. } => *key == rotation.new,
            KeyStanding::Revoked { .. } | KeyStanding::Distrusted { .. } => false,
        };
        let mut entries = self.of_key(&rotation.old);
        let is_refused = entries.any(|k| k.standing.is_refused());
        let old = self.entry(&rotation.old_id, &rotation.old);
        let is_free = rotation.new_id == rotation.old_id
            || old.is_none_or(|old| self.is_free(&rotation.new_id, old))
            || self.entry(&rotation.new_id, &rotation.new).is_some();
        is_free && !is_refused && old.is_some_and(counts)
    }

    /// Whether an id may be that of the key that follows another one. A key that somebody decided about would take it from
    /// everybody else, so it has to be nobody's.
    fn is_free(&self, id: &str, old: &KnownKey) -> bool {
        let of_anybody = || {
            let mut keys = self.of_id(id).into_iter();
            keys.find(|k| k.how != Origin::Revocation)
        };
        let taken = match old.is_decided() {
            true => of_anybody(),
            false => self.pinned_among(id, &old.senders),
        };
        taken.is_none()
    }

    /// Takes a new key in the place of the one that vouches for it: it came as that one did, and has its senders.
    pub fn rotate(&mut self, rotation: &Rotation, at: Timestamp, by: Option<String>) {
        let Some(old) = self.keys.entry_mut(&rotation.old_id, &rotation.old) else {
            return;
        };
        if old.standing == KeyStanding::Active {
            old.standing = KeyStanding::Replaced {
                by: rotation.new_id.clone(),
                key: rotation.new,
                at,
                grace: rotation.grace,
            };
        }
        let new = KnownKey {
            id: rotation.new_id.clone(),
            key: rotation.new,
            since: at,
            how: old.how,
            by,
            senders: old.senders.clone(),
            standing: KeyStanding::Active,
            credential: old.credential.clone(),
        };
        let others = self.keys_among(&new.id, |k| new.senders.iter().any(|s| k.binds(s)));
        let is_free = others.iter().all(|k| k.standing != KeyStanding::Active);
        if self.entry(&new.id, &new.key).is_none() && is_free {
            self.keys.push(new);
        }
    }

    /// Marks a key; one that is not known yet is kept with its mark. Nothing undoes a revocation, and none gives a
    /// key more time than it had.
    pub fn mark(&mut self, id: &str, key: &PublicKey, at: Timestamp, standing: KeyStanding) {
        match self.keys.entry_mut(id, key) {
            Some(known) => {
                if matches!(standing, KeyStanding::Distrusted { .. }) {
                    // A person decided about it.
                    known.credential = None;
                }
                known.standing = known.standing.marked(standing);
            }
            None => self.keys.push(KnownKey {
                id: id.to_owned(),
                key: *key,
                since: at,
                how: match standing {
                    KeyStanding::Revoked { .. } => Origin::Revocation,
                    _ => Origin::Manual,
                },
                by: None,
                senders: Vec::new(),
                standing,
                credential: None,
            }),
        }
    }

    /// Forgets every key of an id, or that one key; says how many.
    pub fn remove(&mut self, id: &str, key: Option<&PublicKey>) -> usize {
        let before = self.keys.len();
        self.keys
            .retain(|k| k.id != id || key.is_some_and(|key| k.key != *key));
        before - self.keys.len()
    }

    /// Keeps what a domain said, for as long as it said; an answer without keys takes its place as well.
    pub fn remember(&mut self, name: &str, answer: &DnsAnswer, now: Timestamp) {
        let (keys, ttl, dnssec) = match answer {
            DnsAnswer::Keys { keys, ttl, dnssec } => (keys.clone(), *ttl, *dnssec),
            DnsAnswer::Absent { dnssec } => (Vec::new(), 0, *dnssec),
            DnsAnswer::Wrong { .. } => (Vec::new(), 0, Dnssec::Indeterminate),
            // A temporary failure changes nothing.
            DnsAnswer::Unavailable { .. } => return,
        };
        if self.was_secure(name) && dnssec != Dnssec::Secure {
            return;
        }
        // A domain that has vouched once is one to be asked, also when it lists no key any more.
        let is_known = self.forget_domain(name);
        if is_known || !keys.is_empty() {
            // A week is enough, whatever a record says.
            let seconds = i64::from(ttl.min(7 * 86_400));
            self.domains.push(Domain {
                name: name.to_ascii_lowercase(),
                keys,
                dnssec,
                asked: now,
                expires: Timestamp::from_millis(now.as_millis() + seconds * 1000),
                is_contact: false,
            });
        }
    }

    /// Takes over what another trust store knows. What contradicts this one is left out and named.
    pub fn merge(&mut self, other: &Self) -> Vec<(String, PinError)> {
        let before = self.clone();
        let mut refused = Vec::new();
        for known in other.keys.iter() {
            let ours = before.entry(&known.id, &known.key);
            let result = match (&known.standing, ours) {
                (KeyStanding::Active, _) => before.may_pin(known).map(|()| self.add(known.clone())),
                // The history of an id that is new here is kept as it is; its senders only if they are nobody's.
                (_, None) if before.pinned_among(&known.id, &known.senders).is_none() => {
                    let mut known = known.clone();
                    known.senders.retain(|s| before.ids_of_sender(s).is_empty());
                    self.keys.push(known);
                    Ok(())
                }
                (KeyStanding::Revoked { .. } | KeyStanding::Distrusted { .. }, None) => {
                    self.mark(&known.id, &known.key, known.since, known.standing.clone());
                    Ok(())
                }
                // An imported revocation counts as distrust: without the message behind it, a person can undo it.
                (KeyStanding::Revoked { at, .. } | KeyStanding::Distrusted { at, .. }, Some(_)) => {
                    let reason = Some("an imported trust file says so".to_owned());
                    let no = KeyStanding::Distrusted { at: *at, reason };
                    self.mark(&known.id, &known.key, known.since, no);
                    Ok(())
                }
                (KeyStanding::Replaced { .. }, Some(_)) => Ok(()),
                // A replaced key verifies what it signed in time: no key of somebody else slips in so.
                (KeyStanding::Replaced { .. }, None) => {
                    let ours = before.pinned_among(&known.id, &known.senders);
                    let ours = ours.map_or(known.key, |k| k.key);
                    Err(PinError::Changed(Box::new(ours)))
                }
            };
            if let Err(why) = result {
                refused.push((known.id.clone(), why));
            }
        }
        refused
    }
}
