//! Words, and what people type.

use super::{file, put};
use crate::letter::letter;
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Field, Page, Search, Term};
use crosstalk_store::SqliteStore;

fn found(store: &SqliteStore, typed: &str) -> Vec<String> {
    let search = Search::parse(typed).unwrap();
    let listing = store.search(&search, Page::first(50)).unwrap();
    listing.items.into_iter().map(|r| r.id).collect()
}

#[test]
fn words_phrases_and_beginnings_are_found() {
    let store = &mut Sqlite::new().store;
    file(
        store,
        &letter("M1")
            .thread("T1")
            .body("short expiry\nfor the access token"),
    );
    file(
        store,
        &letter("M2")
            .thread("T1")
            .body("an expiry so short")
            .context("the-cache"),
    );
    for (typed, wanted) in [
        ("expiry", vec!["M2", "M1"]),
        ("\"short expiry\"", vec!["M1"]),
        ("\"expiry short\"", vec![]),
        ("short expiry", vec!["M2", "M1"]),
        ("tok*", vec!["M1"]),
        ("to*", vec!["M1"]),
        ("t*", vec!["M2", "M1"]),
        ("tok", vec![]),
        ("\"access tok\"*", vec!["M1"]),
        ("cache", vec!["M2"]),
        ("the-cache", vec!["M2"]),
        ("expiry nothing", vec![]),
    ] {
        assert_eq!(found(store, typed), wanted, "{typed}");
    }
}

#[test]
fn fields_are_searched_alone() {
    let store = &mut Sqlite::new().store;
    file(
        store,
        &letter("M1")
            .thread("T1")
            .between("agent://ann.example/x", "BOB")
            .user("carla"),
    );
    file(
        store,
        &letter("M2")
            .thread("T1")
            .between("BOB", "DAN")
            .body("ann")
            .intent("QUESTION")
            .context("ports"),
    );
    for (typed, wanted) in [
        ("from:ann", vec!["M1"]),
        ("from:agent://ann.example/x", vec!["M1"]),
        ("from:carla", vec!["M1"]),
        ("ann", vec!["M2", "M1"]),
        ("to:bob", vec!["M1"]),
        ("from:bob", vec!["M2"]),
        ("intent:question", vec!["M2"]),
        ("intent:request", vec!["M2", "M1"]),
        ("context:por*", vec!["M2"]),
        ("context:ann", vec![]),
        ("from:ann to:bob", vec!["M1"]),
        ("from:ann to:dan", vec![]),
        ("body:ann", vec![]),
    ] {
        assert_eq!(found(store, typed), wanted, "{typed}");
    }
}

#[test]
fn accents_case_and_scripts() {
    let store = &mut Sqlite::new().store;
    let texts = [
        ("M1", "Größe der Tür in Zürich"),
        ("M2", "Việt Nam"),
        ("M3", "認証トークンの期限"),
        ("M4", "ПРИВЕТ мир"),
        ("M5", "ภาษาไทย"),
        ("M6", "हिन्दी में"),
        ("M7", "e\u{301}te\u{301} 👋🏽 42"),
    ];
    for (id, body) in texts {
        file(store, &letter(id).thread("T1").body(body));
    }
    for (typed, wanted) in [
        ("TÜR", "M1"),
        ("zurich", "M1"),
        ("viet", "M2"),
        ("トークン", "M3"),
        ("証ト", "M3"),
        ("привет", "M4"),
        ("ไทย", "M5"),
        ("हिन्दी", "M6"),
        ("été", "M7"),
        ("42", "M7"),
    ] {
        assert_eq!(found(store, typed), [wanted], "{typed}");
    }
    assert!(found(store, "ンのト").is_empty());
}

