//! The way in of messages: verified, threaded and kept; keys at first contact pinned, new and revoked ones learned.

use crate::clock;
use crate::console::Console;
use crate::failure::Failure;
use crate::service::consent::ConsentStatement;
use crate::service::dns::{DnsLookup, DnsOptions};
use crate::service::workspace::Workspace;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::{Document, PublicKey, Timestamp, id};
use crosstalk_protocol::consent::{Policy, Proof};
use crosstalk_protocol::relay::Peer;
use crosstalk_protocol::store::{Arrival, ArrivalContext, Mine, Way};
use crosstalk_protocol::{
    Admitted, KnownKey, Learned, PinError, Trust, VerdictWord, VerifyContext, learn, pin_of, verify,
};
use crosstalk_store::TrustStoreError;

/// Reads messages that come in.
#[derive(Debug)]
pub(crate) struct Incoming<'d> {
    workspace: &'d Workspace,
    trust: Trust,
    lookup: DnsLookup<'d>,
    mine: Mine,
    /// The demands on consent.
    pub(crate) policy: Policy,
    /// The time at which messages are looked at, if that is not now.
    pub(crate) at: Option<Timestamp>,
}

/// A message that is ready to be kept, and what was found out about it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) arrival: Arrival,
    /// The message that was admitted, and the verdict about it.
    pub(crate) admitted: Admitted,
    /// The consent that it claims.
    pub(crate) said: ConsentStatement,
}

impl<'d> Incoming<'d> {
    /// Prepares to read. It queries the DNS only if `look` says so.
    pub(crate) fn new(workspace: &'d Workspace, look: &'d DnsOptions) -> Result<Self, Failure> {
        Ok(Self {
            trust: workspace.keys.trust()?,
            lookup: DnsLookup::new(look, &workspace.keys)?,
            mine: workspace.mine()?,
            policy: workspace.config.consent(),
            at: None,
            workspace,
        })
    }

    /// Reads an envelope for the store.
    pub(crate) fn take(
        &mut self,
        console: &mut Console,
        document: &Document<'_>,
        way: Way,
    ) -> Result<Taken, Failure> {
        let at = self.at.unwrap_or_else(clock::now);
        let lookup = &mut self.lookup;
        let question = VerifyContext {
            restore: true,
            ..VerifyContext::at(at)
        };
        let mut verdict = lookup.judge(console, document, &mut self.trust, &question)?;
        let is_open = !matches!(verdict.word(), VerdictWord::Verified | VerdictWord::Revoked);
        if let Some(own) = self.own_key(verdict.pkid().filter(|_| is_open))? {
            // One's own signature needs no other evidence.
            let question = VerifyContext {
                key: Some(&own),
                ..question
            };
            let again = verify(document, &self.trust, &question);
            if again.word() == VerdictWord::Verified {
                verdict = again;
            }
        }
        let admitted = Admitted::new(document, verdict);
        let receipt = ArrivalContext {
            at,
            way,
            mine: &self.mine,
            generated: ReceivedIds {
                thread: id::new_ulid(),
                message: id::new_ulid(),
            },
        };
        let proof = self.proof(&admitted)?;
        let said = ConsentStatement::of(&admitted, proof, &self.policy, at);
        Ok(Taken {
            arrival: Arrival::new(&admitted, receipt),
            admitted,
            said,
        })
    }

    /// How sure it is who a message is from.
    fn proof(&self, admitted: &Admitted) -> Result<Proof, Failure> {
        let (document, verdict) = (admitted.document(), admitted.verdict());
        let own = self.own_key(verdict.pkid())?;
        Ok(match own {
            Some(own) if Some(own.fingerprint()) == verdict.fingerprint() => {
                Proof::own(verdict, self.mine.has(document.sender()))
            }
            _ => Proof::of(document, verdict, &self.trust, &Peer::stranger()),
        })
    }

    /// The person's own key of this id.
    fn own_key(&self, pkid: Option<&str>) -> Result<Option<PublicKey>, Failure> {
        let Some(pkid) = pkid else {
            return Ok(None);
        };
        let mut keys = self.workspace.keys.keys.list()?.keys.into_iter();
        Ok(keys.find(|k| k.facts.id == pkid).map(|k| k.facts.public))
    }

    /// Takes over what a kept message says about keys: pins one at first contact, if the settings allow it, and learns
    /// of rotations and revocations that are proven. What it did, in a sentence.
    pub(crate) fn learn(&mut self, admitted: &Admitted) -> Result<Option<String>, Failure> {
        let (document, verdict) = (admitted.document(), admitted.verdict());
        let now = clock::now();
        let question = VerifyContext::at(now);
        let own = self.own_key(verdict.pkid())?;
        if own.is_some_and(|own| Some(own.fingerprint()) != verdict.fingerprint()) {
            // Somebody else under an id of one's own teaches nothing.
            let sentence = "Nothing was learned from it: its key id is that of a key of your own, and the key is another.";
            return Ok(Some(sentence.to_owned()));
        }
        let mut trial = self.trust.clone();
        let sentence = match (learn(document, &mut trial, &question), verdict.word()) {
            (Ok(learned), _) => {
                self.change(|trust| {
                    // Another program may have changed the trust file meanwhile; its change stays.
                    let _ = learn(document, trust, &question);
                })?;
                Some(learned_sentence(&learned))
            }
            (Err(_), VerdictWord::FirstContact) if self.workspace.config.pin() => {
                match pin_of(verdict, now) {
                    Some(pin) => self.pin(pin)?,
                    None => None,
                }
            }
            _ => None,
        };
        Ok(sentence)
    }

    fn pin(&mut self, pin: KnownKey) -> Result<Option<String>, Failure> {
        let mut result: Result<(), PinError> = Ok(());
        self.change(|trust| result = trust.pin(pin.clone()))?;
        Ok(result.is_ok().then(|| {
            format!(
                "Pinned at first contact: {} is {} from now on. Compare it with the sender by voice; then `crosstalk show {} \
                 --envelope | crosstalk trust pin - --compared` says so.",
                pin.id,
                pin.key.fingerprint(),
                pin.by.as_deref().unwrap_or("ID")
            )
        }))
    }

    fn change(&mut self, change: impl FnOnce(&mut Trust)) -> Result<(), Failure> {
        let after = self.workspace.keys.trust.update(|trust| {
            change(trust);
            Ok::<Trust, TrustStoreError>(trust.clone())
        })?;
        self.trust = after;
        Ok(())
    }
}

fn learned_sentence(learned: &Learned) -> String {
    match learned {
        Learned::Rotated(rotation) => format!(
            "Learned: {} has a new key, {}; the old one vouched for it.",
            rotation.new_id,
            rotation.new.fingerprint()
        ),
        Learned::Revoked { id, at, .. } => {
            format!("Learned: the key {id} is revoked from {at} on.")
        }
    }
}
