//! The rules of accepting, over facts in memory.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::{ConsentKind, Digest};
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::{Event, LogPlace};
use crosstalk_protocol::consent::{
    Assurance, Claim, CoveredHeld, CoveredMessage, Grant, Proof, RevocationFacts, RevocationOrder,
    RevocationResult, plan_cascade,
};
use crosstalk_protocol::relay::{
    AcceptChanges, AcceptFacts, AcceptNeeds, AcceptNumbers, AcceptOutcome, Admission,
    ConversationId, ConversationParties, DeliveryFacts, DeliveryState, Handler, HeldFacts,
    HoldReason, KnownFacts, LoggedFacts, ParentFacts, PendingParties, PollFacts, Recipient,
    SessionFacts, plan_accept,
};
use crosstalk_protocol::store::{Arrival, KnownMessage, Side, StoredMessage, Way, party};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a relay keeps, in lists that are searched from end to end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    messages: Vec<Row>,
    held: Vec<HeldRow>,
    log: Vec<Logged>,
    closings: BTreeMap<ConversationId, Timestamp>,
    stewards: BTreeMap<ConversationId, String>,
    grants: BTreeMap<String, Grant>,
    uploads: BTreeSet<(String, Digest)>,
    /// Up to which position parties and sessions are indexed.
    indexed: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    seq: u64,
    id: String,
    is_carried: bool,
    arrival: Arrival,
    recipients: Vec<String>,
    generated_thread: String,
    thread: String,
    session: Option<String>,
    verdict: VerdictWord,
    raw: Digest,
    entry: Option<u64>,
    is_gone: bool,
    deliveries: Vec<DeliveryFacts>,
    reasons: BTreeMap<String, Option<String>>,
    blobs: Vec<(Digest, bool)>,
    under: Vec<String>,
    touched: Option<u64>,
    closed: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
struct HeldRow {
    seq: u64,
    id: String,
    is_carried: bool,
    arrival: Arrival,
    raw: Digest,
    generated_thread: String,
    recipients: Vec<String>,
    entry: u64,
    under: Vec<String>,
    is_decided: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Logged {
    kind: &'static str,
    at: Timestamp,
    id: Option<String>,
    canonical: Option<Digest>,
    raw: Option<Digest>,
    detail: Option<String>,
    takes: Option<u64>,
}

impl Logged {
    fn of(event: &Event<'_>, takes: Option<u64>) -> Self {
        Self {
            kind: event.kind.as_str(),
            at: event.at,
            id: event.id.map(str::to_owned),
            canonical: event.canonical,
            raw: event.raw,
            detail: event.detail.as_ref().map(ToString::to_string),
            takes,
        }
    }
}

impl Row {
    fn known(&self, all: &[Self]) -> KnownFacts {
        let spare = &self.arrival.generated.message;
        KnownFacts {
            message: KnownMessage {
                seq: self.seq,
                id: self.id.clone(),
                generated: ReceivedIds {
                    thread: self.generated_thread.clone(),
                    message: spare.clone(),
                },
                digest: self.arrival.digest,
                verdict: self.verdict,
                side: self.arrival.side,
                thread: self.thread.clone(),
                since: self.arrival.at,
                is_gone: self.is_gone,
                is_truncated: false,
            },
            entry: self.entry.map(LogPlace::first),
            raw: Some(self.raw),
            sender: (!self.is_gone).then(|| self.arrival.sender.clone()),
            is_spare_taken: all.iter().any(|m| m.id == *spare),
        }
    }

    fn logged(&self) -> Option<LoggedFacts> {
        self.entry.map(|_| LoggedFacts {
            canonical: self.arrival.digest,
            raw: Some(self.raw),
        })
    }

    fn poll(&self) -> Option<PollFacts> {
        let is_poll = self.arrival.meaning == Some(Intent::Poll) && !self.is_gone;
        is_poll.then_some(PollFacts {
            seq: self.seq,
            closed: self.closed,
        })
    }

