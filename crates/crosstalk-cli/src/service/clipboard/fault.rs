//! What goes wrong with a clipboard, and what to do about it.

use super::{Choice, VARIABLE};
use crate::failure::Failure;
use crosstalk_envelope::{ErrorCode, limit};
use std::fmt;

/// Why nothing was read or copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClipboardError {
    /// The person wants none.
    Off,
    /// There is none to reach: why.
    Missing(String),
    /// There is no text on it.
    Empty,
    /// There are files on it.
    Files,
    /// It holds no Unicode text.
    NotText,
    /// The text on it is larger than a paste may be.
    TooLarge,
    /// The program that copied last does not answer.
    NoAnswer,
    /// Another program has it open.
    Busy,
    /// The clipboard of a terminal can't be read.
    WriteOnly,
    /// The text is too long for a terminal: its bytes, and the most.
    TooLong(usize, usize),
    /// The text did not arrive: why.
    NotCopied(String),
    /// A word that names no clipboard.
    Setting(String),
    /// The system reports a fault that we have no sentence for.
    Other(String),
}

const BY_HAND: &str = "`crosstalk paste -` reads a text that you paste into the terminal, and `crosstalk paste FILE` a file";

impl fmt::Display for ClipboardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(
                f,
                "the clipboard is switched off ({VARIABLE}=none or the configuration): copy by hand; {BY_HAND}"
            ),
            Self::Missing(why) => write!(
                f,
                "there is no clipboard here: {why}; copy by hand, and {BY_HAND}; over SSH, \
                 {VARIABLE}=terminal copies to the clipboard of your terminal"
            ),
            Self::Empty => f.write_str("there is no text on the clipboard: copy the message again"),
            Self::Files => write!(
                f,
                "there are files on the clipboard, and no text: copy what is in the file, or {BY_HAND}"
            ),
            Self::NotText => {
                f.write_str("what is on the clipboard is no text: copy the message again, as text")
            }
            Self::TooLarge => write!(
                f,
                "the text on the clipboard is larger than a paste may be, {} bytes: copy less of it",
                limit::PASTE_BYTES
            ),
            Self::NoAnswer => write!(
                f,
                "the program that copied last does not hand its text out: copy again, or {BY_HAND}"
            ),
            Self::Busy => f.write_str("another program has the clipboard open: try again"),
            Self::WriteOnly => write!(
                f,
                "the clipboard of a terminal can't be read from here: {BY_HAND}, paste into it"
            ),
            Self::TooLong(bytes, most) => write!(
                f,
                "the text has {bytes} bytes, and terminals take at most {most} for their clipboard: write it to a \
                 file, or copy by hand"
            ),
            Self::NotCopied(why) => write!(f, "the text is not on the clipboard: {why}"),
            Self::Setting(word) => {
                let words = Choice::ALL.map(Choice::as_str).join(", ");
                write!(f, "{word:?} is no clipboard: the words are {words}")
            }
            Self::Other(why) => write!(
                f,
                "the clipboard can't be used: {why}; copy by hand, and {BY_HAND}"
            ),
        }
    }
}

impl std::error::Error for ClipboardError {}

impl From<ClipboardError> for Failure {
    fn from(fault: ClipboardError) -> Self {
        let message = fault.to_string();
        match fault {
            ClipboardError::TooLarge | ClipboardError::TooLong(..) => {
                Self::refused(ErrorCode::TooLarge, message)
            }
            ClipboardError::Setting(_) => Self::usage(message),
            _ => Self::failed(message),
        }
    }
}

impl From<arboard::Error> for ClipboardError {
    fn from(fault: arboard::Error) -> Self {
        match fault {
            arboard::Error::ContentNotAvailable => Self::Empty,
            arboard::Error::ConversionFailure => Self::NotText,
            arboard::Error::ClipboardOccupied => Self::Busy,
            arboard::Error::ClipboardNotSupported => {
                Self::Missing("the desktop does not let programs use it".into())
            }
            // Asked for text, its owner gives something else: a picture, for instance.
            arboard::Error::Unknown { description } if description.contains("incorrect type") => {
                Self::NotText
            }
            arboard::Error::Unknown { description } => Self::Other(description),
            other => Self::Other(other.to_string()),
        }
    }
}
