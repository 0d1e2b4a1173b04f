//! Conversations: a list of them, and one to read and to answer.

use super::reply::{IntentChoice, intent_choices};
use super::{PageError, PageResult, Shell, render};
use crate::fields::encode;
use crate::message::{DeliveryLine, ShownMessage};
use crate::text::{Moment, PartyName, Shown};
use crate::visit::Visit;
use askama::Template;
use axum::extract::Path;
use crosstalk_api::client::ThreadNode;
use crosstalk_api::thread::ThreadView;
use crosstalk_envelope::{Intent, Timestamp};
use futures_util::future::join_all;

/// How many conversations are on a page.
const LISTED: usize = 60;
/// How many messages of a conversation are on a page.
const SHOWN: usize = 50;

/// A conversation in a list.
struct ThreadRow {
    path: String,
    context: Shown,
    parties: Vec<PartyName>,
    messages: u64,
    is_open: bool,
    updated: Moment,
}

impl ThreadRow {
    fn of(thread: &ThreadView, now: Timestamp) -> Self {
        let context = thread.context.as_deref().unwrap_or("");
        Self {
            path: encode(&thread.id),
            context: Shown::short(context, 140),
            parties: thread
                .parties
                .iter()
                .take(4)
                .map(|p| PartyName::of(p))
                .collect(),
            messages: thread.messages,
            is_open: thread.open,
            updated: Moment::parse(&thread.updated_at, now),
        }
    }
}

#[derive(Template)]
#[template(path = "threads.html")]
struct ThreadsPage {
    shell: Shell,
    threads: Vec<ThreadRow>,
    is_open_only: bool,
    with: Shown,
    more: Option<String>,
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let is_open_only = visit.query.get("open").is_some();
    let (with, after) = (visit.query.get("with"), visit.query.get("after"));
    let list = visit
        .client
        .threads(with, is_open_only, LISTED, after)
        .await?;
    let more = list.cursor.map(|cursor| {
        let open = if is_open_only { "&open=1" } else { "" };
        let with = with.map_or(String::new(), |w| format!("&with={}", encode(w)));
        format!("/threads?after={}{open}{with}", encode(&cursor))
    });
    render(&ThreadsPage {
        shell: visit.shell("Conversations").await,
        threads: list
            .threads
            .iter()
            .map(|t| ThreadRow::of(t, visit.now))
            .collect(),
        is_open_only,
        with: Shown::new(with.unwrap_or("")),
        more,
    })
}

/// A message of a conversation, with what became of it.
struct Turn {
    message: ShownMessage,
    deliveries: Vec<DeliveryLine>,
    /// Whether the person who reads wrote it.
    is_own: bool,
    /// The message that it answers, if that is another one than the one before.
    answers: Option<AnsweredTurn>,
    /// The answers to this question, where several have answered it.
    compared: Vec<ShownMessage>,
}

/// The message that another one answers.
struct AnsweredTurn {
    path: String,
    snippet: Shown,
}

#[derive(Template)]
#[template(path = "thread.html")]
struct ThreadPage {
    shell: Shell,
    path: String,
    context: Shown,
    parties: Vec<PartyName>,
    is_open: bool,
    total: usize,
    turns: Vec<Turn>,
    /// The link to the messages before these.
    earlier: Option<String>,
    /// The link to the messages after these.
    later: Option<String>,
    /// The message that an answer is for; none if nothing here takes one.
    question: Option<ShownMessage>,
    /// Whether that is an own message, which is followed by another one to the same party.
    is_follow_up: bool,
    reply_from: Shown,
    reply_to: Shown,
    /// The form for a new message to the same party.
    new_path: String,
    intents: Vec<IntentChoice>,
    /// The intent that is chosen at first.
    chosen: &'static str,
}

