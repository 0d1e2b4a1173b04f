//! Looks up what a batch asks for. Nothing is decided here.

use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::{
    AcceptFacts, AcceptNeeds, ConversationId, HeldFacts, KnownFacts, ParentFacts, ParentNeeds,
    PollFacts, SessionFacts,
};
use crosstalk_protocol::store::KnownMessage;
use rusqlite::{Connection, Params, Row, params};

use super::super::unindexed::UnindexedMessages;
use super::super::{close, delivery};
use crate::sqlite::accept;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::ledger;
use crate::sqlite::log;
use crate::sqlite::sql::{Columns as _, Sql as _, number, time, tuple, value};

pub(super) fn load(
    db: &Connection,
    needs: &AcceptNeeds<'_>,
    unindexed: &UnindexedMessages,
) -> SqlResult<AcceptFacts> {
    let mut facts = AcceptFacts::default();
    for (id, digest) in &needs.ids {
        if let Some(found) = accept::logged_by_id(db, id)? {
            let is_other = found.0.digest != *digest;
            if is_other || !facts.ids.contains_key(*id) {
                let found = known(db, found, is_other)?;
                facts.ids.insert((*id).to_owned(), found);
            }
        }
    }
    for digest in &needs.contents {
        if let Some(found) = accept::logged_by_content(db, *digest)? {
            facts.contents.insert(*digest, known(db, found, false)?);
        }
    }
    load_held(db, needs, &mut facts)?;
    for what in &needs.closings {
        load_closing(db, what, &mut facts)?;
    }
    for what in &needs.parties {
        load_parties(db, what, unindexed, &mut facts)?;
    }
    for what in &needs.stewards {
        if let Some(steward) = close::steward(db, what)? {
            facts.stewards.insert(what.clone(), steward);
        }
    }
    for (session, is_deep) in &needs.sessions {
        load_session(db, session, (*is_deep, unindexed), &mut facts)?;
    }
    let asks_polls = !needs.polls.is_empty() || needs.parents.values().any(|p| p.asks_poll);
    let has_polls =
        asks_polls && db.one("SELECT max(seq) IS NOT NULL FROM poll", [], value::<bool>)?;
    for (id, asked) in &needs.parents {
        load_parent(db, id, (asked, has_polls), unindexed, &mut facts)?;
    }
    for thread in needs.polls.iter().filter(|_| has_polls) {
        let sql = "SELECT seq, closed FROM poll WHERE thread = ?1";
        let polls = db.all(sql, params![thread], poll)?;
        facts.polls.insert((*thread).to_owned(), polls);
    }
    for grant in ledger::named(db, needs.consents.iter().copied())? {
        facts.grants.insert(grant.id.clone(), grant);
    }
    for (peer, digest) in &needs.uploads {
        let sql = "SELECT 1 FROM upload WHERE peer = ?1 AND digest = ?2";
        if db.has(sql, params![peer, digest.0])? {
            facts.uploads.insert(((*peer).to_owned(), *digest));
        }
    }
    Ok(facts)
}

fn known(
    db: &Connection,
    (message, entry): (KnownMessage, Option<u64>),
    is_other: bool,
) -> SqlResult<KnownFacts> {
    let seq = number(message.seq);
    let sender = match is_other {
        true => accept::sender(db, seq)?,
        false => None,
    };
    let raw = match entry {
        Some(_) => None,
        None => {
            let sql = "SELECT coalesce(received, text) FROM intake WHERE seq = ?1";
            let text: String = db.one(sql, params![seq], value)?;
            Some(Digest::of(text.as_bytes()))
        }
    };
    let sql = "SELECT 1 FROM intake WHERE id = ?1";
    let is_spare_taken = is_other && db.has(sql, params![message.generated.message])?;
    Ok(KnownFacts {
        message,
        entry: entry.map(LogPlace::first),
        raw,
        sender,
        is_spare_taken,
    })
}

fn load_held(db: &Connection, needs: &AcceptNeeds<'_>, facts: &mut AcceptFacts) -> SqlResult<()> {
    // Most relays hold nothing.
    let is_asked = !needs.held_ids.is_empty() || !needs.held_contents.is_empty();
    if !is_asked || !db.one("SELECT max(seq) IS NOT NULL FROM held", [], value::<bool>)? {
        return Ok(());
    }
    for id in &needs.held_ids {
        if let Some(held) = held(db, "id = ?1", params![id])? {
            facts.held_ids.insert((*id).to_owned(), held);
        }
    }
    for digest in &needs.held_contents {
        if let Some(held) = held(db, "carried = 0 AND digest = ?1", params![digest.0])? {
            facts.held_contents.insert(*digest, held);
        }
    }
    Ok(())
}

