//! The log: what is written into it, and what is proved from it.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, parcel, take, take_and_file, take_new};
use crate::suite::relay::{Relay, wait_for};
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::{
    ChainId, EventDetail, EventKind, LogEntry, LogPlace, LogQuery, SignedCheckpoint, Tree,
    leaf_hash,
};
use crosstalk_protocol::relay::port::{LogHead, LogProof, LogWriter, NewLogEntry};
use crosstalk_protocol::relay::{AcceptOutcome, Attempt, DeliveryState, Handler, Retention};
use crosstalk_protocol::store::Side;
use std::sync::Arc;

fn everything() -> LogQuery {
    LogQuery {
        limit: usize::MAX,
        texts: Some(at(0)),
        ..LogQuery::default()
    }
}

fn entries(store: &Relay) -> Vec<LogEntry> {
    store.log_entries(&everything())
}

fn kinds(entries: &[LogEntry]) -> Vec<(&str, &str)> {
    let line = |e: &LogEntry| e.leaf.id.clone().unwrap_or_default().leak() as &str;
    entries
        .iter()
        .map(|e| (e.leaf.kind.as_str(), line(e)))
        .collect()
}

/// The tree over all leaves, made anew from what was asked for.
fn tree(store: &Relay) -> Tree {
    let leaves = entries(store);
    Tree::of(
        leaves
            .iter()
            .map(|e| leaf_hash(e.leaf.to_string().as_bytes())),
    )
}

pub(crate) fn what_happens_to_messages_is_written_down(store: &mut Relay) {
    let first = parcel(letter("M1").thread("T1"));
    let second = parcel(letter("M2").thread("T1")).to(&[("agent://x", Handler::Http)]);
    take_and_file(store, &[first.clone(), second]);
    store.mark("CLAUDE", &["M1".into()], DeliveryState::Read, at(900));
    // Read after it was delivered: that is no second delivery.
    store.mark(
        "CLAUDE",
        &["M1".into()],
        DeliveryState::Acknowledged,
        at(901),
    );
    let failed = Attempt::Failed {
        reason: "the words of somebody".into(),
    };
    store.attempted("M2", "agent://x", None, &failed, at(902));
    let what = Retention {
        before: Some(at(1_000_000)),
        now: at(903),
        brief_before: None,
        limit: 9,
    };
    assert_eq!(store.erase(what).0, 2);
    let all = entries(store);
    let expected = [
        ("accepted", "M1"),
        ("accepted", "M2"),
        ("delivered", "M1"),
        ("failed", "M2"),
        ("erased", "M1"),
        ("erased", "M2"),
    ];
    assert_eq!(kinds(&all), expected);
    assert_eq!(all[2].leaf.at, at(900));
    assert_eq!(all[0].leaf.canonical, Some(first.arrival.digest));
    let raw = Digest::of(first.arrival.text.as_bytes());
    assert_eq!((all[0].leaf.raw, all[4].leaf.raw), (Some(raw), Some(raw)));
    assert!(all[0].detail.is_none() && all[0].text.is_none());
    let (salt, detail) = all[3].detail.clone().unwrap();
    assert_eq!(detail.get("to"), Some("agent://x"));
    assert!(!detail.to_string().contains("words"));
    assert_eq!(all[3].leaf.detail, Some(detail.digest(&salt)));
    // What is erased is known under its index, and a receipt of it can be given.
    assert!(matches!(
        take(store, &first),
        AcceptOutcome::Known { entry, .. } if entry == LogPlace::first(0)
    ));
}

