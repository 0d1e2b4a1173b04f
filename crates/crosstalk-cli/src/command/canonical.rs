//! `crosstalk canonical`: the bytes that a digest names and a signature covers (CAN-001 to CAN-007).

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use clap::Args;
use crosstalk_envelope::{Diagnostic, Document, ErrorCode, Reading};
use std::path::PathBuf;

/// Print the canonical bytes of an envelope, or their digest
///
/// Only a strict envelope has a canonical form: run a paste through `crosstalk fmt` first. The command does not check the rules of
/// intents, so a REVOKE has a canonical form before it is signed.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk canonical message.crosstalk | sha256sum\n  crosstalk fmt chat.txt | crosstalk canonical --digest"
)]
pub(crate) struct Canonical {
    /// The file; `-` or none is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Print `sha256:` and the digest of the bytes
    #[arg(long)]
    digest: bool,
    /// Which envelope of a file with several, from 1
    #[arg(long, value_name = "N")]
    index: Option<usize>,
}

impl Canonical {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let name = input.shown_name();
        let text = match input.text() {
            Ok(text) => text,
            Err((text, fault)) => return refuse(console, &Carets::new(&name, &text), &[fault]),
        };
        let pieces = pieces(text);
        let chosen = match (self.index, pieces.as_slice()) {
            (None, [_, _, ..]) => {
                let number = pieces.len();
                let failure = Failure::malformed(format!("there are {number} envelopes"));
                return Err(failure.help(format!("choose one with --index 1 to {number}")));
            }
            (None, _) => pieces.first().copied().unwrap_or((0, text)),
            (Some(index), _) => {
                let piece = index.checked_sub(1).and_then(|i| pieces.get(i));
                let Some(piece) = piece else {
                    let message =
                        format!("there is no envelope {index}: there are {}", pieces.len());
                    return Err(Failure::usage(message));
                };
                *piece
            }
        };
        let (offset, piece) = chosen;
        let document = Document::parse(piece, Reading::Strict);
        if !document.is_accepted() {
            let findings = document.diagnostics().iter().cloned();
            let findings: Vec<Diagnostic> = findings.map(|d| d.shifted(offset)).collect();
            let exit = refuse(console, &Carets::new(&name, text), &findings)?;
            if exit == ErrorCode::Format.into() {
                console.talk(
                    "only well-formed envelopes have a canonical form: run `crosstalk fmt` first\n",
                )?;
            }
            return Ok(exit);
        }
        let form = if self.digest {
            document.digest().map(|digest| format!("{digest}\n"))
        } else {
            document.canonical()
        };
        match form {
            Ok(form) => console.text(&form).map(|()| Exit::SUCCESS),
            Err(fault) => refuse(console, &Carets::new(&name, text), &[fault.shifted(offset)]),
        }
    }
}

fn refuse(
    console: &mut Console,
    carets: &Carets<'_>,
    findings: &[Diagnostic],
) -> Result<Exit, Failure> {
    for finding in findings.iter().filter(|d| d.is_error()) {
        console.talk(&carets.draw(finding))?;
    }
    Ok(Exit::of(findings))
}

/// The text cut after each line `[[END]]` (TRN-001), without blank pieces, each with its place.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len();
        let is_end = line.trim_end_matches([' ', '\t', '\r', '\n']) == "[[END]]";
        if is_end || end == text.len() {
            let piece = text.get(start..end).unwrap_or("");
            if !piece.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
                pieces.push((start, piece));
            }
            start = end;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_each_end() {
        assert_eq!(
            pieces("a\n[[END]]\n\nb\n [[END]]\n[[END]] \nc"),
            [
                (0, "a\n[[END]]\n"),
                (10, "\nb\n [[END]]\n[[END]] \n"),
                (31, "c")
            ]
        );
        assert_eq!(pieces("\n \n"), []);
    }
}
