//! `crosstalk name` (the local table of names, ADR-010, ADR-011) and `crosstalk id`.

use crate::console::{Console, DIM};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::NamesReport;
use crate::schema::NAMES;
use crate::screen;
use crate::service::settings::{self, Settings, Target, Value};
use anstyle::Style;
use clap::Args;
use crosstalk_envelope::id;
use crosstalk_envelope::unicode::escape;

/// Map simple names to addresses
///
/// Without arguments, lists the names. They are in the table [names] of the settings; upper and lower case do not matter. With
/// --profile, sets or removes a name of that profile.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk name\n  crosstalk name CLAUDE claude://session/abc123\n  crosstalk name 'BROTHER AI' CLAUDE\n  crosstalk name CLAUDE --remove"
)]
pub(crate) struct Name {
    /// A simple name; alone, its address is printed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The address or the other name that it stands for
    #[arg(value_name = "ADDRESS", conflicts_with = "remove")]
    address: Option<String>,
    /// Remove the name
    #[arg(long, requires = "name")]
    remove: bool,
    /// Print JSON of the form crosstalk.names/1
    #[arg(long, conflicts_with_all = ["address", "remove"])]
    json: bool,
}

impl Name {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let target = |name: &str| Target::of_name(name, console.profile());
        match (&self.name, &self.address) {
            (Some(name), Some(address)) => {
                let target = target(name);
                settings::set(console, &target, &Value::Text(address.clone()))?;
                Ok(Exit::SUCCESS)
            }
            (Some(name), None) if self.remove => match settings::unset(&target(name))? {
                true => Ok(Exit::SUCCESS),
                false => Err(missing(name)),
            },
            (name, _) => self.list(console, name.as_deref()),
        }
    }

    fn list(&self, console: &mut Console, name: Option<&str>) -> Result<Exit, Failure> {
        let config = match self.json {
            true => Settings::load(console.profile())?,
            false => Settings::open(console)?,
        };
        let found = name.map(|n| config.names().find(n).ok_or_else(|| missing(n)));
        let found = found.transpose()?;
        if self.json {
            let mut report = NamesReport::new(&config);
            if let Some((name, _)) = found {
                report.names.retain(|entry| entry.name == name);
            }
            console.report(NAMES, &report)?;
            return Ok(Exit::SUCCESS);
        }
        if let Some((_, address)) = found {
            console.show(&format!("{}\n", escape(address)))?;
            return Ok(Exit::SUCCESS);
        }
        let mut names: Vec<(&str, &str)> = config.names().iter().collect();
        names.sort_unstable();
        let cell = |text: &str, style| (escape(text).into_owned(), style);
        let rows = names
            .into_iter()
            .map(|(name, address)| [cell(name, Style::new()), cell(address, DIM)]);
        console.show(&screen::table(&rows.collect::<Vec<_>>(), usize::MAX))?;
        if config.names().is_empty() {
            console.talk(
                "no name is known: `crosstalk name CLAUDE claude://session/abc123` sets one\n",
            )?;
        }
        Ok(Exit::SUCCESS)
    }
}

fn missing(name: &str) -> Failure {
    Failure::failed(format!("the name `{name}` is not known"))
        .help("`crosstalk name` lists those that are")
}

group! {
    /// Work with ids
    #[command(after_help = "Example:\n  crosstalk id new")]
    Id {
        New(NewId),
    }
}

/// Generate ids, one per line
///
/// Ids begin with their time, so that they sort in the order in which they were generated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  crosstalk id new\n  crosstalk id new --uuid --count 3")]
struct NewId {
    /// UUIDv7 in place of ULID
    #[arg(long)]
    uuid: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
}

impl NewId {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let make = if self.uuid {
            id::new_uuid_v7
        } else {
            id::new_ulid
        };
        for _ in 0..self.count {
            console.data(make() + "\n")?;
        }
        Ok(())
    }
}
