//! Credentials: identifies the caller of a request by its token, as the person at this machine, or as a stranger.

use super::cors::is_from_extension;
use super::response::HttpError;
use crate::core::registry::Registered;
use crate::rate::RateKey;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{Peer, Role};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The authenticated client of one request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Its name, role and addresses.
    pub(super) peer: Arc<Peer>,
    /// The key of its rate limit.
    pub(super) rate_key: RateKey,
}

impl Caller {
    /// Whether it has no credential.
    pub(super) fn is_stranger(&self) -> bool {
        self.peer.addresses.is_empty()
            && !self.peer.is_admin()
            && matches!(self.rate_key, RateKey::Peer(_))
    }
}

/// Who calls, by the tokens of the store.
pub(super) struct Credentials {
    uses: Mutex<TokenUses>,
    /// Whether every caller counts as the person at this machine as long as there are no tokens.
    is_loopback: bool,
    local: Arc<Peer>,
    stranger: Arc<Peer>,
}

/// The minutes in which tokens were last used, by the hash of the secret: those that are to be written, and those that are
/// written. A token is written at most once a minute, however often it is used.
#[derive(Default)]
struct TokenUses {
    fresh: HashMap<[u8; 32], Timestamp>,
    written: HashMap<[u8; 32], Timestamp>,
}

/// The precision of the last use of a token.
const USE_MILLIS: i64 = 60_000;

impl Credentials {
    pub(super) fn new(is_loopback: bool) -> Self {
        Self {
            uses: Mutex::default(),
            is_loopback,
            local: Arc::new(Peer::local()),
            stranger: Arc::new(Peer::stranger()),
        }
    }

    /// A caller without a credential.
    pub(super) fn stranger_from(&self, from: IpAddr) -> Caller {
        Caller {
            peer: Arc::clone(&self.stranger),
            rate_key: RateKey::peer(from),
        }
    }

    /// Whether a request comes from the machine that the relay alone listens on, and not from a browser extension, which needs a
    /// token.
    pub(super) fn is_local_request(&self, headers: &HeaderMap) -> bool {
        self.is_loopback && !is_forwarded(headers) && !is_from_extension(headers)
    }

    /// Whether only this machine reaches the relay.
    pub(super) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// The caller of a sign-in with a token, if the token counts.
    pub(super) fn caller_of(
        &self,
        known: &Registered,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Caller, HttpError> {
        let Some(token) = known.tokens.get(&hash) else {
            return Err(HttpError::unknown_peer(
                "The token is not one of this relay.",
                format!("{}.", ask_for_token(Role::Person)),
            ));
        };
        if let Some(why) = token.fault(now) {
            return Err(rejected(&why, token.peer.role, Role::Person));
        }
        self.note_use(hash, now);
        Ok(Caller {
            peer: Arc::clone(&token.peer),
            rate_key: RateKey::Token(hash),
        })
    }

    /// Whether no caller could be authenticated.
    pub(super) fn locks_everyone_out(&self, known: &Registered) -> bool {
        !self.is_loopback && known.tokens.is_empty()
    }

    /// The caller of a request with these headers from this address.
    ///
    /// # Errors
    /// 401, if there is a credential that does not count.
    pub(super) fn identify(
        &self,
        known: &Registered,
        headers: &HeaderMap,
        (from, now): (IpAddr, Timestamp),
        wanted: impl Fn() -> Role,
    ) -> Result<Caller, HttpError> {
        let known = &known.tokens;
        let Some(value) = headers.get(AUTHORIZATION) else {
            let open = known.is_empty() && self.is_local_request(headers);
            let peer = if open { &self.local } else { &self.stranger };
            return Ok(Caller {
                peer: Arc::clone(peer),
                rate_key: RateKey::peer(from),
            });
        };
        let Some(secret) = value.to_str().ok().and_then(bearer) else {
            return Err(HttpError::unknown_peer(
                "`Authorization` is not `Bearer` and a token.",
                "send `Authorization: Bearer xt_…`.",
            ));
        };
        // The lookup uses the hash, so that its time reveals nothing about other secrets.
        let hash = Digest::of(secret.as_bytes()).0;
        let Some(token) = known.get(&hash) else {
            return Err(HttpError::unknown_peer(
                "The token is not one of this relay.",
                format!("check it, or {}.", ask_for_token(wanted())),
            ));
        };
        match token
            .fault(now)
            .map(|why| rejected(&why, token.peer.role, wanted()))
        {
            Some(fault) => Err(fault),
            None => {
                self.note_use(hash, now);
                Ok(Caller {
                    peer: Arc::clone(&token.peer),
                    rate_key: RateKey::Token(hash),
                })
            }
        }
    }

    fn note_use(&self, hash: [u8; 32], now: Timestamp) {
        let minute = now.as_millis().div_euclid(USE_MILLIS);
        let minute = Timestamp::from_millis(minute.saturating_mul(USE_MILLIS));
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.written.get(&hash).is_none_or(|w| *w < minute) {
            uses.fresh.insert(hash, minute);
        }
    }

    /// When tokens were last used, as far as it is not written yet. From now on it counts as written.
    pub(super) fn take_uses(&self) -> Vec<(Digest, Timestamp)> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = std::mem::take(&mut uses.fresh);
        uses.written.extend(&fresh);
        fresh
            .into_iter()
            .map(|(hash, at)| (Digest(hash), at))
            .collect()
    }

