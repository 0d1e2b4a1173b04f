//! The inbox: what waits for the person, most urgent first.

use super::{PageError, PageResult, Shell, render};
use crate::message::ShownMessage;
use crate::text::{PartyName, Shown};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use std::collections::BTreeSet;
use std::time::Duration;

/// How many messages of an inbox are on a page.
const MOST: usize = 50;
/// How many addresses are offered.
const SUGGESTED: usize = 40;

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxScreen {
    shell: Shell,
    messages: Vec<ShownMessage>,
    addresses: Vec<PartyName>,
    /// The owner of the inbox, where there are several.
    only: Option<Shown>,
    chooses_address: bool,
    suggested: Vec<Shown>,
    /// The link to the messages after these.
    more: Option<String>,
    first_address: Shown,
    relay_url: String,
    /// The same as an argument of a command.
    send_to: Shown,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let addresses = visit.addresses();
    let only = visit
        .query
        .get("for")
        .filter(|only| addresses.iter().any(|a| a == only));
    let shown: Vec<&String> = addresses
        .iter()
        .filter(|a| only.is_none_or(|only| only == *a))
        .collect();
    // Pages go by the cursor of one inbox.
    let after = visit.query.get("after").filter(|_| shown.len() == 1);
    let (mut messages, mut more) = (Vec::new(), None);
    for address in &shown {
        let page = visit
            .client
            .inbox(address, after, MOST, Duration::ZERO)
            .await?;
        if page.messages.len() == MOST {
            more = Some(format!(
                "/inbox?for={}&after={}",
                crate::fields::encode(address),
                crate::fields::encode(&page.cursor)
            ));
        }
        messages.extend(page.messages.iter().map(|m| ShownMessage::of(m, visit.now)));
    }
    messages.sort_by_key(|m| m.rank);
    let chooses_address = visit.chooses_address();
    let suggested = match chooses_address {
        true => suggestions(&visit).await,
        false => Vec::new(),
    };
    let first_address = addresses.first().map_or("human://you", String::as_str);
    render(&InboxScreen {
        relay_url: visit.console.host.url(&visit.headers),
        shell: visit.shell("Inbox").await,
        messages,
        first_address: Shown::new(first_address),
        send_to: Shown::argument(first_address),
        only: only.map(Shown::new),
        more,
        chooses_address,
        suggested: suggested.iter().map(|a| Shown::new(a)).collect(),
        addresses: addresses.iter().map(|a| PartyName::of(a)).collect(),
    })
}

/// Addresses that the relay knows and the person may read for, people first.
async fn suggestions(visit: &Visit) -> Vec<String> {
    let mut all = BTreeSet::new();
    if let Ok(agents) = visit.client.agents().await {
        all.extend(agents.into_iter().map(|a| a.address));
    }
    if let Ok(list) = visit.client.threads(None, true, SUGGESTED, None).await {
        all.extend(list.threads.into_iter().flat_map(|t| t.parties));
    }
    let may = |a: &String| visit.peer.is_admin() || visit.peer.speaks_for(a);
    let mut all: Vec<String> = all.into_iter().filter(may).collect();
    all.sort_by_key(|address| !crosstalk_protocol::relay::is_human(address));
    all.truncate(SUGGESTED);
    all
}

/// Remembers whose inbox the person wants to see, if they may.
pub(crate) async fn choose(Posted { visit, form }: Posted) -> PageResult {
    let address = form.get("address").map(|a| a.trim().to_owned());
    if let Some(address) = &address {
        visit.client.inbox(address, None, 1, Duration::ZERO).await?;
    }
    visit.console.sign_ins.set_address(&visit.secret, address);
    Ok(redirect("/inbox"))
}

/// Acknowledges messages: they leave the inbox. Each is an address and an id, on a line of its own.
pub(crate) async fn done(Posted { visit, form }: Posted) -> PageResult {
    for done in form.all("done") {
        let (address, id) = done
            .split_once('\n')
            .ok_or_else(|| PageError::format("The form names no message."))?;
        visit.client.acknowledge(address, &[id]).await?;
    }
    Ok(redirect("/inbox?did=done"))
}
