//! `cargo xtask spec`: the rules of `spec/`, their registry, their cases and the code agree.

mod case;
mod id;
mod link;

use crate::ending::{Ending, Failure};
use crate::registry::{self, Rule};
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// Where the rules are listed.
const RULES: &str = "spec/registry/rules.toml";

/// Where ids are looked for in code, and in which files. Documents are read wherever they stand.
const SOURCES: &[(&str, &[&str])] = &[
    ("crates", &["rs"]),
    ("conformance/runner", &["rs"]),
    ("conformance/http", &["toml"]),
    ("js", &["rs", "js", "mjs", "ts", "json", "html", "toml"]),
    ("fuzz", &["rs", "toml"]),
    ("bench", &["rs", "toml"]),
];

/// Suites with several cases in a file, and where these stand: each case names its rule as `rule = "ID"`.
const SUITES: &[(&str, &str)] = &[
    ("relay", "conformance/http"),
    ("email", "conformance/email"),
    ("tool", "conformance/tool"),
];

/// The results of the checks.
#[derive(Default)]
struct Report {
    problems: Vec<String>,
    rules: usize,
    /// The number of cases by the prefix of their rule.
    cases: BTreeMap<String, usize>,
    /// Rules that a diagnostic could carry, without a constant.
    unreported: Vec<String>,
}

/// `cargo xtask spec`.
pub fn task(root: &Path, verbose: bool) -> Result<Ending, Failure> {
    let report = check(root)?;
    for (prefix, number) in &report.cases {
        println!("{prefix} {number:>5} cases");
    }
    let cases: usize = report.cases.values().sum();
    if verbose {
        println!("rules with a code or a help text, and without a constant:");
        for line in &report.unreported {
            println!("  {line}");
        }
        println!("  {} in all", report.unreported.len());
    }
    if report.problems.is_empty() {
        return Ok(Ending::Done(format!(
            "{} rules, {cases} cases",
            report.rules
        )));
    }
    let count = report.problems.len();
    Err(Failure::new(
        format!("{}\n{count} problems", report.problems.join("\n")),
        "cargo xtask spec",
    ))
}

fn check(root: &Path) -> io::Result<Report> {
    let rules = registry::rules(root)?;
    let mut report = Report {
        rules: rules.len(),
        ..Report::default()
    };
    let known: BTreeSet<&str> = rules.iter().map(|r| r.id.as_str()).collect();
    let prefixes: BTreeSet<&str> = known.iter().map(|id| id::prefix(id)).collect();
    let prefixes: Vec<&str> = prefixes.into_iter().collect();
    unique(&rules, &mut report);
    let defined = documents(root, &known, &prefixes, &mut report)?;
    sources(root, &known, &prefixes, &mut report)?;
    let covered = cases(root, &known, &mut report)?;
    suites(root, &rules, &mut report)?;
    for rule in &rules {
        let id = &rule.id;
        match defined.get(id).map(Vec::as_slice) {
            None => report
                .problems
                .push(format!("{RULES}: no file of spec/ defines **{id}**")),
            Some([_]) => {}
            Some(places) => report.problems.push(format!(
                "{id} is defined more than once: {}",
                places.join(", ")
            )),
        }
        if rule.suite.is_none() && !covered.contains(id) {
            report
                .problems
                .push(format!("{id} has no conformance case with `rule: {id}`"));
        }
    }
    constants(root, &rules, &mut report)?;
    Ok(report)
}

fn unique(rules: &[Rule], report: &mut Report) {
    let mut seen = BTreeSet::new();
    for rule in rules {
        for name in [Some(&rule.id), rule.name.as_ref()].into_iter().flatten() {
            if !seen.insert(name) {
                report
                    .problems
                    .push(format!("{RULES}: {name} is listed twice"));
            }
        }
    }
}

