//! Who may do what.

use crate::house::{House, Plan, START, key, letter, secret, signed, text, token};
use crate::http::Ask;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::relay::Role;
use crosstalk_protocol::rotation::key_block;
use crosstalk_relay::server::ServeError;
use serde_json::json;

fn office() -> Plan {
    Plan::default()
        .token(
            "ci",
            Role::Agent,
            &["claude://code/*", "human://acme.example/*", "CLAUDE"],
        )
        .token("gpt", Role::Agent, &["chatgpt://thread/x"])
        .token("ann", Role::Person, &["human://acme.example/ann", "ANN"])
        .token("ops", Role::Admin, &[])
}

/// Threat 38, and who may send as whom: by role and address.
#[test]
fn a_credential_speaks_for_its_addresses_alone() {
    let house = office().open();
    let mut count = 0;
    for (name, sender, may) in [
        ("ci", "claude://code/api", true),
        ("ci", "Claude", true),
        ("ci", "claude://chat/7", false),
        ("ci", "human://acme.example/ann", false),
        ("ci", "Human://acme.example/ann", false),
        ("gpt", "chatgpt://thread/x", true),
        ("gpt", "claude://code/api", false),
        ("gpt", "human://acme.example/ann", false),
        ("ann", "human://acme.example/ann", true),
        ("ann", "ann", true),
        ("ann", "human://acme.example/bob", false),
        ("ops", "human://acme.example/ann", false),
        ("ops", "claude://code/api", false),
        ("ops", "SYSTEM", false),
    ] {
        count += 1;
        let sent = text(sender, "chatgpt://thread/x", &format!("M{count}"));
        let answer = house.ask(&Ask::send(sent).token(&secret(name)));
        match may {
            true => assert_eq!(answer.status, 200, "{name} {sender}"),
            false => assert_eq!(
                (answer.status, answer.code().as_str()),
                (403, "E-PERM"),
                "{name} {sender}"
            ),
        }
    }
    for (name, address, may) in [
        ("ci", "claude://code/api", true),
        ("ci", "human://acme.example/ann", false),
        ("ci", "chatgpt://thread/x", false),
        ("ann", "human://acme.example/ann", true),
        ("ann", "claude://code/api", false),
        ("ops", "human://acme.example/ann", true),
        ("ops", "chatgpt://thread/x", true),
    ] {
        let path = format!("/crosstalk/inbox?for={address}");
        for accept in ["text/plain", "application/json", "text/event-stream"] {
            let mut line = house.line();
            line.send(Ask::get(&path).token(&secret(name)).accept(accept).bytes());
            let status = line.head().unwrap().status;
            assert_eq!(
                status,
                if may { 200 } else { 403 },
                "{name} {address} {accept}"
            );
        }
        let ack = json!({"for": address, "ids": ["M1"]});
        let answer = house.ask(&Ask::json("POST", "/crosstalk/ack", &ack).token(&secret(name)));
        assert_eq!(
            answer.status,
            if may { 200 } else { 403 },
            "{name} {address}"
        );
        // A declaration is made by who speaks for the address, not by who may look.
        let agent = json!({"address": address, "capabilities": ["x"]});
        let answer = house.ask(&Ask::json("PUT", "/crosstalk/agents", &agent).token(&secret(name)));
        let speaks = may && name != "ops";
        assert_eq!(
            answer.status,
            if speaks { 200 } else { 403 },
            "{name} {address}"
        );
    }
}

