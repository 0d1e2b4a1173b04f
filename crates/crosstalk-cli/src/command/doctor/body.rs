//! The body against its `meta: integrity` block, in plain words (CAN-013).

use crate::paragraph::{count, wrap};
use crate::view;
use crosstalk_envelope::{Diagnosis, Document, Signature};

/// What is known about the body and the signature.
pub(super) fn told(document: &Document<'_>, diagnosis: Option<&Diagnosis>) -> String {
    let mut out = line("The body: ", &sentence(document, diagnosis));
    if let Some(Signature::Signed {
        algorithm, pkid, ..
    }) = document.envelope().signature
    {
        let text = format!("{algorithm} by {pkid}. `crosstalk verify` tells whether that is true.");
        out.push_str(&line("Signed: ", &text));
    } else if document.block("integrity").is_some() {
        let text = "no, and it may have been: signing writes `meta: integrity`. Whoever took the signature away could change all of it.";
        out.push_str(&line("Signed: ", text));
    }
    out
}

fn line(label: &str, text: &str) -> String {
    let width = label.len();
    format!("{label}{}\n", wrap(text, width, width))
}

fn sentence(document: &Document<'_>, diagnosis: Option<&Diagnosis>) -> String {
    let lines = count(document.body_lines().count(), "line");
    match diagnosis {
        None => format!(
            "{lines}. The message does not say what its body was (`meta: integrity`), so nobody can tell whether it is whole."
        ),
        Some(Diagnosis::Intact) => {
            format!("{lines}, intact: it is what the message says that it was.")
        }
        Some(Diagnosis::Reflowed) => format!(
            "{lines}, reflowed: the words are those that were written, the line breaks or the spacing are not."
        ),
        Some(Diagnosis::Truncated { after, missing }) => {
            let which = if missing.is_empty() {
                "lines are missing".to_owned()
            } else {
                format!("of the original, {} missing", ranges(missing))
            };
            match after {
                0 => format!("{lines}, truncated from the start: {which}."),
                _ => format!("{lines}, truncated after line {after}: {which}."),
            }
        }
        Some(Diagnosis::Altered { lines: changed }) if changed.is_empty() => {
            format!("{lines}, altered: it is not what was written.")
        }
        Some(Diagnosis::Altered { lines: changed }) => format!(
            "{lines}, altered: of the body, {} not what was written.",
            ranges(changed)
        ),
    }
}

/// `line 3 is`, `lines 3 to 5 and 9 are`.
fn ranges(numbers: &[usize]) -> String {
    const SHOWN: usize = 8;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let mut words: Vec<String> = runs
        .iter()
        .take(SHOWN)
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        })
        .collect();
    if runs.len() > SHOWN {
        words.push("others".to_owned());
    }
    let list = view::names(&words);
    if numbers.len() == 1 {
        format!("line {list} is")
    } else {
        format!("lines {list} are")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_read_well() {
        assert_eq!(ranges(&[3]), "line 3 is");
        assert_eq!(ranges(&[1, 2, 3]), "lines 1 to 3 are");
        assert_eq!(ranges(&[1, 3, 4, 9]), "lines 1, 3 to 4 and 9 are");
        let odd: Vec<usize> = (0..40).map(|n| 2 * n + 1).collect();
        assert!(ranges(&odd).ends_with(" and others are"));
    }
}
