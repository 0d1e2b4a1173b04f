//! Values that stand on several lines: wrapped ones, flows and lists (PST-012, PST-014).

use super::line::PasteLine;
use super::repair::Repaired;
use crate::flow::Flow;
use crate::grammar::{CoreHeader, Reserved};
use crate::registry::{Namespace, ValueKind, rule};
use std::ops::Range;

/// A header, a `meta:` line or a key, with its value in one piece.
#[derive(Debug)]
pub(super) struct HeadField {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) origin: Range<usize>,
    pub(super) form: FieldForm,
}

/// How the value of a field goes on in the next line.
#[derive(Debug)]
pub(super) struct FieldForm {
    pub(super) kind: FieldKind,
    pub(super) bulleted: bool,
    brackets: OpenBrackets,
    /// The value is a list of `- item` lines; its bracket is still open.
    listing: bool,
    /// The value is one long word, as of base64 or hex.
    unbroken: bool,
}

/// The form of a value, which decides how its lines are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// It has spaces.
    Words,
    /// It has none: an id, an address, a digest, base64, an attachment.
    Word,
    /// A list of addresses.
    Addresses,
    /// The name of an intent or a namespace: it does not go on.
    Fixed,
    /// No field at all: the grammar will say so.
    Unreadable,
}

impl FieldKind {
    /// The kind of a field, inside a META block or above.
    pub(super) fn of(name: &str, namespace: Option<&str>) -> Self {
        use ValueKind::{Address, Addresses, Attachment, Base64, Digest, Key, List};
        match Reserved::named(name) {
            Some((
                Reserved::Core(CoreHeader::Thread | CoreHeader::Parent | CoreHeader::Message),
                _,
            )) => Self::Word,
            Some((Reserved::Core(CoreHeader::Intent) | Reserved::Meta, _)) => Self::Fixed,
            Some(_) => Self::Words,
            None => {
                let known = namespace.and_then(Namespace::find);
                match known.and_then(|n| n.kind_of(name)).map(|(kind, _)| kind) {
                    Some(Address | Attachment | Base64 | Digest | Key) => Self::Word,
                    Some(Addresses | List) => Self::Addresses,
                    _ => Self::Words,
                }
            }
        }
    }
}

impl FieldForm {
    pub(super) fn new(kind: FieldKind, bulleted: bool, value: &str) -> Self {
        let mut form = Self {
            kind,
            bulleted,
            brackets: OpenBrackets::default(),
            listing: false,
            unbroken: value.len() >= 32 && is_unbroken(value),
        };
        if Flow::is_meant(value) {
            form.brackets.feed(value);
        }
        form
    }
}

impl HeadField {
    /// Whether the value is a flow that is not closed yet.
    pub(super) fn is_open(&self) -> bool {
        self.form.brackets.depth > 0
    }

    /// Whether the list below takes this line.
    pub(super) fn takes_item(&self, text: &str) -> bool {
        let may_list = self.form.listing || (self.value.is_empty() && !self.form.bulleted);
        may_list
            && list_item(text).is_some()
            && matches!(
                self.form.kind,
                FieldKind::Words | FieldKind::Addresses | FieldKind::Word
            )
            && CoreHeader::from_name(&self.name).is_none()
    }

    /// Whether a line that is no `Name: value` can be the rest of the value.
    pub(super) fn goes_on(&self, text: &str) -> bool {
        match self.form.kind {
            FieldKind::Unreadable => false,
            FieldKind::Fixed => self.value.is_empty(),
            _ => !self.form.listing && !text.starts_with('#'),
        }
    }

