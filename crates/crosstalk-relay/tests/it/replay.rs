//! A stranger with a signed message in hand (threat 41): whatever form of it they post, the relay refuses it or treats it as
//! the message that was signed.

use crate::house::{Plan, START, key, pinned, secret, signed};
use crate::http::{Ask, Line};
use crate::storage::Storage;
use crate::variant::{Random, variant};
use crosstalk_envelope::{Builder, Document, Reading, Timestamp, scan};
use crosstalk_protocol::relay::{Peer, Role};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext, verify};
use crosstalk_relay::core::{Received, Relay};
use crosstalk_testing::tier;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

const ANN: &str = "human://here.example/ann";
const CLAUDE: &str = "claude://code/api";
const THREAD: &str = "01M7D0000000000000000000TH";
const POLL: &str = "01M7D00000000000000000000P";
const VOTE: &str = "01M7D00000000000000000000V";
const GRANT: &str = "01M7D00000000000000000000G";
const REVOKE: &str = "01M7D00000000000000000000R";
const REQUEST: &str = "01M7D00000000000000000000Q";

fn letter(id: &str, intent: &str) -> Builder {
    Builder::new(ANN, CLAUDE)
        .user("ann")
        .thread(THREAD)
        .message(id)
        .context("a - \"b\" & c, it's a test")
        .intent(intent)
        .body("First -- \"quoted\" & it's <fine>...\n\n  - one\n    two\n\nLast.")
}

/// Messages that change something, in the order in which they are sent.
fn originals() -> Vec<String> {
    let plain = [
        letter(POLL, "POLL")
            .meta("routing", "Targets", "[human://here.example/ann, BOB]")
            .meta("poll", "Type", "plurality")
            .meta("poll", "Options", "Yes | No"),
        letter(VOTE, "RESPOND")
            .parent(POLL)
            .meta("vote", "Choice", "No"),
        letter(GRANT, "REQUEST")
            .meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "X-Policy", "no_third_party"),
        letter(REVOKE, "BROADCAST").meta("revocation", "Consent-ID", GRANT),
        letter(REQUEST, "REQUEST").meta("routing", "X-Priority", "high"),
    ];
    // A builder does not make a REVOKE that is not signed yet.
    let revoke = |text: String| text.replace("intent: BROADCAST", "intent: REVOKE");
    let text = |builder: Builder| signed(&revoke(builder.build().unwrap()), &key(), "ann");
    plain.into_iter().map(text).collect()
}

fn plan() -> Plan {
    Plan::default()
        .token("claude", Role::Agent, &[CLAUDE, "BOB"])
        .config("name = \"here.example\"")
        .pin("ann", &key(), ANN)
}

fn relay(folder: &Path) -> Relay {
    plan().start(folder, &Arc::new(AtomicI64::new(START)))
}

/// Everything that messages changed: what is kept, where it went, and what was decided by it.
fn observed(folder: &Path) -> Vec<String> {
    let store = Storage::open(folder);
    let mut seen = Vec::new();
    let records = store.messages(THREAD, 100);
    // The relay itself may have said something as well.
    for record in records.into_iter().filter(|r| r.sender == ANN) {
        let document = record.document();
        let headers = document.envelope();
        seen.push(format!(
            "{} {} {:?} {:?} {} {:?} {}",
            record.id,
            record.digest,
            record.meaning,
            record.parent,
            record.verdict.as_str(),
            headers.context,
            document.body_text(),
        ));
        assert_eq!(document.digest().unwrap(), record.digest);
        for delivery in store.deliveries(&record.id).unwrap() {
            seen.push(format!("{} {:?}", delivery.to, delivery.by));
        }
    }
    seen.push(format!("{:?}", store.grant(GRANT).unwrap()));
    seen.push(format!("{:?}", store.under(GRANT).unwrap()));
    seen
}

/// What the relay answers to each original alone, and what it has then.
async fn reference() -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let relay = relay(folder.path());
    let mut answers = Vec::new();
    for original in originals() {
        let received = relay.take_in(&original, &Peer::stranger()).await;
        assert_eq!(received.status(), 200, "{}", received.answer());
        answers.push(received.answer().to_owned());
    }
    relay.stop().await;
    (answers, observed(folder.path()))
}

