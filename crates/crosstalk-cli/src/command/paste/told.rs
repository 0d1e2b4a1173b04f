//! What is told about a message that was pasted.

use crate::console::{CYAN, Console, GREEN, RED, YELLOW, styled};
use crate::failure::Failure;
use crate::incoming::Taken;
use crate::json;
use crate::paragraph::wrap;
use crate::render;
use crate::report::Message;
use crate::view::{self, Look};
use crosstalk_envelope::json::finding;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, LineIndex};
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Outcome, Store as _, Wait};
use crosstalk_store::SqliteStore;
use serde_json::{Value, json};

/// A message, and what became of it.
pub(super) struct Told<'t> {
    pub(super) document: &'t Document<'t>,
    pub(super) taken: &'t Taken,
    pub(super) outcome: &'t Outcome,
    pub(super) learned: Option<&'t str>,
    pub(super) lines: &'t LineIndex<'t>,
}

impl Told<'_> {
    /// For people.
    pub(super) fn show(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        unfold: bool,
    ) -> Result<(), Failure> {
        let short = view::shortener(store);
        let look = Look {
            unfold,
            ..Look::of(console)
        };
        match self.outcome {
            Outcome::Filed {
                id, thread, closed, ..
            } => {
                let Some(record) = store.message(id)? else {
                    return Ok(());
                };
                console.show(&view::message(&record, &short, &look))?;
                self.repairs(console)?;
                self.verdict(console)?;
                if let Some(closed) = closed {
                    let word = styled(YELLOW, "note");
                    console.talk(&format!("{word}: the thread was closed on {closed}\n"))?;
                }
                let thread = short(thread);
                let next = match record.wait {
                    Wait::Me => format!("; answer with `crosstalk reply {}`", short(id)),
                    Wait::Carry => format!(
                        "; `crosstalk show {} --copy` to carry it to {}",
                        short(id),
                        escape(&record.receiver)
                    ),
                    Wait::Them | Wait::Nobody => String::new(),
                };
                let word = styled(GREEN, "Kept");
                console.flush()?;
                console.talk(&format!("{word} in thread {thread}{next}\n"))
            }
            Outcome::Known {
                id,
                since,
                improved,
                ..
            } => {
                let word = styled(CYAN, "known already");
                let better = match improved {
                    true => ", and it is verified now",
                    false => "",
                };
                console.talk(&format!(
                    "{word}: {} is here since {since}{better}; `crosstalk show {}`\n",
                    short(id),
                    short(id)
                ))
            }
            Outcome::Conflict { id, .. } => {
                let word = styled(RED, "not kept");
                let text = format!(
                    "another message has the id {} (`crosstalk show {}`), and this one says something else. If a model \
                     wrote the same id twice, keep it under a new one with --new-id; else ask the sender (E-PERM)",
                    escape(id),
                    short(id)
                );
                console.talk(&format!("{word}: {}\n", wrap(&text, 10, 0)))
            }
        }
    }

    fn repairs(&self, console: &mut Console) -> Result<(), Failure> {
        let findings = render::findings(self.document);
        let all: String = findings
            .iter()
            .map(|f| render::remark(f, self.lines))
            .collect();
        console.show(&format!("\n{all}"))
    }

    /// The sentence of the verdict, where there is more to say than the badge does.
    fn verdict(&self, console: &mut Console) -> Result<(), Failure> {
        let verdict = &self.taken.verdict;
        if let Some(learned) = self.learned {
            console.talk(&format!("{}\n", wrap(&escape(learned), 0, 0)))?;
        }
        if matches!(
            verdict.word(),
            Word::Verified | Word::Unsigned | Word::FirstContact
        ) {
            return Ok(());
        }
        let text = format!("{} {}", verdict.sentence(), verdict.next());
        console.talk(&format!("{}\n", wrap(&escape(&text), 0, 0)))
    }

    /// For programs.
    pub(super) fn report(&self, store: &SqliteStore) -> Result<Value, Failure> {
        let (word, id) = match self.outcome {
            Outcome::Filed { id, .. } => ("filed", id),
            Outcome::Known { id, .. } => ("known", id),
            Outcome::Conflict { id, .. } => ("conflict", id),
        };
        let kept = match self.outcome {
            Outcome::Conflict { .. } => None,
            _ => store.message(id)?,
        };
        let settled = match self.outcome {
            Outcome::Filed { settled, .. } => settled.clone(),
            _ => None,
        };
        let findings = self.document.diagnostics().iter();
        let repairs = findings.map(|d| json::value(&finding(d, self.lines)));
        let repairs = repairs.collect::<Result<Vec<Value>, Failure>>()?;
        Ok(json!({
            "outcome": word,
            "id": id,
            "message": kept.as_ref().map(Message::new),
            "settles": settled,
            "learned": self.learned,
            "repairs": repairs,
            "verdict": json::value(&self.taken.verdict.report())?,
        }))
    }
}
