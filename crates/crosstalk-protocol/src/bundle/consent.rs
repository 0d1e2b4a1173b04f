//! The consent that holds in a thread (MET-011, MET-021): what was granted, denied, revoked, and what has expired.

use crate::consent::{Pii, is_sensitive, names};
use crate::store::{Record, Side, party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::{Document, Intent, Timestamp};

/// What a thread says about personal data at a point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsentState {
    /// The consents, in the order in which the thread gave them; the latest word of each name.
    pub consents: Vec<HeldConsent>,
    /// The worst that a message says about personal data in it.
    pub pii: Option<Pii>,
    /// Every scope that a message names, in order of appearance.
    pub scopes: Vec<String>,
}

/// A consent of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldConsent {
    /// `Consent-ID`; one that goes on from several names them all.
    pub ids: Vec<String>,
    /// The consents that it goes back to.
    pub originals: Vec<String>,
    /// What it says.
    pub kind: ConsentKind,
    /// `Consent`, as it was written.
    pub text: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// The law that applies.
    pub jurisdictions: Vec<String>,
    /// The message that says it.
    pub message: String,
    /// Whether it holds.
    pub standing: ConsentStanding,
    voice: Voice,
}

/// Who says something about a consent, and how sure that is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Voice {
    party: String,
    is_mine: bool,
    is_verified: bool,
}

impl Voice {
    fn of(record: &Record) -> Self {
        Self {
            party: party(&record.sender),
            is_mine: record.side == Side::Mine,
            is_verified: record.verdict == VerdictWord::Verified,
        }
    }

    /// Whether this voice can give what that one has refused or let expire: the person here can, and the same party as
    /// surely as it spoke before.
    fn makes_up_for(&self, other: &Self) -> bool {
        let is_sure = self.is_verified || !other.is_verified;
        self.is_mine || (self.party == other.party && is_sure)
    }
}

/// Whether a consent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentStanding {
    /// It holds.
    Holds,
    /// It was denied.
    Denied,
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
    /// What it says can't be read; that permits nothing.
    Unclear,
}

impl ConsentStanding {
    /// The state of the consent, as the end of a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Denied => "was denied",
            Self::Revoked => "was revoked",
            Self::Expired => "has expired",
            Self::Unclear => "can't be read",
        }
    }
}

/// The terms of consent that a bundle inherits from its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BundleTerms {
    pub(super) text: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) expires: Option<Timestamp>,
    pub(super) jurisdictions: Vec<String>,
    pub(super) ids: Vec<String>,
    pub(super) originals: Vec<String>,
}

impl ConsentState {
    /// Whether there is something in the thread that not everybody may see.
    pub fn is_sensitive(&self) -> bool {
        self.pii == Some(Pii::Present) || self.scopes.iter().any(|s| is_sensitive(s))
    }

    /// The consents that hold.
    pub fn holding(&self) -> impl Iterator<Item = &HeldConsent> {
        let holds = |c: &&HeldConsent| c.standing == ConsentStanding::Holds;
        self.consents.iter().filter(holds)
    }

    /// The first consent that does not hold although it would have to, and that no later one makes up for.
    pub fn broken(&self) -> Option<&HeldConsent> {
        let present = self.pii == Some(Pii::Present);
        let matters = |c: &HeldConsent| present || c.scopes.iter().any(|s| is_sensitive(s));
        self.consents.iter().enumerate().find_map(|(at, consent)| {
            let later = self.consents.iter().skip(at + 1);
            let renewed = later
                .filter(|c| c.standing == ConsentStanding::Holds)
                .filter(|c| c.voice.makes_up_for(&consent.voice))
                .any(|c| covers(&c.scopes, &consent.scopes));
            let breaks = consent.standing != ConsentStanding::Holds && matters(consent) && !renewed;
            breaks.then_some(consent)
        })
    }

    /// What holds, as one consent: all scopes that were agreed to, until the first of them ends.
    pub(super) fn terms(&self) -> BundleTerms {
        let mut holding: Vec<&HeldConsent> = Vec::new();
        for consent in self.holding() {
            holding.retain(|earlier| !consent.goes_on_from(earlier));
            holding.push(consent);
        }
        if holding.is_empty() {
            holding.extend(self.consents.last());
        }
        let mut terms = BundleTerms::default();
        let weakest = holding.iter().rev().min_by_key(|c| strength(c.kind));
        terms.text = weakest.map(|c| c.text.clone());
        terms.expires = holding.iter().filter_map(|c| c.expires).min();
        for consent in holding {
            add(&mut terms.scopes, &consent.scopes);
            add(&mut terms.jurisdictions, &consent.jurisdictions);
            add(&mut terms.ids, &consent.ids);
            add(&mut terms.originals, &consent.originals);
        }
        if terms.scopes.is_empty() {
            terms.scopes.clone_from(&self.scopes);
        }
        terms
    }
}

impl HeldConsent {
    fn names(&self, id: &str) -> bool {
        self.ids.iter().chain(&self.originals).any(|i| i == id)
    }

    /// Whether it says all that an earlier one says, and names it.
    fn goes_on_from(&self, earlier: &Self) -> bool {
        !earlier.ids.is_empty()
            && earlier.ids.iter().all(|i| self.names(i))
            && covers(&self.scopes, &earlier.scopes)
    }

