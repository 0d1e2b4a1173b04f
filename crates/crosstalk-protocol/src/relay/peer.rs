//! Peers: the authenticated callers of a relay, the addresses that they speak for, and the names that the relay knows (HTP-030).

use super::pattern::Pattern;
use super::port::TokenRecord;
use crate::dns::domain_of;
use crate::trust::{FOREIGN, KnownKey, Origin, Trust};
use crate::verdict::{Trusted, Verdict, VerdictWord};
use crosstalk_envelope::name::{NameList, SYSTEM, same_host, same_name};
use crosstalk_envelope::registry::SchemeKind;
use crosstalk_envelope::{Address, PublicKey};
use std::sync::Arc;

/// What the name of a peer begins with that has a key, and no token.
const KEY: &str = "key:";
/// The name of a caller without a credential.
const STRANGER: &str = "stranger";

/// What a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A program: it never speaks for a person.
    Agent,
    /// A person.
    Person,
    /// The operator: sees and may do everything, but speaks for nobody whose address it has not.
    Admin,
    /// A program that watches the relay: it reads the metrics, and nothing else.
    Monitor,
    /// The signer of a message, with a key that the operator did not pin. It speaks for the sender of that message, even
    /// if that is the address of a person, and does not count as that person. No token has this role.
    Signer,
}

impl Role {
    /// The roles that a token can have.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Person, Self::Admin, Self::Monitor];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
            Self::Admin => "admin",
            Self::Monitor => "monitor",
            Self::Signer => "signer",
        }
    }

    /// The role that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// Whether a token with this role is bound to addresses. An administrator may have some, a monitor has none.
    pub const fn needs_addresses(self) -> bool {
        matches!(self, Self::Agent | Self::Person)
    }

    /// Whether the owner of a token with this role may carry messages of others.
    pub const fn may_carry(self) -> bool {
        matches!(self, Self::Person | Self::Admin)
    }
}

/// The authenticated caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it is called in logs and records: the name of a token, `local`, `key:` and the id of a key, `domain:` and a
    /// domain. No name of a token has a colon in it.
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

    /// The recipient of a question, under these names of it, who answered it in a way without credentials: by mail or by text
    /// message. It does not count as that person anywhere else. No name of a token has a colon in it, so `name` has one.
    pub fn answering(name: String, names: &[String]) -> Self {
        Self {
            name,
            role: match names.iter().any(|name| is_human(name)) {
                true => Role::Signer,
                false => Role::Agent,
            },
            addresses: names.iter().map(|name| Pattern::exact(name)).collect(),
            ..Self::stranger()
        }
    }

    /// Nobody in particular: may send what proves itself by its signature, and nothing else.
    pub fn stranger() -> Self {
        Self {
            name: STRANGER.into(),
            role: Role::Agent,
            addresses: Vec::new(),
            courier: Vec::new(),
            domain: None,
            is_local: false,
        }
    }

    /// Whether it has no credential.
    pub fn is_stranger(&self) -> bool {
        let Self {
            name,
            role,
            addresses,
            courier,
            domain,
            is_local,
        } = self;
        name == STRANGER
            && *role == Role::Agent
            && addresses.is_empty()
            && courier.is_empty()
            && domain.is_none()
            && !is_local
    }

    /// The signer of a message, if the key belongs to the sender: it is pinned for this address, or the domain of the
    /// address vouches for it. A valid signature alone does not prove the sender, which is a claim. It counts as a person
    /// only where the operator pinned the key: a domain, and a first contact, can be anybody's.
    pub fn signer(verdict: &Verdict, trust: &Trust, sender: &str) -> Option<Self> {
        let pkid = verdict
            .pkid()
            .filter(|_| verdict.word() == VerdictWord::Verified)?;
        let is_bound = |k: &&KnownKey| k.binds(sender);
        let known = match verdict.trusted() {
            Trusted::Pinned {
                rotated_from: Some(old),
                ..
            } => trust.keys_for(old, sender).into_iter().find(is_bound),
            _ => {
                // A did:key has more than one spelling, and the key is the same.
                let is_did = PublicKey::from_did(pkid).is_some();
                let is_it = |k: &&KnownKey| is_did || k.id == pkid;
                let mut entries = verdict.key.iter().flat_map(|key| trust.of_key(key));
                entries.find(|k| is_it(k) && is_bound(k))
            }
        };
        let is_vouched = || match verdict.trusted() {
            Trusted::Dns { domain, .. } => {
                let keys = trust.keys_for(pkid, sender);
                authority(sender).is_some_and(|own| same_host(own, domain))
                    || keys.iter().any(is_bound)
            }
            _ => false,
        };
        if known.is_none() && !is_vouched() {
            return None;
        }
        Some(Self {
            name: pkid.to_owned(),
            role: match known.is_some_and(|k| k.how == Origin::Manual) {
                true => Role::Person,
                false => Role::Signer,
            },
            addresses: vec![Pattern::exact(sender)],
            courier: Vec::new(),
            domain: None,
            is_local: false,
        })
    }

    /// The same as the one who hands a message in without a token: it is on record as a key or a domain, and has nothing of
    /// a token that is called so.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Peer;
    /// let domain = "acme.example".to_owned();
    /// let relay = Peer { name: domain.clone(), domain: Some(domain), ..Peer::stranger() };
    /// assert_eq!(relay.without_token().name, "domain:acme.example");
    /// ```
    #[must_use]
    pub fn without_token(self) -> Self {
        let name = match self.domain {
            Some(_) => format!("domain:{}", self.name),
            None => format!("{KEY}{}", self.name),
        };
        Self { name, ..self }
    }

    /// Against whom it counts when a relay learns a key from a message: the token, or the domain that it comes from.
    pub fn account(&self) -> String {
        let name = self.name.strip_prefix(KEY).unwrap_or(&self.name);
        let signer = || domain_of(name).filter(|_| self.role == Role::Signer);
        match self.domain.as_deref().or_else(signer) {
            _ if self.is_local => "local".to_owned(),
            Some(domain) => format!("{FOREIGN}{}", domain.to_ascii_lowercase()),
            None => format!("{}:{name}", self.role.as_str()),
        }
    }

    /// Whether the operator knows it: by a token, by a key that they pinned, or as the person at this machine. Others are known
    /// by what anybody can have: a domain of mail, a key that a domain lists, the hop of a relay, a first contact.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Peer;
    /// let token = Peer { name: "ci".into(), ..Peer::stranger() };
    /// assert!(token.is_known_to_operator() && Peer::local().is_known_to_operator());
    /// assert!(!token.without_token().is_known_to_operator());
    /// ```
    pub fn is_known_to_operator(&self) -> bool {
        // No name of a token has a colon in it, and every other name has.
        let has_token = !self.is_stranger() && !self.name.contains(':');
        self.is_local || self.is_person() || has_token
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
        let may = self.may_be_person() || !is_human(address);
        let is_ours =
            |domain: &String| authority(address).is_some_and(|host| same_host(host, domain));
        let has = self.addresses.iter().any(|p| p.matches(address));
        may && (has || self.domain.as_ref().is_some_and(is_ours))
    }

    /// Whether it may see and change everything.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// Whether it reads the metrics, and nothing else.
    pub fn is_monitor(&self) -> bool {
        self.role == Role::Monitor
    }

    /// Whether it may speak for the address of a person.
    pub fn may_be_person(&self) -> bool {
        !matches!(self.role, Role::Agent | Role::Monitor)
    }

    /// Whether it is a person: by a token, or by a key that the operator pinned.
    pub fn is_person(&self) -> bool {
        matches!(self.role, Role::Person | Role::Admin)
    }
}

