//! From a request to the function that answers it, by the table of endpoints in `crosstalk-api`.

use super::answer::{self, Answer, Fault, Rejected};
use super::body;
use super::connection::Line;
use super::credential::{self, Caller};
use super::{
    Site, approval, audit, blob, consent, courier, directory, inbox, media, message, operation,
    poll, query, receive, thread, token,
};
use crate::metrics;
use crosstalk_api::inbox::FOR;
use crosstalk_api::{ENDPOINTS, Endpoint, EndpointId, Media, Requirement};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{Role, is_human};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderName};
use http::{Request, request::Parts};
use hyper::body::Incoming;
use std::sync::Arc;
use tokio::time::Instant;

/// The largest head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// A request on its way through.
pub(super) struct Call<'c> {
    pub(super) site: &'c Arc<Site>,
    pub(super) parts: &'c Parts,
    pub(super) body: &'c mut Incoming,
    pub(super) caller: Caller,
    pub(super) line: &'c Arc<Line>,
    endpoint: &'static Endpoint,
    /// The segment of the path, where there is one.
    name: Option<&'c str>,
}

impl Call<'_> {
    /// The name in the path.
    pub(super) fn name(&self) -> Result<String, Fault> {
        query::segment(self.name.unwrap_or(""))
    }

    /// The parameters.
    pub(super) fn query(&self) -> Result<query::Query, Fault> {
        query::Query::parse(self.parts.uri.query())
    }

    /// The form of the answer that the caller wants, of those that the endpoint has.
    pub(super) fn media(&self) -> Result<Media, Fault> {
        let offers: Vec<Media> = self.endpoint.media().collect();
        media::choose(&self.parts.headers, &offers)
    }
}

/// What is known about a request when it is answered.
#[derive(Default)]
struct Seen {
    caller: Option<Caller>,
    /// The place of its endpoint among [`endpoints`].
    endpoint: Option<usize>,
}

/// Every endpoint, and at the end one for requests that fit none.
pub(super) fn endpoints() -> impl Iterator<Item = metrics::Endpoint> {
    let known = ENDPOINTS.iter().map(|endpoint| metrics::Endpoint {
        method: endpoint.method.as_str(),
        path: endpoint.path,
    });
    let other = metrics::Endpoint {
        method: "other",
        path: "other",
    };
    known.chain([other])
}

/// The path of a request, escaped and shortened.
fn shown_path(parts: &Parts) -> String {
    let path: String = parts.uri.path().chars().take(200).collect();
    crosstalk_envelope::unicode::escape(&path).into_owned()
}

fn length(value: Option<&http::HeaderValue>) -> Option<u64> {
    value?.to_str().ok()?.parse().ok()
}

