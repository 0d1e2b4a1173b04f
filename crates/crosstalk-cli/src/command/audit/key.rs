//! The key that a log is checked with, and where it comes from.

use crate::clock;
use crate::failure::Failure;
use crate::service::home::{Rooms, public_key};
use crosstalk_envelope::PublicKey;
use crosstalk_protocol::Trust;
use crosstalk_protocol::audit::NoteKey;
use std::path::Path;

/// A key of the command line: `name+hash+key` or a file with it; or what `--key` of `crosstalk verify` takes, for the log of this
/// name.
pub(super) fn given(text: &str, name: &str) -> Result<NoteKey, Failure> {
    if let Some(key) = noted(text) {
        return Ok(key);
    }
    let key = public_key(text)?;
    NoteKey::new(name, key).map_err(|e| Failure::Failed(format!("{text}: {e}")))
}

/// The key alone, whatever it is the key of.
pub(super) fn public(text: &str) -> Result<PublicKey, Failure> {
    match noted(text) {
        Some(key) => Ok(*key.key()),
        None => public_key(text),
    }
}

/// A key that is written `name+hash+key`, here or in a file.
fn noted(text: &str) -> Option<NoteKey> {
    let written = match text.contains('+') && !Path::new(text).exists() {
        true => Some(text.to_owned()),
        false => std::fs::read_to_string(text).ok(),
    };
    NoteKey::parse(written?.trim()).ok()
}

/// What is pinned for a name here, or its domain said.
pub(super) fn known(name: &str) -> Result<Vec<PublicKey>, Failure> {
    Ok(of(&Rooms::open()?.trust()?, name))
}

/// The same, of a trust that was read.
pub(super) fn of(trust: &Trust, name: &str) -> Vec<PublicKey> {
    let pinned = trust.active(name).map(|k| k.key);
    let domain = trust.domain(name, clock::now());
    let said = domain.map(|d| d.keys.clone()).unwrap_or_default();
    pinned.into_iter().chain(said).collect()
}
