//! Accepts the answer of a handler as a message of the recipient, unless programs would answer each other for ever; finds the
//! question that a reply follows up.

use super::{AttemptOutcome, Blame, DeliveryJob};
use crate::core::{Received, Relay};
use crate::rate::RateLimiter;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::{self, ReceivedIds};
use crosstalk_envelope::{
    Address, BuildError, Builder, CoreHeader, Document, Intent, MetaBlock, Reading, Signature,
    unicode,
};
use crosstalk_protocol::relay::port::RelayStore;
use crosstalk_protocol::relay::report::{self, derived, takes_no_answer};
use crosstalk_protocol::relay::{HOPS, Handler as By, Pattern, Peer, Role};
use crosstalk_protocol::store::{Record, StoreError, is_placeholder, is_same_party, may_answer};
use crosstalk_protocol::{
    Ancestor, FollowUp, agent_user, expects_answer, is_answer, printed_receiver,
};
use std::time::Instant;

/// The response of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerReply {
    /// Envelopes, in a form that the strict reading takes. Each of them is sent.
    Envelopes(Vec<String>),
    /// Plain text.
    Text(String),
}

/// The id of the answer to a job that is plain text: there is one, however often the job is done. Nobody else knows it before:
/// such a program could send a message with this id, which would take the place of the answer.
pub(super) fn answer_id(relay: &Relay, job: &DeliveryJob) -> String {
    let seed = format!("answer\n{}\n{}\n", job.record.digest, job.to);
    derived(job.record.at, &relay.keyed(&seed))
}

/// The id of a further envelope in an answer, unless it has one of its own.
fn printed_id(relay: &Relay, job: &DeliveryJob, text: &str) -> String {
    let seed = format!("printed\n{}\n{}\n{text}\n", job.record.digest, job.to);
    derived(job.record.at, &relay.keyed(&seed))
}

/// Whether the answer of an earlier attempt is there: it was accepted, and then the relay stopped.
pub(super) async fn is_answered(relay: &Relay, job: &DeliveryJob) -> bool {
    let id = answer_id(relay, job);
    let is_there = async |store: &dyn RelayStore| {
        Ok::<_, StoreError>(
            store.record(&id).await?.is_some() || store.held_message(&id).await?.is_some(),
        )
    };
    is_there(relay.store()).await.unwrap_or(false)
}

/// Whether the recipient of a job has answered what it was asked in a way of its own, and not by what it printed.
pub(super) async fn has_answered(relay: &Relay, job: &DeliveryJob) -> bool {
    let (rules, asked) = (relay.rules(), job.asked());
    // It may have come a moment ago.
    if relay.store().caught_up().await.is_err() {
        return false;
    }
    let after = Some(asked.seq);
    let later = relay
        .store()
        .messages(&asked.thread, after, MAX_SCANNED_MESSAGES);
    let Ok(later) = later.await else {
        return false;
    };
    later.items.iter().any(|m| {
        let is_own = is_same_party(rules.routes.named(&m.sender), &job.to);
        // That the program is tried again is said in its name, too.
        let says_something = m.meaning != Some(Intent::Broadcast);
        is_own && says_something && m.parent.as_deref() == Some(&asked.id)
    })
}

/// How many messages of a thread are looked at for an answer.
const MAX_SCANNED_MESSAGES: usize = 256;
/// How many others the programs of a route may ask in a minute by what they answer.
const MAX_QUESTIONS_PER_MINUTE: u32 = 60;

