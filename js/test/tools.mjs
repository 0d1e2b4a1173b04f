// Programs from npm and Debian that tests use, and the package as npm installs it.

import { spawn, spawnSync } from "node:child_process";
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

export const DIST = path("../dist");
export const TESTS = path(".");
export const SUITE = process.env.CROSSTALK_SUITE ?? path("../../target/js/suite");
const NPM = join(process.env.CROSSTALK_NPM ?? path("../../target/tools/npm"), "node_modules");

/** The commands that run a file. */
export const RUNTIMES = {
  Node: [process.execPath],
  Deno: [join(NPM, ".bin/deno"), "run", "--allow-all"],
  Bun: [join(NPM, ".bin/bun")],
};

export const TSC = [process.execPath, join(NPM, "typescript/bin/tsc")];

/** Options of the compiler: everything that it can complain about, in code for browsers and runtimes. */
export const STRICT = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom"];

/** A folder that ends with the test. */
export function scratchFolder(test) {
  const folder = mkdtempSync(join(tmpdir(), "crosstalk-js-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The standard output of a command that has to succeed. */
export function output([program, ...args], options = {}) {
  const done = spawnSync(program, args, { encoding: "utf8", ...options });
  if (done.status === 0) return done.stdout;
  throw new Error(`${program} ${args.join(" ")} ended with ${done.status ?? done.error}:\n${done.stdout}${done.stderr}`);
}

/** The output of a command that runs beside this process, and its exit code. */
export async function outcome([program, ...args], options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (part) => (text += part));
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  return { text, code };
}

/** Installs the package into a folder as a person does. */
export function installPackage(folder) {
  output(["npm", "install", "--offline", "--no-audit", "--no-fund", DIST], { cwd: folder });
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/**
 * Opens a page of real Chromium, and calls a function with it. `pages` are texts by their path; `folders` are folders of files by
 * the first part of their path.
 */
export async function withPage({ pages, folders }, use) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (Object.hasOwn(pages, pathname)) {
      response.setHeader("content-type", pathname.endsWith(".json") ? "application/json" : "text/html; charset=utf-8");
      response.end(pages[pathname]);
      return;
    }
    const [, first, ...rest] = pathname.split("/");
    const file = Object.hasOwn(folders, first) ? join(folders[first], normalize(`/${rest.join("/")}`)) : undefined;
    if (file === undefined || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { chromium } = await import(pathToFileURL(join(NPM, "playwright-core/index.mjs")));
  const flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
  const browser = await chromium.launch({ executablePath: process.env.CROSSTALK_CHROMIUM ?? "/usr/bin/chromium", args: flags.split(" ") });
  try {
    const page = await browser.newPage();
    return await use(page, `http://127.0.0.1:${server.address().port}`);
  } finally {
    await browser.close();
    server.close();
  }
}
