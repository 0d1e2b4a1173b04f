//! The store of a relay in a SQLite file.

use crosstalk_protocol::relay::port::StoreContext;
use crosstalk_protocol::store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;

/// A SQLite file as the store of a relay: a thread writes, others read, and one makes messages searchable.
#[derive(Debug)]
pub struct SqliteRelay {}

impl SqliteRelay {
    /// Opens a store, or makes one, and makes this process its relay until [`stop`](crosstalk_protocol::relay::port::Maintenance::stop)
    /// is done or the last handle is dropped. People and other processes can use the file meanwhile; no other process
    /// can be its relay. Deliveries that a relay had leased when it was killed are due again.
    ///
    /// # Errors
    /// If it can't be opened or made, or another relay uses it.
    pub fn open(path: impl Into<PathBuf>, context: StoreContext) -> Result<Arc<Self>, StoreError> {
        let _ = (path.into(), context);
        todo!()
    }
}
