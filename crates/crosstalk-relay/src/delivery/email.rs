//! Sends a message as a mail, through the mail server of the operator (MAI-050, MAI-080 to MAI-085).
//!
//! Each mail has one recipient and is sent in a transaction of its own. A mail that is sent again after a crash or a broken connection
//! has the same Message-ID and the same bytes, so that the mail program of the recipient shows one mail.

mod smtp;

pub use smtp::{MailFault, MailStep, SmtpConnection};

use super::{AttemptOutcome, Blame, DeliveryHandler, DeliveryJob};
use crate::config::Email;
use crate::core::Relay;
use crate::port::Later;
use crate::server::blob_path;
use crosstalk_email::{
    ComposeError, CoverPurpose, MailCover, MailFile, MailOrigin, OutgoingMail, ReplyKey,
    TokenScope, compose_mail, is_mail_address, limit, make_token,
};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::{SYSTEM, same_name};
use crosstalk_envelope::registry::{ErrorCode, SchemeKind};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Document, Intent, Reading, Timestamp};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::relay::{HOPS, hops_of};
use crosstalk_protocol::store::StoreError;
use crosstalk_protocol::{expects_answer, standing};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;

/// How many messages before a message stand in References.
const MAX_ANCESTORS: usize = 20;
const DAY_MILLIS: i64 = 86_400_000;

/// Sends mail.
pub(super) struct MailHandler {
    relay: Relay,
    /// The data folder, in which the attachments are.
    data: PathBuf,
}

impl MailHandler {
    pub(super) fn new(relay: Relay, data: PathBuf) -> Self {
        Self { relay, data }
    }

    async fn send(&self, job: &DeliveryJob) -> Result<(), AttemptOutcome> {
        let config = self.relay.config();
        let email = config.email.as_ref();
        let ready = email.zip(self.relay.reply_key());
        let ready = ready.and_then(|(email, key)| Some((email, email.out.as_ref()?, key)));
        let Some((email, out, key)) = ready else {
            return Err(AttemptOutcome::later(
                ErrorCode::Route,
                "nothing says how mail is sent: [email.out] is missing, or the relay has to be restarted",
            ));
        };
        let document = Document::parse(&job.text, Reading::Strict);
        if hops_of(&document).len() > HOPS {
            return Err(AttemptOutcome::refused(
                ErrorCode::Route,
                format!("the message has been through {HOPS} relays: it goes in circles"),
            ));
        }
        let to = self.mail_address(job)?;
        let files = self.files(&document).await?;
        let mail = self
            .compose(job, &document, (email, key), (&to, &files))
            .await?;
        let mut connection = SmtpConnection::open(email, out).await.map_err(outcome)?;
        let begun = connection.begin(&mail.return_path, &to).await;
        let sent = match begun {
            Ok(()) => connection.transfer(&mail.bytes).await,
            Err(fault) => Err(fault),
        };
        connection.close().await;
        sent.map_err(outcome)
    }

    /// The mail address of the recipient: that of the route, else that of the address.
    fn mail_address(&self, job: &DeliveryJob) -> Result<String, AttemptOutcome> {
        if let Some(mail) = job.route.as_ref().and_then(|route| route.mail.clone()) {
            return Ok(mail);
        }
        let address = Address::split(&job.to);
        let is_mail = address.kind() == Some(SchemeKind::Mail);
        let path = percent_decode_str(address.path()).decode_utf8();
        let mail = path.ok().filter(|mail| is_mail && is_mail_address(mail));
        mail.map(std::borrow::Cow::into_owned).ok_or_else(|| {
            AttemptOutcome::refused(
                ErrorCode::Route,
                "the address is no mail address, and the route names none",
            )
        })
    }

