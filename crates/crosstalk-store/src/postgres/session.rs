//! Sessions: one for each thread, made again when the server is gone or is no primary any more.

use crosstalk_protocol::store::{StoreError, StoreFault};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::{AsyncMessage, Client, Socket};

use super::fault::{PgResult, SqlError};
use super::place::PostgresPlace;
use super::sql::Db;
use super::tls::PgTls;

/// How long a statement is tried again: a fail-over takes longer, and callers are told to try again.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(100);

/// A server that waits for a relay which is gone must not keep others waiting: the limits of a session. A cancelled wait for a
/// standby is a warning, so warnings are sent. Where a commit would wait for less than a disk of the standbys, it waits for that.
const LIMITS: &str = "SET statement_timeout = '20s'; SET lock_timeout = '15s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = warning; \
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2; \
    SET default_transaction_isolation = 'read committed'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')";

/// Who is woken when another relay than the one with this number says that something is new.
pub(super) type Listener = (i64, SyncSender<()>);

/// What every session needs.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) place: Arc<PostgresPlace>,
    pub(super) tls: Option<PgTls>,
    pub(super) runtime: Handle,
    /// How often the server was asked and waited for, by all sessions.
    pub(super) trips: Arc<AtomicU64>,
    /// The chain that this relay writes.
    pub(super) chain: Arc<AtomicI64>,
}

impl Door {
    /// Opens a session; notifications of the server wake somebody.
    fn connect(&self, wake: Option<Listener>) -> Result<Db, StoreError> {
        let warnings = Arc::new(AtomicU64::new(0));
        let client = match &self.tls {
            Some(tls) => self.connect_with(tls.clone(), Arc::clone(&warnings), wake),
            None => self.connect_with(tokio_postgres::NoTls, Arc::clone(&warnings), wake),
        };
        let client = client.map_err(|e| self.refused(&e))?;
        let (trips, chain) = (Arc::clone(&self.trips), Arc::clone(&self.chain));
        let db = Db::new(client, self.runtime.clone(), warnings, (trips, chain));
        db.batch(LIMITS)
            .map_err(|e| e.at(&self.place.to_string()))?;
        Ok(db)
    }

    fn connect_with<T>(
        &self,
        tls: T,
        warnings: Arc<AtomicU64>,
        wake: Option<Listener>,
    ) -> Result<Client, tokio_postgres::Error>
    where
        T: tokio_postgres::tls::MakeTlsConnect<Socket> + Send,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
    {
        let connected = self.runtime.block_on(self.place.config.connect(tls));
        let (client, mut connection) = connected?;
        self.runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    AsyncMessage::Notice(notice) => {
                        let severity = notice.parsed_severity();
                        if severity.is_none_or(|s| s == Severity::Warning) {
                            warnings.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    AsyncMessage::Notification(news) => {
                        let others = |(own, _): &&Listener| news.payload() != own.to_string();
                        if let Some((_, wake)) = wake.as_ref().filter(others) {
                            // If it is full, it is woken already.
                            let _ = wake.try_send(());
                        }
                    }
                    _ => {}
                }
            }
        });
        Ok(client)
    }

    /// Why no server lets us in, and what to do.
    fn refused(&self, error: &tokio_postgres::Error) -> StoreError {
        let place = &self.place;
        let role = place.config.get_user().unwrap_or("the role");
        let role = crosstalk_envelope::unicode::escape(role);
        let unavailable =
            |what: String, help: &str| StoreError::new(StoreFault::Unavailable, what, help);
        match error.code() {
            Some(code)
                if *code == SqlState::INVALID_PASSWORD
                    || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
            {
                unavailable(
                    format!("{place} does not let `{role}` in: {}", reason(error)),
                    "check the role and the password in the URL of the store or in its password file, and pg_hba.conf of the server",
                )
            }
            Some(code) if *code == SqlState::UNDEFINED_DATABASE => unavailable(
                format!("{place} does not exist"),
                "make it with `createdb -O ROLE NAME` on the server, or correct the URL of the store",
            ),
            _ if reason(error).contains("does not allow writes")
                || reason(error).contains("read-write") =>
            {
                StoreError::new(
                    StoreFault::Busy,
                    format!("no server of {place} accepts changes: all are standbys"),
                    "name every server in the URL, and wait until one of them is the primary",
                )
            }
            _ => StoreError::new(
                StoreFault::Busy,
                format!("{place} can't be reached: {}", reason(error)),
                "check that the server runs, and the hosts and ports in the URL of the store",
            ),
        }
    }
}

