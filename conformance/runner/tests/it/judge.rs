//! Whether an implementation does what a case says. Nothing here knows Rust types of the implementation.

mod audit;
mod consent;
mod keys;
mod poll;
mod redact;
mod relay;

pub(crate) use audit::Audits;
pub(crate) use consent::{Circumstances, Consents};
pub(crate) use keys::{Asked, Keys, Signed, Signer};
pub(crate) use poll::{Count, Polls};
pub(crate) use redact::{Cleaned, Redact, Wanted};
pub(crate) use relay::{HopBy, Relays};

use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;
use std::collections::BTreeSet;

/// What came out: bytes, or the findings as a JSON list.
pub(crate) type Outcome = Result<Vec<u8>, Value>;

/// What there is to resolve a name with.
pub(crate) struct Known<'c> {
    /// The local table, an object.
    pub(crate) names: Value,
    /// The domain that may be asked, if any.
    pub(crate) domain: Option<&'c str>,
    /// What the DNS says, if it is asked.
    pub(crate) dns: Option<Value>,
    pub(crate) requires_dnssec: bool,
}

/// What an implementation of the format offers: bytes in, JSON or bytes out.
pub(crate) trait Implementation: Audits + Keys + Polls + Redact + Relays + Consents {
    /// The report on a text; `one`: one envelope is expected.
    fn parse(&self, text: &[u8], reading: &str, one: bool) -> Value;
    /// The canonical form of the strict reading.
    fn canonical(&self, text: &[u8]) -> Outcome;
    /// The envelope of a paste, written well-formed.
    fn fmt(&self, text: &[u8], fence: bool) -> Outcome;
    /// The envelope of a JSON message.
    fn build(&self, json: &[u8]) -> Outcome;
    /// The parts of an address, given further schemes.
    fn address(&self, text: &[u8], schemes: &Value) -> Result<Value, Value>;
    /// Where a name leads: `{"name", "result", "resolved", "retry", "asks", "steps"}`.
    fn resolve(&self, text: &[u8], known: &Known<'_>) -> Value;
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
}

/// The error says what was expected and what came.
pub(crate) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
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

fn parse(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let one = case.get("binding") == "one";
    let report = tested.parse(case.section("input")?, case.get("reading"), one);
    let count = report["envelopes"].as_array().map_or(0, Vec::len);
    match case.get("expect") {
        "accept" => {
            no_error(&report)?;
            if count == 0 {
                return Err(format!("expected an envelope\ncame {report}"));
            }
        }
        "reject" => {
            if count != 0 {
                return Err(format!("expected no envelope\ncame {report}"));
            }
            carries(case, &report["errors"], "error")?;
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
            return Err(format!("expected the repairs {wanted:?}\ncame {came:?}"));
        }
    }
    for word in case.words("reports") {
        let (rule, severity) = word.split_once('/').unwrap_or((word, ""));
        let told = findings(&report)
            .any(|f| f["rule"] == rule && (severity.is_empty() || f["severity"] == severity));
        if !told {
            return Err(format!(
                "expected a report of {word}\ncame {}",
                told_rules(&report)
            ));
        }
    }
    if let Some(rule) = case
        .words("silent")
        .find(|rule| findings(&report).any(|f| f["rule"] == *rule))
    {
        return Err(format!(
            "expected no report of {rule}\ncame {}",
            told_rules(&report)
        ));
    }
    match case.json("json") {
        Ok(expected) => subset(&expected, &report),
        Err(_) if case.all("json").next().is_none() => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Everything that a report tells, about accepted envelopes and others.
fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    let own = report["envelopes"].as_array().into_iter().flatten();
    let own = own.filter_map(|e| e["diagnostics"].as_array()).flatten();
    own.chain(report["errors"].as_array().into_iter().flatten())
}

fn told_rules(report: &Value) -> String {
    let told = findings(report).map(|f| format!("{}/{}", f["rule"], f["severity"]));
    told.collect::<Vec<_>>().join(" ").replace('"', "")
}

fn no_error(report: &Value) -> Result<(), String> {
    match findings(report).find(|f| f["severity"] == "error") {
        Some(error) => Err(format!("expected no error\ncame {error}")),
        None => Ok(()),
    }
}

/// One of the findings has the rule and the code of the case.
fn carries(case: &Case, findings: &Value, severity: &str) -> Result<(), String> {
    let (rule, code) = (case.rule(), case.get("code"));
    let fits = |f: &Value| f["rule"] == rule && f["code"] == code && f["severity"] == severity;
    let list = findings.as_array().map_or(&[][..], Vec::as_slice);
    match list.iter().any(fits) {
        true => Ok(()),
        false => Err(format!(
            "expected {severity} {code} by {rule}\ncame {findings}"
        )),
    }
}

/// A finding by the rule of the case stands where the case says.
fn place(case: &Case, report: &Value) -> Result<(), String> {
    let fits =
        |f: &Value, key: &str| !case.has(key) || f[key].as_u64() == case.get(key).parse().ok();
    let mut found = findings(report).filter(|f| f["rule"] == case.rule());
    match found.any(|f| fits(f, "line") && fits(f, "column")) {
        true => Ok(()),
        false => Err(format!(
            "expected {} at line {} column {}\ncame {}",
            case.rule(),
            case.get("line"),
            case.get("column"),
            findings(report)
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join("\n     ")
        )),
    }
}

fn canonical(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let form = tested.canonical(case.section("input")?);
    if case.get("expect") == "reject" {
        return refused(case, form);
    }
    let form = accepted(form)?;
    let mut checked = false;
    if let Ok(exact) = case.section("canonical") {
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
            return Err(format!("expected another form than\n{}", shown(&form)));
        }
        checked = true;
    }
    checked
        .then_some(())
        .ok_or("the case compares nothing".into())
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let hex = sha2::Sha256::digest(bytes);
    let hex = hex.iter().map(|b| format!("{b:02x}"));
    format!("sha256:{}", hex.collect::<String>())
}

fn address(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let schemes = match case.all("schemes").next() {
        Some(_) => case.json("schemes")?,
        None => Value::Array(Vec::new()),
    };
    match (
        tested.address(line(case.section("input")?)?, &schemes),
        case.get("expect"),
    ) {
        (Ok(parts), "accept") => subset(&case.json("json")?, &parts),
        (Err(findings), "reject") => carries(case, &findings, "error"),
        (Ok(came) | Err(came), wanted) => Err(format!("expected {wanted}\ncame {came}")),
    }
}

fn resolve(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let given = |title: &str| match case.all(title).next() {
        Some(_) => case.json(title).map(Some),
        None => Ok(None),
    };
    let known = Known {
        names: given("names")?.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        domain: case.has("domain").then(|| case.get("domain")),
        dns: given("dns")?,
        requires_dnssec: case.has("dnssec"),
    };
    let came = tested.resolve(line(case.section("input")?)?, &known);
    subset(&case.json("json")?, &came)
}

fn ids(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let count = case.number("count")?;
    let made = tested.new_ids(case.get("form"), count);
    equal(case.get("count"), &made.len().to_string())?;
    for id in &made {
        equal(case.get("form"), &tested.id_form(id.as_bytes()))?;
    }
    match made.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("expected growing ids\ncame {pair:?}")),
        None => Ok(()),
    }
}

