//! Polls that have to be counted. The store keeps them with the messages, so that a relay need not count all polls at each start,
//! nor remember them.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{DuePoll, PollState};

use super::fault::PgResult;
use super::sql::{Db, number, params, time, tuple, value};

pub(super) fn due(
    db: &Db,
    now: Timestamp,
    within: Option<i64>,
    limit: usize,
) -> PgResult<Vec<DuePoll>> {
    let touched = ("p.touched IS NOT NULL AND $1 = $1::bigint", "p.touched");
    let ended = (
        "p.closed IS NULL AND p.ends IS NOT NULL AND p.ends <= $1",
        "p.ends",
    );
    let endless = ("p.closed IS NULL AND p.ends IS NULL AND p.at <= $1", "p.at");
    let now = now.as_millis();
    let since = within.map(|within| now.saturating_sub(within));
    let mut polls: Vec<DuePoll> = Vec::new();
    for ((which, order), time) in [(touched, Some(now)), (ended, Some(now)), (endless, since)] {
        // Without a time to answer within, a poll without an end stays open.
        let Some(time) = time else { continue };
        let sql = format!(
            "SELECT i.id, p.touched FROM poll p JOIN intake i ON i.seq = p.seq WHERE {which} ORDER BY {order} LIMIT $2"
        );
        let found = db.all(&sql, params![time, number(limit)], |row| {
            let (id, touched): (String, Option<i64>) = tuple(row)?;
            let touched = touched.map(i64::unsigned_abs);
            Ok(DuePoll { id, touched })
        })?;
        for poll in found {
            if polls.len() < limit && !polls.contains(&poll) {
                polls.push(poll);
            }
        }
    }
    Ok(polls)
}

pub(super) fn next_end(db: &Db, within: Option<i64>) -> PgResult<Option<Timestamp>> {
    let first = |sql: &str| -> PgResult<Option<i64>> { db.one(sql, params![], value) };
    let ends = first("SELECT min(ends) FROM poll WHERE closed IS NULL AND ends IS NOT NULL")?;
    let endless = match within {
        Some(within) => first("SELECT min(at) FROM poll WHERE closed IS NULL AND ends IS NULL")?
            .map(|at| at.saturating_add(within)),
        None => None,
    };
    Ok(time([ends, endless].into_iter().flatten().min()))
}

pub(super) fn count(db: &Db, poll: &DuePoll, state: PollState) -> PgResult<()> {
    // A message that came while it was counted is counted the next time.
    let counted = "touched = CASE WHEN touched IS NOT DISTINCT FROM $2 THEN NULL ELSE touched END";
    let of = "WHERE seq = (SELECT seq FROM intake WHERE id = $1)";
    let touched = poll.touched.map(number);
    let millis = |at: Timestamp| at.as_millis();
    match state {
        PollState::Open(ends) => db.run(
            &format!("UPDATE poll SET {counted}, ends = $3 {of}"),
            params![poll.id, touched, ends.map(millis)],
        )?,
        PollState::Closed(at) => db.run(
            &format!("UPDATE poll SET {counted}, closed = $3 {of}"),
            params![poll.id, touched, millis(at)],
        )?,
        PollState::Elsewhere => db.run(&format!("DELETE FROM poll {of}"), params![poll.id])?,
    };
    Ok(())
}
