//! Tokens: the operator creates, lists and revokes them; a browser extension gets one for a pairing code.

use super::query::{self, TEXT};
use super::response::{self, HttpError, Json, Response};
use super::router::{Accepts, Call, Segment};
use super::view::token_of;
use crate::rate::RateKey;
use crosstalk_api::pairing::{MAX_CODE_CHARS, PairingRequest};
use crosstalk_api::schema::MAX_TOKEN_NAME_CHARS;
use crosstalk_api::token::{MAX_TOKEN_ADDRESSES, NewToken, TokenView, Tokens};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Timestamp, base64};
use crosstalk_protocol::relay::port::{RegistryChange, TokenRecord};
use crosstalk_protocol::relay::{Pattern, Role, is_human, pairing_digest};
use http::StatusCode;

pub(super) async fn list(call: Call, _: Accepts) -> Result<Json<Tokens>, HttpError> {
    let tokens = call.server.relay.read_registry().await?.tokens;
    let tokens = tokens.into_iter().map(token_of).collect();
    Ok(Json(Tokens { tokens }))
}

pub(super) async fn make(
    call: Call,
    Json(wanted): Json<NewToken>,
) -> Result<(StatusCode, Json<TokenView>), HttpError> {
    let now = call.server.relay.now();
    let secret = secret()?;
    let token = checked(wanted, now, &secret)?;
    let add = RegistryChange::AddToken {
        token: token.clone(),
        by: call.caller.peer.name.clone(),
    };
    if !call.server.relay.store().change_registry(add).await? {
        return Err(HttpError::format(
            format!("There is a token `{}` already.", token.name),
            "choose another name.",
        ));
    }
    let mut made = token_of(token);
    made.token = Some(secret);
    Ok((StatusCode::CREATED, Json(made)))
}

