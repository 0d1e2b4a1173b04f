//! Signed messages and the keys that signed them.

use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp, scan};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust, Verdict, VerifyContext, verify};

pub(crate) const ALICE: &str = "alice@example.com";

/// A message with what real ones have: prose, a list, code, a table, letters beyond ASCII, quotes and dashes.
pub(crate) const MESSAGE: &str = "\
[[CLAUDE→chatgpt://thread/xyz789 v1]]
user: kalle
session: 2025-10-09T16Z abc123
thread: 01K74V6VX0S86Z5JATM52C3M7Z
message: 01K74V6W3G8D0T9V5Y2R4N6Q1X
context: auth and caching, second round with the people from the café
intent: REQUEST

meta: routing
X-Priority: high
Targets: [\"claude://a\", \"chatgpt://b\"]

meta: custom-acme
Ticket: 4711

body: |
  Should the sessions be kept in JWTs or in a store? My colleague's \"quick\" note says:

    - tokens: no look-up, but no revocation either
    - a store: one look-up, and everything can be revoked at once -- which the auditors like

  ```rust
  fn is_valid(token: &Token, now: u64) -> bool {
      token.expires > now && !token.is_revoked()
  }
  ```

  | way   | cost |
  |-------|------|
  | JWT   | none |
  | store | 1 ms |

  The naïve answer was < 5 ms & fine. What would you do?
sig: none
[[END]]
";

pub(crate) fn key(algorithm: Algorithm, seed: u8) -> PrivateKey {
    PrivateKey::from_seed(algorithm, &[seed; 32]).unwrap()
}

pub(crate) fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn now() -> Timestamp {
    time("2026-11-15T12:00:00Z")
}

/// The message, signed by a key under an id, the key with it.
pub(crate) fn signed_as(text: &str, key: &PrivateKey, pkid: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let signer = Signer {
        key,
        pkid,
        at: now(),
        key_block: &key_block(pkid, &key.public(), None),
    };
    signer.sign(&document).unwrap()
}

pub(crate) fn signed(text: &str) -> String {
    signed_as(text, &key(Algorithm::Ed25519, 1), ALICE)
}

pub(crate) fn pin(id: &str, key: &PrivateKey, senders: &[&str]) -> KnownKey {
    KnownKey {
        id: id.to_owned(),
        key: key.public(),
        since: time("2026-11-01"),
        how: Origin::Manual,
        by: None,
        senders: senders.iter().map(|s| (*s).to_owned()).collect(),
        standing: KeyStanding::Active,
        credential: None,
    }
}

/// A trust store that knows Alice.
pub(crate) fn trusting_alice() -> Trust {
    let mut trust = Trust::default();
    trust
        .pin(pin(ALICE, &key(Algorithm::Ed25519, 1), &["CLAUDE"]))
        .unwrap();
    trust
}

/// The verdicts on the envelopes of a paste.
pub(crate) fn verdicts(text: &str, trust: &Trust) -> Vec<Verdict> {
    let found = scan(text, Reading::Paste);
    let question = VerifyContext {
        restore: true,
        ..VerifyContext::at(now())
    };
    found
        .documents
        .iter()
        .map(|d| verify(d, trust, &question))
        .collect()
}

/// The verdict on the one envelope of a paste.
pub(crate) fn verdict(text: &str, trust: &Trust) -> Verdict {
    let mut all = verdicts(text, trust);
    assert_eq!(
        all.len(),
        1,
        "{:?}\n{text}",
        scan(text, Reading::Paste).rejected
    );
    all.remove(0)
}

/// The canonical form of a strict text.
pub(crate) fn canonical(text: &str) -> String {
    Document::parse(text, Reading::Strict).canonical().unwrap()
}

/// What is to be thought of the one envelope of a text.
pub(crate) fn ask(text: &str, trust: &Trust, question: &VerifyContext<'_>) -> Verdict {
    verify(&Document::parse(text, Reading::Paste), trust, question)
}

/// The verdict, who vouches, and the rule that decided.
pub(crate) fn outcome(verdict: &Verdict) -> (&'static str, &'static str, Option<&'static str>) {
    (
        verdict.word().as_str(),
        verdict.trusted().as_str().unwrap_or(""),
        verdict.rule().map(|r| r.id),
    )
}
