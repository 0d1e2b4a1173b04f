//! The port: each method is one command of the writer, or one query.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{ChainId, Event, Hash, LogEntry, LogQuery, SignedCheckpoint};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    Acceptance, AttemptResult, AuditLog, BlobIndex, BlobPart, BlobQuery, BlobUse, ConsentLedger,
    CourierQuery, Cursor, DeadLetter, DeliveryQueue, DueDelivery, DuePoll, FilledSearch,
    GrantQuery, HandedOut, HeldQuery, Holds, InboxEntry, InboxQuery, Intake, JoinedChain, Lease,
    LeasedDelivery, LogChain, LogHead, LogProof, LogRoot, LogWriter, Mailbox, MailboxAction,
    MailboxChange, Maintenance, MaintenanceResult, MaintenanceTask, MessageViews, NewLogEntry,
    NextTimes, PollQueue, PollState, RecordQuery, Registry, RegistryChange, RegistrySnapshot,
    RegistryVersion, SearchQuery, StoreFuture, StoreGauges, StoredPart, Upload,
};
use crosstalk_protocol::relay::{
    Admission, Delivery, DeliveryState, HeldMessage, HoldDecision, Quarantined, Ruling,
};
use crosstalk_protocol::store::{Listing, Page, Record, Thread, ThreadFilter};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fault::PgResult;
use super::sql::{Db, number, params, to_u64, value};
use super::writer::PgJob;
use super::{
    PostgresRelay, delivery, entry, fault, hold, inbox, index, keep, ledger, log, poll, quarantine,
    query, queue, registry, retire, search,
};

/// How many groups of 256 hashes are stored in one go: others write in between.
const HASH_PORTION: usize = 32;
/// The key of the lock under which one relay at a time does periodic work: `crosstlm` in ASCII.
const MAINTENANCE_LOCK: i64 = 0x6372_6f73_7374_6c6d;

impl Intake for PostgresRelay {
    fn accept(&self, admission: Box<Admission>) -> StoreFuture<'_, Acceptance> {
        self.ask_writer(move |tell| PgJob::Accept(admission, tell))
    }

    fn caught_up(&self) -> StoreFuture<'_, ()> {
        self.write(index::index_rest)
    }
}

impl Holds for PostgresRelay {
    fn decide(&self, decision: Box<HoldDecision>) -> StoreFuture<'_, Ruling> {
        self.ask_writer(move |tell| PgJob::Decide(decision, tell))
    }

    fn held(&self, query: HeldQuery) -> StoreFuture<'_, Vec<HeldMessage>> {
        self.read(move |db| hold::held(db, &query))
    }
}

impl Mailbox for PostgresRelay {
    fn inbox(&self, query: InboxQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.read(move |db| inbox::inbox_of(db, &query))
    }

