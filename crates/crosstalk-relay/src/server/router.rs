//! From a request to the handler that answers it. `axum` routes by the table of endpoints in `crosstalk-api`; every handler
//! runs after [`Guarded`], which checks the names of the relay, the credential, the rate and the requirement.

use super::body::{Body, drain};
use super::connection::Connection;
use super::credential::{self, Caller};
use super::response::{HttpError, LoggedRejection, Response};
use super::{
    Server, approval, audit, blob, consent, console, cors, courier, directory, inbox, mcp, media,
    message, operation, poll, query, receive, sms, thread, token, trust,
};
use crate::core::Access;
use crate::core::registry::Registered;
use crate::port::Later;
use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::response::IntoResponse as _;
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use crosstalk_api::inbox::FOR;
use crosstalk_api::{ENDPOINTS, Endpoint, EndpointId, Media, Method, Requirement};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{Role, is_human};
use crosstalk_protocol::store::StoreError;
use futures_util::future::ready;
use http::header::{CONTENT_LENGTH, EXPECT, HeaderName};
use http::request::Parts;
use http::{Extensions, StatusCode, Uri};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Instant;

/// The largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// A request that [`Guarded`] let in.
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) caller: Caller,
    pub(super) connection: Arc<Connection>,
}

impl Call {
    /// What the caller may read.
    pub(super) fn access(&self) -> Access {
        Access::of(&self.caller.peer, self.server.relay.rules())
    }
}

impl FromRequestParts<Arc<Server>> for Call {
    type Rejection = HttpError;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<Self, HttpError> {
        let exchange = Exchange::of(&parts.extensions)?;
        Ok(Self {
            server: Arc::clone(server),
            caller: exchange.caller()?.clone(),
            connection: Arc::clone(&exchange.connection),
        })
    }
}

/// The form of the response that the caller accepts, of those that the endpoint has.
pub(super) struct Accepts(pub(super) Media);

impl FromRequestParts<Arc<Server>> for Accepts {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, HttpError> {
        let offers: Vec<Media> = Exchange::of(&parts.extensions)?
            .endpoint()?
            .media()
            .collect();
        media::choose(&parts.headers, &offers).map(Self)
    }
}

/// The segment of the path that the endpoint leaves open.
pub(super) struct Segment(pub(super) String);

impl FromRequestParts<Arc<Server>> for Segment {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, HttpError> {
        let template = Exchange::of(&parts.extensions)?.endpoint()?.path;
        let (before, after) = template.split_once("{}").unwrap_or((template, ""));
        let path = parts.uri.path().strip_prefix(before);
        let segment = path.and_then(|path| path.strip_suffix(after));
        query::segment(segment.unwrap_or("")).map(Self)
    }
}

/// One request, as the code around the router and the handler share it.
pub(super) struct Exchange {
    /// Nothing for a call of the console, whose request has its body.
    body: Mutex<Option<Incoming>>,
    pub(super) connection: Arc<Connection>,
    /// Whether the console calls, whose caller is known by a sign-in.
    is_in_process: bool,
    /// The place of the endpoint in [`ENDPOINTS`].
    endpoint: OnceLock<usize>,
    caller: OnceLock<Caller>,
    /// The request of a handler that runs outside of the router.
    deferred: Mutex<Option<(Call, Request)>>,
}

impl Exchange {
    /// The exchange that a request belongs to.
    pub(super) fn of(extensions: &Extensions) -> Result<&Arc<Self>, HttpError> {
        extensions.get().ok_or_else(unchecked)
    }

    /// A call of the console in the name of a caller.
    pub(super) fn in_process(connection: &Arc<Connection>, caller: Caller) -> Self {
        Self {
            body: Mutex::new(None),
            connection: Arc::clone(connection),
            is_in_process: true,
            endpoint: OnceLock::new(),
            caller: caller.into(),
            deferred: Mutex::new(None),
        }
    }

    /// Notes who called, for the log.
    pub(super) fn note_caller(&self, caller: &Caller) {
        let _ = self.caller.get_or_init(|| caller.clone());
    }

    /// The caller of a request that was checked.
    pub(super) fn caller(&self) -> Result<&Caller, HttpError> {
        self.caller.get().ok_or_else(unchecked)
    }

    fn deferred(&self) -> MutexGuard<'_, Option<(Call, Request)>> {
        let deferred = self.deferred.lock();
        deferred.unwrap_or_else(PoisonError::into_inner)
    }

    fn endpoint(&self) -> Result<&'static Endpoint, HttpError> {
        let endpoint = self.endpoint.get().and_then(|index| ENDPOINTS.get(*index));
        endpoint.copied().ok_or_else(unchecked)
    }
}

