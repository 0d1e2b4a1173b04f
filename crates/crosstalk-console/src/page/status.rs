//! The state of the relay: queues, routes, agents and numbers, with small charts.

use super::polls::percent;
use super::{PageError, PageResult, Shell, render};
use crate::text::{PartyName, Shown};
use crate::visit::Visit;
use askama::Template;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{ChainId, EventKind, LogEntry, LogQuery};

/// How many of the latest entries of the log the chart is made of.
const CHARTED: usize = 500;
/// How many hours the chart has.
const HOURS: usize = 24;
const HOUR: i64 = 3_600_000;
/// The height of the chart.
const HIGH: u64 = 40;

/// The metrics of the relay, as Prometheus reads them.
struct MetricSamples<'m>(&'m str);

impl<'m> MetricSamples<'m> {
    /// The samples of a metric: the value of its first label, and the number.
    fn of(&self, name: &str) -> Vec<(&'m str, f64)> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| {
            let rest = line.strip_prefix("crosstalk_")?.strip_prefix(name)?;
            let (label, value) = match rest.strip_prefix('{') {
                Some(rest) => {
                    let (labels, value) = rest.rsplit_once('}')?;
                    let label = labels.split('"').nth(1).unwrap_or("");
                    (label, value)
                }
                None => ("", rest.strip_prefix(' ')?),
            };
            Some((label, value.trim().parse().ok()?))
        });
        samples.collect()
    }

    fn one(&self, name: &str) -> Option<f64> {
        self.of(name).first().map(|(_, value)| *value)
    }

    /// A whole number.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the relay writes counts; a cast saturates"
    )]
    fn count(&self, name: &str) -> u64 {
        self.one(name).map_or(0, |value| value.round() as u64)
    }
}

/// A queue, and how much waits in it.
struct QueueBar {
    name: Shown,
    count: u64,
    percent: u64,
    oldest: String,
    href: Option<&'static str>,
}

/// How long something takes, in one unit.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => String::new(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// How many bytes, in one unit.
fn size(bytes: f64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let (mut amount, mut unit) = (bytes, 0);
    while amount >= 1000.0 && unit + 1 < units.len() {
        amount /= 1000.0;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or("");
    match unit {
        0 => format!("{amount:.0} {name}"),
        _ => format!("{amount:.1} {name}"),
    }
}

/// A number with its name.
struct Figure {
    label: &'static str,
    value: String,
    tone: &'static str,
    href: Option<&'static str>,
}

/// An hour of the chart.
struct HourBar {
    x: usize,
    y: u64,
    height: u64,
    failed_y: u64,
    failed: u64,
}

/// The numbers of the last hours.
struct Activity {
    hours: Vec<HourBar>,
    most: u64,
    accepted: u64,
    failed: u64,
    /// Whether there was more than is counted.
    is_cut: bool,
}

impl Activity {
    fn of(entries: &[LogEntry], now: Timestamp) -> Self {
        let mut counted = [(0_u64, 0_u64); HOURS];
        let mut is_cut = entries.len() == CHARTED;
        for entry in entries {
            let age = now
                .as_millis()
                .saturating_sub(entry.leaf.at.as_millis())
                .max(0)
                / HOUR;
            let place = usize::try_from(age)
                .ok()
                .and_then(|age| (HOURS - 1).checked_sub(age));
            let Some(hour) = place.and_then(|place| counted.get_mut(place)) else {
                // It reaches back further than the chart.
                is_cut = false;
                continue;
            };
            match entry.leaf.kind {
                EventKind::Accepted => hour.0 += 1,
                EventKind::Failed | EventKind::Refused => hour.1 += 1,
                _ => {}
            }
        }
        let most = counted.iter().map(|(a, f)| a + f).max().unwrap_or(0);
        let scaled = |n: u64| {
            if most == 0 {
                0
            } else {
                (n * HIGH).div_ceil(most).min(HIGH)
            }
        };
        let hours = counted
            .iter()
            .enumerate()
            .map(|(place, (accepted, failed))| {
                let (high, low) = (scaled(accepted + failed), scaled(*failed));
                HourBar {
                    x: place * 10,
                    y: HIGH - high,
                    height: high - low,
                    failed_y: HIGH - low,
                    failed: low,
                }
            });
        Self {
            hours: hours.collect(),
            most,
            accepted: counted.iter().map(|(a, _)| a).sum(),
            failed: counted.iter().map(|(_, f)| f).sum(),
            is_cut,
        }
    }
}

/// A route of the configuration.
struct RouteLine {
    to: Shown,
    by: Shown,
}

/// An agent, and what it can do.
struct AgentLine {
    address: PartyName,
    capabilities: Vec<Shown>,
}

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    shell: Shell,
    version: Shown,
    figures: Vec<Figure>,
    queues: Vec<QueueBar>,
    activity: Activity,
    routes: Vec<RouteLine>,
    agents: Vec<AgentLine>,
}

