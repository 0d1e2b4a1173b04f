// The client of a relay.

import type { Envelope, MessageInput } from "./index.js";

/** How a request can be ended. */
export interface RequestOptions {
  /** Ends the request; its promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
}

/** A client of one relay. Its failures are `CrosstalkError`s. */
export class Relay {
  /**
   * @param url the relay, such as `http://127.0.0.1:8799`
   * @param options `token` is the secret that `crosstalk token create` printed. `timeout` is how many seconds an attempt may
   *   take besides `wait`, and `retryFor` for how many seconds a request is tried again that may work later; both are 30.
   */
  constructor(url: string | URL, options?: { token?: string; timeout?: number; retryFor?: number });

  /** The URL of the relay. */
  readonly url: string;

  /**
   * Hands in a message: the text of an envelope, or an object in the form that `build` takes. The relay accepts it once,
   * however often it is tried. With `wait`, waits up to that many seconds for the answer.
   */
  send(message: MessageInput | string, options?: { wait?: number } & RequestOptions): Promise<SendResult>;

  /**
   * The messages that an address got and has not acknowledged, the oldest first. With `wait`, waits up to that many seconds
   * until there is one. `after` is the `cursor` of an earlier page.
   */
  inbox(address: string, options?: { after?: string; limit?: number; wait?: number } & RequestOptions): Promise<InboxPage>;

  /** Takes messages out of the inbox of an address: they are done. */
  acknowledge(address: string, ids: string | Iterable<string>, options?: RequestOptions): Promise<Acknowledged>;

  /** A message by its id. */
  read(id: string, options?: RequestOptions): Promise<RelayMessage>;

  /** A conversation by its id, each message with its answers. */
  thread(id: string, options?: RequestOptions): Promise<ThreadTree>;

  /**
   * The messages of an address as they come, each once. When the connection breaks, the stream goes on after the last
   * message. It ends when the loop over it ends, by `signal`, or when the relay rejects it.
   */
  stream(address: string, options?: { after?: string } & RequestOptions): AsyncGenerator<StreamMessage, never, void>;

  /** Uploads an attachment. A message refers to it by the `digest` of the result. */
  upload(content: string | ArrayBuffer | ArrayBufferView | Blob, options?: RequestOptions): Promise<Attachment>;

  /** The bytes of an attachment. They are checked against the digest. `maxBytes` is 64 MiB if it is missing. */
  download(digest: string, options?: { maxBytes?: number } & RequestOptions): Promise<Uint8Array>;
}

/** A message of a stream. */
export interface StreamMessage extends InboxMessage {
  /** The position after this message; a later stream goes on `after` it. */
  cursor: string;
}

// Written from the OpenAPI document of a relay: `CROSSTALK_WRITE_TYPES=1 node --test js/test/relay-types.test.mjs`.

/** The messages that an address has not acknowledged, the oldest first. */
export interface InboxPage {
  /** The messages. */
  messages: InboxMessage[];
  /** Where to go on. */
  cursor: string;
}

/** A message in an inbox. */
export interface InboxMessage extends RelayMessage {
  /** How far it is on its way; not in every listing. */
  state: DeliveryState;
  /** The number of this attempt to process it, from 1: one more than the failures that its recipient reported. Only in an inbox. */
  attempt: number;
}

/** A message that the relay has. */
export interface RelayMessage {
  /** Its id. */
  id: string;
  /** The thread that it belongs to. */
  thread: string;
  /** Its sender. */
  from: string;
  /** Its receiver. */
  to: string;
  /** The meaning of the intent that was written; null if there is none. */
  intent: string | null;
  /** How far it is on its way; not in every listing. */
  state?: DeliveryState;
  /** The number of this attempt to process it, from 1: one more than the failures that its recipient reported. Only in an inbox. */
  attempt?: number;
  /** When the relay accepted it. */
  received_at: string;
  /** The result of the verification of its signature when the relay accepted it. */
  signature?: "verified" | "first-contact" | "unbound" | "unsigned" | "unknown-key";
  /** The key id that signed it, where the signature holds. */
  pkid?: string;
  /** The envelope. */
  envelope: string;
  /** Of an ESCALATE and a HANDOFF: the thread so far, the oldest first. */
  history?: string[];
  /** How many texts are left out of the history: their consent was neither given to the recipient nor transferred, or they must not leave the organisation. */
  withheld?: number;
}

/** The result of an acknowledgement. */
export interface Acknowledged {
  /** Ids whose deliveries are in the state now. */
  changed: string[];
  /** Ids of which no delivery to this address is known. */
  unknown: string[];
}

/** An attachment that the relay has. */
export interface Attachment {
  /** Its digest. */
  digest: string;
  /** How many bytes it has. */
  size: number;
}

/** An accepted message: the ACK, and the recipient's answer if the caller waited for it and it came. */
export interface SendResult {
  /** `crosstalk.receive/1`. */
  schema: "crosstalk.receive/1";
  /** The ACK of the relay. */
  ack: Envelope;
  /** The recipient's answer. */
  answer: Envelope | null;
}

/** A conversation as a tree. */
export interface ThreadTree {
  /** The conversation. */
  thread: ThreadSummary;
  /** Its messages, each under the one that it answers. */
  messages: ThreadMessage[];
  /** Whether there are more messages than fit into one answer. */
  more: boolean;
}

/** A message of a thread, and its answers. */
export interface ThreadMessage extends RelayMessage {
  /** The messages that answer this one. */
  answers: ThreadMessage[];
}

/** A conversation. */
export interface ThreadSummary {
  /** Its id. */
  id: string;
  /** The topic. */
  context: string | null;
  /** The parties. */
  parties: string[];
  /** Whether it is not closed. */
  open: boolean;
  /** How many messages there are. */
  messages: number;
  /** When the latest came. */
  updated_at: string;
}

/** How far a delivery is. */
export type DeliveryState = "queued" | "delivered" | "read" | "acknowledged" | "failed" | "held" | "quarantined";
