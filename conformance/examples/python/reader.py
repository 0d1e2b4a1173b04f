"""The strict reading: grammar, files, order of checks (ENV-010 to ENV-063, TRN-001, TRN-003).

`read_file` reads a text that may have several envelopes, `read_one` a text that must have exactly one. Both return a
`Report`. The state machine is that of spec/start.md.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Callable, Iterator

import intents
import lints
import meta
from diagnostics import MAX_DIAGNOSTICS, Diagnostic, Rejection, diagnose
from envelope import CORE_HEADERS, RESERVED_NAMES, Block, Envelope, Field, Party, Report
from registry import NAMESPACES
from text import (
    FORBIDDEN,
    INVISIBLE,
    MAX_FILE_BYTES,
    MAX_FILE_ENVELOPES,
    MAX_HEAD_LINES,
    UNICODE_WHITE_SPACE,
    WHITE_SPACE,
    Line,
    Piece,
    check_line,
    check_size,
    cut_pieces,
    decode,
    find_forbidden,
    is_base64,
)

_NAME_AND_VALUE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):[ \t]*(.*)")
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]*")
_LOOKS_LIKE_VERSION = re.compile(r"v[0-9][0-9.]*")
_ARROW = re.compile("→|->")
_SIGNATURE = re.compile(
    r"(?P<algorithm>[a-z0-9][a-z0-9-]*)"
    r":pkid=(?P<pkid>[\x21-\x27\x2a-\x3a\x3d\x3f-\x5a\x5c\x5e-\x7b\x7d\x7e]{1,255})"
    r";sig=(?P<base64>[A-Za-z0-9+/]+=*)"
)
END_LINE = "[[END]]"


def is_name(text: str) -> bool:
    """Whether `text` can be the name of a header or of a META key (ENV-020)."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text) is not None


def is_signature(text: str) -> bool:
    """Whether `text` is the value of a `sig:` line, other than `none` (ENV-051)."""
    match = _SIGNATURE.fullmatch(text)
    return match is not None and is_base64(match["base64"])


# --- The direction line


def _begins_badly(party: str) -> bool:
    """Whether a sender or receiver begins with a character that ENV-012 forbids there."""
    first = party[0]
    return (
        (not first.isascii() and UNICODE_WHITE_SPACE.match(first) is not None)
        or INVISIBLE.match(first) is not None
        or unicodedata.combining(first) != 0
    )


def read_direction(line: Line) -> tuple[Party, Party] | Diagnostic:
    """Reads `[[SENDER→RECEIVER v1]]`. It stops at the first rule that is broken."""

    def at(rule: str, offset: int = 0) -> Diagnostic:
        return diagnose(rule, line.number, line.column(offset))

    text = line.text
    inner = text[2:-2]
    if not (text.startswith("[[") and text.endswith("]]") and len(text) >= 4):
        return at("ENV-010")
    if "[[" in inner or "]]" in inner or inner.endswith("]") or inner.lstrip(WHITE_SPACE).startswith("["):
        return at("ENV-010")
    trimmed = inner.rstrip(WHITE_SPACE)
    version = re.split("[ \t]", trimmed)[-1]
    if not _LOOKS_LIKE_VERSION.fullmatch(version):
        return at("ENV-010")

    parties = trimmed[: len(trimmed) - len(version)]
    if version != "v1":
        return at("ENV-013", 2 + len(parties))
    arrows = list(_ARROW.finditer(parties))
    if len(arrows) != 1:
        return at("ENV-011", 2 + arrows[1].start() if arrows else 0)

    def party(start: int, end: int) -> Party:
        raw = parties[start:end]
        name = raw.strip(WHITE_SPACE)
        return Party(name, line, 2 + start + len(raw) - len(raw.lstrip(WHITE_SPACE)) if name else 2 + start)

    sender, receiver = party(0, arrows[0].start()), party(arrows[0].end(), len(parties))
    for side in (sender, receiver):
        if not side.text or _begins_badly(side.text):
            return side.at("ENV-012")
    return sender, receiver


# --- The lines of one envelope


