//! Accepts one envelope and answers with one.

use super::access::{Access, REFERENCES};
use super::answer::{Asked, Waiter};
use super::signal::LOOK_AGAIN;
use super::verification::Verification;
use super::{Relay, RelayState};
use crate::config::FirstContact;
use crate::metrics::Metrics;
use crate::port::Later;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::{ReceivedIds, Rejection, error, error_from_system};
use crosstalk_envelope::{Builder, Document, Envelope, Intent, Reading, Timestamp, decode, limit};
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::poll::is_secret;
use crosstalk_protocol::relay::port::{Acceptance, RecordQuery};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, AdmissionCandidate, Peer, Receipted, acknowledgement, admit,
    admit_held,
};
use crosstalk_protocol::store::{Record, StoreError, StoreFault};
use crosstalk_protocol::{Verdict, VerdictWord, announces};
use std::sync::Arc;
use tokio::time::Instant;

/// After how many seconds to try again when the store has trouble.
const SOON: u32 = 5;

/// The outcome for a message.
#[derive(Clone, Debug)]
pub enum Received {
    /// It is on disk.
    Accepted {
        /// Its id.
        id: String,
        /// Its place among the messages; 0 if it waits for a person.
        seq: u64,
        /// Whether it is new; else it was there before.
        is_new: bool,
        /// The ACK.
        ack: String,
        /// The recipient's answer, as it leaves this relay, if the caller waited for it and it came.
        reply: Option<String>,
    },
    /// It was rejected.
    Rejected {
        /// Why.
        refusal: Rejection,
        /// The status that fits.
        status: u16,
        /// After how many seconds to try again.
        retry_after: Option<u32>,
        /// The ERROR.
        answer: String,
    },
}

impl Received {
    /// The status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Accepted { .. } => 200,
            Self::Rejected { status, .. } => *status,
        }
    }

    /// The envelope that answers.
    pub fn answer(&self) -> &str {
        match self {
            Self::Accepted { ack, reply, .. } => reply.as_ref().unwrap_or(ack),
            Self::Rejected { answer, .. } => answer,
        }
    }
}

/// The answer to something that could not be read, in the name of SYSTEM; what could be read of it is taken over
/// (HTP-006).
pub fn unread(
    document: Option<&Document<'_>>,
    refusal: Rejection,
    retry_after: Option<u32>,
) -> Received {
    let builder = error_from_system(document, &refusal);
    refused(builder, refusal, retry_after)
}

/// The answer to a message that was read and rejected, in the name of its receiver (HTP-006).
fn declined(document: &Document<'_>, refusal: Rejection, retry_after: Option<u32>) -> Received {
    let envelope = document.envelope();
    let builder = error(&envelope, &ReceivedIds::of(&envelope), &refusal);
    refused(builder, refusal, retry_after)
}

fn refused(mut builder: Builder, refusal: Rejection, retry_after: Option<u32>) -> Received {
    let status = refusal.code.http_status();
    if let Some(seconds) = retry_after {
        builder = builder.meta("error", "Retry-After", seconds.to_string());
    }
    let answer = builder
        .build()
        .or_else(|_| error_from_system(None, &refusal).build());
    Received::Rejected {
        refusal,
        status,
        retry_after,
        answer: answer.unwrap_or_default(),
    }
}

/// Trouble that passes.
fn temporary(document: &Document<'_>, code: ErrorCode, reason: &str) -> Received {
    let mut refusal = Rejection::new(
        code,
        format!("{reason}."),
        format!("send it again after {SOON} seconds."),
    );
    refusal.reason = "The relay can't accept it now".into();
    let mut received = declined(document, refusal, Some(SOON));
    if let Received::Rejected { status, .. } = &mut received {
        *status = 503;
    }
    received
}

/// A message that may be accepted, as far as it can be told without a look at what came before.
pub(crate) struct Prepared<'t> {
    document: Document<'t>,
    verification: Verification,
    /// The caller that speaks for its sender.
    peer: Peer,
    at: Timestamp,
    admission: Box<Admission>,
}

impl Prepared<'_> {
    /// The message with a copy of its text.
    pub(crate) fn into_owned(self) -> Prepared<'static> {
        Prepared {
            document: self.document.into_owned(),
            ..self
        }
    }
}