    /// Takes another line into the value.
    pub(super) fn join(&mut self, text: &str, line: &PasteLine<'_>, out: &mut Repaired) {
        let what = "a list over several lines was joined";
        if let Some(item) = list_item(text).filter(|_| self.takes_item(text)) {
            self.value
                .push_str(if self.form.listing { ", " } else { "[" });
            push_quoted(item, &mut self.value);
            self.form.listing = true;
            out.note_once(&rule::FLOW_LINES, line.span.clone(), what);
            return;
        }
        let open = self.is_open();
        self.form.unbroken = self.form.unbroken && is_unbroken(text);
        let glue = match self.form.kind {
            _ if self.value.is_empty() || self.form.unbroken => "",
            FieldKind::Addresses if open && self.form.brackets.quote.is_some() => "",
            FieldKind::Word => "",
            _ => " ",
        };
        self.value.push_str(glue);
        self.value.push_str(text);
        if open {
            self.form.brackets.feed(glue);
            self.form.brackets.feed(text);
            out.note_once(&rule::FLOW_LINES, line.span.clone(), what);
        } else {
            out.note(
                &rule::WRAPPED,
                line.span.clone(),
                "a wrapped value was joined again",
            );
        }
    }

    /// Ends the value.
    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.form.listing) {
            self.value.push(']');
        }
    }
}

/// How many brackets of a flow are open, read piece by piece.
#[derive(Debug, Default)]
struct OpenBrackets {
    depth: usize,
    quote: Option<char>,
    /// A quote may begin here.
    after_word: bool,
    escaped: bool,
}

impl OpenBrackets {
    fn feed(&mut self, text: &str) {
        for c in text.chars() {
            if let Some(quote) = self.quote {
                if std::mem::take(&mut self.escaped) {
                    continue;
                }
                self.escaped = c == '\\' && quote == '"';
                if c == quote {
                    self.quote = None;
                }
                continue;
            }
            match c {
                ' ' | '\t' => continue,
                '[' | '{' => self.depth += 1,
                ']' | '}' => self.depth = self.depth.saturating_sub(1),
                '"' | '\'' if !self.after_word => self.quote = Some(c),
                _ => {}
            }
            self.after_word = !matches!(c, '[' | '{' | ',' | ':');
        }
    }
}

/// `- item` of a YAML list below a key without a value.
fn list_item(text: &str) -> Option<&str> {
    let item = text.trim_start().strip_prefix(['-', '*', '•'])?;
    Some(item.strip_prefix([' ', '\t'])?.trim()).filter(|t| !t.is_empty())
}

/// An item as a quoted text of a flow.
fn push_quoted(item: &str, value: &mut String) {
    let quotes = [('"', '"'), ('\'', '\''), ('“', '”')];
    let bare = quotes
        .iter()
        .find_map(|(open, close)| item.strip_prefix(*open)?.strip_suffix(*close));
    value.push('"');
    for c in bare.unwrap_or(item).chars() {
        if matches!(c, '"' | '\\') && bare.is_none_or(|_| !item.starts_with('"')) {
            value.push('\\');
        }
        value.push(c);
    }
    value.push('"');
}

/// One long word, broken anywhere and not at a space.
fn is_unbroken(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+/=:-_".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_as_the_flow_reads_them() {
        for (value, open) in [
            ("[a, b", true),
            ("[it's, b]", false),
            ("['it''s', b]", false),
            ("[\"a]\\\"\", b]", false),
            ("{a: [1, 2", true),
            ("[\"a", true),
        ] {
            let field = HeadField {
                name: "Targets".into(),
                value: value.into(),
                origin: 0..0,
                form: FieldForm::new(FieldKind::Words, false, value),
            };
            assert_eq!(field.is_open(), open, "{value}");
        }
    }

    #[test]
    fn items_are_quoted_once() {
        for (item, quoted) in [
            ("claude://a", "\"claude://a\""),
            ("\"b\"", "\"b\""),
            ("'c'", "\"c\""),
            ("say \"x\"", "\"say \\\"x\\\"\""),
        ] {
            let mut value = String::new();
            push_quoted(item, &mut value);
            assert_eq!(value, quoted);
        }
    }
}
