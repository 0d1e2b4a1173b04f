//! The tables, and how an older database gets them.
//!
//! They are those of the SQLite adapter (`sqlite/schema.rs` says what is in them) in the types of PostgreSQL, with these
//! differences: ids are compared as bytes; `origin` tells which relay accepted a message; `words` has the words of a message,
//! each once; `turn` has one row, which everything that writes in order holds until its commit; and entries, tiles and
//! checkpoints have the number of their chain.

use super::fault::{PgResult, SqlError};
use super::sql::{Db, params, value};

/// The version of the tables that this program makes and uses.
pub(super) const VERSION: i64 = 3;
/// The oldest version whose programs can use these tables, as long as there is one chain.
const OLDEST: i64 = 1;

/// The key of the lock under which tables are made and changed: `crosstlk` in ASCII.
const MIGRATION_LOCK: i64 = 0x6372_6f73_7374_6c6b;

/// Each version by the statements that lead to it from the one before.
const STEPS: [&str; 3] = [FIRST, CHAINS, SHARED];

/// Makes the tables, or brings them to the present version. Several relays may start at once: one does it.
///
/// A relay of the version before goes on with the tables of this one, so that relays are upgraded one by one: `oldest` says
/// which is the oldest version whose programs can use them.
pub(super) fn migrate(db: &Db) -> PgResult<()> {
    let is_there = db.has(
        "SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('crosstalk_version')",
        params![],
    )?;
    if is_there && version(db)? == VERSION {
        return Ok(());
    }
    db.batch("BEGIN")?;
    let done = migrate_locked(db);
    match done {
        Ok(()) => db.commit(),
        Err(error) => {
            // The error of the change says more than one of its end.
            let _ = db.batch("ROLLBACK");
            Err(error)
        }
    }
}

fn migrate_locked(db: &Db) -> PgResult<()> {
    db.has("SELECT pg_advisory_xact_lock($1)", params![MIGRATION_LOCK])?;
    db.batch(
        "CREATE TABLE IF NOT EXISTS crosstalk_version (number BIGINT NOT NULL, oldest BIGINT NOT NULL)",
    )?;
    let sql = "SELECT number FROM crosstalk_version";
    let found: Option<i64> = db.find(sql, params![], value)?;
    let before = found.unwrap_or(0);
    if before > VERSION {
        return check_newer(db, before);
    }
    let done = usize::try_from(before).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        db.batch(step)?;
    }
    db.run("DELETE FROM crosstalk_version", params![])?;
    let sql = "INSERT INTO crosstalk_version (number, oldest) VALUES ($1, $2)";
    db.run(sql, params![VERSION, OLDEST])?;
    Ok(())
}

fn version(db: &Db) -> PgResult<i64> {
    let sql = "SELECT number FROM crosstalk_version";
    let found: Option<i64> = db.find(sql, params![], value)?;
    let found = found.unwrap_or(0);
    if found > VERSION {
        check_newer(db, found)?;
        return Ok(VERSION);
    }
    Ok(found)
}

/// Whether this program can use tables of a newer version.
fn check_newer(db: &Db, theirs: i64) -> PgResult<()> {
    let oldest: i64 = db.one("SELECT oldest FROM crosstalk_version", params![], value)?;
    match oldest <= VERSION {
        true => Ok(()),
        false => Err(SqlError::Newer(theirs)),
    }
}

const FIRST: &str = r#"
CREATE TABLE turn (
    one BOOLEAN PRIMARY KEY CHECK (one),
    number BIGINT NOT NULL,
    seq BIGINT NOT NULL
) WITH (fillfactor = 20);
INSERT INTO turn (one, number, seq) VALUES (TRUE, 0, 0);

CREATE TABLE registry_version (
    one BOOLEAN PRIMARY KEY CHECK (one),
    number BIGINT NOT NULL
) WITH (fillfactor = 20);
INSERT INTO registry_version (one, number) VALUES (TRUE, 1);

CREATE TABLE progress (
    name TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL
) WITH (fillfactor = 20);
INSERT INTO progress (name, seq) VALUES ('indexed', 0), ('retired', 0);

