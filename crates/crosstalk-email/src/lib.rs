//! Mail as a transport of AI Crosstalk: pure functions from the bytes of one mail to what a gateway makes of it, and back.
//!
//! ```text
//! bytes ── head, mime ──> texts, files ── html, flowed, reply ──> new words │ cut
//!                                                                     └── scan (paste reading) ── verify ──> Admitted
//! read_mail ──> MailReading: envelope, reply, bounce, auto or rejected
//!
//! decide    ──> MailDecision: accept, bounced, drop, later, reject
//!
//! MailId, thread_place ──  Message-ID ↔ message, In-Reply-To ↔ parent, References ↔ thread
//! compose_mail ──────  a message ──> the bytes of the mail that carries it, the same ones each time
//! mail_subject         ──  [AI Crosstalk] <context> - <intent>
//! make_token, check_token, GatewayAddress ── the proof, in Reply-To and Message-ID, that an answer comes from who got the mail
//! compose_text, read_text, check_webhook ── the same by text message: a short text with a code, and the answer to it
//! ```
//!
//! Nothing here does I/O, and nothing panics on input. A mail is untrusted data: everything is bounded by [`limit`].
//! Implements MAI-001 to MAI-067, MAI-080 to MAI-085, and TXT-001 to TXT-013.

mod authentication;
mod automatic;
mod bounce;
mod compose;
mod decision;
mod flowed;
mod gateway_address;
mod head;
mod html;
pub mod limit;
mod mime;
mod phrase;
mod read;
mod reply;
mod subject;
mod text_message;
mod threading;
mod token;

pub use authentication::{MailAuthentication, SenderCheck, trusted_results};
pub use bounce::Bounce;
pub use compose::{
    ComposeError, ComposedMail, CoverPurpose, MailCover, MailFile, MailOrigin, OutgoingMail,
    compose_mail,
};
pub use decision::{
    AskedQuestion, MailDecision, MailFacts, MailMessage, MailSpeaker, TokenEvidence, decide,
    is_same_mailbox, mailbox_of, respond_in_words,
};
pub use gateway_address::{GatewayAddress, is_mail_address, is_mail_domain, is_mailbox};
pub use read::{MailError, MailKind, MailReading, MailSender, read_mail};
pub use subject::{SUBJECT_TAG, context_of_subject, mail_subject};
pub use text_message::{
    MAX_TEXT_CHARS, OutgoingText, TextAnswer, TextCode, WebhookCall, WebhookError, check_webhook,
    check_webhook_secret, compose_text, make_text_code, phone_number, read_text, sign_webhook,
};
pub use threading::{MailId, ThreadPlace, id_of_mail, ids_of_field, references, thread_place};
pub use token::{ReplyKey, TokenError, TokenScope, check_token, make_token};
