//! What stands around the lines of a pasted envelope: quote marks, indents, line numbers, a box.

/// How the lines of a region are wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame<'t> {
    /// What stands before each line but the first.
    prefix: Prefix<'t>,
    /// The right border of a box.
    border: Option<char>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Prefix<'t> {
    /// Nothing.
    None,
    /// Spaces and tabs.
    Indent(&'t str),
    /// Anything else that is the same in each line, such as `> `.
    Mark(&'t str),
    /// A number that counts up, and what stands behind it.
    Number(&'t str),
}

/// What kind of wrapping was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    Indent,
    Quote,
    Numbers,
    Box,
}

impl<'t> Frame<'t> {
    /// The frame of a region whose direction line begins with `before`, with `next` as its next line.
    pub(super) fn of(before: &'t str, direction: &str, next: &'t str) -> Self {
        let border = box_border(before).filter(|b| direction.trim_end().ends_with(*b));
        let indent_of_next = indent(next);
        let prefix = if before.chars().all(is_blank) {
            if indent_of_next.is_empty() {
                Prefix::None
            } else {
                Prefix::Indent(indent_of_next)
            }
        } else if let Some(mark) = numbered(before).filter(|m| strip_number(next, m).is_some()) {
            Prefix::Number(mark)
        } else if strip_mark(next, before).is_some() {
            Prefix::Mark(before)
        } else if indent_of_next.is_empty() {
            Prefix::None
        } else {
            Prefix::Indent(indent_of_next)
        };
        Self { prefix, border }
    }

    pub(super) fn is_trivial(&self) -> bool {
        self.prefix == Prefix::None && self.border.is_none()
    }

    /// Whether a line can fall out of the frame.
    pub(super) fn can_break(&self) -> bool {
        matches!(self.prefix, Prefix::Mark(_) | Prefix::Number(_))
    }

    pub(super) fn wrapping(&self) -> Option<Wrapping> {
        match self.prefix {
            _ if self.border.is_some() => Some(Wrapping::Box),
            Prefix::None => None,
            Prefix::Indent(_) => Some(Wrapping::Indent),
            Prefix::Mark(_) => Some(Wrapping::Quote),
            Prefix::Number(_) => Some(Wrapping::Numbers),
        }
    }

    /// The line without its wrapping; nothing if it stands outside the frame.
    pub(super) fn strip<'l>(&self, line: &'l str) -> Option<&'l str> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let inner = match self.prefix {
            Prefix::None => line,
            Prefix::Indent(indent) => strip_indent(line, indent.len()),
            Prefix::Mark(mark) => strip_mark(line, mark)?,
            Prefix::Number(mark) => strip_number(line, mark)?,
        };
        Some(match self.border {
            Some(border) => inner
                .trim_end()
                .strip_suffix(border)
                .unwrap_or(inner)
                .trim_end(),
            None => inner,
        })
    }
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}')
}

/// The white space in front of a line.
fn indent(line: &str) -> &str {
    let text = line.trim_start_matches(is_blank);
    line.get(..line.len() - text.len()).unwrap_or("")
}

/// At most `width` bytes of white space less; a line that has lost some of its indent keeps the rest.
fn strip_indent(line: &str, width: usize) -> &str {
    let mut end = 0;
    for c in line.chars().take_while(|c| is_blank(*c)) {
        if end + c.len_utf8() > width {
            break;
        }
        end += c.len_utf8();
    }
    line.get(end..).unwrap_or("")
}

/// The line behind a mark such as `> `; the mark of an empty line may have lost its spaces.
fn strip_mark<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let bare = mark.trim_end_matches(is_blank);
    if line.chars().all(is_blank) {
        return Some("");
    }
    let rest = line.strip_prefix(bare)?;
    Some(strip_indent(rest, mark.len() - bare.len()))
}

/// What stands behind the number at the start of a line such as `12: ` or `  3 | `.
fn numbered(before: &str) -> Option<&str> {
    let text = before.trim_start_matches(is_blank);
    let mark = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_number = mark.len() < text.len();
    let is_mark = !mark.is_empty()
        && mark
            .chars()
            .all(|c| is_blank(c) || matches!(c, '|' | ':' | '│' | '┃' | '-' | ')'));
    (has_number && is_mark).then_some(mark)
}

fn strip_number<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let text = line.trim_start_matches(is_blank);
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() {
        return text.is_empty().then_some("");
    }
    if rest.chars().all(is_blank) {
        return Some("");
    }
    strip_mark(rest, mark)
}

/// The border of a box whose left side the text is.
fn box_border(before: &str) -> Option<char> {
    let mut chars = before.trim().chars();
    let border = chars
        .next()
        .filter(|c| matches!(c, '│' | '┃' | '║' | '|'))?;
    chars.next().is_none().then_some(border)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrapping_is_removed() {
        for (before, next, line, inner) in [
            ("> ", "> user: k", ">", ""),
            ("> ", "> user: k", ">   text", "  text"),
            (">", ">user: k", ">  text", "  text"),
            ("    ", "    user: k", "      text", "  text"),
            ("  1 | ", "  2 | user: k", " 10 |   text", "  text"),
            ("3:", "4:user: k", "5:  text", "  text"),
            ("     1\t", "     2\tuser: k", "     3\t  text", "  text"),
            ("- ", "  user: k", "    text", "  text"),
            ("// ", "// user: k", "//   text", "  text"),
            ("", "user: k", "  text", "  text"),
        ] {
            let frame = Frame::of(before, "[[A→B v1]]", next);
            assert_eq!(frame.strip(line), Some(inner), "{before:?}");
        }
        let frame = Frame::of("│ ", "│ [[A→B v1]]   │", "│ user: k      │");
        assert_eq!(frame.strip("│   text       │"), Some("  text"));
    }

    #[test]
    fn a_line_without_the_mark_is_outside() {
        let frame = Frame::of("> ", "> [[A→B v1]]", "> user: k");
        assert_eq!(frame.strip("My answer:"), None);
        assert_eq!(frame.strip(""), Some(""));
    }
}
