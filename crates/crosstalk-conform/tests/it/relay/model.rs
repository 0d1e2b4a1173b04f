//! A relay in memory: the rules of `crosstalk-protocol` over a few lists. What it does wrong can be chosen.

mod record;

use super::defect::Defect;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::{self, ReceivedIds, Rejection};
use crosstalk_envelope::{Builder, Document, Reading, Timestamp, decode};
use crosstalk_protocol::Trust;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::poll::is_secret;
use crosstalk_protocol::relay::{
    Admission, AdmissionCandidate, Agent, DeliveryState, Directory, HOPS, Handler, Peer, Receipted,
    RelayRules, Surroundings, acknowledgement, add_hop, admit,
};
use crosstalk_protocol::store::{is_placeholder, is_same_party, may_answer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

pub(super) const NAME: &str = "relay.test";

pub(super) fn now() -> Timestamp {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    Timestamp::from_millis(i64::try_from(now).unwrap())
}

/// A message that was taken.
pub(super) struct Message {
    pub(super) admission: Admission,
    pub(super) at: Timestamp,
    pub(super) ack: String,
    is_answered: bool,
    is_erased: bool,
}

impl Message {
    pub(super) fn id(&self) -> &str {
        self.admission.arrival.id()
    }

    pub(super) fn thread(&self) -> &str {
        let arrival = &self.admission.arrival;
        arrival
            .thread
            .as_deref()
            .unwrap_or(&arrival.generated.thread)
    }

    pub(super) fn parent(&self) -> Option<&str> {
        self.admission.arrival.parent.as_deref()
    }
}

/// A message on its way to somebody.
pub(super) struct Delivery {
    pub(super) message: usize,
    pub(super) to: String,
    pub(super) by: Handler,
    pub(super) state: DeliveryState,
    pub(super) times: BTreeMap<&'static str, Timestamp>,
    pub(super) reason: Option<String>,
    is_gone: bool,
}

impl Delivery {
    fn go(&mut self, state: DeliveryState, at: Timestamp, defect: Defect) {
        if state.follows(self.state) || defect == Defect::StatesGoBack {
            self.state = state;
            self.times.entry(state.as_str()).or_insert(at);
        }
    }
}

/// The result of handing a text in.
pub(super) struct Outcome {
    pub(super) status: u16,
    pub(super) text: String,
    pub(super) refusal: Option<Rejection>,
    /// The message, if it waits for an answer.
    pub(super) asks: Option<String>,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) defect: Defect,
    pub(super) messages: Vec<Message>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) rules: RelayRules,
    /// Attachments, and which credentials uploaded them.
    pub(super) blobs: BTreeMap<String, (Vec<u8>, BTreeSet<String>)>,
    pub(super) grants: BTreeMap<String, Grant>,
    /// Which messages are kept under which consent.
    pub(super) under: Vec<(String, String)>,
    pub(super) trust: Trust,
    /// When polls were closed.
    pub(super) closed: BTreeMap<String, Timestamp>,
}