/// Every path, for every kind of caller.
#[test]
fn every_path_is_for_those_it_is_meant_for() {
    let house = office().open();
    let blob = format!("/crosstalk/blobs/sha256:{}", "0".repeat(64));
    let known = [
        ("GET", "/crosstalk/inbox?for=x://y"),
        ("POST", "/crosstalk/ack"),
        ("GET", "/crosstalk/messages/M1"),
        ("GET", "/crosstalk/messages/M1/status"),
        ("GET", "/crosstalk/threads"),
        ("GET", "/crosstalk/threads/T1"),
        ("GET", "/crosstalk/search?q=x"),
        ("GET", blob.as_str()),
        ("HEAD", blob.as_str()),
        ("PUT", blob.as_str()),
        ("GET", "/crosstalk/resolve?name=X"),
        ("GET", "/crosstalk/agents"),
        ("PUT", "/crosstalk/agents"),
    ];
    let person = [
        ("GET", "/crosstalk/approvals"),
        ("GET", "/crosstalk/approvals/M1"),
        ("POST", "/crosstalk/approvals/M1"),
        ("GET", "/crosstalk/courier"),
        ("POST", "/crosstalk/courier/M1"),
    ];
    let admin = [
        ("GET", "/crosstalk/dead"),
        ("POST", "/crosstalk/dead/M1/requeue"),
        ("GET", "/crosstalk/quarantine"),
        ("POST", "/crosstalk/quarantine/retry"),
        ("GET", "/crosstalk/routes"),
        ("GET", "/crosstalk/trust"),
        ("POST", "/crosstalk/trust/pin"),
        ("POST", "/crosstalk/trust/distrust"),
        ("GET", "/crosstalk/tokens"),
        ("POST", "/crosstalk/tokens"),
        ("DELETE", "/crosstalk/tokens/nobody"),
    ];
    let groups = [(&known[..], 0), (&person[..], 1), (&admin[..], 2)];
    for (paths, needs) in groups {
        for (method, path) in paths {
            let ask = Ask::new(method, path).body("");
            let answer = house.ask(&ask);
            assert_eq!(answer.status, 401, "{method} {path}");
            assert_eq!(
                answer.header("www-authenticate"),
                Some("Bearer"),
                "{method} {path}"
            );
            if *method != "HEAD" {
                assert_eq!(answer.code(), "E-PERM");
            }
            for (name, has) in [("gpt", 0), ("ann", 1), ("ops", 2)] {
                let status = house.ask(&ask.clone().token(&secret(name))).status;
                // A path may be refused for other reasons; whether it is for this caller shows in the details.
                let refused = status == 403 && !path.contains("inbox");
                assert_eq!(refused, has < needs, "{method} {path} {name} {status}");
            }
        }
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/"] {
        assert_eq!(house.get(path).status, 200, "{path}");
    }
}

#[test]
fn a_credential_that_does_not_count_is_refused_with_the_reason() {
    let mut old = token("old", Role::Agent, &["*"]);
    old.expires_at = Some(Timestamp::from_millis(crate::house::START + 60_000));
    let mut gone = token("gone", Role::Agent, &["*"]);
    gone.revoked_at = Some(Timestamp::from_millis(1));
    let house = office().record(old).record(gone).open();
    let ask = Ask::get("/crosstalk/agents");
    assert_eq!(house.ask(&ask.clone().token(&secret("old"))).status, 200);
    house.later(60);
    for (value, word) in [
        ("Bearer xt_old", "expired"),
        ("Bearer xt_gone", "revoked"),
        ("Bearer xt_nobody", "not one of this relay"),
        ("Bearer ", "Bearer"),
        ("Basic eHg6eHg=", "Bearer"),
        ("xt_ci", "Bearer"),
    ] {
        let answer = house.ask(&ask.clone().header("Authorization", value));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "E-PERM"),
            "{value}"
        );
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert!(answer.text().contains(word), "{value}: {}", answer.text());
    }
    assert_eq!(
        house
            .ask(&ask.header("Authorization", "bearer  xt_ci "))
            .status,
        200
    );
    // Where none is needed, a wrong one is wrong as well.
    let house = House::local();
    assert_eq!(
        house
            .ask(&Ask::get("/crosstalk/agents").token("xt_nobody"))
            .status,
        401
    );
}

