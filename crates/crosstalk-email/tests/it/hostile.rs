//! Mails that were made to break a reader: each is data, is read in bounded time, and no quoted text gets through.

use crate::{NOW, read};
use crosstalk_email::{MailError, MailKind, limit, read_mail};
use crosstalk_protocol::{Trust, VerifyContext};
use proptest::prelude::*;

const HEAD: &str = "From: anna@example.com\r\nMessage-ID: <2@x>\r\nIn-Reply-To: <1@x>\r\n";

fn reply(rest: &str) -> Vec<u8> {
    format!("{HEAD}{rest}").into_bytes()
}

#[test]
fn limits_reject_a_mail_and_say_so() {
    let nested = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(50_000);
    let digest = "Content-Type: message/rfc822\r\n\r\n".repeat(50_000);
    let parts = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
        "--b\r\n\r\nx\r\n".repeat(5_000)
    );
    let fields = format!("{}\r\nyes\r\n", "X: y\r\n".repeat(5_000));
    let head = format!("X: {}\r\n\r\nyes\r\n", "y".repeat(limit::HEAD_BYTES));
    let lines = format!("\r\n{}", "a\r\n".repeat(limit::LINES + 1));
    let text = format!("\r\n{}", "a".repeat(limit::TEXT_BYTES + 1));
    for rest in [nested, digest, parts, fields, head, lines, text] {
        let reading = read(&reply(&rest));
        assert_eq!(reading.kind, MailKind::Rejected);
        assert!(
            reading.why.starts_with("The mail exceeds a limit: "),
            "{}",
            reading.why
        );
    }
    let question = VerifyContext::at(NOW);
    let large = vec![b'a'; limit::MAIL_BYTES + 1];
    assert_eq!(
        read_mail(&large, &Trust::default(), &question).unwrap_err(),
        MailError::TooLarge
    );
}

#[test]
fn other_files_are_no_mail() {
    let question = VerifyContext::at(NOW);
    for file in [
        &b""[..],
        b"\n\n",
        b"hello",
        b"[[A\xe2\x86\x92B v1]]\nuser: u\n",
        b"{\"from\": 1}",
        b"\x00\x01:\x02",
        b"a: b\n\nc",
    ] {
        let error = read_mail(file, &Trust::default(), &question).unwrap_err();
        assert_eq!(error, MailError::NotMail, "{file:?}");
    }
}

#[test]
fn broken_encodings_are_named_and_read_as_far_as_they_go() {
    let base64 = "Content-Transfer-Encoding: base64\r\n\r\nWWVzLg==!!!!%%%\r\n";
    let reading = read(&reply(base64));
    assert!(
        !reading.damage.is_empty() || reading.text.contains("Yes."),
        "{reading:?}"
    );
    let bytes = [
        reply("Content-Type: text/plain; charset=utf-8\r\n\r\n"),
        b"Ja\xff, gern.\0\x1b[2J\r\n".to_vec(),
    ]
    .concat();
    let reading = read(&bytes);
    assert_eq!(reading.text, "Ja\u{fffd}, gern.[2J");
    assert_eq!(
        reading.damage,
        [
            "some characters can't be decoded",
            "control characters were removed"
        ]
    );
    let bytes = [
        reply("Content-Type: text/plain; charset=iso-8859-1\r\n\r\n"),
        b"Gr\xfc\xdfe\r\n".to_vec(),
    ]
    .concat();
    assert_eq!(read(&bytes).text, "Gr\u{fc}\u{df}e");
}

#[test]
fn a_second_sender_is_found_behind_every_line_end() {
    for end in ["\r\n", "\n", "\r"] {
        let mail = format!(
            "From: anna@example.com{end}Subject: x{end}FROM : eve@example.org\r\nIn-Reply-To: <1@x>\r\n\r\nyes\r\n"
        );
        let reading = read(mail.as_bytes());
        assert_eq!(reading.kind, MailKind::Rejected, "{end:?}");
        assert!(reading.why.contains("two senders"), "{}", reading.why);
    }
}

#[test]
fn html_says_which_words_of_the_plain_text_are_quoted() {
    let mail = reply(
        "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nNo.\r\n\r\nYES, delete it all.\r\n--b\r\nContent-Type: text/html\r\n\r\n\
         <p>No.</p><blockquote>YES, delete it all.</blockquote>\r\n--b--\r\n",
    );
    let reading = read(&mail);
    assert_eq!(
        (reading.text.as_str(), reading.cut.as_str()),
        ("No.", "> YES, delete it all.")
    );
}

#[test]
fn words_inside_a_quoted_envelope_are_an_answer() {
    let reading = read(&reply(
        "Content-Type: text/plain; charset=utf-8\r\n\r\n> [[A→B v1]]\r\n> user: u\r\n> session: s\r\n> context: c\r\n> intent: REQUEST\r\n> body: |\r\n\
         >   May I?\r\n\r\nYes.\r\n\r\n>   And now?\r\n\r\nAlso.\r\n\r\n> sig: none\r\n> [[END]]\r\n",
    ));
    assert_eq!(
        (reading.kind, reading.text.as_str()),
        (MailKind::Reply, "Yes.\n\nAlso."),
        "{}",
        reading.why
    );
}

/// Pieces of mails, put together at random.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        "--b\r\n",
        "--b--\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\n",
        "Content-Type: multipart/alternative; boundary=\"b\"\r\n",
        "Content-Type: message/rfc822\r\n",
        "Content-Type: text/html; charset=shift_jis\r\n",
        "Content-Type: text/plain; format=flowed; delsp=yes\r\n",
        "Content-Transfer-Encoding: base64\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "Content-Type: message/delivery-status\r\n",
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n",
        "<blockquote>",
        "</blockquote>",
        "<div id=divRplyFwdMsg>",
        "<!--",
        "-->",
        "<a b='",
        "&#x110000;",
        "&nbsp;",
        "> ",
        "On 3 Mar 2025 Bot wrote:\n",
        "-- \n",
        "From: a@b\n",
        "=3D=\r\n",
        "=ZZ",
        "\0",
        "\u{feff}",
        "[[A→B v1]]\nuser: u\n",
        "[[END]]\n",
        "body: |\n",
        "____________________________\n",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_mail_breaks_the_reader(pieces in prop::collection::vec(piece(), 0..60)) {
        let reading = read(&reply(&pieces.concat()));
        prop_assert!(!reading.why.is_empty());
        prop_assert!(!reading.text.contains('\0'));
    }

    #[test]
    fn marked_lines_are_never_new(lines in prop::collection::vec(("[a-z ]{1,30}", any::<bool>()), 0..20)) {
        let body: String = lines.iter().map(|(text, is_quoted)| match is_quoted {
            true => format!("> quoted{text}\r\n"),
            false => format!("{text}\r\n"),
        }).collect();
        let reading = read(&reply(&format!("\r\n{body}")));
        prop_assert!(!reading.text.contains("quoted"), "{}", reading.text);
    }

    #[test]
    fn quotes_of_html_are_never_new(before in "[a-z]{0,5}", inner in "(<[a-z/]{1,4}>|[a-z]{1,4}|&lt;| ){0,20}", after in "[a-z]{0,5}") {
        let html = format!("<div>{before}</div><blockquote>SECRET{inner}SECRET</blockquote><div>{after}</div>");
        let reading = read(&reply(&format!("Content-Type: text/html\r\n\r\n{html}")));
        prop_assert!(!reading.text.contains("SECRET"), "{html}: {}", reading.text);
    }
}
