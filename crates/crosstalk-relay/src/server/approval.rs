//! Messages that wait for a person: what they are, and what was decided (CON-063 to CON-066).

use super::answer::{self, Answer, Fault};
use super::inbox::read_json;
use super::query::{self, TEXT};
use super::sight::Sight;
use super::surface::Call;
use super::view::approval_of;
use crate::core::Wish;
use crosstalk_api::approval::{Approvals, Decision};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{Decided, HeldMessage, RelayStore, Ruling};

/// How much text a listing has, at most one message more.
const BYTES: usize = 4 << 20;
/// How many are looked at for somebody who does not decide about all of them.
const LOOKED_AT: usize = 5_000;

/// Whether a caller sees what waits: those who decide, and the operator.
fn sees(sight: &Sight, held: &HeldMessage) -> bool {
    sight.is_admin() || sight.may_decide(held).is_ok()
}

pub(super) async fn list(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media()?;
    let limit = call.query()?.limit()?;
    let relay = &call.site.relay;
    let waiting = relay.read(|store| store.waiting(LOOKED_AT)).await?;
    let (mut approvals, mut bytes) = (Vec::new(), 0);
    let (sight, now) = (Sight::of(call), relay.now());
    for held in waiting.iter().filter(|h| sees(&sight, h)) {
        if approvals.len() == limit || bytes > BYTES {
            break;
        }
        bytes += held.record.text.len();
        approvals.push(approval_of(held, now));
    }
    Ok(answer::json(&Approvals { approvals }))
}

pub(super) async fn show(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media()?;
    let held = find(call).await?;
    Ok(answer::json(&approval_of(&held, call.site.relay.now())))
}

/// The message that the path names, if whoever asks sees it.
async fn find(call: &Call<'_>) -> Result<HeldMessage, Fault> {
    let id = call.name()?;
    let ask = move |store: &dyn RelayStore| store.held(&id);
    let found = call.site.relay.read(ask).await?;
    found
        .filter(|held| sees(&Sight::of(call), held))
        .ok_or_else(|| Fault::missing("message that waits for you to decide"))
}

pub(super) async fn decide(call: &mut Call<'_>) -> Result<Answer, Fault> {
    let wish: Decision = read_json(call).await?;
    let digest = |name: &str, text: &str| {
        Digest::parse(text).ok_or_else(|| {
            Fault::format(
                format!("`{name}` is no digest."),
                "write it as sha256: and 64 hexadecimal digits.",
            )
        })
    };
    let digests = (digest("digest", &wish.digest)?, digest("raw", &wish.raw)?);
    let reason = wish.reason.as_deref().map(str::trim);
    let reason = reason.filter(|r| !r.is_empty());
    if let Some(reason) = reason {
        query::checked("reason", reason, TEXT)?;
    }
    let is_approved = match (wish.decision.as_str(), reason) {
        ("approve", _) => true,
        ("refuse", Some(_)) => false,
        ("refuse", None) => {
            return Err(Fault::format(
                "A refusal has no `reason`.",
                "say why, so that the sender can do something about it.",
            ));
        }
        _ => {
            return Err(Fault::format(
                "`decision` is neither `approve` nor `refuse`.",
                "give one of them.",
            ));
        }
    };
    let held = find(call).await?;
    let peer = &call.caller.peer;
    Sight::of(call).may_decide(&held)?;
    let wish = Wish {
        digests,
        is_approved,
        reason: reason.map(str::to_owned),
        by: peer.name.clone(),
    };
    match call.site.relay.decide(&held, wish).await? {
        Ruling::Done(_) => {
            tracing::info!(id = %held.record.id, by = %peer.name, approved = is_approved, "a person decided about a message");
            show(call).await
        }
        Ruling::Before(decided) => Err(before(&decided)),
        Ruling::Other => Err(conflict(
            "The message that waits has other digests: it is not the one that was looked at.",
            "look at it again, and decide about what is there.",
        )),
        Ruling::Not(refusal) => Err(Fault::from(refusal).status(409)),
        Ruling::Unknown => Err(Fault::missing("message that waits for you to decide")),
    }
}

fn before(decided: &Decided) -> Fault {
    let (what, help) = (
        format!(
            "It was {} at {} with the credential `{}`: a decision is made once.",
            decided.choice.as_str(),
            decided.at,
            escape(&decided.by)
        ),
        "nothing, or ask the sender for a new message.",
    );
    conflict(what, help)
}

/// What can't be decided, or not any more.
fn conflict(what: impl Into<String>, help: &str) -> Fault {
    Fault::forbidden(what, help).status(409)
}
