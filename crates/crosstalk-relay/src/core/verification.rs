//! Verifies the signature of a message, finds who speaks for its sender, and records what the message says about keys.

use super::{Relay, RelayState};
use crate::config::FirstContact;
use crate::port::Keyring;
use crosstalk_envelope::name::{SYSTEM, same_host};
use crosstalk_envelope::{Document, Signature, Timestamp};
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::report::is_report_about;
use crosstalk_protocol::relay::{
    Delivery, Pattern, Peer, Role, authority, check_hop, hops_of, is_system,
};
use crosstalk_protocol::store::{Record, StoreError, StoreFault};
use crosstalk_protocol::{
    Trust, Verdict, VerdictWord, VerifyContext, announces, domain_to_ask, learn, pin_of, verify,
};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::Semaphore;

/// The trust data as of the last look, and the keyring that keeps it.
pub(super) struct TrustSnapshot {
    trust: RwLock<Arc<Trust>>,
    keyring: Box<dyn Keyring>,
    /// Held while the keyring is read or written, so that what is in memory never falls behind what is kept.
    looking: Mutex<()>,
    /// One change at a time waits for the keyring: the others wait without a thread.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl TrustSnapshot {
    pub(super) fn open(keyring: Box<dyn Keyring>) -> Result<Self, String> {
        let trust = keyring.read()?;
        Ok(Self {
            trust: RwLock::new(Arc::new(trust)),
            keyring,
            looking: Mutex::default(),
            turn: Arc::default(),
        })
    }

    pub(super) fn now(&self) -> Arc<Trust> {
        let trust = self.trust.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&trust)
    }

    /// Reads what is kept, which others may have changed. It blocks.
    pub(super) fn reload(&self) -> Result<(), String> {
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        self.set(self.keyring.read()?);
        Ok(())
    }

    /// Reads what other relays may have changed, on a thread that may block.
    pub(super) async fn follow(self: &Arc<Self>) -> Result<(), StoreError> {
        if !self.keyring.is_shared() {
            return Ok(());
        }
        let this = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || this.reload()).await;
        let read = read.unwrap_or_else(|_| Err("the thread that reads them is gone".into()));
        read.map_err(|reason| {
            let what = format!("the trusted keys can't be read: {reason}");
            StoreError::new(StoreFault::Busy, what, "try again later")
        })
    }

    fn set(&self, trust: Trust) {
        *self.trust.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(trust);
    }

    /// Changes the trust data, on a thread that may block. It goes on when the caller is gone.
    pub(super) async fn update<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Trust) -> T + Send + 'static,
    ) -> Result<T, String> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let this = Arc::clone(self);
        let write = move || {
            let _turn = turn;
            let looking = this.looking.lock();
            let _looking = looking.unwrap_or_else(PoisonError::into_inner);
            let (mut change, mut answer) = (Some(change), None);
            let after = this.keyring.update(&mut |trust| {
                if let Some(change) = change.take() {
                    answer = Some(change(trust));
                }
            })?;
            this.set(after);
            answer.ok_or_else(|| "nothing was changed".to_owned())
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|_| Err("the thread that writes them is gone".into()))
    }
}

/// How many signatures of strangers are checked at once.
const STRANGERS: usize = 1;

/// Checks signatures of strangers, off the threads that serve requests and in a line of their own: however many they are, a
/// caller with a credential does not wait for them. For such a caller, the thread that serves the request does the work: handing
/// it to another one takes as long as checking a signature.
pub(super) struct Verifier {
    strangers: Arc<Semaphore>,
}

impl Default for Verifier {
    fn default() -> Self {
        Self {
            strangers: Arc::new(Semaphore::new(STRANGERS)),
        }
    }
}

impl Verifier {
    /// Does the work for a stranger when it is their turn; nothing if the relay stops meanwhile.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = Arc::clone(&self.strangers).acquire_owned().await.ok()?;
        let work = tokio::task::spawn_blocking(move || {
            let done = work();
            // Not before: the work goes on when the caller has gone.
            drop(turn);
            done
        });
        work.await.ok()
    }
}

/// The verdict about a message, with its evidence.
pub(super) struct Verification {
    pub(super) verdict: Verdict,
    /// The domain that was asked for it, and what it said.
    asked: Option<(String, DnsAnswer)>,
}

/// Whether the key of a message is of no domain, or of that of its sender: nobody takes the id of somebody elsewhere.
fn is_of_domain(document: &Document<'_>) -> bool {
    domain_to_ask(document)
        .is_none_or(|domain| authority(document.sender()).is_some_and(|own| same_host(own, domain)))
}

impl RelayState {
    /// The verdict about a message. The domain of its key is asked where the relay federates and no answer is kept. What
    /// it says is kept when the message is accepted: strangers can name domains without end.
    ///
    /// Nothing if the relay stops meanwhile.
    pub(super) async fn verify_message(
        &self,
        document: &Document<'_>,
        peer: &Peer,
        at: Timestamp,
    ) -> Option<Verification> {
        let signature = document.sig().map(Signature::parse);
        if !matches!(signature, Some(Ok(Signature::Signed { .. }))) {
            let trust = self.trust_snapshot.now();
            return Some(Verification {
                verdict: verify(document, &trust, &VerifyContext::of_relay(at)),
                asked: None,
            });
        }
        Box::pin(self.verify_signed(document, peer, at)).await
    }