class _EnvelopeReader:
    """The state machine. Each state is a method that takes a line that is not blank, and returns the next state."""

    State = Callable[[Line], "_EnvelopeReader.State | None"]

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.report = envelope.diagnostics.append
        self.head_lines = 0
        self.names: set[str] = set()
        self.keys: set[str] = set()
        self.body: list[str] = []

    def run(self) -> None:
        state: _EnvelopeReader.State | None = self.start
        for line in self.envelope.lines:
            self.envelope.diagnostics.extend(check_line(line))
            if line.is_blank:
                if state == self.in_body:
                    self.body.append("")
                continue
            state = state(line)
            if state is None:
                return
        if state != self.after_end:
            last = self.envelope.lines[-1]
            self.report(diagnose("ENV-052", last.number, last.column(len(last.text))))
            self.finish_body()

    def finish_body(self) -> None:
        """Makes the body text (ENV-043): the indents are gone already, and empty lines at the end go here."""
        while self.body and not self.body[-1]:
            self.body.pop()
        self.envelope.body_lines = self.body

    def start(self, line: Line) -> State | None:
        direction = read_direction(line)
        if isinstance(direction, Diagnostic):
            self.report(direction)
            is_marker = line.text.startswith("[[") and line.text != END_LINE
            return self.in_head if is_marker else None
        self.envelope.sender, self.envelope.receiver = direction
        return self.in_head

    def in_head(self, line: Line) -> State:
        if line.text == END_LINE:
            self.report(diagnose("ENV-041", line.number, line.column(0)))
            return self.after_end
        match = _NAME_AND_VALUE.fullmatch(line.text)
        if match is None:
            self.report(diagnose("ENV-020", line.number, line.column(0)))
            return self.in_head
        item = Field(match[1], match[2], line, match.start(2))
        if item.name not in RESERVED_NAMES and item.name.lower() in RESERVED_NAMES:
            self.report(item.at_name("ENV-021"))
            item.name = item.name.lower()

        if item.name in ("body", "response"):
            if item.value != "|":
                self.report(item.at_value("ENV-040"))
            self.envelope.body_mark = item
            return self.in_body
        if item.name == "sig":
            self.report(item.at_name("ENV-020", "The `sig:` line comes before the body"))
            return self.in_head

        self.head_lines += 1
        if self.head_lines == MAX_HEAD_LINES + 1:
            self.report(item.at_name("ENV-062", f"The head has more than {MAX_HEAD_LINES} headers and keys"))
        if item.name == "meta":
            self.open_block(item)
        elif self.envelope.meta:
            self.add_key(item)
        else:
            self.add_header(item)
        return self.in_head

    def add_header(self, item: Field) -> None:
        folded = item.name.lower()
        if folded in self.names:
            self.report(item.at_name("ENV-022"))
        elif item.name in CORE_HEADERS and not item.value:
            self.report(item.at_name("ENV-023"))
        self.names.add(folded)
        self.envelope.headers.append(item)

    def open_block(self, opening: Field) -> None:
        namespace = opening.value
        if not _NAMESPACE.fullmatch(namespace):
            self.report(opening.at_value("ENV-030"))
        known = NAMESPACES.get(namespace)
        if not (known and known.repeats) and any(block.namespace == namespace for block in self.envelope.meta):
            self.report(opening.at_value("ENV-032"))
        self.envelope.meta.append(Block(opening))
        self.keys = set()

    def add_key(self, item: Field) -> None:
        if item.name in CORE_HEADERS:
            self.report(item.at_name("ENV-027"))
            return
        folded = item.name.lower()
        if folded in self.keys:
            self.report(item.at_name("ENV-031"))
        self.keys.add(folded)
        self.envelope.meta[-1].fields.append(item)

    def in_body(self, line: Line) -> State:
        text = line.text
        if text.startswith("  "):
            self.body.append(text[2:])
        elif text.startswith("\t"):
            self.body.append(text[1:])
        elif text.startswith("sig:"):
            value = text[4:].lstrip(WHITE_SPACE)
            self.envelope.sig = Field("sig", value, line, len(text) - len(value))
            if value != "none" and not is_signature(value):
                self.report(self.envelope.sig.at_value("ENV-051"))
            self.finish_body()
            return self.after_sig
        elif text == END_LINE:
            if not self.envelope.is_response:
                self.report(diagnose("ENV-050", line.number, line.column(0)))
            self.finish_body()
            return self.after_end
        else:
            self.report(diagnose("ENV-042", line.number, line.column(0)))
        return self.in_body

    def after_sig(self, line: Line) -> State:
        if line.text == END_LINE:
            return self.after_end
        if line.text.startswith("sig:"):
            self.report(diagnose("ENV-050", line.number, line.column(0)))
        self.report(diagnose("ENV-053", line.number, line.column(0)))
        return self.after_sig

    def after_end(self, line: Line) -> None:
        is_second = line.text.startswith("[[") and line.text != END_LINE
        self.report(diagnose("TRN-003" if is_second else "ENV-053", line.number, line.column(0)))


