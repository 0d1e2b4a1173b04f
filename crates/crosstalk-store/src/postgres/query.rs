//! Queries for messages and threads.

use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::store::{
    AnsweredQuestion, FailedAnswer, Listing, OpenQuestion, Page, Record, Side, Thread,
    ThreadFilter, Wait, Way, party,
};
use tokio_postgres::Row;

use super::fault::PgResult;
use super::sql::{Db, Given, PgColumns as _, number, params, tuple, value};
use crosstalk_protocol::VerdictWord;

/// How many parties of a thread are named.
const PARTIES: i64 = 16;
/// How many open questions of a thread are looked at.
const QUESTIONS: i64 = 16;

pub(super) const RECORD: &str = "SELECT m.seq, m.id, i.carried, m.thread, m.parent, m.session, m.sender, m.receiver, m.speaker AS user, \
                      m.context, m.intent, m.meaning, m.at, m.written_at, i.verdict, i.pkid, i.side, i.way, m.wait, \
                      i.digest, i.expires, i.text, i.received, i.chain, i.entry, i.truncated";

pub(super) fn record(row: &Row) -> PgResult<Record> {
    let meaning: Option<String> = row.try_get("meaning")?;
    let intents = || Intent::ALL.iter().copied();
    Ok(Record {
        seq: row.seq("seq")?,
        entry: row.log_place()?,
        id: row.try_get("id")?,
        carries_id: row.try_get("carried")?,
        thread: row.try_get("thread")?,
        parent: row.try_get("parent")?,
        session: row.try_get("session")?,
        sender: row.try_get("sender")?,
        receiver: row.try_get("receiver")?,
        user: row.try_get("user")?,
        context: row.try_get("context")?,
        intent: row.try_get("intent")?,
        meaning: meaning.and_then(|m| intents().find(|i| i.as_str() == m)),
        at: row.time("at")?,
        written_at: row.opt_time("written_at")?,
        verdict: row.word("verdict", VerdictWord::parse)?,
        pkid: row.opt_text("pkid")?,
        side: row.word("side", Side::parse)?,
        way: row.word("way", Way::parse)?,
        wait: row.member("wait", &Wait::ALL)?,
        digest: row.digest("digest")?,
        expires: row.opt_time("expires")?,
        text: row.try_get("text")?,
        received: row.try_get("received")?,
        truncated: row.try_get("truncated")?,
    })
}

pub(super) fn messages(
    db: &Db,
    thread: &str,
    after: Option<u64>,
    limit: usize,
) -> PgResult<Listing<Record>> {
    let sql = format!(
        "{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.thread = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3"
    );
    let after = after.map_or(0, number);
    let asked = params![thread, after, one_more(limit)];
    list(db, &sql, asked, record, limit)
}

pub(super) fn messages_before(
    db: &Db,
    thread: &str,
    before: u64,
    limit: usize,
) -> PgResult<Vec<Record>> {
    let sql = format!(
        "{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.thread = $1 AND m.seq < $2 ORDER BY m.seq DESC LIMIT $3"
    );
    let asked = params![thread, number(before), number(limit)];
    db.all(&sql, asked, record)
}

const THREAD: &str = "SELECT t.id, f.context, f.session, t.messages, t.waiting, t.asked, t.first_at, t.last_at, \
                      l.id AS last, t.last_seq, t.closed_at";
const THREAD_ENDS: &str =
    "JOIN message f ON f.seq = t.first_seq JOIN message l ON l.seq = t.last_seq";

fn thread_row(row: &Row) -> PgResult<Thread> {
    Ok(Thread {
        id: row.try_get("id")?,
        context: row.try_get("context")?,
        session: row.try_get("session")?,
        parties: Vec::new(),
        messages: row.seq("messages")?,
        waiting: row.seq("waiting")?,
        asked: row.seq("asked")?,
        first_at: row.time("first_at")?,
        last_at: row.time("last_at")?,
        last: row.try_get("last")?,
        last_seq: row.seq("last_seq")?,
        closed_at: row.opt_time("closed_at")?,
        open: Vec::new(),
        has_answer: false,
        failed: Vec::new(),
        electorates: Vec::new(),
    })
}

/// Adds who is in a thread, and what is open in it.
fn complete(db: &Db, thread: &mut Thread) -> PgResult<()> {
    add_parties(db, thread)?;
    if thread.waiting > 0 || thread.asked > 0 {
        let sql = "SELECT seq, wait, receiver, targets FROM message WHERE thread = $1 AND wait \
            <> 0 ORDER BY wait, seq LIMIT $2";
        thread.open = db.all(sql, params![thread.id, QUESTIONS], |row| {
            open_question(db, row)
        })?;
    }
    let sql = "SELECT 1 FROM message WHERE thread = $1 AND settles";
    thread.has_answer = db.has(sql, params![thread.id])?;
    let failures = "SELECT 1 FROM message WHERE thread = $1 AND settles AND NOT mine AND meaning IN ('ERROR', 'NACK')";
    if thread.has_answer && db.has(failures, params![thread.id])? {
        thread.failed = FailedAnswer::remaining(answered_questions(db, &thread.id)?);
    }
    thread.electorates = electorates(db, &thread.id)?;
    Ok(())
}

