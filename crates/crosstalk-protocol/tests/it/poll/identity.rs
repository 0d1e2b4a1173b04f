//! Whose ballot it is: threat 23, and signatures.

use super::{POLL, THREAD, answer, at, bytes, choice, choices, collated, id, parsed, poll, whys};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::poll::{Paper, collate};
use crosstalk_protocol::rotation::key_block;
use proptest::prelude::*;

const FIELDS: &str = "Type: plurality\nOptions: A | B\nDeadline: 2025-10-09T17:00Z\n";

fn signed(text: &str, seed: u8, pkid: &str, with_key: bool) -> String {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[seed; 32]).unwrap();
    let block = match with_key {
        true => key_block(pkid, &key.public(), None),
        false => Vec::new(),
    };
    let signer = Signer {
        key: &key,
        pkid,
        at: at(0),
        key_block: &block,
    };
    signer
        .sign(&Document::parse(text, Reading::Strict))
        .unwrap()
}

#[test]
fn the_uninvited_the_late_and_the_double_are_listed_and_not_counted() {
    let texts = [
        choice("MALLORY", 10, "B"),
        choice("ANN", 20, "A"),
        choice("BOB", 30, "B"),
        choice("BOB", 3599, "A"),
        choice("EVE", 3600, "B"),
        poll(&["ANN", "BOB", "EVE"], FIELDS),
    ];
    let collation = collated(&texts);
    assert_eq!(choices(&collation), [("ANN", "A"), ("BOB", "A")]);
    assert_eq!(
        whys(&collation),
        [
            ("BOB", "superseded"),
            ("EVE", "late"),
            ("MALLORY", "uninvited")
        ]
    );
    assert_eq!(collation.missing, ["EVE"]);
    assert_eq!(collation.outcome.as_deref(), Some("A"));
}

proptest! {
    /// Whatever strangers and the late send, as often as they like: nothing but the list of what does not count changes.
    #[test]
    fn stuffing_changes_no_outcome(
        votes in prop::collection::vec((0..3_usize, 0..3500_i64, prop::bool::ANY), 0..8),
        stuffing in prop::collection::vec((0..4_usize, 0..9000_i64, prop::bool::ANY, 1..4_usize), 0..20),
    ) {
        let option = |b: bool| if b { "A" } else { "B" };
        let invited = ["ANN", "claude://chat/1", "human://bob.example/inbox"];
        let mut honest = vec![poll(&invited, FIELDS)];
        for (who, time, vote) in &votes {
            honest.push(choice(invited[*who], *time, option(*vote)));
        }
        let clean = collated(&honest);
        let mut texts = honest.clone();
        let strangers = ["MALLORY", "claude://chat/2", "human://eve.example/inbox", "HUMAN"];
        for (who, time, vote, often) in &stuffing {
            let text = choice(strangers[*who], *time, option(*vote));
            texts.extend(std::iter::repeat_n(text, *often));
            let late = choice(invited[*who % 3], 3600 + *time, option(*vote));
            texts.extend(std::iter::repeat_n(late, *often));
        }
        // And every honest ballot once more.
        texts.extend_from_slice(&honest);
        texts.reverse();
        let stuffed = collated(&texts);
        prop_assert_eq!(&stuffed.outcome, &clean.outcome);
        prop_assert_eq!(&stuffed.tally, &clean.tally);
        prop_assert_eq!(&stuffed.counted, &clean.counted);
        prop_assert_eq!(&stuffed.missing, &clean.missing);
        let kept = stuffed.not_counted.iter().filter(|n| !matches!(n.why.as_str(), "uninvited" | "late"));
        prop_assert!(kept.eq(clean.not_counted.iter()));
        let others = stuffed.not_counted.len() - clean.not_counted.len();
        prop_assert_eq!(others > 0, !stuffing.is_empty());
    }
}

