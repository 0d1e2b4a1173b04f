// `Relay` against servers that break connections, answer slowly or are no relays.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readEvents } from "../src/events.js";
import { Relay } from "../src/relay.js";

/** A server whose answers are those of a list, one for each request; the requests as they came. */
async function serve(test, answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const answer = answers[requests.length] ?? answers.at(-1);
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    answer(response, request);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

const hangUp = (response) => response.destroy();
const reply = (status, body, headers = {}) => (response) => response.writeHead(status, headers).end(body);
const json = (value) => reply(200, JSON.stringify(value), { "Content-Type": "application/json" });
const rejection = (status, error, headers) => reply(status, JSON.stringify({ error }), headers);
const events = (text, end) => (response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write(text, () => end?.(response));
};

const EMPTY = { messages: [], cursor: "c0" };
const ACCEPTED = { schema: "crosstalk.receive/1", ack: { parent: "M1" }, answer: null };
const MESSAGE = { sender: "KALLE", receiver: "ANN", user: "kalle", context: "c", intent: "REQUEST", body: "Ready?" };

test("every attempt to send has the same bytes", async (t) => {
  const busy = { code: "E-RATE", what: "Busy.", help: null };
  const server = await serve(t, [hangUp, rejection(503, busy, { "Retry-After": "0" }), reply(502, "<html>"), json(ACCEPTED)]);
  assert.deepEqual(await new Relay(server.url, { token: "xt_1" }).send(MESSAGE), ACCEPTED);
  assert.equal(server.requests.length, 4);
  const [{ body }] = server.requests;
  const sent = JSON.parse(body);
  assert.match(sent.thread, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.match(sent.message, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  assert.notEqual(sent.thread, sent.message);
  for (const request of server.requests) {
    assert.equal(request.body, body);
    assert.equal(request.headers.authorization, "Bearer xt_1");
  }
  const now = Number.parseInt(Array.from(sent.message.slice(0, 10), (c) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(c).toString(32)).join(""), 32);
  assert.ok(Math.abs(now - Date.now()) < 60_000, "the id begins with the time");
});

test("ids of the message stay, and a session stands for a thread", async (t) => {
  const server = await serve(t, [json(ACCEPTED)]);
  const relay = new Relay(server.url);
  await relay.send({ ...MESSAGE, thread: "T1", message: "M1" });
  await relay.send({ ...MESSAGE, session: "2025-10-09T16Z abc123", intent: { written: "ANSWER", meaning: "RESPOND" } });
  await relay.send({ ...MESSAGE, intent: "RESPOND", thread: "T1", parent: "M1" });
  const [one, two, three] = server.requests.map((request) => JSON.parse(request.body));
  assert.deepEqual([one.thread, one.message], ["T1", "M1"]);
  assert.deepEqual([two.thread, two.message], [undefined, undefined]);
  assert.equal(three.thread, "T1");
  assert.equal(three.message.length, 26);
});

test("a request is tried again for a bounded time", async (t) => {
  const server = await serve(t, [hangUp]);
  await assert.rejects(new Relay(server.url, { retryFor: 0 }).inbox("ANN"), { code: "E-ROUTE", temporary: true });
  assert.equal(server.requests.length, 1);
  await assert.rejects(new Relay(server.url, { retryFor: 1 }).inbox("ANN"), { code: "E-ROUTE", temporary: true });
  assert.ok(server.requests.length > 2, `${server.requests.length}`);
});

test("a relay that wants more time than the caller has is not waited for", async (t) => {
  const busy = { code: "E-RATE", what: "Busy.", help: null };
  const server = await serve(t, [rejection(503, busy, { "Retry-After": "31" })]);
  await assert.rejects(new Relay(server.url).inbox("ANN"), { status: 503, retryAfter: 31, temporary: true });
  assert.equal(server.requests.length, 1);
});

test("a rejection is one line of visible text", async (t) => {
  const server = await serve(t, [rejection(400, { code: "E-FORMAT", what: "wait\u0007\n\u001b[2J", help: "later\r\n", rule: 3 })]);
  const wanted = { message: "wait\\u{7} \\u{1B}[2J", help: "later", rule: null, temporary: false };
  await assert.rejects(new Relay(server.url).inbox("ANN"), wanted);
});

test("an answer that is no stream of events ends a stream", async (t) => {
  const server = await serve(t, [reply(200, "<html>", { "Content-Type": "text/html" })]);
  await assert.rejects(new Relay(server.url).stream("ANN").next(), { code: "E-ROUTE", message: /not a stream of events/ });
  assert.equal(server.requests.length, 1);
});

test("a rejection for good is not repeated", async (t) => {
  const late = { code: "E-TIMEOUT", what: "Too late.", help: "Send a new message.", rule: "HTP-022" };
  for (const [answer, wanted] of [
    [rejection(400, { code: "E-FORMAT", detail: "Bad.", line: 3, column: 7 }), { code: "E-FORMAT", message: "Bad.", line: 3, column: 7 }],
    [rejection(504, late), { code: "E-TIMEOUT", rule: "HTP-022", help: "Send a new message.", temporary: false }],
    [rejection(429, { code: "E-RATE", what: "Later." }, { "Retry-After": "3600" }), { code: "E-RATE", retryAfter: 3600 }],
    [reply(404, "<html>"), { code: "E-ROUTE", status: 404, temporary: false }],
    [reply(301, "", { Location: "https://elsewhere.example/" }), { code: "E-ROUTE", message: /redirects/ }],
    [reply(200, "<html>"), { code: "E-ROUTE", message: /not JSON/ }],
  ]) {
    const server = await serve(t, [answer]);
    await assert.rejects(new Relay(server.url).inbox("ANN"), { name: "CrosstalkError", ...wanted });
    assert.equal(server.requests.length, 1, `${wanted.code} ${wanted.message}`);
  }
});

test("an answer of the wrong shape is an error", async (t) => {
  for (const body of ["null", "[]", "{}", '"x"', '{"messages": 3, "cursor": null, "id": 3}']) {
    const server = await serve(t, [reply(200, body)]);
    const relay = new Relay(server.url);
    const calls = [
      () => relay.send("text"),
      () => relay.inbox("ANN"),
      () => relay.acknowledge("ANN", "M1"),
      () => relay.read("M1"),
      () => relay.thread("T1"),
      () => relay.upload("x"),
    ];
    for (const call of calls) await assert.rejects(call(), { name: "CrosstalkError", code: "E-ROUTE", temporary: false });
    const event = await serve(t, [events(`data: ${body}\n\n`)]);
    await assert.rejects(new Relay(event.url).stream("ANN").next(), { name: "CrosstalkError", code: "E-ROUTE" });
  }
});

test("a stream does not flood a server that ends it at once", async (t) => {
  const server = await serve(t, [events("retry: 0\nid: c1\n\n", (response) => response.end())]);
  const controller = new AbortController();
  const reading = new Relay(server.url).stream("ANN", { signal: controller.signal }).next();
  setTimeout(() => controller.abort(), 1000);
  await assert.rejects(reading);
  // The pauses are 0.125, 0.25, 0.5 seconds and more.
  assert.ok(server.requests.length <= 5, `${server.requests.length} requests`);
});

test("the limit of a download hides no rejection", async (t) => {
  const server = await serve(t, [rejection(404, { code: "E-ROUTE", what: "There is no such attachment.", help: null })]);
  const relay = new Relay(server.url);
  await assert.rejects(relay.download("sha256:0", { maxBytes: 3 }), { status: 404, message: "There is no such attachment." });
  for (const maxBytes of [Infinity, NaN, -1, "3"]) await assert.rejects(relay.download("sha256:0", { maxBytes }), { name: "CrosstalkError" });
});

test("an id that a browser would take for a folder is an error", async (t) => {
  const server = await serve(t, [json({ id: "M1" })]);
  const relay = new Relay(server.url);
  for (const id of ["", ".", "..", "\ud800", undefined]) {
    for (const call of [() => relay.read(id), () => relay.thread(id), () => relay.download(id)]) await assert.rejects(call(), { name: "CrosstalkError", code: "E-FORMAT" });
  }
  assert.equal(server.requests.length, 0);
});

test("an answer that never ends is too large", async (t) => {
  const endless = (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const chunk = "x".repeat(1 << 20);
    const write = () => response.writable && response.write(chunk, write);
    write();
  };
  const server = await serve(t, [endless]);
  await assert.rejects(new Relay(server.url).read("M1"), { code: "E-TOO-LARGE" });
  const stream = new Relay(server.url).stream("ANN");
  await assert.rejects(stream.next(), { code: "E-TOO-LARGE" });
});

test("bytes that are not those of the digest are rejected", async (t) => {
  const server = await serve(t, [reply(200, "other bytes")]);
  await assert.rejects(new Relay(server.url).download(`sha256:${"0".repeat(64)}`), { code: "E-FORMAT" });
});

test("a stream that breaks within an event goes on after the last whole one", async (t) => {
  const event = (id) => `event: message\nid: c${id}\ndata: {"id":"M${id}"}\n\n`;
  const server = await serve(t, [
    events(`retry: 1\n: crosstalk\n\n${event(1)}${event(2).slice(0, -3)}`, hangUp),
    hangUp,
    reply(503, ""),
    events(`${event(2)}id: c2b\n\n`, (response) => response.end()),
    events(event(3)),
  ]);
  const seen = [];
  for await (const message of new Relay(server.url, { retryFor: 0 }).stream("ANN", { after: "c0" })) {
    seen.push([message.id, message.cursor]);
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, [["M1", "c1"], ["M2", "c2"], ["M3", "c3"]]);
  const asked = server.requests.map((request) => new URL(request.url, server.url).searchParams.get("after"));
  assert.deepEqual(asked, ["c0", "c1", "c1", "c1", "c2b"]);
});

test("a wait is made of parts, and goes on after the relay has accepted the message", async (t) => {
  const ack = reply(200, JSON.stringify(ACCEPTED), { "Preference-Applied": "wait=60" });
  const answered = { ...ACCEPTED, answer: { body: "Yes." } };
  const server = await serve(t, [ack, hangUp, json(answered)]);
  const relay = new Relay(server.url, { retryFor: 0 });
  assert.deepEqual(await relay.send(MESSAGE, { wait: 300 }), answered);
  assert.deepEqual(server.requests.map((request) => request.headers.prefer), ["wait=60", "wait=60", "wait=60"]);
  // A message that nobody answers is not waited for.
  const other = await serve(t, [json(ACCEPTED)]);
  assert.deepEqual(await new Relay(other.url).send(MESSAGE, { wait: 300 }), ACCEPTED);
  assert.equal(other.requests.length, 1);
});

test("an inbox is asked again until the time is over", async (t) => {
  const full = { messages: [{ id: "M1" }], cursor: "c1" };
  const server = await serve(t, [json(EMPTY), json(full)]);
  assert.deepEqual(await new Relay(server.url).inbox("a b&c", { after: "c0", limit: 7, wait: 90 }), full);
  const asked = "/crosstalk/inbox?for=a+b%26c&after=c0&limit=7&wait=60";
  assert.deepEqual(server.requests.map((request) => request.url), [asked, asked]);
});

test("many ids are acknowledged in several requests", async (t) => {
  const server = await serve(t, [json({ changed: ["a"], unknown: [] }), json({ changed: [], unknown: ["b"] })]);
  const ids = Array.from({ length: 501 }, (_, at) => `M${at}`);
  assert.deepEqual(await new Relay(server.url).acknowledge("ANN", new Set(ids)), { changed: ["a"], unknown: ["b"] });
  const asked = server.requests.map((request) => JSON.parse(request.body));
  assert.deepEqual(asked.map((one) => one.ids.length), [500, 1]);
  assert.deepEqual(asked.flatMap((one) => one.ids), ids);
});

test("a signal ends what was open for long", async (t) => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc");
  const silent = await serve(t, [() => {}]);
  const open = await serve(t, [events(": still here\n\n")]);
  const reason = new Error("enough");
  for (const [server, request] of [
    [silent, (signal) => new Relay(silent.url).inbox("ANN", { wait: 50, signal })],
    [open, (signal) => new Relay(open.url).stream("ANN", { signal }).next()],
  ]) {
    const controller = new AbortController();
    const ended = assert.rejects(request(controller.signal), reason);
    for (let count = 0; count < 10 || server.requests.length === 0; count += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      collectGarbage();
    }
    controller.abort(reason);
    await ended;
  }
});

test("events are read however they are cut", async () => {
  const text = ': hello\n\nevent: message\r\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\n\nevent:other\ndata:ü\nretry: 5\nretry: x\n\ndata: cut';
  const bytes = new TextEncoder().encode(text);
  const wanted = [
    { type: "message", id: "7", data: '{"a":\n1}', retry: undefined },
    { type: "message", id: "8", data: "", retry: undefined },
    { type: "other", id: undefined, data: "ü", retry: 5 },
  ];
  for (const step of [1, 2, 3, 7, bytes.length]) {
    const chunks = (async function* () {
      for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
    })();
    const got = [];
    for await (const event of readEvents(chunks, 100)) got.push(event);
    assert.deepEqual(got, wanted, `${step}`);
  }
  const endless = (async function* () {
    for (;;) yield new TextEncoder().encode("data: 12345\n");
  })();
  await assert.rejects(readEvents(endless, 100).next(), { code: "E-TOO-LARGE" });
});
