//! Messages that are dropped into a folder.

use super::{Post, QUICK, eventually, message, meta, names_in, request};
use crosstalk_protocol::relay::DeliveryState;

fn config() -> String {
    format!("{QUICK}[[route]]\nto = \"drop://*\"\nby = \"file\"\nfolder = \"FOLDER/out\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_becomes_a_file() {
    let post = Post::start(&config());
    post.send(&request("M1", "drop://box")).await;
    post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(names_in(&post.path("out")), ["M1.aict"]);
    let text = std::fs::read_to_string(post.path("out/M1.aict")).unwrap();
    assert_eq!(meta(&text, "audit", "Hop").as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_no_path() {
    let post = Post::start(&config());
    std::fs::write(post.path("victim.aict"), "mine").unwrap();
    let ids = [
        "../victim",
        "/tmp/x",
        "-rf",
        "..",
        "a/../../victim",
        "CON",
        "$HOME",
        "a;touch-pwned",
    ];
    for id in ids {
        let text = message(id, "ANN", "drop://box", "REQUEST").thread("T1");
        post.send(&text.build().unwrap()).await;
        post.is(id, DeliveryState::Delivered).await;
    }
    let names = names_in(&post.path("out"));
    assert_eq!(names.len(), ids.len(), "{names:?}");
    assert!(
        names
            .iter()
            .all(|n| n.ends_with(".aict") && !n.starts_with(['.', '-'])),
        "{names:?}"
    );
    assert_eq!(
        std::fs::read_to_string(post.path("victim.aict")).unwrap(),
        "mine"
    );
    let outside: Vec<String> = names_in(post.folder.path());
    assert!(
        !outside
            .iter()
            .any(|n| n.ends_with(".aict") && n != "victim.aict"),
        "{outside:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_file_is_not_replaced() {
    let post = Post::start(&config());
    std::fs::create_dir(post.path("out")).unwrap();
    std::fs::write(post.path("out/M1.aict"), "of somebody else").unwrap();
    post.send(&request("M1", "drop://box")).await;
    post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(
        std::fs::read_to_string(post.path("out/M1.aict")).unwrap(),
        "of somebody else"
    );
    assert_eq!(names_in(&post.path("out")).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_can_not_be_written_is_tried_again() {
    let post = Post::start(&config().replace("attempts = 3", "attempts = 1000000"));
    // A file is in the place of the folder.
    std::fs::write(post.path("out"), "").unwrap();
    post.send(&request("M1", "drop://box")).await;
    let way = post.tried("M1", 2).await;
    assert!(way.reason.unwrap().contains("can't be written into"));
    std::fs::remove_file(post.path("out")).unwrap();
    post.is("M1", DeliveryState::Delivered).await;
    eventually("the file", async || {
        post.path("out/M1.aict").exists().then_some(())
    })
    .await;
}

/// A message is for its recipient, and not for everybody on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn file_and_its_folder_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let post = Post::start(&config());
    post.send(&request("M1", "drop://box")).await;
    post.is("M1", DeliveryState::Delivered).await;
    for (path, mode) in [("out", 0o700), ("out/M1.aict", 0o600)] {
        let found = std::fs::metadata(post.path(path)).unwrap().permissions();
        assert_eq!(found.mode() & 0o777, mode, "{path}");
    }
}
