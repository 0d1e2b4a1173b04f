//! Queries for messages and threads.

use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::store::{
    AnsweredQuestion, AskedMessage, FailedAnswer, Field, Listing, OpenQuestion, Page, Record,
    Search, Side, Term, Thread, ThreadFilter, Wait, Way, is_same_party, party,
};
use rusqlite::{Connection, Params, Row, params};

use super::fault::SqlResult;
use crate::sqlite::sql::{Columns as _, Sql as _, number, value};
use crosstalk_protocol::VerdictWord;

/// How many parties of a thread are named.
const PARTIES: i64 = 16;
/// How many open questions of a thread are looked at.
const QUESTIONS: i64 = 16;

pub(super) const RECORD: &str = "SELECT m.seq, m.id, i.carried, m.thread, m.parent, m.session, m.sender, m.receiver, m.user, \
                      m.context, m.intent, m.meaning, m.at, m.written_at, i.verdict, i.pkid, i.side, i.way, m.wait, \
                      i.digest, i.expires, i.text, i.received, i.entry, i.truncated";

pub(super) fn record(row: &Row<'_>) -> SqlResult<Record> {
    let meaning: Option<String> = row.get("meaning")?;
    let intents = || Intent::ALL.iter().copied();
    Ok(Record {
        seq: row.seq("seq")?,
        entry: row.opt_seq("entry")?.map(LogPlace::first),
        id: row.get("id")?,
        carries_id: row.get("carried")?,
        thread: row.get("thread")?,
        parent: row.get("parent")?,
        session: row.get("session")?,
        sender: row.get("sender")?,
        receiver: row.get("receiver")?,
        user: row.get("user")?,
        context: row.get("context")?,
        intent: row.get("intent")?,
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
        text: row.get("text")?,
        received: row.get("received")?,
        truncated: row.get("truncated")?,
    })
}

pub(super) fn message(db: &Connection, id: &str) -> SqlResult<Option<Record>> {
    let sql = format!("{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE i.id = ?1");
    db.find(&sql, params![id], record)
}

pub(super) fn messages(
    db: &Connection,
    thread: &str,
    after: Option<u64>,
    limit: usize,
) -> SqlResult<Listing<Record>> {
    let sql = format!(
        "{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.thread = ?1 AND m.seq > ?2 ORDER BY m.seq LIMIT ?3"
    );
    let after = after.map_or(0, number);
    let asked = params![thread, after, one_more(limit)];
    list(db, &sql, asked, record, limit)
}

pub(super) fn messages_before(
    db: &Connection,
    thread: &str,
    before: u64,
    limit: usize,
) -> SqlResult<Vec<Record>> {
    let sql = format!(
        "{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.thread = ?1 AND m.seq < ?2 ORDER BY m.seq DESC LIMIT ?3"
    );
    let asked = params![thread, number(before), number(limit)];
    db.all(&sql, asked, record)
}

/// The rows that are looked at for one page.
const ADDRESSED_ROWS: i64 = 5_000;

pub(super) fn addressed(
    db: &Connection,
    address: &str,
    after: u64,
    limit: usize,
) -> SqlResult<Listing<Record>> {
    let sql = format!(
        "{RECORD}, m.targets FROM party p INDEXED BY party_last CROSS JOIN message m ON m.thread = p.thread AND m.seq > ?2 \
         JOIN intake i ON i.seq = m.seq WHERE p.party = ?1 AND p.last_seq > ?2 ORDER BY m.seq LIMIT ?3"
    );
    let mut find = db.prepare_cached(&sql)?;
    let mut rows = find.query(params![party(address), number(after), ADDRESSED_ROWS])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        let (receiver, targets): (String, Option<String>) =
            (row.get("receiver")?, row.get("targets")?);
        let mut asked = targets.as_deref().unwrap_or_default().lines();
        let is_asked = asked.any(|one| is_same_party(one, address));
        if is_asked || is_same_party(&receiver, address) {
            items.push(record(row)?);
        }
        if items.len() > limit {
            break;
        }
    }
    Ok(cut(items, limit))
}

pub(super) fn inbox(db: &Connection, page: Page) -> SqlResult<Listing<Record>> {
    let sql = format!(
        "{RECORD} FROM message m INDEXED BY message_inbox JOIN intake i ON i.seq = m.seq WHERE m.wait IN (1, 2) \
         ORDER BY m.seq DESC LIMIT ?1 OFFSET ?2"
    );
    let asked = params![one_more(page.limit), number(page.skip)];
    list(db, &sql, asked, record, page.limit)
}

