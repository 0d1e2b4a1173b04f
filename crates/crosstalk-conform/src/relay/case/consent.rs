//! Consents that a signed REVOKE ends (CON-030, CON-032, CON-034).

use super::code;
use crate::relay::CaseFunction;
use crate::relay::probe::{
    CaseStep, Probe, SuiteMessage, encoded, equal, failed, from_now, holds, need, object, rejected,
    same, skipped, word, words,
};
use crate::relay::wire::{SuiteAnswer, SuiteRequest};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading};
use serde_json::Value;

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("revoke-other", other),
    code!("revoke-ends", ends),
    code!("revoke-after", after),
];

fn path(id: &str) -> String {
    format!("/crosstalk/consents/{}", encoded(id))
}

/// A message with a consent under a name.
fn granted(p: &Probe, name: &str) -> CaseStep<SuiteMessage> {
    p.letter("REQUEST", &p.person("a"), &p.address("b"), |b| {
        b.meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Scope", "medical")
            .meta("privacy", "Consent-ID", name)
    })
}

async fn get(p: &Probe, id: &str) -> CaseStep<SuiteAnswer> {
    p.send(SuiteRequest::get(path(id)).accept("application/json"))
        .await
}

fn need_holds(consent: &Value, name: &str, letter: &SuiteMessage, p: &Probe) -> CaseStep {
    same("id", name, word(consent, "id"))?;
    same("granter", &p.person("a"), word(consent, "granter"))?;
    same("standing", "holds", word(consent, "standing"))?;
    same("message", &letter.id, word(consent, "message"))?;
    let (scopes, to) = (words(consent, "scopes"), words(consent, "to"));
    equal(
        &(scopes, to),
        &(vec!["medical".to_owned()], vec![p.address("b")]),
    )
}

/// Whether the texts under a consent are there, by the ids of the messages.
fn texts(consent: &Value) -> Vec<(String, bool)> {
    let all = consent.get("messages").and_then(Value::as_array);
    let one = |m: &Value| {
        let has_text = m.get("has_text").and_then(Value::as_bool);
        (word(m, "id").to_owned(), has_text.unwrap_or(false))
    };
    all.map_or(Vec::new(), |all| all.iter().map(one).collect())
}

/// A REVOKE of a consent, which is to be signed.
fn revoke(p: &Probe, from: &str, name: &str) -> CaseStep<SuiteMessage> {
    let letter = p.letter("BROADCAST", &p.person(from), &p.address("b"), |b| {
        b.meta("revocation", "Consent-ID", name)
    })?;
    Ok(SuiteMessage {
        text: letter
            .text
            .replacen("intent: BROADCAST", "intent: REVOKE", 1),
        ..letter
    })
}

fn new_key() -> CaseStep<PrivateKey> {
    PrivateKey::generate(Algorithm::Ed25519)
        .or_else(|_| skipped("the system gives no random numbers"))
}

async fn other(p: &Probe) -> CaseStep {
    let name = p.word("other");
    let letter = granted(p, &name)?;
    p.take(&letter).await?;
    let key = new_key()?;
    let known = p.request(&p.person("x"), &p.address("y"))?;
    p.take(&signed(p, &key, &known)?).await?;
    let revoke = signed(p, &key, &revoke(p, "x", &name)?)?;
    rejected(&p.post(revoke.text).await?, 403, ErrorCode::Perm)?;
    let consent = object(&get(p, &name).await?, 200)?;
    need_holds(&consent, &name, &letter, p)?;
    p.entry(&p.address("b"), &letter.id).await.map(drop)
}

/// Signs an envelope with a key that comes with it.
fn signed(p: &Probe, key: &PrivateKey, letter: &SuiteMessage) -> CaseStep<SuiteMessage> {
    let pkid = p.word("key");
    let block = [
        ("Key-ID", pkid.clone()),
        ("Public-Key", key.public().record()),
    ];
    let signer = Signer {
        key,
        pkid: &pkid,
        at: from_now(0),
        key_block: &block,
    };
    let document = Document::parse(&letter.text, Reading::Strict);
    match signer.sign(&document) {
        Ok(text) => Ok(SuiteMessage {
            text,
            ..letter.clone()
        }),
        Err(fault) => skipped(format!("the suite can't sign this: {fault:?}")),
    }
}

/// Gives a consent, and revokes it. The message under it.
async fn revoked(p: &Probe, name: &str) -> CaseStep<SuiteMessage> {
    let key = new_key()?;
    let letter = signed(p, &key, &granted(p, name)?)?;
    p.take(&letter).await?;
    let revoke = signed(p, &key, &revoke(p, "a", name)?)?;
    let answer = p.post(revoke.text.clone()).await?;
    match answer.status {
        200 => Ok(letter),
        403 => skipped("this relay does not believe a key that came with a message"),
        _ => failed("200", answer.shown()),
    }
}

async fn ends(p: &Probe) -> CaseStep {
    let name = p.word("ends");
    let letter = revoked(p, &name).await?;
    let consent = object(&get(p, &name).await?, 200)?;
    same("standing", "revoked", word(&consent, "standing"))?;
    equal(&texts(&consent), &[(letter.id.clone(), false)])?;
    let ids = p.inbox_ids(&p.address("b")).await?;
    holds(
        !ids.contains(&letter.id),
        "an inbox without the message",
        &ids,
    )?;
    let holding = format!(
        "/crosstalk/consents?holding=true&by={}",
        encoded(&p.person("a"))
    );
    let all = p.json(SuiteRequest::get(holding)).await?;
    let is_there = all.to_string().contains(&name);
    need(!is_there, "no consent that holds", all.to_string())
}

async fn after(p: &Probe) -> CaseStep {
    let name = p.word("after");
    revoked(p, &name).await?;
    let again = granted(p, &name)?;
    rejected(&p.post(again.text).await?, 403, ErrorCode::Consent).map(drop)
}
