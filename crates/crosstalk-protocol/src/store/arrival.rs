//! A message on its way into a store: what is kept of it, where it belongs, what it settles and who acts next.

use crate::verdict::{Verdict, Word};
use crosstalk_envelope::id::{IdForm, time_of};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::{CoreHeader, Document, Intent, Reading, Timestamp};

/// A message as a store takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The envelope that is kept, exported and shown. It passes the strict reading unless a v1.0 one was incomplete;
    /// for a verified message it is what was signed.
    pub text: String,
    /// What came in, where that is another text.
    pub received: Option<String>,
    /// The digest of the canonical form of `text`.
    pub digest: Digest,
    /// The left side of the direction line.
    pub sender: String,
    /// The right side of the direction line.
    pub receiver: String,
    /// Who speaks.
    pub user: Option<String>,
    /// The v1.0 conversation.
    pub session: Option<String>,
    /// The conversation that the envelope names.
    pub thread: Option<String>,
    /// The message that it answers.
    pub parent: Option<String>,
    /// The id that the envelope carries.
    pub message: Option<String>,
    /// What it is about.
    pub context: Option<String>,
    /// The intent as it was written.
    pub intent: Option<String>,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// Whom a POLL or a BROADCAST asks.
    pub targets: Vec<String>,
    /// The text of the message.
    pub body: String,
    /// When it was written, by its own words: signed, or as its id says.
    pub written_at: Option<Timestamp>,
    /// What was found out about its signature.
    pub verdict: Word,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// Whose it is.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// When it came.
    pub at: Timestamp,
    /// The ids to use where the envelope has none, or none that can be used.
    pub spare: ReceivedIds,
}

/// How a message came, when, and whose names are the person's own.
#[derive(Clone, Debug)]
pub struct Receipt<'r> {
    /// When it came.
    pub at: Timestamp,
    /// How it came.
    pub way: Way,
    /// The names and addresses of the person whose store it is.
    pub mine: &'r Mine,
    /// Fresh ids, for what the envelope lacks.
    pub spare: ReceivedIds,
}

/// How a message came into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was written here.
    Sent,
    /// It was pasted.
    Pasted,
    /// It was pasted as plain text, and the envelope was made here.
    Filed,
    /// It came from an archive.
    Imported,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Sent, Self::Pasted, Self::Filed, Self::Imported];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Pasted => "pasted",
            Self::Filed => "filed",
            Self::Imported => "imported",
        }
    }

    /// The way that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.as_str() == word)
    }
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It was written here.
    Mine,
    /// It is for the person of this store.
    ToMe,
    /// It is between others, and the person carries it.
    Between,
}

impl Side {
    /// All sides.
    pub const ALL: [Self; 3] = [Self::Mine, Self::ToMe, Self::Between];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mine => "mine",
            Self::ToMe => "to-me",
            Self::Between => "between",
        }
    }

    /// The side that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// Who has to act on a message next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nobody: it wants no answer, or has it.
    Nobody,
    /// The person of this store has to answer.
    Me,
    /// The person of this store has to carry it to its receiver, and the answer back.
    Carry,
    /// The other side has to answer.
    Them,
}

impl Wait {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nobody, Self::Me, Self::Carry, Self::Them];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Me => "me",
            Self::Carry => "carry",
            Self::Them => "them",
        }
    }

    /// The one that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.as_str() == word)
    }
}

/// The names and addresses of the person whose store it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mine {
    addresses: Vec<String>,
}

impl Mine {
    /// These names and addresses.
    pub fn new(addresses: impl IntoIterator<Item = String>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
        }
    }

    /// Whether an address is one of them.
    pub fn has(&self, address: &str) -> bool {
        self.addresses.iter().any(|a| is_same_party(a, address))
    }
}

/// Whether two addresses name the same party: URLs as they are written, simple names in any ASCII case.
pub fn is_same_party(one: &str, other: &str) -> bool {
    one == other || party(one) == party(other)
}

/// An address in the form in which equal parties are equal: a simple name in upper case, anything else as it is.
pub fn party(address: &str) -> String {
    match is_name(address) {
        true => address.to_ascii_uppercase(),
        false => address.to_owned(),
    }
}

fn is_name(address: &str) -> bool {
    crosstalk_envelope::Address::split(address)
        .scheme()
        .is_none()
}

/// Where a message may belong, as far as the store knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadHints {
    /// The thread of the message that it answers.
    pub of_parent: Option<String>,
    /// The latest thread of its session.
    pub of_session: Option<String>,
    /// The thread of a message that answers it and came before it.
    pub of_answer: Option<String>,
}

