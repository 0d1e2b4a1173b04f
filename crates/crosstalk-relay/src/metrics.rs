//! What the relay counts and measures, in the text format of Prometheus.
//!
//! Values of labels come from fixed lists, never from a request.

use crosstalk_api::ENDPOINTS;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{Handler, StoreGauges};
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The ways of mail and text messages into the relay.
const INCOMING_WAYS: [&str; 4] = ["lmtp", "smtp", "imap", "sms"];

/// What became of a mail or a text message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingOutcome {
    /// Its messages are on disk.
    Accepted,
    /// Nothing was done, and nobody was told.
    Dropped,
    /// It has to come again.
    Later,
    /// It was rejected.
    Rejected,
}

impl IncomingOutcome {
    const ALL: [(Self, &str); 4] = [
        (Self::Accepted, "accepted"),
        (Self::Dropped, "dropped"),
        (Self::Later, "later"),
        (Self::Rejected, "rejected"),
    ];
}

/// What became of an attempt to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// It worked.
    Delivered,
    /// It is made again.
    Retried,
    /// The delivery became a dead letter.
    Failed,
}

impl DeliveryOutcome {
    const ALL: [(Self, &str); 3] = [
        (Self::Delivered, "delivered"),
        (Self::Retried, "retried"),
        (Self::Failed, "failed"),
    ];
}

/// Declares the metrics: for each counter its field, its name and its help.
macro_rules! metrics {
    ($($field:ident $name:literal $help:literal;)+) => {
        /// Counters and gauges.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $help] pub $field: AtomicU64,)+
            /// Messages rejected, by error code.
            pub rejected: [AtomicU64; ErrorCode::ALL.len()],
            /// Messages accepted and not indexed yet.
            pub backlog: AtomicU64,
            /// Messages that could not be indexed.
            pub quarantined: AtomicU64,
            /// Mails and text messages that came in, by way and outcome.
            incoming: [[AtomicU64; IncomingOutcome::ALL.len()]; INCOMING_WAYS.len()],
            /// Attempts to deliver, by handler and outcome.
            attempts: [[AtomicU64; DeliveryOutcome::ALL.len()]; Handler::ALL.len()],
            /// Whether the mailbox is being read: 0 where none is configured, 1 if not, 2 if it is.
            mailbox: AtomicU64,
            /// Requests, by the first digit of their status.
            pub requests: [AtomicU64; 5],
            /// Open connections.
            pub connections: AtomicI64,
        }

        impl Metrics {
            fn write_counters(&self, out: &mut Exposition) {
                $(
                    out.family($name, "counter", $help);
                    out.sample($name, &[], self.$field.load(Ordering::Relaxed));
                )+
            }
        }
    };
}

metrics! {
    accepted "messages_accepted_total" "Messages accepted: on disk";
    known "messages_known_total" "Messages that were accepted before";
    indexed "messages_indexed_total" "Messages indexed into threads and inboxes";
    batches "batches_total" "Transactions that accepted messages";
    delivered "deliveries_delivered_total" "Delivery attempts that worked";
    retried "deliveries_retried_total" "Delivery attempts that failed and are made again";
    failed "deliveries_failed_total" "Deliveries that became dead letters";
    timed_out "requests_timed_out_total" "Questions without an answer in time";
    turned_away "connections_turned_away_total" "Connections rejected because there were too many";
}

impl Metrics {
    /// Counts one.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that was rejected.
    pub fn reject(&self, code: ErrorCode) {
        let place = ErrorCode::ALL.iter().position(|c| *c == code);
        if let Some(counter) = place.and_then(|p| self.rejected.get(p)) {
            Self::count(counter);
        }
    }

    /// Counts a mail or a text message that came in.
    pub fn count_incoming(&self, way: &str, outcome: IncomingOutcome) {
        let place = INCOMING_WAYS.iter().position(|known| *known == way);
        let of = IncomingOutcome::ALL
            .iter()
            .position(|(known, _)| *known == outcome);
        let counters = place.and_then(|place| self.incoming.get(place));
        if let Some(counter) = counters.zip(of).and_then(|(all, of)| all.get(of)) {
            Self::count(counter);
        }
    }

