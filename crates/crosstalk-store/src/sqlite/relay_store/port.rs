//! The port: each method is one command of the writer, or one query.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{ChainId, Event, Hash, LogEntry, LogQuery, SignedCheckpoint};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    Acceptance, AttemptResult, AuditLog, BlobIndex, BlobQuery, BlobUse, ConsentLedger,
    CourierQuery, Cursor, DeadLetter, DeliveryQueue, DueDelivery, DuePoll, FilledSearch,
    GrantQuery, HandedOut, HeldQuery, Holds, InboxEntry, InboxQuery, Intake, JoinedChain, Lease,
    LeasedDelivery, LogChain, LogHead, LogProof, LogRoot, LogWriter, Mailbox, MailboxChange,
    Maintenance, MaintenanceResult, MaintenanceTask, MessageViews, NewLogEntry, NextTimes,
    PollQueue, PollState, RecordQuery, Registry, RegistryChange, RegistrySnapshot, RegistryVersion,
    SearchQuery, StoreFuture, StoreGauges, Upload,
};
use crosstalk_protocol::relay::{
    Admission, Delivery, HeldMessage, HoldDecision, Quarantined, Ruling,
};
use crosstalk_protocol::store::{Listing, Page, Record, StoreError, Thread, ThreadFilter};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::writer::Job;
use super::{RegistryReader, SqliteRelay, SqliteStore};
use crate::sqlite::relay::command;
use crate::sqlite::relay::keep::TokenCounts;
use crate::sqlite::sql::to_u64;

/// How many groups of 256 hashes are stored in one go: others write in between.
const HASH_PORTION: usize = 32;

impl Intake for SqliteRelay {
    fn accept(&self, admission: Box<Admission>) -> StoreFuture<'_, Acceptance> {
        self.ask_writer(move |tell| Job::Accept(admission, tell))
    }

    fn caught_up(&self) -> StoreFuture<'_, ()> {
        self.write_indexed(|_| Ok(()))
    }
}

impl Holds for SqliteRelay {
    fn decide(&self, decision: Box<HoldDecision>) -> StoreFuture<'_, Ruling> {
        self.ask_writer(move |tell| Job::Decide(decision, tell))
    }

    fn held(&self, query: HeldQuery) -> StoreFuture<'_, Vec<HeldMessage>> {
        self.read(move |store| match query {
            HeldQuery::Waiting { limit } => store.waiting(limit),
            HeldQuery::Id(id) => Ok(store.held(&id)?.into_iter().collect()),
            HeldQuery::Prefix { prefix, limit } => store.held_by_prefix(&prefix, limit),
            HeldQuery::Referring { digest, limit } => store.held_referring(digest, limit),
            HeldQuery::Lapsed { now, limit } => store.lapsed(now, limit),
        })
    }
}

impl Mailbox for SqliteRelay {
    fn inbox(&self, query: InboxQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.read(move |store| store.inbox_of(&query))
    }

    fn has_cursor(&self, cursor: &Cursor) -> StoreFuture<'_, bool> {
        let cursor = cursor.clone();
        self.read(move |store| store.has_cursor(&cursor))
    }

    fn hand_out(&self, handed: HandedOut) {
        // A store that stops, or has too much to write, notes nothing.
        let _ = self.enqueue(&self.jobs, Job::HandedOut(handed));
    }

    fn change_mailbox(&self, change: MailboxChange) -> StoreFuture<'_, Vec<String>> {
        self.write_grouped(move |db| command::change_mailbox(db, &change))
    }

    fn was_handed_out(&self, address: &str, names: &[&str]) -> StoreFuture<'_, bool> {
        let address = address.to_owned();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.read(move |store| {
            for name in &names {
                if store.was_handed_out(&address, name)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// A time that comes so much later.
fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(wait))
}

impl SqliteRelay {
    /// What tells the time of leases, when a command is carried out.
    fn clock(&self) -> impl Fn() -> Timestamp + Send + 'static {
        let clock = std::sync::Arc::clone(&self.shared.context.clock);
        move || clock()
    }
}

