//! Intake of a relay: loads what a batch asks for in one trip to the server, and writes what the rules decide
//! ([`plan_accept`]) in another one. Nothing is decided here.
//!
//! ```text
//! AcceptNeeds ── load ──> AcceptFacts ── plan_accept ──> AcceptChanges ── apply ──> rows
//! ```

use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::{Document, Reading, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::{ChainId, Event, LogPlace};
use crosstalk_protocol::relay::{
    AcceptChanges, AcceptFacts, AcceptNeeds, AcceptNumbers, AcceptOutcome, Admission,
    ConversationId, HeldFacts, KnownFacts, NewMessage, ParentFacts, PollFacts, Priority,
    SessionFacts, plan_accept, report,
};
use crosstalk_protocol::store::{
    Arrival, KnownMessage, Side, StoredMessage, Way, party, searched_texts,
};
use std::collections::BTreeSet;
use tokio_postgres::Row;

use super::fault::{PgResult, SqlError};
use super::log::LogRows;
use super::sql::{
    Db, PgColumns as _, bytes, millis, number, params, position, time, to_u64, tuple, value,
};
use super::{close, delivery, hold, indexed, keep, ledger, log, queue, search};
use crosstalk_protocol::relay::Handler;

/// A row of the intake as an arrival.
#[derive(Clone, Debug)]
pub(super) struct PgIntakeRow {
    pub(super) seq: i64,
    pub(super) thread: String,
    pub(super) arrival: Arrival,
}

pub(super) const INTAKE_ROW: &str = "seq, id, thread, inferred, carried, text, received, verdict, pkid, side, way, at, \
                                spare_thread, spare_message, routes, truncated";

/// Reads the columns of [`INTAKE_ROW`].
pub(super) fn intake_row(row: &Row) -> PgResult<PgIntakeRow> {
    let routes: &str = row.try_get("routes")?;
    let mut filed = PgIntakeRow {
        seq: row.try_get("seq")?,
        thread: row.try_get("thread")?,
        arrival: Arrival::recall(StoredMessage {
            text: row.try_get("text")?,
            received: row.try_get("received")?,
            truncated: row.try_get("truncated")?,
            verdict: row.word("verdict", VerdictWord::parse)?,
            pkid: row.opt_text("pkid")?,
            side: row.word("side", Side::parse)?,
            way: row.word("way", Way::parse)?,
            at: row.time("at")?,
            message: match row.try_get("carried")? {
                true => Some(row.try_get("id")?),
                false => None,
            },
            answers: row.try_get("inferred")?,
            generated: ReceivedIds {
                thread: row.try_get("spare_thread")?,
                message: row.try_get("spare_message")?,
            },
        }),
    };
    let lines = routes.lines().filter_map(|line| line.split_once(' '));
    let addresses = lines.map(|(_, address)| address);
    filed.arrival.add_recipients(addresses);
    Ok(filed)
}

/// How the transaction of a batch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It is committed with the last change.
    Commit,
    /// Others go on with it.
    GoOn,
}

/// Accepts messages. Only inside a transaction that has the turn. Whether it was committed already.
pub(super) fn accept_all(
    db: &Db,
    origin: i64,
    batch: &[Admission],
    then: Then,
) -> PgResult<(Vec<AcceptOutcome>, bool)> {
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut is_committed = false;
    while let Some(rest) = batch.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
        let before = outcomes.len();
        // A plan ends with a REVOKE: what comes after it is looked up then.
        let revokes = |a: &Admission| a.claim.as_ref().is_some_and(|c| c.is_revoke);
        let end = rest
            .iter()
            .position(revokes)
            .map_or(rest.len(), |at| at + 1);
        let some = rest.get(..end).unwrap_or(rest);
        let then = match end == rest.len() {
            true => then,
            false => Then::GoOn,
        };
        let (new, ended) = accept_some(db, origin, some, &AcceptNeeds::of(some), then)?;
        is_committed = ended;
        outcomes.extend(new);
        if outcomes.len() == before {
            return Err(SqlError::NoRow);
        }
    }
    Ok((outcomes, is_committed))
}

