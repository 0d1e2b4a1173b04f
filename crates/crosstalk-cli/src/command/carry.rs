//! `crosstalk carry`: walks through what waits for a person to carry it to a chat, with the clipboard.

use crate::console::{BOLD, Console, DIM, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, is_piped, typed_text};
use crate::paragraph::count;
use crate::service::clipboard::{ClipboardError, Copied, Follower};
use crate::service::dns::DnsOptions;
use crate::service::intake::TextIntake;
use crate::service::relay::inbox::{Cause, envelope, keep, takes_answer};
use crate::service::relay::remote::{MessageView, RelayArgument, Remote};
use crate::service::settings::When;
use crate::service::workspace::Workspace;
use crate::view;
use clap::Args;
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{Document, ErrorCode, Reading, scan};
use crosstalk_protocol::store::{Way, is_same_party};
use crosstalk_protocol::{Assistant, carried, primer_of};
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How much of the queue is looked at.
const MOST: usize = 500;

/// Carry messages to chats and their answers back, with the clipboard
///
/// A relay keeps messages that only a person can deliver in a queue: those with X-Delivery: copy_paste, and those to names without
/// an address. The command walks through the queue: it copies a message, you paste it into the chat and copy the answer, and the
/// command files the answer and sends it back. Without a terminal, --next and --done do one step each.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk carry\n  crosstalk carry --next                       # copies and prints the next message\n  crosstalk carry --done 01K74V8Q              # the answer is on the clipboard\n  crosstalk carry --done 01K74V8Q --paste < answer.txt\n  crosstalk carry --fail 01K74V8Q --reason 'the chat is gone'\n\nExit codes: 0 carried, or nothing waits; 1 no such message, or nothing on the\nclipboard; 10 to 17 the relay rejects a request."
)]
pub(crate) struct Carry {
    /// Copy and print the message that comes next, and end
    #[arg(long, group = "step")]
    next: bool,
    /// Read the answer to this message, or report it as carried if it needs none, and end
    #[arg(long, value_name = "ID", group = "step")]
    done: Option<String>,
    /// Say that this message can't be carried, and end
    #[arg(long, value_name = "ID", group = "step", requires = "reason")]
    fail: Option<String>,
    /// Why it can't be carried; the sender is told
    #[arg(long, value_name = "TEXT", requires = "fail")]
    reason: Option<String>,
    /// Read answers from stdin, and not from the clipboard
    #[arg(long)]
    paste: bool,
    /// It was carried, and there is no answer
    #[arg(long, requires = "done", conflicts_with = "paste")]
    no_answer: bool,
    /// Put the text in front that teaches the chat the format
    #[arg(long)]
    primer: bool,
    /// Leave the clipboard alone
    #[arg(long)]
    no_copy: bool,
    #[command(flatten)]
    through: RelayArgument,
}

impl Carry {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let remote = self.through.connect(&workspace.config, None)?;
        let courier = Courier {
            workspace: &workspace,
            remote: &remote,
            primer: self.primer || workspace.config.primer() == When::Always,
            no_copy: self.no_copy,
        };
        if let Some(id) = &self.fail {
            let waiting = courier.find(id)?;
            let reason = self.reason.as_deref().unwrap_or_default();
            courier.fail(console, &waiting, reason)?;
            return Ok(Exit::SUCCESS);
        }
        if let Some(id) = &self.done {
            let waiting = courier.find(id)?;
            return self.finish(console, &courier, &waiting);
        }
        if self.next {
            return match courier.queue()?.first() {
                Some(waiting) => courier.give(console, waiting),
                None => nothing(console),
            };
        }
        if !std::io::stdin().is_terminal() {
            return Err(
                Failure::usage("carry walks through the queue on a terminal")
                    .help("without one, use --next, --done ID or --fail ID"),
            );
        }
        walk(console, &courier, self.paste)
    }

    fn finish(
        &self,
        console: &mut Console,
        courier: &Courier<'_>,
        waiting: &MessageView,
    ) -> Result<Exit, Failure> {
        if self.no_answer || !takes_answer(waiting) {
            return courier.carried(console, waiting);
        }
        let said = match self.paste || is_piped() {
            true => typed_text(console, "-")?,
            false => String::new(),
        };
        let said = match said.trim().is_empty() && !self.paste {
            true => courier.workspace.clipboard()?.read()?,
            false => said,
        };
        courier.answer(console, waiting, &said)
    }
}

