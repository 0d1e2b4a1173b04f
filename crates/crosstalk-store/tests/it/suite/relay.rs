//! The store of a relay under test: the port, with calls that wait, a clock that a test sets, and the events that came.

use crate::at;
use crate::parcel::TakesParcels;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{LogEntry, LogQuery};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    AttemptResult, BlobQuery, BlobUse, CourierQuery, DeadLetter, DueDelivery, GrantQuery,
    HeldQuery, InboxEntry, InboxQuery, IndexProgress, Lease, MailboxAction, MailboxChange,
    MaintenanceResult, MaintenanceTask, NextTimes, RecordQuery, RegistryChange, RegistrySnapshot,
    RelayStore, Retention, SearchQuery, StoreContext, StoreEvent, StoreEvents, StoreFuture, Upload,
};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Attempt, Delivery, DeliveryState, HeldMessage, HoldDecision, Peer,
    RelayRules, Ruling,
};
use crosstalk_protocol::store::{Page, Record, Search, Thread};
use crosstalk_store::SqliteStore;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Waits for an answer of the store.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// What the store reported.
#[derive(Default)]
pub(crate) struct Reported {
    /// How many messages were indexed since somebody asked.
    filed: Mutex<usize>,
    progress: Mutex<IndexProgress>,
    /// Other events, in words.
    lines: Mutex<Vec<String>>,
}

impl StoreEvents for Reported {
    fn notify(&self, event: StoreEvent<'_>) {
        let line = match event {
            StoreEvent::Indexed(progress) => {
                *self.filed.lock().unwrap() += progress.filed;
                *self.progress.lock().unwrap() = progress;
                return;
            }
            StoreEvent::Arrived(arrived) => format!("arrived {}", arrived.seq),
            StoreEvent::Batch => "batch".to_owned(),
            StoreEvent::Interrupted(count) => format!("interrupted {count}"),
            StoreEvent::Stopped(why) => format!("stopped {why:?}"),
            StoreEvent::Delayed { what, error } => format!("delayed {what}: {error}"),
            StoreEvent::Work | StoreEvent::Searchable(_) => return,
        };
        self.lines.lock().unwrap().push(line);
    }
}

/// The store of a relay.
pub(crate) struct Relay {
    store: Arc<dyn RelayStore>,
    clock: Arc<AtomicI64>,
    reported: Arc<Reported>,
    person: Option<SqliteStore>,
    /// What the store stands on, which vanishes after it.
    _place: Option<Box<dyn std::any::Any>>,
}

impl Relay {
    pub(crate) fn new(open: impl FnOnce(StoreContext) -> Arc<dyn RelayStore>) -> Self {
        let clock = Arc::new(AtomicI64::new(at(0).as_millis()));
        let reported = Arc::new(Reported::default());
        let told = Arc::clone(&clock);
        let store = open(StoreContext {
            events: Arc::clone(&reported) as Arc<dyn StoreEvents>,
            clock: Arc::new(move || Timestamp::from_millis(told.load(Ordering::SeqCst))),
        });
        Self {
            store,
            clock,
            reported,
            person: None,
            _place: None,
        }
    }

    /// Keeps something for as long as the store.
    pub(crate) fn on(mut self, place: impl std::any::Any) -> Self {
        self._place = Some(Box::new(place));
        self
    }

    /// The store as its person uses it, if it can be shared with one.
    pub(crate) fn shared_with(mut self, person: SqliteStore) -> Self {
        self.person = Some(person);
        self
    }

    pub(crate) fn person(&mut self) -> &mut SqliteStore {
        self.person.as_mut().unwrap()
    }

    /// The port.
    pub(crate) fn port(&self) -> &dyn RelayStore {
        self.store.as_ref()
    }

    pub(crate) fn set_clock(&self, now: Timestamp) {
        self.clock.store(now.as_millis(), Ordering::SeqCst);
    }

    /// The events that came, in words, but for how far indexing is.
    pub(crate) fn events(&self) -> Vec<String> {
        self.reported.lines.lock().unwrap().clone()
    }

    fn ask<'s, T>(&'s self, ask: impl FnOnce(&'s dyn RelayStore) -> StoreFuture<'s, T>) -> T {
        wait_for(ask(self.store.as_ref())).unwrap()
    }

    /// How long it takes until a time.
    fn until(&self, then: Timestamp) -> Duration {
        let wait = then.as_millis() - self.clock.load(Ordering::SeqCst);
        Duration::from_millis(u64::try_from(wait).unwrap())
    }

    pub(crate) fn records(&self, query: RecordQuery) -> Vec<Record> {
        self.ask(|s| s.records(query))
    }

    pub(crate) fn records_at(&self, seqs: &[u64]) -> Vec<Record> {
        self.records(RecordQuery::Seqs(seqs.to_vec()))
    }

    pub(crate) fn record(&self, id: &str) -> Option<Record> {
        self.records(RecordQuery::Ids(vec![id.to_owned()])).pop()
    }

