//! Addresses: their parts, and the findings about them (ADR-001 to ADR-008).

use crate::form::{ADDRESS, AddressFindingReport, AddressReport, NamedForm};
use crosstalk_envelope::name::is_deceptive;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::{Address, Schemes, Severity, unicode};

/// A finding about an address.
#[derive(Debug)]
pub struct AddressFinding {
    /// The rule that it is about.
    pub rule: &'static Rule,
    /// How much it weighs.
    pub severity: Severity,
    /// The finding, as a sentence.
    pub message: String,
}

/// The parts of an address, as `crosstalk address parse --json` prints them. An invalid address has a report, too.
///
/// ```
/// let json = crosstalk_binding::parse_address("human://dr.smith@clinic.example/inbox");
/// assert!(json.contains(r#""kind":"person""#) && json.contains(r#""host":"clinic.example""#));
/// ```
pub fn parse_address(text: &str) -> String {
    let report = AddressReport::new(text, &Schemes::default());
    NamedForm::new(ADDRESS, &report).to_json()
}

/// The findings about an address.
pub fn address_findings(text: &str, schemes: &Schemes) -> Vec<AddressFinding> {
    let mut findings = Vec::new();
    let mut push = |rule, severity, message: String| {
        findings.push(AddressFinding {
            rule,
            severity,
            message,
        });
    };
    match schemes.parse(text) {
        Err(fault) => push(fault.rule, Severity::Error, fault.message.to_owned()),
        Ok(address) if !address.is_name() && !is_registered(&address, schemes) => {
            let scheme = address.scheme().unwrap_or("");
            let message = format!("the scheme `{scheme}` is not in the registry");
            push(&rule::SCHEME_UNKNOWN, Severity::Note, message);
        }
        Ok(_) => {}
    }
    if is_deceptive(text) {
        let message = "the address has letters that look like those of another alphabet";
        push(&rule::LOOK_ALIKE, Severity::Warning, message.to_owned());
    }
    if text.contains(unicode::is_bidi_control) {
        let message = "the address has bidirectional controls in it";
        push(&rule::BIDI_CONTROL, Severity::Warning, message.to_owned());
    }
    if text.contains(unicode::is_invisible) {
        let message = "the address has invisible characters in it";
        push(&rule::INVISIBLE, Severity::Warning, message.to_owned());
    }
    findings
}

fn is_registered(address: &Address<'_>, schemes: &Schemes) -> bool {
    address.scheme().is_some_and(|s| schemes.find(s).is_some())
}

impl AddressReport {
    /// The report on an address.
    pub fn new(text: &str, schemes: &Schemes) -> Self {
        let address = Address::split(text);
        let findings = address_findings(text, schemes);
        let own = |part: Option<&str>| part.map(str::to_owned);
        Self {
            address: address.as_str().to_owned(),
            valid: findings.iter().all(|f| f.severity != Severity::Error),
            kind: schemes.kind(&address).map_or("name", |kind| kind.as_str()),
            registered: is_registered(&address, schemes),
            scheme: own(address.scheme()),
            authority: own(address.authority()),
            user: own(address.user()),
            host: own(address.host()),
            query: own(address.query()),
            fragment: own(address.fragment()),
            path: address.path().to_owned(),
            diagnostics: findings.iter().map(AddressFinding::report).collect(),
        }
    }
}

impl AddressFinding {
    fn report(&self) -> AddressFindingReport {
        AddressFindingReport {
            rule: self.rule.id,
            severity: self.severity.as_str(),
            code: self.rule.code.map(|c| c.as_str()),
            message: self.message.clone(),
            help: self.rule.help,
        }
    }
}
