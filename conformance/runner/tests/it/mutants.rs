//! Broken implementations: wrappers that change what goes in or what comes out. The suite has to notice each one.

mod keys;
mod lenient;
mod redact;

use crate::case;
use crate::conformance::{failures, fault};
use crosstalk_conform::CaseFile;
use crosstalk_conform::judge::{
    Audits, CollateRequest, ConsentSetting, Consents, HopRequest, Implementation, Outcome, Polls,
    Relays, ResolveRequest,
};
use crosstalk_conformance::Ours;
use crosstalk_testing::tier;
use serde_json::{Value, json};
use sha2::Digest as _;
use unicode_normalization::UnicodeNormalization as _;

/// Our implementation with one defect.
#[derive(Clone, Copy)]
pub(crate) struct Mutant {
    name: &'static str,
    /// What is done to a text before it is read.
    text: fn(&str) -> String,
    /// Which reading is used for the one that was asked for.
    reading: fn(&str) -> &str,
    /// What is done to a report; the text is what was read.
    report: fn(&str, Value) -> Value,
    /// What is done to a canonical form.
    canonical: fn(&str, String) -> String,
    /// What is done to a text that was written, with what it was made from.
    written: fn(&[u8], Vec<u8>) -> Vec<u8>,
    /// What is done to every other answer.
    answer: fn(Value) -> Value,
    /// What is done instead about signatures, keys and trust.
    keys: keys::Faults,
    /// What is done instead about personal data.
    redact: redact::Fault,
}

const UNBROKEN: Mutant = Mutant {
    name: "unbroken",
    text: str::to_owned,
    reading: |reading| reading,
    report: |_, report| report,
    canonical: |_, form| form,
    written: |_, text| text,
    answer: |answer| answer,
    keys: keys::FAULTLESS,
    redact: redact::FAULTLESS,
};

impl Mutant {
    /// Our implementation with another report.
    pub(crate) const fn reporting(name: &'static str, report: fn(&str, Value) -> Value) -> Self {
        Self {
            name,
            report,
            ..UNBROKEN
        }
    }

    fn read(&self, bytes: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(bytes) {
            Ok(text) => (self.text)(text).into_bytes(),
            Err(_) => bytes.to_vec(),
        }
    }

    fn write(&self, from: &[u8], outcome: Outcome) -> Outcome {
        outcome.map(|text| (self.written)(from, text))
    }
}

impl Implementation for Mutant {
    fn parse(&self, text: &[u8], reading: &str, one: bool) -> Value {
        let report = Ours.parse(&self.read(text), (self.reading)(reading), one);
        (self.report)(&String::from_utf8_lossy(text), report)
    }

    fn canonical(&self, text: &[u8]) -> Outcome {
        let form = Ours.canonical(&self.read(text))?;
        let form = String::from_utf8(form).unwrap();
        Ok((self.canonical)(&String::from_utf8_lossy(text), form).into_bytes())
    }

    fn fmt(&self, text: &[u8], fence: bool) -> Outcome {
        self.write(text, Ours.fmt(&self.read(text), fence))
    }

    fn build(&self, json: &[u8]) -> Outcome {
        self.write(json, Ours.build(json))
    }

    fn address(&self, text: &[u8], schemes: &Value) -> Result<Value, Value> {
        Ours.address(text, schemes).map(self.answer)
    }

    fn resolve(&self, text: &[u8], known: &ResolveRequest<'_>) -> Value {
        (self.answer)(Ours.resolve(text, known))
    }

    fn id_form(&self, id: &[u8]) -> String {
        Ours.id_form(id)
    }

    fn new_ids(&self, form: &str, count: usize) -> Vec<String> {
        let made = (self.answer)(Ours.new_ids(form, count).into());
        serde_json::from_value(made).unwrap()
    }

    fn diagnose(&self, text: &[u8]) -> Value {
        (self.answer)(Ours.diagnose(&self.read(text)))
    }

    fn integrity(&self, text: &[u8]) -> Value {
        (self.answer)(Ours.integrity(&self.read(text)))
    }

    fn migrate(&self, text: &[u8]) -> Outcome {
        self.write(text, Ours.migrate(&self.read(text)))
    }

    fn edit(&self, text: &[u8], change: &str, block: &str, key: &str, value: &str) -> Outcome {
        self.write(text, Ours.edit(&self.read(text), change, block, key, value))
    }

    fn reply(&self, text: &[u8], kind: &str, code: &str) -> Outcome {
        self.write(text, Ours.reply(&self.read(text), kind, code))
    }

    fn taxonomy(&self) -> Value {
        (self.answer)(Ours.taxonomy())
    }

    fn exit(&self, text: &[u8], reading: &str) -> u8 {
        Ours.exit(&self.read(text), (self.reading)(reading))
    }
}

