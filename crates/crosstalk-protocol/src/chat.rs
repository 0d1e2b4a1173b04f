//! Chat exports: who said what, in Markdown as exporters and people write it and in the JSON of ChatGPT and Claude, and the
//! envelopes of it.
//!
//! ```text
//! text ── read_chat ────────────────┐
//! JSON ── ExportedChat::into_chat ──┴──> Chat ── messages ──> Builder, Builder, …
//! ```
//!
//! A text that holds envelopes is not for this module: scan it first.

mod export;
mod import;
mod label;
mod speaker;

pub use export::ExportedChat;
pub use import::ChatImport;
pub use speaker::Speaker;

use crosstalk_envelope::Timestamp;
use label::{Label, Style, labels};
use speaker::Word;

/// A conversation that was exported from a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// Its name.
    pub title: Option<String>,
    /// When it began, where the export says so.
    pub at: Option<Timestamp>,
    /// The turns in order: each comes after the one that it follows. There is at least one.
    pub turns: Vec<ChatTurn>,
    /// Its id in the program that exported it, if it has one.
    pub key: Option<String>,
    /// The assistant that it was with, where the export tells by its form.
    pub assistant: Option<&'static str>,
}

/// What one speaker said at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatTurn {
    /// Who.
    pub speaker: Speaker,
    /// What: a piece of the export, never empty.
    pub text: String,
    /// When, where the export says so.
    pub at: Option<Timestamp>,
    /// The place of the turn that it follows; nothing at the beginning of a branch.
    pub after: Option<usize>,
    /// Its id in the program that exported it, if it has one.
    pub key: Option<String>,
}

/// Reads a chat export. Nothing if the text is none: fewer than two turns, or one speaker only.
///
/// ```
/// use crosstalk_protocol::chat::{Speaker, read_chat};
/// let chat = read_chat("# Ports\n\n**You:** Which port?\n\n**Claude:** 443.\n").unwrap();
/// assert_eq!(chat.title.as_deref(), Some("Ports"));
/// assert_eq!(chat.turns[0].speaker, Speaker::Person);
/// assert_eq!(chat.turns[1].speaker, Speaker::Assistant("CLAUDE".into()));
/// assert_eq!(chat.turns[1].text, "443.");
/// assert!(read_chat("# Ports\n\nA document about ports.\n").is_none());
/// ```
pub fn read_chat(text: &str) -> Option<Chat> {
    let found = labels(text);
    let mut tried: Vec<Style> = Vec::new();
    for label in &found {
        if tried.contains(&label.style) {
            continue;
        }
        tried.push(label.style);
        let chosen = consistent(&found, label.style);
        let chat = in_style(text, &chosen);
        if chat.is_some() {
            return chat;
        }
    }
    None
}

/// The labels of one style as one exporter writes them: the same words, and headings of the same levels.
fn consistent<'t>(found: &[Label<'t>], style: Style) -> Vec<Label<'t>> {
    let all = || found.iter().filter(|l| l.style == style);
    let pair = [
        all().find(|l| l.is_person()),
        all().find(|l| l.is_assistant()),
    ];
    let fits = |label: &&Label<'t>| {
        let mut pair = pair.iter().flatten();
        let level = pair.clone().any(|p| p.level == label.level);
        level && (label.is_system() || pair.any(|p| p.is_alike(label)))
    };
    all().filter(fits).cloned().collect()
}

fn in_style(text: &str, labels: &[Label<'_>]) -> Option<Chat> {
    let preamble = text.get(..labels.first()?.line.start)?;
    let front = ChatFront::read(preamble);
    let mut turns = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        let end = labels.get(number + 1).map_or(text.len(), |l| l.line.start);
        let (said, at) = label::timed(text.get(label.after..end)?);
        let said = trim_turn(said);
        if said.is_empty() {
            continue;
        }
        turns.push(ChatTurn {
            speaker: label.speaker(&front),
            text: said.to_owned(),
            at: label.at.or(at),
            after: turns.len().checked_sub(1),
            key: None,
        });
    }
    let first = turns.first()?;
    let several = turns.iter().any(|t| t.speaker != first.speaker);
    several.then_some(Chat {
        title: front.title,
        at: front.at,
        turns,
        key: None,
        assistant: None,
    })
}

/// A turn without blank lines around it, and without the rule that separates it from the next.
fn trim_turn(text: &str) -> &str {
    let text = trim_blank_lines(text);
    let start = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    match text.split_at_checked(start) {
        Some((before, last)) if is_rule(last) => trim_blank_lines(before),
        _ => text,
    }
}

/// Without blank lines at the beginning and white space at the end; the indent of the first line stays.
fn trim_blank_lines(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((first, rest)) = text.split_once('\n') {
        if !first.trim().is_empty() {
            break;
        }
        text = rest;
    }
    if text.contains('\n') {
        text
    } else {
        text.trim_start()
    }
}

/// `---`, `***`, `* * *` and so on.
fn is_rule(line: &str) -> bool {
    let marks: Vec<char> = line.chars().filter(|c| !c.is_whitespace()).collect();
    let is_mark = |c: &char| matches!(c, '-' | '*' | '_' | '=' | '─' | '—');
    marks.len() >= 3 && marks.iter().all(is_mark)
}

/// What an export says about itself.
#[derive(Debug, Default)]
struct ChatFront {
    title: Option<String>,
    at: Option<Timestamp>,
    /// The assistant that the title, the front matter or the text around them names.
    assistant: Option<&'static str>,
}

/// When a chat began, by the names that exporters use. When it was changed or exported is another matter.
const CREATED: [&str; 6] = [
    "created",
    "created_at",
    "created at",
    "create_time",
    "date created",
    "date",
];

impl ChatFront {
    fn read(preamble: &str) -> Self {
        let mut front = Self {
            assistant: Word::mentioned(preamble),
            ..Self::default()
        };
        let mut rank = CREATED.len();
        for line in preamble.lines() {
            let line = line.trim();
            if let Some(title) = line.strip_prefix("# ") {
                front.title.get_or_insert_with(|| title.trim().to_owned());
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let noise = ['*', '_', '-', '>', ' ', '\t', '"', '\''];
            let key = key.trim_matches(noise).to_lowercase();
            let value = value.trim_matches(noise);
            if key == "title" && !value.is_empty() {
                front.title = Some(value.to_owned());
            }
            let found = CREATED.iter().position(|c| *c == key);
            let at = label::time_in(value);
            if let Some(better) = found.filter(|f| *f < rank && at.is_some()) {
                (rank, front.at) = (better, at);
            }
        }
        front.title = front.title.filter(|t| !t.is_empty());
        front
    }
}