/// The messages of a tree in the order in which they came, each with the one that it answers.
fn flatten(nodes: Vec<ThreadNode>) -> Vec<(ThreadNode, Option<String>)> {
    let mut out = Vec::new();
    let mut open: Vec<(ThreadNode, Option<String>)> =
        nodes.into_iter().rev().map(|n| (n, None)).collect();
    while let Some((mut node, parent)) = open.pop() {
        let answers = std::mem::take(&mut node.answers);
        let id = node.message.id.clone();
        open.extend(answers.into_iter().rev().map(|a| (a, Some(id.clone()))));
        out.push((node, parent));
    }
    out.sort_by(|(a, _), (b, _)| a.message.received_at.cmp(&b.message.received_at));
    out
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let tree = visit.client.thread(&id).await?;
    let now = visit.now;
    let all = flatten(tree.messages);
    let total = all.len();
    // The latest ones, unless others are asked for.
    let from = match visit.query.get("from") {
        Some(from) => from
            .parse()
            .map_err(|_| PageError::format("`from` is no number."))?,
        None => total.saturating_sub(SHOWN),
    };
    let messages: Vec<(ShownMessage, Option<String>)> = all
        .iter()
        .skip(from)
        .take(SHOWN)
        .map(|(node, parent)| (ShownMessage::of(&node.message, now), parent.clone()))
        .collect();
    let statuses = messages.iter().map(|(m, _)| visit.client.status(&m.raw_id));
    let statuses = join_all(statuses).await;
    if visit.is_of_person() {
        mark_read(&visit, &messages).await;
    }
    let mut turns: Vec<Turn> = Vec::new();
    for ((message, parent), status) in messages.into_iter().zip(statuses) {
        let deliveries = status.map_or_else(|_| Vec::new(), |s| s.deliveries);
        let before = turns.last().map(|t| &t.message.raw_id);
        let answers = parent
            .as_ref()
            .filter(|p| before != Some(p))
            .and_then(|parent| {
                let question = turns.iter().find(|t| t.message.raw_id == *parent)?;
                Some(AnsweredTurn {
                    path: encode(parent),
                    snippet: question.message.snippet.clone(),
                })
            });
        if let Some(parent) = &parent
            && let Some(question) = turns.iter_mut().find(|t| t.message.raw_id == *parent)
            && message.intent.tone == "answer"
        {
            question.compared.push(message.clone());
        }
        turns.push(Turn {
            is_own: visit.is_own(&message.raw_from),
            deliveries: deliveries
                .iter()
                .map(|d| DeliveryLine::of(d, now))
                .collect(),
            message,
            answers,
            compared: Vec::new(),
        });
    }
    for turn in &mut turns {
        if turn.compared.len() < 2 {
            turn.compared.clear();
        }
    }
    let question = turns.iter().rev().find(|t| t.message.asks && !t.is_own);
    let last = || turns.iter().rev().find(|t| t.message.takes_reply);
    let question = question.or_else(last);
    let is_follow_up = question.is_some_and(|t| t.is_own);
    let (reply_from, reply_to) = match question.or(turns.last()) {
        Some(t) if t.is_own => (t.message.raw_from.clone(), t.message.raw_to.clone()),
        Some(t) => (t.message.raw_to.clone(), t.message.raw_from.clone()),
        None => (String::new(), String::new()),
    };
    let question = question.map(|t| t.message.clone());
    let chosen = if is_follow_up {
        Intent::Request
    } else {
        Intent::Respond
    };
    let page = |from: usize| format!("/threads/{}?from={from}", encode(&id));
    let earlier = (from > 0).then(|| page(from.saturating_sub(SHOWN)));
    let next = from.saturating_add(SHOWN);
    let later = (next < total).then(|| page(next));
    render(&ThreadPage {
        shell: visit.shell("Conversation").await,
        path: encode(&id),
        context: Shown::short(
            tree.thread.context.as_deref().unwrap_or("Conversation"),
            160,
        ),
        parties: tree
            .thread
            .parties
            .iter()
            .map(|p| PartyName::of(p))
            .collect(),
        is_open: tree.thread.open,
        total,
        turns,
        earlier,
        later,
        reply_from: Shown::new(&reply_from),
        reply_to: Shown::new(&reply_to),
        new_path: format!("/new?to={}", encode(&reply_to)),
        intents: intent_choices(),
        chosen: chosen.as_str(),
        is_follow_up,
        question,
    })
}

/// Marks the messages of a page as read by the person whose inbox they are in.
async fn mark_read(visit: &Visit, messages: &[(ShownMessage, Option<String>)]) {
    for address in visit.addresses() {
        let own = messages.iter().filter(|(m, _)| m.raw_to == address);
        let ids: Vec<&str> = own.map(|(m, _)| m.raw_id.as_str()).collect();
        if !ids.is_empty() {
            // An acknowledged message stays so, and one that is in no inbox does not change.
            let _ = visit.client.mark(&address, &ids, "read").await;
        }
    }
}
