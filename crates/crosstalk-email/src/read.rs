//! One mail, read once: its kind, the new words, the envelopes and their verdicts (MAI-001 to MAI-024).

use crate::authentication::{MailAuthentication, has_partial_signature};
use crate::automatic::automatic;
use crate::bounce::{Bounce, DeliveryReport, delivery_report};
use crate::head::{HeadFields, message_ids, split_head};
use crate::html::html_lines;
use crate::limit;
use crate::mime::{MailParts, TextForms};
use crate::reply::{DividedText, LineMark, ReplyLine, divide, is_quoted, plain_lines};
use crosstalk_envelope::words;
use crosstalk_envelope::{Diagnosis, Document, Reading, Scan, Timestamp, scan};
use crosstalk_protocol::{Admitted, Trust, VerifyContext, verify};
use mail_parser::{Address, MessageParser};

words! {
    /// The kind of a mail, as a gateway treats it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MailKind {
        /// It brings envelopes.
        Envelope = "envelope",
        /// A person answers in words of their own.
        Reply = "reply",
        /// A mail server could not deliver a mail.
        Bounce = "bounce",
        /// It was not written for the receiver: an automatic reply, a list, a receipt.
        Auto = "auto",
        /// A gateway must not act on it.
        Rejected = "rejected",
    }
}

/// The sender that a mail names. It is a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailSender {
    /// The address.
    pub address: String,
    /// The name beside it.
    pub name: Option<String>,
}

/// A mail, read once.
#[derive(Clone, Debug)]
pub struct MailReading {
    /// Its kind.
    pub kind: MailKind,
    /// The new words, without quoted text, signatures and envelopes.
    pub text: String,
    /// The text that was left out.
    pub cut: String,
    /// The envelopes, with their verdicts.
    pub envelopes: Vec<Admitted>,
    /// Its sender, by its own words; none unless there is exactly one.
    pub from: Option<MailSender>,
    /// The addresses of To, Cc, Delivered-To and X-Original-To: whom it was for, by its own words.
    pub recipients: Vec<String>,
    /// The subject.
    pub subject: String,
    /// When it was sent, by its own words.
    pub sent_at: Option<Timestamp>,
    /// Its id, with angle brackets.
    pub message_id: Option<String>,
    /// The id of the mail that it answers.
    pub in_reply_to: Option<String>,
    /// The ids of the mails before it, the oldest first.
    pub references: Vec<String>,
    /// The authentication of its sender.
    pub authentication: MailAuthentication,
    /// The changes that the transport made to its text.
    pub damage: Vec<String>,
    /// Why it is of this kind, in a sentence.
    pub why: String,
    /// The report about the mail that could not be delivered.
    pub bounce: Option<Bounce>,
}

/// Why bytes can't be read as a mail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// It is larger than a mail may be.
    #[error("the mail has more than {} bytes", limit::MAIL_BYTES)]
    TooLarge,
    /// It has no head of a mail.
    #[error(
        "this is no mail: it does not begin with header fields such as From, Date and Message-ID"
    )]
    NotMail,
}

/// How many envelopes of one mail are restored if they are damaged: that is a search.
const MAX_RESTORED: usize = 4;
/// How many findings about the text are told.
const MAX_DAMAGE: usize = 32;

