//! Sentences on a screen of at most 80 columns.

use std::sync::OnceLock;

/// The columns that text for people keeps to where there is room.
const WIDEST: usize = 80;

static WIDTH: OnceLock<usize> = OnceLock::new();

/// Says how many columns the terminal of this process has. The first word counts.
pub(crate) fn set_columns(columns: usize) {
    let _ = WIDTH.set(columns.clamp(1, WIDEST));
}

/// The columns that text for people keeps to: 80, or those of a narrower terminal.
pub(crate) fn width() -> usize {
    WIDTH.get().copied().unwrap_or(WIDEST)
}

/// Breaks a text between words so that it fits, given that `taken` columns of the first line are in use.
/// Further lines begin with `indent` spaces. Words that are too long stay whole.
pub(crate) fn wrap(text: &str, taken: usize, indent: usize) -> String {
    wrap_to(width(), text, taken, indent)
}

/// The same for so many columns.
pub(crate) fn wrap_to(columns: usize, text: &str, taken: usize, indent: usize) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut column, mut first) = (taken, true);
    for word in text.split(' ') {
        let width = word.chars().count();
        if first {
            first = false;
        } else if column + 1 + width > columns && column > indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// `1 warning`, `2 warnings`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Lines that are wrapped each for itself; `taken` columns of the first one are in use.
pub(crate) fn lines(text: &str, taken: usize) -> String {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(n, line)| wrap(line, if n == 0 { taken } else { 0 }, 0));
    lines.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_words_stay_whole() {
        let text = format!("{} {} c", "a".repeat(50), "b".repeat(50));
        let wrapped = wrap(&text, 10, 4);
        assert_eq!(
            wrapped,
            format!("{}\n    {} c", "a".repeat(50), "b".repeat(50))
        );
        assert_eq!(wrap(&"x".repeat(100), 0, 2), "x".repeat(100));
        assert_eq!(wrap("two  spaces", 0, 0), "two  spaces");
    }
}