/// The messages that wait for others, by threads: few threads ask something, and what they ask is found by an index.
pub(super) fn asked(db: &Connection, page: Page) -> SqlResult<Listing<AskedMessage>> {
    let sql = format!(
        "{RECORD}, m.targets FROM thread t INDEXED BY thread_last CROSS JOIN message m INDEXED BY message_waits \
         ON m.thread = t.id AND m.wait <> 0 JOIN intake i ON i.seq = m.seq WHERE t.asked > 0 AND m.wait = 3 \
         ORDER BY t.last_at DESC, t.last_seq DESC LIMIT ?1 OFFSET ?2"
    );
    let asked = params![one_more(page.limit), number(page.skip)];
    let items = db.all(&sql, asked, |row| {
        Ok(AskedMessage {
            record: record(row)?,
            of: open_question(db, row)?.of,
        })
    })?;
    Ok(cut(items, page.limit))
}

pub(super) fn search(db: &Connection, search: &Search, page: Page) -> SqlResult<Listing<Record>> {
    if search.terms.is_empty() {
        return Ok(Listing {
            items: Vec::new(),
            more: false,
        });
    }
    let sql = format!(
        "{RECORD} FROM words JOIN message m ON m.seq = words.rowid JOIN intake i ON i.seq = words.rowid \
         WHERE words MATCH ?1 ORDER BY words.rowid DESC LIMIT ?2 OFFSET ?3"
    );
    let asked = params![expression(search), one_more(page.limit), number(page.skip)];
    list(db, &sql, asked, record, page.limit)
}

/// A search in the query language of the index. All words are quoted, so that no input acts as an operator.
fn expression(search: &Search) -> String {
    let terms: Vec<String> = search.terms.iter().map(term).collect();
    terms.join(" AND ")
}

fn term(term: &Term) -> String {
    let column = match term.field {
        None => "",
        Some(Field::From) => "sender : ",
        Some(Field::To) => "receiver : ",
        Some(Field::Context) => "context : ",
        Some(Field::Intent) => "intent : ",
    };
    let words = term.words.join(" ").replace('"', "\"\"").replace('\0', " ");
    let more = if term.prefix { " *" } else { "" };
    format!("({column}\"{words}\"{more})")
}

const THREAD: &str = "SELECT t.id, f.context, f.session, t.messages, t.waiting, t.asked, t.first_at, t.last_at, \
                      l.id AS last, t.last_seq, t.closed_at";
const THREAD_ENDS: &str =
    "JOIN message f ON f.seq = t.first_seq JOIN message l ON l.seq = t.last_seq";

fn thread_row(row: &Row<'_>) -> SqlResult<Thread> {
    Ok(Thread {
        id: row.get("id")?,
        context: row.get("context")?,
        session: row.get("session")?,
        parties: Vec::new(),
        messages: row.seq("messages")?,
        waiting: row.seq("waiting")?,
        asked: row.seq("asked")?,
        first_at: row.time("first_at")?,
        last_at: row.time("last_at")?,
        last: row.get("last")?,
        last_seq: row.seq("last_seq")?,
        closed_at: row.opt_time("closed_at")?,
        open: Vec::new(),
        has_answer: false,
        failed: Vec::new(),
        electorates: Vec::new(),
    })
}

/// Adds who is in a thread, and what is open in it.
fn complete(db: &Connection, thread: &mut Thread) -> SqlResult<()> {
    add_parties(db, thread)?;
    if thread.waiting > 0 || thread.asked > 0 {
        let sql = "SELECT seq, wait, receiver, targets FROM message WHERE thread = ?1 AND wait \
            <> 0 ORDER BY wait, seq LIMIT ?2";
        thread.open = db.all(sql, params![thread.id, QUESTIONS], |row| {
            open_question(db, row)
        })?;
    }
    let sql = "SELECT 1 FROM message WHERE thread = ?1 AND settles = 1";
    thread.has_answer = db.has(sql, params![thread.id])?;
    let failures = "SELECT 1 FROM message WHERE thread = ?1 AND settles = 1 AND mine = 0 AND meaning IN ('ERROR', 'NACK')";
    if thread.has_answer && db.has(failures, params![thread.id])? {
        thread.failed = FailedAnswer::remaining(answered_questions(db, &thread.id)?);
    }
    thread.electorates = electorates(db, &thread.id)?;
    Ok(())
}