    async fn verify_signed(
        &self,
        document: &Document<'_>,
        peer: &Peer,
        at: Timestamp,
    ) -> Option<Verification> {
        let trust = self.trust_snapshot.now();
        let known = |verdict| Verification {
            verdict,
            asked: None,
        };
        let decide = move |document: &Document<'_>, trust: &Trust, answer: Option<DnsAnswer>| {
            let question = VerifyContext {
                dns: answer.as_ref(),
                ..VerifyContext::of_relay(at)
            };
            verify(document, trust, &question)
        };
        let check = async |answer: Option<DnsAnswer>| {
            if !peer.is_stranger() {
                return Some(decide(document, &trust, answer));
            }
            let (document, trust) = (document.clone().into_owned(), Arc::clone(&trust));
            let work = move || decide(&document, &trust, answer);
            self.verifier.run(work).await
        };
        let (resolver, domain) = match (&self.resolver, domain_to_ask(document)) {
            (Some(resolver), Some(domain)) if self.config().federation.enabled => {
                (resolver, domain)
            }
            _ => return check(None).await.map(known),
        };
        if trust.domain(domain, at).is_some() {
            let verdict = check(None).await?;
            if verdict.word() != VerdictWord::NotVerified {
                return Some(known(verdict));
            }
        }
        let answer = resolver.keys(domain).await;
        Some(Verification {
            verdict: check(Some(answer.clone())).await?,
            asked: Some((domain.to_owned(), answer)),
        })
    }

    /// Lists the senders of pinned keys: nobody else may send under a name that looks like one of them.
    pub(super) fn list_pins(&self) {
        self.change_rules(|rules| rules.listed.set_pins(&self.trust_snapshot.now()));
    }

    /// Whether a signature or a hop can show that a message of a stranger is from its sender: a key is pinned for that one,
    /// or is of its domain, or the message came through another relay. If not, nothing has to be checked.
    pub(super) fn may_be_proven(&self, document: &Document<'_>, at: Timestamp) -> bool {
        let signature = document.sig().map(Signature::parse);
        let Some(Ok(Signature::Signed { pkid, .. })) = signature else {
            return self.config().federation.accept && !hops_of(document).is_empty();
        };
        let trust = self.trust_snapshot.now();
        let replaced = document.envelope().key().and_then(|key| key.replaces);
        // A did:key has more than one spelling.
        let is_did = |id: &str| id.starts_with("did:key:");
        let is_pinned =
            |id: &&str| *id == pkid || Some(*id) == replaced || (is_did(id) && is_did(pkid));
        let is_asked = self.config().federation.enabled && self.resolver.is_some();
        let may_vouch = |domain| is_asked || trust.domain(domain, at).is_some();
        let is_of_own_domain =
            domain_to_ask(document).is_some_and(may_vouch) && is_of_domain(document);
        trust.ids_of_sender(document.sender()).iter().any(is_pinned)
            || is_of_own_domain
            || (self.config().federation.accept && !hops_of(document).is_empty())
    }

    /// The peer that speaks for the sender of a message by what the message itself proves: its signature, or its last hop.
    pub(super) async fn other_peer(
        &self,
        document: &Document<'_>,
        verdict: &Verdict,
        peer: &Peer,
    ) -> Option<Peer> {
        let trust = self.trust_snapshot.now();
        match Peer::signer(verdict, &trust, document.sender()) {
            Some(signer) => Some(signer),
            None => self.relay_of(document, peer).await,
        }
    }

    /// The relay that passed a message on, if it proves who it is: its last hop is signed with a key that the domain of
    /// the relay lists. It speaks for the addresses of its domain.
    pub(super) async fn relay_of(&self, document: &Document<'_>, peer: &Peer) -> Option<Peer> {
        let hop = hops_of(document).pop().flatten()?;
        let resolver = self
            .resolver
            .as_ref()
            .filter(|_| self.config().federation.accept)?;
        let DnsAnswer::Keys { keys, .. } = resolver.keys(&hop.received_by).await else {
            return None;
        };
        let has_signed = move |document: &Document<'_>| {
            let mut keys = keys.iter();
            keys.any(|key| check_hop(document, key).is_ok())
        };
        let is_proven = match peer.is_stranger() {
            false => has_signed(document),
            true => {
                let owned = document.clone().into_owned();
                self.verifier.run(move || has_signed(&owned)).await?
            }
        };
        if !is_proven {
            return None;
        }
        // As SYSTEM it reports about what was sent to it, and says nothing else.
        let may_report = self.has_sent(document, &hop.received_by).await;
        let system = Pattern::parse(SYSTEM).ok().filter(|_| may_report);
        Some(Peer {
            name: hop.received_by.clone(),
            // It never speaks for a person: only they themselves do, with their signature.
            role: Role::Agent,
            addresses: system.into_iter().collect(),
            domain: Some(hop.received_by),
            courier: Vec::new(),
            is_local: false,
        })
    }

    /// Whether a message is the report of another domain about one that was sent there from here.
    async fn has_sent(&self, document: &Document<'_>, domain: &str) -> bool {
        let envelope = document.envelope();
        let Some(parent) = envelope.parent.filter(|_| is_system(document.sender())) else {
            return false;
        };
        match self.sent(parent).await {
            Ok(Some((sent, ways))) => is_report_about(document, domain, &sent, &ways),
            _ => false,
        }
    }

    /// The message with an id, and its deliveries.
    async fn sent(&self, id: &str) -> Result<Option<(Record, Vec<Delivery>)>, StoreError> {
        let Some(record) = self.store.record(id).await? else {
            return Ok(None);
        };
        let deliveries = self.store.deliveries_of(&record.id).await?;
        Ok(Some((record, deliveries)))
    }

    /// Applies the key changes that an accepted message proves, and pins a key at first contact, if the configuration
    /// says so and a credential speaks for its sender. What a domain said, and a first contact, may be lost: then the
    /// domain is asked again, and the next contact is the first.
    ///
    /// # Errors
    /// If the message announces or revokes a key, and that could not be recorded: then it must not be acknowledged.
    pub(super) async fn learn(
        &self,
        document: &Document<'_>,
        verification: &Verification,
        peer: &Peer,
        at: Timestamp,
    ) -> Result<(), NotRecorded> {
        let Verification { verdict, asked } = verification;
        let trust = self.trust_snapshot.now();
        let is_news = |(domain, answer): &&(String, DnsAnswer)| trust.is_news(domain, answer, at);
        let said = asked.as_ref().filter(is_news).cloned();
        let is_first = verdict.word() == VerdictWord::FirstContact
            && self.config().first_contact == FirstContact::Pin
            && peer.speaks_for(document.sender())
            && (peer.is_local || is_of_domain(document));
        let must = announces(document);
        // Most messages teach nothing.
        if said.is_none() && !is_first && !must {
            return Ok(());
        }
        let account = peer.account();
        // A flood of contacts stops here, before anything is written.
        let may_pin = is_first && !must && trust.has_room_for(&account);
        let pin = may_pin.then(|| pin_of(verdict, at)).flatten();
        if said.is_none() && pin.is_none() && !must {
            return Ok(());
        }
        let announced = must.then(|| document.clone().into_owned());
        let change = move |trust: &mut Trust| {
            if let Some((domain, answer)) = said {
                trust.remember_contact(&domain, &answer, at);
            }
            if let Some(pin) = pin
                && let Err(error) = trust.pin_contact(pin.clone(), &account)
            {
                tracing::debug!(key = %pin.id, reason = ?error, "a first key was not pinned");
            }
            let Some(announced) = announced else {
                return Ok(());
            };
            let before = trust.clone();
            // What others wrote meanwhile may say otherwise; then it is left as they say.
            let _ = learn(&announced, trust, &VerifyContext::of_relay(at));
            let charged = trust.charge(&before, &account);
            charged.inspect_err(|_| *trust = before)
        };
        let changed = self.trust_snapshot.update(change).await;
        self.list_pins();
        let reason = match changed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => format!("{error:?}"),
            Err(reason) => reason,
        };
        tracing::warn!(reason, "a change of a trusted key was not stored");
        match must {
            true => Err(NotRecorded),
            false => Ok(()),
        }
    }
}

