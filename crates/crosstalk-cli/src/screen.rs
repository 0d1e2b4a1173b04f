//! The size of the terminal, and text that fits into its cells.
//!
//! [`fit`] is the one place that keeps every line for people within the terminal: the console passes all of them through
//! it. Columns use the same width, so that little is left to break.
//!
//! Text comes here already escaped: nothing in it moves the cursor. A cell is the room of one narrow character; wide
//! ones take two. Grapheme clusters are never split: a letter keeps its combining marks, a flag
//! both of its letters.

use anstyle::Style;
use std::borrow::Cow;
use std::io::IsTerminal as _;
use terminal_size::{Height, Width};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The width of a terminal that does not know its size.
const COLUMNS: usize = 80;
/// A terminal that is said to be wider than this is not believed.
const MOST: usize = 1000;
/// Between tab stops; a tab is counted as if it took all of them.
const TAB: usize = 8;

/// The columns that a line on stdout may have: those of `COLUMNS`, else those of its terminal. A pipe or a file without
/// `COLUMNS` has no width: its lines stay whole.
pub(crate) fn stdout_columns() -> Option<usize> {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    columns(terminal.then(|| terminal_size::terminal_size_of(&stdout)))
}

/// The same of stderr.
pub(crate) fn stderr_columns() -> Option<usize> {
    let stderr = std::io::stderr();
    let terminal = stderr.is_terminal();
    columns(terminal.then(|| terminal_size::terminal_size_of(&stderr)))
}

fn columns(terminal: Option<Option<(Width, Height)>>) -> Option<usize> {
    columns_of(std::env::var("COLUMNS").ok().as_deref(), terminal)
}

/// The columns that the environment says, or a terminal that may not know its size.
fn columns_of(said: Option<&str>, terminal: Option<Option<(Width, Height)>>) -> Option<usize> {
    let said = said.and_then(|t| t.trim().parse().ok());
    let asked = || {
        let size = terminal?;
        let known = size.map(|(Width(width), _)| usize::from(width));
        Some(known.filter(|n| *n > 0).unwrap_or(COLUMNS))
    };
    let columns: Option<usize> = said.filter(|n| *n > 0).or_else(asked);
    columns.map(|n| n.min(MOST))
}

/// The cells that a text takes in one row.
pub(crate) fn cells(text: &str) -> usize {
    let tabs = text.bytes().filter(|b| *b == b'\t').count();
    // A control counts as one cell; a tab is one.
    text.width() + tabs * (TAB - 1)
}

/// Breaks a line into rows of at most `width` cells, wherever that is; put together again, they are the line. A row has
/// at least one character, even where that is too wide for it. An empty line is one empty row.
pub(crate) fn wrap_cells(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0_usize);
    for cluster in line.graphemes(true) {
        let wide = cells(cluster);
        if !row.is_empty() && used.saturating_add(wide) > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push_str(cluster);
        used = used.saturating_add(wide);
    }
    if !row.is_empty() || rows.is_empty() {
        rows.push(row);
    }
    rows
}

/// A line in rows of at most `width` cells, broken between words; a longer word is broken where it has to be. The indent
/// of the line stays.
pub(crate) fn wrap_words(line: &str, width: usize) -> Vec<String> {
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

/// The beginning of a line in at most `width` cells; what is left out is shown as `…`. With no cell there is no text.
pub(crate) fn clip_cells(line: &str, width: usize) -> String {
    let mut used = 0_usize;
    let mut fits = true;
    // The mark needs a cell, too.
    let (mut kept, mut end) = (0, 0);
    for cluster in line.graphemes(true) {
        used = used.saturating_add(cells(cluster));
        if used > width {
            fits = false;
            break;
        }
        end += cluster.len();
        if used < width {
            kept = end;
        }
    }
    match (fits, width) {
        (true, _) => line.to_owned(),
        (false, 0) => String::new(),
        (false, _) => format!("{}…", line.get(..kept).unwrap_or_default()),
    }
}

/// Rows of cells with their styles, in columns with two spaces between them. A cell wider than `widest` widens no column.
pub(crate) fn table<const N: usize>(rows: &[[(String, Style); N]], widest: usize) -> String {
    let width = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        let widths = texts.map(|(text, _)| cells(text));
        widths.filter(|w| *w <= widest).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut gap = 0;
        for ((text, style), width) in row.iter().zip(&widths) {
            if !text.is_empty() {
                out.push_str(&" ".repeat(std::mem::take(&mut gap)));
                out.push_str(&format!("{style}{text}{style:#}"));
            }
            gap += width.saturating_sub(cells(text)) + 2;
        }
        out.push('\n');
    }
    out
}

/// Breaks the lines of a text that are wider than `width` cells: between words, where there are any. A command in
/// backticks stays together if a row has room for it. A row that goes on begins where its line begins, and behind a bar
/// if that does, so that no text passes for one of ours. Styles take no cells.
pub(crate) fn fit(text: &str, width: usize) -> Cow<'_, str> {
    // No character but a tab takes more cells than bytes.
    let is_short = |line: &str| line.len() <= width && !line.contains('\t');
    let fits = |line: &str| is_short(line) || visible(line) <= width;
    if text.split('\n').all(fits) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        match fits(line) {
            true => out.push_str(line),
            false => break_line(line, width, &mut out),
        }
    }
    Cow::Owned(out)
}