/// A text whose time is over is not shown, whether it is erased or not.
pub(crate) fn texts_are_shown_until_their_end(store: &mut Relay) {
    take_and_file(
        store,
        &[parcel(letter("M1")).expires(60), parcel(letter("M2"))],
    );
    let texts = |seconds| {
        let asked = LogQuery {
            texts: Some(at(seconds)),
            ..everything()
        };
        let entries = store.log_entries(&asked);
        let texts = entries.into_iter().map(|e| e.text.is_some());
        texts.collect::<Vec<bool>>()
    };
    assert_eq!(texts(59), [true, true]);
    assert_eq!(texts(60), [false, true]);
    let first = entries(store).remove(0);
    assert_eq!(first.parties, Some(("KALLE".into(), "CLAUDE".into())));
}

pub(crate) fn a_better_text_is_an_entry_of_its_own(store: &mut Relay) {
    let plain = parcel(letter("M1").thread("T1"));
    take_new(store, std::slice::from_ref(&plain));
    let mut signed = parcel(
        letter("M1")
            .thread("T1")
            .verdict(VerdictWord::Verified, Some("k")),
    );
    // The same message, in other bytes.
    let text = signed.arrival.text.replace("body: |\n", "\nbody: |\n");
    Arc::make_mut(&mut signed.arrival).text = text;
    assert_eq!(signed.arrival.digest, plain.arrival.digest);
    for _ in 0..2 {
        let again = take(store, &signed);
        assert!(
            matches!(again, AcceptOutcome::Known { entry, .. } if entry == LogPlace::first(0)),
            "{again:?}"
        );
    }
    let all = entries(store);
    assert_eq!(kinds(&all), [("accepted", "M1"), ("accepted", "M1")]);
    assert_eq!(all[0].text, None);
    let text = all[1].text.as_ref().unwrap();
    assert_eq!(all[1].leaf.raw, Some(Digest::of(text.as_bytes())));
    assert_eq!(*text, signed.arrival.text);
}

pub(crate) fn what_is_forgotten_stays_in_the_log(store: &mut Relay) {
    take_and_file(store, &[parcel(letter("M1").thread("T1"))]);
    store
        .person()
        .accept(&[letter("M2").thread("T1").side(Side::Mine).arrival()])
        .unwrap();
    assert_eq!(store.person().forget("T1").unwrap(), 2);
    // What the person wrote was never the relay's.
    assert_eq!(
        kinds(&entries(store)),
        [("accepted", "M1"), ("erased", "M1")]
    );
}

pub(crate) fn entries_are_found(store: &mut Relay) {
    let parcels = [
        parcel(letter("M1").thread("T1").at(10)),
        parcel(letter("M2").thread("T2").at(20)),
        parcel(letter("M3").thread("T1").at(30)),
    ];
    take_new(store, &parcels);
    file_all(store);
    let ids = ["M1".into(), "M2".into(), "M3".into()];
    store.mark("CLAUDE", &ids, DeliveryState::Read, at(40));
    let found = |query: LogQuery| {
        let most = if query.limit == 0 { 99 } else { query.limit };
        let entries = store.log_entries(&LogQuery {
            limit: most,
            ..query
        });
        entries.iter().map(|e| e.index).collect::<Vec<u64>>()
    };
    let all = LogQuery::default;
    assert_eq!(found(all()), [0, 1, 2, 3, 4, 5]);
    assert_eq!(found(LogQuery { from: 4, ..all() }), [4, 5]);
    let part = LogQuery {
        from: 1,
        to: Some(3),
        ..all()
    };
    assert_eq!(found(part), [1, 2]);
    assert_eq!(found(LogQuery { limit: 2, ..all() }), [0, 1]);
    let last = LogQuery {
        limit: 2,
        newest: true,
        ..all()
    };
    assert_eq!(found(last), [4, 5]);
    let id = LogQuery {
        id: Some("M2".into()),
        ..all()
    };
    assert_eq!(found(id), [1, 4]);
    let thread = LogQuery {
        thread: Some("T1".into()),
        ..all()
    };
    assert_eq!(found(thread), [0, 2, 3, 5]);
    let times = LogQuery {
        since: Some(at(20)),
        until: Some(at(30)),
        ..all()
    };
    assert_eq!(found(times), [1, 2]);
    let kinds = vec![EventKind::Delivered, EventKind::Failed];
    assert_eq!(found(LogQuery { kinds, ..all() }), [3, 4, 5]);
}

