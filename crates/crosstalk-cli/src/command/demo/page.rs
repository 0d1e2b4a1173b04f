//! The output of a chapter: text and envelopes for people, facts for programs.

use crate::console::{BOLD, Console, DIM, GREEN, styled};
use crate::paragraph::wrap_to;
use crate::report::PollReport;
use crate::screen::{cells, clip_cells};
use crate::{render, view};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Reading, Signature};
use serde_json::{Map, Value};

const LINES: usize = 3;

#[derive(Default)]
pub(super) struct ChapterPage {
    blocks: Vec<PageBlock>,
    pub(super) facts: Map<String, Value>,
}

enum PageBlock {
    Say(String),
    Envelope { text: String, file: String },
    Checked(String),
    Poll(Box<PollReport>),
}

impl ChapterPage {
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.blocks.push(PageBlock::Say(text.into()));
    }

    /// An envelope, shown in short, and the file that has all of it.
    pub(super) fn envelope(&mut self, text: &str, file: &str) {
        self.blocks.push(PageBlock::Envelope {
            text: text.to_owned(),
            file: file.to_owned(),
        });
    }

    /// A statement that the chapter has checked.
    pub(super) fn checked(&mut self, text: impl Into<String>) {
        self.blocks.push(PageBlock::Checked(text.into()));
    }

    pub(super) fn poll(&mut self, collation: PollReport) {
        self.blocks.push(PageBlock::Poll(Box::new(collation)));
    }

    /// Facts for `--json`.
    pub(super) fn facts<const N: usize>(&mut self, facts: [(&str, Value); N]) {
        let facts = facts.map(|(name, value)| (name.to_owned(), value));
        self.facts.extend(facts);
    }

    pub(super) fn render(&self, console: &Console, columns: usize) -> String {
        let mut out = String::new();
        let mut was_checked = false;
        for block in &self.blocks {
            // Checked statements stand together.
            let is_checked = matches!(block, PageBlock::Checked(_));
            if !(is_checked && was_checked) {
                out.push('\n');
            }
            was_checked = is_checked;
            match block {
                PageBlock::Say(text) => {
                    out.push_str(&wrap_to(columns, &escape(text), 0, 0));
                    out.push('\n');
                }
                PageBlock::Envelope { text, file } => envelope(&mut out, text, file, columns),
                PageBlock::Checked(text) => {
                    let text = wrap_to(columns, &escape(text), 4, 4);
                    out.push_str(&format!("  {} {text}\n", styled(GREEN, "\u{2713}")));
                }
                PageBlock::Poll(collation) => {
                    for line in view::poll(console, collation).lines() {
                        out.push_str(&format!("  {line}\n"));
                    }
                }
            }
        }
        out
    }
}

/// An envelope in a few lines behind a bar: who to whom, what for, what the blocks say, the beginning of the text.
fn envelope(out: &mut String, text: &str, file: &str, columns: usize) {
    let document = Document::parse(text, Reading::Strict);
    let envelope = document.envelope();
    let mut line = |styled_text: String| {
        let bar = styled(DIM, "\u{2502}");
        out.push_str(&format!("  {bar} {styled_text}\n"));
    };
    let room = columns.saturating_sub(4).max(20);
    let sides = format!(
        "{} \u{2192} {}",
        view::line(document.sender()),
        view::line(document.receiver())
    );
    let (badge, style) = render::intent(&envelope);
    let beside = room.saturating_sub(cells(&badge) + 2);
    line(format!(
        "{}  {}",
        styled(BOLD, &clip_cells(&sides, beside)),
        styled(style, &badge)
    ));
    for block in document.blocks() {
        if matches!(block.namespace(), "integrity" | "key" | "audit") {
            continue;
        }
        let fields: Vec<String> = block
            .fields()
            .map(|(key, value)| format!("{}: {}", view::line(key), view::line(value)))
            .collect();
        let name = format!("meta: {}", view::line(block.namespace()));
        let taken = cells(&name) + 2;
        let said = wrap_to(room, &fields.join(", "), taken, 2);
        let mut rows = said.lines();
        line(format!(
            "{}  {}",
            styled(DIM, &name),
            rows.next().unwrap_or_default()
        ));
        rows.for_each(|row| line(row.to_owned()));
    }
    let mut body = document.body_lines().filter(|l| !l.trim().is_empty());
    for said in body.by_ref().take(LINES) {
        let rows = wrap_to(room, &view::line(said), 0, 0);
        rows.lines().for_each(|row| line(row.to_owned()));
    }
    if body.next().is_some() {
        line(styled(DIM, "\u{2026}"));
    }
    let signed = match envelope.signature {
        Some(Signature::Signed {
            algorithm, pkid, ..
        }) => format!("{algorithm} by {}", view::line(pkid)),
        _ => "none".to_owned(),
    };
    let end = format!("sig: {signed}   ({})", view::line(file));
    let rows = wrap_to(room, &end, 0, 2);
    rows.lines().for_each(|row| line(styled(DIM, row)));
}
