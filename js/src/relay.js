// The client of a relay, on `fetch`. It needs no WebAssembly.

import { CrosstalkError } from "./error.js";
import { readEvents } from "./events.js";

/** The longest wait that a relay grants at once (HTP-014, HTP-038); a longer one is made of several requests. */
const MAX_WAIT_SECONDS = 60;
/** How long a stream may be silent. A relay sends something at least every 30 seconds (HTP-033). */
const QUIET_SECONDS = 75;
/** Uploads and downloads get one more second for each of these. */
const SLOW_BYTES_PER_SECOND = 64 << 10;

const MAX_MESSAGE_BYTES = 8 << 20;
const MAX_PAGE_BYTES = 32 << 20;
const MAX_THREAD_BYTES = 64 << 20;
const MAX_ACK_IDS = 500;

/** The pause before the second attempt; it doubles each time. */
const FIRST_PAUSE_SECONDS = 0.25;
const MAX_PAUSE_SECONDS = 10;
/** The longest `Retry-After` that counts for a stream that was open, which waits for its relay as long as it takes. */
const MAX_STREAM_RETRY_AFTER_SECONDS = 300;
const MAX_ERROR_BYTES = 1 << 20;
/** The longest time that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Intents that have to name a parent once they have an id (INT-010). */
const INTENTS_WITH_PARENT = ["RESPOND", "ACK", "NACK", "ANSWER"];

/** A client of one relay. `docs/guide/api.md` has the rules by which it waits, repeats and reconnects. */
export class Relay {
  #base;
  #token;
  #timeout;
  #retryFor;

  /**
   * @param {string | URL} url the relay, such as `http://127.0.0.1:8799`
   * @param {{ token?: string, timeout?: number, retryFor?: number }} [options] `timeout`: how many seconds an attempt may take,
   *   besides the time that the relay is asked to wait; `retryFor`: for how many seconds a request is tried again
   */
  constructor(url, { token, timeout = 30, retryFor = 30 } = {}) {
    this.#base = baseOf(url);
    this.#token = tokenOf(token);
    if (!(timeout > 0 && retryFor >= 0)) {
      throw new CrosstalkError("`timeout` or `retryFor` is not a number of seconds.", {
        help: "Pass a `timeout` of more than 0 seconds, and a `retryFor` of 0 or more.",
      });
    }
    this.#timeout = timeout;
    this.#retryFor = retryFor;
  }

  /** The URL of the relay. */
  get url() {
    return this.#base;
  }

  /**
   * Hands in a message: the text of an envelope, or an object in the form that `build` takes. With `wait`, waits up to that
   * many seconds for the answer; without an answer in time, `answer` is null.
   */
  async send(message, { wait = 0, signal } = {}) {
    const isText = typeof message === "string";
    const type = isText ? "text/plain; charset=utf-8" : "application/json";
    const body = isText ? message : JSON.stringify(withIds(message));
    const time = new WaitTime(wait);
    let accepted;
    for (;;) {
      const seconds = time.nextSeconds();
      const headers = { "Content-Type": type, ...(seconds > 0 && { Prefer: `wait=${seconds}` }) };
      // Once the relay has the message, nothing is tried for longer than the caller waits.
      const retryFor = accepted === undefined ? this.#retryFor : Math.min(this.#retryFor, time.secondsLeft());
      const request = { headers, body, wait: seconds, maxBytes: MAX_MESSAGE_BYTES, signal, retryFor };
      try {
        const response = await this.#json("POST", "crosstalk/receive", { ack: "object", answer: "object|null" }, request);
        accepted = response.value;
        const hasWaited = response.headers.has("preference-applied");
        if (accepted.answer !== null || !hasWaited || time.isOver()) return accepted;
      } catch (error) {
        // The relay has the message: an interruption only makes the wait longer.
        if (accepted === undefined || !error.temporary) throw error;
        if (time.isOver()) return accepted;
      }
      await pause(pauseSeconds(FIRST_PAUSE_SECONDS), signal);
    }
  }

