"""Runs every case of `conformance/` up to level L2 through the package: `python conformance.py [--only ID] [--break]`.

Operations of the package go through its public functions. The others, which it does not offer, go through the function `answer`
of a build with the feature `conformance`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_crosstalk as crosstalk
from ai_crosstalk import CrosstalkError, _native
from case_file import BadCase, Case, Levels, Mismatch, Subset

FOLDER = Path(__file__).parents[2] / "conformance"
MAX_LEVEL = 2
NOW = "2025-10-10T12:00:00Z"
Result = dict[str, Any]


# The package behind the interface of the suite


def rejection(error: CrosstalkError) -> Result:
    return {"errors": [{"rule": error.rule, "code": error.code, "severity": "error", "line": error.line}]}


def written(make: Callable[[], str | bytes]) -> Result:
    """The text that a function writes, or its rejection."""
    try:
        return {"output": make()}
    except CrosstalkError as error:
        return rejection(error)


def test_only(op: str, **parameters: Any) -> Result:
    """An operation that the package does not offer."""
    question: dict[str, Any] = {"id": 0, "op": op}
    for key, value in parameters.items():
        if isinstance(value, bytes):
            try:
                question[key] = value.decode()
            except UnicodeDecodeError:
                question[f"{key}_base64"] = base64.b64encode(value).decode()
        elif value is not None:
            question[key] = value
    answer = json.loads(_native.answer(json.dumps(question)))
    if "result" not in answer:
        raise Mismatch("a result", answer)
    result: Result = answer["result"]
    return result


# For each operation of the package, the answer of its public function; `None` if a question goes beyond it.


def parse(input: bytes, reading: str, binding: str | None) -> Result | None:
    # That a request has exactly one envelope is a rule of relays.
    return None if binding else dict(crosstalk.parse(input, "strict" if reading == "strict" else "paste"))


def build(input: bytes) -> Result | None:
    message = json.loads(input)
    # `build` generates ids that are missing.
    if not isinstance(message, dict) or not {"thread", "message"} <= {key for key in message if message[key]}:
        return None
    return written(lambda: crosstalk.build(message))


def ids(form: str, count: int) -> Result | None:
    return {"ids": [crosstalk.new_id() for _ in range(count)]} if form == "ulid" else None


def canonical(input: bytes) -> Result:
    return written(lambda: crosstalk.canonical(input))


def fmt(input: bytes, fence: bool) -> Result | None:
    return None if fence else written(lambda: crosstalk.format(input))


def address(input: bytes, schemes: list[Any]) -> Result | None:
    if schemes:
        return None
    report = crosstalk.parse_address(input.decode())
    return {**report, "text": report["address"]} if report["valid"] else {"errors": report["diagnostics"]}


def migrate(input: bytes) -> Result:
    return written(lambda: crosstalk.migrate(input))


def reply(input: bytes, reply: str, code: str | None) -> Result | None:
    if reply != "respond":
        return None
    return written(lambda: crosstalk.reply(input, "Done.", user="brother", intent="RESPOND"))


def redact(input: bytes, names: list[str], only: list[str], drop_signature: bool, **others: Any) -> Result | None:
    if names or only or drop_signature:
        return None
    try:
        redaction = crosstalk.redact(input)
    except CrosstalkError as error:
        return rejection(error)
    return {"output": redaction["text"], "found": [found["kind"] for found in redaction["found"]]}


def sign(input: bytes, seed: str, algorithm: str, pkid: str, at: str, with_key: bool, replace: bool) -> Result:
    key = pem_of(bytes.fromhex(seed), algorithm)
    result = written(lambda: crosstalk.sign(input, key, key_id=pkid, at=at, with_key=with_key, replace=replace))
    if "output" in result:
        result["signed_bytes"] = (
            f"ai-crosstalk-sig-v1.1\n{algorithm}\n{pkid}\n" + crosstalk.canonical(result["output"]).decode()
        )
    return result


def verify(input: bytes, at: str, trust: str, key: str | None, dns: Any, dnssec: str | None) -> Result | None:
    if trust or key or dns or dnssec:
        return None
    try:
        verdict = crosstalk.verify(input, at=at)
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
    """Answers questions. `break_next` damages the next answer, which a runner has to notice."""

    def __init__(self) -> None:
        self.break_next = False
        self.public_answers = 0
        self.test_only_answers = 0

    def ask(self, op: str, **parameters: Any) -> Result:
        public = PUBLIC.get(op)
        result = public(**parameters) if public else None
        if result is None:
            result = test_only(op, **parameters)
            self.test_only_answers += 1
        else:
            self.public_answers += 1
        if self.break_next:
            self.break_next = False
            result = damaged(result)
        return result


def damaged(result: Result) -> Result:
    """A wrong answer that has the form of a right one, as far as that goes."""
    if "output" in result:
        output = result["output"]
        return {**result, "output": output + (" " if isinstance(output, str) else b" ")}
    return {} if "errors" in result and "envelopes" not in result else {"errors": [], "envelopes": []}


# What a case expects


class Judge:
    """Runs one case against the package."""

    def __init__(self, case: Case, package: Package) -> None:
        self.case = case
        self.package = package

    def ask(self, **parameters: Any) -> Result:
        return self.package.ask(self.case.op, **parameters)

    def optional(self, key: str) -> str | None:
        return self.case.get(key) if self.case.has(key) else None

    def json(self, title: str, default: Any = None) -> Any:
        text = self.case.optional(title)
        return default if text is None else json.loads(text)

    def key(self) -> str | None:
        return self.case.line("key").decode() if self.case.optional("key") is not None else None

    def run(self) -> None:
        judge = getattr(self, f"judge_{self.case.op.replace('-', '_')}", None)
        if judge is None:
            raise BadCase(f"the op `{self.case.op}` is unknown")
        judge()

    # Comparisons

    def output(self, result: Result) -> bytes:
        if result.get("errors"):
            raise Mismatch("no rejection", result)
        output = result.get("output")
        if not isinstance(output, (str, bytes)):
            raise Mismatch("a result with `output`, a text", result)
        return output.encode() if isinstance(output, str) else output

    def writes(self, result: Result) -> None:
        equal(self.case.section("output"), self.output(result))

    def subset(self, result: Any) -> None:
        expected = self.json("json")
        if expected is not None:
            Subset().compare(expected, result)

    def is_accepted(self, result: Result, by_rule: bool = True) -> bool:
        """Whether the case goes on: it expects no rejection and there is none. An expected rejection is checked."""
        errors = result.get("errors")
        if not self.case.rejects:
            if errors:
                raise Mismatch("no rejection", result)
            return True
        self.carries(errors or [], by_rule)
        return False

    def carries(self, errors: list[Any], by_rule: bool = True) -> None:
        """One of the diagnostics has the code of the case, and its rule."""
        code, rule = self.case.get("code"), self.case.rule

        def fits(finding: Result) -> bool:
            return finding["code"] == code and (
                not by_rule or (finding["rule"] == rule and finding["severity"] == "error")
            )

        if not any(fits(finding) for finding in errors):
            raise Mismatch(f"an error with the rule {rule} and the code {code}", errors)

    def report(self, text: bytes, binding: str | None = "one") -> Result:
        """The strict report on a text that the package wrote."""
        report = self.package.ask("parse", input=text, reading="strict", binding=binding)
        no_error(report)
        return report

    # L0

    def judge_parse(self) -> None:
        case = self.case
        report = self.ask(input=case.section("input"), reading=case.get("reading"), binding=self.optional("binding"))
        found = findings(report)
        if case.get("expect") == "accept":
            no_error(report)
            if not report["envelopes"]:
                raise Mismatch("at least one envelope", report)
        elif case.rejects:
            equal([], report["envelopes"])
            self.carries(report["errors"])
        else:
            case.section("json")
        places = {key: int(case.get(key)) for key in ("line", "column") if case.has(key)}
        of_rule = [finding for finding in found if finding["rule"] == case.rule]
        if places and not any(all(f[key] == place for key, place in places.items()) for f in of_rule):
            raise Mismatch(f"{case.rule} at {places}", found)
        if case.has("repairs"):
            repairs = {finding["rule"] for finding in found if finding["severity"] == "repair"}
            equal(set(case.get("repairs").split()), repairs)
        for word in case.get("reports").split():
            rule, _, severity = word.partition("/")
            if not any(f["rule"] == rule and severity in ("", f["severity"]) for f in found):
                raise Mismatch(f"a diagnostic of {word}", found)
        for rule in case.get("silent").split():
            if any(finding["rule"] == rule for finding in found):
                raise Mismatch(f"no diagnostic of {rule}", found)
        self.subset(report)

    def judge_build(self) -> None:
        result = self.ask(input=self.case.section("input"))
        if self.is_accepted(result, by_rule=False):
            self.writes(result)

    def judge_edit(self) -> None:
        change = "add" if self.case.has("add") else "set"
        namespace, _, field = self.case.get(change).partition(" ")
        key, _, value = field.partition("=")
        parameters = {"change": change, "namespace": namespace, "key": key, "value": value}
        self.writes(self.ask(input=self.case.section("input"), **parameters))

    def judge_id(self) -> None:
        equal(self.case.get("form"), self.ask(input=self.case.line("input")).get("form"))

    def judge_ids(self) -> None:
        form, count = self.case.get("form"), int(self.case.get("count"))
        ids = self.ask(form=form, count=count).get("ids", [])
        equal(count, len(ids))
        for id in ids:
            equal(form, self.package.ask("id", input=id.encode()).get("form"))
        equal(sorted(set(ids)), ids)

    # L1

    def judge_canonical(self) -> None:
        case = self.case
        result = self.ask(input=case.section("input"))
        if not self.is_accepted(result, by_rule=False):
            return
        form = self.output(result)
        exact = case.optional("canonical")
        if exact is not None:
            equal(exact, form)
        if case.has("digest"):
            equal(case.get("digest"), f"sha256:{hashlib.sha256(form).hexdigest()}")
            equal(case.get("digest"), crosstalk.digest(case.section("input")))
        for same in case.all("same"):
            equal(form, self.output(self.ask(input=same)))
        for other in case.all("differs"):
            if self.output(self.ask(input=other)) == form:
                raise Mismatch("another canonical form for each section `differs`", form)
        if exact is None and not case.has("digest") and not case.all("same") and not case.all("differs"):
            raise BadCase("it compares nothing")

    def judge_fmt(self) -> None:
        self.writes(self.ask(input=self.case.section("input"), fence=self.case.has("fence")))

    def judge_address(self) -> None:
        result = self.ask(input=self.case.line("input"), schemes=self.json("schemes", []))
        if self.is_accepted(result):
            self.subset(result)

    def judge_resolve(self) -> None:
        self.subset(
            self.ask(
                input=self.case.line("input"),
                names=self.json("names", {}),
                domain=self.optional("domain"),
                dns=self.json("dns"),
                dnssec=self.optional("dnssec"),
            )
        )

    def judge_diagnose(self) -> None:
        result = self.ask(input=self.case.section("input"))
        equal(self.case.get("diagnosis"), result.get("diagnosis"))
        if self.case.has("after"):
            equal(int(self.case.get("after")), result["after"])
        if self.case.has("lines"):
            equal([int(line) for line in self.case.get("lines").split()], result["lines"])

    def judge_integrity(self) -> None:
        equal(self.json("json"), self.ask(input=self.case.section("input")).get("fields"))

    def judge_migrate(self) -> None:
        text = self.case.section("input")
        migrated = self.output(self.ask(input=text))
        if self.case.has("output"):
            equal(text, migrated)
        else:
            self.case.section("json")
            self.subset(self.report(migrated, binding=None))

    def judge_reply(self) -> None:
        kind, _, code = self.case.get("reply").partition(" ")
        result = self.ask(input=self.case.section("input"), reply=kind, code=code or None)
        self.subset(self.report(self.output(result)))

    def judge_taxonomy(self) -> None:
        equal(self.json("json"), self.ask().get("codes"))

    def judge_exit(self) -> None:
        result = self.ask(input=self.case.section("input"), reading=self.case.get("reading"))
        equal(int(self.case.get("exit")), result.get("exit"))

    def judge_redact(self) -> None:
        case = self.case
        names = (case.optional("names") or b"").decode().splitlines()
        parameters = {
            "as": self.optional("as"),
            "names": names,
            "only": case.get("only").split(),
            "drop_signature": case.has("drop-signature"),
        }
        result = self.ask(input=case.section("input"), **parameters)
        if self.is_accepted(result):
            self.writes(result)
            equal(case.get("found").split(), result["found"])
            again = self.ask(input=self.output(result), **parameters)
            equal(self.output(result), self.output(again))

    # L2

    def judge_sign(self) -> None:
        case = self.case
        result = self.ask(
            input=case.section("input"),
            seed=case.get("seed"),
            algorithm=case.get("algorithm"),
            pkid=case.get("pkid"),
            at=case.get("at"),
            with_key=case.has("with-key"),
            replace=case.has("replace"),
        )
        if not self.is_accepted(result, by_rule=False):
            return
        if case.optional("json") is not None:
            self.subset(self.report(self.output(result)))
            return
        if case.optional("signed-bytes") is not None:
            equal(case.section("signed-bytes"), result["signed_bytes"].encode())
        self.writes(result)

    def judge_verify(self) -> None:
        case = self.case

        def ask(text: bytes) -> Result:
            return self.ask(
                input=text,
                at=case.get("at") or NOW,
                trust=(case.optional("trust") or b"").decode(),
                key=self.key(),
                dns=self.json("dns"),
                dnssec=self.optional("dnssec"),
            )

        result = ask(case.section("input"))
        if not self.is_accepted(result):
            return
        verdicts = result.get("verdicts", [])
        for verdict in verdicts:
            well_formed(verdict)
            if verdict["envelope"] is not None:
                again = ask(verdict["envelope"].encode()).get("verdicts", [])
                pairs = [(v["verdict"], v["envelope"]) for v in again]
                equal([(verdict["verdict"], verdict["envelope"])], pairs)
        equal(case.get("verdict").split(), [verdict["verdict"] for verdict in verdicts])
        if len(verdicts) != 1:
            case.section("json")
            self.subset(verdicts)
            return
        self.judge_verdict(verdicts[0])

    def judge_verdict(self, verdict: Result) -> None:
        case = self.case
        for key, field in {"body": "body", "trust": "trust", "by": "rule", "code": "code"}.items():
            if case.has(key):
                equal(case.get(key), verdict[field] or "none")
        if case.has("after"):
            equal(case.get("after"), str(verdict["after"]))
        if case.has("lines"):
            equal(case.get("lines").split(), [str(line) for line in verdict["lines"]])
        verified, restored = case.optional("verified"), case.optional("restored")
        if verified is not None:
            equal(without_blank_lines(verified.decode()), without_blank_lines(verdict["envelope"]))
        if restored is not None:
            equal(restored.decode(), f"{verdict['restored']}\n")
        self.subset(verdict)

    def judge_key(self) -> None:
        result = self.ask(input=self.case.line("input"))
        if self.is_accepted(result):
            self.subset(result)

    def judge_learn(self) -> None:
        trust = self.case.section("trust").decode()
        result = self.ask(input=self.case.section("input"), trust=trust, at=self.case.get("at") or NOW)
        if self.is_accepted(result):
            equal(trust_data(self.case.section("after")), trust_data(self.output(result)))

    def judge_trust_file(self) -> None:
        result = self.ask(input=self.case.section("input"))
        if self.is_accepted(result):
            equal(trust_data(self.case.section("input")), trust_data(self.output(result)))

    def judge_rc1(self) -> None:
        equal(self.case.get("verdict"), self.ask(input=self.case.section("input"), key=self.key()).get("verdict"))

    def judge_collate(self) -> None:
        def ask(text: bytes) -> Result:
            return self.ask(input=text, poll=self.optional("poll"), at=self.optional("at"))

        text = self.case.section("input")
        result = ask(text)
        if not self.is_accepted(result):
            return
        # The order of the envelopes changes nothing.
        parts = [part + b"[[END]]\n" for part in text.split(b"[[END]]\n")]
        parts[-1] = parts[-1].removesuffix(b"[[END]]\n")
        equal(result, ask(b"".join(reversed(parts))))
        self.subset(result["collation"])
        if self.case.optional("output") is not None:
            self.writes(result)

    def judge_consent(self) -> None:
        case = self.case
        result = self.ask(
            input=case.section("input"),
            before=case.optional("before") or b"",
            before_proof=self.optional("before-proof") or "unsigned",
            proof=self.optional("proof") or "unsigned",
            by="agent" if case.get("by") == "agent" else None,
            at=self.optional("at") or "2026-01-01T00:00:00Z",
            leaves=self.optional("leaves"),
            signed=case.get("signed").split(),
            border="all" if case.get("border") == "all" else None,
            authority=self.optional("authority"),
        )
        if self.is_accepted(result):
            self.subset(result)


def equal(expected: object, received: object) -> None:
    if expected != received:
        raise Mismatch(repr(expected), repr(received))


def findings(report: Result) -> list[Result]:
    """Every diagnostic of a report, of accepted envelopes and others."""
    own = [finding for envelope in report["envelopes"] for finding in envelope["diagnostics"]]
    return own + list(report["errors"])


def no_error(report: Result) -> None:
    errors = [finding for finding in findings(report) if finding["severity"] == "error"]
    if errors:
        raise Mismatch("no error", errors)


def well_formed(verdict: Result) -> None:
    """Conditions that hold for every verdict."""
    equal("crosstalk.verify/1", verdict["schema"])
    is_shown = verdict["verdict"] in ("verified", "first-contact", "unbound")
    equal(is_shown, verdict["envelope"] is not None)
    if not verdict["sentence"] or not isinstance(verdict["next"], str):
        raise Mismatch("the texts `sentence` and `next`", verdict)


def without_blank_lines(envelope: str) -> str:
    """An envelope without the blank lines above its body, which a verifier may put there."""
    lines = envelope.split("\n")
    body = next((at for at, line in enumerate(lines) if line.startswith(("body:", "response:"))), len(lines))
    return "\n".join([line for line in lines[:body] if line] + lines[body:])


def trust_data(file: bytes) -> Any:
    """The entries of a trust file in an order of their own; missing senders are an empty list."""
    data = tomllib.loads(file.decode())
    for table in ("key", "dns"):
        entries = [{"senders": [], **entry} for entry in data.get(table, [])]
        data[table] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True, default=str))
    return data


# The run


def cases() -> list[tuple[Case, int]]:
    """Every case of the folder with its level."""
    levels = Levels(FOLDER / "levels.toml")
    read = [Case.read(path) for path in sorted(FOLDER.glob("*/*.case"))]
    return [(case, levels.of_case(case)) for case in read]


def run_case(case: Case, package: Package) -> str | None:
    """The complaint about a case that fails."""
    case.unescape()
    try:
        Judge(case, package).run()
        return None
    except (Mismatch, BadCase, KeyError, TypeError) as fault:
        return f"{case.id} ({case.rule}): {type(fault).__name__}: {str(fault)[:2000]}"
    finally:
        case.sections.clear()


def run(only: str | None = None, broken: bool = False) -> tuple[int, list[str]]:
    """How many cases passed, and the complaints. With `broken`, the first answer is a wrong one."""
    package = Package()
    package.break_next = broken
    passed, complaints = [0] * (MAX_LEVEL + 1), []
    for case, level in cases():
        if level > MAX_LEVEL or (only and not case.id.startswith(only)):
            continue
        complaint = run_case(case, package)
        if complaint is None:
            passed[level] += 1
        else:
            complaints.append(complaint)
    for level, count in enumerate(passed):
        print(f"L{level}: {count} cases")
    print(f"{package.public_answers} answers of public functions, {package.test_only_answers} of the test build")
    if not only and not broken and not complaints:
        # The Rust runner embeds the same folder; it must have seen the same cases.
        in_rust = _native.case_counts()[: MAX_LEVEL + 1]
        if passed != in_rust:
            complaints.append(f"the Rust suite has {in_rust} cases of these levels, this run {passed}")
    return sum(passed), complaints


def main(arguments: list[str]) -> int:
    only = next((word for word in arguments if not word.startswith("-")), None)
    passed, complaints = run(only, "--break" in arguments)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{passed} passed, {len(complaints)} failed")
    return 1 if complaints or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
