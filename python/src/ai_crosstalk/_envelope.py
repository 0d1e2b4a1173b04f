"""Functions on texts: read, write, answer, check, sign, verify. Results are the JSON forms of the command line `crosstalk`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from typing import TypeVar, cast

from . import _native
from ._error import CrosstalkError
from ._forms import (
    AddressReport,
    Algorithm,
    Envelope,
    GeneratedKey,
    LintReport,
    MessageInput,
    ParseReport,
    Reading,
    RedactReport,
    TrustedKey,
    VerifyReport,
)

__all__ = [
    "build",
    "canonical",
    "digest",
    "format",
    "generate_key",
    "lint",
    "migrate",
    "new_id",
    "parse",
    "parse_address",
    "redact",
    "reply",
    "sign",
    "verify",
]


F = TypeVar("F", bound=Callable[..., object])


def unicode_only(function: F) -> F:
    """Half of a surrogate pair, which is no Unicode, in an argument is an error of this package."""

    @functools.wraps(function)
    def checked(*arguments: object, **options: object) -> object:
        try:
            return function(*arguments, **options)
        except UnicodeEncodeError:
            raise CrosstalkError(
                "a text has half of a surrogate pair",
                "E-FORMAT",
                "ENV-001",
                "pass the whole text; `errors=\"surrogateescape\"` makes such halves",
            ) from None

    return cast(F, checked)


def parse(text: str | bytes, reading: Reading = "paste") -> ParseReport:
    """Finds the envelopes in a text and reads them. It never raises for bad text: the report has errors.

    The reading `paste` repairs what chats and mail programs do to a text, and lists every repair. The reading `strict` repairs
    nothing, as a relay does.
    """
    return cast(ParseReport, json.loads(_native.parse(text, reading)))


@unicode_only
def build(message: MessageInput | Envelope | Sequence[MessageInput | Envelope] | ParseReport) -> str:
    """Writes the envelope of a message, or those of several. Missing thread and message ids are generated."""
    return _native.build(json.dumps(message, ensure_ascii=False))


@unicode_only
def reply(
    text: str | bytes,
    body: str,
    *,
    sender: str | None = None,
    user: str | None = None,
    intent: str | None = None,
    context: str | None = None,
) -> str:
    """Writes the answer to the one message in a text.

    `sender` is who answers, by default the receiver of the message. The other parts also have a default that fits.
    """
    return _native.reply(text, body, sender, user, intent, context)


def format(text: str | bytes) -> str:
    """Repairs the envelopes of a text and writes them well-formed."""
    return _native.format(text)


def migrate(text: str | bytes) -> str:
    """Rewrites the v1.0 envelopes of a text as v1.1. Signed envelopes and those of v1.1 stay."""
    return _native.migrate(text)


def lint(text: str | bytes) -> LintReport:
    """Lists the findings about the envelopes of a text."""
    return cast(LintReport, json.loads(_native.lint(text)))


def canonical(text: str | bytes) -> bytes:
    """The canonical form of a strict envelope: the bytes that digest and signature cover."""
    return _native.canonical(text).encode()


def digest(text: str | bytes) -> str:
    """The digest of the canonical form of a strict envelope, `sha256:…`."""
    return _native.digest(text)


def generate_key(algorithm: Algorithm = "ed25519") -> GeneratedKey:
    """Generates a key. Keep `private_key_pem` secret; it is not encrypted."""
    private, public, record, did = _native.generate_key(algorithm)
    return {"private_key_pem": private, "public_key_pem": public, "record": record, "did": did}


@unicode_only
def sign(
    text: str | bytes,
    private_key_pem: str,
    *,
    key_id: str,
    with_key: bool = False,
    replace: bool = False,
    at: datetime | str | None = None,
) -> str:
    """Signs the envelopes of a text.

    `key_id` names the key to receivers: an id such as `alice@example.com`, or the `did` of the key. `with_key` adds the public
    key for receivers who don't have it yet, `replace` allows replacing a signature, `at` is the time of signing, by default now.
    """
    return _native.sign(text, private_key_pem, key_id, with_key, replace, _time(at))


@unicode_only
def verify(text: str | bytes, *, keys: Iterable[TrustedKey] = (), at: datetime | str | None = None) -> VerifyReport:
    """Verifies the one message in a text. It raises only for wrong arguments: a bad message gets a verdict.

    `keys` are the public keys that the caller trusts, each for a key id. `at` is the time of the check, by default now. Act on
    `envelope` of the verdict: the text that was signed.
    """
    pairs = [(key["id"], key["key"]) for key in keys]
    return cast(VerifyReport, json.loads(_native.verify(text, pairs, _time(at))))


def new_id() -> str:
    """A new id for a message or a thread, a ULID."""
    return _native.new_id()


@unicode_only
def parse_address(text: str) -> AddressReport:
    """The parts of an address, and its findings. An invalid address has `valid` false."""
    return cast(AddressReport, json.loads(_native.parse_address(text)))


def redact(text: str | bytes) -> RedactReport:
    """Replaces personal data in a text and in its envelopes by placeholders. A signed envelope with personal data is an error."""
    return cast(RedactReport, json.loads(_native.redact(text)))


def _time(at: datetime | str | None) -> str:
    if isinstance(at, str):
        return at
    if at is None:
        at = datetime.now(timezone.utc)
    if at.tzinfo is None:
        raise ValueError("a time needs a time zone: datetime.now(timezone.utc)")
    # `strftime` does not fill up a year before 1000.
    return at.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
