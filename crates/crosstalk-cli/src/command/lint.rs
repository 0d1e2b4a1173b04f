//! `crosstalk lint`: reports every finding, with a caret under its place and the help of its rule.

use crate::caret::Carets;
use crate::console::{BOLD, Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input, reading};
use crate::json;
use crate::paragraph::count;
use crate::schema::LINT;
use clap::Args;
use crosstalk_binding::form::{LintReport, finding_value};
use crosstalk_envelope::LineIndex;

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
    /// Repair nothing: check by the strict rules of a relay
    #[arg(long)]
    strict: bool,
    /// Print JSON of the form crosstalk.lint/1
    #[arg(long)]
    json: bool,
    /// Fail with exit code 1 if there are warnings
    #[arg(long)]
    deny_warnings: bool,
}

impl Lint {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut report = LintReport::default();
        let mut exit = self.files.each(console, |console, input| {
            self.check(console, input, &mut report)
        })?;
        if self.json {
            console.report(LINT, &report)?;
        } else {
            console.talk(&summary(&report))?;
        }
        if self.deny_warnings && report.counts.warning > 0 {
            exit = exit.worst(Exit::FAILURE);
        }
        Ok(exit)
    }

    fn check(
        &self,
        console: &mut Console,
        input: &Input,
        report: &mut LintReport,
    ) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(reading(self.strict));
        let findings = report.add_scan(&scan);
        let name = input.shown_name();
        let (carets, lines) = (Carets::new(&name, &text), LineIndex::new(&text));
        for diagnostic in &findings {
            if self.json {
                let mut finding = finding_value(diagnostic, &lines);
                if self.files.several() {
                    json::tag(&mut finding, &input.name);
                }
                report.diagnostics.push(finding);
            } else {
                console.show(&carets.draw(diagnostic))?;
            }
        }
        Ok(Exit::of(&findings))
    }
}

/// How many findings of each severity there are, in a line.
fn summary(report: &LintReport) -> String {
    let counts = &report.counts;
    let parts: Vec<String> = [
        (counts.error, "error", RED),
        (counts.warning, "warning", YELLOW),
        (counts.repair, "repair", BOLD),
        (counts.note, "note", BOLD),
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
    let read = count(report.envelopes, "envelope");
    format!("{read} read: {found}\n")
}
