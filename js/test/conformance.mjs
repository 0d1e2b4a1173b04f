// Every case of `conformance/` up to level L2 through the package, in any runtime. Operations of the package go through its public
// functions; the others, which it does not offer, through the function `answer` of `conformance/wasm`.
//
// `node conformance.mjs [ID] [--break]`, `deno run -A`, `bun`; a browser imports `check`.

import { BadCase, CaseFile, Mismatch, Subset, bytesOf, equal, halves, isSame, joined, levelOf, textOf, words } from "./case-file.mjs";

const MAX_LEVEL = 2;
const NOW = "2025-10-10T12:00:00Z";

/** The package behind the interface of the suite. */
class TestedPackage {
  publicAnswers = 0;
  testOnlyAnswers = 0;
  /** Damages the next answer, which a runner has to notice. */
  breakNext = false;
  #crosstalk;
  #suite;

  constructor(crosstalk, suite) {
    this.#crosstalk = crosstalk;
    this.#suite = suite;
  }

  ask(op, parameters) {
    // A text of JavaScript can't hold bytes that are not UTF-8.
    const text = parameters.input === undefined ? "" : textOf(parameters.input);
    let result = text === undefined ? undefined : this.#publicAnswer(op, text, parameters);
    if (result === undefined) {
      result = this.#testOnlyAnswer(op, parameters);
      this.testOnlyAnswers += 1;
    } else {
      this.publicAnswers += 1;
    }
    if (!this.breakNext) return result;
    this.breakNext = false;
    return damaged(result);
  }

  digest(bytes) {
    return this.#crosstalk.digest(textOf(bytes));
  }

  tomlData(text) {
    return JSON.parse(this.#suite.toml_to_json(text));
  }

  /** The answer of a public function; nothing if a question goes beyond it. */
  #publicAnswer(op, text, q) {
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
    switch (op) {
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
        return written(() => crosstalk.canonical(text));
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
          const form = textOf(crosstalk.canonical(output));
          return { output, signed_bytes: `ai-crosstalk-sig-v1.1\n${q.algorithm}\n${q.pkid}\n${form}` };
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

  #testOnlyAnswer(op, parameters) {
    const question = { id: 0, op };
    for (const [key, value] of Object.entries(parameters)) {
      if (!(value instanceof Uint8Array)) question[key] = value;
      else if (textOf(value) === undefined) question[`${key}_base64`] = base64Of(value);
      else question[key] = textOf(value);
    }
    const answer = JSON.parse(this.#suite.answer(JSON.stringify(question)));
    if (answer.result === undefined) throw new Mismatch("a result", answer);
    return answer.result;
  }
}

/** A wrong answer that has the form of a right one, as far as that goes. */
function damaged(result) {
  if (result.output !== undefined) {
    const output = typeof result.output === "string" ? `${result.output} ` : joined([result.output, bytesOf(" ")]);
    return { ...result, output };
  }
  return result.errors !== undefined && result.envelopes === undefined ? {} : { errors: [], envelopes: [] };
}

function base64Of(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The private key in PKCS#8 (RFC 8410, RFC 5915). */
function pemOf(seed, algorithm) {
  const head = {
    ed25519: "302e020100300506032b657004220420",
    secp256r1: "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420",
  };
  const bytes = (head[algorithm] + seed).match(/../g).map((pair) => parseInt(pair, 16));
  return ["-----BEGIN PRIVATE KEY-----", ...base64Of(bytes).match(/.{1,64}/g), "-----END PRIVATE KEY-----", ""].join("\n");
}

/** Every diagnostic of a report, of accepted envelopes and others. */
function findingsOf({ envelopes, errors }) {
  return [...envelopes.flatMap(({ diagnostics }) => diagnostics), ...errors];
}

function requireNoError(report) {
  const errors = findingsOf(report).filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Mismatch("no error", errors);
}

/** Conditions that hold for every verdict. */
function requireWellFormed(verdict) {
  equal("crosstalk.verify/1", verdict.schema);
  equal(["verified", "first-contact", "unbound"].includes(verdict.verdict), verdict.envelope !== null);
  if (!verdict.sentence || typeof verdict.next !== "string") throw new Mismatch("the texts `sentence` and `next`", verdict);
}

/** An envelope without the blank lines above its body, which a verifier may put there. */
function withoutBlankLines(envelope) {
  const lines = envelope.split("\n");
  const found = lines.findIndex((line) => /^(body|response):/.test(line));
  const body = found < 0 ? lines.length : found;
  return lines.filter((line, at) => line !== "" || at >= body).join("\n");
}

/** Runs one case against the package. */
class Judge {
  #case;
  #package;

  constructor(file, tested) {
    this.#case = file;
    this.#package = tested;
  }

  async run() {
    const judge = this[this.#case.op];
    if (judge === undefined) throw new BadCase(`the op \`${this.#case.op}\` is unknown`);
    await judge.call(this);
  }

  #ask(parameters) {
    return this.#package.ask(this.#case.op, parameters);
  }

  get #input() {
    return this.#case.section("input");
  }

  /** The value of a key that is there. */
  #key(name) {
    return this.#case.has(name) ? this.#case.get(name) : undefined;
  }

  get #publicKey() {
    return this.#case.optional("key") === undefined ? undefined : textOf(this.#case.line("key"));
  }

