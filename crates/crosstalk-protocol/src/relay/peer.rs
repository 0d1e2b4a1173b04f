//! Who hands a message in or asks for one, and for which addresses.

use super::pattern::Pattern;
use crate::trust::Trust;
use crate::verdict::{Trusted, Verdict, Word};
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::SchemeKind;

/// What a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A program: it never speaks for a person.
    Agent,
    /// A person.
    Person,
    /// Who runs the relay: sees and may do everything, but speaks for nobody whose address it has not.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Person, Self::Admin];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
            Self::Admin => "admin",
        }
    }

    /// The role that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }
}

/// Who is on the other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it is called in logs and records: the name of a token, `local`, a domain.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// For whom it speaks and reads.
    pub addresses: Vec<Pattern>,
    /// To whom it may carry messages of others, by copy and paste.
    pub courier: Vec<Pattern>,
    /// The organisation for all whose addresses it speaks: it is the relay of this domain.
    pub domain: Option<String>,
    /// Whether it is the person who runs this relay on this machine.
    pub is_local: bool,
}

impl Peer {
    /// The person at this machine, where no credentials are configured.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            role: Role::Admin,
            addresses: vec![Pattern::all()],
            courier: Vec::new(),
            domain: None,
            is_local: true,
        }
    }

    /// The relay itself: what it says is about messages that it has.
    pub fn itself() -> Self {
        Self {
            name: "relay".into(),
            ..Self::local()
        }
    }

    /// Whether it is the relay itself. No credential is: those are never local.
    pub fn is_itself(&self) -> bool {
        self.is_local && self.name == "relay"
    }

    /// Nobody in particular: may send what proves itself by its signature, and nothing else.
    pub fn stranger() -> Self {
        Self {
            name: "stranger".into(),
            role: Role::Agent,
            addresses: Vec::new(),
            courier: Vec::new(),
            domain: None,
            is_local: false,
        }
    }

    /// Whether it has no credential.
    pub fn is_stranger(&self) -> bool {
        *self == Self::stranger()
    }

    /// Whoever signed a message, if the key is one of the sender: it is pinned for this address, or the domain of the
    /// address vouches for it. That a signature holds says nothing about the sender, who is a claim.
    pub fn signer(verdict: &Verdict, trust: &Trust, sender: &str) -> Option<Self> {
        let pkid = verdict
            .pkid()
            .filter(|_| verdict.word() == Word::Verified)?;
        let pinned = trust.ids_of_sender(sender);
        let is_bound = match verdict.trusted() {
            Trusted::Pinned { rotated_from, .. } => {
                pinned.contains(&pkid)
                    || rotated_from
                        .as_ref()
                        .is_some_and(|old| pinned.contains(&old.as_str()))
            }
            Trusted::Dns { domain, .. } => {
                pinned.contains(&pkid)
                    || authority(sender).is_some_and(|own| own.eq_ignore_ascii_case(domain))
            }
            _ => pinned.contains(&pkid),
        };
        let address = Pattern::parse(sender).ok().filter(|_| is_bound)?;
        Some(Self {
            name: pkid.to_owned(),
            role: Role::Person,
            addresses: vec![address],
            courier: Vec::new(),
            domain: None,
            is_local: false,
        })
    }

    /// Whether it may speak for an address. Only a person speaks for one.
    ///
    /// ```
    /// use crosstalk_protocol::relay::{Pattern, Peer, Role};
    /// let agent = Peer { role: Role::Agent, addresses: vec![Pattern::all()], ..Peer::stranger() };
    /// assert!(agent.speaks_for("claude://code/api") && !agent.speaks_for("human://acme.example/ann"));
    /// assert!(Peer::local().speaks_for("human://acme.example/ann"));
    /// ```
    pub fn speaks_for(&self, address: &str) -> bool {
        let may = self.role != Role::Agent || !is_human(address);
        let is_ours = |domain: &String| {
            authority(address).is_some_and(|host| host.eq_ignore_ascii_case(domain))
        };
        let has = self.addresses.iter().any(|p| p.matches(address));
        may && (has || self.domain.as_ref().is_some_and(is_ours))
    }

    /// Whether it may see and change everything.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Whether it is a person.
    pub fn is_person(&self) -> bool {
        self.role != Role::Agent
    }
}

/// Whether an address is that of a person.
pub fn is_human(address: &str) -> bool {
    Address::split(address).kind() == Some(SchemeKind::Person)
}

/// The organisation of an address: its host, where that has a dot; nothing if it is this relay's own.
///
/// ```
/// use crosstalk_protocol::relay::authority;
/// assert_eq!(authority("human://ann@acme.example/inbox"), Some("acme.example"));
/// assert_eq!(authority("claude://session/abc"), None);
/// assert_eq!(authority("CLAUDE"), None);
/// ```
pub fn authority(address: &str) -> Option<&str> {
    let address = Address::split(address);
    let host = address.host().or_else(|| {
        let is_mail = address.kind() == Some(SchemeKind::Mail);
        address
            .path()
            .rsplit_once('@')
            .filter(|_| is_mail)
            .map(|(_, d)| d)
    })?;
    let is_number = host.parse::<std::net::IpAddr>().is_ok();
    (host.contains('.') && !is_number && !host.starts_with('+')).then_some(host)
}
