"""Writing: the layout of ENV-092, messages from JSON, edits that leave other bytes alone (ENV-080), and migration from
v1.0 (ENV-091, ENV-093).

Every function reads its own result before it returns it. So nothing leaves this module that the strict reading rejects.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import ids
import reader
from diagnostics import Rejection, reject
from envelope import CORE_HEADERS, RESERVED_NAMES, Block, Envelope
from registry import LEGACY_INTENTS
from text import FORBIDDEN, WHITE_SPACE, Line, to_nfc

Pairs = list[tuple[str, str]]


@dataclass
class Message:
    """What a writer writes. `headers` has the core headers and the unknown ones, in any order."""

    sender: str
    receiver: str
    headers: Pairs
    meta: list[tuple[str, Pairs]] = field(default_factory=list)
    body: str = ""
    body_name: str = "body"
    sig: str = "none"

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Message:
        assert envelope.sender and envelope.receiver and envelope.body_mark
        return cls(
            sender=envelope.sender.text,
            receiver=envelope.receiver.text,
            headers=[(item.name, item.value) for item in envelope.headers],
            meta=[(block.namespace, [(item.name, item.value) for item in block.fields]) for block in envelope.meta],
            body=envelope.body,
            body_name=envelope.body_mark.name,
            sig=envelope.sig.value if envelope.sig else "none",
        )


# --- The layout of ENV-092


def _check_value(value: str) -> str:
    """Rejects a value that does not fit into one line (ENV-003), and trims it."""
    if "\n" in value or FORBIDDEN.search(value):
        raise reject("ENV-003", "The value contains a line end or a forbidden character")
    return to_nfc(value).strip(WHITE_SPACE)


def _write_field(name: str, value: str) -> str:
    # Without this check, a name such as `a: b` or a key `body` would be read back as something else.
    if not reader.is_name(name):
        raise reject("ENV-020", f"`{name}` is not a name")
    value = _check_value(value)
    return f"{name}: {value}" if value else f"{name}:"


def _check_unreserved(name: str, rule: str) -> None:
    if name.lower() in RESERVED_NAMES:
        raise reject("ENV-021" if name not in RESERVED_NAMES else rule, f"`{name}` is a reserved name")


def _write_headers(headers: Pairs) -> list[str]:
    known = [(name, value) for core in CORE_HEADERS for name, value in headers if name == core]
    unknown = [(name, value) for name, value in headers if name not in CORE_HEADERS]
    for name, _ in unknown:
        _check_unreserved(name, "ENV-020")
    return [_write_field(name, value) for name, value in known + unknown]


def _write_body(body: str) -> list[str]:
    if FORBIDDEN.search(body):
        raise reject("ENV-003", "The body contains a forbidden character")
    lines = [to_nfc(line).rstrip(WHITE_SPACE) for line in body.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return [f"  {line}" if line else "" for line in lines]


def write(message: Message) -> str:
    """Writes a message in the layout of ENV-092, or raises a rejection."""
    lines = [f"[[{_check_value(message.sender)}→{_check_value(message.receiver)} v1]]"]
    lines += _write_headers(message.headers)
    for namespace, pairs in message.meta:
        lines += ["", f"meta: {_check_value(namespace)}"]
        for key, value in pairs:
            _check_unreserved(key, "ENV-027")
            lines.append(_write_field(key, value))
    if message.meta:
        lines.append("")
    lines += [f"{message.body_name}: |", *_write_body(message.body)]
    lines += [f"sig: {_check_value(message.sig)}", reader.END_LINE, ""]
    text = "\n".join(lines)
    reader.require_one(text.encode())
    return text


# --- From JSON


def _pairs(value: Any, name_key: str) -> Pairs:
    """Reads an object, or a list of `{"name" or "key", "value"}`."""
    if isinstance(value, dict):
        return [(name, text) for name, text in value.items() if text is not None]
    return [(item[name_key], item["value"]) for item in value or []]


def _blocks(value: Any) -> list[tuple[str, Pairs]]:
    if isinstance(value, dict):
        return [(namespace, _pairs(fields, "key")) for namespace, fields in value.items()]
    return [(block["namespace"], _pairs(block.get("fields"), "key")) for block in value or []]


def message_from_json(data: dict[str, Any]) -> Message:
    """Reads a message with the keys of an envelope in the report `crosstalk.parse/1`."""
    if data.get("version", "v1") not in ("v1", None):
        raise reject("ENV-013")
    intent = data.get("intent")
    if isinstance(intent, dict):
        intent = intent.get("written")
    core = {name: data[name] for name in CORE_HEADERS[:-1] if data.get(name) is not None}
    if intent is not None:
        core["intent"] = intent
    headers = list(core.items())
    # The report lists the core headers twice: by themselves and among the headers.
    headers += [(name, value) for name, value in _pairs(data.get("headers"), "name") if core.get(name) != value]
    return Message(
        sender=data.get("sender") or "",
        receiver=data.get("receiver") or "",
        headers=headers,
        meta=_blocks(data.get("meta")),
        body=data.get("body") or "",
        body_name=data.get("body_name") or "body",
        sig=data.get("sig") or "none",
    )


def build(text: str) -> str:
    """Writes the message that a JSON text describes, or raises a rejection."""
    try:
        message = message_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise reject("ENV-010", f"This is not a message: {error}") from error
    texts = [message.sender, message.receiver, message.body, message.body_name, message.sig]
    texts += [part for pair in message.headers for part in pair]
    texts += [part for namespace, pairs in message.meta for part in (namespace, *sum(pairs, ()))]
    if not all(isinstance(part, str) for part in texts):
        raise reject("ENV-020", "A value is not a text")
    if message.body_name not in ("body", "response"):
        raise reject("ENV-040", f"`{message.body_name}` does not open a body")
    return write(message)


# --- Edits


def _join(lines: list[Line]) -> str:
    return "".join(line.raw + line.end for line in lines)


def _insert(envelope: Envelope, at: Line, added: str) -> str:
    """Returns the text with `added` directly above the line `at`."""
    index = at.number - envelope.lines[0].number
    return _join(envelope.lines[:index]) + added + _join(envelope.lines[index:])


def _add_block(envelope: Envelope, namespace: str, key: str, value: str) -> str:
    assert envelope.body_mark
    mark = envelope.body_mark.line
    above = envelope.lines[mark.number - envelope.lines[0].number - 1]
    rows = [f"meta: {namespace}", _write_field(key, value), ""]
    if not above.is_blank:
        rows.insert(0, "")
    return _insert(envelope, mark, "".join(row + mark.end for row in rows))


def _set_key(envelope: Envelope, block: Block, key: str, value: str) -> str:
    written = _write_field(key, value)
    if found := block.get(key):
        line = found.line
        # Names and colons are ASCII, so this prefix is the same in the line as received.
        start = found.value_offset
        rest = line.raw[start:].rstrip(WHITE_SPACE)
        changed = line.raw[:start] + _check_value(value) + line.raw[start + len(rest) :] if rest else written
        return _join([replace(item, raw=changed) if item is line else item for item in envelope.lines])
    last = block.fields[-1].line if block.fields else block.opening.line
    below = envelope.lines[last.number - envelope.lines[0].number + 1]
    return _insert(envelope, below, written + last.end)


def edit(data: bytes, change: str, namespace: str, key: str, value: str) -> str:
    """Adds a block (`add`) or sets a key (`set`). No other byte changes (ENV-080)."""
    envelope = reader.require_one(data, apply_intents=False)
    _check_unreserved(key, "ENV-027")
    blocks = [block for block in envelope.meta if block.namespace == namespace]
    if change == "set" and blocks:
        text = _set_key(envelope, next((block for block in blocks if block.get(key)), blocks[-1]), key, value)
    else:
        text = _add_block(envelope, _check_value(namespace), key, value)
    mark = "\ufeff" if envelope.piece.skipped else ""
    reader.require_one((mark + text).encode(), apply_intents=False)
    return mark + text


# --- Migration

ANSWERS = frozenset(("RESPOND", "ACK", "NACK"))


def _is_v10(envelope: Envelope) -> bool:
    if envelope.is_response:
        return True
    has_ids = any(envelope.header(name) is not None for name in ("thread", "parent", "message"))
    return not has_ids and not envelope.meta


def _migrate_one(envelope: Envelope, threads: dict[str, str]) -> Message:
    message = Message.from_envelope(envelope)
    headers = dict(message.headers)
    meaning = envelope.meaning
    written = headers.get("intent")
    assert meaning is not None
    if "thread" not in headers:
        # ENV-091: messages of one session belong to one thread.
        headers["thread"] = threads.setdefault(headers["session"], ids.generate())
    if "message" not in headers and not (meaning in ANSWERS and "parent" not in headers):
        headers["message"] = ids.generate()
    headers["intent"] = meaning
    for name in ("user", "context"):
        headers.setdefault(name, "unknown")
    if written in LEGACY_INTENTS:
        original = ("Original-Intent", written)
        for namespace, pairs in message.meta:
            if namespace == "custom-v10":
                pairs.append(original)
                break
        else:
            message.meta.append(("custom-v10", [original]))
    return replace(message, headers=list(headers.items()), body_name="body")


def migrate(data: bytes) -> str:
    """Migrates the v1.0 envelopes of a file to v1.1. Every other byte stays as it is."""
    report = reader.read_file(data)
    if report.errors:
        raise Rejection(report.errors)
    text = data.decode()
    offset = 1 if text.startswith("\ufeff") else 0
    threads: dict[str, str] = {}
    parts: list[str] = []
    position = 0
    for envelope in report.envelopes:
        if not _is_v10(envelope) or envelope.is_signed:
            continue
        start = envelope.piece.start + offset
        parts += [text[position:start], write(_migrate_one(envelope, threads))]
        position = start + len(envelope.piece.text)
    return "".join(parts) + text[position:]
