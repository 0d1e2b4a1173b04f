//! What ends a command, or the work on one of its files, before its time.

use crate::exit::Exit;
use crate::input::shown_path;
use crosstalk_dns::SetupError;
use crosstalk_envelope::registry::Rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{ErrorCode, KeyError};
use crosstalk_protocol::bundle::BundleError;
use crosstalk_protocol::store::{StoreError, StoreFault};
use crosstalk_store::{ConfigFileError, HomeError, KeyFileError, TrustStoreError};
use std::fmt;
use std::io;
use std::path::Path;

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
    /// Anything else that can't be done: a whole sentence.
    Failed(String),
}

impl Failure {
    /// What breaks a rule, with what to do about it.
    pub(crate) fn of_rule(rule: &Rule, what: &str) -> Self {
        let help = match rule.help {
            "" => String::new(),
            help => format!("; {help}"),
        };
        let message = format!("{what} ({}){help}", rule.id);
        match rule.code {
            Some(code) => Self::Refused(code, message),
            None => Self::Failed(message),
        }
    }

    /// A key that can't be read.
    pub(crate) fn of_key(what: &str, fault: &KeyError) -> Self {
        Self::of_rule(fault.rule, &format!("{what}: {fault}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::ClosedPipe => Exit::SUCCESS,
            Self::Io(..) | Self::Failed(_) => Exit::FAILURE,
            Self::Usage(_) => Exit::USAGE,
            Self::Refused(code, _) => (*code).into(),
        }
    }

    /// A file that can't be read or written.
    pub(crate) fn at(path: &Path, fault: io::Error) -> Self {
        Self::Io(path.to_string_lossy().into_owned(), fault)
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
            Self::Usage(message) | Self::Refused(_, message) | Self::Failed(message) => {
                f.write_str(&escape(message))
            }
        }
    }
}

impl From<HomeError> for Failure {
    fn from(fault: HomeError) -> Self {
        Self::Failed(fault.to_string())
    }
}

impl From<KeyFileError> for Failure {
    fn from(fault: KeyFileError) -> Self {
        let message = fault.to_string();
        match fault {
            KeyFileError::WrongPassphrase { .. } => Self::Refused(ErrorCode::Perm, message),
            _ => Self::Failed(message),
        }
    }
}

impl From<TrustStoreError> for Failure {
    fn from(fault: TrustStoreError) -> Self {
        let message = fault.to_string();
        match fault {
            TrustStoreError::Malformed { .. } => Self::Refused(ErrorCode::Format, message),
            _ => Self::Failed(message),
        }
    }
}

impl From<ConfigFileError> for Failure {
    fn from(fault: ConfigFileError) -> Self {
        Self::Failed(fault.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(fault: StoreError) -> Self {
        match fault.fault {
            StoreFault::Newer => Self::Refused(ErrorCode::Unsupported, fault.message),
            StoreFault::Busy => Self::Refused(ErrorCode::Timeout, fault.message),
            StoreFault::Full
            | StoreFault::Invalid
            | StoreFault::Damaged
            | StoreFault::Unavailable => Self::Failed(fault.message),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(fault: BundleError) -> Self {
        Self::Refused(fault.code, fault.to_string())
    }
}

impl From<SetupError> for Failure {
    fn from(fault: SetupError) -> Self {
        Self::Failed(fault.to_string())
    }
}
