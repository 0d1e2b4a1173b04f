//! The configuration of a relay: one TOML file, `relay.toml`.

mod check;
mod email;
mod hold;
mod reload;
mod sms;

pub use check::ConfigError;
pub(crate) use check::is_extension_origin;
pub use email::{
    Email, ImapAccount, LmtpAddress, LmtpListener, MailTls, SmarthostAccount, SmtpListener,
};
pub use hold::HoldEntry;
pub use reload::Reload;
pub use sms::Sms;

use crosstalk_envelope::Address;
use crosstalk_protocol::consent::Jurisdiction;
use crosstalk_protocol::relay::{Backoff, Handler, Pattern};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// All settings. A missing one has its default.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What the relay calls itself in hops and receipts; its domain, if it has one.
    pub name: String,
    /// Further domains whose addresses are this relay's own.
    pub domains: Vec<String>,
    /// Further values of the `Host` header (and hosts of `Origin`) under which it is reached.
    pub hosts: Vec<String>,
    /// Certificate and key, for TLS without a proxy.
    pub tls: Option<Tls>,
    /// Browser extensions that may call the relay.
    pub extension: Extensions,
    /// The recipient of an ESCALATE that is not for a person already.
    pub escalate_to: Option<String>,
    /// How many seconds a REQUEST without a deadline waits for its answer; without it, for ever.
    pub answer_within: Option<u64>,
    /// What becomes of addresses that nothing covers.
    pub unknown: Unknown,
    /// The policy for keys that are seen for the first time.
    pub first_contact: FirstContact,
    /// Limits of connections, requests and sizes.
    pub limits: Limits,
    /// How deliveries are tried again.
    pub retry: Retry,
    /// How long messages are kept.
    pub retention: RetentionDays,
    /// The rules for consent.
    pub consent: Consent,
    /// Passing messages on to relays of other domains.
    pub federation: Federation,
    /// Mail in and out; without it, the relay has no bridge to mail.
    pub email: Option<Email>,
    /// Text messages out and in; without it, the relay has no bridge to the telephone network.
    pub sms: Option<Sms>,
    /// Simple names and the addresses that they stand for.
    pub names: BTreeMap<String, String>,
    /// The table of routes; the first that fits counts.
    #[serde(rename = "route")]
    pub routes: Vec<RouteEntry>,
    /// The rules for holding a message for a person; the first match counts.
    #[serde(rename = "hold")]
    pub holds: Vec<HoldEntry>,
    /// Folders from which messages are accepted.
    #[serde(rename = "watch")]
    pub watches: Vec<Watch>,
    /// Agents and what they can do.
    #[serde(rename = "agent")]
    pub agents: Vec<AgentEntry>,
}

/// Browser extensions that may call the relay (HTP-069).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Extensions {
    /// Their origins, such as `chrome-extension://…` or `moz-extension://…`.
    pub origins: Vec<String>,
}

/// Certificate and key of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The chain of certificates, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// What becomes of addresses that no route, name or domain covers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// They get an inbox; simple names wait for a person who carries them.
    #[default]
    Inbox,
    /// The relay rejects them (E-ROUTE).
    Refuse,
}

/// The policy for keys that are seen for the first time.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FirstContact {
    /// They are pinned for their sender, if a credential speaks for the sender.
    #[default]
    Pin,
    /// Messages are accepted as if they were not signed.
    Note,
    /// The relay rejects messages (E-PERM).
    Refuse,
}

/// Limits of connections, requests and sizes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once of one address of the network.
    pub connections_per_peer: usize,
    /// Seconds until the head of a request has to be there.
    pub head_seconds: u64,
    /// Seconds until the body of a request has to be there.
    pub body_seconds: u64,
    /// Seconds that a connection may be idle.
    pub idle_seconds: u64,
    /// Requests a minute for a token, or for an address of the network without one. 0 is no limit.
    pub requests_per_minute: u32,
    /// The same on a loopback listener without credentials. 0 is no limit.
    pub local_requests_per_minute: u32,
    /// The largest attachment, in bytes.
    pub blob_bytes: u64,
    /// All attachments that one token has at the relay, in bytes; each counts at least 4096. 0 is no limit.
    pub token_blob_bytes: u64,
    /// Free space on the disk, in bytes, below which no attachment is accepted.
    pub free_bytes: u64,
    /// Messages that are accepted and not indexed yet; when there are more, senders are told to wait.
    pub backlog: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_peer: 256,
            head_seconds: 10,
            body_seconds: 30,
            idle_seconds: 75,
            requests_per_minute: 600,
            local_requests_per_minute: 0,
            blob_bytes: 64 << 20,
            token_blob_bytes: 1 << 30,
            free_bytes: 256 << 20,
            backlog: 1_000_000,
        }
    }
}

