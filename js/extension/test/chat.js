// A page that behaves as a chat does: an input of some kind, messages that stream in piece by piece, a list that is rendered anew.

const kind = document.body.dataset.editor;
const name = document.body.dataset.name;
const log = document.querySelector("#log");
const place = document.querySelector("#input");

if (kind === "prosemirror") window.startProseMirror(place);
else if (kind === "lexical") window.startLexical(place);
else if (kind === "contenteditable") {
  place.contentEditable = "true";
  window.readEditor = () => [...place.childNodes].map(({ textContent }) => textContent).join("\n");
} else window.readEditor = () => place.value;

/** Adds a message; an answer comes piece by piece, in a code block made of many elements. */
window.addMessage = async (text, { streams = false, shadow = false } = {}) => {
  let parent = document.createElement("div");
  log.append(parent);
  if (shadow) parent = parent.attachShadow({ mode: "open" });
  const block = document.createElement("pre");
  parent.append(block);
  const pieces = streams ? text.match(/[\s\S]{1,9}/g) : [text];
  for (const piece of pieces) {
    const span = document.createElement("span");
    span.textContent = piece;
    block.append(span);
    if (streams) await new Promise((resolve) => setTimeout(resolve, 4));
  }
  log.scrollTop = log.scrollHeight;
};

/**
 * Shows many messages in a list that has elements for those on the screen only: when it is scrolled, a row that left it at one end
 * gets another text and comes in at the other. One half of the rows keeps its text node, the other gets a new one.
 */
window.showVirtual = (texts, rowHeight = 230) => {
  const count = Math.ceil(log.clientHeight / rowHeight) + 2;
  const space = document.createElement("div");
  space.style.position = "relative";
  space.style.height = `${texts.length * rowHeight}px`;
  const rows = Array.from({ length: count }, () => {
    const row = document.createElement("pre");
    row.style.position = "absolute";
    row.append("");
    space.append(row);
    return row;
  });
  const render = () => {
    const first = Math.floor(log.scrollTop / rowHeight);
    for (let at = first; at < first + count; at += 1) {
      const row = rows[at % count];
      const text = texts[at] ?? "";
      if (row.textContent === text) continue;
      row.style.transform = `translateY(${at * rowHeight}px)`;
      if (at % 2 === 0) row.firstChild.data = text;
      else row.textContent = text;
      if (row.firstChild === null) row.append("");
    }
  };
  log.replaceChildren(space);
  log.addEventListener("scroll", render);
  render();
};

/** What the assistant of this chat makes of a message: it answers as the primer says, or not at all. */
function answerTo(text) {
  const all = [...text.matchAll(/\[\[(.+?)→(.+?) v1\]\]\n([\s\S]*?)\n\s*\[\[END\]\]/g)];
  const [, from, , rest] = all.at(-1) ?? [];
  if (from === undefined) return null;
  const header = (key) => new RegExp(`^${key}: (.*)$`, "m").exec(rest)?.[1];
  const keep = ["session", "thread", "context"].map((key) => (header(key) ? `${key}: ${header(key)}\n` : "")).join("");
  return `[[${name}→${from} v1]]\nuser: ${name.toLowerCase()}\n${keep}parent: ${header("message")}\nintent: RESPOND\nbody: |\n  ${name} says: keep v2.\n\n  It has fewer endpoints.\nsig: none\n[[END]]`;
}

document.querySelector("#send").addEventListener("click", () => {
  const text = window.readEditor();
  window.sent = text;
  if (kind === "textarea") place.value = "";
  void window.addMessage(text);
  const answer = answerTo(text);
  if (answer !== null) void window.addMessage(answer, { streams: true });
});