/// The cells that a text with styles takes.
pub(crate) fn visible(text: &str) -> usize {
    match text.contains(ESCAPE) {
        true => cells(&anstream::adapter::strip_str(text).to_string()),
        false => cells(text),
    }
}

const ESCAPE: char = '\u{1b}';

fn break_line(line: &str, width: usize, out: &mut String) {
    let plain = anstream::adapter::strip_str(line).to_string();
    let inner = plain.trim_start_matches(' ');
    let lead = (plain.len() - inner.len()).min(width / 2);
    let hang = match inner.starts_with(['│', '┆']) {
        true => format!("{}┆ ", " ".repeat(lead)),
        false => " ".repeat(lead),
    };
    let room = width.saturating_sub(cells(&hang)).max(1);
    // The first row has its indent in the line itself.
    let (mut used, mut is_fresh) = (0, true);
    for (spaces, word) in words(line, room) {
        let wide = visible(word);
        let spaces = if is_fresh { spaces.min(lead) } else { spaces };
        if used + spaces + wide <= width || is_fresh {
            out.push_str(&" ".repeat(spaces));
            used += spaces;
        } else {
            out.push('\n');
            out.push_str(&hang);
            used = cells(&hang);
        }
        is_fresh = wide == 0 && is_fresh;
        used = push_word(word, (used, width), &hang, out);
    }
}

/// Writes a word, in several rows if one has no room for it; the cells of its last row that are used then.
fn push_word(word: &str, (mut used, width): (usize, usize), hang: &str, out: &mut String) -> usize {
    let mut rest = word;
    while !rest.is_empty() {
        let length = match rest.strip_prefix(ESCAPE) {
            // A style ends with its first letter.
            Some(style) => style
                .find(|c: char| c.is_ascii_alphabetic())
                .map_or(rest.len(), |at| at + 2),
            None => rest.graphemes(true).next().map_or(rest.len(), str::len),
        };
        let Some((piece, behind)) = rest.split_at_checked(length) else {
            break;
        };
        let wide = visible(piece);
        if used + wide > width && used > cells(hang) {
            out.push('\n');
            out.push_str(hang);
            used = cells(hang);
        }
        out.push_str(piece);
        used += wide;
        rest = behind;
    }
    used
}

