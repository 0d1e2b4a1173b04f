//! Mails on their way into the relay: answers, envelopes, reports, forgeries.

use crate::house::{MailHouse, config, mail, signed, token};
use crosstalk_email::MailId;
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::Record;

/// Results of the operator's own mail server for the domain of an address.
fn aligned(domain: &str) -> String {
    format!("Authentication-Results: mx.relay.example; dmarc=pass header.from={domain}\n")
}

fn message_id(question: &Record, token: &str) -> String {
    let id = MailId::Message {
        id: question.id.clone(),
        token: Some(token.to_owned()),
    };
    id.to_message_id("relay.example").unwrap()
}

fn reply(from: &str, number: u32, answered: &str, more: &str, text: &str) -> String {
    mail(
        &format!(
            "{more}From: <{from}>\nTo: <crosstalk@relay.example>\nDate: Thu, 9 Oct 2025 08:00:0{number} +0000\n\
             Message-ID: <{number}@mail.example>\nIn-Reply-To: {answered}\nSubject: Re: deploy"
        ),
        text,
    )
}

fn answers(house: &MailHouse, question: &Record) -> Vec<Record> {
    let mut all = house.thread(&question.thread);
    all.retain(|r| r.parent.as_deref() == Some(&question.id));
    all
}

#[test]
fn answer_to_a_question_comes_back_once() {
    let house = MailHouse::new(&config(""));
    let question = house.ask(
        "01K74V6VX0S86Z5JATM52C3M7Z",
        "email:ann@acme.example",
        "REQUEST",
    );
    let token = token(&question, "email:ann@acme.example");
    let text = "YES, go on.\n\nOn Thu, 9 Oct 2025, Bot <crosstalk@relay.example> wrote:\n> May I deploy?\n> NO\n";
    // A mail program that keeps nothing but the address in Reply-To, and the case of which a server changed.
    let address = format!(
        "CROSSTALK+{}.{}@relay.example",
        question.id.to_lowercase(),
        token.to_uppercase()
    );
    let sent = reply("Ann@ACME.example", 1, "<lost@mail.example>", "", text);
    let mut lmtp = house.lmtp();
    for _ in 0..3 {
        let answer = lmtp.deliver("ann@acme.example", &address, &sent);
        assert!(answer.starts_with("250"), "{answer}");
    }
    assert!(
        house
            .smtp()
            .deliver("ann@acme.example", &address, &sent)
            .starts_with("250")
    );
    let answers = answers(&house, &question);
    assert_eq!(answers.len(), 1);
    let answer = &answers[0];
    assert_eq!(
        (answer.meaning, answer.sender.as_str()),
        (Some(Intent::Respond), "email:ann@acme.example")
    );
    assert_eq!(answer.thread, question.thread);
    let document = Document::parse(&answer.text, Reading::Strict);
    assert_eq!(document.body_text(), "YES, go on.");
    assert_eq!(
        document.meta("email", "Message-ID"),
        Some("<1@mail.example>")
    );
    // It is still the same answer after a restart.
    let id = answer.id.clone();
    let data = house.stop();
    let house = MailHouse::at(&config(""), data);
    assert!(
        house
            .lmtp()
            .deliver("ann@acme.example", &address, &sent)
            .contains(&id)
    );
    assert_eq!(house.thread(&question.thread).len(), 2);
}

