//! The paste reading: find the envelopes in a text, repair each one, read it with the same grammar.
//!
//! Implements SCN-001 to SCN-006, PST-001 to PST-029, TRN-001 and TRN-003. Repairing writes a text for the
//! strict grammar and says what it changed; it never decides what a message means.

mod body;
pub(crate) mod clean;
mod close;
mod collapsed;
mod doubt;
mod fence;
mod find;
mod frame;
mod head;
mod line;
mod marker;
mod name;
mod plain;
mod region;
mod repair;
mod unended;
mod value;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Reading};
use crate::limit;
use crate::registry::rule;
use find::regions;
use region::Region;
pub(crate) use repair::Repaired;

/// The envelopes of a text, and the findings about the rest.
#[derive(Debug, Default)]
pub struct Scan<'a> {
    /// The accepted envelopes, in the order of the text.
    pub documents: Vec<Document<'a>>,
    /// Findings that belong to no accepted envelope: why the others were rejected, stray markers.
    pub rejected: Vec<Diagnostic>,
    /// The envelopes of a paste that may be cut off, read as far as they go. Their faults are among those, with the
    /// rule ENV-052; [`Scan::accept_truncated`] takes them all the same.
    pub truncated: Vec<Document<'a>>,
    /// How many envelopes were found so far.
    envelopes: usize,
}

/// Finds every envelope in a text and checks each one, the rules of its intent included.
///
/// In the strict reading only blank lines may stand between envelopes (TRN-001).
///
/// ```
/// use crosstalk_envelope::{Reading, scan};
/// let chat = "Sure! Here it is:\n\n```\n[[CHATGPT=>CLAUDE v1]]\nUser: kalle\nSession: 2025-10-09T16Z abc123\n\
///             Context: auth\nIntent: ANSWER\nBody: |\nYes, with short expiry.\n[[END]]\n```\nAnything else?";
/// let found = scan(chat, Reading::Paste);
/// assert_eq!(found.documents[0].body_text(), "Yes, with short expiry.");
/// assert!(found.documents[0].diagnostics().len() > 4);
/// ```
pub fn scan(text: &str, reading: Reading) -> Scan<'_> {
    let mut scan = Scan::default();
    if text.len() > limit::PASTE_BYTES {
        scan.rejected.push(too_large(text.len()));
        return scan;
    }
    match reading {
        Reading::Strict => scan_strict(text, &mut scan),
        Reading::Paste => scan_paste(text, &mut scan),
    }
    scan
}

