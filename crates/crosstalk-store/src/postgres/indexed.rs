//! The tables of the index: reads facts for the rules of indexing ([`Index`]) and writes their changes.

use crosstalk_envelope::{Intent, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Arrival, ChangedMessage, ChangedThread, Index, IndexChanges, IndexFacts, IndexedMessage,
    IndexedParty, IndexedThread, Wait, Way,
};
use std::collections::{BTreeSet, HashMap};
use tokio_postgres::Row;

use super::fault::{PgResult, SqlError};
use super::intake::PgIntakeRow;
use super::quarantine;
use super::sql::{Db, Given, member, number, owned, params, position, time, unknown, value};

/// Reads what is indexed. Much of what a batch asks for was read together before.
pub(super) struct PgFacts<'c> {
    db: &'c Db,
    messages: HashMap<String, Option<IndexedMessage>>,
    threads: HashMap<String, Option<IndexedThread>>,
    answers: HashMap<String, Vec<IndexedMessage>>,
    sessions: HashMap<String, Option<IndexedMessage>>,
}

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

/// A count or a position in a column.
fn count(row: &Row, place: usize) -> PgResult<u64> {
    let count: i64 = row.try_get(place)?;
    Ok(count.unsigned_abs())
}

/// Reads the columns of `messages!`, by their positions: to look for names takes longer than to read.
fn message(row: &Row) -> PgResult<IndexedMessage> {
    let text = |place: usize| PgResult::Ok(row.try_get::<_, Option<&str>>(place)?);
    let count = |place: usize| count(row, place);
    let wait = |place: usize| member("wait", &Wait::ALL, row.try_get(place)?);
    let meaning = text(9)?;
    let verdict = member("trust", &VerdictWord::ALL, row.try_get(11)?)?;
    let (is_mine, way) = (row.try_get(16)?, text(22)?.unwrap_or_default());
    let way = Way::parse(way).ok_or_else(|| unknown("way", way))?;
    let targets = text(8)?.unwrap_or_default().lines();
    Ok(IndexedMessage {
        seq: count(0)?,
        id: row.try_get(1)?,
        thread: row.try_get(2)?,
        names: row.try_get(3)?,
        parent: row.try_get(4)?,
        session: row.try_get(5)?,
        sender: row.try_get(6)?,
        receiver: row.try_get(7)?,
        targets: targets.map(str::to_owned).collect(),
        meaning: meaning.and_then(|m| Intent::ALL.iter().copied().find(|i| i.as_str() == m)),
        at: Timestamp::from_millis(row.try_get(10)?),
        verdict,
        counts: row.try_get(12)?,
        settles: row.try_get(13)?,
        closes: row.try_get(14)?,
        reopens: row.try_get(15)?,
        is_mine,
        joins: is_mine || (verdict == VerdictWord::Verified && way != Way::Relayed),
        asks: wait(17)?,
        needs: count(18)?,
        answered: count(19)?,
        wait: wait(20)?,
        is_dismissed: row.try_get(21)?,
    })
}

const THREAD: &str = "SELECT messages, waiting, asked, first_at, first_seq, last_at, last_seq, closed_at, closed_seq, \
    firm_seq, id FROM thread WHERE id = ANY ($1)";
const PARTIES: &str = "SELECT party, address, first_seq, place, counts, thread FROM party WHERE thread = ANY ($1) ORDER BY \
    first_seq, place";

fn thread(row: &Row) -> PgResult<IndexedThread> {
    let count = |place: usize| count(row, place);
    let position = |place: usize| {
        let seq: Option<i64> = row.try_get(place)?;
        PgResult::Ok(seq.map(i64::unsigned_abs))
    };
    let at = |place: usize| PgResult::Ok(Timestamp::from_millis(row.try_get(place)?));
    Ok(IndexedThread {
        messages: count(0)?,
        waiting: count(1)?,
        asked: count(2)?,
        first: (at(3)?, count(4)?),
        last: (at(5)?, count(6)?),
        closed_at: time(row.try_get(7)?),
        closed_seq: position(8)?,
        firm_seq: position(9)?,
        parties: Vec::new(),
    })
}

/// Threads by id, with their parties.
fn threads(rows: &[Row], parties: &[Row]) -> PgResult<HashMap<String, IndexedThread>> {
    let mut found = HashMap::new();
    for row in rows {
        found.insert(row.try_get::<_, String>(10)?, thread(row)?);
    }
    for row in parties {
        if let Some(of) = found.get_mut(row.try_get::<_, &str>(5)?) {
            of.parties.push(IndexedParty {
                key: row.try_get(0)?,
                address: row.try_get(1)?,
                first_seq: count(row, 2)?,
                place: count(row, 3)?,
                counts: row.try_get(4)?,
            });
        }
    }
    Ok(found)
}

