//! Consents: who may see what and until when, granting one, and revoking one with what is erased by that.

use super::polls::{lines, time_of};
use super::reply::{preview_written, user_of};
use super::{PageError, PageResult, Shell, render};
use crate::compose::build;
use crate::fields::encode;
use crate::message::DeliveryLine;
use crate::text::{Moment, PartyName, Shown};
use crate::visit::{Posted, Visit};
use askama::Template;
use axum::extract::Path;
use crosstalk_api::client::{ConsentEnd, ConsentView};
use crosstalk_envelope::{Builder, Intent, Timestamp, id};
use crosstalk_protocol::compose::session_text;
use crosstalk_protocol::consent::scopes;

/// How many consents are on a page.
const MOST: usize = 200;

/// A consent in the ledger.
struct ConsentRow {
    path: String,
    id: Shown,
    granter: PartyName,
    to: Vec<PartyName>,
    scopes: Vec<Shown>,
    since: Moment,
    expires: Option<Moment>,
    standing: &'static str,
    tone: &'static str,
}

/// The word for a standing, and the class for its colour.
fn standing_of(word: &str) -> (&'static str, &'static str) {
    match word {
        "holds" => ("holds", "ok"),
        "revoked" => ("revoked", "bad"),
        _ => ("expired", "warn"),
    }
}

impl ConsentRow {
    fn of(consent: &ConsentView, now: Timestamp) -> Self {
        let (standing, tone) = standing_of(&consent.standing);
        Self {
            path: encode(&consent.id),
            id: Shown::short(&consent.id, 40),
            granter: PartyName::of(&consent.granter),
            to: consent.to.iter().map(|t| PartyName::of(t)).collect(),
            scopes: consent.scopes.iter().map(|s| Shown::short(s, 40)).collect(),
            since: Moment::parse(&consent.since, now),
            expires: consent.expires.as_deref().map(|at| Moment::parse(at, now)),
            standing,
            tone,
        }
    }
}

#[derive(Template)]
#[template(path = "consents.html")]
struct ConsentsPage {
    shell: Shell,
    consents: Vec<ConsentRow>,
    is_all: bool,
    by: Shown,
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let is_all = visit.query.get("all").is_some();
    let by = visit.query.get("by").map(str::trim);
    let consents = visit.client.consents(by, !is_all, MOST).await?;
    render(&ConsentsPage {
        consents: consents
            .iter()
            .map(|c| ConsentRow::of(c, visit.now))
            .collect(),
        is_all,
        by: Shown::new(by.unwrap_or("")),
        shell: visit.shell("Consents").await,
    })
}

/// A message that is or was kept under a consent.
struct UnderLine {
    id: Shown,
    path: String,
    has_text: bool,
}

/// The end of a consent.
struct EndLine {
    by: PartyName,
    at: Moment,
    reason: Shown,
}

impl EndLine {
    fn of(end: &ConsentEnd, now: Timestamp) -> Self {
        Self {
            by: PartyName::of(&end.by),
            at: Moment::parse(&end.at, now),
            reason: Shown::new(end.reason.as_deref().unwrap_or("")),
        }
    }
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage {
    shell: Shell,
    row: ConsentRow,
    full_id: Shown,
    command_id: Shown,
    says: Shown,
    jurisdictions: Vec<Shown>,
    assurance: &'static str,
    pkid: Option<Shown>,
    originals: Vec<ShownLink>,
    revoked: Option<EndLine>,
    messages: Vec<UnderLine>,
    kept: usize,
    erased: usize,
    told: Vec<DeliveryLine>,
    relay_url: String,
}

/// A name of a consent, and the path of its page.
struct ShownLink {
    name: Shown,
    path: String,
}

/// How well it was verified who granted a consent, in words.
fn assurance_of(word: &str) -> &'static str {
    match word {
        "pinned" => "signed with a key that is pinned for the granter",
        "dns" => "signed with a key that the domain of the granter lists",
        "first-contact" => "signed with a key that nobody compared yet",
        _ => "not signed: the relay knew the granter by their credential",
    }
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let record = visit.client.consent(&id).await?;
    let (consent, now) = (&record.consent, visit.now);
    let kept = record.messages.iter().filter(|m| m.has_text).count();
    render(&ConsentPage {
        row: ConsentRow::of(consent, now),
        full_id: Shown::new(&consent.id),
        command_id: Shown::argument(&consent.id),
        says: Shown::new(consent.consent.as_deref().unwrap_or("")),
        jurisdictions: consent
            .jurisdictions
            .iter()
            .map(|j| Shown::new(j))
            .collect(),
        assurance: assurance_of(&consent.assurance),
        pkid: consent.pkid.as_deref().map(Shown::new),
        originals: consent
            .originals
            .iter()
            .map(|o| ShownLink {
                name: Shown::short(o, 60),
                path: encode(o),
            })
            .collect(),
        revoked: consent.revoked.as_ref().map(|r| EndLine::of(r, now)),
        messages: record
            .messages
            .iter()
            .map(|m| UnderLine {
                id: Shown::short(&m.id, 60),
                path: encode(&m.id),
                has_text: m.has_text,
            })
            .collect(),
        kept,
        erased: record.messages.len() - kept,
        told: record
            .told
            .iter()
            .map(|d| DeliveryLine::of(d, now))
            .collect(),
        relay_url: visit.console.host.url(&visit.headers),
        shell: visit.shell("Consent").await,
    })
}

