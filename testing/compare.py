#!/usr/bin/env python3
"""Compares two builds of `crosstalk`: every exit code and JSON output of the transcripts, and every HTTP answer.

    python3 testing/compare.py OLD NEW [--tree FOLDER]

Both programs play the transcripts of FOLDER (a checkout of the older version) and answer the same requests as relays. Ids,
times, digests, keys and signatures are replaced by numbers, in the order in which they appear. Sentences for people are left
out of the comparison unless --wording is given. Equal differences are printed once, with the number of places; the exit status
is 1 if there are any.
"""

import argparse
import hashlib
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

# Commands that only read: each is also run with --json.
READERS = {
    "address", "canonical", "explain", "inbox", "lint", "parse", "search", "show", "status", "threads", "verify", "waiting",
}
READERS_OF_GROUPS = {
    ("audit", "trace"), ("config", "show"), ("consent", "list"), ("consent", "show"), ("key", "list"), ("key", "show"),
    ("poll", "status"), ("relay", "list"), ("token", "list"), ("trust", "list"), ("trust", "check"),
}
CHANGING = [
    ("session", re.compile(r"\b20\d\d-\d\d-\d\dT\d\dZ [a-z0-9]{6}\b")),
    ("ulid", re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")),
    ("digest", re.compile(r"\b(?:sha256:)?[0-9a-f]{64}\b")),
    ("time", re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z")),
    ("date", re.compile(r"\b20\d\d-\d\d-\d\d\b")),
    ("key", re.compile(r"\b(?:xt_|z6Mk|SHA256:)[A-Za-z0-9+/_-]{20,}=*")),
    ("blob", re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{43,}={0,2}")),
    ("short", re.compile(r"…[0-9A-HJKMNP-TV-Z]{4,12}\b")),
    ("fingerprint", re.compile(r"\b\d{5}(?: \d{5}){7}\b")),
    ("port", re.compile(r"127\.0\.0\.1:\d+")),
]


# Sentences for people, which may be reworded.
SENTENCES = {"detail", "help", "hint", "message", "next", "reason", "sentence", "title", "what"}
# What a relay does a moment later.
LATER = {"last_used_at", "state"}


class Normal:
    """Replaces what differs from run to run by numbers, in the order in which it appears."""

    def __init__(self, folder):
        self.folder, self.seen = str(folder), {}

    def text(self, text):
        text = text.replace(self.folder, "[FOLDER]")
        for kind, pattern in CHANGING:
            text = pattern.sub(lambda m, kind=kind: self.name(kind, m.group()), text)
        return text

    def name(self, kind, found):
        if kind in ("time", "date"):
            return f"[{kind}]"
        number = self.seen.setdefault((kind, found), len([1 for k, _ in self.seen if k == kind]))
        return f"[{kind} {number}]"


def as_json(text):
    """The JSON of an output, if it is one: a document, or one on each line."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()] or None
    except ValueError:
        return None


def commands(transcript):
    """The commands of a transcript."""
    found, lines = [], transcript.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("$ "):
            command = line[2:]
            for more in lines[number + 1:]:
                if not more.startswith("> "):
                    break
                command += "\n" + more[2:]
            found.append(command)
    return found


def with_json(command):
    """The command with --json, if it only reads."""
    words = shlex.split(command)
    if "crosstalk" not in words or "--json" in words or "--help" in words or "|" in words:
        return None
    rest = [w for w in words[words.index("crosstalk") + 1:] if not w.startswith("-")]
    reads = rest and (rest[0] in READERS or tuple(rest[:2]) in READERS_OF_GROUPS)
    return f"{command} --json" if reads and "<" not in words else None


class Program:
    """One of the two builds, with a folder of its own."""

    def __init__(self, binary, root, name):
        self.root = pathlib.Path(root) / name
        self.bin = self.root / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "crosstalk").symlink_to(pathlib.Path(binary).resolve())
        self.begin("none", None)

    def begin(self, name, files):
        # The folders of both programs have names of the same length: some texts are wrapped.
        self.folder = self.root / name
        shutil.rmtree(self.folder, ignore_errors=True)
        if files is not None and files.is_dir():
            shutil.copytree(files, self.folder)
        else:
            self.folder.mkdir(parents=True)
        for key in self.folder.rglob("*.pem"):
            key.chmod(0o600)
        self.normal = Normal(self.folder)

    def environment(self):
        keep = {k: v for k, v in os.environ.items() if not k.startswith("CROSSTALK_")}
        return keep | {"PATH": f"{self.bin}:{keep['PATH']}", "CROSSTALK_HOME": "home", "HOME": str(self.folder), "NO_COLOR": "1"}

    def run(self, command):
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, errors="replace",
        )
        value = as_json(done.stdout)
        shown = None if value is None else as_json(self.normal.text(json.dumps(value, ensure_ascii=False)))
        return {"exit code": done.returncode, "output": shown}


def differences(old, new, wording, path=""):
    """Where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in list(old) + [k for k in new if k not in old]:
            if key in LATER or key in SENTENCES and not wording:
                # Only whether it is there counts.
                old, new = ({**side, key: "(present)"} if key in side else side for side in (old, new))
            yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), wording, f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new)):
            yield from differences(*pair, wording, f"{path}[]")
    elif old != new:
        yield f"{path or 'value'}: {str(old)[:300]!r} → {str(new)[:300]!r}"


