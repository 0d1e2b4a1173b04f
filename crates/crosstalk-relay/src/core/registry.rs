//! The tokens and agents of the store, as the relay goes by them, and the trusted keys where several relays share them. Each look
//! asks the store whether they changed, since this or another process may make and revoke tokens at any time: a change counts
//! from the moment that its caller was told so.

use super::{Relay, RelayState};
use crate::config::Config;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::port::{RegistrySnapshot, RegistryVersion, RelayStore, TokenRecord};
use crosstalk_protocol::relay::{Binding, Pattern, Peer, RelayRules};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The registry as of the last look.
pub(super) struct RegistryCache {
    known: RwLock<Arc<Registered>>,
    /// How many looks at the store have begun.
    begun: AtomicU64,
    /// The number of the last look that succeeded. Held while the store is looked at, so that an older state never takes the
    /// place of a newer one.
    turn: tokio::sync::Mutex<u64>,
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

impl RegistryCache {
    pub(super) fn new(snapshot: &RegistrySnapshot) -> Self {
        Self {
            known: RwLock::new(Registered::of(snapshot)),
            begun: AtomicU64::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> Arc<Registered> {
        let known = self.known.read();
        Arc::clone(&known.unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, snapshot: &RegistrySnapshot) {
        let known = self.known.write();
        *known.unwrap_or_else(PoisonError::into_inner) = Registered::of(snapshot);
    }

    /// Keeps others from taking over a change.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, u64> {
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

impl RelayState {
    /// The registry now. Requests that come together share a look at the store that begins after all of them came.
    async fn registry(&self) -> Result<Arc<Registered>, StoreError> {
        let before = self.registry.begun.load(Ordering::SeqCst);
        // The requests that are there already come first.
        tokio::task::yield_now().await;
        let mut last = self.registry.turn().await;
        if *last <= before {
            let number = self.registry.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let version = self.registry.known().version;
            if let Some(snapshot) = self.store.registry(Some(version)).await? {
                // Before the version counts: a request never goes by older keys than its tokens.
                self.trust_snapshot.follow().await?;
                let trust = self.trust_snapshot.now();
                self.change_rules(|rules| {
                    register(rules, &snapshot);
                    rules.listed.set_pins(&trust);
                });
                self.registry.set(&snapshot);
            }
            *last = number;
        }
        Ok(self.registry.known())
    }

    /// Goes by a registry that was read in this turn.
    pub(super) fn set_registry(&self, snapshot: &RegistrySnapshot) {
        self.registry.set(snapshot);
    }
}