  /** The messages that an address got and has not acknowledged, the oldest first. With `wait`, waits until there is one. */
  async inbox(address, { after, limit, wait = 0, signal } = {}) {
    const time = new WaitTime(wait);
    for (;;) {
      const seconds = time.nextSeconds();
      const query = { for: address, after, limit, wait: seconds };
      const form = { messages: "array", cursor: "string" };
      const { value } = await this.#json("GET", "crosstalk/inbox", form, { query, wait: seconds, signal });
      if (value.messages.length > 0 || time.isOver()) return value;
      await pause(pauseSeconds(FIRST_PAUSE_SECONDS), signal);
    }
  }

  /** Takes messages out of the inbox of an address: they are done. */
  async acknowledge(address, ids, { signal } = {}) {
    const all = typeof ids === "string" ? [ids] : [...ids];
    const result = { changed: [], unknown: [] };
    for (let at = 0; at < all.length; at += MAX_ACK_IDS) {
      const { value } = await this.#json("POST", "crosstalk/ack", { changed: "array", unknown: "array" }, {
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ for: address, ids: all.slice(at, at + MAX_ACK_IDS) }),
        signal,
      });
      result.changed.push(...value.changed);
      result.unknown.push(...value.unknown);
    }
    return result;
  }

  /** A message by its id. */
  async read(id, { signal } = {}) {
    const path = `crosstalk/messages/${segmentOf(id)}`;
    return (await this.#json("GET", path, { id: "string" }, { maxBytes: MAX_MESSAGE_BYTES, signal })).value;
  }

  /** A conversation by its id, each message with its answers. */
  async thread(id, { signal } = {}) {
    const path = `crosstalk/threads/${segmentOf(id)}`;
    const form = { thread: "object", messages: "array" };
    return (await this.#json("GET", path, form, { maxBytes: MAX_THREAD_BYTES, signal })).value;
  }

  /**
   * The messages of an address as they come, each once, with its `cursor`. When the connection breaks, the stream goes on after
   * the last message. It ends when the loop over it ends, by `signal`, or when the relay rejects it.
   */
  async *stream(address, { after, signal } = {}) {
    const retries = new Retries(this.#retryFor);
    let cursor = after;
    for (;;) {
      let failure;
      try {
        // A stream that was never open may have the wrong URL. One that was open waits for its relay as long as it takes.
        for await (const event of this.#events(address, cursor, signal, () => retries.goOnForEver())) {
          if (event.retry !== undefined) retries.setFirstPause(event.retry / 1000);
          if (event.id !== undefined) cursor = event.id;
          if (event.type !== "message" || event.data === "") continue;
          const message = parseJson(event.data, { id: "string" });
          retries.reset();
          yield { ...message, cursor };
        }
      } catch (error) {
        signal?.throwIfAborted();
        failure = error;
      }
      await pause(retries.secondsAfter(failure), signal);
    }
  }

  /** Uploads an attachment. A message refers to it by the `digest` of the result. */
  async upload(content, { signal } = {}) {
    const body = await bytesOf(content);
    const digest = await digestOf(body);
    const { value } = await this.#json("PUT", `crosstalk/blobs/${digest}`, { digest: "string", size: "number" }, {
      headers: { "Content-Type": "application/octet-stream" },
      body,
      wait: body.length / SLOW_BYTES_PER_SECOND,
      signal,
    });
    return value;
  }

  /** The bytes of an attachment. They are checked against the digest. */
  async download(digest, { maxBytes = 64 << 20, signal } = {}) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
      throw new CrosstalkError("`maxBytes` is not a number of bytes.", { help: "Pass a whole number of 0 or more." });
    }
    const { bytes } = await this.#request("GET", `crosstalk/blobs/${segmentOf(digest)}`, {
      accept: "application/octet-stream, application/json",
      maxBytes,
      wait: maxBytes / SLOW_BYTES_PER_SECOND,
      signal,
    });
    if ((await digestOf(bytes)) !== digest) {
      throw new CrosstalkError("The bytes that the relay sent do not have this digest.", {
        code: "E-FORMAT",
        help: "Ask the sender to upload the attachment again.",
      });
    }
    return bytes;
  }

  /** The JSON object of an answer, which has at least the fields of a form. */
  async #json(method, path, form, request) {
    const { headers, bytes } = await this.#request(method, path, { accept: "application/json", ...request });
    return { headers, value: parseJson(new TextDecoder().decode(bytes), form) };
  }

  /** Tries a request until it succeeds, fails for good, or the time for it is over. Every request here is safe to repeat. */
  async #request(method, path, { signal, retryFor = this.#retryFor, ...request }) {
    const retries = new Retries(retryFor);
    for (;;) {
      signal?.throwIfAborted();
      try {
        return await this.#attempt(method, path, { signal, ...request });
      } catch (error) {
        signal?.throwIfAborted();
        await pause(retries.secondsAfter(error), signal);
      }
    }
  }

  async #attempt(method, path, { wait = 0, maxBytes = MAX_PAGE_BYTES, signal, ...request }) {
    const deadline = new Deadline(this.#timeout + wait, signal);
    try {
      const response = await this.#open(method, path, request, deadline);
      const bytes = await this.#receive(response, response.ok ? maxBytes : MAX_ERROR_BYTES, deadline);
      if (!response.ok) throw rejectionOf(this.#base, response, bytes);
      return { headers: response.headers, bytes };
    } finally {
      deadline.release();
    }
  }

  /** The events of one connection. */
  async *#events(address, cursor, signal, onOpen) {
    const deadline = new Deadline(this.#timeout, signal);
    try {
      const response = await this.#open(
        "GET",
        "crosstalk/inbox",
        {
          // The second is for a rejection.
          accept: "text/event-stream, application/json;q=0.1",
          query: { for: address, after: cursor },
        },
        deadline,
      );
      if (!response.ok) {
        throw rejectionOf(this.#base, response, await this.#receive(response, MAX_ERROR_BYTES, deadline));
      }
      if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
        throw unreadable(`The answer of ${this.#base} is not a stream of events.`);
      }
      onOpen();
      const chunks = this.#chunks(response, deadline, () => deadline.restart(QUIET_SECONDS));
      yield* readEvents(chunks, MAX_MESSAGE_BYTES);
    } finally {
      deadline.release();
    }
  }

  async #open(method, path, { accept, query = {}, headers = {}, body }, deadline) {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const authorization = this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` };
    const all = new Headers({ Accept: accept, ...authorization, ...headers });
    try {
      // A relay does not redirect, and a token is for this relay alone. A `Request` of our own would have to be kept alive:
      // in Node.js 20, the signal of one that was collected does not end anything.
      return await fetch(url, { method, headers: all, body, redirect: "manual", signal: deadline.signal });
    } catch (cause) {
      throw this.#broken(cause, deadline);
    }
  }

  async #receive(response, maxBytes, deadline) {
    const parts = [];
    let size = 0;
    for await (const chunk of this.#chunks(response, deadline, () => {})) {
      parts.push(chunk);
      size += chunk.length;
      if (size > maxBytes) {
        throw new CrosstalkError(`The answer of ${this.#base} has more than ${maxBytes} bytes.`, {
          code: "E-TOO-LARGE",
          help: "Ask for less at once.",
        });
      }
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  /** The bytes of a response as they come. A reader that stops closes the connection. */
  async *#chunks(response, deadline, onChunk) {
    if (response.body === null) return;
    const reader = response.body.getReader();
    try {
      for (;;) {
        onChunk();
        const { done, value } = await reader.read().catch((cause) => {
          throw this.#broken(cause, deadline);
        });
        if (done) return;
        yield value;
      }
    } finally {
      // A connection that broke has nothing left to cancel.
      reader.cancel().catch(() => {});
    }
  }

  #broken(cause, deadline) {
    if (deadline.isOver) {
      return new CrosstalkError(`${this.#base} did not answer in time.`, {
        code: "E-TIMEOUT",
        help: "Try again later, or ask the operator of the relay.",
        temporary: true,
        cause,
      });
    }
    return new CrosstalkError(`${this.#base} cannot be reached: ${oneLine(reasonOf(cause))}.`, {
      code: "E-ROUTE",
      help: "Check the URL, and that the relay runs (`crosstalk serve`).",
      temporary: true,
      cause,
    });
  }
}