class Report:
    """Differences, each with the places where it was seen."""

    def __init__(self, wording):
        self.wording, self.found = wording, {}

    def compare(self, where, old, new):
        for line in differences(old, new, self.wording):
            self.found.setdefault(line, []).append(where)

    def print(self):
        for line, places in self.found.items():
            more = f"  (and {len(places) - 1} more)" if len(places) > 1 else ""
            print(f"{line}\n    {places[0]}{more}")


def compare_commands(old, new, tree, report):
    played = 0
    folder = tree / "crates/crosstalk-cli/tests/cmd"
    pages = [(p, p.with_suffix(".in")) for p in sorted(folder.glob("*.md"))]
    pages.append((tree / "docs/cli.md", folder / "examples"))
    for page, files in pages:
        for program in (old, new):
            program.begin(page.stem, files)
        for command in commands(page):
            for variant in filter(None, (command, with_json(command))):
                report.compare(f"{page.stem}: $ {variant}", old.run(variant), new.run(variant))
                played += 1
    return played


def envelope(sender, receiver, intent, body, number, headers="", meta=""):
    return (
        f"[[{sender}→{receiver} v1]]\nuser: kalle\nthread: 01J9J3D3M6A4M3WQX8G1ZQ0S7K\n"
        f"{headers}message: 01J9J3D3M6A4M3WQX8G1ZQ{number:04d}\ncontext: compare\nintent: {intent}\n\n{meta}"
        f"body: |\n  {body}\nsig: none\n[[END]]\n"
    )


CONFIG = """
[[route]]
to = "BROTHER"
by = "copy_paste"

[[agent]]
address = "claude://code/api"
capabilities = ["review"]

[[hold]]
why = "the boss decides"
to = ["human://boss@example.org"]
"""


