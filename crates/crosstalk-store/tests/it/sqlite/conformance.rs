//! The suite of every store.

use super::Sqlite;
use crate::suite::Made;
use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::Store;

impl Made for Sqlite {
    fn store(&mut self) -> &mut dyn Store {
        &mut self.store
    }

    fn relay(&mut self) -> &mut dyn RelayStore {
        &mut self.store
    }
}

fn make() -> Sqlite {
    Sqlite::new()
}

store_suite!(super::make);
relay_suite!(super::make);
