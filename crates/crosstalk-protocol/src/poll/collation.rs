//! The result of a poll as data: `crosstalk.poll/1` (POL-040).

use super::Paper;
use super::ballot::{Says, Slip, holds};
use super::call::PollCall;
use super::choice::BallotChoice;
use super::count::count;
use super::gather::{Ballot, Gathered, gather};
use super::proof::Proofs;
use super::prose::RULE;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::words;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// The name and version of the form.
pub const POLL_SCHEMA: &str = "crosstalk.poll/1";

/// The result of a poll.
#[derive(Clone, Debug, Serialize)]
pub struct Collation {
    /// [`POLL_SCHEMA`].
    pub schema: &'static str,
    /// The question of the poll.
    pub poll: CallView,
    /// Up to when envelopes were looked at; all of them, if nothing is said.
    #[serde(serialize_with = "time")]
    pub at: Option<Timestamp>,
    /// Whether choices are not shown, because the poll is secret until it is closed.
    pub veiled: bool,
    /// The outcome.
    pub outcome: Option<String>,
    /// Why nothing came out.
    pub reason: Option<String>,
    /// For each option, in the order of the poll: ballots; first places, where it is ranked; points, where it is scored.
    pub tally: PollTally,
    /// Where it is ranked: for each option, how many ballots prefer it to each other one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairwise: Option<BTreeMap<String, PollTally>>,
    /// How many ballots are needed.
    pub quorum: CollatedQuorum,
    /// The ballots that count, in the order of who is asked.
    pub counted: Vec<CountedBallot>,
    /// Everything else that was said, by sender.
    pub not_counted: Vec<NotCounted>,
    /// Voters that did not answer in time.
    pub missing: Vec<String>,
    /// Who agrees with whom: each choice with those who made it, the most frequent first.
    pub agreement: Vec<Agreement>,
    /// How many have said all they will say: their ballot counts, or they declined.
    #[serde(skip)]
    pub(super) settled: usize,
    #[serde(skip)]
    pub(super) call: PollCall,
    /// The latest time of an answer.
    #[serde(skip)]
    pub(super) latest: Option<Timestamp>,
    /// How many answers were looked at, those that do not count among them.
    #[serde(skip)]
    pub answers: usize,
}

/// The question of the poll.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are named after those of the poll")]
pub struct CallView {
    pub message: String,
    pub digest: String,
    pub from: String,
    pub question: String,
    pub r#type: String,
    pub options: Vec<String>,
    pub invited: Vec<String>,
    #[serde(serialize_with = "time")]
    pub deadline: Option<Timestamp>,
    pub ties: String,
    pub secret: bool,
}

/// Options with numbers, in the order of the poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollTally(pub Vec<(String, u64)>);

impl Serialize for PollTally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (option, number) in &self.0 {
            map.serialize_entry(option, number)?;
        }
        map.end()
    }
}

/// How many ballots are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CollatedQuorum {
    /// This many; nothing if nobody can read what the poll says.
    pub required: Option<u64>,
    /// How many count, abstentions among them.
    pub counted: u64,
    /// Whether they are enough.
    pub reached: bool,
}

/// A ballot that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountedBallot {
    /// Whose: the address that is asked.
    pub from: String,
    /// What it chooses, with the options as the poll spells them; nothing for an abstention.
    pub choice: Option<String>,
    /// Whether it abstains.
    pub abstains: bool,
    /// How sure the voter is, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// `vote`, `first-line` for prose, or `correction`.
    pub read_from: &'static str,
    /// The correction of how it is read, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Corrected>,
    /// Its sender, where that is not the address as it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Its id.
    pub message: Option<String>,
    /// The digest of its canonical form.
    pub digest: String,
    /// `holds`: the signature fits a key that came with the answers; `unchecked`: there is one, and no key; `none`.
    pub signature: &'static str,
    /// The key id that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkid: Option<String>,
    /// The result of checking its signature, from a caller that knows keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// Whether nobody can say when it was written: it counts, whatever the deadline is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undated: bool,
    /// What it says.
    pub answer: String,
}

/// A correction of how an answer is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Corrected {
    /// The party that corrected it.
    pub by: String,
    /// In which message.
    pub message: Option<String>,
    /// What it would have been read as otherwise.
    pub read_as: Option<String>,
}

