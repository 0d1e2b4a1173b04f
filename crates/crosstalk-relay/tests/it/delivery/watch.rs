//! Messages that are taken from a folder.

use super::{Post, eventually, message, names_in, request};

fn post() -> Post {
    Post::start("[[watch]]\nfolder = \"FOLDER/in\"\naddresses = [\"ANN\", \"bot://*\"]\n")
}

/// Puts a file there, as a whole.
fn put(post: &Post, name: &str, content: &str) {
    std::fs::create_dir_all(post.path("in")).unwrap();
    let new = post.path("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, post.path("in").join(name)).unwrap();
}

async fn is_in(post: &Post, folder: &str, name: &str) {
    let path = post.path("in").join(folder).join(name);
    eventually(&format!("{folder}/{name}"), async || {
        path.exists().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_accepted_and_moved_away() {
    let post = post();
    let two = format!("{}\n{}", request("M2", "BOB"), request("M3", "BOB"));
    put(&post, "one.aict", &request("M1", "BOB"));
    put(&post, "two.CROSSTALK", &two);
    put(&post, "notes.txt", "not for the relay");
    put(&post, ".hidden.aict", &request("M4", "BOB"));
    is_in(&post, "done", "one.aict").await;
    is_in(&post, "done", "two.CROSSTALK").await;
    let inbox = post.gets("BOB", 3).await;
    let mut ids: Vec<&str> = inbox.iter().map(|e| e.record.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["M1", "M2", "M3"]);
    assert_eq!(
        names_in(&post.path("in")),
        [".hidden.aict", "done", "notes.txt"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_file_is_moved_with_the_reason() {
    let post = post();
    let forged = message("M1", "BOSS", "BOB", "REQUEST").build().unwrap();
    put(&post, "forged.aict", &forged);
    put(&post, "broken.aict", "[[ANN→BOB v1]]\nuser: ann\n");
    put(&post, "prose.aict", "hello");
    std::fs::write(post.path("in/binary.aict"), b"\xff\xfe").unwrap();
    std::fs::write(post.path("secret.txt"), request("M2", "BOB")).unwrap();
    std::os::unix::fs::symlink(post.path("secret.txt"), post.path("in/link.aict")).unwrap();
    let big = std::fs::File::create(post.path("in/big.aict")).unwrap();
    big.set_len((64 << 20) + 1).unwrap();
    std::fs::create_dir(post.path("in/folder.aict")).unwrap();
    for (name, reason) in [
        ("forged.aict", "E-PERM"),
        ("broken.aict", "Line"),
        ("prose.aict", "Line"),
        ("binary.aict", "UTF-8"),
        ("link.aict", "link"),
        ("big.aict", "67108864"),
        ("folder.aict", "no file"),
    ] {
        is_in(&post, "refused", &format!("{name}.reason.txt")).await;
        let path = post.path("in/refused").join(format!("{name}.reason.txt"));
        let text = eventually("the reason", async || {
            std::fs::read_to_string(&path)
                .ok()
                .filter(|t| t.ends_with('\n'))
        })
        .await;
        assert!(text.contains(reason), "{name}: {text}");
    }
    assert_eq!(post.count().await, 0);
    assert_eq!(names_in(&post.path("in")), ["refused"]);
    assert!(post.path("secret.txt").exists());
}

/// The relay stopped after it took the message and before it moved the file: the file is there again.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_file_again_is_the_same_message() {
    let post = post();
    let without_id = "[[ANN→BOB v1]]\nuser: ann\nthread: T9\ncontext: c\nintent: REQUEST\nbody: |\n  Hello.\nsig: none\n[[END]]\n";
    for round in 0..2 {
        put(&post, "one.aict", &request("M1", "BOB"));
        put(&post, "two.aict", without_id);
        let prefix = if round == 0 { "" } else { "1-" };
        is_in(&post, "done", &format!("{prefix}one.aict")).await;
        is_in(&post, "done", &format!("{prefix}two.aict")).await;
    }
    assert_eq!(post.gets("BOB", 2).await.len(), 2);
    assert_eq!(names_in(&post.path("in/done")).len(), 4);
}

/// Whoever may put files there may put links there, too: the relay writes to none of them.
#[tokio::test(flavor = "multi_thread")]
async fn links_are_not_written_to() {
    let post = post();
    std::fs::write(post.path("precious"), "mine").unwrap();
    std::fs::create_dir_all(post.path("in/refused")).unwrap();
    let link = post.path("in/refused/prose.aict.reason.txt");
    std::os::unix::fs::symlink(post.path("precious"), link).unwrap();
    put(&post, "prose.aict", "hello");
    is_in(&post, "refused", "prose.aict").await;
    put(&post, "more.aict", "hello");
    is_in(&post, "refused", "more.aict.reason.txt").await;
    assert_eq!(
        std::fs::read_to_string(post.path("precious")).unwrap(),
        "mine"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_a_link_is_left_alone() {
    let post = post();
    std::fs::create_dir_all(post.path("in")).unwrap();
    std::fs::create_dir_all(post.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(post.path("elsewhere"), post.path("in/done")).unwrap();
    put(&post, "one.aict", &request("M1", "BOB"));
    post.gets("BOB", 1).await;
    put(&post, "prose.aict", "hello");
    is_in(&post, "refused", "prose.aict.reason.txt").await;
    assert!(names_in(&post.path("elsewhere")).is_empty());
}
