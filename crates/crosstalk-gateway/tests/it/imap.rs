//! A mailbox of a real IMAP server.

mod fault;

use crate::house::{MailHouse, config, mail, signed, token};
use crosstalk_envelope::{Document, Reading};
use crosstalk_gateway::imap::{MailboxState, MailboxStep, STATE_FILE, try_mailbox};
use crosstalk_relay::config::Config;
use crosstalk_testing::dovecot::Dovecot;
use crosstalk_testing::wait::wait_until;
use serde::Deserialize;
use std::path::Path;

fn with_mailbox(dovecot: &Dovecot) -> String {
    let imap = dovecot.imap();
    let table = format!(
        "[email.imap]\nhost = \"{}\"\nport = {}\ntls = \"none\"\nuser = \"ann\"\npassword_file = \"{}\"\n",
        imap.ip(),
        imap.port(),
        dovecot.password_file().display()
    );
    // Tables of the same parent may stand anywhere.
    config(&table)
}

/// The mailbox over TLS, with these lines in its table.
fn encrypted(dovecot: &Dovecot, more: &str) -> String {
    let imap = dovecot.imaps();
    config(&format!(
        "[email.imap]\nhost = \"{}\"\nport = {}\nuser = \"ann\"\npassword_file = \"{}\"\nca_file = \"{}\"\n{more}\n",
        imap.ip(),
        imap.port(),
        dovecot.password_file().display(),
        dovecot.authority().display()
    ))
}

/// The number of mails in a mailbox, or the step that failed.
fn tried(text: &str) -> Result<u32, MailboxStep> {
    let account = Config::parse(text).unwrap().email.unwrap().imap.unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tried = runtime.block_on(try_mailbox(&account));
    tried.map_err(|(step, reason)| {
        // The words of the server alone.
        assert!(!reason.is_empty() && !reason.contains("Some("), "{reason}");
        step
    })
}

#[test]
fn each_step_to_a_mailbox_can_fail() {
    let dovecot = Dovecot::start(&["ann"]);
    dovecot.deliver("ann", note("S1").as_bytes());
    let good = encrypted(&dovecot, "");
    assert_eq!(tried(&good), Ok(1));
    // It is looked at, and nothing more.
    assert!(dovecot.seen("ann").is_empty());
    let (imap, imaps) = (dovecot.imap().port(), dovecot.imaps().port());
    let authority = format!("ca_file = \"{}\"\n", dovecot.authority().display());
    let password = dovecot.password_file().display().to_string();
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), "another password").unwrap();
    let port = |port: u16| format!("port = {port}\nuser");
    let starttls = good.replace(&port(imaps), &format!("tls = \"starttls\"\n{}", port(imap)));
    assert_eq!(tried(&starttls), Ok(1));
    for (text, step) in [
        (good.replace(&authority, ""), MailboxStep::Encrypt),
        (starttls.replace(&authority, ""), MailboxStep::Encrypt),
        (good.replace(&port(imaps), &port(9)), MailboxStep::Connect),
        (
            good.replace(&password, &other.path().display().to_string()),
            MailboxStep::LogIn,
        ),
        (good.replace(&password, "/no/such/file"), MailboxStep::Files),
        (
            encrypted(&dovecot, "folder = \"Gone\""),
            MailboxStep::Folder,
        ),
        (
            encrypted(&dovecot, "done_folder = \"Gone\""),
            MailboxStep::Folder,
        ),
    ] {
        assert_eq!(tried(&text), Err(step), "{text}");
    }
}

#[derive(Deserialize)]
struct Cases {
    rejected: Vec<RejectedCase>,
}

#[derive(Deserialize)]
struct RejectedCase {
    from: String,
    token: String,
    head: Option<String>,
    told: bool,
}

