//! Judges what clients wrote down while parts of a cluster were killed and cut off, beside what the cluster holds at the end.
//! A pure function: the same history gets the same verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a client wrote down about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A sender handed it in for the first time. It repeats the message until it gets an answer.
    Sent,
    /// A sender was told that it is accepted, with this answer.
    Accepted(String),
    /// A sender was told for good that it is rejected, with this status.
    Refused(u16),
    /// A reader got it. A delivery that may be a repetition has a higher attempt: this is its mark.
    Delivered(u32),
    /// A reader asks to acknowledge it. If no answer comes, that is on record or not.
    Acknowledging,
    /// A reader was told that its acknowledgement is on record.
    Done,
}

/// A line of a log.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The time since the beginning of the history.
    pub(super) at: Duration,
    pub(super) id: String,
    pub(super) event: Event,
}

/// The log of one client, in the order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
}

/// Something that was broken on purpose.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) at: Duration,
    pub(super) name: String,
}

/// Everything that is judged.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) logs: Vec<Log>,
    /// In the order of time.
    pub(super) faults: Vec<Fault>,
    /// The messages that the cluster holds at the end and that nobody has acknowledged.
    pub(super) present: Vec<String>,
    /// Whether readers follow every message, so that each accepted one has to be delivered.
    pub(super) is_followed: bool,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Breach {
    /// Accepted, and gone.
    Lost(String),
    /// Accepted, there, and never delivered to a reader that waited for it.
    Stuck(String),
    /// Sent, and never answered, although the sender repeated it until the end.
    Unanswered(String),
    /// Delivered to one reader twice with the same mark.
    Doubled(String),
    /// Held twice.
    HeldTwice(String),
    /// Rejected, and there.
    RefusedAndHeld(String),
    /// Acknowledged by its reader, and there or delivered again.
    Back(String),
    /// There or delivered, and never sent.
    NeverSent(String),
    /// A repeated message got another answer.
    OtherAnswer(String),
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// In order, each once.
    pub(super) breaches: Vec<Breach>,
    /// How many messages were accepted.
    pub(super) accepted: usize,
    /// For each fault, how long the sender that waited longest had to wait for an answer after it.
    pub(super) waits: Vec<(String, Duration)>,
}

impl Verdict {
    /// How many accepted messages are gone.
    pub(super) fn lost(&self) -> usize {
        let lost = |breach: &&Breach| matches!(breach, Breach::Lost(_));
        self.breaches.iter().filter(lost).count()
    }

    /// The longest wait after a fault.
    pub(super) fn longest_wait(&self) -> Duration {
        let waits = self.waits.iter().map(|(_, wait)| *wait);
        waits.max().unwrap_or_default()
    }
}

/// What the logs together say about a message.
#[derive(Default)]
struct Story<'h> {
    sent: Option<Duration>,
    answers: BTreeSet<&'h str>,
    answered: Option<Duration>,
    is_refused: bool,
    is_delivered: bool,
    is_acknowledging: bool,
    is_done: bool,
}

