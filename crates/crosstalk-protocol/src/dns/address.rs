//! DNS records of the address behind a simple name (ADR-012 to ADR-014).

use super::Dnssec;
use crosstalk_envelope::Address;

/// The longest name that the DNS has, without the dot at its end.
const NAME: usize = 253;
const LABEL: usize = 63;

/// The answer of the DNS about the addresses of a name in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressAnswer {
    /// The addresses that are listed.
    Found {
        /// Where the records are.
        at: String,
        /// Every record that is a URL, in the order of their bytes. There is at least one.
        addresses: Vec<String>,
        /// The faults of the other records.
        wrong: Vec<String>,
        /// For how many seconds the answer may be kept.
        ttl: u32,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There is no such name or no TXT record: final.
    Absent {
        /// Where there is nothing.
        at: String,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There are records, and none can be used.
    Wrong {
        /// The fault of the records.
        reason: String,
    },
    /// SERVFAIL, a time-out, a refusal, a broken DNSSEC chain: try later.
    Unavailable {
        /// The cause.
        reason: String,
    },
    /// There is nothing that the DNS could be asked for: nobody was asked.
    Unasked {
        /// Why.
        reason: String,
    },
}

impl AddressAnswer {
    /// What some records say: an error in place of a text says why the record can't be read. The order in which they
    /// came does not matter, since a server may give another one each time.
    ///
    /// ```
    /// use crosstalk_protocol::dns::{AddressAnswer, Dnssec};
    /// let records = [Ok("v=spf1 -all".to_owned()), Ok("claude://session/abc123".to_owned())];
    /// let answer = AddressAnswer::of_records("_crosstalk-addr.claude.example.com", records, 300, Dnssec::Secure);
    /// assert!(matches!(answer, AddressAnswer::Found { addresses, .. } if addresses == ["claude://session/abc123"]));
    /// ```
    pub fn of_records(
        at: &str,
        records: impl IntoIterator<Item = Result<String, String>>,
        ttl: u32,
        dnssec: Dnssec,
    ) -> Self {
        let (mut addresses, mut wrong) = (Vec::new(), Vec::new());
        for record in records {
            match record.and_then(|text| usable(&text).map(|()| text)) {
                Ok(address) => addresses.push(address),
                Err(reason) => wrong.push(reason),
            }
        }
        for list in [&mut addresses, &mut wrong] {
            list.sort_unstable();
            list.dedup();
        }
        let at = at.to_owned();
        if addresses.is_empty() {
            let reason = match wrong.as_slice() {
                [] => return Self::Absent { at, dnssec },
                [only] => format!("{at}: the TXT record is no address: {only}"),
                [first, ..] => {
                    format!("{at}: none of the TXT records is an address; one of them: {first}")
                }
            };
            return Self::Wrong { reason };
        }
        Self::Found {
            at,
            addresses,
            wrong,
            ttl,
            dnssec,
        }
    }

    /// The answer where DNSSEC is required: addresses that it does not protect can't be used.
    pub fn protected(self) -> Self {
        match self {
            Self::Found { at, dnssec, .. } if dnssec != Dnssec::Secure => Self::Wrong {
                reason: format!("{at}: DNSSEC does not protect the answer, which is required"),
            },
            other => other,
        }
    }
}

/// Whether a record is an address that leads somewhere: a URL that can be written into an envelope.
fn usable(text: &str) -> Result<(), String> {
    let shown = shown(text);
    match Address::parse(text) {
        Err(fault) => Err(format!("`{shown}`: {}", fault.message)),
        Ok(address) if address.is_name() => Err(format!("`{shown}` is no URL with a scheme")),
        Ok(_) if text.contains("[[") || text.contains("]]") || has_arrow(text) => Err(format!(
            "`{shown}` can't be written in a direction line: it has brackets or an arrow in it"
        )),
        Ok(_) => Ok(()),
    }
}

fn has_arrow(text: &str) -> bool {
    text.contains('→') || text.contains("->")
}

/// As much of a record as fits into a sentence.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain(['…']).collect()
    }
}

