//! What a relay keeps besides messages, and what it does not keep.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, refused, take, take_and_file, take_new};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Agent, RelayStore, Retention, RetiredCount, Role, TokenRecord, Upload,
};
use crosstalk_protocol::store::{Page, Search, Wait};

pub(crate) fn tokens_are_kept_and_revoked(store: &mut dyn RelayStore) {
    let token = |name: &str, role, ends: Option<i64>| TokenRecord {
        name: name.to_owned(),
        hash: Digest::of(name.as_bytes()),
        role,
        addresses: vec!["claude://code/*".to_owned(), "ANN".to_owned()],
        created_at: at(1),
        expires_at: ends.map(at),
        courier: Vec::new(),
        revoked_at: None,
        last_used_at: None,
    };
    let mut tokens = [
        token("ann", Role::Person, None),
        token("ci", Role::Agent, Some(99)),
        token("root", Role::Admin, None),
    ];
    tokens[2].addresses.clear();
    for token in tokens.iter().rev() {
        assert!(store.add_token(token, "ops").unwrap());
        assert!(!store.add_token(token, "ops").unwrap());
    }
    assert_eq!(store.tokens().unwrap(), tokens);
    // A name stays with its token, even when that is revoked.
    assert!(store.revoke_token("ci", "ops", at(50)).unwrap());
    assert!(!store.revoke_token("ci", "ops", at(51)).unwrap());
    assert!(!store.revoke_token("nobody", "ops", at(51)).unwrap());
    assert!(
        !store
            .add_token(&token("ci", Role::Admin, None), "ops")
            .unwrap()
    );
    tokens[1].revoked_at = Some(at(50));
    assert_eq!(store.tokens().unwrap(), tokens);
    // The last use is kept, and an earlier one changes nothing.
    for minute in [60, 40] {
        let uses = [(tokens[0].hash, at(minute)), (Digest::of(b"nobody"), at(1))];
        store.note_token_uses(&uses).unwrap();
    }
    tokens[0].last_used_at = Some(at(60));
    assert_eq!(store.tokens().unwrap(), tokens);
    // One secret is one token.
    let mut copy = token("copy", Role::Admin, None);
    copy.hash = tokens[1].hash;
    assert!(!store.add_token(&copy, "ops").unwrap());
}

pub(crate) fn what_agents_can_do_is_kept(store: &mut dyn RelayStore) {
    let agent = |address: &str, can: &[&str]| Agent {
        address: address.to_owned(),
        capabilities: can.iter().map(|c| (*c).to_owned()).collect(),
    };
    store
        .declare(&agent("claude://code/api", &["sql", "code review"]), at(1))
        .unwrap();
    store.declare(&agent("BOB", &["sql"]), at(2)).unwrap();
    store.declare(&agent("bob", &[]), at(3)).unwrap();
    let expected = [
        agent("bob", &[]),
        agent("claude://code/api", &["sql", "code review"]),
    ];
    assert_eq!(store.agents().unwrap(), expected);
}

pub(crate) fn attachments_stay_as_long_as_messages_refer_to_them(store: &mut dyn RelayStore) {
    let [used, loose, late] = ["used", "loose", "late"].map(|name| Digest::of(name.as_bytes()));
    for digest in [used, loose] {
        upload(store, digest, 7, at(1));
        upload(store, digest, 7, at(1));
    }
    // One that is referred to before it comes, by a message that is not filed.
    take_new(
        store,
        &[parcel(letter("M1").thread("T1").at(1))
            .blob(used)
            .blob(late)
            .blob(used)],
    );
    upload(store, late, 9, at(2));
    assert!(store.drop_blobs(at(1), 9).unwrap().is_empty());
    assert_eq!(store.drop_blobs(at(100), 9).unwrap(), [loose]);
    assert!(store.drop_blobs(at(100), 9).unwrap().is_empty());
    // Gone is gone: it comes as a new one.
    upload(store, loose, 7, at(50));
    // Who sends it again wants to refer to it soon.
    upload(store, loose, 7, at(150));
    assert!(store.drop_blobs(at(100), 9).unwrap().is_empty());
    file_all(store);
    assert!(store.drop_blobs(at(100), 9).unwrap().is_empty());
    retire(store, Some(10), 0, 9);
    // They go with the message, however late they came.
    assert!(!store.is_unused(used, None).unwrap() && store.is_unused(loose, None).unwrap());
    let mut dropped = store.drop_blobs(at(1), 1).unwrap();
    dropped.extend(store.drop_blobs(at(1), 9).unwrap());
    assert!(dropped.len() == 2 && dropped.contains(&used) && dropped.contains(&late));
}

