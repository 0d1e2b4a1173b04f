"""What a reader reports: a rule, a severity, a place ("Diagnostics" in spec/README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

from registry import RULES

WARNINGS = frozenset(
    "MET-001 MET-002 MET-012 MET-013 MET-023 INT-018 LNT-005 LNT-006 LNT-007 "
    "ADR-001 ADR-003 ADR-004 ADR-005 ADR-006 ADR-007".split()
)
NOTES = frozenset("ENV-028 INT-002 INT-003 INT-016 LNT-001 LNT-002 LNT-003 LNT-004 LNT-008".split())

MAX_DIAGNOSTICS = 200


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark about a text. `line` and `column` count from 1."""

    rule: str
    severity: str
    line: int
    column: int
    message: str

    @property
    def code(self) -> str | None:
        return RULES[self.rule].code

    @property
    def help(self) -> str | None:
        return RULES[self.rule].help

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "severity": self.severity,
            "code": self.code,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "help": self.help,
        }


def diagnose(rule: str, line: int = 1, column: int = 1, message: str | None = None) -> Diagnostic:
    """Makes a diagnostic of the strict reading. Its severity follows from the rule."""
    severity = "warning" if rule in WARNINGS else "note" if rule in NOTES else "error"
    return Diagnostic(rule, severity, line, column, message or RULES[rule].title)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.is_error for diagnostic in diagnostics)


class Rejection(Exception):
    """An op does not accept its input. It carries the diagnostics, at least one of them an error."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(", ".join(diagnostic.rule for diagnostic in self.diagnostics))


def reject(rule: str, message: str | None = None) -> Rejection:
    """Makes a rejection for an input that has no lines, such as an address or a JSON message."""
    return Rejection([Diagnostic(rule, "error", 1, 1, message or RULES[rule].title)])
