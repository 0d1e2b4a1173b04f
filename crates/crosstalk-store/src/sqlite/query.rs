//! Messages and threads as they are asked for.

use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::store::{
    AnsweredQuestion, AskedMessage, FailedAnswer, Field, Listing, OpenQuestion, Page, Record,
    Search, Side, Term, Thread, ThreadFilter, Way, party,
};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use super::derive::{verdict_of, wait_of, word};
use super::fault::Step;

/// How many parties of a thread are named.
const PARTIES: i64 = 16;
/// How many open questions of a thread are looked at.
const QUESTIONS: i64 = 16;

pub(super) const RECORD: &str = "SELECT m.seq, m.id, i.carried, m.thread, m.parent, m.session, m.sender, m.receiver, m.user, \
                      m.context, m.intent, m.meaning, m.at, m.written_at, i.verdict, i.pkid, i.side, i.way, m.wait, \
                      i.digest, i.expires, i.text, i.received, i.entry, i.truncated";

pub(super) fn record(row: &Row<'_>) -> Step<Record> {
    let seq: i64 = row.get("seq")?;
    let pkid: String = row.get("pkid")?;
    let meaning: Option<String> = row.get("meaning")?;
    let intents = || Intent::ALL.iter().copied();
    let written_at: Option<i64> = row.get("written_at")?;
    let expires: Option<i64> = row.get("expires")?;
    Ok(Record {
        seq: seq.unsigned_abs(),
        entry: row.get::<_, Option<i64>>("entry")?.map(i64::unsigned_abs),
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
        at: Timestamp::from_millis(row.get("at")?),
        written_at: written_at.map(Timestamp::from_millis),
        verdict: word(row, "verdict", verdict_of)?,
        pkid: (!pkid.is_empty()).then_some(pkid),
        side: word(row, "side", Side::parse)?,
        way: word(row, "way", Way::parse)?,
        wait: wait_of(row.get("wait")?)?,
        digest: Digest(row.get("digest")?),
        expires: expires.map(Timestamp::from_millis),
        text: row.get("text")?,
        received: row.get("received")?,
        truncated: row.get("truncated")?,
    })
}

pub(super) fn message(db: &Connection, id: &str) -> Step<Option<Record>> {
    let sql = format!("{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.id = ?1");
    let mut find = db.prepare_cached(&sql)?;
    find.query_row(params![id], record).optional()
}

pub(super) fn messages(
    db: &Connection,
    thread: &str,
    after: Option<u64>,
    limit: usize,
) -> Step<Listing<Record>> {
    let sql = format!(
        "{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.thread = ?1 AND m.seq > ?2 ORDER BY m.seq LIMIT ?3"
    );
    let after = after.map_or(0, number);
    let asked = params![thread, after, one_more(limit)];
    list(db, &sql, asked, record, limit)
}

pub(super) fn inbox(db: &Connection, page: Page) -> Step<Listing<Record>> {
    let sql = format!(
        "{RECORD} FROM message m INDEXED BY message_inbox JOIN intake i ON i.seq = m.seq WHERE m.wait IN (1, 2) \
         ORDER BY m.seq DESC LIMIT ?1 OFFSET ?2"
    );
    let asked = params![one_more(page.limit), number(page.skip)];
    list(db, &sql, asked, record, page.limit)
}

/// The messages that wait for others, by threads: few threads ask something, and what they ask is found by an index.
pub(super) fn asked(db: &Connection, page: Page) -> Step<Listing<AskedMessage>> {
    let sql = format!(
        "{RECORD}, m.targets FROM thread t INDEXED BY thread_last CROSS JOIN message m INDEXED BY message_waits \
         ON m.thread = t.id AND m.wait <> 0 JOIN intake i ON i.seq = m.seq WHERE t.asked > 0 AND m.wait = 3 \
         ORDER BY t.last_at DESC, t.last_seq DESC LIMIT ?1 OFFSET ?2"
    );
    let mut find = db.prepare_cached(&sql)?;
    let asked = params![one_more(page.limit), number(page.skip)];
    let rows = find.query_map(asked, |row| {
        Ok(AskedMessage {
            record: record(row)?,
            of: open_question(db, row)?.of,
        })
    })?;
    let items = rows.collect::<Step<Vec<AskedMessage>>>()?;
    Ok(cut(items, page.limit))
}

