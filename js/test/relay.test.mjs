// `Relay` against a real relay.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CrosstalkError } from "../src/error.js";
import { Relay } from "../src/relay.js";
import { ECHO, RelayServer, freePort, waitFor } from "./relay-server.mjs";

function question(overrides = {}) {
  return {
    sender: "KALLE",
    receiver: "ANN",
    user: "kalle",
    context: "api design",
    intent: "REQUEST",
    body: "Which endpoint stays?",
    ...overrides,
  };
}

function envelope(id, body) {
  return `[[KALLE→ANN v1]]\nuser: kalle\nthread: ${id}-thread\nmessage: ${id}\ncontext: c\nintent: BROADCAST\nbody: |\n  ${body}\nsig: none\n[[END]]\n`;
}

/** The error of a promise that has to fail. */
async function failure(promise) {
  const error = await promise.then(() => assert.fail("it did not fail"), (reason) => reason);
  assert.ok(error instanceof CrosstalkError, `${error}`);
  return error;
}

/** The first messages of a stream. */
async function first(count, stream) {
  const messages = [];
  for await (const message of stream) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

test("a message as an object is accepted, waited for, read and acknowledged", async (t) => {
  const server = await RelayServer.start(t, ECHO);
  const relay = new Relay(server.url);

  const sent = await relay.send(question({ receiver: "claude://code/api" }), { wait: 50 });
  assert.equal(sent.schema, "crosstalk.receive/1");
  assert.equal(sent.ack.intent.meaning, "ACK");
  assert.equal(sent.answer.body, "Claude has read: Which endpoint stays?");
  assert.equal(sent.answer.parent, sent.ack.parent);

  const inbox = await relay.inbox("KALLE", { wait: 50 });
  assert.deepEqual(inbox.messages.map((m) => m.id), [sent.answer.message]);
  assert.match(inbox.messages[0].envelope, /Claude has read: Which endpoint stays\?/);

  const read = await relay.read(sent.ack.parent);
  assert.equal(read.from, "KALLE");
  const thread = await relay.thread(sent.ack.thread);
  assert.deepEqual(thread.messages.map((m) => m.id), [sent.ack.parent]);
  assert.deepEqual(thread.messages[0].answers.map((m) => m.id), [sent.answer.message]);

  const done = await relay.acknowledge("KALLE", [sent.answer.message, "NO-SUCH-ID"]);
  assert.deepEqual(done, { changed: [sent.answer.message], unknown: ["NO-SUCH-ID"] });
  const empty = await relay.inbox("KALLE", { after: inbox.cursor });
  assert.deepEqual(empty.messages, []);
  assert.deepEqual(await relay.acknowledge("KALLE", []), { changed: [], unknown: [] });
});

test("a text is accepted as it is, and once however often it comes", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(`${server.url}/`);
  const text = envelope("M1", "A text.");
  const one = await relay.send(text);
  const two = await relay.send(text);
  assert.deepEqual(two, one);
  assert.equal(one.answer, null);
  assert.equal(one.ack.parent, "M1");
  const { messages } = await relay.inbox("ANN", { limit: 5 });
  assert.equal(messages.length, 1);
  assert.ok(messages[0].envelope.includes("A text."));
});

test("an answer is sent to the message that it names", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const waiting = relay.send(question(), { wait: 50 });
  const { messages } = await relay.inbox("ANN", { wait: 50 });
  const { id, thread } = messages[0];
  const answer = question({ sender: "ANN", receiver: "KALLE", user: "ann", intent: "RESPOND", thread, parent: id, body: "v2" });
  await relay.send(answer);
  assert.equal((await waiting).answer.body, "v2");
  // Without a parent it has no id either, and is the same message when it comes again.
  const old = question({ sender: "ANN", receiver: "KALLE", intent: "ANSWER", session: "2025-10-09T16Z abc123", body: "v2" });
  const one = await relay.send(old);
  assert.deepEqual(await relay.send(old), one);
});

