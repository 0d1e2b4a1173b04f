//! The walk through the queue on a terminal: the clipboard and the keyboard at the same time.

use super::{Courier, is_question, nothing};
use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::service::clipboard::{Copied, Follower};
use crate::service::relay::inbox::takes_answer;
use crate::service::relay::remote::Waiting;
use crate::view;
use crosstalk_envelope::{Document, Reading};
use std::io::BufRead as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often the clipboard is looked at.
const INTERVAL: Duration = Duration::from_millis(300);

/// What a person wants, or did.
#[derive(Debug, PartialEq, Eq)]
enum WalkInput {
    /// A message was copied that may be the answer.
    Answer(String),
    /// What is on the clipboard is the answer; or it is carried.
    Enter,
    Copy,
    Skip,
    Fail(String),
    Quit,
    /// Anything else was typed.
    Other,
}

impl WalkInput {
    fn of_line(line: &str) -> Self {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word.to_ascii_lowercase().as_str() {
            "" => Self::Enter,
            "c" | "copy" => Self::Copy,
            "s" | "skip" => Self::Skip,
            "f" | "fail" => Self::Fail(rest.trim().to_owned()),
            "q" | "quit" => Self::Quit,
            _ => Self::Other,
        }
    }
}

/// Walks through the queue until it is empty or the person has enough.
pub(super) fn walk(
    console: &mut Console,
    courier: &Courier<'_>,
    paste: bool,
) -> Result<Exit, Failure> {
    let lines = keyboard();
    let mut clipboard = match paste || courier.no_copy {
        true => None,
        false => Some(courier.desk.follow_clipboard()),
    };
    let mut skipped: Vec<(String, String)> = Vec::new();
    let mut exit = Exit::SUCCESS;
    loop {
        let queue = courier.queue()?;
        let is_skipped = |w: &&Waiting| !skipped.contains(&(w.id.clone(), w.to.clone()));
        let Some(waiting) = queue.iter().find(is_skipped) else {
            return match queue.len() {
                0 => nothing(console).map(|end| end.worst(exit)),
                left => {
                    let waits = count(left, "message");
                    console.talk(&format!(
                        "{waits} that you skipped still wait to be carried\n"
                    ))?;
                    Ok(exit)
                }
            };
        };
        let left = queue.len().saturating_sub(skipped.len());
        let text = courier.text(waiting);
        present(console, waiting, left)?;
        // Text that was on the clipboard before the message is no answer. Any later text may be one, even if it comes
        // before the program has seen its own message there.
        if let Some(clipboard) = &mut clipboard {
            let _ = clipboard.look();
        }
        let mut is_copied = copy(console, courier, &text, clipboard.as_mut())?;
        if !is_copied {
            console.text(&text)?;
            console.flush()?;
        }
        help(console, waiting, is_copied, paste)?;
        loop {
            let done = match next(&lines, clipboard.as_mut(), waiting) {
                WalkInput::Quit => return Ok(exit),
                WalkInput::Skip => {
                    skipped.push((waiting.id.clone(), waiting.to.clone()));
                    break;
                }
                WalkInput::Copy => {
                    is_copied = copy(console, courier, &text, clipboard.as_mut())?;
                    if is_copied {
                        console.talk("Copied again.\n")?;
                    }
                    continue;
                }
                WalkInput::Fail(reason) if reason.is_empty() => {
                    console.talk("Write the reason behind it, as in: f the chat is gone\n")?;
                    continue;
                }
                WalkInput::Fail(reason) => courier
                    .fail(console, waiting, &reason)
                    .map(|()| Exit::SUCCESS),
                WalkInput::Other => {
                    help(console, waiting, is_copied, paste)?;
                    continue;
                }
                WalkInput::Enter if !takes_answer(waiting) => courier.carried(console, waiting),
                WalkInput::Enter if paste => {
                    console
                        .talk("Paste the answer, and end it with a line that is only a dot.\n")?;
                    courier.answer(console, waiting, &pasted(&lines))
                }
                WalkInput::Enter => {
                    let read = match &mut clipboard {
                        Some(clipboard) => clipboard.read(),
                        None => courier.desk.clipboard().and_then(|mut c| c.read()),
                    };
                    match read {
                        Ok(said) => courier.answer(console, waiting, &said),
                        Err(fault) => Err(fault.into()),
                    }
                }
                WalkInput::Answer(said) => courier.answer(console, waiting, &said),
            };
            match done {
                Ok(one) => {
                    exit = exit.worst(one);
                    break;
                }
                Err(closed) if closed.is_closed_pipe() => return Err(closed),
                // The person may try again.
                Err(fault) => console.failure(&fault)?,
            }
        }
        console.talk("\n")?;
    }
}

