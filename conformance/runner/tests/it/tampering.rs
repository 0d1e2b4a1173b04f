//! Whatever is done to a signed message: what is shown as verified is what was signed.

use crate::case;
use crate::mutants::ours;
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::{Algorithm, PrivateKey};
use crosstalk_testing::tier;
use serde_json::Value;

/// The verdict with a key that the caller gives.
fn verdict(text: &str, key: &str) -> Option<Value> {
    let question = CaseQuestion::new("verify")
        .with("input", text)
        .with("at", "2025-10-10T12:00:00Z")
        .with("key", key);
    let mut result = ours(&question);
    result["verdicts"].get_mut(0).map(Value::take)
}

/// Checks every change of a signed text; says how many were verified all the same, and how many were damaged.
fn tamper(text: &str, key: &str, step: usize) -> (usize, usize) {
    let whole = verdict(text, key).unwrap();
    assert_eq!(whole["verdict"], "verified", "{text}");
    let (mut verified, mut damaged) = (0, 0);
    // Says whether the changed text is verified.
    let mut check = |changed: String| {
        let Some(came) = verdict(&changed, key) else {
            return false;
        };
        match came["verdict"].as_str() {
            Some("verified") => {
                assert_eq!(came["envelope"], whole["envelope"], "from\n{changed}");
                verified += 1;
            }
            Some("damaged") => damaged += 1,
            _ => assert_eq!(came["envelope"], Value::Null, "from\n{changed}"),
        }
        came["verdict"] == "verified"
    };
    for (at, c) in text.char_indices().step_by(step) {
        let (before, behind) = (&text[..at], &text[at + c.len_utf8()..]);
        check(format!("{before}{behind}"));
        for new in [
            " ",
            "\n",
            "\u{a0}",
            "\u{200b}",
            "”",
            "&amp;",
            ": ",
            "sig: none\n",
        ] {
            check(format!("{before}{new}{behind}"));
            check(format!("{before}{new}{c}{behind}"));
        }
        // A letter more is always one too many.
        for changed in [
            format!("{before}x{behind}"),
            format!("{before}x{c}{behind}"),
        ] {
            let is_other = changed != text;
            assert!(!check(changed.clone()) || !is_other, "from\n{changed}");
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for at in 0..lines.len() {
        let (before, behind) = (lines[..at].concat(), lines[at + 1..].concat());
        check(format!("{before}{behind}"));
        check(format!("{before}{0}{0}{behind}", lines[at]));
        check(format!("{before}{behind}{}", lines[at]));
        check(format!("{before}  {}{behind}", lines[at]));
        check(format!("{}{before}{behind}", lines[at]));
        for new in [
            "context: send money\n",
            "intent: REVOKE\n",
            "meta: routing\n",
            "X-Route: A\n",
            "  send money\n",
            "send money\n",
            "body: |\n",
            "[[END]]\n",
            "[[MALLORY→CLAUDE v1]]\n",
        ] {
            let changed = format!("{before}{new}{}{behind}", lines[at]);
            let is_inside = at > 0 && new.contains("money");
            assert!(!check(changed.clone()) || !is_inside, "from\n{changed}");
        }
    }
    (verified, damaged)
}

#[test]
fn a_verified_envelope_is_the_signed_one() {
    let cases = case::all();
    for (name, record, step) in [
        (
            "signing/sign-with-key",
            "ed25519:pk=A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
            tier::size(7, 1),
        ),
        (
            "signing/sign-secp256r1",
            "secp256r1:pk=AnpZMYCGDEA3yDwSdJhFyO4UJN0pf63LiV41glXSx9Ky",
            tier::size(29, 11),
        ),
    ] {
        let signed = cases.iter().find(|c| c.id() == name).unwrap();
        let text = std::str::from_utf8(signed.section("output").unwrap()).unwrap();
        let (verified, damaged) = tamper(text, record, step);
        // Else the changes miss what is repaired, or what is only damaged.
        assert!(
            verified > 20 && damaged > 20,
            "{name}: {verified} {damaged}"
        );
    }
}

/// The text of every signed vector, and the record of the key that signed it.
fn vectors() -> Vec<(String, String, String)> {
    let signed = case::all().into_iter().filter(|c| c.op() == "sign");
    let vectors = signed.filter_map(|c| {
        let text = String::from_utf8(c.section("output").ok()?.to_vec()).ok()?;
        let algorithm = Algorithm::parse(c.get("algorithm"))?;
        let seed: Vec<u8> = (0..32)
            .map(|i| u8::from_str_radix(&c.get("seed")[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let key = PrivateKey::from_seed(algorithm, &seed.try_into().unwrap()).unwrap();
        Some((c.id().to_owned(), text, key.public().record()))
    });
    vectors.collect()
}

#[test]
fn one_character_of_any_vector_is_enough() {
    /// The long ones are about limits, and their text repeats.
    const LONGEST: usize = 4000;
    let (mut vectors_tried, mut changes) = (0, 0);
    for (name, text, key) in vectors() {
        if text.len() > LONGEST {
            continue;
        }
        let whole = verdict(&text, &key).unwrap();
        assert_eq!(whole["verdict"], "verified", "{name}");
        vectors_tried += 1;
        let step = if key.starts_with("ed25519") { 1 } else { 3 };
        // An odd step: over many vectors it meets every part of an envelope.
        let step = step * tier::size(13, 1);
        for (at, c) in text.char_indices().step_by(step) {
            let (before, behind) = (&text[..at], &text[at + c.len_utf8()..]);
            let other = if c == 'q' { 'Q' } else { 'q' };
            for changed in [
                format!("{before}{behind}"),
                format!("{before}{other}{behind}"),
                format!("{before}{c}{c}{behind}"),
            ] {
                changes += 1;
                let came = verdict(&changed, &key).unwrap_or_default();
                if came["verdict"] == "verified" {
                    assert_eq!(
                        came["envelope"], whole["envelope"],
                        "{name} from\n{changed}"
                    );
                }
            }
        }
    }
    assert!(
        vectors_tried > 15 && changes > tier::size(1_500, 20_000),
        "{vectors_tried} {changes}"
    );
}
