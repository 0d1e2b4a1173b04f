//! The parts that all pages share: the frame around them, and pages about errors.
//!
//! A page is a function with a [`Visit`] (or a [`Posted`](crate::visit::Posted) form) that calls `visit.client` and returns
//! [`PageResult`]. Its template extends `layout.html` and has a field `shell`.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod carry;
pub(crate) mod consents;
pub(crate) mod dead;
pub(crate) mod home;
pub(crate) mod inbox;
pub(crate) mod inspect;
pub(crate) mod paste;
pub(crate) mod polls;
pub(crate) mod reply;
pub(crate) mod search;
pub(crate) mod sign_in;
pub(crate) mod status;
pub(crate) mod thread;
pub(crate) mod tokens;
pub(crate) mod trust;

use crate::asset::{HTMX, ICON, SCRIPT, STYLE};
use crate::host::NoEntrance;
use crate::nav::{CountOf, NAV, NavGroup};
use crate::text::Shown;
use crate::visit::{Visit, sign_in_path};
use askama::Template;
use axum::response::{IntoResponse, Response};
use crosstalk_api::client::ClientError;
use crosstalk_envelope::Explanation;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};

/// The answer of a page.
pub(crate) type PageResult = Result<Response, PageError>;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The browser is not signed in, and is led to the sign-in.
    SignIn {
        to: String,
        /// Whether a script asked, which can't follow to another page.
        is_script: bool,
    },
    /// Something that people are told.
    Fault(Box<NoEntrance>),
}

impl PageError {
    pub(crate) fn sign_in(parts: &Parts, target: &str, why: Option<&str>) -> Self {
        let is_get = parts.method == http::Method::GET;
        let is_script = parts.headers.contains_key("hx-request") || target.starts_with("/live");
        Self::SignIn {
            to: sign_in_path(if is_get && !is_script { target } else { "/" }, why),
            is_script,
        }
    }

    /// A request that can't be read.
    pub(crate) fn format(what: &str) -> Self {
        Self::fault(
            400,
            what,
            "go back, load the page again, and try once more.",
        )
    }

    pub(crate) fn fault(status: u16, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Fault(Box::new(NoEntrance {
            status,
            why: Explanation::new(what, help),
        }))
    }

    /// The fact and the way out, where a page shows them beside a form.
    pub(crate) fn explanation(&self) -> Explanation {
        match self {
            Self::SignIn { .. } => Explanation::new("You are signed out.", "sign in again."),
            Self::Fault(fault) => fault.why.clone(),
        }
    }
}

/// An endpoint of the relay rejected a call: its words are for people already.
impl From<ClientError> for PageError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Rejected(refused) => {
                let (what, help) = match refused.detail.split_once(Explanation::HELP_LABEL) {
                    Some((what, help)) => (what.trim(), help.trim()),
                    None => (refused.detail.trim(), ""),
                };
                let what = match what {
                    "" => refused.reason.as_str(),
                    what => what,
                };
                Self::fault(refused.status, what, help)
            }
            other => Self::fault(502, other.to_string(), "try again."),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn { to, is_script } => {
                let mut answer = match is_script {
                    true => StatusCode::UNAUTHORIZED.into_response(),
                    false => return crate::visit::redirect(&to),
                };
                if let Ok(to) = HeaderValue::from_str(&to) {
                    let name = HeaderName::from_static("hx-redirect");
                    answer.headers_mut().insert(name, to);
                }
                answer
            }
            Self::Fault(fault) => error_page(&fault.why, fault.status),
        }
    }
}

/// Where pages load their files.
pub(crate) struct PageAssets {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) htmx: &'static str,
    pub(crate) icon: &'static str,
}

pub(crate) static ASSETS: PageAssets = PageAssets {
    style: STYLE.path,
    script: SCRIPT.path,
    htmx: HTMX.path,
    icon: ICON.path,
};

/// The frame around the page of somebody who is signed in.
pub(crate) struct Shell {
    pub(crate) title: &'static str,
    pub(crate) assets: &'static PageAssets,
    pub(crate) relay: Shown,
    /// The person who is signed in: the name of the credential, and its role.
    pub(crate) name: Shown,
    pub(crate) role: &'static str,
    pub(crate) csrf: String,
    /// In how many browsers this credential is signed in.
    pub(crate) browsers: usize,
    pub(crate) groups: Vec<ShellGroup>,
    /// How many messages were not read.
    pub(crate) unread: usize,
    /// The page is told about every change after this one.
    pub(crate) position: u64,
    /// A short sentence about what was just done.
    pub(crate) notice: Option<&'static str>,
}

