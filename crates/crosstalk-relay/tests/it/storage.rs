//! Where the relays of these tests keep their data: in a SQLite file in their folder or, where the variable
//! `CROSSTALK_TEST_STORE` is `postgres`, in a PostgreSQL database that belongs to this folder.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{ChainId, SignedCheckpoint};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    DeadLetter, MailboxChange, MaintenanceResult, MaintenanceTask, RegistryChange, RelayStore,
    Retention, StoreContext, StoreEvent, StoreEvents, StoreGauges,
};
use crosstalk_protocol::relay::{Admission, Delivery, DeliveryState, TokenRecord};
use crosstalk_protocol::store::{Record, StoreError};
use crosstalk_relay::core::OpenStore;
use crosstalk_store::{PostgresPlace, PostgresRelay, SqliteRelay, SqliteStore};
use crosstalk_testing::postgres::Database;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The variable that chooses the store.
pub const VARIABLE: &str = "CROSSTALK_TEST_STORE";

/// Whether relays keep their data in PostgreSQL.
pub fn is_shared() -> bool {
    std::env::var(VARIABLE).is_ok_and(|store| store == "postgres")
}

/// Runs something on the database of a folder, which is made when it is first asked for. The databases of folders that are gone
/// are removed.
fn with_database<T>(folder: &Path, run: impl FnOnce(&Database) -> T) -> T {
    static DATABASES: Mutex<Option<HashMap<PathBuf, Arc<Database>>>> = Mutex::new(None);
    let mut gone = Vec::new();
    let database = {
        let mut all = DATABASES.lock().unwrap();
        let all = all.get_or_insert_default();
        let lost: Vec<PathBuf> = all.keys().filter(|f| !f.exists()).cloned().collect();
        gone.extend(lost.iter().filter_map(|folder| all.remove(folder)));
        let database = all.entry(folder.to_owned());
        Arc::clone(database.or_insert_with(|| Arc::new(Database::new())))
    };
    drop(gone);
    run(&database)
}

/// The URL of the database of a folder.
pub fn url(folder: &Path) -> String {
    with_database(folder, Database::url)
}

/// Opens the store of the relay in a folder.
pub fn opener(folder: &Path) -> OpenStore {
    match is_shared() {
        true => shared_opener(url(folder)),
        false => {
            let path = folder.join("relay.db");
            Box::new(move |context| {
                Box::pin(
                    async move { Ok(SqliteRelay::open(path, context)? as Arc<dyn RelayStore>) },
                )
            })
        }
    }
}

/// Opens a database that several relays may share.
pub fn shared_opener(url: String) -> OpenStore {
    Box::new(move |context| {
        Box::pin(async move {
            let place = PostgresPlace::parse(&url)?;
            Ok(PostgresRelay::open_with_clock(place, context)? as Arc<dyn RelayStore>)
        })
    })
}

/// Changes rows of the store in a folder behind the back of its relay. How many.
pub fn execute(folder: &Path, sql: &str) -> usize {
    match is_shared() {
        true => {
            let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT count(*) FROM changed");
            let count = with_database(folder, |database| database.sql(&sql));
            count.parse().unwrap()
        }
        false => {
            let db = rusqlite::Connection::open(folder.join("relay.db")).unwrap();
            db.pragma_update(None, "foreign_keys", false).unwrap();
            db.execute(sql, []).unwrap()
        }
    }
}

/// Takes away what the store in a folder keeps messages in.
pub fn break_store(folder: &Path) {
    let rename = "ALTER TABLE intake RENAME TO gone;";
    match is_shared() {
        true => {
            with_database(folder, |database| database.sql(rename));
        }
        false => {
            let db = rusqlite::Connection::open(folder.join("relay.db")).unwrap();
            let sql = format!("PRAGMA foreign_keys = OFF; {rename}");
            db.execute_batch(&sql).unwrap();
        }
    }
}

/// Another handle of the store in a folder, as another process has it.
#[expect(clippy::large_enum_variant, reason = "a test has one or two of them")]
pub enum Storage {
    Own(SqliteStore),
    Shared(Arc<dyn RelayStore>),
}

struct Ignored;

impl StoreEvents for Ignored {
    fn notify(&self, _: StoreEvent<'_>) {}
}

/// Waits for the answer of a store, also on a thread that serves tasks.
pub fn wait<T: Send>(answer: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let wait = || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(answer)
        };
        scope.spawn(wait).join().unwrap()
    })
}

type Answer<T> = Result<T, StoreError>;

impl Storage {
    pub fn open(folder: &Path) -> Self {
        match is_shared() {
            true => Self::at(&url(folder)),
            false => Self::Own(SqliteStore::open(folder.join("relay.db")).unwrap()),
        }
    }

    /// The store in a database.
    pub fn at(url: &str) -> Self {
        let context = StoreContext {
            events: Arc::new(Ignored),
            clock: Arc::new(|| Timestamp::from_millis(crate::house::START)),
        };
        let place = PostgresPlace::parse(url).unwrap();
        Self::Shared(PostgresRelay::open_with_clock(place, context).unwrap())
    }

    /// The store in a file, for tests that are about it.
    pub fn own(self) -> SqliteStore {
        match self {
            Self::Own(store) => store,
            Self::Shared(_) => panic!("this test is about SQLite: see `FILE_ONLY`"),
        }
    }

