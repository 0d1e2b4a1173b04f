// The console as people use it, in a real browser with a real relay.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { HOSTILE } from "./hostile.mjs";
import { DAMAGED, PAGES } from "./pages.mjs";
import { ANN, Relay, axeSource, chromium, closeBrowser, fill, firefox, press, signIn, startTeam, textOf, until, watch } from "./world.mjs";

let relay, browser, sent;
before(async () => {
  [relay, browser] = await Promise.all([startTeam(), chromium()]);
  sent = await fill(relay);
});
after(async () => {
  await closeBrowser(browser);
  await relay?.stop();
});

const quiet = (page) => assert.deepEqual(page.trouble, []);

test("a one-time link signs in without a token, once", async () => {
  const local = await Relay.start({ tokens: false });
  try {
    const page = await (await browser.createBrowserContext()).newPage();
    watch(page, local);
    const link = local.link();
    await page.goto(link);
    await press(page, "button.primary");
    assert.equal(new URL(page.url()).pathname, "/inbox");
    const second = await (await browser.createBrowserContext()).newPage();
    await second.goto(link);
    assert.match(await textOf(second), /This link was used/);
    quiet(page);
  } finally {
    await local.stop();
  }
});

/** Reads a question in the inbox, answers it, and sees that the agent got it. */
async function mainPath(open, { thread, sees, says, agent }) {
  const page = await signIn(open, relay, "ann");
  assert.match(await textOf(page), /Deploy 2\.4 to production/);
  const first = await textOf(page, "[data-rows] > li:first-child");
  assert.match(first, /urgent/, "the most urgent one is first");
  await press(page, `a[href^="/threads/${thread}"]`);
  assert.match(await textOf(page), sees);
  await page.type("#body", says);
  await press(page, "#reply button.primary");
  assert.ok((await textOf(page, "#envelope")).includes(`intent: RESPOND\nbody: |\n  ${says}\nsig: none`));
  await press(page, "button[form=send]");
  assert.match(await textOf(page), /Sent: the relay has it on disk/);
  assert.ok((await textOf(page, ".turns")).includes(says));
  const inbox = await relay.call(agent, "GET", `/crosstalk/inbox?for=${agent}%3A%2F%2Fcode%2Fmain`);
  assert.ok(inbox.messages.some((m) => m.envelope.includes(says)));
  quiet(page);
  await page.close();
}

test("a person signs in, reads and answers", () =>
  mainPath(browser, { thread: sent.legal.thread, sees: /ten years/, says: "Yes, it is still true.", agent: "gemini" }));

test("a person does the same in Firefox", async () => {
  const other = await firefox();
  try {
    await mainPath(other, { thread: sent.rollback.thread, sees: /Stripe retries/, says: "Alert after the third failure.", agent: "claude" });
  } finally {
    await closeBrowser(other);
  }
});

test("everything that changes something works without scripts", async () => {
  const page = await signIn(browser, relay, "bob");
  await page.setJavaScriptEnabled(false);
  await page.goto(`${relay.url}/new?to=claude://code/main`);
  await page.type("#body", "Does it work without scripts?");
  await Promise.all([page.waitForNavigation(), page.click("form.stack button.primary")]);
  await Promise.all([page.waitForNavigation(), page.click("button[form=send]")]);
  assert.match(await textOf(page), /Sent/);
});

test("new messages appear by themselves, and the title counts them", async () => {
  const page = await signIn(browser, relay, "bob");
  const counted = async () => Number(/^\((\d+)\) Inbox/.exec(await page.title())?.[1] ?? 0);
  const before = await counted();
  await relay.send("claude", { sender: "claude://code/main", receiver: "human://acme.example/bob", context: "A live one", body: "Now?" });
  await until("the message", async () => (await textOf(page, "#list")).includes("A live one"));
  await until("the number in the title", async () => (await counted()) === before + 1);
  quiet(page);
  await page.close();
});

test("a message that comes while a page is loading appears, too", async () => {
  const page = await signIn(browser, relay, "bob");
  const inbox = () => relay.call("bob", "GET", "/crosstalk/inbox?for=human%3A%2F%2Facme.example%2Fbob");
  const send = async (context) => {
    const { id } = await relay.send("claude", { sender: "claude://code/main", receiver: "human://acme.example/bob", context, body: "Now?" });
    await until("the message in the inbox", async () => (await inbox()).messages.some((m) => m.id === id));
  };
  const shows = (where, context) => until(`“${context}”`, async () => (await textOf(where, "#list")).includes(context));
  /** Loads the inbox, and does something before the first request for a path goes on. */
  const loadAndHold = async (where, path, act) => {
    let isHeld = false;
    await where.setRequestInterception(true);
    where.on("request", async (request) => {
      const isWanted = !isHeld && path.test(new URL(request.url()).pathname);
      isHeld ||= isWanted;
      if (isWanted) await act();
      request.continue();
    });
    await where.goto(`${relay.url}/inbox`);
  };
  await loadAndHold(page, /^\/live$/, () => send("Before the stream is open"));
  await shows(page, "Before the stream is open");
  // Of several tabs, one listens: it is told, and the next tab has no script yet.
  const other = await page.browserContext().newPage();
  watch(other, relay);
  await other.setCacheEnabled(false);
  await loadAndHold(other, /^\/assets\/console\.[0-9a-f]+\.js$/, async () => {
    await page.bringToFront();
    await send("Before the second tab hears");
    await shows(page, "Before the second tab hears");
  });
  await other.bringToFront();
  await shows(other, "Before the second tab hears");
  for (const each of [page, other]) {
    quiet(each);
    await each.close();
  }
});

