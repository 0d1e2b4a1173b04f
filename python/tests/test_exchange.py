"""What both clients share: retries, answers and events, without a relay."""

from __future__ import annotations

import json
import re
import socket
import threading
import unittest
from unittest import mock

from ai_crosstalk import CrosstalkError, RelayError, build
from ai_crosstalk import _exchange as exchange
from ai_crosstalk._exchange import Endpoint, EventReader, Fault, InboxFollower, Pause, Request, Response
from scratch_relay import CLIENTS

REJECTION = {"error": {"code": "E-RATE", "reason": "too\nmany\x1b[2J", "what": "wait\x07", "help": "later", "line": 3}}
BUSY = Response(503, {"retry-after": "2"}, json.dumps(REJECTION).encode())
DONE = Response(200, {}, b"{}")


def play(request: Request, answers: list[Response | Fault], retry_for: float = 30) -> tuple[int, list[float]]:
    """How often a request is sent, and the pauses. Time passes only in pauses."""
    clock = [0.0]
    with mock.patch("time.monotonic", lambda: clock[0]):
        steps = exchange.attempt(request, retry_for)
        sent, pauses, answer = 0, [], None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Pause):
                    pauses.append(step.seconds)
                    clock[0] += step.seconds
                    answer = None
                else:
                    sent += 1
                    answer = answers[min(sent, len(answers)) - 1]
        except StopIteration:
            return sent, pauses
        except RelayError:
            return -sent, pauses


class Retries(unittest.TestCase):
    safe = Request("GET", "/", {})
    unsafe = Request("POST", "/", {}, is_repeatable=False)

    def test_only_what_is_safe_is_repeated(self) -> None:
        lost, never_sent = Fault("reset"), Fault("refused", was_sent=False)
        failed = Response(500, {}, b"")
        for request, answer, attempts in (
            (self.safe, lost, 2),
            (self.unsafe, lost, -1),
            (self.unsafe, never_sent, 2),
            (self.safe, failed, 2),
            (self.unsafe, failed, -1),
            (self.unsafe, BUSY, 2),
            (self.safe, Response(401, {}, b""), -1),
            (self.safe, Response(404, {}, b""), -1),
            (self.safe, Response(302, {"location": "/"}, b""), -1),
        ):
            with self.subTest(request=request, answer=answer):
                self.assertEqual(play(request, [answer, DONE])[0], attempts)

    def test_pauses_grow_up_to_a_bound_and_end(self) -> None:
        sent, pauses = play(self.safe, [Fault("refused")], retry_for=60)
        self.assertLess(sent, -10)
        self.assertLessEqual(sum(pauses), 60)
        self.assertTrue(all(0.05 <= pause <= 5.0 for pause in pauses), pauses)
        self.assertLess(pauses[0], 0.2)
        self.assertGreater(pauses[-1], 2.4)
        self.assertEqual(play(self.safe, [Fault("refused")], retry_for=0), (-1, []))

    def test_retry_after_is_kept(self) -> None:
        sent, [pause] = play(self.safe, [BUSY, DONE])
        self.assertEqual(sent, 2)
        self.assertGreater(pause, 2)
        # It would be later than the caller waits.
        self.assertEqual(play(self.safe, [BUSY, DONE], retry_for=1), (-1, []))

    def test_a_long_wait_is_several_requests(self) -> None:
        message = build({"sender": "A", "receiver": "B", "user": "a", "context": "c", "intent": "REQUEST", "body": "x"})
        receipt = Response(200, {"preference-applied": "wait=60"}, b'{"answer": null}')
        with mock.patch("time.monotonic", lambda: clock):
            clock = 0.0
            steps = exchange.send(message, 90, 30)
            first = next(steps)
            clock = 60.0
            second = steps.send(receipt)
            clock = 90.0
            with self.assertRaises(StopIteration):
                steps.send(receipt)
        assert isinstance(first, Request) and isinstance(second, Request)
        self.assertEqual((first.headers["Prefer"], second.headers["Prefer"]), ("wait=60", "wait=30"))
        self.assertEqual(first.body, second.body)


class Answers(unittest.TestCase):
    def test_a_rejection_is_one_line_of_visible_text(self) -> None:
        error = exchange.error_of(BUSY)
        self.assertEqual((str(error), error.code, error.help, error.line), ("wait\\u{7}", "E-RATE", "later", 3))
        self.assertEqual((error.status, error.retry_after), (503, 2))
        other = exchange.error_of(Response(502, {}, b"<html>\x1b[2J"))
        self.assertNotIn("\x1b", str(other))
        self.assertIn("502", str(other))

    def test_an_error_envelope_is_read(self) -> None:
        text = (
            "[[SYSTEM→UNKNOWN v1]]\nuser: system\nthread: 01K74V6R0074G0T7MAHPXVDNXW\nmessage: 01K74VAPYG2MW15BJZX85Q780H\n"
            "context: error\nintent: ERROR\n\nmeta: error\nCode: E-PERM\nReason: no\nRule: HTP-060\n\n"
            "body: |\n  A token is needed.\n  What to do: ask for one.\nsig: none\n[[END]]\n"
        )
        error = exchange.error_of(Response(401, {}, text.encode()))
        self.assertEqual((str(error), error.help), ("A token is needed.", "ask for one."))
        self.assertEqual((error.code, error.rule), ("E-PERM", "HTP-060"))

    def test_answers_that_are_no_json(self) -> None:
        for body in (b"", b"[", b"<html>", b"\xff"):
            with self.assertRaises(RelayError):
                exchange.json_in(Response(200, {}, body))
        for body in (b"[]", b"3", b'{"error": 3}', b'{"error": {"code": 3}}', b"\xff\xfe", b'"error"'):
            self.assertIsInstance(exchange.error_of(Response(500, {}, body)), CrosstalkError)


