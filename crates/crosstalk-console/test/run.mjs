// All tests of the console. The last line is "N passed, N failed". `cargo xtask console-test` builds what it needs.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
let [passed, failed] = [0, 0];
for (const name of readdirSync(folder).filter((file) => file.endsWith(".test.mjs")).sort()) {
  const began = Date.now();
  const { stdout, status } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", `${folder}${name}`], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 64 << 20 });
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(stdout)?.[1] ?? 0);
  console.log(`== ${name}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  for (const line of stdout.split("\n")) if (line.startsWith("# measured")) console.log(line.slice(2));
  if (status !== 0) console.log(stdout);
  passed += count("pass");
  failed += count("fail") + count("cancelled") + (status !== 0 && count("fail") + count("cancelled") === 0 ? 1 : 0);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
