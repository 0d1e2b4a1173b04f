// Every case of `conformance/` up to level L2 through the package, in any runtime. Operations of the package go through its public
// functions. The suite, which is `conformance/wasm`, reads and judges the cases, and answers what the package does not offer.
//
// `node conformance.mjs [ID]`, `deno run -A`, `bun`; a browser imports `check`.

const MAX_LEVEL = 2;

/** The package behind the interface of the suite. `damages` makes its answers wrong, which the suite has to notice. */
class TestedPackage {
  publicAnswers = 0;
  testOnlyAnswers = 0;
  /** The operations that a public function answered in the last case. */
  operations = new Set();
  damages = false;
  #crosstalk;

  constructor(crosstalk) {
    this.#crosstalk = crosstalk;
  }

  /** The answer to a question, both as JSON; nothing if the package does not offer the operation. */
  answer(json) {
    const question = JSON.parse(json);
    // A text of JavaScript can't hold bytes that are not UTF-8, which are in `input_base64`.
    const result = question.input_base64 === undefined ? this.#publicAnswer(question.input ?? "", question) : undefined;
    if (result === undefined) {
      this.testOnlyAnswers += 1;
      return undefined;
    }
    this.publicAnswers += 1;
    this.operations.add(question.op);
    return this.damages ? "{}" : JSON.stringify(result);
  }

  /** The answer of a public function; nothing if a question goes beyond it. */
  #publicAnswer(text, q) {
    const { CrosstalkError, ...crosstalk } = this.#crosstalk;
    /** The result of a function, or its rejection. */
    const attempt = (make) => {
      try {
        return make();
      } catch (error) {
        if (!(error instanceof CrosstalkError)) throw error;
        const { rule, code, line } = error;
        return { errors: [{ rule, code, severity: "error", line }] };
      }
    };
    const written = (make) => attempt(() => ({ output: make() }));
    const canonical = (envelope) => new TextDecoder().decode(crosstalk.canonical(envelope));
    switch (q.op) {
      case "parse":
        // That a request has exactly one envelope is a rule of relays.
        return q.binding ? undefined : crosstalk.parse(text, { reading: q.reading === "strict" ? "strict" : "paste" });
      case "build": {
        const message = JSON.parse(text);
        // `build` generates ids that are missing.
        return message?.thread && message.message ? written(() => crosstalk.build(message)) : undefined;
      }
      case "ids":
        return q.form === "ulid" ? { ids: Array.from({ length: q.count }, () => crosstalk.newId()) } : undefined;
      case "canonical":
        return attempt(() => ({ output: canonical(text), digest: crosstalk.digest(text) }));
      case "fmt":
        return q.fence ? undefined : written(() => crosstalk.format(text));
      case "address": {
        if (q.schemes.length > 0) return undefined;
        const report = crosstalk.parseAddress(text);
        return report.valid ? { ...report, text: report.address } : { errors: report.diagnostics };
      }
      case "migrate":
        return written(() => crosstalk.migrate(text));
      case "reply":
        return q.reply === "respond" ? written(() => crosstalk.reply(text, "Done.", { user: "brother", intent: "RESPOND" })) : undefined;
      case "redact": {
        if (q.names.length > 0 || q.only.length > 0 || q.drop_signature) return undefined;
        return attempt(() => {
          const redaction = crosstalk.redact(text);
          return { output: redaction.text, found: redaction.found.map(({ kind }) => kind) };
        });
      }
      case "sign":
        return attempt(() => {
          const options = { keyId: q.pkid, at: q.at, withKey: q.with_key, replace: q.replace };
          const output = crosstalk.sign(text, pemOf(q.seed, q.algorithm), options);
          return { output, signed_bytes: `ai-crosstalk-sig-v1.1\n${q.algorithm}\n${q.pkid}\n${canonical(output)}` };
        });
      case "verify": {
        if (q.trust || q.key || q.dns || q.dnssec) return undefined;
        const { envelopes } = crosstalk.parse(text);
        // `verify` is about one message.
        if (envelopes.length > 1) return undefined;
        const verdict = crosstalk.verify(text, { at: q.at });
        return envelopes.length === 1 ? { verdicts: [verdict] } : { errors: verdict.repairs };
      }
      default:
        return undefined;
    }
  }
}

