// Pictures of every page in light, dark and phone width, with realistic data, in the folder that the first argument names.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PAGES } from "./pages.mjs";
import { chromium, closeBrowser, fill, signIn, startTeam, watch } from "./world.mjs";

const folder = process.argv[2] ?? "target/screenshots";
const only = process.argv[3];
// While somebody works on the style: the files of the working tree in place of those in the binary.
const assets = process.env.CROSSTALK_ASSETS;
async function useAssets(page) {
  if (!assets) return;
  await page.setCacheEnabled(false);
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    const name = /\/assets\/(console)\.[0-9a-f]+\.(css|js)$/.exec(request.url());
    if (!name) return request.continue();
    const contentType = name[2] === "css" ? "text/css" : "text/javascript";
    request.respond({ contentType, body: readFileSync(join(assets, `${name[1]}.${name[2]}`)) });
  });
}
mkdirSync(folder, { recursive: true });
const [relay, browser] = [await startTeam(), await chromium()];
try {
  const sent = await fill(relay);
  const looks = [
    ["light", { width: 1200, height: 850 }, "light"],
    ["dark", { width: 1200, height: 850 }, "dark"],
    ["phone", { width: 390, height: 844, deviceScaleFactor: 2 }, "light"],
  ];
  const first = await browser.newPage();
  watch(first, relay);
  await useAssets(first);
  for (const [look, size, scheme] of looks) {
    await first.setViewport(size);
    await first.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await first.goto(relay.link("ann"));
    await first.screenshot({ path: join(folder, `sign-in-${look}.png`) });
  }
  const people = {};
  for (const { name, who, path, act } of PAGES) {
    if (only && !name.includes(only)) continue;
    if (!people[who]) await useAssets((people[who] = await signIn(browser, relay, who)));
    const page = people[who];
    for (const [look, size, scheme] of looks) {
      await page.setViewport(size);
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(relay.url + path(sent));
      if (act) await act(page, sent);
      await page.screenshot({ path: join(folder, `${name}-${look}.png`), fullPage: look !== "phone" });
    }
    console.log(name);
  }
  const trouble = Object.values(people).flatMap((page) => page.trouble);
  if (trouble.length) throw new Error(trouble.join("\n"));
} finally {
  await closeBrowser(browser);
  await relay.stop();
}
