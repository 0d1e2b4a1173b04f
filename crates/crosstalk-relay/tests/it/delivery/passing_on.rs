//! Messages for other domains, at the handler: records of relays, receipts, refusals.

use super::endpoint::{Asked, Endpoint, Say};
use super::{Post, QUICK, meta, request};
use crate::dns::Domains;
use crosstalk_envelope::reply::{self, Rejection};
use crosstalk_envelope::{Document, ErrorCode, Reading};
use crosstalk_protocol::relay::DeliveryState;
use std::sync::Arc;

/// The ACK of another relay.
fn receipt(asked: &Asked) -> String {
    let document = Document::parse(&asked.body, Reading::Strict);
    format!(
        "[[{}→{} v1]]\nuser: relay\nthread: T\nparent: M1\ncontext: c\nintent: ACK\n\nmeta: receipt\nDigest: {}\nIndex: 7\nReceived-At: 2026-01-01T00:00:00Z\nReceived-By: b.example\n\nbody: |\nsig: none\n[[END]]\n",
        document.receiver(),
        document.sender(),
        document.digest().unwrap()
    )
}

fn config(more: &str) -> String {
    format!("name = \"a.example\"\n{QUICK}[federation]\nenabled = true\n{more}\n")
}

fn record(endpoint: &Endpoint, more: &str) -> String {
    format!("v=crosstalk1; url=http://{}/base/{more}", endpoint.address)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_relay_of_the_domain_gets_it_and_a_receipt_is_wanted() {
    let other = Endpoint::start(|number, asked| match number {
        // Some page, which has nothing to do with it.
        0 => Say::Status(200, "", "<html>parked</html>".into()),
        1 => Say::Status(
            200,
            "",
            receipt(asked).replace("Digest: sha256:", "Digest: sha256:00"),
        ),
        _ => Say::Status(200, "", receipt(asked)),
    })
    .await;
    let names = Domains::default().relay("b.example", Ok(&["v=spf1 -all", &record(&other, "")]));
    let post = Post::with(&config("allow_private = true"), Some(Arc::new(names)));
    post.send(&request("M1", "bot://b.example/port")).await;
    let way = post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(way.attempts, 3);
    let asked = other.asked();
    assert_eq!(asked[0].line, "POST /base/crosstalk/receive HTTP/1.1");
    assert_eq!(
        meta(&asked[0].body, "audit", "Received-By").as_deref(),
        Some("a.example")
    );
    assert_eq!(post.count().await, 1, "a receipt is no message");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_number_is_tried_first_and_then_the_next() {
    let first = Endpoint::start(|_, _| Say::Status(502, "", String::new())).await;
    let second = Endpoint::start(|_, asked| Say::Status(200, "", receipt(asked))).await;
    // Nothing listens on this port of another loopback address.
    let port = first.address.port();
    let nowhere = format!("v=crosstalk1; url=http://127.77.0.1:{port}/; p=1");
    let records = [
        &record(&second, "; p=20"),
        nowhere.as_str(),
        &record(&first, "; p=5"),
    ];
    let names = Domains::default().relay("b.example", Ok(&records));
    let post = Post::with(&config("allow_private = true"), Some(Arc::new(names)));
    post.send(&request("M1", "bot://b.example/port")).await;
    let way = post.is("M1", DeliveryState::Delivered).await;
    assert_eq!((way.attempts, first.count(), second.count()), (1, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_a_relay_is_final_and_a_failed_look_up_is_not() {
    let names = Domains::default()
        .relay("none.example", Ok(&[]))
        .relay(
            "wrong.example",
            Ok(&["v=crosstalk1; url=ftp://x/", "hello"]),
        )
        .relay("fails.example", Err("SERVFAIL"));
    let post = Post::with(&config("allow_private = true"), Some(Arc::new(names)));
    for (id, domain, attempts) in [("N", "none", 1), ("W", "wrong", 1), ("F", "fails", 3)] {
        post.send(&request(id, &format!("bot://{domain}.example/x")))
            .await;
        let way = post.is(id, DeliveryState::Failed).await;
        assert_eq!(way.attempts, attempts, "{domain}");
        assert!(way.reason.unwrap().starts_with("E-ROUTE"), "{domain}");
    }
    let inbox = post.gets("ANN", 3).await;
    for entry in &inbox {
        assert_eq!(
            meta(&entry.record.text, "error", "Code").as_deref(),
            Some("E-ROUTE")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejection_of_the_other_relay_is_told_with_its_code() {
    let refusal = reply::error_from_system(
        None,
        &Rejection::new(ErrorCode::Unsupported, "No bridge.", ""),
    );
    let refusal = refusal.build().unwrap();
    let other = Endpoint::start(move |_, _| Say::Status(422, "", refusal.clone())).await;
    let names = Domains::default().relay("b.example", Ok(&[&record(&other, "")]));
    let post = Post::with(&config("allow_private = true"), Some(Arc::new(names)));
    post.send(&request("M1", "bot://b.example/port")).await;
    post.is("M1", DeliveryState::Failed).await;
    let inbox = post.gets("ANN", 1).await;
    assert_eq!(
        meta(&inbox[0].record.text, "error", "Code").as_deref(),
        Some("E-UNSUPPORTED")
    );
    assert_eq!(other.count(), 1);
}

/// Threat 18: what a domain says about its relay leads to no private address, and only to https.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_does_not_lead_inside() {
    let inside = Endpoint::start(|_, asked| Say::Status(200, "", receipt(asked))).await;
    let port = inside.address.port();
    let https = format!("v=crosstalk1; url=https://127.0.0.1:{port}/");
    let named = format!("v=crosstalk1; url=https://inside.example:{port}/");
    for record in [record(&inside, ""), https, named] {
        let names = Domains::default()
            .relay("b.example", Ok(&[&record]))
            .host("inside.example", &[&["127.0.0.1"]]);
        let post = Post::with(&config(""), Some(Arc::new(names)));
        post.send(&request("M1", "bot://b.example/port")).await;
        let way = post.is("M1", DeliveryState::Failed).await;
        assert!(way.reason.unwrap().starts_with("E-ROUTE"), "{record}");
    }
    assert_eq!(inside.count(), 0);
}
