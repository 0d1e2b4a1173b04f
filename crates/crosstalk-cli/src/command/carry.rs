//! `crosstalk carry`: walks through what waits for a person to carry it to a chat, with the clipboard.

mod walk;

use crate::console::{BOLD, Console, DIM, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, is_piped};
use crate::service::clipboard::{ClipboardError, Copied};
use crate::service::deliver::with_primer;
use crate::service::dns::Look;
use crate::service::intake::Intake;
use crate::service::relay::inbox::{Cause, envelope, keep, takes_answer};
use crate::service::relay::remote::{Remote, Through, Waiting};
use crate::service::settings::When;
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;
use crosstalk_envelope::{Document, Edit, ErrorCode, Reading, fence, scan};
use crosstalk_protocol::store::{Way, is_same_party};
use std::io::IsTerminal as _;
use std::path::Path;

/// How much of the queue is looked at.
const MOST: usize = 500;

/// Carry messages to chats and their answers back, with the clipboard
///
/// A relay keeps what only a person can deliver in a queue: messages with X-Delivery: copy_paste, and those to names that
/// nobody has mapped. This walks through it: it copies a message, you paste it into the chat and copy the answer, and the
/// answer is filed and sent back. Without a terminal, --next and --done do one step each.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk carry\n  crosstalk carry --next                       # copies and prints the next message\n  crosstalk carry --done 01K74V8Q              # the answer is on the clipboard\n  crosstalk carry --done 01K74V8Q --paste < answer.txt\n  crosstalk carry --fail 01K74V8Q --reason 'the chat is gone'\n\nExit codes: 0 carried, or nothing waits; 1 no such message, or nothing on the\nclipboard; 10 to 17 what the relay refuses."
)]
pub(crate) struct Carry {
    /// Copy and print the message that comes next, and end
    #[arg(long, group = "step")]
    next: bool,
    /// Take the answer to this message, or what needs none as carried, and end
    #[arg(long, value_name = "ID", group = "step")]
    done: Option<String>,
    /// Say that this message can't be carried, and end
    #[arg(long, value_name = "ID", group = "step", requires = "reason")]
    fail: Option<String>,
    /// Why it can't be carried; the sender is told
    #[arg(long, value_name = "TEXT", requires = "fail")]
    reason: Option<String>,
    /// Take answers from stdin, and not from the clipboard
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
    through: Through,
}

impl Carry {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let remote = self.through.connect(&desk.config, None)?;
        let courier = Courier {
            desk: &desk,
            remote: &remote,
            primer: self.primer || desk.config.primer() == When::Always,
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
        walk::walk(console, &courier, self.paste)
    }

    fn finish(
        &self,
        console: &mut Console,
        courier: &Courier<'_>,
        waiting: &Waiting,
    ) -> Result<Exit, Failure> {
        if self.no_answer || !takes_answer(waiting) {
            return courier.carried(console, waiting);
        }
        let said = match self.paste || is_piped() {
            true => {
                let input = Input::read(Path::new("-"), console)?;
                let text = input.text().map(str::to_owned);
                text.map_err(|(_, d)| Failure::of_rule(d.rule, &d.message))?
            }
            false => String::new(),
        };
        let said = match said.trim().is_empty() && !self.paste {
            true => courier.desk.clipboard()?.read()?,
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
    desk: &'c Desk,
    remote: &'c Remote,
    primer: bool,
    no_copy: bool,
}

impl Courier<'_> {
    /// What waits to be carried. What is for the person waits in their inbox, and is not carried to anybody.
    fn queue(&self) -> Result<Vec<Waiting>, Failure> {
        let mine = self.desk.mine()?;
        let mut queue = self.remote.courier(MOST)?;
        queue.retain(|waiting| !mine.has(&waiting.to));
        Ok(queue)
    }

    /// The message of the queue that an id, or the beginning of one, means.
    fn find(&self, id: &str) -> Result<Waiting, Failure> {
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

    /// What goes into the chat.
    fn text(&self, waiting: &Waiting) -> String {
        // A chat has no use for the trace of the relays.
        let document = Document::parse(&waiting.envelope, Reading::Strict);
        let text = Edit::new(&document).map(|edit| edit.remove_blocks("audit").finish());
        let text = text.unwrap_or_else(|_| waiting.envelope.clone());
        match self.primer {
            true => with_primer(&text, &waiting.to),
            false => fence(&text),
        }
    }

    /// Puts a message on the clipboard. Returns how, and nothing if it is not there.
    fn copy(&self, console: &mut Console, text: &str) -> Result<Option<Copied>, Failure> {
        if self.no_copy {
            return Ok(None);
        }
        match self.desk.clipboard().and_then(|mut c| c.write(text)) {
            Ok(copied) => Ok(Some(copied)),
            Err(ClipboardError::Off) => Ok(None),
            Err(fault) => {
                console.note(&format!("not copied: {fault}"))?;
                Ok(None)
            }
        }
    }

    /// Prints and copies a message, and says what to do with it.
    fn give(&self, console: &mut Console, waiting: &Waiting) -> Result<Exit, Failure> {
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
        waiting: &Waiting,
        said: &str,
    ) -> Result<Exit, Failure> {
        if is_question(waiting, said) {
            return Err(
                Failure::failed("that is the message itself, and not its answer")
                    .help("copy what the chat answered"),
            );
        }
        let id = self.desk.new_id();
        let cause = Cause {
            given: waiting,
            question: None,
            id: &id,
            is_program: false,
        };
        let answer = envelope(cause, self.desk, said)?;
        let answer = answer.ok_or_else(|| Failure::failed("the answer is empty"))?;
        // What it is worth was said where it was taken.
        let _ = keep(console, self.desk, waiting, (true, false))?;
        let look = Look::default();
        let mut intake = Intake::new(self.desk, &look, false);
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
            "{}: the answer is on its way to {}\n",
            styled(GREEN, "Carried"),
            view::line(Document::parse(&answer.text, Reading::Strict).receiver())
        ))?;
        Ok(exit)
    }

    /// Says that a message without an answer was carried.
    fn carried(&self, console: &mut Console, waiting: &Waiting) -> Result<Exit, Failure> {
        // What it is worth was said where it was taken.
        let _ = keep(console, self.desk, waiting, (true, false))?;
        self.remote.carried(&waiting.id, &waiting.to, None)?;
        console.talk(&format!("{}.\n", styled(GREEN, "Carried")))?;
        Ok(Exit::SUCCESS)
    }

    /// Says that a message can't be carried.
    fn fail(&self, console: &mut Console, waiting: &Waiting, reason: &str) -> Result<(), Failure> {
        self.remote
            .carried(&waiting.id, &waiting.to, Some(reason))?;
        console.talk(&styled(DIM, "Given up; the sender is told.\n"))
    }
}

/// Whether a text is the message itself, and not its answer.
fn is_question(waiting: &Waiting, said: &str) -> bool {
    let question = Document::parse(&waiting.envelope, Reading::Strict);
    let found = scan(said, Reading::Paste);
    let same = |d: &Document<'_>| {
        is_same_party(d.sender(), question.sender()) && d.body_text() == question.body_text()
    };
    found.documents.iter().any(same)
}
