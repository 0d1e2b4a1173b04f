//! Domains that may be asked about: host names of ASCII letters, digits and hyphens.

use crosstalk_protocol::dns::{address_name, host_fault, key_name, relay_name};
use hickory_resolver::proto::rr::Name;

/// The longest name that the DNS has, without the dot at its end.
const NAME: usize = 253;

/// Where the keys of a domain are, or why it is no domain. A dot at the end is left out.
pub fn question(domain: &str) -> Result<Name, String> {
    let host = domain.strip_suffix('.').unwrap_or(domain);
    let name = key_name(&host.to_ascii_lowercase());
    let fault = match host_fault(host) {
        None if name.len() > NAME => Some("it is too long"),
        other => other,
    };
    match fault {
        Some(fault) => Err(fault.to_owned()),
        None => Name::from_ascii(name + ".").map_err(|e| e.to_string()),
    }
}

/// Where the address of a name is listed in a domain, or why nobody can be asked.
pub fn address_question(name: &str, domain: &str) -> Result<Name, String> {
    let at = address_name(name, domain)?;
    Name::from_ascii(at + ".").map_err(|e| e.to_string())
}

/// Where the relays of a domain are listed, or why it is no domain.
pub fn relay_question(domain: &str) -> Result<Name, String> {
    let at = relay_name(domain)?;
    Name::from_ascii(at + ".").map_err(|e| e.to_string())
}

/// A name of records about a domain, which may have labels such as `_dmarc`, or why it is none.
pub fn record_question(name: &str) -> Result<Name, String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let host: Vec<&str> = name
        .split('.')
        .map(|l| l.strip_prefix('_').unwrap_or(l))
        .collect();
    match host_fault(&host.join(".")) {
        Some(fault) => Err(fault.to_owned()),
        None => Name::from_ascii(name.to_ascii_lowercase() + ".").map_err(|e| e.to_string()),
    }
}

/// A host as a name, or why it is none.
pub fn host_question(host: &str) -> Result<Name, String> {
    let host = host.strip_suffix('.').unwrap_or(host);
    match host_fault(host) {
        Some(fault) => Err(fault.to_owned()),
        None => Name::from_ascii(host.to_ascii_lowercase() + ".").map_err(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(domain: &str) -> String {
        question(domain).unwrap().to_ascii()
    }

    #[test]
    fn a_host_name_with_or_without_a_dot_at_its_end() {
        for domain in ["example.com", "example.com.", "EXAMPLE.Com"] {
            assert_eq!(asked(domain), "_crosstalk-key.example.com.", "{domain}");
        }
        assert_eq!(asked("a-b.3com.x1"), "_crosstalk-key.a-b.3com.x1.");
        assert_eq!(asked("intranet"), "_crosstalk-key.intranet.");
        assert_eq!(
            asked("xn--bcher-kva.example"),
            "_crosstalk-key.xn--bcher-kva.example."
        );
    }

    #[test]
    fn only_host_names_are_domains() {
        let long = "a".repeat(64);
        for domain in [
            "",
            ".",
            "..",
            "example..com",
            ".example.com",
            "example.com..",
            "-a.example",
            "a-.example",
            "a b.example",
            "a_b.example",
            "bücher.example",
            "a\0.example",
            "a\\.example",
            "a/b.example",
            "a@example.com",
            "*.example.com",
            "127.0.0.1",
            "::1",
            long.as_str(),
        ] {
            assert!(question(domain).is_err(), "{domain:?}");
        }
    }

    #[test]
    fn the_longest_name_is_the_longest_of_the_dns() {
        let domain = |length: usize| {
            let mut text = "abcdefg.".repeat(40);
            text.truncate(length - 1);
            text.replace("..", ".a") + "z"
        };
        assert_eq!(asked(&domain(238)).len(), NAME + 1);
        assert!(question(&domain(239)).unwrap_err().contains("too long"));
    }
}