/// How the questions of a thread ended, in the order of the answers that others gave.
fn answered_questions(db: &Db, thread: &str) -> PgResult<Vec<AnsweredQuestion>> {
    let sql = "SELECT CASE WHEN q.seq IS NULL OR q.meaning = 'POLL' THEN a.sender ELSE q.receiver END, a.meaning, \
        i.text FROM message a JOIN intake i ON i.seq = a.seq LEFT JOIN message q ON q.id = \
        a.parent WHERE a.thread = $1 AND a.settles AND NOT a.mine ORDER BY a.seq";
    db.all(sql, params![thread], |row| {
        let (of, meaning): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let failure = match [Intent::Error, Intent::Nack]
            .iter()
            .any(|i| i.as_str() == meaning)
        {
            true => {
                let text: String = row.try_get(2)?;
                let document = Document::parse(&text, Reading::Strict);
                let code = document.envelope().error().and_then(|e| e.code);
                Some(code.map_or(meaning, |c| c.as_str().to_owned()))
            }
            false => None,
        };
        Ok(AnsweredQuestion { of, failure })
    })
}

/// The receivers of the polls of a thread that are none of their voters.
fn electorates(db: &Db, thread: &str) -> PgResult<Vec<String>> {
    let sql = "SELECT receiver, targets FROM message WHERE thread = $1 AND meaning = 'POLL' AND \
        targets IS NOT NULL ORDER BY seq LIMIT $2";
    let rows = db.all(sql, params![thread, QUESTIONS], tuple::<(String, String)>)?;
    let mut names: Vec<String> = Vec::new();
    for (receiver, targets) in rows {
        let is_voter = targets.lines().any(|t| party(t) == party(&receiver));
        if !is_voter && !names.contains(&receiver) {
            names.push(receiver);
        }
    }
    Ok(names)
}

/// Reads the columns `seq`, `wait`, `receiver` and `targets` of a message that waits.
fn open_question(db: &Db, row: &Row) -> PgResult<OpenQuestion> {
    let seq: i64 = row.try_get("seq")?;
    let receiver: String = row.try_get("receiver")?;
    let targets: Option<String> = row.try_get("targets")?;
    let targets: Vec<&str> = targets.as_deref().unwrap_or_default().lines().collect();
    let sql = "SELECT party FROM answer WHERE question = $1";
    let answered = db.all(sql, params![seq], value::<String>)?;
    let wait = row.member("wait", &Wait::ALL)?;
    Ok(OpenQuestion::new(wait, &receiver, &targets, &answered))
}

fn add_parties(db: &Db, thread: &mut Thread) -> PgResult<()> {
    let sql = "SELECT address FROM party WHERE thread = $1 ORDER BY first_seq, place LIMIT $2";
    thread.parties = db.all(sql, params![thread.id, PARTIES], value)?;
    Ok(())
}

pub(super) fn thread(db: &Db, id: &str) -> PgResult<Option<Thread>> {
    let sql = format!("{THREAD} FROM thread t {THREAD_ENDS} WHERE t.id = $1");
    let mut found = db.find(&sql, params![id], thread_row)?;
    if let Some(thread) = &mut found {
        complete(db, thread)?;
    }
    Ok(found)
}

pub(super) fn threads(db: &Db, filter: &ThreadFilter, page: Page) -> PgResult<Listing<Thread>> {
    let open = if filter.open {
        "AND t.closed_at IS NULL"
    } else {
        ""
    };
    let waiting = if filter.waiting {
        "AND t.waiting > 0"
    } else {
        ""
    };
    let (from, order) = match (&filter.with, filter.waiting, filter.open) {
        (Some(_), ..) => ("party p JOIN thread t ON t.id = p.thread", "p"),
        (None, true, _) => ("thread t ", "t"),
        (None, false, true) => ("thread t ", "t"),
        (None, false, false) => ("thread t ", "t"),
    };
    let with = match filter.with {
        Some(_) => "p.party = $3",
        None => "$3::text IS NULL",
    };
    // A page is found by an index, however far back it is.
    let after = match filter.after {
        Some(_) => format!("AND ({order}.last_at, {order}.last_seq) < ($4, $5)"),
        None => "AND $4::bigint IS NULL AND $5::bigint IS NULL".to_owned(),
    };
    let sql = format!(
        "{THREAD} FROM {from} {THREAD_ENDS} WHERE {with} {open} {waiting} {after} \
         ORDER BY {order}.last_at DESC, {order}.last_seq DESC LIMIT $1 OFFSET $2"
    );
    let with = filter.with.as_deref().map(party);
    let (at, seq) = filter
        .after
        .map(|after| (after.at.as_millis(), number(after.seq)))
        .unzip();
    let asked = params![one_more(page.limit), number(page.skip), with, at, seq];
    let mut listing = list(db, &sql, asked, thread_row, page.limit)?;
    for thread in &mut listing.items {
        complete(db, thread)?;
    }
    Ok(listing)
}

/// Runs a query that asks for one row more than is wanted.
fn list<T>(
    db: &Db,
    sql: &str,
    asked: Given<'_>,
    read: fn(&Row) -> PgResult<T>,
    limit: usize,
) -> PgResult<Listing<T>> {
    let items = db.all(sql, asked, read)?;
    Ok(cut(items, limit))
}

/// As many as are wanted, of one more.
pub(super) fn cut<T>(mut items: Vec<T>, limit: usize) -> Listing<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    Listing { items, more }
}

fn one_more(limit: usize) -> i64 {
    number(limit.saturating_add(1))
}
