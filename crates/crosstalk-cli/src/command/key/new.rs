//! `crosstalk key new`.

use super::view;
use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::Rooms;
use crate::service::passphrase::Passphrase;
use clap::{Args, ValueEnum};
use crosstalk_envelope::{Algorithm, ErrorCode, PrivateKey, PublicKey, is_key_id};

/// Make a key
///
/// The id is the name of the key: others see it in each message, and it stays for years. With a mail address of
/// a domain of yours, the domain can vouch for the key.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key new --id alice@example.com\n  crosstalk key new --id bob@keys/2025 --passphrase"
)]
pub(super) struct New {
    /// The id: visible ASCII characters without ;[]()<>|; `did:key` makes the key its own id
    #[arg(long, value_name = "ID", value_parser = key_id)]
    id: String,
    /// How it signs: ed25519 or secp256r1
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Kind::Ed25519, hide_possible_values = true)]
    algorithm: Kind,
    /// Encrypt the key file with a passphrase, which each use asks for
    #[arg(long)]
    passphrase: bool,
    #[command(flatten)]
    ask: Passphrase,
}

/// An algorithm, as it is written on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Kind {
    /// Ed25519
    Ed25519,
    /// ECDSA on P-256
    Secp256r1,
}

impl From<Kind> for Algorithm {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Ed25519 => Self::Ed25519,
            Kind::Secp256r1 => Self::Secp256r1,
        }
    }
}

/// Reads a key id of the command line.
pub(super) fn key_id(text: &str) -> Result<String, String> {
    if is_key_id(text) {
        Ok(text.to_owned())
    } else {
        Err("a key id has 1 to 255 visible ASCII characters without ;[]()<>|".to_owned())
    }
}

/// A did:key is an id for the one key that it is.
pub(super) fn require_fitting(id: &str, key: &PublicKey) -> Result<(), Failure> {
    match PublicKey::from_did(id) {
        None => Ok(()),
        Some(Ok(named)) if named == *key => Ok(()),
        Some(_) => Err(Failure::Refused(
            ErrorCode::Format,
            format!(
                "{id} is not the did:key of this key, which is {}",
                key.to_did()
            ),
        )),
    }
}

/// A new private key.
pub(super) fn generate(algorithm: Algorithm) -> Result<PrivateKey, Failure> {
    PrivateKey::generate(algorithm)
        .map_err(|e| Failure::Failed(format!("the system gives no randomness for a key: {e}")))
}

impl New {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let key = generate(self.algorithm.into())?;
        let id = match self.id.as_str() {
            "did:key" => key.public().to_did(),
            _ => self.id,
        };
        require_fitting(&id, &key.public())?;
        let encrypt = self.passphrase || self.ask.passphrase_file.is_some();
        let passphrase = match encrypt {
            true => Some(choose(&self.ask, &id)?),
            false => None,
        };
        let passphrase = passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms.keys.create(&id, &key, passphrase, clock::now())?;
        console.show(&view::text(&rooms, &stored)?)?;
        console.talk(&format!(
            "Back it up before you use it: crosstalk key backup {id} --to FILE\n"
        ))?;
        Ok(Exit::SUCCESS)
    }
}

/// Asks for a new passphrase.
pub(super) fn choose(ask: &Passphrase, what: &str) -> Result<zeroize::Zeroizing<String>, Failure> {
    ask.choose(what)
        .map_err(|e| Failure::Io("the passphrase".into(), e))
}
