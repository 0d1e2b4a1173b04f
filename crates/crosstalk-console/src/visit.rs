//! A request of somebody who is signed in: the checks before a page, and what a page gets.
//!
//! [`guard`] runs before everything: the names of the relay, and the headers of every answer. [`Visit`] finds the sign-in and the
//! credential. [`Posted`] is the same with a form: its token has to be that of the sign-in, and a page of this site has to send it.

use crate::ConsoleState;
use crate::fields::{FormFields, encode};
use crate::header;
use crate::host::{ConsoleCredential, NoEntrance};
use crate::page::{PageError, error_page};
use crate::sign_in::{SignIn, is_same_secret};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use crosstalk_api::client::Client;
use crosstalk_envelope::{Explanation, Timestamp};
use crosstalk_protocol::relay::{Peer, is_human};
use http::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::time::Duration;

/// How large a form may be, and how long it may take to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormLimit {
    bytes: usize,
    time: Duration,
}

impl FormLimit {
    /// The limit of a page. Everybody may send the form of the sign-in.
    fn of(path: &str) -> Self {
        let bytes = match path {
            "/sign-in" => 8 << 10,
            // The text of a chat that is pasted.
            "/paste" | "/paste/file" | "/inspect" | "/inspect/save" => 8 << 20,
            // A message that a person writes; its characters take up to three bytes each.
            "/send" | "/sign" | "/new" => 2200 << 10,
            path if path.starts_with("/threads/") => 2200 << 10,
            _ => 64 << 10,
        };
        let seconds = if path == "/sign-in" { 10 } else { 60 };
        Self {
            bytes,
            time: Duration::from_secs(seconds),
        }
    }
}

/// The field of a form that proves that a page of this sign-in sent it.
pub(crate) const CSRF: &str = "csrf";

/// Checks every request of the console, and protects every answer.
pub(crate) async fn guard(
    State(console): State<Arc<ConsoleState>>,
    request: Request,
    next: Next,
) -> Response {
    let checked = console.host.check_site(&request).and_then(|()| {
        match request.method() == Method::POST && !is_own_page(request.headers()) {
            true => Err(foreign_form()),
            false => Ok(()),
        }
    });
    let mut answer = match checked {
        Ok(()) => next.run(request).await,
        Err(fault) => error_page(&fault.why, fault.status),
    };
    header::secure(answer.headers_mut());
    answer
}

/// Whether a page of this relay sent a form. The relay has compared `Origin` with its names; a form without one is of no browser
/// that protects its user.
fn is_own_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    let is_own_site = site.is_none_or(|site| site == "same-origin");
    is_own_site && headers.contains_key(ORIGIN)
}

fn foreign_form() -> NoEntrance {
    NoEntrance {
        status: 403,
        why: Explanation::new(
            "The form was not sent by a page of this relay.",
            "open the console and send it from there.",
        ),
    }
}

/// The name of the cookie that a browser accepts over TLS only, and never from another host.
const SECURE_COOKIE: &str = "__Host-crosstalk";

/// The name of the cookie without TLS. Cookies of one host are shared by all of its ports.
fn plain_cookie(headers: &HeaderMap) -> String {
    let host = headers
        .get(http::header::HOST)
        .and_then(|h| h.to_str().ok());
    let port = host
        .and_then(|h| h.rsplit_once(':'))
        .map_or("", |(_, port)| port);
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    format!("crosstalk-{}", if is_port { port } else { "80" })
}

/// Whether the browser sees TLS. A proxy in front may do it: a header says so, or the origin of a form, which the browser writes.
/// Both only let the cookie be stricter.
fn is_secure(console: &ConsoleState, headers: &HeaderMap) -> bool {
    let proto = headers.get("x-forwarded-proto");
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    console.host.is_tls()
        || proto.is_some_and(|p| p == "https")
        || origin.is_some_and(|o| o.starts_with(b"https://"))
}

