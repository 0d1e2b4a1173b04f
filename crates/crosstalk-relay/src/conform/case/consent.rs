//! Consents on record (CON-035).

use super::case;
use crate::conform::Case;
use crate::conform::probe::{Letter, Probe, Step, encoded, need, same, word};
use crate::conform::wire::Request;
use crosstalk_envelope::registry::rule;
use serde_json::Value;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("consent-listed", &rule::CONSENT_LISTED, "a consent that was given is listed by who gave it", listed),
    case!("consent-shown", &rule::CONSENT_LISTED, "and shown with the messages under it", shown),
    case!("consent-unknown", &rule::CONSENT_LISTED, "one that is not on record is not found", unknown),
];

/// A message that grants a consent under a name.
async fn granted(p: &Probe) -> Step<(Letter, String)> {
    let id = p.word("consent");
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Scope", "location")
            .meta("privacy", "Consent-ID", &id)
    })?;
    p.take(&letter).await?;
    Ok((letter, id))
}

async fn listed(p: &Probe) -> Step {
    let (letter, id) = granted(p).await?;
    let by = encoded(&p.address("a"));
    let path = format!("/crosstalk/consents?by={by}&holding=true");
    let list = p.json(Request::get(path)).await?;
    let all = list.get("consents").and_then(Value::as_array);
    let found = all.and_then(|all| all.iter().find(|c| word(c, "id") == id));
    need(
        found.is_some(),
        format!("a list with {id}"),
        list.to_string(),
    )?;
    let found = found.cloned().unwrap_or_default();
    for (key, wanted) in [
        ("granter", p.address("a").as_str()),
        ("standing", "holds"),
        ("message", letter.id.as_str()),
    ] {
        same(key, wanted, word(&found, key))?;
    }
    Ok(())
}

async fn shown(p: &Probe) -> Step {
    let (letter, id) = granted(p).await?;
    let path = format!("/crosstalk/consents/{}", encoded(&id));
    let consent = p.json(Request::get(path)).await?;
    same("id", &id, word(&consent, "id"))?;
    let message = consent.pointer("/messages/0").cloned().unwrap_or_default();
    same("messages[0].id", &letter.id, word(&message, "id"))?;
    need(
        message.get("has_text").and_then(Value::as_bool) == Some(true),
        "messages[0].has_text is true",
        message.to_string(),
    )
}

async fn unknown(p: &Probe) -> Step {
    let path = format!("/crosstalk/consents/{}", p.word("nothing"));
    let answer = p.send(Request::get(path)).await?;
    need(answer.status == 404, "404", answer.shown())
}
