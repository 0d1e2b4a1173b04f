//! The client: which servers it asks, for how long, and with which proof.

use crate::answer::{self, TxtRecords, Validation};
use crate::dnssec::{self, Anchors};
use crate::domain;
use crosstalk_envelope::Explanation;
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer};
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{TokioResolver, system_conf};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use std::{fmt, thread};
use tokio::runtime::{Builder, Handle};

/// How to ask a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long one try may take. The whole look-up, with all that DNSSEC needs, takes at most `attempts` times as
    /// long.
    pub timeout: Duration,
    /// How often a question is put before it counts as unanswered; 0 is the same as 1.
    pub attempts: u32,
    /// The keys that DNSSEC is checked against, as DNSKEY records in the form of a zone file, instead of those of
    /// the root, which are built in. For a zone below the root: all of its DNSKEY records.
    ///
    /// With keys given here, a name below them that can't be validated counts as broken. Names that are not below
    /// any of them are [`Indeterminate`](crosstalk_protocol::dns::Dnssec::Indeterminate).
    pub anchor: Option<String>,
}

impl Default for Options {
    /// Two tries of four seconds, and the keys of the root.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(4),
            attempts: 2,
            anchor: None,
        }
    }
}

impl Options {
    /// How long the whole look-up may take.
    fn deadline(&self) -> Duration {
        self.timeout.saturating_mul(self.attempts.max(1))
    }
}

/// Why no server can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explanation())]
pub enum SetupError {
    /// The resolver configuration of the system can't be used.
    System(String),
    /// The trust anchor can't be read.
    Anchor(String),
}

impl SetupError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::System(reason) => Explanation::new(
                format!("the system's resolver configuration can't be used: {reason}"),
                "name a DNS server instead",
            ),
            Self::Anchor(reason) => Explanation::new(
                format!("the trust anchor can't be read: {reason}"),
                "write it as DNSKEY records, one per line",
            ),
        }
    }
}

/// Looks up the keys of a domain, and the addresses, relays and hosts that it lists.
///
/// ```no_run
/// use crosstalk_dns::{Dns, Options};
/// use crosstalk_protocol::dns::DnsAnswer;
///
/// let dns = Dns::system(Options::default())?;
/// match dns.keys_blocking("example.com") {
///     DnsAnswer::Keys { keys, ttl, dnssec } => { /* these vouch for example.com, for so many seconds */ }
///     DnsAnswer::Absent { dnssec } => { /* example.com vouches for no key: final */ }
///     DnsAnswer::Wrong { reason } => { /* what it lists is no key: final */ }
///     DnsAnswer::Unavailable { reason } => { /* try later; this says nothing about the keys */ }
/// }
/// # Ok::<(), crosstalk_dns::SetupError>(())
/// ```
#[derive(Clone)]
pub struct Dns {
    servers: Vec<NameServerConfig>,
    options: Options,
    anchors: Anchors,
}

impl Dns {
    /// Asks the name servers that the system is configured with. Nothing is sent yet.
    ///
    /// # Errors
    /// The configuration of the system can't be read or names no server, or the trust anchor is no DNSKEY record.
    pub fn system(options: Options) -> Result<Self, SetupError> {
        let (system, _) =
            system_conf::read_system_conf().map_err(|e| SetupError::System(e.to_string()))?;
        Self::new(system.name_servers, options)
    }

    /// Asks this name server. Nothing is sent yet.
    ///
    /// # Errors
    /// The trust anchor is no DNSKEY record.
    pub fn server(address: SocketAddr, options: Options) -> Result<Self, SetupError> {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
            .into_iter()
            .map(|mut connection| {
                connection.port = address.port();
                connection
            })
            .collect();
        let server = NameServerConfig::new(address.ip(), true, connections);
        Self::new(vec![server], options)
    }

    fn new(servers: Vec<NameServerConfig>, options: Options) -> Result<Self, SetupError> {
        Ok(Self {
            servers,
            anchors: Anchors::new(options.anchor.as_deref())?,
            options,
        })
    }

    /// The keys that a domain lists. Needs a tokio runtime with I/O and time.
    pub async fn keys(&self, domain: &str) -> DnsAnswer {
        let name = match domain::question(domain) {
            Ok(name) => name,
            Err(fault) => {
                return DnsAnswer::Wrong {
                    reason: format!("{:?} is no domain: {fault}", shown(domain)),
                };
            }
        };
        answer::keys(&name, self.texts(&name).await)
    }

    /// The keys that a domain lists, for programs without a runtime of their own.
    pub fn keys_blocking(&self, domain: &str) -> DnsAnswer {
        block(self.keys(domain)).unwrap_or_else(|reason| DnsAnswer::Unavailable { reason })
    }

    /// The addresses that a domain lists for a simple name (ADR-012). Needs a tokio runtime with I/O and time.
    pub async fn addresses(&self, name: &str, domain: &str) -> AddressAnswer {
        match domain::address_question(name, domain) {
            Ok(name) => answer::addresses(&name, self.texts(&name).await),
            Err(reason) => AddressAnswer::Unasked { reason },
        }
    }

