//! `conformance/levels.toml` gives every case one level, and a program that knows no higher rule passes a level.

use crate::case::{self, Case};
use crate::conformance::failures;
use crate::mutants::Mutant;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use toml::Table;

/// The tables of `levels.toml`.
struct Levels(Table);

impl Levels {
    fn read() -> Self {
        let path = case::root().join("conformance/levels.toml");
        Self(read_to_string(path).unwrap().parse().unwrap())
    }

    fn table(&self, name: &str) -> &Table {
        self.0[name].as_table().unwrap()
    }

    fn number(&self, table: &str, key: &str) -> Option<i64> {
        self.table(table).get(key)?.as_integer()
    }

    fn of_rule(&self, id: &str) -> Option<i64> {
        let of_area = || self.number("rules", id.get(..3)?);
        self.number("rules", id).or_else(of_area)
    }

    /// The level of a case: the highest of all that it needs.
    fn of_case(&self, case: &Case) -> Option<i64> {
        let told = ["reports", "silent"].into_iter();
        let told = told.flat_map(|key| case.words(key));
        let ids = told.map(|word| word.split_once('/').map_or(word, |(id, _)| id));
        let mut level = self
            .of_rule(case.rule())?
            .max(self.number("ops", case.op())?);
        if case.has("reading") {
            level = level.max(self.number("readings", case.get("reading"))?);
        }
        for id in ids {
            level = level.max(self.of_rule(id)?);
        }
        Some(level)
    }
}

/// The ids of the registry, and whether the cases of each are in `conformance/`.
fn registry() -> BTreeMap<String, bool> {
    let path = case::root().join("spec/registry/rules.toml");
    let registry: Table = read_to_string(path).unwrap().parse().unwrap();
    let rules = registry["rule"].as_array().unwrap().iter();
    let entry = |rule: &toml::Value| {
        (
            rule["id"].as_str().unwrap().to_owned(),
            rule.get("suite").is_none(),
        )
    };
    rules.map(entry).collect()
}

#[test]
fn every_case_has_one_level() {
    let levels = Levels::read();
    let declared = levels.0["level"].as_array().unwrap().iter();
    let declared: Vec<_> = declared
        .map(|l| l["number"].as_integer().unwrap())
        .collect();
    assert_eq!(declared, [0, 1, 2, 3]);
    let mut counts = BTreeMap::new();
    for case in case::all() {
        let level = levels.of_case(&case);
        let level = level.unwrap_or_else(|| panic!("conformance/{} has no level", case.name));
        assert!(
            declared.contains(&level),
            "conformance/{}: level {level}",
            case.name
        );
        *counts.entry(level).or_insert(0) += 1;
    }
    println!("cases by level: {counts:?}");
    assert!(counts[&0] >= 400, "{counts:?}");
}

#[test]
fn the_tables_name_what_exists() {
    let levels = Levels::read();
    let ids = registry();
    let areas: BTreeSet<&str> = ids.keys().map(|id| &id[..3]).collect();
    for area in &areas {
        assert!(
            levels.number("rules", area).is_some(),
            "{area} has no level"
        );
    }
    for name in levels.table("rules").keys() {
        assert!(
            areas.contains(name.as_str()) || ids.contains_key(name),
            "{name}"
        );
    }
    for name in levels.table("optional").keys() {
        assert!(areas.contains(name.as_str()), "{name}");
    }
    let ops: BTreeSet<&str> = case::ops().collect();
    let named: BTreeSet<&str> = levels.table("ops").keys().map(String::as_str).collect();
    assert_eq!(named, ops);
    let readings: Vec<&str> = levels
        .table("readings")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(readings, ["paste", "strict"]);
}

/// Otherwise the level of the rule would promise less than its cases ask for.
#[test]
fn every_rule_has_a_case_of_its_own_level() {
    let levels = Levels::read();
    let cases = case::all();
    let covered: BTreeSet<(&str, Option<i64>)> = cases
        .iter()
        .map(|case| (case.rule(), levels.of_case(case)))
        .collect();
    let lacks = |id: &str| !covered.contains(&(id, levels.of_rule(id)));
    let ids = registry();
    let missing = ids.iter().filter(|(id, here)| **here && lacks(id));
    let missing: Vec<_> = missing.map(|(id, _)| id).collect();
    assert!(missing.is_empty(), "no case of its own level: {missing:?}");
}

/// Forgets what a report says about the rules above L0.
fn minimal(_: &str, mut report: Value) -> Value {
    let levels = Levels::read();
    let known = |f: &Value| levels.of_rule(f["rule"].as_str().unwrap()) == Some(0);
    let forget = |list: &mut Value| list.as_array_mut().unwrap().retain(known);
    let envelopes = report["envelopes"].as_array_mut().unwrap();
    envelopes
        .iter_mut()
        .for_each(|e| forget(&mut e["diagnostics"]));
    forget(&mut report["errors"]);
    report
}

#[test]
fn the_rules_of_l0_suffice_for_l0() {
    let levels = Levels::read();
    let mut cases = case::all();
    cases.retain(|case| levels.of_case(case) == Some(0));
    let tested = Mutant::reporting("knows the rules of L0 alone", minimal);
    let failed: Vec<_> = failures(&cases, &tested)
        .into_iter()
        .map(|(case, fault)| format!("{}: {fault}", case.name))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
