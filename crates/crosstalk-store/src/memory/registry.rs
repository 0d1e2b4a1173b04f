//! Tokens and declared agents.

use super::{MemoryRelay, State};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{
    PAIRED, Registry, RegistryChange, RegistrySnapshot, RegistryVersion, StoreFuture, TokenRecord,
};
use crosstalk_protocol::store::party;

impl Registry for MemoryRelay {
    fn registry(
        &self,
        known: Option<RegistryVersion>,
    ) -> StoreFuture<'_, Option<RegistrySnapshot>> {
        self.with(move |state| {
            let version = RegistryVersion(state.registry_changes);
            (known != Some(version)).then(|| RegistrySnapshot {
                version,
                tokens: state.tokens.values().cloned().collect(),
                agents: state.agents.values().cloned().collect(),
            })
        })
    }

    fn change_registry(&self, change: RegistryChange) -> StoreFuture<'_, bool> {
        self.with(move |state| match change {
            RegistryChange::AddToken { token, by } => {
                let mut tokens = state.tokens.values();
                let is_new = tokens.all(|t| t.name != token.name && t.hash != token.hash);
                if is_new {
                    state.append(&token.created(&by), None);
                    state.tokens.insert(token.name.clone(), token);
                    state.registry_changes += 1;
                }
                is_new
            }
            RegistryChange::Pair { code, secret, at } => {
                let mut tokens = state.tokens.values_mut();
                let Some(token) = tokens.find(|t| t.hash == code && t.can_pair(at)) else {
                    return false;
                };
                *token = token.clone().paired(secret, at);
                let event = token.clone();
                state.append(&event.created(PAIRED), None);
                state.registry_changes += 1;
                true
            }
            RegistryChange::RevokeToken { name, by, at } => {
                let is_revoked = state.revoke_token(&name, at);
                if is_revoked {
                    state.append(&TokenRecord::revoked(&name, &by, at), None);
                }
                is_revoked
            }
            RegistryChange::NoteUses(uses) => {
                for (hash, at) in &uses {
                    let mut tokens = state.tokens.values_mut();
                    if let Some(token) = tokens.find(|t| t.hash == *hash) {
                        token.last_used_at = token.last_used_at.max(Some(*at));
                    }
                }
                !uses.is_empty()
            }
            RegistryChange::Declare { agent, .. } => {
                state.agents.insert(party(&agent.address), agent);
                state.registry_changes += 1;
                true
            }
        })
    }
}

impl State {
    /// Revokes a token. False if there is none that is active.
    pub(super) fn revoke_token(&mut self, name: &str, at: Timestamp) -> bool {
        let token = self.tokens.get_mut(name);
        let Some(token) = token.filter(|token| token.revoked_at.is_none()) else {
            return false;
        };
        token.revoked_at = Some(at);
        self.registry_changes += 1;
        true
    }
}
