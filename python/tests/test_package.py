"""The functions of the package, and its examples."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import ai_crosstalk as crosstalk
from ai_crosstalk import CrosstalkError, MessageInput, _native
from scratch_relay import ECHO, ScratchRelay

EXAMPLES = Path(__file__).parents[1] / "examples"
MESSAGE: MessageInput = {
    "sender": "CLAUDE",
    "receiver": "CHATGPT",
    "user": "kalle",
    "context": "auth",
    "intent": "REQUEST",
    "body": "Should we use JWT?",
    "meta": {"routing": {"X-Priority": "high"}},
}
KEY = crosstalk.generate_key()


class Functions(unittest.TestCase):
    def test_parse_reads_what_build_writes(self) -> None:
        text = crosstalk.build(MESSAGE)
        [envelope] = crosstalk.parse(text, "strict")["envelopes"]
        self.assertEqual(envelope["body"], MESSAGE["body"])
        self.assertEqual(envelope["meta"], [{"namespace": "routing", "fields": [{"key": "X-Priority", "value": "high"}]}])
        self.assertEqual(crosstalk.build(envelope), text)
        self.assertEqual(crosstalk.build(crosstalk.parse(text)), text)
        two = crosstalk.parse(crosstalk.build([MESSAGE, MESSAGE]))["envelopes"]
        self.assertNotEqual(two[0]["message"], two[1]["message"])

    def test_bytes_and_halves_of_characters(self) -> None:
        text = crosstalk.build({**MESSAGE, "body": "älä 🙂"})
        self.assertEqual(crosstalk.parse(text.encode()), crosstalk.parse(text))
        for bad in (text.encode() + b"\xff", text + "\udc00"):
            self.assertEqual([e["rule"] for e in crosstalk.parse(bad)["errors"]], ["ENV-001"])
            self.assertEqual(crosstalk.lint(bad)["counts"]["error"], 1)
            self.assertEqual(crosstalk.verify(bad)["verdict"], "not-verified")
            with self.assertRaises(CrosstalkError) as caught:
                crosstalk.canonical(bad)
            self.assertEqual(caught.exception.rule, "ENV-001")
        wrong: Any = 3
        with self.assertRaises(TypeError):
            crosstalk.parse(wrong)

    def test_half_of_a_character_is_an_error_in_every_argument(self) -> None:
        text, half = crosstalk.build(MESSAGE), "\ud800"
        for call in (
            lambda: crosstalk.build({**MESSAGE, "body": half}),
            lambda: crosstalk.reply(text, half),
            lambda: crosstalk.reply(text, "x", sender=half),
            lambda: crosstalk.sign(text, KEY["private_key_pem"], key_id=half),
            lambda: crosstalk.sign(text, half, key_id="kalle@example.com"),
            lambda: crosstalk.verify(text, keys=[{"id": half, "key": KEY["record"]}]),
            lambda: crosstalk.parse_address(half),
            lambda: crosstalk.Relay("http://127.0.0.1:1").send(half),
        ):
            with self.assertRaises(CrosstalkError) as caught:
                call()
            self.assertEqual((caught.exception.rule, caught.exception.help is None), ("ENV-001", False))

    def test_errors_have_all_parts(self) -> None:
        with self.assertRaises(CrosstalkError) as caught:
            crosstalk.digest(crosstalk.build(MESSAGE).replace("body: |", "body:"))
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        self.assertTrue(error.code and error.rule and error.help and error.line, vars(error))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), vars(again)), (str(error), vars(error)))
        wrong: Any = "lenient"
        for call in (
            lambda: crosstalk.parse("", wrong),
            lambda: crosstalk.build({"sender": "A", "receiver": "B"}),
            lambda: crosstalk.generate_key(wrong),
            lambda: crosstalk.sign("", KEY["private_key_pem"], key_id="kalle@example.com"),
            lambda: crosstalk.verify("", keys=[{"id": "a@example.com", "key": KEY["private_key_pem"]}]),
            lambda: crosstalk.verify("", at="yesterday"),
        ):
            with self.assertRaises(CrosstalkError):
                call()

    def test_options_are_keywords(self) -> None:
        text = crosstalk.build(MESSAGE)
        own = crosstalk.reply(text, "No.", sender="BOB", user="bob", intent="REQUEST", context="other")
        [answer] = crosstalk.parse(own, reading="strict")["envelopes"]
        self.assertEqual((answer["sender"], answer["user"], answer["context"]), ("BOB", "bob", "other"))
        key = crosstalk.generate_key(algorithm="secp256r1")
        signed = crosstalk.sign(text, key["private_key_pem"], key_id="kalle@example.com")
        trusted: list[crosstalk.TrustedKey] = [{"id": "kalle@example.com", "key": key["record"]}]
        self.assertEqual(crosstalk.verify(signed, keys=iter(trusted))["verdict"], "verified")
        with self.assertRaises(CrosstalkError):
            crosstalk.sign(signed, key["private_key_pem"], key_id="kalle@example.com")
        again = crosstalk.sign(signed, key["private_key_pem"], key_id="kalle@example.com", with_key=True, replace=True)
        self.assertEqual(crosstalk.verify(again)["verdict"], "first-contact")

    def test_every_function_reads_its_text(self) -> None:
        text = crosstalk.build(MESSAGE)
        self.assertEqual(crosstalk.format(text), text)
        self.assertEqual(crosstalk.migrate(text), text)
        self.assertEqual(crosstalk.canonical(text).splitlines()[0], "[[CLAUDE→CHATGPT v1]]".encode())
        self.assertRegex(crosstalk.digest(text), "^sha256:[0-9a-f]{64}$")
        self.assertEqual(crosstalk.redact("Write to ann@example.com.")["text"], "Write to [EMAIL].")
        self.assertEqual(crosstalk.parse_address("human://dr.smith@clinic.example/inbox")["host"], "clinic.example")
        self.assertLess(crosstalk.new_id(), crosstalk.new_id())

    def test_times(self) -> None:
        text, zone = crosstalk.build(MESSAGE), timezone(timedelta(hours=2))
        for at in ("2026-01-31T10:00:00Z", datetime(2026, 1, 31, 12, tzinfo=zone)):
            signed = crosstalk.sign(text, KEY["private_key_pem"], key_id=KEY["did"], at=at)
            self.assertEqual(crosstalk.verify(signed, at=at)["signed_at"], "2026-01-31T10:00:00Z")
        with self.assertRaises(ValueError):
            crosstalk.verify(text, at=datetime(2026, 1, 31))
        early = crosstalk.sign(text, KEY["private_key_pem"], key_id=KEY["did"], at=datetime(999, 1, 31, tzinfo=timezone.utc))
        self.assertEqual(crosstalk.verify(early)["signed_at"], "0999-01-31T00:00:00Z")

    def test_the_package_has_nothing_that_is_for_tests(self) -> None:
        self.assertFalse(hasattr(_native, "judge_case"))

    def test_other_threads_run_during_a_call(self) -> None:
        text = crosstalk.build({**MESSAGE, "body": "some words and more\n" * 5_000})
        gate, ran, interval = threading.Lock(), [], sys.getswitchinterval()
        gate.acquire()
        thread = threading.Thread(target=lambda: gate.acquire() and ran.append(True))
        thread.start()
        # From here on, Python takes its lock away from no thread: the other one runs only while a call has given it up.
        sys.setswitchinterval(1e6)
        try:
            gate.release()
            for _ in range(10_000):
                crosstalk.lint(text)
                if ran:
                    break
            has_run = bool(ran)
        finally:
            sys.setswitchinterval(interval)
        thread.join()
        self.assertTrue(has_run)


class Examples(unittest.TestCase):
    def test_check_paste(self) -> None:
        signed = crosstalk.sign(crosstalk.build(MESSAGE), KEY["private_key_pem"], key_id="kalle@example.com")
        command = [sys.executable, EXAMPLES / "check_paste.py", f"kalle@example.com={KEY['record']}"]
        for paste, code in (("Look:\n" + signed, 0), (signed.replace("JWT", "cookies"), 1), ("nothing", 1)):
            done = subprocess.run(command, input=paste.encode(), capture_output=True)
            self.assertEqual(done.returncode, code, done)
            self.assertEqual(b"[[CLAUDE" in done.stdout, code == 0)

    def test_worker_and_ask_many(self) -> None:
        with ScratchRelay(ECHO) as relay:
            worker = [sys.executable, EXAMPLES / "worker.py", relay.url, "BOB"]
            with subprocess.Popen(worker, stdout=subprocess.PIPE) as process:
                ask = [sys.executable, EXAMPLES / "ask_many.py", relay.url, "Ready?", "BOB", "claude://code"]
                printed = subprocess.run(ask, capture_output=True, check=True, text=True).stdout
                assert process.stdout is not None
                self.assertIn(b"done: ", process.stdout.readline())
                process.send_signal(signal.SIGTERM)
        answers = ["BOB: You asked: Ready?", "claude://code: Claude has read: Ready?"]
        self.assertEqual(sorted(printed.splitlines()), answers)


if __name__ == "__main__":
    unittest.main()