fn diagnose(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let came = tested.diagnose(case.section("input")?);
    equal(
        case.get("diagnosis"),
        came["diagnosis"].as_str().unwrap_or("none"),
    )?;
    if case.has("after") {
        equal(case.get("after"), &came["after"].to_string())?;
    }
    if case.has("lines") {
        let lines = case
            .words("lines")
            .map(|n| n.parse().map_err(|_| format!("`{n}`")));
        let lines: Vec<u64> = lines.collect::<Result<_, _>>()?;
        equal_json(&lines.into(), &came["lines"])?;
    }
    Ok(())
}

fn migrate(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let input = case.section("input")?;
    let migrated = accepted(tested.migrate(input))?;
    if case.has("output") {
        return same_bytes(input, &migrated);
    }
    let report = tested.parse(&migrated, "strict", false);
    no_error(&report)?;
    subset(&case.json("json")?, &report)
}

fn edit(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
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

fn accepted(outcome: Outcome) -> Result<Vec<u8>, String> {
    outcome.map_err(|findings| format!("expected a text\ncame {findings}"))
}

/// It is refused, with the code of the case.
fn refused(case: &Case, outcome: Outcome) -> Result<(), String> {
    let code = case.get("code");
    match outcome {
        Err(findings)
            if findings
                .as_array()
                .is_some_and(|l| l.iter().any(|f| f["code"] == code)) =>
        {
            Ok(())
        }
        Err(findings) => Err(format!("expected {code}\ncame {findings}")),
        Ok(text) => Err(format!("expected {code}\ncame\n{}", shown(&text))),
    }
}

/// The input without its line end.
fn line(input: &[u8]) -> Result<&[u8], String> {
    input
        .strip_suffix(b"\n")
        .ok_or("the input ends with a line end".into())
}

fn equal(expected: &str, came: &str) -> Result<(), String> {
    match expected == came {
        true => Ok(()),
        false => Err(format!("expected {expected}\ncame     {came}")),
    }
}

fn equal_json(expected: &Value, came: &Value) -> Result<(), String> {
    equal(&expected.to_string(), &came.to_string()).or_else(|fault| match expected == came {
        true => Ok(()),
        false => Err(fault),
    })
}

fn same_bytes(expected: &[u8], came: &[u8]) -> Result<(), String> {
    match expected == came {
        true => Ok(()),
        false => Err(format!(
            "expected\n{}came\n{}",
            shown(expected),
            shown(came)
        )),
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.split_inclusive('\n')
        .map(|l| format!("  |{}\n", l.escape_debug()))
        .collect()
}