/// Accepts a message that a person approved. Only inside a transaction that has the turn.
pub(super) fn accept_approved(
    db: &Db,
    origin: i64,
    admission: &Admission,
) -> PgResult<AcceptOutcome> {
    let needs = AcceptNeeds::of_approved(admission);
    let batch = std::slice::from_ref(admission);
    let (mut outcomes, _) = accept_some(db, origin, batch, &needs, Then::GoOn)?;
    outcomes.pop().ok_or(SqlError::NoRow)
}

/// Accepts the first messages of a batch: as many as one plan is for.
fn accept_some(
    db: &Db,
    origin: i64,
    batch: &[Admission],
    needs: &AcceptNeeds<'_>,
    then: Then,
) -> PgResult<(Vec<AcceptOutcome>, bool)> {
    let (facts, ends) = load(db, needs)?;
    let plan = plan_accept(batch, &facts);
    let count = plan.outcomes.len();
    let is_last = count == batch.len() && plan.revocation.is_none();
    let then = match is_last {
        true => then,
        false => Then::GoOn,
    };
    let numbers = apply(db, origin, &plan.changes, ends, then)?;
    let mut withdrawn = None;
    let last = batch.get(count.saturating_sub(1));
    if let (Some(order), Some(revoke)) = (&plan.revocation, last) {
        let seq = numbers.seqs.last().copied().map(number);
        let result = ledger::revoke(db, seq, order)?;
        queue::enqueue_notices(db, report::revocation_notices(&revoke.arrival, &result))?;
        withdrawn = Some(result);
    }
    let outcomes = (1..).zip(plan.outcomes);
    let outcomes = outcomes.map(|(place, outcome)| {
        let withdrawn = withdrawn.take_if(|_| place == count);
        outcome.number(&numbers, withdrawn)
    });
    Ok((outcomes.collect(), then == Then::Commit))
}

/// The last message and the size of the log.
#[derive(Clone, Copy, Debug)]
struct Ends {
    seq: u64,
    log: u64,
}

const KNOWN: &str = "SELECT seq, id, spare_message, spare_thread, digest, verdict, side, thread, at, text = '' AS gone, \
                     truncated, chain, entry FROM intake";

fn known(row: &Row) -> PgResult<KnownFacts> {
    Ok(KnownFacts {
        message: KnownMessage {
            seq: row.seq("seq")?,
            id: row.try_get("id")?,
            generated: ReceivedIds {
                thread: row.try_get("spare_thread")?,
                message: row.try_get("spare_message")?,
            },
            digest: row.digest("digest")?,
            verdict: row.word("verdict", VerdictWord::parse)?,
            side: row.word("side", Side::parse)?,
            thread: row.try_get("thread")?,
            since: row.time("at")?,
            is_gone: row.try_get("gone")?,
            is_truncated: row.try_get("truncated")?,
        },
        entry: row.log_place()?,
        raw: None,
        sender: None,
        is_spare_taken: false,
    })
}

fn held(row: &Row) -> PgResult<HeldFacts> {
    Ok(HeldFacts {
        seq: row.seq("seq")?,
        id: row.try_get("id")?,
        generated: ReceivedIds {
            thread: row.try_get("spare_thread")?,
            message: row.try_get("spare_message")?,
        },
        digest: row.digest("digest")?,
        verdict: row.word("verdict", VerdictWord::parse)?,
        sender: row.try_get("sender")?,
        since: row.time("at")?,
        entry: row.log_place()?.ok_or(SqlError::NoRow)?,
        is_spare_taken: row.try_get("taken")?,
    })
}

/// Conversations in columns.
fn keys<'c>(all: impl IntoIterator<Item = &'c ConversationId>) -> (Vec<i64>, Vec<&'c str>) {
    all.into_iter().map(close::key).unzip()
}

fn conversation(row: &Row) -> PgResult<ConversationId> {
    let (kind, name): (i64, String) = tuple(row)?;
    Ok(match kind {
        0 => ConversationId::Thread(name),
        _ => ConversationId::Session(name),
    })
}

