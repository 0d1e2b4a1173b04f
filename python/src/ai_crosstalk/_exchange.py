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
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, Union, cast
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from ._envelope import build, unicode_only
from ._error import CrosstalkError, RelayError
from ._forms import Acknowledged, Attachment, InboxPage, InboxMessage, MessageInput, SendResult, RelayMessage, ThreadTree

MAX_WAIT_SECONDS = 60
"""How long a relay waits for one request (HTP-014, HTP-038). A longer wait is several requests."""
MAX_ACK_IDS = 500
QUIET_SECONDS = 75.0
"""How long a stream may be silent: a relay sends something every 30 seconds (HTP-033)."""
MIN_BYTES_PER_SECOND = 64 << 10
"""An attachment gets more time than other requests: one second for each of these."""
MESSAGE_BYTES = 8 << 20
PAGE_BYTES = 32 << 20
THREAD_BYTES = 64 << 20
ERROR_BYTES = 1 << 20
FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 10.0
MAX_STREAM_RETRY_AFTER_SECONDS = 300
"""The longest `Retry-After` that counts for a stream that was open, which waits for its relay as long as it takes."""
MAX_RETRY_AFTER_DIGITS = 6
"""A longer time is no pause any more."""
NO_RELAY = "Check that this is the URL of a relay, and whether a proxy stands before it."

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
        parts = parts_of(url)
        token = None if token is None else token.strip()
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token and token):
            raise CrosstalkError(
                "The token is empty or has characters that no token has.",
                "E-PERM",
                help="Pass the text that `crosstalk token create` printed, or no token.",
            )
        if not timeout > 0 or not retry_for >= 0:
            raise CrosstalkError(
                "`timeout` or `retry_for` is not a number of seconds.",
                help="Pass a `timeout` of more than 0 seconds, and a `retry_for` of 0 or more.",
            )
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname or "", port, quote(parts.path.rstrip("/"), safe="/%"), token, timeout, retry_for)

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


