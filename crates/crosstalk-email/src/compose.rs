//! Writes the mail for a message: the complete envelope as text, its attachments, and a head by which the answer is recognised
//! (MAI-030 to MAI-053, MAI-080 to MAI-085).
//!
//! The same message becomes the same bytes each time, so that a mail that is sent again is the same mail. Every line is ASCII and ends
//! with CRLF, whatever the message has in it: no text can begin a header field, end the mail or be wrapped.

use crate::gateway_address::{GatewayAddress, is_mail_address};
use crate::limit::MAIL_BYTES;
use crate::subject::mail_subject;
use crate::threading::{MailId, is_message_id, references};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::{escape, visible};
use crosstalk_envelope::{Timestamp, base64};

/// The longest line of encoded text, in characters.
const LINE_CHARS: usize = 76;
/// How many bytes of text one encoded word of a header field holds: 45 bytes are 60 characters of base64.
const WORD_BYTES: usize = 45;

/// A message as a gateway sends it by mail.
#[derive(Clone, Debug)]
pub struct OutgoingMail<'m> {
    /// The id of the message.
    pub message: &'m str,
    /// The id of its thread.
    pub thread: &'m str,
    /// The messages that it follows, the oldest first; the last one is its parent.
    pub ancestors: &'m [String],
    /// The Message-ID of the mail by which its parent came, if it came by mail.
    pub answered_mail: Option<&'m str>,
    /// The sender of the message.
    pub sender: &'m str,
    /// The mail address that it goes to.
    pub to: &'m str,
    /// Its context.
    pub context: &'m str,
    /// Its intent.
    pub intent: &'m str,
    /// The subject, instead of context and intent.
    pub subject: Option<&'m str>,
    /// When the gateway accepted it.
    pub accepted_at: Timestamp,
    /// The complete envelope.
    pub envelope: &'m str,
    /// The readable text above the envelope.
    pub cover: Option<MailCover<'m>>,
    /// Its attachments, checked against their digests.
    pub files: &'m [MailFile],
    /// The reply token.
    pub token: &'m str,
    /// Whether the relay itself wrote it, so that nobody should answer it.
    pub is_automatic: bool,
}

/// The facts that a readable text says about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailCover<'m> {
    /// The result of checking the sender, in a few words.
    pub standing: &'m str,
    /// The body of the message.
    pub body: &'m str,
    /// The purpose of the message.
    pub purpose: CoverPurpose,
}

/// The purpose of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverPurpose {
    /// It asks for an answer.
    Question,
    /// It needs no answer.
    Note,
    /// It revokes a consent, so that texts have to be erased.
    Revocation,
}

/// A file in a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailFile {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The sender of the mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailOrigin<'m> {
    /// The part of the address of the gateway before the `@`.
    pub mailbox: &'m str,
    /// The domain of the gateway.
    pub domain: &'m str,
    /// Whether mail to `mailbox+anything` arrives.
    pub subaddress: bool,
}

/// A mail, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposedMail {
    /// Its Message-ID.
    pub message_id: String,
    /// The address to which mail servers report.
    pub return_path: String,
    /// The mail.
    pub bytes: Vec<u8>,
}

/// Why no mail can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The recipient is no mail address.
    #[error("the recipient is no mail address that mail servers accept")]
    Recipient,
    /// The id of the message does not fit into a Message-ID.
    #[error("the id of the message is too long for a mail")]
    Id,
    /// The mail would be too large.
    #[error("the mail would have more than {MAIL_BYTES} bytes")]
    TooLarge,
}

