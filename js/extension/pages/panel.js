// The panel: writing, carrying between chats, threads, and the deliveries of a relay. It is the surface of the extension itself:
// what it says about a message, no page can change.

import { chats, latest, put, textFor } from "../lib/chats.js";
import { admit } from "../lib/core.js";
import { deliveries, isFor, matchAnswers, noteErrand, relayState, report, returnAnswer, sendToRelay, withoutTrace } from "../lib/relay.js";
import { browser, load, update } from "../lib/storage.js";
import { file, fileAnswers, fileOwn, forgetThread, waiting, write, writeForward, writeReply } from "../lib/threads.js";
import { byId, card, element, guarded, plain, saveFile, say } from "./view.js";

const fixedTab = Number(new URLSearchParams(location.search).get("tab")) || null;

/** The open chats, and the message that is answered. */
let open = [];
let answered = null;

// ---- Tabs of the panel --------------------------------------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(name, hasFocus = false) {
  for (const tab of tabs) {
    const isChosen = tab.getAttribute("aria-controls") === name;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    if (isChosen && hasFocus) tab.focus();
    byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
  }
  if (name === "threads") void showThreads();
  if (name === "relay") void showRelay();
}

for (const [at, tab] of tabs.entries()) {
  tab.addEventListener("click", () => select(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step !== undefined) select(tabs[(at + step + tabs.length) % tabs.length].getAttribute("aria-controls"), true);
  });
}

// ---- Chats --------------------------------------------------------------------------------------------------------------------

/** The chats, the one that the person looks at first. */
async function findChats() {
  const all = await chats();
  const [active] = fixedTab === null ? await browser.tabs.query({ active: true, lastFocusedWindow: true }) : [{ id: fixedTab }];
  const rank = (chat) => (chat.tab === active?.id ? 1e18 : chat.lastAccessed);
  open = all.sort((a, b) => rank(b) - rank(a));
  return open;
}

function fillChats(lists) {
  for (const [id, first] of lists) {
    const list = byId(id);
    const before = list.value;
    list.replaceChildren(...open.map(({ tab, name, title }) => element("option", { value: String(tab), text: `${name}: ${title.slice(0, 60) || "chat"}` })));
    if (open.length === 0) list.append(element("option", { value: "", text: "No chat is open" }));
    if (open.some(({ tab }) => String(tab) === before)) list.value = before;
    else if (open[first] !== undefined) list.value = String(open[first].tab);
  }
}

const chatOf = (id) => {
  const chat = open.find(({ tab }) => String(tab) === byId(id).value);
  if (chat === undefined) throw new Error("No chat is open. Open one, and use Crosstalk on its site.");
  return chat;
};

let lastTo = "";
async function refreshChats() {
  await findChats();
  fillChats([["chat", 0], ["from", 0], ["into", 1], ["one", 0], ["other", 1]]);
  const name = open.find(({ tab }) => String(tab) === byId("chat").value)?.name ?? "";
  if (byId("to").value === lastTo) byId("to").value = name;
  lastTo = name;
}
byId("chat").addEventListener("change", () => void refreshChats());

// ---- Write --------------------------------------------------------------------------------------------------------------------

function startMessage() {
  answered = null;
  byId("compose-title").textContent = "Write a message";
  byId("about").replaceChildren();
  byId("head").hidden = false;
  byId("cancel").hidden = true;
}

function startReply(message) {
  answered = message;
  byId("compose-title").textContent = "Reply";
  byId("about").replaceChildren(messageCard(message));
  byId("head").hidden = true;
  byId("cancel").hidden = false;
  byId("body").focus();
}

async function written() {
  const body = byId("body").value;
  if (answered !== null) return { text: await writeReply(answered, body), to: answered.envelope.sender };
  const to = byId("to").value.trim();
  if (to === "") throw new Error("Write to whom the message is.");
  const text = await write({ to, context: byId("context").value.trim(), intent: byId("intent").value, body });
  return { text, to };
}

byId("message").addEventListener("submit", guarded(async () => {
  await refreshChats();
  const chat = chatOf("chat");
  const { text, to } = await written();
  await place(chat, text, to);
  byId("body").value = "";
  startMessage();
}));

