//! `conformance/levels.toml` gives every case one level, and a program that knows no higher rule passes a level.

use crate::case;
use crate::conformance::failures;
use crate::mutants::Mutant;
use crosstalk_conform::{Levels, SpecLevel, ops};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use toml::Table;

fn levels() -> Levels {
    let path = case::root().join("conformance/levels.toml");
    Levels::parse(&read_to_string(path).unwrap()).unwrap()
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
    let levels = levels();
    let mut counts = BTreeMap::new();
    for case in case::all() {
        let level = levels.of_case(&case);
        let level = level.unwrap_or_else(|| panic!("conformance/{}.case has no level", case.id()));
        *counts.entry(level).or_insert(0) += 1;
    }
    println!("cases by level: {counts:?}");
    assert!(counts[&SpecLevel::L0] >= 400, "{counts:?}");
}

/// The list of levels, which is for people, names those that the program knows.
#[test]
fn the_levels_are_declared() {
    let path = case::root().join("conformance/levels.toml");
    let tables: Table = read_to_string(path).unwrap().parse().unwrap();
    let declared: Vec<_> = tables["level"].as_array().unwrap().iter().collect();
    let numbers = declared.iter().map(|l| l["number"].as_integer().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3]);
    let names = declared.iter().map(|l| l["name"].as_str().unwrap());
    assert!(names.eq(SpecLevel::ALL.map(SpecLevel::as_str)));
}

#[test]
fn the_tables_name_what_exists() {
    let levels = levels();
    let ids = registry();
    let areas: BTreeSet<&str> = ids.keys().map(|id| &id[..3]).collect();
    for area in &areas {
        assert!(levels.of_rule(area).is_some(), "{area} has no level");
    }
    for name in levels.rules() {
        assert!(areas.contains(name) || ids.contains_key(name), "{name}");
    }
    for name in levels.optional_areas() {
        assert!(areas.contains(name), "{name}");
    }
    let named: BTreeSet<&str> = levels.ops().collect();
    assert_eq!(named, ops().collect());
}

/// Otherwise the level of the rule would promise less than its cases ask for.
#[test]
fn every_rule_has_a_case_of_its_own_level() {
    let levels = levels();
    let cases = case::all();
    let covered: BTreeSet<(&str, Option<SpecLevel>)> = cases
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
    let levels = levels();
    let known = |f: &Value| levels.of_rule(f["rule"].as_str().unwrap()) == Some(SpecLevel::L0);
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
    let levels = levels();
    let mut cases = case::all();
    cases.retain(|case| levels.of_case(case) == Some(SpecLevel::L0));
    let tested = Mutant::reporting("knows the rules of L0 alone", minimal);
    let failed: Vec<_> = failures(&cases, &tested)
        .into_iter()
        .map(|(case, fault)| format!("{}: {fault}", case.id()))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