test("the keyboard moves, opens, finishes and helps", async () => {
  const page = await signIn(browser, relay, "ann");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  assert.equal(await page.$$eval("[data-rows] > li", (rows) => rows.findIndex((row) => row.classList.contains("here"))), 1);
  await page.keyboard.press("?");
  assert.match(await textOf(page, "#shortcuts"), /next and previous/);
  await page.keyboard.press("Escape");
  const before = await page.$$eval("[data-rows] > li", (rows) => rows.length);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("e")]);
  assert.equal(await page.$$eval("[data-rows] > li", (rows) => rows.length), before - 1);
  await page.keyboard.press("g");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("t")]);
  assert.equal(new URL(page.url()).pathname, "/threads");
  quiet(page);
  await page.close();
});

test("a damaged answer of a chat is repaired in sight and filed", async () => {
  const page = await signIn(browser, relay, "ann");
  await page.goto(`${relay.url}/carry`);
  const text = await page.$eval("pre.envelope", (pre) => pre.textContent);
  assert.match(text, /I carry messages between you and other AIs/);
  await page.type("textarea[name=text]", DAMAGED);
  await press(page, ".paste-back button");
  assert.match(await textOf(page), /repairs/);
  assert.ok((await page.$$("mark.repair")).length > 2);
  await press(page, "form[action='/paste/file'] button.primary");
  assert.match(await textOf(page), /Filed/);
  assert.match(await textOf(page, ".turns"), /24 hours is fine\./);
  quiet(page);
  await page.close();
});

