//! The endpoints for messages that are held for a person (CON-063 to CON-066).

use super::query::{self, Query, TEXT};
use super::response::{HttpError, Json};
use super::router::{Accepts, Call, Segment};
use super::view::approval_of;
use super::{MAX_LISTING_BYTES, MAX_SCANNED, Server};
use crate::core::Wish;
use crate::core::access::Access;
use crosstalk_api::approval::{Approval, Approvals, DecisionRequest};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::port::HeldQuery;
use crosstalk_protocol::relay::{HeldMessage, HoldDecided, Ruling};

/// How much of an id a caller has to write at least.
const MIN_PREFIX_BYTES: usize = 4;

impl Server {
    /// Whether a caller may read a message that waits for a person: its sender and those who decide, not its recipients.
    pub(super) async fn can_read_held(&self, access: &Access, held: &HeldMessage) -> bool {
        access.is_sender_of(held) || self.check_decider(access, held).await.is_ok()
    }

    /// Checks that a caller may decide about a message that waits (CON-062).
    async fn check_decider(&self, access: &Access, held: &HeldMessage) -> Result<(), Rejection> {
        // Without the tokens, no caller may decide.
        let known = self.relay.registry().await.map_err(|error| {
            tracing::error!(reason = %error, "the tokens can't be read");
            Rejection::new(
                ErrorCode::Rate,
                "The store of the relay can't be used.",
                "try again later.",
            )
        })?;
        let mut people = known.addresses_of(&held.peer);
        let (record, routes) = (&held.record, &access.rules().routes);
        let trust = self.relay.trust();
        let pkid = record.pkid.iter();
        let signers = pkid.flat_map(|id| trust.keys_for(id, &record.sender));
        people.push(record.sender.clone());
        people.extend(signers.flat_map(|k| k.senders.iter().cloned()));
        let own: Vec<String> = people.iter().flat_map(|a| routes.of_person(a)).collect();
        held.may_be_decided_by(access.peer(), &own)
    }
}

impl Call {
    /// Whether the caller sees a held message: those who may decide, and the operator.
    async fn sees(&self, held: &HeldMessage) -> bool {
        let access = self.access();
        access.is_admin() || self.server.check_decider(&access, held).await.is_ok()
    }
}

pub(super) async fn list(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<Approvals>, HttpError> {
    let limit = query.limit()?;
    let relay = &call.server.relay;
    let limited = HeldQuery::Waiting { limit: MAX_SCANNED };
    let waiting = relay.store().held(limited).await?;
    let (mut approvals, mut bytes) = (Vec::new(), 0);
    let now = relay.now();
    for held in &waiting {
        if approvals.len() == limit || bytes > MAX_LISTING_BYTES {
            break;
        }
        if !call.sees(held).await {
            continue;
        }
        bytes += held.record.text.len();
        approvals.push(approval_of(held, now));
    }
    Ok(Json(Approvals { approvals }))
}

pub(super) async fn show(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Json<Approval>, HttpError> {
    let held = match find(&call, id.clone()).await {
        Ok(held) => held,
        Err(missing) => find_by_prefix(&call, id).await?.ok_or(missing)?,
    };
    Ok(Json(approval_of(&held, call.server.relay.now())))
}

/// The only held message, decided or not, that the caller sees and whose id begins with a text.
async fn find_by_prefix(call: &Call, prefix: String) -> Result<Option<HeldMessage>, HttpError> {
    if prefix.len() < MIN_PREFIX_BYTES {
        return Ok(None);
    }
    let limit = MAX_SCANNED;
    let query = HeldQuery::Prefix { prefix, limit };
    let mut seen = None;
    for held in call.server.relay.store().held(query).await? {
        if call.sees(&held).await && seen.replace(held).is_some() {
            return Ok(None);
        }
    }
    Ok(seen)
}

/// The held message that the path names, if the caller sees it.
async fn find(call: &Call, id: String) -> Result<HeldMessage, HttpError> {
    let found = call.server.relay.store().held_message(&id).await?;
    match found {
        Some(held) if call.sees(&held).await => Ok(held),
        _ => Err(HttpError::missing("message that waits for you to decide")),
    }
}

pub(super) async fn decide(
    call: Call,
    Segment(id): Segment,
    Json(wish): Json<DecisionRequest>,
) -> Result<Json<Approval>, HttpError> {
    let digest = |name: &str, text: &str| {
        Digest::parse(text).ok_or_else(|| {
            HttpError::format(
                format!("`{name}` is no digest."),
                "write it as sha256: and 64 hexadecimal digits.",
            )
        })
    };
    let digests = (digest("digest", &wish.digest)?, digest("raw", &wish.raw)?);
    let reason = wish.reason.as_deref().map(str::trim);
    let reason = reason.filter(|r| !r.is_empty());
    if let Some(reason) = reason {
        query::check_text("reason", reason, TEXT)?;
    }
    let is_approved = match (wish.decision.as_str(), reason) {
        ("approve", _) => true,
        ("refuse", Some(_)) => false,
        ("refuse", None) => {
            return Err(HttpError::format(
                "A refusal has no `reason`.",
                "say why, so that the sender can do something about it.",
            ));
        }
        _ => {
            return Err(HttpError::format(
                "`decision` is neither `approve` nor `refuse`.",
                "give one of them.",
            ));
        }
    };
    let held = find(&call, id).await?;
    let peer = &call.caller.peer;
    call.server.check_decider(&call.access(), &held).await?;
    let wish = Wish {
        digests,
        is_approved,
        reason: reason.map(str::to_owned),
        by: peer.name.clone(),
    };
    match call.server.relay.decide(&held, wish).await? {
        Ruling::Done(_) => {
            tracing::info!(id = %held.record.id, by = %peer.name, approved = is_approved, "a person decided about a message");
            let held = find(&call, held.record.id).await?;
            Ok(Json(approval_of(&held, call.server.relay.now())))
        }
        Ruling::AlreadyDecided(decided) => Err(before(&decided)),
        Ruling::DigestMismatch => Err(conflict(
            "The held message has other digests than the one that was shown.",
            "read it again, and decide about this text.",
        )),
        Ruling::NotAllowed(refusal) => Err(HttpError::from(refusal).status(409)),
        Ruling::Unknown => Err(HttpError::missing("message that waits for you to decide")),
    }
}

fn before(decided: &HoldDecided) -> HttpError {
    let (what, help) = (
        format!(
            "It was already {} at {} with the credential `{}`.",
            decided.choice.as_str(),
            decided.at,
            escape(&decided.by)
        ),
        "nothing, or ask the sender for a new message.",
    );
    conflict(what, help)
}

/// The error for a message that can't be decided, or not any more.
fn conflict(what: impl Into<String>, help: &str) -> HttpError {
    HttpError::forbidden(what, help).status(409)
}
