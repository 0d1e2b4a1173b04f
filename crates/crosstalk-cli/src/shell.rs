//! Commands that a person copies into a shell.

use crate::view;

/// A text as one word of a command line: what others wrote must not become a command.
pub(crate) fn word(text: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || "-_./:@%+,=".contains(c) || (cfg!(windows) && c == '\\');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // PowerShell doubles a quote inside of quotes; other shells leave the quotes for it.
    let quote = if cfg!(windows) { "''" } else { "'\\''" };
    format!("'{}'", view::line(text).replace('\'', quote))
}

#[cfg(all(test, not(windows)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_one_word() {
        assert_eq!(word("human://localhost/queue"), "human://localhost/queue");
        assert_eq!(word("über/uns.txt"), "über/uns.txt");
        assert_eq!(word("BROTHER AI"), "'BROTHER AI'");
        assert_eq!(word("a\\b"), "'a\\b'");
        assert_eq!(word("x'; rm -rf ~ #`id`"), "'x'\\''; rm -rf ~ #`id`'");
        assert_eq!(word("a\nb"), "'a\\u{a}b'");
        assert_eq!(word(""), "''");
    }
}
