// A real relay with people, agents and messages as in a small team, and a browser in front of it.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LIMIT_MS, until } from "../../../js/test/wait.mjs";

export { closeBrowser, until } from "../../../js/test/wait.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const TOOLS = process.env.CROSSTALK_NPM ?? path("../../../target/tools/console");
export const BINARY = process.env.CROSSTALK_BINARY ?? path("../../../target/debug/crosstalk");
const require = createRequire(join(TOOLS, "package.json"));
const puppeteer = require("puppeteer-core");
export const axeSource = () => readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

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
      return execFileSync(BINARY, [...words, "--data", this.data], { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS });
    } catch (error) {
      throw new Error(`${words.join(" ")}: ${error.stderr || error.message}`);
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
    const answer = await fetch(this.url + target, { method, headers, body: typeof body === "object" ? JSON.stringify(body) : body, signal: AbortSignal.timeout(LIMIT_MS) });
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
  await fillOffice(relay, sent);
  return sent;
}

/** What people decide about and check: a held message, a poll with answers, consents, keys, a dead letter. */
async function fillOffice(relay, sent) {
  sent.held = await relay.send("gemini", {
    sender: "gemini://code/main", receiver: "claude://code/main", intent: "REQUEST", context: "Drop the legacy tables",
    body: "Please run `migrations/0042_drop_legacy.sql` on production. It removes `orders_v1` and `orders_v1_items`, 14 GB.\n\nThe backup of last night is verified.",
  });
  sent.poll = await relay.send("ann", {
    sender: ANN, receiver: "TEAM", intent: "POLL", context: "When do we release 2.4?",
    meta: {
      routing: { Targets: `["human://acme.example/bob", "claude://code/main", "gemini://code/main", "review://code/main"]` },
      poll: { Type: "plurality", Options: `["Friday", "Monday", "Not before the audit"]`, Quorum: "3" },
    },
    body: "When do we release 2.4? The window on Friday is short, the one on Monday has nobody from support.",
  });
  const vote = (who, sender, body) => relay.send(who, { sender, receiver: ANN, intent: "RESPOND", context: "When do we release 2.4?", thread: sent.poll.thread, parent: sent.poll.id, body });
  await vote("bob", "human://acme.example/bob", "Monday\n\nSupport can be there from noon. On Friday, nobody reads the alerts after six.");
  await vote("claude", "claude://code/main", "Friday\n\nAll tests are green, and the change is behind a flag.");
  await vote("gemini", "gemini://code/main", "I would wait for the start of the week, unless the customer insists.");
  const decided = await relay.send("ann", {
    sender: ANN, receiver: "TEAM", intent: "POLL", context: "Which database for the audit log?",
    meta: { routing: { Targets: `["human://acme.example/bob", "claude://code/main"]` }, poll: { Type: "plurality", Options: `["SQLite", "PostgreSQL"]` } },
    body: "Which database for the audit log?",
  });
  for (const [who, sender] of [["bob", "human://acme.example/bob"], ["claude", "claude://code/main"]]) {
    await relay.send(who, { sender, receiver: ANN, intent: "RESPOND", context: "Which database for the audit log?", thread: decided.thread, parent: decided.id, body: "SQLite\n\nOne file is easy to check." });
  }
  await relay.call("ann", "POST", `/crosstalk/polls/${decided.id}/close`, "");
  const consent = (id, scope, to, end) => relay.send("ann", {
    sender: ANN, receiver: to, intent: "BROADCAST", context: "consent",
    meta: { privacy: { Consent: "explicit_yes_2026-01-01T00:00:00Z", Scope: scope, "Consent-ID": id, ...(end && { Expires: end }), Jurisdiction: "GDPR" } },
    body: `I agree to the use of what falls under ${scope}. The name of this consent is ${id}.`,
  });
  await consent("health-2027", "medical", "claude://code/main", "2031-01-01T00:00:00Z");
  await consent("trip-2027", "location, pii", "gemini://code/main");
  const lost = await relay.send("ann", { sender: ANN, receiver: "CHATGPT", intent: "REQUEST", context: "Draft of the release notes", body: "Shorten these release notes to five lines." });
  await relay.call("ann", "POST", `/crosstalk/courier/${lost.id}`, { to: "CHATGPT", state: "failed", reason: "The chat says that the limit of messages for today is reached." });
  sent.lost = lost;
  const key = (byte) => `ed25519:pk=${KEYS[byte]}`;
  await relay.call("ops", "POST", "/crosstalk/trust/pin", { id: "carla@acme.example", key: key(0), senders: ["human://acme.example/carla"] });
  await relay.call("ops", "POST", "/crosstalk/trust/pin", { id: "build@partner.example", key: key(1), senders: ["claude://partner.example/build"] });
  await relay.call("ops", "POST", "/crosstalk/trust/distrust", { id: "old@acme.example", key: key(2), reason: "The laptop was lost in March." });
}

/** Public keys of RFC 8032. */
const KEYS = ["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=", "/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU="];

const FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

/** Chromium with an empty profile. */
export async function chromium() {
  const executablePath = process.env.CROSSTALK_CHROMIUM ?? "/usr/bin/chromium";
  return puppeteer.launch({ executablePath, headless: true, args: FLAGS.split(" "), protocolTimeout: LIMIT_MS });
}

export async function firefox() {
  return puppeteer.launch({ browser: "firefox", executablePath: process.env.CROSSTALK_FIREFOX ?? "/usr/bin/firefox-esr", headless: true, protocolTimeout: LIMIT_MS });
}

/** A page in a browser profile of its own, signed in with a token. It keeps what scripts, requests and dialogs it saw. */
export async function signIn(browser, relay, who, { width = 1200, height = 850 } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
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
