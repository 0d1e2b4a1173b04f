//! `crosstalk parse`: shows the envelopes in a text.

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input, reading};
use crate::{json, render};
use clap::Args;
use crosstalk_envelope::json::{MessageJson, PARSE_SCHEMA, report};
use crosstalk_envelope::{LineIndex, Scan};
use serde_json::Value;

/// Find the envelopes in a text and show them
///
/// Repairs the damage that chats, mail programs and terminals do, and reports every repair. Errors go to
/// stderr; the exit code is that of the worst one.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk parse chat.txt\n  crosstalk parse --json chat.txt | jq '.envelopes[].body'\n  crosstalk parse --strict < message.crosstalk"
)]
pub(crate) struct Parse {
    #[command(flatten)]
    files: Files,
    /// Repair nothing: accept only what a relay would accept
    #[arg(long)]
    strict: bool,
    /// Print JSON of the form crosstalk.parse/1
    #[arg(long)]
    json: bool,
}

impl Parse {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if self.json {
            return self.run_json(console);
        }
        let mut first = true;
        self.files.each(console, |console, input| {
            self.show(console, input, &mut first)
        })
    }

    fn show(
        &self,
        console: &mut Console,
        input: &Input,
        first: &mut bool,
    ) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(reading(self.strict));
        let name = input.shown_name();
        let lines = LineIndex::new(&text);
        for document in &scan.documents {
            let line = lines.position(document.span().start).line;
            let shown = render::envelope(document, &lines, &format!("{name}:{line}"));
            console.show(if *first { "" } else { "\n\n" })?;
            console.show(&shown)?;
            *first = false;
        }
        Carets::new(&name, &text).tell(console, &scan.rejected)?;
        Ok(Exit::of(&scan.rejected))
    }

    /// One report on all files, in their order.
    fn run_json(&self, console: &mut Console) -> Result<Exit, Failure> {
        if !self.files.several() {
            let mut printed = false;
            let exit = self.files.each(console, |console, input| {
                let (text, scan) = input.scan(reading(self.strict));
                console.data(json::pretty(&report(&text, &scan))?)?;
                printed = true;
                Ok(Exit::of(&scan.rejected))
            })?;
            if !printed {
                // A file that can't be read is no reason to print no JSON.
                console.data(json::pretty(&report("", &Scan::default()))?)?;
            }
            return Ok(exit);
        }
        let (mut envelopes, mut errors) = (Vec::new(), Vec::new());
        let exit = self.files.each(console, |_, input| {
            let (text, scan) = input.scan(reading(self.strict));
            let report = report(&text, &scan);
            for message in report.envelopes {
                envelopes.push(tagged_message(&message, &input.name)?);
            }
            for finding in report.errors {
                errors.push(json::tagged(&finding, &input.name)?);
            }
            Ok(Exit::of(&scan.rejected))
        })?;
        let report = serde_json::json!({
            "schema": PARSE_SCHEMA, "envelopes": envelopes, "errors": errors
        });
        console.data(json::pretty(&report)?)?;
        Ok(exit)
    }
}

/// An envelope with the name of its file, on itself and on each of its findings.
fn tagged_message(message: &MessageJson, file: &str) -> Result<Value, Failure> {
    let mut message = json::tagged(message, file)?;
    for list in ["repairs", "diagnostics"] {
        let findings = message.get_mut(list).and_then(Value::as_array_mut);
        for finding in findings.into_iter().flatten() {
            json::tag(finding, file);
        }
    }
    Ok(message)
}
