//! The decision of a gateway about a mail that it read: in whose name its messages are accepted, and why others are not (MAI-060 to
//! MAI-066).
//!
//! ```text
//! MailReading ──┐             ┌─ Accept   strict documents, each with the evidence for its sender
//!               ├── decide ──>├─ Bounced  a message of this gateway did not arrive
//! MailFacts   ──┘             ├─ Drop     nothing is said, so that no two programs answer each other
//!                             ├─ Later    the sender tries again
//!                             └─ Reject   with a code and a reason
//! ```

use crate::read::{MailKind, MailReading};
use crate::threading::id_of_mail;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::{ErrorCode, Intent, SchemeKind};
use crosstalk_envelope::reply::{self, ReceivedIds, Rejection};
use crosstalk_envelope::unicode::{escape, visible};
use crosstalk_envelope::{Address, Document, Edit, Reading};
use crosstalk_protocol::relay::report::takes_no_answer;
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{Admitted, VerdictWord};

/// The evidence of a reply token in a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenEvidence {
    /// The mail has none that counts.
    None,
    /// It was made for this question and its recipient, and has expired.
    Expired,
    /// It was made for this question and its recipient.
    Valid,
}

/// The message of this gateway that a mail answers, or that a mail server could not deliver.
#[derive(Clone, Copy, Debug)]
pub struct AskedQuestion<'f> {
    /// The message.
    pub record: &'f Record,
    /// Its recipient: the address of the delivery that went by mail.
    pub recipient: &'f str,
    /// The name under which the recipient answers: as the message addresses it.
    pub speaker: &'f str,
    /// The mail address of the recipient.
    pub mailbox: &'f str,
    /// The reply token of the mail.
    pub token: TokenEvidence,
}

/// The facts about a mail beside its own words.
#[derive(Clone, Debug)]
pub struct MailFacts<'f> {
    /// The message that it answers or that it reports about, if that went out by mail from here.
    pub question: Option<AskedQuestion<'f>>,
    /// The names that stand for the address of From at this relay.
    pub names: Vec<String>,
    /// Whether the sender of the transaction is empty: then nobody reads an answer.
    pub has_null_path: bool,
    /// Whether it is a mail that this gateway wrote.
    pub is_own: bool,
    /// The digest of its bytes, which replaces a Message-ID that it lacks.
    pub digest: Digest,
}

/// The evidence for the sender of a message that came by mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailSpeaker {
    /// Its signature alone.
    Signature,
    /// The domain of From: the mail speaks for this mail address and the names that stand for it.
    From(Vec<String>),
    /// The question: the mail speaks for the recipient that was asked, under these names of it.
    Asked(Vec<String>),
}

/// A message that came by mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailMessage {
    /// A strict document.
    pub text: String,
    /// The evidence for its sender.
    pub speaker: MailSpeaker,
    /// Why a person has to decide about it, if one has to.
    pub hold: Option<String>,
}

/// The decision of a gateway about a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailDecision {
    /// It hands these messages to the intake of its relay.
    Accept(Vec<MailMessage>),
    /// The message of the question did not arrive: the reason in the words of the mail server.
    Bounced(String),
    /// It does nothing, and says nothing: the reason is for the log.
    Drop(String),
    /// It asks the sending server to try again.
    Later(String),
    /// It rejects the mail.
    Reject(Rejection),
}

/// Decides about a mail. Pure: what has to be looked up is in the facts.
pub fn decide(reading: &MailReading, facts: &MailFacts<'_>) -> MailDecision {
    if facts.is_own {
        return MailDecision::Drop("this gateway wrote the mail itself".to_owned());
    }
    // Servers that hand mail over do not write the empty return path into it (MAI-012).
    if facts.has_null_path && matches!(reading.kind, MailKind::Reply | MailKind::Envelope) {
        return MailDecision::Drop("its return path is empty".to_owned());
    }
    let decision = match reading.kind {
        MailKind::Auto => MailDecision::Drop(reading.why.clone()),
        MailKind::Bounce => bounced(reading, facts),
        MailKind::Rejected => MailDecision::Reject(unusable(reading)),
        MailKind::Reply => answer(reading, facts),
        MailKind::Envelope => envelopes(reading, facts),
    };
    match decision {
        // Nobody reads the answer to a mail without a return path.
        MailDecision::Reject(refusal) if facts.has_null_path => MailDecision::Drop(refusal.what),
        decision => decision,
    }
}