/** Puts a message into a chat, files it, and says how that went. */
async function place(chat, text, to) {
  const result = await put(chat, text, to);
  if (!result.ok) {
    await navigator.clipboard.writeText(result.text).catch(() => {});
    throw new Error(`${result.reason} The message was copied instead: paste it into the chat.`);
  }
  await fileOwn(text, chat.origin);
  say(`The message is in the input of ${chat.name}. Send it there.`);
}

byId("copy").addEventListener("click", guarded(async () => {
  const { text, to } = await written();
  const chat = open.find(({ tab }) => String(tab) === byId("chat").value);
  await navigator.clipboard.writeText(chat === undefined ? text : await textFor(chat, text, to));
  await fileOwn(text, chat?.origin ?? "");
  say("Copied.");
}));
byId("cancel").addEventListener("click", startMessage);

// ---- One message --------------------------------------------------------------------------------------------------------------

/** A message with what can be done about it. */
function messageCard(message) {
  const actions = [];
  const { text, envelope, kind, pkid, key, fingerprint } = message;
  if (kind === "first-contact" && key) {
    const decide = (decision) => guarded(async () => {
      await update("keys", (keys) => [...keys.filter(({ id }) => id !== pkid), { id: pkid, key, fingerprint, decision, at: Date.now() }]);
      say(decision === "pinned" ? `You trust this key of ${pkid}.` : `You rejected this key of ${pkid}.`);
      void show({ action: "show", text: message.source ?? text });
    });
    actions.push(element("button", { type: "button", text: "Trust this key", on: decide("pinned") }));
    actions.push(element("button", { type: "button", text: "Reject this key", on: decide("rejected") }));
  }
  if (text) {
    actions.push(element("button", { type: "button", text: "Copy", on: guarded(async () => {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    }) }));
    if (envelope && !message.isOwn) actions.push(element("button", { type: "button", text: "Reply", on: () => {
      select("compose");
      const { sender } = envelope;
      const chat = open.find(({ origin }) => origin === message.chat) ?? open.find(({ name }) => name.toLowerCase() === sender.toLowerCase());
      if (chat !== undefined) byId("chat").value = String(chat.tab);
      startReply(message);
    } }));
    actions.push(element("button", { type: "button", text: "Save to file", on: () => saveFile(`${(envelope?.message ?? "message").replace(/[^A-Za-z0-9-]/g, "_").slice(0, 60)}.crosstalk`, text) }));
  }
  return card(message, ...actions);
}

/** Does what was asked for on a page. */
async function show({ action, text, tab }) {
  if (tab !== undefined && open.some((chat) => chat.tab === tab)) byId("chat").value = String(tab);
  if (action === "compose") {
    select("compose");
    startMessage();
    await refreshChats();
    byId("body").focus();
    return;
  }
  if (text === null || text === undefined) return;
  const message = { ...(await admit(text)), source: text };
  if (action === "reply" && message.text !== null) {
    const chat = open.find((known) => known.tab === tab);
    await file(message, { isOwn: false, chat: chat?.origin ?? "" });
    select("compose");
    startReply(message);
    return;
  }
  if (action === "relay") {
    select("relay");
    const send = element("button", { type: "button", class: "main", id: "send-relay", text: "Send to relay", on: guarded(async () => {
      await sendToRelay(message.text);
      byId("outgoing").replaceChildren();
      say("The relay accepted the message.");
    }) });
    byId("outgoing").replaceChildren(card(message, ...(message.text === null ? [] : [send])));
    return;
  }
  if (action === "save" && message.text !== null) {
    saveFile("message.crosstalk", message.text);
    say("Saved.");
  }
  select("compose");
  byId("about").replaceChildren(messageCard(message));
}

// ---- Carry and ask ------------------------------------------------------------------------------------------------------------

byId("carry-now").addEventListener("click", guarded(async () => {
  await refreshChats();
  const [from, into] = [chatOf("from"), chatOf("into")];
  if (from.tab === into.tab) throw new Error("Choose two different chats.");
  const { me } = await load("settings");
  for (const text of await latest(from, 5)) {
    const message = await admit(text);
    // The own question stands in the chat, too.
    if (message.text === null || message.envelope.sender.toLowerCase() === me.toLowerCase()) continue;
    await file(message, { isOwn: false, chat: from.origin });
    const forward = await writeForward(message, into.name, byId("words").value.trim());
    await place(into, forward, into.name);
    return;
  }
  throw new Error(`There is no answer that can be read in ${from.name}.`);
}));

