//! Tokens and agents, with a version that every relay on the store sees.

use crosstalk_protocol::relay::TokenRecord;
use crosstalk_protocol::relay::port::{PAIRED, RegistryChange, RegistrySnapshot, RegistryVersion};

use super::fault::PgResult;
use super::sql::{Db, params, value};
use super::{keep, log};

/// All tokens and agents, unless they are those of a version.
pub(super) fn read(db: &Db, known: Option<RegistryVersion>) -> PgResult<Option<RegistrySnapshot>> {
    let sql = "SELECT number FROM registry_version";
    // Read before the rest: a change in between makes a later version.
    let version: i64 = db.one(sql, params![], value)?;
    let version = RegistryVersion(version.unsigned_abs());
    if known == Some(version) {
        return Ok(None);
    }
    Ok(Some(RegistrySnapshot {
        version,
        tokens: keep::tokens(db)?,
        agents: keep::agents(db)?,
    }))
}

/// Says that tokens or agents changed. Only inside a transaction that has the turn.
pub(super) fn renew(db: &Db) -> PgResult<()> {
    let sql = "UPDATE registry_version SET number = number + 1";
    db.run(sql, params![]).map(drop)
}

/// Changes something. False if there is nothing to change. Only inside a transaction that has the turn.
pub(super) fn change(db: &Db, change: &RegistryChange) -> PgResult<bool> {
    let is_changed = match change {
        RegistryChange::AddToken { token, by } => {
            let is_new = keep::add_token(db, token)?;
            if is_new {
                log::append(db, &token.created(by))?;
            }
            is_new
        }
        RegistryChange::Pair { code, secret, at } => {
            let mut tokens = keep::tokens(db)?.into_iter();
            let Some(token) = tokens.find(|t| t.hash == *code && t.can_pair(*at)) else {
                return Ok(false);
            };
            let token = token.paired(*secret, *at);
            keep::replace_token(db, *code, &token)?;
            log::append(db, &token.created(PAIRED))?;
            true
        }
        RegistryChange::RevokeToken { name, by, at } => {
            let was_active = keep::revoke_token(db, name, *at)?;
            if was_active {
                log::append(db, &TokenRecord::revoked(name, by, *at))?;
            }
            was_active
        }
        // It makes no new version.
        RegistryChange::NoteUses(uses) => {
            keep::note_token_uses(db, uses)?;
            return Ok(!uses.is_empty());
        }
        RegistryChange::Declare { agent, at } => {
            keep::declare(db, agent, *at)?;
            true
        }
    };
    if is_changed {
        renew(db)?;
    }
    Ok(is_changed)
}