    /// Counts an attempt to deliver.
    pub(crate) fn count_attempt(&self, by: Handler, outcome: DeliveryOutcome) {
        let place = Handler::ALL.iter().position(|known| *known == by);
        let of = DeliveryOutcome::ALL
            .iter()
            .position(|(known, _)| *known == outcome);
        let counters = place.and_then(|place| self.attempts.get(place));
        if let Some(counter) = counters.zip(of).and_then(|(all, of)| all.get(of)) {
            Self::count(counter);
        }
    }

    /// Notes whether the mailbox of the relay is being read.
    pub fn set_mailbox(&self, is_read: bool) {
        self.mailbox
            .store(1 + u64::from(is_read), Ordering::Relaxed);
    }

    fn write_mail(&self, out: &mut Exposition) {
        let name = "incoming_total";
        out.family(
            name,
            "counter",
            "Mails and text messages that came in, by way and outcome",
        );
        for (way, counters) in INCOMING_WAYS.iter().zip(&self.incoming) {
            for ((_, outcome), counter) in IncomingOutcome::ALL.iter().zip(counters) {
                let labels = [("way", *way), ("outcome", *outcome)];
                out.sample(name, &labels, counter.load(Ordering::Relaxed));
            }
        }
        let name = "delivery_attempts_total";
        out.family(name, "counter", "Attempts to deliver, by queue and outcome");
        for (by, counters) in Handler::ALL.iter().zip(&self.attempts) {
            for ((_, outcome), counter) in DeliveryOutcome::ALL.iter().zip(counters) {
                if by.is_active() {
                    let labels = [("queue", by.as_str()), ("outcome", *outcome)];
                    out.sample(name, &labels, counter.load(Ordering::Relaxed));
                }
            }
        }
        if let Some(is_read) = self.mailbox.load(Ordering::Relaxed).checked_sub(1) {
            let help = "1 if the mailbox of [email.imap] is being read, else 0";
            out.gauge("mailbox_connected", help, is_read);
        }
    }

    /// Counts an answer.
    pub fn answer(&self, status: u16) {
        let place = usize::from(status / 100).saturating_sub(1);
        if let Some(counter) = self.requests.get(place) {
            Self::count(counter);
        }
    }

    /// Writes everything that was counted.
    pub(crate) fn write(&self, out: &mut Exposition) {
        self.write_counters(out);
        let gauge = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed);
        let help = "Messages accepted and not indexed yet";
        out.gauge("index_backlog", help, gauge(&self.backlog));
        let help = "Messages that could not be indexed";
        out.gauge("quarantined_messages", help, gauge(&self.quarantined));
        let connections = self.connections.load(Ordering::Relaxed);
        out.gauge("connections", "Open connections", connections);
        self.write_mail(out);
        let name = "messages_rejected_total";
        out.family(name, "counter", "Messages rejected, by error code");
        for (code, counter) in ErrorCode::ALL.iter().zip(&self.rejected) {
            let count = counter.load(Ordering::Relaxed);
            out.sample(name, &[("code", code.as_str())], count);
        }
        let name = "http_requests_total";
        out.family(name, "counter", "Requests, by class of status");
        for (class, counter) in (1..).zip(&self.requests) {
            let class = format!("{class}xx");
            out.sample(
                name,
                &[("class", class.as_str())],
                counter.load(Ordering::Relaxed),
            );
        }
    }
}

/// How long responses took: a histogram for each endpoint, and one for requests that fit none.
#[derive(Debug)]
pub(crate) struct RequestSeconds([Histogram; ENDPOINTS.len() + 1]);

/// Upper bounds of the buckets, in seconds, as they are written, and in microseconds.
const BUCKETS: [(&str, u64); 11] = [
    ("0.001", 1_000),
    ("0.0025", 2_500),
    ("0.005", 5_000),
    ("0.01", 10_000),
    ("0.025", 25_000),
    ("0.05", 50_000),
    ("0.1", 100_000),
    ("0.5", 500_000),
    ("1", 1_000_000),
    ("5", 5_000_000),
    ("60", 60_000_000),
];

#[derive(Debug, Default)]
struct Histogram {
    /// Those above the last bound are in none.
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Default for RequestSeconds {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Histogram::default()))
    }
}

