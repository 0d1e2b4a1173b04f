//! Search: messages by their words.

use super::{PageError, PageResult, Shell, render_with};
use crate::message::ShownMessage;
use crate::text::Shown;
use crate::visit::Visit;
use askama::Template;
use crosstalk_api::client::ClientError;
use crosstalk_envelope::Explanation;

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
    fault: Option<Explanation>,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let words: String = visit
        .query
        .text("q")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let mut fault = None;
    let found = match words.is_empty() {
        true => Vec::new(),
        false => match visit.client.search(&words, MOST).await {
            Ok(found) => found,
            // Signs alone, for example: the person corrects what they typed.
            Err(ClientError::Rejected(why)) if why.status == 400 => {
                fault = Some(PageError::from(ClientError::Rejected(why)).explanation());
                Vec::new()
            }
            Err(fault) => return Err(fault.into()),
        },
    };
    let status = if fault.is_some() { 400 } else { 200 };
    let page = SearchPage {
        words: Shown::new(&words),
        command_words: Shown::argument(&words),
        is_asked: !words.is_empty(),
        is_cut: found.len() == MOST,
        found: found
            .iter()
            .map(|m| ShownMessage::of(m, visit.now))
            .collect(),
        shell: visit.shell("Search").await,
        fault,
    };
    Ok(render_with(&page, status))
}