#[test]
fn a_token_is_made_shown_once_and_ended() {
    let house = office().open();
    let ops = secret("ops");
    let wanted = json!({"name": "new", "role": "agent", "addresses": ["gemini://*"], "expires_at": "2030-01-01T00:00:00Z"});
    let made = house.ask(&Ask::json("POST", "/crosstalk/tokens", &wanted).token(&ops));
    assert_eq!(made.status, 201);
    let made = made.json();
    let new = made["token"].as_str().unwrap();
    assert!(new.starts_with("xt_") && new.len() == 46, "{new}");
    assert_eq!(made["expires_at"], "2030-01-01T00:00:00Z");
    let again = house.ask(&Ask::json("POST", "/crosstalk/tokens", &wanted).token(&ops));
    assert_eq!((again.status, again.code().as_str()), (400, "E-FORMAT"));
    let list = house.ask(&Ask::get("/crosstalk/tokens").token(&ops));
    assert!(!list.text().contains(new) && list.text().contains("gemini://*"));
    assert_eq!(list.json()["tokens"].as_array().unwrap().len(), 5);
    // Nothing of the secret is on disk.
    assert!(
        house
            .store()
            .tokens()
            .unwrap()
            .iter()
            .all(|t| !format!("{t:?}").contains(new))
    );
    let sent = Ask::send(text("gemini://a/b", "ANN", "M1")).token(new);
    assert_eq!(house.ask(&sent).status, 200);
    let human = json!({"name": "bad", "role": "agent", "addresses": ["human://*"]});
    let refused = house.ask(&Ask::json("POST", "/crosstalk/tokens", &human).token(&ops));
    assert_eq!((refused.status, refused.code().as_str()), (403, "E-PERM"));
    assert_eq!(
        house
            .ask(&Ask::new("DELETE", "/crosstalk/tokens/new").token(&ops))
            .status,
        204
    );
    assert_eq!(house.ask(&sent).status, 401);
    assert_eq!(
        house
            .ask(&Ask::new("DELETE", "/crosstalk/tokens/new").token(&ops))
            .status,
        404
    );
}

/// A key id of a domain belongs to an address of that domain, not to the first caller.
#[test]
fn key_id_of_another_domain_is_rejected() {
    let mal = PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap();
    let (ann, id) = (key(), "ann@acme.example");
    let house = Plan::default()
        .token("mal", Role::Agent, &["mal://*"])
        .token("ann", Role::Person, &["human://acme.example/ann"])
        .open();
    let send = |from: &str, message: &str, key: &PrivateKey, name: &str| {
        let sent = text(from, "BOB", message);
        let signer = Signer {
            key,
            pkid: id,
            at: Timestamp::from_millis(START),
            key_block: &key_block(id, &key.public(), None),
        };
        let sent = signer
            .sign(&Document::parse(&sent, Reading::Strict))
            .unwrap();
        house.ask(&Ask::send(sent).token(&secret(name))).status
    };
    assert_eq!(send("mal://x", "M1", &mal, "mal"), 200);
    for message in ["M2", "M3"] {
        assert_eq!(send("human://acme.example/ann", message, &ann, "ann"), 200);
    }
    // It is hers, and only for her address. Mal's key is that of a first contact each time, and never speaks alone.
    assert_eq!(send("mal://x", "M4", &mal, "mal"), 200);
    let alone = |from: &str, message: &str, key: &PrivateKey| {
        let sent = signed(&text(from, "BOB", message), key, id);
        house.ask(&Ask::send(sent)).status
    };
    assert_ne!(alone("mal://x", "M5", &mal), 200);
    assert_ne!(alone("human://acme.example/ann", "M6", &mal), 200);
    assert_eq!(alone("human://acme.example/ann", "M7", &ann), 200);
}

/// Threat 38: a simple name that stands for a person is that person.
#[test]
fn no_agent_is_a_person_under_another_name() {
    let house = Plan::default()
        .config("[names]\nANN = \"human://acme.example/ann\"")
        .token("star", Role::Agent, &["*"])
        .token("ann", Role::Person, &["human://acme.example/ann", "ANN"])
        .open();
    for (name, sender, status) in [
        ("star", "ANN", 403),
        ("star", "ann", 403),
        ("star", "BOB", 200),
        ("ann", "ANN", 200),
    ] {
        let sent = text(sender, "BOB", &format!("M-{name}-{sender}"));
        let answer = house.ask(&Ask::send(sent).token(&secret(name)));
        assert_eq!(answer.status, status, "{name} {sender}: {}", answer.text());
    }
    for path in ["/crosstalk/inbox?for=ANN", "/crosstalk/inbox?for=ann"] {
        assert_eq!(
            house.ask(&Ask::get(path).token(&secret("star"))).status,
            403,
            "{path}"
        );
        assert_eq!(
            house.ask(&Ask::get(path).token(&secret("ann"))).status,
            200,
            "{path}"
        );
    }
    let ack = json!({"for": "ANN", "ids": ["M1"]});
    let ack = Ask::json("POST", "/crosstalk/ack", &ack).token(&secret("star"));
    assert_eq!(house.ask(&ack).status, 403);
}