/// How the questions of a thread ended, in the order of the answers that others gave.
fn answered_questions(db: &Connection, thread: &str) -> SqlResult<Vec<AnsweredQuestion>> {
    let sql = "SELECT iif(q.seq IS NULL OR q.meaning = 'POLL', a.sender, q.receiver), a.meaning, \
        i.text FROM message a JOIN intake i ON i.seq = a.seq LEFT JOIN message q ON q.seq = \
        (SELECT seq FROM intake WHERE id = a.parent) WHERE a.thread = ?1 AND a.settles = 1 AND a.mine = 0 ORDER BY a.seq";
    db.all(sql, params![thread], |row| {
        let (of, meaning): (String, String) = (row.get(0)?, row.get(1)?);
        let failure = match [Intent::Error, Intent::Nack]
            .iter()
            .any(|i| i.as_str() == meaning)
        {
            true => {
                let text: String = row.get(2)?;
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
fn electorates(db: &Connection, thread: &str) -> SqlResult<Vec<String>> {
    let mut find = db.prepare_cached(
        "SELECT receiver, targets FROM message WHERE thread = ?1 AND meaning = 'POLL' AND targets IS NOT NULL ORDER BY seq LIMIT ?2",
    )?;
    let rows = find.query_map(params![thread, QUESTIONS], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let (receiver, targets) = row?;
        let is_voter = targets.lines().any(|t| party(t) == party(&receiver));
        if !is_voter && !names.contains(&receiver) {
            names.push(receiver);
        }
    }
    Ok(names)
}

/// Reads the columns `seq`, `wait`, `receiver` and `targets` of a message that waits.
fn open_question(db: &Connection, row: &Row<'_>) -> SqlResult<OpenQuestion> {
    let seq: i64 = row.get("seq")?;
    let receiver: String = row.get("receiver")?;
    let targets: Option<String> = row.get("targets")?;
    let targets: Vec<&str> = targets.as_deref().unwrap_or_default().lines().collect();
    let mut find = db.prepare_cached("SELECT party FROM answer WHERE question = ?1")?;
    let answered = find.query_map(params![seq], |row| row.get(0))?;
    let answered = answered.collect::<SqlResult<Vec<String>>>()?;
    let wait = row.member("wait", &Wait::ALL)?;
    Ok(OpenQuestion::new(wait, &receiver, &targets, &answered))
}

fn add_parties(db: &Connection, thread: &mut Thread) -> SqlResult<()> {
    let sql = "SELECT address FROM party WHERE thread = ?1 ORDER BY first_seq, place LIMIT ?2";
    thread.parties = db.all(sql, params![thread.id, PARTIES], value)?;
    Ok(())
}

pub(super) fn thread(db: &Connection, id: &str) -> SqlResult<Option<Thread>> {
    let sql = format!("{THREAD} FROM thread t {THREAD_ENDS} WHERE t.id = ?1");
    let mut found = db.find(&sql, params![id], thread_row)?;
    if let Some(thread) = &mut found {
        complete(db, thread)?;
    }
    Ok(found)
}

pub(super) fn threads(
    db: &Connection,
    filter: &ThreadFilter,
    page: Page,
) -> SqlResult<Listing<Thread>> {
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
        (Some(_), ..) => (
            "party p INDEXED BY party_last CROSS JOIN thread t ON t.id = p.thread",
            "p",
        ),
        (None, true, _) => ("thread t INDEXED BY thread_waiting", "t"),
        (None, false, true) => ("thread t INDEXED BY thread_open", "t"),
        (None, false, false) => ("thread t INDEXED BY thread_last", "t"),
    };
    let with = match filter.with {
        Some(_) => "p.party = ?3",
        None => "?3 IS NULL",
    };
    // A page is found by an index, however far back it is.
    let after = match filter.after {
        Some(_) => format!("AND ({order}.last_at, {order}.last_seq) < (?4, ?5)"),
        None => "AND ?4 IS NULL AND ?5 IS NULL".to_owned(),
    };
    let sql = format!(
        "{THREAD} FROM {from} CROSS {THREAD_ENDS} WHERE {with} {open} {waiting} {after} \
         ORDER BY {order}.last_at DESC, {order}.last_seq DESC LIMIT ?1 OFFSET ?2"
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

pub(super) fn knows(db: &Connection, address: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM party WHERE party = ?1";
    db.has(sql, params![party(address)])
}

/// Runs a query that asks for one row more than is wanted.
fn list<T>(
    db: &Connection,
    sql: &str,
    asked: impl Params,
    read: fn(&Row<'_>) -> SqlResult<T>,
    limit: usize,
) -> SqlResult<Listing<T>> {
    let items = db.all(sql, asked, read)?;
    Ok(cut(items, limit))
}

/// As many as are wanted, of one more.
fn cut<T>(mut items: Vec<T>, limit: usize) -> Listing<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    Listing { items, more }
}

fn one_more(limit: usize) -> i64 {
    number(limit.saturating_add(1))
}