fn held(db: &Connection, which: &str, given: impl Params) -> SqlResult<Option<HeldFacts>> {
    let sql = format!(
        "SELECT seq, id, entry, digest, at, sender, verdict, spare_thread, spare_message, EXISTS \
         (SELECT 1 FROM held o WHERE o.id = held.spare_message) AS taken FROM held WHERE {which}"
    );
    db.find(&sql, given, |row| {
        Ok(HeldFacts {
            seq: row.seq("seq")?,
            id: row.get("id")?,
            generated: ReceivedIds {
                thread: row.get("spare_thread")?,
                message: row.get("spare_message")?,
            },
            digest: row.digest("digest")?,
            verdict: row.word("verdict", VerdictWord::parse)?,
            sender: row.get("sender")?,
            since: row.time("at")?,
            entry: LogPlace::first(row.seq("entry")?),
            is_spare_taken: row.get("taken")?,
        })
    })
}

fn load_closing(db: &Connection, what: &ConversationId, facts: &mut AcceptFacts) -> SqlResult<()> {
    if let Some(at) = close::closed(db, what)? {
        facts.closings.insert(what.clone(), at);
    }
    Ok(())
}

fn load_parties(
    db: &Connection,
    what: &ConversationId,
    unindexed: &UnindexedMessages,
    facts: &mut AcceptFacts,
) -> SqlResult<()> {
    if !facts.parties.contains_key(what) {
        facts
            .parties
            .insert(what.clone(), close::parties(db, what, unindexed)?);
    }
    Ok(())
}

fn load_session(
    db: &Connection,
    session: &str,
    (is_deep, unindexed): (bool, &UnindexedMessages),
    facts: &mut AcceptFacts,
) -> SqlResult<()> {
    let indexed: Option<String> = db.find(accept::THREAD_OF_SESSION, params![session], value)?;
    let pending: Option<String> = match indexed {
        Some(_) => None,
        None => {
            let sql = "SELECT thread FROM intake WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
            db.find(sql, params![session], value)?
        }
    };
    if let Some(thread) = indexed.as_ref().or(pending.as_ref()).filter(|_| is_deep) {
        let thread = ConversationId::Thread(thread.clone());
        load_closing(db, &thread, facts)?;
        load_parties(db, &thread, unindexed, facts)?;
    }
    let known = SessionFacts { indexed, pending };
    facts.sessions.insert(session.to_owned(), known);
    Ok(())
}

fn load_parent(
    db: &Connection,
    id: &str,
    (asked, has_polls): (&ParentNeeds<'_>, bool),
    unindexed: &UnindexedMessages,
    facts: &mut AcceptFacts,
) -> SqlResult<()> {
    let sql = "SELECT seq, thread, coalesce(meaning, (SELECT m.meaning FROM message m WHERE m.seq \
        = intake.seq)) FROM intake WHERE id = ?1";
    let found = db.find(sql, params![id], tuple::<(i64, String, Option<String>)>)?;
    let Some((seq, thread, meaning)) = found else {
        return Ok(());
    };
    let conversation = ConversationId::Thread(thread.clone());
    if asked.asks_closing {
        load_closing(db, &conversation, facts)?;
    }
    let mut parts = Vec::new();
    if asked.asks_parts(&thread) {
        parts = delivery::parts(db, seq)?;
        load_parties(db, &conversation, unindexed, facts)?;
    }
    let mut deliveries = Vec::new();
    for party in &asked.reporters {
        deliveries.extend(delivery::delivery_to(db, seq, party)?);
    }
    let logged = match deliveries.is_empty() {
        true => None,
        false => log::logged(db, seq)?,
    };
    let poll = match asked.asks_poll && has_polls {
        true => db.find(
            "SELECT seq, closed FROM poll WHERE seq = ?1",
            params![seq],
            poll,
        )?,
        false => None,
    };
    let is_meant = |meaning: &String| Intent::ALL.iter().copied().find(|i| i.as_str() == meaning);
    let parent = ParentFacts {
        seq: seq.unsigned_abs(),
        thread,
        meaning: meaning.as_ref().and_then(is_meant),
        parts,
        deliveries,
        logged,
        poll,
    };
    facts.parents.insert(id.to_owned(), parent);
    Ok(())
}

fn poll(row: &Row<'_>) -> SqlResult<PollFacts> {
    Ok(PollFacts {
        seq: row.seq("seq")?,
        closed: time(row.get("closed")?),
    })
}
