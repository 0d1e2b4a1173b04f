//! How envelopes are written (ENV-092, TRN-002): the core first, so that a v1.0 reader finds it.

use crate::document::Document;
use crate::grammar::{BodyKind, CoreHeader, END};

/// Writes an envelope, part by part from the top.
#[derive(Debug)]
pub(crate) struct EnvelopeWriter {
    out: String,
    has_blocks: bool,
}

impl EnvelopeWriter {
    /// Begins with the direction line; `size` is about how long the text will be.
    pub(crate) fn new(sender: &str, receiver: &str, size: usize) -> Self {
        let mut out = String::with_capacity(size);
        for part in ["[[", sender, "→", receiver, " v1]]\n"] {
            out.push_str(part);
        }
        Self {
            out,
            has_blocks: false,
        }
    }

    /// Begins with nothing: the lines of the head come from a canonical form.
    pub(crate) fn raw(size: usize) -> Self {
        Self {
            out: String::with_capacity(size),
            has_blocks: false,
        }
    }

    /// A line of a canonical form, in which an empty value leaves a space behind the colon.
    pub(crate) fn raw_line(&mut self, line: &str) {
        if line.starts_with("meta: ") {
            self.has_blocks = true;
            self.out.push('\n');
        }
        self.out.push_str(line.trim_end_matches(' '));
        self.out.push('\n');
    }

    pub(crate) fn line(&mut self, name: &str, value: &str) {
        self.out.push_str(name);
        self.out.push(':');
        if !value.is_empty() {
            self.out.push(' ');
            self.out.push_str(value);
        }
        self.out.push('\n');
    }

    pub(crate) fn block<'f>(
        &mut self,
        namespace: &str,
        fields: impl Iterator<Item = (&'f str, &'f str)>,
    ) {
        self.has_blocks = true;
        self.out.push('\n');
        self.line("meta", namespace);
        for (key, value) in fields {
            self.line(key, value);
        }
    }

    pub(crate) fn body<'l>(&mut self, kind: BodyKind, lines: impl Iterator<Item = &'l str>) {
        if self.has_blocks {
            self.out.push('\n');
        }
        self.line(kind.as_str(), "|");
        for text in lines {
            if !text.is_empty() {
                self.out.push_str("  ");
                self.out.push_str(text);
            }
            self.out.push('\n');
        }
    }

    /// The whole text.
    pub(crate) fn finish(mut self, sig: Option<&str>) -> String {
        if let Some(sig) = sig {
            self.line("sig", sig);
        }
        self.out.push_str(END);
        self.out.push('\n');
        self.out
    }
}

impl Document<'_> {
    /// The envelope as a writer would write it. The canonical form stays the same, and so a signature holds.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// let paste = "> **[[A=>B v1]]**\n> user: u\n> session: s\n> context: c\n> intent: note\n> body: |\n> hello\n> [[END]]";
    /// let text = Document::parse(paste, Reading::Paste).to_well_formed();
    /// assert_eq!(text, "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  hello\nsig: none\n[[END]]\n");
    /// assert!(Document::parse(&text, Reading::Strict).is_accepted());
    /// ```
    pub fn to_well_formed(&self) -> String {
        let mut out = self.write_head(|_| true);
        self.write_body(&mut out);
        out.finish(self.sig())
    }

    /// The head as it is written, with the blocks that are chosen.
    pub(crate) fn write_head(&self, chosen: impl Fn(&str) -> bool) -> EnvelopeWriter {
        // Room for a signature and what belongs to it.
        let size = self.text().len() + 1024;
        let mut out = EnvelopeWriter::new(self.sender(), self.receiver(), size);
        for core in CoreHeader::ALL {
            if let Some(value) = self.header(core) {
                out.line(core.as_str(), value);
            }
        }
        for (name, value) in self.unknown_headers() {
            out.line(name, value);
        }
        for block in self.blocks().filter(|b| chosen(b.namespace())) {
            out.block(block.namespace(), block.fields());
        }
        out
    }

    pub(crate) fn write_body(&self, out: &mut EnvelopeWriter) {
        let kind = self.body_kind().unwrap_or(BodyKind::Body);
        out.body(kind, self.body_lines());
    }
}

/// The text in a code fence that is longer than any run of backticks inside (TRN-002).
///
/// ```
/// assert_eq!(crosstalk_envelope::fence("a\n"), "```\na\n```\n");
/// assert_eq!(crosstalk_envelope::fence("x ```` y"), "`````\nx ```` y\n`````\n");
/// ```
pub fn fence(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let ticks = "`".repeat(3.max(longest + 1));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{ticks}\n{text}{end}{ticks}\n")
}
