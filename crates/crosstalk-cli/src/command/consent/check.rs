//! `crosstalk consent check`: whether the consent of an envelope is enough.

use crate::console::{Console, DIM, GREEN, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::lines;
use crate::report::{CheckedConsentReport, ConsentCheckReport, RefusalReport};
use crate::schema::CONSENT_CHECK;
use crate::service::consent;
use crate::service::dns::Look;
use crate::service::intake::Incoming;
use crate::service::workspace::Desk;
use crate::{clock, view};
use clap::Args;
use crosstalk_envelope::reply::Refusal;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Reading, Timestamp};
use crosstalk_protocol::consent::{Need, Terms};
use crosstalk_protocol::store::Way;
use std::path::PathBuf;

/// Say whether the consent of a message is enough, without keeping it
///
/// Holds it against the rules, the settings and what is on record here, and names the rule that it breaks and what to do.
/// The command asks no relay and writes nothing.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent check message.txt\n  crosstalk consent check --at 2027-01-01T00:00:00Z --json message.txt | jq .envelopes[0].refusal\n\nExit codes: 0 enough, or none is needed; 11 not enough; 12 no message that can be read; 14 a REVOKE that its\nsender may not make, or that is not surely theirs."
)]
pub(super) struct Check {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// At this time, instead of now
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// Print JSON of the form crosstalk.consent-check/1
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let (text, scan) = input.scan(Reading::Paste);
        let mut exit = Exit::of(&scan.refused);
        if let Some(fault) = scan.refused.iter().find(|d| d.is_error()) {
            let line = fault.position(&text).line;
            console.talk(&format!(
                "{}: line {line}: {} ({})\n",
                styled(RED, "error"),
                escape(&fault.message),
                fault.rule.id
            ))?;
        }
        let look = Look::default();
        let mut incoming = Incoming::new(desk, &look)?;
        incoming.at = self.at;
        let store = desk.messages(console)?;
        let mut envelopes = Vec::new();
        for document in &scan.documents {
            let taken = incoming.take(console, document, Way::Pasted)?;
            let judged = match &store {
                Some(store) => taken.said.judge(store, &taken.arrival, &incoming.policy)?,
                None => taken.said.judge_alone(&taken.arrival, &incoming.policy),
            };
            if let Err(refusal) = &judged {
                exit = exit.worst(refusal.code.into());
            }
            let one = CheckedConsent {
                document,
                said: &taken.said,
                judged: &judged,
            };
            match self.json {
                true => envelopes.push(one.report()),
                false => one.show(console)?,
            }
        }
        if self.json {
            console.report(CONSENT_CHECK, &ConsentCheckReport { envelopes })?;
        }
        Ok(exit)
    }
}

/// A message, and what was found out about its consent.
struct CheckedConsent<'c> {
    document: &'c Document<'c>,
    said: &'c consent::Said,
    judged: &'c Result<Terms, Refusal>,
}

impl CheckedConsent<'_> {
    /// What an explicit consent is needed for, in words.
    fn needs(&self) -> Vec<String> {
        let needs = self.said.claim().into_iter().flat_map(|c| c.needs());
        needs
            .map(|need| match need {
                Need::Pii => "PII: present".to_owned(),
                Need::Scope(scope) => format!("Scope: {scope}"),
            })
            .collect()
    }

    fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let who = format!(
            "{} → {}",
            view::line(self.document.sender()),
            view::line(self.document.receiver())
        );
        let (word, why) = match self.judged {
            Ok(_) if self.needs().is_empty() => (styled(GREEN, "enough"), "needs none".to_owned()),
            Ok(_) => {
                let needs = view::line(&self.needs().join(", "));
                (styled(GREEN, "enough"), format!("for {needs}"))
            }
            Err(refusal) => {
                let why = escape(&consent::sentence(refusal)).into_owned();
                (styled(RED, "not enough"), lines(&why, 0))
            }
        };
        let how = self.said.assurance().as_str();
        console.show(&format!("{word}  {who}  {}\n{why}\n", styled(DIM, how)))
    }

    fn report(&self) -> CheckedConsentReport {
        let claim = self.said.claim();
        let terms = self.judged.as_ref().ok();
        CheckedConsentReport {
            from: self.document.sender().to_owned(),
            to: self.document.receiver().to_owned(),
            enough: terms.is_some(),
            needs: self.needs(),
            consent: claim.and_then(|c| c.text.clone()),
            scopes: claim.map_or_else(Vec::new, |c| c.scopes.clone()),
            assurance: self.said.assurance().as_str(),
            expires: terms.and_then(|t| t.expires).map(|t| t.to_string()),
            under: terms.map_or_else(Vec::new, |t| t.under.clone()),
            refusal: self.judged.as_ref().err().map(RefusalReport::new),
        }
    }
}
