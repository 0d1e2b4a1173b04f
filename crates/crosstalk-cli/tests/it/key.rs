//! Keys from the first to the last day, with random keys, real time and passphrases.

use crate::run::{Home, folder};
use serde_json::Value;

const MESSAGE: &str = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: tests\n\
    intent: REQUEST\nbody: |\n  Did they pass?\nsig: none\n[[END]]\n";

fn ok(home: &Home, arguments: &[&str], stdin: &str) -> String {
    let ended = home.run(arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended.out
}

fn verdict(home: &Home, text: &str) -> Value {
    let out = home.run(&["verify", "--json"], text).out;
    serde_json::from_str(&out).unwrap()
}

/// Two people, a key of each kind, from first contact to the revocation.
#[test]
fn a_key_is_made_pinned_replaced_and_revoked() {
    for algorithm in ["ed25519", "secp256r1"] {
        let (alice, bob) = (
            Home::new(&format!("alice-{algorithm}")),
            Home::new(&format!("bob-{algorithm}")),
        );
        let id = "alice@example.com";
        ok(
            &alice,
            &["key", "new", "--id", id, "--algorithm", algorithm],
            "",
        );
        assert_eq!(
            alice.run(&["key", "rotate", id, "--again"], "").code,
            14,
            "it took the place of none"
        );
        let first = ok(&alice, &["sign", "--with-key"], MESSAGE);
        assert_eq!(verdict(&bob, &first)["verdict"], "first-contact");
        assert_eq!(
            verdict(&bob, &first)["trust"],
            "first-contact",
            "verifying pins nothing"
        );
        ok(&bob, &["trust", "pin", "-"], &first);
        assert_eq!(verdict(&bob, &first)["trust"], "pinned");
        let bare = ok(&alice, &["sign"], MESSAGE);
        assert_eq!(verdict(&bob, &bare)["verdict"], "verified");

        let rotation = ok(
            &alice,
            &["key", "rotate", id, "--new-id", "alice@example.com/2"],
            "",
        );
        assert_eq!(
            verdict(&bob, &rotation)["verdict"],
            "verified",
            "{rotation}"
        );
        let again = ok(
            &alice,
            &["key", "rotate", "alice@example.com/2", "--again"],
            "",
        );
        assert_eq!(verdict(&bob, &again)["verdict"], "verified", "{again}");
        // Who missed the announcement can follow with any message that has the key.
        let second = ok(&alice, &["sign", "--with-key"], MESSAGE);
        assert_eq!(verdict(&bob, &second)["verdict"], "verified", "{second}");
        let lost = ok(&alice, &["sign"], MESSAGE);
        assert_eq!(verdict(&bob, &lost)["verdict"], "unknown-key");
        ok(&bob, &["trust", "import", "-"], &second);
        assert_eq!(verdict(&bob, &lost)["verdict"], "verified");
        assert_eq!(
            verdict(&bob, &bare)["verdict"],
            "verified",
            "the grace period"
        );
        assert_eq!(alice.run(&["sign", "--key", id], MESSAGE).code, 14);

        let revocation = ok(
            &alice,
            &["key", "revoke", "alice@example.com/2", "--reason", "lost"],
            "",
        );
        ok(&bob, &["trust", "import", "-"], &revocation);
        assert_eq!(verdict(&bob, &second)["verdict"], "revoked");
        assert_eq!(verdict(&alice, &second)["verdict"], "revoked");
        assert_eq!(
            bob.run(&["trust", "pin", "-", "--replace"], &second).code,
            25
        );
        assert_eq!(
            bob.run(&["trust", "remove", "alice@example.com/2"], "")
                .code,
            1
        );
        assert_eq!(verdict(&bob, &second)["verdict"], "revoked");
        assert_eq!(alice.run(&["sign"], MESSAGE).code, 1, "no key is left");
    }
}

#[test]
fn a_key_that_is_its_own_id_needs_no_pin() {
    let (alice, bob) = (Home::new("did-alice"), Home::new("did-bob"));
    ok(&alice, &["key", "new", "--id", "did:key"], "");
    let message = ok(&alice, &["sign"], MESSAGE);
    assert_eq!(verdict(&bob, &message)["trust"], "did");
    let other = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
    assert_eq!(alice.run(&["key", "new", "--id", other], "").code, 12);
}

#[test]
fn another_key_for_a_known_id_needs_a_person() {
    let (alice, mallory, bob) = (
        Home::new("change-alice"),
        Home::new("change-mallory"),
        Home::new("change-bob"),
    );
    for home in [&alice, &mallory] {
        ok(home, &["key", "new", "--id", "alice@example.com"], "");
    }
    ok(&mallory, &["key", "new", "--id", "mallory@example.org"], "");
    let genuine = ok(&alice, &["sign", "--with-key"], MESSAGE);
    ok(&bob, &["trust", "pin", "-"], &genuine);
    for id in ["alice@example.com", "mallory@example.org"] {
        let forged = ok(&mallory, &["sign", "--with-key", "--key", id], MESSAGE);
        assert_eq!(verdict(&bob, &forged)["verdict"], "not-verified", "{id}");
        let refused = bob.run(&["trust", "pin", "-"], &forged);
        assert_eq!((refused.code, refused.out.as_str()), (14, ""), "{id}");
        assert!(refused.err.contains("other key"), "{}", refused.err);
        assert_eq!(verdict(&bob, &genuine)["verdict"], "verified", "{id}");
    }
    let forged = ok(
        &mallory,
        &["sign", "--with-key", "--key", "alice@example.com"],
        MESSAGE,
    );
    ok(&bob, &["trust", "pin", "-", "--replace"], &forged);
    assert_eq!(verdict(&bob, &forged)["verdict"], "verified");
    assert_eq!(
        verdict(&bob, &genuine)["verdict"],
        "not-verified",
        "nobody knows when it was signed"
    );
}

#[test]
fn a_compared_key_counts_as_pinned_by_hand() {
    let (alice, bob) = (Home::new("compared-alice"), Home::new("compared-bob"));
    ok(&alice, &["key", "new", "--id", "alice@example.com"], "");
    let message = ok(&alice, &["sign", "--with-key"], MESSAGE);
    let how = || {
        let out = ok(&bob, &["trust", "list", "--json"], "");
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["keys"].as_array().unwrap().len(), 1);
        assert_eq!(value["keys"][0]["senders"][0], "CLAUDE");
        value["keys"][0]["how"].as_str().unwrap().to_owned()
    };
    ok(&bob, &["trust", "pin", "-"], &message);
    assert_eq!(how(), "first-contact");
    ok(&bob, &["trust", "pin", "-", "--compared"], &message);
    assert_eq!(how(), "manual");
    ok(&bob, &["trust", "pin", "-"], &message);
    assert_eq!(how(), "manual", "a message does not take that back");
}

