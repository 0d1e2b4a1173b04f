//! The two facts of a message for people, what happened and what to do, and the only functions that join them.

use std::fmt;

/// A message for people. It keeps what happened apart from what to do, so that a program can show or log either.
///
/// ```
/// use crosstalk_envelope::Explanation;
/// let full = Explanation::new("the disk is full", "make room and try again");
/// assert_eq!(full.to_string(), "the disk is full; make room and try again");
/// assert_eq!(Explanation::fact("the disk is full").to_string(), "the disk is full");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The event: what happened, and where.
    pub what: String,
    /// What to do about it; empty if there is nothing to say.
    pub help: String,
}

impl Explanation {
    /// The words before the help, wherever it has a line of its own.
    pub const HELP_LABEL: &str = "What to do: ";

    /// Both facts.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        let (what, help) = (what.into(), help.into());
        Self { what, help }
    }

    /// Makes an explanation without help.
    pub fn fact(what: impl Into<String>) -> Self {
        Self::new(what, "")
    }

    /// Both facts as lines of their own, for the body of an ERROR.
    pub fn detail(&self) -> String {
        match self.help.as_str() {
            "" => self.what.clone(),
            help => format!("{}\n{}{help}", self.what, Self::HELP_LABEL),
        }
    }
}

/// Both facts in one sentence, for a terminal or a log.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match self.help.as_str() {
            "" => Ok(()),
            help => write!(f, "; {help}"),
        }
    }
}
