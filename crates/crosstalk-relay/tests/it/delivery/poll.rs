//! Polls: asked on every way, counted once, and counted again by anybody.

use super::{Post, QUICK, START, eventually, meta};
use crosstalk_envelope::id::ulid_of;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::poll::{Paper, collate, is_result};
use crosstalk_protocol::relay::port::CourierQuery;
use crosstalk_protocol::relay::{Handler, Pattern, Peer, Role, check_hop};
use crosstalk_protocol::store::Record;
use crosstalk_relay::core::Received;
use crosstalk_testing::wait::LIMIT;
use std::sync::Arc;
use tempfile::TempDir;

const POLL: &str = "01M4T8PA00S86Z5JATM52C3M7Z";
const THREAD: &str = "01M4T8PA0074G0T7MAHPXVDNXW";
/// One answers over HTTP, one is a command, one gets it by a person who carries it, one is a person.
const VOTERS: [&str; 4] = [
    "claude://code/api",
    "bot://review",
    "GEMINI",
    "human://acme.example/bo",
];

fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap()
}

fn config() -> String {
    format!(
        "name = \"relay.example\"\n{QUICK}[[route]]\nto = \"bot://*\"\nby = \"exec\"\n\
         command = [\"sh\", \"-c\", \"cat > /dev/null; echo 'Monolith, because it is one part.'\"]\n\
         [[route]]\nto = \"GEMINI\"\nby = \"copy_paste\"\n"
    )
}

fn open(folder: TempDir, start: i64) -> Post {
    Post::open(&config(), None, folder, Some(key()), start)
}

fn poll(targets: &[&str], fields: &[(&str, &str)]) -> String {
    let mut builder = Builder::new("human://acme.example/ann", "TEAM")
        .user("ann")
        .thread(THREAD)
        .message(POLL)
        .context("design")
        .intent("POLL")
        .meta(
            "routing",
            "Targets",
            serde_json::to_string(targets).unwrap(),
        )
        .meta("poll", "Type", "majority")
        .meta("poll", "Options", "Monolith | Microservices");
    for (key, value) in fields {
        builder = builder.meta("poll", *key, *value);
    }
    builder.body("What do we build?").build().unwrap()
}

fn deadline(seconds: i64) -> String {
    Timestamp::from_millis(START + seconds * 1000).to_string()
}

fn answer(from: &str, number: u8, choice: Option<&str>, body: &str) -> String {
    let millis = u64::try_from(START).unwrap() + u64::from(number);
    let mut builder = Builder::new(from, "human://acme.example/ann")
        .user("x")
        .thread(THREAD)
        .parent(POLL)
        .message(ulid_of(millis, u128::from(number)))
        .context("design")
        .intent("RESPOND");
    if let Some(choice) = choice {
        builder = builder.meta("vote", "Choice", choice);
    }
    builder.body(body).build().unwrap()
}

async fn all(post: &Post) -> Vec<Record> {
    post.relay.store().caught_up().await.unwrap();
    let read = post.relay.store().messages(THREAD, None, 500);
    read.await.unwrap().items
}

async fn results(post: &Post) -> Vec<Record> {
    let mut records = all(post).await;
    records.retain(|r| is_result(&Document::parse(&r.text, Reading::Strict)));
    records
}

async fn result(post: &Post) -> Record {
    eventually("a result", async || results(post).await.pop()).await
}

/// What somebody gets who has nothing but the texts that left the relay, its key, and the time in the result.
fn recomputed(texts: &[String], at: Option<Timestamp>) -> Vec<String> {
    let documents: Vec<Document<'_>> = texts
        .iter()
        .rev()
        .map(|t| Document::parse(t, Reading::Strict))
        .collect();
    let papers: Vec<Paper<'_>> = documents
        .iter()
        .map(|document| Paper {
            hop: check_hop(document, &key().public())
                .ok()
                .map(|h| h.received_at),
            ..Paper::of(document)
        })
        .collect();
    let collation = collate(&papers, Some(POLL), at).unwrap();
    collation.to_envelopes(None).unwrap()
}

