// Times several subjects against each other: rounds are interleaved, and of each subject the best round counts, because other
// work on the machine only ever adds to a time.

/** Microseconds for one run of each subject, by name. A subject may be asynchronous. */
export async function measure(subjects, { rounds, roundMs }) {
  const entries = Object.entries(subjects);
  const counts = [];
  for (const [, run] of entries) counts.push(await runsWithin(run, roundMs));
  const best = Object.fromEntries(entries.map(([name]) => [name, Infinity]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, [name, run]] of entries.entries()) {
      best[name] = Math.min(best[name], (await time(run, counts[at])) / counts[at]);
    }
  }
  return best;
}

/** How many runs fill the time; the optimising compiler has seen them then. */
async function runsWithin(run, ms) {
  for (let count = 1; ; count *= 2) {
    if ((await time(run, count)) >= ms * 1000 || count > 1 << 24) return count;
  }
}

async function time(run, count) {
  const start = performance.now();
  const first = run();
  // Waiting costs time, so only a subject that has to be waited for is.
  if (first instanceof Promise) {
    await first;
    for (let at = 1; at < count; at += 1) await run();
  } else {
    for (let at = 1; at < count; at += 1) run();
  }
  return (performance.now() - start) * 1000;
}
