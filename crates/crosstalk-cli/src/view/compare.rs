//! The answers to one question side by side, or one below the other where there is no room.

use super::message::{CUT_OFF, badge, caution, warning};
use super::{Look, party};
use crate::console::{BOLD, DIM, styled};
use crate::paragraph::count;
use crate::screen::{cells, wrap_words};
use crate::service::lookup::why_gone;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Side, is_same_party, may_answer, rounds};

/// The narrowest column that is pleasant to read.
const NARROWEST: usize = 30;
/// The gap between two columns, and a space behind it where there is a text.
const GAP: &str = " │";

/// How many answers of one party are shown.
const MOST: usize = 3;

/// A question, and the answers of each who was asked, the latest first.
#[derive(Debug)]
pub(crate) struct Compared<'r> {
    question: &'r Record,
    answers: Vec<(String, Vec<&'r Record>)>,
}

impl<'r> Compared<'r> {
    /// The question that a message of the thread puts to several or answers; without a message, the latest such question.
    pub(crate) fn find(records: &'r [Record], wanted: Option<&str>) -> Option<Self> {
        let of = |place: &usize| records.get(*place);
        let means = |questions: &[&'r Record]| {
            let answered = |id: &str| {
                let record = records.iter().find(|r| r.id == id);
                record.and_then(|r| r.parent.as_deref())
            };
            wanted.is_none_or(|id| {
                let parent = answered(id);
                questions
                    .iter()
                    .any(|q| q.id == id || Some(q.id.as_str()) == parent)
            })
        };
        let rounds = rounds(records);
        let rounds = rounds
            .iter()
            .map(|round| round.iter().filter_map(of).collect());
        // A poll is one message to several.
        let single = records.iter().map(|record| vec![record]);
        let mut all: Vec<Vec<&Record>> = single.chain(rounds).collect();
        all.sort_by_key(|questions| questions.first().map(|q| q.seq));
        let mut found = all.into_iter().rev().filter(|q| means(q));
        found.find_map(|questions| Self::of(records, &questions))
    }

    /// The answers to messages that ask the same; nothing if they are not several.
    fn of(records: &'r [Record], questions: &[&'r Record]) -> Option<Self> {
        let question = *questions.first()?;
        let is_answer =
            |r: &&Record, to: &Record| r.parent.as_deref() == Some(&to.id) && r.side != Side::Mine;
        let mut answers: Vec<(String, Vec<&Record>)> = match questions {
            [only] => {
                let document = only.document();
                let targets = document.envelope().routing().target_list();
                let mut answers: Vec<(String, Vec<&Record>)> = targets
                    .iter()
                    .map(|t| (t.to_string(), Vec::new()))
                    .collect();
                for answer in records.iter().rev().filter(|r| is_answer(r, only)) {
                    let known = answers.iter_mut();
                    let mut known = known.filter(|(name, _)| {
                        is_same_party(name, &answer.sender) || may_answer(name, &answer.sender)
                    });
                    match known.next() {
                        Some((_, all)) => all.push(answer),
                        None => answers.push((answer.sender.clone(), vec![answer])),
                    }
                }
                answers
            }
            several => several
                .iter()
                .map(|asked| {
                    let all = records.iter().rev().filter(|r| is_answer(r, asked));
                    (asked.receiver.clone(), all.collect())
                })
                .collect(),
        };
        for (_, all) in &mut answers {
            // A truncated answer does not count where the whole one came later.
            let mut is_latest = true;
            all.retain(|r| std::mem::take(&mut is_latest) || !r.truncated);
        }
        (answers.len() > 1).then_some(Self { question, answers })
    }
}

