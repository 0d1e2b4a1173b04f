//! A message on its way into a store: what is kept of it, where it belongs, what it settles and who acts next.

use super::answer::Asking;
use super::party::{Mine, is_placeholder, is_same_party, party};
use super::record::Record;
use crate::admitted::Admitted;
use crate::compose::is_thanks;
use crate::poll::is_result;
use crate::primer::is_example_id;
use crate::relay::DeliveryState;
use crate::verdict::VerdictWord;
use crosstalk_envelope::id::{IdForm, time_of};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::unicode::is_hidden;
use crosstalk_envelope::words;
use crosstalk_envelope::{CoreHeader, Document, Intent, Reading, Timestamp};

/// The META blocks that say how a message is to be handled, and nothing of its own.
const WITHOUT_CONTENT: [&str; 7] = [
    "routing",
    "privacy",
    "audit",
    "safety",
    "email",
    "key",
    "integrity",
];

/// How much of a NACK is kept as the reason of a failed delivery.
const MAX_REASON_CHARS: usize = 200;

/// A message as a store accepts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The envelope that is kept, exported and shown. It passes the strict reading unless a v1.0 one was incomplete;
    /// for a verified message it is what was signed.
    pub text: String,
    /// The text as received, if it differs.
    pub received: Option<String>,
    /// Whether its text may be cut off.
    pub truncated: bool,
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
    /// The message that the envelope says it answers.
    pub parent: Option<String>,
    /// The message that it is taken to answer, whatever the envelope says: a person said so, or the store found the only
    /// one that it can answer.
    pub answers: Option<String>,
    /// The message whose place and id it takes: the same one as it was filed before a person said whose it is.
    pub replaces: Option<String>,
    /// The id that the envelope carries; none if it is to be kept under an id of its own.
    pub message: Option<String>,
    /// Its subject.
    pub context: Option<String>,
    /// The intent as it was written.
    pub intent: Option<String>,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// The parties that a POLL or a BROADCAST asks.
    pub targets: Vec<String>,
    /// The text of the message.
    pub body: String,
    /// When it was written, by its own words: signed, or as its id says.
    pub written_at: Option<Timestamp>,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// The side that it comes from.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// When it came.
    pub at: Timestamp,
    /// The ids to use where the envelope has none, or none that can be used.
    pub generated: ReceivedIds,
    /// What its META blocks say about what it settles.
    blocks: BlockFacts,
}

/// What the META blocks of a message say about what it settles, read once from the document that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockFacts {
    /// None of them says anything of its own.
    are_without_content: bool,
    /// It is the result of a poll.
    is_result: bool,
    /// It says how the answer of somebody else to a poll is to be read (POL-013).
    corrects: bool,
}

impl BlockFacts {
    fn of(document: &Document<'_>) -> Self {
        let mut namespaces = document.blocks().map(|block| block.namespace());
        Self {
            are_without_content: namespaces.all(|name| WITHOUT_CONTENT.contains(&name)),
            is_result: is_result(document),
            corrects: document.meta("vote", "Corrects").is_some(),
        }
    }
}

/// How a message came, when, and whose names are the person's own.
#[derive(Clone, Debug)]
pub struct ArrivalContext<'r> {
    /// When it came.
    pub at: Timestamp,
    /// How it came.
    pub way: Way,
    /// The names and addresses of the person whose store it is.
    pub mine: &'r Mine,
    /// Fresh ids, for what the envelope lacks.
    pub generated: ReceivedIds,
}

words! {
    /// How a message came into the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Way {
        /// It was written here.
        Sent = "sent",
        /// It was pasted.
        Pasted = "pasted",
        /// It was pasted as plain text, and the envelope was made here.
        Filed = "filed",
        /// It came from an archive.
        Imported = "imported",
        /// It was handed in to a relay.
        Relayed = "relayed",
    }
}