/// A reference grants access if its credential uploaded the attachment, before or after, or could read it.
pub(crate) fn references_grant_access_to_what_their_sender_has(store: &mut dyn RelayStore) {
    let digest = Digest::of(b"plum");
    let of = |id: &str, peer: &str| Admission {
        peer: peer.into(),
        ..parcel(letter(id).thread("T1").at(1)).blob(digest)
    };
    let by = |store: &mut dyn RelayStore, by: &str, at| {
        let upload = Upload {
            digest,
            size: 7,
            by,
        };
        store.add_blob(&upload, at).unwrap();
    };
    let granting = |store: &dyn RelayStore| -> Vec<String> {
        let all = store.referring(digest, 9).unwrap();
        all.into_iter().map(|r| r.id).collect()
    };
    take_new(store, &[of("E1", "eve"), of("A1", "ann")]);
    by(store, "ann", at(2));
    assert_eq!(granting(store), ["A1"]);
    let passed_on = Admission {
        readable: vec![digest],
        ..of("B1", "bo")
    };
    take_new(store, &[of("A2", "ann"), passed_on, of("E2", "eve")]);
    assert_eq!(granting(store), ["B1", "A2", "A1"]);
    by(store, "eve", at(3));
    assert_eq!(granting(store).len(), 5);
    // A small one takes up a block of the disk; one's own counts once.
    let other = Digest::of(b"other");
    assert_eq!(store.uploaded_bytes("eve", other).unwrap(), 4096);
    assert_eq!(store.uploaded_bytes("eve", digest).unwrap(), 0);
    assert_eq!(store.uploaded_bytes("bo", other).unwrap(), 0);
    file_all(store);
    // Who looks for readers bounds how many references are looked at.
    let parties = |most| store.referring_parties(digest, at(9), most).unwrap();
    assert_eq!((parties(0).len(), parties(9).is_empty()), (0, false));
    assert_eq!(store.referring(digest, 1).unwrap().len(), 1);
    // With the last message of a credential, its upload ends.
    retire(store, Some(10), 0, 9);
    assert_eq!(store.uploaded_bytes("eve", other).unwrap(), 0);
    assert!(!store.is_unused(digest, None).unwrap());
    by(store, "eve", at(20));
    assert!(store.is_unused(digest, Some("eve")).unwrap());
    assert!(!store.is_unused(digest, Some("ann")).unwrap());
}

fn upload(store: &mut dyn RelayStore, digest: Digest, size: u64, at: Timestamp) {
    // As the messages of these tests are.
    let by = &parcel(letter("X")).peer;
    store.add_blob(&Upload { digest, size, by }, at).unwrap();
}

fn retire(store: &mut dyn RelayStore, before: Option<i64>, now: i64, most: usize) -> RetiredCount {
    let what = Retention {
        before: before.map(at),
        now: at(now),
        brief_before: None,
        limit: most,
    };
    store.retire(&what).unwrap()
}

fn found(store: &dyn RelayStore, words: &str) -> usize {
    let search = Search::parse(words).unwrap();
    store.search(&search, Page::first(99)).unwrap().items.len()
}

pub(crate) fn what_is_too_old_is_erased(store: &mut dyn RelayStore) {
    let one = |id: &str, seconds| letter(id).thread("T1").body("A plum.").at(seconds);
    let answer = one("M2", 20)
        .parent("M1")
        .intent("RESPOND")
        .between("CLAUDE", "KALLE");
    let alone = letter("M3").thread("T2").at(25).body("A plum.");
    take_and_file(
        store,
        &[one("M1", 10), answer, alone, one("M4", 30)].map(parcel),
    );
    assert_eq!(retire(store, None, 99, 9), RetiredCount::default());
    let gone = retire(store, Some(30), 99, 9);
    assert_eq!((gone.messages, gone.more), (3, false));
    for id in ["M1", "M2", "M3"] {
        assert_eq!(store.message(id).unwrap(), None, "{id}");
        assert_eq!(store.record(id).unwrap(), None, "{id}");
        assert!(store.deliveries(id).unwrap().is_empty(), "{id}");
    }
    assert_eq!(inbox(store, "CLAUDE"), ["M4"]);
    assert!(inbox(store, "KALLE").is_empty());
    assert_eq!(found(store, "plum"), 1);
    assert_eq!(store.thread("T2").unwrap(), None);
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!(
        (thread.messages, thread.waiting, thread.first_at),
        (1, 1, at(30))
    );
    assert_eq!(retire(store, Some(30), 99, 9), RetiredCount::default());
}

