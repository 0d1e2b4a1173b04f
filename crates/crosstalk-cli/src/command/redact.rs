//! `crosstalk redact`: personal data taken out of a text and of the envelopes in it.

use crate::caret::Carets;
use crate::console::{Console, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::json;
use crate::paragraph::count;
use crate::schema::{NamedForm, REDACT};
use clap::Args;
use crosstalk_binding::redact_text;
use crosstalk_envelope::{LineIndex, Reading};
use crosstalk_protocol::redact::{PiiKind, RedactionRules};
use std::path::PathBuf;

/// Redact personal data in a text and the envelopes in it
///
/// Mail addresses, phone numbers, cards, account numbers, national ids, IP addresses and the names that you give are replaced by
/// placeholders such as [EMAIL]. In an envelope the body and other free text are redacted, and meta: privacy says so. Everything
/// else stays as it is. A person still has to read the result: data that no rule describes stays.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk redact chat.txt > clean.txt\n  crosstalk redact --name 'Jane Doe' --names team.txt message.crosstalk\n  crosstalk redact --check --only email --only phone outbox/*.crosstalk\n  crosstalk redact --json message.crosstalk | jq '.found'"
)]
pub(crate) struct Redact {
    #[command(flatten)]
    files: Files,
    /// Redact this name too; may be given again
    #[arg(long = "name", value_name = "NAME")]
    name: Vec<String>,
    /// Redact the names of a file, one per line; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    names: Vec<PathBuf>,
    /// Look for these kinds alone
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind, conflicts_with = "keep")]
    only: Vec<PiiKind>,
    /// Leave these kinds as they are: iban, card, nin, email, ip, phone, name
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    keep: Vec<PiiKind>,
    /// Write no text; name the places, and fail with exit code 1 if there is something to redact
    #[arg(long)]
    check: bool,
    /// Print JSON of the form crosstalk.redact/1, without the redacted data
    #[arg(long)]
    json: bool,
    /// Remove the signature of an envelope that is redacted
    #[arg(long)]
    drop_signature: bool,
}

fn kind(word: &str) -> Result<PiiKind, String> {
    PiiKind::from_wire(word).ok_or_else(|| {
        let words: Vec<&str> = PiiKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("the kinds are {}", words.join(", "))
    })
}

impl Redact {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rules = self.rules(console)?;
        let mut kinds = Vec::new();
        let mut exit = self.files.each(console, |console, input| {
            self.one(console, input, &rules, &mut kinds)
        })?;
        if self.json {
            return Ok(exit);
        }
        if exit == Exit::SUCCESS || !kinds.is_empty() {
            console.talk(&summary(&kinds, self.check))?;
        }
        if self.check && !kinds.is_empty() {
            exit = exit.worst(Exit::FAILURE);
        }
        Ok(exit)
    }

    fn rules(&self, console: &mut Console) -> Result<RedactionRules, Failure> {
        let mut names = self.name.clone();
        for path in &self.names {
            let input = Input::read(path, console)?;
            let text = input.text().map_err(|(_, fault)| {
                Failure::of_rule(
                    fault.rule,
                    &format!("{}: {}", input.shown_name(), fault.message),
                )
            })?;
            let lines = text
                .lines()
                .map(|l| l.split('#').next().unwrap_or("").trim());
            names.extend(lines.filter(|l| !l.is_empty()).map(str::to_owned));
        }
        if let Some(short) = names.iter().find(|name| name.trim().chars().count() < 2) {
            let message =
                format!("`{short}` is too short for a name: it would be found everywhere");
            return Err(Failure::usage(message));
        }
        let rules = RedactionRules::default()
            .with_names(names)
            .without(&self.keep);
        Ok(match self.only.is_empty() {
            true => rules,
            false => rules.only(&self.only),
        })
    }

    fn one(
        &self,
        console: &mut Console,
        input: &Input,
        rules: &RedactionRules,
        all: &mut Vec<PiiKind>,
    ) -> Result<Exit, Failure> {
        let (text, scan) = input.scan(Reading::Paste);
        let name = input.shown_name();
        if input.text().is_err() {
            let carets = Carets::new(&name, &text);
            for fault in &scan.rejected {
                console.talk(&carets.draw(fault))?;
            }
            return Ok(Exit::of(&scan.rejected));
        }
        // A check changes nothing, so a signature does not prevent it.
        let drops_signature = self.drop_signature || self.check;
        let outcome = redact_text(&text, &scan.documents, rules, drops_signature);
        let lines = LineIndex::new(&text);
        for fault in &outcome.faults {
            // No caret: the line would show what was found (RED-001).
            let line = lines.position(fault.span.start).line;
            let what = format!("{name}:{line}: {}", fault.message);
            console.failure(&Failure::of_rule(fault.rule, &what))?;
        }
        let mut exit = Exit::of(&outcome.faults);
        if outcome.attachments > 0 && !self.json {
            let number = count(outcome.attachments, "attachment");
            let word = styled(YELLOW, "warning");
            console.talk(&format!("{word}: {number} not looked into\n"))?;
        }
        if self.json {
            let text = (!self.check && outcome.faults.is_empty()).then(|| outcome.text.clone());
            let file = self.files.several().then(|| input.name.clone());
            let report = outcome.report(&lines, text, file);
            let report = NamedForm::new(REDACT, &report);
            if self.check && !outcome.found.is_empty() {
                exit = exit.worst(Exit::FAILURE);
            }
            let shown = match self.files.several() {
                true => json::line(&report)?,
                false => json::pretty(&report)?,
            };
            console.data(shown)?;
        } else if self.check {
            for found in &outcome.found {
                let place = lines.position(found.span.start);
                let line = format!("{name}:{}:{}: {}\n", place.line, place.column, found.kind);
                console.show(&line)?;
            }
        } else if outcome.faults.is_empty() {
            console.text(&outcome.text)?;
        } else {
            // Half of it redacted would look like all of it.
            let word = styled(YELLOW, "not written");
            console.talk(&format!("{name}: {word}: see the errors above\n"))?;
            return Ok(exit);
        }
        all.extend(outcome.found.iter().map(|found| found.kind));
        Ok(exit)
    }
}

/// `redacted: 2 email, 1 card`.
fn summary(kinds: &[PiiKind], check: bool) -> String {
    let number = |kind: &PiiKind| kinds.iter().filter(|k| *k == kind).count();
    let counted = PiiKind::ALL.iter().filter(|kind| number(kind) > 0);
    let parts: Vec<String> = counted
        .map(|kind| format!("{} {kind}", number(kind)))
        .collect();
    match (parts.is_empty(), check) {
        (true, _) => "nothing to redact\n".into(),
        (false, true) => format!("to redact: {}\n", parts.join(", ")),
        (false, false) => format!("redacted: {}\n", parts.join(", ")),
    }
}
