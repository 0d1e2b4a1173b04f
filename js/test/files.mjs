// Runs files of tests one after the other: two browsers at once are too much for a small machine. Each line comes when its test has
// ended, so that the last one shows where a run hangs; and a file that does not end is ended.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The longest that a file may take. The slowest one takes three minutes on two cores that do something else as well. */
const FILE_LIMIT_MS = Number(process.env.CROSSTALK_FILE_LIMIT ?? 1200) * 1000;

/** Runs a file. `isNote` says which lines of its output are shown although nothing failed. */
async function runFile(path, isNote) {
  const child = spawn(process.execPath, ["--test", "--test-reporter=tap", path], { stdio: ["ignore", "pipe", "inherit"], detached: true });
  const kill = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  let isLate = false;
  // The tests close their browsers when they are told to end.
  const timers = [
    setTimeout(() => {
      isLate = true;
      console.log(`no end after ${FILE_LIMIT_MS / 1000} s: the test after the last line above hangs`);
      kill("SIGTERM");
    }, FILE_LIMIT_MS),
    setTimeout(() => kill("SIGKILL"), FILE_LIMIT_MS + 10_000),
  ];
  const output = [];
  for await (const line of createInterface({ input: child.stdout })) {
    output.push(line);
    if (isNote(line)) console.log(line.slice(2));
    else if (/^\s*(not )?ok \d+ - /.test(line)) console.log(line.replace(/^\s*(not ok|ok) \d+ - /, "  $1  "));
  }
  const code = child.exitCode ?? (await new Promise((resolve) => child.once("exit", resolve)));
  timers.forEach(clearTimeout);
  const text = output.join("\n");
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const failed = count("fail") + count("cancelled");
  const isGood = code === 0 && !isLate;
  if (!isGood) console.log(text);
  return { passed: count("pass"), failed: failed + (isGood || failed > 0 ? 0 : 1) };
}

/** Runs every `*.test.mjs` of a folder, or those whose name has a word of the command line; the last line is "N passed, N failed". */
export async function runFiles(folder, isNote) {
  const wanted = process.argv.slice(2);
  const names = readdirSync(folder).filter((name) => name.endsWith(".test.mjs") && (wanted.length === 0 || wanted.some((word) => name.includes(word))));
  let [passed, failed] = [0, 0];
  for (const name of names.sort()) {
    const began = Date.now();
    console.log(`== ${name}`);
    const result = await runFile(join(folder, name), isNote);
    console.log(`== ${name}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
    passed += result.passed;
    failed += result.failed;
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
