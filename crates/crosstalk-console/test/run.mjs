// All tests of the console, or those of the files that are named: `run.mjs office`. `cargo xtask console-test` builds what they need.

import { fileURLToPath } from "node:url";
import { runFiles } from "../../../js/test/files.mjs";

await runFiles(fileURLToPath(new URL(".", import.meta.url)), (line) => line.startsWith("# measured"));
