//! Why somebody could not be called.

use crosstalk_envelope::Explanation;
use std::net::IpAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub enum OutboundError {
    /// The look-up of the host failed.
    Lookup {
        /// The host.
        host: String,
        /// The reason.
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
        /// The kind of network.
        what: &'static str,
    },
    /// No connection could be made.
    Unreachable {
        /// Where to.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The connection broke, or what came is not HTTP.
    Broken {
        /// Where to.
        url: String,
        /// The reason.
        reason: String,
        /// Whether the request may have arrived.
        was_sent: bool,
    },
    /// There was no answer in time.
    Late(Duration),
    /// It wants to be called elsewhere, which is not done.
    Redirect {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
        /// Where it points.
        to: String,
    },
    /// The answer is too large.
    TooLarge {
        /// The URL.
        url: String,
        /// How many bytes are read.
        most: u64,
    },
    /// The request can't be made at all.
    Refused(String),
}

impl OutboundError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        let help = match self {
            Self::NotPublic { .. } => "set `allow_private`, if that is meant",
            Self::Redirect { .. } => "configure the right URL",
            _ => "",
        };
        let what = match self {
            Self::Lookup { host, reason } => {
                format!("the address of {host} can't be looked up now: {reason}")
            }
            Self::Unknown(host) => format!("there is no host {host}"),
            Self::NotPublic {
                host,
                address,
                what,
            } => format!("{host} is at {address}, which is not public ({what})"),
            Self::Unreachable { url, reason } => format!("{url} can't be reached: {reason}"),
            Self::Broken { url, reason, .. } => {
                format!("the connection to {url} broke: {reason}")
            }
            Self::Late(limit) => format!("there was no answer within {} s", limit.as_secs()),
            Self::Redirect { url, status, to } => format!(
                "{url} answers {status} and points to `{to}`, and redirects are not followed"
            ),
            Self::TooLarge { url, most } => {
                format!("the answer of {url} has more than {most} bytes")
            }
            Self::Refused(reason) => reason.clone(),
        };
        Explanation::new(what, help)
    }

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
