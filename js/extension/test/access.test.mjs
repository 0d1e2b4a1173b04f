// Every page of the extension, checked with axe-core, in light and dark; and what a screen reader gets of badge and popover.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startChat } from "./chats.mjs";
import { badges, clickAt, press, setUp } from "./driver.mjs";
import { Browser, axeSource, crosstalk, picture } from "./tools.mjs";

const { build, generateKey, sign } = crosstalk;

describe("access", () => {
  let browser, site, options, panel;
  const key = generateKey();
  const message = sign(build({ sender: "CLAUDE", receiver: "ANN", user: "claude", context: "api design", intent: "RESPOND", parent: "M1", body: "Keep v2." }), key.privateKeyPem, { keyId: "claude@acme.example", withKey: true });

  before(async () => {
    site = await startChat("CLAUDE", { messages: [message, message.replace("Keep", "Drop")] });
    browser = await Browser.start("chromium");
    options = await setUp(browser, { CLAUDE: site });
    panel = await browser.own("panel.html");
  });
  after(async () => {
    await browser?.close();
    site?.close();
  });

  async function audit(page, where) {
    // The code of the check runs in the world of the driver, which the policy of the page does not bind.
    await page.evaluate(axeSource());
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => `${where}: ${id}: ${nodes.map(({ html }) => html).join(" ").slice(0, 300)}`), []);
  }

  for (const scheme of ["light", "dark"]) {
    test(`pages of the extension in ${scheme}`, async () => {
      const popup = await browser.own("popup.html");
      for (const page of [options, panel, popup]) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await audit(options, "options");
      await picture(options, `options-${scheme}`);
      await audit(popup, "popup");
      await popup.close();
      for (const tab of ["Write", "Carry", "Threads", "Relay"]) {
        await press(panel, tab);
        await audit(panel, `panel ${tab}`);
        await picture(panel, `panel-${tab.toLowerCase()}-${scheme}`);
      }
      const page = await browser.page(site.origin);
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const [badge] = await badges(panel, "CLAUDE chat", ["First contact", "Damaged"]);
      await picture(page, `badges-${scheme}`);
      await clickAt(page, badge);
      const names = [];
      const walk = (node) => {
        names.push(`${node.role}: ${node.name}`);
        for (const child of node.children ?? []) walk(child);
      };
      walk(await page.accessibility.snapshot({ interestingOnly: true }));
      assert.ok(names.some((name) => name.startsWith("button: Message from CLAUDE to ANN: First contact.")), names.join("\n"));
      assert.ok(names.includes("dialog: Crosstalk: CLAUDE → ANN"), names.join("\n"));
      for (const action of ["Copy", "Reply", "Save to file", "Send to relay", "Show in Crosstalk", "Close"]) assert.ok(names.includes(`button: ${action}`), action);
      await picture(page, `popover-${scheme}`, { x: 0, y: 20, width: 900, height: 500 });
      await page.keyboard.press("Escape");
      await page.close();
    });
  }
});
