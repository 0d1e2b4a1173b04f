//! Writes what accepting a batch changes, and numbers it. Nothing is decided here.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::{AcceptChanges, AcceptNumbers, NewMessage, Priority};
use rusqlite::{CachedStatement, Connection, params};

use super::super::delivery::{self, DeliveryQueuer};
use super::super::unindexed::UnindexedMessages;
use super::super::{close, hold, index, keep, queue};
use crate::sqlite::accept;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::ledger;
use crate::sqlite::log;
use crate::sqlite::sql::{Sql as _, number, position, to_u64};

pub(super) fn apply(
    db: &Connection,
    changes: &AcceptChanges<'_>,
    unindexed: &mut UnindexedMessages,
) -> SqlResult<AcceptNumbers> {
    let first = log::size(db)?;
    let end = first.saturating_add(to_u64(changes.events.len()));
    let mut numbers = AcceptNumbers {
        seqs: Vec::with_capacity(changes.messages.len()),
        entries: (first..end).map(LogPlace::first).collect(),
    };
    let entry = |place: usize| first.saturating_add(to_u64(place));
    if let Some(displaced) = &changes.displaced {
        accept::displace(db, number(displaced.seq), &displaced.id)?;
    }
    if let Some(displaced) = &changes.displaced_held {
        hold::displace(db, displaced)?;
    }
    let first_seq = match changes.messages.is_empty() {
        true => 0,
        false => index::next_seq(db)?,
    };
    let mut rows = AcceptedRows::new(db)?;
    for (seq, message) in (first_seq..).zip(&changes.messages) {
        rows.insert(db, seq, message, entry(message.entry))?;
        let thread = Some((close::THREAD, message.thread()));
        let session = message.session().map(|name| (close::SESSION, name));
        unindexed.add(seq, [thread, session]);
        numbers.seqs.push(seq.unsigned_abs());
    }
    for held in &changes.held {
        hold::insert(db, held, entry(held.entry))?;
    }
    for improved in &changes.improved {
        let seq = number(improved.message.number(&numbers.seqs));
        accept::improve(db, seq, improved.arrival, improved.entry.map(entry))?;
    }
    for (seq, place) in &changes.logged {
        let sql = "UPDATE intake SET entry = ?2 WHERE seq = ?1";
        db.run(sql, params![number(*seq), number(entry(*place))])?;
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
        let sql = "UPDATE poll SET touched = ?2 WHERE seq = ?1";
        db.run(sql, params![number(poll.number(&numbers.seqs)), touched])?;
    }
    for grant in &changes.grants {
        ledger::record(db, grant)?;
    }
    for (place, planned) in (first..).zip(&changes.events) {
        let takes = planned.takes.map(|p| number(p.number(&numbers.seqs)));
        log::write_at(db, place, &planned.event, takes)?;
    }
    Ok(numbers)
}

/// The statements that each accepted message needs, prepared for a batch.
struct AcceptedRows<'c> {
    intake: CachedStatement<'c>,
    deliveries: DeliveryQueuer<'c>,
}

impl<'c> AcceptedRows<'c> {
    fn new(db: &'c Connection) -> SqlResult<Self> {
        let intake = db.prepare_cached(
            "INSERT INTO intake (seq, id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, \
             inferred, text, received, peer, routes, priority, answer_by, expires, meaning, session, brief, entry) VALUES (?1, \
             ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
        )?;
        Ok(Self {
            intake,
            deliveries: DeliveryQueuer::new(db)?,
        })
    }

    /// Writes an accepted message at its position, with what the next ones are judged by.
    fn insert(
        &mut self,
        db: &Connection,
        seq: i64,
        message: &NewMessage<'_>,
        entry: u64,
    ) -> SqlResult<()> {
        let (admission, a) = (message.admission, message.arrival());
        let priority = position(&Priority::ALL, admission.priority);
        self.intake.execute(params![
            seq,
            message.id,
            message.is_carried,
            a.pkid.as_deref().unwrap_or_default(),
            a.digest.0,
            a.at.as_millis(),
            a.way.as_str(),
            a.side.as_str(),
            a.verdict.as_str(),
            message.generated_thread,
            a.generated.message,
            message.thread(),
            a.answers,
            a.text,
            a.received,
            admission.peer,
            delivery::write_recipients(admission),
            priority,
            admission.answer_by.map(Timestamp::as_millis),
            message.expires.map(Timestamp::as_millis),
            a.meaning.map(|m| m.as_str()),
            message.session(),
            admission.is_brief,
            number(entry),
        ])?;
        if let Some(conversation) = &message.closes {
            close::close(db, conversation, a.at, seq)?;
        }
        if let Some((conversation, to)) = &message.hands_over {
            close::hand_over(db, conversation, to, a.at)?;
        }
        for (address, handler) in &message.deliveries {
            self.deliveries
                .queue((seq, a.at), address, *handler, priority)?;
        }
        if let Some(due) = admission.answer_by {
            queue::expect_answer(db, seq, due)?;
        }
        keep::use_blobs(db, &message.blobs, seq)?;
        if message.is_poll() {
            let ends = admission.answer_by.map(Timestamp::as_millis);
            let sql =
                "INSERT INTO poll (seq, thread, at, ends, touched) VALUES (?1, ?2, ?3, ?4, ?1)";
            db.run(sql, params![seq, message.thread(), a.at.as_millis(), ends])?;
        }
        ledger::keep_under(db, seq, &message.under)
    }
}
