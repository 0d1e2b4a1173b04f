//! `crosstalk listen`: follows an inbox at a relay; prints each message, or lets a program answer it.

mod exec;

use super::inbox::remote::{addresses, keep};
use crate::console::{Console, DIM, styled};
use crate::desk::Desk;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json;
use crate::relay::answer::{envelope, post, takes_answer};
use crate::relay::parcel::is_kept;
use crate::relay::remote::{Remote, Through, Waiting};
use crate::relay::trouble::Trouble;
use crate::schema::LISTEN;
use crate::view;
use clap::{Args, ValueEnum};
use crosstalk_protocol::store::Store as _;
use exec::Program;
use std::time::Duration;

/// How many messages are fetched at once.
const AT_ONCE: u32 = 50;
/// How long the relay holds a question for the next message, in seconds.
const HELD: u64 = 30;
/// The longest pause before the relay is asked again after trouble, in seconds.
const LONGEST_PAUSE: u64 = 60;

/// Follow an inbox at a relay: print each message, or let a program answer it
///
/// Each message is verified and kept here as a pasted one is, then acknowledged at the relay. With --exec, the program
/// gets the message on standard input, never in its arguments; what it prints becomes the answer: plain text, or an
/// envelope. If the program fails, the message is not acknowledged, and comes again when you listen again. Messages that
/// must not be acted on are never given to a program. If the relay can't be reached, it is tried again. Two that listen for
/// one address both run their program, and both answer. Ends with Ctrl-C.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk listen\n  crosstalk listen --for CLAUDE --exec claude -p\n  crosstalk listen --for CHATGPT --exec codex exec -\n  crosstalk listen --for human://acme.example/ann --once --json\n\nExit codes: 0 with --once, a message came; 1 its program failed; 10 to 17 what\nthe relay refuses; 23 to 25 it must not be acted on (crosstalk verify --help)."
)]
pub(crate) struct Listen {
    /// Whose inbox: a name or an address. Without it, yours
    #[arg(long = "for", value_name = "ADDR")]
    address: Option<String>,
    /// End after the first message
    #[arg(long)]
    once: bool,
    /// Print each message as a line of JSON of the form crosstalk.listen/1
    #[arg(long)]
    json: bool,
    /// What the program gets
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Given::Prompt, requires = "exec")]
    input: Given,
    /// The seconds after which a program is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "exec", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    through: Through,
    /// Run this program for each message; everything behind it are its arguments
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, conflicts_with = "json")]
    exec: Vec<String>,
}

/// What a program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Given {
    /// The envelope
    Envelope,
    /// A text that explains the format, and the envelope in a fence
    Prompt,
    /// The text of the message alone
    Body,
}

impl Listen {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let typed: Vec<String> = self.address.iter().cloned().collect();
        let mut whose = addresses(&desk, &typed)?;
        whose.truncate(1);
        let address = whose.pop().unwrap_or_default();
        let remote = self.through.connect(&desk.config, Some(&address))?;
        let program = Program::new(&self.exec, self.input, Duration::from_secs(self.timeout));
        let sentence = format!(
            "Listening for {} at {}; Ctrl-C ends it.\n",
            view::line(&address),
            view::line(remote.url())
        );
        console.talk(&styled(DIM, &sentence))?;
        let (mut cursor, mut pause) = (None::<String>, Pause::default());
        let mut repeats = Repeats::default();
        loop {
            let page = match remote.inbox(&address, cursor.as_deref(), AT_ONCE, HELD) {
                Ok(page) => page,
                Err(trouble) if trouble.is_temporary() => {
                    pause.take(console, &trouble)?;
                    continue;
                }
                Err(trouble) => return Err(trouble.into()),
            };
            pause.over(console)?;
            std::thread::sleep(repeats.pause(&page.messages));
            for waiting in &page.messages {
                let exit =
                    self.one(console, &desk, &remote, &address, waiting, program.as_ref())?;
                console.flush()?;
                if self.once {
                    return Ok(exit);
                }
            }
            cursor = Some(page.cursor);
        }
    }

    fn one(
        &self,
        console: &mut Console,
        desk: &Desk,
        remote: &Remote,
        address: &str,
        waiting: &Waiting,
        program: Option<&Program>,
    ) -> Result<Exit, Failure> {
        if self.json {
            let mut value = json::value(waiting)?;
            json::set(&mut value, "schema", Some(LISTEN));
            console.data(json::line(&value)?)?;
            console.flush()?;
        }
        let is_quiet = self.json || program.is_some();
        let exit = keep(console, desk, waiting, (is_quiet, true))?;
        if !is_kept(exit) {
            console.warning(&format!(
                "the message {} was not kept, and stays at the relay: another message here has its id, it can't be read, or its consent \
                 is not enough",
                waiting.id
            ))?;
            return Ok(exit);
        }
        if let Some(program) = program {
            if exit != Exit::SUCCESS {
                console.warning(&format!(
                    "the message {0} must not be acted on, and was not given to the program: `crosstalk show {0}`",
                    waiting.id
                ))?;
            } else if let Err(fault) = self.answered(console, desk, remote, waiting, program) {
                console.failure(&fault)?;
                console.talk(&format!(
                    "{} is not acknowledged, and comes again when you listen again.\n",
                    view::line(&waiting.id)
                ))?;
                return Ok(fault.exit());
            }
        }
        // It is here. If the relay can't be told now, it hands the message out once more.
        if let Err(trouble) = remote.acknowledge(address, &waiting.id) {
            console.note(&format!(
                "the relay was not told that {} came: {trouble}",
                waiting.id
            ))?;
        }
        Ok(exit)
    }

    /// Lets the program answer a message, and sends what it says.
    fn answered(
        &self,
        console: &mut Console,
        desk: &Desk,
        remote: &Remote,
        waiting: &Waiting,
        program: &Program,
    ) -> Result<(), Failure> {
        let from = view::line(&waiting.from);
        let record = desk.kept(console)?.message(&waiting.id)?;
        let record =
            record.ok_or_else(|| Failure::Failed(format!("the message {} is gone", waiting.id)))?;
        let said = program.run(waiting, &record)?;
        if !takes_answer(waiting) {
            return console.talk(&format!(
                "{} from {from}: given to the program\n",
                view::line(&waiting.id)
            ));
        }
        let answer = envelope(desk, waiting, &said)?;
        let id = post(console, desk, remote, &answer.text)?;
        console.talk(&format!(
            "{} from {from}: answered with {}\n",
            view::line(&waiting.id),
            view::line(&id)
        ))
    }
}

