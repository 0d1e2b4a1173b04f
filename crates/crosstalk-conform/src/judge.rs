//! Whether an implementation does what a case says.

mod trust;

use crate::case::CaseFile;
use crate::question::{
    CaseFailure, CaseQuestion, Implementation, bytes_in, part, rejection_in, value_in, word_in,
    words_in,
};
use crate::subset::subset;
use crosstalk_envelope::meta::Digest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

type Judgement = Result<(), CaseFailure>;

/// Runs a case against an implementation.
///
/// # Errors
/// The expectation of the case and the answer instead, or why there is no answer.
pub fn judge(case: &CaseFile, tested: &dyn Implementation) -> Result<(), CaseFailure> {
    let question = || CaseQuestion::new(case.op());
    let ask = |question: CaseQuestion| tested.answer(&question);
    let on_input = || Ok::<_, String>(question().with_bytes("input", case.section("input")?));
    let on_line = || Ok::<_, String>(question().with_bytes("input", line(case.section("input")?)?));
    let key = || case.optional("key").map(key_of).transpose();
    match case.op() {
        "parse" => parse(case, tested),
        "canonical" => canonical(case, tested),
        "fmt" => writes(case, &ask(on_input()?.with("fence", case.has("fence")))?),
        "build" => {
            let result = ask(on_input()?)?;
            accepted_or_rejected(case, None, &result, |built| writes(case, built))
        }
        "address" => {
            let schemes = case.optional_json("schemes")?.unwrap_or_else(|| json!([]));
            let result = ask(on_line()?.with("schemes", schemes))?;
            has_json(case, &result)
        }
        "resolve" => {
            let names = case.optional_json("names")?.unwrap_or_else(|| json!({}));
            let question = on_line()?
                .with("names", names)
                .with_optional("domain", optional(case, "domain"))
                .with_optional("dns", case.optional_json("dns")?)
                .with_optional("dnssec", optional(case, "dnssec"));
            subset(&case.json("json")?, &ask(question)?)
        }
        "id" => equal(case.get("form"), word_in(&ask(on_line()?)?, "form")?),
        "ids" => ids(case, tested),
        "diagnose" => diagnose(case, &ask(on_input()?)?),
        "integrity" => equal_json(&case.json("json")?, value_in(&ask(on_input()?)?, "fields")?),
        "migrate" => migrate(case, tested),
        "edit" => edit(case, tested),
        "reply" => {
            let (kind, code) = case.get("reply").split_once(' ').unzip();
            let question = on_input()?
                .with("reply", kind.unwrap_or(case.get("reply")))
                .with_optional("code", code);
            let report = parsed(tested, &output(&ask(question)?)?, "strict", true)?;
            no_error(&report)?;
            subset(&case.json("json")?, &report)
        }
        "taxonomy" => equal_json(&case.json("json")?, value_in(&ask(question())?, "codes")?),
        "exit" => {
            let result = ask(on_input()?.with("reading", case.get("reading")))?;
            let code = |r: &Value| u8::try_from(r.get("exit")?.as_u64()?).ok();
            let code = part(&result, "`exit`, a number from 0 to 255", code)?;
            equal(case.get("exit"), &code.to_string())
        }
        "collate" => collate(case, tested),
        "redact" => redact(case, tested),
        "audit" => audit(case, tested),
        "trace" => {
            let result = ask(on_input()?.with_optional("key", key()?))?;
            subset(&case.json("json")?, &result)
        }
        "consent" => consent(case, tested),
        "hop" => {
            let mut question = on_input()?;
            for key in ["at", "by", "seed", "algorithm", "pkid"] {
                question = question.with_optional(key, optional(case, key));
            }
            writes(case, &ask(question)?)
        }
        "check-hop" => has_json(case, &ask(on_input()?.with_optional("key", key()?))?),
        "relays" => {
            let dns = case.optional_json("dns")?.unwrap_or_default();
            let question = on_line()?.with("dns", dns);
            let result = ask(question.with("private", case.has("private")))?;
            subset(&case.json("json")?, &result)
        }
        "sign" => trust::sign(case, tested),
        "verify" => trust::verify(case, tested),
        "key" => has_json(case, &ask(on_line()?)?),
        "learn" => {
            let question = on_input()?.with("trust", text(case.section("trust")?)?);
            let result = ask(question.with("at", trust::time(case)))?;
            accepted_or_rejected(case, Some(case.rule()), &result, |learned| {
                trust::same_file(case.section("after")?, &output(learned)?)
            })
        }
        "trust-file" => {
            let result = ask(on_input()?)?;
            accepted_or_rejected(case, Some(case.rule()), &result, |written| {
                trust::same_file(case.section("input")?, &output(written)?)
            })
        }
        "rc1" => {
            let result = ask(on_input()?.with_optional("key", key()?))?;
            equal(case.get("verdict"), word_in(&result, "verdict")?)
        }
        other => Err(CaseFailure::Case(format!("the op `{other}` is unknown"))),
    }
}

