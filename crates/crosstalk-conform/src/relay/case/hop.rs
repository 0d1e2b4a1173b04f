//! Hops: what is handed out, and where it ends (HTP-071 to HTP-073).

use super::code;
use crate::relay::CaseFunction;
use crate::relay::probe::{CaseStep, Probe, acked, failed, from_now, rejected, same, strict, word};
use crosstalk_envelope::Document;
use crosstalk_envelope::limit::HEADERS;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{HOPS, add_hop, hops_of};

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("handed-out-bytes", unchanged),
    code!("handed-out-hop", hop),
    code!("handed-out-chain", chain),
    code!("handed-out-full", full),
    code!("hop-limit", limit),
    code!("hop-last", last),
    code!("replay-hops", over_hops),
];

fn with_hops(text: &str, number: usize) -> CaseStep<String> {
    let mut text = text.to_owned();
    for _ in 0..number {
        match add_hop(&text, from_now(-60), "conform.invalid", None) {
            Ok(next) => text = next,
            Err(fault) => {
                return failed("a hop", format!("a fault of the suite: {}", fault.message));
            }
        }
    }
    Ok(text)
}

/// An envelope with more in it than most: unknown headers and META, odd spaces, an empty value.
fn rich(p: &Probe) -> CaseStep<(String, String)> {
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.header("X-Mood", "curious")
            .meta("custom-conform", "Ticket", "4711")
            .body("Käse  und\tBrot\n\n    indented\n[[END]] quoted")
    })?;
    let text = letter
        .text
        .replace("X-Mood: curious", "X-Mood:    curious   ");
    Ok((text, letter.id))
}

/// Hands a text in; the receipt, and what is handed out.
async fn through(p: &Probe, text: &str, id: &str) -> CaseStep<(Document<'static>, String)> {
    let ack = acked(&p.post(text.to_owned()).await?)?;
    let entry = p.entry(&p.address("b"), id).await?;
    Ok((ack, word(&entry, "envelope").to_owned()))
}

fn digest(text: &str) -> CaseStep<String> {
    let document = strict(text)?;
    Ok(document.digest().map(|d| d.to_string()).unwrap_or_default())
}

/// The lines without those of audit blocks, and without blank ones above the body.
fn rest(text: &str) -> String {
    let (mut out, mut is_audit, mut is_body) = (String::new(), false, false);
    for line in text.lines() {
        is_body |= line.starts_with("body:");
        if line.starts_with("meta:") || is_body {
            is_audit = line == "meta: audit";
        }
        if !is_audit && (is_body || !line.trim().is_empty()) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

async fn unchanged(p: &Probe) -> CaseStep {
    let (text, id) = rich(p)?;
    let (_, out) = through(p, &text, &id).await?;
    same("text without the hop", &rest(&text), &rest(&out))
}

/// Checks the last of so many hops.
fn need_hop(ack: &Document<'_>, out: &str, number: usize) -> CaseStep {
    let document = strict(out)?;
    let hops = hops_of(&document);
    let Some(Some(last)) = hops.last().filter(|_| hops.len() == number) else {
        return failed(
            format!("{number} hops, the last one complete"),
            format!("{hops:?}"),
        );
    };
    same("Hop", &number.to_string(), &last.number.to_string())?;
    same(
        "Received-By",
        ack.meta("receipt", "Received-By").unwrap_or("none"),
        &last.received_by,
    )?;
    same(
        "Received-At",
        ack.meta("receipt", "Received-At").unwrap_or("none"),
        &last.received_at.to_string(),
    )?;
    let Ok(message) = document.digest() else {
        return failed("a digest", "none");
    };
    let blocks: Vec<_> = document
        .blocks()
        .filter(|b| b.namespace() == "audit")
        .collect();
    let written = |block: Option<&crosstalk_envelope::MetaBlock<'_>>| {
        block
            .and_then(|b| b.get("Hop-Digest"))
            .unwrap_or("none")
            .to_owned()
    };
    let before = match number {
        1 => message.to_string(),
        _ => written(blocks.iter().rev().nth(1)),
    };
    same("Previous-Digest", &before, &last.previous.to_string())?;
    same(
        "Hop-Digest",
        &last.digest(message).to_string(),
        &written(blocks.last()),
    )
}

async fn hop(p: &Probe) -> CaseStep {
    let (text, id) = rich(p)?;
    let (ack, out) = through(p, &text, &id).await?;
    need_hop(&ack, &out, 1)
}

async fn chain(p: &Probe) -> CaseStep {
    let (text, id) = rich(p)?;
    let (ack, out) = through(p, &with_hops(&text, 2)?, &id).await?;
    need_hop(&ack, &out, 3)
}

/// A message with so many hops that say nothing but their number: whole ones would be too many lines.
fn far_travelled(p: &Probe, hops: usize) -> CaseStep<String> {
    let mut text = p.request(&p.address("a"), &p.address("b"))?.text;
    for hop in 1..=hops {
        text = text.replacen(
            "\nbody: |\n",
            &format!("\nmeta: audit\nHop: {hop}\nbody: |\n"),
            1,
        );
    }
    Ok(text)
}

async fn limit(p: &Probe) -> CaseStep {
    let answer = p.post(far_travelled(p, HOPS)?).await?;
    rejected(&answer, 404, ErrorCode::Route).map(drop)
}

async fn last(p: &Probe) -> CaseStep {
    acked(&p.post(far_travelled(p, HOPS - 1)?).await?).map(drop)
}

async fn full(p: &Probe) -> CaseStep {
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        (0..HEADERS - 6).fold(b, |b, n| b.header(format!("X-{n}"), "x"))
    })?;
    let (_, out) = through(p, &letter.text, &letter.id).await?;
    same("digest", &digest(&letter.text)?, &digest(&out)?)
}

async fn over_hops(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let first = p.post(letter.text.clone()).await?;
    acked(&first)?;
    let other = with_hops(&letter.text, 1)?;
    super::wait::same_answer(&first, &p.post(other).await?)?;
    super::wait::once(p, &to, &letter.id).await
}
