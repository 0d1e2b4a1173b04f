//! Reads the settings file with the line of each entry, and edits it without touching the rest.

use super::relay::{self, RELAY, RelaySetting};
use super::table::{Kind, NAMES, PROFILE, SETTINGS, Setting, SettingKey, Value, nearest};
use crate::failure::Failure;
use crosstalk_envelope::name::same_name;
use crosstalk_protocol::NameTable;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
pub(super) use toml_edit::Table;
use toml_edit::{Array, DocumentMut, Item, TableLike};

#[derive(Debug, Default)]
pub(crate) struct FileText {
    pub(crate) values: Vec<SettingEntry>,
    pub(crate) names: Vec<NameEntry>,
    pub(crate) relays: Vec<RelaySetting>,
    pub(crate) profiles: Vec<String>,
    /// Unknown keys, each with its line.
    pub(crate) warnings: Vec<(usize, String)>,
}

/// A setting, of the file or of a profile.
#[derive(Debug)]
pub(crate) struct SettingEntry {
    pub(crate) profile: Option<String>,
    pub(crate) key: SettingKey,
    pub(crate) value: Value,
    pub(crate) line: usize,
}

/// A name, of the file or of a profile.
#[derive(Debug)]
pub(crate) struct NameEntry {
    pub(crate) profile: Option<String>,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) line: usize,
}

/// A fault and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileFault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

pub(crate) fn read(text: &str) -> Result<FileText, FileFault> {
    let document = DeTable::parse(text).map_err(|fault| FileFault {
        line: line_of(text, fault.span().unwrap_or_default()),
        message: format!("this is not TOML: {}", fault.message().trim_end()),
    })?;
    let mut reader = FileTextReader {
        text,
        found: FileText::default(),
    };
    reader.table(document.get_ref(), None, "")?;
    Ok(reader.found)
}

/// The line in which a part of a text begins.
pub(super) fn line_of(text: &str, span: Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    before.iter().filter(|b| **b == b'\n').count() + 1
}

/// Reads tables, in the order of the text.
struct FileTextReader<'t> {
    text: &'t str,
    found: FileText,
}

impl FileTextReader<'_> {
    /// The entries of a table in the order of the text, each with its line.
    fn entries<'v, 'i>(
        &self,
        table: &'v DeTable<'i>,
    ) -> Vec<(usize, &'v str, &'v Spanned<DeValue<'i>>)> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let placed = entries.into_iter().map(|(key, value)| {
            let name: &str = key.get_ref();
            (line_of(self.text, key.span()), name, value)
        });
        placed.collect()
    }

    /// The settings of a table; `prefix` stands before their names, such as `redact.`.
    fn table(
        &mut self,
        table: &DeTable<'_>,
        profile: Option<&str>,
        prefix: &str,
    ) -> Result<(), FileFault> {
        for (line, short, item) in self.entries(table) {
            let name = format!("{prefix}{short}");
            let wrong = |message: String| FileFault { line, message };
            if name == RELAY {
                let relays = relay::read(self.text, item, profile, &mut self.found.warnings)?;
                self.found.relays.extend(relays);
                continue;
            }
            let group = format!("{name}.");
            let is_group = SETTINGS.iter().any(|s| s.name.starts_with(&group));
            if name == NAMES || is_group || (name == PROFILE && profile.is_none()) {
                let inner = item.get_ref().as_table();
                let inner = inner.ok_or_else(|| match name == PROFILE {
                    true => wrong(no_profile("profile", "work")),
                    false => wrong(format!("`{name}` has to be a table, as in [{name}]")),
                })?;
                match name.as_str() {
                    NAMES => self.names(inner, profile)?,
                    PROFILE => self.profiles(inner)?,
                    _ => self.table(inner, profile, &group)?,
                }
                continue;
            }
            let known = |s: &&Setting| profile.is_none() || s.is_of_profiles();
            let Some(setting) = Setting::find(&name).filter(known) else {
                let all = SETTINGS.iter().filter(known).map(|s| s.name);
                let near = nearest(&name, all.chain([NAMES]));
                let near = near.map_or(String::new(), |near| format!("; is it `{near}`?"));
                let warning = format!("there is no setting `{name}`{near}");
                self.found.warnings.push((line, warning));
                continue;
            };
            let value = value(item.get_ref()).map_err(|kind| {
                wrong(format!(
                    "`{name}` is {kind}, and has to be {}",
                    setting.kind
                ))
            })?;
            let checked = setting.check(&value);
            checked.map_err(|what| wrong(format!("`{name}` {what}")))?;
            self.found.values.push(SettingEntry {
                profile: profile.map(str::to_owned),
                key: setting.key,
                value,
                line,
            });
        }
        Ok(())
    }

    fn profiles(&mut self, table: &DeTable<'_>) -> Result<(), FileFault> {
        for (line, name, item) in self.entries(table) {
            let inner = item.get_ref().as_table().ok_or_else(|| FileFault {
                line,
                message: no_profile(&format!("profile.{name}"), name),
            })?;
            self.found.profiles.push(name.to_owned());
            self.table(inner, Some(name), "")?;
        }
        Ok(())
    }

    fn names(&mut self, table: &DeTable<'_>, profile: Option<&str>) -> Result<(), FileFault> {
        let mut seen = NameTable::default();
        for (line, name, item) in self.entries(table) {
            let wrong = |message: String| Err(FileFault { line, message });
            let Some(address) = item.get_ref().as_str() else {
                return wrong(format!("`names.{name}` has to be an address: a text"));
            };
            match seen.add(name, address) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    return wrong(format!(
                        "`names.{name}` is set twice: upper and lower case do not matter"
                    ));
                }
                Err(fault) => return wrong(fault.to_string()),
            }
            self.found.names.push(NameEntry {
                profile: profile.map(str::to_owned),
                name: name.to_owned(),
                address: address.to_owned(),
                line,
            });
        }
        Ok(())
    }
}