/// A new or revoked key could not be recorded. The log says why.
#[derive(Debug)]
pub(super) struct NotRecorded;

impl Relay {
    /// The chat in whose name a caller hands a message in, if it answers one that this caller carries there. What it says
    /// is never the word of a person.
    pub(super) async fn carried_chat(
        &self,
        document: &Document<'_>,
        caller: &Peer,
    ) -> Option<Peer> {
        let envelope = document.envelope();
        let parent = envelope.parent.filter(|_| caller.is_person())?;
        let (question, deliveries) = self.shared.sent(parent).await.ok()??;
        let rules = self.rules();
        let may = rules.lets_bring_back(caller, &envelope, &question, &deliveries);
        may.then(|| Peer {
            name: caller.name.clone(),
            role: Role::Agent,
            addresses: vec![Pattern::exact(document.sender())],
            ..Peer::stranger()
        })
    }

    /// Whether a message answers one of its receiver that went out to its sender.
    pub(super) async fn was_asked(&self, document: &Document<'_>) -> bool {
        let envelope = document.envelope();
        let Some(parent) = envelope.parent else {
            return false;
        };
        match self.shared.sent(parent).await {
            Ok(Some((question, ways))) => self.rules().was_asked(&envelope, &question, &ways),
            _ => false,
        }
    }
}
