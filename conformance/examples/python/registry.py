"""The wire spellings of `spec/registry/*.toml`, loaded once.

Nothing in this program spells an error code, an intent, a namespace or a scheme of its own: the registry is the source
(ERR-001, INT-001, INT-002, MET-010 to MET-025, ADR-008).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REGISTRY = Path(__file__).resolve().parents[3] / "spec" / "registry"


def _load(name: str) -> dict[str, Any]:
    with (REGISTRY / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)


@dataclass(frozen=True)
class Rule:
    """One numbered rule: the code of a violation, what the rule says, and what to do about a violation."""

    id: str
    code: str | None
    title: str
    help: str | None


@dataclass(frozen=True)
class ErrorCode:
    """One code of the taxonomy (ERR-001)."""

    code: str
    http: int
    exit: int
    summary: str


@dataclass(frozen=True)
class KeyType:
    """The type of a META key, and its known words if it has some."""

    type: str
    values: tuple[str, ...] = ()
    hop: bool = False


@dataclass(frozen=True)
class Namespace:
    """One registered META namespace."""

    name: str
    keys: dict[str, KeyType]
    numbered: tuple[str, KeyType] | None
    repeats: bool
    hop: bool

    def key_type(self, key: str) -> KeyType | None:
        """Returns the type of `key`, compared with regard to case (ENV-034), or None if it is not registered."""
        if key in self.keys:
            return self.keys[key]
        if self.numbered is not None:
            prefix, key_type = self.numbered
            number = key.removeprefix(prefix)
            if number != key and number.isascii() and number.isdigit():
                return key_type
        return None


@dataclass(frozen=True)
class Scheme:
    """One address scheme."""

    name: str
    form: str
    kind: str


def _namespace(entry: dict[str, Any]) -> Namespace:
    keys = {
        key["name"]: KeyType(key["type"], tuple(key.get("values", ())), key.get("hop", False))
        for key in entry["keys"]
    }
    numbered = entry.get("numbered")
    return Namespace(
        name=entry["name"],
        keys=keys,
        numbered=(numbered["prefix"], KeyType(numbered["type"])) if numbered else None,
        repeats=entry.get("repeats", False),
        hop=entry.get("hop", False),
    )


RULES: dict[str, Rule] = {
    entry["id"]: Rule(entry["id"], entry.get("code"), entry["title"], entry.get("help"))
    for entry in _load("rules")["rule"]
}

ERRORS: dict[str, ErrorCode] = {
    entry["code"]: ErrorCode(entry["code"], entry["http"], entry["exit"], entry["summary"])
    for entry in _load("errors")["error"]
}

_intents = _load("intents")
CORE_INTENTS: frozenset[str] = frozenset(entry["name"] for entry in _intents["intent"])
LEGACY_INTENTS: dict[str, str] = {entry["name"]: entry["meaning"] for entry in _intents["legacy"]}

NAMESPACES: dict[str, Namespace] = {
    entry["name"]: _namespace(entry) for entry in _load("namespaces")["namespace"]
}

SCHEMES: dict[str, Scheme] = {
    entry["name"].lower(): Scheme(entry["name"], entry["form"], entry["kind"])
    for entry in _load("schemes")["scheme"]
}

DENIED_KEYS: frozenset[str] = frozenset(entry["key"] for entry in _load("keys")["denied"])
