//! A mailbox of a real IMAP server.

use crate::house::{MailHouse, config, mail, signed, token};
use crosstalk_envelope::{Document, Reading};
use crosstalk_gateway::imap::{MailboxState, STATE_FILE};
use crosstalk_testing::dovecot::Dovecot;
use crosstalk_testing::wait::wait_until;

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
