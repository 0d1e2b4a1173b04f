//! The name servers that a relay asks: [`crosstalk_dns::Dns`] behind the relay's port.

use crosstalk_dns::{Dns, Options, SetupError};
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer};
use crosstalk_relay::port::{Later, Resolver};
use std::net::{IpAddr, SocketAddr};

/// Asks name servers for a relay.
pub(crate) struct DnsResolver(Dns);

impl DnsResolver {
    /// Asks a name server, else those of the system.
    pub(crate) fn new(server: Option<SocketAddr>, options: Options) -> Result<Self, SetupError> {
        match server {
            Some(address) => Dns::server(address, options),
            None => Dns::system(options),
        }
        .map(Self)
    }
}

impl Resolver for DnsResolver {
    fn keys<'l>(&'l self, domain: &'l str) -> Later<'l, DnsAnswer> {
        Box::pin(self.0.keys(domain))
    }

    fn addresses<'l>(&'l self, name: &'l str, domain: &'l str) -> Later<'l, AddressAnswer> {
        Box::pin(self.0.addresses(name, domain))
    }

    fn relays<'l>(&'l self, domain: &'l str) -> Later<'l, Result<Vec<String>, String>> {
        Box::pin(self.0.relays(domain))
    }

    fn hosts<'l>(&'l self, host: &'l str) -> Later<'l, Result<Vec<IpAddr>, String>> {
        Box::pin(self.0.hosts(host))
    }
}
