//! Rejections on their way into the log. No sender waits for that, and no flood of them fills the disk: past a limit per minute,
//! they are counted, and the count is one entry.

use super::{Received, Relay};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Document, Reading, Timestamp};
use crosstalk_protocol::audit::{EventDetail, EventKind};
use crosstalk_protocol::relay::port::NewLogEntry;
use crosstalk_protocol::store::StoreError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many of one peer are written down in a minute, and how many of all.
const OF_ONE: u32 = 30;
const OF_ALL: usize = 300;
/// The longest id that is written down, in bytes.
const ID: usize = 200;

/// Rejections that are not in the log yet.
#[derive(Default)]
pub(super) struct RejectionLog(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    number: i64,
    peers: HashMap<String, u32>,
    written: usize,
    waiting: Vec<NewLogEntry>,
    /// How many were only counted, and the time of the last.
    others: u64,
    last: Option<Timestamp>,
    /// Counts of minutes that are over.
    counts: Vec<(Timestamp, u64)>,
}

impl Minute {
    fn turn(&mut self, at: Timestamp) {
        let number = at.as_millis().div_euclid(60_000);
        if number == self.number {
            return;
        }
        self.end();
        *self = Self {
            number,
            waiting: std::mem::take(&mut self.waiting),
            counts: std::mem::take(&mut self.counts),
            ..Self::default()
        };
    }

    fn end(&mut self) {
        if let Some(at) = self.last.take() {
            self.counts.push((at, std::mem::take(&mut self.others)));
        }
    }

    /// Whether one more of a peer is written down.
    fn has_room(&mut self, peer: &str, at: Timestamp) -> bool {
        self.turn(at);
        let known = self.peers.get(peer).copied().unwrap_or(0);
        if self.written >= OF_ALL || known >= OF_ONE {
            self.others += 1;
            self.last = Some(at);
            return false;
        }
        self.peers.insert(peer.to_owned(), known + 1);
        self.written += 1;
        true
    }
}

impl RejectionLog {
    fn with<T>(&self, change: impl FnOnce(&mut Minute) -> T) -> T {
        let minute = self.0.lock();
        change(&mut minute.unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the rejection of a readable message. A temporary rejection, which the sender may retry, is not recorded.
    pub(super) fn note(&self, text: &str, peer: &str, at: Timestamp, received: &Received) {
        let Received::Rejected {
            refusal, status, ..
        } = received
        else {
            return;
        };
        let is_passing = refusal.code == ErrorCode::Rate || *status == 503;
        if is_passing || !self.with(|minute| minute.has_room(peer, at)) {
            return;
        }
        let document = Document::parse(text, Reading::Strict);
        let Ok(canonical) = document.digest() else {
            return;
        };
        let id = document.envelope().message.filter(|id| id.len() <= ID);
        let detail = EventDetail::default().with("code", refusal.code.as_str());
        let refused = NewLogEntry {
            kind: EventKind::Refused,
            at,
            id: id.map(str::to_owned),
            canonical: Some(canonical),
            raw: Some(Digest::of(text.as_bytes())),
            detail: Some(detail.with("peer", peer)),
        };
        self.with(|minute| minute.waiting.push(refused));
    }

    /// What waits. The count of the minute that is going on stays, unless it is the end.
    fn take(&self, at: Timestamp, is_end: bool) -> (Vec<NewLogEntry>, Vec<(Timestamp, u64)>) {
        self.with(|minute| {
            minute.turn(at);
            if is_end {
                minute.end();
            }
            let waiting = std::mem::take(&mut minute.waiting);
            (waiting, std::mem::take(&mut minute.counts))
        })
    }
}

impl Relay {
    /// Whether one more rejection of a caller gets a line in the log of the program. The others are counted.
    pub(crate) fn may_log_rejection(&self, caller: &str) -> bool {
        let now = self.now();
        self.shared
            .logged
            .with(|minute| minute.has_room(caller, now))
    }

    /// Writes refusals into the log.
    pub(super) async fn log_rejections(&self) -> Result<(), StoreError> {
        let (_, unlogged) = self.shared.logged.take(self.now(), self.is_stopping());
        for (_, count) in unlogged {
            tracing::warn!(count, "more requests were rejected than are logged");
        }
        let (waiting, counts) = self.shared.rejections.take(self.now(), self.is_stopping());
        if waiting.is_empty() && counts.is_empty() {
            return Ok(());
        }
        let counted = counts.into_iter().map(|(at, count)| NewLogEntry {
            kind: EventKind::Refused,
            at,
            id: None,
            canonical: None,
            raw: None,
            detail: Some(EventDetail::default().with("count", &count.to_string())),
        });
        self.store()
            .log(waiting.into_iter().chain(counted).collect())
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let refusals = RejectionLog::default();
        let at = |millis| Timestamp::from_millis(millis);
        let flood = |peer: &str, millis| refusals.with(|m| m.has_room(peer, at(millis)));
        let written = (0..1000).filter(|_| flood("ann", 5)).count();
        assert_eq!(written, 30);
        // Others have room, up to a number.
        let others = (0..1000).filter(|n| flood(&format!("p{n}"), 6)).count();
        assert_eq!(others, 270);
        assert_eq!(refusals.take(at(7), false).1, []);
        // The next minute: the count is told once.
        assert_eq!(refusals.take(at(60_000), false).1, [(at(6), 970 + 730)]);
        assert_eq!(refusals.take(at(60_001), false).1, []);
        assert!(flood("ann", 60_002));
    }
}