/// How deliveries are tried again.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Seconds before the second attempt; then twice as long each time.
    pub first_seconds: u64,
    /// The longest wait, in seconds.
    pub longest_seconds: u64,
    /// How many attempts there are.
    pub attempts: u32,
    /// Deliveries at once to one destination.
    pub at_once: usize,
    /// Failures in a row after which a destination is left alone for a while.
    pub failures: u32,
    /// For how many seconds.
    pub pause_seconds: u64,
}

impl Default for Retry {
    fn default() -> Self {
        let backoff = Backoff::default();
        Self {
            first_seconds: backoff.first.as_secs(),
            longest_seconds: backoff.longest.as_secs(),
            attempts: backoff.attempts,
            at_once: 4,
            failures: 5,
            pause_seconds: 30,
        }
    }
}

impl Retry {
    /// The waits between attempts.
    pub fn backoff(&self) -> Backoff {
        Backoff {
            first: Duration::from_secs(self.first_seconds),
            longest: Duration::from_secs(self.longest_seconds),
            attempts: self.attempts,
        }
    }
}

/// How long messages are kept.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionDays {
    /// Days after which messages are erased; without it, never.
    pub days: Option<u32>,
    /// Hours after which attachments are removed that no message refers to.
    pub unused_blob_hours: u32,
    /// Hours after which sensitive messages are erased that everybody has, unless they say `ok_to_cache`.
    pub sensitive_hours: u32,
}

impl Default for RetentionDays {
    fn default() -> Self {
        Self {
            days: None,
            unused_blob_hours: 24,
            sensitive_hours: 24,
        }
    }
}

impl Config {
    /// Every file and folder that it names.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let tls = self.tls.iter_mut();
        let tls = tls.flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        let routes = self.routes.iter_mut().flat_map(|route| {
            let paths = [
                &mut route.token_file,
                &mut route.folder,
                &mut route.directory,
            ];
            paths.into_iter().flatten()
        });
        let watches = self.watches.iter_mut().map(|watch| &mut watch.folder);
        let email = self.email.iter_mut().flat_map(Email::paths_mut);
        let sms = self.sms.iter_mut().flat_map(Sms::paths_mut);
        tls.chain(routes).chain(watches).chain(email).chain(sms)
    }
}

/// The rules for consent that an operator can add to those of the protocol.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Consent {
    /// Scopes for which a consent has to be signed with a trusted key; `*` is every sensitive one.
    pub signed: Vec<String>,
    /// Scopes for which the word of an agent is enough; `*` is every sensitive one.
    pub declared: Vec<String>,
    /// What needs an explicit consent to leave the organisation.
    pub border: Border,
    /// The addresses that may revoke consents of others, and permissions.
    pub authorities: Vec<String>,
    /// Further laws and what they demand, or other demands of those that are built in.
    #[serde(rename = "jurisdiction")]
    pub jurisdictions: Vec<Jurisdiction>,
}

/// What needs an explicit consent to leave the organisation.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Border {
    /// Messages with sensitive data, as everywhere.
    #[default]
    Sensitive,
    /// Everything.
    All,
}

/// Passing messages on to relays of other domains.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Federation {
    /// Whether it is done at all: nothing leaves the machine without being told to.
    pub enabled: bool,
    /// Whether messages from relays that prove who they are may come in without a credential.
    pub accept: bool,
    /// Whether private and loopback addresses may be reached.
    pub allow_private: bool,
    /// The name server to ask, instead of those of the system.
    pub dns: Option<SocketAddr>,
}

