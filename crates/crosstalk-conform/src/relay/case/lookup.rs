//! Messages, threads, search, names and agents (HTP-040 to HTP-044).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Letter, Probe, Step, encoded, envelope, need, same, skipped, strict, word, words,
};
use crate::relay::wire::Request;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{CoreHeader, Reading, scan};
use serde_json::{Value, json};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("message-text", &rule::HTTP_MESSAGE, "a message by its id is the envelope", message_text),
    case!("message-json", &rule::HTTP_MESSAGE, "or an object for who accepts JSON", message_json),
    case!("message-strange-id", &rule::HTTP_MESSAGE, "an id is opaque text, and encoded in a path", strange_id),
    case!("thread-tree", &rule::HTTP_THREAD, "a thread is a tree of messages and answers", tree),
    case!("thread-text", &rule::HTTP_THREAD, "as text it is a file of envelopes", thread_text),
    case!("thread-markdown", &rule::HTTP_THREAD, "as Markdown it is for people", markdown),
    case!("thread-list", &rule::HTTP_THREAD, "threads are listed by who takes part and whether they are open", thread_list),
    case!("search-words", &rule::HTTP_SEARCH, "a message is found by its words", search),
    case!("search-nothing", &rule::HTTP_SEARCH, "words that stand nowhere find nothing", search_nothing),
    case!("resolve-nobody", &rule::HTTP_RESOLVE, "a name that leads nowhere is said to", resolve_nobody),
    case!("agents-narrow", &rule::HTTP_AGENTS, "an agent narrows what the operator assigned to it, and takes it back", agents_narrow),
    case!("agents-widen", &rule::HTTP_AGENTS, "an agent that declares what nobody assigned to it does not have it", agents_widen),
];

/// A question and its answer.
async fn exchange(p: &Probe) -> Step<(Letter, Letter)> {
    let (from, to) = (p.address("a"), p.address("b"));
    let question = p.request(&from, &to)?;
    p.take(&question).await?;
    let answer = p.letter("RESPOND", &to, &from, |b| {
        b.thread(&question.thread)
            .parent(&question.id)
            .body("An answer.")
    })?;
    p.take(&answer).await?;
    Ok((question, answer))
}

async fn message_text(p: &Probe) -> Step {
    let (question, _) = exchange(p).await?;
    let answer = p
        .send(Request::get(format!("/crosstalk/messages/{}", question.id)))
        .await?;
    need(answer.status == 200, "200", answer.shown())?;
    let came = envelope(&answer)?;
    same(
        "message",
        &question.id,
        came.header(CoreHeader::Message).unwrap_or("none"),
    )
}

async fn message_json(p: &Probe) -> Step {
    let (_, answer) = exchange(p).await?;
    let came = p
        .json(Request::get(format!("/crosstalk/messages/{}", answer.id)))
        .await?;
    for (key, wanted) in [
        ("id", &answer.id),
        ("thread", &answer.thread),
        ("from", &p.address("b")),
        ("to", &p.address("a")),
        ("intent", &"RESPOND".to_owned()),
    ] {
        same(key, wanted, word(&came, key))?;
    }
    strict(word(&came, "envelope")).map(drop)
}

async fn strange_id(p: &Probe) -> Step {
    let id = format!("{}/50%&ü?#", p.word("id"));
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.message(&id)
    })?;
    p.take(&letter).await?;
    let path = format!("/crosstalk/messages/{}", encoded(&id));
    let came = p.json(Request::get(path)).await?;
    same("id", &id, word(&came, "id"))
}

async fn tree(p: &Probe) -> Step {
    let (question, answer) = exchange(p).await?;
    let path = format!("/crosstalk/threads/{}", question.thread);
    let thread = p.json(Request::get(path)).await?;
    let id = thread.pointer("/thread/id").and_then(Value::as_str);
    same("thread.id", &question.thread, id.unwrap_or("none"))?;
    let root = thread.pointer("/messages/0").cloned().unwrap_or_default();
    same("messages[0].id", &question.id, word(&root, "id"))?;
    let below = root.pointer("/answers/0").cloned().unwrap_or_default();
    same("messages[0].answers[0].id", &answer.id, word(&below, "id"))
}

async fn thread_text(p: &Probe) -> Step {
    let (question, reply) = exchange(p).await?;
    let path = format!("/crosstalk/threads/{}", question.thread);
    let answer = p.send(Request::get(path).accept("text/plain")).await?;
    need(
        answer.status == 200 && answer.kind() == "text/plain",
        "200 and text/plain",
        answer.shown(),
    )?;
    let text = answer.text();
    let found = scan(&text, Reading::Strict);
    let came: Vec<&str> = found
        .documents
        .iter()
        .filter_map(|d| d.header(CoreHeader::Message))
        .collect();
    let wanted = [question.id.as_str(), reply.id.as_str()];
    need(
        came == wanted && found.refused.is_empty(),
        format!("a file with {wanted:?}"),
        format!("{came:?}"),
    )
}

