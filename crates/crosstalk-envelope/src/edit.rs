//! Changes to a document that leave every other byte alone (ENV-080): how a relay adds its hop.

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Reading};
use crate::grammar::{CoreHeader, EntryKind, Span};
use crate::registry::rule;
use std::ops::Range;

/// A text of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditPlace<'d> {
    /// The value of a header above the META blocks, by its name.
    Header(&'d str),
    /// A value of META.
    Key {
        /// The namespace of its block.
        namespace: &'d str,
        /// The key.
        key: &'d str,
    },
    /// The lines of the body, with their indent and their line ends.
    Body,
}

/// Edits of one document; each is a line that is put in, replaced or taken out.
///
/// ```
/// use crosstalk_envelope::{Document, Edit, Reading};
/// let text = "[[A→B v1]]\r\nuser: u  \r\nsession: s\r\ncontext: c\r\nintent: NOTE\r\nbody: |\r\n  x\r\nsig: none\r\n[[END]]\r\n";
/// let document = Document::parse(text, Reading::Strict);
/// let edited = Edit::new(&document).unwrap().add_block("audit", &[("Hop", "1")]).unwrap().finish();
/// assert!(edited.contains("intent: NOTE\r\n\r\nmeta: audit\r\nHop: 1\r\n\r\nbody: |\r\n"));
/// assert_eq!(edited.replace("\r\nmeta: audit\r\nHop: 1\r\n\r\n", ""), text);
/// ```
#[derive(Debug)]
#[must_use]
pub struct Edit<'d> {
    document: &'d Document<'d>,
    /// Byte ranges of the text and what replaces them, in the order of the calls.
    splices: Vec<(Span, String)>,
    newline: &'static str,
}

impl<'d> Edit<'d> {
    /// Begins to edit. A repaired paste is edited as it was read, not as it came.
    ///
    /// # Errors
    /// The first error of a document that was not accepted.
    pub fn new(document: &'d Document<'d>) -> Result<Self, Diagnostic> {
        if let Some(fault) = document.diagnostics().iter().find(|d| d.is_error()) {
            return Err(fault.clone());
        }
        let newline = if document.text().contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        Ok(Self {
            document,
            splices: Vec::new(),
            newline,
        })
    }

    /// Adds a META block right above the body, between two blank lines, of which the upper one may be there already.
    ///
    /// # Errors
    /// A finding if a key or a value can't be written on a line.
    pub fn add_block(
        mut self,
        namespace: &str,
        fields: &[(&str, &str)],
    ) -> Result<Self, Diagnostic> {
        let at = self.document.parts().body.map_or(0, |b| b.mark.start());
        let mut lines = match self.is_below_a_blank_line(at) {
            true => String::new(),
            false => self.newline.to_owned(),
        };
        lines.push_str(&format!(
            "meta: {}{}",
            writable("meta", namespace)?,
            self.newline
        ));
        for (key, value) in fields {
            lines.push_str(&self.line(key, value)?);
        }
        lines.push_str(self.newline);
        self.splices.push((Span::new(at, 0), lines));
        Ok(self)
    }

    /// Whether the line above is blank, or will be because of an added block.
    fn is_below_a_blank_line(&self, at: usize) -> bool {
        let above = self.document.text().get(..at).unwrap_or("");
        let above = above.strip_suffix('\n').and_then(|a| a.rsplit('\n').next());
        let is_blank = above.is_some_and(|line| line.trim_ascii().is_empty());
        let is_block = |(span, new): &(Span, String)| span.start() == at && new.contains("meta: ");
        is_blank || self.splices.iter().any(is_block)
    }

