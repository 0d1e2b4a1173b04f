//! The head of a pasted envelope: names, values, blocks, and the line that opens the body.
//!
//! Implements PST-008, PST-009, PST-012 to PST-015, PST-018, PST-019, PST-025, PST-026 and PST-028.

use super::body::Opener;
use super::clean;
use super::line::PasteLine;
use super::name::{self, Named, named};
use super::repair::Repaired;
use super::value::{FieldForm, FieldKind, HeadField};
use crate::grammar::{BodyKind, CoreHeader, Reserved, is_name};
use crate::limit;
use crate::registry::{Intent, LEGACY_INTENTS, Namespace, rule};
use crate::text::trim;
use std::collections::HashSet;
use std::ops::Range;

/// The lines above the body.
#[derive(Debug, Default)]
pub(super) struct PasteHead {
    fields: Vec<HeadField>,
    /// The namespace of the open block.
    pub(super) namespace: Option<String>,
    /// A blank line stands below the last field.
    gap: bool,
}

impl PasteHead {
    /// Takes a line: the one that opens the body is given back.
    pub(super) fn take<'t>(
        &mut self,
        line: &PasteLine<'t>,
        out: &mut Repaired,
    ) -> Option<Opener<'t>> {
        if line.text.contains(clean::is_separator) {
            // Another reader could take it for a line end: the grammar rejects it.
            self.unreadable(&line.text, line);
            return None;
        }
        let cleaned = clean::head_line(&line.text);
        note_cleaning(line, &cleaned, out);
        let text = cleaned.text.trim_end();
        if text.trim_start().is_empty() {
            self.gap = true;
            return None;
        }
        let found = named(text);
        let reserved = found.as_ref().and_then(|n| Reserved::named(n.name));
        if reserved.is_none() && self.continues(text, found.as_ref()) {
            if let Some(last) = self.fields.last_mut() {
                last.join(text.trim_start(), line, out);
            }
            return None;
        }
        self.gap = false;
        match (found, reserved) {
            (Some(named), Some((Reserved::Body(kind), _))) => {
                return Some(open_body(kind, &named, line, out));
            }
            (Some(named), _) => self.field(&named, line, out),
            (None, _) => self.unreadable(text, line),
        }
        None
    }

    /// Keeps a line as it is: the grammar says what is wrong with it.
    fn unreadable(&mut self, text: &str, line: &PasteLine<'_>) {
        self.fields.push(HeadField {
            name: text.to_owned(),
            value: String::new(),
            origin: line.span.clone(),
            form: FieldForm::new(FieldKind::Unreadable, false, ""),
        });
    }

    /// Whether a line without a reserved name is the rest of the field above it.
    fn continues(&self, text: &str, named: Option<&Named<'_>>) -> bool {
        let Some(last) = self.fields.last() else {
            return false;
        };
        // Inside an open bracket a line that looks like a header of its own is one.
        let goes_on = |n: &Named<'_>| n.value.starts_with("//") || text.ends_with([',', ']', '}']);
        if (last.is_open() && named.is_none_or(goes_on)) || (last.takes_item(text) && !self.gap) {
            return true;
        }
        // claude://… at the start of a line is the rest of a route, not a header; sha256:… and ed25519:… below a name
        // without a value are its value.
        let is_address = |n: &Named<'_>| n.value.starts_with("//");
        let is_value = |n: &Named<'_>| {
            last.value.is_empty()
                && n.name.starts_with(|c: char| c.is_ascii_lowercase())
                && !n.value.starts_with([' ', '\t'])
                && !n.value.is_empty()
        };
        let is_rest = |n: &Named<'_>| !n.markdown && (is_address(n) || is_value(n));
        !self.gap && last.goes_on(text) && named.is_none_or(is_rest)
    }

    fn field(&mut self, named: &Named<'_>, line: &PasteLine<'_>, out: &mut Repaired) {
        if let Some(last) = self.fields.last_mut() {
            last.close();
        }
        let reserved = Reserved::named(named.name).map(|(r, _)| r);
        let name = reserved.map_or(named.name, |r| r.as_str());
        name::note(line, named, name, out);
        let mut value = trim(named.value).to_owned();
        if let Some(reserved) = reserved {
            value = core_value(reserved, value, &line.place(trim(named.value)), out);
        }
        if reserved == Some(Reserved::Meta) {
            self.namespace = Some(value.clone());
        }
        self.fields.push(HeadField {
            name: name.to_owned(),
            form: FieldForm::new(
                FieldKind::of(name, self.namespace.as_deref()),
                named.bulleted,
                &value,
            ),
            value,
            origin: line.span.clone(),
        });
    }

    /// `Lines` of `meta: integrity`.
    pub(super) fn declared_lines(&self) -> Option<usize> {
        let is_meta = |f: &&HeadField| f.name == "meta";
        let mut fields = self.fields.iter();
        fields.find(|f| is_meta(f) && f.value == "integrity")?;
        let mut block = fields.take_while(|f| !is_meta(f));
        block.find(|f| f.name == "Lines")?.value.parse().ok()
    }

    /// Writes the fields; of two equal names the first wins.
    pub(super) fn emit(mut self, out: &mut Repaired) {
        if let Some(last) = self.fields.last_mut() {
            last.close();
        }
        let mut names = SeenNames::default();
        if let Some(field) = self.fields.get(limit::HEADERS) {
            let message = format!("there are more than {} headers and keys", limit::HEADERS);
            out.reject(&rule::TOO_MANY_HEADERS, field.origin.clone(), message);
        }
        for field in self.fields {
            if let Err((rule, what)) = names.admit(&field) {
                out.note(rule, field.origin, what);
                continue;
            }
            if names.dropping && !is_core(&field) {
                continue;
            }
            if field.form.kind == FieldKind::Unreadable || !is_name(field.name.as_bytes()) {
                out.emit(&field.name, field.origin);
            } else {
                let line = format!("{}: {}", field.name, field.value);
                out.emit(line.trim_end(), field.origin);
            }
        }
    }
}

