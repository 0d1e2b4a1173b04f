//! The tables of the index: reads facts for the rules of indexing ([`Index`]) and writes their changes.

use crosstalk_envelope::{Intent, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Arrival, ChangedMessage, ChangedThread, Index, IndexChanges, IndexFacts, IndexedMessage,
    IndexedParty, IndexedThread, Wait, Way,
};
use rusqlite::{CachedStatement, Connection, Params, Row, params};

use super::derive::IntakeRow;
use super::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, member, number, position, time, unknown, value};

/// Reads what is indexed.
pub(super) struct Facts<'c>(pub(super) &'c Connection);

macro_rules! messages {
    ($rest:literal) => {
        concat!(
            "SELECT m.seq, m.id, m.thread, m.names, m.parent, m.session, m.sender, m.receiver, m.targets, m.meaning, \
             m.at, m.trust, m.counts, m.settles, m.closes, m.reopens, m.mine, m.asks, m.needs, m.answered, m.wait, \
             i.dismissed, i.way FROM message m ",
            $rest
        )
    };
}

/// Reads the columns of `messages!`, by their positions: to look for names takes longer than to read.
fn message(row: &Row<'_>) -> SqlResult<IndexedMessage> {
    let text = |place: usize| SqlResult::Ok(row.get_ref(place)?.as_str_or_null()?);
    let count = |place: usize| row.get(place).map(i64::unsigned_abs);
    let wait = |place: usize| member("wait", &Wait::ALL, row.get(place)?);
    let meaning = text(9)?;
    let verdict = member("trust", &VerdictWord::ALL, row.get(11)?)?;
    let (is_mine, way) = (row.get(16)?, text(22)?.unwrap_or_default());
    let way = Way::parse(way).ok_or_else(|| unknown("way", way))?;
    let targets = text(8)?.unwrap_or_default().lines();
    Ok(IndexedMessage {
        seq: count(0)?,
        id: row.get(1)?,
        thread: row.get(2)?,
        names: row.get(3)?,
        parent: row.get(4)?,
        session: row.get(5)?,
        sender: row.get(6)?,
        receiver: row.get(7)?,
        targets: targets.map(str::to_owned).collect(),
        meaning: meaning.and_then(|m| Intent::ALL.iter().copied().find(|i| i.as_str() == m)),
        at: Timestamp::from_millis(row.get(10)?),
        verdict,
        counts: row.get(12)?,
        settles: row.get(13)?,
        closes: row.get(14)?,
        reopens: row.get(15)?,
        is_mine,
        joins: is_mine || (verdict == VerdictWord::Verified && way != Way::Relayed),
        asks: wait(17)?,
        needs: count(18)?,
        answered: count(19)?,
        wait: wait(20)?,
        is_dismissed: row.get(21)?,
    })
}

impl Facts<'_> {
    fn all(&self, sql: &str, given: impl Params) -> SqlResult<Vec<IndexedMessage>> {
        self.0.all(sql, given, message)
    }
}

