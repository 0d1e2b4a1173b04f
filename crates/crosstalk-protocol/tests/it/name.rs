//! Names in another case, and names that only look like others (threat 45).

use crate::sample::{ALICE, MESSAGE, ask, key, now, outcome, pin, trusting_alice};
use crosstalk_envelope::name::NameList;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, ErrorCode, PrivateKey, Reading};
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::{
    Admission, AdmissionCandidate, Handler, KnownNames, Pattern, Peer, RelayRules, Role, Route,
    Routes, admit,
};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{PinError, Trust, Verdict, VerdictWord, VerifyContext, verify};
use std::sync::Arc;

/// The message in the name of somebody else, signed by a key that is trusted for MALLORY; none if it can't be signed.
fn impostor(sender: &str, pkid: &str, key: &PrivateKey) -> Option<String> {
    let text = MESSAGE.replace("[[CLAUDE→", &format!("[[{sender}→"));
    let signer = Signer {
        key,
        pkid,
        at: now(),
        key_block: &key_block(pkid, &key.public(), None),
    };
    signer.sign(&Document::parse(&text, Reading::Strict)).ok()
}

fn judge(text: &str, trust: &Trust) -> Verdict {
    ask(text, trust, &VerifyContext::at(now()))
}

#[test]
fn no_spelling_of_a_pinned_name_verifies_under_another_key() {
    let mallory = key(Algorithm::Ed25519, 66);
    let did = mallory.public().to_did();
    let mut trust = trusting_alice();
    trust
        .pin(pin(
            "boss@example.com",
            &key(Algorithm::Ed25519, 2),
            &["BOSS"],
        ))
        .unwrap();
    trust
        .pin(pin("mallory@evil.example", &mallory, &["MALLORY"]))
        .unwrap();
    for sender in [
        "Claude",
        "claude",
        "CLAUDE\u{fe0f}",
        "CLAUDE\u{3000}",
        "CLA\u{200b}UDE",
        "𝐂LAUDE",
        "Cıaude",
        "CIAUDE",
        "CLАUDE",
        "BOſS",
        "Boss",
        "B0SS",
    ] {
        for pkid in ["mallory@evil.example", did.as_str()] {
            let Some(text) = impostor(sender, pkid, &mallory) else {
                // The strict reading rejects the name, so that it has no canonical form.
                let unseen = ['\u{fe0f}', '\u{3000}', '\u{200b}'];
                assert!(sender.contains(unseen), "{sender}");
                continue;
            };
            let found = judge(&text, &trust);
            assert_eq!(found.word(), VerdictWord::NotVerified, "{sender} {pkid}");
            let rule = found.rule().unwrap().id;
            // What a repair takes out of the name was signed.
            let rules = ["TRU-006", "TRU-009", "SIG-010"];
            assert!(rules.contains(&rule), "{sender} {rule}");
        }
        // Nor is it pinned, unless a person says so.
        let pinned = trust.clone().pin(pin(
            "other@evil.example",
            &key(Algorithm::Ed25519, 7),
            &[sender],
        ));
        assert!(
            matches!(
                pinned,
                Err(PinError::SenderChanged(_) | PinError::LooksLike(..))
            ),
            "{sender} {pinned:?}"
        );
    }
    // The names that are theirs, in any case, still count.
    for (sender, pkid, seed) in [
        ("Claude", ALICE, 1),
        ("boss", "boss@example.com", 2),
        ("Mallory", "mallory@evil.example", 66),
    ] {
        let text = impostor(sender, pkid, &key(Algorithm::Ed25519, seed)).unwrap();
        assert_eq!(
            judge(&text, &trust).word(),
            VerdictWord::Verified,
            "{sender}"
        );
    }
    // A name that a person pinned is that party's own, whatever it looks like.
    let other = key(Algorithm::Ed25519, 7);
    trust
        .pin_anyway(pin("ciaude@example.org", &other, &["Cıaude"]))
        .unwrap();
    let text = impostor("CıAUDE", "ciaude@example.org", &other).unwrap();
    assert_eq!(judge(&text, &trust).word(), VerdictWord::Verified);
    let text = impostor("CLAUDE", ALICE, &key(Algorithm::Ed25519, 1)).unwrap();
    assert_eq!(judge(&text, &trust).word(), VerdictWord::Verified);
}

