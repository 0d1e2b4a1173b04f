//! What ends a command, or the work on one of its files, before its time.

use crate::exit::Exit;
use crate::input::shown_path;
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::unicode::escape;
use std::fmt;
use std::io;

/// An expected failure; each kind has its exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads what we write.
    ClosedPipe,
    /// Reading or writing failed: on what, and why.
    Io(String, io::Error),
    /// The command was called in a wrong way.
    Usage(String),
    /// What was given breaks a rule.
    Refused(ErrorCode, String),
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::ClosedPipe => Exit::SUCCESS,
            Self::Io(..) => Exit::FAILURE,
            Self::Usage(_) => Exit::USAGE,
            Self::Refused(code, _) => (*code).into(),
        }
    }

    /// A failure to write on stdout or stderr.
    pub(crate) fn of_output(fault: io::Error) -> Self {
        if fault.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Io("the output".into(), fault)
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedPipe => Ok(()),
            Self::Io(what, fault) => write!(f, "{}: {fault}", shown_path(what)),
            Self::Usage(message) | Self::Refused(_, message) => f.write_str(&escape(message)),
        }
    }
}
