//! `crosstalk email`: mail as a gateway reads it (MAI-001 to MAI-024), and a test of the mail of a relay.

mod test;

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::wrap;
use crate::report::EmailReport;
use crate::schema::{EMAIL, NamedForm};
use crate::service::home::KeysAndTrust;
use crate::{clock, json, render};
use clap::Args;
use crosstalk_email::{MailError, MailKind, MailReading, read_mail};
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::VerifyContext;
use std::path::PathBuf;

group! {
    /// Read mail as a gateway does, and test the mail of a relay
    #[command(
        after_help = "Examples:\n  crosstalk email read answer.eml\n  crosstalk email read --json answer.eml | jq -r .kind\n  crosstalk email test --to ann@acme.example"
    )]
    Email { Read(ReadMail), Test(test::TestMail) }
}

/// Show what a mail gateway would make of a mail
///
/// Undoes the encoding of the mail, cuts quoted text and signatures off, and verifies the envelopes in it. The kind is envelope,
/// reply, bounce, auto or rejected; the exit code is 0 for all of them. The command uses no network: SPF, DKIM and DMARC stay
/// unknown.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk email read answer.eml\n  crosstalk email read --json answer.eml | jq -r .text\n  crosstalk email read - < answer.eml"
)]
pub(crate) struct ReadMail {
    /// The mail as its program saved it; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON of the form crosstalk.email/1
    #[arg(long)]
    json: bool,
}

impl ReadMail {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let trust = KeysAndTrust::open()?.trust()?;
        let question = VerifyContext {
            restore: true,
            ..VerifyContext::at(clock::now())
        };
        let reading = read_mail(input.bytes(), &trust, &question).map_err(|fault| {
            let what = format!("{}: {fault}", input.shown_name());
            match fault {
                MailError::TooLarge => Failure::refused(ErrorCode::TooLarge, what),
                _ => {
                    Failure::malformed(what).help("save the mail with its headers, as an .eml file")
                }
            }
        })?;
        if self.json {
            let report = EmailReport::new(&reading);
            console.data(json::pretty(&NamedForm::new(EMAIL, &report))?)?;
        } else {
            console.show(&describe(&reading))?;
        }
        Ok(Exit::SUCCESS)
    }
}

const NAMES: usize = 13;

/// A reading for people.
fn describe(reading: &MailReading) -> String {
    let style = match reading.kind {
        MailKind::Envelope | MailKind::Reply => GREEN,
        MailKind::Bounce | MailKind::Auto => YELLOW,
        MailKind::Rejected => RED,
    };
    let kind = reading.kind.as_str().to_uppercase();
    let from = reading
        .from
        .as_ref()
        .map_or("", |from| from.address.as_str());
    let mut out = format!(
        "{}  {}\n",
        styled(style, &kind),
        styled(BOLD, &escape(from).replace('\n', " "))
    );
    out.push_str(&format!("{}\n", wrap(&escape(&reading.why), 0, 0)));
    let mut field = |name: &str, value: &str| out.push_str(&render::field(name, NAMES, value));
    field("subject", &reading.subject);
    if let Some(id) = &reading.message_id {
        field("message id", id);
    }
    if let Some(id) = &reading.in_reply_to {
        field("in reply to", id);
    }
    let checks = &reading.authentication;
    let checks = format!(
        "SPF {}, DKIM {}, DMARC {}",
        checks.spf.as_str(),
        checks.dkim.as_str(),
        checks.dmarc.as_str()
    );
    field("checked", &checks);
    for envelope in &reading.envelopes {
        let document = envelope.document();
        let shown = format!(
            "{}→{}, {}",
            document.sender(),
            document.receiver(),
            envelope.verdict().word().as_str()
        );
        field("envelope", &shown);
    }
    for damage in &reading.damage {
        field("damage", damage);
    }
    section(&mut out, "new words", &reading.text);
    section(&mut out, "left out", &reading.cut);
    out
}

/// A text under its title, indented.
fn section(out: &mut String, title: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push_str(&format!("\n{}\n", styled(DIM, title)));
    for line in escape(text).lines() {
        let indent = if line.is_empty() { "" } else { "  " };
        out.push_str(&format!("{indent}{line}\n"));
    }
}
