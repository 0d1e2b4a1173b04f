//! The tokens and agents of the store, as the relay goes by them. Each look asks the store whether they changed, since this or
//! another process may make and revoke tokens at any time: a change counts from the moment that its caller was told so.

use super::{Relay, Shared};
use crate::config::Config;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::port::{RegistrySnapshot, RegistryVersion, RelayStore, TokenRecord};
use crosstalk_protocol::relay::{Binding, Pattern, Peer, RelayRules};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The registry as of the last look.
pub(super) struct Registry {
    known: RwLock<Arc<Registered>>,
    /// Held while a change is taken over, so that an older state never takes the place of a newer one.
    turn: tokio::sync::Mutex<()>,
}

/// The registry in one version.
pub(crate) struct Registered {
    version: RegistryVersion,
    /// The tokens, by the hash of the secret.
    pub(crate) tokens: HashMap<[u8; 32], Token>,
}

/// A token as requests are checked by it.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) peer: Arc<Peer>,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl Token {
    fn of(token: &TokenRecord) -> Self {
        let patterns = |texts: &[String]| {
            let patterns = texts.iter().filter_map(|a| Pattern::parse(a).ok());
            patterns.collect()
        };
        let peer = Peer {
            role: token.role,
            addresses: patterns(&token.addresses),
            courier: patterns(&token.courier),
            name: token.name.clone(),
            ..Peer::stranger()
        };
        Self {
            peer: Arc::new(peer),
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
        }
    }

    /// Why it does not count.
    pub(crate) fn fault(&self, now: Timestamp) -> Option<String> {
        let name = &self.peer.name;
        match (self.revoked_at, self.expires_at) {
            (Some(at), _) => Some(format!("The token `{name}` was revoked at {at}")),
            (None, Some(at)) if at <= now => Some(format!("The token `{name}` expired at {at}")),
            _ => None,
        }
    }
}

impl Registered {
    fn of(snapshot: &RegistrySnapshot) -> Arc<Self> {
        let tokens = snapshot.tokens.iter();
        Arc::new(Self {
            version: snapshot.version,
            tokens: tokens.map(|t| (t.hash.0, Token::of(t))).collect(),
        })
    }

    /// The addresses that a token with this name is bound to, and not all that begin so, if it is that of a person.
    pub(crate) fn addresses_of(&self, name: &str) -> Vec<String> {
        let peers = self.tokens.values().map(|token| &token.peer);
        let named = peers.filter(|peer| peer.name == name && peer.is_person());
        let whole = named.flat_map(|peer| peer.addresses.iter().filter_map(Pattern::address));
        whole.map(str::to_owned).collect()
    }
}

impl Registry {
    pub(super) fn new(snapshot: &RegistrySnapshot) -> Self {
        Self {
            known: RwLock::new(Registered::of(snapshot)),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> Arc<Registered> {
        let known = self.known.read();
        Arc::clone(&known.unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, snapshot: &RegistrySnapshot) -> Arc<Registered> {
        let new = Registered::of(snapshot);
        let known = self.known.write();
        *known.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        new
    }

    /// Keeps others from taking over a change.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

/// All tokens and agents of a store.
pub(super) async fn read_registry(store: &dyn RelayStore) -> Result<RegistrySnapshot, StoreError> {
    let snapshot = store.registry(None).await?;
    snapshot.ok_or_else(|| {
        let what = "the store gave no list of its tokens";
        StoreError::new(StoreFault::Unavailable, what, "")
    })
}

/// The rules of a relay: its configuration, with the agents and tokens of the store and the keys that it trusts.
pub(super) fn rules_of(config: &Config, snapshot: &RegistrySnapshot, trust: &Trust) -> RelayRules {
    let mut rules = config.rules();
    rules.listed.set_pins(trust);
    register(&mut rules, snapshot);
    rules
}

fn register(rules: &mut RelayRules, snapshot: &RegistrySnapshot) {
    for agent in &snapshot.agents {
        rules.directory.declare(agent.clone());
    }
    rules.listed.set_tokens(&snapshot.tokens);
    rules.routes.bindings = Binding::of(&snapshot.tokens);
}

impl Relay {
    /// The registry now. The rules go by it from now on.
    pub(crate) async fn registry(&self) -> Result<Arc<Registered>, StoreError> {
        self.shared.registry().await
    }

    /// All tokens and agents, with the times at which tokens were last used.
    pub(crate) async fn read_registry(&self) -> Result<RegistrySnapshot, StoreError> {
        read_registry(self.store()).await
    }
}

impl Shared {
    async fn registry(&self) -> Result<Arc<Registered>, StoreError> {
        let known = self.registry.known();
        match self.store.registry(Some(known.version)).await? {
            None => Ok(known),
            Some(_) => Box::pin(self.take_over_registry()).await,
        }
    }

    async fn take_over_registry(&self) -> Result<Arc<Registered>, StoreError> {
        let _turn = self.registry.turn().await;
        let known = self.registry.known();
        // Another caller may have taken it over meanwhile, or there is a still newer one.
        let Some(snapshot) = self.store.registry(Some(known.version)).await? else {
            return Ok(known);
        };
        self.change_rules(|rules| register(rules, &snapshot));
        Ok(self.registry.set(&snapshot))
    }

    /// Goes by a registry that was read in this turn.
    pub(super) fn set_registry(&self, snapshot: &RegistrySnapshot) {
        self.registry.set(snapshot);
    }
}
