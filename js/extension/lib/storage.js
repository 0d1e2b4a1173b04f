// What the extension keeps: settings, trust, threads. Everything stays in this browser.

export const browser = globalThis.browser ?? globalThis.chrome;
const area = browser.storage.local;

// Content scripts run beside pages; they need nothing of this. Firefox has no such setting, and pages can't reach it there either.
area.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" })?.catch?.(() => {});

export const DEFAULTS = {
  settings: {
    me: "ME",
    user: "me",
    signs: false,
    shortcuts: { compose: "Alt+Shift+KeyC", reply: "Alt+Shift+KeyR" },
  },
  /** Sites: `{ origin, name }`; `name` is the name of the chat in envelopes. */
  sites: [],
  /** Keys: `{ id, key, fingerprint, decision: "first-contact" | "pinned" | "rejected", at }`. */
  keys: [],
  /** Threads, newest first: `{ id, context, at, messages: [...] }`. */
  threads: [],
  /** Chats that know the format, by URL without query. */
  primed: [],
  /** The own signing key: `{ privateKeyPem, record, did }`. */
  identity: null,
  /** The paired relay: `{ url, token, name, addresses, courier }`. */
  relay: null,
  /** Deliveries on their way through a chat: `{ id, to, envelope, tab, at }`. */
  errands: [],
};

export async function load(key) {
  const found = await area.get(key);
  const value = found[key];
  const initial = structuredClone(DEFAULTS[key]);
  if (value === undefined) return initial;
  return key === "settings" ? { ...initial, ...value } : value;
}

/** Changes a value: `change` gets the old one, and returns the new one. Pages and the background take turns. */
export function update(key, change) {
  return navigator.locks.request(`crosstalk-${key}`, async () => {
    const value = await change(await load(key));
    await area.set({ [key]: value });
    return value;
  });
}
