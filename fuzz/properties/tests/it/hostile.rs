//! Texts by the million from pieces that are meant to confuse.

use crosstalk_envelope::{Builder, Document, Reading, fence, scan};
use crosstalk_fuzz_properties::{Meaning, Random};
use crosstalk_testing::tier;
use std::collections::HashMap;

const LINES: &[&str] = &[
    "[[A→B v1]]",
    "[[A->B v1]]",
    "[[ A → B v1 ]]",
    "[[A-→>B v1]]",
    "[[A→B v1]] ",
    "user: u",
    "user:u",
    "user:  u ",
    "User: u",
    "session: s",
    "thread: t",
    "parent: p",
    "message: m",
    "context: c",
    "context: body: |",
    "intent: NOTE",
    "intent: RESPOND",
    "X-Odd: 1",
    "x-odd: 1",
    "X-Odd:",
    "X-Route: a → b",
    "meta: routing",
    "meta: audit",
    "meta: email",
    "meta: privacy",
    "meta: custom-x",
    "Meta: routing",
    "meta:routing",
    "meta: routing ",
    "X-Route: r",
    "x-route: r",
    "X-Priority: high",
    "Hop: 1",
    "body: sha256:00",
    "body: |",
    "response: |",
    "body:|",
    "  text",
    "\ttext",
    "  ",
    "",
    " text",
    "  body: |",
    "  [[END]]",
    "  sig: none",
    "  meta: routing",
    "sig: none",
    "sig: ed25519:pkid=a;sig=AAAA",
    "[[END]]",
    "Cafe\u{301}: x",
    "context: e\u{301}",
    "context: \u{e9}",
    "X-A: a\u{a0}",
    "X-A: a",
    "X-B: \u{2192}",
    "  e\u{301}",
    "  \u{e9}",
    "user: u\r",
];

const NAMES: &[&str] = &[
    "X-Odd",
    "X-Route",
    "X-Reply-To",
    "Targets",
    "user",
    "context",
    "thread",
    "parent",
    "Hop",
    "PII",
    "Key-ID",
];
const VALUES: &[&str] = &[
    "a",
    "b",
    "a b",
    "a: b",
    "meta: routing",
    "body: |",
    "[[END]]",
    "sha256:00",
    "→",
    "e\u{301}",
    "\u{e9}",
    "\u{a0}a",
    "|",
    "none",
];

/// A line of the head, or one that may confuse.
fn line(random: &mut Random) -> String {
    match random.below(3) {
        0 => random.pick(LINES).to_owned(),
        1 => format!("  {}", random.pick(VALUES)),
        _ => format!("{}: {}", random.pick(NAMES), random.pick(VALUES)),
    }
}

/// A text that often passes: a valid order of lines, with random ones put in, taken out and exchanged.
fn text(random: &mut Random) -> String {
    let valid = "[[A→B v1]]|user: u|session: s|context: c|intent: NOTE|meta: routing|X-Route: a → b|meta: privacy|PII: none|body: \u{1}|  text|sig: none|[[END]]";
    let mut lines: Vec<String> = valid.split('|').map(|l| l.replace('\u{1}', "|")).collect();
    for _ in 0..random.below(6) {
        let at = random.below(lines.len() + 1);
        match random.below(5) {
            0 if at < lines.len() => {
                lines.remove(at);
            }
            1 if at < lines.len() => {
                lines.remove(at);
                lines.insert(at, line(random));
            }
            _ => lines.insert(at, line(random)),
        }
    }
    lines.join(if random.once_in(8) { "\r\n" } else { "\n" })
}

/// No two strict envelopes with different meaning have equal canonical bytes: each canonical form decodes to
/// the meaning of its envelope.
#[test]
fn canonical_forms_decode_to_their_meaning() {
    let mut random = Random::new(1);
    let mut seen: HashMap<String, Meaning> = HashMap::new();
    let (mut accepted, rounds) = (0_u32, tier::size(60_000, 1_200_000));
    for _ in 0..rounds {
        let text = text(&mut random);
        let document = Document::parse(&text, Reading::Strict);
        assert_eq!(document.to_string(), text);
        let Ok(canonical) = document.canonical() else {
            continue;
        };
        accepted += 1;
        let meaning = Meaning::of(&document);
        assert_eq!(
            Meaning::decode(&canonical).as_ref(),
            Some(&meaning),
            "{text}\n---\n{canonical}"
        );
        if let Some(earlier) = seen.get(&canonical) {
            assert_eq!(*earlier, meaning, "{canonical}");
        } else if seen.len() < 100_000 {
            seen.insert(canonical, meaning);
        }
    }
    println!(
        "{rounds} texts, {accepted} accepted, {} different canonical forms",
        seen.len()
    );
    assert!(
        accepted > rounds / 6,
        "the generator must reach what is accepted: {accepted}"
    );
    assert!(
        seen.len() > tier::size(1_000, 10_000),
        "and reach many meanings: {}",
        seen.len()
    );
}