class Events(unittest.TestCase):
    def test_events_are_read_however_they_are_cut(self) -> None:
        text = b': hello\n\nevent: message\r\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\n\ndata: x\n\ndata: cut'
        for size in (1, 2, 3, 7, len(text)):
            reader = EventReader()
            parts = [text[at : at + size] for at in range(0, len(text), size)]
            events = [event for part in parts for event in reader.events(part)]
            self.assertEqual(events, [("message", "7", '{"a":\n1}'), ("message", "8", ""), ("message", None, "x")])

    def test_an_event_that_never_ends_is_an_error(self) -> None:
        reader = EventReader()
        with self.assertRaises(RelayError):
            for _ in range(200):
                reader.events(b"data: " + b"x" * 100_000 + b"\n")

    def test_the_cursor_follows_what_was_given_out(self) -> None:
        follower = InboxFollower("BOB", None, 30)
        self.assertNotIn("after", follower.request().path)
        messages = follower.messages(b'id: a\ndata: {"id": "1"}\n\nid: b\ndata: {"id": "2"}\n\n')
        self.assertEqual((next(messages)["id"], follower.cursor), ("1", "a"))
        self.assertIn("after=a", follower.request().path)
        self.assertEqual((next(messages)["id"], follower.cursor), ("2", "b"))


class Addresses(unittest.TestCase):
    def test_urls_and_tokens_are_checked(self) -> None:
        for url in ("", "relay.example", "ftp://relay.example", "http://", "http://a:b@relay.example", "http://x/?y"):
            with self.assertRaises(ValueError, msg=url):
                Endpoint.of(url, None, 30, 30)
        for token in ("", "a b", "a\r\nX: y", "ä"):
            with self.assertRaises(ValueError, msg=token):
                Endpoint.of("http://relay.example", token, 30, 30)
        endpoint = Endpoint.of("https://relay.example:444/base/", "xt_secret", 30, 30)
        self.assertEqual((endpoint.authority, endpoint.prefix), ("relay.example:444", "/base"))
        self.assertNotIn("secret", repr(endpoint))
        self.assertEqual(Endpoint.of("http://[::1]:8799", None, 30, 30).authority, "[::1]:8799")


class FakeRelay:
    """A server that gives fixed answers, one for each connection, and counts requests."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[bytes] = []
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._socket.accept()
            with connection:
                self.requests.append(read_request(connection))
                connection.sendall(answer)

    def close(self) -> None:
        self._thread.join(10)
        self._socket.close()


def read_request(connection: socket.socket) -> bytes:
    request = b""
    while True:
        request += connection.recv(1 << 20)
        head, end, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and len(body) >= (int(length[1]) if length else 0):
            return request


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


class Connections(unittest.TestCase):
    def ask(self, *answers: bytes) -> None:
        """Both clients get the message out of these answers, the last of which is good."""
        for make in CLIENTS:
            with self.subTest(client=make.__name__):
                fake = FakeRelay(*answers)
                with make(fake.url) as client:
                    self.assertEqual(client.read("X")["id"], "X")
                self.assertEqual(len(fake.requests), len(answers))
                fake.close()

    def test_every_framing_is_read(self) -> None:
        body = b'{"id": "X"}'
        self.ask(http(body, "Content-Length: 11"))
        self.ask(http(body))
        self.ask(http(b'4;x=y\r\n{"id\r\n7\r\n": "X"}\r\n0\r\nTrailer: x\r\n\r\n', "Transfer-Encoding: chunked"))
        self.ask(http(b"", status="100 Continue") + http(body, "Content-Length: 11"))

    def test_a_broken_answer_is_asked_for_again(self) -> None:
        good = http(b'{"id": "X"}', "Content-Length: 11")
        self.ask(b"", good)
        self.ask(http(b'{"id"', "Content-Length: 11"), good)
        self.ask(http(b'4\r\n{"id\r\n7\r\n": ', "Transfer-Encoding: chunked"), good)
        self.ask(b"SSH-2.0-OpenSSH\r\n\r\n", good)

    def test_a_reported_failure_is_not_sent_twice(self) -> None:
        for make in CLIENTS:
            with self.subTest(client=make.__name__):
                fake = FakeRelay(b"")
                with make(fake.url) as client, self.assertRaises(RelayError):
                    client.acknowledge("BOB", ["X"], "failed")
                self.assertEqual(len(fake.requests), 1)
                fake.close()

    def test_a_message_has_its_id_before_the_first_attempt(self) -> None:
        message = {"sender": "A", "receiver": "B", "user": "a", "context": "c", "intent": "REQUEST", "body": "x"}
        receipt = http(b'{"answer": null}', "Content-Length: 16")
        for make in CLIENTS:
            with self.subTest(client=make.__name__):
                fake = FakeRelay(b"", receipt)
                with make(fake.url) as client:
                    client.send(message)
                first, second = (request.partition(b"\r\n\r\n")[2] for request in fake.requests)
                self.assertIn(b"\nmessage: ", first)
                self.assertEqual(first, second)
                fake.close()

    def test_a_silent_relay_times_out(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            for make in CLIENTS:
                with self.subTest(client=make.__name__):
                    with make(url, timeout=0.3, retry_for=0) as client, self.assertRaises(RelayError) as caught:
                        client.read("X")
                    self.assertEqual(caught.exception.code, "E-TIMEOUT")


if __name__ == "__main__":
    unittest.main()