/// [`scan`] for bytes that may not be UTF-8, which is a finding, too. The text is that into which the findings point.
pub fn scan_bytes<T>(bytes: &[u8], reading: Reading, look: impl FnOnce(&str, &Scan<'_>) -> T) -> T {
    match decode(bytes) {
        Ok(text) => look(text, &scan(text, reading)),
        Err(fault) => {
            let rejected = vec![fault];
            let scan = Scan {
                rejected,
                ..Scan::default()
            };
            look(&String::from_utf8_lossy(bytes), &scan)
        }
    }
}

/// The text of some bytes: UTF-8 (ENV-001), within the limit of a paste (ENV-063).
///
/// # Errors
/// The finding, whose place is in the text that `String::from_utf8_lossy` gives.
pub fn decode(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > limit::PASTE_BYTES {
        return Err(too_large(bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|fault| {
        let at = fault.valid_up_to();
        Diagnostic::error(
            &rule::NOT_UTF8,
            at..at,
            "the text is not UTF-8 from here on",
        )
    })
}

fn too_large(bytes: usize) -> Diagnostic {
    let most = limit::PASTE_BYTES;
    let message = format!("the text has {bytes} bytes or more; a paste has at most {most}");
    Diagnostic::error(&rule::PASTE_TOO_LARGE, 0..0, message)
}

fn no_envelope() -> Diagnostic {
    Diagnostic::error(&rule::NO_ENVELOPE, 0..0, "there is no envelope in the text")
}

impl<'a> Scan<'a> {
    /// Accepts what may be cut off, because a person says so. Each such document says that it is
    /// ([`Document::is_truncated`]).
    ///
    /// ```
    /// use crosstalk_envelope::{Reading, scan};
    /// let cut = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  All went";
    /// let scan = scan(cut, Reading::Paste);
    /// assert_eq!((scan.documents.len(), scan.rejected.len()), (0, 1));
    /// let scan = scan.accept_truncated();
    /// assert_eq!(scan.documents[0].body_text(), "All went");
    /// assert!(scan.documents[0].is_truncated() && scan.rejected.is_empty());
    /// ```
    #[must_use]
    pub fn accept_truncated(mut self) -> Self {
        let cut = std::mem::take(&mut self.truncated);
        let is_of = |finding: &Diagnostic, document: &Document<'_>| {
            let span = document.span();
            (span.start..=span.end).contains(&finding.span.start)
        };
        self.rejected.retain(|f| {
            f.rule.id != rule::END_MISSING.id || !cut.iter().any(|document| is_of(f, document))
        });
        self.documents.extend(cut);
        crate::sort_by_number(&mut self.documents, |d| d.span().start);
        self
    }

    /// Keeps an envelope that may be cut off aside, if it can be read and has a text.
    fn set_aside(&mut self, mut document: Document<'a>) {
        document.check();
        if document.is_accepted() && !document.body_text().trim().is_empty() {
            self.truncated.push(document);
        }
    }

    /// Takes a document that was read: checks its intent, keeps it or says why not.
    fn take(&mut self, mut document: Document<'a>) {
        document.check();
        if document.is_accepted() {
            self.documents.push(document);
        } else {
            self.reject(document.diagnostics().iter().cloned());
        }
    }

    /// Counts an envelope that begins at `at`; false for one too many.
    fn count(&mut self, at: usize) -> bool {
        self.envelopes += 1;
        if self.envelopes == limit::ENVELOPES + 1 {
            let message = format!(
                "there are more than {} envelopes in the text",
                limit::ENVELOPES
            );
            let error = Diagnostic::error(&rule::PASTE_TOO_LARGE, at..at, message);
            self.rejected.push(error);
        }
        self.envelopes <= limit::ENVELOPES
    }

    fn reject(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        for finding in findings {
            // Bounded over all envelopes of a paste; but of each code one error is kept, wherever it stands.
            let has_room = self.rejected.len() < 16 * limit::DIAGNOSTICS;
            let is_new = || {
                !self
                    .rejected
                    .iter()
                    .any(|f| f.is_error() && f.code() == finding.code())
            };
            if has_room || (finding.is_error() && is_new()) {
                self.rejected.push(finding);
            }
        }
    }
}

/// One envelope after the other, each from its first line that is not blank up to its `[[END]]` line.
fn scan_strict<'a>(text: &'a str, scan: &mut Scan<'a>) {
    let mut start = first_filled_line(text, 0);
    if start.is_none() {
        scan.take(Document::read_strict(text, 0));
    }
    while let Some(at) = start {
        let rest = text.get(at..).unwrap_or("");
        let length = through_end_line(rest);
        if !scan.count(at) {
            return;
        }
        let envelope = rest.get(..length).unwrap_or(rest);
        scan.take(Document::read_strict(envelope, at));
        start = first_filled_line(text, at + length);
    }
}

/// Where the first line begins that is not blank, from the line start `from` on.
fn first_filled_line(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    // A CR counts as blank only before an LF: alone it is a forbidden character.
    let blank = |(at, b): (usize, &u8)| match b {
        b'\r' => rest.get(at + 1) == Some(&b'\n'),
        b => matches!(b, b' ' | b'\t' | b'\n'),
    };
    let filled = rest.iter().enumerate().position(|b| !blank(b))?;
    let before = rest.get(..filled)?;
    // At the start of the text, a byte order mark is left to the grammar.
    Some(from + memchr::memrchr(b'\n', before).map_or(0, |i| i + 1))
}

/// How many bytes there are up to the end of the first line `[[END]]`, or in all.
fn through_end_line(text: &str) -> usize {
    let finder = memchr::memmem::Finder::new(crate::grammar::END);
    for at in finder.find_iter(text.as_bytes()) {
        let before = text.as_bytes().get(..at).unwrap_or(&[]);
        let starts_line = before.last().is_none_or(|b| *b == b'\n');
        let tail = text.get(at + crate::grammar::END.len()..).unwrap_or("");
        let line_end = memchr::memchr(b'\n', tail.as_bytes()).map_or(tail.len(), |i| i + 1);
        let rest = tail.get(..line_end).unwrap_or("");
        if starts_line && rest.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            return at + crate::grammar::END.len() + line_end;
        }
    }
    text.len()
}

fn scan_paste<'a>(text: &'a str, scan: &mut Scan<'a>) {
    let mut found = false;
    regions(text, &mut |region| match region {
        Ok(region) => {
            found = true;
            if scan.count(region.span.start) {
                scan.take(read_region(text, &region));
            }
        }
        Err(refusal) => {
            found |= refusal.findings.iter().any(Diagnostic::is_error);
            scan.reject(refusal.findings);
            if let Some(region) = refusal.cut
                && scan.count(region.span.start)
            {
                scan.set_aside(read_region(text, &region));
            }
        }
    });
    if !found {
        scan.reject([no_envelope()]);
    }
}

/// The only envelope of a text (TRN-003), with the whole text as its source where it could not be read.
pub(crate) fn read_one(text: &str) -> Document<'_> {
    let mut first = None;
    let mut faults = Vec::new();
    regions(text, &mut |region| match region {
        Ok(region) if first.is_none() => first = Some(read_region(text, &region)),
        Ok(region) => faults.push(Diagnostic::error(
            &rule::ONE_PER_REQUEST,
            region.span.start..region.span.start,
            "there is a second envelope where one is expected",
        )),
        Err(refusal) => faults.extend(refusal.findings),
    });
    match first {
        Some(mut document) => {
            for fault in faults {
                document.report(fault);
            }
            document
        }
        None => {
            if !faults.iter().any(Diagnostic::is_error) {
                faults.push(no_envelope());
            }
            Document::unreadable(text, Reading::Paste, faults)
        }
    }
}

fn read_region<'a>(text: &'a str, region: &Region) -> Document<'a> {
    let source = text.get(region.span.clone()).unwrap_or("");
    let start = region.span.start;
    let mut document = None;
    if region.is_plain() || source.len() > limit::ENVELOPE_BYTES {
        let strict = Document::read_strict(source, start);
        if source.len() > limit::ENVELOPE_BYTES {
            return strict;
        }
        document = plain::accept(strict);
    } else if !region.collapsed {
        document = plain::accept_signed(source, start, repair::unwrap(source, region));
    }
    let mut document = document
        .unwrap_or_else(|| Document::read_repaired(source, start, repair::repair(source, region)));
    for finding in region.findings(text) {
        document.report(finding);
    }
    document
}
