//! Whole conversations by mail: a question goes out through Postfix, a person answers it from a mail program, and the answer comes
//! back to the asker. What can go wrong on the way does: greylisting, a full mailbox, kills, programs that answer every mail.

use super::client::http;
use super::{Person, Relay, output};
use crate::run::folder;
use crosstalk_envelope::{Document, Reading};
use crosstalk_testing::dovecot::{Dovecot, PASSWORD};
use crosstalk_testing::http::Connection;
use crosstalk_testing::knot::{Knot, Zone};
use crosstalk_testing::loopback::own_ip;
use crosstalk_testing::postfix::Postfix;
use crosstalk_testing::wait::{wait_for, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

/// Queues that try again at once.
const QUICK: &str = "queue_run_delay = 1s\nminimal_backoff_time = 1s\nmaximal_backoff_time = 2s\ntransport_retry_time = 1s\n\
                     lmtp_destination_concurrency_failed_cohort_limit = 100\n";

/// A mail server for people.test with mailboxes in Dovecot, which hands mail for relay.test over by LMTP.
struct MailSystem {
    postfix: Postfix,
    dovecot: Dovecot,
    knot: Knot,
    lmtp: SocketAddr,
}

impl MailSystem {
    fn start(users: &[&str], settings: &str) -> Self {
        let lmtp = TcpListener::bind((own_ip(), 0)).unwrap();
        let lmtp = lmtp.local_addr().unwrap();
        let dovecot = Dovecot::start_with(users, settings);
        let people = dovecot.lmtp();
        let postfix = Postfix::start(
            users,
            &format!(
                "{QUICK}relay_domains = relay.test\nrelay_transport = lmtp:inet:[{}]:{}\nvirtual_transport = lmtp:inet:[{}]:{}",
                lmtp.ip(),
                lmtp.port(),
                people.ip(),
                people.port()
            ),
        );
        let knot = Knot::start([Zone::new("test").txt("people.test.", &["v=spf1 -all"])]);
        Self {
            postfix,
            dovecot,
            knot,
            lmtp,
        }
    }

    /// Writes the configuration of a relay behind it.
    fn configure(&self, person: &Person, more: &str) {
        let data = person.home.path("relay");
        std::fs::create_dir_all(&data).unwrap();
        let (smtp, ca) = (self.postfix.address(), self.postfix.authority());
        let config = format!(
            "[retry]\nfirst_seconds = 1\nlongest_seconds = 1\nattempts = 1000\nfailures = 1000\n[federation]\ndns = \"{}\"\n\
             [email]\ndomain = \"relay.test\"\n[email.out]\nhost = \"{}\"\nport = {}\nca_file = \"{}\"\n[email.lmtp]\nlisten = \"{}\"\n\
             {more}\n[[route]]\nto = \"email:*\"\nby = \"email\"\ncover = true\n",
            self.knot.address(),
            smtp.ip(),
            smtp.port(),
            ca.display(),
            self.lmtp
        );
        std::fs::write(data.join("relay.toml"), config).unwrap();
    }

    /// The mails of a person, when there are so many.
    fn mails(&self, user: &str, count: usize) -> Vec<String> {
        wait_for(&format!("{count} mails for {user}"), || {
            let mails = self.dovecot.mails(user);
            let texts = mails.into_iter().map(|m| String::from_utf8(m).unwrap());
            (texts.len() >= count).then(|| texts.collect())
        })
    }

    /// Answers a mail as a mail program does.
    fn answer(&self, from: &str, mail: &str, id: &str, body: &str) {
        swaks(self.postfix.address(), from, mail, (id, body), &[]);
    }
}

/// The value of a field in the head of a mail, on one line.
fn field(mail: &str, name: &str) -> String {
    let (head, _) = mail.replace("\r\n", "\n").split_once("\n\n").map_or_else(
        || (mail.to_owned(), ()),
        |(head, _)| (head.replace("\n ", " "), ()),
    );
    let start = format!("{name}: ");
    let found = head.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("{name}: {mail}")).to_owned()
}

