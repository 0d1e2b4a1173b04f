//! One message: who to whom, what for, how far it can be trusted, how old it is, and its text.

use super::{Look, intent, parties, sides, time_of};
use crate::clock::age;
use crate::console::{BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::render;
use crate::screen::cells;
use crate::service::lookup::why_gone;
use crosstalk_envelope::canonical::is_hop_namespace;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{CoreHeader, Document};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Record, Side, Wait, Way};

/// The META blocks that a message shows; the others are for programs.
const FOR_PROGRAMS: [&str; 2] = ["key", "integrity"];

/// A message, rendered with styles. `short` gives the short form of an id.
pub(crate) fn message(record: &Record, short: impl Fn(&str) -> String, look: &Look) -> String {
    let document = record.document();
    let mut out = title(record, look);
    out.push_str(&format!("{}\n", styled(DIM, &"─".repeat(look.width))));
    facts(&mut out, record, &document, short, look);
    out.push('\n');
    body(&mut out, record, &document, look);
    out
}

/// `CHATGPT → KALLE  [RESPOND]                       ○ unsigned · just now`
fn title(record: &Record, look: &Look) -> String {
    let sides_text = parties(record);
    let document = record.document();
    let (intent, color) = intent(record, &document);
    let left = format!("{}  {}", styled(BOLD, &sides_text), styled(color, &intent));
    let (badge, plain) = badge(record);
    let age = age(time_of(record), look.now);
    let right = format!("{badge} {}", styled(DIM, &format!("· {age}")));
    sides(
        (&left, cells(&sides_text) + 2 + cells(&intent)),
        (&right, cells(&plain) + 3 + cells(&age)),
        look.width,
    )
}

/// How far a message can be trusted, with and without styles.
pub(crate) fn badge(record: &Record) -> (String, String) {
    let signer = record.pkid.as_deref().map(|p| escape(p).into_owned());
    let by = signer.map_or(String::new(), |p| format!(" {p}"));
    let (style, text) = match (record.verdict, record.side, record.way) {
        (VerdictWord::Unsigned, Side::Mine, Way::Sent) => (DIM, "sent".to_owned()),
        (VerdictWord::Verified, Side::Mine, Way::Sent) => (DIM, "sent, signed".to_owned()),
        (VerdictWord::Unsigned, _, Way::Filed) => (YELLOW, "○ filed from plain text".to_owned()),
        (VerdictWord::Verified, ..) => (GREEN, format!("✓ verified{by}")),
        (VerdictWord::FirstContact, ..) => (YELLOW, format!("◔ first contact{by}")),
        (VerdictWord::Unbound, ..) => (YELLOW, format!("◔ unbound{by}")),
        (VerdictWord::Unsigned, ..) => (YELLOW, "○ unsigned".to_owned()),
        (VerdictWord::UnknownKey, ..) => (YELLOW, "? unknown key".to_owned()),
        (VerdictWord::Damaged, ..) => (RED, "✗ damaged".to_owned()),
        (VerdictWord::NotVerified, ..) => (RED, "✗ not verified".to_owned()),
        (VerdictWord::Revoked, ..) => (RED, "✗ revoked key".to_owned()),
    };
    (styled(style, &text), text)
}

