//! Dead letters, and messages in quarantine: what was not delivered, why, and trying it again.

use super::{PageResult, Shell, render};
use crate::fields::encode;
use crate::text::{Moment, PartyName, Shown};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use crosstalk_api::client::{DeadLetterView, QuarantinedView};
use crosstalk_envelope::Timestamp;

/// How many are on a page.
const MOST: usize = 100;

/// A dead letter.
struct LetterRow {
    path: String,
    id: Shown,
    command_id: Shown,
    from: PartyName,
    to: PartyName,
    by: Shown,
    attempts: u32,
    reason: Shown,
    at: Option<Moment>,
}

impl LetterRow {
    fn of(letter: &DeadLetterView, now: Timestamp) -> Self {
        let reason = letter.reason.as_deref().unwrap_or("no reason given");
        Self {
            path: encode(&letter.id),
            id: Shown::short(&letter.id, 60),
            command_id: Shown::argument(&letter.id),
            from: PartyName::of(&letter.from),
            to: PartyName::of(&letter.to),
            by: Shown::new(&letter.by),
            attempts: letter.attempts,
            reason: Shown::short(reason, 400),
            at: letter.failed_at.as_deref().map(|at| Moment::parse(at, now)),
        }
    }
}

/// A message that could not be indexed.
struct QuarantineRow {
    id: Shown,
    seq: u64,
    reason: Shown,
}

impl QuarantineRow {
    fn of(message: &QuarantinedView) -> Self {
        Self {
            id: Shown::short(&message.id, 60),
            seq: message.seq,
            reason: Shown::short(&message.reason, 400),
        }
    }
}

#[derive(Template)]
#[template(path = "dead.html")]
struct DeadPage {
    shell: Shell,
    letters: Vec<LetterRow>,
    quarantine: Vec<QuarantineRow>,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let letters = visit.client.dead(MOST).await?;
    let quarantine = visit.client.quarantine(MOST).await?;
    render(&DeadPage {
        letters: letters
            .iter()
            .map(|l| LetterRow::of(l, visit.now))
            .collect(),
        quarantine: quarantine.iter().map(QuarantineRow::of).collect(),
        shell: visit.shell("Dead letters").await,
    })
}

/// Has the deliveries of a message tried again.
pub(crate) async fn requeue(Path(id): Path<String>, Posted { visit, .. }: Posted) -> PageResult {
    visit.client.requeue(&id).await?;
    Ok(redirect("/dead?did=requeued"))
}

/// Indexes quarantined messages again.
pub(crate) async fn retry(Posted { visit, .. }: Posted) -> PageResult {
    let retried = visit.client.retry_quarantine().await?;
    let answer: Response = match retried.left {
        0 => redirect("/dead?did=released"),
        _ => redirect("/dead?did=still-quarantined"),
    };
    Ok(answer)
}
