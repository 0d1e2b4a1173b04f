"""A relay in a scratch folder, and both clients behind one interface."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ai_crosstalk import AsyncInboxStream, AsyncRelay, InboxMessage, Relay

ROOT = Path(__file__).parents[2]
BINARY = Path(os.environ.get("CROSSTALK_BINARY", ROOT / "target/debug/crosstalk"))
LIMIT_SECONDS = 60.0
"""How long something may take on a busy machine."""
UNCHECKED = ssl._create_unverified_context()
ECHO = """
[[route]]
to = "claude://*"
by = "exec"
command = ["sed", "s/^/Claude has read: /"]
input = "body"
"""
"""A configuration with an agent that answers."""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {LIMIT_SECONDS} s")
        time.sleep(0.01)


def free_port() -> int:
    """A port on which nobody listens, below those that systems give to outgoing connections.

    Otherwise a client that tries to reach a stopped relay could be given the port of the relay.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # Somebody listens there.


def scratch_environment(folder: Path) -> dict[str, str]:
    """An environment in which no variable and no file of the person who runs the tests counts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSTALK_", "XDG_"))}
    return {**kept, "HOME": str(folder)}


class ScratchRelay:
    """`crosstalk serve` on a port of its own; it keeps port and data when it is started again."""

    def __init__(self, config: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crosstalk-python-")
        self.folder = Path(self._folder.name)
        self.port = free_port()
        self.url = f"{'https' if '[tls]' in config else 'http'}://127.0.0.1:{self.port}"
        (self.folder / "relay.toml").write_text(config)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ScratchRelay:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        command = [BINARY, "serve", "--data", "data", "--listen", f"127.0.0.1:{self.port}", "--config", "relay.toml"]
        with open(self.folder / "relay.log", "ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=scratch_environment(self.folder), stdout=subprocess.DEVNULL, stderr=log
            )
        wait_for(self.is_ready, "the relay is ready")

    def is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError("the relay ended:\n" + (self.folder / "relay.log").read_text()[-2000:])
        try:
            # Whether the certificate is good is for the tests to say.
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=UNCHECKED) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(LIMIT_SECONDS)
            self._process = None

    def restart(self, by: signal.Signals = signal.SIGTERM) -> None:
        self.stop(by)
        self.start()

    def token(self, name: str, *addresses: str) -> str:
        """Creates the token of an agent."""
        command = [BINARY, "token", "create", name, "--role", "agent", "--data", "data"]
        command += [word for address in addresses for word in ("--for", address)]
        done = subprocess.run(command, cwd=self.folder, env=scratch_environment(self.folder), capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.strip()


class Awaited:
    """An `AsyncRelay` with the methods of a `Relay`, on an event loop in a thread of its own."""

    def __init__(self, url: str, token: str | None = None, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.relay = AsyncRelay(url, token, **options)

    def __enter__(self) -> Awaited:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.relay.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.relay, name)
        return lambda *words, **options: self.wait(method(*words, **options))

    def wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def stream(self, address: str, *, after: str | None = None) -> AwaitedStream:
        return AwaitedStream(self, self.relay.stream(address, after=after))


class AwaitedStream(Iterator[InboxMessage]):
    """An `AsyncInboxStream` as an iterator."""

    def __init__(self, client: Awaited, stream: AsyncInboxStream) -> None:
        self._client = client
        self._stream = stream

    @property
    def cursor(self) -> str | None:
        return self._stream.cursor

    def __next__(self) -> InboxMessage:
        async def next_message() -> InboxMessage | None:
            return await anext(self._stream, None)

        message: InboxMessage | None = self._client.wait(next_message())
        if message is None:
            raise StopIteration
        return message

    def close(self) -> None:
        self._client.loop.call_soon_threadsafe(self._stream.close)


CLIENTS: tuple[Callable[..., Any], ...] = (Relay, Awaited)
