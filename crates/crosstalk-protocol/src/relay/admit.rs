//! Admission of a message from a peer to its recipients: the rules that depend on the message alone.

use super::accept::ConversationId;
use super::accept::shown;
use super::capability::{ANY, Directory};
use super::delivery::{Delivery, Handler, Recipient};
use super::hold::{self, Hold, HoldReason, Looked};
use super::hop::HOPS;
use super::peer::KnownNames;
use super::peer::{Peer, is_human, is_system};
use super::receipt::generated_ids;
use super::route::{Route, Routes};
use crate::consent::{self, Backing, Claim, ConsentContext, Policy, Proof};
use crate::poll::{is_correction, is_result};
use crate::store::{Arrival, Record, Side, StoredMessage, Way, carried_id, is_same_party};
use crate::verdict::{Verdict, VerdictWord};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::{NameLooks, SYSTEM, SYSTEM_USER, same_name};
use crosstalk_envelope::registry::Priority;
use crosstalk_envelope::registry::{ErrorCode, Intent, rule};
use crosstalk_envelope::reply::{ReceivedIds, Rejection};
use crosstalk_envelope::{Address, Builder, Document, Envelope, Reading, Timestamp};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What the name of a relay's own messages looks like.
static SYSTEM_LOOKS: LazyLock<NameLooks<'static>> = LazyLock::new(|| NameLooks::of(SYSTEM));
/// How many recipients a message may have.
const TARGETS: usize = 256;
/// How many attachments a message may refer to.
const BLOBS: usize = 64;

/// What a relay goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayRules {
    /// Where messages go.
    pub routes: Routes,
    /// What agents can do.
    pub directory: Directory,
    /// The recipient of an ESCALATE that is not addressed to a person already.
    pub escalate_to: Option<String>,
    /// How long a REQUEST waits for its answer, if it says nothing.
    pub answer_within: Option<Duration>,
    /// The rules for consent.
    pub consent: Policy,
    /// The rules for holding a message for a person; the first match counts.
    pub holds: Vec<Hold>,
    /// The names and addresses that the relay knows.
    pub listed: KnownNames,
}

impl RelayRules {
    /// Whether a peer speaks for an address: an agent never for a name that stands for a person, and for one that the token
    /// of a person is bound to only if its own token names it, too.
    pub fn lets_speak(&self, peer: &Peer, address: &str) -> bool {
        let is_named = || {
            let mut exact = peer.addresses.iter().filter(|p| p.is_exact());
            exact.any(|p| p.matches(address)) && !is_human(self.routes.named(address))
        };
        peer.speaks_for(address)
            && (peer.may_be_person() || !self.routes.is_persons(address) || is_named())
    }

    /// Whether it has to be looked up if the sender of a message was asked ([`was_asked`](Self::was_asked)): nobody else may send
    /// by some of the ways that the relay has.
    pub fn asks_whether_asked(&self, peer: &Peer, envelope: &Envelope<'_>) -> bool {
        let answers = envelope.meaning().is_some_and(Intent::answers) && envelope.parent.is_some();
        answers && !peer.is_known_to_operator() && self.routes.table.iter().any(Route::is_guarded)
    }

    /// Whether a message answers one of its receiver, which went out to its sender: then the receiver wants it, whatever the way.
    pub fn was_asked(&self, envelope: &Envelope<'_>, question: &Record, ways: &[Delivery]) -> bool {
        let is_same = |one: &str, other: &str| {
            is_same_party(self.routes.named(one), self.routes.named(other))
        };
        let sender = envelope.sender.as_str();
        envelope.meaning().is_some_and(Intent::answers)
            && envelope.parent == Some(question.id.as_str())
            && is_same(envelope.receiver.as_str(), &question.sender)
            && ways.iter().any(|way| is_same(&way.to, sender))
    }

