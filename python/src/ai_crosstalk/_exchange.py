"""The part of a relay client that does no input or output: requests, retries, answers, events.

An operation is a generator. It yields a `Request` or a `Pause`, its driver does the work and sends the result back. `Relay` drives
it with blocking calls and `AsyncRelay` with awaits, so that both behave alike.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import ssl
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, Union, cast
from urllib.parse import quote, urlencode, urlsplit

from ._envelope import build, parse
from ._error import RelayError
from ._forms import Acked, Blob, Inbox, InboxEntry, NewMessage, SendResult, StoredMessage, ThreadTree

MAX_WAIT_SECONDS = 60
"""How long a relay waits for one request (HTP-014, HTP-038). A longer wait is several requests."""
MAX_ACK_IDS = 500
QUIET_SECONDS = 90.0
"""How long a stream may be silent: a relay sends something every 30 seconds (HTP-033)."""
MIN_BYTES_PER_SECOND = 64 << 10
"""An attachment gets more time than other requests: one second for each of these."""
MESSAGE_BYTES = 8 << 20
PAGE_BYTES = 32 << 20
THREAD_BYTES = 64 << 20
ERROR_BYTES = 1 << 20
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0

JSON = "application/json"


@dataclass(frozen=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    extra_seconds: float = 0.0
    """The time that it may take besides the timeout of the client."""
    max_bytes: int = PAGE_BYTES
    """The largest answer."""
    is_repeatable: bool = True
    """Whether sending it twice has the effect of sending it once."""


@dataclass(frozen=True)
class Response:
    """The answer to a request; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Fault:
    """Why no answer came."""

    reason: str
    is_timeout: bool = False
    was_sent: bool = True
    """Whether the relay may have got the request."""
    is_final: bool = False
    """Whether it would be the same later."""


@dataclass(frozen=True)
class Pause:
    """A wait before the next request."""

    seconds: float


Answer = Union[Response, Fault]
T = TypeVar("T")
Steps = Generator[Union[Request, Pause], Union[Response, Fault, None], T]


@dataclass(frozen=True)
class Endpoint:
    """Where a relay is, and how a client talks to it."""

    scheme: str
    host: str
    port: int
    prefix: str
    token: str | None = field(repr=False)
    timeout: float
    retry_for: float

    @classmethod
    def of(cls, url: str, token: str | None, timeout: float, retry_for: float) -> Endpoint:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a relay; write https://HOST or http://127.0.0.1:8799")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("the URL of a relay has no user, query or fragment; pass the token as token=…")
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token and token):
            raise ValueError("a token is one word of visible ASCII characters")
        if not timeout > 0 or not retry_for >= 0:
            raise ValueError("timeout is more than 0 seconds, and retry_for at least 0")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, quote(parts.path.rstrip("/"), safe="/%"), token, timeout, retry_for)

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"

    def target(self, request: Request) -> str:
        """The path of a request on the server."""
        return self.prefix + request.path

    def headers(self, request: Request) -> dict[str, str]:
        """The headers of a request, with the credential."""
        headers = dict(request.headers)
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def seconds(self, request: Request) -> float:
        """How long a request may take."""
        return self.timeout + request.extra_seconds


class Closable(Protocol):
    """A connection."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Client(Generic[C]):
    """What both clients have: where the relay is, and connections that are not in use."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._endpoint = Endpoint.of(url, token, timeout, retry_for)
        is_secure = self._endpoint.scheme == "https"
        self._ssl = (ssl_context or ssl.create_default_context()) if is_secure else None
        self._idle: list[C] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.scheme}://{self._endpoint.authority}{self._endpoint.prefix})"

    def close(self) -> None:
        """Closes idle connections. The next call opens a new one."""
        while self._idle:
            self._idle.pop().close()


def fault_of(fault: BaseException, is_timeout: bool, was_sent: bool) -> Fault:
    """The fault that an exception is."""
    reason = str(fault) or ("timed out" if is_timeout else type(fault).__name__)
    return Fault(reason, is_timeout, was_sent, isinstance(fault, ssl.SSLCertVerificationError))


