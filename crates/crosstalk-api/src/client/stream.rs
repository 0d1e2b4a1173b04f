//! Messages of an inbox as they come: server-sent events.

use super::{Client, ClientError, MessageView, RequestTarget, rejection_of};
use crate::Media;
use crate::outbound::{HttpConnection, HttpResponse, OutboundError};
use crosstalk_envelope::limit;
use http::StatusCode;
use http::header::ACCEPT;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::Instant;

/// How long nothing may come, not even a comment.
const QUIET: Duration = Duration::from_secs(120);
/// The largest event: one message.
const EVENT_BYTES: usize = super::MESSAGE_BYTES as usize;

/// Messages as they come. It ends when the relay ends it; [`InboxStream::cursor`] says where to go on.
pub struct InboxStream {
    body: Incoming,
    events: EventParser,
    cursor: Option<String>,
    /// Without it, the connection would be closed.
    _line: HttpConnection,
}

impl InboxStream {
    /// Opens a stream on a connection of its own.
    pub(crate) async fn open(
        client: &Client,
        target: RequestTarget,
        after: Option<&str>,
    ) -> Result<Self, ClientError> {
        let call = client.call(target)?;
        let call = call.header(ACCEPT, Media::Events.name())?;
        let (until, within) = (Instant::now() + call.within, call.within);
        let work = async {
            let mut line = client.outbound.connect(&call.url, true, until).await?;
            let response = line.send(call).await?;
            Ok::<_, OutboundError>((line, response))
        };
        let opened = tokio::time::timeout_at(until, work).await;
        let (line, response) = opened.map_err(|_| OutboundError::Late(within))??;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            let body = Limited::new(body, limit::ENVELOPE_BYTES).collect();
            let body = tokio::time::timeout_at(until, body).await;
            let body = body.ok().and_then(Result::ok).map(|b| b.to_bytes());
            return Err(ClientError::Rejected(Box::new(rejection_of(
                &HttpResponse {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body: body.unwrap_or_default(),
                },
            ))));
        }
        Ok(Self {
            body,
            events: EventParser::default(),
            cursor: after.map(str::to_owned),
            _line: line,
        })
    }

    /// The next message; nothing when the stream has ended.
    ///
    /// # Errors
    /// If the connection broke, or what came can't be read.
    pub async fn next(&mut self) -> Result<Option<MessageView>, ClientError> {
        loop {
            while let Some(event) = self.events.next() {
                if let Some(id) = event.id {
                    self.cursor = Some(id);
                }
                if event.kind == "message" && !event.data.is_empty() {
                    let message = serde_json::from_str(&event.data);
                    return message.map(Some).map_err(|e| unreadable(e.to_string()));
                }
            }
            let frame = tokio::time::timeout(QUIET, self.body.frame())
                .await
                .map_err(|_| OutboundError::Late(QUIET))?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|e| OutboundError::Broken {
                url: "the stream".into(),
                reason: e.to_string(),
                was_sent: true,
            })?;
            if let Some(data) = frame.data_ref() {
                self.events.feed(data);
            }
            if self.events.pending_bytes() > EVENT_BYTES {
                return Err(unreadable("an event is too large".into()));
            }
        }
    }

    /// The place after the last message that was given out.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

fn unreadable(reason: String) -> ClientError {
    ClientError::Unreadable {
        status: 200,
        reason,
    }
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
struct ParsedEvent {
    kind: String,
    id: Option<String>,
    data: String,
}

/// EventParser out of bytes.
#[derive(Debug, Default)]
struct EventParser {
    buffer: Vec<u8>,
    current: ParsedEvent,
}

impl EventParser {
    fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait for the end of their event.
    fn pending_bytes(&self) -> usize {
        self.buffer.len() + self.current.data.len()
    }

    /// The next whole event.
    fn next(&mut self) -> Option<ParsedEvent> {
        loop {
            let end = self.buffer.iter().position(|b| *b == b'\n')?;
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let mut event = std::mem::take(&mut self.current);
                if event.data.is_empty() && event.id.is_none() {
                    continue;
                }
                event.data.pop();
                if event.kind.is_empty() {
                    event.kind = "message".into();
                }
                return Some(event);
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => self.current.kind = value.to_owned(),
                "id" => self.current.id = Some(value.to_owned()),
                "data" => {
                    self.current.data.push_str(value);
                    self.current.data.push('\n');
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_event_that_never_ends_count_together() {
        let mut events = EventParser::default();
        for _ in 0..10 {
            events.feed(b"data: 12345\n");
            assert!(events.next().is_none());
        }
        events.feed(b"data: 1");
        assert!(events.pending_bytes() > 60, "{}", events.pending_bytes());
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = ": hello\n\nevent: message\r\nid: 7\ndata: {\"a\":\ndata: 1}\n\nid: 8\n\ndata: x\n\ndata: cut";
        for step in [1, 2, 3, 7, text.len()] {
            let mut events = EventParser::default();
            let mut got = Vec::new();
            for part in text.as_bytes().chunks(step) {
                events.feed(part);
                while let Some(event) = events.next() {
                    got.push((event.kind, event.id, event.data));
                }
            }
            let event = |id: Option<&str>, data: &str| {
                ("message".to_owned(), id.map(str::to_owned), data.to_owned())
            };
            let wanted = [
                event(Some("7"), "{\"a\":\n1}"),
                event(Some("8"), ""),
                event(None, "x"),
            ];
            assert_eq!(got, wanted, "{step}");
        }
    }
}