/// Accepts an answer. The error is the outcome of the attempt.
pub(super) async fn accept_reply(
    relay: &Relay,
    job: &DeliveryJob,
    reply: HandlerReply,
    asking: &RateLimiter,
) -> Result<(), AttemptOutcome> {
    if job.follow_up.is_none() && takes_no_answer(&job.record) {
        return Ok(());
    }
    let asks = expects_answer(job.asked().meaning);
    let speaker = speaker(relay, job);
    let texts: Vec<Result<String, BuildError>> = match reply {
        HandlerReply::Text(_) if !asks => Vec::new(),
        HandlerReply::Text(body) => vec![respond(job, &speaker, answer_id(relay, job), &body)],
        HandlerReply::Envelopes(printed) => {
            let mut texts = Vec::new();
            // Before the first one is sent, all of them are looked at.
            for (number, text) in printed.iter().enumerate() {
                let id = match number {
                    0 => answer_id(relay, job),
                    _ => printed_id(relay, job, text),
                };
                texts.extend(reply_envelope(job, &speaker, text, (asks, id))?);
            }
            texts
        }
    };
    if texts.is_empty() {
        if job.by == By::Exec {
            tracing::info!(
                id = %job.record.id, to = %job.to,
                "the output of the program was not sent: the message asks for no answer, and answers no question of the program"
            );
        }
        return Ok(());
    }
    let texts: Result<Vec<String>, BuildError> = texts.into_iter().collect();
    let texts = texts.map_err(|e| {
        AttemptOutcome::failed(
            ErrorCode::Format,
            format!("the answer can't be written into an envelope: {e}"),
        )
    })?;
    if let Some(first) = endless_since(relay, &job.record).await {
        tracing::warn!(id = %job.record.id, to = %job.to, "an answer was dropped: the conversation goes in circles");
        if let Some(text) = report::circular(&first) {
            relay.send_notice(&text).await;
        }
        return Ok(());
    }
    for text in &texts {
        check_question_rate(job, text, asking)?;
    }
    for text in &texts {
        accept_one(relay, job, &speaker, text).await?;
    }
    Ok(())
}

/// Accepts one envelope in the name of the recipient.
async fn accept_one(
    relay: &Relay,
    job: &DeliveryJob,
    speaker: &str,
    text: &str,
) -> Result<(), AttemptOutcome> {
    let peer = Peer {
        name: format!("{} handler", job.by.as_str()),
        role: Role::Agent,
        addresses: vec![Pattern::exact(&job.to), Pattern::exact(speaker)],
        domain: None,
        courier: Vec::new(),
        is_local: false,
    };
    match relay.take_in(text, &peer).await {
        Received::Accepted { .. } => Ok(()),
        Received::Rejected {
            refusal,
            status: 503,
            ..
        } => Err(AttemptOutcome::later(refusal.code, refusal.reason).blaming(Blame::Message)),
        // Another answer was accepted before the relay stopped.
        Received::Rejected { .. } if is_answered(relay, job).await => Ok(()),
        Received::Rejected { refusal, .. } => Err(AttemptOutcome::failed(
            refusal.code,
            format!(
                "it arrived, and its answer was rejected: {}",
                crosstalk_api::client::one_line(&refusal.detail())
            ),
        )),
    }
}

/// In whose name is answered: as the message addresses the recipient, or, if it was sent to several, as it names the one.
fn speaker(relay: &Relay, job: &DeliveryJob) -> String {
    let (rules, asked) = (relay.rules(), job.asked());
    let is_it = |name: &str| is_same_party(rules.routes.named(name), &job.to);
    if is_it(&asked.receiver) {
        return asked.receiver.clone();
    }
    let document = Document::parse(&asked.text, Reading::Strict);
    let routing = document.envelope().routing();
    let mut targets = routing.target_list().into_iter();
    let named = targets.find(|t| is_it(t)).map(Into::into);
    // Others are not asked by name.
    let is_poll = asked.meaning == Some(Intent::Poll);
    named.filter(|_| is_poll).unwrap_or_else(|| job.to.clone())
}

/// The RESPOND with a plain text.
fn respond(job: &DeliveryJob, speaker: &str, id: String, body: &str) -> Result<String, BuildError> {
    let asked = job.asked();
    let document = Document::parse(&asked.text, Reading::Strict);
    let ids = ReceivedIds {
        thread: asked.thread.clone(),
        message: asked.id.clone(),
    };
    let mut original = document.envelope();
    original.receiver = Address::split(speaker);
    let body = unicode::visible(body);
    reply::respond(&original, &ids, &agent_user(&job.to), body.trim_end())
        .message(id)
        .visible()
        .build()
}