test("the inspector explains an envelope line by line, and saves it", async () => {
  const page = await signIn(browser, relay, "ann");
  await page.goto(`${relay.url}/inspect?id=${sent.deploy.id}`);
  const lines = await textOf(page, ".lines");
  assert.match(lines, /from whom, to whom, which version/);
  assert.match(lines, /X-Priority: high/);
  const answer = await page.evaluate(async () => {
    const form = document.querySelector("form[action='/inspect/save']");
    const reply = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    return { text: await reply.text(), name: reply.headers.get("content-disposition") };
  });
  assert.match(answer.text, /^\[\[claude:\/\/code\/main→/);
  assert.match(answer.name, /message\.aict/);
  quiet(page);
  await page.close();
});

test("a person signs with a key that stays in the browser", async () => {
  const page = await signIn(browser, relay, "bob");
  await page.goto(`${relay.url}/new?to=claude://code/main`);
  await page.type("#body", "Signed in the browser.\n\n  Indented, and with ümläuts.");
  await press(page, "form.stack button.primary");
  await page.waitForSelector("[data-own-key]:not([hidden])");
  await press(page, "#sign button");
  assert.match(await textOf(page), /Your key in this browser/);
  assert.match(await textOf(page, "#envelope"), /sig: ed25519:pkid=did:key:z[^;]+;sig=/);
  await press(page, "button[form=send]");
  assert.match(await textOf(page), /Sent/);
  const inbox = await relay.call("claude", "GET", "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fmain");
  const message = inbox.messages.find((m) => m.envelope.includes("Signed in the browser"));
  assert.ok(["verified", "first-contact", "unbound"].includes(message.signature), message.signature);
  quiet(page);
  await page.close();
});

test("axe-core finds nothing serious on any page", async () => {
  const pages = {};
  const faults = [];
  const look = async (page, name) => {
    await page.evaluate(axeSource());
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    for (const v of violations.filter(({ impact }) => ["serious", "critical"].includes(impact))) {
      faults.push(`${name}: ${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.html.slice(0, 160)} ${n.failureSummary}`).slice(0, 3).join(" | ")}`);
    }
  };
  for (const { name, who, path, act } of PAGES) {
    const page = (pages[who] ??= await signIn(browser, relay, who));
    // The policy of the pages keeps every script out, that of the check as well.
    await page.setBypassCSP(true);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(relay.url + path(sent));
      if (act) await act(page, sent);
      await look(page, `${name} ${scheme}`);
    }
  }
  const page = await (await browser.createBrowserContext()).newPage();
  await page.setBypassCSP(true);
  for (const path of ["/sign-in", "/sign-in?link=x", "/nothing-here"]) {
    await page.goto(relay.url + path);
    await look(page, path);
  }
  assert.deepEqual(faults, []);
});

test("hostile texts in every field run no script, load nothing and break no layout", async () => {
  const hostile = await startTeam();
  try {
    let last;
    for (const [at, text] of HOSTILE.entries()) {
      const line = text.replace(/[\r\n]/g, " ");
      last = await hostile.send("claude", {
        sender: "claude://code/main", receiver: ANN, context: line.slice(0, 200), user: line.slice(0, 60).trim() || "u", body: `${text}\n${text}`,
        meta: { routing: { "X-Deadline": line.slice(0, 80) }, attachment: { "file-1": `text/plain;name=${line.replace(/[;=,"]/g, "").slice(0, 60)};digest=sha256:${"0".repeat(64)}` }, [`x-${at}`]: { Note: line.slice(0, 120) } },
      }).catch((error) => {
        // A name or a value that the format does not allow never reaches a page.
        assert.match(error.message, /E-FORMAT|E-PERM|E-UNSUPPORTED|E-ROUTE/, text);
        return hostile.send("claude", { sender: "claude://code/main", receiver: ANN, context: "hostile", body: `${text}\n${text}` });
      });
      await hostile.send("ann", { sender: ANN, receiver: "CHATGPT", context: "carry", body: text });
    }
    const all = await hostile.call("ann", "GET", "/crosstalk/threads?limit=100");
    const page = await signIn(browser, hostile, "ann", { width: 1000, height: 800 });
    const check = async (name) => {
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
      assert.ok(wide <= 1, `${name} is ${wide} pixels too wide`);
      const strange = await page.$$eval("main script, main iframe, main base, main meta, main link, main style, main [onerror], main [onload], main #pressed, main img[src*=evil]", (found) => found.map((e) => e.outerHTML));
      assert.deepEqual(strange, [], name);
      const shown = await page.$eval("body", (body) => body.innerText);
      assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b\u2060\u{e0000}-\u{e007f}]/u.test(shown), `${name} shows what nobody sees`);
      quiet(page);
    };
    const paths = ["/inbox", "/threads", "/carry", ...all.threads.map((t) => `/threads/${t.id}`), `/inspect?id=${last.id}`];
    for (const path of paths) {
      await page.goto(hostile.url + path);
      await check(path);
    }
    assert.match(await page.goto(`${hostile.url}/inbox`).then(() => textOf(page)), /u\{202e\}/);
    // Alone, each takes its time: the default check takes every third one, and all of them in one text.
    const some = process.env.CROSSTALK_TEST_FULL ? HOSTILE : HOSTILE.filter((_, at) => at % 3 === 0);
    for (const text of [HOSTILE.join("\n"), ...some]) {
      for (const path of ["/inspect", "/paste"]) {
        await page.goto(hostile.url + path);
        await page.$eval("#text", (area, value) => { area.value = value; }, `${text}\n[[A→B v1]]\nuser: ${text}\ncontext: ${text}\nintent: NOTE\nbody: |\n  ${text}\nsig: none\n[[END]]\n`);
        await press(page, path === "/paste" ? "#paste button" : "form[action='/inspect'] button");
        await check(`${path} with ${text.slice(0, 40)}`);
      }
      const word = encodeURIComponent([...text].slice(0, 60).join(""));
      for (const path of [`/sign-in?link=${word}&to=${word}`, `/threads?with=${word}`, `/inbox?did=${word}`, `/threads/${word}`, `/new?to=${word}`]) {
        await page.goto(hostile.url + path);
        await check(path.slice(0, 60));
      }
    }
    await page.setViewport({ width: 390, height: 800 });
    for (const path of paths.slice(0, 8)) {
      await page.goto(hostile.url + path);
      await check(`${path} on a phone`);
    }
  } finally {
    await hostile.stop();
  }
});

test("a page transfers at most 150 KB", async () => {
  const page = await signIn(browser, relay, "ann");
  const session = await page.createCDPSession();
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  let bytes = 0;
  session.on("Network.loadingFinished", (event) => { bytes += event.encodedDataLength; });
  for (let i = 0; i < 60; i += 1) {
    await relay.send("claude", { sender: "claude://code/main", receiver: ANN, context: `Finding ${i}: an error message says nothing about the next step`, body: "The relay says what happened, and not what the person can do about it. ".repeat(6) });
  }
  for (const path of ["/inbox", "/threads", `/threads/${sent.rollback.thread}`, "/carry"]) {
    bytes = 0;
    await page.goto(relay.url + path, { waitUntil: "networkidle2" });
    console.log(`# measured ${path} transfers ${bytes} bytes`);
    assert.ok(bytes > 5_000 && bytes < 150_000, `${path}: ${bytes}`);
  }
  await page.close();
});
