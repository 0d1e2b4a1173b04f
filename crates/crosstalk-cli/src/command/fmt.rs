//! `crosstalk fmt`: writes envelopes in their normal form.

use crate::caret::Carets;
use crate::console::{Console, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::paragraph::count;
use crate::render;
use clap::Args;
use crosstalk_binding::document_findings;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Document, Reading, Scan, Severity, fence};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Repair envelopes and write them well-formed
///
/// Puts headers in order, indents the body, and corrects the spelling of arrows and markers. Meaning, unknown headers and META stay
/// as they are, and signatures stay valid. Still prints an envelope that lacks a required header, with exit code 12.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk fmt chat.txt > message.crosstalk\n  crosstalk fmt --fence message.crosstalk     # to paste into a chat\n  crosstalk fmt --write outbox/*.crosstalk"
)]
pub(crate) struct Fmt {
    #[command(flatten)]
    files: Files,
    /// Replace the files, except one that holds a rejected envelope or other text
    #[arg(long, conflicts_with_all = ["fence", "check"])]
    write: bool,
    /// Put each envelope into a code fence that no text inside can close
    #[arg(long, conflicts_with = "check")]
    fence: bool,
    /// Write nothing; fail with exit code 1 and name the files that are not well-formed
    #[arg(long)]
    check: bool,
}

impl Fmt {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let stdin = self.files.files.iter().any(|f| f.as_os_str() == "-");
        if self.write && (stdin || self.files.files.is_empty()) {
            return Err(Failure::usage(
                "--write needs files: stdin can't be replaced",
            ));
        }
        let mut first = true;
        self.files.each(console, |console, input| {
            self.one(console, input, &mut first)
        })
    }

    fn one(&self, console: &mut Console, input: &Input, first: &mut bool) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(Reading::Paste);
        let name = input.shown_name();
        let exit = tell(console, &Carets::new(&name, &text), &scan)?;
        if self.check || self.write {
            let formatted = join(&scan);
            if exit == Exit::SUCCESS && formatted == *text {
                return Ok(exit);
            }
            if self.check {
                console.talk(&format!("{name} is not well-formed\n"))?;
                return Ok(exit.worst(Exit::FAILURE));
            }
            return replace_file(console, input, &text, &scan, &formatted, exit);
        }
        for document in &scan.documents {
            let mut out = document.to_well_formed();
            if self.fence {
                out = fence(&out);
            }
            console.data(if *first { "" } else { "\n" })?;
            console.text(&out)?;
            *first = false;
        }
        Ok(exit)
    }
}

/// Errors and warnings of the file, with the exit code that they ask for.
fn tell(console: &mut Console, carets: &Carets<'_>, scan: &Scan<'_>) -> Result<Exit, Failure> {
    let mut exit = Exit::of(&scan.rejected);
    for document in &scan.documents {
        // In a paste a missing header is a warning; the output, though, is not an envelope yet.
        if !document.is_well_formed() {
            exit = exit.worst(crosstalk_envelope::ErrorCode::Format.into());
        }
        // What hides or deceives would go on the screen, or into a chat, as it is.
        let findings = document_findings(document).into_iter();
        for finding in findings.filter(render::is_worth_telling) {
            console.talk(&carets.draw(&finding))?;
        }
    }
    carets.tell(console, &scan.rejected)?;
    let all = scan.documents.iter().flat_map(Document::diagnostics);
    let repairs = all.filter(|d| d.severity == Severity::Repair).count();
    if repairs > 0 {
        let number = count(repairs, "repair");
        console.talk(&format!("{number}: `crosstalk doctor` lists them\n"))?;
    }
    Ok(exit)
}

fn join(scan: &Scan<'_>) -> String {
    let texts: Vec<String> = scan
        .documents
        .iter()
        .map(Document::to_well_formed)
        .collect();
    texts.join("\n")
}

fn replace_file(
    console: &mut Console,
    input: &Input,
    text: &str,
    scan: &Scan<'_>,
    formatted: &str,
    exit: Exit,
) -> Result<Exit, Failure> {
    let name = input.shown_name();
    let left_alone = if exit != Exit::SUCCESS {
        Some("see the errors above")
    } else if has_other_text(text, scan) || loses_something(scan) {
        Some("there is text in or around the envelopes that would be lost")
    } else {
        None
    };
    if let Some(why) = left_alone {
        let word = styled(YELLOW, "left alone");
        console.talk(&format!("{name}: {word}: {why}\n"))?;
        return Ok(exit.worst(Exit::FAILURE));
    }
    if let Some(path) = &input.path {
        write_over(path, formatted).map_err(|e| Failure::io(input.name.clone(), e))?;
    }
    let number = count(scan.documents.len(), "envelope");
    console.talk(&format!("{name}: {number} written\n"))?;
    Ok(exit)
}

/// Whether a repair left something out.
fn loses_something(scan: &Scan<'_>) -> bool {
    let left_out = [
        &rule::TEXT_AROUND,
        &rule::DUPLICATE_DROPPED,
        &rule::CONTROLS,
    ];
    let mut all = scan.documents.iter().flat_map(Document::diagnostics);
    all.any(|d| left_out.contains(&d.rule))
}

/// Whether text stands outside the envelopes; fences and quotation marks may go.
fn has_other_text(text: &str, scan: &Scan<'_>) -> bool {
    let mut start = 0;
    let mut gaps = Vec::new();
    for document in &scan.documents {
        let span = document.span();
        gaps.push(text.get(start..span.start).unwrap_or(""));
        start = span.end;
    }
    gaps.push(text.get(start..).unwrap_or(""));
    let is_fence = |line: &str| {
        let bare = line.trim_start_matches(['>', ' ', '\t']).trim_end();
        let info = bare.trim_start_matches(['`', '~']);
        bare.len() >= info.len() + 3 && !info.contains(char::is_whitespace)
    };
    let is_quote = |line: &str| line.chars().all(|c| c.is_whitespace() || c == '>');
    gaps.iter()
        .flat_map(|gap| gap.lines())
        .any(|line| !is_fence(line) && !is_quote(line))
}

/// Writes a new file beside `path` and renames it over it, so that readers see the old text or the new one. A link stays a
/// link.
fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize()?;
    let folder = target.parent().unwrap_or(&target);
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    let file_permissions = fs::metadata(&target)?.permissions();
    file.as_file().set_permissions(file_permissions)?;
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}
