// The types of the package. The forms of results are those of `crosstalk schema`; a test compares them.

export { Relay } from "./relay.js";
export type * from "./relay.js";

/** The codes of the error taxonomy. */
export type ErrorCode =
  | "E-ROUTE"
  | "E-CONSENT"
  | "E-FORMAT"
  | "E-TOO-LARGE"
  | "E-PERM"
  | "E-RATE"
  | "E-TIMEOUT"
  | "E-UNSUPPORTED";

/** A failure: what happened (`message`), and what to do about it (`help`). */
export class CrosstalkError extends Error {
  constructor(
    message: string,
    details: {
      code?: ErrorCode | null;
      rule?: string | null;
      help?: string | null;
      line?: number | null;
      column?: number | null;
      status?: number | null;
      retryAfter?: number | null;
      temporary?: boolean;
      cause?: unknown;
    },
  );
  name: "CrosstalkError";
  /** The code of the error taxonomy; null if no text makes the call valid. */
  readonly code: ErrorCode | null;
  /** The rule of the specification that is broken, such as `ENV-022`. */
  readonly rule: string | null;
  /** What to do about it. */
  readonly help: string | null;
  /** The line of the text, from 1. */
  readonly line: number | null;
  readonly column: number | null;
  /** Of a request to a relay: the HTTP status; null if no answer came. */
  readonly status: number | null;
  /** Of a request to a relay: after how many seconds to try again. */
  readonly retryAfter: number | null;
  /** Of a request to a relay: whether another attempt may work. */
  readonly temporary: boolean;
}

/**
 * Loads the WebAssembly module where that takes time: in a browser. Elsewhere it is loaded by the import.
 * @param source its URL, response or bytes, if it is not beside the package's files
 */
export function ready(source?: string | URL | Request | Response | BufferSource | WebAssembly.Module): Promise<void>;

/** How much a finding weighs. */
export type Severity = "error" | "warning" | "repair" | "note";

/** A finding about a text: a rule, a place, a sentence, and the way out. */
export interface Finding {
  rule: string;
  severity: Severity;
  code: ErrorCode | null;
  /** From 1. */
  line: number;
  /** From 1, in characters. */
  column: number;
  message: string;
  /** What to do; empty if there is nothing to say. */
  help: string;
}

/** An intent as it was written, and the core intent that it means. */
export interface Intent {
  written: string;
  meaning: string;
}

/** A META block, with its keys in their order. */
export interface MetaBlock {
  namespace: string;
  fields: { key: string; value: string }[];
}

/** An envelope that was read. */
export interface Envelope {
  sender: string;
  receiver: string;
  version: string;
  user: string | null;
  session: string | null;
  thread: string | null;
  parent: string | null;
  message: string | null;
  context: string | null;
  intent: Intent | null;
  /** All headers in their order, the known ones as well. */
  headers: { name: string; value: string }[];
  meta: MetaBlock[];
  body: string;
  /** There if the text stands under `response:`. */
  body_name?: "response";
  sig: string | null;
  /** The findings that are repairs. */
  repairs: Finding[];
  diagnostics: Finding[];
}

/** The object of `crosstalk parse --json`. */
export interface ParseReport {
  schema: "crosstalk.parse/1";
  /** The accepted envelopes. */
  envelopes: Envelope[];
  /** The findings that belong to no accepted envelope. */
  errors: Finding[];
}

/** A value of a META key; all but texts are written as JSON. */
export type MetaValue = string | number | boolean | null | MetaValue[] | { [key: string]: MetaValue };

/** A message to write. Without a thread or a message id, it gets one. */
export interface MessageInput {
  sender: string;
  receiver: string;
  version?: string;
  user?: string | null;
  session?: string | null;
  thread?: string | null;
  parent?: string | null;
  message?: string | null;
  context?: string | null;
  intent?: string | Intent | null;
  headers?: { name: string; value: MetaValue }[] | { [name: string]: MetaValue };
  meta?:
    | { namespace: string; fields: { key: string; value: MetaValue }[] | { [key: string]: MetaValue } }[]
    | { [namespace: string]: { [key: string]: MetaValue } };
  body?: string;
  body_name?: "response";
  sig?: string | null;
  repairs?: Finding[];
  diagnostics?: Finding[];
}

/** The object of `crosstalk lint --json`. */
export interface LintReport {
  schema: "crosstalk.lint/1";
  /** How many envelopes were accepted. */
  envelopes: number;
  counts: { [severity in Severity]: number };
  diagnostics: Finding[];
}

/** The result of a verification. Only a `verified` message may be acted on without a further look. */
export type Verdict =
  | "verified"
  | "first-contact"
  | "unbound"
  | "unsigned"
  | "unknown-key"
  | "damaged"
  | "not-verified"
  | "revoked";

