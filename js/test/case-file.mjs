// Case files, their levels, and the comparison of JSON, as `conformance/README.md` defines them. It uses no module of Node.js, so
// that a browser runs it too.

/** For each op: optional keys, needed keys, and sections, of which a needed one is marked with `!`. */
const FORMS = {
  parse: ["code line column repairs reports silent binding", "reading expect", "input! json"],
  canonical: ["expect code digest", "", "input! canonical same differs"],
  fmt: ["fence", "", "input! output!"],
  build: ["expect code", "", "input! output"],
  address: ["code", "expect", "input! json schemes"],
  resolve: ["domain dnssec", "", "input! names dns json!"],
  id: ["", "form", "input!"],
  ids: ["", "form count", ""],
  diagnose: ["lines after", "diagnosis", "input!"],
  integrity: ["", "", "input! json!"],
  migrate: ["output", "", "input! json"],
  edit: ["add set", "", "input! output!"],
  reply: ["", "reply", "input! json!"],
  taxonomy: ["", "", "json!"],
  exit: ["", "reading exit", "input!"],
  redact: ["as found only drop-signature expect code", "", "input! names output"],
  sign: ["with-key replace expect code", "seed algorithm pkid at", "input! output signed-bytes json"],
  verify: ["verdict body lines after trust by code at dnssec expect", "", "input! trust key dns json verified restored"],
  key: ["expect code", "", "input! json"],
  learn: ["at expect code", "", "input! trust! after"],
  "trust-file": ["expect code", "", "input!"],
  rc1: ["", "verdict", "input! key"],
  collate: ["at poll expect code", "", "input! json output"],
  consent: ["code at by proof before-proof leaves signed border authority", "expect", "input! before json"],
  hop: ["seed algorithm pkid", "at by", "input! output!"],
  "check-hop": ["code", "expect", "input! key! json"],
  audit: ["", "what result", "input! json"],
  trace: ["", "", "input! key json!"],
  relays: ["private", "", "input! dns json!"],
};
const COMMON_KEYS = ["rule", "about", "op", "encoding", "escaped"];

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A case file that is wrong: a typo must not make a case pass. */
export class BadCase extends Error {}

/** An answer that differs from the expectation of the case. */
export class Mismatch extends Error {
  constructor(expected, received) {
    super(`expected ${shown(expected)}\nreceived ${shown(received)}`);
  }
}

function shown(value) {
  if (value instanceof Uint8Array) return shown(textOf(value) ?? `${value.length} bytes that are not UTF-8`);
  return (typeof value === "string" ? value : JSON.stringify(value) ?? "nothing").slice(0, 1000);
}

export function bytesOf(text) {
  return encoder.encode(text);
}

