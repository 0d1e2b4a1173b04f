//! A backup that is older than a revocation: what was revoked is named, and revoked again.

use super::{Person, Relay};
use serde_json::Value;
use std::path::Path;

const ANN: &str = "human://acme.example/ann";
const BOT: &str = "claude://code/api";

/// A relay with a consent, two pinned keys and a token, backed up; then all of them but one key are revoked.
struct Setting {
    ann: Person,
    data: String,
    backup: String,
}

impl Setting {
    fn new(test: &str) -> Self {
        let ann = Person::new(test, "ann");
        let path = |name: &str| ann.home.path(name).to_str().unwrap().to_owned();
        let (data, backup) = (path("relay"), path("relay.tar"));
        ann.does(&["config", "set", "sender", ANN]);
        let bob = Person::new(&format!("{test}-bob"), "bob");
        for (who, id, sender) in [
            (&ann, "ann@acme.example", ANN),
            (&bob, "bob@acme.example", "human://acme.example/bob"),
        ] {
            who.does(&["key", "new", "--id", id]);
            let pem = path("key.pem");
            std::fs::write(&pem, who.does(&["key", "export", id]).out).unwrap();
            let pin = ["trust", "pin", id, "--sender", sender, "--key", &pem];
            let pinned = ann.home.run_with(&[("CROSSTALK_HOME", &data)], &pin, "");
            assert_eq!(pinned.code, 0, "{}", pinned.err);
        }
        let setting = Self { ann, data, backup };
        let relay = Relay::start_at(Path::new(&setting.data), &[]);
        let ann = &setting.ann;
        ann.does(&["relay", "add", &relay.url]);
        let grant = [
            "consent",
            "grant",
            BOT,
            "--scope",
            "medical",
            "--id",
            "health-2026",
        ];
        ann.does(&[&grant[..], &["--expires", "30d"]].concat());
        let send = [
            "send",
            BOT,
            "--sign",
            "--scope",
            "medical",
            "--consent",
            "explicit_yes",
        ];
        ann.does(
            &[
                &send[..],
                &["--consent-id", "health-2026", "My blood pressure is 140."],
            ]
            .concat(),
        );
        relay.stop();
        let make = [
            "token", "create", "ci", "--role", "agent", "--for", "BOT", "--data",
        ];
        ann.does(&[&make[..], &[&setting.data]].concat());
        let make = [
            "token", "create", "ann", "--role", "person", "--for", ANN, "--data",
        ];
        ann.does(
            &[
                &make[..],
                &[&setting.data, "--out", &setting.path("ann.token")],
            ]
            .concat(),
        );
        ann.does(&["backup", "--data", &setting.data, &setting.backup]);

        let relay = Relay::start_at(Path::new(&setting.data), &[]);
        ann.does(&[
            "relay",
            "add",
            &relay.url,
            "--token-file",
            &setting.path("ann.token"),
        ]);
        ann.does(&["consent", "revoke", "health-2026", "--relay", &relay.url]);
        let export = ["audit", "export", "--data", &setting.data, "--out"];
        ann.does(&["token", "revoke", "ci", "--data", &setting.data]);
        relay.stop();
        let distrust = ["trust", "distrust", "bob@acme.example"];
        let done = ann
            .home
            .run_with(&[("CROSSTALK_HOME", &setting.data)], &distrust, "");
        assert_eq!(done.code, 0, "{}", done.err);
        ann.does(&[&export[..], &[&setting.path("bundle")]].concat());
        setting
    }

    fn path(&self, name: &str) -> String {
        self.ann.home.path(name).to_str().unwrap().to_owned()
    }

