//! Batches: many envelopes in one request. The relay splits them while they come in, accepts them together and answers in their order.

use super::body::{Body, BodyLimits, BodyReader};
use super::media::Media;
use super::response::{self, HttpError, Response};
use super::router::Call;
use crate::core::Prepared;
use bytes::{Bytes, BytesMut};
use crosstalk_envelope::limit;
use crosstalk_envelope::registry::ErrorCode;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};

/// How many envelopes a batch may have.
const MAX_BATCH_ENVELOPES: usize = 10_000;
/// How many are under way at once, and of these, how many are read and checked: those take turns with the requests of others.
const MAX_IN_FLIGHT: usize = 512;
const MAX_PREPARING: usize = 64;
/// The line that ends an envelope.
const END: &[u8] = b"[[END]]";

pub(super) async fn receive(
    call: &Call,
    body: Body,
    time: Duration,
) -> Result<Response, HttpError> {
    let bounds = BodyLimits {
        bytes: limit::PASTE_BYTES as u64,
        time,
    };
    let (server, caller) = (&call.server, &call.caller);
    // Each message is read and checked by a task of its own, on whichever core is free.
    let prepare = |piece: Bytes| {
        let counted = server.check_rate(caller);
        let (server, caller) = (Arc::clone(server), caller.clone());
        let task = tokio::spawn(async move {
            // Its credential may have been revoked while the batch came.
            let checked = match counted {
                Ok(()) => server.check_credential(&caller).await,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = checked {
                return Err(fault.envelope());
            }
            let prepared = server.relay.begin(&piece, &caller.peer).await;
            let owned = prepared.map(Prepared::into_owned);
            owned.map_err(|refused| refused.answer().to_owned())
        });
        result_of(task)
    };
    let accept = |prepared| async move {
        match prepared {
            Ok(prepared) => {
                let received = server.relay.accept(prepared, &caller.peer).await;
                received.answer().to_owned()
            }
            Err(answer) => answer,
        }
    };
    let mut pieces = Pieces::default();
    let mut pipeline = Pipeline::new(accept);
    let mut reader = BodyReader::new(body, bounds)?;
    let mut is_full = false;
    // The messages move on while the body is awaited: a future that is not polled would hold up the others.
    let broken = loop {
        let part = tokio::select! {
            biased;
            part = reader.next(), if pipeline.has_room() => part,
            () = pipeline.advance(), if !pipeline.is_empty() => continue,
        };
        match part {
            Err(fault) => break Some(fault),
            Ok(None) => {
                if let Some(piece) = pieces.rest().filter(|_| !is_full) {
                    pipeline.add(prepare(piece));
                }
                break None;
            }
            // A client that is still sending would not read the answer.
            Ok(Some(_)) if is_full => continue,
            Ok(Some(part)) => pieces.add(part),
        }
        while let Some(piece) = pieces.next() {
            is_full = pipeline.count == MAX_BATCH_ENVELOPES;
            if is_full {
                break;
            }
            pipeline.add(prepare(piece));
        }
    };
    let too_many = || {
        let (what, help) = (
            format!("A batch has at most {MAX_BATCH_ENVELOPES} envelopes."),
            "send the others in another one.",
        );
        HttpError::new(ErrorCode::TooLarge, what, help)
    };
    let broken = broken.or_else(|| is_full.then(too_many));
    let answers = pipeline.finish().await;
    match broken {
        None if answers.is_empty() => Err(HttpError::format(
            "There is no envelope in the batch.",
            "send at least one.",
        )),
        None => Ok(response::with_media(Media::Batch, answers.into())),
        Some(fault) if answers.is_empty() => Err(fault),
        // The envelopes before it were accepted: their answers come first, then the error.
        Some(fault) => Ok(fault.render_after(answers)),
    }
}

/// What a task returns. Its panic is one of the request.
async fn result_of<T>(task: JoinHandle<T>) -> T {
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime ends, and polls nobody again.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// Messages that are prepared side by side, accepted in their order, and answered in their order.
struct Pipeline<P: Future, A: Future, F> {
    preparing: FuturesOrdered<P>,
    accept: F,
    accepting: FuturesOrdered<A>,
    answers: String,
    count: usize,
}

impl<P, A, F> Pipeline<P, A, F>
where
    P: Future,
    A: Future<Output = String>,
    F: Fn(P::Output) -> A,
{
    fn new(accept: F) -> Self {
        Self {
            preparing: FuturesOrdered::new(),
            accept,
            accepting: FuturesOrdered::new(),
            answers: String::new(),
            count: 0,
        }
    }

    fn has_room(&self) -> bool {
        self.preparing.len() < MAX_PREPARING
            && self.preparing.len() + self.accepting.len() < MAX_IN_FLIGHT
    }

    fn is_empty(&self) -> bool {
        self.preparing.is_empty() && self.accepting.is_empty()
    }

    fn add(&mut self, piece: P) {
        self.count += 1;
        self.preparing.push_back(piece);
    }

    /// Waits until the next message is prepared or answered. All of them go on meanwhile.
    async fn advance(&mut self) {
        tokio::select! {
            biased;
            Some(prepared) = self.preparing.next(), if !self.preparing.is_empty() => {
                self.accepting.push_back((self.accept)(prepared));
            }
            Some(answer) = self.accepting.next(), if !self.accepting.is_empty() => {
                if !self.answers.is_empty() {
                    self.answers.push('\n');
                }
                self.answers.push_str(&answer);
            }
        }
    }

    async fn finish(mut self) -> String {
        while !self.is_empty() {
            self.advance().await;
        }
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
    /// Whether the text begins with the rest of an envelope that was too large and is skipped.
    is_cut: bool,
}

impl Pieces {
    fn add(&mut self, part: Bytes) {
        match self.text.is_empty() {
            // The bytes are not copied if they have no other owner.
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

    /// The rest after the last message, if there is any.
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
    async fn messages_are_accepted_and_answered_in_their_order() {
        let accepted = std::cell::RefCell::new(Vec::new());
        let pause = async |times: usize| {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        };
        let mut pipeline = Pipeline::new(|n: usize| {
            let accepted = &accepted;
            async move {
                accepted.borrow_mut().push(n);
                pause(n % 5).await;
                n.to_string()
            }
        });
        for n in 0..MAX_IN_FLIGHT * 3 {
            while !pipeline.has_room() {
                pipeline.advance().await;
            }
            pipeline.add(async move {
                pause(n % 3).await;
                n
            });
        }
        let wanted: Vec<String> = (0..MAX_IN_FLIGHT * 3).map(|n| n.to_string()).collect();
        assert_eq!(pipeline.finish().await, wanted.join("\n"));
        assert!(accepted.borrow().is_sorted());
    }
}