impl DeliveryQueue for SqliteRelay {
    fn lease(&self, duration: Duration, limit: usize) -> StoreFuture<'_, Vec<DueDelivery>> {
        let clock = self.clock();
        self.write(move |store| {
            let now = clock();
            store.due(now, after(now, duration), limit)
        })
    }

    fn leased(&self, lease: &Lease) -> StoreFuture<'_, Option<LeasedDelivery>> {
        let lease = lease.clone();
        self.read(move |store| store.leased(&lease))
    }

    fn renew(&self, leases: Vec<Lease>, duration: Duration) -> StoreFuture<'_, u64> {
        let clock = self.clock();
        self.write(move |store| store.renew(&leases, after(clock(), duration)))
    }

    fn release(&self, leases: Vec<Lease>, wait: Duration) -> StoreFuture<'_, u64> {
        let clock = self.clock();
        self.write(move |store| store.release(&leases, after(clock(), wait)))
    }

    fn finish(&self, result: AttemptResult) -> StoreFuture<'_, bool> {
        self.write_grouped(move |db| command::finish(db, &result))
    }

    fn courier(&self, query: CourierQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.read(move |store| {
            let offers = |errand: &_| query.rules.offers_errand(&query.caller, errand);
            store.courier(&offers, query.limit)
        })
    }

    fn deliveries(&self, ids: Vec<String>) -> StoreFuture<'_, Vec<Vec<Delivery>>> {
        self.read(move |store| store.all_deliveries(&ids))
    }

    fn dead_letters(&self, limit: usize) -> StoreFuture<'_, Vec<DeadLetter>> {
        self.read(move |store| store.dead_letters(limit))
    }

    fn requeue(&self, id: &str, at: Timestamp) -> StoreFuture<'_, u64> {
        let id = id.to_owned();
        self.write(move |store| store.requeue(&id, at))
    }
}

impl MessageViews for SqliteRelay {
    fn records(&self, query: RecordQuery) -> StoreFuture<'_, Vec<Record>> {
        self.read(move |store| store.records(&query))
    }

    fn thread(&self, id: &str) -> StoreFuture<'_, Option<Thread>> {
        let id = id.to_owned();
        self.read(move |store| store.thread(&id))
    }

    fn threads(&self, filter: ThreadFilter, page: Page) -> StoreFuture<'_, Listing<Thread>> {
        self.read(move |store| store.threads(&filter, page))
    }

    fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Listing<Record>> {
        let thread = thread.to_owned();
        self.read(move |store| store.messages(&thread, after, limit))
    }

    fn messages_before(
        &self,
        thread: &str,
        before: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Record>> {
        let thread = thread.to_owned();
        self.read(move |store| store.messages_before(&thread, before, limit))
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, FilledSearch> {
        self.read(move |store| store.find_words(&query))
    }

    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(u64, Vec<String>)>> {
        let thread = thread.to_owned();
        self.read(move |store| store.handovers(&thread, after, limit))
    }
}

impl ConsentLedger for SqliteRelay {
    fn grants(&self, query: GrantQuery) -> StoreFuture<'_, Vec<Grant>> {
        self.read(move |store| match query {
            GrantQuery::Named(names) => store.named_grants(&names),
            GrantQuery::Filtered(filter) => store.grants(&filter),
        })
    }

    fn under(&self, consent: &str) -> StoreFuture<'_, Vec<(String, bool)>> {
        let consent = consent.to_owned();
        self.read(move |store| store.under(&consent))
    }
}

impl AuditLog for SqliteRelay {
    fn join(&self, writer: LogWriter) -> StoreFuture<'_, JoinedChain> {
        Box::pin(async move { Ok(self.chain.join(writer)) })
    }

    fn chains(&self) -> StoreFuture<'_, Vec<LogChain>> {
        Box::pin(async move { Ok(self.chain.all()) })
    }

    fn log_head(&self, chain: ChainId) -> StoreFuture<'_, LogHead> {
        self.read(move |store| match chain {
            ChainId::FIRST => store.log_head(),
            _ => Ok(LogHead::default()),
        })
    }

    fn log_entries(&self, query: LogQuery) -> StoreFuture<'_, Vec<LogEntry>> {
        self.read(move |store| match query.chain {
            ChainId::FIRST => store.log_entries(&query),
            _ => Ok(Vec::new()),
        })
    }

    fn log_proof(&self, chain: ChainId, proof: LogProof) -> StoreFuture<'_, Option<Vec<Hash>>> {
        self.read(move |store| match proof {
            _ if chain != ChainId::FIRST => Ok(None),
            LogProof::Inclusion { index, size } => store.log_inclusion(index, size),
            LogProof::Consistency { from, to } => store.log_consistency(from, to),
        })
    }

    fn hash_log(&self) -> StoreFuture<'_, LogRoot> {
        Box::pin(async move {
            while self.write(|store| store.store_hashes(HASH_PORTION)).await? {}
            self.read(SqliteStore::whole_root).await
        })
    }

    fn keep_checkpoint(&self, signed: SignedCheckpoint) -> StoreFuture<'_, SignedCheckpoint> {
        self.write(move |store| store.keep_latest_checkpoint(&signed))
    }

    fn log(&self, entries: Vec<NewLogEntry>) -> StoreFuture<'_, ()> {
        self.write(move |store| {
            let events: Vec<Event<'_>> = entries.iter().map(NewLogEntry::event).collect();
            store.log(&events)
        })
    }
}

