//! The suite of every store.

use crate::Place;
use crate::suite::relay::Relay;
use crosstalk_protocol::relay::port::StoreContext;
use crosstalk_protocol::store::StoreError;
use crosstalk_store::{SqliteRelay, SqliteStore};
use std::path::PathBuf;
use std::sync::Arc;

type Open = fn(PathBuf, StoreContext) -> Result<Arc<SqliteRelay>, StoreError>;

fn relay(open: Open) -> Relay {
    let place = Place::new();
    let path = place.home().store();
    let relay = Relay::new(|context| open(path.clone(), context).unwrap());
    let person = SqliteStore::open(path).unwrap();
    relay.shared_with(person).on(place)
}

/// Messages are indexed as soon as they are accepted.
mod eager {
    fn make() -> super::Relay {
        super::relay(crosstalk_store::SqliteRelay::open)
    }

    relay_suite!(super::make);

    mod shared {
        shared_suite!(super::super::make);
    }
}

/// Messages are indexed when a test says so, so that it sees what holds before.
mod lazy {
    fn make() -> super::Relay {
        super::relay(crosstalk_store::SqliteRelay::open_lazy)
    }

    relay_suite!(super::make);

    mod shared {
        shared_suite!(super::super::make);
    }
}