/// An envelope of the recipient; nothing if it is none that is sent on. It leaves with an id (`id`, if it has none): the next
/// relay would generate another one, and nobody here would know what the reply to it is about.
fn reply_envelope(
    job: &DeliveryJob,
    speaker: &str,
    text: &str,
    (asks, id): (bool, String),
) -> Result<Option<Result<String, BuildError>>, AttemptOutcome> {
    let document = Document::parse(text, Reading::Strict);
    let envelope = document.envelope();
    let meaning = envelope.meaning();
    let is_receipt = meaning == Some(Intent::Ack) && document.block("receipt").is_some();
    if is_receipt || (meaning == Some(Intent::Respond) && !asks) {
        return Ok(None);
    }
    let answers = is_answer(meaning);
    // Only what answers the question goes back to it. Anything else goes on from the reply, and never from one that takes
    // no answer.
    let cause = match answers {
        true => job.asked(),
        false if takes_no_answer(&job.record) => return Ok(None),
        false => &job.record,
    };
    let sender = document.sender();
    let is_signed = matches!(envelope.signature, Some(Signature::Signed { .. }));
    let names_cause = envelope.parent == Some(cause.id.as_str());
    let is_own = is_same_party(sender, speaker) || is_same_party(sender, &job.to);
    if is_own && is_signed && !names_cause {
        return Err(AttemptOutcome::failed(
            ErrorCode::Perm,
            format!(
                "it arrived, and its answer is signed and does not name it as its parent: {}",
                unicode::escape(&cause.id)
            ),
        ));
    }
    let is_known = is_own || (may_answer(&job.to, sender) && !is_signed);
    // A program speaks for the address of its route, whatever name it writes. Behind a URL, others may speak.
    let is_program = job.by == By::Exec && !is_signed;
    if !is_known && !is_program {
        return Err(AttemptOutcome::failed(
            ErrorCode::Perm,
            format!(
                "it arrived, and its answer is an envelope from {}, for whom {} does not speak",
                unicode::escape(sender),
                unicode::escape(&job.to)
            ),
        ));
    }
    if !is_known {
        tracing::info!(
            id = %job.record.id, to = %job.to, printed = %unicode::escape(sender),
            "the program wrote another sender into its envelope, which goes out in the name of its route"
        );
    }
    let asker = asker_of(cause);
    let receiver = match is_known {
        // The answer to a follow-up goes to the sender of the question, also if a model addresses another one.
        true if answers && job.follow_up.is_some() && !is_signed => asker.as_str(),
        true => document.receiver(),
        false => printed_receiver(&document, &[speaker, &job.to], &asker),
    };
    let is_copied = envelope.message == Some(cause.id.as_str());
    let has_id = envelope.message.is_some_and(|id| !is_placeholder(id));
    let is_right =
        names_cause && has_id && !is_copied && is_same_party(receiver, document.receiver());
    if is_own && (is_signed || is_right) {
        return Ok(Some(Ok(text.to_owned())));
    }
    let parties = (speaker, receiver);
    Ok(Some(rewrite_envelope(job, &document, cause, parties, id)))
}

/// The recipient of the answer to a message.
fn asker_of(asked: &Record) -> String {
    let document = Document::parse(&asked.text, Reading::Strict);
    let reply_to = document.envelope().routing().reply_to;
    reply_to.map_or_else(|| asked.sender.clone(), |a| a.as_str().to_owned())
}

/// Limits the questions in the answers of programs: a program that asks programs would never end.
fn check_question_rate(
    job: &DeliveryJob,
    text: &str,
    asking: &RateLimiter,
) -> Result<(), AttemptOutcome> {
    let document = Document::parse(text, Reading::Strict);
    let envelope = document.envelope();
    let ends = |meaning: Intent| meaning.answers() || meaning == Intent::Close;
    if envelope.meaning().is_some_and(ends) {
        return Ok(());
    }
    let route = job.route.as_ref().map_or(job.to.as_str(), |r| &r.to);
    let now = Instant::now();
    for _ in 0..envelope.routing().target_list().len().max(1) {
        asking.acquire(&route, MAX_QUESTIONS_PER_MINUTE, now).map_err(|_| {
            let reason = format!("it arrived, and its answer asks more than {MAX_QUESTIONS_PER_MINUTE} in a minute");
            AttemptOutcome::failed(ErrorCode::Rate, reason)
        })?;
    }
    Ok(())
}

