//! What a store keeps about consents: who gave which, what is kept under it, and what its end takes with it.

use crate::at;
use crate::letter::{Letter, letter};
use crate::parcel::{
    Parcel as _, TakesParcels, file_all, parcel, refused, take, take_and_file, take_new,
};
use crate::suite::relay::Relay;
use crosstalk_envelope::meta::ConsentKind;
use crosstalk_protocol::consent::{
    self, Assurance, Claim, Grant, GrantFilter, Party, Proof, RevocationResult, Terms,
};
use crosstalk_protocol::relay::port::GrantQuery;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DeliveryState, Handler, HoldChoice, HoldDecision, HoldReason, Ruling,
};
use crosstalk_protocol::store::{Arrival, StoreOutcome};
use crosstalk_store::SqliteStore;

/// A consent to `medical` under a name.
fn yes(id: &str) -> Claim {
    Claim {
        kind: Some(ConsentKind::ExplicitYes),
        scopes: vec!["medical".into()],
        ids: vec![id.into()],
        ..Claim::default()
    }
}

/// The end of consents.
fn no(ids: &[&str]) -> Claim {
    Claim {
        is_revoke: true,
        revokes: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..Claim::default()
    }
}

/// One that is passed on.
fn passed_on(id: &str, original: &str) -> Claim {
    Claim {
        kind: Some(ConsentKind::Transferred),
        originals: vec![original.into()],
        ..yes(id)
    }
}

fn with(letter: Letter, claim: Claim) -> Admission {
    Admission {
        claim: Some(Box::new(claim)),
        ..parcel(letter)
    }
}

/// A message under a consent.
pub(crate) fn under(letter: Letter, consent: &str) -> Admission {
    with(letter, yes(consent))
}

/// A REVOKE that is surely from its sender.
pub(crate) fn revoke(id: &str, consents: &[&str]) -> Admission {
    Admission {
        proof: Proof {
            assurance: Assurance::Pinned,
            is_firm: true,
            is_same_key: false,
        },
        ..with(letter(id).intent("REVOKE"), no(consents))
    }
}

pub(crate) fn revoke_now(store: &mut impl TakesParcels, revoke: &Admission) -> RevocationResult {
    match take(store, revoke) {
        AcceptOutcome::Accepted {
            withdrawn: Some(withdrawn),
            ..
        } => *withdrawn,
        other => panic!("{other:?}"),
    }
}

fn names(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|g| g.id.as_str()).collect()
}

pub(crate) fn a_consent_is_on_record(store: &mut Relay) {
    let first = with(letter("M1").at(5), yes("C1"));
    let next = with(letter("M2").at(6).between("ANN", "BOB"), yes("C2")).expires(60);
    take_and_file(store, &[first.clone(), next]);
    let grant = store.grant("C1").unwrap();
    assert_eq!((grant.granter.as_str(), grant.since), ("KALLE", at(5)));
    assert_eq!(
        (grant.to.as_slice(), grant.scopes.as_slice()),
        (&["CLAUDE".to_owned()][..], &["medical".to_owned()][..])
    );
    assert_eq!(
        (grant.message.as_str(), grant.digest),
        ("M1", first.arrival.digest)
    );
    assert_eq!(
        (grant.assurance, grant.revoked),
        (Assurance::Unsigned, None)
    );
    assert_eq!(store.grant("C3"), None);
    assert_eq!(store.under("C1"), [("M1".to_owned(), true)]);
    let all = |filter: GrantFilter| store.grants(GrantQuery::Filtered(filter));
    assert_eq!(names(&all(GrantFilter::default())), ["C2", "C1"]);
    let of_ann = GrantFilter {
        granter: Some("ANN".into()),
        ..GrantFilter::default()
    };
    assert_eq!(names(&all(of_ann)), ["C2"]);
    let both = GrantQuery::Named(vec!["C1".to_owned(), "C2".to_owned(), "C3".to_owned()]);
    assert_eq!(names(&store.grants(both)), ["C1", "C2"]);
    // One that is passed on is found with the one that it goes back to.
    take_and_file(store, &[with(letter("M3").at(7), passed_on("C4", "C1"))]);
    let passed = store.grants(GrantQuery::Named(vec!["C4".to_owned()]));
    assert_eq!(names(&passed), ["C1", "C4"]);
}