/// Compares what clients were told with what the cluster holds and delivered.
pub(super) fn judge(history: &History) -> Verdict {
    let mut breaches = BTreeSet::new();
    let mut stories: BTreeMap<&str, Story<'_>> = BTreeMap::new();
    for log in &history.logs {
        let mut marks: BTreeSet<(&str, u32)> = BTreeSet::new();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for entry in &log.entries {
            let id = entry.id.as_str();
            let story = stories.entry(id).or_default();
            match &entry.event {
                Event::Sent => story.sent = Some(entry.at),
                Event::Accepted(answer) => {
                    story.answers.insert(answer);
                    story.answered.get_or_insert(entry.at);
                }
                Event::Refused(_) => {
                    story.is_refused = true;
                    story.answered.get_or_insert(entry.at);
                }
                Event::Delivered(mark) => {
                    story.is_delivered = true;
                    if done.contains(id) {
                        breaches.insert(Breach::Back(id.to_owned()));
                    }
                    if !marks.insert((id, *mark)) {
                        breaches.insert(Breach::Doubled(id.to_owned()));
                    }
                }
                Event::Acknowledging => story.is_acknowledging = true,
                Event::Done => {
                    story.is_done = true;
                    done.insert(id);
                }
            }
        }
    }
    let mut present = BTreeSet::new();
    for id in &history.present {
        if !present.insert(id.as_str()) {
            breaches.insert(Breach::HeldTwice(id.clone()));
        }
        stories.entry(id).or_default();
    }
    let mut accepted = 0;
    for (id, story) in &stories {
        let mut breach = |kind: fn(String) -> Breach, is_so: bool| {
            if is_so {
                breaches.insert(kind((*id).to_owned()));
            }
        };
        let is_held = present.contains(id);
        let is_accepted = !story.answers.is_empty();
        accepted += usize::from(is_accepted);
        let may_be_gone = story.is_acknowledging || story.is_done;
        breach(Breach::Lost, is_accepted && !is_held && !may_be_gone);
        breach(
            Breach::Stuck,
            history.is_followed && is_accepted && is_held && !story.is_delivered,
        );
        breach(
            Breach::Unanswered,
            story.sent.is_some() && story.answered.is_none(),
        );
        breach(Breach::RefusedAndHeld, story.is_refused && is_held);
        breach(Breach::Back, story.is_done && is_held);
        breach(Breach::NeverSent, story.sent.is_none());
        breach(Breach::OtherAnswer, story.answers.len() > 1);
    }
    Verdict {
        breaches: breaches.into_iter().collect(),
        accepted,
        waits: waits(&history.faults, &stories),
    }
}