impl RequestSeconds {
    /// Notes how long a response took: that of the endpoint at a place in [`ENDPOINTS`], or behind its end that of none.
    pub(crate) fn observe(&self, endpoint: usize, took: Duration) {
        let Some(histogram) = self.0.get(endpoint) else {
            return;
        };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().position(|(_, bound)| micros <= *bound);
        if let Some(bucket) = bucket.and_then(|place| histogram.buckets.get(place)) {
            Metrics::count(bucket);
        }
        Metrics::count(&histogram.count);
        histogram.microseconds.fetch_add(micros, Ordering::Relaxed);
    }

    /// Writes the endpoints that were used.
    pub(crate) fn write(&self, out: &mut Exposition) {
        let name = "request_seconds";
        out.family(
            name,
            "histogram",
            "Seconds until a request was answered, by endpoint; long polls include their wait",
        );
        let known = ENDPOINTS.iter().map(|e| (e.path, e.method.as_str()));
        for ((path, method), histogram) in known.chain([("other", "other")]).zip(&self.0) {
            let all = histogram.count.load(Ordering::Relaxed);
            if all == 0 {
                continue;
            }
            let labels = [("endpoint", path), ("method", method)];
            let mut sum = 0;
            for ((bound, _), bucket) in BUCKETS.iter().zip(&histogram.buckets) {
                sum += bucket.load(Ordering::Relaxed);
                let [path, method] = labels;
                out.sample(
                    "request_seconds_bucket",
                    &[path, method, ("le", *bound)],
                    sum,
                );
            }
            // A request that ends meanwhile is in its bucket and not in this number, or the other way round.
            let all = all.max(sum);
            let [path, method] = labels;
            out.sample(
                "request_seconds_bucket",
                &[path, method, ("le", "+Inf")],
                all,
            );
            let micros = histogram.microseconds.load(Ordering::Relaxed);
            let seconds = Duration::from_micros(micros).as_secs_f64();
            out.sample("request_seconds_sum", &labels, seconds);
            out.sample("request_seconds_count", &labels, all);
        }
    }
}

/// Values that are measured on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// What waits in the store; nothing if it can't be read.
    pub(crate) store: Option<StoreGauges>,
    /// Free bytes on the disk of the data folder; nothing where the system does not tell.
    pub(crate) disk_free: Option<u64>,
    /// When the certificate expires; nothing without TLS.
    pub(crate) certificate_expires: Option<Timestamp>,
}

impl Measured {
    pub(crate) fn write(&self, now: Timestamp, out: &mut Exposition) {
        if let Some(store) = &self.store {
            write_store(store, now, out);
        }
        if let Some(free) = self.disk_free {
            out.gauge(
                "disk_free_bytes",
                "Free bytes on the disk of the data folder",
                free,
            );
        }
        if let Some(at) = self.certificate_expires {
            let help = "When the certificate of the relay expires, in seconds since 1970";
            let seconds = at.as_millis().div_euclid(1000);
            out.gauge("certificate_expiry_timestamp_seconds", help, seconds);
        }
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        out.family("build_info", "gauge", "The version of the relay");
        out.sample("build_info", &version, 1);
    }
}

fn write_store(store: &StoreGauges, now: Timestamp, out: &mut Exposition) {
    let name = "deliveries_queued";
    out.family(
        name,
        "gauge",
        "Deliveries that wait for a handler or a courier, by queue",
    );
    for (handler, queue) in &store.deliveries {
        out.sample(name, &[("queue", handler.as_str())], queue.count);
    }
    let name = "oldest_waiting_seconds";
    out.family(
        name,
        "gauge",
        "How long the oldest delivery or held message has waited, by queue",
    );
    let age = |since: Option<Timestamp>| {
        let millis = since.map_or(0, |at| {
            now.as_millis().saturating_sub(at.as_millis()).max(0)
        });
        format!("{}.{:03}", millis / 1000, millis % 1000)
    };
    for (handler, queue) in &store.deliveries {
        out.sample(name, &[("queue", handler.as_str())], age(queue.oldest));
    }
    out.sample(name, &[("queue", "held")], age(store.held.oldest));
    for (name, help, value) in [
        (
            "dead_letters",
            "Dead letters that were not queued again",
            store.dead_letters,
        ),
        (
            "held_messages",
            "Messages that wait for a person's decision",
            store.held.count,
        ),
        (
            "store_bytes",
            "Bytes of the store and its log, attachments not included",
            store.bytes,
        ),
    ] {
        out.gauge(name, help, value);
    }
}