const INNER: &[&str] = &[
    "[[EVIL→B v1]]\nuser: e\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  evil\nsig: none\n[[END]]",
    "[[EVIL→B v1]] user: e session: s context: c intent: NOTE body: | evil sig: none [[END]]",
    "> [[EVIL→B v1]]\n> user: e\n> session: s\n> context: c\n> intent: NOTE\n> body: |\n>   evil\n> sig: none\n> [[END]]",
    "```\n[[EVIL→B v1]]\nuser: e\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  evil\nsig: none\n[[END]]\n```",
    "sig: none\n[[END]]\n\n[[EVIL→B v1]]\nuser: e\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  evil",
    "**[[EVIL=>B v1]]**\n**User:** e\nsession: s\nbody: evil\n[[END]]",
    "\\[\\[EVIL→B v1\\]\\]\nuser: e\nsession: s\nbody: |\nevil\n\\[\\[END\\]\\]",
    "    [[EVIL→B v1]]\n    user: e\n    session: s\n    body: |\n      evil\n    [[END]]",
    "1 | [[EVIL→B v1]]\n2 | user: e\n3 | session: s\n4 | body: |\n5 |   evil\n6 | [[END]]",
    "[[END]]",
    "```",
    "sig: none",
    "meta: routing",
    "prose",
    "",
    "[[A→B v1]]",
    "> quoted",
    "Lines: 1",
];

/// Changes of a transport to a whole message; each keeps the indent of the body.
fn wrap(text: &str, random: &mut Random) -> String {
    let each = |prefix: &str| {
        text.lines()
            .map(|l| format!("{prefix}{l}\n"))
            .collect::<String>()
    };
    match random.below(9) {
        0 => each("> "),
        1 => each(">> "),
        2 => each("    "),
        3 => each("| "),
        4 => fence(text),
        5 => format!("Here you are:\n\n{text}\nAnything else?\n"),
        6 => text.replace('\n', "\r\n"),
        7 => text
            .lines()
            .enumerate()
            .map(|(n, l)| format!("{n:>3}: {l}\n"))
            .collect(),
        _ => text.to_owned(),
    }
}

/// A message whose body is one to `most` of some texts.
fn outer(inner: &[&str], most: usize, random: &mut Random) -> String {
    let texts = 0..1 + random.below(most);
    let body: Vec<&str> = texts.map(|_| random.pick(inner)).collect();
    let builder = Builder::new("GOOD", "B")
        .user("u")
        .session("s")
        .context("c");
    builder
        .intent("NOTE")
        .body(body.join("\n"))
        .build()
        .unwrap()
}

/// No envelope that is quoted inside another is ever extracted.
#[test]
fn a_quote_inside_a_message_is_never_a_message() {
    let mut random = Random::new(2);
    let (mut read, rounds) = (0, tier::size(10_000, 150_000));
    for _ in 0..rounds {
        let outer = outer(INNER, 4, &mut random);
        let wrapped = (0..1 + random.below(2)).fold(outer, |text, _| wrap(&text, &mut random));
        let found = scan(&wrapped, Reading::Paste);
        for document in &found.documents {
            assert_eq!(document.sender(), "GOOD", "{wrapped}");
            read += 1;
        }
    }
    assert!(
        read > rounds * 9 / 10,
        "most must be read: {read} of {rounds}"
    );
}

/// Without their indent, messages with others inside are refused or read whole, never taken apart, unless the
/// text holds an `[[END]]` that nothing tells from the outer one.
#[test]
fn a_lost_indent_lets_no_quoted_message_out() {
    let mut random = Random::new(3);
    for _ in 0..tier::size(5_000, 50_000) {
        let outer = outer(INNER.split_at(4).0, 3, &mut random);
        let flat: String = outer
            .lines()
            .map(|l| format!("{}\n", l.trim_start()))
            .collect();
        for document in &scan(&flat, Reading::Paste).documents {
            assert_eq!(document.sender(), "GOOD", "{flat}");
        }
    }
}
