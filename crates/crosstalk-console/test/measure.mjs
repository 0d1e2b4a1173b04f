// What the size of an inbox and of a conversation costs: `node measure.mjs [MESSAGES] [TURNS]` with a relay of its own.

import { ANN, CONFIG, Relay, chromium, signIn, until } from "./world.mjs";

const [many, turns] = [Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 2_000)];
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

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function load(page, url) {
  const times = [];
  for (let i = 0; i < 9; i += 1) {
    await page.goto(url, { waitUntil: "load" });
    times.push(await page.evaluate(() => {
      const [entry] = performance.getEntriesByType("navigation");
      return entry.responseEnd - entry.requestStart;
    }));
  }
  return median(times);
}

const relay = await Relay.start({ config: `${CONFIG}\n[limits]\nrequests_per_minute = 0\n` });
const browser = await chromium();
try {
  const page = await signIn(browser, relay, "ann");
  await send(relay, 100, 0, ANN, id);
  const small = await load(page, `${relay.url}/inbox`);
  await send(relay, many - 100, 1000, ANN, id);
  await until("the index", async () => (await load(page, `${relay.url}/inbox`)) > 0);
  const large = await load(page, `${relay.url}/inbox`);
  console.log(`inbox of 100: ${small.toFixed(1)} ms, of ${many}: ${large.toFixed(1)} ms, ${(large / small).toFixed(2)} times`);
  await send(relay, turns, 10_000_000, ANN, () => "LONGTHREAD");
  const thread = await load(page, `${relay.url}/threads/LONGTHREAD`);
  const paint = await page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.getEntriesByType("paint").at(-1)?.startTime ?? 0;
  });
  const frames = await page.evaluate(async () => {
    const times = [];
    let last = performance.now();
    for (let y = 0; y < document.scrollingElement.scrollHeight; y += 400) {
      scrollTo(0, y);
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times;
  });
  console.log(`thread of ${turns}: ${thread.toFixed(1)} ms, first paint ${paint.toFixed(0)} ms, longest frame while scrolling ${Math.max(...frames).toFixed(0)} ms of ${frames.length}`);
} finally {
  await browser.close();
  await relay.stop();
}
