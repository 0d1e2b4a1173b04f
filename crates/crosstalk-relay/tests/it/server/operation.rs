//! What the operator of a relay looks at, and how it ends.

use crate::house::{House, Plan, letter, text};
use crate::http::Ask;
use crosstalk_testing::wait::{LIMIT, wait_until};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn it_says_how_it_is() {
    let house = Plan::default().config("name = \"relay.example\"").open();
    assert_eq!(
        (house.get("/healthz").status, house.get("/healthz").text()),
        (200, "ok\n")
    );
    assert_eq!(house.get("/readyz").text(), "ready\n");
    house.take(&text("A", "chatgpt://x/y", "M1"));
    house.ask(&Ask::send("x"));
    let metrics = house.get("/metrics");
    for line in [
        "crosstalk_messages_accepted_total 1",
        "crosstalk_messages_rejected_total{code=\"E-FORMAT\"} 1",
        "crosstalk_http_requests_total{class=\"4xx\"} 1",
    ] {
        assert!(metrics.text().contains(line), "{line}\n{}", metrics.text());
    }
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    let document: Value = serde_json::from_slice(&house.get("/openapi.json").body).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let page = house.ask(&Ask::new("GET", "/").accept("text/html"));
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.text().contains("relay.example") && !page.text().contains("<script>"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.text().contains("docs/guide/api.md") && page.text().contains("/openapi.json"));
    let plain = house.ask(&Ask::get("/").accept("text/plain"));
    assert!(plain.text().contains("openapi.json") && plain.text().contains("docs/guide/api.md"));
    assert!(!plain.text().contains('<'), "{}", plain.text());
    for path in ["/", "/healthz", "/readyz", "/openapi.json"] {
        let head = house.ask(&Ask::new("HEAD", path));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
    }
    // Who is at the machine itself has no limit.
    assert_eq!(house.get("/").header("ratelimit-policy"), None);
}

/// Waiting requests are answered, accepted messages indexed, and new connections rejected.
#[test]
fn it_ends_in_good_order() {
    let mut house = House::local();
    let mut waiting = house.line();
    waiting.send(
        Ask::get("/crosstalk/inbox?for=chatgpt://x/y&wait=60")
            .accept("application/json")
            .bytes(),
    );
    let mut asking = house.line();
    asking.send(
        Ask::send(text("A", "gemini://x/y", "M1"))
            .header("Prefer", "wait=60")
            .bytes(),
    );
    let mut idle = house.line();
    assert_eq!(Ask::get("/healthz").on(&mut idle).status, 200);
    // A request that has begun, and is not complete.
    let mut slow = house.line();
    let late = Ask::send(text("A", "cursor://x/y", "M2")).bytes();
    slow.send(&late[..late.len() - 1]);
    // The question is there, so that somebody waits for its answer.
    wait_until("the question", || !house.inbox("gemini://x/y").is_empty());
    house.begin_stop();
    let answer = waiting.answer();
    assert_eq!(
        (
            answer.status,
            answer.json()["messages"].as_array().unwrap().len()
        ),
        (200, 0)
    );
    assert_eq!(asking.answer().intent(), "ACK");
    assert!(idle.is_closed());
    slow.send(&late[late.len() - 1..]);
    assert_eq!(slow.answer().status, 200);
    house.end().unwrap();
    assert!(std::net::TcpStream::connect(house.addr).is_err());
    let store = house.store();
    assert!(store.has_indexed_all());
    assert!(store.record("M1").unwrap().is_some() && store.record("M2").unwrap().is_some());
}

#[test]
fn expired_and_old_messages_are_erased() {
    let house = Plan::default().config("[retention]\ndays = 1").open();
    let soon = letter("A", "chatgpt://x/y", "M1").meta("privacy", "Consent", "explicit_yes");
    let soon = soon
        .meta("privacy", "Expires", "2026-09-21T15:00:00Z")
        .build()
        .unwrap();
    house.take(&soon);
    house.take(&text("A", "chatgpt://x/y", "M2"));
    let data = house.close();
    // The clock starts where it did before; what ran out is erased at the next start, when the time has come.
    let house = House::open_at(Plan::default(), data, 3600).unwrap();
    let gone = |id: &str| house.get(&format!("/crosstalk/messages/{id}")).status == 404;
    wait_until("M1 to be erased", || gone("M1"));
    assert!(!gone("M2"));
    let house = House::open_at(
        Plan::default().config("[retention]\ndays = 1"),
        house.close(),
        90_000,
    )
    .unwrap();
    wait_until("M2 to be erased", || {
        house.get("/crosstalk/messages/M2").status == 404
    });
    // The same message does not come again as a new one.
    assert_eq!(
        house
            .ask(&Ask::send(text("A", "chatgpt://x/y", "M2")))
            .status,
        200
    );
    assert!(house.inbox("chatgpt://x/y").is_empty());
}

