//! The web console: the relay as its host, and the way by which its pages call the endpoints of the API in this process. A call
//! takes the router and the checks of every request; only the caller is known already, by the sign-in.

use super::body::{self, Body};
use super::connection::Connection;
use super::credential::Caller;
use super::media::{self, Media};
use super::response::{HttpError, Response};
use super::router::{Exchange, MCP, finish_call};
use super::{ServeError, Server, operation};
use crate::port::Later;
use crate::rate::RateKey;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use crosstalk_api::ENDPOINTS;
use crosstalk_api::client::{Client, Transport};
use crosstalk_api::outbound::{HttpCall, HttpResponse, OutboundError};
use crosstalk_console::{ConsoleCredential, ConsoleHost, Entrance, LinkKey, NoEntrance};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{Peer, Role};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Extensions, HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt as _, Limited};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The file with the key of one-time links, in the data folder.
pub const CONSOLE_KEY: &str = "console.key";
/// The page that leads to a one-time link, in the data folder.
pub const CONSOLE_LINK: &str = "console.html";

/// Reads the key of one-time links, or makes one.
///
/// # Errors
/// The folder can't be read or written.
pub fn find_or_make_link_key(data: &Path) -> io::Result<LinkKey> {
    match std::fs::read_to_string(data.join(CONSOLE_KEY)) {
        Ok(text) => match LinkKey::parse(&text) {
            Some(key) => Ok(key),
            None => renew_link_key(data),
        },
        Err(fault) if fault.kind() == ErrorKind::NotFound => renew_link_key(data),
        Err(fault) => Err(fault),
    }
}

/// Makes a new key of one-time links: links that were made before count no more.
///
/// # Errors
/// The folder can't be written.
pub fn renew_link_key(data: &Path) -> io::Result<LinkKey> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    let key = LinkKey::new(bytes);
    std::fs::create_dir_all(data)?;
    write_private(data, CONSOLE_KEY, &key.to_text())?;
    Ok(key)
}

/// Writes a page for the owner of the folder that leads a browser to a one-time link: the link is then in no command line, which
/// every user of the machine could read. The relay removes it when it starts.
///
/// # Errors
/// The folder can't be written.
pub fn write_link_page(data: &Path, link: &str) -> io::Result<PathBuf> {
    let mut target = String::new();
    for c in link.chars() {
        match c {
            '&' => target.push_str("&amp;"),
            '"' | '\'' | '<' | '>' => target.extend(c.escape_unicode()),
            c => target.push(c),
        }
    }
    let page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={target}\">\n<title>Crosstalk</title>\n\
         <p><a href=\"{target}\">Sign in to the console</a></p>\n"
    );
    write_private(data, CONSOLE_LINK, &page)?;
    data.join(CONSOLE_LINK).canonicalize()
}

