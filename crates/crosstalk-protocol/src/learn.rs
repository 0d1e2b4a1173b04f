//! Changes of a trust store that follow from envelopes: first keys, new keys and revocations (TRU-003, TRU-010, TRU-013).
//!
//! [`crate::verify`] changes nothing; these do, and are called because a person or a policy said so.

use crate::rotation::Rotation;
use crate::trust::{KeyStanding, KnownKey, Origin, Trust};
use crate::verdict::{Trusted, Verdict, VerdictWord};
use crate::verify::{VerifyContext, verify};
use crosstalk_envelope::meta::KeyBlock;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::{
    Authentic, CoreHeader, Document, Intent, PublicKey, Reading, Timestamp, authenticate,
};

/// A change of trust that a signed message announced.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// A key took the place of another one.
    Rotated(Box<Rotation>),
    /// A key was revoked.
    Revoked {
        /// Its id.
        id: String,
        /// The key.
        key: Box<PublicKey>,
        /// From when on.
        at: Timestamp,
    },
}

/// Why nothing was learned.
#[derive(Clone, Debug)]
pub enum Unlearned {
    /// The envelope announces no new key and revokes none.
    Nothing,
    /// It is not proven by whom it has to be: the rule, and what was thought of the envelope.
    Unproven(&'static Rule, Box<Verdict>),
}

/// Whether an envelope says that it announces or revokes a key. Whether it may is for [`learn`] to say.
pub fn announces(document: &Document<'_>) -> bool {
    let is_rotation = |k: KeyBlock<'_>| k.replaces.is_some();
    match document.envelope().meaning() {
        Some(Intent::Revoke) => document.meta("revocation", "Key-ID").is_some(),
        _ => document.envelope().key().is_some_and(is_rotation),
    }
}

/// Takes over a rotation or a revocation of a key that an envelope proves.
///
/// # Errors
/// Why not; then nothing changed.
pub fn learn(
    document: &Document<'_>,
    trust: &mut Trust,
    question: &VerifyContext<'_>,
) -> Result<Learned, Unlearned> {
    if !announces(document) {
        return Err(Unlearned::Nothing);
    }
    let is_revoke = document.envelope().meaning() == Some(Intent::Revoke);
    let verdict = verify(document, trust, question);
    if is_revoke {
        return revoke(document, trust, question, verdict);
    }
    let unproven = |verdict| Err(Unlearned::Unproven(&rule::ROTATION, Box::new(verdict)));
    // The head is enough: the body of an announcement says nothing that counts.
    let is_trusted = matches!(&verdict.trusted, Trusted::Pinned { .. });
    if !is_trusted || !matches!(verdict.word, VerdictWord::Verified | VerdictWord::Damaged) {
        return unproven(verdict);
    }
    let head = verdict.authentic.as_ref().map(Authentic::head);
    let rotation = Rotation::of(&Document::parse(&head.unwrap_or_default(), Reading::Strict));
    match rotation {
        Some(Ok(rotation)) if trust.vouches_for(&rotation) => {
            trust.rotate(&rotation, question.at, verdict.head.message);
            Ok(Learned::Rotated(Box::new(rotation)))
        }
        _ => unproven(verdict),
    }
}

/// A REVOKE of a key, signed by this key or by the one that took its place.
fn revoke(
    document: &Document<'_>,
    trust: &mut Trust,
    question: &VerifyContext<'_>,
    verdict: Verdict,
) -> Result<Learned, Unlearned> {
    let unproven = |verdict| {
        Err(Unlearned::Unproven(
            &rule::REVOCATION_UNPROVEN,
            Box::new(verdict),
        ))
    };
    // A revoked key may say again that it is revoked. The holder of a key may revoke it: the key that came with the
    // message is enough for that one key.
    let pkid = verdict.pkid().unwrap_or_default().to_owned();
    let carried = document
        .envelope()
        .key()
        .filter(|k| k.key_id == Some(&*pkid));
    let carried = carried.and_then(|k| PublicKey::parse_record(k.public_key?).ok());
    let did = PublicKey::from_did(&pkid).and_then(Result::ok);
    let known = trust.of_id(&pkid).into_iter().map(|k| k.key);
    let signed = known
        .chain(did)
        .chain(carried)
        .find_map(|key| Some((key, authenticate(document, &key).ok()?)));
    let Some((key, authentic)) = signed.filter(|(_, a)| a.verified().is_some()) else {
        return unproven(verdict);
    };
    let text = authentic.head();
    let head = Document::parse(&text, Reading::Strict);
    let signed_at = authentic.integrity().and_then(|i| i.signed_at);
    let message = head.header(CoreHeader::Message);
    let (Some(_), Some(message)) = (signed_at, message) else {
        return unproven(verdict);
    };
    let id = head.meta("revocation", "Key-ID").unwrap_or_default();
    let named = head.meta("revocation", "Public-Key");
    let target = match named.map(PublicKey::parse_record).transpose() {
        Ok(named) => revocable(trust, (&pkid, &key), id, named.as_ref()),
        Err(_) => None,
    };
    let Some(target) = target else {
        return unproven(verdict);
    };
    let effective = head
        .meta("revocation", "Effective")
        .and_then(Timestamp::parse);
    // Not later than now: a revocation in the future would take the place of one that holds.
    let at = effective.map_or(question.at, |at| at.min(question.at));
    let standing = KeyStanding::Revoked {
        at,
        reason: head.meta("revocation", "Reason").map(str::to_owned),
        by: Some(message.to_owned()),
    };
    trust.mark(id, &target, question.at, standing);
    Ok(Learned::Revoked {
        id: id.to_owned(),
        key: Box::new(target),
        at,
    })
}

/// The key of an id that a signer may revoke: the one that signs, or one whose place it took. Without the key itself,
/// the signer's own id means the key that signs.
fn revocable(
    trust: &Trust,
    signer: (&str, &PublicKey),
    id: &str,
    named: Option<&PublicKey>,
) -> Option<PublicKey> {
    let (pkid, key) = signer;
    if id == pkid && named.is_none_or(|n| n == key) {
        return Some(*key);
    }
    let known = trust.entry(pkid, key)?;
    let is_replaced = |k: &&KnownKey| matches!(&k.standing, KeyStanding::Replaced { by, key: new, .. } if by == pkid && new == key);
    let is_meant = |k: &&KnownKey| named.is_none_or(|n| *n == k.key) && is_replaced(k);
    let mut keys = trust.of_id(id).into_iter();
    let meant = keys.find(is_meant).map(|k| k.key);
    meant.filter(|_| known.standing == KeyStanding::Active)
}

/// The pin that an envelope offers: the key that signed it and came with it, under its id, for its sender.
pub fn pin_of(verdict: &Verdict, at: Timestamp) -> Option<KnownKey> {
    let authentic = verdict.authentic.as_ref()?;
    authentic.verified()?;
    // A holder that revokes a key does not ask for trust in it.
    if verdict.revokes.is_some() {
        return None;
    }
    let (pkid, key) = (verdict.pkid()?, verdict.key?);
    let text = authentic.head();
    let head = Document::parse(&text, Reading::Strict);
    let carried = head.envelope().key().and_then(|k| k.public_key);
    let offered = PublicKey::from_did(pkid).or_else(|| carried.map(PublicKey::parse_record))?;
    if offered.ok()? != key {
        return None;
    }
    Some(KnownKey {
        id: pkid.to_owned(),
        key,
        since: at,
        how: match verdict.trusted {
            Trusted::Dns { .. } => Origin::Dns,
            _ => Origin::FirstContact,
        },
        by: verdict.head.message.clone(),
        senders: vec![verdict.head.sender.clone()],
        standing: KeyStanding::Active,
        credential: None,
    })
}
