// A real relay for tests: `crosstalk serve` as a process of its own, with its data in a scratch folder.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { within } from "./wait.mjs";

/** The program: that of the environment, else the one that `cargo build` made. */
export const PROGRAM = process.env.CROSSTALK_BINARY ?? fileURLToPath(new URL("../../target/debug/crosstalk", import.meta.url));

/** The files in a README, by their names. */
export function filesIn(readme) {
  return Object.fromEntries([...readme.matchAll(/^```\S+ file=(\S+)\n([^]*?)^```$/gm)].map(([, name, text]) => [name, text]));
}

/** The configuration of the README: an agent that answers with what it got. */
export const ECHO = filesIn(readFileSync(new URL("../README.md", import.meta.url), "utf8"))["relay.toml"];

/** A condition that does not come about within this time never does. */
const LIMIT_MS = 120_000;

/** Polls until a condition holds, and returns its value. */
export async function waitFor(what, condition) {
  const until = Date.now() + LIMIT_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > until) throw new Error(`waited in vain for ${typeof what === "function" ? what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class RelayServer {
  #folder = mkdtempSync(join(tmpdir(), "crosstalk-js-"));
  #port;
  #process;

  /** A running relay with this configuration, which ends with the test. */
  static async start(test, config = "") {
    const server = new RelayServer();
    test.after(() => server.remove());
    writeFileSync(join(server.#folder, "relay.toml"), config);
    server.#port = await freePort();
    await server.start();
    return server;
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  get #log() {
    return join(this.#folder, "log");
  }

  /** Starts it on its port, and waits until it accepts messages. */
  async start() {
    const log = openSync(this.#log, "a");
    const serve = ["serve", "--config", join(this.#folder, "relay.toml"), "--listen", `127.0.0.1:${this.#port}`];
    const child = spawn(PROGRAM, [...serve, ...this.#data], {
      env: scratchEnvironment(this.#folder),
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.#process = child;
    await waitFor(
      () => `the relay to be ready:\n${readFileSync(this.#log, "utf8").slice(-4000)}`,
      async () => {
        if (child.exitCode !== null) throw new Error(`the relay ended:\n${readFileSync(this.#log, "utf8").slice(-4000)}`);
        return fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(10_000) }).then((response) => response.ok, () => false);
      },
    );
  }

  /** Ends it: `SIGTERM` lets it finish, `SIGKILL` does not. */
  async stop(signal = "SIGTERM") {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await within("the end of the relay", ended, LIMIT_MS).finally(() => child.kill("SIGKILL"));
  }

  async restart(signal) {
    await this.stop(signal);
    await this.start();
  }

  /** The secret of a new token. */
  createToken(name, role, ...addresses) {
    return this.tokens("create", name, "--role", role, ...addresses.flatMap((address) => ["--for", address]));
  }

  /** The output of a command about tokens. */
  tokens(...words) {
    return execFileSync(PROGRAM, ["token", ...words, ...this.#data], { env: scratchEnvironment(this.#folder), encoding: "utf8", stdio: "pipe", timeout: LIMIT_MS }).trim();
  }

  async remove() {
    await this.stop("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #data() {
    return ["--data", join(this.#folder, "data")];
  }
}

/** An environment in which no variable and no file of the person who runs the tests counts. */
export function scratchEnvironment(folder) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(CROSSTALK_|XDG_)/.test(name));
  return { ...Object.fromEntries(kept), HOME: folder };
}

/**
 * A port on which nobody listens, below those that systems give to outgoing connections: otherwise a client that tries to reach
 * a stopped relay could be given the port of the relay.
 */
export async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const isFree = await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => resolve(false));
      socket.once("error", () => resolve(true));
      socket.once("close", () => socket.destroy());
    });
    if (isFree) return port;
  }
}