fn nothing(console: &mut Console) -> Result<Exit, Failure> {
    console.talk("nothing waits to be carried\n")?;
    Ok(Exit::SUCCESS)
}

/// A person between a relay and chats.
struct Courier<'c> {
    workspace: &'c Workspace,
    remote: &'c Remote,
    primer: bool,
    no_copy: bool,
}

impl Courier<'_> {
    /// The messages to carry. A message for the person waits in their inbox instead.
    fn queue(&self) -> Result<Vec<MessageView>, Failure> {
        let mine = self.workspace.mine()?;
        let mut queue = self.remote.courier(MOST)?;
        queue.retain(|waiting| !mine.has(&waiting.to));
        Ok(queue)
    }

    /// The message of the queue that an id, or the beginning of one, means.
    fn find(&self, id: &str) -> Result<MessageView, Failure> {
        let queue = self.queue()?;
        let mut found = queue.into_iter().filter(|w| w.id.starts_with(id));
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (Some(one), Some(other)) if one.id == other.id => Ok(one),
            (Some(_), Some(_)) => Err(Failure::usage(format!(
                "`{id}` can mean several messages of the queue"
            ))
            .help("write more of it")),
            (None, _) => Err(Failure::failed(format!(
                "no message that begins with `{id}` waits to be carried"
            ))
            .help("`crosstalk carry --next` shows the next one")),
        }
    }

    /// The text for the chat.
    fn text(&self, waiting: &MessageView) -> String {
        let text = carried(
            &waiting.envelope,
            waiting.signature.as_deref(),
            waiting.pkid.as_deref(),
        );
        if !self.primer {
            return text;
        }
        let document = Document::parse(&waiting.envelope, Reading::Strict);
        let primer = primer_of(Assistant::of_address(&waiting.to), document.sender());
        format!("{}\n\n{text}", primer.trim_end())
    }

    /// Puts a message on the clipboard. Returns how, and nothing if it is not there.
    fn copy(&self, console: &mut Console, text: &str) -> Result<Option<Copied>, Failure> {
        if self.no_copy {
            return Ok(None);
        }
        match self.workspace.clipboard().and_then(|mut c| c.write(text)) {
            Ok(copied) => Ok(Some(copied)),
            Err(ClipboardError::Off) => Ok(None),
            Err(fault) => {
                console.note(&format!("not copied: {}", Failure::from(fault)))?;
                Ok(None)
            }
        }
    }

    /// Prints and copies a message, and says what to do with it.
    fn give(&self, console: &mut Console, waiting: &MessageView) -> Result<Exit, Failure> {
        let text = self.text(waiting);
        console.text(&text)?;
        console.flush()?;
        let is_copied = self.copy(console, &text)?.is_some();
        let how = match is_copied {
            true => "Copied: paste it",
            false => "Take it",
        };
        let then = match takes_answer(waiting) {
            true => "copy the answer, and",
            false => "then",
        };
        console.talk(&format!(
            "{how} to {}, {then} `crosstalk carry --done {}`.\n",
            styled(BOLD, &view::line(&waiting.to)),
            view::line(&waiting.id)
        ))?;
        Ok(Exit::SUCCESS)
    }

    /// Files the answer of a chat and sends it back.
    fn answer(
        &self,
        console: &mut Console,
        waiting: &MessageView,
        said: &str,
    ) -> Result<Exit, Failure> {
        if is_question(waiting, said) {
            return Err(
                Failure::failed("this is the message itself, and not its answer")
                    .help("copy the answer of the chat"),
            );
        }
        let id = self.workspace.new_id();
        let cause = Cause {
            given: waiting,
            question: None,
            id: &id,
            is_program: false,
        };
        let answer = envelope(cause, self.workspace, said)?;
        let answer = answer.ok_or_else(|| Failure::failed("the answer is empty"))?;
        // The intake has told its verdict.
        let _ = keep(console, self.workspace, waiting, (true, false))?;
        let look = DnsOptions::default();
        let mut intake = TextIntake::new(self.workspace, &look, false);
        intake.way = match answer.has_envelope {
            true => Way::Pasted,
            false => Way::Filed,
        };
        intake.answers = Some(waiting.id.clone());
        let exit = intake.keep(console, &Input::of_text("answer", answer.text.clone()))?;
        if exit == Exit::from(ErrorCode::Consent) {
            return Ok(exit);
        }
        self.remote.receive(&answer.text)?;
        match self.remote.carried(&waiting.id, &waiting.to, None) {
            // A NACK settled it at the relay when it came.
            Err(trouble) if trouble.is_unknown() => {}
            other => other?,
        }
        console.talk(&format!(
            "{}: the relay delivers the answer to {}\n",
            styled(GREEN, "Carried"),
            view::line(Document::parse(&answer.text, Reading::Strict).receiver())
        ))?;
        Ok(exit)
    }

    /// Says that a message without an answer was carried.
    fn carried(&self, console: &mut Console, waiting: &MessageView) -> Result<Exit, Failure> {
        // The intake has told its verdict.
        let _ = keep(console, self.workspace, waiting, (true, false))?;
        self.remote.carried(&waiting.id, &waiting.to, None)?;
        console.talk(&format!("{}.\n", styled(GREEN, "Carried")))?;
        Ok(Exit::SUCCESS)
    }

    /// Says that a message can't be carried.
    fn fail(
        &self,
        console: &mut Console,
        waiting: &MessageView,
        reason: &str,
    ) -> Result<(), Failure> {
        self.remote
            .carried(&waiting.id, &waiting.to, Some(reason))?;
        console.talk(&styled(
            DIM,
            "Reported as failed. The relay tells the sender.\n",
        ))
    }
}