/// Leaves a request to [`receive::receive`].
async fn defer(call: Call, request: Request) -> Result<(), HttpError> {
    let exchange = Arc::clone(Exchange::of(request.extensions())?);
    *exchange.deferred() = Some((call, request));
    Ok(())
}

/// The error of a handler that is not behind [`Guarded`].
fn unchecked() -> HttpError {
    HttpError::later("The relay did not check the request")
}

/// The body of a request. What the handler leaves of it is read after it.
struct ExchangeBody(Arc<Exchange>);

impl ExchangeBody {
    fn lock(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.0.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl hyper::body::Body for ExchangeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self.lock() {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.lock().as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.lock();
        body.as_ref()
            .map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

/// The routes of every endpoint.
pub(super) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new();
    for endpoints in ENDPOINTS.chunk_by(|a, b| a.path == b.path) {
        let path = endpoints.first().map_or("", |endpoint| endpoint.path);
        let reject = move |State(server): State<Arc<Server>>, request: Request| {
            ready(reject_method(&server, &request, endpoints))
        };
        let mut methods = MethodRouter::new().fallback(reject);
        if !endpoints.iter().any(|e| e.method == Method::Head) {
            // Otherwise `axum` would answer HEAD by GET.
            methods = methods.on(MethodFilter::HEAD, reject);
        }
        for endpoint in endpoints {
            methods = methods.merge(route(endpoint));
        }
        if path.contains("{}") {
            // An empty segment is rejected by its handler, after the credential was checked.
            router = router.route(&path.replace("{}", ""), methods.clone());
        }
        router = router.route(&path.replace("{}", "{segment}"), methods);
    }
    router = router.route(MCP, mcp_route());
    router = router.route(sms::PATH, sms_route());
    let missing = || ready(HttpError::missing("such path"));
    router.fallback(missing).with_state(server)
}

/// The path of the MCP server. Its requests are JSON-RPC, which the table of endpoints does not describe.
pub(super) const MCP: &str = "/mcp";

fn mcp_route() -> MethodRouter<Arc<Server>> {
    let guarded = |handler| Guarded {
        requirement: Requirement::Known,
        index: ENDPOINTS.len(),
        handler,
    };
    let methods = MethodFilter::POST
        .or(MethodFilter::GET)
        .or(MethodFilter::DELETE);
    on(methods, guarded(mcp::handle))
}

/// The callbacks of the provider of text messages, which prove themselves by their signature (TXT-010). They have the form of the
/// Standard Webhooks, which the table of endpoints does not describe.
fn sms_route() -> MethodRouter<Arc<Server>> {
    let guarded = Guarded {
        requirement: Requirement::Named,
        index: ENDPOINTS.len(),
        handler: sms::callback,
    };
    on(MethodFilter::POST, guarded)
}

/// The handler of an endpoint.
fn route(endpoint: &'static Endpoint) -> MethodRouter<Arc<Server>> {
    match endpoint.id {
        EndpointId::Receive => guard(endpoint, defer),
        EndpointId::Inbox => guard(endpoint, inbox::inbox),
        EndpointId::Ack => guard(endpoint, inbox::ack),
        EndpointId::Message => guard(endpoint, message::message),
        EndpointId::Status => guard(endpoint, message::status),
        EndpointId::Threads => guard(endpoint, thread::threads),
        EndpointId::Thread => guard(endpoint, thread::thread),
        EndpointId::Search => guard(endpoint, message::search),
        EndpointId::PutBlob => guard(endpoint, blob::put),
        EndpointId::GetBlob | EndpointId::HeadBlob => guard(endpoint, blob::get),
        EndpointId::Resolve => guard(endpoint, directory::resolve),
        EndpointId::Agents => guard(endpoint, directory::agents),
        EndpointId::Declare => guard(endpoint, directory::declare),
        EndpointId::Routes => guard(endpoint, directory::routes),
        EndpointId::Approvals => guard(endpoint, approval::list),
        EndpointId::Approval => guard(endpoint, approval::show),
        EndpointId::Decide => guard(endpoint, approval::decide),
        EndpointId::Consents => guard(endpoint, consent::list),
        EndpointId::Consent => guard(endpoint, consent::show),
        EndpointId::Courier => guard(endpoint, courier::waiting),
        EndpointId::Carry => guard(endpoint, courier::carried),
        EndpointId::Polls => guard(endpoint, poll::polls),
        EndpointId::Poll => guard(endpoint, poll::poll),
        EndpointId::ClosePoll => guard(endpoint, poll::close),
        EndpointId::Dead => guard(endpoint, courier::dead),
        EndpointId::Requeue => guard(endpoint, courier::requeue),
        EndpointId::Quarantine => guard(endpoint, courier::quarantine),
        EndpointId::RetryQuarantine => guard(endpoint, courier::retry_quarantine),
        EndpointId::Tokens => guard(endpoint, token::list),
        EndpointId::MakeToken => guard(endpoint, token::make),
        EndpointId::EndToken => guard(endpoint, token::end),
        EndpointId::Pair => guard(endpoint, token::pair),
        EndpointId::Unpair => guard(endpoint, token::unpair),
        EndpointId::TrustedKeys => guard(endpoint, trust::list),
        EndpointId::PinKey => guard(endpoint, trust::pin),
        EndpointId::DistrustKey => guard(endpoint, trust::distrust),
        EndpointId::Receipt => guard(endpoint, audit::receipt),
        EndpointId::Checkpoint => guard(endpoint, audit::checkpoint),
        EndpointId::LogKey => guard(endpoint, audit::key),
        EndpointId::Inclusion => guard(endpoint, audit::inclusion),
        EndpointId::Chains => guard(endpoint, audit::chains),
        EndpointId::Consistency => guard(endpoint, audit::consistency),
        EndpointId::Entries => guard(endpoint, audit::entries),
        EndpointId::Healthz | EndpointId::HeadHealthz => guard(endpoint, operation::healthy),
        EndpointId::Readyz | EndpointId::HeadReadyz => guard(endpoint, operation::ready),
        EndpointId::Metrics => guard(endpoint, operation::metrics),
        EndpointId::Openapi | EndpointId::HeadOpenapi => guard(endpoint, operation::openapi),
        EndpointId::Home | EndpointId::HeadHome => guard(endpoint, operation::page),
    }
}

/// A handler behind the checks of its endpoint.
#[derive(Clone)]
struct Guarded<H> {
    requirement: Requirement,
    /// The place of the endpoint in [`ENDPOINTS`].
    index: usize,
    handler: H,
}

fn guard<T: 'static, H: Handler<T, Arc<Server>>>(
    endpoint: &'static Endpoint,
    handler: H,
) -> MethodRouter<Arc<Server>> {
    let method = match endpoint.method {
        Method::Get => MethodFilter::GET,
        Method::Head => MethodFilter::HEAD,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    };
    let index = ENDPOINTS.iter().position(|e| e.id == endpoint.id);
    let guarded = Guarded {
        requirement: endpoint.requirement,
        index: index.unwrap_or(ENDPOINTS.len()),
        handler,
    };
    on(method, guarded)
}

impl<T: 'static, H: Handler<T, Arc<Server>>> Handler<(T,), Arc<Server>> for Guarded<H> {
    type Future = Later<'static, Response>;

