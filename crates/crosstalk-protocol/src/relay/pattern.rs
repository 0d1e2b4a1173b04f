//! Addresses by pattern: `claude://*`, `human://acme.example/*`, `CHATGPT`, `*`.

use crosstalk_envelope::Explanation;
use crosstalk_envelope::name::{begins_with, same_name};
use std::fmt;

/// Some addresses: one address, or all that begin with what stands before a `*` at the end.
///
/// ```
/// use crosstalk_protocol::relay::Pattern;
/// let pattern = Pattern::parse("claude://code/*").unwrap();
/// assert!(pattern.matches("claude://code/api") && !pattern.matches("claude://chat/7"));
/// assert!(Pattern::parse("chatgpt").unwrap().matches("CHATGPT"));
/// assert!(Pattern::parse("*").unwrap().matches("anything"));
/// assert!(Pattern::parse("a*b").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    is_exact: bool,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub enum PatternError {
    /// There is nothing.
    Empty,
    /// A `*` stands elsewhere than at the end.
    Star,
}

impl PatternError {
    /// Explains what happened and what to do.
    pub fn explanation(self) -> Explanation {
        match self {
            Self::Empty => Explanation::new(
                "there is no address",
                "write one, or the beginning of some and `*`, or `*` for all",
            ),
            Self::Star => Explanation::fact(
                "a `*` is allowed only at the end, where it means anything that follows",
            ),
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty, or has a `*` elsewhere than at its end.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        let start = text.strip_suffix('*').unwrap_or(text);
        match (text.is_empty(), start.contains('*')) {
            (true, _) => Err(PatternError::Empty),
            (_, true) => Err(PatternError::Star),
            _ => Ok(Self {
                text: text.to_owned(),
                is_exact: start == text,
            }),
        }
    }

    /// All addresses.
    pub fn all() -> Self {
        Self {
            text: "*".into(),
            is_exact: false,
        }
    }

    /// One address, as somebody else wrote it: a `*` in it stands for nothing else.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Pattern;
    /// let pattern = Pattern::exact("claude://*");
    /// assert!(pattern.matches("claude://*") && !pattern.matches("claude://code"));
    /// ```
    pub fn exact(address: &str) -> Self {
        Self {
            text: address.to_owned(),
            is_exact: true,
        }
    }

    /// Whether an address is one of them: the same name or address, or one that begins so. The case of names, schemes and
    /// hosts does not matter.
    pub fn matches(&self, address: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(start) if !self.is_exact => begins_with(address, start),
            _ => same_name(&self.text, address),
        }
    }

    /// How specific it is: one address is more specific than all that begin in some way, and a longer beginning more than a
    /// shorter one. Of the patterns that match an address, the greatest counts, in whatever order they are written.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Pattern;
    /// let rank = |text| Pattern::parse(text).unwrap().specificity();
    /// assert!(rank("*") < rank("claude://*"));
    /// assert!(rank("claude://*") < rank("claude://code/*"));
    /// assert!(rank("claude://code/a-long-beginning*") < rank("claude://code"));
    /// ```
    pub fn specificity(&self) -> (bool, usize) {
        (self.is_exact, self.text.chars().count())
    }

    /// The one address that it is for; none if it is for some.
    pub fn address(&self) -> Option<&str> {
        self.is_exact.then_some(&self.text)
    }

    /// Whether it is one address, and not all that begin in some way.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether it covers every address: it names none.
    pub fn is_all(&self) -> bool {
        !self.is_exact && self.text == "*"
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
