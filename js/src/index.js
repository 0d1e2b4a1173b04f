// The package `ai-crosstalk`: the names and defaults of JavaScript over the Rust core, which is WebAssembly.

import load, * as core from "./core.js";
import { CrosstalkError } from "./error.js";

export { CrosstalkError } from "./error.js";
export { Relay } from "./relay.js";

let isLoaded = false;
let loading;

// Node, Deno and Bun read the module while this file is imported, so that every function works at once.
const fs = globalThis.process?.getBuiltinModule?.("node:fs");
if (fs !== undefined && import.meta.url.startsWith("file:")) {
  const file = new URL("core_bg.wasm", import.meta.url);
  // A bundler may have put the module somewhere else; then `ready` is told where.
  if (fs.existsSync(file)) {
    core.initSync({ module: fs.readFileSync(file) });
    isLoaded = true;
  }
}

/**
 * Loads the module where that takes time, in a browser. `source` is its URL, response or bytes, if it is not beside this file.
 */
export function ready(source) {
  if (isLoaded) return Promise.resolve();
  loading ??= load(source === undefined ? undefined : { module_or_path: source }).then(
    () => {
      isLoaded = true;
    },
    (cause) => {
      // The next call tries again.
      loading = undefined;
      throw new CrosstalkError(`The WebAssembly module cannot be loaded: ${cause.message}.`, {
        help: "Pass its URL or its bytes to `ready`.",
        cause,
      });
    },
  );
  return loading;
}

/** Calls a function of the module; its failures are thrown as JSON texts. */
function call(operation, ...parameters) {
  if (!isLoaded) {
    throw new CrosstalkError("The WebAssembly module is not loaded yet.", { help: "Call `await ready()` first." });
  }
  try {
    return operation(...parameters);
  } catch (thrown) {
    if (typeof thrown !== "string") throw thrown;
    const { message, ...details } = JSON.parse(thrown);
    throw new CrosstalkError(message, details);
  }
}

/** The limit of a paste in bytes (ENV-063). */
const MAX_PASTE_BYTES = 64 << 20;
/** Bytes that stand for half of a surrogate pair, and are not UTF-8. */
const HALF_PAIR = Uint8Array.of(0xed, 0xa0, 0x80);
const encoder = new TextEncoder();

function requireText(value, name) {
  if (typeof value !== "string") throw new TypeError(`${name} is not a string`);
  if (value.length <= MAX_PASTE_BYTES) return value;
  // It is too large as well when its end is missing, and its memory in the module would never be given back.
  return value.slice(0, MAX_PASTE_BYTES + 2).replace(/[\ud800-\udbff]$/, "");
}

/** The place of the first half of a surrogate pair; -1 if the text is Unicode. */
function placeOfHalfPair(text) {
  return text.isWellFormed?.() ? -1 : text.search(/\p{Surrogate}/u);
}

/** A text as the module takes it. */
function textOf(value, name) {
  const text = requireText(value, name);
  const at = placeOfHalfPair(text);
  if (at === -1) return text;
  throw new CrosstalkError(`${name} has half of a surrogate pair, at the index ${at}`, {
    code: "E-FORMAT",
    rule: "ENV-001",
    help: "pass the whole text; `isWellFormed()` tells whether a string is Unicode",
  });
}

/** A text as UTF-8, for functions that report about any text. */
function bytesOf(value, name) {
  const text = requireText(value, name);
  const at = placeOfHalfPair(text);
  if (at === -1) return encoder.encode(text);
  // The encoder would write U+FFFD, and the report would be about another text.
  const [before, after] = [text.slice(0, at), text.slice(at + 1)].map((part) => encoder.encode(part));
  const bytes = new Uint8Array(before.length + HALF_PAIR.length + after.length);
  bytes.set(before);
  bytes.set(HALF_PAIR, before.length);
  bytes.set(after, before.length + HALF_PAIR.length);
  return bytes;
}

function optionalText(value, name) {
  return value === undefined || value === null ? undefined : textOf(value, name);
}

const FIRST_MILLIS = new Date("0000-01-01T00:00:00Z").getTime();
const LAST_MILLIS = new Date("9999-12-31T23:59:59.999Z").getTime();

/** A time in milliseconds: of a Date, a number or a text, else now. */
function millis(at) {
  if (at === undefined || at === null) return Date.now();
  const time = new Date(at).getTime();
  // An envelope has years of four digits.
  if (!(time >= FIRST_MILLIS && time <= LAST_MILLIS)) throw new TypeError("`at` is not a time of the years 0 to 9999");
  return time;
}

export function parse(text, { reading = "paste" } = {}) {
  return JSON.parse(call(core.parse, bytesOf(text, "the text"), textOf(reading, "`reading`")));
}

export function build(message) {
  return call(core.build, JSON.stringify(message) ?? "null");
}

export function reply(text, body, { from, user, intent, context } = {}) {
  return call(
    core.reply,
    textOf(text, "the text"),
    textOf(body, "the body"),
    optionalText(from, "`from`"),
    optionalText(user, "`user`"),
    optionalText(intent, "`intent`"),
    optionalText(context, "`context`"),
  );
}

export function format(text) {
  return call(core.format, textOf(text, "the text"));
}

export function migrate(text) {
  return call(core.migrate, textOf(text, "the text"));
}

export function lint(text) {
  return JSON.parse(call(core.lint, bytesOf(text, "the text")));
}

export function canonical(text) {
  return call(core.canonical, textOf(text, "the text"));
}

export function digest(text) {
  return call(core.digest, textOf(text, "the text"));
}

export function generateKey({ algorithm } = {}) {
  return JSON.parse(call(core.generate_key, optionalText(algorithm, "`algorithm`")));
}

export function sign(text, privateKeyPem, { keyId, withKey = false, replace = false, at } = {}) {
  const pem = textOf(privateKeyPem, "the private key");
  return call(core.sign, textOf(text, "the text"), pem, textOf(keyId, "`keyId`"), !!withKey, !!replace, millis(at));
}

export function verify(text, { keys = [], at } = {}) {
  const pairs = JSON.stringify([...keys].map((named) => [named?.id, named?.key]));
  return JSON.parse(call(core.verify, bytesOf(text, "the text"), pairs, millis(at)));
}

export function primer(address, me) {
  return call(core.primer, textOf(address, "the address"), textOf(me, "the name"));
}

export function newId() {
  return call(core.new_id);
}

export function parseAddress(text) {
  return JSON.parse(call(core.parse_address, textOf(text, "the address")));
}

export function redact(text) {
  return JSON.parse(call(core.redact, textOf(text, "the text")));
}
