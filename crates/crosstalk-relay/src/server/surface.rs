//! The whole surface: every path, its methods, and who may use them.

use super::answer::{self, Answer, Fault};
use super::body;
use super::connection::Line;
use super::credential::{self, Caller};
use super::{
    Site, approval, audit, blob, consent, courier, directory, inbox, media, message, operation,
    poll, query, receive, thread, token,
};
use crate::metrics::Endpoint;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{Role, is_human};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderName};
use http::{Method, Request, request::Parts};
use hyper::body::Incoming;
use std::sync::Arc;
use tokio::time::Instant;

/// The largest head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// Who may use something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Everybody, from anywhere.
    Open,
    /// Everybody who reaches the relay under one of its names.
    Named,
    /// The same; what a stranger sends has to prove itself by its signature.
    Stranger,
    /// Everybody on the same machine as a loopback listener, else a monitor or the operator.
    Monitor,
    /// Whoever has a credential.
    Known,
    /// A person.
    Person,
    /// The operator.
    Admin,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Receive,
    Inbox,
    Ack,
    Message,
    Status,
    Receipt,
    Threads,
    Thread,
    Search,
    PutBlob,
    GetBlob,
    Resolve,
    Agents,
    Declare,
    Approvals,
    Approval,
    Decide,
    Consents,
    Consent,
    Courier,
    Carried,
    Polls,
    Poll,
    ClosePoll,
    Dead,
    Requeue,
    Tokens,
    MakeToken,
    EndToken,
    Checkpoint,
    LogKey,
    Inclusion,
    Consistency,
    Entries,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Page,
}

