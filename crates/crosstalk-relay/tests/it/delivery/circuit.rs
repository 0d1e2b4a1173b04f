//! Destinations that are slow or broken, and messages that are urgent.

use super::endpoint::{Endpoint, Say};
use super::{Post, eventually, message, request};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::relay::port::Lease;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn route(to: &str, endpoint: &Endpoint) -> String {
    format!(
        "[[route]]\nto = \"{to}\"\nby = \"http\"\nurl = \"{}\"\nallow_private = true\n",
        endpoint.url()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_fails_is_left_alone_for_a_while() {
    let broken = Endpoint::start(|number, _| match number {
        0..3 => Say::Status(500, "", String::new()),
        _ => Say::ok(),
    })
    .await;
    let sound = Endpoint::start(|_, _| Say::ok()).await;
    let retry = "[retry]\nfirst_seconds = 0\nlongest_seconds = 0\nattempts = 9\nfailures = 2\npause_seconds = 30\nat_once = 1\n";
    let post = Post::start(&format!(
        "{retry}{}{}",
        route("bad://*", &broken),
        route("good://*", &sound)
    ));
    post.send(&request("B1", "bad://x")).await;
    post.tried("B1", 2).await;
    // The others are served, and this one is not called.
    for number in 0..5 {
        let id = format!("G{number}");
        post.send(&request(&id, "good://x")).await;
        post.is(&id, DeliveryState::Delivered).await;
    }
    post.send(&request("B2", "bad://x")).await;
    post.later(29);
    post.send(&request("G9", "good://x")).await;
    post.is("G9", DeliveryState::Delivered).await;
    assert_eq!(broken.count(), 2);
    // One finds out, and it still fails.
    // What is written down may be known a moment before the lane knows it: then the pause begins later.
    eventually("a trial", async || {
        post.later(1);
        (broken.count() == 3).then_some(())
    })
    .await;
    post.tried("B1", 3).await;
    eventually("both arrive", async || {
        post.later(30);
        let ways = [post.way("B1").await?, post.way("B2").await?];
        let is_there = ways.iter().all(|way| way.state == DeliveryState::Delivered);
        is_there.then_some(())
    })
    .await;
    assert_eq!(broken.count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_destination_holds_up_no_other() {
    let slow = Endpoint::closed(|_, _| Say::ok()).await;
    let quick = Endpoint::start(|_, _| Say::ok()).await;
    let post = Post::start(&format!(
        "{}{}",
        route("slow://*", &slow),
        route("quick://*", &quick)
    ));
    let texts = (0..300).map(|number| {
        let text = message(&format!("S{number}"), "ANN", "slow://x", "REQUEST");
        text.meta("routing", "X-Priority", "high").build().unwrap()
    });
    post.send_all(texts).await;
    post.send(&request("Q1", "quick://x")).await;
    post.is("Q1", DeliveryState::Delivered).await;
    eventually("so many at once", async || {
        (slow.count() >= 4).then_some(())
    })
    .await;
    // A fifth one would be called before the next message to somebody else is.
    post.send(&request("Q2", "quick://x")).await;
    post.is("Q2", DeliveryState::Delivered).await;
    assert_eq!(slow.count(), 4, "and no more");
    slow.let_go(300);
    for number in 0..300 {
        post.is(&format!("S{number}"), DeliveryState::Delivered)
            .await;
    }
    assert_eq!(slow.count(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn urgent_message_goes_first() {
    let endpoint = Endpoint::closed(|_, _| Say::ok()).await;
    let post = Post::start(&format!(
        "[retry]\nat_once = 1\n{}",
        route("bot://*", &endpoint)
    ));
    post.send(&request("FIRST", "bot://x")).await;
    eventually("the first request", async || {
        (endpoint.count() == 1).then_some(())
    })
    .await;
    for (id, priority) in [
        ("L", "low"),
        ("N1", "normal"),
        ("N2", "whatever"),
        ("H", "high"),
    ] {
        let text = message(id, "ANN", "bot://x", "REQUEST").meta("routing", "X-Priority", priority);
        post.send(&text.build().unwrap()).await;
    }
    eventually("filing", async || (post.count().await == 5).then_some(())).await;
    // What is leased is in its lane.
    eventually("leases", async || {
        let next = post.next_due().await?;
        (next > post.relay.now()).then_some(())
    })
    .await;
    endpoint.let_go(5);
    post.is("L", DeliveryState::Delivered).await;
    let order: Vec<String> = endpoint
        .asked()
        .iter()
        .map(|a| {
            a.body
                .lines()
                .find_map(|l| l.strip_prefix("message: "))
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(order, ["FIRST", "H", "N1", "N2", "L"]);
}

/// More than one lane holds: everything arrives, once.
#[tokio::test(flavor = "multi_thread")]
async fn many_messages_arrive_once_each() {
    let endpoint = Endpoint::start(|_, _| Say::ok()).await;
    let post = Post::start(&route("bot://*", &endpoint));
    let texts = (0..600).map(|number| request(&format!("M{number}"), "bot://x"));
    post.send_all(texts).await;
    for number in 0..600 {
        post.is(&format!("M{number}"), DeliveryState::Delivered)
            .await;
    }
    assert_eq!(endpoint.count(), 600);
}

/// The clock goes on by more than a lease while the destination thinks, twice.
#[tokio::test(flavor = "multi_thread")]
async fn attempt_that_outlives_its_lease_is_made_once() {
    let slow = Endpoint::closed(|_, _| Say::ok()).await;
    let post = Post::start(&format!(
        "[retry]\nat_once = 1\n{}",
        route("slow://*", &slow)
    ));
    post.send(&request("M1", "slow://x")).await;
    eventually("the request", async || (slow.count() == 1).then_some(())).await;
    post.send(&request("M2", "slow://x")).await;
    for _ in 0..2 {
        post.later(200);
        eventually("the lease is kept", async || {
            let next = post.next_due().await?;
            (next > post.relay.now()).then_some(())
        })
        .await;
    }
    slow.let_go(2);
    for id in ["M1", "M2"] {
        let way = post.is(id, DeliveryState::Delivered).await;
        assert_eq!((way.attempts, way.leased_at), (1, None), "{id}");
    }
    assert_eq!(slow.count(), 2);
}

/// Whoever leased a delivery after the one who tries it decides about it.
#[tokio::test(flavor = "multi_thread")]
async fn outcome_under_a_lost_lease_changes_nothing() {
    let slow = Endpoint::closed(|number, _| match number {
        0 => Say::Status(400, "", String::new()),
        _ => Say::ok(),
    })
    .await;
    let post = Post::start(&format!(
        "[retry]\nat_once = 1\n{}",
        route("slow://*", &slow)
    ));
    post.send(&request("M1", "slow://x")).await;
    eventually("the request", async || (slow.count() == 1).then_some(())).await;
    let lost = Lease {
        id: "M1".to_owned(),
        to: "slow://x".to_owned(),
        at: post.way("M1").await.unwrap().leased_at.unwrap(),
    };
    post.clock.fetch_add(1, Ordering::SeqCst);
    let end = Timestamp::from_millis(post.relay.now().as_millis() + 3_600_000);
    // Both are in the queue of the store before anybody else can lease it.
    let store = post.relay.store();
    let release = store.release(vec![lost], Duration::ZERO);
    let (released, stolen) = tokio::join!(release, store.lease(Duration::from_secs(3600), 1));
    assert_eq!(released.unwrap(), 1);
    let stolen = stolen.unwrap().remove(0);
    post.send(&request("M2", "slow://x")).await;
    slow.let_go(2);
    // One at a time: the first attempt is over when the second one is.
    post.is("M2", DeliveryState::Delivered).await;
    let way = post.way("M1").await.unwrap();
    assert_eq!((way.state, way.attempts), (DeliveryState::Queued, 0));
    assert_eq!(
        (way.leased_at, way.next_at),
        (Some(stolen.lease.at), Some(end))
    );
    assert!(
        post.inbox("ANN").await.is_empty(),
        "the sender is told nothing"
    );
}
