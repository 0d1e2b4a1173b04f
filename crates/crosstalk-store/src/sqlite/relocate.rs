//! Moving a message that was filed with the wrong question. What it takes along is decided by the protocol
//! ([`plan_relocation`]); the envelope stays as it is.

use crosstalk_protocol::store::{Link, Moved, Placement, Relocation, Wait, plan_relocation};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

use super::accept::{by_id, row, thread_of};
use super::fault::Step;
use super::relay::progress;
use super::{course, derive, settle};

/// Files a message with another one, or where it was filed first, and what answers it with it. Only inside of a transaction.
pub(super) fn relocate(db: &Connection, id: &str, answers: Option<&str>) -> Step<Moved> {
    progress::file_rest(db)?;
    let Some(place) = by_id(db, id)? else {
        return Ok(Moved::Unknown);
    };
    if !derive::is_indexed(db, place.seq)? {
        return Ok(Moved::Unknown);
    }
    let before = row(db, place.seq)?;
    let now = Placement {
        thread: before.thread.clone(),
        answers: before.arrival.answered().map(str::to_owned),
    };
    let (then, inferred) = match answers {
        Some(answers) => match thread_of(db, Some(answers))? {
            Some(thread) => {
                let answers = Some(answers.to_owned());
                (
                    Placement {
                        thread,
                        answers: answers.clone(),
                    },
                    answers,
                )
            }
            None => return Ok(Moved::Unknown),
        },
        None => match first_filing(db, place.seq)? {
            Some((thread, inferred)) => {
                let answers = inferred.clone().or_else(|| before.arrival.parent.clone());
                (Placement { thread, answers }, inferred)
            }
            None => return Ok(Moved::Stays),
        },
    };
    let links = links(db, &now.thread)?;
    let links: Vec<Link<'_>> = links
        .iter()
        .map(|(id, parent)| Link {
            id,
            parent: parent.as_deref(),
        })
        .collect();
    let along = match plan_relocation(id, &links, (&now, &then)) {
        Relocation::Moves(along) => along,
        // It says itself that it answers this message. Now a person does, so that it is the answer whatever its intent is; or
        // takes that back.
        Relocation::Stays
            if inferred != before.arrival.answers
                && (answers.is_none() || !before.arrival.settles()) =>
        {
            Vec::new()
        }
        Relocation::Stays => return Ok(Moved::Stays),
        Relocation::AnswersItself => return Ok(Moved::AnswersItself),
    };
    let (waited, open) = (
        settle::waits(db, then.answers.as_deref())?,
        settle::waits(db, now.answers.as_deref())?,
    );
    refile(db, place.seq, &then.thread, Some(&inferred))?;
    for id in &along {
        if let Some(found) = by_id(db, id)? {
            refile(db, found.seq, &then.thread, None)?;
        }
    }
    for thread in BTreeSet::from([&now.thread, &then.thread]) {
        course::recount(db, thread)?;
    }
    for question in [&now.answers, &then.answers].into_iter().flatten() {
        settle::judge(db, question)?;
    }
    let after = row(db, place.seq)?.arrival;
    if after.wait() != Wait::Nobody && before.arrival.answers.is_some() {
        settle::set_dismissed(db, place.seq, false)?;
    }
    if let Some(question) = after.answered() {
        settle::take_as_answer(db, question, place.seq, &after)?;
    }
    let has_changed = |id: &Option<String>, before: bool| -> Step<Option<String>> {
        let changed = settle::waits(db, id.as_deref())? != before;
        Ok(id.clone().filter(|_| changed))
    };
    Ok(Moved::Done {
        from: now.thread.clone(),
        along: along.len(),
        settled: has_changed(&then.answers, waited)?.filter(|_| waited),
        reopened: has_changed(&now.answers, open)?.filter(|_| !open),
        to: then,
    })
}

/// Where a message was filed before it was moved: the thread, and what it was taken to answer.
fn first_filing(db: &Connection, seq: i64) -> Step<Option<(String, Option<String>)>> {
    db.prepare_cached("SELECT thread, inferred FROM moved WHERE seq = ?1")?
        .query_row(params![seq], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The thread that a message was filed in before it was moved.
pub(super) fn first_thread(db: &Connection, id: &str) -> Step<Option<String>> {
    let Some(place) = by_id(db, id)? else {
        return Ok(None);
    };
    Ok(first_filing(db, place.seq)?.map(|(thread, _)| thread))
}

/// The messages of a thread, each with the one that it answers.
fn links(db: &Connection, thread: &str) -> Step<Vec<(String, Option<String>)>> {
    let mut find =
        db.prepare_cached("SELECT id, parent FROM message WHERE thread = ?1 ORDER BY seq")?;
    let rows = find.query_map(params![thread], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Writes down where a message is filed from now on, and where it was filed first. Without `answers`, what it is taken to
/// answer stays.
fn refile(db: &Connection, seq: i64, thread: &str, answers: Option<&Option<String>>) -> Step<()> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO moved (seq, thread, inferred) SELECT seq, thread, inferred FROM intake WHERE seq = ?1",
    )?
    .execute(params![seq])?;
    db.prepare_cached("UPDATE intake SET thread = ?2 WHERE seq = ?1")?
        .execute(params![seq, thread])?;
    if let Some(answers) = answers {
        db.prepare_cached("UPDATE intake SET inferred = ?2 WHERE seq = ?1")?
            .execute(params![seq, answers])?;
    }
    let now = row(db, seq)?.arrival;
    db.prepare_cached("UPDATE message SET thread = ?2, parent = ?3, settles = ?4 WHERE seq = ?1")?
        .execute(params![seq, thread, now.answered(), now.settles()])?;
    // Back where it was first, it was not moved.
    db.prepare_cached(
        "DELETE FROM moved WHERE seq = ?1 \
         AND (thread, coalesce(inferred, '')) = (SELECT thread, coalesce(inferred, '') FROM intake WHERE seq = ?1)",
    )?
    .execute(params![seq])?;
    Ok(())
}
