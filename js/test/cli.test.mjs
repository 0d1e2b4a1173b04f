// `npx ai-crosstalk` behaves like the first public program, `envelope.js`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const EXAMPLE = new URL("../config.example.json", import.meta.url);
const WARNING = /^Warning: no config\.json in this folder; copy config\.example\.json to config\.json to set the names\.\n/;
const SESSION = /^session: \d{4}-\d{2}-\d{2}T\d{2}Z [0-9a-f]{6}$/m;

/** A working folder that ends with the test. */
function folder(test, config) {
  const path = mkdtempSync(join(tmpdir(), "crosstalk-cli-"));
  test.after(() => rmSync(path, { recursive: true }));
  if (config !== undefined) writeFileSync(join(path, "config.json"), config);
  return path;
}

function run(cwd, args, { input = "", node = [], env = {} } = {}) {
  const clean = { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, [...node, CLI, ...args], { cwd, input, env: clean, encoding: "utf8" });
  return { status, stdout, stderr };
}

/** The output of `send` with a session that does not change. */
const fixed = (text) => text.replace(SESSION, "session: S");

test("send writes the envelope and nothing else", (t) => {
  const cwd = folder(t, readFileSync(EXAMPLE));
  const { status, stdout, stderr } = run(cwd, ["send", "--body", " Which one?\n\n  indented\n", "--colour", "--context", "api design", "--intent", "QUESTION"]);
  assert.match(stdout, SESSION);
  const wanted = "[[CLAUDE→BROTHER v1]]\nuser: kalle\nsession: S\ncontext: api design\nintent: QUESTION\nbody: |\n  Which one?\n  \n    indented\nsig: none\n[[END]]\n";
  assert.deepEqual([status, fixed(stdout), stderr], [0, wanted, ""]);
  const again = run(cwd, ["send", "--body", "x", "--context", "c", "--intent", "NOTE"]);
  assert.notEqual(SESSION.exec(again.stdout)[0], SESSION.exec(stdout)[0]);
});

test("send takes the body from standard input, any intent, and an empty body", (t) => {
  const cwd = folder(t, "{}");
  const piped = run(cwd, ["send", "--context", "--body", "--body", "-", "--intent", "any words"], { input: "unused" });
  // The value is the next argument, whatever it is.
  assert.equal(fixed(piped.stdout), "[[undefined→undefined vundefined]]\nuser: undefined\nsession: S\ncontext: --body\nintent: any words\nbody: |\n  --body\nsig: none\n[[END]]\n");
  const read = run(cwd, ["send", "--context", "c", "--intent", "note", "--body", "-"], { input: "\n one\ntwo \n\n" });
  assert.match(read.stdout, /\nbody: \|\n  one\n  two\nsig: none\n\[\[END\]\]\n$/);
  const empty = run(cwd, ["send", "--context", "c", "--intent", "NOTE", "--body", ""]);
  assert.match(empty.stdout, /\nbody: \|\n  \nsig: none\n/);
});

test("a wrong call prints its fault on stderr and ends with exit code 1", (t) => {
  const cwd = folder(t, "{}");
  const sendUsage = "Usage: envelope.js send --context <context> --intent <intent> --body <body|->\n";
  for (const [args, wanted] of [
    [[], "Usage: envelope.js <send|parse>\n"],
    [["--help"], "Usage: envelope.js <send|parse>\n"],
    [["receive"], "Usage: envelope.js <send|parse>\n"],
    [["send"], sendUsage],
    [["send", "--context", "c", "--intent", "NOTE"], sendUsage],
    [["send", "--context", "c", "--intent", "NOTE", "--body"], sendUsage],
    [["send", "--context", "c\n[[END]]", "--intent", "NOTE", "--body", "b"], "Error: only the body may have several lines.\n"],
  ]) {
    assert.deepEqual(run(cwd, args), { status: 1, stdout: "", stderr: wanted });
  }
});

test("the configuration is that of the working folder", (t) => {
  const none = folder(t);
  const warned = run(none, ["send", "--context", "c", "--intent", "NOTE", "--body", "b"]);
  assert.match(warned.stderr, WARNING);
  assert.match(warned.stdout, /^\[\[AI-A→AI-B v1\]\]\nuser: human\n/);
  const usage = run(none, []);
  assert.match(usage.stderr, WARNING);
  assert.match(usage.stderr, /\nUsage: envelope\.js <send\|parse>\n$/);
  for (const text of ["{", "null"]) {
    const { status, stdout, stderr } = run(folder(t, text), ["parse"]);
    assert.deepEqual([status, stdout], [1, ""]);
    assert.match(stderr, /^Error loading config: /);
  }
});

