//! The URLs that are called: `http` and `https`, with nothing in them that could be read in two ways.

use crate::dns::host_fault;
use crosstalk_envelope::Explanation;
use fluent_uri::Uri;
use fluent_uri::component::{self, Authority};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest URL, in bytes.
const LONGEST: usize = 2048;

/// A URL that can be called.
///
/// ```
/// use crosstalk_protocol::url::Url;
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub enum UrlError {
    /// The text has more than 2,048 bytes.
    TooLong,
    /// The text has characters that a URL writes as `%XX` or, in a host, as `xn--`.
    NotAscii,
    /// Another scheme than `http` and `https`, or none.
    Scheme,
    /// A user or a password stands before the host.
    User,
    /// A part that is only for browsers.
    Fragment,
    /// The grammar of RFC 3986 ends at this byte.
    Malformed(usize),
    /// The port is empty, zero or too large.
    Port,
    /// The host is neither a name nor an address.
    Host,
}

impl UrlError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::TooLong => Explanation::fact("the URL is too long"),
            Self::NotAscii => Explanation::new(
                "the URL has characters in it that are not visible ASCII",
                "write a host in its `xn--` form, and %XX for others",
            ),
            Self::Scheme => Explanation::fact("a URL begins with https:// or http://"),
            Self::User => Explanation::new(
                "a URL has no user and no password in it",
                "use `token_file` for a credential",
            ),
            Self::Fragment => Explanation::fact("a URL has no `#` here"),
            Self::Malformed(byte) => Explanation::fact(format!(
                "the URL is not valid from character {} on",
                byte + 1
            )),
            Self::Port => Explanation::fact("the port is no number from 1 to 65535"),
            Self::Host => Explanation::fact(
                "the host is no name with letters, digits and hyphens, and no IP address",
            ),
        }
    }
}

impl Url {
    /// Reads a URL: `https://host:port/path?query`; host, path and query of visible ASCII, no user, no fragment.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > LONGEST {
            return Err(UrlError::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(UrlError::NotAscii);
        }
        if !text.contains("://") {
            return Err(UrlError::Scheme);
        }
        let uri = Uri::parse(text).map_err(|fault| UrlError::Malformed(fault.index()))?;
        let is_https = match uri.scheme().as_str().to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let authority = uri.authority().ok_or(UrlError::Host)?;
        if authority.has_userinfo() {
            return Err(UrlError::User);
        }
        if uri.has_fragment() {
            return Err(UrlError::Fragment);
        }
        let port = match authority.port_to_u16() {
            Ok(Some(port)) if port > 0 => port,
            Ok(None) if authority.has_port() => return Err(UrlError::Port),
            Ok(None) if is_https => 443,
            Ok(None) => 80,
            _ => return Err(UrlError::Port),
        };
        let path = match uri.path().as_str() {
            "" => "/",
            path => path,
        };
        let query = uri.query().map_or_else(String::new, |q| format!("?{q}"));
        Ok(Self {
            is_https,
            host: host_of(&authority)?,
            port,
            target: format!("{path}{query}"),
        })
    }

    /// Whether it is called over TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Its host.
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

    /// The value of the `Host` header: with the port only if it is not the default one.
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

fn host_of(authority: &Authority<'_>) -> Result<Host, UrlError> {
    match authority.host_parsed() {
        component::Host::Ipv4(address) => Ok(Host::Address(address.into())),
        component::Host::Ipv6(address) => Ok(Host::Address(address.into())),
        component::Host::RegName(name) => {
            let name = name.as_str();
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            match host_fault(&name) {
                Some(_) => Err(UrlError::Host),
                None => Ok(Host::Name(name)),
            }
        }
        _ => Err(UrlError::Host),
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
    fn ambiguous_text_is_no_url() {
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
