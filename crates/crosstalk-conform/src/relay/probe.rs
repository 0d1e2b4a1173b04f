//! Shared parts of the cases: messages with fresh ids, requests, and checks of answers.

use super::wire::{Credential, EventStream, NoAnswer, SuiteAnswer, SuiteRequest, Wire};
use crosstalk_envelope::id::new_ulid;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Builder, CoreHeader, Document, Intent, Reading, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How many seconds ahead a time is that the suite lets pass, one try after the other: a slow network or a busy machine is
/// no fault of the relay.
const AHEAD_SECONDS: [i64; 3] = [2, 10, 50];
/// How long one request waits for its turn: the cases that run at the same time share the limit of one token.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why a case does not go on.
pub(super) enum CaseStop {
    Failed { expected: String, got: String },
    Skipped(String),
}

pub(super) type CaseStep<T = ()> = Result<T, CaseStop>;

impl From<NoAnswer> for CaseStop {
    fn from(fault: NoAnswer) -> Self {
        Self::Failed {
            expected: "an answer".into(),
            got: fault.0,
        }
    }
}

/// Fails the case.
pub(super) fn failed<T>(expected: impl Into<String>, got: impl Into<String>) -> CaseStep<T> {
    Err(CaseStop::Failed {
        expected: expected.into(),
        got: got.into(),
    })
}

pub(super) fn skipped<T>(reason: impl Into<String>) -> CaseStep<T> {
    Err(CaseStop::Skipped(reason.into()))
}

/// Goes on if something holds.
pub(super) fn need(holds: bool, expected: impl Into<String>, got: impl Into<String>) -> CaseStep {
    match holds {
        true => Ok(()),
        false => failed(expected, got),
    }
}

/// Goes on if two values are the same.
pub(super) fn equal<T: fmt::Debug + PartialEq<U> + ?Sized, U: fmt::Debug + ?Sized>(
    got: &T,
    expected: &U,
) -> CaseStep {
    need(got == expected, format!("{expected:?}"), format!("{got:?}"))
}

/// Goes on if something holds for a value.
pub(super) fn holds(holds: bool, expected: &str, got: &impl fmt::Debug) -> CaseStep {
    need(holds, expected, format!("{got:?}"))
}

/// Goes on if two texts are the same.
pub(super) fn same(what: &str, expected: &str, got: &str) -> CaseStep {
    need(
        expected == got,
        format!("{what}: {expected}"),
        format!("{what}: {got}"),
    )
}

/// An envelope of the suite.
#[derive(Clone, Debug)]
pub(super) struct SuiteMessage {
    pub(super) text: String,
    pub(super) id: String,
    pub(super) thread: String,
}

/// One case's view of the relay.
pub(super) struct Probe {
    pub(super) wire: Arc<Wire>,
    /// Makes the addresses of a case its own.
    tag: String,
}

impl Probe {
    pub(super) fn new(wire: Arc<Wire>) -> Self {
        Self {
            wire,
            tag: new_ulid(),
        }
    }

    /// An address that nobody else uses.
    pub(super) fn address(&self, who: &str) -> String {
        self.noted(format!("claude://conform/{}/{who}", self.tag))
    }

    /// The address of a person whom nobody else knows.
    pub(super) fn person(&self, who: &str) -> String {
        self.noted(format!("human://conform/{}/{who}", self.tag))
    }

    /// A simple name that nobody else uses, and a word that stands nowhere else.
    pub(super) fn word(&self, what: &str) -> String {
        self.noted(format!("CONFORM-{what}-{}", self.tag))
    }

    /// An address that the suite uses: it leaves nothing there.
    pub(super) fn noted(&self, address: String) -> String {
        self.wire.used.note(&address);
        address
    }

    /// An envelope in a thread of its own; `change` adds to it.
    pub(super) fn letter(
        &self,
        intent: &str,
        from: &str,
        to: &str,
        change: impl FnOnce(Builder) -> Builder,
    ) -> CaseStep<SuiteMessage> {
        let builder = Builder::new(from, to)
            .user("conform")
            .thread(new_ulid())
            .message(new_ulid())
            .context("conformance of a relay")
            .intent(intent)
            .body("A message of the conformance suite.");
        let builder = change(builder);
        let value = |core| builder.core_value(core).cloned().unwrap_or_default();
        let text = builder.build();
        let text = text.or_else(|fault| skipped(format!("the suite can't write this: {fault}")))?;
        Ok(SuiteMessage {
            text,
            id: value(CoreHeader::Message),
            thread: value(CoreHeader::Thread),
        })
    }

    /// A REQUEST.
    pub(super) fn request(&self, from: &str, to: &str) -> CaseStep<SuiteMessage> {
        self.letter("REQUEST", from, to, |b| b)
    }