test("on macOS the envelope is copied", (t) => {
  const cwd = folder(t, "{}");
  const copied = join(cwd, "copied");
  const pbcopy = join(cwd, "pbcopy");
  const darwin = ["--import", 'data:text/javascript,Object.defineProperty(process,"platform",{value:"darwin"})'];
  const send = (env) => run(cwd, ["send", "--context", "c", "--intent", "NOTE", "--body", "b"], { node: darwin, env });
  writeFileSync(pbcopy, `#!/bin/sh\ncat > '${copied}'\n`);
  chmodSync(pbcopy, 0o755);
  const { stdout, stderr } = send({ PATH: `${cwd}${delimiter}${process.env.PATH}` });
  assert.equal(stderr, "✓ Copied to clipboard\n");
  assert.equal(`${readFileSync(copied, "utf8")}\n`, stdout);
  const without = send({ PATH: "/nowhere" });
  assert.deepEqual([without.status, without.stderr], [0, "Warning: pbcopy failed; nothing is in the clipboard.\n"]);
});

const REQUEST = "[[AI-A→AI-B v1]]\nuser: human\nsession: 2026-11-16T19Z c93374\ncontext: api\nintent: QUESTION\nbody: |\n  Hello\n  \n    indented\n  end\nsig: none\n[[END]]\n";
const ANSWER = "[[AI-B→AI-A v1]]\nsession: 2026-11-16T19Z c93374\nresponse: |\n  Yes.\n  \n  Two lines.\n[[END]]\n";

test("parse prints the direction, the session and the text", (t) => {
  const cwd = folder(t, "{}");
  const answer = "From: AI-B → AI-A (v1)\nSession: 2026-11-16T19Z c93374\nResponse:\nYes.\n\nTwo lines.\n";
  const request = "From: AI-A → AI-B (v1)\nSession: 2026-11-16T19Z c93374\nResponse:\nHello\n\n  indented\nend\n";
  for (const [input, wanted] of [
    [ANSWER, answer],
    [`Sure!\n\`\`\`\n${ANSWER}\`\`\`\nBye.`, answer],
    [`${ANSWER}\n${REQUEST}`, answer],
    [REQUEST, request],
    [REQUEST.replaceAll("\n", "\r\n"), request],
    [ANSWER.replaceAll("\n", " "), "From: AI-B → AI-A (v1)\nSession: 2026-11-16T19Z c93374\nResponse:\nYes.      Two lines.\n"],
    [REQUEST.replace(/intent:.*\n/, ""), request],
  ]) {
    assert.deepEqual(run(cwd, ["parse", "ignored.txt"], { input }), { status: 0, stdout: wanted, stderr: "" });
  }
});

test("parse says what it could not find", (t) => {
  const cwd = folder(t, "{}");
  const [head, body] = ["missing header or session", "missing response or body content"];
  for (const [input, wanted] of [
    ["", `Invalid envelope format: ${head}`],
    ["hello", `Invalid envelope format: ${head}`],
    [REQUEST.replace(/session:.*\n/, ""), `Invalid envelope format: ${head}`],
    ["[[A→B v1]]\nsession: S 1\n[[END]]\n", `Invalid envelope format: ${body}`],
  ]) {
    assert.deepEqual(run(cwd, ["parse"], { input }), { status: 1, stdout: "", stderr: `Error: ${wanted}\n` });
  }
});

test("parse reads what the old program could not", (t) => {
  const cwd = folder(t, "{}");
  const thread = REQUEST.replace(/session:.*/, "thread: T1\nmessage: M1").replace("QUESTION", "REQUEST");
  assert.match(run(cwd, ["parse"], { input: thread }).stdout, /\nThread: T1\nResponse:\n/);
  assert.match(run(cwd, ["parse"], { input: REQUEST.replace("→", "->") }).stdout, /^From: AI-A → AI-B \(v1\)\n/);
  assert.match(run(cwd, ["parse"], { input: REQUEST.replace("Hello", "The sig: line") }).stdout, /\nThe sig: line\n/);
  const hostile = run(cwd, ["parse"], { input: REQUEST.replace("Hello", "\x1b[31mHello\x07") });
  assert.doesNotMatch(hostile.stdout, /[\x00-\x09\x0b-\x1f]/);
});

test("parse reads what the old program reads and the rules do not allow", (t) => {
  const cwd = folder(t, '{ "user": "k", "sender": "A", "receiver": "B", "version": "2" }');
  const sent = run(cwd, ["send", "--context", "c", "--intent", "NOTE", "--body", "Hello\n  there"]);
  const read = run(cwd, ["parse"], { input: sent.stdout });
  assert.deepEqual([read.status, read.stderr], [0, ""]);
  assert.match(read.stdout, /^From: A → B \(v2\)\nSession: .*\nResponse:\nHello\n {2}there\n$/);
  const long = "x".repeat(100_000);
  for (const [input, wanted] of [
    [REQUEST.replace("Hello", long), `${long}\n\n  indented\nend\n`],
  ]) {
    const { status, stdout } = run(cwd, ["parse"], { input });
    assert.deepEqual([status, stdout.slice(stdout.indexOf("Response:\n") + 10)], [0, wanted]);
  }
});

test("colours are for terminals", (t) => {
  const cwd = folder(t, "{}");
  const coloured = run(cwd, ["parse"], { input: ANSWER, env: { FORCE_COLOR: "1" } });
  assert.match(coloured.stdout, /^\x1b\[1mFrom:\x1b\[22m AI-B/);
  const plain = run(cwd, ["parse"], { input: ANSWER, env: { NO_COLOR: "1" } });
  assert.match(plain.stdout, /^From: AI-B/);
});
