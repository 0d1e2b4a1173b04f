"""Intents: what a message asks for, and what it needs for that (INT-001 to INT-018)."""

from __future__ import annotations

from typing import Callable, Iterator

import meta
from diagnostics import Diagnostic
from envelope import Envelope, Field
from registry import CORE_INTENTS, ERRORS, LEGACY_INTENTS


def _place(envelope: Envelope) -> Field:
    """The line that a rule of an intent points at, if no other line is at fault."""
    place = envelope.header_field("intent") or envelope.body_mark
    assert place is not None
    return place


def _needs_parent(envelope: Envelope) -> Iterator[Diagnostic]:
    if envelope.header("message") is not None and envelope.header("parent") is None:
        yield _place(envelope).at_value("INT-010")


def _needs_code(envelope: Envelope) -> Iterator[Diagnostic]:
    code = envelope.meta_field("error", "Code")
    if code is None:
        yield _place(envelope).at_value("INT-011")
    elif code.value not in ERRORS:
        yield code.at_value("INT-011")


def _needs_signature(envelope: Envelope) -> Iterator[Diagnostic]:
    if not envelope.is_signed:
        yield (envelope.sig or _place(envelope)).at_value("INT-012")


def _needs_targets(envelope: Envelope) -> Iterator[Diagnostic]:
    targets = envelope.meta_field("routing", "Targets")
    if targets is None or not any(target.strip() for target in meta.read_list(targets.value) or ()):
        yield (targets or _place(envelope)).at_value("INT-013")


def _needs_reason(envelope: Envelope) -> Iterator[Diagnostic]:
    reason = envelope.meta_field("escalation", "Reason")
    if not envelope.body and not (reason and reason.value):
        yield _place(envelope).at_value("INT-014")


def _needs_capabilities(envelope: Envelope) -> Iterator[Diagnostic]:
    capabilities = envelope.meta_field("routing", "X-Capabilities-Required")
    if not envelope.body and not (capabilities and meta.read_list(capabilities.value)):
        yield _place(envelope).at_value("INT-015")


_RULES: dict[str, Callable[[Envelope], Iterator[Diagnostic]]] = {
    "RESPOND": _needs_parent,
    "ACK": _needs_parent,
    "NACK": _needs_parent,
    "ERROR": _needs_code,
    "REVOKE": _needs_signature,
    "POLL": _needs_targets,
    "ESCALATE": _needs_reason,
    "HANDOFF": _needs_capabilities,
}


def check(envelope: Envelope, *, apply_rules: bool) -> Iterator[Diagnostic]:
    """Reports what is unusual about the intent, and applies its rule if `apply_rules` is set."""
    intent = envelope.header_field("intent")
    if intent and intent.value in LEGACY_INTENTS:
        yield intent.at_value("INT-002")
    elif intent and intent.value not in CORE_INTENTS:
        yield intent.at_value("INT-003")

    meaning = envelope.meaning
    if meaning == "BROADCAST" and (reply_to := envelope.meta_field("routing", "X-Reply-To")):
        yield reply_to.at_name("INT-016")
    if meaning == "REQUEST" and envelope.body_mark and not envelope.body:
        yield envelope.body_mark.at_name("INT-018")
    if apply_rules and meaning in _RULES:
        yield from _RULES[meaning](envelope)