/// Something that was said and does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotCounted {
    /// Its sender.
    pub from: String,
    /// Its id.
    pub message: Option<String>,
    /// The digest of its canonical form.
    pub digest: String,
    /// Why, in one word.
    pub why: Why,
    /// Why, as a part of a sentence.
    pub detail: String,
    /// What it says.
    pub answer: String,
}

words! {
    /// Why something does not count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Why {
        /// Its sender is not asked.
        Uninvited = "uninvited",
        /// It came after the deadline.
        Late = "late",
        /// A later one counts.
        Superseded = "superseded",
        /// No choice can be read from it.
        Unreadable = "unreadable",
        /// Its sender could be several.
        UnclearSender = "unclear-sender",
        /// It must not be acted on.
        NotBelieved = "not-believed",
        /// Another answer of the same sender is signed.
        Unsigned = "unsigned",
        /// Answers in this name are signed with several keys.
        SeveralKeys = "several-keys",
        /// Another answer has the same id.
        SameId = "same-id",
        /// It answers something else.
        OtherParent = "other-parent",
        /// It says that there will be no ballot.
        Declined = "declined",
        /// A correction that may not be made, or that corrects nothing.
        Correction = "correction",
    }
}

impl Why {
    /// Why, as a part of a sentence that quotes nothing.
    const fn sentence(self) -> &'static str {
        match self {
            Self::Uninvited => "its sender is not among those who are asked",
            Self::Late => "it came after the deadline",
            Self::Superseded => "a later one counts",
            Self::Unreadable => "nobody can read a choice from it",
            Self::UnclearSender => "its sender could be several of those who are asked",
            Self::NotBelieved => "its signature does not hold",
            Self::Unsigned => "another answer of this sender is signed",
            Self::SeveralKeys => "answers in this name are signed with several keys",
            Self::SameId => "another answer with other content has the same id",
            Self::OtherParent => "it answers something else",
            Self::Declined => "it says that there will be no ballot",
            Self::Correction => "it corrects nothing, or may not",
        }
    }
}

impl NotCounted {
    pub(super) fn of(slip: &Slip<'_>, why: Why, detail: &str) -> Self {
        Self {
            from: slip.from.clone(),
            message: slip.message.clone(),
            digest: slip.digest.to_string(),
            why,
            // It may quote what the answer says.
            detail: match slip.is_private {
                true => why.sentence().to_owned(),
                false => detail.to_owned(),
            },
            answer: slip.body.clone(),
        }
    }
}

/// A choice, and those who made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// The choice; nothing for an abstention.
    pub choice: Option<String>,
    /// The voters that made it.
    pub voters: Vec<String>,
}

