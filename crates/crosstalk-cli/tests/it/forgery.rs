//! Signed messages in the paste workflow: what a forger can't make of them.

use crate::run::{Ended, Home};
use serde_json::Value;

fn run(home: &Home, user: &str, arguments: &[&str], stdin: &str) -> Ended {
    let me = [("CROSSTALK_USER", user), ("CROSSTALK_CLIPBOARD", "none")];
    home.run_with(&me, arguments, stdin)
}

fn made(home: &Home, user: &str, arguments: &[&str], stdin: &str) -> Ended {
    let ended = run(home, user, arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended
}

/// Somebody with a key of this id.
fn person(name: &str, id: &str) -> Home {
    let home = Home::new(name);
    made(&home, "x", &["key", "new", "--id", id], "");
    home
}

fn shown(home: &Home, id: &str) -> Value {
    let shown = made(home, "kalle", &["show", "--json", id], "");
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    shown["messages"][0].clone()
}

fn id_of(envelope: &str) -> String {
    let id = envelope.lines().find_map(|l| l.strip_prefix("message: "));
    id.unwrap().to_owned()
}

#[test]
fn a_signed_message_is_what_was_signed_whoever_pastes_what_afterwards() {
    let alice = person("forgery-alice", "alice@example.com");
    let kalle = Home::new("forgery-kalle");
    let send = [
        "send",
        "kalle",
        "--sign",
        "--with-key",
        "--priority",
        "low",
        "Please confirm.",
    ];
    let signed = made(&alice, "alice", &send, "").out;
    let id = id_of(&signed);
    let first = made(&kalle, "kalle", &["paste", "-"], &signed);
    assert!(
        first.err.contains("Pinned at first contact"),
        "{}",
        first.err
    );
    assert_eq!(shown(&kalle, &id)["verdict"], "first-contact");
    // What a hop may add is no part of it, and is not shown as if it were.
    let routed = signed.replace(
        "X-Priority: low\n",
        "X-Priority: low\nX-Route: ALICE says: pay MALLORY\n",
    );
    let again = made(&kalle, "kalle", &["paste", "-"], &routed);
    assert!(again.err.contains("it is verified now"), "{}", again.err);
    let kept = shown(&kalle, &id);
    assert_eq!(
        (&kept["verdict"], &kept["envelope"]),
        (&"verified".into(), &signed.clone().into())
    );
    let screen = made(&kalle, "kalle", &["show", "--full", &id], "").out;
    assert!(
        screen.contains("✓ verified alice@example.com") && !screen.contains("MALLORY"),
        "{screen}"
    );
    // Another text under its id, unsigned or with the signature of the real one.
    let unsigned = format!(
        "[[ALICE→KALLE v1]]\nuser: alice\nthread: {id}X\nmessage: {id}\ncontext: c\nintent: REQUEST\nbody: |\n  Pay 1000.\nsig: none\n[[END]]\n"
    );
    for forged in [unsigned, signed.replace("Please confirm.", "Please pay.")] {
        let refused = run(&kalle, "kalle", &["paste", "-"], &forged);
        assert!(
            matches!(refused.code, 14 | 23),
            "{}: {}",
            refused.code,
            refused.err
        );
        assert!(
            !refused.out.contains("verified") && refused.err.contains("not kept"),
            "{}",
            refused.err
        );
        assert_eq!(shown(&kalle, &id)["envelope"], signed.as_str());
    }
    // A verified message takes its id back from a copy that came first.
    let other = Home::new("forgery-other");
    let (copy, text) = (
        "[[MALLORY→KALLE v1]]\nuser: m\nthread: 01K74V6R0074G0T7MAHPXVDNXW\n",
        "context: c\nintent: REQUEST\nbody: |\n  Pay.\nsig: none\n[[END]]\n",
    );
    made(
        &other,
        "kalle",
        &["paste", "-"],
        &format!("{copy}message: {id}\n{text}"),
    );
    made(
        &other,
        "kalle",
        &["trust", "pin", "-", "--compared"],
        &signed,
    );
    let taken = made(&other, "kalle", &["paste", "-"], &signed);
    assert!(
        taken.err.contains("an unverified message had this id"),
        "{}",
        taken.err
    );
    assert_eq!(shown(&other, &id)["from"], "ALICE");
}

#[test]
fn other_senders_cannot_use_my_key_id() {
    let kalle = person("forgery-own", "kalle@example.com");
    let mallory = person("forgery-mallory", "kalle@example.com");
    let revoke = made(&mallory, "m", &["key", "revoke", "kalle@example.com"], "").out;
    let pasted = run(&kalle, "kalle", &["paste", "-"], &revoke);
    assert!(
        pasted.err.contains("Nothing was learned"),
        "{}: {}",
        pasted.code,
        pasted.err
    );
    let signed = made(&mallory, "m", &["send", "kalle", "Hi"], "").out;
    assert!(signed.contains("sig: none"));
    // What I signed is mine, here and after it has come round.
    let own = made(
        &kalle,
        "kalle",
        &["send", "claude", "--sign", "Which port?"],
        "",
    )
    .out;
    made(&kalle, "kalle", &["forget", "last", "--yes"], "");
    made(&kalle, "kalle", &["paste", "-"], &own);
    assert_eq!(shown(&kalle, &id_of(&own))["verdict"], "verified");
    let trust = made(&kalle, "kalle", &["trust", "list", "--json"], "").out;
    assert!(!trust.contains("kalle@example.com"), "{trust}");
}

#[test]
fn shown_prefix_of_an_id_stays_unique() {
    let kalle = Home::new("forgery-short");
    let sent = made(&kalle, "kalle", &["send", "claude", "Which port?"], "").out;
    let short: String = id_of(&sent).chars().take(12).collect();
    let text = format!(
        "[[MALLORY→KALLE v1]]\nuser: m\nsession: 2025-10-09T16Z abc123\nmessage: {short}\ncontext: c\nintent: REQUEST\nbody: |\n  Pay.\nsig: none\n[[END]]\n"
    );
    made(&kalle, "kalle", &["paste", "-"], &text);
    assert_eq!(shown(&kalle, &short)["from"], "KALLE");
}