impl IndexFacts for Facts<'_> {
    type Error = rusqlite::Error;

    fn message(&self, id: &str) -> SqlResult<Option<IndexedMessage>> {
        let sql = messages!(
            "CROSS JOIN intake i ON i.seq = m.seq WHERE m.seq = (SELECT seq FROM intake WHERE id = ?1)"
        );
        self.0.find(sql, params![id], message)
    }

    fn thread(&self, id: &str) -> SqlResult<Option<IndexedThread>> {
        let sql = "SELECT messages, waiting, asked, first_at, first_seq, last_at, last_seq, \
            closed_at, closed_seq, firm_seq FROM thread WHERE id = ?1";
        let found = self.0.find(sql, params![id], |row| {
            let count = |place: usize| row.get(place).map(i64::unsigned_abs);
            let position = |place: usize| {
                let seq: Option<i64> = row.get(place)?;
                SqlResult::Ok(seq.map(i64::unsigned_abs))
            };
            let at = |place: usize| row.get(place).map(Timestamp::from_millis);
            Ok(IndexedThread {
                messages: count(0)?,
                waiting: count(1)?,
                asked: count(2)?,
                first: (at(3)?, count(4)?),
                last: (at(5)?, count(6)?),
                closed_at: time(row.get(7)?),
                closed_seq: position(8)?,
                firm_seq: position(9)?,
                parties: Vec::new(),
            })
        })?;
        let Some(mut thread) = found else {
            return Ok(None);
        };
        let sql = "SELECT party, address, first_seq, place, counts FROM party WHERE thread = ?1 \
            ORDER BY first_seq, place";
        thread.parties = self.0.all(sql, params![id], |row| {
            Ok(IndexedParty {
                key: row.get(0)?,
                address: row.get(1)?,
                first_seq: row.get(2).map(i64::unsigned_abs)?,
                place: row.get(3).map(i64::unsigned_abs)?,
                counts: row.get(4)?,
            })
        })?;
        Ok(Some(thread))
    }

    fn messages_of(&self, thread: &str) -> SqlResult<Vec<IndexedMessage>> {
        let sql = messages!("CROSS JOIN intake i ON i.seq = m.seq WHERE m.thread = ?1");
        self.all(sql, params![thread])
    }

    fn waiting_in(&self, thread: &str, limit: usize) -> SqlResult<Vec<IndexedMessage>> {
        let sql = messages!(
            "CROSS JOIN intake i ON i.seq = m.seq WHERE m.thread = ?1 AND m.wait <> 0 LIMIT ?2"
        );
        self.all(sql, params![thread, number(limit)])
    }

    fn waiting_anywhere(&self, limit: usize) -> SqlResult<Vec<IndexedMessage>> {
        let sql = messages!(
            "INDEXED BY message_asked CROSS JOIN intake i ON i.seq = m.seq WHERE m.wait IN (2, 3) \
             ORDER BY m.seq DESC LIMIT ?1"
        );
        self.all(sql, params![number(limit)])
    }

    fn answers_to(&self, id: &str) -> SqlResult<Vec<IndexedMessage>> {
        let sql = messages!("CROSS JOIN intake i ON i.seq = m.seq WHERE m.parent = ?1");
        self.all(sql, params![id])
    }

    fn latest_of_session(&self, session: &str) -> SqlResult<Option<IndexedMessage>> {
        let sql = messages!(
            "CROSS JOIN intake i ON i.seq = m.seq WHERE m.session = ?1 \
             ORDER BY m.counts DESC, m.seq DESC LIMIT 1"
        );
        self.0.find(sql, params![session], message)
    }

    fn thread_asks(&self, thread: &str) -> SqlResult<bool> {
        let sql = "SELECT 1 FROM message WHERE thread = ?1 AND asks <> 0";
        self.0.has(sql, params![thread])
    }

    fn session_asks(&self, session: &str) -> SqlResult<bool> {
        let sql = "SELECT 1 FROM message WHERE session = ?1 AND asks <> 0";
        self.0.has(sql, params![session])
    }

    fn answered_by(&self, seq: u64) -> SqlResult<Vec<String>> {
        let sql = "SELECT party FROM answer WHERE question = ?1";
        self.0.all(sql, params![number(seq)], value)
    }

    fn recipients(&self, seq: u64) -> SqlResult<Vec<String>> {
        let sql = "SELECT address FROM delivery WHERE seq = ?1";
        self.0.all(sql, params![number(seq)], value)
    }
}

/// Changes what is indexed by the rules. Only inside a transaction.
pub(super) fn change<T>(
    db: &Connection,
    decide: impl FnOnce(&mut Index<Facts<'_>>) -> SqlResult<T>,
) -> SqlResult<T> {
    let mut index = Index::new(Facts(db));
    let decided = decide(&mut index)?;
    write(db, &index.finish()?, &[])?;
    Ok(decided)
}

/// Messages that are indexed together, and written at once.
pub(super) struct Batch<'c> {
    db: &'c Connection,
    pub(super) index: Index<Facts<'c>>,
    /// The messages of the batch, by ascending seq.
    arrivals: Vec<(u64, Arrival)>,
}

impl<'c> Batch<'c> {
    pub(super) fn new(db: &'c Connection) -> Self {
        Self {
            db,
            index: Index::new(Facts(db)),
            arrivals: Vec::new(),
        }
    }

    /// Indexes a message. The message that it settles.
    pub(super) fn add(
        &mut self,
        seq: u64,
        arrival: Arrival,
        thread: String,
    ) -> SqlResult<Option<String>> {
        let settled = self.index.add(seq, &arrival, thread)?;
        self.arrivals.push((seq, arrival));
        Ok(settled)
    }

    /// Writes what was indexed so far, so that queries find it.
    pub(super) fn write(&mut self) -> SqlResult<()> {
        let index = std::mem::replace(&mut self.index, Index::new(Facts(self.db)));
        write(self.db, &index.finish()?, &self.arrivals)?;
        self.arrivals.clear();
        Ok(())
    }
}

/// Indexes a message again of which more is known now. Only inside a transaction.
pub(super) fn renew(db: &Connection, row: IntakeRow) -> SqlResult<()> {
    let mut index = Index::new(Facts(db));
    let seq = row.seq.unsigned_abs();
    index.renew(seq, &row.arrival, row.thread)?;
    write(db, &index.finish()?, &[(seq, row.arrival)])
}

/// Indexes a message as it was indexed before. Only inside a transaction.
pub(super) fn restore(db: &Connection, row: IntakeRow) -> SqlResult<()> {
    let mut index = Index::new(Facts(db));
    let seq = row.seq.unsigned_abs();
    index.restore(seq, &row.arrival, row.thread)?;
    write(db, &index.finish()?, &[(seq, row.arrival)])
}

