// Strings that are no Unicode, or too large.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { build, canonical, format, generateKey, lint, parse, ready, redact, reply, sign, verify } from "../dist/index.js";

const MESSAGE = { sender: "CLAUDE", receiver: "CHATGPT", user: "kalle", context: "auth", intent: "REQUEST", body: "JWT \u{fffd}?" };

before(ready);

test("half of a surrogate pair is not taken for another character", () => {
  const { privateKeyPem, did } = generateKey();
  const signed = sign(build(MESSAGE), privateKeyPem, { keyId: did });
  assert.equal(verify(signed).verdict, "verified");
  for (const half of ["\ud801", "\udc01"]) {
    const text = signed.replace("\u{fffd}", half);
    const { verdict, rule, envelope } = verify(text);
    assert.deepEqual([verdict, rule, envelope], ["not-verified", "ENV-001", null]);
    assert.deepEqual(parse(text).errors.map((error) => error.rule), ["ENV-001"]);
    assert.equal(lint(text).counts.error, 1);
    for (const call of [() => canonical(text), () => format(text), () => reply(text, "x"), () => reply(signed, half), () => redact(text)]) {
      assert.throws(call, { name: "CrosstalkError", code: "E-FORMAT", rule: "ENV-001" });
    }
    assert.throws(() => build({ ...MESSAGE, body: half }), { name: "CrosstalkError", code: "E-FORMAT" });
  }
  assert.equal(parse(build({ ...MESSAGE, body: "🙂" })).envelopes[0].body, "🙂");
});

test("a time outside of four-digit years is an error", () => {
  const { privateKeyPem, did } = generateKey();
  for (const at of ["x", NaN, "+010000-01-01T00:00:00Z", "-000001-01-01T00:00:00Z", 8.64e15]) {
    assert.throws(() => sign(build(MESSAGE), privateKeyPem, { keyId: did, at }), TypeError);
  }
  const signed = sign(build(MESSAGE), privateKeyPem, { keyId: did, at: "9999-12-31T23:59:59Z" });
  assert.equal(verify(signed).signed_at, "9999-12-31T23:59:59Z");
});

test("a text over the limit is rejected before the module gets all of it", () => {
  const large = "x".repeat(150 << 20);
  for (const text of [large, `${"x".repeat((64 << 20) + 1)}🙂🙂`]) {
    assert.deepEqual(parse(text).errors.map((error) => error.rule), ["ENV-063"]);
    assert.throws(() => format(text), { name: "CrosstalkError", code: "E-TOO-LARGE" });
    assert.throws(() => redact(text), { name: "CrosstalkError", code: "E-TOO-LARGE" });
  }
});
