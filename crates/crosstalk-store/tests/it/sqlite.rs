//! The store in a SQLite file.

mod conformance;
mod disk;
#[cfg(target_os = "linux")]
mod fault;
mod forgotten;
mod log;
mod measure;
mod model;
mod process;
mod quarantine;
mod rate;
mod relay;
mod relay_store;
mod search;
mod version;
mod way;
mod words;

use crate::Place;
use crosstalk_store::SqliteStore;

/// A store in a folder of its own.
pub(crate) struct Sqlite {
    pub(crate) store: SqliteStore,
    pub(crate) place: Place,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self::at(Place::new())
    }

    /// One on a real disk.
    pub(crate) fn on_disk() -> Self {
        Self::at(Place::on_disk())
    }

    fn at(place: Place) -> Self {
        let store = SqliteStore::open(place.home().store()).unwrap();
        Self { store, place }
    }
}
