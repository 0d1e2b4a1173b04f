//! The META blocks that a bundle passes on: attachments, restrictions, warnings, consent.

use super::consent::ConsentState;
use super::{BundleError, counts, quote};
use crate::consent::SEVERAL;
use crate::consent::keeps_inside;
use crate::store::Record;
use crosstalk_envelope::meta::{Attachment, Digest};
use crosstalk_envelope::{Builder, Document, ErrorCode, Timestamp};

/// The most attachments that go on; an envelope has a limited number of keys.
const ATTACHMENTS: usize = 100;
/// The longest entry of an attachment, in bytes.
const ENTRY_BYTES: usize = 1_000;
/// The most bytes of embedded data in an entry, in base64.
const DATA_BYTES: usize = 4_000;
/// The most bytes of embedded data in all, in base64.
const ALL_DATA_BYTES: usize = 12_000;
/// The most characters of all warnings.
const WARNING_CHARS: usize = 600;

/// What the messages of a thread bring along.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The entries of `meta: attachments`.
    pub(super) attachments: Vec<String>,
    /// How many more there were.
    pub(super) not_carried: usize,
    /// For each message, its attachments as they are named in the transcript.
    pub(super) named: Vec<Vec<String>>,
    /// Whether somebody asked for no third party.
    pub(super) no_third_party: bool,
    warnings: Vec<String>,
    allowed_use: Option<Vec<String>>,
}

impl Carried {
    pub(super) fn of(thread: &[Record]) -> Self {
        let mut carried = Self::default();
        let mut digests: Vec<String> = Vec::new();
        let mut data_left = ALL_DATA_BYTES;
        for record in thread {
            let mut named = Vec::new();
            if counts(record) {
                let document = record.document();
                let envelope = document.envelope();
                carried.no_third_party |= keeps_inside(&document);
                carried.take_safety(&document);
                for (key, attachment) in envelope.attachments() {
                    let written = document.meta("attachments", key).unwrap_or("");
                    match attachment {
                        Ok(attachment) => {
                            let data = &mut data_left;
                            named.push(carried.attach(&attachment, written, &mut digests, data));
                        }
                        Err(_) => carried.not_carried += 1,
                    }
                }
            }
            carried.named.push(named);
        }
        carried
    }

    /// Takes an attachment over, once for all messages that have it, and gives the name for the transcript.
    fn attach(
        &mut self,
        attachment: &Attachment<'_>,
        written: &str,
        digests: &mut Vec<String>,
        data_left: &mut usize,
    ) -> String {
        let name = quote::inline(attachment.name.unwrap_or(attachment.mime), 100);
        let computed = attachment.data.as_deref().map(Digest::of);
        let digest = attachment.digest.map(str::to_lowercase);
        let Some(digest) = digest.or_else(|| computed.map(|d| d.to_string())) else {
            self.not_carried += 1;
            return format!("{name} (not carried on)");
        };
        if let Some(known) = digests.iter().position(|d| *d == digest) {
            return format!("A{} {name}", known + 1);
        }
        let sound = attachment.data.is_some() && attachment.check_embedded().is_ok();
        let with_data = sound && written.len() <= (*data_left).min(DATA_BYTES);
        let entry = if with_data {
            written.to_owned()
        } else {
            let named = attachment.name.map(|n| format!(";name={n}"));
            let other = attachment.other.iter().map(|(k, v)| format!(";{k}={v}"));
            let other: String = other.collect();
            let named = named.unwrap_or_default();
            format!("{}{named};digest={digest}{other}", attachment.mime)
        };
        let fits = with_data || entry.len() <= ENTRY_BYTES;
        if !fits || self.attachments.len() == ATTACHMENTS {
            self.not_carried += 1;
            return format!("{name} (not carried on)");
        }
        if with_data {
            *data_left -= written.len();
        }
        digests.push(digest);
        self.attachments.push(entry);
        let left = if attachment.data.is_some() && !with_data {
            " (without its data)"
        } else {
            ""
        };
        format!("A{} {name}{left}", digests.len())
    }

