//! `crosstalk conform` against servers that are no relays, and against programs.

use crate::run::{Home, folder, run};
use crate::schema::{assert_valid, validator};
use crosstalk_testing::postgres::Database;
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::tier;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

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
    assert!(ended.err.contains("can't be reached"), "{}", ended.err);
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
    skipped_at(relay.address(), &[&["--flood"], more].concat(), |_| false)
}

/// Whether a case found only that another relay has not heard yet that a message was handed out: the note about it is written
/// beside the answer.
fn is_noted_late(case: &Value) -> bool {
    let ends = |key: &str, end: &str| case[key].as_str().is_some_and(|text| text.ends_with(end));
    ends("expected", "/state: delivered") && ends("got", "/state: queued")
}

fn skipped_at(address: SocketAddr, more: &[&str], is_late: fn(&Value) -> bool) -> Vec<String> {
    let url = format!("http://{address}/");
    let arguments = [&["conform", &url, "--format", "json"], more].concat();
    let ended = run(&arguments, "");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let cases = report["cases"].as_array().unwrap();
    let of = |outcome: &'static str| cases.iter().filter(move |c| c["outcome"] == outcome);
    let (late, failed): (Vec<&Value>, Vec<&Value>) = of("failed").partition(|case| is_late(case));
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(ended.code, i32::from(!late.is_empty()));
    // Nobody who uses the relay finds anything of the suite in the way.
    let rest = more.iter().copied().filter(|word| *word != "--flood");
    let carry: Vec<&str> = ["carry", "--next", "--relay", &url]
        .into_iter()
        .chain(rest)
        .collect();
    let left = run(&carry, "");
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
        "metrics-monitor",
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

/// A balancer without a memory: each request goes to the next relay. It asks the relay to end the connection after the answer,
/// so that the next request comes on another one.
fn balancer(relays: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (client, relay) = (client.unwrap(), relays[number % relays.len()]);
            std::thread::spawn(move || pass_on(&client, &TcpStream::connect(relay).unwrap()));
        }
    });
    address
}

/// Passes the bytes of one request and its answer on, with `Connection: close` after the first line.
fn pass_on(client: &TcpStream, relay: &TcpStream) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::copy(&mut &*relay, &mut &*client);
            let _ = client.shutdown(std::net::Shutdown::Both);
            let _ = relay.shutdown(std::net::Shutdown::Both);
        });
        let (mut is_marked, mut bytes) = (false, [0; 65_536]);
        while let Ok(count) = (&mut &*client).read(&mut bytes) {
            let (mut rest, mut relay) = (&bytes[..count], relay);
            if count == 0 {
                break;
            }
            if let Some(end) = rest.iter().position(|b| *b == b'\n').filter(|_| !is_marked) {
                let (line, after) = rest.split_at(end + 1);
                let marked = [line, b"Connection: close\r\n"].concat();
                (is_marked, rest) = (true, after);
                if relay.write_all(&marked).is_err() {
                    break;
                }
            }
            if relay.write_all(rest).is_err() {
                break;
            }
        }
        let _ = relay.shutdown(std::net::Shutdown::Write);
    });
}

/// Three relays on one database, with the same keys and token; the requests of each conversation go to all of them in turn.
#[test]
fn three_relays_on_one_database_pass_as_one() {
    let database = Database::new();
    let home = Home::new("conform-three");
    let first = home.path("one");
    let arguments = [
        "token", "create", "admin", "--role", "admin", "--for", "*", "--data",
    ];
    let made = run(&[&arguments[..], &[first.to_str().unwrap()]].concat(), "");
    assert_eq!(made.code, 0, "{}", made.err);
    let token = home.path("token");
    std::fs::write(&token, made.out).unwrap();
    let relay_in = |folder: std::path::PathBuf| {
        let relay = setup().data(folder).argument("--store");
        let relay = relay.argument(database.url()).argument("--name");
        relay.argument("relay.example").start()
    };
    let mut relays = vec![relay_in(first.clone())];
    for name in ["two", "three"] {
        let folder = home.path(name);
        std::fs::create_dir(&folder).unwrap();
        let mut copy = std::process::Command::new("cp");
        copy.arg("-a").arg(first.join("keys")).arg(&folder);
        assert!(copy.status().unwrap().success());
        relays.push(relay_in(folder));
    }
    let address = balancer(relays.iter().map(Relay::address).collect());
    let arguments = ["--token-file", token.to_str().unwrap()];
    let skipped = skipped_at(address, &arguments, is_noted_late);
    let wanted = [
        "revoke-after",
        "revoke-ends",
        "rate-flood",
        "for-now",
        "slow-head",
        "slow-body",
    ];
    assert_eq!(skipped, wanted);
}