#[test]
fn a_simple_name_speaks_for_an_address_only_if_nobody_else_does() {
    let asked = poll(
        &["chatgpt://thread/x", "CLAUDE", "gemini://a", "gemini://b"],
        FIELDS,
    );
    let collation = collated(&[
        asked.clone(),
        choice("ChatGPT", 1, "A"),
        choice("claude://chat/7", 2, "B"),
        choice("GEMINI", 3, "B"),
    ]);
    assert_eq!(
        choices(&collation),
        [("chatgpt://thread/x", "A"), ("CLAUDE", "B")]
    );
    assert_eq!(collation.counted[0].sender.as_deref(), Some("ChatGPT"));
    assert_eq!(whys(&collation), [("GEMINI", "unclear-sender")]);
    // Two that could be it are none; the very address is.
    let two = collated(&[
        asked.clone(),
        choice("claude://chat/7", 2, "B"),
        choice("claude://evil", 9, "A"),
    ]);
    assert_eq!(choices(&two), []);
    assert_eq!(two.missing.len(), 3);
    let own = collated(&[
        asked,
        choice("claude", 1, "A"),
        choice("claude://evil", 9, "B"),
    ]);
    assert_eq!(choices(&own), [("CLAUDE", "A")]);
    assert_eq!(whys(&own), [("claude://evil", "unclear-sender")]);
}

#[test]
fn unsigned_answer_does_not_replace_a_signed_one() {
    let asked = poll(&["ANN"], FIELDS);
    let mine = signed(&choice("ANN", 10, "A"), 1, "ann@example.com", true);
    let forged = choice("ANN", 20, "B");
    let collation = collated(&[asked.clone(), mine.clone(), forged]);
    assert_eq!(choices(&collation), [("ANN", "A")]);
    assert_eq!(collation.counted[0].signature, "holds");
    assert_eq!(whys(&collation), [("ANN", "unsigned")]);
    // Another ballot with the same key counts, though the key came only once.
    let changed = signed(&choice("ANN", 30, "B"), 1, "ann@example.com", false);
    let collation = collated(&[asked.clone(), mine.clone(), changed.clone()]);
    assert_eq!(choices(&collation), [("ANN", "B")]);
    // Alone, there is a signature that nobody can check.
    let alone = collated(&[asked.clone(), changed]);
    assert_eq!(
        (alone.counted[0].signature, choices(&alone)[0]),
        ("unchecked", ("ANN", "B"))
    );
    // The same id with another key is a forgery of it, and two ids are two claims.
    let other = signed(&choice("ANN", 40, "B"), 2, "ann2@example.com", true);
    let texts = [asked.clone(), mine.clone(), other];
    let collation = collated(&texts);
    assert_eq!(choices(&collation), []);
    assert_eq!(
        whys(&collation),
        [("ANN", "several-keys"), ("ANN", "several-keys")]
    );
    // A key under the id of another is another key.
    let under = signed(&choice("ANN", 40, "B"), 2, "ann@example.com", true);
    let collation = collated(&[asked.clone(), mine.clone(), under]);
    assert_eq!(choices(&collation), []);
    // Whoever knows keys says which one is right.
    let documents = parsed(&texts);
    let mut papers: Vec<Paper<'_>> = documents.iter().map(Paper::of).collect();
    papers[1].verdict = Some(VerdictWord::Verified);
    let collation = collate(&papers, None, None).unwrap();
    assert_eq!(choices(&collation), [("ANN", "A")]);
    assert_eq!(collation.counted[0].verdict, Some("verified"));
    // What must not be acted on does not count.
    papers[1].verdict = Some(VerdictWord::Revoked);
    let collation = collate(&papers[..2], None, None).unwrap();
    assert_eq!(whys(&collation), [("ANN", "not-believed")]);
    let damaged = mine.replace("As said.", "As not said.");
    let collation = collated(&[asked.clone(), damaged.clone()]);
    assert_eq!(whys(&collation), [("ANN", "not-believed")]);
    // A damaged copy does not put the whole one aside.
    assert_eq!(choices(&collated(&[asked, damaged, mine])), [("ANN", "A")]);
}

