//! One signed envelope through every encoding of mail: the same canonical bytes verify, or the damage is named.

use crate::NOW;
use crosstalk_email::{MailKind, MailReading, read_mail};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, base64};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext};

const MESSAGE: &str = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nmessage: 01K74V6VX0S86Z5JATM52C3M7Z\n\
    context: auth in the café\nintent: REQUEST\nbody: |\n  Should the sessions be kept in tokens or in a store? My colleague's \"quick\" note prefers a store, which the auditors like.\n\n\
    \x20   - a list: 1 < 2 & so on\n  What would you do?\nsig: none\n[[END]]\n";

struct Sample {
    key: PrivateKey,
    text: String,
    canonical: String,
}

impl Sample {
    fn new() -> Self {
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
        let signer = Signer {
            key: &key,
            pkid: "kalle@example.com",
            at: NOW,
            key_block: &[],
        };
        let text = signer
            .sign(&Document::parse(MESSAGE, Reading::Strict))
            .unwrap();
        let canonical = Document::parse(&text, Reading::Strict).canonical().unwrap();
        Self {
            key,
            text,
            canonical,
        }
    }

    fn read(&self, mail: &str) -> MailReading {
        let key = self.key.public();
        let question = VerifyContext {
            key: Some(&key),
            restore: true,
            ..VerifyContext::at(NOW)
        };
        read_mail(mail.as_bytes(), &Trust::default(), &question).unwrap()
    }

    fn assert_verified(&self, name: &str, mail: &str) {
        let reading = self.read(mail);
        assert_eq!(
            reading.kind,
            MailKind::Envelope,
            "{name}: {}\n{mail}",
            reading.why
        );
        assert_eq!(reading.envelopes.len(), 1, "{name}");
        let envelope = &reading.envelopes[0];
        assert_eq!(
            envelope.verdict().word(),
            VerdictWord::Verified,
            "{name}: {:?}",
            reading.damage
        );
        assert_eq!(
            envelope.document().canonical().unwrap(),
            self.canonical,
            "{name}"
        );
    }
}

fn mail(content_type: &str, encoding: &str, body: &str) -> String {
    let body = body.replace('\n', "\r\n");
    format!(
        "From: kalle@example.com\r\nDate: Mon, 3 Mar 2025 10:00:00 +0000\r\nMessage-ID: <9@example.com>\r\nMIME-Version: 1.0\r\n\
         Content-Type: {content_type}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{body}"
    )
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for byte in line.bytes() {
            let shown = match byte {
                b'=' | 0x80.. | b' ' => format!("={byte:02X}"),
                byte => char::from(byte).to_string(),
            };
            if column + shown.len() > 75 {
                out.push_str("=\n");
                column = 0;
            }
            column += shown.len();
            out.push_str(&shown);
        }
        out.push('\n');
    }
    out
}

fn base64_lines(text: &str) -> String {
    let encoded = base64::encode(text.replace('\n', "\r\n").as_bytes());
    let lines = encoded.as_bytes().chunks(76);
    lines
        .map(|line| format!("{}\n", std::str::from_utf8(line).unwrap()))
        .collect()
}

/// `format=flowed` as a mail program writes it: lines of 72 characters, stuffed.
fn flowed(text: &str, separator: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut at = if line.starts_with([' ', '>']) {
            " ".to_owned()
        } else {
            String::new()
        };
        for word in line.split_inclusive(' ') {
            if at.chars().count() + word.chars().count() > 72 {
                out.push_str(&format!("{at}{separator}\n"));
                at.clear();
            }
            at.push_str(word);
        }
        out.push_str(&format!("{at}\n"));
    }
    out
}

fn html(text: &str, line: impl Fn(&str) -> String) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    escaped.lines().map(line).collect()
}

