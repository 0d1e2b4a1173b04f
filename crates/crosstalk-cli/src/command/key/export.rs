//! `crosstalk key export`: the key for other programs, for a zone, for a message.

use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::{Rooms, block_of};
use crate::service::passphrase::Passphrase;
use clap::{Args, ValueEnum};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::dns::{domain_of, key_name};
use crosstalk_store::StoredKey;
use zeroize::Zeroizing;

/// Print the public key for other programs, for DNS or for a message
///
/// Only `--format pem --private` prints the private key, without a passphrase.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key export alice@example.com --format pem > alice.pem\n  crosstalk key export alice@example.com --format dns"
)]
pub(super) struct Export {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// pem: a file for other programs; dns: a line for a zone file; meta: the block for a message
    #[arg(long, value_enum, value_name = "FORM", default_value_t = KeyFormat::Pem, hide_possible_values = true)]
    format: KeyFormat,
    /// With pem: the private key, which whoever has it can sign with
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    ask: Passphrase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyFormat {
    Pem,
    Dns,
    Meta,
}

impl Export {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let key = rooms.keys.find(&self.id)?;
        if self.private && self.format != KeyFormat::Pem {
            let message = "--private goes with --format pem: nobody else needs the private key";
            return Err(Failure::Usage(message.into()));
        }
        match self.format {
            KeyFormat::Pem if self.private => {
                let opened = rooms.unlock(&key, &self.ask)?;
                let pem = opened.key.to_pem().map(Zeroizing::new);
                let pem = pem.map_err(|e| Failure::of_key("the key", &e))?;
                console.talk(&format!(
                    "{}: this is the private key, not encrypted: whoever has it can sign as {}\n",
                    styled(RED, "careful"),
                    escape(&key.facts.id)
                ))?;
                console.data(pem.as_bytes())?;
            }
            KeyFormat::Pem => console.data(key.facts.public.to_pem())?,
            KeyFormat::Dns => dns(console, &key)?,
            KeyFormat::Meta => {
                let mut block = String::from("meta: key\n");
                for (name, value) in block_of(&key) {
                    block.push_str(&format!("{name}: {value}\n"));
                }
                console.data(block)?;
            }
        }
        Ok(Exit::SUCCESS)
    }
}

/// A line for the zone file of the domain; without a domain, for the zone that it is put in.
fn dns(console: &mut Console, key: &StoredKey) -> Result<(), Failure> {
    let name = match domain_of(&key.facts.id) {
        Some(domain) => format!("{}.", key_name(&domain.to_ascii_lowercase())),
        None => {
            console.talk(&format!(
                "{} names no domain, so no domain can vouch for it: `verify --dns` will not ask for this key\n",
                escape(&key.facts.id)
            ))?;
            "_crosstalk-key".to_owned()
        }
    };
    console.data(format!(
        "{name} 3600 IN TXT \"{}\"\n",
        key.facts.public.record()
    ))
}
