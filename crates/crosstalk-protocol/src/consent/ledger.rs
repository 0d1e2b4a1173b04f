//! The ledger: who granted what to whom, by which message, and what became of it (CON-020 to CON-034).

use super::claim::Claim;
use super::policy::Backing;
use super::proof::{Assurance, Proof};
use super::{refuse, shown};
use crate::relay::is_human;
use crate::store::{is_same_party, may_answer};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::Rejection;

/// A consent that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name: `Consent-ID`, else the id of the message that gave it.
    pub id: String,
    /// The granter.
    pub granter: String,
    /// With which key.
    pub pkid: Option<String>,
    /// How well that was verified.
    pub assurance: Assurance,
    /// `Consent`, as it was written; nothing if it was revoked before it was seen.
    pub text: Option<String>,
    /// Its scopes.
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
    /// Its revocation, if it was revoked.
    pub revoked: Option<Revocation>,
}

/// The revocation of a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// When.
    pub at: Timestamp,
    /// The party that revoked it.
    pub by: String,
    /// The REVOKE.
    pub message: String,
    /// Why.
    pub reason: Option<String>,
}

impl Grant {
    /// One that was revoked before anybody had seen it: no message under its name is accepted.
    pub fn unseen(id: &str, revocation: &Revocation) -> Self {
        Self {
            id: id.to_owned(),
            granter: revocation.by.clone(),
            pkid: None,
            assurance: Assurance::Pinned,
            text: None,
            scopes: Vec::new(),
            to: Vec::new(),
            jurisdictions: Vec::new(),
            since: revocation.at,
            expires: None,
            message: revocation.message.clone(),
            digest: Digest([0; 32]),
            originals: Vec::new(),
            revoked: Some(revocation.clone()),
        }
    }

    /// The word for what holds of it at a time.
    pub fn standing(&self, at: Timestamp) -> &'static str {
        match (&self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= at => "expired",
            _ => "holds",
        }
    }

    /// Whether it was given to an address.
    fn is_for(&self, address: &str, party: &Party<'_>) -> bool {
        self.to.iter().any(|to| party.is_same(to, address))
    }

    /// A recipient of a message who neither gave it nor got it.
    fn third_party<'p>(&self, party: &Party<'p>) -> Option<&'p str> {
        // The granter of a consent may be known to the relay by another address than the one they write.
        if party.receiver.is_some_and(|to| self.is_by(to)) {
            return None;
        }
        let is_outside = |to: &&String| {
            let joins = party.is_escalation && is_human(to);
            let is_granter = party.is_same(&self.granter, to);
            !joins && !is_granter && !self.is_for(to, party)
        };
        party.to.iter().find(is_outside).map(String::as_str)
    }

    fn is_by(&self, address: &str) -> bool {
        is_same_party(&self.granter, address)
    }

    /// Whether it, or one that it goes back to, is the consent on record that a message needs.
    fn backs(&self, backing: &Backing, known: &[Self]) -> bool {
        let mut seen: Vec<&str> = Vec::new();
        let mut open = vec![self];
        while let Some(grant) = open.pop() {
            if seen.contains(&grant.id.as_str()) {
                continue;
            }
            if backing.is_met_by(grant.assurance) {
                return true;
            }
            seen.push(&grant.id);
            open.extend(known.iter().filter(|g| grant.originals.contains(&g.id)));
        }
        false
    }

    /// A sensitive scope of a claim that it does not cover.
    fn lacks<'c>(&self, claim: &'c Claim) -> Option<&'c str> {
        let covers = |scope: &str| self.scopes.iter().any(|s| is_same_scope(s, scope));
        claim.sensitive().find(|s| !covers(s))
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
    /// The address that the sender stands for.
    pub speaker: &'p str,
    /// Whether the message is one of a person's own store, where chats are known by the scheme of their address
    /// ([`may_answer`]). At a relay, anybody can be at an address of that scheme.
    pub is_pasted: bool,
    /// The key that signed, where the signature holds.
    pub pkid: Option<&'p str>,
    /// How sure that is.
    pub proof: Proof,
    /// To whom.
    pub to: &'p [String],
    /// The receiver as the message names it, where that is its only recipient.
    pub receiver: Option<&'p str>,
    /// Whether the message is an ESCALATE: the conversation stays with those who have it, and a person joins.
    pub is_escalation: bool,
    /// The consent on record that the message needs, if the word of its sender is not enough.
    pub backing: Option<&'p Backing>,
    /// The id of the message.
    pub message: &'p str,
    /// Its digest.
    pub digest: Digest,
    /// When it came.
    pub at: Timestamp,
}

