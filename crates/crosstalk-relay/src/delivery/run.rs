//! The dispatcher: one task that leases deliveries, starts attempts and records their results; another one meets deadlines.

use super::lane::{self, Effect, HeldLease, Key, Lanes};
use super::{
    AttemptOutcome, Blame, DeliveryHandler, DeliveryJob, DeliverySetup, email, exec, file, http,
    mcp, relay as federation, reply, sms,
};
use crate::config::RouteEntry;
use crate::core::Relay;
use crate::metrics::{DeliveryOutcome, Metrics};
use crate::rate::RateLimiter;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::{Document, ErrorCode, Reading, Timestamp};
use crosstalk_protocol::expects_answer;
use crosstalk_protocol::relay::port::{
    AttemptResult, DueDelivery, HeldQuery, Lease, LeasedDelivery, MailboxChange, MaintenanceTask,
    NextTimes, SettledNotice,
};
use crosstalk_protocol::relay::{
    Attempt, DeliveryState, Handler as By, Ruling, public_reason, report, undelivered_help,
};
use crosstalk_protocol::store::{Record, StoreError};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use tokio::sync::watch as signal;
use tokio::task::{Id, JoinSet};

/// How many attempts run at once, over all destinations.
const MAX_RUNNING: usize = 1024;
/// How many deliveries are leased in one transaction.
const BATCH: usize = 256;
/// How many are held at most; of what comes then, long lanes give back.
const MAX_LEASED: usize = 20_000;
/// A lane is long with more than these.
const LONG_LANE: usize = 1000;
/// How long a lease lasts, and after which time it is renewed as long as the delivery is held here.
const LEASE: Duration = Duration::from_secs(120);
const RENEW_AFTER: Duration = Duration::from_secs(40);
/// How long what is given back stays away.
const GIVEN_BACK_TIME: Duration = Duration::from_secs(30);
/// At the latest after so long there is a look at the clock: it may have been set.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// How many overdue questions are settled in one turn.
const MAX_OVERDUE: usize = 64;

struct Dispatcher {
    relay: Relay,
    handlers: Arc<Handlers>,
    /// The leased deliveries, and how often each was tried before.
    held: HashMap<Key, (u32, HeldLease)>,
    /// When the leases were renewed.
    renewed: Timestamp,
    /// Deliveries that were leased again before the end of the earlier attempt was noticed.
    again: HashMap<Key, DueDelivery>,
    running: JoinSet<Effect>,
    tasks: HashMap<Id, (Key, String)>,
}

struct Handlers {
    /// How often those at the end of a route ask others by themselves.
    asking: RateLimiter,
    http: http::Http,
    file: file::File,
    exec: exec::Exec,
    relay: federation::FederationHandler,
    email: email::MailHandler,
    sms: sms::TextHandler,
    mcp: mcp::ToolHandler,
}

impl Handlers {
    fn of(&self, by: By) -> Option<&dyn DeliveryHandler> {
        match by {
            By::Http => Some(&self.http),
            By::File => Some(&self.file),
            By::Exec => Some(&self.exec),
            By::Relay => Some(&self.relay),
            By::Email => Some(&self.email),
            By::Sms => Some(&self.sms),
            By::Mcp => Some(&self.mcp),
            By::Inbox | By::CopyPaste => None,
        }
    }
}

/// Delivers until it is told to stop.
pub(super) async fn run(
    relay: Relay,
    setup: DeliverySetup,
    mut stop: signal::Receiver<Option<Duration>>,
) {
    let handlers = Handlers {
        asking: RateLimiter::new(),
        http: http::Http::new(setup.outbound.clone()),
        sms: sms::TextHandler::new(relay.clone(), setup.outbound.clone()),
        file: file::File,
        exec: exec::Exec::new(setup.work.clone()),
        mcp: mcp::ToolHandler::new(setup.work, setup.outbound.clone()),
        relay: federation::FederationHandler::new(relay.clone(), setup.outbound),
        email: email::MailHandler::new(relay.clone(), setup.data),
    };
    let mut dispatcher = Dispatcher {
        handlers: Arc::new(handlers),
        held: HashMap::new(),
        again: HashMap::new(),
        running: JoinSet::new(),
        tasks: HashMap::new(),
        renewed: relay.now(),
        relay,
    };
    let mut stopped = dispatcher.relay.stopped();
    loop {
        dispatcher.renew().await;
        let next = dispatcher.lease().await;
        if next.lapse.is_some_and(|at| at <= dispatcher.relay.now()) {
            dispatcher.tell_lapsed().await;
        }
        dispatcher.begin();
        let wait = dispatcher.wait(&next);
        let relay = dispatcher.relay.clone();
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => break,
            _ = stopped.wait_for(Option::is_some) => break,
            () = relay.work() => {}
            Some(ended) = dispatcher.running.join_next_with_id() => dispatcher.ended(ended),
            () = tokio::time::sleep(wait) => {}
        }
        while let Some(ended) = dispatcher.running.try_join_next_with_id() {
            dispatcher.ended(ended);
        }
    }
    let grace = stop.borrow().unwrap_or_default();
    dispatcher.finish(grace).await;
}

