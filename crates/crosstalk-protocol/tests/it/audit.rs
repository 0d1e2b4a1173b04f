//! Bundles that somebody changed, proofs that belong to something else, logs that were rewritten.

use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::audit::bundle::{
    self, Against, BundleContents, BundleFault, BundleReport, Wrong,
};
use crosstalk_protocol::audit::{
    Checkpoint, Event, EventDetail, EventKind, Hash, Leaf, LogEntry, LogReceipt, NoteKey,
    ReceiptError, Tree, leaf_hash,
};
use crosstalk_testing::tier;
use std::collections::BTreeMap;

const ORIGIN: &str = "relay.example";
const MESSAGES: u64 = 200;

type Files = BTreeMap<String, Vec<u8>>;

fn key(seed: u8) -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[seed; 32]).unwrap()
}

fn public(seed: u8) -> NoteKey {
    NoteKey::new(ORIGIN, key(seed).public()).unwrap()
}

fn message(n: u64) -> String {
    format!(
        "[[KALLE→CLAUDE v1]]\nuser: kalle\nthread: T{}\nmessage: M{n:04}\ncontext: c\nintent: REQUEST\n\
         body: |\n  Question {n}?\nsig: none\n[[END]]\n",
        n / 10
    )
}

fn accepted(n: u64, text: &str) -> Event<'static> {
    let canonical = Document::parse(text, Reading::Strict).digest().unwrap();
    Event {
        id: Some(format!("M{n:04}").leak()),
        canonical: Some(canonical),
        raw: Some(Digest::of(text.as_bytes())),
        ..Event::new(EventKind::Accepted, time(n))
    }
}

fn time(n: u64) -> Timestamp {
    Timestamp::from_millis(1_763_294_400_000 + i64::try_from(n).unwrap() * 1_001)
}

/// Messages that were taken, delivered, and one that was erased.
fn log() -> Vec<LogEntry> {
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut add = |event: Event<'_>, text: Option<String>| {
        let index = u64::try_from(entries.len()).unwrap();
        let salt = Digest::of(&index.to_be_bytes()).0[..16].to_vec();
        entries.push(LogEntry {
            index,
            leaf: event.leaf(&salt),
            detail: event.detail.map(|d| (salt, d)),
            text,
            parties: None,
        });
    };
    for n in 0..MESSAGES {
        let text = message(n);
        let event = accepted(n, &text);
        add(event.clone(), (n != 7).then_some(text));
        let detail = EventDetail::default()
            .with("to", "CLAUDE")
            .with("by", "inbox");
        let (kind, detail) = match n {
            7 => (
                EventKind::Erased,
                EventDetail::default().with("why", "retention"),
            ),
            _ => (EventKind::Delivered, detail),
        };
        if n % 4 == 3 {
            add(
                Event {
                    kind,
                    detail: Some(detail),
                    ..event
                },
                None,
            );
        }
    }
    // A detail that is gone.
    entries.last_mut().unwrap().detail = None;
    entries
}

fn tree(log: &[LogEntry]) -> Tree {
    Tree::of(log.iter().map(|e| leaf_hash(e.leaf.to_string().as_bytes())))
}

fn note(log: &[LogEntry], size: usize, seed: u8) -> String {
    let size = u64::try_from(size).unwrap();
    let root = tree(log).root(size).unwrap();
    let origin = ORIGIN.to_owned();
    let checkpoint = Checkpoint { origin, size, root };
    checkpoint.sign(&key(seed)).unwrap()
}

fn files(contents: &BundleContents<'_>) -> Files {
    let files = bundle::write(contents).into_iter();
    files
        .map(|(name, text)| (name, text.into_bytes()))
        .collect()
}

fn whole(log: &[LogEntry], seed: u8) -> Files {
    files(&BundleContents {
        key: &public(seed),
        note: &note(log, log.len(), seed),
        entries: log,
        proofs: None,
        consistency: &[],
    })
}

