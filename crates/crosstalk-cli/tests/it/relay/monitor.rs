//! Watching a relay: the role that reads metrics, the metrics themselves, alerts and dashboard, and what is known about
//! tokens.

use super::{Person, Relay};
use crate::schema::{assert_valid, validator};
use crosstalk_cli::exit;
use crosstalk_testing::wait::{wait_for, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The status and the body that curl gets.
fn curl(options: &[&str], url: &str) -> (u16, String) {
    let output = Command::new("curl")
        .args(["-sS", "-w", "\n%{http_code}"])
        .args(options)
        .arg(url)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    let status = status.parse().unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    });
    (status, body.to_owned())
}

fn bearer(secret: &str) -> String {
    format!("Authorization: Bearer {secret}")
}

/// Makes a token, and returns its secret.
fn token(kalle: &Person, data: &str, name: &str, more: &[&str]) -> String {
    let words = ["token", "create", name, "--data", data];
    let made = kalle.does(&[&words[..], more].concat());
    made.out.trim().to_owned()
}

fn deploy(file: &str) -> PathBuf {
    crate::run::folder("../../deploy").join(file)
}

fn promtool(arguments: &[&str], stdin: &str) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(deploy("prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("promtool, of the Debian package prometheus: {e}"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c: char| !is_name(c));
    words
        .filter(|w| w.starts_with("crosstalk_"))
        .map(str::to_owned)
        .collect()
}

/// The names of the samples that a relay tells.
fn exported(metrics: &str) -> BTreeSet<String> {
    let lines = metrics.lines().filter(|l| !l.starts_with('#'));
    lines.flat_map(names).collect()
}

/// The value of a sample.
fn value(metrics: &str, sample: &str) -> Option<f64> {
    let mut lines = metrics.lines();
    lines.find_map(|l| l.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

/// A relay with TLS, whose certificate curl believes.
fn secure_relay(kalle: &Person, data: &str) -> (Relay, String) {
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    // Nobody answers where the mailbox should be.
    let config = format!(
        "[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n[email]\ndomain = \"relay.test\"\n[email.imap]\nhost = \
         \"127.0.0.1\"\nport = 9\ntls = \"none\"\nuser = \"relay\"\npassword_file = \"{key}\"\n"
    );
    std::fs::write(Path::new(data).join("relay.toml"), config).unwrap();
    (Relay::start_at(Path::new(data), &[]), certificate)
}

/// Every metric that alerts and dashboard use is one that the relay exports, and all of them are in order.
#[test]
fn metrics_alerts_and_dashboard_fit_each_other() {
    let kalle = Person::new("promtool", "kalle");
    let data = kalle.home.path("relay");
    let data = data.to_str().unwrap();
    let secret = token(&kalle, data, "prometheus", &["--role", "monitor"]);
    let bot = token(&kalle, data, "bot", &["--role", "agent", "--for", "BOT"]);
    let (relay, ca) = secure_relay(&kalle, data);
    let ask = |path: &str, secret: &str| {
        let url = format!("{}{path}", relay.url);
        curl(&["--cacert", &ca, "-H", &bearer(secret)], &url)
    };
    // A path that is none of the relay's, and one with a name in it, are not in a label.
    assert_eq!(ask("/such/a/path", &bot).0, 404);
    assert_eq!(ask("/crosstalk/messages/NOWHERE", &bot).0, 404);
    let (status, metrics) = ask("/metrics", &secret);
    assert_eq!(status, 200, "{metrics}");
    for name in [
        "crosstalk_messages_accepted_total",
        "crosstalk_messages_known_total",
        "crosstalk_messages_rejected_total",
        "crosstalk_messages_indexed_total",
        "crosstalk_index_backlog",
        "crosstalk_request_seconds_bucket",
        "crosstalk_deliveries_queued",
        "crosstalk_dead_letters",
        "crosstalk_held_messages",
        "crosstalk_quarantined_messages",
        "crosstalk_oldest_waiting_seconds",
        "crosstalk_store_bytes",
        "crosstalk_disk_free_bytes",
        "crosstalk_certificate_expiry_timestamp_seconds",
        "crosstalk_build_info",
    ] {
        assert!(exported(&metrics).contains(name), "{name}\n{metrics}");
    }
    assert!(metrics.contains("endpoint=\"/crosstalk/messages/{}\",method=\"GET\""));
    assert!(metrics.contains("endpoint=\"other\",method=\"other\""));
    assert!(!metrics.contains("NOWHERE") && !metrics.contains("/such/a/path"));
    let (is_good, said) = promtool(&["check", "metrics"], &metrics);
    assert!(is_good && said.is_empty(), "{said}");
    for arguments in [
        ["check", "rules", "crosstalk.rules.yml"],
        ["test", "rules", "crosstalk.rules.test.yml"],
    ] {
        let (is_good, said) = promtool(&arguments, "");
        assert!(is_good, "{arguments:?}: {said}");
    }
    for file in ["prometheus/crosstalk.rules.yml", "grafana/crosstalk.json"] {
        let text = std::fs::read_to_string(deploy(file)).unwrap();
        let used = names(&text);
        assert!(used.len() > 8, "{file}: {used:?}");
        let unknown: Vec<_> = used.difference(&exported(&metrics)).cloned().collect();
        assert_eq!(unknown, [""; 0], "{file}");
    }
    let dashboard = std::fs::read_to_string(deploy("grafana/crosstalk.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let ids: BTreeSet<u64> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len());
    // The certificate ends in two days.
    let ends = value(&metrics, "crosstalk_certificate_expiry_timestamp_seconds").unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    assert!(
        (ends - now) > 86_400.0 && (ends - now) < 3.0 * 86_400.0,
        "{ends}"
    );
    relay.stop();
}

#[test]
fn a_monitor_reads_metrics_and_nothing_else() {
    let kalle = Person::new("monitor", "kalle");
    let data = kalle.home.path("relay");
    let data = data.to_str().unwrap();
    let secret = token(&kalle, data, "prometheus", &["--role", "monitor"]);
    for more in [["--for", "BOT"], ["--courier", "CHATGPT"]] {
        let words = ["token", "create", "x", "--role", "monitor", "--data", data];
        let ended = kalle.run(&[&words[..], &more].concat());
        assert_eq!(ended.code, i32::from(exit::USAGE), "{}", ended.err);
    }
    let mut command = crate::run::binary();
    command.args(["serve", "--data", data, "--listen", "0.0.0.0:0"]);
    let relay = Relay::of(command, Path::new(data));
    let ask = |path: &str| curl(&["-H", &bearer(&secret)], &format!("{}{path}", relay.url));
    assert_eq!(ask("/metrics").0, 200);
    assert_eq!(curl(&[], &format!("{}/metrics", relay.url)).0, 401);
    for path in [
        "/crosstalk/inbox?for=BOT",
        "/crosstalk/threads",
        "/crosstalk/search?q=x",
        "/crosstalk/agents",
        "/crosstalk/consents",
        "/crosstalk/polls",
        "/crosstalk/approvals",
        "/crosstalk/courier",
        "/crosstalk/dead",
        "/crosstalk/tokens",
        "/crosstalk/audit/checkpoint",
        "/crosstalk/audit/entries",
        "/crosstalk/resolve?name=BOT",
    ] {
        let (status, body) = ask(path);
        assert_eq!(status, 403, "{path}: {body}");
    }
    let file = kalle.home.path("monitor.token");
    std::fs::write(&file, &secret).unwrap();
    let words = [
        "send",
        "BOT",
        "Hello?",
        "--relay",
        &relay.url,
        "--token-file",
    ];
    let sent = kalle.run(&[&words[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(sent.code, i32::from(exit::PERM), "{}", sent.err);
    assert!(sent.err.contains("monitor"), "{}", sent.err);
    relay.stop();
}

#[test]
fn waiting_messages_are_counted() {
    let kalle = Person::new("gauges", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(
        data.join("relay.toml"),
        "[[route]]\nto = \"agent://broken/*\"\nby = \"exec\"\ncommand = [\"false\"]\n\
         [[hold]]\nto = [\"agent://held/*\"]\npeople = true\n[retry]\nattempts = 1\n",
    )
    .unwrap();
    let relay = Relay::start_at(&data, &[]);
    let metrics = || super::client::http(&relay.url, "/metrics");
    let empty = metrics();
    for sample in [
        "crosstalk_deliveries_queued{queue=\"copy_paste\"}",
        "crosstalk_deliveries_queued{queue=\"exec\"}",
        "crosstalk_oldest_waiting_seconds{queue=\"copy_paste\"}",
        "crosstalk_oldest_waiting_seconds{queue=\"held\"}",
        "crosstalk_dead_letters",
        "crosstalk_held_messages",
    ] {
        assert_eq!(value(&empty, sample), Some(0.0), "{sample}\n{empty}");
    }
    for to in [
        "agent://broken/1",
        "agent://held/1",
        "agent://held/2",
        "CHATGPT",
    ] {
        kalle.run(&["send", to, "Hello?", "--relay", &relay.url]);
    }
    wait_until("everything in its queue", || {
        let now = metrics();
        let is = |sample: &str, wanted: f64| value(&now, sample) == Some(wanted);
        // The message to the chat, and the ERROR to the sender.
        is("crosstalk_deliveries_queued{queue=\"copy_paste\"}", 2.0)
            && is("crosstalk_deliveries_queued{queue=\"exec\"}", 0.0)
            && is("crosstalk_dead_letters", 1.0)
            && is("crosstalk_held_messages", 2.0)
            && is(
                "crosstalk_messages_accepted_total",
                value(&now, "crosstalk_messages_taken_total").unwrap(),
            )
            && value(
                &now,
                "crosstalk_oldest_waiting_seconds{queue=\"copy_paste\"}",
            ) > Some(0.0)
            && value(&now, "crosstalk_oldest_waiting_seconds{queue=\"held\"}") > Some(0.0)
            && value(&now, "crosstalk_store_bytes") > Some(4096.0)
    });
    relay.stop();
}

/// Who created and revoked which token is in the log, which is checked offline; `token list` shows the last use.
#[test]
fn tokens_are_in_the_log_and_their_last_use_is_listed() {
    let kalle = Person::new("tokens", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let data = path("relay");
    let ops = token(&kalle, &data, "ops", &["--role", "admin"]);
    let ci = token(
        &kalle,
        &data,
        "ci",
        &[
            "--role",
            "agent",
            "--for",
            "claude://code/*",
            "--expires",
            "90d",
        ],
    );
    let list = || kalle.does(&["token", "list", "--data", &data]).out;
    let listed = list();
    let mut lines = listed.lines();
    assert_eq!(
        lines.next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["NAME", "ROLE", "STATE", "LAST", "USED", "FOR"]
    );
    assert!(lines.all(|l| l.contains("never")), "{listed}");
    let relay = Relay::start_at(Path::new(&data), &[]);
    let tokens = format!("{}/crosstalk/tokens", relay.url);
    let made = curl(
        &[
            "-H",
            &bearer(&ops),
            "-H",
            "Content-Type: application/json",
            "--data",
            r#"{"name": "web", "role": "monitor", "addresses": []}"#,
        ],
        &tokens,
    );
    assert_eq!(made.0, 201, "{}", made.1);
    let web: Value = serde_json::from_str(&made.1).unwrap();
    let web = web["token"].as_str().unwrap().to_owned();
    let gone = curl(
        &["-X", "DELETE", "-H", &bearer(&ops)],
        &format!("{tokens}/web"),
    );
    assert_eq!(gone.0, 204, "{}", gone.1);
    kalle.does(&["token", "revoke", "ci", "--data", &data]);
    // The relay notes the use of a token a little later.
    let form = validator("tokens");
    let used = wait_for("the last use of the token of the operator", || {
        let out = kalle
            .does(&["token", "list", "--json", "--data", &data])
            .out;
        let list = assert_valid(&form, &out, "tokens");
        let all = list["tokens"].as_array().unwrap().clone();
        let ops = all.iter().find(|t| t["name"] == "ops").unwrap();
        ops["last_used_at"].as_str().map(str::to_owned)
    });
    assert!(used.ends_with(":00Z"), "{used}");
    assert!(list().contains(&used), "{}", list());
    let ci_line = list();
    let ci_line = ci_line.lines().find(|l| l.starts_with("ci")).unwrap();
    assert!(
        ci_line.contains("revoked") && ci_line.contains("never"),
        "{ci_line}"
    );

    let log = kalle.does(&["audit", "log", "--data", &data, "--json"]).out;
    let form = validator("audit-log");
    let entries: Vec<Value> = log
        .lines()
        .map(|l| assert_valid(&form, l, "log"))
        .filter(|e| e["detail"]["token"].is_string())
        .collect();
    let told: Vec<[&str; 3]> = entries
        .iter()
        .map(|e| {
            [&e["kind"], &e["detail"]["token"], &e["detail"]["by"]].map(|v| v.as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ["granted", "ops", "operator"],
            ["granted", "ci", "operator"],
            ["granted", "web", "ops"],
            ["revoked", "web", "ops"],
            ["revoked", "ci", "operator"],
        ]
    );
    assert_eq!(entries[1]["detail"]["role"], "agent");
    assert_eq!(entries[1]["detail"]["for"], "claude://code/*");
    kalle.does(&["audit", "export", "--data", &data, "--out", &path("bundle")]);
    kalle.does(&[
        "audit",
        "verify",
        &path("bundle"),
        "--key",
        &path("bundle/key"),
    ]);
    relay.stop();
    let details = std::fs::read_to_string(kalle.home.path("bundle/details")).unwrap();
    for secret in [&ops, &ci, &web] {
        let hash = crosstalk_envelope::meta::Digest::of(secret.as_bytes()).to_string();
        let hash = hash.strip_prefix("sha256:").unwrap().to_owned();
        for text in [&log, &details] {
            assert!(
                !text.contains(secret.as_str()) && !text.contains(&hash),
                "{text}"
            );
        }
    }
}

#[test]
fn hints_about_tokens_fit_the_role_of_the_token() {
    let kalle = Person::new("token-hints", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let data = relay.data().to_owned();
    let words = [
        "token", "create", "watch", "--role", "monitor", "--data", &data,
    ];
    let made = kalle.does(&words);
    assert!(!made.err.contains("relay add"), "{}", made.err);
    assert!(made.err.contains("/metrics"), "{}", made.err);
    let ann = token(
        &kalle,
        &data,
        "ann",
        &["--role", "person", "--for", "human://acme.example/ann"],
    );
    kalle.does(&["token", "revoke", "ann", "--data", &data]);
    let header = bearer(&ann);
    let url = format!("{}/crosstalk/audit/key", relay.url);
    let (status, body) = curl(&["-H", &header], &url);
    assert_eq!(status, 401, "{body}");
    assert!(
        body.contains("was revoked at") && body.contains("--role person"),
        "{body}"
    );
    relay.stop();
}
