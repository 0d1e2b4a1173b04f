//! The table of settings, which reading, showing and changing them use.

use crosstalk_envelope::{Builder, is_key_id};
use crosstalk_protocol::dns::host_fault;
use crosstalk_protocol::edit_distance;
use crosstalk_protocol::relay::Pattern;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

pub(crate) struct Setting {
    pub(crate) key: SettingKey,
    /// As it is written in the file and on the command line.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default, if it is the same everywhere.
    default: Fixed,
    /// What it is for, in a line.
    pub(crate) about: &'static str,
}

/// The kind of values.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// One line that passes a check.
    Text(CheckValue),
    /// Several of them.
    List(CheckValue),
    /// True or false.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True, false, or this word.
    SwitchOr(&'static str),
}

type CheckValue = fn(&str) -> Result<(), String>;

#[derive(Clone, Copy)]
enum Fixed {
    None,
    Empty,
    Switch(bool),
    Word(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
    Switch(bool),
}

/// Defines the settings: the key in the source and in the file, the kind, the default, and a line for people.
macro_rules! settings {
    ($($key:ident $name:literal: $kind:ident$(($check:expr))?, $default:ident$(($value:expr))?, $about:literal;)+) => {
        /// A setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(
            clippy::enum_variant_names,
            reason = "the settings are named as in the file, and two are about keys to sign with"
        )]
        pub(crate) enum SettingKey {
            $($key),+
        }

        /// Every setting, in the order in which they are shown.
        pub(crate) const SETTINGS: &[Setting] = &[
            $(Setting {
                key: SettingKey::$key,
                name: $name,
                kind: Kind::$kind$(($check))?,
                default: Fixed::$default$(($value))?,
                about: $about,
            }),+
        ];
    };
}

settings! {
    DefaultProfile "default_profile": Text(one_line), None,
        "the profile to use if none is chosen";
    User "user": Text(one_line), None,
        "the person in whose name you write";
    Sender "sender": Text(direction), None,
        "your name or address in the first line of a message";
    Me "me": List(one_line), Empty,
        "further names and addresses that are yours";
    Context "context": Text(one_line), None,
        "the context of new threads; else the first words of the text";
    Sign "sign": Switch, Switch(false),
        "sign the messages that you send";
    Key "key": Text(key_id), None,
        "the id of the key to sign with";
    WithKey "with_key": SwitchOr("first"), Word("first"),
        "put your public key into signed messages; first: into the first one of a thread";
    Fence "fence": Switch, Switch(false),
        "write messages in a code block, for chats that collapse line breaks";
    Primer "primer": SwitchOr("first"), Word("first"),
        "copy the text of `crosstalk prompt` too; first: with the first message of a thread, until the chat has answered with an envelope";
    Clipboard "clipboard": Word(&["auto", "system", "terminal", "none"]), Word("auto"),
        "which clipboard to use";
    Editor "editor": Text(one_line), None,
        "the program to write with, and its arguments";
    Ids "ids": Word(&["ulid", "uuid"]), Word("ulid"),
        "the form of new ids";
    Pin "pin": Switch, Switch(true),
        "remember the key of a sender at first contact, when you paste";
    Domain "domain": Text(host), None,
        "the domain that lists the addresses of simple names";
    Dns "dns": Switch, Switch(false),
        "ask the DNS for addresses without --dns";
    RedactNames "redact.names": List(one_line), Empty,
        "names that `redact` replaces";
    ConsentSigned "consent.signed": List(one_line), Empty,
        "scopes whose consent has to be signed with a trusted key; * is every sensitive one";
    ConsentAuthorities "consent.authorities": List(pattern), Empty,
        "who may revoke the consents of others: addresses, or patterns with a * at the end";
}

/// The table of names, and what its entries are called on the command line.
pub(crate) const NAMES: &str = "names";
pub(crate) const PROFILE: &str = "profile";