impl Dispatcher {
    /// Keeps the leases of what is held here: an attempt may take longer than a lease.
    async fn renew(&mut self) {
        let now = self.relay.now();
        let since = now.as_millis().abs_diff(self.renewed.as_millis());
        if since < u64::try_from(RENEW_AFTER.as_millis()).unwrap_or(u64::MAX) {
            return;
        }
        self.renewed = now;
        for leases in self.leases().chunks(BATCH) {
            let renewed = self.relay.store().renew(leases.to_vec(), LEASE);
            if let Err(error) = renewed.await {
                return trouble(&error);
            }
        }
    }

    /// The leases of what is held here.
    fn leases(&self) -> Vec<Lease> {
        let held = self.held.iter();
        let held = held.map(|(key, (_, held))| lease_of(key, held.at()));
        let again = self.again.values();
        let again = again.map(|due| due.lease.clone());
        held.chain(again).collect()
    }

    /// Leases what is due. When something has to be done next; nothing if the store has trouble.
    async fn lease(&mut self) -> NextTimes {
        loop {
            let now = self.relay.now();
            let next = match self.relay.next_times().await {
                Ok(next) => next,
                Err(error) => {
                    trouble(&error);
                    return NextTimes::default();
                }
            };
            // Deliveries that this dispatcher has leased are due again later.
            if next.delivery.is_none_or(|at| at > now) {
                return next;
            }
            let due = match self.relay.store().lease(LEASE, BATCH).await {
                Ok(due) => due,
                Err(error) => {
                    trouble(&error);
                    return NextTimes::default();
                }
            };
            let is_none = due.is_empty();
            let mut surplus = Vec::new();
            for due in due {
                let key = (due.lease.id.clone(), due.lease.to.clone());
                if let Some((attempts, held)) = self.held.get(&key) {
                    if *attempts == due.attempts && !held.is_over() {
                        // It outlived its lease: the clock was set, or the store was busy for too long.
                        held.replace(due.lease.at);
                    } else {
                        self.again.insert(key, due);
                    }
                    continue;
                }
                let lane = lane::name(&self.relay.config(), &due.lease.to, due.by);
                if self.held.len() >= MAX_LEASED && self.lanes().waiting(&lane) > LONG_LANE {
                    surplus.push(due.lease);
                    continue;
                }
                self.hold(key, lane, due);
            }
            self.give_back(surplus, GIVEN_BACK_TIME).await;
            // Urgent deliveries begin before the rest is read.
            self.begin();
            if is_none {
                return next;
            }
        }
    }

    fn hold(&mut self, key: Key, lane: String, due: DueDelivery) {
        let held = HeldLease::new(due.lease.at);
        self.held.insert(key, (due.attempts, held));
        self.lanes().push(lane, due);
    }

