//! The report about a message that was pasted.

use super::plain;
use crate::console::{CYAN, Console, GREEN, RED, styled};
use crate::failure::Failure;
use crate::paragraph::{lines, wrap};
use crate::report::{MessageReport, PastedReport, RefusalReport};
use crate::screen::clip_cells;
use crate::service::intake::Taken;
use crate::service::lookup::show_before;
use crate::service::poll::KeptPoll;
use crate::service::{consent, lookup, relocate};
use crate::view::{self, Look};
use crate::{json, render};
use crosstalk_binding::document_findings;
use crosstalk_envelope::json::finding;
use crosstalk_envelope::meta::ConsentKind;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{CoreHeader, Document, Intent, LineIndex};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Moved, Record, Side, StoreOutcome, Wait, Way, is_same_party};
use crosstalk_store::SqliteStore;
use serde_json::Value;

/// The most columns of a question that is quoted in a note.
const QUOTED: usize = 40;

/// A message, and what became of it.
pub(super) struct IntakeResult<'t> {
    pub(super) document: &'t Document<'t>,
    pub(super) taken: &'t Taken,
    pub(super) outcome: &'t StoreOutcome,
    /// The message as it is kept; nothing if it is not.
    pub(super) record: Option<&'t Record>,
    pub(super) learned: Option<&'t str>,
    pub(super) lines: &'t LineIndex<'t>,
    /// How many messages were told about before.
    pub(super) number: usize,
    /// Whether nothing is said about what is known already.
    pub(super) skips_known: bool,
    /// Whether each repair is told by itself.
    pub(super) verbose: bool,
    /// The move of a message that was here already and answers another one now.
    pub(super) moved: Option<&'t Moved>,
    /// The command that keeps it under another id.
    pub(super) new_id: &'t str,
    /// Whether nothing but messages of the person came.
    pub(super) is_all_mine: bool,
    /// Whether it takes the place of what was filed from the same envelope, which named another sender.
    pub(super) is_replaced: bool,
}