/// Names that older versions had, and the names of today. A monitor that uses an old name sees the same numbers.
pub(crate) const DEPRECATED: [(&str, &str); 4] = [
    ("messages_taken_total", "messages_accepted_total"),
    ("messages_refused_total", "messages_rejected_total"),
    ("messages_filed_total", "messages_indexed_total"),
    ("backlog", "index_backlog"),
];

/// A text in the format of Prometheus. Every name gets the prefix `crosstalk_`.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<Family>,
}

/// The samples of one metric.
#[derive(Debug)]
struct Family {
    name: String,
    kind: String,
    help: String,
    /// What follows the name in each line.
    samples: Vec<String>,
}

impl Family {
    fn write(&self, name: &str, help: &str, out: &mut String) {
        let kind = &self.kind;
        let _ = write!(
            out,
            "# HELP crosstalk_{name} {help}\n# TYPE crosstalk_{name} {kind}\n"
        );
        for sample in &self.samples {
            let _ = writeln!(out, "crosstalk_{name}{sample}");
        }
    }
}

impl Exposition {
    /// Everything, and under deprecated names again.
    pub(crate) fn into_text(self) -> String {
        let mut out = String::new();
        for family in &self.families {
            family.write(&family.name, &family.help, &mut out);
            for (old, new) in DEPRECATED.iter().filter(|(_, new)| *new == family.name) {
                family.write(old, &format!("Deprecated: use crosstalk_{new}"), &mut out);
            }
        }
        out
    }

    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.families.push(Family {
            name: name.to_owned(),
            kind: kind.to_owned(),
            help: help.to_owned(),
            samples: Vec::new(),
        });
    }

    /// Adds a sample to the family that began last, whose name is the beginning of this one.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let Some(family) = self.families.last_mut() else {
            return;
        };
        let mut sample = name.strip_prefix(&family.name).unwrap_or(name).to_owned();
        for (place, (label, word)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(sample, "{before}{label}=\"{word}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = write!(sample, "{after} {value}");
        family.samples.push(sample);
    }

    /// A gauge without labels.
    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecated_names_have_the_samples_of_the_new_ones() {
        let metrics = Metrics::default();
        metrics.reject(ErrorCode::Format);
        let mut out = Exposition::default();
        metrics.write(&mut out);
        let text = out.into_text();
        let samples = |name: &str| {
            let name = format!("crosstalk_{name}");
            let lines = text.lines().filter(|l| !l.starts_with('#'));
            let rest = lines.filter_map(|l| l.strip_prefix(&name));
            rest.filter(|r| r.starts_with(['{', ' ']))
                .collect::<Vec<_>>()
        };
        for (old, new) in DEPRECATED {
            assert!(!samples(new).is_empty(), "{new}");
            assert_eq!(samples(old), samples(new), "{old}");
            assert!(text.contains(&format!(
                "# HELP crosstalk_{old} Deprecated: use crosstalk_{new}\n"
            )));
        }
    }

    #[test]
    fn buckets_of_a_histogram_add_up() {
        let seconds = RequestSeconds::default();
        for micros in [0, 1_000, 1_001, 70_000_000] {
            seconds.observe(0, Duration::from_micros(micros));
        }
        // One that is not in the list is counted nowhere.
        seconds.observe(ENDPOINTS.len() + 1, Duration::ZERO);
        let mut out = Exposition::default();
        seconds.write(&mut out);
        let text = out.into_text();
        for line in [
            "crosstalk_request_seconds_bucket{endpoint=\"/crosstalk/receive\",method=\"POST\",le=\"0.001\"} 2",
            "crosstalk_request_seconds_bucket{endpoint=\"/crosstalk/receive\",method=\"POST\",le=\"0.0025\"} 3",
            "crosstalk_request_seconds_bucket{endpoint=\"/crosstalk/receive\",method=\"POST\",le=\"60\"} 3",
            "crosstalk_request_seconds_bucket{endpoint=\"/crosstalk/receive\",method=\"POST\",le=\"+Inf\"} 4",
            "crosstalk_request_seconds_sum{endpoint=\"/crosstalk/receive\",method=\"POST\"} 70.002001",
            "crosstalk_request_seconds_count{endpoint=\"/crosstalk/receive\",method=\"POST\"} 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("/crosstalk/inbox"), "{text}");
    }
}
