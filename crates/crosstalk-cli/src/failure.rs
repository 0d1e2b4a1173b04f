//! The one type of expected failures: each says what happened and what to do about it, and has an exit code.

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

/// A failure that ends a command, or the work on one of its files.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    /// The fact; for an I/O failure, the file or stream.
    what: String,
    /// A way out for the person.
    help: String,
    rule: Option<&'static str>,
}

#[derive(Debug)]
enum FailureKind {
    /// The reader of our output has closed it, which is no error.
    ClosedPipe,
    Io(io::Error),
    Usage,
    Code(ErrorCode),
    Other,
}

impl Failure {
    fn new(kind: FailureKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            help: String::new(),
            rule: None,
        }
    }

    /// A failure without a code of the taxonomy.
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, what)
    }

    /// A call of the command that makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, what)
    }

    /// A failure with a code of the taxonomy.
    pub(crate) fn refused(code: ErrorCode, what: impl Into<String>) -> Self {
        Self::new(FailureKind::Code(code), what)
    }

    /// E-FORMAT: something is malformed.
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::refused(ErrorCode::Format, what)
    }

    /// E-PERM: something is not allowed.
    pub(crate) fn denied(what: impl Into<String>) -> Self {
        Self::refused(ErrorCode::Perm, what)
    }

    /// A failure to read or write the file or stream that `place` names.
    pub(crate) fn io(place: impl Into<String>, fault: io::Error) -> Self {
        Self::new(FailureKind::Io(fault), place)
    }

    /// A failure to read or write a file.
    pub(crate) fn at(path: &Path, fault: io::Error) -> Self {
        Self::io(path.to_string_lossy(), fault)
    }

    /// A violation of a rule, with the code and the help of the rule.
    pub(crate) fn of_rule(rule: &Rule, what: &str) -> Self {
        let kind = rule.code.map_or(FailureKind::Other, FailureKind::Code);
        Self {
            rule: Some(rule.id),
            help: rule.help.into(),
            ..Self::new(kind, what)
        }
    }

    /// A key that can't be read.
    pub(crate) fn of_key(what: &str, fault: &KeyError) -> Self {
        Self::of_rule(fault.rule, &format!("{what}: {fault}"))
    }

    /// A failure to write on stdout or stderr.
    pub(crate) fn of_output(fault: io::Error) -> Self {
        match fault.kind() {
            io::ErrorKind::BrokenPipe => Self::new(FailureKind::ClosedPipe, ""),
            _ => Self::io("the output", fault),
        }
    }

    /// The same failure, with what to do about it.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        let help = help.into();
        Self { help, ..self }
    }

    /// The same failure, which begins with the name of the file that it is about.
    pub(crate) fn about(self, name: &str) -> Self {
        match self.kind {
            FailureKind::Io(_) => self,
            _ => Self {
                what: format!("{name}: {}", self.what),
                ..self
            },
        }
    }

    pub(crate) const fn is_closed_pipe(&self) -> bool {
        matches!(self.kind, FailureKind::ClosedPipe)
    }

    pub(crate) const fn is_usage(&self) -> bool {
        matches!(self.kind, FailureKind::Usage)
    }

    /// The error of the system behind it, if there is one.
    pub(crate) const fn io_error(&self) -> Option<&io::Error> {
        match &self.kind {
            FailureKind::Io(fault) => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            FailureKind::ClosedPipe => Exit::SUCCESS,
            FailureKind::Io(_) | FailureKind::Other => Exit::FAILURE,
            FailureKind::Usage => Exit::USAGE,
            FailureKind::Code(code) => code.into(),
        }
    }
}

/// Writes the fact, then the way out: the sentence that people read, also inside of `--json`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FailureKind::Io(fault) => write!(f, "{}: {}", shown_path(&self.what), words_of(fault))?,
            _ => f.write_str(&escape(&self.what))?,
        }
        if let Some(rule) = self.rule {
            write!(f, " ({rule})")?;
        }
        let help = match (&self.kind, self.help.as_str()) {
            (FailureKind::Io(fault), "") => way_out(fault),
            (_, help) => help,
        };
        if !help.is_empty() {
            write!(f, "; {}", escape(help))?;
        }
        Ok(())
    }
}

/// The words of an error of the system, without its number.
fn words_of(fault: &io::Error) -> String {
    let mut words = fault.to_string();
    if let Some(number) = fault.raw_os_error() {
        let end = format!(" (os error {number})");
        words.truncate(words.strip_suffix(&end).unwrap_or(&words).len());
    }
    words
}

/// What to do about an error of the system where the command says nothing of its own.
fn way_out(fault: &io::Error) -> &'static str {
    match fault.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::AlreadyExists => "choose another name, or remove it",
        _ => "",
    }
}

impl From<KeyFileError> for Failure {
    fn from(fault: KeyFileError) -> Self {
        let message = fault.to_string();
        match fault {
            KeyFileError::WrongPassphrase { .. } => Self::denied(message),
            _ => Self::failed(message),
        }
    }
}

impl From<TrustStoreError> for Failure {
    fn from(fault: TrustStoreError) -> Self {
        let message = fault.to_string();
        match fault {
            TrustStoreError::Malformed { .. } => Self::malformed(message),
            _ => Self::failed(message),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(fault: StoreError) -> Self {
        match fault.fault {
            StoreFault::Newer => Self::refused(ErrorCode::Unsupported, fault.message),
            StoreFault::Busy => Self::refused(ErrorCode::Timeout, fault.message),
            StoreFault::Full
            | StoreFault::Invalid
            | StoreFault::Damaged
            | StoreFault::Unavailable => Self::failed(fault.message),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(fault: BundleError) -> Self {
        Self::refused(fault.code, fault.to_string())
    }
}

/// Errors without a code of their own.
macro_rules! failed_from {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(fault: $error) -> Self {
                Self::failed(fault.to_string())
            }
        }
    )+};
}

failed_from!(HomeError, ConfigFileError, SetupError);