#[derive(Template)]
#[template(path = "consent_grant.html")]
struct GrantPage {
    shell: Shell,
    addresses: Vec<Shown>,
    is_free: bool,
    known: Vec<Shown>,
    scopes: Vec<&'static str>,
}

/// The form for a new consent.
pub(crate) async fn new(visit: Visit) -> PageResult {
    let agents = visit.client.agents().await.unwrap_or_default();
    render(&GrantPage {
        addresses: visit.addresses().iter().map(|a| Shown::new(a)).collect(),
        is_free: visit.chooses_address(),
        known: agents.iter().map(|a| Shown::new(&a.address)).collect(),
        scopes: scopes().to_vec(),
        shell: visit.shell("Grant a consent").await,
    })
}

/// The exact envelope that grants a consent.
pub(crate) async fn preview(Posted { visit, form }: Posted) -> PageResult {
    let (from, to) = (form.text("from").trim(), form.text("to").trim());
    let mut wanted: Vec<String> = form.all("scope").map(str::to_owned).collect();
    let own = form.text("other").replace(',', "\n");
    wanted.extend(lines(&own));
    if from.is_empty() || to.is_empty() || wanted.is_empty() {
        return Err(PageError::fault(
            400,
            "The consent has no granter, no receiver or no scope.",
            "fill all three in.",
        ));
    }
    let expires = time_of(form.text("expires"), visit.now)?;
    let laws = lines(&form.text("jurisdiction").replace(',', "\n"));
    let name = id::new_ulid();
    let at = visit.now;
    let mut builder = Builder::new(from, to)
        .user(user_of(&visit, from))
        .session(session_text(at, "consent"))
        .thread(id::new_ulid())
        .message(id::new_ulid())
        .context("consent")
        .intent(Intent::Broadcast.as_str())
        .meta("privacy", "Consent", format!("explicit_yes_{at}"))
        .meta("privacy", "Scope", wanted.join(", "));
    let mut command = format!("crosstalk consent grant {}", Shown::argument(to));
    for scope in &wanted {
        command.push_str(&format!(" --scope {}", Shown::argument(scope)));
    }
    if let Some(end) = expires {
        builder = builder.meta("privacy", "Expires", end.to_string());
        command.push_str(&format!(" --expires {end}"));
    }
    if !laws.is_empty() {
        builder = builder.meta("privacy", "Jurisdiction", laws.join(", "));
        for law in &laws {
            command.push_str(&format!(" --jurisdiction {}", Shown::argument(law)));
        }
    }
    let until = expires.map_or(String::new(), |end| format!(" until {end}"));
    let note = form.get("note").map(str::trim).filter(|n| !n.is_empty());
    let body = note.map_or_else(
        || {
            format!(
                "I agree to the use of what falls under {}{until}. The name of this consent is {name}.",
                wanted.join(", ")
            )
        },
        str::to_owned,
    );
    let url = visit.console.host.url(&visit.headers);
    command.push_str(&format!(" --relay {}", Shown::argument(&url)));
    let builder = builder
        .meta("privacy", "Consent-ID", &name)
        .body(body)
        .visible();
    preview_written(&visit, build(&builder)?, "/consents/grant", command).await
}

/// The REVOKE of a consent, for a signature. A relay accepts none without one (INT-012).
pub(crate) async fn revoke(Path(id): Path<String>, Posted { visit, form }: Posted) -> PageResult {
    let record = visit.client.consent(&id).await?;
    let consent = &record.consent;
    let receiver = consent.to.first().ok_or_else(|| {
        PageError::fault(
            400,
            "The consent names no receiver.",
            "revoke it with `crosstalk consent revoke ID`.",
        )
    })?;
    let given = visit.client.message(&consent.message).await.ok();
    let reason = form.get("reason").map(str::trim).filter(|r| !r.is_empty());
    let at = visit.now;
    let mut builder = Builder::new(&consent.granter, receiver)
        .user(user_of(&visit, &consent.granter))
        .session(session_text(at, "consent"))
        .thread(
            given
                .as_ref()
                .map_or_else(id::new_ulid, |g| g.thread.clone()),
        )
        .message(id::new_ulid())
        .context("consent")
        .intent(Intent::Broadcast.as_str())
        .meta("revocation", "Consent-ID", &consent.id);
    if let Some(reason) = reason {
        builder = builder.meta("revocation", "Reason", reason);
    }
    let body = format!(
        "I revoke the consent {}. Please erase what you have under it, let those know whom you passed it on to, and confirm.",
        consent.id
    );
    let builder = builder
        .meta("revocation", "Effective", at.to_string())
        .body(body)
        .visible();
    let url = visit.console.host.url(&visit.headers);
    let reason = reason.map_or(String::new(), |r| {
        format!(" --reason {}", Shown::argument(r))
    });
    let command = format!(
        "crosstalk consent revoke {}{reason} --relay {}",
        Shown::argument(&consent.id),
        Shown::argument(&url)
    );
    let back = format!("/consents/{}", encode(&consent.id));
    preview_written(&visit, unsigned_revoke(&builder)?, &back, command).await
}

/// The text of a REVOKE that is not signed yet: a builder makes none, since nobody may send one.
fn unsigned_revoke(builder: &Builder) -> Result<String, PageError> {
    let header = |intent: Intent| format!("\nintent: {}\n", intent.as_str());
    let text = build(builder)?;
    Ok(text.replacen(&header(Intent::Broadcast), &header(Intent::Revoke), 1))
}
