//! What verifying does, and what it leaves alone.

use crate::run::{Home, folder};
use crosstalk_cli::exit;
use crosstalk_envelope::unicode::is_hidden;

fn file(name: &str) -> String {
    let path = folder("tests/cmd/verify.in").join(name);
    path.to_str().unwrap().to_owned()
}

fn believer(name: &str) -> Home {
    let home = Home::new(name);
    assert_eq!(
        home.run(&["trust", "import", &file("trust.toml")], "").code,
        0
    );
    home
}

#[test]
fn output_of_text_verifies() {
    let home = believer("text");
    for (name, code) in [
        ("bare.txt", 0),
        ("pasted.txt", 0),
        ("first.txt", exit::FIRST_CONTACT),
        ("reflowed.txt", exit::DAMAGED),
    ] {
        let printed = home.run(&["verify", "--text", &file(name)], "");
        assert_eq!(printed.code, i32::from(code), "{name}");
        let again = home.run(&["verify"], &printed.out);
        let code = if code == exit::DAMAGED { 0 } else { code };
        assert_eq!(again.code, i32::from(code), "{name}: {}", printed.out);
        assert!(!again.out.contains("repaired"), "{name}: {}", again.out);
    }
    for name in [
        "unsigned.txt",
        "unknown.txt",
        "altered.txt",
        "truncated.txt",
        "forged.txt",
        "stripped.txt",
        "added.txt",
        "changed.txt",
        "revoked.txt",
        "cut.txt",
    ] {
        let printed = home.run(&["verify", "--text", &file(name)], "");
        assert_eq!(printed.out, "", "{name}");
        assert!(!printed.err.is_empty() && printed.code != 0, "{name}");
    }
}

#[test]
fn verifying_leaves_no_trace() {
    let home = Home::new("trace");
    for name in ["first.txt", "bare.txt", "unsigned.txt"] {
        for form in ["--json", "--text"] {
            home.run(&["verify", form, &file(name)], "");
        }
    }
    assert!(!home.path("crosstalk").exists());
    let home = believer("trace-trust");
    let trust = home.path("crosstalk").join("trust.toml");
    let before = std::fs::read(&trust).unwrap();
    home.run(&["verify", &file("first.txt"), &file("changed.txt")], "");
    assert_eq!(std::fs::read(&trust).unwrap(), before);
}

/// A trust file that can't be read is no reason to believe more.
#[test]
fn a_broken_trust_file_stops_the_check() {
    let home = believer("broken");
    let trust = home.path("crosstalk").join("trust.toml");
    let text = std::fs::read_to_string(&trust).unwrap();
    std::fs::write(&trust, text.replace("since", "sinse")).unwrap();
    let ended = home.run(&["verify", &file("first.txt")], "");
    assert_eq!((ended.code, ended.out.as_str()), (12, ""), "{}", ended.err);
    assert!(ended.err.contains("sinse"), "{}", ended.err);
}

/// What others write into keys and messages about keys is shown, and does nothing.
#[test]
fn reasons_and_senders_are_escaped() {
    let hidden = |c: char| (c.is_control() && c != '\n') || is_hidden(c);
    let (mallory, bob) = (Home::new("hostile-mallory"), Home::new("hostile-bob"));
    let evil = "x\u{202e}\u{e0041}y";
    let new = ["key", "new", "--id", "mallory@example.org"];
    assert_eq!(mallory.run(&new, "").code, 0);
    let message = format!(
        "[[{evil}→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\nbody: |\n  {evil}\nsig: none\n[[END]]\n"
    );
    let signed = mallory.run(&["sign", "--with-key"], &message);
    assert_eq!(signed.code, 0, "{}", signed.err);
    let revoke = ["key", "revoke", "mallory@example.org", "--reason", evil];
    let revoked = mallory.run(&revoke, "").out;
    for (arguments, stdin) in [
        (&["verify"][..], &signed.out),
        (&["verify", "--json"], &signed.out),
        (&["trust", "pin", "-"], &signed.out),
        (&["trust", "list"], &signed.out),
        (&["trust", "check", "--json"], &signed.out),
        (&["trust", "import", "-"], &revoked),
        (&["trust", "list"], &revoked),
        (&["trust", "list", "--json"], &revoked),
        (&["verify"], &signed.out),
        (&["trust", "pin", "-"], &signed.out),
    ] {
        let ended = bob.run(arguments, stdin);
        let all = ended.out + &ended.err;
        assert!(
            !all.is_empty() && !all.contains(hidden),
            "{arguments:?}: {all:?}"
        );
    }
    let shown = mallory.run(&["key", "show", "mallory@example.org"], "").out;
    assert!(
        shown.contains("revoked") && !shown.contains(hidden),
        "{shown:?}"
    );
}
