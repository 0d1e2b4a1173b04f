//! `crosstalk config`: look at the settings and change them.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::report::ConfigReport;
use crate::schema::CONFIG;
use crate::service::editor::Editor;
use crate::service::settings::{
    self, SETTINGS, Setting, SettingKey, SettingSource, Settings, Target, Value, check, stored,
};
use crate::{screen, view};
use anstyle::Style;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_store::{ConfigFile, Home};
use std::io::Write as _;
use std::path::{Path, PathBuf};

group! {
    /// Show and change your settings
    ///
    /// They are a TOML file in the folder of CROSSTALK_HOME, or in the usual place of your system. A variable such as
    /// CROSSTALK_USER overrides the file, and an option of a command overrides the variable. A table [profile.work] holds what
    /// is different with --profile work.
    #[command(
        after_help = "Examples:\n  crosstalk config show\n  crosstalk config set user kalle\n  crosstalk config set profile.work.sender 'KALLE AT WORK'"
    )]
    ConfigCommand {
        Show(ShowConfig),
        Get(GetSetting),
        Set(SetSetting),
        Unset(UnsetSetting),
        Edit(EditConfig),
        Path(PrintPath),
    }
}

/// A name or value that is wider than this does not widen its column.
const WIDEST: usize = 40;

/// Print where the settings are
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk config path")]
struct PrintPath {}

impl PrintPath {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let file = ConfigFile::new(&Home::from_env()?);
        let mut path = file.path().as_os_str().as_encoded_bytes().to_vec();
        path.push(b'\n');
        console.data(path)
    }
}

/// Print the value of a setting
///
/// A list is printed with one item per line. The exit code is 1 if the setting has no value.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config get user\n  crosstalk config get names.CLAUDE\n  crosstalk config get profile.work.sender"
)]
struct GetSetting {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
}

/// Change a setting in the file
///
/// The rest of the file stays as it is, with its comments. With --profile, changes the setting of that profile.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config set user kalle\n  crosstalk config set me KALLE human://kalle@example.com\n  crosstalk config set names.CLAUDE claude://session/abc123\n  crosstalk config set profile.work.sign true"
)]
struct SetSetting {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
    /// The value; several for a list
    #[arg(value_name = "VALUE", required = true, allow_hyphen_values = true)]
    values: Vec<String>,
}

/// Remove a setting from the file
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config unset context\n  crosstalk config unset names.CLAUDE"
)]
struct UnsetSetting {
    /// A setting, names.NAME, or profile.PROFILE.SETTING
    #[arg(value_name = "KEY")]
    key: String,
}

impl GetSetting {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
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
                return Err(Failure::failed(format!("`{key}` has no value"))
                    .help(format!("`crosstalk config set {key} …` gives it one")));
            }
            Some(Value::List(list)) => list,
            Some(value) => vec![value.to_string()],
        };
        for line in lines {
            console.data(format!("{line}\n"))?;
        }
        Ok(())
    }
}

impl SetSetting {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let target = Target::parse(&self.key, console.profile())?;
        let value = target.value(&self.values)?;
        settings::set(console, &target, &value)?;
        tell(console, &format!("Set {target} to `{value}` in"))?;
        if let Some(key) = target.key() {
            warn_of_variable(console, key)?;
        }
        Ok(())
    }
}

/// Reports a change and the file that has it.
fn tell(console: &mut Console, what: &str) -> Result<(), Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    let path = file.path().to_string_lossy();
    console.talk(&format!("{} {}\n", view::line(what), shown_path(&path)))
}

/// Warns that a variable overrides the setting.
fn warn_of_variable(console: &mut Console, key: SettingKey) -> Result<(), Failure> {
    let setting = settings::SETTINGS.iter().find(|s| s.key == key);
    let Some(variable) = setting.map(Setting::variable) else {
        return Ok(());
    };
    if std::env::var_os(&variable).is_some_and(|v| !v.is_empty()) {
        console.talk(&format!("note: {variable} is set and overrides it\n"))?;
    }
    Ok(())
}

impl UnsetSetting {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let target = Target::parse(&self.key, console.profile())?;
        match settings::unset(&target)? {
            true => {
                tell(console, &format!("Took {target} out of"))?;
                Ok(Exit::SUCCESS)
            }
            false => {
                console.talk("nothing to remove: the file does not set it\n")?;
                Ok(Exit::SUCCESS)
            }
        }
    }
}

