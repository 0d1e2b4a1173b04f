"""Lints: what is allowed and yet worth a remark (ENV-028, LNT-001 to LNT-008).

LNT-005 needs the scripts and confusables of Unicode, which the standard library does not have. This module derives
the script of a letter from its Unicode name, and knows the look-alikes of a few alphabets: enough for common attacks,
and less than UTS 39 asks for.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Iterator

import address
import ids
import meta
from diagnostics import Diagnostic, diagnose
from envelope import Envelope
from registry import NAMESPACES, SCHEMES
from text import BIDI_CONTROL, INVISIBLE, Line

_PASCAL_CASE = re.compile(r"[A-Z0-9][A-Za-z0-9]*(?:-[A-Z0-9][A-Za-z0-9]*)*")
_ASCII_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")

# Scripts that are written together: UTS 39, section 5.1.
_WRITTEN_TOGETHER = {
    "CJK": {"Jpan", "Kore", "Hanb", "Hani"},
    "HIRAGANA": {"Jpan", "Hira"},
    "KATAKANA": {"Jpan", "Kana"},
    "HANGUL": {"Kore", "Hang"},
    "BOPOMOFO": {"Hanb", "Bopo"},
}
_SCRIPTLESS = frozenset("MODIFIER MATHEMATICAL MICRO DOUBLE-STRUCK SCRIPT BLACK-LETTER ALEF".split())
_WIDTHS = frozenset("FULLWIDTH HALFWIDTH CIRCLED PARENTHESIZED SQUARED".split())

_LOOKS_LIKE_ASCII = frozenset(
    "АВЕЅІЈКМНОРСТУХЬԌԚԜҮабгеѕіјӏоорсухһԁԛԝүґѵѴѡ"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳοινρυσγαϲϒ"  # Greek
    "ՍՏՕօսոհցզյլ"  # Armenian
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏙᏚᏞᏟᏢᏦᏧᏳᏴ"  # Cherokee
    "ıɑɡɩʋℓ"  # Latin beyond ASCII
)


def check(envelope: Envelope) -> Iterator[Diagnostic]:
    yield from _check_session(envelope)
    yield from _check_ids(envelope)
    yield from _check_meta_names(envelope)
    yield from _check_schemes(envelope)
    yield from _check_names(envelope)
    for line in envelope.lines:
        if not line.raw.isascii():
            yield from _check_characters(line)


def _check_session(envelope: Envelope) -> Iterator[Diagnostic]:
    session = envelope.header_field("session")
    if session is None or not session.value:
        return
    time, space, word = session.value.partition(" ")
    if not (space and meta.is_time(time, needs_hour=True) and re.fullmatch(r"\S+", word)):
        yield session.at_value("ENV-028")


def _check_ids(envelope: Envelope) -> Iterator[Diagnostic]:
    for name in ("thread", "parent", "message"):
        item = envelope.header_field(name)
        if item and item.value and ids.form_of(item.value) == "opaque":
            yield item.at_value("LNT-001")


def _check_meta_names(envelope: Envelope) -> Iterator[Diagnostic]:
    for block in envelope.meta:
        namespace = NAMESPACES.get(block.namespace)
        if namespace is None and not block.namespace.startswith("custom-"):
            yield block.opening.at_value("LNT-003")
        for item in block.fields:
            has_prefix = item.name.startswith("X-")
            if not has_prefix and not _PASCAL_CASE.fullmatch(item.name):
                yield item.at_name("LNT-002")
            if namespace and not has_prefix and namespace.key_type(item.name) is None:
                yield item.at_name("LNT-004")


def _is_unregistered(text: str) -> bool:
    scheme = address.split(text).scheme
    return scheme is not None and scheme.lower() not in SCHEMES


def _check_schemes(envelope: Envelope) -> Iterator[Diagnostic]:
    for party in (envelope.sender, envelope.receiver):
        if party and _is_unregistered(party.text):
            yield party.at("LNT-008")
    for item, key_type in meta.typed_fields(envelope):
        if key_type and key_type.type in meta.ADDRESS_TYPES:
            if any(map(_is_unregistered, meta.read_addresses(item.value, key_type.type))):
                yield item.at_value("LNT-008")


def _scripts(character: str) -> set[str] | None:
    """Returns the scripts that a letter belongs to, or None for a character that goes with every script."""
    if not character.isalpha():
        return None
    words = unicodedata.name(character, "").split()
    if words and words[0] in _WIDTHS:
        words = words[1:]
    if not words or words[0] in _SCRIPTLESS:
        return None
    return _WRITTEN_TOGETHER.get(words[0], {words[0]})


def _is_ascii_in_disguise(character: str) -> bool:
    """Whether a letter beyond ASCII is an ASCII letter or digit in NFKC."""
    if character.isascii() or not character.isalpha():
        return False
    plain = unicodedata.normalize("NFKC", character)
    return len(plain) == 1 and plain.isascii() and plain.isalnum()


def _imitates(name: str) -> bool:
    """LNT-005, for one name or one part of a URL."""
    if name.isascii():
        return False
    scripts = [found for character in name if (found := _scripts(character)) is not None]
    if scripts and not set.intersection(*scripts):
        return True
    letters = [character for character in name if character.isalpha()]
    if letters and all(letter in _LOOKS_LIKE_ASCII for letter in letters):
        return True
    return any(map(_is_ascii_in_disguise, name))


def _check_names(envelope: Envelope) -> Iterator[Diagnostic]:
    for party in (envelope.sender, envelope.receiver):
        if party:
            is_url = address.split(party.text).is_url
            parts = _ASCII_PUNCTUATION.split(party.text) if is_url else [party.text]
            if any(map(_imitates, parts)):
                yield party.at("LNT-005")
    user = envelope.header_field("user")
    if user and _imitates(user.value):
        yield user.at_value("LNT-005")


def _joins_beyond_ascii(text: str, offset: int) -> bool:
    """Whether a joiner stands between two characters beyond ASCII, where some scripts and emoji need it."""
    if text[offset] not in "\u200c\u200d" or not 0 < offset < len(text) - 1:
        return False
    return not text[offset - 1].isascii() and not text[offset + 1].isascii()


def _check_characters(line: Line) -> Iterator[Diagnostic]:
    for match in BIDI_CONTROL.finditer(line.raw):
        message = f"U+{ord(match[0]):04X} changes the direction of the text"
        yield diagnose("LNT-006", line.number, line.raw_column(match.start()), message)
    for match in INVISIBLE.finditer(line.raw):
        if not _joins_beyond_ascii(line.raw, match.start()):
            message = f"U+{ord(match[0]):04X} is invisible"
            yield diagnose("LNT-007", line.number, line.raw_column(match.start()), message)