words! {
    /// The side that a message comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Side {
        /// It was written here.
        Mine = "mine",
        /// It is for the person of this store.
        ToMe = "to-me",
        /// It is between others, and the person carries it.
        Between = "between",
    }
}

words! {
    /// The party that has to act on a message next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wait {
        /// Nobody: it wants no answer, or has it.
        Nobody = "nobody",
        /// The person of this store has to answer.
        Me = "me",
        /// The person of this store has to carry it to its receiver, and the answer back.
        Carry = "carry",
        /// The other side has to answer.
        Them = "them",
    }
}

/// Where a message may belong, as far as the store knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadHints {
    /// The thread of the message that it answers.
    pub of_parent: Option<String>,
    /// Whether the thread that it names is there.
    pub named_is_known: bool,
    /// The latest thread of its session.
    pub of_session: Option<String>,
    /// The thread of a message that answers it and came before it.
    pub of_answer: Option<String>,
}

/// What a store keeps of a message besides what its text says.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// The envelope.
    pub text: String,
    /// The text as received, if it differs.
    pub received: Option<String>,
    /// Whether its text may be cut off.
    pub truncated: bool,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// The side that it comes from.
    pub side: Side,
    /// How it came.
    pub way: Way,
    /// When it came.
    pub at: Timestamp,
    /// The id that the envelope carries, if it is kept under that one.
    pub message: Option<String>,
    /// The message that it is taken to answer, whatever the envelope says.
    pub answers: Option<String>,
    /// The ids to use where the envelope has none.
    pub generated: ReceivedIds,
}

impl Arrival {
    /// Makes the record of an envelope.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading, Timestamp, reply::ReceivedIds};
    /// use crosstalk_protocol::store::{Arrival, Mine, ArrivalContext, Side, Wait, Way};
    /// use crosstalk_protocol::{Admitted, VerifyContext, Trust, verify};
    /// let text = "[[CLAUDE→KALLE v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: auth\n\
    ///             intent: QUESTION\nbody: |\n  Which port?\nsig: none\n[[END]]\n";
    /// let document = Document::parse(text, Reading::Paste);
    /// let at = Timestamp::parse("2025-10-09T16:00:04Z").unwrap();
    /// let verdict = verify(&document, &Trust::default(), &VerifyContext::at(at));
    /// let generated = ReceivedIds { thread: "T".into(), message: "M".into() };
    /// let mine = Mine::new(["Kalle".into()]);
    /// let admitted = Admitted::new(&document, verdict);
    /// let arrival = Arrival::new(&admitted, ArrivalContext { at, way: Way::Pasted, mine: &mine, generated });
    /// assert_eq!((arrival.side, arrival.wait()), (Side::ToMe, Wait::Me));
    /// assert_eq!(arrival.text, text);
    /// ```
    pub fn new(admitted: &Admitted, receipt: ArrivalContext<'_>) -> Self {
        let (document, verdict) = (admitted.document(), admitted.verdict());
        let holds = verdict.word().is_signed();
        let mut arrival = Self::of(
            document,
            StoredMessage {
                text: document.source().to_owned(),
                received: admitted.received().map(str::to_owned),
                truncated: admitted.is_truncated(),
                verdict: verdict.word(),
                pkid: verdict.pkid().filter(|_| holds).map(str::to_owned),
                side: Side::Between,
                way: receipt.way,
                at: receipt.at,
                message: carried_id(document, receipt.way),
                answers: None,
                generated: receipt.generated,
            },
        );
        let is_for = |a: &str| receipt.mine.has(a);
        let is_archive = matches!(receipt.way, Way::Imported | Way::Filed);
        if receipt.way == Way::Sent || (is_archive && is_for(&arrival.sender)) {
            arrival.side = Side::Mine;
        } else if is_for(&arrival.receiver) || arrival.targets.iter().any(|t| is_for(t)) {
            arrival.side = Side::ToMe;
        }
        arrival
    }

