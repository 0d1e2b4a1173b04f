//! The answers of a store: records, threads, listings and outcomes.

use super::arrival::{Arrival, Side, Wait, Way};
use super::party::{is_same_party, may_answer, party};
use crate::audit::LogPlace;
use crate::verdict::VerdictWord;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use std::collections::HashMap;

/// The outcome for a message.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreOutcome {
    /// It is kept.
    Filed {
        /// The id under which it is kept.
        id: String,
        /// The thread that it belongs to.
        thread: String,
        /// The message that it settles.
        settled: Option<String>,
        /// Since when the thread was closed, if it was before this message came.
        closed: Option<Timestamp>,
        /// The id under which another message is kept now that had this id before: this one is verified, and that one
        /// was not. No message has it if that one was cut off and this is the whole of it.
        displaced: Option<String>,
        /// The messages that it may answer, where its ids are unknown and several wait for its sender.
        candidates: Vec<String>,
    },
    /// It was there already: the same id and the same content.
    Known {
        /// The id under which it is kept.
        id: String,
        /// The thread that it belongs to.
        thread: String,
        /// Since when.
        since: Timestamp,
        /// Whether more is known about its signature now than then; that was kept.
        improved: bool,
    },
    /// Another message has this id. Nothing was kept.
    Conflict {
        /// The id.
        id: String,
        /// The thread of the message that has it.
        thread: String,
    },
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its place in the order of arrival.
    pub seq: u64,
    /// Its entry in the log, if a relay took it.
    pub entry: Option<LogPlace>,
    /// The id under which it is kept.
    pub id: String,
    /// Whether that is the id which the envelope carries.
    pub carries_id: bool,
    /// The thread that it belongs to.
    pub thread: String,
    /// The message that it is taken to answer, else the one that its envelope says it answers.
    pub parent: Option<String>,
    /// The v1.0 conversation.
    pub session: Option<String>,
    /// The left side of the direction line.
    pub sender: String,
    /// The right side of the direction line.
    pub receiver: String,
    /// Who speaks.
    pub user: Option<String>,
    /// Its subject.
    pub context: Option<String>,
    /// The intent as it was written.
    pub intent: Option<String>,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// When it came.
    pub at: Timestamp,
    /// When it was written, by its own words.
    pub written_at: Option<Timestamp>,
    /// The result of checking its signature on arrival.
    pub verdict: VerdictWord,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// The side that it comes from.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// The party that has to act on it next.
    pub wait: Wait,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// When it must not be handed out any more.
    pub expires: Option<Timestamp>,
    /// The envelope.
    pub text: String,
    /// The text as received, if it differs.
    pub received: Option<String>,
    /// Whether its text may be cut off.
    pub truncated: bool,
}

impl Record {
    /// A message that is kept and not indexed: everything but its position and its thread follows from its text.
    pub fn pending(arrival: Arrival, seq: u64, thread: String) -> Self {
        Self {
            seq,
            entry: None,
            id: arrival.id().to_owned(),
            carries_id: arrival.message.is_some(),
            thread,
            parent: arrival.answered().map(str::to_owned),
            wait: arrival.wait(),
            session: arrival.session,
            sender: arrival.sender,
            receiver: arrival.receiver,
            user: arrival.user,
            context: arrival.context,
            intent: arrival.intent,
            meaning: arrival.meaning,
            at: arrival.at,
            written_at: arrival.written_at,
            verdict: arrival.verdict,
            pkid: arrival.pkid,
            side: arrival.side,
            way: arrival.way,
            digest: arrival.digest,
            expires: None,
            text: arrival.text,
            received: arrival.received,
            truncated: arrival.truncated,
        }
    }

