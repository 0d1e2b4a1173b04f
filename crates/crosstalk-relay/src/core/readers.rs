//! Those who read: a few handles of the store, used by one at a time.

use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How many read at once.
const READERS: usize = 4;

type Handle = Box<dyn RelayStore + Send>;

/// Makes another handle of the store.
pub type Open = Box<dyn Fn() -> Result<Handle, StoreError> + Send + Sync>;

pub(super) struct Readers {
    open: Open,
    idle: Mutex<Vec<Handle>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(open: Open) -> Self {
        Self {
            open,
            idle: Mutex::default(),
            turns: Arc::new(Semaphore::new(READERS)),
        }
    }

    /// Another handle of the store.
    pub(super) fn open(&self) -> Result<Handle, StoreError> {
        (self.open)()
    }

    /// Asks the store something, on a thread that may wait for the disk.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = |_| StoreError {
            fault: StoreFault::Unavailable,
            message: "the relay is shutting down".into(),
        };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|e| gone(e.to_string()))?;
        let readers = Arc::clone(self);
        let work = move || {
            // The caller may be gone before the work is done: the permit belongs to the work.
            let _turn = turn;
            let idle = readers.lock().pop();
            let handle = idle.map_or_else(&readers.open, Ok)?;
            let answer = ask(handle.as_ref());
            readers.lock().push(handle);
            answer
        };
        let work = tokio::task::spawn_blocking(work).await;
        work.map_err(|e| gone(e.to_string()))?
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Handle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
