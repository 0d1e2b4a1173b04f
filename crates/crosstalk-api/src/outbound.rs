//! Calling others over HTTP/1.1: endpoints of agents, relays of other domains, a relay from its client.
//!
//! A host is looked up once, every address that comes out is checked ([`not_public`]), and the connection goes to one of
//! exactly these addresses. Redirects, proxies and cookies do not exist here; everything has a deadline and a limit.

mod connect;
mod error;
mod guard;

pub use connect::{ByteStream, Roots};
pub use crosstalk_protocol::url::{Host, Url, UrlError};
pub use error::OutboundError;
pub use guard::not_public;

use bytes::Bytes;
use crosstalk_protocol::port::Resolver;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The value of `User-Agent`.
const AGENT: &str = concat!("crosstalk/", env!("CARGO_PKG_VERSION"));

/// A client for HTTP requests to others.
#[derive(Clone)]
pub struct Outbound {
    resolver: Option<Arc<dyn Resolver>>,
    tls: Arc<connect::TlsSetup>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct HttpCall {
    /// The method.
    pub method: Method,
    /// Where.
    pub url: Url,
    /// Headers. `Host` and `User-Agent` are those of the URL and of this program, unless they are among them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether addresses may be reached that are not public.
    pub allow_private: bool,
    /// How long everything may take: look-up, connection, request, answer.
    pub within: Duration,
    /// How many bytes of an answer are read.
    pub most: u64,
}

/// A response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpCall {
    /// A request with nothing in it: ten seconds, one mebibyte of answer, public addresses only.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            allow_private: false,
            within: Duration::from_secs(10),
            most: 1 << 20,
        }
    }

    /// Adds a header.
    ///
    /// # Errors
    /// If the value is not valid in a header.
    pub fn header(mut self, name: HeaderName, value: &str) -> Result<Self, OutboundError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            OutboundError::Refused(format!("the value of the header `{name}` can't be sent"))
        })?;
        value.set_sensitive(name == http::header::AUTHORIZATION);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds a bearer token, if there is one.
    ///
    /// # Errors
    /// If the token is not valid in a header.
    pub fn bearer(self, token: Option<&str>) -> Result<Self, OutboundError> {
        match token {
            Some(token) => self.header(http::header::AUTHORIZATION, &format!("Bearer {token}")),
            None => Ok(self),
        }
    }
}

impl HttpResponse {
    /// The seconds of `Retry-After`, where it is a number of them.
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// The body, as far as it is text.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }
}

impl Outbound {
    /// A caller that looks hosts up with a resolver, else as the system does.
    pub fn new(resolver: Option<Arc<dyn Resolver>>, roots: Roots) -> Self {
        Self {
            resolver,
            tls: Arc::new(connect::TlsSetup::new(roots)),
        }
    }

    /// Calls, on a connection of its own.
    ///
    /// # Errors
    /// Why there is no answer, or none that counts: a redirect is none.
    pub async fn call(&self, call: HttpCall) -> Result<HttpResponse, OutboundError> {
        let until = Instant::now() + call.within;
        let within = call.within;
        let work = async {
            let mut line = self.connect(&call.url, call.allow_private, until).await?;
            line.call(call).await
        };
        tokio::time::timeout_at(until, work)
            .await
            .map_err(|_| OutboundError::Late(within))?
    }

