//! What follows when a consent or a permission was withdrawn: senders of what was cancelled are told, who withdrew it gets
//! a confirmation of what was erased, and whatever is left of it in files is taken out.

use super::{Received, Relay};
use crate::delivery::report::derived;
use crosstalk_envelope::reply::Refusal;
use crosstalk_envelope::{Builder, ErrorCode, Intent, unicode};
use crosstalk_protocol::consent::{Cancelled, Withdrawn};
use crosstalk_protocol::store::Arrival;
use std::sync::atomic::Ordering;

/// How many erased messages a confirmation lists; the rest is counted.
const LISTED: usize = 1000;

impl Relay {
    /// A REVOKE was taken, and this is what it took with it. What has to be said about it is said beside the answer.
    pub(super) fn has_withdrawn(&self, revoke: &Arrival, withdrawn: Withdrawn) {
        if !withdrawn.tokens.is_empty() {
            self.shared.has_ended_tokens.store(true, Ordering::Release);
        }
        tracing::info!(
            id = revoke.id(),
            consents = withdrawn.consents.len(),
            erased = withdrawn.erased.len(),
            cancelled = withdrawn.cancelled.len(),
            "withdrawn"
        );
        self.shared.withdrawal.notify_one();
        self.wake();
        let (relay, revoke) = (self.clone(), revoke.clone());
        tokio::spawn(async move {
            for cancelled in &withdrawn.cancelled {
                relay.tell(error(cancelled, &revoke)).await;
            }
            relay.tell(confirmation(&revoke, &withdrawn)).await;
        });
    }

    /// Waits until a consent was withdrawn since the last call.
    pub async fn withdrawal(&self) {
        self.shared.withdrawal.notified().await;
    }

    /// Whether a token was withdrawn since the last call.
    pub fn has_ended_tokens(&self) -> bool {
        self.shared.has_ended_tokens.swap(false, Ordering::AcqRel)
    }

    async fn tell(&self, builder: Builder) {
        let text = match builder.build() {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(reason = %error, "what follows from a REVOKE could not be written");
                return;
            }
        };
        if let Received::Refused { refusal, .. } = Box::pin(self.say(&text)).await {
            tracing::warn!(
                code = refusal.code.as_str(),
                "somebody could not be told about a REVOKE"
            );
        }
    }
}

/// What the sender of a message is told that is not delivered any more.
fn error(cancelled: &Cancelled, revoke: &Arrival) -> Builder {
    let detail = format!(
        "The message was not delivered to {}: the consent that it was sent under was withdrawn at {}. Its text is \
         erased.\nWhat to do: ask for a new consent before you send it again.",
        unicode::escape(&cancelled.to),
        revoke.at
    );
    let refusal = Refusal::new(ErrorCode::Consent, detail);
    let seed = format!(
        "withdrawn\n{}\n{}\n{}\n",
        cancelled.id, cancelled.to, revoke.digest
    );
    Builder::new(&cancelled.to, &cancelled.from)
        .user("system")
        .thread(&cancelled.thread)
        .parent(&cancelled.id)
        .message(derived(revoke.at, &seed))
        .context("consent")
        .intent(Intent::Error.as_str())
        .meta("error", "Code", refusal.code.as_str())
        .meta("error", "Reason", &refusal.reason)
        .body(&refusal.detail)
}

/// What was withdrawn, cancelled and erased, and when.
fn confirmation(revoke: &Arrival, withdrawn: &Withdrawn) -> Builder {
    let mut body = String::from("Withdrawn. This was done:\n");
    let mut line = |text: String| {
        body.push_str(&text);
        body.push('\n');
    };
    for id in &withdrawn.consents {
        line(format!("- the consent {} has ended", unicode::escape(id)));
    }
    for name in &withdrawn.tokens {
        line(format!("- the token {} has ended", unicode::escape(name)));
    }
    line(format!(
        "- {} deliveries were cancelled",
        withdrawn.cancelled.len()
    ));
    for to in &withdrawn.downstream {
        line(format!("- the relay of {} is told", unicode::escape(to)));
    }
    line(format!("- {} messages were erased", withdrawn.erased.len()));
    for erased in withdrawn.erased.iter().take(LISTED) {
        line(format!(
            "  {} {}",
            unicode::escape(&erased.id),
            erased.digest
        ));
    }
    let thread = revoke.thread.as_deref().unwrap_or(&revoke.spare.thread);
    let seed = format!("confirmation\n{}\n", revoke.digest);
    Builder::new(&revoke.receiver, &revoke.sender)
        .user("relay")
        .thread(thread)
        .parent(revoke.id())
        .message(derived(revoke.at, &seed))
        .context("consent")
        .intent(Intent::Broadcast.as_str())
        .meta("withdrawal", "Consents", withdrawn.consents.join(", "))
        .meta("withdrawal", "Erased", withdrawn.erased.len().to_string())
        .meta(
            "withdrawal",
            "Cancelled",
            withdrawn.cancelled.len().to_string(),
        )
        .meta(
            "withdrawal",
            "Passed-On",
            withdrawn.downstream.len().to_string(),
        )
        .meta("withdrawal", "At", revoke.at.to_string())
        .body(&body)
}
