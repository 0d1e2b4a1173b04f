// The types of `index.d.ts` are those of `crosstalk schema`: each schema, written as a type, is the declared one.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROGRAM } from "./relay-server.mjs";
import { STRICT, TSC, installPackage, output, scratchFolder } from "./tools.mjs";

/** Types are the same if no code can tell them apart. */
const SAME = "type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;\n";

function schemaOf(word) {
  return JSON.parse(output([PROGRAM, "schema", word]));
}

/** A schema as a type. `ErrorCode` is declared, and the schemas say of it either the words or that it is a text. */
function typeOf(schema, root = schema, key = "") {
  const inner = (part, name) => typeOf(part, root, name);
  if (schema.$ref !== undefined) return inner(root.$defs[schema.$ref.split("/").at(-1)]);
  const union = schema.oneOf ?? schema.anyOf;
  if (union !== undefined) return union.map((part) => inner(part)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (key === "code") return "ErrorCode | null";
  const object = () => {
    // `file` is there if the command line read several files.
    const fields = Object.entries(schema.properties).filter(([name]) => name !== "file");
    return `{ ${fields.map(([name, part]) => `${name}${schema.required.includes(name) ? "" : "?"}: ${inner(part, name)}`).join("; ")} }`;
  };
  const forms = { integer: "number", array: () => `(${inner(schema.items)})[]`, object };
  return [schema.type].flat().map((type) => (typeof forms[type] === "function" ? forms[type]() : (forms[type] ?? type))).join(" | ");
}

/** What is read has every field, in one form of those that a message to write may have; only the name of the body may be missing. */
function asRead({ $defs, ...schema }) {
  const { message, report } = $defs;
  const one = (value) => (value.oneOf === undefined ? value : value.oneOf.find(({ type, properties }) => type === "array" || properties));
  const list = one(message.properties.meta);
  const fields = one(list.items.properties.fields);
  fields.items.properties.value = { type: "string" };
  const properties = {
    ...message.properties,
    version: { type: "string" },
    intent: { anyOf: [one(message.properties.intent), { type: "null" }] },
    headers: one(message.properties.headers),
    meta: { ...list, items: { ...list.items, properties: { ...list.items.properties, fields } } },
  };
  const required = Object.keys(properties).filter((name) => name !== "body_name");
  return { ...schema, anyOf: undefined, ...report, $defs: { ...$defs, message: { type: "object", properties, required } } };
}

test("the types of results are those of the schemas", (t) => {
  const folder = scratchFolder(t);
  installPackage(folder);
  const redact = schemaOf("redact");
  // The command line has no text to give if it wrote it to a file.
  redact.properties.text.type = "string";
  const schemas = {
    ParseReport: asRead(schemaOf("parse")),
    LintReport: schemaOf("lint"),
    VerifyReport: schemaOf("verify"),
    AddressReport: schemaOf("address"),
    RedactReport: redact,
  };
  const codes = schemaOf("parse").$defs.finding.properties.code;
  const lines = Object.entries(schemas).flatMap(([name, schema]) => [
    `type Of${name} = ${typeOf(schema)};`,
    // These two complain about the field that differs; the third one allows no difference at all.
    `export const to${name} = (value: ${name}): Of${name} => value;`,
    `export const from${name} = (value: Of${name}): ${name} => value;`,
    `export const same${name}: Same<${name}, Of${name}> = true;`,
  ]);
  lines.push(`export const sameCodes: Same<ErrorCode | null, ${typeOf(codes)}> = true;`);
  // A message to write has the fields of the schema, with the same ones required.
  const { properties, required } = schemaOf("parse").$defs.message;
  const names = (list) => list.map((name) => JSON.stringify(name)).join(" | ");
  lines.push(`export const sameFields: Same<keyof MessageInput, ${names(Object.keys(properties))}> = true;`);
  lines.push("type Required<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T];");
  lines.push(`export const sameRequired: Same<Required<MessageInput>, ${names(required)}> = true;`);
  // A difference is noticed.
  const { note, ...counts } = schemas.LintReport.properties.counts.properties;
  const changes = [
    { counts: { type: "object", properties: counts, required: Object.keys(counts) } },
    { envelopes: { type: "string" } },
    { schema: { const: "crosstalk.lint/2" } },
    { more: { type: "string" } },
  ];
  assert.ok(note !== undefined);
  changes.forEach((change, at) => {
    const changed = { ...schemas.LintReport, properties: { ...schemas.LintReport.properties, ...change } };
    lines.push("// @ts-expect-error", `export const other${at}: Same<LintReport, ${typeOf(changed)}> = true;`);
  });
  const imports = `import type { ErrorCode, MessageInput, ${Object.keys(schemas).join(", ")} } from "ai-crosstalk";\n`;
  writeFileSync(join(folder, "forms.mts"), `${imports}${SAME}${lines.join("\n")}\n`);
  output([...TSC, ...STRICT, "forms.mts"], { cwd: folder });
});
