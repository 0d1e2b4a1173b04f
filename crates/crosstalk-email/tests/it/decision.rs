//! What is accepted as whom: the table of `spec/email.md`, and the cases of `conformance/email/gateway.toml`.

use crate::NOW;
use crate::corpus::folder;
use crosstalk_email::{
    AskedQuestion, MailAuthentication, MailDecision, MailFacts, MailId, MailReading, MailSpeaker,
    SenderCheck, TokenEvidence, decide, read_mail, trusted_results,
};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading};
use crosstalk_protocol::store::{Arrival, Record, Side, StoredMessage, Way};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext};
use serde::Deserialize;
use std::fs;

const QUESTION: &str = "[[BOT→email:ann@acme.example v1]]\nuser: bot\nthread: T1\nmessage: M1\ncontext: deploy\nintent: REQUEST\n\
    body: |\n  May I deploy?\nsig: none\n[[END]]\n";

fn question() -> Record {
    let document = Document::parse(QUESTION, Reading::Strict);
    let kept = StoredMessage {
        text: QUESTION.to_owned(),
        received: None,
        truncated: false,
        verdict: VerdictWord::Unsigned,
        pkid: None,
        side: Side::Between,
        way: Way::Relayed,
        at: NOW,
        message: Some("M1".to_owned()),
        answers: None,
        generated: ReceivedIds {
            thread: String::new(),
            message: String::new(),
        },
    };
    Record::pending(Arrival::of(&document, kept), 1, "T1".to_owned())
}

fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap()
}

fn read(mail: &str) -> MailReading {
    let key = key().public();
    let question = VerifyContext {
        key: Some(&key),
        ..VerifyContext::of_relay(NOW)
    };
    read_mail(mail.as_bytes(), &Trust::default(), &question).unwrap()
}

fn decided(reading: &MailReading, token: TokenEvidence, has_null_path: bool) -> MailDecision {
    let record = question();
    let is_own = reading
        .message_id
        .as_deref()
        .is_some_and(|id| MailId::parse(id, "relay.example").is_some());
    let is_ours = |id: &str| id == "<M1@relay.example>";
    let is_about = reading.in_reply_to.as_deref().is_some_and(is_ours) || reading.bounce.is_some();
    let asked = AskedQuestion {
        record: &record,
        recipient: "email:ann@acme.example",
        speaker: "email:ann@acme.example",
        mailbox: "ann@acme.example",
        token,
    };
    let facts = MailFacts {
        question: is_about.then_some(asked),
        names: Vec::new(),
        has_null_path,
        is_own,
        digest: Digest::of(b"mail"),
    };
    decide(reading, &facts)
}

/// The words of the table for a decision.
fn words(decision: &MailDecision, reading: &MailReading) -> String {
    match decision {
        MailDecision::Accept(messages) => {
            let [message] = messages.as_slice() else {
                return format!("{} messages", messages.len());
            };
            let from = &reading.from.as_ref().unwrap().address;
            let speaker = match &message.speaker {
                MailSpeaker::Signature => "signer",
                MailSpeaker::From(names) => {
                    assert_eq!(names, &[format!("email:{from}")]);
                    "From"
                }
                MailSpeaker::Asked(names) => {
                    assert_eq!(names[0], "email:ann@acme.example");
                    "the recipient"
                }
            };
            let held = if message.hold.is_some() {
                "held as "
            } else {
                ""
            };
            format!("{held}{speaker}")
        }
        MailDecision::Bounced(reason) => format!("bounced {reason}"),
        MailDecision::Drop(_) => "dropped".to_owned(),
        MailDecision::Later(_) => "later".to_owned(),
        MailDecision::Reject(refusal) => {
            assert!(!refusal.what.is_empty() && !refusal.help.is_empty());
            format!("rejected {}", refusal.code.as_str())
        }
    }
}

fn authentication(domain: &str) -> MailAuthentication {
    let (dkim, dmarc, is_aligned) = match domain {
        "aligned" => (SenderCheck::Pass, SenderCheck::Pass, true),
        "unknown" => (SenderCheck::None, SenderCheck::None, false),
        "undecided" => (SenderCheck::TempError, SenderCheck::Unknown, false),
        "denies" => (SenderCheck::Fail, SenderCheck::Fail, false),
        other => panic!("{other}"),
    };
    MailAuthentication {
        spf: SenderCheck::None,
        dkim,
        dmarc,
        is_aligned,
    }
}

fn token(word: &str) -> TokenEvidence {
    match word {
        "valid" => TokenEvidence::Valid,
        "expired" => TokenEvidence::Expired,
        "none" => TokenEvidence::None,
        other => panic!("{other}"),
    }
}

fn envelope(from: &str, parent: bool) -> String {
    let parent = if parent { "parent: M1\n" } else { "" };
    let intent = if parent.is_empty() { "NOTE" } else { "RESPOND" };
    format!(
        "[[email:{from}→BOT v1]]\nuser: ann\nthread: T1\nmessage: M9\n{parent}context: c\nintent: {intent}\nbody: |\n  yes\nsig: none\n[[END]]\n"
    )
}

fn signed(text: &str) -> String {
    let key = key();
    let signer = Signer {
        key: &key,
        pkid: "kalle@example.com",
        at: NOW,
        key_block: &[],
    };
    signer
        .sign(&Document::parse(text, Reading::Strict))
        .unwrap()
}