/// Indexed or not, kept in another text, erased: what the log says about a thread is found.
pub(crate) fn entries_of_a_thread_are_found_whatever_became_of_its_messages(store: &mut Relay) {
    let one = |id: &str| letter(id).thread("T1").at(10);
    let kept = |word, spaces: &str| {
        let mut kept = parcel(one("M2").verdict(word, Some("k")));
        let text = kept
            .arrival
            .text
            .replace("body: |\n", &format!("{spaces}body: |\n"));
        Arc::make_mut(&mut kept.arrival).text = text;
        kept
    };
    take_and_file(
        store,
        &[
            parcel(one("M1")).expires(50),
            parcel(one("M2")),
            parcel(letter("X1").thread("T2").at(10)),
        ],
    );
    // The same message in other bytes, each time with better evidence.
    for (word, spaces) in [
        (VerdictWord::FirstContact, "\n"),
        (VerdictWord::Verified, "\n\n"),
    ] {
        take(store, &kept(word, spaces));
    }
    let what = Retention {
        before: None,
        now: at(60),
        brief_before: None,
        limit: 9,
    };
    assert_eq!(store.erase(what).0, 1);
    take_new(store, &[parcel(one("M3"))]);
    let all = entries(store);
    let is_of = |e: &&LogEntry| e.leaf.id.as_deref().is_some_and(|id| id.starts_with('M'));
    let wanted: Vec<u64> = all.iter().filter(is_of).map(|e| e.index).collect();
    assert_eq!(wanted.len(), 6, "{:?}", kinds(&all));
    let found = |id: Option<&str>, thread: Option<&str>| {
        let query = LogQuery {
            id: id.map(str::to_owned),
            thread: thread.map(str::to_owned),
            ..everything()
        };
        let found = store.log_entries(&query);
        found.iter().map(|e| e.index).collect::<Vec<u64>>()
    };
    assert_eq!(found(None, Some("T1")), wanted);
    let both: Vec<u64> = [found(Some("M1"), None), found(Some("M2"), None)].concat();
    assert_eq!(both.len(), 5, "{both:?}");
    assert_eq!(found(Some("M3"), Some("T1")).len(), 1);
    assert!(found(Some("X1"), Some("T1")).is_empty());
}

/// Stored hashes or not, the proofs are those of the tree.
pub(crate) fn proofs_are_those_of_the_tree(store: &mut Relay) {
    let mut written = 0;
    for size in [1_u64, 255, 257, 600] {
        let new = (written..size).map(|n| NewLogEntry {
            kind: EventKind::Refused,
            at: at(i64::try_from(n).unwrap()),
            id: None,
            canonical: None,
            raw: None,
            detail: None,
        });
        wait_for(store.port().log(new.collect())).unwrap();
        written = size;
        let tree = tree(store);
        let prove = |proof| wait_for(store.port().log_proof(ChainId::FIRST, proof)).unwrap();
        for is_hashed in [false, true] {
            if is_hashed {
                let hashed = wait_for(store.port().hash_log()).unwrap();
                assert_eq!((hashed.size, Some(hashed.root)), (size, tree.root(size)));
            }
            for index in [0, 1, 254, 255, 256, 511, 599]
                .into_iter()
                .filter(|i| *i < size)
            {
                let path = prove(LogProof::Inclusion { index, size }).unwrap();
                assert_eq!(path, tree.inclusion(index, size), "{index} in {size}");
            }
            for from in [1, 2, 255, 256, 257].into_iter().filter(|f| *f <= size) {
                let path = prove(LogProof::Consistency { from, to: size }).unwrap();
                assert_eq!(path, tree.consistency(from, size), "{from} to {size}");
            }
        }
        let (index, to) = (size, size + 1);
        assert_eq!(prove(LogProof::Inclusion { index, size }), None);
        assert_eq!(prove(LogProof::Consistency { from: 1, to }), None);
        assert_eq!(
            wait_for(store.port().log_head(ChainId::FIRST))
                .unwrap()
                .size,
            size
        );
    }
}

