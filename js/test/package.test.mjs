// The package as a new user meets it: installed by npm into an empty folder, with every example of its README and `js/examples`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { Relay } from "../src/relay.js";
import { RelayServer } from "./relay-server.mjs";
import { DIST, RUNTIMES, STRICT, TSC, installPackage, outcome, output, scratchFolder, withPage } from "./tools.mjs";

const README = readFileSync(join(DIST, "README.md"), "utf8");
const EXAMPLES = new URL("../examples/", import.meta.url);
/** The agent of the examples, which answers with what it got. */
const ROUTE = `[[route]]\nto = "claude://*"\nby = "exec"\ncommand = ["sed", "s/^/read: /"]\ninput = "body"\n`;
const ENVELOPE = "[[A→B v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: c\nintent: REQUEST\nbody: |\n  Hello.\nsig: none\n[[END]]\n";

/** The code blocks of a language, in their order. */
function blocks(language) {
  return [...README.matchAll(/^```(\S+)\n([^]*?)^```$/gm)].filter(([, name]) => name === language).map(([, , text]) => text);
}

/** Starts a program that runs until the test ends. */
function startProgram(test, [program, ...args], options) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
  const ended = new Promise((resolve) => child.once("close", resolve));
  test.after(() => child.kill() && ended);
  return { child, ended };
}

test("every block of the README is of a language that a test runs", () => {
  const languages = [...README.matchAll(/^```(\S+)\n[^]*?^```$/gm)].map(([, name]) => name);
  assert.deepEqual(languages, ["js", "html", "js", "js", "sh"]);
});

test("the README and the examples have the types of the package", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const names = blocks("js").map((text, at) => {
    const name = `readme-${at}.mts`;
    writeFileSync(join(folder, name), text);
    return name;
  });
  for (const name of readdirSync(EXAMPLES)) {
    copyFileSync(new URL(name, EXAMPLES), join(folder, name));
    names.push(name);
  }
  writeFileSync(join(folder, "wrong.mts"), 'import { parse } from "ai-crosstalk";\n// @ts-expect-error\nparse(1);\n');
  // Examples are modules, as in a package of type `module`.
  output(["npm", "pkg", "set", "type=module"], { cwd: folder });
  output([...TSC, ...STRICT, ...names, "wrong.mts"], { cwd: folder });
});

test("the first example of the README prints what its comments say, in every runtime", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const [text] = blocks("js");
  writeFileSync(join(folder, "first.mjs"), text);
  const wanted = [...text.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, words]) => `${words}\n`);
  assert.equal(wanted.length, 2);
  for (const command of Object.values(RUNTIMES)) {
    assert.equal(output([...command, "first.mjs"], { cwd: folder }), wanted.join(""));
  }
});

test("the page of the README finds the envelope in its text", async () => {
  const [html] = blocks("html");
  const pages = { "/": `<!doctype html><meta charset="utf-8"><body><pre>${ENVELOPE}</pre>${html}</body>` };
  const bodies = await withPage({ pages, folders: { "ai-crosstalk": DIST } }, async (page, url) => {
    const printed = page.waitForEvent("console", (message) => message.type() === "log");
    await page.goto(url);
    const [envelopes] = await Promise.all((await printed).args().map((handle) => handle.jsonValue()));
    return envelopes.map(({ body }) => body);
  });
  assert.deepEqual(bodies, ["Hello."]);
});

test("the examples with a relay run against one", async (t) => {
  const server = await RelayServer.start(t, ROUTE);
  const folder = scratchFolder(t);
  installPackage(folder);
  const [, asks, answers] = blocks("js").map((text, at) => {
    writeFileSync(join(folder, `${at}.mjs`), text.replace("http://127.0.0.1:8799", server.url));
    return [process.execPath, `${at}.mjs`];
  });
  const { text, code } = await outcome(asks, { cwd: folder });
  assert.deepEqual([text, code], ["read: Which endpoint stays?\n", 0]);

  startProgram(t, answers, { cwd: folder });
  const message = { sender: "KALLE", receiver: "ANN", user: "kalle", context: "api", intent: "REQUEST", body: "Which one?" };
  const { answer } = await new Relay(server.url).send(message, { wait: 50 });
  assert.equal(answer.body, "Keep v2.");
});

test("npx ai-crosstalk runs the commands of the README", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const { version } = JSON.parse(readFileSync(join(DIST, "package.json"), "utf8"));
  assert.match(output(["npm", "ls", "ai-crosstalk"], { cwd: folder }), new RegExp(`ai-crosstalk@${version.replaceAll(".", "\\.")} `));
  writeFileSync(join(folder, "answer.txt"), `Here you are:\n\n${ENVELOPE}`);
  const [script] = blocks("sh");
  const printed = output(["sh", "-ec", script], { cwd: folder, env: { ...process.env, npm_config_offline: "true" } });
  assert.match(printed, /^\[\[AI-A→AI-B v1\]\]\n[^]*\n  Which endpoint stays\?\nsig: none\n\[\[END\]\]\nFrom: A → B /);
  assert.ok(printed.endsWith("Hello.\n"), printed);
});

test("the examples run", async (t) => {
  const server = await RelayServer.start(t);
  const folder = scratchFolder(t);
  installPackage(folder);
  for (const name of readdirSync(EXAMPLES)) copyFileSync(new URL(name, EXAMPLES), join(folder, basename(name)));
  assert.deepEqual(readdirSync(EXAMPLES).sort(), ["assistant.ts", "signed-question.ts"]);

  const printed = output([...RUNTIMES.Bun, "signed-question.ts"], { cwd: folder });
  assert.equal(printed, "verified\nCLAUDE asks: Should we use JWT?\nE-FORMAT\n");

  const { child, ended } = startProgram(t, [...RUNTIMES.Bun, "assistant.ts", server.url, "BOB"], { cwd: folder });
  const message = { sender: "KALLE", receiver: "BOB", user: "kalle", context: "c", intent: "REQUEST", body: "stop" };
  const { answer } = await new Relay(server.url).send(message, { wait: 50 });
  assert.equal(answer.body, "You wrote 4 characters.");
  await ended;
  assert.equal(child.exitCode, 0);
});

test("the client of a relay works in every runtime", async (t) => {
  const server = await RelayServer.start(t, ROUTE);
  const smoke = new URL("relay-smoke.mjs", import.meta.url).pathname;
  for (const command of Object.values(RUNTIMES)) {
    const { text, code } = await outcome([...command, smoke, server.url]);
    assert.deepEqual([text, code], ["ok\n", 0], command[0]);
  }
});
