"""Runs every case of `conformance/` up to level L2 through the package: `python conformance.py [ID]`.

Operations of the package go through its public functions. The suite, which is part of a build with the feature `conformance`,
reads and judges the cases, and answers what the package does not offer.
"""

from __future__ import annotations

import base64
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_crosstalk as crosstalk
from ai_crosstalk import CrosstalkError, _native

FOLDER = Path(__file__).parents[2] / "conformance"
MAX_LEVEL = 2
Result = dict[str, Any]


# The package behind the interface of the suite


def rejection(error: CrosstalkError) -> Result:
    return {"errors": [{"rule": error.rule, "code": error.code, "severity": "error", "line": error.line}]}


def written(make: Callable[[], str | bytes]) -> Result:
    """The text that a function writes, or its rejection."""
    try:
        output = make()
    except CrosstalkError as error:
        return rejection(error)
    return {"output": output if isinstance(output, str) else output.decode()}


# For each operation of the package, the answer of its public function; `None` if a question goes beyond it.


def parse(input: bytes, q: Result) -> Result | None:
    # That a request has exactly one envelope is a rule of relays.
    return None if q.get("binding") else dict(crosstalk.parse(input, "strict" if q["reading"] == "strict" else "paste"))


def build(input: bytes, q: Result) -> Result | None:
    message = json.loads(input)
    # `build` generates ids that are missing.
    if not isinstance(message, dict) or not {"thread", "message"} <= {key for key in message if message[key]}:
        return None
    return written(lambda: crosstalk.build(message))


def ids(input: bytes, q: Result) -> Result | None:
    return {"ids": [crosstalk.new_id() for _ in range(q["count"])]} if q["form"] == "ulid" else None


def canonical(input: bytes, q: Result) -> Result:
    result = written(lambda: crosstalk.canonical(input))
    return {**result, "digest": crosstalk.digest(input)} if "output" in result else result


def fmt(input: bytes, q: Result) -> Result | None:
    return None if q["fence"] else written(lambda: crosstalk.format(input))


def address(input: bytes, q: Result) -> Result | None:
    if q["schemes"]:
        return None
    report = crosstalk.parse_address(input.decode())
    return {**report, "text": report["address"]} if report["valid"] else {"errors": report["diagnostics"]}


def migrate(input: bytes, q: Result) -> Result:
    return written(lambda: crosstalk.migrate(input))


def reply(input: bytes, q: Result) -> Result | None:
    if q["reply"] != "respond":
        return None
    return written(lambda: crosstalk.reply(input, "Done.", user="brother", intent="RESPOND"))


def redact(input: bytes, q: Result) -> Result | None:
    if q["names"] or q["only"] or q["drop_signature"]:
        return None
    try:
        redaction = crosstalk.redact(input)
    except CrosstalkError as error:
        return rejection(error)
    return {"output": redaction["text"], "found": [found["kind"] for found in redaction["found"]]}


def sign(input: bytes, q: Result) -> Result:
    key, pkid, algorithm = pem_of(bytes.fromhex(q["seed"]), q["algorithm"]), q["pkid"], q["algorithm"]
    options = {"key_id": pkid, "at": q["at"], "with_key": q["with_key"], "replace": q["replace"]}
    result = written(lambda: crosstalk.sign(input, key, **options))
    if "output" in result:
        form = crosstalk.canonical(result["output"]).decode()
        result["signed_bytes"] = f"ai-crosstalk-sig-v1.1\n{algorithm}\n{pkid}\n{form}"
    return result


def verify(input: bytes, q: Result) -> Result | None:
    if q.get("trust") or q.get("key") or q.get("dns") or q.get("dnssec"):
        return None
    try:
        verdict = crosstalk.verify(input, at=q["at"])
    except CrosstalkError:
        return None  # Several envelopes.
    is_read = crosstalk.parse(input)["envelopes"]
    return {"verdicts": [verdict]} if is_read else {"errors": verdict["repairs"]}


def pem_of(seed: bytes, algorithm: str) -> str:
    """The private key in PKCS#8 (RFC 8410, RFC 5915)."""
    head = {
        "ed25519": "302e020100300506032b657004220420",
        "secp256r1": "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420",
    }
    lines = textwrap.wrap(base64.b64encode(bytes.fromhex(head[algorithm]) + seed).decode(), 64)
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])


PUBLIC: dict[str, Callable[..., Result | None]] = {
    function.__name__: function
    for function in (parse, build, ids, canonical, fmt, address, migrate, reply, redact, sign, verify)
}


class Package:
    """The package behind the interface of the suite. `damages` makes its answers wrong, which the suite has to notice."""

    def __init__(self) -> None:
        self.damages = False
        self.public_answers = 0
        self.test_only_answers = 0
        self.operations: set[str] = set()
        """The operations that a public function answered in the last case."""

    def answer(self, question: str) -> str | None:
        """The answer to a question, both as JSON; nothing if the package does not offer the operation."""
        parameters: Result = json.loads(question)
        raw = parameters.get("input_base64")
        input = base64.b64decode(raw) if raw is not None else parameters.get("input", "").encode()
        public = PUBLIC.get(parameters["op"])
        result = public(input, parameters) if public else None
        if result is None:
            self.test_only_answers += 1
            return None
        self.public_answers += 1
        self.operations.add(parameters["op"])
        return "{}" if self.damages else json.dumps(result)


def run(only: str = "") -> tuple[int, list[str]]:
    """How many cases passed, and the complaints; for each operation of the package, one case is run with wrong answers, too."""
    package, levels = Package(), (FOLDER / "levels.toml").read_text()
    passed, complaints = [0] * (MAX_LEVEL + 1), []
    answered: dict[str, tuple[str, bytes]] = {}
    for path in sorted(FOLDER.glob("*/*.case")):
        id, file = f"{path.parent.name}/{path.stem}", path.read_bytes()
        head = json.loads(_native.case_head(levels, id, file))
        if head["level"] > MAX_LEVEL or not id.startswith(only):
            continue
        package.operations.clear()
        complaint = _native.judge_case(id, file, package.answer)
        for op in package.operations:
            answered.setdefault(op, (id, file))
        if complaint is None:
            passed[head["level"]] += 1
        else:
            complaints.append(f"{id} ({head['rule']}): {complaint[:2000]}")
    for level, count in enumerate(passed):
        print(f"L{level}: {count} cases")
    print(f"{package.public_answers} answers of public functions, {package.test_only_answers} of the test build")
    if not only:
        # The suite holds the same files; it must have the same number.
        held = _native.case_counts()[: MAX_LEVEL + 1]
        if not complaints and passed != held:
            complaints.append(f"the suite has {held} cases of these levels, this run {passed}")
        package.damages = True
        for op, (id, file) in answered.items():
            if _native.judge_case(id, file, package.answer) is None:
                complaints.append(f"a wrong answer to `{op}` passes {id}")
        print("wrong answers are noticed:", *sorted(answered))
    return sum(passed), complaints


def main(arguments: list[str]) -> int:
    passed, complaints = run(*arguments[:1])
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{passed} passed, {len(complaints)} failed")
    return 1 if complaints or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
