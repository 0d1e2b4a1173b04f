//! The store of a relay in memory.

use crate::suite::relay::Relay;
use crosstalk_store::MemoryRelay;
use std::sync::Arc;

fn make() -> Relay {
    Relay::new(|context| Arc::new(MemoryRelay::new(context)))
}

relay_suite!(super::make);