const HELD: &str = "SELECT seq, id, chain, entry, digest, at, sender, verdict, spare_thread, spare_message, EXISTS (SELECT 1 \
                    FROM held o WHERE o.id = held.spare_message) AS taken FROM held";
const CLOSINGS: &str = "SELECT c.kind, c.name, c.at FROM closing c JOIN unnest($1::bigint[], $2::text[]) AS w (kind, name) \
                        ON c.kind = w.kind AND c.name = w.name";
const STEWARDS: &str = "SELECT c.kind, c.name, c.address FROM steward c JOIN unnest($1::bigint[], $2::text[]) AS w \
                        (kind, name) ON c.kind = w.kind AND c.name = w.name";
const PARENTS: &str = "SELECT i.seq, i.id, i.thread, coalesce(i.meaning, m.meaning) FROM intake i LEFT JOIN message m ON \
                       m.seq = i.seq WHERE i.id = ANY ($1)";
const UPLOADS: &str = "SELECT u.peer, u.digest FROM upload u JOIN unnest($1::text[], $2::bytea[]) AS w (peer, digest) ON \
                       u.peer = w.peer AND u.digest = w.digest";

/// Looks up what a batch asks for.
fn load(db: &Db, needs: &AcceptNeeds<'_>) -> PgResult<(AcceptFacts, Ends)> {
    let ids: BTreeSet<&str> = needs.ids.iter().map(|(id, _)| *id).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let contents: Vec<&[u8]> = needs.contents.iter().map(bytes).collect();
    let held_ids: Vec<&str> = needs.held_ids.iter().copied().collect();
    let held_contents: Vec<&[u8]> = needs.held_contents.iter().map(bytes).collect();
    let (closing_kinds, closing_names) = keys(&needs.closings);
    let (steward_kinds, steward_names) = keys(&needs.stewards);
    let parents: Vec<&str> = needs.parents.keys().copied().collect();
    let sessions: Vec<&str> = needs.sessions.keys().copied().collect();
    let consents: Vec<&str> = needs.consents.iter().copied().collect();
    let polls: Vec<&str> = needs.polls.iter().copied().collect();
    let peers: Vec<&str> = needs.uploads.iter().map(|(peer, _)| *peer).collect();
    let uploads: Vec<&[u8]> = needs.uploads.iter().map(|(_, d)| bytes(d)).collect();

    let by_id = format!("{KNOWN} WHERE id = ANY ($1)");
    let by_content = format!(
        "SELECT DISTINCT ON (k.digest) k.* FROM ({KNOWN} WHERE NOT carried AND digest = ANY ($1)) k ORDER BY k.digest, k.seq"
    );
    let held_by_id = format!("{HELD} WHERE id = ANY ($1)");
    let held_by_content = format!("{HELD} WHERE NOT carried AND digest = ANY ($1)");
    let of_consent = ledger::named_sql();
    let chain = db.chain();
    let of_chain: super::sql::Given<'_> = params![chain];
    let mut asked: Vec<(&str, super::sql::Given<'_>)> = vec![
        ("SELECT seq FROM turn", params![]),
        (
            "SELECT coalesce(max(place) + 1, 0) FROM chain_entry WHERE chain = $1",
            of_chain,
        ),
    ];
    let given: [(&str, bool, super::sql::Given<'_>); 12] = [
        (&by_id, ids.is_empty(), params![ids]),
        (&by_content, contents.is_empty(), params![contents]),
        (&held_by_id, held_ids.is_empty(), params![held_ids]),
        (
            &held_by_content,
            held_contents.is_empty(),
            params![held_contents],
        ),
        (
            CLOSINGS,
            closing_names.is_empty(),
            params![closing_kinds, closing_names],
        ),
        (
            STEWARDS,
            steward_names.is_empty(),
            params![steward_kinds, steward_names],
        ),
        (PARENTS, parents.is_empty(), params![parents]),
        (
            "SELECT DISTINCT ON (session) session, thread FROM message WHERE session = ANY ($1) ORDER BY session, counts DESC, seq DESC",
            sessions.is_empty(),
            params![sessions],
        ),
        (
            "SELECT DISTINCT ON (session) session, thread FROM intake WHERE session = ANY ($1) ORDER BY session, seq DESC",
            sessions.is_empty(),
            params![sessions],
        ),
        (&of_consent, consents.is_empty(), params![consents]),
        (
            "SELECT thread, seq, closed FROM poll WHERE thread = ANY ($1)",
            polls.is_empty(),
            params![polls],
        ),
        (UPLOADS, uploads.is_empty(), params![peers, uploads]),
    ];
    asked.extend(
        given
            .iter()
            .filter(|(_, is_empty, _)| !is_empty)
            .map(|(sql, _, given)| (*sql, *given)),
    );
    let mut answers = db.pipeline(&asked)?.into_iter();
    let mut number_of = || -> PgResult<u64> {
        let rows = answers.next().unwrap_or_default();
        let found: i64 = value(rows.first().ok_or(SqlError::NoRow)?)?;
        Ok(found.unsigned_abs())
    };
    let ends = Ends {
        seq: number_of()?,
        log: number_of()?,
    };
    let mut next = |place: usize| match given.get(place) {
        Some((_, false, _)) => answers.next().unwrap_or_default(),
        _ => Vec::new(),
    };
    let mut facts = AcceptFacts::default();
    for row in next(0) {
        let mut found = known(&row)?;
        let id = found.message.id.clone();
        let digest = found.message.digest;
        let mut wanted = needs.ids.iter().filter(|(other, _)| **other == id);
        if wanted.any(|(_, other)| *other != digest) {
            add_rival(db, &mut found)?;
        }
        facts.ids.insert(id, found);
    }
    for row in next(1) {
        facts.contents.insert(row.digest("digest")?, known(&row)?);
    }
    for row in next(2) {
        let found = held(&row)?;
        facts.held_ids.insert(found.id.clone(), found);
    }
    for row in next(3) {
        let found = held(&row)?;
        facts.held_contents.insert(found.digest, found);
    }
    for row in next(4) {
        facts.closings.insert(conversation(&row)?, row.time("at")?);
    }
    for row in next(5) {
        let address = row.try_get("address")?;
        facts.stewards.insert(conversation(&row)?, address);
    }
    let parents = next(6);
    for row in next(7) {
        let (session, thread): (String, String) = tuple(&row)?;
        let of: &mut SessionFacts = facts.sessions.entry(session).or_default();
        of.indexed = Some(thread);
    }
    for row in next(8) {
        let (session, thread): (String, String) = tuple(&row)?;
        let of = facts.sessions.entry(session).or_default();
        of.pending = match of.indexed {
            Some(_) => None,
            None => Some(thread),
        };
    }
    for row in next(9) {
        let grant = ledger::grant(&row)?;
        facts.grants.insert(grant.id.clone(), grant);
    }
    for row in next(10) {
        let thread: String = row.try_get("thread")?;
        facts.polls.entry(thread).or_default().push(poll(&row)?);
    }
    for row in next(11) {
        let peer = row.try_get("peer")?;
        facts.uploads.insert((peer, row.digest("digest")?));
    }
    for what in &needs.parties {
        load_parties(db, what, &mut facts)?;
    }
    for (session, is_deep) in &needs.sessions {
        let found = facts.sessions.get(*session).filter(|_| *is_deep);
        let thread = found.and_then(|f| f.indexed.as_ref().or(f.pending.as_ref()));
        if let Some(thread) = thread {
            let thread = ConversationId::Thread(thread.clone());
            load_closings(db, std::slice::from_ref(&thread), &mut facts)?;
            load_parties(db, &thread, &mut facts)?;
        }
    }
    load_parents(db, &parents, needs, &mut facts)?;
    Ok((facts, ends))
}

/// What is asked about a message whose id another one wants.
fn add_rival(db: &Db, found: &mut KnownFacts) -> PgResult<()> {
    let sql =
        "SELECT text, EXISTS (SELECT 1 FROM intake o WHERE o.id = $2) FROM intake WHERE seq = $1";
    let asked = params![number(found.message.seq), found.message.generated.message];
    let (text, is_taken): (String, bool) = db.one(sql, asked, tuple)?;
    let document = Document::parse(&text, Reading::Strict);
    found.sender = (!text.is_empty()).then(|| document.sender().to_owned());
    found.is_spare_taken = is_taken;
    Ok(())
}

fn load_closings(db: &Db, what: &[ConversationId], facts: &mut AcceptFacts) -> PgResult<()> {
    let (kinds, names) = keys(what);
    let found = db.all(CLOSINGS, params![kinds, names], |row| {
        Ok((conversation(row)?, row.time("at")?))
    })?;
    facts.closings.extend(found);
    Ok(())
}

fn load_parties(db: &Db, what: &ConversationId, facts: &mut AcceptFacts) -> PgResult<()> {
    if !facts.parties.contains_key(what) {
        facts
            .parties
            .insert(what.clone(), close::parties(db, what)?);
    }
    Ok(())
}

/// What is asked about messages that are answered.
fn load_parents(
    db: &Db,
    rows: &[Row],
    needs: &AcceptNeeds<'_>,
    facts: &mut AcceptFacts,
) -> PgResult<()> {
    let mut closings = Vec::new();
    for row in rows {
        let (seq, id, thread, meaning): (i64, String, String, Option<String>) = tuple(row)?;
        let Some(asked) = needs.parents.get(id.as_str()) else {
            continue;
        };
        let conversation = ConversationId::Thread(thread.clone());
        if asked.asks_closing {
            closings.push(conversation.clone());
        }
        let mut parts = Vec::new();
        if asked.asks_parts(&thread) {
            parts = delivery::parts(db, seq)?;
            load_parties(db, &conversation, facts)?;
        }
        let mut deliveries = Vec::new();
        for party in &asked.reporters {
            deliveries.extend(delivery::delivery_to(db, seq, party)?);
        }
        let logged = match deliveries.is_empty() {
            true => None,
            false => log::logged(db, seq)?,
        };
        let poll = match asked.asks_poll {
            true => {
                let sql = "SELECT seq, closed FROM poll WHERE seq = $1";
                db.find(sql, params![seq], poll)?
            }
            false => None,
        };
        let is_meant =
            |meaning: &String| Intent::ALL.iter().copied().find(|i| i.as_str() == meaning);
        let parent = ParentFacts {
            seq: seq.unsigned_abs(),
            thread,
            meaning: meaning.as_ref().and_then(is_meant),
            parts,
            deliveries,
            logged,
            poll,
        };
        facts.parents.insert(id, parent);
    }
    match closings.is_empty() {
        true => Ok(()),
        false => load_closings(db, &closings, facts),
    }
}

fn poll(row: &Row) -> PgResult<PollFacts> {
    Ok(PollFacts {
        seq: row.seq("seq")?,
        closed: time(row.try_get("closed")?),
    })
}

const INSERT: &str = "INSERT INTO intake (seq, id, carried, pkid, digest, at, way, side, verdict, spare_thread, \
    spare_message, thread, inferred, text, received, peer, speaker, origin, routes, priority, answer_by, expires, \
    meaning, session, brief, entry, chain) SELECT w.seq, w.id, w.carried, w.pkid, w.digest, w.at, w.way, w.side, w.verdict, \
    w.spare_thread, w.spare_message, w.thread, w.inferred, w.text, w.received, w.peer, w.speaker, $1, w.routes, \
    w.priority, w.answer_by, w.expires, w.meaning, w.session, w.brief, w.entry, $27 FROM unnest($2::bigint[], $3::text[], \
    $4::boolean[], $5::text[], $6::bytea[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], \
    $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], \
    $20::bigint[], $21::bigint[], $22::bigint[], $23::text[], $24::text[], $25::boolean[], $26::bigint[]) AS w (seq, \
    id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, inferred, text, received, \
    peer, speaker, routes, priority, answer_by, expires, meaning, session, brief, entry)";

const QUEUE: &str = "INSERT INTO delivery (seq, party, address, handler, state, priority, attempts, next_at, queued_at) \
    SELECT w.seq, w.party, w.address, w.handler, 0, w.priority, 0, w.next_at, w.queued_at FROM unnest($1::bigint[], \
    $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) AS w (seq, party, address, handler, \
    priority, next_at, queued_at) ON CONFLICT DO NOTHING";

/// Writes what accepting a batch changes, and numbers it.
fn apply(
    db: &Db,
    origin: i64,
    changes: &AcceptChanges<'_>,
    ends: Ends,
    then: Then,
) -> PgResult<AcceptNumbers> {
    let last = ends.seq.saturating_add(to_u64(changes.messages.len()));
    let log_end = ends.log.saturating_add(to_u64(changes.events.len()));
    let chain_number = db.chain();
    let chain = ChainId(chain_number.unsigned_abs());
    let numbers = AcceptNumbers {
        seqs: (ends.seq + 1..=last).collect(),
        entries: (ends.log..log_end)
            .map(|index| LogPlace { chain, index })
            .collect(),
    };
    let entry = |place: usize| ends.log.saturating_add(to_u64(place));
    if let Some(displaced) = &changes.displaced {
        displace(db, number(displaced.seq), &displaced.id)?;
    }
    if let Some(displaced) = &changes.displaced_held {
        hold::displace(db, displaced)?;
    }
    let rows = MessageRows::new(&changes.messages, &numbers.seqs, &entry);
    let queued = QueueRows::new(&changes.messages, &numbers.seqs);
    let takes =
        |place: crosstalk_protocol::relay::PlannedPlace| number(place.number(&numbers.seqs));
    let entries = changes.events.iter();
    let entries: Vec<(&Event<'_>, Option<i64>)> =
        entries.map(|e| (&e.event, e.takes.map(takes))).collect();
    let logged = LogRows::new(chain_number, ends.log, &entries)?;
    let (given, queue_given, log_given) = (
        rows.given(&origin, &chain_number),
        queued.given(),
        logged.given(),
    );
    let last = number(last);
    let moved: super::sql::Given<'_> = params![last];
    let mut written: Vec<(&str, super::sql::Given<'_>)> = Vec::new();
    if !changes.messages.is_empty() {
        written.push((INSERT, &given));
        written.push((QUEUE, &queue_given));
        written.push(("UPDATE turn SET seq = $1", moved));
    }
    if !entries.is_empty() {
        written.push((LogRows::INSERT, &log_given));
    }
    if then == Then::Commit && is_simple(changes) {
        db.finish(&written)?;
        return Ok(numbers);
    }
    db.pipeline(&written)?;
    for (message, seq) in changes.messages.iter().zip(&numbers.seqs) {
        insert_rest(db, message, number(*seq))?;
    }
    for held in &changes.held {
        hold::insert(db, held, entry(held.entry))?;
    }
    for improved in &changes.improved {
        let seq = number(improved.message.number(&numbers.seqs));
        improve(db, seq, improved.arrival, improved.entry.map(entry))?;
    }
    for (seq, place) in &changes.logged {
        let sql = "UPDATE intake SET entry = $2, chain = $3 WHERE seq = $1";
        let given = params![number(*seq), number(entry(*place)), chain_number];
        db.run(sql, given)?;
    }
    for reported in &changes.reported {
        let seq = number(reported.message.number(&numbers.seqs));
        let reason = reported.reason.as_deref();
        delivery::set_state(
            db,
            (seq, &reported.party),
            reported.state,
            reported.at,
            reason,
        )?;
    }
    for (poll, message) in &changes.counted {
        let touched = numbers.seqs.get(*message).copied().map(number);
        let sql = "UPDATE poll SET touched = $2 WHERE seq = $1";
        db.run(sql, params![number(poll.number(&numbers.seqs)), touched])?;
    }
    for grant in &changes.grants {
        ledger::record(db, grant)?;
    }
    if then == Then::Commit {
        db.commit()?;
    }
    Ok(numbers)
}

/// Whether there is nothing to write but messages, their deliveries and their entries.
fn is_simple(changes: &AcceptChanges<'_>) -> bool {
    let has_rest = |m: &NewMessage<'_>| {
        m.closes.is_some()
            || m.hands_over.is_some()
            || m.admission.answer_by.is_some()
            || !m.blobs.is_empty()
            || m.is_poll()
            || !m.under.is_empty()
    };
    changes.held.is_empty()
        && changes.improved.is_empty()
        && changes.logged.is_empty()
        && changes.reported.is_empty()
        && changes.counted.is_empty()
        && changes.grants.is_empty()
        && !changes.messages.iter().any(has_rest)
}

/// Writes the rarer things that come with a message.
fn insert_rest(db: &Db, message: &NewMessage<'_>, seq: i64) -> PgResult<()> {
    let (admission, a) = (message.admission, message.arrival());
    if let Some(conversation) = &message.closes {
        close::close(db, conversation, a.at, seq)?;
    }
    if let Some((conversation, to)) = &message.hands_over {
        close::hand_over(db, conversation, to, a.at)?;
    }
    if let Some(due) = admission.answer_by {
        queue::expect_answer(db, seq, due)?;
    }
    keep::use_blobs(db, &message.blobs, seq)?;
    if message.is_poll() {
        let ends = admission.answer_by.map(Timestamp::as_millis);
        let sql = "INSERT INTO poll (seq, thread, at, ends, touched) VALUES ($1, $2, $3, $4, $1)";
        db.run(sql, params![seq, message.thread(), a.at.as_millis(), ends])?;
    }
    ledger::keep_under(db, seq, &message.under)
}

/// Accepted messages in columns.
#[derive(Default)]
struct MessageRows<'m> {
    seqs: Vec<i64>,
    ids: Vec<&'m str>,
    carried: Vec<bool>,
    pkids: Vec<&'m str>,
    digests: Vec<&'m [u8]>,
    times: Vec<i64>,
    ways: Vec<&'m str>,
    sides: Vec<&'m str>,
    verdicts: Vec<&'m str>,
    spare_threads: Vec<&'m str>,
    spare_messages: Vec<&'m str>,
    threads: Vec<&'m str>,
    inferred: Vec<Option<&'m str>>,
    texts: Vec<&'m str>,
    received: Vec<Option<&'m str>>,
    peers: Vec<&'m str>,
    speakers: Vec<&'m str>,
    routes: Vec<String>,
    priorities: Vec<i64>,
    answer_by: Vec<Option<i64>>,
    expires: Vec<Option<i64>>,
    meanings: Vec<Option<&'m str>>,
    sessions: Vec<Option<&'m str>>,
    brief: Vec<bool>,
    entries: Vec<i64>,
}

impl<'m> MessageRows<'m> {
    fn new(messages: &'m [NewMessage<'m>], seqs: &[u64], entry: &dyn Fn(usize) -> u64) -> Self {
        let mut rows = Self::default();
        for (message, seq) in messages.iter().zip(seqs) {
            let (admission, a) = (message.admission, message.arrival());
            rows.seqs.push(number(*seq));
            rows.ids.push(message.id);
            rows.carried.push(message.is_carried);
            rows.pkids.push(a.pkid.as_deref().unwrap_or_default());
            rows.digests.push(bytes(&a.digest));
            rows.times.push(a.at.as_millis());
            rows.ways.push(a.way.as_str());
            rows.sides.push(a.side.as_str());
            rows.verdicts.push(a.verdict.as_str());
            rows.spare_threads.push(&message.generated_thread);
            rows.spare_messages.push(&a.generated.message);
            rows.threads.push(message.thread());
            rows.inferred.push(a.answers.as_deref());
            rows.texts.push(&a.text);
            rows.received.push(a.received.as_deref());
            rows.peers.push(&admission.peer);
            rows.speakers.push(&admission.speaker);
            rows.routes.push(delivery::write_recipients(admission));
            rows.priorities
                .push(position(&Priority::ALL, admission.priority));
            rows.answer_by.push(millis(admission.answer_by));
            rows.expires.push(millis(message.expires));
            rows.meanings.push(a.meaning.map(|m| m.as_str()));
            rows.sessions.push(message.session());
            rows.brief.push(admission.is_brief);
            rows.entries.push(number(entry(message.entry)));
        }
        rows
    }

    fn given<'g>(
        &'g self,
        origin: &'g i64,
        chain: &'g i64,
    ) -> [&'g (dyn tokio_postgres::types::ToSql + Sync); 27] {
        [
            origin,
            &self.seqs,
            &self.ids,
            &self.carried,
            &self.pkids,
            &self.digests,
            &self.times,
            &self.ways,
            &self.sides,
            &self.verdicts,
            &self.spare_threads,
            &self.spare_messages,
            &self.threads,
            &self.inferred,
            &self.texts,
            &self.received,
            &self.peers,
            &self.speakers,
            &self.routes,
            &self.priorities,
            &self.answer_by,
            &self.expires,
            &self.meanings,
            &self.sessions,
            &self.brief,
            &self.entries,
            chain,
        ]
    }
}

