//! Whether an implementation does what a case says. Nothing here knows how the implementation is written: the Rust crates
//! stand behind the same [`Implementation`] as a program in another language.

mod audit;
mod consent;
mod keys;
mod poll;
mod redact;
mod relay;

pub use audit::Audits;
pub use consent::{ConsentSetting, Consents};
pub use keys::{Keys, SignRequest, Signed, VerifyRequest};
pub use poll::{CollateRequest, Polls};
pub use redact::{Redact, RedactRequest, RedactedText};
pub use relay::{HopRequest, Relays};

use crate::case::CaseFile;
use crate::fault::Fault;
use crate::subset::subset;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A text, or the diagnostics of a rejection as a JSON list.
pub type Outcome = Result<Vec<u8>, Value>;

type Judged = Result<(), Fault>;

/// What an implementation resolves a name with.
#[derive(Clone, Debug)]
pub struct ResolveRequest<'c> {
    /// The local table, an object.
    pub names: Value,
    /// The domain that may be asked, if any.
    pub domain: Option<&'c str>,
    /// What the DNS says when it is asked.
    pub dns: Option<Value>,
    /// Whether only answers with DNSSEC count.
    pub requires_dnssec: bool,
}

/// What an implementation of the format offers: bytes in, JSON or bytes out.
pub trait Implementation: Audits + Keys + Polls + Redact + Relays + Consents {
    /// The report `crosstalk.parse/1` on a text; `one`: one envelope is expected.
    fn parse(&self, text: &[u8], reading: &str, one: bool) -> Value;
    /// The canonical form of the strict reading.
    fn canonical(&self, text: &[u8]) -> Outcome;
    /// The envelope of a paste, written well-formed.
    fn fmt(&self, text: &[u8], fence: bool) -> Outcome;
    /// The envelope of a JSON message.
    fn build(&self, json: &[u8]) -> Outcome;
    /// The parts of an address, given further schemes; or the diagnostics.
    fn address(&self, text: &[u8], schemes: &Value) -> Result<Value, Value>;
    /// Where a name leads: `{"name", "result", "resolved", "retry", "asks", "steps"}`.
    fn resolve(&self, text: &[u8], request: &ResolveRequest<'_>) -> Value;
    /// `ulid`, `uuidv7` or `opaque`.
    fn id_form(&self, id: &[u8]) -> String;
    /// New ids of a form.
    fn new_ids(&self, form: &str, count: usize) -> Vec<String>;
    /// `{"diagnosis", "after", "lines"}`.
    fn diagnose(&self, text: &[u8]) -> Value;
    /// The keys and values that `meta: integrity` should have, as an object.
    fn integrity(&self, text: &[u8]) -> Value;
    /// The v1.1 text.
    fn migrate(&self, text: &[u8]) -> Outcome;
    /// The text with a block added (`add`) or a key set (`set`).
    fn edit(&self, text: &[u8], change: &str, block: &str, key: &str, value: &str) -> Outcome;
    /// An answer of a kind; `code` for an ERROR.
    fn reply(&self, text: &[u8], kind: &str, code: &str) -> Outcome;
    /// The error codes as a list of `{"code", "http", "exit"}`.
    fn taxonomy(&self) -> Value;
    /// The exit code for a text.
    fn exit(&self, text: &[u8], reading: &str) -> u8;

    /// Why the answers since the last call can't be judged, if so. A library always answers; a program may not support an
    /// operation, or break off. It then returns an empty value, and says why here.
    fn interruption(&self) -> Option<Fault> {
        None
    }
}

/// Runs a case against an implementation.
///
/// # Errors
/// What the case expects and what the implementation answered instead, or why there is no answer.
pub fn judge(case: &CaseFile, tested: &dyn Implementation) -> Result<(), Fault> {
    let judged = by_op(case, tested);
    tested.interruption().map_or(judged, Err)
}

fn by_op(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let input = || case.section("input");
    match case.op() {
        "parse" => parse(case, tested),
        "canonical" => canonical(case, tested),
        "fmt" => {
            let written = tested.fmt(input()?, case.has("fence"));
            same_bytes(case.section("output")?, &accepted(written)?)
        }
        "build" => match case.get("expect") {
            "reject" => refused(case, tested.build(input()?)),
            _ => same_bytes(case.section("output")?, &accepted(tested.build(input()?))?),
        },
        "address" => address(case, tested),
        "resolve" => resolve(case, tested),
        "id" => equal(case.get("form"), &tested.id_form(line(input()?)?)),
        "ids" => ids(case, tested),
        "diagnose" => diagnose(case, tested),
        "integrity" => equal_json(&case.json("json")?, &tested.integrity(input()?)),
        "migrate" => migrate(case, tested),
        "edit" => edit(case, tested),
        "reply" => {
            let (kind, code) = case
                .get("reply")
                .split_once(' ')
                .unwrap_or((case.get("reply"), ""));
            let answer = accepted(tested.reply(input()?, kind, code))?;
            let report = tested.parse(&answer, "strict", true);
            no_error(&report)?;
            subset(&case.json("json")?, &report)
        }
        "taxonomy" => equal_json(&case.json("json")?, &tested.taxonomy()),
        "exit" => {
            let code = tested.exit(input()?, case.get("reading"));
            equal(case.get("exit"), &code.to_string())
        }
        "collate" => poll::judge(case, tested),
        "redact" => redact::judge(case, tested),
        "audit" | "trace" => audit::judge(case, tested),
        "consent" => consent::judge(case, tested),
        "hop" | "check-hop" | "relays" => relay::judge(case, tested),
        _ => keys::judge(case, tested),
    }
}

fn parse(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let one = case.get("binding") == "one";
    let report = tested.parse(case.section("input")?, case.get("reading"), one);
    let count = field(&report, "envelopes").as_array().map_or(0, Vec::len);
    match case.get("expect") {
        "accept" => {
            no_error(&report)?;
            if count == 0 {
                return Err(Fault::mismatch("at least one envelope", &report));
            }
        }
        "reject" => {
            if count != 0 {
                return Err(Fault::mismatch("no envelope", &report));
            }
            carries(case, field(&report, "errors"))?;
        }
        _ => {
            case.section("json")?;
        }
    }
    if case.has("line") || case.has("column") {
        place(case, &report)?;
    }
    if case.has("repairs") {
        let wanted: BTreeSet<&str> = case.words("repairs").collect();
        let came: BTreeSet<&str> = findings(&report)
            .filter(|f| f["severity"] == "repair")
            .filter_map(|f| f["rule"].as_str())
            .collect();
        if wanted != came {
            return Err(Fault::mismatch(
                format_args!("the repairs {wanted:?}"),
                format_args!("the repairs {came:?}"),
            ));
        }
    }
    for word in case.words("reports") {
        let (rule, severity) = word.split_once('/').unwrap_or((word, ""));
        let told = findings(&report)
            .any(|f| f["rule"] == rule && (severity.is_empty() || f["severity"] == severity));
        if !told {
            return Err(Fault::mismatch(
                format_args!("a diagnostic of {word}"),
                told_rules(&report),
            ));
        }
    }
    if let Some(rule) = case
        .words("silent")
        .find(|rule| findings(&report).any(|f| f["rule"] == *rule))
    {
        return Err(Fault::mismatch(
            format_args!("no diagnostic of {rule}"),
            told_rules(&report),
        ));
    }
    match case.optional_json("json")? {
        Some(expected) => subset(&expected, &report),
        None => Ok(()),
    }
}

/// A field of an answer; null if the answer does not have it.
fn field<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or(&Value::Null)
}

