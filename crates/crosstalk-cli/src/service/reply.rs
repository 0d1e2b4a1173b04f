//! The answer to a message: who answers whom, and what is said before it goes out.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::Content;
use crate::service::deliver::SendOptions;
use crate::service::lookup::is_sound;
use crate::service::workspace::Workspace;
use crate::view;
use crosstalk_envelope::Intent;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::poll::PollCall;
use crosstalk_protocol::store::{Record, Side, is_same_party};

/// Writes and sends the answer to a message.
pub(crate) fn answer(
    console: &mut Console,
    workspace: &Workspace,
    answered: &Record,
    content: &Content,
    delivery: &SendOptions,
) -> Result<Exit, Failure> {
    delivery.require_key(workspace)?;
    if !is_sound(answered.verdict) {
        console.warning("you answer a message on which nobody may act")?;
    }
    let (sender, receiver) = sides(workspace, answered, content)?;
    if answered.side != Side::Mine
        && !is_same_party(&receiver, &answered.sender)
        && !is_same_party(&receiver, &answered.receiver)
    {
        let from = &answered.sender;
        console.note(&format!(
            "the message asks for its answer at {receiver} (X-Reply-To), not at {from}"
        ))?;
    }
    warn_of_stranger(console, answered, (&sender, content))?;
    let receivers = std::slice::from_ref(&receiver);
    let message = content.write(console, workspace, (&sender, receivers), Some(answered))?;
    message.dispatch(console, workspace, delivery)
}

/// Where the answer to a message goes: where its sender wants it. Answers to a poll are for who asked; elsewhere goes the result.
pub(crate) fn answers_go_to(answered: &Record) -> String {
    let document = answered.document();
    let is_poll = answered.meaning == Some(Intent::Poll);
    let reply_to = document.envelope().routing().reply_to;
    let reply_to = reply_to.filter(|_| !is_poll);
    reply_to.map_or(answered.sender.clone(), |a| a.as_str().to_owned())
}

/// Sender and receiver: the one who was asked answers; after a message of one's own, the sender stays; and into a
/// conversation of others one speaks in one's own name.
fn sides(
    workspace: &Workspace,
    answered: &Record,
    content: &Content,
) -> Result<(String, String), Failure> {
    let document = answered.document();
    let routing = document.envelope().routing();
    let is_poll = answered.meaning == Some(Intent::Poll);
    let mine = workspace.mine()?;
    let back = answers_go_to(answered);
    let targets = routing.target_list();
    let own = targets.iter().find(|t| mine.has(t));
    // It was fetched from the inbox of another address.
    let is_for_me_alone = answered.side == Side::ToMe && targets.is_empty();
    let is_mine = answered.side == Side::Mine || (mine.has(&answered.sender) && !is_for_me_alone);
    let (sender, receiver) = match own.filter(|_| is_poll && !content.corrects()) {
        Some(own) => (own.to_string(), back),
        None if is_poll && content.names_sender() => (String::new(), back),
        None if is_mine => (answered.sender.clone(), answered.receiver.clone()),
        None if mine.has(&answered.receiver) || is_for_me_alone => {
            (answered.receiver.clone(), back)
        }
        None => match targets.as_slice() {
            [only] if is_poll && answered.side == Side::ToMe => (only.to_string(), back),
            _ => (workspace.config.sender()?, back),
        },
    };
    match content.names_sender() {
        true => Ok((content.sender(&workspace.config)?, receiver)),
        false => Ok((sender, receiver)),
    }
}

/// A ballot of somebody who is not asked does not count: said before it is sent.
fn warn_of_stranger(
    console: &mut Console,
    answered: &Record,
    (sender, content): (&str, &Content),
) -> Result<(), Failure> {
    if answered.meaning != Some(Intent::Poll) || content.corrects() {
        return Ok(());
    }
    let document = answered.document();
    let call = PollCall::read(&document, &answered.id, None);
    if call.asks(sender) {
        return Ok(());
    }
    console.warning(&format!(
        "{} is no voter, so this is no ballot: answer with --from NAME for one of {}",
        escape(sender),
        view::names(&call.invited)
    ))
}
