// Decisions, records and the relay itself, as people use them in a real browser with a real relay.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { HOSTILE } from "./hostile.mjs";
import { ANN, chromium, closeBrowser, fill, press, signIn, startTeam, textOf, until } from "./world.mjs";

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
/** The console asks before what can't be undone: here, the person says yes. */
const agree = (page) => page.evaluateOnNewDocument(() => { globalThis.confirm = () => true; });

test("a person approves a held message, and it goes on", async () => {
  const page = await signIn(browser, relay, "bob");
  await page.goto(`${relay.url}/approvals`);
  await press(page, `a[href="/approvals/${sent.held.id}"]`);
  const text = await textOf(page);
  for (const part of ["agents pass work on", "0042_drop_legacy.sql", "gemini://code/main"]) assert.ok(text.includes(part), part);
  await press(page, "button[value=approve]");
  assert.match(await textOf(page), /Approved: it goes on/);
  const inbox = await relay.call("claude", "GET", "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fmain");
  assert.ok(inbox.messages.some((m) => m.id === sent.held.id));
  quiet(page);
  await page.close();
});

test("a person opens a poll, and the tally moves", async () => {
  const page = await signIn(browser, relay, "ann");
  await page.goto(`${relay.url}/polls/new`);
  await page.type("#question", "Which name?");
  await page.type("#options", "Otter\nHeron");
  await page.type("#voters", "human://acme.example/bob\nclaude://code/main");
  await press(page, "form button.primary");
  assert.match(await textOf(page, "#envelope"), /intent: POLL/);
  await press(page, "button[form=send]");
  assert.match(await textOf(page), /The poll is open\.[\s\S]*0 of 2 counted/);
  const id = new URL(page.url()).pathname.split("/").pop();
  const { thread } = await relay.call("ann", "GET", `/crosstalk/messages/${id}`);
  const vote = (who, sender, body) => relay.send(who, { sender, receiver: ANN, intent: "RESPOND", context: "Which name?", thread, parent: id, body });
  await vote("bob", "human://acme.example/bob", "Heron\n\nIt is patient.");
  // Nobody loads the page again.
  await until("the tally of the first vote", async () => /1 of 2 counted/.test(await textOf(page)));
  assert.ok((await textOf(page)).includes("It is patient."));
  await vote("claude", "claude://code/main", "I like animals that swim best, so it is clear to me.");
  await until("the answer that is not counted", async () => /Not counted[\s\S]*animals that swim/.test(await textOf(page)));
  await page.select("form[action$='/count'] select[id^='n-']", "0");
  await page.$eval("select[id^='n-']", (select) => select.form.requestSubmit());
  await page.waitForSelector("button[form=send]");
  await press(page, "button[form=send]");
  await until("the corrected answer", async () => {
    await page.reload();
    return /2 of 2 counted[\s\S]*corrected by/.test(await textOf(page));
  });
  quiet(page);
  await page.close();
});

test("a person grants a consent with a key of the browser, revokes it, and the text is gone", async () => {
  const page = await signIn(browser, relay, "ann");
  await agree(page);
  await page.goto(`${relay.url}/consents/grant`);
  await page.type("#to", "claude://code/main");
  await page.click("input[value=medical]");
  await page.type("#note", "My blood pressure was 120 to 80 on Monday.");
  await press(page, "form button.primary");
  await page.waitForSelector("[data-own-key]:not([hidden])");
  await press(page, "#sign button");
  await press(page, "button[form=send]");
  assert.match(await textOf(page), /The consent is on record/);
  const consent = page.url().split("?")[0];
  await until("the message under the consent", async () => {
    await page.goto(consent);
    return /1 kept, 0 erased/.test(await textOf(page));
  });
  const id = await page.$eval("main a[href^='/audit/of/']", (link) => decodeURIComponent(link.href.split("/").pop()));
  const read = () => relay.call("claude", "GET", `/crosstalk/messages/${id}`).then((m) => m.envelope, (error) => error.message);
  assert.match(await read(), /120 to 80/);
  // Nobody erases texts with a key that nobody compared: the operator does that first.
  const ops = await signIn(browser, relay, "ops");
  await agree(ops);
  await ops.goto(`${relay.url}/trust`);
  assert.match(await textOf(ops, ".cards > li:first-child"), /first contact[\s\S]*human:\/\/acme\.example\/ann/);
  await press(ops, ".cards form[action='/trust/pin'] button");
  assert.match(await textOf(ops), /The key is pinned/);
  quiet(ops);
  await ops.close();
  await page.type("#reason", "the study is over");
  await press(page, "form button.danger");
  await page.waitForSelector("[data-own-key]:not([hidden])");
  assert.equal(await page.$("button[form=send]"), null, "an unsigned REVOKE is not offered");
  await press(page, "#sign button");
  await press(page, "button[form=send]");
  await until("the text is erased", async () => {
    await page.goto(consent);
    return /revoked[\s\S]*0 kept, 1 erased/.test(await textOf(page));
  });
  assert.doesNotMatch(await read(), /120 to 80/);
  quiet(page);
  await page.close();
});