impl Party<'_> {
    fn is_same(&self, one: &str, other: &str) -> bool {
        match self.is_pasted {
            true => may_answer(one, other),
            false => is_same_party(one, other),
        }
    }
}

/// What follows from a message for the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// When the consent of the message ends: never later than one that it goes back to.
    pub expires: Option<Timestamp>,
    /// The consents that are recorded; each replaces a recorded one of the same name.
    pub grants: Vec<Grant>,
    /// The consents that the message is kept under: with each of them, its text goes.
    pub under: Vec<String>,
    /// The consents that it revokes.
    pub withdrawal: Option<RevocationOrder>,
}

/// The consents that a REVOKE revokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationOrder {
    /// The consents, by name; those that go back to them end with them.
    pub consents: Vec<String>,
    /// The token, by name.
    pub token: Option<String>,
    /// By whom, when, why.
    pub revocation: Revocation,
}

/// The result of a REVOKE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationResult {
    /// The consents that ended, with those that went back to them.
    pub consents: Vec<String>,
    /// The tokens that ended.
    pub tokens: Vec<String>,
    /// The messages whose text was erased.
    pub erased: Vec<Erased>,
    /// The deliveries that were cancelled.
    pub cancelled: Vec<Cancelled>,
    /// The recipients of such a message, who get the REVOKE.
    pub told: Vec<String>,
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
pub type Judge<'j> = dyn Fn(&[Grant]) -> Result<Terms, Rejection> + 'j;

/// Which grants are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// Only those given by this address.
    pub granter: Option<String>,
    /// Only those that have not ended at this time.
    pub holding_at: Option<Timestamp>,
    /// How many at most; 0 is all.
    pub limit: usize,
}

impl GrantFilter {
    /// Whether a consent is wanted.
    pub fn fits(&self, grant: &Grant) -> bool {
        let holds =
            |at: Timestamp| grant.revoked.is_none() && grant.expires.is_none_or(|end| end > at);
        let is_granter = |granter: &String| grant.granter == *granter;
        self.granter.as_ref().is_none_or(is_granter) && self.holding_at.is_none_or(holds)
    }
}

impl Grant {
    /// Whether a signed message granted it under a name of its own, and it holds: then the message is the proof, and is kept.
    pub fn is_proved_by(&self, message: &str, now: Timestamp) -> bool {
        self.message == message
            && self.id != self.message
            && self.pkid.is_some()
            && self.revoked.is_none()
            && self.expires.is_none_or(|end| end > now)
    }
}

/// What follows from a message, by what was granted before; `known` are the grants with the names in the claim, and those
/// that these go back to.
///
/// # Errors
/// The refusal, if a consent that it names is over, revoked, narrower, or of others.
pub fn judge(claim: &Claim, party: &Party<'_>, known: &[Grant]) -> Result<Terms, Rejection> {
    let mut terms = Terms {
        expires: claim.expires,
        ..Terms::default()
    };
    let named = |id: &str| known.iter().find(|g| g.id == id);
    let ids: Vec<&str> = claim.own_names(party.message).collect();
    let mut originals = claim.originals.clone();
    for grant in ids.iter().filter_map(|id| named(id)) {
        match claim.grants() && renews(grant, party) {
            // Longer than before, and never longer than what it goes back to.
            true => {
                require_unrevoked(grant)?;
                not_wider(grant, claim)?;
                keeps_end(grant, claim, party, &mut terms)?;
                originals.extend(grant.originals.iter().cloned());
            }
            false => {
                relies_on(grant, claim, party, &mut terms)?;
                stays_with_recipients(grant, party)?;
            }
        }
    }
    originals.sort();
    originals.dedup();
    for grant in originals.iter().filter_map(|id| named(id)) {
        not_longer(grant, claim)?;
        relies_on(grant, claim, party, &mut terms)?;
    }
    let mut on_record = ids
        .iter()
        .copied()
        .chain(originals.iter().map(String::as_str));
    if let Some(backing) = party.backing
        && !on_record.any(|id| named(id).is_some_and(|g| g.backs(backing, known)))
    {
        return Err(backing.refusal(party.sender));
    }
    if claim.is_recorded() {
        for id in &ids {
            let before = named(id);
            if before.is_none_or(|grant| renews(grant, party)) {
                let end = terms.expires;
                let grant = granted((id, before), (claim, &originals), party, end);
                terms.grants.push(grant);
            }
        }
    }
    terms.under = ids.into_iter().map(str::to_owned).collect();
    terms.under.extend(originals);
    terms.under.sort();
    terms.under.dedup();
    Ok(terms)
}

