#!/usr/bin/env node
// `npx ai-crosstalk`: the command line of the first public program, `envelope.js`, for the scripts that call it. The same
// arguments give the same output and exit code. Two things differ: `config.json` is read from the working folder, and a failure
// of which that program said nothing has a message. New programs use `crosstalk` or this package itself.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { text as readAll } from "node:stream/consumers";

const DEFAULTS = { user: "human", sender: "AI-A", receiver: "AI-B", version: "1" };
const USAGE = "Usage: envelope.js <send|parse>";
const SEND_USAGE = "Usage: envelope.js send --context <context> --intent <intent> --body <body|->";

/** An error of the caller: its message is printed, and the exit code is 1. */
class UserError extends Error {}

async function main([command, ...options]) {
  const config = readConfig();
  if (command === "send") await send(config, options);
  else if (command === "parse") await parse();
  else throw new UserError(USAGE);
}

function readConfig() {
  let text;
  try {
    text = readFileSync("config.json", "utf8");
  } catch (error) {
    if (error.code !== "ENOENT") throw new UserError(`Error loading config: ${error.message}`);
    console.error("Warning: no config.json in this folder; copy config.example.json to config.json to set the names.");
    return DEFAULTS;
  }
  try {
    // A key that is missing is written as the word `undefined`, as before.
    const { user, sender, receiver, version } = JSON.parse(text);
    return { user, sender, receiver, version };
  } catch (error) {
    throw new UserError(`Error loading config: ${error.message}`);
  }
}

async function send({ user, sender, receiver, version }, options) {
  const [context, intent, given] = ["--context", "--intent", "--body"].map((name) => valueOf(options, name));
  const body = given === "-" ? await readAll(process.stdin) : given;
  const heads = [user, sender, receiver, version, context, intent];
  if (heads.some((value) => /[\r\n]/.test(value))) {
    throw new UserError("Error: only the body may have several lines.");
  }
  // `build` writes a blank line of a body without the two spaces, and checks the intent; scripts get the text they know.
  const lines = body.trim().split("\n");
  const envelope = [
    `[[${sender}→${receiver} v${version}]]`,
    `user: ${user}`,
    `session: ${newSession()}`,
    `context: ${context}`,
    `intent: ${intent}`,
    "body: |",
    ...lines.map((line) => `  ${line}`),
    "sig: none",
    "[[END]]",
  ].join("\n");
  console.log(envelope);
  if (process.platform === "darwin") copy(envelope);
}

/** The argument after an option. */
function valueOf(options, name) {
  const at = options.indexOf(name);
  if (at === -1 || at + 1 === options.length) throw new UserError(SEND_USAGE);
  return options[at + 1];
}

/** The hour in UTC and six random digits. */
function newSession() {
  return `${new Date().toISOString().slice(0, 13)}Z ${randomBytes(3).toString("hex")}`;
}

function copy(envelope) {
  const { status } = spawnSync("pbcopy", { input: envelope, stdio: ["pipe", "ignore", "ignore"] });
  console.error(status === 0 ? "✓ Copied to clipboard" : "Warning: pbcopy failed; nothing is in the clipboard.");
}

async function parse() {
  const text = await readAll(process.stdin);
  const crosstalk = await import("./index.js");
  await crosstalk.ready();
  const { envelopes, errors } = crosstalk.parse(text, { reading: "paste" });
  // What the old program read and the rules do not allow, such as another version, is read as it did.
  const envelope = envelopes[0] ?? readV1(text);
  // A v1.1 envelope may have a thread alone.
  const conversation = envelope?.session ?? envelope?.thread;
  if (conversation == null) throw new UserError(`Error: ${reasonOf(text, envelope, errors)}`);
  const label = (word) => (isColoured() ? `\x1b[1m${word}\x1b[22m` : word);
  console.log(`${label("From:")} ${envelope.sender} → ${envelope.receiver} (${envelope.version})`);
  console.log(`${label(envelope.session == null ? "Thread:" : "Session:")} ${conversation}`);
  console.log(label("Response:"));
  console.log(envelope.body.trim());
}

/** The first envelope of a text, as the old program reads it; nothing if there is none. */
function readV1(text) {
  const direction = /\[\[(.+?)→(.+?) (v\d+)\]\]/.exec(text);
  // A line end may have become a space, so the value also ends at the next key.
  const session = /\bsession: *(\S.*?) *(?=\n|$| (?:user|context|intent|response|body|sig): )/.exec(text);
  const body = between(text, /\bresponse: \|/, /\[\[END\]\]/) ?? between(text, /\bbody: \|/, /\ssig:/);
  if (direction === null || session === null || body === undefined) return undefined;
  const [sender, receiver, version] = direction.slice(1).map(visible);
  return { sender, receiver, version, session: visible(session[1]), body: visible(body.replace(/^ {2}/gm, "")) };
}

/** The text between two marks, the second of which is the first one behind the other. */
function between(text, begin, end) {
  const start = begin.exec(text);
  const rest = start === null ? "" : text.slice(start.index + start[0].length);
  const stop = end.exec(rest);
  return stop === null ? undefined : rest.slice(0, stop.index);
}

/** A text without control characters other than line ends, for a terminal. */
function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(/[^\P{Cc}\n\t]|\p{Bidi_Control}/gu, (c) => `\\u{${c.codePointAt(0).toString(16).toUpperCase()}}`);
}

function reasonOf(text, envelope, errors) {
  const unsupported = errors.find((error) => error.code === "E-UNSUPPORTED");
  if (unsupported !== undefined) return unsupported.message;
  const hasHead = envelope === undefined && /\[\[.+→.+ v\d+\]\]/.test(text) && text.includes("session:");
  return `Invalid envelope format: missing ${hasHead ? "response or body content" : "header or session"}`;
}

function isColoured() {
  const { FORCE_COLOR, NO_COLOR } = process.env;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0";
  return !NO_COLOR && process.stdout.isTTY === true;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