# Retries


def is_temporary(answer: Answer) -> bool:
    """Whether the same request may work later."""
    if isinstance(answer, Fault):
        return not answer.is_final
    return answer.status in (408, 429) or answer.status >= 500


def is_refused_whole(answer: Answer) -> bool:
    """Whether the relay did nothing, so that any request can be sent again."""
    if isinstance(answer, Fault):
        return not answer.was_sent
    return answer.status in (429, 503)


def pause_after(failures: int, retry_after: int | None) -> float:
    """How long to wait after some failures in a row: longer each time, at random, and not before `Retry-After`."""
    backoff = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << min(failures - 1, 16)))
    return (retry_after or 0) + backoff * random.uniform(0.5, 1.0)


def attempt(request: Request, retry_for: float) -> Steps[Response]:
    """Sends a request until it succeeds, as long as repeating is safe and `retry_for` seconds have not passed."""
    failures = 0
    give_up_at = math.inf
    while True:
        answer = yield request
        assert answer is not None
        if isinstance(answer, Response) and answer.status < 300:
            return answer
        failures += 1
        error = error_of(answer)
        now = time.monotonic()
        if failures == 1:
            give_up_at = now + retry_for
        pause = pause_after(failures, error.retry_after)
        if not is_temporary(answer) or not (request.is_repeatable or is_refused_whole(answer)):
            raise error
        if now + pause > give_up_at:
            raise error
        yield Pause(pause)


# Answers


def one_line(text: str) -> str:
    """A text of somebody else, in one line of a bounded length, without control characters."""
    words = " ".join(text[:500].split())
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):X}}}" for c in words)


def error_of(answer: Answer) -> RelayError:
    """The error that an answer is, or why there is none."""
    if isinstance(answer, Fault):
        code = "E-TIMEOUT" if answer.is_timeout else "E-ROUTE"
        help = "check the URL, and whether the relay runs: GET /readyz"
        return RelayError(f"the relay gave no answer: {one_line(answer.reason)}", code, help=help)
    retry_after = seconds_in(answer.headers.get("retry-after"))
    fields = rejection_in(answer.body)
    if fields is None:
        message = f"the relay answered with the status {answer.status}: {one_line(answer.body[:200].decode(errors='replace'))}"
        return RelayError(message, status=answer.status, retry_after=retry_after)

    def text(key: str) -> str | None:
        value = fields.get(key)
        return one_line(value) if isinstance(value, str) else None

    line = fields.get("line")
    return RelayError(
        text("what") or text("reason") or f"the relay answered with the status {answer.status}",
        text("code"),
        text("rule"),
        text("help"),
        line if isinstance(line, int) else None,
        status=answer.status,
        retry_after=retry_after,
    )


def rejection_in(body: bytes) -> dict[str, Any] | None:
    """The fields of a rejection, which is JSON or an ERROR envelope (HTP-004)."""
    try:
        answer = json.loads(body)
        return cast("dict[str, Any]", answer["error"]) if isinstance(answer["error"], dict) else None
    except (ValueError, KeyError, TypeError):
        pass
    for envelope in parse(body, "strict")["envelopes"]:
        for block in envelope["meta"]:
            if block["namespace"] == "error":
                fields = {entry["key"].lower(): entry["value"] for entry in block["fields"]}
                what, _, help = envelope["body"].partition("\nWhat to do:")
                return {**fields, "what": what, "help": help.strip() or None}
    return None


def seconds_in(value: str | None) -> int | None:
    """A `Retry-After` in seconds."""
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 7 else None


def json_in(response: Response) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(response.body)
    except ValueError as fault:
        raise unreadable(response, f"it is not JSON ({fault})") from None


def check_size(request: Request, size: int) -> None:
    """Rejects an answer that is too large."""
    if size > request.max_bytes:
        raise RelayError(f"the answer of the relay has more than {request.max_bytes} bytes", "E-TOO-LARGE")


