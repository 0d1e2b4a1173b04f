//! The settings of a person. Later sources override earlier ones:
//!
//! ```text
//! default < file < the file's profile < variable < flag
//! ```
//!
//! Each value knows its source. The user's name is read from git or the system only when it is needed.

mod file;
mod relay;
mod table;

pub(crate) use file::{Target, put, stored, take};
pub(crate) use relay::{RelaySetting, base_url, is_open, put_relay, take_relay};
pub(crate) use table::{SETTINGS, Setting, SettingKey, Value};

use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::service::clipboard::Choice;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Explanation, Schemes};
use crosstalk_protocol::NameTable;
use crosstalk_protocol::consent::Policy;
use crosstalk_protocol::relay::Pattern;
use crosstalk_store::{ConfigFile, Home};
use file::{FileFault, FileText};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingSource {
    /// The default, and where it comes from if that depends on the machine.
    Default(&'static str),
    /// The file, in this line.
    File(usize),
    /// A profile of the file, in this line.
    Profile(String, usize),
    Variable(String),
    Flag,
}

impl SettingSource {
    /// The word for it, as JSON has it.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Default(_) => "default",
            Self::File(_) => "file",
            Self::Profile(..) => "profile",
            Self::Variable(_) => "variable",
            Self::Flag => "flag",
        }
    }

    pub(crate) const fn line(&self) -> Option<usize> {
        match self {
            Self::File(line) | Self::Profile(_, line) => Some(*line),
            _ => None,
        }
    }
}

impl std::fmt::Display for SettingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default("") => f.write_str("default"),
            Self::Default(from) => write!(f, "default: {from}"),
            Self::File(line) => write!(f, "line {line}"),
            Self::Profile(name, line) => write!(f, "profile {name}, line {line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag => f.write_str("the command"),
        }
    }
}

/// The settings in effect.
#[derive(Debug)]
pub(crate) struct Settings {
    path: PathBuf,
    exists: bool,
    profiles: Vec<String>,
    values: BTreeMap<SettingKey, (Value, SettingSource)>,
    names: NameTable,
    name_sources: Vec<(String, SettingSource)>,
    relays: Vec<RelaySetting>,
    warnings: Vec<String>,
    identity: OnceCell<Option<UserIdentity>>,
}

impl Settings {
    /// The settings of `CROSSTALK_HOME` or of the platform, with this profile if one was asked for.
    pub(crate) fn load(profile: Option<&str>) -> Result<Self, Failure> {
        let file = ConfigFile::new(&Home::from_env()?);
        let text = file.read()?;
        Self::read(text.as_deref(), file.path(), profile, &|name| {
            let value = std::env::var_os(name).filter(|v| !v.is_empty())?;
            Some(value.into_string().map_err(|_| ()))
        })
    }

    /// The settings of a command, with its profile; warns about unknown keys in the file.
    pub(crate) fn open(console: &mut Console) -> Result<Self, Failure> {
        let config = Self::load(console.profile())?;
        let word = styled(YELLOW, "warning");
        for warning in config.warnings() {
            console.talk(&format!("{word}: {}\n", escape(warning)))?;
        }
        Ok(config)
    }

    /// Reads a text; `variable` gives the value of a variable, or an error if it is not UTF-8.
    fn read(
        text: Option<&str>,
        path: &Path,
        profile: Option<&str>,
        variable: &dyn Fn(&str) -> Option<Result<String, ()>>,
    ) -> Result<Self, Failure> {
        let found = parse(text.unwrap_or_default(), path)?;
        let mut config = Self {
            path: path.to_owned(),
            exists: text.is_some(),
            profiles: found.profiles.clone(),
            values: BTreeMap::new(),
            names: NameTable::default(),
            name_sources: Vec::new(),
            relays: Vec::new(),
            warnings: Vec::new(),
            identity: OnceCell::new(),
        };
        for (line, warning) in &found.warnings {
            let file = config.path.display();
            let warning = format!("`{file}` line {line}: {warning}");
            config.warnings.push(warning);
        }
        config.apply(&found, None);
        // Variables of other settings are read after the profile, which they outdo.
        for setting in SETTINGS.iter().filter(|s| !s.is_of_profiles()) {
            config.apply_variable(setting, variable)?;
        }
        if let Some(name) = profile {
            let value = Value::Text(name.to_owned());
            config
                .values
                .insert(SettingKey::DefaultProfile, (value, SettingSource::Flag));
        }
        if let Some(name) = config.profile().map(str::to_owned) {
            config.require_profile(&name)?;
            config.apply(&found, Some(&name));
        }
        for setting in SETTINGS.iter().filter(|s| s.is_of_profiles()) {
            config.apply_variable(setting, variable)?;
        }
        Ok(config)
    }

