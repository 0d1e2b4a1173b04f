//! The URLs that are called: `http` and `https`, with nothing in them that could be read in two ways.

use crosstalk_protocol::dns::host_fault;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest URL, in bytes.
const LONGEST: usize = 2048;

/// A URL that can be called.
///
/// ```
/// use crosstalk_relay::outbound::Url;
/// let url = Url::parse("https://relay.example:8443/base/").unwrap();
/// assert_eq!(url.below("crosstalk/receive").to_string(), "https://relay.example:8443/base/crosstalk/receive");
/// assert!(Url::parse("https://user@relay.example/").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    is_https: bool,
    host: Host,
    port: u16,
    target: String,
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, in lower case.
    Name(String),
    /// An address of the network.
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Why a text is no URL that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(&'static str);

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for UrlError {}

impl Url {
    /// Reads a URL: `https://host:port/path?query`; host, path and query of visible ASCII, no user, no fragment.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > LONGEST {
            return Err(UrlError("the URL is too long"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(UrlError(
                "the URL has characters in it that are not visible ASCII: write a host in its `xn--` form, and %XX for others",
            ));
        }
        if text.contains(['\\', '#', '<', '>', '"']) {
            return Err(UrlError("a URL has no `\\`, `#`, `<`, `>` or `\"` here"));
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or(UrlError("a URL begins with https:// or http://"))?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError("a URL begins with https:// or http://")),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = (rest.get(..end), rest.get(end..));
        let (authority, target) = (authority.unwrap_or(rest), target.unwrap_or(""));
        if authority.contains('@') {
            return Err(UrlError(
                "a URL has no user and no password in it: use `token_file` for a credential",
            ));
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None if is_https => 443,
            None => 80,
            Some(digits) => port_of(digits)?,
        };
        let target = match target {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(Self {
            is_https,
            host: host_of(host)?,
            port,
            target,
        })
    }

    /// Whether it is called over TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Whom it names.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, also where it is not written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What stands in the `Host` header: the port only where it is not the usual one.
    pub fn authority(&self) -> String {
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// A place below this one; its query is left out.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        let base = self.target.split('?').next().unwrap_or("/");
        let target = format!("{}/{path}", base.trim_end_matches('/'));
        Self {
            target,
            ..self.clone()
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (inside, behind) = rest
            .split_once(']')
            .ok_or(UrlError("the `]` of an IPv6 address is missing"))?;
        let host = authority.get(..inside.len() + 2).unwrap_or(authority);
        return match (behind.is_empty(), behind.strip_prefix(':')) {
            (true, _) => Ok((host, None)),
            (false, Some(port)) => Ok((host, Some(port))),
            (false, None) => Err(UrlError("behind `]` stands a port or nothing")),
        };
    }
    Ok(match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    })
}

fn port_of(digits: &str) -> Result<u16, UrlError> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let port = is_number.then(|| digits.parse::<u16>().ok()).flatten();
    port.filter(|p| *p > 0)
        .ok_or(UrlError("the port is no number from 1 to 65535"))
}

fn host_of(text: &str) -> Result<Host, UrlError> {
    if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let address: Ipv6Addr = inside
            .parse()
            .map_err(|_| UrlError("what stands in brackets is no IPv6 address"))?;
        return Ok(Host::Address(address.into()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    match host_fault(&name) {
        Some(_) => Err(UrlError(
            "the host is no name with letters, digits and hyphens, and no IP address",
        )),
        None => Ok(Host::Name(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_written() {
        for (text, shown) in [
            ("http://localhost:8799", "http://localhost:8799/"),
            ("HTTPS://Relay.Example", "https://relay.example/"),
            ("https://relay.example.:443/x", "https://relay.example/x"),
            ("http://127.0.0.1:80/a?b=c", "http://127.0.0.1/a?b=c"),
            ("http://[::1]:8080?x", "http://[::1]:8080/?x"),
            (
                "https://xn--bcher-kva.example/%41",
                "https://xn--bcher-kva.example/%41",
            ),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
        }
        let base = Url::parse("https://a.example/x/?y=1").unwrap();
        assert_eq!(base.below("b?c").to_string(), "https://a.example/x/b?c");
    }

    #[test]
    fn what_could_mean_two_things_is_no_url() {
        let long = format!("https://a.example/{}", "x".repeat(LONGEST));
        for text in [
            "",
            "relay.example",
            "//relay.example/",
            "ftp://relay.example/",
            "file:///etc/passwd",
            "gopher://127.0.0.1:25/_",
            "https://",
            "https:///x",
            "https://user@relay.example/",
            "https://user:pw@relay.example/",
            "https://relay.example@127.0.0.1/",
            "https://relay.example\\@127.0.0.1/",
            "https://relay.example/#x",
            "https://relay.example/a b",
            "https://relay.example/a\r\nHost: x",
            "https://relay.example:0/",
            "https://relay.example:65536/",
            "https://relay.example:+80/",
            "https://relay.example:/",
            "https://2130706433/",
            "https://127.1/",
            "https://0177.0.0.1/",
            "https://[::1/",
            "https://[::1]x/",
            "https://[fe80::1%25eth0]/",
            "https://[127.0.0.1]/",
            "https://bücher.example/",
            "https://a..b/",
            "https://-a.example/",
            "https://a_b.example/",
            &long,
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