    fn take_safety(&mut self, document: &Document<'_>) {
        let Some(safety) = document.envelope().safety() else {
            return;
        };
        if let Some(warning) = safety.content_warning.filter(|w| !w.is_empty()) {
            let warning = quote::inline(warning, WARNING_CHARS);
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        if safety.allowed_use.is_empty() {
            return;
        }
        let allowed: Vec<String> = safety.allowed_use.into_iter().map(Into::into).collect();
        match &mut self.allowed_use {
            Some(known) => known.retain(|k| allowed.contains(k)),
            none => *none = Some(allowed),
        }
    }

    /// Writes `meta: safety` and `meta: attachments`.
    pub(super) fn write(&self, mut builder: Builder) -> Builder {
        if !self.warnings.is_empty() {
            let warnings = quote::inline(&self.warnings.join("; "), WARNING_CHARS);
            builder = builder.meta("safety", "Content-Warning", warnings);
        }
        if let Some(allowed) = &self.allowed_use {
            // What one message allows and another does not is not allowed for both.
            let allowed = if allowed.is_empty() {
                "none".to_owned()
            } else {
                flow(allowed)
            };
            builder = builder.meta("safety", "Allowed-Use", allowed);
        }
        for (number, entry) in (1..).zip(&self.attachments) {
            builder = builder.meta("attachments", format!("A{number}"), entry);
        }
        builder
    }
}

/// How a consent goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing<'a> {
    /// As it is: the conversation stays with those who have it, and a person joins.
    Along,
    /// To another party, with an approval or without one; the id of the message that does it.
    Over(bool, &'a str),
}

/// Writes `meta: privacy`, or says why the thread must not go on.
pub(super) fn privacy(
    builder: Builder,
    state: &ConsentState,
    passing: Passing<'_>,
    at: Timestamp,
) -> Result<Builder, BundleError> {
    if let Some(broken) = state.broken() {
        let name = match broken.ids.first() {
            Some(_) => format!(" {}", quote::inline(&broken.ids.join(SEVERAL), 200)),
            None => String::new(),
        };
        return Err(BundleError::new(
            ErrorCode::Consent,
            format!(
                "the consent{name} of message {} {}, and the thread holds what it is about",
                quote::inline(&broken.message, 100),
                broken.standing.as_str()
            ),
            "ask for a new consent and put it into the thread, or begin a new thread without the personal data",
        ));
    }
    let sensitive = state.is_sensitive();
    if sensitive && matches!(passing, Passing::Over(false, _)) {
        return Err(BundleError::new(
            ErrorCode::Consent,
            "the thread has personal or sensitive data, and nobody has approved its transfer to another party",
            "ask the person concerned, then hand it over and approve the transfer; or begin a new thread without the data",
        ));
    }
    let terms = state.terms();
    let transfers = (sensitive || state.holding().next().is_some()).then_some(passing);
    let mut fields = Vec::new();
    fields.extend(state.pii.map(|p| ("PII", p.as_str().to_owned())));
    let (ids, originals) = if let Some(Passing::Over(true, message)) = transfers {
        fields.push(("Consent", format!("transferred_with_approval_{at}")));
        (vec![format!("transfer-{message}")], terms.ids)
    } else {
        fields.extend(terms.text.map(|t| ("Consent", t)));
        (terms.ids, terms.originals)
    };
    let list = |key, items: Vec<String>| (!items.is_empty()).then(|| (key, items.join(SEVERAL)));
    fields.extend(list("Scope", terms.scopes));
    fields.extend(terms.expires.map(|e| ("Expires", e.to_string())));
    if terms.jurisdictions.iter().any(|j| j.contains(',')) {
        fields.push(("Jurisdiction", flow(&terms.jurisdictions)));
    } else {
        fields.extend(list("Jurisdiction", terms.jurisdictions));
    }
    fields.extend(list("Consent-ID", ids));
    fields.extend(list("Original-Consent-ID", originals));
    let write = |b: Builder, (key, value): (&str, String)| b.meta("privacy", key, value);
    Ok(fields.into_iter().fold(builder, write))
}

/// A flow list on one line (MET-001).
pub(super) fn flow(items: &[String]) -> String {
    let mut out = String::from("[");
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        out.push('"');
        for c in item.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_reads_back() {
        let items = [
            "a, b".to_owned(),
            "\"q\" \\ [x]".into(),
            "two\nlines\t".into(),
        ];
        assert_eq!(crosstalk_envelope::meta::list(&flow(&items)), items);
        assert_eq!(flow(&[]), "[]");
    }
}
