//! What intents mean to a relay (HTP-020 to HTP-025, HTP-030).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    AHEAD_SECONDS, Probe, Step, acked, encoded, failed, from_now, ids, is_over, listed, need,
    refused, reports, same, strict, wait_until_past, word,
};
use crate::relay::wire::Request;
use crosstalk_envelope::Intent;
use crosstalk_envelope::id::new_ulid;
use crosstalk_envelope::registry::{ErrorCode, rule};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("consent-no", &rule::HTTP_NO_CONSENT, "Consent: explicit_no is E-CONSENT", consent_no),
    case!("consent-over", &rule::HTTP_NO_CONSENT, "a consent that has expired is E-CONSENT", consent_over),
    case!("consent-yes", &rule::HTTP_NO_CONSENT, "a consent that holds is taken", consent_yes),
    case!("revoke-unsigned", &rule::HTTP_REVOKE_UNVERIFIED, "a REVOKE that is not signed is E-PERM", revoke_unsigned),
    case!("revoke-unknown-key", &rule::HTTP_REVOKE_UNVERIFIED, "a REVOKE with a signature that nobody can check is E-PERM", revoke_unknown),
    case!("deadline-over", &rule::HTTP_DEADLINE, "a deadline that has passed is E-TIMEOUT", deadline_over),
    case!("deadline-passes", &rule::HTTP_DEADLINE, "a deadline that passes puts an ERROR into the sender's inbox", deadline_passes),
    case!("deadline-kept", &rule::HTTP_DEADLINE, "a REQUEST that was answered in time gets no ERROR", deadline_kept),
    case!("closed-thread", &rule::HTTP_CLOSED, "a closed thread takes no REQUEST", closed_thread),
    case!("closed-session", &rule::HTTP_CLOSED, "a CLOSE without a thread closes its session", closed_session),
    case!("closed-ack", &rule::HTTP_CLOSED, "a closed thread takes ACK and ERROR", closed_ack),
    case!("closed-replay", &rule::HTTP_CLOSED, "what came before the CLOSE still gets its first answer", closed_replay),
    case!("close-stranger", &rule::HTTP_CLOSE_BY_PARTY, "who takes no part can't close a conversation", stranger),
    case!("close-receiver", &rule::HTTP_CLOSE_BY_PARTY, "the other side can close it", other_side),
    case!("broadcast-answer", &rule::HTTP_BROADCAST_ANSWER, "a RESPOND to a BROADCAST is E-PERM", broadcast),
    case!("system-name", &rule::HTTP_SYSTEM_SENDER, "nobody else speaks as SYSTEM, or under a name that looks like it", system),
];

async fn consent_no(p: &Probe) -> Step {
    for consent in ["explicit_no", "explicit_no_2025-10-09T16:00Z"] {
        let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
            b.meta("privacy", "Consent", consent)
        })?;
        refused(&p.post(letter.text).await?, 403, ErrorCode::Consent)?;
    }
    Ok(())
}

async fn consent_over(p: &Probe) -> Step {
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Expires", "2025-10-10T16:00Z")
    })?;
    refused(&p.post(letter.text).await?, 403, ErrorCode::Consent).map(drop)
}

async fn consent_yes(p: &Probe) -> Step {
    let end = from_now(86_400).to_string();
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.meta("privacy", "Consent", "explicit_yes")
            .meta("privacy", "Expires", end)
    })?;
    p.take(&letter).await.map(drop)
}

/// A REVOKE with this signature line. The builder would not write an unsigned one.
fn revoke(p: &Probe, sig: &str) -> Step<String> {
    let letter = p.letter("BROADCAST", &p.address("a"), &p.address("b"), |b| {
        b.meta("revocation", "Consent-ID", "conform-1")
    })?;
    let text = letter.text.replace("intent: BROADCAST", "intent: REVOKE");
    Ok(text.replace("\nsig: none\n", &format!("\nsig: {sig}\n")))
}

async fn revoke_unsigned(p: &Probe) -> Step {
    let to = p.address("b");
    refused(&p.post(revoke(p, "none")?).await?, 403, ErrorCode::Perm)?;
    let kept = p.inbox_ids(&to).await?;
    need(kept.is_empty(), "an empty inbox", format!("{kept:?}"))
}

async fn revoke_unknown(p: &Probe) -> Step {
    let pkid = format!("conform-{}", new_ulid());
    let sig = format!("ed25519:pkid={pkid};sig={}A==", "A".repeat(85));
    refused(&p.post(revoke(p, &sig)?).await?, 403, ErrorCode::Perm).map(drop)
}

async fn deadline_over(p: &Probe) -> Step {
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.meta("routing", "X-Deadline", "2025-10-09T16:00Z")
    })?;
    refused(&p.post(letter.text).await?, 504, ErrorCode::Timeout).map(drop)
}

async fn deadline_passes(p: &Probe) -> Step {
    let to = p.address("b");
    let mut tries = AHEAD_SECONDS.iter();
    let (from, letter) = loop {
        let seconds = tries.next().copied().unwrap_or_default();
        let (from, end) = (p.address(&format!("a{seconds}")), from_now(seconds));
        let letter = p.letter("REQUEST", &from, &to, |b| {
            b.meta("routing", "X-Deadline", end.to_string())
        })?;
        let taken = p.take(&letter).await;
        // A relay rejects a message that comes after its deadline.
        if taken.is_ok() || !is_over(end) || tries.len() == 0 {
            taken?;
            break (from, letter);
        }
    };
    let path = format!("/crosstalk/inbox?for={}&wait=60", encoded(&from));
    let inbox = p.json(Request::get(path)).await?;
    let Some(entry) = listed(&inbox)?.first() else {
        return failed(
            "an ERROR with E-TIMEOUT in the inbox of the sender",
            "nothing within 60 s",
        );
    };
    let error = strict(word(entry, "envelope"))?;
    need(
        error.envelope().meaning() == Some(Intent::Error),
        "an ERROR",
        word(entry, "envelope"),
    )?;
    reports(&error, ErrorCode::Timeout, &letter.id)?;
    same("sender", &to, error.sender())?;
    same("receiver", &from, error.receiver())
}

