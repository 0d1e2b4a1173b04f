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
      throw new CrosstalkError(`the WebAssembly module can't be loaded: ${cause.message}`, {
        help: "pass its URL or its bytes to `ready`",
        cause,
      });
    },
  );
  return loading;
}

/** Calls a function of the module; its failures are thrown as JSON texts. */
function call(operation, ...parameters) {
  if (!isLoaded) {
    throw new CrosstalkError("the WebAssembly module is not loaded yet", { help: "call `await ready()` first" });
  }
  try {
    return operation(...parameters);
  } catch (thrown) {
    if (typeof thrown !== "string") throw thrown;
    const { message, ...details } = JSON.parse(thrown);
    throw new CrosstalkError(message, details);
  }
}

/** A text as the module takes it. Halves of surrogate pairs, which are no Unicode, become U+FFFD. */
function textOf(value, name) {
  if (typeof value === "string") return value;
  throw new TypeError(`${name} is not a string`);
}

function optionalText(value, name) {
  return value === undefined || value === null ? undefined : textOf(value, name);
}

/** A time in milliseconds: of a Date, a number or a text, else now. */
function millis(at) {
  if (at === undefined || at === null) return Date.now();
  const time = new Date(at).getTime();
  if (Number.isNaN(time)) throw new TypeError("`at` is not a time");
  return time;
}

export function parse(text, { reading = "paste" } = {}) {
  return JSON.parse(call(core.parse, textOf(text, "the text"), textOf(reading, "`reading`")));
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
  return JSON.parse(call(core.lint, textOf(text, "the text")));
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
  return JSON.parse(call(core.verify, textOf(text, "the text"), JSON.stringify([...keys]), millis(at)));
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
