//! Ten thousand elections with everything that people do to them, against a second implementation.

use super::second::{self, Cast};
use super::{answer, at, bytes, collated_at, id, poll};
use crosstalk_testing::tier;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}

const KINDS: [&str; 6] = [
    "plurality",
    "majority",
    "consensus",
    "approval",
    "ranked",
    "score",
];
const OPTIONS: [&str; 5] = ["Ash", "Birch", "Cedar", "Dogwood", "Elm"];
const VOTERS: [&str; 7] = [
    "CLAUDE",
    "chatgpt://thread/x",
    "chatgpt://thread/y",
    "human://ann.example/inbox",
    "human://bob.example/inbox",
    "gemini://g",
    "EXEC",
];
const DEADLINE: i64 = 1000;

/// What a ballot says: as it is written, and as the second implementation takes it.
fn ballot(dice: &mut Dice, kind: &str, options: &[&str]) -> (String, Cast) {
    if dice.below(8) == 0 {
        return ("Abstain: yes".into(), Cast::Abstains);
    }
    let mut order = options.to_vec();
    dice.shuffle(&mut order);
    let some = &order[..1 + dice.below(order.len())];
    let (text, named): (String, Vec<(String, i64)>) = match kind {
        "approval" => (
            some.join(" | "),
            some.iter().map(|o| ((*o).to_owned(), 1)).collect(),
        ),
        "ranked" => {
            let (mut text, mut rank, mut named) = (String::new(), 1, Vec::new());
            for (place, option) in some.iter().enumerate() {
                if place > 0 {
                    let is_tie = dice.below(4) == 0;
                    text.push_str(if is_tie { " = " } else { " > " });
                    rank += i64::from(!is_tie);
                }
                text.push_str(option);
                named.push(((*option).to_owned(), rank));
            }
            (text, named)
        }
        "score" => {
            let named: Vec<(String, i64)> = some
                .iter()
                .map(|o| ((*o).to_owned(), dice.below(6) as i64))
                .collect();
            let text: Vec<String> = named.iter().map(|(o, n)| format!("{o}={n}")).collect();
            (text.join(" | "), named)
        }
        _ => (order[0].to_owned(), vec![(order[0].to_owned(), 1)]),
    };
    (format!("Choice: {text}"), Cast::Named(named))
}

#[test]
fn elections_come_out_as_a_second_implementation_says() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let total = tier::size(2_000, 10_000);
    for election in 0..total {
        let kind = KINDS[dice.below(KINDS.len())];
        let options = &OPTIONS[..2 + dice.below(4)];
        let voters = &VOTERS[..1 + dice.below(VOTERS.len())];
        let first_listed = dice.below(2) == 0;
        let quorum = dice.below(voters.len() + 2);
        let ties = if first_listed {
            "Ties: first-listed\n"
        } else {
            ""
        };
        let fields = format!(
            "Type: {kind}\nOptions: {}\nQuorum: {quorum}\nDeadline: {}\n{ties}",
            options.join(" | "),
            at(DEADLINE)
        );
        let mut texts = vec![poll(voters, &fields)];
        // The last ballot before the deadline, by time.
        let mut last: BTreeMap<&str, (i64, Cast)> = BTreeMap::new();
        let (mut stuffed, mut times) = (0, BTreeSet::new());
        for _ in 0..dice.below(3 * voters.len() + 2) {
            let mut time = dice.below(1500) as i64;
            while !times.insert(time) {
                time += 1;
            }
            let (vote, cast) = ballot(&mut dice, kind, options);
            let message = id(time, u128::from(dice.0));
            let is_stranger = dice.below(6) == 0;
            let from = match is_stranger {
                true => {
                    ["MALLORY", "chatgpt://thread/z", "human://eve.example/inbox"][dice.below(3)]
                }
                false => voters[dice.below(voters.len())],
            };
            let text = answer(from, &message, &vote, "Because.");
            for _ in 0..1 + dice.below(2) {
                texts.push(text.clone());
            }
            if is_stranger || time >= DEADLINE {
                stuffed += 1;
            } else if last.get(from).is_none_or(|(before, _)| *before < time) {
                stuffed += usize::from(last.insert(from, (time, cast)).is_some());
            } else {
                stuffed += 1;
            }
        }
        dice.shuffle(&mut texts);
        let collation = collated_at(&texts, None);
        let ballots: Vec<Cast> = last.values().map(|(_, cast)| cast.clone()).collect();
        let expected = second::count(kind, options, &ballots, first_listed);
        let reached = ballots.len() >= quorum;
        let told = format!("election {election}\n{}", texts.concat());
        let tally: BTreeMap<String, u64> = collation.tally.0.iter().cloned().collect();
        assert_eq!(tally, expected.tally, "{told}");
        let outcome = expected.outcome.filter(|_| reached);
        assert_eq!(collation.outcome, outcome, "{told}");
        assert_eq!(
            collation.reason.is_none(),
            collation.outcome.is_some(),
            "{told}"
        );
        assert_eq!(collation.quorum.reached, reached, "{told}");
        // One ballot for each who is asked, and everything else is listed.
        let counted: BTreeSet<&str> = collation.counted.iter().map(|c| c.from.as_str()).collect();
        assert_eq!(counted.len(), collation.counted.len(), "{told}");
        assert_eq!(
            counted,
            last.keys().copied().collect::<BTreeSet<&str>>(),
            "{told}"
        );
        assert_eq!(collation.not_counted.len(), stuffed, "{told}");
        assert_eq!(
            collation.missing.len() + counted.len(),
            voters.len(),
            "{told}"
        );
        if election % 10 == 0 {
            let before = bytes(&collation);
            for _ in 0..3 {
                dice.shuffle(&mut texts);
                assert_eq!(bytes(&collated_at(&texts, None)), before, "{told}");
            }
        }
        *seen
            .entry(format!("{kind} {}", outcome.is_some()))
            .or_default() += 1;
    }
    // Every type came out with and without an outcome, often.
    assert_eq!(seen.len(), 12, "{seen:?}");
    assert!(seen.values().all(|n| *n > total / 100), "{seen:?}");
}

#[test]
fn later_answers_do_not_change_an_earlier_count() {
    let mut dice = Dice(42);
    for _ in 0..300 {
        let options = &OPTIONS[..3];
        let voters = &VOTERS[..5];
        let mut texts = vec![poll(
            voters,
            &format!("Type: plurality\nOptions: {}\n", options.join(" | ")),
        )];
        let mut later = texts.clone();
        for time in 0..20 {
            let (vote, _) = ballot(&mut dice, "plurality", options);
            let from = voters[dice.below(voters.len())];
            let text = answer(from, &id(time, u128::from(dice.0)), &vote, "x");
            if time < 10 {
                texts.push(text.clone());
            }
            later.push(text);
        }
        dice.shuffle(&mut later);
        let cut = Some(at(10));
        assert_eq!(
            bytes(&collated_at(&later, cut)),
            bytes(&collated_at(&texts, cut))
        );
        assert_ne!(
            bytes(&collated_at(&later, None)),
            bytes(&collated_at(&texts, None))
        );
    }
}