    pub(crate) fn referring(&self, digest: Digest, limit: usize) -> Vec<Record> {
        self.records(RecordQuery::Referring { digest, limit })
    }

    pub(crate) fn thread(&self, id: &str) -> Option<Thread> {
        self.ask(|s| s.thread(id))
    }

    pub(crate) fn threads(&self) -> Vec<Thread> {
        let listed = self.ask(|s| s.threads(Default::default(), Page::first(99)));
        listed.items
    }

    /// The ids of the messages of a thread, which are the same from either end.
    pub(crate) fn ids(&self, thread: &str) -> Vec<String> {
        let listed = self.ask(|s| s.messages(thread, None, 1000));
        let records = listed.items;
        for (place, end) in (0..=records.len()).enumerate() {
            let before = records.get(end).map_or(u64::MAX, |r| r.seq);
            let mut earlier = self.ask(|s| s.messages_before(thread, before, 3));
            earlier.reverse();
            assert_eq!(earlier, records[place.saturating_sub(3)..place]);
        }
        records.into_iter().map(|r| r.id).collect()
    }

    pub(crate) fn search(&self, words: &str) -> Vec<Record> {
        let query = SearchQuery {
            search: Search::parse(words).unwrap(),
            page: Page::first(99),
            is_complete: true,
        };
        self.ask(|s| s.search(query)).found.items
    }

    pub(crate) fn inbox(&self, query: InboxQuery) -> Vec<InboxEntry> {
        self.ask(|s| s.inbox(query))
    }

    pub(crate) fn mark(
        &self,
        address: &str,
        ids: &[String],
        state: DeliveryState,
        at: Timestamp,
    ) -> Vec<String> {
        let change = MailboxChange::reach(address, ids.to_vec(), state, at);
        self.change_mailbox(change)
    }

    pub(crate) fn note_failure(
        &self,
        address: &str,
        ids: &[String],
        is_final: bool,
        at: Timestamp,
    ) -> Vec<String> {
        let change = MailboxChange::reach(address, ids.to_vec(), DeliveryState::Failed, at);
        let action = MailboxAction::NoteFailure { is_final };
        self.change_mailbox(MailboxChange { action, ..change })
    }

    pub(crate) fn change_mailbox(&self, change: MailboxChange) -> Vec<String> {
        self.ask(|s| s.change_mailbox(change))
    }

    pub(crate) fn was_handed_out(&self, address: &str, name: &str) -> bool {
        self.ask(|s| s.was_handed_out(address, &[name]))
    }