#[test]
fn person_answers_under_the_address_that_was_asked() {
    let house = MailHouse::new(&config(""));
    let question = house.ask("Q1", "human://acme.example/ann", "REQUEST");
    let token = token(&question, "human://acme.example/ann");
    let sent = reply(
        "ann@acme.example",
        1,
        &message_id(&question, &token),
        "",
        "approve\n",
    );
    let answer = house
        .lmtp()
        .deliver("ann@acme.example", "crosstalk@relay.example", &sent);
    assert!(answer.starts_with("250"), "{answer}");
    assert_eq!(
        answers(&house, &question)[0].sender,
        "human://acme.example/ann"
    );
    // The same credential says nothing else in this name.
    let other = "[[human://acme.example/ann→BOT v1]]\nuser: ann\nthread: T9\nmessage: M9\ncontext: c\nintent: NOTE\nbody: |\n  \
                 pay\nsig: none\n[[END]]\n";
    let sent = reply(
        "ann@acme.example",
        2,
        &message_id(&question, &token),
        &aligned("acme.example"),
        other,
    );
    let answer = house
        .lmtp()
        .deliver("ann@acme.example", "crosstalk@relay.example", &sent);
    assert!(answer.starts_with("550 5.7.1 E-PERM"), "{answer}");
    assert!(house.record("M9").is_none());
}

#[test]
fn forged_sender_answers_nothing() {
    let house = MailHouse::new(&config(""));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let other = house.ask("Q2", "email:eve@evil.example", "REQUEST");
    let foreign = token(&other, "email:eve@evil.example");
    let asked = message_id(&question, &foreign);
    for (from, more, why) in [
        ("ann@acme.example", String::new(), "nothing shows it"),
        (
            "ann@acme.example",
            aligned("evil.example"),
            "results for another domain",
        ),
        (
            "eve@evil.example",
            aligned("evil.example"),
            "another person",
        ),
    ] {
        let sent = reply(from, 1, &asked, &more, "YES\n");
        let answer = house.lmtp().deliver(from, "crosstalk@relay.example", &sent);
        assert!(answer.starts_with("550 5.7.1 E-PERM"), "{why}: {answer}");
    }
    assert!(answers(&house, &question).is_empty());
    let sent = reply(
        "ann@acme.example",
        1,
        &asked,
        &aligned("acme.example"),
        "YES\n",
    );
    assert!(
        house
            .lmtp()
            .deliver("ann@acme.example", "crosstalk@relay.example", &sent)
            .starts_with("250")
    );
    assert_eq!(answers(&house, &question).len(), 1);
}

#[test]
fn one_message_has_the_same_canonical_bytes_by_every_way() {
    let text = signed("S1");
    let canonical = |text: &str| Document::parse(text, Reading::Strict).canonical().unwrap();
    let flowed = text.replace("\n  ", "\n    ");
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    let encoded = text
        .replace('=', "=3D")
        .replace('é', "=C3=A9")
        .replace('→', "=E2=86=92");
    let plain = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n";
    let qp = format!("{plain}Content-Transfer-Encoding: quoted-printable\n");
    for (way, head, body) in [
        ("8bit", plain, &text),
        ("quoted-printable", qp.as_str(), &encoded),
        ("indented", plain, &flowed),
        ("forwarded", plain, &quoted),
    ] {
        for protocol in ["lmtp", "smtp"] {
            let house = MailHouse::new(&config(""));
            let sent = mail(
                &format!("{head}From: <x@y.example>\nMessage-ID: <1@y.example>"),
                body,
            );
            let mut client = match protocol {
                "lmtp" => house.lmtp(),
                _ => house.smtp(),
            };
            let answer = client.deliver("x@y.example", "crosstalk@relay.example", &sent);
            assert!(answer.starts_with("250"), "{way} {protocol}: {answer}");
            let kept = house.record("S1").unwrap();
            assert_eq!(kept.verdict, VerdictWord::Verified, "{way} {protocol}");
            assert_eq!(canonical(&kept.text), canonical(&text), "{way} {protocol}");
            // The same message by HTTP or a file is known.
            let before = house.thread("TS").len();
            house.take(&text);
            assert_eq!(house.thread("TS").len(), before, "{way} {protocol}");
        }
    }
}