async fn markdown(p: &Probe) -> Step {
    let (question, _) = exchange(p).await?;
    let path = format!("/crosstalk/threads/{}", question.thread);
    let answer = p.send(Request::get(path).accept("text/markdown")).await?;
    let good = answer.status == 200
        && answer.kind() == "text/markdown"
        && answer.text().contains("An answer.");
    need(good, "200 and Markdown with what was said", answer.shown())
}

async fn thread_ids(p: &Probe, more: &str) -> Step<Vec<String>> {
    let path = format!("/crosstalk/threads?with={}{more}", encoded(&p.address("a")));
    let list = p.json(Request::get(path)).await?;
    let threads = list.get("threads").and_then(Value::as_array);
    need(
        threads.is_some(),
        "an object with `threads`",
        list.to_string(),
    )?;
    Ok(threads
        .into_iter()
        .flatten()
        .map(|t| word(t, "id").to_owned())
        .collect())
}

async fn thread_list(p: &Probe) -> Step {
    let (first, _) = exchange(p).await?;
    let second = p.request(&p.address("a"), &p.address("c"))?;
    p.take(&second).await?;
    let close = p.letter("CLOSE", &p.address("a"), &p.address("b"), |b| {
        b.thread(&first.thread)
    })?;
    p.take(&close).await?;
    for (more, wanted) in [
        ("&open=true", vec![&second.thread]),
        ("&open=false", vec![&first.thread]),
        ("&limit=1", vec![&first.thread]),
        ("&limit=1&skip=1", vec![&second.thread]),
        ("", vec![&first.thread, &second.thread]),
    ] {
        let came = thread_ids(p, more).await?;
        let same = came.iter().collect::<Vec<_>>() == wanted;
        need(
            same,
            format!("{wanted:?} with `{more}`, the latest first"),
            format!("{came:?}"),
        )?;
    }
    Ok(())
}

async fn search(p: &Probe) -> Step {
    let unique = p.word("word").replace('-', "");
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.body(format!("Where did {unique} go?"))
    })?;
    p.take(&letter).await?;
    for words in [unique.clone(), format!("{unique} where")] {
        let path = format!("/crosstalk/search?q={}", encoded(&words));
        let found = p.json(Request::get(path)).await?;
        let ids = crate::relay::probe::ids(&found);
        need(
            ids == [letter.id.clone()],
            format!("[{}] for `{words}`", letter.id),
            found.to_string(),
        )?;
    }
    Ok(())
}

async fn search_nothing(p: &Probe) -> Step {
    // There is something that could be found.
    p.take(&p.request(&p.address("a"), &p.address("b"))?)
        .await?;
    let path = format!("/crosstalk/search?q={}", p.word("word").replace('-', ""));
    let found = p.json(Request::get(path)).await?;
    let list = found.get("messages").and_then(Value::as_array);
    need(
        list.is_some_and(Vec::is_empty),
        "{\"messages\": []}",
        found.to_string(),
    )
}

async fn resolve_nobody(p: &Probe) -> Step {
    let name = p.word("name");
    let found = p
        .json(Request::get(format!("/crosstalk/resolve?name={name}")))
        .await?;
    same("name", &name, word(&found, "name"))?;
    same("by", "nobody", word(&found, "by"))?;
    let good = found.get("address").is_none_or(Value::is_null)
        && found.get("steps").is_some_and(Value::is_array);
    need(good, "no address, and the steps", found.to_string())
}

/// What the listing says that an agent can do.
async fn capabilities(p: &Probe, address: &str) -> Step<Vec<Vec<String>>> {
    let all = p.json(Request::get("/crosstalk/agents")).await?;
    let list = all.get("agents").and_then(Value::as_array);
    let own = list
        .into_iter()
        .flatten()
        .filter(|a| word(a, "address") == address);
    Ok(own.map(|a| words(a, "capabilities")).collect())
}

async fn declare(p: &Probe, address: &str, capabilities: &[&str]) -> Step<Vec<String>> {
    let agent = json!({"address": address, "capabilities": capabilities});
    let said = p
        .json(Request::new("PUT", "/crosstalk/agents").json(&agent))
        .await?;
    Ok(words(&said, "capabilities"))
}

/// A relay that is to be tested with agents assigns these to this one, and nothing to others.
async fn agents_narrow(p: &Probe) -> Step {
    let (address, both) = ("claude://conform/narrowed", ["conform-one", "conform-two"]);
    if declare(p, address, &both).await? != both {
        return skipped(format!("this relay does not assign {both:?} to {address}"));
    }
    for wanted in [&both[..1], &[], &both] {
        let said = declare(p, address, wanted).await?;
        need(said == wanted, format!("{wanted:?}"), format!("{said:?}"))?;
        let listed = capabilities(p, address).await?;
        need(
            listed == [wanted],
            format!("{address} once, with {wanted:?}"),
            format!("{listed:?}"),
        )?;
    }
    Ok(())
}

async fn agents_widen(p: &Probe) -> Step {
    let (address, skill) = (p.address("agent"), p.word("skill"));
    let said = declare(p, &address, &[&skill]).await?;
    let listed = capabilities(p, &address).await?;
    need(
        said.is_empty() && listed.iter().all(Vec::is_empty),
        "no capability that the operator did not assign",
        format!("{said:?}, then {listed:?}"),
    )
}
