// What the tests do with the extension, as a person does it: by clicks and keys.

import { until } from "./tools.mjs";

/** Clicks a button of a page of the extension by its text. */
export async function press(page, text, { root = "body", isReal = false } = {}) {
  const click = (wanted, inside, isMarked) => {
    const all = [...document.querySelectorAll(`${inside} button`)];
    const button = all.find((each) => each.textContent === wanted && !each.disabled && each.offsetParent !== null);
    if (button === undefined) return false;
    document.querySelector("#status").textContent = "";
    if (isMarked) button.id = "pressed";
    else button.click();
    return true;
  };
  await until(`a button ${text}`, () => page.evaluate(click, text, root, isReal));
  if (!isReal) return;
  // Some questions of the browser need a real click, for which the page has to be in front.
  await page.bringToFront();
  await page.click("#pressed");
  await page.evaluate(() => document.querySelector("#pressed")?.removeAttribute("id"));
}

export async function type(page, selector, text) {
  await page.evaluate(
    (at, value) => {
      const field = document.querySelector(at);
      field.value = value;
      for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
    },
    selector,
    text,
  );
}

export const status = (page) => page.evaluate(() => document.querySelector("#status").textContent);

export async function says(page, text) {
  await until(async () => `“${text}”; it says “${await status(page)}”`, async () => (await status(page)).includes(text));
}

/** Chooses the option of a list whose text begins with a name. */
export async function choose(page, selector, name) {
  await until(`an option ${name}`, () =>
    page.evaluate(
      (at, wanted) => {
        const list = document.querySelector(at);
        const option = [...list.options].find(({ text }) => text.startsWith(wanted));
        if (option === undefined) return false;
        list.value = option.value;
        list.dispatchEvent(new Event("change", { bubbles: true }));
        return true;
      },
      selector,
      name,
    ),
  );
}

/** Adds sites with their names, and the own name, on the options page. */
export async function setUp(browser, sites, me = "ANN") {
  const options = await browser.own("options.html");
  await type(options, "#me", me);
  await type(options, "#user", me.toLowerCase());
  await press(options, "Save names");
  await says(options, "Saved.");
  for (const [name, { origin }] of Object.entries(sites)) {
    await type(options, "#site", origin);
    await press(options, "Add site", { isReal: true });
    await says(options, "Added.");
    const field = `input[aria-label="Name of the chat on ${origin}"]`;
    await until(`the site ${origin}`, () => options.$(field));
    await type(options, field, name);
    await says(options, "Saved.");
  }
  return options;
}

/** What the script beside a page has found. */
export async function stats(panel, title) {
  return panel.evaluate(async (wanted) => {
    const api = globalThis.browser ?? globalThis.chrome;
    const tabs = await api.tabs.query({});
    const tab = tabs.find((each) => each.title === wanted);
    return tab === undefined ? null : api.tabs.sendMessage(tab.id, { type: "stats" }, { frameId: 0 });
  }, title);
}

/** Waits until a page has badges with these words, in their order on the page. */
export async function badges(panel, title, words) {
  let seen = [];
  await until(
    () => `badges ${words}; there are ${seen}`,
    async () => {
      const found = (await stats(panel, title))?.badges ?? [];
      found.sort((a, b) => a.top - b.top);
      seen = found.map(({ text }) => text.slice(2));
      return seen.join() === words.join();
    },
  );
  const { badges: found } = await stats(panel, title);
  return found.sort((a, b) => a.top - b.top);
}

export async function clickAt(page, { left, top, width, height }) {
  await page.bringToFront();
  await page.mouse.click(left + width / 2, top + height / 2);
}

const ACTIONS = ["Copy", "Reply", "Save to file", "Send to relay", "Show in Crosstalk"];

/** Opens the popover of a badge and presses one of its buttons, with real keys: Tab goes to the text, and then to the buttons. */
export async function pick(page, badge, action) {
  await clickAt(page, badge);
  await pressInPopover(page, action);
}

export async function pressInPopover(page, action) {
  for (let presses = 0; presses < ACTIONS.indexOf(action) + 2; presses += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
}

/** Ctrl+Z with real keys. Chromium has to be told what the keys of its driver mean. */
export async function undo(browser, page) {
  await page.bringToFront();
  await page.keyboard.down("Control");
  await page.keyboard.press("KeyZ", browser.name === "chromium" ? { commands: ["Undo"] } : {});
  await page.keyboard.up("Control");
}

/** Replaces the text of a field by the text that was copied, with real keys. */
export async function paste(browser, page, selector) {
  await page.bringToFront();
  await page.evaluate((at) => {
    const field = document.querySelector(at);
    field.focus();
    field.select();
  }, selector);
  await page.keyboard.down("Control");
  await page.keyboard.press("KeyV", browser.name === "chromium" ? { commands: ["Paste"] } : {});
  await page.keyboard.up("Control");
}

/** Keys as a person presses them, such as `Alt+Shift+KeyC`. */
export async function keys(page, text) {
  const all = text.split("+");
  const last = all.pop();
  for (const key of all) await page.keyboard.down(key);
  await page.keyboard.press(last);
  for (const key of all.reverse()) await page.keyboard.up(key);
}