    /// Sends a request; where a relay says that this is too fast, the suite waits as it is told.
    pub(super) async fn send(&self, request: SuiteRequest) -> CaseStep<SuiteAnswer> {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.wire.send(request.clone()).await?;
            if !waits(&answer, until).await {
                return Ok(answer);
            }
        }
    }

    /// Opens a stream of events, as patiently.
    pub(super) async fn events(&self, request: SuiteRequest) -> CaseStep<EventStream> {
        let until = Instant::now() + PATIENCE;
        loop {
            let events = self.wire.events(request.clone()).await?;
            if !waits(&events.head, until).await {
                return Ok(events);
            }
        }
    }

    /// Hands in a text.
    pub(super) async fn post(&self, text: impl Into<bytes::Bytes>) -> CaseStep<SuiteAnswer> {
        self.send(receive(text)).await
    }

    /// Sends a message that the relay has to accept; returns the ACK.
    pub(super) async fn take(&self, letter: &SuiteMessage) -> CaseStep<Document<'static>> {
        acked(&self.post(letter.text.clone()).await?)
    }

    /// Asks for JSON, which has to come with 200.
    pub(super) async fn json(&self, request: SuiteRequest) -> CaseStep<Value> {
        let answer = self.send(request.accept("application/json")).await?;
        object(&answer, 200)
    }

    /// The inbox of an address.
    pub(super) async fn inbox(&self, address: &str) -> CaseStep<Value> {
        let inbox = self
            .json(SuiteRequest::get(inbox_path(address, "")))
            .await?;
        listed(&inbox)?;
        Ok(inbox)
    }

    /// The ids in the inbox of an address.
    pub(super) async fn inbox_ids(&self, address: &str) -> CaseStep<Vec<String>> {
        Ok(ids(&self.inbox(address).await?))
    }

    /// The entry of a message in the inbox of an address.
    pub(super) async fn entry(&self, address: &str, id: &str) -> CaseStep<Value> {
        entry_of(&self.inbox(address).await?, address, id)
    }

    /// Says that messages were read, or acknowledged.
    pub(super) async fn acknowledge(
        &self,
        address: &str,
        ids: &[&str],
        state: &str,
    ) -> CaseStep<Value> {
        let said = serde_json::json!({"for": address, "ids": ids, "state": state});
        self.json(SuiteRequest::new("POST", "/crosstalk/ack").json(&said))
            .await
    }
}

/// Waits if an answer says so, and the wait is over before a time.
async fn waits(answer: &SuiteAnswer, until: Instant) -> bool {
    let wait = answer.header("retry-after").parse::<u64>();
    let wait = wait.ok().filter(|_| answer.status == 429);
    let wait = wait.map(|seconds| Duration::from_secs(seconds.max(1)));
    let left = until.saturating_duration_since(Instant::now());
    let wait = wait.filter(|wait| *wait <= left);
    if let Some(wait) = wait {
        tokio::time::sleep(wait).await;
    }
    wait.is_some()
}

/// A request that hands in a text.
pub(super) fn receive(text: impl Into<bytes::Bytes>) -> SuiteRequest {
    SuiteRequest::new("POST", "/crosstalk/receive")
        .header("Content-Type", "text/plain; charset=utf-8")
        .body(text)
}

/// The path of an inbox; `more` are further parameters, each with its `&`.
pub(super) fn inbox_path(address: &str, more: &str) -> String {
    format!("/crosstalk/inbox?for={}{more}", encoded(address))
}

/// A value in a URL.
pub(super) fn encoded(text: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Makes an attempt that has to come before a time, which it is told with the seconds that are left; one that came too late
/// is made again with more time. What it gave, and the time.
pub(super) async fn in_time<T, A: Future<Output = CaseStep<T>>>(
    attempt: impl Fn(i64, Timestamp) -> A,
) -> CaseStep<(T, Timestamp)> {
    let mut tries = AHEAD_SECONDS.iter();
    loop {
        let seconds = tries.next().copied().unwrap_or_default();
        let end = from_now(seconds);
        let came = attempt(seconds, end).await;
        if came.is_ok() || !is_over(end) || tries.len() == 0 {
            return Ok((came?, end));
        }
    }
}

/// Waits until a time has passed, and a second more: clocks differ.
pub(super) async fn wait_until_past(time: Timestamp) {
    let left = time.as_millis().saturating_sub(from_now(-1).as_millis());
    let left = u64::try_from(left).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(left)).await;
}

/// Whether a time has passed.
pub(super) fn is_over(time: Timestamp) -> bool {
    from_now(0) >= time
}

/// A time from now, in seconds.
pub(super) fn from_now(seconds: i64) -> Timestamp {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(0);
    Timestamp::from_millis(now.saturating_add(seconds.saturating_mul(1000)))
}

