// The client of a relay, on `fetch`. It needs no WebAssembly.

import { CrosstalkError } from "./error.js";
import { readEvents } from "./events.js";

/** How long a request may take, besides the time that the relay is asked to wait. */
const REQUEST_SECONDS = 30;
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
const FIRST_PAUSE_SECONDS = 0.5;
const MAX_PAUSE_SECONDS = 30;
/** A relay that wants more time than this is not waited for. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** Intents that have to name a parent once they have an id (INT-010). */
const INTENTS_WITH_PARENT = ["RESPOND", "ACK", "NACK", "ANSWER"];

/** A client of one relay. */
export class Relay {
  #base;
  #token;
  #attempts;

  /**
   * @param {string | URL} url the relay, such as `http://127.0.0.1:8799`
   * @param {{ token?: string, attempts?: number }} [options] `attempts`: how often a request is tried, 6 if it is missing
   */
  constructor(url, { token, attempts = 6 } = {}) {
    this.#base = baseOf(url);
    this.#token = tokenOf(token);
    this.#attempts = attempts;
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
      const request = { headers, body, wait: seconds, maxBytes: MAX_MESSAGE_BYTES, signal };
      try {
        const response = await this.#json("POST", "crosstalk/receive", request);
        accepted = response.value;
        const hasWaited = response.headers.has("preference-applied");
        if (accepted.answer !== null || !hasWaited || time.isOver()) return accepted;
      } catch (error) {
        // The relay has the message: an interruption only makes the wait longer.
        if (accepted === undefined || !error.temporary) throw error;
        if (time.isOver()) return accepted;
      }
      await pause(pauseSeconds(0), signal);
    }
  }

  /** The messages that an address got and has not acknowledged, the oldest first. With `wait`, waits until there is one. */
  async inbox(address, { after, limit, wait = 0, signal } = {}) {
    const time = new WaitTime(wait);
    for (;;) {
      const seconds = time.nextSeconds();
      const query = { for: address, after, limit, wait: seconds };
      const { value } = await this.#json("GET", "crosstalk/inbox", { query, wait: seconds, signal });
      if (value.messages.length > 0 || time.isOver()) return value;
      await pause(pauseSeconds(0), signal);
    }
  }

  /** Takes messages out of the inbox of an address: they are done. */
  async acknowledge(address, ids, { signal } = {}) {
    const all = typeof ids === "string" ? [ids] : [...ids];
    const result = { changed: [], unknown: [] };
    for (let at = 0; at < all.length; at += MAX_ACK_IDS) {
      const { value } = await this.#json("POST", "crosstalk/ack", {
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
    const path = `crosstalk/messages/${encodeURIComponent(id)}`;
    return (await this.#json("GET", path, { maxBytes: MAX_MESSAGE_BYTES, signal })).value;
  }

  /** A conversation by its id, each message with its answers. */
  async thread(id, { signal } = {}) {
    const path = `crosstalk/threads/${encodeURIComponent(id)}`;
    return (await this.#json("GET", path, { maxBytes: MAX_THREAD_BYTES, signal })).value;
  }

  /**
   * The messages of an address as they come, each once, with its `cursor`. When the connection breaks, the stream goes on after
   * the last message. It ends when the loop over it ends, by `signal`, or when the relay rejects it.
   */
  async *stream(address, { after, signal } = {}) {
    let cursor = after;
    let firstPause = FIRST_PAUSE_SECONDS;
    let failures = 0;
    let wasOpen = false;
    for (;;) {
      let retryAfter;
      try {
        for await (const event of this.#events(address, cursor, signal)) {
          wasOpen = true;
          failures = 0;
          if (event.retry !== undefined) firstPause = event.retry / 1000;
          if (event.id !== undefined) cursor = event.id;
          if (event.type === "message" && event.data !== "") yield { ...parseJson(event.data), cursor };
        }
      } catch (error) {
        signal?.throwIfAborted();
        // A stream that was never open may have the wrong URL. One that was open waits for its relay as long as it takes.
        if (!isRepeatable(error) || (!wasOpen && failures + 1 >= this.#attempts)) throw error;
        retryAfter = error.retryAfter;
      }
      await pause(pauseSeconds(failures, { firstPause, retryAfter }), signal);
      failures += 1;
    }
  }

  /** Uploads an attachment. A message refers to it by the `digest` of the result. */
  async upload(content, { signal } = {}) {
    const body = await bytesOf(content);
    const digest = await digestOf(body);
    const { value } = await this.#json("PUT", `crosstalk/blobs/${digest}`, {
      headers: { "Content-Type": "application/octet-stream" },
      body,
      wait: body.length / SLOW_BYTES_PER_SECOND,
      signal,
    });
    return value;
  }

  /** The bytes of an attachment. They are checked against the digest. */
  async download(digest, { maxBytes = 64 << 20, signal } = {}) {
    const { bytes } = await this.#request("GET", `crosstalk/blobs/${encodeURIComponent(digest)}`, {
      accept: "application/octet-stream, application/json",
      maxBytes,
      wait: maxBytes / SLOW_BYTES_PER_SECOND,
      signal,
    });
    if ((await digestOf(bytes)) !== digest) {
      throw new CrosstalkError(`The bytes that the relay sent are not ${digest}.`, {
        code: "E-FORMAT",
        help: "Ask the sender to upload the attachment again.",
      });
    }
    return bytes;
  }

  async #json(method, path, request) {
    const { headers, bytes } = await this.#request(method, path, { accept: "application/json", ...request });
    return { headers, value: parseJson(new TextDecoder().decode(bytes)) };
  }

  /** Tries a request until it succeeds, fails for good, or was tried often enough. Every request here is safe to repeat. */
  async #request(method, path, { signal, ...request }) {
    for (let failures = 0; ; failures += 1) {
      signal?.throwIfAborted();
      try {
        return await this.#attempt(method, path, { signal, ...request });
      } catch (error) {
        signal?.throwIfAborted();
        if (!isRepeatable(error) || failures + 1 >= this.#attempts) throw error;
        await pause(pauseSeconds(failures, error), signal);
      }
    }
  }

  async #attempt(method, path, { wait = 0, maxBytes = MAX_PAGE_BYTES, signal, ...request }) {
    const deadline = new Deadline(REQUEST_SECONDS + wait, signal);
    try {
      const response = await this.#open(method, path, request, deadline);
      const bytes = await this.#receive(response, maxBytes, deadline);
      if (!response.ok) throw rejectionOf(this.#base, response, bytes);
      return { headers: response.headers, bytes };
    } finally {
      deadline.release();
    }
  }

  /** The events of one connection. */
  async *#events(address, cursor, signal) {
    const deadline = new Deadline(REQUEST_SECONDS, signal);
    try {
      const response = await this.#open(
        "GET",
        "crosstalk/inbox",
        {
          // The second is for a rejection.
          accept: "text/event-stream, application/json;q=0.1",
          query: { for: address },
          headers: cursor === undefined ? {} : { "Last-Event-ID": cursor },
        },
        deadline,
      );
      if (!response.ok) {
        throw rejectionOf(this.#base, response, await this.#receive(response, MAX_MESSAGE_BYTES, deadline));
      }
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
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  /** The bytes of a response as they come. Whoever stops reading closes the connection. */
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
    return new CrosstalkError(`${this.#base} cannot be reached: ${reasonOf(cause)}.`, {
      code: "E-ROUTE",
      help: "Check the URL, and that the relay runs (`crosstalk serve`).",
      temporary: true,
      cause,
    });
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
    this.#until = Date.now() + seconds * 1000;
  }

  nextSeconds() {
    const seconds = Math.ceil((this.#until - Date.now()) / 1000);
    return Math.min(Math.max(seconds, 0), MAX_WAIT_SECONDS);
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
    }, seconds * 1000);
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
  const isUsable = base !== undefined && /^https?:$/.test(base.protocol) && base.username === "" && base.password === "";
  if (!isUsable) {
    throw new CrosstalkError("The URL of the relay is not an http or https URL without a user name.", {
      code: "E-FORMAT",
      help: "Write the URL as in `http://127.0.0.1:8799`, and pass the secret as `token`.",
    });
  }
  base.search = "";
  base.hash = "";
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
  const after = response.headers.get("retry-after");
  const retryAfter = /^\d{1,9}$/.test(after ?? "") ? Number(after) : error?.retry_after;
  if (typeof error?.code === "string") {
    const { code, what, detail, help, rule, line, column } = error;
    // 504 says that the deadline of the message has passed, which no attempt changes.
    const temporary = status !== 504 && isTemporary(status);
    return new CrosstalkError(what ?? detail, { code, help: help ?? undefined, rule, line, column, status, retryAfter, temporary });
  }
  // A browser shows a redirection as status 0.
  const isRedirection = status < 400;
  return new CrosstalkError(
    isRedirection ? `${base} redirects to another URL.` : `${base} answered with status ${status}, and not as a relay does.`,
    {
      code: status === 401 || status === 403 ? "E-PERM" : "E-ROUTE",
      help: "Check that this is the URL of a relay, and whether a proxy stands before it.",
      status,
      retryAfter,
      temporary: isTemporary(status),
    },
  );
}

function isTemporary(status) {
  return status === 408 || status === 429 || status >= 500;
}

function isRepeatable(error) {
  return error.temporary === true && !(error.retryAfter > MAX_RETRY_AFTER_SECONDS);
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CrosstalkError("The answer of the relay is not JSON.", {
      code: "E-ROUTE",
      help: "Check that this is the URL of a relay, and whether a proxy stands before it.",
      cause,
    });
  }
}

function reasonOf(cause) {
  // Node.js says `fetch failed`, and the reason in the cause.
  const inner = cause?.cause?.code ?? cause?.cause?.message;
  return inner ?? cause?.message ?? String(cause);
}

/** The pause after some failures: it doubles, up to a limit, and is shortened by chance so that clients do not come all at once. */
function pauseSeconds(failures, { retryAfter = 0, firstPause = FIRST_PAUSE_SECONDS } = {}) {
  const longest = Math.min(firstPause * 2 ** failures, MAX_PAUSE_SECONDS);
  const seconds = longest * (0.5 + Math.random() / 2);
  return retryAfter + seconds;
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
