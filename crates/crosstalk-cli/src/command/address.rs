//! `crosstalk address`: what an address says (ADR-001 to ADR-008), and where a name leads.

mod resolve;
mod schemes;

use crate::console::{Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{json, schema};
use clap::{Args, Subcommand};
use crosstalk_envelope::name::is_deceptive;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::unicode::{self, escape};
use crosstalk_envelope::{Address as Parts, Schemes, Severity};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Work with addresses
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk address parse human://dr.smith@clinic.example/inbox\n  crosstalk address resolve CLAUDE"
)]
pub(crate) struct Address {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Parse(Parse),
    Resolve(resolve::Resolve),
}

/// Take an address apart and say whom it reaches
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk address parse claude://session/abc123?model=opus\n  crosstalk address parse --json 'BROTHER AI'\n  crosstalk address parse --schemes acme.toml acme://printer\n\nThe file of --schemes has the format of spec/registry/schemes.toml:\n  [[scheme]]\n  name = \"acme\"\n  form = \"authority\"   # acme://…; or \"opaque\": acme:…\n  kind = \"tool\"        # person, assistant, mail, phone, tool, room, custom"
)]
struct Parse {
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

/// Something about an address.
struct AddressFinding {
    rule: &'static Rule,
    severity: Severity,
    message: String,
}

impl Address {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Parse(action) => action.run(console),
            Action::Resolve(action) => action.run(console),
        }
    }
}

impl Parse {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let schemes = match &self.schemes {
            Some(path) => schemes::read(path, console)?,
            None => Schemes::default(),
        };
        let address = Parts::split(&self.address);
        let remarks = remarks(&self.address, &schemes);
        if self.json {
            console.data(json::pretty(&as_json(&address, &schemes, &remarks))?)?;
        } else {
            console.show(&as_text(&address, &schemes))?;
            for remark in &remarks {
                console.talk(&remark.to_text())?;
            }
        }
        let error = remarks.iter().find(|r| r.severity == Severity::Error);
        Ok(error.map_or(Exit::SUCCESS, |e| {
            e.rule.code.map_or(Exit::FAILURE, Exit::from)
        }))
    }
}

fn kind(address: &Parts<'_>, schemes: &Schemes) -> &'static str {
    schemes.kind(address).map_or("name", |kind| kind.as_str())
}

fn is_registered(address: &Parts<'_>, schemes: &Schemes) -> bool {
    address.scheme().is_some_and(|s| schemes.find(s).is_some())
}

/// The parts that there are, by their names.
fn parts<'a>(address: &Parts<'a>) -> [(&'static str, Option<&'a str>); 6] {
    [
        ("scheme", address.scheme()),
        ("authority", address.authority()),
        ("user", address.user()),
        ("host", address.host()),
        ("query", address.query()),
        ("fragment", address.fragment()),
    ]
}

fn as_text(address: &Parts<'_>, schemes: &Schemes) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let pad = " ".repeat(11_usize.saturating_sub(name.len()));
        out.push_str(&format!("{}{pad}{}\n", styled(DIM, name), escape(value)));
    };
    line("address", address.as_str());
    line("kind", kind(address, schemes));
    for (name, value) in parts(address) {
        if let Some(value) = value {
            line(name, value);
        }
        if name == "host" && !address.is_name() && !address.path().is_empty() {
            line("path", address.path());
        }
    }
    out
}

fn as_json(address: &Parts<'_>, schemes: &Schemes, remarks: &[AddressFinding]) -> Value {
    let mut value = json!({
        "schema": schema::ADDRESS,
        "address": address.as_str(),
        "valid": remarks.iter().all(|r| r.severity != Severity::Error),
        "kind": kind(address, schemes),
        "registered": is_registered(address, schemes),
    });
    if let Some(map) = value.as_object_mut() {
        for (name, part) in parts(address) {
            map.insert(name.into(), part.into());
        }
        map.insert("path".into(), address.path().into());
        let remarks: Vec<Value> = remarks.iter().map(AddressFinding::to_json).collect();
        map.insert("diagnostics".into(), remarks.into());
    }
    value
}

fn remarks(text: &str, schemes: &Schemes) -> Vec<AddressFinding> {
    let mut remarks = Vec::new();
    let mut push = |rule, severity, message: String| {
        remarks.push(AddressFinding {
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
    remarks
}

impl AddressFinding {
    fn to_text(&self) -> String {
        let style = match self.severity {
            Severity::Error => crate::console::RED,
            Severity::Warning => crate::console::YELLOW,
            _ => DIM,
        };
        let id = match self.rule.code {
            Some(code) => format!("{} {code}", self.rule.id),
            None => self.rule.id.to_owned(),
        };
        let head = styled(style, &format!("{}[{id}]", self.severity.as_str()));
        let mut out = format!("{head}: {}\n", escape(&self.message));
        if !self.rule.help.is_empty() {
            out.push_str(&format!("  help: {}\n", self.rule.help));
        }
        out
    }

    fn to_json(&self) -> Value {
        json!({
            "rule": self.rule.id,
            "severity": self.severity.as_str(),
            "code": self.rule.code.map(|c| c.as_str()),
            "message": self.message,
            "help": self.rule.help,
        })
    }
}
