//! Messages that wait for a person.

use super::{Held, MemoryRelay, State};
use crosstalk_protocol::relay::port::{HeldQuery, Holds, StoreFuture};
use crosstalk_protocol::relay::{
    AcceptNeeds, AcceptOutcome, Admission, HeldMessage, HoldChoice, HoldDecided, HoldDecision,
    Ruling,
};
use crosstalk_protocol::store::Arrival;

impl Holds for MemoryRelay {
    fn decide(&self, decision: Box<HoldDecision>) -> StoreFuture<'_, Ruling> {
        Box::pin(async move {
            let ruling = self.with(|state| state.decide(&decision)).await?;
            if let Ruling::Done(Some((seq, admission))) = &ruling {
                self.report(*seq, admission);
            }
            Ok(ruling)
        })
    }

    fn held(&self, query: HeldQuery) -> StoreFuture<'_, Vec<HeldMessage>> {
        self.with(move |state| {
            let waiting = state.held.values().filter(|h| h.message.is_waiting());
            let (mut found, limit): (Vec<&Held>, usize) = match &query {
                HeldQuery::Waiting { limit } => (waiting.collect(), *limit),
                HeldQuery::Id(id) => {
                    let all = state.held.values();
                    (all.filter(|h| h.message.record.id == *id).collect(), 1)
                }
                HeldQuery::Prefix { prefix, limit } => {
                    let is_it = |h: &&Held| h.message.record.id.starts_with(prefix.as_str());
                    (state.held.values().filter(is_it).collect(), *limit)
                }
                HeldQuery::Referring { digest, limit } => {
                    let refers = |h: &&Held| h.blobs.get(digest) == Some(&true);
                    (waiting.filter(refers).collect(), *limit)
                }
                HeldQuery::Lapsed { now, limit } => {
                    let is_over = |h: &&Held| h.ends.is_some_and(|ends| ends <= *now);
                    (waiting.filter(is_over).collect(), *limit)
                }
            };
            match query {
                HeldQuery::Waiting { .. } => found.sort_by_key(|h| h.message.record.at),
                HeldQuery::Prefix { .. } => {
                    found.sort_by(|a, b| a.message.record.id.cmp(&b.message.record.id));
                }
                HeldQuery::Referring { .. } => found.reverse(),
                HeldQuery::Lapsed { .. } => found.sort_by_key(|h| h.ends),
                HeldQuery::Id(_) => {}
            }
            let found = found.into_iter().take(limit);
            found.map(|h| h.message.clone()).collect()
        })
    }
}

impl State {
    fn decide(&mut self, decision: &HoldDecision) -> Ruling {
        let mut held = self.held.iter();
        let Some((seq, found)) = held.find(|(_, h)| h.message.record.id == decision.id) else {
            return Ruling::Unknown;
        };
        let (seq, found) = (*seq, found.clone());
        if let Err(ruling) = found.message.rule(decision) {
            return ruling;
        }
        let before = self.clone();
        self.append(&decision.event(), None);
        self.settle(seq, decision.decided());
        if decision.choice != HoldChoice::Approve {
            self.enqueue_notices(decision.report.clone());
            return Ruling::Done(None);
        }
        let admission = Box::new(released(&found));
        let needs = AcceptNeeds::of_approved(&admission);
        match self.accept_needing(&admission, &needs) {
            AcceptOutcome::Accepted { seq, .. } => Ruling::Done(Some((seq, admission))),
            AcceptOutcome::Rejected(rejection) => {
                *self = before;
                Ruling::NotAllowed(rejection)
            }
            AcceptOutcome::Known { .. } | AcceptOutcome::Held { .. } => Ruling::Done(None),
        }
    }

    /// Puts a decision on record; the text is not kept.
    pub(super) fn settle(&mut self, seq: u64, decided: HoldDecided) {
        let Some(held) = self.held.get_mut(&seq) else {
            return;
        };
        let blobs = std::mem::take(&mut held.blobs);
        let peer = held.message.peer.clone();
        let is_approved = decided.choice == HoldChoice::Approve;
        let record = &mut held.message.record;
        let erased = Arrival::recall(crosstalk_protocol::store::StoredMessage {
            text: String::new(),
            ..held.stored.clone()
        });
        // What a row without a text says.
        *record = crosstalk_protocol::store::Record {
            sender: record.sender.clone(),
            receiver: record.receiver.clone(),
            digest: record.digest,
            expires: record.expires,
            ..crosstalk_protocol::store::Record::pending(erased, seq, record.thread.clone())
        };
        held.ends = None;
        held.message.decided = Some(decided);
        // The message that is accepted refers to them from now on.
        if !is_approved {
            self.end_uploads(&peer, blobs.keys());
        }
    }
}

/// The message as it is accepted when it is approved.
fn released(found: &Held) -> Admission {
    let message = &found.message;
    let arrival = Arrival::recall(found.stored.clone());
    let granted = found.blobs.iter().filter(|(_, grants)| **grants);
    Admission {
        proof: crosstalk_protocol::consent::Proof {
            is_same_key: false,
            ..found.proof
        },
        is_authority: found.is_authority,
        answer_by: message.answer_by,
        expires: message.record.expires,
        readable: granted.map(|(digest, _)| *digest).collect(),
        blobs: found.blobs.keys().copied().collect(),
        ..Admission::recall(arrival, message.peer.clone(), message.recipients.clone())
    }
}
