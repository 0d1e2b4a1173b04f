//! A program that asks a person, gets the reply, and answers the first asker.

use super::exec::route;
use super::{Post, QUICK, START, message, meta, request};
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::relay::port::InboxEntry;
use crosstalk_protocol::store::Record;
use tempfile::TempDir;

const QUEUE: &str = "human://localhost/queue";
const BOT: &str = "bot://port";

/// Asks a person about each question; on the reply, says which one it is, and what was decided. It keeps nothing of what it
/// did before.
const ASKS: &str = r#"cat > input
n=$(cat runs 2>/dev/null | wc -l); echo x >> runs; cp input input.$n
case "$CROSSTALK_MESSAGE_INTENT" in
REQUEST) cat <<X
[[BOT→human://localhost/queue v1]]
user: bot
thread: $CROSSTALK_MESSAGE_THREAD
context: ports
intent: ESCALATE
body: |
  May I open it?
sig: none
[[END]]
X
;;
*) echo "The person decided: $(sed -n 's/^  \(Only.*\)$/\1/p' input)";;
esac"#;

fn config(script: &str) -> String {
    format!("{QUICK}{}", route("bot://*", script, ""))
}

fn reply(id: &str, escalation: &Record, from: &str, intent: &str, body: &str) -> String {
    let reply = message(id, from, BOT, intent)
        .thread(&escalation.thread)
        .parent(&escalation.id)
        .body(body);
    match intent {
        "NACK" => reply.meta("refusal", "Reason", "no"),
        "ERROR" => reply
            .meta("error", "Code", "E-TIMEOUT")
            .meta("error", "Reason", "no"),
        _ => reply,
    }
    .build()
    .unwrap()
}

async fn asked(post: &Post) -> Record {
    post.send(&request("M1", BOT)).await;
    post.gets(QUEUE, 1).await.remove(0).record
}

fn answers(entries: &[InboxEntry]) -> Vec<(String, Option<String>, String)> {
    let one = |e: &InboxEntry| {
        let body = Document::parse(&e.record.text, Reading::Strict).body_text();
        let intent = e.record.intent.clone().unwrap_or_default();
        (intent, e.record.parent.clone(), body)
    };
    entries.iter().map(one).collect()
}

/// The relay stops after the question and after the reply: everything is in its store.
#[tokio::test(flavor = "multi_thread")]
async fn reply_of_a_person_reaches_the_program_and_its_answer_whoever_asked() {
    let folder = TempDir::new().unwrap();
    let config = config(ASKS);
    let post = Post::open(&config, None, folder, None, START);
    let escalation = asked(&post).await;
    assert_eq!(escalation.parent.as_deref(), Some("M1"));
    let folder = post.end().await;

    let post = Post::open(&config, None, folder, None, START);
    assert!(post.inbox("ANN").await.is_empty());
    post.send(&reply(
        "R1",
        &escalation,
        QUEUE,
        "RESPOND",
        "Only port 8080.",
    ))
    .await;
    let inbox = post.gets("ANN", 1).await;
    let answer = &inbox[0].record;
    assert_eq!(
        answers(&inbox),
        [(
            "RESPOND".to_owned(),
            Some("M1".to_owned()),
            "The person decided: Only port 8080.".to_owned()
        )]
    );
    assert_eq!(
        (
            answer.sender.as_str(),
            answer.thread.as_str(),
            answer.user.as_deref()
        ),
        (BOT, "T-M1", Some("bot"))
    );
    post.is("R1", DeliveryState::Delivered).await;
    // The program sees all three, as data.
    let input = std::fs::read_to_string(post.path("work/input.1")).unwrap();
    for words in [
        "1. The question.\nSender, as the message says: ANN\nVerification: unsigned",
        "  Which port?",
        "2. What you wrote to the person.",
        "  May I open it?",
        "3. The reply of the person.\nSender, as the message says: human://localhost/queue\nVerification: unsigned",
        "  Only port 8080.",
        "is data from another party",
        "Your answer goes to ANN.",
    ] {
        assert!(input.contains(words), "{words}: {input}");
    }
    // Once more, after a restart: nothing is run or said twice.
    let folder = post.end().await;
    let post = Post::open(&config, None, folder, None, START);
    post.send(&request("M2", BOT)).await;
    post.gets(QUEUE, 2).await;
    assert_eq!(post.inbox("ANN").await.len(), 1);
    let runs = std::fs::read_to_string(post.path("work/runs")).unwrap();
    assert_eq!(runs.lines().count(), 3);
}

/// A refusal and a failure are replies as well: the asker hears of them.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_failures_come_back_too() {
    for intent in ["NACK", "ERROR"] {
        let post = Post::start(&config(ASKS));
        let escalation = asked(&post).await;
        post.send(&reply("R1", &escalation, QUEUE, intent, "Only Ann may."))
            .await;
        let inbox = post.gets("ANN", 1).await;
        let (said, parent, body) = answers(&inbox).remove(0);
        assert_eq!((said.as_str(), parent.as_deref()), ("RESPOND", Some("M1")));
        assert_eq!(body, "The person decided: Only Ann may.", "{intent}");
    }
}

/// Threats 32 and 38: nobody but the person who was asked is taken for that person.
#[tokio::test(flavor = "multi_thread")]
async fn others_do_not_reply_in_the_place_of_the_person() {
    let post = Post::start(&config(ASKS));
    let escalation = asked(&post).await;
    for (id, from) in [
        ("R1", "EVE"),
        ("R2", "human://localhost/eve"),
        ("R3", "bot://eve"),
    ] {
        post.send(&reply(
            id,
            &escalation,
            from,
            "RESPOND",
            "Only all of them.",
        ))
        .await;
        post.is(id, DeliveryState::Delivered).await;
    }
    assert!(post.inbox("ANN").await.is_empty());
}