    async fn compose(
        &self,
        job: &DeliveryJob,
        document: &Document<'_>,
        (email, key): (&Email, &ReplyKey),
        (to, files): (&str, &[MailFile]),
    ) -> Result<crosstalk_email::ComposedMail, AttemptOutcome> {
        let record = &job.record;
        let scope = TokenScope {
            message: &record.id,
            thread: &record.thread,
            recipient: &job.to,
        };
        let token = make_token(key, scope, token_expiry(record.at, email.reply_days));
        let (ancestors, answered_mail) = self.ancestors(job).await;
        let subject = subject_of(&job.to);
        let is_revocation = record.meaning == Some(Intent::Revoke);
        let has_cover = is_revocation || job.route.as_ref().is_some_and(|route| route.cover);
        let standing = standing(record);
        let body = document.body_text();
        let sender = speaker(&record.sender, &record.text, 0);
        let cover = MailCover {
            standing: &standing,
            body: &body,
            purpose: match record.meaning {
                Some(Intent::Revoke) => CoverPurpose::Revocation,
                meaning if expects_answer(meaning) => CoverPurpose::Question,
                _ => CoverPurpose::Note,
            },
        };
        let mail = OutgoingMail {
            message: &record.id,
            thread: &record.thread,
            ancestors: &ancestors,
            answered_mail: answered_mail.as_deref(),
            sender: &sender,
            to,
            context: record.context.as_deref().unwrap_or_default(),
            intent: record.intent.as_deref().unwrap_or_default(),
            subject: subject.as_deref(),
            accepted_at: record.at,
            envelope: &job.text,
            cover: has_cover.then_some(cover),
            files,
            token: &token,
            // Only what the relay itself says: a gateway that reads the mail drops automatic ones (MAI-012).
            is_automatic: same_name(&record.sender, SYSTEM),
        };
        let origin = MailOrigin {
            mailbox: &email.mailbox,
            domain: &email.domain,
            subaddress: email.subaddress,
        };
        compose_mail(&mail, origin).map_err(|fault| {
            let code = match fault {
                ComposeError::TooLarge => ErrorCode::TooLarge,
                _ => ErrorCode::Route,
            };
            AttemptOutcome::refused(code, fault.to_string())
        })
    }

    /// The messages before this one, the oldest first, and the Message-ID of the mail by which its parent came.
    async fn ancestors(&self, job: &DeliveryJob) -> (Vec<String>, Option<String>) {
        let (mut ids, mut answered) = (Vec::new(), None);
        let mut next = job.record.parent.clone();
        while let Some(id) = next.take() {
            if ids.len() == MAX_ANCESTORS || ids.contains(&id) || id == job.record.id {
                break;
            }
            // Without the store, the mail has fewer references, and is sent.
            let parent = self.relay.store().record(&id).await.ok().flatten();
            if ids.is_empty() {
                answered = parent.as_ref().and_then(|parent| mail_id_of(&parent.text));
            }
            ids.push(id);
            next = parent.and_then(|parent| parent.parent);
        }
        ids.reverse();
        (ids, answered)
    }

    /// The attachments of a message. Bytes that do not have the digest in the envelope are sent to nobody (MET-013).
    async fn files(&self, document: &Document<'_>) -> Result<Vec<MailFile>, AttemptOutcome> {
        let mut files = Vec::new();
        let mut room = u64::try_from(limit::MAIL_BYTES / 4 * 3).unwrap_or(u64::MAX);
        for (key, attachment) in document.envelope().attachments() {
            let shown = escape(key).into_owned();
            let Ok(attachment) = attachment else {
                return Err(AttemptOutcome::refused(
                    ErrorCode::Format,
                    format!("the attachment {shown} can't be read"),
                ));
            };
            let bytes = match attachment.data.clone() {
                Some(bytes) => bytes,
                None => self.blob(&shown, attachment.digest, room).await?,
            };
            room = room.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            if attachment.digest.is_some() && attachment.check(&bytes).is_err() {
                return Err(AttemptOutcome::refused(
                    ErrorCode::Format,
                    format!("the attachment {shown} does not have the digest in the envelope"),
                ));
            }
            files.push(MailFile {
                name: attachment.name.unwrap_or(key).to_owned(),
                mime: attachment.mime.to_owned(),
                bytes,
            });
        }
        Ok(files)
    }

    /// The bytes of an attachment that the store keeps, if they are not too many; nothing if it has none of it.
    async fn stored(
        &self,
        digest: Digest,
        room: u64,
    ) -> Result<Option<Option<Vec<u8>>>, StoreError> {
        let mut bytes = Vec::new();
        for number in 0.. {
            match self.relay.store().read_part(digest, number).await? {
                Some(part) if part.size > room => return Ok(Some(None)),
                Some(part) => bytes.extend(part.bytes),
                None if number == 0 => return Ok(None),
                None => break,
            }
        }
        Ok(Some(Some(bytes)))
    }