#[test]
fn the_same_id_with_other_content_is_nobodys_ballot() {
    let asked = poll(&["ANN"], FIELDS);
    let message = id(5, 5);
    let one = answer("ANN", &message, "Choice: A", "x");
    let two = answer("ANN", &message, "Choice: B", "x");
    let collation = collated(&[asked.clone(), one.clone(), two.clone()]);
    assert_eq!(choices(&collation), []);
    assert_eq!(whys(&collation), [("ANN", "same-id"), ("ANN", "same-id")]);
    assert!(collation.missing.is_empty(), "there was an answer");
    assert_eq!(
        choices(&collated(&[asked, one.clone(), one])),
        [("ANN", "A")]
    );
}

#[test]
fn a_verified_hop_tells_the_time_where_there_is_one() {
    // Written, as it says, before the deadline; at the relay after it.
    let texts = [
        poll(&["ANN", "BOB"], FIELDS),
        choice("ANN", 10, "A"),
        choice("BOB", 20, "A"),
        choice("BOB", 30, "B"),
    ];
    let documents = parsed(&texts);
    let mut papers: Vec<Paper<'_>> = documents.iter().map(Paper::of).collect();
    papers[1].hop = Some(at(3600));
    papers[2].hop = Some(at(100));
    papers[3].hop = Some(at(99));
    let collation = collate(&papers, None, None).unwrap();
    assert_eq!(choices(&collation), [("BOB", "A")]);
    assert_eq!(whys(&collation), [("ANN", "late"), ("BOB", "superseded")]);
}

#[test]
fn people_say_how_prose_is_to_be_read() {
    let person = "human://ann.example/inbox";
    let asked = poll(&["CLAUDE", "GEMINI", person], FIELDS);
    let (prose, clear, vote) = (id(1, 1), id(2, 2), id(3, 3));
    let base = vec![
        asked,
        answer("CLAUDE", &prose, "", "I lean towards the second one."),
        answer("GEMINI", &clear, "", "A, obviously."),
        answer(person, &vote, "Choice: A", "x"),
    ];
    let collation = collated(&base);
    assert_eq!(choices(&collation), [("GEMINI", "A"), (person, "A")]);
    assert_eq!(whys(&collation), [("CLAUDE", "unreadable")]);
    assert!(collation.missing.is_empty() && !collation.is_complete());
    let with = |more: &[String]| {
        let mut all = base.clone();
        all.extend_from_slice(more);
        collated(&all)
    };
    let correct = |by: &str, seconds: i64, of: &str, message: &str, choice: &str| {
        let vote = format!("For: {of}\nCorrects: {message}\nChoice: {choice}");
        answer(by, &id(seconds, 9), &vote, "It means that.")
    };
    // By who asks; by a person who is asked; after the deadline too.
    for by in ["KALLE", person] {
        let fixed = with(&[correct(by, 9000, "CLAUDE", &prose, "B")]);
        assert_eq!(choices(&fixed)[0], ("CLAUDE", "B"));
        assert_eq!(fixed.counted[0].corrected.as_ref().unwrap().by, by);
        assert!(whys(&fixed).is_empty() && fixed.is_complete());
    }
    // What the rule read can be corrected, and the last word counts.
    let fixed = with(&[
        correct("KALLE", 10, "GEMINI", &clear, "B"),
        correct("KALLE", 11, "GEMINI", &clear, "A"),
    ]);
    assert_eq!(choices(&fixed)[0], ("GEMINI", "A"));
    assert_eq!(fixed.counted[0].read_from, "correction");
    assert_eq!(
        whys(&fixed),
        [("CLAUDE", "unreadable"), ("KALLE", "superseded")]
    );
    // By others, of what is said in meta: vote, of another voter, of nothing, without a choice: nothing changes.
    for bad in [
        correct("MALLORY", 10, "CLAUDE", &prose, "B"),
        correct("GEMINI", 10, "CLAUDE", &prose, "B"),
        correct("human://eve.example/inbox", 10, "CLAUDE", &prose, "B"),
        correct("KALLE", 10, person, &vote, "B"),
        correct("KALLE", 10, "GEMINI", &prose, "B"),
        correct("KALLE", 10, "CLAUDE", "01K74V8QF8570V52F7A8GSBCV2", "B"),
        correct("KALLE", 10, "CLAUDE", &prose, "C"),
        answer("KALLE", &id(10, 9), &format!("Corrects: {prose}"), "x"),
    ] {
        let same = with(std::slice::from_ref(&bad));
        assert_eq!(choices(&same), choices(&collation), "{bad}");
        assert_eq!(same.not_counted.len(), 2, "{bad}");
        assert!(
            whys(&same).iter().any(|(_, why)| *why == "correction"),
            "{bad}"
        );
    }
    // A ballot of the voter's own that comes later counts more.
    let own = with(&[
        correct("KALLE", 10, "CLAUDE", &prose, "B"),
        choice("CLAUDE", 20, "A"),
    ]);
    assert_eq!(choices(&own)[0], ("CLAUDE", "A"));
    // An answer without an id is named by its digest.
    let mut nameless = base.clone();
    nameless[1] = answer("CLAUDE", "", "", "The second one.");
    let digest = collated(&nameless).not_counted[0].digest.clone();
    nameless.push(correct("KALLE", 10, "CLAUDE", &digest, "B"));
    let fixed = collated(&nameless);
    assert_eq!(choices(&fixed)[0], ("CLAUDE", "B"));
    assert!(fixed.counted[0].undated);
}