/// Puts a file for the owner alone in its place at once: readers see the old one or the new one.
fn write_private(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
    let random = u64::from_be_bytes(random);
    let temporary = folder.join(format!(".{name}.tmp-{random:016x}"));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || {
        let mut file = options.open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, folder.join(name))
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// The relay as the host of its console.
pub(super) struct RelayConsole {
    server: Arc<Server>,
    /// The endpoints of the API.
    api: Router,
    link_key: LinkKey,
    changes: watch::Sender<u64>,
}

impl RelayConsole {
    pub(super) fn new(server: Arc<Server>, api: Router, data: &Path) -> Result<Self, ServeError> {
        // Its link has been used, or nobody needs it any more.
        let _ = std::fs::remove_file(data.join(CONSOLE_LINK));
        let changes = watch::Sender::new(0_u64);
        let (send, mut indexed) = (changes.clone(), server.relay.indexing());
        tokio::spawn(async move {
            while indexed.changed().await.is_ok() {
                send.send_modify(|count| *count = count.saturating_add(1));
            }
        });
        Ok(Self {
            link_key: find_or_make_link_key(data)?,
            server,
            api,
            changes,
        })
    }
}

impl RelayConsole {
    /// The caller of a sign-in, if its credential counts.
    async fn caller(
        &self,
        credential: ConsoleCredential,
        from: IpAddr,
    ) -> Result<Caller, HttpError> {
        let server = &self.server;
        let known = server.relay.registry().await?;
        match credential {
            ConsoleCredential::Local
                if known.tokens.is_empty() && server.credentials.is_loopback() =>
            {
                Ok(Caller {
                    peer: Arc::new(Peer::local()),
                    rate_key: RateKey::peer(from),
                })
            }
            ConsoleCredential::Local => Err(HttpError::unknown_peer(
                "The relay has tokens now: the link to it without one counts no more.",
                "sign in with a token.",
            )),
            ConsoleCredential::Token(hash) => {
                let now = server.relay.now();
                server.credentials.caller_of(&known, hash, now)
            }
        }
    }
}

fn no_entrance(fault: HttpError) -> NoEntrance {
    let status = fault.status_code();
    NoEntrance {
        status,
        why: fault.into_explanation(),
    }
}

impl ConsoleHost for RelayConsole {
    fn relay_name(&self) -> String {
        self.server.relay.config().name.clone()
    }

    fn now(&self) -> Timestamp {
        self.server.relay.now()
    }

    fn is_tls(&self) -> bool {
        self.server.tls.is_some()
    }

    fn url(&self, headers: &HeaderMap) -> String {
        operation::base(&self.server, headers)
    }

    fn link_key(&self) -> &LinkKey {
        &self.link_key
    }

    fn check_site(&self, request: &Request) -> Result<(), NoEntrance> {
        let exchange = Exchange::of(request.extensions()).map_err(no_entrance)?;
        let checked = exchange
            .connection
            .check(&self.server.policy().gate, request);
        checked.map_err(no_entrance)
    }

    fn identify<'h>(
        &'h self,
        token: &'h str,
        request: &'h Extensions,
    ) -> Later<'h, Result<ConsoleCredential, NoEntrance>> {
        Box::pin(async move {
            let exchange = Exchange::of(request).map_err(no_entrance)?;
            let from = exchange.connection.from.ip();
            let server = &self.server;
            server
                .check_rate(&server.credentials.stranger_from(from))
                .map_err(no_entrance)?;
            let known = server.relay.registry().await;
            let known = known.map_err(|e| no_entrance(e.into()))?;
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            headers.insert(
                AUTHORIZATION,
                value.unwrap_or(HeaderValue::from_static("Bearer -")),
            );
            let wanted = || Role::Person;
            let now = server.relay.now();
            let found = server
                .credentials
                .identify(&known, &headers, (from, now), wanted);
            match found.map_err(no_entrance)?.rate_key {
                RateKey::Token(hash) => Ok(ConsoleCredential::Token(hash)),
                RateKey::Peer(_) => Err(no_entrance(HttpError::unknown_peer(
                    "This is no token.",
                    "",
                ))),
            }
        })
    }

    fn enter<'h>(
        &'h self,
        credential: ConsoleCredential,
        request: &'h Extensions,
    ) -> Later<'h, Result<Entrance, NoEntrance>> {
        Box::pin(async move {
            let exchange = Exchange::of(request).map_err(no_entrance)?;
            let server = &self.server;
            let from = exchange.connection.from.ip();
            let caller = self.caller(credential, from).await.map_err(no_entrance)?;
            if caller.peer.is_monitor() {
                return Err(no_entrance(HttpError::forbidden(
                    "The token is that of a monitor, which reads the metrics and nothing else.",
                    "sign in with the token of a person or of the operator.",
                )));
            }
            server.check_rate(&caller).map_err(no_entrance)?;
            exchange.note_caller(&caller);
            let peer = Arc::clone(&caller.peer);
            let transport = InProcess {
                server: Arc::clone(server),
                api: TowerToHyperService::new(self.api.clone()),
                connection: Arc::clone(&exchange.connection),
                caller,
            };
            let client = Client::new("http://relay.invalid");
            let client =
                client.map_err(|_| no_entrance(HttpError::later("The console has no client")))?;
            Ok(Entrance {
                peer,
                client: client.with_transport(Arc::new(transport)),
            })
        })
    }

    fn has_credential(&self, credential: ConsoleCredential) -> Later<'_, bool> {
        Box::pin(async move {
            let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            match self.caller(credential, nobody).await {
                Ok(_) => true,
                // A store that is busy says nothing about the credential.
                Err(fault) => fault.status_code() != 401,
            }
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn stopped(&self) -> Later<'_, ()> {
        Box::pin(self.server.wait_for_shutdown())
    }
}

