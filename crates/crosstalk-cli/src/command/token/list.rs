//! `crosstalk token list`: all tokens, without their secrets.

use crate::clock;
use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json;
use crate::relay::data::DataArgument;
use crate::schema::TOKENS;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{RelayStore as _, TokenRecord};
use serde_json::{Value, json};

/// List the tokens: what they are for and whether they count
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token list\n  crosstalk token list --json | jq -r '.tokens[] | select(.state == \"active\") | .name'"
)]
pub(super) struct List {
    #[command(flatten)]
    data: DataArgument,
    /// Print JSON of the form crosstalk.tokens/1
    #[arg(long)]
    json: bool,
}

/// Whether a token counts.
fn state(token: &TokenRecord, now: Timestamp) -> &'static str {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now => "expired",
        _ => "active",
    }
}

impl List {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let tokens = data.open()?.tokens()?;
        let now = clock::now();
        if self.json {
            let tokens: Vec<Value> = tokens.iter().map(|t| report(t, now)).collect();
            console.data(json::pretty(&json!({"schema": TOKENS, "tokens": tokens}))?)?;
            return Ok(Exit::SUCCESS);
        }
        if tokens.is_empty() {
            console.talk("there are no tokens: everyone on this machine is the local person\n")?;
        }
        for token in &tokens {
            let when = match (state(token, now), token.expires_at) {
                ("active", Some(end)) => format!("until {end}"),
                ("active", None) => "without end".to_owned(),
                (state, _) => state.to_owned(),
            };
            let mut addresses = token.addresses.join(", ");
            if !token.courier.is_empty() {
                addresses.push_str("; carries to ");
                addresses.push_str(&token.courier.join(", "));
            }
            console.show(&format!(
                "{}  {}  {}  {}\n",
                styled(BOLD, &escape(&token.name)),
                token.role.as_str(),
                escape(&addresses),
                styled(DIM, &when)
            ))?;
        }
        Ok(Exit::SUCCESS)
    }
}

fn report(token: &TokenRecord, now: Timestamp) -> Value {
    json!({
        "name": token.name,
        "role": token.role.as_str(),
        "for": token.addresses,
        "courier": token.courier,
        "state": state(token, now),
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|t| t.to_string()),
        "revoked_at": token.revoked_at.map(|t| t.to_string()),
    })
}
