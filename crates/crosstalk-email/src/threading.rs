//! Message-ID, In-Reply-To and References: the ids of a conversation in the head of a mail, in both directions (MAI-030 to
//! MAI-033).

use crate::head::message_ids;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::id::ulid_of;
use crosstalk_envelope::meta::Digest;

/// The prefix of the id of a thread in the first of the References.
const THREAD: &str = "thread=";

/// The longest Message-ID: a line of a mail has no more characters.
const MAX_ID_CHARS: usize = 900;

/// An id of a conversation, as in a Message-ID of this gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailId {
    /// A message, and the token behind its id if there is one.
    Message {
        /// The id of the message.
        id: String,
        /// The part that a gateway adds to recognise an answer.
        token: Option<String>,
    },
    /// A thread.
    Thread(String),
}

impl MailId {
    /// A message without a token.
    pub fn message(id: impl Into<String>) -> Self {
        Self::Message {
            id: id.into(),
            token: None,
        }
    }

    /// The Message-ID under a domain: `<id@domain>`, `<id.token@domain>` or `<thread=id@domain>`. Every byte of an id or token
    /// that is no ASCII letter, digit, `-` or `_` is written as `%XX`, so that nothing in it can end the field.
    ///
    /// None if the domain is no domain, or the result is too long for a mail.
    ///
    /// ```
    /// use crosstalk_email::MailId;
    /// let id = MailId::message("01K74V6VX0S86Z5JATM52C3M7Z");
    /// let text = id.to_message_id("relay.example").unwrap();
    /// assert_eq!(text, "<01K74V6VX0S86Z5JATM52C3M7Z@relay.example>");
    /// assert_eq!(MailId::parse(&text, "Relay.Example"), Some(id));
    /// assert_eq!(MailId::parse("<1@elsewhere.example>", "relay.example"), None);
    /// ```
    pub fn to_message_id(&self, domain: &str) -> Option<String> {
        if !is_domain(domain) {
            return None;
        }
        let local = match self {
            Self::Message { id, token: None } => escape_id(id),
            Self::Message {
                id,
                token: Some(token),
            } => format!("{}.{}", escape_id(id), escape_id(token)),
            Self::Thread(id) => format!("{THREAD}{}", escape_id(id)),
        };
        let text = format!("<{local}@{domain}>");
        let is_empty =
            local.is_empty() || local == THREAD || local.starts_with('.') || local.ends_with('.');
        (!is_empty && text.len() <= MAX_ID_CHARS).then_some(text)
    }

    /// The id of a Message-ID that was written under this domain.
    pub fn parse(message_id: &str, domain: &str) -> Option<Self> {
        let inner = message_id.trim().strip_prefix('<')?.strip_suffix('>')?;
        let (local, own) = inner.rsplit_once('@')?;
        if !own.eq_ignore_ascii_case(domain) {
            return None;
        }
        if let Some(thread) = local.strip_prefix(THREAD) {
            return unescape_id(thread).map(Self::Thread);
        }
        let (id, token) = match local.split_once('.') {
            Some((id, token)) => (id, Some(unescape_id(token)?)),
            None => (local, None),
        };
        let id = unescape_id(id)?;
        Some(Self::Message { id, token })
    }
}

/// The References of a mail about a message: its thread, then the messages before it, the oldest first.
///
/// ```
/// use crosstalk_email::references;
/// let text = references("T1", ["M1", "M2"], "relay.example").unwrap();
/// assert_eq!(text, "<thread=T1@relay.example> <M1@relay.example> <M2@relay.example>");
/// ```
pub fn references<'m>(
    thread: &str,
    ancestors: impl IntoIterator<Item = &'m str>,
    domain: &str,
) -> Option<String> {
    let thread = MailId::Thread(thread.to_owned()).to_message_id(domain)?;
    let ancestors = ancestors
        .into_iter()
        .map(|id| MailId::message(id).to_message_id(domain));
    let all: Option<Vec<String>> = std::iter::once(Some(thread)).chain(ancestors).collect();
    all.map(|ids| ids.join(" "))
}

/// The place of a mail in a conversation of this gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPlace {
    /// The message that the mail answers.
    pub parent: Option<String>,
    /// The token that stood behind its id.
    pub token: Option<String>,
    /// The thread.
    pub thread: Option<String>,
}

