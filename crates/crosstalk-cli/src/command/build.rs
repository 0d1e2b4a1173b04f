//! `crosstalk build`: envelopes from JSON, so that any language can write them.

use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{ErrorCode, Intent, IntentField, fence, id, json};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::PathBuf;

/// Write envelopes from JSON
///
/// Reads one message, a list of messages, or what `crosstalk parse --json` prints; `crosstalk schema` is the
/// schema. Needed are sender, receiver, user, context, intent, and a session or a thread. `intent` may be a
/// word, `headers` and `meta` may be objects. Nothing is written if one message can't be.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk build --ids < message.json\n  echo '{\"sender\":\"CLAUDE\", \"receiver\":\"CHATGPT\", \"user\":\"kalle\",\n    \"context\":\"auth\", \"intent\":\"REQUEST\", \"body\":\"Should we use JWT?\"}' |\n    crosstalk build --ids --fence"
)]
pub(crate) struct Build {
    /// The JSON; `-` or none is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Add a thread and a message id where there is none; messages of one session get one thread
    #[arg(long)]
    ids: bool,
    /// Put each envelope into a code fence
    #[arg(long)]
    fence: bool,
}

impl Build {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read(&self.file, console)?;
        let name = input.shown_name();
        let format =
            |message: String| Failure::Refused(ErrorCode::Format, format!("{name}: {message}"));
        let text = input.text().map_err(|(text, fault)| {
            let place = fault.position(&text);
            let code = fault.code().unwrap_or(ErrorCode::Format);
            let (line, column) = (place.line, place.column);
            Failure::Refused(code, format!("{name}:{line}:{column}: {}", fault.message))
        })?;
        let mut value: Value =
            serde_json::from_str(text).map_err(|e| format(format!("this is not JSON: {e}")))?;
        check_versions(&mut value)?;
        if self.ids {
            add_ids(&mut value);
        }
        let builders = json::builders(&value.to_string()).map_err(format)?;
        let mut envelopes = Vec::with_capacity(builders.len());
        let mut exit = Exit::SUCCESS;
        for (number, builder) in (1..).zip(&builders) {
            match builder.build() {
                Ok(text) if self.fence => envelopes.push(fence(&text)),
                Ok(text) => envelopes.push(text),
                Err(fault) => {
                    exit = exit.worst(Exit::of(&fault.diagnostics));
                    for finding in fault.diagnostics.iter().filter(|d| d.is_error()) {
                        let word = styled(RED, "error");
                        let (rule, what) = (finding.rule.id, escape(&finding.message));
                        let code = finding.code().map_or("", |c| c.as_str());
                        let text = format!(
                            "{word}[{rule} {code}]: {name}: message {number}: {what}\n  help: {}\n",
                            finding.help()
                        );
                        console.talk(&text)?;
                    }
                }
            }
        }
        if exit == Exit::SUCCESS {
            console.text(&envelopes.join("\n"))?;
        }
        Ok(exit)
    }
}

/// The messages of any of the forms that `build` reads.
fn messages(value: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let messages = if value.get("envelopes").is_some() {
        value.get_mut("envelopes")
    } else {
        Some(value)
    };
    let list = match messages {
        Some(Value::Array(items)) => items.as_mut_slice(),
        Some(one) => std::slice::from_mut(one),
        None => &mut [],
    };
    list.iter_mut().filter_map(Value::as_object_mut)
}

/// Another version is not a malformed message, but one that is not supported (ENV-013).
fn check_versions(value: &mut Value) -> Result<(), Failure> {
    let other = messages(value)
        .filter_map(|m| m.get("version").and_then(Value::as_str))
        .find(|v| !v.is_empty() && *v != "v1");
    match other {
        Some(version) => Err(Failure::Refused(
            ErrorCode::Unsupported,
            format!("the version {version} is not supported: this program writes v1"),
        )),
        None => Ok(()),
    }
}

fn add_ids(value: &mut Value) {
    let mut threads: HashMap<String, String> = HashMap::new();
    for message in messages(value) {
        let has = |name: &str| message.get(name).is_some_and(|v| !v.is_null());
        let (has_thread, has_message, has_parent) = (has("thread"), has("message"), has("parent"));
        if !has_thread {
            let session = message.get("session").and_then(Value::as_str);
            let thread = match session {
                Some(session) => threads
                    .entry(session.to_owned())
                    .or_insert_with(id::new_ulid)
                    .clone(),
                None => id::new_ulid(),
            };
            message.insert("thread".into(), thread.into());
        }
        // An answer with an id has to name its parent (INT-010); without a parent, it gets none.
        if !has_message && (has_parent || !answers(message)) {
            message.insert("message".into(), id::new_ulid().into());
        }
    }
}

fn answers(message: &Map<String, Value>) -> bool {
    let intent = message.get("intent");
    let written = intent.and_then(|i| i.as_str().or_else(|| i.get("written")?.as_str()));
    let response = message.get("body_name").and_then(Value::as_str) == Some("response");
    match written {
        Some(written) => matches!(
            IntentField::parse(written).meaning,
            Some(Intent::Respond | Intent::Ack | Intent::Nack)
        ),
        None => response,
    }
}
