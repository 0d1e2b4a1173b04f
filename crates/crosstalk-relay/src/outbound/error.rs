//! Why somebody could not be called.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundError {
    /// Nobody could say where the host is.
    Lookup {
        /// The host.
        host: String,
        /// What happened.
        reason: String,
    },
    /// The host has no address.
    Unknown(String),
    /// An address of the host is not public.
    NotPublic {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
        /// What it is.
        what: &'static str,
    },
    /// No connection could be made.
    Unreachable {
        /// Where to.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The connection broke, or what came is not HTTP.
    Broken {
        /// Where to.
        url: String,
        /// What happened.
        reason: String,
        /// Whether the request may have arrived.
        was_sent: bool,
    },
    /// There was no answer in time.
    Late(Duration),
    /// It wants to be called elsewhere, which is not done.
    Redirect {
        /// What was called.
        url: String,
        /// The status.
        status: u16,
        /// Where it points.
        to: String,
    },
    /// The answer is too large.
    TooLarge {
        /// What was called.
        url: String,
        /// How many bytes are read.
        most: u64,
    },
    /// The request can't be made at all.
    Refused(String),
}

impl OutboundError {
    /// Whether another attempt may work without any change of the configuration.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Lookup { .. }
            | Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::Late(_) => true,
            Self::Unknown(_)
            | Self::NotPublic { .. }
            | Self::Redirect { .. }
            | Self::TooLarge { .. }
            | Self::Refused(_) => false,
        }
    }

    /// Whether it is certain that nothing was sent.
    pub fn is_unsent(&self) -> bool {
        !matches!(
            self,
            Self::Broken { was_sent: true, .. }
                | Self::Late(_)
                | Self::Redirect { .. }
                | Self::TooLarge { .. }
        )
    }
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lookup { host, reason } => {
                write!(f, "the address of {host} can't be looked up now: {reason}")
            }
            Self::Unknown(host) => write!(f, "there is no host {host}"),
            Self::NotPublic {
                host,
                address,
                what,
            } => write!(
                f,
                "{host} is at {address}, which is not public ({what}): set `allow_private`, if that is meant"
            ),
            Self::Unreachable { url, reason } => write!(f, "{url} can't be reached: {reason}"),
            Self::Broken { url, reason, .. } => {
                write!(f, "the connection to {url} broke: {reason}")
            }
            Self::Late(within) => write!(f, "there was no answer within {} s", within.as_secs()),
            Self::Redirect { url, status, to } => write!(
                f,
                "{url} answers {status} and points to `{to}`; redirects are not followed: configure the right URL"
            ),
            Self::TooLarge { url, most } => {
                write!(f, "the answer of {url} has more than {most} bytes")
            }
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for OutboundError {}
