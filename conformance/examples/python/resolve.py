"""Resolution of simple names: a local table, then the DNS if a person asked for it (ADR-010 to ADR-015)."""

from __future__ import annotations

import re
from typing import Any

import address
import reader
from diagnostics import Diagnostic
from text import Line, to_nfc

MAX_TABLE_ENTRIES = 8
MAX_DNS_NAME_CHARACTERS = 253
_LABEL = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _can_stand_in_direction(text: str) -> bool:
    """Whether a direction line with this address reads back as the same address (ADR-013)."""
    line = Line(1, "", "\n", to_nfc(f"[[{text}→{text} v1]]"))
    direction = reader.read_direction(line)
    return not isinstance(direction, Diagnostic) and all(party.text == text for party in direction)


def _is_record(text: str) -> bool:
    return address.find_fault(text) is None and address.split(text).is_url and _can_stand_in_direction(text)


def _to_ascii_lower(text: str) -> str:
    return re.sub("[A-Z]+", lambda match: match[0].lower(), text)


def _dns_name(name: str, domain: str) -> str | None:
    """Makes the name to ask for (ADR-012), or None if the name cannot be a label."""
    label = re.sub("[ \t]+", "-", _to_ascii_lower(name).strip(" \t"))
    if not _LABEL.fullmatch(label):
        return None
    full = f"_crosstalk-addr.{label}.{_to_ascii_lower(domain).removesuffix('.')}"
    return full if len(full) <= MAX_DNS_NAME_CHARACTERS else None


class Resolution:
    """One resolution, with every step that it took."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.result = name
        self.retry = False
        self.asks: str | None = None
        self.steps: list[dict[str, Any]] = []

    def step(self, step: str, **details: Any) -> None:
        self.steps.append({"step": step, **details})

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "result": self.result,
            "resolved": address.split(self.result).is_url,
            "retry": self.retry,
            "asks": self.asks,
            "steps": self.steps,
        }


def resolve(
    name: str,
    table: dict[str, str],
    *,
    domain: str | None = None,
    dns: dict[str, Any] | None = None,
    needs_dnssec: bool = False,
) -> Resolution:
    """Resolves a sender or receiver in the order of ADR-010."""
    resolution = Resolution(name)
    if address.split(name).is_url:
        resolution.step("url", name=name, address=name)
        return resolution
    may_ask = _look_up(resolution, table)
    if may_ask and domain is not None and not address.split(resolution.result).is_url:
        _ask_dns(resolution, domain, dns or {"unavailable": "no answer"}, needs_dnssec)
    if not address.split(resolution.result).is_url:
        resolution.step("person", name=resolution.result)
    return resolution


def _look_up(resolution: Resolution, table: dict[str, str]) -> bool:
    """Follows the local table (ADR-011). Returns False after a fault: then nobody asks the DNS."""
    entries = {address.identity_key(key): value for key, value in table.items()}
    steps: list[tuple[str, str]] = []
    visited: set[tuple[bool, str]] = set()
    current = resolution.name
    while not address.split(current).is_url:
        key = address.identity_key(current)
        if key not in entries:
            break
        visited.add(key)
        steps.append((current, entries[key]))
        current = entries[key]
        if len(steps) > MAX_TABLE_ENTRIES or address.identity_key(current) in visited:
            # The way up to the fault decides nothing, so the fault is the only step.
            fault = "table-too-long" if len(steps) > MAX_TABLE_ENTRIES else "table-loop"
            resolution.step(fault, name=resolution.name)
            return False
    for name, target in steps:
        resolution.step("table", name=name, address=target)
    if not address.split(current).is_url:
        resolution.step("not-in-table", name=current)
    resolution.result = current
    return True


def _ask_dns(resolution: Resolution, domain: str, dns: dict[str, Any], needs_dnssec: bool) -> None:
    name = resolution.result
    resolution.asks = _dns_name(name, domain)
    if resolution.asks is None:
        resolution.step("dns-unasked", name=name)
        return
    if "unavailable" in dns:
        resolution.retry = True
        resolution.step("dns-unavailable", name=resolution.asks)
        return
    dnssec = dns.get("dnssec", "indeterminate")
    if "absent" in dns:
        resolution.step("not-in-dns", name=resolution.asks, dnssec=dnssec)
        return
    records = dns.get("records", [])
    found = sorted({record for record in records if _is_record(record)}, key=str.encode)
    wrong = sum(not _is_record(record) for record in records)
    if not found or (needs_dnssec and dnssec != "secure"):
        resolution.step("dns-wrong", name=resolution.asks, wrong=wrong, dnssec=dnssec)
        return
    resolution.result = found[0]
    resolution.step(
        "dns", name=resolution.asks, address=found[0], others=found[1:], wrong=wrong, dnssec=dnssec
    )
