//! The authentication of the sender of a mail, and the DKIM signatures that must not count.

use crate::head::{HeadFields, split_head};
use crate::limit;
use crate::read::sender_of_head;
use crosstalk_envelope::words;

words! {
    /// The result of one check of the sender.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SenderCheck {
        /// Nothing was there to check.
        None = "none",
        /// It was not checked: that takes the DNS, or the address of the sending server.
        Unknown = "unknown",
        /// It holds.
        Pass = "pass",
        /// It does not hold.
        Fail = "fail",
        /// It probably does not hold: the domain is not sure about its servers.
        SoftFail = "softfail",
        /// The domain says nothing about it.
        Neutral = "neutral",
        /// It could not be checked now.
        TempError = "temperror",
        /// It can't be checked: what the domain says can't be read.
        PermError = "permerror",
    }
}

/// The results of SPF, DKIM and DMARC for a mail.
///
/// Without the DNS nothing can be verified, and a field such as Authentication-Results is a claim of whoever wrote it. So an
/// offline reading says no more than whether there is a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailAuthentication {
    /// Whether the server may send for the domain.
    pub spf: SenderCheck,
    /// Whether a domain signed the mail.
    pub dkim: SenderCheck,
    /// Whether one of both is about the domain of From.
    pub dmarc: SenderCheck,
    /// Whether SPF or DKIM passed for the domain of From: then the mail comes from that domain.
    pub is_aligned: bool,
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
            is_aligned: false,
        }
    }

    /// Whether a check could not be made now, and the mail may turn out to be aligned later.
    pub fn is_undecided(&self) -> bool {
        let checks = [self.spf, self.dkim, self.dmarc];
        !self.is_aligned && checks.contains(&SenderCheck::TempError)
    }

    /// Whether the domain of From denies the mail.
    pub fn is_denied(&self) -> bool {
        !self.is_aligned && self.dmarc == SenderCheck::Fail
    }

    /// The results in one line, as `spf=pass dkim=none dmarc=pass aligned=yes`.
    ///
    /// ```
    /// use crosstalk_email::{MailAuthentication, SenderCheck};
    /// let none = SenderCheck::None;
    /// let results = MailAuthentication { spf: SenderCheck::Pass, dkim: none, dmarc: none, is_aligned: true };
    /// assert_eq!(results.to_line(), "spf=pass dkim=none dmarc=none aligned=yes");
    /// ```
    pub fn to_line(&self) -> String {
        let aligned = match self.is_aligned {
            true => "yes",
            false => "no",
        };
        format!(
            "spf={} dkim={} dmarc={} aligned={aligned}",
            self.spf.as_str(),
            self.dkim.as_str(),
            self.dmarc.as_str()
        )
    }
}

