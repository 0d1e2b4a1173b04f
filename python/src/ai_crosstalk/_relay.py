"""`Relay`: a client with blocking calls, on `http.client`."""

from __future__ import annotations

import http.client
import io
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from . import _exchange as exchange
from ._exchange import Answer, Client, Fault, InboxFollower, Pause, Request, Response, Steps
from ._forms import Acknowledged, Attachment, InboxPage, InboxMessage, MessageInput, SendResult, RelayMessage, ThreadTree

__all__ = ["InboxStream", "Relay"]

T = TypeVar("T")
READ_BYTES = 64 << 10


class Relay(Client[http.client.HTTPConnection]):
    """A client of one relay. Threads may share it.

    `timeout` is how many seconds an attempt may take, besides the time that the relay is asked to wait; `retry_for` is for how
    many seconds a request is tried again. `docs/guide/api.md` has the rules by which the client waits, repeats and reconnects.
    """

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def send(self, message: MessageInput | str | bytes, *, wait: float = 0) -> SendResult:
        """Sends a message in the form of `build`, or an envelope as text. Returns the receipt, and the answer if one came.

        `wait` is for how many seconds to wait for the answer. A message without an id gets one before the first attempt, so that
        the relay accepts it once.
        """
        return self._run(exchange.send(message, wait, self._endpoint.retry_for))

    def inbox(self, address: str, *, after: str | None = None, limit: int = 100, wait: float = 0) -> InboxPage:
        """Lists the messages of an address that are not acknowledged, the oldest first.

        `after` is the `cursor` of an earlier answer, `wait` for how many seconds to wait until there is a message.
        """
        return self._run(exchange.inbox(address, after, limit, wait, self._endpoint.retry_for))

    def acknowledge(self, address: str, ids: str | Iterable[str]) -> Acknowledged:
        """Takes messages out of the inbox of an address: they are done."""
        return self._run(exchange.acknowledge(address, ids, self._endpoint.retry_for))

    def read(self, id: str) -> RelayMessage:
        """Reads one message."""
        return self._run(exchange.read(id, self._endpoint.retry_for))

    def thread(self, id: str) -> ThreadTree:
        """Reads a conversation as a tree."""
        return self._run(exchange.thread(id, self._endpoint.retry_for))

    def upload(self, data: bytes) -> Attachment:
        """Uploads an attachment. Returns its digest, by which messages refer to it, and its size."""
        return self._run(exchange.upload(data, self._endpoint.retry_for))

    def download(self, digest: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Downloads an attachment and compares it with its digest."""
        return self._run(exchange.download(digest, max_bytes, self._endpoint.retry_for))

    def stream(self, address: str, *, after: str | None = None) -> InboxStream:
        """Iterates over the messages of an address as they come, each once, across lost connections and restarts of the relay.

        It begins with the messages that are not acknowledged, or after a cursor, and ends when it is closed.
        """
        return InboxStream(self, InboxFollower(address, after, self._endpoint.retry_for))

    def _run(self, steps: Steps[T]) -> T:
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
            else:
                answer = self._exchange(step)

    def _exchange(self, request: Request) -> Answer:
        deadline = time.monotonic() + self._endpoint.seconds(request)
        try:
            connection = self._connection(deadline)
        except OSError as fault:
            return fault_of(fault)
        is_done = False
        try:
            answer = self._begin(connection, request, deadline)
            response = Response(answer.status, headers_of(answer), read_body(answer, request))
            is_done = not answer.will_close
            return response
        except (OSError, http.client.HTTPException) as fault:
            return fault_of(fault)
        finally:
            # A connection with an unread answer can't be used again, also after KeyboardInterrupt.
            self._idle.append(connection) if is_done else connection.close()

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        """An idle connection that is still open, or a new one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if is_open(connection):
                return connection
            connection.close()
        return self._connect(deadline)

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        host, port, seconds = self._endpoint.host, self._endpoint.port, left(deadline)
        connection: http.client.HTTPConnection
        if self._ssl is not None:
            connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=self._ssl)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=seconds)
        connection.connect()
        connection.sock = cast(Any, TimedSocket(connection.sock, deadline))
        return connection

    def _begin(
        self, connection: http.client.HTTPConnection, request: Request, deadline: float
    ) -> http.client.HTTPResponse:
        """Sends a request and reads the head of the answer."""
        set_deadline(connection, deadline)
        headers = {"Host": self._endpoint.authority, **self._endpoint.headers(request)}
        try:
            connection.request(request.method, self._endpoint.target(request), request.body, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The relay may have answered before it read everything.
        return connection.getresponse()


class TimedSocket:
    """A socket with a time limit for a whole exchange. That of the library would begin anew with each part that comes."""

    def __init__(self, inner: socket.socket, deadline: float) -> None:
        self.deadline = deadline
        self._inner = inner
        self._files = 0
        self._is_closed = False

    def sendall(self, data: bytes) -> None:
        self._inner.settimeout(left(self.deadline))
        self._inner.sendall(data)

    def receive(self, buffer: memoryview) -> int:
        self._inner.settimeout(left(self.deadline))
        return self._inner.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The bytes of one answer."""
        self._files += 1
        return io.BufferedReader(TimedFile(self))

    def fileno(self) -> int:
        return self._inner.fileno()

    def shutdown(self, how: int) -> None:
        self._inner.shutdown(how)

    def close(self) -> None:
        """Closes it when the last file is closed: the library closes it before it has read the answer."""
        self._is_closed = True
        self.release(0)

    def release(self, files: int) -> None:
        self._files -= files
        if self._is_closed and self._files == 0:
            self._inner.close()


class TimedFile(io.RawIOBase):
    """What comes from a socket."""

    def __init__(self, source: TimedSocket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._source.receive(memoryview(buffer))

    def close(self) -> None:
        if not self.closed:
            self._source.release(1)
        super().close()


class InboxStream(Iterator[InboxMessage]):
    """The messages of an inbox as they come. `close()`, also from another thread, ends it."""

    def __init__(self, relay: Relay, follower: InboxFollower) -> None:
        self._relay = relay
        self._follower = follower
        self._socket: TimedSocket | None = None
        self._closed = threading.Event()
        self._messages = self._follow()

    @property
    def cursor(self) -> str | None:
        """The place after the last message: `stream(address, after=cursor)` goes on there."""
        return self._follower.cursor

    def __iter__(self) -> InboxStream:
        return self

    def __next__(self) -> InboxMessage:
        return next(self._messages)

    def __enter__(self) -> InboxStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream."""
        self._closed.set()
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is closed already.

    def _follow(self) -> Iterator[InboxMessage]:
        while not self._closed.is_set():
            answer: Answer | None = None
            connection: http.client.HTTPConnection | None = None
            try:
                request = self._follower.request()
                deadline = time.monotonic() + self._relay._endpoint.seconds(request)
                connection = self._relay._connect(deadline)
                self._socket = cast(TimedSocket, connection.sock)
                response = self._relay._begin(connection, request, deadline)
                if self._follower.opened(response.status, headers_of(response)):
                    while not self._closed.is_set():
                        self._socket.deadline = time.monotonic() + exchange.QUIET_SECONDS
                        chunk = response.read1(READ_BYTES)
                        if not chunk:
                            break
                        yield from self._follower.messages(chunk)
                else:
                    body = read_body(response, request)
                    answer = Response(response.status, headers_of(response), body)
            except (OSError, http.client.HTTPException) as fault:
                answer = fault_of(fault)
            finally:
                if connection is not None:
                    connection.close()
            if not self._closed.is_set():
                self._closed.wait(self._follower.pause(answer))


def is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection can be used: it has nothing to read, unless the relay closed it."""
    if connection.sock is None:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return not selector.select(0)


def left(deadline: float) -> float:
    """How many seconds are left."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def set_deadline(connection: http.client.HTTPConnection, deadline: float) -> None:
    sock: TimedSocket | None = cast(Any, connection.sock)
    if sock is not None:
        sock.deadline = deadline


def fault_of(fault: Exception) -> Fault:
    return exchange.fault_of(fault, isinstance(fault, TimeoutError))


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def read_body(answer: http.client.HTTPResponse, request: Request) -> bytes:
    """Reads the whole body, at most as much as the request allows."""
    body = bytearray()
    while part := answer.read1(READ_BYTES):
        body += part
        exchange.check_size(request, answer.status, len(body))
    if answer.length:
        raise http.client.IncompleteRead(bytes(body), answer.length)
    answer.close()
    return bytes(body)