    /// The lanes, locked.
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.relay.lanes()
    }

    /// Starts what there is room for.
    fn begin(&mut self) {
        let now = self.relay.now();
        let config = self.relay.config();
        while self.running.len() < MAX_RUNNING {
            let Some((lane, due)) = self.relay.lanes().next(now) else {
                break;
            };
            let key = (due.lease.id.clone(), due.lease.to.clone());
            let lease = match self.held.get(&key) {
                Some((_, held)) => held.clone(),
                None => HeldLease::new(due.lease.at),
            };
            let route = lane::route(&config, &due.lease.to, due.by);
            let route = route.cloned().map(Arc::new);
            let (relay, handlers) = (self.relay.clone(), Arc::clone(&self.handlers));
            let task = self
                .running
                .spawn(async move { attempt(&relay, &handlers, (due, lease), route).await });
            self.lanes().start(key.clone(), now);
            self.tasks.insert(task.id(), (key, lane));
        }
    }

    fn ended(&mut self, ended: Result<(Id, Effect), tokio::task::JoinError>) {
        let (id, effect) = match ended {
            Ok((id, effect)) => (id, effect),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(reason = %error, "a delivery attempt panicked");
                }
                (error.id(), Effect::FailsOnMessage)
            }
        };
        if let Some((key, lane)) = self.tasks.remove(&id) {
            self.held.remove(&key);
            self.lanes().stop(&key);
            let now = self.relay.now();
            self.lanes().ended(&lane, &key, effect, now);
            if let Some(due) = self.again.remove(&key) {
                self.hold(key, lane, due);
            }
        }
    }

    /// Tells senders whose held messages were not decided about in time.
    async fn tell_lapsed(&self) {
        let query = HeldQuery::Lapsed {
            now: self.relay.now(),
            limit: MAX_OVERDUE,
        };
        let lapsed = match self.relay.store().held(query).await {
            Ok(lapsed) => lapsed,
            Err(error) => return trouble(&error),
        };
        for held in &lapsed {
            match self.relay.lapse(held).await {
                Ok(Ruling::Done(_)) => Metrics::count(&self.relay.metrics().timed_out),
                // A person decided meanwhile.
                Ok(_) => {}
                Err(error) => trouble(&error),
            }
        }
    }

    /// How long nothing has to be done.
    fn wait(&self, next: &NextTimes) -> Duration {
        let next = [next.delivery, next.lapse, self.lanes().next_trial()];
        until(next.into_iter().flatten().min(), self.relay.now())
    }

    async fn give_back(&self, leases: Vec<Lease>, after: Duration) {
        if leases.is_empty() {
            return;
        }
        if let Err(error) = self.relay.store().release(leases, after).await {
            trouble(&error);
        }
    }

    /// Lets what runs end, then gives everything back.
    async fn finish(mut self, grace: Duration) {
        let ends = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                if let Some((key, _)) = ended.ok().and_then(|(id, _)| self.tasks.remove(&id)) {
                    self.held.remove(&key);
                }
            }
        };
        if tokio::time::timeout(grace, ends).await.is_err() {
            tracing::warn!(
                "some delivery attempts were cut off, and are repeated after the next start"
            );
            self.running.shutdown().await;
        }
        self.give_back(self.leases(), Duration::ZERO).await;
    }
}

/// One attempt, with everything that follows from it.
async fn attempt(
    relay: &Relay,
    handlers: &Handlers,
    (due, lease): (DueDelivery, HeldLease),
    route: Option<Arc<RouteEntry>>,
) -> Effect {
    let key = (due.lease.id, due.lease.to);
    let (record, queued_at) = match leased(relay, &key, &lease).await {
        Ok(Some(LeasedDelivery {
            record: Some(record),
            delivery,
        })) => (record, delivery.queued_at),
        Ok(Some(_)) => {
            let reason = "the message is gone".to_owned();
            settle(relay, &key, &lease, Attempt::Failed { reason }, None).await;
            return Effect::Works;
        }
        // It was cancelled since it was leased, or somebody else holds it.
        Ok(None) => return Effect::Works,
        Err(error) => {
            trouble(&error);
            return Effect::Works;
        }
    };
    let to = key.1;
    let follow_up = match due.by {
        By::Exec => relay.find_follow_up(&to, &record).await.ok().flatten(),
        _ => None,
    };
    let job = DeliveryJob {
        text: relay.leaving(&record).unwrap_or_default(),
        follow_up: follow_up.map(Box::new),
        by: due.by,
        attempts: due.attempts,
        queued_at,
        to,
        record,
        route,
    };
    let outcome = deliver(relay, handlers, &job).await;
    conclude(relay, &job, &lease, outcome).await
}

/// A delivery as long as its lease holds: it may be cancelled after it was leased.
async fn leased(
    relay: &Relay,
    key: &Key,
    lease: &HeldLease,
) -> Result<Option<LeasedDelivery>, StoreError> {
    let found = relay.store().leased(&lease_of(key, lease.at())).await;
    if let Ok(None) = found {
        lease.end();
    }
    found
}

/// Hands a job to its handler, and takes its answer in.
async fn deliver(relay: &Relay, handlers: &Handlers, job: &DeliveryJob) -> AttemptOutcome {
    if job.text.is_empty() {
        return AttemptOutcome::refused(
            ErrorCode::Consent,
            "the consent of the message expired before it could be delivered",
        );
    }
    let Some(handler) = handlers.of(job.by) else {
        return AttemptOutcome::failed(ErrorCode::Route, "no handler delivers to this address");
    };
    if matches!(job.by, By::Http | By::Relay | By::Email) && !has_hop(job) {
        return AttemptOutcome::refused(
            ErrorCode::TooLarge,
            "there is no room in the message for the hop of this relay, without which a loop would not be noticed",
        );
    }
    if job.by.is_program() && reply::is_answered(relay, job).await {
        return AttemptOutcome::delivered();
    }
    match handler.handle(job).await {
        AttemptOutcome::Delivered {
            answer: Some(answer),
        } => match reply::accept_reply(relay, job, answer, &handlers.asking).await {
            Ok(()) => AttemptOutcome::delivered(),
            Err(outcome) => outcome,
        },
        // The sender waits for an answer that never comes, unless the program gave it in another way.
        AttemptOutcome::Delivered { answer: None }
            if job.by == By::Exec
                && expects_answer(job.asked().meaning)
                && !reply::has_answered(relay, job).await =>
        {
            AttemptOutcome::later(
                ErrorCode::Route,
                "the command printed nothing, and the message asks for an answer",
            )
            .blaming(Blame::Either)
        }
        other => other,
    }
}

