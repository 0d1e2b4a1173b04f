"""META values: flows and types (MET-001, MET-002), attachments (MET-012, MET-013), denied keys (MET-023)."""

from __future__ import annotations

import base64
import calendar
import hashlib
import re
from typing import Callable, Iterator, TypeAlias, TypeVar

import address
from diagnostics import Diagnostic
from envelope import Envelope, Field
from registry import DENIED_KEYS, ERRORS, NAMESPACES, KeyType
from text import is_base64

# --- Flows

Flow: TypeAlias = "str | list[Flow] | dict[str, Flow]"

Item = TypeVar("Item")

MAX_FLOW_LEVELS = 16
_JSON_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class NotAFlow(ValueError):
    """The text is not a flow (MET-001)."""


class _FlowReader:
    """A reader of flows by recursive descent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def read(self) -> Flow:
        value = self.collection(1)
        self.skip_space()
        if self.position != len(self.text):
            raise NotAFlow("text follows the closing bracket")
        return value

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_space(self) -> None:
        while self.peek() in (" ", "\t"):
            self.position += 1

    def collection(self, level: int) -> Flow:
        if level > MAX_FLOW_LEVELS:
            raise NotAFlow("too many levels")
        if self.peek() == "{":
            return dict(self.items("}", lambda: self.pair(level)))
        return list(self.items("]", lambda: self.item(level)))

    def items(self, closing: str, read_item: Callable[[], Item]) -> Iterator[Item]:
        """Reads items up to the closing bracket. A comma may stand before it."""
        self.position += 1
        self.skip_space()
        while self.peek() != closing:
            yield read_item()
            self.skip_space()
            if self.peek() == ",":
                self.position += 1
                self.skip_space()
            elif self.peek() != closing:
                raise NotAFlow("a comma or a closing bracket is missing")
        self.position += 1

    def item(self, level: int) -> Flow:
        match self.peek():
            case "[" | "{":
                return self.collection(level + 1)
            case "'":
                return self.single_quoted()
            case '"':
                return self.double_quoted()
            case _:
                return self.plain()

    def pair(self, level: int) -> tuple[str, Flow]:
        if self.peek() in ("'", '"'):
            key = self.single_quoted() if self.peek() == "'" else self.double_quoted()
            self.skip_space()
            if self.peek() != ":":
                raise NotAFlow("a colon is missing")
            self.position += 1
        else:
            match = re.compile(r"([^,\[\]{}]*?):(?=[ \t])").match(self.text, self.position)
            if match is None or not match[1].strip(" \t"):
                raise NotAFlow("a key is missing")
            key = match[1].strip(" \t")
            self.position = match.end()
        self.skip_space()
        return key, self.item(level)

    def plain(self) -> str:
        start = self.position
        while self.peek() and self.peek() not in ",[]{}":
            self.position += 1
        text = self.text[start : self.position].strip(" \t")
        if not text:
            raise NotAFlow("an item is empty")
        return text

    def single_quoted(self) -> str:
        match = re.compile("'((?:[^']|'')*)'").match(self.text, self.position)
        if match is None:
            raise NotAFlow("a quote is not closed")
        self.position = match.end()
        return match[1].replace("''", "'")

    def double_quoted(self) -> str:
        self.position += 1
        units: list[str] = []
        while (character := self.peek()) != '"':
            self.position += 1
            if not character:
                raise NotAFlow("a quote is not closed")
            units.append(self.escape() if character == "\\" else character)
        self.position += 1
        try:
            # A pair of \u escapes for one character joins here; half a pair fails.
            return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise NotAFlow("half a surrogate pair") from None

    def escape(self) -> str:
        character = self.peek()
        self.position += 1
        if character == "u":
            digits = self.text[self.position : self.position + 4]
            if not re.fullmatch("[0-9A-Fa-f]{4}", digits):
                raise NotAFlow("four hex digits are missing")
            self.position += 4
            return chr(int(digits, 16))
        if character not in _JSON_ESCAPES:
            raise NotAFlow("unknown escape")
        return _JSON_ESCAPES[character]


def starts_like_flow(value: str) -> bool:
    return value.startswith(("[", "{"))


def read_flow(value: str) -> Flow | None:
    """Reads a flow. Returns None if the value is none."""
    try:
        return _FlowReader(value).read()
    except NotAFlow:
        return None


def read_texts(value: str, separators: str) -> list[str] | None:
    """Reads texts that are a flow list, or that `separators`, a pattern, separate. Returns None for another form."""
    if starts_like_flow(value):
        flow = read_flow(value)
        if not isinstance(flow, list):
            return None
        texts = [item for item in flow if isinstance(item, str)]
        return texts if len(texts) == len(flow) else None
    return [text for part in re.split(separators, value) if (text := part.strip(" \t"))]


def read_list(value: str) -> list[str] | None:
    """Reads the type `list`."""
    return read_texts(value, ",")


# --- Types

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d+)?)?)?(?:Z|[+-](\d\d):(\d\d)))?", re.ASCII
)
_DIGEST = re.compile("sha256:[0-9A-Fa-f]{64}")
_KEY = re.compile(r"[a-z0-9][a-z0-9-]*:pk=(.*)")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*")


def is_time(text: str, *, needs_hour: bool = False) -> bool:
    """Whether `text` has the type `time`; with `needs_hour`, whether it is exact to the hour or finer."""
    match = _TIME.fullmatch(text)
    if match is None or (needs_hour and match[4] is None):
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12:
        return False
    days = 29 if month == 2 and calendar.isleap(year) else calendar.mdays[month]
    hour, minute, second, offset_hour, offset_minute = (int(match[group] or 0) for group in (5, 6, 7, 8, 9))
    return (
        1 <= day <= days
        and hour <= 23
        and minute <= 59
        and second <= 59
        and offset_hour <= 23
        and offset_minute <= 59
    )


def _is_integer(text: str) -> bool:
    digits = re.fullmatch("0*([0-9]{1,20})", text)
    return digits is not None and int(digits[1]) < 2**64


def _is_consent(text: str, words: tuple[str, ...]) -> bool:
    for word in words:
        rest = text.removeprefix(word)
        if rest != text and (not rest or (rest[0] == "_" and is_time(rest[1:]))):
            return True
    return False


def _is_key(text: str) -> bool:
    """Whether `text` has the form of a record. Whether it is a key is a question of L2 (SIG-020, SIG-021)."""
    match = _KEY.fullmatch(text)
    return match is not None and is_base64(match[1])


def _are_words(text: str, words: tuple[str, ...]) -> bool:
    found = read_texts(text, r"[,;| \t]")
    return bool(found) and all(word in words for word in found)


def read_addresses(value: str, type_name: str) -> list[str]:
    """Returns the addresses of a value of the type `address`, `addresses` or `route`."""
    match type_name:
        case "address":
            return [value]
        case "addresses":
            return read_list(value) or []
        case _:
            return [step.strip(" \t") for step in re.split("→|->", value)]


def _are_addresses(value: str, type_name: str) -> bool:
    found = read_addresses(value, type_name)
    # ADR-009 has a diagnostic of its own.
    return bool(found) and all(address.find_fault(text, with_invisible=False) is None for text in found)


_TYPES: dict[str, Callable[[str, KeyType], bool]] = {
    "text": lambda value, _: True,
    "word": lambda value, key: value in key.values,
    "words": lambda value, key: _are_words(value, key.values),
    "list": lambda value, _: bool(read_list(value)),
    "options": lambda value, _: len(read_texts(value, r"\|") or ()) >= 2,
    "time": lambda value, _: is_time(value),
    "consent": lambda value, key: _is_consent(value, key.values),
    "address": lambda value, key: _are_addresses(value, key.type),
    "addresses": lambda value, key: _are_addresses(value, key.type),
    "route": lambda value, key: _are_addresses(value, key.type),
    "error-code": lambda value, _: value in ERRORS,
    "integer": lambda value, _: _is_integer(value),
    "digest": lambda value, _: _DIGEST.fullmatch(value) is not None,
    "base64": lambda value, _: is_base64(value),
    "key": lambda value, _: _is_key(value),
}

ADDRESS_TYPES = frozenset(("address", "addresses", "route"))


def _check_attachment(item: Field) -> Iterator[Diagnostic]:
    """MET-012 for the form, MET-013 for embedded bytes."""
    media_type, *parameters = item.value.split(";")
    if not _MEDIA_TYPE.fullmatch(media_type.strip(" \t")):
        yield item.at_value("MET-012", "The value does not begin with a media type")
        return
    values: dict[str, str] = {}
    for parameter in parameters:
        name, equals, value = parameter.strip(" \t").partition("=")
        if not equals or not name or name in values:
            yield item.at_value("MET-012", f"The parameter `{name}` has no value, or occurs twice")
            return
        values[name] = value
    digest, data = values.get("digest"), values.get("data")
    if digest is None and data is None:
        yield item.at_value("MET-012", "There is neither a digest nor data")
        return
    if digest is not None and not (_DIGEST.fullmatch(digest) or re.fullmatch("(?!sha256:)[a-z0-9-]+:.+", digest)):
        yield item.at_value("MET-012", "The digest is malformed")
        return
    if "name" in values and not values["name"]:
        yield item.at_value("MET-012", "The name is empty")
    if data is None:
        return
    encoded = data.removeprefix("base64,")
    if encoded == data or not is_base64(encoded):
        yield item.at_value("MET-012", "The data are not base64")
    elif digest is not None and digest.startswith("sha256:"):
        if hashlib.sha256(base64.b64decode(encoded)).hexdigest() != digest[7:].lower():
            yield item.at_value("MET-013")


def typed_fields(envelope: Envelope) -> Iterator[tuple[Field, KeyType | None]]:
    """Yields every key of every META block with its type; None for an unknown namespace or key."""
    for block in envelope.meta:
        namespace = NAMESPACES.get(block.namespace)
        for item in block.fields:
            yield item, namespace.key_type(item.name) if namespace else None


def check_values(envelope: Envelope) -> Iterator[Diagnostic]:
    """Reports values that do not have the type of their key. They are kept as they are."""
    for item, key_type in typed_fields(envelope):
        is_text = key_type is not None and key_type.type == "text"
        if starts_like_flow(item.value) and not is_text and read_flow(item.value) is None:
            yield item.at_value("MET-001")
        if key_type is None:
            continue
        if key_type.type == "attachment":
            yield from _check_attachment(item)
        elif not _TYPES[key_type.type](item.value, key_type):
            yield item.at_value("MET-002", f"The value does not have the type `{key_type.type}`")
        elif key_type.type == "key" and item.value in DENIED_KEYS:
            yield item.at_value("MET-023", "This key is on the deny list and identifies nobody")


def check_addresses(envelope: Envelope) -> Iterator[Diagnostic]:
    """Applies the ADR rules to the direction line, and ADR-009 to META values too."""
    for party in (envelope.sender, envelope.receiver):
        assert party is not None
        if address.INVISIBLE_IN_ADDRESS.search(party.text):
            yield party.at("ADR-009")
        if fault := address.find_fault(party.text, with_invisible=False):
            yield party.at(fault)
    for item, key_type in typed_fields(envelope):
        if key_type and key_type.type in ADDRESS_TYPES:
            texts = (item.value, *read_addresses(item.value, key_type.type))
            if any(address.INVISIBLE_IN_ADDRESS.search(text) for text in texts):
                yield item.at_value("ADR-009")
