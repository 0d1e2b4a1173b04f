// Writing messages, and the local history of threads.

import { admit, core, forwardBody } from "./core.js";
import { load, update } from "./storage.js";

const MAX_THREADS = 200;
const MAX_MESSAGES = 100;
const MAX_THREAD_CHARS = 512 << 10;

const MAX_TOPIC = 60;

/** What a message is about, where the person leaves that out: its first words. */
function topicOf(body) {
  const words = body.trim().split(/\s+/u);
  let topic = [...(words.shift() ?? "")].slice(0, MAX_TOPIC).join("");
  for (const word of words) {
    if ([...topic, ...word].length >= MAX_TOPIC) return `${topic} …`;
    topic += ` ${word}`;
  }
  return topic;
}

/** Writes a message, signed if the person wants that. */
export async function write({ to, context, intent = "REQUEST", body, thread = null }) {
  const { build, sign, newId } = await core();
  const { me, user, signs } = await load("settings");
  const text = build({ sender: me, receiver: to, user, thread: thread ?? newId(), message: newId(), context: context || topicOf(body) || "chat", intent, body });
  const identity = await load("identity");
  return signs && identity !== null ? sign(text, identity.privateKeyPem, { keyId: identity.did }) : text;
}

/** Writes the answer to an admitted message. */
export async function writeReply(admitted, body) {
  const { reply, sign } = await core();
  const { me, user, signs } = await load("settings");
  const text = reply(admitted.text, body, { from: me, user });
  const identity = await load("identity");
  return signs && identity !== null ? sign(text, identity.privateKeyPem, { keyId: identity.did }) : text;
}

/** Writes the forward of an admitted message to another chat, in the thread of the message. */
export async function writeForward(admitted, to, words) {
  const { context, thread } = admitted.envelope;
  const about = context ?? "forward";
  return write({ to, context: about, body: forwardBody(admitted, words), thread });
}

const isSameName = (one, other) => one?.toLowerCase() === other?.toLowerCase();

/** The thread that a message belongs to. */
function threadOf(threads, { thread, session, parent }) {
  const byParent = threads.find(({ messages }) => parent && messages.some(({ envelope }) => envelope.message === parent));
  if (byParent !== undefined) return byParent;
  const ids = [thread, session].filter(Boolean);
  return threads.find(({ messages }) => messages.some(({ envelope }) => ids.includes(envelope.thread) || ids.includes(envelope.session)));
}

/** Files an admitted message; the same text is filed once. Returns the id of its thread. */
export async function file(admitted, { isOwn, chat }) {
  const { envelope, text, kind, sentence } = admitted;
  let id;
  await update("threads", (threads) => {
    const message = { envelope, text, kind, sentence, isOwn, chat, at: Date.now() };
    const found = threadOf(threads, envelope);
    id = found?.id ?? envelope.thread ?? envelope.session ?? crypto.randomUUID();
    const old = found ?? { id, context: envelope.context ?? "", messages: [] };
    const isKnown = old.messages.some((known) => known.text === text || (!isOwn && envelope.message && known.envelope.message === envelope.message && known.envelope.body === envelope.body));
    const messages = isKnown ? old.messages : [...old.messages, message].slice(-MAX_MESSAGES);
    while (messages.length > 1 && messages.reduce((sum, m) => sum + m.text.length * 2, 0) > MAX_THREAD_CHARS) messages.shift();
    const thread = { ...old, at: isKnown ? old.at : Date.now(), messages };
    return [thread, ...threads.filter((other) => other !== found)].slice(0, MAX_THREADS);
  });
  return id;
}

/** Files a text that was written here. */
export async function fileOwn(text, chat) {
  return file(await admitOwn(text), { isOwn: true, chat });
}

async function admitOwn(text) {
  const admitted = await admit(text);
  return { ...admitted, kind: admitted.isSigned ? "verified" : "unsigned", sentence: "You wrote this." };
}

/** The questions of a thread that nobody has answered yet: `{ to, chat, message }`. */
export function waiting(thread) {
  const asked = thread.messages.filter(({ isOwn, envelope }) => isOwn && ["REQUEST", "POLL"].includes(envelope.intent));
  const answers = thread.messages.filter(({ isOwn }) => !isOwn);
  return asked.filter(({ envelope, at }) => !answers.some((a) => isSameName(a.envelope.sender, envelope.receiver) && a.at >= at)).map(({ envelope, chat }) => ({ to: envelope.receiver, chat, message: envelope.message }));
}

export async function forgetThread(id) {
  await update("threads", (threads) => threads.filter((thread) => thread.id !== id));
}

/**
 * Files what a chat answered to questions of ours. What a page shows is only filed as an answer to something that was asked
 * there, from whom it was asked of.
 */
export async function fileAnswers(texts, chat) {
  const threads = await load("threads");
  const filed = [];
  for (const text of texts) {
    const admitted = await admit(text);
    if (admitted.text === null) continue;
    const thread = threadOf(threads, admitted.envelope);
    if (thread === undefined) continue;
    const isAsked = waiting(thread).some(({ to, chat: asked }) => asked === chat && isSameName(to, admitted.envelope.sender));
    if (!isAsked) continue;
    await file(admitted, { isOwn: false, chat });
    filed.push(admitted);
  }
  return filed;
}