pub(super) async fn end(call: Call, Segment(name): Segment) -> Result<Response, HttpError> {
    let at = call.server.relay.now();
    let by = call.caller.peer.name.clone();
    let revoke = RegistryChange::RevokeToken { name, by, at };
    if !call.server.relay.store().change_registry(revoke).await? {
        return Err(HttpError::missing("such token"));
    }
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// How many codes an address of the network may try in a minute. A code has 40 random bits and lives for five minutes.
const PAIRINGS_PER_MINUTE: u32 = 10;

/// Gives a token for a pairing code (HTP-069). The code is looked up by its hash, so that the time of the answer tells nothing
/// about other codes.
pub(super) async fn pair(
    call: Call,
    Json(wanted): Json<PairingRequest>,
) -> Result<(StatusCode, Json<TokenView>), HttpError> {
    let server = &call.server;
    let key = ("pairing", RateKey::peer(call.connection.from.ip()));
    let now = std::time::Instant::now();
    let tried = server.rate_limiter.acquire(&key, PAIRINGS_PER_MINUTE, now);
    tried.map_err(HttpError::too_often)?;
    let unknown = || {
        HttpError::forbidden(
            "The pairing code is unknown, was used before, or has expired.",
            "ask the relay operator for a new one (`crosstalk token pair --data DIR`); it is valid for five minutes.",
        )
    };
    let code = (wanted.code.len() <= MAX_CODE_CHARS).then(|| pairing_digest(&wanted.code));
    let code = code.flatten().ok_or_else(unknown)?;
    let secret = secret()?;
    let hash = Digest::of(secret.as_bytes());
    let at = server.relay.now();
    let change = RegistryChange::Pair {
        code,
        secret: hash,
        at,
    };
    if !server.relay.store().change_registry(change).await? {
        return Err(unknown());
    }
    let tokens = server.relay.read_registry().await?.tokens;
    let token = tokens.into_iter().find(|t| t.hash == hash);
    let mut made = token_of(token.ok_or_else(unknown)?);
    made.token = Some(secret);
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes the token of the request.
pub(super) async fn unpair(call: Call) -> Result<Response, HttpError> {
    let RateKey::Token(_) = call.caller.rate_key else {
        return Err(HttpError::missing("token in this request"));
    };
    let name = call.caller.peer.name.clone();
    let revoke = RegistryChange::RevokeToken {
        by: name.clone(),
        name,
        at: call.server.relay.now(),
    };
    if !call.server.relay.store().change_registry(revoke).await? {
        return Err(HttpError::missing("such token"));
    }
    Ok(response::empty(StatusCode::NO_CONTENT))
}

fn checked(wanted: NewToken, now: Timestamp, secret: &str) -> Result<TokenRecord, HttpError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let starts = wanted.name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !starts || wanted.name.len() > MAX_TOKEN_NAME_CHARS || !wanted.name.chars().all(plain) {
        return Err(HttpError::format(
            "`name` is no name of a token.",
            "give 1 to 64 letters, digits, dots, underscores and hyphens, beginning with a letter or digit.",
        ));
    }
    let role = Role::parse(&wanted.role).ok_or_else(|| {
        HttpError::format(
            "`role` is none.",
            "give `agent`, `person`, `admin` or `monitor`.",
        )
    })?;
    let is_empty = wanted.addresses.is_empty() && role.needs_addresses();
    if is_empty || wanted.addresses.len() > MAX_TOKEN_ADDRESSES {
        return Err(HttpError::format(
            format!("`addresses` is not a list of 1 to {MAX_TOKEN_ADDRESSES} addresses."),
            "name those it is for, or `*`.",
        ));
    }
    if role == Role::Monitor && !wanted.addresses.is_empty() {
        return Err(HttpError::forbidden(
            "A monitor speaks and reads for no address.",
            "leave the addresses out, or give another role.",
        ));
    }
    let addresses = patterns("addresses", &wanted.addresses)?;
    let is_person = |a: &String| is_human(a.trim_end_matches('*'));
    if role == Role::Agent && addresses.iter().any(is_person) {
        return Err(HttpError::forbidden(
            "An agent does not speak for a person.",
            "leave the human:// addresses out, or make a token for a person.",
        ));
    }
    if wanted.courier.len() > MAX_TOKEN_ADDRESSES {
        return Err(HttpError::format(
            format!("`courier` has more than {MAX_TOKEN_ADDRESSES} addresses."),
            "give the beginning of some and `*`.",
        ));
    }
    let courier = patterns("courier", &wanted.courier)?;
    if !role.may_carry() && !courier.is_empty() {
        return Err(HttpError::forbidden(
            "A program does not carry messages.",
            "leave `courier` out, or make a token for a person.",
        ));
    }
    let expires_at = match wanted.expires_at.as_deref().map(Timestamp::parse) {
        None => None,
        Some(Some(at)) if at > now => Some(at),
        Some(_) => {
            return Err(HttpError::format(
                "`expires_at` is no time, or one that has passed.",
                "give one as 2027-01-31T12:00:00Z.",
            ));
        }
    };
    Ok(TokenRecord {
        name: wanted.name,
        hash: Digest::of(secret.as_bytes()),
        role,
        addresses,
        courier,
        created_at: now,
        expires_at,
        revoked_at: None,
        last_used_at: None,
    })
}

/// Patterns of addresses, as they are kept.
fn patterns(key: &str, wanted: &[String]) -> Result<Vec<String>, HttpError> {
    let parse = |address: &String| {
        query::check_text("An address", address, TEXT)?;
        let pattern = Pattern::parse(address).map_err(|e| {
            HttpError::format(
                format!("One of the `{key}` is none: {e}."),
                "give one, or the beginning of some and `*`.",
            )
        })?;
        Ok(pattern.to_string())
    };
    wanted.iter().map(parse).collect()
}

/// A new secret: 256 random bits.
fn secret() -> Result<String, HttpError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(reason = %error, "the system gives no random numbers");
        HttpError::later("The system gives no random numbers")
    })?;
    let text = base64::encode(&bytes);
    let text = text
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    Ok(format!("xt_{text}"))
}
