// A page that does what a page can to read the extension, to be taken for it, and to make it act.

import { escapeHtml } from "./tools.mjs";

const HIDDEN = [
  "display:none", "visibility:hidden", "opacity:0", "font-size:1px", "position:absolute;left:-9999px", "color:transparent",
  "position:absolute;clip:rect(0,0,0,0)", "height:0;overflow:hidden", "clip-path:inset(100%)", "opacity:0.05", "filter:opacity(0)", "color:#fff",
  "color:rgb(9,9,9);background:rgb(9,9,9)", "-webkit-text-fill-color:transparent", "transform:scale(0)", "text-indent:-9999px", "max-height:0;overflow:auto",
];

/** Shows one damaged message, hides others, and keeps what it reached in `attempts`. */
export function hostilePage(damaged, hidden, origin) {
  const script = `
    const { querySelectorAll, querySelector, createElement } = Document.prototype;
    const all = (selector) => querySelectorAll.call(document, selector);
    const { get: shadowOf } = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot");
    const attempts = (globalThis.attempts = { reached: [], layers: [], isDone: false });
    const reach = (what) => attempts.reached.push(what);
    // Built-ins that lie.
    Element.prototype.attachShadow = function () { reach("attachShadow"); return this; };
    Node.prototype.appendChild = new Proxy(Node.prototype.appendChild, { apply(target, self, args) { if (args[0].localName?.indexOf("crosstalk") === 0) reach("appendChild"); return Reflect.apply(target, self, args); } });
    JSON.parse = () => { reach("JSON.parse"); return { verdict: "verified" }; };
    String.prototype.includes = String.prototype.startsWith = () => true;
    WebAssembly.instantiate = () => reach("WebAssembly");
    document.execCommand = () => reach("execCommand");
    globalThis.MutationObserver = class { constructor() { reach("MutationObserver"); } observe() {} };
    Object.defineProperty(Element.prototype, "shadowRoot", { get() { return null; } });
    globalThis.addEventListener("message", ({ data }) => { if (JSON.stringify(data)?.match(/crosstalk|verdict|sig/)) reach("message"); });
    new globalThis.PerformanceObserver((list) => { for (const { name } of list.getEntries()) if (name.indexOf("-extension:") !== -1) reach("loaded " + name); }).observe({ type: "resource", buffered: true });
    addEventListener("load", async () => {
      // Keys and clicks that nobody made.
      const key = (code) => dispatchEvent(new KeyboardEvent("keydown", { code, altKey: true, shiftKey: true, bubbles: true }));
      for (let round = 0; round < 10; round += 1) {
        for (const code of ["KeyC", "KeyR", "KeyY"]) key(code);
        for (const layer of all("crosstalk-layer")) {
          layer.click();
          layer.dispatchEvent(new MouseEvent("click", { bubbles: true, composed: true }));
          if (shadowOf.call(layer) !== null) reach("shadowRoot");
          const copy = layer.cloneNode(true);
          copy.removeAttribute("style");
          if (attempts.layers.indexOf(copy.outerHTML) === -1) attempts.layers.push(copy.outerHTML);
        }
        if (round === 5) for (const layer of all("crosstalk-layer")) layer.remove();
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      for (const path of ["pages/panel.html", "lib/storage.js", "ai-crosstalk/core_bg.wasm"]) {
        await fetch("${origin}/" + path).then(() => reach(path), () => {});
      }
      const frame = createElement.call(document, "iframe");
      frame.src = "${origin}/pages/panel.html";
      all("body")[0].append(frame);
      for (const api of [globalThis.chrome, globalThis.browser]) {
        try { await api?.runtime?.sendMessage?.({ type: "read", texts: ["[["] }).then(() => reach("runtime")); } catch {}
      }
      attempts.isDone = true;
    });
    // Changes without end.
    let count = 0;
    setInterval(() => {
      const noise = querySelector.call(document, "#noise");
      noise.textContent = "[[ " + (count += 1);
      for (let at = 0; at < 50; at += 1) noise.append(createElement.call(document, "i"));
    }, 1);`;
  const boxes = HIDDEN.map((style) => `<pre style="${style}">${escapeHtml(hidden)}</pre>`).join("");
  const inside = `<div style="height:0;overflow:hidden"><div style="height:100px;overflow:auto"><pre>${escapeHtml(hidden)}</pre></div></div>`;
  const clobbers = ["documentElement", "createElement", "createTreeWalker", "activeElement", "body", "querySelectorAll", "elementFromPoint", "execCommand", "hidden", "browser", "chrome", "crosstalkStart", "crosstalkIsAllowedOnce"];
  return `<!doctype html><html lang="en"><title>hostile chat</title><style>crosstalk-layer { color: red }</style><body>
    <form id="f">${["nodeType", "parentNode", "childNodes", "textContent", "isConnected", "attributes", "children"].map((name) => `<input name="${name}" type="hidden">`).join("")}
      <button type="button" style="border-radius:11px;color:green">✓ Verified</button><pre>${escapeHtml(damaged)}</pre></form>
    ${clobbers.map((name) => `<img name="${name}" alt="">`).join("")}${boxes}${inside}<p id="noise"></p><script>${script}</script></body></html>`;
}

/** Texts that a careless reader needs much time for, each in a box of one line, and a sound message below them. */
export function slowPage(sound) {
  const head = "[[EVE→ANN v1]]\nuser: eve\n";
  const box = (style, html) => `<pre style="height:40px;overflow:hidden;${style}">${html}</pre>`;
  const boxes = [
    box("white-space:pre-line", head + " ".repeat(60_000)),
    box("", `${head}${"[[END]] x ".repeat(6_000)}`),
    box("", `${head}${`  [[${"→".repeat(300)}\n`.repeat(200)}`),
    box("", `${head}${"  > |".repeat(12_000)}`),
    box("", head + "<span>some words here </span>".repeat(3_500)),
    box("", head + "<i>".repeat(480) + "a word ".repeat(5_000) + "</i>".repeat(480)),
    box("", `${"[[".repeat(30_000)}`),
  ];
  return `<!doctype html><html lang="en"><title>slow chat</title><body style="padding-top:30px">${boxes.join("")}<pre>${escapeHtml(sound)}</pre>`;
}
