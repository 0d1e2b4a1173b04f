"""What both clients share: retries, answers and events, without a relay."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import unittest
from unittest import mock

from ai_crosstalk import CrosstalkError, RelayError, build
from ai_crosstalk import _exchange as exchange
from ai_crosstalk._exchange import Endpoint, Event, EventReader, Fault, InboxFollower, Pause, Request, Response
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
    request = Request("GET", "/", {})

    def test_only_temporary_failures_are_repeated(self) -> None:
        late = json.dumps({"error": {"code": "E-TIMEOUT", "what": "Too late."}}).encode()
        for answer, attempts in (
            (Fault("reset"), 2),
            (Fault("a wrong certificate", is_final=True), -1),
            (Response(500, {}, b""), 2),
            (Response(504, {}, b"<html>"), 2),
            (Response(504, {}, late), -1),
            (Response(408, {}, b""), 2),
            (BUSY, 2),
            (Response(401, {}, b""), -1),
            (Response(404, {}, b""), -1),
            (Response(302, {"location": "/"}, b""), -1),
        ):
            with self.subTest(answer=answer):
                self.assertEqual(play(self.request, [answer, DONE])[0], attempts)

    def test_pauses_grow_up_to_a_bound_and_end(self) -> None:
        sent, pauses = play(self.request, [Fault("refused")], retry_for=90)
        self.assertLess(sent, -10)
        self.assertLessEqual(sum(pauses), 90)
        self.assertTrue(all(0.125 <= pause <= 10.0 for pause in pauses), pauses)
        self.assertLessEqual(pauses[0], 0.25)
        self.assertGreaterEqual(pauses[-1], 5.0)
        self.assertEqual(play(self.request, [Fault("refused")], retry_for=0), (-1, []))

    def test_retry_after_is_kept(self) -> None:
        sent, [pause] = play(self.request, [BUSY, DONE])
        self.assertEqual(sent, 2)
        self.assertGreater(pause, 2)
        # It would be later than the caller waits.
        self.assertEqual(play(self.request, [BUSY, DONE], retry_for=1), (-1, []))

    def test_an_interruption_after_the_receipt_only_makes_the_wait_longer(self) -> None:
        receipt = Response(200, {"preference-applied": "wait=60"}, b'{"ack": {}, "answer": null}')
        steps = exchange.send("text", 300, 0)
        for answer in (receipt, Fault("reset")):
            self.assertIsInstance(next(steps), Request)
            self.assertIsInstance(steps.send(answer), Pause)
        self.assertIsInstance(next(steps), Request)
        with self.assertRaises(StopIteration) as end:
            steps.send(Response(200, {}, b'{"ack": {}, "answer": {"body": "Yes."}}'))
        self.assertEqual(end.exception.value, {"ack": {}, "answer": {"body": "Yes."}})
        for wait in (-1, float("nan"), float("inf")):
            with self.assertRaises(CrosstalkError):
                next(exchange.send("text", wait, 0))

    def test_a_long_wait_is_several_requests(self) -> None:
        message = build({"sender": "A", "receiver": "B", "user": "a", "context": "c", "intent": "REQUEST", "body": "x"})
        receipt = Response(200, {"preference-applied": "wait=60"}, b'{"ack": {}, "answer": null}')
        with mock.patch("time.monotonic", lambda: clock):
            clock = 0.0
            steps = exchange.send(message, 90, 30)
            first = next(steps)
            clock = 60.0
            self.assertIsInstance(steps.send(receipt), Pause)
            second = next(steps)
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
        self.assertEqual((error.status, error.retry_after, error.temporary), (503, 2, True))
        other = exchange.error_of(Response(502, {}, b"<html>\x1b[2J"))
        self.assertNotIn("\x1b", str(other))
        self.assertIn("502", str(other))

    def test_answers_that_are_no_json(self) -> None:
        for body in (b"", b"[", b"<html>", b"\xff", b"[" * 100_000):
            with self.assertRaises(RelayError):
                exchange.json_in(body, {})
        for body in (b"[]", b"3", b'{"error": 3}', b'{"error": {"code": 3}}', b"\xff\xfe", b'"error"'):
            self.assertIsInstance(exchange.error_of(Response(500, {}, body)), CrosstalkError)


class Events(unittest.TestCase):
    def test_events_are_read_however_they_are_cut(self) -> None:
        text = b': hello\n\nevent: message\r\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\n\nevent:other\ndata:x\nretry: 5\nretry: x\n\ndata: cut'
        for size in (1, 2, 3, 7, len(text)):
            reader = EventReader()
            parts = [text[at : at + size] for at in range(0, len(text), size)]
            events = [event for part in parts for event in reader.events(part)]
            wanted = [
                Event("message", "7", ['{"a":', "1}"]),
                Event("message", "8"),
                Event("other", None, ["x"], retry=5),
            ]
            self.assertEqual(events, wanted)

    def test_an_event_that_never_ends_is_an_error(self) -> None:
        reader = EventReader()
        with self.assertRaises(RelayError):
            for _ in range(200):
                reader.events(b"data: " + b"x" * 100_000 + b"\n")
        for line in (b"data:\n", b"x" * 6):
            reader = EventReader()
            with self.assertRaises(RelayError) as caught:
                for _ in range(200):
                    reader.events(line * 20_000)
            self.assertEqual(caught.exception.code, "E-TOO-LARGE")

    def test_a_large_event_in_small_parts_costs_no_more_than_its_bytes(self) -> None:
        # If each part cost as much as what came before it, this would take hours.
        reader = EventReader()
        for _ in range(200_000):
            self.assertEqual(reader.events(b"data: 0123456789"), [])
        [event] = reader.events(b"\n\n")
        self.assertEqual(len(event.data[0]), 200_000 * 16 - 6)

    def test_a_stream_does_not_flood_and_is_not_put_off_for_ever(self) -> None:
        follower = InboxFollower("BOB", None, 30)
        self.assertTrue(follower.opened(200, {"content-type": "text/event-stream"}))
        pauses = []
        for number in range(8):
            follower.request()
            self.assertEqual(list(follower.messages(b"retry: 0\nid: %d\n\n" % number)), [])
            pauses.append(follower.pause(None))
        self.assertTrue(all(pause >= 0.125 for pause in pauses), pauses)
        self.assertGreaterEqual(pauses[-1], 5.0)
        self.assertLessEqual(follower.pause(Response(503, {"retry-after": "999999"}, b"")), 310)

    def test_the_cursor_follows_what_was_given_out(self) -> None:
        follower = InboxFollower("BOB", None, 30)
        self.assertNotIn("after", follower.request().path)
        messages = follower.messages(b'id: a\ndata: {"id": "1"}\n\nid: b\ndata: {"id": "2"}\n\n')
        self.assertEqual((next(messages)["id"], follower.cursor), ("1", "a"))
        self.assertIn("after=a", follower.request().path)
        self.assertEqual((next(messages)["id"], follower.cursor), ("2", "b"))


class Addresses(unittest.TestCase):
    def test_urls_and_tokens_are_checked(self) -> None:
        for url in ("", "relay.example", "ftp://relay.example", "http://", "http://a:b@relay.example", "http://x/?y", "http://x:y", "http://["):
            with self.assertRaises(CrosstalkError, msg=url) as caught:
                Endpoint.of(url, None, 30, 30)
            self.assertEqual((caught.exception.code, caught.exception.help is None), ("E-FORMAT", False))
        for token in ("", "a b", "a\r\nX: y", "ä"):
            with self.assertRaises(CrosstalkError, msg=token) as caught:
                Endpoint.of("http://relay.example", token, 30, 30)
            self.assertEqual((caught.exception.code, caught.exception.help is None), ("E-PERM", False))
        with self.assertRaises(CrosstalkError):
            Endpoint.of("http://relay.example", None, 0, 30)
        # A token may come from a file with a line end.
        self.assertEqual(Endpoint.of("http://relay.example", "xt_secret\n", 30, 30).token, "xt_secret")
        endpoint = Endpoint.of("https://relay.example:444/base/", "xt_secret", 30, 30)
        self.assertEqual((endpoint.authority, endpoint.prefix), ("relay.example:444", "/base"))
        self.assertNotIn("secret", repr(endpoint))
        self.assertEqual(Endpoint.of("http://[::1]:8799", None, 30, 30).authority, "[::1]:8799")


class FakeRelay:
    """A server that gives fixed answers, one for each connection, and counts requests."""

    def __init__(self, *answers: bytes | list[bytes], keeps: bool = False) -> None:
        """An answer in parts is sent slowly. With `keeps`, connections stay open until the end."""
        self.requests: list[bytes] = []
        self._answers = answers
        self._keeps = keeps
        self._kept: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._socket.accept()
            self.requests.append(read_request(connection))
            self._send(connection, answer)
            self._kept.append(connection)
            if not self._keeps:
                connection.close()

    def _send(self, connection: socket.socket, answer: bytes | list[bytes]) -> None:
        if isinstance(answer, bytes):
            connection.sendall(answer)
            return
        for part in answer:
            try:
                connection.sendall(part)
            except OSError:
                return  # The client has had enough.
            time.sleep(0.03)

    def close(self) -> None:
        self._thread.join(10)
        for connection in [*self._kept, self._socket]:
            connection.close()


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

    def test_an_answer_of_the_wrong_shape_is_an_error(self) -> None:
        for body in (b"null", b"[]", b"{}", b'"x"', b'{"messages": 3, "cursor": null, "id": 3}'):
            for make in CLIENTS:
                with self.subTest(client=make.__name__, body=body):
                    fake = FakeRelay(*[http(body, f"Content-Length: {len(body)}")] * 5)
                    with make(fake.url) as client:
                        for call in (
                            lambda: client.send("text"),
                            lambda: client.inbox("BOB"),
                            lambda: client.acknowledge("BOB", "X"),
                            lambda: client.read("X"),
                            lambda: client.upload(b"x"),
                        ):
                            with self.assertRaises(RelayError) as caught:
                                call()
                            self.assertEqual((caught.exception.code, caught.exception.temporary), ("E-ROUTE", False))
                    fake.close()

    def test_bytes_that_nobody_asked_for_are_no_answer(self) -> None:
        first, smuggled, second = (http(b'{"id": "%d"}' % n, "Content-Length: 11") for n in (1, 6, 2))
        for make in CLIENTS:
            with self.subTest(client=make.__name__):
                fake = FakeRelay(first + smuggled, second, keeps=True)
                with make(fake.url) as client:
                    self.assertEqual(client.read("X")["id"], "1")
                    self.assertEqual(client.read("X")["id"], "2")
                fake.close()

    def test_the_limit_of_a_download_hides_no_rejection(self) -> None:
        body = b'{"error": {"code": "E-ROUTE", "what": "There is no such attachment.", "help": null}}'
        for make in CLIENTS:
            with self.subTest(client=make.__name__):
                fake = FakeRelay(http(body, f"Content-Length: {len(body)}", status="404 Not Found"))
                with make(fake.url) as client, self.assertRaises(RelayError) as caught:
                    client.download("sha256:0", max_bytes=3)
                self.assertEqual((caught.exception.status, caught.exception.help), (404, None))
                fake.close()

    def test_ids_that_a_server_would_take_for_folders_are_errors(self) -> None:
        for make in CLIENTS:
            with make("http://127.0.0.1:1") as client:
                for id in ("", ".", "..", "\ud800"):
                    for call in (client.read, client.thread, client.download):
                        with self.assertRaises(CrosstalkError) as caught:
                            call(id)
                        self.assertNotIsInstance(caught.exception, RelayError)
                with self.assertRaises(CrosstalkError):
                    client.download("sha256:0", max_bytes=float("inf"))

    def test_a_message_has_its_id_before_the_first_attempt(self) -> None:
        message = {"sender": "A", "receiver": "B", "user": "a", "context": "c", "intent": "REQUEST", "body": "x"}
        receipt = http(b'{"ack": {}, "answer": null}', "Content-Length: 27")
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

    def test_a_relay_that_sends_a_byte_now_and_then_times_out(self) -> None:
        slow = [b"x"] * 100
        for make in CLIENTS:
            for head in (b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"):
                with self.subTest(client=make.__name__, head=head):
                    fake = FakeRelay([head, *slow])
                    with make(fake.url, timeout=0.5, retry_for=0) as client, self.assertRaises(RelayError) as caught:
                        client.read("X")
                    # After all of its bytes the server ends the connection, which would be another error.
                    self.assertEqual(caught.exception.code, "E-TIMEOUT")
                    fake.close()


if __name__ == "__main__":
    unittest.main()
