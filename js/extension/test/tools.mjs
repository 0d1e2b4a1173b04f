// Real Chromium and Firefox with the extension, and pages of our own that behave as known chats do.

import { createServer } from "node:http";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { LIMIT_MS, closeBrowser, until, within } from "../../test/wait.mjs";

export { until } from "../../test/wait.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

export const BUILT = process.env.CROSSTALK_EXTENSION ?? path("../../../target/extension");
export const TOOLS = process.env.CROSSTALK_NPM ?? path("../../../target/tools/extension");
export const PICTURES = process.env.CROSSTALK_PICTURES;
export const isFull = process.env.CROSSTALK_TEST_FULL !== undefined;
const require = createRequire(join(TOOLS, "package.json"));
const puppeteer = require("puppeteer-core");
export const axeSource = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const crosstalk = await import(pathToFileURL(path("../../dist/index.js")));

/** A folder with the extension as it is built, except that the test pages are allowed: nobody can answer the question of the browser. */
function copyOf(browser) {
  const folder = mkdtempSync(join(tmpdir(), "crosstalk-extension-"));
  cpSync(join(BUILT, browser), folder, { recursive: true });
  const file = join(folder, "manifest.json");
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  manifest.host_permissions = ["http://127.0.0.1/*"];
  writeFileSync(file, JSON.stringify(manifest));
  return folder;
}

const FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-features=LocalNetworkAccessChecks";
const FIREFOX_ID = "11111111-2222-3333-4444-555555555555";

/** A browser with the extension. */
export class Browser {
  static async start(name) {
    const made = new Browser();
    made.name = name;
    made.pages = [];
    made.folder = name === "chromium" ? copyOf(name) : join(BUILT, name);
    made.isCopy = name === "chromium";
    made.downloads = mkdtempSync(join(tmpdir(), "crosstalk-downloads-"));
    made.browser = await puppeteer.launch(
      name === "chromium"
        ? { executablePath: process.env.CROSSTALK_CHROMIUM ?? "/usr/bin/chromium", headless: true, enableExtensions: true, args: FLAGS.split(" "), protocolTimeout: LIMIT_MS, downloadBehavior: { policy: "allow", downloadPath: made.downloads } }
        : {
            browser: "firefox",
            executablePath: "/usr/bin/firefox-esr",
            headless: true,
            args: ["--remote-allow-system-access"],
            protocolTimeout: LIMIT_MS,
            extraPrefsFirefox: {
              // Otherwise nobody could answer the question for the permission of a site.
              "extensions.webextOptionalPermissionPrompts": false,
              "extensions.webextensions.uuids": JSON.stringify({ "crosstalk@ai-crosstalk.example": FIREFOX_ID }),
              "dom.events.testing.asyncClipboard": true,
              "browser.download.folderList": 2,
              // It would take the keys.
              "browser.download.alwaysOpenPanel": false,
              "browser.download.dir": made.downloads,
              // The pages stream in the background, too.
              "dom.min_background_timeout_value": 4,
              "dom.min_background_timeout_value_without_budget_throttling": 4,
              "dom.timeout.enable_budget_timer_throttling": false,
              "datareporting.policy.dataSubmissionEnabled": false,
              "network.captive-portal-service.enabled": false,
              "network.connectivity-service.enabled": false,
            },
          },
    );
    const installed = within("the installation of the extension", made.browser.installExtension(made.folder));
    const id = await installed.catch(async (error) => {
      await made.close();
      throw error;
    });
    made.origin = name === "chromium" ? `chrome-extension://${id}` : `moz-extension://${FIREFOX_ID}`;
    return made;
  }

  /** A page of the extension itself, in a tab. */
  async own(name) {
    const page = await this.browser.newPage();
    await page.setViewport({ width: 520, height: 900 });
    const going = page.goto(`${this.origin}/pages/${name}`, { timeout: LIMIT_MS });
    // The driver of Firefox does not see the end of the load of a page of an extension.
    if (this.name === "chromium") await going;
    else going.catch(() => {});
    await until(`the page ${name}`, () => page.evaluate((wanted) => location.href.includes(wanted) && document.readyState === "complete" && globalThis.crosstalkPageIsReady === true, name.split("?")[0]));
    return page;
  }

  async page(url) {
    const page = await this.browser.newPage();
    await page.setViewport({ width: 900, height: 1400 });
    await page.goto(url, { timeout: LIMIT_MS });
    this.pages.push(page);
    return page;
  }

  /** The addresses that the background has fetched since the first call. `own` is a page of the extension. */
  async fetchedByBackground(own) {
    const record = (background) => {
      if (background.fetched === undefined) {
        const { fetch } = background;
        background.fetched = [];
        background.fetch = (from, ...rest) => {
          background.fetched.push(String(from?.url ?? from));
          return fetch.call(background, from, ...rest);
        };
      }
      return [...background.fetched];
    };
    if (this.name === "firefox") return own.evaluate(`browser.runtime.getBackgroundPage().then(${record})`);
    const target = await this.browser.waitForTarget((each) => each.type() === "service_worker" && each.url().startsWith(this.origin), { timeout: LIMIT_MS });
    return (await target.worker()).evaluate(`(${record})(globalThis)`);
  }

