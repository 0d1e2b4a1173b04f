//! What can go wrong between this program and a relay.

use crate::failure::Failure;
use crate::shell;
use crate::view;
use crosstalk_envelope::ErrorCode;
use crosstalk_relay::client::ClientError;
use crosstalk_relay::outbound::OutboundError;
use std::fmt;

/// Why a relay did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Which relay.
    pub(crate) url: String,
    pub(crate) fault: ClientError,
}

impl Trouble {
    /// The code that it exits with.
    fn code(&self) -> ErrorCode {
        self.fault.code().unwrap_or(ErrorCode::Route)
    }

    /// Whether the same question may be answered in a while.
    pub(crate) fn is_temporary(&self) -> bool {
        self.fault.is_temporary()
    }

    /// Whether what was handed over may be at the relay nevertheless: the connection ended before the relay said so.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match &self.fault {
            ClientError::Outbound(OutboundError::Broken { was_sent, .. }) => *was_sent,
            ClientError::Outbound(OutboundError::Late(_)) | ClientError::Unreadable { .. } => true,
            _ => false,
        }
    }

    /// Whether the relay does not know what it was asked about.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(&self.fault, ClientError::Refused(refused) if refused.status == 404)
    }

    /// Whether the caller may not speak for the address that was named: the same message is never taken.
    pub(crate) fn is_wrong_sender(&self) -> bool {
        let is_it = |detail: &str| detail.contains("use a token for this address");
        matches!(&self.fault, ClientError::Refused(refused) if refused.status == 403 && is_it(&refused.detail))
    }

    /// Whether the relay answered, and refused what it was asked for.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(&self.fault, ClientError::Refused(refused) if matches!(refused.status, 401 | 403))
    }

    /// After how many seconds the relay wants to be asked again.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match &self.fault {
            ClientError::Refused(refused) => refused.retry_after.map(|d| d.as_secs()),
            _ => None,
        }
    }
}

/// Why nobody vouches for a certificate: which authorities count is in a file that can be named.
fn unknown_issuer() -> String {
    let Some(file) = std::env::var_os("SSL_CERT_FILE") else {
        return "nobody whom this system believes vouches for its certificate. With an authority of your own, SSL_CERT_FILE \
                names the file with its certificate"
            .into();
    };
    let shown = view::line(&file.to_string_lossy());
    match std::fs::read(&file) {
        Err(fault) => format!(
            "SSL_CERT_FILE names {shown}, which can't be read: {fault}. Name the file with the certificate of the authority, \
             or unset it"
        ),
        Ok(bytes) if !String::from_utf8_lossy(&bytes).contains(PEM_CERTIFICATE) => format!(
            "SSL_CERT_FILE names {shown}, which has no certificate in it. Name a PEM file: it has a line {PEM_CERTIFICATE}"
        ),
        Ok(_) => format!(
            "no authority in {shown} (SSL_CERT_FILE) signed its certificate. Name the file with the certificate of the one \
             that did"
        ),
    }
}

/// What a certificate begins with in a PEM file.
const PEM_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// What is wrong with TLS, in words; nothing if it is something else.
fn certificate(fault: &OutboundError) -> Option<String> {
    let OutboundError::Unreachable { reason, .. } = fault else {
        return None;
    };
    let has = |words: &[&str]| words.iter().any(|w| reason.contains(w));
    let what = if has(&["UnknownIssuer"]) {
        return Some(format!("{} ({reason})", unknown_issuer()));
    } else if has(&["CaUsedAsEndEntity"]) {
        "its certificate is that of an authority, and not one for a server: give the relay a certificate for its name \
         that the authority signed, and name the authority with SSL_CERT_FILE here"
    } else if has(&["NotValidForName", "not valid for name"]) {
        "its certificate is for another name: call the relay by the name that stands in the certificate"
    } else if has(&["NotValidYet", "not valid yet"]) {
        "its certificate does not count yet: compare the clocks"
    } else if has(&["Expired", "expired"]) {
        "its certificate is over: the relay needs a new one"
    } else if has(&["InvalidContentType", "corrupt message"]) {
        "it does not speak TLS there: write http:// instead of https://"
    } else if has(&["invalid peer certificate"]) {
        "its certificate can't be believed"
    } else {
        return None;
    };
    Some(format!("{what} ({reason})"))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        let refused = match &self.fault {
            ClientError::Refused(refused) => refused,
            ClientError::Outbound(fault) if certificate(fault).is_some() => {
                let what = certificate(fault).unwrap_or_default();
                return write!(f, "{url} (E-ROUTE): {what}");
            }
            ClientError::Outbound(fault @ OutboundError::Broken { .. })
                if url.starts_with("http://") =>
            {
                return write!(
                    f,
                    "{url} (E-ROUTE): {fault}. If it speaks TLS there, write https:// instead of http://"
                );
            }
            ClientError::Outbound(fault) => {
                return write!(
                    f,
                    "{} (E-ROUTE): {fault}. Is a relay running there? `crosstalk serve` starts one on this machine",
                    url
                );
            }
            fault => return write!(f, "{url}: {fault}"),
        };
        write!(f, "{url} says {}: {}", self.code(), refused.reason)?;
        for line in refused.detail.lines().filter(|l| !l.trim().is_empty()) {
            write!(f, "\n  {line}")?;
        }
        if self.is_wrong_sender() {
            f.write_str(
                "\n  Or speak for an address of your token: `--from ADDR`, or `crosstalk config set sender ADDR` for good; `--for \
                 ADDR` names an inbox.",
            )?;
        }
        if refused.status == 401 {
            let url = shell::word(url);
            write!(
                f,
                "\n  If you have a token, `crosstalk relay add {url} --token-file FILE` keeps it here."
            )?;
        }
        match self.retry_after() {
            Some(seconds) => write!(f, "\n  Try again in {seconds} seconds."),
            None => Ok(()),
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Refused(trouble.code(), trouble.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_relay::client::Refused;
    use std::time::Duration;

    #[test]
    fn a_refusal_says_code_reason_place_and_way_out() {
        let trouble = Trouble {
            url: "http://r".into(),
            fault: ClientError::Refused(Box::new(Refused {
                status: 403,
                code: Some(ErrorCode::Perm),
                reason: "You may not".into(),
                detail: "Line 3, column 7: no.\nWhat to do: ask.".into(),
                retry_after: Some(Duration::from_secs(5)),
            })),
        };
        assert_eq!(
            trouble.to_string(),
            "http://r says E-PERM: You may not\n  Line 3, column 7: no.\n  What to do: ask.\n  Try again in 5 seconds."
        );
        assert_eq!(Failure::from(trouble).exit(), ErrorCode::Perm.into());
    }

    #[test]
    fn tls_is_told_in_words() {
        for (reason, words) in [
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "that of an authority",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"",
                "another name",
            ),
            (
                "received corrupt message of type InvalidContentType",
                "http://",
            ),
        ] {
            let trouble = Trouble {
                url: "https://r".into(),
                fault: ClientError::Outbound(OutboundError::Unreachable {
                    url: "https://r".into(),
                    reason: reason.into(),
                }),
            };
            let text = trouble.to_string();
            assert!(
                text.contains(words) && !text.contains("crosstalk serve"),
                "{text}"
            );
        }
    }
}
