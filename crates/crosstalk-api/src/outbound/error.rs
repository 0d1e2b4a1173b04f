//! Why somebody could not be called.

use std::net::IpAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The look-up of the host failed.
    #[error("the address of {host} can't be looked up now: {reason}")]
    Lookup {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The host has no address.
    #[error("there is no host {0}")]
    Unknown(String),
    /// An address of the host is not public.
    #[error(
        "{host} is at {address}, which is not public ({what}): set `allow_private`, if that is meant"
    )]
    NotPublic {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
        /// The kind of network.
        what: &'static str,
    },
    /// No connection could be made.
    #[error("{url} can't be reached: {reason}")]
    Unreachable {
        /// Where to.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("the connection to {url} broke: {reason}")]
    Broken {
        /// Where to.
        url: String,
        /// The reason.
        reason: String,
        /// Whether the request may have arrived.
        was_sent: bool,
    },
    /// There was no answer in time.
    #[error("there was no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// It wants to be called elsewhere, which is not done.
    #[error(
        "{url} answers {status} and points to `{to}`; redirects are not followed: configure the right URL"
    )]
    Redirect {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
        /// Where it points.
        to: String,
    },
    /// The answer is too large.
    #[error("the answer of {url} has more than {most} bytes")]
    TooLarge {
        /// The URL.
        url: String,
        /// How many bytes are read.
        most: u64,
    },
    /// The request can't be made at all.
    #[error("{0}")]
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