/** The private key in PKCS#8 (RFC 8410, RFC 5915). */
function pemOf(seed, algorithm) {
  const head = {
    ed25519: "302e020100300506032b657004220420",
    secp256r1: "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420",
  };
  const bytes = (head[algorithm] + seed).match(/../g).map((pair) => String.fromCharCode(parseInt(pair, 16)));
  return ["-----BEGIN PRIVATE KEY-----", ...btoa(bytes.join("")).match(/.{1,64}/g), "-----END PRIVATE KEY-----", ""].join("\n");
}

/**
 * Runs the cases, and for each operation of the package one case more with wrong answers, which must be noticed. `lines` tells
 * about it, and ends with "N passed, N failed".
 */
export async function check(crosstalk, suite, { levels, files }, { only = "" } = {}) {
  const tested = new TestedPackage(crosstalk);
  const passed = Array(MAX_LEVEL + 1).fill(0);
  const complaints = [];
  const answered = new Map();
  for (const [id, text] of Object.entries(files)) {
    const file = new TextEncoder().encode(text);
    const { level, rule } = JSON.parse(suite.case_head(levels, id, file));
    if (level > MAX_LEVEL || !id.startsWith(only)) continue;
    tested.operations.clear();
    const complaint = suite.judge_case(id, file, tested);
    for (const op of tested.operations) if (!answered.has(op)) answered.set(op, [id, file]);
    if (complaint === undefined) passed[level] += 1;
    else complaints.push(`${id} (${rule}): ${complaint}`.slice(0, 2000));
  }
  const sum = passed.reduce((one, other) => one + other, 0);
  const lines = passed.map((count, level) => `L${level}: ${count} cases`);
  lines.push(`${tested.publicAnswers} answers of public functions, ${tested.testOnlyAnswers} of the test build`);
  if (only === "") {
    // The suite holds the same files; it must have the same number.
    const held = [...suite.case_counts()].slice(0, MAX_LEVEL + 1);
    if (complaints.length === 0 && `${passed}` !== `${held}`) complaints.push(`the suite has ${held} cases of these levels, this run ${passed}`);
    tested.damages = true;
    for (const [op, [id, file]] of answered) {
      if (suite.judge_case(id, file, tested) === undefined) complaints.push(`a wrong answer to \`${op}\` passes ${id}`);
    }
    lines.push(`wrong answers are noticed: ${[...answered.keys()].sort().join(" ")}`);
  }
  lines.push(...complaints, `${sum} passed, ${complaints.length} failed`);
  return { lines, isGood: complaints.length === 0 && sum > 0 };
}

/** The files of `conformance/`, for `check`. */
export async function readCases() {
  const [{ readFileSync, readdirSync }, { fileURLToPath }] = await Promise.all([import("node:fs"), import("node:url")]);
  const folder = fileURLToPath(new URL("../../conformance/", import.meta.url));
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const read = (name) => decoder.decode(readFileSync(folder + name));
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(folder + name).map((file) => `${name}/${file}`));
  const cases = names.filter((name) => name.endsWith(".case")).sort();
  return { levels: read("levels.toml"), files: Object.fromEntries(cases.map((name) => [name.slice(0, -5), read(name)])) };
}

/** The suite, in a runtime that reads files. */
export async function loadSuite() {
  const [{ readFileSync }, { pathToFileURL }] = await Promise.all([import("node:fs"), import("node:url")]);
  const folder = process.env.CROSSTALK_SUITE;
  const base = folder === undefined ? new URL("../../target/js/suite/", import.meta.url) : pathToFileURL(`${folder}/`);
  const suite = await import(new URL("suite.js", base));
  suite.initSync({ module: readFileSync(new URL("suite_bg.wasm", base)) });
  return suite;
}

if (globalThis.process?.argv[1]?.endsWith("conformance.mjs")) {
  const crosstalk = await import("../dist/index.js");
  const { lines, isGood } = await check(crosstalk, await loadSuite(), await readCases(), { only: process.argv[2] });
  console.log(lines.join("\n"));
  if (!isGood) process.exitCode = 1;
}
