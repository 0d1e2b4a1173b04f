//! Which rule a conformance case is about: the `rule:` line in the header of its file.

/// The rule of a case, from the bytes of its file. The header is the run of `key: value` lines at the
/// top; what follows is the text under test and may hold anything.
pub fn rule(file: &[u8]) -> Result<String, String> {
    let mut found = None;
    for line in file.split(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((key, value)) = line.split_once(": ").filter(|(key, _)| is_key(key)) else {
            break;
        };
        if key == "rule" && found.replace(value.to_owned()).is_some() {
            return Err("its header names two rules; one case is about one rule".to_owned());
        }
    }
    found.ok_or_else(|| "its header has no line `rule: ID`".to_owned())
}

fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_the_rule() {
        let file = b"title: two arrows\nrule: ENV-011\nreading: strict\n\nrule: ENV-012\n\xff";
        assert_eq!(rule(file).as_deref(), Ok("ENV-011"));
    }

    #[test]
    fn the_text_under_test_does_not() {
        assert!(
            rule(b"title: x\n\nrule: ENV-011\n")
                .unwrap_err()
                .contains("no line")
        );
        assert!(rule(b"").is_err());
    }

    #[test]
    fn two_rules_are_refused() {
        assert!(
            rule(b"rule: ENV-011\nrule: ENV-012\n")
                .unwrap_err()
                .contains("two rules")
        );
    }
}
