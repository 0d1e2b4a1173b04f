//! What is to be thought of the signature of a message, and what the relay learns from it.

use super::Shared;
use crate::config::FirstContact;
use crosstalk_envelope::{Document, Timestamp};
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::{Peer, Role, authority, check_hop, hops_of};
use crosstalk_protocol::{Question, Trust, Verdict, Word, domain_to_ask, learn, pin_of, verify};
use std::sync::{Arc, PoisonError, RwLock};

/// Whom the relay believes, as of the last look.
#[derive(Default)]
pub(super) struct Believed {
    trust: RwLock<Arc<Trust>>,
}

impl Believed {
    pub(super) fn now(&self) -> Arc<Trust> {
        let trust = self.trust.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&trust)
    }

    pub(super) fn set(&self, trust: Trust) {
        *self.trust.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(trust);
    }
}

/// What was found out about a message.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// The domain that was asked for it, and what it said.
    asked: Option<(String, DnsAnswer)>,
}

/// Whether the key of a message is of no domain, or of that of its sender: nobody takes the id of somebody elsewhere.
fn is_of_domain(document: &Document<'_>) -> bool {
    domain_to_ask(document).is_none_or(|domain| {
        authority(document.sender()).is_some_and(|own| own.eq_ignore_ascii_case(domain))
    })
}

impl Shared {
    /// The verdict about a message. The domain of its key is asked where the relay federates and no answer is kept. What
    /// it says is kept when the message is taken: strangers can name domains without end.
    pub(super) async fn judge(&self, document: &Document<'_>, at: Timestamp) -> Judged {
        let trust = self.believed.now();
        let question = Question::at(at);
        let known = |verdict| Judged {
            verdict,
            asked: None,
        };
        let (resolver, domain) = match (&self.resolver, domain_to_ask(document)) {
            (Some(resolver), Some(domain)) if self.config.federation.enabled => (resolver, domain),
            _ => return known(verify(document, &trust, &question)),
        };
        if trust.domain(domain, at).is_some() {
            let verdict = verify(document, &trust, &question);
            if verdict.word() != Word::NotVerified {
                return known(verdict);
            }
        }
        let answer = resolver.keys(domain).await;
        let question = Question {
            dns: Some(&answer),
            ..question
        };
        Judged {
            verdict: verify(document, &trust, &question),
            asked: Some((domain.to_owned(), answer)),
        }
    }

    /// Who speaks for the sender of a message by what the message itself proves: its signature, or its last hop.
    pub(super) async fn other_peer(
        &self,
        document: &Document<'_>,
        verdict: &Verdict,
    ) -> Option<Peer> {
        let trust = self.believed.now();
        match Peer::signer(verdict, &trust, document.sender()) {
            Some(signer) => Some(signer),
            None => self.relay_of(document).await,
        }
    }

    /// The relay that passed a message on, if it proves who it is: its last hop is signed with a key that the domain of
    /// the relay lists. It speaks for the addresses of its domain.
    async fn relay_of(&self, document: &Document<'_>) -> Option<Peer> {
        let hop = hops_of(document).pop().flatten()?;
        let resolver = self
            .resolver
            .as_ref()
            .filter(|_| self.config.federation.accept)?;
        let DnsAnswer::Keys { keys, .. } = resolver.keys(&hop.received_by).await else {
            return None;
        };
        let proven = keys.iter().any(|key| check_hop(document, key).is_ok());
        proven.then(|| Peer {
            name: hop.received_by.clone(),
            // It never speaks for a person: only they themselves do, with their signature.
            role: Role::Agent,
            addresses: Vec::new(),
            domain: Some(hop.received_by),
            courier: Vec::new(),
            is_local: false,
        })
    }

    /// Takes over what a message that was taken proves about keys, and pins one at first contact, if the configuration
    /// says so and a credential speaks for its sender.
    pub(super) fn learn(
        &self,
        document: &Document<'_>,
        judged: &Judged,
        peer: &Peer,
        at: Timestamp,
    ) {
        let Judged { verdict, asked } = judged;
        if let Some((domain, answer)) = asked {
            self.update(&mut |trust| trust.remember(domain, answer, at));
        }
        let question = Question::at(at);
        let mut trial = self.believed.now().as_ref().clone();
        if learn(document, &mut trial, &question).is_ok() {
            self.update(&mut |trust| {
                // What others wrote meanwhile may say otherwise; then it is left as they say.
                let _ = learn(document, trust, &question);
            });
        } else if verdict.word() == Word::FirstContact
            && self.config.first_contact == FirstContact::Pin
            && peer.speaks_for(document.sender())
            && (peer.is_local || is_of_domain(document))
            && let Some(pin) = pin_of(verdict, at)
        {
            self.update(&mut |trust| {
                if let Err(error) = trust.pin(pin.clone()) {
                    tracing::warn!(key = %pin.id, reason = ?error, "a first key was not pinned");
                }
            });
        }
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) {
        match self.keyring.update(change) {
            Ok(trust) => self.believed.set(trust),
            Err(reason) => tracing::warn!(reason, "what was learned about keys is not kept"),
        }
    }
}
