// What the size of an inbox and of a conversation costs in a browser: `cargo xtask bench console`, or `node measure.mjs [--quick]`
// with a program of your own in `CROSSTALK_BINARY`. Goals are printed with ✓ or ✗; nothing fails because of a time.

import { ANN, CONFIG, Relay, chromium, closeBrowser, signIn, until } from "./world.mjs";

const isQuick = process.argv.includes("--quick");
const [few, many, turns, rounds] = isQuick ? [100, 2_000, 200, 5] : [100, 100_000, 2_000, 21];
const THREAD = "LONGTHREAD";
const id = (number) => `01J9J3${String(number).padStart(20, "0")}`;
const envelope = (number, to, thread) =>
  `[[claude://code/main→${to} v1]]\nuser: claude\nthread: ${thread}\nmessage: ${id(number)}\ncontext: finding ${number}\nintent: BROADCAST\nbody: |\n  The relay says what happened, and not what the person can do about it. This is message ${number}.\nsig: none\n[[END]]\n`;

async function send(relay, count, first, to, threadOf) {
  for (let at = 0; at < count; at += 500) {
    const batch = Array.from({ length: Math.min(500, count - at) }, (_, i) => envelope(first + at + i, to, threadOf(first + at + i)));
    const headers = { authorization: `Bearer ${relay.tokens.claude}`, "content-type": "application/vnd.crosstalk.batch", accept: "application/vnd.crosstalk.batch" };
    const answer = await fetch(`${relay.url}/crosstalk/receive`, { method: "POST", headers, body: batch.join("\n") });
    if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 500)}`);
    await answer.arrayBuffer();
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const goal = (isMet) => (isMet ? "✓" : "✗");

/** Medians over some loads of a page: until the relay has answered, until something is painted, and what is transferred. */
async function load(page, url) {
  const all = [];
  for (let round = 0; round < rounds; round += 1) {
    await page.goto(url, { waitUntil: "load" });
    all.push(await page.evaluate(async () => {
      const paint = await new Promise((resolve) => {
        new PerformanceObserver((list) => {
          const found = list.getEntriesByName("first-contentful-paint")[0];
          if (found) resolve(found.startTime);
        }).observe({ type: "paint", buffered: true });
      });
      const [entry] = performance.getEntriesByType("navigation");
      return { answer: entry.responseEnd - entry.requestStart, paint, bytes: entry.transferSize };
    }));
  }
  return Object.fromEntries(["answer", "paint", "bytes"].map((name) => [name, median(all.map((one) => one[name]))]));
}

const relay = await Relay.start({ config: `${CONFIG}\n[limits]\nrequests_per_minute = 0\n` });
const browser = await chromium();
try {
  const page = await signIn(browser, relay, "ann");
  const inbox = `${relay.url}/inbox`;
  await send(relay, few, 0, ANN, id);
  await until("the small inbox", async () => (await page.goto(inbox), page.$("[data-rows] > li:nth-child(50)")));
  const small = await load(page, inbox);
  await send(relay, many - few, 1_000, ANN, id);
  const last = id(1_000 + many - few - 1);
  await until("the index", () => relay.call("ann", "GET", `/crosstalk/messages/${last}`), 600_000);
  const large = await load(page, inbox);
  const ratio = large.answer / small.answer;
  console.log(`inbox of ${few}: ${small.answer.toFixed(1)} ms, of ${many}: ${large.answer.toFixed(1)} ms, ${ratio.toFixed(2)} × ${goal(ratio <= 3)} (at most 3 ×)`);
  console.log(`its first paint: ${small.paint.toFixed(0)} ms and ${large.paint.toFixed(0)} ms; ${(large.bytes / 1000).toFixed(1)} KB ${goal(large.bytes <= 150_000)} (at most 150 KB)`);
  await send(relay, turns, 10_000_000, ANN, () => THREAD);
  await until("the conversation", () => relay.call("ann", "GET", `/crosstalk/messages/${id(10_000_000 + turns - 1)}`), 600_000);
  const thread = await load(page, `${relay.url}/threads/${THREAD}`);
  console.log(`conversation of ${turns}: ${thread.answer.toFixed(1)} ms, first paint ${thread.paint.toFixed(0)} ms; ${(thread.bytes / 1000).toFixed(1)} KB ${goal(thread.bytes <= 150_000)}`);
  const frames = await page.evaluate(async () => {
    const times = [];
    await new Promise(requestAnimationFrame);
    let last = performance.now();
    for (let y = 0; y < document.scrollingElement.scrollHeight; y += 200) {
      scrollTo(0, y);
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times;
  });
  console.log(`scrolling through it: ${frames.length} frames, ${median(frames).toFixed(1)} ms in the middle, the longest ${Math.max(...frames).toFixed(1)} ms`);
} finally {
  await closeBrowser(browser);
  await relay.stop();
}