def unreadable(response: Response, reason: str) -> RelayError:
    return RelayError(
        f"the answer of the relay (status {response.status}) can't be read: {reason}",
        help="check that the URL is that of a relay",
        status=response.status,
    )


# Operations


def segment(text: str) -> str:
    return quote(text, safe="")


def get(path: str, query: Mapping[str, str | int | None] = {}, **options: Any) -> Request:
    given = {name: value for name, value in query.items() if value is not None}
    path = f"{path}?{urlencode(given, quote_via=quote)}" if given else path
    return Request("GET", path, {"Accept": JSON}, **options)


def fetch(request: Request, retry_for: float) -> Steps[Any]:
    return json_in((yield from attempt(request, retry_for)))


def slice_of(until: float) -> int:
    """How many seconds the next request may wait."""
    return max(0, min(MAX_WAIT_SECONDS, math.ceil(until - time.monotonic())))


def send(message: NewMessage | str | bytes, wait: float, retry_for: float) -> Steps[SendResult]:
    # `build` generates missing ids, so every attempt sends the same message. A text without an id is known by its digest
    # (HTP-012).
    text = build(message) if isinstance(message, Mapping) else message
    body = text.encode() if isinstance(text, str) else text
    until = time.monotonic() + wait
    while True:
        seconds = slice_of(until)
        headers = {"Content-Type": "text/plain; charset=utf-8", "Accept": JSON}
        if seconds > 0:
            headers["Prefer"] = f"wait={seconds}"
        request = Request("POST", "/crosstalk/receive", headers, body, seconds, MESSAGE_BYTES)
        response = yield from attempt(request, retry_for)
        result = cast(SendResult, json_in(response))
        has_waited = "preference-applied" in response.headers
        # Only some intents wait, and the relay says whether it did (HTP-014).
        if result["answer"] is not None or not has_waited or time.monotonic() >= until:
            return result


def inbox(address: str, after: str | None, limit: int, wait: float, retry_for: float) -> Steps[Inbox]:
    until = time.monotonic() + wait
    while True:
        seconds = slice_of(until)
        query = {"for": address, "after": after, "limit": limit, "wait": seconds or None}
        page: Inbox = yield from fetch(get("/crosstalk/inbox", query, extra_seconds=seconds), retry_for)
        if page["messages"] or time.monotonic() >= until:
            return page
        after = page["cursor"]


def acknowledge(address: str, ids: Sequence[str], state: str, retry_for: float) -> Steps[Acked]:
    if isinstance(ids, str):
        raise TypeError("ids is a list of message ids, not one text")
    whole: Acked = {"changed": [], "unknown": []}
    for start in range(0, len(ids), MAX_ACK_IDS):
        some = list(ids[start : start + MAX_ACK_IDS])
        body = json.dumps({"for": address, "ids": some, "state": state}).encode()
        headers = {"Content-Type": JSON, "Accept": JSON}
        # A failure that is reported twice counts as two attempts (HTP-036).
        is_repeatable = state in ("read", "acknowledged")
        request = Request("POST", "/crosstalk/ack", headers, body, is_repeatable=is_repeatable)
        part: Acked = yield from fetch(request, retry_for)
        whole["changed"] += part["changed"]
        whole["unknown"] += part["unknown"]
    return whole


def read(id: str, retry_for: float) -> Steps[StoredMessage]:
    request = get(f"/crosstalk/messages/{segment(id)}", max_bytes=MESSAGE_BYTES)
    return cast(StoredMessage, (yield from fetch(request, retry_for)))


def thread(id: str, retry_for: float) -> Steps[ThreadTree]:
    request = get(f"/crosstalk/threads/{segment(id)}", max_bytes=THREAD_BYTES)
    return cast(ThreadTree, (yield from fetch(request, retry_for)))


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def upload(data: bytes, retry_for: float) -> Steps[Blob]:
    headers = {"Content-Type": "application/octet-stream", "Accept": JSON}
    seconds = len(data) / MIN_BYTES_PER_SECOND
    request = Request("PUT", f"/crosstalk/blobs/{segment(digest_of(data))}", headers, data, seconds)
    return cast(Blob, (yield from fetch(request, retry_for)))