test("intents that need a parent are those of the registry", () => {
  const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
  const [, list] = /INTENTS_WITH_PARENT = (\[.*?\])/s.exec(read("../src/relay.js"));
  const entries = read("../../spec/registry/intents.toml").split("\n[[").map((entry) => ({
    name: /^name = "(.*)"/m.exec(entry)?.[1],
    meaning: /^meaning = "(.*)"/m.exec(entry)?.[1],
    needsParent: /^needs_parent = true/m.test(entry),
  }));
  const needing = entries.filter((entry) => entry.needsParent).map((entry) => entry.name);
  const legacy = entries.filter((entry) => needing.includes(entry.meaning)).map((entry) => entry.name);
  assert.ok(needing.length > 2 && legacy.length > 0);
  assert.deepEqual(JSON.parse(list).sort(), [...needing, ...legacy].sort());
});

test("a wait goes on when the relay restarts", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const waiting = relay.send(question(), { wait: 100 });
  const { messages } = await relay.inbox("ANN", { wait: 50 });
  await server.restart();
  await relay.send(question({ sender: "ANN", receiver: "KALLE", intent: "RESPOND", thread: messages[0].thread, parent: messages[0].id, body: "v2" }));
  assert.equal((await waiting).answer.body, "v2");
  assert.equal((await relay.inbox("ANN")).messages.length, 1);
});

test("a rejection says what happened, what to do, and by which rule", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const missing = await failure(relay.send({ sender: "KALLE" }));
  assert.equal(missing.code, "E-FORMAT");
  assert.equal(missing.status, 400);
  assert.match(missing.message, /has no `receiver`/);
  assert.match(missing.help, /send one JSON object/);
  const bad = await failure(relay.send("hello"));
  assert.deepEqual([bad.code, bad.rule, bad.line, bad.temporary], ["E-FORMAT", "ENV-010", 1, false]);
  assert.equal((await failure(relay.read("NO-SUCH-ID"))).code, "E-ROUTE");
  assert.equal((await failure(relay.inbox("ANN", { after: "no cursor" }))).code, "E-FORMAT");
  assert.equal((await failure(relay.inbox("ANN", { wait: -1 }))).code, "E-FORMAT");
  assert.equal((await failure(first(1, relay.stream("ANN", { after: "nocursor" })))).code, "E-FORMAT");
});

test("a relay with tokens rejects others with 401", async (t) => {
  const server = await RelayServer.start(t);
  const token = server.createToken("ann", "person", "ANN", "KALLE");
  await waitFor("the token to count", async () => (await fetch(`${server.url}/crosstalk/inbox?for=ANN`)).status === 401);
  for (const relay of [new Relay(server.url), new Relay(server.url, { token: `${token}x` })]) {
    for (const request of [() => relay.inbox("ANN"), () => relay.send(question()), () => first(1, relay.stream("ANN"))]) {
      const error = await failure(request());
      assert.deepEqual([error.code, error.status, error.temporary], ["E-PERM", 401, false]);
    }
  }
  const relay = new Relay(server.url, { token: `${token}\n` });
  await relay.send(question());
  assert.equal((await relay.inbox("ANN")).messages.length, 1);
  assert.equal((await failure(relay.inbox("BOB"))).status, 403);
});

test("a request over the limit is tried again after Retry-After", async (t) => {
  const server = await RelayServer.start(t, "[limits]\nlocal_requests_per_minute = 60\n");
  const exhaust = async () => {
    for (let count = 0; count < 500; count += 1) {
      const response = await fetch(`${server.url}/crosstalk/inbox?for=ANN`, { headers: { Accept: "application/json" } });
      if (response.status === 429) return;
    }
    assert.fail("there is no limit");
  };
  await exhaust();
  const error = await failure(new Relay(server.url, { retryFor: 0 }).inbox("ANN"));
  assert.deepEqual([error.code, error.status, error.temporary], ["E-RATE", 429, true]);
  assert.ok(error.retryAfter >= 1, `${error.retryAfter}`);
  await exhaust();
  // A minute's budget is empty: the relay may want more time than the default.
  const sent = await new Relay(server.url, { retryFor: 90 }).send(question());
  assert.equal((await new Relay(server.url).inbox("ANN")).messages[0].id, sent.ack.parent);
});

