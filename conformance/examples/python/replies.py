"""Answers and exit codes: ERROR, ACK, NACK and RESPOND (ERR-001 to ERR-005, TRN-004)."""

from __future__ import annotations

from typing import Iterable

import address
import ids
import reader
from diagnostics import Diagnostic, reject
from envelope import CORE_HEADERS, Envelope
from registry import ERRORS
from writer import Message, Pairs, write

ANSWERING_USER = "brother"
NACK_REASON = "not now"
RESPOND_BODY = "Done."


def taxonomy() -> list[dict[str, str | int]]:
    """Returns the error taxonomy in the order of the registry (ERR-001)."""
    return [{"code": error.code, "http": error.http, "exit": error.exit} for error in ERRORS.values()]


def exit_code(diagnostics: Iterable[Diagnostic]) -> int:
    """Returns the largest exit code of all errors, or 0 (TRN-004)."""
    return max((ERRORS[item.code].exit for item in diagnostics if item.is_error and item.code), default=0)


def _answer(original: Envelope, intent: str, user: str) -> Message:
    """Makes the form that all answers to a message have. Ids that the original lacks are generated (ENV-091)."""
    assert original.sender and original.receiver
    values = {
        "user": user,
        "session": original.header("session"),
        "thread": original.header("thread") or ids.generate(),
        "parent": original.header("message") or ids.generate(),
        "message": ids.generate(),
        # A v1.0 response may lack its context; every answer needs one (ENV-025).
        "context": original.header("context") or "unknown",
        "intent": intent,
    }
    headers = [(name, value) for name, value in values.items() if value is not None]
    return Message(original.receiver.text, original.sender.text, headers)


def _error_block(code: str, reason: str, original_intent: str | None) -> Pairs:
    block = [("Code", code), ("Reason", reason)]
    if original_intent:
        block.append(("Original-Intent", original_intent))
    return block


def reply(data: bytes, kind: str, code: str | None = None) -> str:
    """Writes the answer `error`, `ack`, `nack`, `respond` or `system` to a text."""
    if kind == "system":
        return write(_system_error(data))
    original = reader.require_one(data)
    match kind:
        case "error":
            if code not in ERRORS:
                raise reject("ERR-001")
            message = _answer(original, "ERROR", "system")
            summary = ERRORS[code].summary
            message.meta = [("error", _error_block(code, summary, original.header("intent")))]
            message.body = f"{summary}.\nCheck the message and send it again."
        case "ack":
            message = _answer(original, "ACK", ANSWERING_USER)
        case "nack":
            message = _answer(original, "NACK", ANSWERING_USER)
            message.meta = [("refusal", [("Reason", NACK_REASON)])]
        case "respond":
            message = _answer(original, "RESPOND", ANSWERING_USER)
            message.body = RESPOND_BODY
        case _:
            raise ValueError(f"unknown reply {kind}")
    return write(message)


def _readable_headers(draft: Envelope) -> dict[str, str]:
    """Returns the core headers that no error is about. Of a header that occurs twice, neither value counts."""
    faulty = {item.line for item in draft.diagnostics if item.is_error}
    values: dict[str, str] = {}
    doubtful: set[str] = set()
    for item in draft.headers:
        if item.line.number in faulty:
            doubtful.add(item.name)
        elif item.name in CORE_HEADERS:
            values[item.name] = item.value
    return {name: value for name, value in values.items() if name not in doubtful}


def _system_error(data: bytes) -> Message:
    """Makes the ERROR to a text that the strict reading rejects (ERR-003)."""
    draft = reader.read_draft(data)
    diagnostics = draft if isinstance(draft, list) else draft.diagnostics
    first = next((item for item in diagnostics if item.is_error), None)
    if first is None or first.code is None:
        raise reject("ERR-003", "The strict reading accepts this text")

    known: dict[str, str] = {}
    receiver = "UNKNOWN"
    if isinstance(draft, Envelope):
        known = _readable_headers(draft)
        if draft.sender and not address.INVISIBLE_IN_ADDRESS.search(draft.sender.text):
            receiver = draft.sender.text
    values = {
        "user": "system",
        "session": known.get("session"),
        "thread": known.get("thread"),
        "parent": known.get("message"),
        "message": ids.generate(),
        "context": known.get("context", "error"),
        "intent": "ERROR",
    }
    if values["session"] is None and values["thread"] is None:
        values["thread"] = ids.generate()
    block = _error_block(first.code, first.message, known.get("intent"))
    block += [("Rule", first.rule), ("Line", str(first.line)), ("Column", str(first.column))]
    advice = f" To fix it: {first.help}." if first.help else ""
    return Message(
        sender="SYSTEM",
        receiver=receiver,
        headers=[(name, value) for name, value in values.items() if value is not None],
        meta=[("error", block)],
        body=f"Line {first.line}, column {first.column}: {first.message}.{advice}",
    )