#[test]
fn passphrases_come_from_files_and_variables_and_never_from_arguments() {
    let home = Home::new("passphrase");
    let secret = home.path("secret");
    std::fs::write(&secret, "correct horse\nignored\n").unwrap();
    let secret = secret.to_str().unwrap();
    let id = "alice@example.com";
    ok(
        &home,
        &["key", "new", "--id", id, "--passphrase-file", secret],
        "",
    );
    let pass = |value| [("CROSSTALK_PASSPHRASE", value)];
    let with = |value, arguments: &[&str]| home.run_with(&pass(value), arguments, MESSAGE).code;
    assert_eq!(with("correct horse", &["sign"]), 0);
    assert_eq!(with("wrong horse", &["sign"]), 14);
    assert_ne!(with("", &["sign"]), 0);
    assert_eq!(
        home.run(&["sign", "--passphrase-file", secret], MESSAGE)
            .code,
        0
    );
    let missing = home.run(&["sign", "--passphrase-file", "no such file"], MESSAGE);
    assert_eq!((missing.code, missing.out.as_str()), (1, ""));

    let change = [
        ("CROSSTALK_PASSPHRASE", "correct horse"),
        ("CROSSTALK_NEW_PASSPHRASE", "battery staple"),
    ];
    assert_eq!(
        home.run_with(&change, &["key", "passphrase", id], "").code,
        0
    );
    assert_eq!(with("correct horse", &["sign"]), 14);

    let backup = home.path("backup");
    let backup = backup.to_str().unwrap();
    let arguments = ["key", "backup", id, "--to", backup];
    let made = home.run_with(&pass("battery staple"), &arguments, "");
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.err.contains("no one can"), "{}", made.err);
    assert_eq!(
        with("battery staple", &arguments),
        1,
        "a file that is there stays"
    );
    let other = Home::new("passphrase-other");
    let import = ["key", "import", backup];
    assert_eq!(other.run_with(&pass("wrong"), &import, "").code, 14);
    assert_eq!(other.run_with(&pass("battery staple"), &import, "").code, 0);
    assert_eq!(other.run_with(&pass("wrong"), &["sign"], MESSAGE).code, 14);
    assert_eq!(
        other
            .run_with(&pass("battery staple"), &["sign"], MESSAGE)
            .code,
        0
    );

    assert_eq!(
        with("battery staple", &["key", "passphrase", id, "--remove"]),
        0
    );
    assert_eq!(home.run(&["sign"], MESSAGE).code, 0);
}