/// Writes the mail for a message.
///
/// # Errors
/// If a mail can't carry it.
///
/// ```
/// use crosstalk_email::{MailOrigin, OutgoingMail, compose_mail};
/// use crosstalk_envelope::Timestamp;
/// let mail = OutgoingMail {
///     message: "M1", thread: "T1", ancestors: &[], answered_mail: None, sender: "claude://code/api", to: "ann@acme.example",
///     context: "api", intent: "REQUEST", subject: None, accepted_at: Timestamp::from_millis(1_760_000_000_000),
///     envelope: "[[claude://code/api→email:ann@acme.example v1]]\n…\n[[END]]\n", cover: None, files: &[], token: "t",
///     is_automatic: true,
/// };
/// let origin = MailOrigin { mailbox: "crosstalk", domain: "relay.example", subaddress: true };
/// let mail = compose_mail(&mail, origin).unwrap();
/// assert_eq!(mail.message_id, "<M1.t@relay.example>");
/// let text = String::from_utf8(mail.bytes).unwrap();
/// assert!(text.contains("\r\nReply-To: <crosstalk+M1.t@relay.example>\r\n"));
/// assert!(text.contains("\r\nSubject: [AI Crosstalk] api - REQUEST\r\n"));
/// ```
pub fn compose_mail(
    mail: &OutgoingMail<'_>,
    origin: MailOrigin<'_>,
) -> Result<ComposedMail, ComposeError> {
    if !is_mail_address(mail.to) {
        return Err(ComposeError::Recipient);
    }
    let size = mail.files.iter().map(|file| file.bytes.len() / 3 * 4);
    if size.sum::<usize>() + mail.envelope.len() > MAIL_BYTES {
        return Err(ComposeError::TooLarge);
    }
    let id = MailId::Message {
        id: mail.message.to_owned(),
        token: Some(mail.token.to_owned()),
    };
    let message_id = id.to_message_id(origin.domain).ok_or(ComposeError::Id)?;
    let answers = match origin.subaddress {
        true => GatewayAddress::new(mail.message, mail.token),
        false => GatewayAddress::default(),
    };
    let return_path = answers.to_text(origin.mailbox, origin.domain);
    let mut out = String::with_capacity(mail.envelope.len() * 2);
    let name = format!("{} via Crosstalk", one_line(mail.sender));
    let from = GatewayAddress::default().to_text(origin.mailbox, origin.domain);
    field(&mut out, "Date", &rfc_date(mail.accepted_at));
    field(&mut out, "From", &format!("{} <{from}>", phrase(&name)));
    field(&mut out, "To", &format!("<{}>", mail.to));
    field(&mut out, "Reply-To", &format!("<{return_path}>"));
    let subject = mail_subject(mail.context, mail.intent, mail.subject);
    field(&mut out, "Subject", &unstructured(&subject));
    field(&mut out, "Message-ID", &message_id);
    thread_fields(&mut out, mail, origin.domain);
    if mail.is_automatic {
        // So that out-of-office replies are not sent in answer (RFC 3834).
        field(&mut out, "Auto-Submitted", "auto-generated");
    }
    field(&mut out, "MIME-Version", "1.0");
    let text = match &mail.cover {
        Some(cover) => format!("{}{}", cover_text(mail, cover), mail.envelope),
        None => mail.envelope.to_owned(),
    };
    if mail.files.is_empty() {
        text_part(&mut out, &text);
    } else {
        multipart(&mut out, mail, &text);
    }
    if out.len() > MAIL_BYTES {
        return Err(ComposeError::TooLarge);
    }
    Ok(ComposedMail {
        message_id,
        return_path,
        bytes: out.into_bytes(),
    })
}

/// In-Reply-To and References (MAI-031, MAI-032).
fn thread_fields(out: &mut String, mail: &OutgoingMail<'_>, domain: &str) {
    let parent = mail.ancestors.last();
    let parent = parent.and_then(|id| MailId::message(id).to_message_id(domain));
    if let Some(parent) = &parent {
        field(out, "In-Reply-To", parent);
    }
    let ancestors = mail.ancestors.iter().map(String::as_str);
    let known = references(mail.thread, ancestors, domain);
    // The mail program of the recipient knows the mail that it wrote by its own id.
    let answered = mail.answered_mail.filter(|id| is_message_id(id));
    let ids = known.into_iter().chain(answered.map(str::to_owned));
    let ids = ids.collect::<Vec<_>>().join(" ").replace(' ', "\r\n ");
    if !ids.is_empty() {
        field(out, "References", &ids);
    }
}

