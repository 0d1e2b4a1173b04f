//! Words of others, as pages show them. The templates escape HTML; what could reorder or hide something is escaped here.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::name::is_deceptive;
use crosstalk_envelope::unicode::{escape, is_hidden};
use std::fmt;

/// A text of somebody else on one line or several: `{{ text }}` shows it with everything hidden made visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown(String);

impl Shown {
    pub(crate) fn new(text: &str) -> Self {
        Self(escape(text).into_owned())
    }

    /// The beginning of a text, on one line.
    pub(crate) fn short(text: &str, most: usize) -> Self {
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String = words.chars().take(most).collect();
        if short.len() < words.len() {
            short.push('…');
        }
        Self::new(&short)
    }

    /// A text of somebody else as one argument of a command that people may copy into a shell.
    pub(crate) fn argument(text: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._:/@%+=-".contains(c);
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
        if starts && text.chars().all(plain) {
            return Self::new(text);
        }
        // Hidden characters stay visible: such a command finds nothing, and does nothing else either.
        let visible = escape(text).replace(['\n', '\t'], " ");
        Self(format!("'{}'", visible.replace('\'', "'\\''")))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a text: as it is, or a character that would be invisible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) is_hidden: bool,
}

/// A text in pieces, so that a page can mark what is hidden.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_hidden(c);
    let mut out: Vec<Piece> = Vec::new();
    for c in text.chars() {
        let is_hidden = harmful(c);
        if out.last().is_none_or(|piece| piece.is_hidden != is_hidden) {
            out.push(Piece {
                text: String::new(),
                is_hidden,
            });
        }
        if let Some(last) = out.last_mut() {
            match is_hidden {
                true => last.text.extend(c.escape_unicode()),
                false => last.text.push(c),
            }
        }
    }
    out
}

/// The name or address of a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartyName {
    pub(crate) name: Shown,
    /// Whether it looks like another name: mixed scripts, or characters that nobody sees.
    pub(crate) is_deceptive: bool,
    pub(crate) is_person: bool,
}

impl PartyName {
    pub(crate) fn of(name: &str) -> Self {
        Self {
            name: Shown::new(name),
            is_deceptive: is_deceptive(name),
            is_person: crosstalk_protocol::relay::is_human(name),
        }
    }
}

/// A moment, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) iso: String,
    pub(crate) words: String,
}

impl Moment {
    pub(crate) fn of(at: Timestamp, now: Timestamp) -> Self {
        Self {
            iso: at.to_string(),
            words: distance(at, now),
        }
    }

    /// The moment that a text of the API names.
    pub(crate) fn parse(text: &str, now: Timestamp) -> Self {
        match Timestamp::parse(text) {
            Some(at) => Self::of(at, now),
            None => Self {
                iso: String::new(),
                words: Shown::new(text).0,
            },
        }
    }
}

/// How far a moment is from now, in one unit.
fn distance(at: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_millis() - at.as_millis()).div_euclid(1000);
    let (amount, is_past) = (seconds.unsigned_abs(), seconds >= 0);
    let words = match amount {
        0..45 if is_past => return "now".to_owned(),
        0..3_600 => format!("{} min", amount.div_ceil(60)),
        3_600..86_400 => format!("{} h", amount / 3_600),
        86_400..5_184_000 => format!("{} d", amount / 86_400),
        _ => return at.to_string().chars().take(10).collect(),
    };
    match is_past {
        true => words,
        false => format!("in {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        let found = pieces("re\u{202e}lease\u{e0041}\u{1b}[1m");
        let texts: Vec<(&str, bool)> = found
            .iter()
            .map(|p| (p.text.as_str(), p.is_hidden))
            .collect();
        let wanted = [
            ("re", false),
            ("\\u{202e}", true),
            ("lease", false),
            ("\\u{e0041}\\u{1b}", true),
            ("[1m", false),
        ];
        assert_eq!(texts, wanted);
        assert_eq!(Shown::short("a\n  b  c", 4).as_str(), "a b …");
        assert!(PartyName::of("CL\u{0410}UDE").is_deceptive);
        assert!(!PartyName::of("CLAUDE").is_deceptive);
    }

    #[test]
    fn an_argument_is_one_word_for_a_shell() {
        for (text, wanted) in [
            ("01K74V8QF8", "01K74V8QF8"),
            ("human://acme/ann", "human://acme/ann"),
            ("a; rm -rf /", "'a; rm -rf /'"),
            ("it's", "'it'\\''s'"),
            ("--yes", "'--yes'"),
            ("a\nb\u{202e}", "'a b\\u{202e}'"),
            ("", "''"),
        ] {
            assert_eq!(Shown::argument(text).as_str(), wanted);
        }
    }

    #[test]
    fn moments_are_told_in_one_unit() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        for (seconds, wanted) in [
            (0, "now"),
            (90, "2 min"),
            (7_300, "2 h"),
            (200_000, "2 d"),
            (-300, "in 5 min"),
        ] {
            let at = Timestamp::from_millis(now.as_millis() - seconds * 1000);
            assert_eq!(Moment::of(at, now).words, wanted);
        }
    }
}
