//! Handing messages in.

use crate::client::{Client, ClientError, RequestTarget, SendResult, unreadable};
use crate::endpoint::{endpoints, parameters};
use crate::schema::{self, MAX_ID_CHARS, kinds};
use crate::{BodyForm, Media, ParameterKind, RequestBody, SuccessResponse};
use bytes::Bytes;
use crosstalk_envelope::json::MessageJson;
use crosstalk_envelope::{Reading, scan};
use http::header::{ACCEPT, CONTENT_TYPE};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The name and version of the JSON form of an accepted message.
pub const RECEIVE_SCHEMA: &str = "crosstalk.receive/1";

parameters! {
    /// `wait=N` holds the answer for the RESPOND, for 1 to 60 seconds, if the credential may read for the sender.
    PREFER = header "Prefer", ParameterKind::text::<schema::Prefer>(MAX_ID_CHARS);
}

endpoints! {
    /// Hand in an envelope as text or JSON, or a batch
    ///
    /// HTP-001 to HTP-030. The same message again gets the same answer.
    RECEIVE: Receive = Post "/crosstalk/receive" for Stranger in Messages {
        parameters: &[&PREFER],
        request: Some(RequestBody {
            description: "One envelope, as text or as JSON, or several envelopes.",
            content: &[
                BodyForm::of::<schema::Envelope>(Media::Text),
                BodyForm::json::<BuildMessage>(),
                BodyForm::of::<BatchRequest>(Media::Batch),
            ],
        }),
        response: SuccessResponse {
            headers: &["Preference-Applied"],
            ..SuccessResponse::ok(
                "The ACK with a receipt, or the RESPOND; of a batch, one answer for each piece.",
                &[
                    BodyForm::of::<schema::Envelope>(Media::Text),
                    BodyForm::json::<Accepted>(),
                    BodyForm::of::<BatchAnswer>(Media::Batch),
                ],
            )
        },
        own_errors: &[502, 504],
    }
}

/// HTP-007. An accepted message: the ACK, and the recipient's answer if the caller waited for it and it came.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receive")]
pub struct Accepted {
    /// `crosstalk.receive/1`.
    #[schemars(extend("const" = RECEIVE_SCHEMA))]
    pub schema: &'static str,
    /// The ACK of the relay.
    #[schemars(with = "ParsedMessage")]
    pub ack: MessageJson,
    /// The recipient's answer.
    #[schemars(with = "Option<ParsedMessage>")]
    pub answer: Option<MessageJson>,
}

kinds! {
    /// One or several envelopes, as in a file.
    BatchRequest = { "type": "string", "minLength": 1 };

    /// One envelope for each piece of the batch.
    BatchAnswer = { "type": "string", "pattern": r"^\[\[" };

    /// HTP-007. A message as `crosstalk build` reads it. The relay generates a thread and a message id where there is none.
    BuildMessage = {
        "type": "object",
        "required": ["sender", "receiver"],
        "additionalProperties": false,
        "properties": {
            "sender": { "type": "string", "minLength": 1 },
            "receiver": { "type": "string", "minLength": 1 },
            "version": { "const": "v1" },
            "user": { "type": ["string", "null"] },
            "session": { "type": ["string", "null"] },
            "thread": { "type": ["string", "null"] },
            "parent": { "type": ["string", "null"] },
            "message": { "type": ["string", "null"] },
            "context": { "type": ["string", "null"] },
            "sig": { "type": ["string", "null"] },
            "intent": { "type": ["string", "object", "null"] },
            "headers": { "type": ["array", "object"] },
            "meta": { "type": ["array", "object"] },
            "body": { "type": "string" },
            "body_name": { "type": ["string", "null"] },
            "repairs": { "type": "array" },
            "diagnostics": { "type": "array" },
            "file": {},
        },
    };

    /// An envelope as `crosstalk parse --json` prints it.
    ParsedMessage = {
        "type": "object",
        "required": ["sender", "receiver", "version", "intent", "headers", "meta", "body"],
        "properties": {
            "sender": { "type": "string" },
            "receiver": { "type": "string" },
            "version": { "const": "v1" },
            "user": { "type": ["string", "null"] },
            "session": { "type": ["string", "null"] },
            "thread": { "type": ["string", "null"] },
            "parent": { "type": ["string", "null"] },
            "message": { "type": ["string", "null"] },
            "context": { "type": ["string", "null"] },
            "sig": { "type": ["string", "null"] },
            "intent": {
                "type": ["object", "null"],
                "required": ["written", "meaning"],
                "properties": { "written": { "type": "string" }, "meaning": { "type": "string" } },
            },
            "headers": { "type": "array" },
            "meta": { "type": "array" },
            "body": { "type": "string" },
        },
    };
}

impl Client {
    /// Sends an envelope. The ACK of the relay, or what the recipient answered at once.
    pub async fn send(&self, text: &str) -> Result<SendResult, ClientError> {
        self.ask(text, Duration::ZERO).await
    }

    /// Sends an envelope and waits for the answer to it, at most 60 seconds. The answer, else the ACK of the relay.
    pub async fn ask(&self, text: &str, wait: Duration) -> Result<SendResult, ClientError> {
        let mut call = self
            .call(RequestTarget::of(&RECEIVE))?
            .header(CONTENT_TYPE, Media::Text.content_type())?
            .header(ACCEPT, Media::Text.name())?;
        if wait.as_secs() > 0 {
            let prefer = http::HeaderName::from_static("prefer");
            call = call.header(prefer, &format!("wait={}", wait.as_secs()))?;
        }
        call.within += wait;
        call.most = crate::client::MESSAGE_BYTES;
        call.body = Bytes::copy_from_slice(text.as_bytes());
        let answer = self.run(call).await?;
        let sent = answer.text().and_then(SendResult::of);
        let sent = sent.ok_or_else(|| unreadable(&answer, "it is no envelope"))?;
        Ok(SendResult {
            has_waited: answer.headers.contains_key("preference-applied"),
            ..sent
        })
    }

    /// Sends several envelopes in one request. One answer for each, in their order: an ACK, or an ERROR.
    pub async fn send_batch(&self, texts: &[&str]) -> Result<Vec<String>, ClientError> {
        let batch = Media::Batch.name();
        let mut call = self
            .call(RequestTarget::of(&RECEIVE))?
            .header(CONTENT_TYPE, batch)?
            .header(ACCEPT, batch)?;
        let texts: Vec<&str> = texts.iter().map(|t| t.trim_end()).collect();
        call.body = Bytes::from(texts.join("\n\n") + "\n");
        let answer = self.run(call).await?;
        let text = answer.text().unwrap_or_default();
        let found = scan(text, Reading::Strict);
        if found.documents.len() != texts.len() {
            return Err(unreadable(&answer, "it has not one envelope for each"));
        }
        let answers = found.documents.iter().map(|d| d.to_well_formed());
        Ok(answers.collect())
    }
}