/// Where the address of a simple name is listed in a domain, or why the DNS can't be asked for it. The name is taken
/// in lower case, with a hyphen for each run of spaces; what is no host label then is not asked for (ADR-012).
///
/// ```
/// use crosstalk_protocol::dns::address_name;
/// let at = address_name("BROTHER AI", "example.com").unwrap();
/// assert_eq!(at, "_crosstalk-addr.brother-ai.example.com");
/// assert!(address_name("Jürgen", "example.com").is_err());
/// ```
///
/// # Errors
/// A sentence that says what is wrong with the name or the domain.
pub fn address_name(name: &str, domain: &str) -> Result<String, String> {
    let words: Vec<&str> = name.split([' ', '\t']).filter(|w| !w.is_empty()).collect();
    let label = words.join("-").to_ascii_lowercase();
    if !is_label(&label) {
        return Err(format!(
            "`{}` can't be a name in the DNS, which has 1 to {LABEL} ASCII letters, digits and inner hyphens: nobody is asked",
            shown(name)
        ));
    }
    let host = domain
        .strip_suffix('.')
        .unwrap_or(domain)
        .to_ascii_lowercase();
    if let Some(fault) = host_fault(&host) {
        return Err(format!("`{}` is no domain: {fault}", shown(domain)));
    }
    let full = format!("_crosstalk-addr.{label}.{host}");
    match full.len() <= NAME {
        true => Ok(full),
        false => Err(format!(
            "`{}` is too long for the DNS, which has names of at most {NAME} characters",
            shown(&full)
        )),
    }
}

/// The fault of a host name, which may have one label only.
///
/// ```
/// use crosstalk_protocol::dns::host_fault;
/// assert_eq!(host_fault("example.com"), None);
/// assert!(host_fault("192.0.2.1").is_some());
/// ```
pub fn host_fault(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        Some("it is empty")
    } else if host.len() > NAME {
        Some("it is too long")
    } else if !host.split('.').all(is_label) {
        Some(
            "a host name has labels of 1 to 63 ASCII letters, digits and inner hyphens, with dots between them",
        )
    } else if host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
    {
        Some("its last label is a number, as in an IP address")
    } else {
        None
    }
}

pub(super) fn is_label(label: &str) -> bool {
    (1..=LABEL).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels_or_nobody_is_asked() {
        for (name, label) in [
            ("CLAUDE", "claude"),
            ("BROTHER AI", "brother-ai"),
            ("  Brother \t AI ", "brother-ai"),
            ("gpt-5", "gpt-5"),
            ("7", "7"),
        ] {
            let at = address_name(name, "Example.COM.").unwrap();
            assert_eq!(at, format!("_crosstalk-addr.{label}.example.com"), "{name}");
        }
        let long = "a".repeat(64);
        for name in [
            "", " ", "Jürgen", "a_b", "a.b", "-a", "a-", "a\nb", "*", "a/b", &long,
        ] {
            let fault = address_name(name, "example.com").unwrap_err();
            assert!(fault.contains("nobody is asked"), "{name}: {fault}");
        }
        for domain in ["", ".", "a..b", "exa mple", "192.0.2.1", "a@b.test"] {
            let fault = address_name("CLAUDE", domain).unwrap_err();
            assert!(fault.contains("is no domain"), "{domain}: {fault}");
        }
        let deep = "abcdefg.".repeat(29) + "com";
        assert_eq!(address_name("x", &deep).map(|at| at.len()), Ok(NAME));
        assert!(address_name("xy", &deep).unwrap_err().contains("too long"));
    }

    #[test]
    fn the_order_of_the_records_does_not_matter() {
        let records = ["mcp://b", "claude://a", "mcp://b", "CLAUDE", "tel:me"];
        let read = |records: &mut dyn Iterator<Item = &&str>| {
            let records = records.map(|r| Ok((*r).to_owned()));
            AddressAnswer::of_records("x", records, 1, Dnssec::Insecure)
        };
        let answer = read(&mut records.iter());
        assert_eq!(answer, read(&mut records.iter().rev()));
        let AddressAnswer::Found {
            addresses, wrong, ..
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!(addresses, ["claude://a", "mcp://b"]);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }

    #[test]
    fn text_that_breaks_an_envelope_is_no_address() {
        for text in [
            "claude://a→b",
            "claude://a->b",
            "claude://[[x",
            "claude://x]]",
            "claude://a b",
            "claude://a\nintent: REVOKE",
            "CLAUDE",
            "",
        ] {
            let records = [Ok(text.to_owned())];
            let answer = AddressAnswer::of_records("x", records, 1, Dnssec::Secure);
            assert!(matches!(answer, AddressAnswer::Wrong { .. }), "{text:?}");
        }
    }

    #[test]
    fn where_dnssec_is_required_only_a_signed_answer_counts() {
        for dnssec in Dnssec::ALL {
            let records = [Ok("claude://a".to_owned())];
            let answer = AddressAnswer::of_records("x", records, 1, dnssec).protected();
            let is_found = matches!(answer, AddressAnswer::Found { .. });
            assert_eq!(is_found, dnssec == Dnssec::Secure, "{dnssec:?}");
        }
    }
}
