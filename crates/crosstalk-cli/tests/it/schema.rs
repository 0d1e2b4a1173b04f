//! What `--json` prints has the form that `crosstalk schema` describes.

use crate::run::{Home, fixtures, folder, run};
use crosstalk_testing::tier;
use jsonschema::Validator;
use serde_json::Value;

pub(crate) fn validator(form: &str) -> Validator {
    let schema: Value = serde_json::from_str(&run(&["schema", form], "").out).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

pub(crate) fn assert_valid(validator: &Validator, json: &str, what: &str) -> Value {
    let value: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{what}: {e}: {json}"));
    let faults: Vec<String> = validator
        .iter_errors(&value)
        .map(|e| e.to_string())
        .collect();
    assert!(faults.is_empty(), "{what}: {faults:?}");
    let hidden =
        |c: char| (c.is_control() && c != '\n') || crosstalk_envelope::unicode::is_hidden(c);
    assert!(!json.contains(hidden), "{what}");
    value
}

/// The fixtures: each as it is, cut, doubled, and with something inserted in the middle. The default tier takes the four
/// forms in turn, one for each fixture.
fn inputs() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (number, path) in fixtures().into_iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        let (before, after) = bytes.split_at(bytes.len() / 2);
        let forms = [
            bytes.clone(),
            before.to_vec(),
            bytes.repeat(2),
            [before, b"\x1b[2J\xc2\x9b\xe2\x80\xae", after].concat(),
        ];
        let (first, count) = tier::size((number % 4, 1), (0, 4));
        inputs.extend(forms.into_iter().skip(first).take(count));
    }
    inputs
}

#[test]
fn parse_and_lint_print_what_their_schemas_say() {
    let (parse, lint) = (validator("parse"), validator("lint"));
    let inputs = inputs();
    assert!(inputs.len() > tier::size(30, 120), "{}", inputs.len());
    let (mut accepted, mut refused) = (0, 0);
    for input in inputs {
        let what = String::from_utf8_lossy(&input).into_owned();
        for reading in [&["--json"][..], &["--json", "--strict"]] {
            let ended = run(&[&["parse"], reading].concat(), &input);
            let value = assert_valid(&parse, &ended.out, &what);
            assert_eq!(ended.err, "", "{what}");
            accepted += value["envelopes"].as_array().unwrap().len();
            let errors = value["errors"].as_array().unwrap();
            let fatal = errors.iter().filter(|e| e["severity"] == "error").count();
            assert_eq!(ended.code != 0, fatal > 0, "{what}");
            refused += fatal;

            let ended = run(&[&["lint"], reading].concat(), &input);
            let value = assert_valid(&lint, &ended.out, &what);
            let errors = value["counts"]["error"].as_u64().unwrap();
            assert_eq!(ended.code != 0, errors > 0, "{what}");
        }
    }
    let least = tier::size(20, 80);
    assert!(accepted > least && refused > least, "{accepted} {refused}");
}

#[test]
fn the_schema_can_refuse() {
    let parse = validator("parse");
    for wrong in [
        r#"{"schema":"crosstalk.parse/2","envelopes":[],"errors":[]}"#,
        r#"{"schema":"crosstalk.parse/1","envelopes":[{}],"errors":[]}"#,
        r#"{"schema":"crosstalk.parse/1","envelopes":[],"errors":[{"rule":"ENV-1"}]}"#,
    ] {
        assert!(
            !parse.is_valid(&serde_json::from_str(wrong).unwrap()),
            "{wrong}"
        );
    }
    let forms = [
        "lint",
        "address",
        "verify",
        "key",
        "trust",
        "redact",
        "email",
        "config",
        "names",
        "resolve",
        "sent",
        "sent-many",
        "paste",
        "threads",
        "show",
        "inbox",
        "waiting",
        "search",
        "import",
        "export",
        "tokens",
        "relays",
        "relay-inbox",
        "listen",
        "status",
        "approvals",
        "approval",
        "dead",
        "fsck",
        "consents",
        "consent",
        "consent-check",
    ];
    for form in forms {
        assert!(!validator(form).is_valid(&serde_json::json!({})), "{form}");
    }
}

