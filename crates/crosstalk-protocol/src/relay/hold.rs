//! What waits for a person: which messages are held, and what becomes of them (CON-060 and up).
//!
//! ```text
//! admit ──> Admission { held } ──> take ──> held, on disk, seen by its sender and by those who decide
//!                                            │
//!            Decision, bound to the digests ─┼─ Approve ──> taken, as if it came now
//!                                            ├─ Refuse ───> an ERROR to the sender
//!                                            └─ Lapse ────> the same: its consent or its deadline ended first
//! ```
//!
//! A held message is not among those that were taken: nothing that a relay hands out, files or does comes to it. When
//! it is approved it goes the way of every other message, from the beginning.

mod decision;
mod port;

pub use decision::{Choice, Decided, Decision, HeldMessage, Ruling, ended};
pub use port::HoldStore;

use super::delivery::{Handler, Recipient};
use super::pattern::Pattern;
use super::peer::{Peer, is_human};
use super::route::Routes;
use crate::consent::{Claim, Pii, is_same_scope, is_sensitive, legible, scopes};
use crate::verdict::Word;
use crosstalk_envelope::Envelope;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::registry::Intent;

/// The scope of every word that the registry does not have.
const CUSTOM: &str = "custom";

/// Which messages wait for a person. Everything that is said has to fit; what is left empty fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Why, in a few words, as those who decide read it.
    pub why: String,
    /// With one of these intents. A REVOKE is held only where it is named here: what is withdrawn does not wait.
    pub intents: Vec<Intent>,
    /// From one of these addresses.
    pub from: Vec<Pattern>,
    /// To one of these addresses.
    pub to: Vec<Pattern>,
    /// By one of these ways.
    pub by: Vec<Handler>,
    /// With one of these scopes, under any name of it.
    pub scopes: Vec<String>,
    /// Only with an attachment.
    pub attachments: bool,
    /// With one of these verdicts about the signature.
    pub verdicts: Vec<Word>,
    /// Also what people send themselves.
    pub people: bool,
    /// The addresses of those who decide; any person, if there are none.
    pub deciders: Vec<String>,
}

/// Why a message waits, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Why.
    pub why: String,
    /// The addresses of those who decide; any person, if there are none.
    pub deciders: Vec<String>,
}

/// What is looked at to tell whether a message is held.
pub(super) struct Looked<'l> {
    pub(super) envelope: &'l Envelope<'l>,
    pub(super) claim: Option<&'l Claim>,
    pub(super) verdict: Word,
    pub(super) peer: &'l Peer,
    /// Who had the relay say it, where it says what others wrote.
    pub(super) behalf: Option<&'l str>,
    pub(super) recipients: &'l [Recipient],
    pub(super) routes: &'l Routes,
}

impl<'l> Looked<'l> {
    /// Whose words it brings.
    fn sender(&self) -> &'l str {
        self.behalf.unwrap_or(self.envelope.sender.as_str())
    }
}

/// Whether a message is held: by the first rule that fits. What the relay itself says never is, unless somebody had it
/// say that to others.
pub(super) fn held(holds: &[Hold], looked: &Looked<'_>) -> Option<Held> {
    let is_itself = looked.peer.is_itself();
    if holds.is_empty() || (is_itself && looked.behalf.is_none()) {
        return None;
    }
    let is_own_word =
        !is_itself && looked.peer.is_person() && is_human(looked.routes.named(looked.sender()));
    let mut fitting = holds.iter().filter(|hold| hold.people || !is_own_word);
    fitting.find(|hold| hold.fits(looked)).map(|hold| Held {
        why: hold.why.clone(),
        deciders: hold.deciders.clone(),
    })
}

impl Looked<'_> {
    /// Whether a message has a scope: under this name or another of the same, `pii` also by `PII: present`, `custom` also by
    /// a word that is not known. What can't be read may be any sensitive one.
    fn says(&self, scope: &str) -> bool {
        let Some(claim) = self.claim else {
            return false;
        };
        let written = self.envelope.privacy().scope;
        let is_unclear = written.is_some_and(|w| legible(w).is_none());
        let is_custom = |said: &str| !scopes().contains(&said);
        let is_meant = |said: &String| {
            is_same_scope(said, scope) || (scope.eq_ignore_ascii_case(CUSTOM) && is_custom(said))
        };
        claim.scopes.iter().any(is_meant)
            || (scope.eq_ignore_ascii_case("pii") && claim.pii == Some(Pii::Present))
            || (is_sensitive(scope) && is_unclear)
    }
}

impl Hold {
    fn fits(&self, looked: &Looked<'_>) -> bool {
        let envelope = looked.envelope;
        let meaning = envelope.meaning();
        let is_asked = match (meaning, self.intents.is_empty()) {
            (Some(Intent::Revoke), true) => false,
            (_, true) => true,
            (Some(meaning), false) => self.intents.contains(&meaning),
            (None, false) => false,
        };
        let any = |patterns: &[Pattern], address: &str| {
            let named = looked.routes.named(address);
            let fits = |p: &Pattern| p.matches(address) || p.matches(named);
            patterns.is_empty() || patterns.iter().any(fits)
        };
        let receiver = envelope.receiver.as_str();
        let goes = |r: &Recipient| {
            let is_named =
                same_name(looked.routes.named(receiver), &r.address) && any(&self.to, receiver);
            (is_named || any(&self.to, &r.address))
                && (self.by.is_empty() || self.by.contains(&r.by))
        };
        let says = || self.scopes.is_empty() || self.scopes.iter().any(|s| looked.says(s));
        is_asked
            && (self.verdicts.is_empty() || self.verdicts.contains(&looked.verdict))
            && any(&self.from, looked.sender())
            && looked.recipients.iter().any(goes)
            && says()
            && (!self.attachments || envelope.attachments().next().is_some())
    }
}