    fn has_cursor(&self, cursor: &Cursor) -> StoreFuture<'_, bool> {
        let cursor = cursor.clone();
        self.read(move |db| inbox::has_cursor(db, &cursor))
    }

    fn hand_out(&self, handed: HandedOut) {
        // A store that stops, or has too much to write, notes nothing.
        let _ = self.enqueue(&self.jobs, PgJob::HandedOut(handed));
    }

    fn change_mailbox(&self, change: MailboxChange) -> StoreFuture<'_, Vec<String>> {
        self.write(move |db| change_mailbox(db, &change))
    }

    fn was_handed_out(&self, address: &str, names: &[&str]) -> StoreFuture<'_, bool> {
        let address = address.to_owned();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.read(move |db| {
            for name in &names {
                if delivery::was_handed_out(db, &address, name)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

fn change_mailbox(db: &Db, change: &MailboxChange) -> PgResult<Vec<String>> {
    let (address, ids, at) = (change.address.as_str(), change.ids.as_slice(), change.at);
    let changed = match change.action {
        MailboxAction::Reach(state) => delivery::mark(db, address, ids, state, at)?,
        MailboxAction::NoteFailure { is_final } => {
            delivery::note_failure(db, address, ids, is_final, at)?
        }
    };
    queue::enqueue_notices(db, change.notices.iter().cloned())?;
    for notice in &change.settled {
        let ids = std::slice::from_ref(&notice.id);
        delivery::mark(db, &notice.address, ids, DeliveryState::Acknowledged, at)?;
    }
    Ok(changed)
}

/// A time that comes so much later.
fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(wait))
}

impl DeliveryQueue for PostgresRelay {
    fn lease(&self, duration: Duration, limit: usize) -> StoreFuture<'_, Vec<DueDelivery>> {
        let shared = Arc::clone(&self.shared);
        self.with_session(move |session| {
            let now = session.read(|db| shared.now(db))?;
            let next = session.read(queue::next_due)?;
            match next.is_some_and(|next| next <= now) {
                true => session.change(|db| queue::due(db, now, after(now, duration), limit)),
                false => Ok(Vec::new()),
            }
        })
    }

    fn leased(&self, lease: &Lease) -> StoreFuture<'_, Option<LeasedDelivery>> {
        let lease = lease.clone();
        self.change(move |db| {
            ledger::lock_for_hand_out(db, &lease.id)?;
            let mut deliveries = delivery::deliveries(db, &lease.id)?.into_iter();
            let Some(delivery) = deliveries.find(|d| lease.holds(d)) else {
                return Ok(None);
            };
            let record = inbox::taken_as(db, &lease.id)?;
            Ok(Some(LeasedDelivery { delivery, record }))
        })
    }

    fn renew(&self, leases: Vec<Lease>, duration: Duration) -> StoreFuture<'_, u64> {
        let shared = Arc::clone(&self.shared);
        self.change(move |db| delivery::renew(db, &leases, after(shared.now(db)?, duration)))
    }

    fn release(&self, leases: Vec<Lease>, wait: Duration) -> StoreFuture<'_, u64> {
        let shared = Arc::clone(&self.shared);
        self.change(move |db| delivery::release(db, &leases, after(shared.now(db)?, wait)))
    }

    fn finish(&self, result: AttemptResult) -> StoreFuture<'_, bool> {
        self.write(move |db| {
            let lease = (result.id.as_str(), result.to.as_str(), result.leased_at);
            let counts = delivery::attempted(db, lease, &result.attempt, result.at)?;
            if counts {
                queue::enqueue_notices(db, result.notices.iter().cloned())?;
            }
            Ok(counts)
        })
    }

    fn courier(&self, query: CourierQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.read(move |db| {
            let offers = |errand: &_| query.rules.offers_errand(&query.caller, errand);
            queue::courier(db, &offers, query.limit)
        })
    }

    fn deliveries(&self, ids: Vec<String>) -> StoreFuture<'_, Vec<Vec<Delivery>>> {
        self.read(move |db| ids.iter().map(|id| delivery::deliveries(db, id)).collect())
    }

    fn dead_letters(&self, limit: usize) -> StoreFuture<'_, Vec<DeadLetter>> {
        self.read(move |db| delivery::dead(db, limit))
    }

    fn requeue(&self, id: &str, at: Timestamp) -> StoreFuture<'_, u64> {
        let id = id.to_owned();
        self.write(move |db| delivery::requeue(db, &id, at))
    }
}