fn reject(code: ErrorCode, what: impl Into<String>, help: &str) -> MailDecision {
    MailDecision::Reject(Rejection::new(code, what, help))
}

/// Why a mail can't be acted on.
fn unusable(reading: &MailReading) -> Rejection {
    let is_too_large = reading.why.starts_with("The mail exceeds a limit");
    let (code, help) = match is_too_large {
        true => (
            ErrorCode::TooLarge,
            "send less text, or fewer and smaller files.",
        ),
        false => (
            ErrorCode::Format,
            "answer a mail of this gateway above its text, or send an envelope.",
        ),
    };
    Rejection::new(code, reading.why.clone(), help)
}

/// A report that a mail was not delivered counts if it proves that it is about a mail of this gateway: else anybody could end
/// the waiting for an answer.
fn bounced(reading: &MailReading, facts: &MailFacts<'_>) -> MailDecision {
    let reason = reading.bounce.as_ref().map(|bounce| bounce.reason.clone());
    match facts.question {
        Some(question) if question.token != TokenEvidence::None => {
            MailDecision::Bounced(reason.unwrap_or_default())
        }
        _ => MailDecision::Drop(
            "it reports about a mail that this gateway can't be shown to have sent".to_owned(),
        ),
    }
}

/// The sender of a mail as an address of the protocol.
fn sender_address(reading: &MailReading) -> Option<String> {
    let from = reading.from.as_ref()?;
    let address = format!("email:{}", from.address);
    let is_valid = Address::split(&address).kind() == Some(SchemeKind::Mail)
        && !from.address.contains(['?', '#'])
        && from.address.chars().all(|c| c.is_ascii_graphic());
    is_valid.then_some(address)
}

/// The path of a mail address without its parameters.
///
/// ```
/// use crosstalk_email::mailbox_of;
/// assert_eq!(mailbox_of("email:ann@acme.example?subject=Plan"), Some("ann@acme.example"));
/// assert_eq!(mailbox_of("human://acme.example/ann"), None);
/// ```
pub fn mailbox_of(address: &str) -> Option<&str> {
    let address = Address::split(address);
    let is_mail = address.kind() == Some(SchemeKind::Mail);
    is_mail.then(|| address.path())
}

/// Whether two texts are the same mail address. No server in use takes addresses that differ in case for different ones.
pub fn is_same_mailbox(one: &str, other: &str) -> bool {
    one.trim().eq_ignore_ascii_case(other.trim())
}

/// The party that a mail speaks for without a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UnsignedSender {
    /// The recipient of the question.
    Asked,
    /// The mail address in From.
    From(String),
    /// Nobody, for this reason.
    Nobody(Rejection),
    /// It can't be told now.
    Undecided(String),
}

fn unsigned_sender(reading: &MailReading, facts: &MailFacts<'_>) -> UnsignedSender {
    let authentication = &reading.authentication;
    let from = reading
        .from
        .as_ref()
        .map_or("", |from| from.address.as_str());
    let shown = escape(from);
    let is_asked = |question: &AskedQuestion<'_>| is_same_mailbox(question.mailbox, from);
    if authentication.is_denied() {
        return UnsignedSender::Nobody(Rejection::new(
            ErrorCode::Perm,
            format!("The domain of {shown} denies that it sent this mail (DMARC)."),
            "send it by the mail server of this domain.",
        ));
    }
    let Some(address) = sender_address(reading) else {
        return UnsignedSender::Nobody(Rejection::new(
            ErrorCode::Format,
            "From names no address that a message can have.",
            "send it from a plain mail address.",
        ));
    };
    match &facts.question {
        Some(question) if is_asked(question) => match question.token {
            TokenEvidence::Valid => return UnsignedSender::Asked,
            _ if authentication.is_aligned => return UnsignedSender::Asked,
            TokenEvidence::Expired if !authentication.is_undecided() => {
                return UnsignedSender::Nobody(Rejection::new(
                    ErrorCode::Timeout,
                    "The time in which this mail could be answered is over.",
                    "ask the sender to ask again.",
                ));
            }
            TokenEvidence::Expired | TokenEvidence::None => {}
        },
        Some(_) if reading.kind == MailKind::Reply => {
            return UnsignedSender::Nobody(Rejection::new(
                ErrorCode::Perm,
                format!("{shown} was not asked: the question went to another address."),
                "answer from the address that got the question.",
            ));
        }
        _ => {}
    }
    if authentication.is_aligned {
        return UnsignedSender::From(address);
    }
    if authentication.is_undecided() {
        return UnsignedSender::Undecided(format!(
            "the sender {shown} could not be checked now ({})",
            authentication.to_line()
        ));
    }
    UnsignedSender::Nobody(Rejection::new(
        ErrorCode::Perm,
        format!(
            "Nothing shows that this mail is from {shown} ({}).",
            authentication.to_line()
        ),
        "answer with the reply function of your mail program, so that the answer goes to the address in Reply-To.",
    ))
}

