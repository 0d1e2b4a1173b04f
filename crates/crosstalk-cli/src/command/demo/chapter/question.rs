//! A signed question, and a signed answer to it.

use super::super::cast::{ANN, SCOUT};
use super::super::page::Page;
use super::super::world::{Who, World, require};
use super::{receipt, taken};
use crate::failure::Failure;
use crosstalk_envelope::{Document, Reading};

pub(super) const QUESTION: &str =
    "How long is the ridge trail, and when does the last bus go back?";

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Ann asks Scout something. A message is plain text: who to whom, what for, the words, a signature. It would look \
         the same in a mail or in a chat, where a person copies and pastes it.",
    );
    let question = world.letter(Who::Ann, SCOUT, "REQUEST").body(QUESTION);
    let question = world.post(Who::Ann, "question", &question)?;
    taken(page, &question);
    let got = world.fetch(Who::Scout, "the question", |m| m.id == question.id)?;
    world.verified(&got.envelope)?;
    page.checked("Scout got it, and the signature is Ann's.");

    page.say("Scout answers. The answer names the question as its parent, so that a conversation is a tree and no pile.");
    let answer = world
        .letter(Who::Scout, ANN, "RESPOND")
        .parent(&question.id)
        .body("14 kilometres, about five hours. The last bus goes at 18:10.");
    let answer = world.post(Who::Scout, "answer", &answer)?;
    page.envelope(&answer.text, &answer.file);
    let got = world.fetch(Who::Ann, "the answer", |m| m.id == answer.id)?;
    world.verified(&got.envelope)?;
    let document = Document::parse(&got.envelope, Reading::Strict);
    let parent = document.envelope().parent.unwrap_or_default();
    require(
        parent == question.id,
        "the answer does not name the question",
    )?;
    page.checked(receipt(&answer));
    page.checked("Ann got it: signed by Scout, an answer to her question.");

    page.say("Somebody on the way changes one word of it: 18:10 becomes 19:10.");
    let forged = got.envelope.replace("18:10", "19:10");
    require(forged != got.envelope, "nothing was changed")?;
    require(
        world.verified(&forged).is_err(),
        "a changed message verifies",
    )?;
    page.checked("The changed answer does not verify: Ann would be told not to act on it.");

    page.fact("question", question.id.clone());
    page.fact("answer", answer.id);
    page.fact("verified", true);
    page.fact("forgery_found", true);
    world.question = question.id;
    Ok(())
}
