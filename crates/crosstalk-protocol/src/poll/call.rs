//! The POLL itself: what is asked, of whom, and how it is counted (POL-001 to POL-004).

use super::electorate::{Electorate, Voter, VoterNames};
use super::proof::{Proofs, pkid_of};
use super::quorum::Quorum;
use super::{Paper, PollError};
use crate::store::is_same_party;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, PublicKey, Timestamp};

/// How a poll is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollKind {
    /// The option that most choose.
    Plurality,
    /// The option that more than half choose.
    Majority,
    /// The option that all choose.
    Consensus,
    /// Each chooses any number of options; the one that most choose.
    Approval,
    /// Each puts options in an order; Schulze.
    Ranked,
    /// Each gives points; the option with the most.
    Score,
    /// Answers side by side; nothing comes out.
    Open,
    /// A way of counting that is not known here.
    Other(String),
}

impl PollKind {
    /// All that are known, each with the word for it and what comes out, as a part of a sentence.
    pub const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Plurality, "plurality", "The option that most choose"),
        (
            Self::Majority,
            "majority",
            "The option that more than half choose",
        ),
        (Self::Consensus, "consensus", "The option that all choose"),
        (
            Self::Approval,
            "approval",
            "Each chooses any number; the option that most choose",
        ),
        (
            Self::Ranked,
            "ranked",
            "Each puts options in an order; Schulze",
        ),
        (
            Self::Score,
            "score",
            "Each gives points; the option with the most",
        ),
        (Self::Open, "open", "Answers side by side, and no outcome"),
    ];

    /// The way of counting that a word names.
    pub fn parse(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        let known = all.find(|(_, name, _)| *name == word);
        known.map_or_else(|| Self::Other(word.to_owned()), |(kind, ..)| kind)
    }

    /// The word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(word) => word,
            known => {
                let mut all = Self::ALL.iter();
                all.find(|(kind, ..)| kind == known)
                    .map_or("", |(_, name, _)| name)
            }
        }
    }
}

/// The rule for options that are equally good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TieRule {
    /// Nothing comes out.
    None,
    /// The one that the poll lists first.
    FirstListed,
    /// A rule that is not known here: nothing comes out.
    Other(String),
}

impl TieRule {
    fn parse(text: &str) -> Self {
        match text {
            "none" => Self::None,
            "first-listed" => Self::FirstListed,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::FirstListed => "first-listed",
            Self::Other(text) => text,
        }
    }
}

/// The most points that an option can get, if the poll says nothing.
const POINTS: (u64, u64) = (0, 100);
/// How many options a poll has at most, so that counting it stays cheap.
pub const OPTIONS: usize = 256;

/// A poll as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollCall {
    /// Its id.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The party that asks: the left side of its direction line.
    pub initiator: String,
    /// The right side of its direction line.
    pub receiver: String,
    /// Where the result goes besides.
    pub reply_to: Option<String>,
    /// The conversation.
    pub thread: Option<String>,
    /// The v1.0 conversation.
    pub session: Option<String>,
    /// Its subject.
    pub context: Option<String>,
    /// The question.
    pub question: String,
    /// How it is counted.
    pub kind: PollKind,
    /// The options, each once; empty if there are too many.
    pub options: Vec<String>,
    /// The fewest and the most points of an option.
    pub range: (u64, u64),
    /// How many ballots are needed.
    pub quorum: Option<Quorum>,
    /// Up to when answers count.
    pub deadline: Option<Timestamp>,
    /// Why nothing can come out, whatever is chosen: a part of a sentence.
    pub flaw: Option<String>,
    /// Whether nobody sees choices before it is closed.
    pub is_secret: bool,
    /// The rule for a tie.
    pub ties: TieRule,
    /// The invited voters, each once.
    pub invited: Vec<String>,
    /// Which senders count as which of them.
    pub(super) electorate: Electorate,
    /// Whether the question is not repeated.
    pub(super) is_private: bool,
    /// The key id that signed it, where the signature holds by what the envelope itself proves.
    pub pkid: Option<String>,
    /// The key that came with it.
    pub(super) key: Option<PublicKey>,
}

/// Whether the choices of a poll are secret: whatever does not say that they are seen keeps them.
pub fn is_secret(document: &Document<'_>) -> bool {
    let secrecy = document.meta("poll", "Secrecy");
    secrecy.is_some_and(|word| {
        let word = word.trim().to_ascii_lowercase();
        !matches!(word.as_str(), "no" | "none" | "false")
    })
}

