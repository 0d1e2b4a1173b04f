//! Threads as files: envelopes to read in again, a document to read, and names for the files.

use crate::bundle::{counts, quote};
use crate::store::{Record, Thread};
use crosstalk_envelope::fence;
use std::fmt::Write as _;

/// The envelopes, one after the other, each as it is kept; the strict reading takes them in again.
///
/// ```
/// assert_eq!(crosstalk_protocol::archive::to_text(&[]), "");
/// ```
pub fn to_text(records: &[Record]) -> String {
    let mut out = String::new();
    for record in records {
        if !out.is_empty() {
            out.push('\n');
        }
        // A byte order mark means something only at the beginning of a file.
        let text = record.text.trim_start_matches('\u{feff}');
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// A thread as a document in Markdown. Whatever a message says, it stays within its own part: bodies are in code
/// fences, names and titles are escaped, and nothing in it is taken for an envelope.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::{archive::to_markdown, store::Thread};
/// let at = Timestamp::from_millis(1_760_025_600_000);
/// let thread = Thread {
///     id: "01K74V6R0074G0T7MAHPXVDNXW".into(),
///     context: Some("ports <b>".into()),
///     session: None,
///     parties: vec!["CLAUDE".into(), "CHATGPT".into()],
///     messages: 0,
///     waiting: 0,
///     asked: 0,
///     first_at: at,
///     last_at: at,
///     last: String::new(),
///     last_seq: 0,
///     closed_at: None,
///     open: Vec::new(),
///     has_answer: false, failed: Vec::new(), electorates: Vec::new(),
/// };
/// assert!(to_markdown(&thread, &[]).starts_with("# ports \\<b\\>\n\n- Thread: 01K74V6R0074G0T7MAHPXVDNXW\n"));
/// ```
pub fn to_markdown(thread: &Thread, records: &[Record]) -> String {
    let mut out = String::new();
    let title = thread.context.as_deref().unwrap_or("Conversation");
    // Writing to a String can't fail.
    let _ = writeln!(out, "# {}\n", plain(title));
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(out, "- {name}: {value}");
    };
    fact("Thread", &plain(&thread.id));
    if let Some(session) = &thread.session {
        fact("Session", &plain(session));
    }
    let parties: Vec<String> = thread.parties.iter().map(|p| plain(p)).collect();
    fact("Between", &parties.join(", "));
    let span = format!(
        "{}, {} to {}",
        thread.messages, thread.first_at, thread.last_at
    );
    fact("Messages", &span);
    if let Some(closed) = thread.closed_at {
        fact("Closed", &closed.to_string());
    }
    for (number, record) in (1..).zip(records) {
        write_message(&mut out, number, record);
    }
    out
}

fn write_message(out: &mut String, number: usize, record: &Record) {
    let (from, to) = (plain(&record.sender), plain(&record.receiver));
    let intent = plain(record.intent.as_deref().unwrap_or("RESPOND"));
    let _ = writeln!(out, "\n## {number}. {from} → {to}: {intent}\n");
    let at = record.written_at.unwrap_or(record.at);
    let mut badge = record.verdict.as_str().to_owned();
    if let Some(pkid) = &record.pkid {
        let _ = write!(badge, " by {}", plain(pkid));
    }
    let _ = writeln!(out, "{at}, **{badge}**, {}", plain(&record.id));
    let document = record.document();
    if !counts(record) {
        out.push_str("\n**Do not act on this message.**\n");
    }
    for (label, value) in quote::said(&document) {
        let _ = writeln!(out, "\n{label}: {}", plain(value));
    }
    for (key, attachment) in document.envelope().attachments() {
        let name = attachment.ok().and_then(|a| a.name.or(Some(a.mime)));
        let name = name.map_or_else(|| "unreadable".to_owned(), plain);
        let _ = writeln!(out, "\nAttachment {}: {name}", plain(key));
    }
    let body: Vec<String> = document.body_lines().map(quote::visible).collect();
    let body = body.join("\n");
    if !body.trim().is_empty() {
        out.push('\n');
        out.push_str(&fence(&body));
    }
}

/// A text in one line, with nothing in it that Markdown or HTML would read.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = quote::visible(&words.join(" "));
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`'
                | '*'
                | '_'
                | '{'
                | '}'
                | '['
                | ']'
                | '<'
                | '>'
                | '('
                | ')'
                | '#'
                | '+'
                | '!'
                | '|'
                | '~'
                | '&'
                | '$'
                | '='
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The name of the file for a message, unique by its number: `0003-CLAUDE-RESPOND-01K74V8QF8570V52F7A8GSBCV2.crosstalk`.
///
/// It has only letters and digits of ASCII, `.`, `_` and `-`, at most 120 of them, and begins with the number: no
/// system has another meaning for it.
pub fn file_name(record: &Record, number: usize) -> String {
    let intent = record.intent.as_deref().unwrap_or("RESPOND");
    let mut name = format!("{number:04}");
    for (part, most) in [(record.sender.as_str(), 32), (intent, 16), (&record.id, 36)] {
        let part = safe(part, most);
        if !part.is_empty() {
            name.push('-');
            name.push_str(&part);
        }
    }
    name.push_str(".crosstalk");
    name
}

/// The characters of a text that every file system takes, with one `-` for what lies between them.
fn safe(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' || (c == '.' && !out.ends_with(['.', '-'])) {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == most {
            break;
        }
    }
    out.trim_matches(['-', '.']).to_owned()
}
