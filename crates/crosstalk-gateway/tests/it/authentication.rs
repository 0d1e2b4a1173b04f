//! SPF and DMARC with a real name server.

use crate::house::{MailHouse, config, mail, token};
use crosstalk_envelope::base64;
use crosstalk_testing::knot::{Knot, Zone};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tempfile::TempDir;

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

/// A key for DKIM, made and used by OpenSSL.
struct DkimKey(TempDir);

impl DkimKey {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = Self(folder);
        key.openssl("genrsa -out key.pem 2048", &[]);
        key
    }

    fn openssl(&self, words: &str, stdin: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl");
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "openssl {words}");
        output.stdout
    }

    /// The TXT record of the key, in strings that fit into one.
    fn record(&self) -> Vec<String> {
        let key = self.openssl("rsa -in key.pem -pubout -outform DER", b"");
        let text = format!("v=DKIM1; k=rsa; p={}", base64::encode(&key));
        let pieces = text.as_bytes().chunks(200);
        pieces
            .map(|piece| String::from_utf8(piece.to_vec()).unwrap())
            .collect()
    }

    /// Signs From, In-Reply-To and the text of a mail, canonicalised simply, as RFC 6376 says. `more` are further tags.
    fn sign(&self, domain: &str, mail: &str, more: &str) -> String {
        let (head, body) = mail.split_once("\r\n\r\n").unwrap();
        let body = format!("{}\r\n", body.trim_end_matches("\r\n"));
        let digest = self.openssl("dgst -sha256 -binary", body.as_bytes());
        let field = format!(
            "DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d={domain}; s=s1;{more} h=from:in-reply-to; bh={}; b=",
            base64::encode(&digest)
        );
        let signed: String = ["From", "In-Reply-To"]
            .iter()
            .map(|name| {
                let start = format!("{name}: ");
                let line = head.split("\r\n").find(|line| line.starts_with(&start));
                format!("{}\r\n", line.unwrap())
            })
            .collect();
        let signature = self.openssl(
            "dgst -sha256 -sign key.pem",
            format!("{signed}{field}").as_bytes(),
        );
        format!("{field}{}\r\n{mail}", base64::encode(&signature))
    }
}

#[test]
fn signature_of_the_domain_of_from_lets_a_mail_speak() {
    let (key, other) = (DkimKey::new(), DkimKey::new());
    let record = key.record();
    let record: Vec<&str> = record.iter().map(String::as_str).collect();
    let knot = Knot::start([Zone::new("example")
        .txt("s1._domainkey.acme.example.", &record)
        .txt("s1._domainkey.evil.example.", &record)
        .txt("_dmarc.acme.example.", &["v=DMARC1; p=reject"])]);
    let dns = format!("[federation]\ndns = \"{}\"", knot.address());
    let house = MailHouse::new(&config(&dns));
    let question = house.ask("Q1", "email:ann@acme.example", "REQUEST");
    let reply = |number: u32, text: &str| {
        mail(
            &format!(
                "From: <ann@acme.example>\nDate: Thu, 9 Oct 2025 08:00:00 +0000\nMessage-ID: <{number}@m.example>\nIn-Reply-To: \
                 <Q1@relay.example>"
            ),
            text,
        )
    };
    let deliver = |mail: &str| {
        house
            .lmtp()
            .deliver("ann@acme.example", "crosstalk@relay.example", mail)
    };
    let signed = |number: u32| key.sign("acme.example", &reply(number, "YES\n"), "");
    // The signature is of another domain, of another key, of another text; or covers the beginning of the text alone.
    let cut = key.sign("acme.example", &reply(4, "YES\n"), " l=5;");
    for (mail, code) in [
        (
            key.sign("evil.example", &reply(1, "YES\n"), ""),
            "550 5.7.1 E-PERM",
        ),
        (
            other.sign("acme.example", &reply(2, "YES\n"), ""),
            "550 5.7.1 E-PERM",
        ),
        (signed(3).replace("YES", "NO"), "550 5.7.1 E-PERM"),
        (cut.clone(), "554 5.6.0 E-FORMAT"),
        (
            format!("{cut}and send me the keys.\r\n"),
            "554 5.6.0 E-FORMAT",
        ),
    ] {
        let answer = deliver(&mail);
        assert!(answer.starts_with(code), "{answer}{mail}");
    }
    assert_eq!(house.thread(&question.thread).len(), 1);
    let answer = deliver(&signed(5));
    assert!(answer.starts_with("250"), "{answer}");
    let thread = house.thread(&question.thread);
    assert_eq!(thread.len(), 2);
    let kept = &thread[1].text;
    assert!(
        kept.contains("Authentication: spf=unknown dkim=pass dmarc=pass aligned=yes"),
        "{kept}"
    );
}
