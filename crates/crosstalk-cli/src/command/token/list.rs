//! `crosstalk token list`: all tokens, without their secrets.

use crate::console::{BOLD, Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::schema::TOKENS;
use crate::service::relay::data::DataArgument;
use crate::{clock, json};
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{RelayStore as _, TokenRecord};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

/// List the tokens: what they are for, whether they count, and when they were last used
///
/// A running relay notes the last use to the minute, within seconds.
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
            return Ok(Exit::SUCCESS);
        }
        let head = ["NAME", "ROLE", "STATE", "LAST USED", "FOR"].map(str::to_owned);
        let rows: Vec<[String; 5]> = tokens.iter().map(|t| row(t, now)).collect();
        let all = || std::iter::once(&head).chain(&rows);
        // The last column ends the line, and has no width.
        let widths: Vec<usize> = (0..head.len() - 1)
            .map(|place| all().filter_map(|r| r.get(place)).map(|c| c.width()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for (number, row) in all().enumerate() {
            let style = if number == 0 {
                BOLD
            } else {
                anstyle::Style::new()
            };
            let cells = row.iter().enumerate().map(|(place, cell)| {
                let width = widths.get(place).copied().unwrap_or(0);
                let gap = width.saturating_sub(cell.width());
                format!("{cell}{}", " ".repeat(gap))
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            console.show(&format!("{}\n", styled(style, line.trim_end())))?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// The cells of a token: name, role, state, last use, addresses.
fn row(token: &TokenRecord, now: Timestamp) -> [String; 5] {
    let state = match (state(token, now), token.expires_at) {
        ("active", Some(end)) => format!("until {end}"),
        (state, _) => state.to_owned(),
    };
    let mut addresses = token.addresses.join(", ");
    if !token.courier.is_empty() {
        addresses.push_str("; carries to ");
        addresses.push_str(&token.courier.join(", "));
    }
    [
        escape(&token.name).into_owned(),
        token.role.as_str().to_owned(),
        state,
        token
            .last_used_at
            .map_or("never".to_owned(), |t| t.to_string()),
        escape(&addresses).into_owned(),
    ]
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
        "last_used_at": token.last_used_at.map(|t| t.to_string()),
    })
}