    /// Whether a peer may read what an address gets, under this or the address that it stands for.
    pub fn lets_read(&self, peer: &Peer, address: &str) -> bool {
        let named = self.routes.named(address);
        peer.is_admin() || self.lets_speak(peer, address) || self.lets_speak(peer, named)
    }
}

/// A message that wants in.
#[derive(Clone, Debug)]
pub struct AdmissionCandidate<'c> {
    /// The message, in the strict reading, with the rules of its intent checked.
    pub document: &'c Document<'c>,
    /// The result of checking its signature.
    pub verdict: &'c Verdict,
    /// How sure it is who it is from.
    pub proof: Proof,
    /// Who hands it in.
    pub peer: &'c Peer,
    /// Whether its sender was asked ([`RelayRules::was_asked`]). Only [`RelayRules::asks_whether_asked`] needs to know.
    pub was_asked: bool,
    /// When.
    pub at: Timestamp,
}

/// A message that may be accepted, as far as it can be told without a look at what came before.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The record to keep. A store that indexes it later shares it with the caller that acknowledges it.
    pub arrival: Arc<Arrival>,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// The caller that submitted it.
    pub peer: String,
    /// The address that its sender stands for at this relay.
    pub speaker: String,
    /// The recipients and the way of delivery.
    pub recipients: Vec<Recipient>,
    /// How urgent it is.
    pub priority: Priority,
    /// Until when it should be answered.
    pub answer_by: Option<Timestamp>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The attachments that it refers to.
    pub blobs: Vec<Digest>,
    /// Those of them that whoever hands it in can read: its reference grants access to them, as it does to those that the
    /// same credential uploaded.
    pub readable: Vec<Digest>,
    /// What it says about consent.
    pub claim: Option<Box<Claim>>,
    /// How sure it is who it is from.
    pub proof: Proof,
    /// Whether its sender may revoke what others granted.
    pub is_authority: bool,
    /// The consent on record that it needs, if the word of its sender is not enough.
    pub backing: Option<Backing>,
    /// Whether it is erased soon after everybody has it: it is sensitive, and does not say `ok_to_cache`.
    pub is_brief: bool,
    /// Why it waits for a person, if it does.
    pub held: Option<HoldReason>,
}

impl Admission {
    /// A message that was admitted before, from what was kept of it: it is not held any more, and has no end.
    pub fn recall(arrival: Arrival, peer: String, recipients: Vec<Recipient>) -> Self {
        let document = Document::parse(&arrival.text, Reading::Strict);
        let blobs = blobs(&document.envelope());
        let priority = Priority::parse(document.meta("routing", "X-Priority"));
        let claim = Claim::of(&document);
        let is_brief = consent::is_brief(&document, claim.as_ref());
        Self {
            raw: Digest::of(arrival.text.as_bytes()),
            speaker: arrival.sender.clone(),
            arrival: Arc::new(arrival),
            peer,
            recipients,
            priority,
            answer_by: None,
            expires: None,
            blobs,
            readable: Vec::new(),
            claim: claim.map(Box::new),
            proof: Proof::default(),
            is_authority: false,
            // It was checked when it came.
            backing: None,
            is_brief,
            held: None,
        }
    }

    /// What it ends, if it is a CLOSE: the thread that it names, else its session.
    pub fn closing(&self) -> Option<ConversationId> {
        let is_close = self.arrival.meaning == Some(Intent::Close);
        self.conversation().filter(|_| is_close)
    }

    /// The conversation that it says it belongs to.
    pub fn conversation(&self) -> Option<ConversationId> {
        let thread = self.arrival.thread.clone().map(ConversationId::Thread);
        thread.or_else(|| self.arrival.session.clone().map(ConversationId::Session))
    }
}

/// Lets a message in, or says why not.
///
/// In this order: format and rules of its intent, signature, who may send as whom, hops, consent, recipients.
///
/// # Errors
/// The refusal: code, reason, place and way out.
pub fn admit(
    candidate: AdmissionCandidate<'_>,
    rules: &RelayRules,
) -> Result<Admission, Rejection> {
    signature(candidate.verdict)?;
    admit_any_signature(candidate, rules)
}