impl Collation {
    pub(super) fn of(
        call: PollCall,
        slips: Vec<Slip<'_>>,
        papers: &[Paper<'_>],
        at: Option<Timestamp>,
        proofs: &Proofs,
    ) -> Self {
        let known: BTreeSet<&str> = papers
            .iter()
            .filter_map(|p| p.document.envelope().message)
            .collect();
        let Gathered {
            ballots,
            not_counted,
            answered,
            declined,
            latest,
            answers,
        } = gather(&call, slips, &known, at, proofs);
        let choices: Vec<&BallotChoice> = ballots.iter().map(|b| &b.choice).collect();
        let result = count(&call, &choices);
        let counted_number = u64::try_from(ballots.len()).unwrap_or(u64::MAX);
        let required = match &call.quorum {
            None => Some(0),
            Some(quorum) => quorum.required(call.invited.len()),
        };
        let quorum = CollatedQuorum {
            required,
            counted: counted_number,
            reached: required.is_some_and(|n| counted_number >= n),
        };
        let outcome = match (&call.flaw, required) {
            (Some(flaw), _) => Err(flaw.clone()),
            (_, Some(n)) if !quorum.reached => Err(format!(
                "the quorum is not reached: {counted_number} of {n} ballots"
            )),
            _ => result.outcome,
        };
        let (outcome, reason) = match outcome {
            Ok(place) => (call.options.get(place).cloned(), None),
            Err(reason) => (None, Some(reason)),
        };
        let named =
            |numbers: Vec<u64>| PollTally(call.options.iter().cloned().zip(numbers).collect());
        let pairwise = result.pairwise.map(|rows| {
            let rows = call
                .options
                .iter()
                .cloned()
                .zip(rows.into_iter().map(named));
            rows.collect()
        });
        let tally = match call.has_options() {
            true => named(result.tally),
            false => PollTally::default(),
        };
        let voters: BTreeSet<usize> = ballots.iter().map(|b| b.voter).collect();
        let is_missing = |place: &usize| !answered.contains(place);
        let missing = (0..call.invited.len()).filter(is_missing);
        let missing = missing
            .filter_map(|place| call.invited.get(place).cloned())
            .collect();
        let settled = voters.union(&declined).count();
        let counted: Vec<CountedBallot> = ballots.into_iter().map(|b| counted(b, &call)).collect();
        Self {
            schema: POLL_SCHEMA,
            poll: CallView::of(&call),
            at,
            veiled: false,
            outcome,
            reason,
            tally,
            pairwise,
            quorum,
            agreement: agreement(&counted),
            counted,
            not_counted,
            missing,
            settled,
            latest,
            answers,
            call,
        }
    }

    /// The question of the poll.
    pub fn call(&self) -> &PollCall {
        &self.call
    }

    /// Whether everybody who is asked has a ballot that counts, or declined: nothing more is waited for.
    pub fn is_complete(&self) -> bool {
        self.settled >= self.call.invited.len()
    }

    /// The time right after the last answer.
    pub fn after_last(&self) -> Option<Timestamp> {
        self.latest
            .map(|t| Timestamp::from_millis(t.as_millis().saturating_add(1)))
    }

    /// The same without what was chosen, where the poll is secret until it is closed.
    pub fn while_open(mut self) -> Self {
        if !self.call.is_secret {
            return self;
        }
        self.veiled = true;
        self.outcome = None;
        self.reason = Some("the poll is open, and nobody sees choices before it is closed".into());
        self.tally = PollTally::default();
        self.pairwise = None;
        self.agreement = Vec::new();
        for ballot in &mut self.counted {
            (ballot.choice, ballot.abstains) = (None, false);
            (ballot.confidence, ballot.corrected) = (None, None);
            ballot.answer = String::new();
            ballot.digest = String::new();
        }
        for other in &mut self.not_counted {
            other.answer = String::new();
            other.digest = String::new();
            other.detail = String::new();
        }
        self
    }
}

impl CallView {
    fn of(call: &PollCall) -> Self {
        Self {
            message: call.id.clone(),
            digest: call.digest.to_string(),
            from: call.initiator.clone(),
            question: call.question.clone(),
            r#type: call.kind.as_str().to_owned(),
            options: call.options.clone(),
            invited: call.invited.clone(),
            deadline: call.deadline,
            ties: call.ties.as_str().to_owned(),
            secret: call.is_secret,
        }
    }
}

fn counted(ballot: Ballot<'_>, call: &PollCall) -> CountedBallot {
    let Ballot {
        voter,
        choice,
        slip,
        corrected,
    } = ballot;
    let from = call.invited.get(voter).cloned().unwrap_or_default();
    CountedBallot {
        choice: choice.to_text(call),
        abstains: choice == BallotChoice::Abstain,
        read_from: match (&corrected, &slip.says) {
            (Some(_), _) => "correction",
            (None, Says::Vote(_)) => "vote",
            (None, _) => RULE,
        },
        corrected,
        sender: (slip.from != from).then(|| slip.from.clone()),
        from,
        signature: match (holds(slip.word), &slip.pkid) {
            (true, _) => "holds",
            (_, Some(_)) => "unchecked",
            (_, None) => "none",
        },
        undated: slip.time().is_none(),
        verdict: slip.verdict.map(|w| w.as_str()),
        confidence: slip.confidence,
        message: slip.message,
        digest: digest_text(slip.digest),
        pkid: slip.pkid,
        answer: slip.body,
    }
}

fn digest_text(digest: Digest) -> String {
    digest.to_string()
}

fn agreement(counted: &[CountedBallot]) -> Vec<Agreement> {
    let mut groups: Vec<Agreement> = Vec::new();
    for ballot in counted {
        match groups.iter_mut().find(|g| g.choice == ballot.choice) {
            Some(group) => group.voters.push(ballot.from.clone()),
            None => groups.push(Agreement {
                choice: ballot.choice.clone(),
                voters: vec![ballot.from.clone()],
            }),
        }
    }
    // The sort is stable: equal ones stay in the order of who is asked.
    groups.sort_by_key(|g| std::cmp::Reverse(g.voters.len()));
    groups
}

fn time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|t| t.to_string()).serialize(serializer)
}