def download(digest: str, max_bytes: int, retry_for: float) -> Steps[bytes]:
    seconds = max_bytes / MIN_BYTES_PER_SECOND
    # An error is JSON, whatever the limit for the attachment is.
    path = f"/crosstalk/blobs/{segment(digest)}"
    accept = {"Accept": "application/octet-stream, application/json"}
    response = yield from attempt(Request("GET", path, accept, None, seconds, max_bytes), retry_for)
    if digest_of(response.body) != digest:
        raise unreadable(response, "its bytes do not have the digest that was asked for")
    return response.body


# Streams


@dataclass
class EventReader:
    """Server-sent events out of bytes, however they are cut."""

    rest: bytearray = field(default_factory=bytearray)
    kind: str = ""
    id: str | None = None
    data: list[str] = field(default_factory=list)
    data_size: int = 0

    def events(self, chunk: bytes) -> list[tuple[str, str | None, str]]:
        """The kind, the id and the data of each event that these bytes complete."""
        self.rest += chunk
        *lines, self.rest = self.rest.split(b"\n")
        events = []
        for raw in lines:
            line = raw.decode(errors="replace").removesuffix("\r")
            if line:
                self._field(line)
            elif self.data or self.id is not None:
                events.append((self.kind or "message", self.id, "\n".join(self.data)))
                self.kind, self.id, self.data, self.data_size = "", None, [], 0
        if len(self.rest) + self.data_size > MESSAGE_BYTES:
            raise RelayError("the relay sent an event that is too large", help="check that the URL is that of a relay")
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.kind = value
        elif name == "id":
            self.id = value
        elif name == "data":
            self.data.append(value)
            self.data_size += len(value)


class InboxFollower:
    """The state of a stream across connections: each message once, in the order of the inbox (HTP-034)."""

    def __init__(self, address: str, after: str | None, retry_for: float) -> None:
        self.cursor = after
        self._address = address
        self._retry_for = retry_for
        self._failures = 0
        self._give_up_at = math.inf
        self._was_open = False

    def request(self) -> Request:
        """The request that goes on after the last message that was given out."""
        self._events = EventReader()
        query = {"for": self._address, "after": self.cursor}
        request = get("/crosstalk/inbox", query)
        return Request("GET", request.path, {"Accept": "text/event-stream"}, max_bytes=ERROR_BYTES)

    def opened(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the relay answers with events."""
        is_open = status == 200 and headers.get("content-type", "").startswith("text/event-stream")
        self._was_open |= is_open
        return is_open

    def messages(self, chunk: bytes) -> Iterator[InboxEntry]:
        """The messages that these bytes complete."""
        for kind, id, data in self._events.events(chunk):
            self._failures = 0
            if kind != "message" or not data:
                self.cursor = id or self.cursor
                continue
            try:
                message = cast(InboxEntry, json.loads(data))
            except ValueError as fault:
                raise RelayError(f"the relay sent an event that is not JSON ({fault})") from None
            self.cursor = id or self.cursor
            yield message

    def pause(self, answer: Answer | None) -> float:
        """How long to wait before the next connection, after an answer without events or, with `None`, the end of one.

        A rejection is final. A relay that never answered is given up after `retry_for` seconds; one that did is not.
        """
        self._failures += 1
        if answer is None:
            return pause_after(self._failures, None)
        if isinstance(answer, Response) and answer.status < 300:
            raise unreadable(answer, "it is not a stream of events")
        error = error_of(answer)
        if not is_temporary(answer):
            raise error
        pause = pause_after(self._failures, error.retry_after)
        if not self._was_open:
            now = time.monotonic()
            if self._failures == 1:
                self._give_up_at = now + self._retry_for
            if now + pause > self._give_up_at:
                raise error
        return pause
