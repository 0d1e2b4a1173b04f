//! The chain of a store in which one relay writes: the first and only one.

use crosstalk_protocol::audit::ChainId;
use crosstalk_protocol::relay::port::{JoinedChain, LogChain, LogWriter};
use std::sync::{Mutex, PoisonError};

/// The registry of chains of a store with one writer: who that is, once it has joined.
#[derive(Debug, Default)]
pub(crate) struct SoleChain(Mutex<Option<LogChain>>);

impl SoleChain {
    /// Notes the relay that writes.
    pub(crate) fn join(&self, writer: LogWriter) -> JoinedChain {
        let chain = LogChain {
            id: ChainId::FIRST,
            key: writer.key,
            since: writer.at,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain);
        JoinedChain {
            chain: ChainId::FIRST,
            secret: writer.secret,
        }
    }

    /// All chains.
    pub(crate) fn all(&self) -> Vec<LogChain> {
        let chain = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chain.iter().cloned().collect()
    }
}