    pub(crate) fn deliveries(&self, id: &str) -> Vec<Delivery> {
        let mut found = self.ask(|s| s.deliveries(vec![id.to_owned()]));
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Leases deliveries that are due at a time, until another.
    pub(crate) fn due(&self, now: Timestamp, end: Timestamp, limit: usize) -> Vec<DueDelivery> {
        self.set_clock(now);
        let duration = self.until(end);
        self.ask(|s| s.lease(duration, limit))
    }

    pub(crate) fn renew(&self, leases: &[Lease], end: Timestamp) -> u64 {
        let duration = self.until(end);
        self.ask(|s| s.renew(leases.to_vec(), duration))
    }

    pub(crate) fn release(&self, leases: &[Lease], then: Timestamp) -> u64 {
        let after = self.until(then);
        self.ask(|s| s.release(leases.to_vec(), after))
    }

    pub(crate) fn attempted(
        &self,
        id: &str,
        to: &str,
        leased_at: Option<Timestamp>,
        attempt: &Attempt,
        at: Timestamp,
    ) -> bool {
        self.finish(AttemptResult {
            id: id.to_owned(),
            to: to.to_owned(),
            leased_at,
            attempt: attempt.clone(),
            at,
            notices: Vec::new(),
        })
    }

    pub(crate) fn finish(&self, result: AttemptResult) -> bool {
        self.ask(|s| s.finish(result))
    }

    /// What the operator may carry.
    pub(crate) fn courier(&self, limit: usize) -> Vec<InboxEntry> {
        let query = CourierQuery {
            rules: Arc::new(RelayRules::default()),
            caller: Arc::new(Peer::local()),
            limit,
        };
        self.ask(|s| s.courier(query))
    }

    pub(crate) fn dead_letters(&self, limit: usize) -> Vec<DeadLetter> {
        self.ask(|s| s.dead_letters(limit))
    }

    pub(crate) fn requeue(&self, id: &str, at: Timestamp) -> u64 {
        self.ask(|s| s.requeue(id, at))
    }

    pub(crate) fn next(&self) -> NextTimes {
        self.ask(|s| s.next_times(None))
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.next().delivery
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.next().deadline
    }

    pub(crate) fn maintain(&self, task: MaintenanceTask) -> MaintenanceResult {
        self.ask(|s| s.maintain(task))
    }

    pub(crate) fn overdue(&self, now: Timestamp, limit: usize) -> u64 {
        let task = MaintenanceTask::SettleOverdue { now, limit };
        self.maintain(task).count
    }

    /// Erases messages: how many, and whether there are more.
    pub(crate) fn erase(&self, what: Retention) -> (u64, bool) {
        let result = self.maintain(MaintenanceTask::Erase(what));
        (result.count, result.more)
    }

    pub(crate) fn drop_blobs(&self, before: Timestamp, limit: usize) -> Vec<Digest> {
        let task = MaintenanceTask::ForgetBlobs { before, limit };
        self.maintain(task).blobs
    }

    pub(crate) fn scrub(&self) {
        while self.maintain(MaintenanceTask::Scrub).more {}
    }

    pub(crate) fn notices(&self) -> Vec<(u64, String)> {
        self.ask(|s| s.notices(9))
    }

    pub(crate) fn drop_notices(&self, sent: &[u64]) {
        self.ask(|s| s.drop_notices(sent.to_vec()));
    }

    pub(crate) fn held(&self, id: &str) -> Option<HeldMessage> {
        self.all_held(HeldQuery::Id(id.to_owned())).pop()
    }

    pub(crate) fn waiting(&self) -> Vec<HeldMessage> {
        self.all_held(HeldQuery::Waiting { limit: 9 })
    }

    pub(crate) fn all_held(&self, query: HeldQuery) -> Vec<HeldMessage> {
        self.ask(|s| s.held(query))
    }

    pub(crate) fn decide(&self, decision: &HoldDecision) -> Ruling {
        self.ask(|s| s.decide(Box::new(decision.clone())))
    }

    pub(crate) fn grant(&self, id: &str) -> Option<Grant> {
        let found = self.grants(GrantQuery::Named(vec![id.to_owned()]));
        found.into_iter().find(|g| g.id == id)
    }

    pub(crate) fn grants(&self, query: GrantQuery) -> Vec<Grant> {
        self.ask(|s| s.grants(query))
    }

    pub(crate) fn under(&self, consent: &str) -> Vec<(String, bool)> {
        self.ask(|s| s.under(consent))
    }

    pub(crate) fn registry(&self) -> RegistrySnapshot {
        self.ask(|s| s.registry(None)).unwrap()
    }

    pub(crate) fn change_registry(&self, change: RegistryChange) -> bool {
        self.ask(|s| s.change_registry(change))
    }

    pub(crate) fn upload(&self, digest: Digest, size: u64, by: &str, at: Timestamp) {
        let by = by.to_owned();
        self.ask(|s| {
            s.add_blob(
                Upload {
                    digest,
                    size,
                    by,
                    parts: None,
                },
                at,
            )
        });
    }

    pub(crate) fn uploaded_bytes(&self, by: &str, besides: Digest) -> u64 {
        self.ask(|s| s.uploaded_bytes(by, besides))
    }

    pub(crate) fn blob_use(&self, digest: Digest, by: Option<&str>, limit: usize) -> BlobUse {
        let by = by.map(str::to_owned);
        let now = at(9);
        self.ask(|s| {
            s.blob_use(BlobQuery {
                digest,
                by,
                now,
                limit,
            })
        })
    }

    pub(crate) fn is_unused(&self, digest: Digest, by: Option<&str>) -> bool {
        self.blob_use(digest, by, 9).is_unused
    }

    pub(crate) fn log_entries(&self, query: &LogQuery) -> Vec<LogEntry> {
        self.ask(|s| s.log_entries(query.clone()))
    }
}

impl TakesParcels for Relay {
    /// Hands all in before it waits for the first answer.
    fn take_all(&mut self, batch: &[Admission]) -> Vec<AcceptOutcome> {
        let one = |admission: &Admission| self.store.accept(Box::new(admission.clone()));
        let mut answers: Vec<_> = batch.iter().map(one).collect();
        let mut waits = Context::from_waker(Waker::noop());
        let begun: Vec<_> = answers
            .iter_mut()
            .map(|answer| Pin::new(answer).poll(&mut waits))
            .collect();
        let finish = |(begun, answer)| match begun {
            Poll::Ready(answer) => answer,
            Poll::Pending => wait_for(answer),
        };
        let answers = begun.into_iter().zip(answers).map(finish);
        let outcomes = answers.zip(batch).map(|(answer, admission)| {
            let answer = answer.unwrap();
            assert_eq!(*answer.admission, *admission);
            answer.outcome
        });
        outcomes.collect()
    }

    fn file_all(&mut self) -> IndexProgress {
        self.ask(|s| s.caught_up());
        IndexProgress {
            filed: std::mem::take(&mut *self.reported.filed.lock().unwrap()),
            ..*self.reported.progress.lock().unwrap()
        }
    }

    fn inbox_ids(&self, address: &str) -> Vec<String> {
        let entries = self.inbox(InboxQuery {
            address: address.to_owned(),
            after: None,
            limit: 100,
        });
        entries.into_iter().map(|e| e.record.id).collect()
    }
}
