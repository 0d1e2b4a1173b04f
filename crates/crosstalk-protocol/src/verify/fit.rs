//! A key fits an envelope: who vouches for the key, and is the body what it signed?

use super::{Case, Source, head};
use crate::relay::authority;
use crate::rotation::{Rotation, RotationUnproven};
use crate::trust::{KeyStanding, KnownKey};
use crate::verdict::{Trusted, Verdict, VerdictDetail, VerdictWord};
use crosstalk_envelope::name::same_host;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::{Authentic, Diagnosis, Document, Intent, PublicKey, Reading, Timestamp};

/// A verdict against an envelope that a key signed: the word, the rule, and more about it.
type Objection = Option<(VerdictWord, &'static Rule, VerdictDetail)>;

/// An envelope, and the key that signed its head.
pub(super) struct Fit<'c> {
    case: &'c Case<'c>,
    pkid: &'c str,
    key: PublicKey,
    source: Source<'c>,
    authentic: Authentic,
    /// The signed head, where it was rebuilt from the signed bytes.
    rebuilt: Option<Document<'static>>,
    rotation: Option<Result<Rotation, RotationUnproven>>,
}

impl<'c> Fit<'c> {
    pub(super) fn new(
        case: &'c Case<'c>,
        pkid: &'c str,
        key: PublicKey,
        source: Source<'c>,
        authentic: Authentic,
    ) -> Self {
        let rebuilt = needs_rebuilt_head(case.document)
            .then(|| Document::parse(&authentic.head(), Reading::Strict).into_owned());
        let rotation = rebuilt.as_ref().and_then(Rotation::of);
        Self {
            case,
            pkid,
            key,
            source,
            authentic,
            rebuilt,
            rotation,
        }
    }