    /// Sets a key of the first block of a namespace; the block is added if it is missing.
    ///
    /// # Errors
    /// A finding if the key or the value can't be written on a line.
    pub fn set_key(self, namespace: &str, key: &str, value: &str) -> Result<Self, Diagnostic> {
        let text = self.document.text();
        let entries = &self.document.parts().entries;
        let is_block = |e: &&crate::grammar::HeadEntry| {
            e.kind == EntryKind::Meta && e.value.of(text) == namespace
        };
        let Some(opener) = entries.iter().position(|e| is_block(&e)) else {
            return self.add_block(namespace, &[(key, value)]);
        };
        let block = entries
            .iter()
            .skip(opener + 1)
            .take_while(|e| e.kind == EntryKind::Key);
        let is_other = |name: &str| name != key && name.eq_ignore_ascii_case(key);
        if let Some(other) = block.clone().find(|e| is_other(e.name.of(text))) {
            let other = other.name.of(text);
            let message =
                format!("`{other}` stands where `{key}` would: one of them is one too many");
            return Err(Diagnostic::error(&rule::KEY_DUPLICATE, 0..0, message));
        }
        match block.clone().find(|e| e.name.of(text) == key) {
            Some(entry) => self.replace_value(entry.value, key, value),
            None => {
                let last = block
                    .last()
                    .or(entries.get(opener))
                    .map_or(0, |e| e.value.end());
                self.insert_below(last, key, value)
            }
        }
    }

    /// Sets a core header; a missing one is put below the last header above the META blocks.
    ///
    /// # Errors
    /// A finding if the value can't be written on a line.
    pub fn set_header(self, core: CoreHeader, value: &str) -> Result<Self, Diagnostic> {
        match self.document.parts().core(core) {
            Some(entry) => self.replace_value(entry.value, core.as_str(), value),
            None => {
                let headers = self
                    .document
                    .parts()
                    .entries
                    .iter()
                    .take_while(|e| e.kind == EntryKind::Header);
                let direction = self.document.parts().direction.map_or(0, |d| d.line.end());
                let last = headers.last().map_or(direction, |e| e.value.end());
                self.insert_below(last, core.as_str(), value)
            }
        }
    }

    /// Sets the `sig:` line.
    ///
    /// # Errors
    /// A finding if the value can't be written on a line.
    pub fn set_sig(self, value: &str) -> Result<Self, Diagnostic> {
        match self.document.parts().sig {
            Some(span) => self.replace_value(span, "sig", value),
            None => {
                let line = self.line("sig", value)?;
                let at = self.document.parts().end.map_or(0, Span::start);
                Ok(self.splice(Span::new(at, 0), line))
            }
        }
    }

    /// Gives every value of the head, and then the body, to `revise`, with its place in [`Document::text`]; what it
    /// returns replaces the text. Lines of the body have to keep their indent.
    ///
    /// # Errors
    /// A finding if a new value can't be written on a line.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Edit, EditPlace, Reading};
    /// let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]\n";
    /// let document = Document::parse(text, Reading::Strict);
    /// let shout = |place: EditPlace<'_>, _, text: &str| (place == EditPlace::Body).then(|| text.to_uppercase());
    /// let edited = Edit::new(&document).unwrap().revise(shout).unwrap().finish();
    /// assert_eq!(edited, text.replace("  x", "  X"));
    /// ```
    pub fn revise(
        mut self,
        mut revise: impl FnMut(EditPlace<'d>, Range<usize>, &'d str) -> Option<String>,
    ) -> Result<Self, Diagnostic> {
        let (text, parts) = (self.document.text(), self.document.parts());
        let mut namespace = "";
        for entry in &parts.entries {
            let (name, value) = (entry.name.of(text), entry.value.of(text));
            let place = match entry.kind {
                EntryKind::Header => EditPlace::Header(name),
                EntryKind::Key => EditPlace::Key {
                    namespace,
                    key: name,
                },
                EntryKind::Meta => {
                    namespace = value;
                    continue;
                }
            };
            if let Some(new) = revise(place, entry.value.range(), value) {
                self = self.replace_value(entry.value, name, &new)?;
            }
        }
        if let Some(body) = parts.body
            && let Some(new) = revise(EditPlace::Body, body.content.range(), body.content.of(text))
        {
            self = self.splice(body.content, new);
        }
        Ok(self)
    }

