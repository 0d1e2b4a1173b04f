//! Every code of the draft, over HTTP, as an envelope and as JSON.

use crate::house::{House, Plan, letter, text};
use crate::http::Ask;
use crosstalk_api::ENDPOINTS;
use serde_json::json;

#[test]
fn every_code_of_the_draft_is_told() {
    let house = Plan::default()
        .config("[limits]\nlocal_requests_per_minute = 0")
        .open();
    let to = "chatgpt://thread/x";
    let of = |id: &str| letter("claude://code/api", to, id);
    let large = format!("{}{}", text("A", to, "M9"), " ".repeat(1 << 20));
    let past = "2020-01-01T00:00:00Z";
    let cases = [
        ("E-FORMAT", 400, "hello".to_owned()),
        ("E-TOO-LARGE", 413, large),
        (
            "E-UNSUPPORTED",
            422,
            text("A", to, "M1").replace(" v1]]", " v2]]"),
        ),
        (
            "E-UNSUPPORTED",
            422,
            of("M2")
                .meta("routing", "X-Delivery", "pigeon")
                .build()
                .unwrap(),
        ),
        (
            "E-CONSENT",
            403,
            of("M3")
                .meta("privacy", "Consent", "explicit_no")
                .build()
                .unwrap(),
        ),
        ("E-PERM", 403, text("SYSTEM", to, "M4")),
        (
            "E-ROUTE",
            404,
            of("M5")
                .meta("routing", "X-Delivery", "exec")
                .build()
                .unwrap(),
        ),
        (
            "E-TIMEOUT",
            504,
            of("M6")
                .meta("routing", "X-Deadline", past)
                .build()
                .unwrap(),
        ),
    ];
    for (code, status, text) in &cases {
        let answer = house.ask(&Ask::send(text));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (*status, *code),
            "{text:.200}"
        );
        let answer = house.ask(&Ask::send(text).accept("application/json"));
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (*status, &json!(code))
        );
    }
    assert!(house.inbox(to).is_empty());
    let house = Plan::default()
        .config("[limits]\nlocal_requests_per_minute = 2")
        .open();
    assert_eq!((house.get("/").status, house.get("/").status), (200, 200));
    let answer = house.ask(&Ask::send(text("A", to, "M7")));
    assert_eq!((answer.status, answer.code().as_str()), (429, "E-RATE"));
    let seconds = answer.header("retry-after").unwrap().to_owned();
    let document = crate::http::strict(answer.text());
    assert_eq!(
        document.meta("error", "Retry-After"),
        Some(seconds.as_str())
    );
    let answer = house.ask(&Ask::send(text("A", to, "M7")).accept("application/json"));
    assert!(
        answer.json()["error"]["retry_after"]
            .as_u64()
            .is_some_and(|s| s <= 60)
    );
    // What is asked to find out whether it lives is never counted.
    for _ in 0..5 {
        assert_eq!(
            (house.get("/healthz").status, house.get("/readyz").status),
            (200, 200)
        );
    }
}

#[test]
fn every_path_refuses_in_the_same_way() {
    let house = House::local();
    for (method, path, status, code) in [
        ("GET", "/crosstalk", 404, "E-ROUTE"),
        ("GET", "/crosstalk/nothing", 404, "E-ROUTE"),
        ("GET", "/nothing", 404, "E-ROUTE"),
        ("GET", "/crosstalk/messages/M1", 404, "E-ROUTE"),
        ("GET", "/crosstalk/messages/M1/status", 404, "E-ROUTE"),
        ("GET", "/crosstalk/threads/T1", 404, "E-ROUTE"),
        ("POST", "/crosstalk/dead/M1/requeue", 404, "E-ROUTE"),
        ("DELETE", "/crosstalk/tokens/nobody", 404, "E-ROUTE"),
        ("GET", "/crosstalk/receive", 405, "E-UNSUPPORTED"),
        ("DELETE", "/crosstalk/inbox", 405, "E-UNSUPPORTED"),
        ("OPTIONS", "/crosstalk/receive", 405, "E-UNSUPPORTED"),
        ("TRACE", "/", 405, "E-UNSUPPORTED"),
        ("BREW", "/crosstalk/ack", 405, "E-UNSUPPORTED"),
        ("GET", "/crosstalk/inbox", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=A&limit=0", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=A&limit=501", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=A&wait=61", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=A&after=x", 400, "E-FORMAT"),
        (
            "GET",
            "/crosstalk/inbox?for=A&after=18446744073709551615",
            400,
            "E-FORMAT",
        ),
        ("GET", "/crosstalk/inbox?for=A&for=B", 400, "E-FORMAT"),
        ("GET", "/crosstalk/inbox?for=%FF", 400, "E-FORMAT"),
        ("GET", "/crosstalk/messages/%00", 400, "E-FORMAT"),
        ("GET", "/crosstalk/search", 400, "E-FORMAT"),
        ("GET", "/crosstalk/search?q=--", 400, "E-FORMAT"),
        ("GET", "/crosstalk/threads?open=maybe", 400, "E-FORMAT"),
        ("GET", "/crosstalk/threads?skip=-1", 400, "E-FORMAT"),
        ("GET", "/crosstalk/resolve", 400, "E-FORMAT"),
        ("GET", "/crosstalk/blobs/sha256:00", 400, "E-FORMAT"),
        ("POST", "/crosstalk/ack", 415, "E-UNSUPPORTED"),
        ("PUT", "/crosstalk/agents", 415, "E-UNSUPPORTED"),
        ("POST", "/crosstalk/tokens", 415, "E-UNSUPPORTED"),
        ("POST", "/crosstalk/courier/M1", 415, "E-UNSUPPORTED"),
    ] {
        let answer = house.ask(&Ask::new(method, path).body(""));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path}"
        );
        assert_eq!(
            answer.header("allow").is_some(),
            status == 405,
            "{method} {path}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let answer = house.ask(&Ask::new(method, path).body("").accept("application/json"));
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &error["code"]), (status, &json!(code)));
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.contains("What to do: "), "{method} {path}: {detail}");
        if code == "E-FORMAT" {
            assert_eq!(error["reason"], "Malformed request", "{method} {path}");
        }
    }
    for (path, wanted) in [
        ("/crosstalk/inbox?for=A", "image/png"),
        ("/crosstalk/threads", "text/plain"),
        ("/crosstalk/agents", "text/html"),
    ] {
        let answer = house.ask(&Ask::get(path).accept(wanted));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (406, "E-UNSUPPORTED"),
            "{path}"
        );
    }
    let allowed = house.ask(&Ask::new("PATCH", "/crosstalk/agents"));
    assert_eq!(allowed.header("allow"), Some("GET, PUT"));
}