#[test]
fn a_look_alike_at_first_contact_is_stopped() {
    let mallory = key(Algorithm::Ed25519, 66);
    let text = impostor("𝐂LAUDE", "mallory@keys", &mallory).unwrap();
    let found = judge(&text, &trusting_alice());
    assert_eq!(
        outcome(&found),
        ("not-verified", "first-contact", Some("TRU-009"))
    );
    assert!(
        found.sentence().contains("looks like CLAUDE"),
        "{}",
        found.sentence()
    );
    assert_eq!(outcome(&judge(&text, &Trust::default())).0, "first-contact");
}

fn handed_in(
    from: &str,
    to: &str,
    peer: &Peer,
    rules: &RelayRules,
) -> Result<Admission, ErrorCode> {
    let text = format!(
        "[[{from}→{to} v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  Hello.\nsig: none\n[[END]]\n"
    );
    let document = Document::parse(&text, Reading::Strict);
    let verdict = verify(&document, &Trust::default(), &VerifyContext::at(now()));
    let candidate = AdmissionCandidate {
        document: &document,
        verdict: &verdict,
        proof: Proof::default(),
        peer,
        was_asked: false,
        at: now(),
    };
    admit(candidate, rules).map_err(|refusal| refusal.code)
}

fn list(names: &[&str]) -> Arc<NameList> {
    Arc::new(names.iter().copied().collect())
}

#[test]
fn a_relay_rejects_look_alikes_of_system_and_of_listed_names() {
    let mut rules = RelayRules {
        listed: KnownNames {
            configured: list(&["human://acme.example/ann"]),
            tokens: list(&["CHATGPT"]),
            pinned: Arc::default(),
        },
        ..RelayRules::default()
    };
    rules.listed.set_pins(&trusting_alice());
    let local = Peer::local();
    for name in [
        "System",
        "ſystem",
        "SУSTEM",
        "ЅYSTEM",
        "SY\u{ad}STEM",
        "𝐒YSTEM",
        "5YSTEM\u{200b}",
    ] {
        let found = handed_in(name, "BOB", &local, &rules);
        let is_other = name.starts_with('5');
        assert_eq!(found.is_ok(), is_other, "{name}");
        if !is_other {
            assert_eq!(found.unwrap_err(), ErrorCode::Perm, "{name}");
        }
    }
    for name in [
        "CLАUDE",
        "𝐂LAUDE",
        "Cıaude",
        "CHATG\u{420}T",
        "CHAT\u{200b}GPT",
        "human://аcme.example/ann",
        "human://acme.example/ANN",
    ] {
        let found = handed_in(name, "BOB", &local, &rules).unwrap_err();
        assert_eq!(found, ErrorCode::Perm, "{name}");
        let found = handed_in("BOB", name, &local, &rules).unwrap_err();
        assert_eq!(found, ErrorCode::Perm, "{name}");
    }
    for name in [
        "CLAUDE\u{fe0f}",
        "CLAUDE\u{3000}",
        "CLAUDE\u{a0}X",
        "human://acme.example/ann\u{fe0f}",
    ] {
        let found = handed_in(name, "BOB", &local, &rules).unwrap_err();
        assert_eq!(found, ErrorCode::Format, "{name}");
    }
    // Names that are listed themselves, in any case, and those of others.
    for name in [
        "Claude",
        "chatgpt",
        "HUMAN://Acme.Example/ann",
        "Иван",
        "BOB",
    ] {
        assert!(handed_in(name, "BOB", &local, &rules).is_ok(), "{name}");
        assert!(handed_in("BOB", name, &local, &rules).is_ok(), "{name}");
    }
    // A pin that is gone lists nothing any more.
    rules.listed.set_pins(&Trust::default());
    assert!(handed_in("CLАUDE", "BOB", &local, &rules).is_ok());
    assert!(handed_in("CHATG\u{420}T", "BOB", &local, &rules).is_err());
}