    /// The signed head: nothing else of the envelope decides.
    fn signed(&self) -> &Document<'_> {
        self.rebuilt.as_ref().unwrap_or(self.case.document)
    }

    /// When it was signed, by its own words.
    fn signed_at(&self) -> Option<Timestamp> {
        self.authentic.integrity().and_then(|i| i.signed_at)
    }

    pub(super) fn verdict(self) -> Verdict {
        let objection = self
            .standing()
            .or_else(|| self.broken_rotation())
            .or_else(|| self.key_changed())
            .or_else(|| self.sender_changed())
            .or_else(|| self.sender_looks_like());
        let trusted = self.trusted();
        let diagnosis = self.authentic.diagnosis().clone();
        let (word, rule, detail) = objection.unwrap_or_else(|| match diagnosis {
            Diagnosis::Intact if trusted == Trusted::FirstContact => (
                VerdictWord::FirstContact,
                &rule::FIRST_CONTACT,
                VerdictDetail::None,
            ),
            Diagnosis::Intact if !self.is_bound() => (
                VerdictWord::Unbound,
                &rule::SENDER_UNBOUND,
                VerdictDetail::None,
            ),
            Diagnosis::Intact => (VerdictWord::Verified, &rule::VERDICT, self.vouched_anew()),
            _ => (
                VerdictWord::Damaged,
                &rule::BODY_DAMAGED,
                VerdictDetail::None,
            ),
        });
        Verdict {
            word,
            trusted,
            rule: rule.code.map(|_| rule),
            detail,
            retry: false,
            pkid: None,
            algorithm: None,
            key: Some(self.key),
            body: Some(diagnosis),
            head: head(self.signed(), self.signed_at()),
            revokes: self.revokes(),
            ahead: self.is_ahead(),
            dnssec: match &self.source {
                Source::Dns(_, dnssec) => Some(*dnssec),
                _ => self.case.dnssec(),
            },
            authentic: Some(self.authentic),
        }
    }

    /// What speaks against the key itself, under whatever name it was revoked or distrusted.
    fn standing(&self) -> Objection {
        let now = self.case.question.at;
        let known: Vec<&KnownKey> = self.case.trust.of_key(&self.key).collect();
        let revoked = known.iter().find_map(|k| match &k.standing {
            KeyStanding::Revoked { at, reason, .. } if *at <= now => {
                let detail = VerdictDetail::Revoked(*at, reason.clone());
                Some((VerdictWord::Revoked, &rule::KEY_REVOKED, detail))
            }
            _ => None,
        });
        let distrusted = || {
            known.iter().find_map(|k| match &k.standing {
                KeyStanding::Distrusted { reason, .. } => {
                    let why = reason.as_ref().map_or(String::new(), |r| format!(" ({r})"));
                    let text = format!("The key of {} is distrusted here{why}.", self.pkid);
                    Some((
                        VerdictWord::NotVerified,
                        &rule::KEY_DISTRUSTED,
                        VerdictDetail::Text(text),
                    ))
                }
                _ => None,
            })
        };
        revoked.or_else(distrusted).or_else(|| self.replaced())
    }

    /// A replaced key signs until the end of its grace period.
    fn replaced(&self) -> Objection {
        // A did:key has more than one spelling, and the key is the same.
        let is_meant =
            |k: &&KnownKey| k.id == self.pkid || PublicKey::from_did(self.pkid).is_some();
        let mut known = self.case.trust.of_key(&self.key).filter(is_meant);
        let (by, grace) = known.find_map(|k| match &k.standing {
            KeyStanding::Replaced { by, grace, .. } => Some((by, grace)),
            _ => None,
        })?;
        self.signed_at().is_none_or(|at| at > *grace).then(|| {
            let detail = VerdictDetail::Replaced(by.clone(), *grace);
            (VerdictWord::NotVerified, &rule::KEY_REPLACED, detail)
        })
    }

    /// A key that only a rotation could vouch for, and it does not.
    fn broken_rotation(&self) -> Objection {
        if !matches!(self.source, Source::Carried) {
            return None;
        }
        match self.rotation.as_ref()? {
            Err(RotationUnproven) => {
                let text = format!(
                    "The key of {} claims the place of another key, which did not sign that.",
                    self.pkid
                );
                Some((
                    VerdictWord::NotVerified,
                    &rule::ROTATION,
                    VerdictDetail::Text(text),
                ))
            }
            Ok(rotation) if self.case.trust.vouches_for(rotation) => None,
            Ok(rotation) => {
                let (trust, old) = (self.case.trust, &rotation.old_id);
                let known = trust
                    .entry(old, &rotation.old)
                    .or_else(|| trust.pinned_for(old, self.signed().sender()))?;
                let known = known.key.fingerprint();
                let offered = self.key.fingerprint();
                let detail = VerdictDetail::KeyChanged { known, offered };
                Some((VerdictWord::NotVerified, &rule::ROTATION, detail))
            }
        }
    }

    /// Whether the key is another than the one that is known for its id, or than the one that comes with it.
    fn key_changed(&self) -> Objection {
        let carried = self.signed().envelope().key().and_then(|k| k.public_key);
        let carried = carried.and_then(|record| PublicKey::parse_record(record).ok());
        let (known, offered) = match self.source {
            Source::Given => return None,
            Source::Carried if self.followed().is_some() => return None,
            Source::Carried => {
                let known = self
                    .case
                    .trust
                    .pinned_for(self.pkid, self.signed().sender())?;
                if known.key == self.key {
                    return None;
                }
                (known.key.fingerprint(), self.key.fingerprint())
            }
            _ => {
                let offered = carried.filter(|c| *c != self.key)?;
                (self.key.fingerprint(), offered.fingerprint())
            }
        };
        let detail = VerdictDetail::KeyChanged { known, offered };
        Some((VerdictWord::NotVerified, &rule::KEY_CHANGED, detail))
    }

    /// Whether the sender is known under other key ids.
    fn sender_changed(&self) -> Objection {
        if matches!(self.source, Source::Given) {
            return None;
        }
        let ids = self.case.trust.ids_of_sender(self.signed().sender());
        let followed = self.followed().map(|r| r.old_id.as_str());
        let is_same = |id: &&str| *id == self.pkid || followed == Some(*id);
        if ids.is_empty() || ids.iter().any(is_same) {
            return None;
        }
        let known = ids.iter().map(|id| (*id).to_owned()).collect();
        let detail = VerdictDetail::SenderChanged(known);
        Some((VerdictWord::NotVerified, &rule::SENDER_CHANGED, detail))
    }

    /// Whether the sender is not known here, and looks like one who is known under another key id (TRU-009). A relay goes by
    /// the names that its operator listed (HTP-030): a contact of anybody else must not keep others out.
    fn sender_looks_like(&self) -> Objection {
        if matches!(self.source, Source::Given) || self.case.question.at_relay {
            return None;
        }
        let (like, id) = self.case.trust.look_alike(self.signed().sender())?;
        let followed = self.followed().is_some_and(|r| r.old_id == id);
        (id != self.pkid && !followed).then(|| {
            let detail = VerdictDetail::LooksLike(like.to_owned());
            (VerdictWord::NotVerified, &rule::SENDER_LOOKS_LIKE, detail)
        })
    }

    /// Whether a domain that vouches for the key says something about the sender, too: the sender is an address of this
    /// domain, or a pin binds the key id to the sender (TRU-026).
    fn is_bound(&self) -> bool {
        let Source::Dns(domain, _) = &self.source else {
            return true;
        };
        let sender = self.signed().sender();
        authority(sender).is_some_and(|own| same_host(own, domain))
            || self.case.trust.ids_of_sender(sender).contains(&self.pkid)
    }

    /// The rotation that leads here from a key that counts.
    fn followed(&self) -> Option<&Rotation> {
        let rotation = self.rotation.as_ref()?.as_ref().ok()?;
        let (trust, sender) = (self.case.trust, self.signed().sender());
        let old = trust.entry(&rotation.old_id, &rotation.old)?;
        // An announcement can be in the name of the key itself.
        let is_own_name = sender == rotation.new_id || sender == rotation.old_id;
        let own = old.senders.first().filter(|_| is_own_name);
        let mut senders = std::iter::once(sender).chain(own.map(String::as_str));
        let counts = senders.any(|sender| {
            let keys = trust.keys_for(&rotation.old_id, sender);
            keys.iter().any(|k| k.key == rotation.old)
        });
        (counts && trust.vouches_for(rotation)).then_some(rotation)
    }

    /// The key that the message revokes.
    fn revokes(&self) -> Option<String> {
        let is_revoke = self.signed().envelope().meaning() == Some(Intent::Revoke);
        let id = self.signed().meta("revocation", "Key-ID")?;
        is_revoke.then(|| id.to_owned())
    }

    /// Whether it was signed more than a day from now, by its own words: clocks differ, but not that much.
    fn is_ahead(&self) -> bool {
        const DAY: i64 = 86_400_000;
        let now = self.case.question.at.as_millis();
        self.signed_at()
            .is_some_and(|at| at.as_millis() > now.saturating_add(DAY))
    }

    /// A domain can vouch for another key than the one that was known.
    fn vouched_anew(&self) -> VerdictDetail {
        let keys = self.case.trust.keys_for(self.pkid, self.signed().sender());
        let known = keys.into_iter().find(|k| k.standing == KeyStanding::Active);
        match (&self.source, known.filter(|k| k.key != self.key)) {
            (Source::Dns(..), Some(known)) => VerdictDetail::KeyChanged {
                known: known.key.fingerprint(),
                offered: self.key.fingerprint(),
            },
            _ => VerdictDetail::None,
        }
    }

    fn trusted(&self) -> Trusted {
        match &self.source {
            Source::Given => Trusted::Given,
            Source::Did => Trusted::Did,
            Source::Dns(domain, dnssec) => Trusted::Dns {
                domain: domain.clone(),
                dnssec: *dnssec,
            },
            Source::Known(known) => Trusted::Pinned {
                since: known.since,
                rotated_from: None,
            },
            Source::Carried => match self.followed() {
                Some(rotation) => {
                    let old = self.case.trust.entry(&rotation.old_id, &rotation.old);
                    Trusted::Pinned {
                        since: old.map_or(self.case.question.at, |k| k.since),
                        rotated_from: Some(rotation.old_id.clone()),
                    }
                }
                None => Trusted::FirstContact,
            },
        }
    }
}

/// Whether the signed head has to be read again, from the signed bytes alone. A head of the strict reading is the signed one
/// but for what hops wrote, which nothing here looks at. A new key and a revocation change what is trusted: these count as
/// they were signed, and so does a head that was repaired.
fn needs_rebuilt_head(document: &Document<'_>) -> bool {
    document.reading() != Reading::Strict
        || document.block("key").is_some()
        || document.envelope().meaning() == Some(Intent::Revoke)
}
