//! Levels: which cases a program has to pass for what it claims. `conformance/levels.toml` is the data.

use crate::case::CaseFile;
use crosstalk_envelope::words;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

words! {
    /// A level of the specification; a program of one level also keeps the levels below it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SpecLevel {
        /// Strict reading and writing of envelopes.
        L0 = "L0",
        /// Envelopes as text, complete.
        L1 = "L1",
        /// Signatures, trust, consent and polls.
        L2 = "L2",
        /// The behaviour of relays, as far as it can be checked as text.
        L3 = "L3",
    }
}

impl SpecLevel {
    fn of_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

impl fmt::Display for SpecLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SpecLevel {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::parse(&word.to_ascii_uppercase())
            .ok_or_else(|| format!("`{word}` is not a level: L0, L1, L2 or L3"))
    }
}

/// The tables of `levels.toml`.
#[derive(Clone, Debug)]
pub struct Levels {
    rules: BTreeMap<String, SpecLevel>,
    ops: BTreeMap<String, SpecLevel>,
    readings: BTreeMap<String, SpecLevel>,
    optional: BTreeMap<String, String>,
}

impl Levels {
    /// Reads the tables.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tables: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        let table = |name: &str| {
            let table = tables.get(name).and_then(toml::Value::as_table);
            table.ok_or_else(|| format!("the table [{name}] is missing"))
        };
        let levels = |name: &str| {
            let level = |(key, value): (&String, &toml::Value)| {
                let level = value.as_integer().and_then(SpecLevel::of_number);
                let level = level.ok_or_else(|| format!("[{name}] {key}: not a level"))?;
                Ok((key.clone(), level))
            };
            table(name)?
                .iter()
                .map(level)
                .collect::<Result<_, String>>()
        };
        let area = |(area, about): (&String, &toml::Value)| {
            let about = about.as_str().unwrap_or_default();
            (area.clone(), about.to_owned())
        };
        Ok(Self {
            rules: levels("rules")?,
            ops: levels("ops")?,
            readings: levels("readings")?,
            optional: table("optional")?.iter().map(area).collect(),
        })
    }

    /// The level of a rule: that of its id, else that of its area.
    pub fn of_rule(&self, id: &str) -> Option<SpecLevel> {
        let of_area = || self.rules.get(rule_area(id));
        self.rules.get(id).or_else(of_area).copied()
    }

    /// The level of a case: the highest of what it needs.
    pub fn of_case(&self, case: &CaseFile) -> Option<SpecLevel> {
        let mut level = self.of_rule(case.rule())?.max(*self.ops.get(case.op())?);
        if case.has("reading") {
            level = level.max(*self.readings.get(case.get("reading"))?);
        }
        for word in case.words("reports").chain(case.words("silent")) {
            let id = word.split_once('/').map_or(word, |(id, _)| id);
            level = level.max(self.of_rule(id)?);
        }
        Some(level)
    }

    /// The optional area that a rule belongs to, if any: `redaction of personal data`.
    pub fn optional(&self, rule: &str) -> Option<&str> {
        self.optional.get(rule_area(rule)).map(String::as_str)
    }

    /// The areas and ids of rules that have a level.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.keys().map(String::as_str)
    }

    /// The ops that have a level.
    pub fn ops(&self) -> impl Iterator<Item = &str> {
        self.ops.keys().map(String::as_str)
    }

    /// The areas that a program may leave out.
    pub fn optional_areas(&self) -> impl Iterator<Item = &str> {
        self.optional.keys().map(String::as_str)
    }
}

/// `ENV` of `ENV-022`.
fn rule_area(id: &str) -> &str {
    id.split_once('-').map_or(id, |(area, _)| area)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "[rules]\nENV = 0\nENV-028 = 1\nRED = 1\n[ops]\nparse = 0\nid = 2\n\
                          [readings]\nstrict = 0\npaste = 1\n[optional]\nRED = \"redaction\"\n";

    fn level(head: &str) -> Option<SpecLevel> {
        let file = format!("about: x\n{head}\n=== input\nx\n");
        let case = CaseFile::parse("a/b", file.as_bytes()).unwrap();
        Levels::parse(TABLES).unwrap().of_case(&case)
    }

    #[test]
    fn the_highest_need_is_the_level_of_a_case() {
        let strict = "op: parse\nexpect: accept\nreading: strict";
        for (head, wanted) in [
            (format!("rule: ENV-001\n{strict}"), Some(SpecLevel::L0)),
            (format!("rule: ENV-028\n{strict}"), Some(SpecLevel::L1)),
            (
                format!("rule: ENV-001\n{strict}\nreports: ENV-002 ENV-028/error"),
                Some(SpecLevel::L1),
            ),
            (
                format!("rule: ENV-001\n{strict}\nsilent: ENV-028"),
                Some(SpecLevel::L1),
            ),
            (format!("rule: XYZ-001\n{strict}"), None),
            (
                "rule: ENV-001\nop: id\nform: ulid".into(),
                Some(SpecLevel::L2),
            ),
            (
                "rule: ENV-001\nop: parse\nexpect: accept\nreading: paste".into(),
                Some(SpecLevel::L1),
            ),
        ] {
            assert_eq!(level(&head), wanted, "{head}");
        }
    }

    #[test]
    fn optional_areas_are_known_by_their_rules() {
        let levels = Levels::parse(TABLES).unwrap();
        assert_eq!(levels.optional("RED-004"), Some("redaction"));
        assert_eq!(levels.optional("ENV-004"), None);
    }

    #[test]
    fn broken_tables_are_reported() {
        for (from, to) in [
            ("[ops]", "[op]"),
            ("ENV = 0", "ENV = 4"),
            ("RED = 1", "RED = "),
        ] {
            assert!(Levels::parse(&TABLES.replace(from, to)).is_err(), "{to}");
        }
        assert_eq!("l1".parse(), Ok(SpecLevel::L1));
        assert!("L9".parse::<SpecLevel>().is_err());
    }
}