#[test]
fn verdicts_print_what_their_schema_says() {
    let verify = validator("verify");
    let home = Home::new("schema-verify");
    let folder = folder("tests/cmd/verify.in");
    let trust = folder.join("trust.toml");
    assert_eq!(
        home.run(&["trust", "import", trust.to_str().unwrap()], "")
            .code,
        0
    );
    let mut words = std::collections::BTreeSet::new();
    // Every verdict has a fixture.
    let whole = fixtures().into_iter().map(|p| std::fs::read(p).unwrap());
    for input in whole.chain(inputs()) {
        let what = String::from_utf8_lossy(&input).into_owned();
        let ended = home.run(&["verify", "--json"], &input);
        assert_eq!(ended.err, "", "{what}");
        for line in ended.out.lines() {
            let value = assert_valid(&verify, line, &what);
            words.insert(value["verdict"].as_str().unwrap().to_owned());
            let shown = ["verified", "first-contact"].contains(&value["verdict"].as_str().unwrap());
            assert_eq!(value["envelope"].is_string(), shown, "{what}");
        }
        assert!(!ended.out.is_empty() || ended.code == 0, "{what}");
    }
    // A domain that vouches for the key, and no pin that binds it to the sender.
    let home = Home::new("schema-unbound");
    std::fs::create_dir_all(home.path("crosstalk")).unwrap();
    let answer = "schema = \"crosstalk.trust/1\"\n[[dns]]\ndomain = \"example.com\"\n\
                  keys = [\"ed25519:pk=A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=\"]\ndnssec = \"secure\"\n\
                  asked = \"2025-12-02T07:00:00Z\"\nexpires = \"2999-12-02T08:00:00Z\"\n";
    std::fs::write(home.path("crosstalk/trust.toml"), answer).unwrap();
    let signed = std::fs::read(folder.join("signed.txt")).unwrap();
    let ended = home.run(&["verify", "--json"], &signed);
    assert_eq!(ended.code, 26, "{}{}", ended.out, ended.err);
    let value = assert_valid(&verify, ended.out.trim_end(), "unbound");
    assert!(value["envelope"].is_string(), "{value}");
    words.insert(value["verdict"].as_str().unwrap().to_owned());
    assert_eq!(
        words.len(),
        crosstalk_protocol::VerdictWord::ALL.len(),
        "{words:?}"
    );
}

#[test]
fn keys_and_trust_print_what_their_schemas_say() {
    let (keys, trusted) = (validator("key"), validator("trust"));
    let home = Home::new("schema-key");
    let pem = folder("tests/cmd/examples/alice.pem");
    let import = [
        "key",
        "import",
        pem.to_str().unwrap(),
        "--id",
        "a@example.com",
    ];
    assert_eq!(home.run(&import, "").code, 0);
    let rotated = home.run(&["key", "rotate", "a@example.com"], "").out;
    assert_eq!(
        home.run(&["key", "revoke", "a@example.com", "--old"], "")
            .code,
        0
    );
    let listed = home.run(&["key", "list", "--json"], "").out;
    let value = assert_valid(&keys, &listed, "key list");
    assert_eq!(value["keys"].as_array().unwrap().len(), 2);
    let shown = home
        .run(&["key", "show", "a@example.com", "--json"], "")
        .out;
    let shown = assert_valid(&keys, &shown, "key show");
    assert_eq!(shown["keys"][0]["state"], "active");
    assert_eq!(shown["keys"][1]["state"], "revoked");

    let other = Home::new("schema-trust");
    assert_eq!(
        other.run(&["trust", "pin", "-"], &rotated).code,
        0,
        "{rotated}"
    );
    let file = folder("tests/cmd/verify.in/trust.toml");
    other.run(&["trust", "import", file.to_str().unwrap()], "");
    for command in [["trust", "list", "--json"], ["trust", "check", "--json"]] {
        let ended = other.run(&command, "");
        let value = assert_valid(&trusted, &ended.out, "trust");
        let entries = value["keys"].as_array().unwrap();
        for standing in ["pinned", "replaced", "revoked", "distrusted"] {
            assert!(
                entries.iter().any(|k| k["standing"] == standing),
                "{standing}"
            );
        }
    }
}