/// The mail of a row.
fn mail(kind: &str, from: &str) -> String {
    let head =
        |more: &str| format!("From: <{from}>\r\nDate: Thu, 9 Oct 2025 08:00:00 +0000\r\n{more}");
    let with = |more: &str, body: &str| {
        format!(
            "{}\r\n{}",
            head(&format!("Message-ID: <1@mail.example>\r\n{more}")),
            body.replace('\n', "\r\n")
        )
    };
    let answers = "In-Reply-To: <M1@relay.example>\r\n";
    let wrong = |text: &str| signed(text).replace("  yes", "  no");
    match kind {
        "reply" | "reply without a return path" => with(answers, "YES\n"),
        "reply to another gateway" => with("In-Reply-To: <M1@other.example>\r\n", "YES\n"),
        "unsigned envelope" | "unsigned envelope without a return path" => {
            with("", &envelope(from, false))
        }
        "unsigned envelope that answers" => with(answers, &envelope("ann@acme.example", true)),
        "verified envelope" => with("", &signed(&envelope("kalle@example.com", false))),
        "envelope with a wrong signature" => with("", &wrong(&envelope(from, false))),
        "envelope with a wrong signature that answers" => {
            with(answers, &wrong(&envelope(from, true)))
        }
        "mail of this gateway" => format!(
            "{}\r\nYES\r\n",
            head("Message-ID: <M2@relay.example>\r\n") + answers
        ),
        "automatic reply" => with(
            "Auto-Submitted: auto-replied\r\nIn-Reply-To: <M1@relay.example>\r\n",
            "I am away.\n",
        ),
        "bounce" => with(
            "Return-Path: <>\r\nX-Failed-Recipients: ann@acme.example\r\n",
            "550 5.1.1 User unknown\n",
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn table_of_the_specification_holds() {
    let path = folder().join("../../spec/email.md");
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("| mail | From |"));
    let rows = lines
        .by_ref()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut number = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [kind, from, domain, token_word, expected] = cells[..] else {
            panic!("{row}")
        };
        let from = match from {
            "asked" => "ann@acme.example",
            "other" => "eve@evil.example",
            other => panic!("{other}"),
        };
        let mut reading = read(&mail(kind, from));
        reading.authentication = authentication(domain);
        let decision = decided(
            &reading,
            token(token_word),
            kind.ends_with("without a return path"),
        );
        let found = words(&decision, &reading);
        let found = found
            .strip_suffix(" 550 5.1.1 User unknown")
            .unwrap_or(&found);
        assert_eq!(found, expected, "{row}\n{decision:?}\n{}", reading.why);
        number += 1;
    }
    assert!(number >= 39, "{number} rows");
}

#[derive(Deserialize)]
struct GatewayCases {
    decision: Vec<DecisionCase>,
    results: Vec<ResultsCase>,
}

#[derive(Deserialize)]
struct DecisionCase {
    rule: String,
    mail: String,
    aligned: bool,
    token: String,
    result: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct ResultsCase {
    value: String,
    aligned: Option<bool>,
}

fn cases() -> GatewayCases {
    toml::from_str(&fs::read_to_string(folder().join("gateway.toml")).unwrap()).unwrap()
}

#[test]
fn decisions_are_those_of_the_cases() {
    for case in cases().decision {
        let mut reading = read(&case.mail);
        let none = SenderCheck::None;
        let dkim = if case.aligned {
            SenderCheck::Pass
        } else {
            none
        };
        reading.authentication = MailAuthentication {
            spf: none,
            dkim,
            dmarc: none,
            is_aligned: case.aligned,
        };
        let decision = decided(&reading, token(&case.token), false);
        assert_eq!(
            words(&decision, &reading),
            case.result,
            "{}: {decision:?}",
            case.rule
        );
        if let Some(text) = case.text {
            let MailDecision::Accept(messages) = decision else {
                panic!("{decision:?}")
            };
            assert_eq!(messages[0].text, text.trim_start(), "{}", case.rule);
        }
    }
}

#[test]
fn results_of_the_cases_count_as_they_say() {
    for case in cases().results {
        let mail = format!(
            "Authentication-Results: {}\r\nFrom: ann@acme.example\r\n\r\nx\r\n",
            case.value
        );
        let found = trusted_results(mail.as_bytes(), "mx.acme.example").map(|r| r.is_aligned);
        assert_eq!(found, case.aligned, "{}", case.value);
    }
}

#[test]
fn signed_parts_stay_as_they_are() {
    let text = signed(&envelope("kalle@example.com", false));
    let mail = format!(
        "From: a@b.example\r\nMessage-ID: <1@b.example>\r\n\r\n{}",
        text.replace('\n', "\r\n")
    );
    let mut reading = read(&mail);
    reading.authentication = authentication("aligned");
    let MailDecision::Accept(messages) = decided(&reading, TokenEvidence::None, false) else {
        panic!()
    };
    let kept = Document::parse(&messages[0].text, Reading::Strict);
    let sent = Document::parse(&text, Reading::Strict);
    assert_eq!(kept.canonical().unwrap(), sent.canonical().unwrap());
    assert_eq!(kept.block("email").unwrap().fields().count(), 3);
}