/// A person answers in words of their own.
fn answer(reading: &MailReading, facts: &MailFacts<'_>) -> MailDecision {
    let Some(question) = &facts.question else {
        return reject(
            ErrorCode::Route,
            "This mail answers no message that this gateway sent.",
            "answer the mail that brought the question.",
        );
    };
    if takes_no_answer(question.record) {
        return MailDecision::Drop("it answers a message that takes no answer".to_owned());
    }
    match unsigned_sender(reading, facts) {
        UnsignedSender::Asked => {}
        UnsignedSender::Nobody(refusal) => return MailDecision::Reject(refusal),
        UnsignedSender::Undecided(why) => return MailDecision::Later(why),
        UnsignedSender::From(_) => {
            return reject(
                ErrorCode::Perm,
                "This address was not asked.",
                "answer from the address that got the question.",
            );
        }
    }
    match respond(reading, facts, question) {
        Ok(text) => MailDecision::Accept(vec![MailMessage {
            text,
            speaker: asked_speaker(question),
            hold: None,
        }]),
        Err(refusal) => MailDecision::Reject(refusal),
    }
}

fn asked_speaker(question: &AskedQuestion<'_>) -> MailSpeaker {
    let names = [question.speaker, question.recipient];
    MailSpeaker::Asked(names.map(str::to_owned).to_vec())
}

/// The RESPOND with the new words of a mail. Whether they are a choice of a poll is read from its body, as with every other
/// answer in plain words (POL-012).
fn respond(
    reading: &MailReading,
    facts: &MailFacts<'_>,
    question: &AskedQuestion<'_>,
) -> Result<String, Rejection> {
    let asked = question.record;
    let digest = facts.digest.to_string();
    let message_id = reading.message_id.as_deref().unwrap_or(&digest);
    let id = id_of_mail(message_id, reading.sent_at.unwrap_or(asked.at));
    let from = reading.from.as_ref();
    let user = from.map_or("mail", |from| from.name.as_deref().unwrap_or(&from.address));
    let text = respond_in_words(asked, question.speaker, id, (user, &reading.text))?;
    Ok(with_mail_block(&text, reading))
}

/// The RESPOND to a message, of a person who answered it in plain words: `speaker` is the recipient as the message names it.
///
/// # Errors
/// If no message can have these words.
pub fn respond_in_words(
    asked: &Record,
    speaker: &str,
    id: String,
    (user, words): (&str, &str),
) -> Result<String, Rejection> {
    let document = Document::parse(&asked.text, Reading::Strict);
    let ids = ReceivedIds {
        thread: asked.thread.clone(),
        message: asked.id.clone(),
    };
    let mut original = document.envelope();
    original.receiver = Address::split(speaker);
    let user: String = one_line(&visible(user)).chars().take(100).collect();
    let body = visible(words);
    let built = reply::respond(&original, &ids, &user, body.trim_end())
        .message(id)
        .visible()
        .build();
    built.map_err(|fault| {
        Rejection::new(
            ErrorCode::Format,
            format!("The answer can't be written into a message: {fault}."),
            "send a shorter or plainer text.",
        )
    })
}

/// A mail brings envelopes.
fn envelopes(reading: &MailReading, facts: &MailFacts<'_>) -> MailDecision {
    let sender = unsigned_sender(reading, facts);
    let mut messages = Vec::new();
    for admitted in &reading.envelopes {
        match envelope(admitted, reading, facts, &sender) {
            Ok(message) => messages.push(message),
            Err(other) => return other,
        }
    }
    MailDecision::Accept(messages)
}

