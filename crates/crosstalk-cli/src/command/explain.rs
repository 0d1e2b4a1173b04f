//! `crosstalk explain`: a rule of the specification, a code of the taxonomy, or a verdict.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::{self};
use crate::failure::Failure;
use crate::paragraph::wrap;
use clap::Args;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::{ErrorCode, Intent};
use crosstalk_protocol::VerdictWord;

/// Explain a rule, an intent, an error code or a verdict
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk explain ENV-042\n  crosstalk explain E-CONSENT\n  crosstalk explain first-contact\n  crosstalk explain            # lists all rules"
)]
pub(crate) struct Explain {
    /// A rule such as ENV-042, an intent such as POLL, a code such as E-FORMAT or a verdict such as damaged; none lists all
    /// rules
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

impl Explain {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let Some(asked) = self.rule else {
            for rule in rule::ALL {
                let line = format!("{}  {}\n", styled(BOLD, rule.id), wrap(rule.title, 9, 9));
                console.show(&line)?;
            }
            return Ok(());
        };
        let name = asked.to_ascii_uppercase();
        let text = if let Some(rule) = rule::ALL.iter().find(|r| r.id == name) {
            about_rule(rule)
        } else if let Some(intent) = Intent::from_wire(&name) {
            let head = styled(BOLD, intent.as_str());
            format!("{head}\n{}", line("means", intent.summary()))
        } else if let Some(code) = ErrorCode::from_wire(&name) {
            about_code(code)
        } else if let Some(word) = verdict(&asked) {
            about_verdict(word)
        } else {
            return Err(Failure::usage(format!(
                "there is no rule, intent, code or verdict `{asked}`"
            ))
            .help("`crosstalk explain` lists all rules"));
        };
        console.show(&text)
    }
}

fn about_rule(rule: &Rule) -> String {
    let head = format!("{}: {}", rule.id, rule.title);
    let mut out = format!("{}\n", styled(BOLD, &wrap(&head, 0, 0)));
    if let Some(code) = rule.code {
        out.push_str(&line("code", &code_in_short(code)));
    }
    if !rule.help.is_empty() {
        out.push_str(&line("help", rule.help));
    }
    out.push_str(&line("more", &format!("spec/{}", page(rule))));
    out
}

fn about_code(code: ErrorCode) -> String {
    let head = format!("{code}: {}", code.summary());
    let rules = rule::ALL.iter().filter(|r| r.code == Some(code));
    let ids: Vec<&str> = rules.map(|r| r.id).collect();
    let mut out = format!("{}\n", styled(BOLD, &head));
    out.push_str(&line("code", &code_in_short(code)));
    if !ids.is_empty() {
        out.push_str(&line("rules", &ids.join(" ")));
    }
    out.push_str(&line("more", "spec/errors.md"));
    out
}

fn verdict(asked: &str) -> Option<VerdictWord> {
    // As `verify` shows it, too: NOT VERIFIED.
    let name = asked.to_ascii_lowercase().replace([' ', '_'], "-");
    VerdictWord::ALL.into_iter().find(|w| w.as_str() == name)
}

fn about_verdict(word: VerdictWord) -> String {
    let head = format!("{}: {}", word.as_str(), exit::meaning(word));
    let advice = match word {
        VerdictWord::Verified => "use it",
        VerdictWord::FirstContact => {
            "compare the fingerprint with the sender by voice, then crosstalk trust pin"
        }
        VerdictWord::Unbound => {
            "ask the sender over another channel whether the key is theirs, then pin it with `crosstalk trust pin FILE`"
        }
        VerdictWord::Unsigned => "treat it as text of an unknown author",
        VerdictWord::UnknownKey => {
            "ask the sender to sign with --with-key, or try again if DNS did not answer"
        }
        VerdictWord::Damaged => {
            "copy it again inside a code fence, or ask for it again; the verdict names the lines"
        }
        VerdictWord::NotVerified => {
            "ask the sender over another channel; the verdict says what is wrong"
        }
        VerdictWord::Revoked => "ask the sender over another channel for the new key",
    };
    let mut out = format!("{}\n", styled(BOLD, &wrap(&head, 0, 0)));
    out.push_str(&line(
        "exit",
        &format!("code {} of crosstalk verify", word.exit_code()),
    ));
    out.push_str(&line("help", advice));
    out.push_str(&line("more", "spec/trust.md"));
    out
}

fn code_in_short(code: ErrorCode) -> String {
    format!(
        "{code} (exit code {}, HTTP {})",
        code.exit_code(),
        code.http_status()
    )
}

fn line(name: &str, text: &str) -> String {
    format!(
        "{}{}\n",
        styled(DIM, &format!("{name:<7}")),
        wrap(text, 7, 7)
    )
}

/// The document that holds the rule.
fn page(rule: &Rule) -> &'static str {
    match rule.id.split('-').next() {
        Some("INT") => "intents.md",
        Some("MET") => "meta.md",
        Some("ADR") => "addressing.md",
        Some("ERR") => "errors.md",
        Some("TRN") => "transports.md",
        Some("CAN") => "canonical.md",
        Some("SIG") => "signing.md",
        Some("TRU") => "trust.md",
        Some("RED") => "redaction.md",
        Some("POL") => "polls.md",
        Some("AUD") => "audit.md",
        Some("CON") if rule.id >= "CON-060" => "approvals.md",
        Some("CON") => "consent.md",
        Some("HTP") => "http.md",
        Some("MAI") => "email.md",
        Some("TXT") => "sms.md",
        _ => "envelope.md",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stands_in_the_document_that_is_named() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/");
        for rule in rule::ALL {
            let text = std::fs::read_to_string(format!("{root}{}", page(rule))).unwrap();
            assert!(text.contains(&format!("**{}**", rule.id)), "{}", rule.id);
        }
    }
}
