//! `crosstalk verify`: says who signed an envelope, and whether it is complete (SIG-010 to SIG-017, SIG-030, TRU-001 to
//! TRU-025).

use crate::caret::Carets;
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::paragraph::{width, wrap};
use crate::schema::{NamedForm, VERIFY};
use crate::service::dns::{DnsLookup, DnsOptions};
use crate::service::home::{KeysAndTrust, public_key};
use crate::{clock, json, render};
use anstyle::Style;
use clap::Args;
use crosstalk_binding::document_findings;
use crosstalk_binding::form::VerifyReport;
use crosstalk_envelope::rc1::{Rc1, Rc1Error, verify};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Diagnostic, Document, LineIndex, PublicKey, Reading, Timestamp};
use crosstalk_protocol::{Trust, Verdict, VerdictWord, VerifyContext};

/// Verify who signed an envelope, and whether it is whole
///
/// Reads the text as a paste. The verdict is one word, a sentence and what to do next; only --text shows the body. The command pins
/// nothing, and asks no name server without --dns.
#[derive(Args, Debug)]
#[command(
    after_help = format!("{}\n\nExamples:\n  crosstalk verify pasted.txt\n  crosstalk verify --text pasted.txt > message.crosstalk\n  crosstalk verify --json --dns pasted.txt | jq -r .verdict", exit::verdicts())
)]
pub(crate) struct Verify {
    #[command(flatten)]
    files: Files,
    /// Print JSON of the form crosstalk.verify/1, one object per line
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Print the verified message, rebuilt from the signed bytes, and the verdict on stderr
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
    look: DnsOptions,
}

/// What verdicts are made from, and what was printed so far.
struct VerifyRun<'s> {
    command: &'s Verify,
    key: Option<PublicKey>,
    trust: Trust,
    lookup: DnsLookup<'s>,
    first: bool,
    first_text: bool,
}