impl MessageViews for PostgresRelay {
    fn records(&self, query: RecordQuery) -> StoreFuture<'_, Vec<Record>> {
        self.read(move |db| match &query {
            RecordQuery::Ids(ids) => {
                let found = ids.iter().map(|id| inbox::taken_as(db, id));
                found.filter_map(Result::transpose).collect()
            }
            RecordQuery::Seqs(seqs) => inbox::taken(db, seqs),
            RecordQuery::Referring { digest, limit } => {
                inbox::taken(db, &keep::referring(db, *digest, *limit)?)
            }
        })
    }

    fn thread(&self, id: &str) -> StoreFuture<'_, Option<Thread>> {
        let id = id.to_owned();
        self.read_state(move |db| query::thread(db, &id))
    }

    fn threads(&self, filter: ThreadFilter, page: Page) -> StoreFuture<'_, Listing<Thread>> {
        self.read_state(move |db| query::threads(db, &filter, page))
    }

    fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Listing<Record>> {
        let thread = thread.to_owned();
        self.read(move |db| query::messages(db, &thread, after, limit))
    }

    fn messages_before(
        &self,
        thread: &str,
        before: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Record>> {
        let thread = thread.to_owned();
        self.read(move |db| query::messages_before(db, &thread, before, limit))
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, FilledSearch> {
        Box::pin(async move {
            if query.is_complete {
                self.write(index::index_rest).await?;
            }
            self.read_state(move |db| search::find(db, &query)).await
        })
    }

    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(u64, Vec<String>)>> {
        let thread = thread.to_owned();
        self.read(move |db| inbox::handovers(db, &thread, number(after), limit))
    }
}

impl ConsentLedger for PostgresRelay {
    fn grants(&self, query: GrantQuery) -> StoreFuture<'_, Vec<Grant>> {
        self.read_state(move |db| ledger::grants(db, &query))
    }

    fn under(&self, consent: &str) -> StoreFuture<'_, Vec<(String, bool)>> {
        let consent = consent.to_owned();
        self.read(move |db| ledger::under(db, &consent))
    }
}

impl AuditLog for PostgresRelay {
    fn join(&self, writer: LogWriter) -> StoreFuture<'_, JoinedChain> {
        Box::pin(async move {
            let mine = writer.name.clone();
            let (name, joined) = self.write(move |db| log::join(db, &writer)).await?;
            let door = &self.shared.door;
            if name != mine {
                return Err(fault::other_name(&door.place.to_string(), &name, &mine));
            }
            door.chain.store(number(joined.chain.0), Ordering::SeqCst);
            Ok(joined)
        })
    }

    fn chains(&self) -> StoreFuture<'_, Vec<LogChain>> {
        self.read(log::chains)
    }

    fn log_head(&self, chain: ChainId) -> StoreFuture<'_, LogHead> {
        self.read_state(move |db| log::head(db, chain))
    }

    fn log_entries(&self, query: LogQuery) -> StoreFuture<'_, Vec<LogEntry>> {
        self.read_state(move |db| entry::entries(db, &query))
    }

    fn log_proof(&self, chain: ChainId, proof: LogProof) -> StoreFuture<'_, Option<Vec<Hash>>> {
        self.read_state(move |db| log::proof(db, chain, proof))
    }

    fn hash_log(&self) -> StoreFuture<'_, LogRoot> {
        Box::pin(async move {
            while self.write(|db| log::store_hashes(db, HASH_PORTION)).await? {}
            self.read_state(log::whole_root).await
        })
    }

    fn keep_checkpoint(&self, signed: SignedCheckpoint) -> StoreFuture<'_, SignedCheckpoint> {
        self.write(move |db| log::keep_latest_checkpoint(db, &signed))
    }

    fn log(&self, entries: Vec<NewLogEntry>) -> StoreFuture<'_, ()> {
        self.write(move |db| {
            let events: Vec<Event<'_>> = entries.iter().map(NewLogEntry::event).collect();
            log::append_all(db, &events)
        })
    }
}

impl Registry for PostgresRelay {
    fn registry(
        &self,
        known: Option<RegistryVersion>,
    ) -> StoreFuture<'_, Option<RegistrySnapshot>> {
        self.read(move |db| registry::read(db, known))
    }

    fn change_registry(&self, change: RegistryChange) -> StoreFuture<'_, bool> {
        self.write(move |db| registry::change(db, &change))
    }
}