/// A few entries with their proofs, and a proof from an older checkpoint.
fn part(log: &[LogEntry]) -> Files {
    let (tree, size) = (tree(log), u64::try_from(log.len()).unwrap());
    let chosen: Vec<LogEntry> = [0, 3, 4, 100, 249].map(|i: usize| log[i].clone()).into();
    let proofs: Vec<Vec<Hash>> = chosen
        .iter()
        .map(|e| tree.inclusion(e.index, size))
        .collect();
    let from = |from: u64| (from, tree.root(from).unwrap(), tree.consistency(from, size));
    files(&BundleContents {
        key: &public(1),
        note: &note(log, log.len(), 1),
        entries: &chosen,
        proofs: Some(&proofs),
        consistency: &[from(128), from(101)],
    })
}

fn check(files: &Files, held: &[String]) -> Result<BundleReport, Wrong> {
    let key = public(1);
    let against = Against::new(Some(&key), held);
    bundle::check(files, &against, &mut |_, _| {})
}

#[test]
fn a_bundle_holds_as_it_was_written() {
    let log = log();
    let checked = check(&whole(&log, 1), &[note(&log, 120, 1)]).unwrap();
    assert!(checked.is_all);
    assert_eq!((checked.messages, checked.erased), (MESSAGES - 1, 1));
    assert_eq!((checked.withheld, checked.extended), (1, 1));
    assert_eq!(checked.kinds[&EventKind::Accepted], MESSAGES);
    let some = check(&part(&log), &[note(&log, 101, 1), note(&log, 250, 1)]).unwrap();
    assert!(!some.is_all && some.messages == 3, "{some:?}");
}

/// Whether every bit is tried, or one for each byte.
fn is_thorough() -> bool {
    std::env::var_os("CROSSTALK_EVERY_BIT").is_some()
}

/// One of the messages whose cuts are tried at both ends only.
fn is_plain(name: &str) -> bool {
    name.starts_with("messages/") && !name.ends_with("0.aict")
}

/// Changes one file in every way that is wanted, and looks whether it is noticed. Half of the work each for two threads.
///
/// A sample is one of `step` bytes, and both ends of every file.
fn disturb(files: &Files, step: usize, bits: impl Fn(&str, usize) -> Vec<u8> + Sync) {
    std::thread::scope(|scope| {
        for half in 0..2 {
            let bits = &bits;
            scope.spawn(move || {
                for (name, bytes) in files {
                    let mut changed = files.clone();
                    for place in (half..bytes.len()).step_by(2) {
                        let is_end = place < 2 || place + 2 >= bytes.len();
                        if !is_end && !(place / 2).is_multiple_of(step) {
                            continue;
                        }
                        for bit in bits(name, place) {
                            changed.get_mut(name).unwrap()[place] ^= 1 << bit;
                            let found = check(&changed, &[]);
                            assert!(found.is_err(), "bit {bit} of byte {place} of {name}");
                            changed.get_mut(name).unwrap()[place] ^= 1 << bit;
                        }
                        if !is_thorough() && is_plain(name) && !is_end {
                            continue;
                        }
                        changed.insert(name.clone(), bytes[..place].to_vec());
                        assert!(check(&changed, &[]).is_err(), "{name} cut at {place}");
                        changed.insert(name.clone(), bytes.clone());
                    }
                    changed.remove(name);
                    assert!(check(&changed, &[]).is_err(), "without {name}");
                }
            });
        }
    });
}

/// Every cut and every bit of the key, the checkpoint, the proofs and a part of the log; a fifth of them in the default
/// run.
#[test]
fn every_bit_of_a_part_counts() {
    disturb(&part(&log()), tier::size(5, 1), |_, _| (0..8).collect());
}