    /// The faults that a check of the store finds; a database has no such check.
    pub fn check(&self) -> Answer<Vec<String>> {
        match self {
            Self::Own(store) => store.check(),
            Self::Shared(_) => Ok(Vec::new()),
        }
    }

    pub fn has_indexed_all(&self) -> bool {
        match self {
            Self::Own(store) => store.index_progress().unwrap().left == 0,
            Self::Shared(store) => {
                wait(store.caught_up()).unwrap();
                true
            }
        }
    }

    pub fn accept_batch(&mut self, admissions: &[Admission]) {
        match self {
            Self::Own(store) => drop(store.accept_batch(admissions).unwrap()),
            Self::Shared(store) => wait(async {
                let boxed = admissions.iter().cloned().map(Box::new);
                let all = boxed.map(|admission| store.accept(admission));
                for accepted in futures_util::future::join_all(all).await {
                    accepted.unwrap();
                }
            }),
        }
    }

    pub fn record(&self, id: &str) -> Answer<Option<Record>> {
        match self {
            Self::Own(store) => store.record(id),
            Self::Shared(store) => wait(store.record(id)),
        }
    }

    pub fn messages(&self, thread: &str, limit: usize) -> Vec<Record> {
        match self {
            Self::Own(store) => store.messages(thread, None, limit).unwrap().items,
            Self::Shared(store) => wait(store.messages(thread, None, limit)).unwrap().items,
        }
    }

    pub fn deliveries(&self, id: &str) -> Answer<Vec<Delivery>> {
        match self {
            Self::Own(store) => store.deliveries(id),
            Self::Shared(store) => wait(store.deliveries_of(id)),
        }
    }

    pub fn grant(&self, id: &str) -> Answer<Option<Grant>> {
        match self {
            Self::Own(store) => store.grant(id),
            Self::Shared(store) => wait(store.grant(id)),
        }
    }

    pub fn under(&self, consent: &str) -> Answer<Vec<(String, bool)>> {
        match self {
            Self::Own(store) => store.under(consent),
            Self::Shared(store) => wait(store.under(consent)),
        }
    }

    fn change_registry(&self, change: RegistryChange) -> Option<bool> {
        match self {
            Self::Own(_) => None,
            Self::Shared(store) => Some(wait(store.change_registry(change)).unwrap()),
        }
    }

    pub fn add_token(&mut self, token: &TokenRecord, by: &str) -> Answer<bool> {
        let change = RegistryChange::AddToken {
            token: token.clone(),
            by: by.to_owned(),
        };
        match self.change_registry(change) {
            Some(is_new) => Ok(is_new),
            None => self.as_own().add_token(token, by),
        }
    }

    pub fn revoke_token(&mut self, name: &str, by: &str, at: Timestamp) -> Answer<bool> {
        let change = RegistryChange::RevokeToken {
            name: name.to_owned(),
            by: by.to_owned(),
            at,
        };
        match self.change_registry(change) {
            Some(is_done) => Ok(is_done),
            None => self.as_own().revoke_token(name, by, at),
        }
    }

    fn as_own(&mut self) -> &mut SqliteStore {
        match self {
            Self::Own(store) => store,
            Self::Shared(_) => unreachable!("the database was asked before"),
        }
    }

    pub fn tokens(&self) -> Answer<Vec<TokenRecord>> {
        match self {
            Self::Own(store) => store.tokens(),
            Self::Shared(store) => wait(store.registry(None)).map(|found| found.unwrap().tokens),
        }
    }

    pub fn log_size(&self) -> Answer<u64> {
        match self {
            Self::Own(store) => store.log_size(),
            Self::Shared(store) => wait(store.log_head(ChainId::FIRST)).map(|head| head.size),
        }
    }

    pub fn checkpoint(&self) -> Answer<Option<SignedCheckpoint>> {
        match self {
            Self::Own(store) => store.checkpoint(),
            Self::Shared(store) => wait(store.log_head(ChainId::FIRST)).map(|head| head.checkpoint),
        }
    }

    pub fn mark(
        &mut self,
        address: &str,
        ids: &[String],
        state: DeliveryState,
        at: Timestamp,
    ) -> Answer<Vec<String>> {
        match self {
            Self::Own(store) => store.mark(address, ids, state, at),
            Self::Shared(store) => {
                let change = MailboxChange::reach(address, ids.to_vec(), state, at);
                wait(store.change_mailbox(change))
            }
        }
    }

    pub fn requeue(&mut self, id: &str, at: Timestamp) -> Answer<u64> {
        match self {
            Self::Own(store) => store.requeue(id, at),
            Self::Shared(store) => wait(store.requeue(id, at)),
        }
    }

    pub fn retire(&mut self, what: &Retention) -> Answer<MaintenanceResult> {
        match self {
            Self::Own(store) => store.retire(what),
            Self::Shared(store) => wait(store.maintain(MaintenanceTask::Erase(*what))),
        }
    }

    pub fn dead_letters(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        match self {
            Self::Own(store) => store.dead_letters(limit),
            Self::Shared(store) => wait(store.dead_letters(limit)),
        }
    }

    pub fn gauges(&self) -> Answer<StoreGauges> {
        match self {
            Self::Own(store) => store.gauges(),
            Self::Shared(store) => wait(store.gauges()),
        }
    }

    pub fn notices(&self, limit: usize) -> Answer<Vec<(u64, String)>> {
        match self {
            Self::Own(store) => store.notices(limit),
            Self::Shared(store) => wait(store.notices(limit)),
        }
    }
}
