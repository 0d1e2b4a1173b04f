//! Whether a key signed an envelope: first the head, then the body against the digest that the head declares.
//!
//! Implements SIG-010 to SIG-017. Whether the key is trusted is decided elsewhere.

mod candidate;
mod restore;

use crate::base64;
use crate::diagnosis::{Diagnosis, compare};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Reading};
use crate::grammar::BodyKind;
use crate::key::{Algorithm, PublicKey};
use crate::layout::EnvelopeWriter;
use crate::meta::{Digest, Integrity};
use crate::registry::{Rule, rule};
use crate::signature::Signature;
use crate::signing::signed_bytes;

/// Why a key did not sign an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no signature.
    Unsigned,
    /// There is no signature, and there was one: the integrity block is still there.
    Stripped,
    /// The envelope or its signature can't be read: why.
    Malformed(String),
    /// The algorithm is not known here.
    AlgorithmUnknown,
    /// The algorithm is not that of the key.
    AlgorithmOfKey,
    /// The signature does not fit.
    Signature,
    /// The signature fits what was read, and the reading left text out: what was left out.
    Dropped(Diagnostic),
}

impl Unfit {
    /// The rule that decides so; an unsigned envelope breaks none.
    pub const fn rule(&self) -> Option<&'static Rule> {
        match self {
            Self::Unsigned => None,
            Self::Stripped => Some(&rule::SIGNATURE_STRIPPED),
            Self::Malformed(_) => Some(&rule::SIG_MALFORMED),
            Self::AlgorithmUnknown => Some(&rule::ALGORITHM_UNKNOWN),
            Self::AlgorithmOfKey => Some(&rule::ALGORITHM_OF_KEY),
            Self::Signature => Some(&rule::SIGNATURE_UNFIT),
            Self::Dropped(_) => Some(&rule::CONTENT_DROPPED),
        }
    }
}

/// An envelope whose head a key signed. Only [`authenticate`] makes one.
#[derive(Clone, Debug)]
pub struct Authentic {
    /// The canonical form: what was signed.
    canonical: String,
    /// The value of the `sig:` line.
    sig: String,
    integrity: Option<Integrity>,
    body: BodyState,
}

#[derive(Clone, Debug)]
enum BodyState {
    Intact(String),
    Damaged(Diagnosis, Option<String>),
}

/// A head and a body that a key signed. Only [`authenticate`] leads here.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    authentic: &'a Authentic,
    body: &'a str,
}

impl Authentic {
    /// The envelope, if its body is what was signed.
    pub fn verified(&self) -> Option<Verified<'_>> {
        match &self.body {
            BodyState::Intact(body) => Some(Verified {
                authentic: self,
                body,
            }),
            BodyState::Damaged(..) => None,
        }
    }

    /// The state of the body.
    pub const fn diagnosis(&self) -> &Diagnosis {
        match &self.body {
            BodyState::Intact(_) => &Diagnosis::Intact,
            BodyState::Damaged(diagnosis, _) => diagnosis,
        }
    }

    /// The body as it was signed, where a search among the reflowed words found it (SIG-016).
    pub fn restored(&self) -> Option<&str> {
        match &self.body {
            BodyState::Damaged(_, restored) => restored.as_deref(),
            BodyState::Intact(_) => None,
        }
    }

    /// The head as an envelope with an empty body: every header and block that was signed, no hop's.
    pub fn head(&self) -> String {
        rebuilt(&self.canonical, "", &self.sig)
    }

    /// The declared measures of the body.
    pub const fn integrity(&self) -> Option<&Integrity> {
        self.integrity.as_ref()
    }

    /// The canonical form that was signed.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }
}

impl<'a> Verified<'a> {
    /// The envelope, rebuilt from the verified bytes: nothing that a hop wrote, nothing that was only received.
    pub fn to_envelope(&self) -> String {
        rebuilt(&self.authentic.canonical, self.body, &self.authentic.sig)
    }

    /// The body text that was signed.
    pub const fn body(&self) -> &'a str {
        self.body
    }

    /// The canonical form that was signed.
    pub fn canonical(&self) -> &'a str {
        &self.authentic.canonical
    }
}

/// Checks a document against a key.
///
/// A document of the strict reading is checked as it is: over its exact canonical bytes, without any repair. Repaired
/// forms are tried for the paste reading alone; what they verify is in [`Verified::to_envelope`], and not in the document.
pub fn authenticate(document: &Document<'_>, key: &PublicKey) -> Result<Authentic, Unfit> {
    check(document, key, false)
}

/// Checks a document against a key and, if its body is damaged, searches for the body that was signed (SIG-016). The search
/// takes up to a thousand times as long as the check, so it is for a person who looks at one message.
pub fn authenticate_and_restore(
    document: &Document<'_>,
    key: &PublicKey,
) -> Result<Authentic, Unfit> {
    check(document, key, true)
}

