//! The parts of a page that change while it is open: numbers of the navigation, and a stream that says when something may be new.

use crate::nav::{CountOf, NavRole};
use crate::page::{PageError, PageResult};
use crate::visit::Visit;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How many are counted: more are shown as this number and a plus.
const MOST: usize = 50;
/// Changes that arrive together are reported together.
const SETTLE: Duration = Duration::from_millis(400);
/// At most one event in this time, however much arrives.
const PAUSE: Duration = Duration::from_secs(2);
/// How often a stream sends a comment, so that proxies keep the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The numbers of messages that wait for the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingCounts {
    unread: usize,
    errands: usize,
    approvals: usize,
    dead: usize,
}

impl WaitingCounts {
    pub(crate) const fn of(&self, of: CountOf) -> usize {
        match of {
            CountOf::Unread => self.unread,
            CountOf::Errands => self.errands,
            CountOf::Approvals => self.approvals,
            CountOf::DeadLetters => self.dead,
        }
    }

    /// The number as the navigation shows it; nothing for zero.
    pub(crate) fn words(&self, of: CountOf) -> String {
        match self.of(of) {
            0 => String::new(),
            count if count >= MOST => format!("{MOST}+"),
            count => count.to_string(),
        }
    }
}

impl Visit {
    /// Counts what waits for the person by the listings of the API. A listing that the credential may not read counts as empty.
    pub(crate) async fn counts(&self) -> WaitingCounts {
        let addresses = self.addresses();
        let unread = async {
            let mut unread = 0;
            for address in &addresses {
                let page = self.client.inbox(address, None, MOST, Duration::ZERO).await;
                let messages = page.map_or_else(|_| Vec::new(), |p| p.messages);
                unread += messages
                    .iter()
                    .filter(|m| is_unread(m.state.as_deref()))
                    .count();
            }
            unread
        };
        let (person, admin) = (
            NavRole::Person.allows(&self.peer),
            NavRole::Admin.allows(&self.peer),
        );
        let errands = async {
            match person {
                true => self.client.courier(MOST).await.map_or(0, |all| all.len()),
                false => 0,
            }
        };
        let approvals = async {
            match person {
                true => self.client.approvals(MOST).await.map_or(0, |all| all.len()),
                false => 0,
            }
        };
        let dead = async {
            match admin {
                true => self.client.dead(MOST).await.map_or(0, |all| all.len()),
                false => 0,
            }
        };
        let (unread, errands, approvals, dead) = tokio::join!(unread, errands, approvals, dead);
        WaitingCounts {
            unread,
            errands,
            approvals,
            dead,
        }
    }
}

/// Whether a message of an inbox was not opened yet.
pub(crate) fn is_unread(state: Option<&str>) -> bool {
    !matches!(state, Some("read" | "acknowledged"))
}

impl Visit {
    /// The last change that a browser knows: the one that the stream told before it broke, else that of the page.
    fn last_known_change(&self) -> Option<u64> {
        let told = self.headers.get("last-event-id");
        let told = told.and_then(|id| id.to_str().ok());
        told.or(self.query.get("since"))?.parse().ok()
    }
}

/// Tells a page when the relay has indexed something. The page then fetches what it shows. Each event has the number of the last
/// change, and a page names the one that it knows: what came before the stream was open is told at once.
pub(crate) async fn stream(visit: Visit) -> PageResult {
    let mut changes = visit.console.host.changes();
    let newest = *changes.borrow_and_update();
    let known = visit.last_known_change().unwrap_or(newest);
    if known != newest {
        changes.mark_changed();
    }
    let place = Arc::clone(&visit.sign_in.streams).try_acquire_owned();
    let place = place.map_err(|_| {
        PageError::fault(
            429,
            "Too many pages of this sign-in are open.",
            "close some of them.",
        )
    })?;
    let begin = format!("retry: 3000\nid: {known}\n: crosstalk\n\n");
    let told = Instant::now();
    let events = futures_util::stream::unfold(
        (visit, changes, Some(begin), place, told),
        |(visit, mut changes, begin, place, mut told)| async move {
            if let Some(begin) = begin {
                return Some((Bytes::from(begin), (visit, changes, None, place, told)));
            }
            let stopped = visit.console.host.stopped();
            let next = tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => {
                        let settled = Instant::now() + SETTLE;
                        tokio::time::sleep_until(settled.max(told)).await;
                        told = Instant::now() + PAUSE;
                        let newest = *changes.borrow_and_update();
                        let event = format!("id: {newest}\nevent: change\ndata: {newest}\n\n");
                        Some(Bytes::from(event))
                    }
                    Err(_) => None,
                },
                () = tokio::time::sleep(HEARTBEAT) => Some(Bytes::from_static(b": still here\n\n")),
                () = stopped => None,
            }?;
            // The sign-in may have ended meanwhile, and its token been revoked.
            let next = visit.is_signed_in().await.then_some(next)?;
            Some((next, (visit, changes, None, place, told)))
        },
    );
    let body = Body::from_stream(events.map(Ok::<Bytes, Infallible>));
    let mut answer = Response::new(body);
    let media = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, media);
    Ok(answer)
}
