//! The relay without its network, over SQLite.

use crate::dns::{ANY_DOMAIN, Domains};
use crate::house::{setup, start};
use crate::storage::{Storage, opener};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, ErrorCode, PrivateKey, Reading, Timestamp, id};
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::port::{
    InboxEntry, MailboxChange, StoreContext, StoreEvent, StoreEvents,
};
use crosstalk_protocol::relay::{
    Admission, AdmissionCandidate, DeliveryState, Peer, RelayRules, admit,
};
use crosstalk_protocol::{Trust, VerifyContext, verify};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{Received, Relay, Setup};
use crosstalk_relay::port::{Keyring, Later};
use crosstalk_testing::wait::LIMIT;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

fn relay(folder: &Path) -> Relay {
    start(setup(folder, Config::default(), now))
}

/// Counts how often what is believed is written.
struct Written(Arc<AtomicUsize>);

impl Keyring for Written {
    fn read(&self) -> Result<Trust, String> {
        Ok(Trust::default())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut trust = Trust::default();
        change(&mut trust);
        Ok(trust)
    }
}

/// Strangers can name domains without end: nothing of them is kept when their message is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domain_answer_about_a_rejected_message_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let writes = Arc::new(AtomicUsize::new(0));
    let other = PrivateKey::from_seed(Algorithm::Ed25519, &[5; 32]).unwrap();
    let config = Config::parse("[federation]\nenabled = true\naccept = true\n").unwrap();
    let relay = start(Setup {
        resolver: Some(Arc::new(Domains::default().list(ANY_DOMAIN, &other))),
        keyring: Box::new(Written(Arc::clone(&writes))),
        ..setup(folder.path(), config, now)
    });
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
    for number in 0..3 {
        let signer = Signer {
            key: &key,
            pkid: &format!("a@d{number}.evil.example"),
            at: now(),
            key_block: &[],
        };
        let text = message(&format!("M-{number}"), "BOB", "NOTE", "");
        let text = signer
            .sign(&Document::parse(&text, Reading::Strict))
            .unwrap();
        let received = relay.receive(text.as_bytes(), &Peer::stranger()).await;
        assert_eq!(received.status(), 401, "{}", received.answer());
    }
    assert_eq!(writes.load(Ordering::SeqCst), 0);
    relay.stop().await;
}

fn now() -> Timestamp {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

fn message(id: &str, to: &str, intent: &str, more: &str) -> String {
    format!(
        "[[ANN→{to} v1]]\nuser: ann\nthread: T-1\n{more}message: {id}\ncontext: c\nintent: {intent}\nbody: |\n  Hello.\nsig: none\n[[END]]\n"
    )
}

fn answer(received: &Received) -> Document<'_> {
    let mut document = Document::parse(received.answer(), Reading::Strict);
    document.check();
    assert!(document.is_accepted(), "{}", received.answer());
    document
}

fn code(received: &Received) -> Option<ErrorCode> {
    match received {
        Received::Accepted { .. } => None,
        Received::Rejected { refusal, .. } => Some(refusal.code),
    }
}

fn soon() -> Instant {
    Instant::now() + LIMIT
}

/// Loses every event but the end.
struct Lossy(Arc<dyn StoreEvents>);

impl StoreEvents for Lossy {
    fn notify(&self, event: StoreEvent<'_>) {
        if matches!(event, StoreEvent::Stopped(_)) {
            self.0.notify(event);
        }
    }
}