  /** Closes the pages of sites that are still open. */
  async closePages() {
    for (const page of this.pages.splice(0)) if (!page.isClosed()) await page.close();
  }

  /** The text of a file that the browser has saved; null until it is there. */
  saved(name) {
    const file = join(this.downloads, name);
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    return text === "" ? null : text;
  }

  async close() {
    await closeBrowser(this.browser);
    rmSync(this.downloads, { recursive: true, force: true });
    if (this.isCopy) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Runs a function in a page of the extension, which may use its modules. */
export function inside(page, run, ...values) {
  return page.evaluate(run, ...values);
}

/**
 * How long the script of the extension kept a page from everything else while something was done, in milliseconds of processor time,
 * so that other work on the machine does not count: `own` without the collections of memory that V8 put into it, `all` with them.
 * `null` in Firefox, whose driver has no trace.
 */
export async function sliceTimes(browser, page, act) {
  if (browser.name !== "chromium") {
    await act();
    return null;
  }
  await page.tracing.start({ categories: ["devtools.timeline", "v8", "disabled-by-default-v8.gc"] });
  await act();
  const { traceEvents } = JSON.parse(Buffer.from(await page.tracing.stop()).toString());
  const events = traceEvents.filter(({ ph, tdur }) => ph === "X" && tdur > 0);
  const slices = events.filter(({ name, args }) => name === "FunctionCall" && args.data?.url?.startsWith(`${browser.origin}/content/`));
  const collections = events.filter(({ name }) => /^(MinorGC|MajorGC|V8\.GC)/.test(name)).sort((a, b) => a.tts - b.tts);
  const own = slices.map(({ pid, tid, tts, tdur }) => {
    let [left, until] = [tdur, tts];
    for (const each of collections) {
      if (each.pid !== pid || each.tid !== tid || each.tts < tts || each.tts > tts + tdur) continue;
      // They are nested in each other.
      left -= Math.max(0, each.tts + each.tdur - Math.max(until, each.tts));
      until = Math.max(until, each.tts + each.tdur);
    }
    return left / 1000;
  });
  if (slices.length === 0) throw new Error("the trace has no call of the extension");
  return { own, all: slices.map(({ tdur }) => tdur / 1000) };
}

/** Checks and prints what a page had to wait for. */
export function checkSlices(name, where, times) {
  if (times === null) return;
  const [own, all] = [times.own, times.all].map((list) => ({ most: Math.max(...list), over: list.filter((ms) => ms > 5).length }));
  console.log(`${name}: ${where}: ${times.own.length} slices, at most ${own.most.toFixed(1)} ms of processor time, ${all.most.toFixed(1)} with the browser's collection of memory, ${all.over} of these over 5 ms`);
  if (own.over > 0) throw new Error(`${where}: ${own.over} slices took more than 5 ms of processor time, the longest ${own.most.toFixed(1)} ms`);
}

/** Bundles the editors that the pages use; once for all tests. */
export async function editors() {
  const esbuild = require("esbuild");
  const folder = mkdtempSync(join(TOOLS, "pages-"));
  const entry = join(folder, "editors.js");
  cpSync(path("editors.js"), entry);
  const { outputFiles } = await esbuild.build({ entryPoints: [entry], bundle: true, write: false, format: "iife", nodePaths: [join(TOOLS, "node_modules")] });
  rmSync(folder, { recursive: true, force: true });
  return outputFiles[0].text;
}

/** A server of pages, on a port of its own: a site. `pages` are texts, or functions, by their path. */
export class Site {
  static async start(pages) {
    const site = new Site();
    site.requests = [];
    site.server = createServer((request, response) => {
      const { pathname } = new URL(request.url, "http://localhost");
      site.requests.push(`${request.method} ${request.url}`);
      const page = pages[pathname];
      if (page === undefined) return response.writeHead(404).end();
      const { text, type = "text/html; charset=utf-8", csp } = typeof page === "string" ? { text: page } : page;
      response.setHeader("content-type", type);
      if (csp) response.setHeader("content-security-policy", csp);
      response.end(text);
      return undefined;
    });
    await new Promise((resolve) => site.server.listen(0, "127.0.0.1", resolve));
    site.origin = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

export function escapeHtml(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Keeps a picture of a page, where a folder for it is named. */
export async function picture(page, name, clip) {
  if (!PICTURES) return;
  if (!existsSync(PICTURES)) mkdirSync(PICTURES, { recursive: true });
  await page.bringToFront();
  await page.screenshot({ path: join(PICTURES, `${name}.png`), ...(clip && { clip }) });
}