#[test]
fn addresses_print_what_their_schema_says() {
    let address = validator("address");
    for (text, code, kind) in [
        ("CLAUDE", 0, "name"),
        ("human://dr.smith@clinic.example/inbox", 0, "person"),
        ("email:user@domain.com?subject=AI+Crosstalk", 0, "mail"),
        ("acme://x:8080/y#z", 0, "custom"),
        ("tel:call-me", 12, "phone"),
        ("", 12, "name"),
        ("a\u{202e}b\u{1b}", 12, "name"),
    ] {
        let ended = run(&["address", "parse", "--json", "--", text], "");
        let value = assert_valid(&address, &ended.out, text);
        assert_eq!(
            (ended.code, value["kind"].as_str()),
            (code, Some(kind)),
            "{text}"
        );
        assert_eq!(value["address"], text);
        assert_eq!(value["valid"], code == 0);
    }
}

#[test]
fn settings_and_names_print_what_their_schemas_say() {
    let (config, names, resolve) = (
        validator("config"),
        validator("names"),
        validator("resolve"),
    );
    let home = Home::new("schema-config");
    let empty = home.run(&["config", "show", "--json"], "").out;
    let empty = assert_valid(&config, &empty, "no file");
    assert_eq!(empty["exists"], false);
    for (key, value) in [
        ("user", "k\u{202e}x"),
        ("names.A", "B"),
        ("names.Jürgen", "human://j"),
        ("profile.work.names.B", "claude://b"),
        ("profile.work.me", "X,Y"),
    ] {
        assert_eq!(
            home.run(&["config", "set", key, value], "").code,
            0,
            "{key}"
        );
    }
    let work = ["--profile", "work", "config", "show", "--json"];
    let shown = home.run_with(&[("CROSSTALK_IDS", "uuid")], &work, "").out;
    let shown = assert_valid(&config, &shown, "config show");
    let settings = shown["settings"].as_array().unwrap();
    for source in ["default", "file", "profile", "variable", "flag"] {
        assert!(settings.iter().any(|s| s["source"] == source), "{source}");
    }
    let listed = home.run(&["--profile", "work", "name", "--json"], "").out;
    let listed = assert_valid(&names, &listed, "name");
    assert_eq!(listed["names"].as_array().unwrap().len(), 3);
    for (name, step) in [
        ("A", "table"),
        ("C", "not-in-table"),
        ("claude://x", "url"),
        ("Jürgen", "table"),
        ("x\u{202e}y", "not-in-table"),
    ] {
        let found = home.run(&["address", "resolve", "--json", name], "").out;
        let found = assert_valid(&resolve, &found, name);
        assert_eq!(found["steps"][0]["step"], step, "{name}");
    }
}

#[test]
fn build_reads_the_output_of_parse() {
    let mut built = 0;
    for path in fixtures() {
        let input = std::fs::read(&path).unwrap();
        let read = run(&["parse", "--strict", "--json"], &input);
        let before: Value = serde_json::from_str(&read.out).unwrap();
        let count = before["envelopes"].as_array().unwrap().len();
        if count == 0 {
            continue;
        }
        let written = run(&["build", "--no-ids"], &read.out);
        assert_eq!(written.code, 0, "{path:?}: {}", written.err);
        let again = run(&["parse", "--strict", "--json"], &written.out);
        let after: Value = serde_json::from_str(&again.out).unwrap();
        for (old, new) in before["envelopes"]
            .as_array()
            .unwrap()
            .iter()
            .zip(after["envelopes"].as_array().unwrap())
        {
            for part in [
                "sender", "receiver", "user", "session", "thread", "parent", "message", "context",
                "intent", "meta", "body",
            ] {
                assert_eq!(old[part], new[part], "{path:?} {part}");
            }
        }
        built += count;
    }
    assert!(built >= 5, "{built}");
}