    fn call(self, request: Request, server: Arc<Server>) -> Self::Future {
        Box::pin(async move {
            let is_in_process = Exchange::of(request.extensions()).is_ok_and(|e| e.is_in_process);
            let known = match self.requirement {
                _ if is_in_process => None,
                Requirement::Open => None,
                _ => Some(server.relay.registry().await),
            };
            match self.authorize(&server, known, &request) {
                Ok(()) => self.handler.call(request, server).await,
                Err(fault) => fault.into_response(),
            }
        })
    }
}

impl<H> Guarded<H> {
    /// Checks who calls by the tokens of the store; where none are known, anybody may.
    fn authorize(
        &self,
        server: &Server,
        known: Option<Result<Arc<Registered>, StoreError>>,
        request: &Request,
    ) -> Result<(), HttpError> {
        let exchange = Exchange::of(request.extensions())?;
        let (connection, requirement) = (&exchange.connection, self.requirement);
        let _ = exchange.endpoint.set(self.index);
        if exchange.is_in_process {
            return check_requirement(server, exchange.caller()?, requirement, request);
        }
        let caller = match known {
            None => server.credentials.stranger_from(connection.from.ip()),
            Some(known) => {
                connection.check(&server.policy().gate, request)?;
                identify(server, connection, request, (requirement, known))?
            }
        };
        let caller = exchange.caller.get_or_init(|| caller);
        check_requirement(server, caller, requirement, request)
    }
}

