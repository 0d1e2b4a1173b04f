//! The endpoints that show consents to those who gave or received them.

use super::MAX_SCANNED;
use super::query::Query;
use super::response::{HttpError, Json};
use super::router::{Accepts, Call, Segment};
use super::view::delivery_of;
use crate::core::access::{Access, Handovers};
use crosstalk_api::consent::{BY, ConsentList, ConsentRecord, ConsentView, HOLDING, UnderConsent};
use crosstalk_protocol::consent::{Grant, GrantFilter};
use crosstalk_protocol::relay::port::{GrantQuery, RecordQuery};

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
    let filter = GrantQuery::Filtered(filter);
    let grants = call.server.relay.store().grants(filter).await?;
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
    let store = call.server.relay.store();
    let grant = store.grant(&id).await?.filter(|g| sees(&access, g));
    let grant = grant.ok_or_else(|| HttpError::missing("such consent"))?;
    let is_own = oversees(&access) || access.reads_for(&grant.granter);
    let mut under = store.under(&id).await?;
    if !is_own {
        // A recipient of the consent sees only messages that it may read.
        let ids = under.iter().map(|(id, _)| id.clone()).collect();
        let records = store.records(RecordQuery::Ids(ids)).await?;
        let none = Handovers::new();
        let seen = access.filter_readable(store, records, &none).await?;
        under.retain(|(id, _)| seen.iter().any(|record| record.id == *id));
    }
    let messages = under
        .into_iter()
        .map(|(id, has_text)| UnderConsent { id, has_text });
    let mut told = match &grant.revoked {
        Some(revoked) => store.deliveries_of(&revoked.message).await?,
        None => Vec::new(),
    };
    told.retain(|d| is_own || access.reads_for(&d.to));
    let is_operator = call.caller.peer.is_admin();
    let (consent, messages) = (ConsentView::of(&grant, now), messages.collect());
    let told = told.into_iter();
    let told = told.map(|d| delivery_of(d, is_operator)).collect();
    Ok(Json(ConsentRecord {
        consent,
        messages,
        told,
    }))
}
