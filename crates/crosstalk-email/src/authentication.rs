//! The authentication of the sender of a mail, and the DKIM signatures that must not count.

use crate::head::HeadFields;
use crosstalk_envelope::words;

words! {
    /// The result of one check of the sender.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SenderCheck {
        /// Nothing was there to check.
        None = "none",
        /// It was not checked: that takes the DNS, or the address of the sending server.
        Unknown = "unknown",
    }
}

/// What SPF, DKIM and DMARC say about a mail.
///
/// Without the DNS nothing can be verified, and a field such as Authentication-Results is a claim of whoever wrote it. So the
/// only other answer is that there is no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailAuthentication {
    /// Whether the server may send for the domain.
    pub spf: SenderCheck,
    /// Whether a domain signed the mail.
    pub dkim: SenderCheck,
    /// Whether one of both is about the domain of From.
    pub dmarc: SenderCheck,
}

impl MailAuthentication {
    pub(crate) fn offline(head: &HeadFields) -> Self {
        let dkim = match head.first("dkim-signature") {
            Some(_) => SenderCheck::Unknown,
            None => SenderCheck::None,
        };
        Self {
            spf: SenderCheck::Unknown,
            dkim,
            dmarc: SenderCheck::Unknown,
        }
    }
}

/// Whether a DKIM signature covers the beginning of the body alone (`l=`): then anybody could have added text.
pub(crate) fn has_partial_signature(head: &HeadFields) -> bool {
    let signatures = head.all("dkim-signature");
    signatures.flat_map(|value| value.split(';')).any(|tag| {
        let name = tag.split('=').next().unwrap_or_default();
        name.trim() == "l" && tag.contains('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_tag_is_found_among_others() {
        let head =
            |value: &str| HeadFields::parse(format!("DKIM-Signature: {value}\r\n").as_bytes());
        assert!(has_partial_signature(&head(
            "v=1; a=rsa-sha256;\r\n\tl = 10; b=x"
        )));
        assert!(!has_partial_signature(&head("v=1; s=l; bl=1; b=l==")));
    }
}
