//! A message as it was admitted where it entered: the one reading that everything after it acts on.

use crate::verdict::Verdict;
use crosstalk_envelope::canonical::{is_hop_key, is_hop_namespace};
use crosstalk_envelope::{Document, MetaBlock, Reading};

/// A message that was read and verified at the boundary of a person's store.
///
/// Its document is strict, and it is all that later code gets to see. If a repaired form of a paste verifies, the document
/// is rebuilt from the verified bytes; the received text is kept beside it, as text, and nothing reads it again.
///
/// ```
/// use crosstalk_envelope::{CoreHeader, Document, Reading, Timestamp};
/// use crosstalk_protocol::{Admitted, VerifyContext, Trust, verify};
/// let paste = "> **[[A=>B v1]]**\n> user: u\n> session: s\n> context: c\n> intent: note\n> body: |\n> hello\n> [[END]]";
/// let document = Document::parse(paste, Reading::Paste);
/// let verdict = verify(&document, &Trust::default(), &VerifyContext::at(Timestamp::from_millis(0)));
/// let admitted = Admitted::new(&document, verdict);
/// assert_eq!(admitted.document().reading(), Reading::Strict);
/// assert_eq!(admitted.document().header(CoreHeader::Intent), Some("NOTE"));
/// assert_eq!(admitted.received(), Some(paste));
/// ```
#[derive(Clone, Debug)]
pub struct Admitted {
    document: Document<'static>,
    verdict: Verdict,
    received: Option<String>,
    is_truncated: bool,
}

impl Admitted {
    /// Admits a message as it was read, with the verdict about this reading.
    pub fn new(document: &Document<'_>, verdict: Verdict) -> Self {
        let source = document.source();
        let is_truncated = document.is_truncated();
        let mut strict = Document::parse(source, Reading::Strict);
        strict.check();
        // A paste can be strictly valid and still have been read with repairs: then the repaired reading is the one.
        let is_same = strict.is_accepted() && strict.text() == document.text();
        let is_signed_text = |verified: &str| {
            let canonical = strict.canonical();
            canonical.is_ok_and(|c| c == verified) && !strict.blocks().any(|b| is_of_hop(&b))
        };
        let rebuilt = match verdict.verified() {
            Some(verified) if is_same && is_signed_text(verified.canonical()) => None,
            // Hops sign nothing that they write: it stays with the received text.
            Some(verified) => Some(verified.to_envelope()),
            None if is_same => None,
            None => Some(document.to_well_formed()),
        };
        match rebuilt {
            None => Self {
                document: strict.into_owned(),
                verdict,
                received: None,
                is_truncated,
            },
            Some(text) => Self {
                document: Document::parse(&text, Reading::Strict).into_owned(),
                verdict,
                received: (source.trim_end() != text.trim_end()).then(|| source.to_owned()),
                is_truncated,
            },
        }
    }

    /// The message: what was verified, or what was read where nothing verifies.
    pub const fn document(&self) -> &Document<'static> {
        &self.document
    }

    /// The verdict about it.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether its text may be cut off.
    pub const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The received text, where that is another one.
    pub fn received(&self) -> Option<&str> {
        self.received.as_deref()
    }
}

/// Whether a block was written by a hop, in whole or in part.
fn is_of_hop(block: &MetaBlock<'_>) -> bool {
    let namespace = block.namespace();
    is_hop_namespace(namespace) || block.fields().any(|(key, _)| is_hop_key(namespace, key))
}