    /// The addresses that a domain lists for a simple name, for programs without a runtime of their own.
    pub fn addresses_blocking(&self, name: &str, domain: &str) -> AddressAnswer {
        let answer = block(self.addresses(name, domain));
        answer.unwrap_or_else(|reason| AddressAnswer::Unavailable { reason })
    }

    /// The texts that a domain lists where its relays are (HTP-080); none if it lists none. Needs a tokio runtime with
    /// I/O and time.
    ///
    /// # Errors
    /// Why nobody could say; another time it may work.
    pub async fn relays(&self, domain: &str) -> Result<Vec<String>, String> {
        match domain::relay_question(domain) {
            Ok(name) => answer::relays(self.texts(&name).await),
            // A name that is no domain has no relay.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// The TXT records at a name, each as one text; none if there are none. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Why nobody could say; another time it may work.
    pub async fn texts_at(&self, name: &str) -> Result<Vec<String>, String> {
        match domain::record_question(name) {
            Ok(name) => answer::relays(self.texts(&name).await),
            Err(reason) => Err(format!("{:?} is no domain: {reason}", shown(name))),
        }
    }

    /// The mail servers of a domain (MX), the preferred one first; none if it names none. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Why nobody could say; another time it may work.
    pub async fn mail_servers(&self, domain: &str) -> Result<Vec<String>, String> {
        let name = domain::record_question(domain)
            .map_err(|reason| format!("{:?} is no domain: {reason}", shown(domain)))?;
        let (result, checked) = self.within(name.clone(), RecordType::MX).await;
        answer::mail_servers(&name, result, checked)
    }

    /// The addresses of a host in the network, IPv6 and IPv4; none if it has none. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Why nobody could say; another time it may work.
    pub async fn hosts(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let Ok(name) = domain::host_question(host) else {
            return Ok(Vec::new());
        };
        let name = &name;
        let ask = |kind| async move {
            let (result, checked) = self.within(name.clone(), kind).await;
            answer::hosts(name, result, checked)
        };
        let (v6, v4) = tokio::join!(ask(RecordType::AAAA), ask(RecordType::A));
        match (v6, v4) {
            (Ok(v6), Ok(v4)) => Ok(v6.into_iter().chain(v4).collect()),
            // Some servers fail on one of the two.
            (Ok(some), Err(_)) | (Err(_), Ok(some)) if !some.is_empty() => Ok(some),
            (Err(reason), _) | (_, Err(reason)) => Err(reason),
        }
    }

    /// The TXT records at a name, within the time that there is.
    async fn texts(&self, name: &Name) -> TxtRecords {
        let (result, checked) = self.within(name.clone(), RecordType::TXT).await;
        answer::read(name, result, checked)
    }

    /// The records of a kind at a name, within the time that there is.
    async fn within(&self, name: Name, kind: RecordType) -> (Result<Lookup, NetError>, Validation) {
        tokio::time::timeout(self.options.deadline(), self.ask(name, kind))
            .await
            .unwrap_or((Err(NetError::Timeout), Validation::No))
    }

    /// A resolver lives for one question: it remembers answers, which is not wanted here, and it is bound to the
    /// runtime that it was first used in.
    async fn ask(&self, name: Name, kind: RecordType) -> (Result<Lookup, NetError>, Validation) {
        let checked = match self.validates(&name).await {
            Ok(checked) => checked,
            Err(error) => return (Err(error), Validation::No),
        };
        let mut builder = TokioResolver::builder_with_config(
            ResolverConfig::from_name_servers(self.servers.clone()),
            TokioRuntimeProvider::default(),
        )
        .with_options(self.resolver_options());
        if checked == Validation::Yes {
            builder = builder.with_trust_anchor(self.anchors.keys());
        }
        let result = match builder.build() {
            Ok(resolver) => resolver.lookup(name, kind).await,
            Err(error) => Err(error),
        };
        (result, checked)
    }

    /// Whether an answer about this name has to prove itself.
    async fn validates(&self, name: &Name) -> Result<Validation, NetError> {
        let has_chain = if self.anchors.is_built_in() {
            dnssec::reaches_root(self.servers.clone(), self.resolver_options()).await?
        } else {
            self.anchors.cover(name)
        };
        Ok(if has_chain {
            Validation::Yes
        } else {
            Validation::No
        })
    }

    fn resolver_options(&self) -> ResolverOpts {
        let mut options = ResolverOpts::default();
        options.timeout = self.options.timeout;
        // There, it is the number of tries after the first.
        options.attempts = self.options.attempts.saturating_sub(1) as usize;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.preserve_intermediates = true;
        options
    }
}

impl fmt::Debug for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dns")
            .field("servers", &self.servers)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Waits for an answer, inside or outside of a runtime.
fn block<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    let run = || match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => Ok(runtime.block_on(work)),
        Err(error) => Err(format!("the look-up could not start: {error}")),
    };
    if Handle::try_current().is_err() {
        return run();
    }
    // A thread of a runtime can't wait for another one.
    thread::scope(|scope| scope.spawn(run).join())
        .unwrap_or_else(|_| Err("the look-up was cut short".to_owned()))
}

/// As much of a domain as fits into a sentence.
fn shown(domain: &str) -> String {
    const MOST: usize = 80;
    if domain.chars().count() <= MOST {
        domain.to_owned()
    } else {
        domain.chars().take(MOST).chain(['…']).collect()
    }
}