byId("ask").addEventListener("submit", guarded(async () => {
  await refreshChats();
  const pair = [chatOf("one"), chatOf("other")];
  if (pair[0].tab === pair[1].tab) throw new Error("Choose two different chats.");
  const { newId, ready } = await import("../ai-crosstalk/index.js");
  await ready();
  const thread = newId();
  const failed = [];
  for (const chat of pair) {
    const text = await write({ to: chat.name, context: byId("ask-context").value.trim(), body: byId("question").value, thread });
    try {
      await place(chat, text, chat.name);
    } catch (error) {
      failed.push(`${chat.name}: ${error.message}`);
    }
  }
  if (failed.length > 0) throw new Error(failed.join(" "));
  byId("question").value = "";
  say("The question is in both chats. Send it there; the answers come into one thread.");
  shownThread = thread;
  select("threads");
}));

// ---- Threads ------------------------------------------------------------------------------------------------------------------

let shownThread = null;

async function showThreads() {
  const threads = await load("threads");
  const list = byId("thread-list");
  const thread = threads.find(({ id }) => id === shownThread);
  if (thread !== undefined) {
    const back = element("button", { type: "button", text: "All threads", on: () => {
      shownThread = null;
      void showThreads();
    } });
    const remove = element("button", { type: "button", text: "Delete", on: guarded(async () => {
      await forgetThread(thread.id);
      shownThread = null;
      await showThreads();
    }) });
    const save = element("button", { type: "button", text: "Save to file", on: () => saveFile("thread.crosstalk", thread.messages.map(({ text }) => text).join("\n")) });
    const left = waiting(thread);
    const note = left.length === 0 ? "Everybody has answered." : `Waiting for ${left.map(({ to }) => to).join(" and ")}.`;
    // One column for each with whom the messages are, so that answers stand side by side.
    const columns = new Map();
    for (const message of thread.messages) {
      const { sender, receiver } = message.envelope;
      const party = (message.isOwn ? receiver : sender).toLowerCase();
      if (!columns.has(party)) columns.set(party, element("div"));
      columns.get(party).append(messageCard(message));
    }
    list.replaceChildren(element("h2", { text: thread.context || "Thread" }), element("div", { class: "row" }, back, save, remove), element("p", { class: "soft", text: note }), element("div", { class: "compare" }, ...columns.values()));
    return;
  }
  shownThread = null;
  if (threads.length === 0) return list.replaceChildren(element("p", { class: "soft", text: "No messages yet. What you write and carry is kept here, in this browser only." }));
  list.replaceChildren(...threads.map((each) => {
    const count = each.messages.length;
    const left = waiting(each).length;
    const show = element("button", { type: "button", text: "Show", "aria-label": `Show the thread ${plain(each.context)}`, on: () => {
      shownThread = each.id;
      void showThreads();
    } });
    return element("article", { class: "card" }, element("h3", { text: each.context || "Thread" }), element("p", { class: "soft", text: `${count} ${count === 1 ? "message" : "messages"}${left > 0 ? `, waiting for ${left}` : ""}` }), show);
  }));
}

// ---- Relay --------------------------------------------------------------------------------------------------------------------

async function showRelay() {
  const relay = await relayState();
  byId("relay-state").textContent = relay === null ? "No relay is paired. Pair one on the options page." : `Paired with ${relay.url} as ${relay.name}.`;
  byId("fetch").disabled = relay === null;
  if (relay !== null) await guarded(showDeliveries)();
}

let shownDeliveries = "";

