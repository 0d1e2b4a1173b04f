//! Runs the steps of a case that is data.

use super::probe::{
    CaseStep, Probe, acked, allowed, by, encoded, envelope, failed, from_now, listed, need, object,
    receive, rejected, skipped, strict, word,
};
use super::script::{Script, ScriptStep, Texts};
use super::wire::{Credential, SuiteAnswer, SuiteRequest};
use crosstalk_envelope::id::new_ulid;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Builder, CoreHeader, Document, Reading, Timestamp, scan};
use serde_json::{Value, json};
use std::time::Duration;

/// The longest list that a relay gives out at once; one of this length may go on.
const LIST_LIMIT: usize = 500;
const DAY_MS: i64 = 86_400_000;

/// One run of a case.
pub(super) struct Player<'p> {
    probe: &'p Probe,
    variables: Texts,
    /// The names of the tokens that the case made.
    tokens: Vec<String>,
}

impl<'p> Player<'p> {
    pub(super) fn new(probe: &'p Probe) -> Self {
        Self {
            probe,
            variables: Texts::new(),
            tokens: Vec::new(),
        }
    }

    /// Runs all steps, then revokes the tokens that they made.
    pub(super) async fn play(mut self, script: &Script) -> CaseStep {
        if let Some(reason) = &script.needs_token
            && !self.probe.wire.has_token()
        {
            return skipped(reason);
        }
        let ended = self.steps(script).await;
        for name in &self.tokens {
            let request = SuiteRequest::new("DELETE", format!("/crosstalk/tokens/{name}"));
            // One that the case revoked is gone.
            let _ = self.probe.send(request).await;
        }
        ended
    }

