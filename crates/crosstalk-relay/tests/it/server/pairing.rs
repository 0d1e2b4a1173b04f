//! Browser extensions: their origins, and tokens for pairing codes (HTP-069).

use crate::house::{House, Plan, START, secret, token};
use crate::http::{Answer, Ask};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{PAIRING_SECONDS, Role, TokenRecord, pairing_digest};
use serde_json::json;

const ORIGIN: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";

/// A relay that lists an extension, with a pairing code for each of some numbers of seconds.
fn office(codes: &[(&str, i64)]) -> Plan {
    let config = format!("[extension]\norigins = [\"{ORIGIN}\"]\n");
    let plan = Plan::default()
        .config(&config)
        .token("ops", Role::Admin, &[]);
    codes.iter().fold(plan, |plan, (code, seconds)| {
        plan.record(TokenRecord {
            hash: pairing_digest(code).unwrap(),
            courier: vec!["chatgpt://*".to_owned()],
            expires_at: Some(Timestamp::from_millis(START + seconds * 1000)),
            ..token(&format!("browser-{code}"), Role::Person, &["ANN"])
        })
    })
}

fn pair(house: &House, code: &str) -> Answer {
    let ask = Ask::json("POST", "/crosstalk/pair", &json!({ "code": code }));
    house.ask(&ask.accept("application/json").header("Origin", ORIGIN))
}

#[test]
fn code_gives_a_token_once() {
    let house = office(&[("0000-0001", PAIRING_SECONDS)]).open();
    // What waits under a code is no token yet, whatever is sent.
    for guess in ["0000-0001", "00000001", "crosstalk pairing\\n00000001"] {
        let ask = Ask::get("/crosstalk/courier").token(guess);
        assert_eq!(house.ask(&ask).status, 401, "{guess}");
    }
    let made = pair(&house, " 0000 oooi ");
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert_eq!(made["courier"], json!(["chatgpt://*"]));
    assert_eq!(made["expires_at"], json!(null));
    let paired = made["token"].as_str().unwrap();
    let courier = || {
        house.ask(
            &Ask::get("/crosstalk/courier")
                .token(paired)
                .accept("application/json"),
        )
    };
    assert_eq!(courier().status, 200);
    assert_eq!(pair(&house, "0000-0001").status, 403, "twice");
    // Its owner revokes it.
    let unpair = Ask::new("DELETE", "/crosstalk/pair").token(paired);
    assert_eq!(house.ask(&unpair).status, 204);
    assert_eq!(courier().status, 401);
    assert_eq!(house.ask(&unpair).status, 401);
}

#[test]
fn other_codes_give_nothing_and_are_limited() {
    let house = office(&[("0000-0001", 0)]).open();
    let words = |code: &str| {
        let answer = pair(&house, code);
        (answer.status, answer.text().to_owned())
    };
    let expired = words("0000-0001");
    assert_eq!(expired.0, 403);
    for code in ["0000-0002", "short", "", &"0".repeat(1000)] {
        assert_eq!(words(code), expired, "{code}");
    }
    let tries = std::iter::repeat_with(|| pair(&house, "0000-0003").status);
    let limited = tries.take(20).find(|status| *status != 403);
    assert_eq!(limited, Some(429));
}

#[test]
fn only_listed_extensions_reach_the_relay() {
    let house = office(&[]).open();
    let preflight = |origin: &str, host: &str| {
        let ask = Ask::new("OPTIONS", "/crosstalk/courier").header("Origin", origin);
        let ask = ask
            .header("Host", host)
            .header("Sec-Fetch-Site", "cross-site");
        house.ask(&ask.header("Access-Control-Request-Method", "GET"))
    };
    let allowed = preflight(ORIGIN, "localhost");
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(ORIGIN));
    let headers = allowed.header("access-control-allow-headers").unwrap();
    assert!(headers.contains("authorization"));
    let foreign = preflight(ORIGIN, "evil.example");
    assert_eq!(foreign.status, 403);
    let get = |origin: &str| {
        let ask = Ask::get("/crosstalk/courier").token(&secret("ops"));
        house.ask(
            &ask.header("Origin", origin)
                .header("Sec-Fetch-Site", "cross-site"),
        )
    };
    let read = get(ORIGIN);
    assert_eq!(read.status, 200);
    assert_eq!(read.header("access-control-allow-origin"), Some(ORIGIN));
    assert_eq!(read.header("vary"), Some("Origin"));
    for origin in [
        "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba",
        "moz-extension://abcdefghijklmnopabcdefghijklmnop",
        "https://evil.example",
        "null",
    ] {
        let (read, asked) = (get(origin), preflight(origin, "localhost"));
        assert_eq!((read.status, asked.status), (403, 403), "{origin}");
        assert_eq!(read.header("access-control-allow-origin"), None);
        assert_eq!(asked.header("access-control-allow-origin"), None);
    }
}

/// Without tokens, every program on the machine is the local person, but not an extension.
#[test]
fn extension_is_not_the_local_person() {
    let config = format!("[extension]\norigins = [\"{ORIGIN}\"]\n");
    let house = Plan::default().config(&config).open();
    let ask = Ask::get("/crosstalk/courier").accept("application/json");
    assert_eq!(house.ask(&ask).status, 200);
    assert_eq!(house.ask(&ask.header("Origin", ORIGIN)).status, 401);
}