def parts_of(url: str) -> SplitResult:
    """The parts of the URL of a relay."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or parts.username is not None or parts.query or parts.fragment:
        raise CrosstalkError(
            "The URL of the relay is not an http or https URL without user name, query and fragment.",
            "E-FORMAT",
            help="Write the URL as in `http://127.0.0.1:8799`, and pass the secret as `token`.",
        )
    return parts


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
        retry_for: float = 30.0,
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


def fault_of(fault: BaseException, is_timeout: bool) -> Fault:
    """The fault that an exception is."""
    reason = str(fault) or ("timed out" if is_timeout else type(fault).__name__)
    return Fault(reason, is_timeout, isinstance(fault, ssl.SSLCertVerificationError))


# Retries


def pause_of(longest: float) -> Pause:
    """A pause of at most this length, shortened by chance so that clients do not come all at once."""
    return Pause(longest * random.uniform(0.5, 1.0))


@dataclass
class Retries:
    """When a request is sent again, and for how long."""

    retry_for: float
    first_pause: float = FIRST_PAUSE_SECONDS
    failures: int = 0
    give_up_at: float = math.inf
    is_for_ever: bool = False

    def reset(self) -> None:
        """Forgets earlier failures."""
        self.failures = 0

    def pause_after(self, error: RelayError | None) -> Pause:
        """The pause after an error, or after the end of a stream. An error after which there is no other attempt is raised."""
        if error is not None and not error.temporary:
            raise error
        backoff = pause_of(min(self.first_pause * 2 ** min(self.failures, 16), MAX_PAUSE_SECONDS))
        retry_after = (error.retry_after if error is not None else None) or 0
        if self.is_for_ever:
            retry_after = min(retry_after, MAX_STREAM_RETRY_AFTER_SECONDS)
        pause = Pause(retry_after + backoff.seconds)
        now = time.monotonic()
        if self.failures == 0:
            self.give_up_at = now + self.retry_for
        self.failures += 1
        if error is not None and not self.is_for_ever and now + pause.seconds > self.give_up_at:
            raise error
        return pause


def attempt(request: Request, retry_for: float) -> Steps[Response]:
    """Sends a request until it succeeds, fails for good, or the time is over. Every request here is safe to repeat."""
    retries = Retries(retry_for)
    while True:
        answer = yield request
        assert answer is not None
        if isinstance(answer, Response) and answer.status < 300:
            return answer
        yield retries.pause_after(error_of(answer))


# Answers


def one_line(text: str) -> str:
    """Untrusted text, in one line of a bounded length, without control characters."""
    words = " ".join(text[:500].split())
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):X}}}" for c in words)


def error_of(answer: Answer) -> RelayError:
    """The error that an answer is, or why there is none."""
    if isinstance(answer, Fault):
        if answer.is_timeout:
            help = "Try again later, or ask the operator of the relay."
            return RelayError("The relay did not answer in time.", "E-TIMEOUT", help=help, temporary=True)
        help = "Check the URL, and that the relay runs (`crosstalk serve`)."
        message = f"The relay cannot be reached: {one_line(answer.reason)}."
        return RelayError(message, "E-ROUTE", help=help, temporary=not answer.is_final)
    status = answer.status
    temporary = status in (408, 429) or status >= 500
    fields = rejection_in(answer.body)
    if fields is None:
        is_redirection = status < 400
        return RelayError(
            "The relay redirects to another URL."
            if is_redirection
            else f"The server answered with status {status}, and not as a relay does.",
            "E-PERM" if status in (401, 403) else "E-ROUTE",
            help=NO_RELAY,
            status=status,
            retry_after=seconds_in(answer.headers.get("retry-after")),
            temporary=temporary,
        )

    def text(key: str) -> str | None:
        value = fields.get(key)
        return one_line(value) or None if isinstance(value, str) else None

    line = fields.get("line")
    return RelayError(
        text("what") or text("detail") or f"The relay rejected the request with status {status}.",
        text("code"),
        text("rule"),
        text("help"),
        line if type(line) is int else None,
        status=status,
        retry_after=seconds_in(answer.headers.get("retry-after", str(fields.get("retry_after")))),
        # 504 says that the deadline of the message has passed, which no attempt changes.
        temporary=temporary and status != 504,
    )


def rejection_in(body: bytes) -> dict[str, Any] | None:
    """The fields of a rejection (HTP-004)."""
    try:
        error = json.loads(body)["error"]
        return cast("dict[str, Any]", error) if isinstance(error["code"], str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def seconds_in(value: str | None) -> int | None:
    """A `Retry-After` in seconds."""
    is_number = value is not None and value.isascii() and value.isdigit() and len(value) <= MAX_RETRY_AFTER_DIGITS
    return int(value) if value is not None and is_number else None


Form = Mapping[str, Union[type, tuple[type, ...]]]


def json_in(body: bytes, form: Form) -> Any:
    """The JSON object of an answer, which has at least the fields of a form."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise unreadable("The answer of the relay is not JSON.") from None
    if not isinstance(value, dict) or not all(isinstance(value.get(key, ...), kind) for key, kind in form.items()):
        raise unreadable("The answer of the relay lacks what it has to tell.")
    return value


def check_size(request: Request, status: int, size: int) -> None:
    """Rejects an answer that is too large."""
    max_bytes = request.max_bytes if status < 300 else ERROR_BYTES
    if size > max_bytes:
        message = f"The answer of the relay has more than {max_bytes} bytes."
        raise RelayError(message, "E-TOO-LARGE", help="Ask for less at once.")


def unreadable(message: str) -> RelayError:
    return RelayError(message, "E-ROUTE", help=NO_RELAY)


# Operations


def segment(text: str) -> str:
    """A text as one segment of a path."""
    try:
        # Some servers take these for folders.
        if text not in ("", ".", ".."):
            return quote(text, safe="")
    except UnicodeEncodeError:
        pass  # Half of a surrogate pair.
    help = "Pass an id of a message or thread, or the digest of an attachment."
    raise CrosstalkError("The id or digest is not one that a relay gives.", "E-FORMAT", help=help)


def get(path: str, query: Mapping[str, str | int | None] = {}, **options: Any) -> Request:
    given = {name: value for name, value in query.items() if value is not None}
    path = f"{path}?{urlencode(given, quote_via=quote)}" if given else path
    return Request("GET", path, {"Accept": JSON}, **options)


def fetch(request: Request, form: Form, retry_for: float) -> Steps[Any]:
    response = yield from attempt(request, retry_for)
    return json_in(response.body, form)