async fn deadline_kept(p: &Probe) -> Step {
    let to = p.address("b");
    let mut tries = AHEAD_SECONDS.iter();
    let (from, answer, end) = loop {
        let seconds = tries.next().copied().unwrap_or_default();
        let (from, end) = (p.address(&format!("a{seconds}")), from_now(seconds));
        let letter = p.letter("REQUEST", &from, &to, |b| {
            b.meta("routing", "X-Deadline", end.to_string())
        })?;
        let taken = p.take(&letter).await;
        let answer = p.letter("RESPOND", &to, &from, |b| {
            b.thread(&letter.thread).parent(&letter.id)
        })?;
        let answered = p.take(&answer).await;
        // An answer that is late does not keep the deadline.
        if !is_over(end) || tries.len() == 0 {
            taken?;
            answered?;
            break (from, answer, end);
        }
    };
    let inbox = p.inbox(&from).await?;
    need(
        ids(&inbox) == [answer.id.clone()],
        "the RESPOND",
        format!("{:?}", ids(&inbox)),
    )?;
    // Behind the RESPOND nothing comes, also after the deadline.
    wait_until_past(end).await;
    let path = format!(
        "/crosstalk/inbox?for={}&wait=2&after={}",
        encoded(&from),
        encoded(word(&inbox, "cursor"))
    );
    let later = p.json(Request::get(path)).await?;
    need(ids(&later).is_empty(), "nothing else", later.to_string())
}

async fn closed_thread(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    p.take(&letter).await?;
    let close = p.letter("CLOSE", &from, &to, |b| b.thread(&letter.thread))?;
    p.take(&close).await?;
    for (intent, one, other) in [("REQUEST", &from, &to), ("BROADCAST", &to, &from)] {
        let late = p.letter(intent, one, other, |b| b.thread(&letter.thread))?;
        refused(&p.post(late.text).await?, 403, ErrorCode::Perm)?;
    }
    let elsewhere = p.request(&from, &to)?;
    p.take(&elsewhere).await.map(drop)
}

async fn closed_session(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let session = format!("2025-10-09T16Z {}", new_ulid());
    let write = |intent: &str| -> Step<String> {
        let letter = p.letter(intent, &from, &to, |b| b.session(&session))?;
        Ok(letter
            .text
            .replace(&format!("thread: {}\n", letter.thread), ""))
    };
    for intent in ["REQUEST", "CLOSE"] {
        acked(&p.post(write(intent)?).await?)?;
    }
    refused(&p.post(write("REQUEST")?).await?, 403, ErrorCode::Perm).map(drop)
}

async fn closed_ack(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    p.take(&letter).await?;
    let close = p.letter("CLOSE", &from, &to, |b| b.thread(&letter.thread))?;
    p.take(&close).await?;
    let ack = p.letter("ACK", &to, &from, |b| {
        b.thread(&letter.thread).parent(&letter.id)
    })?;
    p.take(&ack).await?;
    let error = p.letter("ERROR", &to, &from, |b| {
        b.thread(&letter.thread)
            .parent(&letter.id)
            .meta("error", "Code", "E-ROUTE")
    })?;
    p.take(&error).await.map(drop)
}

async fn closed_replay(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    let first = p.post(letter.text.clone()).await?;
    acked(&first)?;
    let close = p.letter("CLOSE", &from, &to, |b| b.thread(&letter.thread))?;
    p.take(&close).await?;
    let again = p.post(letter.text).await?;
    same("answer", &first.text(), &again.text())
}

async fn stranger(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    p.take(&letter).await?;
    let close = p.letter("CLOSE", &p.address("stranger"), &to, |b| {
        b.thread(&letter.thread)
    })?;
    refused(&p.post(close.text).await?, 403, ErrorCode::Perm)?;
    let next = p.letter("REQUEST", &from, &to, |b| b.thread(&letter.thread))?;
    p.take(&next).await.map(drop)
}

async fn other_side(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    p.take(&letter).await?;
    let close = p.letter("CLOSE", &to, &from, |b| b.thread(&letter.thread))?;
    p.take(&close).await.map(drop)
}

async fn broadcast(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.letter("BROADCAST", &from, &to, |b| b)?;
    p.take(&letter).await?;
    let answer = p.letter("RESPOND", &to, &from, |b| {
        b.thread(&letter.thread).parent(&letter.id)
    })?;
    refused(&p.post(answer.text).await?, 403, ErrorCode::Perm).map(drop)
}

async fn system(p: &Probe) -> Step {
    // In another case, with a long s, with a Cyrillic letter, in another font, with a soft hyphen.
    for name in [
        "SYSTEM",
        "System",
        "ſystem",
        "ЅYSTEM",
        "𝐒YSTEM",
        "SY\u{ad}STEM",
    ] {
        let letter = p.request(name, &p.address("b"))?;
        refused(&p.post(letter.text).await?, 403, ErrorCode::Perm)?;
    }
    Ok(())
}
