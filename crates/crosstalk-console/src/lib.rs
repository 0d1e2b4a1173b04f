//! The web console of a relay: pages where people read, answer, approve and check.
//!
//! ```text
//! browser ── relay (names, limits) ── Visit: cookie, credential ── page ── Client ── endpoints of the HTTP API
//! ```
//!
//! The console knows no store. A page gets a [`Client`](crosstalk_api::client::Client) that calls the endpoints of the relay in the
//! name of the person, with the checks that every caller passes: so each thing that a person does here is also a command.
//!
//! How to add a page: see "Adding a page to the console" in `docs/architecture.md`.

mod asset;
mod badge;
mod compose;
mod fields;
mod header;
mod host;
mod link;
mod live;
mod message;
mod nav;
mod page;
mod sign_in;
mod signing;
mod text;
mod visit;

pub use host::{ConsoleCredential, ConsoleHost, Entrance, NoEntrance};
pub use link::{LINK_SECONDS, LinkKey};

use axum::Router;
use axum::routing::{get, post};
use link::UsedLinks;
use page::PageError;
use sign_in::SignIns;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The state that every request of the console needs.
pub(crate) struct ConsoleState {
    pub(crate) host: Arc<dyn ConsoleHost>,
    pub(crate) sign_ins: SignIns,
    pub(crate) links: UsedLinks,
    /// Limits how many large texts are read at once: each takes a processor for a while.
    readers: Arc<Semaphore>,
}

/// How many large texts are read at the same time.
const MAX_READERS: usize = 2;

impl ConsoleState {
    /// Reads a text that may be large, beside the threads that serve everybody. It goes on if nobody waits for it any more, and
    /// keeps its place until it is done.
    pub(crate) async fn read_apart<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PageError> {
        let failed = || PageError::fault(500, "The text can't be read.", "try again.");
        let place = Arc::clone(&self.readers).acquire_owned().await;
        let place = place.map_err(|_| failed())?;
        let reading = tokio::task::spawn_blocking(move || {
            let _place = place;
            read()
        });
        reading.await.map_err(|_| failed())
    }
}

/// The pages, for the router of a relay. Its fallback answers paths that no page has.
pub fn router(host: Arc<dyn ConsoleHost>) -> Router {
    let console = Arc::new(ConsoleState {
        host,
        sign_ins: SignIns::default(),
        links: UsedLinks::default(),
        readers: Arc::new(Semaphore::new(MAX_READERS)),
    });
    let pages = Router::new()
        .route("/", get(page::home::show))
        .route(
            "/sign-in",
            get(page::sign_in::show).post(page::sign_in::sign_in),
        )
        .route("/sign-out", post(page::sign_in::sign_out))
        .route("/inbox", get(page::inbox::show))
        .route("/inbox/address", post(page::inbox::choose))
        .route("/inbox/done", post(page::inbox::done))
        .route("/threads", get(page::thread::list))
        .route("/threads/{id}", get(page::thread::show))
        .route("/threads/{id}/reply", post(page::reply::preview_reply))
        .route("/new", get(page::reply::new).post(page::reply::preview_new))
        .route("/sign", post(page::reply::sign))
        .route("/send", post(page::reply::send))
        .route("/carry", get(page::carry::show).post(page::carry::report))
        .route("/paste", get(page::paste::show).post(page::paste::review))
        .route("/paste/file", post(page::paste::file))
        .route(
            "/inspect",
            get(page::inspect::show).post(page::inspect::inspect),
        )
        .route("/inspect/save", post(page::inspect::save))
        .merge(office())
        .route("/live", get(live::stream))
        .route("/assets/{name}", get(asset::serve));
    pages
        .fallback(page::missing)
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&console),
            visit::guard,
        ))
        .with_state(console)
}

/// The pages about decisions, records and the relay itself.
fn office() -> Router<Arc<ConsoleState>> {
    use page::{approvals, audit, consents, dead, polls, search, status, tokens, trust};
    Router::new()
        .route("/approvals", get(approvals::list))
        .route(
            "/approvals/{id}",
            get(approvals::show).post(approvals::decide),
        )
        .route("/polls", get(polls::list))
        .route("/polls/new", get(polls::new).post(polls::preview))
        .route("/polls/{id}", get(polls::show))
        .route("/polls/{id}/close", post(polls::close))
        .route("/polls/{id}/count", post(polls::correct))
        .route("/consents", get(consents::list))
        .route(
            "/consents/grant",
            get(consents::new).post(consents::preview),
        )
        .route("/consents/{id}", get(consents::show))
        .route("/consents/{id}/revoke", post(consents::revoke))
        .route("/audit", get(audit::list))
        .route("/audit/export", get(audit::export))
        .route("/audit/of/{id}", get(audit::of_message))
        .route("/audit/{index}", get(audit::show))
        .route("/dead", get(dead::show))
        .route("/dead/{id}/requeue", post(dead::requeue))
        .route("/quarantine/retry", post(dead::retry))
        .route("/trust", get(trust::show))
        .route("/trust/pin", post(trust::pin))
        .route("/trust/distrust", post(trust::distrust))
        .route("/search", get(search::show))
        .route("/tokens", get(tokens::show).post(tokens::make))
        .route("/tokens/{name}/revoke", post(tokens::revoke))
        .route("/status", get(status::show))
}

/// Pages that the navigation does not list.
const OTHER_PAGES: [&str; 7] = [
    "sign-in",
    "sign-out",
    "sign",
    "send",
    "quarantine",
    "live",
    "assets",
];

/// Whether a path is one of the console: its first segment is that of a page.
pub fn is_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    let is_first = |name: &str| Some(name) == first;
    let mut listed = nav::NAV
        .iter()
        .map(|item| item.path.trim_start_matches('/'));
    listed.any(is_first) || OTHER_PAGES.into_iter().any(is_first)
}
