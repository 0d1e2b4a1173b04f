//! Lists: threads, and messages one below the other.

use super::message::{badge, warning};
use super::{Look, intent, parties, party, time_of};
use crate::age::age;
use crate::console::{BOLD, DIM, GREEN, YELLOW, styled};
use crate::screen::{cells, clip_cells};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Thread, Wait};

/// Threads, one a line: id, age, messages, parties, what it is about, state.
pub(crate) fn threads(threads: &[Thread], short: impl Fn(&str) -> String, look: &Look) -> String {
    let rows: Vec<[String; 5]> = threads
        .iter()
        .map(|t| {
            let names: Vec<String> = t.parties.iter().map(|p| party(p)).collect();
            [
                short(&t.id),
                age(t.last_at, look.now),
                t.messages.to_string(),
                clip_cells(&names.join(", "), look.width / 3),
                escape(t.context.as_deref().unwrap_or("")).into_owned(),
            ]
        })
        .collect();
    let wide = |column: usize| {
        let column = rows.iter().filter_map(|r| r.get(column));
        column.map(|c| cells(c)).max().unwrap_or(0)
    };
    let (ids, ages, counts, parties) = (wide(0), wide(1), wide(2), wide(3));
    let mut out = String::new();
    for (thread, row) in threads.iter().zip(&rows) {
        let [id, age, count, who, context] = row;
        let state = state(thread);
        let taken = ids + ages + counts + parties + 8 + cells(&state) + 2;
        let room = look.width.saturating_sub(taken).max(12);
        let context = clip_cells(context, room);
        let style = match (thread.waiting, thread.closed_at) {
            (1.., _) => YELLOW,
            (0, Some(_)) => DIM,
            (0, None) => GREEN,
        };
        let line = format!(
            "{}  {}  {}  {}  {}{}",
            styled(BOLD, &padded(id, ids)),
            styled(DIM, &padded(age, ages)),
            format_args!("{count:>counts$}"),
            padded(who, parties),
            padded(&context, room),
            styled(style, &format!("  {state}")),
        );
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// What a thread is waiting for.
pub(super) fn state(thread: &Thread) -> String {
    match (thread.closed_at, thread.waiting, thread.asked) {
        (Some(_), ..) => "closed".to_owned(),
        (None, 1.., _) => "waits for you".to_owned(),
        (None, 0, 1..) => "asked".to_owned(),
        (None, 0, 0) => "open".to_owned(),
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(cells(text))))
}

/// Messages, each with the beginning of its text, or with the place that was found.
pub(crate) fn messages(
    records: &[Record],
    short: impl Fn(&str) -> String,
    extract: impl Fn(&str) -> String,
    look: &Look,
) -> String {
    let mut out = String::new();
    for (number, record) in records.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let document = record.document();
        let (intent, color) = intent(record, &document);
        let sides_text = parties(record);
        let (badge, plain) = badge(record);
        let todo = match record.wait {
            Wait::Me => styled(YELLOW, " · answer it"),
            Wait::Carry => styled(YELLOW, " · carry it"),
            Wait::Them | Wait::Nobody => String::new(),
        };
        let context = escape(record.context.as_deref().unwrap_or("")).into_owned();
        let left = format!(
            "{}  {}{todo}",
            styled(BOLD, &sides_text),
            styled(color, &intent)
        );
        let tail = format!(
            "· {} · {}",
            age(time_of(record), look.now),
            short(&record.id)
        );
        let used = cells(&sides_text) + 2 + cells(&intent) + visible(&todo);
        out.push_str(&super::sides(
            (&left, used),
            (
                &format!("{badge} {}", styled(DIM, &tail)),
                cells(&plain) + 1 + cells(&tail),
            ),
            look.width,
        ));
        let text = match warning(&document) {
            Some(warning) => format!("(content warning: {})", escape(&warning)),
            None => extract(&document.body_text()),
        };
        let room = look.width.saturating_sub(2);
        if !context.is_empty() {
            out.push_str(&format!("  {}\n", styled(DIM, &clip_cells(&context, room))));
        }
        out.push_str(&format!("  {}\n", clip_cells(&text, room)));
    }
    out
}

fn visible(text: &str) -> usize {
    cells(&anstream::adapter::strip_str(text).to_string())
}