    /// Whether it is the same consent, said again: under the same name, or without one for the same scope.
    fn is_same(&self, other: &Self) -> bool {
        let unnamed = self.ids.is_empty() && covers(&self.scopes, &other.scopes);
        self.ids == other.ids && (!self.ids.is_empty() || unnamed)
    }

    /// Whether this denial is about an earlier consent.
    fn denies(&self, earlier: &Self) -> bool {
        if self.ids.is_empty() {
            let shared = || self.scopes.iter().any(|s| earlier.scopes.contains(s));
            return self.scopes.is_empty() || earlier.scopes.is_empty() || shared();
        }
        self.ids.iter().any(|i| earlier.names(i))
    }

    /// Never wider and never longer than what it goes back to.
    fn narrow(&mut self, earlier: &[Self]) {
        let origins: Vec<&Self> = earlier
            .iter()
            .filter(|e| e.ids.iter().any(|i| self.originals.contains(i)))
            .collect();
        let ends = origins.iter().filter_map(|o| o.expires).min();
        self.expires = match (self.expires, ends) {
            (Some(own), Some(end)) => Some(own.min(end)),
            (own, end) => own.or(end),
        };
        if origins.iter().any(|o| !o.scopes.is_empty()) {
            let agreed = |s: &String| origins.iter().any(|o| o.scopes.contains(s));
            self.scopes.retain(agreed);
        }
        if let Some(origin) = origins.iter().find(|o| o.kind == ConsentKind::ExplicitNo) {
            self.standing = origin.standing;
        }
    }
}

/// The consent of a thread at a point in time. Messages that must not be acted on say nothing; a revocation counts if
/// its signature is verified, or if it was written here, and a consent that was revoked stays so under its name.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::bundle::consent_state;
/// let state = consent_state(&[], Timestamp::from_millis(0));
/// assert!(state.consents.is_empty() && !state.is_sensitive());
/// ```
pub fn consent_state(thread: &[Record], at: Timestamp) -> ConsentState {
    let mut state = ConsentState::default();
    let mut revoked = Vec::new();
    for record in thread.iter().filter(|r| super::counts(r)) {
        let document = record.document();
        let may_revoke = record.verdict == VerdictWord::Verified || record.side == Side::Mine;
        if record.meaning == Some(Intent::Revoke) && may_revoke {
            let id = document.meta("revocation", "Consent-ID");
            revoked.extend(id.into_iter().flat_map(names));
        }
        read_block(&document, record, &mut state);
    }
    for consent in &mut state.consents {
        if consent.standing != ConsentStanding::Holds {
            continue;
        }
        if revoked.iter().any(|w| consent.names(w)) {
            consent.standing = ConsentStanding::Revoked;
        } else if consent.expires.is_some_and(|e| e <= at) {
            consent.standing = ConsentStanding::Expired;
        }
    }
    state
}

/// What one message says in `meta: privacy`.
fn read_block(document: &Document<'_>, record: &Record, state: &mut ConsentState) {
    let envelope = document.envelope();
    let privacy = envelope.privacy();
    let said = privacy.pii.map(str::to_ascii_lowercase);
    let pii = said.and_then(|word| Pii::from_wire(&word));
    state.pii = state.pii.into_iter().chain(pii).min();
    let scopes: Vec<String> = privacy.scopes().into_iter().map(Into::into).collect();
    add(&mut state.scopes, &scopes);
    let Some(given) = privacy.consent() else {
        return;
    };
    let originals = document.meta("privacy", "Original-Consent-ID");
    let end_is_unclear = privacy.expires().is_none() && privacy.end.is_some();
    let mut consent = HeldConsent {
        ids: privacy.consent_id.map(names).unwrap_or_default(),
        originals: originals.map(names).unwrap_or_default(),
        kind: given.kind,
        text: given.text.to_owned(),
        scopes,
        expires: privacy.expires(),
        jurisdictions: privacy
            .jurisdictions()
            .into_iter()
            .map(Into::into)
            .collect(),
        message: record.id.clone(),
        voice: Voice::of(record),
        standing: match given.kind {
            ConsentKind::ExplicitNo => ConsentStanding::Denied,
            ConsentKind::Unknown => ConsentStanding::Unclear,
            _ if end_is_unclear => ConsentStanding::Unclear,
            _ => ConsentStanding::Holds,
        },
    };
    consent.narrow(&state.consents);
    if consent.kind == ConsentKind::ExplicitNo {
        for earlier in &mut state.consents {
            if consent.denies(earlier) {
                earlier.standing = ConsentStanding::Denied;
            }
        }
    }
    let is_said_again =
        |c: &HeldConsent| consent.is_same(c) && consent.voice.makes_up_for(&c.voice);
    state.consents.retain(|c| !is_said_again(c));
    state.consents.push(consent);
}

/// Whether scopes are enough for others; without any, only for none.
fn covers(given: &[String], needed: &[String]) -> bool {
    needed.iter().all(|n| given.contains(n)) && (given.is_empty() == needed.is_empty())
}

/// How much a consent says, from the least.
const fn strength(kind: ConsentKind) -> u8 {
    match kind {
        ConsentKind::Unknown => 0,
        ConsentKind::ExplicitNo => 1,
        ConsentKind::Implicit => 2,
        ConsentKind::Transferred => 3,
        ConsentKind::ExplicitYes => 4,
    }
}

fn add(known: &mut Vec<String>, new: &[String]) {
    for item in new {
        if !known.contains(item) {
            known.push(item.clone());
        }
    }
}
