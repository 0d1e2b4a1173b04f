//! An agent that must not decide asks a person.

use super::super::cast::{ANN, SCOUT};
use super::super::page::Page;
use super::super::world::{Who, World, require};
use super::taken;
use crate::failure::Failure;
use crosstalk_envelope::{Document, Intent, Reading};

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Scout finds a guide who wants a deposit of 240 EUR. That is more than an agent may promise, so Scout does not: \
         an ESCALATE goes to Ann, with the reason. She sees the conversation so far, and nobody has to tell it again.",
    );
    let escalation = world
        .letter(Who::Scout, ANN, "ESCALATE")
        .parent(&world.question)
        .meta(
            "escalation",
            "Reason",
            "the deposit is above my limit of 100 EUR",
        )
        .meta("escalation", "Urgency", "today")
        .body("The guide wants 240 EUR in advance. May I agree?");
    let escalation = world.post(Who::Scout, "escalation", &escalation)?;
    taken(page, &escalation);
    let got = world.fetch(Who::Ann, "the escalation", |m| m.id == escalation.id)?;
    world.verified(&got.envelope)?;
    let has_question = got.history.iter().flatten().any(|text| {
        let earlier = Document::parse(text, Reading::Strict);
        earlier.envelope().message == Some(world.question.as_str())
    });
    require(
        has_question,
        "the conversation did not come with the escalation",
    )?;
    page.checked(format!(
        "It reached Ann with {} earlier messages of the conversation.",
        got.history.iter().flatten().count()
    ));
    let decision = world
        .letter(Who::Ann, SCOUT, "RESPOND")
        .parent(&escalation.id)
        .body("Yes, up to 240 EUR, and not more.");
    let decision = world.post(Who::Ann, "decision", &decision)?;
    page.envelope(&decision.text, &decision.file);
    let back = world.fetch(Who::Scout, "the decision", |m| m.id == decision.id)?;
    world.verified(&back.envelope)?;
    let document = Document::parse(&back.envelope, Reading::Strict);
    require(
        document.envelope().meaning() == Some(Intent::Respond),
        "the decision is no answer",
    )?;
    page.checked("Scout has a person's word for it, signed, and can show it to anybody.");
    page.fact("escalation", escalation.id);
    page.fact("history", got.history.iter().flatten().count());
    page.fact("decided_by", ANN);
    Ok(())
}
