//! Why a relay did not do what it was asked.

use crate::error::ErrorAnswer;
use crate::outbound::{HttpResponse, OutboundError, UrlError};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Document, Intent, Reading, unicode};
use std::time::Duration;

/// Why a relay did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It could not be reached.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// The relay rejected the request.
    #[error("{}: {}", .0.code.map_or("refused", ErrorCode::as_str), .0.reason)]
    Rejected(Box<RejectedRequest>),
    /// Its answer can't be read.
    #[error("the answer of the relay (status {status}) can't be read: {reason}")]
    Unreadable {
        /// The status.
        status: u16,
        /// The fault of the answer.
        reason: String,
    },
    /// The URL of the relay is none.
    #[error(transparent)]
    Url(#[from] UrlError),
}

/// The rejection of a request by a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRequest {
    /// The status.
    pub status: u16,
    /// The code of the taxonomy.
    pub code: Option<ErrorCode>,
    /// The reason, in one line.
    pub reason: String,
    /// The fault, its place, and the way out.
    pub detail: String,
    /// After how long to try again.
    pub retry_after: Option<Duration>,
}

impl ClientError {
    /// Whether another attempt may work.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Outbound(error) => error.is_temporary(),
            Self::Rejected(refused) => matches!(refused.status, 408 | 429) || refused.status >= 500,
            Self::Unreadable { .. } | Self::Url(_) => false,
        }
    }

    /// The code of the taxonomy that fits.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Outbound(OutboundError::Late(_)) => Some(ErrorCode::Timeout),
            Self::Outbound(_) => Some(ErrorCode::Route),
            Self::Rejected(refused) => refused.code,
            Self::Unreadable { .. } | Self::Url(_) => None,
        }
    }
}

/// Reads an answer that is not 2xx: an ERROR envelope, its JSON, or something else.
pub fn rejection_of(answer: &HttpResponse) -> RejectedRequest {
    let text = answer.text().unwrap_or_default();
    let known = |code: &str| ErrorCode::ALL.iter().copied().find(|c| c.as_str() == code);
    let after = answer.retry_after();
    if let Ok(ErrorAnswer { error }) = serde_json::from_str(text) {
        return RejectedRequest {
            status: answer.status,
            code: known(&error.code),
            reason: one_line(&error.reason),
            detail: error.detail,
            retry_after: after.or(error.retry_after.map(Duration::from_secs)),
        };
    }
    let document = Document::parse(text, Reading::Strict);
    if document.is_accepted() && document.envelope().meaning() == Some(Intent::Error) {
        let field = |key| document.meta("error", key);
        let seconds = field("Retry-After").and_then(|s| s.parse().ok());
        return RejectedRequest {
            status: answer.status,
            code: field("Code").and_then(known),
            reason: one_line(field("Reason").unwrap_or("no reason given")),
            detail: document.body_text(),
            retry_after: after.or(seconds.map(Duration::from_secs)),
        };
    }
    let start: String = text.chars().take(200).collect();
    RejectedRequest {
        status: answer.status,
        code: None,
        reason: format!("the answer has the status {} and no ERROR", answer.status),
        detail: unicode::escape(&start).into_owned(),
        retry_after: after,
    }
}

/// A text of somebody else, in one line of a bounded length.
pub fn one_line(text: &str) -> String {
    let short: String = text.chars().take(500).collect();
    let words: Vec<&str> = short.split_whitespace().collect();
    unicode::escape(&words.join(" ")).into_owned()
}
