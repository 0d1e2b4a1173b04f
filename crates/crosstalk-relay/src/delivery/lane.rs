//! Lanes: the deliveries that wait for one destination, how many of them run at once, and when a failing destination gets a pause.

use crate::config::{Config, Retry, RouteEntry};
use crosstalk_api::outbound::Url;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::DueDelivery;
use crosstalk_protocol::relay::{Delivery, DeliveryState, Handler, Priority, authority};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// More lanes than these, and those are forgotten in which nothing waits.
const LANES: usize = 4096;

/// A delivery: a message and a recipient.
pub(crate) type Key = (String, String);

/// Since when a delivery is leased, as its lane, its attempt and the dispatcher know it. A delivery that is leased again
/// while it is held keeps its attempt, under the new lease, until the outcome of the attempt is on its way to the store: from then
/// on, another lease is for another attempt.
#[derive(Clone, Debug)]
pub(crate) struct HeldLease(Arc<LeaseState>);

#[derive(Debug)]
struct LeaseState {
    at: AtomicI64,
    is_over: AtomicBool,
}

impl HeldLease {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self(Arc::new(LeaseState {
            at: AtomicI64::new(at.as_millis()),
            is_over: AtomicBool::new(false),
        }))
    }

    /// Since when it is leased.
    pub(crate) fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.0.at.load(Ordering::SeqCst))
    }

    /// The attempt has an outcome, or has none to tell.
    pub(crate) fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    /// Goes on under another lease.
    pub(crate) fn replace(&self, at: Timestamp) {
        self.0.at.store(at.as_millis(), Ordering::SeqCst);
    }
}

/// The line of the table of routes that leads to a delivery.
pub(crate) fn route<'c>(config: &'c Config, to: &str, by: Handler) -> Option<&'c RouteEntry> {
    let fits =
        |r: &&RouteEntry| r.handler() == Some(by) && r.pattern().is_some_and(|p| p.matches(to));
    config.routes.iter().find(fits)
}

/// What a delivery shares its fate with: the server, the folder, the command, the domain.
pub(crate) fn name(config: &Config, to: &str, by: Handler) -> String {
    let route = route(config, to, by);
    let url = route.and_then(|r| r.url.as_deref());
    let origin = url.and_then(|u| Url::parse(u).ok()).map(|u| u.origin());
    let place = match by {
        Handler::Http => origin,
        Handler::Relay => origin.or_else(|| authority(to).map(str::to_ascii_lowercase)),
        Handler::File => route
            .and_then(|r| r.folder.as_ref())
            .map(|f| f.display().to_string()),
        Handler::Exec => route.map(|r| r.to.clone()),
        Handler::Mcp => origin.or_else(|| route.map(|r| r.to.clone())),
        Handler::Email => config
            .email
            .as_ref()
            .and_then(|e| e.out.as_ref())
            .map(|out| out.host.clone()),
        Handler::Sms => config.sms.as_ref().map(|sms| sms.url.clone()),
        Handler::Inbox | Handler::CopyPaste => None,
    };
    format!("{} {}", by.as_str(), place.unwrap_or_default())
}

/// The order of the queue: the most urgent first, then the oldest.
type QueuePosition = (Priority, u64, Reverse<usize>);

#[derive(Default)]
struct Lane {
    queue: BTreeMap<QueuePosition, DueDelivery>,
    running: usize,
    failures: u32,
    /// Messages that may be the cause of their failures themselves: each counts once.
    suspects: HashSet<Key>,
    alone_until: Option<Timestamp>,
}

/// How an attempt went, as far as its lane is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The destination works.
    Works,
    /// It does not.
    Fails,
    /// It does not, or can't process this message.
    FailsOnMessage,
}

/// All lanes.
pub(crate) struct Lanes {
    lanes: HashMap<String, Lane>,
    at_once: usize,
    failures: u32,
    pause_millis: i64,
    pushed: usize,
    /// Since when which attempts run.
    attempts: HashMap<Key, Timestamp>,
}

impl Lanes {
    pub(crate) fn new(retry: &Retry) -> Self {
        let pause = i64::try_from(retry.pause_seconds).unwrap_or(i64::MAX);
        Self {
            lanes: HashMap::new(),
            at_once: retry.at_once.max(1),
            failures: retry.failures.max(1),
            pause_millis: pause.saturating_mul(1000),
            pushed: 0,
            attempts: HashMap::new(),
        }
    }

    /// An attempt begins.
    pub(crate) fn start(&mut self, key: Key, now: Timestamp) {
        self.attempts.insert(key, now);
    }

    /// An attempt is over.
    pub(crate) fn stop(&mut self, key: &Key) {
        self.attempts.remove(key);
    }

    /// Since when an attempt runs, if one does.
    pub(crate) fn running_since(&self, id: &str, to: &str) -> Option<Timestamp> {
        self.attempts.get(&(id.to_owned(), to.to_owned())).copied()
    }