/** The text of some bytes; nothing if they are not UTF-8. */
export function textOf(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The words of a line. */
export function words(line) {
  return line.split(/\s+/).filter((word) => word !== "");
}

/** The part before a separator, and the part after it. */
export function halves(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

export class CaseFile {
  #head = new Map();
  /** Titles and texts; escapes are resolved when a section is asked for, because some inputs have 64 MiB. */
  #sections = [];

  constructor(id, text) {
    this.id = id;
    const lines = text.match(/[^\n]*\n|[^\n]+/g) ?? [];
    for (const line of lines) {
      if (line.startsWith("=== ")) {
        this.#sections.push([line.slice(4).trimEnd(), ""]);
      } else if (this.#sections.length > 0) {
        this.#sections.at(-1)[1] += line;
      } else {
        const [key, value] = halves(line.replace(/\n$/, ""), ":");
        if (!line.includes(":") || this.#head.has(key)) throw new BadCase(`${id}: the head has the line ${line}`);
        this.#head.set(key, value.trim());
      }
    }
    this.#check();
  }

  #check() {
    const fail = (fault) => {
      throw new BadCase(`${this.id}: ${fault}`);
    };
    for (const key of ["rule", "about", "op"]) if (this.get(key) === "") fail(`the key \`${key}\` is missing`);
    if (!Object.hasOwn(FORMS, this.op)) fail(`the op \`${this.op}\` is unknown`);
    const [optional, needed, titles] = FORMS[this.op].map(words);
    const names = this.#sections.map(([name]) => name);
    const known = titles.map((title) => title.replace("!", ""));
    const faults = {
      "has unknown keys": [...this.#head.keys()].filter((key) => ![...COMMON_KEYS, ...optional, ...needed].includes(key)),
      "lacks keys": needed.filter((key) => !this.has(key)),
      "has unknown sections": names.filter((name) => !known.includes(name)),
      "lacks sections": known.filter((name, at) => titles[at].endsWith("!") && !names.includes(name)),
      "has sections twice": names.filter((name, at) => names.indexOf(name) !== at && !["same", "differs"].includes(name)),
    };
    for (const [fault, which] of Object.entries(faults)) if (which.length > 0) fail(`\`${this.op}\` ${fault}: ${which}`);
    if (this.rejects && this.get("code") === "") fail("a rejection needs the key `code`");
  }

  get op() {
    return this.get("op");
  }

  get rule() {
    return this.get("rule");
  }

  get rejects() {
    return this.get("expect") === "reject";
  }

  has(key) {
    return this.#head.has(key);
  }

  get(key) {
    return this.#head.get(key) ?? "";
  }

  /** The bytes of every section with a title. */
  all(title) {
    const isEscaped = words(this.get("escaped")).includes(title) || (title === "input" && this.has("encoding"));
    const found = this.#sections.filter(([name]) => name === title);
    return found.map(([, text]) => (isEscaped ? unescaped(text) : bytesOf(text)));
  }

  optional(title) {
    return this.all(title)[0];
  }

  section(title) {
    const bytes = this.optional(title);
    if (bytes === undefined) throw new BadCase(`the section \`${title}\` is missing`);
    return bytes;
  }

  /** The text of a section, if it is there. */
  text(title) {
    const bytes = this.optional(title);
    return bytes === undefined ? undefined : decoder.decode(bytes);
  }

  json(title) {
    const text = this.text(title);
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** A section without the line end that closes it. */
  line(title) {
    const bytes = this.section(title);
    if (bytes.at(-1) !== 10) throw new BadCase(`the section \`${title}\` does not end with a line end`);
    return bytes.subarray(0, -1);
  }
}

const ONE = String.raw`\\(?:[nrt\\}]|x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\})`;
const TOKEN = new RegExp(String.raw`\\\*\{(\d+)\}\{((?:[^\\}]|${ONE})*)\}|${ONE}|[^\\]+|\\`, "gy");
const PLAIN = { n: "\n", r: "\r", t: "\t", "\\": "\\", "}": "}" };

/** Removes the line ends, then resolves the escapes. */
export function unescaped(text) {
  const parts = [];
  for (const [token, count, repeated] of text.replaceAll("\n", "").matchAll(TOKEN)) {
    if (repeated !== undefined) parts.push(repeatedBytes(unescaped(repeated), Number(count)));
    else if (!token.startsWith("\\")) parts.push(bytesOf(token));
    else if (token.startsWith("\\x")) parts.push(Uint8Array.of(parseInt(token.slice(2), 16)));
    else if (token.startsWith("\\u")) parts.push(bytesOf(String.fromCodePoint(parseInt(token.slice(3, -1), 16))));
    else if (Object.hasOwn(PLAIN, token.slice(1))) parts.push(bytesOf(PLAIN[token.slice(1)]));
    else throw new BadCase(`there is no such escape in ${text.slice(0, 100)}`);
  }
  return joined(parts);
}

export function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function repeatedBytes(unit, count) {
  const bytes = new Uint8Array(unit.length * count);
  bytes.set(unit.subarray(0, bytes.length));
  // Each step doubles the part that is filled.
  for (let filled = unit.length; filled > 0 && filled < bytes.length; filled *= 2) bytes.copyWithin(filled, 0, filled);
  return bytes;
}

/** The level of a case by the tables of `levels.toml`: the highest of what it needs. */
export function levelOf(file, { rules, ops, readings }) {
  const known = (table, key) => {
    if (!Object.hasOwn(table, key)) throw new BadCase(`levels.toml gives \`${key}\` no level`);
    return table[key];
  };
  const ofRule = (rule) => (Object.hasOwn(rules, rule) ? rules[rule] : known(rules, rule.split("-")[0]));
  const named = [...words(file.get("reports")), ...words(file.get("silent"))].map((word) => ofRule(word.split("/")[0]));
  const reading = file.has("reading") ? [known(readings, file.get("reading"))] : [];
  return Math.max(ofRule(file.rule), known(ops, file.op), ...reading, ...named);
}

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two JSON values, or two texts as bytes, are the same. */
export function isSame(one, other) {
  if (one instanceof Uint8Array || other instanceof Uint8Array) {
    return one instanceof Uint8Array && other instanceof Uint8Array && one.length === other.length && one.every((byte, at) => byte === other[at]);
  }
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((value, at) => isSame(value, other[at]));
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}

export function equal(expected, received) {
  if (!isSame(expected, received)) throw new Mismatch(expected, received);
}

/** The comparison of a section `json` with a result. */
export class Subset {
  #names = new Map();

  compare(expected, actual, path = "") {
    if (isObject(expected) && Array.isArray(actual)) {
      actual = Object.fromEntries(actual.map((entry) => [entry.key ?? entry.name, entry.value]));
    }
    if (isObject(expected) && isObject(actual)) {
      for (const [key, value] of Object.entries(expected)) {
        this.compare(value, Object.hasOwn(actual, key) ? actual[key] : null, `${path}.${key}`);
      }
    } else if (Array.isArray(expected) && Array.isArray(actual)) {
      const isFindings = ["errors", "diagnostics", "repairs"].includes(path.split(".").at(-1));
      if (expected.length > 0 && isFindings) this.#findings(expected, actual, path);
      else if (expected.length !== actual.length) throw new Mismatch(`${path} = ${JSON.stringify(expected)}`, actual);
      else expected.forEach((value, index) => this.compare(value, actual[index], `${path}[${index}]`));
    } else if (!this.#fits(expected, actual) && !isSame(expected, actual)) {
      throw new Mismatch(`${path} = ${JSON.stringify(expected)}`, actual);
    }
  }

  /** Each expected one is there, in any order; there may be others. */
  #findings(expected, actual, path) {
    const left = [...actual];
    for (const value of expected) {
      const at = left.findIndex((item) => {
        const before = new Map(this.#names);
        try {
          this.compare(value, item, `${path}[]`);
          return true;
        } catch (fault) {
          if (!(fault instanceof Mismatch)) throw fault;
          this.#names = before;
          return false;
        }
      });
      if (at < 0) throw new Mismatch(`${path} with ${JSON.stringify(value)}`, actual);
      left.splice(at, 1);
    }
  }

  /** `{{name}}` is any text that is not empty, the same one for the same name; `{{id…}}` is an id. */
  #fits(expected, actual) {
    const name = typeof expected === "string" ? /^\{\{(.*)\}\}$/s.exec(expected)?.[1] : undefined;
    if (name === undefined || typeof actual !== "string" || actual === "") return false;
    if (name.startsWith("id") && !ULID.test(actual) && !UUID_V7.test(actual)) return false;
    if ([...this.#names].some(([other, text]) => other !== name && text === actual)) return false;
    if (!this.#names.has(name)) this.#names.set(name, actual);
    return this.#names.get(name) === actual;
  }
}
