//! Consents on record, for those who gave or got them.

use super::answer::{self, Answer, Fault};
use super::sight::Sight;
use super::surface::Call;
use super::view::delivery_of;
use crosstalk_api::consent::{BY, Consent, ConsentRecord, Consents, HOLDING, UnderConsent};
use crosstalk_protocol::consent::{Grant, GrantFilter};
use crosstalk_protocol::relay::RelayStore;

/// How many are looked at for somebody who does not see all of them.
const LOOKED_AT: usize = 5_000;

/// Whether a caller sees every consent: the operator, and whoever may revoke the consents of others.
fn oversees(sight: &Sight) -> bool {
    sight.is_admin() || sight.is_authority()
}

/// Whether a caller sees a consent: who gave it, who got it, and those who see all of them.
fn sees(sight: &Sight, grant: &Grant) -> bool {
    oversees(sight) || sight.reads(&grant.granter) || grant.to.iter().any(|to| sight.reads(to))
}

pub(super) async fn list(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media()?;
    let query = call.query()?;
    let (limit, sight) = (query.limit()?, Sight::of(call));
    let now = call.site.relay.now();
    let filter = GrantFilter {
        granter: query.text(&BY)?.map(str::to_owned),
        holding_at: query.flag(&HOLDING)?.unwrap_or(false).then_some(now),
        most: match oversees(&sight) {
            true => limit,
            false => LOOKED_AT,
        },
    };
    let ask = move |store: &dyn RelayStore| store.grants(&filter);
    let grants = call.site.relay.read(ask).await?;
    let seen = grants.iter().filter(|g| sees(&sight, g)).take(limit);
    let consents = seen.map(|g| Consent::of(g, now)).collect();
    Ok(answer::json(&Consents { consents }))
}

pub(super) async fn show(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media()?;
    let (id, sight, now) = (call.name()?, Sight::of(call), call.site.relay.now());
    let ask = move |store: &dyn RelayStore| {
        let Some(grant) = store.grant(&id)?.filter(|g| sees(&sight, g)) else {
            return Ok(None);
        };
        let is_own = oversees(&sight) || sight.reads(&grant.granter);
        let mut messages = Vec::new();
        for (id, has_text) in store.under(&id)? {
            // Who got the consent sees what is their own.
            let record = match is_own {
                true => None,
                false => store.taken_as(&id)?,
            };
            let is_seen = match &record {
                Some(record) => sight.sees(store, record)?,
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
        told.retain(|d| is_own || sight.reads(&d.to));
        Ok(Some((Consent::of(&grant, now), messages, told)))
    };
    let found = call.site.relay.read(ask).await?;
    let is_operator = call.caller.peer.is_admin();
    let (consent, messages, told) = found.ok_or_else(|| Fault::missing("such consent"))?;
    let told = told.into_iter();
    let told = told.map(|d| delivery_of(d, is_operator)).collect();
    Ok(answer::json(&ConsentRecord {
        consent,
        messages,
        told,
    }))
}
