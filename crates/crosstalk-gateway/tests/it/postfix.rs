//! Behind a real mail server, which hands mail over by LMTP.

use crate::house::{MailHouse, config, token};
use crosstalk_envelope::registry::Intent;
use crosstalk_testing::loopback::own_ip;
use crosstalk_testing::postfix::Postfix;
use crosstalk_testing::wait::wait_until;
use std::net::TcpListener;

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
            "relay_domains = relay.example\nrelay_transport = lmtp:inet:[{}]:{}\nqueue_run_delay = 1s\n\
             minimal_backoff_time = 1s\nmaximal_backoff_time = 2s\ntransport_retry_time = 1s\n\
             lmtp_destination_concurrency_failed_cohort_limit = 100",
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
