//! The rules for couriers: people who carry messages by copy and paste, and bring the answers back (HTP-045).

use super::admit::RelayRules;
use super::delivery::{Delivery, DeliveryState, Handler};
use super::peer::{Peer, is_human};
use super::port::Errand;
use crate::store::{Record, is_same_party};
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::{Document, Envelope, Reading, Signature};

impl RelayRules {
    /// Whether a caller may carry a message of a sender to an address: a person their own messages, and those of others
    /// where the operator assigned it; nobody to an address that has an inbox.
    pub fn lets_carry(&self, caller: &Peer, sender: &str, to: &str) -> bool {
        let to = self.routes.named(to);
        let is_assigned = || caller.courier.iter().any(|p| self.routes.covers(p, to));
        caller.is_person()
            && !self.routes.is_bound(to)
            && (caller.is_admin() || self.lets_speak(caller, sender) || is_assigned())
    }

    /// Whether a message is listed for a caller who may carry it. An answer to whoever asked here themselves waits in their
    /// inbox; only a chat that a person carries for, and that asked back, needs it brought.
    pub fn offers_errand(&self, caller: &Peer, errand: &Errand) -> bool {
        let is_own_answer = errand.asker.as_deref().is_some_and(|asker| {
            is_same_party(self.routes.named(asker), self.routes.named(&errand.to))
        });
        let is_fetched = is_own_answer && !errand.asker_is_carried;
        !is_fetched && self.lets_carry(caller, &errand.sender, &errand.to)
    }

    /// Whether a delivery waits for a caller to carry it.
    pub fn is_errand_of(&self, caller: &Peer, record: &Record, delivery: &Delivery) -> bool {
        delivery.by == Handler::CopyPaste
            && delivery.state == DeliveryState::Queued
            && self.lets_carry(caller, &record.sender, &delivery.to)
    }

    /// Whether a caller may hand in a message as the answer of a chat that they carry for: an unsigned one, from whom the
    /// question was for, to whoever asked. The answer to a question of somebody else may also go to its `X-Reply-To`; in a
    /// question of their own, the caller could name anybody there. Nobody answers for a person, or for a sender whose key
    /// the operator pinned: that one signs.
    pub fn lets_bring_back(
        &self,
        caller: &Peer,
        answer: &Envelope<'_>,
        question: &Record,
        deliveries: &[Delivery],
    ) -> bool {
        let is_answer = answer.meaning().is_some_and(Intent::answers);
        // A signature has to prove itself: no courier makes a key known as that of a chat.
        let is_signed = matches!(answer.signature, Some(Signature::Signed { .. }));
        let sender = self.routes.named(answer.sender.as_str());
        let is_pinned = |name: &str| self.listed.pinned.has(name);
        if !is_answer
            || is_signed
            || answer.parent != Some(question.id.as_str())
            || is_human(sender)
            || is_pinned(sender)
            || is_pinned(answer.sender.as_str())
        {
            return false;
        }
        let is_carried = |d: &Delivery| {
            d.by == Handler::CopyPaste
                && d.state != DeliveryState::Failed
                && is_same_party(&d.to, sender)
                && self.lets_carry(caller, &question.sender, &d.to)
        };
        let document = Document::parse(&question.text, Reading::Strict);
        let is_own = self.lets_speak(caller, &question.sender);
        let reply_to = document.envelope().routing().reply_to.filter(|_| !is_own);
        let receiver = self.routes.named(answer.receiver.as_str());
        let is_for = |asker: &str| is_same_party(receiver, self.routes.named(asker));
        deliveries.iter().any(is_carried)
            && (is_for(&question.sender) || reply_to.is_some_and(|a| is_for(a.as_str())))
    }
}
