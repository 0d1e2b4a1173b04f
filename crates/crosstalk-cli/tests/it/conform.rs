//! `crosstalk conform` against servers that are no relays.

use crate::run::{Home, run};
use crosstalk_testing::relay::{Relay, Setup};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// A server that says the same to everything; its URL.
fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                // Enough of the request to be polite: these cases send little.
                let _ = stream.read(&mut [0; 65_536]);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    url
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<h1>\u{1b}[2Jhi</h1>";

#[test]
fn a_web_server_is_no_relay() {
    let url = server(HELLO);
    let ended = run(&["conform", &url, "--only", "receive-text,id-taken"], "");
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.out.contains("FAIL HTP-001 receive-text"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("expected"), "{}", ended.out);
    assert!(
        ended.out.contains("The relay breaks HTP-001 HTP-013"),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains('\u{1b}'), "{}", ended.out);
}

#[test]
fn reports_for_programs() {
    let url = server(HELLO);
    let arguments = [
        "conform",
        &url,
        "--only",
        "HTP-001",
        "--only",
        "rate-flood",
        "--format",
    ];
    let ended = run(&[&arguments[..], &["json"]].concat(), "");
    assert_eq!(ended.code, 1);
    let schema = run(&["schema", "conform"], "").out;
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let report = serde_json::from_str(&ended.out).unwrap();
    let faults: Vec<String> = schema.iter_errors(&report).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(report["failed"], 4);
    assert_eq!(report["skipped"], 1);
    assert!(!ended.out.contains('\u{1b}'));
    let ended = run(&[&arguments[..], &["junit"]].concat(), "");
    assert_eq!(ended.code, 1);
    assert!(
        ended.out.starts_with("<?xml version=\"1.0\""),
        "{}",
        ended.out
    );
    assert_eq!(ended.out.matches("<testcase ").count(), 5);
    assert!(ended.out.contains("failures=\"4\""), "{}", ended.out);
}

#[test]
fn nothing_is_tried_where_there_is_nothing() {
    let url = format!("http://{}/", crosstalk_testing::loopback::silent());
    let ended = run(&["conform", &url], "");
    assert_eq!((ended.code, ended.out.as_str()), (10, ""));
    assert!(ended.err.contains("no connection to"), "{}", ended.err);
    for arguments in [
        &["conform"][..],
        &["conform", "relay.example"],
        &["conform", &url, "--only", "HTP-NONE"],
        &["conform", &url, "--only", ""],
    ] {
        assert_eq!(run(arguments, "").code, 2, "{arguments:?}");
    }
}

#[test]
fn a_token_file_has_a_token() {
    let home = Home::new("conform");
    let file = home.path("token");
    for text in ["", "\n", "two words\n", "\u{1b}\n"] {
        std::fs::write(&file, text).unwrap();
        let ended = run(
            &[
                "conform",
                "http://127.0.0.1:9/",
                "--token-file",
                file.to_str().unwrap(),
            ],
            "",
        );
        assert_eq!(ended.code, 1);
        assert!(ended.err.contains("there is no token"), "{}", ended.err);
    }
}

#[test]
fn skipping_all_is_no_success() {
    let url = server(HELLO);
    let ended = run(&["conform", &url, "--only", "rate-flood"], "");
    assert_eq!(ended.code, 1);
    assert!(ended.out.contains("Nothing was tried"), "{}", ended.out);
}

const CONFIG: &str = "[limits]\nhead_seconds = 2\nbody_seconds = 2\nrequests_per_minute = 3000\n\
                      [[hold]]\nscopes = [\"conform-hold\"]\n\
                      [[agent]]\naddress = \"claude://conform/able\"\ncapabilities = [\"conform-skill\"]\n\
                      [[agent]]\naddress = \"claude://conform/narrowed\"\n\
                      capabilities = [\"conform-one\", \"conform-two\"]\n";

/// The cases that were skipped by our own relay, which passes all others.
fn skipped_by(relay: &Relay, more: &[&str]) -> Vec<String> {
    let url = format!("http://{}/", relay.address());
    let arguments = [&["conform", &url, "--flood", "--format", "json"], more].concat();
    let ended = run(&arguments, "");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let cases = report["cases"].as_array().unwrap();
    let of = |outcome: &'static str| cases.iter().filter(move |c| c["outcome"] == outcome);
    let failed: Vec<&Value> = of("failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(ended.code, 0);
    // Nobody who uses the relay finds anything of the suite in the way.
    let left = run(&[&["carry", "--next", "--relay", &url], more].concat(), "");
    assert!(
        left.err.contains("nothing waits"),
        "{}{}",
        left.out,
        left.err
    );
    of("skipped")
        .map(|c| c["id"].as_str().unwrap().to_owned())
        .collect()
}

fn setup() -> Setup {
    Relay::of(env!("CARGO_BIN_EXE_crosstalk")).config(CONFIG)
}

#[test]
fn our_relay_passes_without_credentials() {
    let relay = setup().start();
    let skipped = skipped_by(&relay, &[]);
    let wanted = [
        "hold-agent",
        "courier-inbox",
        "consent-unseen",
        "poll-others",
        "blob-named",
        "credential-none",
        "credential-message",
        "speaks-for",
        "reads-for",
        "agent-no-person",
        "token-life",
        "rate-told",
        "rate-flood",
        "for-now",
    ];
    assert_eq!(skipped, wanted);
}

#[test]
fn our_relay_passes_with_the_token_of_an_administrator() {
    let home = Home::new("conform-admin");
    let data = home.path("data");
    let arguments = [
        "token", "create", "admin", "--role", "admin", "--for", "*", "--data",
    ];
    let made = run(&[&arguments[..], &[data.to_str().unwrap()]].concat(), "");
    assert_eq!(made.code, 0, "{}", made.err);
    let token = home.path("token");
    std::fs::write(&token, made.out).unwrap();
    let relay = setup().data(data).start();
    let skipped = skipped_by(&relay, &["--token-file", token.to_str().unwrap()]);
    // Where people have credentials of their own, keys are compared first.
    assert_eq!(skipped, ["revoke-after", "revoke-ends", "for-now"]);
}
