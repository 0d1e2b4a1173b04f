// What the pages of the extension share. Texts of others are only ever set as text.

import { plain } from "../lib/text.js";

export { plain };

export const LOOKS = {
  verified: ["✓", "Verified"],
  "first-contact": ["?", "First contact"],
  damaged: ["✗", "Damaged"],
  unsigned: ["○", "Unsigned"],
};

export const byId = (id) => document.getElementById(id);

export function element(tag, { text, on, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  if (text !== undefined) made.textContent = plain(text);
  if (on !== undefined) made.addEventListener("click", on);
  made.append(...children);
  return made;
}

export function say(text, isBad = false) {
  const status = byId("status");
  status.classList.toggle("bad", isBad);
  status.textContent = plain(text);
  for (const animation of status.getAnimations()) animation.currentTime = 0;
}

/** Runs something that a person asked for, and says what went wrong. */
export function guarded(run) {
  return async (event) => {
    event?.preventDefault?.();
    const button = event?.currentTarget instanceof HTMLButtonElement ? event.currentTarget : null;
    if (button !== null) button.disabled = true;
    try {
      await run(event);
    } catch (error) {
      say([error.message, error.help].filter(Boolean).join(" "), true);
    } finally {
      if (button !== null) button.disabled = false;
    }
  };
}

/** A message as a person reads it, with its verdict. */
export function card(message, ...actions) {
  const { envelope, kind, sentence, next, fingerprint, repairs } = message;
  const [sign, word] = LOOKS[kind] ?? LOOKS.damaged;
  const made = element("article", { class: "card" });
  made.append(element("h3", { text: envelope ? `${envelope.sender} → ${envelope.receiver}` : "Message that can't be read" }));
  if (envelope) made.append(element("p", { class: "soft wrap", text: [envelope.intent, envelope.context].filter(Boolean).join(" · ") }));
  // What was written here needs no proof.
  made.append(message.isOwn ? element("p", { class: "soft", text: sentence }) : element("p", { class: `verdict ${kind}`, text: `${sign} ${word}: ${sentence}` }));
  if (next) made.append(element("p", { class: "soft wrap", text: next }));
  if (fingerprint) made.append(element("p", { class: "print", text: `Fingerprint ${fingerprint}` }));
  if (repairs?.length > 0) made.append(element("p", { class: "soft wrap", text: `Repaired: ${repairs.slice(0, 5).join("; ")}` }));
  if (envelope) made.append(element("div", { class: "body", text: envelope.body, tabindex: "0", role: "region", "aria-label": `Text of ${plain(envelope.sender)}` }));
  if (actions.length > 0) made.append(element("div", { class: "row" }, ...actions));
  return made;
}

export function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
