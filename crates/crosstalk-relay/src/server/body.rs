//! Bodies: streamed ones of responses, and those of requests, which are read with a limit and a deadline.

use super::response::HttpError;
use super::slow_client::{Phase, Streaming};
pub(super) use axum::body::Body;
use bytes::{Bytes, BytesMut};
use crosstalk_envelope::registry::ErrorCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A client that sends fewer bytes a second, after the deadline of every body, is too slow.
const MIN_BYTES_PER_SECOND: u64 = 16 << 10;

/// The body of an answer that comes in parts.
struct StreamedBody {
    parts: mpsc::Receiver<Bytes>,
    /// How much is left, where it is known.
    left: Option<u64>,
    /// The connection is not idle before it has ended.
    _streaming: Streaming,
}

/// A body that comes in parts, of a length that is known or not. The connection is busy until it has ended.
pub(super) fn stream(phase: &Phase, length: Option<u64>) -> (mpsc::Sender<Bytes>, Body) {
    // One part at a time: a part that was not sent yet can still be withheld.
    let (send, parts) = mpsc::channel(1);
    let body = StreamedBody {
        parts,
        left: length,
        _streaming: phase.stream(),
    };
    (send, Body::new(body))
}

impl hyper::body::Body for StreamedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(cx).map(|part| {
            let part = part?;
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            self.left = self.left.map(|left| left.saturating_sub(length));
            Some(Ok(Frame::data(part)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// How a body is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    /// How many bytes at most.
    pub(super) bytes: u64,
    /// For how long at most, besides what a slow line needs.
    pub(super) time: Duration,
}

/// Reads a body part by part.
pub(super) struct BodyReader {
    body: Body,
    bounds: BodyLimits,
    began: Instant,
    came: u64,
}

impl BodyReader {
    /// Reads a body, unless it says beforehand that it is too large.
    pub(super) fn new(body: Body, bounds: BodyLimits) -> Result<Self, HttpError> {
        match body.size_hint().lower() > bounds.bytes {
            true => Err(too_large(bounds.bytes)),
            false => Ok(Self {
                body,
                bounds,
                began: Instant::now(),
                came: 0,
            }),
        }
    }

    /// The next part; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let slack = Duration::from_secs(self.came / MIN_BYTES_PER_SECOND);
            let until = self.began + self.bounds.time + slack;
            let frame = tokio::time::timeout_at(until, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| too_slow())? else {
                return Ok(None);
            };
            let Ok(part) = frame.map_err(|e| broken(&e))?.into_data() else {
                // Trailers say nothing here.
                continue;
            };
            self.came += u64::try_from(part.len()).unwrap_or(u64::MAX);
            if self.came > self.bounds.bytes {
                return Err(too_large(self.bounds.bytes));
            }
            return Ok(Some(part));
        }
    }
}

/// All of a body. If it came in one piece, as it came.
pub(super) async fn collect(body: Body, bounds: BodyLimits) -> Result<Bytes, HttpError> {
    let expected = body.size_hint().exact();
    let mut reader = BodyReader::new(body, bounds)?;
    let Some(first) = reader.next().await? else {
        return Ok(Bytes::new());
    };
    if u64::try_from(first.len()).ok() == expected {
        return Ok(first);
    }
    let room = expected.and_then(|e| usize::try_from(e).ok());
    let mut all = BytesMut::with_capacity(room.unwrap_or(first.len() * 2));
    all.extend_from_slice(&first);
    while let Some(part) = reader.next().await? {
        all.extend_from_slice(&part);
    }
    Ok(all.freeze())
}

/// Reads the rest of a body that no handler wants, so that the client gets to read the response: a connection that is
/// closed while something is still coming loses what was sent.
pub(super) async fn drain(mut body: impl hyper::body::Body<Data = Bytes> + Unpin) {
    const MOST: usize = 4 << 20;
    let mut came = 0;
    let until = Instant::now() + Duration::from_secs(1);
    while came < MOST && !body.is_end_stream() {
        match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => came += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

fn too_large(most: u64) -> HttpError {
    HttpError::new(
        ErrorCode::TooLarge,
        format!("The body of the request is larger than {most} bytes, which is the limit here."),
        "send it in parts, or as an attachment.",
    )
}

fn too_slow() -> HttpError {
    let (what, help) = (
        "The body of the request did not come in time.",
        "send it again, over a faster line.",
    );
    HttpError::new(ErrorCode::Timeout, what, help)
        .status(408)
        .closing()
}

fn broken(error: &axum::Error) -> HttpError {
    let (what, help) = (
        format!("The body of the request could not be read: {error}."),
        "send it again.",
    );
    HttpError::new(ErrorCode::Format, what, help).closing()
}