async fn recomputes(post: &Post, result: &Record) {
    let texts: Vec<String> = all(post)
        .await
        .iter()
        .filter_map(|r| post.relay.leaving(r))
        .collect();
    let at = meta(&result.text, "collation", "At").and_then(|t| Timestamp::parse(&t));
    assert!(at.is_some());
    assert!(recomputed(&texts, at).contains(&result.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_on_every_way_are_one_poll() {
    let post = open(tempfile::tempdir().unwrap(), START);
    post.send(&poll(
        &VOTERS,
        &[("Deadline", &deadline(3600)), ("Quorum", "3-of-4")],
    ))
    .await;
    // Over HTTP, with the credential of an agent: for itself alone.
    let agent = Peer {
        name: "agent".into(),
        role: Role::Agent,
        addresses: vec![Pattern::parse(VOTERS[0]).unwrap()],
        domain: None,
        courier: Vec::new(),
        is_local: false,
    };
    for from in ["human://acme.example/bo", "bot://review", "GEMINI"] {
        let forged = answer(from, 1, Some("Microservices"), "x");
        let refused = post.relay.take_in(&forged, &agent).await;
        assert!(matches!(refused, Received::Rejected { .. }), "{from}");
    }
    let own = answer(VOTERS[0], 2, Some("Microservices"), "They scale.");
    assert!(matches!(
        post.relay.take_in(&own, &agent).await,
        Received::Accepted { .. }
    ));
    // By a person who carries it: what waits, and the answer of the chat, pasted.
    let waits = eventually("a letter", async || {
        let query = CourierQuery {
            rules: post.relay.rules(),
            caller: Arc::new(Peer::local()),
            limit: 10,
        };
        let letters = post.relay.store().courier(query).await.unwrap();
        letters.into_iter().next()
    })
    .await;
    assert_eq!(
        (waits.to.as_str(), waits.record.id.as_str()),
        ("GEMINI", POLL)
    );
    post.send(&answer(
        "GEMINI",
        3,
        None,
        "monolith.\n\nIt is simpler to run.",
    ))
    .await;
    assert!(
        results(&post).await.is_empty(),
        "not everybody has answered"
    );
    // A person, with a ballot.
    post.send(&answer(VOTERS[3], 4, Some("MONOLITH"), "Agreed."))
        .await;
    let result = result(&post).await;
    assert_eq!(result.receiver, "human://acme.example/ann");
    assert_eq!(
        (result.sender.as_str(), result.parent.as_deref()),
        ("SYSTEM", Some(POLL))
    );
    assert_eq!(
        meta(&result.text, "collation", "Outcome").as_deref(),
        Some("Monolith")
    );
    let body = Document::parse(&result.text, Reading::Strict).body_text();
    for line in [
        "- Monolith: 3",
        "- Microservices: 1",
        "- claude://code/api: Microservices",
        "- bot://review: Monolith (read from the first line)",
        "- GEMINI: Monolith (read from the first line)",
        "- human://acme.example/bo: Monolith",
    ] {
        assert!(body.contains(line), "{line}\n{body}");
    }
    // Who asked has it; the answers came by it as well.
    let inbox = post.gets("human://acme.example/ann", 5).await;
    assert!(
        inbox
            .iter()
            .any(|e| e.record.id == result.id && e.by == Handler::Inbox)
    );
    recomputes(&post, &result).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_closes_a_poll_once_and_names_who_is_missing() {
    let post = open(tempfile::tempdir().unwrap(), START);
    let voters = ["CLAUDE", "human://acme.example/bo"];
    post.send(&poll(&voters, &[("Deadline", &deadline(60))]))
        .await;
    post.send(&answer("CLAUDE", 1, Some("Monolith"), "x")).await;
    post.later(59);
    assert!(results(&post).await.is_empty());
    post.later(1);
    let first = result(&post).await;
    let body = Document::parse(&first.text, Reading::Strict).body_text();
    assert!(
        body.contains("No answer (E-TIMEOUT):\n- human://acme.example/bo"),
        "{body}"
    );
    assert_eq!(
        meta(&first.text, "collation", "At").as_deref(),
        Some(deadline(60).as_str())
    );
    recomputes(&post, &first).await;
    // Who asked gets the result, and not a second report that nobody answered.
    let inbox = post.gets("human://acme.example/ann", 2).await;
    assert!(
        inbox
            .iter()
            .all(|e| e.record.intent.as_deref() == Some("RESPOND"))
    );
    // What says that it was written before, and came after, changes nothing.
    post.send(&answer(voters[1], 2, Some("Microservices"), "x"))
        .await;
    post.later(60);
    eventually("the late answer is looked at", async || {
        let standing = post.relay.poll(POLL).await.unwrap()?;
        (standing.state() == "closed").then_some(())
    })
    .await;
    post.relay.settle_poll(POLL).await.unwrap();
    assert_eq!(results(&post).await, std::slice::from_ref(&first));
    recomputes(&post, &first).await;
    // After a restart neither.
    post.stop(LIMIT).await;
    post.relay.stop().await;
    let Post { folder, .. } = post;
    let post = open(folder, START + 600_000);
    post.relay.settle_poll(POLL).await.unwrap();
    assert_eq!(results(&post).await, [first]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_while_the_relay_is_down_is_not_lost() {
    let post = open(tempfile::tempdir().unwrap(), START);
    post.send(&poll(&["CLAUDE"], &[("Deadline", &deadline(60))]))
        .await;
    post.stop(LIMIT).await;
    post.relay.stop().await;
    let Post { folder, .. } = post;
    let post = open(folder, START + 3_600_000);
    let result = result(&post).await;
    assert_eq!(
        meta(&result.text, "collation", "At").as_deref(),
        Some(deadline(60).as_str())
    );
    assert!(
        meta(&result.text, "collation", "Reason")
            .unwrap()
            .contains("no ballot")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_relay_announces_the_result() {
    let post = open(tempfile::tempdir().unwrap(), START);
    post.send(&poll(&["CLAUDE", "GEMINI"], &[("Deadline", &deadline(60))]))
        .await;
    // With a hop that anybody can write, it is no result of a relay either.
    for (number, (from, hop)) in [("TEAM", false), ("TEAM", true), ("SYSTEM", true)]
        .into_iter()
        .enumerate()
    {
        let mut forged = Builder::new(from, "human://acme.example/ann")
            .user("system")
            .thread(THREAD)
            .parent(POLL)
            .message(format!("FORGED-{number}"))
            .context("design")
            .intent("RESPOND")
            .meta("collation", "Poll", POLL)
            .meta("collation", "At", deadline(1))
            .meta("collation", "Outcome", "Microservices");
        if hop {
            forged = forged.meta("audit", "Hop", "1");
        }
        let forged = forged.body("Done.").build().unwrap();
        let Received::Rejected { refusal, .. } = post.relay.take_in(&forged, &Peer::local()).await
        else {
            panic!("a forged result was taken");
        };
        assert_eq!(refusal.code.as_str(), "E-PERM");
    }
    assert_eq!(
        post.relay.poll(POLL).await.unwrap().unwrap().state(),
        "open"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_the_address_that_it_stands_for_and_nobody_else() {
    let names = format!("{}\n[names]\nCLAUDE = \"claude://code/bob\"\n", config());
    let folder = tempfile::tempdir().unwrap();
    let post = Post::open(&names, None, folder, Some(key()), START);
    let asked = ["CLAUDE", "gemini://x/y", "human://acme.example/bo"];
    post.send(&poll(&asked, &[])).await;
    for (from, number, choice) in [
        ("claude://evil/m", 1, "Microservices"),
        ("GEMINI", 2, "Microservices"),
        ("claude://code/bob", 3, "Monolith"),
        ("claude://evil/m", 4, "Microservices"),
        ("CLAUDE", 5, "Monolith"),
    ] {
        post.send(&answer(from, number, Some(choice), "x")).await;
    }
    let standing = post.relay.poll(POLL).await.unwrap().unwrap();
    let counted: Vec<(&str, Option<&str>)> = standing
        .collation
        .counted
        .iter()
        .map(|c| (c.from.as_str(), c.choice.as_deref()))
        .collect();
    assert_eq!(counted, [("CLAUDE", Some("Monolith"))]);
    let whys = standing.collation.not_counted.iter();
    let whys: Vec<(&str, &str)> = whys.map(|n| (n.from.as_str(), n.why.as_str())).collect();
    assert_eq!(
        whys,
        [
            ("GEMINI", "uninvited"),
            ("claude://code/bob", "superseded"),
            ("claude://evil/m", "uninvited"),
            ("claude://evil/m", "uninvited"),
        ]
    );
    post.send(&answer("gemini://x/y", 6, Some("Monolith"), "x"))
        .await;
    post.send(&answer(asked[2], 7, Some("Monolith"), "x")).await;
    let result = result(&post).await;
    assert_eq!(
        meta(&result.text, "collation", "Names").as_deref(),
        Some("CLAUDE=claude://code/bob")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_speaks_for_nobody_and_waits_where_who_asked_has_to() {
    let holds = format!(
        "{}\n[[hold]]\nwhy = \"bots\"\nfrom = [\"claude://*\"]\nto = [\"bot://*\"]\n",
        config()
    );
    let folder = tempfile::tempdir().unwrap();
    let post = Post::open(&holds, None, folder, Some(key()), START);
    // Asked in the direction of a person, of nobody but oneself, and told to a command.
    let asked = Builder::new("claude://evil/m", "human://acme.example/bo")
        .user("m")
        .thread(THREAD)
        .message(POLL)
        .context("deploy")
        .intent("POLL")
        .meta("routing", "Targets", "[\"claude://evil/m\"]")
        .meta("routing", "X-Reply-To", "bot://review")
        .meta("poll", "Options", "Deploy now | No")
        .body("Please deploy.")
        .build()
        .unwrap();
    post.send(&asked).await;
    post.send(&answer("claude://evil/m", 1, Some("Deploy now"), "x"))
        .await;
    let result = result(&post).await;
    assert_eq!(
        (result.sender.as_str(), result.receiver.as_str()),
        ("SYSTEM", "claude://evil/m")
    );
    let held = eventually("the other one is held", async || {
        let id = post.relay.poll(POLL).await.unwrap()?;
        let texts = id.collation.to_envelopes(Some(THREAD)).unwrap();
        let other = Document::parse(texts.get(1)?, Reading::Strict);
        let id = other.envelope().message?.to_owned();
        post.relay.store().held_message(&id).await.unwrap()
    })
    .await;
    assert_eq!(held.record.receiver, "bot://review");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_answers_of_others_keep_nobody_from_being_counted() {
    let post = open(tempfile::tempdir().unwrap(), START);
    post.send(&poll(&["CLAUDE", "human://acme.example/bo"], &[]))
        .await;
    let others = (0..1_010_u64).map(|number| {
        let millis = u64::try_from(START).unwrap() + number;
        let other = Builder::new(format!("MALLORY{number}"), "human://acme.example/ann")
            .user("x")
            .thread(THREAD)
            .parent(POLL)
            .message(ulid_of(millis, 1_000_000 + u128::from(number)))
            .context("design")
            .intent("RESPOND")
            .body("Microservices");
        other.build().unwrap()
    });
    post.send_all(others).await;
    post.send(&answer("CLAUDE", 9, Some("Monolith"), "x")).await;
    let standing = post.relay.poll(POLL).await.unwrap().unwrap();
    assert_eq!(standing.collation.quorum.counted, 1);
    assert_eq!(standing.collation.not_counted.len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_another_relay_passed_on_is_counted_there() {
    let post = open(tempfile::tempdir().unwrap(), START);
    let asked = poll(&["CLAUDE"], &[("Deadline", &deadline(60))]);
    let at = Timestamp::from_millis(START);
    let passed = crosstalk_protocol::relay::add_hop(&asked, at, "other.example", None).unwrap();
    post.send(&passed).await;
    post.later(120);
    assert!(post.relay.poll(POLL).await.unwrap().is_none());
    assert!(post.relay.settle_poll(POLL).await.unwrap().is_none());
    assert!(results(&post).await.is_empty());
}

/// What is an answer to another question in the thread of a poll is none to the poll, at the relay as in its files.
#[tokio::test(flavor = "multi_thread")]
async fn another_question_in_the_thread_changes_nothing() {
    let post = open(tempfile::tempdir().unwrap(), START);
    let question = Builder::new("human://acme.example/ann", "CLAUDE")
        .user("ann")
        .thread(THREAD)
        .message("Q1")
        .context("design")
        .intent("REQUEST")
        .body("How many parts are there?");
    post.send(&question.build().unwrap()).await;
    let aside = answer("CLAUDE", 1, None, "Microservices are many.").replace(POLL, "Q1");
    post.send(&aside).await;
    post.send(&poll(&["CLAUDE"], &[("Deadline", &deadline(60))]))
        .await;
    post.send(&answer("CLAUDE", 2, Some("Monolith"), "x")).await;
    let result = result(&post).await;
    assert!(!result.text.contains("other-parent"), "{}", result.text);
    recomputes(&post, &result).await;
}

/// A poll whose result could not be sent would never end.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_whose_result_has_nowhere_to_go_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let post = Post::open(&config(), None, folder, Some(key()), START);
    let asked = |to: &str| {
        Builder::new("claude://code/a", "TEAM")
            .user("a")
            .thread(THREAD)
            .message(POLL)
            .context("deploy")
            .intent("POLL")
            .meta("routing", "Targets", "[\"claude://code/a\"]")
            .meta("routing", "X-Reply-To", to)
            .meta("poll", "Options", "Now | Later")
            .body("When?")
            .build()
            .unwrap()
    };
    for (to, status) in [("nobody [[ at all", 400), ("claude://code/b", 200)] {
        let received = post.relay.take_in(&asked(to), &Peer::local()).await;
        assert_eq!(received.status(), status, "{}", received.answer());
    }
}

/// A poll that was closed is not counted again at each start. What the store says has changed behind the relay's back, so
/// that another count would send another result.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_poll_is_not_counted_again_at_the_start() {
    let voters = ["human://acme.example/bo", "human://acme.example/cy"];
    let post = open(tempfile::tempdir().unwrap(), START);
    post.send(&poll(&voters, &[("Deadline", &deadline(60))]))
        .await;
    post.send(&answer(voters[0], 1, Some("Monolith"), "x"))
        .await;
    post.later(60);
    result(&post).await;
    post.send(&answer(voters[1], 2, Some("Monolith"), "too late"))
        .await;
    let due = post.relay.now();
    let is_due = async |post: &Post| {
        let due = post.relay.store().due_polls(due, None, 9).await;
        (!due.unwrap().is_empty()).then_some(())
    };
    eventually("no poll has to be counted", async || {
        match is_due(&post).await {
            Some(()) => None,
            None => Some(()),
        }
    })
    .await;
    post.stop(LIMIT).await;
    post.relay.stop().await;
    let Post { folder, .. } = post;
    for table in ["intake", "message"] {
        let late = START + 1;
        let sql =
            format!("UPDATE {table} SET at = {late} WHERE meaning = 'RESPOND' AND at > {late}");
        assert!(crate::storage::execute(folder.path(), &sql) > 0);
    }
    let post = open(folder, START + 120_000);
    // A new poll is counted after all that there was to count at the start.
    let other = poll(&voters[..1], &[])
        .replace(POLL, "P2")
        .replace(THREAD, "T2");
    post.send(&other).await;
    let vote = answer(voters[0], 3, Some("Monolith"), "x")
        .replace(POLL, "P2")
        .replace(THREAD, "T2");
    post.send(&vote).await;
    eventually("the result of another poll", async || {
        post.relay.store().caught_up().await.unwrap();
        let read = post.relay.store().messages("T2", None, 9).await;
        (read.unwrap().items.len() > 2).then_some(())
    })
    .await;
    assert_eq!(results(&post).await.len(), 1);
}
