//! Reports of mail servers: delivery that failed or waits (RFC 3464), and the common forms without a report.

use crate::head::{HeadFields, message_ids};
use crate::mime::MailParts;
use crate::phrase;

/// A mail that could not be delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounce {
    /// The address that the mail did not reach.
    pub recipient: Option<String>,
    /// The enhanced status code, such as `5.1.1`.
    pub status: Option<String>,
    /// The reason in the words of the mail server.
    pub reason: String,
    /// The Message-ID of the mail that was returned.
    pub returned: Option<String>,
}

/// The outcome of delivery that a report names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryReport {
    Failed(Bounce),
    /// It waits, or arrived: nothing failed.
    Other(String),
}

/// The longest reason that is kept, in characters.
const REASON_CHARS: usize = 500;

/// The report about delivery that a mail is, if it is one.
pub(crate) fn delivery_report(
    head: &HeadFields,
    parts: &MailParts,
    subject: &str,
    text: &str,
) -> Option<DeliveryReport> {
    let returned = parts
        .returned
        .as_ref()
        .and_then(|head| head.first("message-id"));
    let returned = returned.and_then(|id| message_ids(id).into_iter().next());
    let is_report = parts.report.as_deref() == Some("delivery-status");
    if is_report || !parts.statuses.is_empty() {
        return Some(read_statuses(&parts.statuses, returned, text));
    }
    let failed = head.first("x-failed-recipients");
    if failed.is_none() && !(is_from_server(head) && has_bounce_words(subject, text)) {
        return None;
    }
    let reason = reason_in(text).unwrap_or_else(|| first_words(text));
    let returned = returned.or_else(|| returned_id(text));
    let recipient = failed.and_then(|list| list.split(',').next());
    Some(DeliveryReport::Failed(Bounce {
        recipient: recipient.map(|address| shorten(address.trim())),
        status: status_in(&reason),
        reason,
        returned,
    }))
}

fn read_statuses(statuses: &[String], returned: Option<String>, text: &str) -> DeliveryReport {
    let blocks = statuses.iter().flat_map(|status| status.split("\n\n"));
    let blocks: Vec<HeadFields> = blocks
        .take(1_000)
        .map(|block| HeadFields::parse(block.as_bytes()))
        .collect();
    let is = |block: &HeadFields, action: &str| {
        let own = block
            .first("action")
            .and_then(|a| a.split_whitespace().next());
        own.is_some_and(|own| own.eq_ignore_ascii_case(action))
    };
    let failed = blocks.iter().find(|block| is(block, "failed"));
    let without_type = |value: &str| {
        let value = value.split_once(';').map_or(value, |(_, value)| value);
        shorten(value.trim())
    };
    let field = |block: &HeadFields, name: &str| block.first(name).map(without_type);
    let described = |block: &HeadFields| {
        let reason = field(block, "diagnostic-code").filter(|reason| !reason.is_empty());
        reason
            .or_else(|| reason_in(text))
            .unwrap_or_else(|| first_words(text))
    };
    if failed.is_none()
        && let Some(block) = blocks.iter().find(|block| block.first("action").is_some())
    {
        let action = block.first("action").unwrap_or_default();
        return DeliveryReport::Other(format!("{}: {}", shorten(action), described(block)));
    }
    let none = HeadFields::default();
    let block = failed.unwrap_or(&none);
    let recipient = field(block, "final-recipient").or_else(|| field(block, "original-recipient"));
    DeliveryReport::Failed(Bounce {
        recipient,
        status: block.first("status").and_then(status_in),
        reason: described(block),
        returned,
    })
}

/// Whether a mail comes from a mail server: no return path, or the usual name.
fn is_from_server(head: &HeadFields) -> bool {
    let is_null = head.all("return-path").any(is_null_path);
    let from = head.first("from").unwrap_or_default().to_lowercase();
    is_null
        || [
            "mailer-daemon",
            "postmaster@",
            "mail delivery",
            "maildelivery",
        ]
        .iter()
        .any(|name| from.contains(name))
}

/// Whether a Return-Path is empty.
pub(crate) fn is_null_path(value: &str) -> bool {
    matches!(value.trim(), "" | "<>" | "< >")
}

fn has_bounce_words(subject: &str, text: &str) -> bool {
    let subject = subject.trim().to_lowercase();
    phrase::BOUNCED
        .iter()
        .any(|phrase| subject.starts_with(phrase))
        || text.contains("This is the qmail-send program")
        || text.contains("message could not be delivered")
}

/// The first line in which a mail server says a code, as `550 5.1.1 User unknown`, with the line that goes on.
fn reason_in(text: &str) -> Option<String> {
    let mut lines = text.lines().take(200).map(str::trim);
    let line = lines.find(|line| has_code(line))?;
    let rest = lines
        .next()
        .filter(|rest| !rest.is_empty() && line.chars().count() > 50);
    let joined = rest.map_or(line.to_owned(), |rest| format!("{line} {rest}"));
    Some(shorten(joined.trim_start_matches([':', '-', ' '])))
}

fn has_code(line: &str) -> bool {
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words
        .filter(|word| !word.is_empty())
        .any(|word| is_reply_code(word) || is_status(word))
}

fn is_reply_code(word: &str) -> bool {
    word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|b| b.is_ascii_digit())
}

fn is_status(word: &str) -> bool {
    let numbers: Vec<&str> = word.split('.').collect();
    let is_number =
        |n: &&str| !n.is_empty() && n.len() <= 3 && n.bytes().all(|b| b.is_ascii_digit());
    numbers.len() == 3
        && numbers.iter().all(is_number)
        && matches!(numbers.first(), Some(&"4" | &"5"))
}

fn status_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    words.find(|word| is_status(word)).map(str::to_owned)
}

/// The Message-ID in the copy of the returned mail in the text.
fn returned_id(text: &str) -> Option<String> {
    let mut lines = text.lines().map(|line| line.trim_start_matches(['>', ' ']));
    let line = lines.find(|line| {
        line.get(..11)
            .is_some_and(|name| name.eq_ignore_ascii_case("message-id:"))
    })?;
    message_ids(line).into_iter().next()
}

fn first_words(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    shorten(line.unwrap_or("the mail server gave no reason"))
}

fn shorten(text: &str) -> String {
    text.chars().take(REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_as_words() {
        assert!(has_code("<a@x>: host said: 550 no such user"));
        assert!(has_code("Status: 5.1.1"));
        assert!(!has_code("5500 people, 5.1 of them"));
        assert_eq!(status_in("550 5.1.1 <a@x>"), Some("5.1.1".to_owned()));
        assert_eq!(status_in("550 1.2.3.4"), None);
    }
}
