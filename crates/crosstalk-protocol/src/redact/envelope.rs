//! Personal data taken out of an envelope (RED-020 to RED-024).

use super::{FoundPii, PiiKind, RedactionRules, find, replaced};
use crosstalk_envelope::meta::list;
use crosstalk_envelope::registry::{KEPT_KEYS, KEPT_NAMESPACES, Namespace, ValueKind, rule};
use crosstalk_envelope::{CoreHeader, Diagnostic, Document, Edit, EditPlace, Reading, Severity};

/// An envelope without what was found in it.
#[derive(Clone, Debug)]
pub struct Redacted {
    /// The envelope; the one that came, byte for byte, if nothing was found.
    pub text: String,
    /// The kinds that were found, the strongest first.
    pub fields: Vec<PiiKind>,
    /// The findings. Their positions refer to the text that the envelope was found in; in a repaired one they are
    /// exact to the line.
    pub found: Vec<FoundPii>,
    /// How many attachments there are: they are not looked into.
    pub attachments: usize,
}

impl Redacted {
    /// How much was found.
    pub fn count(&self) -> usize {
        self.found.len()
    }
}

/// Takes personal data out of an envelope that was accepted: out of the body, `user`, `context`, headers that the format
/// does not know, and META values that are free text. Ids, addresses and what signers and hops write stay.
///
/// `meta: privacy` then says `PII: redacted` and names the kinds. With `drop_signature` a signature, which the change
/// breaks, is removed together with `meta: integrity`.
///
/// # Errors
/// A finding by RED-023 if there is something to take out of a signed envelope; the finding of a document that was not
/// accepted; one by ENV-034 or another rule if `meta: privacy` can't be written.
///
/// ```
/// use crosstalk_envelope::{Document, Reading};
/// use crosstalk_protocol::redact::{RedactionRules, redact_envelope};
/// let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  Ask jane@example.com.\nsig: none\n[[END]]\n";
/// let document = Document::parse(text, Reading::Strict);
/// let redacted = redact_envelope(&document, &RedactionRules::default(), false).unwrap();
/// assert!(redacted.text.contains("meta: privacy\nPII: redacted\nRedacted-Fields: email\n"));
/// assert!(redacted.text.contains("\n  Ask [EMAIL].\n"));
/// ```
pub fn redact_envelope(
    document: &Document<'_>,
    rules: &RedactionRules,
    drop_signature: bool,
) -> Result<Redacted, Diagnostic> {
    if document.reading() == Reading::Strict && document.text() != document.source() {
        // It is changed as it was read: in NFC.
        let normal = Document::parse(document.text(), Reading::Strict);
        return redact_normal(&normal, rules, drop_signature).map(|redacted| {
            if redacted.found.is_empty() {
                let text = document.source().to_owned();
                return Redacted { text, ..redacted };
            }
            redacted
        });
    }
    redact_normal(document, rules, drop_signature)
}

fn redact_normal(
    document: &Document<'_>,
    rules: &RedactionRules,
    drop_signature: bool,
) -> Result<Redacted, Diagnostic> {
    let mut all: Vec<FoundPii> = Vec::new();
    let mut attachments = 0;
    let mut edit = Edit::new(document)?.revise(|place, span, text| {
        attachments += usize::from(is_attachment(&place));
        if !is_free_text(&place) {
            return None;
        }
        let found = find(text, rules);
        if found.is_empty() {
            return None;
        }
        let revised = replaced(text, &found);
        all.extend(found.into_iter().map(|one| FoundPii {
            span: document.in_source(one.span.start + span.start..one.span.end + span.start),
            ..one
        }));
        Some(revised)
    })?;
    let mut fields: Vec<PiiKind> = all.iter().map(|one| one.kind).collect();
    fields.sort_unstable();
    fields.dedup();
    if all.is_empty() {
        let text = document.source().to_owned();
        return Ok(Redacted {
            text,
            fields,
            found: all,
            attachments,
        });
    }
    let is_signed = !matches!(document.sig(), None | Some("none"));
    if is_signed || document.block("integrity").is_some() {
        if !drop_signature {
            return Err(signed(&all, is_signed));
        }
        edit = edit.remove_blocks("integrity");
        if is_signed {
            edit = edit.set_sig("none")?;
        }
    }
    let named = named(document.meta("privacy", "Redacted-Fields"), &fields);
    let privacy = [("PII", "redacted"), ("Redacted-Fields", named.as_str())];
    edit = match document.block("privacy") {
        None => edit.add_block("privacy", &privacy)?,
        Some(_) => privacy.into_iter().try_fold(edit, |edit, (key, value)| {
            edit.set_key("privacy", key, value)
        })?,
    };
    Ok(Redacted {
        text: edit.finish(),
        fields,
        found: all,
        attachments,
    })
}

fn signed(found: &[FoundPii], is_signed: bool) -> Diagnostic {
    let what = match is_signed {
        true => "the message is signed, and without what was found the signature would not hold",
        false => {
            "meta: integrity tells what the body was, and without what was found it would not be true"
        }
    };
    Diagnostic {
        rule: &rule::REDACTION_SIGNED,
        severity: Severity::Error,
        span: found.first().map_or(0..0, |one| one.span.clone()),
        message: what.into(),
    }
}

/// What `Redacted-Fields` says: what it said before, and the kinds that are new.
fn named(before: Option<&str>, fields: &[PiiKind]) -> String {
    let before = before.map(list).unwrap_or_default();
    let mut words: Vec<&str> = before.iter().map(|word| word.as_ref()).collect();
    for kind in fields {
        if !words.contains(&kind.as_str()) {
            words.push(kind.as_str());
        }
    }
    words.join(", ")
}

/// Whether people write there what they like (RED-022).
fn is_free_text(place: &EditPlace<'_>) -> bool {
    match place {
        EditPlace::Body => true,
        EditPlace::Header(name) => match CoreHeader::from_name(name) {
            None | Some(CoreHeader::User | CoreHeader::Context) => true,
            Some(_) => false,
        },
        EditPlace::Key { namespace, key } => {
            let kind = Namespace::find(namespace).and_then(|n| n.kind_of(key));
            let is_text = kind.is_none_or(|(kind, _)| {
                matches!(kind, ValueKind::Text | ValueKind::List | ValueKind::Options)
            });
            is_text && !KEPT_NAMESPACES.contains(namespace) && !KEPT_KEYS.contains(key)
        }
    }
}

fn is_attachment(place: &EditPlace<'_>) -> bool {
    let EditPlace::Key { namespace, key } = place else {
        return false;
    };
    let kind = Namespace::find(namespace).and_then(|n| n.kind_of(key));
    kind.is_some_and(|(kind, _)| kind == ValueKind::Attachment)
}
