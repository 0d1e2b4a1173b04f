//! Accepting a batch as a function: facts in, changes out.
//!
//! Later messages of a batch see what earlier ones did: what the plan has decided so far comes before what the store knows.

use super::super::admit::Admission;
use super::super::delivery::{DeliveryState, Handler};
use super::ConversationId;
use super::changes::{
    AcceptPlan, DisplacedMessage, ImprovedMessage, NewMessage, PlannedEvent, PlannedOutcome,
    PlannedPlace, ReportedDelivery,
};
use super::facts::{
    AcceptFacts, ConversationParties, DeliveryFacts, HeldFacts, LoggedFacts, PendingParties,
};
use super::{KnownFacts, Surroundings, id_conflict, is_accepted_after_close};
use crate::audit::{Event, EventDetail, EventKind, LogPlace};
use crate::consent::{self, Grant, Terms};
use crate::poll::may_be_ballot;
use crate::store::{Arrival, KnownMessage, Side, is_same_party, party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use std::collections::{BTreeMap, HashMap};

/// Decides what becomes of the messages of a batch, by what a store knows of what they ask for
/// ([`AcceptNeeds::of`](super::AcceptNeeds::of)).
///
/// The plan ends early after a message that takes an id away or revokes something: what the rest asks for may have changed then.
pub fn plan_accept<'b>(batch: &'b [Admission], facts: &'b AcceptFacts) -> AcceptPlan<'b> {
    let mut planner = Planner::new(facts);
    for admission in batch {
        let outcome = planner.accept(admission);
        planner.plan.outcomes.push(outcome);
        if planner.is_over {
            break;
        }
    }
    planner.plan
}

/// The facts, with what the plan has decided so far.
struct Planner<'b> {
    facts: &'b AcceptFacts,
    plan: AcceptPlan<'b>,
    is_over: bool,
    /// New messages by id, and those that carry none by content.
    ids: HashMap<&'b str, usize>,
    contents: HashMap<Digest, usize>,
    held_ids: HashMap<&'b str, usize>,
    held_contents: HashMap<Digest, usize>,
    /// New messages by thread, and by session.
    threads: HashMap<String, Vec<usize>>,
    sessions: HashMap<&'b str, Vec<usize>>,
    closings: BTreeMap<ConversationId, Timestamp>,
    stewards: BTreeMap<ConversationId, &'b str>,
    grants: HashMap<String, Grant>,
    /// Better evidence about messages: the verdict, and whether the text may be cut off.
    evidence: HashMap<PlannedPlace, (VerdictWord, bool)>,
    /// The entries of kept messages that had none.
    entries: HashMap<u64, usize>,
    /// The latest text of messages in the log.
    texts: HashMap<PlannedPlace, Digest>,
    /// How far deliveries are.
    states: HashMap<(PlannedPlace, String), DeliveryState>,
}

/// A message with the id or the content of one that comes.
struct Found<'b> {
    place: PlannedPlace,
    message: KnownMessage,
    id: &'b str,
    entry: Option<PlannedPlace<LogPlace>>,
    raw: Option<Digest>,
    sender: Option<&'b str>,
    is_spare_taken: bool,
}

/// A message that is answered.
struct Parent<'p> {
    place: PlannedPlace,
    thread: &'p str,
    meaning: Option<Intent>,
}

impl<'b> Planner<'b> {
    fn new(facts: &'b AcceptFacts) -> Self {
        Self {
            facts,
            plan: AcceptPlan::default(),
            is_over: false,
            ids: HashMap::new(),
            contents: HashMap::new(),
            held_ids: HashMap::new(),
            held_contents: HashMap::new(),
            threads: HashMap::new(),
            sessions: HashMap::new(),
            closings: BTreeMap::new(),
            stewards: BTreeMap::new(),
            grants: HashMap::new(),
            evidence: HashMap::new(),
            entries: HashMap::new(),
            texts: HashMap::new(),
            states: HashMap::new(),
        }
    }

