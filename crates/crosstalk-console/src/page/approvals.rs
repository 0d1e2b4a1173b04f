//! Approvals: messages that wait for a person, with their exact text, and one decision about each.

use super::{PageError, PageResult, Shell, render, render_with};
use crate::badge::SignatureBadge;
use crate::fields::encode;
use crate::text::{Moment, PartyName, Piece, Shown, pieces};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use axum::extract::Path;
use crosstalk_api::client::{Approval, ApprovalDecision, ClientError, DecisionView};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Explanation, Reading, Timestamp};

/// How many held messages are on a page.
const MOST: usize = 100;

/// A held message in the list.
struct HeldRow {
    path: String,
    from: PartyName,
    to: PartyName,
    why: Shown,
    context: Shown,
    snippet: Shown,
    badge: SignatureBadge,
    at: Moment,
    ends: Option<Moment>,
}

impl HeldRow {
    fn of(held: &Approval, now: Timestamp) -> Self {
        let document = Document::parse(held.envelope.as_deref().unwrap_or(""), Reading::Strict);
        let context = document.envelope().context.unwrap_or("").to_owned();
        Self {
            path: encode(&held.id),
            from: PartyName::of(&held.from),
            to: PartyName::of(&held.to),
            why: Shown::short(&held.why, 100),
            context: Shown::short(&context, 100),
            snippet: Shown::short(&document.body_text(), 140),
            badge: SignatureBadge::of(Some(&held.signature)),
            at: Moment::parse(&held.received_at, now),
            ends: held.ends_at.as_deref().map(|at| Moment::parse(at, now)),
        }
    }
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    shell: Shell,
    held: Vec<HeldRow>,
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let held = visit.client.approvals(MOST).await?;
    render(&ApprovalsPage {
        held: held.iter().map(|h| HeldRow::of(h, visit.now)).collect(),
        shell: visit.shell("Approvals").await,
    })
}

/// A recipient, and the way there.
struct RecipientLine {
    to: PartyName,
    by: Shown,
}

/// A decision that was made.
struct DecisionLine {
    word: &'static str,
    tone: &'static str,
    by: Shown,
    at: Moment,
    reason: Shown,
}

impl DecisionLine {
    fn of(decided: &DecisionView, now: Timestamp) -> Self {
        let (word, tone) = match decided.decision.as_str() {
            "approved" => ("approved", "ok"),
            "refused" => ("rejected", "bad"),
            _ => ("lapsed", "warn"),
        };
        Self {
            word,
            tone,
            by: Shown::new(&decided.by),
            at: Moment::parse(&decided.at, now),
            reason: Shown::new(decided.reason.as_deref().unwrap_or("")),
        }
    }
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    shell: Shell,
    path: String,
    id: Shown,
    command_id: Shown,
    thread: String,
    from: PartyName,
    to: PartyName,
    badge: SignatureBadge,
    pkid: Option<Shown>,
    handed_in_by: Shown,
    recipients: Vec<RecipientLine>,
    why: Shown,
    deciders: Vec<PartyName>,
    at: Moment,
    ends: Option<Moment>,
    /// Exactly as it came, with what is hidden made visible; nothing after the decision.
    text: Option<Vec<Piece>>,
    digest: Shown,
    raw: Shown,
    decided: Option<DecisionLine>,
    fault: Option<Explanation>,
}

impl ApprovalPage {
    async fn of(visit: &Visit, held: &Approval, fault: Option<Explanation>) -> Self {
        let now = visit.now;
        Self {
            shell: visit.shell("Approval").await,
            path: encode(&held.id),
            id: Shown::new(&held.id),
            command_id: Shown::argument(&held.id),
            thread: encode(&held.thread),
            from: PartyName::of(&held.from),
            to: PartyName::of(&held.to),
            badge: SignatureBadge::of(Some(&held.signature)),
            pkid: held.pkid.as_deref().map(Shown::new),
            handed_in_by: Shown::new(&held.handed_in_by),
            recipients: held
                .recipients
                .iter()
                .map(|r| RecipientLine {
                    to: PartyName::of(&r.to),
                    by: Shown::new(&r.by),
                })
                .collect(),
            why: Shown::new(&held.why),
            deciders: held.deciders.iter().map(|d| PartyName::of(d)).collect(),
            at: Moment::parse(&held.received_at, now),
            ends: held.ends_at.as_deref().map(|at| Moment::parse(at, now)),
            text: held.envelope.as_deref().map(pieces),
            digest: Shown::new(&held.digest),
            raw: Shown::new(&held.raw),
            decided: held.decided.as_ref().map(|d| DecisionLine::of(d, now)),
            fault,
        }
    }
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let held = visit.client.approval(&id).await?;
    render(&ApprovalPage::of(&visit, &held, None).await)
}

/// Decides once, about exactly the message that the page showed: its digests come back with the form.
pub(crate) async fn decide(Path(id): Path<String>, Posted { visit, form }: Posted) -> PageResult {
    let digest = |name: &str| {
        Digest::parse(form.text(name)).ok_or_else(|| PageError::format("The form has no digest."))
    };
    let reason = form.get("reason").map(str::trim).filter(|r| !r.is_empty());
    let refused = match (form.text("decision"), reason) {
        ("approve", _) => None,
        ("reject", Some(reason)) => Some(reason),
        ("reject", None) => {
            let why = Explanation::new(
                "A rejection needs a reason: the sender gets it.",
                "write one.",
            );
            let held = visit.client.approval(&id).await?;
            let page = ApprovalPage::of(&visit, &held, Some(why)).await;
            return Ok(render_with(&page, 400));
        }
        _ => return Err(PageError::format("The form has no decision.")),
    };
    let decision = ApprovalDecision {
        digest: digest("digest")?,
        raw: digest("raw")?,
        refused,
    };
    match visit.client.decide(&id, &decision).await {
        Ok(_) => {
            let word = if refused.is_some() {
                "rejected"
            } else {
                "approved"
            };
            Ok(redirect(&format!("/approvals/{}?did={word}", encode(&id))))
        }
        // Somebody else decided, or the message is another one: the page shows how it is now.
        Err(ClientError::Rejected(fault)) if fault.status == 409 => {
            let why = PageError::from(ClientError::Rejected(fault)).explanation();
            let held = visit.client.approval(&id).await?;
            let page = ApprovalPage::of(&visit, &held, Some(why)).await;
            Ok(render_with(&page, 409))
        }
        Err(fault) => Err(fault.into()),
    }
}