impl BlobIndex for PostgresRelay {
    fn add_blob(&self, upload: Upload, at: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |db| keep::add_blob(db, &upload, at))
    }

    fn uploaded_bytes(&self, by: &str, besides: Digest) -> StoreFuture<'_, u64> {
        let by = by.to_owned();
        self.read(move |db| keep::uploaded_bytes(db, &by, besides))
    }

    fn keeps_bytes(&self) -> bool {
        true
    }

    fn add_part(&self, part: BlobPart, at: Timestamp) -> StoreFuture<'_, ()> {
        self.change(move |db| keep::add_part(db, &part, at))
    }

    fn read_part(&self, digest: Digest, number: u64) -> StoreFuture<'_, Option<StoredPart>> {
        self.read(move |db| keep::read_part(db, digest, number))
    }

    fn blob_use(&self, query: BlobQuery) -> StoreFuture<'_, BlobUse> {
        self.read_state(move |db| {
            let digest = query.digest;
            Ok(BlobUse {
                is_unused: keep::is_unused(db, digest, query.by.as_deref())?,
                parties: keep::referring_parties(db, digest, query.now, query.limit)?,
            })
        })
    }
}

impl PollQueue for PostgresRelay {
    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<DuePoll>> {
        self.read(move |db| poll::due(db, now, within, limit))
    }

    fn count_poll(&self, poll: DuePoll, state: PollState) -> StoreFuture<'_, ()> {
        self.write(move |db| poll::count(db, &poll, state))
    }
}

impl Maintenance for PostgresRelay {
    fn next_times(&self, poll_within: Option<i64>) -> StoreFuture<'_, NextTimes> {
        self.read(move |db| {
            Ok(NextTimes {
                delivery: queue::next_due(db)?,
                deadline: queue::next_deadline(db)?,
                lapse: hold::next_lapse(db)?,
                poll_end: poll::next_end(db, poll_within)?,
            })
        })
    }

    fn maintain(&self, task: MaintenanceTask) -> StoreFuture<'_, MaintenanceResult> {
        self.write(move |db| {
            // Another relay does it now.
            let sql = "SELECT pg_try_advisory_xact_lock($1)";
            match db.one(sql, params![MAINTENANCE_LOCK], value::<bool>)? {
                true => maintain(db, &task),
                false => Ok(MaintenanceResult::default()),
            }
        })
    }

    fn notices(&self, limit: usize) -> StoreFuture<'_, Vec<(u64, String)>> {
        self.read(move |db| queue::notices(db, limit))
    }

    fn drop_notices(&self, sent: Vec<u64>) -> StoreFuture<'_, ()> {
        self.write(move |db| queue::drop_notices(db, &sent))
    }

    fn gauges(&self) -> StoreFuture<'_, StoreGauges> {
        self.read(|db| {
            let sql = "SELECT pg_database_size(current_database())";
            let bytes: i64 = db.one(sql, params![], value)?;
            queue::gauges(db, bytes.unsigned_abs())
        })
    }

    fn is_reachable(&self) -> bool {
        self.shared.is_reachable()
    }

    fn quarantine(&self, limit: usize) -> StoreFuture<'_, Vec<Quarantined>> {
        self.read(move |db| quarantine::list(db, limit))
    }

    fn retry_quarantine(&self) -> StoreFuture<'_, u64> {
        self.write(index::retry_quarantined)
    }

    fn stop(&self) -> StoreFuture<'_, ()> {
        self.close()
    }
}

fn maintain(db: &Db, task: &MaintenanceTask) -> PgResult<MaintenanceResult> {
    Ok(match task {
        MaintenanceTask::SettleOverdue { now, limit } => {
            index::index_rest(db)?;
            let count = queue::overdue(db, *now, *limit)?;
            let next = queue::next_deadline(db)?;
            MaintenanceResult {
                count,
                more: next.is_some_and(|next| next <= *now),
                ..MaintenanceResult::default()
            }
        }
        MaintenanceTask::Erase(retention) => retire::retire(db, retention)?,
        MaintenanceTask::ForgetBlobs { before, limit } => {
            let blobs = keep::drop_blobs(db, *before, *limit)?;
            MaintenanceResult {
                count: to_u64(blobs.len()),
                more: blobs.len() >= *limit,
                blobs,
            }
        }
        // The server takes erased rows out of its files by itself (VACUUM).
        MaintenanceTask::Scrub => MaintenanceResult::default(),
    })
}