/// The longest wait after each fault and before the next one, counted from the fault or from the first sending after it.
fn waits(faults: &[Fault], stories: &BTreeMap<&str, Story<'_>>) -> Vec<(String, Duration)> {
    let next = faults.iter().skip(1).map(|fault| fault.at);
    let ends = next.chain([Duration::MAX]);
    let each = faults.iter().zip(ends).map(|(fault, end)| {
        let waits = stories.values().filter_map(|story| {
            let (sent, answered) = (story.sent?, story.answered?);
            // A message that waits across the next fault waits for that one from then on.
            (sent < end).then(|| answered.min(end).saturating_sub(sent.max(fault.at)))
        });
        (fault.name.clone(), waits.max().unwrap_or_default())
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64, id: &str, event: Event) -> Entry {
        Entry {
            at: Duration::from_millis(millis),
            id: id.to_owned(),
            event,
        }
    }

    fn accepted() -> Event {
        Event::Accepted("ack".to_owned())
    }

    /// Two senders, a fault, a reader that acknowledges its message and one that does not.
    fn sound() -> History {
        let sender = |id: &str, other: &str| Log {
            entries: vec![
                at(10, id, Event::Sent),
                at(20, id, accepted()),
                at(30, other, Event::Sent),
                at(5000, other, accepted()),
                at(5010, other, accepted()),
            ],
        };
        let reader = |ids: &[&str]| Log {
            entries: ids
                .iter()
                .map(|id| at(6000, id, Event::Delivered(1)))
                .collect(),
        };
        let mut done = reader(&["A1", "A2"]);
        done.entries.push(at(6100, "A1", Event::Done));
        let fault = |millis, name: &str| Fault {
            at: Duration::from_millis(millis),
            name: name.to_owned(),
        };
        History {
            logs: vec![
                sender("A1", "A2"),
                sender("B1", "B2"),
                done,
                reader(&["B1", "B2"]),
            ],
            faults: vec![fault(100, "kill"), fault(5500, "partition")],
            present: ["A2", "B1", "B2"].map(str::to_owned).to_vec(),
            is_followed: true,
        }
    }

    fn breaches(change: impl FnOnce(&mut History)) -> Vec<Breach> {
        let mut history = sound();
        change(&mut history);
        judge(&history).breaches
    }

    #[test]
    fn a_sound_history_has_no_breach_and_waits_are_counted_from_the_fault() {
        let verdict = judge(&sound());
        assert_eq!(verdict.breaches, []);
        assert_eq!((verdict.accepted, verdict.lost()), (4, 0));
        let waits: Vec<u128> = verdict.waits.iter().map(|(_, w)| w.as_millis()).collect();
        assert_eq!(waits, [4900, 0]);
        assert_eq!(verdict.longest_wait().as_millis(), 4900);
    }

    #[test]
    fn a_wait_belongs_to_the_fault_that_it_follows() {
        let mut history = sound();
        for log in &mut history.logs[..2] {
            log.entries[2].at = Duration::from_millis(5400);
            log.entries[3].at = Duration::from_millis(9000);
            log.entries.truncate(4);
        }
        let waits = judge(&history).waits;
        let millis: Vec<u128> = waits.iter().map(|(_, w)| w.as_millis()).collect();
        assert_eq!(millis, [100, 3500]);
    }

    #[test]
    fn a_lost_message_is_found() {
        let found = breaches(|h| h.present.retain(|id| id != "B1"));
        assert_eq!(found, [Breach::Lost("B1".to_owned())]);
    }

    #[test]
    fn a_message_that_reaches_no_reader_is_stuck() {
        let drop_it = |h: &mut History| h.logs[3].entries.retain(|e| e.id != "B2");
        assert_eq!(breaches(drop_it), [Breach::Stuck("B2".to_owned())]);
        let unfollowed = breaches(|h| {
            drop_it(h);
            h.is_followed = false;
        });
        assert_eq!(unfollowed, []);
    }

    #[test]
    fn a_message_without_an_answer_is_found() {
        let found = breaches(|h| h.logs[0].entries.push(at(7000, "A3", Event::Sent)));
        assert_eq!(found, [Breach::Unanswered("A3".to_owned())]);
    }

    #[test]
    fn a_second_delivery_needs_a_mark() {
        let again = |mark| {
            breaches(|h| {
                h.logs[3]
                    .entries
                    .push(at(7000, "B1", Event::Delivered(mark)))
            })
        };
        assert_eq!(again(1), [Breach::Doubled("B1".to_owned())]);
        assert_eq!(again(2), []);
    }

    #[test]
    fn an_acknowledged_message_does_not_come_back() {
        let back = [Breach::Back("A1".to_owned())];
        assert_eq!(breaches(|h| h.present.push("A1".to_owned())), back);
        let delivered = at(7000, "A1", Event::Delivered(2));
        assert_eq!(breaches(|h| h.logs[2].entries.push(delivered)), back);
    }

    #[test]
    fn a_message_that_is_held_twice_refused_or_made_up_is_found() {
        let twice = breaches(|h| h.present.push("B1".to_owned()));
        assert_eq!(twice, [Breach::HeldTwice("B1".to_owned())]);
        let made_up = [Breach::NeverSent("X".to_owned())];
        assert_eq!(breaches(|h| h.present.push("X".to_owned())), made_up);
        let delivered = at(7000, "X", Event::Delivered(1));
        assert_eq!(breaches(|h| h.logs[3].entries.push(delivered)), made_up);
        let refused = breaches(|h| {
            h.logs[0].entries.push(at(7000, "R", Event::Sent));
            h.logs[0].entries.push(at(7001, "R", Event::Refused(400)));
            h.present.push("R".to_owned());
        });
        assert_eq!(refused, [Breach::RefusedAndHeld("R".to_owned())]);
    }

    #[test]
    fn a_repeated_message_has_one_answer() {
        let other = at(7000, "B2", Event::Accepted("another ack".to_owned()));
        let found = breaches(|h| h.logs[1].entries.push(other));
        assert_eq!(found, [Breach::OtherAnswer("B2".to_owned())]);
    }
}