    fn accept(&mut self, admission: &'b Admission) -> PlannedOutcome {
        if let Some(outcome) = self.meet_held(admission) {
            return outcome;
        }
        let arrival = &admission.arrival;
        if arrival.message.is_none()
            && let Some(found) = self.by_content(arrival.digest)
        {
            return self.meet_again(&found, arrival);
        }
        let found = self.by_id(arrival.id());
        // A known message is known, whatever has happened since.
        if let Some(found) = found.as_ref().filter(|f| f.message.is_same(arrival)) {
            return self.meet_again(found, arrival);
        }
        let terms = match admission.rule(&self.surroundings(admission)) {
            Ok(terms) => terms,
            Err(rejection) => return PlannedOutcome::Rejected(rejection),
        };
        if let Some(found) = found {
            // Nobody takes the id of a message of somebody else.
            let is_own = found
                .sender
                .is_none_or(|s| is_same_party(s, &arrival.sender));
            let yields = found.message.yields_id_to(arrival) && is_own && !found.is_spare_taken;
            if !yields {
                return PlannedOutcome::Rejected(id_conflict(arrival.id()));
            }
            self.displace(&found);
        }
        match &admission.held {
            Some(held) => self.hold(admission, &held.why, terms),
            None => self.insert(admission, terms),
        }
    }

    /// What a message gets for an answer that is or was held, or whose id belongs to one.
    fn meet_held(&mut self, admission: &'b Admission) -> Option<PlannedOutcome> {
        let arrival = &admission.arrival;
        let by_content = || {
            let (new, kept) = (&self.held_contents, &self.facts.held_contents);
            (new.get(&arrival.digest), kept.get(&arrival.digest))
        };
        let (new, kept) = match (&arrival.message, by_content()) {
            (None, found @ ((Some(_), _) | (_, Some(_)))) => found,
            _ => (
                self.held_ids.get(arrival.id()),
                self.facts.held_ids.get(arrival.id()),
            ),
        };
        let (found, place, entry) = match (new, kept) {
            (Some(new), _) => {
                let held = self.plan.changes.held.get(*new)?;
                let facts = self.new_held_facts(held);
                (
                    facts,
                    PlannedPlace::New(*new),
                    PlannedPlace::New(held.entry),
                )
            }
            (None, Some(kept)) => {
                let place = PlannedPlace::Kept(kept.seq);
                (kept.clone(), place, PlannedPlace::Kept(kept.entry))
            }
            (None, None) => return None,
        };
        if found.digest == arrival.digest {
            return Some(PlannedOutcome::Held {
                entry,
                since: found.since,
                is_new: false,
                ids: ReceivedIds {
                    thread: found.generated.thread,
                    message: found.id,
                },
            });
        }
        let is_own = is_same_party(&found.sender, &arrival.sender);
        let yields = arrival.displaces(found.verdict, Side::Between);
        let spare = found.generated.message.as_str();
        let is_spare_taken = found.is_spare_taken || self.held_ids.contains_key(spare);
        if !is_own || !yields || is_spare_taken {
            return Some(PlannedOutcome::Rejected(id_conflict(arrival.id())));
        }
        match place {
            PlannedPlace::Kept(seq) => {
                self.plan.changes.displaced_held = Some(DisplacedMessage {
                    seq,
                    id: found.generated.message,
                });
            }
            PlannedPlace::New(place) => {
                if let Some(held) = self.plan.changes.held.get_mut(place) {
                    held.id = &held.admission.arrival.generated.message;
                    held.is_carried = false;
                }
            }
        }
        self.is_over = true;
        None
    }

    fn new_held_facts(&self, held: &NewMessage<'_>) -> HeldFacts {
        let arrival = &held.admission.arrival;
        let spare = &arrival.generated.message;
        HeldFacts {
            seq: 0,
            id: held.id.to_owned(),
            generated: ReceivedIds {
                thread: held.generated_thread.clone(),
                message: spare.clone(),
            },
            digest: arrival.digest,
            verdict: arrival.verdict,
            sender: arrival.sender.clone(),
            since: arrival.at,
            entry: LogPlace::default(),
            is_spare_taken: self.facts.held_ids.contains_key(spare),
        }
    }

