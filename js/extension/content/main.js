// Runs beside the pages of enabled sites: finds envelopes by their text, shows a badge on each, and puts texts into the input of a
// chat. It decides nothing: the background reads and verifies. It runs in a world of its own, so a page can't override what it
// calls; names of elements of the page can hide properties of `document` and of forms, so those are called by their prototypes,
// and can pass for globals that nobody set, so only own ones count.

(() => {
  "use strict";
  // The person may allow a page on which the script has found that it may not run.
  if (Object.hasOwn(globalThis, "crosstalkStart")) {
    globalThis.crosstalkStart();
    return;
  }

  const browser = globalThis[Object.hasOwn(globalThis, "browser") ? "browser" : "chrome"];
  const isTop = window === window.top;

  const getter = (prototype, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (object) => get.call(object);
  };
  const rootOf = getter(Document.prototype, "documentElement");
  const isHidden = getter(Document.prototype, "hidden");
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
  const hostOf = getter(ShadowRoot.prototype, "host");
  const holds = (outer, inner) => Node.prototype.contains.call(outer, inner);
  const walkerOf = (root, show) => Document.prototype.createTreeWalker.call(document, root, show);
  const make = (tag) => Document.prototype.createElement.call(document, tag);
  const styleOf = (element) => window.getComputedStyle(element);
  const queryAll = (root, selector) => {
    const prototype = typeOf(root) === Node.DOCUMENT_NODE ? Document.prototype : root instanceof ShadowRoot ? DocumentFragment.prototype : Element.prototype;
    return [...prototype.querySelectorAll.call(root, selector)];
  };

  // ---- Work in slices -------------------------------------------------------------------------------------------------------

  /** How long a slice may take, in milliseconds; the clock is looked at after each step, and a step is short. */
  const SLICE_MS = 1;
  /** What reads the tree only. */
  const jobs = [];
  /** What reads styles and places: it runs right after the browser made the layout of a frame, and so causes no other one. */
  let look = null;
  const wanted = { refresh: false, layout: false };
  const stats = { slices: 0, maxMs: 0, over5: 0, found: 0, sum: 0, batches: 0 };

  /** Runs something, and counts how long the page had to wait for it. Everything that happens without a click goes through here. */
  function timed(run) {
    const began = performance.now();
    run(began);
    const took = performance.now() - began;
    stats.slices += 1;
    stats.sum += took;
    stats.maxMs = Math.max(stats.maxMs, took);
    if (took > 5) stats.over5 += 1;
  }

  /** Whether a job is done after its next step. */
  function isDoneAfterStep(job) {
    try {
      return job.next().done;
    } catch {
      // A page that changes while it is read is read again.
      return true;
    }
  }

  const channel = new MessageChannel();
  let isScheduled = false;
  channel.port1.onmessage = () => {
    isScheduled = false;
    timed((began) => {
      while (jobs.length > 0 && performance.now() - began < SLICE_MS) if (isDoneAfterStep(jobs[0])) jobs.shift();
    });
    if (look !== null || wanted.refresh || wanted.layout) frame.observe(probeOf());
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
      const kept = jobs.filter((each, at) => at === 0 || each.isKept);
      jobs.splice(0, jobs.length, ...kept, scan(rootOf(document)));
    }
    jobs.push(job);
    schedule();
  }

  /** Called after the layout of the next frame, because an element that it did not know has a size. */
  const frame = new ResizeObserver(() => {
    frame.disconnect();
    timed((began) => {
      if (wanted.refresh && look === null) {
        wanted.refresh = false;
        look = refresh();
      }
      while (look !== null && performance.now() - began < SLICE_MS) if (isDoneAfterStep(look)) look = null;
      if (wanted.layout) layout();
    });
    // Another call in the same frame would be an error that the page sees.
    if (look !== null || wanted.refresh) schedule();
  });

  function layoutSoon() {
    wanted.layout = true;
    schedule();
  }

  let refreshTimer;
  function refreshSoon() {
    // A page that never stands still is read all the same.
    refreshTimer ??= setTimeout(() => {
      refreshTimer = undefined;
      // Nobody sees badges of a hidden page.
      if (isHidden(document) || starts.size === 0) return;
      wanted.refresh = true;
      layoutSoon();
    }, 120);
  }
  window.addEventListener("visibilitychange", () => refreshSoon(), true);

  // ---- Finding --------------------------------------------------------------------------------------------------------------

  const SKIPPED = new Set(["script", "style", "noscript", "template", "textarea", "input", "select", "title", "svg"]);
  const STEP_NODES = 16;
  const MAX_TEXT = 64 << 10;
  const MAX_NODES = 4000;
  const MAX_RECORDS = 20_000;
  /** No page that a person reads is deeper; parsers of browsers stop at this depth, too. */
  const MAX_DEPTH = 512;

  /**
   * Found beginnings of envelopes, by their text node: `node` and `offset`, `anchor` (the element around), `scope` (everything that was read),
   * `text`, `result` (what the background said about this text), `view` (whether it can be seen), `badge`.
   */
  const starts = new Map();
  /** The same by the element around them. What a page of ten thousand messages costs is memory that has to be collected. */
  const anchors = new Map();
  /** Those that are on the screen or close to it. */
  const near = new Set();
  /** Those that have a badge. */
  const badged = new Set();
  const observed = new WeakSet();

  const observer = new MutationObserver((list) =>
    timed(() => {
      stats.batches += 1;
      add(digest(list));
    }),
  );

  function observe(root) {
    if (observed.has(root)) return;
    observed.add(root);
    observer.observe(root, { subtree: true, childList: true, characterData: true });
  }

  /** Where the page changed since messages were read; null for everywhere. */
  let touched = new Set();
  const MAX_TOUCHED = 50;

  function* digest(list) {
    let count = 0;
    for (const { type, target, addedNodes } of list) {
      if (touched !== null && touched.add(target).size > MAX_TOUCHED) touched = null;
      if (type === "characterData") lookAt(target);
      else {
        for (const node of addedNodes) {
          if (node !== host && !scanLeaf(node)) yield* scan(node);
          // A step is a few nodes: the clock is looked at after each.
          if (++count % STEP_NODES === 0) yield;
        }
      }
      if (++count % STEP_NODES === 0) yield;
    }
    refreshSoon();
  }

  /** Looks at an element that holds nothing but text, as most do that are added. It needs no walker, which saves memory. */
  function scanLeaf(root) {
    if (typeOf(root) !== Node.ELEMENT_NODE || firstElementOf(root) !== null || openShadowOf(root) !== null) return false;
    const first = firstOf(root);
    if (first === null) return true;
    if (typeOf(first) !== Node.TEXT_NODE || nextOf(first) !== null) return false;
    lookAt(first);
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
        if (shadow !== null) {
          observe(shadow);
          yield* scan(shadow);
        }
      }
      if (++count % STEP_NODES === 0) yield;
      node = walker.nextNode();
    }
    refreshSoon();
  }

  /** Notes where envelopes may begin in a text. */
  function lookAt(node) {
    const data = node.data.slice(0, MAX_TEXT * 8);
    // Two brackets may be in two nodes.
    if (!data.includes("[[") && !data.endsWith("[")) return;
    const parent = outerOf(node);
    if (parent === null || SKIPPED.has(tagOf(parent))) return;
    const here = starts.get(node);
    let offset = data.indexOf("[[");
    if (offset === -1) offset = data.length - 1;
    for (let count = 0; offset !== -1 && count < MAX_STARTS && stats.found < MAX_RECORDS; count += 1) {
      const isNew = here === undefined || !here.some((record) => record.offset === offset);
      if (isNew && mayBegin(data, offset)) note({ node, offset, anchor: parent, scope: null, data, text: null, partial: null, since: 0, result: null, view: null, badge: null });
      offset = data.indexOf("[[", offset + 2);
    }
  }

  const MAX_STARTS = 50;

  function note(record) {
    stats.found += 1;
    const { node, anchor } = record;
    const here = starts.get(node);
    if (here === undefined) starts.set(node, [record]);
    else here.push(record);
    const all = anchors.get(anchor);
    if (all === undefined) {
      anchors.set(anchor, [record]);
      nearness.observe(anchor);
    } else {
      if (near.has(all[0])) near.add(record);
      all.push(record);
    }
  }

  /** Only what is on the screen is read: a chat may hold ten thousand messages. */
  const nearness = new IntersectionObserver((entries) => timed(() => add(approach(entries))), { rootMargin: "200px" });

  function* approach(entries) {
    let count = 0;
    for (const { target, isIntersecting } of entries) {
      for (const record of anchors.get(target) ?? []) {
        if (isIntersecting) near.add(record);
        else leave(record);
      }
      if (++count % STEP_NODES === 0) yield;
    }
    refreshSoon();
  }

  /** A message that is not on the screen any more. When it comes again, it is read again. */
  function leave(record) {
    removeBadge(record);
    near.delete(record);
    record.text = null;
    record.partial = null;
    record.scope = null;
  }

  /** Forgets the records of a text that the page threw away. */
  function forget(node) {
    for (const record of starts.get(node) ?? []) {
      leave(record);
      stats.found -= 1;
      const others = (anchors.get(record.anchor) ?? []).filter((other) => other !== record);
      if (others.length > 0) anchors.set(record.anchor, others);
      else if (anchors.delete(record.anchor)) nearness.unobserve(record.anchor);
    }
    starts.delete(node);
  }

  /** Each refresh looks whether some of the texts are still there. */
  let sweep = starts.keys();
  const SWEPT = 256;

  function* refresh() {
    const changed = touched;
    touched = new Set();
    for (let count = 0; count < SWEPT; count += 1) {
      const { value: node, done } = sweep.next();
      if (done) {
        sweep = starts.keys();
        break;
      }
      if (!isAttached(node)) forget(node);
    }
    yield;
    const asked = [];
    const memo = { blocks: new Map(), surroundings: new Map() };
    for (const record of [...near]) {
      if (!isAttached(record.node)) {
        forget(record.node);
        continue;
      }
      record.view = viewOf(record, memo);
      if (record.text === null || isTouched(record.scope, changed)) {
        const isStanding = record.partial !== null && changed !== null && changed.size === 0;
        const text = isStanding ? stood(record) : yield* readFrom(record, memo.blocks);
        if (text !== record.text) {
          // A badge never stands on another text than the one that was read.
          removeBadge(record);
          record.text = text;
          record.result = text === null ? null : known.get(text) ?? null;
          if (text !== null && record.result === null) asked.push(record);
        }
      }
      place(record);
      yield;
    }
    if (asked.length > 0) void ask(asked);
    wanted.layout = true;
  }

  /** Whether a message may read otherwise since the page changed at some places. */
  function isTouched(scope, places) {
    if (scope === null || places === null) return true;
    for (const place of places) if (holds(scope, place) || holds(place, scope)) return true;
    return false;
  }

  /** Results by text, so that a page that renders a message again gets its badge at once. */
  const known = new Map();
  const MAX_KNOWN = 200;
  /** The most texts of one request, and about how long they are together: the browser copies them while the page waits. */
  const MAX_ASKED = 32;
  const MAX_ASKED_CHARS = 32 << 10;

  async function ask(asked) {
    const texts = [...new Set(asked.map(({ text }) => text))];
    while (texts.length > 0) {
      const part = [];
      for (let room = MAX_ASKED_CHARS; room > 0 && part.length < MAX_ASKED && texts.length > 0; room -= part.at(-1).length) part.push(texts.shift());
      await pause(0);
      let sent;
      timed(() => (sent = send({ type: "read", texts: part })));
      const results = await sent;
      timed(() => {
        if (Array.isArray(results)) part.forEach((text, at) => known.set(text, results[at]));
        while (known.size > MAX_KNOWN) known.delete(known.keys().next().value);
        for (const record of asked) {
          if (!part.includes(record.text)) continue;
          record.result = known.get(record.text) ?? null;
          // It is asked again.
          if (record.result === null) record.text = null;
          else place(record);
        }
        layoutSoon();
      });
    }
  }

  const ARROWS = ["→", "->", "=>", "⟶", "➔", "➜"];
  /** Every part of these is read once at most, whatever a page writes. */
  const BRACKETS = /^\[\[([^[\]\n]{3,610})\]\]/;
  const NEXT_BRACKETS = /\n([ \t]*)\[\[([^[\]\n]{3,610})\]\]/g;
  const MAX_HEAD = 700;
  const BLANK = /^[ \t>|]*$/;
  const MAX_INDENT = 200;

  /** Whether the text between two brackets is two names with an arrow between them. */
  function isDirection(inner) {
    return ARROWS.some((arrow) => {
      const at = inner.indexOf(arrow, 1);
      return at !== -1 && at + arrow.length < inner.length;
    });
  }

  /** Whether a message may begin at a place of a text node, as far as this node tells. */
  function mayBegin(data, offset) {
    const rest = data.slice(offset + 2, offset + MAX_HEAD);
    const stop = rest.search(/[[\]]/);
    return stop === -1 || (rest[stop] === "]" && isDirection(rest.slice(0, stop)));
  }

  /**
   * The text of the envelope that begins at a record, as a person would copy it; null if none begins there. An envelope whose end
   * has not come is given after it stood still for some time.
   */
  function* readFrom(record, blocks = new Map()) {
    const { node, offset, partial } = record;
    record.scope = null;
    record.partial = null;
    record.data = node.data;
    if (isEditable(nearestHtml(record.anchor))) return null;
    if (!node.data.startsWith("[[", offset) && offset !== node.data.length - 1) return null;
    const before = node.data.slice(Math.max(0, offset - MAX_INDENT), offset);
    const prefix = before.slice(before.lastIndexOf("\n") + 1);
    const indent = BLANK.test(prefix) ? prefix.length : 0;
    const root = node.getRootNode();
    const walker = walkerOf(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    walker.currentNode = node;
    const first = blockOf(node, blocks);
    let last = first;
    // The text in pieces, how long it is, and its end, in which a mark may begin that goes on in the next piece.
    const parts = [];
    let length = 0;
    let tail = "";
    const push = (piece) => {
      parts.push(piece);
      length += piece.length;
      tail = (tail + piece).slice(-2 * MAX_HEAD);
    };
    const text = (end) => parts.join("").slice(0, end);
    let own = null;
    let isChecked = false;
    let count = 0;
    record.scope = first.element;
    for (let at = node; at !== null; at = walker.nextNode()) {
      if (++count % STEP_NODES === 0) yield;
      if (count > MAX_NODES || length > MAX_TEXT) break;
      if (typeOf(at) === Node.ELEMENT_NODE) {
        if (tagOf(at) === "br") push("\n");
        continue;
      }
      const parent = parentElementOf(at);
      if (parent !== null && (SKIPPED.has(tagOf(parent)) || tagOf(parent) === "button")) continue;
      const data = at.data.slice(at === node ? offset : 0, (at === node ? offset : 0) + MAX_TEXT);
      const block = blockOf(at, blocks);
      if (block.element !== last.element) {
        if (own === null && !block.isIn(first.element)) own = text();
        const gap = block.isParagraph || last.isParagraph ? "\n\n" : "\n";
        if (/\S/.test(data) && !tail.endsWith(gap)) push(tail.endsWith("\n") ? gap.slice(1) : gap);
        last = block;
      }
      for (let depth = 0; record.scope !== null && !holds(record.scope, at) && depth < MAX_DEPTH; depth += 1) record.scope = parentElementOf(record.scope);
      const piece = spaced(data, block.space, tail);
      // What was there before the piece and may belong to a mark in it.
      const seam = tail;
      const from = length - seam.length;
      push(piece);
      if (!isChecked) {
        const head = text(MAX_HEAD);
        const found = BRACKETS.exec(head);
        if (found !== null && isDirection(found[1])) isChecked = true;
        else if (head.includes("]]") || head.length >= MAX_HEAD) return null;
      }
      if (!piece.includes("]")) continue;
      const end = endOf(seam + piece, Math.max(from === 0 ? 2 : 0, seam.length - 7), indent, block.space !== "collapse");
      const next = nextIn(seam + piece, indent);
      if (end !== -1 && (next === -1 || end <= next)) return text(from + end);
      if (next !== -1 && isChecked) return text(from + next);
    }
    if (!isChecked) return null;
    // Still streaming, or its end is lost. What comes later belongs to it.
    record.scope = null;
    record.partial = own ?? text();
    if (record.partial !== partial) record.since = performance.now();
    return stood(record);
  }

  const STANDSTILL_MS = 2500;

  /** A message without an end, once it stood still for some time. */
  function stood({ partial, since }) {
    if (performance.now() - since >= STANDSTILL_MS) return partial;
    setTimeout(refreshSoon, STANDSTILL_MS);
    return null;
  }

  /** Where the end mark of a message ends in a text, from a place on; -1 if it is not there. */
  function endOf(text, from, indent, isPlain) {
    const END = "[[END]]";
    for (let at = text.indexOf(END, from); at !== -1; at = text.indexOf(END, at + 1)) {
      if (!isPlain) return at + END.length;
      let begin = at;
      while (begin > 0 && at - begin <= indent + 1 && " \t>|".includes(text[begin - 1])) begin -= 1;
      if (at - begin <= indent + 1 && (begin === 0 || text[begin - 1] === "\n")) return at + END.length;
    }
    return -1;
  }

  /** Where the next message begins in a text; -1 if none does. */
  function nextIn(text, indent) {
    for (const found of text.matchAll(NEXT_BRACKETS)) if (found[1].length <= indent && isDirection(found[2])) return found.index;
    return -1;
  }

  function nearestHtml(element) {
    for (let at = element, depth = 0; at !== null && depth < MAX_DEPTH; at = parentElementOf(at), depth += 1) if (at instanceof HTMLElement) return at;
    return rootOf(document);
  }

  /** The element around a node; that of a shadow tree is its host. */
  function outerOf(node) {
    const parent = parentElementOf(node);
    if (parent !== null) return parent;
    const root = parentOf(node);
    return root instanceof ShadowRoot ? hostOf(root) : null;
  }

  /** The block that a text stands in, and what becomes of its blanks. */
  function blockOf(node, blocks) {
    const parent = parentElementOf(node) ?? parentOf(node);
    const found = blocks.get(parent);
    if (found !== undefined) return found;
    let element = parent;
    for (let depth = 0; element instanceof Element && depth < MAX_DEPTH && /^(inline|contents|ruby)/.test(styleOf(element).display); depth += 1) element = parentElementOf(element);
    const space = parent instanceof Element ? styleOf(parent).whiteSpaceCollapse ?? styleOf(parent).whiteSpace : "collapse";
    const block = {
      element,
      isParagraph: element instanceof Element && tagOf(element) === "p",
      space: /^(preserve$|pre$|pre-wrap|break-spaces|preserve-spaces)/.test(space) ? "keep" : /^(preserve-breaks|pre-line)/.test(space) ? "lines" : "collapse",
      isIn: (other) => other === null || (element !== null && holds(other, element)),
    };
    blocks.set(parent, block);
    return block;
  }

  function spaced(data, space, before) {
    if (space === "keep") return data.replace(/\r\n?/g, "\n");
    const plain = space === "lines" ? data.replace(/[ \t]+/g, " ").replace(/ ?\n ?/g, "\n") : data.replace(/[ \t\n\r]+/g, " ");
    return before === "" || /\s$/.test(before.slice(-1)) ? plain.replace(/^ /, "") : plain;
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
  let probe = null;

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
      probe = element("div", { class: "probe" });
      shadow.append(style, layer, probe);
    }
    Node.prototype.appendChild.call(rootOf(document), host);
    return layer;
  }

  /** An element of a size, to be told of the layout of a frame. */
  function probeOf() {
    layerOf();
    return probe;
  }

  const STYLE = `
    .layer { --paper: #fff; --ink: #1c2024; --soft: #5b6470; --line: #d0d5db; --verified: #0b6b3a; --first-contact: #8a5300;
      --damaged: #b3261e; --unsigned: #4a5568; font: 13px/1.45 system-ui, sans-serif; color: var(--ink); }
    .probe { position: fixed; width: 1px; height: 1px; visibility: hidden; }
    .badge { position: fixed; transform: translateX(-100%); box-sizing: border-box; height: 22px; padding: 0 8px; border: 1px solid currentColor; border-radius: 11px;
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

  /** One for all: the browser keeps each range up to date until it is collected. */
  const range = new Range();

  /** The place of the brackets of a message; null if they have none. */
  function rectOf({ node, offset }) {
    try {
      range.setStart(node, offset);
      range.setEnd(node, Math.min(node.data.length, offset + 2));
    } catch {
      return null;
    }
    const rect = range.getBoundingClientRect();
    range.setStart(document, 0);
    range.collapse(true);
    const isTiny = rect.width < 3 || rect.height < 5;
    const isOutside = rect.right + window.scrollX <= 0 || rect.bottom + window.scrollY <= 0;
    return isTiny || isOutside ? null : rect;
  }

  /** The least opacity of what a person can see. */
  const MIN_OPACITY = 0.2;

  /** What cuts a message off, by its styles; null for one that is hidden. It gets no badge and is never taken as an answer. */
  function viewOf({ node }, { surroundings }) {
    const element = outerOf(node);
    if (element === null) return null;
    const isShown = Element.prototype.checkVisibility?.call(element, {
      checkOpacity: true, checkVisibilityCSS: true, opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true,
    });
    const around = isShown === false ? null : aroundOf(element, surroundings);
    if (around === null || around.isCut || around.opacity < MIN_OPACITY) return null;
    const { color, fontSize, webkitTextFillColor } = styleOf(element);
    const ink = webkitTextFillColor ?? color;
    if (parseFloat(fontSize) < 5 || alphaOf(ink) < MIN_OPACITY || ink === around.paper) return null;
    return around;
  }

  /** How opaque a colour is, of those that browsers compute. */
  function alphaOf(color) {
    const alpha = /(?:^rgba\(.*,|\/)\s*([\d.]+)\)$/.exec(color);
    return alpha === null ? 1 : Number(alpha[1]);
  }

  /**
   * What an element and those around it do to a text: `opacity`, `paper` (the colour behind it), `isCut` (nothing is left of it),
   * and `clips`, the elements that show a part of what is in them, from the inside out. Null for what is too deep.
   */
  function aroundOf(element, memo) {
    const chain = [];
    let at = element;
    for (; at !== null && !memo.has(at) && chain.length <= MAX_DEPTH; at = outerOf(at)) chain.push(at);
    if (chain.length > MAX_DEPTH) return null;
    const isDark = at === null && /dark/.test(styleOf(rootOf(document)).colorScheme);
    let around = at === null ? { opacity: 1, paper: isDark ? null : "rgb(255, 255, 255)", isCut: false, clips: null } : memo.get(at);
    for (const one of chain.reverse()) {
      const { opacity, filter, backgroundColor, backgroundImage, overflowX, overflowY, clipPath, position, clip } = styleOf(one);
      const faded = filter === "none" ? null : /\bopacity\(([\d.]+)\)/.exec(filter);
      const alpha = alphaOf(backgroundColor);
      const isClipped = clipPath !== "none" && /\b(?:inset\((?:50|100)%|circle\(0|polygon\(0)/.test(clipPath);
      const isCut = around.isCut || isClipped || (position === "absolute" && clip !== "auto" && clip !== "");
      const isScroller = /auto|scroll/.test(overflowX + overflowY);
      const isClip = (overflowX !== "visible" || overflowY !== "visible") && tagOf(one) !== "html" && tagOf(one) !== "body";
      around = {
        opacity: around.opacity * Number(opacity) * Number(faded?.[1] ?? 1),
        paper: backgroundImage !== "none" ? null : alpha > 0.9 ? backgroundColor : alpha > 0.1 ? null : around.paper,
        isCut,
        clips: isClip ? { element: one, isScroller, outer: around.clips } : around.clips,
      };
      memo.set(one, around);
    }
    return around;
  }

  const boxOf = (element, boxes) => {
    const box = boxes.get(element) ?? Element.prototype.getBoundingClientRect.call(element);
    boxes.set(element, box);
    return box;
  };

  /** Whether nothing of a place is left after what is around it has cut it off. What can be scrolled to is not cut off. */
  function isCutOff(place, clips, boxes, isScrolling) {
    let rect = place;
    for (let clip = clips; clip !== null; clip = clip.outer) {
      const box = boxOf(clip.element, boxes);
      if (box.width < 4 || box.height < 4) return true;
      if (isScrolling && clip.isScroller) rect = box;
      else if (rect.bottom < box.top + 4 || rect.top > box.bottom - 4 || rect.right <= box.left || rect.left >= box.right) return true;
    }
    return false;
  }

  /** Whether a person can see a message, or scroll to it. */
  function canBeSeen(record, memo) {
    const view = viewOf(record, memo);
    const rect = view === null ? null : rectOf(record);
    return rect !== null && !isCutOff(rect, view.clips, memo.boxes, true);
  }

  function place(record) {
    if (record.view === null || record.result === null || !near.has(record)) {
      removeBadge(record);
      return;
    }
    if (record.badge !== null && record.shown === record.result) return;
    const { kind, sentence, envelope } = record.result;
    if (record.badge === null) {
      if (badged.size >= MAX_BADGES) return;
      record.badge = make("button");
      record.badge.type = "button";
      // Until the layout knows its place.
      record.badge.style.display = "none";
      record.badge.addEventListener("click", (event) => {
        if (!event.isTrusted) return;
        // The verdict is that of the text that was read: what the page made of it since then is read first.
        if (ended(readFrom(record)) === record.text && record.result !== null) showPopover(record);
        else refreshSoon();
      });
      badged.add(record);
      layerOf().append(record.badge);
    }
    const [sign, word] = LOOKS[kind] ?? LOOKS.damaged;
    const parties = envelope === null ? "" : ` from ${plain(envelope.sender)} to ${plain(envelope.receiver)}`;
    record.shown = record.result;
    record.badge.className = `badge ${kind in LOOKS ? kind : "damaged"}`;
    record.badge.textContent = `${sign} ${word}`;
    record.badge.setAttribute("aria-label", `Message${parties}: ${word}. ${plain(sentence)}`);
    record.badge.title = plain(sentence);
  }

  /** What a job returns, without a break. */
  function ended(job) {
    let step = job.next();
    while (!step.done) step = job.next();
    return step.value;
  }

  function removeBadge(record) {
    if (record.badge === null) return;
    record.badge.remove();
    record.badge = null;
    badged.delete(record);
  }

  /** Puts the badges where the messages are: first everything is read, then everything is written. */
  function layout() {
    wanted.layout = false;
    if (badged.size === 0) return;
    const boxes = new Map();
    const { innerWidth, innerHeight } = window;
    const places = [];
    for (const record of badged) {
      const { node, anchor, scope, view, data, badge } = record;
      // Text that changed since it was read has no badge until it is read again.
      const isRead = isAttached(node) && view !== null && node.data.startsWith(data);
      const rect = isRead ? rectOf(record) : null;
      const isOut = rect === null || rect.bottom < -30 || rect.top > innerHeight + 30 || isCutOff(rect, view.clips, boxes, false);
      places.push({ badge, rect: isOut ? null : rect, right: isOut ? 0 : boxOf(scope ?? anchor, boxes).right });
    }
    for (const { badge, rect, right } of places) {
      const { style } = badge;
      style.display = rect === null ? "none" : "block";
      if (rect === null) continue;
      // At the right end of the block, where the direction line leaves room; never over the text itself.
      style.left = `${Math.max(LEAST_RIGHT, Math.min(Math.max(right, rect.left + LEAST_RIGHT), innerWidth - 8))}px`;
      style.top = `${rect.top - 24 < 0 ? rect.top : rect.top - 24}px`;
    }
  }

  /** The width of the widest badge, about. */
  const LEAST_RIGHT = 112;

  for (const name of ["scroll", "resize"]) window.addEventListener(name, layoutSoon, { capture: true, passive: true });
  // Pages move and hide things without changing their tree; fonts and pictures come late.
  setInterval(() => {
    if (near.size > 0) refreshSoon();
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
    // The page may change its text while the popover is open: what was verified is what goes on.
    const { text: source } = record;
    if (text !== null) {
      action("Copy", () => copy(text));
      action("Reply", () => open("reply", source));
      action("Save to file", () => open("save", source));
      action("Send to relay", () => open("relay", source));
    }
    action("Show in Crosstalk", () => open("show", source));
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

  const MAX_VISITED = 200_000;

  /**
   * The nodes of a tree and of the open shadow trees in it, the last one first, with `null` where it is time for a pause. The page
   * may throw a node away in a pause, or while its text is read: then the walk goes on before what was around it.
   */
  function* backwards(root) {
    const walker = walkerOf(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    while (walker.lastChild() !== null);
    let count = 0;
    for (let node = walker.currentNode; node !== null; node = walker.previousNode()) {
      const shadow = typeOf(node) === Node.ELEMENT_NODE ? openShadowOf(node) : null;
      const isPause = ++count % STEP_NODES === 0;
      const around = [];
      if (isPause || shadow !== null || starts.has(node)) for (let at = node; at !== null && at !== root; at = parentOf(at)) around.push(at);
      if (shadow !== null) yield* backwards(shadow);
      yield node;
      if (isPause) yield null;
      if (around.length > 0 && !isAttached(node)) walker.currentNode = around.find(isAttached) ?? root;
    }
  }

  /** The last envelopes of the page that a person can see, the newest first. */
  function* latest(count) {
    const texts = [];
    const memo = { blocks: new Map(), surroundings: new Map(), boxes: new Map() };
    let [visited, found] = [0, 0];
    for (const node of backwards(rootOf(document))) {
      if (node === null) {
        yield;
        continue;
      }
      if (++visited > MAX_VISITED || found >= stats.found || texts.length >= count) break;
      const here = starts.get(node);
      if (here === undefined) continue;
      found += here.length;
      for (const record of [...here].sort((a, b) => b.offset - a.offset)) {
        if (texts.length >= count || !canBeSeen(record, memo)) continue;
        const text = yield* readFrom(record, memo.blocks);
        // An answer that is not complete is no answer yet.
        if (text?.trimEnd().endsWith("[[END]]")) texts.push(text);
      }
    }
    return texts;
  }

  /** What a job returns, after what waits already. */
  function whenDone(job, otherwise) {
    return new Promise((resolve) => {
      const kept = (function* () {
        try {
          resolve(yield* job);
        } finally {
          resolve(otherwise);
        }
      })();
      kept.isKept = true;
      add(kept);
    });
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
      else if (action === "reply") void replyToLatest();
    },
    true,
  );

  async function replyToLatest() {
    const text = (await whenDone(latest(5), [])).find((each) => senderOf(each) !== me.toLowerCase());
    if (text === undefined) toast("There is no answer on this page yet.");
    else void send({ type: "open", action: "reply", text });
  }

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
    // The page in the tab may be another one by now, and frames of other sites hear the same messages.
    if (message.origin !== undefined && message.origin !== window.origin) return undefined;
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
          const texts = await whenDone(latest(message.count), []);
          if (texts.length === 0) await pause(isTop ? 250 : 2000);
          respond(texts);
        })();
        return true;
      }
      case "stats":
        respond({ ...stats, isPopoverOpen: popover !== null, badges: [...badged].filter(({ badge }) => badge.style.display !== "none").map(({ badge }) => {
          const { left, top, width, height } = badge.getBoundingClientRect();
          return { text: badge.textContent, left, top, width, height };
        }) });
        return undefined;
      case "settings":
        ({ shortcuts, me } = message);
        known.clear();
        for (const record of near) record.text = null;
        refreshSoon();
        return undefined;
      case "toast":
        if (isTop) toast(message.text);
        return undefined;
      default:
        return undefined;
    }
  });

  async function start() {
    const settings = await send({ type: "settings", isAllowedOnce: Object.hasOwn(globalThis, "crosstalkIsAllowedOnce") });
    if (settings === undefined || settings === null || observed.has(document)) return;
    ({ shortcuts, me } = settings);
    observe(document);
    add(scan(document));
  }
  globalThis.crosstalkStart = () => void start();
  void start();
})();