impl IntakeResult<'_> {
    /// For people.
    pub(super) fn show(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        unfold: bool,
    ) -> Result<(), Failure> {
        let short = view::shortener(store);
        // Several messages stand apart.
        if self.number > 0 {
            console.show("\n")?;
        }
        let look = Look {
            unfold,
            ..Look::of(console)
        };
        match self.outcome {
            StoreOutcome::Filed {
                id,
                thread,
                closed,
                displaced,
                ..
            } => {
                let Some(record) = self.record else {
                    return Ok(());
                };
                console.show(&view::message(record, &short, &look))?;
                show_before(console, store, record, &look)?;
                self.repairs(console)?;
                self.verdict(console)?;
                self.remarks(console, store, record)?;
                if let Some(displaced) = displaced {
                    console.note(&match store.message(displaced)? {
                        None => "it replaces the truncated message".to_owned(),
                        Some(other) if other.truncated => {
                            format!(
                                "the truncated message had this id; it is {} now",
                                short(displaced)
                            )
                        }
                        Some(_) => format!(
                            "an unverified message had this id; it is {} now",
                            short(displaced)
                        ),
                    })?;
                }
                if self.is_replaced {
                    console.note("it replaces the message as it was filed before")?;
                }
                if let Some(closed) = closed {
                    console.note(&format!("the thread was closed on {closed}"))?;
                }
                let thread = short(thread);
                let next = match record.wait {
                    Wait::Me => format!("; answer with `crosstalk reply {}`", short(id)),
                    Wait::Carry => format!(
                        "; `crosstalk show {} --copy` to carry it to {}",
                        short(id),
                        view::names(&record.recipients())
                    ),
                    Wait::Them | Wait::Nobody => String::new(),
                };
                let word = styled(GREEN, "Kept");
                console.flush()?;
                console.talk(&format!("{word} in thread {thread}{next}\n"))
            }
            StoreOutcome::Known { .. } if self.is_moved() => match (self.record, self.moved) {
                (Some(record), Some(moved)) => relocate::tell(console, store, record, moved),
                _ => Ok(()),
            },
            StoreOutcome::Known { .. } if self.skips_known => Ok(()),
            StoreOutcome::Known {
                id,
                since,
                improved,
                ..
            } => {
                if self.verbose {
                    self.repairs(console)?;
                    console.flush()?;
                }
                if let Some(own) = self.record.filter(|_| self.is_all_mine) {
                    let text = format!(
                        "This is your own message {} to {}, sent on {since}. Copy the answer in the chat first, then \
                         `crosstalk paste` keeps it.",
                        short(id),
                        view::names(&own.recipients())
                    );
                    return console.tell(&text);
                }
                if let Some(mine) = self
                    .record
                    .filter(|r| r.wait == Wait::Me && r.way == Way::Sent)
                {
                    let text = format!(
                        "You sent this message on {since}, and it waits for an answer of {}: `crosstalk reply {}` gives it.",
                        view::line(&mine.receiver),
                        short(id)
                    );
                    console.show(&view::message(mine, &short, &look))?;
                    console.flush()?;
                    return console.tell(&text);
                }
                let word = styled(CYAN, "Already filed");
                let better = match improved {
                    true => ", and it is verified now",
                    false => "",
                };
                console.talk(&format!(
                    "{word} as {} on {since}{better}; `crosstalk show {}`\n",
                    short(id),
                    short(id)
                ))
            }
            StoreOutcome::Conflict { id, .. } => {
                let word = styled(RED, "not kept");
                let damaged = matches!(
                    self.taken.admitted.verdict().word(),
                    VerdictWord::Damaged | VerdictWord::NotVerified
                );
                if damaged {
                    let text = format!(
                        "{} A message with this id is here already (`crosstalk show {}`), and stays as it is (E-PERM)",
                        self.taken.admitted.verdict().sentence(),
                        short(id)
                    );
                    return console.talk(&format!("{word}: {}\n", wrap(&escape(&text), 10, 0)));
                }
                let text = format!(
                    "another message has the id {} (`crosstalk show {}`), and this one has \
                     another text. If a model wrote the same id twice, keep this one under a new \
                     id with `{}`; else ask the sender (E-PERM)",
                    escape(id),
                    short(id),
                    self.new_id
                );
                console.talk(&format!("{word}: {}\n", wrap(&text, 10, 0)))
            }
        }
    }

    /// Whether it was here already and answers another message now.
    fn is_moved(&self) -> bool {
        matches!(self.moved, Some(Moved::Done { .. }))
    }

    /// Tells the mistakes of a model: the id of the question once more, sides that were not swapped, an unknown question.
    fn remarks(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        record: &Record,
    ) -> Result<(), Failure> {
        let arrival = &self.taken.arrival;
        let written = self.document.header(CoreHeader::Message);
        let id = view::short(store, &record.id)?;
        let short = view::shortener(store);
        let mut remarks: Vec<String> = Vec::new();
        if !record.carries_id && written.is_some() {
            remarks.push(
                "its id is missing or belongs to another message: it has one of its own here"
                    .into(),
            );
        }
        let parent = record.parent.as_deref();
        let question = parent.map(|p| store.message(p)).transpose()?.flatten();
        let named = self.document.header(CoreHeader::Parent);
        let is_told = arrival.answers.is_some();
        let has_strange_thread = self
            .document
            .header(CoreHeader::Thread)
            .is_some_and(|t| t != record.thread);
        let is_elsewhere = named.is_some() && named != parent && question.is_some();
        if is_told {
            // The person said what it answers.
        } else if let Some(named) = named.filter(|_| is_elsewhere) {
            let filed = question.as_ref().map(|q| short(&q.id)).unwrap_or_default();
            remarks.push(match store.message(named)? {
                Some(answered) => {
                    let (sender, other) = (view::line(&record.sender), short(&answered.id));
                    let why = match plain::asks(&answered, &record.sender) {
                        true => format!("{sender} has answered {other} already"),
                        false => format!("{other} does not ask {sender}"),
                    };
                    format!(
                        "{why}: it was filed with {filed}, which waits; `crosstalk move {id} --answers {other}` files it there"
                    )
                }
                None => format!(
                    "the message that it names as its question is not here: it was filed with {filed}, which waits{}",
                    other_question(store, record)?
                ),
            });
        } else if named.is_none() && has_strange_thread && question.is_some() {
            remarks.push(format!(
                "the thread that it names is not here: it was filed with the one message that waits for its sender{}",
                other_question(store, record)?
            ));
        } else if named.is_some() && question.is_none() && self.candidates().is_empty() {
            remarks.push(format!(
                "the message that it answers is not here{}",
                other_question(store, record)?
            ));
        }
        if question.is_none() && arrival.reads_as_answer() && !arrival.holds() {
            remarks.extend(answer_of_other(store, record)?);
        }
        if !is_same_party(&arrival.sender, self.document.sender()) {
            remarks.push(format!(
                "it names {} as its sender; it is filed as the answer of {}",
                view::line(self.document.sender()),
                view::line(&arrival.sender)
            ));
        }
        let is_of_mine = |q: &&Record| q.side == Side::Mine && arrival.reads_as_answer();
        if let Some(question) = question
            .as_ref()
            .filter(is_of_mine)
            .filter(|q| !plain::asks(q, &arrival.sender))
        {
            remarks.push(relocate::still_waits(store, record, question)?);
        }
        let poll = question
            .as_ref()
            .filter(|q| q.meaning == Some(Intent::Poll));
        if let Some(poll) = poll.filter(|q| plain::asks(q, &arrival.sender)) {
            remarks.extend(KeptPoll::remark(store, poll, record)?);
        }
        remarks.extend(self.unproven_consent());
        if arrival.says_nothing() {
            let what = match question.is_some() {
                true => "the answer is empty, so the question still waits",
                false => "the answer is empty",
            };
            remarks.push(format!(
                "{what}: copy it again with its text, and paste that"
            ));
        }
        if record.truncated {
            remarks.push(
                "the text may be cut off: it is shown as truncated from now on. If you get the whole text, paste it"
                    .into(),
            );
        }
        for remark in remarks {
            console.note(&remark)?;
        }
        Ok(())
    }

    /// That nobody vouches for the key of a message that grants a consent: its granter may be somebody else.
    fn unproven_consent(&self) -> Option<String> {
        let claim = self.taken.said.claim()?;
        let verdict = self.taken.admitted.verdict();
        let is_grant = claim.kind == Some(ConsentKind::ExplicitYes) && !claim.ids.is_empty();
        if !is_grant || !self.taken.arrival.counts() || verdict.word() == VerdictWord::Verified {
            return None;
        }
        let how = match verdict.pkid() {
            Some(pkid) => format!("the key {} is not pinned", view::line(pkid)),
            None => "the message is not signed".to_owned(),
        };
        Some(format!(
            "{how}, so nothing proves that {} gave the consent {}",
            view::line(&self.taken.arrival.sender),
            view::names(&claim.ids)
        ))
    }

    /// The messages that it may answer.
    pub(super) fn candidates(&self) -> &[String] {
        match self.outcome {
            StoreOutcome::Filed { candidates, .. } => candidates,
            _ => &[],
        }
    }

    fn repairs(&self, console: &mut Console) -> Result<(), Failure> {
        let findings = document_findings(self.document);
        let all: String = match self.verbose {
            true => findings
                .iter()
                .map(|f| render::remark(f, self.lines))
                .collect(),
            false => render::remarks_by_kind(&findings, self.lines),
        };
        console.show(&format!("\n{all}"))
    }

    /// The sentence of the verdict, where there is more to say than the badge does.
    fn verdict(&self, console: &mut Console) -> Result<(), Failure> {
        let verdict = self.taken.admitted.verdict();
        if let Some(learned) = self.learned {
            console.tell(&escape(learned))?;
        }
        if matches!(
            verdict.word(),
            VerdictWord::Verified | VerdictWord::Unsigned | VerdictWord::FirstContact
        ) {
            return Ok(());
        }
        let text = format!("{} {}", verdict.sentence(), verdict.next());
        console.tell(&escape(&text))
    }

    /// For programs.
    pub(super) fn report(&self) -> Result<PastedReport, Failure> {
        let (outcome, id) = match self.outcome {
            StoreOutcome::Filed { id, .. } => ("filed", id),
            StoreOutcome::Known { id, .. } if self.is_moved() => ("moved", id),
            StoreOutcome::Known { id, .. } => ("known", id),
            StoreOutcome::Conflict { id, .. } => ("conflict", id),
        };
        let settles = match self.outcome {
            StoreOutcome::Filed { settled, .. } => settled.clone(),
            _ => match self.moved {
                Some(Moved::Done { settled, .. }) => settled.clone(),
                _ => None,
            },
        };
        let findings = self.document.diagnostics().iter();
        let repairs = findings.map(|d| json::value(&finding(d, self.lines)));
        let repairs = repairs.collect::<Result<Vec<Value>, Failure>>()?;
        Ok(PastedReport {
            outcome,
            id: id.clone(),
            message: self.record.map(MessageReport::new),
            settles,
            candidates: self.candidates().to_vec(),
            learned: self.learned.map(str::to_owned),
            repairs,
            verdict: json::value(&self.taken.admitted.verdict().report())?,
            refusal: None,
        })
    }
}