CREATE TABLE intake (
    seq BIGINT PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    carried BOOLEAN NOT NULL,
    pkid TEXT NOT NULL,
    digest BYTEA NOT NULL,
    at BIGINT NOT NULL,
    way TEXT NOT NULL,
    side TEXT NOT NULL,
    verdict TEXT NOT NULL,
    spare_thread TEXT COLLATE "C" NOT NULL,
    spare_message TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    inferred TEXT,
    dismissed BOOLEAN NOT NULL DEFAULT FALSE,
    text TEXT NOT NULL,
    received TEXT,
    truncated BOOLEAN NOT NULL DEFAULT FALSE,
    peer TEXT COLLATE "C" NOT NULL,
    speaker TEXT NOT NULL,
    origin BIGINT NOT NULL,
    routes TEXT NOT NULL,
    priority BIGINT NOT NULL,
    answer_by BIGINT,
    expires BIGINT,
    meaning TEXT,
    session TEXT COLLATE "C",
    brief BOOLEAN NOT NULL,
    entry BIGINT NOT NULL,
    renewed BIGINT
);
CREATE INDEX intake_uncarried ON intake (digest, seq) WHERE NOT carried;
CREATE INDEX intake_expires ON intake (expires) WHERE expires IS NOT NULL;
CREATE INDEX intake_brief ON intake (at) WHERE brief;
CREATE INDEX intake_session ON intake (session, seq) WHERE session IS NOT NULL;
CREATE INDEX intake_thread ON intake (thread, seq);

CREATE TABLE message (
    seq BIGINT PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    thread TEXT COLLATE "C" NOT NULL,
    names TEXT,
    parent TEXT COLLATE "C",
    session TEXT COLLATE "C",
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    targets TEXT,
    speaker TEXT,
    context TEXT,
    intent TEXT,
    meaning TEXT,
    at BIGINT NOT NULL,
    written_at BIGINT,
    trust BIGINT NOT NULL,
    counts BOOLEAN NOT NULL,
    settles BOOLEAN NOT NULL,
    closes BOOLEAN NOT NULL,
    reopens BOOLEAN NOT NULL,
    mine BOOLEAN NOT NULL,
    asks BIGINT NOT NULL,
    needs BIGINT NOT NULL,
    answered BIGINT NOT NULL,
    wait BIGINT NOT NULL
);
CREATE INDEX message_thread ON message (thread, seq);
CREATE INDEX message_session ON message (session, counts DESC, seq DESC) WHERE session IS NOT NULL;
CREATE INDEX message_parent ON message (parent) WHERE parent IS NOT NULL;
CREATE INDEX message_waits ON message (thread, trust, seq) WHERE wait <> 0;
CREATE INDEX message_asked ON message (seq) WHERE wait IN (2, 3);
CREATE INDEX message_handover ON message (thread, seq) WHERE meaning IN ('ESCALATE', 'HANDOFF');

CREATE TABLE words (
    seq BIGINT PRIMARY KEY,
    words TSVECTOR NOT NULL
);
CREATE INDEX words_words ON words USING gin (words);

CREATE TABLE answer (
    question BIGINT NOT NULL,
    party TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (question, party)
);

CREATE TABLE thread (
    id TEXT COLLATE "C" PRIMARY KEY,
    messages BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    closed_at BIGINT,
    closed_seq BIGINT,
    firm_seq BIGINT
);
CREATE INDEX thread_last ON thread (last_at, last_seq);
CREATE INDEX thread_open ON thread (last_at, last_seq) WHERE closed_at IS NULL;
CREATE INDEX thread_waiting ON thread (last_at, last_seq) WHERE waiting > 0;

CREATE TABLE party (
    thread TEXT COLLATE "C" NOT NULL,
    party TEXT COLLATE "C" NOT NULL,
    address TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    counts BOOLEAN NOT NULL,
    last_at BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    PRIMARY KEY (thread, party)
);
CREATE INDEX party_last ON party (party, last_at, last_seq);

CREATE TABLE quarantine (
    seq BIGINT PRIMARY KEY,
    reason TEXT NOT NULL
);

