//! Trust data that all relays of a database share: what the files `trust.toml` and `contacts.toml` are to one relay.

use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::store::{StoreError, StoreFault};
use crosstalk_protocol::{PinError, Trust};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Runtime;

use super::fault::{PgResult, SqlError};
use super::session::PgSession;
use super::sql::{Db, bytes, params, tuple, value};
use super::{PostgresPlace, registry, schema};
use crate::trust::{TrustTexts, parse_texts};

/// The trust data in a database. It waits for the server.
///
/// Every change raises the version of the registry, by which the other relays notice it at the next request.
#[derive(Debug)]
pub struct PostgresTrust {
    session: Mutex<TrustSession>,
    /// The digest of the files that were taken over last.
    adopted: Mutex<Option<Digest>>,
    label: String,
    runtime: Option<Runtime>,
}

impl Drop for PostgresTrust {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct TrustSession {
    session: PgSession,
    /// The trust data that was read last, and its number.
    known: Option<(i64, Trust)>,
}

impl std::fmt::Debug for TrustSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustSession").finish_non_exhaustive()
    }
}

impl PostgresTrust {
    /// Opens the trust data of a database; its tables are made, or brought to the present version.
    ///
    /// # Errors
    /// If the server can't be reached or does not let the relay in, or the tables are those of a newer program.
    pub fn open(place: PostgresPlace) -> Result<Self, StoreError> {
        let label = place.to_string();
        let opening = super::spawn("opening", move || {
            let (door, runtime) = super::door(place, 1)?;
            let mut session = PgSession::new(door);
            session.read(schema::migrate)?;
            Ok((session, runtime))
        })?;
        let (session, runtime) = opening.join().unwrap_or_else(|_| Err(super::panicked()))?;
        Ok(Self {
            session: Mutex::new(TrustSession {
                session,
                known: None,
            }),
            adopted: Mutex::new(None),
            label,
            runtime: Some(runtime),
        })
    }

    /// The trust data now.
    ///
    /// # Errors
    /// If it can't be read or understood.
    pub fn read(&self) -> Result<Trust, StoreError> {
        apart(|| self.read_here())
    }

    fn read_here(&self) -> Result<Trust, StoreError> {
        let mut this = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let number = this.session.read(number)?;
        if let Some((known, trust)) = &this.known
            && *known == number
        {
            return Ok(trust.clone());
        }
        let read = this.session.read(|db| stored(db, ""))?;
        let trust = self.parse(&read)?;
        this.known = Some((read.0, trust.clone()));
        Ok(trust)
    }

    /// Changes the trust data, while no other relay does. Nothing is written if the change changes nothing. The thread must not
    /// be one that serves tasks.
    ///
    /// # Errors
    /// If it can't be read or written, or would be too large.
    pub fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, StoreError> {
        self.change(None, change)
    }

    /// Takes over what the trust files of one relay say, each content of them once: a database without trust data gets all of
    /// it, else what the database does not know yet and what restricts it. Returns what was left out, and why.
    ///
    /// # Errors
    /// If it can't be read or written, or would be too large.
    pub fn adopt(&self, files: &Trust) -> Result<Vec<(String, PinError)>, StoreError> {
        let both = format!("{}\n{}", files.to_text(), files.contacts_to_text());
        let source = Digest::of(both.as_bytes());
        let mut adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        if *adopted == Some(source) {
            return Ok(Vec::new());
        }
        let refused = apart(|| {
            let mut refused = Vec::new();
            self.change(Some(source), &mut |trust| {
                refused = match *trust == Trust::default() {
                    true => {
                        *trust = files.clone();
                        Vec::new()
                    }
                    false => trust.merge(files),
                };
            })?;
            Ok(refused)
        })?;
        *adopted = Some(source);
        Ok(refused)
    }

    /// Changes the trust data; a change that comes from files is made once for each content of them.
    fn change(
        &self,
        source: Option<Digest>,
        change: &mut dyn FnMut(&mut Trust),
    ) -> Result<Trust, StoreError> {
        let mut this = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let mut refused = None;
        let changed = this.session.change(|db| {
            refused = None;
            let read = stored(db, " FOR UPDATE")?;
            let mut fail = |error: StoreError| {
                let what = SqlError::Row(error.explanation.what.clone());
                refused = Some(error);
                what
            };
            let before = self.parse(&read).map_err(&mut fail)?;
            if let Some(source) = &source {
                let sql = "INSERT INTO trust_source (digest) VALUES ($1) ON CONFLICT DO NOTHING";
                if db.run(sql, params![bytes(source)])? == 0 {
                    return Ok((read.0, before));
                }
            }
            let mut trust = before.clone();
            change(&mut trust);
            if trust == before {
                return Ok((read.0, trust));
            }
            let texts = TrustTexts::checked(&trust, &before, Path::new(&self.file()));
            let texts = texts.map_err(|error| fail(unusable(error.explanation())))?;
            let sql = "UPDATE trust SET number = number + 1, keys = $1, contacts = $2";
            db.run(sql, params![texts.decided, texts.met])?;
            registry::renew(db)?;
            Ok((read.0 + 1, trust))
        });
        match (changed, refused) {
            (Ok((number, trust)), _) => {
                this.known = Some((number, trust.clone()));
                Ok(trust)
            }
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error),
        }
    }

    /// What the trust data is called in messages.
    fn file(&self) -> String {
        format!("trust in {}", self.label)
    }

    fn parse(&self, (_, keys, contacts): &Stored) -> Result<Trust, StoreError> {
        let file = self.file();
        let trust = parse_texts(keys, contacts, Path::new(&file));
        trust.map_err(|error| unusable(error.explanation()))
    }
}

/// Waits for the server on a thread of its own: the caller may be one that serves tasks.
fn apart<T: Send>(act: impl FnOnce() -> Result<T, StoreError> + Send) -> Result<T, StoreError> {
    std::thread::scope(|scope| {
        let done = scope.spawn(act).join();
        done.unwrap_or_else(|_| Err(super::panicked()))
    })
}

/// The number of the trust data, its decisions and its contacts.
type Stored = (i64, String, String);

fn number(db: &Db) -> PgResult<i64> {
    db.one("SELECT number FROM trust", params![], value)
}

/// The trust data of the database of a session, by the name of the database.
pub(super) fn read_from(session: &mut PgSession, label: &str) -> Result<Trust, StoreError> {
    let (_, keys, contacts) = session.read(|db| stored(db, ""))?;
    let trust = parse_texts(&keys, &contacts, Path::new(&format!("trust in {label}")));
    trust.map_err(|error| unusable(error.explanation()))
}

fn unusable(explanation: crosstalk_envelope::Explanation) -> StoreError {
    StoreError {
        fault: StoreFault::Unavailable,
        explanation,
    }
}

fn stored(db: &Db, lock: &str) -> PgResult<Stored> {
    let sql = format!("SELECT number, keys, contacts FROM trust{lock}");
    db.one(&sql, params![], tuple)
}
