//! The faults of a clipboard, and what to do about them.

use super::{Choice, VARIABLE};
use crate::failure::Failure;
use crosstalk_envelope::{ErrorCode, limit};

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

const BY_HAND: &str = "copy by hand; `crosstalk paste -` reads a text that you paste into the terminal, and `crosstalk paste FILE` a file";

impl ClipboardError {
    /// Says what happened.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Off => {
                format!("the clipboard is switched off ({VARIABLE}=none or the configuration)")
            }
            Self::Missing(why) => format!("there is no clipboard here: {why}"),
            Self::Empty => "there is no text on the clipboard".to_owned(),
            Self::Files => "there are files on the clipboard, and no text".to_owned(),
            Self::NotText => "the clipboard has no text".to_owned(),
            Self::TooLarge => format!(
                "the text on the clipboard is larger than a paste may be, {} bytes",
                limit::PASTE_BYTES
            ),
            Self::NoAnswer => "the program that copied last does not hand its text out".to_owned(),
            Self::Busy => "another program has the clipboard open".to_owned(),
            Self::WriteOnly => "the clipboard of a terminal can't be read from here".to_owned(),
            Self::TooLong(bytes, most) => format!(
                "the text has {bytes} bytes, and terminals accept at most {most} for their clipboard"
            ),
            Self::NotCopied(why) => format!("the text is not on the clipboard: {why}"),
            Self::Setting(word) => format!("{word:?} is no clipboard"),
            Self::Other(why) => format!("the clipboard can't be used: {why}"),
        }
    }

    /// What to do about it.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Off | Self::NoAnswer | Self::WriteOnly | Self::Other(_) => BY_HAND.to_owned(),
            Self::Missing(_) => format!(
                "{BY_HAND}; over SSH, {VARIABLE}=terminal copies to the clipboard of your terminal"
            ),
            Self::Empty => "copy the message again".to_owned(),
            Self::Files => "copy the text of the file, or use `crosstalk paste FILE`".to_owned(),
            Self::NotText => "copy the message again, as text".to_owned(),
            Self::TooLarge => "copy less of it".to_owned(),
            Self::Busy => "try again".to_owned(),
            Self::TooLong(..) => "write it to a file, or copy by hand".to_owned(),
            Self::NotCopied(_) => "try again, or copy by hand".to_owned(),
            Self::Setting(_) => {
                format!(
                    "the words are {}",
                    Choice::ALL.map(Choice::as_str).join(", ")
                )
            }
        }
    }
}

impl From<ClipboardError> for Failure {
    fn from(fault: ClipboardError) -> Self {
        let failure = match fault {
            ClipboardError::TooLarge | ClipboardError::TooLong(..) => {
                Self::refused(ErrorCode::TooLarge, fault.what())
            }
            ClipboardError::Setting(_) => Self::usage(fault.what()),
            _ => Self::failed(fault.what()),
        };
        failure.help(fault.help())
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
