//! Keys of others: the operator lists, pins and distrusts them (HTP-063).

use super::query::{self, TEXT};
use super::response::{HttpError, Json};
use super::router::{Accepts, Call};
use crosstalk_api::trust::{Distrust, MAX_PIN_SENDERS, NewPin, TrustedKeyView, TrustedKeys};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{PublicKey, is_key_id};
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, PinError};

pub(super) async fn list(call: Call, _: Accepts) -> Json<TrustedKeys> {
    let trust = call.server.relay.trust();
    Json(TrustedKeys {
        keys: trust.keys().iter().map(TrustedKeyView::from).collect(),
    })
}

pub(super) async fn pin(
    call: Call,
    Json(wanted): Json<NewPin>,
) -> Result<Json<TrustedKeyView>, HttpError> {
    let key = checked(&wanted.id, &wanted.key)?;
    if wanted.senders.len() > MAX_PIN_SENDERS {
        return Err(HttpError::format(
            format!("`senders` has more than {MAX_PIN_SENDERS} names."),
            "give fewer.",
        ));
    }
    for sender in &wanted.senders {
        query::check_text("A sender", sender, TEXT)?;
    }
    let pin = KnownKey {
        id: wanted.id.clone(),
        key,
        since: call.server.relay.now(),
        how: Origin::Manual,
        by: None,
        senders: wanted.senders,
        standing: KeyStanding::Active,
        credential: None,
    };
    let replace = wanted.replace;
    let change = move |trust: &mut crosstalk_protocol::Trust| trust.pin_as_shown(pin, replace);
    let pinned = call.server.relay.change_trust(change).await;
    pinned
        .map_err(not_stored)?
        .map_err(|fault| rejected(&wanted.id, &fault))?;
    tracing::info!(id = %wanted.id, by = %call.caller.peer.name, "a key was pinned");
    known(&call, &wanted.id, &key)
}

pub(super) async fn distrust(
    call: Call,
    Json(wanted): Json<Distrust>,
) -> Result<Json<TrustedKeyView>, HttpError> {
    let key = checked(&wanted.id, &wanted.key)?;
    let reason = wanted.reason.as_deref().map(str::trim);
    let reason = reason.filter(|r| !r.is_empty());
    if let Some(reason) = reason {
        query::check_text("reason", reason, TEXT)?;
    }
    let at = call.server.relay.now();
    let standing = KeyStanding::Distrusted {
        at,
        reason: reason.map(str::to_owned),
    };
    let id = wanted.id.clone();
    let change = move |trust: &mut crosstalk_protocol::Trust| trust.mark(&id, &key, at, standing);
    let changed = call.server.relay.change_trust(change).await;
    changed.map_err(not_stored)?;
    tracing::info!(id = %wanted.id, by = %call.caller.peer.name, "a key was distrusted");
    known(&call, &wanted.id, &key)
}

/// The key of a request.
fn checked(id: &str, record: &str) -> Result<PublicKey, HttpError> {
    if !is_key_id(id) {
        return Err(HttpError::format(
            "`id` is no key id.",
            "give 1 to 255 visible ASCII characters without ;[]()<>|.",
        ));
    }
    let key = PublicKey::parse_record(record.trim()).map_err(|fault| {
        HttpError::format(
            format!("`key` is no public key: {}.", fault.message),
            "write it as ed25519:pk= and base64, as `crosstalk key show NAME` does.",
        )
    })?;
    match PublicKey::from_did(id) {
        Some(did) if did.as_ref() != Ok(&key) => Err(HttpError::format(
            "`id` is a did:key, and another key than `key`.",
            "give the key of this id.",
        )),
        _ => Ok(key),
    }
}

/// The key as it is known now.
fn known(call: &Call, id: &str, key: &PublicKey) -> Result<Json<TrustedKeyView>, HttpError> {
    let trust = call.server.relay.trust();
    let entry = trust.entry(id, key).map(TrustedKeyView::from);
    entry
        .map(Json)
        .ok_or_else(|| HttpError::missing("such key"))
}

fn not_stored(reason: String) -> HttpError {
    tracing::error!(reason, "the trusted keys can't be changed");
    HttpError::later("The trusted keys can't be stored")
}

/// Why a key is not pinned.
fn rejected(id: &str, fault: &PinError) -> HttpError {
    let id = escape(id);
    let (what, help) = match fault {
        PinError::Denied(reason) => (
            format!("The key is on the deny list: it was {reason}."),
            "ask its owner for a new key.",
        ),
        PinError::Changed(known) => (
            format!(
                "{id} has another key already, with the fingerprint {}.",
                known.fingerprint()
            ),
            "compare both with the owner; if the new one is theirs, pin it in place of the other.",
        ),
        PinError::SenderChanged(ids) => (
            format!(
                "The sender has signed as {} so far, and not as {id}.",
                escape(&ids.join(", "))
            ),
            "ask the sender over another channel; if it is theirs, pin it in place of the other.",
        ),
        PinError::LooksLike(name, like) => (
            format!(
                "{} looks like {}, who signs with another key.",
                escape(name),
                escape(like)
            ),
            "compare the names letter by letter; if they are two parties, pin it nevertheless.",
        ),
        PinError::Refused(standing) => match **standing {
            KeyStanding::Revoked { .. } => (
                format!("This key of {id} was revoked, which is final."),
                "ask its owner for a new key.",
            ),
            KeyStanding::Replaced { .. } => (
                format!("Another key took the place of this one of {id}."),
                "pin it in place of the other, if its owner says so.",
            ),
            KeyStanding::Distrusted { .. } | KeyStanding::Active => (
                format!("This key of {id} is distrusted."),
                "undo that with `crosstalk trust remove ID` on the machine of the relay first.",
            ),
        },
        PinError::Unseen(senders) => (
            format!(
                "The key is used by {} as well.",
                escape(&senders.join(", "))
            ),
            "ask its owner about all of its senders, and pin it for all of them.",
        ),
        PinError::NoRoom => (
            "A name of the key is too long.".to_owned(),
            "give a shorter one.",
        ),
    };
    HttpError::forbidden(what, help).status(409)
}