/// Threat 38: a simple name that a person's token is bound to is that person's, whatever a pattern covers.
#[test]
fn agent_with_a_star_is_nobody_that_a_token_of_a_person_names() {
    let house = Plan::default()
        .token("star", Role::Agent, &["*"])
        .token("begins", Role::Agent, &["a*"])
        .token("both", Role::Agent, &["ANN"])
        .token("ann", Role::Person, &["ANN"])
        .open();
    let sent = Ask::send(text("BOB", "ANN", "M1")).token(&secret("star"));
    assert_eq!(house.ask(&sent).status, 200);
    for (name, may) in [
        ("star", false),
        ("begins", false),
        ("both", true),
        ("ann", true),
    ] {
        let token = secret(name);
        let status = if may { 200 } else { 403 };
        for path in ["/crosstalk/inbox?for=ANN", "/crosstalk/inbox?for=ann"] {
            let answer = house.ask(&Ask::get(path).token(&token));
            assert_eq!(answer.status, status, "{name} {path}");
        }
        let ack = json!({"for": "ANN", "ids": ["M9"]});
        let ack = Ask::json("POST", "/crosstalk/ack", &ack).token(&token);
        assert_eq!(house.ask(&ack).status, status, "{name}");
        let sent = text("ann", "CLAUDE", &format!("M-{name}"));
        let answer = house.ask(&Ask::send(sent).token(&token));
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
    }
}