#[test]
fn mails_print_what_their_schema_says() {
    let email = validator("email");
    let mut kinds = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder("tests/cmd/email.in")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "eml") {
            continue;
        }
        let what = path.display().to_string();
        let ended = run(
            &["email", "read", "--json", "-"],
            std::fs::read(&path).unwrap(),
        );
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{what}");
        let value = assert_valid(&email, &ended.out, &what);
        kinds.insert(value["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
}

#[test]
fn redactions_print_what_their_schema_says_and_never_what_was_found() {
    let redact = validator("redact");
    let secrets = ["jane@example.com", "+1 555 010-0199", "4111 1111 1111 1111"];
    let mut kinds = std::collections::BTreeSet::new();
    for input in inputs() {
        let what = String::from_utf8_lossy(&input).into_owned();
        for arguments in [&["redact", "--json"][..], &["redact", "--json", "--check"]] {
            let ended = run(arguments, &input);
            assert!(!secrets.iter().any(|s| ended.err.contains(s)), "{what}");
            if ended.out.is_empty() {
                assert_ne!(ended.code, 0, "{what}");
                continue;
            }
            let value = assert_valid(&redact, &ended.out, &what);
            let found = value["found"].as_array().unwrap();
            kinds.extend(found.iter().map(|f| f["kind"].as_str().unwrap().to_owned()));
            assert!(!secrets.iter().any(|s| ended.out.contains(s)), "{what}");
            let check = arguments.len() == 3;
            assert_eq!(value["text"].is_null(), check || ended.code != 0, "{what}");
            assert!(!check || (ended.code == 0) == found.is_empty(), "{what}");
        }
    }
    assert!(kinds.len() >= 3, "{kinds:?}");
    let wrong = serde_json::json!({"schema": "crosstalk.redact/1", "text": "", "fields": [],
        "found": [{"kind": "email", "line": 1, "column": 1, "placeholder": "[EMAIL]", "value": "x"}]});
    assert!(!redact.is_valid(&wrong));
}

#[test]
fn the_conversation_commands_print_what_their_schemas_say() {
    let home = Home::new("schema-conversation");
    let run = |arguments: &[&str], stdin: &str| {
        let me = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];
        home.run_with(&me, arguments, stdin)
    };
    let valid = |form: &str, arguments: &[&str], stdin: &str| {
        let ended = run(arguments, stdin);
        let what = format!("{arguments:?}: {}", ended.err);
        assert_valid(&validator(form), &ended.out, &what)
    };
    // Before anything is kept, and with hostile and refused texts.
    valid("threads", &["threads", "--json"], "");
    valid("inbox", &["inbox", "--json"], "");
    valid("waiting", &["waiting", "--json"], "");
    valid("search", &["search", "--json", "x"], "");
    // To somebody who sends none of the texts below: an answer with unknown ids is filed with the question that waits for it.
    let sent = valid("sent", &["send", "frida", "--json", "Hi \u{202e}?"], "");
    let id = sent["message"]["id"].as_str().unwrap();
    let waiting = valid("waiting", &["waiting", "--json"], "");
    assert_eq!(waiting["messages"][0]["message"]["id"], id);
    assert_eq!(waiting["messages"][0]["waits_for"][0], "FRIDA");
    let paste = validator("paste");
    for input in inputs() {
        let ended = home.run_with(
            &[("CROSSTALK_USER", "kalle")],
            &["paste", "--json", "-"],
            &input,
        );
        let what = String::from_utf8_lossy(&input).into_owned();
        assert_valid(&paste, &ended.out, &what);
    }
    valid("sent", &["reply", id, "--json", "More."], "");
    let archive = folder("tests/cmd/conversation.in/archive.crosstalk");
    let archive = archive.to_str().unwrap();
    valid(
        "import",
        &["import", "--json", archive, "/no/such/file"],
        "",
    );
    valid(
        "paste",
        &["paste", "--json", "--as-reply-to", id, "-"],
        "Fine.",
    );
    valid("move", &["move", "last", "--answers", id, "--json"], "");
    valid("move", &["move", "last", "--back", "--json"], "");
    valid(
        "sent",
        &["handoff", id, "--to", "gemini", "--note", "Go.", "--json"],
        "",
    );
    valid(
        "sent",
        &["escalate", id, "--to", "ANNA", "--reason", "x", "--json"],
        "",
    );
    valid("sent", &["forward", id, "--to", "claude", "--json"], "");
    valid(
        "sent-many",
        &["forward", id, "--to", "claude,a", "--thread", "--json"],
        "",
    );
    valid("sent-many", &["close", id, "--json"], "");
    let threads = valid("threads", &["threads", "--json", "--limit", "1000"], "");
    assert!(threads["threads"].as_array().unwrap().len() > 3);
    for thread in threads["threads"].as_array().unwrap() {
        let thread = thread["id"].as_str().unwrap();
        valid("show", &["show", "--json", "--", thread], "");
        valid("export", &["export", "--format", "json", "--", thread], "");
    }
    let found = valid("search", &["search", "--json", "intent:request"], "");
    assert!(!found["messages"].as_array().unwrap().is_empty());
    let inbox = valid("inbox", &["inbox", "--json", "--limit", "1"], "");
    assert_eq!(inbox["more"], true);
}