/// Lets a message in that a person has to decide about, although its signature does not verify: it came over a way that damages
/// texts, from a sender with other evidence. Everything else is checked as always.
///
/// # Errors
/// The refusal: code, reason, place and way out.
pub fn admit_held(
    candidate: AdmissionCandidate<'_>,
    rules: &RelayRules,
    why: &str,
) -> Result<Admission, Rejection> {
    let mut admission = admit_any_signature(candidate, rules)?;
    admission.held.get_or_insert_with(|| HoldReason {
        why: why.to_owned(),
        deciders: Vec::new(),
    });
    Ok(admission)
}

fn admit_any_signature(
    candidate: AdmissionCandidate<'_>,
    rules: &RelayRules,
) -> Result<Admission, Rejection> {
    let AdmissionCandidate {
        document,
        verdict,
        proof,
        peer,
        was_asked,
        at,
    } = candidate;
    if let Some(refusal) = Rejection::from_findings(document.diagnostics(), document.source()) {
        return Err(refusal);
    }
    let envelope = document.envelope();
    if is_result(document) && !peer.is_itself() {
        let (what, help) = (
            "Only a relay itself sends the result of a poll (`meta: collation`).",
            "close the poll with `POST /crosstalk/polls/{id}/close`, or send the result under another name of the \
             block.",
        );
        return Err(Rejection::new(ErrorCode::Perm, what, help));
    }
    check_sender(&envelope, peer, rules)?;
    if envelope.hops().count() >= HOPS {
        return Err(Rejection::new(
            ErrorCode::Route,
            format!("The message has been through {HOPS} relays: it goes in circles."),
            "check the routes of the relays that its `meta: audit` blocks name.",
        ));
    }
    revocation(&envelope, verdict)?;
    let claim = Claim::of(document);
    let policy = &rules.consent;
    if let Some(claim) = &claim {
        let assurance = proof.assurance;
        consent::check(
            claim,
            &ConsentContext {
                at,
                policy,
                assurance,
            },
        )?;
    }
    consent::check_redacted(document)?;
    let recipients = recipients(document, rules)?;
    if !was_asked && !peer.is_known_to_operator() {
        check_guarded(&recipients, &rules.routes)?;
    }
    for out in recipients.iter().filter(|r| rules.routes.leaves(r)) {
        consent::check_leaving(document, claim.as_ref(), policy, &out.address)?;
    }
    result_address(&envelope)?;
    let answer_by = answer_by(&envelope, rules, at)?;
    let priority = document.meta("routing", "X-Priority");
    let blobs = blobs(&envelope);
    if blobs.len() > BLOBS {
        return Err(Rejection::new(
            ErrorCode::TooLarge,
            format!(
                "The message refers to {} attachments; it may refer to {BLOBS}.",
                blobs.len()
            ),
            "send it in parts.",
        ));
    }
    // A result that goes to somebody else than who asked is sent in that one's behalf.
    let asked = document.meta("collation", "From");
    let behalf = asked.filter(|from| !is_same_party(from, document.receiver()));
    let held = hold::held(
        &rules.holds,
        &Looked {
            envelope: &envelope,
            claim: claim.as_ref(),
            verdict: verdict.word(),
            peer,
            behalf,
            recipients: &recipients,
            routes: &rules.routes,
        },
    );
    let holds = verdict.word().is_signed();
    let kept = StoredMessage {
        text: document.source().to_owned(),
        received: None,
        truncated: false,
        verdict: verdict.word(),
        pkid: verdict.pkid().filter(|_| holds).map(str::to_owned),
        side: Side::Between,
        way: Way::Relayed,
        at,
        message: carried_id(document, Way::Relayed),
        answers: None,
        generated: ReceivedIds {
            thread: String::new(),
            message: String::new(),
        },
    };
    let mut arrival = Arrival::of(document, kept);
    arrival.generated = generated_ids(arrival.digest, at);
    Ok(Admission {
        raw: Digest::of(arrival.text.as_bytes()),
        speaker: rules.routes.named(&arrival.sender).to_owned(),
        arrival: Arc::new(arrival),
        peer: peer.name.clone(),
        recipients,
        priority: Priority::parse(priority),
        answer_by,
        expires: claim.as_ref().and_then(|c| c.expires),
        blobs,
        readable: Vec::new(),
        is_authority: policy.is_authority(envelope.sender.as_str()),
        backing: claim
            .as_ref()
            .and_then(|c| policy.backing(c, proof.assurance, may_grant(document, peer, proof))),
        is_brief: consent::is_brief(document, claim.as_ref()),
        claim: claim.map(Box::new),
        proof,
        held,
    })
}