/// Whether a message puts new terms on record: its sender gave the consent before, and is as sure now.
fn renews(grant: &Grant, party: &Party<'_>) -> bool {
    grant.is_by(party.sender) && party.proof.assurance >= grant.assurance
}

fn require_unrevoked(grant: &Grant) -> Result<(), Rejection> {
    let Some(revoked) = &grant.revoked else {
        return Ok(());
    };
    Err(refuse(
        &rule::CONSENT_REVOKED,
        &format!(
            "The consent {} was revoked at {} by {}",
            shown(&grant.id),
            revoked.at,
            shown(&revoked.by)
        ),
        "ask for a new one, under a name of its own",
    ))
}

/// A renewal that names no end keeps the earlier one: an end never goes away unsaid.
fn keeps_end(
    grant: &Grant,
    claim: &Claim,
    party: &Party<'_>,
    terms: &mut Terms,
) -> Result<(), Rejection> {
    if claim.expires.is_some() {
        return Ok(());
    }
    not_over(grant, party, "set a later `Expires` (`--expires`)")?;
    terms.expires = earliest(terms.expires, grant.expires);
    Ok(())
}

fn not_over(grant: &Grant, party: &Party<'_>, todo: &str) -> Result<(), Rejection> {
    match grant.expires.filter(|end| *end <= party.at) {
        Some(end) => Err(refuse(
            &rule::CONSENT_OVER,
            &format!("The consent {} expired at {end}", shown(&grant.id)),
            todo,
        )),
        None => Ok(()),
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

/// Holds the end of a message against the consent that it goes back to.
fn not_longer(grant: &Grant, claim: &Claim) -> Result<(), Rejection> {
    match (claim.expires, grant.expires) {
        (Some(own), Some(end)) if own > end => Err(refuse(
            &rule::CONSENT_LONGER,
            &format!(
                "The message expires at {own}, and the consent {} on which it depends expires at {end}",
                shown(&grant.id)
            ),
            "write an `Expires` that is not later, or leave it out",
        )),
        _ => Ok(()),
    }
}

/// Holds a message against a consent that it names.
fn relies_on(
    grant: &Grant,
    claim: &Claim,
    party: &Party<'_>,
    terms: &mut Terms,
) -> Result<(), Rejection> {
    let id = shown(&grant.id);
    require_unrevoked(grant)?;
    if !grant.is_by(party.sender) && !grant.is_for(party.speaker, party) {
        return Err(refuse(
            &rule::CONSENT_NOT_YOURS,
            &format!(
                "The consent {id} was given by {} to others than {}, who can't rely on it or pass it on",
                shown(&grant.granter),
                shown(party.sender)
            ),
            "let one of them hand the conversation over; a consent of your own needs another name",
        ));
    }
    not_over(grant, party, "ask for it again")?;
    if let Some(scope) = grant.lacks(claim) {
        return Err(refuse(
            &rule::CONSENT_WIDER,
            &format!(
                "The consent {id} does not cover the scope {}, which the message has",
                shown(scope)
            ),
            "ask for consent to it, or remove the data that needs it (`crosstalk redact`)",
        ));
    }
    terms.expires = earliest(terms.expires, grant.expires);
    Ok(())
}

/// A message under a consent reaches only its granter and its recipients: others get a transfer.
fn stays_with_recipients(grant: &Grant, party: &Party<'_>) -> Result<(), Rejection> {
    let Some(to) = grant.third_party(party) else {
        return Ok(());
    };
    Err(refuse(
        &rule::CONSENT_RECIPIENT,
        &format!(
            "The consent {} was not given to {}, a recipient of this message",
            shown(&grant.id),
            shown(to)
        ),
        "ask the granter to grant it to them, or transfer it with approval (`crosstalk handoff MESSAGE --to NAME --approve-transfer`)",
    ))
}

/// A renewal narrows a consent or prolongs it: what it covers grows only by a consent of its own.
fn not_wider(grant: &Grant, claim: &Claim) -> Result<(), Rejection> {
    let Some(scope) = grant.lacks(claim) else {
        return Ok(());
    };
    Err(refuse(
        &rule::CONSENT_RENEWAL,
        &format!(
            "The consent {} is on record without the scope {}, and granting it again does not add it",
            shown(&grant.id),
            shown(scope)
        ),
        "grant a consent under another name for it, or revoke this one first and grant one under a new name",
    ))
}

/// A consent as it is put on record: who has it already keeps it.
fn granted(
    (id, before): (&str, Option<&Grant>),
    (claim, originals): (&Claim, &[String]),
    party: &Party<'_>,
    expires: Option<Timestamp>,
) -> Grant {
    let mut to: Vec<String> = before.map(|g| g.to.clone()).unwrap_or_default();
    to.extend(
        party
            .to
            .iter()
            .filter(|a| !to.contains(a))
            .cloned()
            .collect::<Vec<_>>(),
    );
    let mut scopes = claim.scopes.clone();
    scopes.extend(
        claim
            .sensitive()
            .filter(|s| !claim.scopes.iter().any(|c| c == s))
            .map(str::to_owned),
    );
    Grant {
        id: id.to_owned(),
        granter: party.sender.to_owned(),
        pkid: party.pkid.map(str::to_owned),
        assurance: party.proof.assurance,
        text: claim.text.clone(),
        scopes,
        to,
        jurisdictions: claim.jurisdictions.clone(),
        since: claim.given_at.unwrap_or(party.at),
        expires,
        message: party.message.to_owned(),
        digest: party.digest,
        originals: originals.to_vec(),
        revoked: None,
    }
}

/// What a REVOKE revokes; `known` are the grants that it names, and those that these go back to. A consent that is not
/// on record is revoked before it is seen; an authority revokes what others granted. Nothing if it revokes neither
/// consent nor permission.
///
/// # Errors
/// The refusal, if it is not surely from somebody who may.
pub fn plan_revocation(
    claim: &Claim,
    party: &Party<'_>,
    known: &[Grant],
    is_authority: bool,
) -> Result<Option<RevocationOrder>, Rejection> {
    let token = claim.permission.as_deref().map(token_of).transpose()?;
    if !claim.is_revoke || (claim.revokes.is_empty() && token.is_none()) {
        return Ok(None);
    }
    let is_same_key = token.is_none() && revokes_own(claim, party, known);
    if !party.proof.is_firm && !is_same_key {
        return Err(refuse(
            &rule::CONSENT_REVOKE_PROOF,
            &format!(
                "It is not sure enough that this REVOKE is from {}: it has to be signed with a key of this sender that \
                 was compared or that a domain vouches for, with an id, to a receiver that is a URL",
                shown(party.sender)
            ),
            "sign it with the key that signed the consent, or have your key pinned for this sender where the consent is on \
             record (`crosstalk trust pin ID --key FILE --sender ADDRESS`)",
        ));
    }
    for id in &claim.revokes {
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
                    "The consent {} was given by {}, and {} can't revoke it",
                    shown(id),
                    shown(&grant.granter),
                    shown(party.sender)
                ),
                "ask the granter to revoke it, or an authority that the relay names",
            ));
        }
    }
    if token.is_some() && !is_authority {
        return Err(refuse(
            &rule::CONSENT_REVOKE_BY,
            &format!(
                "Only an authority revokes a permission, and {} is none here",
                shown(party.sender)
            ),
            "ask the relay operator to revoke the token (`crosstalk token revoke NAME --data DIR`), or to name the sender among the \
             authorities",
        ));
    }
    Ok(Some(RevocationOrder {
        consents: claim.revokes.clone(),
        token,
        revocation: Revocation {
            at: party.at,
            by: party.sender.to_owned(),
            message: party.message.to_owned(),
            reason: claim.reason.clone(),
        },
    }))
}

/// Whether all that is revoked was granted by the same sender with the same key, so that no more has to be known about who
/// that is.
fn revokes_own(claim: &Claim, party: &Party<'_>, known: &[Grant]) -> bool {
    let is_own = |id: &String| {
        let grant = known.iter().find(|g| g.id == *id);
        grant.is_some_and(|g| {
            g.is_by(party.sender) && g.pkid.is_some() && g.pkid.as_deref() == party.pkid
        })
    };
    party.proof.is_same_key && !claim.revokes.is_empty() && claim.revokes.iter().all(is_own)
}

/// The token that `Permission: token:NAME` names.
fn token_of(permission: &str) -> Result<String, Rejection> {
    let name = permission.strip_prefix("token:").map(str::trim);
    name.filter(|n| !n.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| {
            refuse(
                &rule::CONSENT_PERMISSION,
                &format!(
                    "`Permission: {}` names no known permission",
                    shown(permission)
                ),
                "write `Permission: token:` and the name of the token",
            )
        })
}
