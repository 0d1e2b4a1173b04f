//! Running a relay: tokens, signals, backup, restore and checks.

use super::client::http;
use super::{Person, Relay, header};
use crosstalk_cli::exit;
use crosstalk_testing::wait::wait_until;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn others_are_let_in_with_tokens_only() {
    let kalle = Person::new("token", "kalle");
    let data = kalle.home.path("relay");
    let data = data.to_str().unwrap();
    let refused = kalle.run(&["serve", "--data", data, "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, i32::from(exit::USAGE), "{}", refused.err);
    assert!(
        refused.err.contains("crosstalk token create"),
        "{}",
        refused.err
    );
    assert_eq!(refused.out, "");

    let token = |name: &str, role: &str, whom: &str| {
        let made = kalle.does(&[
            "token", "create", name, "--role", role, "--for", whom, "--data", data,
        ]);
        // The secret alone, so that it can go into a file.
        assert!(
            made.out.starts_with("xt_") && made.out.trim().len() == 46,
            "{}",
            made.out
        );
        let file = kalle.home.path(&format!("{name}.token"));
        std::fs::write(&file, &made.out).unwrap();
        (
            made.out.trim().to_owned(),
            file.to_str().unwrap().to_owned(),
        )
    };
    let (secret, kalles) = token("kalle", "person", "KALLE");
    let (_, bots) = token("bot", "agent", "BOT");
    assert_eq!(
        kalle
            .run(&[
                "token", "create", "bot", "--role", "agent", "--for", "X", "--data", data
            ])
            .code,
        1
    );
    let listed = json(&kalle.does(&["token", "list", "--json", "--data", data]).out);
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 2);
    let out = kalle.home.path("out.token");
    let to_file = |name| {
        let words = ["token", "create", name, "--role", "admin", "--data", data];
        kalle.run(&[&words[..], &["--out", out.to_str().unwrap()]].concat())
    };
    let made = to_file("out");
    assert_eq!((made.code, made.out.as_str()), (0, ""), "{}", made.err);
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("xt_"));
    #[cfg(unix)]
    assert_eq!(mode(&out), 0o600);
    // A file that is there stays, and there is no token that nobody knows.
    let there = to_file("other");
    assert_eq!(there.code, 1);
    assert!(
        there.err.contains("so no token was created"),
        "{}",
        there.err
    );
    let listed = json(&kalle.does(&["token", "list", "--json", "--data", data]).out);
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 3);
    kalle.does(&["token", "revoke", "out", "--data", data]);
    assert!(!listed.to_string().contains(&secret));
    let kept = std::fs::read(kalle.home.path("relay/relay.db")).unwrap();
    assert!(
        !kept.windows(secret.len()).any(|w| w == secret.as_bytes()),
        "the secret is kept"
    );

    let mut command = crate::run::binary();
    command.args(["serve", "--data", data, "--listen", "0.0.0.0:0"]);
    let relay = Relay::of(command, Path::new(data));
    let nobody = kalle.run(&["send", "BOT", "Hello?", "--relay", &relay.url]);
    assert_eq!(nobody.code, i32::from(exit::PERM), "{}", nobody.err);
    kalle.does(&[
        "send",
        "BOT",
        "Hello?",
        "--relay",
        &relay.url,
        "--token-file",
        &kalles,
    ]);
    let other = kalle.run(&[
        "inbox",
        "--relay",
        &relay.url,
        "--for",
        "BOT",
        "--token-file",
        &kalles,
    ]);
    assert_eq!(other.code, i32::from(exit::PERM), "{}", other.err);
    kalle.does(&["relay", "add", &relay.url, "--token-file", &bots]);
    let inbox = kalle.does(&["inbox", "--relay", "--for", "BOT"]);
    assert!(inbox.out.contains("Hello?"), "{}", inbox.out);
    assert_eq!(
        kalle.run(&["dead", "--relay", &relay.url]).code,
        i32::from(exit::PERM)
    );

    kalle.does(&["token", "revoke", "bot", "--data", data]);
    assert_eq!(
        kalle.run(&["token", "revoke", "bot", "--data", data]).code,
        1
    );
    wait_until("the relay notices", || {
        kalle.run(&["inbox", "--relay", "--for", "BOT"]).code == i32::from(exit::PERM)
    });
    let log = relay.stop();
    assert!(log.contains("TLS"), "{log}");
    assert!(!log.contains(&secret) && !log.contains("Hello?"), "{log}");
}