/// A group of links in the navigation.
pub(crate) struct ShellGroup {
    pub(crate) label: &'static str,
    pub(crate) links: Vec<ShellLink>,
}

/// A link in the navigation.
pub(crate) struct ShellLink {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    pub(crate) key: char,
    pub(crate) count: String,
    pub(crate) is_here: bool,
}

/// Sentences about the last action, by the word in the URL after it: no words of others are in a URL of ours.
const NOTICES: &[(&str, &str)] = &[
    ("sent", "Sent: the relay has it on disk."),
    (
        "held",
        "The relay has it. A person decides before it goes on.",
    ),
    ("done", "Marked as done."),
    ("filed", "Filed."),
    ("carried", "Marked as carried."),
    ("failed", "Its sender is told that it could not be carried."),
    ("signed-out", "You are signed out."),
    ("approved", "Approved: it goes on to its recipients."),
    ("rejected", "Rejected: its sender gets the reason."),
    ("opened", "The poll is open."),
    ("counted", "The answer is counted as you said."),
    ("closed", "The poll is closed."),
    ("granted", "The consent is on record."),
    (
        "revoked",
        "The consent is revoked, and the texts under it are erased.",
    ),
    ("requeued", "It is tried again now."),
    ("released", "Indexed: nothing is in quarantine any more."),
    (
        "still-quarantined",
        "Some messages still can't be indexed: their reasons are below.",
    ),
    ("pinned", "The key is pinned."),
    ("distrusted", "The key is distrusted: it counts no more."),
    ("token-revoked", "The token is revoked."),
];

impl Visit {
    /// The frame around a page.
    pub(crate) async fn shell(&self, title: &'static str) -> Shell {
        let counts = self.counts().await;
        let path = self.target.split('?').next().unwrap_or("/");
        let links = |group: NavGroup| {
            let items = NAV
                .iter()
                .filter(|i| i.group == group && i.needs.allows(&self.peer));
            items
                .map(|item| ShellLink {
                    path: item.path,
                    label: item.label,
                    key: item.key,
                    count: item.count.map_or(String::new(), |of| counts.words(of)),
                    is_here: path == item.path || path.starts_with(&format!("{}/", item.path)),
                })
                .collect::<Vec<_>>()
        };
        let groups = NavGroup::ALL.into_iter().map(|group| ShellGroup {
            label: group.label(),
            links: links(group),
        });
        let did = self.query.get("did");
        let notice = NOTICES.iter().find(|(word, _)| Some(*word) == did);
        Shell {
            title,
            assets: &ASSETS,
            relay: Shown::new(&self.console.host.relay_name()),
            name: Shown::new(&self.peer.name),
            role: match self.peer.is_local {
                true => "this machine",
                false => self.peer.role.as_str(),
            },
            csrf: self.sign_in.csrf.clone(),
            browsers: self.console.sign_ins.count(self.credential(), self.now),
            groups: groups.filter(|g| !g.links.is_empty()).collect(),
            unread: counts.of(CountOf::Unread),
            position: self.position,
            notice: notice.map(|(_, sentence)| *sentence),
        }
    }
}

/// Writes a page.
pub(crate) fn render(page: &impl Template) -> PageResult {
    Ok(render_with(page, 200))
}

/// Writes a page with a status.
pub(crate) fn render_with(page: &impl Template, status: u16) -> Response {
    match page.render() {
        Ok(text) => {
            let mut answer = Response::new(text.into());
            *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            answer.headers_mut().insert(CONTENT_TYPE, html);
            answer
        }
        Err(error) => {
            tracing::error!(reason = %error, "a page of the console could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    assets: &'static PageAssets,
    title: &'static str,
    what: Shown,
    help: Shown,
}

/// A page that says what happened and what to do.
pub(crate) fn error_page(why: &Explanation, status: u16) -> Response {
    let title = match status {
        401 => "Signed out",
        403 => "Not allowed",
        404 => "Not here",
        413 => "Too large",
        429 => "Too many requests",
        500.. => "The relay can't do this now",
        _ => "That did not work",
    };
    let mut help = why.help.clone();
    if let Some(first) = help.get(..1) {
        help = first.to_uppercase() + help.get(1..).unwrap_or("");
    }
    let page = ErrorPage {
        assets: &ASSETS,
        title,
        what: Shown::new(&why.what),
        help: Shown::new(&help),
    };
    render_with(&page, status)
}

/// Answers a path that no page has.
pub(crate) async fn missing() -> Response {
    let why = Explanation::new("There is no such page.", "go back to the inbox.");
    error_page(&why, 404)
}
