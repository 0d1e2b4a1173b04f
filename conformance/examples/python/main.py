"""A model program behind `crosstalk conform --program`: one JSON question per line, one JSON answer per line.

It implements level L0 and the strict part of L1. conformance/README.md describes the questions and the results.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any, Callable

import address
import canonical
import ids
import reader
import replies
import resolve
import writer
from diagnostics import Rejection
from registry import SCHEMES, Scheme

Question = dict[str, Any]
Result = dict[str, Any]


class Unsupported(Exception):
    """The program does not have this op, or not in this reading."""


def input_bytes(question: Question) -> bytes:
    """Returns the input as bytes. A text that is not UTF-8 comes as `input_base64`."""
    if "input_base64" in question:
        return base64.b64decode(question["input_base64"])
    return question["input"].encode()


def answer_parse(question: Question) -> Result:
    _require_strict(question)
    read = reader.read_one if question.get("binding") == "one" else reader.read_file
    return read(input_bytes(question)).to_json()


def answer_build(question: Question) -> Result:
    return {"output": writer.build(question["input"])}


def answer_edit(question: Question) -> Result:
    change, namespace, key, value = (question[name] for name in ("change", "namespace", "key", "value"))
    return {"output": writer.edit(input_bytes(question), change, namespace, key, value)}


def answer_id(question: Question) -> Result:
    return {"form": ids.form_of(question["input"])}


def answer_ids(question: Question) -> Result:
    return {"ids": [ids.generate(question["form"]) for _ in range(question["count"])]}


def answer_canonical(question: Question) -> Result:
    return {"output": canonical.canonicalize(input_bytes(question))}


def answer_address(question: Question) -> Result:
    added = [Scheme(entry["name"], entry["form"], entry["kind"]) for entry in question.get("schemes") or []]
    schemes = SCHEMES | {scheme.name.lower(): scheme for scheme in added}
    return address.parse(question["input"], schemes).to_json()


def answer_resolve(question: Question) -> Result:
    return resolve.resolve(
        question["input"],
        question.get("names") or {},
        domain=question.get("domain"),
        dns=question.get("dns"),
        needs_dnssec=question.get("dnssec") == "required",
    ).to_json()


def answer_integrity(question: Question) -> Result:
    envelope = reader.require_one(input_bytes(question), apply_intents=False)
    return {"fields": canonical.integrity_fields(envelope.body_lines)}


def answer_migrate(question: Question) -> Result:
    return {"output": writer.migrate(input_bytes(question))}


def answer_reply(question: Question) -> Result:
    return {"output": replies.reply(input_bytes(question), question["reply"], question.get("code"))}


def answer_taxonomy(_: Question) -> Result:
    return {"codes": replies.taxonomy()}


def answer_exit(question: Question) -> Result:
    _require_strict(question)
    return {"exit": replies.exit_code(reader.read_file(input_bytes(question)).errors)}


def _require_strict(question: Question) -> None:
    if question["reading"] != "strict":
        raise Unsupported


OPS: dict[str, Callable[[Question], Result]] = {
    "parse": answer_parse,
    "build": answer_build,
    "edit": answer_edit,
    "id": answer_id,
    "ids": answer_ids,
    "canonical": answer_canonical,
    "address": answer_address,
    "resolve": answer_resolve,
    "integrity": answer_integrity,
    "migrate": answer_migrate,
    "reply": answer_reply,
    "taxonomy": answer_taxonomy,
    "exit": answer_exit,
}


def answer(question: Question) -> dict[str, Any]:
    """Answers one question. A defect of this program becomes an `error` for this question alone."""
    head = {"id": question.get("id")}
    op = OPS.get(question.get("op", ""))
    if op is None:
        return {**head, "unsupported": True}
    try:
        return {**head, "result": op(question)}
    except Unsupported:
        return {**head, "unsupported": True}
    except Rejection as rejection:
        return {**head, "result": {"errors": [item.to_json() for item in rejection.diagnostics]}}
    except Exception as error:  # noqa: BLE001
        return {**head, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    # Bytes, not text: the texts inside may contain characters at which some text layers end a line.
    for line in sys.stdin.buffer:
        text = json.dumps(answer(json.loads(line)), ensure_ascii=False, separators=(",", ":"))
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
