//! `crosstalk lint`: reports every finding, with a caret under its place and the help of its rule.

use crate::caret::Carets;
use crate::console::{BOLD, Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input, reading};
use crate::paragraph::count;
use crate::{json, render, schema};
use clap::Args;
use crosstalk_envelope::json::finding;
use crosstalk_envelope::{Diagnostic, LineIndex, Severity};
use serde_json::Value;

/// Check envelopes: errors, warnings, repairs and style
///
/// Every finding has its rule, its place and, where there is one, the fix. Only errors fail, unless
/// --deny-warnings is given. `crosstalk explain RULE` tells more about a rule.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk lint message.crosstalk\n  crosstalk lint --strict --deny-warnings outbox/*.crosstalk\n  crosstalk lint --json chat.txt | jq '.counts'"
)]
pub(crate) struct Lint {
    #[command(flatten)]
    files: Files,
    /// Repair nothing: check what a relay would take
    #[arg(long)]
    strict: bool,
    /// Print JSON of the form crosstalk.lint/1
    #[arg(long)]
    json: bool,
    /// Fail with exit code 1 if there are warnings
    #[arg(long)]
    deny_warnings: bool,
}

#[derive(Default)]
struct FindingCounts {
    envelopes: usize,
    errors: usize,
    warnings: usize,
    repairs: usize,
    notes: usize,
}

impl Lint {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut tally = FindingCounts::default();
        let mut found = Vec::new();
        let mut exit = self.files.each(console, |console, input| {
            self.check(console, input, &mut tally, &mut found)
        })?;
        if self.json {
            let report = serde_json::json!({
                "schema": schema::LINT,
                "envelopes": tally.envelopes,
                "counts": {"error": tally.errors, "warning": tally.warnings,
                           "repair": tally.repairs, "note": tally.notes},
                "diagnostics": found,
            });
            console.data(json::pretty(&report)?)?;
        } else {
            console.talk(&tally.summary())?;
        }
        if self.deny_warnings && tally.warnings > 0 {
            exit = exit.worst(Exit::FAILURE);
        }
        Ok(exit)
    }

    fn check(
        &self,
        console: &mut Console,
        input: &Input,
        tally: &mut FindingCounts,
        found: &mut Vec<Value>,
    ) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(reading(self.strict));
        tally.envelopes += scan.documents.len();
        let mut findings: Vec<Diagnostic> =
            scan.documents.iter().flat_map(render::findings).collect();
        findings.extend(scan.rejected.iter().cloned());
        findings.sort_by_key(|d| d.span.start);
        let name = input.shown_name();
        let (carets, lines) = (Carets::new(&name, &text), LineIndex::new(&text));
        for diagnostic in &findings {
            tally.add(diagnostic.severity);
            if self.json {
                let finding = finding(diagnostic, &lines);
                found.push(if self.files.several() {
                    json::tagged(&finding, &input.name)?
                } else {
                    json::value(&finding)?
                });
            } else {
                console.show(&carets.draw(diagnostic))?;
            }
        }
        Ok(Exit::of(&findings))
    }
}

impl FindingCounts {
    fn add(&mut self, severity: Severity) {
        *match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Repair => &mut self.repairs,
            Severity::Note => &mut self.notes,
        } += 1;
    }

    fn summary(&self) -> String {
        let parts: Vec<String> = [
            (self.errors, "error", RED),
            (self.warnings, "warning", YELLOW),
            (self.repairs, "repair", BOLD),
            (self.notes, "note", BOLD),
        ]
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, noun, style)| styled(style, &count(number, noun)))
        .collect();
        let found = if parts.is_empty() {
            styled(GREEN, "nothing to remark")
        } else {
            parts.join(", ")
        };
        let read = count(self.envelopes, "envelope");
        format!("{read} read: {found}\n")
    }
}
