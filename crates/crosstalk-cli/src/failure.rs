//! The one type of expected failures: each says what happened and what to do about it, and has an exit code.

use crate::exit::Exit;
use crate::input::shown_path;
use crosstalk_binding::CrosstalkError;
use crosstalk_dns::SetupError;
use crosstalk_envelope::registry::Rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{ErrorCode, Explanation, KeyError};
use crosstalk_protocol::bundle::BundleError;
use crosstalk_protocol::store::{StoreError, StoreFault};
use crosstalk_store::{ConfigFileError, DiskError, HomeError, KeyFileError, TrustStoreError};
use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

/// A failure that ends a command, or the work on one of its files.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    /// The fact and the way out; the fact of an I/O failure is the file or stream.
    explanation: Explanation,
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
            explanation: Explanation::fact(what),
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
            ..Self::new(kind, what).help(rule.help)
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
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.explanation.help = help.into();
        self
    }

    /// The same failure, which begins with the name of the file that it is about.
    pub(crate) fn about(mut self, name: &str) -> Self {
        if !matches!(self.kind, FailureKind::Io(_)) {
            self.explanation.what = format!("{name}: {}", self.explanation.what);
        }
        self
    }

    pub(crate) const fn is_closed_pipe(&self) -> bool {
        matches!(self.kind, FailureKind::ClosedPipe)
    }

    pub(crate) const fn is_usage(&self) -> bool {
        matches!(self.kind, FailureKind::Usage)
    }

    /// What happened and what to do, without the exit code.
    pub(crate) fn into_explanation(self) -> Explanation {
        match self.kind {
            FailureKind::Io(_) => Explanation::fact(self.to_string()),
            _ => self.explanation,
        }
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
        let Explanation { what, help } = &self.explanation;
        let mut what = match &self.kind {
            FailureKind::Io(fault) => format!("{}: {}", shown_path(what), words_of(fault)),
            _ => escape(what).into_owned(),
        };
        if let Some(rule) = self.rule {
            let _ = write!(what, " ({rule})");
        }
        let help = match (&self.kind, help.as_str()) {
            (FailureKind::Io(fault), "") => way_out(fault),
            (_, help) => help,
        };
        Explanation::new(what, escape(help)).fmt(f)
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

/// A failure without a code of the taxonomy.
impl From<Explanation> for Failure {
    fn from(explanation: Explanation) -> Self {
        Self {
            kind: FailureKind::Other,
            explanation,
            rule: None,
        }
    }
}

impl Failure {
    /// The same failure with a code of the taxonomy.
    fn code(self, code: ErrorCode) -> Self {
        let kind = FailureKind::Code(code);
        Self { kind, ..self }
    }
}

impl From<CrosstalkError> for Failure {
    fn from(fault: CrosstalkError) -> Self {
        let kind = fault.code.map_or(FailureKind::Other, FailureKind::Code);
        Self {
            rule: fault.rule,
            ..Self::new(kind, fault.message).help(fault.help)
        }
    }
}

impl From<KeyFileError> for Failure {
    fn from(fault: KeyFileError) -> Self {
        let failure = Self::from(fault.explanation());
        match fault {
            KeyFileError::WrongPassphrase { .. } => failure.code(ErrorCode::Perm),
            _ => failure,
        }
    }
}

impl From<TrustStoreError> for Failure {
    fn from(fault: TrustStoreError) -> Self {
        let failure = Self::from(fault.explanation());
        match fault {
            TrustStoreError::Malformed { .. } => failure.code(ErrorCode::Format),
            _ => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(fault: StoreError) -> Self {
        let failure = Self::from(fault.explanation);
        match fault.fault {
            StoreFault::Newer => failure.code(ErrorCode::Unsupported),
            StoreFault::Busy => failure.code(ErrorCode::Timeout),
            StoreFault::Full
            | StoreFault::Invalid
            | StoreFault::Damaged
            | StoreFault::Unavailable => failure,
        }
    }
}

impl From<BundleError> for Failure {
    fn from(fault: BundleError) -> Self {
        Self::from(fault.explanation).code(fault.code)
    }
}

/// Errors without a code of their own.
macro_rules! failed_from {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(fault: $error) -> Self {
                fault.explanation().into()
            }
        }
    )+};
}

failed_from!(HomeError, ConfigFileError, SetupError, DiskError);
