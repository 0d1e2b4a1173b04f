//! A relay with a certificate: the check before the start, the health check, files that change while it runs, and port 443.

use super::{Person, Relay};
use crate::schema::{assert_valid, validator};
use crosstalk_cli::exit;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::wait::{wait_for, wait_until};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A relay whose log can be read while it runs.
struct Served {
    process: Child,
    data: PathBuf,
    log: PathBuf,
}

impl Served {
    fn start(data: &Path) -> Self {
        let log = data.with_extension("log");
        let process = crate::run::binary()
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--log-format",
                "json",
                "--data",
            ])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let served = Self {
            process,
            data: data.to_owned(),
            log,
        };
        served.logs("\"listening\"");
        served
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for a line of the log that has these words, and returns it.
    fn logs(&self, words: &str) -> String {
        let mut found = None;
        wait_until(words, || {
            found = self
                .log()
                .lines()
                .find(|l| l.contains(words))
                .map(str::to_owned);
            found.is_some()
        });
        found.unwrap()
    }

    /// Forgets what was logged before.
    fn clear(&self) {
        std::fs::write(&self.log, "").unwrap();
    }

    fn url(&self) -> String {
        let said = std::fs::read_to_string(self.data.join("serve.lock")).unwrap();
        said.split(", ").nth(1).unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The line of the documents that makes a certificate.
fn line_of_the_documents() -> String {
    let page = std::fs::read_to_string(crate::run::folder("../../docs/operate.md")).unwrap();
    let mut lines = page.lines().filter(|l| l.starts_with("openssl req"));
    let line = lines.next().unwrap().to_owned();
    assert_eq!(lines.next(), None);
    line
}

/// Makes a certificate and a key in a folder with exactly that line.
fn certify(folder: &Path) {
    let made = Command::new("sh")
        .args(["-c", &line_of_the_documents()])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// A data folder with a configuration for TLS.
fn tls_folder(kalle: &Person) -> PathBuf {
    let data = kalle.home.path("relay");
    std::fs::create_dir(&data).unwrap();
    certify(kalle.home.path("").as_path());
    let (certificate, key) = (kalle.home.path("cert.pem"), kalle.home.path("key.pem"));
    let config = format!(
        "[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n",
        certificate.display(),
        key.display()
    );
    std::fs::write(data.join("relay.toml"), config).unwrap();
    data
}

/// What curl gets from a relay, with a certificate that it believes.
fn curl(url: &str, path: &str, ca: &Path) -> Option<String> {
    let url = url.replace("127.0.0.1", "localhost");
    let output = Command::new("curl")
        .args(["-sS", "--cacert"])
        .arg(ca)
        .arg(format!("{url}{path}"))
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_certificate_of_the_documents_starts_a_relay_that_is_healthy() {
    let kalle = Person::new("tls", "kalle");
    let data = tls_folder(&kalle);
    let data_text = data.to_str().unwrap();
    let nothing = kalle.run(&["serve", "--health", "--data", data_text]);
    assert_eq!(nothing.code, 1, "{}", nothing.err);
    assert!(nothing.err.contains("crosstalk serve"), "{}", nothing.err);
    let relay = Relay::start_at(&data, &[]);
    assert!(relay.url.starts_with("https://"), "{}", relay.url);
    let ca = kalle.home.path("cert.pem");
    assert_eq!(curl(&relay.url, "/healthz", &ca).as_deref(), Some("ok\n"));
    kalle.does(&["serve", "--health", "--data", data_text]);
    let trusted = [("SSL_CERT_FILE", ca.to_str().unwrap())];
    let sent = ["send", "claude://code/api", "Hi?", "--relay", &relay.url];
    let sent = kalle.home.run_with(&trusted, &sent, "");
    assert_eq!(sent.code, 0, "{}", sent.err);
    // The command of the container, with the folder of this test.
    let page = std::fs::read_to_string(crate::run::folder("../../deploy/Containerfile")).unwrap();
    let check = page.lines().find_map(|l| {
        l.split_once(" CMD [")
            .filter(|_| l.starts_with("HEALTHCHECK"))
    });
    let words: Vec<String> = serde_json::from_str(&format!("[{}", check.unwrap().1)).unwrap();
    assert!(words[0].ends_with("/crosstalk"), "{words:?}");
    let words = words[1..].iter().map(|w| w.replace("/data", data_text));
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    kalle.does(&words);
    relay.stop();
    // The file says where it was; nobody is there.
    assert_eq!(kalle.run(&words).code, 1);
}

#[test]
fn a_key_that_others_can_read_is_refused_until_its_mode_is_changed() {
    let kalle = Person::new("tls-mode", "kalle");
    let data = tls_folder(&kalle);
    let key = kalle.home.path("key.pem");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data.to_str().unwrap(),
    ];
    let check = [&words[..], &["--check"]].concat();
    for words in [&words[..], &check] {
        let ended = kalle.run(words);
        assert_eq!(ended.code, 1, "{}", ended.err);
        let said = format!("{}{}", ended.out, ended.err);
        assert!(said.contains("0644"), "{said}");
        // The line of the message is one that can be followed.
        let line = said
            .split('`')
            .find(|part| part.starts_with("chmod "))
            .unwrap();
        assert!(line.contains(key.to_str().unwrap()), "{line}");
    }
    let said = kalle.run(&check).out;
    let line = said
        .split('`')
        .find(|part| part.starts_with("chmod "))
        .unwrap();
    assert!(
        Command::new("sh")
            .args(["-c", line])
            .status()
            .unwrap()
            .success()
    );
    kalle.does(&check);
}

#[test]
fn a_check_names_everything_that_keeps_a_relay_from_its_start() {
    let kalle = Person::new("check", "kalle");
    let data = kalle.home.path("relay");
    let data_text = data.to_str().unwrap();
    let form = validator("serve-check");
    let check = |more: &[&str]| {
        let words = ["serve", "--check", "--json", "--data", data_text];
        // A port that is free, unless the test says another one.
        let listen = ["--listen", "127.0.0.1:0"];
        let listen = if more.contains(&"--listen") {
            &[][..]
        } else {
            &listen
        };
        let ended = kalle.run(&[&words[..], listen, more].concat());
        let report = assert_valid(&form, &ended.out, &ended.err);
        let bad: Vec<String> = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["good"] == false && c["needed"] == true)
            .map(|c| c["what"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(report["ready"], bad.is_empty());
        (ended.code, bad)
    };
    assert_eq!(check(&[]), (0, vec![]));
    // Nothing was made.
    assert!(!data.exists());
    assert_eq!(
        check(&["--listen", "0.0.0.0:0"]),
        (i32::from(exit::USAGE), vec!["listen address".to_owned()])
    );
    let data = tls_folder(&kalle);
    assert_eq!(check(&[]), (0, vec![]));
    std::fs::write(data.join("trust.toml"), "version = \"no\n").unwrap();
    std::fs::write(kalle.home.path("key.pem"), "no key\n").unwrap();
    assert_eq!(
        check(&[]),
        (
            1,
            vec!["certificate and key".to_owned(), "trust file".to_owned()]
        )
    );
    std::fs::write(data.join("relay.toml"), "nam = 1\n").unwrap();
    assert_eq!(
        check(&[]),
        (
            i32::from(exit::FORMAT),
            vec!["configuration".to_owned(), "trust file".to_owned()]
        )
    );
    let both = kalle.run(&["serve", "--check", "--health"]);
    assert_eq!(both.code, i32::from(exit::USAGE));
    std::fs::write(data.join("relay.toml"), "").unwrap();
    std::fs::remove_file(data.join("trust.toml")).unwrap();
    assert_eq!(
        check(&["--log", "noisy"]),
        (i32::from(exit::USAGE), vec!["log level".to_owned()])
    );
    // The port of another program, which the start would find as well.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    assert_eq!(
        check(&["--listen", &listen]),
        (1, vec!["listen address".to_owned()])
    );
    std::fs::write(
        data.join("relay.db"),
        "no store, but long enough to be read as one",
    )
    .unwrap();
    assert_eq!(check(&[]), (1, vec!["store".to_owned()]));
}

/// The port of the relay that is to be started again is not in the way of its check.
#[test]
fn a_check_leaves_a_running_relay_alone() {
    let kalle = Person::new("check-running", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let (url, data) = (relay.url.clone(), relay.data().to_owned());
    let address = url.strip_prefix("http://").unwrap();
    let check = || kalle.run(&["serve", "--check", "--data", &data, "--listen", address]);
    let ended = check();
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let wanted = "the relay that runs on this data folder listens there now";
    assert!(ended.out.contains(wanted), "{}", ended.out);
    assert!(super::client::http(&url, "/healthz").contains("ok"));
    relay.stop();
    // Now the port is that of somebody else.
    let other = std::net::TcpListener::bind(address).unwrap();
    let ended = check();
    assert_eq!(ended.code, 1, "{}", ended.out);
    drop(other);
}

/// What routes need is looked for before messages come: a relay starts without it.
#[test]
fn a_check_and_the_log_name_what_routes_need() {
    let kalle = Person::new("check-routes", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir(&data).unwrap();
    let token = kalle.home.path("gone.token");
    std::fs::write(
        data.join("relay.toml"),
        format!(
            "[[route]]\nto = \"agent://a/*\"\nby = \"exec\"\ncommand = [\"no-such-program-here\"]\n\
             [[route]]\nto = \"agent://b/*\"\nby = \"http\"\nurl = \"https://b.example/\"\ntoken_file = \"{}\"\n\
             [[route]]\nto = \"agent://c/*\"\nby = \"exec\"\ncommand = [\"sh\"]\n",
            token.display()
        ),
    )
    .unwrap();
    let data_text = data.to_str().unwrap();
    let words = [
        "serve",
        "--check",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data_text,
    ];
    let check = kalle.run(&words);
    assert_eq!(check.code, 0, "{}", check.out);
    let warned: Vec<&str> = check
        .out
        .lines()
        .filter(|l| l.starts_with("warn"))
        .collect();
    assert_eq!(warned.len(), 2, "{}", check.out);
    assert!(
        warned[0].contains("no-such-program-here") && warned[1].contains("gone.token"),
        "{warned:?}"
    );
    let served = Served::start(&data);
    served.logs("no-such-program-here");
}

/// A pipe in the place of a file is refused, and nothing waits for it.
#[test]
fn a_pipe_in_the_place_of_the_configuration_does_not_hold_the_relay_up() {
    let kalle = Person::new("pipe", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir(&data).unwrap();
    let file = data.join("relay.toml");
    std::fs::write(&file, "answer_within = 60\n").unwrap();
    let mut served = Served::start(&data);
    std::fs::remove_file(&file).unwrap();
    let made = Command::new("mkfifo")
        .arg("-m")
        .arg("600")
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    served.logs("not a regular file");
    let words = [
        "serve",
        "--check",
        "--listen",
        "127.0.0.1:0",
        "--data",
        data.to_str().unwrap(),
    ];
    let check = kalle.run(&words);
    assert_eq!(check.code, 1, "{}", check.out);
    assert!(check.out.contains("not a regular file"), "{}", check.out);
    served.clear();
    served.signal("HUP");
    served.logs("not a regular file");
    served.signal("TERM");
    let ended = wait_for("the end of the relay", || {
        served.process.try_wait().unwrap()
    });
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn the_health_check_tells_what_is_known_about_a_relay_that_does_not_run() {
    let kalle = Person::new("health", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let data = relay.data().to_owned();
    let health = || kalle.run(&["serve", "--health", "--data", &data]);
    assert_eq!(health().code, 0);
    relay.stop();
    let ended = health();
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("no relay is running on") && ended.err.contains("has stopped"),
        "{}",
        ended.err
    );
    let file = kalle.home.path("other.toml");
    std::fs::write(&file, "nam = 1\n").unwrap();
    let file = file.to_str().unwrap();
    let failed = kalle.run(&["serve", "--data", &data, "--config", file]);
    assert_eq!(failed.code, i32::from(exit::FORMAT));
    let ended = health();
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("The last start failed on") && ended.err.contains("unknown field `nam`"),
        "{}",
        ended.err
    );
    // The check that is recommended is that of the start that failed.
    let said = ended.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("--config {file}`")), "{said}");
    // A good start is what is known then.
    Relay::start(&kalle.home, &[]).stop();
    assert!(!health().err.contains("failed"), "{}", health().err);
}

#[test]
fn a_changed_configuration_counts_without_a_restart() {
    let kalle = Person::new("reload", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir(&data).unwrap();
    let file = data.join("relay.toml");
    std::fs::write(&file, "answer_within = 60\n").unwrap();
    let served = Served::start(&data);
    let resolve = || super::client::http(&served.url(), "/crosstalk/resolve?name=BOT");
    assert!(!resolve().contains("claude://code/api"), "{}", resolve());

    // By itself.
    let names = "[names]\nBOT = \"claude://code/api\"\n";
    std::fs::write(&file, format!("answer_within = 60\n{names}")).unwrap();
    let line = served.logs("reloaded the configuration");
    assert!(line.contains("\"changed\":\"names\""), "{line}");
    assert!(resolve().contains("claude://code/api"), "{}", resolve());

    // What can't be used changes nothing, and the log says what to do.
    served.clear();
    std::fs::write(&file, "[names\n").unwrap();
    let line = served.logs("the new configuration can't be used");
    let command = format!(
        "crosstalk serve --check --data {} --listen 127.0.0.1:0",
        data.display()
    );
    assert!(
        line.contains("relay.toml") && line.contains(&command),
        "{line}"
    );
    assert!(resolve().contains("claude://code/api"), "{}", resolve());

    // As it was before, it is good again, and the log says so.
    std::fs::write(&file, format!("answer_within = 60\n{names}")).unwrap();
    served.logs("the configuration can be used again");

    // Without its file, a relay keeps the rules of its operator.
    served.clear();
    std::fs::remove_file(&file).unwrap();
    served.logs("the configuration is gone, and the old one stays");
    assert!(resolve().contains("claude://code/api"), "{}", resolve());

    // Settings that need a restart are named, and the others count.
    served.clear();
    std::fs::write(
        &file,
        "name = \"other.example\"\n[limits]\nconnections = 9\nblob_bytes = 7\n",
    )
    .unwrap();
    let line = served.logs("need a restart");
    assert!(
        line.contains("\"settings\":\"name, limits.connections\""),
        "{line}"
    );
    let line = served.logs("reloaded the configuration");
    assert!(
        line.contains("\"changed\":\"answer_within, limits, names\""),
        "{line}"
    );
    assert!(!resolve().contains("claude://code/api"), "{}", resolve());

    // On a signal, at once.
    served.clear();
    served.signal("HUP");
    let line = served.logs("need a restart");
    assert!(line.contains("SIGHUP"), "{line}");
    std::fs::write(&file, "# As at the start.\n").unwrap();
    let line = served.logs("reloaded the configuration");
    assert!(line.contains("\"changed\":\"limits\""), "{line}");
    served.clear();
    served.signal("HUP");
    served.logs("nothing else has changed");
}

#[test]
fn a_replaced_certificate_is_used_without_a_restart() {
    let kalle = Person::new("renew", "kalle");
    let data = tls_folder(&kalle);
    let (certificate, key) = (kalle.home.path("cert.pem"), kalle.home.path("key.pem"));
    let served = Served::start(&data);
    let url = served.url();
    let old = kalle.home.path("old.pem");
    std::fs::copy(&certificate, &old).unwrap();
    assert!(curl(&url, "/healthz", &old).is_some());

    // A certificate whose key is missing: the old one stays.
    let place = kalle.home.path("new");
    std::fs::create_dir(&place).unwrap();
    certify(&place);
    std::fs::copy(place.join("cert.pem"), &certificate).unwrap();
    let line = served.logs("the new certificate or key can't be used");
    let command = format!("crosstalk serve --check --data {}", data.display());
    assert!(
        line.contains("cert.pem") && line.contains(&command),
        "{line}"
    );
    assert!(curl(&url, "/healthz", &old).is_some());
    assert!(curl(&url, "/healthz", &certificate).is_none());

    // With its key, it is used.
    std::fs::copy(place.join("key.pem"), &key).unwrap();
    let line = served.logs("new connections get the new certificate");
    assert!(line.contains("\"expires\":\"20"), "{line}");
    assert!(curl(&url, "/healthz", &certificate).is_some());
    assert!(curl(&url, "/healthz", &old).is_none());
}

/// The unit is one that systemd takes.
#[test]
fn systemd_accepts_the_unit() {
    let kalle = Person::new("unit", "kalle");
    let unit =
        std::fs::read_to_string(crate::run::folder("../../deploy/crosstalk.service")).unwrap();
    let copy = unit.replace("/usr/local/bin/crosstalk", env!("CARGO_BIN_EXE_crosstalk"));
    assert_ne!(unit, copy);
    let file = kalle.home.path("crosstalk.service");
    std::fs::write(&file, copy).unwrap();
    let verify = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output();
    let verify = verify.unwrap_or_else(|e| panic!("systemd-analyze, of the package systemd: {e}"));
    let said = [verify.stdout, verify.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(verify.status.success() && said.is_empty(), "{said}");
}

/// What the unit allows is enough for port 443, and programs of routes do not get it.
#[test]
fn the_capability_of_the_unit_opens_port_443_and_is_given_up() {
    let unit =
        std::fs::read_to_string(crate::run::folder("../../deploy/crosstalk.service")).unwrap();
    let ambient = unit
        .lines()
        .find_map(|l| l.strip_prefix("AmbientCapabilities="));
    let capability = ambient
        .unwrap()
        .strip_prefix("CAP_")
        .unwrap()
        .to_lowercase();
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if user != b"0\n" {
        // Only root can take the part of systemd.
        return;
    }
    let kalle = Person::new("port", "kalle");
    // Another user must reach the program and its data; folders of tests are for their owner.
    let place = Folder::within(Path::new("/tmp"), "port");
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("crosstalk");
    std::fs::copy(env!("CARGO_BIN_EXE_crosstalk"), &program).unwrap();
    let data = place.path().join("relay");
    std::fs::create_dir(&data).unwrap();
    let nobody = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    std::fs::write(
        data.join("relay.toml"),
        "[[route]]\nto = \"agent://who/*\"\nby = \"exec\"\ncommand = [\"grep\", \"Cap\", \"/proc/self/status\"]\n",
    )
    .unwrap();
    nobody(&data);
    nobody(&data.join("relay.toml"));
    // An address of this machine that nobody else listens on.
    let address = format!(
        "127.83.{}.{}:443",
        std::process::id() % 250,
        (std::process::id() / 250) % 250
    );
    let start = |caps: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.args(caps).arg("--").arg(&program);
        command
            .args(["serve", "--listen", &address, "--data"])
            .arg(&data);
        command.env("CROSSTALK_HOME", &data);
        command
    };
    let refused = start(&[]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("can't listen"),
        "{said}"
    );
    let inheritable = format!("--inh-caps=+{capability}");
    let ambient = format!("--ambient-caps=+{capability}");
    let relay = Relay::of(start(&[&inheritable, &ambient]), &data);
    assert!(relay.url.ends_with(":443"), "{}", relay.url);
    let sent = kalle.does(&[
        "send",
        "agent://who/1",
        "Who?",
        "--relay",
        &relay.url,
        "--wait",
        "60",
    ]);
    let capabilities: Vec<&str> = sent.out.lines().filter(|l| l.contains("Cap")).collect();
    assert!(capabilities.len() >= 4, "{}", sent.out);
    for line in capabilities
        .iter()
        .filter(|l| !l.contains("CapBnd") && !l.contains("CapInh"))
    {
        assert!(line.trim_end().ends_with("0000000000000000"), "{line}");
    }
}

#[test]
fn a_start_with_another_configuration_than_the_last_one_warns() {
    let kalle = Person::new("other-start", "kalle");
    let file = kalle.home.path("named.toml");
    std::fs::write(&file, "name = \"relay.example\"\n").unwrap();
    let file = file.to_str().unwrap();
    let relay = Relay::start(&kalle.home, &["--config", file]);
    let data = relay.data().to_owned();
    let log = relay.stop();
    assert!(!log.contains("The last start"), "{log}");
    let wanted = format!("The last start used --config {file} and the name relay.example");
    let check = [
        "serve",
        "--check",
        "--data",
        &data,
        "--listen",
        "127.0.0.1:0",
    ];
    let same = kalle.does(&[&check[..], &["--config", file]].concat());
    assert!(!same.out.contains("last start"), "{}", same.out);
    let other = kalle.does(&[&check[..], &["--json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&other.out).unwrap();
    let checks = told["checks"].as_array().unwrap();
    let found = checks.iter().find(|c| c["what"] == "last start").unwrap();
    assert_eq!(
        (&found["good"], &found["needed"]),
        (&false.into(), &false.into())
    );
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with(&wanted), "{message}");
    let log = Relay::start(&kalle.home, &[]).stop();
    assert!(log.contains(&wanted), "{log}");
}
