//! Broken implementations: wrappers that change what goes in or what comes out. The suite has to notice each one.

mod lenient;
mod redact;
mod trust;

use crate::case;
use crate::conformance::{failures, fault};
use crosstalk_conform::{CaseFailure, CaseFile, CaseQuestion, Implementation};
use crosstalk_conformance::Ours;
use crosstalk_testing::tier;
use serde_json::{Value, json};
use sha2::Digest as _;
use unicode_normalization::UnicodeNormalization as _;

/// Our implementation with one defect.
#[derive(Clone, Copy)]
pub(crate) struct Mutant {
    name: &'static str,
    /// Changes a text before it is read.
    text: fn(&str) -> String,
    /// Which reading is used for the one that was asked for.
    reading: fn(&str) -> &str,
    /// Changes a report on a text.
    report: fn(&str, Value) -> Value,
    /// Changes the canonical form of a text.
    canonical: fn(&str, String) -> String,
    /// Changes the output for a text.
    written: fn(&str, String) -> String,
    /// Changes every other answer.
    answer: fn(Value) -> Value,
    /// The answer to questions about one op.
    instead: (&'static str, fn(&CaseQuestion) -> Value),
}

const UNBROKEN: Mutant = Mutant {
    name: "unbroken",
    text: str::to_owned,
    reading: |reading| reading,
    report: |_, report| report,
    canonical: |_, form| form,
    written: |_, text| text,
    answer: |answer| answer,
    instead: ("", ours),
};

/// The answer of our own implementation.
pub(crate) fn ours(question: &CaseQuestion) -> Value {
    Ours.answer(question).unwrap()
}

/// The report of our own implementation on a text.
pub(crate) fn report_on(text: &str, reading: &str) -> Value {
    let question = CaseQuestion::new("parse").with("input", text);
    ours(&question.with("reading", reading))
}

/// The text that a question is about.
fn input(question: &CaseQuestion) -> String {
    String::from_utf8_lossy(&question.bytes("input").unwrap_or_default()).into_owned()
}

/// Ops whose text a mutant changes before it is read.
const READING_OPS: &[&str] = &[
    "parse",
    "canonical",
    "fmt",
    "diagnose",
    "integrity",
    "migrate",
    "edit",
    "reply",
    "exit",
    "collate",
    "hop",
];

impl Mutant {
    /// Our implementation with another report.
    pub(crate) const fn reporting(name: &'static str, report: fn(&str, Value) -> Value) -> Self {
        Self {
            name,
            report,
            ..UNBROKEN
        }
    }

    fn changed(&self, question: &CaseQuestion) -> CaseQuestion {
        let mut changed = question.clone();
        if READING_OPS.contains(&question.op())
            && let Some(text) = question.get("input")
        {
            changed = changed.with("input", (self.text)(text));
        }
        if let Some(reading) = question.get("reading") {
            changed = changed.with("reading", (self.reading)(reading));
        }
        changed
    }

