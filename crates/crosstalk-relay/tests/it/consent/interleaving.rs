//! Random interleavings of REVOKE, expiry and delivery: nothing is handed out after the REVOKE was acknowledged.

use super::{from_ann, plan, revoke, time};
use crate::house::House;
use crate::http::{Ask, Line};
use crate::shared::relays;
use crate::storage;
use crosstalk_testing::postgres::Database;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The size of a play.
#[derive(Clone, Copy)]
struct Size {
    /// How many messages take part at least; each is read, ends and is revoked in an order of its own.
    messages: usize,
    /// How many REVOKEs there are at least.
    revokes: usize,
    /// How many messages are under one consent.
    group: usize,
    /// How many REVOKEs follow a batch of messages at most.
    revokes_per_batch: u64,
}

/// How many are handed in at once.
const BATCH: usize = 100;
const BOXES: u64 = 4;
const READERS: u64 = 3;
/// What a body has in it, before the id of its message.
const MARK: &str = "secret-";

/// Numbers that look random, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What everybody sees.
struct Play {
    /// Relays on one store.
    houses: Vec<House>,
    size: Size,
    /// Goes on with each end that was acknowledged.
    stamp: AtomicU64,
    /// From which stamp on a message must not be seen.
    ended: Mutex<HashMap<String, u64>>,
    /// What there is to ask for by name.
    sent: AtomicUsize,
    is_over: AtomicBool,
    seen: AtomicUsize,
    /// How often somebody has asked.
    looks: AtomicUsize,
}

fn address(number: u64) -> String {
    format!("agent://here.example/box/{}", number % BOXES)
}

/// The ids of the messages whose bodies are in a text.
fn bodies(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(MARK).skip(1);
    parts.filter_map(|part| part.split(';').next())
}

impl Play {
    fn house(&self, dice: &mut Dice) -> &House {
        &self.houses[dice.roll(self.houses.len() as u64) as usize]
    }

    fn ends(&self, ids: impl IntoIterator<Item = String>) {
        let stamp = self.stamp.fetch_add(1, Ordering::SeqCst) + 1;
        let mut ended = self.ended.lock().unwrap();
        for id in ids {
            ended.entry(id).or_insert(stamp);
        }
    }

    /// Asks in one of the ways in which a message is handed out. What came has not ended before it was asked for.
    fn look(&self, lines: &mut [Line], dice: &mut Dice) {
        let place = dice.roll(lines.len() as u64) as usize;
        let line = &mut lines[place];
        let sent = self.sent.load(Ordering::SeqCst).max(1) as u64;
        let recent = sent.saturating_sub(dice.roll(600.min(sent)) + 1);
        let place = recent.saturating_sub(dice.roll(50));
        let path = match dice.roll(16) {
            0 => format!("/crosstalk/messages/M{recent}"),
            1 => format!("/crosstalk/threads/T-M{recent}"),
            2 => format!("/crosstalk/search?q=w{}", recent / 7),
            _ => format!(
                "/crosstalk/inbox?for={}&after={place}&limit=40",
                address(dice.roll(BOXES))
            ),
        };
        let accept = match dice.roll(2) {
            0 if path.contains("/inbox") => "text/plain",
            _ => "application/json",
        };
        let asked_at = self.stamp.load(Ordering::SeqCst);
        let answer = Ask::get(&path).accept(accept).on(line);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        self.looks.fetch_add(1, Ordering::SeqCst);
        let ended = self.ended.lock().unwrap();
        for id in bodies(&text) {
            self.seen.fetch_add(1, Ordering::SeqCst);
            if let Some(stamp) = ended.get(id).filter(|stamp| **stamp <= asked_at) {
                self.is_over.store(true, Ordering::SeqCst);
                panic!("{id} had ended at {stamp}, and was handed out at {asked_at} by {path}");
            }
        }
    }
}

#[test]
fn nothing_is_handed_out_after_its_end_was_acknowledged() {
    let size = Size {
        messages: tier::size(2_500, 10_000),
        revokes: 0,
        group: 5,
        revokes_per_batch: 16,
    };
    play(vec![plan().open()], size);
}

/// The same over three relays on one database: messages and REVOKEs go to any of them, and all of them are read.
#[test]
fn no_relay_hands_out_after_an_end_was_acknowledged_at_another() {
    if storage::is_shared() {
        // The tests of the file run these relays, too.
        return;
    }
    let database = Database::new();
    let size = Size {
        messages: 0,
        revokes: tier::size(300, 10_000),
        group: 1,
        revokes_per_batch: 80,
    };
    play(relays(&database, 3, plan), size);
}