    fn pending(&self) -> PendingParties {
        PendingParties::of(&self.arrival, self.recipients.iter().map(String::as_str))
    }
}

impl Kept {
    fn by_id(&self, id: &str) -> Option<&Row> {
        self.messages.iter().find(|m| m.id == id)
    }

    fn parties(&self, what: &ConversationId) -> ConversationParties {
        let is_in = |m: &&Row| match what {
            ConversationId::Thread(id) => m.thread == *id,
            ConversationId::Session(name) => m.session.as_ref() == Some(name),
        };
        let (old, new) = self.messages.split_at(self.indexed);
        let all = |rows: &[Row]| -> Vec<PendingParties> {
            let rows = rows.iter().filter(is_in).filter(|m| !m.is_gone);
            rows.map(Row::pending).collect()
        };
        let old = ConversationParties {
            pending: all(old),
            ..ConversationParties::default()
        };
        let names = NAMES.iter().filter(|name| old.has(name));
        ConversationParties {
            indexed: names.map(|name| party(name)).collect(),
            pending: all(new),
        }
    }

    /// Exactly what is asked for.
    fn load(&self, needs: &AcceptNeeds<'_>) -> AcceptFacts {
        let mut facts = AcceptFacts::default();
        for (id, _) in &needs.ids {
            if let Some(found) = self.by_id(id) {
                facts
                    .ids
                    .insert((*id).to_owned(), found.known(&self.messages));
            }
        }
        for digest in &needs.contents {
            let is_it = |m: &&Row| !m.is_carried && m.arrival.digest == *digest;
            if let Some(found) = self.messages.iter().find(is_it) {
                facts.contents.insert(*digest, found.known(&self.messages));
            }
        }
        for id in &needs.held_ids {
            if let Some(found) = self.held.iter().find(|h| h.id == *id) {
                facts
                    .held_ids
                    .insert((*id).to_owned(), self.held_facts(found));
            }
        }
        for digest in &needs.held_contents {
            let is_it = |h: &&HeldRow| !h.is_carried && h.arrival.digest == *digest;
            if let Some(found) = self.held.iter().find(is_it) {
                facts.held_contents.insert(*digest, self.held_facts(found));
            }
        }
        for what in &needs.closings {
            let at = self.closings.get(what);
            facts.closings.extend(at.map(|at| (what.clone(), *at)));
        }
        for what in &needs.parties {
            facts.parties.insert(what.clone(), self.parties(what));
        }
        for what in &needs.stewards {
            let to = self.stewards.get(what);
            facts
                .stewards
                .extend(to.map(|to| (what.clone(), to.clone())));
        }
        let mut threads = Vec::new();
        for (session, is_deep) in &needs.sessions {
            let (old, new) = self.messages.split_at(self.indexed);
            let latest = |rows: &[Row]| {
                let mut rows = rows.iter().rev();
                let found = rows.find(|m| m.session.as_deref() == Some(session));
                found.map(|m| m.thread.clone())
            };
            let known = SessionFacts {
                indexed: latest(old),
                pending: latest(new),
            };
            let thread = known.indexed.as_ref().or(known.pending.as_ref());
            threads.extend(thread.filter(|_| *is_deep).cloned());
            facts.sessions.insert((*session).to_owned(), known);
        }
        for (id, asked) in &needs.parents {
            let Some(m) = self.by_id(id) else { continue };
            let asks_parts = asked.asks_parts(&m.thread);
            if asked.asks_closing || asks_parts {
                threads.push(m.thread.clone());
            }
            let a = &m.arrival;
            let parts = [&a.sender, &a.receiver].into_iter();
            let parts = parts.chain(&a.targets).chain(&m.recipients);
            let is_asked = |d: &&DeliveryFacts| asked.reporters.contains(&d.party);
            let parent = ParentFacts {
                seq: m.seq,
                thread: m.thread.clone(),
                meaning: a.meaning,
                parts: match asks_parts && !m.is_gone {
                    true => parts.cloned().collect(),
                    false => Vec::new(),
                },
                deliveries: m.deliveries.iter().filter(is_asked).cloned().collect(),
                logged: m.logged(),
                poll: m.poll().filter(|_| asked.asks_poll),
            };
            facts.parents.insert((*id).to_owned(), parent);
        }
        for thread in threads {
            let thread = ConversationId::Thread(thread);
            let at = self.closings.get(&thread);
            facts.closings.extend(at.map(|at| (thread.clone(), *at)));
            facts.parties.insert(thread.clone(), self.parties(&thread));
        }
        for thread in &needs.polls {
            let polls = self.messages.iter().filter(|m| m.thread == *thread);
            let polls = polls.filter_map(Row::poll).collect();
            facts.polls.insert((*thread).to_owned(), polls);
        }
        for name in &needs.consents {
            let Some(grant) = self.grants.get(*name) else {
                continue;
            };
            for id in grant.originals.iter().chain([&grant.id]) {
                let known = self.grants.get(id);
                facts.grants.extend(known.map(|g| (id.clone(), g.clone())));
            }
        }
        for (peer, digest) in &needs.uploads {
            let upload = ((*peer).to_owned(), *digest);
            facts.uploads.extend(self.uploads.get(&upload).cloned());
        }
        facts
    }

