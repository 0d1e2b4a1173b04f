// All tests of the extension, or those of the files that are named: `run.mjs chromium`. `cargo xtask extension-test` builds what
// they need.

import { fileURLToPath } from "node:url";
import { runFiles } from "../../test/files.mjs";

await runFiles(fileURLToPath(new URL(".", import.meta.url)), (line) => /^# (chromium|firefox|web-ext)/.test(line));