/// Whether an address is that of a person.
pub fn is_human(address: &str) -> bool {
    Address::split(address).kind() == Some(SchemeKind::Person)
}

/// Whether a sender is a relay that speaks for itself: SYSTEM, or that of another domain as it is shown
/// ([`report::speaker`](super::report::speaker)).
pub fn is_system(sender: &str) -> bool {
    let name = sender.split_once('@').map_or(sender, |(name, _)| name);
    same_name(name, SYSTEM)
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

/// The names and addresses that a relay knows. Nobody else sends under a name that looks like one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// Those of the configuration.
    pub configured: Arc<NameList>,
    /// Those that tokens are bound to.
    pub tokens: Arc<NameList>,
    /// The senders of keys that the operator pinned.
    pub pinned: Arc<NameList>,
}

impl KnownNames {
    /// The known name that another one looks like; none if that one is known itself.
    pub fn look_alike(&self, name: &str) -> Option<&str> {
        NameList::look_alike_on([&self.configured, &self.tokens, &self.pinned], name)
    }

    /// These are the pinned keys now. A first contact lists nothing: anybody could keep others out with it.
    pub fn set_pins(&mut self, trust: &Trust) {
        let pins = trust.keys().iter().filter(|k| k.how == Origin::Manual);
        let senders = pins.flat_map(|k| k.senders.iter().map(String::as_str));
        set_names(&mut self.pinned, senders);
    }

    /// These are the tokens now. One that was revoked lists nothing.
    pub fn set_tokens(&mut self, tokens: &[TokenRecord]) {
        let valid = tokens.iter().filter(|t| t.revoked_at.is_none());
        let addresses = valid.flat_map(|t| t.addresses.iter().map(String::as_str));
        set_names(&mut self.tokens, addresses.filter(|a| !a.ends_with('*')));
    }
}

/// Makes a list one of these names. Names come one by one: the looks of those that are there are not worked out again.
fn set_names<'n>(list: &mut Arc<NameList>, names: impl Iterator<Item = &'n str> + Clone) {
    if !list.is_within(names.clone()) {
        *list = Arc::default();
    }
    for name in names {
        if !list.has(name) {
            Arc::make_mut(list).add(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_one_list_has_is_no_look_alike_of_another() {
        let list = |names: &[&str]| Arc::new(names.iter().copied().collect());
        let listed = KnownNames {
            configured: list(&["ALI"]),
            tokens: list(&["ALL"]),
            pinned: list(&["BOB"]),
        };
        for known in ["Ali", "all", "bob"] {
            assert_eq!(listed.look_alike(known), None, "{known}");
        }
        assert_eq!(listed.look_alike("AL1"), Some("ALI"));
        assert_eq!(listed.look_alike("B0B"), Some("BOB"));
    }
}