/// Every diagnostic of a report, of accepted envelopes and others.
fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    let own = report["envelopes"].as_array().into_iter().flatten();
    let own = own.filter_map(|e| e["diagnostics"].as_array()).flatten();
    own.chain(report["errors"].as_array().into_iter().flatten())
}

fn told_rules(report: &Value) -> String {
    let told = findings(report).map(|f| format!("{}/{}", f["rule"], f["severity"]));
    let told = told.collect::<Vec<_>>().join(" ").replace('"', "");
    match told.is_empty() {
        true => "no diagnostics".into(),
        false => format!("the diagnostics {told}"),
    }
}

fn no_error(report: &Value) -> Judged {
    match findings(report).find(|f| f["severity"] == "error") {
        Some(error) => Err(Fault::mismatch("no error", error)),
        None => Ok(()),
    }
}

/// One of the diagnostics is an error with the rule and the code of the case.
fn carries(case: &CaseFile, findings: &Value) -> Judged {
    let (rule, code) = (case.rule(), case.get("code"));
    let fits = |f: &Value| f["rule"] == rule && f["code"] == code && f["severity"] == "error";
    match findings.as_array().is_some_and(|l| l.iter().any(fits)) {
        true => Ok(()),
        false => Err(Fault::mismatch(
            format_args!("an error with the rule {rule} and the code {code}"),
            findings,
        )),
    }
}

