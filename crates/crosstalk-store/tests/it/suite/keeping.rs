//! What a relay keeps besides messages, and what it does not keep.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, refused, take, take_and_file, take_new};
use crate::suite::relay::{Relay, wait_for};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::port::RegistryChange;
use crosstalk_protocol::relay::{AcceptOutcome, Admission, Agent, Retention, Role, TokenRecord};
use crosstalk_protocol::store::Wait;

fn add(store: &Relay, token: &TokenRecord) -> bool {
    store.change_registry(RegistryChange::AddToken {
        token: token.clone(),
        by: "ops".to_owned(),
    })
}

fn revoke(store: &Relay, name: &str, seconds: i64) -> bool {
    store.change_registry(RegistryChange::RevokeToken {
        name: name.to_owned(),
        by: "ops".to_owned(),
        at: at(seconds),
    })
}

pub(crate) fn tokens_are_kept_and_revoked(store: &mut Relay) {
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
        assert!(add(store, token));
        assert!(!add(store, token));
    }
    let version = store.registry().version;
    assert_eq!(store.registry().tokens, tokens);
    // A name stays with its token, even when that is revoked.
    assert!(revoke(store, "ci", 50));
    assert!(!revoke(store, "ci", 51));
    assert!(!revoke(store, "nobody", 51));
    assert!(!add(store, &token("ci", Role::Admin, None)));
    tokens[1].revoked_at = Some(at(50));
    assert_ne!(store.registry().version, version);
    let version = store.registry().version;
    assert_eq!(store.registry().tokens, tokens);
    // The last use is kept, and an earlier one changes nothing.
    for minute in [60, 40] {
        let uses = [(tokens[0].hash, at(minute)), (Digest::of(b"nobody"), at(1))];
        store.change_registry(RegistryChange::NoteUses(uses.to_vec()));
    }
    tokens[0].last_used_at = Some(at(60));
    assert_eq!(store.registry().tokens, tokens);
    // It makes no new version.
    let news = wait_for(store.port().registry(Some(version))).unwrap();
    assert_eq!(news, None);
    // A pairing code is used once, before it expires.
    let mut waiting = token("browser", Role::Person, Some(400));
    waiting.hash = Digest::of(b"code");
    assert!(add(store, &waiting));
    let version = store.registry().version;
    let pair = |code: &[u8], seconds| RegistryChange::Pair {
        code: Digest::of(code),
        secret: Digest::of(b"paired"),
        at: at(seconds),
    };
    assert!(!store.change_registry(pair(b"code", 400)), "too late");
    assert!(!store.change_registry(pair(b"other", 399)), "another code");
    assert!(store.change_registry(pair(b"code", 399)));
    assert!(!store.change_registry(pair(b"code", 399)), "twice");
    let registry = store.registry();
    assert_ne!(registry.version, version);
    let paired = registry.tokens.iter().find(|t| t.name == "browser");
    let expected = waiting.paired(Digest::of(b"paired"), at(399));
    assert_eq!(paired, Some(&expected));
    // One secret is one token.
    let mut copy = token("copy", Role::Admin, None);
    copy.hash = tokens[1].hash;
    assert!(!add(store, &copy));
}

pub(crate) fn what_agents_can_do_is_kept(store: &mut Relay) {
    let agent = |address: &str, can: &[&str]| Agent {
        address: address.to_owned(),
        capabilities: can.iter().map(|c| (*c).to_owned()).collect(),
    };
    let mut version = store.registry().version;
    for (agent, seconds) in [
        (agent("claude://code/api", &["sql", "code review"]), 1),
        (agent("BOB", &["sql"]), 2),
        (agent("bob", &[]), 2),
    ] {
        let at = at(seconds);
        assert!(store.change_registry(RegistryChange::Declare { agent, at }));
        let news = wait_for(store.port().registry(Some(version))).unwrap();
        version = news.unwrap().version;
        let news = wait_for(store.port().registry(Some(version))).unwrap();
        assert_eq!(news, None);
    }
    let expected = [
        agent("bob", &[]),
        agent("claude://code/api", &["sql", "code review"]),
    ];
    assert_eq!(store.registry().agents, expected);
}

pub(crate) fn attachments_stay_as_long_as_messages_refer_to_them(store: &mut Relay) {
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
    assert!(store.drop_blobs(at(1), 9).is_empty());
    assert_eq!(store.drop_blobs(at(100), 9), [loose]);
    assert!(store.drop_blobs(at(100), 9).is_empty());
    // Gone is gone: it comes as a new one.
    upload(store, loose, 7, at(50));
    // Who sends it again wants to refer to it soon.
    upload(store, loose, 7, at(150));
    assert!(store.drop_blobs(at(100), 9).is_empty());
    file_all(store);
    assert!(store.drop_blobs(at(100), 9).is_empty());
    retire(store, Some(10), 0, 9);
    // They go with the message, however late they came.
    assert!(!store.is_unused(used, None) && store.is_unused(loose, None));
    let mut dropped = store.drop_blobs(at(1), 1);
    dropped.extend(store.drop_blobs(at(1), 9));
    assert!(dropped.len() == 2 && dropped.contains(&used) && dropped.contains(&late));
}