#[test]
fn nothing_that_is_typed_is_an_operator() {
    let store = &mut Sqlite::new().store;
    file(
        store,
        &letter("M1")
            .thread("T1")
            .body("alpha beta NEAR gamma or not AND"),
    );
    file(store, &letter("M2").thread("T1").body("beta"));
    for (typed, wanted) in [
        ("alpha OR zeta", vec![]),
        ("alpha or", vec!["M1"]),
        ("beta NOT alpha", vec!["M1"]),
        ("-alpha", vec!["M1"]),
        ("NEAR(alpha gamma)", vec![]),
        ("NEAR(alpha beta)", vec![]),
        ("near alpha", vec!["M1"]),
        ("AND", vec!["M1"]),
        ("\"", vec![]),
        ("alpha\"", vec!["M1"]),
        ("\"alpha\" \"", vec!["M1"]),
        ("\"\"alpha\"\"", vec!["M1"]),
        ("*alpha", vec!["M1"]),
        ("al*pha", vec![]),
        ("alpha**", vec!["M1"]),
        ("^alpha", vec!["M1"]),
        ("alpha+beta", vec!["M1"]),
        ("{body}:alpha", vec![]),
        ("body : alpha", vec![]),
        ("alpha; DROP TABLE message", vec![]),
        ("'alpha'", vec!["M1"]),
        ("alpha\u{0}", vec!["M1"]),
        ("alpha\u{0}zeta", vec![]),
        ("(alpha", vec!["M1"]),
        ("alpha)", vec!["M1"]),
        ("alp%", vec![]),
        ("rank:1", vec![]),
        ("from:\"", vec![]),
        ("\u{10ffff}", vec![]),
        ("\u{1e94b} \u{16ff0}", vec![]),
    ] {
        match Search::parse(typed) {
            Ok(_) => assert_eq!(found(store, typed), wanted, "{typed:?}"),
            Err(_) => assert!(wanted.is_empty(), "{typed:?}"),
        }
    }
    // What no parser makes is taken as words, too.
    for word in [
        "alpha\" OR \"beta",
        "\"",
        "",
        "\u{0}",
        "body:",
        "*",
        "alpha* OR",
    ] {
        for (field, prefix) in [(None, false), (Some(Field::From), true)] {
            let words = vec![word.to_owned()];
            let terms = vec![Term {
                field,
                words,
                prefix,
            }];
            let listing = store.search(&Search { terms }, Page::first(9)).unwrap();
            assert!(listing.items.is_empty(), "{word:?}");
        }
    }
    let long: String = "alpha ".repeat(500);
    assert_eq!(found(store, &long), ["M1"]);
    let listing = store
        .search(&Search { terms: vec![] }, Page::first(9))
        .unwrap();
    assert!(listing.items.is_empty());
}

#[test]
fn the_latest_comes_first() {
    let store = &mut Sqlite::new().store;
    for n in 0..40 {
        file(store, &letter(&format!("M{n:02}")).thread("T1").at(100 - n));
    }
    let search = Search::parse("port").unwrap();
    let listing = store.search(&search, Page { limit: 3, skip: 2 }).unwrap();
    let some: Vec<String> = listing.items.into_iter().map(|r| r.id).collect();
    assert_eq!(
        (some, listing.more),
        (["M37", "M36", "M35"].map(str::to_owned).to_vec(), true)
    );
}

#[test]
fn what_is_forgotten_is_not_found() {
    let store = &mut Sqlite::new().store;
    file(
        store,
        &letter("M1")
            .thread("T1")
            .body("quicksilver")
            .context("mercury"),
    );
    file(store, &letter("M2").thread("T2").body("quicksilver"));
    store.forget("T1").unwrap();
    assert_eq!(found(store, "quicksilver"), ["M2"]);
    assert!(found(store, "mercury").is_empty());
}

#[test]
fn a_better_text_is_searched() {
    let store = &mut Sqlite::new().store;
    let one = letter("M1").thread("T1").body("quicksilver");
    file(store, &one);
    put(store, &one.verdict(VerdictWord::Verified, Some("ann")));
    assert_eq!(found(store, "quicksilver"), ["M1"]);
    assert_eq!(store.forget("T1").unwrap(), 1);
    assert!(found(store, "quicksilver").is_empty());
}