    /// The message as it was admitted: a kept text has one reading, the strict one.
    pub fn document(&self) -> Document<'_> {
        Document::parse(&self.text, Reading::Strict)
    }

    /// Those whom it is for: the voters of a POLL that names them, else its receiver.
    pub fn recipients(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.meaning == Some(Intent::Poll) {
            let document = self.document();
            for target in document.envelope().routing().target_list() {
                add_party(&mut names, &target);
            }
        }
        match names.is_empty() {
            true => vec![self.receiver.clone()],
            false => names,
        }
    }

    /// Whether its time is over: from then on it is not handed out.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its id.
    pub id: String,
    /// Its subject: the context of its first message.
    pub context: Option<String>,
    /// The session of its first message.
    pub session: Option<String>,
    /// Everyone who sent or was sent a message in it, in order of appearance; at most sixteen. Of a thread
    /// with many, the first 64 are kept.
    pub parties: Vec<String>,
    /// How many messages it has.
    pub messages: u64,
    /// How many of them wait for the person of this store.
    pub waiting: u64,
    /// How many of them wait for the other side.
    pub asked: u64,
    /// When the first message came.
    pub first_at: Timestamp,
    /// When the latest message came.
    pub last_at: Timestamp,
    /// The id of the latest message.
    pub last: String,
    /// Its position.
    pub last_seq: u64,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Its open questions, those to the person of this store first, then the oldest; at most sixteen.
    pub open: Vec<OpenQuestion>,
    /// Whether a message in it answers another one.
    pub has_answer: bool,
    /// Whose last answer was a failure or a refusal.
    pub failed: Vec<FailedAnswer>,
    /// The names under which its polls address their voters, and which are nobody's own.
    pub electorates: Vec<String>,
}

/// How one question of a thread ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredQuestion {
    /// The party that was asked.
    pub of: String,
    /// The error code of an ERROR, or the intent of one without a code and of a NACK; nothing if it was answered.
    pub failure: Option<String>,
}

impl AnsweredQuestion {
    /// How a question ended by an answer with this text. Whoever votes in a poll was asked themselves, and whoever answers a
    /// question that is not there, too.
    pub fn of(
        question: Option<(Option<Intent>, &str)>,
        (sender, meaning): (&str, Option<Intent>),
        text: &str,
    ) -> Self {
        let of = match question {
            None | Some((Some(Intent::Poll), _)) => sender,
            Some((_, receiver)) => receiver,
        };
        let failed = meaning.filter(|m| matches!(m, Intent::Error | Intent::Nack));
        let failure = failed.map(|meaning| {
            let document = Document::parse(text, Reading::Strict);
            let code = document.envelope().error().and_then(|e| e.code);
            code.map_or(meaning.as_str(), |c| c.as_str()).to_owned()
        });
        Self {
            of: of.to_owned(),
            failure,
        }
    }
}

/// A question that ended in an ERROR or a NACK, and was not answered since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAnswer {
    /// The party that was asked.
    pub of: String,
    /// The error code, or the intent.
    pub code: String,
}

impl FailedAnswer {
    /// The last failure among answers in order of arrival: a later answer of the same party makes up for it.
    ///
    /// ```
    /// use crosstalk_protocol::store::{AnsweredQuestion, FailedAnswer};
    /// let ended = |of: &str, failure: Option<&str>| AnsweredQuestion { of: of.into(), failure: failure.map(Into::into) };
    /// let failed = FailedAnswer::remaining(vec![ended("CLAUDE", Some("E-ROUTE")), ended("CHATGPT", Some("NACK")), ended("chatgpt", None)]);
    /// assert_eq!(failed, [FailedAnswer { of: "CLAUDE".into(), code: "E-ROUTE".into() }]);
    /// ```
    pub fn remaining(answers: Vec<AnsweredQuestion>) -> Vec<Self> {
        let mut failed: Vec<Self> = Vec::new();
        for answer in answers {
            failed.retain(|known| !is_same_party(&known.of, &answer.of));
            let of = answer.of;
            failed.extend(answer.failure.map(|code| Self { of, code }));
        }
        failed
    }
}

/// A message that waits, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The party that has to act next.
    pub wait: Wait,
    /// The parties that it asks and that have not answered yet.
    pub of: Vec<String>,
}

impl OpenQuestion {
    /// The open part of a question: it asks its targets, or its receiver if it has none, without those that answered.
    ///
    /// ```
    /// use crosstalk_protocol::store::{OpenQuestion, Wait};
    /// let open = OpenQuestion::new(Wait::Them, "VOTERS", &["ANN", "bob", "Ann"], &["BOB".into()]);
    /// assert_eq!(open.of, ["ANN"]);
    /// assert_eq!(OpenQuestion::new(Wait::Them, "CHATGPT", &[], &[]).of, ["CHATGPT"]);
    /// let poll = OpenQuestion::new(Wait::Them, "VOTERS", &["claude://x", "ANN"], &["CLAUDE".into()]);
    /// assert_eq!(poll.of, ["ANN"]);
    /// ```
    pub fn new(wait: Wait, receiver: &str, targets: &[&str], answered: &[String]) -> Self {
        let asked = match targets.is_empty() {
            true => &[receiver][..],
            false => targets,
        };
        let has_answered = |name: &str| answered.iter().any(|a| may_answer(name, a));
        let mut of: Vec<String> = Vec::new();
        for name in asked.iter().filter(|name| !has_answered(name)) {
            add_party(&mut of, name);
        }
        Self { wait, of }
    }
}

