//! Which question an answer means whose ids are unknown, where several wait for its sender.

use crate::clock;
use crate::clock::age;
use crate::console::{BOLD, Console, DIM, styled};
use crate::failure::Failure;
use crate::screen::clip_cells;
use crate::service::lookup;
use crate::service::relocate::{relocate, tell};
use crate::view::{self, Look, first_line};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::Record;
use crosstalk_store::SqliteStore;

/// How many questions are listed.
const MOST: usize = 9;

/// Lets a person pick the question that a message answers, and files it there. Where there is no person to ask, or none is
/// picked, it stays where it is, and the commands are told.
pub(super) fn pick(
    console: &mut Console,
    store: &mut SqliteStore,
    answer: &Record,
    (candidates, may_ask): (&[String], bool),
) -> Result<(), Failure> {
    let mut questions = Vec::new();
    for id in candidates.iter().take(MOST) {
        questions.extend(store.message(id)?.map(lookup::veiled));
    }
    let sender = escape(&answer.sender).into_owned();
    console.note(&format!(
        "its ids are unknown here, and {} messages wait for an answer of {sender}:",
        candidates.len()
    ))?;
    list(console, store, &questions, false)?;
    let picked = match may_ask {
        true => ask(console, &questions)?,
        false => None,
    };
    let Some(question) = picked else {
        let (id, thread) = (
            view::short(store, &answer.id)?,
            view::short(store, &answer.thread)?,
        );
        let first = match questions.first() {
            Some(first) => view::short(store, &first.id)?,
            None => return Ok(()),
        };
        let text = format!(
            "It stays in thread {thread}; `crosstalk move {id} --answers {first}` files it with the first of them."
        );
        return console.tell(&text);
    };
    let moved = relocate(store, answer, Some(&question))?;
    tell(console, store, answer, &moved)
}

/// Lets a person pick the question that a plain text answers. Nothing where there is no person to ask, or none is picked.
pub(super) fn choose(
    console: &mut Console,
    store: &SqliteStore,
    questions: &[Record],
) -> Result<Option<Record>, Failure> {
    if !console.can_ask() {
        return Ok(None);
    }
    let questions = questions.get(..MOST).unwrap_or(questions);
    console.note("several questions are open, and a plain answer does not name its sender:")?;
    list(console, store, questions, true)?;
    ask(console, questions)
}

/// Lists questions with their numbers, and whom they are for where they are for several.
fn list(
    console: &mut Console,
    store: &SqliteStore,
    questions: &[Record],
    shows_receiver: bool,
) -> Result<(), Failure> {
    let (now, width) = (clock::now(), Look::of(console).width);
    for (number, question) in (1..).zip(questions) {
        let id = view::short(store, &question.id)?;
        let age = age(question.at, now);
        let taken = 8 + id.len() + age.len();
        let mut text = first_line(&question.document().body_text()).to_string();
        if shows_receiver {
            text = format!("{}: {text}", view::names(&question.recipients()));
        }
        let text = clip_cells(&text, width.saturating_sub(taken).max(12));
        console.talk(&format!(
            "  {number}  {}  {text}  {}\n",
            styled(BOLD, &id),
            styled(DIM, &age)
        ))?;
    }
    Ok(())
}

/// The question whose number a person types; none without one.
fn ask(console: &mut Console, questions: &[Record]) -> Result<Option<Record>, Failure> {
    loop {
        let line = console.ask("Which one does it answer? A number, or Enter for none: ")?;
        let Some(line) = line.filter(|line| !line.is_empty()) else {
            return Ok(None);
        };
        let number = line.parse::<usize>().ok();
        let picked = number
            .and_then(|n| n.checked_sub(1))
            .and_then(|n| questions.get(n));
        if let Some(picked) = picked {
            return Ok(Some(picked.clone()));
        }
        console.talk(&format!(
            "There are {} messages to choose from.\n",
            questions.len()
        ))?;
    }
}
