"""The errors of this package."""

from __future__ import annotations

__all__ = ["CrosstalkError", "RelayError"]


class CrosstalkError(ValueError):
    """A text, a message or a key that breaks a rule. `str(error)` says what happened, `help` what to do."""

    code: str | None
    """A code of the taxonomy, such as `E-FORMAT`."""
    rule: str | None
    """The id of the rule, such as `ENV-022`."""
    help: str | None
    """What to do about it."""
    line: int | None
    """The line of the text, from 1."""

    def __init__(
        self,
        message: str,
        code: str | None = None,
        rule: str | None = None,
        help: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.rule = rule
        self.help = help
        self.line = line


class RelayError(CrosstalkError):
    """A relay rejected a request, or gave no answer."""

    status: int | None
    """The HTTP status; `None` if no answer came."""
    retry_after: int | None
    """After how many seconds the relay may accept the same request."""
    temporary: bool
    """Whether another attempt may work."""

    def __init__(
        self,
        message: str,
        code: str | None = None,
        rule: str | None = None,
        help: str | None = None,
        line: int | None = None,
        *,
        status: int | None = None,
        retry_after: int | None = None,
        temporary: bool = False,
    ) -> None:
        super().__init__(message, code, rule, help, line)
        self.status = status
        self.retry_after = retry_after
        self.temporary = temporary