    /// Takes out every block of a namespace, and the blank lines behind it.
    pub fn remove_blocks(mut self, namespace: &str) -> Self {
        let (text, parts) = (self.document.text(), self.document.parts());
        let body = parts.body.map_or(text.len(), |b| b.mark.start());
        let mut open = None;
        for entry in &parts.entries {
            if entry.kind == EntryKind::Meta {
                let start = entry.name.start();
                if let Some(from) = open.take() {
                    self = self.splice(Span::between(from, start), String::new());
                }
                open = (entry.value.of(text) == namespace).then_some(start);
            }
        }
        match open {
            Some(from) => self.splice(Span::between(from, body), String::new()),
            None => self,
        }
    }

    fn replace_value(self, span: Span, name: &str, value: &str) -> Result<Self, Diagnostic> {
        let mut value = writable(name, value)?.to_owned();
        if span.is_empty() && !value.is_empty() {
            value.insert(0, ' ');
        }
        Ok(self.splice(span, value))
    }

    /// Puts a line below the one that holds the byte `at`.
    fn insert_below(self, at: usize, name: &str, value: &str) -> Result<Self, Diagnostic> {
        let line = self.line(name, value)?;
        let rest = self.document.text().as_bytes().get(at..).unwrap_or(&[]);
        let below = memchr::memchr(b'\n', rest).map_or(at, |i| at + i + 1);
        Ok(self.splice(Span::new(below, 0), line))
    }

    fn line(&self, name: &str, value: &str) -> Result<String, Diagnostic> {
        Ok(format!(
            "{}: {}{}",
            writable(name, name)?,
            writable(name, value)?,
            self.newline
        ))
    }

    fn splice(mut self, span: Span, text: String) -> Self {
        self.splices.push((span, text));
        self
    }

    /// The edited text.
    #[must_use]
    pub fn finish(mut self) -> String {
        let text = self.base();
        crate::sort_by_number(&mut self.splices, |(span, _)| span.start());
        let added: usize = self.splices.iter().map(|(_, t)| t.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut at = 0;
        for (span, new) in &self.splices {
            let (start, end) = self.in_base(*span);
            out.push_str(text.get(at..start).unwrap_or(""));
            out.push_str(new);
            at = end;
        }
        out.push_str(text.get(at..).unwrap_or(""));
        out
    }

    /// The text that is edited: the received one, or that of a repaired paste.
    fn base(&self) -> &'d str {
        match self.document.reading() {
            Reading::Strict => self.document.source(),
            Reading::Paste => self.document.text(),
        }
    }

    /// The span of the edited text that belongs to a span of the text that was read. In a text that is not in NFC they differ,
    /// and both ends are looked for, each on its own line: a span may cover many lines.
    fn in_base(&self, span: Span) -> (usize, usize) {
        if self.base() == self.document.text() {
            return (span.start(), span.end());
        }
        let start = self.place_in_base(span.start());
        match span.is_empty() {
            true => (start, start),
            false => (start, self.place_in_base(span.end()).max(start)),
        }
    }

