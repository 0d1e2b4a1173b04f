//! Sends a message as a text message, through a provider with an HTTP interface (TXT-001 to TXT-003).

use super::http::{outcome_of_rejection, token};
use super::{AttemptOutcome, DeliveryHandler, DeliveryJob};
use crate::config::{Config, Sms};
use crate::core::Relay;
use crate::port::Later;
use bytes::Bytes;
use crosstalk_api::client::rejection_of;
use crosstalk_api::outbound::{HttpCall, Outbound, Url};
use crosstalk_email::{
    CoverPurpose, OutgoingText, TokenScope, compose_text, make_text_code, phone_number,
};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::expects_answer;
use crosstalk_protocol::relay::Handler;
use crosstalk_protocol::relay::report::speaker;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use serde::Serialize;
use std::time::Duration;

/// The key by which a provider recognises a text that comes again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How many bytes of an answer of a provider are read.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// Sends text messages.
pub(super) struct TextHandler {
    relay: Relay,
    outbound: Outbound,
}

/// What the provider gets.
#[derive(Serialize)]
struct TextRequest<'t> {
    to: &'t str,
    from: &'t str,
    text: &'t str,
    /// What the provider names when it says that the text did not arrive.
    reference: &'t str,
}

impl TextHandler {
    pub(super) fn new(relay: Relay, outbound: Outbound) -> Self {
        Self { relay, outbound }
    }

    async fn send(&self, job: &DeliveryJob) -> AttemptOutcome {
        let config = self.relay.config();
        let ready = config.sms.as_ref().zip(self.relay.reply_key());
        let Some((sms, key)) = ready else {
            return AttemptOutcome::later(
                ErrorCode::Route,
                "nothing says how text messages are sent: [sms] is missing, or the relay has to be restarted",
            );
        };
        let Some(to) = phone_of(&config, &job.to) else {
            return AttemptOutcome::refused(
                ErrorCode::Route,
                "the address is no international phone number, and the route names none",
            );
        };
        let record = &job.record;
        let scope = TokenScope {
            message: &record.id,
            thread: &record.thread,
            recipient: &job.to,
        };
        let code = make_text_code(key, record.seq, scope);
        let document = Document::parse(&job.text, Reading::Strict);
        let text = compose_text(&OutgoingText {
            sender: &speaker(&record.sender, &record.text, 0),
            context: record.context.as_deref().unwrap_or_default(),
            body: &document.body_text(),
            purpose: match record.meaning {
                Some(Intent::Revoke) => CoverPurpose::Revocation,
                meaning if expects_answer(meaning) => CoverPurpose::Question,
                _ => CoverPurpose::Note,
            },
            files: document.envelope().attachments().count(),
            code: &code,
        });
        let request = TextRequest {
            to: &to,
            from: &sms.from,
            text: &text,
            reference: &code,
        };
        let call = match self.call(sms, &request, job).await {
            Ok(call) => call,
            Err(outcome) => return outcome,
        };
        match self.outbound.call(call).await {
            Ok(answer) if (200..300).contains(&answer.status) => AttemptOutcome::delivered(),
            Ok(answer) => outcome_of_rejection(rejection_of(&answer)),
            Err(error) => error.into(),
        }
    }

    async fn call(
        &self,
        sms: &Sms,
        request: &TextRequest<'_>,
        job: &DeliveryJob,
    ) -> Result<HttpCall, AttemptOutcome> {
        let url = Url::parse(&sms.url).map_err(|fault| {
            AttemptOutcome::later(ErrorCode::Route, format!("`url` of [sms]: {fault}"))
        })?;
        let token = match sms.token_file.as_deref() {
            Some(path) => Some(token(path).await?),
            None => None,
        };
        let body = serde_json::to_vec(request).map_err(|fault| {
            AttemptOutcome::failed(ErrorCode::Format, format!("the text: {fault}"))
        })?;
        // The same at each attempt. A dead letter that was queued again is another text: the provider would answer it with the
        // failure that it remembers.
        let seed = format!(
            "{}\n{}\n{}\n{}",
            job.record.id,
            job.to,
            job.record.digest,
            job.queued_at.as_millis()
        );
        let digest = Digest::of(self.relay.keyed(&seed).as_bytes()).to_string();
        let call = HttpCall {
            body: Bytes::from(body),
            allow_private: sms.allow_private,
            within: Duration::from_secs(sms.timeout_seconds),
            most: MAX_ANSWER_BYTES,
            ..HttpCall::new(Method::POST, url)
        };
        let call = call
            .header(CONTENT_TYPE, "application/json")
            .and_then(|call| call.header(ACCEPT, "application/json"))
            .and_then(|call| call.header(IDEMPOTENCY_KEY, digest.trim_start_matches("sha256:")))
            .and_then(|call| call.bearer(token.as_deref()));
        call.map_err(AttemptOutcome::from)
    }
}

impl DeliveryHandler for TextHandler {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(self.send(job))
    }
}

/// The phone number of a recipient: that of its route, or that in its address.
pub(crate) fn phone_of(config: &Config, recipient: &str) -> Option<String> {
    let route = super::lane::route(config, recipient, Handler::Sms);
    let named = route.and_then(|route| route.phone.as_deref());
    phone_number(named.unwrap_or(recipient))
}