    fn held_facts(&self, held: &HeldRow) -> HeldFacts {
        let spare = &held.arrival.generated.message;
        HeldFacts {
            seq: held.seq,
            id: held.id.clone(),
            generated: ReceivedIds {
                thread: held.generated_thread.clone(),
                message: spare.clone(),
            },
            digest: held.arrival.digest,
            verdict: held.arrival.verdict,
            sender: held.arrival.sender.clone(),
            since: held.arrival.at,
            entry: LogPlace::first(held.entry),
            is_spare_taken: self.held.iter().any(|h| h.id == *spare),
        }
    }

    fn row(&mut self, seq: u64) -> &mut Row {
        self.messages.iter_mut().find(|m| m.seq == seq).unwrap()
    }

    fn apply(&mut self, changes: &AcceptChanges<'_>) -> AcceptNumbers {
        let first = u64::try_from(self.log.len()).unwrap();
        let entries: Vec<u64> = (first..).take(changes.events.len()).collect();
        if let Some(displaced) = &changes.displaced {
            let row = self.row(displaced.seq);
            (row.id, row.is_carried) = (displaced.id.clone(), false);
        }
        if let Some(displaced) = &changes.displaced_held {
            let held = self.held.iter_mut().find(|h| h.seq == displaced.seq);
            let held = held.unwrap();
            (held.id, held.is_carried) = (displaced.id.clone(), false);
        }
        let mut seqs = Vec::new();
        for m in &changes.messages {
            assert!(self.by_id(m.id).is_none(), "{} is taken", m.id);
            let seq = u64::try_from(self.messages.len()).unwrap() + 1;
            seqs.push(seq);
            if let Some(what) = &m.closes {
                self.closings.entry(what.clone()).or_insert(m.arrival().at);
            }
            if let Some((what, to)) = &m.hands_over {
                self.stewards.insert(what.clone(), (*to).to_owned());
            }
            self.messages.push(Row {
                seq,
                id: m.id.to_owned(),
                is_carried: m.is_carried,
                arrival: m.arrival().clone(),
                recipients: m
                    .admission
                    .recipients
                    .iter()
                    .map(|r| r.address.clone())
                    .collect(),
                generated_thread: m.generated_thread.clone(),
                thread: m.thread().to_owned(),
                session: m.session().map(str::to_owned),
                verdict: m.arrival().verdict,
                raw: m.admission.raw,
                entry: Some(entries[m.entry]),
                is_gone: false,
                deliveries: m.deliveries.iter().map(queued).collect(),
                reasons: BTreeMap::new(),
                blobs: m.blobs.clone(),
                under: m.under.clone(),
                touched: m.is_poll().then_some(seq),
                closed: None,
            });
        }
        for held in &changes.held {
            assert!(
                self.held.iter().all(|h| h.id != held.id),
                "{} is taken",
                held.id
            );
            let a = held.admission;
            self.held.push(HeldRow {
                seq: u64::try_from(self.held.len()).unwrap() + 1,
                id: held.id.to_owned(),
                is_carried: held.is_carried,
                arrival: a.arrival.as_ref().clone(),
                raw: a.raw,
                generated_thread: held.generated_thread.clone(),
                recipients: a.recipients.iter().map(|r| r.address.clone()).collect(),
                entry: entries[held.entry],
                under: held.under.clone(),
                is_decided: false,
            });
        }
        for improved in &changes.improved {
            let row = self.row(improved.message.number(&seqs));
            row.verdict = improved.arrival.verdict;
            row.raw = Digest::of(improved.arrival.text.as_bytes());
        }
        for (seq, entry) in &changes.logged {
            self.row(*seq).entry = Some(entries[*entry]);
        }
        for reported in &changes.reported {
            let row = self.row(reported.message.number(&seqs));
            let all = &mut row.deliveries;
            let one = all.iter_mut().find(|d| d.party == reported.party).unwrap();
            one.state = reported.state;
            row.reasons
                .insert(reported.party.clone(), reported.reason.clone());
        }
        for (poll, message) in &changes.counted {
            self.row(poll.number(&seqs)).touched = Some(seqs[*message]);
        }
        for grant in &changes.grants {
            self.grants.insert(grant.id.clone(), grant.clone());
        }
        for planned in &changes.events {
            let takes = planned.takes.map(|place| place.number(&seqs));
            self.log.push(Logged::of(&planned.event, takes));
        }
        let entries = entries.into_iter().map(LogPlace::first).collect();
        AcceptNumbers { seqs, entries }
    }