impl Model {
    pub(super) fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.messages.iter().position(|m| m.id() == id)
    }

    fn refuse(
        &self,
        document: Option<&Document<'_>>,
        is_read: bool,
        refusal: Rejection,
    ) -> Outcome {
        let text = match document {
            Some(document) if is_read => {
                let envelope = document.envelope();
                reply::error(&envelope, &ReceivedIds::of(&envelope), &refusal)
            }
            other => reply::error_from_system(other, &refusal),
        };
        let text = text.build().unwrap();
        let text = match self.defect {
            Defect::NeverSystem => text.replacen("[[SYSTEM→", "[[RELAY→", 1),
            Defect::LooseErrors => text.replacen("\nuser: system", "\nUser: system", 1),
            Defect::NoPlace => text
                .lines()
                .filter(|l| !l.starts_with("Rule: "))
                .fold(String::new(), |t, l| t + l + "\n"),
            _ => text,
        };
        Outcome {
            status: refusal.code.http_status(),
            text,
            refusal: Some(refusal),
            asks: None,
        }
    }

    /// One envelope.
    pub(super) fn receive(&mut self, bytes: &[u8], peer: &Peer) -> Outcome {
        if self.has(Defect::AcksEverything) {
            let text = "[[B→A v1]]\nuser: relay\nthread: t\nparent: p\nmessage: m\ncontext: c\nintent: ACK\n\nmeta: receipt\n\
                Digest: sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\nIndex: 1\n\
                Received-At: 2025-10-09T16:00Z\nReceived-By: r\nbody: |\nsig: none\n[[END]]\n";
            return Outcome {
                status: 200,
                text: text.into(),
                refusal: None,
                asks: None,
            };
        }
        let text = match decode(bytes) {
            Ok(text) => text,
            Err(fault) => {
                let shown = String::from_utf8_lossy(bytes);
                return self.refuse(
                    None,
                    false,
                    Rejection::from_findings(&[fault], &shown).unwrap(),
                );
            }
        };
        let reading = if self.has(Defect::ReadsPastes) {
            Reading::Paste
        } else {
            Reading::Strict
        };
        let mut document = Document::parse(text, reading);
        document.check();
        if let Some(refusal) = Rejection::from_findings(document.diagnostics(), text) {
            return self.refuse(Some(&document), false, refusal);
        }
        let at = now();
        let verdict = self.judge(&document, at);
        let everybody = Peer::local();
        let candidate = AdmissionCandidate {
            document: &document,
            verdict: &verdict,
            proof: Self::proof(&document),
            peer: if self.has(Defect::AnybodySpeaks) && !peer.is_itself() {
                &everybody
            } else {
                peer
            },
            was_asked: false,
            at,
        };
        let admission = match self.admit(candidate, text) {
            Ok(admission) => admission,
            Err(refusal) => return self.refuse(Some(&document), true, refusal),
        };
        match self.take(admission, at) {
            Ok(text) => {
                let is_open = !is_secret(&document) || self.has(Defect::ShowsBallots);
                let asks = match document.envelope().meaning() {
                    Some(Intent::Request) => true,
                    Some(Intent::Poll) => is_open,
                    _ => false,
                };
                let is_named = document.envelope().message.is_some();
                let asks = asks && (is_named || !self.has(Defect::WaitsForNamed));
                let ack = Document::parse(&text, Reading::Strict);
                let asks = asks.then(|| ack.envelope().parent.unwrap_or_default().to_owned());
                Outcome {
                    status: 200,
                    text,
                    refusal: None,
                    asks,
                }
            }
            Err(refusal) => self.refuse(Some(&document), true, refusal),
        }
    }

    /// The rules, with what the defect leaves out taken out of the text first.
    fn admit(&self, candidate: AdmissionCandidate<'_>, text: &str) -> Result<Admission, Rejection> {
        let without = match self.defect {
            Defect::IgnoresConsent => "Consent: ",
            Defect::IgnoresDeadlines => "X-Deadline: ",
            Defect::ReplacesWays => "X-Delivery: ",
            Defect::LoopsForever if candidate.document.envelope().hops().count() >= HOPS => {
                "meta: audit"
            }
            Defect::IgnoresCapabilities => "X-Capabilities-Required: ",
            _ => return admit(candidate, &self.rules),
        };
        let text: String = text
            .lines()
            .filter(|l| {
                let is_hop = self.has(Defect::LoopsForever) && l.starts_with("Hop: ");
                !l.starts_with(without) && !is_hop
            })
            .fold(String::new(), |all, line| all + line + "\n");
        let mut document = Document::parse(&text, Reading::Strict);
        document.check();
        let mut admission = admit(
            AdmissionCandidate {
                document: &document,
                ..candidate.clone()
            },
            &self.rules,
        )?;
        let arrival = Arc::make_mut(&mut admission.arrival);
        arrival.digest = candidate.document.digest().unwrap();
        arrival.text = candidate.document.source().to_owned();
        Ok(admission)
    }

    fn take(&mut self, mut admission: Admission, at: Timestamp) -> Result<String, Rejection> {
        admission.is_authority |= self.has(Defect::AnybodyRevokes);
        let arrival = Arc::make_mut(&mut admission.arrival);
        if self.has(Defect::DropsPlaceholders) {
            arrival.message.take_if(|id| is_placeholder(id));
            arrival.thread.take_if(|id| is_placeholder(id));
        }
        let is_known = |m: &Message| m.admission.arrival.session == arrival.session;
        if self.has(Defect::ThreadsBySession)
            && arrival.session.is_some()
            && let Some(first) = self.messages.iter().find(|m| is_known(m))
        {
            arrival.thread = Some(first.thread().to_owned());
        }
        let same = |m: &Message| m.admission.arrival.digest == arrival.digest;
        let known = match &arrival.message {
            Some(id) => self.find(id),
            None if self.has(Defect::ForgetsNameless) => None,
            None => self.messages.iter().position(same),
        };
        if let Some(known) = known.map(|n| &self.messages[n]) {
            let is_same = known.admission.arrival.digest == admission.arrival.digest;
            if is_same && self.has(Defect::FreshAcks) {
                let line = known
                    .ack
                    .lines()
                    .find(|l| l.starts_with("message: "))
                    .unwrap();
                let fresh = format!("message: {}", crosstalk_envelope::id::new_ulid());
                return Ok(known.ack.replace(line, &fresh));
            }
            if is_same && !self.has(Defect::ForgetsReplays) {
                return Ok(known.ack.clone());
            }
            if !is_same && self.has(Defect::AcksConflicts) {
                return Ok(known.ack.clone());
            }
            if !is_same {
                let detail = "This id is taken.\nWhat to do: use another one.";
                return Err(Rejection::new(ErrorCode::Perm, detail, ""));
            }
        }
        let terms = admission.rule(&self.facts(&admission))?;
        let seq = match self.defect {
            Defect::SamePlace => 7,
            _ => u64::try_from(self.messages.len()).unwrap() + 1,
        };
        let receipt = Receipted {
            arrival: &admission.arrival,
            ids: &admission.arrival.ids(),
            entry: LogPlace::first(seq),
            at,
            by: NAME,
            is_held: false,
        };
        let mut ack = acknowledgement(&receipt);
        if self.has(Defect::AcksWithoutThread) && admission.arrival.thread.is_none() {
            let lines = ack.lines().filter(|l| !l.starts_with("thread: "));
            ack = lines.fold(String::new(), |t, l| t + l + "\n");
        }
        if !self.has(Defect::LosesMessages) {
            let id = admission.arrival.id().to_owned();
            self.file(admission, at, ack.clone());
            self.record(&id, terms);
        }
        Ok(ack)
    }

    fn facts(&self, admission: &Admission) -> Surroundings {
        let arrival = &admission.arrival;
        let belongs = |m: &&Message| match (&arrival.thread, &arrival.session) {
            (Some(thread), _) => m.admission.arrival.thread.as_ref() == Some(thread),
            (None, Some(session)) => m.admission.arrival.session.as_ref() == Some(session),
            _ => false,
        };
        let all: Vec<&Message> = self.messages.iter().filter(belongs).collect();
        let means = |m: &&&Message, intent| m.admission.arrival.meaning == Some(intent);
        let closed = all
            .iter()
            .find(|m| m.admission.closing().is_some() && means(m, Intent::Close));
        let is_in = |m: &&Message| {
            let a = &m.admission.arrival;
            is_same_party(&a.sender, &arrival.sender) || is_same_party(&a.receiver, &arrival.sender)
        };
        let answered = arrival.parent.as_deref().and_then(|p| self.find(p));
        let answered = answered.and_then(|n| self.messages[n].admission.arrival.meaning);
        let handed = all.iter().rev().find(|m| means(m, Intent::Handoff));
        Surroundings {
            closed: closed
                .map(|m| m.at)
                .filter(|_| !self.has(Defect::IgnoresClose)),
            is_party: all.is_empty() || all.iter().any(is_in) || self.has(Defect::AnybodyCloses),
            answered: answered.filter(|_| !self.has(Defect::AnswersBroadcasts)),
            steward: handed.map(|m| m.admission.recipients[0].address.clone()),
            grants: self.named(admission),
        }
    }

    fn file(&mut self, admission: Admission, at: Timestamp, ack: String) {
        let arrival = &admission.arrival;
        let parent = arrival.parent.as_deref().and_then(|p| self.find(p));
        if let Some(parent) = parent {
            let state = match arrival.meaning {
                Some(Intent::Ack) => Some(DeliveryState::Acknowledged),
                Some(Intent::Nack) => Some(DeliveryState::Failed),
                _ => None,
            };
            let (sender, defect) = (arrival.sender.clone(), self.defect);
            let own = self
                .deliveries
                .iter_mut()
                .filter(|d| d.message == parent && may_answer(&d.to, &sender));
            if let Some(state) = state.filter(|_| defect != Defect::IgnoresAcks) {
                own.for_each(|d| d.go(state, at, defect));
            }
            self.messages[parent].is_answered |= arrival.meaning == Some(Intent::Respond);
        }
        let number = self.messages.len();
        let mut recipients = admission.recipients.clone();
        if self.has(Defect::OnlyFirstTarget) {
            recipients.truncate(1);
        }
        for recipient in recipients {
            self.deliveries.push(Delivery {
                message: number,
                to: recipient.address,
                by: recipient.by,
                state: DeliveryState::Queued,
                times: BTreeMap::from([("queued", at)]),
                reason: None,
                is_gone: false,
            });
        }
        self.messages.push(Message {
            admission,
            at,
            ack,
            is_answered: false,
            is_erased: false,
        });
    }

    /// Puts an ERROR into the inbox of the sender of a message.
    fn report(&mut self, number: usize, code: ErrorCode, detail: &str) {
        let message = &self.messages[number];
        let text = message.admission.arrival.text.clone();
        let ids = ReceivedIds {
            thread: message.thread().into(),
            message: message.id().into(),
        };
        let document = Document::parse(&text, Reading::Strict);
        let refusal = Rejection::new(code, detail, "");
        let error = reply::error(&document.envelope(), &ids, &refusal)
            .build()
            .unwrap();
        self.receive(error.as_bytes(), &Peer::local());
    }

    /// Tells senders whose time is over.
    pub(super) fn tick(&mut self) {
        if self.has(Defect::NeverTimesOut) {
            return;
        }
        let over =
            |m: &Message| !m.is_answered && m.admission.answer_by.is_some_and(|end| end <= now());
        let late: Vec<usize> = (0..self.messages.len())
            .filter(|n| over(&self.messages[*n]))
            .collect();
        for number in late {
            self.messages[number].is_answered = true;
            self.report(number, ErrorCode::Timeout, "It did not work out.");
        }
    }

    /// The text of a message as it is handed out.
    pub(super) fn handed_out(&self, number: usize) -> String {
        let message = &self.messages[number];
        let text = message.admission.arrival.text.clone();
        let by = if self.has(Defect::NamelessHop) {
            "somebody"
        } else {
            NAME
        };
        let hop = match self.defect {
            Defect::NoHop => return text,
            Defect::Rewrites => Document::parse(&text, Reading::Strict).to_well_formed(),
            _ => text.clone(),
        };
        let out = add_hop(&hop, message.at, by, None).unwrap_or(text.clone());
        let out = match self.defect {
            Defect::ChangesBodies => out.replacen("\nbody: |\n  ", "\nbody: |\n  > ", 1),
            Defect::WrongHopDigest => out
                .replacen("Hop-Digest: sha256:", "Hop-Digest: sha256:0", 1)
                .replacen("0\n\nbody", "\n\nbody", 1),
            _ => out,
        };
        match Document::parse(&out, Reading::Strict).is_accepted() {
            true => out,
            false => text,
        }
    }

    pub(super) fn entry(&self, number: usize) -> Value {
        let message = &self.messages[number];
        let arrival = &message.admission.arrival;
        let intent = match self.defect {
            Defect::IntentAsWritten => arrival.intent.clone(),
            _ => arrival.meaning.map(|m| m.as_str().to_owned()),
        };
        json!({"id": message.id(), "thread": message.thread(), "from": arrival.sender, "to": arrival.receiver,
            "intent": intent, "received_at": message.at.to_string(), "envelope": self.handed_out(number)})
    }

    /// The messages that an address has not acknowledged, with the position of each.
    pub(super) fn inbox(
        &mut self,
        address: &str,
        after: usize,
        limit: usize,
    ) -> Vec<(usize, Value)> {
        self.tick();
        let (defect, at) = (self.defect, now());
        let listed = |d: &Delivery| {
            let is_open = !matches!(d.state, DeliveryState::Acknowledged | DeliveryState::Failed)
                || defect == Defect::ListsAcknowledged;
            is_same_party(&d.to, address) && is_open && !d.is_gone && d.by == Handler::Inbox
        };
        let mut found = Vec::new();
        for place in after..self.deliveries.len() {
            if found.len() == limit {
                break;
            }
            if !listed(&self.deliveries[place]) {
                continue;
            }
            let mut entry = self.entry(self.deliveries[place].message);
            let delivery = &mut self.deliveries[place];
            entry["to"] = json!(delivery.to);
            delivery.go(DeliveryState::Delivered, at, Defect::None);
            entry["state"] = json!(delivery.state.as_str());
            delivery.is_gone = defect == Defect::ConsumesOnReading;
            let number = delivery.message;
            if matches!(
                self.messages[number].admission.arrival.meaning,
                Some(Intent::Escalate | Intent::Handoff)
            ) {
                entry["history"] = self.history(number);
            }
            found.push((place + 1, entry));
        }
        if defect == Defect::NewestFirst {
            found.reverse();
        }
        found
    }

    fn history(&self, number: usize) -> Value {
        let thread = self.messages[number].thread();
        let before = (0..number)
            .filter(|n| self.messages[*n].thread() == thread && !self.has(Defect::NoHistory));
        before.map(|n| self.handed_out(n)).collect()
    }

    pub(super) fn mark(&mut self, address: &str, ids: &[String], state: DeliveryState) -> Value {
        let (mut changed, mut unknown) = (Vec::new(), Vec::new());
        for id in ids {
            let number = self.find(id);
            let is_own =
                |d: &&mut Delivery| Some(d.message) == number && is_same_party(&d.to, address);
            match self.deliveries.iter_mut().find(is_own) {
                Some(delivery) => {
                    delivery.go(state, now(), self.defect);
                    changed.push(id);
                }
                None => unknown.push(id),
            }
        }
        json!({"changed": changed, "unknown": unknown})
    }

    pub(super) fn status(&self, number: usize) -> Value {
        let message = &self.messages[number];
        let own = self.deliveries.iter().filter(|d| d.message == number);
        let list: Vec<Value> = own
            .map(|d| {
                let time = |s: DeliveryState| d.times.get(s.as_str()).map(ToString::to_string);
                json!({"to": d.to, "by": d.by.as_str(), "state": d.state.as_str(), "attempts": 0,
                    "queued_at": time(DeliveryState::Queued), "delivered_at": time(DeliveryState::Delivered), "read_at": time(DeliveryState::Read),
                    "acknowledged_at": time(DeliveryState::Acknowledged), "failed_at": time(DeliveryState::Failed),
                    "reason": d.reason, "next_at": null})
            })
            .collect();
        json!({"id": message.id(), "thread": message.thread(), "sender": message.admission.arrival.sender, "deliveries": list})
    }

    pub(super) fn carry(
        &mut self,
        number: usize,
        to: &str,
        is_carried: bool,
        reason: Option<String>,
    ) {
        let own = self
            .deliveries
            .iter_mut()
            .find(|d| d.message == number && d.to == to)
            .unwrap();
        own.go(
            if is_carried {
                DeliveryState::Delivered
            } else {
                DeliveryState::Failed
            },
            now(),
            Defect::None,
        );
        own.reason.clone_from(&reason);
        if !is_carried && !self.has(Defect::SilentFailures) {
            let told = reason.filter(|_| self.has(Defect::CourierSpeaks));
            let told = told.as_deref().unwrap_or("It did not work out.");
            self.report(number, ErrorCode::Route, told);
        }
    }

    pub(super) fn requeue(&mut self, number: usize) -> usize {
        let failed = self
            .deliveries
            .iter_mut()
            .filter(|d| d.message == number && d.state == DeliveryState::Failed);
        failed.map(|d| d.state = DeliveryState::Queued).count()
    }

    pub(super) fn tree(&self, thread: &str, parent: Option<&str>) -> Vec<Value> {
        let is_below = |m: &Message| {
            let known = m.parent().filter(|p| self.find(p).is_some());
            m.thread() == thread && known == parent
        };
        let below = (0..self.messages.len()).filter(|n| is_below(&self.messages[*n]));
        below
            .map(|n| {
                let mut node = self.entry(n);
                node["answers"] = self.tree(thread, Some(self.messages[n].id())).into();
                node
            })
            .collect()
    }

    pub(super) fn declare(&mut self, agent: Agent) {
        if self.has(Defect::TrustsDeclarations) {
            let agents = self.rules.directory.agents().chain([agent.clone()]);
            self.rules.directory = Directory::new(agents.collect::<Vec<_>>());
        }
        self.rules.directory.declare(agent);
    }

    pub(super) fn put(&mut self, name: &str, bytes: &[u8], peer: &Peer) -> Result<bool, Rejection> {
        if name != Digest::of(bytes).to_string() && !self.has(Defect::UncheckedBlobs) {
            let detail = "These bytes have another digest.\nWhat to do: send the right ones.";
            return Err(Rejection::new(ErrorCode::Format, detail, ""));
        }
        let is_new = !self.blobs.contains_key(name);
        let (kept, by) = self.blobs.entry(name.into()).or_default();
        *kept = bytes.to_vec();
        by.insert(peer.name.clone());
        Ok(is_new)
    }

    /// The RESPOND to a message.
    pub(super) fn answer_to(&self, id: &str) -> Option<String> {
        let is_answer = |m: &&Message| {
            m.admission.arrival.meaning == Some(Intent::Respond) && m.parent() == Some(id)
        };
        let found = self.messages.iter().find(is_answer)?;
        Some(found.admission.arrival.text.clone())
    }

    /// An ERROR that belongs to no envelope.
    pub(super) fn refusal(refusal: &Rejection, retry: Option<u32>) -> String {
        let builder: Builder = reply::error_from_system(None, refusal);
        let builder = match retry {
            Some(seconds) => builder.meta("error", "Retry-After", seconds.to_string()),
            None => builder,
        };
        builder.build().unwrap()
    }
}