/// A diagnostic of the rule of the case stands where the case says.
fn place(case: &CaseFile, report: &Value) -> Judged {
    let fits =
        |f: &Value, key: &str| !case.has(key) || f[key].as_u64() == case.get(key).parse().ok();
    let mut found = findings(report).filter(|f| f["rule"] == case.rule());
    if found.any(|f| fits(f, "line") && fits(f, "column")) {
        return Ok(());
    }
    let mut expected = format!("{} at", case.rule());
    for key in ["line", "column"].into_iter().filter(|k| case.has(k)) {
        let _ = write!(expected, " {key} {}", case.get(key));
    }
    let received: Vec<String> = findings(report).map(Value::to_string).collect();
    Err(Fault::mismatch(expected, received.join("\n")))
}

fn canonical(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let form = tested.canonical(case.section("input")?);
    if case.get("expect") == "reject" {
        return refused(case, form);
    }
    let form = accepted(form)?;
    let mut checked = false;
    if let Some(exact) = case.optional("canonical") {
        same_bytes(exact, &form)?;
        checked = true;
    }
    if case.has("digest") {
        equal(case.get("digest"), &sha256(&form))?;
        checked = true;
    }
    for same in case.all("same") {
        same_bytes(&form, &accepted(tested.canonical(same))?)?;
        checked = true;
    }
    for other in case.all("differs") {
        if accepted(tested.canonical(other))? == form {
            return Err(Fault::mismatch(
                "another canonical form for each section `differs`",
                format_args!("the same one\n{}", shown(&form)),
            ));
        }
        checked = true;
    }
    checked
        .then_some(())
        .ok_or_else(|| Fault::Case("it compares nothing".into()))
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let hex = sha2::Sha256::digest(bytes);
    let hex = hex.iter().map(|b| format!("{b:02x}"));
    format!("sha256:{}", hex.collect::<String>())
}

fn address(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let schemes = case.optional_json("schemes")?;
    let schemes = schemes.unwrap_or_else(|| Value::Array(Vec::new()));
    let came = tested.address(line(case.section("input")?)?, &schemes);
    accepted_or_refused(case, came, |parts| subset(&case.json("json")?, parts))
}

fn resolve(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let names = case.optional_json("names")?;
    let request = ResolveRequest {
        names: names.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        domain: case.has("domain").then(|| case.get("domain")),
        dns: case.optional_json("dns")?,
        requires_dnssec: case.has("dnssec"),
    };
    let came = tested.resolve(line(case.section("input")?)?, &request);
    subset(&case.json("json")?, &came)
}

fn ids(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let count = case.number("count")?;
    let made = tested.new_ids(case.get("form"), count);
    if made.len() != count {
        return Err(Fault::mismatch(
            format_args!("{count} ids"),
            format_args!("{} ids", made.len()),
        ));
    }
    for id in &made {
        equal(case.get("form"), &tested.id_form(id.as_bytes()))?;
    }
    match made.iter().zip(made.iter().skip(1)).find(|(a, b)| a >= b) {
        Some((first, next)) => Err(Fault::mismatch(
            "each id greater than the one before",
            format_args!("{first} and then {next}"),
        )),
        None => Ok(()),
    }
}

fn diagnose(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let came = tested.diagnose(case.section("input")?);
    equal(
        case.get("diagnosis"),
        field(&came, "diagnosis").as_str().unwrap_or("none"),
    )?;
    if case.has("after") {
        equal(case.get("after"), &field(&came, "after").to_string())?;
    }
    if case.has("lines") {
        let lines = case
            .words("lines")
            .map(|n| n.parse().map_err(|_| format!("`lines` has the word `{n}`")));
        let lines: Vec<u64> = lines.collect::<Result<_, _>>()?;
        equal_json(&lines.into(), field(&came, "lines"))?;
    }
    Ok(())
}

