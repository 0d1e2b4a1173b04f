//! The ledger: who granted what to whom, by which message, and what became of it (CON-020 to CON-034).

use super::claim::{Claim, is_sensitive};
use super::proof::{Assurance, Proof};
use super::{refuse, shown};
use crate::store::{Arrival, Outcome, StoreError, is_same_party, may_answer};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::{ConsentKind, Digest};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::Refusal;

/// A consent that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name: `Consent-ID`, else the id of the message that gave it.
    pub id: String,
    /// Who gave it.
    pub granter: String,
    /// With which key.
    pub pkid: Option<String>,
    /// How well that was verified.
    pub assurance: Assurance,
    /// `Consent`, as it was written; nothing if it was withdrawn before it was seen.
    pub text: Option<String>,
    /// What it covers.
    pub scopes: Vec<String>,
    /// To whom it was given.
    pub to: Vec<String>,
    /// The laws that it names.
    pub jurisdictions: Vec<String>,
    /// Since when.
    pub since: Timestamp,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// The message that gave it.
    pub message: String,
    /// The digest of that message.
    pub digest: Digest,
    /// The consents that it goes back to.
    pub originals: Vec<String>,
    /// What ended it.
    pub revoked: Option<Revocation>,
}

/// What ended a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// When.
    pub at: Timestamp,
    /// Who withdrew it.
    pub by: String,
    /// The REVOKE.
    pub message: String,
    /// Why.
    pub reason: Option<String>,
}

impl Grant {
    /// The word for what holds of it at a time.
    pub fn standing(&self, at: Timestamp) -> &'static str {
        match (&self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= at => "expired",
            _ => "holds",
        }
    }

    /// Whether it was given to somebody.
    fn is_for(&self, address: &str) -> bool {
        self.to.iter().any(|to| may_answer(to, address))
    }

    fn is_by(&self, address: &str) -> bool {
        is_same_party(&self.granter, address)
    }

    /// The scopes of a claim that it does not cover.
    fn lacks<'c>(&self, claim: &'c Claim) -> Option<&'c str> {
        let mut needed = claim.scopes.iter().filter(|s| is_sensitive(s));
        let covers = |scope: &str| self.scopes.iter().any(|s| is_same_scope(s, scope));
        needed.find(|s| !covers(s)).map(String::as_str)
    }
}

/// PHI is what the draft calls medical.
pub(crate) fn is_same_scope(one: &str, other: &str) -> bool {
    let word = |s: &str| match s.eq_ignore_ascii_case("phi") {
        true => "medical".to_owned(),
        false => s.to_ascii_lowercase(),
    };
    word(one) == word(other)
}

/// Who says something about a consent, to whom, in which message.
#[derive(Clone, Copy, Debug)]
pub struct Party<'p> {
    /// The sender.
    pub sender: &'p str,
    /// The key that signed, where the signature holds.
    pub pkid: Option<&'p str>,
    /// How sure that is.
    pub proof: Proof,
    /// To whom.
    pub to: &'p [String],
    /// The id of the message.
    pub message: &'p str,
    /// Its digest.
    pub digest: Digest,
    /// When it came.
    pub at: Timestamp,
}

/// What follows from a message for the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// When the consent of the message ends: never later than one that it goes back to.
    pub expires: Option<Timestamp>,
    /// What is put on record, in place of what is there under the same name.
    pub grants: Vec<Grant>,
    /// The consents that the message is kept under: with each of them, its text goes.
    pub under: Vec<String>,
    /// What it withdraws.
    pub withdrawal: Option<Withdrawal>,
}

/// What a REVOKE withdraws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The consents, by name; those that go back to them end with them.
    pub consents: Vec<String>,
    /// The token, by name.
    pub token: Option<String>,
    /// By whom, when, why.
    pub revocation: Revocation,
}

/// What became of a REVOKE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// The consents that ended, with those that went back to them.
    pub consents: Vec<String>,
    /// The tokens that ended.
    pub tokens: Vec<String>,
    /// The messages whose text was erased.
    pub erased: Vec<Erased>,
    /// The deliveries that were cancelled.
    pub cancelled: Vec<Cancelled>,
    /// Who had got such a message by another relay, and is told.
    pub downstream: Vec<String>,
}

/// A message whose text was erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// Its id.
    pub id: String,
    /// Its digest, which still proves what it was.
    pub digest: Digest,
}

/// A delivery that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The message.
    pub id: String,
    /// From whom it was.
    pub from: String,
    /// Where it was going.
    pub to: String,
    /// Its thread.
    pub thread: String,
}

/// What follows from a message by the consents on record, or why it is not taken.
pub type Judge<'j> = dyn Fn(&[Grant]) -> Result<Terms, Refusal> + 'j;

