"""The types of results against the JSON Schemas that the command line and a relay publish."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import types
import typing
import unittest
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ai_crosstalk
from ai_crosstalk import _forms as forms
from scratch_relay import BINARY, ScratchRelay

PYTHON = Path(__file__).parents[1]


class Comparison:
    """Compares a type with a schema, down to the words of each field."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.root = schema
        self.compared: set[str] = set()

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            at: Any = self.root
            for key in schema["$ref"].removeprefix("#/").split("/"):
                at = at[key]
            schema = at
        return schema

    def form(self, form: Any, schema: dict[str, Any], leave_out: Sequence[str] = ()) -> None:
        """A TypedDict has the properties of the schema; those that must be there are required."""
        schema = self.resolve(schema)
        if form.__name__ in self.compared:
            return
        self.compared.add(form.__name__)
        hints = typing.get_type_hints(form)
        properties = {name: value for name, value in schema["properties"].items() if name not in leave_out}
        assert set(hints) == set(properties), (form, set(hints) ^ set(properties))
        required = set(schema["required"])
        assert form.__required_keys__ >= required, (form, required - form.__required_keys__)
        for name, value in properties.items():
            self.value(hints[name], value, f"{form.__name__}.{name}")

    def value(self, hint: Any, schema: dict[str, Any], where: str) -> None:
        schema = self.resolve(schema)
        words = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if typing.get_origin(hint) is typing.Literal:
            assert words is not None and set(typing.get_args(hint)) == set(words), (where, words)
            return
        kinds = schema.get("type", [])
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        if words is not None:
            kinds = {kind_of(word) for word in words}
        kinds |= {self.resolve(part)["type"] for part in schema.get("anyOf", [])}
        if kinds:
            assert kinds_of(hint) == kinds, (where, hint, kinds)
        for part in [hint, *typing.get_args(hint)]:
            if typing.is_typeddict(part):
                objects = [schema, *(self.resolve(option) for option in schema.get("anyOf", []))]
                for option in objects:
                    if "properties" in option:
                        self.form(part, option)
            elif typing.get_origin(part) is list and "items" in schema:
                self.value(typing.get_args(part)[0], schema["items"], f"{where}[]")


NAMES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def kind_of(word: object) -> str:
    return NAMES[type(word)]


def kinds_of(hint: Any) -> set[str]:
    """The JSON types of a hint."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return {kind for part in typing.get_args(hint) for kind in kinds_of(part)}
    if origin is typing.Literal:
        return {kind_of(word) for word in typing.get_args(hint)}
    if origin in (list, Sequence):
        return {"array"}
    if typing.is_typeddict(hint) or origin is Mapping:
        return {"object"}
    return {NAMES[hint]}


def command_schema(form: str) -> dict[str, Any]:
    printed = subprocess.run([BINARY, "schema", form], capture_output=True, check=True).stdout
    schema: dict[str, Any] = json.loads(printed)
    return schema


class Forms(unittest.TestCase):
    def test_forms_of_the_command_line(self) -> None:
        # `file` is there if the command line read several files.
        for form, word in (
            (forms.LintReport, "lint"),
            (forms.AddressReport, "address"),
            (forms.VerifyReport, "verify"),
        ):
            schema = command_schema(word)
            Comparison(schema).form(form, schema, leave_out=["file"])

    def test_redaction_always_has_a_text(self) -> None:
        schema = command_schema("redact")
        schema["properties"]["text"]["type"].remove("null")
        Comparison(schema).form(forms.RedactReport, schema, leave_out=["file"])

    def test_the_report_of_parse_and_the_message_of_build(self) -> None:
        schema = command_schema("parse")
        comparison = Comparison(schema)
        definitions = schema["$defs"]
        comparison.form(forms.Finding, definitions["finding"])
        message = definitions["message"]["properties"]
        self.assertEqual(set(typing.get_type_hints(forms.MessageInput)), set(message))
        self.assertEqual(forms.MessageInput.__required_keys__, set(definitions["message"]["required"]))
        self.assertEqual(set(typing.get_type_hints(forms.Envelope)), set(message))
        self.assertEqual(set(typing.get_type_hints(forms.ParseReport)), set(definitions["report"]["properties"]))
        # What is read has every field; only the name of the body may be missing.
        self.assertEqual(forms.Envelope.__optional_keys__, {"body_name"})
        text = ai_crosstalk.build({"sender": "A", "receiver": "B", "user": "a", "context": "c", "intent": "REQUEST"})
        [envelope] = ai_crosstalk.parse(text)["envelopes"]
        self.assertEqual(set(envelope), set(forms.Envelope.__required_keys__))

    def test_forms_of_a_relay(self) -> None:
        with ScratchRelay() as relay, urllib.request.urlopen(f"{relay.url}/openapi.json") as answer:
            schema = json.load(answer)
        schemas = schema["components"]["schemas"]
        comparison = Comparison(schema)
        for form, name in (
            (forms.InboxPage, "Inbox"),
            (forms.InboxMessage, "Entry"),
            (forms.RelayMessage, "Message"),
            (forms.Acknowledged, "Acked"),
            (forms.ThreadSummary, "Thread"),
            (forms.ThreadMessage, "Node"),
            (forms.ThreadTree, "ThreadTree"),
            (forms.Attachment, "Blob"),
            (forms.ReceivedEnvelope, "ParsedMessage"),
        ):
            comparison.form(form, schemas[name])
        self.assertEqual(set(typing.get_type_hints(forms.SendResult)), set(schemas["Receive"]["properties"]))

    def test_a_difference_is_noticed(self) -> None:
        schema: dict[str, Any] = {}
        for change in (
            lambda: schema["properties"].pop("counts"),
            lambda: schema["properties"].update(more={"type": "string"}),
            lambda: schema["properties"]["envelopes"].update(type="string"),
            lambda: schema["properties"]["schema"].update(const="crosstalk.lint/2"),
            lambda: schema["properties"]["counts"]["properties"].pop("note"),
        ):
            schema = command_schema("lint")
            change()
            with self.assertRaises(AssertionError):
                Comparison(schema).form(forms.LintReport, schema)


class Types(unittest.TestCase):
    """`mypy --strict` sees the installed package, its examples and those of the README."""

    def test_package_examples_and_readme(self) -> None:
        mypy = os.environ.get("CROSSTALK_MYPY", "mypy")
        with tempfile.TemporaryDirectory() as folder:
            readme = (PYTHON / "README.md").read_text()
            for name, text in re.findall(r"^```python file=(\S+)\n(.*?)^```$", readme, re.M | re.S):
                (Path(folder) / name).write_text(text)
            package = Path(ai_crosstalk.__file__).parent
            for target in ([package], sorted((PYTHON / "examples").glob("*.py")), sorted(Path(folder).glob("*.py"))):
                self.assertTrue(target)
                command = [mypy, "--strict", "--python-executable", sys.executable, "--python-version", "3.10", *target]
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