#[test]
fn message_with_a_wrong_signature_waits_for_a_person() {
    let house = MailHouse::new(&config("[names]\nKALLE = \"email:kalle@example.com\""));
    let text = signed("S1").replace("  End.", "  Pay.");
    let head = |more: &str| format!("{more}From: <kalle@example.com>\nMessage-ID: <1@y.example>");
    let mut lmtp = house.lmtp();
    let answer = lmtp.deliver(
        "x@y.example",
        "crosstalk@relay.example",
        &mail(&head(""), &text),
    );
    assert!(answer.starts_with("550 5.7.1"), "{answer}");
    let sent = mail(&head(&aligned("example.com")), &text);
    let answer = lmtp.deliver("x@y.example", "crosstalk@relay.example", &sent);
    assert!(answer.starts_with("250"), "{answer}");
    assert!(house.record("S1").is_none());
    let held = house
        .runtime
        .block_on(house.relay.store().held_message("S1"))
        .unwrap()
        .unwrap();
    assert!(
        held.held.why.contains("signature does not verify"),
        "{}",
        held.held.why
    );
}

#[test]
fn report_about_a_mail_becomes_one_error() {
    let house = MailHouse::new(&config(""));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let token = token(&question, "email:ann@acme.example");
    let report = |number: u32, id: &str| {
        mail(
            &format!(
                "Return-Path: <>\nFrom: <MAILER-DAEMON@mx.example>\nMessage-ID: <{number}@mx.example>\nMIME-Version: 1.0\n\
                 Content-Type: multipart/report; report-type=delivery-status; boundary=b"
            ),
            &format!(
                "--b\nContent-Type: text/plain\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\n\
                 Final-Recipient: rfc822; ann@acme.example\nAction: failed\nStatus: 5.2.2\nDiagnostic-Code: smtp; 552 5.2.2 Mailbox \
                 full\n--b\nContent-Type: message/rfc822\n\nMessage-ID: {id}\nSubject: x\n\nx\n--b--\n"
            ),
        )
    };
    let mut lmtp = house.lmtp();
    let forged = report(1, "<Q1@relay.example>");
    assert!(
        lmtp.deliver("", "crosstalk@relay.example", &forged)
            .starts_with("250")
    );
    assert!(answers(&house, &question).is_empty());
    for number in 2..4 {
        let real = report(number, &message_id(&question, &token));
        assert!(
            lmtp.deliver("", "crosstalk@relay.example", &real)
                .starts_with("250")
        );
    }
    let told = answers(&house, &question);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].meaning, Some(Intent::Error));
    assert!(
        told[0].text.contains("E-ROUTE") && told[0].text.contains("552 5.2.2 Mailbox full"),
        "{}",
        told[0].text
    );
}

#[test]
fn automatic_mail_is_taken_and_answers_nothing() {
    let house = MailHouse::new(&config(""));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let token = token(&question, "email:ann@acme.example");
    let answered = message_id(&question, &token);
    let own = message_id(&question, "aaaabbbbccccddddeeeeffff22");
    for more in [
        "Auto-Submitted: auto-replied\n",
        "List-Id: <l.example>\n",
        "Precedence: bulk\n",
        "X-Autoreply: yes\n",
        "Return-Path: <>\n",
    ] {
        let sent = reply(
            "ann@acme.example",
            1,
            &answered,
            more,
            "I am away until Monday. YES.\n",
        );
        let answer = house.lmtp().deliver("", "crosstalk@relay.example", &sent);
        assert_eq!(answer, "250 2.0.0 received\r\n", "{more}");
    }
    let looped = mail(
        &format!("From: <ann@acme.example>\nMessage-ID: {own}\nIn-Reply-To: {answered}"),
        "YES\n",
    );
    assert!(
        house
            .lmtp()
            .deliver("x@y", "crosstalk@relay.example", &looped)
            .starts_with("250 2.0.0 received")
    );
    assert!(answers(&house, &question).is_empty());
    for (more, why) in [
        ("From: <eve@evil.example>\n", "two senders"),
        ("DKIM-Signature: v=1; l=10; b=x\n", "l="),
    ] {
        let sent = reply("ann@acme.example", 1, &answered, more, "YES\n");
        let answer = house
            .lmtp()
            .deliver("a@b.example", "crosstalk@relay.example", &sent);
        assert!(answer.starts_with("554 5.6.0 E-FORMAT"), "{why}: {answer}");
    }
    assert!(answers(&house, &question).is_empty());
}

