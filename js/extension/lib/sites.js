// The sites that the person added: their permission, their name in envelopes, and the script beside their pages.

import { browser, load, update } from "./storage.js";

// From the root: Firefox takes other paths from the page that asks.
const SCRIPT = "/content/main.js";

/** Names of the chats that most people use. Nothing else depends on them. */
const NAMES = new Map([
  ["chatgpt.com", "CHATGPT"],
  ["chat.openai.com", "CHATGPT"],
  ["claude.ai", "CLAUDE"],
  ["gemini.google.com", "GEMINI"],
]);

/** The origin of a URL that the extension may be used on; null for others. */
export function siteOf(url) {
  let at;
  try {
    at = new URL(url);
  } catch {
    return null;
  }
  const isLocal = at.protocol === "http:" && ["localhost", "127.0.0.1"].includes(at.hostname);
  return at.protocol === "https:" || isLocal ? at.origin : null;
}

/** The name of a chat in envelopes. */
export function nameOf(origin, sites) {
  const known = sites.find((site) => site.origin === origin)?.name;
  if (known) return known;
  const { hostname } = new URL(origin);
  const [first] = hostname.replace(/^(www|chat|app)\./, "").split(".");
  return NAMES.get(hostname) ?? (/^\d+$/.test(first) ? "CHAT" : first.toUpperCase());
}

/** The pattern of a site: patterns have no ports, so a site on another port is asked for again when its page loads. */
export function patternOf(origin) {
  const { protocol, hostname } = new URL(origin);
  return `${protocol}//${hostname}/*`;
}

/**
 * Adds a site. It has to be called from a click: the browser asks for the permission. The question closes a popup, which never hears
 * the answer; so what was asked for is noted, and the background adds the site, too, when the permission comes.
 */
export async function addSite(origin, tab = null) {
  // Nothing may be awaited before the request: the browser would forget the click.
  const noted = browser.storage.session.set({ asked: { origin, tab } });
  const isGranted = await browser.permissions.request({ origins: [patternOf(origin)] });
  if (isGranted) await keep(origin);
  await noted;
  await browser.storage.session.remove("asked");
  return isGranted;
}

/** Adds the site that a popup asked for, if the permission is for it. */
export async function addAsked({ origins = [] }) {
  const { asked } = await browser.storage.session.get("asked");
  if (asked === undefined || !origins.includes(patternOf(asked.origin))) return;
  await browser.storage.session.remove("asked");
  await keep(asked.origin);
  if (asked.tab !== null) await runIn(asked.tab);
}

async function keep(origin) {
  await update("sites", (sites) => {
    if (sites.some((site) => site.origin === origin)) return sites;
    return [...sites, { origin, name: nameOf(origin, sites) }];
  });
  await register();
}

export async function removeSite(origin) {
  const sites = await update("sites", (all) => all.filter((site) => site.origin !== origin));
  await register();
  const pattern = patternOf(origin);
  if (!sites.some((site) => patternOf(site.origin) === pattern)) {
    await browser.permissions.remove({ origins: [pattern] }).catch(() => {});
  }
}

export async function nameSite(origin, name) {
  await update("sites", (sites) => sites.map((site) => (site.origin === origin ? { ...site, name } : site)));
}

/** Makes the browser run the script beside the pages of all sites. */
export async function register() {
  const sites = await load("sites");
  const wanted = [...new Set(sites.map(({ origin }) => patternOf(origin)))];
  const allowed = [];
  for (const pattern of wanted) {
    if (await browser.permissions.contains({ origins: [pattern] })) allowed.push(pattern);
  }
  const [registered] = await browser.scripting.getRegisteredContentScripts({ ids: ["crosstalk"] });
  if (allowed.length === 0) {
    if (registered !== undefined) await browser.scripting.unregisterContentScripts({ ids: ["crosstalk"] });
    return;
  }
  const script = { id: "crosstalk", js: [SCRIPT], matches: allowed, allFrames: true, matchOriginAsFallback: true, runAt: "document_idle" };
  if (registered === undefined) await browser.scripting.registerContentScripts([script]);
  else await browser.scripting.updateContentScripts([script]);
}

/** Runs the script in a tab, with the permission that a click on the extension gives. */
export async function runIn(tab, { isAllowedOnce = false } = {}) {
  const target = { tabId: tab, allFrames: true };
  if (isAllowedOnce) await browser.scripting.executeScript({ target, func: () => (globalThis.crosstalkIsAllowedOnce = true) });
  await browser.scripting.executeScript({ target, files: [SCRIPT] });
}
