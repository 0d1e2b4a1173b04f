//! A program as an [`Implementation`]: each method is a question. `conformance/README.md` defines the questions and the
//! results, in "Running a program against it".

use super::Program;
use crate::fault::Fault;
use crate::judge::{
    Audits, CollateRequest, ConsentSetting, Consents, HopRequest, Implementation, Keys, Outcome,
    Polls, Redact, RedactRequest, RedactedText, Relays, ResolveRequest, SignRequest, Signed,
    VerifyRequest,
};
use crosstalk_envelope::base64;
use serde_json::{Map, Value, json};

/// A question, without its id.
pub(super) struct Question(Map<String, Value>);

impl Question {
    pub(super) fn new(op: &str) -> Self {
        Self(Map::from_iter([("op".to_owned(), Value::from(op))]))
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    fn with_optional(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// A text; one that is not UTF-8 stands in base64 under another key.
    fn bytes(self, key: &str, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.with(key, text),
            Err(_) => self.with(&format!("{key}_base64"), base64::encode(bytes)),
        }
    }

    fn input(self, bytes: &[u8]) -> Self {
        self.bytes("input", bytes)
    }

    /// The line that is sent.
    pub(super) fn line(self, id: u64) -> Vec<u8> {
        let mut object = Map::from_iter([("id".to_owned(), Value::from(id))]);
        object.extend(self.0);
        let mut line = Value::Object(object).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

impl Program {
    /// The result; null if there is none, which the interruption tells.
    fn result(&self, question: Question) -> Value {
        self.ask(question).unwrap_or_default()
    }

    /// The result or the diagnostics of a rejection.
    fn result_or_errors(&self, question: Question) -> Result<Value, Value> {
        let mut result = self.result(question);
        let is_rejected = |errors: &&mut Value| errors.as_array().is_none_or(|e| !e.is_empty());
        match result.get_mut("errors").filter(is_rejected) {
            Some(errors) => Err(errors.take()),
            None => Ok(result),
        }
    }

    /// A text of a result.
    fn text(&self, result: &Value, key: &str) -> Vec<u8> {
        let encoded = || base64::decode(result.get(format!("{key}_base64"))?.as_str()?);
        let text = result.get(key).and_then(Value::as_str);
        let bytes = text.map(|t| t.as_bytes().to_vec()).or_else(encoded);
        self.need(bytes, result, &format!("`{key}`, a text"))
    }

    fn word(&self, result: &Value, key: &str) -> String {
        let word = result.get(key).and_then(Value::as_str).map(str::to_owned);
        self.need(word, result, &format!("`{key}`, a text"))
    }

    fn words(&self, result: &Value, key: &str) -> Vec<String> {
        let list = result.get(key).and_then(Value::as_array);
        let words = list.and_then(|list| {
            let words = list.iter().map(|word| word.as_str().map(str::to_owned));
            words.collect()
        });
        self.need(words, result, &format!("`{key}`, a list of texts"))
    }

    fn value(&self, result: &Value, key: &str) -> Value {
        self.need(result.get(key).cloned(), result, &format!("`{key}`"))
    }

    /// A part of a result. If it is missing, the case can't be judged.
    fn need<T: Default>(&self, part: Option<T>, result: &Value, what: &str) -> T {
        part.unwrap_or_else(|| {
            let expected = format!("a result with {what}");
            self.interrupt(Fault::mismatch(expected, result));
            T::default()
        })
    }

    fn output(&self, question: Question) -> Outcome {
        let result = self.result_or_errors(question)?;
        Ok(self.text(&result, "output"))
    }
}

fn dnssec(is_required: bool) -> Option<&'static str> {
    is_required.then_some("required")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Implementation for Program {
    fn parse(&self, text: &[u8], reading: &str, one: bool) -> Value {
        let question = Question::new("parse").input(text).with("reading", reading);
        self.result(question.with_optional("binding", one.then_some("one")))
    }

    fn canonical(&self, text: &[u8]) -> Outcome {
        self.output(Question::new("canonical").input(text))
    }

    fn fmt(&self, text: &[u8], fence: bool) -> Outcome {
        self.output(Question::new("fmt").input(text).with("fence", fence))
    }

    fn build(&self, json: &[u8]) -> Outcome {
        self.output(Question::new("build").input(json))
    }

    fn address(&self, text: &[u8], schemes: &Value) -> Result<Value, Value> {
        let question = Question::new("address").input(text);
        self.result_or_errors(question.with("schemes", schemes.clone()))
    }

    fn resolve(&self, text: &[u8], request: &ResolveRequest<'_>) -> Value {
        let question = Question::new("resolve")
            .input(text)
            .with("names", request.names.clone())
            .with_optional("domain", request.domain)
            .with_optional("dns", request.dns.clone())
            .with_optional("dnssec", dnssec(request.requires_dnssec));
        self.result(question)
    }

    fn id_form(&self, id: &[u8]) -> String {
        let result = self.result(Question::new("id").input(id));
        self.word(&result, "form")
    }

    fn new_ids(&self, form: &str, count: usize) -> Vec<String> {
        let question = Question::new("ids").with("form", form).with("count", count);
        let result = self.result(question);
        self.words(&result, "ids")
    }

    fn diagnose(&self, text: &[u8]) -> Value {
        self.result(Question::new("diagnose").input(text))
    }

    fn integrity(&self, text: &[u8]) -> Value {
        let result = self.result(Question::new("integrity").input(text));
        self.value(&result, "fields")
    }

    fn migrate(&self, text: &[u8]) -> Outcome {
        self.output(Question::new("migrate").input(text))
    }

    fn edit(&self, text: &[u8], change: &str, block: &str, key: &str, value: &str) -> Outcome {
        let question = Question::new("edit")
            .input(text)
            .with("change", change)
            .with("namespace", block)
            .with("key", key)
            .with("value", value);
        self.output(question)
    }

    fn reply(&self, text: &[u8], kind: &str, code: &str) -> Outcome {
        let question = Question::new("reply").input(text).with("reply", kind);
        let code = Some(code).filter(|code| !code.is_empty());
        self.output(question.with_optional("code", code))
    }

    fn taxonomy(&self) -> Value {
        let result = self.result(Question::new("taxonomy"));
        self.value(&result, "codes")
    }

    fn exit(&self, text: &[u8], reading: &str) -> u8 {
        let question = Question::new("exit").input(text).with("reading", reading);
        let result = self.result(question);
        let code = result.get("exit").and_then(Value::as_u64);
        let code = code.and_then(|code| u8::try_from(code).ok());
        self.need(code, &result, "`exit`, a number from 0 to 255")
    }

    fn interruption(&self) -> Option<Fault> {
        self.take_interruption()
    }
}

impl Redact for Program {
    fn redact(&self, text: &[u8], request: &RedactRequest<'_>) -> Result<RedactedText, Value> {
        let question = Question::new("redact")
            .input(text)
            .with_optional("as", request.envelope.then_some("envelope"))
            .with("names", request.names.clone())
            .with("only", request.only.clone())
            .with("drop_signature", request.drop_signature);
        let result = self.result_or_errors(question)?;
        Ok(RedactedText {
            text: self.text(&result, "output"),
            found: self.words(&result, "found"),
        })
    }
}

impl Keys for Program {
    fn sign(&self, text: &[u8], request: &SignRequest<'_>) -> Result<Signed, Value> {
        let question = Question::new("sign")
            .input(text)
            .with("seed", hex(&request.seed))
            .with("algorithm", request.algorithm)
            .with("pkid", request.pkid)
            .with("at", request.at)
            .with("with_key", request.with_key)
            .with("replace", request.replace);
        let result = self.result_or_errors(question)?;
        Ok(Signed {
            envelope: self.text(&result, "output"),
            bytes: self.text(&result, "signed_bytes"),
        })
    }

    fn verify(&self, text: &[u8], request: &VerifyRequest<'_>) -> Result<Vec<Value>, Value> {
        let question = Question::new("verify")
            .input(text)
            .with("at", request.at)
            .with("trust", request.trust)
            .with_optional("key", request.key)
            .with_optional("dns", request.dns.clone())
            .with_optional("dnssec", dnssec(request.requires_dnssec));
        let result = self.result_or_errors(question)?;
        let verdicts = result.get("verdicts").and_then(Value::as_array).cloned();
        Ok(self.need(verdicts, &result, "`verdicts`, a list"))
    }

    fn key(&self, text: &str) -> Result<Value, Value> {
        self.result_or_errors(Question::new("key").with("input", text))
    }

    fn learn(&self, text: &[u8], trust: &str, at: &str) -> Outcome {
        let question = Question::new("learn").input(text);
        self.output(question.with("trust", trust).with("at", at))
    }

    fn trust_file(&self, text: &str) -> Outcome {
        self.output(Question::new("trust-file").with("input", text))
    }

    fn rc1(&self, text: &[u8], key: Option<&str>) -> String {
        let question = Question::new("rc1").input(text).with_optional("key", key);
        let result = self.result(question);
        self.word(&result, "verdict")
    }
}

impl Polls for Program {
    fn collate(
        &self,
        text: &[u8],
        request: &CollateRequest<'_>,
    ) -> Result<(Value, Vec<u8>), Value> {
        let question = Question::new("collate")
            .input(text)
            .with_optional("poll", request.poll)
            .with_optional("at", request.at);
        let result = self.result_or_errors(question)?;
        let collation = self.value(&result, "collation");
        Ok((collation, self.text(&result, "output")))
    }
}

impl Consents for Program {
    fn consent(&self, text: &[u8], setting: &ConsentSetting<'_>) -> Result<Value, Value> {
        let question = Question::new("consent")
            .input(text)
            .bytes("before", setting.before)
            .with("before_proof", setting.before_proof)
            .with("proof", setting.proof)
            .with_optional("by", setting.is_agent.then_some("agent"))
            .with("at", setting.at)
            .with_optional("leaves", setting.leaves)
            .with("signed", setting.signed.clone())
            .with_optional("border", setting.border.then_some("all"))
            .with_optional("authority", setting.authority);
        self.result_or_errors(question)
    }
}

impl Relays for Program {
    fn hop(&self, text: &[u8], request: &HopRequest<'_>) -> Outcome {
        let question = Question::new("hop")
            .input(text)
            .with("at", request.at)
            .with("by", request.by);
        self.output(match request.key {
            Some((seed, algorithm, pkid)) => question
                .with("seed", hex(&seed))
                .with("algorithm", algorithm)
                .with("pkid", pkid),
            None => question,
        })
    }

    fn check_hop(&self, text: &[u8], key: &str) -> Result<Value, Value> {
        self.result_or_errors(Question::new("check-hop").input(text).with("key", key))
    }

    fn relays(&self, domain: &str, dns: &Value, private: bool) -> Value {
        let question = Question::new("relays").with("input", domain);
        self.result(question.with("dns", dns.clone()).with("private", private))
    }
}

impl Audits for Program {
    fn audit(&self, what: &str, input: &Value) -> Result<Value, Value> {
        let question = Question::new("audit").with("what", what);
        let result = self.result(question.with("input", input.clone()));
        let holds = result.get("holds").and_then(Value::as_bool);
        let found = result.get("found").cloned().unwrap_or_else(|| json!({}));
        match self.need(holds, &result, "`holds`, true or false") {
            true => Ok(found),
            false => Err(found),
        }
    }

    fn trace(&self, text: &[u8], key: Option<&str>) -> Value {
        let question = Question::new("trace").input(text);
        self.result(question.with_optional("key", key))
    }
}
