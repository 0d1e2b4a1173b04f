//! Rust source as `cargo xtask lines` and `cargo xtask names` see it: without comments and the text of literals, and with
//! the lines that only tests compile told apart.

/// One Rust file.
pub struct Source {
    /// The text with comments replaced by spaces and the inside of literals by quotes; lines are where they were.
    masked: Vec<char>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The modules that the file declares for tests only and that are files of their own: `#[cfg(test)] mod name;`.
    pub test_modules: Vec<String>,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its content.
    pub kind: LineKind,
    /// Whether it belongs to an item under `#[cfg(test)]`.
    pub is_test: bool,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Nothing but white space.
    Blank,
    /// Nothing but a comment.
    Comment,
    /// Anything else.
    Code,
}

impl Source {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Self {
        let masked = mask(text);
        let mut source = Self {
            masked,
            lines: Vec::new(),
            test_modules: Vec::new(),
        };
        let tests = source.find_tests();
        let shown: String = source.masked.iter().collect();
        let mut start = 0;
        for (written, masked) in text.split('\n').zip(shown.split('\n')) {
            let end = start + masked.chars().count();
            let kind = match (written.trim().is_empty(), masked.trim().is_empty()) {
                (true, _) => LineKind::Blank,
                (_, true) => LineKind::Comment,
                _ => LineKind::Code,
            };
            let is_test = tests.iter().any(|(from, to)| start < *to && *from <= end);
            source.lines.push(Line { kind, is_test });
            start = end + 1;
        }
        if text.ends_with('\n') || text.is_empty() {
            source.lines.pop();
        }
        source
    }

    /// Whether a person did not write it.
    pub fn is_generated(path: &str, text: &str) -> bool {
        let marks = ["@generated", "// Generated ", "//! Generated "];
        let has_mark = |line: &str| marks.iter().any(|mark| line.contains(mark));
        path.ends_with("/generated.rs") || text.lines().take(5).any(has_mark)
    }

    /// The words and signs of the file, each with the number of its line, from 1.
    pub fn tokens(&self) -> Vec<(String, usize)> {
        let mut tokens: Vec<(String, usize)> = Vec::new();
        let mut line = 1;
        let mut in_word = false;
        for c in &self.masked {
            let is_word = c.is_alphanumeric() || *c == '_';
            match tokens.last_mut() {
                Some((word, _)) if is_word && in_word => word.push(*c),
                _ if c.is_whitespace() => {}
                _ => tokens.push((c.to_string(), line)),
            }
            in_word = is_word;
            line += usize::from(*c == '\n');
        }
        tokens
    }

    /// Where items under `#[cfg(test)]` begin and end, as positions in the masked text.
    fn find_tests(&mut self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(start) = self.find("#[cfg(", at) {
            let Some(end) = self.close(start + 1, '[', ']') else {
                break;
            };
            let condition: String = self.slice(start, end).iter().collect();
            let words: Vec<&str> = condition
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            if !words.contains(&"test") || words.contains(&"not") {
                at = end;
                continue;
            }
            let (item, name) = self.item_end(end);
            self.test_modules.extend(name);
            found.push((start, item));
            at = item;
        }
        found
    }

    /// Where the item after an attribute ends, and its name if it is a module in another file.
    fn item_end(&self, from: usize) -> (usize, Option<String>) {
        let mut at = from;
        let mut depth = 0_usize;
        while let Some(c) = self.masked.get(at) {
            match c {
                '#' => at = self.close(at + 1, '[', ']').unwrap_or(at),
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => {
                    let text: String = self.slice(from, at).iter().collect();
                    let name = text.rsplit_once("mod ").map(|(_, name)| name.trim());
                    let name = name.filter(|n| n.chars().all(|c| c.is_alphanumeric() || c == '_'));
                    return (at + 1, name.map(str::to_owned));
                }
                '{' if depth == 0 => {
                    let end = self.close(at, '{', '}');
                    return (end.unwrap_or(self.masked.len()), None);
                }
                _ => {}
            }
            at += 1;
        }
        (at, None)
    }

    fn find(&self, wanted: &str, from: usize) -> Option<usize> {
        let wanted: Vec<char> = wanted.chars().collect();
        let rest = self.masked.get(from..)?;
        let place = rest.windows(wanted.len()).position(|w| w == wanted)?;
        Some(from + place)
    }

    /// The position behind the bracket that closes the first one from `from` on.
    fn close(&self, from: usize, open: char, close: char) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, c) in self.masked.iter().enumerate().skip(from) {
            if *c == open {
                depth += 1;
            } else if *c == close {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    fn slice(&self, from: usize, to: usize) -> &[char] {
        self.masked.get(from..to).unwrap_or_default()
    }
}

/// Replaces comments by spaces and the inside of literals by quotes, so that brackets and words in them do not count.
fn mask(text: &str) -> Vec<char> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let next = chars.get(at + 1).copied().unwrap_or_default();
        let is_in_word = at
            .checked_sub(1)
            .and_then(|before| chars.get(before))
            .is_some_and(|c| c.is_alphanumeric() || *c == '_');
        let (end, filler) = match (*c, next) {
            ('/', '/') => (line_end(&chars, at), ' '),
            ('/', '*') => (block_end(&chars, at), ' '),
            ('"', _) => (string_end(&chars, at + 1), '"'),
            ('r', '"' | '#') if !is_in_word => (raw_end(&chars, at).unwrap_or(at + 1), '"'),
            ('b', 'r') if !is_in_word => (raw_end(&chars, at + 1).unwrap_or(at + 1), '"'),
            ('\'', _) => (char_end(&chars, at).unwrap_or(at + 1), '"'),
            _ => (at + 1, *c),
        };
        let filler = if end == at + 1 { *c } else { filler };
        let inside = chars.get(at..end).unwrap_or_default();
        out.extend(
            inside
                .iter()
                .map(|c| if *c == '\n' { '\n' } else { filler }),
        );
        at = end.max(at + 1);
    }
    out
}

