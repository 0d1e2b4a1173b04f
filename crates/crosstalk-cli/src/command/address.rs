//! `crosstalk address`: parses addresses (ADR-001 to ADR-008) and resolves names (ADR-010 to ADR-015).

use crate::console::{BOLD, Console, DIM, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::render::field;
use crate::report::{NameStepReport, ResolveReport};
use crate::schema::{ADDRESS, RESOLVE};
use crate::service::dns::{DnsOptions, server};
use crate::service::recipient::ask_domain;
use crate::service::settings::Settings;
use clap::Args;
use crosstalk_binding::form::AddressReport;
use crosstalk_binding::{AddressFinding, address_findings};
use crosstalk_envelope::registry::{Rule, SchemeForm, SchemeKind, rule};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Address as Parts, Schemes, Severity};
use crosstalk_protocol::dns::AddressAnswer;
use crosstalk_protocol::{NameStep, Resolution, resolve};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

group! {
    /// Work with addresses
    #[command(
        after_help = "Examples:\n  crosstalk address parse human://dr.smith@clinic.example/inbox\n  crosstalk address resolve CLAUDE"
    )]
    AddressCommand {
        Parse(ParseAddress),
        Resolve(ResolveName),
    }
}

/// Show the parts of an address, and whom it reaches
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk address parse claude://session/abc123?model=opus\n  crosstalk address parse --json 'BROTHER AI'\n  crosstalk address parse --schemes acme.toml acme://printer\n\nThe file of --schemes has the format of spec/registry/schemes.toml:\n  [[scheme]]\n  name = \"acme\"\n  form = \"authority\"   # acme://…; or \"opaque\": acme:…\n  kind = \"tool\"        # person, assistant, mail, phone, tool, room, custom"
)]
struct ParseAddress {
    /// The address
    #[arg(value_name = "ADDR")]
    address: String,
    /// Print JSON of the form crosstalk.address/1
    #[arg(long)]
    json: bool,
    /// More schemes, in TOML
    #[arg(long, value_name = "FILE")]
    schemes: Option<PathBuf>,
}

impl ParseAddress {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let schemes = match &self.schemes {
            Some(path) => read_schemes(path, console)?,
            None => Schemes::default(),
        };
        let address = Parts::split(&self.address);
        let findings = address_findings(&self.address, &schemes);
        if self.json {
            console.report(ADDRESS, &AddressReport::new(&self.address, &schemes))?;
        } else {
            console.show(&as_text(&address, &schemes))?;
            for finding in &findings {
                console.talk(&describe_finding(finding))?;
            }
        }
        let error = findings.iter().find(|r| r.severity == Severity::Error);
        Ok(error.map_or(Exit::SUCCESS, |e| {
            e.rule.code.map_or(Exit::FAILURE, Exit::from)
        }))
    }
}

fn kind(address: &Parts<'_>, schemes: &Schemes) -> &'static str {
    schemes.kind(address).map_or("name", |kind| kind.as_str())
}

fn as_text(address: &Parts<'_>, schemes: &Schemes) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| out.push_str(&field(name, 11, value));
    line("address", address.as_str());
    line("kind", kind(address, schemes));
    let path = Some(address.path()).filter(|path| !address.is_name() && !path.is_empty());
    for (name, value) in [
        ("scheme", address.scheme()),
        ("authority", address.authority()),
        ("user", address.user()),
        ("host", address.host()),
        ("path", path),
        ("query", address.query()),
        ("fragment", address.fragment()),
    ] {
        if let Some(value) = value {
            line(name, value);
        }
    }
    out
}

fn describe_finding(finding: &AddressFinding) -> String {
    let style = match finding.severity {
        Severity::Error => crate::console::RED,
        Severity::Warning => crate::console::YELLOW,
        _ => DIM,
    };
    let id = match finding.rule.code {
        Some(code) => format!("{} {code}", finding.rule.id),
        None => finding.rule.id.to_owned(),
    };
    let head = styled(style, &format!("{}[{id}]", finding.severity.as_str()));
    let mut out = format!("{head}: {}\n", escape(&finding.message));
    if !finding.rule.help.is_empty() {
        out.push_str(&format!("  help: {}\n", finding.rule.help));
    }
    out
}

/// Find the address of a simple name, and show each step
///
/// A URL is an address already. A simple name is looked for in your names, see `crosstalk name`, and with --dns in the
/// domain that --domain or the setting `domain` gives, at _crosstalk-addr.NAME.DOMAIN. A name that is not found stays a
/// name, which a person resolves: that is no failure, unless --require is given.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk address resolve CLAUDE\n  crosstalk address resolve 'BROTHER AI' --dns --domain example.com\n  crosstalk address resolve --require --json CLAUDE\n\nExit codes:\n   0  an address was found, or the name stays a name\n  10  E-ROUTE: the name stays a name, and --require was given\n  16  E-TIMEOUT: the DNS did not answer; try again later"
)]
struct ResolveName {
    /// A simple name, or an address
    #[arg(value_name = "NAME")]
    name: String,
    /// The domain that lists addresses of names
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Fail with 10 if the name stays a name
    #[arg(long)]
    require: bool,
    /// Print JSON of the form crosstalk.resolve/1
    #[arg(long)]
    json: bool,
    /// Ask the domain. Without this or the setting `dns`, the command asks no name server
    #[arg(long)]
    dns: bool,
    /// Ask this name server, and not those of the system
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = server)]
    dns_server: Option<SocketAddr>,
    /// Check DNSSEC against the DNSKEY records of this file, and not those of the root
    #[arg(long, value_name = "FILE")]
    dns_anchor: Option<PathBuf>,
    /// An answer that DNSSEC does not protect gives no address
    #[arg(long)]
    require_dnssec: bool,
}

