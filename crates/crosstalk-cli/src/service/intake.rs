//! The intake of messages: found in a text, verified, threaded and kept; what became of each is told.
//!
//! ```text
//! reader   verifies a message, and learns of keys      plain   an answer without an envelope
//! pick     which of several questions an answer means  report  what is told about a message
//! ```

mod pick;
mod plain;
mod reader;
mod report;

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::report::PastedReport;
use crate::service::dns::DnsOptions;
use crate::service::relay::remote::MessageView;
use crate::service::relocate::relocate;
use crate::service::workspace::Workspace;
use crate::service::{consent, lookup};
use crate::{json, view};
use crosstalk_envelope::json::finding;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{CoreHeader, Diagnostic, Document, ErrorCode, LineIndex, Reading};
use crosstalk_protocol::consent::{Policy, RevocationResult};
use crosstalk_protocol::store::{Arrival, Moved, Record, Side, StoreOutcome, Way, is_placeholder};
use crosstalk_protocol::{VerdictWord, is_primer_example, readdressed};
use crosstalk_store::SqliteStore;
pub(crate) use plain::{asked, asks};
pub(crate) use reader::{Incoming, Taken};
use report::IntakeResult;
use serde_json::Value;

/// The ids that a relay assigned to a message, which others know it by.
#[derive(Clone, Debug)]
pub(crate) struct AssignedIds {
    ids: ReceivedIds,
    /// Whether it came out of an inbox of the person.
    is_mine: bool,
}

impl AssignedIds {
    /// The ids that a relay gave a message; nothing if its id is none.
    pub(crate) fn of(waiting: &MessageView) -> Option<Self> {
        (!is_placeholder(&waiting.id)).then(|| Self {
            ids: ReceivedIds {
                thread: waiting.thread.clone(),
                message: waiting.id.clone(),
            },
            is_mine: false,
        })
    }

    /// The same of a message that came out of an inbox of the person, or did not.
    pub(crate) fn in_inbox(mut self, is_mine: bool) -> Self {
        self.is_mine = is_mine;
        self
    }

    /// Files a message under the id that others know it by, for the one who fetched it.
    fn apply(&self, arrival: &mut Arrival) {
        if !is_placeholder(&self.ids.thread) {
            arrival.generated.thread.clone_from(&self.ids.thread);
        }
        arrival.generated.message.clone_from(&self.ids.message);
        if arrival.message.as_deref() != Some(self.ids.message.as_str()) {
            arrival.message = None;
        }
        if self.is_mine && arrival.side == Side::Between {
            arrival.side = Side::ToMe;
        }
    }
}

/// Keeps the messages of texts, and tells about them: to people at once, to programs at the end.
pub(crate) struct TextIntake<'a> {
    workspace: &'a Workspace,
    look: &'a DnsOptions,
    pub(crate) way: Way,
    pub(crate) new_id: bool,
    /// The message that everything answers, because a person says so.
    pub(crate) answers: Option<String>,
    /// Whether what is here already is moved to that message: only if the person named it.
    moves_known: bool,
    /// The sender of unsigned text, named by the person.
    pub(crate) from: Option<String>,
    /// The ids that the relay gave the message.
    pub(crate) given: Option<AssignedIds>,
    unfold: bool,
    /// Nothing is said about what is kept.
    pub(crate) quiet: bool,
    /// Nothing is said about what was known.
    pub(crate) skips_known: bool,
    /// Keeps a message that may be cut off.
    pub(crate) accept_truncated: bool,
    /// Each repair is told by itself.
    pub(crate) verbose: bool,
    /// Whether the person is asked which question an answer means.
    pub(crate) may_ask: bool,
    /// The messages that are new here.
    pub(crate) kept: Vec<Record>,
    pub(crate) messages: Vec<PastedReport>,
    pub(crate) errors: Vec<Value>,
}

