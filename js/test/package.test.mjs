// The package as a new user meets it: installed by npm into an empty folder, with every example of its README and `js/examples`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { Relay } from "../src/relay.js";
import { ECHO, PROGRAM, RelayServer, filesIn, freePort, scratchEnvironment, waitFor } from "./relay-server.mjs";
import { DIST, RUNTIMES, STRICT, TSC, installPackage, outcome, output, scratchFolder, withPage } from "./tools.mjs";

const README = readFileSync(join(DIST, "README.md"), "utf8");
const FILES = filesIn(README);
const EXAMPLES = new URL("../examples/", import.meta.url);
const ENVELOPE = "[[A→B v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: c\nintent: REQUEST\nbody: |\n  Hello.\nsig: none\n[[END]]\n";

/** The blocks of the README, in their order. */
const BLOCKS = [...README.matchAll(/^```(\S+)(?: file=(\S+))?\n([^]*?)^```$/gm)].map(([, language, name, text]) => ({ language, name, text }));

/** The commands of the README, with the output that stands below each. */
const COMMANDS = BLOCKS.filter(({ language }) => language === "shell-session").flatMap(({ text }) =>
  text.split(/^\$ /m).slice(1).map((step) => {
    const end = step.indexOf("\n");
    return { command: step.slice(0, end), expected: step.slice(end + 1) };
  }),
);

/** Starts a program. `end` ends it, if it still runs, and gives its exit code. */
function startProgram([program, ...args], options) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const end = () => {
    child.kill();
    return ended;
  };
  return { ended, end };
}

test("the README works from top to bottom", async (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const port = await freePort();
  for (const [name, text] of Object.entries(FILES)) {
    const listen = name === "relay.toml" ? `listen = "127.0.0.1:${port}"\n` : "";
    writeFileSync(join(folder, name), listen + text.replaceAll("127.0.0.1:8799", `127.0.0.1:${port}`));
  }
  const path = [dirname(PROGRAM), dirname(process.execPath), process.env.PATH].join(delimiter);
  const options = { cwd: folder, env: { ...scratchEnvironment(folder), PATH: path, npm_config_offline: "true" }, stdio: ["ignore", "pipe", "inherit"] };
  const running = [];
  try {
    for (const { command, expected } of COMMANDS) {
      if (command.endsWith("&")) {
        running.push(startProgram(["sh", "-c", `exec ${command.slice(0, -1)}`], options));
        continue;
      }
      const { text, code } = await outcome(["sh", "-c", command], options);
      const parts = expected.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      assert.match(text, new RegExp(`^${parts.join(".*")}$`), command);
      assert.equal(code, 0, `${command}\n${text}`);
    }
  } finally {
    for (const { end } of running) await end();
  }
  const kinds = new Set(BLOCKS.map(({ language, name }) => (name === undefined ? language : "file")));
  assert.deepEqual([...kinds].sort(), ["file", "html", "shell-session", "text"], "a block that no test looks at");
  assert.ok(COMMANDS.length >= 8, `${COMMANDS.length} commands`);
});

test("the README and the examples have the types of the package", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const sources = Object.entries(FILES).filter(([name]) => name.endsWith(".mjs"));
  const names = sources.map(([name, text]) => {
    const typed = name.replace(".mjs", ".mts");
    writeFileSync(join(folder, typed), text);
    return typed;
  });
  assert.ok(names.length >= 4);
  for (const name of readdirSync(EXAMPLES)) {
    copyFileSync(new URL(name, EXAMPLES), join(folder, name));
    names.push(name);
  }
  writeFileSync(join(folder, "wrong.mts"), 'import { parse } from "ai-crosstalk";\n// @ts-expect-error\nparse(1);\n');
  // Examples are modules, as in a package of type `module`.
  output(["npm", "pkg", "set", "type=module"], { cwd: folder });
  output([...TSC, ...STRICT, ...names, "wrong.mts"], { cwd: folder });
});

test("the first example of the README prints the same in every runtime", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  writeFileSync(join(folder, "first.mjs"), FILES["first.mjs"]);
  const { expected } = COMMANDS.find(({ command }) => command === "node first.mjs");
  for (const command of Object.values(RUNTIMES)) {
    assert.equal(output([...command, "first.mjs"], { cwd: folder }), expected);
  }
});

test("the page of the README finds the envelope in its text", async () => {
  const { text: html } = BLOCKS.find(({ language }) => language === "html");
  const pages = { "/": `<!doctype html><meta charset="utf-8"><body><pre>${ENVELOPE}</pre>${html}</body>` };
  const bodies = await withPage({ pages, folders: { "ai-crosstalk": DIST } }, async (page, url) => {
    const printed = page.waitForEvent("console", (message) => message.type() === "log");
    await page.goto(url);
    const [envelopes] = await Promise.all((await printed).args().map((handle) => handle.jsonValue()));
    return envelopes.map(({ body }) => body);
  });
  assert.deepEqual(bodies, ["Hello."]);
});

test("the examples run", async (t) => {
  const server = await RelayServer.start(t);
  const folder = scratchFolder(t);
  installPackage(folder);
  for (const name of readdirSync(EXAMPLES)) copyFileSync(new URL(name, EXAMPLES), join(folder, basename(name)));
  assert.deepEqual(readdirSync(EXAMPLES).sort(), ["assistant.ts", "signed-question.ts"]);

  const printed = output([...RUNTIMES.Bun, "signed-question.ts"], { cwd: folder });
  assert.equal(printed, "verified\nCLAUDE asks: Should we use JWT?\nE-FORMAT\n");

  const assistant = startProgram([...RUNTIMES.Bun, "assistant.ts", server.url, "BOB"], { cwd: folder });
  t.after(assistant.end);
  const other = startProgram([...RUNTIMES.Bun, "assistant.ts", server.url, "ANN"], { cwd: folder });
  t.after(other.end);
  const relay = new Relay(server.url);
  const message = { sender: "ANN", receiver: "BOB", user: "ann", context: "c", intent: "REQUEST", body: "stop" };
  const { ack, answer } = await relay.send(message, { wait: 50 });
  assert.equal(answer.body, "You wrote 4 characters.");
  // Assistants do not answer answers: the other one acknowledges it, and the conversation ends.
  await waitFor("ANN to be done with the answer", async () => (await relay.inbox("ANN")).messages.length === 0);
  assert.equal((await relay.thread(ack.thread)).thread.messages, 2);
  assert.equal(await assistant.ended, 0);
});

test("the client of a relay works in every runtime", async (t) => {
  const server = await RelayServer.start(t, ECHO);
  const smoke = new URL("relay-smoke.mjs", import.meta.url).pathname;
  for (const command of Object.values(RUNTIMES)) {
    const { text, code } = await outcome([...command, smoke, server.url]);
    assert.deepEqual([text, code], ["ok\n", 0], command[0]);
  }
});
