//! A change of a text, as people read it.

/// How many lines around a change are shown.
const AROUND: usize = 3;

/// The lines that differ, with a few around them: `-` before, `+` after. A change in one place is shown exactly.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (
        old.get(start..).unwrap_or_default(),
        new.get(start..).unwrap_or_default(),
    );
    let same = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = same.take_while(|(a, b)| a == b).count();
    let removed = old_rest.len().saturating_sub(end);
    let added = new_rest.len().saturating_sub(end);
    let mut out = String::new();
    let mut line = |mark: char, text: &str| {
        out.push(mark);
        out.push_str(text);
        out.push('\n');
    };
    let first = start.saturating_sub(AROUND);
    let context = old.iter().skip(first).take(start.saturating_sub(first));
    context.for_each(|text| line(' ', text));
    old_rest
        .iter()
        .take(removed)
        .for_each(|text| line('-', text));
    new_rest.iter().take(added).for_each(|text| line('+', text));
    let after = old_rest.iter().skip(removed).take(AROUND);
    after.for_each(|text| line(' ', text));
    out
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn only_the_change_is_shown() {
        assert_eq!(
            diff("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nX\ne\n"),
            " b\n c\n d\n+X\n e\n"
        );
        assert_eq!(diff("", "X\n"), "+X\n");
        assert_eq!(diff("a\na\n", "a\n"), " a\n-a\n");
    }
}