/// Every cut of the lists, and of every tenth message; every byte of everything with one bit of it; of the key and the
/// checkpoint every bit. With `CROSSTALK_EVERY_BIT` set, every bit and every cut of every file, which takes minutes. Of the
/// digests that decide about a text, every bit. The default run tries one of 40 bytes and cuts, and both ends of each file.
#[test]
fn every_byte_of_a_bundle_of_200_messages_counts() {
    let files = whole(&log(), 1);
    let step = match is_thorough() {
        true => 1,
        false => tier::size(40, 1),
    };
    disturb(&files, step, |name, place| {
        match is_thorough() || name.len() < 8 {
            true if name != "entries" && name != "details" || is_thorough() => (0..8).collect(),
            _ => vec![u8::try_from(place * 5 % 8).unwrap()],
        }
    });
    for bytes in files.values() {
        let whole = Digest::of(bytes);
        let mut changed = bytes.clone();
        for place in (0..bytes.len().min(2000)).step_by(step) {
            for bit in 0..8 {
                changed[place] ^= 1 << bit;
                assert_ne!(Digest::of(&changed), whole);
                changed[place] ^= 1 << bit;
            }
        }
    }
}

/// Everything rewritten so that it fits together, by somebody who lacks the key of the relay.
#[test]
fn a_rewritten_log_needs_the_key() {
    let mut log = log();
    let text = message(900);
    log[10].leaf = accepted(900, &text).leaf(&[]);
    log[10].text = Some(text);
    let forged = whole(&log, 2);
    let alone = bundle::check(&forged, &Against::default(), &mut |_, _| {});
    assert!(alone.is_ok(), "it fits together: {alone:?}");
    let found = check(&forged, &[]).unwrap_err();
    assert_eq!(
        (found.file.as_str(), found.trouble),
        ("key", BundleFault::Broken)
    );
    // With the true key put into its place.
    let mut forged = forged;
    forged.insert("key".into(), format!("{}\n", public(1)).into_bytes());
    let found = check(&forged, &[]).unwrap_err();
    assert_eq!(found.file, "checkpoint");
    // With the true checkpoint, too.
    let honest = super::audit::log();
    let true_note = note(&honest, honest.len(), 1);
    forged.insert("checkpoint".into(), true_note.into_bytes());
    let found = check(&forged, &[]).unwrap_err();
    assert_eq!(
        (found.file.as_str(), found.trouble),
        ("entries", BundleFault::Broken)
    );
}

/// Somebody who has the key rewrites the log, and somebody else holds an older checkpoint.
#[test]
fn an_older_checkpoint_finds_what_was_rewritten() {
    let honest = log();
    let held = note(&honest, 180, 1);
    let mut forged = log();
    let text = message(900);
    forged[10].leaf = accepted(900, &text).leaf(&[]);
    forged[10].text = Some(text);
    for files in [whole(&forged, 1), {
        // A part, with proofs of the forged tree.
        let tree = tree(&forged);
        let size = u64::try_from(forged.len()).unwrap();
        files(&BundleContents {
            key: &public(1),
            note: &note(&forged, forged.len(), 1),
            entries: &forged[..1],
            proofs: Some(&[tree.inclusion(0, size)]),
            consistency: &[(180, tree.root(180).unwrap(), tree.consistency(180, size))],
        })
    }] {
        assert!(check(&files, &[]).is_ok());
        let found = check(&files, std::slice::from_ref(&held)).unwrap_err();
        let BundleFault::Fork(fork) = &found.trouble else {
            panic!("{found:?}")
        };
        assert_eq!(fork.held, held);
        assert_eq!(fork.shown.as_bytes(), files["checkpoint"]);
    }
    // After what is held, nothing is proved.
    let mut later = log();
    later[200].leaf.at = time(5000);
    assert!(check(&whole(&later, 1), std::slice::from_ref(&held)).is_ok());
    // Cut.
    let cut = whole(&honest[..170], 1);
    let found = check(&cut, std::slice::from_ref(&held)).unwrap_err();
    assert!(found.what.contains("cut"), "{found}");
    // The same size, another root.
    let mut same = log()[..180].to_vec();
    same[3].leaf.at = time(7000);
    let found = check(&whole(&same, 1), &[held]).unwrap_err();
    assert!(matches!(found.trouble, BundleFault::Fork(_)), "{found:?}");
}

