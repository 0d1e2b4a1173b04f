// The popup of the toolbar button: enables the site of the current tab, and opens the panel.

import { addSite, runIn, siteOf } from "../lib/sites.js";
import { browser, load } from "../lib/storage.js";
import { byId, guarded, say } from "./view.js";

const [tab] = await browser.tabs.query({ active: true, currentWindow: true });
const origin = siteOf(tab?.url ?? "");
const sites = await load("sites");
const isAdded = sites.some((site) => site.origin === origin);
byId("site").textContent = origin === null ? "This page can't be read." : isAdded ? `In use on ${origin}.` : `Not in use on ${origin}.`;
for (const id of ["always", "once"]) byId(id).hidden = origin === null || isAdded;

byId("always").addEventListener("click", guarded(async () => {
  if (!(await addSite(origin, tab.id))) return say("The browser did not give the permission.", true);
  await runIn(tab.id);
  byId("site").textContent = `In use on ${origin}.`;
  for (const id of ["always", "once"]) byId(id).hidden = true;
  say("Messages on this page get badges now.");
}));
byId("once").addEventListener("click", guarded(async () => {
  await runIn(tab.id, { isAllowedOnce: true });
  say("Messages on this page get badges now.");
}));
byId("options").addEventListener("click", () => void browser.runtime.openOptionsPage());
byId("panel").addEventListener("click", guarded(async () => {
  if (browser.sidePanel?.open !== undefined) await browser.sidePanel.open({ tabId: tab.id });
  else if (browser.sidebarAction?.open !== undefined) await browser.sidebarAction.open();
  else await browser.tabs.create({ url: browser.runtime.getURL("pages/panel.html") });
  window.close();
}));
globalThis.crosstalkPageIsReady = true;