/// The results that a mail server wrote into the first Authentication-Results of a mail, if it did so under this name (RFC 8601).
/// Other fields could be of anybody. The mail counts as aligned by what the results say about the domain of From.
///
/// ```
/// use crosstalk_email::{SenderCheck, trusted_results};
/// let mail = b"Authentication-Results: mx.acme.example; spf=softfail smtp.mailfrom=x.example;\r\n dkim=pass (1024 bit) header.d=b.example\r\n\
///              From: bob@b.example\r\n\r\nhi\r\n";
/// let results = trusted_results(mail, "mx.acme.example").unwrap();
/// assert_eq!((results.dkim, results.dmarc, results.is_aligned), (SenderCheck::Pass, SenderCheck::None, true));
/// assert_eq!(trusted_results(mail, "mx.other.example"), None);
/// ```
pub fn trusted_results(mail: &[u8], host: &str) -> Option<MailAuthentication> {
    let (head, _) = split_head(mail);
    let fields = HeadFields::parse(head.get(..limit::HEAD_BYTES).unwrap_or(head));
    let from = sender_of_head(head)?;
    let (_, from) = from.address.rsplit_once('@')?;
    let value = without_comments(fields.first("authentication-results")?)?;
    let mut parts = value.split(';').map(str::trim);
    // The name may have a version behind it.
    let name = parts.next()?.split_whitespace().next()?;
    if !name.eq_ignore_ascii_case(host) {
        return None;
    }
    let mut results = MailAuthentication {
        spf: SenderCheck::None,
        dkim: SenderCheck::None,
        dmarc: SenderCheck::None,
        is_aligned: false,
    };
    let is_of_from = |value: &str| {
        let domain = value.rsplit_once('@').map_or(value, |(_, domain)| domain);
        domain.eq_ignore_ascii_case(from)
    };
    let (mut is_signed, mut is_sent, mut is_vouched) = (false, false, false);
    for part in parts {
        let mut words = part.split_whitespace();
        let Some((method, result)) = words.next().and_then(|word| word.split_once('=')) else {
            continue;
        };
        let result = result.to_ascii_lowercase();
        let check = SenderCheck::parse(&result).unwrap_or(SenderCheck::Unknown);
        let has = |keys: &[&str]| {
            let mut values = part
                .split_whitespace()
                .filter_map(|word| word.split_once('='));
            values.any(|(key, value)| {
                keys.iter().any(|k| k.eq_ignore_ascii_case(key)) && is_of_from(value)
            })
        };
        let passed = check == SenderCheck::Pass;
        match method.to_ascii_lowercase().as_str() {
            // Of several signatures, one that holds is enough.
            "dkim" => {
                if results.dkim != SenderCheck::Pass {
                    results.dkim = check;
                }
                is_signed |= passed && has(&["header.d", "header.i"]);
            }
            "spf" => {
                results.spf = check;
                is_sent |= passed && has(&["smtp.mailfrom"]);
            }
            "dmarc" => {
                results.dmarc = check;
                is_vouched |= passed && has(&["header.from"]);
            }
            _ => {}
        }
    }
    results.is_aligned = match results.dmarc {
        SenderCheck::None => is_signed || is_sent,
        _ => is_vouched,
    };
    Some(results)
}

/// A value without comments and quoted texts, which can have anything in them; nothing if one of them does not end.
fn without_comments(value: &str) -> Option<String> {
    let (mut out, mut depth, mut is_quoted) = (String::new(), 0_usize, false);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if depth > 0 || is_quoted => {
                chars.next()?;
            }
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            c => out.push(c),
        }
    }
    (depth == 0 && !is_quoted).then_some(out)
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
    fn results_of_others_and_hidden_results_do_not_count() {
        let results = |value: &str| {
            let mail =
                format!("Authentication-Results: {value}\r\nFrom: <ann@acme.example>\r\n\r\nx");
            trusted_results(mail.as_bytes(), "mx").map(|r| (r.dmarc, r.is_aligned))
        };
        let none = SenderCheck::None;
        for (value, expected) in [
            (
                "mx; dmarc=pass header.from=acme.example",
                Some((SenderCheck::Pass, true)),
            ),
            (
                "MX 1; dmarc=pass header.from=ACME.example",
                Some((SenderCheck::Pass, true)),
            ),
            (
                "mx; dmarc=pass header.from=evil.example",
                Some((SenderCheck::Pass, false)),
            ),
            (
                "mx; dmarc=fail header.from=acme.example; dkim=pass header.d=acme.example",
                Some((SenderCheck::Fail, false)),
            ),
            ("mx; dkim=pass header.d=evil.example", Some((none, false))),
            ("mx; dkim=pass header.i=@acme.example", Some((none, true))),
            (
                "mx; spf=pass smtp.mailfrom=x@acme.example",
                Some((none, true)),
            ),
            (
                "mx; spf=pass smtp.mailfrom=\"a; dmarc=pass header.from=acme.example; x\"@evil.example",
                Some((none, false)),
            ),
            (
                "mx; spf=pass (dkim=pass header.d=acme.example; \\) dkim=pass header.d=acme.example) smtp.mailfrom=e.example",
                Some((none, false)),
            ),
            (
                "mx; spf=pass smtp.mailfrom=\"a; dmarc=pass header.from=acme.example",
                None,
            ),
            ("evil; dmarc=pass header.from=acme.example", None),
            ("mx.evil; dmarc=pass header.from=acme.example", None),
            ("(mx); dmarc=pass header.from=acme.example", None),
            ("mx; none", Some((none, false))),
        ] {
            assert_eq!(results(value), expected, "{value}");
        }
        let second = b"Authentication-Results: evil; none\r\nAuthentication-Results: mx; dmarc=pass header.from=acme.example\r\n\
            From: ann@acme.example\r\n\r\nx";
        assert_eq!(trusted_results(second, "mx"), None);
    }

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