/// Reads one mail. `question` says for which time the envelopes are verified; nothing is asked of the DNS.
///
/// # Errors
/// If the bytes are no mail, or too many.
///
/// ```
/// use crosstalk_email::{MailKind, read_mail};
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::{Trust, VerifyContext};
/// let mail = b"From: Anna <anna@example.com>\r\nMessage-ID: <2@example.com>\r\nIn-Reply-To: <1@relay.example>\r\n\r\n\
///              Yes, do it.\r\n\r\nOn Mon, 3 Mar 2025, Bot <bot@relay.example> wrote:\r\n> May I go on?\r\n";
/// let reading = read_mail(mail, &Trust::default(), &VerifyContext::at(Timestamp::from_millis(0))).unwrap();
/// assert_eq!((reading.kind, reading.text.as_str()), (MailKind::Reply, "Yes, do it."));
/// assert!(reading.cut.contains("> May I go on?"));
/// ```
pub fn read_mail(
    bytes: &[u8],
    trust: &Trust,
    question: &VerifyContext<'_>,
) -> Result<MailReading, MailError> {
    if bytes.len() > limit::MAIL_BYTES {
        return Err(MailError::TooLarge);
    }
    let mail = without_mbox_line(bytes);
    let (head, _) = split_head(mail);
    let fields = HeadFields::parse(head.get(..limit::HEAD_BYTES).unwrap_or(head));
    if !is_mail(head, &fields) {
        return Err(MailError::NotMail);
    }
    let mut reading = read_head(head, &fields);
    let parts = match MailParts::read(mail) {
        Err(why) => Err(why),
        Ok(_) if fields.is_excessive => {
            Err(format!("it has more than {} header fields", limit::FIELDS))
        }
        Ok(parts) => Ok(parts),
    };
    let parts = match parts {
        Ok(parts) => parts,
        Err(why) => {
            reading.why = format!("The mail exceeds a limit: {why}.");
            return Ok(reading);
        }
    };
    reading.damage.extend(parts.damage.iter().cloned());
    let text = MailText::new(&parts.texts);
    if text.lines.len() > limit::LINES {
        reading.why = format!(
            "The mail exceeds a limit: its text has more than {} lines.",
            limit::LINES
        );
        return Ok(reading);
    }
    text.read(&mut reading, &fields, &parts, (trust, question));
    Ok(reading)
}

/// Some programs keep mail with a line of their own above it.
fn without_mbox_line(bytes: &[u8]) -> &[u8] {
    match bytes.starts_with(b"From ") {
        true => bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .and_then(|at| bytes.get(at + 1..))
            .unwrap_or(&[]),
        false => bytes,
    }
}

/// Whether the first line is a header field, and one of the fields is one that mails have.
fn is_mail(head: &[u8], fields: &HeadFields) -> bool {
    let name = head.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_field = !name.is_empty()
        && name.len() < head.len()
        && name.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
    const USUAL: &[&str] = &[
        "from",
        "to",
        "date",
        "subject",
        "message-id",
        "received",
        "return-path",
        "mime-version",
        "delivered-to",
    ];
    is_field && fields.names().any(|name| USUAL.contains(&name))
}

/// The reading of the head alone; rejected until more is known.
fn read_head(head: &[u8], fields: &HeadFields) -> MailReading {
    let mut with_end = head.to_vec();
    with_end.extend_from_slice(b"\r\n");
    let parsed = match head.len() <= limit::HEAD_BYTES {
        true => MessageParser::default().parse_headers(&with_end),
        false => None,
    };
    let ids = |name: &str| fields.first(name).map(message_ids).unwrap_or_default();
    let answered = fields
        .first("in-reply-to")
        .map(str::trim)
        .filter(|value| !value.is_empty());
    let sent_at = parsed.as_ref().and_then(|message| message.date());
    let sent_at =
        sent_at.map(|date| Timestamp::from_millis(date.to_timestamp().saturating_mul(1_000)));
    MailReading {
        kind: MailKind::Rejected,
        text: String::new(),
        cut: String::new(),
        envelopes: Vec::new(),
        from: parsed.as_ref().and_then(|message| sender(message.from()?)),
        recipients: recipients(fields),
        subject: parsed
            .as_ref()
            .and_then(|message| message.subject())
            .unwrap_or_default()
            .to_owned(),
        sent_at,
        message_id: ids("message-id").into_iter().next(),
        in_reply_to: ids("in-reply-to")
            .into_iter()
            .next()
            .or_else(|| answered.map(str::to_owned)),
        references: ids("references"),
        authentication: MailAuthentication::offline(fields),
        damage: Vec::new(),
        why: String::new(),
        bounce: None,
    }
}

/// The only address of From in a head.
pub(crate) fn sender_of_head(head: &[u8]) -> Option<MailSender> {
    let mut with_end = head.get(..limit::HEAD_BYTES).unwrap_or(head).to_vec();
    with_end.extend_from_slice(b"\r\n");
    let parsed = MessageParser::default().parse_headers(&with_end)?;
    sender(parsed.from()?)
}

