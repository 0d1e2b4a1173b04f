//! Signs the audit log: checkpoints beside the way of messages, receipts on request.

use super::Relay;
use crosstalk_protocol::audit::{
    Checkpoint, LogQuery, LogReceipt, NoteError, NoteKey, SignedCheckpoint,
};
use crosstalk_protocol::relay::port::{LogProof, LogRoot};
use crosstalk_protocol::store::StoreError;
use std::sync::atomic::Ordering;

/// With more messages than these to index, a checkpoint waits for a pause, but not longer than this, in milliseconds.
const PRESSED: u64 = 1000;
const PATIENCE: i64 = 10_000;

impl Relay {
    /// The key that checkpoints are signed with, as others check them.
    ///
    /// # Errors
    /// If the relay has no key that can sign notes.
    pub fn log_key(&self) -> Result<NoteKey, NoteError> {
        let key = self.shared.key.as_ref().ok_or(NoteError::Algorithm)?;
        NoteKey::new(&self.shared.config().name, key.public())
    }

    /// Writes pending entries, stores hashes, and signs a checkpoint if something is new. While more comes in than is indexed,
    /// messages go first, and it is done less often.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn tend_log(&self) -> Result<(), StoreError> {
        self.log_rejections().await?;
        if self.metrics().backlog.load(Ordering::Relaxed) > PRESSED {
            let latest = self.store().log_head().await?.checkpoint;
            let since = latest.map_or(i64::MIN, |l| l.at.as_millis());
            if self.now().as_millis().saturating_sub(since) < PATIENCE {
                return Ok(());
            }
        }
        self.seal().await.map(drop)
    }

    /// The checkpoint of everything that is in the log now; nothing if there is no key to sign it with.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn seal(&self) -> Result<Option<SignedCheckpoint>, StoreError> {
        let Some(key) = self.shared.key.as_ref().filter(|_| self.log_key().is_ok()) else {
            return Ok(None);
        };
        let head = self.store().log_head().await?;
        let is_current = |signed: &SignedCheckpoint| signed.size == head.size;
        if head.checkpoint.as_ref().is_some_and(is_current) {
            return Ok(head.checkpoint);
        }
        let LogRoot { size, root } = self.store().hash_log().await?;
        let origin = self.shared.config().name.clone();
        let Ok(note) = (Checkpoint { origin, size, root }).sign(key) else {
            return Ok(None);
        };
        let signed = SignedCheckpoint {
            size,
            at: self.now(),
            root,
            note,
        };
        self.store().keep_checkpoint(signed).await.map(Some)
    }

    /// A checkpoint that covers an entry: the latest, if it does, else a new one.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn seal_over(&self, index: u64) -> Result<Option<SignedCheckpoint>, StoreError> {
        let latest = self.store().log_head().await?.checkpoint;
        match latest {
            Some(sealed) if sealed.size > index => Ok(Some(sealed)),
            _ => self.seal().await,
        }
    }

    /// The receipt of an entry; nothing if there is none, or no key to sign it with.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn receipt(&self, index: u64) -> Result<Option<LogReceipt>, StoreError> {
        let Some(sealed) = self.seal_over(index).await? else {
            return Ok(None);
        };
        let asked = LogQuery {
            from: index,
            to: Some(index.saturating_add(1)),
            limit: 1,
            ..Default::default()
        };
        let entry = self.store().log_entries(asked).await?.pop();
        let size = sealed.size;
        let proof = LogProof::Inclusion { index, size };
        let path = self.store().log_proof(proof).await?;
        Ok(entry.zip(path).map(|(entry, path)| LogReceipt {
            leaf: entry.leaf,
            index,
            path,
            note: sealed.note,
        }))
    }
}