/// What a store keeps of a message besides what its text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The envelope.
    pub text: String,
    /// What came in, where that is another text.
    pub received: Option<String>,
    /// What was found out about its signature.
    pub verdict: Word,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// Whose it is.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// When it came.
    pub at: Timestamp,
    /// The ids to use where the envelope has none.
    pub spare: ReceivedIds,
}

impl Arrival {
    /// What is kept of an envelope.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading, Timestamp, reply::ReceivedIds};
    /// use crosstalk_protocol::store::{Arrival, Mine, Receipt, Side, Wait, Way};
    /// use crosstalk_protocol::{Question, Trust, verify};
    /// let text = "[[CLAUDE→KALLE v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: auth\n\
    ///             intent: QUESTION\nbody: |\n  Which port?\nsig: none\n[[END]]\n";
    /// let document = Document::parse(text, Reading::Paste);
    /// let at = Timestamp::parse("2025-10-09T16:00:04Z").unwrap();
    /// let verdict = verify(&document, &Trust::default(), &Question::at(at));
    /// let spare = ReceivedIds { thread: "T".into(), message: "M".into() };
    /// let mine = Mine::new(["Kalle".into()]);
    /// let arrival = Arrival::new(&document, &verdict, Receipt { at, way: Way::Pasted, mine: &mine, spare });
    /// assert_eq!((arrival.side, arrival.wait()), (Side::ToMe, Wait::Me));
    /// assert_eq!(arrival.text, text);
    /// ```
    pub fn new(document: &Document<'_>, verdict: &Verdict, receipt: Receipt<'_>) -> Self {
        let text = kept(document, verdict);
        let holds = matches!(verdict.word(), Word::Verified | Word::FirstContact);
        let received = (document.source().trim_end() != text.trim_end()).then(|| document.source());
        let mut arrival = Self::recall(Kept {
            received: received.map(str::to_owned),
            verdict: verdict.word(),
            pkid: verdict.pkid().filter(|_| holds).map(str::to_owned),
            side: Side::Between,
            way: receipt.way,
            at: receipt.at,
            spare: receipt.spare,
            text,
        });
        let is_for = |a: &str| receipt.mine.has(a);
        if receipt.way == Way::Sent {
            arrival.side = Side::Mine;
        } else if is_for(&arrival.receiver) || arrival.targets.iter().any(|t| is_for(t)) {
            arrival.side = Side::ToMe;
        }
        arrival
    }

    /// The arrival of a message that is kept already: what its text says is read again.
    ///
    /// ```
    /// use crosstalk_envelope::{Timestamp, reply::ReceivedIds};
    /// use crosstalk_protocol::store::{Arrival, Kept, Side, Way};
    /// let kept = Kept {
    ///     text: "[[A→B v1]]\nuser: a\nthread: T1\ncontext: c\nintent: REQUEST\nbody: |\n  Go.\nsig: none\n[[END]]\n".into(),
    ///     received: None,
    ///     verdict: crosstalk_protocol::Word::Unsigned,
    ///     pkid: None,
    ///     side: Side::Between,
    ///     way: Way::Pasted,
    ///     at: Timestamp::from_millis(0),
    ///     spare: ReceivedIds { thread: "T".into(), message: "M".into() },
    /// };
    /// let arrival = Arrival::recall(kept);
    /// assert_eq!((arrival.thread.as_deref(), arrival.id(), arrival.body.as_str()), (Some("T1"), "M", "Go."));
    /// ```
    pub fn recall(kept: Kept) -> Self {
        let reading = Document::parse(&kept.text, Reading::Paste);
        let envelope = reading.envelope();
        let header = |core| reading.header(core).map(str::to_owned);
        let targets = envelope.routing().target_list();
        let holds = matches!(kept.verdict, Word::Verified | Word::FirstContact);
        let signed_at = envelope.integrity().and_then(|i| i.signed_at);
        let own_time = || time_of(envelope.message?);
        Self {
            digest: reading
                .digest()
                .unwrap_or_else(|_| Digest::of(kept.text.as_bytes())),
            sender: reading.sender().to_owned(),
            receiver: reading.receiver().to_owned(),
            user: header(CoreHeader::User),
            session: header(CoreHeader::Session),
            thread: header(CoreHeader::Thread),
            parent: header(CoreHeader::Parent),
            message: header(CoreHeader::Message),
            context: header(CoreHeader::Context),
            intent: header(CoreHeader::Intent),
            meaning: envelope.meaning(),
            targets: targets.into_iter().map(Into::into).collect(),
            body: reading.body_text(),
            written_at: signed_at.filter(|_| holds).or_else(own_time),
            received: kept.received,
            verdict: kept.verdict,
            pkid: kept.pkid,
            side: kept.side,
            way: kept.way,
            at: kept.at,
            spare: kept.spare,
            text: kept.text,
        }
    }

