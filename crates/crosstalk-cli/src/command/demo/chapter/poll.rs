//! A poll over all three; one of them answers in prose.

use super::super::cast::{ANN, CRITIC, SCOUT};
use super::super::page::Page;
use super::super::world::{Who, World, name_of, relayed, require};
use super::taken;
use crate::failure::Failure;
use crosstalk_envelope::{Document, PublicKey, Reading, Timestamp, id, scan};
use crosstalk_protocol::poll::{Paper, collate, is_result};
use crosstalk_protocol::relay::check_hop;
use serde_json::Value;

const WANTED: &str = "Saturday";

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Which day is it to be? Ann asks all three, herself among them. A poll is one message to several; each answers \
         with a ballot, and the relay tells who asked as soon as everybody has answered.",
    );
    let thread = id::new_ulid();
    let call = world
        .letter(Who::Ann, "VOTERS", "POLL")
        .thread(&thread)
        .meta(
            "routing",
            "Targets",
            format!("[\"{ANN}\", \"{SCOUT}\", \"{CRITIC}\"]"),
        )
        .meta("poll", "Type", "majority")
        .meta("poll", "Options", "Friday | Saturday | Sunday")
        .meta("poll", "Quorum", "2-of-3")
        .body("On which day do we go?");
    let call = world.post(Who::Ann, "poll", &call)?;
    taken(page, &call);

    page.say(
        "Ann and Scout send ballots. Critic writes as people and models do: a sentence, and no ballot. It is read by a \
         careful rule: the first line has to begin with exactly one of the options.",
    );
    let ballots = [
        (Who::Ann, Some("Saturday"), "I have the car on Saturday."),
        (Who::Scout, Some("Friday"), "There are fewer people."),
        (
            Who::Critic,
            None,
            "Saturday, because thunderstorms are likely on Friday.",
        ),
    ];
    for (who, choice, words) in ballots {
        let mut ballot = world
            .letter(who, ANN, "RESPOND")
            .thread(&thread)
            .parent(&call.id)
            .body(words);
        if let Some(choice) = choice {
            ballot = ballot.meta("vote", "Choice", choice);
        }
        let sent = world.post(who, "ballot", &ballot)?;
        if choice.is_none() {
            page.envelope(&sent.text, &sent.file);
        }
    }
    let closed = world.until("the poll is closed", || {
        let poll = world.ask(Who::Ann, async |c| c.poll(&call.id).await);
        let poll = relayed(poll, "the relay does not know the poll")?;
        Ok((poll.get("state").and_then(Value::as_str) == Some("closed")).then_some(poll))
    })?;
    let outcome = closed.get("outcome").and_then(Value::as_str);
    require(
        outcome == Some(WANTED),
        format!("{WANTED} should have come out, and it was {outcome:?}"),
    )?;
    page.poll(closed.clone());
    let prose = by_prose(&closed);
    require(
        prose == [CRITIC],
        format!("read from prose: {prose:?}, and it should be Critic's answer alone"),
    )?;
    page.checked(format!(
        "{} answered in prose; the sentence was read from its first line, and the report says so.",
        prose
            .iter()
            .map(|a| name_of(a))
            .collect::<Vec<_>>()
            .join(", ")
    ));
    let result = world.fetch(Who::Ann, "the result", |m| {
        is_result(&Document::parse(&m.envelope, Reading::Strict))
    })?;
    recount(world, page, &thread, &result.envelope)?;

    let field = |key: &str| closed.get(key).cloned().unwrap_or_default();
    for key in ["outcome", "tally", "quorum", "counted", "missing"] {
        page.fact(key, field(key));
    }
    page.fact("read_from_prose", prose);
    page.fact("recounted", true);
    Ok(())
}

/// Whose answers were read from prose.
fn by_prose(poll: &Value) -> Vec<&str> {
    let counted = poll.get("counted").and_then(Value::as_array);
    counted
        .into_iter()
        .flatten()
        .filter(|b| b.get("read_from").and_then(Value::as_str) == Some("first-line"))
        .filter_map(|b| b.get("from").and_then(Value::as_str))
        .collect()
}

/// Counts once more, from a text file of the conversation alone: it has to be the message that the relay sent.
fn recount(world: &World, page: &mut Page, thread: &str, result: &str) -> Result<(), Failure> {
    let text = world.ask(Who::Ann, async |c| c.export(thread).await);
    let text = relayed(text, "the conversation can't be exported")?;
    let file = world.write("poll.crosstalk", &text)?;
    let key = world.run(world.admin.log_key());
    let key = relayed(key, "the relay does not say its key")?;
    let found = scan(&text, Reading::Strict);
    let papers: Vec<Paper<'_>> = found
        .documents
        .iter()
        .map(|document| Paper {
            hop: hop(document, key.key()),
            ..Paper::of(document)
        })
        .collect();
    let result = Document::parse(result, Reading::Strict);
    let at = result.meta("collation", "At").and_then(Timestamp::parse);
    let again = collate(&papers, None, at);
    let again = again.map_err(|e| Failure::Failed(format!("the poll can't be counted: {e}")))?;
    let again = again.to_envelopes(Some(thread));
    let again = again.map_err(|e| Failure::Failed(format!("the result can't be written: {e}")))?;
    let same = again.iter().any(|text| {
        let own = Document::parse(text, Reading::Strict);
        own.envelope().message == result.envelope().message && own.body_text() == result.body_text()
    });
    require(same, "counted from text, something else comes out")?;
    page.checked(format!(
        "Counted once more from {file} alone: the same result, to the id of the message."
    ));
    Ok(())
}

/// When the relay got a message, if it signed that.
fn hop(document: &Document<'_>, key: &PublicKey) -> Option<Timestamp> {
    check_hop(document, key).ok().map(|hop| hop.received_at)
}