/** The object of `crosstalk verify --json`. */
export interface VerifyReport {
  schema: "crosstalk.verify/1";
  verdict: Verdict;
  /** The state of the body; null if the head is not authentic. */
  body: "intact" | "reflowed" | "truncated" | "altered" | null;
  /** The lines that the state of the body points at. */
  lines: number[];
  /** The line after which a truncated body ends or has its first gap. */
  after: number | null;
  pkid: string | null;
  algorithm: string | null;
  fingerprint: string | null;
  /** Where the key comes from. */
  trust: "dns" | "pinned" | "did" | "given" | "first-contact" | "unsigned" | "unknown-key" | "rc1" | null;
  since: string | null;
  dnssec: "secure" | "insecure" | "indeterminate" | null;
  sender: string | null;
  receiver: string | null;
  message: string | null;
  signed_at: string | null;
  /** The verdict as a sentence for people. */
  sentence: string;
  /** What to do, as a sentence for people. */
  next: string;
  rule: string | null;
  code: ErrorCode | null;
  /** Whether the same check may give another verdict later. */
  retry: boolean;
  key_change: { known: string; offered: string } | null;
  /** The message as it was signed: the only text to show as such. */
  envelope: string | null;
  /** The body as it was signed, where its line breaks could be restored. */
  restored: string | null;
  repairs: Finding[];
}

/** The object of `crosstalk address parse --json`. */
export interface AddressReport {
  schema: "crosstalk.address/1";
  address: string;
  valid: boolean;
  kind: "name" | "person" | "assistant" | "mail" | "phone" | "tool" | "room" | "custom";
  /** Whether the scheme is in the registry. */
  registered: boolean;
  scheme: string | null;
  authority: string | null;
  user: string | null;
  host: string | null;
  query: string | null;
  fragment: string | null;
  path: string;
  diagnostics: {
    rule: string;
    severity: "error" | "warning" | "note";
    code: ErrorCode | null;
    message: string;
    help: string;
  }[];
}

/** A kind of personal data. */
export type PiiKind = "iban" | "card" | "nin" | "email" | "ip" | "phone" | "name";

/** The object of `crosstalk redact --json`. */
export interface RedactReport {
  schema: "crosstalk.redact/1";
  /** The text with placeholders. */
  text: string;
  found: { kind: PiiKind; line: number; column: number; placeholder: string }[];
  fields: PiiKind[];
}

/** A signature algorithm. */
export type Algorithm = "ed25519" | "secp256r1";

/** A new key. */
export interface GeneratedKey {
  /** The secret: PKCS#8 in PEM, not encrypted. */
  privateKeyPem: string;
  publicKeyPem: string;
  /** The public key as a text for DNS and trust files, `ed25519:pk=…`. */
  record: string;
  /** The public key as a key id, `did:key:…`. */
  did: string;
}

/**
 * Finds the envelopes in a text. `strict` accepts only what a relay accepts; `paste`, the default, repairs what chats and mail
 * programs do to a text. Bad text gives a report with errors; the function does not throw.
 */
export function parse(text: string, options?: { reading?: "strict" | "paste" }): ParseReport;

/** Writes an envelope, or several, from a message, a list of messages, or the result of `parse`. */
export function build(message: MessageInput | MessageInput[] | ParseReport): string;

/**
 * Writes the answer to the one message in a text. It keeps thread, session and context, and goes to the sender in the name of
 * the receiver, unless `from` names another one.
 */
export function reply(
  text: string,
  body: string,
  options?: { from?: string; user?: string; intent?: string; context?: string },
): string;

/** Repairs the envelopes of a text and writes them well-formed. Signatures stay valid. */
export function format(text: string): string;

/** Rewrites the v1.0 envelopes of a text as v1.1. */
export function migrate(text: string): string;

/** Every finding about the envelopes of a text. */
export function lint(text: string): LintReport;

/** The canonical form of a strict envelope: the bytes that a signature covers. */
export function canonical(text: string): Uint8Array;

/** The digest of the canonical form, `sha256:…`. */
export function digest(text: string): string;

/** Makes a new key, `ed25519` unless another algorithm is given. */
export function generateKey(options?: { algorithm?: Algorithm }): GeneratedKey;

/**
 * Signs the envelopes of a text. `keyId` is the id by which receivers find the public key; `withKey` sends it along. `replace`
 * signs a message anew that is signed already, and `at` is the time to write, by default now.
 */
export function sign(
  text: string,
  privateKeyPem: string,
  options: { keyId: string; withKey?: boolean; replace?: boolean; at?: Date | string | number },
): string;

/**
 * Verifies the one message in a text. `keys` are the public keys that you trust, in PEM or as a record, each with the id that it
 * signs under. The keys of the id that signed are the only ones that count for it.
 */
export function verify(
  text: string,
  options?: { keys?: Iterable<{ id: string; key: string }>; at?: Date | string | number },
): VerifyReport;

/** The text that teaches the assistant of an address the format, with the name of the person whom it answers. */
export function primer(address: string, me: string): string;

/** A new message or thread id, a ULID. */
export function newId(): string;

/** The parts of an address, and its findings. */
export function parseAddress(text: string): AddressReport;

/** Replaces personal data in a text and the envelopes in it by placeholders such as `[EMAIL]`. */
export function redact(text: string): RedactReport;