    /// A message that is there: the plan keeps what is known better now.
    fn meet_again(&mut self, found: &Found<'b>, arrival: &'b Arrival) -> PlannedOutcome {
        let mut entry = found.entry;
        if found.message.is_improved_by(arrival) {
            let text = arrival.received.as_deref().unwrap_or(&arrival.text);
            let raw = Digest::of(text.as_bytes());
            // Another text is kept than the one that was accepted: that is an entry of its own.
            let renewed = entry.is_some().then(|| {
                self.texts.insert(found.place, raw);
                self.log(accepted(found.id, arrival, raw), Some(found.place))
            });
            let known = (arrival.verdict, arrival.truncated);
            self.evidence.insert(found.place, known);
            self.plan.changes.improved.push(ImprovedMessage {
                message: found.place,
                arrival,
                entry: renewed,
            });
            // What the person of the store accepted, the relay accepts with the better text.
            if entry.is_none() {
                entry = self.adopt(found, arrival, Some(raw));
            }
        } else if entry.is_none() {
            entry = self.adopt(found, arrival, found.raw);
        }
        PlannedOutcome::Known {
            message: found.place,
            entry: entry.unwrap_or(PlannedPlace::Kept(LogPlace::default())),
            since: found.message.since,
            ids: ReceivedIds {
                thread: found.message.generated.thread.clone(),
                message: found.message.id.clone(),
            },
        }
    }

    /// Gives a message that the person of the store accepted its entry in the log.
    fn adopt(
        &mut self,
        found: &Found<'b>,
        arrival: &'b Arrival,
        raw: Option<Digest>,
    ) -> Option<PlannedPlace<LogPlace>> {
        let PlannedPlace::Kept(seq) = found.place else {
            return None;
        };
        let raw = raw.unwrap_or_else(|| Digest::of(&[]));
        let entry = self.log(accepted(found.id, arrival, raw), Some(found.place));
        self.plan.changes.logged.push((seq, entry));
        self.entries.insert(seq, entry);
        Some(PlannedPlace::New(entry))
    }

    fn displace(&mut self, found: &Found<'b>) {
        match found.place {
            PlannedPlace::Kept(seq) => {
                self.plan.changes.displaced = Some(DisplacedMessage {
                    seq,
                    id: found.message.generated.message.clone(),
                });
            }
            PlannedPlace::New(place) => {
                if let Some(message) = self.plan.changes.messages.get_mut(place) {
                    message.id = &message.admission.arrival.generated.message;
                    message.is_carried = false;
                }
            }
        }
        self.is_over = true;
    }

    fn insert(&mut self, admission: &'b Admission, terms: Terms) -> PlannedOutcome {
        let arrival = &admission.arrival;
        let place = PlannedPlace::New(self.plan.changes.messages.len());
        let entry = self.log(accepted(arrival.id(), arrival, admission.raw), Some(place));
        let to = admission.recipients.first();
        let to = to.map_or(arrival.receiver.as_str(), |r| r.address.as_str());
        let hands_over = match arrival.meaning {
            Some(Intent::Handoff) => admission.conversation().map(|what| (what, to)),
            _ => None,
        };
        let message = NewMessage {
            admission,
            id: arrival.id(),
            is_carried: arrival.message.is_some(),
            generated_thread: self.generated_thread(arrival),
            expires: terms.expires.or(admission.expires),
            entry,
            deliveries: deliveries(admission),
            blobs: self.blobs(admission),
            under: terms.under,
            closes: admission.closing(),
            hands_over,
        };
        let ids = ReceivedIds {
            thread: message.generated_thread.clone(),
            message: message.id.to_owned(),
        };
        let message = self.add(message);
        self.mark_polls(arrival, message);
        // The row of a message names its entry in the log: what follows from it has later ones.
        self.report(arrival);
        for grant in terms.grants {
            self.grant(grant, arrival);
        }
        if terms.withdrawal.is_some() {
            self.plan.revocation = terms.withdrawal;
            self.is_over = true;
        }
        PlannedOutcome::Accepted {
            message,
            entry,
            ids,
        }
    }

