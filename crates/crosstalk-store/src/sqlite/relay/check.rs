//! Consistency of the tables of a relay.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::Sql as _;

/// How many messages are named of each kind of trouble.
const NAMED: usize = 10;

/// What must not be there: the sentence, and the ids or places that it is about, one a row.
const RULES: [(&str, &str); 18] = [
    (
        "there is something in the store that acts by itself, which Crosstalk did not put there",
        "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')",
    ),
    (
        "the place up to which messages are filed is unknown",
        "SELECT 'progress' WHERE (SELECT count(*) FROM progress WHERE name IN ('filed', 'retired', 'given')) <> 3",
    ),
    (
        "messages are marked as filed that never came",
        "SELECT seq FROM progress WHERE seq < 0 OR seq > max(coalesce((SELECT max(seq) FROM intake), 0), \
         (SELECT seq FROM progress WHERE name = 'given'))",
    ),
    (
        "a message is marked as filed and is not",
        "SELECT id FROM intake i WHERE text <> '' AND seq <= (SELECT seq FROM progress WHERE name = 'filed') \
         AND NOT EXISTS (SELECT 1 FROM message m WHERE m.seq = i.seq) \
         AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.seq = i.seq)",
    ),
    (
        "a message is filed and not marked as such",
        "SELECT id FROM message WHERE seq > (SELECT seq FROM progress WHERE name = 'filed')",
    ),
    (
        "a message is quarantined and indexed, or was erased and is still quarantined",
        "SELECT seq FROM quarantine q WHERE EXISTS (SELECT 1 FROM message m WHERE m.seq = q.seq) \
         OR EXISTS (SELECT 1 FROM intake i WHERE i.seq = q.seq AND i.text = '')",
    ),
    (
        "a message is filed under another id or in another thread than it is kept",
        "SELECT i.id FROM intake i JOIN message m ON m.seq = i.seq WHERE m.id <> i.id OR m.thread <> i.thread",
    ),
    (
        "a message that a relay took is on its way to nobody",
        "SELECT id FROM intake i WHERE peer IS NOT NULL AND text <> '' \
         AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.seq = i.seq)",
    ),
    (
        "a message that was erased is still filed or on its way",
        "SELECT id FROM intake i WHERE text = '' AND (EXISTS (SELECT 1 FROM message m WHERE m.seq = i.seq) \
         OR EXISTS (SELECT 1 FROM delivery d WHERE d.seq = i.seq AND d.state = 0))",
    ),
    (
        "a delivery, a question, an attachment or a poll belongs to no message",
        "SELECT seq FROM (SELECT seq FROM delivery UNION ALL SELECT seq FROM expectation UNION ALL \
         SELECT seq FROM blob_use UNION ALL SELECT seq FROM poll) x WHERE NOT EXISTS (SELECT 1 FROM intake i WHERE i.seq = x.seq)",
    ),
    (
        "a delivery is in a state, or by a handler, that there is not",
        "SELECT seq FROM delivery WHERE state NOT BETWEEN 0 AND 4 OR handler NOT BETWEEN 0 AND 5 \
         OR priority NOT BETWEEN 0 AND 2 OR attempts < 0",
    ),
    (
        "the times of a delivery do not fit its state",
        "SELECT seq FROM delivery WHERE (state IN (1, 2, 3) AND delivered_at IS NULL) \
         OR (state = 2 AND read_at IS NULL) OR (state = 3) <> (acknowledged_at IS NOT NULL) \
         OR (state = 4) <> (failed_at IS NOT NULL) OR (state < 2 AND read_at IS NOT NULL) \
         OR (state = 0 AND delivered_at IS NOT NULL)",
    ),
    (
        "a delivery has to be tried and has no time for it, or the other way round",
        "SELECT seq FROM delivery WHERE (state = 0 AND handler > 1) <> (next_at IS NOT NULL)",
    ),
    (
        "the uses of an attachment are counted wrongly",
        "SELECT hex(digest) FROM blob b WHERE uses <> (SELECT count(*) FROM blob_use u WHERE u.digest = b.digest) \
         + (SELECT count(*) FROM held_blob u WHERE u.digest = b.digest)",
    ),
    (
        "an attachment was uploaded that is not known",
        "SELECT hex(digest) FROM upload u WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.digest = u.digest)",
    ),
    (
        "a message that waits for a person has no text, or one that was decided still has it",
        "SELECT id FROM held WHERE (choice IS NULL) <> (text <> '') OR (choice IS NULL) <> (decided_by IS NULL) \
         OR (choice IS NULL) <> (decided_at IS NULL) OR choice NOT IN ('approved', 'refused', 'lapsed')",
    ),
    (
        "a message is taken that nobody approved",
        "SELECT h.id FROM held h JOIN intake i ON i.id = h.id AND i.digest = h.digest \
         WHERE h.choice IS NULL OR h.choice <> 'approved'",
    ),
    (
        "a thread has another number of messages than are filed in it",
        "SELECT id FROM thread t WHERE messages <> (SELECT count(*) FROM message m WHERE m.thread = t.id)",
    ),
];

pub(in crate::sqlite) fn check(db: &Connection) -> SqlResult<Vec<String>> {
    let mut found = Vec::new();
    for (sentence, sql) in RULES {
        let ids = db.all(sql, [], |row| {
            let id = match row.get_ref(0)? {
                ValueRef::Integer(n) => n.to_string(),
                other => other.as_str_or_null()?.unwrap_or_default().to_owned(),
            };
            Ok(format!("`{}`", id.escape_debug()))
        })?;
        report(&mut found, sentence, &ids);
    }
    Ok(found)
}

/// Adds a sentence about the messages or entries with some ids, if there are any; the first of them are named.
pub(in crate::sqlite) fn report(found: &mut Vec<String>, sentence: &str, ids: &[impl ToString]) {
    let named: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    let others = match ids.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if !ids.is_empty() {
        found.push(format!("{sentence}: {}{others}", named.join(", ")));
    }
}