    /// Applies the file, or one of its profiles.
    fn apply(&mut self, found: &FileText, profile: Option<&str>) {
        let source = |line: usize| match profile {
            None => SettingSource::File(line),
            Some(name) => SettingSource::Profile(name.to_owned(), line),
        };
        let values = found.values.iter();
        for entry in values.filter(|e| e.profile.as_deref() == profile) {
            let value = (entry.value.clone(), source(entry.line));
            self.values.insert(entry.key, value);
        }
        let relays = found.relays.iter();
        let relays = relays.filter(|r| r.profile.as_deref() == profile);
        // Those of the profile come first.
        self.relays.splice(..0, relays.cloned());
        let names = found.names.iter();
        for entry in names.filter(|e| e.profile.as_deref() == profile) {
            // It was read before, so it can be added.
            let _ = self.names.add(&entry.name, &entry.address);
            self.name_sources
                .retain(|(name, _)| !same_name(name, &entry.name));
            self.name_sources
                .push((entry.name.clone(), source(entry.line)));
        }
    }

    fn apply_variable(
        &mut self,
        setting: &Setting,
        variable: &dyn Fn(&str) -> Option<Result<String, ()>>,
    ) -> Result<(), Failure> {
        let name = setting.variable();
        let value = match variable(&name) {
            None => return Ok(()),
            Some(Err(())) => return Err(Failure::usage(format!("{name} is not UTF-8"))),
            Some(Ok(text)) => setting.parse(&text),
        };
        let value = value.map_err(|what| Failure::usage(format!("{name} {what}")))?;
        self.values
            .insert(setting.key, (value, SettingSource::Variable(name)));
        Ok(())
    }

    fn require_profile(&self, name: &str) -> Result<(), Failure> {
        if self.profiles.iter().any(|p| p == name) {
            return Ok(());
        }
        let file = self.path.display();
        let help = match self.profiles.as_slice() {
            [] => format!("add a table [profile.{name}] to `{file}`"),
            all => format!("`{file}` has {}", all.join(", ")),
        };
        Err(Failure::usage(format!("there is no profile `{name}`")).help(help))
    }

    pub(crate) fn value(&self, key: SettingKey) -> (Option<Value>, SettingSource) {
        if let Some((value, source)) = self.values.get(&key) {
            return (Some(value.clone()), source.clone());
        }
        let (text, from) = match key {
            SettingKey::User => match self.identity() {
                Some(identity) => (Some(identity.user.clone()), identity.from),
                None => (None, ""),
            },
            SettingKey::Sender => match self.value(SettingKey::User).0 {
                Some(Value::Text(user)) => (Some(user.to_uppercase()), "the user in capitals"),
                _ => (None, ""),
            },
            SettingKey::Editor => match editor() {
                Some((editor, from)) => (Some(editor), from),
                None => (None, ""),
            },
            _ => (None, ""),
        };
        match text {
            Some(text) => (Some(Value::Text(text)), SettingSource::Default(from)),
            None => {
                let value = setting_of(key).and_then(Setting::default);
                (value, SettingSource::Default(""))
            }
        }
    }

    fn identity(&self) -> Option<&UserIdentity> {
        self.identity.get_or_init(find_identity).as_ref()
    }

