//! How envelopes are written (ENV-092, TRN-002): the core first, so that a v1.0 reader finds it.

use crate::document::Document;
use crate::grammar::{BodyKind, CoreHeader, END};

/// The parts of an envelope in the order in which they are written.
pub(crate) struct Layout<'a> {
    pub(crate) sender: &'a str,
    pub(crate) receiver: &'a str,
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) blocks: Vec<(&'a str, Vec<(&'a str, &'a str)>)>,
    pub(crate) body_kind: BodyKind,
    pub(crate) body: Vec<&'a str>,
    pub(crate) sig: Option<&'a str>,
}

impl Layout<'_> {
    pub(crate) fn write(&self) -> String {
        let mut out = String::with_capacity(self.size());
        for part in ["[[", self.sender, "→", self.receiver, " v1]]\n"] {
            out.push_str(part);
        }
        for (name, value) in &self.headers {
            line(&mut out, name, value);
        }
        for (namespace, fields) in &self.blocks {
            out.push('\n');
            line(&mut out, "meta", namespace);
            for (key, value) in fields {
                line(&mut out, key, value);
            }
        }
        if !self.blocks.is_empty() {
            out.push('\n');
        }
        line(&mut out, self.body_kind.as_str(), "|");
        for text in &self.body {
            if !text.is_empty() {
                out.push_str("  ");
                out.push_str(text);
            }
            out.push('\n');
        }
        if let Some(sig) = self.sig {
            line(&mut out, "sig", sig);
        }
        out.push_str(END);
        out.push('\n');
        out
    }
}

impl Layout<'_> {
    /// How many bytes are written, or a few more.
    fn size(&self) -> usize {
        let line = |(name, value): &(&str, &str)| name.len() + value.len() + 3;
        let block = |(name, fields): &(&str, Vec<(&str, &str)>)| {
            name.len() + 8 + fields.iter().map(line).sum::<usize>()
        };
        let head: usize = self.headers.iter().map(line).sum();
        let blocks: usize = self.blocks.iter().map(block).sum();
        let body: usize = self.body.iter().map(|l| l.len() + 3).sum();
        self.sender.len()
            + self.receiver.len()
            + head
            + blocks
            + body
            + self.sig.map_or(0, str::len)
            + 64
    }
}

fn line(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push(':');
    if !value.is_empty() {
        out.push(' ');
        out.push_str(value);
    }
    out.push('\n');
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
        self.layout().write()
    }

    pub(crate) fn layout(&self) -> Layout<'_> {
        let core = CoreHeader::ALL
            .iter()
            .filter_map(|c| Some((c.as_str(), self.header(*c)?)));
        let unknown = self
            .headers()
            .filter(|(name, _)| CoreHeader::from_name(name).is_none());
        Layout {
            sender: self.sender(),
            receiver: self.receiver(),
            headers: core.chain(unknown).collect(),
            blocks: self
                .blocks()
                .map(|b| (b.namespace(), b.fields().collect()))
                .collect(),
            body_kind: self.body_kind().unwrap_or(BodyKind::Body),
            body: self.body_lines().collect(),
            sig: self.sig(),
        }
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