    /// How many wait in a lane.
    pub(crate) fn waiting(&self, lane: &str) -> usize {
        self.lanes.get(lane).map_or(0, |l| l.queue.len())
    }

    /// Puts a delivery into its lane.
    pub(crate) fn push(&mut self, lane: String, due: DueDelivery) {
        if self.lanes.len() > LANES {
            self.lanes
                .retain(|_, l| !l.queue.is_empty() || l.running > 0);
        }
        let lane = self.lanes.entry(lane).or_default();
        // Two recipients of one message may share a lane.
        self.pushed = self.pushed.wrapping_add(1);
        let place = (due.priority, due.seq, Reverse(self.pushed));
        lane.queue.insert(place, due);
    }

    /// The most urgent delivery whose destination has room for it.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<(String, DueDelivery)> {
        let (at_once, failures) = (self.at_once, self.failures);
        let may_go = |lane: &Lane| match lane.failures >= failures {
            // One at a time finds out whether it works again.
            true => lane.running == 0 && lane.alone_until.is_none_or(|end| end <= now),
            false => lane.running < at_once,
        };
        let ready = self.lanes.iter().filter(|(_, lane)| may_go(lane));
        let heads = ready.filter_map(|(name, lane)| {
            let (place, _) = lane.queue.first_key_value()?;
            Some((*place, name))
        });
        let (_, name) = heads.min()?;
        let name = name.clone();
        let lane = self.lanes.get_mut(&name)?;
        let (_, due) = lane.queue.pop_first()?;
        lane.running += 1;
        Some((name, due))
    }

    /// An attempt to make a delivery has ended.
    pub(crate) fn ended(&mut self, lane: &str, key: &Key, effect: Effect, now: Timestamp) {
        let Some(state) = self.lanes.get_mut(lane) else {
            return;
        };
        state.running = state.running.saturating_sub(1);
        if effect == Effect::Works {
            state.failures = 0;
            state.suspects.clear();
            state.alone_until = None;
        } else {
            let counts = match effect {
                // A closed lane needs no more of them.
                Effect::FailsOnMessage => {
                    state.failures < self.failures && state.suspects.insert(key.clone())
                }
                _ => true,
            };
            state.failures = state.failures.saturating_add(u32::from(counts));
            if state.failures >= self.failures {
                let end = now.as_millis().saturating_add(self.pause_millis);
                state.alone_until = Some(Timestamp::from_millis(end));
            }
        }
        if state.queue.is_empty() && state.running == 0 && state.failures == 0 {
            self.lanes.remove(lane);
        }
    }

    /// When a delivery is tried next, as far as its lane knows better than the store: what waits in a lane is leased there,
    /// and a destination that is left alone is tried at the end of its pause.
    pub(crate) fn next_attempt(
        &self,
        lane: &str,
        id: &str,
        delivery: &Delivery,
    ) -> Option<Timestamp> {
        // The end of a lease is no plan.
        let planned = delivery.next_at.filter(|_| delivery.leased_at.is_none());
        let lane = self.lanes.get(lane);
        let paused =
            lane.filter(|l| l.failures >= self.failures && delivery.state == DeliveryState::Queued);
        let Some((lane, end)) = paused.and_then(|l| Some((l, l.alone_until?))) else {
            return planned;
        };
        let is_it = |due: &DueDelivery| due.lease.id == id && due.lease.to == delivery.to;
        match lane.queue.values().any(is_it) {
            true => Some(end),
            false => planned.map(|at| at.max(end)),
        }
    }

    /// When the next destination with something in its lane may be tried again.
    pub(crate) fn next_trial(&self) -> Option<Timestamp> {
        let waiting = self.lanes.values();
        let waiting = waiting.filter(|l| !l.queue.is_empty() && l.running == 0);
        waiting.filter_map(|l| l.alone_until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_protocol::relay::port::Lease;

    fn lanes(at_once: usize, failures: u32) -> Lanes {
        Lanes::new(&Retry {
            at_once,
            failures,
            pause_seconds: 30,
            ..Retry::default()
        })
    }

    fn due(id: &str, seq: u64, priority: Priority) -> DueDelivery {
        DueDelivery {
            lease: Lease {
                id: id.into(),
                to: "B".into(),
                at: at(0),
            },
            by: Handler::Http,
            attempts: 0,
            priority,
            seq,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn key(id: &str) -> Key {
        (id.into(), "B".into())
    }

    fn next(lanes: &mut Lanes, now: i64) -> Option<String> {
        lanes.next(at(now)).map(|(_, due)| due.lease.id)
    }

    #[test]
    fn the_urgent_goes_first_then_the_oldest_whatever_the_lane() {
        let mut lanes = lanes(9, 5);
        for (lane, id, seq, priority) in [
            ("x", "low", 1, Priority::Low),
            ("x", "second", 3, Priority::Normal),
            ("y", "first", 2, Priority::Normal),
            ("y", "urgent", 4, Priority::High),
        ] {
            lanes.push(lane.into(), due(id, seq, priority));
        }
        let order: Vec<String> = std::iter::from_fn(|| next(&mut lanes, 0)).collect();
        assert_eq!(order, ["urgent", "first", "second", "low"]);
    }

    #[test]
    fn a_full_lane_does_not_hold_up_another() {
        let mut lanes = lanes(2, 5);
        for seq in 1..=5 {
            lanes.push("slow".into(), due(&format!("s{seq}"), seq, Priority::High));
        }
        lanes.push("quick".into(), due("q", 9, Priority::Low));
        let order: Vec<String> = std::iter::from_fn(|| next(&mut lanes, 0)).collect();
        assert_eq!(order, ["s1", "s2", "q"]);
        lanes.ended("slow", &key("s1"), Effect::Works, at(0));
        assert_eq!(next(&mut lanes, 0).as_deref(), Some("s3"));
        assert_eq!(next(&mut lanes, 0), None);
    }

    #[test]
    fn a_destination_that_fails_is_left_alone_then_tried_by_one() {
        let mut lanes = lanes(4, 2);
        for seq in 1..=6 {
            lanes.push("x".into(), due(&format!("m{seq}"), seq, Priority::Normal));
        }
        for _ in 0..2 {
            assert!(next(&mut lanes, 0).is_some());
            lanes.ended("x", &key("m"), Effect::Fails, at(0));
        }
        assert_eq!(next(&mut lanes, 29), None);
        assert_eq!(lanes.next_trial(), Some(at(30)));
        assert_eq!(next(&mut lanes, 30).as_deref(), Some("m3"));
        assert_eq!(next(&mut lanes, 30), None, "one finds out");
        lanes.ended("x", &key("m3"), Effect::Fails, at(31));
        assert_eq!(next(&mut lanes, 60), None);
        assert_eq!(next(&mut lanes, 61).as_deref(), Some("m4"));
        lanes.ended("x", &key("m4"), Effect::Works, at(61));
        assert_eq!(next(&mut lanes, 61).as_deref(), Some("m5"));
        assert_eq!(next(&mut lanes, 61).as_deref(), Some("m6"));
    }

    #[test]
    fn the_next_attempt_is_after_the_pause() {
        let mut lanes = lanes(1, 1);
        let delivery = |to: &str, next| Delivery {
            to: to.into(),
            by: Handler::Http,
            state: DeliveryState::Queued,
            attempts: 1,
            queued_at: at(0),
            delivered_at: None,
            read_at: None,
            acknowledged_at: None,
            failed_at: None,
            reason: None,
            next_at: Some(at(next)),
            leased_at: None,
        };
        for (id, seq) in [("m1", 1), ("m2", 2)] {
            lanes.push("x".into(), due(id, seq, Priority::Normal));
        }
        let next_of = |lanes: &Lanes, id: &str, next| {
            lanes.next_attempt("x", id, &delivery("B", next)).unwrap()
        };
        assert_eq!(next_of(&lanes, "m1", 120), at(120));
        assert!(next(&mut lanes, 0).is_some());
        lanes.ended("x", &key("m"), Effect::Fails, at(0));
        // One waits in the lane and is leased for two minutes, the other is planned for before the pause is over.
        assert_eq!(next_of(&lanes, "m2", 120), at(30));
        assert_eq!(next_of(&lanes, "m1", 2), at(30));
        assert_eq!(next_of(&lanes, "m1", 40), at(40));
    }

    #[test]
    fn failures_count_in_a_row() {
        let mut lanes = lanes(1, 2);
        for seq in 1..=4 {
            lanes.push("x".into(), due(&format!("m{seq}"), seq, Priority::Normal));
        }
        for effect in [Effect::Fails, Effect::Works, Effect::Fails] {
            assert!(next(&mut lanes, 0).is_some());
            lanes.ended("x", &key("m"), effect, at(0));
        }
        assert!(next(&mut lanes, 0).is_some());
    }

    /// Two messages on which a program fails are no reason to keep others waiting, however often they are tried. A third
    /// one is.
    #[test]
    fn message_that_always_fails_does_not_close_its_lane() {
        let mut lanes = lanes(1, 3);
        let mut fail = |id: &str| {
            lanes.push("x".into(), due(id, 1, Priority::Normal));
            let is_open = next(&mut lanes, 0).is_some();
            lanes.ended("x", &key(id), Effect::FailsOnMessage, at(0));
            is_open
        };
        for _ in 0..9 {
            assert!(fail("bad") && fail("worse"));
        }
        assert!(fail("worst") && !fail("bad"));
    }
}