impl ResolveName {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let read = Address::parse(&self.name);
        read.map_err(|fault| Failure::of_rule(fault.rule, fault.message))?;
        let config = Settings::open(console)?;
        let answer = self.ask(&config)?;
        let resolution = resolve(&self.name, config.names(), answer.as_ref());
        match self.json {
            true => console.report(RESOLVE, &resolution_report(&resolution))?,
            false => console.show(&describe_resolution(&resolution))?,
        }
        let Some(rule) = self.fault(&resolution) else {
            return Ok(Exit::SUCCESS);
        };
        let what = format!("`{}` stays a name", resolution.result);
        let fault = Failure::of_rule(rule, &what);
        if !self.json {
            console.failure(&fault)?;
        }
        Ok(fault.exit())
    }

    /// The rule that makes an unresolved name a failure.
    fn fault(&self, resolution: &Resolution) -> Option<&'static Rule> {
        if resolution.is_resolved() {
            None
        } else if resolution.is_retry() {
            Some(&rule::NAME_UNAVAILABLE)
        } else {
            self.require.then_some(&rule::RESOLVE_ORDER)
        }
    }

    /// Asks the DNS, if the caller or the settings allow it.
    fn ask(&self, config: &Settings) -> Result<Option<AddressAnswer>, Failure> {
        if !self.dns && !config.dns() {
            let given = self.domain.is_some() || self.dns_server.is_some();
            return match given || self.dns_anchor.is_some() || self.require_dnssec {
                true => Err(
                    Failure::usage("the command asks no name server without --dns")
                        .help("add it, or `crosstalk config set dns true`"),
                ),
                false => Ok(None),
            };
        }
        let look = DnsOptions {
            dns: true,
            dns_server: self.dns_server,
            dns_anchor: self.dns_anchor.clone(),
            require_dnssec: self.require_dnssec,
        };
        let domain = self.domain.clone().or_else(|| config.domain());
        ask_domain(&look, config, domain, &self.name)
    }
}

