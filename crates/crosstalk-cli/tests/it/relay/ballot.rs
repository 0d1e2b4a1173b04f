//! How a poll is answered: with a ballot, from the address that is asked, to who asked; by plain text, and corrected.

use super::{Person, Relay, header};
use serde_json::Value;

const ASKED: &str = "[[ANN→VOTERS v1]]\nuser: ann\nsession: 2026-11-16T15Z a\nthread: T-1\nmessage: POLL-1\ncontext: x\nintent: POLL\n\n\
                     meta: routing\nTargets: [\"human://acme.example/kalle\", \"BOB\"]\nX-Reply-To: EVE\n\n\
                     meta: poll\nType: plurality\nOptions: Mon | Tue\n\nbody: |\n  Which day?\nsig: none\n[[END]]\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_answer_to_a_poll_is_a_ballot_to_who_asked() {
    let kalle = Person::new("ballot", "kalle");
    kalle.does(&["config", "set", "me", "human://acme.example/kalle"]);
    kalle.does_with(&["paste", "-"], ASKED);
    let sent = kalle.does(&["reply", "POLL-1", "Mon, as ever"]).out;
    assert!(
        sent.starts_with("[[human://acme.example/kalle→ANN v1]]\n"),
        "{sent}"
    );
    assert_eq!(header(&sent, "intent"), "RESPOND");
    let status = json(&kalle.does(&["poll", "status", "POLL-1", "--json"]).out);
    assert_eq!(status["tally"]["Mon"], 1, "{status:#}");
    // For somebody else who is asked, and not for somebody who is not.
    let bob = kalle.does(&["reply", "POLL-1", "--from", "bob", "Tue, please"]);
    assert!(bob.out.starts_with("[[BOB→ANN v1]]\n"), "{}", bob.out);
    assert_eq!(header(&bob.out, "intent"), "RESPOND");
    let eve = kalle.does(&["reply", "POLL-1", "--from", "EVE", "Tue, please"]);
    assert!(eve.err.contains("EVE is no voter"), "{}", eve.err);
    let status = json(&kalle.does(&["poll", "status", "POLL-1", "--json"]).out);
    assert_eq!(status["quorum"]["counted"], 2, "{status:#}");
}

#[test]
fn a_plain_answer_says_whose_it_is_and_is_corrected_by_the_id_that_is_shown() {
    let kalle = Person::new("ballot-plain", "kalle");
    let sent = kalle.does(&[
        "poll", "new", "When?", "--option", "Friday", "--option", "Monday", "--target", "claude",
        "--target", "gemini",
    ]);
    let id = header(&sent.out, "message");
    let plain = "Friday, because the tests are green\n";
    let hint = kalle.say(&["paste", "-"], plain);
    assert!(hint.err.contains("--from CLAUDE -"), "{}", hint.err);
    let whose = kalle.say(&["paste", "-", "--as-reply-to", &id], plain);
    assert_eq!(whose.code, 2, "{}", whose.err);
    assert!(
        whose.err.contains("one of CLAUDE and GEMINI"),
        "{}",
        whose.err
    );
    let from = |name: &str, text: &str| {
        let arguments = ["paste", "-", "--json", "--as-reply-to", &id, "--from", name];
        kalle.say(&arguments, text)
    };
    assert_eq!(from("mallory", plain).code, 2);
    let first = json(&from("claude", plain).out);
    // The same again is known.
    let again = json(&from("claude", plain).out);
    assert_eq!(
        (
            &first["messages"][0]["id"],
            &again["messages"][0]["outcome"]
        ),
        (&again["messages"][0]["id"], &"known".into()),
        "{again:#}"
    );
    from("gemini", "I would rather wait.\n");
    // An answer that carries no id of its own has one here alone.
    let nameless = format!(
        "[[GEMINI→KALLE v1]]\nuser: x\nthread: {}\nparent: {id}\ncontext: x\nintent: RESPOND\nbody: |\n  The later one.\nsig: \
         none\n[[END]]\n",
        header(&sent.out, "thread")
    );
    let kept = json(&kalle.does_with(&["paste", "-", "--json"], &nameless).out);
    let own = kept["messages"][0]["id"].as_str().unwrap();
    let chart = kalle.does(&["poll", "status", &id]).out;
    assert!(
        chart.contains("Outcome so far: Friday") && chart.contains("crosstalk poll count sha256:"),
        "{chart}"
    );
    let corrects = format!("vote.Corrects={own}");
    let choice = ["--meta", &corrects, "--meta", "vote.Choice=Monday"];
    let arguments = [
        &["reply", id.as_str(), "It means Monday."],
        choice.as_slice(),
    ]
    .concat();
    assert_eq!(header(&kalle.does(&arguments).out, "intent"), "RESPOND");
    let status = json(&kalle.does(&["poll", "status", &id, "--json"]).out);
    assert_eq!(
        status["counted"][1]["read_from"], "correction",
        "{status:#}"
    );
    let early = kalle.run(&["poll", "close", &id, "--at", "2020-01-01T00:00Z"]);
    assert_eq!(early.code, 2, "{}", early.err);
    assert!(early.err.contains("the poll was asked at"), "{}", early.err);
}

#[test]
fn a_poll_that_went_to_a_relay_is_closed_there() {
    let kalle = Person::new("ballot-relay", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let sent = kalle.does(&[
        "poll",
        "new",
        "Which day?",
        "--option",
        "Mon",
        "--option",
        "Tue",
        "--target",
        "claude://code/api",
        "--target",
        "chatgpt://team/x",
        "--result-to",
        "chatgpt://team/x",
    ]);
    let id = header(&sent.out, "message");
    let agent = Person::new("ballot-relay-agent", "ci");
    agent.does(&["relay", "add", &relay.url]);
    agent.does(&["inbox", "--relay", "--for", "claude://code/api", "--take"]);
    let ballot = agent.does(&["reply", &id, "--from", "claude://code/api", "Mon, as ever"]);
    assert!(
        ballot.out.starts_with("[[claude://code/api→KALLE v1]]\n"),
        "{}",
        ballot.out
    );
    let status = json(&kalle.does(&["poll", "status", &id, "--json"]).out);
    assert_eq!(status["tally"]["Mon"], 1, "{status:#}");
    let here = json(&kalle.does(&["poll", "status", &id, "--here", "--json"]).out);
    assert_eq!(here["tally"]["Mon"], 0, "{here:#}");
    let late = kalle.run(&["poll", "close", &id, "--at", "2030-01-01T00:00Z"]);
    assert_eq!(late.code, 2, "{}", late.err);
    let closed = json(&kalle.does(&["poll", "close", &id, "--json"]).out);
    assert_eq!(
        (&closed["outcome"], &closed["state"]),
        (&"Mon".into(), &"closed".into()),
        "{closed:#}"
    );
    relay.stop();
    let gone = kalle.run(&["poll", "close", &id]);
    assert_eq!(gone.code, 10, "{}", gone.err);
    assert!(gone.err.contains("--here"), "{}", gone.err);
}