    /// Whether the consent, the token and the key of Bob count in a folder.
    fn counts(&self, data: &str) -> [bool; 3] {
        let read = |words: &[&str]| -> Value {
            let ended = self
                .ann
                .home
                .run_with(&[("CROSSTALK_HOME", data)], words, "");
            serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {}", ended.err))
        };
        let tokens = read(&["token", "list", "--json", "--data", data]);
        let ci = tokens["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["name"] == "ci")
            .unwrap();
        let trust = std::fs::read_to_string(Path::new(data).join("trust.toml")).unwrap();
        let relay = Relay::start_at(Path::new(data), &[]);
        let words = [
            "consent",
            "show",
            "health-2026",
            "--json",
            "--relay",
            &relay.url,
        ];
        let shown = self
            .ann
            .does(&[&words[..], &["--token-file", &self.path("ann.token")]].concat());
        let consent: Value = serde_json::from_str(&shown.out).unwrap();
        relay.stop();
        [
            consent["standing"] == "holds",
            ci["state"] == "active",
            !trust.contains("distrusted") && !trust.contains("revoked"),
        ]
    }
}

#[test]
fn what_was_revoked_after_a_backup_is_named_and_replayed_from_the_folder() {
    let setting = Setting::new("replay");
    let (ann, data, backup) = (&setting.ann, &setting.data, &setting.backup);
    // Nobody is asked where there is no terminal: the warning has the command.
    let forced = ann.does(&["restore", backup, "--data", data, "--force"]);
    let said = forced.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in [
        "1 consent (health-2026)",
        "1 key (bob@acme.example)",
        "1 token (ci)",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert_eq!(setting.counts(data), [true, true, true]);
    let line = said
        .split('`')
        .find(|part| part.starts_with("crosstalk restore"))
        .unwrap();
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let replayed = ann.does(&words);
    assert!(replayed.err.contains("Replayed"), "{}", replayed.err);
    assert!(!replayed.err.contains("warning"), "{}", replayed.err);
    assert_eq!(setting.counts(data), [false, false, false]);
    let log = ann
        .does(&["audit", "log", "--data", data, "--kind", "revoked"])
        .out;
    assert!(
        log.contains("restore") && log.contains("health-2026"),
        "{log}"
    );
    // A second time changes nothing.
    let moved = words.last().unwrap();
    let again = ann.does(&[
        "restore",
        backup,
        "--data",
        &setting.path("third"),
        "--replay-from",
        moved,
    ]);
    assert!(again.err.contains("Replayed"), "{}", again.err);
    ann.does(&[
        "backup",
        "--data",
        &setting.path("third"),
        &setting.path("third.tar"),
    ]);
    let fourth = setting.path("fourth");
    let third = setting.path("third");
    let again = ann.does(&[
        "restore",
        &setting.path("third.tar"),
        "--data",
        &fourth,
        "--replay-from",
        &third,
    ]);
    assert!(
        again.err.contains("No revocation after this backup"),
        "{}",
        again.err
    );
    ann.does(&["fsck", "--data", &fourth]);
}

#[test]
fn revocations_are_replayed_from_a_bundle_that_holds() {
    let setting = Setting::new("replay-bundle");
    let (ann, backup) = (&setting.ann, &setting.backup);
    let (new, bundle) = (setting.path("new"), setting.path("bundle"));
    let plain = ann.does(&["restore", backup, "--data", &setting.path("plain")]);
    assert!(plain.err.contains("--replay-from"), "{}", plain.err);
    let neither = ann.run(&[
        "restore",
        backup,
        "--data",
        &new,
        "--replay-from",
        &setting.path("crosstalk"),
    ]);
    assert_eq!(neither.code, 2, "{}", neither.err);
    assert!(!Path::new(&new).exists());
    let restored = ann.does(&["restore", backup, "--data", &new, "--replay-from", &bundle]);
    assert!(
        restored.err.contains("health-2026") && restored.err.contains("ci"),
        "{}",
        restored.err
    );
    // The trust file of the operator is in no bundle.
    assert!(restored.err.contains("trust list"), "{}", restored.err);
    assert_eq!(setting.counts(&new), [false, false, true]);

    // A bundle that was changed, and one of another relay, change nothing.
    let entries = ann.home.path("bundle/entries");
    let text = std::fs::read_to_string(&entries).unwrap();
    std::fs::write(&entries, text.replacen(" accepted ", " refused ", 1)).unwrap();
    let other = setting.path("other");
    let broken = ann.run(&[
        "restore",
        backup,
        "--data",
        &other,
        "--replay-from",
        &bundle,
    ]);
    assert_eq!(
        broken.code,
        i32::from(crosstalk_cli::exit::PERM),
        "{}",
        broken.err
    );
    assert!(!Path::new(&other).exists());
    let strangers = setting.path("stranger");
    std::fs::create_dir(&strangers).unwrap();
    std::fs::write(
        ann.home.path("stranger/relay.toml"),
        "name = \"other.example\"\n",
    )
    .unwrap();
    let stranger = Relay::start_at(Path::new(&strangers), &[]);
    ann.does(&["send", BOT, "Hello?", "--relay", &stranger.url, "--no-sign"]);
    stranger.stop();
    let strange = setting.path("strange");
    ann.does(&[
        "audit",
        "export",
        "--data",
        &setting.path("stranger"),
        "--out",
        &strange,
    ]);
    for source in [&strange, &setting.path("stranger")] {
        let refused = ann.run(&["restore", backup, "--data", &other, "--replay-from", source]);
        assert_ne!(refused.code, 0, "{}", refused.err);
        assert!(!Path::new(&other).exists());
    }
}

/// The text of the REVOKE is gone, and its signer is not known to the backup: the ledger of the newer folder is proof enough.
#[test]
fn revocation_without_its_text_is_replayed_with_its_time() {
    let setting = Setting::new("replay-erased");
    let (ann, data, backup) = (&setting.ann, &setting.data, &setting.backup);
    let log = ann.does(&["audit", "log", &setting.path("bundle"), "--kind", "revoked"]);
    let line = log.out.lines().find(|l| l.contains("health-2026")).unwrap();
    let (time, revoke) = {
        let mut words = line.split_whitespace();
        (words.nth(1).unwrap(), words.nth(1).unwrap())
    };
    ann.does(&["forget", revoke, "--data", data, "--yes"]);
    let erased = ann.does(&["audit", "log", "--data", data, "--kind", "erased"]);
    assert!(
        erased.out.contains(revoke) && erased.out.contains("operator"),
        "{}",
        erased.out
    );
    let new = setting.path("new");
    ann.does(&["restore", backup, "--data", &new, "--replay-from", data]);
    assert_eq!(setting.counts(&new), [false, false, false]);
    let relay = Relay::start_at(Path::new(&new), &[]);
    let words = ["consent", "show", "health-2026", "--relay", &relay.url];
    let shown = ann.does(&[&words[..], &["--token-file", &setting.path("ann.token")]].concat());
    assert!(shown.out.contains(time), "{time}: {}", shown.out);
    relay.stop();

    // All messages of a person, while no relay runs.
    let plain = setting.path("plain");
    ann.does(&["restore", backup, "--data", &plain]);
    let of = ["forget", "--of", BOT, "--data", &plain, "--yes"];
    assert!(ann.does(&of).err.contains("Erased: 2 texts"));
    assert_ne!(ann.run(&of).code, 0, "nothing is left");
    ann.does(&["fsck", "--data", &plain]);

    // Without its key, a relay does not go on with the log of another one.
    std::fs::remove_dir_all(ann.home.path("new/keys")).unwrap();
    let check = ann.run(&["serve", "--check", "--data", &new]);
    assert_eq!(check.code, 1, "{}", check.out);
    assert!(check.out.contains("put its files back"), "{}", check.out);
}

/// A key that can't be read would be noticed at the next start, when the backup may be gone.
#[test]
fn backup_with_a_damaged_key_is_not_restored() {
    let setting = Setting::new("damaged-key");
    let keys = Path::new(&setting.data).join("keys");
    for entry in std::fs::read_dir(keys).unwrap().flatten() {
        if entry.path().extension().is_some_and(|e| e == "pem") {
            std::fs::write(entry.path(), "-----BEGIN PRIVATE KEY-----\nxx\n").unwrap();
        }
    }
    let (bad, new) = (setting.path("bad.tar"), setting.path("new"));
    setting.ann.does(&["backup", "--data", &setting.data, &bad]);
    let restored = setting.ann.run(&["restore", &bad, "--data", &new]);
    assert_eq!(restored.code, 1, "{}", restored.err);
    assert!(
        restored.err.contains("the backup is damaged"),
        "{}",
        restored.err
    );
    assert!(!Path::new(&new).exists());
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_restore_asks_whether_to_replay() {
    use crosstalk_testing::tmux::Tmux;
    let setting = Setting::new("replay-terminal");
    let terminal = Tmux::start(120, 40);
    let program = env!("CARGO_BIN_EXE_crosstalk");
    terminal.type_text(&format!(
        "'{program}' restore '{}' --data '{}' --force",
        setting.backup, setting.data
    ));
    terminal.send_keys(&["Enter"]);
    let screen = terminal.wait_for("Replay the revocations? [Y/n]");
    assert!(screen.contains("health-2026"), "{screen}");
    terminal.type_text("y");
    terminal.send_keys(&["Enter"]);
    let screen = terminal.wait_for("The previous folder is now");
    assert!(screen.contains("Replayed"), "{screen}");
    assert_eq!(setting.counts(&setting.data), [false, false, false]);
}