impl Setting {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|s| s.name == name)
    }

    pub(crate) fn variable(&self) -> String {
        match self.key {
            SettingKey::DefaultProfile => "CROSSTALK_PROFILE".to_owned(),
            _ => format!(
                "CROSSTALK_{}",
                self.name.to_ascii_uppercase().replace('.', "_")
            ),
        }
    }

    /// Whether a profile may set it.
    pub(crate) fn is_of_profiles(&self) -> bool {
        self.key != SettingKey::DefaultProfile
    }

    /// The default value; nothing if it depends on the machine.
    pub(crate) fn default(&self) -> Option<Value> {
        match self.default {
            Fixed::None => None,
            Fixed::Empty => Some(Value::List(Vec::new())),
            Fixed::Switch(on) => Some(Value::Switch(on)),
            Fixed::Word(word) => Some(Value::Text(word.to_owned())),
        }
    }

    /// Reads the value of a variable or an argument. Lists are separated by commas.
    pub(crate) fn parse(&self, text: &str) -> Result<Value, String> {
        let value = match self.kind {
            Kind::Text(_) | Kind::Word(_) => Value::Text(text.to_owned()),
            Kind::List(_) => Value::List(items(text)),
            Kind::Switch | Kind::SwitchOr(_) => match switch(text) {
                Some(on) => Value::Switch(on),
                None => Value::Text(text.to_owned()),
            },
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Whether a value may be the value of this setting; else what is wrong.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let fault = |what: String| Err(format!("{what}, and has to be {}", self.kind));
        match (self.kind, value) {
            (Kind::Text(check), Value::Text(text)) => check(text),
            (Kind::List(check), Value::List(list)) => list.iter().try_for_each(|item| check(item)),
            (Kind::Switch | Kind::SwitchOr(_), Value::Switch(_)) => Ok(()),
            (Kind::Word(words), Value::Text(text)) if words.contains(&text.as_str()) => Ok(()),
            (Kind::SwitchOr(word), Value::Text(text)) if text == word => Ok(()),
            (_, Value::Text(text)) => fault(format!("is `{text}`")),
            (_, Value::List(_)) => fault("is a list".to_owned()),
            (_, Value::Switch(on)) => fault(format!("is {on}")),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("a text"),
            Self::List(_) => f.write_str("a list of texts"),
            Self::Switch => f.write_str("true or false"),
            Self::Word(words) => f.write_str(&words.join(", ")),
            Self::SwitchOr(word) => write!(f, "true, false or {word}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(list) => f.write_str(&list.join(", ")),
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

fn items(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim).filter(|i| !i.is_empty());
    items.map(str::to_owned).collect()
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn one_line(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        Err("is empty: leave it out, or give a text".to_owned())
    } else if text.chars().any(char::is_control) {
        Err("has a line end or another control character in it: give one line".to_owned())
    } else {
        Ok(())
    }
}

/// Checks a name for the direction line with the grammar itself.
pub(crate) fn direction(text: &str) -> Result<(), String> {
    one_line(text)?;
    let tried = Builder::new(text, "X")
        .user("x")
        .session("x")
        .context("x")
        .intent("REQUEST")
        .build();
    match tried {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "is `{text}`, which can't be written in the first line of a message: give a name or an address without arrows \
             and brackets"
        )),
    }
}

fn key_id(text: &str) -> Result<(), String> {
    match is_key_id(text) {
        true => Ok(()),
        false => Err(format!(
            "is `{text}`, which is no key id: `crosstalk key list` shows yours"
        )),
    }
}

fn pattern(text: &str) -> Result<(), String> {
    match Pattern::parse(text) {
        Ok(_) => Ok(()),
        Err(fault) => Err(format!("is `{text}`, which is no pattern: {fault}")),
    }
}

fn host(text: &str) -> Result<(), String> {
    match host_fault(text.strip_suffix('.').unwrap_or(text)) {
        Some(fault) => Err(format!("is `{text}`, which is no domain: {fault}")),
        None => Ok(()),
    }
}

pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    known
        .map(|k| (edit_distance(&name, k), k))
        .min()
        .filter(|(d, k)| *d <= k.len().max(name.len()) / 3)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Value, String> {
        Setting::find(name).unwrap().parse(text)
    }

    #[test]
    fn names_are_written_once_and_defaults_pass_their_own_check() {
        for (index, setting) in SETTINGS.iter().enumerate() {
            assert!(SETTINGS[..index].iter().all(|s| s.name != setting.name
                && s.key != setting.key
                && s.variable() != setting.variable()));
            assert!(!setting.about.is_empty());
            // What a program is told about a message must not set anything.
            let variable = setting.variable();
            assert!(!variable.starts_with(crosstalk_protocol::MESSAGE_VARIABLE_PREFIX));
            if let Some(value) = setting.default() {
                assert_eq!(setting.check(&value), Ok(()), "{}", setting.name);
            }
        }
        assert_eq!(
            Setting::find("redact.names").unwrap().variable(),
            "CROSSTALK_REDACT_NAMES"
        );
    }

    #[test]
    fn texts_are_read_by_kind() {
        for (name, text, value) in [
            ("sign", "Yes", Value::Switch(true)),
            ("sign", "0", Value::Switch(false)),
            ("with_key", "off", Value::Switch(false)),
            ("with_key", "first", Value::Text("first".into())),
            ("ids", "uuid", Value::Text("uuid".into())),
            ("user", "Kalle S", Value::Text("Kalle S".into())),
            ("sender", "BROTHER AI", Value::Text("BROTHER AI".into())),
            (
                "me",
                " A, b ,,c",
                Value::List(vec!["A".into(), "b".into(), "c".into()]),
            ),
            ("me", "", Value::List(Vec::new())),
        ] {
            assert_eq!(parse(name, text), Ok(value), "{name} {text}");
        }
        for (name, text, fault) in [
            ("sign", "maybe", "is `maybe`, and has to be true or false"),
            (
                "with_key",
                "last",
                "is `last`, and has to be true, false or first",
            ),
            ("clipboard", "x11", "has to be auto, system, terminal, none"),
            ("user", " ", "is empty"),
            ("user", "a\nb", "line end"),
            ("sender", "A→B", "first line"),
            ("sender", "x ]]", "first line"),
            ("key", "a b", "is no key id"),
            ("domain", "exa mple", "is no domain"),
        ] {
            let said = parse(name, text).unwrap_err();
            assert!(said.contains(fault), "{name} {text}: {said}");
        }
    }

    #[test]
    fn only_near_settings_are_suggested() {
        let known = || SETTINGS.iter().map(|s| s.name);
        for (name, near) in [
            ("usr", Some("user")),
            ("uesr", Some("user")),
            ("Sender", Some("sender")),
            ("with-key", Some("with_key")),
            ("clipbord", Some("clipboard")),
            ("banana", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known()), near, "{name}");
        }
    }
}