/// The words of a line, each with the number of spaces before it. Text in backticks is one word if it fits into
/// `room` cells. Spaces at the end of the line are left out.
fn words(line: &str, room: usize) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let inner = rest.trim_start_matches(' ');
        let spaces = rest.len() - inner.len();
        if inner.is_empty() {
            return words;
        }
        let end = |from: usize| {
            let tail = inner.get(from..).unwrap_or("");
            tail.find(' ').map_or(inner.len(), |at| from + at)
        };
        let first = end(0);
        let is_open = |to: usize| inner.get(..to).unwrap_or("").matches('`').count() % 2 == 1;
        let whole = is_open(first)
            .then(|| inner.get(first..)?.find('`'))
            .flatten();
        let whole = whole.map(|at| end(first + at));
        let fits = |to: &usize| visible(inner.get(..*to).unwrap_or("")) <= room;
        let length = whole.filter(fits).unwrap_or(first);
        let (word, behind) = inner.split_at_checked(length).unwrap_or((inner, ""));
        words.push((spaces, word));
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_environment_is_believed_then_the_terminal() {
        let terminal = Some(Some((Width(132), Height(50))));
        assert_eq!(columns_of(Some("40"), terminal), Some(40));
        assert_eq!(columns_of(Some("40"), None), Some(40));
        assert_eq!(columns_of(None, terminal), Some(132));
        assert_eq!(columns_of(None, None), None);
        for wrong in ["", "0", "-5", "wide", "99999999999999999999999"] {
            assert_eq!(columns_of(Some(wrong), terminal), Some(132), "{wrong}");
        }
        assert_eq!(columns_of(Some("100000"), None), Some(MOST));
        let unknown = Some(Some((Width(0), Height(0))));
        assert_eq!(columns_of(None, unknown), Some(80));
        assert_eq!(columns_of(None, Some(None)), Some(80));
    }

    #[test]
    fn rows_break_between_characters_and_never_inside_one() {
        assert_eq!(wrap_cells("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrap_cells("日本語", 5), ["日本", "語"]);
        assert_eq!(wrap_cells("a日b", 2), ["a", "日", "b"]);
        // e with an acute and a dot below; a thumb with its colour; two flags.
        assert_eq!(
            wrap_cells("xe\u{301}\u{323}y", 2),
            ["xe\u{301}\u{323}", "y"]
        );
        assert_eq!(wrap_cells("👍🏽👍🏽", 3), ["👍🏽", "👍🏽"]);
        assert_eq!(wrap_cells("🇫🇮🇸🇪", 2), ["🇫🇮", "🇸🇪"]);
        assert_eq!(wrap_cells("", 10), [""]);
        assert_eq!(wrap_cells("日本", 1), ["日", "本"]);
        assert_eq!(wrap_cells("ab", 0), ["a", "b"]);
        assert_eq!(wrap_cells("\u{301}a", 1), ["\u{301}a"]);
        assert_eq!(wrap_cells("\ta\t", 9), ["\ta", "\t"]);
    }

    #[test]
    fn rows_fit_and_break_between_words() {
        for (line, width, rows) in [
            ("one two three", 7, vec!["one two", "three"]),
            ("", 7, vec![""]),
            ("abcdefghij k", 4, vec!["abcd", "efgh", "ij k"]),
            ("    indented text", 12, vec!["    indented", "text"]),
            ("漢字漢字", 4, vec!["漢字", "漢字"]),
            ("a  b", 9, vec!["a  b"]),
        ] {
            assert_eq!(wrap_words(line, width), rows, "{line}");
        }
    }

    #[test]
    fn omitted_text_is_marked() {
        assert_eq!(clip_cells("abcdef", 6), "abcdef");
        assert_eq!(clip_cells("abcdef", 5), "abcd…");
        assert_eq!(clip_cells("日本語", 5), "日本…");
        assert_eq!(clip_cells("日本語", 4), "日…");
        assert_eq!(clip_cells("日本語", 1), "…");
        assert_eq!(clip_cells("abc", 0), "");
        assert_eq!(clip_cells("", 0), "");
        assert_eq!(clip_cells("e\u{301}e\u{301}", 1), "…");
        assert_eq!(clip_cells("e\u{301}", 1), "e\u{301}");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(fit("short\nlines\n", 5), "short\nlines\n");
        assert_eq!(fit("one two three", 8), "one two\nthree");
        assert_eq!(fit("  one two three", 8), "  one\n  two\n  three");
        assert_eq!(fit("abcdefgh", 5), "abcde\nfgh");
        assert_eq!(fit("a bcdefgh", 5), "a\nbcdef\ngh");
        assert_eq!(
            fit("  │ 日本 text more", 10),
            "  │ 日本\n  ┆ text\n  ┆ more"
        );
        assert_eq!(fit("column    column", 8), "column\ncolumn");
        assert_eq!(fit("padded      ", 8), "padded");
        let styled = "\u{1b}[1mone two\u{1b}[0m three";
        assert_eq!(fit(styled, 8), "\u{1b}[1mone two\u{1b}[0m\nthree");
    }

    #[test]
    fn a_command_stays_together_where_it_fits() {
        assert_eq!(
            fit("see `crosstalk show 01` now", 20),
            "see\n`crosstalk show 01`\nnow"
        );
        assert_eq!(
            fit("see `crosstalk show 01` now", 12),
            "see\n`crosstalk\nshow 01` now"
        );
        assert_eq!(fit("a ` alone in a row", 8), "a `\nalone in\na row");
    }

    /// Text of all kinds: plain, wide, with marks, with flags.
    fn line() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-z ]{1,8}",
            2 => "[日本語한글]{1,4}",
            2 => "[\u{300}\u{301}\u{323}\u{fe0f}]{1,3}",
            1 => "[🇫🇮👍🏽🎉\u{200d}]{1,4}",
            1 => "\\PC{0,6}",
            1 => Just("\t".to_owned()),
        ];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_terminal(line in line(), indent in 0_usize..20, width in 16_usize..60) {
            let line = format!("{}{line}", " ".repeat(indent));
            for row in fit(&line, width).split('\n') {
                prop_assert!(visible(row) <= width, "{:?} in {}", row, width);
            }
            let without = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(without(&fit(&line, width)), without(&line));
        }

        #[test]
        fn rows_fit_and_are_the_line(line in line(), width in 0_usize..30) {
            let rows = wrap_cells(&line, width);
            prop_assert_eq!(rows.concat(), line.clone());
            prop_assert!(line.is_empty() || rows.iter().all(|r| !r.is_empty()));
            for row in &rows {
                let alone = row.graphemes(true).count() == 1;
                prop_assert!(alone || cells(row) <= width, "{:?} in {}", row, width);
            }
            // No row could have taken the beginning of the next one.
            for pair in rows.windows(2) {
                let next = pair[1].graphemes(true).next().unwrap();
                let sum: usize = pair[0].graphemes(true).map(cells).sum();
                prop_assert!(sum + cells(next) > width);
            }
        }

        #[test]
        fn clipped_text_fits_and_is_a_prefix(line in line(), width in 0_usize..30) {
            let clipped = clip_cells(&line, width);
            if clipped != line {
                prop_assert!(cells(&clipped) <= width, "{:?} in {}", clipped, width);
                prop_assert!(line.starts_with(clipped.trim_end_matches('…')));
                prop_assert!(width == 0 || clipped.ends_with('…'));
                prop_assert!(line.graphemes(true).map(cells).sum::<usize>() > width);
            }
        }
    }
}
