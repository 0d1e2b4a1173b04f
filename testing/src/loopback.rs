//! Loopback addresses that no other process of the tests uses.

use std::net::{Ipv4Addr, SocketAddr};
use std::process;

/// A loopback address that no other process of the tests uses, where the system has many. A port of it stays free while
/// nobody of this process takes it: two processes that look for a free port of `127.0.0.1` may find the same one.
///
/// ```
/// assert!(crosstalk_testing::loopback::own_ip().is_loopback());
/// ```
pub fn own_ip() -> Ipv4Addr {
    if cfg!(target_os = "linux") {
        let [_, high, middle, low] = process::id().to_be_bytes();
        Ipv4Addr::new(127, high | 0x80, middle, low)
    } else {
        Ipv4Addr::LOCALHOST
    }
}

/// An address where nothing listens: the port for discarded data, on the address of this process.
pub fn silent() -> SocketAddr {
    (own_ip(), 9).into()
}