impl Relay {
    /// Accepts the envelope of a request.
    pub async fn receive(&self, bytes: &[u8], peer: &Peer) -> Received {
        match self.begin(bytes, peer).await {
            Ok(prepared) => self.accept(prepared, peer).await,
            Err(refused) => refused,
        }
    }

    /// Accepts an envelope.
    pub async fn take_in(&self, text: &str, peer: &Peer) -> Received {
        self.receive(text.as_bytes(), peer).await
    }

    /// Accepts an envelope that waits for the decision of a person, although its signature does not verify. `peer` speaks for its
    /// sender by other evidence.
    pub async fn take_in_held(&self, text: &str, peer: &Peer, why: &str) -> Received {
        let received = match self.prepare_for(text, peer, Some(why)).await {
            Ok(prepared) => self.keep(prepared).await.1,
            Err(refused) => refused,
        };
        self.finish(text, peer, received)
    }

    /// Reads what a request brought and checks it, as far as that needs no look at what came before.
    pub(crate) async fn begin<'t>(
        &self,
        bytes: &'t [u8],
        peer: &Peer,
    ) -> Result<Prepared<'t>, Received> {
        let refused = |refusal| self.count(unread(None, refusal, None));
        if bytes.len() > limit::ENVELOPE_BYTES {
            let (what, help) = (
                format!(
                    "The text has {} bytes; an envelope has at most {}.",
                    bytes.len(),
                    limit::ENVELOPE_BYTES
                ),
                "send it in parts, or as an attachment.",
            );
            return Err(refused(Rejection::new(ErrorCode::TooLarge, what, help)));
        }
        let text = decode(bytes).map_err(|fault| {
            let refusal = Rejection::from_findings(&[fault], "");
            refused(refusal.unwrap_or_else(|| Rejection::new(ErrorCode::Format, "not UTF-8", "")))
        })?;
        let prepared = self.prepare(text, peer).await;
        prepared.map_err(|refused| self.finish(text, peer, refused))
    }

    /// Accepts a message that was prepared for a caller: it is on disk when this returns, unless it is rejected.
    pub(crate) async fn accept(&self, prepared: Prepared<'_>, peer: &Peer) -> Received {
        let (document, received) = self.keep(prepared).await;
        self.finish(document.source(), peer, received)
    }

    /// Puts on record what became of an envelope.
    fn finish(&self, text: &str, peer: &Peer, received: Received) -> Received {
        if matches!(received, Received::Rejected { .. }) {
            let refusals = &self.shared.rejections;
            refusals.note(text, &peer.name, self.now(), &received);
        }
        self.count(received)
    }

    /// Takes in what the relay itself has to say: that a message could not be delivered, was not answered in time, or what
    /// came out of a poll.
    pub async fn say(&self, text: &str) -> Received {
        let received = match self.prepare(text, &Peer::itself()).await {
            Ok(prepared) => self.keep(prepared).await.1,
            Err(refused) => refused,
        };
        self.count(received)
    }

    fn count(&self, received: Received) -> Received {
        let metrics = self.metrics();
        match &received {
            Received::Accepted { is_new: false, .. } => Metrics::count(&metrics.known),
            Received::Accepted { .. } => {}
            Received::Rejected { refusal, .. } => metrics.reject(refusal.code),
        }
        received
    }

    /// Reads an envelope, checks its signature and who hands it in: everything that needs no look at what came before.
    async fn prepare<'t>(&self, text: &'t str, peer: &Peer) -> Result<Prepared<'t>, Received> {
        self.prepare_for(text, peer, None).await
    }

    /// The same; with `hold`, for a person who decides about it, for this reason.
    async fn prepare_for<'t>(
        &self,
        text: &'t str,
        peer: &Peer,
        hold: Option<&str>,
    ) -> Result<Prepared<'t>, Received> {
        let mut document = Document::parse(text, Reading::Strict);
        document.check();
        let at = self.now();
        if let Some(refusal) = Rejection::from_findings(document.diagnostics(), document.source()) {
            return Err(unread(Some(&document), refusal, None));
        }
        let backlog = self
            .metrics()
            .backlog
            .load(std::sync::atomic::Ordering::Relaxed);
        if backlog > self.config().limits.backlog {
            return Err(temporary(
                &document,
                ErrorCode::Rate,
                "The relay can't index messages as fast as they come",
            ));
        }
        // Checking a signature is work: not for a message that can't be accepted, whatever comes out of it.
        if peer.is_stranger() && !self.shared.may_be_proven(&document, at) {
            return Err(unproven(&document));
        }
        let Some(verification) = self.shared.verify_message(&document, peer, at).await else {
            return Err(store_trouble(&document, &self.gone()));
        };
        let verdict = &verification.verdict;
        if verdict.retry() {
            return Err(temporary(
                &document,
                ErrorCode::Timeout,
                &verdict.sentence(),
            ));
        }
        let other = match self.rules().lets_speak(peer, document.sender()) {
            true => None,
            // Most messages need neither: boxed, they do not make the future of every message larger.
            false => match Box::pin(self.shared.other_peer(&document, verdict, peer)).await {
                Some(other) => Some(other),
                None => Box::pin(self.carried_chat(&document, peer)).await,
            },
        };
        if other.is_none() && peer.is_stranger() {
            return Err(unproven(&document));
        }
        if other.as_ref().is_some_and(|o| o.domain.is_none()) && is_poll_of_elsewhere(&document) {
            // The signature is that of the sender, and says nothing about the hop: only its relay does.
            if Box::pin(self.shared.relay_of(&document, peer))
                .await
                .is_none()
            {
                return Err(declined(&document, unproven_hop(), None));
            }
        }
        if let Some(refusal) = self.shared.distrusts(verdict) {
            return Err(declined(&document, refusal, None));
        }
        // The caller is on record, also if another key signed the message.
        let peer = match other {
            None => peer.clone(),
            Some(other) if peer.is_stranger() => other.without_token(),
            Some(other) => Peer {
                name: peer.name.clone(),
                ..other
            },
        };
        let proof = match verdict.pkid() {
            Some(_) => Proof::of(&document, verdict, &self.shared.trust_snapshot.now(), &peer),
            None => Proof::default(),
        };
        let asks = self.rules().asks_whether_asked(&peer, &document.envelope());
        let was_asked = asks && Box::pin(self.was_asked(&document)).await;
        let candidate = AdmissionCandidate {
            document: &document,
            verdict,
            proof,
            peer: &peer,
            was_asked,
            at,
        };
        let admitted = match hold {
            Some(why) => admit_held(candidate, &self.rules(), why),
            None => admit(candidate, &self.rules()),
        };
        let mut admission = match admitted {
            Ok(admission) => Box::new(admission),
            Err(refusal) => return Err(declined(&document, refusal, None)),
        };
        if !admission.blobs.is_empty() {
            match Box::pin(self.readable_blobs(&peer, &admission.blobs)).await {
                Ok(readable) => admission.readable = readable,
                Err(error) => return Err(store_trouble(&document, &error)),
            }
        }
        Ok(Prepared {
            document,
            verification,
            peer,
            at,
            admission,
        })
    }

    /// Keeps a message. It comes back with what became of it.
    async fn keep<'t>(&self, prepared: Prepared<'t>) -> (Document<'t>, Received) {
        let Prepared {
            document,
            verification,
            peer,
            at,
            admission,
        } = prepared;
        let received = self.keep_admitted(&document, &verification, &peer, at, admission);
        let received = received.await;
        (document, received)
    }

    async fn keep_admitted(
        &self,
        document: &Document<'_>,
        verification: &Verification,
        peer: &Peer,
        at: Timestamp,
        admission: Box<Admission>,
    ) -> Received {
        let Acceptance { outcome, admission } = match self.store().accept(admission).await {
            Ok(acceptance) => acceptance,
            Err(error) => return store_trouble(document, &error),
        };
        let (seq, entry, since, ids, is_new, is_held) = match outcome {
            AcceptOutcome::Accepted {
                seq,
                entry,
                ids,
                withdrawn,
            } => {
                if let Some(withdrawn) = withdrawn {
                    self.log_revocation(admission.arrival.id(), &withdrawn);
                }
                (seq, entry, at, ids, true, false)
            }
            AcceptOutcome::Known {
                seq,
                entry,
                since,
                ids,
            } => (seq, entry, since, ids, false, false),
            AcceptOutcome::Held {
                entry,
                since,
                is_new,
                ids,
            } => (0, entry, since, ids, is_new, true),
            AcceptOutcome::Rejected(refusal) => return declined(document, refusal, None),
        };
        // A message that is held teaches nothing yet. A new or revoked key that could not be recorded when the message came
        // first is recorded when it comes again.
        let teaches = verification.verdict.pkid().is_some() && (is_new || announces(document));
        if teaches && !is_held {
            let learned = Box::pin(self.shared.learn(document, verification, peer, at)).await;
            if learned.is_err() {
                let reason = "The relay could not record what the message says about a key";
                return temporary(document, ErrorCode::Rate, reason);
            }
        }
        let config = self.config();
        let receipt = Receipted {
            arrival: &admission.arrival,
            ids: &ids,
            entry,
            at: since,
            by: &config.name,
            is_held,
        };
        Received::Accepted {
            ack: acknowledgement(&receipt),
            reply: None,
            id: ids.message,
            seq,
            is_new,
        }
    }

    /// Those of some attachments that the caller can read.
    async fn readable_blobs(
        &self,
        peer: &Peer,
        blobs: &[Digest],
    ) -> Result<Vec<Digest>, StoreError> {
        // A message that was just accepted may be the one that gives access.
        self.store().caught_up().await?;
        let access = Access::of(&Arc::new(peer.clone()), self.rules());
        let (now, most) = (self.now(), REFERENCES / blobs.len().max(1));
        let mut readable = Vec::new();
        for &digest in blobs {
            if access
                .can_read_blob(self.store(), digest, now, most)
                .await?
            {
                readable.push(digest);
            }
        }
        Ok(readable)
    }

    /// Takes in an envelope, and waits for the answer to it until a time. The answer, as it leaves this relay, or the ACK,
    /// and whether it was waited for: not what asks for nothing, not the ballots of a secret poll, and not for a caller who
    /// may not read for the sender. `is_valid` says whether the credential of the caller still counts when the answer is
    /// there.
    pub async fn ask<'v>(
        &self,
        bytes: &[u8],
        peer: &Peer,
        until: Instant,
        is_valid: &(dyn Fn() -> Later<'v, bool> + Send + Sync),
    ) -> (Received, bool) {
        let prepared = match self.begin(bytes, peer).await {
            Ok(prepared) => prepared,
            Err(refused) => return (refused, false),
        };
        let may_wait = |asked: &Asked| {
            !is_secret(&prepared.document) && self.rules().lets_read(peer, &asked.by)
        };
        let asked = self.asked(&prepared.document.envelope());
        let Some(asked) = asked.filter(may_wait) else {
            return (self.accept(prepared, peer).await, false);
        };
        // It waits from before it is accepted: an answer may come at once.
        let first = prepared.admission.arrival.id().to_owned();
        let wait = |id: &str| self.shared.signals.answers.wait_for(id, asked.clone());
        let mut told = wait(&first);
        let received = self.accept(prepared, peer).await;
        let Received::Accepted {
            id,
            is_new,
            seq,
            ack,
            reply: _,
        } = received
        else {
            return (received, true);
        };
        if id != first {
            told = wait(&id);
        }
        let earlier = match is_new {
            true => None,
            false => {
                let answered = self.answer_before(&id, asked.clone()).await;
                answered.ok().flatten()
            }
        };
        let answered = match earlier {
            Some(record) => Some(record),
            None => self.answer(&mut told, &id, asked, until).await,
        };
        let reply = match answered {
            Some(record) if is_valid().await => self.leaving(&record).inspect(|_| {
                // Looking is not delivering.
                if peer.speaks_for(&record.receiver) {
                    self.handed_out(&record.receiver, vec![record.id.clone()]);
                }
            }),
            _ => None,
        };
        drop(told);
        let received = Received::Accepted {
            id,
            seq,
            is_new,
            ack,
            reply,
        };
        (received, true)
    }

    /// The parties that may answer a message, if it asks for something.
    fn asked(&self, envelope: &Envelope<'_>) -> Option<Asked> {
        let routing = envelope.routing();
        let receiver = envelope.receiver.as_str();
        let rules = self.rules();
        let of = match envelope.meaning()? {
            // Their recipients are chosen when they are accepted.
            Intent::Escalate | Intent::Handoff => Vec::new(),
            Intent::Poll if routing.targets.is_some() => {
                let targets = routing.target_list().into_iter();
                targets.map(|t| rules.routes.named(&t).into()).collect()
            }
            Intent::Request | Intent::Poll => vec![rules.routes.named(receiver).into()],
            _ => return None,
        };
        let by = envelope.sender.as_str().to_owned();
        Some(Asked { by, of })
    }

    /// Waits for the answer to a message.
    async fn answer(
        &self,
        told: &mut Waiter<'_>,
        id: &str,
        asked: Asked,
        until: Instant,
    ) -> Option<Record> {
        loop {
            let again = until.min(Instant::now() + LOOK_AGAIN);
            if let Ok(seq) = tokio::time::timeout_at(again, told.came()).await {
                let records = self.store().records(RecordQuery::Seqs(vec![seq?])).await;
                return records.ok()?.pop();
            }
            let found = self.answer_before(id, asked.clone()).await.ok().flatten();
            if found.is_some() || again == until {
                return found;
            }
        }
    }

    /// The answer to a message, if it is there: it came in an earlier attempt to wait for it, or its event was lost.
    async fn answer_before(&self, id: &str, asked: Asked) -> Result<Option<Record>, StoreError> {
        let (store, rules) = (self.store(), self.rules());
        // It may have come a moment ago.
        store.caught_up().await?;
        let Some(question) = store.record(id).await? else {
            return Ok(None);
        };
        // A delivery that was queued again may still be answered, whatever was said about it before.
        let ways = store.deliveries_of(id).await?;
        let queued_at = ways.iter().map(|way| way.queued_at).max();
        let listing = store.messages(&question.thread, Some(question.seq), 256);
        let is_answer = |m: &Record| {
            let ends = match m.meaning {
                Some(Intent::Respond) => true,
                Some(Intent::Error | Intent::Nack) => queued_at.is_none_or(|at| at <= m.at),
                _ => false,
            };
            ends && m.parent.as_deref() == Some(id)
                && asked.is_answered_by(rules.routes.named(&m.sender), &m.receiver)
        };
        let listed = listing.await?.items.into_iter();
        let mut answers: Vec<Record> = listed.filter(is_answer).collect();
        let is_respond = |m: &Record| m.meaning == Some(Intent::Respond);
        let place = answers.iter().position(is_respond).unwrap_or(0);
        Ok((place < answers.len()).then(|| answers.swap_remove(place)))
    }
}

