//! One envelope in, one answer out.

use super::waiting::{Asked, Waiter};
use super::writer::{Answer, Job};
use super::{Relay, Shared};
use crate::config::FirstContact;
use crate::metrics::Metrics;
use crate::server::sight::Access;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::{ReceivedIds, Refusal, error, error_from_system};
use crosstalk_envelope::{Builder, Document, Envelope, Intent, Reading, decode, limit};
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::{
    Candidate, Peer, Receipted, RelayStore, Taken, acknowledgement, admit,
};
use crosstalk_protocol::store::{Record, StoreError, StoreFault};
use crosstalk_protocol::{Verdict, Word};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// After how many seconds to try again when the store has trouble.
const SOON: u32 = 5;

/// What became of a message.
#[derive(Clone, Debug)]
pub enum Received {
    /// It is on disk.
    Taken {
        /// Its id.
        id: String,
        /// Its place among the messages; 0 if it waits for a person.
        seq: u64,
        /// Whether it is new; else it was there before.
        is_new: bool,
        /// The ACK.
        answer: String,
    },
    /// It was not taken.
    Refused {
        /// Why.
        refusal: Refusal,
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
            Self::Taken { .. } => 200,
            Self::Refused { status, .. } => *status,
        }
    }

    /// The envelope that answers.
    pub fn answer(&self) -> &str {
        match self {
            Self::Taken { answer, .. } | Self::Refused { answer, .. } => answer,
        }
    }
}

/// The answer to something that could not be read, in the name of SYSTEM; what could be read of it is taken over
/// (HTP-006).
pub fn unread(
    document: Option<&Document<'_>>,
    refusal: Refusal,
    retry_after: Option<u32>,
) -> Received {
    let builder = error_from_system(document, &refusal);
    refused(builder, refusal, retry_after)
}

/// The answer to a message that was read and is not taken, in the name of its receiver (HTP-006).
fn declined(document: &Document<'_>, refusal: Refusal, retry_after: Option<u32>) -> Received {
    let envelope = document.envelope();
    let builder = error(&envelope, &ReceivedIds::of(&envelope), &refusal);
    refused(builder, refusal, retry_after)
}

fn refused(mut builder: Builder, refusal: Refusal, retry_after: Option<u32>) -> Received {
    let status = refusal.code.http_status();
    if let Some(seconds) = retry_after {
        builder = builder.meta("error", "Retry-After", seconds.to_string());
    }
    let answer = builder
        .build()
        .or_else(|_| error_from_system(None, &refusal).build());
    Received::Refused {
        refusal,
        status,
        retry_after,
        answer: answer.unwrap_or_default(),
    }
}

/// Trouble that passes.
fn temporary(document: &Document<'_>, code: ErrorCode, reason: &str) -> Received {
    let mut refusal = Refusal::new(
        code,
        format!("{reason}.\nWhat to do: send it again after {SOON} seconds."),
    );
    refusal.reason = "The relay can't take it now".into();
    let mut received = declined(document, refusal, Some(SOON));
    if let Received::Refused { status, .. } = &mut received {
        *status = 503;
    }
    received
}

impl Relay {
    /// Takes in what a request brought: one envelope.
    pub async fn receive(&self, bytes: &[u8], peer: &Peer) -> Received {
        if bytes.len() > limit::ENVELOPE_BYTES {
            let detail = format!(
                "The text has {} bytes; an envelope has at most {}.\nWhat to do: send it in parts, or as an attachment.",
                bytes.len(),
                limit::ENVELOPE_BYTES
            );
            return self.count(unread(
                None,
                Refusal::new(ErrorCode::TooLarge, detail),
                None,
            ));
        }
        match decode(bytes) {
            Ok(text) => self.take_in(text, peer).await,
            Err(fault) => {
                let refusal = Refusal::from_findings(&[fault], "");
                let refusal =
                    refusal.unwrap_or_else(|| Refusal::new(ErrorCode::Format, "not UTF-8"));
                self.count(unread(None, refusal, None))
            }
        }
    }

    /// Takes in an envelope.
    pub async fn take_in(&self, text: &str, peer: &Peer) -> Received {
        let received = self.admit_and_take(text, peer).await;
        if matches!(received, Received::Refused { .. }) {
            let refusals = &self.shared.refusals;
            refusals.note(text, &peer.name, self.now(), &received);
        }
        self.count(received)
    }