/// A line of the table of routes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RouteEntry {
    /// Which addresses: one, or the beginning of some and `*`.
    pub to: String,
    /// How: inbox, copy_paste, http, file, exec, relay, email, sms, mcp.
    pub by: String,
    /// http: where to post; relay: the relay, instead of the one that DNS names; mcp: the server, if it is not a command.
    pub url: Option<String>,
    /// http, relay, mcp: a file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// http, relay, mcp: whether private and loopback addresses may be reached.
    #[serde(default)]
    pub allow_private: bool,
    /// Whether what it leads to is no third party, so that `no_third_party` allows it.
    #[serde(default)]
    pub inside: bool,
    /// sms, mcp: whether senders may use it whom the operator knows by no token and no pinned key.
    #[serde(default)]
    pub open: bool,
    /// file: the folder.
    pub folder: Option<PathBuf>,
    /// exec: the program and its arguments. The message comes on standard input, and nothing of it in the arguments. mcp: the
    /// server, which speaks MCP on standard input and output.
    #[serde(default)]
    pub command: Vec<String>,
    /// exec, mcp: where it runs; the data folder's `work`, if nothing is said.
    pub directory: Option<PathBuf>,
    /// exec, mcp: variables of its environment, besides PATH, HOME, LANG, TERM and those about the message.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// exec: what it gets: the whole envelope, or the body under a line that says where it comes from.
    #[serde(default)]
    pub input: ExecInput,
    /// email: the mail address, if the addresses of the route are none.
    pub mail: Option<String>,
    /// sms: the phone number, if the addresses of the route are none.
    pub phone: Option<String>,
    /// email: whether a readable text stands above the envelope.
    #[serde(default)]
    pub cover: bool,
    /// mcp: the tools that may be called. Without it, the one that `to` names.
    #[serde(default)]
    pub tools: Vec<String>,
    /// mcp: the argument that gets the body. Without it, the body is a JSON object with all arguments.
    pub argument: Option<String>,
    /// exec, http, mcp: seconds until it has to have answered.
    pub timeout_seconds: Option<u64>,
    /// exec, http, mcp: how many bytes of an answer are read.
    pub answer_bytes: Option<u64>,
}

/// What a command gets.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ExecInput {
    /// The primer, a label with the verification status, and the envelope in a fence.
    #[default]
    Prompt,
    /// The envelope alone.
    Envelope,
    /// The body alone.
    Body,
}

/// A folder from which messages are accepted.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The folder: `.aict` and `.crosstalk` files in it are read, then moved to `done` or `refused` beside them.
    pub folder: PathBuf,
    /// For which addresses its files may speak.
    pub addresses: Vec<String>,
}

/// An agent and what it can do.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct AgentEntry {
    /// Its address.
    pub address: String,
    /// What it can do.
    pub capabilities: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8799)),
            name: "localhost".into(),
            domains: Vec::new(),
            hosts: Vec::new(),
            tls: None,
            extension: Extensions::default(),
            escalate_to: Some("human://localhost/queue".into()),
            answer_within: None,
            unknown: Unknown::default(),
            first_contact: FirstContact::default(),
            limits: Limits::default(),
            retry: Retry::default(),
            retention: RetentionDays::default(),
            consent: Consent::default(),
            federation: Federation::default(),
            email: None,
            sms: None,
            names: BTreeMap::new(),
            routes: Vec::new(),
            holds: Vec::new(),
            watches: Vec::new(),
            agents: Vec::new(),
        }
    }
}

impl RouteEntry {
    /// The handler that it names.
    pub fn handler(&self) -> Option<Handler> {
        Handler::parse(&self.by)
    }

    /// The tool that an address of this route stands for, as the operator spells it: no word of a message becomes the name of
    /// a tool.
    pub fn tool(&self, to: &str) -> Option<&str> {
        let is_exact = !self.to.trim().ends_with('*');
        match self.tools.as_slice() {
            [] if is_exact => Address::split(self.to.trim()).user(),
            [only] if is_exact => Some(only),
            tools => {
                let named = Address::split(to).user()?;
                let found = tools.iter().find(|t| t.eq_ignore_ascii_case(named));
                found.map(String::as_str)
            }
        }
    }

    /// The addresses that it is for.
    pub fn pattern(&self) -> Option<Pattern> {
        Pattern::parse(&self.to).ok()
    }
}
