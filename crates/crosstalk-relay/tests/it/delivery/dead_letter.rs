//! Dead letters and unanswered questions: the sender is told once.

use super::endpoint::{Endpoint, Say};
use super::{Post, QUICK, eventually, message, meta, request};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{DeliveryState, Peer};
use crosstalk_testing::wait::LIMIT;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_attempt_the_sender_is_told() {
    let endpoint = Endpoint::start(|_, _| Say::Status(500, "", "out of order".into())).await;
    let config = format!(
        "{QUICK}[[route]]\nto = \"bot://*\"\nby = \"http\"\nurl = \"{}\"\nallow_private = true\n",
        endpoint.url()
    );
    let post = Post::start(&config);
    post.send(&request("M1", "bot://port")).await;
    let way = post.is("M1", DeliveryState::Failed).await;
    assert_eq!((way.attempts, endpoint.count()), (3, 3));
    assert!(way.reason.unwrap().contains("out of order"));
    let inbox = post.gets("ANN", 1).await;
    let error = &inbox[0].record;
    assert_eq!(
        (error.sender.as_str(), error.receiver.as_str()),
        ("bot://port", "ANN")
    );
    assert_eq!(
        (error.thread.as_str(), error.parent.as_deref()),
        ("T-M1", Some("M1"))
    );
    assert_eq!(
        meta(&error.text, "error", "Code").as_deref(),
        Some("E-ROUTE")
    );
    assert_eq!(
        meta(&error.text, "error", "Original-Intent").as_deref(),
        Some("REQUEST")
    );
    assert!(
        error
            .text
            .contains("Could not deliver message to bot://port")
            && !error.text.contains("out of order")
    );
    // Retried, and a dead letter again: there is something new to report.
    post.later(60);
    let now = post.relay.now();
    post.relay.store().requeue("M1", now).await.unwrap();
    post.relay.wake();
    post.gets("ANN", 2).await;
    post.is("M1", DeliveryState::Failed).await;
    assert_eq!(endpoint.count(), 6);
    assert_eq!(post.gets("ANN", 2).await.len(), 2);
    assert_eq!(post.dead().await.len(), 1);
}

/// The report goes to where the sender is; that this fails as well is not reported to anybody.
#[tokio::test(flavor = "multi_thread")]
async fn failure_report_is_not_answered_itself() {
    let endpoint = Endpoint::start(|_, _| Say::Status(400, "", String::new())).await;
    let config = format!(
        "{QUICK}[[route]]\nto = \"bot://*\"\nby = \"http\"\nurl = \"{}\"\nallow_private = true\n",
        endpoint.url()
    );
    let post = Post::start(&config);
    let text = message("M1", "bot://a", "bot://b", "REQUEST")
        .build()
        .unwrap();
    post.send(&text).await;
    post.is("M1", DeliveryState::Failed).await;
    // The REQUEST, and the ERROR about it.
    eventually("two dead letters", async || {
        (post.dead().await.len() == 2).then_some(())
    })
    .await;
    for intent in ["ACK", "NACK", "BROADCAST"] {
        let mut text = message(intent, "bot://a", "bot://b", intent).parent("M1");
        if intent == "NACK" {
            text = text.meta("refusal", "Reason", "x");
        }
        post.send(&text.build().unwrap()).await;
        post.is(intent, DeliveryState::Failed).await;
    }
    assert_eq!(post.count().await, 5, "one ERROR, for the REQUEST");
    assert_eq!(endpoint.count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn question_without_an_answer_in_time_is_reported_once() {
    let post = Post::start("");
    let end = Timestamp::from_millis(super::START + 60_000);
    let text = message("M1", "ANN", "bot://nobody", "REQUEST").meta(
        "routing",
        "X-Deadline",
        end.to_string(),
    );
    let text = text.build().unwrap();
    let (relay, question) = (post.relay.clone(), text.clone());
    let asking = tokio::spawn(async move {
        let until = Instant::now() + LIMIT;
        relay
            .ask(question.as_bytes(), &Peer::local(), until, &|| {
                Box::pin(async { true })
            })
            .await
            .0
    });
    post.gets("bot://nobody", 1).await;
    post.later(59);
    post.send(&request("M2", "bot://nobody")).await;
    post.gets("bot://nobody", 2).await;
    assert!(post.inbox("ANN").await.is_empty());
    post.later(1);
    let answer = asking.await.unwrap();
    assert_eq!(
        meta(answer.answer(), "error", "Code").as_deref(),
        Some("E-TIMEOUT")
    );
    assert!(
        answer.answer().starts_with("[[bot://nobody→ANN v1]]"),
        "{}",
        answer.answer()
    );
    post.later(3600);
    post.send(&request("M3", "bot://nobody")).await;
    post.gets("bot://nobody", 3).await;
    let told = post.gets("ANN", 1).await;
    assert_eq!(
        (told.len(), told[0].record.parent.as_deref()),
        (1, Some("M1"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_time_is_not_reported() {
    let post = Post::start("");
    let end = Timestamp::from_millis(super::START + 60_000);
    let text =
        message("M1", "ANN", "bot://b", "REQUEST").meta("routing", "X-Deadline", end.to_string());
    post.send(&text.build().unwrap()).await;
    let answer = message("A1", "bot://b", "ANN", "RESPOND")
        .thread("T-M1")
        .parent("M1");
    post.send(&answer.build().unwrap()).await;
    post.later(60);
    let late = message("M2", "ANN", "bot://b", "REQUEST").meta(
        "routing",
        "X-Deadline",
        Timestamp::from_millis(super::START + 61_000).to_string(),
    );
    post.send(&late.build().unwrap()).await;
    post.later(1);
    let inbox = post.gets("ANN", 2).await;
    let parents: Vec<_> = inbox
        .iter()
        .map(|e| {
            (
                e.record.parent.clone().unwrap(),
                e.record.intent.clone().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        parents,
        [
            ("M1".into(), "RESPOND".into()),
            ("M2".into(), "ERROR".into())
        ]
    );
}

/// Consent that ends while a message waits: it is not brought there any more.
#[tokio::test(flavor = "multi_thread")]
async fn expired_message_is_not_delivered() {
    let endpoint = Endpoint::start(|number, _| match number {
        0 => Say::Status(503, "Retry-After: 100\r\n", String::new()),
        _ => Say::ok(),
    })
    .await;
    let config = format!(
        "{QUICK}[[route]]\nto = \"bot://*\"\nby = \"http\"\nurl = \"{}\"\nallow_private = true\n",
        endpoint.url()
    );
    let post = Post::start(&config);
    let end = Timestamp::from_millis(super::START + 60_000);
    let text = message("M1", "ANN", "bot://b", "REQUEST")
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Expires", end.to_string());
    post.send(&text.build().unwrap()).await;
    post.tried("M1", 1).await;
    post.later(100);
    let way = post.is("M1", DeliveryState::Failed).await;
    assert!(way.reason.unwrap().starts_with("E-CONSENT"));
    assert_eq!(endpoint.count(), 1);
}