/// Copies a message, which is then no answer. Returns whether it was copied.
fn copy(
    console: &mut Console,
    courier: &Courier<'_>,
    text: &str,
    clipboard: Option<&mut Follower>,
) -> Result<bool, Failure> {
    let copied = courier.copy(console, text)?;
    // A terminal may have another clipboard than the one that is followed.
    if let (Some(clipboard), Some(Copied::System)) = (clipboard, copied) {
        clipboard.mark_copied(text);
    }
    Ok(copied.is_some())
}

fn present(console: &mut Console, waiting: &Waiting, left: usize) -> Result<(), Failure> {
    let body = Document::parse(&waiting.envelope, Reading::Strict).body_text();
    let count = match left {
        1 => "the last one".to_owned(),
        n => format!("{n} wait"),
    };
    console.talk(&format!(
        "{}  {} → {}  {}\n  {}\n",
        view::line(&waiting.id),
        view::line(&waiting.from),
        styled(BOLD, &view::line(&waiting.to)),
        styled(DIM, &count),
        view::first_line(&body)
    ))
}

fn help(
    console: &mut Console,
    waiting: &Waiting,
    is_copied: bool,
    paste: bool,
) -> Result<(), Failure> {
    let what = match (is_copied, takes_answer(waiting), paste) {
        (true, true, false) => {
            "It is on the clipboard: paste it into the chat, and copy the answer. Enter takes what you copied"
        }
        (true, true, true) => {
            "It is on the clipboard: paste it into the chat. Enter takes the answer here"
        }
        (true, false, _) => {
            "It is on the clipboard: paste it into the chat. Enter says that you did"
        }
        (false, true, _) => "Take it to the chat. Enter takes the answer",
        (false, false, _) => "Take it to the chat. Enter says that you did",
    };
    let text = format!("{what}; c copies it again, s skips it, f REASON gives up, q ends.\n");
    console.talk(&styled(DIM, &text))
}

/// The lines that are typed. The thread that reads them ends with the process.
fn keyboard() -> Receiver<String> {
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A text that is pasted into the terminal, up to a line that is only a dot.
fn pasted(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    while let Ok(line) = lines.recv() {
        if line.trim_end() == "." {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Waits until something is typed, or an envelope is copied that is not the message itself.
fn next(
    lines: &Receiver<String>,
    mut clipboard: Option<&mut Follower>,
    waiting: &Waiting,
) -> WalkInput {
    loop {
        match lines.recv_timeout(INTERVAL) {
            Ok(line) => return WalkInput::of_line(&line),
            Err(RecvTimeoutError::Disconnected) => return WalkInput::Quit,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Some(Ok(Some(text))) = clipboard.as_mut().map(|c| c.look()) else {
            continue;
        };
        if text.contains("[[") && takes_answer(waiting) && !is_question(waiting, &text) {
            return WalkInput::Answer(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_with_and_without_their_words() {
        for (line, event) in [
            ("", WalkInput::Enter),
            (" S ", WalkInput::Skip),
            ("skip", WalkInput::Skip),
            ("f", WalkInput::Fail(String::new())),
            (
                "f the chat is gone",
                WalkInput::Fail("the chat is gone".into()),
            ),
            ("q", WalkInput::Quit),
            ("c", WalkInput::Copy),
            ("what?", WalkInput::Other),
        ] {
            assert_eq!(WalkInput::of_line(line), event, "{line}");
        }
    }
}
