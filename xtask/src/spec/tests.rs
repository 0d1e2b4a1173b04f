//! Each check goes red for its own fault in an otherwise good tree.

use super::*;
use crate::scratch::Scratch;

const REGISTRY: &str = r#"
[[rule]]
id = "ENV-001"
name = "NOT_UTF8"
code = "E-FORMAT"
title = "UTF-8"
help = "save it as UTF-8"
[[rule]]
id = "ENV-002"
title = "Lines"
[[rule]]
id = "INT-001"
title = "Intents"
help = "use a core intent"
"#;

/// A small tree in which all is well.
fn good() -> Scratch {
    let tree = Scratch::new();
    tree.write("spec/registry/rules.toml", REGISTRY);
    tree.write("spec/envelope.md", "**ENV-001** A text is UTF-8.\n\n**ENV-002** Lines; see ENV-001 and [intents](intents.md).\n");
    tree.write("spec/intents.md", "- **INT-001** Intents.\n");
    tree.write(
        "conformance/envelope/a.case",
        b"rule: ENV-001\nreading: strict\n\n\xff\n",
    );
    tree.write(
        "conformance/envelope/b.case",
        "title: b\nrule: ENV-002\n\nx\n",
    );
    tree.write("conformance/envelope/c.case", "rule: ENV-002\n\nx\n");
    tree.write("conformance/intents/d.case", "rule: INT-001\n\nx\n");
    tree.write(
        "crates/a/src/lib.rs",
        "//! ENV-002\nfn f() { report(&rule::NOT_UTF8) }\n",
    );
    tree.write(
        registry::GENERATED,
        "pub const LINES: Rule = rule::LINES; // ENV-002\n",
    );
    tree
}

/// The only problem of the good tree once one file is different.
fn fault(path: &str, content: &str) -> String {
    let tree = good();
    tree.write(path, content);
    let report = check(tree.path()).unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    report.problems[0].clone()
}

#[test]
fn a_good_tree_passes_and_is_counted() {
    let report = check(good().path()).unwrap();
    assert_eq!(report.problems, [""; 0]);
    assert_eq!(report.rules, 3);
    let cases: Vec<_> = report.cases.iter().map(|(p, n)| (p.as_str(), *n)).collect();
    assert_eq!(cases, [("ENV", 3), ("INT", 1)]);
    assert!(task(good().path(), true).is_ok());
}

#[test]
fn a_rule_without_definition() {
    assert_eq!(
        fault("spec/intents.md", "INT-001 in passing\n"),
        "spec/registry/rules.toml: no file of spec/ defines **INT-001**"
    );
}

#[test]
fn a_rule_with_two_definitions() {
    assert_eq!(
        fault("spec/intents.md", "**INT-001** x\n**ENV-001** again\n"),
        "ENV-001 is defined more than once: spec/envelope.md:1, spec/intents.md:2"
    );
}

#[test]
fn a_definition_or_mention_that_the_registry_does_not_know() {
    for text in ["**INT-001**\n**INT-002** new", "**INT-001**\nsee INT-002"] {
        assert_eq!(
            fault("spec/intents.md", text),
            "spec/intents.md:2: INT-002 is not in spec/registry/rules.toml"
        );
    }
    assert!(fault("docs/page.md", "ENV-777").starts_with("docs/page.md:1: ENV-777"));
}

#[test]
fn a_definition_counts_only_in_spec() {
    let tree = good();
    tree.write("docs/page.md", "**ENV-001** is explained here");
    assert_eq!(check(tree.path()).unwrap().problems, [""; 0]);
}

#[test]
fn a_rule_without_case() {
    assert_eq!(
        fault(
            "conformance/intents/d.case",
            "rule: ENV-001\n\nrule: INT-001\n"
        ),
        "INT-001 has no conformance case with `rule: INT-001`"
    );
}

#[test]
fn a_rule_of_a_suite() {
    let rule = |suite: &str| {
        format!("{REGISTRY}[[rule]]\nid = \"HTP-001\"\nsuite = \"{suite}\"\ntitle = \"x\"\n")
    };
    let tree = good();
    tree.write("spec/http.md", "**HTP-001** x");
    tree.write("spec/registry/rules.toml", rule("relay"));
    let problems = |tree: &Scratch| check(tree.path()).unwrap().problems;
    let folder = "conformance/http";
    let missing = format!("HTP-001 has no case with `rule = \"HTP-001\"` in {folder}");
    assert_eq!(problems(&tree), std::slice::from_ref(&missing));
    tree.write(&format!("{folder}/a.toml"), "about = \"HTP-001\"\n");
    assert_eq!(problems(&tree), [missing]);
    tree.write(
        &format!("{folder}/a.toml"),
        "rule = \"HTP-001\"\n\n[[case]]\nrule = \"HTP-001\"\n",
    );
    let report = check(tree.path()).unwrap();
    assert_eq!(
        (report.problems.len(), report.cases.get("HTP")),
        (0, Some(&2))
    );
    tree.write("spec/registry/rules.toml", rule("other"));
    assert!(problems(&tree)[0].contains("names the suite `other`, which is unknown"));
}

#[test]
fn a_case_of_no_rule() {
    assert!(fault("conformance/e.case", "title: x\n\n").contains("no line `rule: ID`"));
    for rule in ["ENV-999", "ENV-001 and ENV-002", "XYZ-001"] {
        let found = fault("conformance/e.case", &format!("rule: {rule}\n\n"));
        assert_eq!(
            found,
            format!("conformance/e.case: the rule `{rule}` is not in {RULES}")
        );
    }
}

#[test]
fn an_id_in_code_that_does_not_exist() {
    for path in [
        "crates/a/tests/it/main.rs",
        "js/src/index.ts",
        "fuzz/fuzz_targets/x.rs",
        "bench/src/main.rs",
    ] {
        assert_eq!(
            fault(path, "// x\n// ENV-404\n"),
            format!("{path}:2: ENV-404 is not in {RULES}")
        );
    }
}

#[test]
fn a_dead_link() {
    assert_eq!(
        fault("README.md", "[x](docs/none.md)"),
        "README.md:1: the link `docs/none.md` leads nowhere"
    );
}

#[test]
fn a_rule_that_stands_twice_in_the_registry() {
    let twice = format!("{REGISTRY}[[rule]]\nid = \"INT-001\"\ntitle = \"x\"\n");
    assert_eq!(
        fault("spec/registry/rules.toml", &twice),
        format!("{RULES}: INT-001 is listed twice")
    );
}

#[test]
fn a_constant_that_no_code_refers_to() {
    let named = REGISTRY.replace("id = \"ENV-002\"", "id = \"ENV-002\"\nname = \"LINES\"");
    let problem = format!("{RULES}: no code refers to rule::LINES; remove the name of ENV-002");
    assert_eq!(fault("spec/registry/rules.toml", &named), problem);
    let tree = good();
    tree.write("spec/registry/rules.toml", &named);
    tree.write("crates/a/src/b.rs", "rule::LINES_TOO");
    assert_eq!(check(tree.path()).unwrap().problems, [problem]);
    tree.write("crates/a/src/b.rs", "registry::rule::LINES,");
    assert!(check(tree.path()).unwrap().problems.is_empty());
}

#[test]
fn rules_without_a_constant_are_listed_and_do_not_fail() {
    assert_eq!(check(good().path()).unwrap().unreported, ["INT-001"]);
}
