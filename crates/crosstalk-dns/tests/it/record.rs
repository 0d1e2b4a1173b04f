//! The content of the records.

use crate::{FIRST, OWNER, SECOND, THIRD, ask, example, options};
use crosstalk_testing::knot::{Knot, Zone};

fn say(knot: &Knot, domain: &str) -> String {
    ask(knot.address(), domain, options())
}

#[test]
fn a_key_comes_goes_and_changes() {
    let knot = Knot::start([example(&[&[FIRST]])]);
    let seen = |zone: &Zone| {
        knot.set(zone);
        say(&knot, "example.test")
    };
    assert_eq!(say(&knot, "example.test"), "first, 300 s, indeterminate");
    assert_eq!(say(&knot, "Example.TEST."), "first, 300 s, indeterminate");
    // Each answer is asked for anew: nothing is remembered in between.
    assert_eq!(
        seen(&example(&[&[FIRST], &[SECOND]])),
        "first and second, 300 s, indeterminate"
    );
    assert_eq!(seen(&example(&[&[SECOND]])), "second, 300 s, indeterminate");
    // NXDOMAIN, and a name that has something, but no TXT record.
    assert_eq!(seen(&example(&[])), "absent, indeterminate");
    assert_eq!(
        seen(&example(&[]).record("_crosstalk-key A 127.0.0.1")),
        "absent, indeterminate"
    );
    assert_eq!(seen(&example(&[&[THIRD]])), "third, 300 s, indeterminate");
}

#[test]
fn records_are_joined_and_others_are_ignored() {
    let (front, back) = FIRST.split_at(20);
    let zone = |name: &str, records: &[&[&str]]| {
        records
            .iter()
            .fold(Zone::new(name), |zone, strings| zone.txt(OWNER, strings))
    };
    let knot = Knot::start([
        zone("split.test", &[&[front, "", back]]),
        zone("mixed.test", &[&["v=spf1 -all"], &[SECOND], &[""]]),
        zone("wrong.test", &[&["v=spf1 -all"]]),
        zone("several.test", &[&["one"], &["two"], &["three"]]),
        zone("short.test", &[&["ed25519:pk=AAAA"]]),
        zone("space.test", &[&[front, " ", back]]),
        Zone::new("bytes.test").record(r#"_crosstalk-key TXT "\255\254""#),
        zone("alias.test", &[]).record("_crosstalk-key 30 CNAME keys.split.test."),
        zone("target.test", &[]).record("_crosstalk-key CNAME _crosstalk-key.split.test."),
    ]);
    assert_eq!(say(&knot, "split.test"), "first, 300 s, indeterminate");
    assert_eq!(say(&knot, "mixed.test"), "second, 300 s, indeterminate");
    for (domain, reason) in [
        (
            "wrong.test",
            "wrong: _crosstalk-key.wrong.test: the TXT record is no key: ",
        ),
        (
            "several.test",
            "wrong: _crosstalk-key.several.test: none of the 3 TXT records is a key; the first: ",
        ),
        (
            "short.test",
            "wrong: _crosstalk-key.short.test: the TXT record is no key: the public key does not have the 32 bytes",
        ),
        ("space.test", "wrong: "),
        (
            "bytes.test",
            "wrong: _crosstalk-key.bytes.test: the TXT record is no key: it is not UTF-8",
        ),
    ] {
        let said = say(&knot, domain);
        assert!(said.starts_with(reason), "{domain}: {said}");
    }
    assert_eq!(say(&knot, "alias.test"), "absent, indeterminate");
    assert_eq!(say(&knot, "target.test"), "first, 300 s, indeterminate");
}

#[test]
fn the_time_to_live_is_the_shortest_on_the_way() {
    let knot = Knot::start([
        example(&[]).record(&format!("_crosstalk-key 77 TXT \"{FIRST}\"")),
        Zone::new("alias.test").record("_crosstalk-key 30 CNAME _crosstalk-key.example.test."),
        Zone::new("long.test").record("_crosstalk-key 3000 CNAME _crosstalk-key.example.test."),
        Zone::new("zero.test").record(&format!("_crosstalk-key 0 TXT \"{FIRST}\"")),
    ]);
    assert_eq!(say(&knot, "example.test"), "first, 77 s, indeterminate");
    assert_eq!(say(&knot, "alias.test"), "first, 30 s, indeterminate");
    assert_eq!(say(&knot, "long.test"), "first, 77 s, indeterminate");
    assert_eq!(say(&knot, "zero.test"), "first, 0 s, indeterminate");
}

/// Keys among so many other records: more than a datagram of 512 bytes, than the 1232 that resolvers ask for, and
/// than any.
#[test]
fn large_answers_come_over_tcp() {
    let filled = |name: &str, records: usize, length: usize| {
        let mut zone = Zone::new(name).txt(OWNER, &[FIRST]).txt(OWNER, &[SECOND]);
        for number in 0..records {
            let text = format!("{number:0>length$}");
            zone = zone.txt(
                OWNER,
                &text.as_bytes().chunks(200).map(str).collect::<Vec<_>>(),
            );
        }
        zone
    };
    fn str(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap_or_default()
    }
    let knot = Knot::start([
        filled("b512.test", 3, 200),
        filled("b1232.test", 8, 200),
        filled("b4096.test", 62, 900),
        filled("toomany.test", 63, 8),
        filled("huge.test", 1, 5000),
        Zone::new("toolong.test").txt(
            OWNER,
            &std::iter::repeat_n("0123456789abcdef", 257).collect::<Vec<_>>(),
        ),
    ]);
    for domain in ["b512.test", "b1232.test", "b4096.test", "huge.test"] {
        assert_eq!(
            say(&knot, domain),
            "first and second, 300 s, indeterminate",
            "{domain}"
        );
    }
    assert_eq!(
        say(&knot, "toomany.test"),
        "wrong: _crosstalk-key.toomany.test: there are more than 64 TXT records"
    );
    assert_eq!(
        say(&knot, "toolong.test"),
        "wrong: _crosstalk-key.toolong.test: the TXT record is no key: it has more than 4096 bytes"
    );
}
