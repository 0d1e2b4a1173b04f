// The options: names, sites, keys and trust decisions, the relay, shortcuts. The token is never shown.

import { forgetRelay, pair, relayState, unpair } from "../lib/relay.js";
import { addSite, nameSite, removeSite, siteOf } from "../lib/sites.js";
import { browser, load, update } from "../lib/storage.js";
import { core } from "../lib/core.js";
import { byId, element, guarded, plain, say } from "./view.js";

const button = (text, label, run) => element("button", { type: "button", text, "aria-label": label, on: guarded(run) });

async function showNames() {
  const { me, user, signs } = await load("settings");
  byId("me").value = me;
  byId("user").value = user;
  byId("signs").checked = signs;
}
byId("save-names").addEventListener("click", guarded(async () => {
  const [me, user] = [byId("me").value.trim(), byId("user").value.trim()];
  const { build, newId } = await core();
  // The builder knows what a name may be.
  build({ sender: me, receiver: "CHAT", user, thread: newId(), context: "names", intent: "REQUEST", body: "names" });
  await update("settings", (settings) => ({ ...settings, me, user }));
  say("Saved.");
}));

async function showSites() {
  const sites = await load("sites");
  const rows = sites.map(({ origin, name }) => {
    const field = element("input", { value: name, "aria-label": `Name of the chat on ${origin}`, spellcheck: "false" });
    field.addEventListener("change", guarded(async () => {
      await nameSite(origin, field.value.trim() || name);
      say("Saved.");
    }));
    const remove = button("Remove", `Remove ${origin}`, async () => {
      await removeSite(origin);
      await showSites();
    });
    return element("tr", {}, element("td", { text: origin }), element("td", {}, field), element("td", {}, remove));
  });
  const head = element("tr", {}, element("th", { text: "Site" }), element("th", { text: "Name of the chat" }), element("th", { text: "Action" }));
  byId("sites").replaceChildren(rows.length === 0 ? element("p", { text: "No site yet." }) : element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
byId("add-site").addEventListener("submit", guarded(async () => {
  const text = byId("site").value.trim();
  const origin = siteOf(/^\w+:\/\//.test(text) ? text : `https://${text}`);
  if (origin === null) throw new Error("This is not a site: write it as in https://claude.ai.");
  if (!(await addSite(origin))) throw new Error("The browser did not give the permission.");
  byId("site").value = "";
  await showSites();
  say("Added. Load open pages of the site again.");
}));

async function showKeys() {
  const keys = await load("keys");
  const rows = keys.map(({ id, fingerprint, decision }) => element("tr", {},
    element("td", { text: id }),
    element("td", { class: "print", text: fingerprint ?? "" }),
    element("td", { text: decision === "pinned" ? "trusted" : "rejected" }),
    element("td", {}, button("Remove", `Remove the key of ${plain(id)}`, async () => {
      await update("keys", (all) => all.filter((key) => key.id !== id));
      await showKeys();
    })),
  ));
  const head = element("tr", {}, ...["Key id", "Fingerprint", "Decision", "Action"].map((text) => element("th", { text })));
  byId("keys").replaceChildren(rows.length === 0 ? element("p", { class: "soft", text: "No decisions yet. Open a message that says “First contact” in the panel to trust its key." }) : element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
byId("add-key").addEventListener("submit", guarded(async () => {
  const [id, key] = [byId("key-id").value.trim(), byId("key").value.trim()];
  if (id === "") throw new Error("Write the key id, as in alice@example.com.");
  const { verify, build, newId } = await core();
  // The core rejects what is no public key.
  verify(build({ sender: "A", receiver: "B", user: "a", thread: newId(), context: "key", intent: "REQUEST", body: "key" }), { keys: [{ id, key }] });
  await update("keys", (keys) => [...keys.filter((known) => known.id !== id), { id, key, fingerprint: null, decision: "pinned", at: Date.now() }]);
  byId("key-id").value = "";
  byId("key").value = "";
  await showKeys();
  say("You trust this key.");
}));

async function showIdentity() {
  const identity = await load("identity");
  byId("own").textContent = identity === null ? "You have no key. Your messages are not signed." : `Your key is ${identity.did}`;
  byId("signs").disabled = identity === null;
  byId("make-key").disabled = identity !== null;
  byId("drop-key").disabled = identity === null;
}
byId("make-key").addEventListener("click", guarded(async () => {
  const { generateKey } = await core();
  const { privateKeyPem, record, did } = generateKey();
  await update("identity", () => ({ privateKeyPem, record, did }));
  await update("settings", (settings) => ({ ...settings, signs: true }));
  await showNames();
  await showIdentity();
}));
byId("drop-key").addEventListener("click", guarded(async () => {
  await update("identity", () => null);
  await update("settings", (settings) => ({ ...settings, signs: false }));
  await showNames();
  await showIdentity();
}));
byId("signs").addEventListener("change", guarded(async () => {
  const signs = byId("signs").checked;
  await update("settings", (settings) => ({ ...settings, signs }));
}));

async function showRelay() {
  const relay = await relayState();
  byId("paired").hidden = relay === null;
  byId("pair").hidden = relay !== null;
  byId("origin").textContent = location.origin;
  if (relay === null) return;
  const carries = relay.courier.length === 0 ? "" : ` It carries to ${relay.courier.join(", ")}.`;
  byId("relay-state").textContent = plain(`Paired with ${relay.url} as ${relay.name}, for ${relay.addresses.join(", ")}.${carries}`);
}
byId("copy-origin").addEventListener("click", guarded(async () => {
  await navigator.clipboard.writeText(location.origin);
  say("Copied.");
}));
byId("pair").addEventListener("submit", guarded(async () => {
  await pair(byId("url").value, byId("code").value);
  byId("code").value = "";
  await showRelay();
  say("Paired.");
}));
byId("unpair").addEventListener("click", guarded(async () => {
  await unpair();
  await showRelay();
  say("The relay revoked the token.");
}));
byId("forget").addEventListener("click", guarded(async () => {
  await forgetRelay();
  await showRelay();
  say("Forgotten here. Ask the operator to revoke the token.");
}));

/** The keys that pages and browsers need for themselves. */
const MODIFIERS = ["Control", "Shift", "Alt", "Meta", "AltGraph"];

async function showShortcuts() {
  const { shortcuts } = await load("settings");
  for (const name of ["compose", "reply"]) {
    byId(`${name}-keys`).value = (shortcuts[name] ?? "").replace(/Key(?=[A-Z]$)|Digit(?=\d$)/, "") || "off";
  }
}
for (const name of ["compose", "reply"]) {
  const change = guarded(async (event) => {
    const isOff = ["Backspace", "Delete"].includes(event.key);
    const keys = [["Ctrl", event.ctrlKey], ["Alt", event.altKey], ["Shift", event.shiftKey], ["Meta", event.metaKey]].filter(([, has]) => has).map(([key]) => key);
    if (!isOff && !keys.some((key) => key !== "Shift")) throw new Error("Use Ctrl, Alt or Meta with it.");
    const value = isOff ? "" : [...keys, event.code].join("+");
    await update("settings", (settings) => ({ ...settings, shortcuts: { ...settings.shortcuts, [name]: value } }));
    await showShortcuts();
    say("Saved.");
  });
  byId(`${name}-keys`).addEventListener("keydown", (event) => {
    if (event.key !== "Tab" && event.key !== "Escape" && !MODIFIERS.includes(event.key)) void change(event);
  });
}

async function showHistory() {
  const count = (await load("threads")).length;
  byId("history").textContent = `${count} ${count === 1 ? "thread" : "threads"} in this browser.`;
}
byId("clear").addEventListener("click", guarded(async () => {
  await update("threads", () => []);
  await showHistory();
  say("Deleted.");
}));

for (const showPart of [showNames, showSites, showKeys, showIdentity, showRelay, showShortcuts, showHistory]) await showPart();
globalThis.crosstalkPageIsReady = true;
browser.storage.onChanged.addListener((changes) => {
  if (changes.sites !== undefined) void showSites();
  if (changes.keys !== undefined) void showKeys();
  if (changes.relay !== undefined) void showRelay();
  if (changes.settings !== undefined) void showShortcuts();
});
