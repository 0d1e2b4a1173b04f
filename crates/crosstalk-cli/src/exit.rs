//! The exit codes: a promise to scripts. The codes of the taxonomy come from `spec/registry/errors.toml`.
//!
//! With several files or envelopes, the largest code is the one that counts (TRN-004).

use crosstalk_envelope::{Diagnostic, ErrorCode};
use crosstalk_protocol::VerdictWord;
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

/// `verify`: the key came with the message, and nobody vouches for it.
pub const FIRST_CONTACT: u8 = VerdictWord::FirstContact.exit_code();
/// `verify`: a domain vouches for the key, and nothing binds the key to the sender.
pub const UNBOUND: u8 = VerdictWord::Unbound.exit_code();
/// `verify`: nobody signed.
pub const UNSIGNED: u8 = VerdictWord::Unsigned.exit_code();
/// `verify`: there is no key to check with.
pub const UNKNOWN_KEY: u8 = VerdictWord::UnknownKey.exit_code();
/// `verify`: the head is authentic, the body is not what was signed.
pub const DAMAGED: u8 = VerdictWord::Damaged.exit_code();
/// `verify`: the message must not be acted on.
pub const NOT_VERIFIED: u8 = VerdictWord::NotVerified.exit_code();
/// `verify`: the key was revoked.
pub const REVOKED: u8 = VerdictWord::Revoked.exit_code();

/// `audit`: two checkpoints of a log that do not fit together.
pub const FORK: u8 = 30;

/// How a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Exit(u8);

impl Exit {
    /// All is well.
    pub const SUCCESS: Self = Self(OK);
    /// A failure without a code.
    pub const FAILURE: Self = Self(FAILURE);
    /// Wrong usage.
    pub const USAGE: Self = Self(USAGE);
    /// A log that was rewritten.
    pub const FORK: Self = Self(FORK);

    /// Success if something holds, else a failure without a code.
    pub const fn of_check(holds: bool) -> Self {
        match holds {
            true => Self::SUCCESS,
            false => Self::FAILURE,
        }
    }

    /// The exit of the worst error among some findings.
    pub fn of<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) -> Self {
        findings
            .into_iter()
            .filter(|d| d.is_error())
            .map(|d| d.code().map_or(Self::FAILURE, Self::from))
            .fold(Self::SUCCESS, Self::worst)
    }

    /// The worse one of two: the larger one. The code of `unbound`, which came later, ranks between 20 and 21.
    pub fn worst(self, other: Self) -> Self {
        let rank = |exit: &Self| match exit.0 {
            UNBOUND => (FIRST_CONTACT, 1),
            code => (code, 0),
        };
        std::cmp::max_by_key(self, other, rank)
    }

    /// The number that the process ends with.
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// A command that has nothing to say about its end went well.
impl From<()> for Exit {
    fn from((): ()) -> Self {
        Self::SUCCESS
    }
}

impl From<ErrorCode> for Exit {
    fn from(code: ErrorCode) -> Self {
        Self(code.exit_code())
    }
}

impl From<VerdictWord> for Exit {
    fn from(word: VerdictWord) -> Self {
        Self(word.exit_code())
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
    out.push_str("  20 to 26  verify: see crosstalk verify --help\n");
    let _ = writeln!(out, "  {FORK}  audit: a log that was rewritten");
    out.push_str("Of several, the largest one; 26 ranks between 20 and 21.");
    out
}

/// The meaning of a verdict, in a line.
pub(crate) const fn meaning(word: VerdictWord) -> &'static str {
    match word {
        VerdictWord::Verified => "whole, and signed by a key that you trust",
        VerdictWord::FirstContact => "whole, and signed by a key that nobody vouches for yet",
        VerdictWord::Unbound => "whole, and nothing binds the key to this sender",
        VerdictWord::Unsigned => "nobody signed it",
        VerdictWord::UnknownKey => "signed, and there is no key here to check it with",
        VerdictWord::Damaged => "the head is genuine, the body is not what was signed",
        VerdictWord::NotVerified => "don't act on it",
        VerdictWord::Revoked => "signed by a key that was revoked",
    }
}

/// The table of `crosstalk verify --help`.
pub(crate) fn verdicts() -> String {
    let mut out = String::from("Exit codes:\n");
    for word in VerdictWord::ALL {
        let (code, name) = (word.exit_code(), word.as_str());
        let _ = writeln!(out, "  {code:>2}  {name:<13}  {}", meaning(word));
    }
    out.push_str("Of several, the one furthest down; 10 to 17 as in crosstalk --help.");
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
    fn every_verdict_has_its_own_code() {
        let constants = [
            OK,
            FIRST_CONTACT,
            UNBOUND,
            UNSIGNED,
            UNKNOWN_KEY,
            DAMAGED,
            NOT_VERIFIED,
            REVOKED,
        ];
        assert_eq!(constants, VerdictWord::ALL.map(|w| Exit::from(w).code()));
        let mut worst = Exit::SUCCESS;
        for word in VerdictWord::ALL {
            worst = worst.worst(word.into());
            assert_eq!(worst, word.into(), "{word:?}");
        }
        for word in VerdictWord::ALL {
            let row = format!("{:>2}  {}", word.exit_code(), word.as_str());
            assert!(verdicts().contains(&row));
        }
    }

    #[test]
    fn the_worst_one_counts() {
        let worst = Exit::from(ErrorCode::Format).worst(Exit::FAILURE);
        assert_eq!(worst.code(), FORMAT);
        assert_eq!(Exit::of([]), Exit::SUCCESS);
    }
}
