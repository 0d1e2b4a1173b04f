"""`cargo xtask bench python`: the Python package beside libraries that Python programs use, as ratios within one run.

Rounds are interleaved, and of each subject the best round counts, because other work on the machine only ever adds to a time.
"""

from __future__ import annotations

import email
import email.policy
import json
import sys
import time
from collections.abc import Callable
from typing import Literal, Optional

import ai_crosstalk as crosstalk
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from pydantic import BaseModel, TypeAdapter

IS_QUICK = "--quick" in sys.argv
ROUNDS = 3 if IS_QUICK else 60
ROUND_SECONDS = 0.002 if IS_QUICK else 0.004
PARAGRAPH = "We store the refresh token in a cookie that is marked HttpOnly and Secure, with SameSite=Lax. "


class Intent(BaseModel):
    written: str
    meaning: str


class Header(BaseModel):
    name: str
    value: str


class Field(BaseModel):
    key: str
    value: str


class Block(BaseModel):
    namespace: str
    fields: list[Field]


class Message(BaseModel):
    """The same message as JSON."""

    sender: str
    receiver: str
    version: Literal["v1"]
    user: Optional[str]
    session: Optional[str]
    thread: Optional[str]
    parent: Optional[str]
    message: Optional[str]
    context: Optional[str]
    intent: Optional[Intent]
    headers: list[Header]
    meta: list[Block]
    body: str
    sig: Optional[str]


def measure(subjects: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds for one run of each subject."""
    counts = {name: runs_within(run) for name, run in subjects.items()}
    best = {name: float("inf") for name in subjects}
    for _ in range(ROUNDS):
        for name, run in subjects.items():
            count = counts[name]
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / count * 1e6)
    return best


def runs_within(run: Callable[[], object]) -> int:
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            run()
        if time.perf_counter() - start >= ROUND_SECONDS:
            return count
        count *= 2


def table(title: str, times: dict[str, float]) -> None:
    floor = next(iter(times.values()))
    print(f"\n{title}")
    for name, micros in times.items():
        print(f"  {name:<44}{micros:>10.1f} µs{micros / floor:>9.2f} ×")


def envelope(size: int) -> str:
    """An envelope of about this many bytes."""
    lines = max(1, (size - 500) // (len(PARAGRAPH) + 3))
    return crosstalk.build(
        {
            "sender": "CLAUDE",
            "receiver": "CHATGPT",
            "user": "kalle",
            "session": "2025-10-09T16Z abc123",
            "parent": "01J9J3D9C2V8M4P1R6S8T9V0W1",
            "context": "token-refresh",
            "intent": "REQUEST",
            "meta": {
                "routing": {"X-Reply-To": "claude://session/abc123", "X-Priority": "high"},
                "privacy": {"PII": "redacted", "Consent": "explicit_yes_2025-10-09T16:00Z"},
            },
            "body": "\n".join([PARAGRAPH.strip()] * lines),
        }
    )


def mail_of(message: crosstalk.Envelope) -> str:
    """The same message as mail."""
    fields = [(f"X-{field['key']}", field["value"]) for block in message["meta"] for field in block["fields"]]
    head = [
        ("From", "claude@example.com"),
        ("To", "chatgpt@example.com"),
        ("Subject", message["context"]),
        ("Message-ID", f"<{message['message']}@example.com>"),
        ("In-Reply-To", f"<{message['parent']}@example.com>"),
        ("Date", "Thu, 09 Oct 2025 16:00:00 +0000"),
        ("Content-Type", "text/plain; charset=utf-8"),
        *fields,
    ]
    return "\n".join(f"{name}: {value}" for name, value in head) + "\n\n" + message["body"]


def read_mail(mail: str) -> tuple[object, ...]:
    message = email.message_from_string(mail, policy=email.policy.default)
    return message["From"], message["To"], message["Subject"], message["Message-ID"], message.get_content()


def bench_reading(size: int) -> None:
    text = envelope(size)
    [message] = crosstalk.parse(text, "strict")["envelopes"]
    form = json.dumps(message, ensure_ascii=False)
    mail = mail_of(message)
    adapter = TypeAdapter(Message)
    sizes = f"envelope {len(text.encode())} bytes, JSON {len(form.encode())}, mail {len(mail.encode())}"
    table(
        f"reading one message: {sizes}",
        measure(
            {
                "parse, strict": lambda: crosstalk.parse(text, "strict"),
                "parse, paste": lambda: crosstalk.parse(text),
                "email.message_from_string": lambda: read_mail(mail),
                "json.loads + pydantic": lambda: adapter.validate_python(json.loads(form)),
                "pydantic alone (validate_json)": lambda: adapter.validate_json(form),
            }
        ),
    )


def bench_verifying(size: int) -> None:
    text = envelope(size)
    key = crosstalk.generate_key()
    signed = crosstalk.sign(text, key["private_key_pem"], key_id=key["did"])
    bare = load_pem_public_key(key["public_key_pem"].encode())
    private = load_pem_private_key(key["private_key_pem"].encode(), None)
    assert isinstance(bare, Ed25519PublicKey)
    signed_bytes = crosstalk.canonical(signed)
    signature = private.sign(signed_bytes)  # type: ignore[union-attr,call-arg]
    assert crosstalk.verify(signed)["verdict"] == "verified"
    table(
        f"verifying one message of {len(signed.encode())} bytes",
        measure(
            {
                "bare ed25519 (cryptography)": lambda: bare.verify(signature, signed_bytes),
                "verify": lambda: crosstalk.verify(signed, at="2026-01-01T00:00:00Z"),
                "sign": lambda: crosstalk.sign(text, key["private_key_pem"], key_id=key["did"]),
                "bare ed25519 signature (cryptography)": lambda: private.sign(signed_bytes),  # type: ignore[union-attr,call-arg]
            }
        ),
    )


if __name__ == "__main__":
    for bytes_of_message in (1 << 10, 16 << 10, 256 << 10):
        bench_reading(bytes_of_message)
    for bytes_of_message in (1 << 10, 16 << 10):
        bench_verifying(bytes_of_message)