/// The secret in the cookie of a request. Other programs of this machine can give a browser cookies as well: of two with the name,
/// none counts, and one without TLS counts only where the browser has none from TLS.
pub(crate) fn cookie_of(console: &ConsoleState, headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs: Vec<(&str, &str)> = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .collect();
    let values = |name: &str| {
        let found = pairs.iter().filter(|(n, _)| *n == name);
        found.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let mut found = values(SECURE_COOKIE);
    if found.is_empty() && !is_secure(console, headers) {
        found = values(&plain_cookie(headers));
    }
    match found.as_slice() {
        [value] => Some((*value).to_owned()),
        _ => None,
    }
}

/// The line that gives a browser its secret, or takes it away.
pub(crate) fn set_cookie(
    console: &ConsoleState,
    headers: &HeaderMap,
    secret: Option<&str>,
) -> Option<(HeaderName, HeaderValue)> {
    let (name, secure) = match is_secure(console, headers) {
        true => (SECURE_COOKIE.to_owned(), "; Secure"),
        false => (plain_cookie(headers), ""),
    };
    let value = match secret {
        Some(secret) => secret.to_owned(),
        None => "; Max-Age=0".to_owned(),
    };
    let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&line).ok().map(|v| (SET_COOKIE, v))
}

/// A request of somebody who is signed in.
pub(crate) struct Visit {
    pub(crate) console: Arc<ConsoleState>,
    /// The caller, with its role and addresses.
    pub(crate) peer: Arc<Peer>,
    /// Calls the endpoints of the relay in the name of the caller.
    pub(crate) client: Client,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) query: FormFields,
    pub(crate) headers: HeaderMap,
    pub(crate) sign_in: SignIn,
    pub(crate) secret: String,
    pub(crate) now: Timestamp,
    /// How many changes there were when the request came. What a page shows is at least as new.
    pub(crate) position: u64,
}

impl Visit {
    pub(crate) fn credential(&self) -> ConsoleCredential {
        self.sign_in.credential
    }

    /// Whether the sign-in has not ended since the request came, and its credential still counts.
    pub(crate) async fn is_signed_in(&self) -> bool {
        let (all, host) = (&self.console.sign_ins, &self.console.host);
        let found = all.find(&self.secret, host.now(), false);
        found.is_some() && host.has_credential(self.credential()).await
    }

    /// Whether the person asked for the page, and not the page for itself.
    pub(crate) fn is_of_person(&self) -> bool {
        !self.headers.contains_key("hx-request")
    }

    /// The addresses whose inboxes the person reads: those of the credential, else the one that was chosen.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let own = self.peer.addresses.iter().filter_map(|p| p.address());
        let mut all: Vec<String> = own.map(str::to_owned).collect();
        if let Some(chosen) = &self.sign_in.address
            && !all.contains(chosen)
        {
            all.push(chosen.clone());
        }
        all
    }

    /// Whether the person is this party. On a relay without tokens, the person at the machine is every person, until one is chosen.
    pub(crate) fn is_own(&self, address: &str) -> bool {
        let own = self.addresses();
        own.iter().any(|a| a == address)
            || (own.is_empty() && self.peer.is_local && is_human(address))
    }

    /// Whether the person may choose whose inbox to look at.
    pub(crate) fn chooses_address(&self) -> bool {
        let mut patterns = self.peer.addresses.iter();
        self.peer.is_admin() || patterns.any(|p| p.address().is_none())
    }
}

impl FromRequestParts<Arc<ConsoleState>> for Visit {
    type Rejection = PageError;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<ConsoleState>,
    ) -> Result<Self, PageError> {
        let target = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        let target = target.to_owned();
        let secret = cookie_of(console, &parts.headers);
        // What a page fetches by itself keeps nobody signed in.
        let is_used = !parts.headers.contains_key("hx-request") && parts.uri.path() != "/live";
        let now = console.host.now();
        let position = *console.host.changes().borrow();
        let sign_in = secret.and_then(|secret| {
            let found = console.sign_ins.find(&secret, now, is_used)?;
            Some((secret, found))
        });
        let Some((secret, sign_in)) = sign_in else {
            return Err(PageError::sign_in(parts, &target, None));
        };
        let entered = console.host.enter(sign_in.credential, &parts.extensions);
        let entrance = match entered.await {
            Ok(entrance) => entrance,
            Err(fault) if fault.status == 401 => {
                console.sign_ins.end(&secret);
                return Err(PageError::sign_in(parts, &target, Some("ended")));
            }
            Err(fault) => return Err(PageError::Fault(Box::new(fault))),
        };
        let query = FormFields::parse(parts.uri.query().unwrap_or(""));
        let query = query.ok_or_else(|| PageError::format("The URL can't be read."))?;
        Ok(Self {
            console: Arc::clone(console),
            peer: entrance.peer,
            client: entrance.client,
            target,
            query,
            headers: parts.headers.clone(),
            sign_in,
            secret,
            now,
            position,
        })
    }
}

/// A form of somebody who is signed in.
pub(crate) struct Posted {
    pub(crate) visit: Visit,
    pub(crate) form: FormFields,
}

