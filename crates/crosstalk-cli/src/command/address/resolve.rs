//! `crosstalk address resolve`: from a simple name to an address, step by step (ADR-010 to ADR-015).

use crate::console::{BOLD, Console, DIM, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::dns::{Look, server};
use crate::service::recipient::ask_domain;
use crate::service::settings::Config;
use crate::{json, schema};
use clap::Args;
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::dns::{AddressAnswer, Dnssec};
use crosstalk_protocol::{Resolution, Step, resolve};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Find the address of a simple name, and show each step
///
/// A URL is an address already. A simple name is looked for in your names, see `crosstalk name`, and with --dns in the
/// domain that --domain or the setting `domain` gives, at _crosstalk-addr.NAME.DOMAIN. A name that is not found stays a
/// name, which a person resolves: that is no failure, unless --require is given.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk address resolve CLAUDE\n  crosstalk address resolve 'BROTHER AI' --dns --domain example.com\n  crosstalk address resolve --require --json CLAUDE\n\nExit codes:\n   0  an address was found, or the name stays a name\n  10  E-ROUTE: the name stays a name, and --require was given\n  16  E-TIMEOUT: the DNS did not answer; try again later"
)]
pub(super) struct Resolve {
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
    /// Ask the domain. Without this or the setting `dns`, nothing is sent
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

impl Resolve {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let read = Address::parse(&self.name);
        read.map_err(|fault| Failure::of_rule(fault.rule, fault.message))?;
        let config = Config::open(console)?;
        let answer = self.ask(&config)?;
        let resolution = resolve(&self.name, config.names(), answer.as_ref());
        match self.json {
            true => console.data(json::pretty(&as_json(&resolution))?)?,
            false => console.show(&as_text(&resolution))?,
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

    /// The rule by which a name that stays a name is a failure.
    fn fault(&self, resolution: &Resolution) -> Option<&'static Rule> {
        if resolution.is_resolved() {
            None
        } else if resolution.is_retry() {
            Some(&rule::NAME_UNAVAILABLE)
        } else {
            self.require.then_some(&rule::RESOLVE_ORDER)
        }
    }

    /// What the DNS says, if it is to be asked and there is something to ask for.
    fn ask(&self, config: &Config) -> Result<Option<AddressAnswer>, Failure> {
        if !self.dns && !config.dns() {
            let given = self.domain.is_some() || self.dns_server.is_some();
            return match given || self.dns_anchor.is_some() || self.require_dnssec {
                true => Err(Failure::Usage(
                    "nobody is asked without --dns: add it, or `crosstalk config set dns true`"
                        .to_owned(),
                )),
                false => Ok(None),
            };
        }
        let look = Look {
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
fn told(step: &Step) -> (&'static str, String, bool) {
    match step {
        Step::Url { .. } => ("url", "it is an address already".to_owned(), false),
        Step::Table { name, address } => ("table", format!("{name} stands for {address}"), false),
        Step::NotInTable { name } => (
            "table",
            format!("{name} is not in the table of names"),
            false,
        ),
        Step::Loop { way } => {
            let way = way.join(" → ");
            ("table", format!("it leads in a circle: {way}"), true)
        }
        Step::TooLong { name } => {
            let text = format!("too many names stand for each other, beginning with {name}");
            ("table", text, true)
        }
        Step::Dns {
            at,
            address,
            others,
            wrong,
            dnssec,
        } => {
            let mut text = format!("{at} lists {address} (DNSSEC: {})", dnssec.as_str());
            if !others.is_empty() {
                let others = others.join(", ");
                text.push_str(&format!("; the first one is taken, and not {others}"));
            }
            for fault in wrong {
                text.push_str(&format!("; a record is no address: {fault}"));
            }
            ("dns", text, !wrong.is_empty())
        }
        Step::NotInDns { at, dnssec } => {
            let text = format!("{at} lists nothing (DNSSEC: {})", dnssec.as_str());
            ("dns", text, false)
        }
        Step::DnsWrong { reason } => ("dns", reason.clone(), true),
        Step::DnsUnavailable { reason } => {
            let text = format!("{reason}; this does not mean that there is none: try again later");
            ("dns", text, true)
        }
        Step::DnsUnasked { reason } => ("dns", reason.clone(), false),
        Step::Person { name } => {
            let text = format!("{name} stays a name, which a person resolves");
            ("person", text, false)
        }
    }
}

fn as_text(resolution: &Resolution) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        let pad = " ".repeat(9_usize.saturating_sub(label.len()));
        out.push_str(&format!("{}{pad}{text}\n", styled(DIM, label)));
    };
    line("name", &escape(&resolution.asked));
    for step in &resolution.steps {
        let (label, text, is_wrong) = told(step);
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

fn as_json(resolution: &Resolution) -> Value {
    let steps: Vec<Value> = resolution.steps.iter().map(step_json).collect();
    json!({
        "schema": schema::RESOLVE,
        "name": resolution.asked,
        "resolved": resolution.is_resolved(),
        "result": resolution.result,
        "retry": resolution.is_retry(),
        "steps": steps,
    })
}

fn step_json(step: &Step) -> Value {
    let (_, sentence, _) = told(step);
    let mut value = json!({
        "step": step.as_str(), "sentence": sentence, "name": null, "address": null, "at": null, "others": [],
        "wrong": [], "dnssec": null,
    });
    let mut set = |key: &str, new: Value| {
        if let Some(map) = value.as_object_mut() {
            map.insert(key.to_owned(), new);
        }
    };
    let word = |dnssec: &Dnssec| Value::from(dnssec.as_str());
    match step {
        Step::Url { address } => set("address", address.as_str().into()),
        Step::Table { name, address } => {
            set("name", name.as_str().into());
            set("address", address.as_str().into());
        }
        Step::NotInTable { name } | Step::TooLong { name } | Step::Person { name } => {
            set("name", name.as_str().into());
        }
        Step::Loop { way } => set("others", way.clone().into()),
        Step::Dns {
            at,
            address,
            others,
            wrong,
            dnssec,
        } => {
            set("at", at.as_str().into());
            set("address", address.as_str().into());
            set("others", others.clone().into());
            set("wrong", wrong.clone().into());
            set("dnssec", word(dnssec));
        }
        Step::NotInDns { at, dnssec } => {
            set("at", at.as_str().into());
            set("dnssec", word(dnssec));
        }
        Step::DnsWrong { .. } | Step::DnsUnavailable { .. } | Step::DnsUnasked { .. } => {}
    }
    value
}
