//! The story of `crosstalk demo`: it happens, tells what happened, and touches nothing else.

use crate::run::{Ended, Home};
use crate::schema::{assert_valid, validator};
use serde_json::{Value, json};
use std::path::Path;

fn demo(home: &Home, arguments: &[&str]) -> Ended {
    let ended = home.run(&[&["demo"], arguments].concat(), "");
    assert_eq!(ended.code, 0, "{}\n{}", ended.out, ended.err);
    ended
}

/// How many files and folders are in a folder.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn results_are_facts_of_the_json() {
    let home = Home::new("demo-json");
    let told = demo(&home, &["--json"]);
    assert_eq!(told.err, "");
    let told = assert_valid(&validator("demo"), &told.out, "demo");
    let chapters = told["chapters"].as_array().unwrap();
    assert_eq!(chapters.len(), 7);
    for chapter in chapters {
        assert_eq!(
            (&chapter["ok"], &chapter["error"]),
            (&json!(true), &Value::Null)
        );
    }
    let fact = |number: usize, name: &str| &told["chapters"][number - 1]["facts"][name];
    assert_eq!(fact(1, "participants").as_array().unwrap().len(), 3);
    assert_eq!(
        (fact(2, "verified"), fact(2, "forgery_found")),
        (&json!(true), &json!(true))
    );
    assert_eq!(fact(3, "outcome"), "Saturday");
    assert_eq!(
        fact(3, "tally"),
        &json!({"Friday": 1, "Saturday": 2, "Sunday": 0})
    );
    assert_eq!(
        fact(3, "read_from_prose"),
        &json!(["agent://demo.example/critic"])
    );
    assert_eq!(fact(3, "recounted"), true);
    assert_eq!(fact(4, "decided_by"), "human://demo.example/ann");
    assert_eq!(fact(5, "assurance"), "pinned");
    assert_eq!(fact(5, "longer_refused_with"), "E-CONSENT");
    assert_eq!(
        (fact(6, "erased"), fact(6, "cancelled")),
        (&json!(3), &json!(1))
    );
    assert!(fact(6, "files_with_text_before").as_u64() > Some(0));
    assert_eq!(fact(6, "files_with_text_after"), 0);
    assert_eq!(fact(6, "refused_with"), "E-CONSENT");
    assert_eq!(fact(7, "verified_offline"), true);
    assert_eq!(fact(7, "extends_held_checkpoint"), true);
    assert_eq!(fact(7, "erased"), fact(6, "erased"));
    assert_eq!(fact(7, "tampering_found_in"), "messages/4.aict");
    assert_eq!(count(&home.path("")), 0, "nothing of the person is touched");
}

#[test]
fn kept_demo_can_be_checked_with_the_named_commands() {
    let home = Home::new("demo-keep");
    let place = Home::new("demo-kept");
    let folder = place.path("story");
    let told = demo(&home, &["--keep", folder.to_str().unwrap()]);
    assert!(
        told.out.contains("All 7 chapters succeeded."),
        "{}",
        told.out
    );
    assert_eq!(count(&home.path("")), 0, "nothing of the person is touched");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (key, held) = (file("relay.key"), file("held.note"));
    let check = |bundle: &str| {
        let bundle = file(bundle);
        let arguments = [
            "audit",
            "verify",
            &bundle,
            "--key",
            &key,
            "--checkpoint",
            &held,
        ];
        home.run(&arguments, "")
    };
    let whole = check("bundle");
    assert_eq!(whole.code, 0, "{}", whole.out);
    assert!(whole.out.contains("3 erased"), "{}", whole.out);
    let changed = check("tampered");
    assert_eq!(changed.code, 24, "{}", changed.out);
    assert!(changed.out.contains("messages/4.aict"), "{}", changed.out);
    let counted = home.run(
        &[
            "poll",
            "collate",
            "--json",
            &file("envelopes/poll.crosstalk"),
        ],
        "",
    );
    let counted: Value = serde_json::from_str(&counted.out).unwrap();
    assert_eq!(counted["outcome"], "Saturday");
    // A folder in which something is belongs to somebody.
    let again = home.run(&["demo", "--keep", folder.to_str().unwrap()], "");
    assert_eq!(again.code, 1);
    assert!(again.err.contains("is not empty"), "{}", again.err);
}

#[test]
fn the_story_fits_on_the_screen_and_is_plain_where_nobody_looks() {
    let home = Home::new("demo-text");
    let told = demo(&home, &[]);
    assert!(
        !told.out.contains('\u{1b}') && told.err.is_empty(),
        "{}",
        told.err
    );
    for number in 1..=7 {
        assert!(told.out.contains(&format!(" {number} of 7\n")), "{number}");
    }
    assert!(
        told.out.contains("crosstalk demo --keep story"),
        "{}",
        told.out
    );
    let colored = home.run(&["--color", "always", "demo", "--fast"], "");
    assert!(colored.out.contains('\u{1b}'));
}
