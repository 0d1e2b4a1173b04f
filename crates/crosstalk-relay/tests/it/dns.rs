//! The records of domains in memory: a resolver without a network.

use crosstalk_envelope::{PrivateKey, PublicKey};
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer, Dnssec};
use crosstalk_relay::port::{Later, Resolver};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The records of some domains. A domain that is not among them has none.
#[derive(Default)]
pub struct Domains {
    keys: HashMap<String, Vec<PublicKey>>,
    addresses: HashMap<String, String>,
    relays: HashMap<String, Result<Vec<String>, String>>,
    /// The answers for a host, one after the other; the last one again and again.
    hosts: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    host_lookups: AtomicUsize,
}

/// The domain whose keys count for domains without their own.
pub const ANY_DOMAIN: &str = "*";

impl Domains {
    pub fn list(mut self, domain: &str, key: &PrivateKey) -> Self {
        let keys = self.keys.entry(domain.into()).or_default();
        keys.push(key.public());
        self
    }

    pub fn address(mut self, name: &str, address: &str) -> Self {
        self.addresses.insert(name.into(), address.into());
        self
    }

    pub fn relay(mut self, domain: &str, answer: Result<&[&str], &str>) -> Self {
        let answer = answer.map(|a| a.iter().map(|t| (*t).to_owned()).collect());
        let answer = answer.map_err(str::to_owned);
        self.relays.insert(domain.into(), answer);
        self
    }

    pub fn host(self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers.iter();
        let answers = answers.map(|a| a.iter().map(|ip| ip.parse().unwrap()).collect());
        let mut hosts = self.hosts.lock().unwrap();
        hosts.insert(name.into(), answers.collect());
        drop(hosts);
        self
    }

    /// How often a host was looked up.
    pub fn host_lookups(&self) -> usize {
        self.host_lookups.load(Ordering::SeqCst)
    }
}

impl Resolver for Domains {
    fn keys<'l>(&'l self, domain: &'l str) -> Later<'l, DnsAnswer> {
        let keys = self.keys.get(domain).or(self.keys.get(ANY_DOMAIN));
        let dnssec = Dnssec::Insecure;
        let answer = match keys.cloned() {
            Some(keys) => DnsAnswer::Keys {
                keys,
                ttl: 300,
                dnssec,
            },
            None => DnsAnswer::Absent { dnssec },
        };
        Box::pin(async move { answer })
    }

    fn addresses<'l>(&'l self, name: &'l str, domain: &'l str) -> Later<'l, AddressAnswer> {
        let at = format!("_crosstalk-addr.{name}.{domain}");
        let records = self.addresses.get(name).cloned().map(Ok);
        Box::pin(async move { AddressAnswer::of_records(&at, records, 60, Dnssec::Insecure) })
    }

    fn relays<'l>(&'l self, domain: &'l str) -> Later<'l, Result<Vec<String>, String>> {
        let answer = self.relays.get(domain).cloned().unwrap_or(Ok(Vec::new()));
        Box::pin(async { answer })
    }

    fn hosts<'l>(&'l self, host: &'l str) -> Later<'l, Result<Vec<IpAddr>, String>> {
        self.host_lookups.fetch_add(1, Ordering::SeqCst);
        let mut hosts = self.hosts.lock().unwrap();
        let answer = match hosts.get_mut(host) {
            None => Vec::new(),
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
        };
        Box::pin(async { Ok(answer) })
    }
}