/// The envelope of an answer: the right type, and accepted by the strict reading with the rules of its intent.
pub(super) fn envelope(answer: &SuiteAnswer) -> CaseStep<Document<'static>> {
    let kind = answer
        .header("content-type")
        .to_ascii_lowercase()
        .replace(' ', "");
    need(
        kind == "text/plain;charset=utf-8",
        "Content-Type: text/plain; charset=utf-8",
        format!(
            "Content-Type: {}; {}",
            answer.header("content-type"),
            answer.shown()
        ),
    )?;
    strict(&answer.text())
}

/// A text that the strict reading accepts.
pub(super) fn strict(text: &str) -> CaseStep<Document<'static>> {
    let mut document = Document::parse(text, Reading::Strict);
    document.check();
    let fault = document.diagnostics().iter().find(|d| d.is_error());
    if let Some(fault) = fault {
        let first = text.lines().next().unwrap_or_default();
        let got = format!("{} ({}) in: {first}", fault.message, fault.rule.id);
        return failed("an envelope that the strict reading accepts", got);
    }
    Ok(document.into_owned())
}

/// An ACK with a receipt.
pub(super) fn acked(answer: &SuiteAnswer) -> CaseStep<Document<'static>> {
    answer.require(answer.status == 200, "200 and an ACK")?;
    let ack = envelope(answer)?;
    let meaning = ack.envelope().meaning();
    answer.require(meaning == Some(Intent::Ack), "an ACK")?;
    answer.require(
        ack.meta("receipt", "Digest").is_some(),
        "an ACK with `meta: receipt`",
    )?;
    Ok(ack)
}

/// Checks a rejection with this status and code: an ERROR envelope that says why. Returns the envelope.
pub(super) fn rejected(
    answer: &SuiteAnswer,
    status: u16,
    code: ErrorCode,
) -> CaseStep<Document<'static>> {
    let expected = format!("{status} and an ERROR with {code}");
    answer.require(answer.status == status, expected.as_str())?;
    let error = envelope(answer)?;
    let is_error = error.envelope().meaning() == Some(Intent::Error);
    let has_code = error.meta("error", "Code") == Some(code.as_str());
    answer.require(is_error && has_code, expected)?;
    let says = error.meta("error", "Reason").is_some_and(|r| !r.is_empty());
    answer.require(
        says && !error.body_text().trim().is_empty(),
        "a Reason, and a body that says what to do",
    )?;
    Ok(error)
}

/// An ERROR has this code, and is about this message.
pub(super) fn reports(error: &Document<'_>, code: ErrorCode, parent: &str) -> CaseStep {
    let written = error.meta("error", "Code");
    same("Code", code.as_str(), written.unwrap_or("none"))?;
    let about = error.header(CoreHeader::Parent);
    same("parent", parent, about.unwrap_or("none"))
}

/// A JSON object with this status.
pub(super) fn object(answer: &SuiteAnswer, status: u16) -> CaseStep<Value> {
    let expected = format!("{status} and a JSON object");
    answer.require(
        answer.status == status && answer.kind() == "application/json",
        expected.as_str(),
    )?;
    match serde_json::from_slice::<Value>(&answer.body) {
        Ok(value) if value.is_object() => Ok(value),
        _ => failed(expected, answer.shown()),
    }
}

/// The messages of an inbox, which has a cursor.
pub(super) fn listed(inbox: &Value) -> CaseStep<&Vec<Value>> {
    let list = inbox.get("messages").and_then(Value::as_array);
    let has_cursor = inbox.get("cursor").is_some_and(Value::is_string);
    match list {
        Some(list) if has_cursor => Ok(list),
        _ => failed("an object with `messages` and `cursor`", inbox.to_string()),
    }
}

/// The entry of a message in an inbox.
pub(super) fn entry_of(inbox: &Value, address: &str, id: &str) -> CaseStep<Value> {
    match listed(inbox)?.iter().find(|m| word(m, "id") == id) {
        Some(entry) => Ok(entry.clone()),
        None => failed(
            format!("the message {id} in the inbox of {address}"),
            format!("{:?}", ids(inbox)),
        ),
    }
}

/// A text of an object; empty if it is not there.
pub(super) fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list in an object.
pub(super) fn words(value: &Value, key: &str) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The ids of the messages of an inbox.
pub(super) fn ids(inbox: &Value) -> Vec<String> {
    let list = inbox.get("messages").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .map(|m| word(m, "id").to_owned())
        .collect()
}

/// Passes a case over that this credential can't run.
pub(super) fn allowed(answer: &SuiteAnswer, what: &str) -> CaseStep {
    match answer.status {
        401 | 403 => skipped(format!("this credential may not {what}")),
        _ => Ok(()),
    }
}

/// A request by another token.
pub(super) fn by(token: &str, request: SuiteRequest) -> SuiteRequest {
    request.by(Credential::Token(token.to_owned()))
}
