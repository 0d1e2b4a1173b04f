//! How a task or a step of `cargo xtask test` ends.

use std::{fmt, io};

/// It ended well.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did its work; the text says what came out, in a few words.
    Done(String),
    /// It could not be done on this machine and need not be; the text says why.
    Skipped(String),
}

/// It did not: what is wrong, and the command that shows it again.
#[derive(Debug)]
pub struct Failure {
    /// The fault, in one line or several.
    pub message: String,
    /// The command that reproduces it.
    pub again: Option<String>,
}

impl Failure {
    /// A failure that `again` reproduces.
    pub fn new(message: impl Into<String>, again: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            again: Some(again.into()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            message: error.to_string(),
            again: None,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            again: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.again {
            Some(again) => write!(f, "\nto see it again: {again}"),
            None => Ok(()),
        }
    }
}