#[test]
fn flood_of_one_sender_is_slowed_down() {
    let house = MailHouse::new(&config("[limits]\nrequests_per_minute = 3"));
    let sent = mail(
        "From: <eve@evil.example>\nMessage-ID: <1@evil.example>",
        "Hello\n",
    );
    let mut client = house.lmtp();
    let mut codes: Vec<String> = Vec::new();
    for _ in 0..5 {
        let answer = client.deliver("eve@evil.example", "crosstalk@relay.example", &sent);
        codes.push(answer[..3].to_owned());
    }
    assert_eq!(codes, ["554", "554", "554", "451", "451"]);
}

/// Answers a mail as `swaks` does, and returns what it printed.
fn swaks(house: &MailHouse, protocol: &str, options: &[&str]) -> (bool, String) {
    let address = match protocol {
        "LMTP" => house.lmtp_address(),
        _ => house.smtp_address(),
    };
    let port = address.port().to_string();
    let output = std::process::Command::new("swaks")
        .args([
            "--server",
            "127.0.0.1",
            "--port",
            &port,
            "--protocol",
            protocol,
            "--helo",
            "client.example",
        ])
        .args([
            "--from",
            "ann@acme.example",
            "--header",
            "Subject: Re: deploy",
        ])
        .args(options)
        .output()
        .expect("swaks: `cargo xtask test` installs it (Debian package swaks)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

#[test]
fn client_of_another_maker_answers_by_both_protocols() {
    let house = MailHouse::new(&config(""));
    for (protocol, id) in [("LMTP", "Q1"), ("ESMTP", "Q2")] {
        let question = house.ask(id, "email:ann@acme.example", "REQUEST");
        let token = token(&question, "email:ann@acme.example");
        let to = format!("crosstalk+{id}.{token}@relay.example");
        let answered = message_id(&question, &token);
        let field = format!("In-Reply-To: {answered}");
        // It writes a new Message-ID each time: two mails are two answers.
        let options = [
            "--to",
            &to,
            "--add-header",
            &field,
            "--body",
            "YES\\n\\n> May I deploy?\\n",
        ];
        let (is_accepted, talk) = swaks(&house, protocol, &options);
        assert!(is_accepted && talk.contains("250 2.0.0 accepted"), "{talk}");
        let answers = answers(&house, &question);
        assert_eq!(answers.len(), 1, "{protocol}");
        assert_eq!(
            Document::parse(&answers[0].text, Reading::Strict).body_text(),
            "YES"
        );
        let (is_accepted, talk) = swaks(
            &house,
            protocol,
            &["--to", "ann@acme.example", "--body", "x"],
        );
        assert!(!is_accepted && talk.contains("550 5.1.1"), "{talk}");
    }
}

/// Results of the operator's own mail server that confirm nobody.
const UNCONFIRMED: &str =
    "Authentication-Results: mx.relay.example; dmarc=none header.from=y.example\n";

/// A text as a mail program wraps it.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut at = String::new();
        for word in line.split_inclusive(' ') {
            if at.chars().count() + word.chars().count() > 72 {
                out.push_str(&format!("{}\n", at.trim_end()));
                at.clear();
            }
            at.push_str(word);
        }
        out.push_str(&format!("{at}\n"));
    }
    out
}