/// Whether the word of a sender about consent is that of a person, or of an organisation for its own: an agent cannot agree
/// for people. An earlier check decides which callers may send as a person.
fn may_grant(document: &Document<'_>, peer: &Peer, proof: Proof) -> bool {
    is_human(document.sender()) || peer.is_person() || peer.domain.is_some() || proof.is_firm
}

/// The attachments that a message refers to, each once.
fn blobs(envelope: &Envelope<'_>) -> Vec<Digest> {
    let attachments = envelope.attachments();
    let digests = attachments.filter_map(|(_, a)| Digest::parse(a.ok()?.digest?));
    let mut blobs: Vec<Digest> = digests.collect();
    blobs.sort_unstable_by_key(|d| d.0);
    blobs.dedup();
    blobs
}

/// What must not be acted on does not come in.
fn signature(verdict: &Verdict) -> Result<(), Rejection> {
    if !matches!(
        verdict.word(),
        VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked
    ) {
        return Ok(());
    }
    let code = verdict.code().unwrap_or(ErrorCode::Perm);
    let mut refusal = Rejection::new(code, verdict.sentence(), verdict.next());
    refusal.rule = verdict.rule.map(|r| (r.id, None));
    Err(refusal)
}

/// Whether who hands it in may send in this name. Whoever signs with a key of this sender is a peer that may
/// ([`Peer::signer`]).
fn check_sender(envelope: &Envelope<'_>, peer: &Peer, rules: &RelayRules) -> Result<(), Rejection> {
    let sender = envelope.sender.as_str();
    if is_system(sender) {
        let (what, help) = (
            "Only a relay speaks as SYSTEM: this one, or another one that reports an error about a message that was \
             sent to it.",
            "send under a name of your own.",
        );
        let may_report = || peer.domain.is_some() && peer.speaks_for(sender);
        return match peer.is_itself() || may_report() {
            true => Ok(()),
            false => Err(Rejection::new(ErrorCode::Perm, what, help)),
        };
    }
    if SYSTEM_LOOKS.are_of(sender) {
        return Err(look_alike(sender, SYSTEM));
    }
    if let Some(known) = rules.listed.look_alike(sender) {
        return Err(look_alike(sender, known));
    }
    if rules.lets_speak(peer, sender) {
        return Ok(());
    }
    let why = match rules.routes.is_persons(sender)
        && peer.addresses.iter().any(|p| p.matches(sender))
    {
        true => "is the address of a person, for whom the credential of an agent does not speak",
        false => "is not an address that this credential speaks for",
    };
    Err(Rejection::new(
        ErrorCode::Perm,
        format!("{} {why}.", shown(sender)),
        "use a token for this address, or sign the message with a key that is pinned for it.",
    ))
}

/// The refusal of a name that looks like one which the relay knows.
fn look_alike(name: &str, known: &str) -> Rejection {
    let (what, help) = (
        format!(
            "{} looks like {}, and is another name.",
            shown(name),
            shown(known)
        ),
        "write the name of the known party, or use a name that does not look like it.",
    );
    let mut refusal = Rejection::new(ErrorCode::Perm, what, help);
    refusal.rule = Some((rule::HTTP_SYSTEM_SENDER.id, None));
    refusal
}

