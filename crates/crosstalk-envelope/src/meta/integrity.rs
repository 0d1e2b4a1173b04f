//! `meta: integrity`: what the body was when the message was written (MET-024, CAN-010 to CAN-012).

use super::value::Digest;
use crate::base64;
use crate::document::Document;
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
        let (mut whole, mut marks, mut words) = (Sha256::new(), Vec::new(), Words::default());
        let (mut lines, mut bytes) = (0_usize, 0_usize);
        for line in body_lines {
            whole.update(line.as_bytes());
            whole.update(b"\n");
            words.line(line);
            if lines < MAX_MARKS {
                marks.push(mark(line));
            }
            bytes += line.len() + usize::from(lines > 0);
            lines += 1;
        }
        Self {
            signed_at: None,
            digest: Some(Digest(whole.finalize().into())),
            words: Some(words.finish()),
            lines: Some(lines),
            bytes: Some(bytes),
            marks: (1..=MAX_MARKS).contains(&lines).then_some(marks),
        }
    }

    /// The keys and values of the block, in the order in which they are written.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
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

/// The first two bytes of a line's digest.
pub(crate) fn mark(line: &str) -> [u8; 2] {
    let digest = Sha256::digest(line.as_bytes());
    [
        digest.first().copied().unwrap_or(0),
        digest.get(1).copied().unwrap_or(0),
    ]
}

/// Collects the words of a text, one space between two of them.
#[derive(Default)]
struct Words {
    hash: Sha256,
    any: bool,
}

impl Words {
    fn line(&mut self, line: &str) {
        for word in line.split(is_space).filter(|w| !w.is_empty()) {
            if self.any {
                self.hash.update(b" ");
            }
            self.hash.update(word.as_bytes());
            self.any = true;
        }
    }

    fn finish(self) -> Digest {
        Digest(self.hash.finalize().into())
    }
}

const fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}