impl<'c> PgFacts<'c> {
    pub(super) fn new(db: &'c Db) -> Self {
        Self {
            db,
            messages: HashMap::new(),
            threads: HashMap::new(),
            answers: HashMap::new(),
            sessions: HashMap::new(),
        }
    }

    /// Reads what messages will ask for, in one trip. An index knows what it changes itself.
    fn load(db: &'c Db, rows: &[PgIntakeRow]) -> PgResult<Self> {
        let (mut ids, mut own, mut of) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut sessions = BTreeSet::new();
        for PgIntakeRow {
            thread, arrival, ..
        } in rows
        {
            own.insert(arrival.id());
            ids.insert(arrival.id());
            ids.extend(arrival.answered());
            ids.extend(arrival.thread.as_deref());
            of.insert(thread.as_str());
            of.extend(arrival.thread.as_deref());
            of.insert(&arrival.generated.thread);
            sessions.extend(arrival.session.as_deref());
        }
        let list = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect();
        let (ids, own, of): (Vec<String>, Vec<String>, Vec<String>) =
            (list(ids), list(own), list(of));
        let sessions: Vec<String> = list(sessions);
        let answers = db.pipeline(&[
            (
                messages!("JOIN intake i ON i.seq = m.seq WHERE m.id = ANY ($1)"),
                params![ids],
            ),
            (THREAD, params![of]),
            (PARTIES, params![of]),
            (
                messages!("JOIN intake i ON i.seq = m.seq WHERE m.parent = ANY ($1)"),
                params![own],
            ),
            (
                concat!(
                    "SELECT DISTINCT ON (s.session) s.* FROM (",
                    messages!("JOIN intake i ON i.seq = m.seq WHERE m.session = ANY ($1)"),
                    ") s ORDER BY s.session, s.counts DESC, s.seq DESC"
                ),
                params![sessions],
            ),
        ])?;
        let mut facts = Self::new(db);
        let [found, found_threads, parties, answering, of_sessions] = answers.as_slice() else {
            return Err(SqlError::NoRow);
        };
        facts.messages = ids.into_iter().map(|id| (id, None)).collect();
        for row in found {
            let found = message(row)?;
            facts.messages.insert(found.id.clone(), Some(found));
        }
        facts.threads = of.into_iter().map(|id| (id, None)).collect();
        for (id, found) in threads(found_threads, parties)? {
            facts.threads.insert(id, Some(found));
        }
        facts.answers = own.into_iter().map(|id| (id, Vec::new())).collect();
        for row in answering {
            let found = message(row)?;
            if let Some(parent) = found.parent.clone() {
                facts.answers.entry(parent).or_default().push(found);
            }
        }
        facts.sessions = sessions.into_iter().map(|name| (name, None)).collect();
        for row in of_sessions {
            let found = message(row)?;
            if let Some(session) = found.session.clone() {
                facts.sessions.insert(session, Some(found));
            }
        }
        Ok(facts)
    }

    fn all(&self, sql: &str, given: Given<'_>) -> PgResult<Vec<IndexedMessage>> {
        self.db.all(sql, given, message)
    }
}

