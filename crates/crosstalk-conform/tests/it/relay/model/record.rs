//! Consents on record and polls: the rules of `crosstalk-protocol` over the messages of the model.

use super::{Defect, Message, Model, now};
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::{Document, PublicKey, Reading, Timestamp, authenticate};
use crosstalk_protocol::consent::{Assurance, Grant, Proof, Terms};
use crosstalk_protocol::poll::{Collation, Paper, collate};
use crosstalk_protocol::relay::{Admission, DeliveryState, Peer};
use crosstalk_protocol::{Verdict, VerdictWord, VerifyContext, pin_of, verify};
use crosstalk_relay::client::ConsentView;
use serde_json::{Value, json};

impl Model {
    /// A key is pinned when it is seen.
    pub(super) fn judge(&mut self, document: &Document<'_>, at: Timestamp) -> Verdict {
        let verdict = verify(document, &self.trust, &VerifyContext::at(at));
        let is_new = verdict.word() == VerdictWord::FirstContact;
        if let Some(pin) = pin_of(&verdict, at).filter(|_| is_new) {
            self.trust.pin(pin).unwrap();
        }
        verify(document, &self.trust, &VerifyContext::at(at))
    }

    /// A sender who brings the key along is believed.
    pub(super) fn proof(document: &Document<'_>) -> Proof {
        let key = document.meta("key", "Public-Key");
        let key = key.and_then(|k| PublicKey::parse_record(k).ok());
        let holds = |k: PublicKey| authenticate(document, &k).is_ok_and(|a| a.verified().is_some());
        let is_firm = key.is_some_and(holds);
        match is_firm {
            true => Proof {
                assurance: Assurance::Pinned,
                is_firm,
                is_same_key: false,
            },
            false => Proof::default(),
        }
    }

    pub(super) fn named(&self, admission: &Admission) -> Vec<Grant> {
        let id = admission.arrival.id();
        let names = admission.claim.iter().flat_map(|c| c.names(id));
        let known = names.filter_map(|n| self.grants.get(n));
        match self.has(Defect::ForgetsRevocations) {
            true => known.filter(|g| g.revoked.is_none()).cloned().collect(),
            false => known.cloned().collect(),
        }
    }

    /// Writes down what follows from a message.
    pub(super) fn record(&mut self, id: &str, terms: Terms) {
        for grant in terms.grants {
            self.grants.insert(grant.id.clone(), grant);
        }
        let under = terms.under.into_iter();
        self.under
            .extend(under.map(|consent| (consent, id.to_owned())));
        let Some(withdrawal) = terms.withdrawal else {
            return;
        };
        for name in withdrawal.consents {
            if let Some(grant) = self.grants.get_mut(&name) {
                grant.revoked = Some(withdrawal.revocation.clone());
            }
            let gone = self.under.iter().filter(|(consent, _)| *consent == name);
            for number in gone.filter_map(|(_, id)| self.find(id)).collect::<Vec<_>>() {
                if !self.has(Defect::KeepsTexts) {
                    self.messages[number].is_erased = true;
                    let own = self.deliveries.iter_mut().filter(|d| d.message == number);
                    own.for_each(|d| d.state = DeliveryState::Failed);
                }
            }
        }
    }

    fn sees_consent(&self, peer: &Peer, grant: &Grant) -> bool {
        let reads = |a: &String| peer.is_admin() || peer.speaks_for(a);
        reads(&grant.granter) || grant.to.iter().any(reads) || self.has(Defect::ShowsConsents)
    }

    pub(in crate::relay) fn consents(&self, peer: &Peer, by: Option<&str>, holding: bool) -> Value {
        let listed = |g: &&Grant| {
            let is_by = by.is_none_or(|by| g.granter == by);
            let is_wanted = !holding || g.standing(now()) == "holds";
            is_by && is_wanted && self.sees_consent(peer, g) && !self.has(Defect::HidesConsents)
        };
        let all: Vec<ConsentView> = self
            .grants
            .values()
            .filter(listed)
            .map(|g| ConsentView::of(g, now()))
            .collect();
        json!({"consents": all})
    }

