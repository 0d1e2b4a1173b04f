//! The output of a command: bounded, and read as an answer.

use crate::delivery::HandlerReply;
use crosstalk_api::client::one_line;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::{Printed, TRUNCATED_OUTPUT};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{oneshot, watch};

/// How much is read at once.
const PIECE: usize = 16 << 10;
/// How much of what a command complains is kept: the end of it.
const TAIL: usize = 400;

/// Tells when reading has to end though the pipe is open.
#[derive(Clone)]
pub(in crate::delivery) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// So long after something has ended.
    pub(in crate::delivery) fn after(ended: oneshot::Receiver<()>, wait: Duration) -> Self {
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            // If the attempt is cut off, no task waits for it.
            if ended.await.is_ok() {
                tokio::time::sleep(wait).await;
            }
            let _ = tell.send(true);
        });
        Self(told)
    }

    async fn told(&mut self) {
        // Without a sender there is nothing to wait for.
        let _ = self.0.wait_for(|told| *told).await;
    }
}

/// One piece; nothing at the end.
async fn piece(from: &mut (impl AsyncRead + Unpin), buffer: &mut [u8], stop: &mut Stop) -> usize {
    tokio::select! {
        biased;
        read = from.read(buffer) => read.unwrap_or(0),
        () = stop.told() => 0,
    }
}

/// Everything that comes; nothing if it is more than so many bytes.
pub(super) async fn whole(
    from: Option<impl AsyncRead + Unpin>,
    most: u64,
    mut stop: Stop,
) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let Some(mut from) = from else {
        return Some(output);
    };
    let mut buffer = vec![0; PIECE];
    loop {
        let count = piece(&mut from, &mut buffer, &mut stop).await;
        let read = buffer.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Some(output);
        }
        output.extend_from_slice(read);
        if u64::try_from(output.len()).unwrap_or(u64::MAX) > most {
            return None;
        }
    }
}

/// The end of what comes.
#[derive(Default)]
pub(in crate::delivery) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    pub(in crate::delivery) async fn read(
        &mut self,
        from: Option<impl AsyncRead + Unpin>,
        mut stop: Stop,
    ) {
        let Some(mut from) = from else { return };
        let mut buffer = vec![0; PIECE];
        loop {
            let count = piece(&mut from, &mut buffer, &mut stop).await;
            let read = buffer.get(..count).unwrap_or_default();
            if read.is_empty() {
                return;
            }
            self.bytes.extend_from_slice(read);
            let surplus = self.bytes.len().saturating_sub(TAIL);
            self.bytes.drain(..surplus);
        }
    }

    /// What it says, for the end of a reason.
    pub(in crate::delivery) fn complaint(&self) -> String {
        let words = one_line(&String::from_utf8_lossy(&self.bytes));
        match words.is_empty() {
            true => String::new(),
            false => format!("; it says: {words}"),
        }
    }
}

/// The answer in what a command printed: its envelopes, else the text; nothing if it printed nothing.
///
/// # Errors
/// Why it is no answer.
pub(super) fn reply(output: &[u8], given: &str) -> Result<Option<HandlerReply>, &'static str> {
    let text = std::str::from_utf8(output).map_err(|_| "printed something that is not UTF-8")?;
    let text = plain(text);
    let given = Document::parse(given, Reading::Strict);
    match Printed::read(&text, &given) {
        Printed::Nothing => Ok(None),
        Printed::Text(text) => Ok(Some(HandlerReply::Text(text.trim_matches('\n').to_owned()))),
        Printed::Envelopes(found) => Ok(Some(HandlerReply::Envelopes(
            found.iter().map(strict).collect(),
        ))),
        Printed::Truncated => Err(TRUNCATED_OUTPUT),
    }
}

/// An envelope as it was printed, where the strict reading takes it; else repaired.
fn strict(document: &Document<'_>) -> String {
    let source = document.source();
    let mut as_printed = Document::parse(source, Reading::Strict);
    as_printed.check();
    match as_printed.is_accepted() {
        true => source.to_owned(),
        false => document.to_well_formed(),
    }
}

/// A text without the marks of a terminal: colours, carriage returns, controls.
pub(in crate::delivery) fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // A sequence ends with a letter or one of a few other characters.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // A title ends with a bell or an escape.
                Some(']') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: &str = "[[BOB→ANN v1]]\nuser: bob\nthread: T1\nparent: M1\ncontext: c\nintent: RESPOND\nbody: |\n  Yes.\nsig: none\n[[END]]\n";

    const QUESTION: &str = "[[ANN→BOB v1]]\nuser: ann\nthread: T1\nmessage: M1\ncontext: c\nintent: REQUEST\nbody: |\n  Ready?\nsig: none\n[[END]]\n";

    #[test]
    fn an_envelope_is_found_in_what_is_printed() {
        for text in [
            ENVELOPE.to_owned(),
            format!("Sure:\n\n```\n{ENVELOPE}```\nDone."),
            format!("\u{1b}[32m{ENVELOPE}\u{1b}[0m"),
            ENVELOPE.replace('\n', "\r\n"),
            format!(
                "{}\n{ENVELOPE}",
                crosstalk_protocol::primer(crosstalk_protocol::Assistant::Any)
            ),
        ] {
            let Ok(Some(HandlerReply::Envelopes(found))) = reply(text.as_bytes(), QUESTION) else {
                panic!("{text}");
            };
            let [found] = found.as_slice() else {
                panic!("{found:?}");
            };
            let document = Document::parse(found, Reading::Strict);
            assert!(document.is_accepted(), "{found}");
            assert_eq!(document.body_text(), "Yes.");
        }
    }

    #[test]
    fn anything_else_is_text_or_nothing() {
        for (text, wanted) in [
            ("Yes.\n", Some("Yes.")),
            (
                "\u{1b}]0;title\u{7}\u{1b}[1mYes\u{1b}[0m\u{8}.\r\n",
                Some("Yes."),
            ),
            ("a\rb", Some("a\nb")),
            ("", None),
            (" \n\t\n", None),
            ("\u{1b}[2J", None),
        ] {
            let wanted = wanted.map(|t| HandlerReply::Text(t.into()));
            assert_eq!(reply(text.as_bytes(), QUESTION), Ok(wanted), "{text:?}");
        }
        // What it got, and something of its own.
        let quoted = format!("You asked:\n{QUESTION}Yes.\n");
        assert_eq!(
            reply(quoted.as_bytes(), QUESTION),
            Ok(Some(HandlerReply::Text(quoted.trim_end().into())))
        );
    }

    #[test]
    fn cut_off_output_is_no_answer() {
        let cut = ENVELOPE.split("sig:").next().unwrap();
        for text in [cut.to_owned(), format!("{ENVELOPE}\n{cut}more")] {
            assert_eq!(reply(text.as_bytes(), QUESTION), Err(TRUNCATED_OUTPUT));
        }
        assert!(reply(b"\xff\xfe\x00", QUESTION).is_err());
        // The question, quoted in part.
        let quoted = format!("{}\n", QUESTION.split("sig:").next().unwrap());
        assert!(matches!(
            reply(quoted.as_bytes(), QUESTION),
            Ok(Some(HandlerReply::Text(_)))
        ));
    }
}
