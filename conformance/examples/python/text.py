"""Text before grammar: UTF-8, lines, limits, and sets of characters (ENV-001 to ENV-004, ENV-060 to ENV-063)."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass
from typing import Iterator

from diagnostics import Diagnostic, diagnose

MAX_ENVELOPE_BYTES = 1_048_576
MAX_LINE_BYTES = 65_536
MAX_HEAD_LINES = 256
MAX_FILE_BYTES = 67_108_864
MAX_FILE_ENVELOPES = 65_536

WHITE_SPACE = " \t"

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
"""ENV-003."""

UNICODE_WHITE_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
"""The Unicode property `White_Space`."""

BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""LNT-006."""

INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u206a-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""LNT-007."""

_CONTENT = re.compile("[^ \t\r\n]|\r(?!\n)")
_END_LINE = re.compile(r"^\[\[END\]\][ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def to_nfc(text: str) -> str:
    """Returns `text` in Normalization Form C."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def is_base64(text: str) -> bool:
    """Whether `text` is canonical base64 with padding, and not empty (ENV-051)."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(decoded) and base64.b64encode(decoded).decode() == text


@dataclass(slots=True)
class Line:
    """One line as received (`raw`, `end`), and as every rule sees it (`text`: in NFC, no white space at its end)."""

    number: int
    raw: str
    end: str
    text: str
    skipped: int = 0
    """The characters of the received line that stand before `raw`: 1 behind a byte order mark."""

    @property
    def is_blank(self) -> bool:
        return not self.text

    def column(self, offset: int) -> int:
        """Returns the received column of the character at `offset` of `text`."""
        if offset and to_nfc(self.raw) != self.raw:
            for length in range(1, len(self.raw) + 1):
                if len(to_nfc(self.raw[:length])) > offset:
                    return length + self.skipped
        return offset + 1 + self.skipped

    def raw_column(self, offset: int) -> int:
        """Returns the received column of the character at `offset` of `raw`."""
        return offset + 1 + self.skipped


@dataclass(slots=True)
class Piece:
    """The part of a text that is read as one envelope. `start` is its place in the text, without a byte order mark."""

    text: str
    start: int
    first_line: int
    skipped: int = 0

    def lines(self) -> Iterator[Line]:
        """Splits the piece into lines (ENV-002)."""
        parts = self.text.split("\n")
        last = len(parts) - 1
        for index, raw in enumerate(parts):
            end = "\n"
            if index == last:
                if not raw:
                    return
                end = ""
            elif raw.endswith("\r"):
                raw, end = raw[:-1], "\r\n"
            skipped = self.skipped if index == 0 else 0
            yield Line(self.first_line + index, raw, end, to_nfc(raw).rstrip(WHITE_SPACE), skipped)


def decode(data: bytes) -> tuple[str, bool] | Diagnostic:
    """Decodes UTF-8 (ENV-001). Returns the text without one byte order mark, and whether there was one."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        column = len(before) - (before.rfind("\n") + 1) + 1
        return diagnose("ENV-001", before.count("\n") + 1, column)
    return (text[1:], True) if text.startswith("\ufeff") else (text, False)


def cut_pieces(text: str, *, has_mark: bool) -> Iterator[Piece]:
    """Cuts a file after each line `[[END]]` (TRN-001) and yields every piece that is not blank."""
    position, number = 0, 1
    while content := _CONTENT.search(text, position):
        start = text.rfind("\n", position, content.start()) + 1 or position
        number += text.count("\n", position, start)
        end_line = _END_LINE.search(text, start)
        position = end_line.end() if end_line else len(text)
        piece = text[start:position]
        yield Piece(piece, start, number, skipped=int(has_mark and start == 0))
        number += piece.count("\n")


def check_size(piece: Piece, received_bytes: int | None = None) -> Diagnostic | None:
    """Applies ENV-060 to the bytes as received and to the text in NFC."""
    received = byte_length(piece.text) if received_bytes is None else received_bytes
    if received > MAX_ENVELOPE_BYTES or byte_length(to_nfc(piece.text)) > MAX_ENVELOPE_BYTES:
        return diagnose("ENV-060", piece.first_line, 1, f"The envelope has more than {MAX_ENVELOPE_BYTES} bytes")
    return None


def check_line(line: Line) -> Iterator[Diagnostic]:
    """Applies ENV-061 before and after NFC."""
    if len(line.raw) * 12 <= MAX_LINE_BYTES:  # NFC makes UTF-8 at most three times as long
        return
    if max(byte_length(line.raw), byte_length(to_nfc(line.raw))) > MAX_LINE_BYTES:
        yield diagnose("ENV-061", line.number, 1, f"The line has more than {MAX_LINE_BYTES} bytes")


def find_forbidden(lines: list[Line]) -> Iterator[Diagnostic]:
    """Applies ENV-003 to all lines of an envelope."""
    for line in lines:
        # The line end is gone here, so a CR that is left is one without LF.
        for match in FORBIDDEN.finditer(line.raw):
            code_point = f"U+{ord(match[0]):04X}"
            yield diagnose("ENV-003", line.number, line.raw_column(match.start()), f"{code_point} is not allowed")