    /// Takes in what the relay itself has to say: that a message could not be delivered, was not answered in time, or what
    /// came out of a poll.
    pub async fn say(&self, text: &str) -> Received {
        let received = self.admit_and_take(text, &Peer::itself()).await;
        self.count(received)
    }

    fn count(&self, received: Received) -> Received {
        let metrics = self.metrics();
        match &received {
            Received::Taken { is_new: false, .. } => Metrics::count(&metrics.known),
            Received::Taken { .. } => {}
            Received::Refused { refusal, .. } => metrics.refuse(refusal.code),
        }
        received
    }

    async fn admit_and_take(&self, text: &str, peer: &Peer) -> Received {
        let mut document = Document::parse(text, Reading::Strict);
        document.check();
        let at = self.now();
        if let Some(refusal) = Refusal::from_findings(document.diagnostics(), document.source()) {
            return unread(Some(&document), refusal, None);
        }
        let backlog = self
            .metrics()
            .backlog
            .load(std::sync::atomic::Ordering::Relaxed);
        if backlog > self.config().limits.backlog {
            return temporary(
                &document,
                ErrorCode::Rate,
                "More came in than the relay can file",
            );
        }
        let judged = self.shared.judge(&document, at).await;
        let verdict = &judged.verdict;
        if verdict.retry() {
            return temporary(&document, ErrorCode::Timeout, &verdict.sentence());
        }
        if let Some(refusal) = self.shared.distrusts(verdict) {
            return declined(&document, refusal, None);
        }
        let other = match peer.speaks_for(document.sender()) {
            true => None,
            false => self.shared.other_peer(&document, verdict).await,
        };
        // Who handed it in is on record, whoever signed it.
        let other = other.map(|other| match peer.is_stranger() {
            true => other,
            false => Peer {
                name: peer.name.clone(),
                ..other
            },
        });
        let peer = other.as_ref().unwrap_or(peer);
        let proof = match verdict.pkid() {
            Some(_) => Proof::of(&document, verdict, &self.shared.believed.now(), peer),
            None => Proof::default(),
        };
        let candidate = Candidate {
            document: &document,
            verdict,
            proof,
            peer,
            at,
        };
        let mut admission = match admit(candidate, &self.rules()) {
            Ok(admission) => admission,
            Err(refusal) => return declined(&document, refusal, None),
        };
        if !admission.blobs.is_empty() {
            match self.readable_blobs(peer, &admission.blobs).await {
                Ok(readable) => admission.readable = readable,
                Err(error) => return store_trouble(&document, &error),
            }
        }
        let (tell, told) = oneshot::channel();
        if self
            .jobs
            .send(Job::Take(Box::new(admission), tell))
            .is_err()
        {
            return temporary(&document, ErrorCode::Rate, &self.gone().message);
        }
        let Ok(Answer { taken, admission }) = told.await else {
            return temporary(&document, ErrorCode::Rate, &self.gone().message);
        };
        let (seq, index, since, is_new, is_held) = match taken {
            Ok(Taken::New {
                seq,
                index,
                withdrawn,
            }) => {
                if let Some(withdrawn) = withdrawn {
                    self.has_withdrawn(admission.arrival.id(), &withdrawn);
                }
                (seq, index, at, true, false)
            }
            Ok(Taken::Known { seq, index, since }) => (seq, index, since, false, false),
            Ok(Taken::Held {
                index,
                since,
                is_new,
            }) => (0, index, since, is_new, true),
            Ok(Taken::Refused(refusal)) => return declined(&document, refusal, None),
            Err(error) => return store_trouble(&document, &error),
        };
        // What waits for a person teaches nothing yet.
        if is_new && !is_held && verdict.pkid().is_some() {
            self.shared.learn(&document, &judged, peer, at);
        }
        let receipt = Receipted {
            arrival: &admission.arrival,
            index,
            at: since,
            by: &self.config().name,
            is_held,
        };
        Received::Taken {
            id: admission.arrival.id().to_owned(),
            seq,
            is_new,
            answer: acknowledgement(&receipt),
        }
    }

    /// Those of some attachments that whoever hands a message in can read.
    async fn readable_blobs(
        &self,
        peer: &Peer,
        blobs: &[Digest],
    ) -> Result<Vec<Digest>, StoreError> {
        // A message that was just taken may be the one that lets them read it.
        self.write_filed(|_| Ok(())).await?;
        let access = Access::of(&Arc::new(peer.clone()), self.rules());
        let (blobs, now) = (blobs.to_vec(), self.now());
        let ask = move |store: &dyn RelayStore| {
            let mut readable = Vec::new();
            for digest in blobs {
                if access.can_read_blob(store, digest, now)? {
                    readable.push(digest);
                }
            }
            Ok(readable)
        };
        self.read(ask).await
    }