fn migrate(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let input = case.section("input")?;
    let migrated = accepted(tested.migrate(input))?;
    if case.has("output") {
        return same_bytes(input, &migrated);
    }
    let report = tested.parse(&migrated, "strict", false);
    no_error(&report)?;
    subset(&case.json("json")?, &report)
}

fn edit(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let change = if case.has("add") { "add" } else { "set" };
    let spelled = || {
        format!(
            "`{change}: {}` is not NAMESPACE KEY=VALUE",
            case.get(change)
        )
    };
    let (block, field) = case.get(change).split_once(' ').ok_or_else(spelled)?;
    let (key, value) = field.split_once('=').ok_or_else(spelled)?;
    let edited = tested.edit(case.section("input")?, change, block, key, value);
    same_bytes(case.section("output")?, &accepted(edited)?)
}

fn accepted(outcome: Outcome) -> Result<Vec<u8>, Fault> {
    outcome.map_err(|findings| Fault::mismatch("a text", format_args!("a rejection: {findings}")))
}

/// What the case says about an answer that may be a rejection: `expect: reject` wants the rule and the code of the case.
fn accepted_or_refused(
    case: &CaseFile,
    came: Result<Value, Value>,
    check: impl FnOnce(&Value) -> Judged,
) -> Judged {
    match (came, case.get("expect") == "reject") {
        (Ok(came), false) => check(&came),
        (Err(findings), true) => carries(case, &findings),
        (Ok(came), true) => Err(Fault::mismatch(rejection(case), came)),
        (Err(findings), false) => Err(Fault::mismatch(
            "no rejection",
            format_args!("a rejection: {findings}"),
        )),
    }
}

fn rejection(case: &CaseFile) -> String {
    let (rule, code) = (case.rule(), case.get("code"));
    format!("a rejection with the rule {rule} and the code {code}")
}

/// It is rejected, with the code of the case.
fn refused(case: &CaseFile, outcome: Outcome) -> Judged {
    let code = case.get("code");
    let expected = format!("a rejection with the code {code}");
    match outcome {
        Err(findings)
            if findings
                .as_array()
                .is_some_and(|l| l.iter().any(|f| f["code"] == code)) =>
        {
            Ok(())
        }
        Err(findings) => Err(Fault::mismatch(expected, findings)),
        Ok(text) => Err(Fault::mismatch(expected, shown(&text))),
    }
}

/// The input without its line end.
fn line(input: &[u8]) -> Result<&[u8], String> {
    input
        .strip_suffix(b"\n")
        .ok_or("the input does not end with a line end".into())
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| e.to_string())
}

fn equal(expected: &str, came: &str) -> Judged {
    match expected == came {
        true => Ok(()),
        false => Err(Fault::mismatch(expected, came)),
    }
}

fn equal_json(expected: &Value, came: &Value) -> Judged {
    match expected == came {
        true => Ok(()),
        false => Err(Fault::mismatch(expected, came)),
    }
}

/// Two texts are the same; else the first line that differs is told, and what stands around it.
fn same_bytes(expected: &[u8], came: &[u8]) -> Judged {
    if expected == came {
        return Ok(());
    }
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let lines = bytes.split_inclusive(|b| *b == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    let (wanted, got) = (lines(expected), lines(came));
    let same = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let told = |lines: &[Vec<u8>], whole: &[u8]| match lines.get(same) {
        Some(line) => format!(
            "line {} is {:?} in\n{}",
            same + 1,
            String::from_utf8_lossy(line),
            shown(whole)
        ),
        None => format!(
            "the end of the text behind line {same} in\n{}",
            shown(whole)
        ),
    };
    Err(Fault::mismatch(told(&wanted, expected), told(&got, came)))
}

/// A text with its lines marked, so that blanks and line ends are seen.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split_inclusive('\n');
    let lines: Vec<String> = lines.map(|l| format!("  |{}", l.escape_debug())).collect();
    lines.join("\n")
}