/// A reference grants access if its credential uploaded the attachment, before or after, or could read it.
pub(crate) fn references_grant_access_to_what_their_sender_has(store: &mut Relay) {
    let digest = Digest::of(b"plum");
    let of = |id: &str, peer: &str| Admission {
        peer: peer.into(),
        ..parcel(letter(id).thread("T1").at(1)).blob(digest)
    };
    let by = |store: &mut Relay, by: &str, at| {
        store.upload(digest, 7, by, at);
    };
    let granting = |store: &Relay| -> Vec<String> {
        let all = store.referring(digest, 9);
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
    assert_eq!(store.uploaded_bytes("eve", other), 4096);
    assert_eq!(store.uploaded_bytes("eve", digest), 0);
    assert_eq!(store.uploaded_bytes("bo", other), 0);
    file_all(store);
    // Who looks for readers bounds how many references are looked at.
    let parties = |most| store.blob_use(digest, None, most).parties;
    assert_eq!((parties(0).len(), parties(9).is_empty()), (0, false));
    assert_eq!(store.referring(digest, 1).len(), 1);
    // With the last message of a credential, its upload ends.
    retire(store, Some(10), 0, 9);
    assert_eq!(store.uploaded_bytes("eve", other), 0);
    assert!(!store.is_unused(digest, None));
    by(store, "eve", at(20));
    assert!(store.is_unused(digest, Some("eve")));
    assert!(!store.is_unused(digest, Some("ann")));
}

fn upload(store: &mut Relay, digest: Digest, size: u64, at: Timestamp) {
    // As the messages of these tests are.
    store.upload(digest, size, &parcel(letter("X")).peer, at);
}

fn retire(store: &mut Relay, before: Option<i64>, now: i64, most: usize) -> (u64, bool) {
    let what = Retention {
        before: before.map(at),
        now: at(now),
        brief_before: None,
        limit: most,
    };
    store.erase(what)
}

fn found(store: &Relay, words: &str) -> usize {
    store.search(words).len()
}

pub(crate) fn what_is_too_old_is_erased(store: &mut Relay) {
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
    assert_eq!(retire(store, None, 99, 9), (0, false));
    assert_eq!(retire(store, Some(30), 99, 9), (3, false));
    for id in ["M1", "M2", "M3"] {
        assert_eq!(store.record(id), None, "{id}");
        assert_eq!(store.record(id), None, "{id}");
        assert!(store.deliveries(id).is_empty(), "{id}");
    }
    assert_eq!(inbox(store, "CLAUDE"), ["M4"]);
    assert!(inbox(store, "KALLE").is_empty());
    assert_eq!(found(store, "plum"), 1);
    assert_eq!(store.thread("T2"), None);
    let thread = store.thread("T1").unwrap();
    assert_eq!(
        (thread.messages, thread.waiting, thread.first_at),
        (1, 1, at(30))
    );
    assert_eq!(retire(store, Some(30), 99, 9), (0, false));
}

pub(crate) fn expired_messages_are_erased(store: &mut Relay) {
    let one = |id: &str| parcel(letter(id).thread("T1"));
    take_and_file(
        store,
        &[
            one("M1"),
            one("M2").expires(50),
            one("M3").expires(60).answer_by(80),
        ],
    );
    assert_eq!(retire(store, None, 49, 9), (0, false));
    assert_eq!(retire(store, None, 50, 9).0, 1);
    assert_eq!(store.record("M2"), None);
    take_and_file(store, &[one("M4").expires(50)]);
    assert_eq!(inbox(store, "CLAUDE"), ["M1", "M3", "M4"]);
    assert_eq!(retire(store, None, 99, 9).0, 2);
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    assert_eq!(store.next_deadline(), None);
    assert_eq!(retire(store, None, 99, 9), (0, false));
}

pub(crate) fn what_is_erased_is_known(store: &mut Relay) {
    let since: Timestamp = at(5);
    let parcels = [
        parcel(letter("M1").thread("T1").at(5)),
        parcel(crate::letter::nameless().session("s").at(5)),
    ];
    let places = take_new(store, &parcels);
    file_all(store);
    assert_eq!(retire(store, Some(10), 0, 9).0, 2);
    for (index, (parcel, seq)) in (0..).zip(parcels.iter().zip(&places)) {
        let seq = *seq;
        let ids = parcel.arrival.ids();
        assert_eq!(
            take(store, parcel),
            AcceptOutcome::Known {
                seq,
                entry: LogPlace::first(index),
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
    assert_eq!(store.records_at(&places), []);
    assert_eq!(store.thread("T1"), None);
}

pub(crate) fn erasing_goes_on_where_it_ended(store: &mut Relay) {
    let one = |n: i64| parcel(letter(&format!("M{n}")).thread("T1").at(n)).expires(70 + n);
    take_and_file(store, &(0..10).map(one).collect::<Vec<_>>());
    for (messages, more) in [(3, true), (3, true), (2, false), (0, false)] {
        assert_eq!(retire(store, Some(8), 0, 3), (messages, more));
    }
    assert_eq!(inbox(store, "CLAUDE"), ["M8", "M9"]);
    assert_eq!(retire(store, Some(9), 79, 1), (1, true));
    assert_eq!(retire(store, Some(9), 79, 1), (1, false));
    assert!(inbox(store, "CLAUDE").is_empty());
}

pub(crate) fn what_a_person_keeps_is_not_erased(store: &mut Relay) {
    store
        .person()
        .accept(&[letter("P1").thread("T1").at(1).arrival()])
        .unwrap();
    take_and_file(store, &[parcel(letter("M1").thread("T1").at(2))]);
    assert_eq!(retire(store, Some(50), 0, 9).0, 1);
    assert_eq!(store.ids("T1"), ["P1"]);
    assert_eq!(store.record("P1").unwrap().wait, Wait::Carry);
}