    /// The arrival of a message that is kept already. The strict reading of a kept text is the one that was admitted, so
    /// that nothing in it means something else than it did then; its id is the one that it is kept under.
    ///
    /// ```
    /// use crosstalk_envelope::{Timestamp, reply::ReceivedIds};
    /// use crosstalk_protocol::store::{Arrival, StoredMessage, Side, Way};
    /// let kept = StoredMessage {
    ///     text: "[[A→B v1]]\nuser: a\nthread: T1\ncontext: c\nintent: REQUEST\nbody: |\n  Go.\nsig: none\n[[END]]\n".into(),
    ///     received: None,
    ///     truncated: false,
    ///     verdict: crosstalk_protocol::VerdictWord::Unsigned,
    ///     pkid: None,
    ///     side: Side::Between,
    ///     way: Way::Pasted,
    ///     at: Timestamp::from_millis(0),
    ///     message: None,
    ///     answers: None,
    ///     generated: ReceivedIds { thread: "T".into(), message: "M".into() },
    /// };
    /// let arrival = Arrival::recall(kept);
    /// assert_eq!((arrival.thread.as_deref(), arrival.id(), arrival.body.as_str()), (Some("T1"), "M", "Go."));
    /// ```
    pub fn recall(kept: StoredMessage) -> Self {
        let text = kept.text.clone();
        Self::of(&Document::parse(&text, Reading::Strict), kept)
    }