    /// Checks that the credential of a caller still counts.
    pub(super) fn check_credential(
        &self,
        known: &Registered,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), HttpError> {
        let known = &known.tokens;
        match caller.rate_key {
            RateKey::Token(hash) => match known.get(&hash) {
                Some(token) => match token.fault(now) {
                    Some(why) => Err(rejected(&why, token.peer.role, Role::Agent)),
                    None => Ok(()),
                },
                None => Err(credential_needed(Role::Agent)),
            },
            RateKey::Peer(_) if caller.peer.is_local && !known.is_empty() => {
                Err(credential_needed(Role::Agent))
            }
            RateKey::Peer(_) => Ok(()),
        }
    }
}

/// The error for a caller without a credential.
pub(super) fn credential_needed(wanted: Role) -> HttpError {
    HttpError::unknown_peer(
        "A credential is needed here.",
        format!(
            "send `Authorization: Bearer` and a token, or {}.",
            ask_for_token(wanted)
        ),
    )
}

/// Rejects a token that was revoked or has expired. The hint names its role, except that of an administrator: there it names the
/// role that is enough for the request.
fn rejected(why: &str, role: Role, wanted: Role) -> HttpError {
    let role = match role {
        Role::Admin => wanted,
        role => role,
    };
    HttpError::unknown_peer(format!("{why}."), format!("{}.", ask_for_token(role)))
}

/// The help for a caller without a token that counts: the narrowest token that allows the request. The data folder is
/// for the operator to know.
fn ask_for_token(wanted: Role) -> String {
    let create = match wanted {
        Role::Monitor => "`crosstalk token create NAME --role monitor --data DIR`",
        Role::Admin => "`crosstalk token create NAME --role admin --data DIR`",
        Role::Person => "`crosstalk token create NAME --role person --for ADDRESS --data DIR`",
        Role::Agent | Role::Signer => {
            "`crosstalk token create NAME --role agent --for ADDRESS --data DIR`"
        }
    };
    format!("ask the relay operator for one ({create})")
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, secret) = value.trim().split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

/// Whether a proxy passed a request on: then it may come from anywhere, and not from this machine.
fn is_forwarded(headers: &HeaderMap) -> bool {
    const TRACES: [&str; 5] = [
        "forwarded",
        "x-real-ip",
        "via",
        "cf-connecting-ip",
        "true-client-ip",
    ];
    let is_trace = |name: &str| name.starts_with("x-forwarded-") || TRACES.contains(&name);
    headers.keys().any(|name| is_trace(name.as_str()))
}
