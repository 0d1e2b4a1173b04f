//! The answers to one question side by side, or one below the other where there is no room.

use super::message::{badge, caution, warning};
use super::{Look, party};
use crate::console::{BOLD, DIM, styled};
use crate::desk::why_gone;
use crate::screen::{cells, wrap_cells};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Side, is_same_party, may_answer, rounds};

/// The narrowest column that is pleasant to read.
const NARROWEST: usize = 30;
/// What stands between two columns, and a space behind it where there is a text.
const GAP: &str = " │";

/// A question, and the latest answer of each who was asked.
#[derive(Debug)]
pub(crate) struct Compared<'r> {
    question: &'r Record,
    answers: Vec<(String, Option<&'r Record>)>,
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
        let answers: Vec<(String, Option<&Record>)> = match questions {
            [only] => {
                let document = only.document();
                let targets = document.envelope().routing().target_list();
                let mut answers: Vec<(String, Option<&Record>)> =
                    targets.iter().map(|t| (t.to_string(), None)).collect();
                for answer in records.iter().filter(|r| is_answer(r, only)) {
                    let known = answers.iter_mut();
                    let mut known = known.filter(|(name, _)| {
                        is_same_party(name, &answer.sender) || may_answer(name, &answer.sender)
                    });
                    match known.next() {
                        Some((_, latest)) => *latest = Some(answer),
                        None => answers.push((answer.sender.clone(), Some(answer))),
                    }
                }
                answers
            }
            several => several
                .iter()
                .map(|asked| {
                    let mut latest = records.iter().rev();
                    let latest = latest.find(|r| is_answer(r, asked));
                    (asked.receiver.clone(), latest)
                })
                .collect(),
        };
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
        for row in words(&escape(line), look.width) {
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
        .map(|(name, answer)| column(name, *answer, &short, (width, look)))
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

/// What one of them said: who, how far it can be trusted, and the text.
fn column(
    name: &str,
    answer: Option<&Record>,
    short: &impl Fn(&str) -> String,
    (width, look): (usize, &Look),
) -> Vec<Row> {
    let head = words(&party(name), width);
    let mut rows: Vec<Row> = head.iter().map(|row| Row::new(Some(BOLD), row)).collect();
    let mut add = |style: Option<anstyle::Style>, text: &str| {
        for row in words(text, width) {
            rows.push(Row::new(style, &row));
        }
    };
    let Some(answer) = answer else {
        add(Some(DIM), "no answer yet");
        return rows;
    };
    let (_, plain) = badge(answer);
    add(Some(DIM), &format!("{plain} · {}", short(&answer.id)));
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

/// A line in rows of at most `width` cells, broken between words; a longer word is broken where it has to be. The indent
/// of the line stays.
fn words(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let (indent, text) = line.split_at_checked(indent).unwrap_or(("", line));
    let mut rows: Vec<String> = Vec::new();
    let mut row = indent.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        let gap = if is_empty { "" } else { " " };
        if !is_empty && cells(&row) + 1 + cells(word) > width {
            rows.push(std::mem::take(&mut row));
            row.push_str(word);
        } else {
            row.push_str(gap);
            row.push_str(word);
        }
        is_empty = false;
        if cells(&row) > width {
            let mut pieces = wrap_cells(&row, width);
            row = pieces.pop().unwrap_or_default();
            rows.extend(pieces);
        }
    }
    rows.push(row.trim_end().to_owned());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_and_break_between_words() {
        for (line, width, rows) in [
            ("one two three", 7, vec!["one two", "three"]),
            ("", 7, vec![""]),
            ("abcdefghij k", 4, vec!["abcd", "efgh", "ij k"]),
            ("    indented text", 12, vec!["    indented", "text"]),
            ("漢字漢字", 4, vec!["漢字", "漢字"]),
        ] {
            assert_eq!(words(line, width), rows, "{line}");
        }
    }
}
