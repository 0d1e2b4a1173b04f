// A real relay with people, agents and messages as in a small team, and a browser in front of it.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const TOOLS = process.env.CROSSTALK_NPM ?? path("../../../target/tools/console");
export const BINARY = process.env.CROSSTALK_BINARY ?? path("../../../target/debug/crosstalk");
const require = createRequire(join(TOOLS, "package.json"));
const puppeteer = require("puppeteer-core");
export const axeSource = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** A condition that does not come about within this time never does. */
const LIMIT_MS = Number(process.env.CROSSTALK_LIMIT ?? 60) * 1000;

/** Waits until a condition holds, and returns its value. */
export async function until(what, condition) {
  const end = Date.now() + LIMIT_MS;
  let trouble = "";
  for (;;) {
    const value = await Promise.resolve()
      .then(condition)
      .catch((error) => {
        trouble = `: ${error.message}`;
      });
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}${trouble}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const CONFIG = `name = "relay.example"

[[route]]
to = "CHATGPT"
by = "copy_paste"

[[hold]]
why = "agents pass work on"
from = ["gemini://*"]
to = ["claude://*"]
`;

/** A relay on a port of its own. */
export class Relay {
  /** Starts one; with `tokens`, for Ann, the operator, and agents. */
  static async start({ tokens = true, config = "" } = {}) {
    const relay = new Relay();
    relay.home = mkdtempSync(join(tmpdir(), "crosstalk-console-"));
    relay.data = join(relay.home, "relay");
    relay.tokens = {};
    mkdirSync(relay.data, { mode: 0o700 });
    if (config) writeFileSync(join(relay.data, "relay.toml"), config);
    if (tokens) {
      relay.token("ann", "person", "human://acme.example/ann");
      relay.token("bob", "person", "human://acme.example/bob");
      relay.token("ops", "admin");
      for (const name of ["claude", "gemini", "review"]) relay.token(name, "agent", `${name}://code/main`);
    }
    await relay.serve();
    return relay;
  }

  async serve() {
    this.process = spawn(BINARY, ["serve", "--data", this.data, "--listen", "127.0.0.1:0", "--name", "relay.example", "--log-format", "json"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, HOME: this.home, CROSSTALK_HOME: join(this.home, "home") },
    });
    this.log = "";
    this.process.stderr.on("data", (text) => {
      this.log += text;
    });
    let out = "";
    this.process.stdout.on("data", (text) => {
      out += text;
    });
    await until(`the relay; it says ${this.log}`, () => {
      if (this.process.exitCode !== null) throw new Error(this.log);
      this.url = out.split("\n").find((line) => line.startsWith("http"));
      return this.url;
    });
  }

  /** Runs a command on the data folder. */
  run(...words) {
    const env = { ...process.env, HOME: this.home, CROSSTALK_HOME: join(this.home, "home") };
    try {
      return execFileSync(BINARY, [...words, "--data", this.data], { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    } catch (error) {
      throw new Error(`${words.join(" ")}: ${error.stderr}`);
    }
  }

  token(name, role, address) {
    const addresses = address ? ["--for", address] : [];
    const courier = role === "person" ? ["--courier", "CHATGPT"] : [];
    this.tokens[name] = this.run("token", "create", name, "--role", role, ...addresses, ...courier).trim();
  }

  /** A one-time link. */
  link(as) {
    return this.run("console", "--print", ...(as ? ["--as", as] : [])).trim();
  }

  async call(who, method, target, body, type = "application/json") {
    const headers = { accept: "application/json" };
    if (who) headers.authorization = `Bearer ${this.tokens[who]}`;
    if (body !== undefined) headers["content-type"] = type;
    const answer = await fetch(this.url + target, { method, headers, body: typeof body === "object" ? JSON.stringify(body) : body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** Sends a message; its id and thread. */
  async send(who, fields) {
    const answer = await this.call(who, "POST", "/crosstalk/receive", { user: who ?? "someone", context: "a topic", intent: "REQUEST", ...fields });
    return { id: answer.ack.parent, thread: answer.ack.thread };
  }

  async stop() {
    this.process?.kill("SIGTERM");
    await until("the end of the relay", () => this.process.exitCode !== null || this.process.signalCode !== null);
    rmSync(this.home, { recursive: true, force: true });
  }
}

export const startTeam = () => Relay.start({ config: CONFIG });

export const ANN = "human://acme.example/ann";

/** Messages as a team has them. */
export async function fill(relay) {
  const sent = {};
  sent.deploy = await relay.send("claude", {
    sender: "claude://code/main", receiver: ANN, intent: "REQUEST", context: "Deploy 2.4 to production",
    meta: { routing: { "X-Priority": "high" } },
    body: "All 1,204 tests pass on main, and the staging smoke test has been green for two hours.\n\nThe migration adds one index on `invoices(customer_id)`; it took 41 s on a copy of production.\n\nMay I deploy now, or wait for the window at 18:00 UTC?",
  });
  sent.rollback = await relay.send("claude", {
    sender: "claude://code/main", receiver: ANN, intent: "REQUEST", context: "Which retry policy for the billing webhooks?",
    body: "Stripe retries for three days. Our queue gives up after one hour, so we lose events when the database is down for longer.\n\nOptions:\n1. Keep one hour, alert earlier.\n2. 24 hours with exponential backoff (my recommendation).\n3. Three days, like Stripe.",
  });
  sent.note = await relay.send("review", {
    sender: "review://code/main", receiver: ANN, intent: "BROADCAST", context: "Nightly review: 3 findings",
    body: "Two are about error messages without a next step, one is about a lock that is held across an await in `delivery/run.rs`.\nNothing blocks the release.",
  });
  sent.legal = await relay.send("gemini", {
    sender: "gemini://code/main", receiver: ANN, intent: "REQUEST", context: "Wording of the data retention notice",
    body: "“We keep invoices for ten years, as German tax law requires, and everything else for 90 days.”\n\nIs that still true after the change in May?",
  });
  sent.chat = await relay.send("ann", {
    sender: ANN, receiver: "CHATGPT", intent: "REQUEST", context: "Second opinion on the retry policy",
    body: "We deliver webhooks and retry for one hour. A colleague suggests 24 hours with exponential backoff. What would you do, and what would you measure?",
  });
  await relay.send("ann", {
    sender: ANN, receiver: "claude://code/main", intent: "RESPOND", context: "Which retry policy for the billing webhooks?",
    thread: sent.rollback.thread, parent: sent.rollback.id, body: "24 hours. Please alert after the fifth failure.",
  });
  return sent;
}

const FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

/** Chromium with an empty profile. */
export async function chromium() {
  const executablePath = process.env.CROSSTALK_CHROMIUM ?? "/usr/bin/chromium";
  return puppeteer.launch({ executablePath, headless: true, args: FLAGS.split(" ") });
}

export async function firefox() {
  return puppeteer.launch({ browser: "firefox", executablePath: process.env.CROSSTALK_FIREFOX ?? "/usr/bin/firefox-esr", headless: true });
}

/** A page in a browser profile of its own, signed in with a token. It keeps what scripts, requests and dialogs it saw. */
export async function signIn(browser, relay, who, { width = 1200, height = 850 } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width, height });
  watch(page, relay);
  await page.goto(`${relay.url}/sign-in`);
  await page.type("#token", relay.tokens[who]);
  await Promise.all([page.waitForNavigation(), page.click("button[type=submit]")]);
  return page;
}

/** Notes what must not happen: requests to other hosts, dialogs, errors of scripts and of the policy. */
export function watch(page, relay) {
  page.trouble = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${relay.url}/`) && !/^(data|about|blob):/.test(url)) page.trouble.push(`request to ${url}`);
  });
  page.on("dialog", (dialog) => {
    page.trouble.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => page.trouble.push(`error ${error.message}`));
  page.on("console", (line) => {
    if (line.type() === "error" && /Content Security Policy|violat/i.test(line.text())) page.trouble.push(line.text());
  });
}

/** Submits the form of a button, and waits for the page after it. */
export async function press(page, selector) {
  await page.waitForSelector(selector);
  await Promise.all([page.waitForNavigation(), page.$eval(selector, (button) => button.click())]);
}

export const textOf = (page, selector = "main") => page.$eval(selector, (element) => element.innerText);