fn is_core(field: &HeadField) -> bool {
    CoreHeader::from_name(&field.name).is_some()
}

/// The names that were written so far.
#[derive(Default)]
struct SeenNames {
    headers: HashSet<String>,
    namespaces: HashSet<String>,
    keys: HashSet<String>,
    in_block: bool,
    /// The block appears twice: its keys are left out with it.
    dropping: bool,
}

type Omission = (&'static crate::registry::Rule, String);

impl SeenNames {
    /// Whether a field is written, or why not.
    fn admit(&mut self, field: &HeadField) -> Result<(), Omission> {
        let twice = || {
            format!(
                "`{}` appears twice; the second one was left out",
                field.name
            )
        };
        if field.form.kind == FieldKind::Unreadable {
            return Ok(());
        }
        if field.name == "meta" {
            self.in_block = true;
            self.keys.clear();
            let repeats = Namespace::find(&field.value).is_some_and(|n| n.repeats);
            self.dropping = !self.namespaces.insert(field.value.clone()) && !repeats;
            if self.dropping {
                let what = format!(
                    "`meta: {}` appears twice; the second block was left out",
                    field.value
                );
                return Err((&rule::DUPLICATE_DROPPED, what));
            }
            return Ok(());
        }
        if self.in_block {
            // A core header in a block is for the grammar to reject.
            let is_new = is_core(field)
                || self.dropping
                || self.keys.insert(field.name.to_ascii_lowercase());
            return is_new
                .then_some(())
                .ok_or_else(|| (&rule::DUPLICATE_DROPPED, twice()));
        }
        if is_core(field) && field.value.is_empty() {
            return Err((
                &rule::EMPTY_DROPPED,
                format!("`{}` is empty and was left out", field.name),
            ));
        }
        let is_new = self.headers.insert(field.name.to_ascii_lowercase());
        is_new
            .then_some(())
            .ok_or_else(|| (&rule::DUPLICATE_DROPPED, twice()))
    }
}

/// Reports what was cleaned in a line outside the body.
pub(super) fn note_cleaning(
    line: &PasteLine<'_>,
    cleaned: &clean::Cleaned<'_>,
    out: &mut Repaired,
) {
    for (at, rule, what) in [
        (
            cleaned.nbsp,
            &rule::NBSP,
            "no-break spaces were read as spaces",
        ),
        (
            cleaned.zero_width,
            &rule::ZERO_WIDTH,
            "zero-width characters were removed",
        ),
        (
            cleaned.escape,
            &rule::ESCAPES,
            "escapes outside the body were resolved",
        ),
    ] {
        if let Some(at) = at {
            out.note_once(rule, line.byte(at), what);
        }
    }
}

fn open_body<'t>(
    kind: BodyKind,
    named: &Named<'_>,
    line: &PasteLine<'t>,
    out: &mut Repaired,
) -> Opener<'t> {
    let name = kind.as_str();
    name::note(line, named, name, out);
    let value = trim(named.value);
    // The text is taken as it was received: what was cleaned is the head only.
    let received = received_value(&line.text);
    let inline = match value {
        "|" => None,
        "" | "|-" | "|+" | ">" | ">-" | ">+" | "|2" => {
            let what = format!("`{name}:` without `|` was read");
            out.note(&rule::MARKER_SPELLING, line.span.clone(), what);
            None
        }
        _ => {
            let text = received
                .strip_prefix('|')
                .filter(|t| t.starts_with([' ', '\t']));
            let text = trim(text.unwrap_or(received));
            let start = line.text.len() - line.text.trim_end().len();
            let end = line.text.len() - start;
            let from = line
                .text
                .get(..end)
                .map_or(0, |t| t.len() - text.len().min(t.len()));
            Some(line.slice(from..end))
        }
    };
    Opener {
        name,
        origin: line.span.clone(),
        inline,
    }
}

