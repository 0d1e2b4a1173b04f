//! Host and origin checks: a page in a browser must not reach a relay on the same machine through a name that leads there (DNS
//! rebinding) or from another site.

use super::response::HttpError;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, Uri};
use std::net::{IpAddr, SocketAddr};

/// The names under which the relay is reached.
#[derive(Debug)]
pub(super) struct Gate {
    /// Names that were configured: with any port.
    names: Vec<String>,
    /// Names of this machine for itself, and the address that it listens on.
    own: Vec<String>,
    /// Where pages of the relay may come from under these: its port, and those that were configured.
    pages: Vec<Authority>,
    /// The origins of browser extensions that the operator listed (HTP-069).
    extensions: Vec<String>,
    port: u16,
}

impl Gate {
    /// A gate for a listener, with the names that were configured.
    pub(super) fn new<'n>(listen: SocketAddr, names: impl Iterator<Item = &'n String>) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let own: Vec<String> = own.into_iter().chain([host_of(listen.ip())]).collect();
        let names = names.map(|n| {
            let plain = || Authority {
                host: lower(n),
                port: None,
            };
            Authority::of(n).unwrap_or_else(plain)
        });
        let (pages, names): (Vec<_>, Vec<_>) = names.partition(|n| own.contains(&n.host));
        Self {
            names: names.into_iter().map(|n| n.host).collect(),
            own,
            pages,
            extensions: Vec::new(),
            port: listen.port(),
        }
    }

    /// The same gate, which lets browser extensions with these origins through.
    pub(super) fn with_extensions(mut self, origins: &[String]) -> Self {
        self.extensions = origins.to_vec();
        self
    }

    /// Whether the only origin is that of a listed extension.
    fn is_extension(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return false;
        };
        let mut listed = self.extensions.iter();
        listed.any(|o| o.as_bytes() == origin.as_bytes())
    }

    /// Lets a request through, or says why not. `here` is the address of this side of the connection.
    pub(super) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        here: IpAddr,
    ) -> Result<(), HttpError> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(Authority::of),
            _ => None,
        };
        let Some(host) = host else {
            return Err(HttpError::format(
                "The request has no `Host`, more than one, or one that can't be read.",
                "send one, with the name of the relay.",
            ));
        };
        let named = uri.authority().map(|a| Authority::of(a.as_str()));
        let named = named.map_or(Some(true), |a| Some(self.is_host(&a?, here)));
        if !self.is_host(&host, here) || named != Some(true) {
            return Err(HttpError::forbidden(
                "The `Host` of the request is none of the names of this relay.",
                "use one of its names, or ask the relay operator to add this one to `hosts` in the configuration.",
            ));
        }
        if self.is_extension(headers) {
            return Ok(());
        }
        let is_foreign = |value: &str| !self.is_origin(value, &host);
        let mut origins = headers.get_all(ORIGIN).iter();
        let comes_from = |site: &str| {
            let said = headers.get("sec-fetch-site");
            said.is_some_and(|s| s.as_bytes().eq_ignore_ascii_case(site.as_bytes()))
        };
        // For a browser, every port of this machine is the same site.
        let is_neighbour = comes_from("same-site")
            && self.own.contains(&host.host)
            && !headers.contains_key(ORIGIN);
        let is_led_here = comes_from("cross-site") || is_neighbour;
        if (is_led_here && !is_way_to_sign_in(method, uri, headers))
            || origins.any(|o| o.to_str().map_or(true, is_foreign))
        {
            return Err(HttpError::forbidden(
                "The request comes from a page of another site.",
                "ask the relay operator to add its host to `hosts` in the configuration.",
            ));
        }
        Ok(())
    }

    /// Nobody else can make a numeric address lead here, as they can with a name: the one that was connected to will do.
    fn is_host(&self, host: &Authority, here: IpAddr) -> bool {
        let is = |n: &String| *n == host.host;
        self.own.iter().any(is) || self.names.iter().any(is) || host_of(here) == host.host
    }

    /// The names of this machine are those of every server on it: there, the port has to be ours.
    fn is_origin(&self, origin: &str, host: &Authority) -> bool {
        let rest = [("http://", 80), ("https://", 443)]
            .into_iter()
            .find_map(|(scheme, port)| Some((origin.strip_prefix(scheme)?, port)));
        let found = rest.and_then(|(rest, port)| Some((Authority::of(rest)?, port)));
        let Some((origin, usual)) = found else {
            return false;
        };
        let port = origin.port.unwrap_or(usual);
        let is_page = |p: &Authority| p.host == origin.host && p.port == Some(port);
        self.names.contains(&origin.host)
            || (self.own.contains(&origin.host) && port == self.port)
            || self.pages.iter().any(is_page)
            || origin == *host
    }
}