/// Reads every Markdown file: where each id is defined; unknown ids and dead links are problems.
fn documents(
    root: &Path,
    known: &BTreeSet<&str>,
    prefixes: &[&str],
    report: &mut Report,
) -> io::Result<BTreeMap<String, Vec<String>>> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in tree::files(root)? {
        if !tree::has_extension(&path, &["md"]) {
            continue;
        }
        let text = tree::text(&path)?;
        let shown = tree::shown(root, &path);
        let normative = path.starts_with(root.join("spec"));
        for mention in id::mentions(&text, prefixes) {
            let place = format!("{shown}:{}", mention.line);
            if !known.contains(mention.id) {
                report
                    .problems
                    .push(format!("{place}: {} is not in {RULES}", mention.id));
            } else if normative && mention.bold {
                defined
                    .entry(mention.id.to_owned())
                    .or_default()
                    .push(place);
            }
        }
        for (line, problem) in link::problems(root, &path, &text) {
            report.problems.push(format!("{shown}:{line}: {problem}"));
        }
    }
    Ok(defined)
}

/// Reads the code: an id that is not in the registry is a problem.
fn sources(
    root: &Path,
    known: &BTreeSet<&str>,
    prefixes: &[&str],
    report: &mut Report,
) -> io::Result<()> {
    for (folder, extensions) in SOURCES {
        for path in tree::files(&root.join(folder))? {
            if !tree::has_extension(&path, extensions) {
                continue;
            }
            for mention in id::mentions(&tree::text(&path)?, prefixes) {
                if !known.contains(mention.id) {
                    let shown = tree::shown(root, &path);
                    report.problems.push(format!(
                        "{shown}:{}: {} is not in {RULES}",
                        mention.line, mention.id
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Reads the conformance cases: the rules that have one.
fn cases(root: &Path, known: &BTreeSet<&str>, report: &mut Report) -> io::Result<BTreeSet<String>> {
    let mut covered = BTreeSet::new();
    for path in tree::files(&root.join("conformance"))? {
        if !tree::has_extension(&path, &["case"]) {
            continue;
        }
        let shown = tree::shown(root, &path);
        match case::rule(&fs::read(&path)?) {
            Ok(rule) if known.contains(rule.as_str()) => {
                *report
                    .cases
                    .entry(id::prefix(&rule).to_owned())
                    .or_default() += 1;
                covered.insert(rule);
            }
            Ok(rule) => report
                .problems
                .push(format!("{shown}: the rule `{rule}` is not in {RULES}")),
            Err(problem) => report.problems.push(format!("{shown}: {problem}")),
        }
    }
    Ok(covered)
}

/// Reads the suites with several cases in a file: a rule of one has a case there.
fn suites(root: &Path, rules: &[Rule], report: &mut Report) -> io::Result<()> {
    for rule in rules {
        let Some(suite) = &rule.suite else { continue };
        let id = &rule.id;
        let Some((_, folder)) = SUITES.iter().find(|(name, _)| name == suite) else {
            report.problems.push(format!(
                "{RULES}: {id} names the suite `{suite}`, which is unknown"
            ));
            continue;
        };
        let line = format!("rule = \"{id}\"");
        let mut number = 0;
        for path in tree::files(&root.join(folder))? {
            let text = tree::text(&path)?;
            number += text.lines().filter(|l| *l == line).count();
        }
        if number == 0 {
            report
                .problems
                .push(format!("{id} has no case with `{line}` in {folder}"));
        }
        *report.cases.entry(id::prefix(id).to_owned()).or_default() += number;
    }
    Ok(())
}

/// Finds constants that no hand-written code refers to, and lists the rules without one that a diagnostic could carry.
fn constants(root: &Path, rules: &[Rule], report: &mut Report) -> io::Result<()> {
    let mut used = BTreeSet::new();
    for folder in ["crates", "conformance", "fuzz"] {
        for path in tree::files(&root.join(folder))? {
            if !tree::has_extension(&path, &["rs"]) || path == root.join(registry::GENERATED) {
                continue;
            }
            for rest in tree::text(&path)?.split("rule::").skip(1) {
                let name: String = rest.chars().take_while(|c| id::is_word(*c)).collect();
                used.insert(name);
            }
        }
    }
    for rule in rules {
        match &rule.name {
            Some(name) if !used.contains(name) => report.problems.push(format!(
                "{RULES}: no code refers to rule::{name}; remove the name of {}",
                rule.id
            )),
            None if rule.code.is_some() || rule.help.is_some() => {
                report.unreported.push(rule.id.clone());
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
