//! `meta: privacy` (MET-011).

use super::value::words;
use crate::document::Document;
use crate::time::Timestamp;
use std::borrow::Cow;

/// Consent, personal data, compliance.
#[derive(Clone, Debug, Default)]
pub struct Privacy<'d> {
    /// `PII`: present, redacted, none, as it was written.
    pub pii: Option<&'d str>,
    /// `Consent`, as it was written.
    pub declared: Option<&'d str>,
    /// `Scope`, as it was written.
    pub scope: Option<&'d str>,
    /// `Expires`, as it was written.
    pub end: Option<&'d str>,
    /// `Jurisdiction`, as it was written.
    pub jurisdiction: Option<&'d str>,
    /// `Consent-ID`.
    pub consent_id: Option<&'d str>,
    /// `Original-Consent-ID`.
    pub original_consent_id: Option<&'d str>,
}

impl<'d> Privacy<'d> {
    pub(super) fn of(document: &'d Document<'d>) -> Self {
        let mut privacy = Self::default();
        let Some(block) = document.block("privacy") else {
            return privacy;
        };
        for (key, value) in block.fields() {
            // A key about consent counts in any case.
            let field = match key.len() {
                3 if key.eq_ignore_ascii_case("PII") => &mut privacy.pii,
                5 if key.eq_ignore_ascii_case("Scope") => &mut privacy.scope,
                7 if key.eq_ignore_ascii_case("Consent") => &mut privacy.declared,
                7 if key.eq_ignore_ascii_case("Expires") => &mut privacy.end,
                10 if key.eq_ignore_ascii_case("Consent-ID") => &mut privacy.consent_id,
                12 if key.eq_ignore_ascii_case("Jurisdiction") => &mut privacy.jurisdiction,
                19 if key.eq_ignore_ascii_case("Original-Consent-ID") => {
                    &mut privacy.original_consent_id
                }
                _ => continue,
            };
            *field = Some(value);
        }
        privacy
    }

    /// `Consent` with its time.
    pub fn consent(&self) -> Option<ConsentValue<'d>> {
        self.declared.map(ConsentValue::parse)
    }

    /// `Expires`, where it is a time.
    pub fn expires(&self) -> Option<Timestamp> {
        self.end.and_then(Timestamp::parse)
    }

    /// The words of `Scope`.
    pub fn scopes(&self) -> Vec<Cow<'d, str>> {
        self.scope.map(words).unwrap_or_default()
    }

    /// The jurisdictions that are named.
    pub fn jurisdictions(&self) -> Vec<Cow<'d, str>> {
        self.jurisdiction.map(words).unwrap_or_default()
    }
}

/// A consent as it is declared, such as `explicit_yes_2025-10-09T16:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentValue<'d> {
    /// As it was written.
    pub text: &'d str,
    /// The kind of consent.
    pub kind: ConsentKind,
    /// When it was given, where the value says so.
    pub at: Option<Timestamp>,
}

/// The kinds of consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentKind {
    /// `explicit_yes`
    ExplicitYes,
    /// `explicit_no`
    ExplicitNo,
    /// `implicit`
    Implicit,
    /// `transferred_with_approval`
    Transferred,
    /// Anything else; it permits nothing.
    Unknown,
}

impl<'d> ConsentValue<'d> {
    /// Reads a consent. An unknown word permits nothing, and a no stays one whatever is written after it.
    ///
    /// ```
    /// use crosstalk_envelope::meta::{ConsentValue, ConsentKind};
    /// let consent = ConsentValue::parse("explicit_yes_2025-10-09T16:00Z");
    /// assert_eq!(consent.kind, ConsentKind::ExplicitYes);
    /// assert_eq!(consent.at.unwrap().to_string(), "2025-10-09T16:00:00Z");
    /// assert_eq!(ConsentValue::parse("explicit_yesterday").kind, ConsentKind::Unknown);
    /// assert_eq!(ConsentValue::parse("Explicit_No (said so)").kind, ConsentKind::ExplicitNo);
    /// ```
    pub fn parse(text: &'d str) -> Self {
        let (kind, at) = Self::known(text).unwrap_or_else(|| {
            const NO: &str = "explicit_no";
            let begin = text.get(..NO.len()).unwrap_or_default();
            match begin.eq_ignore_ascii_case(NO) {
                true => (ConsentKind::ExplicitNo, None),
                false => (ConsentKind::Unknown, None),
            }
        });
        Self { text, kind, at }
    }

    fn known(text: &str) -> Option<(ConsentKind, Option<Timestamp>)> {
        let kinds = [
            ("explicit_yes", ConsentKind::ExplicitYes),
            ("explicit_no", ConsentKind::ExplicitNo),
            ("implicit", ConsentKind::Implicit),
            ("transferred_with_approval", ConsentKind::Transferred),
        ];
        kinds
            .into_iter()
            .find_map(|(word, kind)| match text.strip_prefix(word)? {
                "" => Some((kind, None)),
                rest => Some((kind, Some(Timestamp::parse(rest.strip_prefix('_')?)?))),
            })
    }

    /// Whether it is one of the registry.
    pub fn is_known(&self) -> bool {
        self.kind != ConsentKind::Unknown
    }
}
