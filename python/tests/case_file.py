"""Case files, their levels, and the comparison of JSON, as `conformance/README.md` defines them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# For each op: optional keys, needed keys, and sections, of which a needed one is marked with `!`.
FORMS = {
    "parse": ("code line column repairs reports silent binding", "reading expect", "input! json"),
    "canonical": ("expect code digest", "", "input! canonical same differs"),
    "fmt": ("fence", "", "input! output!"),
    "build": ("expect code", "", "input! output"),
    "address": ("code", "expect", "input! json schemes"),
    "resolve": ("domain dnssec", "", "input! names dns json!"),
    "id": ("", "form", "input!"),
    "ids": ("", "form count", ""),
    "diagnose": ("lines after", "diagnosis", "input!"),
    "integrity": ("", "", "input! json!"),
    "migrate": ("output", "", "input! json"),
    "edit": ("add set", "", "input! output!"),
    "reply": ("", "reply", "input! json!"),
    "taxonomy": ("", "", "json!"),
    "exit": ("", "reading exit", "input!"),
    "redact": ("as found only drop-signature expect code", "", "input! names output"),
    "sign": ("with-key replace expect code", "seed algorithm pkid at", "input! output signed-bytes json"),
    "verify": (
        "verdict body lines after trust by code at dnssec expect",
        "",
        "input! trust key dns json verified restored",
    ),
    "key": ("expect code", "", "input! json"),
    "learn": ("at expect code", "", "input! trust! after"),
    "trust-file": ("expect code", "", "input!"),
    "rc1": ("", "verdict", "input! key"),
    "collate": ("at poll expect code", "", "input! json output"),
    "consent": ("code at by proof before-proof leaves signed border authority", "expect", "input! before json"),
    "hop": ("seed algorithm pkid", "at by", "input! output!"),
    "check-hop": ("code", "expect", "input! key! json"),
    "audit": ("", "what result", "input! json"),
    "trace": ("", "", "input! key json!"),
    "relays": ("private", "", "input! dns json!"),
}
COMMON_KEYS = {"rule", "about", "op", "encoding", "escaped"}


class BadCase(Exception):
    """A case file that is wrong: a typo must not make a case pass."""


class Mismatch(Exception):
    """An answer that differs from the expectation of the case."""

    def __init__(self, expected: object, received: object) -> None:
        super().__init__(f"expected {expected}\nreceived {received}")


@dataclass
class Case:
    """One case."""

    id: str
    head: dict[str, str]
    sections: list[tuple[str, bytes]]

    @classmethod
    def read(cls, path: Path) -> Case:
        """Reads the file and checks its form. Escapes are resolved by `unescape`, because some inputs have 64 MiB."""
        head: dict[str, str] = {}
        sections: list[tuple[str, bytearray]] = []
        for line in split_lines(path.read_bytes()):
            if line.startswith(b"=== "):
                sections.append((line[4:].decode().rstrip(), bytearray()))
            elif sections:
                sections[-1][1].extend(line)
            else:
                key, colon, value = line.decode().rstrip("\n").partition(":")
                if not colon or key in head:
                    raise BadCase(f"the head has the line {line!r}")
                head[key] = value.strip()
        case = cls(f"{path.parent.name}/{path.stem}", head, [(name, bytes(text)) for name, text in sections])
        case.check()
        return case

    def check(self) -> None:
        for key in ("rule", "about", "op"):
            if not self.head.get(key):
                raise BadCase(f"the key `{key}` is missing")
        if self.op not in FORMS:
            raise BadCase(f"the op `{self.op}` is unknown")
        optional, needed, titles = (part.split() for part in FORMS[self.op])
        unknown = set(self.head) - COMMON_KEYS - set(optional) - set(needed)
        missing = set(needed) - set(self.head)
        names = [name for name, _ in self.sections]
        strange = set(names) - {title.rstrip("!") for title in titles}
        absent = {title[:-1] for title in titles if title.endswith("!")} - set(names)
        twice = {name for name in names if names.count(name) > 1} - {"same", "differs"}
        for fault, words in (
            ("has unknown keys", unknown),
            ("lacks keys", missing),
            ("has unknown sections", strange),
            ("lacks sections", absent),
            ("has sections twice", twice),
        ):
            if words:
                raise BadCase(f"`{self.op}` {fault}: {sorted(words)}")
        if self.rejects and not self.get("code"):
            raise BadCase("a rejection needs the key `code`")

    def unescape(self) -> None:
        """Resolves the escapes of the input, and of the sections that `escaped` names."""
        titles = self.get("escaped").split()
        if "encoding" in self.head:
            titles.append("input")
        self.sections = [
            (name, unescaped(text.decode()) if name in titles else text) for name, text in self.sections
        ]

    @property
    def op(self) -> str:
        return self.head["op"]

    @property
    def rule(self) -> str:
        return self.head["rule"]

    @property
    def rejects(self) -> bool:
        return self.get("expect") == "reject"

    def has(self, key: str) -> bool:
        return key in self.head

    def get(self, key: str) -> str:
        return self.head.get(key, "")

    def all(self, title: str) -> list[bytes]:
        return [text for name, text in self.sections if name == title]

    def optional(self, title: str) -> bytes | None:
        return next(iter(self.all(title)), None)

    def section(self, title: str) -> bytes:
        text = self.optional(title)
        if text is None:
            raise BadCase(f"the section `{title}` is missing")
        return text

    def line(self, title: str) -> bytes:
        """A section without the line end that closes it."""
        text = self.section(title)
        if not text.endswith(b"\n"):
            raise BadCase(f"the section `{title}` does not end with a line end")
        return text[:-1]


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their LF; `bytes.splitlines` would also split at CR."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


ESCAPE = re.compile(r"\\(?:([nrt\\}])|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\})")
REPETITION = re.compile(r"\\\*\{(\d+)\}\{((?:[^\\}]|\\[nrt\\}]|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-fA-F]+\})*)\}")
PLAIN = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "}": b"}"}


def unescaped(text: str) -> bytes:
    """Removes the line ends, then resolves the escapes."""
    text = text.replace("\n", "")
    out = bytearray()
    at = 0
    while at < len(text):
        start = text.find("\\", at)
        if start < 0:
            start = len(text)
        out += text[at:start].encode()
        if start == len(text):
            break
        if repeated := REPETITION.match(text, start):
            out += unescaped(repeated[2]) * int(repeated[1])
            at = repeated.end()
        elif escape := ESCAPE.match(text, start):
            plain, byte, point = escape.groups()
            out += PLAIN[plain] if plain else bytes([int(byte, 16)]) if byte else chr(int(point, 16)).encode()
            at = escape.end()
        else:
            raise BadCase(f"there is no escape {text[start : start + 10]!r}")
    return bytes(out)


class Levels:
    """The tables of `levels.toml`."""

    def __init__(self, path: Path) -> None:
        self.tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text())

    def of_rule(self, rule: str) -> int:
        rules = self.tables["rules"]
        return int(rules[rule] if rule in rules else rules[rule.split("-")[0]])

    def of_case(self, case: Case) -> int:
        """The highest level of what a case needs."""
        levels = [self.of_rule(case.rule), int(self.tables["ops"][case.op])]
        if case.has("reading"):
            levels.append(int(self.tables["readings"][case.get("reading")]))
        words = case.get("reports").split() + case.get("silent").split()
        return max([*levels, *(self.of_rule(word.split("/")[0]) for word in words)])


ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
UUID_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Subset:
    """The comparison of a section `json` with a result."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def compare(self, expected: Any, actual: Any, path: str = "") -> None:
        if isinstance(expected, dict) and isinstance(actual, list):
            fields = {entry.get("key", entry.get("name")): entry.get("value") for entry in actual}
            actual = fields
        if isinstance(expected, dict) and isinstance(actual, dict):
            for key, value in expected.items():
                self.compare(value, actual.get(key), f"{path}.{key}")
        elif isinstance(expected, list) and isinstance(actual, list):
            if expected and path.rsplit(".", 1)[-1] in ("errors", "diagnostics", "repairs"):
                self.findings(expected, actual, path)
            elif len(expected) == len(actual):
                for index, (value, item) in enumerate(zip(expected, actual)):
                    self.compare(value, item, f"{path}[{index}]")
            else:
                raise Mismatch(f"{path} = {expected}", actual)
        elif not self.fits(expected, actual) and not (expected == actual and type(expected) is type(actual)):
            raise Mismatch(f"{path} = {expected!r}", repr(actual))

    def findings(self, expected: list[Any], actual: list[Any], path: str) -> None:
        """Each expected one is there, in any order; there may be others."""
        left = list(actual)
        for value in expected:
            for item in left:
                before = dict(self.names)
                try:
                    self.compare(value, item, f"{path}[]")
                except Mismatch:
                    self.names = before
                else:
                    left.remove(item)
                    break
            else:
                raise Mismatch(f"{path} with {value}", actual)

    def fits(self, expected: Any, actual: Any) -> bool:
        """`{{name}}` is any text that is not empty, the same one for the same name; `{{id…}}` is an id."""
        if not (isinstance(expected, str) and expected.startswith("{{") and expected.endswith("}}")):
            return False
        name = expected[2:-2]
        if not isinstance(actual, str) or not actual:
            return False
        if name.startswith("id") and not (ULID.fullmatch(actual) or UUID_V7.fullmatch(actual)):
            return False
        if any(other != name and text == actual for other, text in self.names.items()):
            return False
        return self.names.setdefault(name, actual) == actual
