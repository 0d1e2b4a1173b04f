//! The store in a SQLite file.

mod conformance;
mod disk;
mod forgotten;
mod log;
mod measure;
mod model;
mod process;
mod quarantine;
mod rate;
mod relay;
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
        let place = Place::new();
        let store = SqliteStore::open(place.home().store()).unwrap();
        Self { store, place }
    }
}