/// Which grants are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// Only those given by this address.
    pub granter: Option<String>,
    /// Only those that have not ended at this time.
    pub holding_at: Option<Timestamp>,
    /// How many at most; 0 is all.
    pub most: usize,
}

/// Where consents are on record.
pub trait LedgerStore {
    /// The consent with a name.
    ///
    /// # Errors
    /// If the store can't be read.
    fn grant(&self, id: &str) -> Result<Option<Grant>, StoreError>;

    /// Consents, the latest first.
    ///
    /// # Errors
    /// If the store can't be read.
    fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, StoreError>;

    /// The ids of the messages that are or were kept under a consent, with whether their text is still there, the oldest
    /// first.
    ///
    /// # Errors
    /// If the store can't be read.
    fn under(&self, id: &str) -> Result<Vec<(String, bool)>, StoreError>;

    /// The consents that a message names, and those that these go back to.
    ///
    /// # Errors
    /// If the store can't be read.
    fn known(&self, claim: &Claim) -> Result<Vec<Grant>, StoreError>;

    /// Keeps a message of the person of this store and writes down what follows from it, if `judge` lets it pass by the consents
    /// that its claim names. In one transaction: nothing is kept under a consent that is withdrawn meanwhile.
    ///
    /// # Errors
    /// If the store can't be written. Nothing was kept then.
    fn accept_ruled(
        &mut self,
        arrival: &Arrival,
        claim: &Claim,
        judge: &Judge<'_>,
    ) -> Result<Result<(Outcome, Withdrawn), Refusal>, StoreError>;

    /// What is left of erased texts in the files of the store is taken out of them, as far as nobody reads older states.
    /// True if nothing is left.
    ///
    /// # Errors
    /// If the store can't be written.
    fn scrub(&mut self) -> Result<bool, StoreError>;
}

/// What follows from a message, by what was granted before; `known` are the grants with the names in the claim.
///
/// # Errors
/// The refusal, if the consent that it relies on is over, withdrawn, narrower, or not the sender's to pass on.
pub fn judge(claim: &Claim, party: &Party<'_>, known: &[Grant]) -> Result<Terms, Refusal> {
    let mut terms = Terms {
        expires: claim.expires,
        ..Terms::default()
    };
    let is_transfer = claim.kind == Some(ConsentKind::Transferred);
    let named = |id: &String| known.iter().find(|g| g.id == *id);
    let relied_on = claim.originals.iter().chain(&claim.ids);
    for grant in relied_on.filter_map(named) {
        relies_on(grant, claim, party, &mut terms)?;
        let is_own = grant.is_by(party.sender) || grant.is_for(party.sender);
        if is_transfer && claim.originals.contains(&grant.id) && !is_own {
            return Err(refuse(
                &rule::CONSENT_NOT_YOURS,
                &format!(
                    "The consent {} was given by {} to others than {}, who can't pass it on",
                    shown(&grant.id),
                    shown(&grant.granter),
                    shown(party.sender)
                ),
                "let one of them hand the conversation over",
            ));
        }
    }
    terms.under.extend(claim.ids.iter().cloned());
    terms.under.extend(claim.originals.iter().cloned());
    if claim.is_recorded() {
        let mut ids = claim.ids.clone();
        if ids.is_empty() {
            ids.push(party.message.to_owned());
            terms.under.push(party.message.to_owned());
        }
        for id in ids {
            let is_free = known
                .iter()
                .find(|g| g.id == id)
                .is_none_or(|g| takes_over(g, party));
            if is_free {
                terms.grants.push(granted(id, claim, party, terms.expires));
            }
        }
    }
    terms.under.sort();
    terms.under.dedup();
    Ok(terms)
}

/// Whether a message puts new terms on record: its sender gave the consent before and is as sure now, or whoever did is
/// not known for sure and the sender of this one is.
fn takes_over(grant: &Grant, party: &Party<'_>) -> bool {
    let assurance = party.proof.assurance;
    match grant.is_by(party.sender) {
        true => assurance >= grant.assurance,
        false => assurance.is_trusted() && !grant.assurance.is_trusted(),
    }
}