/// The value of a key, if the case has the key.
fn optional<'c>(case: &'c CaseFile, key: &str) -> Option<&'c str> {
    case.has(key).then(|| case.get(key))
}

/// The record of a key in a section.
fn key_of(section: &[u8]) -> Result<&str, String> {
    text(line(section)?)
}

/// The report on a text.
fn parsed(
    tested: &dyn Implementation,
    text: &[u8],
    reading: &str,
    is_one: bool,
) -> Result<Value, CaseFailure> {
    let question = CaseQuestion::new("parse").with_bytes("input", text);
    let question = question.with("reading", reading);
    tested.answer(&question.with_optional("binding", is_one.then_some("one")))
}

/// The text that an implementation wrote.
fn output(result: &Value) -> Result<Vec<u8>, CaseFailure> {
    match rejection_in(result) {
        Some(errors) => Err(unexpected_rejection(errors)),
        None => bytes_in(result, "output"),
    }
}

/// The text that an implementation wrote is the one of the case.
fn writes(case: &CaseFile, result: &Value) -> Judgement {
    same_bytes(case.section("output")?, &output(result)?)
}

/// A result has what the section `json` says, or is the rejection that the case expects.
fn has_json(case: &CaseFile, result: &Value) -> Judgement {
    accepted_or_rejected(case, Some(case.rule()), result, |accepted| {
        match case.optional_json("json")? {
            Some(expected) => subset(&expected, accepted),
            None => Ok(()),
        }
    })
}

/// Judges a result that may be a rejection: `expect: reject` wants the code of the case, and the rule if one is given.
fn accepted_or_rejected(
    case: &CaseFile,
    rule: Option<&str>,
    result: &Value,
    check: impl FnOnce(&Value) -> Judgement,
) -> Judgement {
    let code = case.get("code");
    match (rejection_in(result), case.get("expect") == "reject") {
        (None, false) => check(result),
        (Some(errors), false) => Err(unexpected_rejection(errors)),
        (Some(errors), true) if rule.is_some() => carries(case, errors),
        (Some(errors), true) if has_any(errors, |f| f["code"] == code) => Ok(()),
        (_, true) => {
            let rule = rule.map_or(String::new(), |rule| format!("the rule {rule} and "));
            let expected = format!("a rejection with {rule}the code {code}");
            Err(CaseFailure::mismatch(expected, result))
        }
    }
}

fn unexpected_rejection(errors: &Value) -> CaseFailure {
    CaseFailure::mismatch("no rejection", format_args!("a rejection: {errors}"))
}

/// One of the diagnostics is an error with the rule and the code of the case.
fn carries(case: &CaseFile, errors: &Value) -> Judgement {
    let (rule, code) = (case.rule(), case.get("code"));
    let fits = |f: &Value| f["rule"] == rule && f["code"] == code && f["severity"] == "error";
    match has_any(errors, fits) {
        true => Ok(()),
        false => Err(CaseFailure::mismatch(
            format_args!("an error with the rule {rule} and the code {code}"),
            errors,
        )),
    }
}

fn has_any(list: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(fits))
}