/// Another process may have written, and an event may be lost: whoever waits looks into the store as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_senders_that_wait_need_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let open = opener(folder.path());
    let relay = start(Setup {
        open: Box::new(move |context| {
            let events = Arc::new(Lossy(Arc::clone(&context.events)));
            open(StoreContext { events, ..context })
        }),
        ..setup(folder.path(), Config::default(), now)
    });
    let (peer, bob) = (Peer::local(), "agent://x/bob");
    let text = message("Q-1", bob, "REQUEST", "");
    let is_valid = || -> Later<'_, bool> { Box::pin(async { true }) };
    let asked = relay.ask(text.as_bytes(), &peer, soon(), &is_valid);
    let answered = async {
        let came = relay.next(bob, None, 9, soon()).await.unwrap();
        assert_eq!(came.len(), 1);
        let text = message("A-1", "ANN", "RESPOND", "parent: Q-1\n");
        let text = text.replace("[[ANN→ANN", "[[agent://x/bob→ANN");
        // The reader waits before it comes.
        let reader = relay.next("ANN", None, 9, soon());
        let send = async {
            tokio::task::yield_now().await;
            relay.receive(text.as_bytes(), &peer).await
        };
        let (received, read) = tokio::join!(send, reader);
        assert_eq!(received.status(), 200, "{}", received.answer());
        assert_eq!(read.unwrap().len(), 1);
    };
    let began = Instant::now();
    let ((received, waited), ()) = tokio::join!(asked, answered);
    assert!(waited && began.elapsed() < LIMIT / 2);
    let Received::Accepted { reply, .. } = &received else {
        panic!("{}", received.answer());
    };
    assert!(reply.as_ref().unwrap().contains("message: A-1"));
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_message_is_there_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let relay_now = relay(folder.path());
    let (peer, bob) = (Peer::local(), "agent://x/bob");
    let ids: Vec<String> = (0..120).map(|_| id::new_ulid()).collect();
    for id in &ids {
        let text = message(id, bob, "REQUEST", "");
        let received = relay_now.receive(text.as_bytes(), &peer).await;
        assert_eq!(received.status(), 200, "{}", received.answer());
        assert_eq!(answer(&received).envelope().parent, Some(id.as_str()));
        // Filed or not, the latest one is the last in the inbox.
        let last = relay_now.inbox(bob, None, 1000).await.unwrap();
        assert_eq!(&last.last().unwrap().record.id, id);
    }
    let listed =
        |entries: Vec<InboxEntry>| entries.into_iter().map(|e| e.record.id).collect::<Vec<_>>();
    assert_eq!(listed(relay_now.inbox(bob, None, 1000).await.unwrap()), ids);
    relay_now.stop().await;
    let refused = relay_now
        .receive(message("X", bob, "NOTE", "").as_bytes(), &peer)
        .await;
    assert_eq!(refused.status(), 503);

    let again = relay(folder.path());
    assert_eq!(again.indexing().borrow().left, 0);
    assert_eq!(listed(again.inbox(bob, None, 1000).await.unwrap()), ids);
    let first = again.inbox(bob, None, 1).await.unwrap().remove(0).cursor;
    assert_eq!(
        listed(again.inbox(bob, Some(&first), 2).await.unwrap()),
        ids[1..3]
    );
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_message_gets_the_same_answer_and_another_one_under_its_id_none() {
    let folder = tempfile::tempdir().unwrap();
    let relay = relay(folder.path());
    let text = message("M-1", "agent://x/bob", "REQUEST", "");
    let first = relay.receive(text.as_bytes(), &Peer::local()).await;
    for _ in 0..20 {
        let again = relay.receive(text.as_bytes(), &Peer::local()).await;
        assert_eq!(again.answer(), first.answer());
        assert!(matches!(again, Received::Accepted { is_new: false, .. }));
    }
    let other = text.replace("Hello.", "Hullo.");
    let refused = relay.receive(other.as_bytes(), &Peer::local()).await;
    assert_eq!(
        (refused.status(), code(&refused)),
        (403, Some(ErrorCode::Perm))
    );
    assert_eq!(answer(&refused).sender(), "agent://x/bob");
    assert_eq!(
        relay.inbox("agent://x/bob", None, 10).await.unwrap().len(),
        1
    );
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_sender_and_reader_get_their_message() {
    let folder = tempfile::tempdir().unwrap();
    let relay = relay(folder.path());
    let asking = relay.clone();
    let asked = tokio::spawn(async move {
        let text = message("Q-1", "agent://x/bob", "REQUEST", "");
        asking
            .ask(text.as_bytes(), &Peer::local(), soon(), &|| {
                Box::pin(async { true })
            })
            .await
            .0
    });
    let got = relay.next("agent://x/bob", None, 10, soon()).await.unwrap();
    assert_eq!(got[0].record.id, "Q-1");
    let text = message("A-1", "ANN", "RESPOND", "parent: Q-1\n")
        .replace("[[ANN→ANN", "[[agent://x/bob→ANN");
    let received = relay.receive(text.as_bytes(), &Peer::local()).await;
    assert_eq!(received.status(), 200, "{}", received.answer());
    let asked = asked.await.unwrap();
    let document = answer(&asked);
    assert_eq!(document.envelope().message, Some("A-1"));
    assert!(document.block("audit").is_some(), "it left with its hop");
    // Asked again, the answer is there at once; nobody answers something else in time.
    let text = message("Q-1", "agent://x/bob", "REQUEST", "");
    let again = relay
        .ask(text.as_bytes(), &Peer::local(), soon(), &|| {
            Box::pin(async { true })
        })
        .await
        .0;
    assert_eq!(answer(&again).envelope().message, Some("A-1"));
    let text = message("Q-2", "agent://x/bob", "REQUEST", "");
    let unanswered = relay
        .ask(text.as_bytes(), &Peer::local(), Instant::now(), &|| {
            Box::pin(async { true })
        })
        .await
        .0;
    assert_eq!(answer(&unanswered).envelope().parent, Some("Q-2"));
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handed_out_message_is_delivered_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let relay = relay(folder.path());
    let text = message("M-1", "bob", "REQUEST", "");
    relay.receive(text.as_bytes(), &Peer::local()).await;
    relay.handed_out("BOB", vec!["M-1".into()]);
    let state = |relay: &Relay| {
        let relay = relay.clone();
        async move {
            relay.store().caught_up().await.unwrap();
            let deliveries = relay.store().deliveries_of("M-1").await;
            deliveries.unwrap().remove(0)
        }
    };
    let delivery = state(&relay).await;
    assert_eq!(delivery.state, DeliveryState::Delivered);
    assert!(delivery.delivered_at.is_some() && delivery.read_at.is_none());
    assert_eq!(relay.inbox("Bob", None, 10).await.unwrap().len(), 1);
    let ids = vec!["M-1".into(), "M-2".into()];
    let change = MailboxChange::reach("BOB", ids, DeliveryState::Acknowledged, now());
    let marked = relay.store().change_mailbox(change).await.unwrap();
    assert_eq!(marked, ["M-1"]);
    relay.handed_out("BOB", vec!["M-1".into()]);
    assert_eq!(state(&relay).await.state, DeliveryState::Acknowledged);
    assert!(relay.inbox("bob", None, 10).await.unwrap().is_empty());
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_text_is_answered_by_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let relay = relay(folder.path());
    let large = message(
        "M-1",
        "BOB",
        "NOTE",
        &format!("x: {}\n", "y".repeat(70_000)),
    );
    let huge = vec![b'['; 1024 * 1024 + 1];
    for (bytes, code_wanted, status) in [
        (b"hello".as_slice(), ErrorCode::Format, 400),
        (b"[[A\xff", ErrorCode::Format, 400),
        (b"", ErrorCode::Format, 400),
        (large.as_bytes(), ErrorCode::TooLarge, 413),
        (&huge, ErrorCode::TooLarge, 413),
    ] {
        let received = relay.receive(bytes, &Peer::local()).await;
        assert_eq!(
            (code(&received), received.status()),
            (Some(code_wanted), status)
        );
        assert_eq!(answer(&received).sender(), "SYSTEM");
    }
    let two = message("M-1", "BOB", "NOTE", "").repeat(2);
    assert_eq!(
        relay.receive(two.as_bytes(), &Peer::local()).await.status(),
        400
    );
    relay.stop().await;
}

/// A relay that was killed had answered for what was not filed yet: whoever asks the next one gets it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unindexed_message_is_seen_at_the_next_start() {
    const COUNT: usize = 2000;
    let folder = tempfile::tempdir().unwrap();
    let mut store = Storage::open(folder.path());
    let taken: Vec<Admission> = (0..COUNT)
        .map(|n| {
            let text = message(&format!("M-{n}"), "agent://x/bob", "NOTE", "");
            let mut document = Document::parse(&text, Reading::Strict);
            document.check();
            let candidate = AdmissionCandidate {
                document: &document,
                verdict: &verify(&document, &Trust::default(), &VerifyContext::at(now())),
                proof: Proof::default(),
                peer: &Peer::local(),
                was_asked: false,
                at: now(),
            };
            admit(candidate, &RelayRules::default()).unwrap()
        })
        .collect();
    store.accept_batch(&taken);
    drop(store);
    let relay = relay(folder.path());
    let mut there = 0;
    let mut after = None;
    while there < COUNT {
        let page = relay
            .inbox("agent://x/bob", after.as_ref(), 500)
            .await
            .unwrap();
        assert_eq!(page.len(), 500, "after {there}");
        after = page.last().map(|e| e.cursor.clone());
        there += page.len();
    }
    relay.stop().await;
}

