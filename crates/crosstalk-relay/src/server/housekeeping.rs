//! Periodic work: sign checkpoints of the log, reload tokens and keys that others changed, erase expired messages, unused
//! attachments and the traces of erased texts.

use super::Server;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{MaintenanceTask, RegistryChange, Retention};
use crosstalk_protocol::store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

const LOG: Duration = Duration::from_secs(1);
const TOKENS: Duration = Duration::from_secs(2);
const KEYS: Duration = Duration::from_secs(5);
const MESSAGES: Duration = Duration::from_secs(60);
const BLOBS: Duration = Duration::from_secs(3600);
/// The pause between two steps of removing traces of erased texts; then the one before the next check.
const SCRUB: Duration = Duration::from_millis(50);
const SCRUB_LATER: Duration = Duration::from_secs(60);
/// How many messages or attachments are erased in one go: others write in between.
const PORTION: usize = 256;

/// Keeps house until it is aborted.
pub(super) async fn run(server: Arc<Server>) {
    let now = Instant::now();
    let mut tokens = interval_at(now + TOKENS, TOKENS);
    let mut keys = interval_at(now + KEYS, KEYS);
    let (mut messages, mut blobs) = (interval(MESSAGES), interval(BLOBS));
    let mut scrub = interval(SCRUB);
    let mut log = interval_at(now + LOG, LOG);
    for timer in [
        &mut log,
        &mut tokens,
        &mut keys,
        &mut messages,
        &mut blobs,
        &mut scrub,
    ] {
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        let (what, done) = tokio::select! {
            _ = log.tick() => ("the log", server.relay.tend_log().await),
            _ = tokens.tick() => ("tokens", look_at_tokens(&server).await),
            _ = keys.tick() => {
                let relay = server.relay.clone();
                // It reads a file. If it panics, the next look says more.
                let _ = tokio::task::spawn_blocking(move || relay.reload_keys()).await;
                continue;
            }
            _ = messages.tick() => ("old messages", retire(&server).await),
            _ = blobs.tick() => ("unused attachments", drop_blobs(&server).await),
            () = server.relay.revocation() => {
                scrub.reset_immediately();
                ("attachments of revoked consents", drop_blobs(&server).await)
            }
            _ = scrub.tick() => match server.relay.store().maintain(MaintenanceTask::Scrub).await {
                Ok(scrubbed) if !scrubbed.more => {
                    scrub.reset_after(SCRUB_LATER);
                    continue;
                }
                done => ("traces of what was erased", done.map(|_| ())),
            },
        };
        if let Err(error) = done {
            tracing::warn!(what, reason = %error, "housekeeping has to wait");
        }
    }
}

async fn look_at_tokens(server: &Arc<Server>) -> Result<(), StoreError> {
    server.relay.registry().await?;
    note_uses(server).await
}

/// Writes down when tokens were last used.
pub(super) async fn note_uses(server: &Server) -> Result<(), StoreError> {
    let uses = server.credentials.take_uses();
    if uses.is_empty() {
        return Ok(());
    }
    let note = RegistryChange::NoteUses(uses);
    server.relay.store().change_registry(note).await.map(drop)
}

/// Erases messages that are too old or have expired.
async fn retire(server: &Server) -> Result<(), StoreError> {
    let now = server.relay.now();
    let days = server.relay.config().retention.days;
    let hours = i64::from(server.relay.config().retention.sensitive_hours);
    let what = Retention {
        before: days.map(|days| ago(now, i64::from(days) * 24)),
        now,
        brief_before: Some(ago(now, hours)),
        limit: PORTION,
    };
    erase(server, what).await
}

/// Erases messages that have expired.
pub(super) async fn expire(server: &Server) -> Result<(), StoreError> {
    let what = Retention {
        before: None,
        now: server.relay.now(),
        brief_before: None,
        limit: PORTION,
    };
    erase(server, what).await
}

async fn erase(server: &Server, what: Retention) -> Result<(), StoreError> {
    let mut erased = 0;
    loop {
        let task = MaintenanceTask::Erase(what);
        let done = server.relay.store().maintain(task).await?;
        erased += done.count;
        if !done.more {
            break;
        }
    }
    if erased > 0 {
        tracing::info!(erased, "messages were erased");
    }
    Ok(())
}

/// Removes attachments that no message refers to.
async fn drop_blobs(server: &Server) -> Result<(), StoreError> {
    let hours = i64::from(server.relay.config().retention.unused_blob_hours);
    let before = ago(server.relay.now(), hours);
    loop {
        let _changing = server.blobs.changing().await;
        let limit = PORTION;
        let task = MaintenanceTask::ForgetBlobs { before, limit };
        let unused = server.relay.store().maintain(task).await?;
        server.blobs.remove(unused.blobs).await;
        if unused.count > 0 {
            tracing::info!(removed = unused.count, "unused attachments were removed");
        }
        if !unused.more {
            return Ok(());
        }
    }
}

fn ago(now: Timestamp, hours: i64) -> Timestamp {
    Timestamp::from_millis(now.as_millis() - hours * 3_600_000)
}
