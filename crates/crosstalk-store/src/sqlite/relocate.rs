//! Moving a message that was filed with the wrong question. What it takes along is decided by the protocol
//! ([`plan_relocation`]); the envelope stays as it is.

use crosstalk_protocol::store::{Index, Link, Moved, Placement, Relocation, Wait, plan_relocation};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::accept::{row, seq_of, thread_of};
use super::derive;
use super::fault::SqlResult;
use super::indexed::{self, Facts};
use super::relay::index;
use crate::sqlite::sql::{Sql as _, tuple};

/// Files a message with another one, or where it was filed first, and what answers it with it. Only inside a transaction.
pub(super) fn relocate(db: &Connection, id: &str, answers: Option<&str>) -> SqlResult<Moved> {
    index::index_rest(db)?;
    let Some(seq) = seq_of(db, id)? else {
        return Ok(Moved::Unknown);
    };
    if !derive::is_indexed(db, seq)? {
        return Ok(Moved::Unknown);
    }
    let before = row(db, seq)?;
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
        None => match first_filing(db, seq)? {
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
    let waits = |index: &mut Index<Facts<'_>>| {
        let waited = index.waits(then.answers.as_deref())?;
        Ok((waited, index.waits(now.answers.as_deref())?))
    };
    let (waited, open) = indexed::change(db, waits)?;
    refile(db, seq, &then.thread, Some(&inferred))?;
    for id in &along {
        if let Some(found) = seq_of(db, id)? {
            refile(db, found, &then.thread, None)?;
        }
    }
    let after = row(db, seq)?.arrival;
    let seq = seq.unsigned_abs();
    let (waits_now, is_open_now) = indexed::change(db, |index| {
        for thread in BTreeSet::from([&now.thread, &then.thread]) {
            index.recount(thread)?;
        }
        for question in [&now.answers, &then.answers].into_iter().flatten() {
            index.judge(question)?;
        }
        if after.wait() != Wait::Nobody && before.arrival.answers.is_some() {
            index.set_dismissed(seq, false)?;
        }
        if let Some(question) = after.answered() {
            index.take_as_answer(question, seq, &after)?;
        }
        waits(index)
    })?;
    Ok(Moved::Done {
        from: now.thread.clone(),
        along: along.len(),
        settled: then.answers.clone().filter(|_| waited && !waits_now),
        reopened: now.answers.clone().filter(|_| is_open_now && !open),
        to: then,
    })
}

/// Where a message was filed before it was moved: the thread, and what it was taken to answer.
fn first_filing(db: &Connection, seq: i64) -> SqlResult<Option<(String, Option<String>)>> {
    let sql = "SELECT thread, inferred FROM moved WHERE seq = ?1";
    db.find(sql, params![seq], tuple)
}

/// The thread that a message was in before it was moved.
pub(super) fn first_thread(db: &Connection, id: &str) -> SqlResult<Option<String>> {
    let Some(seq) = seq_of(db, id)? else {
        return Ok(None);
    };
    Ok(first_filing(db, seq)?.map(|(thread, _)| thread))
}

/// The messages of a thread, each with the one that it answers.
fn links(db: &Connection, thread: &str) -> SqlResult<Vec<(String, Option<String>)>> {
    let sql = "SELECT id, parent FROM message WHERE thread = ?1 ORDER BY seq";
    db.all(sql, params![thread], tuple)
}

/// Records where a message is filed from now on, and where it was filed first. Without `answers`, what it is taken to
/// answer stays.
fn refile(
    db: &Connection,
    seq: i64,
    thread: &str,
    answers: Option<&Option<String>>,
) -> SqlResult<()> {
    let sql = "INSERT OR IGNORE INTO moved (seq, thread, inferred) SELECT seq, thread, inferred \
        FROM intake WHERE seq = ?1";
    db.run(sql, params![seq])?;
    let sql = "UPDATE intake SET thread = ?2 WHERE seq = ?1";
    db.run(sql, params![seq, thread])?;
    if let Some(answers) = answers {
        let sql = "UPDATE intake SET inferred = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, answers])?;
    }
    let now = row(db, seq)?.arrival;
    let sql = "UPDATE message SET thread = ?2, parent = ?3, settles = ?4 WHERE seq = ?1";
    db.run(sql, params![seq, thread, now.answered(), now.settles()])?;
    // Back where it was first, it was not moved.
    let sql = "DELETE FROM moved WHERE seq = ?1 AND (thread, coalesce(inferred, '')) = (SELECT \
        thread, coalesce(inferred, '') FROM intake WHERE seq = ?1)";
    db.run(sql, params![seq])?;
    Ok(())
}