/// What is kept under a consent goes with it: filed or not, delivered or not; what is not under it stays.
pub(crate) fn revocation_erases_everything_under_it(store: &mut Relay) {
    let far = [("agent://a.example/x", Handler::Relay)];
    let sent = with(letter("M1").body("plums"), yes("C1")).to(&far);
    let waits = with(letter("M2").body("plums"), yes("C1")).expires(900);
    let passed = with(
        letter("M3").body("plums").between("CLAUDE", "BOB"),
        passed_on("C2", "C1"),
    );
    let other = with(letter("M4").body("plums"), yes("C9"));
    take_and_file(store, &[sent, waits, passed, other]);
    let due = store.due(at(2000), at(3000), 9);
    let leased = due.first().map(|d| d.lease.at);
    let done = crosstalk_protocol::relay::Attempt::Delivered;
    let counted = store.attempted("M1", far[0].0, leased, &done, at(2000));
    assert!(counted);
    let unfiled = with(letter("M5").body("plums"), yes("C1"));
    take_new(store, &[unfiled]);

    let end = revoke_now(store, &revoke("R1", &["C1"]));
    let mut consents = end.consents.clone();
    consents.sort();
    assert_eq!(consents, ["C1", "C2"]);
    let mut erased: Vec<&str> = end.erased.iter().map(|e| e.id.as_str()).collect();
    erased.sort_unstable();
    assert_eq!(erased, ["M1", "M2", "M3", "M5"]);
    let cancelled: Vec<&str> = end.cancelled.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(cancelled, ["M2", "M3", "M5"]);
    assert_eq!(end.told, [far[0].0]);
    file_all(store);

    assert_eq!(store.search("plums").len(), 1);
    for id in ["M1", "M2", "M3", "M5"] {
        assert!(store.record(id).is_none(), "{id}");
    }
    assert!(store.record("M4").is_some());
    // The REVOKE goes where the message went.
    let due = store.due(at(4000), at(5000), 9);
    let due: Vec<(&str, &str)> = due
        .iter()
        .map(|d| (d.lease.id.as_str(), d.lease.to.as_str()))
        .collect();
    assert_eq!(due, [("R1", far[0].0)]);
    let failed = store.deliveries("M2").remove(0);
    assert_eq!(failed.state, DeliveryState::Failed);
    assert!(failed.reason.unwrap().starts_with("E-CONSENT"));
    store.scrub();
}

/// Everybody who has to hear of a revocation is owed a word, in its transaction.
pub(crate) fn revocation_enqueues_notices(store: &mut Relay) {
    take_and_file(store, &[with(letter("M1"), yes("C1"))]);
    assert_eq!(store.notices(), []);
    revoke_now(store, &revoke("R1", &["C1"]));
    let owed = store.notices();
    let parents = ["parent: M1\n", "parent: R1\n"];
    assert_eq!(owed.len(), parents.len());
    for ((_, text), parent) in owed.iter().zip(parents) {
        assert!(text.contains(parent), "{text}");
    }
    // Who says it twice revokes nothing anew.
    assert!(matches!(
        take(store, &revoke("R1", &["C1"])),
        AcceptOutcome::Known { .. }
    ));
    assert_eq!(store.notices(), owed);
}

pub(crate) fn revoked_consent_stays_revoked(store: &mut Relay) {
    let first = with(letter("M1"), yes("C1"));
    take_and_file(store, std::slice::from_ref(&first));
    revoke_now(store, &revoke("R1", &["C1", "C7"]));
    let ended = store.grant("C1").unwrap().revoked.unwrap();
    assert_eq!((ended.by.as_str(), ended.message.as_str()), ("KALLE", "R1"));
    // One that nobody had used before as well.
    for (id, claim) in [
        ("M2", yes("C1")),
        ("M3", yes("C7")),
        ("M4", passed_on("C3", "C1")),
    ] {
        assert_eq!(refused(store, &with(letter(id), claim)).0, "E-CONSENT");
    }
    assert!(matches!(take(store, &first), AcceptOutcome::Known { .. }));
    assert!(store.record("M1").is_none());
    // Another REVOKE finds nothing to do.
    file_all(store);
    for id in ["R2", "R3", "R4"] {
        let end = revoke_now(store, &revoke(id, &["C1"]));
        assert!(end.erased.is_empty() && end.cancelled.is_empty(), "{end:?}");
        file_all(store);
        store.scrub();
    }
    let ended = store.grant("C1").unwrap().revoked.unwrap();
    assert_eq!(ended.message, "R1");
}