    pub(in crate::relay) fn consent(&self, peer: &Peer, id: &str) -> Option<Value> {
        let grant = self.grants.get(id).filter(|g| self.sees_consent(peer, g))?;
        let under = self.under.iter().filter(|(consent, _)| consent == id);
        let under = under.map(|(_, id)| {
            let has_text = self.find(id).is_some_and(|n| !self.messages[n].is_erased);
            json!({"id": id, "has_text": has_text})
        });
        let mut value = serde_json::to_value(ConsentView::of(grant, now())).unwrap();
        value["messages"] = under.collect();
        value["told"] = json!([]);
        Some(value)
    }

    /// A poll as it stands, from it and its answers.
    fn collation(&self, id: &str) -> Option<Collation> {
        let own = |m: &&Message| m.id() == id || m.parent() == Some(id);
        let own: Vec<&Message> = self.messages.iter().filter(own).collect();
        let read =
            |m: &&Message| Document::parse(&m.admission.arrival.text, Reading::Strict).into_owned();
        let documents: Vec<Document<'_>> = own.iter().map(read).collect();
        let papers: Vec<Paper<'_>> = documents
            .iter()
            .zip(&own)
            .map(|(document, message)| Paper {
                hop: Some(message.at),
                ..Paper::of(document)
            })
            .collect();
        let at = self.closed.get(id).copied();
        let at = at.filter(|_| !self.has(Defect::CountsOn));
        let mut collation = collate(&papers, Some(id), at).ok()?;
        if self.has(Defect::NeverCounts) {
            collation.tally.0.clear();
        }
        Some(collation)
    }

    fn stands(&self, peer: &Peer, number: usize) -> Option<Value> {
        let arrival = &self.messages[number].admission.arrival;
        if arrival.meaning != Some(Intent::Poll) {
            return None;
        }
        let reads = |a: &String| peer.is_admin() || peer.speaks_for(a);
        let is_seen = reads(&arrival.sender) || arrival.targets.iter().any(reads);
        let collation = self
            .collation(arrival.id())
            .filter(|_| is_seen || self.has(Defect::ShowsPolls))?;
        let closed = self.closed.get(arrival.id());
        let mut value = serde_json::to_value(&collation).unwrap();
        value["state"] = json!(if closed.is_some() { "closed" } else { "open" });
        value["closed_at"] = json!(closed.map(ToString::to_string));
        Some(value)
    }

    pub(in crate::relay) fn polls(&self, peer: &Peer) -> Value {
        let all = (0..self.messages.len()).filter_map(|n| {
            let (stands, arrival) = (self.stands(peer, n)?, &self.messages[n].admission.arrival);
            let invited = arrival.targets.len();
            Some(json!({"message": arrival.id(), "from": arrival.sender, "state": stands["state"], "invited": invited}))
        });
        json!({"polls": all.collect::<Vec<Value>>()})
    }

    pub(in crate::relay) fn poll(&self, peer: &Peer, id: &str) -> Option<Value> {
        self.stands(peer, self.find(id)?)
    }

    /// Closes a poll; nothing if the caller may not.
    pub(in crate::relay) fn close_poll(&mut self, peer: &Peer, id: &str) -> Option<Value> {
        let number = self.find(id)?;
        let arrival = &self.messages[number].admission.arrival;
        let may = peer.is_admin() || peer.speaks_for(&arrival.sender);
        if !may && !self.has(Defect::AnybodyClosesPolls) {
            return None;
        }
        if !self.closed.contains_key(id) || self.has(Defect::ClosesAgain) {
            let soon = Timestamp::from_millis(now().as_millis() + 1);
            self.closed.insert(id.to_owned(), soon);
            let thread = self.messages[number].thread().to_owned();
            let results = self.collation(id)?.to_envelopes(Some(&thread)).unwrap();
            for result in results {
                self.receive(result.as_bytes(), &Peer::itself());
            }
        }
        self.stands(peer, number)
    }
}
