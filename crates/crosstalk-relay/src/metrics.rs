//! What the relay counts.

use crosstalk_envelope::registry::ErrorCode;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counters and gauges.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Messages that were taken.
    pub taken: AtomicU64,
    /// Messages that were there already.
    pub known: AtomicU64,
    /// Messages that were refused, by code.
    pub refused: [AtomicU64; ErrorCode::ALL.len()],
    /// Batches that were written.
    pub batches: AtomicU64,
    /// Messages that were filed.
    pub filed: AtomicU64,
    /// Messages that are taken and not filed yet.
    pub backlog: AtomicU64,
    /// Messages that could not be indexed.
    pub quarantined: AtomicU64,
    /// Requests, by the first digit of their status.
    pub requests: [AtomicU64; 5],
    /// Connections that are open.
    pub connections: AtomicI64,
    /// Connections that were refused because there were too many.
    pub turned_away: AtomicU64,
    /// Attempts of handlers that worked.
    pub delivered: AtomicU64,
    /// Attempts of handlers that are tried again.
    pub retried: AtomicU64,
    /// Deliveries that were given up.
    pub failed: AtomicU64,
    /// Questions whose time passed.
    pub timed_out: AtomicU64,
}

impl Metrics {
    /// Counts one.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that was refused.
    pub fn refuse(&self, code: ErrorCode) {
        let place = ErrorCode::ALL.iter().position(|c| *c == code);
        if let Some(counter) = place.and_then(|p| self.refused.get(p)) {
            Self::count(counter);
        }
    }

    /// Counts an answer.
    pub fn answer(&self, status: u16) {
        let place = usize::from(status / 100).saturating_sub(1);
        if let Some(counter) = self.requests.get(place) {
            Self::count(counter);
        }
    }

    /// Everything, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let counters = [
            (
                "crosstalk_messages_taken_total",
                "Messages that were taken",
                &self.taken,
            ),
            (
                "crosstalk_messages_known_total",
                "Messages that were there already",
                &self.known,
            ),
            (
                "crosstalk_batches_total",
                "Batches that were written",
                &self.batches,
            ),
            (
                "crosstalk_messages_filed_total",
                "Messages that were filed",
                &self.filed,
            ),
            (
                "crosstalk_deliveries_delivered_total",
                "Attempts that worked",
                &self.delivered,
            ),
            (
                "crosstalk_deliveries_retried_total",
                "Attempts that are made again",
                &self.retried,
            ),
            (
                "crosstalk_deliveries_failed_total",
                "Deliveries that were given up",
                &self.failed,
            ),
            (
                "crosstalk_requests_timed_out_total",
                "Questions without an answer in time",
                &self.timed_out,
            ),
            (
                "crosstalk_connections_turned_away_total",
                "Connections refused for their number",
                &self.turned_away,
            ),
        ];
        for (name, help, counter) in counters {
            let value = counter.load(Ordering::Relaxed);
            let _ = write!(
                out,
                "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n"
            );
        }
        let gauges = [
            (
                "crosstalk_backlog",
                "Messages taken and not filed yet",
                i64::try_from(self.backlog.load(Ordering::Relaxed)).unwrap_or(i64::MAX),
            ),
            (
                "crosstalk_quarantined_messages",
                "Messages that could not be indexed",
                i64::try_from(self.quarantined.load(Ordering::Relaxed)).unwrap_or(i64::MAX),
            ),
            (
                "crosstalk_connections",
                "Open connections",
                self.connections.load(Ordering::Relaxed),
            ),
        ];
        for (name, help, value) in gauges {
            let _ = write!(
                out,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"
            );
        }
        out.push_str("# HELP crosstalk_messages_refused_total Messages that were refused\n# TYPE crosstalk_messages_refused_total counter\n");
        for (code, counter) in ErrorCode::ALL.iter().zip(&self.refused) {
            let value = counter.load(Ordering::Relaxed);
            let _ = writeln!(
                out,
                "crosstalk_messages_refused_total{{code=\"{}\"}} {value}",
                code.as_str()
            );
        }
        out.push_str("# HELP crosstalk_http_requests_total Requests by class of status\n# TYPE crosstalk_http_requests_total counter\n");
        for (class, counter) in (1..).zip(&self.requests) {
            let value = counter.load(Ordering::Relaxed);
            let _ = writeln!(
                out,
                "crosstalk_http_requests_total{{class=\"{class}xx\"}} {value}"
            );
        }
        out
    }
}
