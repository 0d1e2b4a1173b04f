//! The endpoints that show consents to those who gave or received them.

use super::MAX_SCANNED;
use super::query::Query;
use super::response::{HttpError, Json};
use super::router::{Accepts, Call, Segment};
use super::view::delivery_of;
use crate::core::access::Access;
use crosstalk_api::consent::{BY, ConsentList, ConsentRecord, ConsentView, HOLDING, UnderConsent};
use crosstalk_protocol::consent::{Grant, GrantFilter};
use crosstalk_protocol::relay::RelayStore;

/// Whether a caller may read every consent: the operator, and authorities that may revoke the consents of others.
fn oversees(access: &Access) -> bool {
    access.is_admin() || access.is_authority()
}

/// Whether a caller may read a consent: its granter, its recipients, and callers that may read all of them.
fn sees(access: &Access, grant: &Grant) -> bool {
    oversees(access)
        || access.reads_for(&grant.granter)
        || grant.to.iter().any(|to| access.reads_for(to))
}

pub(super) async fn list(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<ConsentList>, HttpError> {
    let (limit, access) = (query.limit()?, call.access());
    let now = call.server.relay.now();
    let filter = GrantFilter {
        granter: query.text(&BY)?.map(str::to_owned),
        holding_at: query.flag(&HOLDING)?.unwrap_or(false).then_some(now),
        limit: match oversees(&access) {
            true => limit,
            false => MAX_SCANNED,
        },
    };
    let ask = move |store: &dyn RelayStore| store.grants(&filter);
    let grants = call.server.relay.read(ask).await?;
    let seen = grants.iter().filter(|g| sees(&access, g)).take(limit);
    let consents = seen.map(|g| ConsentView::of(g, now)).collect();
    Ok(Json(ConsentList { consents }))
}

pub(super) async fn show(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Json<ConsentRecord>, HttpError> {
    let (access, now) = (call.access(), call.server.relay.now());
    let ask = move |store: &dyn RelayStore| {
        let Some(grant) = store.grant(&id)?.filter(|g| sees(&access, g)) else {
            return Ok(None);
        };
        let is_own = oversees(&access) || access.reads_for(&grant.granter);
        let mut messages = Vec::new();
        for (id, has_text) in store.under(&id)? {
            // A recipient of the consent sees only messages that it may read.
            let record = match is_own {
                true => None,
                false => store.record(&id)?,
            };
            let is_seen = match &record {
                Some(record) => access.can_read(store, record)?,
                None => is_own,
            };
            if is_seen {
                messages.push(UnderConsent { id, has_text });
            }
        }
        let mut told = match &grant.revoked {
            Some(revoked) => store.deliveries(&revoked.message)?,
            None => Vec::new(),
        };
        told.retain(|d| is_own || access.reads_for(&d.to));
        Ok(Some((ConsentView::of(&grant, now), messages, told)))
    };
    let found = call.server.relay.read(ask).await?;
    let is_operator = call.caller.peer.is_admin();
    let (consent, messages, told) = found.ok_or_else(|| HttpError::missing("such consent"))?;
    let told = told.into_iter();
    let told = told.map(|d| delivery_of(d, is_operator)).collect();
    Ok(Json(ConsentRecord {
        consent,
        messages,
        told,
    }))
}