/// The deliveries of accepted messages in columns.
#[derive(Default)]
struct QueueRows<'m> {
    seqs: Vec<i64>,
    parties: Vec<String>,
    addresses: Vec<&'m str>,
    handlers: Vec<i64>,
    priorities: Vec<i64>,
    next: Vec<Option<i64>>,
    since: Vec<i64>,
}

impl<'m> QueueRows<'m> {
    fn new(messages: &'m [NewMessage<'m>], seqs: &[u64]) -> Self {
        let mut rows = Self::default();
        for (message, seq) in messages.iter().zip(seqs) {
            let at = message.arrival().at.as_millis();
            let priority = position(&Priority::ALL, message.admission.priority);
            for (address, by) in &message.deliveries {
                rows.seqs.push(number(*seq));
                rows.parties.push(party(address));
                rows.addresses.push(address);
                rows.handlers.push(position(&Handler::ALL, *by));
                rows.priorities.push(priority);
                rows.next.push(by.is_active().then_some(at));
                rows.since.push(at);
            }
        }
        rows
    }

    fn given(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 7] {
        [
            &self.seqs,
            &self.parties,
            &self.addresses,
            &self.handlers,
            &self.priorities,
            &self.next,
            &self.since,
        ]
    }
}

/// Gives a message an id of its own, since another one takes the id that it has. What answers that id stays with it.
fn displace(db: &Db, seq: i64, spare: &str) -> PgResult<()> {
    for sql in [
        "UPDATE intake SET id = $2, carried = FALSE WHERE seq = $1",
        "UPDATE message SET id = $2 WHERE seq = $1",
    ] {
        db.run(sql, params![seq, spare])?;
    }
    indexed::change(db, |index| index.judge(spare))
}