/// An error with what is behind it.
fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return db.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// The session of a thread.
pub(super) struct PgSession {
    door: Door,
    db: Option<Db>,
    wake: Option<Listener>,
}

impl PgSession {
    pub(super) fn new(door: Door) -> Self {
        Self {
            door,
            db: None,
            wake: None,
        }
    }

    /// One that listens: somebody is woken whenever another relay says that something is new.
    pub(super) fn listening(door: Door, wake: Listener) -> Self {
        Self {
            door,
            db: None,
            wake: Some(wake),
        }
    }

    /// Goes on in another session.
    pub(super) fn reset(&mut self) {
        self.db = None;
    }

    fn db(&mut self) -> PgResult<&Db> {
        if self.db.as_ref().is_some_and(Db::is_closed) {
            self.db = None;
        }
        if self.db.is_none() {
            let db = self
                .door
                .connect(self.wake.clone())
                .map_err(SqlError::Connect)?;
            if self.wake.is_some() {
                db.batch("LISTEN crosstalk")?;
            }
            self.db = Some(db);
        }
        self.db.as_ref().ok_or(SqlError::Timeout)
    }

    /// Does something in a session, once.
    fn once<T>(&mut self, act: &mut dyn FnMut(&Db) -> PgResult<T>) -> PgResult<T> {
        let done = self.db().and_then(act);
        if done.as_ref().is_err_and(SqlError::ends_session) {
            self.db = None;
        }
        done
    }

    /// Reads something. It is tried again if the session ends.
    pub(super) fn read<T>(
        &mut self,
        mut ask: impl FnMut(&Db) -> PgResult<T>,
    ) -> Result<T, StoreError> {
        self.patiently(&mut ask, SqlError::can_be_tried_again)
    }

    /// Reads something of which all is one state.
    pub(super) fn read_state<T>(
        &mut self,
        mut ask: impl FnMut(&Db) -> PgResult<T>,
    ) -> Result<T, StoreError> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.read(|db| transaction(db, BEGIN, &mut ask))
    }

    /// Changes something in a transaction that waits for no turn: rows that are locked, and nothing that has an order.
    pub(super) fn change<T>(
        &mut self,
        mut change: impl FnMut(&Db) -> PgResult<T>,
    ) -> Result<T, StoreError> {
        self.patiently(
            &mut |db| transaction(db, "BEGIN", &mut change),
            SqlError::can_be_tried_again,
        )
    }

    /// Does something, and again as long as that may help and nobody loses patience.
    pub(super) fn patiently<T>(
        &mut self,
        act: &mut dyn FnMut(&Db) -> PgResult<T>,
        again: impl Fn(&SqlError) -> bool,
    ) -> Result<T, StoreError> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.once(act) {
                Err(error) if again(&error) && Instant::now() < end && !error.is_refusal() => {
                    std::thread::sleep(PAUSE);
                }
                done => return done.map_err(|e| e.at(&self.door.place.to_string())),
            }
        }
    }
}

/// Does something in a transaction. If it fails, nothing of it stays.
pub(super) fn transaction<T>(
    db: &Db,
    begin: &'static str,
    act: &mut dyn FnMut(&Db) -> PgResult<T>,
) -> PgResult<T> {
    db.put_off(begin);
    match act(db) {
        Ok(done) => db.commit().map(|()| done),
        Err(error) => {
            db.roll_back();
            Err(error)
        }
    }
}
