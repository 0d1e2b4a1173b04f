//! Messages of the rc1 test format (SIG-030).

use super::{Verify, report, view};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::json;
use crosstalk_envelope::rc1::{Rc1, Rc1Error, verify};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Document, LineIndex, PublicKey, Reading};
use crosstalk_protocol::Word;
use serde_json::Value;

/// Checks one text.
pub(super) fn one(
    command: &Verify,
    console: &mut Console,
    input: &Input,
    key: Option<&PublicKey>,
) -> Result<Exit, Failure> {
    let text = input
        .text()
        .map_err(|(_, fault)| Failure::of_rule(fault.rule, &fault.message))?;
    let result = verify(text, key);
    let word = match result {
        Ok(_) => Word::Verified,
        Err(_) => Word::NotVerified,
    };
    let told = told(word, &result);
    if command.json {
        let file = command.files.several().then_some(input.name.as_str());
        let report = report::finished(told, &[], &LineIndex::new(text), file)?;
        console.data(json::line(&report)?)?;
    } else {
        command.tell(console, &view::told(word, &told, &input.shown_name()))?;
    }
    if let (true, Ok(verified)) = (command.text, &result) {
        console.text(verified.payload())?;
    }
    Ok(word.into())
}

fn told(word: Word, result: &Result<Rc1, Rc1Error>) -> Value {
    let mut told = report::empty(word);
    let mut set = |name: &str, value: Value| report::set(&mut told, name, value);
    set("rule", rule::RC1.id.into());
    match result {
        Ok(verified) => {
            let key = verified.key();
            let envelope = format!("{}sig: none\n[[END]]\n", verified.payload());
            let document = Document::parse(&envelope, Reading::Paste);
            let known = key.denied().map_or(String::new(), |reason| {
                format!("; that key counts for nothing else: it was {reason}")
            });
            set("body", "intact".into());
            set("algorithm", key.algorithm().as_str().into());
            set("fingerprint", key.fingerprint().to_string().into());
            set("trust", "rc1".into());
            set("sender", document.sender().into());
            set("receiver", document.receiver().into());
            let sentence =
                format!("Signed in the rc1 test format, and nothing was changed{known}.");
            set("sentence", sentence.into());
            set(
                "next",
                "Use it for tests: nothing else counts this form as verified.".into(),
            );
        }
        Err(fault) => {
            let sentence = format!("This is no message of the rc1 test format that fits: {fault}.");
            set("sentence", sentence.into());
            set(
                "next",
                "Don't act on it; check messages of today without --rc1.".into(),
            );
        }
    }
    told
}