/// The text behind the name that opens the body, as it was received.
fn received_value(line: &str) -> &str {
    let behind = line.find([':', '：']).and_then(|at| line.get(at..));
    let mut chars = behind.unwrap_or("").chars();
    chars.next();
    let value = trim(chars.as_str());
    match value.strip_prefix("**") {
        Some(rest) if line.trim_start().starts_with("**") => trim(rest),
        _ => value,
    }
}

/// The quotes that chats put around a value.
const QUOTES: [(char, char); 10] = [
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('\u{201c}', '\u{201d}'),
    ('\u{201e}', '\u{201c}'),
    ('\u{201e}', '\u{201d}'),
    ('\u{2018}', '\u{2019}'),
    ('\u{201a}', '\u{2018}'),
    ('\u{ab}', '\u{bb}'),
    ('\u{bb}', '\u{ab}'),
];

/// One word without the quotes around it.
pub(super) fn unquoted(value: &str) -> Option<&str> {
    let inside = |(open, close): (char, char)| value.strip_prefix(open)?.strip_suffix(close);
    let word = QUOTES.into_iter().find_map(inside)?;
    (!word.is_empty() && !word.contains(char::is_whitespace)).then_some(word)
}

fn core_value(
    reserved: Reserved,
    mut value: String,
    at: &Range<usize>,
    out: &mut Repaired,
) -> String {
    let is_word = matches!(
        reserved,
        Reserved::Core(
            CoreHeader::Thread | CoreHeader::Parent | CoreHeader::Message | CoreHeader::Intent
        )
    );
    if let Some(word) = unquoted(&value).filter(|_| is_word) {
        let what = "the quotes around a value were removed";
        out.note(&rule::ID_COMMENT, at.clone(), what);
        value = word.to_owned();
    }
    match reserved {
        Reserved::Core(CoreHeader::Thread | CoreHeader::Parent | CoreHeader::Message) => {
            let Some(comment) = comment_in(&value) else {
                return value;
            };
            let place = (at.start + comment).min(at.end)..at.end;
            out.note(
                &rule::ID_COMMENT,
                place,
                "the comment behind an id was removed",
            );
            value.get(..comment).unwrap_or("").trim_end().to_owned()
        }
        Reserved::Core(CoreHeader::Intent) => {
            let Some(intent) = intent_in_another_case(&value) else {
                return value;
            };
            let what = format!("the intent was read as {intent}");
            out.note(&rule::INTENT_CASE, at.clone(), what);
            intent.to_owned()
        }
        Reserved::Meta if value.bytes().any(|b| b.is_ascii_uppercase()) => {
            let what = "the namespace was read in lower case";
            out.note(&rule::NAMESPACE_CASE, at.clone(), what);
            value.to_ascii_lowercase()
        }
        _ => value,
    }
}

/// Where the comment behind an id begins.
pub(super) fn comment_in(value: &str) -> Option<usize> {
    let mut marks = value.match_indices('#').map(|(at, _)| at);
    let is_apart = |before: &str| before.is_empty() || before.ends_with([' ', '\t']);
    marks.find(|at| value.get(..*at).is_some_and(is_apart))
}

/// The known intent that a text is in another case.
pub(super) fn intent_in_another_case(value: &str) -> Option<&'static str> {
    let known = Intent::ALL
        .iter()
        .map(|i| i.as_str())
        .chain(LEGACY_INTENTS.iter().map(|(name, _)| *name));
    let mut found = known.filter(|name| name.eq_ignore_ascii_case(value));
    found.next().filter(|name| *name != value)
}