    /// The file with the settings, whether or not it is there.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn exists(&self) -> bool {
        self.exists
    }

    pub(crate) fn profile(&self) -> Option<&str> {
        match self.values.get(&SettingKey::DefaultProfile) {
            Some((Value::Text(name), _)) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn profiles(&self) -> &[String] {
        &self.profiles
    }

    /// Unknown keys in the file, one sentence each.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The local table of names.
    pub(crate) fn names(&self) -> &NameTable {
        &self.names
    }

    /// The relays, those of the profile first.
    pub(crate) fn relays(&self) -> &[RelaySetting] {
        &self.relays
    }

    /// The relay for an address: the most specific one, those of the profile before the others.
    pub(crate) fn relay_for(&self, address: &str) -> Option<&RelaySetting> {
        relay::choose(&self.relays, address)
    }

    pub(crate) fn token_file(&self, relay: &RelaySetting) -> Option<PathBuf> {
        let file = relay.token_file.as_ref()?;
        Some(relay::token_path(&self.path, file))
    }

    pub(crate) fn name_source(&self, name: &str) -> SettingSource {
        let mut found = self.name_sources.iter();
        let found = found.rfind(|(n, _)| same_name(n, name));
        found.map_or(SettingSource::Default(""), |(_, source)| source.clone())
    }
}

/// Reads a text, or says what is wrong with it and where.
fn parse(text: &str, path: &Path) -> Result<FileText, Failure> {
    file::read(text).map_err(|FileFault { line, message }| {
        let file = path.display();
        Failure::malformed(format!("`{file}` line {line}: {message}"))
    })
}

/// The table of names in a text, with those of a profile on top.
pub(crate) fn names_in(
    text: &str,
    path: &Path,
    profile: Option<&str>,
) -> Result<NameTable, Failure> {
    let found = parse(text, path)?;
    let mut names = NameTable::default();
    for layer in [None, profile] {
        let entries = found.names.iter();
        for entry in entries.filter(|e| e.profile.as_deref() == layer) {
            // It was read before, so it can be added.
            let _ = names.add(&entry.name, &entry.address);
        }
    }
    Ok(names)
}

/// Whether a text can be the file with the settings: every profile is read.
pub(crate) fn check(text: &str, path: &Path) -> Result<(), Failure> {
    let found = parse(text, path)?;
    let default = found
        .values
        .iter()
        .find(|e| e.key == SettingKey::DefaultProfile);
    if let Some(entry) = default
        && let Value::Text(name) = &entry.value
        && !found.profiles.contains(name)
    {
        let (file, line) = (path.display(), entry.line);
        return Err(Failure::malformed(format!(
            "`{file}` line {line}: `default_profile` is `{name}`, and there is no table [profile.{name}]"
        )));
    }
    Ok(())
}

fn setting_of(key: SettingKey) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.key == key)
}

/// The editor of the system's variables.
pub(crate) fn editor() -> Option<(String, &'static str)> {
    ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        let editor = std::env::var(name).ok()?;
        (!editor.trim().is_empty()).then_some((editor, name))
    })
}

/// Puts a value into the file.
pub(crate) fn set(console: &mut Console, target: &Target, value: &Value) -> Result<(), Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    file.update(|text| {
        if let (Some(name), Value::Text(address)) = (target.name(), value) {
            // A table that leads in a circle is not made.
            let mut names = names_in(text, file.path(), target.profile.as_deref())?;
            names.set(name, address).map_err(|fault| {
                let Explanation { what, help } = fault.explanation();
                Failure::usage(what).help(help)
            })?;
        }
        let after = put(text, target, value)?;
        check(&after, file.path())?;
        Ok::<_, Failure>(Some(after))
    })?;
    if let (Some(_), Value::Text(address)) = (target.name(), value) {
        warn_of_scheme(console, address)?;
    }
    Ok(())
}

/// Warns about an unregistered scheme, which may be a typo.
fn warn_of_scheme(console: &mut Console, address: &str) -> Result<(), Failure> {
    let scheme = Address::split(address).scheme();
    if let Some(scheme) = scheme.filter(|s| Schemes::default().find(s).is_none()) {
        let word = styled(YELLOW, "warning");
        console.talk(&format!(
            "{word}: the scheme `{}` is not in the registry (LNT-008)\n",
            escape(scheme)
        ))?;
    }
    Ok(())
}

/// Takes a value out of the file; says whether it was there.
pub(crate) fn unset(target: &Target) -> Result<bool, Failure> {
    let file = ConfigFile::new(&Home::from_env()?);
    file.update(|text| {
        let after = take(text, target)?;
        if let Some(after) = &after {
            check(after, file.path())?;
        }
        Ok::<_, Failure>(after)
    })
}

/// Which messages carry an extra: the public key, the primer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    /// The first ones, as long as the other side does not have it.
    First,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Ulid,
    Uuid,
}