    fn revoke(&mut self, order: &RevocationOrder, revoke: u64) -> RevocationResult {
        let mut facts = RevocationFacts::default();
        let mut left = order.consents.clone();
        while let Some(id) = left.pop() {
            let derived = self.grants.values().filter(|g| g.originals.contains(&id));
            let derived: Vec<String> = derived.map(|g| g.id.clone()).collect();
            if let Some(grant) = self.grants.get(&id) {
                facts.on_record.insert(id.clone(), grant.revoked.is_some());
            }
            if facts.derived.insert(id, derived.clone()).is_none() {
                left.extend(derived);
            }
        }
        let is_under = |under: &[String]| under.iter().any(|id| facts.derived.contains_key(id));
        let messages = self
            .messages
            .iter()
            .filter(|m| !m.is_gone && is_under(&m.under));
        let messages = messages.map(|m| CoveredMessage {
            seq: m.seq,
            id: m.id.clone(),
            digest: m.arrival.digest,
            sender: m.arrival.sender.clone(),
            thread: m.thread.clone(),
            deliveries: m.deliveries.clone(),
            logged: m.logged(),
        });
        facts.messages = messages.collect();
        let held = self
            .held
            .iter()
            .filter(|h| !h.is_decided && is_under(&h.under));
        let held = held.map(|h| CoveredHeld {
            seq: h.seq,
            id: h.id.clone(),
            digest: h.arrival.digest,
            raw: h.raw,
            sender: h.arrival.sender.clone(),
            thread: h.generated_thread.clone(),
            recipients: h.recipients.clone(),
        });
        facts.held = held.collect();
        let plan = plan_cascade(order, &order.revocation.message, &facts, Some(revoke));
        for id in &plan.ended {
            let grant = self.grants.get_mut(id).unwrap();
            grant.revoked = Some(plan.revocation.clone());
        }
        let unseen = plan.unseen.iter().map(|g| (g.id.clone(), g.clone()));
        self.grants.extend(unseen);
        for (seq, party) in &plan.cancelled {
            let mut all = self.row(*seq).deliveries.iter_mut();
            all.find(|d| d.party == *party).unwrap().state = DeliveryState::Failed;
        }
        for told in &plan.told {
            let all = &mut self.row(revoke).deliveries;
            let new = queued(told);
            if all.iter().all(|d| d.party != new.party) {
                all.push(new);
            }
        }
        for seq in &plan.erased {
            let row = self.row(*seq);
            (row.is_gone, row.session, row.touched) = (true, None, None);
        }
        for seq in &plan.lapsed {
            let held = self.held.iter_mut().find(|h| h.seq == *seq);
            held.unwrap().is_decided = true;
        }
        self.log
            .extend(plan.events.iter().map(|e| Logged::of(e, None)));
        plan.result
    }