test("the browser verifies an entry of the audit log, and notices a false one", async () => {
  const page = await signIn(browser, relay, "ops");
  await until("a checkpoint that covers the entry", async () => {
    await page.goto(`${relay.url}/audit/3`);
    return page.$("#checks");
  });
  await page.waitForSelector("#own-check[data-checked=yes]");
  assert.match(await textOf(page, "#own-check"), /computed the same root/);
  quiet(page);
  const html = await page.content();
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (!request.isNavigationRequest()) return request.continue();
    const body = html.replace(/data-leaf="crosstalk-log-v1 [a-z]+/, 'data-leaf="crosstalk-log-v1 closed');
    return request.respond({ contentType: "text/html", body });
  });
  await page.goto(`${relay.url}/audit/3`);
  await page.waitForSelector("#own-check[data-checked=no]");
  await page.close();
});

test("the operator tries a dead letter again, and sees whom the relay distrusts", async () => {
  const page = await signIn(browser, relay, "ops");
  await agree(page);
  await page.goto(`${relay.url}/dead`);
  assert.match(await textOf(page), /limit of messages for today/);
  await press(page, `form[action="/dead/${sent.lost.id}/requeue"] button`);
  assert.match(await textOf(page), /It is tried again now/);
  assert.doesNotMatch(await textOf(page), /limit of messages for today/);
  await page.goto(`${relay.url}/trust`);
  assert.match(await textOf(page), /The laptop was lost in March/);
  quiet(page);
  await page.close();
});

test("the secret of a token is on one page, once", async () => {
  const page = await signIn(browser, relay, "ops");
  await page.goto(`${relay.url}/tokens`);
  await page.type("#name", "carla");
  await page.type("#addresses", "human://acme.example/carla");
  await press(page, "form[action^='/tokens#'] button.primary");
  const secret = await textOf(page, "#secret");
  assert.match(secret, /^xt_/);
  await page.goto(`${relay.url}/tokens`);
  assert.ok(!(await page.content()).includes(secret));
  relay.tokens.carla = secret;
  const carla = await signIn(browser, relay, "carla");
  assert.match(await textOf(carla), /Inbox/);
  quiet(page);
  await page.close();
});

test("hostile texts break no layout of these pages", async () => {
  const hostile = await startTeam();
  try {
    const ids = { held: [], polls: [] };
    for (const text of HOSTILE) {
      const line = text.replace(/[\r\n]/g, " ").slice(0, 200);
      const try_ = (promise, list) => promise.then((made) => list.push(made.id), (error) => assert.match(error.message, /E-FORMAT|E-PERM|E-UNSUPPORTED|E-ROUTE/, text));
      await try_(hostile.send("gemini", { sender: "gemini://code/main", receiver: "claude://code/main", context: line, body: text }), ids.held);
      await try_(hostile.send("ann", {
        sender: ANN, receiver: "TEAM", intent: "POLL", context: line, body: text,
        meta: { routing: { Targets: JSON.stringify(["human://acme.example/bob", line]) }, poll: { Type: "plurality", Options: JSON.stringify([line, "Monday"]) } },
      }), ids.polls);
      await try_(hostile.send("ann", {
        sender: ANN, receiver: "claude://code/main", intent: "BROADCAST", context: line, body: text,
        meta: { privacy: { Consent: "explicit_yes_2026-01-01T00:00:00Z", Scope: line.slice(0, 60), "Consent-ID": line.slice(0, 80) } },
      }), []);
    }
    await hostile.send("bob", { sender: "human://acme.example/bob", receiver: ANN, intent: "RESPOND", parent: ids.polls[0], body: HOSTILE.join("\n") });
    for (const [width, who] of [[1000, "ops"], [390, "ops"]]) {
      const page = await signIn(browser, hostile, who, { width, height: 800 });
      // Alone, each takes its time: the default check asks for every fourth one.
      const some = process.env.CROSSTALK_TEST_FULL ? HOSTILE : HOSTILE.filter((_, at) => at % 4 === 0);
      const queries = some.map((text) => encodeURIComponent(text.slice(0, 200)));
      const paths = ["/approvals", "/polls", "/consents?all=1", "/audit", "/dead", "/trust", "/status", "/tokens",
        ...ids.held.map((id) => `/approvals/${id}`), ...ids.polls.map((id) => `/polls/${id}`),
        ...queries.flatMap((q) => [`/search?q=${q}`, `/audit?message=${q}`, `/consents?by=${q}`])];
      for (const path of paths) {
        await page.goto(hostile.url + path);
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
        assert.ok(wide <= 1, `${path} is ${wide} pixels too wide at ${width}`);
        const strange = await page.$$eval("main script, main iframe, main base, main meta, main link, main style, main [onerror], main [onload], main #pressed, main img:not([src^='/assets/'])", (found) => found.map((e) => e.outerHTML));
        assert.deepEqual(strange, [], path);
        const shown = await page.$eval("body", (body) => body.innerText);
        assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b\u2060\u{e0000}-\u{e007f}]/u.test(shown), `${path} shows what nobody sees`);
        quiet(page);
      }
      await page.close();
    }
  } finally {
    await hostile.stop();
  }
});
