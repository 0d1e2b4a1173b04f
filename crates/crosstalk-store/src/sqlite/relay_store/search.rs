//! The thread that makes indexed messages searchable.
use crosstalk_protocol::relay::port::StoreEvent;
use crosstalk_protocol::store::StoreError;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Shared, SqliteStore, join, spawn};

/// How many messages become searchable in one transaction of the search file. Erasures wait for it.
const FILL_LIMIT: usize = 4096;
/// Under load, messages of this time become searchable together.
const FILL_PAUSE: Duration = Duration::from_millis(400);
/// How long other writers of the search file get between two transactions of a large backlog.
const FILL_BREATH: Duration = Duration::from_millis(10);
/// How long it takes at most until the search index is looked at again, though nothing was indexed.
const FILL_LOOK: Duration = Duration::from_secs(2);

/// Makes indexed messages searchable, on a thread with a handle of its own, until it is dropped.
pub(super) struct SearchFiller {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SearchFiller {
    pub(super) fn start(store: SqliteStore, shared: Arc<Shared>) -> Result<Self, StoreError> {
        let (wake, woken) = sync_channel(1);
        let thread = spawn("search", move || fill(store, &shared, &woken))?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Messages were indexed.
    pub(super) fn wake(&self) {
        // If it is full, it is woken already.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for SearchFiller {
    fn drop(&mut self) {
        self.wake = None;
        self.thread.take().into_iter().for_each(join);
    }
}

/// Fills the search index until the other end of the channel is gone.
fn fill(mut store: SqliteStore, shared: &Shared, woken: &Receiver<()>) {
    loop {
        let began = Instant::now();
        let left = match store.fill_search(FILL_LIMIT) {
            Ok(progress) => {
                shared.notify(StoreEvent::Searchable(progress.through));
                progress.left
            }
            Err(error) => {
                // Nothing is lost: searches say how far the index is, and it is filled when there is room again.
                let (what, error) = ("the search index", &error);
                shared.notify(StoreEvent::Delayed { what, error });
                0
            }
        };
        let pause = match left {
            0 => FILL_PAUSE.saturating_sub(began.elapsed()),
            _ => FILL_BREATH,
        };
        let Some(is_woken) = rest(woken, pause) else {
            return;
        };
        let is_waiting = left == 0 && !is_woken;
        if is_waiting && woken.recv_timeout(FILL_LOOK) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Lets a time pass. Whether messages were indexed meanwhile; nothing if it has to end.
fn rest(woken: &Receiver<()>, time: Duration) -> Option<bool> {
    let (end, mut is_woken) = (Instant::now() + time, false);
    loop {
        match woken.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => is_woken = true,
            Err(RecvTimeoutError::Timeout) => return Some(is_woken),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}
