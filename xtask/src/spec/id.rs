//! Rule ids in a text: three capitals, a hyphen and three digits, such as `ENV-022`.

/// An id where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention<'t> {
    /// The id.
    pub id: &'t str,
    /// The line, from 1.
    pub line: usize,
    /// Whether it is in bold, which is how `spec/` defines a rule: `**ENV-022**`.
    pub bold: bool,
}

/// Every id of a text whose prefix is one of these.
pub fn mentions<'t>(text: &'t str, prefixes: &[&str]) -> Vec<Mention<'t>> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for prefix in prefixes {
            for (at, _) in line.match_indices(prefix) {
                if let Some((id, bold)) = id_at(line, at, prefix.len()) {
                    found.push(Mention {
                        id,
                        line: number + 1,
                        bold,
                    });
                }
            }
        }
    }
    found
}

/// The id that begins at this place, if one does and it is a word of its own.
fn id_at(line: &str, at: usize, prefix: usize) -> Option<(&str, bool)> {
    let end = at + prefix + "-000".len();
    let id = line.get(at..end)?;
    let number = line.get(at + prefix..end)?.strip_prefix('-')?;
    let before = line.get(..at)?;
    let after = line.get(end..)?;
    let whole = number.bytes().all(|b| b.is_ascii_digit())
        && !before.ends_with(is_word)
        && !after.starts_with(is_word);
    whole.then_some((id, before.ends_with("**") && after.starts_with("**")))
}

/// Whether a character is part of a word or a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The prefix of an id: `ENV` of `ENV-022`.
pub fn prefix(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<&str> {
        mentions(text, &["ENV", "INT"])
            .iter()
            .map(|m| m.id)
            .collect()
    }

    #[test]
    fn whole_ids_are_found() {
        assert_eq!(
            ids("ENV-001, (INT-010) `ENV-022`→ENV-023"),
            ["ENV-001", "ENV-022", "ENV-023", "INT-010"]
        );
        assert_eq!(ids("E-ENV-001-x"), ["ENV-001"]);
    }

    #[test]
    fn parts_of_words_are_not() {
        for text in [
            "ENV-0222",
            "ENV-02",
            "XENV-022",
            "_ENV-022",
            "ENV-022_",
            "ENV-02x",
            "ENV_022",
            "ENV-",
            "ADR-001",
            "ENV-0é2",
            "éENV-022",
        ] {
            assert!(ids(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn bold_defines_and_lines_count_from_one() {
        let text = "see ENV-002\n- **ENV-002** A line\n**see ENV-003**";
        let found: Vec<_> = mentions(text, &["ENV"])
            .iter()
            .map(|m| (m.line, m.bold))
            .collect();
        assert_eq!(found, [(1, false), (2, true), (3, false)]);
    }
}