def _missing_headers(envelope: Envelope) -> Iterator[Diagnostic]:
    """ENV-024 and ENV-025. The place is the direction line: there is no line for what is missing."""
    first = next(line for line in envelope.lines if not line.is_blank)
    if envelope.header("session") is None and envelope.header("thread") is None:
        yield diagnose("ENV-024", first.number, first.column(0))
    if not envelope.is_response:
        for name in ("user", "context", "intent"):
            if envelope.header(name) is None:
                yield diagnose("ENV-025", first.number, first.column(0), f"The header `{name}` is missing")


def read_piece(piece: Piece, *, apply_intents: bool = True) -> Envelope:
    """Reads one piece. The envelope that it returns is accepted only if `is_accepted` is true."""
    envelope = Envelope(piece, list(piece.lines()))
    diagnostics = envelope.diagnostics
    if FORBIDDEN.search(piece.text):
        diagnostics.extend(find_forbidden(envelope.lines))
    _EnvelopeReader(envelope).run()
    if envelope.sender is not None:
        diagnostics.extend(_missing_headers(envelope))
        diagnostics.extend(meta.check_addresses(envelope))
        # The rules of an intent would only repeat what a broken grammar says already.
        diagnostics.extend(intents.check(envelope, apply_rules=apply_intents and envelope.is_accepted))
        diagnostics.extend(meta.check_values(envelope))
        diagnostics.extend(lints.check(envelope))
    # Errors first, so that no number of remarks can push an error out.
    diagnostics.sort(key=lambda diagnostic: not diagnostic.is_error)
    del diagnostics[MAX_DIAGNOSTICS:]
    return envelope


# --- Whole texts


def _add(report: Report, envelope: Envelope) -> None:
    if envelope.is_accepted:
        report.envelopes.append(envelope)
    else:
        report.errors.extend(envelope.diagnostics)


def read_file(data: bytes) -> Report:
    """Reads a file with one or several envelopes (TRN-001). An error in one does not reject the others."""
    report = Report()
    if len(data) > MAX_FILE_BYTES:
        report.errors.append(diagnose("ENV-063", message=f"The file has more than {MAX_FILE_BYTES} bytes"))
        return report
    decoded = decode(data)
    if isinstance(decoded, Diagnostic):
        report.errors.append(decoded)
        return report
    text, has_mark = decoded
    count = 0
    for count, piece in enumerate(cut_pieces(text, has_mark=has_mark), start=1):
        if count > MAX_FILE_ENVELOPES:
            message = f"The file has more than {MAX_FILE_ENVELOPES} envelopes"
            report.errors.append(diagnose("ENV-063", piece.first_line, 1, message))
            break
        if too_large := check_size(piece):
            report.errors.append(too_large)
        else:
            _add(report, read_piece(piece))
    if count == 0:
        report.errors.append(diagnose("ENV-010"))
    return report


def read_draft(data: bytes, *, apply_intents: bool = True) -> Envelope | list[Diagnostic]:
    """Reads a text that must have exactly one envelope, and returns it even with errors, as far as it could be read.

    A text that has no lines to read (not UTF-8, too large, blank) gives its errors alone.
    """
    if len(data) > MAX_FILE_BYTES:
        return [diagnose("ENV-063", message=f"The text has more than {MAX_FILE_BYTES} bytes")]
    decoded = decode(data)
    if isinstance(decoded, Diagnostic):
        return [decoded]
    text, has_mark = decoded
    piece = Piece(text, 0, 1, skipped=int(has_mark))
    if too_large := check_size(piece, received_bytes=len(data)):
        return [too_large]
    if not text.strip(" \t\r\n"):
        return [diagnose("ENV-010")]
    return read_piece(piece, apply_intents=apply_intents)


def read_one(data: bytes) -> Report:
    """Reads a text that must have exactly one envelope (TRN-003)."""
    draft = read_draft(data)
    if isinstance(draft, list):
        return Report(errors=draft)
    report = Report()
    _add(report, draft)
    return report


def require_one(data: bytes, *, apply_intents: bool = True) -> Envelope:
    """Returns the only envelope of a text, or raises a rejection."""
    draft = read_draft(data, apply_intents=apply_intents)
    if isinstance(draft, list):
        raise Rejection(draft)
    if not draft.is_accepted:
        raise Rejection(draft.diagnostics)
    return draft
