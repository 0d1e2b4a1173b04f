//! `meta: integrity`: what the body was when the message was written (MET-024, CAN-010 to CAN-012).

use super::value::Digest;
use crate::base64;
use crate::document::Document;
use crate::text::trim;
use crate::time::Timestamp;
use sha2::{Digest as _, Sha256};

/// With more lines than this, marks are left out.
pub const MAX_MARKS: usize = 4096;

/// The measures of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// When the message was signed.
    pub signed_at: Option<Timestamp>,
    /// The digest of the body text, one LF after each line.
    pub digest: Option<Digest>,
    /// The digest of the body text with each run of white space as one space.
    pub words: Option<Digest>,
    /// The number of lines.
    pub lines: Option<usize>,
    /// The number of bytes of the body text.
    pub bytes: Option<usize>,
    /// Two bytes of each line's digest.
    pub marks: Option<Vec<[u8; 2]>>,
}

impl Integrity {
    /// The block as it is declared; unreadable values are left out.
    pub(super) fn of(document: &Document<'_>) -> Option<Self> {
        let block = document.block("integrity")?;
        Some(Self {
            signed_at: block.get("Signed-At").and_then(Timestamp::parse),
            digest: block.get("Digest").and_then(Digest::parse),
            words: block.get("Words").and_then(Digest::parse),
            lines: block.get("Lines").and_then(|v| v.parse().ok()),
            bytes: block.get("Bytes").and_then(|v| v.parse().ok()),
            marks: block.get("Marks").and_then(base64::decode).map(|bytes| {
                bytes
                    .chunks(2)
                    .map(|pair| {
                        [
                            pair.first().copied().unwrap_or(0),
                            pair.get(1).copied().unwrap_or(0),
                        ]
                    })
                    .collect()
            }),
        })
    }

    /// Measures a body.
    ///
    /// ```
    /// use crosstalk_envelope::meta::Integrity;
    /// let measured = Integrity::measure(["two", "lines"]);
    /// assert_eq!((measured.lines, measured.bytes), (Some(2), Some(9)));
    /// assert_eq!(measured.words, Integrity::measure(["two  lines"]).words);
    /// ```
    pub fn measure<'l>(body_lines: impl IntoIterator<Item = &'l str>) -> Self {
        let (mut whole, mut words) = (LineHasher::default(), WordHasher::default());
        let mut marks = Vec::with_capacity(32);
        let (mut lines, mut bytes) = (0_usize, 0_usize);
        for line in body_lines {
            whole.line(line);
            words.line(line);
            if lines < MAX_MARKS {
                marks.push(mark(line));
            }
            bytes += line.len() + usize::from(lines > 0);
            lines += 1;
        }
        Self {
            signed_at: None,
            digest: Some(whole.finish()),
            words: Some(words.finish()),
            lines: Some(lines),
            bytes: Some(bytes),
            marks: (1..=MAX_MARKS).contains(&lines).then_some(marks),
        }
    }

    /// The keys and values of the block, in the order in which they are written.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::with_capacity(6);
        let mut push = |key, value: Option<String>| fields.extend(value.map(|v| (key, v)));
        push("Signed-At", self.signed_at.map(|t| t.to_string()));
        push("Digest", self.digest.map(|d| d.to_string()));
        push("Words", self.words.map(|d| d.to_string()));
        push("Lines", self.lines.map(|n| n.to_string()));
        push("Bytes", self.bytes.map(|n| n.to_string()));
        push(
            "Marks",
            self.marks
                .as_ref()
                .map(|m| base64::encode(m.as_flattened())),
        );
        fields
    }
}

impl Digest {
    /// The digest of a body text, given its lines.
    pub(crate) fn of_lines<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        let mut whole = LineHasher::default();
        lines.for_each(|line| whole.line(line));
        whole.finish()
    }

    /// The digest of the words of a body text, given its lines.
    pub(crate) fn of_words<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        let mut words = WordHasher::default();
        lines.for_each(|line| words.line(line));
        words.finish()
    }
}

/// The first two bytes of a line's digest.
pub(crate) fn mark(line: &str) -> [u8; 2] {
    let digest = Sha256::digest(line.as_bytes());
    [
        digest.first().copied().unwrap_or(0),
        digest.get(1).copied().unwrap_or(0),
    ]
}

/// Many small pieces, hashed together: one by one they would cost more.
struct PieceHasher {
    hash: Sha256,
    pending: Vec<u8>,
}

impl Default for PieceHasher {
    fn default() -> Self {
        // Room for the text of most messages.
        Self {
            hash: Sha256::new(),
            pending: Vec::with_capacity(1024),
        }
    }
}

impl PieceHasher {
    fn flush(&mut self) {
        const ENOUGH: usize = 4096;
        if self.pending.len() > ENOUGH {
            self.hash.update(&self.pending);
            self.pending.clear();
        }
    }

    fn finish(mut self) -> Digest {
        self.hash.update(&self.pending);
        Digest(self.hash.finalize().into())
    }
}

/// The lines of a text, one LF after each.
#[derive(Default)]
pub(crate) struct LineHasher(PieceHasher);

impl LineHasher {
    pub(crate) fn line(&mut self, line: &str) {
        self.0.pending.extend_from_slice(line.as_bytes());
        self.0.pending.push(b'\n');
        self.0.flush();
    }

    /// Adds a part of the text, with its LF.
    pub(crate) fn piece(&mut self, piece: &str) {
        self.0.pending.extend_from_slice(piece.as_bytes());
        self.0.flush();
    }

    pub(crate) fn finish(self) -> Digest {
        self.0.finish()
    }
}

/// The words of a text, one space between two of them.
#[derive(Default)]
struct WordHasher {
    pieces: PieceHasher,
    any: bool,
}

impl WordHasher {
    fn line(&mut self, line: &str) {
        let words = trim(line);
        match is_single_spaced(words.as_bytes()) {
            true => self.words(std::iter::once(words)),
            false => self.words(line.split(is_space)),
        }
        self.pieces.flush();
    }

    fn words<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        for word in words.filter(|w| !w.is_empty()) {
            if self.any {
                self.pieces.pending.push(b' ');
            }
            self.pieces.pending.extend_from_slice(word.as_bytes());
            self.any = true;
        }
    }

    fn finish(self) -> Digest {
        self.pieces.finish()
    }
}

/// Whether a text without blanks around it is words of ASCII with one space between two of them, as most lines are: then it is
/// taken as it is. Every byte is looked at, so that many are looked at together.
fn is_single_spaced(line: &[u8]) -> bool {
    let is_blank = |b: &u8| u8::from(*b == b' ');
    let next = line.get(1..).unwrap_or(&[]);
    let doubled = line
        .iter()
        .zip(next)
        .fold(0, |found, (a, b)| found | (is_blank(a) & is_blank(b)));
    let others = line
        .iter()
        .fold(0, |found, b| found | (b & 0x80) | u8::from(*b < b' '));
    doubled | others == 0
}

/// White space between words (CAN-011).
pub(crate) const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}