/// What the rules say about a message of the person of this store.
fn judged(
    arrival: &Arrival,
    claim: &Claim,
    known: &[Grant],
) -> Result<Terms, crosstalk_envelope::reply::Rejection> {
    let to = [arrival.receiver.clone()];
    let party = Party {
        sender: &arrival.sender,
        speaker: &arrival.sender,
        is_pasted: true,
        pkid: None,
        proof: Proof {
            assurance: Assurance::Pinned,
            is_firm: true,
            is_same_key: false,
        },
        to: &to,
        receiver: None,
        is_escalation: false,
        backing: None,
        message: arrival.id(),
        digest: arrival.digest,
        at: arrival.at,
    };
    let withdrawal = consent::plan_revocation(claim, &party, known, false)?;
    match withdrawal {
        Some(_) => Ok(Terms {
            withdrawal,
            ..Terms::default()
        }),
        None => consent::judge(claim, &party, known),
    }
}

/// Keeps a message of the person of this store. Its code, if it is refused.
pub(crate) fn accept(
    store: &mut SqliteStore,
    letter: Letter,
    claim: &Claim,
) -> Result<(StoreOutcome, RevocationResult), String> {
    let arrival = letter.arrival();
    let judge = |known: &[Grant]| judged(&arrival, claim, known);
    let ruled = store.accept_ruled(&arrival, claim, &judge).unwrap();
    ruled.map_err(|refusal| refusal.code.as_str().to_owned())
}

/// The same rules hold for what a person keeps: what is on record decides, and a copy brings nothing back.
pub(crate) fn a_person_keeps_by_the_same_record(store: &mut Relay) {
    let one = letter("M1").body("plums");
    let kept = accept(store.person(), one.clone(), &yes("C1")).unwrap();
    assert!(matches!(kept.0, StoreOutcome::Filed { .. }));
    let again = accept(store.person(), one.clone(), &yes("C1")).unwrap();
    assert!(matches!(again.0, StoreOutcome::Known { .. }));
    assert_eq!(store.under("C1"), [("M1".to_owned(), true)]);

    let (_, end) = accept(store.person(), letter("R1").intent("REVOKE"), &no(&["C1"])).unwrap();
    assert_eq!(
        (end.erased.len(), end.consents.as_slice()),
        (1, &["C1".to_owned()][..])
    );
    assert_eq!(store.under("C1"), [("M1".to_owned(), false)]);
    assert_eq!(
        accept(store.person(), one, &yes("C1")).unwrap_err(),
        "E-CONSENT"
    );
    assert_eq!(
        accept(store.person(), letter("M2"), &yes("C1")).unwrap_err(),
        "E-CONSENT"
    );
    assert!(store.record("M2").is_none());
    // A person is not told by a relay.
    assert_eq!(store.notices(), []);
}

/// A REVOKE that a person let go on revokes as if it came then.
pub(crate) fn a_revoke_that_waited_counts(store: &mut Relay) {
    take_and_file(store, &[with(letter("M1"), yes("C1"))]);
    // What is let go on is read again.
    let text = letter("R1").intent("REVOKE\nmeta: revocation\nConsent-ID: C1");
    let waits = Admission {
        arrival: text.arrival().into(),
        held: Some(HoldReason::default()),
        ..revoke("R1", &["C1"])
    };
    assert!(matches!(take(store, &waits), AcceptOutcome::Held { .. }));
    assert_eq!(store.grant("C1").unwrap().revoked, None);
    let held = store.held("R1").unwrap();
    let approval = HoldDecision {
        id: "R1".into(),
        digest: held.record.digest,
        raw: held.raw,
        choice: HoldChoice::Approve,
        reason: None,
        by: "ann".into(),
        at: at(900),
        report: None,
    };
    let ruling = store.decide(&approval);
    assert!(matches!(ruling, Ruling::Done(Some(_))), "{ruling:?}");
    assert!(store.grant("C1").unwrap().revoked.is_some());
    assert!(store.record("M1").is_none());
    assert_eq!(store.notices().len(), 2);
}