/// The methods of a path.
type Methods = &'static [(Method, Does, Right)];
type Path = (&'static str, Methods);

/// Every path. `{}` is one part of it, with a name in it.
static SURFACE: [Path; 35] = [
    (
        "/crosstalk/receive",
        &[(Method::POST, Does::Receive, Right::Stranger)],
    ),
    (
        "/crosstalk/inbox",
        &[(Method::GET, Does::Inbox, Right::Known)],
    ),
    ("/crosstalk/ack", &[(Method::POST, Does::Ack, Right::Known)]),
    (
        "/crosstalk/messages/{}",
        &[(Method::GET, Does::Message, Right::Known)],
    ),
    (
        "/crosstalk/messages/{}/status",
        &[(Method::GET, Does::Status, Right::Known)],
    ),
    (
        "/crosstalk/threads",
        &[(Method::GET, Does::Threads, Right::Known)],
    ),
    (
        "/crosstalk/threads/{}",
        &[(Method::GET, Does::Thread, Right::Known)],
    ),
    (
        "/crosstalk/search",
        &[(Method::GET, Does::Search, Right::Known)],
    ),
    (
        "/crosstalk/blobs/{}",
        &[
            (Method::GET, Does::GetBlob, Right::Known),
            (Method::HEAD, Does::GetBlob, Right::Known),
            (Method::PUT, Does::PutBlob, Right::Known),
        ],
    ),
    (
        "/crosstalk/resolve",
        &[(Method::GET, Does::Resolve, Right::Known)],
    ),
    (
        "/crosstalk/agents",
        &[
            (Method::GET, Does::Agents, Right::Known),
            (Method::PUT, Does::Declare, Right::Known),
        ],
    ),
    (
        "/crosstalk/approvals",
        &[(Method::GET, Does::Approvals, Right::Person)],
    ),
    (
        "/crosstalk/approvals/{}",
        &[
            (Method::GET, Does::Approval, Right::Person),
            (Method::POST, Does::Decide, Right::Person),
        ],
    ),
    (
        "/crosstalk/consents",
        &[(Method::GET, Does::Consents, Right::Known)],
    ),
    (
        "/crosstalk/consents/{}",
        &[(Method::GET, Does::Consent, Right::Known)],
    ),
    (
        "/crosstalk/courier",
        &[(Method::GET, Does::Courier, Right::Person)],
    ),
    (
        "/crosstalk/courier/{}",
        &[(Method::POST, Does::Carried, Right::Person)],
    ),
    (
        "/crosstalk/polls",
        &[(Method::GET, Does::Polls, Right::Known)],
    ),
    (
        "/crosstalk/polls/{}",
        &[(Method::GET, Does::Poll, Right::Known)],
    ),
    (
        "/crosstalk/polls/{}/close",
        &[(Method::POST, Does::ClosePoll, Right::Known)],
    ),
    (
        "/crosstalk/dead",
        &[(Method::GET, Does::Dead, Right::Admin)],
    ),
    (
        "/crosstalk/dead/{}/requeue",
        &[(Method::POST, Does::Requeue, Right::Admin)],
    ),
    (
        "/crosstalk/tokens",
        &[
            (Method::GET, Does::Tokens, Right::Admin),
            (Method::POST, Does::MakeToken, Right::Admin),
        ],
    ),
    (
        "/crosstalk/tokens/{}",
        &[(Method::DELETE, Does::EndToken, Right::Admin)],
    ),
    (
        "/crosstalk/messages/{}/receipt",
        &[(Method::GET, Does::Receipt, Right::Known)],
    ),
    (
        "/crosstalk/audit/checkpoint",
        &[(Method::GET, Does::Checkpoint, Right::Known)],
    ),
    (
        "/crosstalk/audit/key",
        &[(Method::GET, Does::LogKey, Right::Known)],
    ),
    (
        "/crosstalk/audit/inclusion",
        &[(Method::GET, Does::Inclusion, Right::Known)],
    ),
    (
        "/crosstalk/audit/consistency",
        &[(Method::GET, Does::Consistency, Right::Known)],
    ),
    (
        "/crosstalk/audit/entries",
        &[(Method::GET, Does::Entries, Right::Admin)],
    ),
    (
        "/healthz",
        &[
            (Method::GET, Does::Health, Right::Open),
            (Method::HEAD, Does::Health, Right::Open),
        ],
    ),
    (
        "/readyz",
        &[
            (Method::GET, Does::Ready, Right::Open),
            (Method::HEAD, Does::Ready, Right::Open),
        ],
    ),
    ("/metrics", &[(Method::GET, Does::Metrics, Right::Monitor)]),
    (
        "/openapi.json",
        &[
            (Method::GET, Does::OpenApi, Right::Named),
            (Method::HEAD, Does::OpenApi, Right::Named),
        ],
    ),
    (
        "/",
        &[
            (Method::GET, Does::Page, Right::Named),
            (Method::HEAD, Does::Page, Right::Named),
        ],
    ),
];

/// A request on its way through.
pub(super) struct Call<'c> {
    pub(super) site: &'c Arc<Site>,
    pub(super) parts: &'c Parts,
    pub(super) body: &'c mut Incoming,
    pub(super) caller: Caller,
    pub(super) line: &'c Arc<Line>,
    /// The name in the path, where there is one.
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

    /// The kind of answer that is wanted.
    pub(super) fn media(&self, offers: &[media::Media]) -> Result<media::Media, Fault> {
        media::choose(&self.parts.headers, offers)
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
pub(super) fn endpoints() -> impl Iterator<Item = Endpoint> {
    let of_path = |(path, methods): &'static Path| {
        methods.iter().map(|(method, ..)| Endpoint {
            method: method.as_str(),
            path,
        })
    };
    let other = Endpoint {
        method: "other",
        path: "other",
    };
    SURFACE.iter().flat_map(of_path).chain([other])
}

/// The place of an endpoint among all.
fn place_of(does: Does, method: &Method) -> Option<usize> {
    let all = SURFACE.iter().flat_map(|(_, methods)| methods.iter());
    let mut all = all.map(|(m, d, _)| (m, *d));
    all.position(|(m, d)| d == does && m == method)
}

/// The place of requests that fit no endpoint.
fn others() -> usize {
    SURFACE.iter().map(|(_, methods)| methods.len()).sum()
}

/// Writes a request down: who did what, and what came of it; nothing of what was said.
macro_rules! note {
    ($level:expr, $line:ident, $parts:ident, $who:ident, $status:ident, $answer:ident, $began:ident) => {
        tracing::event!(
            $level,
            method = %$parts.method,
            path = %shown_path(&$parts),
            status = $status,
            peer = $who.as_ref().map_or("-", |c| c.peer.name.as_str()),
            from = %$line.from.ip(),
            bytes_in = length($parts.headers.get(CONTENT_LENGTH)),
            bytes_out = $answer.body().len(),
            ms = $began.elapsed().as_secs_f64() * 1000.0,
            "request"
        )
    };
}

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
    let endpoint = seen.endpoint.unwrap_or_else(others);
    site.request_seconds.observe(endpoint, began.elapsed());
    // What went well is for who looks closely: a busy relay would write more about messages than it keeps of them.
    match status {
        500.. => note!(
            tracing::Level::WARN,
            line,
            parts,
            who,
            status,
            answer,
            began
        ),
        400.. => note!(
            tracing::Level::INFO,
            line,
            parts,
            who,
            status,
            answer,
            began
        ),
        _ => note!(
            tracing::Level::DEBUG,
            line,
            parts,
            who,
            status,
            answer,
            began
        ),
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
    let (methods, name) = find(parts.uri.path())?;
    let here = methods.iter().find(|(m, ..)| *m == parts.method);
    seen.endpoint = here.and_then(|(_, does, _)| place_of(*does, &parts.method));
    let is_open = here.is_some_and(|(_, _, right)| *right == Right::Open);
    if !is_open {
        line.check(&site.front().gate, parts)?;
    }
    let Some((_, does, right)) = here else {
        let allowed: Vec<&str> = methods.iter().map(|(m, ..)| m.as_str()).collect();
        return Err(Fault::method(&allowed.join(", ")));
    };
    let caller = match is_open {
        true => site.credentials.nobody(line.from.ip()),
        false => identify(site, line, parts, *right)?,
    };
    let caller = &*seen.caller.insert(caller);
    may(site, caller, *right, parts)?;
    let mut call = Call {
        site,
        parts,
        body,
        caller: caller.clone(),
        line,
        name,
    };
    // The others are put into a box: what is done most often should not carry their weight.
    match does {
        Does::Receive => receive::receive(&mut call).await,
        other => Box::pin(act(*other, &mut call)).await,
    }
}

async fn act(does: Does, call: &mut Call<'_>) -> Result<Answer, Fault> {
    match does {
        Does::Receive => receive::receive(call).await,
        Does::Inbox => inbox::inbox(call).await,
        Does::Ack => inbox::ack(call).await,
        Does::Message => message::message(call).await,
        Does::Status => message::status(call).await,
        Does::Threads => thread::threads(call).await,
        Does::Thread => thread::thread(call).await,
        Does::Search => message::search(call).await,
        Does::PutBlob => blob::put(call).await,
        Does::GetBlob => blob::get(call).await,
        Does::Resolve => directory::resolve(call).await,
        Does::Agents => directory::agents(call),
        Does::Declare => directory::declare(call).await,
        Does::Approvals => approval::list(call).await,
        Does::Approval => approval::show(call).await,
        Does::Decide => approval::decide(call).await,
        Does::Consents => consent::list(call).await,
        Does::Consent => consent::show(call).await,
        Does::Courier => courier::waiting(call).await,
        Does::Carried => courier::carried(call).await,
        Does::Polls => poll::polls(call).await,
        Does::Poll => poll::poll(call).await,
        Does::ClosePoll => poll::close(call).await,
        Does::Dead => courier::dead(call).await,
        Does::Requeue => courier::requeue(call).await,
        Does::Tokens => token::list(call).await,
        Does::MakeToken => token::make(call).await,
        Does::EndToken => token::end(call).await,
        Does::Receipt => audit::receipt(call).await,
        Does::Checkpoint => audit::checkpoint(call).await,
        Does::LogKey => audit::key(call),
        Does::Inclusion => audit::inclusion(call).await,
        Does::Consistency => audit::consistency(call).await,
        Does::Entries => audit::entries(call).await,
        Does::Health => Ok(answer::text("ok\n".into())),
        Does::Ready => operation::ready(call),
        Does::Metrics => Ok(operation::metrics(call).await),
        Does::OpenApi => Ok(operation::openapi()),
        Does::Page => Ok(operation::page(call)),
    }
}

/// The methods of a path, and the name in it.
fn find(path: &str) -> Result<(Methods, Option<&str>), Fault> {
    for (template, methods) in &SURFACE {
        if *template == path {
            return Ok((methods, None));
        }
        let name = template.split_once("{}").and_then(|(before, after)| {
            let name = path.strip_prefix(before)?.strip_suffix(after)?;
            (!name.contains('/')).then_some(name)
        });
        if name.is_some() {
            return Ok((methods, name));
        }
    }
    Err(Fault::missing("such path"))
}

/// Whoever does not prove to be somebody is counted by address, so that nobody can try out tokens.
fn identify(site: &Site, line: &Line, parts: &Parts, right: Right) -> Result<Caller, Fault> {
    let (from, now) = (line.from.ip(), site.relay.now());
    let wanted = || wanted_role(right, parts);
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
fn wanted_role(right: Right, parts: &Parts) -> Role {
    let asked = query::Query::parse(parts.uri.query()).ok();
    let address = asked.as_ref().and_then(|q| q.needed("for").ok());
    match right {
        Right::Monitor => Role::Monitor,
        Right::Admin => Role::Admin,
        Right::Person => Role::Person,
        _ if address.is_some_and(is_human) => Role::Person,
        Right::Open | Right::Named | Right::Stranger | Right::Known => Role::Agent,
    }
}

fn may(site: &Site, caller: &Caller, right: Right, parts: &Parts) -> Result<(), Fault> {
    let (peer, headers) = (&caller.peer, &parts.headers);
    let may = match right {
        Right::Open | Right::Named => return Ok(()),
        // It reads the metrics, and nothing else.
        _ if peer.is_monitor() => right == Right::Monitor,
        Right::Stranger => return Ok(()),
        Right::Monitor if site.credentials.is_at_home(headers) => return Ok(()),
        _ if caller.is_stranger() => return Err(credential::needed(wanted_role(right, parts))),
        Right::Known => true,
        Right::Person => peer.is_person(),
        Right::Admin | Right::Monitor => peer.is_admin(),
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
                match right {
                    _ if peer.is_monitor() =>
                        "an agent or a person: a monitor reads the metrics, and nothing else",
                    Right::Person => "a person, or of the relay operator",
                    Right::Monitor => "a monitor, or of the relay operator",
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
        for (template, methods) in &SURFACE {
            let path = template.replace("{}", "sha256:00%2F");
            let (found, name) = find(&path).unwrap();
            assert!(std::ptr::eq(found, *methods), "{path}");
            assert_eq!(name, template.contains("{}").then_some("sha256:00%2F"));
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

    #[test]
    fn the_document_describes_every_path_and_method() {
        let document: serde_json::Value = serde_json::from_str(operation::OPENAPI).unwrap();
        let paths = document["paths"].as_object().unwrap();
        for (template, methods) in &SURFACE {
            let found = paths.iter().find(|(path, _)| {
                let names = ["{id}", "{digest}", "{name}"];
                names
                    .iter()
                    .fold((*path).clone(), |p, n| p.replace(n, "{}"))
                    == *template
            });
            let (_, described) = found.unwrap_or_else(|| panic!("{template}"));
            for (method, ..) in *methods {
                let is_head = *method == Method::HEAD;
                let word = method.as_str().to_lowercase();
                assert!(
                    is_head || described.get(&word).is_some(),
                    "{method} {template}"
                );
            }
        }
        assert_eq!(paths.len(), SURFACE.len());
    }
}
