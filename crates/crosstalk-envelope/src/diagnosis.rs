//! The diagnosis of a body: intact, reflowed, truncated or altered on its way (CAN-013).
//!
//! Only the digest proves anything; the rest are hints for people.

use crate::document::Document;
use crate::meta::{Integrity, mark};

/// The state of a body against its `meta: integrity` block. Line numbers begin at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// The digest matches.
    Intact,
    /// The words are the same, the line breaks or the spacing are not.
    Reflowed,
    /// Lines are missing.
    Truncated {
        /// The last line before the first gap; 0 if the first line is missing.
        after: usize,
        /// The missing lines, by their numbers in the original.
        missing: Vec<usize>,
    },
    /// The text is another.
    Altered {
        /// The lines that differ, by their numbers in what was received; empty if that can't be told.
        lines: Vec<usize>,
    },
}

impl Diagnosis {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Reflowed => "reflowed",
            Self::Truncated { .. } => "truncated",
            Self::Altered { .. } => "altered",
        }
    }

    /// The lines that it points at.
    pub fn lines(&self) -> &[usize] {
        match self {
            Self::Intact | Self::Reflowed => &[],
            Self::Truncated { missing, .. } => missing,
            Self::Altered { lines } => lines,
        }
    }
}

/// Compares the body with `meta: integrity`; nothing if the document has no such block.
///
/// ```
/// use crosstalk_envelope::{Diagnosis, Document, Reading, diagnose, meta::Integrity};
/// let block: String = Integrity::measure(["one", "two", "three"]).fields().iter()
///     .map(|(key, value)| format!("{key}: {value}\n")).collect();
/// let text = format!("[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: REQUEST\n\
///     meta: integrity\n{block}body: |\n  one\n  two\nsig: none\n[[END]]\n");
/// let document = Document::parse(&text, Reading::Strict);
/// assert_eq!(diagnose(&document), Some(Diagnosis::Truncated { after: 2, missing: vec![3] }));
/// ```
pub fn diagnose(document: &Document<'_>) -> Option<Diagnosis> {
    let declared = document.envelope().integrity()?;
    compare(&declared, document)
}

/// Compares a body with its declared measures.
pub(crate) fn compare(declared: &Integrity, document: &Document<'_>) -> Option<Diagnosis> {
    let digest = declared.digest?;
    if document.body_digest() == digest {
        return Some(Diagnosis::Intact);
    }
    let received = Integrity::measure(document.body_lines());
    if declared.words.is_some() && received.words == declared.words {
        return Some(Diagnosis::Reflowed);
    }
    let Some(original) = &declared.marks else {
        return Some(by_size(declared, &received));
    };
    let marks: Vec<[u8; 2]> = document.body_lines().map(mark).collect();
    Some(by_marks(original, &marks))
}

/// Without marks, only size tells: fewer lines and bytes than declared look cut off.
fn by_size(declared: &Integrity, received: &Integrity) -> Diagnosis {
    match (
        received.lines,
        declared.lines,
        received.bytes < declared.bytes,
    ) {
        (Some(here), Some(there), true) if here < there => Diagnosis::Truncated {
            after: here,
            missing: Vec::new(),
        },
        _ => Diagnosis::Altered { lines: Vec::new() },
    }
}

fn by_marks(original: &[[u8; 2]], received: &[[u8; 2]]) -> Diagnosis {
    let prefix = original
        .iter()
        .zip(received)
        .take_while(|(a, b)| a == b)
        .count();
    if let Some(missing) = missing_lines(original, received) {
        return Diagnosis::Truncated {
            after: prefix,
            missing,
        };
    }
    let longest = original.len().min(received.len()) - prefix;
    let suffix = original
        .iter()
        .rev()
        .zip(received.iter().rev())
        .take(longest)
        .take_while(|(a, b)| a == b)
        .count();
    let last_line_cut =
        suffix == 0 && received.len() == prefix + 1 && received.len() < original.len();
    if last_line_cut {
        return Diagnosis::Truncated {
            after: prefix,
            missing: (prefix + 1..=original.len()).collect(),
        };
    }
    Diagnosis::Altered {
        lines: (prefix + 1..=received.len() - suffix).collect(),
    }
}

/// The numbers of the lines that are missing, if what was received is the original without them.
fn missing_lines(original: &[[u8; 2]], received: &[[u8; 2]]) -> Option<Vec<usize>> {
    if received.len() >= original.len() {
        return None;
    }
    let mut rest = received.iter().peekable();
    let missing = (1..)
        .zip(original)
        .filter(|(_, mark)| rest.next_if_eq(mark).is_none())
        .map(|(number, _)| number)
        .collect();
    rest.peek().is_none().then_some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;

    fn diagnosis(original: &[&str], received: &str) -> Diagnosis {
        let fields = Integrity::measure(original.iter().copied()).fields();
        let block: String = fields.iter().map(|(k, v)| format!("{k}: {v}\n")).collect();
        let text = format!(
            "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: REQUEST\nmeta: integrity\n{block}body: |\n{received}sig: none\n[[END]]\n"
        );
        let document = Document::parse(&text, Reading::Strict);
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        diagnose(&document).unwrap()
    }

    #[test]
    fn each_kind_of_damage_has_its_word() {
        let lines = ["alpha beta", "gamma", "", "delta", "epsilon zeta"];
        let all = "  alpha beta\n  gamma\n\n  delta\n  epsilon zeta\n";
        assert_eq!(diagnosis(&lines, all), Diagnosis::Intact);
        assert_eq!(
            diagnosis(&lines, "  alpha\n  beta gamma delta epsilon zeta\n"),
            Diagnosis::Reflowed
        );
        assert_eq!(
            diagnosis(&lines, "  alpha beta\n  gamma\n"),
            Diagnosis::Truncated {
                after: 2,
                missing: vec![3, 4, 5]
            }
        );
        assert_eq!(
            diagnosis(&lines, "  alpha beta\n\n  delta\n  epsilon zeta\n"),
            Diagnosis::Truncated {
                after: 1,
                missing: vec![2]
            }
        );
        assert_eq!(
            diagnosis(&lines, "  alpha beta\n  gam\n"),
            Diagnosis::Truncated {
                after: 1,
                missing: vec![2, 3, 4, 5]
            }
        );
        assert_eq!(
            diagnosis(&lines, "  alpha beta\n  GAMMA\n\n  delta\n  epsilon zeta\n"),
            Diagnosis::Altered { lines: vec![2] }
        );
        assert_eq!(
            diagnosis(
                &lines,
                "  alpha beta\n  gamma\n  new\n\n  delta\n  epsilon zeta\n"
            ),
            Diagnosis::Altered { lines: vec![3] }
        );
        assert_eq!(
            diagnosis(&lines, ""),
            Diagnosis::Truncated {
                after: 0,
                missing: vec![1, 2, 3, 4, 5]
            }
        );
    }
}
