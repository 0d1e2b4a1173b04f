"""The data that a reader returns: an envelope, its fields with their places, and the report `crosstalk.parse/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from diagnostics import Diagnostic, diagnose, has_errors
from registry import LEGACY_INTENTS
from text import Line, Piece

CORE_HEADERS = ("user", "session", "thread", "parent", "message", "context", "intent")
RESERVED_NAMES = frozenset((*CORE_HEADERS, "meta", "body", "response", "sig"))


@dataclass(slots=True)
class Field:
    """A header, a META key or the signature: `name: value`, with the line that it stands in."""

    name: str
    value: str
    line: Line
    value_offset: int
    """Where the value starts in `line.text`."""

    def at_name(self, rule: str, message: str | None = None) -> Diagnostic:
        return diagnose(rule, self.line.number, self.line.column(0), message)

    def at_value(self, rule: str, message: str | None = None) -> Diagnostic:
        return diagnose(rule, self.line.number, self.line.column(self.value_offset), message)


@dataclass(slots=True)
class Party:
    """The sender or the receiver, with its place."""

    text: str
    line: Line
    offset: int

    def at(self, rule: str, message: str | None = None) -> Diagnostic:
        return diagnose(rule, self.line.number, self.line.column(self.offset), message)


@dataclass(slots=True)
class Block:
    """A META block. `opening` is its `meta:` line; the value of it is the namespace."""

    opening: Field
    fields: list[Field] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return self.opening.value

    def get(self, key: str) -> Field | None:
        """Returns a key, compared with regard to case (ENV-034)."""
        return next((item for item in self.fields if item.name == key), None)


@dataclass(slots=True)
class Envelope:
    """What the lines of one piece say. Only an envelope without errors is complete."""

    piece: Piece
    lines: list[Line]
    sender: Party | None = None
    receiver: Party | None = None
    headers: list[Field] = field(default_factory=list)
    meta: list[Block] = field(default_factory=list)
    body_mark: Field | None = None
    body_lines: list[str] = field(default_factory=list)
    sig: Field | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def is_accepted(self) -> bool:
        return not has_errors(self.diagnostics)

    @property
    def is_response(self) -> bool:
        """Whether this is a v1.0 response."""
        return self.body_mark is not None and self.body_mark.name == "response"

    @property
    def is_signed(self) -> bool:
        return self.sig is not None and self.sig.value != "none"

    @property
    def body(self) -> str:
        """The body text (ENV-043)."""
        return "\n".join(self.body_lines)

    def header_field(self, name: str) -> Field | None:
        return next((item for item in self.headers if item.name == name), None)

    def header(self, name: str) -> str | None:
        found = self.header_field(name)
        return found.value if found else None

    def meta_field(self, namespace: str, key: str) -> Field | None:
        for block in self.meta:
            if block.namespace == namespace and (found := block.get(key)):
                return found
        return None

    @property
    def meaning(self) -> str | None:
        """The meaning of the intent (INT-002, INT-003). A v1.0 response without an intent means RESPOND (ENV-090)."""
        written = self.header("intent")
        if written is None:
            return "RESPOND" if self.is_response else None
        return LEGACY_INTENTS.get(written, written)

    def to_json(self) -> dict[str, Any]:
        assert self.sender and self.receiver
        core = {name: self.header(name) for name in CORE_HEADERS}
        written = core.pop("intent")
        report: dict[str, Any] = {
            "sender": self.sender.text,
            "receiver": self.receiver.text,
            "version": "v1",
            **core,
            "intent": {"written": written, "meaning": self.meaning} if written is not None else None,
            "headers": [{"name": item.name, "value": item.value} for item in self.headers],
            "meta": [
                {
                    "namespace": block.namespace,
                    "fields": [{"key": item.name, "value": item.value} for item in block.fields],
                }
                for block in self.meta
            ],
            "body": self.body,
            "sig": self.sig.value if self.sig else None,
            "repairs": [],
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
        }
        if self.is_response:
            report["body_name"] = "response"
        return report


@dataclass(slots=True)
class Report:
    """The result of reading a text: the accepted envelopes, and what belongs to none of them."""

    envelopes: list[Envelope] = field(default_factory=list)
    errors: list[Diagnostic] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "crosstalk.parse/1",
            "envelopes": [envelope.to_json() for envelope in self.envelopes],
            "errors": [diagnostic.to_json() for diagnostic in self.errors],
        }
