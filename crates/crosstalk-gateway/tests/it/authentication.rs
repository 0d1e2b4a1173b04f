//! SPF and DMARC with a real name server.

use crate::house::{MailHouse, config, mail, token};
use crosstalk_testing::knot::{Knot, Zone};

#[test]
fn sending_server_decides_for_whom_a_mail_speaks() {
    // DMARC asks for the policies of all parents.
    let knot = Knot::start([Zone::new("example")
        .txt("acme.example.", &["v=spf1 ip4:127.0.0.1 -all"])
        .txt("_dmarc.acme.example.", &["v=DMARC1; p=reject"])
        .txt("evil.example.", &["v=spf1 ip4:127.0.0.1 -all"])]);
    let dns = format!("[federation]\ndns = \"{}\"", knot.address());
    let house = MailHouse::new(&config(&dns));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let token = token(&question, "email:ann@acme.example");
    let reply = |number: u32, id: &str| {
        mail(
            &format!(
                "From: <ann@acme.example>\nDate: Thu, 9 Oct 2025 08:00:00 +0000\nMessage-ID: <{number}@m.example>\nIn-Reply-To: {id}"
            ),
            "YES\n",
        )
    };
    let plain = "<Q1@relay.example>";
    let proven = format!("<Q1.{token}@relay.example>");
    // The return path is of a domain whose server this is, From is of another one: the domain of From denies it, token or not.
    for (number, id) in [(1, plain), (2, proven.as_str())] {
        let answer = house.smtp().deliver(
            "eve@evil.example",
            "crosstalk@relay.example",
            &reply(number, id),
        );
        assert!(
            answer.starts_with("550 5.7.1 E-PERM") && answer.contains("DMARC"),
            "{answer}"
        );
    }
    let answer = house.smtp().deliver(
        "ann@acme.example",
        "crosstalk@relay.example",
        &reply(3, plain),
    );
    assert!(answer.starts_with("250"), "{answer}");
    let thread = house.thread(&question.thread);
    assert_eq!(thread.len(), 2);
    let kept = &thread[1].text;
    assert!(
        kept.contains("Authentication: spf=pass dkim=none dmarc=pass aligned=yes"),
        "{kept}"
    );
}

#[test]
fn name_server_that_does_not_answer_puts_a_mail_off() {
    let dns = format!(
        "[federation]\ndns = \"{}\"",
        crosstalk_testing::loopback::silent()
    );
    let house = MailHouse::new(&config(&dns));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let sent = mail(
        "From: <ann@acme.example>\nDate: Thu, 9 Oct 2025 08:00:00 +0000\nMessage-ID: <1@m.example>\nIn-Reply-To: <Q1@relay.example>",
        "YES\n",
    );
    let answer = house
        .smtp()
        .deliver("ann@acme.example", "crosstalk@relay.example", &sent);
    assert!(answer.starts_with("451"), "{answer}");
    assert_eq!(house.thread(&question.thread).len(), 1);
}