    /// The id under which it is kept.
    pub fn id(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.spare.message)
    }

    /// Who answers for its content, for finding a message again: the key that signed it, or nobody. A copy that nobody
    /// signed never stands in the way of a signed one.
    pub fn peer(&self) -> &str {
        self.pkid.as_deref().unwrap_or("")
    }

    /// The thread that it belongs to: that of the message it answers, else the one it names, else that of its session,
    /// else that of an answer to it that came before, else a new one. A thread that is no id (`<as above>`) names nothing
    /// if the session is known.
    pub fn choose_thread(&self, known: &ThreadHints) -> String {
        let named = self.thread.as_deref();
        let is_id = named.is_some_and(|t| IdForm::of(t) != IdForm::Opaque);
        let named = named.filter(|_| is_id || known.of_session.is_none());
        let chosen = known.of_parent.as_deref().or(named);
        let chosen = chosen.or(known.of_session.as_deref());
        let chosen = chosen.or(known.of_answer.as_deref());
        chosen.unwrap_or(&self.spare.thread).to_owned()
    }

    /// Whether what it says may change what is known about others. A message that must not be acted on changes nothing.
    pub fn counts(&self) -> bool {
        !matches!(
            self.verdict,
            Word::Damaged | Word::NotVerified | Word::Revoked
        )
    }

    /// Who has to act on it next, as long as nothing has settled it.
    pub fn wait(&self) -> Wait {
        let asks = matches!(
            self.meaning,
            Some(Intent::Request | Intent::Poll | Intent::Escalate | Intent::Handoff)
        );
        match self.side {
            _ if !asks || !self.counts() => Wait::Nobody,
            Side::Mine => Wait::Them,
            Side::ToMe => Wait::Me,
            Side::Between => Wait::Carry,
        }
    }

    /// Whether it settles the message that it answers: an answer, a refusal, or the word that others take over.
    pub fn settles(&self) -> bool {
        let ends = matches!(
            self.meaning,
            Some(
                Intent::Respond
                    | Intent::Nack
                    | Intent::Error
                    | Intent::Escalate
                    | Intent::Handoff
                    | Intent::Close
            )
        );
        ends && self.counts()
    }

    /// Whether it settles, though it names no message, the only one of its thread that waits for its sender: v1.0
    /// answers name none.
    pub fn answers_unnamed(&self) -> bool {
        self.meaning == Some(Intent::Respond) && self.parent.is_none() && self.counts()
    }

    /// How many different senders have to answer until it is settled: a POLL waits for all whom it asks.
    pub fn answers_needed(&self) -> usize {
        let mut asked: Vec<String> = self.targets.iter().map(|t| party(t)).collect();
        asked.sort_unstable();
        asked.dedup();
        match self.meaning {
            Some(Intent::Poll) => asked.len().max(1),
            _ => 1,
        }
    }

    /// Whether an answer from here is enough, whoever else is asked: a POLL that asks the person of this store waits for
    /// that person only.
    pub fn own_answer_is_enough(&self) -> bool {
        self.side == Side::ToMe
    }

    /// Whether more is known about a message by this arrival than by an earlier one of the same content: a signature
    /// holds, or somebody vouches for its key now.
    pub fn improves(&self, earlier: Word) -> bool {
        matches!(self.verdict, Word::Verified | Word::FirstContact) && self.verdict < earlier
    }

    /// Whether it ends its thread.
    pub fn closes(&self) -> bool {
        self.meaning == Some(Intent::Close) && self.counts()
    }
}

/// The text that is kept: as it came, if the strict reading takes it; what was signed, if that is known; else repaired.
fn kept(document: &Document<'_>, verdict: &Verdict) -> String {
    let source = document.source();
    let mut strict = Document::parse(source, Reading::Strict);
    strict.check();
    let as_came = strict.is_accepted().then(|| source.to_owned());
    match verdict.verified() {
        Some(verified) => as_came
            .filter(|_| strict.canonical().is_ok_and(|c| c == verified.canonical()))
            .unwrap_or_else(|| verified.to_envelope()),
        None => as_came.unwrap_or_else(|| document.to_well_formed()),
    }
}