/// Whether somebody is led to the page where people sign in, as by a link. It changes nothing, and stands in no frame.
fn is_way_to_sign_in(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| {
        let mut all = headers.get_all(name).iter();
        all.next().is_some_and(|v| v == value) && all.next().is_none()
    };
    *method == Method::GET
        && uri.path() == "/sign-in"
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// A host and its port.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    fn of(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an address in brackets are its own.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || "/@?#\\,".contains(c);
        let in_brackets = host.starts_with('[') && host.ends_with(']');
        let is_host =
            !host.is_empty() && !host.contains(odd) && (in_brackets || !host.contains(':'));
        // A dot at the end means the same name.
        let host = lower(host.strip_suffix('.').unwrap_or(host));
        is_host.then_some(Self { host, port })
    }
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn host_of(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn gate() -> Gate {
        let names = [
            "relay.example".to_owned(),
            "console.example:8443".to_owned(),
            // The name of a relay that was given none.
            "localhost".to_owned(),
            "127.0.0.1:5173".to_owned(),
        ];
        Gate::new(([127, 0, 0, 1], 8799).into(), names.iter())
    }

    fn passes(pairs: &[(&'static str, &str)], uri: &str) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let here = IpAddr::from([10, 0, 0, 7]);
        let uri = uri.parse().unwrap();
        gate().check(&Method::GET, &uri, &headers, here).is_ok()
    }

    #[test]
    fn only_names_of_the_relay_pass() {
        for host in [
            "localhost",
            "LOCALHOST:8799",
            "localhost.:1",
            "127.0.0.1",
            "127.0.0.1:8799",
            "[::1]",
            "[::1]:8799",
            "relay.example",
            "Relay.Example:443",
            "console.example",
            "10.0.0.7:8799",
        ] {
            assert!(passes(&[("host", host)], "/"), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "relay.example.evil.example",
            "evil.example:8799",
            "10.0.0.8",
            "",
            ":8799",
            "localhost:x",
            "localhost:99999",
            "::1",
            "user@localhost",
            "localhost/evil",
            "localhost, evil",
            "0.0.0.0",
        ] {
            assert!(!passes(&[("host", host)], "/"), "{host}");
        }
        assert!(!passes(&[], "/"));
        assert!(!passes(
            &[("host", "localhost"), ("host", "localhost")],
            "/"
        ));
        assert!(passes(&[("host", "localhost")], "http://relay.example/x"));
        assert!(!passes(&[("host", "localhost")], "http://evil.example/x"));
    }

    #[test]
    fn a_link_of_another_site_leads_to_the_sign_in_only() {
        let led = |site: &'static str, mode: &str, dest: &str, path: &str| {
            let pairs = [
                ("host", "localhost:8799"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            passes(&pairs, path)
        };
        for site in ["cross-site", "same-site"] {
            assert!(led(site, "navigate", "document", "/sign-in?link=x"));
            for (mode, dest, path) in [
                ("navigate", "document", "/inbox"),
                ("navigate", "document", "/sign-in/x"),
                ("navigate", "iframe", "/sign-in"),
                ("no-cors", "image", "/sign-in"),
                ("cors", "empty", "/sign-in"),
                ("navigate", "", "/sign-in"),
            ] {
                assert!(!led(site, mode, dest, path), "{site} {mode} {dest} {path}");
            }
        }
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost:8799"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let (uri, here) = (Uri::from_static("/sign-in"), IpAddr::from([127, 0, 0, 1]));
        assert!(gate().check(&Method::POST, &uri, &headers, here).is_err());
        headers.insert(ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert!(gate().check(&Method::GET, &uri, &headers, here).is_err());
    }

    #[test]
    fn only_pages_of_the_relay_pass() {
        for origin in [
            "http://localhost:8799",
            "http://127.0.0.1:5173",
            "https://127.0.0.1:8799",
            "http://[::1]:8799",
            "https://relay.example",
            "https://console.example:9000",
            "http://localhost:9000",
        ] {
            assert!(
                passes(&[("host", "localhost:9000"), ("origin", origin)], "/"),
                "{origin}"
            );
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:3000",
            "http://LOCALHOST.:3000",
            "http://localhost:5173",
            "http://localhost",
            "https://[::1]",
            "http://127.0.0.1:3000",
            "localhost:8799",
            "file://",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "chrome-extension://localhost",
        ] {
            assert!(
                !passes(&[("host", "localhost:8799"), ("origin", origin)], "/"),
                "{origin}"
            );
        }
        let own = "http://localhost:8799";
        assert!(!passes(
            &[
                ("host", "localhost"),
                ("origin", own),
                ("origin", "http://evil.example")
            ],
            "/"
        ));
        // Behind a proxy that keeps the Host.
        assert!(passes(
            &[("host", "localhost"), ("origin", "https://localhost")],
            "/"
        ));
        for (host, site) in [
            ("localhost", "cross-site"),
            ("relay.example", "CROSS-SITE"),
            ("127.0.0.1:8799", "same-site"),
        ] {
            assert!(
                !passes(&[("host", host), ("sec-fetch-site", site)], "/"),
                "{host} {site}"
            );
        }
        assert!(passes(
            &[("host", "relay.example"), ("sec-fetch-site", "same-site")],
            "/"
        ));
        assert!(passes(
            &[
                ("host", "localhost"),
                ("origin", own),
                ("sec-fetch-site", "same-site")
            ],
            "/"
        ));
        assert!(passes(
            &[("host", "localhost"), ("sec-fetch-site", "same-origin")],
            "/"
        ));
    }
}