#[test]
fn the_first_start_makes_everything_and_a_second_relay_is_turned_away() {
    let kalle = Person::new("first", "kalle");
    let relay = Relay::start(&kalle.home, &["--name", "relay.example"]);
    let log_line = |text: &str| json(text.lines().next().unwrap());
    let second = kalle.run(&["serve", "--data", relay.data(), "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 1, "{}", second.err);
    assert!(
        second.err.contains(&relay.url) && second.err.contains("--data"),
        "{}",
        second.err
    );
    assert!(http(&relay.url, "/healthz").contains("ok"));
    let sent = kalle.does(&["send", "BOT", "Hello?", "--relay", &relay.url]);
    let id = header(&sent.out, "message");
    let inbox = json(
        &kalle
            .does(&["inbox", "--relay", &relay.url, "--for", "BOT", "--json"])
            .out,
    );
    let envelope = inbox["messages"][0]["envelope"].as_str().unwrap();
    assert!(
        envelope.contains("Received-By: relay.example"),
        "{envelope}"
    );
    assert!(
        envelope.contains("Hop-Signature: ed25519:pkid=relay.example"),
        "{envelope}"
    );
    for file in ["relay.db", "blobs", "keys"] {
        assert!(relay.data.join(file).exists(), "{file}");
    }
    #[cfg(unix)]
    for path in [relay.data.clone(), relay.data.join("relay.db")] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?}");
    }
    let log = relay.stop();
    let first = log_line(&log);
    assert_eq!(
        (&first["message"], &first["tokens"]),
        (&"listening".into(), &0.into())
    );
    for line in log.lines() {
        json(line);
    }
    assert!(log.contains("all accepted messages are indexed"), "{log}");
    assert!(!log.contains("Hello?"), "{log}");

    // What was there is there again.
    let relay = Relay::start(&kalle.home, &[]);
    let inbox = json(
        &kalle
            .does(&["inbox", "--relay", &relay.url, "--for", "BOT", "--json"])
            .out,
    );
    assert_eq!(inbox["messages"][0]["id"], id.as_str());
    relay.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_it_says_how_to_begin_and_ends_with_ctrl_c() {
    use crosstalk_testing::tmux::Tmux;
    let kalle = Person::new("terminal", "kalle");
    let data = kalle.home.path("relay");
    let terminal = Tmux::start(120, 40);
    let program = env!("CARGO_BIN_EXE_crosstalk");
    terminal.type_text(&format!(
        "'{program}' serve --listen 127.0.0.1:0 --data '{}'",
        data.display()
    ));
    terminal.send_keys(&["Enter"]);
    let screen = terminal.wait_for("Ctrl-C ends it.");
    for text in [
        "The relay localhost listens on http://127.0.0.1:",
        "Everyone on this machine is the local person",
        "crosstalk send claude",
    ] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    assert!(!screen.contains("tracing"), "{screen}");
    terminal.send_keys(&["C-c"]);
    let screen = terminal.wait_for("all accepted messages are indexed");
    assert!(!screen.contains("\"level\""), "{screen}");
}

#[test]
fn a_signal_answers_those_who_wait() {
    let kalle = Person::new("drain", "kalle");
    let mut relay = Relay::start(&kalle.home, &[]);
    let waiting = kalle.starts(&[
        "send", "BOT", "Slow?", "--relay", &relay.url, "--wait", "15",
    ]);
    wait_until("it is there", || {
        let inbox = kalle.does(&["inbox", "--relay", &relay.url, "--for", "BOT", "--json"]);
        json(&inbox.out)["messages"].as_array().unwrap().len() == 1
    });
    relay.signal("INT");
    let (code, log) = relay.ended();
    assert_eq!(code, Some(0), "{log}");
    // The sender waits on until its time is over, and knows that the relay has the message.
    let (code, text) = super::output(waiting);
    assert_eq!(code, Some(i32::from(exit::TIMEOUT)), "{text}");
    let text = text.replace('\n', " ");
    for words in [
        "waiting for the relay to come back",
        "has the message, and can't be reached now",
    ] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
    let relay = Relay::start(&kalle.home, &[]);
    let inbox = kalle.does(&["inbox", "--relay", &relay.url, "--for", "BOT"]);
    assert!(inbox.out.contains("Slow?"), "{}", inbox.out);
    relay.stop();
}

#[test]
fn wrong_configuration_is_reported_at_the_start() {
    let kalle = Person::new("config", "kalle");
    let file = kalle.home.path("wrong.toml");
    std::fs::write(&file, "[[route]]\nto = \"X\"\nby = \"pigeon\"\n").unwrap();
    let ended = kalle.run(&["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, i32::from(exit::FORMAT), "{}", ended.err);
    assert!(
        ended.err.contains("wrong.toml") && ended.err.contains("pigeon"),
        "{}",
        ended.err
    );
    assert_eq!(
        kalle.run(&["serve", "--log", "inof"]).code,
        i32::from(exit::USAGE)
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let ended = kalle.run(&["serve", "--listen", &listen]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(ended.err.contains("--listen"), "{}", ended.err);
}

#[test]
fn the_example_of_the_configuration_is_one() {
    let path = crate::run::folder("../../deploy/relay.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let defaults = crosstalk_relay::config::Config::parse(&text).unwrap();
    // What stands there without a # is what counts without a file.
    assert_eq!(defaults, crosstalk_relay::config::Config::default());
    // And what stands behind a # can be used.
    let lines = text.lines().map(|l| match l.strip_prefix("#:") {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => l,
    });
    let all = lines.collect::<Vec<_>>().join("\n");
    let config =
        crosstalk_relay::config::Config::parse(&all).unwrap_or_else(|e| panic!("{e}\n{all}"));
    assert!(config.routes.len() >= 6 && config.tls.is_some() && !config.watches.is_empty());
}

/// A configuration outside of the data folder: what works on the folder alone knows the relay by its own name and key.
#[test]
fn commands_on_the_data_folder_know_the_relay_that_was_started_there() {
    let kalle = Person::new("elsewhere", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let config = "name = \"relay.example\"\nanswer_within = 77\n";
    std::fs::write(path("elsewhere.toml"), config).unwrap();
    let relay = Relay::start(&kalle.home, &["--config", &path("elsewhere.toml")]);
    kalle.does(&["send", "BOT", "Hello?", "--relay", &relay.url]);
    let data = path("relay");
    relay.stop();
    let keys = || -> Vec<String> {
        let files = std::fs::read_dir(kalle.home.path("relay/keys")).unwrap();
        let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|n| n.ends_with(".pem")).collect();
        names.sort();
        names
    };
    assert_eq!(keys(), ["relay.example.pem"]);
    let export = |to: &str| kalle.run(&["audit", "export", "--data", &data, "--out", &path(to)]);
    let exported = export("bundle");
    assert_eq!(exported.code, 0, "{}", exported.err);
    assert!(exported.err.contains("relay.example"), "{}", exported.err);
    // A folder of an older version: the log says who signed it.
    std::fs::remove_file(kalle.home.path("relay/last-start.toml")).unwrap();
    assert_eq!(export("older").code, 0);
    assert_eq!(keys(), ["relay.example.pem"]);

    // It does not know the configuration either, and says how to add it.
    let unknown = kalle.does(&["backup", "--data", &data, &path("unknown.tar")]);
    let wanted = format!("--force --config CONFIG --data {data}");
    let said = unknown.err.replace('\n', " ");
    assert!(said.contains(&wanted), "{said}");
    let named = [
        "backup",
        "--data",
        &data,
        &path("named.tar"),
        "--config",
        &path("elsewhere.toml"),
    ];
    kalle.does(&named);
    Relay::start(&kalle.home, &["--config", &path("elsewhere.toml")]).stop();
    let known = kalle.does(&["backup", "--data", &data, &path("known.tar")]);
    assert!(
        known.err.contains("elsewhere.toml is in it as relay.toml"),
        "{}",
        known.err
    );
    for file in ["named", "known"] {
        let (tar, folder) = (path(&format!("{file}.tar")), path(file));
        kalle.does(&["restore", &tar, "--data", &folder]);
        let restored = std::fs::read_to_string(Path::new(&folder).join("relay.toml")).unwrap();
        assert_eq!(restored, config);
    }
    std::fs::remove_file(path("elsewhere.toml")).unwrap();
    let gone = kalle.does(&["backup", "--data", &data, &path("gone.tar")]);
    let said = gone.err.replace('\n', " ");
    let wanted = "elsewhere.toml, with which the relay was started, is not in this backup";
    assert!(said.contains(wanted), "{said}");

    // Without its key, nothing is signed in the name of the relay, and no other key is made.
    std::fs::rename(path("relay/keys"), path("keys")).unwrap();
    let missing = export("unsigned");
    assert_eq!(missing.code, 1, "{}", missing.err);
    assert!(
        missing
            .err
            .contains("the key of the relay `relay.example` is not in"),
        "{}",
        missing.err
    );
    assert!(!Path::new(&path("unsigned")).exists());
    let made = std::fs::read_dir(path("relay/keys")).map_or(0, Iterator::count);
    assert_eq!(made, 0);
}

/// Where the attachments of a relay are.
fn blobs(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![data.join("blobs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

#[test]
fn a_backup_of_a_running_relay_brings_everything_back() {
    let kalle = Person::new("backup", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let file = kalle.home.path("plan.md");
    std::fs::write(&file, "# The plan\n").unwrap();
    let sent = kalle.does(&[
        "send",
        "BOT",
        "Before",
        "--attach",
        file.to_str().unwrap(),
        "--relay",
        &relay.url,
    ]);
    let digest = sent
        .out
        .split("digest=")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let backup = kalle.home.path("relay.tar");
    let backup = backup.to_str().unwrap();
    kalle.does(&["backup", "--data", relay.data(), backup]);
    assert_eq!(
        kalle.run(&["backup", "--data", relay.data(), backup]).code,
        1
    );
    kalle.does(&["send", "BOT", "After", "--relay", &relay.url]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(backup).unwrap().permissions().mode() & 0o077,
            0
        );
    }
    let key = |data: &Path| {
        let keys = std::fs::read_dir(data.join("keys")).unwrap().flatten();
        let mut all: Vec<Vec<u8>> = keys.map(|e| std::fs::read(e.path()).unwrap()).collect();
        // A lock has nothing in it, and is not backed up.
        all.retain(|file| !file.is_empty());
        all.sort();
        all
    };

    let new = kalle.home.path("restored");
    let new_text = new.to_str().unwrap();
    kalle.does(&["restore", backup, "--data", new_text]);
    #[cfg(unix)]
    assert_eq!(mode(&new), 0o700);
    assert_eq!(key(&new), key(&relay.data));
    let restored = Relay::start_at(&new, &[]);
    let inbox = kalle
        .does(&["inbox", "--relay", &restored.url, "--for", "BOT"])
        .out;
    assert!(
        inbox.contains("Before") && !inbox.contains("After"),
        "{inbox}"
    );
    assert_eq!(
        http(&restored.url, &format!("/crosstalk/blobs/{digest}")),
        "# The plan\n"
    );

    // Nothing is overwritten, least of all under a relay that runs.
    assert_eq!(kalle.run(&["restore", backup, "--data", new_text]).code, 1);
    let running = kalle.run(&["restore", backup, "--data", new_text, "--force"]);
    assert!(
        running.code == 1 && running.err.contains("stop it first"),
        "{}",
        running.err
    );
    restored.stop();
    let forced = kalle.does(&["restore", backup, "--data", new_text, "--force"]);
    assert!(
        forced.err.contains("The previous folder is now"),
        "{}",
        forced.err
    );

    // A backup that is damaged changes nothing.
    let mut bytes = std::fs::read(backup).unwrap();
    let at = bytes.windows(10).position(|w| w == b"# The plan").unwrap();
    bytes[at] = b'X';
    std::fs::write(kalle.home.path("damaged.tar"), bytes).unwrap();
    let damaged = kalle.home.path("damaged.tar");
    let ended = kalle.run(&[
        "restore",
        damaged.to_str().unwrap(),
        "--data",
        kalle.home.path("third").to_str().unwrap(),
    ]);
    assert!(
        ended.code == 1 && ended.err.contains("damaged"),
        "{}",
        ended.err
    );
    assert!(!kalle.home.path("third").exists());
    let no_backup = kalle.run(&["restore", file.to_str().unwrap(), "--data", "x"]);
    assert_eq!(no_backup.code, i32::from(exit::FORMAT), "{}", no_backup.err);
    relay.stop();
}

/// A relay of an earlier version that read messages twice, and never started again after two of them.
#[test]
fn relay_of_an_earlier_version_starts_again() {
    let kalle = Person::new("fsck-old", "kalle");
    let data = kalle.home.path("old");
    std::fs::create_dir(&data).unwrap();
    let before = include_bytes!("../../../../crosstalk-store/tests/it/fixture/relay.v6.db");
    std::fs::write(data.join("relay.db"), before).unwrap();
    let fsck = ["fsck", "--data", data.to_str().unwrap(), "--json"];
    let repaired = kalle.run(&[&fsck[..], &["--repair"]].concat());
    assert_eq!(repaired.code, 0, "{}{}", repaired.out, repaired.err);
    let report = json(&kalle.does(&fsck).out);
    assert_eq!(
        (&report["sound"], &report["quarantine"]),
        (&json!(true), &json!([]))
    );
}

#[test]
fn quarantined_message_is_listed_and_repaired() {
    let kalle = Person::new("fsck-quarantine", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["send", "BOT", "One.", "--relay", &relay.url]);
    let data = relay.data.clone();
    relay.stop();
    // The verdict of the next message is none.
    let store = rusqlite::Connection::open(data.join("relay.db")).unwrap();
    store
        .execute_batch(
            "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, \
             text, peer) SELECT 'M2', 1, pkid, digest, at, way, side, 'sure', 'T9', 'M9', 'T9', text, peer FROM intake",
        )
        .unwrap();
    let mut made = crosstalk_store::SqliteStore::open(data.join("relay.db")).unwrap();
    made.index(9).unwrap();
    drop(made);
    let fsck = ["fsck", "--data", data.to_str().unwrap()];
    let listed = json(&kalle.run(&[&fsck[..], &["--json"]].concat()).out);
    let [one] = listed["quarantine"].as_array().unwrap().as_slice() else {
        panic!("{listed}");
    };
    assert_eq!((&one["id"], &one["seq"]), (&json!("M2"), &json!(2)));
    assert!(one["reason"].as_str().unwrap().contains("`sure`"));
    let shown = kalle.run(&fsck);
    assert!(shown.out.contains("quarantined: M2"), "{}", shown.out);
    store
        .execute("UPDATE intake SET verdict = 'unsigned' WHERE id = 'M2'", [])
        .unwrap();
    let repaired = kalle.run(&[&fsck[..], &["--repair", "--json"]].concat());
    assert_eq!(
        json(&repaired.out)["quarantine"],
        json!([]),
        "{}",
        repaired.out
    );
}

#[test]
fn damage_is_found_and_repaired() {
    let kalle = Person::new("fsck", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let file = kalle.home.path("plan.md");
    std::fs::write(&file, "# The plan\n").unwrap();
    kalle.does(&[
        "send",
        "BOT",
        "See.",
        "--attach",
        file.to_str().unwrap(),
        "--relay",
        &relay.url,
    ]);
    let check = |more: &[&str]| {
        let start = ["fsck", "--data", relay.data()];
        kalle.run(&[&start, more].concat())
    };
    let sound = check(&["--json"]);
    assert_eq!(sound.code, 0, "{}", sound.out);
    assert_eq!(json(&sound.out)["places"][0]["attachments"], 1);
    let blob = blobs(&relay.data).pop().unwrap();
    std::fs::write(&blob, "# The plot\n").unwrap();
    let damaged = check(&[]);
    assert_eq!(damaged.code, 1, "{}", damaged.out);
    assert!(
        damaged.out.contains("damaged") && damaged.out.contains("attachment"),
        "{}",
        damaged.out
    );
    // Not under a relay that runs.
    let running = check(&["--repair"]);
    assert!(
        running.code == 1 && running.err.contains("stop it"),
        "{}",
        running.err
    );
    let data = relay.data.clone();
    relay.stop();
    let repaired = kalle.run(&["fsck", "--data", data.to_str().unwrap(), "--repair"]);
    assert_eq!(repaired.code, 0, "{}", repaired.out);
    assert!(repaired.out.contains("repaired"), "{}", repaired.out);
    assert!(!blob.exists());
    assert_eq!(
        kalle.run(&["fsck", "--data", data.to_str().unwrap()]).code,
        0
    );

    // A store that is cut off is no store.
    let store = data.join("relay.db");
    let bytes = std::fs::read(&store).unwrap();
    std::fs::write(&store, &bytes[..bytes.len() / 2]).unwrap();
    let cut = kalle.run(&["fsck", "--data", data.to_str().unwrap()]);
    assert_eq!(cut.code, 1, "{}", cut.out);
    // One's own messages are checked as well.
    kalle.does(&["send", "chatgpt", "Hello?"]);
    let own = json(&kalle.does(&["fsck", "--json"]).out);
    assert_eq!(
        (&own["sound"], own["places"].as_array().unwrap().len()),
        (&true.into(), 1)
    );
}

#[test]
fn a_relay_without_its_certificate_does_not_say_that_it_listens() {
    let kalle = Person::new("certificate", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir_all(&data).unwrap();
    let config = "[tls]\ncertificate = \"/none/chain.pem\"\nkey = \"/none/key.pem\"\n";
    std::fs::write(data.join("relay.toml"), config).unwrap();
    let data = data.to_str().unwrap();
    let refused = kalle.run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("/none/chain.pem"), "{}", refused.err);
    assert!(!refused.err.contains("stopped"), "{}", refused.err);
}

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_export_after_a_change_of_the_name_says_who_signed_the_log() {
    let kalle = Person::new("renamed", "kalle");
    let path = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    let relay = Relay::start(&kalle.home, &["--name", "old.example"]);
    let data = relay.data().to_owned();
    kalle.does(&["send", "BOT", "Hello?", "--relay", &relay.url]);
    relay.stop();
    Relay::start(&kalle.home, &["--name", "new.example"]).stop();
    let export = |to: &str| kalle.run(&["audit", "export", "--data", &data, "--out", &path(to)]);
    let failed = export("bundle");
    assert_eq!(failed.code, 1, "{}", failed.err);
    let said = failed.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("signed as old.example"), "{said}");
    let wanted = format!("`crosstalk serve --data {data} --name old.example`");
    assert!(said.contains(&wanted), "{said}");
    assert!(!kalle.home.path("bundle").exists());
    // The way out that it names.
    Relay::start(&kalle.home, &["--name", "old.example"]).stop();
    let exported = export("bundle");
    assert_eq!(exported.code, 0, "{}", exported.err);
    // And the other one.
    let relay = Relay::start(&kalle.home, &["--name", "new.example"]);
    kalle.does(&["send", "BOT", "Hello again?", "--relay", &relay.url]);
    relay.stop();
    let exported = export("second");
    assert_eq!(exported.code, 0, "{}", exported.err);
}

#[test]
fn token_create_names_the_folder_of_the_relay() {
    let kalle = Person::new("token-folder", "kalle");
    for (name, said) in [
        ("first", "There was no relay in "),
        ("second", "It is for the relay in "),
    ] {
        let made = kalle.does(&["token", "create", name, "--role", "admin"]);
        let told = made.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn log_of_an_erased_message_is_found_by_the_beginning_of_its_id() {
    let kalle = Person::new("erased-log", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let sent = kalle.does(&["send", "BOT", "Hi?", "--relay", &relay.url, "--json"]);
    relay.stop();
    let id = json(&sent.out)["message"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let data = kalle.home.path("relay");
    let data = data.to_str().unwrap();
    kalle.does(&["forget", &id, "--data", data, "--yes"]);
    for start in [&id[..], &id[..20], &id[..20].to_ascii_lowercase()] {
        let log = kalle.does(&["audit", "log", "--data", data, "--message", start]);
        assert!(log.out.contains("erased"), "{start}: {}", log.out);
    }
}