/// The endpoints of the API, and the pages of the console.
#[derive(Clone)]
pub(super) struct ServedRoutes {
    pub(super) api: TowerToHyperService<Router>,
    pub(super) pages: TowerToHyperService<Router>,
}

/// The answer of a call, after a handler that left the request to [`receive::receive`].
pub(super) async fn finish_call(
    exchange: &Exchange,
    answered: Result<Response, Infallible>,
) -> Response {
    let deferred = exchange.deferred().take();
    match deferred {
        Some((call, request)) => receive::receive(call, request).await.into_response(),
        None => answered.unwrap_or_else(|never| match never {}),
    }
}

/// Answers a request.
pub(super) async fn respond(
    server: &Server,
    routes: &ServedRoutes,
    connection: &Arc<Connection>,
    request: hyper::Request<Incoming>,
) -> Response {
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let bytes_in = length(parts.headers.get(CONTENT_LENGTH));
    let (is_expecting, prefers_json) = (
        parts.headers.contains_key(EXPECT),
        media::prefers_json(&parts.headers),
    );
    let extension = cors::listed_origin(&server.policy(), &parts.headers);
    let exchange = Arc::new(Exchange {
        body: Mutex::new(Some(body)),
        connection: Arc::clone(connection),
        is_in_process: false,
        endpoint: OnceLock::new(),
        caller: OnceLock::new(),
        deferred: Mutex::new(None),
    });
    let mut answer = match check_head_size(&parts) {
        Ok(()) => {
            parts.extensions.insert(Arc::clone(&exchange));
            let request =
                Request::from_parts(parts, Body::new(ExchangeBody(Arc::clone(&exchange))));
            if extension.is_some() && cors::is_preflight(&request) {
                match connection.check(&server.policy().gate, &request) {
                    Ok(()) => cors::allow(),
                    Err(fault) => fault.into_response(),
                }
            } else if console::is_page(&request) {
                console::respond(server, &routes.pages, request).await
            } else {
                let answered = routes.api.call(request).await;
                finish_call(&exchange, answered).await
            }
        }
        Err(fault) => fault.into_response(),
    };
    if let Some(fault) = HttpError::take_from(&mut answer) {
        // A client that waits for `100 Continue` has not sent its body.
        if !fault.closes && !is_expecting {
            drain(ExchangeBody(Arc::clone(&exchange))).await;
        }
        answer = fault.render(prefers_json);
    } else if matches!(
        answer.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    ) {
        // `axum` gives every response a length, these among them.
        answer.headers_mut().remove(CONTENT_LENGTH);
    }
    let (policy, who) = (server.policy(), exchange.caller.get());
    let rate_limit = match who.is_some_and(|c| c.peer.is_local) {
        true => &policy.local_rate_limit,
        false => &policy.rate_limit,
    };
    if let Some(rate_limit) = rate_limit {
        let name = HeaderName::from_static("ratelimit-policy");
        answer.headers_mut().insert(name, rate_limit.clone());
    }
    if let Some(origin) = extension {
        cors::share(&mut answer, origin);
    }
    let status = answer.status().as_u16();
    server.relay.metrics().answer(status);
    let endpoint = exchange.endpoint.get().copied().unwrap_or(ENDPOINTS.len());
    server.request_seconds.observe(endpoint, began.elapsed());
    let caller = who.map_or("-", |c| c.peer.name.as_str());
    // Successful requests are logged at debug level: a busy relay would write more about messages than it stores of them.
    let level = match status {
        500.. => tracing::Level::WARN,
        400.. if server.relay.may_log_rejection(caller) => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let rejected = answer.extensions().get::<LoggedRejection>();
    macro_rules! note {
        ($level:expr) => {
            tracing::event!(
                $level,
                method = %method,
                path = %shown_path(&uri),
                status,
                code = rejected.map(|r| r.code),
                rule = rejected.map(|r| r.rule).filter(|r| !r.is_empty()),
                reason = rejected.map(|r| r.reason.as_str()),
                peer = caller,
                from = %connection.from.ip(),
                bytes_in,
                bytes_out = length(answer.headers().get(CONTENT_LENGTH)).or(answer.body().size_hint().exact()),
                ms = began.elapsed().as_secs_f64() * 1000.0,
                "request"
            )
        };
    }
    // The level of an event is fixed where it stands.
    match level {
        tracing::Level::WARN => note!(tracing::Level::WARN),
        tracing::Level::INFO => note!(tracing::Level::INFO),
        _ => note!(tracing::Level::DEBUG),
    }
    answer
}

/// The path of a request, escaped and shortened.
fn shown_path(uri: &Uri) -> String {
    let path: String = uri.path().chars().take(200).collect();
    crosstalk_envelope::unicode::escape(&path).into_owned()
}

fn length(value: Option<&http::HeaderValue>) -> Option<u64> {
    value?.to_str().ok()?.parse().ok()
}

/// Rejects a method that no endpoint of a path has.
fn reject_method(server: &Server, request: &Request, endpoints: &[&Endpoint]) -> HttpError {
    let exchange = Exchange::of(request.extensions());
    let checked = exchange.and_then(|e| e.connection.check(&server.policy().gate, request));
    let methods = endpoints.iter().map(|e| e.method.as_str());
    let allowed = || HttpError::method(&methods.collect::<Vec<_>>().join(", "));
    checked.err().unwrap_or_else(allowed)
}

/// Identifies the caller and counts the request. A request with a token that does not count is counted by its address, so that
/// a client can't try out tokens.
fn identify(
    server: &Server,
    connection: &Connection,
    request: &Request,
    (requirement, known): (Requirement, Result<Arc<Registered>, StoreError>),
) -> Result<Caller, HttpError> {
    let (from, now) = (connection.from.ip(), server.relay.now());
    let wanted = || wanted_role(requirement, request);
    let identified = known.map_err(HttpError::from).and_then(|known| {
        let (credentials, headers) = (&server.credentials, request.headers());
        credentials.identify(&known, headers, (from, now), wanted)
    });
    match identified {
        Ok(caller) => {
            server.check_rate(&caller)?;
            Ok(caller)
        }
        Err(fault) => {
            server.check_rate(&server.credentials.stranger_from(from))?;
            Err(fault)
        }
    }
}

/// The narrowest role whose token allows a request. Only a person speaks and reads for a `human://` address.
fn wanted_role(requirement: Requirement, request: &Request) -> Role {
    let asked = query::Query::parse(request.uri().query()).ok();
    let address = asked.as_ref().and_then(|q| q.required(&FOR).ok());
    match requirement {
        Requirement::Monitor => Role::Monitor,
        Requirement::Admin => Role::Admin,
        Requirement::Person => Role::Person,
        _ if address.is_some_and(is_human) => Role::Person,
        Requirement::Open | Requirement::Named | Requirement::Stranger | Requirement::Known => {
            Role::Agent
        }
    }
}

fn check_requirement(
    server: &Server,
    caller: &Caller,
    requirement: Requirement,
    request: &Request,
) -> Result<(), HttpError> {
    let (peer, headers) = (&caller.peer, request.headers());
    let may = match requirement {
        Requirement::Open | Requirement::Named => return Ok(()),
        // It reads the metrics, and nothing else.
        _ if peer.is_monitor() => requirement == Requirement::Monitor,
        Requirement::Stranger => return Ok(()),
        Requirement::Monitor if server.credentials.is_local_request(headers) => return Ok(()),
        _ if caller.is_stranger() => {
            return Err(credential::credential_needed(wanted_role(
                requirement,
                request,
            )));
        }
        Requirement::Known => true,
        Requirement::Person => peer.is_person(),
        Requirement::Admin | Requirement::Monitor => peer.is_admin(),
    };
    match may {
        true => Ok(()),
        false => Err(HttpError::forbidden(
            format!(
                "The credential `{}` is that of {}, which may not do this.",
                peer.name,
                peer.role.as_str()
            ),
            format!(
                "use the credential of {}.",
                match requirement {
                    _ if peer.is_monitor() =>
                        "an agent or a person: a monitor reads the metrics, and nothing else",
                    Requirement::Person => "a person, or of the relay operator",
                    Requirement::Monitor => "a monitor, or of the relay operator",
                    _ => "the relay operator (role admin)",
                }
            ),
        )),
    }
}

/// Rejects a request whose URL or head is too large.
fn check_head_size(parts: &Parts) -> Result<(), HttpError> {
    let headers = parts.headers.iter();
    let headers: usize = headers.map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
    let path = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    let (most, status) = match path > MAX_HEAD_BYTES / 2 {
        true => (MAX_HEAD_BYTES / 2, 414),
        false if headers > MAX_HEAD_BYTES => (MAX_HEAD_BYTES, 431),
        false => return Ok(()),
    };
    let part = if status == 414 { "URL" } else { "head" };
    let (what, help) = (
        format!("The {part} of the request has more than {most} bytes."),
        "make it shorter.",
    );
    Err(HttpError::new(ErrorCode::TooLarge, what, help).status(status))
}