impl Consents for Mutant {
    fn consent(&self, text: &[u8], circumstances: &ConsentSetting<'_>) -> Result<Value, Value> {
        // One that lets everything in says so in its answer.
        match Ours.consent(text, circumstances) {
            Err(findings) if (self.answer)(json!("consent")) == json!("consented") => Ok(findings),
            checked => checked.map(self.answer),
        }
    }
}

impl Polls for Mutant {
    fn collate(&self, text: &[u8], count: &CollateRequest<'_>) -> Result<(Value, Vec<u8>), Value> {
        let (json, envelopes) = Ours.collate(&self.read(text), count)?;
        Ok(((self.answer)(json), (self.written)(text, envelopes)))
    }
}

impl Audits for Mutant {
    fn audit(&self, what: &str, input: &Value) -> Result<Value, Value> {
        // One that believes every proof says so in its answer.
        match Ours.audit(what, input) {
            Err(why) if (self.answer)(json!("believe")) == json!("believed") => Ok(why),
            checked => checked.map(self.answer),
        }
    }

    fn trace(&self, text: &[u8], key: Option<&str>) -> Value {
        (self.answer)(Ours.trace(text, key))
    }
}

impl Relays for Mutant {
    fn hop(&self, text: &[u8], hop: &HopRequest<'_>) -> Outcome {
        self.write(text, Ours.hop(&self.read(text), hop))
    }

    fn check_hop(&self, text: &[u8], key: &str) -> Result<Value, Value> {
        // One that believes every hop says so in its answer.
        match Ours.check_hop(text, key) {
            Err(findings) if (self.answer)(json!("believe")) == json!("believed") => Ok(findings),
            checked => checked.map(self.answer),
        }
    }

    fn relays(&self, domain: &str, dns: &Value, private: bool) -> Value {
        (self.answer)(Ours.relays(domain, dns, private))
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
        let quoted = Ours.parse(body.as_bytes(), "paste", false);
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
    let report = Ours.parse(text.as_bytes(), "strict", true);
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
    Mutant { name: "writes bodies without indent", written: |_, t| String::from_utf8(t).unwrap().replace("\n  ", "\n").into_bytes(), ..UNBROKEN },
    Mutant { name: "answers to the wrong party", written: |_, t| first_line_swapped(&String::from_utf8_lossy(&t)).map_or(t, String::into_bytes), ..UNBROKEN },
    Mutant { name: "passes nothing on", written: |from, _| from.to_vec(), ..UNBROKEN },
    Mutant { name: "writes CRLF as LF", written: |_, t| String::from_utf8(t).unwrap().replace("\r\n", "\n").into_bytes(), ..UNBROKEN },
    Mutant { name: "makes ids in any order", answer: |mut a| { if let Some(list) = a.as_array_mut() { list.reverse(); } a }, ..UNBROKEN },
    Mutant { name: "decodes addresses", answer: |mut a| { if let Some(path) = a["path"].as_str() { a["path"] = path.replace("%20", " ").into(); a["text"] = a["text"].as_str().unwrap().to_lowercase().into(); } a }, ..UNBROKEN },
    Mutant { name: "takes silence of the DNS for an answer", answer: |mut a| { if a["retry"] == true { a["retry"] = false.into(); } a }, ..UNBROKEN },
    Mutant { name: "takes the last record", answer: |mut a| { if let Some(others) = a.pointer("/steps/1/others").and_then(Value::as_array).and_then(|o| o.last()).cloned() { a["result"] = others; } a }, ..UNBROKEN },
    Mutant { name: "asks the DNS for anything", answer: |mut a| { if a["steps"].is_array() && a["asks"].is_null() { a["asks"] = "_crosstalk-addr.x.example.com".into(); } a }, ..UNBROKEN },
    Mutant { name: "rewrites addresses that it finds", answer: |mut a| { if let Some(found) = a["result"].as_str() { a["result"] = found.to_lowercase().into(); } a }, ..UNBROKEN },
    Mutant { name: "numbers hops from 0", written: |_, t| String::from_utf8(t).unwrap().replace("\nHop: 2\n", "\nHop: 1\n").into_bytes(), ..UNBROKEN },
    Mutant { name: "leaves hops unsigned", written: |_, t| String::from_utf8(t).unwrap().lines().filter(|l| !l.starts_with("Hop-Signature: ")).fold(String::new(), |a, l| a + l + "\n").into_bytes(), ..UNBROKEN },
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
    // What our own implementation gets wrong is told by another test.
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
    notice(keys::MUTANTS, is_of_level_2);
}

#[test]
fn every_mutant_of_redaction_turns_a_case_red() {
    notice(redact::MUTANTS, is_redaction);
}
