//! Moves a message to the question that it answers, and tells about it.

use crate::console::{Console, GREEN, styled};
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::view;
use crosstalk_protocol::store::{Moved, Record, Store as _};
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
        reopened,
        ..
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
    console.talk(&format!("{word} {}\n", wrap(&text, 6, 0)))
}