/// Answers a mail with `swaks`.
fn swaks(server: SocketAddr, from: &str, mail: &str, (id, body): (&str, &str), more: &[&str]) {
    let (ip, port) = (server.ip().to_string(), server.port().to_string());
    let to = field(mail, "Reply-To");
    let answered = field(mail, "Message-ID");
    let subject = format!("Subject: Re: {}", field(mail, "Subject"));
    let sent = Command::new("swaks")
        .args(["--server", &ip, "--port", &port, "--helo", "client.test"])
        .args(["--from", from, "--to", to.trim_matches(['<', '>'])])
        .args(["--header", &format!("Message-Id: <{id}@people.test>")])
        // The same bytes whenever it is sent.
        .args(["--header", "Date: Thu, 9 Oct 2025 08:00:00 +0000"])
        .args(["--header", &subject, "--body", body])
        .args(["--add-header", &format!("In-Reply-To: {answered}")])
        .args(["--add-header", &format!("References: {answered}")])
        .args(more)
        .output()
        .unwrap_or_else(|e| panic!("swaks, of the Debian package swaks: {e}"));
    let talk = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(sent.status.success(), "{talk}");
}

/// The messages of a relay with an intent: their bodies, each once for each message.
fn bodies(data: &Path, intent: &str) -> Vec<String> {
    let store = rusqlite::Connection::open(data.join("relay.db")).unwrap();
    let mut query = store.prepare("SELECT text FROM intake").unwrap();
    let texts = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let texts = texts.map(Result::unwrap);
    let is_it = |text: &String| text.contains(&format!("\nintent: {intent}\n"));
    let body = |text: String| {
        let (_, body) = text.split_once("\nbody: |\n").unwrap();
        body.lines().next().unwrap().trim().to_owned()
    };
    texts.filter(is_it).map(body).collect()
}

#[test]
fn question_goes_out_by_mail_and_its_answer_comes_back() {
    let quota = "mail_plugins = quota\nplugin {\n quota = maildir:User quota\n quota_rule = *:storage=200K\n}\n";
    let mail = MailSystem::start(&["bert", "full"], quota);
    let filling = format!("From: x@y.test\r\n\r\n{}", "full\r\n".repeat(50_000));
    mail.dovecot.deliver("full", filling.as_bytes());
    let kalle = Person::new("mail-loop", "kalle");
    mail.configure(&kalle, "");
    mail.postfix
        .set_access("/^bert@/ 451 4.7.1 Greylisted, come back later\n");
    let relay = Relay::start(&kalle.home, &[]);
    let data = relay.data.clone();
    let asking = kalle.starts(&[
        "send",
        "email:bert@people.test",
        "May I deploy tonight?",
        "--relay",
        &relay.url,
        "--wait",
        "300",
    ]);
    wait_until("greylisting", || mail.postfix.log().contains("Greylisted"));
    mail.postfix.set_access("");
    let first = mail.mails("bert", 1).remove(0);
    assert!(first.contains("Reply to this mail to answer"), "{first}");
    let quoted = "Yes, after 10 pm.\\n\\nOn Thu, 9 Oct 2025, claude via Crosstalk wrote:\\n> May I deploy tonight?\\n> NO\\n";
    // The mail program sends it twice.
    for _ in 0..2 {
        mail.answer("bert@people.test", &first, "A1", quoted);
    }
    let (code, printed) = output(asking);
    assert_eq!(code, Some(0), "{printed}{}", mail.postfix.log());
    assert!(
        printed.contains("│ Yes, after 10 pm.") && !printed.contains("│ NO"),
        "{printed}"
    );

    // The relay is killed while its mail server has the question, and is away while the answer comes.
    kalle.does(&[
        "send",
        "email:bert@people.test",
        "And tomorrow?",
        "--relay",
        &relay.url,
    ]);
    let second = mail.mails("bert", 2);
    relay.signal("KILL");
    drop(relay);
    let second = second.iter().find(|m| m.contains("And tomorrow?")).unwrap();
    mail.answer("bert@people.test", second, "A2", "No.\\n");
    wait_until("the answer waits at the mail server", || {
        mail.postfix.log().contains("status=deferred")
    });
    let relay = Relay::start(&kalle.home, &[]);
    wait_until("the second answer", || bodies(&data, "RESPOND").len() == 2);

    // A full mailbox behind a mail server that accepts the mail: the report of the mail server becomes an ERROR.
    kalle.does(&[
        "send",
        "email:full@people.test",
        "Any room?",
        "--relay",
        &relay.url,
    ]);
    wait_until("the report about the full mailbox", || {
        !bodies(&data, "ERROR").is_empty()
    });
    // Everything is sent again, and changes nothing.
    for (question, id) in [(&first, "A1"), (second, "A2")] {
        let text = if id == "A1" { quoted } else { "No.\\n" };
        mail.answer("bert@people.test", question, id, text);
    }
    wait_until("every mail was handed over", || {
        let log = mail.postfix.log();
        log.matches("relay=").count() > 0 && log.matches("status=sent").count() >= 8
    });
    let log = relay.stop();
    let mut answers = bodies(&data, "RESPOND");
    answers.sort();
    assert_eq!(answers, ["No.", "Yes, after 10 pm."], "{log}");
    let errors = bodies(&data, "ERROR");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("full@people.test") && errors[0].contains("uota"),
        "{errors:?}"
    );
    // A relay that was killed may send a mail again. It is the same mail.
    let mails = mail.mails("bert", 2);
    let ids: BTreeSet<String> = mails.iter().map(|m| field(m, "Message-ID")).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
}

