//! `format=flowed` (RFC 3676): undoes the soft line breaks that a mail program added.

/// The text with its paragraphs on one line each. Quoted lines keep their marks, and are joined with lines of the same depth
/// alone. With `DelSp=yes` the space before a soft break is not part of the text.
pub(crate) fn unflow(text: &str, delete_space: bool) -> String {
    let mut out = String::with_capacity(text.len());
    // The depth of the line that waits for its rest.
    let mut open: Option<usize> = None;
    for line in text.lines() {
        let unquoted = line.trim_start_matches('>');
        let depth = line.len() - unquoted.len();
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        let is_signature = content == "-- ";
        if open != Some(depth) || is_signature {
            if open.is_some() {
                out.push('\n');
            }
            if depth > 0 {
                out.push_str(&">".repeat(depth));
                out.push(' ');
            }
        }
        let is_soft = content.ends_with(' ') && !is_signature;
        match content.strip_suffix(' ') {
            Some(content) if is_soft && delete_space => out.push_str(content),
            _ => out.push_str(content),
        }
        open = is_soft.then_some(depth);
        if !is_soft {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_breaks_are_joined_by_depth() {
        assert_eq!(unflow("one \ntwo\nthree\n", false), "one two\nthree\n");
        assert_eq!(unflow("o \nne\n", true), "one\n");
        assert_eq!(unflow("> a \n> b\nc\n", false), "> a b\nc\n");
        assert_eq!(unflow("> a \nc\n", false), "> a \nc\n");
        assert_eq!(unflow(">> a\n > b\n", false), ">> a\n> b\n");
    }

    #[test]
    fn a_signature_separator_is_no_soft_break() {
        assert_eq!(unflow("text \n-- \nAnna\n", false), "text \n-- \nAnna\n");
    }
}
