//! Changes in the text of the settings: whatever is not meant stays as it is, comments and order included.

use super::setting::{Key, Kind, NAMES, PROFILE, Setting, Value, nearest};
use super::{SETTINGS, file};
use crate::failure::Failure;
use crosstalk_envelope::name::same_name;
use std::fmt;
pub(super) use toml_edit::Table;
use toml_edit::{Array, DocumentMut, Item, TableLike};

/// What a file begins with that this program makes.
const TITLE: &str = "# Settings of Crosstalk. `crosstalk config show` lists them all.\n\n";

/// What a key of the command line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) profile: Option<String>,
    pub(crate) what: What,
}

impl fmt::Display for Target {
    /// As the key is written on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(profile) = &self.profile {
            write!(f, "{PROFILE}.{profile}.")?;
        }
        match &self.what {
            What::Setting(name) => f.write_str(name),
            What::Name(name) => write!(f, "{NAMES}.{name}"),
        }
    }
}

/// A setting, or a name of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Setting(&'static str),
    Name(String),
}

impl Target {
    /// Reads `user`, `redact.names`, `names.CLAUDE`, `profile.work.user` and so on. A profile that was asked for
    /// counts where the key names none.
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
            return Ok(target(What::Name(name.to_owned())));
        }
        let known = |s: &&Setting| profile.is_none() || s.is_of_profiles();
        match Setting::find(rest).filter(known) {
            Some(setting) => Ok(target(What::Setting(setting.name))),
            None => {
                let all = SETTINGS.iter().filter(known).map(|s| s.name);
                let near = nearest(rest, all.clone());
                Err(Failure::Usage(match near {
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
            what: What::Name(name.to_owned()),
        }
    }

    /// The name of the table that it is about.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.what {
            What::Name(name) => Some(name),
            What::Setting(_) => None,
        }
    }

    /// The setting that it is about.
    pub(crate) fn key(&self) -> Option<Key> {
        match &self.what {
            What::Name(_) => None,
            What::Setting(name) => Setting::find(name).map(|s| s.key),
        }
    }

    /// The way to it through the tables of the file.
    fn path(&self) -> (Vec<&str>, &str) {
        let mut tables = Vec::new();
        if let Some(profile) = &self.profile {
            tables.extend([PROFILE, profile]);
        }
        let last = match &self.what {
            What::Name(name) => {
                tables.push(NAMES);
                name
            }
            What::Setting(name) => match name.split_once('.') {
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
            What::Name(_) => None,
            What::Setting(name) => Setting::find(name),
        };
        let kind = what.map(|s| s.kind);
        let text = match (values, kind) {
            (values, Some(Kind::List(_))) => values.join(","),
            ([only], _) => only.clone(),
            _ => {
                return Err(Failure::Usage(
                    "this takes one value: put it in quotation marks".to_owned(),
                ));
            }
        };
        match what {
            None => Ok(Value::Text(text)),
            Some(setting) => setting
                .parse(&text)
                .map_err(|what| Failure::Usage(format!("`{}` {what}", setting.name))),
        }
    }
}

/// What stands behind a table and a dot.
fn below<'t>(text: &'t str, table: &str) -> Option<&'t str> {
    text.strip_prefix(table)?.strip_prefix('.')
}

fn document(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|fault: toml_edit::TomlError| {
        Failure::Failed(format!(
            "the settings are not TOML, and stay as they are: {}\nRepair them with `crosstalk config edit`",
            fault.to_string().trim_end()
        ))
    })
}

/// The text with a value in its place.
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
                .ok_or_else(|| Failure::Failed(format!("`{name}` is no table in the settings")))?;
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
fn written_name(table: &dyn TableLike, name: &str, what: &What) -> String {
    let is_name = matches!(what, What::Name(_));
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

/// The value that the file itself has for a target.
pub(crate) fn stored(text: &str, target: &Target) -> Option<Value> {
    let found = file::read(text).ok()?;
    let profile = |p: &Option<String>| *p == target.profile;
    match &target.what {
        What::Name(name) => {
            let mut names = found.names.into_iter();
            let entry = names.find(|e| profile(&e.profile) && same_name(&e.name, name))?;
            Some(Value::Text(entry.address))
        }
        What::Setting(name) => {
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
                what: What::Name("A.B".into())
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
