// Server-sent events out of the bytes of a response.

import { CrosstalkError } from "./error.js";

/**
 * The events of a stream. An event that the end of the stream cuts off is left out.
 *
 * @param {AsyncIterable<Uint8Array>} chunks
 * @param {number} maxChars the largest event
 * @returns {AsyncGenerator<{type: string, id?: string, data: string, retry?: number}>}
 */
export async function* readEvents(chunks, maxChars) {
  let event = newEvent();
  let chars = 0;
  for await (const line of readLines(chunks, maxChars)) {
    if (line === "") {
      if (event.data.length > 0 || event.id !== undefined || event.retry !== undefined) {
        yield { ...event, data: event.data.join("\n") };
      }
      event = newEvent();
      chars = 0;
      continue;
    }
    chars += line.length;
    checkSize(chars, maxChars);
    const [, name, value] = /^([^:]*)(?:: ?)?([^]*)$/.exec(line);
    if (name === "event") event.type = value;
    else if (name === "data") event.data.push(value);
    else if (name === "id") event.id = value;
    else if (name === "retry" && /^\d{1,9}$/.test(value)) event.retry = Number(value);
  }
}

function newEvent() {
  return { type: "message", id: undefined, data: [], retry: undefined };
}

/** The lines that ended. The parts of a long line are joined once, when its end is there. */
async function* readLines(chunks, maxChars) {
  const decoder = new TextDecoder();
  let parts = [];
  let chars = 0;
  for await (const chunk of chunks) {
    const pieces = decoder.decode(chunk, { stream: true }).split("\n");
    const rest = pieces.pop();
    for (const piece of pieces) {
      parts.push(piece);
      const line = parts.join("");
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
      parts = [];
      chars = 0;
    }
    parts.push(rest);
    chars += rest.length;
    checkSize(chars, maxChars);
  }
}

function checkSize(chars, maxChars) {
  if (chars > maxChars) {
    throw new CrosstalkError("The relay sent an event that is too large.", {
      code: "E-TOO-LARGE",
      help: "Read this inbox page by page, with a small `limit`.",
    });
  }
}
