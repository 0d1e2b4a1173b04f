//! A poll that is kept here, with its answers.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::lookup::{self, Reference};
use crate::service::workspace::Workspace;
use crate::{clock, view};
use crosstalk_envelope::name::SYSTEM;
use crosstalk_envelope::{Document, Intent, Timestamp};
use crosstalk_protocol::poll::{
    Collation, OPTIONS, Paper, PollKind, Why, answer_hint, collate, is_result,
};
use crosstalk_protocol::store::{Record, Side, Way, is_same_party};
use crosstalk_store::SqliteStore;

/// A poll and everything in its thread.
pub(crate) struct KeptPoll {
    pub(crate) id: String,
    pub(crate) thread: String,
    records: Vec<Record>,
}

impl KeptPoll {
    /// The poll that a reference means: itself, or the latest of its thread. Nothing if nothing of this name is kept here.
    pub(crate) fn find(
        console: &mut Console,
        workspace: &Workspace,
        reference: &str,
    ) -> Result<Option<Self>, Failure> {
        let Some(store) = workspace.messages(console)? else {
            return Ok(None);
        };
        let found = match lookup::reference(&store, reference) {
            Ok(found) => found,
            Err(usage) if usage.is_usage() => return Err(usage),
            Err(_) => return Ok(None),
        };
        Self::of(&store, found).map(Some)
    }

    /// The voters of a poll that is kept here who have not answered.
    pub(crate) fn missing(
        console: &mut Console,
        workspace: &Workspace,
        id: &str,
    ) -> Result<Vec<String>, Failure> {
        match Self::find(console, workspace, id)? {
            Some(kept) => Ok(kept.collate(None)?.missing),
            None => Ok(Vec::new()),
        }
    }

    /// Why an answer to a poll of the person does not count, and how a person says what it means; nothing if it counts.
    pub(crate) fn remark(
        store: &SqliteStore,
        poll: &Record,
        answer: &Record,
    ) -> Result<Option<String>, Failure> {
        let kept = Self::of(store, Reference::Message(Box::new(poll.clone())))?;
        let closed = kept.closed_at();
        let collation = kept.collate(closed)?;
        let digest = answer.digest.to_string();
        let mut others = collation.not_counted.iter();
        let Some(other) = others.find(|n| n.digest == digest) else {
            return Ok(None);
        };
        let why = match other.detail.as_str() {
            "" => other.why.as_str().to_owned(),
            detail => view::line(detail),
        };
        let call = collation.call();
        let can_be_corrected =
            matches!(other.why, Why::Unreadable | Why::OtherParent) && poll.side == Side::Mine;
        if !can_be_corrected || closed.is_some() || call.options.is_empty() {
            return Ok(Some(format!("not counted: {why}")));
        }
        let options: Vec<String> = call.options.iter().map(|o| view::line(o)).collect();
        Ok(Some(format!(
            "not counted: {why}; count it with `crosstalk poll count {} --as CHOICE`, out of: {}",
            view::short(store, &answer.id)?,
            options.join(" | ")
        )))
    }

    /// The poll itself.
    pub(crate) fn asked(&self) -> Option<&Record> {
        self.records.iter().find(|r| r.id == self.id)
    }

    fn of(store: &SqliteStore, found: Reference) -> Result<Self, Failure> {
        let (thread, wanted) = match found {
            Reference::Thread(thread) => (thread.id.clone(), None),
            Reference::Message(record) => {
                let is_poll = record.meaning == Some(Intent::Poll);
                (record.thread.clone(), is_poll.then(|| record.id.clone()))
            }
        };
        let records = lookup::everything(store, &thread)?;
        let latest = || {
            let mut polls = records
                .iter()
                .rev()
                .filter(|r| r.meaning == Some(Intent::Poll));
            polls.next().map(|r| r.id.clone())
        };
        let id = wanted.or_else(latest);
        let id = id.ok_or_else(|| {
            Failure::failed("there is no poll in this thread")
                .help("`crosstalk poll new TEXT --option A --option B --target NAME` asks one")
        })?;
        Ok(Self {
            id,
            thread,
            records,
        })
    }

    /// The poll that a message answers: the one that it names, else the latest of its thread.
    pub(crate) fn asked_by(store: &SqliteStore, answer: &Record) -> Result<Self, Failure> {
        let named = answer.parent.as_deref().map(|p| store.message(p));
        let named = named.transpose()?.flatten();
        let named = named.filter(|r| r.meaning == Some(Intent::Poll));
        let found = named.unwrap_or_else(|| answer.clone());
        Self::of(store, Reference::Message(Box::new(found)))
    }

    /// When it was closed, here or at a relay.
    pub(crate) fn closed_at(&self) -> Option<Timestamp> {
        self.records.iter().rev().find_map(|record| {
            // Made here, or fetched from a relay: anybody can write one and have it pasted.
            let is_own = matches!(record.way, Way::Sent | Way::Relayed)
                && is_same_party(&record.sender, SYSTEM)
                && record.parent.as_deref() == Some(&self.id);
            let document = record.document();
            let at = document.meta("collation", "At").and_then(Timestamp::parse);
            at.filter(|_| is_own && is_result(&document))
        })
    }

    /// Counts all answers, or those that came before a time.
    pub(crate) fn collate(&self, at: Option<Timestamp>) -> Result<Collation, Failure> {
        self.count(None, at)
    }

    /// Counts as if a message came as well.
    pub(crate) fn collate_with(&self, further: &Document<'_>) -> Result<Collation, Failure> {
        self.count(Some(further), None)
    }

    fn count(
        &self,
        further: Option<&Document<'_>>,
        at: Option<Timestamp>,
    ) -> Result<Collation, Failure> {
        let documents: Vec<(Document<'_>, &Record)> =
            self.records.iter().map(|r| (r.document(), r)).collect();
        let kept = documents.iter().map(|(document, record)| Paper {
            verdict: Some(record.verdict),
            is_pasted: record.way != Way::Relayed,
            ..Paper::of(document)
        });
        let papers: Vec<Paper<'_>> = kept.chain(further.map(Paper::of)).collect();
        collate(&papers, Some(&self.id), at).map_err(|e| Failure::failed(e.to_string()))
    }

    /// Whether it is over: closed here, or its deadline has passed.
    pub(crate) fn is_over(&self, collation: &Collation) -> bool {
        let deadline = collation.call().deadline;
        self.closed_at().is_some() || deadline.is_some_and(|end| end <= clock::now())
    }
}

/// The type of a poll with these options, and its question with a word on how to answer.
pub(crate) fn question(question: &str, options: &[String]) -> Result<(PollKind, String), Failure> {
    let mut known: Vec<&str> = Vec::new();
    for option in options.iter().map(|option| option.trim()) {
        if option.is_empty() || known.contains(&option) {
            return Err(
                Failure::usage("an option is empty, or given twice").help("give each option once")
            );
        }
        known.push(option);
    }
    let kind = match options.len() {
        0 => PollKind::Open,
        1 => {
            return Err(Failure::usage("one option is no choice").help("give another, or none"));
        }
        n if n > OPTIONS => {
            return Err(
                Failure::usage(format!("a poll has at most {OPTIONS} options"))
                    .help("leave some out"),
            );
        }
        _ => PollKind::Plurality,
    };
    let text = match answer_hint(&kind, options) {
        Some(hint) => format!("{}\n\n{hint}", question.trim_end()),
        None => question.to_owned(),
    };
    Ok((kind, text))
}