/// Whether a text is the message itself, and not its answer.
fn is_question(waiting: &MessageView, said: &str) -> bool {
    let question = Document::parse(&waiting.envelope, Reading::Strict);
    let found = scan(said, Reading::Paste);
    let same = |d: &Document<'_>| {
        // Hidden parts of the message were not carried.
        is_same_party(d.sender(), question.sender())
            && visible(&d.body_text()) == visible(&question.body_text())
    };
    found.documents.iter().any(same)
}

/// How often the clipboard is looked at.
const INTERVAL: Duration = Duration::from_millis(300);

/// An action of the person.
#[derive(Debug, PartialEq, Eq)]
enum WalkInput {
    /// A message was copied that may be the answer.
    Answer(String),
    /// The clipboard holds the answer; or the message is carried.
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
fn walk(console: &mut Console, courier: &Courier<'_>, paste: bool) -> Result<Exit, Failure> {
    let lines = keyboard();
    let mut clipboard = match paste || courier.no_copy {
        true => None,
        false => Some(courier.workspace.follow_clipboard()),
    };
    let mut skipped: Vec<(String, String)> = Vec::new();
    let mut exit = Exit::SUCCESS;
    loop {
        let queue = courier.queue()?;
        let is_skipped = |w: &&MessageView| !skipped.contains(&(w.id.clone(), w.to.clone()));
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
                        None => courier.workspace.clipboard().and_then(|mut c| c.read()),
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

fn present(console: &mut Console, waiting: &MessageView, left: usize) -> Result<(), Failure> {
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
    waiting: &MessageView,
    is_copied: bool,
    paste: bool,
) -> Result<(), Failure> {
    let what = match (is_copied, takes_answer(waiting), paste) {
        (true, true, false) => {
            "It is on the clipboard: paste it into the chat, and copy the answer. Enter reads the answer"
        }
        (true, true, true) => {
            "It is on the clipboard: paste it into the chat. Enter lets you paste the answer here"
        }
        (true, false, _) => {
            "It is on the clipboard: paste it into the chat. Enter confirms that you did"
        }
        (false, true, _) => "Carry it to the chat. Enter lets you paste the answer",
        (false, false, _) => "Carry it to the chat. Enter confirms that you did",
    };
    let text =
        format!("{what}; c copies it again, s skips it, f REASON reports a failure, q ends.\n");
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
    waiting: &MessageView,
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
