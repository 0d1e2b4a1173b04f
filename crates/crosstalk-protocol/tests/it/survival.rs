//! A signed message stays verified after everything that only looks like a change (threat 6).

use crate::sample::{MESSAGE, canonical, key, pin, signed, signed_as, trusting_alice, verdict};
use crate::way::{self, HARMLESS};
use crosstalk_envelope::Algorithm;
use crosstalk_protocol::{Trust, VerdictWord};

fn stays_verified(name: &str, sent: &str, received: &str, trust: &Trust) {
    let verdict = verdict(received, trust);
    assert_eq!(
        verdict.word(),
        VerdictWord::Verified,
        "{name}: {}\n{received}",
        verdict.sentence()
    );
    let rebuilt = verdict.verified().unwrap().to_envelope();
    assert_eq!(canonical(&rebuilt), canonical(sent), "{name}");
    assert!(
        !rebuilt.contains("meta: audit") && !rebuilt.contains("X-Route"),
        "{name}"
    );
}

#[test]
fn each_way_alone() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    for (name, way) in HARMLESS {
        stays_verified(name, &sent, &way(&sent), &trust);
    }
}

#[test]
fn every_pair_of_ways() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    for (first, one) in HARMLESS {
        let once = one(&sent);
        for (second, two) in HARMLESS {
            // A hop takes what is strict.
            let needs_strict = matches!(
                *second,
                "audit block" | "X-Route" | "blank lines around META"
            );
            let is_strict = !matches!(
                *first,
                "fence" | "quote" | "indent by 2" | "indent by 4" | "prose around"
            );
            if !needs_strict || is_strict {
                stays_verified(&format!("{first}, {second}"), &sent, &two(&once), &trust);
            }
        }
    }
}

#[test]
fn all_of_them_together() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let order = [
        "audit block",
        "X-Route",
        "blank lines around META",
        "ASCII arrow",
        "NFD",
        "padding",
        "indent by 2",
        "fence",
        "quote",
        "CRLF",
        "mail, quoted-printable",
        "mail, base64",
        "prose around",
        "BOM",
    ];
    let received = order.iter().fold(sent.clone(), |text, name| {
        let (_, way) = HARMLESS.iter().find(|(n, _)| n == name).unwrap();
        way(&text)
    });
    stays_verified("all", &sent, &received, &trust);
}

#[test]
fn secp256r1_survives_as_well() {
    let signer = key(Algorithm::Secp256r1, 3);
    let sent = signed_as(MESSAGE, &signer, "bob@keys/2025");
    let mut trust = Trust::default();
    trust.pin(pin("bob@keys/2025", &signer, &[])).unwrap();
    for (name, way) in HARMLESS {
        stays_verified(name, &sent, &way(&sent), &trust);
    }
}

#[test]
fn changed_characters_of_a_chat_are_undone() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let ways: [(&str, way::Way); 8] = [
        ("typographic quotes", |t| {
            t.replace("colleague's", "colleague’s")
                .replace("\"quick\"", "“quick”")
        }),
        ("dashes", |t| t.replace(" -- ", " — ")),
        ("entities in the body", |t| {
            t.replace(" < 5 ms & fine", " &lt; 5 ms &amp; fine")
        }),
        ("no-break spaces", |t| {
            t.replace("What would", "What\u{a0}would")
                .replace("one look-up", "one\u{a0}look-up")
        }),
        ("zero-width characters", |t| {
            t.replace("auditors", "audi\u{200b}tors")
                .replace("revoked", "re\u{ad}voked")
        }),
        ("no-break spaces in the head", |t| {
            t.replace("second round", "second\u{a0}round")
        }),
        ("the body without its indent", |t| {
            let (head, rest) = t.split_once("body: |\n").unwrap();
            let (body, sig) = rest.split_once("sig:").unwrap();
            let body: String = body
                .lines()
                .map(|l| format!("{}\n", l.strip_prefix("  ").unwrap_or(l)))
                .collect();
            format!("{head}body: |\n{body}sig:{sig}")
        }),
        ("all of it in a quote", |t| {
            let text = t
                .replace("colleague's", "colleague’s")
                .replace(" & fine", " &amp; fine");
            way::prefixed(&text.replace("What would", "What\u{a0}would"), "> ")
        }),
    ];
    for (name, way) in ways {
        let received = way(&sent);
        assert_ne!(received, sent, "{name}");
        stays_verified(name, &sent, &received, &trust);
    }
}