/// Nothing is revoked by a word that anybody could have written.
fn revocation(envelope: &Envelope<'_>, verdict: &Verdict) -> Result<(), Rejection> {
    if envelope.meaning() != Some(Intent::Revoke) || verdict.word() == VerdictWord::Verified {
        return Ok(());
    }
    let (why, todo) = match verdict.word() {
        VerdictWord::Unsigned => (
            "is not signed",
            "sign it (`--sign` of the command that sends it)",
        ),
        _ => (
            "is signed with a key that nobody vouches for",
            "ask the relay operator to compare the key and pin it for this sender (`CROSSTALK_HOME=DIR crosstalk trust pin ID \
             --key FILE --sender ADDRESS`, where DIR is the data folder), and send it again",
        ),
    };
    Err(Rejection::new(
        ErrorCode::Perm,
        format!("A REVOKE has to be signed with a trusted key, and this one {why}."),
        format!("{todo}."),
    ))
}

/// The result of a poll has to have somewhere to go.
fn result_address(envelope: &Envelope<'_>) -> Result<(), Rejection> {
    let to = envelope.routing().reply_to;
    let Some(to) = to.filter(|_| envelope.meaning() == Some(Intent::Poll)) else {
        return Ok(());
    };
    let result = Builder::new(SYSTEM, to.as_str())
        .user(SYSTEM_USER)
        .session("poll")
        .context("poll")
        .intent(Intent::Broadcast.as_str());
    match result.body("").build() {
        Ok(_) => Ok(()),
        Err(_) => Err(Rejection::new(
            ErrorCode::Format,
            format!(
                "The result of the poll can't go to `X-Reply-To: {}`.",
                shown(to.as_str())
            ),
            "write an address, or leave it out.",
        )),
    }
}

/// Until when a REQUEST should be answered.
fn answer_by(
    envelope: &Envelope<'_>,
    rules: &RelayRules,
    at: Timestamp,
) -> Result<Option<Timestamp>, Rejection> {
    if !matches!(
        envelope.meaning(),
        Some(Intent::Request | Intent::Escalate | Intent::Poll)
    ) {
        return Ok(None);
    }
    let routing = envelope.routing();
    let poll = envelope.poll().and_then(|p| p.deadline);
    let written = routing.deadline.and_then(Timestamp::parse).or(poll);
    match written {
        Some(end) if end <= at => Err(Rejection::new(
            ErrorCode::Timeout,
            format!("The deadline of this message, {end}, has passed."),
            "send it with a later one.",
        )),
        Some(end) => Ok(Some(end)),
        None => Ok(rules.answer_within.map(|wait| {
            let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(at.as_millis().saturating_add(wait))
        })),
    }
}

/// The recipients and the way of delivery.
fn recipients(document: &Document<'_>, rules: &RelayRules) -> Result<Vec<Recipient>, Rejection> {
    let envelope = document.envelope();
    let routing = envelope.routing();
    let receiver = envelope.receiver.as_str();
    let addresses: Vec<String> = match envelope.meaning() {
        Some(Intent::Poll | Intent::Broadcast) if routing.targets.is_some() => {
            routing.target_list().into_iter().map(Into::into).collect()
        }
        Some(Intent::Escalate) => vec![person(receiver, rules)?],
        Some(Intent::Handoff) => vec![successor(&envelope, rules)?],
        _ => vec![receiver.to_owned()],
    };
    if addresses.is_empty() || addresses.len() > TARGETS {
        return Err(Rejection::new(
            ErrorCode::TooLarge,
            format!(
                "The message has {} targets; it may have 1 to {TARGETS}.",
                addresses.len()
            ),
            "send it in parts.",
        ));
    }
    // A correction is for those who count the poll. The name of the electorate is no chat to carry it to.
    let is_correction =
        routing.delivery.is_none() && Address::split(receiver).is_name() && is_correction(document);
    let mut recipients: Vec<Recipient> = Vec::with_capacity(addresses.len());
    for address in &addresses {
        if let Some(known) = rules.listed.look_alike(address) {
            return Err(look_alike(address, known));
        }
        let address = rules.routes.named(address);
        let by = match rules.routes.choose(address, routing.delivery) {
            Ok(Handler::CopyPaste) if is_correction => Handler::Inbox,
            Err(unknown) if is_correction && unknown.code == ErrorCode::Route => Handler::Inbox,
            chosen => chosen?,
        };
        let recipient = Recipient {
            address: address.to_owned(),
            by,
        };
        let is_new = |r: &Recipient| !crate::store::is_same_party(&r.address, address);
        if recipients.iter().all(is_new) {
            recipients.push(recipient);
        }
    }
    Ok(recipients)
}