/// Where a mail belongs, by In-Reply-To and References. A mail program that changes In-Reply-To leaves the last reference.
///
/// ```
/// use crosstalk_email::thread_place;
/// let place = thread_place(Some("<M2@relay.example>"), &["<thread=T1@relay.example>", "<M1@relay.example>"], "relay.example");
/// assert_eq!((place.parent.as_deref(), place.thread.as_deref()), (Some("M2"), Some("T1")));
/// ```
pub fn thread_place(in_reply_to: Option<&str>, references: &[&str], domain: &str) -> ThreadPlace {
    let known: Vec<MailId> = references
        .iter()
        .filter_map(|id| MailId::parse(id, domain))
        .collect();
    let is_message = |id: &MailId| matches!(id, MailId::Message { .. });
    let direct = in_reply_to
        .and_then(|id| MailId::parse(id, domain))
        .filter(is_message);
    let parent = direct.or_else(|| known.iter().rev().find(|id| is_message(id)).cloned());
    let thread = known.into_iter().find_map(|id| match id {
        MailId::Thread(thread) => Some(thread),
        MailId::Message { .. } => None,
    });
    let (parent, token) = match parent {
        Some(MailId::Message { id, token }) => (Some(id), token),
        _ => (None, None),
    };
    ThreadPlace {
        parent,
        token,
        thread,
    }
}

/// The id of the message that a mail without an envelope becomes: the same one whenever the mail is read again. It is a ULID
/// of the time that the mail gives, and of the digest of its Message-ID.
///
/// ```
/// use crosstalk_email::id_of_mail;
/// use crosstalk_envelope::{Timestamp, id::time_of};
/// let sent = Timestamp::from_millis(1_759_996_800_000);
/// let id = id_of_mail("<CAF=x1@mail.example>", sent);
/// assert_eq!(id, id_of_mail("<CAF=x1@mail.example>", sent));
/// assert_eq!(time_of(&id), Some(sent));
/// ```
pub fn id_of_mail(message_id: &str, sent_at: Timestamp) -> String {
    let digest = Digest::of(message_id.trim().as_bytes());
    let bytes = digest.0.into_iter().take(10);
    let tail = bytes.fold(0_u128, |tail, byte| (tail << 8) | u128::from(byte));
    ulid_of(u64::try_from(sent_at.as_millis()).unwrap_or(0), tail)
}

/// The message ids of a header field, each with its angle brackets.
pub fn ids_of_field(value: &str) -> Vec<String> {
    message_ids(value)
}

/// Whether a text is one Message-ID of any program, which a header field can hold as it is.
pub(crate) fn is_message_id(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|t| t.strip_suffix('>'));
    let is_plain = |b: u8| matches!(b, b'!'..=b'~') && b != b'<' && b != b'>';
    inner.is_some_and(|id| id.len() <= MAX_ID_CHARS && id.contains('@') && id.bytes().all(is_plain))
}

pub(crate) fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    domain.len() <= 253 && domain.split('.').all(is_label)
}

fn escape_id(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn unescape_id(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => bytes.push(byte),
            _ => return None,
        }
    }
    let id = String::from_utf8(bytes).ok()?;
    // One spelling for each id: no second Message-ID means the same message.
    (!id.is_empty() && escape_id(&id) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were() {
        for id in [
            "01K74V6VX0S86Z5JATM52C3M7Z",
            "a.b",
            "ü >\r\nBcc: x",
            "thread=1",
            "%41",
            "thread",
        ] {
            for mail in [
                MailId::message(id),
                MailId::Thread(id.to_owned()),
                MailId::Message {
                    id: id.to_owned(),
                    token: Some("t.1=".to_owned()),
                },
            ] {
                let text = mail.to_message_id("r.example").unwrap();
                assert!(
                    text.is_ascii() && !text.contains(char::is_whitespace),
                    "{text}"
                );
                assert_eq!(MailId::parse(&text, "r.example"), Some(mail));
            }
        }
    }

    #[test]
    fn other_spellings_and_domains_are_rejected() {
        for text in [
            "<%4d@r>", "<%41@r>", "<a b@r>", "a@r", "<@r>", "<a@s>", "<%zz@r>", "<.t@r>",
        ] {
            assert_eq!(MailId::parse(text, "r"), None, "{text}");
        }
        for domain in ["", "a b", "a\r\nb", "a..b", "x>"] {
            assert_eq!(MailId::message("1").to_message_id(domain), None, "{domain}");
        }
        assert_eq!(MailId::message("").to_message_id("r"), None);
    }

    #[test]
    fn the_last_reference_stands_in_for_a_lost_parent() {
        let place = thread_place(
            Some("<x@other>"),
            &["<M1@r>", "<M2.tok@r>", "<y@other>"],
            "r",
        );
        assert_eq!(place.parent.as_deref(), Some("M2"));
        assert_eq!(place.token.as_deref(), Some("tok"));
    }
}