fn envelope(
    admitted: &Admitted,
    reading: &MailReading,
    facts: &MailFacts<'_>,
    sender: &UnsignedSender,
) -> Result<MailMessage, MailDecision> {
    let document = admitted.document();
    let word = admitted.verdict().word();
    let message = |speaker, hold| MailMessage {
        text: with_mail_block(document.text(), reading),
        speaker,
        hold,
    };
    if word == VerdictWord::Verified {
        return Ok(message(MailSpeaker::Signature, None));
    }
    if word == VerdictWord::Revoked {
        return Err(reject(
            ErrorCode::Perm,
            admitted.verdict().sentence(),
            "sign it with a key that counts.",
        ));
    }
    // It answers the question of the mail, so it may speak for the recipient of that.
    let question = facts.question.as_ref().filter(|question| {
        let envelope = document.envelope();
        envelope.parent == Some(question.record.id.as_str())
            && envelope.meaning().is_some_and(Intent::answers)
    });
    let speaker = match (sender, question, sender_address(reading)) {
        (UnsignedSender::Asked, Some(question), _) => asked_speaker(question),
        (UnsignedSender::Asked, None, Some(address)) if reading.authentication.is_aligned => {
            from_speaker(address, facts)
        }
        (UnsignedSender::From(address), _, _) => from_speaker(address.clone(), facts),
        (UnsignedSender::Undecided(why), _, _) => return Err(MailDecision::Later(why.clone())),
        // A signature may still count at the relay: by a domain that was not asked here.
        _ if is_signed(word) => MailSpeaker::Signature,
        (UnsignedSender::Nobody(refusal), _, _) => {
            return Err(MailDecision::Reject(refusal.clone()));
        }
        (UnsignedSender::Asked, _, _) => {
            return Err(reject(
                ErrorCode::Perm,
                "The envelope is not signed, and does not answer the question that this mail answers.",
                "sign it, or answer in plain words.",
            ));
        }
    };
    let hold = claims_wrongly(word).then(|| {
        format!(
            "it came by mail, and its signature does not verify: {}",
            admitted.verdict().sentence()
        )
    });
    // Without any evidence, nobody's attention is spent on it.
    match (&speaker, hold) {
        (MailSpeaker::Signature, Some(why)) => Err(reject(
            ErrorCode::Perm,
            format!("The message claims a signature, and {why}."),
            "send the message again, as an attached file.",
        )),
        (_, hold) => Ok(message(speaker, hold)),
    }
}

fn from_speaker(address: String, facts: &MailFacts<'_>) -> MailSpeaker {
    let names = facts.names.iter().cloned();
    MailSpeaker::From(std::iter::once(address).chain(names).collect())
}

/// Whether a message claims a signature that says something else than the message.
fn claims_wrongly(word: VerdictWord) -> bool {
    matches!(word, VerdictWord::Damaged | VerdictWord::NotVerified)
}

fn is_signed(word: VerdictWord) -> bool {
    word != VerdictWord::Unsigned
}

/// The longest value in `meta: email`, in characters.
const MAX_VALUE_CHARS: usize = 900;

/// A document with `meta: email` of this gateway: below every other one, so that the last one is what the last gateway says.
/// Every other byte stays.
fn with_mail_block(text: &str, reading: &MailReading) -> String {
    let document = Document::parse(text, Reading::Strict);
    let sent = reading.sent_at.map(|at| at.to_string());
    let from = reading.from.as_ref().map(|from| match &from.name {
        Some(name) => format!("{name} <{}>", from.address),
        None => from.address.clone(),
    });
    let results = reading.authentication.to_line();
    let values = [
        ("Message-ID", reading.message_id.as_deref()),
        ("In-Reply-To", reading.in_reply_to.as_deref()),
        ("Date", sent.as_deref()),
        ("From", from.as_deref()),
        ("Authentication", Some(results.as_str())),
    ];
    let clean = |value: &str| {
        let line = one_line(&visible(value));
        line.chars().take(MAX_VALUE_CHARS).collect::<String>()
    };
    let values = values.map(|(key, value)| (key, value.map(clean)));
    let fields: Vec<(&str, &str)> = values
        .iter()
        .filter_map(|(key, value)| Some((*key, value.as_deref().filter(|v| !v.is_empty())?)))
        .collect();
    let edited = Edit::new(&document).and_then(|edit| edit.add_block("email", &fields));
    let is_good = |text: &String| Document::parse(text, Reading::Strict).is_accepted();
    // A message at a limit stays as it is: the block is information.
    let edited = edited.ok().map(Edit::finish).filter(is_good);
    edited.unwrap_or_else(|| text.to_owned())
}

/// The words of a text on one line.
fn one_line(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    let words = text.split(is_gap).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