fn check(document: &Document<'_>, key: &PublicKey, restores: bool) -> Result<Authentic, Unfit> {
    let (pkid, signature) = signature_of(document, key)?;
    let fits =
        |canonical: &str| key.verifies(&signed_bytes(key.algorithm(), pkid, canonical), &signature);
    let integrity = document.envelope().integrity();
    let declared = integrity.as_ref().and_then(|i| i.digest);
    let body = document.body_digest();
    let malformed = |d: Diagnostic| Unfit::Malformed(d.message.into_owned());
    let canonical = document
        .canonical_with(&declared.unwrap_or(body))
        .map_err(malformed)?;
    let (canonical, integrity) = if fits(&canonical) {
        (canonical, integrity)
    } else if document.reading() == Reading::Paste {
        repaired_head(document, body, &canonical, fits).ok_or(Unfit::Signature)?
    } else {
        return Err(Unfit::Signature);
    };
    if let Some(left_out) = document.diagnostics().iter().find(|d| d.rule.drops) {
        return Err(Unfit::Dropped(left_out.clone()));
    }
    let declared = integrity.as_ref().and_then(|i| i.digest);
    let body = match (&integrity, declared) {
        (Some(integrity), Some(digest)) if digest != body => match document.reading() {
            Reading::Strict => BodyState::Damaged(damage(integrity, document), None),
            Reading::Paste => damaged_or_repaired(document, integrity, &digest, restores),
        },
        _ => BodyState::Intact(document.body_text()),
    };
    let sig = document.sig().unwrap_or_default().to_owned();
    Ok(Authentic {
        canonical,
        sig,
        integrity,
        body,
    })
}

/// The key id and the bytes of the signature.
fn signature_of<'d>(
    document: &'d Document<'_>,
    key: &PublicKey,
) -> Result<(&'d str, Vec<u8>), Unfit> {
    let none = || match document.block("integrity") {
        Some(_) => Unfit::Stripped,
        None => Unfit::Unsigned,
    };
    let sig = document.sig().ok_or_else(none)?;
    match Signature::parse(sig).map_err(|why| Unfit::Malformed(why.to_owned()))? {
        Signature::None => Err(none()),
        Signature::Signed {
            algorithm,
            pkid,
            base64,
        } => {
            let algorithm = Algorithm::parse(algorithm).ok_or(Unfit::AlgorithmUnknown)?;
            if algorithm != key.algorithm() {
                return Err(Unfit::AlgorithmOfKey);
            }
            Ok((pkid, base64::decode(base64).unwrap_or_default()))
        }
    }
}

/// The canonical form of a repaired head that the signature fits (SIG-013).
fn repaired_head(
    document: &Document<'_>,
    body: Digest,
    canonical: &str,
    fits: impl Fn(&str) -> bool,
) -> Option<(String, Option<Integrity>)> {
    candidate::heads(document, canonical).find_map(|head| {
        let text = rebuilt(&head, "", "none");
        let head = Document::parse(&text, Reading::Strict);
        let integrity = head.envelope().integrity();
        let digest = integrity.as_ref().and_then(|i| i.digest).unwrap_or(body);
        let canonical = head.canonical_with(&digest).ok()?;
        fits(&canonical).then_some((canonical, integrity))
    })
}

/// The body that has the digest, among the repaired ones; else what happened to it.
fn damaged_or_repaired(
    document: &Document<'_>,
    declared: &Integrity,
    digest: &Digest,
    restores: bool,
) -> BodyState {
    let lines: Vec<&str> = document.body_lines().collect();
    let mut reflowed = None;
    for body in candidate::bodies(&lines, declared) {
        let text = || body.lines.iter().map(AsRef::as_ref);
        if Digest::of_lines(text()) == *digest {
            return BodyState::Intact(body.lines.join("\n"));
        }
        let is_new = reflowed.is_none() && !body.same_words;
        if is_new && declared.words == Some(Digest::of_words(text())) {
            reflowed = Some(body.lines);
        }
    }
    let is_reflowed = reflowed.is_some();
    // With as many lines as there were, and other words, a line was changed: no other line breaks would help.
    let may_be_reflowed = is_reflowed || declared.lines != Some(lines.len());
    let words = reflowed.unwrap_or_else(|| lines.iter().map(|l| (*l).into()).collect());
    let restored = (restores && may_be_reflowed)
        .then(|| restore::restore(&words, declared, digest))
        .flatten();
    let diagnosis = if is_reflowed || restored.is_some() {
        Diagnosis::Reflowed
    } else {
        damage(declared, document)
    };
    BodyState::Damaged(diagnosis, restored)
}

/// The damage of a body that has not the declared digest.
fn damage(declared: &Integrity, document: &Document<'_>) -> Diagnosis {
    compare(declared, document).unwrap_or(Diagnosis::Altered { lines: Vec::new() })
}

/// An envelope of a canonical form, whose last line is the digest of the body, with a body and a signature.
fn rebuilt(canonical: &str, body: &str, sig: &str) -> String {
    let size = canonical.len() + body.len() + sig.len() + 64;
    let mut out = EnvelopeWriter::raw(size);
    let mut lines = canonical.split_terminator('\n').peekable();
    let mut kind = BodyKind::Body;
    while let Some(line) = lines.next() {
        if lines.peek().is_some() {
            out.raw_line(line);
        } else if line.starts_with("response:") {
            kind = BodyKind::Response;
        }
    }
    out.body(kind, body.split('\n').filter(|_| !body.is_empty()));
    out.finish(Some(sig))
}
