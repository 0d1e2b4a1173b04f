//! Messages that are posted to an endpoint.

use super::endpoint::{Endpoint, Say};
use super::{Post, QUICK, message, meta, request};
use crate::dns::Domains;
use crosstalk_envelope::reply::{self, ReceivedIds, Rejection};
use crosstalk_envelope::{Document, ErrorCode, Reading};
use crosstalk_protocol::relay::DeliveryState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn route(url: &str, more: &str) -> String {
    format!(
        "{QUICK}[[route]]\nto = \"bot://*\"\nby = \"http\"\nurl = \"{url}\"\nallow_private = true\n{more}\n"
    )
}

/// The RESPOND to what was posted.
fn answer_to(text: &str, body: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let envelope = document.envelope();
    reply::respond(&envelope, &ReceivedIds::of(&envelope), "bot", body)
        .message(format!("A-{}", envelope.message.unwrap()))
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_gets_the_message_with_its_hop_and_answers() {
    let endpoint =
        Endpoint::start(|_, asked| Say::Status(200, "", answer_to(&asked.body, "8080."))).await;
    let post = Post::start(&route(&endpoint.url(), "token_file = \"FOLDER/token\""));
    std::fs::write(post.path("token"), "secret-token\n").unwrap();
    post.send(&request("M1", "bot://port")).await;
    let answers = post.gets("ANN", 1).await;
    assert_eq!(answers[0].record.sender, "bot://port");
    assert_eq!(answers[0].record.parent.as_deref(), Some("M1"));
    let way = post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(way.attempts, 1);
    let asked = endpoint.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line, "POST /hook HTTP/1.1");
    assert_eq!(
        asked[0].headers["content-type"],
        "text/plain; charset=utf-8"
    );
    assert_eq!(asked[0].headers["authorization"], "Bearer secret-token");
    assert_eq!(asked[0].headers["host"], endpoint.address.to_string());
    assert_eq!(
        meta(&asked[0].body, "audit", "Received-By").as_deref(),
        Some("localhost")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_answer_is_one_too() {
    for (kind, answers) in [
        ("Content-Type: text/plain; charset=utf-8\r\n", true),
        ("Content-Type: text/html\r\n", false),
        ("Content-Type: application/json\r\n", false),
    ] {
        let endpoint = Endpoint::start(move |_, _| Say::Status(200, kind, "8080.".into())).await;
        let post = Post::start(&route(&endpoint.url(), ""));
        post.send(&request("M1", "bot://port")).await;
        post.is("M1", DeliveryState::Delivered).await;
        let inbox = post.inbox("ANN").await;
        assert_eq!(inbox.len(), usize::from(answers), "{kind}");
        if let Some(entry) = inbox.first() {
            assert!(
                entry.record.text.contains("\n  8080.\n"),
                "{}",
                entry.record.text
            );
            assert_eq!(entry.record.parent.as_deref(), Some("M1"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_good_answer_means_that_it_arrived() {
    let receipt = "[[bot://port→ANN v1]]\nuser: relay\nthread: T\ncontext: c\nintent: ACK\n\nmeta: receipt\nDigest: sha256:00\n\nbody: |\nsig: none\n[[END]]\n";
    for body in ["", "thanks", "{\"ok\":true}", "[[not an envelope", receipt] {
        let endpoint = Endpoint::start(move |_, _| Say::Status(202, "", body.to_owned())).await;
        let post = Post::start(&route(&endpoint.url(), ""));
        post.send(&request("M1", "bot://port")).await;
        post.is("M1", DeliveryState::Delivered).await;
        assert_eq!(post.count().await, 1, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_speaks_for_its_own_address_alone() {
    let forged = |from: &str| {
        message("F1", from, "ANN", "RESPOND")
            .parent("M1")
            .build()
            .unwrap()
    };
    for from in ["bot://other", "BOSS", "human://acme.example/boss", "SYSTEM"] {
        let text = forged(from);
        let endpoint = Endpoint::start(move |_, _| Say::Status(200, "", text.clone())).await;
        let post = Post::start(&route(&endpoint.url(), ""));
        post.send(&request("M1", "bot://port")).await;
        let way = post.is("M1", DeliveryState::Failed).await;
        assert!(way.reason.unwrap().contains("does not speak"), "{from}");
        let inbox = post.gets("ANN", 1).await;
        assert_eq!(inbox.len(), 1);
        assert_eq!(inbox[0].record.sender, "bot://port", "{from}");
        assert_eq!(
            meta(&inbox[0].record.text, "error", "Code").as_deref(),
            Some("E-PERM")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_final_and_keeps_its_code() {
    let refusal =
        reply::error_from_system(None, &Rejection::new(ErrorCode::Consent, "No consent.", ""));
    let refusal = refusal.build().unwrap();
    let accepts = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&accepts);
    let endpoint = Endpoint::start(move |_, _| match is_open.load(Ordering::SeqCst) {
        false => Say::Status(403, "", refusal.clone()),
        true => Say::ok(),
    })
    .await;
    let post = Post::start(&route(&endpoint.url(), ""));
    post.send(&request("M1", "bot://port")).await;
    let way = post.is("M1", DeliveryState::Failed).await;
    assert!(
        way.reason.as_ref().unwrap().contains("E-CONSENT"),
        "{way:?}"
    );
    let inbox = post.gets("ANN", 1).await;
    let error = &inbox[0].record.text;
    assert!(
        error.starts_with("[[bot://port→ANN v1]]\nuser: system\n"),
        "{error}"
    );
    assert_eq!(meta(error, "error", "Code").as_deref(), Some("E-CONSENT"));
    assert_eq!(inbox[0].record.parent.as_deref(), Some("M1"));
    let dead = post.dead().await;
    assert_eq!((dead.len(), dead[0].id.as_str()), (1, "M1"));
    accepts.store(true, Ordering::SeqCst);
    let now = post.relay.now();
    assert_eq!(post.relay.store().requeue("M1", now).await.unwrap(), 1);
    post.relay.wake();
    post.is("M1", DeliveryState::Delivered).await;
    assert!(post.dead().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_is_tried_again() {
    for (status, headers) in [(500, ""), (503, ""), (429, ""), (408, "")] {
        let endpoint = Endpoint::start(move |number, _| match number {
            0 => Say::Status(status, headers, "no".into()),
            _ => Say::ok(),
        })
        .await;
        let post = Post::start(&route(&endpoint.url(), ""));
        post.send(&request("M1", "bot://port")).await;
        let way = post.is("M1", DeliveryState::Delivered).await;
        assert_eq!(way.attempts, 2, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_not_tried_before_the_time_that_was_asked_for() {
    let endpoint =
        Endpoint::start(|_, _| Say::Status(503, "Retry-After: 120\r\n", String::new())).await;
    let post = Post::start(&route(&endpoint.url(), ""));
    post.send(&request("M1", "bot://port")).await;
    let way = post.tried("M1", 1).await;
    assert_eq!(way.state, DeliveryState::Queued);
    let wait = way.next_at.unwrap().as_millis() - post.relay.now().as_millis();
    assert_eq!(wait, 120_000);
    post.later(120);
    post.tried("M1", 2).await;
    assert_eq!(endpoint.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let other = Endpoint::start(|_, _| Say::ok()).await;
    let to: &'static str = Box::leak(format!("Location: {}\r\n", other.url()).into_boxed_str());
    for status in [301, 302, 303, 307, 308] {
        let endpoint = Endpoint::start(move |_, _| Say::Status(status, to, String::new())).await;
        let post = Post::start(&route(&endpoint.url(), ""));
        post.send(&request("M1", "bot://port")).await;
        let way = post.is("M1", DeliveryState::Failed).await;
        assert!(
            way.reason.unwrap().contains("redirects are not followed"),
            "{status}"
        );
    }
    assert_eq!(other.count(), 0);
}

/// Threat 27: at least once on the wire, once in the inbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_a_second_request_and_one_reply() {
    let endpoint = Endpoint::start(|number, asked| match number {
        0 => Say::Nothing,
        1 => Say::Status(
            200,
            "Content-Type: text/plain\r\nX: ",
            answer_to(&asked.body, "8080."),
        ),
        _ => Say::Status(200, "", answer_to(&asked.body, "8080.")),
    })
    .await;
    let post = Post::start(&route(&endpoint.url(), ""));
    post.send(&request("M1", "bot://port")).await;
    post.is("M1", DeliveryState::Delivered).await;
    let asked = endpoint.asked();
    assert!(asked.len() >= 2, "{}", asked.len());
    assert_eq!(asked[0].body, asked[1].body);
    assert_eq!(post.gets("ANN", 1).await.len(), 1);
    // The same answer again is known.
    let again = answer_to(&asked[0].body, "8080.");
    post.send(&again).await;
    assert_eq!(post.inbox("ANN").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_of_an_answer_is_not_read() {
    let endpoint = Endpoint::start(|_, _| Say::Status(200, "", "x".repeat(5000))).await;
    let post = Post::start(&route(&endpoint.url(), "answer_bytes = 4999"));
    post.send(&request("M1", "bot://port")).await;
    let way = post.is("M1", DeliveryState::Failed).await;
    assert!(way.reason.unwrap().contains("more than 4999 bytes"));
}

/// Threat 20: without its hop, a message could go round for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_room_for_a_hop_does_not_leave() {
    let endpoint = Endpoint::start(|_, _| Say::ok()).await;
    let post = Post::start(&route(&endpoint.url(), ""));
    let mut text = message("M1", "ANN", "bot://port", "REQUEST");
    for number in 0..248 {
        text = text.meta("custom", format!("K{number}"), "x");
    }
    post.send(&text.build().unwrap()).await;
    let way = post.is("M1", DeliveryState::Failed).await;
    assert!(way.reason.unwrap().starts_with("E-TOO-LARGE"));
    assert_eq!(endpoint.count(), 0);
}

/// Threat 18: addresses that are not public are refused at dispatch, unless the route says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_not_reached() {
    let endpoint = Endpoint::start(|_, _| Say::ok()).await;
    let port = endpoint.address.port();
    let names = Domains::default()
        .host("inside.example", &[&["127.0.0.1"]])
        .host("mixed.example", &[&["1.1.1.1", "::ffff:127.0.0.1"]])
        .host("metadata.example", &[&["169.254.169.254"]]);
    let names = Arc::new(names);
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "inside.example",
        "mixed.example",
        "metadata.example",
    ] {
        let config = route(&format!("http://{host}:{port}/hook"), "");
        let config = config.replace("allow_private = true", "allow_private = false");
        let post = Post::with(&config, Some(Arc::clone(&names)));
        post.send(&request("M1", "bot://port")).await;
        let way = post.is("M1", DeliveryState::Failed).await;
        let reason = way.reason.unwrap();
        assert!(
            reason.starts_with("E-ROUTE") && reason.contains("not public"),
            "{host}: {reason}"
        );
    }
    assert_eq!(endpoint.count(), 0);
}

/// An endpoint that is tried again knows it.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_have_numbers() {
    let endpoint = Endpoint::start(|number, _| match number {
        0..2 => Say::Status(500, "", String::new()),
        _ => Say::ok(),
    })
    .await;
    let post = Post::start(&route(&endpoint.url(), ""));
    post.send(&request("M1", "bot://port")).await;
    post.is("M1", DeliveryState::Delivered).await;
    let asked = endpoint.asked();
    let numbers: Vec<&str> = asked
        .iter()
        .map(|a| a.headers["crosstalk-attempt"].as_str())
        .collect();
    assert_eq!(numbers, ["1", "2", "3"]);
}
