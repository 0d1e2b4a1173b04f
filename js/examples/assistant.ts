// An assistant that answers the questions to an address until it is told to stop: `bun assistant.ts URL ADDRESS`.

import { parse, Relay, reply, type InboxMessage } from "ai-crosstalk";

declare const process: { argv: string[] };

const [, , url = "http://127.0.0.1:8799", address = "ANN"] = process.argv;
const relay = new Relay(url);
const stop = new AbortController();

async function answer({ id, intent, envelope: text }: InboxMessage): Promise<void> {
  const [envelope] = parse(text).envelopes;
  const body = envelope?.body ?? "";
  // Two assistants that answer answers would never end.
  if (intent === "REQUEST") await relay.send(reply(text, `You wrote ${body.length} characters.`));
  await relay.acknowledge(address, id);
  if (body === "stop") stop.abort();
}

try {
  for await (const message of relay.stream(address, { signal: stop.signal })) await answer(message);
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
console.log("stopped");
