//! Keys and trust: comparing fingerprints, pinning and distrusting keys of others.

use super::{PageError, PageResult, Shell, render, render_with};
use crate::fields::{decode, encode};
use crate::text::{Moment, PartyName, Shown};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use crosstalk_api::client::{ClientError, Distrust, NewPin, TrustedKeyView};
use crosstalk_envelope::{Explanation, Timestamp};

/// A key that the relay knows.
struct KeyRow {
    id: Shown,
    raw_id: String,
    is_deceptive: bool,
    command_id: Shown,
    key: String,
    /// The groups that people read to each other.
    fingerprint: Vec<String>,
    since: Moment,
    how: &'static str,
    senders: Vec<PartyName>,
    /// The same, encoded, since a page has no hidden characters: the form sends what was shown.
    raw_senders: Vec<String>,
    standing: Shown,
    tone: &'static str,
    changed: Option<Moment>,
    replaced_by: Option<Shown>,
    reason: Option<Shown>,
    is_active: bool,
    /// Whether nobody has compared the fingerprint yet.
    needs_comparison: bool,
}

impl KeyRow {
    fn of(key: &TrustedKeyView, now: Timestamp) -> Self {
        let is_active = key.standing == "active";
        let needs_comparison = is_active && key.how == "first-contact";
        Self {
            is_deceptive: crosstalk_envelope::name::is_deceptive(&key.id),
            id: Shown::short(&key.id, 120),
            raw_id: key.id.clone(),
            command_id: Shown::argument(&key.id),
            key: key.key.clone(),
            fingerprint: key
                .fingerprint
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            since: Moment::parse(&key.since, now),
            how: match key.how.as_str() {
                "first-contact" => "came with a message",
                "dns" => "listed by its domain",
                "revocation" => "known by its revocation",
                _ => "pinned by a person",
            },
            senders: key.senders.iter().map(|s| PartyName::of(s)).collect(),
            raw_senders: key.senders.iter().map(|s| encode(s)).collect(),
            tone: match key.standing.as_str() {
                "active" if needs_comparison => "note",
                "active" => "ok",
                "replaced" => "warn",
                _ => "bad",
            },
            standing: Shown::new(match needs_comparison {
                true => "first contact",
                false => &key.standing,
            }),
            changed: key.changed_at.as_deref().map(|at| Moment::parse(at, now)),
            replaced_by: key.replaced_by.as_deref().map(|by| Shown::short(by, 120)),
            reason: key.reason.as_deref().map(|r| Shown::short(r, 300)),
            is_active,
            needs_comparison,
        }
    }
}

/// The fields of the form, so that nothing of them is lost when it is rejected.
#[derive(Default)]
struct TypedPin {
    id: String,
    key: String,
    senders: String,
}

#[derive(Template)]
#[template(path = "trust.html")]
struct TrustPage {
    shell: Shell,
    keys: Vec<KeyRow>,
    typed: TypedPin,
    fault: Option<Explanation>,
    /// Whether another key is known, which the person may replace.
    may_replace: bool,
}

impl TrustPage {
    async fn of(visit: &Visit) -> Result<Self, PageError> {
        let mut keys = visit.client.trusted_keys().await?;
        // What a person has to do comes first, what counts no more last.
        keys.sort_by_key(|k| match (k.standing.as_str(), k.how.as_str()) {
            ("active", "first-contact") => 0,
            ("active", _) => 1,
            _ => 2,
        });
        Ok(Self {
            keys: keys.iter().map(|k| KeyRow::of(k, visit.now)).collect(),
            typed: TypedPin::default(),
            fault: None,
            may_replace: false,
            shell: visit.shell("Keys and trust").await,
        })
    }
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    render(&TrustPage::of(&visit).await?)
}

pub(crate) async fn pin(Posted { visit, form }: Posted) -> PageResult {
    let mut senders = super::polls::lines(&form.text("senders").replace(',', "\n"));
    // A card sends those that it showed.
    for sender in form.all("sender") {
        let sender = decode(sender);
        senders.push(sender.ok_or_else(|| PageError::format("A sender can't be read."))?);
    }
    let pin = NewPin {
        id: form.text("id").trim().to_owned(),
        key: form.text("key").trim().to_owned(),
        senders,
        replace: form.get("replace").is_some(),
    };
    match visit.client.pin_key(&pin).await {
        Ok(_) => Ok(redirect("/trust?did=pinned")),
        Err(ClientError::Rejected(fault)) if matches!(fault.status, 400 | 409 | 422) => {
            let status = fault.status;
            let mut page = TrustPage::of(&visit).await?;
            page.may_replace = status == 409;
            page.typed = TypedPin {
                id: pin.id,
                key: pin.key,
                senders: pin.senders.join("\n"),
            };
            page.fault = Some(PageError::from(ClientError::Rejected(fault)).explanation());
            Ok(render_with(&page, status))
        }
        Err(fault) => Err(fault.into()),
    }
}

pub(crate) async fn distrust(Posted { visit, form }: Posted) -> PageResult {
    let key = Distrust {
        id: form.text("id").to_owned(),
        key: form.text("key").to_owned(),
        reason: form.get("reason").map(str::to_owned),
    };
    visit.client.distrust_key(&key).await?;
    Ok(redirect("/trust?did=distrusted"))
}
