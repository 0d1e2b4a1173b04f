//! Signs the audit log: checkpoints beside the way of messages, receipts on request.

use super::Relay;
use crosstalk_protocol::audit::{Checkpoint, LogReceipt, NoteError, NoteKey, SignedCheckpoint};
use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::StoreError;
use std::sync::atomic::Ordering;

/// How many groups of 256 hashes are stored in one go: others write in between.
const PORTION: usize = 32;
/// With more than these to be filed, a checkpoint waits for a pause, but not longer than this, in milliseconds.
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

    /// Writes down what waits, stores hashes, and signs a checkpoint if something is new. While more comes in than is filed,
    /// messages go first, and it is done less often.
    ///
    /// # Errors
    /// What the store says.
    pub async fn tend_log(&self) -> Result<(), StoreError> {
        self.log_rejections().await?;
        if self.metrics().backlog.load(Ordering::Relaxed) > PRESSED {
            let latest = self.read(|store| store.checkpoint()).await?;
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
    /// What the store says.
    pub async fn seal(&self) -> Result<Option<SignedCheckpoint>, StoreError> {
        if self.log_key().is_err() {
            return Ok(None);
        }
        let look = |store: &dyn RelayStore| Ok((store.log_size()?, store.checkpoint()?));
        let (size, latest) = self.read(look).await?;
        if latest.as_ref().is_some_and(|l| l.size == size) {
            return Ok(latest);
        }
        while self.write(|store| store.store_hashes(PORTION)).await? {}
        let relay = self.clone();
        self.write(move |store| relay.sign(store)).await
    }

    fn sign(&self, store: &mut dyn RelayStore) -> Result<Option<SignedCheckpoint>, StoreError> {
        let (size, latest) = (store.log_size()?, store.checkpoint()?);
        if latest.as_ref().is_some_and(|l| l.size == size) {
            return Ok(latest);
        }
        let Some((root, key)) = store.log_root(size)?.zip(self.shared.key.as_ref()) else {
            return Ok(None);
        };
        let origin = self.shared.config().name.clone();
        let Ok(note) = (Checkpoint { origin, size, root }).sign(key) else {
            return Ok(None);
        };
        let sealed = SignedCheckpoint {
            size,
            at: self.now(),
            root,
            note,
        };
        store.keep_checkpoint(&sealed)?;
        Ok(Some(sealed))
    }

    /// A checkpoint that covers an entry: the latest, if it does, else a new one.
    ///
    /// # Errors
    /// What the store says.
    pub async fn seal_over(&self, index: u64) -> Result<Option<SignedCheckpoint>, StoreError> {
        let latest = self.read(|store| store.checkpoint()).await?;
        match latest {
            Some(sealed) if sealed.size > index => Ok(Some(sealed)),
            _ => self.seal().await,
        }
    }

    /// The receipt of an entry; nothing if there is none, or no key to sign it with.
    ///
    /// # Errors
    /// What the store says.
    pub async fn receipt(&self, index: u64) -> Result<Option<LogReceipt>, StoreError> {
        let Some(sealed) = self.seal_over(index).await? else {
            return Ok(None);
        };
        let ask = move |store: &dyn RelayStore| {
            let asked = crosstalk_protocol::audit::LogQuery {
                from: index,
                to: Some(index.saturating_add(1)),
                limit: 1,
                ..Default::default()
            };
            let entry = store.log_entries(&asked)?.pop();
            let path = store.log_inclusion(index, sealed.size)?;
            Ok(entry.zip(path).map(|(entry, path)| LogReceipt {
                leaf: entry.leaf,
                index,
                path,
                note: sealed.note,
            }))
        };
        self.read(ask).await
    }
}
