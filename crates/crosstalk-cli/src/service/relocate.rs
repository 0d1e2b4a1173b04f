//! Moves a message to the question that it answers, and tells about it.

use crate::console::{Console, GREEN, styled};
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::service::intake::{asked, asks};
use crate::{shell, view};
use crosstalk_protocol::store::{Moved, Record, Wait};
use crosstalk_store::SqliteStore;

/// Files a message with another one, or where it was filed first.
pub(crate) fn relocate(
    store: &mut SqliteStore,
    record: &Record,
    answers: Option<&Record>,
) -> Result<Moved, Failure> {
    match store.relocate(&record.id, answers.map(|a| a.id.as_str()))? {
        Moved::AnswersItself => Err(Failure::usage(format!(
            "{} can't answer itself, or a message that answers it",
            record.id
        ))
        .help("name another one with --answers")),
        Moved::Unknown => Err(Failure::failed("one of the two messages is gone")
            .help("`crosstalk threads` lists what is here")),
        moved => Ok(moved),
    }
}

/// Tells what a move did; nothing if the message was there already.
pub(crate) fn tell(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    moved: &Moved,
) -> Result<(), Failure> {
    let Moved::Done {
        from,
        to,
        along,
        settled,
        reopened,
    } = moved
    else {
        return Ok(());
    };
    let short = view::shortener(store);
    let mut text = short(&record.id);
    if *from != to.thread {
        text.push_str(&format!(
            " from thread {} to {}",
            short(from),
            short(&to.thread)
        ));
    }
    if *along > 0 {
        let verb = if *along == 1 { "answers" } else { "answer" };
        text.push_str(&format!(
            ", with {} that {verb} it",
            count(*along, "message")
        ));
    }
    if let Some(answers) = &to.answers {
        text.push_str(&format!("; it answers {} now", short(answers)));
    }
    if let Some(reopened) = reopened {
        text.push_str(&format!("; {} waits for an answer again", short(reopened)));
    }
    let word = styled(GREEN, "Moved");
    console.talk(&format!("{word} {}\n", wrap(&text, 6, 0)))?;
    match to.answers.as_deref().filter(|_| settled.is_none()) {
        Some(question) => tell_waiting(console, store, record, question),
        None => Ok(()),
    }
}

/// Tells that a question still waits, though a message is filed with it.
pub(crate) fn tell_waiting(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    question: &str,
) -> Result<(), Failure> {
    let question = store.message(question)?;
    match question.filter(|q| matches!(q.wait, Wait::Them | Wait::Carry)) {
        Some(question) => console.note(&still_waits(store, record, &question)?),
        None => Ok(()),
    }
}

/// That a message does not settle the one that it is filed with, since its sender was not asked, and what does.
pub(crate) fn still_waits(
    store: &SqliteStore,
    record: &Record,
    question: &Record,
) -> Result<String, Failure> {
    let (id, asked) = (view::short(store, &record.id)?, asked(question));
    let question_id = view::short(store, &question.id)?;
    if asks(question, &record.sender) {
        return Ok(format!(
            "{question_id} still waits; `crosstalk waiting --done {question_id}` ends the waiting"
        ));
    }
    let first = asked.first().map_or_else(String::new, |a| shell::word(a));
    let names = match asked.as_slice() {
        [only] => view::line(only),
        several => format!("one of {}", view::names(several)),
    };
    Ok(format!(
        "{} was not asked, so {question_id} still waits; if it is the answer of {names}, `crosstalk move {id} --answers \
         {question_id} --from {first}` files it so",
        view::line(&record.sender),
    ))
}