/// Answers a request.
pub(super) async fn answer(
    site: &Arc<Site>,
    line: &Arc<Line>,
    request: Request<Incoming>,
) -> Answer {
    let began = Instant::now();
    let (parts, mut body) = request.into_parts();
    let mut seen = Seen::default();
    let outcome = respond(site, line, &parts, &mut body, &mut seen).await;
    let who = &seen.caller;
    let mut answer = match outcome {
        Ok(answer) => answer,
        Err(fault) => {
            // Who waits to be told to go on is told not to.
            if !fault.closes && !parts.headers.contains_key(EXPECT) {
                body::drain(&mut body).await;
            }
            fault.answer(media::prefers_json(&parts.headers))
        }
    };
    let front = site.front();
    let policy = match who.as_ref().is_some_and(|c| c.peer.is_local) {
        true => &front.local_policy,
        false => &front.policy,
    };
    if let Some(policy) = policy {
        let name = HeaderName::from_static("ratelimit-policy");
        answer.headers_mut().insert(name, policy.clone());
    }
    let status = answer.status().as_u16();
    site.relay.metrics().answer(status);
    let endpoint = seen.endpoint.unwrap_or(ENDPOINTS.len());
    site.request_seconds.observe(endpoint, began.elapsed());
    let caller = who.as_ref().map_or("-", |c| c.peer.name.as_str());
    // What went well is for who looks closely: a busy relay would write more about messages than it keeps of them.
    let level = match status {
        500.. => tracing::Level::WARN,
        400.. if site.relay.may_log_rejection(caller) => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let rejected = answer.extensions().get::<Rejected>();
    macro_rules! note {
        ($level:expr) => {
            tracing::event!(
                $level,
                method = %parts.method,
                path = %shown_path(&parts),
                status,
                code = rejected.map(|r| r.code),
                rule = rejected.map(|r| r.rule).filter(|r| !r.is_empty()),
                reason = rejected.map(|r| r.reason.as_str()),
                peer = caller,
                from = %line.from.ip(),
                bytes_in = length(parts.headers.get(CONTENT_LENGTH)),
                bytes_out = answer.body().len(),
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

async fn respond(
    site: &Arc<Site>,
    line: &Arc<Line>,
    parts: &Parts,
    body: &mut Incoming,
    seen: &mut Seen,
) -> Result<Answer, Fault> {
    small(parts)?;
    let (endpoints, name) = find(parts.uri.path())?;
    let mut methods = endpoints.iter().copied();
    let here = methods.find(|e| e.method.as_str() == parts.method.as_str());
    seen.endpoint = here.and_then(|here| ENDPOINTS.iter().position(|e| e.id == here.id));
    let is_open = here.is_some_and(|e| e.requirement == Requirement::Open);
    if !is_open {
        line.check(&site.front().gate, parts)?;
    }
    let Some(endpoint) = here else {
        let allowed: Vec<&str> = endpoints.iter().map(|e| e.method.as_str()).collect();
        return Err(Fault::method(&allowed.join(", ")));
    };
    let requirement = endpoint.requirement;
    let caller = match is_open {
        true => site.credentials.nobody(line.from.ip()),
        false => identify(site, line, parts, requirement)?,
    };
    let caller = &*seen.caller.insert(caller);
    may(site, caller, requirement, parts)?;
    let mut call = Call {
        site,
        parts,
        body,
        caller: caller.clone(),
        line,
        endpoint,
        name,
    };
    // The others are put into a box: what is done most often should not carry their weight.
    match endpoint.id {
        EndpointId::Receive => receive::receive(&mut call).await,
        _ => Box::pin(act(&mut call)).await,
    }
}

async fn act(call: &mut Call<'_>) -> Result<Answer, Fault> {
    match call.endpoint.id {
        EndpointId::Receive => receive::receive(call).await,
        EndpointId::Inbox => inbox::inbox(call).await,
        EndpointId::Ack => inbox::ack(call).await,
        EndpointId::Message => message::message(call).await,
        EndpointId::Status => message::status(call).await,
        EndpointId::Threads => thread::threads(call).await,
        EndpointId::Thread => thread::thread(call).await,
        EndpointId::Search => message::search(call).await,
        EndpointId::PutBlob => blob::put(call).await,
        EndpointId::GetBlob | EndpointId::HeadBlob => blob::get(call).await,
        EndpointId::Resolve => directory::resolve(call).await,
        EndpointId::Agents => directory::agents(call),
        EndpointId::Declare => directory::declare(call).await,
        EndpointId::Approvals => approval::list(call).await,
        EndpointId::Approval => approval::show(call).await,
        EndpointId::Decide => approval::decide(call).await,
        EndpointId::Consents => consent::list(call).await,
        EndpointId::Consent => consent::show(call).await,
        EndpointId::Courier => courier::waiting(call).await,
        EndpointId::Carry => courier::carried(call).await,
        EndpointId::Polls => poll::polls(call).await,
        EndpointId::Poll => poll::poll(call).await,
        EndpointId::ClosePoll => poll::close(call).await,
        EndpointId::Dead => courier::dead(call).await,
        EndpointId::Requeue => courier::requeue(call).await,
        EndpointId::Tokens => token::list(call).await,
        EndpointId::MakeToken => token::make(call).await,
        EndpointId::EndToken => token::end(call).await,
        EndpointId::Receipt => audit::receipt(call).await,
        EndpointId::Checkpoint => audit::checkpoint(call).await,
        EndpointId::LogKey => audit::key(call),
        EndpointId::Inclusion => audit::inclusion(call).await,
        EndpointId::Consistency => audit::consistency(call).await,
        EndpointId::Entries => audit::entries(call).await,
        EndpointId::Healthz | EndpointId::HeadHealthz => Ok(answer::text("ok\n".into())),
        EndpointId::Readyz | EndpointId::HeadReadyz => operation::ready(call),
        EndpointId::Metrics => Ok(operation::metrics(call).await),
        EndpointId::Openapi | EndpointId::HeadOpenapi => Ok(operation::openapi()),
        EndpointId::Home | EndpointId::HeadHome => Ok(operation::page(call)),
    }
}

/// The endpoints of a path, and the segment in it.
fn find(path: &str) -> Result<(&'static [&'static Endpoint], Option<&str>), Fault> {
    for endpoints in ENDPOINTS.chunk_by(|a, b| a.path == b.path) {
        let template = endpoints.first().map_or("", |endpoint| endpoint.path);
        if template == path {
            return Ok((endpoints, None));
        }
        let name = template.split_once("{}").and_then(|(before, after)| {
            let name = path.strip_prefix(before)?.strip_suffix(after)?;
            (!name.contains('/')).then_some(name)
        });
        if name.is_some() {
            return Ok((endpoints, name));
        }
    }
    Err(Fault::missing("such path"))
}

/// Whoever does not prove to be somebody is counted by address, so that nobody can try out tokens.
fn identify(
    site: &Site,
    line: &Line,
    parts: &Parts,
    requirement: Requirement,
) -> Result<Caller, Fault> {
    let (from, now) = (line.from.ip(), site.relay.now());
    let wanted = || wanted_role(requirement, parts);
    match site.credentials.identify(&parts.headers, from, now, wanted) {
        Ok(caller) => {
            site.allow(&caller)?;
            Ok(caller)
        }
        Err(fault) => {
            site.allow(&site.credentials.nobody(from))?;
            Err(fault)
        }
    }
}

/// The narrowest role whose token allows a request. Only a person speaks and reads for a `human://` address.
fn wanted_role(requirement: Requirement, parts: &Parts) -> Role {
    let asked = query::Query::parse(parts.uri.query()).ok();
    let address = asked.as_ref().and_then(|q| q.needed(&FOR).ok());
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

fn may(site: &Site, caller: &Caller, requirement: Requirement, parts: &Parts) -> Result<(), Fault> {
    let (peer, headers) = (&caller.peer, &parts.headers);
    let may = match requirement {
        Requirement::Open | Requirement::Named => return Ok(()),
        // It reads the metrics, and nothing else.
        _ if peer.is_monitor() => requirement == Requirement::Monitor,
        Requirement::Stranger => return Ok(()),
        Requirement::Monitor if site.credentials.is_at_home(headers) => return Ok(()),
        _ if caller.is_stranger() => {
            return Err(credential::needed(wanted_role(requirement, parts)));
        }
        Requirement::Known => true,
        Requirement::Person => peer.is_person(),
        Requirement::Admin | Requirement::Monitor => peer.is_admin(),
    };
    match may {
        true => Ok(()),
        false => Err(Fault::forbidden(
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

/// Heads are small.
fn small(parts: &Parts) -> Result<(), Fault> {
    let headers = parts.headers.iter();
    let headers: usize = headers.map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
    let path = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    let (most, status) = match path > HEAD / 2 {
        true => (HEAD / 2, 414),
        false if headers > HEAD => (HEAD, 431),
        false => return Ok(()),
    };
    let part = if status == 414 { "URL" } else { "head" };
    let (what, help) = (
        format!("The {part} of the request has more than {most} bytes."),
        "make it shorter.",
    );
    Err(Fault::new(ErrorCode::TooLarge, what, help).status(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_found_by_its_own_line() {
        for endpoint in ENDPOINTS {
            let path = endpoint.path.replace("{}", "sha256:00%2F");
            let (found, name) = find(&path).unwrap();
            assert!(found.iter().any(|e| e.id == endpoint.id), "{path}");
            assert_eq!(name, endpoint.path.contains("{}").then_some("sha256:00%2F"));
        }
        for path in [
            "",
            "/crosstalk",
            "/crosstalk/",
            "/crosstalk/receive/",
            "/crosstalk/messages/a/b",
            "//",
        ] {
            assert!(find(path).is_err(), "{path}");
        }
    }
}