impl IndexFacts for PgFacts<'_> {
    type Error = SqlError;

    fn message(&self, id: &str) -> PgResult<Option<IndexedMessage>> {
        if let Some(known) = self.messages.get(id) {
            return Ok(known.clone());
        }
        let sql = messages!("JOIN intake i ON i.seq = m.seq WHERE m.id = $1");
        self.db.find(sql, params![id], message)
    }

    fn thread(&self, id: &str) -> PgResult<Option<IndexedThread>> {
        if let Some(known) = self.threads.get(id) {
            return Ok(known.clone());
        }
        let ids = [id];
        let ids = ids.as_slice();
        let asked = self
            .db
            .pipeline(&[(THREAD, params![ids]), (PARTIES, params![ids])])?;
        let [found, parties] = asked.as_slice() else {
            return Err(SqlError::NoRow);
        };
        Ok(threads(found, parties)?.remove(id))
    }

    fn messages_of(&self, thread: &str) -> PgResult<Vec<IndexedMessage>> {
        let sql = messages!("JOIN intake i ON i.seq = m.seq WHERE m.thread = $1");
        self.all(sql, params![thread])
    }

    fn waiting_in(&self, thread: &str, limit: usize) -> PgResult<Vec<IndexedMessage>> {
        let sql = messages!(
            "JOIN intake i ON i.seq = m.seq WHERE m.thread = $1 AND m.wait <> 0 LIMIT $2"
        );
        self.all(sql, params![thread, number(limit)])
    }

    fn waiting_anywhere(&self, limit: usize) -> PgResult<Vec<IndexedMessage>> {
        let sql = messages!(
            " JOIN intake i ON i.seq = m.seq WHERE m.wait IN (2, 3) \
             ORDER BY m.seq DESC LIMIT $1"
        );
        self.all(sql, params![number(limit)])
    }

    fn answers_to(&self, id: &str) -> PgResult<Vec<IndexedMessage>> {
        if let Some(known) = self.answers.get(id) {
            return Ok(known.clone());
        }
        let sql = messages!("JOIN intake i ON i.seq = m.seq WHERE m.parent = $1");
        self.all(sql, params![id])
    }

    fn latest_of_session(&self, session: &str) -> PgResult<Option<IndexedMessage>> {
        if let Some(known) = self.sessions.get(session) {
            return Ok(known.clone());
        }
        let sql = messages!(
            "JOIN intake i ON i.seq = m.seq WHERE m.session = $1 \
             ORDER BY m.counts DESC, m.seq DESC LIMIT 1"
        );
        self.db.find(sql, params![session], message)
    }

    fn thread_asks(&self, thread: &str) -> PgResult<bool> {
        let sql = "SELECT 1 FROM message WHERE thread = $1 AND asks <> 0";
        self.db.has(sql, params![thread])
    }

    fn session_asks(&self, session: &str) -> PgResult<bool> {
        let sql = "SELECT 1 FROM message WHERE session = $1 AND asks <> 0";
        self.db.has(sql, params![session])
    }

    fn answered_by(&self, seq: u64) -> PgResult<Vec<String>> {
        let sql = "SELECT party FROM answer WHERE question = $1";
        self.db.all(sql, params![number(seq)], value)
    }

    fn recipients(&self, seq: u64) -> PgResult<Vec<String>> {
        let sql = "SELECT address FROM delivery WHERE seq = $1";
        self.db.all(sql, params![number(seq)], value)
    }
}

/// Changes what is indexed by the rules. Only inside a transaction.
pub(super) fn change<T>(
    db: &Db,
    decide: impl FnOnce(&mut Index<PgFacts<'_>>) -> PgResult<T>,
) -> PgResult<T> {
    let mut index = Index::new(PgFacts::new(db));
    let decided = decide(&mut index)?;
    write(db, &index.finish()?, &[])?;
    Ok(decided)
}

/// Messages that are indexed together, and written at once.
pub(super) struct PgBatch<'c> {
    db: &'c Db,
    pub(super) index: Index<PgFacts<'c>>,
    /// The messages of the batch, by ascending seq.
    arrivals: Vec<(u64, Arrival)>,
}

impl<'c> PgBatch<'c> {
    pub(super) fn new(db: &'c Db, rows: &[PgIntakeRow]) -> PgResult<Self> {
        Ok(Self {
            db,
            index: Index::new(PgFacts::load(db, rows)?),
            arrivals: Vec::new(),
        })
    }

    /// Indexes a message. The message that it settles.
    pub(super) fn add(
        &mut self,
        seq: u64,
        arrival: Arrival,
        thread: String,
    ) -> PgResult<Option<String>> {
        let settled = self.index.add(seq, &arrival, thread)?;
        self.arrivals.push((seq, arrival));
        Ok(settled)
    }

    /// Writes what was indexed so far, so that queries find it.
    pub(super) fn write(&mut self) -> PgResult<()> {
        let index = std::mem::replace(&mut self.index, Index::new(PgFacts::new(self.db)));
        write(self.db, &index.finish()?, &self.arrivals)?;
        self.arrivals.clear();
        Ok(())
    }
}

/// Indexes a message again of which more is known now. Only inside a transaction.
pub(super) fn renew(db: &Db, row: PgIntakeRow) -> PgResult<()> {
    let mut index = Index::new(PgFacts::new(db));
    let seq = row.seq.unsigned_abs();
    index.renew(seq, &row.arrival, row.thread)?;
    write(db, &index.finish()?, &[(seq, row.arrival)])
}

fn write(db: &Db, changes: &IndexChanges, arrivals: &[(u64, Arrival)]) -> PgResult<()> {
    for change in &changes.messages {
        let seq = change.message.seq;
        let found = arrivals.binary_search_by_key(&seq, |(seq, _)| *seq);
        match found.ok().and_then(|place| arrivals.get(place)) {
            Some((_, arrival)) if change.is_new => insert_message(db, change, arrival)?,
            _ => update_message(db, change)?,
        }
        if change.is_moved {
            let sql = "UPDATE intake SET thread = $2 WHERE seq = $1";
            db.later(sql, owned![number(seq), change.message.thread.clone()]);
        }
        write_answers(db, change)?;
    }
    for thread in &changes.threads {
        write_thread(db, thread)?;
    }
    for seq in &changes.settled {
        db.later(
            "DELETE FROM expectation WHERE seq = $1",
            owned![number(*seq)],
        );
    }
    db.flush()
}

