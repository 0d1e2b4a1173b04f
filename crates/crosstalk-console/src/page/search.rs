//! Search: messages by their words.

use super::{PageResult, Shell, render};
use crate::message::ShownMessage;
use crate::text::Shown;
use crate::visit::Visit;
use askama::Template;

/// How many messages are found at most.
const MOST: usize = 60;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    shell: Shell,
    words: Shown,
    command_words: Shown,
    is_asked: bool,
    found: Vec<ShownMessage>,
    is_cut: bool,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let words: String = visit
        .query
        .text("q")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let found = match words.is_empty() {
        true => Vec::new(),
        false => visit.client.search(&words, MOST).await?,
    };
    render(&SearchPage {
        words: Shown::new(&words),
        command_words: Shown::argument(&words),
        is_asked: !words.is_empty(),
        is_cut: found.len() == MOST,
        found: found
            .iter()
            .map(|m| ShownMessage::of(m, visit.now))
            .collect(),
        shell: visit.shell("Search").await,
    })
}