/// The command that files an answer with the latest other question to its sender, as the end of a sentence; nothing if there
/// is none.
fn other_question(store: &SqliteStore, answer: &Record) -> Result<String, Failure> {
    let other = lookup::find_recent(store, |r| {
        plain::is_open(r)
            && r.id != answer.id
            && answer.parent.as_ref() != Some(&r.id)
            && plain::asks(r, &answer.sender)
    })?;
    let Some(other) = other else {
        return Ok(String::new());
    };
    let words = view::first_line(&other.document().body_text());
    Ok(format!(
        "; `crosstalk move {} --answers {}` files it with \u{201c}{}\u{201d}",
        view::short(store, &answer.id)?,
        view::short(store, &other.id)?,
        clip_cells(&words, QUOTED)
    ))
}

/// Which command files an answer of somebody whom nobody asked as that of the one whose answer is missing. Nothing unless
/// exactly one question waits.
fn answer_of_other(store: &SqliteStore, answer: &Record) -> Result<Option<String>, Failure> {
    let open = plain::open_questions(store)?;
    let [question] = open.as_slice() else {
        return Ok(None);
    };
    match plain::asks(question, &answer.sender) {
        true => Ok(None),
        false => relocate::still_waits(store, answer, question).map(Some),
    }
}

/// A message that is not kept, because its consent is not enough: for people.
pub(super) fn show_refused(
    console: &mut Console,
    document: &Document<'_>,
    refusal: &Rejection,
) -> Result<(), Failure> {
    let word = styled(RED, "not kept");
    let (from, to) = (document.sender(), document.receiver());
    let text = format!("{from} → {to}: {}", consent::sentence(refusal));
    console.talk(&format!("{word}: {}\n", lines(&escape(&text), 10)))
}

/// The same for programs.
pub(super) fn refused(taken: &Taken, refusal: &Rejection) -> Result<PastedReport, Failure> {
    Ok(PastedReport {
        outcome: "refused",
        id: taken.arrival.id().to_owned(),
        message: None,
        settles: None,
        candidates: Vec::new(),
        learned: None,
        repairs: Vec::new(),
        verdict: json::value(&taken.admitted.verdict().report())?,
        refusal: Some(RefusalReport::new(refusal)),
    })
}
