//! Attachments: who uploaded them, and which messages refer to them.

use super::{MemoryRelay, State};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{
    BLOB_BYTES_LEAST, BlobIndex, BlobQuery, BlobUse, StoreFuture, Upload,
};
use std::collections::BTreeSet;

/// A reference to an attachment, in a message that was accepted or is held.
struct AttachmentReference<'s> {
    /// The number of an accepted message.
    seq: Option<u64>,
    peer: &'s str,
    at: Timestamp,
    grants: bool,
}

impl BlobIndex for MemoryRelay {
    fn add_blob(&self, upload: Upload, at: Timestamp) -> StoreFuture<'_, ()> {
        self.with(move |state| {
            let known = state.blobs.entry(upload.digest).or_insert(at);
            *known = (*known).max(at);
            let messages = state.messages.values_mut();
            let messages = messages.map(|m| (&m.peer, &mut m.blobs));
            let held = state.held.values_mut();
            let held = held.map(|h| (&h.message.peer, &mut h.blobs));
            for (peer, blobs) in messages.chain(held) {
                if let Some(grants) = blobs.get_mut(&upload.digest).filter(|_| *peer == upload.by) {
                    *grants = true;
                }
            }
            let uploaded = (upload.by, upload.digest);
            state.uploads.entry(uploaded).or_insert(upload.size);
        })
    }

    fn uploaded_bytes(&self, by: &str, besides: Digest) -> StoreFuture<'_, u64> {
        let by = by.to_owned();
        self.with(move |state| {
            let uploads = state.uploads.iter();
            let uploads = uploads.filter(|((peer, digest), _)| *peer == by && *digest != besides);
            uploads.map(|(_, size)| *size.max(&BLOB_BYTES_LEAST)).sum()
        })
    }

    fn blob_use(&self, query: BlobQuery) -> StoreFuture<'_, BlobUse> {
        self.with(move |state| {
            let digest = query.digest;
            let is_used = |peer: &String| state.references(digest).iter().any(|r| r.peer == peer);
            let mut uploads = state.uploads.keys().filter(|(_, d)| *d == digest);
            let asks = |peer: &String| query.by.as_ref().is_none_or(|by| by == peer);
            BlobUse {
                is_unused: uploads.any(|(peer, _)| asks(peer) && !is_used(peer)),
                parties: state.referring_parties(&query),
            }
        })
    }
}

impl State {
    /// All references to an attachment.
    fn references(&self, digest: Digest) -> Vec<AttachmentReference<'_>> {
        let messages = self.messages.iter().filter_map(|(seq, m)| {
            Some(AttachmentReference {
                seq: Some(*seq),
                peer: &m.peer,
                at: m.stored.at,
                grants: *m.blobs.get(&digest)?,
            })
        });
        let held = self.held.values().filter_map(|h| {
            Some(AttachmentReference {
                seq: None,
                peer: &h.message.peer,
                at: h.message.record.at,
                grants: *h.blobs.get(&digest)?,
            })
        });
        messages.chain(held).collect()
    }

    fn referring_parties(&self, query: &BlobQuery) -> BTreeSet<String> {
        let refers = |m: &&super::Message| m.blobs.get(&query.digest) == Some(&true);
        let is_over = |m: &&super::Message| m.expires.is_some_and(|end| end <= query.now);
        let messages = self.messages.iter().rev();
        let messages = messages.filter(|(_, m)| refers(m) && !is_over(m));
        let mut parties = BTreeSet::new();
        for (seq, message) in messages.take(query.limit) {
            if let Some(indexed) = self.indexed.get(seq) {
                parties.extend([indexed.sender.clone(), indexed.receiver.clone()]);
            }
            parties.extend(message.deliveries.values().map(|d| d.to.clone()));
        }
        parties
    }

    /// A message refers to nothing any more.
    pub(super) fn release(&mut self, seq: u64) {
        let Some(message) = self.messages.get_mut(&seq) else {
            return;
        };
        let blobs = std::mem::take(&mut message.blobs);
        let peer = message.peer.clone();
        self.end_uploads(&peer, blobs.keys());
    }

    /// Ends the uploads of a credential that refers to them in no message any more. What nobody uploaded is not kept.
    pub(super) fn end_uploads<'d>(
        &mut self,
        peer: &str,
        digests: impl IntoIterator<Item = &'d Digest>,
    ) {
        for digest in digests {
            let references = self.references(*digest);
            let is_used = !references.is_empty();
            if references.iter().all(|r| r.peer != peer) {
                self.uploads.remove(&(peer.to_owned(), *digest));
            }
            let is_uploaded = self.uploads.keys().any(|(_, d)| d == digest);
            if !is_used
                && !is_uploaded
                && let Some(at) = self.blobs.get_mut(digest)
            {
                *at = Timestamp::from_millis(0);
            }
        }
    }

    /// The same for a message whose consent has ended. What it gave access to goes with it, though others pass it on: what
    /// keeps an attachment is another reference that grants access and came before, or with the same credential, and that
    /// its bytes came with another credential, or came again since.
    pub(super) fn let_go(&mut self, seq: u64) {
        let Some(message) = self.messages.get(&seq) else {
            return;
        };
        let falls = |digest: &Digest| {
            let came = self.blobs.get(digest);
            let is_renewed = came.is_none_or(|at| *at > message.stored.at);
            let mut uploads = self.uploads.keys();
            let is_others = uploads.any(|(peer, d)| d == digest && *peer != message.peer);
            let keeps = |r: &AttachmentReference<'_>| {
                let is_earlier = match r.seq {
                    Some(other) => other < seq,
                    None => r.at < message.stored.at,
                };
                r.seq != Some(seq) && r.grants && (is_earlier || r.peer == message.peer)
            };
            !is_renewed && !is_others && !self.references(*digest).iter().any(keeps)
        };
        let granted = message.blobs.iter().filter(|(_, grants)| **grants);
        let fallen: Vec<Digest> = granted
            .map(|(digest, _)| *digest)
            .filter(|digest| falls(digest))
            .collect();
        for digest in fallen {
            for message in self.messages.values_mut() {
                message.blobs.remove(&digest);
            }
            for held in self.held.values_mut() {
                held.blobs.remove(&digest);
            }
            self.uploads.retain(|(_, d), _| *d != digest);
            if let Some(at) = self.blobs.get_mut(&digest) {
                *at = Timestamp::from_millis(0);
            }
        }
        self.release(seq);
    }

    /// Forgets attachments that came before a time and that no message refers to.
    pub(super) fn forget_blobs(&mut self, before: Timestamp, limit: usize) -> Vec<Digest> {
        let blobs = self.blobs.iter();
        let loose =
            blobs.filter(|(digest, at)| **at < before && self.references(**digest).is_empty());
        let mut loose: Vec<(Timestamp, Digest)> = loose.map(|(d, at)| (*at, *d)).collect();
        loose.sort_unstable_by_key(|(at, digest)| (*at, digest.0));
        loose.truncate(limit);
        for (_, digest) in &loose {
            self.blobs.remove(digest);
            self.uploads.retain(|(_, d), _| d != digest);
        }
        loose.into_iter().map(|(_, digest)| digest).collect()
    }
}
