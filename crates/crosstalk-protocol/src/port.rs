//! Ports of the relay: DNS names and trusted keys.

use crate::Trust;
use crate::dns::{AddressAnswer, DnsAnswer};
use std::net::IpAddr;
use std::pin::Pin;

/// Work that ends later.
pub type Later<'l, T> = Pin<Box<dyn Future<Output = T> + Send + 'l>>;

/// Someone who knows what domains say.
pub trait Resolver: Send + Sync {
    /// The keys that a domain lists.
    fn keys<'l>(&'l self, domain: &'l str) -> Later<'l, DnsAnswer>;

    /// The addresses that a domain lists for a simple name.
    fn addresses<'l>(&'l self, name: &'l str, domain: &'l str) -> Later<'l, AddressAnswer>;

    /// The TXT records at `_crosstalk.` and a domain: where its relay is. An error is temporary.
    fn relays<'l>(&'l self, domain: &'l str) -> Later<'l, Result<Vec<String>, String>>;

    /// The addresses of a host in the network. An error is temporary.
    fn hosts<'l>(&'l self, host: &'l str) -> Later<'l, Result<Vec<IpAddr>, String>>;
}

/// The keys that the relay trusts, kept where other programs can see and change them.
pub trait Keyring: Send + Sync {
    /// Reads the trusted keys.
    ///
    /// # Errors
    /// Why it can't be read, in a sentence.
    fn read(&self) -> Result<Trust, String>;

    /// Changes the trusted keys and returns them.
    ///
    /// # Errors
    /// Why it can't be changed, in a sentence.
    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String>;

    /// Whether other relays on the same store change the keys as well. Each of their changes gives the registry of the store another
    /// version, and the relay reads the keys again before it goes by that version.
    fn is_shared(&self) -> bool {
        false
    }
}
