//! The whole HTTP surface against its own OpenAPI document: Schemathesis makes up requests, good and bad ones, and every
//! answer has to be one that the document has.

use crate::durability::relay;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::Relay;
use crosstalk_testing::tier;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What is looked at: a status that the document does not have is found, a 5xx among them.
const CHECKS: &str = "status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,allow_header_conformance";
/// The phases of a run of all tests, which go through the values of each parameter once, and of a full one, which makes up
/// requests and sequences of them as well.
const PHASES: &str = "examples,coverage";
const FULL_PHASES: &str = "examples,coverage,fuzzing,stateful";
/// Requests of each kind for each operation.
const EXAMPLES: &str = "40";

/// The program, which `cargo xtask test` installs.
fn schemathesis() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("tools/schemathesis/bin/schemathesis");
    assert!(
        program.is_file(),
        "Schemathesis is not installed: `cargo xtask test` installs it (PyPI)"
    );
    program
}

/// Makes up requests for a relay, as a document says.
fn fuzzed(relay: &Relay, token: &str, document: &Value, more: &[&str]) -> Output {
    let folder = Folder::new("openapi");
    folder.write("openapi.json", &document.to_string());
    Command::new(schemathesis())
        .args(["run", "openapi.json", "--no-color", "--warnings", "off"])
        .args(["--url", &format!("http://{}", relay.address())])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--checks", CHECKS, "--max-examples", EXAMPLES])
        .args(["--phases", tier::size(PHASES, FULL_PHASES)])
        .arg("--generation-deterministic")
        // It would revoke the token of all other requests.
        .args(["--exclude-operation-id", "unpair"])
        .args(["--workers", "1", "--request-timeout", "300", "--no-shrink"])
        .args(more)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

/// Everything it printed.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy;
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// A relay with a token, and its document.
fn started() -> (Relay, String, Value) {
    let relay = relay().start();
    let mut connection = relay.connect();
    let wish = r#"{"name":"fuzz","role":"admin","addresses":["*"]}"#;
    let made = connection.post_json("/crosstalk/tokens", wish).unwrap();
    assert!(matches!(made.status, 200 | 201), "{}", made.text());
    let made: Value = serde_json::from_slice(&made.body).unwrap();
    let token = made["token"].as_str().unwrap().to_owned();
    let document = connection.get("/openapi.json").unwrap();
    let mut document: Value = serde_json::from_slice(&document.body).unwrap();
    // Who waits for a message gets one sooner or later; a fuzzer has no time for it.
    let wait = json!({"type": "integer", "minimum": 0, "maximum": 1, "default": 0});
    shorten(
        &mut document["paths"]["/crosstalk/inbox"]["get"],
        "wait",
        wait,
    );
    let prefer = json!({"type": "string", "const": "wait=1"});
    shorten(
        &mut document["paths"]["/crosstalk/receive"]["post"],
        "Prefer",
        prefer,
    );
    (relay, token, document)
}

/// Gives a parameter of an operation another schema.
fn shorten(operation: &mut Value, name: &str, schema: Value) {
    let mut parameters = operation["parameters"].as_array_mut().unwrap().iter_mut();
    parameters.find(|p| p["name"] == name).unwrap()["schema"] = schema;
}

#[test]
fn every_answer_is_one_of_the_document() {
    let (mut relay, token, document) = started();
    let output = fuzzed(&relay, &token, &document, &[]);
    let said = said(&output);
    assert!(output.status.success(), "{said}\n{}", relay.log());
    assert!(relay.has_ended().is_none(), "{}", relay.log());
    let log = relay.log();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn an_answer_that_is_not_in_the_document_is_found() {
    let (relay, token, mut document) = started();
    let responses = &mut document["paths"]["/crosstalk/receive"]["post"]["responses"];
    responses
        .as_object_mut()
        .unwrap()
        .retain(|status, _| status == "200");
    let output = fuzzed(
        &relay,
        &token,
        &document,
        &["--include-path", "/crosstalk/receive"],
    );
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Undocumented status code"), "{said}");
}