pub(super) fn row(db: &Db, seq: i64) -> PgResult<PgIntakeRow> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = $1");
    db.one(&sql, params![seq], intake_row)
}

/// Keeps what is known better about a message, and the place of the entry in the log that says so.
fn improve(db: &Db, seq: i64, arrival: &Arrival, entry: Option<u64>) -> PgResult<()> {
    let before = match indexed::is_indexed(db, seq)? {
        true => Some(row(db, seq)?),
        false => None,
    };
    let sql = "UPDATE intake SET pkid = $2, verdict = $3, text = $4, received = $5, truncated = $6 \
        WHERE seq = $1";
    let pkid = arrival.pkid.as_deref().unwrap_or_default();
    db.run(
        sql,
        params![
            seq,
            pkid,
            arrival.verdict.as_str(),
            arrival.text,
            arrival.received,
            arrival.truncated
        ],
    )?;
    if let Some(entry) = entry.map(number) {
        for sql in [
            "UPDATE intake SET renewed = $2, renewed_chain = $3 WHERE seq = $1",
            "INSERT INTO renewal (seq, place, chain) VALUES ($1, $2, $3)",
        ] {
            db.run(sql, params![seq, entry, db.chain()])?;
        }
    }
    let Some(before) = before else {
        return Ok(());
    };
    let now = row(db, seq)?;
    if searched_texts(&before.arrival.text) != searched_texts(&now.arrival.text) {
        search::fill(db, &[(seq, &now.arrival)])?;
    }
    indexed::renew(db, now)
}
