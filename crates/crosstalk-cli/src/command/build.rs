//! `crosstalk build`: envelopes from JSON, so that any language can write them.

use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use clap::Args;
use crosstalk_envelope::json::NewThreads;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, ErrorCode, Reading, fence, json};
use crosstalk_protocol::intent_hint;
use std::path::PathBuf;

/// Write envelopes from JSON
///
/// Reads one message, a list of messages, or the output of `crosstalk parse --json`; `crosstalk schema` is the schema. A
/// message needs sender, receiver, user, context and intent. `intent` may be a word, `headers` and `meta` may be
/// objects. Messages without a thread or a message id get one; messages of one session share a thread. If one message is
/// invalid, nothing is written.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk build < message.json\n  echo '{\"sender\":\"CLAUDE\", \"receiver\":\"CHATGPT\", \"user\":\"kalle\",\n    \"context\":\"auth\", \"intent\":\"REQUEST\", \"body\":\"Should we use JWT?\"}' |\n    crosstalk build --fence"
)]
pub(crate) struct Build {
    /// The JSON; `-` or none is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Write the messages as they are, without generated ids
    #[arg(long)]
    no_ids: bool,
    /// Generate missing ids; this is the default
    #[arg(long, hide = true, conflicts_with = "no_ids")]
    ids: bool,
    /// Put each envelope into a code fence
    #[arg(long)]
    fence: bool,
}

impl Build {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let name = input.shown_name();
        let text = input.text().map_err(|(text, fault)| {
            let place = fault.position(&text);
            let code = fault.code().unwrap_or(ErrorCode::Format);
            let (line, column) = (place.line, place.column);
            Failure::refused(code, format!("{name}:{line}:{column}: {}", fault.message))
        })?;
        let read = match self.no_ids {
            true => json::builders(text),
            false => json::builders_with_ids(text, NewThreads::Always),
        };
        let builders =
            read.map_err(|e| Failure::refused(e.code, format!("{name}: {}", e.message)))?;
        let mut envelopes = Vec::with_capacity(builders.len());
        let mut exit = Exit::SUCCESS;
        for (number, builder) in (1..).zip(&builders) {
            match builder.build() {
                Ok(text) => {
                    let document = Document::parse(&text, Reading::Strict);
                    let intent = document.envelope().intent;
                    if let Some(hint) = intent.and_then(|i| intent_hint(i.written)) {
                        console.warning(&format!("{name}: message {number}: {hint}"))?;
                    }
                    envelopes.push(if self.fence { fence(&text) } else { text });
                }
                Err(fault) => {
                    exit = exit.worst(Exit::of(&fault.diagnostics));
                    for finding in fault.diagnostics.iter().filter(|d| d.is_error()) {
                        let word = styled(RED, "error");
                        let (rule, what) = (finding.rule.id, escape(&finding.message));
                        let code = finding.code().map_or("", |c| c.as_str());
                        let text = format!(
                            "{word}[{rule} {code}]: {name}: message {number}: {what}\n  help: {}\n",
                            finding.help()
                        );
                        console.talk(&text)?;
                    }
                }
            }
        }
        if exit == Exit::SUCCESS {
            console.text(&envelopes.join("\n"))?;
        }
        Ok(exit)
    }
}
