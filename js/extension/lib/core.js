// The Rust core, which is loaded when the first text comes that may hold an envelope.

import * as crosstalk from "../ai-crosstalk/index.js";
import { load } from "./storage.js";
import { plain } from "./text.js";

/** The most characters of one text. */
export const MAX_TEXT = 256 << 10;

export async function core() {
  await crosstalk.ready();
  return crosstalk;
}

/** What a badge says, by the verdict of the core. */
const CLASSES = {
  verified: "verified",
  "first-contact": "first-contact",
  unbound: "first-contact",
  "unknown-key": "first-contact",
  unsigned: "unsigned",
  damaged: "damaged",
  "not-verified": "damaged",
  revoked: "damaged",
};

/** Commands are for the command line: here, the way out is a button. */
function wayOut(report, kind) {
  if (kind === "first-contact" && report.fingerprint) {
    return "Compare the fingerprint with the sender by voice, then trust the key in the panel.";
  }
  return /`crosstalk/.test(report.next) ? "" : report.next;
}

/** The public key that came with a message, or that its key id is. */
function offeredKey(envelope, report) {
  if (report.pkid === null || report.fingerprint === null) return null;
  const block = envelope?.meta.find(({ namespace }) => namespace === "key");
  const field = (name) => block?.fields.find(({ key }) => key === name)?.value;
  if (field("Key-ID") === report.pkid && field("Public-Key")) return field("Public-Key");
  return null;
}

/**
 * Reads a text of a chat, once, with the paste reading. What goes on from here is `text`: rebuilt from the verified bytes, or
 * without a signature.
 */
export async function admit(text) {
  const { parse, verify, build } = await core();
  if (typeof text !== "string" || text.length > MAX_TEXT) return rejected("The text is longer than 256 KiB.");
  const { envelopes, errors } = parse(text);
  const [envelope] = envelopes;
  if (envelope === undefined) {
    const finding = errors[0];
    return rejected(finding?.message ?? "There is no message in this text.", finding?.help);
  }
  if (envelopes.length > 1) return rejected("There are several messages in one text.", "Copy them one by one.");
  const keys = await load("keys");
  const pinned = keys.filter(({ decision }) => decision === "pinned");
  let report;
  try {
    report = verify(text, { keys: pinned.map(({ id, key }) => ({ id, key })) });
  } catch (error) {
    return rejected(error.message, error.help);
  }
  const key = offeredKey(envelope, report);
  let kind = CLASSES[report.verdict] ?? "damaged";
  let sentence = report.sentence;
  // A key that is its own name proves that one key signed, and not whose it is.
  if (kind === "verified" && report.trust === "did") kind = "first-contact";
  const known = keys.find(({ id }) => id === report.pkid);
  if (kind === "first-contact" && known !== undefined && known.fingerprint !== report.fingerprint) {
    kind = "damaged";
    sentence = `Signed with another key than ${known.decision === "pinned" ? "the one that you trust" : "before"} for ${report.pkid}.`;
  }
  if (known?.decision === "rejected" && known.fingerprint === report.fingerprint) {
    kind = "damaged";
    sentence = `You rejected this key of ${report.pkid}.`;
  }
  const isWhole = report.envelope !== null && kind !== "damaged";
  let admitted = report.envelope;
  if (!isWhole) admitted = unsignedText(build, envelope);
  // The fields are those of the text that goes on, and of no other reading.
  const shown = (admitted === null ? undefined : parse(admitted, { reading: "strict" }).envelopes[0]) ?? envelope;
  return {
    kind,
    verdict: report.verdict,
    sentence,
    next: wayOut(report, kind),
    lines: report.lines,
    repairs: report.repairs.map(({ message }) => message),
    pkid: report.pkid,
    fingerprint: report.fingerprint,
    key,
    isSigned: isWhole && report.pkid !== null,
    text: admitted,
    envelope: summary(shown),
  };
}

/** The message without its signature, as everything that did not verify goes on. */
function unsignedText(build, envelope) {
  const meta = envelope.meta.filter(({ namespace }) => !["key", "integrity"].includes(namespace));
  try {
    return build({ ...envelope, version: "v1", meta, sig: "none", repairs: undefined, diagnostics: undefined });
  } catch {
    return null;
  }
}

function summary({ sender, receiver, user, session, thread, parent, message, context, intent, body }) {
  const type = intent?.meaning ?? intent?.written ?? null;
  return { sender, receiver, user, session, thread, parent, message, context, intent: type, body };
}

function rejected(sentence, next = "") {
  return {
    kind: "damaged",
    verdict: "not-verified",
    sentence,
    next: next ?? "",
    lines: [],
    repairs: [],
    pkid: null,
    fingerprint: null,
    key: null,
    isSigned: false,
    text: null,
    envelope: null,
  };
}

/** The lines of a forward, quoted so that no line can pass for one of ours or for a message. */
export function quoted(text) {
  return plain(text).split("\n").map((line) => `| ${line}`.trimEnd()).join("\n");
}

/** A forward of a message to another chat: who said it, whether that is proven, and what they said. */
export function forwardBody(admitted, words) {
  const { sender, context } = admitted.envelope;
  const proof = { verified: "verified", "first-contact": "signed, key not compared", unsigned: "unsigned" }[admitted.kind];
  const about = context === null ? "" : ` about “${plain(context)}”`;
  const said = `${plain(sender)} wrote${about} (${proof ?? "not verified"}):`;
  return [...(words ? [words, ""] : []), said, "", quoted(admitted.envelope.body)].join("\n");
}
