"""Addresses: form, parts and identity (ADR-001 to ADR-009, ADR-020)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping

from diagnostics import reject
from registry import SCHEMES, Scheme
from text import UNICODE_WHITE_SPACE, to_nfc

INVISIBLE_IN_ADDRESS = re.compile(
    "[\x85\xa0\u115f\u1160\u1680\u180b-\u180f\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\u3164"
    "\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""ADR-009."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?![ \t])(.*)", re.DOTALL)
_REST = re.compile(
    r"(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?", re.DOTALL
)
_PORT = re.compile(":[0-9]+$")
_PHONE = re.compile(r"\+?[0-9().-]*[0-9][0-9().-]*(;.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of an address (ADR-003). The text stays as it was written (ADR-002)."""

    text: str
    kind: str
    scheme: str | None = None
    authority: str | None = None
    user: str | None = None
    host: str | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None

    @property
    def is_url(self) -> bool:
        return self.scheme is not None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def split(text: str, schemes: Mapping[str, Scheme] = SCHEMES) -> Address:
    """Splits an address into its parts. It checks nothing: see `find_fault`."""
    url = _URL.fullmatch(text)
    if url is None:
        return Address(text, "name", path=text)
    scheme, rest = url[1], _REST.fullmatch(url[2])
    assert rest is not None
    registered = schemes.get(scheme.lower())
    kind = registered.kind if registered else "custom"
    authority, path = rest["authority"], rest["path"]
    user = host = None
    if authority is not None or kind == "mail":
        before, at, after = (path if authority is None else authority).rpartition("@")
        if at or authority is not None:
            user, host = before if at else None, _PORT.sub("", after)
    return Address(text, kind, scheme, authority, user, host, path, rest["query"], rest["fragment"])


def _is_mailbox(address: Address) -> bool:
    if address.authority is not None or not address.user or not address.host:
        return False
    return "/" not in address.host and "" not in address.host.split(".")


def _is_phone_number(address: Address) -> bool:
    return address.authority is None and _PHONE.fullmatch(address.path or "") is not None


def find_fault(
    text: str, schemes: Mapping[str, Scheme] = SCHEMES, *, with_invisible: bool = True
) -> str | None:
    """Returns the first rule that an address breaks, in the order of ADR-009."""
    if not text.strip(" \t") or _CONTROL.search(text):
        return "ADR-001"
    address = split(text, schemes)
    if address.is_url and UNICODE_WHITE_SPACE.search(text):
        return "ADR-006"
    if with_invisible and INVISIBLE_IN_ADDRESS.search(text):
        return "ADR-009"
    if not address.is_url:
        return None
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        return "ADR-007"
    scheme = (address.scheme or "").lower()
    registered = schemes.get(scheme)
    if registered and registered.form == "authority" and not address.authority:
        return "ADR-003"
    if scheme == "email" and not _is_mailbox(address):
        return "ADR-004"
    if scheme == "tel" and not _is_phone_number(address):
        return "ADR-005"
    return None


def parse(text: str, schemes: Mapping[str, Scheme] = SCHEMES) -> Address:
    """Reads an address by itself, or raises a rejection."""
    if fault := find_fault(text, schemes):
        raise reject(fault)
    return split(text, schemes)


def _fold(text: str) -> str:
    # str.casefold is the full case folding of Unicode (C and F), without the Turkic mappings.
    return to_nfc(to_nfc(text).casefold())


def identity_key(text: str) -> tuple[bool, str]:
    """Makes the key of ADR-020. Two addresses name the same party if their keys are equal."""
    address = split(text)
    if not address.is_url:
        return False, _fold(text)
    assert address.scheme is not None
    head = len(address.scheme)
    if not address.host:
        return True, _fold(text[:head]) + text[head:]
    user_part = len(address.user) + 1 if address.user is not None else 0
    start = head + 1 + (2 if address.authority is not None else 0) + user_part
    end = start + len(address.host)
    return True, _fold(text[:head]) + text[head:start] + _fold(text[start:end]) + text[end:]