/// What the text says, and what follows from it, in columns.
fn insert_message(db: &Db, change: &ChangedMessage, a: &Arrival) -> PgResult<()> {
    let m = &change.message;
    if change.forgets_answers {
        db.later("DELETE FROM message WHERE seq = $1", owned![number(m.seq)]);
    }
    let sql = "INSERT INTO message (seq, id, thread, names, parent, session, sender, receiver, \
        targets, speaker, context, intent, meaning, at, written_at, trust, counts, settles, closes, \
        reopens, mine, asks, needs, answered, wait) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
        $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)";
    let targets = (!m.targets.is_empty()).then(|| m.targets.join("\n"));
    db.later(
        sql,
        owned![
            number(m.seq),
            m.id.clone(),
            m.thread.clone(),
            m.names.clone(),
            m.parent.clone(),
            m.session.clone(),
            m.sender.clone(),
            m.receiver.clone(),
            targets,
            a.user.clone(),
            a.context.clone(),
            a.intent.clone(),
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
        ],
    );
    Ok(())
}

/// Updates the parts of an indexed message that can change: its thread, its answers, and the party that has to act.
fn update_message(db: &Db, change: &ChangedMessage) -> PgResult<()> {
    let m = &change.message;
    let seq = number(m.seq);
    let sql = "UPDATE message SET thread = $2, answered = $3, wait = $4 WHERE seq = $1";
    let wait = position(&Wait::ALL, m.wait);
    db.later(sql, owned![seq, m.thread.clone(), number(m.answered), wait]);
    Ok(())
}

fn write_answers(db: &Db, change: &ChangedMessage) -> PgResult<()> {
    let seq = number(change.message.seq);
    if change.forgets_answers {
        db.later("DELETE FROM answer WHERE question = $1", owned![seq]);
    }
    for party in &change.answered_by {
        let sql = "INSERT INTO answer (question, party) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        db.later(sql, owned![seq, party.clone()]);
    }
    if change.changes_dismissal {
        let sql = "UPDATE intake SET dismissed = $2 WHERE seq = $1";
        db.later(sql, owned![seq, change.message.is_dismissed]);
    }
    Ok(())
}

fn write_thread(db: &Db, change: &ChangedThread) -> PgResult<()> {
    if change.forgets_parties {
        db.later(
            "DELETE FROM party WHERE thread = $1",
            owned![change.id.clone()],
        );
    }
    let Some(t) = &change.thread else {
        db.later(
            "DELETE FROM thread WHERE id = $1",
            owned![change.id.clone()],
        );
        return Ok(());
    };
    let sql = "INSERT INTO thread (id, messages, waiting, asked, first_at, first_seq, last_at, \
        last_seq, closed_at, closed_seq, firm_seq) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
        $10, $11) ON CONFLICT (id) DO UPDATE SET messages = $2, waiting = $3, asked = $4, \
        first_at = $5, first_seq = $6, last_at = $7, last_seq = $8, closed_at = $9, closed_seq = \
        $10, firm_seq = $11";
    db.later(
        sql,
        owned![
            change.id.clone(),
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
    );
    for party in &t.parties {
        let sql = "INSERT INTO party (thread, party, address, first_seq, place, counts, last_at, \
            last_seq) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (thread, party) DO \
            UPDATE SET counts = $6, last_at = $7, last_seq = $8";
        db.later(
            sql,
            owned![
                change.id.clone(),
                party.key.clone(),
                party.address.clone(),
                number(party.first_seq),
                number(party.place),
                party.counts,
                t.last.0.as_millis(),
                number(t.last.1),
            ],
        );
    }
    Ok(())
}

/// Whether a message is indexed: not if it still waits for that, or is quarantined.
pub(super) fn is_indexed(db: &Db, seq: i64) -> PgResult<bool> {
    db.has("SELECT 1 FROM message WHERE seq = $1", params![seq])
}

/// Removes a message from the index, or out of quarantine; its thread and parties are left as they are.
pub(super) fn unindex(db: &Db, seq: i64) -> PgResult<()> {
    if quarantine::release(db, seq)? {
        return Ok(());
    }
    for sql in [
        "DELETE FROM answer WHERE question = $1",
        "DELETE FROM message WHERE seq = $1",
        "DELETE FROM words WHERE seq = $1",
    ] {
        db.run(sql, params![seq])?;
    }
    Ok(())
}
