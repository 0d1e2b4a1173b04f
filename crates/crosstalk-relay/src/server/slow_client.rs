//! Slow-client timeouts: deadlines for the head of a request, for an idle connection and for reading a response.
//!
//! One timer serves a connection for its whole life. It is set again only if a deadline is earlier than the one it is set to, so that a
//! request that comes in one piece costs no timer at all.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Nothing of a request has come.
const IDLE: u8 = 0;
/// Some of the head has come.
const HEAD: u8 = 1;
/// A request is worked on; the reader of its body watches how fast it comes.
const BUSY: u8 = 2;
/// Its answer is a stream that has not ended.
const STREAMING: u8 = 3;

/// The phase of a connection, shared by the handler and the stream below.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase(Arc<AtomicU8>);

impl Phase {
    /// A request is there.
    pub(super) fn busy(&self) {
        self.0.store(BUSY, Ordering::Relaxed);
    }

    /// The answer is made, and a stream goes on by itself.
    pub(super) fn answered(&self) {
        let (order, other) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.0.compare_exchange(BUSY, IDLE, order, other);
    }

    /// The answer is a stream.
    pub(super) fn stream(&self) -> Streaming {
        self.0.store(STREAMING, Ordering::Relaxed);
        Streaming(self.clone())
    }

    /// Whether a request began and its head is not complete.
    pub(super) fn is_in_head(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HEAD
    }
}

/// The connection is idle again when this is dropped: an answer that is a stream has come to its end.
pub(super) struct Streaming(Phase);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.0.store(IDLE, Ordering::Relaxed);
    }
}

/// How long everything may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    pub(super) head: Duration,
    pub(super) idle: Duration,
    pub(super) write: Duration,
}

/// A stream that ends when the other side is too slow.
pub(super) struct TimeoutStream<S> {
    stream: S,
    phase: Phase,
    deadlines: Deadlines,
    timer: Pin<Box<Sleep>>,
    /// What the read deadline is for, and when it is.
    reading: (u8, Instant),
    /// Until when the client has to read some of the bytes that wait.
    writing: Option<Instant>,
}

impl<S> TimeoutStream<S> {
    /// A stream of a connection that was just made: the first request has to begin within the deadline of a head.
    pub(super) fn new(stream: S, phase: Phase, deadlines: Deadlines) -> Self {
        let first = Instant::now() + deadlines.head;
        Self {
            stream,
            phase,
            deadlines,
            timer: Box::pin(tokio::time::sleep_until(first)),
            reading: (IDLE, first),
            writing: None,
        }
    }

    /// The stream.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Waits no longer than this.
    fn not_after(&mut self, until: Instant, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.timer.deadline() > until {
            self.timer.as_mut().reset(until);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= until {
                return Poll::Ready(io::Error::from(io::ErrorKind::TimedOut));
            }
            self.timer.as_mut().reset(until);
        }
    }

    fn read_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let phase = self.phase.0.load(Ordering::Relaxed);
        if matches!(phase, BUSY | STREAMING) || self.writing.is_some() {
            self.reading.0 = BUSY;
            return Poll::Pending;
        }
        if self.reading.0 != phase {
            let most = match phase {
                HEAD => self.deadlines.head,
                _ => self.deadlines.idle,
            };
            self.reading = (phase, Instant::now() + most);
        }
        self.not_after(self.reading.1, cx)
    }

    /// What became of an attempt to write: no progress for too long is an error.
    fn written<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.writing = None;
            if self.phase.0.load(Ordering::Relaxed) == IDLE {
                // A response is out. The next read comes with the next bytes, so that the deadline is set here.
                let _ = self.read_late(cx);
            }
            return outcome;
        }
        let most = self.deadlines.write;
        let until = *self.writing.get_or_insert_with(|| Instant::now() + most);
        self.not_after(until, cx).map(Err)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Pending => self.read_late(cx).map(Err),
            ready => {
                if buf.filled().len() > before && self.phase.0.load(Ordering::Relaxed) == IDLE {
                    self.phase.0.store(HEAD, Ordering::Relaxed);
                    // A request has begun: the deadlines before it are over.
                    self.reading.0 = BUSY;
                }
                ready
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(outcome, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
