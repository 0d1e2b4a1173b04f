//! Polls (HTP-049): listed, counted, closed.

use super::{case, who};
use crate::relay::Case;
use crate::relay::probe::{Letter, Probe, Step, by, encoded, failed, need, object, same, word};
use crate::relay::wire::Request;
use crosstalk_envelope::registry::rule;
use serde_json::Value;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("poll-listed", &rule::HTTP_POLLS, "a poll is listed, and open", listed),
    case!("poll-counted", &rule::HTTP_POLLS, "an answer is counted, and that of somebody else is not", counted),
    case!("poll-closed", &rule::HTTP_POLLS, "a poll is closed once, its result is in the inbox, and later answers change nothing", closed),
    case!("poll-others", &rule::HTTP_POLLS, "only who asked closes a poll, and who has no part in it does not see it", others),
];

/// Asks two which of two it is.
async fn asked(p: &Probe) -> Step<Letter> {
    let targets = format!("[{}, {}]", p.address("b"), p.address("c"));
    let poll = p.letter("POLL", &p.person("a"), &p.address("all"), |b| {
        b.meta("routing", "Targets", targets)
            .meta("poll", "Type", "plurality")
            .meta("poll", "Options", "Mon | Tue")
    })?;
    p.take(&poll).await?;
    Ok(poll)
}

async fn says(p: &Probe, poll: &Letter, who: &str, choice: &str) -> Step {
    let answer = p.letter("RESPOND", &p.address(who), &p.person("a"), |b| {
        b.thread(&poll.thread)
            .parent(&poll.id)
            .meta("vote", "Choice", choice)
    })?;
    p.take(&answer).await.map(drop)
}

fn path(poll: &Letter, more: &str) -> String {
    format!("/crosstalk/polls/{}{more}", encoded(&poll.id))
}

async fn standing(p: &Probe, poll: &Letter) -> Step<Value> {
    p.json(Request::get(path(poll, ""))).await
}

async fn close(p: &Probe, poll: &Letter) -> Step<Value> {
    p.json(Request::new("POST", path(poll, "/close"))).await
}

/// How many chose something.
fn votes(standing: &Value, option: &str) -> Option<u64> {
    standing.get("tally")?.get(option)?.as_u64()
}

fn need_votes(standing: &Value, monday: u64, tuesday: u64) -> Step {
    let votes = (votes(standing, "Mon"), votes(standing, "Tue"));
    need(
        votes == (Some(monday), Some(tuesday)),
        format!("{monday} for Mon and {tuesday} for Tue"),
        standing.to_string(),
    )
}

async fn listed(p: &Probe) -> Step {
    let poll = asked(p).await?;
    let all = p.json(Request::get("/crosstalk/polls?limit=500")).await?;
    let list = all.get("polls").and_then(Value::as_array);
    let Some(found) = list.and_then(|l| l.iter().find(|o| word(o, "message") == poll.id)) else {
        return failed("the poll among those that are listed", all.to_string());
    };
    same("state", "open", word(found, "state"))?;
    same("from", &p.person("a"), word(found, "from"))?;
    let invited = found.get("invited").and_then(Value::as_u64);
    need(invited == Some(2), "two who are invited", found.to_string())?;
    close(p, &poll).await.map(drop)
}

async fn counted(p: &Probe) -> Step {
    let poll = asked(p).await?;
    says(p, &poll, "b", "Mon").await?;
    says(p, &poll, "d", "Tue").await?;
    let found = standing(p, &poll).await?;
    same("state", "open", word(&found, "state"))?;
    need_votes(&found, 1, 0)?;
    let not = found.get("not_counted").and_then(Value::as_array);
    need(
        not.is_some_and(|n| n.len() == 1),
        "one answer that is not counted",
        found.to_string(),
    )?;
    close(p, &poll).await.map(drop)
}

async fn closed(p: &Probe) -> Step {
    let poll = asked(p).await?;
    says(p, &poll, "b", "Mon").await?;
    let first = close(p, &poll).await?;
    same("state", "closed", word(&first, "state"))?;
    same("outcome", "Mon", word(&first, "outcome"))?;
    says(p, &poll, "c", "Tue").await?;
    says(p, &poll, "b", "Tue").await?;
    for again in [standing(p, &poll).await?, close(p, &poll).await?] {
        same(
            "closed_at",
            word(&first, "closed_at"),
            word(&again, "closed_at"),
        )?;
        same("outcome", "Mon", word(&again, "outcome"))?;
        need_votes(&again, 1, 0)?;
    }
    let inbox = p.inbox(&p.person("a")).await?.to_string();
    need(
        inbox.matches("meta: collation").count() == 1,
        "one result in the inbox of who asked",
        inbox,
    )
}

async fn others(p: &Probe) -> Step {
    let poll = asked(p).await?;
    let (_, invited) = who::make(p, "invited", "agent", &p.address("b")).await?;
    let (_, stranger) = who::make(p, "stranger", "agent", &p.address("d")).await?;
    for (token, request, status) in [
        (&invited, Request::get(path(&poll, "")), 200),
        (&invited, Request::new("POST", path(&poll, "/close")), 403),
        (&stranger, Request::get(path(&poll, "")), 404),
        (&stranger, Request::new("POST", path(&poll, "/close")), 404),
    ] {
        let request = request.accept("application/json");
        let answer = p.send(by(token, request)).await?;
        need(answer.status == status, status.to_string(), answer.shown())?;
    }
    let answer = p.send(Request::get(path(&poll, "")).accept("application/json"));
    let found = object(&answer.await?, 200)?;
    same("state", "open", word(&found, "state"))?;
    close(p, &poll).await.map(drop)
}