fn no_profile(key: &str, name: &str) -> String {
    format!(
        "`{key}` has to be a table, as in [profile.{name}]; the profile to begin with is `default_profile`"
    )
}

/// The value of an item, or what it is instead.
fn value(item: &DeValue<'_>) -> Result<Value, &'static str> {
    match item {
        DeValue::String(text) => Ok(Value::Text(text.clone().into_owned())),
        DeValue::Boolean(on) => Ok(Value::Switch(*on)),
        DeValue::Array(list) => {
            let texts = list.iter().map(|v| v.get_ref().as_str().map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            texts
                .map(Value::List)
                .ok_or("a list with entries that are no texts")
        }
        DeValue::Integer(_) | DeValue::Float(_) => Err("a number"),
        DeValue::Datetime(_) => Err("a time"),
        DeValue::Table(_) => Err("a table"),
    }
}

/// The first line of a file that this program creates.
const TITLE: &str = "# Settings of Crosstalk. `crosstalk config show` lists them all.\n\n";

/// A key of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) profile: Option<String>,
    pub(crate) what: TargetKind,
}

impl fmt::Display for Target {
    /// As the key is written on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(profile) = &self.profile {
            write!(f, "{PROFILE}.{profile}.")?;
        }
        match &self.what {
            TargetKind::Setting(name) => f.write_str(name),
            TargetKind::Name(name) => write!(f, "{NAMES}.{name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Setting(&'static str),
    Name(String),
}

impl Target {
    /// Parses `user`, `redact.names`, `names.CLAUDE`, `profile.work.user` and so on. `profile` applies if the key names
    /// none.
    pub(crate) fn parse(text: &str, profile: Option<&str>) -> Result<Self, Failure> {
        let inner = below(text, PROFILE);
        let (profile, rest) = match inner.and_then(|inner| inner.split_once('.')) {
            Some((name, rest)) => (Some(name), rest),
            None => (profile, text),
        };
        let target = |what| Self {
            profile: profile.map(str::to_owned),
            what,
        };
        if let Some(name) = below(rest, NAMES) {
            return Ok(target(TargetKind::Name(name.to_owned())));
        }
        let known = |s: &&Setting| profile.is_none() || s.is_of_profiles();
        match Setting::find(rest).filter(known) {
            Some(setting) => Ok(target(TargetKind::Setting(setting.name))),
            None => {
                let all = SETTINGS.iter().filter(known).map(|s| s.name);
                let near = nearest(rest, all.clone());
                Err(Failure::usage(match near {
                    Some(near) => format!("there is no setting `{text}`; is it `{near}`?"),
                    None => {
                        let all: Vec<&str> = all.collect();
                        format!(
                            "there is no setting `{text}`: there are {}, names.NAME and profile.PROFILE.SETTING",
                            all.join(", ")
                        )
                    }
                }))
            }
        }
    }

    /// A name of the table, of a profile if one is given.
    pub(crate) fn of_name(name: &str, profile: Option<&str>) -> Self {
        Self {
            profile: profile.map(str::to_owned),
            what: TargetKind::Name(name.to_owned()),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match &self.what {
            TargetKind::Name(name) => Some(name),
            TargetKind::Setting(_) => None,
        }
    }

    pub(crate) fn key(&self) -> Option<SettingKey> {
        match &self.what {
            TargetKind::Name(_) => None,
            TargetKind::Setting(name) => Setting::find(name).map(|s| s.key),
        }
    }

    /// The way to it through the tables of the file.
    fn path(&self) -> (Vec<&str>, &str) {
        let mut tables = Vec::new();
        if let Some(profile) = &self.profile {
            tables.extend([PROFILE, profile]);
        }
        let last = match &self.what {
            TargetKind::Name(name) => {
                tables.push(NAMES);
                name
            }
            TargetKind::Setting(name) => match name.split_once('.') {
                Some((group, inner)) => {
                    tables.push(group);
                    inner
                }
                None => name,
            },
        };
        (tables, last)
    }

    /// The value that some arguments give it.
    pub(crate) fn value(&self, values: &[String]) -> Result<Value, Failure> {
        let what = match &self.what {
            TargetKind::Name(_) => None,
            TargetKind::Setting(name) => Setting::find(name),
        };
        let kind = what.map(|s| s.kind);
        let text = match (values, kind) {
            (values, Some(Kind::List(_))) => values.join(","),
            ([only], _) => only.clone(),
            _ => {
                return Err(
                    Failure::usage("the setting has one value").help("put it in quotation marks")
                );
            }
        };
        match what {
            None => Ok(Value::Text(text)),
            Some(setting) => setting
                .parse(&text)
                .map_err(|what| Failure::usage(format!("`{}` {what}", setting.name))),
        }
    }
}

/// The rest after a table and a dot.
fn below<'t>(text: &'t str, table: &str) -> Option<&'t str> {
    text.strip_prefix(table)?.strip_prefix('.')
}

fn document(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|fault: toml_edit::TomlError| {
        Failure::failed(format!(
            "the settings are not TOML, and stay as they are: {}",
            fault.to_string().trim_end()
        ))
        .help("repair them with `crosstalk config edit`")
    })
}

