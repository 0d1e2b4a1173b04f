// A relay that restarts again and again beside a sender and a reader: nothing is lost, nothing comes twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay } from "../src/relay.js";
import { RelayServer, waitFor } from "./relay-server.mjs";

const RESTARTS = Number(process.env.CROSSTALK_RESTARTS ?? (process.env.CROSSTALK_TEST_FULL === undefined ? 5 : 50));

test(`nothing is lost or shown twice in ${RESTARTS} restarts of the relay`, async (t) => {
  const server = await RelayServer.start(t);
  const sent = [];
  const seen = [];
  let isOver = false;

  const sender = (async () => {
    const relay = new Relay(server.url, { retryFor: 120 });
    while (!isOver) {
      const body = `message ${sent.length}`;
      const { ack } = await relay.send({ sender: "KALLE", receiver: "ANN", user: "kalle", context: "c", intent: "BROADCAST", body });
      sent.push(ack.parent);
    }
  })();
  const stopReading = new AbortController();
  const reader = (async () => {
    for await (const message of new Relay(server.url).stream("ANN", { signal: stopReading.signal })) {
      seen.push(message.id);
    }
  })().catch((error) => {
    if (!stopReading.signal.aborted) throw error;
  });

  const restarts = (async () => {
    for (let count = 0; count < RESTARTS; count += 1) {
      const [before, shown] = [sent.length, seen.length];
      await waitFor("messages between two restarts", () => sent.length > before && seen.length > shown);
      // Every other time it has no chance to finish anything.
      await server.restart(count % 2 === 0 ? "SIGKILL" : "SIGTERM");
    }
    isOver = true;
    await sender;
    await waitFor(() => `the last of ${sent.length} messages, ${seen.length} were shown`, () => new Set(seen).size >= sent.length);
  })();
  await Promise.race([restarts, reader]);
  stopReading.abort();
  await reader;

  assert.equal(new Set(sent).size, sent.length, "the relay accepted a message twice");
  assert.deepEqual(seen, [...new Set(seen)], "a message was shown twice");
  assert.deepEqual([...seen].sort(), [...sent].sort());
  // One message was sent once, whatever happened to its connection.
  const kept = new Set();
  for (let after; ; ) {
    const page = await new Relay(server.url).inbox("ANN", { after, limit: 500 });
    if (page.messages.length === 0) break;
    for (const message of page.messages) kept.add(message.id);
    after = page.cursor;
  }
  assert.equal(kept.size, sent.length);
  t.diagnostic(`${sent.length} messages in ${RESTARTS} restarts`);
});
