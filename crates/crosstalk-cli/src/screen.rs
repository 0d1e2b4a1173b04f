//! The size of the terminal, and text that fits into its cells.
//!
//! Text comes here already escaped: nothing in it moves the cursor. A cell is the room of one narrow character; wide
//! ones take two. What can't be told apart on a screen is never torn apart: a letter keeps its combining marks, a flag
//! both of its letters.

use std::io::IsTerminal as _;
use terminal_size::{Height, Width};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What is assumed where there is no terminal.
const COLUMNS: usize = 80;
const ROWS: usize = 24;
/// A terminal that is said to be wider than this is not believed.
const MOST: usize = 1000;
/// Between tab stops; a tab is counted as if it took all of them.
const TAB: usize = 8;

/// How many cells and rows there are to write on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Cells of a row, at least one.
    pub(crate) columns: usize,
    /// Rows, at least one.
    pub(crate) rows: usize,
}

/// The size of the terminal that stdout is. `COLUMNS` and `LINES` are believed first; where stdout is no terminal it is
/// 80 by 24.
pub(crate) fn size() -> Size {
    let stdout = std::io::stdout();
    let terminal = match stdout.is_terminal() {
        true => terminal_size::terminal_size_of(&stdout),
        false => None,
    };
    let said = |name| std::env::var(name).ok();
    size_of(
        said("COLUMNS").as_deref(),
        said("LINES").as_deref(),
        terminal,
    )
}

fn size_of(columns: Option<&str>, lines: Option<&str>, terminal: Option<(Width, Height)>) -> Size {
    let said = |text: Option<&str>| text.and_then(|t| t.trim().parse().ok()).filter(|n| *n > 0);
    // A terminal that does not know its size says 0.
    let asked = |number: u16| Some(usize::from(number)).filter(|n| *n > 0);
    let (width, height) = match terminal {
        Some((Width(width), Height(height))) => (asked(width), asked(height)),
        None => (None, None),
    };
    Size {
        columns: said(columns).or(width).unwrap_or(COLUMNS).min(MOST),
        rows: said(lines).or(height).unwrap_or(ROWS).min(MOST),
    }
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
    for cluster in Clusters(line) {
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

/// The beginning of a line in at most `width` cells; what is left out is shown as `…`. With no cell there is no text.
pub(crate) fn clip_cells(line: &str, width: usize) -> String {
    let mut used = 0_usize;
    let mut fits = true;
    // What stays if the rest does not fit: the mark needs a cell, too.
    let (mut kept, mut end) = (0, 0);
    for cluster in Clusters(line) {
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

/// What stays together: a character with the marks on it, the two letters of a flag, joined emoji, the parts of a
/// Hangul syllable.
struct Clusters<'t>(&'t str);

impl<'t> Iterator for Clusters<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        const JOINER: char = '\u{200d}';
        let mut characters = self.0.char_indices();
        let (_, first) = characters.next()?;
        let (mut last, mut flag) = (first, is_flag_letter(first));
        let end = characters.find_map(|(at, c)| {
            let belongs = c != '\t'
                && last != '\t'
                && (c.width() == Some(0)
                    || last == JOINER
                    || is_skin_tone(c)
                    || (flag && is_flag_letter(c)));
            // Two letters are a flag; a third one begins the next.
            flag &= !is_flag_letter(c);
            last = c;
            (!belongs).then_some(at)
        });
        let (cluster, rest) = self.0.split_at_checked(end.unwrap_or(self.0.len()))?;
        self.0 = rest;
        Some(cluster)
    }
}

const fn is_flag_letter(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

const fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_environment_is_believed_then_the_terminal_then_nobody() {
        let terminal = Some((Width(132), Height(50)));
        let size = |c, l, t| {
            let size = size_of(c, l, t);
            (size.columns, size.rows)
        };
        assert_eq!(size(Some("40"), None, terminal), (40, 50));
        assert_eq!(size(Some("40"), Some("7"), None), (40, 7));
        assert_eq!(size(None, None, terminal), (132, 50));
        assert_eq!(size(None, None, None), (80, 24));
        for wrong in ["", "0", "-5", "wide", "99999999999999999999999"] {
            assert_eq!(
                size(Some(wrong), Some(wrong), terminal),
                (132, 50),
                "{wrong}"
            );
        }
        assert_eq!(size(Some("100000"), None, None).0, MOST);
        assert_eq!(size(None, None, Some((Width(0), Height(0)))), (80, 24));
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
    fn what_is_left_out_is_marked() {
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
        fn rows_fit_and_are_the_line(line in line(), width in 0_usize..30) {
            let rows = wrap_cells(&line, width);
            prop_assert_eq!(rows.concat(), line.clone());
            prop_assert!(line.is_empty() || rows.iter().all(|r| !r.is_empty()));
            for row in &rows {
                let alone = Clusters(row).count() == 1;
                prop_assert!(alone || cells(row) <= width, "{:?} in {}", row, width);
            }
            // No row could have taken the beginning of the next one.
            for pair in rows.windows(2) {
                let next = Clusters(&pair[1]).next().unwrap();
                let sum: usize = Clusters(&pair[0]).map(cells).sum();
                prop_assert!(sum + cells(next) > width);
            }
        }

        #[test]
        fn what_is_clipped_fits_and_is_a_beginning(line in line(), width in 0_usize..30) {
            let clipped = clip_cells(&line, width);
            if clipped != line {
                prop_assert!(cells(&clipped) <= width, "{:?} in {}", clipped, width);
                prop_assert!(line.starts_with(clipped.trim_end_matches('…')));
                prop_assert!(width == 0 || clipped.ends_with('…'));
                prop_assert!(Clusters(&line).map(cells).sum::<usize>() > width);
            }
        }
    }
}