    async fn steps(&mut self, script: &Script) -> CaseStep {
        for (name, value) in &script.variables {
            let value = self.fill(value)?;
            self.variables.insert(name.clone(), value);
        }
        for step in &script.steps {
            for value in &step.each {
                match value {
                    Value::Object(all) => {
                        for (name, value) in all {
                            let value = value.as_str().unwrap_or_default().to_owned();
                            self.variables.insert(name.clone(), value);
                        }
                    }
                    other => {
                        let value = other.as_str().unwrap_or_default().to_owned();
                        self.variables.insert("it".into(), value);
                    }
                }
                self.step(step, step.name.as_deref()).await?;
            }
            for number in 1..=step.times.unwrap_or(0) {
                let name = step.name.as_ref().map(|name| format!("{name}{number}"));
                self.step(step, name.as_deref()).await?;
            }
            if step.each.is_empty() && step.times.is_none() {
                self.step(step, step.name.as_deref()).await?;
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &ScriptStep, name: Option<&str>) -> CaseStep {
        if let Some(pause) = step.pause_ms {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        if let Some(what) = &step.token {
            return self.make_token(step, what).await;
        }
        let Some(request) = self.request(step, name)? else {
            return Ok(());
        };
        let sent = self.probe.send(request);
        let answer = match step.within {
            None => sent.await?,
            Some(seconds) => match tokio::time::timeout(Duration::from_secs(seconds), sent).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let got = format!("no answer for {seconds} s");
                    return failed("the answer at once", got);
                }
            },
        };
        for (status, reason) in &step.skip {
            let is_meant = match status.strip_prefix('!') {
                Some(other) => answer.status.to_string() != other,
                None => answer.status.to_string() == *status,
            };
            if is_meant {
                return skipped(self.fill(reason)?);
            }
        }
        match (self.judge(step, &answer, name), &step.or_skip) {
            (Err(_), Some(reason)) => skipped(self.fill(reason)?),
            (judged, _) => judged,
        }
    }

    /// Makes a token; an optional one is not needed where the suite has none itself.
    async fn make_token(&mut self, step: &ScriptStep, what: &str) -> CaseStep {
        if step.optional && !self.probe.wire.has_token() {
            self.variables.insert(what.to_owned(), "own".into());
            return Ok(());
        }
        let role = step.role.as_deref().unwrap_or("agent");
        let addresses = step.addresses.iter().map(|a| self.fill(a));
        let addresses: Vec<String> = addresses.collect::<CaseStep<_>>()?;
        let (name, secret) = make_token(self.probe, what, role, &addresses).await?;
        self.tokens.push(name.clone());
        self.variables.insert(format!("{what}.name"), name);
        self.variables.insert(what.to_owned(), secret);
        Ok(())
    }

    /// The request of a step; none if it only writes an envelope.
    fn request(&mut self, step: &ScriptStep, name: Option<&str>) -> CaseStep<Option<SuiteRequest>> {
        let mut accept = step.accept.clone();
        let mut request = if let Some(line) = &step.request {
            let (method, path) = line.split_once(' ').unwrap_or(("GET", line));
            let mut request = SuiteRequest::new(method, self.fill_with(path, encoded)?);
            if let Some(body) = &step.body {
                request = request.body(self.fill(body)?);
            }
            request
        } else if let Some(address) = &step.inbox {
            accept = Some("application/json".into());
            SuiteRequest::get(self.fill_with(&format!("/crosstalk/inbox?for={address}"), encoded)?)
        } else if let (Some(_), Some(of)) = (&step.state, &step.of) {
            accept = Some("application/json".into());
            let path = format!("/crosstalk/messages/{{{of}.id}}/status");
            SuiteRequest::get(self.fill_with(&path, encoded)?)
        } else {
            let text = match &step.post {
                Some(text) => self.changed(step, self.fill(text)?)?,
                None => self.write(step, name)?,
            };
            if step.write.is_some() {
                return Ok(None);
            }
            match step.headers.contains_key("Content-Type") {
                true => SuiteRequest::new("POST", "/crosstalk/receive").body(text),
                false => receive(text),
            }
        };
        let has_json = step.json.is_some() || !step.expect.is_empty();
        if accept.is_none() && has_json && step.refused.is_none() {
            accept = Some("application/json".into());
        }
        if let Some(kind) = accept {
            request = request.accept(&self.fill(&kind)?);
        }
        if let Some(value) = &step.json {
            request = request.json(&self.fill_value(value)?);
        }
        for (name, value) in &step.headers {
            let value = self.fill(value)?;
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        Ok(Some(match &step.by {
            None => request,
            Some(token) => match self.fill(token)?.as_str() {
                "own" => request,
                "nobody" => request.by(Credential::None),
                token => by(token, request),
            },
        }))
    }

    /// Writes the envelope of a step, and remembers it.
    fn write(&mut self, step: &ScriptStep, name: Option<&str>) -> CaseStep<String> {
        let intent = step.write.as_ref().or(step.send.as_ref());
        let intent = self.fill(intent.map_or("REQUEST", String::as_str))?;
        let from = self.fill(step.from.as_deref().unwrap_or("{@a}"))?;
        let to = self.fill(step.to.as_deref().unwrap_or("{@b}"))?;
        let mut change: Vec<Box<dyn FnOnce(Builder) -> Builder>> = Vec::new();
        for (core, value) in [
            (CoreHeader::Thread, &step.thread),
            (CoreHeader::Message, &step.message),
            (CoreHeader::Parent, &step.parent),
            (CoreHeader::Session, &step.session),
        ] {
            if let Some(value) = value {
                let value = self.fill(value)?;
                change.push(Box::new(move |b| b.core(core, value)));
            }
        }
        if let Some(body) = &step.body {
            let body = self.fill(body)?;
            change.push(Box::new(move |b| b.body(body)));
        }
        for (name, value) in &step.header {
            let (name, value) = (name.clone(), self.fill(value)?);
            change.push(Box::new(move |b| b.header(name, value)));
        }
        for (namespace, keys) in &step.meta {
            for (key, value) in keys {
                let (namespace, key, value) = (namespace.clone(), key.clone(), self.fill(value)?);
                change.push(Box::new(move |b| b.meta(&namespace, key, value)));
            }
        }
        let letter = self.probe.letter(&intent, &from, &to, |builder| {
            change.into_iter().fold(builder, |b, change| change(b))
        })?;
        if to.starts_with("claude://conform/") {
            self.probe.noted(to);
        }
        let text = self.changed(step, letter.text)?;
        if let Some(name) = name {
            let digest = Document::parse(&text, Reading::Strict).digest();
            for (key, value) in [
                ("id", letter.id),
                ("thread", letter.thread),
                ("digest", digest.map(|d| d.to_string()).unwrap_or_default()),
                ("raw", Digest::of(text.as_bytes()).to_string()),
                ("text", text.clone()),
            ] {
                self.variables.insert(format!("{name}.{key}"), value);
            }
        }
        Ok(text)
    }

    /// A text with header lines left out and passages replaced.
    fn changed(&self, step: &ScriptStep, text: String) -> CaseStep<String> {
        let mut text = text;
        if !step.without.is_empty() {
            let is_left_out = |line: &str| {
                let name = line.split_once(": ").map(|(name, _)| name);
                name.is_some_and(|name| step.without.iter().any(|w| w == name))
            };
            let lines = text.split_inclusive('\n').filter(|line| !is_left_out(line));
            text = lines.collect();
        }
        for (old, new) in &step.replace {
            text = text.replace(&self.fill(old)?, &self.fill(new)?);
        }
        Ok(text)
    }

    /// Checks an answer, and remembers what the step names.
    fn judge(&mut self, step: &ScriptStep, answer: &SuiteAnswer, name: Option<&str>) -> CaseStep {
        let is_message = step.send.is_some() || step.post.is_some();
        let mut document = None;
        if let Some(expected) = &step.refused {
            let (status, code) = expected.split_once(' ').unwrap_or((expected, ""));
            let Some(code) = ErrorCode::from_wire(code) else {
                return fault(expected);
            };
            document = Some(rejected(answer, status.parse().unwrap_or(0), code)?);
        } else if let Some(status) = &step.status {
            let is_fine = match status {
                Value::Array(list) => list.contains(&json!(answer.status)),
                Value::String(_) => is_fitting(status, Some(&json!(answer.status.to_string()))),
                one => *one == json!(answer.status),
            };
            answer.require(is_fine, status.to_string())?;
        } else if is_message {
            document = Some(acked(answer)?);
        } else {
            answer.has_status(200)?;
        }
        for (header, want) in &step.head {
            self.fits(header, want, answer.header(header))?;
        }
        if let Some(want) = &step.text {
            self.fits("the text", want, &answer.text())?;
        }
        if let Some(other) = &step.same_as {
            let wanted = self.fill(&format!("{{{other}.answer}}"))?;
            super::probe::same("answer", &wanted, &answer.text())?;
        }
        let value = self.judge_json(step, answer)?;
        self.judge_file(step, answer)?;
        if let Some(pointer) = &step.envelope_at {
            let found = self.at(&value, pointer)?.unwrap_or_default();
            document = Some(strict(found.as_str().unwrap_or_default())?);
        } else if document.is_none() && (!step.envelope.is_empty()) {
            document = Some(envelope(answer)?);
        }
        for (key, want) in &step.envelope {
            let got = document.as_ref().and_then(|d| field(d, key));
            self.fits_value(key, &json!(want), got.map(Value::String).as_ref())?;
        }
        if let Some(name) = name {
            let text = answer.text().into_owned();
            self.variables.insert(format!("{name}.answer"), text);
        }
        for (name, source) in &step.save {
            let found = match source.strip_prefix("head ") {
                Some(header) => Some(answer.header(header).to_owned()),
                None if source.starts_with('/') => self.at(&value, source)?.map(|v| plain(&v)),
                None => document.as_ref().and_then(|d| field(d, source)),
            };
            match found {
                Some(found) => drop(self.variables.insert(name.clone(), found)),
                None => return failed(format!("an answer with {source}"), answer.shown()),
            }
        }
        Ok(())
    }

    /// Checks a JSON object; null if the step expects none.
    fn judge_json(&self, step: &ScriptStep, answer: &SuiteAnswer) -> CaseStep<Value> {
        let mut expected: Vec<(String, Value)> = Vec::new();
        if let Some(ids) = &step.ids {
            expected.push(("/messages/*/id".into(), ids.clone()));
        }
        if let Some(state) = &step.state {
            let to = step.to.as_deref().unwrap_or("{@b}");
            expected.push((format!("/deliveries/to={to}/state"), json!(state)));
        }
        expected.extend(step.expect.iter().map(|(k, v)| (k.clone(), v.clone())));
        let is_saved = step.save.values().any(|source| source.starts_with('/'));
        let is_plain = step.refused.is_none() && step.status.is_none();
        let is_asked = step.json.is_some() || step.accept.as_deref() == Some("application/json");
        let is_object = step.inbox.is_some() || step.envelope_at.is_some() || is_saved;
        if expected.is_empty() && !is_object && !(is_plain && is_asked) {
            return Ok(Value::Null);
        }
        let value = object(answer, answer.status)?;
        if step.inbox.is_some() {
            listed(&value)?;
        }
        for (pointer, want) in &expected {
            let got = self.at(&value, pointer)?;
            self.fits_value(pointer, want, got.as_ref())?;
        }
        Ok(value)
    }

    /// Checks a file of envelopes: these messages, and nothing that can't be read.
    fn judge_file(&self, step: &ScriptStep, answer: &SuiteAnswer) -> CaseStep {
        let Some(wanted) = &step.file else {
            return Ok(());
        };
        let text = answer.text();
        let found = scan(&text, Reading::Strict);
        let ids = found.documents.iter();
        let ids: Vec<&str> = ids.filter_map(|d| d.header(CoreHeader::Message)).collect();
        answer.require(found.rejected.is_empty(), "a file of envelopes")?;
        self.fits_value("the messages of the file", wanted, Some(&json!(ids)))
    }

    /// The value at a pointer: `*` takes all of a list, `key=text` the one of a list that has this text.
    fn at(&self, value: &Value, pointer: &str) -> CaseStep<Option<Value>> {
        let mut parts = Vec::new();
        for part in pointer.split('/').skip(1) {
            parts.push(self.fill(part)?);
        }
        Ok(find(value, &parts))
    }

    /// Compares a text with what is expected: one thing, or each of a list.
    fn fits(&self, what: &str, want: &Value, got: &str) -> CaseStep {
        match want {
            Value::Array(all) => all.iter().try_for_each(|want| self.fits(what, want, got)),
            one => self.fits_value(what, one, Some(&json!(got))),
        }
    }

    /// Compares a value with what is expected.
    fn fits_value(&self, what: &str, want: &Value, got: Option<&Value>) -> CaseStep {
        let want = self.fill_value(want)?;
        if is_too_long(&want, got) {
            return skipped("the list is too long to see all of it");
        }
        let shown = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        need(
            is_fitting(&want, got),
            format!("{}: {}", self.fill(what)?, shown(&want)),
            format!("{}: {}", self.fill(what)?, got.map_or("none".into(), shown)),
        )
    }

    fn fill_value(&self, value: &Value) -> CaseStep<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill(text)?),
            Value::Array(list) => {
                let list = list.iter().map(|v| self.fill_value(v));
                Value::Array(list.collect::<CaseStep<_>>()?)
            }
            Value::Object(all) => {
                let all = all.iter();
                let all = all.map(|(k, v)| Ok((k.clone(), self.fill_value(v)?)));
                Value::Object(all.collect::<CaseStep<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn fill(&self, text: &str) -> CaseStep<String> {
        self.fill_with(text, str::to_owned)
    }

    /// A text with each `{name}` replaced by its value; `{{` is one brace.
    fn fill_with(&self, text: &str, write: impl Fn(&str) -> String) -> CaseStep<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('{') {
                out.push('{');
                rest = after;
                continue;
            }
            let Some((name, after)) = after.split_once('}') else {
                return fault(text);
            };
            match name.strip_prefix('=') {
                Some(name) => out.push_str(&self.value(name)?),
                None => out.push_str(&write(&self.value(name)?)),
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of a name.
    fn value(&self, name: &str) -> CaseStep<String> {
        if let Some(value) = self.variables.get(name) {
            return Ok(value.clone());
        }
        if let Some(who) = name.strip_prefix('@') {
            return Ok(self.probe.address(who));
        }
        if let Some(seconds) = name.strip_prefix("now+") {
            return Ok(from_now(seconds.parse().unwrap_or(0)).to_string());
        }
        let (form, rest) = name.split_once([':', ' ']).unwrap_or((name, ""));
        Ok(match form {
            "person" => self.probe.person(rest),
            "word" => self.probe.word(rest),
            "letters" => self.probe.word(rest).replace('-', ""),
            "new-id" => new_ulid(),
            "origin" => self.probe.wire.base.origin(),
            "repeat" => {
                let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
                text.repeat(number.parse().unwrap_or(0))
            }
            _ => return fault(name),
        })
    }
}

fn fault<T>(text: &str) -> CaseStep<T> {
    let got = format!("a fault of the suite: {text}");
    failed("a case that can be read", got)
}

/// A field of an envelope: a header, `namespace.Key`, or one of `sender`, `receiver`, `body`, `digest`.
fn field(document: &Document<'_>, key: &str) -> Option<String> {
    match key {
        "sender" => Some(document.sender().to_owned()),
        "receiver" => Some(document.receiver().to_owned()),
        "body" => Some(document.body_text()),
        "digest" => document.digest().ok().map(|d| d.to_string()),
        _ => match key.split_once('.') {
            Some((namespace, key)) => document.meta(namespace, key).map(str::to_owned),
            None => {
                let core = CoreHeader::ALL.iter().find(|core| core.as_str() == key)?;
                document.header(*core).map(str::to_owned)
            }
        },
    }
}

fn find(value: &Value, parts: &[String]) -> Option<Value> {
    let Some((first, rest)) = parts.split_first() else {
        return Some(value.clone());
    };
    let next = match value {
        Value::Array(list) if first == "*" => {
            let all = list.iter().map(|v| find(v, rest).unwrap_or_default());
            return Some(Value::Array(all.collect()));
        }
        Value::Array(list) => match first.split_once('=') {
            Some((key, text)) => list.iter().find(|v| word(v, key) == text)?,
            None => list.get(first.parse::<usize>().ok()?)?,
        },
        other => other.get(first)?,
    };
    find(next, rest)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The condition in `<…>`: its name and its argument.
fn condition(want: &Value) -> Option<(&str, &str)> {
    let inner = want.as_str()?.strip_prefix('<')?.strip_suffix('>')?;
    Some(inner.split_once(' ').unwrap_or((inner, "")))
}

/// Whether something is not seen in a list that may go on.
fn is_too_long(want: &Value, got: Option<&Value>) -> bool {
    let list = got.and_then(Value::as_array);
    matches!(condition(want), Some(("includes" | "excludes", text))
        if list.is_some_and(|l| l.len() >= LIST_LIMIT && !l.contains(&json!(text))))
}

fn is_fitting(want: &Value, got: Option<&Value>) -> bool {
    if let Some((name, argument)) = condition(want) {
        return holds(name, argument, got.unwrap_or(&Value::Null));
    }
    match (want, got) {
        (Value::Array(want), Some(Value::Array(got))) => match want.split_first() {
            Some((first, want)) if first == "<any-order>" => {
                let sorted = |list: &[Value]| {
                    let mut texts: Vec<String> = list.iter().map(plain).collect();
                    texts.sort();
                    texts
                };
                sorted(want) == sorted(got)
            }
            _ => {
                let mut pairs = want.iter().zip(got);
                want.len() == got.len() && pairs.all(|(want, got)| is_fitting(want, Some(got)))
            }
        },
        (want, got) => got == Some(want),
    }
}

fn holds(name: &str, argument: &str, got: &Value) -> bool {
    let text = got.as_str().unwrap_or_default();
    let list = got.as_array().map(Vec::as_slice).unwrap_or_default();
    let time = Timestamp::parse(text);
    match name {
        "some" => !text.is_empty(),
        "none" => got.is_null(),
        "empty" => got.is_null() || (text.is_empty() && got.is_string()) || *got == json!([]),
        "number" => got.is_u64() || text.parse::<u64>().is_ok(),
        "list" => got.is_array(),
        "length" => got.is_array() && list.len().to_string() == argument,
        "includes" => list.contains(&json!(argument)),
        "excludes" => got.is_array() && !list.contains(&json!(argument)),
        "time" => time.is_some() && text.ends_with('Z'),
        "today" => time.is_some_and(|t| (t.as_millis() - from_now(0).as_millis()).abs() < DAY_MS),
        "not-before" => time.is_some_and(|t| Timestamp::parse(argument).is_some_and(|o| o <= t)),
        "more-than" => text.parse::<u64>().ok() > argument.parse::<u64>().ok(),
        "envelope" => strict(text).is_ok(),
        "has" => text.contains(argument),
        "lacks" => !text.contains(argument),
        "starts" => text.starts_with(argument),
        "once" => text.matches(argument).count() == 1,
        "not" => text != argument,
        "lists" => text.split(',').any(|word| word.trim() == argument),
        "type" => {
            let kind = text.to_ascii_lowercase().replace(' ', "");
            let bare = kind.split(';').next().unwrap_or_default();
            argument == if argument.contains(';') { &kind } else { bare }
        }
        "one-of" => argument.split(' ').any(|word| word == text),
        _ => false,
    }
}

/// A new token for some addresses; the name and the secret.
pub(super) async fn make_token(
    p: &Probe,
    what: &str,
    role: &str,
    addresses: &[String],
) -> CaseStep<(String, String)> {
    if !p.wire.has_token() {
        // The first token of a relay that needs none would lock its owner out.
        return skipped("it makes tokens, which it does only with a token of an administrator");
    }
    let name = p.word(what);
    let wanted = json!({"name": name, "role": role, "addresses": addresses});
    let request = SuiteRequest::new("POST", "/crosstalk/tokens").json(&wanted);
    let answer = p.send(request.accept("application/json")).await?;
    allowed(&answer, "make tokens")?;
    let made = object(&answer, 201)?;
    let token = word(&made, "token").to_owned();
    need(
        !token.is_empty(),
        "an object with `token`",
        made.to_string(),
    )?;
    Ok((name, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_compared() {
        let value = json!({"list": [{"id": "a", "n": 1}, {"id": "b/c", "n": 2}]});
        let at = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|p| (*p).to_owned()).collect();
            find(&value, &parts)
        };
        assert_eq!(at(&["list", "*", "id"]), Some(json!(["a", "b/c"])));
        assert_eq!(at(&["list", "id=b/c", "n"]), Some(json!(2)));
        assert_eq!(at(&["list", "0", "n"]), Some(json!(1)));
        assert_eq!(at(&["list", "id=x", "n"]), None);
        let fits = |want: Value, got: Value| is_fitting(&want, Some(&got));
        assert!(fits(json!(["<any-order>", "a", "b"]), json!(["b", "a"])));
        assert!(!fits(json!(["a", "b"]), json!(["b", "a"])));
        assert!(fits(json!(["<has x>"]), json!(["axb"])) && !fits(json!(["<has x>"]), json!([])));
        assert!(
            fits(json!("<more-than 7>"), json!("8")) && !fits(json!("<more-than 7>"), json!("7"))
        );
        assert!(is_fitting(&json!("<none>"), None) && is_fitting(&json!("<empty>"), None));
        assert!(!fits(json!("<unknown>"), json!("x")));
        assert!(is_fitting(&json!(2), Some(&json!(2))) && !is_fitting(&json!("2"), None));
    }
}