/// Calls the endpoints of the API in the name of a caller.
struct InProcess {
    server: Arc<Server>,
    api: TowerToHyperService<Router>,
    connection: Arc<Connection>,
    caller: Caller,
}

impl Transport for InProcess {
    fn call(&self, call: HttpCall) -> Later<'_, Result<HttpResponse, OutboundError>> {
        Box::pin(async move {
            let mut request = Request::new(Body::from(call.body));
            *request.method_mut() = call.method;
            let target = call.url.target();
            *request.uri_mut() = target
                .parse()
                .map_err(|_| OutboundError::Refused("the path can't be sent".into()))?;
            *request.headers_mut() = call.headers;
            let exchange = Arc::new(Exchange::in_process(&self.connection, self.caller.clone()));
            request.extensions_mut().insert(Arc::clone(&exchange));
            let answered = self.api.call(request).await;
            let mut answer = finish_call(&exchange, answered).await;
            if let Some(fault) = HttpError::take_from(&mut answer) {
                answer = fault.render(true);
            }
            self.server.relay.metrics().answer(answer.status().as_u16());
            let (parts, body) = answer.into_parts();
            let most = usize::try_from(call.most).unwrap_or(usize::MAX);
            let body = Limited::new(body, most).collect().await;
            let body =
                body.map_err(|_| OutboundError::Refused("the answer is too large".into()))?;
            Ok(HttpResponse {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body: body.to_bytes(),
            })
        })
    }
}

/// Counts a request without a sign-in as that of a stranger, also on a relay without tokens: a proxy may have passed it on.
fn count_visitor(server: &Server, exchange: &Exchange) -> Result<(), HttpError> {
    let from = exchange.connection.from.ip();
    let visitor = server.credentials.stranger_from(from);
    exchange.note_caller(&visitor);
    server.check_rate(&visitor)
}

/// Whether a request is for a page, and not for an endpoint of the API.
pub(super) fn is_page(request: &Request) -> bool {
    let (path, headers) = (request.uri().path(), request.headers());
    if path.starts_with("/crosstalk/") {
        return false;
    }
    if path == "/" {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        // A program that asks for nothing special gets text.
        let form = media::choose(headers, &[Media::Text, Media::Html]);
        return is_read && form.is_ok_and(|form| form == Media::Html);
    }
    crosstalk_console::is_page(path) || (accepts_html(headers) && !is_endpoint(path))
}

/// Whether a browser asks for something to show.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|v| v.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(Media::Html.name()))
}

fn is_endpoint(path: &str) -> bool {
    path == MCP || ENDPOINTS.iter().any(|endpoint| endpoint.path == path)
}

/// Answers a request for a page. A page that comes in parts keeps its connection busy.
pub(super) async fn respond(
    server: &Server,
    pages: &TowerToHyperService<Router>,
    request: Request,
) -> Response {
    let path = request.uri().path();
    let is_asset = path.starts_with("/assets/");
    let is_sign_in = path == "/sign-in" && request.method() == Method::POST;
    let exchange = match Exchange::of(request.extensions()) {
        Ok(exchange) => Arc::clone(exchange),
        Err(fault) => return fault.into_response(),
    };
    // The form of the sign-in is read for everybody, so it counts before.
    if is_sign_in && let Err(fault) = count_visitor(server, &exchange) {
        return fault.into_response();
    }
    let answer = match pages.call(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    if !is_asset && exchange.caller().is_err() {
        // Nobody is signed in: it counts as a request of the address that it came from.
        if let Err(fault) = count_visitor(server, &exchange) {
            return fault.into_response();
        }
    }
    let is_stream = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media| media == "text/event-stream");
    if !is_stream {
        return answer;
    }
    let (parts, mut events) = answer.into_parts();
    let (send, body) = body::stream(&exchange.connection.phase, None);
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                frame = events.frame() => frame,
                () = send.closed() => return,
            };
            let Some(Ok(Ok(part))) = frame.map(|f| f.map(|f| f.into_data())) else {
                return;
            };
            let part: Bytes = part;
            if send.send(part).await.is_err() {
                return;
            }
        }
    });
    Response::from_parts(parts, body)
}
