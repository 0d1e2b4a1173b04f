// What a page does beyond its links and forms: live updates, shortcuts, copying. Without it, everything still works.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  /** The place of the row that the keyboard is at. */
  let here = -1;

  // On a phone, the navigation is a line that is longer than the screen.
  const current = $("#nav [aria-current=page]"), nav = $("#nav");
  if (current && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = current.offsetLeft - nav.clientWidth / 3;

  // Live updates: htmx fetches the list again, and the navigation with its numbers. Nothing is replaced under somebody's hands.
  const live = document.body.dataset.live;
  const unread = () => Number(/^\((\d+)\)/.exec(document.title)?.[1] ?? 0);
  let known = unread();
  function isBusy() {
    const list = $("#list");
    if (!list) return true;
    const isChanged = (field) => field.type !== "hidden" && field.value !== (field.defaultValue ?? field.value);
    return Boolean($("details[open]", list)) || list.contains(document.activeElement?.closest("textarea, input, select")) || all("textarea, input", list).some(isChanged);
  }
  async function refreshFrame() {
    const answer = await fetch(location.pathname + location.search, { headers: { "hx-request": "true" } });
    if (answer.status === 401) return location.assign("/sign-in?why=ended");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const nav = $("#nav", page);
    if (nav) $("#nav")?.replaceWith(document.adoptNode(nav));
    document.title = page.title;
    settled();
  }
  function settled() {
    here = -1;
    if (unread() > known && document.visibilityState === "hidden" && "Notification" in window && Notification.permission === "granted") {
      // No word of a message leaves the page.
      new Notification("Crosstalk", { body: "A message waits for you.", tag: "crosstalk" });
    }
    known = unread();
  }
  // However much arrives, a tab fetches what it shows at most once in this time, in milliseconds; one that nobody sees fetches
  // nothing until it is looked at again. If notifications are on, the tab that listens looks now and then what is new.
  const PAUSE = 3000, HIDDEN_PAUSE = 30000;
  let refreshed = -Infinity, timer = 0, isStale = false, isListening = false;
  const isHidden = () => document.visibilityState === "hidden";
  const notifies = () => isListening && "Notification" in window && Notification.permission === "granted";
  function changed() {
    isStale = true;
    if (timer || (isHidden() && !notifies())) return;
    const pause = isHidden() ? HIDDEN_PAUSE : PAUSE;
    timer = setTimeout(refresh, Math.max(0, refreshed + pause - performance.now()));
  }
  function refresh() {
    timer = 0;
    if (isHidden() && !notifies()) return;
    [isStale, refreshed] = [false, performance.now()];
    if (isBusy()) refreshFrame().catch(() => {});
    else document.body.dispatchEvent(new Event("live"));
  }
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    timer = 0;
    if (isStale) changed();
  });
  document.addEventListener("htmx:afterSettle", settled);
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.assign("/sign-in?why=ended");
  });
  // The number of the last change that the page shows, or that this tab was told of.
  let position = Number(document.body.dataset.position);
  function changedTo(newest) {
    // A relay that was started again counts from the beginning.
    if (newest === position) return;
    position = newest;
    changed();
  }
  function listen(tell) {
    isListening = true;
    const events = new EventSource(`${live}?since=${position}`);
    events.addEventListener("change", (event) => tell(Number(event.data)));
    events.addEventListener("error", () => {
      if (events.readyState !== EventSource.CLOSED) return;
      // The relay does not know this sign-in any more, or has no place for the stream now.
      changed();
      setTimeout(listen, HIDDEN_PAUSE, tell);
    });
    addEventListener("pagehide", () => events.close());
  }
  if (live) {
    // Browsers open six connections to a host, for all tabs: one tab listens, and tells the others. A tab that opens asks for what
    // was told while it was loading.
    if (navigator.locks && "BroadcastChannel" in window) {
      const channel = new BroadcastChannel("crosstalk");
      channel.addEventListener("message", ({ data }) => {
        if (data !== "hello") changedTo(data);
        else if (isListening) channel.postMessage(position);
      });
      channel.postMessage("hello");
      const tell = (newest) => { changedTo(newest); channel.postMessage(newest); };
      navigator.locks.request("crosstalk-live", () => { listen(tell); return new Promise(() => {}); }).catch(() => {});
    } else {
      listen(changedTo);
    }
  }

  // Times grow older while a page is open.
  function words(then) {
    const seconds = (Date.now() - then) / 1000, amount = Math.abs(seconds);
    let text;
    if (seconds >= 0 && amount < 45) return "now";
    if (amount < 3600) text = `${Math.ceil(amount / 60)} min`;
    else if (amount < 86400) text = `${Math.floor(amount / 3600)} h`;
    else if (amount < 5184000) text = `${Math.floor(amount / 86400)} d`;
    else return new Date(then).toISOString().slice(0, 10);
    return seconds >= 0 ? text : `in ${text}`;
  }
  setInterval(() => {
    for (const time of all("time[datetime]")) {
      const then = Date.parse(time.dateTime);
      if (then) time.textContent = words(then);
    }
  }, 30000);

  // Buttons: copy the text of an element, select it, ask before something that can't be undone, allow notifications.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      event.preventDefault();
      const source = $(button.dataset.copy);
      const text = source.value ?? source.textContent;
      const label = button.textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        const area = source.select ? source : null;
        if (area) area.select(); else getSelection().selectAllChildren(source);
        button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 1600);
    }
    if (event.target.closest("[data-notify]") && "Notification" in window) {
      event.preventDefault();
      const answer = await Notification.requestPermission();
      event.target.textContent = answer === "granted" ? "Notifications are on" : "The browser does not allow them";
    }
    for (const open of all("details.why-badge[open]")) if (!open.contains(event.target)) open.open = false;
  });
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });

  // Signing: the private key is made in this browser, is kept in its database and can't be exported.
  const toBase64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
  const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const database = (mode, act) => new Promise((resolve, reject) => {
    const opening = indexedDB.open("crosstalk", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const asked = act(opening.result.transaction("keys", mode).objectStore("keys"));
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    };
  });
  // Several people may use this browser: each credential has a key of its own.
  const keyName = `signing ${document.body.dataset.credential}`;
  async function ownKey() {
    const kept = await database("readonly", (keys) => keys.get(keyName));
    if (kept) return kept;
    const made = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    await database("readwrite", (keys) => keys.put(made, keyName));
    return made;
  }
  const signing = $("#sign");
  if (signing && window.isSecureContext && window.indexedDB && crypto.subtle) {
    const place = $("[data-own-key]"), fault = $(".fault", signing);
    database("readonly", (keys) => keys.get(keyName)).then((kept) => {
      $("[data-own-key-name]").textContent = kept ? "" : "It is made when you use it for the first time.";
      place.hidden = false;
    }, () => {});
    signing.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const key = await ownKey();
        signing.elements.key.value = toBase64(await crypto.subtle.exportKey("raw", key.publicKey));
        const answer = await fetch("/sign", { method: "POST", body: new URLSearchParams(new FormData(signing)) });
        if (!answer.ok) throw new Error("The relay can't prepare the message.");
        const { at, bytes } = await answer.json();
        signing.elements.at.value = at;
        signing.elements.signature.value = toBase64(await crypto.subtle.sign("Ed25519", key.privateKey, fromBase64(bytes)));
        signing.submit();
      } catch (error) {
        fault.textContent = error.name === "NotSupportedError" ? "This browser can't sign with Ed25519." : `It could not be signed: ${error.message}`;
        fault.hidden = false;
      }
    });
  }

  // Shortcuts: j and k move, Enter opens, e finishes, g and a letter goes to a page.
  let prefix = false;
  const rows = () => all("[data-rows] > li");
  function move(step) {
    const list = rows();
    if (!list.length) return;
    here = Math.max(0, Math.min(list.length - 1, here + step));
    list.forEach((row, at) => row.classList.toggle("here", at === here));
    const row = list[here];
    row.scrollIntoView({ block: "nearest" });
    $("a, button", row)?.focus({ preventScroll: true });
  }
  function overlay() {
    let dialog = $("#shortcuts");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.id = "shortcuts";
      dialog.setAttribute("aria-labelledby", "shortcuts-title");
      const title = document.createElement("h1");
      title.id = "shortcuts-title";
      title.textContent = "Shortcuts";
      const list = document.createElement("dl");
      const lines = [["j k", "next and previous"], ["Enter", "open"], ["e", "done"], ["r", "reply"], ["/", "search"], ["?", "this list"], ["Esc", "close"]];
      for (const link of all("#nav a[data-key]")) lines.push([`g ${link.dataset.key}`, link.firstChild.textContent.trim()]);
      for (const [keys, meaning] of lines) {
        const term = document.createElement("dt"), about = document.createElement("dd");
        for (const key of keys.split(" ")) { const kbd = document.createElement("kbd"); kbd.textContent = key; term.append(kbd, " "); }
        about.textContent = meaning;
        list.append(term, about);
      }
      const close = document.createElement("button");
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      const bell = document.createElement("button");
      bell.textContent = "Notify me on this desktop";
      bell.dataset.notify = "";
      const buttons = document.createElement("p");
      buttons.className = "actions";
      buttons.append(close, bell);
      dialog.append(title, list, buttons);
      document.body.append(dialog);
    }
    dialog.open ? dialog.close() : dialog.showModal();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "Enter" && event.target.form) return event.target.form.requestSubmit();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("textarea, input, select")) return event.key === "Escape" ? event.target.blur() : undefined;
    if (prefix) {
      prefix = false;
      const link = all("#nav a[data-key]").find((a) => a.dataset.key === event.key);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    switch (event.key) {
      case "g": prefix = true; setTimeout(() => { prefix = false; }, 1200); break;
      case "j": case "ArrowDown": if (rows().length && (event.key === "j")) { event.preventDefault(); move(1); } break;
      case "k": event.preventDefault(); move(-1); break;
      case "e": { const act = $("[data-act=e]", rows()[here] ?? document.createElement("i")); if (act) { event.preventDefault(); act.click(); } break; }
      case "r": { const reply = $("#reply textarea"); if (reply) { event.preventDefault(); reply.focus(); } break; }
      case "/": { const search = $("input[type=search], .bar input:not([type=hidden])"); event.preventDefault(); if (search) search.focus(); else location.assign("/search"); break; }
      case "?": event.preventDefault(); overlay(); break;
    }
  });
})();