/// Whatever a program prints then, it does not go on for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_always_asks_comes_to_an_end() {
    let asks = ASKS
        .replace("REQUEST)", "*)")
        .replace("*) echo", "never) echo");
    let post = Post::start(&config(&asks));
    let mut escalation = asked(&post).await;
    let limit = crosstalk_protocol::relay::HOPS;
    for number in 1..=limit {
        let id = format!("R{number}");
        post.send(&reply(
            &id,
            &escalation,
            QUEUE,
            "RESPOND",
            "Decide yourself.",
        ))
        .await;
        post.is(&id, DeliveryState::Delivered).await;
        let queue = post.inbox(QUEUE).await;
        match queue.last() {
            Some(last) if last.record.id != escalation.id => {
                escalation = last.record.clone();
                assert_eq!(escalation.parent.as_deref(), Some(id.as_str()));
            }
            _ => {
                assert!(number > 5, "it ended after {number}");
                return;
            }
        }
    }
    panic!("it did not end");
}

/// An ERROR is never answered with a question: nobody would stop it.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_not_escalated_again() {
    let asks = ASKS
        .replace("REQUEST)", "*)")
        .replace("*) echo", "never) echo");
    let post = Post::start(&config(&asks));
    let escalation = asked(&post).await;
    post.send(&reply(
        "R1",
        &escalation,
        QUEUE,
        "ERROR",
        "Nobody is there.",
    ))
    .await;
    post.is("R1", DeliveryState::Delivered).await;
    assert_eq!(post.inbox(QUEUE).await.len(), 1);
    assert!(post.inbox("ANN").await.is_empty());
}

/// A model answers the person whose text it read last: the first asker gets it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn envelope_to_the_person_goes_to_whoever_asked() {
    let answer = "cat <<'X'\n[[BOT→human://localhost/queue v1]]\nuser: porter\nthread: T-M1\nparent: R1\ncontext: ports\nintent: RESPOND\nbody: |\n  Port 8080 it is.\nsig: none\n[[END]]\nX\n;;";
    let (asks, _) = ASKS.split_once("*) echo").unwrap();
    let post = Post::start(&config(&format!("{asks}*) {answer}\nesac")));
    let escalation = asked(&post).await;
    post.send(&reply(
        "R1",
        &escalation,
        QUEUE,
        "RESPOND",
        "Only port 8080.",
    ))
    .await;
    let inbox = post.gets("ANN", 1).await;
    let (intent, parent, body) = answers(&inbox).remove(0);
    assert_eq!(
        (intent.as_str(), parent.as_deref(), body.as_str()),
        ("RESPOND", Some("M1"), "Port 8080 it is.")
    );
    assert_eq!(inbox[0].record.user.as_deref(), Some("porter"));
    assert_eq!(post.inbox(QUEUE).await.len(), 1);
}

/// The waiting sender learns that the program fails: once while it is tried again, and at the end.
#[tokio::test(flavor = "multi_thread")]
async fn program_that_fails_is_told_and_tried_again() {
    let script = "cat > /dev/null; echo x >> runs; [ $(wc -l < runs) -gt 2 ] || exit 3; echo Done.";
    let post = Post::start(&config(script));
    post.send(&request("M1", BOT)).await;
    let way = post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(way.attempts, 3);
    // The thread has what is filed.
    post.count().await;
    let thread = post.relay.store().messages("T-M1", None, 9).await;
    let told = thread.unwrap().items;
    let intents: Vec<&str> = told.iter().filter_map(|m| m.intent.as_deref()).collect();
    assert_eq!(
        intents,
        ["REQUEST", "BROADCAST", "RESPOND"],
        "it is told once"
    );
    assert_eq!(told[1].parent.as_deref(), Some("M1"));
    assert!(
        told[1].text.contains(
            "No answer yet: the program that answers for bot://port failed and will be retried."
        ),
        "{told:?}"
    );
    // Once the answer is there, the notice has nothing to say any more.
    let inbox = answers(&post.inbox("ANN").await);
    assert_eq!(inbox.len(), 1, "{inbox:?}");
    assert_eq!(
        (inbox[0].0.as_str(), inbox[0].2.as_str()),
        ("RESPOND", "Done.")
    );
}

/// The program works until the person has replied: the asker gets the ERROR, not only the person.
#[tokio::test(flavor = "multi_thread")]
async fn failure_on_the_reply_is_reported_to_the_asker() {
    let asks = ASKS.replace("*) echo", "*) exit 3; echo");
    let post = Post::start(&config(&asks));
    let escalation = asked(&post).await;
    post.send(&reply(
        "R1",
        &escalation,
        QUEUE,
        "RESPOND",
        "Only port 8080.",
    ))
    .await;
    post.is("R1", DeliveryState::Failed).await;
    let inbox = post.gets("ANN", 1).await;
    let said: Vec<String> = answers(&inbox).into_iter().map(|a| a.0).collect();
    assert_eq!(said, ["ERROR"]);
    let error = &inbox[0].record;
    assert_eq!(error.parent.as_deref(), Some("M1"));
    assert_eq!(
        meta(&error.text, "error", "Code").as_deref(),
        Some("E-ROUTE")
    );
    assert!(
        error
            .text
            .contains("the program that answers for this address failed")
    );
}
