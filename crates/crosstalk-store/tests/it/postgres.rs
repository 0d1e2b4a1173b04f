//! The store of relays in PostgreSQL, on a real server.

use crate::suite::relay::Relay;
use crosstalk_store::{PostgresPlace, PostgresRelay};
use crosstalk_testing::postgres::Database;

fn make() -> Relay {
    let database = Database::new();
    let place = PostgresPlace::parse(&database.url()).unwrap();
    let relay = Relay::new(|context| PostgresRelay::open_with_clock(place, context).unwrap());
    relay.on(database)
}

relay_suite!(super::make);