class WaitTime:
    """The time that a caller wants to wait, in parts that a relay grants.

    A part can end early, because the relay stops; so the next one begins after a pause.
    """

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds < math.inf:
            raise CrosstalkError("`wait` is not a number of seconds.", "E-FORMAT", help="Pass 0 or more seconds.")
        self._until = time.monotonic() + seconds

    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def next_seconds(self) -> int:
        """How many seconds the next request may wait."""
        return min(MAX_WAIT_SECONDS, math.ceil(self.seconds_left()))

    def is_over(self) -> bool:
        return self.next_seconds() == 0


@unicode_only
def utf8(text: str) -> bytes:
    return text.encode()


def send(message: MessageInput | str | bytes, wait: float, retry_for: float) -> Steps[SendResult]:
    # `build` generates missing ids, so every attempt sends the same message. A text without an id is known by its digest
    # (HTP-012).
    text = build(message) if isinstance(message, Mapping) else message
    body = utf8(text) if isinstance(text, str) else text
    waiting = WaitTime(wait)
    accepted: SendResult | None = None
    while True:
        seconds = waiting.next_seconds()
        headers = {"Content-Type": "text/plain; charset=utf-8", "Accept": JSON}
        if seconds > 0:
            headers["Prefer"] = f"wait={seconds}"
        request = Request("POST", "/crosstalk/receive", headers, body, seconds, MESSAGE_BYTES)
        try:
            # Once the relay has the message, nothing is tried for longer than the caller waits.
            limit = retry_for if accepted is None else min(retry_for, waiting.seconds_left())
            response = yield from attempt(request, limit)
        except RelayError as error:
            # The relay has the message: an interruption only makes the wait longer.
            if accepted is None or not error.temporary:
                raise
            if waiting.is_over():
                return accepted
        else:
            form: Form = {"ack": dict, "answer": (dict, type(None))}
            accepted = cast(SendResult, json_in(response.body, form))
            has_waited = "preference-applied" in response.headers
            # Only some intents wait, and the relay says whether it did (HTP-014).
            if accepted["answer"] is not None or not has_waited or waiting.is_over():
                return accepted
        yield pause_of(FIRST_PAUSE_SECONDS)


def inbox(address: str, after: str | None, limit: int, wait: float, retry_for: float) -> Steps[InboxPage]:
    waiting = WaitTime(wait)
    while True:
        seconds = waiting.next_seconds()
        query = {"for": address, "after": after, "limit": limit, "wait": seconds or None}
        request = get("/crosstalk/inbox", query, extra_seconds=seconds)
        page: InboxPage = yield from fetch(request, {"messages": list, "cursor": str}, retry_for)
        if page["messages"] or waiting.is_over():
            return page
        yield pause_of(FIRST_PAUSE_SECONDS)


def acknowledge(address: str, ids: str | Iterable[str], retry_for: float) -> Steps[Acknowledged]:
    all_ids = [ids] if isinstance(ids, str) else list(ids)
    whole: Acknowledged = {"changed": [], "unknown": []}
    for start in range(0, len(all_ids), MAX_ACK_IDS):
        body = json.dumps({"for": address, "ids": all_ids[start : start + MAX_ACK_IDS]}).encode()
        headers = {"Content-Type": JSON, "Accept": JSON}
        request = Request("POST", "/crosstalk/ack", headers, body)
        part: Acknowledged = yield from fetch(request, {"changed": list, "unknown": list}, retry_for)
        whole["changed"] += part["changed"]
        whole["unknown"] += part["unknown"]
    return whole


def read(id: str, retry_for: float) -> Steps[RelayMessage]:
    request = get(f"/crosstalk/messages/{segment(id)}", max_bytes=MESSAGE_BYTES)
    return cast(RelayMessage, (yield from fetch(request, {"id": str}, retry_for)))


def thread(id: str, retry_for: float) -> Steps[ThreadTree]:
    request = get(f"/crosstalk/threads/{segment(id)}", max_bytes=THREAD_BYTES)
    return cast(ThreadTree, (yield from fetch(request, {"thread": dict, "messages": list}, retry_for)))


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def upload(data: bytes, retry_for: float) -> Steps[Attachment]:
    headers = {"Content-Type": "application/octet-stream", "Accept": JSON}
    seconds = len(data) / MIN_BYTES_PER_SECOND
    request = Request("PUT", f"/crosstalk/blobs/{segment(digest_of(data))}", headers, data, seconds)
    return cast(Attachment, (yield from fetch(request, {"digest": str, "size": int}, retry_for)))


