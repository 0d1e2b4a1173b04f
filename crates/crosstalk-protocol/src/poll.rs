//! Polls: who is asked, which answers count, what comes out (POL-001 to POL-042).
//!
//! ```text
//! Paper, Paper, … ──┬── Call      the POLL: type, options, quorum, deadline, who is invited
//!                   ├── Slip      an answer: a ballot, prose, a correction by a person
//!                   └── gather ── one ballot for each who is invited ── count ──> Collation ──> JSON, envelopes
//! ```
//!
//! A collation is a pure function of the envelopes and of a time: anyone who has the same texts gets the same bytes. What
//! was found out about keys and hops is an argument, and may be left out.

mod ballot;
mod call;
mod choice;
mod collation;
mod count;
mod electorate;
mod gather;
mod proof;
mod prose;
mod quorum;
mod report;

pub use ballot::may_be_ballot;
pub use call::{OPTIONS, PollCall, PollKind, TieRule, answer_hint, is_secret, range};
pub use choice::BallotChoice;
pub use collation::{
    Agreement, CallView, CollatedQuorum, Collation, Corrected, CountedBallot, NotCounted,
    POLL_SCHEMA, PollTally, Why,
};
pub use electorate::VoterNames;
pub use proof::Proofs;
pub use quorum::Quorum;

use crate::verdict::VerdictWord;
use ballot::Slip;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};

/// An envelope that is handed in: the poll, an answer, or something else, which is passed over.
#[derive(Clone, Copy, Debug)]
pub struct Paper<'p> {
    /// The envelope.
    pub document: &'p Document<'p>,
    /// When a relay got it, where the hop that says so was verified.
    pub hop: Option<Timestamp>,
    /// The result of checking its signature, from a caller that knows keys. A message that must not be acted on does not
    /// count. Without a result, only the proof in the envelope itself is known.
    pub verdict: Option<VerdictWord>,
    /// Whether it came as a paste: text that names nothing where an id belongs counts as absent.
    pub is_pasted: bool,
}

impl<'p> Paper<'p> {
    /// An envelope about which nothing else is known.
    pub fn of(document: &'p Document<'p>) -> Self {
        Self {
            document,
            hop: None,
            verdict: None,
            is_pasted: document.reading() == Reading::Paste,
        }
    }
}

/// Why there is nothing to count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// None of the envelopes is the poll.
    #[error("there is no POLL among the envelopes: hand in the poll together with its answers")]
    NoPoll,
    /// Several are, and nobody said which one is meant: their ids.
    #[error("there are several polls, and it is not said which one is meant: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The poll has no id, so that nothing can answer it.
    #[error("the POLL has no `message:`, so that no answer can name it: send it again with one")]
    NoId,
    /// Two polls with different content have this id.
    #[error("two POLLs with different content have the id {0}: leave the wrong one out")]
    TwoContents(String),
}

/// Counts a poll: the envelopes in any order, and the time up to which they count; without one, all of them do.
///
/// `poll` names the poll, where there are several.
///
/// # Errors
/// If it is not clear what is counted.
///
/// ```
/// use crosstalk_envelope::{Document, Reading};
/// use crosstalk_protocol::poll::{Paper, collate};
/// let head = "user: u\nsession: s\nthread: 01K74V6R0074G0T7MAHPXVDNXW\n";
/// let poll = format!(
///     "[[KALLE→TEAM v1]]\n{head}message: 01K74V6VX0S86Z5JATM52C3M7Z\ncontext: c\nintent: POLL\n\
///      meta: routing\nTargets: [\"CLAUDE\", \"GEMINI\"]\nmeta: poll\nType: plurality\nOptions: Friday | Monday\n\
///      body: |\n  When?\nsig: none\n[[END]]\n"
/// );
/// let vote = format!(
///     "[[CLAUDE→KALLE v1]]\n{head}parent: 01K74V6VX0S86Z5JATM52C3M7Z\nmessage: 01K74V8QF8570V52F7A8GSBCV2\n\
///      context: c\nintent: RESPOND\nbody: |\n  Friday, because the tests are green.\nsig: none\n[[END]]\n"
/// );
/// let documents = [vote, poll].map(|text| Document::parse(&text, Reading::Strict).into_owned());
/// let papers: Vec<Paper<'_>> = documents.iter().map(Paper::of).collect();
/// let collation = collate(&papers, None, None).unwrap();
/// assert_eq!(collation.outcome.as_deref(), Some("Friday"));
/// assert_eq!(collation.missing, ["GEMINI"]);
/// ```
pub fn collate(
    papers: &[Paper<'_>],
    poll: Option<&str>,
    at: Option<Timestamp>,
) -> Result<Collation, PollError> {
    collate_named(papers, poll, at, None, &Proofs::default())
}

/// The same by who knows which addresses simple names stand for: then an answer counts under the very address, or under
/// a name that stands for it, and for nobody who is only alike. `proofs` keeps verdicts from one count to the next.
///
/// # Errors
/// If it is not clear what is counted.
pub fn collate_named(
    papers: &[Paper<'_>],
    poll: Option<&str>,
    at: Option<Timestamp>,
    names: Option<&VoterNames>,
    proofs: &Proofs,
) -> Result<Collation, PollError> {
    let call = PollCall::find(papers, poll, names)?;
    let read = |paper| Slip::read(paper, &call, proofs);
    let slips: Vec<Slip<'_>> = papers.iter().filter_map(read).collect();
    Ok(Collation::of(call, slips, papers, at, proofs))
}

/// Whether an envelope reports the result of a poll.
pub fn is_result(document: &Document<'_>) -> bool {
    document.block("collation").is_some()
}

/// Whether a message corrects how an answer to a poll is read (POL-013). It is for those who count the poll.
///
/// ```
/// use crosstalk_envelope::{Document, Reading};
/// let vote = |lines: &str| format!("[[A→VOTERS v1]]\nuser: u\nparent: P\ncontext: c\nintent: RESPOND\nmeta: vote\n{lines}Choice: X\nsig: none\n[[END]]\n");
/// let is_correction = |text: &str| crosstalk_protocol::poll::is_correction(&Document::parse(text, Reading::Strict));
/// assert!(is_correction(&vote("Corrects: M\n")) && !is_correction(&vote("")));
/// ```
pub fn is_correction(document: &Document<'_>) -> bool {
    let corrected = document.meta("vote", "Corrects");
    document.envelope().meaning() == Some(Intent::Respond)
        && corrected.is_some_and(|c| !c.trim().is_empty())
}

/// The polls among some envelopes, by their ids, in the order of these.
pub fn polls<'p>(papers: &[Paper<'p>]) -> Vec<&'p str> {
    let is_poll = |p: &&Paper<'p>| p.document.envelope().meaning() == Some(Intent::Poll);
    let mut ids: Vec<&str> = papers
        .iter()
        .filter(is_poll)
        .filter_map(|p| p.document.envelope().message)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