/// A relay that hands out the same messages again and again is asked less and less often.
#[derive(Debug, Default)]
struct Repeats {
    before: Vec<String>,
    seconds: u64,
}

impl Repeats {
    fn pause(&mut self, messages: &[Waiting]) -> Duration {
        let is_old = |w: &Waiting| self.before.contains(&w.id);
        self.seconds = match !messages.is_empty() && messages.iter().all(is_old) {
            true => (self.seconds * 2).clamp(1, LONGEST_PAUSE),
            false => 0,
        };
        if !messages.is_empty() {
            self.before = messages.iter().map(|w| w.id.clone()).collect();
        }
        Duration::from_secs(self.seconds)
    }
}

/// The pauses after trouble: each twice as long as the one before.
#[derive(Debug, Default)]
struct Pause {
    seconds: u64,
    said: Option<Trouble>,
}

impl Pause {
    fn take(&mut self, console: &mut Console, trouble: &Trouble) -> Result<(), Failure> {
        self.seconds = (self.seconds * 2).clamp(1, LONGEST_PAUSE);
        if self.said.as_ref() != Some(trouble) {
            console.note(&format!("{trouble}; it is tried again"))?;
            self.said = Some(trouble.clone());
        }
        let asked = trouble.retry_after().unwrap_or(0).min(3600);
        let seconds = self.seconds.max(asked);
        // Not all who wait come back at the same moment.
        let mut random = [0];
        let _ = getrandom::fill(&mut random);
        let part = u32::from(random.first().copied().unwrap_or(0));
        let pause = Duration::from_secs(seconds) / 2 + Duration::from_secs(seconds) * part / 512;
        std::thread::sleep(pause);
        Ok(())
    }

    fn over(&mut self, console: &mut Console) -> Result<(), Failure> {
        if self.said.take().is_some() {
            console.talk(&styled(DIM, "The relay is there again.\n"))?;
        }
        self.seconds = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(id: &str) -> Waiting {
        Waiting {
            id: id.into(),
            thread: "T".into(),
            from: "A".into(),
            to: "B".into(),
            intent: None,
            state: None,
            received_at: String::new(),
            envelope: String::new(),
            history: Vec::new(),
            withheld: None,
        }
    }

    #[test]
    fn a_relay_that_repeats_itself_is_asked_less_often() {
        let mut repeats = Repeats::default();
        let mut seconds = |ids: &[&str]| {
            let page: Vec<Waiting> = ids.iter().map(|id| waiting(id)).collect();
            repeats.pause(&page).as_secs()
        };
        assert_eq!((seconds(&["1", "2"]), seconds(&["3"])), (0, 0));
        assert_eq!(
            (seconds(&["3"]), seconds(&["3"]), seconds(&["3"])),
            (1, 2, 4)
        );
        // Nothing is what there is most of the time.
        assert_eq!((seconds(&[]), seconds(&["3"]), seconds(&["4"])), (0, 1, 0));
    }
}
