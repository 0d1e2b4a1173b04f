//! Waits: who has to act on a message next, what settles it and what opens it again.

use crosstalk_envelope::Intent;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Answering, Arrival, Asking, CandidateQuestion, Wait, Way, party};
use rusqlite::{Connection, Row, params};

use super::fault::SqlResult;
use crate::sqlite::sql::{Columns as _, Sql as _, member, number, tuple, value};

/// More waiting messages of a thread than these are not looked at: which of so many an answer means, nobody can tell.
const WAITING: usize = 64;
/// The same of all threads.
const WAITING_ANYWHERE: usize = 1000;

/// A message that asks, as its columns have it.
struct QuestionRow {
    seq: i64,
    id: String,
    sender: String,
    receiver: String,
    targets: String,
    meaning: Option<String>,
    asks: i64,
    trust: i64,
    answered: i64,
    needs: i64,
}

const QUESTION: &str =
    "SELECT seq, id, sender, receiver, targets, meaning, asks, trust, answered, needs FROM message";

fn question(row: &Row<'_>) -> SqlResult<QuestionRow> {
    Ok(QuestionRow {
        seq: row.get("seq")?,
        id: row.get("id")?,
        sender: row.get("sender")?,
        receiver: row.get("receiver")?,
        targets: row.get::<_, Option<String>>("targets")?.unwrap_or_default(),
        meaning: row.get("meaning")?,
        asks: row.get("asks")?,
        trust: row.get("trust")?,
        answered: row.get("answered")?,
        needs: row.get("needs")?,
    })
}

impl QuestionRow {
    fn asking(&self) -> SqlResult<Asking<'_>> {
        Ok(Asking {
            receiver: &self.receiver,
            targets: self.targets.lines().collect(),
            is_poll: self.meaning.as_deref() == Some(Intent::Poll.as_str()),
            wait: member("wait", &Wait::ALL, self.asks)?,
            verdict: member("trust", &VerdictWord::ALL, self.trust)?,
        })
    }
}

fn find(db: &Connection, id: &str) -> SqlResult<Option<QuestionRow>> {
    let sql = format!("{QUESTION} WHERE id = ?1 AND asks <> 0");
    db.find(&sql, params![id], question)
}

/// Whether the message of an id waits.
pub(super) fn waits(db: &Connection, id: Option<&str>) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM message WHERE id = ?1 AND wait <> 0";
    db.has(sql, params![id])
}

/// Counts one answer to a message. Others that came before are not looked at.
pub(super) fn count(db: &Connection, id: &str, seq: i64, answer: &Arrival) -> SqlResult<()> {
    let Some(question) = find(db, id)?.filter(|q| q.seq != seq && q.answered < q.needs) else {
        return Ok(());
    };
    if answer.settles_question(&question.asking()?) && note(db, question.seq, &answer.sender)? {
        refresh(db, question.seq)?;
    }
    Ok(())
}

/// Ends the wait of a message that a person filed as the answer to another one, whatever its intent says.
pub(super) fn take_as_answer(
    db: &Connection,
    id: &str,
    seq: i64,
    answer: &Arrival,
) -> SqlResult<()> {
    let Some(question) = find(db, id)?.filter(|q| q.seq != seq) else {
        return Ok(());
    };
    if answer.wait() == Wait::Nobody || !answer.answers_instead_of_asking(&question.asking()?) {
        return Ok(());
    }
    set_dismissed(db, seq, true)
}

/// Records whether a message waits for nobody because a person says so.
pub(super) fn set_dismissed(db: &Connection, seq: i64, is_dismissed: bool) -> SqlResult<()> {
    let sql = "UPDATE intake SET dismissed = ?2 WHERE seq = ?1";
    db.run(sql, params![seq, is_dismissed])?;
    refresh(db, seq)
}

/// Records that somebody has answered. False if that was known.
fn note(db: &Connection, question: i64, sender: &str) -> SqlResult<bool> {
    let sql = "INSERT OR IGNORE INTO answer (question, party) VALUES (?1, ?2)";
    let is_new = db.run(sql, params![question, party(sender)])? > 0;
    if is_new {
        let sql = "UPDATE message SET answered = answered + 1 WHERE seq = ?1";
        db.run(sql, params![question])?;
    }
    Ok(is_new)
}

/// Counts all answers to the message of an id again.
pub(super) fn judge(db: &Connection, id: &str) -> SqlResult<()> {
    let Some(question) = find(db, id)? else {
        return Ok(());
    };
    for sql in [
        "DELETE FROM answer WHERE question = ?1",
        "UPDATE message SET answered = 0 WHERE seq = ?1",
    ] {
        db.run(sql, params![question.seq])?;
    }
    let asking = question.asking()?;
    let mut answers = db.prepare_cached(
        "SELECT sender, mine, trust FROM message WHERE settles = 1 AND parent = ?1 AND seq <> ?2",
    )?;
    let mut rows = answers.query(params![id, question.seq])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let sender: String = row.get("sender")?;
        let answer = Answering {
            sender: &sender,
            is_mine: row.get("mine")?,
            verdict: row.member("trust", &VerdictWord::ALL)?,
        };
        if answer.settles(&asking) && note(db, question.seq, &sender)? {
            count += 1;
        }
        if count >= question.needs {
            break;
        }
    }
    refresh(db, question.seq)
}

