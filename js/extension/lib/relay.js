// The paired relay. Nothing is sent to any other place.

import { CrosstalkError } from "../ai-crosstalk/error.js";
import { Relay } from "../ai-crosstalk/relay.js";
import { admit, core } from "./core.js";
import { load, update } from "./storage.js";

const MAX_ANSWER_BYTES = 8 << 20;
const MAX_ERRANDS = 100;

/** One request to a relay. */
async function request(url, method, path, { token, body } = {}) {
  let response;
  try {
    response = await fetch(new URL(path, url), {
      method,
      headers: {
        Accept: "application/json",
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      redirect: "error",
      credentials: "omit",
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    throw new CrosstalkError("The relay can't be reached, or it does not know this extension.", {
      help: "Check the URL, and that the origin of this extension is in its configuration.",
    });
  }
  const text = await response.text();
  if (text.length > MAX_ANSWER_BYTES) throw new CrosstalkError("The answer of the relay is too long.", {});
  let value = null;
  try {
    value = text === "" ? null : JSON.parse(text);
  } catch {
    throw new CrosstalkError("This URL is not that of a relay.", { status: response.status });
  }
  if (response.ok) return value;
  const { what, help, code } = value?.error ?? {};
  throw new CrosstalkError(what ?? `The relay answered with status ${response.status}.`, { help: help ?? "", code, status: response.status });
}

/** The URL of a relay, with a slash at its end; https, or this machine. */
export function relayUrl(text) {
  let url;
  try {
    url = new URL(text.trim());
  } catch {
    throw new CrosstalkError("This is not a URL.", { help: "Write it as in http://127.0.0.1:8799." });
  }
  const isLocal = url.protocol === "http:" && ["localhost", "127.0.0.1"].includes(url.hostname);
  if ((url.protocol !== "https:" && !isLocal) || url.username !== "" || url.password !== "") {
    throw new CrosstalkError("A relay is reached by https, or by http on this machine.", { help: "Write https://…, without a user name." });
  }
  url.search = "";
  url.hash = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url.href;
}

/** Trades a pairing code for a token. */
export async function pair(address, code) {
  const url = relayUrl(address);
  const { token, name, addresses, courier } = (await request(url, "POST", "crosstalk/pair", { body: { code } })) ?? {};
  const isText = (value) => typeof value === "string";
  const isList = (value) => Array.isArray(value) && value.every(isText);
  if (!isText(token) || !isText(name) || !isList(addresses) || !isList(courier)) {
    throw new CrosstalkError("This URL is not that of a relay.", { help: "Check the URL with the operator." });
  }
  await update("relay", () => ({ url, token, name, addresses, courier }));
}

/** Revokes the token at the relay, and forgets it. */
export async function unpair() {
  const relay = await load("relay");
  if (relay === null) return;
  try {
    await request(relay.url, "DELETE", "crosstalk/pair", { token: relay.token });
  } catch (error) {
    // A token that does not count any more needs no revocation.
    if (error.status !== 401) throw error;
  }
  await forgetRelay();
}

/** Forgets the token without asking the relay. */
export async function forgetRelay() {
  await update("relay", () => null);
  await update("errands", () => []);
}

/** Everything about the relay that a person may see: never the token. */
export async function relayState() {
  const relay = await load("relay");
  if (relay === null) return null;
  const { url, name, addresses, courier } = relay;
  return { url, name, addresses, courier };
}

async function paired() {
  const relay = await load("relay");
  if (relay === null) throw new CrosstalkError("No relay is paired.", { help: "Pair one on the options page." });
  return relay;
}

/** What waits at the relay to be carried to a chat: `{ id, to, envelope }`. */
export async function deliveries() {
  const { url, token } = await paired();
  const { messages } = await request(url, "GET", "crosstalk/courier", { token });
  const mine = await load("errands");
  return messages.map(({ id, to, envelope, text }) => {
    const errand = mine.find((known) => known.id === id && known.to === to);
    return { id, to, envelope: envelope ?? text, isAway: errand !== undefined, answer: errand?.answer ?? null };
  });
}

/** Whether an address is one of a chat with this name. */
export function isFor(to, chatName) {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(to)?.[1];
  return (scheme ?? to).toLowerCase() === chatName.toLowerCase();
}

/** A message for a chat, without the trace of the relays, which a chat has no use for and no signature covers. */
export function withoutTrace(envelope) {
  const [head, ...rest] = envelope.split(/^(?=(?:body|response): \|$)/m);
  return head.replace(/^meta: audit\n(?:[^\n]+\n)*\n?/gm, "") + rest.join("");
}

/** Notes that a delivery is in a chat. */
export async function noteErrand(delivery, chat) {
  const errand = { id: delivery.id, to: delivery.to, envelope: delivery.envelope, origin: chat.origin, tab: chat.tab, at: Date.now(), answer: null };
  await update("errands", (all) => [errand, ...all.filter(({ id, to }) => id !== errand.id || to !== errand.to)].slice(0, MAX_ERRANDS));
}

/** Looks for answers to deliveries in what a chat shows. They wait for a click before they go to the relay. */
export async function matchAnswers(texts, chat) {
  const errands = await load("errands");
  if (!errands.some(({ tab }) => tab === chat.tab)) return;
  const { parse } = await core();
  for (const text of texts) {
    const admitted = await admit(text);
    if (admitted.text === null) continue;
    const { parent, thread, session, sender, receiver } = admitted.envelope;
    const found = errands.find((errand) => {
      if (errand.tab !== chat.tab || errand.answer !== null) return false;
      const [asked] = parse(errand.envelope, { reading: "strict" }).envelopes;
      if (asked === undefined) return false;
      // The delivery itself stands on the page, too.
      if (sender === asked.sender && admitted.envelope.body === asked.body) return false;
      const isPart = parent === errand.id || (thread && thread === asked.thread) || (session && session === asked.session);
      return isPart && receiver?.toLowerCase() === asked.sender?.toLowerCase();
    });
    if (found === undefined) continue;
    await update("errands", (all) => all.map((errand) => (errand.id === found.id && errand.to === found.to ? { ...errand, answer: admitted.text } : errand)));
  }
}

/** Returns the answer of a chat that the person saw to the relay, and reports the delivery as carried. */
export async function returnAnswer(id, to, answer) {
  const { url, token } = await paired();
  const errand = (await load("errands")).find((known) => known.id === id && known.to === to);
  if (!errand?.answer || errand.answer !== answer) throw new CrosstalkError("The chat has another answer by now.", { help: "Look at it first." });
  const { parse, reply } = await core();
  const [envelope] = parse(errand.answer, { reading: "strict" }).envelopes;
  const isSigned = envelope.sig !== null && envelope.sig !== "none";
  const intent = envelope.intent?.meaning;
  const options = { from: to, user: envelope.user ?? undefined, ...(["ACK", "NACK", "RESPOND"].includes(intent) && { intent }) };
  const text = isSigned ? errand.answer : reply(errand.envelope, envelope.body, options);
  await new Relay(url, { token, retryFor: 5 }).send(text);
  await report(id, to, { state: "carried" });
}

/** Says what became of a delivery. */
export async function report(id, to, { state, reason }) {
  const { url, token } = await paired();
  try {
    await request(url, "POST", `crosstalk/courier/${encodeURIComponent(id)}`, { token, body: { to, state, ...(reason && { reason }) } });
  } catch (error) {
    // The answer itself may have settled it.
    if (error.status !== 404) throw error;
  }
  await update("errands", (all) => all.filter((errand) => errand.id !== id || errand.to !== to));
}

/** Hands an admitted message in at the relay. */
export async function sendToRelay(text) {
  const { url, token } = await paired();
  await new Relay(url, { token, retryFor: 5 }).send(text);
}