#[test]
fn every_encoding_keeps_the_canonical_bytes() {
    let sample = Sample::new();
    let (text, utf8) = (&sample.text, "text/plain; charset=utf-8");
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    let hard = |line: &str| line.replace("  ", "&nbsp; ");
    for (name, mail) in [
        ("8bit", mail(utf8, "8bit", text)),
        (
            "quoted-printable",
            mail(utf8, "quoted-printable", &quoted_printable(text)),
        ),
        ("base64", mail(utf8, "base64", &base64_lines(text))),
        (
            "flowed",
            mail(
                "text/plain; charset=utf-8; format=flowed",
                "8bit",
                &flowed(text, ""),
            ),
        ),
        (
            "flowed, delsp",
            mail(
                "text/plain; charset=utf-8; format=flowed; delsp=yes",
                "8bit",
                &flowed(text, " "),
            ),
        ),
        (
            "smart quotes",
            mail(
                utf8,
                "8bit",
                &text
                    .replace('\'', "’")
                    .replacen('"', "“", 1)
                    .replacen('"', "”", 1),
            ),
        ),
        (
            "HTML with pre",
            mail(
                "text/html; charset=utf-8",
                "8bit",
                &format!("<pre>{}</pre>", html(text, |l| format!("{l}\n"))),
            ),
        ),
        (
            "HTML with br",
            mail(
                "text/html; charset=utf-8",
                "8bit",
                &html(text, |l| format!("{}<br>\n", hard(l))),
            ),
        ),
        (
            "HTML with div",
            mail(
                "text/html; charset=utf-8",
                "quoted-printable",
                &quoted_printable(&html(text, |l| match l {
                    "" => "<div><br></div>".to_owned(),
                    l => format!("<div>{}</div>", hard(l)),
                })),
            ),
        ),
        (
            "forwarded",
            mail(
                utf8,
                "8bit",
                &format!(
                    "FYI\n\n---------- Forwarded message ---------\nFrom: Kalle <k@example.com>\nDate: x\nSubject: y\n\n{text}"
                ),
            ),
        ),
        (
            "forwarded, quoted",
            mail(utf8, "8bit", &format!("See this:\n\n{quoted}")),
        ),
        (
            "top-posted",
            mail(
                utf8,
                "8bit",
                &format!("{text}\nOn Mon, 3 Mar 2025 Anna <a@example.com> wrote:\n> older words\n"),
            ),
        ),
        (
            "with a signature",
            mail(utf8, "8bit", &format!("Hello,\n\n{text}\n-- \nKalle\n")),
        ),
        (
            "forwarded as attachment",
            mail(
                "message/rfc822",
                "8bit",
                &mail(utf8, "base64", &base64_lines(text)).replace("\r\n", "\n"),
            ),
        ),
    ] {
        sample.assert_verified(name, &mail);
    }
}

#[test]
fn wrapped_mail_verifies_or_names_the_damage() {
    let sample = Sample::new();
    for width in [72, 76] {
        let mut wrapped = String::new();
        for line in sample.text.lines() {
            let mut at = String::new();
            for word in line.split_inclusive(' ') {
                if at.chars().count() + word.chars().count() > width {
                    wrapped.push_str(&format!("{}\n", at.trim_end()));
                    at.clear();
                }
                at.push_str(word);
            }
            wrapped.push_str(&format!("{at}\n"));
        }
        let reading = sample.read(&mail("text/plain; charset=utf-8", "8bit", &wrapped));
        assert_eq!(reading.kind, MailKind::Envelope, "{}", reading.why);
        let verdict = reading.envelopes[0].verdict();
        match verdict.word() {
            VerdictWord::Verified => {}
            VerdictWord::Damaged => {
                assert!(
                    reading
                        .damage
                        .iter()
                        .any(|what| what.starts_with("reflowed: ")),
                    "{:?}",
                    reading.damage
                );
            }
            other => panic!("{width}: {other:?}"),
        }
    }
}

#[test]
fn a_changed_or_cut_envelope_is_named() {
    let sample = Sample::new();
    let altered = sample
        .text
        .replace("What would you do?", "What would you pay?");
    let reading = sample.read(&mail("text/plain; charset=utf-8", "8bit", &altered));
    assert_eq!(reading.envelopes[0].verdict().word(), VerdictWord::Damaged);
    assert!(
        reading
            .damage
            .iter()
            .any(|what| what.starts_with("altered: ")),
        "{:?}",
        reading.damage
    );
    let cut = sample.text.split("  What").next().unwrap();
    let reading = sample.read(&mail("text/plain; charset=utf-8", "8bit", cut));
    assert_eq!(reading.kind, MailKind::Rejected);
    assert!(
        reading.why.contains("can't be read") && !reading.damage.is_empty(),
        "{}",
        reading.why
    );
}