/** When a request is tried again, and for how long. */
class Retries {
  #retryFor;
  #failures = 0;
  #giveUpAt = Infinity;
  #isForEver = false;
  #firstPause = FIRST_PAUSE_SECONDS;

  constructor(retryFor) {
    this.#retryFor = retryFor;
  }

  /** Forgets earlier failures. */
  reset() {
    this.#failures = 0;
  }

  /** The first pause that a stream asks for; a shorter one than ours would be a flood. */
  setFirstPause(seconds) {
    this.#firstPause = Math.max(seconds, FIRST_PAUSE_SECONDS);
  }

  goOnForEver() {
    this.#isForEver = true;
  }

  /** The pause after a failure, or after the end of a stream. A failure after which there is no other attempt is thrown. */
  secondsAfter(failure) {
    if (failure !== undefined && failure.temporary !== true) throw failure;
    const backoff = pauseSeconds(Math.min(this.#firstPause * 2 ** this.#failures, MAX_PAUSE_SECONDS));
    const longest = this.#isForEver ? MAX_STREAM_RETRY_AFTER_SECONDS : Infinity;
    const seconds = Math.min(failure?.retryAfter ?? 0, longest) + backoff;
    const now = performance.now() / 1000;
    if (this.#failures === 0) this.#giveUpAt = now + this.#retryFor;
    this.#failures += 1;
    if (failure !== undefined && !this.#isForEver && now + seconds > this.#giveUpAt) throw failure;
    return seconds;
  }
}

/**
 * The time that a caller wants to wait, in parts that a relay grants. A part can end early, because the relay stops; so the
 * next one begins after a pause.
 */
class WaitTime {
  #until;

  constructor(seconds) {
    if (!(seconds >= 0 && Number.isFinite(seconds))) {
      throw new CrosstalkError("`wait` is not a number of seconds.", { code: "E-FORMAT", help: "Pass 0 or more seconds." });
    }
    this.#until = performance.now() + seconds * 1000;
  }

  secondsLeft() {
    return Math.max((this.#until - performance.now()) / 1000, 0);
  }

  /** How many seconds the next request may wait. */
  nextSeconds() {
    return Math.min(Math.ceil(this.secondsLeft()), MAX_WAIT_SECONDS);
  }

  isOver() {
    return this.nextSeconds() === 0;
  }
}

/** A time limit that ends a request, as the caller's signal does. */
class Deadline {
  #controller = new AbortController();
  #outer;
  #timer;
  #onAbort = () => this.#controller.abort(this.#outer.reason);
  /** Whether the time was over before the caller ended the request. */
  isOver = false;

  constructor(seconds, outer) {
    this.#outer = outer;
    if (outer?.aborted) this.#onAbort();
    else outer?.addEventListener("abort", this.#onAbort, { once: true });
    this.restart(seconds);
  }

  get signal() {
    return this.#controller.signal;
  }

  restart(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, Math.min(seconds * 1000, MAX_TIMER_MS));
  }

  release() {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#onAbort);
  }
}

function baseOf(url) {
  let base;
  try {
    base = new URL(url);
  } catch {
    base = undefined;
  }
  const isUsable = base !== undefined && /^https?:$/.test(base.protocol) && [base.username, base.password, base.search, base.hash].every((part) => part === "");
  if (!isUsable) {
    throw new CrosstalkError("The URL of the relay is not an http or https URL without user name, query and fragment.", {
      code: "E-FORMAT",
      help: "Write the URL as in `http://127.0.0.1:8799`, and pass the secret as `token`.",
    });
  }
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return base.href;
}

/** A token, which may come from a file with a line end. */
function tokenOf(token) {
  const trimmed = token?.trim();
  if (trimmed !== undefined && !/^[!-~]+$/.test(trimmed)) {
    throw new CrosstalkError("The token is empty or has characters that no token has.", {
      code: "E-PERM",
      help: "Pass the text that `crosstalk token create` printed, or no token.",
    });
  }
  return trimmed;
}

/**
 * The message with the ids that the relay would generate (HTP-007). Generated here, they are the same in every attempt, and
 * the relay accepts the message once (HTP-012).
 */
function withIds(message) {
  const thread = message.thread ?? (message.session == null ? newId() : undefined);
  const intent = message.intent?.meaning ?? message.intent;
  const mayHaveId = message.parent != null || !INTENTS_WITH_PARENT.includes(intent);
  const id = message.message ?? (mayHaveId ? newId() : undefined);
  return { ...message, thread, message: id };
}

/** A ULID. The random part takes five bits of each byte. */
function newId() {
  const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  let time = Date.now();
  let id = "";
  for (let place = 0; place < 10; place += 1) {
    id = digits[time % 32] + id;
    time = Math.floor(time / 32);
  }
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) id += digits[byte % 32];
  return id;
}

function rejectionOf(base, response, bytes) {
  const { status } = response;
  const text = new TextDecoder().decode(bytes);
  let error;
  try {
    ({ error } = JSON.parse(text));
  } catch {
    error = undefined;
  }
  // A longer time is no pause any more.
  const after = response.headers.get("retry-after") ?? String(error?.retry_after);
  const retryAfter = /^\d{1,6}$/.test(after) ? Number(after) : undefined;
  if (typeof error?.code === "string") {
    const [what, help, rule] = [error.what ?? error.detail, error.help, error.rule].map((text) => (typeof text === "string" ? oneLine(text) : null));
    const [line, column] = [error.line, error.column].map((place) => (Number.isInteger(place) ? place : null));
    // 504 says that the deadline of the message has passed, which no attempt changes.
    const temporary = status !== 504 && isTemporary(status);
    const facts = { code: oneLine(error.code), help, rule, line, column, status, retryAfter, temporary };
    return new CrosstalkError(what || `${base} rejected the request with status ${status}.`, facts);
  }
  // A browser shows a redirection as status 0.
  const isRedirection = status < 400;
  return new CrosstalkError(
    isRedirection ? `${base} redirects to another URL.` : `${base} answered with status ${status}, and not as a relay does.`,
    {
      code: status === 401 || status === 403 ? "E-PERM" : "E-ROUTE",
      help: NO_RELAY,
      status,
      retryAfter,
      temporary: isTemporary(status),
    },
  );
}

/** What to do about an answer that no relay gives. */
const NO_RELAY = "Check that this is the URL of a relay, and whether a proxy stands before it.";

function isTemporary(status) {
  return status === 408 || status === 429 || status >= 500;
}

function unreadable(message, cause) {
  return new CrosstalkError(message, { code: "E-ROUTE", help: NO_RELAY, cause });
}

/** The object of a JSON text; `form` has the types of fields that it needs. */
function parseJson(text, form) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadable("The answer of the relay is not JSON.", cause);
  }
  const hasForm = typeOf(value) === "object" && Object.entries(form).every(([key, types]) => types.split("|").includes(typeOf(value[key])));
  if (!hasForm) throw unreadable("The answer of the relay lacks what it has to tell.");
  return value;
}

function typeOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** A text as one segment of a path. */
function segmentOf(text) {
  try {
    // A browser would take these for folders.
    if (typeof text === "string" && !["", ".", ".."].includes(text)) return encodeURIComponent(text);
  } catch {
    // Half of a surrogate pair.
  }
  throw new CrosstalkError("The id or digest is not one that a relay gives.", {
    code: "E-FORMAT",
    help: "Pass an id of a message or thread, or the digest of an attachment.",
  });
}

/** Untrusted text, in one line of a bounded length, without control characters. */
function oneLine(text) {
  const words = text.slice(0, 500).split(/\s+/).join(" ").trim();
  return words.replace(/\p{C}/gu, (c) => `\\u{${c.codePointAt(0).toString(16).toUpperCase()}}`);
}

function reasonOf(cause) {
  // Node.js says `fetch failed`, and the reason in the cause.
  const inner = cause?.cause?.code ?? cause?.cause?.message;
  return inner ?? cause?.message ?? String(cause);
}

/** A pause of at most this length, shortened by chance so that clients do not come all at once. */
function pauseSeconds(longest) {
  return longest * (0.5 + Math.random() / 2);
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

async function bytesOf(content) {
  if (typeof content === "string") return new TextEncoder().encode(content);
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer());
  if (ArrayBuffer.isView(content)) return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  return new Uint8Array(content);
}

async function digestOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
