// `cargo xtask bench js`: what reading, writing and verifying cost in JavaScript, as ratios within one run.
//
// Beside the package: the v1.0 reader of the tests, a v1.0 writer, JSON with a check against a schema (`ajv`), and the bare
// signature check of WebCrypto.

import Ajv from "ajv";
import { build, canonical, generateKey, parse, ready, sign, verify } from "../../js/dist/index.js";
import { readV1 } from "../../js/test/v1-reader.mjs";
import { measure } from "./measure.mjs";

const isQuick = process.argv.includes("--quick");
const LIMITS = isQuick ? { rounds: 3, roundMs: 2 } : { rounds: 100, roundMs: 4 };
const SIZES = [300, 1024, 4 * 1024, 64 * 1024];
const KEY_ID = "kalle@example.com";
const LINE = "The second version of the endpoint keeps its name and its parameters.";

await ready();

/** A message whose envelope has about this many bytes. */
function messageOf(bytes) {
  const lines = Math.max(1, Math.round((bytes - 230) / (LINE.length + 3)));
  return {
    sender: "CLAUDE",
    receiver: "chatgpt://thread/xyz789",
    user: "kalle",
    session: "2025-10-09T16Z abc123",
    thread: "01K74V6R0074G0T7MAHPXVDNXW",
    message: "01K74V6VX0S86Z5JATM52C3M7Z",
    context: "api design",
    intent: "REQUEST",
    meta: { routing: { "X-Priority": "high" } },
    body: Array(lines).fill(LINE).join("\n"),
  };
}

/** The same message as JSON, with the rules that a schema can express. */
const isMessage = new Ajv().compile({
  type: "object",
  required: ["sender", "receiver", "user", "session", "thread", "message", "context", "intent", "meta", "body"],
  additionalProperties: false,
  properties: {
    sender: { type: "string", minLength: 1, maxLength: 2000 },
    receiver: { type: "string", minLength: 1, maxLength: 2000 },
    user: { type: "string", pattern: "^[^\\u0000-\\u001f]+$" },
    session: { type: "string", pattern: "^[^\\u0000-\\u001f]+$" },
    thread: { type: "string", maxLength: 200 },
    message: { type: "string", maxLength: 200 },
    context: { type: "string", pattern: "^[^\\u0000-\\u001f]+$" },
    intent: { enum: ["REQUEST", "RESPOND", "ESCALATE", "HANDOFF", "POLL", "ACK", "NACK", "ERROR", "BROADCAST", "REVOKE", "CLOSE"] },
    meta: { type: "object", additionalProperties: { type: "object", additionalProperties: { type: "string" } } },
    body: { type: "string", maxLength: 1 << 20 },
  },
});

/** Writes an envelope as a v1.0 program does. */
function writeV1({ sender, receiver, user, session, context, intent, body }) {
  const lines = body.trim().split("\n").map((line) => `  ${line}`).join("\n");
  return `[[${sender}→${receiver} v1]]\nuser: ${user}\nsession: ${session}\ncontext: ${context}\nintent: ${intent}\nbody: |\n${lines}\nsig: none\n[[END]]\n`;
}

function requireTrue(condition, what) {
  if (!condition) throw new Error(`the benchmark is wrong: ${what}`);
}

function report(title, times, floor) {
  console.log(`\n${title}`);
  for (const [name, time] of Object.entries(times)) {
    console.log(`  ${name.padEnd(34)} ${time.toFixed(2).padStart(9)} µs ${(time / times[floor]).toFixed(2).padStart(8)} × ${floor}`);
  }
}

const goals = [];
function goal(what, ratio, limit) {
  goals.push(`${ratio <= limit ? "✓" : "✗"} ${what}: ${ratio.toFixed(2)} (goal: at most ${limit})`);
}

for (const size of SIZES) {
  const message = messageOf(size);
  const text = build(message);
  const json = JSON.stringify(message);
  const name = `${(size / 1024).toFixed(size < 1024 ? 1 : 0)} KB`;
  const [read] = parse(text, { reading: "strict" }).envelopes;
  requireTrue(read.body === message.body && read.session === message.session, "the package reads something else");
  requireTrue(readV1(text).body === message.body, "the v1.0 reader reads something else");
  requireTrue(isMessage(JSON.parse(json)), "the schema rejects the message");

  const reading = await measure(
    {
      "parse, strict": () => parse(text, { reading: "strict" }),
      "parse, paste": () => parse(text, { reading: "paste" }),
      "v1.0 reader": () => readV1(text),
      "JSON.parse + ajv": () => isMessage(JSON.parse(json)),
    },
    LIMITS,
  );
  report(`read ${name} (envelope ${Buffer.byteLength(text)} bytes, JSON ${Buffer.byteLength(json)})`, reading, "v1.0 reader");
  if (size >= 1024) goal(`parse ${name}, strict ÷ v1.0 reader`, reading["parse, strict"] / reading["v1.0 reader"], 1);

  const writing = await measure(
    {
      build: () => build(message),
      "v1.0 writer": () => writeV1(message),
      "ajv + JSON.stringify": () => isMessage(message) && JSON.stringify(message),
    },
    LIMITS,
  );
  report(`write ${name}`, writing, "v1.0 writer");

  const { privateKeyPem, record } = generateKey();
  const signed = sign(text, privateKeyPem, { keyId: KEY_ID });
  const keys = [{ id: KEY_ID, key: record }];
  // A valid signature over as many bytes as ours covers, with a key of WebCrypto's own.
  const bytes = canonical(signed);
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const signature = await crypto.subtle.sign("Ed25519", pair.privateKey, bytes);
  requireTrue([verify(signed, { keys })].flat()[0].verdict === "verified", "the package does not verify the message");
  requireTrue(await crypto.subtle.verify("Ed25519", pair.publicKey, signature, bytes), "WebCrypto does not verify the bytes");
  const verifying = await measure(
    {
      verify: () => verify(signed, { keys }),
      "WebCrypto, bare": () => crypto.subtle.verify("Ed25519", pair.publicKey, signature, bytes),
    },
    { rounds: LIMITS.rounds / 2, roundMs: LIMITS.roundMs },
  );
  report(`verify ${name}`, verifying, "WebCrypto, bare");
  goal(`verify ${name} ÷ WebCrypto's bare check`, verifying.verify / verifying["WebCrypto, bare"], 1.5);
}

console.log(`\n${goals.join("\n")}`);
