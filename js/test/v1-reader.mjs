// A reader of v1.0 envelopes, written from the description of what the first public program does. Tests use it to see what
// a v1.0 program makes of our envelopes; the benchmark measures beside it.

/** Reads the first envelope of a text as a v1.0 program does. Throws if there is none. */
export function readV1(text) {
  const direction = /\[\[(.+?)→(.+?) v(\d+)\]\]/.exec(text);
  // A line end may have become a space, so the value also ends at the next key.
  const session = /\bsession: *(\S.*?) *(?=\n|$| (?:user|context|intent|response|body|sig): )/.exec(text);
  if (direction === null || session === null) {
    throw new Error("Invalid envelope format: missing header or session");
  }
  const content =
    /\bresponse: \|([^]*?)\[\[END\]\]/.exec(text) ?? /\bbody: \|([^]*?)\ssig:/.exec(text);
  if (content === null) {
    throw new Error("Invalid envelope format: missing response or body content");
  }
  return {
    from: direction[1],
    to: direction[2],
    version: direction[3],
    session: session[1],
    body: content[1].replace(/^ {2}/gm, "").trim(),
  };
}