#[test]
fn tls_by_files() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let files = crosstalk_relay::config::Tls {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let house = Plan::default()
        .tls(crosstalk_relay::server::tls(&files).unwrap())
        .open();
    // A request without TLS is told to use TLS, and has no other effect.
    for ask in [Ask::get("/healthz"), Ask::send(text("A", "B", "M0"))] {
        let mut plain = house.line();
        plain.send(ask.bytes());
        let answer = plain.answer();
        let told = (answer.status, answer.code(), answer.text());
        assert_eq!((told.0, told.1.as_str()), (400, "E-FORMAT"));
        assert!(told.2.contains("https://"), "{}", told.2);
        assert!(plain.is_closed());
    }
    assert_eq!(house.store_count(), 0);
    let url = format!("https://localhost:{}", house.addr.port());
    let curl = |args: &[&str]| {
        let out = std::process::Command::new("curl")
            .arg("-sS")
            .arg("--cacert")
            .arg(&certificate)
            .args(args)
            .output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    assert_eq!(curl(&[&format!("{url}/healthz")]), "ok\n");
    let sent = text("A", "chatgpt://x/y", "M1");
    let ack = curl(&[
        "-H",
        "Content-Type: text/plain",
        "--data-binary",
        &sent,
        &format!("{url}/crosstalk/receive"),
    ]);
    assert!(ack.contains("intent: ACK"), "{ack}");
    let wrong = crosstalk_relay::config::Tls {
        certificate: key,
        key: certificate,
    };
    let fault = crosstalk_relay::server::tls(&wrong)
        .unwrap_err()
        .to_string();
    assert!(fault.contains("key.pem"), "{fault}");
}

/// A store that can't be written any more ends the server with its error.
#[test]
fn nothing_is_served_from_a_store_that_broke() {
    let mut house = House::local();
    house.take(&text("A", "chatgpt://x/y", "M1"));
    // Otherwise the indexing of M1 may meet the broken store first, and the server ends before it is asked.
    let progress = house.relay.indexing();
    crosstalk_testing::wait::wait_until("M1 is indexed", || {
        let progress = progress.borrow();
        progress.through > 0 && progress.left == 0
    });
    house.break_store();
    let answer = house.ask(&Ask::send(text("A", "chatgpt://x/y", "M2")));
    assert_eq!((answer.status, answer.code().as_str()), (503, "E-RATE"));
    assert!(answer.header("retry-after").is_some());
    let ended = house.wait();
    assert!(
        matches!(ended, Err(crosstalk_relay::server::ServeError::Store(_))),
        "{ended:?}"
    );
}

/// A writer that panicked writes nothing any more: the server ends with an error, as after any other fault of the store.
#[test]
fn a_panic_of_the_writer_ends_the_server() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let breaks = Arc::clone(&is_broken);
    // The thread that writes looks at the clock when it leases.
    let look = move || {
        let is_writer = std::thread::current().name() == Some("writer");
        let breaks = breaks.load(Ordering::Relaxed) && is_writer;
        assert!(!breaks, "as if by a defect");
    };
    let mut house = Plan::default().on_clock(look).open();
    house.take(&text("A", "chatgpt://x/y", "M1"));
    let relay = house.relay.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    is_broken.store(true, Ordering::Relaxed);
    let error = runtime.block_on(relay.store().lease(LIMIT, 1)).unwrap_err();
    let mut stopped = relay.stopped();
    let wait = stopped.wait_for(Option::is_some);
    let stopped = runtime.block_on(async { tokio::time::timeout(LIMIT, wait).await.map(drop) });
    assert!(stopped.is_ok(), "nobody hears of it: {error}");
    let ended = house.wait();
    assert!(
        matches!(ended, Err(crosstalk_relay::server::ServeError::Store(_))),
        "{ended:?}"
    );
}