fn facts(
    out: &mut String,
    record: &Record,
    document: &Document<'_>,
    short: impl Fn(&str) -> String,
    look: &Look,
) {
    let (id, parent) = (short(&record.id), record.parent.as_deref().map(short));
    let mut fields: Vec<(&str, &str)> = Vec::new();
    if look.full {
        let headers = document.headers().filter(|(name, _)| *name != "intent");
        fields.extend(headers);
        if !record.carries_id {
            fields.push(("id here", &record.id));
        }
        let named = document.header(CoreHeader::Parent);
        let here = record.parent.as_deref().filter(|p| named != Some(p));
        fields.extend(here.map(|p| ("answers here", p)));
    } else {
        fields.extend(record.context.as_deref().map(|c| ("context", c)));
        fields.push(("message", &id));
        fields.extend(parent.as_deref().map(|p| ("answers", p)));
    }
    let waits = match record.wait {
        Wait::Nobody => None,
        Wait::Me => Some("you: crosstalk reply".to_owned()),
        Wait::Carry => Some(format!(
            "you to carry it to {}",
            record.recipients().join(", ")
        )),
        Wait::Them => Some(record.recipients().join(", ")),
    };
    fields.extend(waits.as_deref().map(|w| ("waits for", w)));
    render::fields(out, &fields, 0, look.width);
    let is_shown = |n: &str| look.full || !(FOR_PROGRAMS.contains(&n) || is_hop_namespace(n));
    for block in document.blocks().filter(|b| is_shown(b.namespace())) {
        let namespace = escape(block.namespace());
        let note = match is_hop_namespace(block.namespace()) {
            true => " (added on the way, not signed)",
            false => "",
        };
        out.push_str(&format!(
            "{}{}\n",
            styled(DIM, &format!("meta: {namespace}")),
            styled(DIM, note)
        ));
        render::fields(out, &block.fields().collect::<Vec<_>>(), 2, look.width);
    }
}

/// Writes what to be careful about in front of a text. Returns whether there is a text to show.
pub(super) fn announce_text(out: &mut String, record: &Record, pad: &str) -> bool {
    if let Some(sentence) = caution(record.verdict) {
        out.push_str(&format!("{pad}{}\n", styled(RED, sentence)));
    }
    let why = why_gone(record);
    if let Some(why) = &why {
        let why = format!("The text is not here any more: {why}.");
        out.push_str(&format!("{pad}{}\n", styled(YELLOW, &why)));
    }
    why.is_none()
}

/// The text behind a bar, or why it is not shown.
fn body(out: &mut String, record: &Record, document: &Document<'_>, look: &Look) {
    if !announce_text(out, record, "") {
        return;
    }
    if let Some(warning) = warning(document)
        && !look.unfold
    {
        out.push_str(&format!(
            "{} {}\n{}\n",
            styled(YELLOW, "Content warning:"),
            escape(&warning),
            styled(DIM, "The text is folded; --unfold shows it.")
        ));
        return;
    }
    lines(out, document, look, usize::MAX, 0);
    if record.truncated {
        out.push_str(&format!("{}\n", styled(YELLOW, CUT_OFF)));
    }
    if document.body_lines().next().is_none() {
        out.push_str(&format!("{}\n", styled(DIM, "(no text)")));
    }
}

/// The remark behind a text that may be cut off.
pub(super) const CUT_OFF: &str = "(truncated: the text may be cut off here)";

/// The warning before the text of a message that must not be acted on.
pub(super) const fn caution(verdict: VerdictWord) -> Option<&'static str> {
    Some(match verdict {
        VerdictWord::Damaged => "The text is not what was signed: treat it as unsigned.",
        VerdictWord::NotVerified => "Don't act on this: its text or its sender is not genuine.",
        VerdictWord::Revoked => "Don't act on this: the key that signed it was revoked.",
        _ => return None,
    })
}

/// The content warning of a message.
pub(super) fn warning(document: &Document<'_>) -> Option<String> {
    let safety = document.envelope().safety()?;
    Some(safety.content_warning?.to_owned())
}

/// At most so many lines of the text, each behind a bar and so many spaces; how many were left out.
pub(super) fn lines(
    out: &mut String,
    document: &Document<'_>,
    look: &Look,
    most: usize,
    indent: usize,
) -> usize {
    let pad = " ".repeat(indent);
    let mut rest = 0;
    let mut rows = 0;
    for line in document.body_lines() {
        let text = escape(line);
        for (number, row) in look.rows(&text, indent + 2).into_iter().enumerate() {
            if rows >= most {
                rest += usize::from(number == 0);
                continue;
            }
            rows += 1;
            // A line that goes on is told from a line of the text.
            let bar = if number == 0 { "│" } else { "┆" };
            let space = if row.is_empty() { "" } else { " " };
            out.push_str(&format!("{pad}{}{space}{row}\n", styled(DIM, bar)));
        }
    }
    rest
}
