//! `crosstalk verify`: who signed an envelope, and is it whole (SIG-010 to SIG-017, TRU-001 to TRU-025).

mod rc1;
mod report;
mod restored;
mod view;

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::service::dns::{Look, Lookup};
use crate::service::home::{Rooms, public_key};
use crate::{clock, json};
use clap::Args;
use crosstalk_envelope::{Document, LineIndex, PublicKey, Reading, Severity, Timestamp};
use crosstalk_protocol::{Question, Trust, Verdict, Word};

/// Say who signed an envelope, and whether it is whole
///
/// The text is read as a paste. The verdict is one word, a sentence and what to do next; the body is not shown unless
/// --text asks for it. Nothing is pinned, and nobody is asked unless --dns says so.
#[derive(Args, Debug)]
#[command(
    after_help = format!("{}\n\nExamples:\n  crosstalk verify pasted.txt\n  crosstalk verify --text pasted.txt > message.crosstalk\n  crosstalk verify --json --dns pasted.txt | jq -r .verdict", exit::verdicts())
)]
pub(crate) struct Verify {
    #[command(flatten)]
    files: Files,
    /// Print JSON of the form crosstalk.verify/1, one object a line
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Print the verified message, rebuilt from what was signed, and the verdict on stderr
    #[arg(long)]
    text: bool,
    /// Check with this key and no other: a PEM file with a public key, or a record
    #[arg(long, value_name = "PEMFILE")]
    key: Option<String>,
    /// Give the verdict of this time, for a message that you had then
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// Check messages of the rc1 test format, and nothing else: with --key, or with the key published with its examples
    #[arg(long, conflicts_with_all = ["at", "dns"])]
    rc1: bool,
    #[command(flatten)]
    look: Look,
}

/// What verdicts are made from, and what was printed so far.
struct VerifyRun<'s> {
    command: &'s Verify,
    key: Option<PublicKey>,
    trust: Trust,
    lookup: Lookup<'s>,
    first: bool,
    first_text: bool,
}

impl Verify {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let key = self.key.as_deref().map(public_key).transpose()?;
        if self.rc1 {
            return self.files.each(console, |console, input| {
                rc1::one(&self, console, input, key.as_ref())
            });
        }
        let rooms = Rooms::open()?;
        let mut session = VerifyRun {
            command: &self,
            key,
            trust: rooms.trust()?,
            lookup: Lookup::new(&self.look, &rooms)?,
            first: true,
            first_text: true,
        };
        self.files
            .each(console, |console, input| session.one(console, input))
    }

    /// Shows what is for people: with --text, stdout is for the text alone.
    fn tell(&self, console: &mut Console, text: &str) -> Result<(), Failure> {
        match self.text {
            true => console.talk(text),
            false => console.show(text),
        }
    }
}

impl VerifyRun<'_> {
    fn one(&mut self, console: &mut Console, input: &Input) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(Reading::Paste);
        let name = input.shown_name();
        let lines = LineIndex::new(&text);
        let file = self.command.files.several().then_some(input.name.as_str());
        let mut exit = Exit::SUCCESS;
        for document in &scan.documents {
            let verdict = self.judge(console, document)?;
            exit = exit.worst(verdict.word().into());
            if self.command.json {
                console.data(json::line(&report::verdict(
                    &verdict, document, &lines, file,
                )?)?)?;
                continue;
            }
            let line = lines.position(document.span().start).line;
            let shown = view::verdict(&verdict, document, &lines, &format!("{name}:{line}"))?;
            let gap = if self.first { "" } else { "\n" };
            self.command.tell(console, &format!("{gap}{shown}"))?;
            self.first = false;
            if self.command.text {
                self.print_text(console, document, &verdict)?;
            }
        }
        if self.command.json {
            if scan.refused.iter().any(|d| d.is_error()) {
                console.data(json::line(&report::refused(&scan.refused, &lines, file)?)?)?;
            }
        } else {
            let carets = Carets::new(&name, &text);
            let refused = scan.refused.iter();
            for finding in refused.filter(|d| d.severity >= Severity::Warning) {
                console.talk(&carets.draw(finding))?;
            }
        }
        Ok(exit.worst(Exit::of(&scan.refused)))
    }

    fn judge(
        &mut self,
        console: &mut Console,
        document: &Document<'_>,
    ) -> Result<Verdict, Failure> {
        let question = Question {
            key: self.key.as_ref(),
            restore: true,
            ..Question::at(self.command.at.unwrap_or_else(clock::now))
        };
        self.lookup
            .judge(console, document, &mut self.trust, &question)
    }

    /// The text that was signed, if all of it is there or could be restored.
    fn print_text(
        &mut self,
        console: &mut Console,
        document: &Document<'_>,
        verdict: &Verdict,
    ) -> Result<(), Failure> {
        let text = match verdict.verified() {
            Some(verified) => Some(verified.to_envelope()),
            None => self.restored(document, verdict),
        };
        let Some(text) = text else {
            return Ok(());
        };
        if verdict.word() == Word::Damaged {
            console.talk(view::RESTORED)?;
        }
        console.data(if self.first_text { "" } else { "\n" })?;
        self.first_text = false;
        console.text(&text)
    }

    /// The envelope with the restored body, if that verifies.
    fn restored(&self, document: &Document<'_>, verdict: &Verdict) -> Option<String> {
        let text = restored::envelope(document, verdict.restored()?)?;
        let question = Question {
            key: self.key.as_ref(),
            restore: true,
            ..Question::at(self.command.at.unwrap_or_else(clock::now))
        };
        let restored = Document::parse(&text, Reading::Paste);
        let verdict = crosstalk_protocol::verify(&restored, &self.trust, &question);
        verdict.verified().map(|v| v.to_envelope())
    }
}
