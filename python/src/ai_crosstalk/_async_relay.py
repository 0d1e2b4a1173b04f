"""`AsyncRelay`: the client for `asyncio`, on streams of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from . import _exchange as exchange
from ._exchange import Answer, Client, Endpoint, Fault, InboxFollower, Pause, Request, Response, Steps
from ._forms import Acknowledged, Attachment, InboxPage, InboxMessage, MessageInput, SendResult, RelayMessage, ThreadTree

__all__ = ["AsyncInboxStream", "AsyncRelay"]

T = TypeVar("T")
READ_BYTES = 64 << 10
HEAD_BYTES = 64 << 10
"""The largest head of an answer, and the longest line between chunks."""


class AsyncRelay(Client["Connection"]):
    """`Relay` with awaits. Tasks of one event loop may share it; cancelling a task ends its request.

    `timeout` is how many seconds an attempt may take, besides the time that the relay is asked to wait; `retry_for` is for how
    many seconds a request is tried again. `docs/guide/api.md` has the rules by which the client waits, repeats and reconnects.
    """

    async def __aenter__(self) -> AsyncRelay:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        # A transport closes in the next round of the event loop, which may be the last one.
        await asyncio.sleep(0)

    async def send(self, message: MessageInput | str | bytes, *, wait: float = 0) -> SendResult:
        """Sends a message in the form of `build`, or an envelope as text. Returns the receipt, and the answer if one came.

        `wait` is for how many seconds to wait for the answer. A message without an id gets one before the first attempt, so that
        the relay accepts it once.
        """
        return await self._run(exchange.send(message, wait, self._endpoint.retry_for))

    async def inbox(self, address: str, *, after: str | None = None, limit: int = 100, wait: float = 0) -> InboxPage:
        """Lists the messages of an address that are not acknowledged, the oldest first.

        `after` is the `cursor` of an earlier answer, `wait` for how many seconds to wait until there is a message.
        """
        return await self._run(exchange.inbox(address, after, limit, wait, self._endpoint.retry_for))

    async def acknowledge(self, address: str, ids: str | Iterable[str]) -> Acknowledged:
        """Takes messages out of the inbox of an address: they are done."""
        return await self._run(exchange.acknowledge(address, ids, self._endpoint.retry_for))

    async def read(self, id: str) -> RelayMessage:
        """Reads one message."""
        return await self._run(exchange.read(id, self._endpoint.retry_for))

    async def thread(self, id: str) -> ThreadTree:
        """Reads a conversation as a tree."""
        return await self._run(exchange.thread(id, self._endpoint.retry_for))

    async def upload(self, data: bytes) -> Attachment:
        """Uploads an attachment. Returns its digest, by which messages refer to it, and its size."""
        return await self._run(exchange.upload(data, self._endpoint.retry_for))

    async def download(self, digest: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Downloads an attachment and compares it with its digest."""
        return await self._run(exchange.download(digest, max_bytes, self._endpoint.retry_for))

    def stream(self, address: str, *, after: str | None = None) -> AsyncInboxStream:
        """Iterates over the messages of an address as they come, each once, across lost connections and restarts of the relay.

        It begins with the messages that are not acknowledged, or after a cursor, and ends when it is closed.
        """
        return AsyncInboxStream(self, InboxFollower(address, after, self._endpoint.retry_for))

    async def _run(self, steps: Steps[T]) -> T:
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
            else:
                answer = await self._exchange(step)

    async def _exchange(self, request: Request) -> Answer:
        deadline = time.monotonic() + self._endpoint.seconds(request)
        try:
            connection = await self._connection(deadline)
        except (OSError, asyncio.TimeoutError) as fault:
            return fault_of(fault)
        is_done = False
        try:
            status, headers = await within(deadline, connection.begin(self._endpoint, request))
            body = await within(deadline, connection.read_body(request))
            is_done = connection.is_reusable
            return Response(status, headers, body)
        except FAULTS as fault:
            return fault_of(fault)
        finally:
            # A connection with an unread answer can't be used again, also after a cancellation.
            self._idle.append(connection) if is_done else connection.close()

    async def _connection(self, deadline: float) -> Connection:
        """An idle connection that is still open, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            try:
                is_open = await connection.is_open()
            except BaseException:
                connection.close()
                raise
            if is_open:
                return connection
            connection.close()
        return await self._connect(deadline)

    async def _connect(self, deadline: float) -> Connection:
        host, port = self._endpoint.host, self._endpoint.port
        opening = asyncio.open_connection(host, port, ssl=self._ssl, limit=HEAD_BYTES)
        return Connection(*await within(deadline, opening))


class AsyncInboxStream(AsyncIterator[InboxMessage]):
    """The messages of an inbox as they come. `close()`, or leaving `async with`, ends it.

    Cancelling `anext(stream)` loses nothing: the next call goes on after the last message.
    """

    def __init__(self, relay: AsyncRelay, follower: InboxFollower) -> None:
        self._relay = relay
        self._follower = follower
        self._ready: Iterator[InboxMessage] = iter(())
        self._connection: Connection | None = None
        self._is_closed = False

    @property
    def cursor(self) -> str | None:
        """The place after the last message: `stream(address, after=cursor)` goes on there."""
        return self._follower.cursor

    def __aiter__(self) -> AsyncInboxStream:
        return self

    async def __anext__(self) -> InboxMessage:
        while not self._is_closed:
            message = next(self._ready, None)
            if message is not None:
                return message
            await self._advance()
        raise StopAsyncIteration

    async def __aenter__(self) -> AsyncInboxStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream."""
        self._is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _advance(self) -> None:
        """Opens the stream if it is not open, or else reads a part of it."""
        answer: Answer | None = None
        try:
            if self._connection is None:
                answer = await self._open()
                if answer is None:
                    return
            else:
                chunk = await asyncio.wait_for(self._connection.read(), exchange.QUIET_SECONDS)
                if chunk:
                    self._ready = self._follower.messages(chunk)
                    return
        except FAULTS as fault:
            answer = fault_of(fault)
        except BaseException:
            # Cancelled while an event was read: the next call asks for it again.
            self._disconnect()
            raise
        self._disconnect()
        if not self._is_closed:
            await asyncio.sleep(self._follower.pause(answer))

    async def _open(self) -> Response | None:
        """Connects. Returns the answer if it is not a stream."""
        request = self._follower.request()
        deadline = time.monotonic() + self._relay._endpoint.seconds(request)
        self._connection = await self._relay._connect(deadline)
        status, headers = await within(deadline, self._connection.begin(self._relay._endpoint, request))
        if self._follower.opened(status, headers):
            return None
        body = await within(deadline, self._connection.read_body(request))
        return Response(status, headers, body)