/// Threat 47: the signed form of a damaged message is searched for those that a route or a token admits, and for nobody else.
#[test]
fn damaged_messages_of_strangers_cost_no_search_and_keep_nobody_waiting() {
    let house = MailHouse::new(&config(
        "[limits]\nrequests_per_minute = 0\n[names]\nKALLE = \"email:x@y.example\"",
    ));
    let head = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nFrom: <x@y.example>\nMessage-ID: <1@y.example>";
    let damaged = wrapped(&signed("S1"));
    assert_ne!(damaged, signed("S1"));
    let stranger = mail(&format!("{UNCONFIRMED}{head}"), &damaged);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (house, stranger) = (&house, &stranger);
            scope.spawn(move || {
                let mut client = house.lmtp();
                for _ in 0..25 {
                    let answer = client.deliver("x@y.example", "crosstalk@relay.example", stranger);
                    assert!(
                        answer.starts_with("550 5.7.1 E-PERM") && !answer.contains("restored"),
                        "{answer}"
                    );
                }
            });
        }
        let mut reader = house.lmtp();
        for number in 0..25 {
            let good = signed(&format!("G{number}"));
            let good = mail(&format!("{UNCONFIRMED}{head}"), &good);
            let answer = reader.deliver("x@y.example", "crosstalk@relay.example", &good);
            assert!(answer.starts_with("250"), "{answer}");
        }
    });
    assert!(house.record("S1").is_none());
    // For somebody whom a route leads to, the search is made; a person sees what it found, and decides.
    let admitted = mail(&format!("{}{head}", aligned("y.example")), &damaged);
    let answer = house
        .lmtp()
        .deliver("x@y.example", "crosstalk@relay.example", &admitted);
    assert!(answer.starts_with("250"), "{answer}");
    assert!(house.record("S1").is_none());
    let held = house
        .runtime
        .block_on(house.relay.store().held_message("S1"))
        .unwrap()
        .unwrap();
    assert!(
        held.held.why.contains("could be restored"),
        "{}",
        held.held.why
    );
}

/// Threat 41: forms of a signed message that a repair makes the same as it are this message, and those that it does not are none.
#[test]
fn repaired_forms_of_a_signed_message_neither_shadow_nor_change_it() {
    let house = MailHouse::new(&config(""));
    let genuine = signed("S1");
    let head = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nFrom: <x@y.example>\nMessage-ID: <1@y.example>";
    let deliver = |text: &str| {
        house.lmtp().deliver(
            "x@y.example",
            "crosstalk@relay.example",
            &mail(&format!("{UNCONFIRMED}{head}"), text),
        )
    };
    let forms = [
        genuine.replace('→', "-&gt;"),
        genuine.replace('→', "->"),
        genuine.replace("message: S1", "message:\u{200b} S1"),
        genuine.replace("context: café", "context: cafe\u{301}"),
        genuine.replace("\n  ", "\n\u{a0}\u{a0}"),
        genuine
            .lines()
            .map(|line| format!("    {line}\n"))
            .collect(),
        genuine.replace("message: S1", "message: S\u{200b}1"),
        genuine.replace("  End.", "  End. Pay 100."),
    ];
    let canonical = |text: &str| Document::parse(text, Reading::Strict).canonical().unwrap();
    for form in &forms {
        let answer = deliver(form);
        if answer.starts_with("250") {
            let kept = house.record("S1").unwrap();
            assert_eq!(kept.verdict, VerdictWord::Verified, "{form}");
            assert_eq!(canonical(&kept.text), canonical(&genuine), "{form}");
        } else {
            assert!(answer.starts_with("55"), "{answer}{form}");
        }
    }
    // The changed one is the last: it must not be among those that were accepted.
    assert!(deliver(forms.last().unwrap()).starts_with("55"));
    assert!(deliver(&genuine).starts_with("250"));
    assert_eq!(house.thread("TS").len(), 1);
}

