//! Many envelopes in one request: cut apart while they come in, taken together, answered in their order.

use super::answer::{self, Answer, Fault};
use super::body::{Body, Bounds, Reader};
use super::media::Media;
use super::surface::Call;
use crate::core::Received;
use bytes::{Bytes, BytesMut};
use crosstalk_envelope::limit;
use crosstalk_envelope::registry::ErrorCode;
use http::StatusCode;
use http::header::CONNECTION;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// How many envelopes a batch may have.
const PIECES: usize = 10_000;
/// How many wait to be written at once.
const AT_ONCE: usize = 512;
/// The line that ends an envelope.
const END: &[u8] = b"[[END]]";

pub(super) async fn receive(call: &mut Call<'_>, time: Duration) -> Result<Answer, Fault> {
    let bounds = Bounds {
        bytes: limit::PASTE_BYTES as u64,
        time,
    };
    let (site, caller) = (call.site, &call.caller);
    let take = |piece: Bytes| async move {
        // Its credential may have been revoked while the batch came.
        if let Err(fault) = site.allow(caller).and_then(|()| site.still(caller)) {
            return fault.envelope();
        }
        match site.relay.receive(&piece, &caller.peer).await {
            Received::Taken { answer, .. } | Received::Refused { answer, .. } => answer,
        }
    };
    let mut pieces = Pieces::default();
    let mut line = Queue::default();
    let mut reader = Reader::new(call.body, bounds)?;
    let broken = loop {
        match reader.next().await {
            Err(fault) => break Some(fault),
            Ok(None) => {
                if let Some(piece) = pieces.rest() {
                    line.add(take(piece)).await;
                }
                break None;
            }
            Ok(Some(part)) => pieces.add(part),
        }
        let mut is_full = false;
        while let Some(piece) = pieces.next() {
            is_full = line.count == PIECES;
            if is_full {
                break;
            }
            line.add(take(piece)).await;
        }
        if is_full {
            // Who is still sending would not read the answer.
            while let Ok(Some(_)) = reader.next().await {}
            break Some(Fault::new(
                ErrorCode::TooLarge,
                format!(
                    "A batch has at most {PIECES} envelopes.\nWhat to do: send the others in another one."
                ),
            ));
        }
    };
    let mut answers = line.finish().await;
    match broken {
        None if answers.is_empty() => Err(Fault::format(
            "There is no envelope in the batch.\nWhat to do: send at least one.",
        )),
        None => Ok(answer::of(Media::Batch, Body::Full(answers.into()))),
        Some(fault) if answers.is_empty() => Err(fault),
        // What came before was taken: its answers come first, then why the rest was not.
        Some(fault) => {
            let refused = fault.answer(false);
            let (parts, body) = refused.into_parts();
            if let Body::Full(error) = body {
                answers.push('\n');
                answers.push_str(&String::from_utf8_lossy(&error));
            }
            let mut answer = answer::of(Media::Batch, Body::Full(answers.into()));
            *answer.status_mut() = parts.status;
            if let Some(closes) = parts.headers.get(CONNECTION) {
                answer.headers_mut().insert(CONNECTION, closes.clone());
            }
            debug_assert_ne!(parts.status, StatusCode::OK);
            Ok(answer)
        }
    }
}

/// Work in its order. Each piece of it is begun when it is added, so that the first is written before the second.
struct Queue<F> {
    line: VecDeque<Slot<F>>,
    answers: String,
    count: usize,
}

enum Slot<F> {
    Running(Pin<Box<F>>),
    Done(String),
}

impl<F> Default for Queue<F> {
    fn default() -> Self {
        Self {
            line: VecDeque::new(),
            answers: String::new(),
            count: 0,
        }
    }
}

impl<F: Future<Output = String>> Queue<F> {
    async fn add(&mut self, work: F) {
        if self.line.len() >= AT_ONCE {
            // They are written together, so that some more are done when the first one is.
            self.wait_until(AT_ONCE / 2).await;
        }
        self.count += 1;
        let mut work = Box::pin(work);
        let begun = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        self.line.push_back(match begun {
            Poll::Ready(answer) => Slot::Done(answer),
            Poll::Pending => Slot::Running(work),
        });
    }

    async fn wait_until(&mut self, left: usize) {
        while self.line.len() > left
            && let Some(first) = self.line.pop_front()
        {
            let answer = match first {
                Slot::Running(work) => work.await,
                Slot::Done(answer) => answer,
            };
            if !self.answers.is_empty() {
                self.answers.push('\n');
            }
            self.answers.push_str(&answer);
        }
    }

    async fn finish(mut self) -> String {
        self.wait_until(0).await;
        self.answers
    }
}

/// Envelopes, cut out of a text that comes in parts.
#[derive(Default)]
struct Pieces {
    text: BytesMut,
    /// Where the last line begins: no line before it ends an envelope.
    seen: usize,
    /// Where to look for the end of that line: parts may be small, and nothing is looked at twice.
    searched: usize,
    /// Whether what is there is the rest of an envelope that was too large and is given up.
    is_cut: bool,
}

impl Pieces {
    fn add(&mut self, part: Bytes) {
        match self.text.is_empty() {
            // Nothing is copied if nobody else has it.
            true => self.text = part.into(),
            false => self.text.extend_from_slice(&part),
        }
    }

