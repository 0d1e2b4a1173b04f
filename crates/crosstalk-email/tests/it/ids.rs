//! The ids and subjects of `conformance/email/ids.toml`, in both directions.

use crate::corpus::folder;
use crosstalk_email::{
    GatewayAddress, MailId, ReplyKey, TokenError, TokenScope, check_token, id_of_mail,
    mail_subject, make_token, thread_place,
};
use crosstalk_envelope::Timestamp;
use serde::Deserialize;
use std::fs;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadCases {
    message: Vec<MessageCase>,
    place: Vec<PlaceCase>,
    derived: Vec<DerivedCase>,
    subject: Vec<SubjectCase>,
    token: Vec<TokenCase>,
    rejected: Vec<RejectedCase>,
    address: Vec<AddressCase>,
}

#[derive(Deserialize)]
struct RejectedCase {
    key: String,
    message: String,
    thread: String,
    recipient: String,
    at: String,
    token: String,
}

#[derive(Deserialize)]
struct TokenCase {
    key: String,
    message: String,
    thread: String,
    recipient: String,
    expires: String,
    token: String,
}

#[derive(Deserialize)]
struct AddressCase {
    mailbox: String,
    domain: String,
    message: String,
    token: String,
    address: String,
}

#[derive(Deserialize)]
struct MessageCase {
    id: String,
    token: Option<String>,
    domain: String,
    message_id: String,
}

#[derive(Deserialize)]
struct PlaceCase {
    domain: String,
    in_reply_to: Option<String>,
    references: Vec<String>,
    parent: Option<String>,
    thread: Option<String>,
}

#[derive(Deserialize)]
struct DerivedCase {
    message_id: String,
    sent_at: String,
    id: String,
}

#[derive(Deserialize)]
struct SubjectCase {
    context: String,
    intent: String,
    text: Option<String>,
    subject: String,
}

fn cases() -> HeadCases {
    toml::from_str(&fs::read_to_string(folder().join("ids.toml")).unwrap()).unwrap()
}

#[test]
fn message_ids_go_both_ways() {
    for case in cases().message {
        let (id, token) = (case.id, case.token);
        let id = MailId::Message { id, token };
        assert_eq!(
            id.to_message_id(&case.domain),
            Some(case.message_id.clone())
        );
        assert_eq!(MailId::parse(&case.message_id, &case.domain), Some(id));
    }
}

#[test]
fn a_mail_finds_its_place() {
    for case in cases().place {
        let references: Vec<&str> = case.references.iter().map(String::as_str).collect();
        let place = thread_place(case.in_reply_to.as_deref(), &references, &case.domain);
        assert_eq!((place.parent, place.thread), (case.parent, case.thread));
    }
}

#[test]
fn a_mail_without_envelope_has_a_stable_id() {
    for case in cases().derived {
        let sent_at = Timestamp::parse(&case.sent_at).unwrap();
        assert_eq!(id_of_mail(&case.message_id, sent_at), case.id);
    }
}

#[test]
fn subjects_are_one_line_with_the_tag() {
    for case in cases().subject {
        let subject = mail_subject(&case.context, &case.intent, case.text.as_deref());
        assert_eq!(subject, case.subject);
    }
}

#[test]
fn tokens_are_made_and_expire_as_specified() {
    for case in cases().token {
        let key = ReplyKey::parse(&case.key).unwrap();
        let scope = TokenScope {
            message: &case.message,
            thread: &case.thread,
            recipient: &case.recipient,
        };
        let expires = Timestamp::parse(&case.expires).unwrap();
        assert_eq!(make_token(&key, scope, expires), case.token);
        let before = Timestamp::from_millis(expires.as_millis() - 1);
        assert_eq!(check_token(&key, &case.token, scope, before), Ok(()));
        let late = check_token(&key, &case.token, scope, expires);
        assert_eq!(late, Err(TokenError::Expired(expires)));
    }
}

#[test]
fn addresses_with_tokens_are_written_and_read() {
    for case in cases().address {
        let address = GatewayAddress::new(&case.message, &case.token);
        assert_eq!(address.to_text(&case.mailbox, &case.domain), case.address);
        let read = GatewayAddress::parse(&case.address, &case.mailbox, &case.domain).unwrap();
        assert_eq!(read.token, Some(case.token));
        assert_eq!(
            read.message.is_some(),
            case.address.contains('.') && case.address.contains(&case.message)
        );
    }
}

#[test]
fn tokens_for_something_else_are_rejected() {
    for case in cases().rejected {
        let key = ReplyKey::parse(&case.key).unwrap();
        let scope = TokenScope {
            message: &case.message,
            thread: &case.thread,
            recipient: &case.recipient,
        };
        let at = Timestamp::parse(&case.at).unwrap();
        assert!(
            check_token(&key, &case.token, scope, at).is_err(),
            "{} {}",
            case.token,
            case.at
        );
    }
}