    /// Whether it accepts what others reject: one that believes everything says so in its answer to the word.
    fn believes(&self, word: &str) -> bool {
        (self.answer)(json!(word)) != json!(word)
    }
}

impl Implementation for Mutant {
    fn answer(&self, question: &CaseQuestion) -> Result<Value, CaseFailure> {
        let (op, text) = (question.op(), input(question));
        let asked = self.changed(question);
        let mut result = match self.instead {
            (other, answer) if op == other => answer(&asked),
            _ => Ours.answer(&asked)?,
        };
        let rejected = result.get("errors").cloned().filter(|_| op != "parse");
        match (op, rejected) {
            ("consent", Some(errors)) if self.believes("consent") => return Ok(errors),
            ("check-hop", Some(errors)) if self.believes("believe") => return Ok(errors),
            (_, Some(_)) => return Ok(result),
            ("audit", _) if result["holds"] == false => {
                result["holds"] = self.believes("believe").into();
                return Ok(result);
            }
            _ => {}
        }
        // Results with one part of interest, which is changed alone.
        let part = match op {
            "ids" => "ids",
            "integrity" => "fields",
            "taxonomy" => "codes",
            "collate" => "collation",
            "audit" => "found",
            _ => "",
        };
        let output = result["output"].as_str().map(str::to_owned);
        match op {
            "parse" => return Ok((self.report)(&text, result)),
            "canonical" => result["output"] = (self.canonical)(&text, output.unwrap()).into(),
            "fmt" | "build" | "migrate" | "edit" | "reply" | "collate" | "hop" => {
                result["output"] = (self.written)(&text, output.unwrap()).into();
            }
            "address" | "resolve" | "diagnose" | "consent" | "trace" | "check-hop" | "relays" => {
                result = (self.answer)(result);
            }
            _ => {}
        }
        if !part.is_empty() {
            result[part] = (self.answer)(result[part].take());
        }
        Ok(result)
    }
}

/// Forgets some errors, and accepts what has no other.
fn forgiving(mut report: Value, forgets: fn(&Value) -> bool) -> Value {
    let errors = report["errors"].as_array_mut().unwrap();
    let before = errors.len();
    errors.retain(|error| !forgets(error));
    if errors.is_empty() && before > 0 {
        report["envelopes"] = json!([{"diagnostics": []}]);
    }
    report
}

fn each_envelope(mut report: Value, change: impl Fn(&mut Value)) -> Value {
    report["envelopes"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(change);
    report
}

fn each_finding(mut report: Value, change: impl Fn(&mut Value)) -> Value {
    let own = report["envelopes"].as_array_mut().unwrap().iter_mut();
    own.filter_map(|e| e["diagnostics"].as_array_mut())
        .flatten()
        .for_each(&change);
    report["errors"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(&change);
    report
}

/// Changes every line above the body.
fn each_head_line(text: &str, change: impl Fn(&str) -> String) -> String {
    let at = text.find("\nbody:").unwrap_or(text.len());
    let head = text[..at].split('\n').map(change);
    head.collect::<Vec<_>>().join("\n") + &text[at..]
}

fn name_of(line: &str) -> String {
    line.split_once(':')
        .map_or(line, |(name, _)| name)
        .to_ascii_lowercase()
}

fn without_duplicates(text: &str) -> String {
    let seen = std::cell::RefCell::new(std::collections::HashSet::new());
    each_head_line(text, |line| {
        let known = line.contains(':') && !seen.borrow_mut().insert(name_of(line));
        if known {
            String::new()
        } else {
            line.to_owned()
        }
    })
}

fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r') || matches!(c, '\u{2028}' | '\u{2029}')
}

fn is_core(name: &str) -> bool {
    [
        "user", "session", "thread", "parent", "message", "context", "intent",
    ]
    .contains(&name)
}

/// Reads quoted envelopes inside bodies as messages of their own.
fn with_quoted(mut report: Value) -> Value {
    let bodies = report["envelopes"].as_array().unwrap().iter();
    let bodies: Vec<String> = bodies
        .filter_map(|e| Some(e["body"].as_str()?.to_owned()))
        .collect();
    for body in bodies {
        let quoted = report_on(&body, "paste");
        let found = quoted["envelopes"].as_array().unwrap().clone();
        report["envelopes"].as_array_mut().unwrap().extend(found);
    }
    report
}

fn decomposed(text: &str, value: Value) -> Value {
    if unicode_normalization::is_nfc(text) {
        return value;
    }
    let shown: String = value.to_string().nfd().collect();
    serde_json::from_str(&shown).unwrap()
}

/// The digest of the body without the LF after its last line.
fn unterminated(text: &str, form: String) -> String {
    let report = report_on(text, "strict");
    let body = report["envelopes"][0]["body"]
        .as_str()
        .unwrap_or("x")
        .to_owned();
    let hex: String = sha2::Sha256::digest(body)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let (head, _) = form.trim_end().rsplit_once("sha256:").unwrap();
    format!("{head}sha256:{hex}\n")
}

fn first_line_swapped(text: &str) -> Option<String> {
    let (line, rest) = text.split_once('\n')?;
    let (sender, receiver) = line
        .strip_prefix("[[")?
        .strip_suffix(" v1]]")?
        .split_once('→')?;
    Some(format!("[[{receiver}→{sender} v1]]\n{rest}"))
}

#[rustfmt::skip]
const MUTANTS: &[Mutant] = &[
    Mutant { name: "ignores control characters", text: |t| t.replace(is_forbidden, ""), ..UNBROKEN },
    Mutant { name: "takes a lone CR for a line end", text: |t| t.replace("\r\n", "\n").replace('\r', "\n"), ..UNBROKEN },
    Mutant { name: "lower-cases header names first", text: |t| each_head_line(t, |l| l.split_once(':').map_or(l.to_owned(), |(_, v)| format!("{}:{v}", name_of(l)))), ..UNBROKEN },
    Mutant { name: "drops duplicates", text: without_duplicates, ..UNBROKEN },
    Mutant { name: "cuts text after the end", text: |t| t.split_inclusive("\n[[END]]").next().unwrap_or(t).to_owned(), ..UNBROKEN },
    Mutant { name: "accepts v2", text: |t| t.replace(" v2]]", " v1]]"), ..UNBROKEN },
    Mutant { name: "maps every code to E-FORMAT", report: |_, r| each_finding(r, |f| f["code"] = "E-FORMAT".into()), ..UNBROKEN },
    Mutant { name: "knows no legacy intents", report: |_, r| each_envelope(r, |e| e["intent"]["meaning"] = e["intent"]["written"].clone()), ..UNBROKEN },
    Mutant { name: "covers what hops write", canonical: |t, f| if t.contains("meta: audit") || t.contains("meta: email") || t.contains("X-Route:") { f + "meta: audit\n" } else { f }, ..UNBROKEN },
    Mutant { name: "drops unknown headers", report: |_, r| each_envelope(r, |e| e["headers"].as_array_mut().unwrap().retain(|h| is_core(h["name"].as_str().unwrap()))), ..UNBROKEN },
    Mutant { name: "drops unknown META", report: |_, r| each_envelope(r, |e| e["meta"].as_array_mut().unwrap().retain(|b| crosstalk_envelope::registry::Namespace::find(b["namespace"].as_str().unwrap()).is_some())), ..UNBROKEN },
    Mutant { name: "does not cover unknown headers", canonical: |_, f| f.split_inclusive('\n').filter(|l| !l.starts_with("Mood") && !l.starts_with("X-Note")).collect(), ..UNBROKEN },
    Mutant { name: "keeps trailing empty body lines", report: |t, r| if t.contains("\n\nsig:") { each_envelope(r, |e| e["body"] = format!("{}\n", e["body"].as_str().unwrap()).into()) } else { r }, ..UNBROKEN },
    Mutant { name: "reports wrong lines", report: |_, r| each_finding(r, |f| f["line"] = (f["line"].as_u64().unwrap() + 1).into()), ..UNBROKEN },
    Mutant { name: "reports wrong columns", report: |_, r| each_finding(r, |f| f["column"] = (f["column"].as_u64().unwrap() + 1).into()), ..UNBROKEN },
    Mutant { name: "treats strict as paste", reading: |_| "paste", ..UNBROKEN },
    Mutant { name: "treats paste as strict", reading: |_| "strict", ..UNBROKEN },
    Mutant { name: "hides its repairs", report: |_, r| each_finding(r, |f| if f["severity"] == "repair" { f["severity"] = "note".into(); }), ..UNBROKEN },
    Mutant { name: "extracts quoted envelopes", report: |_, r| with_quoted(r), ..UNBROKEN },
    Mutant { name: "does not normalise to NFC", report: decomposed, canonical: |t, f| if unicode_normalization::is_nfc(t) { f } else { f.nfd().collect() }, ..UNBROKEN },
    Mutant { name: "enforces no limits", report: |_, r| forgiving(r, |e| e["code"] == "E-TOO-LARGE"), ..UNBROKEN },
    Mutant { name: "ignores the rules of the intents", report: |_, r| forgiving(r, |e| e["rule"].as_str().unwrap().starts_with("INT-")), ..UNBROKEN },
    Mutant { name: "keeps the arrow as it was written", canonical: |t, f| if t.contains("->") { f.replacen('→', "->", 1) } else { f }, ..UNBROKEN },
    Mutant { name: "leaves out the space before an empty value", canonical: |_, f| f.replace(": \n", ":\n"), ..UNBROKEN },
    Mutant { name: "digests the body without its last LF", canonical: unterminated, ..UNBROKEN },
    Mutant { name: "calls a response a body", canonical: |_, f| f.replace("\nresponse: ", "\nbody: "), ..UNBROKEN },
    Mutant { name: "writes bodies without indent", written: |_, t| t.replace("\n  ", "\n"), ..UNBROKEN },
    Mutant { name: "answers to the wrong party", written: |_, t| first_line_swapped(&t).unwrap_or(t), ..UNBROKEN },
    Mutant { name: "passes nothing on", written: |from, _| from.to_owned(), ..UNBROKEN },
    Mutant { name: "writes CRLF as LF", written: |_, t| t.replace("\r\n", "\n"), ..UNBROKEN },
    Mutant { name: "makes ids in any order", answer: |mut a| { if let Some(list) = a.as_array_mut() { list.reverse(); } a }, ..UNBROKEN },
    Mutant { name: "decodes addresses", answer: |mut a| { if let Some(path) = a["path"].as_str() { a["path"] = path.replace("%20", " ").into(); a["text"] = a["text"].as_str().unwrap().to_lowercase().into(); } a }, ..UNBROKEN },
    Mutant { name: "takes silence of the DNS for an answer", answer: |mut a| { if a["retry"] == true { a["retry"] = false.into(); } a }, ..UNBROKEN },
    Mutant { name: "takes the last record", answer: |mut a| { if let Some(others) = a.pointer("/steps/1/others").and_then(Value::as_array).and_then(|o| o.last()).cloned() { a["result"] = others; } a }, ..UNBROKEN },
    Mutant { name: "asks the DNS for anything", answer: |mut a| { if a["steps"].is_array() && a["asks"].is_null() { a["asks"] = "_crosstalk-addr.x.example.com".into(); } a }, ..UNBROKEN },
    Mutant { name: "rewrites addresses that it finds", answer: |mut a| { if let Some(found) = a["result"].as_str() { a["result"] = found.to_lowercase().into(); } a }, ..UNBROKEN },
    Mutant { name: "numbers hops from 0", written: |_, t| t.replace("\nHop: 2\n", "\nHop: 1\n"), ..UNBROKEN },
    Mutant { name: "leaves hops unsigned", written: |_, t| t.lines().filter(|l| !l.starts_with("Hop-Signature: ")).fold(String::new(), |a, l| a + l + "\n"), ..UNBROKEN },
    Mutant { name: "takes everything whatever its consent", answer: |a| if a == "consent" { "consented".into() } else { a }, ..UNBROKEN },
    Mutant { name: "forgets what was withdrawn", answer: |mut a| { for g in a["ledger"].as_array_mut().into_iter().flatten() { if g["standing"] == "revoked" { g["standing"] = "holds".into(); } } a }, ..UNBROKEN },
    Mutant { name: "lets a consent hold for ever", answer: |mut a| { if a["ledger"].is_array() { a["expires"] = Value::Null; } a }, ..UNBROKEN },
    Mutant { name: "keeps sensitive texts", answer: |mut a| { if a["brief"] == true { a["brief"] = false.into(); } a }, ..UNBROKEN },
    Mutant { name: "believes every hop", answer: |a| if a == "believe" { "believed".into() } else { a }, ..UNBROKEN },
    Mutant { name: "tries relays in the order of the answer", answer: |mut a| { if let Some(relays) = a["relays"].as_array_mut() { relays.reverse(); } a }, ..UNBROKEN },
    Mutant { name: "counts the late", text: |t| t.replace("\nDeadline: 20", "\nX-Later: 20"), ..UNBROKEN },
    Mutant { name: "asks for no quorum", text: |t| t.replace("\nQuorum: ", "\nX-Quorum: "), ..UNBROKEN },
    Mutant { name: "takes the first of a tie", text: |t| t.replace("\nOptions: ", "\nTies: first-listed\nOptions: "), ..UNBROKEN },
    Mutant { name: "hides what it did not count", answer: |mut a| { if a["not_counted"].is_array() { a["not_counted"] = json!([]); } a }, ..UNBROKEN },
    Mutant { name: "takes the most first places for the outcome", answer: |mut a| { if a["pairwise"].is_object() { a["outcome"] = a["tally"].as_object().and_then(|t| t.iter().max_by_key(|(_, n)| n.as_u64())).map_or(Value::Null, |(o, _)| o.clone().into()); } a }, ..UNBROKEN },
    Mutant { name: "invites the receiver", text: |t| t.replace("Targets: [", "Targets: [\"TEAM\", "), ..UNBROKEN },
    Mutant { name: "reads no prose", answer: |mut a| { if let Some(all) = a["counted"].as_array_mut() { all.retain(|c| c["read_from"] != "first-line"); } a }, ..UNBROKEN },
    Mutant { name: "takes silence about relays for none", answer: |mut a| { if a["result"] == "later" { a["result"] = "none".into(); } a }, ..UNBROKEN },
    Mutant { name: "finds every body intact", answer: |mut a| { if a["diagnosis"].is_string() { a = json!({"diagnosis": "intact", "lines": []}); } a }, ..UNBROKEN },
    Mutant { name: "writes no marks", answer: |mut a| { if let Some(map) = a.as_object_mut() { map.remove("Marks"); } a }, ..UNBROKEN },
];

/// Whether a case needs keys.
fn is_of_level_2(case: &CaseFile) -> bool {
    ["signing/", "trust/"]
        .iter()
        .any(|area| case.id().starts_with(area))
}

fn is_redaction(case: &CaseFile) -> bool {
    case.op() == "redact"
}

fn is_of_level_1(case: &CaseFile) -> bool {
    !is_of_level_2(case) && !is_redaction(case)
}

/// Runs mutants against some cases: what breaks signatures leaves the rest alone, and the other way round.
fn notice(mutants: &[Mutant], chosen: fn(&CaseFile) -> bool) {
    let mut cases = case::all();
    cases.retain(chosen);
    // Another test tells of the cases that our own implementation fails.
    let known: Vec<String> = failures(&cases, &Ours)
        .into_iter()
        .map(|(c, _)| c.id().to_owned())
        .collect();
    cases.retain(|c| {
        !known.iter().any(|id| id == c.id()) && c.all("input").all(|input| input.len() < 4 << 20)
    });
    // Short cases first: most defects show there.
    cases.sort_by_key(|c| c.all("input").map(<[u8]>::len).sum::<usize>());
    assert!(
        failures(&cases, &UNBROKEN).is_empty(),
        "the unbroken wrapper fails"
    );
    let mut unnoticed = Vec::new();
    for mutant in mutants {
        // One red case is enough; the full tier counts them all.
        let red = match tier::is_full() {
            true => failures(&cases, mutant).len(),
            false => usize::from(cases.iter().any(|case| fault(case, mutant).is_some())),
        };
        println!("{red:4} red cases for one that {}", mutant.name);
        if red == 0 {
            unnoticed.push(mutant.name);
        }
    }
    assert!(mutants.len() >= 12);
    assert!(
        unnoticed.is_empty(),
        "no case notices one that {unnoticed:?}"
    );
}

#[test]
fn every_mutant_turns_a_case_red() {
    notice(MUTANTS, is_of_level_1);
}

#[test]
fn every_mutant_of_level_2_turns_a_case_red() {
    notice(trust::MUTANTS, is_of_level_2);
}

#[test]
fn every_mutant_of_redaction_turns_a_case_red() {
    notice(redact::MUTANTS, is_redaction);
}