    /// The next envelope that is complete. Of one that is too large, as much as shows that it is.
    fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(length) = self.end() else {
                let most = limit::ENVELOPE_BYTES + 1;
                if self.is_cut {
                    // Only the last line may go on.
                    self.drop_front(self.seen);
                    if self.text.len() > END.len() + 1024 {
                        self.text.clear();
                        self.searched = 0;
                    }
                    return None;
                }
                if self.text.len() <= most + END.len() {
                    return None;
                }
                self.is_cut = true;
                return Some(self.drop_front(most).freeze());
            };
            let piece = self.drop_front(length);
            if std::mem::take(&mut self.is_cut) || is_blank(&piece) {
                continue;
            }
            return Some(piece.freeze());
        }
    }

    /// Takes the beginning away.
    fn drop_front(&mut self, length: usize) -> BytesMut {
        self.seen = self.seen.saturating_sub(length);
        self.searched = self.searched.saturating_sub(length);
        self.text.split_to(length)
    }

    /// What is left at the end, if it is anything.
    fn rest(&mut self) -> Option<Bytes> {
        let rest = std::mem::take(&mut self.text);
        (!self.is_cut && !is_blank(&rest)).then(|| rest.freeze())
    }

    /// Where the first line that ends an envelope ends.
    fn end(&mut self) -> Option<usize> {
        loop {
            let rest = self.text.get(self.searched..)?;
            let Some(length) = rest.iter().position(|b| *b == b'\n') else {
                self.searched = self.text.len();
                return None;
            };
            let end = self.searched + length;
            let is_end = self.text.get(self.seen..end)?.trim_ascii_end() == END;
            self.seen = end + 1;
            self.searched = self.seen;
            if is_end {
                return Some(self.seen);
            }
        }
    }
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut pieces, mut out) = (Pieces::default(), Vec::new());
        for part in parts {
            pieces.add(Bytes::copy_from_slice(part));
            while let Some(piece) = pieces.next() {
                out.push(piece.to_vec());
            }
        }
        out.extend(pieces.rest().map(|p| p.to_vec()));
        out
    }

    #[test]
    fn a_text_is_cut_after_each_end_wherever_its_parts_end() {
        let text = b"[[A\n  [[END]]\n[[END]]\n\n[[B\n[[END]] \t\r\n \n[[C\nx[[END]]\n[[END]]\n\n";
        let wanted: [&[u8]; 3] = [
            b"[[A\n  [[END]]\n[[END]]\n",
            b"\n[[B\n[[END]] \t\r\n",
            b" \n[[C\nx[[END]]\n[[END]]\n",
        ];
        assert_eq!(cut(&[text]), wanted);
        for place in 0..text.len() {
            let (one, other) = text.split_at(place);
            assert_eq!(cut(&[one, other]), wanted, "{place}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(cut(&bytes), wanted);
        assert_eq!(cut(&[b"[[A\n[[END]]"]), [b"[[A\n[[END]]"]);
        assert_eq!(
            cut(&[b"[[A\n[[END]]\nrest"]),
            [&b"[[A\n[[END]]\n"[..], b"rest"]
        );
        assert!(cut(&[b" \n\n"]).is_empty() && cut(&[]).is_empty());
    }

    #[test]
    fn an_envelope_that_is_too_large_is_given_up_and_the_next_one_is_not() {
        let most = limit::ENVELOPE_BYTES;
        let mut text = vec![b'x'; most - 8];
        text.extend_from_slice(b"\n[[END]]\n");
        assert_eq!(text.len(), most + 1);
        text.extend_from_slice(b"[[B\n[[END]]\n");
        let lengths = |parts: &[&[u8]]| cut(parts).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[&text]), [most + 1, 12]);
        for size in [most + 20, most + 100_000, 3 * most] {
            let mut text = b"line\n".repeat(size / 5);
            text.extend_from_slice(b"[[END]]\n[[B\n[[END]]\n");
            for chunk in [1000, 65_536, text.len()] {
                let parts: Vec<&[u8]> = text.chunks(chunk).collect();
                let lengths = lengths(&parts);
                assert!(lengths.first().is_some_and(|l| *l > most), "{size} {chunk}");
                assert_eq!(
                    (lengths.len(), lengths.last()),
                    (2, Some(&12)),
                    "{size} {chunk}"
                );
            }
            assert_eq!(cut(&[&vec![b'x'; size]]).len(), 1);
        }
    }

    #[test]
    fn nothing_is_looked_at_twice_however_small_the_parts_are() {
        let most = limit::ENVELOPE_BYTES;
        let mut pieces = Pieces::default();
        for n in 0..2 * most {
            pieces.add(Bytes::from_static(b"a"));
            assert_eq!(pieces.next().is_some(), n == most + 1 + END.len());
            assert_eq!(pieces.searched, pieces.text.len(), "{n}");
        }
        pieces.add(Bytes::from_static(b"\n[[END]]\n[[B\n[[END]]\n"));
        assert_eq!(pieces.next().as_deref(), Some(&b"[[B\n[[END]]\n"[..]));
    }

    #[tokio::test]
    async fn work_is_begun_and_answered_in_its_order() {
        let begun = std::cell::RefCell::new(Vec::new());
        let mut queue = Queue::default();
        for n in 0..AT_ONCE * 3 {
            let begun = &begun;
            queue
                .add(async move {
                    begun.borrow_mut().push(n);
                    for _ in 0..n % 3 {
                        tokio::task::yield_now().await;
                    }
                    format!("{n}")
                })
                .await;
        }
        let wanted: Vec<String> = (0..AT_ONCE * 3).map(|n| n.to_string()).collect();
        assert_eq!(queue.finish().await, wanted.join("\n"));
        assert!(begun.borrow().is_sorted());
    }
}