    fn accept(&mut self, batch: &[Admission]) -> Vec<AcceptOutcome> {
        let mut outcomes = Vec::new();
        while outcomes.len() < batch.len() {
            let rest = &batch[outcomes.len()..];
            let facts = self.load(&AcceptNeeds::of(rest));
            let plan = plan_accept(rest, &facts);
            assert!(!plan.outcomes.is_empty());
            let numbers = self.apply(&plan.changes);
            let mut withdrawn = plan.revocation.as_ref().map(|order| {
                let revoke = *numbers.seqs.last().unwrap();
                self.revoke(order, revoke)
            });
            let last = plan.outcomes.len();
            for (n, outcome) in (1..).zip(plan.outcomes) {
                let withdrawn = withdrawn.take_if(|_| n == last);
                outcomes.push(outcome.number(&numbers, withdrawn));
            }
        }
        outcomes
    }
}

fn queued((address, by): &(&str, Handler)) -> DeliveryFacts {
    DeliveryFacts {
        party: party(address),
        address: (*address).to_owned(),
        by: *by,
        state: DeliveryState::Queued,
    }
}

const NAMES: [&str; 4] = ["ANN", "BOB", "CY", "DEE"];

/// A message in the making.
#[derive(Clone, Debug)]
struct Spec {
    id: Option<&'static str>,
    parent: Option<&'static str>,
    thread: Option<&'static str>,
    session: Option<&'static str>,
    between: (&'static str, &'static str),
    intent: &'static str,
    body: &'static str,
    verdict: VerdictWord,
    is_held: bool,
    consent: Consent,
    has_blob: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Consent {
    None,
    Grants(&'static str),
    PassesOn(&'static str, &'static str),
    Revokes(&'static str),
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            id: None,
            parent: None,
            thread: None,
            session: None,
            between: ("ANN", "BOB"),
            intent: "REQUEST",
            body: "one",
            verdict: VerdictWord::Unsigned,
            is_held: false,
            consent: Consent::None,
            has_blob: false,
        }
    }
}

fn blob() -> Digest {
    Digest::of(b"attachment")
}

impl Spec {
    fn admission(&self, number: usize) -> Admission {
        let headers = [
            ("session", self.session),
            ("thread", self.thread),
            ("parent", self.parent),
            ("message", self.id),
        ];
        let headers = headers.iter().filter_map(|(name, value)| {
            let value = (*value)?;
            Some(format!("{name}: {value}\n"))
        });
        let (from, to) = self.between;
        let is_revoke = matches!(self.consent, Consent::Revokes(_));
        let intent = match is_revoke {
            true => "REVOKE",
            false => self.intent,
        };
        let text = format!(
            "[[{from}→{to} v1]]\nuser: u\n{}context: c\nintent: {intent}\nbody: |\n  {}\nsig: none\n[[END]]\n",
            headers.collect::<String>(),
            self.body
        );
        let arrival = Arrival::recall(StoredMessage {
            text,
            received: None,
            truncated: false,
            verdict: self.verdict,
            pkid: None,
            side: Side::Between,
            way: Way::Relayed,
            at: Timestamp::from_millis(1000 * i64::try_from(number).unwrap()),
            message: self.id.map(str::to_owned),
            answers: None,
            generated: ReceivedIds {
                thread: format!("GT{number}"),
                message: format!("GM{number}"),
            },
        });
        let recipients = vec![Recipient {
            address: to.to_owned(),
            by: Handler::Inbox,
        }];
        let names = |name: &str| vec![name.to_owned()];
        let grants = |ids, originals| Claim {
            kind: Some(ConsentKind::ExplicitYes),
            ids,
            originals,
            ..Claim::default()
        };
        let claim = match self.consent {
            Consent::None => None,
            Consent::Grants(id) => Some(grants(names(id), Vec::new())),
            Consent::PassesOn(id, original) => Some(grants(names(id), names(original))),
            Consent::Revokes(id) => Some(Claim {
                is_revoke: true,
                revokes: names(id),
                ..Claim::default()
            }),
        };
        Admission {
            claim: claim.map(Box::new),
            proof: Proof {
                assurance: Assurance::Pinned,
                is_firm: true,
                is_same_key: false,
            },
            is_authority: true,
            held: self.is_held.then(HoldReason::default),
            blobs: self.has_blob.then(blob).into_iter().collect(),
            ..Admission::recall(arrival, "ci".to_owned(), recipients)
        }
    }
}

fn admissions(specs: &[Spec]) -> Vec<Admission> {
    (1..)
        .zip(specs)
        .map(|(n, spec)| spec.admission(n))
        .collect()
}

fn spec() -> impl Strategy<Value = Spec> {
    let id = prop::sample::select(vec!["I0", "I1", "I2", "I3", "GM1", "GM2", "GM3"]);
    let thread = prop::sample::select(vec!["T0", "T1", "GT1", "GT2"]);
    let intents = vec![
        "REQUEST",
        "RESPOND",
        "ACK",
        "NACK",
        "NOTE",
        "CLOSE",
        "CLOSE",
        "HANDOFF",
        "POLL",
        "BROADCAST",
        "ERROR",
    ];
    let consent = prop_oneof![
        8 => Just(Consent::None),
        2 => prop::sample::select(vec!["C0", "C1"]).prop_map(Consent::Grants),
        1 => Just(Consent::PassesOn("C1", "C0")),
        1 => Just(Consent::PassesOn("C2", "C1")),
        1 => prop::sample::select(vec!["C0", "C1", "C2"]).prop_map(Consent::Revokes),
    ];
    let verdict = prop_oneof![
        4 => Just(VerdictWord::Unsigned),
        3 => Just(VerdictWord::Verified),
        1 => Just(VerdictWord::Damaged),
    ];
    let names = || prop::sample::select(NAMES.to_vec());
    (
        prop::option::weighted(0.8, id.clone()),
        prop::option::weighted(0.5, id),
        prop::option::weighted(0.5, thread),
        prop::option::weighted(0.4, prop::sample::select(vec!["S0", "S1"])),
        (names(), names()),
        prop::sample::select(intents),
        prop::sample::select(vec!["one", "two"]),
        verdict,
        prop::bool::weighted(0.1),
        consent,
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(
                id,
                parent,
                thread,
                session,
                between,
                intent,
                body,
                verdict,
                is_held,
                consent,
                has_blob,
            )| Spec {
                id,
                parent,
                thread,
                session,
                between,
                intent,
                body,
                verdict,
                is_held,
                consent,
                has_blob,
            },
        )
}

/// A store in which other messages came first, some of them indexed.
fn before(specs: &[Spec], indexed: usize) -> Kept {
    let mut kept = Kept::default();
    kept.uploads.insert(("ci".to_owned(), blob()));
    for (number, spec) in (1000..).zip(specs) {
        kept.accept(&[spec.admission(number)]);
    }
    kept.indexed = indexed.min(kept.messages.len());
    // What the person of the store accepted is not in the log.
    if let Some(row) = kept.messages.first_mut() {
        row.entry = None;
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn a_batch_gives_the_same_as_its_messages_one_by_one(
        first in prop::collection::vec(spec(), 0..8),
        indexed in 0_usize..8,
        batch in prop::collection::vec(spec(), 1..12),
    ) {
        let batch = admissions(&batch);
        let mut together = before(&first, indexed);
        let mut alone = together.clone();
        let outcomes = together.accept(&batch);
        let one_by_one: Vec<AcceptOutcome> =
            batch.iter().flat_map(|a| alone.accept(std::slice::from_ref(a))).collect();
        prop_assert_eq!(outcomes, one_by_one);
        prop_assert_eq!(together, alone);
    }
}

/// The words for what became of messages.
fn words(outcomes: &[AcceptOutcome]) -> Vec<String> {
    let word = |outcome: &AcceptOutcome| match outcome {
        AcceptOutcome::Accepted { .. } => "accepted".to_owned(),
        AcceptOutcome::Known { .. } => "known".to_owned(),
        AcceptOutcome::Held { is_new, .. } => format!("held {is_new}"),
        AcceptOutcome::Rejected(rejection) => rejection.code.as_str().to_owned(),
    };
    outcomes.iter().map(word).collect()
}

/// Accepts messages at once in an empty store.
fn accepted(specs: &[Spec]) -> (Kept, Vec<String>) {
    let mut kept = Kept::default();
    let outcomes = kept.accept(&admissions(specs));
    (kept, words(&outcomes))
}

fn named(id: &'static str) -> Spec {
    Spec {
        id: Some(id),
        ..Spec::default()
    }
}

#[test]
fn the_same_message_is_known_and_other_content_conflicts() {
    let other = Spec {
        body: "two",
        ..named("I0")
    };
    let (kept, words) = accepted(&[
        named("I0"),
        named("I0"),
        other,
        Spec::default(),
        Spec::default(),
    ]);
    assert_eq!(words, ["accepted", "known", "E-PERM", "accepted", "known"]);
    assert_eq!(kept.messages.len(), 2);
}

#[test]
fn a_verified_message_takes_the_id_of_its_own_sender_only() {
    let verified = |sender| Spec {
        body: "two",
        verdict: VerdictWord::Verified,
        between: (sender, "BOB"),
        ..named("I0")
    };
    let (kept, words) = accepted(&[named("I0"), verified("CY"), verified("ANN"), named("I0")]);
    assert_eq!(words, ["accepted", "E-PERM", "accepted", "E-PERM"]);
    let ids: Vec<&str> = kept.messages.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids, ["GM1", "I0"]);
}

#[test]
fn a_better_copy_is_logged_again() {
    let verified = Spec {
        verdict: VerdictWord::Verified,
        ..named("I0")
    };
    let (kept, words) = accepted(&[named("I0"), verified]);
    assert_eq!(words, ["accepted", "known"]);
    assert_eq!(kept.messages[0].verdict, VerdictWord::Verified);
    let takes: Vec<Option<u64>> = kept.log.iter().map(|l| l.takes).collect();
    assert_eq!(takes, [Some(1), Some(1)]);
}

#[test]
fn a_conversation_that_the_batch_closes_takes_no_more() {
    let in_thread = |intent, between| Spec {
        intent,
        between,
        thread: Some("T0"),
        ..Spec::default()
    };
    let (_, words) = accepted(&[
        in_thread("REQUEST", ("ANN", "BOB")),
        in_thread("CLOSE", ("CY", "ANN")),
        in_thread("CLOSE", ("BOB", "ANN")),
        in_thread("NOTE", ("ANN", "BOB")),
        in_thread("ACK", ("ANN", "BOB")),
    ]);
    assert_eq!(
        words,
        ["accepted", "E-PERM", "accepted", "E-PERM", "accepted"]
    );
}

#[test]
fn an_answer_is_in_the_thread_of_its_question_if_the_sender_has_a_part() {
    let answer = |sender| Spec {
        parent: Some("I0"),
        intent: "RESPOND",
        between: (sender, "ANN"),
        ..Spec::default()
    };
    let (kept, _) = accepted(&[named("I0"), answer("BOB"), answer("DEE")]);
    let threads: Vec<&str> = kept.messages.iter().map(|m| m.thread.as_str()).collect();
    assert_eq!(threads, ["GT1", "GT1", "GT3"]);
}

#[test]
fn messages_of_a_session_share_a_thread() {
    let said = |body| Spec {
        session: Some("S0"),
        body,
        ..Spec::default()
    };
    let (kept, _) = accepted(&[said("one"), said("two")]);
    assert_eq!(kept.messages[1].thread, "GT1");
}

#[test]
fn an_acknowledgement_moves_the_delivery_of_its_sender_on() {
    let report = |intent, sender| Spec {
        parent: Some("I0"),
        intent,
        between: (sender, "ANN"),
        ..Spec::default()
    };
    let (kept, _) = accepted(&[
        named("I0"),
        report("ACK", "CY"),
        report("ACK", "BOB"),
        report("NACK", "BOB"),
    ]);
    assert_eq!(
        kept.messages[0].deliveries[0].state,
        DeliveryState::Acknowledged
    );
    let kinds: Vec<&str> = kept.log.iter().map(|l| l.kind).collect();
    assert_eq!(
        kinds,
        ["accepted", "accepted", "accepted", "delivered", "accepted"]
    );
}

#[test]
fn a_ballot_has_its_poll_counted_until_that_is_closed() {
    let poll = Spec {
        intent: "POLL",
        thread: Some("T0"),
        ..named("I0")
    };
    let by_id = Spec {
        parent: Some("I0"),
        intent: "RESPOND",
        ..Spec::default()
    };
    let by_thread = Spec {
        thread: Some("T0"),
        intent: "NACK",
        ..Spec::default()
    };
    for ballot in [by_id, by_thread] {
        let (mut kept, _) = accepted(&[poll.clone(), ballot.clone()]);
        assert_eq!(kept.messages[0].touched, Some(2));
        let late = Spec {
            body: "two",
            ..ballot
        };
        kept.messages[0].closed = Some(Timestamp::from_millis(0));
        kept.accept(&[late.admission(9)]);
        assert_eq!(
            (kept.messages.len(), kept.messages[0].touched),
            (3, Some(2))
        );
    }
}

#[test]
fn a_consent_of_the_same_batch_is_relied_on_and_revoked() {
    let message = |id, consent| Spec {
        consent,
        ..named(id)
    };
    let (kept, words) = accepted(&[
        message("I0", Consent::Grants("C0")),
        message("I1", Consent::PassesOn("C1", "C0")),
        message("I2", Consent::Revokes("C0")),
        message("I3", Consent::Grants("C1")),
    ]);
    assert_eq!(words, ["accepted", "accepted", "accepted", "E-CONSENT"]);
    let gone: Vec<bool> = kept.messages.iter().map(|m| m.is_gone).collect();
    assert_eq!(gone, [true, true, false]);
    assert!(kept.grants.values().all(|grant| grant.revoked.is_some()));
    let kinds: Vec<&str> = kept.log.iter().map(|l| l.kind).collect();
    assert_eq!(
        kinds,
        [
            "accepted",
            "granted",
            "accepted",
            "transferred",
            "accepted",
            "revoked",
            "revoked",
            "failed",
            "erased",
            "failed",
            "erased"
        ]
    );
}

#[test]
fn a_held_message_waits_and_stays_known() {
    let held = Spec {
        is_held: true,
        consent: Consent::Grants("C0"),
        ..named("I0")
    };
    let other = Spec {
        body: "two",
        ..named("I0")
    };
    let revoke = Spec {
        consent: Consent::Revokes("C0"),
        ..named("I1")
    };
    let (kept, words) = accepted(&[held.clone(), held.clone(), other, revoke]);
    assert_eq!(words, ["held true", "held false", "E-PERM", "accepted"]);
    assert!(kept.held[0].is_decided && kept.messages.len() == 1);

    let approved = held.admission(1);
    let approved = Admission {
        held: None,
        claim: None,
        ..approved
    };
    let facts = kept.load(&AcceptNeeds::of_approved(&approved));
    let plan = plan_accept(std::slice::from_ref(&approved), &facts);
    assert_eq!(plan.changes.messages.len(), 1);
}

#[test]
fn an_attachment_is_readable_to_whoever_uploaded_it() {
    let with_blob = Spec {
        has_blob: true,
        ..Spec::default()
    };
    let (mut kept, _) = accepted(std::slice::from_ref(&with_blob));
    assert_eq!(kept.messages[0].blobs, [(blob(), false)]);
    kept.uploads.insert(("ci".to_owned(), blob()));
    kept.accept(&[Spec {
        body: "two",
        ..with_blob
    }
    .admission(2)]);
    assert_eq!(kept.messages[1].blobs, [(blob(), true)]);
}
