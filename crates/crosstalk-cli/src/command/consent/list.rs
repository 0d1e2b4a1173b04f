//! `crosstalk consent list`: the consents on record.

use super::ConsentSource;
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::ConsentsReport;
use crate::schema::CONSENTS;
use crate::screen::{cells, clip_cells};
use crate::service::consent;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Desk;
use crate::{clock, view};
use anstyle::Style;
use clap::Args;
use crosstalk_protocol::consent::{GrantFilter, LedgerStore as _};
use crosstalk_relay::client::Consent;

/// The widest column, in cells.
const WIDEST: usize = 44;

/// List the consents on record, the latest first
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent list\n  crosstalk consent list --all --by ANN\n  crosstalk consent list --data relay                # what the relay in this folder has on record\n  crosstalk consent list --relay https://relay.example --json | jq -r '.consents[].id'"
)]
pub(super) struct List {
    /// Those that ended, too
    #[arg(long)]
    all: bool,
    /// Only those that this name or address gave
    #[arg(long, value_name = "ADDRESS")]
    by: Option<String>,
    /// How many at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    source: ConsentSource,
    /// Print JSON of the form crosstalk.consents/1
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let by = self.by.as_ref().map(|by| resolve_typed(&desk.config, by));
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let consents = match self.source.connect(desk)? {
            Some(remote) => remote.consents(by.as_deref(), !self.all, most)?,
            None => self.kept(console, desk, by, most)?,
        };
        if self.json {
            console.report(CONSENTS, &ConsentsReport { consents })?;
            return Ok(Exit::SUCCESS);
        }
        match consents.is_empty() {
            true => console.talk(match self.all {
                true => "no consent is on record\n",
                false => "no consent holds; --all lists those that ended, too\n",
            })?,
            false => console.show(&table(&consents))?,
        }
        Ok(Exit::SUCCESS)
    }

    fn kept(
        &self,
        console: &mut Console,
        desk: &Desk,
        granter: Option<String>,
        most: usize,
    ) -> Result<Vec<Consent>, Failure> {
        let Some(mut store) = self.source.open(console, desk)? else {
            return Ok(Vec::new());
        };
        // What another program kept from being taken out of the files may go now.
        if self.source.data.is_none() {
            consent::scrub(console, &mut store)?;
        }
        let now = clock::exact();
        let filter = GrantFilter {
            granter,
            holding_at: (!self.all).then_some(now),
            most,
        };
        let grants = store.grants(&filter)?;
        Ok(grants.iter().map(|g| Consent::of(g, now)).collect())
    }
}

/// How a standing looks.
pub(super) fn style(standing: &str) -> Style {
    match standing {
        "holds" => GREEN,
        "revoked" => RED,
        _ => YELLOW,
    }
}

/// A row for each: id, who gave it, scopes, to whom, until when, what holds of it, how that was verified.
fn table(consents: &[Consent]) -> String {
    let titles = ["id", "by", "scope", "to", "until", "standing", "verified"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(consents.iter().map(|c| {
        [
            c.id.clone(),
            c.granter.clone(),
            c.scopes.join(", "),
            c.to.join(", "),
            c.expires.clone().unwrap_or_else(|| "no end".to_owned()),
            c.standing.clone(),
            c.assurance.clone(),
        ]
        .map(|text| clip_cells(&view::line(&text), WIDEST))
    }));
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        texts.map(|t| cells(t)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (text, width)) in row.iter().zip(&widths).enumerate() {
            let is_last = column + 1 == row.len();
            let pad = match is_last {
                true => String::new(),
                false => " ".repeat(width.saturating_sub(cells(text)) + 2),
            };
            let text = match (number, column) {
                (0, _) => styled(DIM, text),
                (_, 0) => styled(BOLD, text),
                (_, 5) => styled(style(text), text),
                _ => text.clone(),
            };
            line.push_str(&format!("{text}{pad}"));
        }
        out.push_str(&format!("{line}\n"));
    }
    out
}
