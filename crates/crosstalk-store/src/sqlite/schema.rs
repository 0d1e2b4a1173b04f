//! The tables: what came, and what is derived from it.

/// The number in the header of the file that says whose it is: `XTLK`.
pub(super) const APPLICATION: i32 = 0x5854_4c4b;

/// Each accepted message, when and how it came, its verdict at that time, and what a person was told: its thread, and the
/// message that it seems to answer (`inferred`). Everything else is derived.
///
/// An id is there once. `carried` is 0 where the message has an id of its own, even if its envelope carries one.
pub(super) const INTAKE: &str = "
CREATE TABLE intake (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    carried INTEGER NOT NULL,
    pkid TEXT NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    way TEXT NOT NULL,
    side TEXT NOT NULL,
    verdict TEXT NOT NULL,
    spare_thread TEXT NOT NULL,
    spare_message TEXT NOT NULL,
    thread TEXT NOT NULL,
    inferred TEXT,
    dismissed INTEGER NOT NULL DEFAULT 0,
    text TEXT NOT NULL,
    received TEXT
) STRICT;
CREATE INDEX intake_uncarried ON intake (digest) WHERE carried = 0;
";

/// What the texts say, in columns; threads; who is in them.
///
/// `wait` and `asks` are 0 for nobody, 1 for me, 2 to carry, 3 for them: what is now, and what is as long as nothing
/// settles the message. `trust` is the place of the verdict among all, the best first. `names` is the thread that the
/// envelope names, `targets` has an address a line. `answer` has who has answered a message so that it counts, and
/// `answered` how many they are, as far as the message `needs` them. `closed_seq` is the latest message that closed the
/// thread, `firm_seq` the latest that closed it for verified messages as well.
pub(super) const DERIVED: &str = "
CREATE TABLE message (
    seq INTEGER PRIMARY KEY REFERENCES intake (seq),
    id TEXT NOT NULL,
    thread TEXT NOT NULL,
    names TEXT,
    parent TEXT,
    session TEXT,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    targets TEXT,
    user TEXT,
    context TEXT,
    intent TEXT,
    meaning TEXT,
    at INTEGER NOT NULL,
    written_at INTEGER,
    trust INTEGER NOT NULL,
    counts INTEGER NOT NULL,
    settles INTEGER NOT NULL,
    closes INTEGER NOT NULL,
    reopens INTEGER NOT NULL,
    mine INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    needs INTEGER NOT NULL,
    answered INTEGER NOT NULL,
    wait INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_id ON message (id);
CREATE INDEX message_thread ON message (thread, seq);
CREATE INDEX message_session ON message (session, counts, seq, thread) WHERE session IS NOT NULL;
CREATE INDEX message_parent ON message (parent, thread) WHERE parent IS NOT NULL;
CREATE INDEX message_answers ON message (parent) WHERE settles = 1;
CREATE INDEX message_waits ON message (thread, trust, seq) WHERE wait <> 0;
CREATE INDEX message_inbox ON message (seq) WHERE wait IN (1, 2);

CREATE TABLE answer (
    question INTEGER NOT NULL,
    party TEXT NOT NULL,
    PRIMARY KEY (question, party)
) STRICT, WITHOUT ROWID;

CREATE TABLE thread (
    id TEXT PRIMARY KEY NOT NULL,
    messages INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    closed_at INTEGER,
    closed_seq INTEGER,
    firm_seq INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_last ON thread (last_at, last_seq);
CREATE INDEX thread_open ON thread (last_at, last_seq) WHERE closed_at IS NULL;
CREATE INDEX thread_waiting ON thread (last_at, last_seq) WHERE waiting > 0;

CREATE TABLE party (
    thread TEXT NOT NULL,
    party TEXT NOT NULL,
    address TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    place INTEGER NOT NULL,
    counts INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (thread, party)
) STRICT, WITHOUT ROWID;
CREATE INDEX party_last ON party (party, last_at, last_seq);

";

/// What a relay keeps. None of it is derived: a rebuild leaves it alone.
///
/// `peer` is who handed a message in, and nothing where the person of the store took it in. `routes` has who gets it, a
/// line each (the handler, a space, the address); it is empty where the receiver gets it by its inbox. `session` is there
/// where the envelope names no thread. A text is empty where the message was erased and its id is kept.
///
/// `progress` has the seq of the last indexed message, and of the last one that was checked for its age. The rows of the intake
/// are numbered in the order in which they came; no number is given twice ([`COUNTED`]).
/// `closing` and `steward` are about a thread (`kind` 0) or a session (1) by the name that envelopes use. The states of a
/// delivery are 0 for queued, 1 for delivered, 2 for read, 3 for acknowledged, 4 for failed; the handlers 0 for inbox, 1
/// for copy_paste, 2 and up for those that are active.
pub(super) const RELAY: &str = "
ALTER TABLE intake ADD COLUMN peer TEXT;
ALTER TABLE intake ADD COLUMN routes TEXT NOT NULL DEFAULT '';
ALTER TABLE intake ADD COLUMN priority INTEGER NOT NULL DEFAULT 1;
ALTER TABLE intake ADD COLUMN answer_by INTEGER;
ALTER TABLE intake ADD COLUMN expires INTEGER;
ALTER TABLE intake ADD COLUMN meaning TEXT;
ALTER TABLE intake ADD COLUMN session TEXT;
CREATE INDEX intake_expires ON intake (expires) WHERE expires IS NOT NULL;

CREATE TABLE progress (
    name TEXT PRIMARY KEY NOT NULL,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO progress (name, seq) VALUES ('filed', (SELECT coalesce(max(seq), 0) FROM intake)), ('retired', 0);

CREATE TABLE closing (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE steward (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
    seq INTEGER NOT NULL REFERENCES intake (seq),
    party TEXT NOT NULL,
    address TEXT NOT NULL,
    handler INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at INTEGER,
    queued_at INTEGER NOT NULL,
    delivered_at INTEGER,
    read_at INTEGER,
    acknowledged_at INTEGER,
    failed_at INTEGER,
    reason TEXT,
    PRIMARY KEY (seq, party)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_inbox ON delivery (party, seq) WHERE state < 3;
CREATE INDEX delivery_due ON delivery (priority, next_at, seq) WHERE state = 0 AND handler > 1;
CREATE INDEX delivery_courier ON delivery (priority, seq) WHERE state = 0 AND handler = 1;
CREATE INDEX delivery_dead ON delivery (failed_at, seq) WHERE state = 4;

CREATE TABLE expectation (
    seq INTEGER PRIMARY KEY REFERENCES intake (seq),
    due INTEGER NOT NULL
) STRICT;
CREATE INDEX expectation_due ON expectation (due, seq);

CREATE TABLE token (
    name TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    addresses TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE agent (
    party TEXT PRIMARY KEY NOT NULL,
    address TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blob (
    digest BLOB PRIMARY KEY NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    uses INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_loose ON blob (at) WHERE uses = 0;
CREATE TABLE blob_use (
    digest BLOB NOT NULL,
    seq INTEGER NOT NULL REFERENCES intake (seq),
    PRIMARY KEY (seq, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_digest ON blob_use (digest);
";

/// Consents on record, what goes back to what, and which messages are kept under which.
///
/// Lists have an entry a line. `progress` has the state of removing traces of erased texts. `brief` is 1 where a message is
/// erased soon after everybody has it. `owed` has what the relay has to say by itself, until it is said.
pub(super) const CONSENT: &str = "
CREATE TABLE owed (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE consent (
    id TEXT PRIMARY KEY NOT NULL,
    granter TEXT NOT NULL,
    pkid TEXT,
    assurance TEXT NOT NULL,
    text TEXT,
    scopes TEXT NOT NULL,
    receivers TEXT NOT NULL,
    jurisdictions TEXT NOT NULL,
    since INTEGER NOT NULL,
    expires INTEGER,
    message TEXT NOT NULL,
    digest BLOB NOT NULL,
    originals TEXT NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT,
    revoked_message TEXT,
    reason TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX consent_since ON consent (since, id);

CREATE TABLE consent_origin (
    original TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (original, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE consent_use (
    consent TEXT NOT NULL,
    seq INTEGER NOT NULL REFERENCES intake (seq),
    PRIMARY KEY (consent, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX consent_use_seq ON consent_use (seq);

ALTER TABLE intake ADD COLUMN brief INTEGER NOT NULL DEFAULT 0;
CREATE INDEX intake_brief ON intake (at) WHERE brief = 1;

INSERT INTO progress (name, seq) VALUES ('scrubbed', 0);
";

/// Messages that wait for a person. None of it is derived. A row stays when it is decided, and its text does not.
///
/// `raw` is the digest of the text byte for byte; `ends` is when it can't be approved any more; `choice` is empty while
/// nobody has decided, then `approved`, `refused` or `lapsed`; `firm` is 1 where it is surely from its sender, and
/// `authority` where that one may revoke what others granted; `entry` is where in the log it says that the message is
/// held. `deciders` has the addresses of those who decide, a line each.
pub(super) const HOLD: &str = "
CREATE TABLE held (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    carried INTEGER NOT NULL,
    pkid TEXT NOT NULL,
    digest BLOB NOT NULL,
    raw BLOB NOT NULL,
    at INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    spare_thread TEXT NOT NULL,
    spare_message TEXT NOT NULL,
    thread TEXT NOT NULL,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    text TEXT NOT NULL,
    peer TEXT NOT NULL,
    routes TEXT NOT NULL,
    answer_by INTEGER,
    expires INTEGER,
    ends INTEGER,
    assurance TEXT NOT NULL,
    firm INTEGER NOT NULL,
    authority INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    why TEXT NOT NULL,
    deciders TEXT NOT NULL,
    choice TEXT,
    decided_by TEXT,
    decided_at INTEGER,
    reason TEXT
) STRICT;
CREATE INDEX held_waiting ON held (at, seq) WHERE choice IS NULL;
CREATE INDEX held_ends ON held (ends) WHERE choice IS NULL AND ends IS NOT NULL;
CREATE INDEX held_content ON held (digest) WHERE carried = 0;
CREATE INDEX held_thread ON held (thread);

CREATE TABLE held_blob (
    digest BLOB NOT NULL,
    seq INTEGER NOT NULL REFERENCES held (seq),
    PRIMARY KEY (seq, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_blob_digest ON held_blob (digest);

CREATE TABLE held_consent (
    consent TEXT NOT NULL,
    seq INTEGER NOT NULL REFERENCES held (seq),
    PRIMARY KEY (consent, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_consent_seq ON held_consent (seq);
";

/// Messages that could not be indexed, who uploaded which attachment, which references to attachments grant access, which polls
/// have to be counted, and where a thread was handed over. Only the last is derived.
///
/// A repair tries the messages in `quarantine` again. `courier` of a token has to whom its owner may carry messages of others,
/// one pattern a line.
///
/// `upload` has a row for each credential that sent the bytes of an attachment, as long as the attachment is kept for it.
/// `grants` is 1 where whoever handed a message in had uploaded the attachment that it refers to, or could read it;
/// references of before this version grant access as they did.
///
/// `poll` has the polls that a relay took. `ends` is when one is closed at the latest, as far as it is known; `touched` the
/// last message to it that was not counted; `closed` when it was closed. Those of before this version are counted once.
pub(super) const BOUNDARY: &str = "
CREATE TABLE quarantine (
    seq INTEGER PRIMARY KEY REFERENCES intake (seq),
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX intake_session ON intake (session) WHERE session IS NOT NULL;
ALTER TABLE token ADD COLUMN courier TEXT NOT NULL DEFAULT '';

CREATE TABLE upload (
    peer TEXT NOT NULL,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (peer, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_digest ON upload (digest);
ALTER TABLE blob_use ADD COLUMN grants INTEGER NOT NULL DEFAULT 1;
ALTER TABLE held_blob ADD COLUMN grants INTEGER NOT NULL DEFAULT 1;

CREATE TABLE poll (
    seq INTEGER PRIMARY KEY REFERENCES intake (seq),
    thread TEXT NOT NULL,
    at INTEGER NOT NULL,
    ends INTEGER,
    touched INTEGER,
    closed INTEGER
) STRICT;
CREATE INDEX poll_thread ON poll (thread);
CREATE INDEX poll_touched ON poll (touched) WHERE touched IS NOT NULL;
CREATE INDEX poll_ends ON poll (ends) WHERE closed IS NULL AND ends IS NOT NULL;
CREATE INDEX poll_endless ON poll (at) WHERE closed IS NULL AND ends IS NULL;
INSERT INTO poll (seq, thread, at, ends, touched)
SELECT seq, thread, at, answer_by, seq FROM intake WHERE meaning = 'POLL' AND peer IS NOT NULL AND text <> '';

CREATE INDEX message_handover ON message (thread, seq) WHERE meaning IN ('ESCALATE', 'HANDOFF');
";

/// When tokens were last used, and which deliveries wait for how long, by handler. Deliveries to inboxes are not in the index:
/// they wait for their readers, and there are many.
pub(super) const WATCH: &str = "
ALTER TABLE token ADD COLUMN last_used_at INTEGER;
CREATE INDEX delivery_waiting ON delivery (handler, queued_at) WHERE state = 0 AND handler > 0;
";

/// What a person did with messages that came damaged or were filed with the wrong question.
///
/// `truncated` is 1 where the text may be cut off. `moved` has where a message was filed before a person moved it: nothing of
/// this is derived, and the envelope says what it said. `message_asked` finds what waits for others.
pub(super) const REFILED: &str = "
ALTER TABLE intake ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;

CREATE TABLE moved (
    seq INTEGER PRIMARY KEY REFERENCES intake (seq),
    thread TEXT NOT NULL,
    inferred TEXT
) STRICT;

CREATE INDEX message_asked ON message (seq) WHERE wait IN (2, 3);
";

/// Nothing is added: what was derived is corrected ([`super::migrate`]).
pub(super) const ENDED: &str = "";

/// Since when a delivery is leased, while it is: `next_at` is then the end of the lease, and not of a wait.
pub(super) const LEASED: &str = "
ALTER TABLE delivery ADD COLUMN leased_at INTEGER;
";

/// Nothing is added: accepted messages get their deliveries ([`super::relay::delivery::queue_unindexed`]).
pub(super) const ROUTED: &str = "";

/// Finds the entries of the log that are about a message or a thread.
///
/// `renewal` has the entries by which another text of a message was kept than the one before. A message whose text was erased is
/// in no other table by its thread.
pub(super) const AUDITED: &str = "
CREATE TABLE renewal (
    seq INTEGER NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (seq, place)
) STRICT, WITHOUT ROWID;
INSERT INTO renewal (seq, place)
SELECT l.seq, l.place FROM log l CROSS JOIN intake i ON i.seq = l.seq WHERE l.kind = 0 AND l.place IS NOT i.entry;
CREATE INDEX intake_erased ON intake (thread) WHERE text = '';
";

/// Conversations that were closed by a message which does not mean that, as it was read when it was accepted.
pub(super) const REOPENED: &str = "
DELETE FROM closing WHERE EXISTS (SELECT 1 FROM message m WHERE m.seq = closing.seq AND m.meaning IS NOT 'CLOSE');
";

/// Records threads that were closed before the store had a relay.
pub(super) const CLOSED: &str = "
INSERT OR IGNORE INTO closing (kind, name, at, seq)
SELECT 0, id, closed_at, closed_seq FROM thread WHERE closed_at IS NOT NULL;
";

/// The log of a relay. Its entries are numbered from 0 without a gap; nothing changes them, and nothing takes them away but
/// their details.
///
/// `sealed` is the salted digest of the detail, `seq` the message that an entry took. A tile has the hashes of 256 neighbours of a level, and its own; only full
/// ones are kept. `entry` is where a message that a relay took is in the log, `renewed` where the text is that is kept of it
/// now, if that is another one.
pub(super) const LOG: &str = "
ALTER TABLE intake ADD COLUMN entry INTEGER;
ALTER TABLE intake ADD COLUMN renewed INTEGER;

CREATE TABLE log (
    place INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    at INTEGER NOT NULL,
    id TEXT,
    canonical BLOB,
    raw BLOB,
    sealed BLOB,
    salt BLOB,
    detail TEXT,
    seq INTEGER
) STRICT;
CREATE INDEX log_id ON log (id) WHERE kind <> 0 AND id IS NOT NULL;

CREATE TABLE tile (
    level INTEGER NOT NULL,
    place INTEGER NOT NULL,
    root BLOB NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (level, place)
) STRICT;

CREATE TABLE checkpoint (
    size INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    root BLOB NOT NULL,
    note TEXT NOT NULL
) STRICT;
";

/// The index of words has a file of its own ([`super::search`]), which knows its store by a number: this state of it, from
/// which the words follow. A copy gets another one.
pub(super) const SEARCH: &str = "
DROP TABLE IF EXISTS words;
CREATE TABLE identity (
    store INTEGER NOT NULL
) STRICT;
INSERT INTO identity (store) VALUES (random());
";

/// Fewer and smaller indexes: the answers that settle something are found among all answers, and the thread of a session in the
/// row of its latest message.
pub(super) const SLIM: &str = "
DROP INDEX IF EXISTS message_answers;
DROP INDEX IF EXISTS message_session;
CREATE INDEX message_session ON message (session, counts) WHERE session IS NOT NULL;
";

/// A message is found by its id in the intake alone, and positions are counted without a table of SQLite that is written again for
/// each row ([`super::migrate`] takes `AUTOINCREMENT` out of the text of the intake).
///
/// `given` is the highest position of a message that was forgotten: it is not given again.
pub(super) const COUNTED: &str = "
DROP INDEX IF EXISTS message_id;
INSERT INTO progress (name, seq) VALUES ('given', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'intake'), 0));
";

/// Forgets everything that is derived.
pub(super) const EMPTY: &str = "
DELETE FROM message;
DELETE FROM answer;
DELETE FROM thread;
DELETE FROM party;
";