    /// Takes in an envelope, and waits for the answer to it until a time. The answer, as it leaves this relay, or the ACK.
    /// What asks for nothing is not waited for.
    pub async fn ask(&self, bytes: &[u8], peer: &Peer, until: Instant) -> Received {
        let asked = decode(bytes).ok().and_then(|text| {
            let document = Document::parse(text, Reading::Strict);
            self.asked(&document.envelope())
        });
        let Some((id, asked)) = asked else {
            return self.receive(bytes, peer).await;
        };
        let mut told = self.shared.answers.wait_for(&id, asked.clone());
        let received = self.receive(bytes, peer).await;
        let Received::Taken {
            is_new,
            seq,
            answer,
            ..
        } = received
        else {
            return received;
        };
        let earlier = match is_new {
            true => None,
            false => self.answer_before(&id, asked).await,
        };
        let answered = match earlier {
            Some(record) => Some(record),
            None => self.answer(&mut told, until).await,
        };
        let left = answered.and_then(|record| {
            let left = self.leaving(&record)?;
            self.handed_out(&record.receiver, vec![record.id]);
            Some(left)
        });
        let answer = left.unwrap_or(answer);
        drop(told);
        Received::Taken {
            id,
            seq,
            is_new,
            answer,
        }
    }

    /// The id of a message that asks for something, and who may answer it.
    fn asked(&self, envelope: &Envelope<'_>) -> Option<(String, Asked)> {
        let routing = envelope.routing();
        let receiver = envelope.receiver.as_str();
        let rules = self.rules();
        let of = match envelope.meaning()? {
            // Who gets these is decided when they are taken.
            Intent::Escalate | Intent::Handoff => Vec::new(),
            Intent::Poll if routing.targets.is_some() => {
                routing.target_list().into_iter().map(Into::into).collect()
            }
            Intent::Request | Intent::Poll => {
                vec![receiver.into(), rules.routes.named(receiver).into()]
            }
            _ => return None,
        };
        let by = envelope.sender.as_str().to_owned();
        Some((envelope.message?.to_owned(), Asked { by, of }))
    }

    async fn answer(&self, told: &mut Waiter<'_>, until: Instant) -> Option<Record> {
        let seq = tokio::time::timeout_at(until, told.came()).await.ok()??;
        let records = self.read(move |store| store.taken(&[seq])).await.ok()?;
        records.into_iter().next()
    }

    /// The answer to a message that came in an earlier attempt to wait for it.
    async fn answer_before(&self, id: &str, asked: Asked) -> Option<Record> {
        let id = id.to_owned();
        let find = move |store: &dyn crosstalk_protocol::relay::RelayStore| {
            let Some(question) = store.taken_as(&id)? else {
                return Ok(None);
            };
            let listing = store.messages(&question.thread, Some(question.seq), 256)?;
            Ok(listing.items.into_iter().find(|m| {
                m.parent.as_deref() == Some(&id)
                    && matches!(m.meaning, Some(Intent::Respond))
                    && asked.is_answered_by(&m.sender, &m.receiver)
            }))
        };
        // It may have come a moment ago.
        self.write_filed(|_| Ok(())).await.ok()?;
        self.read(find).await.ok().flatten()
    }
}

impl Shared {
    /// What the configuration says against a key that is seen for the first time.
    fn distrusts(&self, verdict: &Verdict) -> Option<Refusal> {
        let is_new = matches!(verdict.word(), Word::FirstContact | Word::UnknownKey);
        (is_new && self.config.first_contact == FirstContact::Refuse).then(|| {
            Refusal::new(
                ErrorCode::Perm,
                format!(
                    "{}\nWhat to do: let who runs the relay pin this key (`crosstalk trust pin`).",
                    verdict.sentence()
                ),
            )
        })
    }
}

/// What a sender is told when the store has trouble.
fn store_trouble(document: &Document<'_>, error: &StoreError) -> Received {
    let reason = match error.fault {
        StoreFault::Full => "The disk of the relay is full",
        StoreFault::Busy => "The store of the relay is busy",
        StoreFault::Newer | StoreFault::Damaged | StoreFault::Unavailable => {
            "The store of the relay can't be written"
        }
    };
    temporary(document, ErrorCode::Rate, reason)
}
