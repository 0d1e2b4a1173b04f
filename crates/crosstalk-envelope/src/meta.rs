//! Typed views of META blocks. A view never fails: what can't be read is kept as it was written.
//!
//! Implements MET-002 and MET-010 to MET-024.

mod attachment;
mod integrity;
mod privacy;
mod routing;
mod state;
mod value;

pub use attachment::{Attachment, AttachmentError};
pub use integrity::{Integrity, MAX_MARKS};
pub(crate) use integrity::{Whole, is_space, mark};
pub use privacy::{Consent, ConsentKind, Privacy};
pub use routing::Routing;
pub use state::{
    Custom, ErrorReport, Hop, KeyBlock, MailTrace, Payment, Poll, Reason, Revocation, Safety, Vote,
};
pub use value::{Digest, is_well_typed, list, options, words};

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
    pub fn hops(&self) -> impl Iterator<Item = Hop<'d>> + use<'d> {
        self.document
            .blocks()
            .filter(|b| b.namespace() == "audit")
            .map(Hop::of)
    }

    /// `meta: email`: what mail gateways added, in the order of the text.
    pub fn mail_traces(&self) -> impl Iterator<Item = MailTrace<'d>> + use<'d> {
        self.document
            .blocks()
            .filter(|b| b.namespace() == "email")
            .map(MailTrace::of)
    }

    /// `meta: safety`.
    pub fn safety(&self) -> Option<Safety<'d>> {
        self.document.block("safety").map(Safety::of)
    }

    /// `meta: payment`.
    pub fn payment(&self) -> Option<Payment<'d>> {
        self.document.block("payment").map(Payment::of)
    }

    /// `meta: poll`.
    pub fn poll(&self) -> Option<Poll<'d>> {
        self.document.block("poll").map(Poll::of)
    }

    /// `meta: vote`.
    pub fn vote(&self) -> Option<Vote<'d>> {
        self.document.block("vote").map(Vote::of)
    }

    /// `meta: revocation`.
    pub fn revocation(&self) -> Option<Revocation<'d>> {
        self.document.block("revocation").map(Revocation::of)
    }

    /// `meta: refusal`, `meta: closure` or `meta: escalation`: why.
    pub fn reason(&self, namespace: &str) -> Option<Reason<'d>> {
        self.document.block(namespace).map(Reason::of)
    }

    /// `meta: key`.
    pub fn key(&self) -> Option<KeyBlock<'d>> {
        self.document.block("key").map(KeyBlock::of)
    }

    /// `meta: custom-…`: the blocks of organisations.
    pub fn customs(&self) -> impl Iterator<Item = Custom<'d>> + use<'d> {
        self.document.blocks().filter_map(Custom::of)
    }
}