    /// The addresses of a host: looked up once, all checked.
    ///
    /// # Errors
    /// If there are none, one is not public, or nobody could be asked.
    pub async fn addresses(
        &self,
        url: &Url,
        allow_private: bool,
    ) -> Result<Vec<SocketAddr>, OutboundError> {
        let addresses = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => match &self.resolver {
                Some(resolver) => resolver.hosts(name).await,
                None => connect::system(name, url.port()).await,
            }
            .map_err(|reason| OutboundError::Lookup {
                host: name.clone(),
                reason,
            })?,
        };
        if addresses.is_empty() {
            return Err(OutboundError::Unknown(url.host().to_string()));
        }
        let unwanted = addresses.iter().find_map(|a| Some((*a, not_public(*a)?)));
        match unwanted.filter(|_| !allow_private) {
            Some((address, what)) => Err(OutboundError::NotPublic {
                host: url.host().to_string(),
                address,
                what,
            }),
            None => Ok(addresses
                .into_iter()
                .map(|a| SocketAddr::new(a, url.port()))
                .collect()),
        }
    }

    /// A connection for several calls to one host, one after the other.
    ///
    /// # Errors
    /// Why it can't be reached.
    pub async fn connect(
        &self,
        url: &Url,
        allow_private: bool,
        until: Instant,
    ) -> Result<HttpConnection, OutboundError> {
        let stream = self.stream(url, allow_private, until).await?;
        let sender = connect::speak(stream).await;
        let sender = sender.map_err(|reason| connect::unreachable(url, reason))?;
        Ok(HttpConnection { sender })
    }

    /// The bytes of a connection to one host, for what no polite client would send.
    ///
    /// # Errors
    /// Why it can't be reached.
    pub async fn stream(
        &self,
        url: &Url,
        allow_private: bool,
        until: Instant,
    ) -> Result<Box<dyn ByteStream>, OutboundError> {
        let addresses = self.addresses(url, allow_private).await?;
        connect::open(url, &addresses, &self.tls, until).await
    }
}

/// An open connection.
pub struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
}

impl HttpConnection {
    /// Whether another call can be made on it.
    pub(crate) fn is_open(&self) -> bool {
        self.sender.is_ready()
    }

    /// Calls, and reads the whole answer. A redirect is an error.
    pub(crate) async fn call(&mut self, call: HttpCall) -> Result<HttpResponse, OutboundError> {
        let most = call.most;
        let url = call.url.clone();
        let response = self.send(call).await?;
        let (head, body) = response.into_parts();
        if head.status.is_redirection() {
            let to = head.headers.get(LOCATION).map(HeaderValue::as_bytes);
            let to = String::from_utf8_lossy(to.unwrap_or_default()).into_owned();
            return Err(OutboundError::Redirect {
                url: url.to_string(),
                status: head.status.as_u16(),
                to: crosstalk_envelope::unicode::escape(&to).into_owned(),
            });
        }
        Ok(HttpResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body: bounded(body, most, &url).await?,
        })
    }

    /// Calls, and leaves the answer to be read.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(&mut self, call: HttpCall) -> Result<Response<Incoming>, OutboundError> {
        let broken = |error: hyper::Error| OutboundError::Broken {
            url: call.url.to_string(),
            reason: error.to_string(),
            was_sent: !error.is_canceled(),
        };
        let unwritable =
            |_| OutboundError::Refused(format!("`{}` is not valid in a request", call.url));
        let host = HeaderValue::from_str(&call.url.authority()).map_err(unwritable)?;
        let mut request = Request::new(Full::new(call.body));
        *request.method_mut() = call.method;
        *request.uri_mut() = call.url.target().parse().map_err(|_| {
            OutboundError::Refused(format!("`{}` is not valid in a request", call.url))
        })?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.extend(call.headers);
        self.sender.ready().await.map_err(&broken)?;
        self.sender.send_request(request).await.map_err(&broken)
    }
}

/// Reads an answer, and stops at its limit.
async fn bounded(mut body: Incoming, most: u64, url: &Url) -> Result<Bytes, OutboundError> {
    let mut read: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| OutboundError::Broken {
            url: url.to_string(),
            reason: e.to_string(),
            was_sent: true,
        })?;
        if let Some(data) = frame.data_ref() {
            let length = u64::try_from(read.len() + data.len()).unwrap_or(u64::MAX);
            if length > most {
                return Err(OutboundError::TooLarge {
                    url: url.to_string(),
                    most,
                });
            }
            read.extend_from_slice(data);
        }
    }
    Ok(read.into())
}