/// The text above the envelope.
fn cover_text(mail: &OutgoingMail<'_>, cover: &MailCover<'_>) -> String {
    let sender = one_line(mail.sender);
    let purpose = match cover.purpose {
        CoverPurpose::Question => format!(
            "{sender} asks you. Reply to this mail to answer: write above the quoted text, in your own words."
        ),
        CoverPurpose::Note => format!("{sender} writes to you. No answer is expected."),
        CoverPurpose::Revocation => format!(
            "{sender} revokes a consent. Please delete the mails that were sent to you under this consent, and every copy of \
             their content. Do not use them any more."
        ),
    };
    let body = visible(cover.body);
    let body = body.lines().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("    {line}"),
    });
    let body = body.collect::<Vec<_>>().join("\n");
    let text = format!(
        "{purpose}\n\nAbout: {} ({})\nSender: {}\n\n{}\n\nThe rest of this mail is the same message for programs. You need not read it.\n\n",
        one_line(mail.context),
        one_line(mail.intent),
        one_line(cover.standing),
        body.trim_end(),
    );
    // No program may take a part of this text for an envelope.
    text.replace("[[", "[ [").replace("]]", "] ]")
}

fn text_part(out: &mut String, text: &str) {
    field(out, "Content-Type", "text/plain; charset=utf-8");
    field(out, "Content-Transfer-Encoding", "quoted-printable");
    out.push_str("\r\n");
    push_quoted_printable(out, text);
}

fn multipart(out: &mut String, mail: &OutgoingMail<'_>, text: &str) {
    // Neither encoding has `=_` in it, so that no content ends a part.
    let digest = Digest::of(mail.envelope.as_bytes()).to_string();
    let digest: String = digest.chars().rev().take(32).collect();
    let boundary = format!("=_{digest}");
    let value = format!("multipart/mixed;\r\n boundary=\"{boundary}\"");
    field(out, "Content-Type", &value);
    out.push_str("\r\n");
    out.push_str(&format!("--{boundary}\r\n"));
    text_part(out, text);
    for file in mail.files {
        out.push_str(&format!("\r\n--{boundary}\r\n"));
        field(out, "Content-Type", media_type(&file.mime));
        field(out, "Content-Transfer-Encoding", "base64");
        let name = file_name(&file.name);
        field(
            out,
            "Content-Disposition",
            &format!("attachment;\r\n {name}"),
        );
        out.push_str("\r\n");
        push_base64(out, &file.bytes);
    }
    out.push_str(&format!("\r\n--{boundary}--\r\n"));
}

/// The media type of a file. Parts that have parts of their own must not be encoded, so such a file is one of bytes.
fn media_type(mime: &str) -> &str {
    let is_token = |text: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        !text.is_empty() && text.len() <= 100 && text.bytes().all(is_plain)
    };
    let Some((kind, sub)) = mime.split_once('/') else {
        return "application/octet-stream";
    };
    let has_parts = ["multipart", "message"]
        .iter()
        .any(|k| k.eq_ignore_ascii_case(kind));
    match !has_parts && is_token(kind) && is_token(sub) {
        true => mime,
        false => "application/octet-stream",
    }
}

/// The name of a file, without the folders that it is in.
fn file_name(name: &str) -> String {
    let visible = |c: char| if c.is_control() { '_' } else { c };
    let name: String = name.chars().map(visible).collect();
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().take(100).collect();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_. ".contains(&b);
    if !name.is_empty() && name.len() <= 60 && name.bytes().all(is_plain) {
        return format!("filename=\"{name}\"");
    }
    // RFC 2231, in pieces that fit on a line.
    let mut pieces = vec![String::from("UTF-8''")];
    for c in name.chars() {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).bytes();
        let written: String = bytes
            .map(|b| match b.is_ascii_alphanumeric() || b"-_.".contains(&b) {
                true => char::from(b).to_string(),
                false => format!("%{b:02X}"),
            })
            .collect();
        match pieces.last_mut() {
            Some(last) if last.len() + written.len() <= 50 => last.push_str(&written),
            _ => pieces.push(written),
        }
    }
    let pieces = pieces.iter().enumerate();
    let pieces = pieces.map(|(number, piece)| format!("filename*{number}*={piece}"));
    pieces.collect::<Vec<_>>().join(";\r\n ")
}

fn field(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str(": ");
    out.push_str(value);
    out.push_str("\r\n");
}

/// The text of a header field.
fn unstructured(text: &str) -> String {
    let is_plain = |c: char| matches!(c, ' '..='~');
    match text.chars().all(is_plain) && !text.contains("=?") && text.len() < 900 {
        true => text.to_owned(),
        false => encoded_words(text),
    }
}

