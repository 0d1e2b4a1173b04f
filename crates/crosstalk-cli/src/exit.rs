//! The exit codes: a promise to scripts. The codes of the taxonomy come from `spec/registry/errors.toml`.
//!
//! With several files or envelopes, the largest code is the one that counts (TRN-004).

use crosstalk_envelope::{Diagnostic, ErrorCode};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Everything went well.
pub const OK: u8 = 0;
/// A failure that no code of the taxonomy names: a file that can't be read, a check that did not hold.
pub const FAILURE: u8 = 1;
/// The command was called in a wrong way.
pub const USAGE: u8 = 2;
/// E-ROUTE: the destination can't be found or reached.
pub const ROUTE: u8 = ErrorCode::Route.exit_code();
/// E-CONSENT: consent is missing, denied or expired.
pub const CONSENT: u8 = ErrorCode::Consent.exit_code();
/// E-FORMAT: the envelope is malformed.
pub const FORMAT: u8 = ErrorCode::Format.exit_code();
/// E-TOO-LARGE: a limit is exceeded.
pub const TOO_LARGE: u8 = ErrorCode::TooLarge.exit_code();
/// E-PERM: permission is missing.
pub const PERM: u8 = ErrorCode::Perm.exit_code();
/// E-UNSUPPORTED: the version or a feature is not supported.
pub const UNSUPPORTED: u8 = ErrorCode::Unsupported.exit_code();
/// E-TIMEOUT: no answer in time.
pub const TIMEOUT: u8 = ErrorCode::Timeout.exit_code();
/// E-RATE: too many messages.
pub const RATE: u8 = ErrorCode::Rate.exit_code();

/// How a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Exit(u8);

impl Exit {
    /// All is well.
    pub const SUCCESS: Self = Self(OK);
    /// A failure without a code.
    pub const FAILURE: Self = Self(FAILURE);
    /// Wrong usage.
    pub const USAGE: Self = Self(USAGE);

    /// The exit of the worst error among some findings.
    pub fn of<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) -> Self {
        findings
            .into_iter()
            .filter(|d| d.is_error())
            .map(|d| d.code().map_or(Self::FAILURE, Self::from))
            .max()
            .unwrap_or_default()
    }

    /// The worse one of two.
    pub fn worst(self, other: Self) -> Self {
        self.max(other)
    }

    /// The number that the process ends with.
    pub const fn code(self) -> u8 {
        self.0
    }
}

impl From<ErrorCode> for Exit {
    fn from(code: ErrorCode) -> Self {
        Self(code.exit_code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// The table of `crosstalk --help`.
pub(crate) fn table() -> String {
    let mut out = String::from(
        "Exit codes:\n   0  all is well\n   1  failure: a file that can't be read, a check that did not hold\n   2  wrong usage\n",
    );
    for code in ErrorCode::ALL {
        let _ = writeln!(out, "  {}  {}: {}", code.exit_code(), code, code.summary());
    }
    out.push_str("Of several, the largest one.");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_taxonomy() {
        let constants = [
            ROUTE,
            CONSENT,
            FORMAT,
            TOO_LARGE,
            PERM,
            UNSUPPORTED,
            TIMEOUT,
            RATE,
        ];
        let registry: Vec<u8> = ErrorCode::ALL.iter().map(|c| c.exit_code()).collect();
        assert_eq!(constants.as_slice(), registry);
        for code in ErrorCode::ALL {
            assert!(table().contains(&format!("{}  {code}: ", code.exit_code())));
        }
    }

    #[test]
    fn the_worst_one_counts() {
        let worst = Exit::from(ErrorCode::Format).worst(Exit::FAILURE);
        assert_eq!(worst.code(), FORMAT);
        assert_eq!(Exit::of([]), Exit::SUCCESS);
    }
}