/// Decides again who has to act on a message, by what was counted.
pub(super) fn refresh(db: &Connection, seq: i64) -> SqlResult<()> {
    let sql = "SELECT m.thread, m.wait, m.asks, i.dismissed = 0 AND m.answered < m.needs AND \
        coalesce(iif(m.trust = 0, t.firm_seq, t.closed_seq), 0) < m.seq FROM message m JOIN \
        intake i ON i.seq = m.seq JOIN thread t ON t.id = m.thread WHERE m.seq = ?1";
    let (thread, before, asks, open): (String, i64, i64, bool) =
        db.one(sql, params![seq], tuple)?;
    let after = if open { asks } else { 0 };
    if after != before {
        let sql = "UPDATE message SET wait = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, after])?;
        let sql = "UPDATE thread SET waiting = waiting + (?3 IN (1, 2)) - (?2 IN (1, 2)), asked \
            = asked + (?3 = 3) - (?2 = 3) WHERE id = ?1";
        db.run(sql, params![thread, before, after])?;
    }
    Ok(())
}

/// Ends the wait of a poll whose result is here.
pub(super) fn end_poll(db: &Connection, id: &str) -> SqlResult<()> {
    let sql = "UPDATE intake SET dismissed = 1 WHERE seq IN (SELECT seq FROM message WHERE id = \
        ?1 AND meaning = ?2 AND wait <> 0)";
    match db.run(sql, params![id, Intent::Poll.as_str()])? {
        0 => Ok(()),
        _ => judge(db, id),
    }
}

/// Ends the waits that an older version left: of what exported chats asked, of pasted thanks, and of polls whose result is
/// here.
pub(super) fn end_stale_waits(db: &Connection) -> SqlResult<()> {
    let sql = "SELECT m.seq FROM message m JOIN intake i ON i.seq = m.seq WHERE m.asks <> 0 AND \
        i.way IN (?1, ?2)";
    let ways = params![Way::Filed.as_str(), Way::Pasted.as_str()];
    for seq in db.all(sql, ways, value::<i64>)? {
        if super::accept::row(db, seq)?.arrival.wait() != Wait::Nobody {
            continue;
        }
        db.run("UPDATE message SET asks = 0 WHERE seq = ?1", params![seq])?;
        refresh(db, seq)?;
    }
    let sql = "SELECT a.seq, q.id FROM message q JOIN message a ON a.parent = q.id AND a.mine = 1 \
        WHERE q.meaning = ?1 AND q.wait <> 0";
    let polls = db.all(sql, params![Intent::Poll.as_str()], tuple::<(i64, String)>)?;
    for (answer, poll) in polls {
        if super::accept::row(db, answer)?.arrival.ends_poll() {
            end_poll(db, &poll)?;
        }
    }
    Ok(())
}

/// Clears the waits of a thread up to the message that closed it; those of verified messages up to one that is firm.
/// Nothing if that message closed nothing.
pub(super) fn close(db: &Connection, thread: &str, seq: i64) -> SqlResult<()> {
    let sql = "SELECT 1 FROM thread WHERE id = ?1 AND closed_seq = ?2";
    if !db.has(sql, params![thread, seq])? {
        return Ok(());
    }
    let sql = "SELECT seq FROM message WHERE thread = ?1 AND wait <> 0 AND trust > 0 AND seq < \
        (SELECT coalesce(closed_seq, 0) FROM thread WHERE id = ?1) UNION ALL SELECT seq FROM \
        message WHERE thread = ?1 AND wait <> 0 AND trust = 0 AND seq < (SELECT \
        coalesce(firm_seq, 0) FROM thread WHERE id = ?1)";
    for seq in db.all(sql, params![thread], value::<i64>)? {
        refresh(db, seq)?;
    }
    Ok(())
}

/// The messages that wait for a sender: those of a thread, or without one the latest of all threads. None if there are more
/// than can be looked through.
pub(super) fn open_to(
    db: &Connection,
    thread: Option<&str>,
    sender: &str,
) -> SqlResult<Vec<CandidateQuestion>> {
    let (sql, most) = match thread {
        Some(_) => (
            format!("{QUESTION} WHERE thread = ?1 AND wait <> 0 ORDER BY seq LIMIT ?2"),
            WAITING,
        ),
        None => (
            format!(
                "{QUESTION} INDEXED BY message_asked WHERE wait IN (2, 3) AND ?1 IS NULL ORDER BY seq DESC LIMIT ?2"
            ),
            WAITING_ANYWHERE,
        ),
    };
    let limit = number(most).saturating_add(1);
    let rows = db.all(&sql, params![thread, limit], question)?;
    if rows.len() > most {
        return Ok(Vec::new());
    }
    let mut open = Vec::new();
    for row in rows {
        if row.asking()?.waits_for(sender, &answered_by(db, row.seq)?) {
            open.push(CandidateQuestion {
                id: row.id,
                sender: row.sender,
            });
        }
    }
    Ok(open)
}

/// The thread of a question that does not wait for somebody: they have answered it so that it counts, or it asks others. A
/// poll that asks them is left out: a voter may vote again.
pub(super) fn not_waiting_in(db: &Connection, id: &str, sender: &str) -> SqlResult<Option<String>> {
    let Some(question) = find(db, id)? else {
        return Ok(None);
    };
    let asking = question.asking()?;
    let may_answer_again = asking.is_poll && asking.asks(sender);
    let answered = answered_by(db, question.seq)?;
    match !may_answer_again && !asking.waits_for(sender, &answered) {
        true => super::accept::thread_of(db, Some(id)),
        false => Ok(None),
    }
}

/// Who has answered a message so that it counts.
fn answered_by(db: &Connection, question: i64) -> SqlResult<Vec<String>> {
    let sql = "SELECT party FROM answer WHERE question = ?1";
    db.all(sql, params![question], value)
}
