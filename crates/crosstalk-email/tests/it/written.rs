//! The mails of `conformance/email/written.toml`, written and looked at.

use crate::corpus::folder;
use crosstalk_email::{CoverPurpose, MailCover, MailFile, MailOrigin, OutgoingMail, compose_mail};
use crosstalk_envelope::Timestamp;
use serde::Deserialize;
use std::fs;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCases {
    mail: Vec<WrittenCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    rule: String,
    message: String,
    sender: String,
    context: String,
    intent: String,
    envelope: String,
    cover: Option<String>,
    purpose: Option<String>,
    #[serde(default)]
    files: Vec<FileCase>,
    #[serde(default)]
    automatic: bool,
    has: Vec<String>,
    has_not: Vec<String>,
}

#[derive(Deserialize)]
struct FileCase {
    name: String,
    mime: String,
    text: String,
}

#[test]
fn mails_are_written_as_specified() {
    let text = fs::read_to_string(folder().join("written.toml")).unwrap();
    let cases: WrittenCases = toml::from_str(&text).unwrap();
    for case in cases.mail {
        let files: Vec<MailFile> = case
            .files
            .into_iter()
            .map(|file| MailFile {
                name: file.name,
                mime: file.mime,
                bytes: file.text.into_bytes(),
            })
            .collect();
        let purpose = match case.purpose.as_deref() {
            Some("question") => CoverPurpose::Question,
            Some("revocation") => CoverPurpose::Revocation,
            _ => CoverPurpose::Note,
        };
        let cover = case.cover.as_deref().map(|body| MailCover {
            standing: "unsigned",
            body,
            purpose,
        });
        let mail = OutgoingMail {
            message: &case.message,
            thread: "T1",
            ancestors: &[],
            answered_mail: Some("<a@b> \r\nX: y"),
            sender: &case.sender,
            to: "bert@people.example",
            context: &case.context,
            intent: &case.intent,
            subject: None,
            accepted_at: Timestamp::from_millis(1_760_000_000_000),
            envelope: &case.envelope,
            cover,
            files: &files,
            token: "t",
            is_automatic: case.automatic,
        };
        let origin = MailOrigin {
            mailbox: "crosstalk",
            domain: "relay.example",
            subaddress: true,
        };
        let written = compose_mail(&mail, origin).unwrap();
        assert_eq!(compose_mail(&mail, origin).unwrap(), written);
        let text = String::from_utf8(written.bytes).unwrap();
        for line in text.split("\r\n") {
            assert!(line.is_ascii() && !line.contains(['\r', '\n']), "{line}");
            assert!(line.len() <= 998, "{line}");
        }
        for wanted in &case.has {
            assert!(text.contains(wanted), "{}: {wanted}\n{text}", case.rule);
        }
        // The head and the readable text; the envelope has its own brackets.
        let own = text.replace(
            &case
                .envelope
                .replace('→', "=E2=86=92")
                .replace('\n', "\r\n"),
            "",
        );
        for unwanted in &case.has_not {
            assert!(!own.contains(unwanted), "{}: {unwanted}\n{text}", case.rule);
        }
    }
}
