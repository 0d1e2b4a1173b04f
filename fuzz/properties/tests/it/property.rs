//! The properties over random and over damaged texts.

use crosstalk_fuzz_properties::{TARGETS, paste, signed_message, strict, trust};
use crosstalk_testing::tier;
use proptest::prelude::*;

const SAMPLE: &str = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nthread: 01J9J3D3M6A4M3WQX8G1ZQ0S7K\nmessage: 01J9J3DBC4N7P2Q3R5S7T9V1W2\ncontext: caf\u{e9}\nintent: REQUEST\n\nmeta: routing\nX-Route: a → b\nTargets: [\"a\", \"b\"]\n\nbody: |\n  one\n\n\ttwo\nsig: none\n[[END]]\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: tier::size(200, 2000), ..ProptestConfig::default() })]

    #[test]
    fn hold_for_any_bytes(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        for (_, target) in TARGETS {
            target(&data);
        }
    }

    #[test]
    fn hold_for_damaged_messages(cuts in proptest::collection::vec((0..SAMPLE.len(), 0..6_usize, ".{0,6}"), 0..5)) {
        let text = damaged(SAMPLE, &cuts);
        strict(text.as_bytes());
        paste(text.as_bytes());
    }

    #[test]
    fn nothing_damaged_is_verified(cuts in proptest::collection::vec((0..1200_usize, 0..9_usize, ".{0,6}"), 0..4)) {
        trust(damaged(signed_message(), &cuts).as_bytes());
    }
}

/// The text with some places cut out and filled with something else.
fn damaged(text: &str, cuts: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (at, len, new) in cuts {
        let start = text.floor_char_boundary(*at.min(&text.len()));
        let end = text
            .floor_char_boundary((start + len).min(text.len()))
            .max(start);
        text.replace_range(start..end, new);
    }
    text
}
