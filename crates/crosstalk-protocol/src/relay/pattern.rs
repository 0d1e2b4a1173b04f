//! Addresses by pattern: `claude://*`, `human://acme.example/*`, `CHATGPT`, `*`.

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
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// There is nothing.
    Empty,
    /// A `*` stands elsewhere than at the end.
    Star,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => {
                "there is no address: write one, or the beginning of some and `*`, or `*` for all"
            }
            Self::Star => "a `*` stands at the end, for anything that follows, and nowhere else",
        })
    }
}

impl std::error::Error for PatternError {}

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
            }),
        }
    }

    /// All addresses.
    pub fn all() -> Self {
        Self { text: "*".into() }
    }

    /// Whether an address is one of them: the same name or address, or one that begins so. The case of names, schemes and
    /// hosts does not matter.
    pub fn matches(&self, address: &str) -> bool {
        let Some(start) = self.text.strip_suffix('*') else {
            return same_name(&self.text, address);
        };
        begins_with(address, start)
    }

    /// The one address that it is for; none if it is for some.
    pub fn address(&self) -> Option<&str> {
        (!self.text.ends_with('*')).then_some(&self.text)
    }

    /// Whether it is one address, and not all that begin in some way.
    pub fn is_exact(&self) -> bool {
        !self.text.ends_with('*')
    }

    /// Whether it covers every address: it names none.
    pub fn is_all(&self) -> bool {
        self.text == "*"
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