/// Whether a message is a poll that another relay counts, by what it says.
fn is_poll_of_elsewhere(document: &Document<'_>) -> bool {
    let envelope = document.envelope();
    envelope.meaning() == Some(Intent::Poll) && envelope.hops().next().is_some()
}

/// Why a poll is not accepted that says without proof that it came through another relay: nobody would count it.
fn unproven_hop() -> Rejection {
    Rejection::new(
        ErrorCode::Perm,
        "The poll says that another relay passed it on, and that relay does not prove it.",
        "send the poll without its `meta: audit` blocks.",
    )
}

impl RelayState {
    /// What the configuration says against a key that is seen for the first time.
    fn distrusts(&self, verdict: &Verdict) -> Option<Rejection> {
        let is_new = matches!(
            verdict.word(),
            VerdictWord::FirstContact | VerdictWord::Unbound | VerdictWord::UnknownKey
        );
        (is_new && self.config().first_contact == FirstContact::Refuse).then(|| {
            Rejection::new(
                ErrorCode::Perm,
                verdict.sentence(),
                "ask the relay operator to pin this key (`CROSSTALK_HOME=DIR crosstalk trust pin ID --key \
                 FILE --sender ADDRESS`, where DIR is the data folder).",
            )
        })
    }
}

/// The answer to a message without a credential that does not prove itself whom it is from (HTP-060).
fn unproven(document: &Document<'_>) -> Received {
    let refusal = Rejection::new(
        ErrorCode::Perm,
        "A credential is needed here, because no key that is pinned for the sender or listed by its domain has \
             signed this message.",
        "send `Authorization: Bearer` and a token of this relay, or sign the message with such a key.",
    );
    let mut received = declined(document, refusal, None);
    if let Received::Rejected { status, .. } = &mut received {
        *status = 401;
    }
    received
}

/// What a sender is told when the store has trouble.
fn store_trouble(document: &Document<'_>, error: &StoreError) -> Received {
    let reason = match error.fault {
        StoreFault::Full => "The disk of the relay is full",
        StoreFault::Busy => "The relay is busy, or shutting down",
        StoreFault::Invalid | StoreFault::Newer | StoreFault::Damaged | StoreFault::Unavailable => {
            "The store of the relay can't be written"
        }
    };
    temporary(document, ErrorCode::Rate, reason)
}
