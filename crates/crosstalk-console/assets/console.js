// What a page does beyond its links and forms: live updates, shortcuts, copying. Without it, everything still works.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Live updates: the page fetches what it shows again, and the navigation with its numbers.
  const live = document.body.dataset.live;
  const isTyping = () => document.activeElement?.matches("textarea, input, select");
  async function refreshNav() {
    const answer = await fetch(location.pathname + location.search, { headers: { "hx-request": "true" } });
    if (answer.status === 401) return location.assign("/sign-in?why=ended");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = unread();
    const nav = $("#nav", page);
    if (nav) $("#nav")?.replaceWith(document.adoptNode(nav));
    document.title = page.title;
    if (unread() > before) notify();
  }
  const unread = () => Number(/^\((\d+)\)/.exec(document.title)?.[1] ?? 0);
  function notify() {
    if (document.visibilityState === "hidden" && "Notification" in window && Notification.permission === "granted") {
      // No word of a message leaves the page.
      new Notification("Crosstalk", { body: "A message waits for you.", tag: "crosstalk" });
    }
  }
  if (live) {
    const events = new EventSource(live);
    let first = true;
    events.addEventListener("change", () => {
      if (first) { first = false; }
      refreshNav();
      if (!isTyping()) document.body.dispatchEvent(new Event("live"));
    });
    addEventListener("pagehide", () => events.close());
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

  // Shortcuts: j and k move, Enter opens, e finishes, g and a letter goes to a page.
  let here = -1, prefix = false;
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
      dialog.append(title, list, close);
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