/// The only address of From.
fn sender(from: &Address<'_>) -> Option<MailSender> {
    let mut all = from.iter();
    let only = all.next()?;
    if all.next().is_some() {
        return None;
    }
    let name = only
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty());
    Some(MailSender {
        address: only.address.as_deref()?.trim().to_owned(),
        name: name.map(str::to_owned),
    })
}

/// The most addresses of a head that are looked at.
const MAX_RECIPIENTS: usize = 100;

/// The addresses of the fields that say whom a mail was for. Only those of the gateway are looked for among them, so that
/// quoting does not have to be undone.
fn recipients(fields: &HeadFields) -> Vec<String> {
    let names = ["delivered-to", "x-original-to", "to", "cc"];
    let values = names.iter().flat_map(|name| fields.all(name));
    let pieces = values.flat_map(|value| value.split([',', ';', ' ', '<', '>', '"', '\t']));
    let addresses = pieces.filter(|piece| piece.contains('@') && piece.len() <= 320);
    addresses.take(MAX_RECIPIENTS).map(str::to_owned).collect()
}

/// Why a mail must not be acted on, whatever it says.
fn rejection(reading: &MailReading, fields: &HeadFields) -> Option<String> {
    if fields.all("from").count() > 1 {
        return Some("The mail has two senders: there is more than one From field.".to_owned());
    }
    // An address in angle brackets, or a comma between addresses, that the reader of addresses did not count.
    let value = fields.first("from").unwrap_or_default();
    if reading.from.is_none() && value.matches('@').count() > 1 {
        return Some("The mail has two senders: From names more than one address.".to_owned());
    }
    if has_partial_signature(fields) {
        return Some("A DKIM signature of the mail covers only the beginning of its text (l=), so that text could have been added.".to_owned());
    }
    None
}

/// The text of a mail as one list of lines.
struct MailText {
    lines: Vec<ReplyLine>,
    /// The HTML beside the first plain text.
    html: Option<String>,
    source: String,
    /// Where each line begins in the source.
    starts: Vec<usize>,
}

impl MailText {
    fn new(texts: &[TextForms]) -> Self {
        let mut lines: Vec<ReplyLine> = Vec::new();
        for forms in texts {
            if !lines.is_empty() {
                lines.extend(plain_lines(""));
            }
            lines.extend(lines_of(forms));
        }
        let html = match texts {
            [
                TextForms {
                    plain: Some(_),
                    html,
                },
            ] => html.clone(),
            _ => None,
        };
        let mut source = String::new();
        let mut starts = Vec::with_capacity(lines.len());
        for line in &lines {
            starts.push(source.len());
            source.push_str(&line.text);
            source.push('\n');
        }
        Self {
            lines,
            html,
            source,
            starts,
        }
    }