/// A question with its answers, rendered with styles.
pub(crate) fn compare(
    compared: &Compared<'_>,
    short: impl Fn(&str) -> String,
    look: &Look,
) -> String {
    let mut out = String::new();
    for line in compared.question.document().body_text().lines() {
        for row in wrap_words(&escape(line), look.width) {
            out.push_str(&format!("{}\n", styled(BOLD, &row)));
        }
    }
    let number = compared.answers.len();
    let gaps = (cells(GAP) + 1) * number.saturating_sub(1);
    let room = look.width.saturating_sub(gaps) / number.max(1);
    let is_wide = room >= NARROWEST;
    let width = if is_wide { room } else { look.width };
    let columns: Vec<Vec<Row>> = compared
        .answers
        .iter()
        .map(|(name, answers)| column(name, answers, &short, (width, look)))
        .collect();
    out.push_str(&format!("{}\n", styled(DIM, &"─".repeat(look.width))));
    match is_wide {
        true => side_by_side(&mut out, &columns, width),
        false => {
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    out.push('\n');
                }
                for row in column {
                    out.push_str(&format!("{}\n", row.styled));
                }
            }
        }
    }
    for (name, answers) in &compared.answers {
        let left = answers.len().saturating_sub(MOST);
        if left > 0 {
            let thread = short(&compared.question.thread);
            let left = count(left, "more answer");
            let note = format!(
                "{left} of {}: `crosstalk show {thread} --full`",
                party(name)
            );
            out.push_str(&format!("\n{}\n", styled(DIM, &note)));
        }
    }
    out
}

/// A line of a column, and how many cells it takes.
struct Row {
    styled: String,
    cells: usize,
}

impl Row {
    fn new(style: Option<anstyle::Style>, text: &str) -> Self {
        Self {
            styled: style.map_or_else(|| text.to_owned(), |style| styled(style, text)),
            cells: cells(text),
        }
    }
}

/// One answer: its sender, its verdict, and the text; the latest first.
fn column(
    name: &str,
    answers: &[&Record],
    short: &impl Fn(&str) -> String,
    (width, look): (usize, &Look),
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |style: Option<anstyle::Style>, text: &str| {
        for row in wrap_words(text, width) {
            rows.push(Row::new(style, &row));
        }
    };
    add(Some(BOLD), &party(name));
    if answers.is_empty() {
        add(Some(DIM), "no answer yet");
    }
    for (number, answer) in answers.iter().take(MOST).enumerate() {
        let (_, plain) = badge(answer);
        let fact = format!("{plain} · {}", short(&answer.id));
        match number {
            0 => add(Some(DIM), &fact),
            _ => {
                add(None, "");
                add(Some(DIM), &format!("earlier: {fact}"));
            }
        }
        add(None, "");
        if let Some(sentence) = caution(answer.verdict) {
            add(Some(crate::console::RED), sentence);
        }
        let document = answer.document();
        if let Some(why) = why_gone(answer) {
            add(Some(DIM), &format!("The text is not here any more: {why}."));
        } else if let Some(warning) = warning(&document).filter(|_| !look.unfold) {
            let warning = escape(&warning).into_owned();
            add(
                Some(DIM),
                &format!("Content warning: {warning} (folded; --unfold shows it)"),
            );
        } else {
            for line in document.body_lines() {
                add(None, &escape(line));
            }
        }
        if answer.truncated {
            add(Some(DIM), CUT_OFF);
        }
    }
    rows
}

fn side_by_side(out: &mut String, columns: &[Vec<Row>], width: usize) {
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    for place in 0..rows {
        let mut line = String::new();
        let last = columns.len().saturating_sub(1);
        for (number, column) in columns.iter().enumerate() {
            let row = column.get(place);
            let text = row.map_or("", |row| row.styled.as_str());
            if number > 0 && !text.is_empty() {
                line.push(' ');
            }
            line.push_str(text);
            if number < last {
                let used = row.map_or(0, |row| row.cells);
                let lead = usize::from(number > 0 && text.is_empty());
                line.push_str(&" ".repeat(width.saturating_sub(used) + lead));
                line.push_str(&styled(DIM, GAP));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