/// A stranger neither spends the money of the operator nor runs their tools (HTP-061).
fn check_guarded(recipients: &[Recipient], routes: &Routes) -> Result<(), Rejection> {
    let guarded = recipients.iter().find(|r| routes.is_guarded(r));
    guarded.map_or(Ok(()), |recipient| {
        Err(Rejection::new(
            ErrorCode::Perm,
            format!(
                "Messages to {} go by {}, and this relay sends them so only for those whom its operator knows.",
                shown(&recipient.address),
                recipient.by.as_str()
            ),
            "send it with a token of this relay, or ask the relay operator to pin your key or to open the route \
             (`open = true`).",
        ))
    })
}

/// The person who gets an ESCALATE.
fn person(receiver: &str, rules: &RelayRules) -> Result<String, Rejection> {
    if is_human(rules.routes.named(receiver)) {
        return Ok(receiver.to_owned());
    }
    rules.escalate_to.clone().ok_or_else(|| {
        Rejection::new(
            ErrorCode::Route,
            format!(
                "An ESCALATE goes to a person, and {} is none.",
                shown(receiver)
            ),
            "address it to human://…, or set `escalate_to` in the configuration of the relay.",
        )
    })
}

/// Who takes a conversation over: somebody who can do what it needs.
fn successor(envelope: &Envelope<'_>, rules: &RelayRules) -> Result<String, Rejection> {
    let receiver = rules.routes.named(envelope.receiver.as_str());
    let required = envelope.routing().capability_list();
    let required: Vec<String> = required.into_iter().map(Into::into).collect();
    let able = || rules.directory.able(&required).map(|a| a.address);
    if same_name(receiver, ANY) {
        return able().next().ok_or_else(|| {
            Rejection::new(
                ErrorCode::Route,
                format!(
                    "No agent of this relay has all of these capabilities: {}.",
                    shown(&required.join(", "))
                ),
                "ask the relay operator to assign them to one (`[[agent]]` in relay.toml), or hand the \
                 conversation to a person.",
            )
        });
    }
    if required.is_empty() || is_human(receiver) {
        return Ok(receiver.to_owned());
    }
    let lacking: Vec<&str> = match rules.directory.get(receiver) {
        Some(agent) => agent.lacks(&required),
        None => required.iter().map(String::as_str).collect(),
    };
    if lacking.is_empty() {
        return Ok(receiver.to_owned());
    }
    let others: Vec<String> = able().take(5).collect();
    let hint = match others.is_empty() {
        true => "ask the relay operator to assign them to it (`[[agent]]` in relay.toml), or hand over to a person"
            .to_owned(),
        false => format!("hand over to one of these: {}", shown(&others.join(", "))),
    };
    Err(Rejection::new(
        ErrorCode::Unsupported,
        format!(
            "{} does not have these capabilities at this relay: {}.",
            shown(receiver),
            shown(&lacking.join(", "))
        ),
        format!("{hint}."),
    ))
}
