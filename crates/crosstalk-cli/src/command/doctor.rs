//! `crosstalk doctor`: explains the damage of a paste in plain words.

use crate::console::{BOLD, Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::{count, wrap};
use crate::{render, view};
use clap::Args;
use crosstalk_binding::document_findings;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{
    Diagnosis, Diagnostic, Document, Explanation, LineIndex, Reading, Severity, Signature, diagnose,
};
use std::path::PathBuf;

/// Explain in plain words what happened to a damaged paste
///
/// Lists the envelopes, their repairs and losses, says whether the body is unchanged (if the message has `meta: integrity`), and
/// what to do next.
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
        let errors: Vec<&Diagnostic> = scan.rejected.iter().filter(|d| d.is_error()).collect();
        let found = match readable {
            0 => format!("{name} has no readable envelope."),
            1 => format!("{name} has one readable envelope."),
            _ => format!("{name} has {readable} readable envelopes."),
        };
        console.show(&format!("{}\n", wrap(&found, 0, 0)))?;
        for document in &scan.documents {
            console.show(&report(document, &lines, &shown_path(&input.name)))?;
        }
        if !errors.is_empty() {
            console.show(&refusals(&errors, &lines))?;
        }
        for stray in scan
            .rejected
            .iter()
            .filter(|d| d.severity == Severity::Warning)
        {
            let line = sentence(stray, &lines);
            console.show(&format!("\n{}", bullet(&line)))?;
        }
        Ok(Exit::of(&scan.rejected))
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
    let findings = document_findings(document);
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
    out.push_str(&describe_body(document, diagnosis.as_ref()));
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

/// The advice for an envelope that could be read.
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
    let label = Explanation::HELP_LABEL;
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

/// The faults of text that could not be read, each with its help.
fn refusals(errors: &[&Diagnostic], lines: &LineIndex<'_>) -> String {
    /// How many faults are listed.
    const SHOWN: usize = 12;
    let mut out = format!("\n{}\n", styled(BOLD, "Unreadable"));
    for error in errors.iter().take(SHOWN) {
        out.push_str(&bullet(&sentence(error, lines)));
        if !error.help().is_empty() {
            let help = format!("{}{}.", Explanation::HELP_LABEL, error.help());
            out.push_str(&format!("    {}\n", wrap(&help, 4, 4)));
        }
    }
    if let Some(more) = errors.len().checked_sub(SHOWN + 1) {
        let more = count(more + 1, "more fault");
        out.push_str(&format!("  … and {more}: `crosstalk lint` shows all\n"));
    }
    out
}

/// The state of the body and the signature.
fn describe_body(document: &Document<'_>, diagnosis: Option<&Diagnosis>) -> String {
    let mut out = line("The body: ", &describe_diagnosis(document, diagnosis));
    if let Some(Signature::Signed {
        algorithm, pkid, ..
    }) = document.envelope().signature
    {
        let text = format!("{algorithm} by {pkid}. `crosstalk verify` checks this.");
        out.push_str(&line("Signed: ", &text));
    } else if document.block("integrity").is_some() {
        let text = "no, and it may have been: signing writes `meta: integrity`. A person who removed the signature could also change the text.";
        out.push_str(&line("Signed: ", text));
    }
    out
}

fn line(label: &str, text: &str) -> String {
    let width = label.len();
    format!("{label}{}\n", wrap(text, width, width))
}

fn describe_diagnosis(document: &Document<'_>, diagnosis: Option<&Diagnosis>) -> String {
    let lines = count(document.body_lines().count(), "line");
    match diagnosis {
        None => format!(
            "{lines}. The message has no `meta: integrity`, so nobody can tell whether it is complete."
        ),
        Some(Diagnosis::Intact) => {
            format!("{lines}, intact: it is the body that the message declares.")
        }
        Some(Diagnosis::Reflowed) => format!(
            "{lines}, reflowed: the words are the original ones, the line breaks or the spacing are not."
        ),
        Some(Diagnosis::Truncated { after, missing }) => {
            let which = if missing.is_empty() {
                "lines are missing".to_owned()
            } else {
                format!("of the original, {} missing", ranges(missing))
            };
            match after {
                0 => format!("{lines}, truncated from the start: {which}."),
                _ => format!("{lines}, truncated after line {after}: {which}."),
            }
        }
        Some(Diagnosis::Altered { lines: changed }) if changed.is_empty() => {
            format!("{lines}, altered: it is not the original text.")
        }
        Some(Diagnosis::Altered { lines: changed }) => format!(
            "{lines}, altered: {} not the original text.",
            ranges(changed)
        ),
    }
}

/// `line 3 is`, `lines 3 to 5 and 9 are`.
fn ranges(numbers: &[usize]) -> String {
    const SHOWN: usize = 8;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let mut words: Vec<String> = runs
        .iter()
        .take(SHOWN)
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        })
        .collect();
    if runs.len() > SHOWN {
        words.push("others".to_owned());
    }
    let list = view::names(&words);
    if numbers.len() == 1 {
        format!("line {list} is")
    } else {
        format!("lines {list} are")
    }
}

#[cfg(test)]
mod body_tests {
    use super::*;

    #[test]
    fn line_numbers_read_well() {
        assert_eq!(ranges(&[3]), "line 3 is");
        assert_eq!(ranges(&[1, 2, 3]), "lines 1 to 3 are");
        assert_eq!(ranges(&[1, 3, 4, 9]), "lines 1, 3 to 4 and 9 are");
        let odd: Vec<usize> = (0..40).map(|n| 2 * n + 1).collect();
        assert!(ranges(&odd).ends_with(" and others are"));
    }
}
