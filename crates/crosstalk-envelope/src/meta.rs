//! Typed views of META blocks. A view never fails: what can't be read is kept as it was written.
//!
//! Implements MET-002 and MET-010 to MET-024.

mod attachment;
mod integrity;
mod privacy;
mod value;
mod view;

pub use attachment::{Attachment, AttachmentError};
pub use integrity::{Integrity, MAX_MARKS};
pub(crate) use integrity::{LineHasher, is_space, mark};
pub use privacy::{ConsentKind, ConsentValue, Privacy};
pub use value::{Digest, is_well_typed, list, options, words};
pub use view::{
    ErrorReport, HopBlock, KeyBlock, PollBlock, RevocationBlock, Routing, SafetyBlock, VoteBlock,
};

use crate::envelope::Envelope;

impl<'d> Envelope<'d> {
    /// `meta: routing`.
    pub fn routing(&self) -> Routing<'d> {
        Routing::of(self.document)
    }

    /// `meta: privacy`.
    pub fn privacy(&self) -> Privacy<'d> {
        Privacy::of(self.document)
    }

    /// `meta: attachments`: every readable one, with its key.
    pub fn attachments(
        &self,
    ) -> impl Iterator<Item = (&'d str, Result<Attachment<'d>, AttachmentError>)> + use<'d> {
        let block = self.document.block("attachments");
        block
            .into_iter()
            .flat_map(|b| b.fields())
            .map(|(key, value)| (key, Attachment::parse(value)))
    }

    /// `meta: integrity`.
    pub fn integrity(&self) -> Option<Integrity> {
        Integrity::of(self.document)
    }

    /// `meta: error`.
    pub fn error(&self) -> Option<ErrorReport<'d>> {
        self.document.block("error").map(ErrorReport::of)
    }

    /// `meta: audit`: the hops, in the order of the text.
    pub fn hops(&self) -> impl Iterator<Item = HopBlock<'d>> + use<'d> {
        self.document
            .blocks()
            .filter(|b| b.namespace() == "audit")
            .map(HopBlock::of)
    }

    /// `meta: safety`.
    pub fn safety(&self) -> Option<SafetyBlock<'d>> {
        self.document.block("safety").map(SafetyBlock::of)
    }

    /// `meta: poll`.
    pub fn poll(&self) -> Option<PollBlock<'d>> {
        self.document.block("poll").map(PollBlock::of)
    }

    /// `meta: vote`.
    pub fn vote(&self) -> Option<VoteBlock<'d>> {
        self.document.block("vote").map(VoteBlock::of)
    }

    /// `meta: revocation`.
    pub fn revocation(&self) -> Option<RevocationBlock<'d>> {
        self.document.block("revocation").map(RevocationBlock::of)
    }

    /// `Reason` of `meta: refusal`, `meta: closure` or `meta: escalation`.
    pub fn reason(&self, namespace: &str) -> Option<&'d str> {
        let reason = self.document.meta(namespace, "Reason");
        reason.filter(|r| !r.is_empty())
    }

    /// `meta: key`.
    pub fn key(&self) -> Option<KeyBlock<'d>> {
        self.document.block("key").map(KeyBlock::of)
    }
}
