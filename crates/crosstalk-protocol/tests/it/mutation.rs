//! One changed character, anywhere: never verified, unless what was signed is the same.

use crate::sample::{MESSAGE, canonical, key, pin, signed_as, verdicts};
use crosstalk_envelope::Algorithm;
use crosstalk_protocol::{Trust, VerdictWord};
use crosstalk_testing::tier;

const CHANGES: [&str; 9] = ["", "x", "X", " ", "\n", ":", "[[", "\u{301}", "é"];

/// Tries the changes of a message, one of `every`.
fn assert_no_forgery(algorithm: Algorithm, text: &str, every: usize) {
    let signer = key(algorithm, 1);
    let sent = signed_as(text, &signer, "alice@keys");
    let mut trust = Trust::default();
    trust.pin(pin("alice@keys", &signer, &[])).unwrap();
    let expected = canonical(&sent);
    let (mut verified, mut tried) = (0, 0);
    for (at, c) in sent.char_indices() {
        let (before, rest) = sent.split_at(at);
        let behind = &rest[c.len_utf8()..];
        for (number, change) in CHANGES.iter().enumerate() {
            if !(at + number).is_multiple_of(every) {
                continue;
            }
            for text in [
                format!("{before}{change}{behind}"),
                format!("{before}{change}{rest}"),
            ] {
                if text == sent {
                    continue;
                }
                tried += 1;
                for verdict in verdicts(&text, &trust) {
                    if matches!(
                        verdict.word(),
                        VerdictWord::Verified | VerdictWord::FirstContact
                    ) {
                        verified += 1;
                        let rebuilt = verdict.verified().unwrap().to_envelope();
                        assert_eq!(canonical(&rebuilt), expected, "{change:?} at {at}\n{text}");
                    }
                }
            }
        }
    }
    let (all, good) = (tried * every, verified * every);
    assert!(all > 7000 && good > 70, "{verified} of {tried}");
}

#[test]
fn ed25519() {
    assert_no_forgery(Algorithm::Ed25519, MESSAGE, tier::size(13, 1));
}

#[test]
fn secp256r1() {
    assert_no_forgery(Algorithm::Secp256r1, MESSAGE, tier::size(31, 7));
}
