//! The texts, codes, callbacks and answers of `conformance/email/text-message.toml`.

use crate::corpus::folder;
use crosstalk_email::{
    CoverPurpose, OutgoingText, ReplyKey, TextCode, TokenScope, WebhookCall, check_webhook,
    compose_text, make_text_code, read_text,
};
use crosstalk_envelope::Timestamp;
use serde::Deserialize;
use std::fs;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextCases {
    text: Vec<WrittenText>,
    code: Vec<CodeCase>,
    callback: Vec<CallbackCase>,
    answer: Vec<AnswerCase>,
    failed: Vec<FailedCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenText {
    rule: String,
    sender: String,
    context: String,
    body: String,
    purpose: String,
    files: usize,
    text: String,
}

#[derive(Deserialize)]
struct CodeCase {
    key: String,
    place: u64,
    message: String,
    thread: String,
    recipient: String,
    code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallbackCase {
    rule: String,
    secret: String,
    id: String,
    timestamp: String,
    signature: String,
    body: String,
    at: String,
    counts: bool,
}

#[derive(Deserialize)]
struct AnswerCase {
    text: String,
    code: Option<String>,
    words: Option<String>,
}

#[derive(Deserialize)]
struct FailedCase {
    reference: String,
    place: Option<u64>,
}

#[test]
fn text_messages_are_as_specified() {
    let text = fs::read_to_string(folder().join("text-message.toml")).unwrap();
    let cases: TextCases = toml::from_str(&text).unwrap();
    for case in cases.text {
        let written = compose_text(&OutgoingText {
            sender: &case.sender,
            context: &case.context,
            body: &case.body,
            purpose: match case.purpose.as_str() {
                "question" => CoverPurpose::Question,
                "revocation" => CoverPurpose::Revocation,
                _ => CoverPurpose::Note,
            },
            files: case.files,
            code: "4K-Q7FM2A",
        });
        assert_eq!(written, case.text, "{}", case.rule);
    }
    for case in cases.code {
        let scope = TokenScope {
            message: &case.message,
            thread: &case.thread,
            recipient: &case.recipient,
        };
        let key = ReplyKey::parse(&case.key).unwrap();
        assert_eq!(make_text_code(&key, case.place, scope), case.code);
        let code = TextCode::parse(&case.code).unwrap();
        assert!(code.place() == case.place && code.is_for(&key, scope));
    }
    for case in cases.callback {
        let call = WebhookCall {
            id: &case.id,
            timestamp: &case.timestamp,
            signature: &case.signature,
            body: case.body.as_bytes(),
        };
        let at = Timestamp::parse(&case.at).unwrap();
        let checked = check_webhook(&call, &case.secret, at);
        assert_eq!(checked.is_ok(), case.counts, "{} {}", case.rule, case.at);
    }
    for case in cases.answer {
        let read = read_text(&case.text);
        let wanted = case.code.as_deref().map(|c| TextCode::parse(c).unwrap());
        let found = read
            .codes
            .into_iter()
            .find(|(code, _)| Some(code) == wanted.as_ref());
        assert_eq!(found.map(|(_, words)| words), case.words, "{}", case.text);
    }
    for case in cases.failed {
        let place = TextCode::parse(&case.reference).map(|code| code.place());
        assert_eq!(place, case.place, "{}", case.reference);
    }
}