def shape(value):
    """The keys and types of a JSON value."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items() if key != "detail"}
    if isinstance(value, list):
        return sorted({json.dumps(shape(item)) for item in value})
    return type(value).__name__


def without_sentences(lines):
    """An envelope without its body, if it is an ERROR; every other text as it is."""
    if "intent: ERROR" in lines and "body: |" in lines:
        return [line for line in lines[:lines.index("body: |")] if not line.startswith("Reason: ")]
    return lines


class Relay:
    """A relay of one of the builds, with tokens of four roles."""

    def __init__(self, program):
        self.program = program
        program.begin("relay", None)
        (program.folder / "relay.toml").write_text(CONFIG)
        for name, role, addresses in [
            ("kalle", "person", "KALLE human://kalle@example.org human://boss@example.org"), ("code", "agent", "claude://code/api"),
            ("root", "admin", "'*'"),
        ]:
            made = subprocess.run(
                ["sh", "-c", f"crosstalk token create {name} --role {role} --for {addresses} --data data"],
                cwd=program.folder, env=program.environment(), capture_output=True, text=True, check=True,
            )
            setattr(self, name, made.stdout.strip())
        self.log = open(program.folder / "log", "w+")
        self.process = subprocess.Popen(
            [program.bin / "crosstalk", "serve", "--config", "relay.toml", "--data", "data", "--listen", "127.0.0.1:0"],
            cwd=program.folder, env=program.environment(), stdout=self.log, stderr=subprocess.STDOUT,
        )
        self.port = self.wait_for_port()

    def wait_for_port(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.search(r"127\.0\.0\.1:(\d+)", (self.program.folder / "log").read_text())
            if found:
                return int(found.group(1))
            time.sleep(0.05)
        sys.exit("the relay did not start:\n" + (self.program.folder / "log").read_text())

    def ask(self, method, path, token=None, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = "Bearer " + (getattr(self, token, token))
        connection.request(method, path, body=body.encode() if isinstance(body, str) else body, headers=sent)
        answer = connection.getresponse()
        content = answer.read()
        text = content.decode(errors="replace")
        shown = {k.lower(): v for k, v in answer.getheaders() if k.lower() not in ("date", "content-length", "etag")}
        # Numbered anew for each answer: an id more in one of them would change the numbers of all that follow.
        text = Normal(self.program.folder).text(text)
        value = as_json(text) if "json" in shown.get("content-type", "") else None
        if value is None:
            value = without_sentences(text.splitlines())
        # The log is written by several tasks at once: the order of its entries is another one in each run.
        value = shape(value) if path.startswith("/crosstalk/audit/") else value
        return {"status": answer.status, "headers": shown, "body": value}

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def flow():
    """Requests in an order in which they make sense: method, path, token, body, headers."""
    text, js = {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}
    ident = "01J9J3D3M6A4M3WQX8G1ZQ{:04d}".format
    receive = "/crosstalk/receive"
    poll = (
        'meta: routing\nTargets: ["claude://code/api"]\n\n'
        'meta: poll\nOptions: ["red", "green"]\nDeadline: 2090-01-01T00:00:00Z\n\n'
    )
    consent = (
        "meta: privacy\nScope: medical\nConsent: explicit_yes_2025-10-09T16:00:00Z\nConsent-ID: c-1\n"
        "Expires: 2090-01-01T00:00:00Z\n\n"
    )
    blob = b"an attachment"
    digest = "sha256:" + hashlib.sha256(blob).hexdigest()
    messages = [
        envelope("KALLE", "claude://code/api", "REQUEST", "Which endpoint stays?", 1),
        envelope("KALLE", "claude://code/api", "REQUEST", "Which endpoint stays?", 1),
        envelope("KALLE", "claude://code/api", "REQUEST", "Other words under the same id.", 1),
        envelope("KALLE", "nobody://known", "REQUEST", "Hello?", 2),
        envelope("KALLE", "human://boss@example.org", "REQUEST", "May I?", 3),
        envelope("KALLE", "BROTHER", "REQUEST", "By hand.", 4),
        envelope("KALLE", "claude://code/api", "POLL", "Which color?", 5, meta=poll),
        envelope("KALLE", "claude://code/api", "REQUEST", "With consent.", 6, meta=consent),
        envelope("SYSTEM", "KALLE", "ERROR", "Not a relay.", 7),
        envelope("KALLE", "claude://code/api", "HANDOFF", "Take over.", 8, meta='meta: routing\nX-Capabilities-Required: ["review"]\n\n'),
        envelope("KALLE", "claude://code/api", "CLOSE", "Done.", 9),
        envelope("KALLE", "claude://code/api", "REQUEST", "Too late.", 10),
        "hello", "", "[[A→B v1]]\nuser: x\n[[END]]\n",
    ]
    for message in messages:
        yield "POST", receive, "kalle", message, text
        yield "POST", receive, "kalle", message, text | {"Accept": "application/json"}
    yield "POST", receive, "kalle", "".join(messages[:3]), {"Content-Type": "application/vnd.crosstalk.batch"}
    yield "POST", receive, None, messages[0], text
    yield "POST", receive, "wrong", messages[0], text
    yield "POST", receive, "code", messages[0], text
    yield "POST", receive, "kalle", messages[0], {"Content-Type": "image/png"}
    yield "POST", receive, "kalle", b"\xff\xfe", text
    answer = envelope("claude://code/api", "KALLE", "RESPOND", "The first.", 20, headers=f"parent: {ident(1)}\n")
    yield "POST", receive, "code", answer, text
    yield "PUT", f"/crosstalk/blobs/{digest}", "kalle", blob, {"Content-Type": "application/octet-stream"}
    yield "PUT", f"/crosstalk/blobs/{digest}", "kalle", b"other", {"Content-Type": "application/octet-stream"}
    reads = ["/", "/healthz", "/readyz", "/crosstalk/inbox", "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fapi", "/crosstalk/inbox?limit=0",
             "/crosstalk/inbox?after=x", "/crosstalk/inbox?for=X", "/crosstalk/inbox?nonsense=1", "/crosstalk/threads",
             "/crosstalk/threads?limit=1", "/crosstalk/threads?open=true", "/crosstalk/threads?with=KALLE",
             "/crosstalk/threads/01J9J3D3M6A4M3WQX8G1ZQ0S7K", "/crosstalk/threads/unknown", "/crosstalk/search?q=endpoint",
             "/crosstalk/search", "/crosstalk/search?q=%22", "/crosstalk/resolve?name=BROTHER",
             "/crosstalk/resolve?name=claude%3A%2F%2Fcode%2Fapi",
             "/crosstalk/resolve", "/crosstalk/agents", "/crosstalk/approvals", f"/crosstalk/approvals/{ident(3)}", "/crosstalk/courier",
             "/crosstalk/polls", f"/crosstalk/polls/{ident(5)}", "/crosstalk/polls/unknown", "/crosstalk/dead", "/crosstalk/tokens",
             "/crosstalk/consents", "/crosstalk/consents?by=X", "/crosstalk/consents/c-1", "/crosstalk/consents/unknown",
             "/crosstalk/audit/checkpoint", "/crosstalk/audit/key", "/crosstalk/audit/inclusion?index=0&size=2",
             "/crosstalk/audit/inclusion", "/crosstalk/audit/consistency?from=1&to=2", "/crosstalk/audit/consistency?from=9999&to=1",
             "/crosstalk/audit/entries", "/crosstalk/audit/entries?kind=nonsense", "/crosstalk/audit/entries?limit=2&newest=true",
             f"/crosstalk/blobs/{digest}", "/crosstalk/blobs/none", "/nowhere", "/crosstalk/receive"]
    for number in (1, 3, 4, 99):
        reads += [f"/crosstalk/messages/{ident(number)}{part}" for part in ("", "/status", "/receipt")]
    for path in reads:
        for token in (None, "kalle", "code", "root", "wrong"):
            for accept in ("*/*", "application/json", "text/plain", "text/markdown", "text/html"):
                yield "GET", path, token, None, {"Accept": accept}
    for path in sorted({p.split("?")[0] for p in reads}):
        for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
            if not (path == "/crosstalk/receive" and method == "POST"):
                yield method, path, "code", "{}" if method in ("POST", "PUT") else None, js
    for body in ('{"ids": []}', '{"ids": ["x"]}', json.dumps({"ids": [ident(1)]}), json.dumps({"ids": [ident(1)], "state": "odd"}), "{"):
        yield "POST", "/crosstalk/ack", "code", body, js
    refuse = '{"decision": "refuse", "reason": "No.", "raw": "x", "canonical": "y"}'
    for body in ('{}', '{"decision": "odd"}', '{"decision": "refuse"}', refuse):
        yield "POST", f"/crosstalk/approvals/{ident(3)}", "root", body, js
    for body in ('{"state": "odd"}', '{"state": "carried"}', '{"state": "carried"}'):
        yield "POST", f"/crosstalk/courier/{ident(4)}", "root", body, js
    for body in ('{"name": "a b", "role": "agent", "addresses": ["X"]}', '{"name": "new", "role": "odd", "addresses": ["X"]}',
                 '{"name": "new", "role": "agent", "addresses": []}', '{"name": "new", "role": "agent", "addresses": ["X"]}',
                 '{"name": "new", "role": "agent", "addresses": ["X"]}', '{"name": "m", "role": "agent", "addresses": ["human://x"]}'):
        yield "POST", "/crosstalk/tokens", "root", body, js
    yield "DELETE", "/crosstalk/tokens/new", "root", None, {}
    yield "DELETE", "/crosstalk/tokens/new", "root", None, {}
    yield "PUT", "/crosstalk/agents", "code", '{"address": "claude://code/api", "capabilities": ["review"]}', js
    yield "PUT", "/crosstalk/agents", "code", '{"address": "claude://other", "capabilities": []}', js
    yield "POST", f"/crosstalk/polls/{ident(5)}/close", "code", None, {}
    yield "POST", f"/crosstalk/polls/{ident(5)}/close", "kalle", None, {}
    yield "POST", "/crosstalk/dead/unknown/requeue", "root", None, {}


def compare_answers(old, new, report):
    relays = [Relay(old), Relay(new)]
    asked = 0
    try:
        for method, path, token, body, headers in flow():
            before, after = (r.ask(method, path, token, body, headers) for r in relays)
            accept = headers.get("Accept") or headers.get("Content-Type") or ""
            report.compare(f"{method} {path} ({token or 'no token'}, {accept}) {str(body or '')[:60]!r}", before, after)
            asked += 1
    finally:
        for relay in relays:
            relay.stop()
    return asked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--only", choices=["commands", "answers"])
    parser.add_argument("--wording", action="store_true", help="compare sentences for people too")
    options = parser.parse_args()
    report = Report(options.wording)
    with tempfile.TemporaryDirectory() as root:
        programs = Program(options.old, root, "old"), Program(options.new, root, "new")
        if options.only != "answers":
            print(compare_commands(*programs, options.tree, report), "commands")
        if options.only != "commands":
            print(compare_answers(*programs, report), "HTTP requests")
    report.print()
    print(len(report.found), "kinds of differences")
    sys.exit(1 if report.found else 0)


if __name__ == "__main__":
    main()
