//! What a message goes back to, as far as it is kept here: whether it follows up what a program asked, and whether
//! the conversation goes round in circles.

use crate::failure::Failure;
use crate::service::relay::remote::Waiting;
use crosstalk_envelope::{Intent, Timestamp};
use crosstalk_protocol::relay::HOPS;
use crosstalk_protocol::store::{Record, Side, Store, Way, is_same_party, may_answer};
use crosstalk_protocol::{Ancestor, FollowUp, may_reply_to_escalation};

/// What is kept here of the conversation that a message belongs to.
pub(super) struct History {
    /// What it follows up, if it is the reply to what the program asked.
    pub(super) follow_up: Option<FollowUp>,
    /// Whether it went back and forth as often as a message may hop.
    pub(super) is_endless: bool,
}

impl History {
    /// The history of a message to an address. `reached` says whether the relay delivered a message to somebody,
    /// `has_credential` whether it asks for credentials.
    pub(super) fn of(
        store: &dyn Store,
        record: &Record,
        address: &str,
        now: Timestamp,
        (reached, has_credential): (impl Fn(&str, &str) -> bool, bool),
    ) -> Result<Self, Failure> {
        let is_agent = |sender: &str| {
            is_same_party(sender, address)
                || is_same_party(sender, &record.receiver)
                || may_answer(address, sender)
        };
        let mut ancestors: Vec<Ancestor> = Vec::new();
        let mut parent = record.parent.clone();
        while let Some(id) = parent.take().filter(|_| ancestors.len() < HOPS) {
            let Some(found) = store.message(&id)? else {
                break;
            };
            parent.clone_from(&found.parent);
            let is_mine = found.side == Side::Mine;
            let is_own = is_mine && found.way == Way::Sent && is_agent(&found.sender);
            let was_reached = |replier: &str| reached(&found.id, replier);
            let is_for_replier = match found.meaning.filter(|_| is_own) {
                Some(Intent::Escalate) => {
                    may_reply_to_escalation(&found.receiver, &record.sender, was_reached)
                }
                Some(Intent::Request) => {
                    is_same_party(&found.receiver, &record.sender) || was_reached(&record.sender)
                }
                _ => false,
            };
            ancestors.push(Ancestor {
                is_own,
                // The messages before a HANDOFF were for others.
                is_for_agent: found.side == Side::ToMe,
                is_for_replier,
                record: found,
            });
        }
        let is_endless = ancestors.len() >= HOPS;
        Ok(Self {
            follow_up: FollowUp::find(record, ancestors, now)
                .map(|found| found.with_credential(has_credential)),
            is_endless,
        })
    }
}

/// A question that is kept here, as it came out of the inbox of an address.
pub(super) fn question_of(question: &Record, address: &str) -> Waiting {
    Waiting {
        id: question.id.clone(),
        thread: question.thread.clone(),
        from: question.sender.clone(),
        to: address.to_owned(),
        intent: question.meaning.map(|m| m.as_str().to_owned()),
        state: None,
        received_at: question.at.to_string(),
        envelope: question.text.clone(),
        history: None,
        withheld: None,
    }
}