    fn add(&mut self, message: NewMessage<'b>) -> usize {
        let place = self.plan.changes.messages.len();
        let arrival = message.arrival();
        self.ids.insert(message.id, place);
        if !message.is_carried {
            self.contents.entry(arrival.digest).or_insert(place);
        }
        let thread = message.thread().to_owned();
        self.threads.entry(thread).or_default().push(place);
        if let Some(session) = message.session() {
            self.sessions.entry(session).or_default().push(place);
        }
        if let Some(conversation) = &message.closes {
            self.closings.insert(conversation.clone(), arrival.at);
        }
        if let Some((conversation, to)) = &message.hands_over {
            self.stewards.insert(conversation.clone(), to);
        }
        self.plan.changes.messages.push(message);
        place
    }

    fn hold(&mut self, admission: &'b Admission, why: &str, terms: Terms) -> PlannedOutcome {
        let arrival = &admission.arrival;
        let event = Event {
            kind: EventKind::Held,
            detail: Some(EventDetail::default().with("why", why)),
            ..accepted(arrival.id(), arrival, admission.raw)
        };
        let entry = self.log(event, None);
        let held = NewMessage {
            admission,
            id: arrival.id(),
            is_carried: arrival.message.is_some(),
            generated_thread: self.generated_thread(arrival),
            expires: terms.expires.or(admission.expires),
            entry,
            deliveries: Vec::new(),
            blobs: self.blobs(admission),
            under: terms.under,
            closes: None,
            hands_over: None,
        };
        let ids = ReceivedIds {
            thread: held.generated_thread.clone(),
            message: held.id.to_owned(),
        };
        let place = self.plan.changes.held.len();
        self.held_ids.insert(held.id, place);
        if !held.is_carried {
            self.held_contents.entry(arrival.digest).or_insert(place);
        }
        self.plan.changes.held.push(held);
        PlannedOutcome::Held {
            entry: PlannedPlace::New(entry),
            since: arrival.at,
            is_new: true,
            ids,
        }
    }

    fn log(&mut self, event: Event<'b>, takes: Option<PlannedPlace>) -> usize {
        let events = &mut self.plan.changes.events;
        events.push(PlannedEvent { event, takes });
        events.len() - 1
    }

    /// What the rules ask about what came before.
    fn surroundings(&self, admission: &'b Admission) -> Surroundings {
        let arrival = &admission.arrival;
        let mut found = Surroundings::default();
        if let Some(claim) = &admission.claim {
            found.grants = self.named(claim.names(arrival.id()));
        }
        if arrival.meaning.is_some_and(is_accepted_after_close) {
            return found;
        }
        let conversation = admission.conversation();
        found.closed = conversation.as_ref().and_then(|c| self.closed(c));
        if let Some(parent) = self.parent(arrival) {
            found.answered = parent.meaning;
            // It will be in the thread of its parent, whatever it names.
            if found.closed.is_none() && self.has_part(arrival, &parent) {
                found.closed = self.closed(&ConversationId::Thread(parent.thread.to_owned()));
            }
        }
        match (conversation, arrival.meaning) {
            (Some(known), Some(Intent::Close)) => {
                found.is_party = self.parties(&known).has(&arrival.sender);
            }
            (Some(known), Some(Intent::Handoff)) => {
                let parties = self.parties(&known);
                found.is_party = !parties.is_known() || parties.has(&arrival.sender);
                found.steward = self.steward(&known);
            }
            _ => found.is_party = true,
        }
        found
    }

    /// The thread of a message that names none: that of the message it answers, else that of its session, else a new one.
    fn generated_thread(&self, arrival: &Arrival) -> String {
        if arrival.thread.is_some() {
            return arrival.generated.thread.clone();
        }
        let parent = self.parent(arrival);
        if let Some(parent) = parent.filter(|p| self.has_part(arrival, p)) {
            return parent.thread.to_owned();
        }
        let session = arrival.session.as_deref();
        let of_session = session.and_then(|s| self.thread_of_session(s));
        of_session.unwrap_or(&arrival.generated.thread).to_owned()
    }