fn play(houses: Vec<House>, size: Size) {
    let play = Play {
        houses,
        size,
        stamp: AtomicU64::new(0),
        ended: Mutex::default(),
        sent: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        seen: AtomicUsize::new(0),
        looks: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let play = &play;
            scope.spawn(move || {
                let mut dice = Dice(reader + 100);
                let mut lines: Vec<Line> = play.houses.iter().map(House::line).collect();
                while !play.is_over.load(Ordering::SeqCst) {
                    play.look(&mut lines, &mut dice);
                }
            });
        }
        write(&play);
        play.is_over.store(true, Ordering::SeqCst);
    });
    let seen = play.seen.load(Ordering::SeqCst);
    println!("{seen} times a message was handed out");
    let sent = play.sent.load(Ordering::SeqCst);
    assert!(seen > sent / 10, "{seen}");
    // And nothing of it is there for who reads everything.
    let ended = play.ended.lock().unwrap();
    assert!(ended.len() > sent / 3, "{}", ended.len());
    for (number, house) in (0..BOXES).flat_map(|n| play.houses.iter().map(move |h| (n, h))) {
        let mut after = "0".to_owned();
        loop {
            let path = format!(
                "/crosstalk/inbox?for={}&after={after}&limit=100",
                address(number)
            );
            let answer = house.get(&path);
            let cursor = answer.header("crosstalk-cursor").unwrap().to_owned();
            assert!(bodies(answer.text()).all(|id| !ended.contains_key(id)));
            if cursor == after {
                break;
            }
            after = cursor;
        }
    }
}

/// Sends messages, revokes consents and lets time go by, in a random order.
fn write(play: &Play) {
    let size = play.size;
    let mut dice = Dice(7);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let (mut now, mut ends): (i64, Vec<(i64, String)>) = (0, Vec::new());
    let mut revokes = 0;
    let is_enough = |revokes: usize| {
        play.sent.load(Ordering::SeqCst) >= size.messages && revokes >= size.revokes
    };
    while !is_enough(revokes) && !play.is_over.load(Ordering::SeqCst) {
        // The readers see something of each batch, however busy the machine is.
        let looks = play.looks.load(Ordering::SeqCst);
        wait_until("the readers", || {
            play.looks.load(Ordering::SeqCst) > looks + 2 || play.is_over.load(Ordering::SeqCst)
        });
        let first = play.sent.load(Ordering::SeqCst);
        let mut batch = String::new();
        for number in first..first + BATCH {
            let id = format!("M{number}");
            let mut builder = from_ann(&address(dice.roll(BOXES)), &id)
                .body(format!("w{} {MARK}{id};", number / 7))
                .meta("privacy", "Scope", "medical")
                .meta("privacy", "Consent", "explicit_yes")
                .meta("privacy", "Consent-ID", format!("C{}", number / size.group));
            if dice.roll(3) == 0 {
                let end = now + 1 + dice.roll(60) as i64;
                builder = builder.meta("privacy", "Expires", time(end));
                ends.push((end, id));
            }
            batch.push_str(&builder.build().unwrap());
            batch.push('\n');
        }
        let post = Ask::new("POST", "/crosstalk/receive");
        let answer = post
            .header("Content-Type", "application/vnd.crosstalk.batch")
            .body(batch)
            .on(&mut play.house(&mut dice).line());
        assert_eq!(
            answer.text().matches("intent: ACK").count(),
            BATCH,
            "{}",
            answer.text()
        );
        play.sent.fetch_add(BATCH, Ordering::SeqCst);
        let new: Vec<usize> = (first..first + BATCH).collect();
        groups.extend(new.chunks(size.group).map(<[usize]>::to_vec));
        for _ in 0..dice.roll(size.revokes_per_batch) {
            let group = groups.swap_remove(dice.roll(groups.len() as u64) as usize);
            let consent = format!("C{}", group[0] / size.group);
            revokes += 1;
            let text = revoke(
                &consent,
                "agent://here.example/box/0",
                &format!("R{revokes}"),
            );
            let answer = play.house(&mut dice).ask(&Ask::send(&text));
            assert_eq!(answer.status, 200, "{}", answer.text());
            play.ends(group.into_iter().map(|number| format!("M{number}")));
        }
        if dice.roll(2) == 0 {
            let seconds = dice.roll(8) as i64;
            play.houses.iter().for_each(|house| house.later(seconds));
            now += seconds;
            let (over, left) = ends.into_iter().partition(|(end, _)| *end <= now);
            ends = left;
            play.ends(over.into_iter().map(|(_, id): (i64, String)| id));
        }
    }
    assert!(revokes > play.sent.load(Ordering::SeqCst) / 100);
}
