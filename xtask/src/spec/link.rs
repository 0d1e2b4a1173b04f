//! Relative links in Markdown: each leads to something in the repository.

use std::path::{Component, Path, PathBuf};

/// The faults of the links of a Markdown file, with the line of each.
pub fn problems(root: &Path, file: &Path, text: &str) -> Vec<(usize, String)> {
    let folder = file.parent().unwrap_or(root);
    targets(text)
        .into_iter()
        .filter_map(|(line, target)| {
            let path = local_path(&target)?;
            let (base, path) = match path.strip_prefix('/') {
                Some(path) => (root, path),
                None => (folder, path.as_str()),
            };
            let problem = match inside(root, &base.join(path)) {
                None => format!("the link `{target}` leads out of the repository"),
                Some(path) if path.exists() => return None,
                Some(_) => format!("the link `{target}` leads nowhere"),
            };
            Some((line, problem))
        })
        .collect()
}

/// The targets of inline links, images and reference definitions outside code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let mark = fence_mark(trimmed);
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if mark.starts_with(open) && mark == trimmed => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let prose = without_code(line);
                let inline = prose
                    .split("](")
                    .skip(1)
                    .filter_map(|rest| target(rest, true));
                let defined = definition(prose.trim()).and_then(|rest| target(rest, false));
                found.extend(inline.chain(defined).map(|t| (number + 1, t)));
            }
        }
    }
    found
}

/// The run of three or more backticks or tildes that a line begins with.
fn fence_mark(line: &str) -> Option<&str> {
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(first);
    let mark = line.strip_suffix(rest)?;
    // Backticks later in the line make it a code span in prose.
    (mark.len() >= 3 && !(first == '`' && rest.contains('`'))).then_some(mark)
}

/// The line without its code spans.
fn without_code(line: &str) -> String {
    let mut prose = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('`') {
        let extra = after.len() - after.trim_start_matches('`').len();
        let mark = "`".repeat(extra + 1);
        prose.push_str(before);
        let inside = after.trim_start_matches('`');
        rest = match inside.split_once(mark.as_str()) {
            Some((_, after)) => after,
            None => inside,
        };
    }
    prose.push_str(rest);
    prose
}

/// The text behind `[label]:` at the start of a line.
fn definition(line: &str) -> Option<&str> {
    let (label, rest) = line.strip_prefix('[')?.split_once("]:")?;
    (!label.is_empty() && !label.contains(['[', ']'])).then(|| rest.trim())
}

/// The target at the start of what follows `](` or `[label]:`, without its title.
fn target(rest: &str, inline: bool) -> Option<String> {
    if let Some(bracketed) = rest.strip_prefix('<') {
        return bracketed.split_once('>').map(|(t, _)| t.to_owned());
    }
    let end = |c: char| c.is_whitespace() || (inline && c == ')');
    let target = rest.split(end).next().unwrap_or_default();
    (!target.is_empty()).then(|| target.to_owned())
}

/// The path of a link without its anchor, or `None` if it leads elsewhere or into the same page.
fn local_path(target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let scheme = path.split_once(':').is_some_and(|(s, _)| {
        s.chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    (!path.is_empty() && !scheme && !path.starts_with("//")).then(|| path.replace("%20", " "))
}

/// The path without `.` and `..`, or `None` if it is not below the root.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
        // Once outside, a way back in would depend on where the repository was put.
        if !plain.starts_with(root) && !root.starts_with(&plain) {
            return None;
        }
    }
    plain.starts_with(root).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn check(text: &str) -> Vec<(usize, String)> {
        let scratch = Scratch::new();
        scratch.write("docs/a b.md", "");
        scratch.write("README.md", "");
        problems(scratch.path(), &scratch.path().join("docs/page.md"), text)
    }

    #[test]
    fn good_links_pass() {
        let text = "[a](../README.md) ![b](<a b.md>) [c](a%20b.md#part \"title\") [d](/README.md)\n\
                    [e](https://example.org/x) [f](#here) [g](mailto:a@b) [h](..) [i](../docs/)\n\n[j]: ../README.md 'x'\n";
        assert_eq!(check(text), []);
    }

    #[test]
    fn dead_links_fail_with_their_line() {
        for text in [
            "\n[a](none.md)",
            "\nx ![a](none.md) y",
            "\n[a]: none.md",
            "\n[a](../README.md) [b](none.md#x)",
        ] {
            let found = check(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].0, 2);
            assert!(found[0].1.contains("leads nowhere"));
        }
    }

    #[test]
    fn links_out_of_the_repository_fail() {
        for text in ["[a](../../other/README.md)", "[a](/../x)", "[a](../..)"] {
            assert!(check(text)[0].1.contains("out of the repository"), "{text}");
        }
    }

    #[test]
    fn code_is_not_read() {
        assert_eq!(
            check(
                "`[a](none.md)` and ``[`a](none.md)``\n```text\n[a](none.md)\n```\n~~~~\n~~~\n[a](none.md)\n~~~~\n"
            ),
            []
        );
        assert_eq!(check("```text\n[a](x)\n```\n[a](none.md)").len(), 1);
        assert_eq!(check("```\n```text\n[a](none.md)\n```\n"), []);
        assert_eq!(check("```not a fence``` [a](none.md)").len(), 1);
    }
}