/// Show every setting with its value and its source
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config show\n  crosstalk --profile work config show\n  crosstalk config show --json | jq -r '.settings[] | select(.source != \"default\") | .key'"
)]
struct ShowConfig {
    /// Print JSON of the form crosstalk.config/1
    #[arg(long)]
    json: bool,
}

impl ShowConfig {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let config = match self.json {
            // The warnings are part of the answer.
            true => Settings::load(console.profile())?,
            false => Settings::open(console)?,
        };
        match self.json {
            true => console.report(CONFIG, &ConfigReport::new(&config))?,
            false => console.show(&as_text(&config))?,
        }
        Ok(())
    }
}

fn as_text(config: &Settings) -> String {
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

fn table(rows: Vec<(String, String, SettingSource)>) -> String {
    let rows = rows.into_iter().map(|(name, value, source)| {
        [
            (name, Style::new()),
            (value, Style::new()),
            (source.to_string(), DIM),
        ]
        .map(|(text, style)| (escape(&text).replace('\n', "\\n"), style))
    });
    screen::table(&rows.collect::<Vec<_>>(), WIDEST)
}

/// Open the settings in an editor
///
/// The editor is that of the setting `editor`, of VISUAL or of EDITOR. It gets a copy, and the command replaces the file if the
/// copy is valid. If not, it asks whether to edit again, and keeps your text.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config edit\n  EDITOR='code --wait' crosstalk config edit"
)]
struct EditConfig {}

impl EditConfig {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let file = ConfigFile::new(&Home::from_env()?);
        let before = file.read()?.unwrap_or_default();
        let editor = chosen()?;
        let copy = copy_of(&before)?;
        loop {
            if let Err(why) = editor.run(&copy) {
                // Whatever was written until then is there.
                let fault = format!("the editor `{}` {why}", editor.name());
                return Err(kept(&copy, &before, Failure::failed(fault)));
            }
            let after = std::fs::read_to_string(&copy).map_err(|e| Failure::at(&copy, e))?;
            if after == before {
                let _ = std::fs::remove_file(&copy);
                console.talk("nothing was changed\n")?;
                return Ok(Exit::SUCCESS);
            }
            if let Err(fault) = check(&after, file.path()) {
                console.failure(&fault)?;
                if console.offer("Edit it again?")? {
                    continue;
                }
                let fault = Failure::failed("the settings stay as they were");
                return Err(kept(&copy, &before, fault));
            }
            return match replace(&file, &before, &after) {
                Ok(()) => {
                    let _ = std::fs::remove_file(&copy);
                    Ok(Exit::SUCCESS)
                }
                Err(fault) => Err(kept(&copy, &before, fault)),
            };
        }
    }
}

/// The editor to open. It must open even if the settings can't be read, so that they can be repaired.
fn chosen() -> Result<Editor, Failure> {
    let set = Settings::load(None).ok().and_then(|config| config.editor());
    Ok(Editor::find(set.as_deref())?)
}

/// A copy for the owner alone, which an editor sees as TOML.
fn copy_of(text: &str) -> Result<PathBuf, Failure> {
    let fault = |e| Failure::io("a copy of the settings", e);
    let mut copy = tempfile::Builder::new()
        .prefix("crosstalk-config-")
        .suffix(".toml")
        .tempfile()
        .map_err(fault)?;
    copy.write_all(text.as_bytes()).map_err(fault)?;
    let (_, path) = copy.keep().map_err(|e| fault(e.error))?;
    Ok(path)
}

fn replace(file: &ConfigFile, before: &str, after: &str) -> Result<(), Failure> {
    file.update(|now| match now == before {
        true => Ok(Some(after.to_owned())),
        false => Err(Failure::failed(
            "the settings were changed by another program meanwhile, and stay as they are now",
        )),
    })?;
    Ok(())
}

/// The failure, with the path of the edited copy; an unchanged copy is removed.
fn kept(copy: &Path, before: &str, fault: Failure) -> Failure {
    if std::fs::read_to_string(copy).is_ok_and(|text| text == before) {
        let _ = std::fs::remove_file(copy);
        return fault;
    }
    let place = copy.display();
    Failure::failed(format!("{fault}\nyour text is in `{place}`"))
}