impl Verify {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let key = self.key.as_deref().map(public_key).transpose()?;
        if self.rc1 {
            return self.files.each(console, |console, input| {
                check_rc1(&self, console, input, key.as_ref())
            });
        }
        let rooms = KeysAndTrust::open()?;
        let mut session = VerifyRun {
            command: &self,
            key,
            trust: rooms.trust()?,
            lookup: DnsLookup::new(&self.look, &rooms)?,
            first: true,
            first_text: true,
        };
        self.files
            .each(console, |console, input| session.one(console, input))
    }

    /// Prints a report for programs, with the findings of the reading, and with its file if there are several.
    fn print(
        &self,
        console: &mut Console,
        report: VerifyReport,
        findings: &[Diagnostic],
        (lines, input): (&LineIndex<'_>, &Input),
    ) -> Result<(), Failure> {
        let report = VerifyReport {
            file: self.files.several().then(|| input.name.clone()),
            ..report.with_findings(findings, lines)
        };
        console.data(json::line(&NamedForm::new(VERIFY, &report))?)
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
        let mut exit = Exit::SUCCESS;
        for document in &scan.documents {
            let verdict = self.judge(console, document)?;
            exit = exit.worst(verdict.word().into());
            if self.command.json {
                let report = verdict.report().into();
                let findings = document.diagnostics();
                self.command
                    .print(console, report, findings, (&lines, input))?;
                continue;
            }
            let line = lines.position(document.span().start).line;
            let shown = describe_verdict(&verdict, document, &lines, &format!("{name}:{line}"))?;
            let gap = if self.first { "" } else { "\n" };
            self.command.tell(console, &format!("{gap}{shown}"))?;
            self.first = false;
            if self.command.text {
                self.print_text(console, document, &verdict)?;
            }
        }
        if self.command.json {
            if scan.rejected.iter().any(|d| d.is_error()) {
                let report = VerifyReport::unreadable(&scan.rejected);
                self.command
                    .print(console, report, &scan.rejected, (&lines, input))?;
            }
        } else {
            Carets::new(&name, &text).tell(console, &scan.rejected)?;
        }
        Ok(exit.worst(Exit::of(&scan.rejected)))
    }

    fn judge(
        &mut self,
        console: &mut Console,
        document: &Document<'_>,
    ) -> Result<Verdict, Failure> {
        let question = VerifyContext {
            key: self.key.as_ref(),
            restore: true,
            ..VerifyContext::at(self.command.at.unwrap_or_else(clock::now))
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
        if verdict.word() == VerdictWord::Damaged {
            console.talk(RESTORED)?;
        }
        console.data(if self.first_text { "" } else { "\n" })?;
        self.first_text = false;
        console.text(&text)
    }

    /// The envelope with the restored body, if that verifies.
    fn restored(&self, document: &Document<'_>, verdict: &Verdict) -> Option<String> {
        let text = with_body(document, verdict.restored()?)?;
        let question = VerifyContext {
            key: self.key.as_ref(),
            restore: true,
            ..VerifyContext::at(self.command.at.unwrap_or_else(clock::now))
        };
        let restored = Document::parse(&text, Reading::Paste);
        let verdict = crosstalk_protocol::verify(&restored, &self.trust, &question);
        verdict.verified().map(|v| v.to_envelope())
    }
}

/// What stands above a restored text.
const RESTORED: &str = "stdout has the message with its original line breaks, restored. It verifies; the paste does not.\n";

const NAMES: usize = 13;

/// A verdict, rendered with styles. `place` says where the envelope was found.
fn describe_verdict(
    verdict: &Verdict,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
    place: &str,
) -> Result<String, Failure> {
    let mut out = describe_report(verdict.word(), &verdict.report().into(), place);
    for finding in document_findings(document) {
        if finding.rule.drops || render::is_worth_telling(&finding) {
            out.push_str(&render::remark(&finding, lines));
        }
    }
    Ok(out)
}

/// What a report says, without remarks on the reading.
fn describe_report(word: VerdictWord, report: &VerifyReport, place: &str) -> String {
    let sides = (report.sender.as_deref(), report.receiver.as_deref());
    let mut out = title(word, sides, place);
    out.push_str(&format!("{}\n", wrap(&escape(&report.sentence), 0, 0)));
    let next = wrap(&escape(&report.next), 6, 6);
    out.push_str(&format!("{} {next}\n", styled(BOLD, "Next:")));
    let mut line = |name: &str, value: &str| out.push_str(&render::field(name, NAMES, value));
    if let Some(change) = &report.key_change {
        line("known key", &change.known);
        line("other key", &change.offered);
    } else if let Some(fingerprint) = &report.fingerprint {
        line("fingerprint", fingerprint);
    }
    if let (Some(at), Some(_)) = (&report.signed_at, &report.fingerprint) {
        line("signed at", at);
    }
    if let Some(rule) = &report.rule {
        let code = report.code.as_ref();
        let code = code.map_or(String::new(), |code| format!(" {code}"));
        line("rule", &format!("{rule}{code}"));
    }
    out
}

/// `VERIFIED  CLAUDE → CHATGPT                 pasted.txt:3`
fn title(word: VerdictWord, sides: (Option<&str>, Option<&str>), place: &str) -> String {
    let badge = badge(word);
    let sides = match sides {
        (Some(sender), Some(receiver)) => format!("{} → {}", escape(sender), escape(receiver)),
        _ => String::new(),
    };
    let used = badge.chars().count() + 2 + sides.chars().count() + place.chars().count();
    // Where the place does not fit behind the sides, it stands below them.
    let gap = match width().saturating_sub(used) {
        0 | 1 => "\n".to_owned(),
        free => " ".repeat(free),
    };
    format!(
        "{}  {}{gap}{}\n",
        styled(style(word), &badge),
        styled(BOLD, &sides),
        styled(DIM, place)
    )
}

/// The word as it catches the eye.
fn badge(word: VerdictWord) -> String {
    word.as_str().replace('-', " ").to_uppercase()
}

const fn style(word: VerdictWord) -> Style {
    match word {
        VerdictWord::Verified => GREEN,
        VerdictWord::FirstContact
        | VerdictWord::Unbound
        | VerdictWord::Unsigned
        | VerdictWord::UnknownKey => YELLOW,
        VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked => RED,
    }
}

/// The envelope with another body text. Whether that verifies is for the caller to see.
fn with_body(document: &Document<'_>, body: &str) -> Option<String> {
    let text = document.to_well_formed();
    let is_mark = |line: &str| matches!(line, "body: |\n" | "response: |\n");
    let mut out = String::with_capacity(text.len() + body.len());
    let mut lines = text.split_inclusive('\n');
    for line in lines.by_ref() {
        out.push_str(line);
        if is_mark(line) {
            break;
        }
    }
    // Lines of the body are indented or empty, so the first other one is the signature.
    let rest = lines.skip_while(|line| !line.starts_with("sig: "));
    for line in body.split('\n') {
        let indent = if line.is_empty() { "" } else { "  " };
        out.push_str(&format!("{indent}{line}\n"));
    }
    let before = out.len();
    out.extend(rest);
    (out.len() > before).then_some(out)
}

/// Checks one text.
fn check_rc1(
    command: &Verify,
    console: &mut Console,
    input: &Input,
    key: Option<&PublicKey>,
) -> Result<Exit, Failure> {
    let text = input
        .text()
        .map_err(|(_, fault)| Failure::of_rule(fault.rule, &fault.message))?;
    let result = verify(text, key);
    let word = match result {
        Ok(_) => VerdictWord::Verified,
        Err(_) => VerdictWord::NotVerified,
    };
    let report = report_rc1(word, &result);
    match command.json {
        true => command.print(console, report, &[], (&LineIndex::new(text), input))?,
        false => command.tell(
            console,
            &describe_report(word, &report, &input.shown_name()),
        )?,
    }
    if let (true, Ok(verified)) = (command.text, &result) {
        console.text(verified.payload())?;
    }
    Ok(word.into())
}

fn report_rc1(word: VerdictWord, result: &Result<Rc1, Rc1Error>) -> VerifyReport {
    let report = VerifyReport {
        verdict: word.as_str(),
        rule: Some(rule::RC1.id),
        ..VerifyReport::default()
    };
    let verified = match result {
        Ok(verified) => verified,
        Err(fault) => {
            return VerifyReport {
                sentence: format!("This is no valid message of the rc1 test format: {fault}."),
                next: "Don't act on it; check current messages without --rc1.".to_owned(),
                ..report
            };
        }
    };
    let key = verified.key();
    let envelope = format!("{}sig: none\n[[END]]\n", verified.payload());
    let document = Document::parse(&envelope, Reading::Paste);
    let known = key.denied().map_or(String::new(), |reason| {
        format!("; that key is on the deny list: it was {reason}")
    });
    VerifyReport {
        body: Some("intact"),
        algorithm: Some(key.algorithm().to_string()),
        fingerprint: Some(key.fingerprint().to_string()),
        trust: Some("rc1"),
        sender: Some(document.sender().to_owned()),
        receiver: Some(document.receiver().to_owned()),
        sentence: format!("Signed in the rc1 test format, and nothing was changed{known}."),
        next: "Use it for tests only: no other command accepts this format as verified.".to_owned(),
        ..report
    }
}

#[cfg(test)]
mod restored_tests {
    use super::*;
    use crosstalk_envelope::Reading;

    #[test]
    fn only_the_body_is_another_one() {
        let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  a b\n  sig: x\nsig: none\n[[END]]\n";
        let document = Document::parse(text, Reading::Strict);
        let other = with_body(&document, "a\n\nb").unwrap();
        assert_eq!(other, text.replace("  a b\n  sig: x\n", "  a\n\n  b\n"));
    }
}
