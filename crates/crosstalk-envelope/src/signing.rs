//! Signing: the bytes that a signature covers, and an envelope with its signature (SIG-001, SIG-006, SIG-007).

use crate::base64;
use crate::canonical::push_fields;
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Reading};
use crate::edit::Edit;
use crate::grammar::CoreHeader;
use crate::key::{Algorithm, PrivateKey};
use crate::meta::Integrity;
use crate::registry::{Intent, rule};
use crate::signature::is_key_id;
use crate::time::Timestamp;

/// The first line of the bytes that every signature over an envelope covers.
pub const PREAMBLE: &str = "ai-crosstalk-sig-v1.1";

/// The bytes that a signature covers.
///
/// ```
/// use crosstalk_envelope::{Algorithm, signing::signed_bytes};
/// let bytes = signed_bytes(Algorithm::Ed25519, "alice@example.com", "[[A→B v1]]\n");
/// assert_eq!(bytes, "ai-crosstalk-sig-v1.1\ned25519\nalice@example.com\n[[A→B v1]]\n".as_bytes());
/// ```
pub fn signed_bytes(algorithm: Algorithm, pkid: &str, canonical: &str) -> Vec<u8> {
    let parts = [PREAMBLE, algorithm.as_str(), pkid, canonical];
    parts.join("\n").into_bytes()
}

/// A key that signs envelopes, with its id, the time and the `meta: key` block.
#[derive(Debug)]
pub struct Signer<'k> {
    /// The key.
    pub key: &'k PrivateKey,
    /// Its id.
    pub pkid: &'k str,
    /// The time for `Signed-At`, which has seconds and nothing finer.
    pub at: Timestamp,
    /// The keys and values of `meta: key`; none is no block.
    pub key_block: &'k [(&'k str, String)],
}

impl Signer<'_> {
    /// The envelope with `meta: integrity`, `meta: key` if wanted, and the signature, written well-formed.
    ///
    /// A missing message id is added. An old integrity or key block is replaced.
    ///
    /// # Errors
    /// A finding if the document is signed already (SIG-007), has no canonical form, or the key id can't be written.
    ///
    /// ```
    /// use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
    /// use crosstalk_envelope::{authenticate, signing::Signer};
    /// let text = "[[A→B v1]]\nuser: u\nsession: s\nmessage: m1\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]\n";
    /// let document = Document::parse(text, Reading::Strict);
    /// let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    /// let signer = Signer { key: &key, pkid: "u@example.com", at: Timestamp::from_millis(0), key_block: &[] };
    /// let signed = signer.sign(&document).unwrap();
    /// let signed = Document::parse(&signed, Reading::Strict);
    /// assert!(authenticate(&signed, &key.public()).unwrap().verified().is_some());
    /// ```
    pub fn sign(&self, document: &Document<'_>) -> Result<String, Diagnostic> {
        match document.sig() {
            None | Some("none") => self.sign_anew(document),
            Some(_) => Err(Diagnostic::error(
                &rule::SIGNED_ALREADY,
                0..0,
                "the message is signed already",
            )),
        }
    }

    /// The same, in the place of a signature that is there.
    ///
    /// # Errors
    /// As [`Signer::sign`], but for SIG-007.
    pub fn sign_anew(&self, document: &Document<'_>) -> Result<String, Diagnostic> {
        if !is_key_id(self.pkid) {
            let what = "the key id is not 1 to 255 visible ASCII characters without ;[]()<>|";
            return Err(Diagnostic::error(&rule::SIG_MALFORMED, 0..0, what));
        }
        // An answer that names no message it answers has no id of its own (INT-010).
        let is_loose = || {
            let meaning = document.envelope().meaning();
            meaning.is_some_and(Intent::needs_parent)
                && document.header(CoreHeader::Parent).is_none()
        };
        if document.header(CoreHeader::Message).is_some() || is_loose() {
            return self.sign_identified(document);
        }
        let id = crate::id::new_ulid();
        let edit = Edit::new(document)?.set_header(CoreHeader::Message, &id)?;
        let text = edit.finish();
        self.sign_identified(&Document::parse(&text, Reading::Strict))
    }

    fn sign_identified(&self, document: &Document<'_>) -> Result<String, Diagnostic> {
        let mut integrity = Integrity::measure(document.body_lines());
        let second = self.at.as_millis().div_euclid(1000) * 1000;
        integrity.signed_at = Some(Timestamp::from_millis(second));
        let measured = integrity.fields();
        let kept = |namespace: &str| !matches!(namespace, "integrity" | "key");
        let mut canonical = document.canonical_head(kept)?;
        let mut out = document.write_head(kept);
        for (namespace, fields) in [("key", self.key_block), ("integrity", &measured)] {
            let fields = || fields.iter().map(|(key, value)| (*key, value.as_str()));
            if fields().next().is_some() {
                push_fields(&mut canonical, namespace, fields());
                out.block(namespace, fields());
            }
        }
        document.write_body(&mut out);
        let digest = integrity.digest.unwrap_or_else(|| document.body_digest());
        document.push_body_line(&mut canonical, &digest);
        let algorithm = self.key.algorithm();
        let signature = self
            .key
            .sign(&signed_bytes(algorithm, self.pkid, &canonical));
        let sig = format!(
            "{algorithm}:pkid={};sig={}",
            self.pkid,
            base64::encode(&signature)
        );
        Ok(out.finish(Some(&sig)))
    }
}