/// Whether the paste reading takes a text for the message that was signed.
fn is_repaired(text: &str) -> bool {
    let mut trust = Trust::default();
    trust.pin(pinned("ann", &key(), ANN)).unwrap();
    let question = VerifyContext::at(Timestamp::from_millis(START));
    let found = scan(text, Reading::Paste);
    let verdicts = found.documents.iter().map(|d| verify(d, &trust, &question));
    verdicts
        .into_iter()
        .any(|v| v.word() == VerdictWord::Verified)
}

/// How many variants are tried; `CROSSTALK_VARIANTS` says another number.
fn number() -> usize {
    let set = std::env::var("CROSSTALK_VARIANTS").ok();
    set.and_then(|n| n.parse().ok())
        .unwrap_or(tier::size(4_000, 100_000))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_form_of_a_signed_message_is_anything_else() {
    let (answers, wanted) = reference().await;
    let (folder, total) = (tempfile::tempdir().unwrap(), number());
    let relay = relay(folder.path());
    let (originals, mut random) = (originals(), Random(0x9e37_79b9_7f4a_7c15));
    let (mut looked_at, mut repaired, mut accepted) = (0, 0, 0);
    let share = total / originals.len() / 2;
    // Each original has strangers' copies before it and after it.
    for (original, wanted) in originals.iter().zip(&answers) {
        for number in 0..2 * share {
            if number == share {
                let received = relay.take_in(original, &Peer::stranger()).await;
                assert_eq!(received.answer(), wanted);
            }
            let (text, how) = variant(original, &mut random);
            if number % 50 == 0 {
                looked_at += 1;
                repaired += usize::from(is_repaired(&text));
            }
            match relay.take_in(&text, &Peer::stranger()).await {
                Received::Rejected { status, .. } => {
                    assert!(matches!(status, 400..=499), "{how}: {status}\n{text}");
                }
                received => {
                    accepted += 1;
                    assert_eq!(received.answer(), wanted, "{how}\n{text}");
                }
            }
        }
    }
    relay.stop().await;
    assert_eq!(observed(folder.path()), wanted);
    println!(
        "{total} variants: {accepted} accepted as the original, {repaired} of {looked_at} verify as pastes"
    );
    // Most of them are what it is about: texts that the paste reading would repair.
    assert!(repaired * 3 > looked_at, "{repaired} of {looked_at}");
}

#[test]
fn no_form_of_a_signed_message_is_anything_else_over_http() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (answers, wanted) = runtime.block_on(reference());
    let house = plan().open();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut line: Line = house.line();
    // The index in the log depends on what was refused before.
    let unnumbered = |ack: &str| {
        let lines = ack.lines().filter(|l| !l.starts_with("Index: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    for (original, wanted) in originals().iter().zip(&answers) {
        let mut first = None;
        for number in 0..100 {
            let (text, how) = match number {
                50 => (original.clone(), "the original".to_owned()),
                _ => variant(original, &mut random),
            };
            let answer = Ask::send(&text).on(&mut line);
            if answer.status == 200 {
                let first = first.get_or_insert_with(|| answer.text().to_owned());
                assert_eq!(answer.text(), first, "{how}");
                assert_eq!(unnumbered(first), unnumbered(wanted), "{how}");
            } else {
                assert!(
                    matches!(answer.status, 400..=499),
                    "{how}: {}",
                    answer.status
                );
                assert_ne!(number, 50, "{}", answer.text());
            }
        }
    }
    let inbox = Ask::get("/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fapi").token(&secret("claude"));
    let inbox = house.ask(&inbox.accept("application/json")).json();
    for message in inbox["messages"].as_array().unwrap() {
        let envelope = message["envelope"].as_str().unwrap();
        let digest = Document::parse(envelope, Reading::Strict).digest().unwrap();
        let known = originals();
        let mut known = known.iter().map(|o| Document::parse(o, Reading::Strict));
        assert!(known.any(|o| o.digest().unwrap() == digest), "{envelope}");
    }
    let data = house.close();
    assert_eq!(observed(data.path()), wanted);
}
