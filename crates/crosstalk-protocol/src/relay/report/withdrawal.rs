//! What is said when a consent or a permission was withdrawn: the senders of what was cancelled are told, and who
//! withdrew it gets a confirmation of what was erased.

use super::derived;
use crate::consent::{Cancelled, Withdrawn};
use crate::store::Arrival;
use crosstalk_envelope::name::{SYSTEM, SYSTEM_USER};
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::Refusal;
use crosstalk_envelope::{Builder, Document, Reading, unicode};

/// How many erased messages a confirmation lists; the rest is counted.
const LISTED: usize = 1000;

/// Everything that is said after a REVOKE. One that another relay passed on is confirmed by its receipt: no relay takes the
/// word of another one's SYSTEM for what was erased.
pub fn withdrawn(revoke: &Arrival, withdrawn: &Withdrawn) -> Vec<String> {
    let errors = withdrawn.cancelled.iter().map(|c| error(c, revoke));
    let passed_on = Document::parse(&revoke.text, Reading::Strict);
    let is_ours = passed_on.envelope().hops().next().is_none();
    let all = errors.chain(is_ours.then(|| confirmation(revoke, withdrawn)));
    all.filter_map(|builder| builder.build().ok()).collect()
}

/// What the sender of a message is told that is not delivered any more.
fn error(cancelled: &Cancelled, revoke: &Arrival) -> Builder {
    let (what, help) = (
        format!(
            "The message was not delivered to {}: the consent that it was sent under was withdrawn at {}. Its \
                 text is erased.",
            unicode::escape(&cancelled.to),
            revoke.at
        ),
        "ask for a new consent before you send it again.",
    );
    let refusal = Refusal::new(ErrorCode::Consent, what, help);
    let seed = format!(
        "withdrawn\n{}\n{}\n{}\n",
        cancelled.id, cancelled.to, revoke.digest
    );
    Builder::new(&cancelled.to, &cancelled.from)
        .user(SYSTEM_USER)
        .thread(&cancelled.thread)
        .parent(&cancelled.id)
        .message(derived(revoke.at, &seed))
        .context("consent")
        .intent(Intent::Error.as_str())
        .meta("error", "Code", refusal.code.as_str())
        .meta("error", "Reason", &refusal.reason)
        .body(refusal.detail())
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
    for to in &withdrawn.told {
        line(format!(
            "- {} had got some of it, and is told",
            unicode::escape(to)
        ));
    }
    line(format!(
        "- {} messages were erased at this relay",
        withdrawn.erased.len()
    ));
    for erased in withdrawn.erased.iter().take(LISTED) {
        line(format!(
            "  {} {}",
            unicode::escape(&erased.id),
            erased.digest
        ));
    }
    let thread = revoke.thread.as_deref().unwrap_or(&revoke.spare.thread);
    let seed = format!("confirmation\n{}\n", revoke.digest);
    // Not in the name of the receiver: what they erase is theirs to say.
    Builder::new(SYSTEM, &revoke.sender)
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
        .meta("withdrawal", "Passed-On", withdrawn.told.len().to_string())
        .meta("withdrawal", "At", revoke.at.to_string())
        .body(&body)
}