/// A person's program that answers every mail at once, and marks nothing: the worst of all out-of-office replies.
fn answer_everything(mail: &MailSystem, user: &str, done: &mut BTreeMap<String, ()>) {
    for text in mail.mails(user, 0) {
        let id = field(&text, "Message-ID");
        if done.insert(id, ()).is_none() {
            let number = format!("away{}", done.len());
            let body = "I am out of office until Monday. Yes, of course.\\n";
            mail.answer(&format!("{user}@people.test"), &text, &number, body);
        }
    }
}

#[test]
fn two_programs_that_answer_everything_come_to_an_end() {
    let mail = MailSystem::start(&["away"], "");
    let kalle = Person::new("mail-responders", "kalle");
    // One agent answers in plain words, the other one asks on whatever it gets.
    let ask = "[[agent://relay.test/asks→email:away@people.test v1]]\\nuser: asks\\ncontext: loop\\nintent: REQUEST\\nbody: |\\n  And?\\nsig: none\\n[[END]]\\n";
    let program =
        |printed: &str| format!("[\"sh\", \"-c\", 'cat > /dev/null; printf \"{printed}\"']");
    mail.configure(
        &kalle,
        &format!(
            "[[route]]\nto = \"agent://relay.test/thanks\"\nby = \"exec\"\ncommand = {}\n[[route]]\nto = \"agent://relay.test/asks\"\n\
             by = \"exec\"\ncommand = {}",
            program("Thank you."),
            program(ask)
        ),
    );
    let relay = Relay::start(&kalle.home, &[]);
    let data = relay.data.clone();
    let send = |from: &str| {
        kalle.does(&[
            "send",
            "email:away@people.test",
            "Are you there?",
            "--from",
            from,
            "--relay",
            &relay.url,
        ]);
    };
    let mut done = BTreeMap::new();
    send("agent://relay.test/thanks");
    wait_until("the answer to the polite agent", || {
        answer_everything(&mail, "away", &mut done);
        bodies(&data, "RESPOND").len() == 1
    });
    send("agent://relay.test/asks");
    // The relay ends it, and tells the one that began.
    wait_until("the end of the circle", || {
        answer_everything(&mail, "away", &mut done);
        bodies(&data, "ERROR")
            .iter()
            .any(|body| body.contains("asked each other"))
    });
    // Nothing is on its way any more: a mail that is sent now is the next one.
    let before = done.len();
    kalle.does(&[
        "send",
        "email:away@people.test",
        "The last one.",
        "--intent",
        "NOTE",
        "--relay",
        &relay.url,
    ]);
    wait_until("the last mail", || {
        mail.mails("away", 0)
            .iter()
            .any(|m| m.contains("The last one."))
    });
    let mails = mail.mails("away", 0).len();
    assert_eq!(mails, before + 1);
    // 25 messages in one conversation, half of them by mail.
    assert!((10..=15).contains(&mails), "{mails}");
    relay.stop();
}

/// The blocks of a page between lines with three backquotes, with what stands behind the first of these.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            blocks.push((kind.to_owned(), text.join("\n") + "\n"));
        }
    }
    blocks
}