fn parse(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let is_one = case.get("binding") == "one";
    let report = parsed(tested, case.section("input")?, case.get("reading"), is_one)?;
    let envelopes = report.get("envelopes").and_then(Value::as_array);
    let count = envelopes.map_or(0, Vec::len);
    match case.get("expect") {
        "accept" => {
            no_error(&report)?;
            if count == 0 {
                return Err(CaseFailure::mismatch("at least one envelope", &report));
            }
        }
        "reject" => {
            if count != 0 {
                return Err(CaseFailure::mismatch("no envelope", &report));
            }
            carries(case, report.get("errors").unwrap_or(&Value::Null))?;
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
            return Err(CaseFailure::mismatch(
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
            return Err(CaseFailure::mismatch(
                format_args!("a diagnostic of {word}"),
                told_rules(&report),
            ));
        }
    }
    if let Some(rule) = case
        .words("silent")
        .find(|rule| findings(&report).any(|f| f["rule"] == *rule))
    {
        return Err(CaseFailure::mismatch(
            format_args!("no diagnostic of {rule}"),
            told_rules(&report),
        ));
    }
    match case.optional_json("json")? {
        Some(expected) => subset(&expected, &report),
        None => Ok(()),
    }
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

fn no_error(report: &Value) -> Judgement {
    match findings(report).find(|f| f["severity"] == "error") {
        Some(error) => Err(CaseFailure::mismatch("no error", error)),
        None => Ok(()),
    }
}

/// A diagnostic of the rule of the case stands where the case says.
fn place(case: &CaseFile, report: &Value) -> Judgement {
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
    Err(CaseFailure::mismatch(expected, received.join("\n")))
}

fn canonical(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let ask = |text: &[u8]| {
        let question = CaseQuestion::new("canonical").with_bytes("input", text);
        tested.answer(&question)
    };
    let result = ask(case.section("input")?)?;
    accepted_or_rejected(case, None, &result, |result| {
        let form = output(result)?;
        let mut checked = false;
        if let Some(exact) = case.optional("canonical") {
            same_bytes(exact, &form)?;
            checked = true;
        }
        let digest = Digest::of(&form).to_string();
        if case.has("digest") {
            equal(case.get("digest"), &digest)?;
            checked = true;
        }
        // An implementation with a function for the digest shows its result.
        if result.get("digest").is_some() {
            equal(&digest, word_in(result, "digest")?)?;
        }
        for same in case.all("same") {
            same_bytes(&form, &output(&ask(same)?)?)?;
            checked = true;
        }
        for other in case.all("differs") {
            if output(&ask(other)?)? == form {
                return Err(CaseFailure::mismatch(
                    "another canonical form for each section `differs`",
                    format_args!("the same one\n{}", shown(&form)),
                ));
            }
            checked = true;
        }
        match checked {
            true => Ok(()),
            false => Err(CaseFailure::Case("it compares nothing".into())),
        }
    })
}

fn ids(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let count = case.number("count")?;
    let question = CaseQuestion::new("ids").with("form", case.get("form"));
    let result = tested.answer(&question.with("count", count))?;
    let made = words_in(&result, "ids")?;
    if made.len() != count {
        return Err(CaseFailure::mismatch(
            format_args!("{count} ids"),
            format_args!("{} ids", made.len()),
        ));
    }
    for id in &made {
        let form = tested.answer(&CaseQuestion::new("id").with("input", *id))?;
        equal(case.get("form"), word_in(&form, "form")?)?;
    }
    match made.iter().zip(made.iter().skip(1)).find(|(a, b)| a >= b) {
        Some((first, next)) => Err(CaseFailure::mismatch(
            "each id greater than the one before",
            format_args!("{first} and then {next}"),
        )),
        None => Ok(()),
    }
}

fn diagnose(case: &CaseFile, result: &Value) -> Judgement {
    let diagnosis = result["diagnosis"].as_str().unwrap_or("none");
    equal(case.get("diagnosis"), diagnosis)?;
    if case.has("after") {
        equal(case.get("after"), &result["after"].to_string())?;
    }
    if case.has("lines") {
        let lines = case
            .words("lines")
            .map(|n| n.parse().map_err(|_| format!("`lines` has the word `{n}`")));
        let lines: Vec<u64> = lines.collect::<Result<_, _>>()?;
        equal_json(&lines.into(), &result["lines"])?;
    }
    Ok(())
}

fn migrate(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let input = case.section("input")?;
    let question = CaseQuestion::new("migrate").with_bytes("input", input);
    let migrated = output(&tested.answer(&question)?)?;
    if case.has("output") {
        return same_bytes(input, &migrated);
    }
    let report = parsed(tested, &migrated, "strict", false)?;
    no_error(&report)?;
    subset(&case.json("json")?, &report)
}

fn edit(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let change = if case.has("add") { "add" } else { "set" };
    let value = case.get(change);
    let misspelled = || format!("`{change}: {value}` is not NAMESPACE KEY=VALUE");
    let (namespace, field) = value.split_once(' ').ok_or_else(misspelled)?;
    let (key, value) = field.split_once('=').ok_or_else(misspelled)?;
    let question = CaseQuestion::new("edit")
        .with_bytes("input", case.section("input")?)
        .with("change", change)
        .with("namespace", namespace)
        .with("key", key)
        .with("value", value);
    writes(case, &tested.answer(&question)?)
}

fn collate(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let ask = |text: &[u8]| {
        let question = CaseQuestion::new("collate")
            .with_bytes("input", text)
            .with_optional("poll", optional(case, "poll"))
            .with_optional("at", optional(case, "at"));
        tested.answer(&question)
    };
    let input = case.section("input")?;
    let result = ask(input)?;
    accepted_or_rejected(case, Some(case.rule()), &result, |result| {
        let (collation, envelopes) = (value_in(result, "collation")?, output(result)?);
        // The order of the envelopes changes nothing.
        let mut parts: Vec<&str> = text(input)?.split_inclusive("[[END]]\n").collect();
        parts.reverse();
        let again = ask(parts.concat().as_bytes())?;
        if again.get("collation") != Some(collation) || output(&again)? != envelopes {
            return Err(CaseFailure::mismatch(
                format_args!("the same with the envelopes reversed: {collation}"),
                again,
            ));
        }
        if let Some(expected) = case.optional_json("json")? {
            subset(&expected, collation)?;
        }
        match case.optional("output") {
            Some(output) => same_bytes(output, &envelopes),
            None => Ok(()),
        }
    })
}

fn redact(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let names = text(case.optional("names").unwrap_or_default())?;
    let names: Vec<&str> = names.lines().collect();
    let ask = |text: &[u8]| {
        let question = CaseQuestion::new("redact")
            .with_bytes("input", text)
            .with_optional("as", optional(case, "as"))
            .with("names", names.clone())
            .with("only", case.words("only").collect::<Vec<_>>())
            .with("drop_signature", case.has("drop-signature"));
        tested.answer(&question)
    };
    let result = ask(case.section("input")?)?;
    accepted_or_rejected(case, Some(case.rule()), &result, |redacted| {
        writes(case, redacted)?;
        let found = words_in(redacted, "found")?;
        equal(case.get("found"), &found.join(" "))?;
        // RED-002: a second redaction changes nothing.
        let once = output(redacted)?;
        same_bytes(&once, &output(&ask(&once)?)?)
    })
}

fn audit(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let question = CaseQuestion::new("audit").with("what", case.get("what"));
    let result = tested.answer(&question.with("input", case.json("input")?))?;
    let holds = |r: &Value| r.get("holds")?.as_bool();
    let word = match part(&result, "`holds`, true or false", holds)? {
        true => "holds",
        false => "fails",
    };
    if case.get("result") != word {
        return Err(CaseFailure::mismatch(case.get("result"), result));
    }
    match case.optional_json("json")? {
        Some(expected) => subset(&expected, result.get("found").unwrap_or(&json!({}))),
        None => Ok(()),
    }
}

fn consent(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let or = |key, usual| optional(case, key).unwrap_or(usual);
    let signed: Vec<&str> = case.words("signed").collect();
    let question = CaseQuestion::new("consent")
        .with_bytes("input", case.section("input")?)
        .with_bytes("before", case.optional("before").unwrap_or_default())
        .with("before_proof", or("before-proof", "unsigned"))
        .with("proof", or("proof", "unsigned"))
        .with_optional("by", optional(case, "by").filter(|by| *by == "agent"))
        .with("at", or("at", "2026-01-01T00:00:00Z"))
        .with_optional("leaves", optional(case, "leaves"))
        .with("signed", signed)
        .with_optional("border", optional(case, "border").filter(|b| *b == "all"))
        .with_optional("authority", optional(case, "authority"));
    has_json(case, &tested.answer(&question)?)
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

fn equal(expected: &str, came: &str) -> Judgement {
    match expected == came {
        true => Ok(()),
        false => Err(CaseFailure::mismatch(expected, came)),
    }
}

fn equal_json(expected: &Value, came: &Value) -> Judgement {
    match expected == came {
        true => Ok(()),
        false => Err(CaseFailure::mismatch(expected, came)),
    }
}

/// Two texts are the same; else the first line that differs is told, and what stands around it.
fn same_bytes(expected: &[u8], came: &[u8]) -> Judgement {
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
    Err(CaseFailure::mismatch(
        told(&wanted, expected),
        told(&got, came),
    ))
}

/// A text with its lines marked, so that blanks and line ends are seen.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split_inclusive('\n');
    let lines: Vec<String> = lines.map(|l| format!("  |{}", l.escape_debug())).collect();
    lines.join("\n")
}
