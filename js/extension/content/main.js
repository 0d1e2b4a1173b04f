// Runs beside the pages of enabled sites: finds envelopes by their text, shows a badge on each, and puts texts into the input of a
// chat. It decides nothing: the background reads and verifies. It runs in a world of its own, so a page can't override what it
// calls; names of elements of the page can hide properties of `document` and of forms, so those are called by their prototypes.

(() => {
  "use strict";
  if (globalThis.crosstalkIsHere) return;
  globalThis.crosstalkIsHere = true;

  const browser = globalThis.browser ?? globalThis.chrome;
  const isTop = window === window.top;

  const getter = (prototype, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (object) => get.call(object);
  };
  const rootOf = getter(Document.prototype, "documentElement");
  const activeOf = getter(Document.prototype, "activeElement");
  const parentOf = getter(Node.prototype, "parentNode");
  const parentElementOf = getter(Node.prototype, "parentElement");
  const typeOf = getter(Node.prototype, "nodeType");
  const firstOf = getter(Node.prototype, "firstChild");
  const nextOf = getter(Node.prototype, "nextSibling");
  const firstElementOf = getter(Element.prototype, "firstElementChild");
  const isAttached = getter(Node.prototype, "isConnected");
  const tagOf = getter(Element.prototype, "localName");
  const openShadowOf = getter(Element.prototype, "shadowRoot");
  const isEditable = getter(HTMLElement.prototype, "isContentEditable");
  const textOf = getter(Node.prototype, "textContent");
  const walkerOf = (root, show) => Document.prototype.createTreeWalker.call(document, root, show);
  const make = (tag) => Document.prototype.createElement.call(document, tag);
  const styleOf = (element) => window.getComputedStyle(element);
  const queryAll = (root, selector) => {
    const prototype = typeOf(root) === Node.DOCUMENT_NODE ? Document.prototype : root instanceof ShadowRoot ? DocumentFragment.prototype : Element.prototype;
    return [...prototype.querySelectorAll.call(root, selector)];
  };

  // ---- Work in slices -------------------------------------------------------------------------------------------------------

  /** How long a slice may take, in milliseconds; the clock is looked at after each step, and a step is short. */
  const SLICE_MS = 1.5;
  const jobs = [];
  const stats = { slices: 0, maxMs: 0, over5: 0, found: 0, sum: 0 };
  let isScheduled = false;

  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    isScheduled = false;
    const began = performance.now();
    let took = 0;
    while (jobs.length > 0 && took < SLICE_MS) {
      let isDone = true;
      try {
        isDone = jobs[0].next().done;
      } catch {
        // A page that changes while it is read is read again.
      }
      if (isDone) jobs.shift();
      took = performance.now() - began;
    }
    stats.slices += 1;
    stats.sum += took;
    stats.maxMs = Math.max(stats.maxMs, took);
    if (took > 5) stats.over5 += 1;
    if (jobs.length > 0) schedule();
  };

  function schedule() {
    if (isScheduled) return;
    isScheduled = true;
    // After a message, the browser may paint and handle keys before it calls again.
    channel.port2.postMessage(0);
  }

  function add(job) {
    // A page that changes faster than it can be read is scanned once more as a whole.
    if (jobs.length > 200) {
      jobs.length = 1;
      jobs.push(scan(rootOf(document)));
    }
    jobs.push(job);
    schedule();
  }

  // ---- Finding --------------------------------------------------------------------------------------------------------------

  const SKIPPED = new Set(["script", "style", "noscript", "template", "textarea", "input", "select", "title", "svg"]);
  const STEP_NODES = 16;
  const MAX_TEXT = 64 << 10;
  const MAX_NODES = 4000;
  const MAX_RECORDS = 20_000;

  /** Found beginnings of envelopes: `{ node, offset, anchor, isNear, text, result, badge }`. */
  const records = new Set();
  /** Those that have a badge. */
  const badged = new Set();
  /** The offsets of the records of each text node. */
  const starts = new WeakMap();
  const anchors = new Map();
  const roots = new WeakSet();

  const observer = new MutationObserver((list) => add(digest(list)));

  function watch(root) {
    if (roots.has(root)) return;
    roots.add(root);
    observer.observe(root, { subtree: true, childList: true, characterData: true });
    add(scan(root));
  }

  function* digest(list) {
    let count = 0;
    for (const { type, target, addedNodes } of list) {
      if (type === "characterData") lookAt(target);
      else {
        for (const node of addedNodes) {
          if (node !== host && !scanLeaf(node)) yield* scan(node);
          // A step is a few nodes: the clock is looked at after each.
          if (++count % 4 === 0) yield;
        }
      }
      if (++count % STEP_NODES === 0) yield;
    }
    refreshSoon();
  }

  /** Looks at an element that holds nothing but text, as most do that are added. It needs no walker, which saves memory. */
  function scanLeaf(root) {
    if (typeOf(root) !== Node.ELEMENT_NODE || firstElementOf(root) !== null || openShadowOf(root) !== null) return false;
    for (let node = firstOf(root); node !== null; node = nextOf(node)) if (typeOf(node) === Node.TEXT_NODE) lookAt(node);
    return true;
  }

  function* scan(root) {
    if (!isAttached(root)) return;
    if (typeOf(root) === Node.TEXT_NODE) {
      lookAt(root);
      return;
    }
    const walker = walkerOf(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    let count = 0;
    let node = walker.currentNode;
    while (node !== null) {
      const type = typeOf(node);
      if (type === Node.TEXT_NODE) lookAt(node);
      else if (type === Node.ELEMENT_NODE) {
        const shadow = openShadowOf(node);
        if (shadow !== null) watch(shadow);
      }
      if (++count % STEP_NODES === 0) yield;
      node = walker.nextNode();
    }
  }

  /** Notes where envelopes may begin in a text. */
  function lookAt(node) {
    const { data } = node;
    // Two brackets may be in two nodes.
    if (!data.includes("[[") && !data.endsWith("[")) return;
    const parent = parentElementOf(node) ?? parentOf(node)?.host;
    if (parent === undefined || parent === null || SKIPPED.has(tagOf(parent))) return;
    const known = starts.get(node) ?? new Set();
    let offset = data.indexOf("[[");
    if (offset === -1) offset = data.length - 1;
    for (let count = 0; offset !== -1 && count < 50; count += 1) {
      const isEnd = data.startsWith("[[END]]", offset);
      if (!isEnd && !known.has(offset) && records.size < MAX_RECORDS) {
        known.add(offset);
        const record = { node, offset, anchor: parent, isNear: false, text: null, result: null, badge: null, seen: 0 };
        records.add(record);
        stats.found = records.size;
        if (!anchors.has(parent)) {
          anchors.set(parent, new Set());
          nearness.observe(parent);
        }
        anchors.get(parent).add(record);
        if (anchors.get(parent).size > 1) [...anchors.get(parent)].some(({ isNear }) => isNear && (record.isNear = true));
      }
      offset = data.indexOf("[[", offset + 2);
    }
    starts.set(node, known);
  }

  /** Only what is on the screen is read: a chat may hold ten thousand messages. */
  const nearness = new IntersectionObserver(
    (entries) => add(approach(entries)),
    { rootMargin: "200px" },
  );

  function* approach(entries) {
    let count = 0;
    for (const { target, isIntersecting } of entries) {
      for (const record of anchors.get(target) ?? []) {
        record.isNear = isIntersecting;
        if (!isIntersecting) removeBadge(record);
      }
      if (++count % STEP_NODES === 0) yield;
    }
    refreshSoon();
  }

  function forget(record) {
    removeBadge(record);
    records.delete(record);
    starts.get(record.node)?.delete(record.offset);
    const all = anchors.get(record.anchor);
    all?.delete(record);
    if (all?.size === 0) {
      anchors.delete(record.anchor);
      nearness.unobserve(record.anchor);
    }
    stats.found = records.size;
  }

  let refreshTimer;
  function refreshSoon() {
    // A page that never stands still is read all the same.
    refreshTimer ??= setTimeout(() => {
      refreshTimer = undefined;
      // Nobody sees badges of a hidden page. On a visible one, right after a frame, the layout that is asked for is there already.
      if (!document.hidden) requestAnimationFrame(() => setTimeout(() => add(refresh())));
    }, 120);
  }
  window.addEventListener("visibilitychange", () => refreshSoon(), true);

  function* refresh() {
    const wanted = [];
    let count = 0;
    for (const record of [...records]) {
      if (++count % (STEP_NODES * 4) === 0) yield;
      if (!isAttached(record.node)) {
        forget(record);
        continue;
      }
      if (!record.isNear) continue;
      const text = yield* readFrom(record);
      if (text === null) {
        // A page that streams may write the rest of the direction line later.
        if (record.badge !== null) removeBadge(record);
        record.text = null;
        continue;
      }
      if (text !== record.text) {
        record.text = text;
        record.result = known.get(text) ?? null;
        if (record.result === null) wanted.push(record);
      }
      if (record.result !== null) place(record);
      yield;
    }
    if (wanted.length > 0) void ask(wanted);
    layoutSoon();
  }

  /** Results by text, so that a page that renders a message again gets its badge at once. */
  const known = new Map();

  async function ask(wanted) {
    const texts = [...new Set(wanted.map(({ text }) => text))].slice(0, 32);
    const results = await send({ type: "read", texts });
    if (!Array.isArray(results)) return;
    texts.forEach((text, at) => known.set(text, results[at]));
    while (known.size > 500) known.delete(known.keys().next().value);
    for (const record of wanted) {
      const result = known.get(record.text);
      if (result === undefined) continue;
      record.result = result;
      place(record);
    }
    layoutSoon();
  }

  const DIRECTION = /^\[\[[^[\]\n]{1,300}?(?:→|->|=>|⟶|➔|➜)[^[\]\n]{1,300}\]\]/;
  const NEXT_DIRECTION = /\n([ \t]*)\[\[[^[\]\n]{1,300}?(?:→|->)[^[\]\n]{1,300}\]\]/;
  const BLANK = /^[ \t>|]*$/;

  /**
   * The text of the envelope that begins at a record, as a person would copy it; null if none begins there. An envelope whose end
   * has not come is given after it stood still for some time.
   */
  function* readFrom(record) {
    const { node, offset } = record;
    if (isEditable(nearestHtml(record.anchor))) return null;
    if (!node.data.startsWith("[[", offset) && offset !== node.data.length - 1) return null;
    const before = node.data.slice(0, offset);
    const prefix = before.slice(before.lastIndexOf("\n") + 1);
    const indent = BLANK.test(prefix) ? prefix.length : 0;
    const root = node.getRootNode();
    const walker = walkerOf(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    walker.currentNode = node;
    const blocks = new Map();
    const first = blockOf(node, blocks);
    let last = first;
    let text = "";
    let own = null;
    let isChecked = false;
    let count = 0;
    for (let at = node; at !== null; at = walker.nextNode()) {
      if (++count % STEP_NODES === 0) yield;
      if (count > MAX_NODES || text.length > MAX_TEXT) break;
      if (typeOf(at) === Node.ELEMENT_NODE) {
        if (tagOf(at) === "br") text += "\n";
        continue;
      }
      const parent = parentElementOf(at);
      if (parent !== null && (SKIPPED.has(tagOf(parent)) || tagOf(parent) === "button")) continue;
      const block = blockOf(at, blocks);
      if (block.element !== last.element) {
        if (own === null && !block.isIn(first.element)) own = text;
        const gap = block.isParagraph || last.isParagraph ? "\n\n" : "\n";
        if (at.data.trim() !== "" && !text.endsWith(gap)) text += text.endsWith("\n") ? gap.slice(1) : gap;
        last = block;
      }
      const data = at === node ? at.data.slice(offset) : at.data;
      const from = text.length;
      text += spaced(data, block.space, text);
      if (!isChecked && text.includes("]]")) {
        if (!DIRECTION.test(text)) return null;
        isChecked = true;
      }
      if (!isChecked && text.length > 700) return null;
      const end = endOf(text, from, indent, block.space !== "collapse");
      if (end !== -1) return text.slice(0, end);
      const next = NEXT_DIRECTION.exec(text.slice(Math.max(0, from - 700)));
      if (next !== null && next[1].length <= indent) {
        return text.slice(0, Math.max(0, from - 700) + next.index);
      }
    }
    if (!isChecked) return null;
    // Still streaming, or its end is lost.
    const standing = own ?? text;
    if (record.partial !== standing) {
      record.partial = standing;
      record.since = performance.now();
    }
    if (performance.now() - record.since < STANDSTILL_MS) {
      setTimeout(refreshSoon, STANDSTILL_MS);
      return null;
    }
    return standing;
  }

  const STANDSTILL_MS = 2500;

  function endOf(text, from, indent, isPlain) {
    const END = "[[END]]";
    for (let at = text.indexOf(END, Math.max(2, from - END.length)); at !== -1; at = text.indexOf(END, at + 1)) {
      const line = text.slice(text.lastIndexOf("\n", at) + 1, at);
      if (!isPlain || (BLANK.test(line) && line.length <= indent + 1)) return at + END.length;
    }
    return -1;
  }

  function nearestHtml(element) {
    for (let at = element; at !== null; at = parentElementOf(at)) if (at instanceof HTMLElement) return at;
    return rootOf(document);
  }

  /** The block that a text stands in, and what becomes of its blanks. */
  function blockOf(node, blocks) {
    const parent = parentElementOf(node) ?? parentOf(node);
    const found = blocks.get(parent);
    if (found !== undefined) return found;
    let element = parent;
    while (element instanceof Element && /^(inline|contents|ruby)/.test(styleOf(element).display)) element = parentElementOf(element);
    const space = parent instanceof Element ? styleOf(parent).whiteSpaceCollapse ?? styleOf(parent).whiteSpace : "collapse";
    const block = {
      element,
      isParagraph: element instanceof Element && tagOf(element) === "p",
      space: /^(preserve$|pre$|pre-wrap|break-spaces|preserve-spaces)/.test(space) ? "keep" : /^(preserve-breaks|pre-line)/.test(space) ? "lines" : "collapse",
      isIn: (other) => other === null || (element !== null && Node.prototype.contains.call(other, element)),
    };
    blocks.set(parent, block);
    return block;
  }

  function spaced(data, space, before) {
    if (space === "keep") return data.replace(/\r\n?/g, "\n");
    const plain = space === "lines" ? data.replace(/[ \t]*\n[ \t]*/g, "\n").replace(/[ \t]+/g, " ") : data.replace(/[ \t\n\r]+/g, " ");
    return before === "" || /\s$/.test(before) ? plain.replace(/^ /, "") : plain;
  }

  // ---- Badges ---------------------------------------------------------------------------------------------------------------

  const LOOKS = {
    verified: ["✓", "Verified"],
    "first-contact": ["?", "First contact"],
    damaged: ["✗", "Damaged"],
    unsigned: ["○", "Unsigned"],
  };
  const MAX_BADGES = 100;

  let host = null;
  let layer = null;

  /** The layer of the badges: outside of what the page renders, in a shadow tree that the page can't open. */
  function layerOf() {
    if (host !== null && isAttached(host) && parentOf(host) === rootOf(document)) return layer;
    if (host === null) {
      host = make("crosstalk-layer");
      for (const [name, value] of Object.entries({
        all: "initial", position: "fixed", inset: "0 auto auto 0", width: "0", height: "0", "z-index": "2147483647", display: "block",
        opacity: "1", visibility: "visible", filter: "none", "clip-path": "none", transform: "none", "pointer-events": "auto",
      })) host.style.setProperty(name, value, "important");
      const shadow = Element.prototype.attachShadow.call(host, { mode: "closed" });
      const style = make("style");
      style.textContent = STYLE;
      layer = make("div");
      layer.className = "layer";
      shadow.append(style, layer);
    }
    Node.prototype.appendChild.call(rootOf(document), host);
    return layer;
  }

  const STYLE = `
    .layer { --paper: #fff; --ink: #1c2024; --soft: #5b6470; --line: #d0d5db; --verified: #0b6b3a; --first-contact: #8a5300;
      --damaged: #b3261e; --unsigned: #4a5568; font: 13px/1.45 system-ui, sans-serif; color: var(--ink); }
    .badge { position: fixed; box-sizing: border-box; height: 22px; padding: 0 8px; border: 1px solid currentColor; border-radius: 11px;
      background: var(--paper); font: 600 12px/20px system-ui, sans-serif; white-space: nowrap; cursor: pointer; }
    .verified { color: var(--verified); } .first-contact { color: var(--first-contact); }
    .damaged { color: var(--damaged); } .unsigned { color: var(--unsigned); }
    button:focus-visible, .popover:focus-visible { outline: 2px solid #2f6fed; outline-offset: 2px; }
    .popover { position: fixed; box-sizing: border-box; width: min(440px, calc(100vw - 24px)); max-height: min(70vh, 560px); overflow: auto;
      padding: 14px 16px; border: 1px solid var(--line); border-radius: 10px; background: var(--paper); color: var(--ink);
      box-shadow: 0 6px 24px rgb(0 0 0 / 25%); }
    .popover h2 { margin: 0 28px 2px 0; font-size: 15px; overflow-wrap: anywhere; }
    .popover p { margin: 6px 0; overflow-wrap: anywhere; }
    .about { color: var(--soft); } .verdict { font-weight: 600; }
    .body { margin: 10px 0; padding: 10px 12px; border: 1px solid var(--line); border-radius: 6px; white-space: pre-wrap;
      overflow-wrap: anywhere; font: inherit; max-height: 220px; overflow: auto; }
    .print { font-family: ui-monospace, monospace; font-size: 12px; }
    .actions { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 10px; }
    .actions button, .close { padding: 4px 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--paper); color: var(--ink);
      font: inherit; cursor: pointer; }
    .actions button:hover, .close:hover { border-color: var(--ink); }
    .close { position: absolute; top: 10px; right: 10px; padding: 0 8px; }
    .toast { position: fixed; right: 16px; bottom: 16px; max-width: 340px; padding: 10px 14px; border-radius: 8px; background: var(--ink); color: var(--paper); }
    @media (prefers-color-scheme: dark) {
      .layer { --paper: #1d2126; --ink: #eceff2; --soft: #aab3bd; --line: #4a535d; --verified: #6fdc9c; --first-contact: #ffc266;
        --damaged: #ff9a92; --unsigned: #bcc6d2; }
    }
  `;

  /** Whether a person can see a message: what is hidden gets no badge and is never taken as an answer. */
  function rectOf(record) {
    const range = new Range();
    try {
      range.setStart(record.node, record.offset);
      range.setEnd(record.node, Math.min(record.node.data.length, record.offset + 2));
    } catch {
      return null;
    }
    const element = parentElementOf(record.node) ?? record.anchor;
    const isShown = Element.prototype.checkVisibility?.call(element, {
      checkOpacity: true, checkVisibilityCSS: true, opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true,
    });
    if (isShown === false) return null;
    const rect = range.getBoundingClientRect();
    const style = styleOf(element);
    const isTiny = rect.width < 3 || rect.height < 5 || parseFloat(style.fontSize) < 5;
    const isOutside = rect.right + window.scrollX <= 0 || rect.bottom + window.scrollY <= 0;
    if (isTiny || isOutside || isFaint(style) || isClipped(element, rect)) return null;
    return rect;
  }

  /** Text that has no colour of its own. */
  function isFaint({ color }) {
    const alpha = /^rgba\([^,]+,[^,]+,[^,]+,\s*([\d.]+)\)$/.exec(color);
    return alpha !== null && Number(alpha[1]) < 0.2;
  }

  /** Whether an ancestor cuts the text off entirely, other than by scrolling. */
  function isClipped(element, rect) {
    for (let at = element, depth = 0; at !== null && depth < 60; at = parentElementOf(at), depth += 1) {
      const { overflowX, overflowY, clipPath, position, clip } = styleOf(at);
      if (clipPath !== "none" && /\b(?:inset\((?:50|100)%|circle\(0|polygon\(0)/.test(clipPath)) return true;
      if (position === "absolute" && clip !== "auto" && clip !== "") return true;
      if (overflowX === "hidden" || overflowY === "hidden" || overflowX === "clip") {
        const box = at.getBoundingClientRect();
        if (box.width < 4 || box.height < 4) return true;
        if (tagOf(at) !== "html" && tagOf(at) !== "body" && (rect.left >= box.right || rect.right <= box.left)) return true;
      }
    }
    return false;
  }

  /** Whether the list around a message is scrolled so far that its first line can't be seen. */
  function isScrolledAway(element, rect) {
    for (let at = element; at !== null && at !== rootOf(document); at = parentElementOf(at)) {
      if (styleOf(at).overflowY === "visible" || tagOf(at) === "body") continue;
      const box = at.getBoundingClientRect();
      if (rect.bottom < box.top + 4 || rect.top > box.bottom - 4) return true;
    }
    return false;
  }

  function place(record) {
    if (!record.isNear || rectOf(record) === null) {
      removeBadge(record);
      return;
    }
    const { kind, sentence, envelope } = record.result;
    if (record.badge === null) {
      if (badged.size >= MAX_BADGES) return;
      record.badge = make("button");
      record.badge.type = "button";
      record.badge.addEventListener("click", (event) => {
        if (event.isTrusted) showPopover(record);
      });
      badged.add(record);
      layerOf().append(record.badge);
    }
    const [sign, word] = LOOKS[kind] ?? LOOKS.damaged;
    const parties = envelope === null ? "" : ` from ${plain(envelope.sender)} to ${plain(envelope.receiver)}`;
    record.badge.className = `badge ${kind in LOOKS ? kind : "damaged"}`;
    record.badge.textContent = `${sign} ${word}`;
    record.badge.setAttribute("aria-label", `Message${parties}: ${word}. ${plain(sentence)}`);
    record.badge.title = plain(sentence);
  }

  function removeBadge(record) {
    if (record.badge === null) return;
    record.badge.remove();
    record.badge = null;
    badged.delete(record);
  }

  let isLayoutScheduled = false;
  function layoutSoon() {
    if (isLayoutScheduled) return;
    isLayoutScheduled = true;
    requestAnimationFrame(() => {
      isLayoutScheduled = false;
      layout();
    });
  }

  function layout() {
    const shown = [...badged];
    if (shown.length === 0) return;
    layerOf();
    const places = shown.map((record) => [record, isAttached(record.node) ? rectOf(record) : null]);
    for (const [record, rect] of places) {
      const isOut = rect === null || rect.bottom < -30 || rect.top > window.innerHeight + 30 || isScrolledAway(record.anchor, rect);
      record.badge.style.display = isOut ? "none" : "block";
      if (isOut) continue;
      // At the right end of the block, where the direction line leaves room; never over the text itself.
      const block = record.anchor.getBoundingClientRect();
      const width = record.badge.offsetWidth || 90;
      const right = Math.min(Math.max(block.right, rect.left + width), window.innerWidth - 8);
      record.badge.style.left = `${Math.max(4, right - width)}px`;
      record.badge.style.top = `${rect.top - 24 < 0 ? rect.top : rect.top - 24}px`;
    }
  }

  for (const name of ["scroll", "resize"]) window.addEventListener(name, layoutSoon, { capture: true, passive: true });
  // Pages move things without changing their tree; fonts and pictures come late.
  setInterval(() => {
    if (badged.size > 0 || (host !== null && !isAttached(host))) {
      if (host !== null && !isAttached(host)) layerOf();
      layoutSoon();
    }
  }, 500);

  /** A text for a label: without what reorders or hides. */
  function plain(text) {
    return String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu, "�");
  }

  // ---- Popover --------------------------------------------------------------------------------------------------------------

  let popover = null;
  let opener = null;

  function element(tag, { text, ...attributes } = {}, ...children) {
    const made = make(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
  }

  function hidePopover() {
    popover?.remove();
    popover = null;
    opener?.focus();
    opener = null;
  }

  function showPopover(record) {
    popover?.remove();
    const { result, badge } = record;
    opener = badge;
    const { envelope, kind, sentence, next, repairs, fingerprint, text } = result;
    const [sign, word] = LOOKS[kind] ?? LOOKS.damaged;
    const title = envelope === null ? "Message that can't be read" : `${plain(envelope.sender)} → ${plain(envelope.receiver)}`;
    popover = element("div", { class: "popover", role: "dialog", "aria-label": `Crosstalk: ${title}`, tabindex: "-1" });
    popover.append(element("h2", { text: title }));
    if (envelope !== null) {
      const about = [envelope.intent, envelope.context, envelope.user && `by ${envelope.user}`].filter(Boolean);
      popover.append(element("p", { class: "about", text: plain(about.join(" · ")) }));
    }
    popover.append(element("p", { class: `verdict ${kind}`, text: `${sign} ${word}: ${plain(sentence)}` }));
    if (next) popover.append(element("p", { class: "about", text: plain(next) }));
    if (fingerprint) popover.append(element("p", { class: "about print", text: `Fingerprint ${plain(fingerprint)}` }));
    if (repairs.length > 0) popover.append(element("p", { class: "about", text: `Repaired: ${plain(repairs.slice(0, 5).join("; "))}` }));
    if (envelope !== null) popover.append(element("div", { class: "body", tabindex: "0", role: "region", "aria-label": "Text of the message", text: plain(envelope.body) }));
    const actions = element("div", { class: "actions" });
    const action = (name, run) => {
      const button = element("button", { type: "button", text: name });
      button.addEventListener("click", (event) => {
        if (event.isTrusted && isCovered(button) === false) run();
      });
      actions.append(button);
    };
    if (text !== null) {
      action("Copy", () => copy(text));
      action("Reply", () => open("reply", record.text));
      action("Save to file", () => open("save", record.text));
      action("Send to relay", () => open("relay", record.text));
    }
    action("Show in Crosstalk", () => open("show", record.text));
    const close = element("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
    close.addEventListener("click", hidePopover);
    popover.append(actions, close);
    popover.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hidePopover();
      event.stopPropagation();
    });
    layerOf().append(popover);
    const at = badge.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = popover;
    popover.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - width - 8))}px`;
    const below = at.bottom + 6;
    popover.style.top = `${below + height < window.innerHeight - 8 ? below : Math.max(8, window.innerHeight - height - 8)}px`;
    popover.focus();
  }

  /** Whether the page has put something over a button, or made the layer invisible. */
  function isCovered(button) {
    const box = button.getBoundingClientRect();
    const top = Document.prototype.elementFromPoint.call(document, box.left + box.width / 2, box.top + box.height / 2);
    const { opacity, visibility } = styleOf(host);
    return top !== host || Number(opacity) < 1 || visibility !== "visible";
  }

  window.addEventListener(
    "pointerdown",
    (event) => {
      if (popover !== null && event.target !== host) hidePopover();
    },
    true,
  );

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied.");
    } catch {
      open("copy", text);
    }
  }

  function open(action, text) {
    hidePopover();
    void send({ type: "open", action, text });
  }

  let toastTimer;
  function toast(text) {
    const all = layerOf();
    all.querySelector(".toast")?.remove();
    all.append(element("div", { class: "toast", role: "status", text: plain(text) }));
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => all.querySelector(".toast")?.remove(), 4000);
  }

  // ---- Input of the chat ----------------------------------------------------------------------------------------------------

  let lastInput = null;
  window.addEventListener(
    "focusin",
    (event) => {
      const [target] = event.composedPath();
      if (isInput(target)) lastInput = target;
    },
    true,
  );

  function isInput(target) {
    if (!(target instanceof HTMLElement)) return false;
    if (tagOf(target) === "textarea") return !target.readOnly && !target.disabled;
    return isEditable(target);
  }

  /** The outermost editable element: that of the editor. */
  function editorOf(target) {
    let editor = target;
    for (let at = target; at instanceof HTMLElement && isEditable(at); at = parentElementOf(at)) editor = at;
    return editor;
  }

  function* rootsOf(root) {
    yield root;
    for (const node of queryAll(root, "*")) {
      const shadow = openShadowOf(node);
      if (shadow !== null) yield* rootsOf(shadow);
    }
  }

  /** The input of the chat: the one that had the focus last, else the largest visible one. */
  function findInput() {
    if (lastInput !== null && isAttached(lastInput) && isInput(lastInput) && isVisible(lastInput)) return lastInput;
    const all = [];
    for (const root of rootsOf(document)) {
      all.push(...queryAll(root, "textarea, [contenteditable]:not([contenteditable=false])").filter((e) => isInput(e) && isVisible(e)));
    }
    const size = (e) => e.getBoundingClientRect().width * Math.max(20, e.getBoundingClientRect().height);
    return all.sort((a, b) => size(b) - size(a))[0] ?? null;
  }

  function isVisible(target) {
    const { width, height } = target.getBoundingClientRect();
    return width > 20 && height > 8 && Element.prototype.checkVisibility?.call(target, { checkOpacity: true, checkVisibilityCSS: true }) !== false;
  }

  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const command = (name, value) => Document.prototype.execCommand.call(document, name, false, value);

  /** Puts a text into the input, so that undo takes it away again. It is never sent. */
  async function insert(text) {
    const input = findInput();
    if (input === null) return { ok: false, reason: "This page has no input that text can be put into." };
    if (tagOf(input) === "textarea") {
      input.focus();
      const all = input.value;
      input.setSelectionRange(all.length, all.length);
      const glue = all === "" || all.endsWith("\n") ? "" : "\n";
      const wanted = all + glue + text;
      command("insertText", glue + text);
      await pause(30);
      if (input.value !== wanted) return { ok: false, reason: "The page changed the text." };
      return { ok: true };
    }
    const editor = editorOf(input);
    const before = linesOf(editor);
    const wanted = [...(before.join("") === "" ? [] : before), ...text.replace(/\n$/, "").split("\n")];
    // ProseMirror drops blank lines of a plain text; a slice of its own keeps every line and blank.
    const ways = editor.classList.contains("ProseMirror") ? [pasteLines, pasteText, typeLines] : [pasteText, typeLines];
    for (const way of ways) {
      await caretToEnd(editor);
      const glue = before.join("") === "" ? "" : "\n";
      const isDone = await way(editor, glue + text.replace(/\n$/, ""));
      await pause(60);
      const now = linesOf(editor);
      if (isDone && isSame(now, wanted)) return { ok: true };
      if (isSame(now, before)) continue;
      // The next way begins with what was there before.
      for (const undo of [pressUndo, () => command("undo")]) {
        if (isSame(linesOf(editor), before)) break;
        undo(editor);
        await pause(60);
      }
      if (!isSame(linesOf(editor), before)) break;
    }
    return { ok: false, reason: "The editor of this page changed the text. It is on the clipboard if you press Copy." };
  }

  /** Blank lines may hold blanks, and ends of lines may lose them: they mean the same in an envelope. */
  function isSame(some, others) {
    const clean = (lines) => lines.map((line) => line.replaceAll("\u00a0", " ").trimEnd()).join("\n").replace(/\n+$/, "");
    return clean(some) === clean(others);
  }

  async function caretToEnd(editor) {
    editor.focus();
    const selection = editor.getRootNode().getSelection?.() ?? window.getSelection();
    selection.selectAllChildren(editor);
    selection.collapseToEnd();
    // Editors follow the selection of the document with an event.
    await pause(30);
  }

  /** The lines of an editor, as it shows them. */
  function linesOf(editor) {
    const blocks = [...editor.children].filter((e) => !/^(inline|none|contents)/.test(styleOf(e).display));
    if (blocks.length === 0) return linesIn(editor);
    const lines = [];
    for (const node of editor.childNodes) {
      if (typeOf(node) === Node.TEXT_NODE) {
        if (node.data !== "") lines.push(...node.data.split("\n"));
      } else if (typeOf(node) === Node.ELEMENT_NODE) {
        if (tagOf(node) === "br") continue;
        lines.push(...linesIn(node));
      }
    }
    return lines;
  }

  function linesIn(block) {
    const walker = walkerOf(block, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    let text = "";
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      if (typeOf(node) === Node.TEXT_NODE) text += node.data;
      else if (tagOf(node) === "br" && !node.classList.contains("ProseMirror-trailingBreak")) text += "\n";
    }
    return text.replace(/\n$/, "").split("\n");
  }

  function pasteEvent(parts) {
    const data = new DataTransfer();
    for (const [type, value] of Object.entries(parts)) data.setData(type, value);
    return new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true, composed: true });
  }

  /** Editors that handle a paste themselves get one. */
  async function pasteText(editor, text) {
    return !caretTarget(editor).dispatchEvent(pasteEvent({ "text/plain": text }));
  }

  /** Editors with a history of their own take it from the keys. */
  function pressUndo(editor) {
    const isMac = /^Mac/.test(navigator.platform);
    const keys = { key: "z", code: "KeyZ", keyCode: 90, ctrlKey: !isMac, metaKey: isMac, bubbles: true, cancelable: true };
    editor.dispatchEvent(new KeyboardEvent("keydown", keys));
  }

  async function pasteLines(editor, text) {
    const list = text.split("\n").map((line, at) => {
      const escaped = line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
      return `<p${at === 0 ? ' data-pm-slice="1 1 []"' : ""}>${escaped}</p>`;
    });
    return !caretTarget(editor).dispatchEvent(pasteEvent({ "text/plain": text, "text/html": list.join("") }));
  }

  function caretTarget(editor) {
    const selection = editor.getRootNode().getSelection?.() ?? window.getSelection();
    const node = selection.anchorNode;
    const inside = node instanceof Element ? node : node && parentElementOf(node);
    return inside && Node.prototype.contains.call(editor, inside) ? inside : editor;
  }

  /** Editors that leave it to the browser get the text as if it was typed. */
  async function typeLines(editor, text) {
    const lines = text.split("\n");
    // One step for undo where the browser keeps line breaks.
    if (/^pre/.test(styleOf(editor).whiteSpace) && command("insertText", text)) {
      await pause(60);
      return true;
    }
    for (const [at, line] of lines.entries()) {
      if (at > 0 && !command("insertParagraph") && !command("insertLineBreak")) return false;
      if (line !== "" && !command("insertText", line)) return false;
    }
    return true;
  }

  // ---- Answers, keys, messages ----------------------------------------------------------------------------------------------

  /** The last envelopes of the page that a person can see, the newest first. */
  function latest(count) {
    const all = [...records].filter((record) => isAttached(record.node));
    all.sort((a, b) => (a.node === b.node ? a.offset - b.offset : a.node.compareDocumentPosition(b.node) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    const texts = [];
    for (const record of all.reverse()) {
      if (texts.length === count) break;
      if (rectOf(record) === null) continue;
      const reading = readFrom(record);
      let step = reading.next();
      while (!step.done) step = reading.next();
      // An answer that is not complete is no answer yet.
      if (typeof step.value === "string" && step.value.trimEnd().endsWith("[[END]]")) texts.push(step.value);
    }
    return texts;
  }

  let shortcuts = {};
  let me = "";

  /** The own question stands in the chat, too; it is no answer. */
  const senderOf = (text) => /^\[\[\s*(.*?)\s*(?:→|->|=>|⟶|➔|➜)/.exec(text)?.[1].toLowerCase();

  function isShortcut(event, wanted) {
    if (!wanted) return false;
    const keys = wanted.split("+");
    const code = keys.pop();
    const has = (name) => keys.includes(name);
    return (
      event.code === code && event.altKey === has("Alt") && event.shiftKey === has("Shift") &&
      event.ctrlKey === has("Ctrl") && event.metaKey === has("Meta")
    );
  }

  window.addEventListener(
    "keydown",
    (event) => {
      if (!event.isTrusted || event.repeat) return;
      const action = Object.keys(shortcuts).find((name) => isShortcut(event, shortcuts[name]));
      if (action === undefined) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (action === "compose") void send({ type: "open", action: "compose", text: null });
      else if (action === "reply") {
        const text = latest(5).find((each) => senderOf(each) !== me.toLowerCase());
        if (text === undefined) toast("There is no answer on this page yet.");
        else void send({ type: "open", action: "reply", text });
      }
    },
    true,
  );

  async function send(message) {
    try {
      return await browser.runtime.sendMessage(message);
    } catch {
      // The extension was reloaded or removed.
      return undefined;
    }
  }

  browser.runtime.onMessage.addListener((message, sender, respond) => {
    if (sender.id !== browser.runtime.id) return undefined;
    const isElsewhere = isTop && activeOf(document)?.localName === "iframe" && lastInput === null;
    switch (message.type) {
      case "insert":
        // Frames without an input of their own leave it to the page around them.
        if (!isTop && lastInput === null) return undefined;
        void (async () => {
          if (isElsewhere) await pause(250);
          respond(await insert(message.text));
        })();
        return true;
      case "latest": {
        void (async () => {
          // What is waiting to be scanned may hold the answer.
          for (let round = 0; jobs.length > 0 && round < 50; round += 1) await pause(20);
          const texts = latest(message.count);
          if (texts.length === 0) await pause(isTop ? 250 : 2000);
          respond(texts);
        })();
        return true;
      }
      case "stats":
        respond({ ...stats, badges: [...badged].filter(({ badge }) => badge.style.display !== "none").map(({ badge }) => {
          const { left, top, width, height } = badge.getBoundingClientRect();
          return { text: badge.textContent, left, top, width, height };
        }) });
        return undefined;
      case "settings":
        ({ shortcuts, me } = message);
        known.clear();
        for (const record of records) record.text = null;
        refreshSoon();
        return undefined;
      case "toast":
        if (isTop) toast(message.text);
        return undefined;
      default:
        return undefined;
    }
  });

  void (async () => {
    const settings = await send({ type: "settings" });
    if (settings === undefined || settings === null) return;
    ({ shortcuts, me } = settings);
    watch(document);
  })();
})();
