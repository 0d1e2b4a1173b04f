// The second part of `relay.d.ts`: what the OpenAPI document of a relay says, as TypeScript. This file writes and compares it.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { RelayServer } from "./relay-server.mjs";

/** The names of the API's schemas here, where the names of the package say more. */
const NAMES = {
  Inbox: "InboxPage",
  Entry: "InboxMessage",
  Message: "RelayMessage",
  Acked: "Acknowledged",
  Blob: "Attachment",
  Receive: "SendResult",
  ThreadTree: "ThreadTree",
  Node: "ThreadMessage",
  Thread: "ThreadSummary",
  State: "DeliveryState",
  ParsedMessage: "Envelope",
};

/** The line of `relay.d.ts` below which the declarations are written by this file. */
const MARK = "// Written from the OpenAPI document of a relay: `CROSSTALK_WRITE_TYPES=1 node --test js/test/relay-types.test.mjs`.\n";

test("the types are those of the API", async (t) => {
  const server = await RelayServer.start(t);
  const { schemas } = (await (await fetch(`${server.url}/openapi.json`)).json()).components;
  const file = new URL("../src/relay.d.ts", import.meta.url);
  const declared = readFileSync(file, "utf8");
  // The last one is declared with `parse`, in more detail than the API tells.
  const { ParsedMessage, ...own } = NAMES;
  const declarations = Object.entries(own).map(([name, type]) => declarationOf(type, schemas[name], schemas));
  const [byHand] = declared.split(MARK);
  const wanted = `${byHand}${MARK}\n${declarations.join("\n")}`;
  if (process.env.CROSSTALK_WRITE_TYPES !== undefined) writeFileSync(file, wanted);
  else assert.equal(declared, wanted);
});

function declarationOf(name, schema, schemas) {
  if (schema.type !== "object") return `${comment(schema, "")}export type ${name} = ${typeOf(schema, schemas)};\n`;
  const message = fieldsOf(schemas.Message, schemas);
  const extendsMessage = schema !== schemas.Message && Object.keys(schemas.Message.properties).every((key) => key in schema.properties);
  const fields = fieldsOf(schema, schemas).filter((field) => !(extendsMessage && message.includes(field)));
  const base = extendsMessage ? ` extends ${NAMES.Message}` : "";
  return `${comment(schema, "")}export interface ${name}${base} {\n${fields.join("")}}\n`;
}

function fieldsOf({ properties, required }, schemas) {
  return Object.entries(properties).map(([key, value]) => {
    const mark = required.includes(key) ? "" : "?";
    return `${comment(value, "  ")}  ${key}${mark}: ${typeOf(value, schemas)};\n`;
  });
}

function comment(schema, indent) {
  return `${indent}/** ${schema.description.replace(/^HTP-\d+\. /, "")} */\n`;
}

function typeOf(schema, schemas) {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1);
    return NAMES[name] ?? typeOf(schemas[name], schemas);
  }
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one, schemas)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items, schemas)}[]`;
  return [schema.type].flat().map((type) => (type === "integer" ? "number" : type)).join(" | ");
}

