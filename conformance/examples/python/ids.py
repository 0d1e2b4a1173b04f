"""Ids: recognize and generate ULIDs and UUIDv7s (IDS-001 to IDS-003)."""

from __future__ import annotations

import re
import secrets
import time
from typing import Callable

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(f"[0-7][{CROCKFORD}]{{25}}")
_UUIDV7 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def form_of(text: str) -> str:
    """Returns `ulid`, `uuidv7` or `opaque`."""
    if _ULID.fullmatch(text):
        return "ulid"
    return "uuidv7" if _UUIDV7.fullmatch(text) else "opaque"


def _spell_ulid(milliseconds: int, tail: int) -> str:
    number = milliseconds << 80 | tail
    return "".join(CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def _spell_uuidv7(milliseconds: int, tail: int) -> str:
    number = milliseconds << 80 | 7 << 76 | (tail >> 62) << 64 | 0b10 << 62 | tail & (1 << 62) - 1
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Generator:
    """Generates ids of one form, each greater than the one before (IDS-003).

    Within one millisecond the tail grows by a random step. The step leaves room for thousands of ids, and it is wide
    enough that nobody can guess the next id from the last one.
    """

    def __init__(self, tail_bits: int, spell: Callable[[int, int], str]) -> None:
        self._tail_bits = tail_bits
        self._spell = spell
        self._milliseconds = -1
        self._tail = 0

    def next(self) -> str:
        while True:
            now = time.time_ns() // 1_000_000
            if now > self._milliseconds:
                self._milliseconds, self._tail = now, secrets.randbits(self._tail_bits)
                break
            tail = self._tail + 1 + secrets.randbits(self._tail_bits - 16)
            if tail >> self._tail_bits == 0:
                self._tail = tail
                break
            time.sleep(0.0005)
        return self._spell(self._milliseconds, self._tail)


_GENERATORS = {"ulid": Generator(80, _spell_ulid), "uuidv7": Generator(74, _spell_uuidv7)}


def generate(form: str = "ulid") -> str:
    """Generates an id of the form `ulid` or `uuidv7`."""
    return _GENERATORS[form].next()