/// Whether the hop of this relay is in what leaves it, and what leaves is still within the limits of an envelope.
fn has_hop(job: &DeliveryJob) -> bool {
    job.text != job.record.text && Document::parse(&job.text, Reading::Strict).is_accepted()
}

/// Records the outcome of a job, and tells the sender if it became a dead letter.
async fn conclude(
    relay: &Relay,
    job: &DeliveryJob,
    lease: &HeldLease,
    outcome: AttemptOutcome,
) -> Effect {
    let metrics = relay.metrics();
    let key = (job.record.id.clone(), job.to.clone());
    let (id, to) = &key;
    let (code, reason, public, after_wait, effect) = match outcome {
        AttemptOutcome::Delivered { .. } => {
            Metrics::count(&metrics.delivered);
            metrics.count_attempt(job.by, DeliveryOutcome::Delivered);
            tracing::info!(%id, by = job.by.as_str(), "delivered");
            settle_retried(relay, job).await;
            settle(relay, &key, lease, Attempt::Delivered, None).await;
            return Effect::Works;
        }
        AttemptOutcome::Later {
            code,
            reason,
            public,
            after,
            blame,
        } => {
            let effect = match blame {
                Blame::Destination => Effect::Fails,
                Blame::Either => Effect::FailsOnMessage,
                Blame::Message => Effect::Works,
            };
            let random = getrandom::u32().unwrap_or(u32::MAX / 2);
            let backoff = relay.config().retry.backoff();
            let wait = backoff.after(job.attempt(), random);
            // As long as the other side asks for, within reason.
            let asked = after.map(|a| a.min(backoff.longest.max(Duration::from_secs(3600))));
            let wait = wait.map(|w| asked.map_or(w, |a| a.max(w)));
            (code, reason, public, wait, effect)
        }
        AttemptOutcome::Failed {
            code,
            reason,
            public,
        } => (code, reason, public, None, Effect::Works),
    };
    let now = relay.now();
    // A worker that lost its lease has nothing to report: the delivery was cancelled, or somebody else tries.
    let since = match leased(relay, &key, lease).await {
        Ok(Some(leased)) => leased.delivery.queued_at,
        Ok(None) => {
            tracing::info!(%id, by = job.by.as_str(), reason, "failed after its lease was over");
            return effect;
        }
        Err(error) => {
            trouble(&error);
            return effect;
        }
    };
    if let Some(wait) = after_wait {
        Metrics::count(&metrics.retried);
        metrics.count_attempt(job.by, DeliveryOutcome::Retried);
        tracing::info!(%id, by = job.by.as_str(), reason, "to be tried again");
        let at = after(now, wait);
        // A person who replied asks for nothing, and is told only if it fails for good.
        let notice = match job.by {
            by if by.is_program() => report::retried(job.asked(), to, since),
            _ => None,
        };
        settle(relay, &key, lease, Attempt::Later { at, reason }, notice).await;
        return effect;
    }
    Metrics::count(&metrics.failed);
    metrics.count_attempt(job.by, DeliveryOutcome::Failed);
    tracing::warn!(%id, by = job.by.as_str(), code = code.as_str(), reason, "became a dead letter");
    let public = public.as_deref().unwrap_or(public_reason(job.by, code));
    let why = (code, public, undelivered_help(job.by, code));
    let question = job.follow_up.as_ref().map(|f| &f.question);
    let senders = std::iter::once(&job.record).chain(question);
    let notices = senders.filter_map(|asked| report::undeliverable(asked, to, why, since));
    settle_retried(relay, job).await;
    let reason = format!("{}: {reason}", code.as_str());
    settle(relay, &key, lease, Attempt::Failed { reason }, notices).await;
    effect
}

