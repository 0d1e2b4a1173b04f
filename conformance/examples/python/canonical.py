"""The canonical form and the integrity block (CAN-001 to CAN-012)."""

from __future__ import annotations

import base64
import hashlib
import re

import reader
from diagnostics import Rejection, diagnose
from envelope import CORE_HEADERS, Block, Envelope, Field
from registry import NAMESPACES

MAX_MARKED_LINES = 4_096
_WHITE_SPACE = re.compile("[\t\n \xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+")


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def body_digest(lines: list[str]) -> str:
    """Returns the digest of the body text, with one LF after each line (CAN-006)."""
    return _sha256("".join(line + "\n" for line in lines))


def _covered_keys(block: Block) -> list[Field] | None:
    """Returns the keys that the canonical form covers, or None if it leaves the whole block out (CAN-004)."""
    namespace = NAMESPACES.get(block.namespace)
    if namespace is None:
        return block.fields
    if namespace.hop:
        return None
    hop_keys = {name for name, key_type in namespace.keys.items() if key_type.hop}
    covered = [item for item in block.fields if item.name not in hop_keys]
    return None if hop_keys and not covered else covered


def canonical_form(envelope: Envelope) -> str:
    """Returns the canonical form of an envelope that the strict reading accepts."""
    assert envelope.sender and envelope.receiver and envelope.body_mark
    lines = [f"[[{envelope.sender.text}→{envelope.receiver.text} v1]]"]
    core = [item for name in CORE_HEADERS for item in envelope.headers if item.name == name]
    unknown = [item for item in envelope.headers if item.name not in CORE_HEADERS]
    lines += [f"{item.name}: {item.value}" for item in core + unknown]
    for block in envelope.meta:
        if (covered := _covered_keys(block)) is not None:
            lines.append(f"meta: {block.namespace}")
            lines += [f"{item.name}: {item.value}" for item in covered]
    lines.append(f"{envelope.body_mark.name}: {body_digest(envelope.body_lines)}")
    return "".join(line + "\n" for line in lines)


def canonicalize(data: bytes) -> str:
    """Reads one envelope strictly, without the rules of its intent, and returns its canonical form (CAN-007)."""
    try:
        envelope = reader.require_one(data, apply_intents=False)
    except Rejection as rejection:
        raise Rejection([*rejection.diagnostics, diagnose("CAN-007")]) from None
    return canonical_form(envelope)


def integrity_fields(lines: list[str]) -> dict[str, str]:
    """Returns the keys of `meta: integrity` for a body, without `Signed-At` (CAN-010 to CAN-012)."""
    body = "\n".join(lines)
    fields = {
        "Digest": body_digest(lines),
        "Words": _sha256(_WHITE_SPACE.sub(" ", body).strip(" ")),
        "Lines": str(len(lines)),
        "Bytes": str(len(body.encode())),
    }
    if 0 < len(lines) <= MAX_MARKED_LINES:
        marks = b"".join(hashlib.sha256(line.encode()).digest()[:2] for line in lines)
        fields["Marks"] = base64.b64encode(marks).decode()
    return fields