impl Settings {
    fn text(&self, key: SettingKey) -> Option<String> {
        match self.value(key).0 {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: SettingKey) -> Vec<String> {
        match self.value(key).0 {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }

    fn is_on(&self, key: SettingKey) -> bool {
        matches!(self.value(key).0, Some(Value::Switch(true)))
    }

    fn when(&self, key: SettingKey) -> When {
        match self.value(key).0 {
            Some(Value::Switch(true)) => When::Always,
            Some(Value::Switch(false)) => When::Never,
            _ => When::First,
        }
    }

    pub(crate) fn user(&self) -> Result<String, Failure> {
        self.text(SettingKey::User).ok_or_else(|| {
            Failure::failed("your name is not known")
                .help("set it with `crosstalk config set user kalle` or CROSSTALK_USER")
        })
    }

    /// The sender in the first line of a message.
    pub(crate) fn sender(&self) -> Result<String, Failure> {
        let Some(sender) = self.text(SettingKey::Sender) else {
            return self.user().map(|user| user.to_uppercase());
        };
        table::direction(&sender).map_err(|what| {
            Failure::usage(format!("the sender {what}")).help("`crosstalk config set sender KALLE`")
        })?;
        Ok(sender)
    }

    /// The configured sender, if it is valid.
    pub(crate) fn named_sender(&self) -> Option<String> {
        self.text(SettingKey::Sender)
            .filter(|sender| table::direction(sender).is_ok())
    }

    /// Further names and addresses of the same person.
    pub(crate) fn me(&self) -> Vec<String> {
        self.list(SettingKey::Me)
    }

    pub(crate) fn context(&self) -> Option<String> {
        self.text(SettingKey::Context)
    }

    pub(crate) fn key(&self) -> Option<String> {
        self.text(SettingKey::Key)
    }

    pub(crate) fn sign(&self) -> bool {
        self.is_on(SettingKey::Sign)
    }

    pub(crate) fn with_key(&self) -> When {
        self.when(SettingKey::WithKey)
    }

    pub(crate) fn fence(&self) -> bool {
        self.is_on(SettingKey::Fence)
    }

    pub(crate) fn primer(&self) -> When {
        self.when(SettingKey::Primer)
    }

    pub(crate) fn pin(&self) -> bool {
        self.is_on(SettingKey::Pin)
    }

    pub(crate) fn dns(&self) -> bool {
        self.is_on(SettingKey::Dns)
    }

    pub(crate) fn clipboard(&self) -> Choice {
        match self.text(SettingKey::Clipboard).as_deref() {
            Some("system") => Choice::System,
            Some("terminal") => Choice::Terminal,
            Some("none") => Choice::None,
            _ => Choice::Auto,
        }
    }

    /// The program to write with, and its arguments: of the settings, else VISUAL, else EDITOR.
    pub(crate) fn editor(&self) -> Option<String> {
        self.text(SettingKey::Editor)
    }

    pub(crate) fn ids(&self) -> Ids {
        match self.text(SettingKey::Ids).as_deref() {
            Some("uuid") => Ids::Uuid,
            _ => Ids::Ulid,
        }
    }

    /// The domain that lists the addresses of simple names.
    pub(crate) fn domain(&self) -> Option<String> {
        self.text(SettingKey::Domain)
    }

    pub(crate) fn redact_names(&self) -> Vec<String> {
        self.list(SettingKey::RedactNames)
    }

    /// The consent policy.
    pub(crate) fn consent(&self) -> Policy {
        let authorities = self.list(SettingKey::ConsentAuthorities);
        Policy {
            signed: self.list(SettingKey::ConsentSigned),
            // They were read before.
            authorities: authorities
                .iter()
                .filter_map(|p| Pattern::parse(p).ok())
                .collect(),
            ..Policy::default()
        }
    }
}

/// A name, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserIdentity {
    pub(crate) user: String,
    pub(crate) from: &'static str,
}

/// The first word of git's `user.name` in lower case, as messages have it (`user: kalle`); else the login name.
pub(crate) fn find_identity() -> Option<UserIdentity> {
    let git = || {
        let name = said("git", &["config", "--get", "user.name"])?;
        user_of(name.split_whitespace().next()?)
    };
    if let Some(user) = git() {
        let from = "git";
        return Some(UserIdentity { user, from });
    }
    let variables = ["USER", "LOGNAME", "USERNAME"];
    let login = variables
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find_map(|name| user_of(&name))
        .or_else(|| user_of(&said("id", &["-un"])?))?;
    Some(UserIdentity {
        user: login,
        from: "the login name",
    })
}

/// The output of a program, if it exists and succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())?
}

