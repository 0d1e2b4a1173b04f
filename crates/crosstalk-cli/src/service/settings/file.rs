//! The text of the settings: TOML, with the line of each entry.

use super::relay::{self, RELAY, RelaySetting};
use super::setting::{Key, NAMES, PROFILE, SETTINGS, Setting, Value, nearest};
use crosstalk_protocol::Names;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a text says.
#[derive(Debug, Default)]
pub(crate) struct FileText {
    pub(crate) values: Vec<Entry>,
    pub(crate) names: Vec<NameEntry>,
    pub(crate) relays: Vec<RelaySetting>,
    pub(crate) profiles: Vec<String>,
    /// What is not known, each with its line.
    pub(crate) warnings: Vec<(usize, String)>,
}

/// One setting, of everybody or of a profile.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) profile: Option<String>,
    pub(crate) key: Key,
    pub(crate) value: Value,
    pub(crate) line: usize,
}

/// One name, of everybody or of a profile.
#[derive(Debug)]
pub(crate) struct NameEntry {
    pub(crate) profile: Option<String>,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) line: usize,
}

/// What is wrong with a text, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Result<FileText, Fault> {
    let document = DeTable::parse(text).map_err(|fault| Fault {
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
    ) -> Result<(), Fault> {
        for (line, short, item) in self.entries(table) {
            let name = format!("{prefix}{short}");
            let wrong = |message: String| Fault { line, message };
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
            self.found.values.push(Entry {
                profile: profile.map(str::to_owned),
                key: setting.key,
                value,
                line,
            });
        }
        Ok(())
    }

    fn profiles(&mut self, table: &DeTable<'_>) -> Result<(), Fault> {
        for (line, name, item) in self.entries(table) {
            let inner = item.get_ref().as_table().ok_or_else(|| Fault {
                line,
                message: no_profile(&format!("profile.{name}"), name),
            })?;
            self.found.profiles.push(name.to_owned());
            self.table(inner, Some(name), "")?;
        }
        Ok(())
    }

    fn names(&mut self, table: &DeTable<'_>, profile: Option<&str>) -> Result<(), Fault> {
        let mut seen = Names::default();
        for (line, name, item) in self.entries(table) {
            let wrong = |message: String| Err(Fault { line, message });
            let Some(address) = item.get_ref().as_str() else {
                return wrong(format!("`names.{name}` has to be an address: a text"));
            };
            match seen.add(name, address) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    return wrong(format!(
                        "`names.{name}` stands there twice: names are the same in upper and lower case"
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
                .ok_or("a list with something else than texts in it")
        }
        DeValue::Integer(_) | DeValue::Float(_) => Err("a number"),
        DeValue::Datetime(_) => Err("a time"),
        DeValue::Table(_) => Err("a table"),
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
                (None, Key::User, 2),
                (None, Key::RedactNames, 3),
                (Some("work"), Key::Sign, 9)
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
            ("me = [1]", 1, "`me` is a list with something else"),
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