async function showDeliveries() {
  await refreshChats();
  const waitingNow = await deliveries();
  const state = JSON.stringify([waitingNow, open.map(({ tab, name }) => [tab, name])]);
  if (state === shownDeliveries) return;
  shownDeliveries = state;
  const cards = [];
  for (const delivery of waitingNow) {
    const message = await admit(delivery.envelope);
    const chat = open.find(({ name }) => isFor(delivery.to, name));
    const actions = [];
    if (delivery.answer !== null) {
      actions.push(element("button", { type: "button", class: "main", text: "Return the answer", on: guarded(async () => {
        await returnAnswer(delivery.id, delivery.to, delivery.answer);
        say("The relay has the answer.");
        await showDeliveries();
      }) }));
    } else if (chat !== undefined) {
      actions.push(element("button", { type: "button", class: delivery.isAway ? undefined : "main", text: `Put into ${chat.name}`, on: guarded(async () => {
        await noteErrand(delivery, chat);
        const result = await put(chat, withoutTrace(delivery.envelope), delivery.to);
        if (!result.ok) throw new Error(result.reason);
        say(`The delivery is in the input of ${chat.name}. Send it there.`);
        await showDeliveries();
      }) }));
    }
    actions.push(element("button", { type: "button", text: "Can't be carried", on: guarded(async () => {
      await report(delivery.id, delivery.to, { state: "failed", reason: "the courier could not bring it there" });
      await showDeliveries();
    }) }));
    const made = card(message, ...actions);
    const note = delivery.answer !== null ? "The chat has answered." : chat === undefined ? `Open the chat of ${delivery.to} to carry it.` : delivery.isAway ? "Waiting for the answer of the chat." : `For ${delivery.to}`;
    made.insertBefore(element("p", { class: "soft wrap", text: note }), made.children[1]);
    if (delivery.answer !== null) {
      const answer = await admit(delivery.answer);
      made.insertBefore(element("p", { class: "soft", text: "Answer of the chat:" }), made.lastElementChild);
      made.insertBefore(element("div", { class: "body", tabindex: "0", role: "region", "aria-label": "Answer of the chat", text: answer.envelope?.body ?? "" }), made.lastElementChild);
    }
    cards.push(made);
  }
  byId("deliveries").replaceChildren(...(cards.length > 0 ? cards : [element("p", { class: "soft", text: "Nothing waits to be carried." })]));
}
byId("fetch").addEventListener("click", guarded(async () => {
  shownDeliveries = "";
  await showDeliveries();
}));

// ---- What happens by itself ---------------------------------------------------------------------------------------------------

/** Looks for answers to what was asked, in the chats where it was asked. It files them; nothing is sent. */
async function collect() {
  const [threads, errands] = [await load("threads"), await load("errands")];
  const asked = new Set(threads.slice(0, 20).flatMap(waiting).map(({ chat }) => chat));
  const away = new Set(errands.map(({ tab }) => tab));
  if (asked.size === 0 && away.size === 0) return;
  for (const chat of await findChats()) {
    if (!asked.has(chat.origin) && !away.has(chat.tab)) continue;
    const texts = await latest(chat, 5);
    if (texts.length === 0) continue;
    await fileAnswers(texts, chat.origin);
    await matchAnswers(texts, chat);
  }
}

/** Takes what was asked for on a page; one of several open panels does. */
async function takePending() {
  const pending = await navigator.locks.request("crosstalk-pending", async () => {
    const found = await browser.storage.session.get("pending");
    await browser.storage.session.remove("pending");
    return found.pending;
  });
  if (pending === undefined || Date.now() - pending.at > 60_000) return;
  await refreshChats();
  await show(pending);
  // A panel in a window or tab of its own may be behind the page that asked.
  const own = await browser.tabs.getCurrent();
  if (own === undefined) return;
  await browser.tabs.update(own.id, { active: true });
  await browser.windows.update(own.windowId, { focused: true });
}

browser.storage.onChanged.addListener((changes, area) => {
  if (area === "session" && changes.pending?.newValue !== undefined) void takePending();
  if (area !== "local") return;
  if (changes.threads !== undefined && !byId("threads").hidden) void showThreads();
  if (changes.errands !== undefined && !byId("relay").hidden) void guarded(showDeliveries)();
  if (changes.sites !== undefined) void refreshChats();
});
browser.tabs.onActivated.addListener(() => void refreshChats());
browser.tabs.onUpdated.addListener((id, { status }) => {
  if (status === "complete") void refreshChats();
});

// The background does not open a second panel while one is open.
function tellBackground() {
  // It sleeps from time to time, and forgets.
  browser.runtime.connect({ name: "panel" }).onDisconnect.addListener(() => setTimeout(tellBackground, 1000));
}
tellBackground();

await refreshChats();
await takePending();
globalThis.crosstalkPageIsReady = true;
for (;;) {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  if (!document.hidden || fixedTab !== null) await collect().catch(() => {});
}