CREATE TABLE closing (
    kind BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE TABLE steward (
    kind BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    address TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE TABLE delivery (
    seq BIGINT NOT NULL,
    party TEXT COLLATE "C" NOT NULL,
    address TEXT NOT NULL,
    handler BIGINT NOT NULL,
    state BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    leased_at BIGINT,
    queued_at BIGINT NOT NULL,
    delivered_at BIGINT,
    read_at BIGINT,
    acknowledged_at BIGINT,
    failed_at BIGINT,
    reason TEXT,
    PRIMARY KEY (seq, party)
);
CREATE INDEX delivery_inbox ON delivery (party, seq) WHERE state < 3;
CREATE INDEX delivery_due ON delivery (priority, next_at, seq) WHERE state = 0 AND handler > 1;
CREATE INDEX delivery_courier ON delivery (priority, seq) WHERE state = 0 AND handler = 1;
CREATE INDEX delivery_dead ON delivery (failed_at, seq) WHERE state = 4;
CREATE INDEX delivery_waiting ON delivery (handler, queued_at) WHERE state = 0 AND handler > 0;

CREATE TABLE expectation (
    seq BIGINT PRIMARY KEY,
    due BIGINT NOT NULL
);
CREATE INDEX expectation_due ON expectation (due, seq);

CREATE TABLE poll (
    seq BIGINT PRIMARY KEY,
    thread TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    ends BIGINT,
    touched BIGINT,
    closed BIGINT
);
CREATE INDEX poll_thread ON poll (thread);
CREATE INDEX poll_touched ON poll (touched) WHERE touched IS NOT NULL;
CREATE INDEX poll_ends ON poll (ends) WHERE closed IS NULL AND ends IS NOT NULL;
CREATE INDEX poll_endless ON poll (at) WHERE closed IS NULL AND ends IS NULL;

CREATE TABLE owed (
    place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text TEXT NOT NULL
);

CREATE TABLE token (
    name TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    role TEXT NOT NULL,
    addresses TEXT NOT NULL,
    courier TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

CREATE TABLE agent (
    party TEXT COLLATE "C" PRIMARY KEY,
    address TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    at BIGINT NOT NULL
);

CREATE TABLE blob (
    digest BYTEA PRIMARY KEY,
    size BIGINT NOT NULL,
    at BIGINT NOT NULL,
    uses BIGINT NOT NULL
);
CREATE INDEX blob_loose ON blob (at) WHERE uses = 0;

CREATE TABLE blob_use (
    digest BYTEA NOT NULL,
    seq BIGINT NOT NULL,
    grants BOOLEAN NOT NULL,
    PRIMARY KEY (seq, digest)
);
CREATE INDEX blob_use_digest ON blob_use (digest, seq);

CREATE TABLE upload (
    peer TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    size BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (peer, digest)
);
CREATE INDEX upload_digest ON upload (digest);

CREATE TABLE consent (
    id TEXT COLLATE "C" PRIMARY KEY,
    granter TEXT COLLATE "C" NOT NULL,
    pkid TEXT,
    assurance TEXT NOT NULL,
    text TEXT,
    scopes TEXT NOT NULL,
    receivers TEXT NOT NULL,
    jurisdictions TEXT NOT NULL,
    since BIGINT NOT NULL,
    expires BIGINT,
    message TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    originals TEXT NOT NULL,
    revoked_at BIGINT,
    revoked_by TEXT,
    revoked_message TEXT,
    reason TEXT
);
CREATE INDEX consent_since ON consent (since, id);

CREATE TABLE consent_origin (
    original TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (original, id)
);

CREATE TABLE consent_use (
    consent TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (consent, seq)
);
CREATE INDEX consent_use_seq ON consent_use (seq);

CREATE TABLE held (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    carried BOOLEAN NOT NULL,
    pkid TEXT NOT NULL,
    digest BYTEA NOT NULL,
    raw BYTEA NOT NULL,
    at BIGINT NOT NULL,
    verdict TEXT NOT NULL,
    spare_thread TEXT COLLATE "C" NOT NULL,
    spare_message TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    text TEXT NOT NULL,
    peer TEXT COLLATE "C" NOT NULL,
    routes TEXT NOT NULL,
    answer_by BIGINT,
    expires BIGINT,
    ends BIGINT,
    assurance TEXT NOT NULL,
    firm BOOLEAN NOT NULL,
    authority BOOLEAN NOT NULL,
    entry BIGINT NOT NULL,
    why TEXT NOT NULL,
    deciders TEXT NOT NULL,
    choice TEXT,
    decided_by TEXT,
    decided_at BIGINT,
    reason TEXT
);
CREATE INDEX held_waiting ON held (at, seq) WHERE choice IS NULL;
CREATE INDEX held_ends ON held (ends) WHERE choice IS NULL AND ends IS NOT NULL;
CREATE INDEX held_content ON held (digest) WHERE NOT carried;

CREATE TABLE held_blob (
    digest BYTEA NOT NULL,
    seq BIGINT NOT NULL,
    grants BOOLEAN NOT NULL,
    PRIMARY KEY (seq, digest)
);
CREATE INDEX held_blob_digest ON held_blob (digest);

CREATE TABLE held_consent (
    consent TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (consent, seq)
);
CREATE INDEX held_consent_seq ON held_consent (seq);

CREATE TABLE log (
    place BIGINT PRIMARY KEY,
    kind BIGINT NOT NULL,
    at BIGINT NOT NULL,
    id TEXT COLLATE "C",
    canonical BYTEA,
    raw BYTEA,
    sealed BYTEA,
    salt BYTEA,
    detail TEXT,
    seq BIGINT
);
CREATE INDEX log_id ON log (id) WHERE kind <> 0 AND id IS NOT NULL;

CREATE TABLE renewal (
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (seq, place)
);

CREATE TABLE tile (
    level BIGINT NOT NULL,
    place BIGINT NOT NULL,
    root BYTEA NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (level, place)
);

CREATE TABLE checkpoint (
    size BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    root BYTEA NOT NULL,
    note TEXT NOT NULL
);

CREATE TABLE log_key (
    one BOOLEAN PRIMARY KEY CHECK (one),
    key TEXT NOT NULL
);

CREATE SEQUENCE origin_seq;
"#;

/// Each relay writes a chain of its own. The chain of the version before is the first one, with the key that all relays had.
///
/// Relays of the version before go on with the first chain: for them, `log`, `tile` and `checkpoint` are views of it, and
/// `log_key` stays. Once a second chain is registered, they are not let in any more.
const CHAINS: &str = r#"
CREATE TABLE chain (
    number BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    since BIGINT NOT NULL
);

CREATE TABLE relay_identity (
    one BOOLEAN PRIMARY KEY CHECK (one),
    name TEXT NOT NULL,
    secret BYTEA
);
INSERT INTO relay_identity (one, name) SELECT TRUE, split_part(split_part(key, '+', 1), ' ', 1) FROM log_key;

INSERT INTO chain (number, key, since) SELECT 0, key, coalesce((SELECT at FROM log WHERE place = 0),
    (extract(epoch FROM now()) * 1000)::bigint) FROM log_key;

ALTER TABLE log RENAME TO chain_entry;
ALTER TABLE chain_entry ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chain_entry DROP CONSTRAINT log_pkey, ADD PRIMARY KEY (chain, place);

ALTER TABLE tile RENAME TO chain_tile;
ALTER TABLE chain_tile ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chain_tile DROP CONSTRAINT tile_pkey, ADD PRIMARY KEY (chain, level, place);

ALTER TABLE checkpoint RENAME TO chain_checkpoint;
ALTER TABLE chain_checkpoint ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chain_checkpoint DROP CONSTRAINT checkpoint_pkey, ADD PRIMARY KEY (chain, size);

CREATE VIEW log AS SELECT place, kind, at, id, canonical, raw, sealed, salt, detail, seq FROM chain_entry
    WHERE chain = 0;
CREATE VIEW tile AS SELECT level, place, root, hashes FROM chain_tile WHERE chain = 0;
CREATE VIEW checkpoint AS SELECT size, at, root, note FROM chain_checkpoint WHERE chain = 0;

ALTER TABLE intake ADD COLUMN chain BIGINT NOT NULL DEFAULT 0, ADD COLUMN renewed_chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE held ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE renewal ADD COLUMN chain BIGINT NOT NULL DEFAULT 0;
ALTER TABLE renewal DROP CONSTRAINT renewal_pkey, ADD PRIMARY KEY (seq, chain, place);
"#;

/// The trust data of all relays, in one row: the texts that one relay has in `trust.toml` and `contacts.toml`. `number` counts
/// its changes. `trust_source` has the digests of the files that were taken over.
///
/// The bytes of attachments: `parts` of an attachment is the upload whose parts are its bytes. Parts of an upload that was broken
/// off belong to no attachment, and are removed with attachments that nobody uses.
const SHARED: &str = r#"
CREATE TABLE trust (
    one BOOLEAN PRIMARY KEY CHECK (one),
    number BIGINT NOT NULL,
    keys TEXT NOT NULL,
    contacts TEXT NOT NULL
);
INSERT INTO trust (one, number, keys, contacts) VALUES (TRUE, 0, '', '');

CREATE TABLE trust_source (
    digest BYTEA PRIMARY KEY
);

ALTER TABLE blob ADD COLUMN parts TEXT COLLATE "C";
CREATE INDEX blob_parts ON blob (parts) WHERE parts IS NOT NULL;

CREATE TABLE blob_part (
    upload TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (upload, number)
);
ALTER TABLE blob_part ALTER COLUMN bytes SET STORAGE EXTERNAL;
"#;
