//! The mails of `conformance/email`, as programs write them.

use crate::read;
use crosstalk_email::{MailKind, MailReading};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Corpus {
    case: Vec<MailCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MailCase {
    mail: String,
    about: String,
    rule: String,
    kind: String,
    text: Option<String>,
    why: Option<String>,
}

/// Sentences of the mail that every case answers.
const QUOTED: [&str; 2] = ["May I deploy release", "Please answer with YES or NO"];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/email")
}

fn cases() -> Vec<(MailCase, MailReading)> {
    let list = fs::read_to_string(folder().join("cases.toml")).unwrap();
    let corpus: Corpus = toml::from_str(&list).unwrap();
    let read_case = |case: MailCase| {
        let mail = fs::read(folder().join(&case.mail)).unwrap();
        let reading = read(&mail);
        (case, reading)
    };
    corpus.case.into_iter().map(read_case).collect()
}

#[test]
fn every_mail_has_a_case() {
    let listed: BTreeSet<String> = cases().into_iter().map(|(case, _)| case.mail).collect();
    let entries = fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mails: BTreeSet<String> = names.filter(|name| name.ends_with(".eml")).collect();
    assert_eq!(listed, mails);
}

#[test]
fn replies_are_extracted_and_no_quoted_text_becomes_an_answer() {
    let (mut replies, mut exact) = (0_u32, 0_u32);
    for (case, reading) in cases() {
        let told = format!("{} ({}, {})", case.mail, case.rule, case.about);
        for quoted in QUOTED {
            assert!(!reading.text.contains(quoted), "{told}: {:?}", reading.text);
        }
        if case.kind != "reply" {
            continue;
        }
        replies += 1;
        if reading.kind == MailKind::Reply && Some(&reading.text) == case.text.as_ref() {
            exact += 1;
        } else {
            eprintln!(
                "{told}: {:?} instead of {:?}: {}",
                reading.text, case.text, reading.why
            );
        }
        let is_kept = reading.cut.contains(QUOTED[0]) || !case_has_quote(&case.mail);
        assert!(is_kept, "{told}: {:?}", reading.cut);
    }
    let rate = f64::from(exact) * 100.0 / f64::from(replies);
    println!("{exact} of {replies} replies extracted exactly: {rate:.1} %");
    assert!(replies >= 60 && rate >= 95.0, "{rate}");
}

/// Whether the quote of a mail is the question above, and not an envelope or nothing.
fn case_has_quote(mail: &str) -> bool {
    !matches!(mail, "no-quote.eml" | "envelope-quoted-below.eml")
}

#[test]
fn every_kind_of_mail_is_told_apart() {
    for (case, reading) in cases() {
        let told = format!(
            "{} ({}, {}): {}",
            case.mail, case.rule, case.about, reading.why
        );
        assert_eq!(reading.kind.as_str(), case.kind, "{told}");
        if case.kind != "reply" {
            assert!(
                case.text.is_none_or(|text| text == reading.text),
                "{told}: {:?}",
                reading.text
            );
        }
        if let Some(why) = case.why {
            assert!(reading.why.contains(&why), "{told}");
        }
        let has_envelopes = !reading.envelopes.is_empty();
        assert_eq!(has_envelopes, reading.kind == MailKind::Envelope, "{told}");
    }
}

#[test]
fn a_bounce_names_the_mail_that_came_back() {
    for (case, reading) in cases()
        .into_iter()
        .filter(|(case, _)| case.kind == "bounce")
    {
        let bounce = reading.bounce.unwrap();
        let returned = "<01K74V6VX0S86Z5JATM52C3M7Z@relay.example>";
        assert_eq!(bounce.returned.as_deref(), Some(returned), "{}", case.mail);
        assert_eq!(bounce.status.as_deref(), Some("5.1.1"), "{}", case.mail);
    }
}