    /// The bytes of an attachment beside the message.
    async fn blob(
        &self,
        shown: &str,
        digest: Option<&str>,
        room: u64,
    ) -> Result<Vec<u8>, AttemptOutcome> {
        let Some(digest) = digest.and_then(Digest::parse) else {
            return Err(AttemptOutcome::refused(
                ErrorCode::Unsupported,
                format!("the attachment {shown} has no digest that this relay knows"),
            ));
        };
        let read = match self.stored(digest, room).await {
            Ok(Some(stored)) => Ok(stored),
            Ok(None) => {
                let path = blob_path(&self.data, &digest);
                let read = tokio::task::spawn_blocking(move || {
                    let file = std::fs::File::open(path)?;
                    if file.metadata()?.len() > room {
                        return Ok(None);
                    }
                    crate::file::read_bounded(&file, room).map(Some)
                });
                let read = read.await;
                read.unwrap_or_else(|error| Err(std::io::Error::other(error)))
            }
            Err(error) => Err(std::io::Error::other(error)),
        };
        match read {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(AttemptOutcome::refused(
                ErrorCode::TooLarge,
                "the message and its attachments are too large for a mail",
            )),
            // Its sender may upload it after the message.
            Err(error) => Err(AttemptOutcome::Later {
                code: ErrorCode::Route,
                reason: format!("the attachment {shown} can't be read: {error}"),
                public: Some(format!("the attachment {shown} is not at the relay")),
                after: None,
                blame: Blame::Message,
            }),
        }
    }
}

impl DeliveryHandler for MailHandler {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(async move {
            let sent = self.send(job).await;
            sent.err().unwrap_or_else(AttemptOutcome::delivered)
        })
    }
}

/// When the reply token of a message expires: the same time whenever its mail is written.
pub(crate) fn token_expiry(accepted_at: Timestamp, days: u32) -> Timestamp {
    let after = i64::from(days).saturating_mul(DAY_MILLIS);
    Timestamp::from_millis(accepted_at.as_millis().saturating_add(after))
}

/// The text of `?subject=` in a mail address.
fn subject_of(address: &str) -> Option<String> {
    let query = Address::split(address).query()?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case("subject"))?;
    let spaced = value.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8_lossy();
    Some(decoded.into_owned())
}

/// The Message-ID in `meta: email`, if the message came by mail.
fn mail_id_of(text: &str) -> Option<String> {
    let document = Document::parse(text, Reading::Strict);
    let block = document.block("email")?;
    let mut fields = block.fields();
    let (_, id) = fields.find(|(key, _)| key.eq_ignore_ascii_case("Message-ID"))?;
    Some(id.trim().to_owned())
}

/// What a failed step means for the delivery.
fn outcome(fault: MailFault) -> AttemptOutcome {
    let reason = match fault.step {
        MailStep::Files => format!("the mail can't be sent: {fault}"),
        MailStep::Connect => format!("the mail server can't be reached: {fault}"),
        MailStep::Encrypt => {
            format!("the connection to the mail server can't be encrypted: {fault}")
        }
        MailStep::LogIn => format!("the mail server does not let the relay log in: {fault}"),
        MailStep::Sender => format!("the mail server does not accept mail of this relay: {fault}"),
        MailStep::Recipient => {
            format!("the mail server does not accept mail to this address: {fault}")
        }
        MailStep::Transfer => format!("the mail server did not accept the mail: {fault}"),
    };
    if fault.is_too_large() {
        return AttemptOutcome::refused(ErrorCode::TooLarge, reason);
    }
    match fault.step {
        // What is wrong there has nothing to do with this message, and the operator can correct it.
        MailStep::Files
        | MailStep::Connect
        | MailStep::Encrypt
        | MailStep::LogIn
        | MailStep::Sender => AttemptOutcome::later(ErrorCode::Route, reason),
        MailStep::Recipient | MailStep::Transfer if fault.is_permanent() => {
            AttemptOutcome::refused(ErrorCode::Route, reason)
        }
        MailStep::Recipient | MailStep::Transfer => AttemptOutcome::Later {
            code: ErrorCode::Route,
            public: fault.code.is_some().then(|| reason.clone()),
            reason,
            after: None,
            blame: match (fault.step, fault.code) {
                (MailStep::Recipient, Some(_)) => Blame::Message,
                (_, Some(_)) => Blame::Either,
                (_, None) => Blame::Destination,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_of_an_address_is_decoded() {
        let subject = |address: &str| subject_of(address);
        assert_eq!(
            subject("email:a@b.example?subject=AI+Crosstalk%21"),
            Some("AI Crosstalk!".into())
        );
        assert_eq!(
            subject("email:a@b.example?x=1&Subject=%0D%0ABcc:+e@x"),
            Some("\r\nBcc: e@x".into())
        );
        assert_eq!(subject("email:a@b.example"), None);
    }
}