pub(crate) fn put(text: &str, target: &Target, value: &Value) -> Result<String, Failure> {
    change(text, |root| {
        let (tables, last) = target.path();
        let mut table: &mut dyn TableLike = root;
        for name in tables {
            let entry = table.entry(name).or_insert_with(|| {
                let mut new = Table::new();
                new.set_implicit(true);
                Item::Table(new)
            });
            table = entry
                .as_table_like_mut()
                .ok_or_else(|| Failure::failed(format!("`{name}` is no table in the settings")))?;
        }
        let last = written_name(table, last, &target.what);
        let mut new = toml_value(value);
        match table.get_mut(&last).and_then(Item::as_value_mut) {
            Some(old) => {
                // What stands around it stays: a comment behind it, above all.
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            None => {
                table.insert(&last, Item::Value(new));
            }
        }
        Ok(())
    })
}

/// The text after a change. A text without any setting gets a title, unless it has comments.
pub(super) fn change(
    text: &str,
    change: impl FnOnce(&mut Table) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut document = document(text)?;
    let is_empty = document.as_table().is_empty();
    // Comments of a file that has nothing else come before what is added.
    let title = match document.trailing().as_str() {
        Some(comments) if is_empty && !comments.trim().is_empty() => {
            format!("{}\n\n", comments.trim_end())
        }
        _ if is_empty => TITLE.to_owned(),
        _ => String::new(),
    };
    if is_empty {
        document.set_trailing("");
    }
    change(document.as_table_mut())?;
    let after = document.to_string();
    // The title ends with an empty line; the first table needs no other one.
    let after = match title.is_empty() {
        true => after.as_str(),
        false => after.trim_start_matches('\n'),
    };
    Ok(format!("{title}{after}"))
}

/// The text without a value; nothing if it is not there.
pub(crate) fn take(text: &str, target: &Target) -> Result<Option<String>, Failure> {
    let mut document = document(text)?;
    let (tables, last) = target.path();
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let inner = table.get_mut(name).and_then(Item::as_table_like_mut);
        let Some(inner) = inner else { return Ok(None) };
        table = inner;
    }
    let last = written_name(table, last, &target.what);
    Ok(table.remove(&last).map(|_| document.to_string()))
}