impl FromRequest<Arc<ConsoleState>> for Posted {
    type Rejection = PageError;

    async fn from_request(
        request: Request,
        console: &Arc<ConsoleState>,
    ) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, console).await?;
        let form = read_form(parts.uri.path(), body).await?;
        // It may have taken a minute to come.
        if !visit.is_signed_in().await {
            return Err(PageError::sign_in(&parts, &visit.target, Some("ended")));
        }
        match is_same_secret(form.text(CSRF), &visit.sign_in.csrf) {
            true => Ok(Self { visit, form }),
            false => Err(PageError::Fault(Box::new(NoEntrance {
                status: 403,
                why: Explanation::new(
                    "The form belongs to another sign-in.",
                    "load the page again, and send it once more.",
                ),
            }))),
        }
    }
}

/// Reads the form of a page, bounded in size and time.
pub(crate) async fn read_form(path: &str, body: axum::body::Body) -> Result<FormFields, PageError> {
    let limit = FormLimit::of(path);
    let read = tokio::time::timeout(limit.time, collect(body, limit.bytes)).await;
    let bytes = read.map_err(|_| PageError::format("The form did not come in time."))??;
    let text = std::str::from_utf8(&bytes).ok();
    let fields = text.and_then(FormFields::parse);
    fields.ok_or_else(|| PageError::format("The form can't be read."))
}

async fn collect(mut body: axum::body::Body, most: usize) -> Result<Bytes, PageError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| PageError::format("The form broke off."))?;
        if let Ok(part) = frame.into_data() {
            if all.len().saturating_add(part.len()) > most {
                let why = Explanation::new(
                    format!("The form has more than {most} bytes."),
                    "send the text in parts.",
                );
                return Err(PageError::Fault(Box::new(NoEntrance { status: 413, why })));
            }
            all.extend_from_slice(&part);
        }
    }
    Ok(all.freeze())
}

/// Sends the browser to a page. The answer to a form is a page that can be loaded again.
pub(crate) fn redirect(to: &str) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, to);
    answer
}

/// A path of this site: the one that was asked for before a sign-in.
pub(crate) fn own_path(path: &str) -> Option<&str> {
    let is_own = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    (is_own && path.bytes().all(|b| b.is_ascii_graphic())).then_some(path)
}

/// The page where somebody signs in, and goes on to a path.
pub(crate) fn sign_in_path(target: &str, why: Option<&str>) -> String {
    let why = why.map_or(String::new(), |why| format!("why={why}&"));
    match target {
        "/" | "/inbox" => format!("/sign-in?{why}"),
        _ => format!("/sign-in?{why}to={}", encode(target)),
    }
    .trim_end_matches(['?', '&'])
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_pages_of_this_site_only() {
        for path in ["/", "/threads/a%20b?x=1#y"] {
            assert_eq!(own_path(path), Some(path));
        }
        for path in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/a\nb",
            "/é",
        ] {
            assert_eq!(own_path(path), None, "{path}");
        }
        assert_eq!(sign_in_path("/", None), "/sign-in");
        assert_eq!(
            sign_in_path("/polls", Some("ended")),
            "/sign-in?why=ended&to=%2Fpolls"
        );
    }

    #[test]
    fn only_forms_with_long_texts_may_be_large() {
        let most = |path| FormLimit::of(path).bytes;
        assert_eq!((most("/sign-in"), most("/tokens")), (8 << 10, 64 << 10));
        assert_eq!((most("/paste/file"), most("/inspect")), (8 << 20, 8 << 20));
        // An envelope of the largest size fits, in the form as well.
        for path in ["/send", "/sign", "/new", "/threads/T1/reply"] {
            assert_eq!(most(path), 2200 << 10, "{path}");
        }
        assert!(FormLimit::of("/sign-in").time <= Duration::from_secs(10));
    }

    #[test]
    fn forms_of_other_sites_are_rejected() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)));
            pairs.collect::<HeaderMap>()
        };
        let own = "http://localhost:1";
        assert!(is_own_page(&headers(&[
            ("origin", own),
            ("sec-fetch-site", "same-origin")
        ])));
        assert!(is_own_page(&headers(&[("origin", own)])));
        for pairs in [
            &[][..],
            &[("sec-fetch-site", "same-origin")],
            &[("origin", own), ("sec-fetch-site", "none")],
            &[("origin", own), ("sec-fetch-site", "same-site")],
            &[("origin", own), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!is_own_page(&headers(pairs)), "{pairs:?}");
        }
    }
}
