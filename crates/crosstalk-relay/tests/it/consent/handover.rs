//! What goes along with a HANDOFF or an ESCALATE: not what is under a consent that is for others (HTP-027).

use super::{ANN, KEY, plan};
use crate::house::{House, Plan, key, letter, secret, signed};
use crate::http::Ask;
use crosstalk_envelope::Builder;
use crosstalk_protocol::relay::Role;

const BOB: &str = "agent://here.example/bob";
const CAR: &str = "agent://here.example/carol";
const DAN: &str = "agent://here.example/dan";
const JOE: &str = "human://partner.example/joe";

fn office() -> Plan {
    plan()
        .token("ann", Role::Person, &[ANN])
        .token("bob", Role::Agent, &[BOB])
        .token("carol", Role::Agent, &[CAR])
        .token("dan", Role::Agent, &[DAN])
        .token("joe", Role::Person, &[JOE])
}

fn send(house: &House, name: &str, text: &str) {
    let answer = house.ask(&Ask::send(text).token(&secret(name)));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A medical message of Ann to Bob, under a consent with a name or without, and a plain one that must stay inside.
fn begin(house: &House) {
    for (id, consent) in [("M1", Some("C1")), ("M2", None)] {
        let mut text = letter(ANN, BOB, id)
            .body(format!("secret {id}"))
            .meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Scope", "medical");
        if let Some(consent) = consent {
            text = text.meta("privacy", "Consent-ID", consent);
        }
        send(house, "ann", &signed(&text.build().unwrap(), &key(), KEY));
    }
    let inside = letter(ANN, BOB, "M3").body("secret M3");
    let inside = inside.meta("routing", "X-Policy", "no_third_party");
    send(house, "ann", &inside.build().unwrap());
    let plain = letter(ANN, BOB, "M4").body("secret M4").build();
    send(house, "ann", &plain.unwrap());
}

fn handoff(from: &str, to: &str, id: &str) -> Builder {
    letter(from, to, id).intent("HANDOFF")
}

fn transferring(builder: Builder, original: &str, new: &str) -> String {
    builder
        .meta("privacy", "Consent", "transferred_with_approval")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent-ID", new)
        .meta("privacy", "Original-Consent-ID", original)
        .build()
        .unwrap()
}

/// Which of the messages somebody finds in the history of a hand-off, in the thread and by their ids: the same everywhere.
fn found(house: &House, name: &str, address: &str, id: &str) -> (Vec<&'static str>, u64) {
    let get = |path: String, accept: &str| {
        let answer = house.ask(&Ask::get(&path).accept(accept).token(&secret(name)));
        (answer.status, answer.text().to_owned())
    };
    let inbox = get(
        format!("/crosstalk/inbox?for={address}"),
        "application/json",
    )
    .1;
    let inbox: serde_json::Value = serde_json::from_str(&inbox).unwrap();
    let entries = inbox["messages"].as_array().unwrap();
    let entry = entries.iter().find(|m| m["id"] == id).unwrap();
    let history = entry["history"].to_string();
    let all = ["M1", "M2", "M3", "M4"];
    let of = |text: &str| -> Vec<&'static str> {
        let has = |id: &&str| text.contains(&format!("secret {id}"));
        all.into_iter().filter(has).collect()
    };
    let seen = of(&history);
    for accept in ["application/json", "text/plain", "text/markdown"] {
        let thread = get("/crosstalk/threads/T1".into(), accept).1;
        assert_eq!(of(&thread), seen, "{accept}");
    }
    let by_id = |id: &&str| get(format!("/crosstalk/messages/{id}"), "text/plain").0 == 200;
    assert_eq!(all.into_iter().filter(by_id).collect::<Vec<_>>(), seen);
    (seen, entry["withheld"].as_u64().unwrap_or(0))
}

#[test]
fn text_under_a_consent_for_others_does_not_go_along() {
    let house = office().open();
    begin(&house);
    send(&house, "bob", &handoff(BOB, CAR, "H1").build().unwrap());
    assert_eq!(found(&house, "carol", CAR, "H1"), (vec!["M3", "M4"], 2));
    // From there to another organisation.
    send(&house, "carol", &handoff(CAR, JOE, "H2").build().unwrap());
    assert_eq!(found(&house, "joe", JOE, "H2"), (vec![], 0));
}

#[test]
fn text_that_must_stay_inside_does_not_go_along_to_others() {
    let house = office().open();
    begin(&house);
    send(&house, "bob", &handoff(BOB, JOE, "H1").build().unwrap());
    assert_eq!(found(&house, "joe", JOE, "H1"), (vec!["M4"], 3));
}

#[test]
fn with_its_consent_a_message_goes_along() {
    let house = office().open();
    begin(&house);
    let first = transferring(handoff(BOB, CAR, "H1"), "C1", "C1-carol");
    send(&house, "bob", &first);
    assert_eq!(
        found(&house, "carol", CAR, "H1"),
        (vec!["M1", "M3", "M4"], 1)
    );
    // A consent without a name has that of its message, and what was given to somebody need not be transferred.
    let again = letter(ANN, CAR, "G1")
        .thread("T2")
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent-ID", "C1");
    send(&house, "ann", &signed(&again.build().unwrap(), &key(), KEY));
}
