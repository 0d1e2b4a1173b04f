// A v1.0 program that gets our v1.1 envelopes: the same direction, session and body.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build, generateKey, parse, ready, reply, sign } from "../dist/index.js";
import { loadSuite, readCases } from "./conformance.mjs";
import { readV1 } from "./v1-reader.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The ops of cases whose output an implementation writes. */
const WRITING = ["build", "reply", "sign", "migrate", "fmt"];

let suite;

before(async () => {
  await ready();
  suite = await loadSuite();
});

/** The texts of the files with an ending, by path. */
function filesOf(folder, ending) {
  const names = readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => name.endsWith(ending));
  return names.map((name) => [join(folder, name), readFileSync(join(ROOT, folder, name), "utf8")]);
}

/** The one strict envelope that a text is, as the package reads it; nothing if it is none. */
function strictly(text) {
  const { envelopes, errors } = parse(text, { reading: "strict" });
  return envelopes.length === 1 && errors.length === 0 ? envelopes[0] : undefined;
}

/** Why a v1.0 program cannot read an envelope as we do; nothing if it can. Each is a limit of v1.0, or is written by others. */
function limitOf(text, { session, body, body_name: mark }) {
  if (session == null) return "it has a thread and no session";
  if (!/^\[\[[^→\n]+→/.test(text)) return "its arrow is not →";
  if (mark === "response") return "a v1.0 response has no sig line";
  if (/(^|\s)sig:/.test(body)) return "its body has a word sig:";
  if (/^(body|response)\b(?!: \|$)/m.test(text)) return "its body mark is not as we write it";
  return undefined;
}

function check(name, text, envelope) {
  const read = readV1(text);
  const ours = { from: envelope.sender, to: envelope.receiver, version: "1", session: envelope.session, body: envelope.body.trim() };
  assert.deepEqual(read, ours, name);
}

test("the examples of the spec and the envelopes of the cases are read as we read them", async (t) => {
  const texts = [];
  for (const [path, text] of filesOf("spec", ".md")) {
    for (const [, example] of text.matchAll(/^```crosstalk.*\n([^]*?)^```/gm)) texts.push([path, example]);
  }
  const { levels, files } = await readCases();
  for (const [id, text] of Object.entries(files)) {
    const file = new TextEncoder().encode(text);
    const { op, reading, expect, output, encoding, escaped = "" } = JSON.parse(suite.case_head(levels, id, file));
    // A strict envelope that a case has as its input is as good as one that it writes.
    const isStrictInput = op === "parse" && reading === "strict" && expect === "accept";
    const hasOutput = text.includes("\n=== output\n") && output === undefined;
    if (!isStrictInput && !(hasOutput && WRITING.includes(op))) continue;
    // What needs escapes is about characters or sizes that v1.0 says nothing about.
    if (isStrictInput ? encoding !== undefined : escaped.includes("output")) continue;
    const section = suite.case_section(id, file, isStrictInput ? "input" : "output");
    texts.push([id, new TextDecoder().decode(section)]);
  }
  let same = 0;
  const limits = {};
  for (const [path, text] of texts) {
    const envelope = strictly(text);
    if (envelope === undefined) continue;
    const limit = limitOf(text, envelope);
    if (limit === undefined) {
      check(path, text, envelope);
      same += 1;
    } else {
      limits[limit] = (limits[limit] ?? 0) + 1;
    }
  }
  assert.ok(same >= 250, `only ${same} envelopes`);
  t.diagnostic(`${same} envelopes; not read: ${JSON.stringify(limits)}`);
});

test("every part of v1.1 leaves direction, session and body alone", () => {
  const { privateKeyPem } = generateKey();
  const base = { sender: "CLAUDE", receiver: "chatgpt://thread/xyz789", user: "kalle", session: "2025-10-09T16Z abc123", context: "api design", intent: "REQUEST" };
  const bodies = ["One line.", "Two\nlines.", "A blank line\n\n  an indented one\n\nthe end", "- a: b\n- body: |\n  [[END]]", "Grüße, 你好 👋", "a → b"];
  const ids = { thread: "01K74V6R0074G0T7MAHPXVDNXW", message: "01K74V6VX0S86Z5JATM52C3M7Z" };
  const meta = { routing: { "X-Priority": "high" }, consent: { Consent: "explicit_yes", Scope: "session" } };
  for (const body of bodies) {
    for (const extra of [{}, ids, { ...ids, parent: "01K74V6R0074G0T7MAHPXVDNXW" }, { meta }, { ...ids, meta }]) {
      const text = build({ ...base, ...extra, body });
      const signed = sign(text, privateKeyPem, { keyId: "kalle@example.com" });
      const withKey = sign(text, privateKeyPem, { keyId: "kalle@example.com", withKey: true });
      for (const one of [text, signed, withKey, reply(text, body)]) {
        const envelope = strictly(one);
        assert.equal(envelope.body, body);
        check(one, one, envelope);
      }
    }
  }
});
