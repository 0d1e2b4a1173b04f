//! `crosstalk key import`: a backup, or a key of another program.

use super::new::{choose, key_id, require_fitting};
use super::view;
use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::home::{Rooms, require_allowed};
use crate::service::passphrase::Passphrase;
use clap::Args;
use crosstalk_store::{Facts, Imported, import};
use std::path::PathBuf;

/// Take a key from a backup, or from a PEM file of another program
///
/// A backup brings its id along, and what became of the key; a PEM file (PKCS#8) needs --id. A key that was
/// encrypted stays so, with the same passphrase, unless --passphrase asks for another one.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key import alice.backup\n  crosstalk key import openssl.pem --id bob@keys/2025"
)]
pub(super) struct Import {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The id, if the file does not say it
    #[arg(long, value_name = "ID", value_parser = key_id)]
    id: Option<String>,
    /// Encrypt the key file with a new passphrase
    #[arg(long)]
    passphrase: bool,
    #[command(flatten)]
    ask: Passphrase,
}

impl Import {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let input = Input::read(&self.file, console)?;
        let name = input.shown_name().into_owned();
        let text = input.text().map_err(|(_, fault)| {
            Failure::of_rule(fault.rule, &format!("{name}: {}", fault.message))
        })?;
        let mut passphrase = None;
        let Imported { facts, key } = import(text, || {
            let answer = self.ask.ask(&name)?;
            passphrase = Some(answer.clone());
            Ok(answer)
        })
        .map_err(|e| named(&name, e.into()))?;
        require_allowed(&key.public())?;
        let facts = match (facts, self.id) {
            (Some(facts), Some(id)) if facts.id != id => {
                return Err(Failure::Usage(format!(
                    "{name} is a backup of {}, and keeps that id: leave --id out",
                    facts.id
                )));
            }
            (Some(facts), _) => facts,
            (None, Some(id)) => Facts::new(id, key.public(), clock::now()),
            (None, None) => {
                return Err(Failure::Usage(format!(
                    "{name} does not say the id of its key: give it with --id"
                )));
            }
        };
        require_fitting(&facts.id, &key.public())?;
        if self.passphrase {
            passphrase = Some(choose(&self.ask, &facts.id)?);
        }
        let passphrase = passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms.keys.add(facts, &key, passphrase)?;
        console.show(&view::text(&rooms, &stored)?)?;
        Ok(Exit::SUCCESS)
    }
}

/// The failure with the name of the file in front.
fn named(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Failed(message) => Failure::Failed(format!("{name}: {message}")),
        Failure::Refused(code, message) => Failure::Refused(code, format!("{name}: {message}")),
        other => other,
    }
}
