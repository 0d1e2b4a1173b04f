// What a program does with a relay, in a few steps, for every runtime: `node relay-smoke.mjs URL`, `deno run -A`, `bun`. It uses no
// module of Node.js, so that a browser runs it too.

import { Relay } from "../src/relay.js";

/** Throws unless the client does everything; the relay at the URL has an agent for `claude://`. */
export async function smoke(url) {
  const relay = new Relay(url);
  const name = `SMOKE-${crypto.randomUUID()}`;
  const message = { sender: name, receiver: "claude://code/api", user: "kalle", context: "c", intent: "REQUEST", body: "Grüße →" };

  const { ack, answer } = await relay.send(message, { wait: 60 });
  require(answer?.body === "Claude has read: Grüße →" && answer.parent === ack.parent, "the answer to the message");
  const stream = relay.stream(name);
  const { value } = await stream.next();
  require(value.id === answer.message, "the answer in the stream");
  await stream.return();
  const done = await relay.acknowledge(name, value.id);
  require(done.changed[0] === value.id, "the acknowledgement");
  require((await relay.thread(ack.thread)).messages[0].answers.length === 1, "the thread");

  const bytes = crypto.getRandomValues(new Uint8Array(50_000));
  const { digest } = await relay.upload(bytes);
  const back = await relay.download(digest);
  require(back.length === bytes.length && back.every((byte, at) => byte === bytes[at]), "the attachment");

  const controller = new AbortController();
  const reason = new Error("enough");
  setTimeout(() => controller.abort(reason), 300);
  const ended = await relay.stream(name, { after: value.cursor, signal: controller.signal }).next().catch((error) => error);
  require(ended === reason, `the end by a signal, not ${ended}`);
  const rejected = await relay.send("no envelope").catch((error) => error);
  require(rejected.name === "CrosstalkError" && rejected.rule === "ENV-010", "the rejection");
}

function require(condition, what) {
  if (!condition) throw new Error(`the client lacks ${what}`);
}

const url = globalThis.Deno?.args[0] ?? globalThis.process?.argv[2];
if (url?.startsWith("http")) {
  await smoke(url);
  console.log("ok");
}