test("attachments are uploaded and downloaded, and checked", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const bytes = crypto.getRandomValues(new Uint8Array(60_000));
  const { digest, size } = await relay.upload(bytes);
  assert.equal(size, bytes.length);
  assert.deepEqual(await relay.download(digest), bytes);
  assert.deepEqual(await relay.upload(bytes.buffer), { digest, size });
  assert.deepEqual(await relay.upload(new Blob([bytes])), { digest, size });
  const text = await relay.upload("grüße");
  assert.equal(new TextDecoder().decode(await relay.download(text.digest)), "grüße");
  assert.equal((await failure(relay.download(digest, { maxBytes: 100 }))).code, "E-TOO-LARGE");
  assert.equal((await failure(relay.download(`sha256:${"0".repeat(64)}`))).status, 404);
});

test("a stream gives what was there and what comes, each once", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  await relay.send(envelope("M1", "one"));
  const stream = relay.stream("ANN");
  assert.equal((await stream.next()).value.id, "M1");
  const next = stream.next();
  await relay.send(envelope("M2", "two"));
  const { value } = await next;
  assert.equal(value.id, "M2");
  await stream.return();
  await relay.send(envelope("M3", "three"));
  const [third] = await first(1, relay.stream("ANN", { after: value.cursor }));
  assert.equal(third.id, "M3");
});

test("a large message comes through a stream", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const body = "0123456789 grüße\n".repeat(30_000);
  await relay.send(question({ body }));
  const [message] = await first(1, relay.stream("ANN"));
  assert.ok(message.envelope.includes(body.trim().replaceAll("\n", "\n  ")));
});

test("a signal ends every kind of request with its reason", async (t) => {
  const server = await RelayServer.start(t);
  const relay = new Relay(server.url);
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  const reason = new Error("enough");
  const requests = [
    (signal) => relay.send(question(), { wait: 50, signal }),
    (signal) => relay.inbox("NOBODY", { wait: 50, signal }),
    (signal) => first(1, relay.stream("NOBODY", { signal })),
    // Pauses between attempts end too.
    (signal) => new Relay(nowhere, { retryFor: Infinity }).inbox("ANN", { signal }),
  ];
  for (const request of requests) {
    const controller = new AbortController();
    const ended = request(controller.signal).then(() => "it went on", (error) => error);
    setTimeout(() => controller.abort(reason), 300);
    assert.equal(await ended, reason);
    await assert.rejects(request(AbortSignal.abort(reason)), reason);
  }
});

test("a relay that is not there is an error after some time", async () => {
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  for (const request of [(relay) => relay.inbox("ANN"), (relay) => first(1, relay.stream("ANN"))]) {
    const error = await failure(request(new Relay(nowhere, { retryFor: 1 })));
    assert.deepEqual([error.code, error.temporary], ["E-ROUTE", true]);
    assert.match(error.message, /cannot be reached: ECONNREFUSED/);
  }
});

test("a malformed URL or token is rejected at once", () => {
  for (const url of ["", "relay.example", "ftp://relay.example", "http://ann:secret@relay.example", "http://relay.example/?x", "http://relay.example/#x"]) {
    assert.throws(() => new Relay(url), { name: "CrosstalkError", code: "E-FORMAT" });
  }
  for (const token of ["", "xt_a b", "xt_ä"]) {
    assert.throws(() => new Relay("http://127.0.0.1:1", { token }), { name: "CrosstalkError", code: "E-PERM" });
  }
  assert.equal(new Relay("https://relay.example/base").url, "https://relay.example/base/");
});