impl PollCall {
    /// The poll among some envelopes.
    pub(super) fn find(
        papers: &[Paper<'_>],
        wanted: Option<&str>,
        names: Option<&VoterNames>,
    ) -> Result<Self, PollError> {
        let mut calls: Vec<Self> = Vec::new();
        let mut has_nameless = false;
        for paper in papers {
            let envelope = paper.document.envelope();
            if envelope.meaning() != Some(Intent::Poll) {
                continue;
            }
            let is_wanted = |id: &str| wanted.is_none_or(|wanted| wanted == id);
            match envelope.message {
                None => has_nameless = true,
                Some(id) if is_wanted(id) => calls.push(Self::read(paper.document, id, names)),
                Some(_) => {}
            }
        }
        calls.sort_by(|a, b| (&a.id, a.digest.0).cmp(&(&b.id, b.digest.0)));
        calls.dedup_by(|a, b| a.id == b.id && a.digest == b.digest);
        match calls.as_slice() {
            [] if has_nameless => Err(PollError::NoId),
            [] => Err(PollError::NoPoll),
            [_] => calls.pop().ok_or(PollError::NoPoll),
            [first, rest @ ..] if rest.iter().all(|c| c.id == first.id) => {
                Err(PollError::TwoContents(first.id.clone()))
            }
            _ => {
                let mut ids: Vec<String> = calls.into_iter().map(|c| c.id).collect();
                ids.dedup();
                Err(PollError::Several(ids))
            }
        }
    }

    /// What a POLL says. `names` are the addresses that simple names stand for, where they are known.
    pub fn read(document: &Document<'_>, id: &str, names: Option<&VoterNames>) -> Self {
        let envelope = document.envelope();
        let routing = envelope.routing();
        let poll = envelope.poll();
        let block = document.block("poll");
        let key = |name: &str| {
            block
                .and_then(|b| b.get(name))
                .map(str::trim)
                .filter(|v| !v.is_empty())
        };
        let mut options: Vec<String> = Vec::new();
        for option in poll.iter().flat_map(|p| &p.options) {
            let option = option.trim();
            if !option.is_empty() && !options.iter().any(|o| o == option) {
                options.push(option.to_owned());
            }
            if options.len() > OPTIONS {
                break;
            }
        }
        let has_too_many = options.len() > OPTIONS;
        let kind = match key("Type") {
            Some(word) => PollKind::parse(word),
            None if options.is_empty() => PollKind::Open,
            None => PollKind::Plurality,
        };
        let targets = routing.target_list();
        let receiver = document.receiver();
        let electorate = match targets.is_empty() {
            true => Electorate::of([receiver].into_iter(), names),
            false => Electorate::of(targets.iter().map(AsRef::as_ref), names),
        };
        let written = key("Deadline").or(routing.deadline);
        let deadline = written.and_then(Timestamp::parse);
        let is_secret = is_secret(document);
        let quorum = block.and_then(|b| b.get("Quorum")).map(Quorum::parse);
        let bounds = block.and_then(|b| b.get("Range"));
        let bounds = bounds.filter(|_| kind == PollKind::Score);
        let flaw = match (written, bounds, &quorum) {
            _ if has_too_many => {
                options.clear();
                Some(format!(
                    "the poll names more than {OPTIONS} options, which are not counted"
                ))
            }
            (Some(text), ..) if deadline.is_none() => Some(format!(
                "the deadline `{text}` can't be read, so that nobody can say who was late"
            )),
            (_, Some(text), _) if range(text).is_none() => Some(format!(
                "the range `{}` of the points can't be read: it is written as `0-10`",
                text.trim()
            )),
            (_, _, Some(Quorum::Unreadable(text))) => Some(format!(
                "the quorum `{text}` of the poll can't be read: it is written as `2`, `2-of-3` or `60%`"
            )),
            _ => None,
        };
        let (word, pkid) = (Proofs::default().word(document, None), pkid_of(document));
        Self {
            id: id.to_owned(),
            digest: super::ballot::digest(document),
            initiator: document.sender().to_owned(),
            receiver: receiver.to_owned(),
            reply_to: routing.reply_to.map(|a| a.as_str().to_owned()),
            thread: envelope.thread.map(str::to_owned),
            session: envelope.session.map(|s| s.text.to_owned()),
            context: envelope.context.map(str::to_owned),
            question: document.body_text(),
            kind,
            options,
            range: bounds.and_then(range).unwrap_or(POINTS),
            quorum,
            flaw,
            deadline,
            is_secret,
            ties: key("Ties").map_or(TieRule::None, TieRule::parse),
            invited: electorate.invited.clone(),
            electorate,
            is_private: super::ballot::is_private(document),
            key: super::ballot::carried_key(document),
            pkid: pkid.filter(|_| super::ballot::holds(word)),
        }
    }

    /// The signer, where the signature holds: the key id and the key.
    pub(super) fn signer(&self) -> Option<String> {
        let pkid = self.pkid.as_deref()?;
        Some(super::ballot::signer(pkid, self.key.as_ref()))
    }

    /// Whether an answer of somebody is a ballot.
    pub fn asks(&self, sender: &str) -> bool {
        self.electorate.voter(sender) != Voter::Uninvited
    }

    /// Whether what somebody says can count: who is asked, and who asks and may say how an answer is to be read.
    pub fn heeds(&self, sender: &str) -> bool {
        is_same_party(&self.initiator, sender) || self.asks(sender)
    }

    /// Whether answers are compared with options.
    pub(super) fn has_options(&self) -> bool {
        !self.options.is_empty() && !matches!(self.kind, PollKind::Open | PollKind::Other(_))
    }
}

/// The fewest and the most points, read from `0-10`, `0..10` or `1 to 5`.
pub fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text
        .split_once("..")
        .or_else(|| text.split_once('-'))
        .or_else(|| text.split_once("to"))?;
    let number = |n: &str| n.trim().parse::<u32>().ok().map(u64::from);
    let (least, most) = (number(least)?, number(most)?);
    (least < most).then_some((least, most))
}

/// How somebody answers who does not know ballots.
pub fn answer_hint(kind: &PollKind, options: &[String]) -> Option<String> {
    let all = options.join(" | ");
    let (first, second) = (options.first()?, options.get(1).or(options.first())?);
    Some(match kind {
        PollKind::Approval => format!(
            "Begin your answer with the options that you approve of, as `{first} | {second}`, out of: {all}"
        ),
        PollKind::Ranked => format!(
            "Begin your answer with the options from the best to the worst, as `{first} > {second}`, out of: {all}"
        ),
        PollKind::Score => format!(
            "Begin your answer with points for the options, as `{first}=5 | {second}=3`, out of: {all}"
        ),
        PollKind::Open => return None,
        _ => format!("Begin your answer with one of these, as it is written here: {all}"),
    })
}
