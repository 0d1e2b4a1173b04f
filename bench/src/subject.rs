//! The same message three times: as an envelope, as JSON and as mail; and how each is read.

use crosstalk_envelope::id::IdForm;
use crosstalk_envelope::{Document, Reading};
use serde::Deserialize;
use std::hint::black_box;

/// An envelope of 1.1 KB with threading headers, two META blocks and 12 body lines.
pub const ENVELOPE: &str = "\
[[CLAUDE→CHATGPT v1]]
user: kalle
session: 2025-10-09T16Z abc123
thread: 01J9J3D3M6A4M3WQX8G1ZQ0S7K
parent: 01J9J3D9C2V8M4P1R6S8T9V0W1
message: 01J9J3DBC4N7P2Q3R5S7T9V1W2
context: token-refresh
intent: REQUEST

meta: routing
X-Route: claude://session/abc → chatgpt://thread/xyz
X-Reply-To: claude://session/abc123
X-Priority: high

meta: privacy
PII: redacted
Consent: explicit_yes_2025-10-09T16:00Z
Scope: general

body: |
  We store the refresh token in a cookie that is marked HttpOnly and Secure, with SameSite=Lax.
  The access token lives for ten minutes and is kept in memory only, never in local storage.

  Two questions:
  1. Is rotation on every refresh worth the extra writes to the session table under load?
  2. How do you handle two tabs of one browser that refresh at the same moment?

  Here is the handler as it stands today:
      fn refresh(session: &Session) -> Result<Token, Error> {
          session.rotate()?.issue(Duration::from_secs(600))
      }
  Please answer with the trade-offs first and the code after that, both in plain text.
sig: none
[[END]]
";

/// Reads the envelope strictly and looks at every typed field.
pub fn read_envelope(text: &str, reading: Reading) {
    let document = Document::parse(black_box(text), reading);
    let envelope = document.envelope();
    for address in [&envelope.sender, &envelope.receiver] {
        black_box((address.scheme(), address.authority()));
    }
    let session = envelope.session;
    black_box((envelope.user, session.map(|s| s.time()), envelope.context));
    for id in [envelope.thread, envelope.parent, envelope.message] {
        black_box(id.map(IdForm::of));
    }
    black_box((&envelope.intent, &envelope.signature));
    let routing = envelope.routing();
    routing.stations().for_each(|station| {
        black_box((station.scheme(), station.authority()));
    });
    black_box((
        routing.reply_to.map(|a| (a.scheme(), a.authority())),
        routing.priority,
    ));
    let privacy = envelope.privacy();
    black_box((
        privacy.pii,
        privacy.consent(),
        privacy.scope,
        privacy.expires(),
    ));
    black_box(document.body_text());
    black_box(document.is_accepted());
}

/// The message as a JSON user would type it.
#[derive(Deserialize)]
#[allow(dead_code, reason = "the fields are only read by the parser")]
pub struct JsonMessage {
    sender: String,
    receiver: String,
    user: String,
    session: String,
    thread: String,
    parent: String,
    message: String,
    context: String,
    intent: Intent,
    routing: Routing,
    privacy: Privacy,
    body: String,
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Intent {
    Request,
    Respond,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the fields are only read by the parser")]
struct Routing {
    route: Vec<String>,
    reply_to: String,
    priority: Priority,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Priority {
    High,
    Normal,
    Low,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the fields are only read by the parser")]
struct Privacy {
    pii: String,
    consent: String,
    scope: String,
}

/// The JSON that is equivalent to [`ENVELOPE`].
pub fn json() -> String {
    let document = Document::parse(ENVELOPE, Reading::Strict);
    let envelope = document.envelope();
    let routing = envelope.routing();
    let privacy = envelope.privacy();
    serde_json::json!({
        "sender": document.sender(), "receiver": document.receiver(), "user": envelope.user,
        "session": envelope.session.map(|s| s.text), "thread": envelope.thread, "parent": envelope.parent,
        "message": envelope.message, "context": envelope.context, "intent": "REQUEST",
        "routing": {"route": routing.stations().map(|s| s.to_string()).collect::<Vec<_>>(),
            "reply_to": routing.reply_to.map(|a| a.to_string()), "priority": "high"},
        "privacy": {"pii": privacy.pii, "consent": privacy.declared, "scope": privacy.scope},
        "body": document.body_text(), "sig": document.sig(),
    })
    .to_string()
}

/// Reads the JSON into its struct.
pub fn read_json(json: &str) {
    black_box(serde_json::from_str::<JsonMessage>(black_box(json)).is_ok());
}

/// The mail that is equivalent to [`ENVELOPE`].
pub fn mail() -> String {
    let document = Document::parse(ENVELOPE, Reading::Strict);
    let mut mail = String::from(
        "From: Claude <claude@example.com>\r\nTo: ChatGPT <chatgpt@example.com>\r\n\
         Date: Thu, 9 Oct 2025 16:00:00 +0000\r\nSubject: [AI Crosstalk] token-refresh - REQUEST\r\n\
         Message-ID: <01J9J3DBC4N7P2Q3R5S7T9V1W2@example.com>\r\n\
         In-Reply-To: <01J9J3D9C2V8M4P1R6S8T9V0W1@example.com>\r\n\
         References: <01J9J3D3M6A4M3WQX8G1ZQ0S7K@example.com>\r\nReply-To: <abc123@example.com>\r\n\
         X-User: kalle\r\nX-Session: 2025-10-09T16Z abc123\r\nX-Priority: high\r\nX-Route: abc xyz\r\n\
         X-PII: redacted\r\nX-Consent: explicit_yes_2025-10-09T16:00Z\r\nX-Scope: general\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
    );
    mail.push_str(&document.body_text().replace('\n', "\r\n"));
    mail
}

/// Reads the mail.
pub fn read_mail(mail: &str) {
    black_box(
        mail_parser::MessageParser::default()
            .parse(black_box(mail.as_bytes()))
            .is_some(),
    );
}

/// The floor: where the lines end, added up, and one allocation.
pub fn scan_lines(text: &str) {
    let room: Vec<u8> = Vec::with_capacity(text.len());
    black_box(&room);
    black_box(memchr::memchr_iter(b'\n', black_box(text).as_bytes()).sum::<usize>());
}

/// [`ENVELOPE`] with a body that makes it at least this long.
pub fn envelope_of(bytes: usize) -> String {
    let (head, tail) = ENVELOPE.split_once("sig: none").unwrap_or((ENVELOPE, ""));
    let body = head.split_once("body: |\n").map_or("", |(_, body)| body);
    let mut text = head.to_owned();
    while text.len() + body.len() + 64 < bytes {
        text.push_str(body);
    }
    text + "sig: none" + tail
}