#[test]
fn json_that_is_something_else_is_refused() {
    let house = House::local();
    for (method, path, body) in [
        ("POST", "/crosstalk/ack", json!([])),
        ("POST", "/crosstalk/ack", json!({"for": "A"})),
        ("POST", "/crosstalk/ack", json!({"for": "A", "ids": []})),
        (
            "POST",
            "/crosstalk/ack",
            json!({"for": "A", "ids": ["M1"], "state": "delivered"}),
        ),
        (
            "POST",
            "/crosstalk/ack",
            json!({"for": "A", "ids": ["a\nb"]}),
        ),
        (
            "POST",
            "/crosstalk/ack",
            json!({"for": "A", "ids": vec!["x"; 501]}),
        ),
        ("POST", "/crosstalk/ack", json!({"for": 7, "ids": ["M1"]})),
        (
            "PUT",
            "/crosstalk/agents",
            json!({"address": "", "capabilities": []}),
        ),
        (
            "PUT",
            "/crosstalk/agents",
            json!({"address": "A", "capabilities": [7]}),
        ),
        (
            "PUT",
            "/crosstalk/agents",
            json!({"address": "A", "capabilities": vec!["x"; 65]}),
        ),
        (
            "PUT",
            "/crosstalk/agents",
            json!({"address": "A", "capabilities": ["x".repeat(201)]}),
        ),
        (
            "POST",
            "/crosstalk/tokens",
            json!({"name": "-", "role": "agent", "addresses": ["A"]}),
        ),
        (
            "POST",
            "/crosstalk/tokens",
            json!({"name": "a", "role": "king", "addresses": ["A"]}),
        ),
        (
            "POST",
            "/crosstalk/tokens",
            json!({"name": "a", "role": "agent", "addresses": []}),
        ),
        (
            "POST",
            "/crosstalk/tokens",
            json!({"name": "a", "role": "agent", "addresses": ["a*b"]}),
        ),
        (
            "POST",
            "/crosstalk/tokens",
            json!({"name": "a", "role": "agent", "addresses": ["A"], "expires_at": "2020-01-01"}),
        ),
        (
            "POST",
            "/crosstalk/courier/M1",
            json!({"to": "A", "state": "eaten"}),
        ),
    ] {
        let answer = house.ask(&Ask::json(method, path, &body));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "E-FORMAT"),
            "{path} {body:.100}"
        );
        assert!(answer.text().contains("What to do: "), "{}", answer.text());
    }
    let answer = house.ask(&Ask::json("POST", "/crosstalk/ack", &json!({})).body("{"));
    assert_eq!(answer.code(), "E-FORMAT");
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let answer = house.ask(&Ask::json("POST", "/crosstalk/ack", &json!({})).body(deep));
    assert_eq!(answer.code(), "E-FORMAT");
}

#[test]
fn every_endpoint_is_routed_by_its_path_and_method() {
    let house = House::local();
    for endpoints in ENDPOINTS.chunk_by(|a, b| a.path == b.path) {
        let methods: Vec<&str> = endpoints.iter().map(|e| e.method.as_str()).collect();
        for segment in ["sha256:00%2F", "%zz", ""] {
            let path = endpoints[0].path.replace("{}", segment);
            let answer = house.ask(&Ask::new("PATCH", &path));
            assert_eq!(answer.status, 405, "{path}");
            assert_eq!(answer.header("allow"), Some(&*methods.join(", ")), "{path}");
            let is_head = house.ask(&Ask::new("HEAD", &path)).status != 405;
            assert_eq!(is_head, methods.contains(&"HEAD"), "{path}");
        }
    }
    for path in [
        "/crosstalk",
        "/crosstalk/",
        "/crosstalk/receive/",
        "/crosstalk/messages/a/b",
        "//",
    ] {
        assert_eq!(house.get(path).status, 404, "{path}");
    }
    assert_eq!(house.get("/crosstalk/messages/").status, 400);
}