class BrokenAnswer(Exception):
    """The answer is not HTTP, or ends too early."""


FAULTS = (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, BrokenAnswer)


class Connection:
    """A connection, and how much of the body of an answer is left."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._is_chunked = False
        self._left: int | None = 0
        """Bytes of the body, or of the current chunk; `None` if the end of the connection ends the body."""
        self._is_kept = True
        self._status = 0

    @property
    def is_reusable(self) -> bool:
        """Whether another request can follow the last answer."""
        return self._is_kept

    async def is_open(self) -> bool:
        """Whether it can be used again: the relay has not closed it, and sent nothing that was not asked for."""
        if self._loop is not asyncio.get_running_loop():
            return False  # Of an earlier `asyncio.run`.
        unasked = asyncio.ensure_future(self._reader.read(1))
        try:
            # In the first rounds of the event loop, what has come is read from the socket, and `unasked` gets it.
            for _ in range(3):
                await asyncio.sleep(0)
            return not unasked.done() and not self._writer.is_closing()
        finally:
            # A fault of the connection is no more to be told than its end.
            unasked.cancel() or unasked.exception()

    def close(self) -> None:
        # Nothing is left to be sent, so there is no reason to wait for the end of TLS.
        if not self._loop.is_closed():
            self._writer.transport.abort()

    async def begin(self, endpoint: Endpoint, request: Request) -> tuple[int, dict[str, str]]:
        """Sends a request and reads the head of the answer."""
        lines = [f"{request.method} {endpoint.target(request)} HTTP/1.1", f"Host: {endpoint.authority}"]
        lines += [f"{name}: {value}" for name, value in endpoint.headers(request).items()]
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        try:
            self._writer.write(request.body or b"")
            await self._writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # The relay may have answered before it read everything.
        status, headers = await self._read_head()
        while 100 <= status < 200:
            status, headers = await self._read_head()
        self._status = status
        self._is_kept = "close" not in headers.get("connection", "").lower()
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        if self._is_chunked or status == 204:
            self._left = 0
        elif "content-length" in headers:
            self._left = number_in(headers["content-length"], 10)
        else:
            self._left, self._is_kept = None, False
        if status == 204:
            self._is_chunked = False
        return status, headers

    async def _read_head(self) -> tuple[int, dict[str, str]]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1."):
            raise BrokenAnswer("the answer is not HTTP/1.1")
        pairs = [line.partition(":") for line in lines]
        return number_in(rest[:3], 10), {name.strip().lower(): value.strip() for name, _, value in pairs}

    async def read(self) -> bytes:
        """The next part of the body; nothing at its end."""
        if self._left is None:
            return await self._reader.read(READ_BYTES)
        if self._left == 0 and self._is_chunked:
            self._left = number_in((await self._line()).split(b";")[0].decode("latin-1").strip(), 16)
            if self._left == 0:
                self._is_chunked = False
                while await self._line():
                    pass  # Trailers.
        if self._left == 0:
            return b""
        part = await self._reader.read(min(self._left, READ_BYTES))
        if not part:
            raise BrokenAnswer("the answer ends too early")
        self._left -= len(part)
        if self._left == 0 and self._is_chunked and await self._line():
            raise BrokenAnswer("a chunk of the answer has the wrong length")
        return part

    async def read_body(self, request: Request) -> bytes:
        """The whole body, at most as much as the request allows."""
        body = bytearray()
        while part := await self.read():
            body += part
            exchange.check_size(request, self._status, len(body))
        return bytes(body)

    async def _line(self) -> bytes:
        return (await self._reader.readuntil(b"\r\n")).removesuffix(b"\r\n")


def number_in(text: str, base: int) -> int:
    """A number of an answer; `int` alone takes signs and underscores."""
    if not text.isascii() or not text.isalnum() or len(text) > 16:
        raise BrokenAnswer("the answer has a number that can't be read")
    try:
        return int(text, base)
    except ValueError:
        raise BrokenAnswer("the answer has a number that can't be read") from None


async def within(deadline: float, work: Coroutine[Any, Any, T]) -> T:
    """Does some work before a deadline."""
    return await asyncio.wait_for(work, max(0.0, deadline - time.monotonic()))


def fault_of(fault: BaseException) -> Fault:
    return exchange.fault_of(fault, isinstance(fault, (TimeoutError, asyncio.TimeoutError)))
