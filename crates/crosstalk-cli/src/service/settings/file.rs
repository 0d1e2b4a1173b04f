//! The text of the settings: TOML, with the line of each entry.

use super::relay::{self, RELAY, RelaySetting};
use super::setting::{Key, NAMES, PROFILE, SETTINGS, Setting, Value, nearest};
use crosstalk_protocol::Names;
use toml_edit::{Document, Item, TableLike};

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
    let document = Document::parse(text).map_err(|fault| {
        let at = fault.span().map_or(0, |span| span.start);
        Fault {
            line: line_of(text, at),
            message: format!("this is not TOML: {}", fault.message().trim_end()),
        }
    })?;
    let mut reader = FileTextReader {
        text,
        found: FileText::default(),
    };
    reader.table(document.as_table(), None, "")?;
    Ok(reader.found)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().filter(|b| **b == b'\n').count() + 1
}

struct FileTextReader<'t> {
    text: &'t str,
    found: FileText,
}

impl FileTextReader<'_> {
    fn line(&self, item: &Item) -> usize {
        line_of(self.text, item.span().map_or(0, |span| span.start))
    }

    /// The settings of a table; `prefix` stands before their names, such as `redact.`.
    fn table(
        &mut self,
        table: &dyn TableLike,
        profile: Option<&str>,
        prefix: &str,
    ) -> Result<(), Fault> {
        for (short, item) in table.iter() {
            let line = self.line(item);
            let name = format!("{prefix}{short}");
            let wrong = |message: String| Err(Fault { line, message });
            if name == RELAY {
                let text = self.text;
                let line = |span: Option<std::ops::Range<usize>>| {
                    line_of(text, span.map_or(0, |span| span.start))
                };
                let warnings = &mut self.found.warnings;
                let relays = relay::read(item, profile, &line, warnings)?;
                self.found.relays.extend(relays);
                continue;
            }
            let is_group = SETTINGS
                .iter()
                .any(|s| s.name.starts_with(&format!("{name}.")));
            if name == NAMES || is_group || (name == PROFILE && profile.is_none()) {
                let Some(inner) = item.as_table_like() else {
                    let message = if name == PROFILE {
                        format!(
                            "`{name}` has to be a table, as in [profile.work]; the profile to begin with is `default_profile`"
                        )
                    } else {
                        format!("`{name}` has to be a table, as in [{name}]")
                    };
                    return wrong(message);
                };
                match name.as_str() {
                    NAMES => self.names(inner, profile)?,
                    PROFILE => self.profiles(inner)?,
                    _ => self.table(inner, profile, &format!("{name}."))?,
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
            let value = match value(item) {
                Ok(value) => value,
                Err(kind) => {
                    let kinds = setting.kind;
                    return wrong(format!("`{name}` is {kind}, and has to be {kinds}"));
                }
            };
            if let Err(what) = setting.check(&value) {
                return wrong(format!("`{name}` {what}"));
            }
            self.found.values.push(Entry {
                profile: profile.map(str::to_owned),
                key: setting.key,
                value,
                line,
            });
        }
        Ok(())
    }

    fn profiles(&mut self, table: &dyn TableLike) -> Result<(), Fault> {
        for (name, item) in table.iter() {
            let line = self.line(item);
            let Some(inner) = item.as_table_like() else {
                let message = format!(
                    "`profile.{name}` has to be a table, as in [profile.{name}]; the profile to begin with is `default_profile`"
                );
                return Err(Fault { line, message });
            };
            self.found.profiles.push(name.to_owned());
            self.table(inner, Some(name), "")?;
        }
        Ok(())
    }

    fn names(&mut self, table: &dyn TableLike, profile: Option<&str>) -> Result<(), Fault> {
        let mut seen = Names::default();
        for (name, item) in table.iter() {
            let line = self.line(item);
            let wrong = |message: String| Err(Fault { line, message });
            let Some(address) = item.as_str() else {
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

/// The value of an item, or what it is instead.
fn value(item: &Item) -> Result<Value, &'static str> {
    if let Some(text) = item.as_str() {
        return Ok(Value::Text(text.to_owned()));
    }
    if let Some(on) = item.as_bool() {
        return Ok(Value::Switch(on));
    }
    let Some(list) = item.as_array() else {
        return Err(match item.type_name() {
            "integer" | "float" => "a number",
            "datetime" => "a time",
            _ => "a table",
        });
    };
    let texts = list.iter().map(|v| v.as_str().map(str::to_owned));
    let texts: Option<Vec<String>> = texts.collect();
    texts
        .map(Value::List)
        .ok_or("a list with something else than texts in it")
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