pub(super) fn search(db: &Connection, search: &Search, page: Page) -> Step<Listing<Record>> {
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

/// A search in the language of the index, of which nothing is left to what a person typed: words stand in quotes.
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
                      l.id AS last, t.closed_at";
const THREAD_ENDS: &str =
    "JOIN message f ON f.seq = t.first_seq JOIN message l ON l.seq = t.last_seq";

fn thread_row(row: &Row<'_>) -> Step<Thread> {
    let count = |name: &str| row.get(name).map(i64::unsigned_abs);
    let time = |name: &str| row.get(name).map(Timestamp::from_millis);
    let closed_at: Option<i64> = row.get("closed_at")?;
    Ok(Thread {
        id: row.get("id")?,
        context: row.get("context")?,
        session: row.get("session")?,
        parties: Vec::new(),
        messages: count("messages")?,
        waiting: count("waiting")?,
        asked: count("asked")?,
        first_at: time("first_at")?,
        last_at: time("last_at")?,
        last: row.get("last")?,
        closed_at: closed_at.map(Timestamp::from_millis),
        open: Vec::new(),
        has_answer: false,
        failed: Vec::new(),
        electorates: Vec::new(),
    })
}

/// Adds who is in a thread, and what is open in it.
fn complete(db: &Connection, thread: &mut Thread) -> Step<()> {
    add_parties(db, thread)?;
    if thread.waiting > 0 || thread.asked > 0 {
        let mut find = db.prepare_cached(
            "SELECT seq, wait, receiver, targets FROM message WHERE thread = ?1 AND wait <> 0 ORDER BY wait, seq LIMIT ?2",
        )?;
        let rows = find.query_map(params![thread.id, QUESTIONS], |row| open_question(db, row))?;
        thread.open = rows.collect::<Step<_>>()?;
    }
    thread.has_answer = db
        .prepare_cached("SELECT 1 FROM message WHERE thread = ?1 AND settles = 1")?
        .exists(params![thread.id])?;
    let failures = "SELECT 1 FROM message WHERE thread = ?1 AND settles = 1 AND mine = 0 AND meaning IN ('ERROR', 'NACK')";
    if thread.has_answer && db.prepare_cached(failures)?.exists(params![thread.id])? {
        thread.failed = FailedAnswer::remaining(answered_questions(db, &thread.id)?);
    }
    thread.electorates = electorates(db, &thread.id)?;
    Ok(())
}

/// How the questions of a thread ended, in the order of the answers that others gave.
fn answered_questions(db: &Connection, thread: &str) -> Step<Vec<AnsweredQuestion>> {
    let mut find = db.prepare_cached(
        "SELECT iif(q.seq IS NULL OR q.meaning = 'POLL', a.sender, q.receiver), a.meaning, i.text FROM message a \
         JOIN intake i ON i.seq = a.seq LEFT JOIN message q ON q.id = a.parent \
         WHERE a.thread = ?1 AND a.settles = 1 AND a.mine = 0 ORDER BY a.seq",
    )?;
    let rows = find.query_map(params![thread], |row| {
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
    })?;
    rows.collect()
}

/// The receivers of the polls of a thread that are none of their voters.
fn electorates(db: &Connection, thread: &str) -> Step<Vec<String>> {
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
fn open_question(db: &Connection, row: &Row<'_>) -> Step<OpenQuestion> {
    let seq: i64 = row.get("seq")?;
    let receiver: String = row.get("receiver")?;
    let targets: Option<String> = row.get("targets")?;
    let targets: Vec<&str> = targets.as_deref().unwrap_or_default().lines().collect();
    let mut find = db.prepare_cached("SELECT party FROM answer WHERE question = ?1")?;
    let answered = find.query_map(params![seq], |row| row.get(0))?;
    let answered = answered.collect::<Step<Vec<String>>>()?;
    let wait = wait_of(row.get("wait")?)?;
    Ok(OpenQuestion::new(wait, &receiver, &targets, &answered))
}

fn add_parties(db: &Connection, thread: &mut Thread) -> Step<()> {
    let mut find = db.prepare_cached(
        "SELECT address FROM party WHERE thread = ?1 ORDER BY first_seq, place LIMIT ?2",
    )?;
    let rows = find.query_map(params![thread.id, PARTIES], |row| row.get(0))?;
    thread.parties = rows.collect::<Step<_>>()?;
    Ok(())
}

pub(super) fn thread(db: &Connection, id: &str) -> Step<Option<Thread>> {
    let sql = format!("{THREAD} FROM thread t {THREAD_ENDS} WHERE t.id = ?1");
    let mut find = db.prepare_cached(&sql)?;
    let mut found = find.query_row(params![id], thread_row).optional()?;
    if let Some(thread) = &mut found {
        complete(db, thread)?;
    }
    Ok(found)
}

pub(super) fn threads(db: &Connection, filter: &ThreadFilter, page: Page) -> Step<Listing<Thread>> {
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
    let sql = format!(
        "{THREAD} FROM {from} CROSS {THREAD_ENDS} WHERE {with} {open} {waiting} \
         ORDER BY {order}.last_at DESC, {order}.last_seq DESC LIMIT ?1 OFFSET ?2"
    );
    let with = filter.with.as_deref().map(party);
    let asked = params![one_more(page.limit), number(page.skip), with];
    let mut listing = list(db, &sql, asked, thread_row, page.limit)?;
    for thread in &mut listing.items {
        complete(db, thread)?;
    }
    Ok(listing)
}

pub(super) fn knows(db: &Connection, address: &str) -> Step<bool> {
    db.prepare_cached("SELECT 1 FROM party WHERE party = ?1")?
        .exists(params![party(address)])
}

/// Runs a query that asks for one row more than is wanted.
fn list<T>(
    db: &Connection,
    sql: &str,
    asked: impl Params,
    read: fn(&Row<'_>) -> Step<T>,
    limit: usize,
) -> Step<Listing<T>> {
    let mut find = db.prepare_cached(sql)?;
    let rows = find.query_map(asked, read)?;
    let items = rows.collect::<Step<Vec<T>>>()?;
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

fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