/// Knows the form of a ULID, and nothing else.
const ULIDS: &str = r#"while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case $line in
        *'"op":"id"'*) echo "{\"id\":$id,\"result\":{\"form\":\"ulid\"}}";;
        *) echo "{\"id\":$id,\"unsupported\":true}";;
    esac
done"#;

#[test]
fn the_report_on_a_program_has_its_schema() {
    let arguments = ["conform", "--program", ULIDS, "--level", "L1", "--json"];
    let ended = run(
        &[&arguments[..], &["--only", "ids,redact,TRN-004"]].concat(),
        "",
    );
    assert_eq!(ended.code, 1, "{}", ended.err);
    let report = assert_valid(&validator("conform-program"), &ended.out, "a program");
    assert_eq!(report["conforms"], false);
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(count("passed") > 2 && count("failed") > 2, "{}", ended.out);
    assert!(
        count("unsupported") > 2 && count("left_out") > 100,
        "{}",
        ended.out
    );
    let areas: Vec<_> = report["areas"].as_array().unwrap().iter().collect();
    assert!(
        areas
            .iter()
            .any(|a| a["area"] == "redact" && a["passed"] == 0)
    );
    let junit = run(
        &[
            "conform",
            "--program",
            ULIDS,
            "--only",
            "ids",
            "--format",
            "junit",
        ],
        "",
    );
    assert!(
        junit.out.contains("<testsuite name=\"crosstalk program\""),
        "{}",
        junit.out
    );
}

#[test]
fn a_program_that_breaks_off_is_reported_with_what_it_wrote() {
    let broken = "echo '\u{1b}[2Jwrong' >&2; exit 7";
    let ended = run(&["conform", "--program", broken, "--level", "L0"], "");
    assert_eq!(ended.code, 1, "{}", ended.err);
    for told in [
        "the program ended before it answered (exit status: 7)",
        "wrong",
        "The program never answered. The other cases were not run.",
        "The program does not conform to L0",
        " --case ",
    ] {
        assert!(ended.out.contains(told), "{told}: {}", ended.out);
    }
    assert!(!ended.out.contains('\u{1b}'), "{}", ended.out);
    let ended = run(
        &["conform", "--program", broken, "--level", "L0", "--json"],
        "",
    );
    let report = assert_valid(
        &validator("conform-program"),
        &ended.out,
        "a broken program",
    );
    assert_eq!(
        (&report["failed"], &report["conforms"]),
        (&1.into(), &false.into())
    );
    assert!(report["stopped"].is_string());
}

#[test]
fn case_files_of_a_folder_are_used_instead() {
    let home = Home::new("cases");
    let folder = home.path("cases");
    std::fs::create_dir_all(folder.join("own")).unwrap();
    let file = folder.join("own/form.case");
    let case = "rule: IDS-001\nabout: A case of my own.\nop: id\nform: ulid\n=== input\nx\n";
    std::fs::write(&file, case).unwrap();
    let cases = folder.to_str().unwrap();
    let arguments = ["conform", "--program", ULIDS, "--cases", cases];
    let ended = run(&arguments, "");
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(
        ended.out.contains("The program conforms to L2\n1 passed"),
        "{}",
        ended.out
    );
    std::fs::write(&file, case.replace("form:", "from:")).unwrap();
    let ended = run(&arguments, "");
    assert_eq!(ended.code, 1);
    assert!(
        ended.out.contains("`id` has no key `from`"),
        "{}",
        ended.out
    );
    std::fs::remove_file(&file).unwrap();
    let ended = run(&arguments, "");
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("no case file"), "{}", ended.err);
}

/// The model implementation in Python passes every case that it supports: all of L0, and in the full run those of L1.
#[test]
fn python_model_passes_its_cases() {
    let model = folder("../../conformance/examples/python/main.py");
    let program = format!("python3 '{}'", model.display());
    let (level, is_whole) = tier::size(("L0", true), ("L1", false));
    let ended = run(
        &["conform", "--program", &program, "--level", level, "--json"],
        "",
    );
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["failed"], 0, "{}", ended.out);
    assert_eq!(report["conforms"], is_whole);
    assert!(report["passed"].as_u64().unwrap() > 400);
}
