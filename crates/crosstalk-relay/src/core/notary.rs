//! Signs the audit log: checkpoints beside the way of messages, receipts on request. A relay signs its own chain, and serves
//! those of the relays that share its store.

use super::Relay;
use crosstalk_protocol::audit::{
    ChainId, Checkpoint, LogPlace, LogQuery, LogReceipt, Note, NoteError, NoteKey, SignedCheckpoint,
};
use crosstalk_protocol::relay::port::{LogChain, LogProof, LogRoot};
use crosstalk_protocol::store::StoreError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With more messages than these to index, a checkpoint waits for a pause, but not longer than this, in milliseconds.
const PRESSED: u64 = 1000;
const PATIENCE: i64 = 10_000;

/// How often, and how many times, a receipt waits for the checkpoint of another relay, which signs one each second.
const RHYTHM: Duration = Duration::from_millis(100);
const TRIES: u32 = 30;

impl Relay {
    /// The chain that this relay writes.
    pub fn chain(&self) -> ChainId {
        self.shared.chain
    }

    /// The key that checkpoints of the own chain are signed with, as others check them.
    ///
    /// # Errors
    /// If the relay has no key that can sign notes.
    pub fn log_key(&self) -> Result<NoteKey, NoteError> {
        let key = self.shared.key.as_ref().ok_or(NoteError::Algorithm)?;
        self.note_key(
            self.chain(),
            NoteKey::new(&self.config().name, key.public())?,
        )
    }

    /// The key of a relay as the key of its chain.
    fn note_key(&self, chain: ChainId, key: NoteKey) -> Result<NoteKey, NoteError> {
        NoteKey::new(&chain.origin(&self.config().name), *key.key())
    }

    /// The key that checkpoints of a registered chain are signed with.
    ///
    /// # Errors
    /// If its relay has no key that can sign notes.
    pub fn key_of(&self, chain: &LogChain) -> Result<NoteKey, NoteError> {
        // The name of a relay may change where one relay writes.
        match chain.id == self.chain() {
            true => self.log_key(),
            false => self.note_key(chain.id, NoteKey::parse(&chain.key)?),
        }
    }

    /// A chain of the store; nothing if there is none with this number.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn find_chain(&self, id: ChainId) -> Result<Option<LogChain>, StoreError> {
        let chains = self.store().chains().await?;
        Ok(chains.into_iter().find(|chain| chain.id == id))
    }

    /// Writes pending entries, stores hashes, and signs a checkpoint if something is new. While more comes in than is indexed,
    /// messages go first, and it is done less often.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn tend_log(&self) -> Result<(), StoreError> {
        self.log_rejections().await?;
        if self.metrics().backlog.load(Ordering::Relaxed) > PRESSED {
            let latest = self.store().log_head(self.chain()).await?.checkpoint;
            let since = latest.map_or(i64::MIN, |l| l.at.as_millis());
            if self.now().as_millis().saturating_sub(since) < PATIENCE {
                return Ok(());
            }
        }
        self.seal().await.map(drop)
    }

    /// The checkpoint of everything that is in the own chain now; nothing if there is no key to sign it with.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn seal(&self) -> Result<Option<SignedCheckpoint>, StoreError> {
        let Some(key) = self.shared.key.as_ref().filter(|_| self.log_key().is_ok()) else {
            return Ok(None);
        };
        let head = self.store().log_head(self.chain()).await?;
        let is_current = |signed: &SignedCheckpoint| signed.size == head.size;
        if head.checkpoint.as_ref().is_some_and(is_current) {
            return Ok(head.checkpoint);
        }
        let LogRoot { size, root } = self.store().hash_log().await?;
        let origin = self.chain().origin(&self.config().name);
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

    /// The latest checkpoint of a chain. If the own one has none yet, it is signed at once.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn checkpoint(&self, chain: ChainId) -> Result<Option<SignedCheckpoint>, StoreError> {
        let latest = self.store().log_head(chain).await?.checkpoint;
        match latest {
            None if chain == self.chain() => self.seal().await,
            latest if chain == self.chain() => Ok(latest),
            latest => self.verified(chain, latest).await,
        }
    }

    /// The checkpoint of another relay, if the key that is registered for its chain has signed it.
    async fn verified(
        &self,
        chain: ChainId,
        latest: Option<SignedCheckpoint>,
    ) -> Result<Option<SignedCheckpoint>, StoreError> {
        let (Some(latest), Some(found)) = (latest, self.find_chain(chain).await?) else {
            return Ok(None);
        };
        let key = self.key_of(&found);
        let opened = key.and_then(|key| Note::parse(&latest.note)?.open(&key));
        match opened {
            Ok(checkpoint) if checkpoint.size == latest.size => Ok(Some(latest)),
            other => {
                let reason = other.err().unwrap_or(NoteError::Checkpoint);
                tracing::error!(%chain, %reason, "the checkpoint of another relay does not hold");
                Ok(None)
            }
        }
    }

    /// A checkpoint that covers an entry: the latest, if it does, else a new one. Only the relay that writes a chain signs it,
    /// so that this waits a moment where it is another one.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn seal_over(&self, place: LogPlace) -> Result<Option<SignedCheckpoint>, StoreError> {
        for _ in 0..TRIES {
            let latest = self.checkpoint(place.chain).await?;
            match latest {
                Some(sealed) if sealed.size > place.index => return Ok(Some(sealed)),
                _ if place.chain == self.chain() => return self.seal().await,
                _ => tokio::time::sleep(RHYTHM).await,
            }
        }
        Ok(None)
    }

    /// The receipt of an entry; nothing if there is none, or it is not signed.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn receipt(&self, place: LogPlace) -> Result<Option<LogReceipt>, StoreError> {
        let Some(sealed) = self.seal_over(place).await? else {
            return Ok(None);
        };
        let LogPlace { chain, index } = place;
        let asked = LogQuery {
            chain,
            from: index,
            to: Some(index.saturating_add(1)),
            limit: 1,
            ..Default::default()
        };
        let entry = self.store().log_entries(asked).await?.pop();
        let size = sealed.size;
        let proof = LogProof::Inclusion { index, size };
        let path = self.store().log_proof(chain, proof).await?;
        Ok(entry.zip(path).map(|(entry, path)| LogReceipt {
            leaf: entry.leaf,
            index,
            path,
            note: sealed.note,
        }))
    }
}