  #output(result) {
    if (result.errors?.length > 0) throw new Mismatch("no rejection", result);
    if (typeof result.output === "string") return bytesOf(result.output);
    if (!(result.output instanceof Uint8Array)) throw new Mismatch("a result with `output`, a text", result);
    return result.output;
  }

  #requireOutput(result) {
    equal(this.#case.section("output"), this.#output(result));
  }

  #requireSubset(result) {
    const expected = this.#case.json("json");
    if (expected !== undefined) new Subset().compare(expected, result);
  }

  /** Whether the case goes on: it expects no rejection and there is none. An expected rejection is checked. */
  #isAccepted(result, { byRule = true } = {}) {
    if (this.#case.rejects) {
      this.#requireError(result.errors ?? [], byRule);
      return false;
    }
    if (result.errors?.length > 0) throw new Mismatch("no rejection", result);
    return true;
  }

  /** One of the diagnostics has the code of the case, and its rule. */
  #requireError(errors, byRule = true) {
    const [code, rule] = [this.#case.get("code"), this.#case.rule];
    const fits = (found) => found.code === code && (!byRule || (found.rule === rule && found.severity === "error"));
    if (!errors.some(fits)) throw new Mismatch(`an error with the rule ${rule} and the code ${code}`, errors);
  }

  /** The strict report on a text that the package wrote. */
  #report(text, binding) {
    const report = this.#package.ask("parse", { input: text, reading: "strict", binding });
    requireNoError(report);
    return report;
  }

  // L0

  parse() {
    const file = this.#case;
    const report = this.#ask({ input: this.#input, reading: file.get("reading"), binding: this.#key("binding") });
    const found = findingsOf(report);
    if (file.get("expect") === "accept") {
      requireNoError(report);
      if (report.envelopes.length === 0) throw new Mismatch("at least one envelope", report);
    } else if (file.rejects) {
      equal([], report.envelopes);
      this.#requireError(report.errors);
    } else {
      file.section("json");
    }
    const places = ["line", "column"].filter((key) => file.has(key));
    const isThere = (finding) => finding.rule === file.rule && places.every((key) => finding[key] === Number(file.get(key)));
    if (places.length > 0 && !found.some(isThere)) throw new Mismatch(`${file.rule} at ${places.map((key) => file.get(key))}`, found);
    if (file.has("repairs")) {
      const repairs = found.filter(({ severity }) => severity === "repair").map(({ rule }) => rule);
      equal([...new Set(words(file.get("repairs")))].sort(), [...new Set(repairs)].sort());
    }
    for (const word of words(file.get("reports"))) {
      const [rule, severity] = halves(word, "/");
      const fits = (finding) => finding.rule === rule && (severity === "" || finding.severity === severity);
      if (!found.some(fits)) throw new Mismatch(`a diagnostic of ${word}`, found);
    }
    for (const rule of words(file.get("silent"))) {
      if (found.some((finding) => finding.rule === rule)) throw new Mismatch(`no diagnostic of ${rule}`, found);
    }
    this.#requireSubset(report);
  }

  build() {
    const result = this.#ask({ input: this.#input });
    if (this.#isAccepted(result, { byRule: false })) this.#requireOutput(result);
  }

  edit() {
    const change = this.#case.has("add") ? "add" : "set";
    const [namespace, field] = halves(this.#case.get(change), " ");
    const [key, value] = halves(field, "=");
    this.#requireOutput(this.#ask({ input: this.#input, change, namespace, key, value }));
  }

  id() {
    equal(this.#case.get("form"), this.#ask({ input: this.#case.line("input") }).form);
  }

  ids() {
    const [form, count] = [this.#case.get("form"), Number(this.#case.get("count"))];
    const { ids = [] } = this.#ask({ form, count });
    equal(count, ids.length);
    for (const id of ids) equal(form, this.#package.ask("id", { input: bytesOf(id) }).form);
    equal([...new Set(ids)].sort(), ids);
  }

  // L1

  async canonical() {
    const file = this.#case;
    const result = this.#ask({ input: this.#input });
    if (!this.#isAccepted(result, { byRule: false })) return;
    const form = this.#output(result);
    const [exact, same, others] = [file.optional("canonical"), file.all("same"), file.all("differs")];
    if (exact !== undefined) equal(exact, form);
    if (file.has("digest")) {
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", form));
      equal(file.get("digest"), `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")}`);
      equal(file.get("digest"), this.#package.digest(this.#input));
    }
    for (const text of same) equal(form, this.#output(this.#ask({ input: text })));
    for (const text of others) {
      if (isSame(form, this.#output(this.#ask({ input: text })))) {
        throw new Mismatch("another canonical form for each section `differs`", form);
      }
    }
    if (exact === undefined && !file.has("digest") && same.length + others.length === 0) throw new BadCase("it compares nothing");
  }

  fmt() {
    this.#requireOutput(this.#ask({ input: this.#input, fence: this.#case.has("fence") }));
  }

  address() {
    const result = this.#ask({ input: this.#case.line("input"), schemes: this.#case.json("schemes") ?? [] });
    if (this.#isAccepted(result)) this.#requireSubset(result);
  }

  resolve() {
    const [names, dns] = [this.#case.json("names") ?? {}, this.#case.json("dns")];
    const [domain, dnssec] = [this.#key("domain"), this.#key("dnssec")];
    this.#requireSubset(this.#ask({ input: this.#case.line("input"), names, domain, dns, dnssec }));
  }

  diagnose() {
    const result = this.#ask({ input: this.#input });
    equal(this.#case.get("diagnosis"), result.diagnosis);
    if (this.#case.has("after")) equal(Number(this.#case.get("after")), result.after);
    if (this.#case.has("lines")) equal(words(this.#case.get("lines")).map(Number), result.lines);
  }

  integrity() {
    equal(this.#case.json("json"), this.#ask({ input: this.#input }).fields);
  }

  migrate() {
    const migrated = this.#output(this.#ask({ input: this.#input }));
    if (this.#case.has("output")) {
      equal(this.#input, migrated);
    } else {
      this.#case.section("json");
      this.#requireSubset(this.#report(migrated));
    }
  }

  reply() {
    const [kind, code] = halves(this.#case.get("reply"), " ");
    const result = this.#ask({ input: this.#input, reply: kind, code: code || undefined });
    this.#requireSubset(this.#report(this.#output(result), "one"));
  }

  taxonomy() {
    equal(this.#case.json("json"), this.#ask({}).codes);
  }

  exit() {
    const result = this.#ask({ input: this.#input, reading: this.#case.get("reading") });
    equal(Number(this.#case.get("exit")), result.exit);
  }

  redact() {
    const file = this.#case;
    const parameters = {
      as: this.#key("as"),
      names: (file.text("names") ?? "").split("\n").filter((name) => name !== ""),
      only: words(file.get("only")),
      drop_signature: file.has("drop-signature"),
    };
    const result = this.#ask({ input: this.#input, ...parameters });
    if (!this.#isAccepted(result)) return;
    this.#requireOutput(result);
    equal(words(file.get("found")), result.found);
    const again = this.#ask({ input: this.#output(result), ...parameters });
    equal(this.#output(result), this.#output(again));
  }

  // L2

  sign() {
    const file = this.#case;
    const [seed, algorithm, pkid, at] = ["seed", "algorithm", "pkid", "at"].map((key) => file.get(key));
    const flags = { with_key: file.has("with-key"), replace: file.has("replace") };
    const result = this.#ask({ input: this.#input, seed, algorithm, pkid, at, ...flags });
    if (!this.#isAccepted(result, { byRule: false })) return;
    if (file.optional("json") !== undefined) {
      this.#requireSubset(this.#report(this.#output(result), "one"));
      return;
    }
    const signed = file.text("signed-bytes");
    if (signed !== undefined) equal(signed, result.signed_bytes);
    this.#requireOutput(result);
  }

  verify() {
    const file = this.#case;
    const parameters = {
      at: file.get("at") || NOW,
      trust: file.text("trust") ?? "",
      key: this.#publicKey,
      dns: file.json("dns"),
      dnssec: this.#key("dnssec"),
    };
    const ask = (input) => this.#ask({ input, ...parameters });
    const result = ask(this.#input);
    if (!this.#isAccepted(result)) return;
    const { verdicts = [] } = result;
    for (const verdict of verdicts) {
      requireWellFormed(verdict);
      if (verdict.envelope === null) continue;
      const { verdicts: again = [] } = ask(bytesOf(verdict.envelope));
      const pair = (one) => [one.verdict, one.envelope];
      equal([pair(verdict)], again.map(pair));
    }
    equal(words(file.get("verdict")), verdicts.map(({ verdict }) => verdict));
    if (verdicts.length === 1) {
      this.#requireVerdict(verdicts[0]);
    } else {
      file.section("json");
      this.#requireSubset(verdicts);
    }
  }

  #requireVerdict(verdict) {
    const file = this.#case;
    const fields = { body: "body", trust: "trust", by: "rule", code: "code" };
    for (const [key, field] of Object.entries(fields)) if (file.has(key)) equal(file.get(key), verdict[field] ?? "none");
    if (file.has("after")) equal(file.get("after"), String(verdict.after));
    if (file.has("lines")) equal(words(file.get("lines")), verdict.lines.map(String));
    const [verified, restored] = [file.text("verified"), file.text("restored")];
    if (verified !== undefined) equal(withoutBlankLines(verified), withoutBlankLines(verdict.envelope));
    if (restored !== undefined) equal(restored, `${verdict.restored}\n`);
    this.#requireSubset(verdict);
  }

  key() {
    const result = this.#ask({ input: this.#case.line("input") });
    if (this.#isAccepted(result)) this.#requireSubset(result);
  }

  learn() {
    const at = this.#case.get("at") || NOW;
    const result = this.#ask({ input: this.#input, trust: textOf(this.#case.section("trust")), at });
    if (this.#isAccepted(result)) this.#requireTrust(this.#case.section("after"), result);
  }

  "trust-file"() {
    const result = this.#ask({ input: this.#input });
    if (this.#isAccepted(result)) this.#requireTrust(this.#input, result);
  }

  /** The entries of a trust file have no order; missing senders are an empty list. */
  #requireTrust(expected, result) {
    const entries = (table = []) => table.map((entry) => sortedJson({ senders: [], ...entry })).sort();
    const data = (bytes) => {
      const { key, dns, ...others } = this.#package.tomlData(textOf(bytes));
      return { ...others, key: entries(key), dns: entries(dns) };
    };
    equal(data(expected), data(this.#output(result)));
  }

  rc1() {
    equal(this.#case.get("verdict"), this.#ask({ input: this.#input, key: this.#publicKey }).verdict);
  }

  collate() {
    const [poll, at] = [this.#key("poll"), this.#key("at")];
    const ask = (text) => this.#ask({ input: bytesOf(text), poll, at });
    const text = textOf(this.#input);
    const result = ask(text);
    if (!this.#isAccepted(result)) return;
    // The order of the envelopes changes nothing.
    const parts = text.split(/(?<=\[\[END\]\]\n)/);
    equal(result, ask(parts.reverse().join("")));
    this.#requireSubset(result.collation);
    if (this.#case.optional("output") !== undefined) this.#requireOutput(result);
  }

  consent() {
    const file = this.#case;
    const result = this.#ask({
      input: this.#input,
      before: file.optional("before") ?? new Uint8Array(),
      before_proof: this.#key("before-proof") ?? "unsigned",
      proof: this.#key("proof") ?? "unsigned",
      by: file.get("by") === "agent" ? "agent" : undefined,
      at: this.#key("at") ?? "2026-01-01T00:00:00Z",
      leaves: this.#key("leaves"),
      signed: words(file.get("signed")),
      border: file.get("border") === "all" ? "all" : undefined,
      authority: this.#key("authority"),
    });
    if (this.#isAccepted(result)) this.#requireSubset(result);
  }
}

function sortedJson(entry) {
  return JSON.stringify(Object.entries(entry).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The numbers of cases that passed by level, the complaints, and the numbers of answers. */
async function run(crosstalk, suite, { levels, files }, { only = "", broken = false } = {}) {
  const tables = JSON.parse(suite.toml_to_json(levels));
  const tested = new TestedPackage(crosstalk, suite);
  tested.breakNext = broken;
  const passed = Array(MAX_LEVEL + 1).fill(0);
  const complaints = [];
  for (const [id, text] of Object.entries(files)) {
    const file = new CaseFile(id, text);
    const level = levelOf(file, tables);
    if (level > MAX_LEVEL || !id.startsWith(only)) continue;
    try {
      await new Judge(file, tested).run();
      passed[level] += 1;
    } catch (fault) {
      complaints.push(`${id} (${file.rule}): ${fault.name}: ${fault.message}`.slice(0, 2000));
    }
  }
  return { passed, complaints, tested };
}

/**
 * Runs the cases, and once more with one wrong answer, which must turn one case red. `lines` tells about it, and ends with
 * "N passed, N failed".
 */
export async function check(crosstalk, suite, cases, options = {}) {
  const { passed, complaints, tested } = await run(crosstalk, suite, cases, options);
  const sum = passed.reduce((one, other) => one + other, 0);
  const lines = passed.map((count, level) => `L${level}: ${count} cases`);
  lines.push(`${tested.publicAnswers} answers of public functions, ${tested.testOnlyAnswers} of the test build`);
  if (options.only === undefined && !options.broken) {
    // The Rust runner embeds the same folder; it must have seen the same cases.
    const inRust = [...suite.case_counts()].slice(0, MAX_LEVEL + 1);
    if (complaints.length === 0 && !isSame(passed, inRust)) complaints.push(`the Rust suite has ${inRust} cases of these levels, this run ${passed}`);
    const wrong = await run(crosstalk, suite, cases, { broken: true });
    if (wrong.complaints.length !== complaints.length + 1) complaints.push(`one wrong answer turned ${wrong.complaints.length} cases red, not one`);
  }
  lines.push(...complaints, `${sum} passed, ${complaints.length} failed`);
  return { lines, isGood: complaints.length === 0 && sum > 0 };
}

/** The files of `conformance/`, for `check`. */
export async function readCases() {
  const [{ readFileSync, readdirSync }, { fileURLToPath }] = await Promise.all([import("node:fs"), import("node:url")]);
  const folder = fileURLToPath(new URL("../../conformance/", import.meta.url));
  const read = (name) => {
    const text = textOf(readFileSync(folder + name));
    if (text === undefined) throw new BadCase(`${name} is not UTF-8`);
    return text;
  };
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(folder + name).map((file) => `${name}/${file}`));
  const cases = names.filter((name) => name.endsWith(".case")).sort();
  return { levels: read("levels.toml"), files: Object.fromEntries(cases.map((name) => [name.slice(0, -5), read(name)])) };
}

async function main(words) {
  const [{ readFileSync }, { pathToFileURL }] = await Promise.all([import("node:fs"), import("node:url")]);
  const folder = process.env.CROSSTALK_SUITE;
  const base = folder === undefined ? new URL("../../target/js/suite/", import.meta.url) : pathToFileURL(`${folder}/`);
  const suite = await import(new URL("suite.js", base));
  suite.initSync({ module: readFileSync(new URL("suite_bg.wasm", base)) });
  const crosstalk = await import("../dist/index.js");
  const only = words.find((word) => !word.startsWith("-"));
  const { lines, isGood } = await check(crosstalk, suite, await readCases(), { only, broken: words.includes("--break") });
  console.log(lines.join("\n"));
  if (!isGood) process.exitCode = 1;
}

if (globalThis.process?.argv[1]?.endsWith("conformance.mjs")) await main(process.argv.slice(2));
