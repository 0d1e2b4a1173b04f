//! `crosstalk token`: who may come in to a relay.

mod create;
mod list;

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::relay::data::DataArgument;
use crate::service::relay::token::{NARROW_TOKEN, OPERATOR};
use clap::{Args, Subcommand};
use crosstalk_protocol::relay::{RelayStore as _, TokenRecord};

/// Make, list and revoke the tokens of a relay
///
/// Works on the data folder of the relay, on the machine where it runs; a relay that is running goes by it at once. The
/// relay keeps a hash of each token, which nobody can use in its place.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token create ann --role person --for 'human://acme.example/ann' --out ann.token\n  crosstalk token create ci --role agent --for 'claude://code/*' --expires 90d\n  crosstalk token list\n  crosstalk token revoke ci"
)]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(create::Create),
    List(list::List),
    Revoke(Revoke),
}

/// Revoke a token: whoever has it does not come in any more
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk token revoke ci\n\nExit codes: 0 revoked, 1 there is no such token that counts."
)]
struct Revoke {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    data: DataArgument,
}

impl Token {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Create(action) => action.run(console),
            Action::List(action) => action.run(console),
            Action::Revoke(action) => action.run(console),
        }
    }
}

impl Revoke {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let name = &self.name;
        let now = clock::now();
        let mut store = data.open()?;
        match store.revoke_token(name, OPERATOR, now)? {
            true => {
                console.talk("revoked: it opens nothing any more\n")?;
                let counts = |t: &TokenRecord| {
                    t.revoked_at.is_none() && t.expires_at.is_none_or(|end| end > now)
                };
                if !store.tokens()?.iter().any(counts) {
                    let create = self.data.command(NARROW_TOKEN);
                    console.talk(&format!(
                        "It was the last one that counts, and the relay stays closed. Make another one with\n`{create}`.\n"
                    ))?;
                }
                Ok(Exit::SUCCESS)
            }
            false => Err(Failure::Failed(format!(
                "there is no token `{name}` that counts: `{}` shows all",
                self.data.command("token list")
            ))),
        }
    }
}
