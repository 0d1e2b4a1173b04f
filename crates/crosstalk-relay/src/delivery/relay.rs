//! Federation: passes a message on to the relay of another domain (HTP-080 to HTP-082).

use super::http::{outcome_of_rejection, request_of};
use super::{AttemptOutcome, DeliveryHandler, DeliveryJob, HandlerReply};
use crate::core::Relay;
use crate::port::Later;
use crosstalk_api::client::{SendResult, rejection_of};
use crosstalk_api::outbound::{HttpResponse, Outbound, OutboundError, Url};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::dns::{RelayRecord, relay_order};
use crosstalk_protocol::relay::{HOPS, authority, hops_of};

/// How many relays of a domain are tried in one attempt.
const RELAYS: usize = 4;

/// Passes messages on.
pub(super) struct FederationHandler {
    relay: Relay,
    outbound: Outbound,
}

impl FederationHandler {
    pub(super) fn new(relay: Relay, outbound: Outbound) -> Self {
        Self { relay, outbound }
    }

    async fn pass_on(&self, job: &DeliveryJob) -> AttemptOutcome {
        let route = job.route.as_deref();
        let allow_private =
            route.is_some_and(|r| r.allow_private) || self.relay.config().federation.allow_private;
        let hops = hops_of(&Document::parse(&job.text, Reading::Strict)).len();
        if hops > HOPS {
            return AttemptOutcome::refused(
                ErrorCode::Route,
                format!("the message has been through {HOPS} relays: it goes in circles"),
            );
        }
        let relays = match route.and_then(|r| r.url.as_deref()) {
            Some(url) => vec![url.to_owned()],
            None => match self.relays(&job.to, allow_private).await {
                Ok(relays) => relays,
                Err(outcome) => return outcome,
            },
        };
        let mut last = AttemptOutcome::failed(ErrorCode::Route, "the domain names no relay");
        for url in relays.iter().take(RELAYS) {
            let url = match Url::parse(url) {
                Ok(url) => url.below("crosstalk/receive"),
                Err(error) => {
                    let shown = unicode::escape(url);
                    last = AttemptOutcome::failed(ErrorCode::Route, format!("`{shown}`: {error}"));
                    continue;
                }
            };
            if !url.is_https() && !allow_private {
                let reason = format!("{url} is not https, and `allow_private` is not set");
                last = AttemptOutcome::failed(ErrorCode::Route, reason);
                continue;
            }
            let call = match request_of(job, url, route, allow_private).await {
                Ok(call) => call,
                Err(outcome) => return outcome,
            };
            last = match self.outbound.call(call).await {
                Ok(answer) if (200..300).contains(&answer.status) => read_receipt(job, &answer),
                Ok(answer) => {
                    let goes_on = matches!(answer.status, 502..=504);
                    let outcome = outcome_of_rejection(rejection_of(&answer));
                    if !goes_on {
                        return outcome;
                    }
                    outcome
                }
                Err(error @ (OutboundError::Lookup { .. } | OutboundError::Unreachable { .. })) => {
                    error.into()
                }
                Err(error) => return error.into(),
            };
            if matches!(last, AttemptOutcome::Delivered { .. }) {
                break;
            }
        }
        last
    }

    /// The relays of the domain of an address, the one to try first in front.
    async fn relays(&self, to: &str, allow_private: bool) -> Result<Vec<String>, AttemptOutcome> {
        let Some(domain) = authority(to) else {
            return Err(AttemptOutcome::failed(
                ErrorCode::Route,
                "the address has no domain whose relay could be found",
            ));
        };
        let Some(resolver) = self.relay.resolver() else {
            return Err(AttemptOutcome::failed(
                ErrorCode::Route,
                "this relay asks no name server: give the route a `url`",
            ));
        };
        let domain = domain.to_ascii_lowercase();
        let records = resolver.relays(&domain).await;
        let records = records.map_err(|reason| {
            AttemptOutcome::later(
                ErrorCode::Route,
                format!("the relay of {domain} can't be looked up now: {reason}"),
            )
        })?;
        let (mut relays, mut wrong) = (Vec::new(), Vec::new());
        for record in &records {
            match RelayRecord::parse(record, allow_private) {
                Ok(relay) => relays.push(relay),
                Err(reason) => wrong.push(reason),
            }
        }
        for reason in &wrong {
            tracing::info!(%domain, reason, "a record of a relay does not count");
        }
        if relays.is_empty() {
            let why = match wrong.first() {
                None => "no TXT record".to_owned(),
                Some(reason) => format!("no record that counts ({reason})"),
            };
            return Err(AttemptOutcome::refused(
                ErrorCode::Route,
                format!("{domain} names no relay: there is {why} at _crosstalk.{domain}"),
            ));
        }
        let order = relay_order(&relays, || getrandom::u64().unwrap_or(0));
        Ok(order.into_iter().map(|r| r.url.clone()).collect())
    }
}

impl DeliveryHandler for FederationHandler {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(self.pass_on(job))
    }
}

/// The outcome of a response with a good status: only a receipt for this very message, or an answer to it, counts.
fn read_receipt(job: &DeliveryJob, answer: &HttpResponse) -> AttemptOutcome {
    let sent = answer.text().and_then(SendResult::of);
    match sent {
        Some(SendResult {
            receipt: Some(receipt),
            ..
        }) if receipt.digest == job.record.digest.to_string() => AttemptOutcome::delivered(),
        Some(SendResult {
            receipt: None,
            answer,
            ..
        }) => AttemptOutcome::Delivered {
            answer: Some(HandlerReply::Envelopes(vec![answer])),
        },
        _ => AttemptOutcome::later(
            ErrorCode::Route,
            format!(
                "the other side answers {} without a receipt for this message: it may be no relay",
                answer.status
            ),
        ),
    }
}