/// A name as the table has it: the same one in upper and lower case.
fn written_name(table: &dyn TableLike, name: &str, what: &TargetKind) -> String {
    let is_name = matches!(what, TargetKind::Name(_));
    let found = table
        .iter()
        .map(|(n, _)| n)
        .find(|n| is_name && same_name(n, name));
    found.unwrap_or(name).to_owned()
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Switch(on) => (*on).into(),
        Value::List(list) => {
            let array: Array = list.iter().map(String::as_str).collect();
            array.into()
        }
    }
}

pub(crate) fn stored(text: &str, target: &Target) -> Option<Value> {
    let found = read(text).ok()?;
    let profile = |p: &Option<String>| *p == target.profile;
    match &target.what {
        TargetKind::Name(name) => {
            let mut names = found.names.into_iter();
            let entry = names.find(|e| profile(&e.profile) && same_name(&e.name, name))?;
            Some(Value::Text(entry.address))
        }
        TargetKind::Setting(name) => {
            let key = Setting::find(name)?.key;
            let mut values = found.values.into_iter();
            let entry = values.find(|e| profile(&e.profile) && e.key == key)?;
            Some(entry.value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_know_their_line_and_profile() {
        let text = "# mine\nuser = \"kalle\"\nredact.names = [\"Bob\"]\n\n[names]\nCLAUDE = \"claude://a\"\n\n\
            [profile.work]\nsign = true\n[profile.work.names]\n\"BROTHER AI\" = \"claude://b\"\n[profile.home]\n";
        let found = read(text).unwrap();
        let told: Vec<_> = found
            .values
            .iter()
            .map(|e| (e.profile.as_deref(), e.key, e.line))
            .collect();
        assert_eq!(
            told,
            [
                (None, SettingKey::User, 2),
                (None, SettingKey::RedactNames, 3),
                (Some("work"), SettingKey::Sign, 9)
            ]
        );
        let names: Vec<_> = found
            .names
            .iter()
            .map(|e| (e.profile.as_deref(), e.name.as_str(), e.line))
            .collect();
        assert_eq!(
            names,
            [(None, "CLAUDE", 6), (Some("work"), "BROTHER AI", 11)]
        );
        assert_eq!(found.profiles, ["work", "home"]);
        assert!(found.warnings.is_empty());
    }

    #[test]
    fn what_is_not_known_is_a_warning_with_the_nearest_name() {
        let text =
            "usr = \"x\"\nbanana = 3\n[redact]\nname = []\n[profile.a]\ndefault_profile = \"b\"\n";
        let warnings = read(text).unwrap().warnings;
        assert_eq!(
            warnings,
            [
                (1, "there is no setting `usr`; is it `user`?".to_owned()),
                (2, "there is no setting `banana`".to_owned()),
                (
                    4,
                    "there is no setting `redact.name`; is it `redact.names`?".to_owned()
                ),
                (6, "there is no setting `default_profile`".to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_wrong_has_a_line_and_says_what_is_allowed() {
        for (text, line, message) in [
            (
                "\nsign = \"yes\"",
                2,
                "`sign` is `yes`, and has to be true or false",
            ),
            (
                "sign = 1",
                1,
                "`sign` is a number, and has to be true or false",
            ),
            ("user = true", 1, "`user` is true, and has to be a text"),
            (
                "me = \"A\"",
                1,
                "`me` is `A`, and has to be a list of texts",
            ),
            ("me = [1]", 1, "entries that are no texts"),
            ("ids = \"snowflake\"", 1, "has to be ulid, uuid"),
            ("[user]\nx = 1", 1, "`user` is a table"),
            ("names = 1", 1, "[names]"),
            ("profile = \"work\"", 1, "default_profile"),
            ("[profile]\nwork = 1", 2, "[profile.work]"),
            ("[names]\nA = 1", 2, "`names.A` has to be an address"),
            ("[names]\nA = \"tel:x\"", 2, "is no address"),
            ("[names]\nA = \"b\"\na = \"c\"", 3, "twice"),
            ("[names]\n\"claude://x\" = \"b\"", 2, "is a URL"),
            ("a = 1\nb =\n", 2, "this is not TOML"),
            ("[profile.x]\n\nsign = 1", 3, "`sign` is a number"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert_eq!(fault.line, line, "{text}");
        }
    }
}

#[cfg(test)]
mod edit_tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    fn set(text: &str, key: &str, value: &str) -> String {
        let target = target(key);
        let value = target.value(&[value.to_owned()]).unwrap();
        let after = put(text, &target, &value).unwrap();
        assert_eq!(stored(&after, &target), Some(value), "{after}");
        after
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "# top\nuser = 'x' # me\n\n# signing\nsign=false\n\n[names] # people\nCLAUDE = \"claude://a\"  # home\n\n[profile.work]\n";
        assert_eq!(set(text, "user", "kalle"), text.replace("'x'", "\"kalle\""));
        assert_eq!(set(text, "sign", "on"), text.replace("=false", "=true"));
        assert_eq!(
            set(text, "names.claude", "claude://b"),
            text.replace("//a", "//b")
        );
        assert_eq!(
            set(text, "fence", "no"),
            text.replace("sign=false\n", "sign=false\nfence = false\n")
        );
        assert_eq!(
            set(text, "profile.work.redact.names", "A,B"),
            format!("{text}\n[profile.work.redact]\nnames = [\"A\", \"B\"]\n")
        );
        assert_eq!(
            set(text, "names.BROTHER AI", "claude://c"),
            text.replace("# home\n", "# home\n\"BROTHER AI\" = \"claude://c\"\n")
        );
    }

    #[test]
    fn a_new_file_begins_with_a_word_about_it() {
        assert_eq!(set("", "user", "k"), format!("{TITLE}user = \"k\"\n"));
        assert_eq!(
            set("# mine\n# alone\n", "names.A", "claude://x"),
            "# mine\n# alone\n\n[names]\nA = \"claude://x\"\n"
        );
        let twice = set(&set("", "profile.a.user", "k"), "profile.a.sign", "yes");
        assert_eq!(
            twice,
            format!("{TITLE}[profile.a]\nuser = \"k\"\nsign = true\n")
        );
    }

    #[test]
    fn taking_out_leaves_the_rest() {
        let text = "user = \"x\"\nsign = true\n[names]\nA = \"claude://a\"\n";
        let without = |key: &str| take(text, &target(key)).unwrap();
        assert_eq!(without("user").unwrap(), text.replace("user = \"x\"\n", ""));
        assert_eq!(
            without("names.a").unwrap(),
            text.replace("A = \"claude://a\"\n", "")
        );
        assert_eq!(without("fence"), None);
        assert_eq!(without("profile.a.user"), None);
    }

    #[test]
    fn keys_of_the_command_line() {
        assert_eq!(
            target("profile.work.names.A.B"),
            Target {
                profile: Some("work".into()),
                what: TargetKind::Name("A.B".into())
            }
        );
        let chosen = Target::parse("sign", Some("work")).unwrap();
        assert_eq!(chosen.profile.as_deref(), Some("work"));
        for (key, said) in [
            ("usr", "is it `user`?"),
            ("banana", "there are default_profile, user"),
            ("profile.a.default_profile", "there is no setting"),
            ("profile", "there is no setting"),
        ] {
            let fault = Target::parse(key, None).unwrap_err().to_string();
            assert!(fault.contains(said), "{key}: {fault}");
        }
        assert!(target("user").value(&["a".into(), "b".into()]).is_err());
        assert!(target("me").value(&["a".into(), "b".into()]).is_ok());
    }
}