/// Threat 19: names that lead here, and pages of other sites.
#[test]
fn only_requests_to_a_name_of_the_relay_pass() {
    let house = Plan::default()
        .config("name = \"relay.example\"\nhosts = [\"console.example\"]")
        .open();
    let port = house.addr.port();
    let own = format!("127.0.0.1:{port}");
    let paths = [
        "/crosstalk/inbox?for=A",
        "/crosstalk/agents",
        "/",
        "/openapi.json",
        "/metrics",
        "/crosstalk/nothing",
    ];
    for path in paths {
        let wanted = if path.ends_with("nothing") { 404 } else { 200 };
        for host in [
            "localhost",
            own.as_str(),
            "[::1]:99",
            "relay.example",
            "CONSOLE.example:443",
        ] {
            assert_eq!(
                house.ask(&Ask::get(path).header("Host", host)).status,
                wanted,
                "{path} {host}"
            );
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.2",
            "relay.example.evil",
        ] {
            let answer = house.ask(&Ask::get(path).header("Host", host));
            if path.ends_with("nothing") {
                assert_eq!(answer.status, 404);
            } else {
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (403, "E-PERM"),
                    "{path} {host}"
                );
            }
        }
        assert_eq!(
            house.ask(&Ask::get(path).without("Host")).status,
            if wanted == 404 { 404 } else { 400 }
        );
    }
    let sent = Ask::send(text("A", "chatgpt://x/y", "M1"));
    for (name, value, status) in [
        ("Origin", "https://relay.example", 200),
        ("Origin", "https://console.example:8443", 200),
        ("Origin", "http://localhost", 200),
        ("Origin", "http://localhost:1", 403),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "CROSS-SITE", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "none", 200),
    ] {
        let answer = house.ask(&sent.clone().header(name, value));
        assert_eq!(answer.status, status, "{name}: {value}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let own = format!("http://localhost:{port}");
    assert_eq!(house.ask(&sent.clone().header("Origin", &own)).status, 200);
    // One good request does not open the connection for others.
    let mut line = house.line();
    assert_eq!(sent.on(&mut line).status, 200);
    assert_eq!(
        sent.clone()
            .header("Host", "evil.example")
            .on(&mut line)
            .status,
        403
    );
    assert_eq!(
        sent.clone()
            .header("Origin", "https://evil.example")
            .on(&mut line)
            .status,
        403
    );
    assert_eq!(sent.on(&mut line).status, 200);
    line.send("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(line.answer().status, 403);
    // Whether it lives can be asked under any name.
    assert_eq!(
        house
            .ask(&Ask::get("/healthz").header("Host", "10.1.2.3"))
            .status,
        200
    );
}

#[test]
fn a_proxy_does_not_make_everybody_the_person_at_this_machine() {
    let house = House::local();
    for name in [
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
    ] {
        for path in ["/crosstalk/agents", "/metrics"] {
            let answer = house.ask(&Ask::get(path).header(name, "192.0.2.1"));
            assert_eq!(answer.status, 401, "{name} {path}");
        }
    }
    assert_eq!(house.get("/crosstalk/agents").status, 200);
    let house = office().open();
    assert_eq!(house.get("/metrics").status, 200);
    let forwarded = Ask::get("/metrics").header("X-Forwarded-For", "192.0.2.1");
    for (name, status) in [("ops", 200), ("ann", 403)] {
        let answer = house.ask(&forwarded.clone().token(&secret(name)));
        assert_eq!(answer.status, status, "{name}");
    }
}

/// Threat 19: every server on this machine has its names.
#[test]
fn a_page_of_another_port_does_not_pass() {
    let house = House::local();
    let host = house.addr.to_string();
    let port = house.addr.port();
    let sent = Ask::send(text("A", "chatgpt://x/y", "M1")).header("Host", &host);
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        for (other, status) in [(port, 200), (3000, 403), (80, 403)] {
            let origin = format!("http://{name}:{other}");
            let answer = house.ask(&sent.clone().header("Origin", &origin));
            assert_eq!(answer.status, status, "{origin}");
        }
    }
}

#[test]
fn public_listener_needs_credentials() {
    let plan = || Plan::default().config("").listen("0.0.0.0:0");
    let mut house = House::open(plan(), tempfile::tempdir().unwrap()).unwrap();
    let ended = house.end();
    assert!(
        matches!(ended, Err(ServeError::NoCredentials(_))),
        "{ended:?}"
    );
    let house = plan()
        .token("ops", Role::Admin, &[])
        .token("ci", Role::Agent, &["A"])
        .open();
    assert_eq!(house.get("/healthz").status, 200);
    assert_eq!(house.get("/metrics").status, 401);
    assert_eq!(
        house.ask(&Ask::get("/metrics").token(&secret("ci"))).status,
        403
    );
    assert_eq!(
        house
            .ask(&Ask::get("/metrics").token(&secret("ops")))
            .status,
        200
    );
    // The address that was connected to is a name of the relay.
    let host = format!("127.0.0.1:{}", house.addr.port());
    assert_eq!(house.ask(&Ask::get("/").header("Host", &host)).status, 200);
    assert_eq!(
        house.ask(&Ask::get("/").header("Host", "0.0.0.0")).status,
        200
    );
    assert_eq!(
        house.ask(&Ask::get("/").header("Host", "192.0.2.7")).status,
        403
    );
}

/// A message, a thread, a search: only for those who have a part in it.
#[test]
fn messages_of_others_are_hidden() {
    let house = office().open();
    let ask = |path: &str, name: &str| {
        house.ask(
            &Ask::get(path)
                .token(&secret(name))
                .accept("application/json"),
        )
    };
    let send = |text: String, name: &str| house.ask(&Ask::send(text).token(&secret(name))).status;
    assert_eq!(
        send(
            text("claude://code/api", "human://acme.example/ann", "M1"),
            "ci"
        ),
        200
    );
    for (name, sees) in [("ci", true), ("ann", true), ("ops", true), ("gpt", false)] {
        for path in [
            "/crosstalk/messages/M1",
            "/crosstalk/messages/M1/status",
            "/crosstalk/threads/T1",
        ] {
            assert_eq!(
                ask(path, name).status,
                if sees { 200 } else { 404 },
                "{name} {path}"
            );
        }
        let found = ask("/crosstalk/search?q=ripe", name).json();
        assert_eq!(
            found["messages"].as_array().unwrap().len(),
            usize::from(sees),
            "{name}"
        );
        let threads = ask("/crosstalk/threads", name).json();
        assert_eq!(
            threads["threads"].as_array().unwrap().len(),
            usize::from(sees),
            "{name}"
        );
    }
    // Who names a thread does not see it because of that.
    let join = letter("chatgpt://thread/x", "claude://code/api", "M2")
        .context("mine")
        .body("ripe?");
    assert_eq!(send(join.build().unwrap(), "gpt"), 200);
    assert_eq!(ask("/crosstalk/messages/M1", "gpt").status, 404);
    let thread = ask("/crosstalk/threads/T1", "gpt").json();
    assert_eq!(crate::house::ids(&thread["messages"]), ["M2"]);
    assert_eq!(thread["thread"]["context"], json!(null));
    assert!(!thread.to_string().contains("acme"), "{thread}");
    let document = Ask::get("/crosstalk/threads/T1").token(&secret("gpt"));
    let document = house.ask(&document.accept("text/markdown"));
    assert!(document.text().contains("ripe?"), "{}", document.text());
    for hidden in ["acme", "plums"] {
        assert!(!document.text().contains(hidden), "{}", document.text());
    }
    let handed = letter("chatgpt://thread/x", "chatgpt://thread/x", "M3").intent("HANDOFF");
    assert_eq!(send(handed.build().unwrap(), "gpt"), 403);
    let inbox = ask("/crosstalk/inbox?for=chatgpt://thread/x", "gpt").json();
    assert!(!inbox.to_string().contains("acme"), "{inbox}");
    // Whoever is asked to take over sees what the one who asks could see.
    let up = letter("claude://code/api", "human://acme.example/ann", "M4").intent("ESCALATE");
    assert_eq!(send(up.build().unwrap(), "ci"), 200);
    let thread = ask("/crosstalk/threads/T1", "ann").json();
    assert_eq!(crate::house::ids(&thread["messages"]), ["M1", "M2", "M4"]);
    assert_eq!(ask("/crosstalk/messages/M2", "ann").status, 200);
    assert_eq!(ask("/crosstalk/messages/M3", "ann").status, 404);
}

/// A recipient sees how far a message is with itself; how far it is with others is the sender's.
#[test]
fn a_recipient_sees_its_own_delivery() {
    let house = office().open();
    let targets = "[\"chatgpt://thread/x\",\"human://acme.example/ann\"]";
    let sent = letter("claude://code/api", "ALL", "B1").intent("BROADCAST");
    let sent = sent.meta("routing", "Targets", targets).build().unwrap();
    assert_eq!(house.ask(&Ask::send(sent).token(&secret("ci"))).status, 200);
    for (name, count) in [("ci", 2), ("gpt", 1), ("ann", 1), ("ops", 2)] {
        let ask = Ask::get("/crosstalk/messages/B1/status").token(&secret(name));
        let status = house.ask(&ask).json();
        assert_eq!(
            status["deliveries"].as_array().unwrap().len(),
            count,
            "{name}"
        );
    }
}

/// Whoever is turned away hears of the narrowest token that would do.
#[test]
fn a_refusal_recommends_the_narrowest_token() {
    let house = office()
        .token("old", Role::Admin, &[])
        .listen("0.0.0.0:0")
        .open();
    let mut store = house.store();
    let now = Timestamp::from_millis(START);
    assert!(store.revoke_token("old", "operator", now).unwrap());
    for (path, wanted) in [
        ("/crosstalk/inbox?for=BOT", "--role agent --for ADDRESS"),
        (
            "/crosstalk/inbox?for=human://acme.example/ann",
            "--role person --for ADDRESS",
        ),
        ("/crosstalk/approvals", "--role person --for ADDRESS"),
        ("/crosstalk/dead", "--role admin --data DIR"),
        ("/metrics", "--role monitor --data DIR"),
    ] {
        for ask in [
            Ask::get(path),
            Ask::get(path).token("xt_nobody"),
            Ask::get(path).token(&secret("old")),
        ] {
            let answer = house.ask(&ask);
            assert_eq!(answer.status, 401, "{path}");
            let text = answer.text();
            let wanted =
                format!("ask the relay operator for one (`crosstalk token create NAME {wanted}");
            assert!(
                text.replace("\n  ", " ").contains(&wanted),
                "{path}: {text}"
            );
        }
    }
}
