//! What a person allows, and what may be passed on under it.

use super::super::cast::{ABLE, ANN, CRITIC, SCOUT};
use super::super::page::Page;
use super::super::world::{Who, World, name_of, relayed, require};
use super::{refusal, taken};
use crate::clock;
use crate::failure::Failure;
use crosstalk_envelope::{Builder, ErrorCode, Timestamp};
use crosstalk_protocol::consent::LedgerStore as _;

/// What Ann tells under her consent. It stands nowhere else.
pub(super) const SECRET: &str = "Ann is allergic to bee stings and carries two adrenaline pens.";
const GRANT: &str = "ann-health-for-the-trip";
const TRANSFER: &str = "ann-health-for-critic";

/// Writes into a message that a consent was passed on.
pub(super) fn transferred(builder: Builder, until: Timestamp) -> Builder {
    builder
        .meta("privacy", "PII", "present")
        .meta(
            "privacy",
            "Consent",
            format!("transferred_with_approval_{}", clock::now()),
        )
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Expires", until.to_string())
        .meta("privacy", "Consent-ID", TRANSFER)
        .meta("privacy", "Original-Consent-ID", GRANT)
}

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "The guide has to know something about Ann's health. She tells Scout, and says what it may be used for: medical, \
         until a day next week, under a name by which she can withdraw it.",
    );
    let end = world.end;
    let grant = world
        .letter(Who::Ann, SCOUT, "BROADCAST")
        .meta("routing", "X-Policy", "ok_to_cache")
        .meta("privacy", "PII", "present")
        .meta(
            "privacy",
            "Consent",
            format!("explicit_yes_{}", clock::now()),
        )
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Expires", end.to_string())
        .meta("privacy", "Consent-ID", GRANT)
        .body(format!("For the guide, and for nobody else: {SECRET}"));
    let grant = world.post(Who::Ann, "consent", &grant)?;
    taken(page, &grant);
    world.fetch(Who::Scout, "the consent", |m| m.id == grant.id)?;
    ledger(world, page)?;

    page.say(
        "Scout hands the matter over to Critic, who writes to guides. A consent can be passed on, chained to the original, \
         and never wider or longer. Scout tries a month more than Ann gave.",
    );
    let handoff = world
        .letter(Who::Scout, CRITIC, "HANDOFF")
        .meta(
            "routing",
            "X-Capabilities-Required",
            format!("[\"{ABLE}\"]"),
        )
        .body(format!(
            "Please write to the guide. What he has to know: {SECRET}"
        ));
    let longer = transferred(handoff.clone(), clock::days_after(end, 30));
    let answer = world.try_post(Who::Scout, "handoff-too-long", &longer)?;
    let said = refusal(answer, "a consent that was made longer")?;
    page.checked(format!("The relay refused that with E-CONSENT: {said}"));

    page.say("So Scout passes on what there is.");
    let handoff = world.post(Who::Scout, "handoff", &transferred(handoff, end))?;
    taken(page, &handoff);
    let got = world.fetch(Who::Critic, "the hand-off", |m| m.id == handoff.id)?;
    world.verified(&got.envelope)?;
    require(
        got.envelope.contains(SECRET),
        "what Critic has to know is not in the hand-off",
    )?;
    page.checked("Critic has it, and the name of the consent that it hangs on.");

    page.say(
        "At this moment Critic asks the relay for a checkpoint of its log and keeps it: a few signed lines that nobody can \
         make unsaid.",
    );
    let tended = world.run(world.relay.tend_log());
    tended.map_err(|e| Failure::Failed(format!("the log can't be signed: {e}")))?;
    let held = world.ask(Who::Critic, async |c| c.checkpoint().await);
    world.held = relayed(held, "there is no checkpoint")?;
    let size = world.held.lines().nth(1).unwrap_or_default();
    page.checked(format!("It speaks of {size} entries."));
    world.consents = [GRANT.to_owned(), TRANSFER.to_owned()];
    page.fact("consent", GRANT);
    page.fact("transferred", TRANSFER);
    page.fact("longer_refused_with", ErrorCode::Consent.as_str());
    page.fact("handoff", handoff.id);
    Ok(())
}

/// What the relay has on record about the consent.
fn ledger(world: &World, page: &mut Page) -> Result<(), Failure> {
    let found = world.data.open()?.grant(GRANT)?;
    let found = found.ok_or_else(|| Failure::Failed("the consent is not on record".into()))?;
    require(
        found.granter == ANN && found.revoked.is_none(),
        "the consent is on record for somebody else",
    )?;
    page.checked(format!(
        "On record: {} for {}, given by {} to {}, until {}, by a message of a {} key.",
        found.id,
        found.scopes.join(", "),
        name_of(&found.granter),
        found
            .to
            .iter()
            .map(|a| name_of(a))
            .collect::<Vec<_>>()
            .join(", "),
        found
            .expires
            .map_or_else(|| "nobody knows when".to_owned(), |t| t.to_string()),
        found.assurance.as_str(),
    ));
    page.fact("assurance", found.assurance.as_str());
    Ok(())
}