/// Holds a message against a consent that it names.
fn relies_on(
    grant: &Grant,
    claim: &Claim,
    party: &Party<'_>,
    terms: &mut Terms,
) -> Result<(), Refusal> {
    let id = shown(&grant.id);
    if let Some(revoked) = &grant.revoked {
        return Err(refuse(
            &rule::CONSENT_WITHDRAWN,
            &format!(
                "The consent {id} was withdrawn at {} by {}",
                revoked.at,
                shown(&revoked.by)
            ),
            "ask for a new one, under a name of its own",
        ));
    }
    // Whoever gave it may give it anew, longer or wider.
    if claim.grants() && claim.ids.contains(&grant.id) && takes_over(grant, party) {
        return Ok(());
    }
    if let Some(end) = grant.expires.filter(|end| *end <= party.at) {
        return Err(refuse(
            &rule::CONSENT_OVER,
            &format!("The consent {id} ended at {end}"),
            "ask for it again",
        ));
    }
    if let Some(scope) = grant.lacks(claim) {
        return Err(refuse(
            &rule::CONSENT_WIDER,
            &format!(
                "The consent {id} does not cover the scope {}, which the message has",
                shown(scope)
            ),
            "ask for consent to it, or take out what needs it (`crosstalk redact`)",
        ));
    }
    terms.expires = match (terms.expires, grant.expires) {
        (Some(own), Some(end)) if own > end && claim.originals.contains(&grant.id) => {
            return Err(refuse(
                &rule::CONSENT_LONGER,
                &format!(
                    "The message is to hold until {own}, and the consent {id} that it goes back to ends at {end}"
                ),
                "write an `Expires` that is not later, or leave it out",
            ));
        }
        (Some(own), Some(end)) => Some(own.min(end)),
        (own, end) => own.or(end),
    };
    Ok(())
}

fn granted(id: String, claim: &Claim, party: &Party<'_>, expires: Option<Timestamp>) -> Grant {
    Grant {
        id,
        granter: party.sender.to_owned(),
        pkid: party.pkid.map(str::to_owned),
        assurance: party.proof.assurance,
        text: claim.text.clone(),
        scopes: claim.scopes.clone(),
        to: party.to.to_vec(),
        jurisdictions: claim.jurisdictions.clone(),
        since: claim.given_at.unwrap_or(party.at),
        expires,
        message: party.message.to_owned(),
        digest: party.digest,
        originals: claim.originals.clone(),
        revoked: None,
    }
}

/// What a REVOKE withdraws; `known` are the grants that it names, and those that these go back to. A consent that is not
/// on record is withdrawn before it is seen; an authority withdraws what others granted. Nothing if it withdraws neither
/// consent nor permission.
///
/// # Errors
/// The refusal, if it is not surely from somebody who may.
pub fn withdraw(
    claim: &Claim,
    party: &Party<'_>,
    known: &[Grant],
    is_authority: bool,
) -> Result<Option<Withdrawal>, Refusal> {
    let token = claim.permission.as_deref().map(token_of).transpose()?;
    if !claim.is_revoke || (claim.withdraws.is_empty() && token.is_none()) {
        return Ok(None);
    }
    if !party.proof.is_firm {
        return Err(refuse(
            &rule::CONSENT_REVOKE_PROOF,
            &format!(
                "It is not sure enough that this REVOKE is from {}: it has to be signed with a key of this sender that \
                 was compared or that a domain vouches for, with an id, to a receiver that is a URL",
                shown(party.sender)
            ),
            "have the key pinned after comparing it (`crosstalk trust pin --compared`), and sign it (`crosstalk sign`)",
        ));
    }
    for id in &claim.withdraws {
        let Some(grant) = known.iter().find(|g| g.id == *id) else {
            continue;
        };
        let mut origins = known.iter().filter(|g| grant.originals.contains(&g.id));
        let may =
            is_authority || grant.is_by(party.sender) || origins.any(|g| g.is_by(party.sender));
        if !may {
            return Err(refuse(
                &rule::CONSENT_REVOKE_BY,
                &format!(
                    "The consent {} was given by {}, and {} can't withdraw it",
                    shown(id),
                    shown(&grant.granter),
                    shown(party.sender)
                ),
                "let who gave it withdraw it, or an authority that the relay names",
            ));
        }
    }
    if token.is_some() && !is_authority {
        return Err(refuse(
            &rule::CONSENT_REVOKE_BY,
            &format!(
                "Only an authority withdraws a permission, and {} is none here",
                shown(party.sender)
            ),
            "let who runs the relay end it (`crosstalk token revoke`), or name the sender among the authorities",
        ));
    }
    Ok(Some(Withdrawal {
        consents: claim.withdraws.clone(),
        token,
        revocation: Revocation {
            at: party.at,
            by: party.sender.to_owned(),
            message: party.message.to_owned(),
            reason: claim.reason.clone(),
        },
    }))
}

/// The token that `Permission: token:NAME` names.
fn token_of(permission: &str) -> Result<String, Refusal> {
    let name = permission.strip_prefix("token:").map(str::trim);
    name.filter(|n| !n.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| {
            refuse(
                &rule::CONSENT_PERMISSION,
                &format!(
                    "`Permission: {}` names nothing that is known here",
                    shown(permission)
                ),
                "write `Permission: token:` and the name of the token",
            )
        })
}
