//! Why an implementation does not pass a case.

use std::fmt;

/// Why an implementation does not pass a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer differs from what the case expects.
    Mismatch {
        /// What the case expects.
        expected: String,
        /// What the implementation answered.
        received: String,
    },
    /// The implementation says that it does not have the operation.
    Unsupported,
    /// The implementation gave no usable answer: why.
    NoAnswer(String),
    /// The case file itself is wrong.
    Case(String),
}

impl Fault {
    pub(crate) fn mismatch(expected: impl fmt::Display, received: impl fmt::Display) -> Self {
        Self::Mismatch {
            expected: expected.to_string(),
            received: received.to_string(),
        }
    }
}

impl From<String> for Fault {
    fn from(fault: String) -> Self {
        Self::Case(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { expected, received } => {
                write!(f, "expected {expected}\nreceived {received}")
            }
            Self::Unsupported => f.write_str("the implementation does not support the operation"),
            Self::NoAnswer(why) => f.write_str(why),
            Self::Case(fault) => write!(f, "the case file is wrong: {fault}"),
        }
    }
}