    /// The position in the received text of a byte of the text that was read. A place that is edited has only ASCII before it
    /// on its line (a name, a colon, a blank) or only ASCII behind it (blanks), which NFC leaves as they are.
    fn place_in_base(&self, at: usize) -> usize {
        let (read, base) = (self.document.text(), self.base());
        let start = read.get(..at).and_then(|before| before.rfind('\n'));
        let start = start.map_or(0, |newline| newline + 1);
        let rest = read.get(start..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("");
        let column = at - start;
        let in_base = self.document.in_source(start..start).start - self.document.span().start;
        let before = line.get(..column).unwrap_or(line);
        if before.is_ascii() {
            return in_base + before.len();
        }
        let rest = base.get(in_base..).unwrap_or("");
        let length = rest.split('\n').next().unwrap_or("").len();
        in_base + length.saturating_sub(line.len().saturating_sub(column))
    }
}

fn writable<'v>(name: &str, value: &'v str) -> Result<&'v str, Diagnostic> {
    let forbidden = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
    if value.contains(forbidden) {
        let name = crate::unicode::escape(name);
        let message =
            format!("the value of `{name}` has a character that can't be written on a line");
        return Err(Diagnostic::error(&rule::FORBIDDEN_CHARACTER, 0..0, message));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;

    const TEXT: &str = "[[A→B v1]]\nuser:   u \nX-Odd:\nsession: s\ncontext: c\nintent: NOTE\nmeta: routing\nX-Route: a → b\nbody: |\n  x\nsig: none\n[[END]]\n";

    #[test]
    fn only_the_edited_line_changes() {
        let document = Document::parse(TEXT, Reading::Strict);
        let edit = || Edit::new(&document).unwrap();
        let routed = edit()
            .set_key("routing", "X-Route", "a → b → c")
            .unwrap()
            .finish();
        assert_eq!(routed, TEXT.replace("a → b", "a → b → c"));
        let added = edit()
            .set_key("routing", "X-Priority", "low")
            .unwrap()
            .finish();
        assert_eq!(added, TEXT.replace("a → b\n", "a → b\nX-Priority: low\n"));
        let header = edit()
            .set_header(CoreHeader::Message, "m1")
            .unwrap()
            .finish();
        assert_eq!(header, TEXT.replace("NOTE\n", "NOTE\nmessage: m1\n"));
        let signed = edit().set_sig("ed25519:pkid=a;sig=AAAA").unwrap().finish();
        assert_eq!(
            signed,
            TEXT.replace("sig: none", "sig: ed25519:pkid=a;sig=AAAA")
        );
        assert!(edit().set_sig("a\nb").is_err());
        assert!(edit().set_key("routing", "x-route", "b").is_err());
        assert!(edit().set_key("routing", "X-Route", "a\u{2028}b").is_err());
    }

    #[test]
    fn a_text_that_is_not_in_nfc_is_passed_on_as_it_came() {
        let text = TEXT
            .replace("NOTE", "NOTE\nX-Name: Cafe\u{301} \u{1112}\u{1161}  ")
            .replace("  x", "  e\u{301}");
        let document = Document::parse(&text, Reading::Strict);
        let edit = Edit::new(&document)
            .unwrap()
            .add_block("audit", &[("Hop", "1")])
            .unwrap();
        let edited = edit
            .set_key("routing", "X-Route", "a → c")
            .unwrap()
            .finish();
        let expected = text
            .replace("a → b", "a → c")
            .replace("body: |", "\nmeta: audit\nHop: 1\n\nbody: |");
        assert_eq!(edited, expected);
    }

    /// A hop whose block loses only its first line leaves its keys to the block above, where they are signed.
    #[test]
    fn whole_blocks_and_bodies_are_replaced_in_a_text_that_is_not_in_nfc() {
        let text = TEXT
            .replace("NOTE", "NOTE\nX-Name: Cafe\u{301}  ")
            .replace("  x", "  e\u{301} one\n  two e\u{301}");
        let hops = "meta: audit\nHop: 1\nReceived-By: Zoe\u{301}\n\nmeta: audit\nHop: 2\n\n";
        let hopped = text.replace("body: |", &format!("{hops}body: |"));
        let document = Document::parse(&hopped, Reading::Strict);
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        let edit = || Edit::new(&document).unwrap();
        assert_eq!(edit().remove_blocks("audit").finish(), text);
        let revised = edit().revise(|place, _, value| match place {
            EditPlace::Body => Some("  gone\n".to_owned()),
            EditPlace::Header("X-Name") => Some(value.to_uppercase()),
            _ => None,
        });
        let expected = hopped
            .replace("  e\u{301} one\n  two e\u{301}\n", "  gone\n")
            .replace("Cafe\u{301}  ", "CAF\u{c9}  ");
        assert_eq!(revised.unwrap().finish(), expected);
    }

    #[test]
    fn a_hop_leaves_the_canonical_form_alone() {
        let document = Document::parse(TEXT, Reading::Strict);
        let hop = Edit::new(&document)
            .unwrap()
            .add_block("audit", &[("Hop", "1")])
            .unwrap();
        let text = hop
            .set_key("routing", "X-Route", "a → b → c")
            .unwrap()
            .finish();
        let after = Document::parse(&text, Reading::Strict);
        assert_eq!(after.canonical().unwrap(), document.canonical().unwrap());
    }
}