    fn thread_of_session(&self, session: &str) -> Option<&str> {
        let known = self.facts.sessions.get(session);
        let new = self.sessions.get(session).and_then(|all| all.last());
        let new = new.and_then(|place| self.new_message(*place));
        let indexed = known.and_then(|k| k.indexed.as_deref());
        let pending = known.and_then(|k| k.pending.as_deref());
        indexed.or(new.map(NewMessage::thread)).or(pending)
    }

    fn parent(&self, arrival: &Arrival) -> Option<Parent<'_>> {
        let answered = arrival.answered()?;
        if let Some(new) = self.ids.get(answered) {
            let message = self.new_message(*new)?;
            return Some(Parent {
                place: PlannedPlace::New(*new),
                thread: message.thread(),
                meaning: message.arrival().meaning,
            });
        }
        let kept = self.facts.parents.get(answered)?;
        Some(Parent {
            place: PlannedPlace::Kept(kept.seq),
            thread: &kept.thread,
            meaning: kept.meaning,
        })
    }

    /// Whether a message belongs into the thread of the one that it answers: it names the thread, or its sender has a part in that
    /// message or in the thread. The thread is not told to others, and they do not write to it.
    fn has_part(&self, arrival: &Arrival, parent: &Parent<'_>) -> bool {
        if arrival.thread.as_deref() == Some(parent.thread) {
            return true;
        }
        let has_part = match parent.place {
            PlannedPlace::New(place) => self.new_message(place).is_some_and(|m| {
                let got: Vec<&str> = m.deliveries.iter().map(|(to, _)| *to).collect();
                arrival.has_part_in(m.arrival(), &got)
            }),
            PlannedPlace::Kept(_) => {
                let kept = arrival.answered().and_then(|id| self.facts.parents.get(id));
                let mut parts = kept.into_iter().flat_map(|k| &k.parts);
                parts.any(|p| is_same_party(p, &arrival.sender))
            }
        };
        let thread = ConversationId::Thread(parent.thread.to_owned());
        has_part || self.parties(&thread).has(&arrival.sender)
    }

    fn closed(&self, what: &ConversationId) -> Option<Timestamp> {
        let known = self.facts.closings.get(what);
        known.or_else(|| self.closings.get(what)).copied()
    }

    fn steward(&self, what: &ConversationId) -> Option<String> {
        let new = self.stewards.get(what).map(|to| (*to).to_owned());
        new.or_else(|| self.facts.stewards.get(what).cloned())
    }

    fn parties(&self, what: &ConversationId) -> ConversationParties {
        let mut parties = self.facts.parties.get(what).cloned().unwrap_or_default();
        let new = match what {
            ConversationId::Thread(id) => self.threads.get(id),
            ConversationId::Session(name) => self.sessions.get(name.as_str()),
        };
        let new = new.into_iter().flatten();
        let new = new.filter_map(|place| self.new_message(*place));
        parties.pending.extend(new.map(|m| {
            let got = m.admission.recipients.iter().map(|r| r.address.as_str());
            PendingParties::of(m.arrival(), got)
        }));
        parties
    }

    /// The consents with these names, and those that they go back to.
    fn named<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<Grant> {
        let find = |name: &str| {
            let new = self.grants.get(name);
            new.or_else(|| self.facts.grants.get(name)).cloned()
        };
        let mut found = Vec::new();
        for grant in names.filter_map(find) {
            found.extend(grant.originals.iter().filter_map(|name| find(name)));
            found.push(grant);
        }
        found
    }

    fn grant(&mut self, grant: Grant, arrival: &'b Arrival) {
        self.log(consent::grant_event(&grant, arrival.id(), arrival.at), None);
        self.grants.insert(grant.id.clone(), grant.clone());
        self.plan.changes.grants.push(grant);
    }

    /// The attachments of a message, each once, and whether its reference grants access: whoever handed it in can read it, or
    /// uploaded it.
    fn blobs(&self, admission: &Admission) -> Vec<(Digest, bool)> {
        let mut blobs: Vec<(Digest, bool)> = Vec::new();
        for digest in &admission.blobs {
            if blobs.iter().all(|(known, _)| known != digest) {
                let grants = admission.readable.contains(digest)
                    || self
                        .facts
                        .uploads
                        .contains(&(admission.peer.clone(), *digest));
                blobs.push((*digest, grants));
            }
        }
        blobs
    }

    /// Marks the polls that a message may answer for another count. A message that came after the close does not count.
    fn mark_polls(&mut self, arrival: &Arrival, message: usize) {
        if !arrival.meaning.is_some_and(may_be_ballot) {
            return;
        }
        let mut polls = Vec::new();
        let is_open = |closed: Option<Timestamp>| closed.is_none_or(|at| at > arrival.at);
        if let Some(parent) = self.parent(arrival) {
            let poll = match parent.place {
                PlannedPlace::New(place) => {
                    self.new_message(place).is_some_and(NewMessage::is_poll)
                }
                PlannedPlace::Kept(_) => {
                    let kept = arrival.answered().and_then(|id| self.facts.parents.get(id));
                    kept.and_then(|k| k.poll).is_some_and(|p| is_open(p.closed))
                }
            };
            polls.extend(poll.then_some(parent.place));
        }
        if let Some(thread) = &arrival.thread {
            let kept = self.facts.polls.get(thread).into_iter().flatten();
            let open = kept.filter(|p| is_open(p.closed));
            polls.extend(open.map(|p| PlannedPlace::Kept(p.seq)));
            let new = self.threads.get(thread).into_iter().flatten();
            let is_poll =
                |place: &&usize| self.new_message(**place).is_some_and(NewMessage::is_poll);
            polls.extend(new.filter(is_poll).map(|place| PlannedPlace::New(*place)));
        }
        polls.sort_unstable();
        polls.dedup();
        let counted = polls.into_iter().map(|poll| (poll, message));
        self.plan.changes.counted.extend(counted);
    }

    /// Brings the delivery that an ACK or a NACK reports into its state: of the recipient alone, not of others of its scheme.
    fn report(&mut self, arrival: &'b Arrival) {
        let Some(((state, reason), id)) = arrival.reports_delivery().zip(arrival.answered()) else {
            return;
        };
        let Some(parent) = self.parent(arrival) else {
            return;
        };
        let (place, party) = (parent.place, party(&arrival.sender));
        let Some(delivery) = self.delivery(place, id, &party) else {
            return;
        };
        let key = (place, party);
        let now = self.states.get(&key).copied().unwrap_or(delivery.state);
        if !state.follows(now) {
            return;
        }
        if let Some(kind) = state.event_after(now)
            && let Some(logged) = self.logged(place, id)
        {
            // Not why: the words of a NACK go when it is erased, and what is in the log stays.
            let detail = EventDetail::default()
                .with("to", &delivery.address)
                .with("by", delivery.by.as_str());
            let event = Event {
                id: Some(id),
                canonical: Some(logged.canonical),
                raw: logged.raw,
                detail: Some(detail),
                ..Event::new(kind, arrival.at)
            };
            self.log(event, None);
        }
        self.plan.changes.reported.push(ReportedDelivery {
            message: place,
            party: key.1.clone(),
            state,
            at: arrival.at,
            reason,
        });
        self.states.insert(key, state);
    }

    fn delivery(&self, place: PlannedPlace, id: &str, to: &str) -> Option<DeliveryFacts> {
        match place {
            PlannedPlace::Kept(_) => {
                let mut known = self.facts.parents.get(id)?.deliveries.iter();
                known.find(|d| d.party == to).cloned()
            }
            PlannedPlace::New(place) => {
                let mut new = self.new_message(place)?.deliveries.iter();
                let (address, by) = new.find(|(address, _)| party(address) == to)?;
                Some(DeliveryFacts {
                    party: to.to_owned(),
                    address: (*address).to_owned(),
                    by: *by,
                    state: DeliveryState::Queued,
                })
            }
        }
    }

    fn logged(&self, place: PlannedPlace, id: &str) -> Option<LoggedFacts> {
        let logged = match place {
            PlannedPlace::Kept(_) => self.facts.parents.get(id)?.logged?,
            PlannedPlace::New(new) => {
                let admission = self.new_message(new)?.admission;
                LoggedFacts {
                    canonical: admission.arrival.digest,
                    raw: Some(admission.raw),
                }
            }
        };
        let renewed = self.texts.get(&place).copied();
        Some(LoggedFacts {
            raw: renewed.or(logged.raw),
            ..logged
        })
    }

    fn new_message(&self, place: usize) -> Option<&NewMessage<'b>> {
        self.plan.changes.messages.get(place)
    }

    fn by_id(&self, id: &str) -> Option<Found<'b>> {
        match self.ids.get(id) {
            Some(new) => self.found_new(*new),
            None => self.facts.ids.get(id).map(|kept| self.found_kept(kept)),
        }
    }

    /// The oldest message of a content that carries no id.
    fn by_content(&self, digest: Digest) -> Option<Found<'b>> {
        match self.facts.contents.get(&digest) {
            Some(kept) => Some(self.found_kept(kept)),
            None => self.found_new(*self.contents.get(&digest)?),
        }
    }

    fn found_kept(&self, kept: &'b KnownFacts) -> Found<'b> {
        let seq = kept.message.seq;
        let place = PlannedPlace::Kept(seq);
        let mut message = kept.message.clone();
        if let Some((verdict, is_truncated)) = self.evidence.get(&place) {
            (message.verdict, message.is_truncated) = (*verdict, *is_truncated);
        }
        let new = self.entries.get(&seq).copied().map(PlannedPlace::New);
        Found {
            place,
            message,
            id: &kept.message.id,
            entry: kept.entry.map(PlannedPlace::Kept).or(new),
            raw: kept.raw,
            sender: kept.sender.as_deref(),
            is_spare_taken: kept.is_spare_taken
                || self
                    .ids
                    .contains_key(kept.message.generated.message.as_str()),
        }
    }

    fn found_new(&self, new: usize) -> Option<Found<'b>> {
        let message = self.new_message(new)?;
        let (place, arrival) = (PlannedPlace::New(new), message.arrival());
        let evidence = self.evidence.get(&place).copied();
        let (verdict, is_truncated) = evidence.unwrap_or((arrival.verdict, arrival.truncated));
        let spare = &arrival.generated.message;
        Some(Found {
            place,
            id: message.id,
            message: KnownMessage {
                seq: 0,
                id: message.id.to_owned(),
                generated: ReceivedIds {
                    thread: message.generated_thread.clone(),
                    message: spare.clone(),
                },
                digest: arrival.digest,
                verdict,
                side: arrival.side,
                thread: message.thread().to_owned(),
                since: arrival.at,
                is_gone: false,
                is_truncated,
            },
            entry: Some(PlannedPlace::New(message.entry)),
            raw: None,
            sender: Some(&arrival.sender),
            is_spare_taken: self.ids.contains_key(spare.as_str())
                || self.facts.ids.contains_key(spare),
        })
    }
}

/// That a message was accepted. It has no detail: everything about it is in its text.
fn accepted<'e>(id: &'e str, arrival: &Arrival, raw: Digest) -> Event<'e> {
    Event {
        id: Some(id),
        canonical: Some(arrival.digest),
        raw: Some(raw),
        ..Event::new(EventKind::Accepted, arrival.at)
    }
}

/// The recipients of a message, each party once.
fn deliveries(admission: &Admission) -> Vec<(&str, Handler)> {
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for recipient in &admission.recipients {
        let party = party(&recipient.address);
        if !seen.contains(&party) {
            seen.push(party);
            all.push((recipient.address.as_str(), recipient.by));
        }
    }
    if all.is_empty() {
        all.push((&admission.arrival.receiver, Handler::Inbox));
    }
    all
}