/// Plays docs/guide/email.md with a mail server and a mailbox of the domain in it.
#[test]
fn the_guide_to_mail_tells_what_happens() {
    let page = std::fs::read_to_string(folder("../../docs/guide/email.md")).unwrap();
    let blocks = blocks(&page);
    let dovecot = Dovecot::start(&["crosstalk", "ann"]);
    let (lmtp, auth) = (dovecot.lmtp(), dovecot.auth());
    let postfix = Postfix::start(
        &[],
        &format!(
            "{QUICK}virtual_mailbox_domains = acme.example\nvirtual_mailbox_maps = inline:{{ crosstalk@acme.example=c, \
             ann@acme.example=a }}\nvirtual_transport = lmtp:inet:[{}]:{}\nsmtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\n\
             smtpd_sasl_path = inet:{auth}\nsmtpd_recipient_restrictions = permit_sasl_authenticated, reject",
            lmtp.ip(),
            lmtp.port()
        ),
    );
    let zone = Zone::new("example")
        .record("acme MX 10 mail.acme")
        .txt("acme", &["v=spf1 mx -all"])
        .txt("_dmarc.acme", &["v=DMARC1; p=none"]);
    let knot = Knot::start([zone]);
    let kalle = Person::new("mail-guide", "kalle");
    let data = kalle.home.path("relay");
    std::fs::create_dir_all(&data).unwrap();
    let password = data.join("mail.password");
    std::fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    std::fs::set_permissions(
        &password,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();

    // The configuration of the page, with the addresses of this machine instead of the name of the mail server.
    let (_, config) = blocks
        .iter()
        .find(|(kind, text)| kind == "toml" && text.contains("[email.imap]"))
        .unwrap();
    let host = "host = \"mail.acme.example\"";
    assert_eq!(config.matches(host).count(), 2, "{config}");
    let place = |address: SocketAddr, ca: &Path| {
        format!(
            "ca_file = \"{}\"\nport = {}\nhost = \"{}\"",
            ca.display(),
            address.port(),
            address.ip()
        )
    };
    let config = config
        .replacen(host, &place(postfix.address(), &postfix.authority()), 1)
        .replacen(host, &place(dovecot.imaps(), &dovecot.authority()), 1);
    let dns = format!("[federation]\ndns = \"{}\"\n", knot.address());
    std::fs::write(data.join("relay.toml"), format!("{dns}{config}")).unwrap();

    let command = |start: &str| {
        let mut lines = blocks
            .iter()
            .filter(|(kind, _)| kind == "sh")
            .flat_map(|(_, text)| text.lines());
        lines
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("the guide lacks {start}"))
            .to_owned()
    };
    let words = |line: &str| -> Vec<String> {
        let mut words = Vec::new();
        for (number, part) in line.split('"').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    };
    let test = words(&command("crosstalk email test"));
    let mut test: Vec<&str> = test.iter().skip(1).map(String::as_str).collect();
    let (data_text, dns) = (
        data.to_str().unwrap().to_owned(),
        knot.address().to_string(),
    );
    // The page sends to an address of the reader.
    let you = test
        .iter()
        .position(|word| *word == "you@acme.example")
        .unwrap();
    test[you] = "ann@acme.example";
    test.extend(["--data", &data_text, "--dns", &dns]);
    let tested = kalle.does(&test);
    let (_, said) = blocks
        .iter()
        .find(|(kind, text)| kind == "text" && text.contains("good MX"))
        .unwrap();
    let shown = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|l| l.starts_with(|c: char| c.is_lowercase()));
        let what = |line: &str| line.split(':').next().unwrap().to_owned();
        lines.map(what).collect()
    };
    assert_eq!(shown(&tested.out), shown(said), "{}", tested.out);

    let relay = Relay::start(&kalle.home, &[]);
    let ask = words(&command("crosstalk send"));
    let mut ask: Vec<&str> = ask.iter().skip(1).map(String::as_str).collect();
    ask.extend(["--relay", &relay.url]);
    let asking = kalle.starts(&ask);
    let mail = wait_for("the mail for Ann", || {
        let mail = dovecot.mails("ann").pop()?;
        Some(String::from_utf8(mail).unwrap())
    });
    // Ann sees what the page shows of the mail.
    let (_, seen) = blocks.iter().find(|(kind, _)| kind == "mail").unwrap();
    let (head, text) = seen.split_once("\n\n").unwrap();
    for line in head.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(field(&mail, name), value, "{mail}");
    }
    let decoded = mail
        .replace("=\r\n", "")
        .replace("=\n", "")
        .replace("=E2=86=92", "→")
        .replace("\r\n", "\n");
    assert!(decoded.contains(text.trim_end()), "{decoded}\n{text}");
    // She answers as the page says.
    let (_, answer) = blocks.iter().find(|(kind, _)| kind == "reply").unwrap();
    let login = [
        "--auth",
        "PLAIN",
        "--auth-user",
        "ann@acme.example",
        "--auth-password",
        PASSWORD,
    ];
    swaks(
        postfix.address(),
        "ann@acme.example",
        &mail,
        ("A1", &answer.replace('\n', "\\n")),
        &login,
    );
    let (code, printed) = output(asking);
    assert_eq!(code, Some(0), "{printed}");
    let (_, expected) = blocks
        .iter()
        .find(|(kind, text)| kind == "text" && text.contains('│'))
        .unwrap();
    for line in expected.lines().filter(|line| line.starts_with('│')) {
        assert!(printed.contains(line.trim_end()), "{printed}");
    }
    // What went out and came in is counted.
    let metrics = http(&relay.url, "/metrics");
    for line in [
        "crosstalk_delivery_attempts_total{queue=\"email\",outcome=\"delivered\"} 1\n",
        "crosstalk_incoming_total{way=\"imap\",outcome=\"accepted\"} 1\n",
        "crosstalk_mailbox_connected 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    relay.stop();
}