/// Settles the notice that the sender of the question got while the program was tried again.
async fn settle_retried(relay: &Relay, job: &DeliveryJob) {
    if !job.by.is_program() || job.attempts == 0 {
        return;
    }
    let since = queued_at(relay, &job.record.id, &job.to).await;
    let since = since.unwrap_or(job.record.at);
    let SettledNotice { address, id } = relay.retry_notice(job.asked(), (&job.to, since));
    let state = DeliveryState::Acknowledged;
    let change = MailboxChange::reach(&address, vec![id], state, relay.now());
    if let Err(error) = relay.store().change_mailbox(change).await {
        trouble(&error);
    }
}

async fn queued_at(relay: &Relay, id: &str, to: &str) -> Option<Timestamp> {
    let mut deliveries = relay.store().deliveries_of(id).await.ok()?.into_iter();
    let found = deliveries.find(|d| same_name(&d.to, to));
    found.map(|d| d.queued_at)
}

/// Records an outcome, if the lease still holds, and sends the notices that follow from it.
async fn settle(
    relay: &Relay,
    (id, to): &Key,
    lease: &HeldLease,
    attempt: Attempt,
    notices: impl IntoIterator<Item = String>,
) {
    let notices: Vec<String> = notices.into_iter().collect();
    let has_notices = !notices.is_empty();
    // As soon as it is settled, somebody may queue it again, and this relay may lease it.
    lease.end();
    let result = AttemptResult {
        id: id.clone(),
        to: to.clone(),
        leased_at: Some(lease.at()),
        attempt,
        at: relay.now(),
        notices,
    };
    let settled = match relay.store().finish(result).await {
        Ok(true) if has_notices => relay.send_notices().await,
        settled => settled.map(drop),
    };
    if let Err(error) = settled {
        // The lease expires, and the delivery is leased again; a notice is sent later.
        trouble(&error);
    }
}

fn lease_of((id, to): &Key, at: Timestamp) -> Lease {
    Lease {
        id: id.clone(),
        to: to.clone(),
        at,
    }
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(wait))
}

fn trouble(error: &StoreError) {
    tracing::warn!(reason = %error, "the delivery has to wait for the store");
}

impl Relay {
    /// The notice that a program is tried again, which its sender need not look at once the program has answered or its
    /// message is a dead letter. There may be none: it was sent only if the program failed before.
    pub(crate) fn retry_notice(
        &self,
        asked: &Record,
        (to, since): (&str, Timestamp),
    ) -> SettledNotice {
        SettledNotice {
            address: self.rules().routes.named(&asked.sender).to_owned(),
            id: report::retried_id(asked, to, since),
        }
    }
}

/// How long polls wait for a store that had trouble.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// How many polls are counted in one go.
const POLLS: usize = 64;

/// Closes polls and tells senders whose questions were not answered in time, until it is told to stop. Both wait until messages
/// that were accepted before are indexed, a ballot or an answer among them; deliveries do not wait for it.
///
/// When the deadline of a poll has passed, or everybody has answered, the result is sent to the sender of the poll. The store
/// knows which polls have to be counted, so that neither the start nor the memory grows with all polls that ever were.
pub(super) async fn meet_deadlines(relay: Relay, mut stop: signal::Receiver<Option<Duration>>) {
    let mut stopped = relay.stopped();
    loop {
        if stop.borrow().is_some() || stopped.borrow().is_some() {
            return;
        }
        let settled = relay.settle_polls(POLLS).await;
        let wait = match tell_overdue(&relay).await.and(settled) {
            Ok(0) => next_deadline(&relay).await,
            Ok(_) => continue,
            Err(error) => {
                trouble(&error);
                STORE_RETRY
            }
        };
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => return,
            _ = stopped.wait_for(Option::is_some) => return,
            () = relay.poll_signal() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Tells senders whose questions were not answered in time.
async fn tell_overdue(relay: &Relay) -> Result<(), StoreError> {
    loop {
        let now = relay.now();
        if relay.next_times().await?.deadline.is_none_or(|at| at > now) {
            return Ok(());
        }
        let limit = MAX_OVERDUE;
        let task = MaintenanceTask::SettleOverdue { now, limit };
        let told = relay.store().maintain(task).await?;
        let metrics = relay.metrics();
        metrics.timed_out.fetch_add(told.count, Ordering::Relaxed);
        relay.send_notices().await?;
    }
}

/// How long no poll has to be closed, and no question is overdue.
async fn next_deadline(relay: &Relay) -> Duration {
    let next = relay.next_times().await.unwrap_or_default();
    let next = [next.poll_end, next.deadline];
    until(next.into_iter().flatten().min(), relay.now())
}

/// How long nothing has to be done.
fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.map_or(MAX_WAIT, |at| {
        let millis = at.as_millis().saturating_sub(now.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    })
    .clamp(Duration::from_millis(10), MAX_WAIT)
}
