// Every flow in one browser: `node --test` runs a file of this kind for each browser.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { startChat } from "./chats.mjs";
import { badges, choose, clickAt, keys, paste, pick, press, pressInPopover, says, setUp, stats, type, undo } from "./driver.mjs";
import { RelayServer } from "../../test/relay-server.mjs";
import { hostilePage, slowPage } from "./hostile.mjs";
import { openPopup } from "./toolbar.mjs";
import { Browser, Site, checkSlices, crosstalk, isFull, picture, sliceTimes, until } from "./tools.mjs";

const { Relay, build, generateKey, parse, sign } = crosstalk;

const message = (body, sender = "CLAUDE") =>
  build({ sender, receiver: "ANN", user: sender.toLowerCase(), context: "api design", intent: "RESPOND", parent: "M1", body });

export function flows(name) {
  describe(`the extension in ${name}`, () => {
    const key = generateKey();
    const signed = sign(message("Keep v2.\n\nIt has fewer endpoints."), key.privateKeyPem, { keyId: "claude@acme.example", withKey: true });
    const damaged = sign(message("Pay 100 to Bo."), key.privateKeyPem, { keyId: "claude@acme.example", withKey: true }).replace("100", "900");
    let browser, claude, gpt, options, panel;

    before(async () => {
      claude = await startChat("CLAUDE", { editor: "prosemirror", messages: [signed, damaged, message("No signature here.")] });
      gpt = await startChat("CHATGPT", { editor: "textarea" });
      browser = await Browser.start(name);
      options = await setUp(browser, { CLAUDE: claude, CHATGPT: gpt });
      panel = await browser.own("panel.html");
    });
    after(async () => {
      await browser?.close();
      claude?.close();
      gpt?.close();
    });

    // A test that failed leaves no page for the next one.
    afterEach(() => browser.closePages());

    test("the core is not loaded for a page without messages", async () => {
      const isLoaded = async () => (await browser.fetchedByBackground(panel)).some((url) => url.endsWith(".wasm"));
      assert.equal(await isLoaded(), false);
      const page = await browser.page(`${gpt.origin}/textarea`);
      const slices = () => stats(panel, "CHATGPT chat").then((all) => all?.slices ?? 0);
      const first = await until("a read page", slices);
      await page.evaluate(() => window.addMessage("Some [words] of a page, and [ [ no message → here v1 ]]."));
      await until("a read message", async () => (await slices()) > first);
      assert.equal(await isLoaded(), false);
      await page.evaluate((text) => window.addMessage(text), message("A message."));
      await badges(panel, "CHATGPT chat", ["Unsigned"]);
      assert.equal(await isLoaded(), true, "the background loads nothing, or this test does not see it");
    });

    test("badges say what a message is, and trust changes them", async () => {
      const page = await browser.page(claude.origin);
      const before = await page.evaluate(() => document.body.innerHTML);
      const [first] = await badges(panel, "CLAUDE chat", ["First contact", "Damaged", "Unsigned"]);
      assert.equal(await page.evaluate(() => document.body.innerHTML), before, "the page's own tree stays as it is");
      await pick(page, first, "Show in Crosstalk");
      await until("the message in the panel", () => panel.evaluate(() => document.querySelector("#about .verdict")?.textContent.includes("First contact")));
      await panel.bringToFront();
      await picture(panel, `${name}-panel`);
      await press(panel, "Trust this key");
      await page.bringToFront();
      await badges(panel, "CLAUDE chat", ["Verified", "Damaged", "Unsigned"]);
      await picture(page, `${name}-badges`);
      // Badges come again when the page renders its messages anew.
      await page.evaluate(() => {
        const log = document.querySelector("#log");
        const copy = log.cloneNode(true);
        log.replaceWith(copy);
      });
      await badges(panel, "CLAUDE chat", ["Verified", "Damaged", "Unsigned"]);
    });

    test("messages are found while they stream, in shadow trees, and in frames", async () => {
      const page = await browser.page(`${gpt.origin}/textarea`);
      await page.evaluate((text) => window.addMessage(text, { streams: true }), message("streamed"));
      await badges(panel, "CHATGPT chat", ["Unsigned"]);
      await page.evaluate((text) => window.addMessage(text, { shadow: true }), message("in a shadow"));
      await badges(panel, "CHATGPT chat", ["Unsigned", "Unsigned"]);
      // A frame of the same site has badges of its own.
      await page.evaluate((text) => {
        const frame = document.createElement("iframe");
        frame.src = "/contenteditable";
        frame.width = "700";
        frame.height = "300";
        frame.addEventListener("load", () => frame.contentWindow.addMessage(text));
        document.body.prepend(frame);
      }, message("in a frame"));
      await until("the badge in the frame", () =>
        panel.evaluate(async () => {
          const api = globalThis.browser ?? globalThis.chrome;
          const { id } = (await api.tabs.query({})).find(({ title }) => title === "CHATGPT chat");
          const frames = await api.scripting.executeScript({ target: { tabId: id, allFrames: true }, func: () => location.href });
          const inner = frames.find(({ frameId }) => frameId !== 0);
          if (inner === undefined) return false;
          const { badges: found } = await api.tabs.sendMessage(id, { type: "stats" }, { frameId: inner.frameId });
          return found.length === 1 && found[0].text.endsWith("Unsigned");
        }),
      );
      await page.evaluate(() => document.querySelector("iframe").remove());
      // Hidden text gets no badge.
      await page.evaluate((text) => {
        window.addMessage(text);
        document.querySelector("#log").lastChild.className = "hidden";
      }, message("hidden"));
      await page.evaluate((text) => window.addMessage(text), message("cut off").slice(0, -20));
      await badges(panel, "CHATGPT chat", ["Unsigned", "Unsigned", "Damaged"]);
    });

    for (const editor of ["textarea", "contenteditable", "prosemirror", "lexical"]) {
      test(`a message goes into ${editor} exactly, and undo takes it away`, async () => {
        const page = await browser.page(`${gpt.origin}/${editor}`);
        await choose(panel, "#chat", "CHATGPT");
        await type(panel, "#to", "CHATGPT");
        await type(panel, "#context", "spacing");
        const body = "First line\n\n    indented code <b>&amp;</b>\n\nLast “line” 🙂";
        await type(panel, "#body", body);
        await press(panel, "Put into chat");
        await says(panel, "is in the input");
        const text = await page.evaluate(() => window.readEditor());
        const { envelopes } = parse(text.slice(text.lastIndexOf("```\n[[")));
        assert.equal(envelopes.length, 1, text);
        assert.equal(envelopes[0].body, body);
        assert.deepEqual(envelopes[0].repairs.map(({ rule }) => rule), ["PST-001"], "only the fence was taken away");
        assert.equal(text.includes("AI Crosstalk:"), true, "the primer comes first");
        assert.equal(await page.evaluate(() => window.sent), undefined, "nothing was sent");
        await undo(browser, page);
        await until("an empty input", async () => (await page.evaluate(() => window.readEditor())).trim() === "");
      });
    }

    test("the popover saves a message to a file, as verified", async () => {
      const page = await browser.page(claude.origin);
      const [first] = await badges(panel, "CLAUDE chat", ["Verified", "Damaged", "Unsigned"]);
      await pick(page, first, "Save to file");
      assert.equal(await until("the file", () => browser.saved("message.crosstalk")), signed);
      await says(panel, "Saved.");
      const seen = await panel.evaluate(() => {
        const notice = document.querySelector("#status");
        for (const animation of notice.getAnimations()) animation.finish();
        return getComputedStyle(notice).visibility;
      });
      assert.equal(seen, "hidden", "a notice leaves after a while");
    });

    test("the popover copies a message as verified, and replies to it", async () => {
      const page = await browser.page(claude.origin);
      const [first] = await badges(panel, "CLAUDE chat", ["Verified", "Damaged", "Unsigned"]);
      await pick(page, first, "Copy");
      const other = await browser.page(`${gpt.origin}/textarea`);
      const pasted = await until("the copied text", async () => {
        await paste(browser, other, "#input");
        return other.evaluate(() => document.querySelector("#input").value);
      });
      assert.equal(pasted, signed);
      await pick(page, first, "Reply");
      await until("the reply in the panel", () => panel.evaluate(() => document.querySelector("#compose-title").textContent === "Reply"));
      await type(panel, "#body", "Thank you.");
      await press(panel, "Put into chat");
      await says(panel, "is in the input of CLAUDE");
      const [envelope] = parse(await page.evaluate(() => window.readEditor())).envelopes.slice(-1);
      assert.deepEqual([envelope.receiver, envelope.parent, envelope.body], ["CLAUDE", parse(signed).envelopes[0].message, "Thank you."]);
    });

    test("a page does nothing that is for a page of another origin", async () => {
      const page = await browser.page(`${gpt.origin}/textarea`);
      await page.evaluate((text) => window.addMessage(text), message("Here."));
      await badges(panel, "CHATGPT chat", ["Unsigned"]);
      const tell = (message) =>
        panel.evaluate(async (sent) => {
          const api = globalThis.browser ?? globalThis.chrome;
          const { id } = (await api.tabs.query({})).find(({ title }) => title === "CHATGPT chat");
          return (await api.tabs.sendMessage(id, sent).catch(() => null)) ?? null;
        }, message);
      for (const origin of ["https://elsewhere.example", claude.origin, "null"]) {
        assert.equal(await tell({ type: "insert", text: "Not for you.", origin }), null, origin);
        assert.equal(await tell({ type: "latest", count: 5, origin }), null, origin);
      }
      assert.equal(await page.evaluate(() => window.readEditor()), "");
      assert.equal((await tell({ type: "latest", count: 5, origin: gpt.origin })).length, 1);
      assert.equal((await tell({ type: "insert", text: "For you.", origin: gpt.origin })).ok, true);
      assert.equal(await page.evaluate(() => window.readEditor()), "For you.");
    });

    test("a site is added by the background when the question of the browser closed the popup", async () => {
      const site = await startChat("LATER", { messages: [message("Here.")] });
      try {
        await browser.page(site.origin);
        const answer = (permission) =>
          panel.evaluate(
            async (origin, pattern) => {
              const api = globalThis.browser ?? globalThis.chrome;
              const { addAsked } = await import("../lib/sites.js");
              const { id } = (await api.tabs.query({})).find(({ title }) => title === "LATER chat");
              await api.storage.session.set({ asked: { origin, tab: id } });
              await addAsked({ origins: [pattern] });
              const { sites } = await api.storage.local.get("sites");
              return sites.some((each) => each.origin === origin);
            },
            site.origin,
            permission,
          );
        assert.equal(await answer("https://elsewhere.example/*"), false, "a permission for another site");
        assert.equal(await answer("http://127.0.0.1/*"), true);
        await badges(panel, "LATER chat", ["Unsigned"]);
      } finally {
        site.close();
      }
    });

    test("badges follow the rows of a virtual list", async () => {
      const page = await browser.page(gpt.origin);
      // Three kinds, each with the number of its row.
      const texts = Array.from({ length: 300 }, (_, at) => {
        const text = message(`This is row ${at}.`);
        const seal = () => sign(text, key.privateKeyPem, { keyId: "claude@acme.example", withKey: true });
        return [text, seal, () => seal().replace("This", "That")].map((made) => (typeof made === "string" ? made : made()))[at % 3];
      });
      const words = ["Unsigned", "Verified", "Damaged"];
      await page.evaluate((all) => window.showVirtual(all), texts);
      let shown;
      for (const first of [0, 1, 100, 101, 99, 295, 5]) {
        await page.evaluate((at) => (document.querySelector("#log").scrollTop = at * 230), first);
        shown = await badges(panel, "CHATGPT chat", Array.from({ length: 5 }, (_, at) => words[(first + at) % 3]));
      }
      assert.equal(await page.evaluate(() => document.querySelectorAll("#log pre").length < 10), true, "the list has rows for the screen only");
      await pick(page, shown[2], "Show in Crosstalk");
      await until("the message of this row", () => panel.evaluate(() => document.querySelector("#about")?.textContent.includes("This is row 7.")));
    });

    test("a verdict belongs to the text that goes on, whatever the page shows by then", async () => {
      const page = await browser.page(`${gpt.origin}/textarea`);
      await page.evaluate((text) => window.addMessage(text), signed);
      let [badge] = await badges(panel, "CHATGPT chat", ["Verified"]);
      // The page swaps its text when the mouse goes down, before there is a click.
      await page.evaluate((other) => {
        const [node] = document.querySelector("#log pre span").childNodes;
        addEventListener("mousedown", () => (node.data = other), { capture: true, once: true });
      }, message("Pay 900 to Bo.", "EVE"));
      const isPopoverOpen = async () => (await stats(panel, "CHATGPT chat")).isPopoverOpen;
      await clickAt(page, badge);
      [badge] = await badges(panel, "CHATGPT chat", ["Unsigned"]);
      assert.equal(await isPopoverOpen(), false, "a click on the old badge showed its verdict on the new text");
      await clickAt(page, badge);
      await until("the popover", isPopoverOpen);
      // Behind the open popover it is swapped again.
      await page.evaluate((text) => (document.querySelector("#log pre span").firstChild.data = text), signed);
      await badges(panel, "CHATGPT chat", ["Verified"]);
      await pressInPopover(page, "Show in Crosstalk");
      const panelText = () => panel.evaluate(() => document.querySelector("#about").textContent);
      await until("the text that the popover showed", async () => (await panelText()).includes("Pay 900"));
      assert.match(await panelText(), /○ Unsigned/);
    });

    test("ask both, compare, carry an answer", async () => {
      const [one, other] = [await browser.page(claude.origin), await browser.page(gpt.origin)];
      await press(panel, "Carry");
      await choose(panel, "#one", "CLAUDE");
      await choose(panel, "#other", "CHATGPT");
      // Without a topic, the first words are it.
      await type(panel, "#question", "Which endpoint should stay? Say it in one word, and give your reasons below.");
      await press(panel, "Ask both");
      await says(panel, "The question is in both chats.");
      for (const page of [one, other]) {
        assert.equal(await page.evaluate(() => window.sent), undefined);
        await page.bringToFront();
        await page.click("#send");
      }
      await panel.bringToFront();
      await until("both answers in one thread", () =>
        panel.evaluate(() => {
          const texts = [...document.querySelectorAll("#thread-list .card h3")].map(({ textContent }) => textContent);
          return texts.includes("CLAUDE → ANN") && texts.includes("CHATGPT → ANN") && texts.length === 4;
        }),
      );
      await picture(panel, `${name}-thread`, { x: 0, y: 0, width: 520, height: 900 });
      // A reply goes into the chat that the message is from, whichever was chosen before.
      await choose(panel, "#chat", "CHATGPT");
      const index = await panel.evaluate(() => [...document.querySelectorAll("#thread-list .card h3")].findIndex(({ textContent }) => textContent === "CLAUDE → ANN"));
      await panel.evaluate((at) => [...document.querySelectorAll("#thread-list .card")][at].querySelector("button:nth-child(2)").click(), index);
      await type(panel, "#body", "Thank you, CLAUDE.");
      await press(panel, "Put into chat");
      await says(panel, "is in the input of CLAUDE");
      assert.match(await one.evaluate(() => window.readEditor()), /Thank you, CLAUDE\./);
      await press(panel, "Carry");
      await choose(panel, "#from", "CLAUDE");
      await choose(panel, "#into", "CHATGPT");
      await type(panel, "#words", "What do you think?");
      await press(panel, "Carry", { root: "#carry" });
      await says(panel, "is in the input of CHATGPT");
      const forward = await other.evaluate(() => window.readEditor());
      const [envelope] = parse(forward).envelopes;
      assert.match(envelope.body, /^What do you think\?\n\nCLAUDE wrote about “Which endpoint should stay\? Say it in one word, and give …” \(unsigned\):\n\n\| CLAUDE says: keep v2\.\n\|\n\| It has fewer endpoints\.$/);
      assert.equal(forward.includes("AI Crosstalk:"), false, "this chat knows the format already");
    });

    test("shortcuts open the panel with the answer, and can be changed", async () => {
      const page = await browser.page(claude.origin);
      // The own question below the answer is not taken for one.
      await page.evaluate((text) => window.addMessage(text), message("my own question", "ANN"));
      await until("the own message", async () => (await stats(panel, "CLAUDE chat")).found === 4);
      await page.bringToFront();
      await keys(page, "Alt+Shift+KeyR");
      await until("the reply", () => panel.evaluate(() => document.querySelector("#about")?.textContent.includes("No signature here.")));
      await page.bringToFront();
      await keys(page, "Alt+Shift+KeyC");
      await until("an empty message", () => panel.evaluate(() => document.querySelector("#compose-title").textContent === "Write a message"));
      await options.bringToFront();
      await options.focus("#reply-keys");
      await keys(options, "Alt+Shift+KeyY");
      await says(options, "Saved.");
      await page.bringToFront();
      await keys(page, "Alt+Shift+KeyR");
      await keys(page, "Alt+Shift+KeyY");
      await until("the reply by the new keys", () => panel.evaluate(() => document.querySelector("#compose-title").textContent === "Reply"));
      await choose(panel, "#chat", "CLAUDE");
      await type(panel, "#body", "Thank you.");
      await press(panel, "Put into chat");
      await says(panel, "is in the input");
      const [envelope] = parse(await page.evaluate(() => window.readEditor())).envelopes.slice(-1);
      assert.equal(envelope.receiver, "CLAUDE");
      assert.equal(envelope.body, "Thank you.");
    });

    test("a paired relay: deliveries go into the chat, answers return, the token is revoked", async (context) => {
      const config = `[extension]\norigins = ["${browser.origin}"]\n[[route]]\nto = "chatgpt://*"\nby = "copy_paste"\n`;
      const relay = await RelayServer.start(context, config);
      const bot = new Relay(relay.url, { token: relay.createToken("bot", "agent", "BOT") });
      const question = { sender: "BOT", receiver: "chatgpt://team/api", user: "bot", context: "endpoints", intent: "REQUEST", body: "Which endpoint stays?" };
      await bot.send(question);
      const code = relay.tokens("pair", "browser", "--for", "ANN", "--courier", "chatgpt://*", "claude://*");
      assert.match(code, /^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
      // Under this name the extension has no permission for the host: the relay has to let it in.
      await type(options, "#url", relay.url.replace("127.0.0.1", "localhost"));
      await type(options, "#code", "0000-0000");
      await press(options, "Pair");
      await says(options, "The pairing code is unknown");
      await type(options, "#code", code.toLowerCase());
      await press(options, "Pair");
      await says(options, "Paired.");
      assert.match(await options.evaluate(() => document.querySelector("#relay-state").textContent), /as browser, for ANN\. It carries to chatgpt:/);
      assert.equal((await options.evaluate(() => document.documentElement.outerHTML)).includes("xt_"), false, "the token is shown nowhere");
      await picture(options, `${name}-options`);
      const page = await browser.page(gpt.origin);
      await panel.bringToFront();
      await press(panel, "Relay");
      await press(panel, "Put into CHATGPT");
      await says(panel, "The delivery is in the input of CHATGPT");
      assert.equal(await page.evaluate(() => window.sent), undefined);
      await page.bringToFront();
      await page.click("#send");
      await panel.bringToFront();
      await until("the answer in the panel", () => panel.evaluate(() => document.querySelector("#deliveries").textContent.includes("CHATGPT says: keep v2.")));
      assert.deepEqual((await bot.inbox("BOT")).messages, [], "nothing returns without a click");
      await picture(panel, `${name}-relay`);
      await press(panel, "Return the answer");
      await says(panel, "The relay has the answer.");
      const { messages } = await bot.inbox("BOT", { wait: 30 });
      assert.deepEqual(messages.map(({ from, envelope }) => [from ?? parse(envelope).envelopes[0].sender, parse(envelope).envelopes[0].body]), [["chatgpt://team/api", "CHATGPT says: keep v2.\n\nIt has fewer endpoints."]]);
      await until("an empty queue", () => panel.evaluate(() => document.querySelector("#deliveries").textContent.includes("Nothing waits to be carried.")));
      // A message of a page goes to the relay by a click in the panel, as it was verified.
      const told = sign(build({ sender: "ANN", receiver: "BOT", user: "ann", context: "endpoints", intent: "REQUEST", body: "And v1?" }), key.privateKeyPem, { keyId: "claude@acme.example", withKey: true });
      await page.bringToFront();
      await page.evaluate((text) => window.addMessage(text), told);
      const all = await until("a badge on it", async () => (await stats(panel, "CHATGPT chat")).badges.find(({ text }) => text === "✓ Verified"));
      await pick(page, all, "Send to relay");
      await until("the message in the panel", () => panel.evaluate(() => document.querySelector("#outgoing").textContent.includes("And v1?")));
      assert.deepEqual((await bot.inbox("BOT")).messages.filter(({ envelope }) => envelope.includes("And v1?")), [], "nothing is sent without a click in the panel");
      await press(panel, "Send to relay", { root: "#outgoing" });
      await says(panel, "The relay accepted the message.");
      const [arrived] = await until("the message at its receiver", async () => {
        const found = (await bot.inbox("BOT", { wait: 5 })).messages.filter(({ envelope }) => envelope.includes("And v1?"));
        return found.length > 0 && found;
      });
      assert.equal(parse(arrived.envelope).envelopes[0].sig, parse(told).envelopes[0].sig);
      await press(options, "Revoke and forget");
      await says(options, "The relay revoked the token.");
      const { tokens } = JSON.parse(relay.tokens("list", "--json"));
      assert.equal(tokens.find((token) => token.name === "browser").state, "revoked");
      const kept = await options.evaluate(async () => JSON.stringify(await (globalThis.browser ?? globalThis.chrome).storage.local.get(null)));
      assert.equal(kept.includes("xt_"), false, "nothing of the token is left");
    });

    test("a hostile page gets nothing, and changes no verdict", async () => {
      const site = await Site.start({ "/": hostilePage(damaged, message("hidden", "EVE"), browser.origin) });
      try {
        await type(options, "#site", site.origin);
        await press(options, "Add site", { isReal: true });
        await says(options, "Added.");
        // Whatever opens the panel leaves this part of it.
        await press(panel, "Threads");
        const page = await browser.page("about:blank");
        let badge;
        const times = await sliceTimes(browser, page, async () => {
          await page.goto(site.origin);
          [badge] = await badges(panel, "hostile chat", ["Damaged"]);
          await until("the attempts of the page", () => page.evaluate(() => globalThis.attempts?.isDone));
        });
        checkSlices(name, "a page that changes without end", times);
        const attempts = await page.evaluate(() => globalThis.attempts);
        assert.deepEqual(attempts.reached, [], "the page reached something of the extension");
        // What the page can read of the layer is an empty element.
        assert.deepEqual(attempts.layers, ["<crosstalk-layer></crosstalk-layer>"]);
        const isUntouched = await panel.evaluate(() => document.querySelector("#tab-threads").getAttribute("aria-selected"));
        assert.equal(isUntouched, "true", "keys and clicks that the page made up did something");
        const texts = await panel.evaluate(async () => {
          const api = globalThis.browser ?? globalThis.chrome;
          const tab = (await api.tabs.query({})).find(({ title }) => title === "hostile chat");
          return api.tabs.sendMessage(tab.id, { type: "latest", count: 9 }, { frameId: 0 });
        });
        assert.deepEqual(texts.map((text) => text.includes("900")), [true], "only the message that a person can see is taken");
        // The verdict can be read in the panel, whatever the page shows.
        await page.bringToFront();
        await keys(page, "Alt+Shift+KeyY");
        await until("the verdict in the panel", () => panel.evaluate(() => document.querySelector("#about .verdict")?.textContent.startsWith("✗ Damaged")));
        assert.ok(badge.width > 20);
        const { maxMs, slices, over5 } = await stats(panel, "hostile chat");
        console.log(`${name}: on the page that changes without end, ${slices} slices of work, the longest ${maxMs.toFixed(1)} ms, ${over5} over 5 ms`);
        assert.deepEqual(site.requests.filter((request) => !/^GET \/(favicon\.ico)?$/.test(request)), [], "nothing was sent");
        await page.close();
      } finally {
        site.close();
      }
    });

    test("the last messages are found, however fast the page changes below them", async () => {
      const script = `const rows = [0, 1].map(() => Array.from({ length: 5000 }, () => document.createElement("i")));
        let count = 0;
        setInterval(() => document.querySelector("#below").replaceChildren(...rows[count++ % 2]), 1);`;
      const site = await Site.start({ "/": `<!doctype html><html lang="en"><title>busy chat</title><body><pre>${message("Above.")}</pre><p id="below"></p><script>${script}</script>` });
      try {
        await type(options, "#site", site.origin);
        await press(options, "Add site", { isReal: true });
        await says(options, "Added.");
        await browser.page(site.origin);
        await badges(panel, "busy chat", ["Unsigned"]);
        const found = await panel.evaluate(async () => {
          const api = globalThis.browser ?? globalThis.chrome;
          const { id } = (await api.tabs.query({})).find(({ title }) => title === "busy chat");
          const all = [];
          for (let round = 0; round < 5; round += 1) all.push((await api.tabs.sendMessage(id, { type: "latest", count: 5 }, { frameId: 0 })).length);
          return all;
        });
        assert.deepEqual(found, [1, 1, 1, 1, 1]);
      } finally {
        site.close();
      }
    });

    test("the toolbar button: once, always, panel, options", async () => {
      const site = await startChat("OTHER", { messages: [message("Here.")] });
      try {
        const isRead = async () => (await stats(panel, "OTHER chat").catch(() => null))?.badges.length === 1;
        // Under this name, the extension has no permission but that of the click.
        let page = await browser.page(site.origin.replace("127.0.0.1", "localhost"));
        let popup = await openPopup(browser, page);
        assert.equal(await popup.text("#site"), `Not in use on ${site.origin.replace("127.0.0.1", "localhost")}.`);
        await popup.press("#once");
        await until("badges on this page", isRead);
        assert.equal(await popup.text("#status"), "Messages on this page get badges now.");
        await page.reload();
        await page.bringToFront();
        popup = await openPopup(browser, page);
        assert.match(await popup.text("#site"), /^Not in use/);
        assert.equal(await isRead(), false, "once is once");
        await page.close();
        // The script is here already, because the browser knows permissions for hosts and not for ports.
        page = await browser.page(site.origin);
        popup = await openPopup(browser, page);
        await popup.press("#always");
        await until("the site in use", async () => (await popup.text("#site")) === `In use on ${site.origin}.`);
        await until("badges at once", isRead);
        await page.reload();
        await until("badges when it is loaded again", isRead);
        popup = await openPopup(browser, page);
        await popup.press("#panel");
        await until("the panel", async () => (await popup.sidePanels()).length === 1);
        await popup.closeSidePanel();
        await until("no panel", async () => (await popup.sidePanels()).length === 0);
        popup = await openPopup(browser, page);
        await popup.press("#options");
        await until("the options", () => options.evaluate(() => document.visibilityState === "visible"));
      } finally {
        site.close();
      }
    });

    test("texts that are made to be slow are read all the same", async () => {
      const site = await Site.start({ "/": slowPage(message("Sound.")) });
      try {
        await type(options, "#site", site.origin);
        await press(options, "Add site", { isReal: true });
        await says(options, "Added.");
        const page = await browser.page("about:blank");
        const times = await sliceTimes(browser, page, async () => {
          await page.goto(site.origin);
          await badges(panel, "slow chat", [...Array(6).fill("Damaged"), "Unsigned"]);
        });
        checkSlices(name, "a page of slow texts", times);
        const { maxMs, slices, over5 } = await stats(panel, "slow chat");
        console.log(`${name}: on the page of slow texts, ${slices} slices of work, the longest ${maxMs.toFixed(1)} ms, ${over5} over 5 ms`);
      } finally {
        site.close();
      }
    });

    test("slices of work stay short on a long chat", async () => {
      const page = await browser.page(gpt.origin);
      const many = isFull ? 40_000 : 10_000;
      const show = () => page.evaluate((text, many) => {
        const log = document.querySelector("#log");
        const part = document.createDocumentFragment();
        for (let count = 0; count < many; count += 1) {
          const block = document.createElement("pre");
          block.textContent = count % 2 === 0 ? `Some words, number ${count}` : text;
          part.append(block);
        }
        log.append(part);
      }, message("one of many"), many);
      const times = await sliceTimes(browser, page, async () => {
        await show();
        await until("all messages", async () => (await stats(panel, "CHATGPT chat"))?.found >= many / 2);
      });
      checkSlices(name, `a page of ${many} messages`, times);
      const { slices, maxMs, over5, found, sum } = await stats(panel, "CHATGPT chat");
      // How often the machine itself interrupts a loop that ends after 2.5 ms.
      const [longest, late] = await page.evaluate(() => {
        const took = Array.from({ length: 60 }, () => {
          const began = performance.now();
          while (performance.now() - began < 2.5);
          return performance.now() - began;
        });
        return [Math.max(...took), took.filter((ms) => ms > 5).length];
      });
      console.log(`${name}: of 60 empty loops of 2.5 ms, ${late} took over 5 ms, the longest ${longest.toFixed(1)} ms`);
      console.log(`${name}: ${found} of ${many} messages have envelopes; ${slices} slices of work of ${(sum / slices).toFixed(1)} ms on average, the longest ${maxMs.toFixed(1)} ms, ${over5} over 5 ms`);
      assert.ok(slices > 5, "the work was divided");
    });
  });
}
