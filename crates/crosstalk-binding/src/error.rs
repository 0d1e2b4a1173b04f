//! The one error type of the packages.

use crosstalk_envelope::json::JsonError;
use crosstalk_envelope::registry::Rule;
use crosstalk_envelope::{BuildError, Diagnostic, ErrorCode, Explanation, KeyError};
use std::fmt;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrosstalkError {
    /// The code of the taxonomy; none if the call itself makes no sense.
    pub code: Option<ErrorCode>,
    /// The id of the rule that is broken.
    pub rule: Option<&'static str>,
    /// The error in one sentence.
    pub message: String,
    /// What to do about it; empty if there is nothing to say.
    pub help: String,
    /// The line of the text, from 1, if the error is about one.
    pub line: Option<usize>,
}

impl CrosstalkError {
    /// An error of the taxonomy that no rule is about.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            rule: None,
            message: message.into(),
            help: String::new(),
            line: None,
        }
    }

    /// An error of the call itself: no text makes it valid.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: None,
            ..Self::new(ErrorCode::Format, message)
        }
    }

    /// A violation of a rule, with the code and the help of the rule.
    pub fn of_rule(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            code: rule.code,
            rule: Some(rule.id),
            help: rule.help.to_owned(),
            ..Self::usage(message)
        }
    }

    /// A finding in a text.
    pub fn of_finding(finding: &Diagnostic, text: &str) -> Self {
        Self {
            line: Some(finding.position(text).line),
            ..Self::of_rule(finding.rule, finding.message.clone())
        }
    }

    /// The first of the findings that reject a text.
    pub(crate) fn of_findings(findings: &[Diagnostic], text: &str) -> Option<Self> {
        let errors = findings.iter().filter(|finding| finding.is_error());
        let first = errors.min_by_key(|finding| finding.span.start)?;
        Some(Self::of_finding(first, text))
    }

    /// The same error, with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for CrosstalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Explanation::new(&self.message, &self.help).fmt(f)
    }
}

impl std::error::Error for CrosstalkError {}

impl From<KeyError> for CrosstalkError {
    fn from(fault: KeyError) -> Self {
        Self::of_rule(fault.rule, fault.message)
    }
}

impl From<JsonError> for CrosstalkError {
    fn from(fault: JsonError) -> Self {
        Self::new(fault.code, fault.message)
    }
}

/// It has no line: the line would be one of a text that the caller has never seen.
impl From<BuildError> for CrosstalkError {
    fn from(fault: BuildError) -> Self {
        let error = Self::of_findings(&fault.diagnostics, &fault.text);
        let error = error.unwrap_or_else(|| Self::new(ErrorCode::Format, fault.to_string()));
        Self {
            line: None,
            ..error
        }
    }
}