fn line_end(chars: &[char], from: usize) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    from + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

fn block_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let (Some(c), next) = (chars.get(at), chars.get(at + 1)) {
        match (c, next) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of a raw string whose `r` is at `from`; none if this is no raw string.
fn raw_end(chars: &[char], from: usize) -> Option<usize> {
    let rest = chars.get(from + 1..)?;
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    if rest.get(hashes) != Some(&'"') {
        return None;
    }
    let body = from + 1 + hashes + 1;
    let mut end: Vec<char> = vec!['"'];
    end.extend(std::iter::repeat_n('#', hashes));
    let place = chars.get(body..)?.windows(end.len()).position(|w| w == end);
    Some(place.map_or(chars.len(), |place| body + place + end.len()))
}

/// The end of a character literal whose quote is at `from`; none if this is a lifetime.
fn char_end(chars: &[char], from: usize) -> Option<usize> {
    match chars.get(from + 1)? {
        '\\' => {
            let rest = chars.get(from + 3..)?;
            Some(from + 3 + rest.iter().position(|c| *c == '\'')? + 1)
        }
        _ => (chars.get(from + 2) == Some(&'\'')).then_some(from + 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> String {
        let lines = Source::read(text).lines;
        let sign = |line: &Line| match (line.kind, line.is_test) {
            (LineKind::Blank, false) => '.',
            (LineKind::Blank, true) => ',',
            (LineKind::Comment, false) => 'c',
            (LineKind::Comment, true) => 'd',
            (LineKind::Code, false) => 's',
            (LineKind::Code, true) => 't',
        };
        lines.iter().map(sign).collect()
    }

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(kinds(""), "");
        assert_eq!(kinds("//! Doc.\n\nfn f() {} // and so on\n"), "c.s");
        assert_eq!(kinds("/* one\n\n two */\nfn f() {}\n"), "c.cs");
        assert_eq!(kinds("/* a /* b */ c */ f();\n/* a */\n"), "sc");
    }

    #[test]
    fn comment_signs_and_brackets_in_literals_do_not_count() {
        assert_eq!(kinds("let a = \"// no }\n // no\";\nf();\n"), "sss");
        assert_eq!(kinds("let a = r#\"\"//\"#;\n// c\n"), "sc");
        assert_eq!(kinds("let a = '\"';\n// c\n"), "sc");
        assert_eq!(kinds("let a = '\\'';\n// c\n"), "sc");
        assert_eq!(kinds("fn f<'a>(x: &'a str) {}\n// c\n"), "sc");
        let text = "#[cfg(test)]\nmod tests {\n    const A: &str = \"}\";\n    f();\n}\ng();\n";
        assert_eq!(kinds(text), "ttttts");
    }

    #[test]
    fn items_for_tests_are_found() {
        let text =
            "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    // a\n\n    fn g() {}\n}\nfn h() {}\n";
        assert_eq!(kinds(text), "s.ttd,tts");
        assert_eq!(kinds("#[cfg(test)]\nuse a::{b, c};\nf();\n"), "tts");
        assert_eq!(kinds("#[cfg(not(test))]\nmod a {}\n"), "ss");
        assert_eq!(
            kinds("#[cfg(all(test, unix))]\n#[allow(a)]\nfn a() {\n}\n"),
            "tttt"
        );
        assert_eq!(kinds("#[cfg(test)]\nfn a(b: [u8; 2]) {\n}\nf();\n"), "ttts");
    }

    #[test]
    fn modules_for_tests_in_their_own_file_are_named() {
        let source =
            Source::read("#[cfg(test)]\nmod scratch;\nmod other;\n#[cfg(test)]\npub mod plan;\n");
        assert_eq!(source.test_modules, ["scratch", "plan"]);
    }

    #[test]
    fn generated_files_are_recognized() {
        assert!(Source::is_generated("a/src/x/generated.rs", ""));
        assert!(Source::is_generated("a/src/b.rs", "// @generated\n"));
        assert!(!Source::is_generated(
            "a/src/b.rs",
            "//! How ids are generated.\n"
        ));
    }

    #[test]
    fn tokens_carry_their_line() {
        let tokens = Source::read("struct A;\n// no\ntype B = \"x\";\n").tokens();
        let words: Vec<(&str, usize)> = tokens.iter().map(|(w, l)| (w.as_str(), *l)).collect();
        assert_eq!(words.get(..3).unwrap(), [("struct", 1), ("A", 1), (";", 1)]);
        assert!(words.contains(&("B", 3)) && !words.iter().any(|(w, _)| *w == "no" || *w == "x"));
    }
}