#[test]
fn choice_of_a_poll_in_a_reply_counts_and_quoted_options_do_not() {
    let house = MailHouse::new(&config(""));
    let voters = ["email:ann@acme.example", "email:bert@acme.example"];
    let poll = format!(
        "[[BOT→TEAM v1]]\nuser: bot\nthread: TP\nmessage: P1\ncontext: design\nintent: POLL\n\nmeta: routing\nTargets: {voters:?}\n\n\
         meta: poll\nType: majority\nOptions: Monolith | Microservices\n\nbody: |\n  What do we build?\nsig: none\n[[END]]\n"
    );
    house.take(&poll);
    let question = house.record("P1").unwrap();
    for (number, (voter, text)) in [
        // The other option stands in the quote alone.
        (
            voters[0],
            "monolith.\n\nAnn\n\n> What do we build?\n> Microservices\n",
        ),
        // As with a paste, nobody decides what this means.
        (voters[1], "Monolith or Microservices, I am not sure.\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let answered = message_id(&question, &token(&question, voter));
        let from = voter.trim_start_matches("email:");
        let number = u32::try_from(number).unwrap();
        let sent = reply(from, number, &answered, "", text);
        let answer = house.lmtp().deliver(from, "crosstalk@relay.example", &sent);
        assert!(answer.starts_with("250"), "{answer}");
    }
    assert_eq!(house.thread("TP").len(), 3);
    let status = house.runtime.block_on(house.relay.poll("P1"));
    let shown = serde_json::to_value(status.unwrap().unwrap().shown()).unwrap();
    let tally = (
        &shown["tally"]["Monolith"],
        &shown["tally"]["Microservices"],
    );
    assert_eq!(tally, (&1.into(), &0.into()), "{shown:#}");
    assert_eq!(shown["counted"].as_array().unwrap().len(), 1, "{shown:#}");
    assert!(
        shown["counted"].to_string().contains(voters[0]),
        "{shown:#}"
    );
}

/// A domain that proves its mails is still anybody's.
#[test]
fn sender_of_a_strange_domain_runs_no_tool_unless_it_answers() {
    let tools = "[[route]]\nto = \"mcp://open@docs\"\nby = \"mcp\"\ncommand = [\"true\"]\nopen = true\n\
                 [[route]]\nto = \"mcp://*\"\nby = \"mcp\"\ntools = [\"look\"]\ncommand = [\"true\"]\n";
    let house = MailHouse::new(&config(tools));
    house.take(
        "[[mcp://look@docs→email:x@evil.example v1]]\nuser: tool\nthread: T1\nmessage: Q1\ncontext: c\nintent: REQUEST\n\
         body: |\n  Which port?\nsig: none\n[[END]]\n",
    );
    let mut lmtp = house.lmtp();
    let mut send = |id: &str, to: &str, intent: &str| {
        let parent = match intent {
            "RESPOND" => "parent: Q1\n",
            _ => "",
        };
        let text = format!(
            "[[email:x@evil.example→{to} v1]]\nuser: x\nthread: T{id}\n{parent}message: {id}\ncontext: c\nintent: {intent}\n\
             body: |\n  {{}}\nsig: none\n[[END]]\n"
        );
        let head = format!(
            "{}From: <x@evil.example>\nMessage-ID: <{id}@evil.example>",
            aligned("evil.example")
        );
        lmtp.deliver(
            "x@evil.example",
            "crosstalk@relay.example",
            &mail(&head, &text),
        )
    };
    let refused = send("M1", "mcp://look@docs", "REQUEST");
    assert!(refused.starts_with("550 5.7.1 E-PERM"), "{refused}");
    assert!(refused.contains("mcp://look@docs"), "{refused}");
    for (id, to, intent) in [
        ("M2", "mcp://open@docs", "REQUEST"),
        ("M3", "mcp://look@docs", "RESPOND"),
        ("M4", "agent://here/a", "REQUEST"),
    ] {
        let accepted = send(id, to, intent);
        assert!(accepted.starts_with("250"), "{to} {intent}: {accepted}");
    }
}
