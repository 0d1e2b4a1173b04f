// The open chats: which tabs there are, putting texts into them, and taking answers out of them.

import { core } from "./core.js";
import { nameOf, siteOf } from "./sites.js";
import { browser, load, update } from "./storage.js";

const MAX_PRIMED = 500;

/** Open tabs of enabled sites: `{ tab, origin, name, title, isActive }`. */
export async function chats() {
  const sites = await load("sites");
  const origins = new Set(sites.map(({ origin }) => origin));
  const tabs = await browser.tabs.query({});
  const open = tabs.filter(({ url }) => url !== undefined && origins.has(siteOf(url)));
  return open.map(({ id, url, title, active, lastAccessed }) => {
    const origin = siteOf(url);
    return { tab: id, origin, url, name: nameOf(origin, sites), title: title ?? "", isActive: active, lastAccessed: lastAccessed ?? 0 };
  });
}

/** Sends a message to the script beside a page. Pages of other sites in the tab do not hear it. */
async function tell({ tab, origin }, message) {
  try {
    return await browser.tabs.sendMessage(tab, { ...message, origin });
  } catch {
    return undefined;
  }
}

/** A fence that no line of the text closes. */
function fence(text) {
  let ticks = "```";
  for (const [inside] of text.matchAll(/`{3,}/g)) if (inside.length >= ticks.length) ticks = `${inside}\``;
  return `${ticks}\n${text.trimEnd()}\n${ticks}\n`;
}

const chatKey = (url) => {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
};

/** The text for a chat: the envelope in a fence, after the text that teaches the format if it is the first one there. */
export async function textFor(chat, envelope, to) {
  const primed = await load("primed");
  if (primed.includes(chatKey(chat.url))) return fence(envelope);
  const { primer } = await core();
  const { me } = await load("settings");
  return `${primer(to, me).trimEnd()}\n\n${fence(envelope)}`;
}

/** Puts an envelope into the input of a chat. The person sends it. */
export async function put(chat, envelope, to) {
  const text = await textFor(chat, envelope, to);
  const result = await tell(chat, { type: "insert", text });
  if (result === undefined) return { ok: false, reason: "The page does not answer. Load it again.", text };
  if (result.ok) {
    await update("primed", (all) => [chatKey(chat.url), ...all.filter((url) => url !== chatKey(chat.url))].slice(0, MAX_PRIMED));
  }
  return { ...result, text };
}

/** The last messages that a person can see in a chat, the newest first. */
export async function latest(chat, count = 5) {
  const texts = await tell(chat, { type: "latest", count });
  return Array.isArray(texts) ? texts.filter((text) => typeof text === "string") : [];
}
