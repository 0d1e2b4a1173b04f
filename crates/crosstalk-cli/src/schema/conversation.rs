//! The schemas of the conversation commands.

use super::signing::{form, maybe, maybe_object, object, text};
use super::{
    EXPORT, IMPORT, INBOX, MOVE, PASTE, SEARCH, SENT, SENT_MANY, SHOW, THREADS, WAITING, finding,
};
use crate::service::relay::outbox::Reach;
use crosstalk_envelope::Intent;
use crosstalk_protocol::Word;
use crosstalk_protocol::relay::State;
use crosstalk_protocol::store::{Side, ThreadState, Wait, Way};
use serde_json::{Value, json};

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn digest() -> Value {
    json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})
}

/// Why a consent is not enough.
pub(super) fn refusal() -> Value {
    maybe_object(json!({"code": text(), "rule": maybe(), "reason": text()}))
}

pub(super) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn message_fields() -> Value {
    let meanings: Vec<Value> = Intent::ALL.iter().map(|i| json!(i.as_str())).collect();
    let meanings: Vec<Value> = meanings.into_iter().chain([Value::Null]).collect();
    json!({
        "id": text(), "thread": text(), "parent": maybe(), "session": maybe(),
        "from": text(), "to": text(), "user": maybe(), "context": maybe(),
        "intent": maybe(),
        "meaning": {"enum": meanings},
        "side": {"enum": Side::ALL.map(Side::as_str)},
        "way": {"enum": Way::ALL.map(Way::as_str)},
        "waits_for": {"enum": Wait::ALL.map(Wait::as_str)},
        "verdict": {"enum": Word::ALL.map(Word::as_str)},
        "pkid": maybe(),
        "received_at": text(), "written_at": maybe(),
        "digest": digest(),
        "body": text(), "envelope": text(),
        "truncated": {"type": "boolean"},
    })
}

fn message() -> Value {
    object(message_fields())
}

fn thread_fields() -> Value {
    json!({
        "id": text(), "context": maybe(), "session": maybe(), "parties": list(text()),
        "messages": number(), "waiting": number(), "asked": number(),
        "first_at": text(), "last_at": text(), "last": text(), "closed_at": maybe(),
        "state": {"enum": ThreadState::WORDS}, "waits_for": list(text()),
        "failed": list(object(json!({"of": text(), "code": text()}))),
    })
}

fn schema(name: &str) -> Value {
    json!({"const": name})
}

fn sent_fields() -> Value {
    json!({
        "schema": schema(SENT),
        "message": message(),
        "text": text(),
        "primer": {"type": "boolean"},
        "copied": {"enum": ["system", "terminal", null]},
        "relay": super::relay::handed(),
        "withdrawn": maybe_object(json!({
            "consents": list(text()),
            "erased": list(object(json!({"id": text(), "digest": digest()}))),
        })),
    })
}

pub(super) fn sent() -> Value {
    form(
        SENT,
        "What `send`, `reply`, `forward`, `escalate`, `handoff` and `close` print with --json. `text` is what goes into the \
         chat and on the clipboard: the envelope, in a fence if that was asked for, or with the primer in front if `primer` \
         is true. `copied` says how it came on the clipboard, `relay` what became of it at a relay, if it went to one, \
         `withdrawn` what it erased here, if it is a REVOKE.",
        sent_fields(),
    )
}

pub(super) fn sent_many() -> Value {
    form(
        SENT_MANY,
        "What `send`, `forward` and `close` print with --json for several receivers: a crosstalk.sent/1 for each message that is \
         kept, in the order of the receivers; `failed` has the others. The first message that no relay takes is the one on \
         the clipboard.",
        json!({
            "schema": schema(SENT_MANY),
            "thread": text(),
            "messages": list(object(sent_fields())),
            "failed": list(object(json!({"to": text(), "exit": number(), "message": text()}))),
        }),
    )
}

pub(super) fn paste() -> Value {
    let one = object(json!({
        "outcome": {"enum": ["filed", "known", "moved", "conflict", "refused"]},
        "id": text(),
        "message": maybe_object(message_fields()),
        "settles": maybe(),
        "candidates": list(text()),
        "learned": maybe(),
        "repairs": list(finding()),
        "verdict": {"type": "object", "required": ["schema", "verdict", "sentence", "next"]},
        "refusal": refusal(),
    }));
    form(
        PASTE,
        "What `crosstalk paste --json` prints. `verdict` has the form crosstalk.verify/1. `errors` are about what could \
         not be read; `refusal` says why a message is not kept whose consent is not enough. `candidates` are the messages \
         that an answer may mean whose ids are unknown, if several wait for its sender; `moved` says that a message was here \
         and answers another one now.",
        json!({"schema": schema(PASTE), "messages": list(one), "errors": list(finding())}),
    )
}

