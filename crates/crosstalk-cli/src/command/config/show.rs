//! `crosstalk config show`: each setting with its value and where it comes from.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::settings::{Config, SETTINGS, Source, Value, names_json, with_source};
use crate::{json, schema};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use serde_json::{Value as Json, json};

/// Show every setting, its value and where that comes from
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config show\n  crosstalk --profile work config show\n  crosstalk config show --json | jq -r '.settings[] | select(.source != \"default\") | .key'"
)]
pub(super) struct Show {
    /// Print JSON of the form crosstalk.config/1
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let config = match self.json {
            // The warnings are part of the answer.
            true => Config::load(console.profile())?,
            false => Config::open(console)?,
        };
        match self.json {
            true => console.data(json::pretty(&as_json(&config))?)?,
            false => console.show(&as_text(&config))?,
        }
        Ok(Exit::SUCCESS)
    }
}

fn as_text(config: &Config) -> String {
    let file = config.path().to_string_lossy();
    let mut out = format!("{}      {}", styled(DIM, "file"), escape(&file));
    if !config.exists() {
        out.push_str(&styled(DIM, "  (not there yet)"));
    }
    out.push('\n');
    if !config.profiles().is_empty() {
        let profiles = config.profiles().join(", ");
        let label = styled(DIM, "profiles");
        out.push_str(&format!("{label}  {}\n", escape(&profiles)));
    }
    out.push('\n');
    let rows = SETTINGS.iter().map(|setting| {
        let (value, source) = config.value(setting.key);
        let value = match &value {
            Some(Value::List(list)) if list.is_empty() => "none".to_owned(),
            Some(value) => value.to_string(),
            None => "none".to_owned(),
        };
        (setting.name.to_owned(), value, source)
    });
    out.push_str(&table(rows.collect()));
    if !config.names().is_empty() {
        out.push_str(&format!("\n{}\n", styled(BOLD, "names")));
        let rows = config.names().iter().map(|(name, address)| {
            let source = config.name_source(name);
            (name.to_owned(), address.to_owned(), source)
        });
        out.push_str(&table(rows.collect()));
    }
    out
}

/// Rows of a name, a value and its source.
fn table(rows: Vec<(String, String, Source)>) -> String {
    let rows = rows.iter().map(|(name, value, source)| {
        let source = source.to_string();
        [name, value, &source].map(|t| escape(t).replace('\n', "\\n"))
    });
    let rows: Vec<[String; 3]> = rows.collect();
    let width = |cell: fn(&[String; 3]) -> &String| {
        let widths = rows.iter().map(|row| columns(cell(row)));
        widths.filter(|w| *w <= 40).max().unwrap_or(0)
    };
    let (first, second) = (width(|[n, ..]| n), width(|[_, v, _]| v));
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
    let mut out = String::new();
    for [name, value, source] in &rows {
        out.push_str(&format!(
            "{name}{}  {value}{}  {}\n",
            pad(name, first),
            pad(value, second),
            styled(DIM, source)
        ));
    }
    out
}

fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

fn as_json(config: &Config) -> Json {
    let settings = SETTINGS.iter().map(|setting| {
        let (value, source) = config.value(setting.key);
        let value = match value {
            None => Json::Null,
            Some(Value::Text(text)) => text.into(),
            Some(Value::List(list)) => list.into(),
            Some(Value::Switch(on)) => on.into(),
        };
        with_source(
            json!({"key": setting.name, "value": value, "about": setting.about}),
            &source,
        )
    });
    json!({
        "schema": schema::CONFIG,
        "file": config.path().to_string_lossy(),
        "exists": config.exists(),
        "profile": config.profile(),
        "profiles": config.profiles(),
        "settings": settings.collect::<Vec<_>>(),
        "names": names_json(config),
        "warnings": config.warnings(),
    })
}
