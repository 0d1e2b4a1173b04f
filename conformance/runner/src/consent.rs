//! Consent, by the crates under test; the ledger is a list.

use super::{Reply, decoded, input, need, time, words};
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::consent::{
    Assurance, BorderPolicy, Claim, ConsentContext, Grant, Party, Policy, Proof, Terms, check,
    check_leaving, check_redacted, is_brief, judge, plan_revocation,
};
use crosstalk_protocol::relay::Pattern;
use serde_json::{Value, json};

fn proof(word: &str) -> Proof {
    Proof {
        assurance: Assurance::parse(word).unwrap_or(Assurance::Pinned),
        is_firm: word == "firm",
        is_same_key: false,
    }
}

/// A message that comes in, and what the ledger has then.
fn take(
    text: &str,
    (proof, may_grant): (Proof, bool),
    (q, policy): (&CaseQuestion, &Policy),
    ledger: &mut Vec<Grant>,
) -> Result<(Terms, bool), Rejection> {
    let document = Document::parse(text, Reading::Strict);
    let at = time(need(q, "at"));
    let claim = Claim::of(&document);
    if let Some(claim) = &claim {
        let assurance = proof.assurance;
        check(
            claim,
            &ConsentContext {
                at,
                policy,
                assurance,
            },
        )?;
    }
    check_redacted(&document)?;
    if let Some(to) = q.get("leaves") {
        check_leaving(&document, claim.as_ref(), policy, to)?;
    }
    let brief = is_brief(&document, claim.as_ref());
    let Some(claim) = claim else {
        return Ok((Terms::default(), brief));
    };
    let to = [document.receiver().to_owned()];
    let backing = policy.backing(&claim, proof.assurance, may_grant);
    let intent = document.envelope().meaning();
    let party = Party {
        sender: document.sender(),
        speaker: document.sender(),
        is_pasted: true,
        pkid: None,
        proof,
        to: &to,
        receiver: None,
        is_escalation: intent == Some(Intent::Escalate),
        backing: backing.as_ref(),
        message: document.envelope().message.unwrap_or_default(),
        digest: document.digest().unwrap(),
        at,
    };
    let is_authority = policy.is_authority(document.sender());
    let Some(withdrawal) = plan_revocation(&claim, &party, ledger, is_authority)? else {
        let terms = judge(&claim, &party, ledger)?;
        for grant in &terms.grants {
            ledger.retain(|g| g.id != grant.id);
            ledger.push(grant.clone());
        }
        return Ok((terms, brief));
    };
    let mut ended = withdrawal.consents.clone();
    loop {
        let goes_back = |g: &&Grant| g.originals.iter().any(|o| ended.contains(o));
        let more = ledger.iter().filter(goes_back).map(|g| g.id.clone());
        let more: Vec<String> = more.filter(|id| !ended.contains(id)).collect();
        match more.is_empty() {
            true => break,
            false => ended.extend(more),
        }
    }
    for id in &ended {
        match ledger.iter_mut().find(|g| g.id == *id) {
            Some(grant) => grant.revoked = Some(withdrawal.revocation.clone()),
            None => ledger.push(Grant::unseen(id, &withdrawal.revocation)),
        }
    }
    Ok((Terms::default(), brief))
}

pub(super) fn consent(q: &CaseQuestion) -> Reply {
    let policy = Policy {
        signed: words(q, "signed").into_iter().map(str::to_owned).collect(),
        border: match q.get("border") == Some("all") {
            true => BorderPolicy::All,
            false => BorderPolicy::Sensitive,
        },
        authorities: q
            .get("authority")
            .iter()
            .map(|a| Pattern::parse(a).unwrap())
            .collect(),
        ..Policy::default()
    };
    let mut ledger = Vec::new();
    let before = q.bytes("before").unwrap();
    let before = decoded(&before)?;
    for envelope in before.split_inclusive("[[END]]\n") {
        let by = (proof(need(q, "before_proof")), true);
        take(envelope, by, (q, &policy), &mut ledger)
            .unwrap_or_else(|r| panic!("what came before was refused: {}", r.detail()));
    }
    let by = (proof(need(q, "proof")), q.get("by") != Some("agent"));
    let taken = take(&input(q)?, by, (q, &policy), &mut ledger);
    let (terms, brief) = taken.map_err(|refusal| {
        json!([{"rule": refusal.rule.map(|(id, _)| id), "code": refusal.code.as_str(), "severity": "error",
            "message": refusal.detail()}])
    })?;
    let at = time(need(q, "at"));
    let ledger = ledger.iter().map(|g| {
        json!({"id": g.id, "granter": g.granter, "to": g.to, "scopes": g.scopes,
            "assurance": g.assurance.as_str(), "standing": g.standing(at)})
    });
    let ledger: Vec<Value> = ledger.collect();
    let expires = terms.expires.map(|t| t.to_string());
    Ok(json!({"expires": expires, "brief": brief, "ledger": ledger}))
}
