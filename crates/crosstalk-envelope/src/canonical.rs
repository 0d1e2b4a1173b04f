//! The canonical form: the bytes that a digest names and a signature covers (CAN-001 to CAN-007).
//!
//! It comes from the spans of the text that was read, never from the typed view. What hops write is left
//! out: the namespaces and the key that the registry marks with `hop = true`, and `sig:`.

use crate::diagnostic::Diagnostic;
use crate::document::{Document, MetaBlock};
use crate::grammar::CoreHeader;
use crate::meta::{Digest, LineHasher};
use crate::registry::{Namespace, rule};

impl Document<'_> {
    /// The canonical form, which exists only for what passes the strict reading.
    ///
    /// # Errors
    /// A finding by CAN-007 that says why there is none.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// let text = "[[A -> B v1]]\nintent: NOTE\ncontext: c\nuser: u\nsession: s\nbody: |\nsig: none\n[[END]]";
    /// let canonical = Document::parse(text, Reading::Strict).canonical().unwrap();
    /// assert!(canonical.starts_with("[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: sha256:e3b0"));
    /// ```
    pub fn canonical(&self) -> Result<String, Diagnostic> {
        self.canonical_with(&self.body_digest())
    }

    /// The canonical form with a given digest of the body.
    pub(crate) fn canonical_with(&self, body: &Digest) -> Result<String, Diagnostic> {
        let mut out = self.canonical_head(|_| true)?;
        self.push_body_line(&mut out, body);
        Ok(out)
    }

    /// The last line of the canonical form.
    pub(crate) fn push_body_line(&self, out: &mut String, body: &Digest) {
        let kind = self.body_kind().map_or("body", |k| k.as_str());
        push_line(out, kind, &body.to_string());
    }

    /// The canonical form without its last line, of the blocks that are chosen.
    pub(crate) fn canonical_head(
        &self,
        chosen: impl Fn(&str) -> bool,
    ) -> Result<String, Diagnostic> {
        self.require_well_formed()?;
        let mut out = String::with_capacity(self.text().len().min(4096));
        out.push_str("[[");
        out.push_str(self.sender());
        out.push('→');
        out.push_str(self.receiver());
        out.push_str(" v1]]\n");
        for core in CoreHeader::ALL {
            if let Some(value) = self.header(core) {
                push_line(&mut out, core.as_str(), value);
            }
        }
        for (name, value) in self.unknown_headers() {
            push_line(&mut out, name, value);
        }
        for block in self.blocks().filter(|b| chosen(b.namespace())) {
            push_block(&mut out, block);
        }
        Ok(out)
    }

    /// The SHA-256 of the canonical form.
    ///
    /// # Errors
    /// As [`Document::canonical`].
    pub fn digest(&self) -> Result<Digest, Diagnostic> {
        self.canonical().map(|c| Digest::of(c.as_bytes()))
    }

    /// The SHA-256 of the body text, one LF after each line.
    pub fn body_digest(&self) -> Digest {
        let mut whole = LineHasher::default();
        self.body_pieces(|piece| whole.piece(piece));
        whole.finish()
    }

    /// Whether the text that was read passes the strict reading.
    pub fn is_well_formed(&self) -> bool {
        self.require_well_formed().is_ok()
    }

    fn require_well_formed(&self) -> Result<(), Diagnostic> {
        // The rules of the intents don't count: a REVOKE has a canonical form before it is signed.
        let against = self.diagnostics().iter().find(|d| {
            (d.is_error() && !d.rule.id.starts_with("INT"))
                || *d.rule == rule::HEADERS_LACKING
                || *d.rule == rule::SIG_MALFORMED
        });
        match against {
            None => Ok(()),
            Some(fault) => Err(Diagnostic::error(
                &rule::CANONICAL_STRICT,
                fault.span.clone(),
                format!("there is no canonical form: {}", fault.message),
            )),
        }
    }
}

/// Whether hops write this namespace.
pub fn is_hop_namespace(namespace: &str) -> bool {
    Namespace::find(namespace).is_some_and(|n| n.hop)
}

/// Whether hops write this key.
pub fn is_hop_key(namespace: &str, key: &str) -> bool {
    Namespace::find(namespace).is_some_and(|n| n.keys.iter().any(|k| k.hop && k.name == key))
}

fn push_block(out: &mut String, block: MetaBlock<'_>) {
    let namespace = block.namespace();
    let Some(known) = Namespace::find(namespace) else {
        return push_fields(out, namespace, block.fields());
    };
    if known.hop {
        return;
    }
    let has_hop_keys = known.keys.iter().any(|k| k.hop);
    if !has_hop_keys {
        return push_fields(out, namespace, block.fields());
    }
    let mut covered = block
        .fields()
        .filter(|(key, _)| !is_hop_key(namespace, key))
        .peekable();
    // A hop may have added the whole block: without a key of the sender's it is not there.
    if covered.peek().is_some() {
        push_fields(out, namespace, covered);
    }
}

/// Writes a block.
pub(crate) fn push_fields<'d>(
    out: &mut String,
    namespace: &str,
    fields: impl Iterator<Item = (&'d str, &'d str)>,
) {
    push_line(out, "meta", namespace);
    for (key, value) in fields {
        push_line(out, key, value);
    }
}

fn push_line(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str(": ");
    out.push_str(value);
    out.push('\n');
}