#[test]
fn access_and_routes_go_by_the_same_name() {
    let pattern = |text: &str| Pattern::parse(text).unwrap();
    for (text, address, fits) in [
        ("JÜRGEN", "jürgen", true),
        ("Straße", "STRASSE", true),
        ("CLAUDE", "Cıaude", false),
        ("STRA*", "straße", true),
        ("straß*", "STRASSENBAHN", true),
        ("human://ACME.example/*", "Human://acme.EXAMPLE/ann", true),
        ("human://acme.example/A*", "human://acme.example/ann", false),
        ("human://Ann*", "human://Ann@acme.example", true),
        ("human://Ann*", "human://ann@acme.example", false),
        ("human*", "human://acme.example/ann", true),
        ("claude://code/*", "claude://chat/7", false),
        ("mcp://[::1]:80/*", "MCP://[::1]:80/x", true),
        ("mcp://A:8*", "mcp://a:80/x", true),
        ("mcp://a:8/*", "mcp://a:80/x", false),
        ("email:ann@ACME.*", "email:ann@acme.example", true),
        ("tel:+1*", "TEL:+1-555", true),
        ("*", "anything", true),
    ] {
        assert_eq!(pattern(text).matches(address), fits, "{text} {address}");
    }
    let routes = Routes {
        table: vec![Route {
            to: pattern("jürgen"),
            by: Handler::File,
            inside: true,
            open: false,
        }],
        names: [("ÄNN", "human://acme.example/ann")]
            .map(|(n, a)| (crosstalk_envelope::name::name_key(n), a.to_owned()))
            .into(),
        ..Routes::default()
    };
    assert_eq!(routes.named("änn"), "human://acme.example/ann");
    assert_eq!(routes.choose("JÜRGEN", None), Ok(Handler::File));
    let peer = Peer {
        name: "t".into(),
        role: Role::Person,
        addresses: vec![pattern("human://acme.example/ann")],
        domain: Some("BÜRO.example".into()),
        is_local: false,
        courier: Vec::new(),
    };
    assert!(peer.speaks_for("Human://ACME.example/ann") && peer.speaks_for("mcp://x@büro.example"));
    assert!(!peer.speaks_for("human://acme.example/ANN"));
}

/// No organisation owns a phone number, and what a person carries to another network has left, too.
#[test]
fn no_third_party_is_not_carried_to_a_phone_number() {
    let sent = |to: &str, by: &str, policy: &str| {
        let text = format!(
            "[[BOB→{to} v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nmeta: routing\nX-Delivery: {by}\n\
             X-Policy: {policy}\nbody: |\n  Hello.\nsig: none\n[[END]]\n"
        );
        let document = Document::parse(&text, Reading::Strict);
        let verdict = verify(&document, &Trust::default(), &VerifyContext::at(now()));
        let candidate = AdmissionCandidate {
            document: &document,
            verdict: &verdict,
            proof: Proof::default(),
            peer: &Peer::local(),
            was_asked: false,
            at: now(),
        };
        let admitted = admit(candidate, &RelayRules::default());
        admitted.map(drop).map_err(|refusal| refusal.code)
    };
    for (to, by, may) in [
        ("tel:+1-555-0100", "copy_paste", false),
        ("tel:+1-555-0100", "inbox", false),
        ("human://+1-555-0100", "copy_paste", false),
        ("slack://workspace/channel", "copy_paste", false),
        ("slack://workspace/channel", "inbox", true),
        ("human://boss/inbox", "copy_paste", true),
        ("CLAUDE", "copy_paste", true),
    ] {
        let expected = match may {
            true => Ok(()),
            false => Err(ErrorCode::Perm),
        };
        assert_eq!(sent(to, by, "no_third_party"), expected, "{to} {by}");
        assert_eq!(sent(to, by, "ok_to_cache"), Ok(()), "{to} {by}");
    }
}