/// A proof for another message proves nothing: the leaf is that of the message itself.
#[test]
fn proofs_are_not_swapped() {
    let log = log();
    let tree = tree(&log);
    let size = u64::try_from(log.len()).unwrap();
    let note = note(&log, log.len(), 1);
    let receipt = |entry: &LogEntry| LogReceipt {
        leaf: entry.leaf.clone(),
        index: entry.index,
        path: tree.inclusion(entry.index, size),
        note: note.clone(),
    };
    let taken: Vec<&LogEntry> = log.iter().filter(|e| e.text.is_some()).take(20).collect();
    for one in &taken {
        let mine = LogReceipt::parse(&receipt(one).to_string()).unwrap();
        assert!(mine.open(&public(1)).is_ok());
        assert_eq!(
            mine.open(&public(2))
                .unwrap_err()
                .to_string()
                .split(':')
                .next(),
            Some("its checkpoint")
        );
        for other in &taken {
            let text = other.text.as_ref().unwrap();
            let is_same = one.index == other.index;
            assert_eq!(mine.is_of(text).is_ok(), is_same);
            let mut swapped = receipt(one);
            swapped.path = receipt(other).path;
            assert_eq!(swapped.open(&public(1)).is_ok(), is_same);
            let mut swapped = receipt(one);
            swapped.leaf = other.leaf.clone();
            let opened = swapped.open(&public(1));
            assert_eq!(opened.is_ok(), is_same, "{opened:?}");
        }
        let text = one.text.as_ref().unwrap();
        assert_eq!(
            mine.is_of(&text.replace("Question", "question")),
            Err(ReceiptError::Message)
        );
        assert_eq!(mine.is_of(&format!("{text}\n")), Err(ReceiptError::Text));
    }
    let delivered = log.iter().find(|e| e.leaf.kind == EventKind::Delivered);
    let one = receipt(delivered.unwrap());
    assert_eq!(one.is_of(&message(3)), Err(ReceiptError::Kind));
    // In a bundle: the proofs, the leaves and the messages of two entries change places.
    let part = part(&log);
    for name in ["proofs", "entries", "details"] {
        let text = String::from_utf8(part[name].clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let last = lines.len() - 1;
        if last == 0 {
            continue;
        }
        lines.swap(last, last - 1);
        let mut swapped = part.clone();
        swapped.insert(name.into(), (lines.join("\n") + "\n").into_bytes());
        assert!(check(&swapped, &[]).is_err(), "{name}");
    }
    let mut swapped = whole(&log, 1);
    let (a, b) = (
        swapped["messages/0.aict"].clone(),
        swapped["messages/1.aict"].clone(),
    );
    swapped.insert("messages/0.aict".into(), b);
    swapped.insert("messages/1.aict".into(), a);
    assert_eq!(check(&swapped, &[]).unwrap_err().file, "messages/0.aict");
    let mut more = whole(&log, 1);
    more.insert("messages/3000.aict".into(), message(1).into_bytes());
    assert_eq!(check(&more, &[]).unwrap_err().file, "messages/3000.aict");
    more.remove("messages/3000.aict");
    more.insert("README".into(), Vec::new());
    assert_eq!(check(&more, &[]).unwrap_err().file, "README");
}

/// The proof of a million entries, as it goes over the network: without its checkpoint, at most 1 KB.
#[test]
fn a_proof_among_a_million_is_at_most_a_kilobyte() {
    let path = vec![[0xff; 32]; 20];
    let leaf: Leaf = accepted(1, &message(1)).leaf(&[]);
    let receipt = LogReceipt {
        leaf,
        index: 999_999,
        path,
        note: String::new(),
    };
    let text = receipt.to_string();
    let proof: String = text.lines().filter(|l| !l.starts_with("extra")).collect();
    assert!(proof.len() + 23 <= 1000, "{}", proof.len());
}
