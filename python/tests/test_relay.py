"""Both clients against a real relay."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import ssl
import subprocess
import tempfile
import threading
import unittest
from typing import Any

from ai_crosstalk import AsyncRelay, CrosstalkError, MessageInput, Relay, RelayError, build, parse, reply
from scratch_relay import CLIENTS, ECHO, LIMIT_SECONDS, ScratchRelay, wait_for

RESTARTS = int(os.environ.get("CROSSTALK_RESTARTS", "50" if "CROSSTALK_TEST_FULL" in os.environ else "5"))


def question(body: str = "Ready?", receiver: str = "BOB") -> MessageInput:
    return {
        "sender": "ANN",
        "receiver": receiver,
        "user": "ann",
        "context": "tests",
        "intent": "REQUEST",
        "body": body,
    }


class LocalRelay(unittest.TestCase):
    """A relay without tokens: every caller is the local operator."""

    relay: ScratchRelay

    @classmethod
    def setUpClass(cls) -> None:
        cls.relay = ScratchRelay(ECHO)
        cls.addClassCleanup(cls.relay.__exit__)
        cls.relay.start()

    def each_client(self, **options: Any) -> Any:
        """Runs a part of a test with each client."""
        for make in CLIENTS:
            with self.subTest(client=make.__name__), make(self.relay.url, **options) as client:
                yield make.__name__, client

    def test_send_waits_for_the_answer(self) -> None:
        for _, client in self.each_client():
            sent = client.send(question("Which one?", "claude://code/api"), wait=LIMIT_SECONDS)
            self.assertEqual(sent["schema"], "crosstalk.receive/1")
            self.assertEqual(sent["ack"]["intent"]["meaning"], "ACK")
            self.assertEqual(sent["answer"]["body"], "Claude has read: Which one?")
            self.assertEqual(sent["answer"]["parent"], sent["ack"]["parent"])

    def test_send_returns_when_the_time_is_over(self) -> None:
        for name, client in self.each_client():
            sent = client.send(question(receiver=f"SILENT-{name}"), wait=1)
            self.assertIsNone(sent["answer"])
            # An ACK waits for nothing.
            note = build({**question(receiver="X"), "intent": "BROADCAST"})
            self.assertIsNone(client.send(note, wait=LIMIT_SECONDS)["answer"])

    def test_send_takes_text_and_is_accepted_once(self) -> None:
        for name, client in self.each_client():
            receiver = f"TWICE-{name}"
            text = build(question(receiver=receiver))
            first, again = client.send(text), client.send(text.encode())
            self.assertEqual(first["ack"], again["ack"])
            self.assertEqual(len(client.inbox(receiver)["messages"]), 1)

    def test_inbox_pages_waits_and_is_acknowledged(self) -> None:
        for name, client in self.each_client():
            receiver = f"PAGES-{name}"
            empty = client.inbox(receiver)
            self.assertEqual(empty["messages"], [])
            with Relay(self.relay.url) as other:
                sender = threading.Timer(0.5, lambda: other.send(question("first", receiver)))
                sender.start()
                page = client.inbox(receiver, after=empty["cursor"], wait=LIMIT_SECONDS)
                sender.join()
            self.assertEqual([parse(m["envelope"])["envelopes"][0]["body"] for m in page["messages"]], ["first"])
            for number in range(3):
                client.send(question(f"more {number}", receiver))
            first = client.inbox(receiver, limit=2)
            second = client.inbox(receiver, after=first["cursor"], limit=2)
            ids = [message["id"] for message in first["messages"] + second["messages"]]
            self.assertEqual(len(set(ids)), 4)
            done = client.acknowledge(receiver, [*ids, "01K74V6VX0S86Z5JATM52C3M7Z"])
            self.assertEqual((done["changed"], done["unknown"]), (ids, ["01K74V6VX0S86Z5JATM52C3M7Z"]))
            self.assertEqual(client.inbox(receiver)["messages"], [])
            self.assertEqual(client.acknowledge(receiver, []), {"changed": [], "unknown": []})
            sent = client.send(question("again", receiver))["ack"]["parent"]
            self.assertEqual(client.acknowledge(receiver, sent), {"changed": [sent], "unknown": []})

    def test_read_and_thread(self) -> None:
        for name, client in self.each_client():
            sent = client.send(question("the question", f"THREAD-{name}"))
            message = client.read(sent["ack"]["parent"])
            self.assertEqual(message["from"], "ANN")
            client.send(reply(message["envelope"], "the answer"))
            tree = client.thread(message["thread"])
            self.assertEqual((tree["thread"]["messages"], tree["more"]), (2, False))
            self.assertEqual(tree["messages"][0]["answers"][0]["to"], "ANN")

    def test_errors_say_what_happened(self) -> None:
        for _, client in self.each_client():
            with self.assertRaises(RelayError) as caught:
                client.read("no-such-message")
            self.assertEqual((caught.exception.status, caught.exception.code), (404, "E-ROUTE"))
            with self.assertRaises(RelayError) as caught:
                client.send("[[A→B v1]]\nuser: a\n")
            error = caught.exception
            self.assertEqual((error.status, error.code, error.temporary), (400, "E-FORMAT", False))
            self.assertTrue(error.rule and error.help and error.line, vars(error))
            with self.assertRaises(CrosstalkError) as rejected:
                client.send({"sender": "A", "receiver": "B"})
            self.assertNotIsInstance(rejected.exception, RelayError)

    def test_uploads(self) -> None:
        for name, client in self.each_client():
            data = name.encode() + os.urandom(3 << 20)
            blob = client.upload(data)
            self.assertEqual(blob["size"], len(data))
            self.assertEqual(client.upload(data), blob)
            self.assertEqual(client.download(blob["digest"]), data)
            with self.assertRaises(RelayError) as caught:
                client.download(blob["digest"], max_bytes=1000)
            self.assertEqual(caught.exception.code, "E-TOO-LARGE")
            with self.assertRaises(RelayError) as caught:
                client.download("sha256:" + "0" * 64)
            self.assertEqual(caught.exception.status, 404)

    def test_stream_goes_on_after_a_cursor_and_ends_when_it_is_closed(self) -> None:
        for name, client in self.each_client():
            receiver = f"STREAM-{name}"
            sent = [client.send(question(str(n), receiver))["ack"]["parent"] for n in range(3)]
            stream = client.stream(receiver)
            self.assertEqual([next(stream)["id"] for _ in range(2)], sent[:2])
            cursor = stream.cursor
            stream.close()
            stream = client.stream(receiver, after=cursor)
            self.assertEqual(next(stream)["id"], sent[2])
            # It waits for a message; closing it ends the wait.
            threading.Timer(0.3, stream.close).start()
            self.assertEqual(list(stream), [])

    def test_stream_reconnects_after_a_restart(self) -> None:
        for name, client in self.each_client():
            receiver = f"RECONNECT-{name}"
            client.send(question("before", receiver))
            stream = client.stream(receiver)
            first = next(stream)
            self.relay.restart(signal.SIGKILL)
            client.send(question("after", receiver))
            second = next(stream)
            self.assertNotEqual(first["id"], second["id"])
            self.assertIn("after", second["envelope"])
            stream.close()

    def test_nothing_is_lost_or_twice_across_restarts(self) -> None:
        for name, client in self.each_client(retry_for=LIMIT_SECONDS):
            receiver = f"LOOP-{name}"
            sent: list[str] = []
            received: list[str] = []
            faults: list[BaseException] = []
            is_over = threading.Event()

            def send() -> None:
                try:
                    with Relay(self.relay.url, retry_for=LIMIT_SECONDS) as relay:
                        for number in itertools.count():
                            if is_over.is_set():
                                return
                            sender = client if number % 2 else relay
                            sent.append(sender.send(question(str(number), receiver))["ack"]["parent"])
                except BaseException as fault:
                    faults.append(fault)

            stream = client.stream(receiver)

            def listen() -> None:
                try:
                    for message in stream:
                        received.append(message["id"])
                except BaseException as fault:
                    faults.append(fault)

            threads = [threading.Thread(target=work, daemon=True) for work in (send, listen)]
            for thread in threads:
                thread.start()
            for number in range(RESTARTS):
                before = len(sent), len(received)
                wait_for(
                    lambda: bool(faults) or (len(sent) > before[0] + 5 and len(received) > before[1] + 5),
                    "messages are sent and received",
                )
                self.relay.restart(signal.SIGKILL if number % 2 else signal.SIGTERM)
            is_over.set()
            threads[0].join(LIMIT_SECONDS)
            self.assertEqual(faults, [])
            self.assertFalse(threads[0].is_alive())
            wait_for(lambda: bool(faults) or len(received) >= len(sent), "every message is received")
            stream.close()
            threads[1].join(LIMIT_SECONDS)
            self.assertEqual(faults, [])
            self.assertEqual(received, sent)
            print(f"{name}: {RESTARTS} restarts, {len(sent)} messages sent, {len(received)} received, in order")


class RelayWithTokens(unittest.TestCase):
    """A relay that others can reach."""

    def test_a_wrong_token_is_rejected_at_once(self) -> None:
        with ScratchRelay() as relay:
            token = relay.token("bob", "BOB")
            for make in CLIENTS:
                with self.subTest(client=make.__name__):
                    with make(relay.url, token) as client:
                        self.assertEqual(client.inbox("BOB")["messages"], [])
                        with self.assertRaises(RelayError) as caught:
                            client.inbox("ANN")
                        self.assertEqual((caught.exception.status, caught.exception.code), (403, "E-PERM"))
                    for wrong in (None, "xt_wrong"):
                        with make(relay.url, wrong) as client:
                            for call in (lambda: client.inbox("BOB"), lambda: next(client.stream("BOB"))):
                                with self.assertRaises(RelayError) as caught:
                                    call()
                                error = caught.exception
                                self.assertEqual((error.status, error.code), (401, "E-PERM"))
                                self.assertTrue(error.help, str(error))

    def test_a_rate_limit_is_waited_for(self) -> None:
        with ScratchRelay("[limits]\nlocal_requests_per_minute = 30\n") as relay:
            for make in CLIENTS:
                with self.subTest(client=make.__name__), make(relay.url, retry_for=0) as client:
                    with self.assertRaises(RelayError) as caught:
                        for _ in range(100):
                            client.inbox("BOB")
                    error = caught.exception
                    self.assertEqual((error.status, error.code), (429, "E-RATE"))
                    self.assertGreaterEqual(error.retry_after or 0, 1)
                with self.subTest(client=make.__name__), make(relay.url, retry_for=LIMIT_SECONDS) as client:
                    for _ in range(2):
                        self.assertEqual(client.inbox("BOB")["messages"], [])


class RelayWithTls(unittest.TestCase):
    def test_the_certificate_is_checked(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/certificate.pem", f"{folder}/key.pem"
            options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1"]
            names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key]
            subprocess.run(["openssl", "req", "-x509", *options, *names], check=True, capture_output=True)
            with ScratchRelay(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n') as relay:
                trusting = ssl.create_default_context(cafile=certificate)
                for make in CLIENTS:
                    with self.subTest(client=make.__name__):
                        with make(relay.url, ssl_context=trusting) as client:
                            sent = client.send(question(receiver=make.__name__))
                            stream = client.stream(make.__name__)
                            self.assertEqual(next(stream)["id"], sent["ack"]["parent"])
                            stream.close()
                            data = os.urandom(1 << 20)
                            self.assertEqual(client.download(client.upload(data)["digest"]), data)
                        # A wrong certificate is wrong later, too: nothing is repeated.
                        with make(relay.url, retry_for=1e9) as client, self.assertRaises(RelayError) as caught:
                            client.inbox("BOB")
                        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(caught.exception).upper())


class Cancellation(unittest.TestCase):
    """What `asyncio` cancels."""

    def test_a_cancelled_wait_loses_nothing(self) -> None:
        async def run(url: str) -> None:
            async with AsyncRelay(url) as relay:
                stream = relay.stream("BOB")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(stream), 0.3)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(relay.inbox("BOB", wait=LIMIT_SECONDS), 0.3)
                sent = await relay.send(question())
                message = await asyncio.wait_for(anext(stream), LIMIT_SECONDS)
                self.assertEqual(message["id"], sent["ack"]["parent"])
                stream.close()
                self.assertEqual([entry async for entry in stream], [])

        with ScratchRelay() as relay:
            asyncio.run(run(relay.url))

    def test_a_client_goes_on_in_a_second_event_loop(self) -> None:
        with ScratchRelay() as relay:
            client = AsyncRelay(relay.url)
            for _ in range(2):
                self.assertEqual(asyncio.run(client.inbox("BOB"))["messages"], [])

    def test_a_relay_that_is_not_there(self) -> None:
        for make in CLIENTS:
            with self.subTest(client=make.__name__), make("http://127.0.0.1:1", retry_for=0.6) as client:
                for call in (lambda: client.inbox("BOB"), lambda: next(client.stream("BOB"))):
                    with self.assertRaises(RelayError) as caught:
                        call()
                    error = caught.exception
                    self.assertEqual((error.status, error.code, error.temporary), (None, "E-ROUTE", True))


if __name__ == "__main__":
    unittest.main()
