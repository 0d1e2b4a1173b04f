//! The POLL itself: what is asked, of whom, and how it is counted (POL-001 to POL-004).

use super::electorate::electorate;
use super::quorum::Quorum;
use super::{Paper, PollError};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, PublicKey, Timestamp};

/// How a poll is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    fn parse(word: &str) -> Self {
        match word {
            "plurality" => Self::Plurality,
            "majority" => Self::Majority,
            "consensus" => Self::Consensus,
            "approval" => Self::Approval,
            "ranked" => Self::Ranked,
            "score" => Self::Score,
            "open" => Self::Open,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plurality => "plurality",
            Self::Majority => "majority",
            Self::Consensus => "consensus",
            Self::Approval => "approval",
            Self::Ranked => "ranked",
            Self::Score => "score",
            Self::Open => "open",
            Self::Other(word) => word,
        }
    }
}

/// What happens if several options are equally good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Nothing comes out.
    None,
    /// The one that the poll lists first.
    FirstListed,
    /// A rule that is not known here: nothing comes out.
    Other(String),
}

impl Ties {
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

/// A poll as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// Who asks: the left side of its direction line.
    pub initiator: String,
    /// The right side of its direction line.
    pub receiver: String,
    /// Where the result goes besides.
    pub reply_to: Option<String>,
    /// The conversation.
    pub thread: Option<String>,
    /// The v1.0 conversation.
    pub session: Option<String>,
    /// What it is about.
    pub context: Option<String>,
    /// The question.
    pub question: String,
    /// How it is counted.
    pub kind: Kind,
    /// What can be chosen, each once.
    pub options: Vec<String>,
    /// The fewest and the most points of an option.
    pub range: (u64, u64),
    /// How many ballots are needed.
    pub quorum: Option<Quorum>,
    /// Up to when answers count.
    pub deadline: Option<Timestamp>,
    /// The deadline as it was written, where nobody can read it.
    pub bad_deadline: Option<String>,
    /// Whether nobody sees choices before it is closed.
    pub is_secret: bool,
    /// What happens in a tie.
    pub ties: Ties,
    /// Who is asked, each once.
    pub invited: Vec<String>,
    /// The key id that signed it, where the signature holds by what the envelope itself proves.
    pub pkid: Option<String>,
    /// The key that came with it.
    pub(super) key: Option<PublicKey>,
}

impl Call {
    /// The poll among some envelopes.
    pub(super) fn find(papers: &[Paper<'_>], wanted: Option<&str>) -> Result<Self, PollError> {
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
                Some(id) if is_wanted(id) => calls.push(Self::read(paper.document, id)),
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

    /// What a POLL says.
    pub fn read(document: &Document<'_>, id: &str) -> Self {
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
        }
        let kind = match key("Type") {
            Some(word) => Kind::parse(word),
            None if options.is_empty() => Kind::Open,
            None => Kind::Plurality,
        };
        let targets = routing.target_list();
        let receiver = document.receiver();
        let invited = match targets.is_empty() {
            true => electorate([receiver].into_iter()),
            false => electorate(targets.iter().map(AsRef::as_ref)),
        };
        let written = key("Deadline").or(routing.deadline);
        let deadline = written.and_then(Timestamp::parse);
        let is_secret = key("Secrecy").is_some_and(|words| {
            let words = words.to_ascii_lowercase().replace(['-', '_'], " ");
            words.split_whitespace().eq(["until", "close"])
        });
        let (word, pkid) = super::ballot::own_verdict(document);
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
            range: key("Range").and_then(range).unwrap_or(POINTS),
            quorum: key("Quorum").map(Quorum::parse),
            bad_deadline: written.filter(|_| deadline.is_none()).map(str::to_owned),
            deadline,
            is_secret,
            ties: key("Ties").map_or(Ties::None, Ties::parse),
            invited,
            key: super::ballot::carried_key(document),
            pkid: pkid.filter(|_| super::ballot::holds(word)),
        }
    }

    /// Who signed it, where the signature holds: the key id and the key.
    pub(super) fn signer(&self) -> Option<String> {
        let pkid = self.pkid.as_deref()?;
        Some(super::ballot::signer(pkid, self.key.as_ref()))
    }

    /// Whether answers are compared with options.
    pub(super) fn has_options(&self) -> bool {
        !self.options.is_empty() && !matches!(self.kind, Kind::Open | Kind::Other(_))
    }
}

/// Reads `0-10`, `0..10` or `1 to 5`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text
        .split_once("..")
        .or_else(|| text.split_once('-'))
        .or_else(|| text.split_once("to"))?;
    let number = |n: &str| n.trim().parse::<u32>().ok().map(u64::from);
    let (least, most) = (number(least)?, number(most)?);
    (least < most).then_some((least, most))
}
