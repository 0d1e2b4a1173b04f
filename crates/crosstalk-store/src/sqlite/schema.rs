//! The tables: what came, and what is derived from it.

/// The number in the header of the file that says whose it is: `XTLK`.
pub(super) const APPLICATION: i32 = 0x5854_4c4b;

/// What came, when, how, what was found out about it then, and what a person was told: where it was filed and what it
/// was taken to answer (`inferred`). Everything else is derived.
///
/// An id is there once. `carried` is 0 where the message has an id of its own, even if its envelope carries one.
pub(super) const INTAKE: &str = "
CREATE TABLE intake (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
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

/// What the texts say, in columns; threads; who is in them; the words.
///
/// `wait` and `asks` are 0 for nobody, 1 for me, 2 to carry, 3 for them: what is now, and what is as long as nothing
/// settles the message. `trust` is the place of the verdict among all, the best first. `names` is the thread that the
/// envelope names, `targets` has an address a line. `answer` has who has answered a message so that it counts, and
/// `answered` how many they are, as far as the message `needs` them. `closed_seq` is the latest message that closed the
/// thread, `firm_seq` the latest that closed it for verified messages as well. The words have no content of their
/// own: to remove a message from them, its text is read again. Beginnings of up to ten characters are words of their own, so
/// that looking for one does not gather all that begin so.
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

CREATE VIRTUAL TABLE words USING fts5 (
    body, context, sender, receiver, intent,
    content = '', columnsize = 0, prefix = '2 3 4 5 6 7 8 9 10',
    tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
";

/// Forgets everything that is derived.
pub(super) const EMPTY: &str = "
DELETE FROM message;
DELETE FROM answer;
DELETE FROM thread;
DELETE FROM party;
INSERT INTO words (words) VALUES ('delete-all');
";

/// Moves all parties to the places of the latest messages of their threads.
pub(super) const DATED: &str = "
UPDATE party SET (last_at, last_seq) = (SELECT last_at, last_seq FROM thread WHERE id = party.thread);
";