#[test]
fn person_whose_answer_is_rejected_gets_a_mail_about_it_once() {
    let mut dovecot = Dovecot::start(&["ann"]);
    let house = MailHouse::new(&encrypted(&dovecot, ""));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let token = token(&question, "email:ann@acme.example");
    let head = |from: &str, id: &str, token: &str| {
        format!(
            "From: <{from}>\nTo: <crosstalk+Q1.{token}@relay.example>\nDate: Thu, 9 Oct 2025 08:00:00 +0000\n\
             Message-ID: <{id}@acme.example>\nIn-Reply-To: <lost@acme.example>"
        )
    };
    let large =
        "A line of sixty-four characters, as a mail program writes them...\n".repeat(600_000);
    assert!(large.len() > crosstalk_email::limit::MAIL_BYTES);
    // Nobody is told about a mail that others may have written, or that a program wrote.
    let forged = "aaaabbbbccccddddeeeeffff22";
    let automatic =
        "Auto-Submitted: auto-replied\n".to_owned() + &head("ann@acme.example", "3", &token);
    dovecot.deliver(
        "ann",
        mail(&head("eve@evil.example", "1", &token), &large).as_bytes(),
    );
    dovecot.deliver("ann", mail(&automatic, &large).as_bytes());
    dovecot.deliver(
        "ann",
        mail(&head("ann@acme.example", "4", &token), &large).as_bytes(),
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/email/gateway.toml");
    let cases: Cases = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut expected = 1;
    for (number, case) in cases.rejected.iter().enumerate() {
        let token = match case.token.as_str() {
            "valid" => token.as_str(),
            _ => forged,
        };
        let more = case
            .head
            .as_ref()
            .map_or(String::new(), |line| format!("{line}\n"));
        let head = more + &head(&case.from, &format!("case{number}"), token);
        dovecot.deliver("ann", mail(&head, "> May I deploy?\n").as_bytes());
        expected += usize::from(case.told);
    }
    let count = 3 + cases.rejected.len();
    wait_until("marks of all", || dovecot.seen("ann").len() == count);
    let told = |house: &MailHouse| -> Vec<String> {
        let mut all = house.thread(&question.thread);
        all.retain(|record| {
            record.sender == "SYSTEM" && record.receiver == "email:ann@acme.example"
        });
        all.into_iter().map(|record| record.text).collect()
    };
    let texts = told(&house);
    assert_eq!(texts.len(), expected, "{texts:#?}");
    assert!(
        texts[0].contains("Code: E-TOO-LARGE") && texts[0].contains("send less text"),
        "{}",
        texts[0]
    );
    assert!(texts[1].contains("Code: E-FORMAT"), "{}", texts[1]);
    // They are read again after the state was lost, and it was said.
    let data = house.stop();
    dovecot.unsee("ann");
    std::fs::remove_file(data.path().join(STATE_FILE)).unwrap();
    dovecot.restart();
    let house = MailHouse::at(&encrypted(&dovecot, ""), data);
    wait_until("marks of all again", || dovecot.seen("ann").len() == count);
    assert_eq!(told(&house), texts);
    // The question is still open, and is answered.
    let answer = mail(&head("ann@acme.example", "6", &token), "YES\n");
    dovecot.deliver("ann", answer.as_bytes());
    wait_until("the answer", || {
        house
            .thread(&question.thread)
            .iter()
            .any(|r| r.text.contains("  YES\n"))
    });
}

fn note(id: &str) -> String {
    mail(
        &format!("From: <x@y.example>\nMessage-ID: <{id}@y.example>"),
        &signed(id),
    )
}

#[test]
fn mails_of_a_mailbox_are_taken_once() {
    let mut dovecot = Dovecot::start(&["ann"]);
    dovecot.deliver("ann", note("S1").as_bytes());
    let house = MailHouse::new(&with_mailbox(&dovecot));
    wait_until("the first mail", || house.record("S1").is_some());
    // The same bytes as by the other ways.
    let kept = house.record("S1").unwrap();
    let canonical = |text: &str| Document::parse(text, Reading::Strict).canonical().unwrap();
    assert_eq!(canonical(&kept.text), canonical(&signed("S1")));
    // The server tells about a new mail.
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let token = token(&question, "email:ann@acme.example");
    let head = format!(
        "From: <ann@acme.example>\nTo: <crosstalk+Q1.{token}@relay.example>\nDate: Thu, 9 Oct 2025 08:00:00 +0000\n\
         Message-ID: <7@acme.example>\nIn-Reply-To: <lost@acme.example>"
    );
    dovecot.deliver("ann", mail(&head, "YES\n").as_bytes());
    wait_until("the answer", || house.thread(&question.thread).len() == 2);
    wait_until("marks of both", || dovecot.seen("ann").len() == 2);
    // The connection ends; what comes meanwhile is read behind the next one.
    dovecot.stop();
    dovecot.deliver("ann", note("S2").as_bytes());
    dovecot.restart();
    wait_until("the mail after the break", || house.record("S2").is_some());
    // A restart reads nothing again.
    wait_until("marks of all", || dovecot.seen("ann").len() == 3);
    let data = house.stop();
    let state = MailboxState::load(&data.path().join(STATE_FILE)).unwrap();
    assert!(state.open.is_empty() && state.next == 4, "{state:?}");
    dovecot.deliver("ann", note("S3").as_bytes());
    let house = MailHouse::at(&with_mailbox(&dovecot), data);
    wait_until("the mail after the restart", || {
        house.record("S3").is_some()
    });
    assert_eq!(house.thread("TS").len(), 3);
    assert_eq!(house.thread(&question.thread).len(), 2);
}

#[test]
fn mails_are_moved_where_the_operator_says() {
    let dovecot = Dovecot::start(&["ann"]);
    dovecot.make_folder("ann", "Done");
    for number in 1..4 {
        dovecot.deliver("ann", note(&format!("S{number}")).as_bytes());
    }
    // What can't be used is moved as well: it is no work any more.
    dovecot.deliver("ann", mail("From: <x@y.example>", "Hello\n").as_bytes());
    let house = MailHouse::new(&encrypted(&dovecot, "done_folder = \"Done\""));
    wait_until("the mails in the other folder", || {
        dovecot.mails_in("ann", "Done").len() == 4
    });
    wait_until("the mails gone from the first one", || {
        dovecot.mails("ann").is_empty()
    });
    assert_eq!(house.thread("TS").len(), 3);
}
