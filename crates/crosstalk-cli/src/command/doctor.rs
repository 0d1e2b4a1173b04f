//! `crosstalk doctor`: what happened to a damaged paste, in plain words.

mod body;

use crate::console::{BOLD, Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::{count, wrap};
use crate::render;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Diagnosis, Diagnostic, Document, LineIndex, Reading, Severity, diagnose};
use std::path::PathBuf;

/// Say in plain words what happened to a damaged paste
///
/// Tells what was found, what had to be repaired, what is lost, whether the body is what was written
/// (if the message carries `meta: integrity`), and what to do next.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk doctor chat.txt")]
pub(crate) struct Doctor {
    /// The file; `-` or none is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
}

impl Doctor {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let (text, scan) = input.scan(Reading::Paste);
        let name = input.shown_name();
        let lines = LineIndex::new(&text);
        let readable = scan.documents.len();
        let errors: Vec<&Diagnostic> = scan.refused.iter().filter(|d| d.is_error()).collect();
        let found = match readable {
            0 => format!("In {name} there is no envelope that can be read."),
            1 => format!("In {name} there is one envelope that can be read."),
            _ => format!("In {name} there are {readable} envelopes that can be read."),
        };
        console.show(&format!("{}\n", wrap(&found, 0, 0)))?;
        for document in &scan.documents {
            console.show(&report(document, &lines, &shown_path(&input.name)))?;
        }
        if !errors.is_empty() {
            console.show(&refusals(&errors, &lines))?;
        }
        for stray in scan
            .refused
            .iter()
            .filter(|d| d.severity == Severity::Warning)
        {
            let line = sentence(stray, &lines);
            console.show(&format!("\n{}", bullet(&line)))?;
        }
        Ok(Exit::of(&scan.refused))
    }
}

fn report(document: &Document<'_>, lines: &LineIndex<'_>, name: &str) -> String {
    let span = document.span();
    let from = lines.position(span.start).line;
    let to = lines.position(span.end.saturating_sub(1)).line;
    let envelope = document.envelope();
    let title = format!(
        "{} → {}, lines {from} to {to}",
        escape(envelope.sender.as_str()),
        escape(envelope.receiver.as_str())
    );
    let mut out = format!("\n{}\n", styled(BOLD, &wrap(&title, 0, 0)));
    let findings = render::findings(document);
    let of = |severity| findings.iter().filter(move |d| d.severity == severity);
    let repairs: Vec<&Diagnostic> = of(Severity::Repair).collect();
    let warnings: Vec<&Diagnostic> = of(Severity::Warning).collect();
    let (lossy, harmless): (Vec<&Diagnostic>, Vec<&Diagnostic>) = repairs
        .iter()
        .partition(|d| render::LOSSY.contains(&d.rule));
    if repairs.is_empty() {
        out.push_str("Nothing had to be repaired.\n");
    }
    section(&mut out, "Repaired, without loss:", &harmless, lines);
    section(
        &mut out,
        "Repaired, and something may be lost:",
        &lossy,
        lines,
    );
    section(
        &mut out,
        "Not repaired, and worth a look:",
        &warnings,
        lines,
    );
    let diagnosis = diagnose(document);
    let look = !lossy.is_empty() || !warnings.is_empty();
    out.push_str(&body::told(document, diagnosis.as_ref()));
    out.push_str(&next(document, diagnosis.as_ref(), look, name));
    out
}

fn section(out: &mut String, title: &str, findings: &[&Diagnostic], lines: &LineIndex<'_>) {
    if findings.is_empty() {
        return;
    }
    out.push_str(&format!("{title}\n"));
    for finding in findings {
        out.push_str(&bullet(&sentence(finding, lines)));
    }
}

/// `Line 3: the arrow … (PST-007).`
fn sentence(finding: &Diagnostic, lines: &LineIndex<'_>) -> String {
    let line = lines.position(finding.span.start).line;
    format!(
        "Line {line}: {} ({}).",
        escape(&finding.message),
        finding.rule.id
    )
}

fn bullet(text: &str) -> String {
    format!("  - {}\n", wrap(text, 4, 4))
}

/// What to do with an envelope that was read.
fn next(document: &Document<'_>, diagnosis: Option<&Diagnosis>, look: bool, name: &str) -> String {
    let (style, advice) = match diagnosis {
        Some(Diagnosis::Truncated { .. }) => (
            RED,
            "Ask the sender for the missing lines, or copy the message again from where it is whole.".to_owned(),
        ),
        Some(Diagnosis::Altered { .. }) => (
            RED,
            "Don't act on this text: compare it with the original, or ask the sender to send it again.".to_owned(),
        ),
        _ if !document.is_well_formed() => (
            YELLOW,
            "Add what is missing (see above), then check with `crosstalk lint --strict`.".to_owned(),
        ),
        Some(Diagnosis::Reflowed) => (
            YELLOW,
            "The words are those that the message declares, the line breaks are not: if it holds code or a table, get it again inside a code fence.".to_owned(),
        ),
        Some(Diagnosis::Intact) if !is_signed(document) => (
            RED,
            "Don't rely on it: ask the sender for the signed message.".to_owned(),
        ),
        _ if is_signed(document) && !look => (
            YELLOW,
            format!("Check who signed it, and what: `crosstalk verify {name}`."),
        ),
        _ if look => (
            YELLOW,
            format!("Look at the remarks above. If they don't matter, `crosstalk fmt {name}` writes the message well-formed."),
        ),
        _ if document.diagnostics().is_empty() => (GREEN, "Nothing: it can be used as it is.".to_owned()),
        _ => (GREEN, format!("Use it: `crosstalk fmt {name}` writes it well-formed.")),
    };
    let label = "What to do: ";
    format!(
        "{}{}\n",
        styled(style, label),
        wrap(&advice, label.len(), label.len())
    )
}

fn is_signed(document: &Document<'_>) -> bool {
    let signature = document.envelope().signature;
    signature.is_some_and(|s| s.is_signed())
}

/// What could not be read, and the way out for each fault.
fn refusals(errors: &[&Diagnostic], lines: &LineIndex<'_>) -> String {
    /// More than this many faults help nobody.
    const SHOWN: usize = 12;
    let mut out = format!("\n{}\n", styled(BOLD, "What can't be read"));
    for error in errors.iter().take(SHOWN) {
        out.push_str(&bullet(&sentence(error, lines)));
        if !error.help().is_empty() {
            let help = format!("What to do: {}.", error.help());
            out.push_str(&format!("    {}\n", wrap(&help, 4, 4)));
        }
    }
    if let Some(more) = errors.len().checked_sub(SHOWN + 1) {
        let more = count(more + 1, "more fault");
        out.push_str(&format!("  … and {more}: `crosstalk lint` shows all\n"));
    }
    out
}