impl Registry for SqliteRelay {
    fn registry(
        &self,
        known: Option<RegistryVersion>,
    ) -> StoreFuture<'_, Option<RegistrySnapshot>> {
        // A look at an index that is in memory: shorter than it takes to wake another thread.
        Box::pin(async move {
            // Counted after the change is durable, so that a later call sees what this one missed.
            let declarations = self.shared.declarations.load(Ordering::Acquire);
            let mut reader = self.registry_reader();
            let reader = reader.as_mut().ok_or_else(|| self.shared.gone())?;
            let answer = reader.read(known, declarations);
            self.stop_if_fatal(&answer);
            answer
        })
    }

    fn change_registry(&self, change: RegistryChange) -> StoreFuture<'_, bool> {
        let shared = std::sync::Arc::clone(&self.shared);
        self.write(move |store| match change {
            RegistryChange::AddToken { token, by } => store.add_token(&token, &by),
            RegistryChange::Pair { code, secret, at } => {
                let is_paired = store.pair_token(code, secret, at)?;
                // The number of tokens is the same, so this is what makes a new version.
                shared.declarations.fetch_add(1, Ordering::Release);
                Ok(is_paired)
            }
            RegistryChange::RevokeToken { name, by, at } => store.revoke_token(&name, &by, at),
            RegistryChange::NoteUses(uses) => {
                store.note_token_uses(&uses).map(|()| !uses.is_empty())
            }
            RegistryChange::Declare { agent, at } => {
                store.declare(&agent, at)?;
                shared.declarations.fetch_add(1, Ordering::Release);
                Ok(true)
            }
        })
    }
}

impl RegistryReader {
    /// The registry, unless it is that of a version.
    fn read(
        &mut self,
        known: Option<RegistryVersion>,
        declarations: u64,
    ) -> Result<Option<RegistrySnapshot>, StoreError> {
        let is_known = known == Some(RegistryVersion(self.version));
        let same = self.state.filter(|(_, seen)| *seen == declarations);
        let counts = same.filter(|_| is_known).map(|(counts, _)| counts);
        let Some((tokens, agents)) = self.store.registry_unless(counts)? else {
            return Ok(None);
        };
        let state = Some((TokenCounts::of(&tokens), declarations));
        if self.state != state {
            self.version += 1;
            self.state = state;
        }
        Ok(Some(RegistrySnapshot {
            version: RegistryVersion(self.version),
            tokens,
            agents,
        }))
    }
}

impl BlobIndex for SqliteRelay {
    fn add_blob(&self, upload: Upload, at: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |store| store.add_blob(&upload, at))
    }

    fn uploaded_bytes(&self, by: &str, besides: Digest) -> StoreFuture<'_, u64> {
        let by = by.to_owned();
        self.read(move |store| store.uploaded_bytes(&by, besides))
    }

    fn blob_use(&self, query: BlobQuery) -> StoreFuture<'_, BlobUse> {
        self.read(move |store| store.blob_use(&query))
    }
}

impl PollQueue for SqliteRelay {
    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<DuePoll>> {
        self.read(move |store| store.due_polls(now, within, limit))
    }

    fn count_poll(&self, poll: DuePoll, state: PollState) -> StoreFuture<'_, ()> {
        self.write(move |store| store.count_poll(&poll, state))
    }
}

impl Maintenance for SqliteRelay {
    fn next_times(&self, poll_within: Option<i64>) -> StoreFuture<'_, NextTimes> {
        self.read(move |store| store.next_times(poll_within))
    }

    fn maintain(&self, task: MaintenanceTask) -> StoreFuture<'_, MaintenanceResult> {
        let done = |count, more| MaintenanceResult {
            count,
            more,
            blobs: Vec::new(),
        };
        match task {
            MaintenanceTask::SettleOverdue { now, limit } => self.write_indexed(move |store| {
                let (told, more) = store.settle_overdue(now, limit)?;
                Ok(done(told, more))
            }),
            MaintenanceTask::Erase(retention) => self.write(move |store| store.retire(&retention)),
            MaintenanceTask::ForgetBlobs { before, limit } => self.write(move |store| {
                let blobs = store.drop_blobs(before, limit)?;
                Ok(MaintenanceResult {
                    count: to_u64(blobs.len()),
                    more: blobs.len() >= limit,
                    blobs,
                })
            }),
            MaintenanceTask::Scrub => self.write(move |store| Ok(done(0, !store.scrub()?))),
        }
    }

    fn notices(&self, limit: usize) -> StoreFuture<'_, Vec<(u64, String)>> {
        self.read(move |store| store.notices(limit))
    }

    fn drop_notices(&self, sent: Vec<u64>) -> StoreFuture<'_, ()> {
        self.write(move |store| store.drop_notices(&sent))
    }

    fn gauges(&self) -> StoreFuture<'_, StoreGauges> {
        self.read(|store| store.gauges())
    }

    fn quarantine(&self, limit: usize) -> StoreFuture<'_, Vec<Quarantined>> {
        self.read(move |store| {
            let mut all = store.quarantine()?;
            all.truncate(limit);
            Ok(all)
        })
    }

    fn retry_quarantine(&self) -> StoreFuture<'_, u64> {
        self.write_indexed(SqliteStore::retry_quarantine)
    }

    fn stop(&self) -> StoreFuture<'_, ()> {
        self.close()
    }
}