/// Nothing that was asked for publicly has the private key in it.
#[test]
fn the_private_key_is_shown_only_on_request() {
    let home = Home::new("private");
    let pem = folder("tests/cmd/examples/alice.pem");
    let text = std::fs::read_to_string(&pem).unwrap();
    let secret: String = text.lines().filter(|l| !l.starts_with('-')).collect();
    let secret = secret.get(secret.len() - 32..).unwrap();
    let id = "alice@example.com";
    ok(
        &home,
        &["key", "import", pem.to_str().unwrap(), "--id", id],
        "",
    );
    for arguments in [
        &["key", "list"][..],
        &["key", "list", "--json"],
        &["key", "show", id],
        &["key", "show", id, "--json"],
        &["key", "export", id],
        &["key", "export", id, "--format", "dns"],
        &["key", "export", id, "--format", "meta"],
        &[
            "sign",
            "--with-key",
            pem.with_file_name("question.crosstalk").to_str().unwrap(),
        ],
        &["key", "rotate", id],
        &["key", "revoke", id],
    ] {
        let ended = home.run(arguments, "");
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
        assert!(!(ended.out + &ended.err).contains(secret), "{arguments:?}");
    }
    let other = Home::new("private-other");
    ok(
        &other,
        &["key", "import", pem.to_str().unwrap(), "--id", id],
        "",
    );
    let exported = other.run(&["key", "export", id, "--private"], "");
    assert!(exported.out.contains(secret) && exported.err.contains("private key"));
    assert_eq!(
        other
            .run(&["key", "export", id, "--private", "--format", "dns"], "")
            .code,
        2
    );
}

#[test]
fn signed_message_is_that_of_the_specification() {
    let home = Home::new("spec");
    let examples = folder("tests/cmd/examples");
    let file = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let id = "alice@example.com";
    ok(
        &home,
        &["key", "import", &file("alice.pem"), "--id", id],
        "",
    );
    let at = "2025-10-09T16:00:04Z";
    let signed = ok(
        &home,
        &[
            "sign",
            "--with-key",
            "--at",
            at,
            &file("question.crosstalk"),
        ],
        "",
    );
    assert_eq!(signed, std::fs::read_to_string(file("signed.txt")).unwrap());
    let spec = std::fs::read_to_string(folder("../../spec/trust.md")).unwrap();
    assert!(spec.contains(&signed));
}
