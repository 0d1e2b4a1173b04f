//! `Name: value` in every spelling that chats produce (PST-008, PST-009).

use super::clean;
use super::line::PasteLine;
use super::marker::NOISE;
use super::repair::Repaired;
use crate::grammar::{Reserved, is_name};
use crate::registry::rule;

/// A head line taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named<'l> {
    pub(super) name: &'l str,
    pub(super) value: &'l str,
    /// It had Markdown around the name.
    pub(super) markdown: bool,
    /// It had a bullet, a heading mark or a number in front.
    pub(super) bulleted: bool,
    /// It did not begin at column 0.
    pub(super) indented: bool,
    /// It had a full-width colon, or a space before the colon.
    pub(super) wide: bool,
}

/// A head line as name and value, if it has that form once Markdown is taken off.
pub(super) fn named(line: &str) -> Option<Named<'_>> {
    let text = line.trim_start_matches([' ', '\t']);
    let indented = text.len() < line.len();
    let (bare, bulleted) = without_bullet(text);
    let open = bare.trim_start_matches(NOISE);
    let emphasis = bare.get(..bare.len() - open.len()).unwrap_or("");
    let (name, value, wide) = colon(open)?;
    // `user :` is `user:` as French writes it.
    let wide = wide || name.ends_with([' ', '\t']);
    let name = name.trim_end();
    let inner = match emphasis {
        "" => name,
        _ => name.trim_end_matches(NOISE).trim_end(),
    };
    if !is_name(inner.as_bytes()) {
        return None;
    }
    let value = if emphasis.is_empty() || inner.len() < name.len() {
        value
    } else {
        // The emphasis ends behind the colon, or with the value.
        let behind = value.strip_prefix(emphasis);
        behind
            .or_else(|| value.strip_suffix(emphasis))
            .unwrap_or(value)
    };
    Some(Named {
        name: inner,
        value,
        markdown: bulleted || !emphasis.is_empty(),
        bulleted,
        indented,
        wide,
    })
}

/// The text behind a bullet, a heading mark or the number of a list item.
fn without_bullet(text: &str) -> (&str, bool) {
    let mark = text.trim_start_matches(['-', '*', '•', '+', '#']);
    let mark = if mark.len() == text.len() {
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = number.len() < text.len();
        number
            .strip_prefix(['.', ')'])
            .filter(|_| has_number)
            .unwrap_or(text)
    } else {
        mark
    };
    if mark.len() < text.len() && mark.starts_with([' ', '\t']) {
        (mark.trim_start_matches([' ', '\t']), true)
    } else {
        (text, false)
    }
}

/// Splits at the first colon, a full-width one included.
fn colon(text: &str) -> Option<(&str, &str, bool)> {
    // No name is longer than a line; the text after the first colon does not matter.
    let at = text.find([':', '：'])?;
    let (name, rest) = text.split_at_checked(at)?;
    let mut chars = rest.chars();
    let wide = chars.next() == Some('：');
    Some((name, chars.as_str(), wide))
}

/// Whether a line is a `sig:` line.
pub(super) fn is_sig(line: &str) -> bool {
    if line.starts_with([' ', '\t']) {
        return false;
    }
    // A cheap look first: the name stands near the start.
    let near = line.get(..line.floor_char_boundary(24)).unwrap_or("");
    let near = clean::head_line(near);
    named(&near.text).is_some_and(|n| n.name.eq_ignore_ascii_case("sig"))
}

/// Whether a line holds the headers that should stand on lines of their own: a core header, and behind it
/// two other ones or more.
pub(super) fn holds_head(line: &str) -> bool {
    let mut names = line.split([' ', '\t']).filter_map(|word| {
        let name = word.trim_matches(NOISE).strip_suffix(':')?;
        match Reserved::named(name.trim_matches(NOISE))?.0 {
            Reserved::Core(core) => Some(core),
            _ => None,
        }
    });
    let Some(first) = names.next() else {
        return false;
    };
    let starts = named(line).is_some_and(
        |n| matches!(Reserved::named(n.name), Some((Reserved::Core(c), _)) if c == first),
    );
    let mut seen = vec![first];
    for core in names.take(16) {
        if !seen.contains(&core) {
            seen.push(core);
        }
    }
    starts && seen.len() > 2
}

/// Reports how a name was written.
pub(super) fn note(line: &PasteLine<'_>, named: &Named<'_>, meant: &str, out: &mut Repaired) {
    let at = line.place(named.name);
    if named.markdown {
        out.note(
            &rule::MARKDOWN,
            at.clone(),
            format!("Markdown around `{meant}` was removed"),
        );
    }
    if named.indented {
        let what = "the indent of a header was removed";
        out.note_once(&rule::EXTRA_INDENT, line.span.clone(), what);
    }
    if named.wide {
        let what = format!("the colon behind `{meant}` was read in another spelling");
        out.note(&rule::MARKER_SPELLING, at.clone(), what);
    }
    if named.name != meant {
        out.note(
            &rule::NAME_CASE,
            at,
            format!("`{}` was read as `{meant}`", named.name),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_many_spellings() {
        for (line, name, value) in [
            ("user: kalle", "user", " kalle"),
            ("**user:** kalle_", "user", " kalle_"),
            ("**user**: kalle", "user", " kalle"),
            ("**user: kalle**", "user", " kalle"),
            ("- `user`: kalle", "user", " kalle"),
            ("- `user: kalle`", "user", " kalle"),
            ("### user: kalle", "user", " kalle"),
            ("1. user: kalle", "user", " kalle"),
            ("  user：kalle", "user", "kalle"),
            ("_User_ : kalle", "User", " kalle"),
            ("x_: y", "x_", " y"),
        ] {
            let found = named(line).unwrap();
            assert_eq!((found.name, found.value), (name, value), "{line}");
        }
        for line in [
            "no colon",
            "two words: x",
            "- : x",
            ": x",
            "→ claude://x",
            "# a b: c",
            "user**: x",
        ] {
            assert_eq!(named(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_of_headers_is_seen() {
        assert!(holds_head("user: kalle session: s context: c intent: NOTE"));
        assert!(!holds_head("context: the session: and the user"));
        assert!(!holds_head("X-Note: user: session: context:"));
        assert!(
            is_sig("**Sig:** none")
                && is_sig("sig:")
                && !is_sig("  sig: none")
                && !is_sig("signed: x")
        );
    }
}
