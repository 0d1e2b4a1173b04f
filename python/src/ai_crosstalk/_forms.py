"""The forms of results, as types. Each is the JSON form of the command line or of a relay; the tests compare them with its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Union

__all__ = [
    "Acknowledged",
    "AddressFinding",
    "AddressReport",
    "Algorithm",
    "Attachment",
    "Envelope",
    "Field",
    "Finding",
    "FindingCounts",
    "GeneratedKey",
    "Header",
    "InboxMessage",
    "InboxPage",
    "Intent",
    "KeyChange",
    "LintReport",
    "MessageInput",
    "MetaBlock",
    "ParseReport",
    "PersonalData",
    "Reading",
    "ReceivedEnvelope",
    "RedactReport",
    "RelayMessage",
    "SendResult",
    "Severity",
    "ThreadMessage",
    "ThreadSummary",
    "ThreadTree",
    "TrustedKey",
    "Verdict",
    "VerifyReport",
]

Reading = Literal["strict", "paste"]
Algorithm = Literal["ed25519", "secp256r1"]
Severity = Literal["error", "warning", "repair", "note"]


class Finding(TypedDict):
    """A diagnostic of a reader."""

    rule: str
    severity: Severity
    code: str | None
    line: int
    column: int
    message: str
    help: str


class Intent(TypedDict):
    """The word in the text, and its meaning in v1.1."""

    written: str
    meaning: str


class Header(TypedDict):
    """A line above META."""

    name: str
    value: str


class Field(TypedDict):
    """A line of a META block."""

    key: str
    value: str


class MetaBlock(TypedDict):
    """A META block."""

    namespace: str
    fields: list[Field]


class ReceivedEnvelope(TypedDict):
    """An envelope in the answer of a relay."""

    sender: str
    receiver: str
    version: Literal["v1"]
    user: str | None
    session: str | None
    thread: str | None
    parent: str | None
    message: str | None
    context: str | None
    intent: Intent | None
    headers: list[Header]
    meta: list[MetaBlock]
    body: str
    sig: str | None


class _Response(TypedDict, total=False):
    body_name: Literal["response"]


class Envelope(ReceivedEnvelope, _Response):
    """An envelope that was read, with what the reader repaired and found."""

    repairs: list[Finding]
    diagnostics: list[Finding]


class ParseReport(TypedDict):
    """crosstalk.parse/1: the result of `parse`. `errors` belong to no accepted envelope."""

    schema: Literal["crosstalk.parse/1"]
    envelopes: list[Envelope]
    errors: list[Finding]


class _NeededOfMessage(TypedDict):
    sender: str
    receiver: str


class MessageInput(_NeededOfMessage, total=False):
    """A message for `build` and `send`. Missing ids are generated."""

    version: Literal["v1"]
    user: str | None
    session: str | None
    thread: str | None
    parent: str | None
    message: str | None
    context: str | None
    intent: Union[str, Intent, None]
    headers: Union[Sequence[Header], Mapping[str, str]]
    meta: Union[Sequence[MetaBlock], Mapping[str, Mapping[str, str]]]
    body: str
    body_name: Literal["response"]
    sig: str | None
    repairs: list[Finding]
    diagnostics: list[Finding]


class FindingCounts(TypedDict):
    """How many findings there are of each severity."""

    error: int
    warning: int
    repair: int
    note: int


class LintReport(TypedDict):
    """crosstalk.lint/1: the result of `lint`."""

    schema: Literal["crosstalk.lint/1"]
    envelopes: int
    counts: FindingCounts
    diagnostics: list[Finding]


class AddressFinding(TypedDict):
    """A finding about an address."""

    rule: str
    severity: Literal["error", "warning", "note"]
    code: str | None
    message: str
    help: str


class AddressReport(TypedDict):
    """crosstalk.address/1: the result of `parse_address`."""

    schema: Literal["crosstalk.address/1"]
    address: str
    valid: bool
    kind: Literal["name", "person", "assistant", "mail", "phone", "tool", "room", "custom"]
    registered: bool
    scheme: str | None
    authority: str | None
    user: str | None
    host: str | None
    path: str
    query: str | None
    fragment: str | None
    diagnostics: list[AddressFinding]


class GeneratedKey(TypedDict):
    """A new key. `record` is its public part in one line, `did` its did:key id."""

    private_key_pem: str
    public_key_pem: str
    record: str
    did: str


class TrustedKey(TypedDict):
    """A key that the caller trusts, for a key id: PEM, or a record such as `ed25519:pk=…`."""

    id: str
    key: str


class KeyChange(TypedDict):
    """The fingerprints of two keys for one id."""

    known: str
    offered: str


Verdict = Literal[
    "verified", "first-contact", "unbound", "unsigned", "unknown-key", "damaged", "not-verified", "revoked"
]


class VerifyReport(TypedDict):
    """crosstalk.verify/1: the result of `verify` for one envelope. Act on `envelope`, the text that was signed."""

    schema: Literal["crosstalk.verify/1"]
    verdict: Verdict
    body: Literal["intact", "reflowed", "truncated", "altered", None]
    lines: list[int]
    after: int | None
    pkid: str | None
    algorithm: str | None
    fingerprint: str | None
    trust: Literal["dns", "pinned", "did", "given", "first-contact", "unsigned", "unknown-key", "rc1", None]
    since: str | None
    dnssec: Literal["secure", "insecure", "indeterminate", None]
    sender: str | None
    receiver: str | None
    message: str | None
    signed_at: str | None
    sentence: str
    next: str
    rule: str | None
    code: str | None
    retry: bool
    key_change: KeyChange | None
    envelope: str | None
    restored: str | None
    repairs: list[Finding]


class PersonalData(TypedDict):
    """A place of the text that was read, and what stands there now."""

    kind: Literal["iban", "card", "nin", "email", "ip", "phone", "name"]
    line: int
    column: int
    placeholder: str


class RedactReport(TypedDict):
    """crosstalk.redact/1: the result of `redact`."""

    schema: Literal["crosstalk.redact/1"]
    text: str
    found: list[PersonalData]
    fields: list[Literal["iban", "card", "nin", "email", "ip", "phone", "name"]]


# Of a relay


class SendResult(TypedDict):
    """crosstalk.receive/1: the receipt of the relay, and the answer of the recipient if one came."""

    schema: Literal["crosstalk.receive/1"]
    ack: ReceivedEnvelope
    answer: ReceivedEnvelope | None


# `from` is a word of Python, so these two can't be written as classes.
_Stored = TypedDict(
    "_Stored",
    {"id": str, "thread": str, "from": str, "to": str, "intent": Union[str, None], "received_at": str, "envelope": str},
)
_History = TypedDict("_History", {"history": list[str], "withheld": int}, total=False)


class _Verified(TypedDict, total=False):
    signature: Literal["verified", "first-contact", "unbound", "unsigned", "unknown-key"]
    pkid: str


class InboxMessage(_Stored, _History, _Verified):
    """A message in an inbox."""

    state: str
    attempt: int


class _Progress(TypedDict, total=False):
    state: str
    attempt: int


class RelayMessage(_Stored, _History, _Verified, _Progress):
    """A message that a relay has."""


class InboxPage(TypedDict):
    """Messages of an inbox, the oldest first. `cursor` stands after the last one."""

    messages: list[InboxMessage]
    cursor: str


class Acknowledged(TypedDict):
    """Ids whose messages have the state now, and ids that are not in this inbox."""

    changed: list[str]
    unknown: list[str]


class ThreadSummary(TypedDict):
    """A conversation."""

    id: str
    context: str | None
    parties: list[str]
    open: bool
    messages: int
    updated_at: str


class ThreadMessage(RelayMessage):
    """A message of a thread with its answers."""

    answers: list[ThreadMessage]


class ThreadTree(TypedDict):
    """A conversation as a tree. `more` says that it has more messages than fit into one answer."""

    thread: ThreadSummary
    messages: list[ThreadMessage]
    more: bool


class Attachment(TypedDict):
    """An attachment that a relay has."""

    digest: str
    size: int
