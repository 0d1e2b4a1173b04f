// The toolbar button and its popup, as the browser itself shows them.

import { LIMIT_MS, until } from "../../test/wait.mjs";

/** Opens the popup with a click on the toolbar button, for the page in front. */
export async function openPopup(browser, page) {
  await page.bringToFront();
  const popup = browser.name === "chromium" ? new ChromiumPopup(browser) : new FirefoxPopup(browser);
  await popup.open(page);
  await until("the popup", async () => (await popup.text("#site")) !== "");
  return popup;
}

class ChromiumPopup {
  constructor(browser) {
    this.browser = browser.browser;
  }

  async open(page) {
    const [extension] = (await this.browser.extensions()).values();
    await extension.triggerAction(page);
    const target = await this.browser.waitForTarget((each) => each.url().endsWith("/pages/popup.html"), { timeout: LIMIT_MS });
    this.page = await target.asPage();
  }

  text(selector) {
    return this.page.evaluate((at) => document.querySelector(at)?.textContent ?? "", selector);
  }

  async press(selector) {
    await this.page.click(selector);
  }

  /** The side panels that the browser shows, beside panels in tabs. */
  async sidePanels() {
    const targets = this.browser.targets().filter((each) => each.url().endsWith("/pages/panel.html"));
    const pages = await Promise.all(targets.map((each) => each.asPage()));
    const found = [];
    for (const page of pages) if (await page.evaluate(async () => (await chrome.tabs.getCurrent()) === undefined)) found.push(page);
    return found;
  }

  async closeSidePanel() {
    for (const page of await this.sidePanels()) await page.evaluate(() => window.close());
  }
}

const WIDGET = "crosstalk_ai-crosstalk_example";

/** In Firefox, the driver sees no popup: code in the window of the browser clicks the button, and gives keys to what has the focus. */
class FirefoxPopup {
  constructor(browser) {
    this.connection = browser.browser.connection;
  }

  async open() {
    const { result } = await this.connection.send("browsingContext.getTree", { "moz:scope": "chrome" });
    this.window = result.contexts[0].context;
    await this.run(`CustomizableUI.addWidgetToArea("${WIDGET}-browser-action", "nav-bar")`);
    // A click on the button would only close a popup that is still open.
    await this.run(`document.querySelector(".webextension-popup-browser")?.closest("panel").hidePopup()`);
    await until("no popup", () => this.run(`document.querySelector(".webextension-popup-browser") === null`));
    await this.run(`document.getElementById("${WIDGET}-BAP").click()`);
    await until("the popup of the button", () => this.run(`document.querySelector(".webextension-popup-browser")?.currentURI?.spec.endsWith("/pages/popup.html")`));
  }

  /** Runs code in the window of the browser. */
  async run(code) {
    const { result } = await this.connection.send("script.evaluate", { expression: code, target: { context: this.window }, awaitPromise: true });
    if (result.type === "exception") throw new Error(result.exceptionDetails.text);
    return result.result.value;
  }

  /** Runs code in the popup. */
  inside(code) {
    const script = `data:,${encodeURIComponent(`sendAsyncMessage("answer", (() => { const { document } = content; ${code} })())`)}`;
    return this.run(`new Promise((resolve) => {
      const { messageManager } = document.querySelector(".webextension-popup-browser");
      messageManager.addMessageListener("answer", function hear({ data }) {
        messageManager.removeMessageListener("answer", hear);
        resolve(data);
      });
      messageManager.loadFrameScript(${JSON.stringify(script)}, false);
    })`);
  }

  text(selector) {
    return this.inside(`return document.querySelector(${JSON.stringify(selector)})?.textContent ?? "";`);
  }

  async press(selector) {
    await this.run(`document.querySelector(".webextension-popup-browser").focus()`);
    await this.inside(`document.querySelector(${JSON.stringify(selector)}).focus();`);
    await this.run(`{
      const processor = Cc["@mozilla.org/text-input-processor;1"].createInstance(Ci.nsITextInputProcessor);
      processor.beginInputTransactionForTests(window);
      const enter = new KeyboardEvent("", { key: "Enter", code: "Enter", keyCode: 13 });
      processor.keydown(enter);
      processor.keyup(enter);
    }`);
  }

  async sidePanels() {
    return (await this.run(`SidebarController.isOpen && SidebarController.currentID === "${WIDGET}-sidebar-action"`)) ? [this] : [];
  }

  async closeSidePanel() {
    await this.run("SidebarController.hide()");
  }
}