/// Adds a name or an address to a list, unless it is there.
fn add_party(list: &mut Vec<String>, name: &str) {
    if !list.iter().any(|known| is_same_party(known, name)) {
        list.push(name.to_owned());
    }
}

/// The next step in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It was closed.
    Closed,
    /// A message waits for an answer of the person of this store.
    YourTurn,
    /// A message between others waits to be carried to these.
    Carry(Vec<String>),
    /// The person of this store waits for an answer of these.
    WaitingFor(Vec<String>),
    /// The questions to these ended in an error or a refusal, and nothing else is open.
    Failed(Vec<FailedAnswer>),
    /// Everything that was asked is answered.
    Answered,
    /// Nothing was asked, or what was asked waits no longer.
    Open,
}

impl ThreadState {
    /// The word for it in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::YourTurn => "your-turn",
            Self::Carry(_) => "carry",
            Self::WaitingFor(_) => "waiting",
            Self::Failed(_) => "failed",
            Self::Answered => "answered",
            Self::Open => "open",
        }
    }

    /// The words of all of them, in the order in which they are looked for.
    pub const WORDS: [&'static str; 7] = [
        "closed",
        "your-turn",
        "carry",
        "waiting",
        "failed",
        "answered",
        "open",
    ];
}

impl Thread {
    /// Its position in a listing.
    pub const fn position(&self) -> ThreadPosition {
        ThreadPosition {
            at: self.last_at,
            seq: self.last_seq,
        }
    }

    /// The next step: a task of the person of this store comes before the tasks of others.
    ///
    /// ```
    /// use crosstalk_protocol::store::{OpenQuestion, Thread, ThreadState, Wait};
    /// # use crosstalk_envelope::Timestamp;
    /// # let at = Timestamp::from_millis(0);
    /// let mut thread = Thread {
    ///     id: "T1".into(), context: None, session: None, parties: Vec::new(), messages: 1, waiting: 0, asked: 1,
    ///     first_at: at, last_at: at, last: "M1".into(), last_seq: 1, closed_at: None, has_answer: false, failed: Vec::new(), electorates: Vec::new(),
    ///     open: vec![OpenQuestion::new(Wait::Them, "CHATGPT", &[], &[])],
    /// };
    /// assert_eq!(thread.state(), ThreadState::WaitingFor(vec!["CHATGPT".into()]));
    /// thread.open.push(OpenQuestion::new(Wait::Me, "KALLE", &[], &[]));
    /// assert_eq!(thread.state(), ThreadState::YourTurn);
    /// ```
    pub fn state(&self) -> ThreadState {
        let has = |wait: Wait| self.open.iter().any(|q| q.wait == wait);
        if self.closed_at.is_some() {
            ThreadState::Closed
        } else if has(Wait::Me) {
            ThreadState::YourTurn
        } else if has(Wait::Carry) {
            ThreadState::Carry(self.awaited(Wait::Carry))
        } else if has(Wait::Them) {
            ThreadState::WaitingFor(self.awaited(Wait::Them))
        } else if !self.failed.is_empty() {
            ThreadState::Failed(self.failed.clone())
        } else if self.has_answer {
            ThreadState::Answered
        } else {
            ThreadState::Open
        }
    }

    /// Those who take part in it, without the names of electorates.
    pub fn people(&self) -> Vec<&str> {
        let is_person = |p: &&str| !self.electorates.iter().any(|e| is_same_party(e, p));
        let parties = self.parties.iter().map(String::as_str);
        parties.filter(is_person).collect()
    }

    /// The parties that its open questions of one kind ask, each once.
    pub fn awaited(&self, wait: Wait) -> Vec<String> {
        let mut names = Vec::new();
        for question in self.open.iter().filter(|q| q.wait == wait) {
            for name in &question.of {
                add_party(&mut names, name);
            }
        }
        names
    }
}

/// A message that waits for others, and for whom.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedMessage {
    /// The message.
    pub record: Record,
    /// The parties that it asks and that have not answered yet.
    pub of: Vec<String>,
}

/// The meaning of an id, or of the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceMatch {
    /// A thread.
    Thread(String),
    /// A message.
    Message(String),
    /// Several: some of them, at most ten.
    Several(Vec<String>),
    /// Nothing.
    Nothing,
}

