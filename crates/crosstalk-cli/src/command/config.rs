//! `crosstalk config`: look at the settings and change them.

mod edit;
mod show;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::service::settings::{self, Config as Settings, Key, Setting, Target, Value, stored};
use crate::view;
use clap::{Args, Subcommand};
use crosstalk_store::{ConfigFile, Home};

/// Look at your settings and change them
///
/// They are a TOML file in the folder of CROSSTALK_HOME, or in the usual place of your system. A variable such as
/// CROSSTALK_USER outdoes the file, and an option of a command outdoes the variable. A table [profile.work] holds what
/// is different with --profile work.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config show\n  crosstalk config set user kalle\n  crosstalk config set profile.work.sender 'KALLE AT WORK'"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Show),
    Get(Get),
    Set(Set),
    Unset(Unset),
    Edit(edit::Edit),
    Path(Path),
}

/// Print where the settings are
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk config path")]
struct Path {}

/// Print the value of a setting
///
/// A list is printed one item a line. The exit code is 1 if the setting has no value.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config get user\n  crosstalk config get names.CLAUDE\n  crosstalk config get profile.work.sender"
)]
struct Get {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
}

/// Change a setting in the file
///
/// The rest of the file stays as it is, comments included. With --profile, the setting of that profile is changed.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config set user kalle\n  crosstalk config set me KALLE human://kalle@example.com\n  crosstalk config set names.CLAUDE claude://session/abc123\n  crosstalk config set profile.work.sign true"
)]
struct Set {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
    /// The value; several for a list
    #[arg(value_name = "VALUE", required = true, allow_hyphen_values = true)]
    values: Vec<String>,
}

/// Take a setting out of the file
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config unset context\n  crosstalk config unset names.CLAUDE"
)]
struct Unset {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
}

impl Config {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Show(action) => action.run(console),
            Action::Get(action) => action.run(console),
            Action::Set(action) => action.run(console),
            Action::Unset(action) => action.run(console),
            Action::Edit(action) => action.run(console),
            Action::Path(_) => {
                let file = ConfigFile::new(&Home::from_env()?);
                let mut path = file.path().as_os_str().as_encoded_bytes().to_vec();
                path.push(b'\n');
                console.data(path)?;
                Ok(Exit::SUCCESS)
            }
        }
    }
}

impl Get {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let target = Target::parse(&self.key, None)?;
        let value = match (&target.profile, target.key(), target.name()) {
            (None, Some(key), _) => Settings::open(console)?.value(key).0,
            (None, _, Some(name)) => {
                let settings = Settings::open(console)?;
                let address = settings.names().get(name);
                address.map(|a| Value::Text(a.to_owned()))
            }
            _ => {
                let file = ConfigFile::new(&Home::from_env()?);
                let text = file.read()?.unwrap_or_default();
                crate::service::settings::check(&text, file.path())?;
                stored(&text, &target)
            }
        };
        let lines = match value {
            None => {
                let key = &self.key;
                return Err(Failure::Failed(format!(
                    "`{key}` has no value: `crosstalk config set {key} …` gives it one"
                )));
            }
            Some(Value::List(list)) => list,
            Some(value) => vec![value.to_string()],
        };
        for line in lines {
            console.data(format!("{line}\n"))?;
        }
        Ok(Exit::SUCCESS)
    }
}

impl Set {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let target = Target::parse(&self.key, console.profile())?;
        let value = target.value(&self.values)?;
        settings::set(console, &target, &value)?;
        tell(console, &format!("Set {target} to `{value}` in"))?;
        if let Some(key) = target.key() {
            warn_of_variable(console, key)?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// Tells what was changed, and the file that it was changed in.
fn tell(console: &mut Console, what: &str) -> Result<(), Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    let path = file.path().to_string_lossy();
    console.talk(&format!("{} {}\n", view::line(what), shown_path(&path)))
}

/// Tells that a variable outdoes what was set.
fn warn_of_variable(console: &mut Console, key: Key) -> Result<(), Failure> {
    let setting = settings::SETTINGS.iter().find(|s| s.key == key);
    let Some(variable) = setting.map(Setting::variable) else {
        return Ok(());
    };
    if std::env::var_os(&variable).is_some_and(|v| !v.is_empty()) {
        console.talk(&format!(
            "note: {variable} is set, and counts for as long as it is\n"
        ))?;
    }
    Ok(())
}

impl Unset {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let target = Target::parse(&self.key, console.profile())?;
        match settings::unset(&target)? {
            true => {
                tell(console, &format!("Took {target} out of"))?;
                Ok(Exit::SUCCESS)
            }
            false => {
                console.talk("nothing to take out: the file does not set it\n")?;
                Ok(Exit::SUCCESS)
            }
        }
    }
}