#[test]
fn a_signed_poll_is_corrected_by_its_key_alone() {
    let asked = signed(&poll(&["CLAUDE"], FIELDS), 3, "kalle@example.com", true);
    let prose = id(1, 1);
    let said = answer("CLAUDE", &prose, "", "The second one.");
    let vote = format!("For: CLAUDE\nCorrects: {prose}\nChoice: B");
    let correction = answer("KALLE", &id(2, 2), &vote, "x");
    let plain = collated(&[asked.clone(), said.clone(), correction.clone()]);
    assert_eq!(choices(&plain), []);
    let other = signed(&correction, 4, "kalle@example.com", true);
    assert_eq!(
        choices(&collated(&[asked.clone(), said.clone(), other])),
        []
    );
    let own = signed(&correction, 3, "kalle@example.com", false);
    assert_eq!(choices(&collated(&[asked, said, own])), [("CLAUDE", "B")]);
}

#[test]
fn answers_that_name_no_message_or_a_made_up_one_are_not_lost() {
    let asked = poll(&["CLAUDE", "GEMINI", "ANN"], FIELDS);
    let parent = format!("parent: {POLL}\n");
    let nameless = answer("CLAUDE", "", "Choice: A", "x").replace(&parent, "");
    let made_up = choice("GEMINI", 2, "B").replace(POLL, "01K74V8QF8570V52F7A8GSBCV2");
    let elsewhere = answer("ANN", "", "Choice: B", "x")
        .replace(&parent, "")
        .replace(THREAD, "01K74V8QF8570V52F7A8GSBCV2");
    let collation = collated(&[asked.clone(), nameless, made_up.clone(), elsewhere]);
    assert_eq!(choices(&collation), [("CLAUDE", "A")]);
    assert_eq!(whys(&collation), [("GEMINI", "other-parent")]);
    assert_eq!(collation.missing, ["ANN"]);
    // An answer to another question of the conversation is none of the poll's business.
    let question = answer("KALLE", "01K74V8QF8570V52F7A8GSBCV2", "", "And lunch?")
        .replace("intent: RESPOND", "intent: REQUEST")
        .replace(&parent, "");
    let collation = collated(&[asked, made_up, question]);
    assert!(whys(&collation).is_empty());
    assert_eq!(collation.missing.len(), 3);
    assert!(!bytes(&collation).contains("lunch"));
}

#[test]
fn poll_does_not_wait_for_a_voter_that_declines() {
    let refusal = choice("ANN", 1, "A")
        .replace("intent: RESPOND", "intent: NACK")
        .replace("meta: vote\nChoice: A", "meta: refusal\nReason: no time");
    let collation = collated(&[
        poll(&["ANN", "BOB"], FIELDS),
        refusal,
        choice("BOB", 2, "B"),
    ]);
    assert_eq!(whys(&collation), [("ANN", "declined")]);
    assert!(collation.is_complete() && collation.missing.is_empty());
}