/// The label and the sentence of a step, and whether something is wrong.
fn describe_step(step: &NameStep) -> (&'static str, String, bool) {
    match step {
        NameStep::Url { .. } => ("url", "it is an address already".to_owned(), false),
        NameStep::Table { name, address } => {
            ("table", format!("{name} stands for {address}"), false)
        }
        NameStep::NotInTable { name } => (
            "table",
            format!("{name} is not in the table of names"),
            false,
        ),
        NameStep::Loop { way } => {
            let way = way.join(" → ");
            ("table", format!("it leads in a circle: {way}"), true)
        }
        NameStep::TooLong { name } => {
            let text = format!("too many names stand for each other, beginning with {name}");
            ("table", text, true)
        }
        NameStep::Dns {
            at,
            address,
            others,
            wrong,
            dnssec,
        } => {
            let mut text = format!("{at} lists {address} (DNSSEC: {})", dnssec.as_str());
            if !others.is_empty() {
                let others = others.join(", ");
                text.push_str(&format!("; the first one is used, and not {others}"));
            }
            for fault in wrong {
                text.push_str(&format!("; a record is no address: {fault}"));
            }
            ("dns", text, !wrong.is_empty())
        }
        NameStep::NotInDns { at, dnssec } => {
            let text = format!("{at} lists nothing (DNSSEC: {})", dnssec.as_str());
            ("dns", text, false)
        }
        NameStep::DnsWrong { reason } => ("dns", reason.clone(), true),
        NameStep::DnsUnavailable { reason } => {
            let text = format!("{reason}; this does not mean that there is none: try again later");
            ("dns", text, true)
        }
        NameStep::DnsUnasked { reason } => ("dns", reason.clone(), false),
        NameStep::Person { name } => {
            let text = format!("{name} stays a name, which a person resolves");
            ("person", text, false)
        }
    }
}

fn describe_resolution(resolution: &Resolution) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        let pad = " ".repeat(9_usize.saturating_sub(label.len()));
        out.push_str(&format!("{}{pad}{text}\n", styled(DIM, label)));
    };
    line("name", &escape(&resolution.asked));
    for step in &resolution.steps {
        let (label, text, is_wrong) = describe_step(step);
        let text = escape(&text);
        match is_wrong {
            true => line(label, &styled(YELLOW, &text)),
            false => line(label, &text),
        }
    }
    if resolution.is_resolved() {
        line("address", &styled(BOLD, &escape(&resolution.result)));
    }
    out
}

fn resolution_report(resolution: &Resolution) -> ResolveReport {
    ResolveReport {
        name: resolution.asked.clone(),
        resolved: resolution.is_resolved(),
        result: resolution.result.clone(),
        retry: resolution.is_retry(),
        steps: resolution.steps.iter().map(step_report).collect(),
    }
}

fn step_report(step: &NameStep) -> NameStepReport {
    let mut report = NameStepReport {
        step: step.as_str(),
        sentence: describe_step(step).1,
        ..NameStepReport::default()
    };
    match step.clone() {
        NameStep::Url { address } => report.address = Some(address),
        NameStep::Table { name, address } => {
            (report.name, report.address) = (Some(name), Some(address));
        }
        NameStep::NotInTable { name } | NameStep::TooLong { name } | NameStep::Person { name } => {
            report.name = Some(name);
        }
        NameStep::Loop { way } => report.others = way,
        NameStep::Dns {
            at,
            address,
            others,
            wrong,
            dnssec,
        } => {
            (report.at, report.address) = (Some(at), Some(address));
            (report.others, report.wrong) = (others, wrong);
            report.dnssec = Some(dnssec.as_str());
        }
        NameStep::NotInDns { at, dnssec } => {
            (report.at, report.dnssec) = (Some(at), Some(dnssec.as_str()));
        }
        NameStep::DnsWrong { .. }
        | NameStep::DnsUnavailable { .. }
        | NameStep::DnsUnasked { .. } => {}
    }
    report
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeRegistry {
    #[serde(default)]
    scheme: Vec<SchemeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeEntry {
    name: String,
    form: EntryForm,
    kind: String,
    /// For people only.
    #[serde(default, rename = "summary")]
    _summary: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryForm {
    Authority,
    Opaque,
}

fn read_schemes(path: &Path, console: &mut Console) -> Result<Schemes, Failure> {
    let input = Input::read(path, console)?;
    let refused = |why: &dyn std::fmt::Display| {
        let message = format!("{}: {why}", input.name);
        Failure::malformed(message)
    };
    let text = input.text().map_err(|(_, fault)| refused(&fault))?;
    let registry: SchemeRegistry = toml::from_str(text).map_err(|e| refused(&e))?;
    let mut schemes = Schemes::default();
    for entry in registry.scheme {
        let Some(kind) = SchemeKind::parse(&entry.kind) else {
            let message = format!(
                "the scheme `{}` has no known kind: `{}`",
                entry.name, entry.kind
            );
            return Err(refused(&message));
        };
        let form = match entry.form {
            EntryForm::Authority => SchemeForm::Authority,
            EntryForm::Opaque => SchemeForm::Opaque,
        };
        schemes.add(entry.name, form, kind);
    }
    Ok(schemes)
}
