//! What is to be thought of the signature of a message, and what the relay learns from it.

use super::Shared;
use crate::config::FirstContact;
use crosstalk_envelope::{Document, Signature, Timestamp};
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::{Peer, Role, authority, check_hop, hops_of};
use crosstalk_protocol::{Question, Trust, Verdict, Word, domain_to_ask, learn, pin_of, verify};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Semaphore;

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

/// How many signatures of strangers are checked at once.
const STRANGERS: usize = 1;

/// Checks signatures, off the threads that serve requests. Strangers wait in a line of their own, so that however many they
/// are, a caller with a credential does not wait for them.
pub(super) struct Verifier {
    callers: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

impl Default for Verifier {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            callers: Arc::new(Semaphore::new(cores)),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
        }
    }
}

impl Verifier {
    /// Does the work for a caller when it is their turn; nothing if the relay stops meanwhile.
    async fn run<T: Send + 'static>(
        &self,
        peer: &Peer,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let line = match peer.is_stranger() {
            true => &self.strangers,
            false => &self.callers,
        };
        let turn = Arc::clone(line).acquire_owned().await.ok()?;
        let work = tokio::task::spawn_blocking(move || {
            let done = work();
            // Not before: the work goes on when the caller has gone.
            drop(turn);
            done
        });
        work.await.ok()
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
    ///
    /// Nothing if the relay stops meanwhile.
    pub(super) async fn judge(
        &self,
        document: &Document<'_>,
        peer: &Peer,
        at: Timestamp,
    ) -> Option<Judged> {
        let trust = self.believed.now();
        let known = |verdict| Judged {
            verdict,
            asked: None,
        };
        if !matches!(
            document.envelope().signature,
            Some(Signature::Signed { .. })
        ) {
            return Some(known(verify(document, &trust, &Question::at(at))));
        }
        let owned = Arc::new(document.clone().into_owned());
        let check = |answer: Option<DnsAnswer>| {
            let (document, trust) = (Arc::clone(&owned), Arc::clone(&trust));
            self.verifier.run(peer, move || {
                let question = Question {
                    dns: answer.as_ref(),
                    ..Question::at(at)
                };
                verify(&document, &trust, &question)
            })
        };
        let (resolver, domain) = match (&self.resolver, domain_to_ask(document)) {
            (Some(resolver), Some(domain)) if self.config.federation.enabled => (resolver, domain),
            _ => return check(None).await.map(known),
        };
        if trust.domain(domain, at).is_some() {
            let verdict = check(None).await?;
            if verdict.word() != Word::NotVerified {
                return Some(known(verdict));
            }
        }
        let answer = resolver.keys(domain).await;
        Some(Judged {
            verdict: check(Some(answer.clone())).await?,
            asked: Some((domain.to_owned(), answer)),
        })
    }

    /// Whether a signature or a hop can show that a message of a stranger is from its sender: a key is pinned for that one,
    /// or is of its domain, or the message came through another relay. If not, nothing has to be checked.
    pub(super) fn may_be_proven(&self, document: &Document<'_>) -> bool {
        let Some(Signature::Signed { pkid, .. }) = document.envelope().signature else {
            return self.config.federation.accept && !hops_of(document).is_empty();
        };
        let trust = self.believed.now();
        let replaced = document.envelope().key().and_then(|key| key.replaces);
        let is_pinned = |id: &&str| *id == pkid || Some(*id) == replaced;
        let is_of_own_domain = domain_to_ask(document).is_some() && is_of_domain(document);
        trust.ids_of_sender(document.sender()).iter().any(is_pinned)
            || is_of_own_domain
            || (self.config.federation.accept && !hops_of(document).is_empty())
    }

    /// Who speaks for the sender of a message by what the message itself proves: its signature, or its last hop.
    pub(super) async fn other_peer(
        &self,
        document: &Document<'_>,
        verdict: &Verdict,
        peer: &Peer,
    ) -> Option<Peer> {
        let trust = self.believed.now();
        match Peer::signer(verdict, &trust, document.sender()) {
            Some(signer) => Some(signer),
            None => self.relay_of(document, peer).await,
        }
    }

    /// The relay that passed a message on, if it proves who it is: its last hop is signed with a key that the domain of
    /// the relay lists. It speaks for the addresses of its domain.
    async fn relay_of(&self, document: &Document<'_>, peer: &Peer) -> Option<Peer> {
        let hop = hops_of(document).pop().flatten()?;
        let resolver = self
            .resolver
            .as_ref()
            .filter(|_| self.config.federation.accept)?;
        let DnsAnswer::Keys { keys, .. } = resolver.keys(&hop.received_by).await else {
            return None;
        };
        let owned = document.clone().into_owned();
        let is_proven = move || keys.iter().any(|key| check_hop(&owned, key).is_ok());
        let proven = self.verifier.run(peer, is_proven).await?;
        proven.then(|| Peer {
            name: hop.received_by.clone(),
            // It never speaks for a person: only they themselves do, with their signature.
            role: Role::Agent,
            addresses: Vec::new(),
            domain: Some(hop.received_by),
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