/// The envelopes that a relay accepted.
fn kept(data: &Path) -> Option<String> {
    let store = rusqlite::Connection::open(data.join("relay.db")).unwrap();
    let mut query = store.prepare("SELECT text FROM intake").unwrap();
    let mut texts = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let first = texts.next().map(Result::unwrap);
    assert!(texts.next().is_none());
    first
}

#[test]
fn one_message_is_the_same_by_paste_http_file_and_mail() {
    let id = "01K74V6VX0S86Z5JATM52C3M7Z";
    let text = format!(
        "[[email:x@y.example→BOB v1]]\nuser: x\nthread: T1\nmessage: {id}\ncontext: café\nintent: NOTE\nbody: |\n  A line — with \"quotes\", \
         é and an = sign.\n\n  > a quote\n  From here on.\nsig: none\n[[END]]\n"
    );
    let canonical = |text: &str| Document::parse(text, Reading::Strict).canonical().unwrap();
    let wanted = canonical(&text);
    for way in ["http", "file", "mail"] {
        let person = Person::new(&format!("ways-{way}"), "kalle");
        let data = person.home.path("relay");
        let folder = person.home.path("in");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let lmtp = TcpListener::bind((own_ip(), 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let config = format!(
            "[email]\ndomain = \"relay.test\"\ntrust_results = \"mx.test\"\n[email.lmtp]\nlisten = \"{lmtp}\"\n[[watch]]\nfolder = \"{}\"\n\
             addresses = [\"email:*\"]\n",
            folder.display()
        );
        std::fs::write(data.join("relay.toml"), config).unwrap();
        let relay = Relay::start(&person.home, &[]);
        match way {
            "http" => {
                let address = relay.url.trim_start_matches("http://").parse().unwrap();
                let answer = Connection::open(address).unwrap().receive(&text).unwrap();
                assert!(answer.status < 300, "{}", answer.text());
            }
            "file" => {
                std::fs::write(folder.join("new"), &text).unwrap();
                std::fs::rename(folder.join("new"), folder.join("m.aict")).unwrap();
            }
            _ => {
                let (ip, port) = (lmtp.ip().to_string(), lmtp.port().to_string());
                let results = "Authentication-Results: mx.test; dmarc=pass header.from=y.example";
                let sent = Command::new("swaks")
                    .args([
                        "--server",
                        &ip,
                        "--port",
                        &port,
                        "--protocol",
                        "LMTP",
                        "--helo",
                        "c.test",
                    ])
                    .args(["--from", "x@y.example", "--to", "crosstalk@relay.test"])
                    .args([
                        "--add-header",
                        results,
                        "--add-header",
                        "Content-Type: text/plain; charset=utf-8",
                    ])
                    .args(["--body", &text])
                    .output()
                    .expect("swaks: `cargo xtask test` installs it (Debian package swaks)");
                let talk = String::from_utf8_lossy(&sent.stdout).into_owned();
                assert!(sent.status.success(), "{talk}");
            }
        }
        let found = wait_for(way, || kept(&data));
        assert_eq!(canonical(&found), wanted, "{way}");
        relay.stop();
    }
    let person = Person::new("ways-paste", "kalle");
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    person.does_with(&["paste"], &format!("For you:\n\n{quoted}\nBye\n"));
    let shown = person.does(&["show", id, "--envelope"]).out;
    assert_eq!(canonical(&shown), wanted);
}