/// Two parts of a relay may sign at the same time: whichever comes last, the one over more entries stays.
pub(crate) fn a_checkpoint_that_comes_late_replaces_none(store: &mut Relay) {
    let head = |store: &Relay| {
        wait_for(store.port().log_head(ChainId::FIRST))
            .unwrap()
            .checkpoint
    };
    let keep = |store: &Relay, signed| wait_for(store.port().keep_checkpoint(signed)).unwrap();
    assert_eq!(head(store), None);
    let signed = |size: u64, seconds| SignedCheckpoint {
        size,
        at: at(seconds),
        root: [7; 32],
        note: format!("note {size} {seconds}"),
    };
    assert_eq!(keep(store, signed(1, 1)), signed(1, 1));
    assert_eq!(keep(store, signed(9, 2)), signed(9, 2));
    for late in [signed(5, 3), signed(9, 4), signed(1, 5)] {
        assert_eq!(keep(store, late), signed(9, 2));
        assert_eq!(head(store), Some(signed(9, 2)));
    }
    assert_eq!(keep(store, signed(10, 6)), signed(10, 6));
    assert_eq!(head(store), Some(signed(10, 6)));
}

/// A relay on its own writes the first chain, whatever its key, and there is no other one.
pub(crate) fn the_first_relay_writes_the_first_chain(store: &mut Relay) {
    let writer = LogWriter {
        name: "relay.example".into(),
        key: "relay.example+01+key".into(),
        secret: Digest::of(b"secret"),
        at: at(5),
    };
    for _ in 0..2 {
        let joined = wait_for(store.port().join(writer.clone())).unwrap();
        assert_eq!(
            (joined.chain, joined.secret),
            (ChainId::FIRST, writer.secret)
        );
    }
    let chains = wait_for(store.port().chains()).unwrap();
    let found: Vec<_> = chains
        .iter()
        .map(|c| (c.id, c.key.as_str(), c.since))
        .collect();
    assert_eq!(found, [(ChainId::FIRST, "relay.example+01+key", at(5))]);
    take_and_file(store, &[parcel(letter("M1"))]);
    assert_eq!(entries(store).len(), 1);
    assert_eq!(store.record("M1").unwrap().entry, Some(LogPlace::first(0)));
    // There is nothing in a chain that is not registered.
    let other = ChainId(1);
    let query = LogQuery {
        chain: other,
        ..everything()
    };
    assert_eq!(store.log_entries(&query), []);
    let head = wait_for(store.port().log_head(other)).unwrap();
    assert_eq!(head, LogHead::default());
    let proof = LogProof::Inclusion { index: 0, size: 1 };
    assert_eq!(
        wait_for(store.port().log_proof(other, proof)).unwrap(),
        None
    );
}

pub(crate) fn details_are_kept_beside(store: &mut Relay) {
    let detail = EventDetail::default()
        .with("peer", "ann")
        .with("code", "E-PERM");
    let entry = || NewLogEntry {
        kind: EventKind::Refused,
        at: at(1),
        id: None,
        canonical: None,
        raw: None,
        detail: Some(detail.clone()),
    };
    wait_for(store.port().log(vec![entry(), entry()])).unwrap();
    let all = entries(store);
    let (salt, kept) = all[0].detail.clone().unwrap();
    assert_eq!(kept, detail);
    assert_eq!(all[0].leaf, entry().event().leaf(&salt));
    // The same detail can't be told from another by its digest.
    assert_ne!(all[0].leaf.detail, all[1].leaf.detail);
}