/// The name before an address.
fn phrase(text: &str) -> String {
    let text: String = text.chars().take(120).collect();
    let is_plain = |c: char| matches!(c, ' '..='~');
    if !text.chars().all(is_plain) || text.contains("=?") {
        return encoded_words(&text);
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Encoded words of RFC 2047, each with whole characters, on lines of their own.
fn encoded_words(text: &str) -> String {
    let mut words = vec![String::new()];
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.len() + c.len_utf8() <= WORD_BYTES => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let words = words
        .iter()
        .map(|word| format!("=?UTF-8?B?{}?=", base64::encode(word.as_bytes())));
    words.collect::<Vec<_>>().join("\r\n ")
}

/// The text in quoted-printable. Lines are never wrapped in a way that a reader could see, and none begins with a dot or with
/// "From ", which mail servers may change.
fn push_quoted_printable(out: &mut String, text: &str) {
    let text = text.strip_suffix('\n').unwrap_or(text);
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut column = 0;
        let mut rest = line.bytes().peekable();
        while let Some(byte) = rest.next() {
            let is_last = rest.peek().is_none();
            let is_first = column == 0;
            let is_plain = match byte {
                b' ' | b'\t' => !is_last,
                b'=' => false,
                b'.' | b'F' => !is_first,
                byte => matches!(byte, b'!'..=b'~'),
            };
            let width = if is_plain { 1 } else { 3 };
            // The last column is for the `=` of a soft line break.
            if column + width > LINE_CHARS - usize::from(!is_last) {
                out.push_str("=\r\n");
                column = 0;
            }
            if is_plain && !(column == 0 && matches!(byte, b'.' | b'F')) {
                out.push(char::from(byte));
                column += 1;
            } else {
                out.push_str(&format!("={byte:02X}"));
                column += 3;
            }
        }
        out.push_str("\r\n");
    }
}

fn push_base64(out: &mut String, bytes: &[u8]) {
    for line in bytes.chunks(LINE_CHARS / 4 * 3) {
        out.push_str(&base64::encode(line));
        out.push_str("\r\n");
    }
}

fn one_line(text: &str) -> String {
    let text = escape(text).replace(['\n', '\r'], " ");
    text.trim().to_owned()
}

/// The date of RFC 5322: `Thu, 09 Oct 2025 08:53:20 +0000`.
fn rfc_date(at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let day = at.as_millis().div_euclid(86_400_000).rem_euclid(7);
    let day = usize::try_from(day)
        .ok()
        .and_then(|d| DAYS.get(d))
        .unwrap_or(&"Thu");
    // The text form is `YYYY-MM-DDTHH:MM:SS…Z`.
    let text = at.to_string();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or("00");
    let month = part(5..7).parse::<usize>().unwrap_or(1);
    let month = MONTHS.get(month.saturating_sub(1)).unwrap_or(&"Jan");
    format!(
        "{day}, {} {month} {} {} +0000",
        part(8..10),
        part(0..4),
        part(11..19)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_mail() {
        let date = |text: &str| rfc_date(Timestamp::parse(text).unwrap());
        assert_eq!(
            date("2025-10-09T08:53:20Z"),
            "Thu, 09 Oct 2025 08:53:20 +0000"
        );
        assert_eq!(
            date("2024-02-29T23:59:59.5Z"),
            "Thu, 29 Feb 2024 23:59:59 +0000"
        );
        assert_eq!(
            date("1970-01-01T00:00:00Z"),
            "Thu, 01 Jan 1970 00:00:00 +0000"
        );
    }

    #[test]
    fn names_of_files_lose_their_folders_and_keep_their_letters() {
        assert_eq!(file_name("../../etc/a b.txt"), "filename=\"a b.txt\"");
        assert_eq!(
            file_name("ü\"\r\nX: y.txt"),
            "filename*0*=UTF-8''%C3%BC%22__X%3A%20y.txt"
        );
    }

    #[test]
    fn lines_of_quoted_printable_are_short_and_harmless() {
        let text = format!(
            "From me\n.\n..x\nend \n\n{}\n{}\n",
            "é".repeat(80),
            "=".repeat(60) + &".".repeat(100)
        );
        let mut out = String::new();
        push_quoted_printable(&mut out, &text);
        for line in out.split("\r\n") {
            assert!(
                line.len() <= LINE_CHARS && !line.starts_with('.') && !line.starts_with("From"),
                "{line}"
            );
            assert!(
                !line.ends_with(' ') && !line.contains(['\r', '\n']),
                "{line}"
            );
        }
    }
}
