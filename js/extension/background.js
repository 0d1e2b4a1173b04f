// Answers the scripts beside pages. They may have texts read, and open the panel; nothing else. Tokens and keys never go there.

import { admit } from "./lib/core.js";
import { addAsked, register, siteOf } from "./lib/sites.js";
import { browser, load } from "./lib/storage.js";

const MAX_TEXTS = 32;
const ACTIONS = ["compose", "reply", "save", "relay", "show", "copy"];

/** Whether a message comes from a script beside a page, and not from a page of the extension. */
function isFromPage(sender) {
  return sender.id === browser.runtime.id && sender.tab !== undefined && !sender.url?.startsWith(browser.runtime.getURL(""));
}

browser.runtime.onMessage.addListener((message, sender, respond) => {
  if (!isFromPage(sender)) return undefined;
  switch (message?.type) {
    case "settings":
      void settingsFor(sender, message.isAllowedOnce === true).then(respond);
      return true;
    case "read":
      if (!Array.isArray(message.texts)) return undefined;
      void Promise.all(message.texts.slice(0, MAX_TEXTS).map(admit)).then(respond, () => respond(null));
      return true;
    case "open":
      if (ACTIONS.includes(message.action)) void openPanel(message, sender);
      return undefined;
    default:
      return undefined;
  }
});

/** The shortcuts, for pages that the person enabled, and for a page that the extension was opened on by a click. */
async function settingsFor(sender, isAllowedOnce) {
  const sites = await load("sites");
  const { shortcuts, me } = await load("settings");
  const origin = siteOf(sender.tab.url ?? sender.url) ?? sender.origin;
  // A permission has no port: the site on another port of the same host is not enabled by it.
  const isOfHost = sites.some((site) => new URL(site.origin).hostname === hostOf(origin));
  const isEnabled = sites.some((site) => site.origin === origin);
  return isOfHost && !isEnabled && !isAllowedOnce ? null : { shortcuts, me };
}

function hostOf(origin) {
  try {
    return new URL(origin).hostname;
  } catch {
    return null;
  }
}

/** Opens the panel with something to do. */
async function openPanel({ action, text }, { tab }) {
  // A side panel opens only as long as the browser remembers the click: nothing may be awaited before it.
  const opened = panels.size > 0 ? undefined : browser.sidePanel?.open?.({ tabId: tab.id });
  const pending = { action, text: typeof text === "string" ? text.slice(0, 256 << 10) : null, tab: tab.id, at: Date.now() };
  await browser.storage.session.set({ pending });
  try {
    if (opened !== undefined) {
      await opened;
      return;
    }
  } catch {
    // Then it opens as a window.
  }
  // An open panel has taken it.
  if (panels.size > 0) return;
  await browser.windows.create({ url: browser.runtime.getURL(`pages/panel.html?tab=${tab.id}`), type: "popup", width: 460, height: 720 });
}

/** The open panels. A background that was asleep does not know them; then a window opens beside them. */
const panels = new Set();
browser.runtime.onConnect.addListener((port) => {
  if (port.name !== "panel" || isFromPage(port.sender)) return;
  panels.add(port);
  port.onDisconnect.addListener(() => panels.delete(port));
});

browser.runtime.onInstalled.addListener(() => void register());
browser.runtime.onStartup.addListener(() => void register());
browser.permissions.onAdded.addListener((permissions) => void addAsked(permissions));
browser.permissions.onRemoved.addListener(() => void register());

// Scripts beside pages follow changes of the shortcuts and of the trust in keys.
browser.storage.onChanged.addListener((changes) => {
  if (changes.settings !== undefined || changes.keys !== undefined) void tellPages();
});

async function tellPages() {
  const { shortcuts, me } = await load("settings");
  const tabs = await browser.tabs.query({});
  for (const { id } of tabs) browser.tabs.sendMessage(id, { type: "settings", shortcuts, me }).catch(() => {});
}