/// A writer that is far behind is given no more: senders are told to come again, and nothing piles up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_queue_of_the_writer_is_a_temporary_rejection() {
    let folder = tempfile::tempdir().unwrap();
    let (go_on, stuck) = std::sync::mpsc::channel::<()>();
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let stuck = Mutex::new(stuck);
    // The thread that writes looks at the clock when it leases.
    let clock = move || {
        if std::thread::current().name() == Some("writer") {
            begun.send(()).unwrap();
            let _ = stuck.lock().unwrap().recv();
        }
        now()
    };
    let relay = start(setup(folder.path(), Config::default(), clock));
    let writer = relay.clone();
    let held = tokio::spawn(async move { writer.store().lease(LIMIT, 1).await });
    has_begun.recv().await.unwrap();
    // Nobody waits for these.
    for _ in 0..100_000 {
        relay.handed_out("agent://x/bob", Vec::new());
    }
    let text = message("M1", "agent://x/bob", "REQUEST", "");
    let peer = Peer::local();
    let refused = tokio::time::timeout(LIMIT, relay.receive(text.as_bytes(), &peer)).await;
    let refused = refused.expect("it does not wait");
    assert_eq!(refused.status(), 503, "{}", refused.answer());
    assert!(relay.store().caught_up().await.is_err());
    drop(go_on);
    held.await.unwrap().unwrap();
    let end = soon();
    loop {
        let received = relay.receive(text.as_bytes(), &Peer::local()).await;
        if received.status() == 200 {
            break;
        }
        assert!(Instant::now() < end, "{}", received.answer());
        tokio::time::sleep(crosstalk_testing::wait::PAUSE).await;
    }
    relay.stop().await;
}