/// Which threads are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Only those that are not closed.
    pub open: bool,
    /// Only those in which something waits for the person of this store.
    pub waiting: bool,
    /// Only those with this party.
    pub with: Option<String>,
    /// Only those that come after this position in the listing.
    pub after: Option<ThreadPosition>,
}

/// The position of a thread in a listing: by its latest message, the latest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadPosition {
    /// When the latest message came.
    pub at: Timestamp,
    /// Its position.
    pub seq: u64,
}

/// A part of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many entries at most.
    pub limit: usize,
    /// How many entries are left out at the beginning.
    pub skip: usize,
}

impl Page {
    /// The first entries.
    pub const fn first(limit: usize) -> Self {
        Self { limit, skip: 0 }
    }
}

/// Some entries, and whether there are more.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    /// The entries.
    pub items: Vec<T>,
    /// Whether there are more than these.
    pub more: bool,
}

/// The messages of a thread that put the same question to several receivers: for each round, their places among the
/// messages. They have the same sender, parent, intent and text, and a receiver each. A party that is asked the same once more
/// is asked in another round; one message alone is no round.
///
/// ```
/// use crosstalk_protocol::store::rounds;
/// assert!(rounds(&[]).is_empty());
/// ```
pub fn rounds(records: &[Record]) -> Vec<Vec<usize>> {
    type AskedText<'r> = (String, Option<&'r str>, Option<&'r str>, String);
    let mut latest: HashMap<AskedText<'_>, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (place, record) in records.iter().enumerate() {
        if record.text.is_empty() {
            continue;
        }
        let question = (
            party(&record.sender),
            record.parent.as_deref(),
            record.intent.as_deref(),
            record.document().body_text(),
        );
        let round = latest.get(&question).and_then(|at| rounds.get_mut(*at));
        let is_new = |round: &[usize]| {
            let asked = round.iter().filter_map(|other| records.get(*other));
            let mut asked = asked.map(|other| &other.receiver);
            !asked.any(|receiver| is_same_party(receiver, &record.receiver))
        };
        match round.filter(|round| is_new(round)) {
            Some(round) => round.push(place),
            None => {
                latest.insert(question, rounds.len());
                rounds.push(vec![place]);
            }
        }
    }
    rounds.retain(|round| round.len() > 1);
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(open: Vec<OpenQuestion>) -> Thread {
        let at = Timestamp::from_millis(0);
        Thread {
            id: "T1".into(),
            context: None,
            session: None,
            parties: Vec::new(),
            messages: 1,
            waiting: 0,
            asked: 0,
            first_at: at,
            last_at: at,
            last: "M1".into(),
            last_seq: 1,
            closed_at: None,
            open,
            has_answer: false,
            failed: Vec::new(),
            electorates: Vec::new(),
        }
    }

    #[test]
    fn own_turn_comes_first() {
        let asks = |wait, name: &str| OpenQuestion::new(wait, name, &[], &[]);
        let chatgpt = || asks(Wait::Them, "CHATGPT");
        let me = || asks(Wait::Me, "KALLE");
        let carry = || asks(Wait::Carry, "CLAUDE");
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        for (open, state) in [
            (vec![], ThreadState::Open),
            (vec![chatgpt(), me(), carry()], ThreadState::YourTurn),
            (
                vec![chatgpt(), carry(), carry()],
                ThreadState::Carry(names(&["CLAUDE"])),
            ),
            (
                vec![
                    chatgpt(),
                    asks(Wait::Them, "chatgpt"),
                    asks(Wait::Them, "ANN"),
                ],
                ThreadState::WaitingFor(names(&["CHATGPT", "ANN"])),
            ),
        ] {
            let found = thread(open).state();
            assert_eq!(found, state);
            assert!(ThreadState::WORDS.contains(&found.as_str()));
        }
        let answered = Thread {
            has_answer: true,
            ..thread(Vec::new())
        };
        assert_eq!(answered.state(), ThreadState::Answered);
        let failed = vec![FailedAnswer {
            of: "CLAUDE".into(),
            code: "E-ROUTE".into(),
        }];
        let failing = |open| Thread {
            failed: failed.clone(),
            has_answer: true,
            ..thread(open)
        };
        assert_eq!(
            failing(Vec::new()).state(),
            ThreadState::Failed(failed.clone())
        );
        assert_eq!(failing(vec![me()]).state(), ThreadState::YourTurn);
        let closed = Thread {
            closed_at: Some(Timestamp::from_millis(1)),
            ..thread(vec![me()])
        };
        assert_eq!(closed.state(), ThreadState::Closed);
    }
}
