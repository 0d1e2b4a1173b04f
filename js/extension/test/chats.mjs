// The pages of the test chats.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Site, editors, escapeHtml } from "./tools.mjs";

const script = readFileSync(fileURLToPath(new URL("chat.js", import.meta.url)), "utf8");
/** As strict as those of real chats: nothing inline, nothing from elsewhere. */
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'none'; frame-src 'self'; base-uri 'none'; require-trusted-types-for 'script'";
const STYLE = `body { font: 15px system-ui; margin: 0; padding: 30px 40px 10px; } #log { height: 1150px; font-size: 12px; overflow: auto; } pre { white-space: pre-wrap; margin: 26px 0 10px; }
  #input { width: 90%; height: 110px; border: 1px solid #888; overflow: auto; white-space: pre-wrap; } .hidden { position: absolute; left: -9999px; }
  @media (prefers-color-scheme: dark) { body { background: #181a1f; color: #e8e8e8; } }`;

let bundle;

/** A chat with an editor of some kind, and messages that stand there already. */
export async function startChat(name, { editor = "textarea", messages = [], pages = {} } = {}) {
  bundle ??= await editors();
  const tag = editor === "textarea" ? "textarea" : "div";
  const body = (kind) => `<div id="log">${messages.map((text) => `<div><p>A message:</p><pre>${escapeHtml(text)}</pre></div>`).join("")}</div>
    <${kind === "textarea" ? "textarea" : "div"} id="input" aria-label="Message"></${kind === "textarea" ? "textarea" : "div"}><button id="send">Send</button>`;
  const html = (kind) => ({ csp: CSP, text: `<!doctype html><html lang="en"><title>${name} chat</title><link rel="stylesheet" href="/style.css"><body data-name="${name}" data-editor="${kind}">${body(kind)}<script src="/editors.js"></script><script src="/chat.js"></script></body></html>` });
  void tag;
  return Site.start({
    "/": html(editor),
    ...Object.fromEntries(["textarea", "contenteditable", "prosemirror", "lexical"].map((kind) => [`/${kind}`, html(kind)])),
    "/chat.js": { text: script, type: "text/javascript; charset=utf-8" },
    "/editors.js": { text: bundle, type: "text/javascript; charset=utf-8" },
    "/style.css": { text: STYLE, type: "text/css" },
    ...pages,
  });
}
