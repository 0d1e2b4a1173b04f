// Checks the proof of an entry of the log in the browser: the hashes of RFC 6962, from the entry to the root.
"use strict";
(async () => {
  const list = document.querySelector("#checks"), line = document.querySelector("#own-check");
  if (!list || !line || !crypto.subtle) return;
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const base64 = (all) => btoa(String.fromCharCode(...all));
  const hash = async (...parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { all.set(part, at); at += part.length; }
    return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
  };
  const { leaf, index, size, root, path } = list.dataset;
  const node = (left, right) => hash(Uint8Array.of(1), left, right);
  let own = await hash(Uint8Array.of(0), new TextEncoder().encode(leaf));
  let place = BigInt(index), last = BigInt(size) - 1n, isWhole = place <= last;
  for (const beside of path.split(" ").filter(Boolean).map(bytes)) {
    if (last === 0n) { isWhole = false; break; }
    if ((place & 1n) === 1n || place === last) {
      own = await node(beside, own);
      while ((place & 1n) === 0n && place !== 0n) { place >>= 1n; last >>= 1n; }
    } else own = await node(own, beside);
    place >>= 1n;
    last >>= 1n;
  }
  const holds = isWhole && last === 0n && base64(own) === root;
  const dot = document.createElement("span");
  dot.className = `dot ${holds ? "ok" : "bad"}`;
  line.className = "";
  line.dataset.checked = holds ? "yes" : "no";
  line.replaceChildren(dot, holds ? " Your browser computed the same root." : " Your browser computed another root: don't rely on this log.");
})();
