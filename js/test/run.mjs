// All tests of the package: the conformance cases in Node, Deno, Bun and Chromium, then `*.test.mjs`. The last line is
// "N passed, N failed". `cargo xtask js-test` builds what it needs.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readCases } from "./conformance.mjs";
import { DIST, RUNTIMES, SUITE, TESTS, outcome, withPage } from "./tools.mjs";

const PAGE = `<!doctype html><meta charset="utf-8"><script type="module">
  import load, * as suite from "/suite/suite.js";
  import * as crosstalk from "/ai-crosstalk/index.js";
  import { check } from "/test/conformance.mjs";
  try {
    const [cases] = await Promise.all([fetch("/cases.json").then((answer) => answer.json()), load(), crosstalk.ready()]);
    window.result = await check(crosstalk, suite, cases);
  } catch (error) {
    window.result = { lines: [String(error?.stack ?? error)] };
  }
</script>`;

/** The conformance cases in a browser, from a page without a bundler. */
async function inChromium() {
  const pages = { "/": PAGE, "/cases.json": JSON.stringify(await readCases()) };
  const folders = { suite: SUITE, test: TESTS, "ai-crosstalk": DIST };
  return withPage({ pages, folders }, async (page, url) => {
    await page.goto(url);
    await page.waitForFunction(() => window.result !== undefined, undefined, { timeout: 300_000 });
    const { lines, isGood } = await page.evaluate(() => window.result);
    return { text: `${lines.join("\n")}\n`, code: isGood ? 0 : 1 };
  });
}

let [passed, failed] = [0, 0];

/** Runs a part, shows its output, and adds its numbers; a part without numbers, or with a bad ending, has failed. */
async function part(name, run, [passes, fails]) {
  const began = Date.now();
  const { text, code } = await run().catch((error) => ({ text: `${error.stack}\n`, code: 1 }));
  const counts = [passes, fails].map((pattern) => pattern.exec(text)?.[1]);
  console.log(`== ${name}, ${((Date.now() - began) / 1000).toFixed(1)} s\n${text}`);
  if (counts.includes(undefined) || (code === 0) !== (counts[1] === "0")) {
    console.log(`${name} ended without a result, with the exit code ${code}`);
    failed += 1;
    return;
  }
  passed += Number(counts[0]);
  failed += Number(counts[1]);
}

const CASES = [/^(\d+) passed, \d+ failed$/m, /^\d+ passed, (\d+) failed$/m];
for (const [name, command] of Object.entries(RUNTIMES)) {
  await part(`conformance in ${name}`, () => outcome([...command, join(TESTS, "conformance.mjs")]), CASES);
}
await part("conformance in Chromium", inChromium, CASES);
const files = readdirSync(TESTS).filter((name) => name.endsWith(".test.mjs")).sort();
const command = [process.execPath, "--test", "--test-reporter=tap", ...files.map((name) => join(TESTS, name))];
await part("tests", () => outcome(command), [/^# pass (\d+)$/m, /^# fail (\d+)$/m]);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
