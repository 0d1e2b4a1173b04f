//! The examples in the documents behave as their fences say.

use crate::case;
use crate::mutants::{ours, report_on};
use crosstalk_conform::{CaseQuestion, subset};

/// A fenced block whose info string begins with `crosstalk`.
struct Example {
    place: String,
    tag: Vec<String>,
    text: String,
}

fn examples_of(name: &str, document: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut open: Option<(usize, Example)> = None;
    for (index, line) in document.lines().enumerate() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match &mut open {
            Some((fence, _)) if ticks >= *fence && line.len() == ticks => {
                let (_, example) = open.take().unwrap();
                found.push(example);
            }
            Some((_, example)) => {
                example.text.push_str(line);
                example.text.push('\n');
            }
            None if ticks >= 3 => {
                let tag = line[ticks..].split_whitespace().map(str::to_owned);
                let example = Example {
                    place: format!("{name}:{}", index + 1),
                    tag: tag.collect(),
                    text: String::new(),
                };
                open = Some((ticks, example));
            }
            None => {}
        }
    }
    assert!(open.is_none(), "{name} has a fence that is not closed");
    found.retain(|e| e.tag.first().is_some_and(|t| t == "crosstalk"));
    found
}

fn fault(example: &Example) -> Option<String> {
    let tag: Vec<&str> = example.tag.iter().map(String::as_str).collect();
    let reading = if tag[1..] == ["paste"] {
        "paste"
    } else {
        "strict"
    };
    let report = report_on(&example.text, reading);
    let errors = report["errors"].as_array().unwrap();
    let envelopes = report["envelopes"].as_array().unwrap();
    let accepted = !envelopes.is_empty() && errors.is_empty();
    let good = match &tag[1..] {
        ["strict"] => accepted,
        ["paste"] => {
            let repaired = |e: &serde_json::Value| !e["repairs"].as_array().unwrap().is_empty();
            accepted && envelopes.iter().any(repaired)
        }
        ["reject", code, rule] => {
            envelopes.is_empty()
                && errors
                    .iter()
                    .any(|e| e["code"] == *code && e["rule"] == *rule && e["severity"] == "error")
        }
        _ => return Some("the tag is not one of those in spec/README.md".into()),
    };
    (!good).then(|| format!("came {report}"))
}

#[test]
fn every_example_behaves_as_tagged() {
    let mut files = vec![case::root().join("README.md")];
    let spec = std::fs::read_dir(case::root().join("spec")).unwrap();
    files.extend(spec.map(|entry| entry.unwrap().path()));
    files.retain(|path| path.extension().is_some_and(|e| e == "md") && path.is_file());
    files.sort();
    let mut examples = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        examples.extend(examples_of(&name, &std::fs::read_to_string(path).unwrap()));
    }
    assert!(
        examples.len() >= 30,
        "there are only {} examples",
        examples.len()
    );
    let mut red = 0;
    for example in &examples {
        if let Some(fault) = fault(example) {
            red += 1;
            println!(
                "--- {} `{}`\n{}{fault}\n",
                example.place,
                example.tag.join(" "),
                example.text
            );
        }
    }
    assert_eq!(
        red,
        0,
        "{red} of {} examples do not behave as tagged",
        examples.len()
    );
}

#[test]
fn a_wrong_tag_is_noticed() {
    let good =
        "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: CLOSE\nbody: |\nsig: none\n[[END]]\n";
    let check = |tag: &str, text: &str| {
        let document = format!("```crosstalk {tag}\n{text}```\n");
        fault(&examples_of("x.md", &document)[0])
    };
    assert_eq!(check("strict", good), None);
    assert_eq!(
        check("reject E-FORMAT ENV-025", &good.replace("user: u\n", "")),
        None
    );
    for (tag, text) in [
        ("strict", good.replace("v1", "v2")),
        ("paste", good.to_owned()),
        ("paste", good.replace("sig: none\n[[END]]", "")),
        ("reject E-FORMAT ENV-025", good.to_owned()),
        ("reject E-PERM ENV-025", good.replace("user: u\n", "")),
        ("reject E-FORMAT ENV-024", good.replace("user: u\n", "")),
        ("strikt", good.to_owned()),
    ] {
        assert!(check(tag, &text).is_some(), "{tag}: {text}");
    }
}

#[test]
fn the_report_of_the_start_page_is_right() {
    let path = case::root().join("spec/start.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples = examples_of("start.md", &document);
    let told = document.split("```json\n").nth(1).unwrap();
    let told = told.split("```").next().unwrap();
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    subset(&told, &report_on(&examples[0].text, "strict")).unwrap();
    let message = told["envelopes"][0].to_string();
    let written = ours(&CaseQuestion::new("build").with("input", message));
    assert_eq!(written["output"], examples[1].text);
}

#[test]
fn the_worked_poll_comes_out_as_it_is_told() {
    let path = case::root().join("spec/polls.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples = examples_of("polls.md", &document);
    let told = document
        .split("```text\n")
        .find(|t| t.starts_with("{\"outcome\""));
    let told = told.unwrap().split("```").next().unwrap();
    let told = serde_json::from_str(told).unwrap();
    let collation = |text: String| {
        let mut result = ours(&CaseQuestion::new("collate").with("input", text));
        result["collation"].take()
    };
    let texts = |places: &[usize]| -> String {
        let texts = places.iter().map(|n| examples[*n].text.as_str());
        texts.collect()
    };
    subset(&told, &collation(texts(&[2, 0, 1]))).unwrap();
    // A vote in prose may be unclear; then a person decides.
    let unclear =
        texts(&[0, 1, 2, 3]).replace("Monolith, because", "I would not take the monolith:");
    let came = collation(unclear);
    assert_eq!(came["tally"]["MICROSERVICES"], 1, "{came}");
}
