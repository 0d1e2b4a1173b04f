//! Lists: threads, and messages one below the other.

use super::message::{badge, warning};
use super::{Look, intent, line, names, parties, party, time_of};
use crate::clock::age;
use crate::console::{BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::paragraph::wrap;
use crate::screen::{cells, clip_cells, visible};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{AskedMessage, Record, Thread, ThreadState, Wait};

/// The fewest columns that names and what a thread is about get; where there are fewer, the names are left out.
const LEAST: usize = 10;
/// The most columns of a state.
const WIDEST_STATE: usize = 26;

/// Threads, one a line: id, age, messages, what it is about, parties, what has to happen next.
pub(crate) fn threads(threads: &[Thread], short: impl Fn(&str) -> String, look: &Look) -> String {
    let rows: Vec<[String; 6]> = threads
        .iter()
        .map(|t| {
            let names: Vec<String> = t.people().into_iter().map(party).collect();
            [
                short(&t.id),
                age(t.last_at, look.now),
                t.messages.to_string(),
                line(t.context.as_deref().unwrap_or("")),
                names.join(", "),
                clip_cells(&state(t), WIDEST_STATE),
            ]
        })
        .collect();
    let wide = |column: usize| {
        let column = rows.iter().filter_map(|r| r.get(column));
        column.map(|c| cells(c)).max().unwrap_or(0)
    };
    let (ids, ages, counts, states) = (wide(0), wide(1), wide(2), wide(5));
    // Two spaces stand between columns. What a thread is about gets its room before the names do.
    let room = look.width.saturating_sub(ids + ages + counts + states + 10);
    let (about, names) = match room.checked_sub(2 * LEAST) {
        None => (room.max(LEAST), 0),
        Some(free) => {
            let about = wide(3).clamp(LEAST, LEAST + free);
            (about, wide(4).min(room - about))
        }
    };
    let mut out = String::new();
    for (thread, row) in threads.iter().zip(&rows) {
        let [id, age, count, context, who, state] = row;
        let style = match thread.state() {
            ThreadState::YourTurn | ThreadState::Carry(_) => YELLOW,
            ThreadState::Closed => DIM,
            ThreadState::Failed(_) => RED,
            _ => GREEN,
        };
        let who = match names {
            0 => String::new(),
            _ => format!("  {}", padded(&clip_cells(who, names), names)),
        };
        let line = format!(
            "{}  {}  {}  {}{who}  {}",
            styled(BOLD, &padded(id, ids)),
            styled(DIM, &padded(age, ages)),
            format_args!("{count:>counts$}"),
            padded(&clip_cells(context, about), about),
            styled(style, state),
        );
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// The next step in a thread.
pub(super) fn state(thread: &Thread) -> String {
    match thread.state() {
        ThreadState::Closed => "closed".to_owned(),
        ThreadState::YourTurn => "your turn".to_owned(),
        ThreadState::Carry(list) => format!("carry to {}", names(&list)),
        ThreadState::WaitingFor(list) => format!("waiting for {}", names(&list)),
        ThreadState::Failed(failed) => {
            let all = failed
                .iter()
                .map(|f| format!("{} ({})", line(&f.code), party(&line(&f.of))));
            format!("failed: {}", all.collect::<Vec<_>>().join(", "))
        }
        ThreadState::Answered => "answered".to_owned(),
        ThreadState::Open => "open".to_owned(),
    }
}

/// Messages that wait for others: for whom, since when, what about, the beginning of the text, and notes about the way.
pub(crate) fn asked(
    messages: &[AskedMessage],
    (short, notes): (impl Fn(&str) -> String, impl Fn(&Record) -> Vec<String>),
    look: &Look,
) -> String {
    let mut out = String::new();
    for (number, asked) in messages.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let record = &asked.record;
        let tail = format!("{} · {}", age(time_of(record), look.now), short(&record.id));
        let room = look.width.saturating_sub(cells(&tail) + 2).max(LEAST);
        let whom = clip_cells(&names(&asked.of), room);
        out.push_str(&super::sides(
            (&styled(BOLD, &whom), cells(&whom)),
            (&styled(DIM, &tail), cells(&tail)),
            look.width,
        ));
        let text = extract(record, super::first_line);
        let room = look.width.saturating_sub(2);
        let context = line(record.context.as_deref().unwrap_or(""));
        if !context.is_empty() && context != text {
            out.push_str(&format!("  {}\n", styled(DIM, &clip_cells(&context, room))));
        }
        out.push_str(&format!("  {}\n", clip_cells(&text, room)));
        for note in notes(record) {
            let note = wrap(&note, 2, 2);
            out.push_str(&format!("  {}\n", styled(YELLOW, &note)));
        }
    }
    out
}

/// The extract of a text that lists show; of a message with a content warning, the warning.
fn extract(record: &Record, extract: impl Fn(&str) -> String) -> String {
    let document = record.document();
    match warning(&document) {
        Some(warning) => format!("(content warning: {})", escape(&warning)),
        None if record.truncated => format!("(truncated) {}", extract(&document.body_text())),
        None => extract(&document.body_text()),
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(cells(text))))
}

/// Messages, each with the beginning of its text, or with the place that was found. `question` is what a message goes back to.
pub(crate) fn messages(
    records: &[Record],
    short: impl Fn(&str) -> String,
    (extract, question): (impl Fn(&str) -> String, impl Fn(&Record) -> Option<Record>),
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
        let text = self::extract(record, &extract);
        let room = look.width.saturating_sub(2);
        if !context.is_empty() {
            out.push_str(&format!("  {}\n", styled(DIM, &clip_cells(&context, room))));
        }
        out.push_str(&format!("  {}\n", clip_cells(&text, room)));
        if let Some(question) = question(record) {
            let words = self::extract(&question, super::first_line);
            let line = format!("{} asked: {words}", party(&question.sender));
            out.push_str(&format!("  {}\n", styled(DIM, &clip_cells(&line, room))));
        }
    }
    out
}