impl<'a> TextIntake<'a> {
    /// Keeps what is pasted.
    pub(crate) fn new(workspace: &'a Workspace, look: &'a DnsOptions, unfold: bool) -> Self {
        Self {
            workspace,
            look,
            way: Way::Pasted,
            new_id: false,
            answers: None,
            moves_known: false,
            from: None,
            given: None,
            unfold,
            quiet: false,
            skips_known: false,
            accept_truncated: false,
            verbose: false,
            may_ask: false,
            kept: Vec::new(),
            messages: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Keeps the messages of one text. A text that a relay handed out is read as the relay read it.
    pub(crate) fn keep(&mut self, console: &mut Console, input: &Input) -> Result<Exit, Failure> {
        let reading = match self.way {
            Way::Relayed => Reading::Strict,
            _ => Reading::Paste,
        };
        let (text, mut scan) = input.scan(reading);
        if self.accept_truncated {
            scan = scan.accept_truncated();
        }
        let lines = LineIndex::new(&text);
        // A message that was cut off can be kept, and one that was read is.
        let is_unreadable = scan.documents.is_empty() && scan.truncated.is_empty();
        let refused = (scan.rejected.as_slice(), is_unreadable);
        let mut exit = self.refused(console, input, (&text, &lines), refused)?;
        if !scan.truncated.is_empty() && !self.quiet {
            console.tell(&self.truncated_hint(input))?;
        }
        if scan.documents.is_empty() {
            return Ok(exit);
        }
        let mut incoming = Incoming::new(self.workspace, self.look)?;
        // The example of the primer comes along when a whole chat is copied.
        let is_message = |d: &&Document<'_>| !is_primer_example(d);
        let documents: Vec<&Document<'_>> = scan.documents.iter().filter(is_message).collect();
        if documents.is_empty() {
            console.talk("The text has only the example of the primer.\n")?;
            return Ok(exit);
        }
        let mut store = self.workspace.store(console)?;
        let mut taken: Vec<Taken> = Vec::new();
        let mut replaced: Vec<String> = Vec::new();
        for document in &documents {
            let fixed = self.readdressed(&store, document)?;
            let before = match &fixed {
                Some(_) => filed_as_it_came(&store, document)?,
                None => None,
            };
            let read = fixed.as_ref().unwrap_or(document);
            let mut one = incoming.take(console, read, self.way)?;
            one.arrival.answers.clone_from(&self.answers);
            if let (Some(given), [_]) = (&self.given, documents.as_slice()) {
                given.apply(&mut one.arrival);
            }
            one.arrival.replaces = before.map(|record| record.id);
            replaced.extend(one.arrival.replaces.clone());
            taken.push(one);
        }
        let outcomes = self.accept(console, &mut store, &mut taken, &incoming.policy)?;
        let new_id = self.again_with("--new-id", input);
        let is_all_mine = are_mine(&store, &outcomes)?;
        let all = documents.iter().zip(&taken).zip(&outcomes);
        for (number, ((document, taken), outcome)) in all.enumerate() {
            let (outcome, revoked) = match outcome {
                Ok((outcome, revoked)) => (outcome, revoked),
                Err(refusal) => {
                    exit = exit.worst(refusal.code.into());
                    match self.quiet {
                        true => self.messages.push(report::refused(taken, refusal)?),
                        false => report::show_refused(console, document, refusal)?,
                    }
                    continue;
                }
            };
            let learned = match outcome {
                StoreOutcome::Conflict { .. } => None,
                _ => incoming.learn(&taken.admitted)?,
            };
            exit = exit.worst(exit_of(outcome, taken.admitted.verdict().word()));
            let moved = self.file_with_named(&mut store, outcome)?;
            let record = match outcome {
                StoreOutcome::Conflict { .. } => None,
                StoreOutcome::Filed { id, .. } | StoreOutcome::Known { id, .. } => {
                    store.message(id)?
                }
            };
            let told = IntakeResult {
                document,
                taken,
                outcome,
                record: record.as_ref(),
                learned: learned.as_deref(),
                lines: &lines,
                number,
                skips_known: self.skips_known,
                verbose: self.verbose,
                moved: moved.as_ref(),
                new_id: &new_id,
                is_all_mine,
                is_replaced: record.as_ref().is_some_and(|r| replaced.contains(&r.id)),
            };
            match self.quiet {
                true => self.messages.push(told.report()?),
                false => {
                    told.show(console, &store, self.unfold)?;
                    consent::tell(console, revoked)?;
                    if let (Some(record), false) = (&record, told.candidates().is_empty()) {
                        let candidates = (told.candidates(), self.may_ask);
                        pick::pick(console, &mut store, record, candidates)?;
                    }
                }
            }
            if let StoreOutcome::Filed { .. } = outcome {
                self.kept.extend(record);
            }
        }
        Ok(exit)
    }

    /// Files a text as the answer to a message: the envelopes in it, whatever they say that they answer, or else the text.
    pub(crate) fn keep_answer(
        &mut self,
        console: &mut Console,
        input: &Input,
        reference: &str,
    ) -> Result<Exit, Failure> {
        let is_named = !matches!(reference, "" | lookup::LAST);
        let (_, scan) = input.scan(Reading::Paste);
        let from = self.from.clone();
        let from = from.as_deref();
        if !scan.documents.is_empty() || !scan.truncated.is_empty() {
            let signed = match scan.documents.as_slice() {
                [only] => Some(only.sender()),
                _ => None,
            };
            let question = plain::answered_by(console, self.workspace, reference, (from, signed))?;
            self.answers = Some(question.id);
            self.moves_known = is_named;
            return self.keep(console, input);
        }
        self.way = Way::Filed;
        let before = plain::filed_before(console, self.workspace, input, from)?;
        let answered = plain::answered(
            console,
            self.workspace,
            (reference, from),
            (input, !self.quiet),
        )?;
        let waiting = answered.as_ref().filter(|q| plain::is_open(q));
        // A question that was open already when this text was filed does not wait for it once more.
        let is_known = match (&before, waiting) {
            (Some(before), Some(question)) => question.seq < before.seq && from.is_none(),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if let (Some(before), true, false) = (&before, is_known, is_named || self.new_id) {
            let known = Input::of_text(&input.name, before.text.clone());
            let exit = self.keep(console, &known)?;
            if let (Some(question), false) = (waiting, self.quiet) {
                let id = view::short(&self.workspace.kept(console)?, &question.id)?;
                let file = input.further_argument();
                let text = format!(
                    "It is the answer of {}. If {} said the same, file it with `crosstalk paste --as-reply-to {id}{file}`.",
                    view::line(&before.sender),
                    view::names(&plain::asked(question))
                );
                console.tell(&text)?;
            }
            return Ok(exit);
        }
        let answered = answered.ok_or_else(plain::none_open)?;
        let text = plain::envelope(console, self.workspace, input, (&answered, from))?;
        let exit = self.keep(console, &Input::of_text(&input.name, text))?;
        if let (Some(before), false, false) = (&before, self.kept.is_empty(), self.quiet) {
            let store = self.workspace.kept(console)?;
            let id = view::short(&store, &before.id)?;
            let new = self.kept.last().map(|r| view::short(&store, &r.id));
            let new = new.transpose()?.unwrap_or_default();
            console.note(&format!(
                "the same text was filed before, as {id}, the answer of {}; if this is a mistake, `crosstalk forget {new}` \
                 undoes it",
                view::line(&before.sender)
            ))?;
        }
        Ok(exit)
    }

    /// A pasted answer whose sides are wrong, with those that it means.
    fn readdressed(
        &self,
        store: &SqliteStore,
        document: &Document<'_>,
    ) -> Result<Option<Document<'static>>, Failure> {
        let parent = document.header(CoreHeader::Parent).map(str::to_owned);
        let Some(question) = self
            .answers
            .clone()
            .or(parent)
            .filter(|_| self.way == Way::Pasted)
        else {
            return Ok(None);
        };
        let question = store.message(&question)?;
        let text = question.and_then(|q| readdressed(document, &q, self.from.as_deref()));
        Ok(text.map(|t| Document::parse(&t, Reading::Paste).into_owned()))
    }

    /// The advice for a message that may be cut off.
    fn truncated_hint(&self, input: &Input) -> String {
        let command = self.again_with("--accept-truncated", input);
        format!(
            "Copy the answer again, to its last line; or keep it as it is, marked as truncated, with `{command}`."
        )
    }

    /// The command that takes the same text once more, with a flag.
    fn again_with(&self, flag: &str, input: &Input) -> String {
        let mut command = format!("crosstalk paste {flag}");
        if let Some(answers) = &self.answers {
            command.push_str(&format!(" --as-reply-to {}", escape(answers)));
        }
        command + &input.further_argument()
    }

    /// Moves a message that is here already to the one that the person says it answers.
    fn file_with_named(
        &self,
        store: &mut SqliteStore,
        outcome: &StoreOutcome,
    ) -> Result<Option<Moved>, Failure> {
        let answers = self.answers.as_ref().filter(|_| self.moves_known);
        let (Some(answers), StoreOutcome::Known { id, .. }) = (answers, outcome) else {
            return Ok(None);
        };
        let (Some(record), Some(answers)) = (store.message(id)?, store.message(answers)?) else {
            return Ok(None);
        };
        relocate(store, &record, Some(&answers)).map(Some)
    }

    /// Hands the messages to the store: in one go, unless one says something about consent. Such a one is held against what
    /// is on record when those before it are kept.
    fn accept(
        &self,
        console: &mut Console,
        store: &mut SqliteStore,
        taken: &mut [Taken],
        policy: &Policy,
    ) -> Result<Vec<consent::Filed>, Failure> {
        if taken.iter().all(|t| t.said.is_silent()) {
            let arrivals: Vec<Arrival> = taken.iter().map(|t| t.arrival.clone()).collect();
            let outcomes = store.accept(&arrivals)?.into_iter();
            let all = outcomes.zip(taken).map(|(outcome, Taken { arrival, .. })| {
                let again = match self.has_new_id(store, arrival, &outcome)? {
                    true => store.accept(std::slice::from_ref(arrival))?.pop(),
                    false => None,
                };
                Ok(Ok((again.unwrap_or(outcome), RevocationResult::default())))
            });
            return all.collect();
        }
        let mut all = Vec::with_capacity(taken.len());
        for Taken { arrival, said, .. } in taken {
            let mut one = consent::file(console, store, arrival, (said, policy))?;
            if let Ok((outcome, _)) = &one
                && self.has_new_id(store, arrival, outcome)?
            {
                one = consent::file(console, store, arrival, (said, policy))?;
            }
            all.push(one);
        }
        Ok(all)
    }

    /// Whether a message that was not kept can be: where its id is taken and a new one is wanted, or the model wrote the id of
    /// the question once more, the envelope keeps the id that it carries, and has another one here.
    fn has_new_id(
        &self,
        store: &SqliteStore,
        arrival: &mut Arrival,
        outcome: &StoreOutcome,
    ) -> Result<bool, Failure> {
        let StoreOutcome::Conflict { id, .. } = outcome else {
            return Ok(false);
        };
        let copied = store.message(id)?.is_some_and(|m| arrival.copies_id_of(&m));
        if copied && arrival.answers.is_none() {
            arrival.answers = Some(id.clone());
        }
        if !self.new_id && !copied {
            return Ok(false);
        }
        arrival.message = None;
        Ok(true)
    }

    /// Tells what could not be read, and what to do if there is no message at all.
    fn refused(
        &mut self,
        console: &mut Console,
        input: &Input,
        (text, lines): (&str, &LineIndex<'_>),
        (refused, is_unreadable): (&[Diagnostic], bool),
    ) -> Result<Exit, Failure> {
        let exit = Exit::of(refused);
        if self.quiet {
            for diagnostic in refused {
                self.errors.push(json::value(&finding(diagnostic, lines))?);
            }
            return Ok(exit);
        }
        let name = input.shown_name();
        let carets = Carets::new(&name, text);
        let errors: Vec<&Diagnostic> = refused.iter().filter(|d| d.is_error()).collect();
        match errors.as_slice() {
            // The person did not write the format: its faults are reported in one sentence, and `lint` lists them.
            [first, _, ..] if !self.verbose => {
                let line = lines.position(first.span.start).line;
                let lint = match input.file_argument() {
                    Some(file) => format!("crosstalk lint {file}"),
                    None => "crosstalk paste --verbose".to_owned(),
                };
                let text = format!(
                    "The message in {name} can't be read: {} (line {line}). `{lint}` lists all {} faults.",
                    first.message,
                    errors.len()
                );
                console.tell(&escape(&text))?;
            }
            _ => carets.tell(console, refused)?,
        }
        let has_none =
            !errors.is_empty() && errors.iter().all(|d| d.rule.id == rule::NO_ENVELOPE.id);
        if !errors.is_empty() && !has_none && is_unreadable && self.answers.is_none() {
            let hint = plain::hint(console, self.workspace, input)?;
            return console.tell(&hint).map(|()| exit);
        }
        if has_none {
            let file = input.further_argument();
            if let Some(before) = plain::filed_before(console, self.workspace, input, None)? {
                let store = self.workspace.kept(console)?;
                let id = view::short(&store, &before.id)?;
                let mut text = format!("Already filed as {id} on {}.\n", before.at);
                if let Some(question) = plain::open_questions(&store)?.first() {
                    let question = view::short(&store, &question.id)?;
                    text.push_str(&format!(
                        "If it answers {question}, too, file it with `crosstalk paste --as-reply-to {question}{file}`.\n"
                    ));
                }
                return console.talk(&text).map(|()| exit);
            }
            let hint = plain::hint(console, self.workspace, input)?;
            console.tell(&hint)?;
        }
        Ok(exit)
    }
}

/// Whether nothing came but messages that the person sent.
fn are_mine(store: &SqliteStore, outcomes: &[consent::Filed]) -> Result<bool, Failure> {
    for outcome in outcomes {
        let Ok((StoreOutcome::Known { id, .. }, _)) = outcome else {
            return Ok(false);
        };
        let is_mine = |r: &Record| r.way == Way::Sent && r.side == Side::Mine;
        if store.message(id)?.is_none_or(|r| !is_mine(&r)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The message that was filed from an envelope before a person said whose it is.
fn filed_as_it_came(
    store: &SqliteStore,
    document: &Document<'_>,
) -> Result<Option<Record>, Failure> {
    let Ok(digest) = document.digest() else {
        return Ok(None);
    };
    let is_same = |r: &Record| r.digest == digest && r.way == Way::Pasted && r.side != Side::Mine;
    let carried = document.header(CoreHeader::Message);
    let carried = carried.map(|id| store.message(id)).transpose()?.flatten();
    match carried.filter(is_same) {
        Some(record) => Ok(Some(record)),
        None => lookup::find_recent(store, is_same),
    }
}

/// The exit code for a message: what must not be acted on is loud, what is only unsigned is not.
fn exit_of(outcome: &StoreOutcome, verdict: VerdictWord) -> Exit {
    match (outcome, verdict) {
        (StoreOutcome::Conflict { .. }, _) => ErrorCode::Perm.into(),
        (_, verdict) if !lookup::is_sound(verdict) => verdict.into(),
        _ => Exit::SUCCESS,
    }
}
