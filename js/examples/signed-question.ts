// A signed question, and what its receiver makes of it.

import { build, CrosstalkError, generateKey, parse, sign, verify, type VerifyReport } from "ai-crosstalk";

const key = generateKey({ algorithm: "ed25519" });
const question = build({
  sender: "CLAUDE",
  receiver: "CHATGPT",
  user: "kalle",
  context: "auth",
  intent: "REQUEST",
  meta: { routing: { "X-Priority": "high" } },
  body: "Should we use JWT?",
});
const signed = sign(question, key.privateKeyPem, { keyId: "alice@example.com" });

const report: VerifyReport = verify(signed, { keys: [{ id: "alice@example.com", key: key.publicKeyPem }] });
console.log(report.verdict);

const [envelope] = parse(signed, { reading: "strict" }).envelopes;
if (envelope !== undefined) console.log(`${envelope.sender} asks: ${envelope.body}`);

try {
  build({ sender: "CLAUDE", receiver: "CHATGPT", body: "A message without an intent." });
} catch (error) {
  if (!(error instanceof CrosstalkError)) throw error;
  console.log(error.code);
}
