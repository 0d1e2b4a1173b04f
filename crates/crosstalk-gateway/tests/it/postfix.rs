//! Behind a real mail server, which hands mail over by LMTP.

use crate::house::{MailHouse, config, token};
use crosstalk_envelope::registry::Intent;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::loopback::own_ip;
use crosstalk_testing::postfix::Postfix;
use crosstalk_testing::wait::wait_until;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

/// Queues that try again at once.
const QUICK: &str = "queue_run_delay = 1s\nminimal_backoff_time = 1s\nmaximal_backoff_time = 2s\ntransport_retry_time = 1s\n\
                     lmtp_destination_concurrency_failed_cohort_limit = 100";

/// Sends a mail to the mail server.
fn send(postfix: &Postfix, to: &str, field: &str, body: &str) {
    let (ip, port) = (
        postfix.address().ip().to_string(),
        postfix.address().port().to_string(),
    );
    let output = std::process::Command::new("swaks")
        .args([
            "--server",
            &ip,
            "--port",
            &port,
            "--helo",
            "client.example",
            "--from",
            "ann@people.test",
        ])
        .args(["--to", to, "--add-header", field, "--body", body])
        .output()
        .expect("swaks: `cargo xtask test` installs it (Debian package swaks)");
    let talk = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{talk}{}", postfix.log());
}

#[test]
fn mail_server_hands_answers_over_also_after_a_break() {
    let lmtp = TcpListener::bind((own_ip(), 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let postfix = Postfix::start(
        &["ann"],
        &format!(
            "relay_domains = relay.example\nrelay_transport = lmtp:inet:[{}]:{}\n{QUICK}",
            lmtp.ip(),
            lmtp.port()
        ),
    );
    let listens = format!("[email.lmtp]\nlisten = \"{lmtp}\"");
    let config = config("").replace("[email.lmtp]\nlisten = \"127.0.0.1:0\"", &listens);
    let house = MailHouse::new(&config);
    let ask = |house: &MailHouse, id: &str| {
        let question = house.ask(id, "email:ann@people.test", "REQUEST");
        let to = format!(
            "crosstalk+{id}.{}@relay.example",
            token(&question, "email:ann@people.test")
        );
        (question, to)
    };
    let (first, to) = ask(&house, "Q1");
    let (second, later) = ask(&house, "Q2");
    send(
        &postfix,
        &to,
        "In-Reply-To: <lost@people.test>",
        "YES\\n\\n-- \\nAnn\\n",
    );
    wait_until("the answer", || house.thread(&first.thread).len() == 2);
    // The relay is away: the mail server keeps the answer.
    let data = house.stop();
    send(&postfix, &later, "In-Reply-To: <lost@people.test>", "NO\\n");
    wait_until("an attempt", || postfix.log().contains("status=deferred"));
    let house = MailHouse::at(&config, data);
    wait_until("the answer after the break", || {
        house.thread(&second.thread).len() == 2
    });
    let answer = &house.thread(&second.thread)[1];
    assert_eq!(answer.meaning, Some(Intent::Respond));
    assert!(answer.text.contains("body: |\n  NO\n"), "{}", answer.text);
    assert_eq!(house.thread(&first.thread).len(), 2);
}

#[test]
fn mail_server_hands_mail_over_through_a_socket_in_a_folder() {
    let folder = Folder::for_server("lmtp");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let socket = folder.path().join("lmtp");
    let postfix = Postfix::start(
        &["ann"],
        &format!(
            "relay_domains = relay.example\nrelay_transport = lmtp:unix:{}\n{QUICK}",
            socket.display()
        ),
    );
    // One that a killed relay left.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let listens = format!("[email.lmtp]\nlisten = \"{}\"", socket.display());
    let config = config("").replace("[email.lmtp]\nlisten = \"127.0.0.1:0\"", &listens);
    let house = MailHouse::new(&config);
    let question = house.ask("Q1", "email:ann@people.test", "REQUEST");
    let token = token(&question, "email:ann@people.test");
    let to = format!("crosstalk+Q1.{token}@relay.example");
    send(&postfix, &to, "In-Reply-To: <lost@people.test>", "YES\\n");
    wait_until("the answer", || house.thread(&question.thread).len() == 2);
    // A second relay does not take the place of one that runs, and a file that is no socket stays.
    let second = crosstalk_relay::config::Config::parse(&config).unwrap();
    assert!(crosstalk_gateway::gateway::MailListeners::bind(&second).is_err());
    house.stop();
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "a file").unwrap();
    assert!(crosstalk_gateway::gateway::MailListeners::bind(&second).is_err());
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "a file");
}