/// The entries that the chart counts, of all chains.
async fn recent_entries(visit: &Visit) -> Result<Vec<LogEntry>, PageError> {
    let mut entries = Vec::new();
    for chain in visit.client.chains().await? {
        let asked = LogQuery {
            chain: ChainId(chain.chain),
            kinds: vec![EventKind::Accepted, EventKind::Failed, EventKind::Refused],
            newest: true,
            limit: CHARTED,
            ..LogQuery::default()
        };
        entries.extend(visit.client.entries(&asked).await?.1);
    }
    Ok(entries)
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let client = &visit.client;
    let (metrics, agents, routes, entries) = tokio::join!(
        client.metrics(),
        client.agents(),
        client.routes(),
        recent_entries(&visit)
    );
    let (metrics, agents, routes, entries) = (metrics?, agents?, routes?, entries?);
    let numbers = MetricSamples(&metrics);
    let version = metrics
        .lines()
        .find(|l| l.starts_with("crosstalk_build_info{"));
    let version = version.and_then(|l| l.split('"').nth(1)).unwrap_or("");
    render(&StatusPage {
        version: Shown::new(version),
        figures: figures(&numbers),
        queues: queues(&numbers),
        activity: Activity::of(&entries, visit.now),
        routes: routes
            .iter()
            .map(|r| RouteLine {
                to: Shown::new(&r.to),
                by: Shown::new(&r.by),
            })
            .collect(),
        agents: agents
            .iter()
            .map(|a| AgentLine {
                address: PartyName::of(&a.address),
                capabilities: a.capabilities.iter().map(|c| Shown::short(c, 60)).collect(),
            })
            .collect(),
        shell: visit.shell("Status").await,
    })
}

fn figures(numbers: &MetricSamples<'_>) -> Vec<Figure> {
    let warn = |count: u64| if count > 0 { "warn" } else { "" };
    let figure = |label, value: String, tone, href| Figure {
        label,
        value,
        tone,
        href,
    };
    let (dead, held) = (
        numbers.count("dead_letters"),
        numbers.count("held_messages"),
    );
    let (quarantined, backlog) = (
        numbers.count("quarantined_messages"),
        numbers.count("index_backlog"),
    );
    let mut all = vec![
        figure(
            "accepted since the start",
            numbers.count("messages_accepted_total").to_string(),
            "",
            None,
        ),
        figure(
            "delivered since the start",
            numbers.count("deliveries_delivered_total").to_string(),
            "",
            None,
        ),
        figure("held", held.to_string(), warn(held), Some("/approvals")),
        figure("dead letters", dead.to_string(), warn(dead), Some("/dead")),
        figure(
            "in quarantine",
            quarantined.to_string(),
            warn(quarantined),
            Some("/dead"),
        ),
        figure("not indexed yet", backlog.to_string(), "", None),
    ];
    if let Some(bytes) = numbers.one("store_bytes") {
        all.push(figure("store", size(bytes), "", None));
    }
    if let Some(free) = numbers.one("disk_free_bytes") {
        let tone = if free < 1e9 { "bad" } else { "" };
        all.push(figure("free on the disk", size(free), tone, None));
    }
    all
}

fn queues(numbers: &MetricSamples<'_>) -> Vec<QueueBar> {
    let ages = numbers.of("oldest_waiting_seconds");
    let mut all = numbers.of("deliveries_queued");
    all.push(("held", numbers.one("held_messages").unwrap_or(0.0)));
    let most = all.iter().map(|(_, n)| *n).fold(0.0, f64::max);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the relay writes counts; a cast saturates"
    )]
    let whole = |n: f64| n.round() as u64;
    let bars = all.iter().map(|(name, count)| QueueBar {
        count: whole(*count),
        percent: percent(whole(*count), whole(most)),
        oldest: ages
            .iter()
            .find(|(n, _)| n == name)
            .map_or(String::new(), |(_, s)| span(*s)),
        href: match *name {
            "held" => Some("/approvals"),
            "copy_paste" => Some("/carry"),
            _ => None,
        },
        name: Shown::new(match *name {
            "copy_paste" => "copy and paste",
            "exec" => "commands",
            "http" => "HTTP endpoints",
            "file" => "folders",
            "relay" => "other relays",
            "email" => "mail",
            "sms" => "SMS",
            "mcp" => "MCP clients",
            "held" => "held for a person",
            other => other,
        }),
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_protocol::audit::Event;

    #[test]
    fn numbers_are_read_with_and_without_labels() {
        let text = "# HELP crosstalk_a x\ncrosstalk_a 3\ncrosstalk_ab 4\ncrosstalk_q{queue=\"exec\"} 2\ncrosstalk_q{queue=\"http\"} 0.500\n";
        let numbers = MetricSamples(text);
        assert_eq!((numbers.count("a"), numbers.count("ab")), (3, 4));
        assert_eq!(numbers.of("q"), [("exec", 2.0), ("http", 0.5)]);
        assert_eq!(numbers.one("b"), None);
        assert_eq!(
            (size(999.0), size(1_500_000.0)),
            ("999 bytes".into(), "1.5 MB".into())
        );
        assert_eq!(
            (span(0.0), span(90.0), span(7_300.0)),
            (String::new(), "90 s".into(), "2 h".into())
        );
    }

    #[test]
    fn the_chart_counts_by_hours_and_stays_inside() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let entry = |kind, hours: i64| LogEntry {
            index: 0,
            leaf: Event::new(kind, Timestamp::from_millis(now.as_millis() - hours * HOUR))
                .leaf(&[]),
            detail: None,
            text: None,
            parties: None,
        };
        let all = [
            entry(EventKind::Accepted, 0),
            entry(EventKind::Accepted, 0),
            entry(EventKind::Failed, 0),
            entry(EventKind::Accepted, 23),
            entry(EventKind::Accepted, 30),
            // A clock that was set back.
            entry(EventKind::Accepted, -2),
        ];
        let activity = Activity::of(&all, now);
        assert_eq!(
            (activity.accepted, activity.failed, activity.most),
            (4, 1, 4)
        );
        let last = activity.hours.last().unwrap();
        assert_eq!((last.height, last.failed), (HIGH - HIGH / 4, HIGH / 4));
        assert!(
            activity
                .hours
                .iter()
                .all(|h| h.y + h.height + h.failed <= HIGH)
        );
        assert!(Activity::of(&[], now).hours.iter().all(|h| h.height == 0));
    }
}