/// The same envelope under the address that was asked, as an answer to what it was given: models sign with a simple name,
/// leave out ids, and copy those of the question.
fn rewrite_envelope(
    job: &DeliveryJob,
    document: &Document<'_>,
    cause: &Record,
    (speaker, receiver): (&str, &str),
    id: String,
) -> Result<String, BuildError> {
    let named = |core| {
        let is_new = |id: &&str| !is_placeholder(id) && *id != cause.id && *id != job.record.id;
        document.header(core).filter(is_new)
    };
    // What an answer of v1.0 may lack.
    let mut builder = Builder::new(speaker, receiver)
        .user(agent_user(&job.to))
        .context(cause.context.as_deref().unwrap_or("reply"))
        .thread(&cause.thread)
        .message(id)
        .intent(Intent::Respond.as_str());
    for core in [
        CoreHeader::User,
        CoreHeader::Session,
        CoreHeader::Context,
        CoreHeader::Intent,
    ] {
        builder = builder.core_if(core, document.header(core));
    }
    builder = builder
        .core_if(CoreHeader::Thread, named(CoreHeader::Thread))
        .core_if(CoreHeader::Message, named(CoreHeader::Message));
    // Signatures and hops that a model copied are those of another message.
    let is_said =
        |b: &MetaBlock<'_>| !matches!(b.namespace(), "integrity" | "key" | "audit" | "email");
    for block in document.blocks().filter(is_said) {
        for (key, value) in block.fields() {
            builder = builder.meta(block.namespace(), key, value);
        }
    }
    builder
        .parent(cause.id.as_str())
        .body(document.body_text())
        .build()
}

/// The first message of a conversation that has gone back and forth as often as a message may hop.
async fn endless_since(relay: &Relay, record: &Record) -> Option<Record> {
    let (mut parent, mut steps, mut first) = (record.parent.clone(), 0, None);
    while let Some(id) = parent.take().filter(|_| steps < MAX_SCANNED_MESSAGES) {
        steps += 1;
        let Some(found) = relay.store().record(&id).await.ok()? else {
            break;
        };
        parent.clone_from(&found.parent);
        first = Some(found);
    }
    first.filter(|_| steps >= HOPS)
}

impl Relay {
    /// The question that a message to an agent follows up, if it is the reply to an ESCALATE or a REQUEST of this agent.
    /// Nothing once the question has expired. The intake has checked already who may speak for its sender.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn find_follow_up(
        &self,
        agent: &str,
        reply: &Record,
    ) -> Result<Option<FollowUp>, StoreError> {
        let (store, rules) = (self.store(), self.rules());
        let is = |one: &str, other: &str| is_same_party(rules.routes.named(one), other);
        let replier = rules.routes.named(&reply.sender);
        let mut ancestors = Vec::new();
        let mut parent = reply.parent.clone();
        while let Some(id) = parent.take().filter(|_| ancestors.len() < HOPS) {
            let Some(record) = store.record(&id).await? else {
                break;
            };
            let ways = store.deliveries_of(&id).await?;
            let is_for = |address: &str| ways.iter().any(|way| is_same_party(&way.to, address));
            parent.clone_from(&record.parent);
            ancestors.push(Ancestor {
                is_own: is(&record.sender, agent),
                is_for_agent: is_for(agent),
                // The relay itself reports in the name that the agent wrote to.
                is_for_replier: is_for(replier) || is_same_party(&record.receiver, &reply.sender),
                record,
            });
        }
        let Some(found) = FollowUp::find(reply, ancestors, self.now()) else {
            return Ok(None);
        };
        // Without tokens, every program on the machine speaks for every address.
        let has_tokens = !self.registry().await?.tokens.is_empty();
        Ok(Some(found.with_credential(has_tokens)))
    }
}