def download(digest: str, max_bytes: int, retry_for: float) -> Steps[bytes]:
    if not isinstance(max_bytes, int) or max_bytes < 0:
        raise CrosstalkError("`max_bytes` is not a number of bytes.", help="Pass a whole number of 0 or more.")
    seconds = max_bytes / MIN_BYTES_PER_SECOND
    # An error is JSON, whatever the limit for the attachment is.
    path = f"/crosstalk/blobs/{segment(digest)}"
    accept = {"Accept": "application/octet-stream, application/json"}
    response = yield from attempt(Request("GET", path, accept, None, seconds, max_bytes), retry_for)
    if digest_of(response.body) != digest:
        help = "Ask the sender to upload the attachment again."
        raise RelayError("The bytes that the relay sent do not have this digest.", "E-FORMAT", help=help)
    return response.body


# Streams


@dataclass
class Event:
    """A server-sent event."""

    kind: str = "message"
    id: str | None = None
    data: list[str] = field(default_factory=list)
    retry: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.data and self.id is None and self.retry is None

    def add(self, line: str) -> None:
        """Adds a field."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.kind = value
        elif name == "id":
            self.id = value
        elif name == "data":
            self.data.append(value)
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 10:
            self.retry = int(value)


class EventReader:
    """Server-sent events out of bytes, however they are cut."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """The parts of a line whose end has not come; they are joined once."""
        self._event = Event()
        self._size = 0

    def events(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        events = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._size += len(end)
            line = b"".join([*self._line, end]).decode(errors="replace").removesuffix("\r")
            self._line.clear()
            if line:
                self._event.add(line)
                continue
            if not self._event.is_empty:
                events.append(self._event)
            self._event, self._size = Event(), 0
        self._line.append(rest)
        # An event of many short lines costs more than its bytes.
        self._size += len(rest) + len(ends)
        if self._size > MESSAGE_BYTES:
            help = "Read this inbox page by page, with a small `limit`."
            raise RelayError("The relay sent an event that is too large.", "E-TOO-LARGE", help=help)
        return events


class InboxFollower:
    """The state of a stream across connections: each message once, in the order of the inbox (HTP-034)."""

    def __init__(self, address: str, after: str | None, retry_for: float) -> None:
        self.cursor = after
        self._address = address
        self._retries = Retries(retry_for)

    def request(self) -> Request:
        """The request that goes on after the last message that was given out."""
        self._events = EventReader()
        path = get("/crosstalk/inbox", {"for": self._address, "after": self.cursor}).path
        # The second is for a rejection.
        return Request("GET", path, {"Accept": f"text/event-stream, {JSON};q=0.1"}, max_bytes=ERROR_BYTES)

    def opened(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the relay answers with events."""
        is_open = status == 200 and headers.get("content-type", "").startswith("text/event-stream")
        if is_open:
            # A stream that was never open may have the wrong URL. One that was open waits for its relay as long as it takes.
            self._retries.is_for_ever = True
        return is_open

    def messages(self, chunk: bytes) -> Iterator[InboxMessage]:
        """The messages that these bytes complete."""
        for event in self._events.events(chunk):
            if event.retry is not None:
                # A shorter pause than ours would be a flood.
                self._retries.first_pause = max(event.retry / 1000, FIRST_PAUSE_SECONDS)
            data = "\n".join(event.data)
            if event.kind != "message" or not data:
                self.cursor = event.id or self.cursor
                continue
            message = cast(InboxMessage, json_in(data.encode(), {"id": str}))
            self._retries.reset()
            self.cursor = event.id or self.cursor
            yield message

    def pause(self, answer: Answer | None) -> float:
        """How long to wait before the next connection, after an answer without events or, with `None`, the end of one."""
        if isinstance(answer, Response) and answer.status < 300:
            raise unreadable("The answer of the relay is not a stream of events.")
        return self._retries.pause_after(None if answer is None else error_of(answer)).seconds