    /// The number of the line that a place of the source is in.
    fn line_at(&self, place: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= place)
            .saturating_sub(1)
    }

    /// The first and the last line of an envelope.
    fn lines_of(&self, document: &Document<'_>) -> (usize, usize) {
        let span = document.span();
        (
            self.line_at(span.start),
            self.line_at(span.end.saturating_sub(1)),
        )
    }

    /// Divides the text. Lines of envelopes that stand outside of quotes are new, whatever their words are.
    fn divide(&self, scan: &Scan<'_>) -> DividedText {
        let mut lines = self.lines.clone();
        for document in &scan.documents {
            let (first, last) = self.lines_of(document);
            let is_open =
                |line: &ReplyLine| line.mark == LineMark::Unknown && !is_quoted(&line.text);
            if lines.get(first).is_some_and(is_open) {
                for line in lines.get_mut(first..=last).unwrap_or_default() {
                    line.mark = LineMark::New;
                }
            }
        }
        divide(lines)
    }

    fn read(
        &self,
        reading: &mut MailReading,
        fields: &HeadFields,
        parts: &MailParts,
        judge: (&Trust, &VerifyContext<'_>),
    ) {
        let scan = scan(&self.source, Reading::Paste);
        let mut divided = self.divide(&scan);
        let is_new = |place: usize| {
            divided
                .is_new
                .get(self.line_at(place))
                .copied()
                .unwrap_or(false)
        };
        let (new, quoted): (Vec<&Document<'_>>, Vec<&Document<'_>>) = scan
            .documents
            .iter()
            .partition(|document| is_new(document.span().start));
        let unreadable = self.unreadable(&scan, &divided);
        let words = self.words_beside(&divided, &new);
        if let Some(other) = self.html_division(&words, new.is_empty()) {
            divided = other;
        } else {
            divided.text = words;
        }
        reading.text = std::mem::take(&mut divided.text);
        reading.cut = std::mem::take(&mut divided.cut);

        let subject = reading.subject.clone();
        if let Some(why) = rejection(reading, fields) {
            reading.why = why;
            return;
        }
        match delivery_report(fields, parts, &subject, &self.source) {
            Some(DeliveryReport::Failed(bounce)) => {
                reading.kind = MailKind::Bounce;
                let recipient = bounce
                    .recipient
                    .as_deref()
                    .map(|to| format!(" to {to}"))
                    .unwrap_or_default();
                reading.why = format!(
                    "The mail{recipient} could not be delivered: {}",
                    bounce.reason
                );
                reading.bounce = Some(bounce);
                return;
            }
            Some(DeliveryReport::Other(what)) => {
                reading.kind = MailKind::Auto;
                reading.why =
                    format!("It is a report of a mail server, and nothing failed: {what}");
                return;
            }
            None => {}
        }
        if let Some(why) = automatic(fields, parts.report.as_deref(), &subject) {
            reading.kind = MailKind::Auto;
            reading.why = format!("No person wrote this mail: {why}.");
            return;
        }
        if reading.from.is_none() {
            reading.why = "The mail names no sender in From.".to_owned();
            return;
        }

        let is_reply = reading.in_reply_to.is_some();
        let mut admission = MailAdmission { reading, judge };
        admission.admit(new);
        for file in &parts.files {
            admission.admit_file(&file.name, &file.text);
        }
        let is_forwarded = !is_reply || (divided.is_forward && admission.reading.text.is_empty());
        if admission.reading.envelopes.is_empty() && unreadable.is_none() && is_forwarded {
            admission.admit(quoted);
            for forms in &parts.attached {
                let lines: Vec<String> =
                    lines_of(forms).into_iter().map(|line| line.text).collect();
                admission.admit_file("the attached message", &lines.join("\n"));
            }
        }
        conclude(reading, is_reply, unreadable);
    }

    /// Why an envelope that begins outside of quoted text can't be read.
    fn unreadable(&self, scan: &Scan<'_>, divided: &DividedText) -> Option<String> {
        let is_direction = |line: &ReplyLine| {
            let text = line.text.trim_start_matches([' ', '*', '`', '\\']);
            text.starts_with("[[") && ["→", "->", "=>"].iter().any(|arrow| text.contains(arrow))
        };
        let mut lines = self.lines.iter().zip(&divided.is_new);
        let first = lines.position(|(line, is_new)| *is_new && is_direction(line))?;
        let start = *self.starts.get(first)?;
        let mut findings = scan.rejected.iter();
        let finding = findings.find(|finding| finding.is_error() && finding.span.start >= start)?;
        Some(format!("{} ({})", finding.message, finding.rule.id))
    }

    /// The new words without those of envelopes.
    fn words_beside(&self, divided: &DividedText, envelopes: &[&Document<'_>]) -> String {
        if envelopes.is_empty() {
            return divided.text.clone();
        }
        let mut kept = divided.is_new.clone();
        for document in envelopes {
            let (mut first, mut last) = self.lines_of(document);
            // A code fence around an envelope is no word of its sender.
            let is_fence = |at: Option<usize>| {
                let line = at.and_then(|at| self.lines.get(at));
                line.is_some_and(|line| line.text.trim_start().starts_with("```"))
            };
            if is_fence(first.checked_sub(1)) && is_fence(last.checked_add(1)) {
                (first, last) = (first - 1, last + 1);
            }
            kept.get_mut(first..=last).unwrap_or_default().fill(false);
        }
        let lines = self
            .lines
            .iter()
            .zip(kept)
            .map(|(line, is_kept)| (line.text.as_str(), is_kept));
        crate::reply::join(lines)
    }

    /// The division of the HTML form, if that says that words of the plain form are quoted: then its structure knows better.
    fn html_division(&self, words: &str, has_no_envelope: bool) -> Option<DividedText> {
        let lines = html_lines(self.html.as_deref().filter(|_| has_no_envelope)?);
        if !lines.iter().any(|line| line.mark != LineMark::Unknown) {
            return None;
        }
        let divided = divide(lines);
        let (new, cut) = (only_words(&divided.text), only_words(&divided.cut));
        let leaks = words
            .lines()
            .map(only_words)
            .any(|line| !line.is_empty() && cut.contains(&line) && !new.contains(&line));
        leaks.then_some(divided)
    }
}

/// The letters and digits of a text, in lower case.
fn only_words(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The lines of a text: of its plain form if that has words.
fn lines_of(forms: &TextForms) -> Vec<ReplyLine> {
    match (&forms.plain, &forms.html) {
        (Some(plain), Some(html)) if plain.trim().is_empty() => html_lines(html),
        (Some(plain), _) => plain_lines(plain),
        (None, Some(html)) => html_lines(html),
        (None, None) => Vec::new(),
    }
}

/// Envelopes on their way into a reading.
struct MailAdmission<'r> {
    reading: &'r mut MailReading,
    judge: (&'r Trust, &'r VerifyContext<'r>),
}

impl MailAdmission<'_> {
    fn admit_file(&mut self, name: &str, text: &str) {
        let found = scan(text, Reading::Paste);
        for finding in found
            .rejected
            .iter()
            .filter(|finding| finding.is_error())
            .take(1)
        {
            let line = finding.position(text).line;
            self.tell(format!(
                "{name}: line {line}: {} ({})",
                finding.message, finding.rule.id
            ));
        }
        self.admit(found.documents.iter().collect());
    }

    fn admit(&mut self, documents: Vec<&Document<'_>>) {
        for document in documents {
            let known = self.reading.envelopes.len();
            if known == limit::ENVELOPES {
                self.tell(format!(
                    "there are more than {} envelopes; the rest was not read",
                    limit::ENVELOPES
                ));
                return;
            }
            let (trust, question) = self.judge;
            let question = VerifyContext {
                restore: question.restore && known < MAX_RESTORED,
                ..*question
            };
            let verdict = verify(document, trust, &question);
            let admitted = Admitted::new(document, verdict);
            let is_known = |other: &Admitted| match (
                other.document().digest(),
                admitted.document().digest(),
            ) {
                (Ok(one), Ok(two)) => one == two,
                _ => false,
            };
            // A mail often brings an envelope twice: as text and as a file.
            if self.reading.envelopes.iter().any(is_known) {
                continue;
            }
            match admitted.verdict().body() {
                None | Some(Diagnosis::Intact) => {}
                Some(damage) => {
                    let sentence = admitted.verdict().report().sentence;
                    self.tell(format!("{}: {sentence}", damage.as_str()));
                }
            }
            for finding in document.diagnostics() {
                self.tell(format!("{} ({})", finding.message, finding.rule.id));
            }
            self.reading.envelopes.push(admitted);
        }
    }

    fn tell(&mut self, what: String) {
        let damage = &mut self.reading.damage;
        if damage.len() < MAX_DAMAGE && !damage.contains(&what) {
            damage.push(what);
        }
    }
}

/// The kind of a mail that a person may have written.
fn conclude(reading: &mut MailReading, is_reply: bool, unreadable: Option<String>) {
    let number = reading.envelopes.len();
    if number > 0 {
        reading.kind = MailKind::Envelope;
        reading.why = match number {
            1 => "The mail brings an envelope.".to_owned(),
            number => format!("The mail brings {number} envelopes."),
        };
    } else if let Some(fault) = unreadable {
        reading.why = format!("The mail brings an envelope that can't be read: {fault}.");
        reading.damage.push(fault);
    } else if !is_reply {
        reading.why = "The mail brings no envelope and answers no message.".to_owned();
    } else if reading.text.is_empty() {
        reading.why =
            "The reply is empty: nothing is left without quoted text and signatures.".to_owned();
    } else {
        reading.kind = MailKind::Reply;
        let answered = reading.in_reply_to.as_deref().unwrap_or_default();
        reading.why = format!("The mail answers {answered}.");
    }
}