/// Sanitizes a name: the git settings of a folder are untrusted.
fn user_of(name: &str) -> Option<String> {
    let harmless = |c: &char| !c.is_control() && !crosstalk_envelope::unicode::is_hidden(*c);
    let name: String = name.chars().filter(harmless).take(64).collect();
    let name = name.trim().to_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, profile: Option<&str>, variables: &[(&str, &str)]) -> Settings {
        try_read(text, profile, variables).unwrap()
    }

    fn try_read(
        text: &str,
        profile: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Settings, Failure> {
        Settings::read(Some(text), Path::new("config.toml"), profile, &|name| {
            let found = variables.iter().find(|(n, _)| *n == name)?;
            Some(Ok(found.1.to_owned()))
        })
    }

    fn source(config: &Settings, key: SettingKey) -> String {
        config.value(key).1.to_string()
    }

    #[test]
    fn the_nearest_word_counts_and_is_named() {
        let text = "sender = \"A\"\nids = \"uuid\"\n[profile.work]\nsender = \"B\"\n";
        let config = read(text, None, &[]);
        assert_eq!(config.sender().unwrap(), "A");
        assert_eq!(source(&config, SettingKey::Sender), "line 1");
        assert_eq!(config.ids(), Ids::Uuid);
        assert_eq!(source(&config, SettingKey::Fence), "default");
        assert!(!config.fence());

        let config = read(text, Some("work"), &[]);
        assert_eq!(config.sender().unwrap(), "B");
        assert_eq!(source(&config, SettingKey::Sender), "profile work, line 4");
        assert_eq!(source(&config, SettingKey::Ids), "line 2");

        let config = read(text, Some("work"), &[("CROSSTALK_SENDER", "C")]);
        assert_eq!(config.sender().unwrap(), "C");
        assert_eq!(source(&config, SettingKey::Sender), "CROSSTALK_SENDER");
    }

    #[test]
    fn a_profile_is_chosen_by_the_file_the_variable_or_the_flag() {
        let text = "default_profile = \"a\"\n[profile.a]\nuser = \"ua\"\n[profile.b]\nuser = \"ub\"\n\
            [profile.c]\nuser = \"uc\"\n";
        let user = |profile, variables: &[_]| read(text, profile, variables).user().unwrap();
        assert_eq!(user(None, &[]), "ua");
        assert_eq!(user(None, &[("CROSSTALK_PROFILE", "b")]), "ub");
        assert_eq!(user(Some("c"), &[("CROSSTALK_PROFILE", "b")]), "uc");
        let fault = try_read(text, Some("d"), &[]).unwrap_err();
        assert!(fault.is_usage());
        assert!(fault.to_string().contains("has a, b, c"), "{fault}");
        let fault = try_read("", None, &[("CROSSTALK_PROFILE", "d")]).unwrap_err();
        assert!(fault.to_string().contains("[profile.d]"), "{fault}");
    }

    #[test]
    fn names_of_a_profile_come_on_top() {
        let text = "[names]\nCLAUDE = \"claude://a\"\nX = \"mcp://x@y\"\n[profile.p.names]\nclaude = \"claude://b\"\n";
        let config = read(text, Some("p"), &[]);
        assert_eq!(config.names().get("Claude"), Some("claude://b"));
        assert_eq!(
            config.name_source("CLAUDE").to_string(),
            "profile p, line 5"
        );
        assert_eq!(config.names().get("x"), Some("mcp://x@y"));
        assert_eq!(config.name_source("x").to_string(), "line 3");
        assert_eq!(
            read(text, None, &[]).names().get("claude"),
            Some("claude://a")
        );
    }

    #[test]
    fn a_wrong_variable_is_named() {
        for (name, value) in [
            ("CROSSTALK_SIGN", "maybe"),
            ("CROSSTALK_IDS", "x"),
            ("CROSSTALK_SENDER", "a\nb"),
        ] {
            let fault = try_read("", None, &[(name, value)]).unwrap_err();
            assert!(fault.is_usage());
            assert!(fault.to_string().starts_with(name), "{fault}");
        }
        let config = read("", None, &[("CROSSTALK_ME", "A, claude://b")]);
        assert_eq!(config.me(), ["A", "claude://b"]);
    }

    #[test]
    fn whose_name_it_is() {
        let config = read(
            "user = \"Kalle Svensson\"\nme = [\"human://k\", \"Kalle\"]",
            None,
            &[],
        );
        assert_eq!(config.sender().unwrap(), "KALLE SVENSSON");
        let fault = read("user = \"[[x]]\"", None, &[]).sender().unwrap_err();
        assert!(fault.to_string().contains("config set sender"), "{fault}");
    }

    #[test]
    fn a_text_is_checked_with_all_its_profiles() {
        let path = Path::new("config.toml");
        assert!(check("default_profile = \"a\"\n[profile.a]\n", path).is_ok());
        assert!(check("default_profile = \"b\"\n[profile.a]\n", path).is_err());
        assert!(check("[profile.a]\nsign = 3\n", path).is_err());
    }
}

#[cfg(test)]
mod identity_tests {
    use super::*;

    #[test]
    fn a_name_is_one_harmless_word() {
        assert_eq!(user_of("Kalle"), Some("kalle".to_owned()));
        assert_eq!(
            user_of("Ärlig\u{202e}\u{1b}[2J"),
            Some("ärlig[2j".to_owned())
        );
        assert_eq!(user_of(" \u{7} "), None);
        assert_eq!(user_of(&"x".repeat(5_000)).map(|n| n.len()), Some(64));
    }
}