fn write(db: &Connection, changes: &IndexChanges, arrivals: &[(u64, Arrival)]) -> SqlResult<()> {
    let mut rows = IndexedRows::new(db)?;
    for change in &changes.messages {
        let seq = change.message.seq;
        let found = arrivals.binary_search_by_key(&seq, |(seq, _)| *seq);
        match found.ok().and_then(|place| arrivals.get(place)) {
            Some((_, arrival)) if change.is_new => rows.insert(db, change, arrival)?,
            _ => update_message(db, change)?,
        }
        if change.is_moved {
            let sql = "UPDATE intake SET thread = ?2 WHERE seq = ?1";
            db.run(sql, params![number(seq), change.message.thread])?;
        }
        write_answers(db, change)?;
    }
    for thread in &changes.threads {
        write_thread(db, thread)?;
    }
    for seq in &changes.settled {
        db.run(
            "DELETE FROM expectation WHERE seq = ?1",
            params![number(*seq)],
        )?;
    }
    Ok(())
}

/// The statement that each indexed message needs, prepared for a batch.
struct IndexedRows<'c>(CachedStatement<'c>);

impl<'c> IndexedRows<'c> {
    fn new(db: &'c Connection) -> SqlResult<Self> {
        let insert = db.prepare_cached(
            "INSERT INTO message (seq, id, thread, names, parent, session, sender, receiver, targets, user, context, intent, \
             meaning, at, written_at, trust, counts, settles, closes, reopens, mine, asks, needs, answered, wait) VALUES (?1, ?2, \
             ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
        )?;
        Ok(Self(insert))
    }

    /// What the text says, and what follows from it, in columns.
    fn insert(&mut self, db: &Connection, change: &ChangedMessage, a: &Arrival) -> SqlResult<()> {
        let m = &change.message;
        if change.forgets_answers {
            db.run("DELETE FROM message WHERE seq = ?1", params![number(m.seq)])?;
        }
        let targets = (!m.targets.is_empty()).then(|| m.targets.join("\n"));
        self.0.execute(params![
            number(m.seq),
            m.id,
            m.thread,
            m.names,
            m.parent,
            m.session,
            m.sender,
            m.receiver,
            targets,
            a.user,
            a.context,
            a.intent,
            m.meaning.map(|m| m.as_str()),
            m.at.as_millis(),
            a.written_at.map(Timestamp::as_millis),
            position(&VerdictWord::ALL, m.verdict),
            m.counts,
            m.settles,
            m.closes,
            m.reopens,
            m.is_mine,
            position(&Wait::ALL, m.asks),
            number(m.needs),
            number(m.answered),
            position(&Wait::ALL, m.wait),
        ])?;
        Ok(())
    }
}

/// Updates the parts of an indexed message that can change: its thread, its answers, and the party that has to act.
fn update_message(db: &Connection, change: &ChangedMessage) -> SqlResult<()> {
    let m = &change.message;
    let seq = number(m.seq);
    let sql = "UPDATE message SET thread = ?2, answered = ?3, wait = ?4 WHERE seq = ?1";
    let wait = position(&Wait::ALL, m.wait);
    db.run(sql, params![seq, m.thread, number(m.answered), wait])?;
    Ok(())
}

fn write_answers(db: &Connection, change: &ChangedMessage) -> SqlResult<()> {
    let seq = number(change.message.seq);
    if change.forgets_answers {
        db.run("DELETE FROM answer WHERE question = ?1", params![seq])?;
    }
    for party in &change.answered_by {
        let sql = "INSERT INTO answer (question, party) VALUES (?1, ?2)";
        db.run(sql, params![seq, party])?;
    }
    if change.changes_dismissal {
        let sql = "UPDATE intake SET dismissed = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, change.message.is_dismissed])?;
    }
    Ok(())
}

fn write_thread(db: &Connection, change: &ChangedThread) -> SqlResult<()> {
    if change.forgets_parties {
        db.run("DELETE FROM party WHERE thread = ?1", params![change.id])?;
    }
    let Some(t) = &change.thread else {
        db.run("DELETE FROM thread WHERE id = ?1", params![change.id])?;
        return Ok(());
    };
    let sql = "INSERT INTO thread (id, messages, waiting, asked, first_at, first_seq, last_at, \
        last_seq, closed_at, closed_seq, firm_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
        ?10, ?11) ON CONFLICT (id) DO UPDATE SET messages = ?2, waiting = ?3, asked = ?4, \
        first_at = ?5, first_seq = ?6, last_at = ?7, last_seq = ?8, closed_at = ?9, closed_seq = \
        ?10, firm_seq = ?11";
    db.run(
        sql,
        params![
            change.id,
            number(t.messages),
            number(t.waiting),
            number(t.asked),
            t.first.0.as_millis(),
            number(t.first.1),
            t.last.0.as_millis(),
            number(t.last.1),
            t.closed_at.map(Timestamp::as_millis),
            t.closed_seq.map(number),
            t.firm_seq.map(number),
        ],
    )?;
    for party in &t.parties {
        let sql = "INSERT INTO party (thread, party, address, first_seq, place, counts, last_at, \
            last_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (thread, party) DO \
            UPDATE SET counts = ?6, last_at = ?7, last_seq = ?8";
        db.run(
            sql,
            params![
                change.id,
                party.key,
                party.address,
                number(party.first_seq),
                number(party.place),
                party.counts,
                t.last.0.as_millis(),
                number(t.last.1),
            ],
        )?;
    }
    Ok(())
}