    /// The arrival of a message that was read already; `kept` has its text. In a paste, text that names nothing where an
    /// id belongs counts as absent ([`is_placeholder`]); a relay keeps every id as it came.
    pub fn of(reading: &Document<'_>, kept: StoredMessage) -> Self {
        let envelope = reading.envelope();
        let header = |core| reading.header(core).map(str::to_owned);
        let id = |core| header(core).filter(|id| names_something(id, kept.way));
        let targets = envelope.routing().target_list();
        let holds = kept.verdict.is_signed();
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
            thread: id(CoreHeader::Thread),
            parent: id(CoreHeader::Parent),
            answers: kept.answers,
            replaces: None,
            message: kept.message,
            context: header(CoreHeader::Context),
            intent: header(CoreHeader::Intent),
            meaning: envelope.meaning(),
            targets: targets.into_iter().map(Into::into).collect(),
            body: reading.body_text(),
            // Ids that are made from what was said have no time in them.
            written_at: signed_at
                .filter(|_| holds)
                .or_else(own_time)
                .filter(|t| t.as_millis() > 0),
            received: kept.received,
            truncated: kept.truncated,
            verdict: kept.verdict,
            pkid: kept.pkid,
            side: kept.side,
            way: kept.way,
            at: kept.at,
            generated: kept.generated,
            text: kept.text,
            blocks: BlockFacts::of(reading),
        }
    }

    /// The id under which it is kept.
    pub fn id(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.generated.message)
    }

    /// Its id, and the thread that is generated for it if it names none and belongs to no other.
    pub fn ids(&self) -> ReceivedIds {
        ReceivedIds {
            thread: self.generated.thread.clone(),
            message: self.id().to_owned(),
        }
    }

    /// The message that it answers: what it is taken to answer, else what its envelope says.
    pub fn answered(&self) -> Option<&str> {
        self.answers.as_deref().or(self.parent.as_deref())
    }

    /// Whether it was written here, and does not only say so: an archive can say anything.
    pub fn is_written_here(&self) -> bool {
        self.side == Side::Mine && !matches!(self.way, Way::Imported | Way::Filed)
    }

    /// Whether its sender is in its thread by it alone: it was written here, or a person's store verified it. At a relay a
    /// signature tells who wrote it, and not that they belong to the conversation.
    pub fn joins_alone(&self) -> bool {
        let is_verified = self.verdict == VerdictWord::Verified && self.way != Way::Relayed;
        self.is_written_here() || is_verified
    }

    /// Whether its signature holds, whoever vouches for the key.
    pub fn holds(&self) -> bool {
        self.verdict.is_signed()
    }

    /// Whether ids in it may be made up: models write ids that nobody gave out. A signed message is taken at its word, and
    /// in an archive answers may come before their questions.
    pub fn may_make_up(&self) -> bool {
        self.way == Way::Pasted && !self.holds()
    }

    /// The thread that it belongs to: that of the message it answers, else the one it names, else that of its session,
    /// else that of an answer to it that came before, else a new one. If the session is known, a paste that is not signed
    /// names no thread with text that has not the form of an id, or that an answer may have made up
    /// ([`Self::may_make_up`]) and nobody knows. Ids and sessions that such a paste copied from the example of the primer name
    /// nothing: two chats that copy them have two conversations.
    pub fn choose_thread(&self, known: &ThreadHints) -> String {
        let answers = self.meaning.is_some_and(Intent::answers) || self.reads_as_answer();
        let is_made_up = |thread: &str| {
            let is_guess = answers && !known.named_is_known;
            self.may_make_up() && (is_guess || IdForm::of(thread) == IdForm::Opaque)
        };
        let is_own = |id: &&str| !self.may_make_up() || !is_example_id(id);
        let of_session = known.of_session.as_deref();
        let of_session = of_session.filter(|_| self.session.as_deref().is_some_and(|s| is_own(&s)));
        let named = self.thread.as_deref().filter(is_own);
        let named = named.filter(|t| of_session.is_none() || !is_made_up(t));
        let chosen = known.of_parent.as_deref().or(named);
        let chosen = chosen.or(of_session);
        let chosen = chosen.or(known.of_answer.as_deref());
        chosen.unwrap_or(&self.generated.thread).to_owned()
    }

    /// Whether its sender has a part in another message: sent it, is named by it, or is one of those who got it.
    pub fn has_part_in(&self, other: &Self, got: &[&str]) -> bool {
        let named = [&other.sender, &other.receiver].into_iter();
        let named = named.chain(&other.targets).map(String::as_str);
        let mut parties = named.chain(got.iter().copied());
        parties.any(|party| is_same_party(party, &self.sender))
    }

    /// Adds those who got it in place of its receiver: they take part as if it named them. A POLL and a BROADCAST have their
    /// recipients as targets already, and wait for as many answers.
    pub fn add_recipients<'r>(&mut self, recipients: impl IntoIterator<Item = &'r str>) {
        if matches!(self.meaning, Some(Intent::Poll | Intent::Broadcast)) {
            return;
        }
        for address in recipients {
            let is_named = |named: &String| is_same_party(named, address);
            let is_known = is_named(&self.receiver) || self.targets.iter().any(is_named);
            if !address.is_empty() && !is_known {
                self.targets.push(address.to_owned());
            }
        }
    }

    /// What an ACK or a NACK says about the delivery of the message that it answers: the state, and why it was rejected.
    pub fn reports_delivery(&self) -> Option<(DeliveryState, Option<String>)> {
        match self.meaning.filter(|_| self.counts())? {
            Intent::Ack => Some((DeliveryState::Acknowledged, None)),
            Intent::Nack => {
                let said = self.body.lines().find(|l| !l.trim().is_empty());
                let said = said.unwrap_or_default().trim().chars();
                let said: String = said.take(MAX_REASON_CHARS).collect();
                let reason = match said.is_empty() {
                    true => "NACK".to_owned(),
                    false => format!("NACK: {said}"),
                };
                Some((DeliveryState::Failed, Some(reason)))
            }
            _ => None,
        }
    }

    /// Whether what it says may change what is known about others. A message that must not be acted on changes nothing.
    pub fn counts(&self) -> bool {
        !matches!(
            self.verdict,
            VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked
        )
    }

    /// The party that has to act on it next, until it is settled. A chat that was exported is over: nobody waits for what
    /// was asked in it. A pasted REQUEST that only says thanks for an answer asks nothing, whatever the model called it.
    pub fn wait(&self) -> Wait {
        let asks = self.meaning.is_some_and(Intent::asks) && !self.only_thanks();
        match self.side {
            _ if !asks || !self.counts() || self.way == Way::Filed => Wait::Nobody,
            Side::Mine => Wait::Them,
            Side::ToMe => Wait::Me,
            Side::Between => Wait::Carry,
        }
    }

    /// Whether it is a pasted REQUEST that answers something, and says nothing but thanks.
    fn only_thanks(&self) -> bool {
        self.meaning == Some(Intent::Request)
            && self.answered().is_some()
            && self.may_make_up()
            && is_thanks(&self.body)
    }

    /// Whether it reads as an answer: its intent says so; it was pasted and has no intent that anybody knows, since models
    /// forget the word and translate it; or a person indexed it as the answer to a message. A message that was written here
    /// is taken at its word, and so is a private intent (`X-…`).
    pub fn reads_as_answer(&self) -> bool {
        let is_own = |intent: &str| {
            intent
                .get(..2)
                .is_some_and(|x| x.eq_ignore_ascii_case("x-"))
        };
        let has_own = self.intent.as_deref().is_some_and(is_own);
        let lacks_intent = self.meaning.is_none() && !has_own && self.may_make_up();
        let is_filed_as_one = self.answers.is_some() && !self.is_written_here();
        self.meaning == Some(Intent::Respond) || lacks_intent || is_filed_as_one
    }

    /// Whether it asks nothing, whatever its intent says: a person filed it as the answer to a question, and its sender was
    /// asked. Models copy the intent of the question.
    pub fn answers_instead_of_asking(&self, question: &Asking<'_>) -> bool {
        self.answers.is_some() && !self.is_written_here() && self.settles_question(question)
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
        let ends = ends || self.reads_as_answer();
        ends && self.counts() && !self.corrects() && !self.says_nothing()
    }

    /// Whether it is an answer with nothing in it: no text, no vote, no attachment. Nobody answers by that.
    pub fn says_nothing(&self) -> bool {
        let is_blank = |c: char| c.is_whitespace() || is_hidden(c);
        self.reads_as_answer() && self.blocks.are_without_content && self.body.chars().all(is_blank)
    }

    /// Whether it is the result of a poll that was counted here: the poll waits for nobody any more.
    pub fn ends_poll(&self) -> bool {
        self.is_written_here() && self.blocks.is_result
    }

    /// Whether it says how the answer of somebody else to a poll is to be read (POL-013): nobody answers by that.
    fn corrects(&self) -> bool {
        self.meaning == Some(Intent::Respond) && self.blocks.corrects
    }

    /// Whether it answers, though it names no message, the only one of its thread that waits for its sender: v1.0
    /// answers name none, and models name some that nobody knows ([`Self::may_make_up`]).
    pub fn answers_unnamed(&self, parent_is_known: bool) -> bool {
        let names_none = match self.parent {
            None => true,
            Some(_) => self.may_make_up() && !parent_is_known,
        };
        let is_answer = self.reads_as_answer() && self.counts();
        is_answer && names_none && self.answers.is_none()
    }

    /// How many different senders have to answer until it is settled: a POLL waits for all whom it asks, and one that
    /// asks the person of this store for that person only.
    pub fn answers_needed(&self) -> usize {
        let mut asked: Vec<String> = self.targets.iter().map(|t| party(t)).collect();
        asked.sort_unstable();
        asked.dedup();
        match (self.meaning, self.side) {
            (Some(Intent::Poll), Side::Mine | Side::Between) => asked.len().max(1),
            _ => 1,
        }
    }

    /// Whether more is known about a message by this arrival than by an earlier one of the same content: a signature
    /// holds, or somebody vouches for its key now.
    pub fn improves(&self, earlier: VerdictWord) -> bool {
        self.verdict.is_signed() && self.verdict < earlier
    }

    /// Whether it takes the id of a message with other content that is kept and was not written here: a verified one
    /// does, from one that is not; and one that counts, from one that must not be acted on.
    pub fn displaces(&self, kept: VerdictWord, side: Side) -> bool {
        let is_better = self.verdict == VerdictWord::Verified && kept != VerdictWord::Verified;
        let is_junk = matches!(
            kept,
            VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked
        );
        side != Side::Mine && (is_better || (self.counts() && is_junk))
    }

    /// Whether it takes the id of a kept message with other content: that one is of the same sender, is not signed, and may be
    /// cut off or says nothing; and this one is whole.
    pub fn completes(&self, kept: &Self) -> bool {
        let is_open = kept.verdict == VerdictWord::Unsigned && kept.side != Side::Mine;
        let is_whole = !self.truncated && !self.says_nothing() && self.counts();
        is_open
            && is_whole
            && is_same_party(&kept.sender, &self.sender)
            && (kept.truncated || kept.says_nothing())
    }

    /// Whether it begins with the words of a kept message, however the lines break: what it completes need not be kept beside
    /// it.
    pub fn holds_text_of(&self, kept: &Self) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
        words(&self.body).starts_with(&words(&kept.body))
    }

    /// Whether a message that was written here came out of an inbox that the person reads: then the person has to answer it,
    /// under the address that it is for. A message to several waits for the others as before.
    pub fn comes_back(&self, kept: Side) -> bool {
        kept == Side::Mine
            && self.side == Side::ToMe
            && self.way == Way::Relayed
            && self.targets.is_empty()
    }

    /// Whether it is the whole of a kept message that may be cut off, though no id tells that: what stands above the cut is
    /// the same.
    pub fn continues(&self, kept: &Self) -> bool {
        let head = |a: &Self| {
            let ids = [&a.session, &a.thread, &a.parent].map(Option::clone);
            (party(&a.receiver), a.intent.clone(), ids)
        };
        kept.truncated
            && self.completes(kept)
            && head(self) == head(kept)
            && self.holds_text_of(kept)
    }

    /// Whether the only ids in it are those of the example that taught its sender the format: then the same text may answer
    /// two questions.
    pub fn copies_example(&self) -> bool {
        let ids = [&self.session, &self.thread, &self.parent];
        let mut ids = ids.into_iter().flatten().peekable();
        self.message.is_none()
            && self.may_make_up()
            && ids.peek().is_some()
            && ids.all(|id| is_example_id(id))
    }

    /// Whether it is an answer under the id of the message that it answers: models copy the id of the question. A
    /// signed message is taken at its word.
    pub fn copies_id_of(&self, question: &Record) -> bool {
        let is_answer = self.meaning.is_some_and(Intent::answers) || self.reads_as_answer();
        let names_it = self.parent.as_deref().is_none_or(|p| p == question.id);
        let may_answer = question.asking().asks(&self.sender) || question.side == Side::Mine;
        is_answer && names_it && may_answer && self.may_make_up()
    }

    /// Whether it ends its thread, if it was written here or its sender is a party of the thread already.
    pub fn closes(&self) -> bool {
        self.meaning == Some(Intent::Close) && self.counts()
    }

    /// Whether a thread that was closed goes on with it: something other than a CLOSE was written here.
    pub fn reopens(&self) -> bool {
        self.side == Side::Mine && self.meaning != Some(Intent::Close) && self.counts()
    }

    /// Whether it ends, where it ends its thread, also what verified messages wait for.
    pub fn is_firm(&self) -> bool {
        self.side == Side::Mine || self.verdict == VerdictWord::Verified
    }
}

/// The id under which an envelope wants to be kept: the one that it carries, if that names something.
pub fn carried_id(document: &Document<'_>, way: Way) -> Option<String> {
    let id = document.header(CoreHeader::Message)?;
    names_something(id, way).then(|| id.to_owned())
}

/// Whether a value where an id belongs is one: a relay takes every id as it is, and people paste placeholders.
fn names_something(id: &str, way: Way) -> bool {
    way == Way::Relayed || !is_placeholder(id)
}