pub(super) fn moved() -> Value {
    form(
        MOVE,
        "What `crosstalk move --json` prints. `from` is the thread that the message was in, `along` how many messages went \
         with it because they answer it, `settles` the message that it answers and that waits no more, `reopens` the one that \
         waits again.",
        json!({
            "schema": schema(MOVE),
            "moved": {"type": "boolean"},
            "from": text(),
            "message": maybe_object(message_fields()),
            "along": number(),
            "settles": maybe(),
            "reopens": maybe(),
        }),
    )
}

pub(super) fn threads() -> Value {
    let threads = list(object(thread_fields()));
    form(
        THREADS,
        "What `crosstalk threads --json` prints, the thread with the latest message first. `waiting` counts messages that \
         wait for you, `asked` those that wait for the other side. `state` is what has to happen next, `waits_for` names \
         the others who have to act, and `failed` those whose last answer was an ERROR or a NACK.",
        json!({"schema": schema(THREADS), "threads": threads, "more": {"type": "boolean"}}),
    )
}

pub(super) fn show() -> Value {
    form(
        SHOW,
        "What `crosstalk show --json` prints: a message with its thread, or all messages of a thread as they came.",
        json!({"schema": schema(SHOW), "thread": maybe_object(thread_fields()), "messages": list(message())}),
    )
}

pub(super) fn export() -> Value {
    form(
        EXPORT,
        "What `crosstalk export --format json` prints: a thread and all its messages as they came.",
        json!({"schema": schema(EXPORT), "thread": object(thread_fields()), "messages": list(message())}),
    )
}

pub(super) fn inbox() -> Value {
    form(
        INBOX,
        "What `crosstalk inbox --json` prints, the latest message first. `relays` has what waits at the relays of the settings: \
         `inboxes` with the command that fetches the messages, how many are `held` for your decision, and how many there \
         are `to_carry`; `error` says why a relay could not be asked.",
        json!({
            "schema": schema(INBOX), "messages": list(message()), "more": {"type": "boolean"},
            "relays": list(at_relay()),
        }),
    )
}

/// What waits at a relay.
fn at_relay() -> Value {
    let message = object(json!({
        "id": text(), "thread": text(), "from": text(), "to": text(), "intent": maybe(),
        "received_at": text(),
    }));
    let inbox = object(json!({"address": text(), "messages": list(message), "fetch": text()}));
    object(json!({
        "url": text(), "error": maybe(), "inboxes": list(inbox), "held": number(),
        "to_carry": number(),
    }))
}

pub(super) fn waiting() -> Value {
    let states: Vec<&str> = State::ALL
        .map(State::as_str)
        .into_iter()
        .chain(Reach::WORDS)
        .collect();
    let one = object(json!({
        "message": message(), "waits_for": list(text()), "since": text(),
        "delivery": maybe_object(json!({"state": {"enum": states}, "notes": list(text())})),
    }));
    form(
        WAITING,
        "What `crosstalk waiting --json` prints: the messages that you wait for an answer to, those of the thread with the \
         latest message first; `waits_for` names whoever has not answered yet, and `delivery` says how far the message is, if \
         it is not in the hands of the person.",
        json!({"schema": schema(WAITING), "messages": list(one), "more": {"type": "boolean"}}),
    )
}

pub(super) fn search() -> Value {
    form(
        SEARCH,
        "What `crosstalk search --json` prints, the latest message first.",
        json!({
            "schema": schema(SEARCH),
            "query": text(),
            "messages": list(message()),
            "more": {"type": "boolean"},
        }),
    )
}

pub(super) fn import() -> Value {
    let conflict = object(json!({"file": text(), "id": text()}));
    let refused = object(json!({"file": text(), "reason": text()}));
    form(
        IMPORT,
        "What `crosstalk import --json` prints: how many files were read, and what became of their messages.",
        json!({
            "schema": schema(IMPORT),
            "files": number(), "filed": number(), "known": number(),
            "conflicts": list(conflict), "refused": list(refused),
        }),
    )
}