pub(crate) fn expired_messages_are_erased(store: &mut dyn RelayStore) {
    let one = |id: &str| parcel(letter(id).thread("T1"));
    take_and_file(
        store,
        &[
            one("M1"),
            one("M2").expires(50),
            one("M3").expires(60).answer_by(80),
        ],
    );
    take_new(store, &[one("M4").expires(50)]);
    assert_eq!(retire(store, None, 49, 9), RetiredCount::default());
    // What is not filed yet has its turn when it is.
    assert_eq!(retire(store, None, 50, 9).messages, 1);
    assert_eq!(store.message("M2").unwrap(), None);
    file_all(store);
    assert_eq!(inbox(store, "CLAUDE"), ["M1", "M3", "M4"]);
    assert_eq!(retire(store, None, 99, 9).messages, 2);
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    assert_eq!(store.next_deadline().unwrap(), None);
    assert_eq!(retire(store, None, 99, 9), RetiredCount::default());
}

pub(crate) fn what_is_erased_is_known(store: &mut dyn RelayStore) {
    let since: Timestamp = at(5);
    let parcels = [
        parcel(letter("M1").thread("T1").at(5)),
        parcel(crate::letter::nameless().session("s").at(5)),
    ];
    let places = take_new(store, &parcels);
    file_all(store);
    assert_eq!(retire(store, Some(10), 0, 9).messages, 2);
    for (index, (parcel, seq)) in (0..).zip(parcels.iter().zip(&places)) {
        let seq = *seq;
        let ids = parcel.arrival.ids();
        assert_eq!(
            take(store, parcel),
            AcceptOutcome::Known {
                seq,
                index,
                since,
                ids
            }
        );
    }
    let other = parcel(letter("M1").thread("T1").body("Other."));
    assert_eq!(refused(store, &other).0, "E-PERM");
    // Not even a better copy brings it back.
    let verified = letter("M1")
        .thread("T1")
        .verdict(crosstalk_protocol::VerdictWord::Verified, None);
    assert!(matches!(
        take(store, &parcel(verified)),
        AcceptOutcome::Known { .. }
    ));
    assert_eq!(file_all(store).filed, 0);
    assert_eq!(store.records_at(&places).unwrap(), []);
    assert_eq!(store.thread("T1").unwrap(), None);
}

pub(crate) fn erasing_goes_on_where_it_ended(store: &mut dyn RelayStore) {
    let one = |n: i64| parcel(letter(&format!("M{n}")).thread("T1").at(n)).expires(70 + n);
    take_and_file(store, &(0..10).map(one).collect::<Vec<_>>());
    for (messages, more) in [(3, true), (3, true), (2, false), (0, false)] {
        assert_eq!(
            retire(store, Some(8), 0, 3),
            RetiredCount { messages, more }
        );
    }
    assert_eq!(inbox(store, "CLAUDE"), ["M8", "M9"]);
    assert_eq!(
        retire(store, Some(9), 79, 1),
        RetiredCount {
            messages: 1,
            more: true
        }
    );
    assert_eq!(
        retire(store, Some(9), 79, 1),
        RetiredCount {
            messages: 1,
            more: false
        }
    );
    assert!(inbox(store, "CLAUDE").is_empty());
}

pub(crate) fn what_a_person_keeps_is_not_erased(store: &mut dyn RelayStore) {
    store
        .accept(&[letter("P1").thread("T1").at(1).arrival()])
        .unwrap();
    take_and_file(store, &[parcel(letter("M1").thread("T1").at(2))]);
    assert_eq!(retire(store, Some(50), 0, 9).messages, 1);
    assert_eq!(crate::suite::ids(store, "T1"), ["P1"]);
    assert_eq!(crate::suite::wait(store, "P1"), Wait::Carry);
}
