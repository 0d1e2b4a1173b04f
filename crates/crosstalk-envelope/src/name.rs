//! Names and addresses of parties: which two are the same, and which two only look the same.
//!
//! Implements ADR-009, ADR-020 and ADR-021. [`same_name`] decides identity, wherever a program compares parties.
//! [`looks_like`] makes no two names equal: it flags a name that could be taken for another one.

use crate::address::Address;
use crate::unicode::{self, is_single_script, skeleton};
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The name under which a relay writes messages of its own: errors, notices and results of polls.
pub const SYSTEM: &str = "SYSTEM";
/// The `user` of such a message.
pub const SYSTEM_USER: &str = "system";

/// Whether two addresses name the same party (ADR-020): simple names by full case folding, URLs with the case of scheme
/// and host folded and the rest byte for byte.
///
/// ```
/// use crosstalk_envelope::name::same_name;
/// assert!(same_name("CLAUDE", "Claude") && same_name("Straße", "STRASSE"));
/// assert!(same_name("Human://ACME.example/ann", "human://acme.example/ann"));
/// assert!(!same_name("human://acme.example/ann", "human://acme.example/ANN"));
/// assert!(!same_name("CIAUDE", "Cıaude"));
/// ```
pub fn same_name(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    match one.is_ascii() && other.is_ascii() {
        // Equal keys of ASCII texts have equal letters but for their case.
        true => one.eq_ignore_ascii_case(other) && name_key(one) == name_key(other),
        false => name_key(one) == name_key(other),
    }
}

/// The form of an address in which the same parties are equal texts: for columns of a store and keys of maps. ASCII
/// letters of simple names are in upper case.
///
/// ```
/// use crosstalk_envelope::name::name_key;
/// assert_eq!(name_key("Jürgen"), "JüRGEN");
/// assert_eq!(name_key("HUMAN://Ann@ACME.example/Inbox"), "human://Ann@acme.example/Inbox");
/// ```
pub fn name_key(text: &str) -> String {
    let address = Address::split(text);
    let Some(scheme) = address.scheme() else {
        let mut key = fold(text);
        // Folding leaves no capital of ASCII, so that this joins no two keys.
        key.make_ascii_uppercase();
        return key;
    };
    let (user, host, rest) = around_host(&address, scheme);
    let mut key = String::with_capacity(text.len());
    key.push_str(scheme);
    key.make_ascii_lowercase();
    key.push_str(user);
    key.push_str(&fold(host));
    key.push_str(rest);
    key
}

/// The text between the scheme of a URL and its host, the host, and the rest.
fn around_host<'t>(address: &Address<'t>, scheme: &str) -> (&'t str, &'t str, &'t str) {
    let rest = address.as_str().get(scheme.len()..).unwrap_or("");
    let Some(host) = address.host() else {
        return (rest, "", "");
    };
    let at = (host.as_ptr() as usize).saturating_sub(rest.as_ptr() as usize);
    let parts = rest.get(..at).zip(rest.get(at + host.len()..));
    parts.map_or((rest, "", ""), |(user, rest)| (user, host, rest))
}

/// Whether an address begins with a text, by the rules of [`same_name`].
///
/// ```
/// use crosstalk_envelope::name::begins_with;
/// assert!(begins_with("Human://ACME.example/ann", "human://acme.ex"));
/// assert!(begins_with("STRASSE", "straß") && begins_with("human://acme.example", "HUM"));
/// assert!(!begins_with("human://acme.example/ann", "human://acme.example/A"));
/// ```
pub fn begins_with(text: &str, start: &str) -> bool {
    let address = Address::split(text);
    let Some(written) = Address::split(start).scheme() else {
        return fold(text).starts_with(&fold(start));
    };
    let Some(scheme) = address.scheme().filter(|s| s.eq_ignore_ascii_case(written)) else {
        return false;
    };
    let start = start.get(scheme.len()..).unwrap_or("");
    let (user, host, rest) = around_host(&address, scheme);
    // The text may end within the user, the host, or behind it.
    let Some(start) = start.strip_prefix(user) else {
        return user.starts_with(start);
    };
    let split = |t| str::split_at(t, t.find(['/', '?', '#']).unwrap_or(t.len()));
    let ((port, rest), (of_host, behind)) = (split(rest), split(start));
    let host = fold(host) + port;
    match behind.is_empty() {
        true => host.starts_with(&fold(of_host)),
        false => host == fold(of_host) && rest.starts_with(behind),
    }
}

/// Whether two hosts or domains are the same, whatever the case of their letters.
pub fn same_host(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (!one.is_ascii() && fold(one) == fold(other))
}

/// Full case folding of the text in NFC, in NFC again.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let folded = unicase::UniCase::unicode(unicode::nfc(text)).to_folded_case();
    unicode::nfc(&folded).into_owned()
}

/// Whether two names are different and look the same (ADR-021): without the blanks and the characters that do not show, the
/// skeletons of UTS 39 are equal, as they are written, in lower case or in upper case.
///
/// ```
/// use crosstalk_envelope::name::looks_like;
/// assert!(looks_like("𝐂LAUDE", "Claude") && looks_like("Cıaude", "CLAUDE") && looks_like("CLAUDE\u{fe0f}", "CLAUDE"));
/// assert!(!looks_like("Claude", "CLAUDE") && !looks_like("CLAUDE", "CHATGPT"));
/// ```
pub fn looks_like(one: &str, other: &str) -> bool {
    NameLooks::of(one).are_of(other)
}

/// A name and what it looks like, to be compared with many others.
#[derive(Clone, Debug)]
pub struct NameLooks<'n> {
    name: &'n str,
    forms: [String; 3],
}

impl<'n> NameLooks<'n> {
    /// Computes the forms that a name looks like.
    pub fn of(name: &'n str) -> Self {
        Self {
            name,
            forms: forms(name),
        }
    }

    /// The forms: two names look the same if they have one in common.
    pub const fn forms(&self) -> &[String; 3] {
        &self.forms
    }

    /// The same, to be kept.
    pub fn into_forms(self) -> [String; 3] {
        self.forms
    }

    /// Whether another name is a different one and looks the same.
    pub fn are_of(&self, other: &str) -> bool {
        let has_form = match other.is_ascii() {
            true => self.forms.iter().any(|form| is_ascii_form(form, other)),
            false => {
                let others = forms(other);
                self.forms.iter().any(|form| others.contains(form))
            }
        };
        has_form && !same_name(self.name, other)
    }
}

/// A list of names, to be asked which of them a name looks like.
///
/// ```
/// use crosstalk_envelope::name::NameList;
/// let list: NameList = ["CLAUDE", "human://acme.example/ann"].into_iter().collect();
/// assert_eq!(list.look_alike("CLАUDE"), Some("CLAUDE")); // a Cyrillic А
/// assert_eq!(list.look_alike("Claude"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList {
    keys: HashSet<String>,
    looks: HashMap<String, String>,
}

impl NameList {
    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        if self.keys.insert(name_key(name)) {
            for form in forms(name) {
                self.looks.entry(form).or_insert_with(|| name.to_owned());
            }
        }
    }

    /// Whether a name is on the list.
    pub fn has(&self, name: &str) -> bool {
        self.keys.contains(&name_key(name))
    }

    /// Whether every name of the list is among these.
    pub fn is_within<'n>(&self, names: impl Iterator<Item = &'n str>) -> bool {
        let keys: HashSet<String> = names.map(name_key).collect();
        self.keys.is_subset(&keys)
    }

    /// The name on the list that this one looks like, if this one is not on the list itself.
    pub fn look_alike(&self, name: &str) -> Option<&str> {
        Self::look_alike_on([self], name)
    }

    /// The name on the first of some lists that this one looks like, if this one is on none of them.
    pub fn look_alike_on<'l, const N: usize>(lists: [&'l Self; N], name: &str) -> Option<&'l str> {
        let lists = || lists.iter().filter(|list| !list.keys.is_empty());
        // Most relays list few names or none, and every message is looked at.
        lists().next()?;
        let forms = forms(name);
        let found = |list: &&'l Self| forms.iter().find_map(|form| list.looks.get(form));
        let alike = lists().find_map(found)?;
        // A name that is on a list looks like itself, and few others look like one.
        let key = name_key(name);
        let is_listed = lists().any(|list| list.keys.contains(&key));
        (!is_listed).then_some(alike)
    }
}

impl<'n> FromIterator<&'n str> for NameList {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let mut list = Self::default();
        for name in names {
            list.add(name);
        }
        list
    }
}

/// The letters that a person sees. Those of a skeleton are folded again: that of `I` is a small `l`.
fn seen(text: &str) -> impl Iterator<Item = char> + '_ {
    let blank = |c: &char| !c.is_whitespace() && *c != '\u{2800}';
    let letters = skeleton(text).filter(blank);
    letters.flat_map(char::to_lowercase)
}

/// What a name looks like as it is written, in lower case and in upper case: `В` looks like `B`, and `в` like nothing of ASCII.
fn forms(name: &str) -> [String; 3] {
    if name.is_ascii() {
        let seen = &*SEEN_ASCII;
        return ASCII_CASES.map(|case| {
            let mut form = String::with_capacity(name.len() + 8);
            for b in name.bytes() {
                // Nearly all of them look like one letter, and a byte is appended faster than a text.
                match seen
                    .get(usize::from(case(b)))
                    .map_or(&[][..], |s| s.as_bytes())
                {
                    [one] if one.is_ascii() => form.push(char::from(*one)),
                    _ => form.push_str(seen_ascii(case(b))),
                }
            }
            form
        });
    }
    [name, &name.to_lowercase(), &name.to_uppercase()].map(|form| seen(form).collect())
}

/// Whether a name of ASCII characters has a form.
fn is_ascii_form(form: &str, name: &str) -> bool {
    ASCII_CASES.iter().any(|case| {
        let mut bytes = name.bytes();
        bytes.try_fold(form, |rest, b| rest.strip_prefix(seen_ascii(case(b)))) == Some("")
    })
}

/// The letter as it is written, in lower case and in upper case.
const ASCII_CASES: [fn(u8) -> u8; 3] = [
    |b| b,
    |b| b.to_ascii_lowercase(),
    |b| b.to_ascii_uppercase(),
];

/// The letters that a person sees for an ASCII character.
fn seen_ascii(byte: u8) -> &'static str {
    SEEN_ASCII.get(usize::from(byte)).map_or("", String::as_str)
}

/// The letters that a person sees for each ASCII character. Most names have no others, and every message has some names: looking each
/// character up in the tables of Unicode was a quarter of the time that a relay takes for a message.
static SEEN_ASCII: LazyLock<Vec<String>> = LazyLock::new(|| {
    (0..=127_u8)
        .map(|b| seen(char::from(b).encode_utf8(&mut [0; 4])).collect())
        .collect()
});

/// Whether a name deceives by itself: it mixes scripts, is written in another script than Latin with letters that all look
/// like ASCII ones, or has letters that are ASCII ones in another font (LNT-005).
///
/// ```
/// use crosstalk_envelope::name::is_deceptive;
/// assert!(is_deceptive("CL\u{0410}UDE") && is_deceptive("𝐂LAUDE")); // a Cyrillic А, a mathematical C
/// assert!(!is_deceptive("CLAUDE") && !is_deceptive("Jürgen"));
/// ```
pub fn is_deceptive(name: &str) -> bool {
    !name.is_ascii()
        && parts(name).any(|part| {
            let is_styled = |c: char| {
                let plain = unicode::without_font(c);
                let is_ascii = |plain: &[char]| plain.iter().all(char::is_ascii_alphanumeric);
                c.is_alphabetic() && plain.is_some_and(is_ascii)
            };
            !is_single_script(part) || imitates_ascii(part) || part.contains(is_styled)
        })
}

/// The parts of a name or a URL between ASCII punctuation: each may be in a script of its own.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace())
        .filter(|p| !p.is_empty())
}

fn imitates_ascii(part: &str) -> bool {
    let mut letters = part.chars().filter(|c| c.is_alphabetic()).peekable();
    letters.peek().is_some()
        && letters.all(|c| !c.is_ascii())
        && skeleton(part).all(|c| c.is_ascii())
}

/// The first character of a name or an address that no name has (ADR-009): a blank other than the space, or a variation
/// selector. People do not see it, or take it for a space.
pub fn unseen(name: &str) -> Option<char> {
    if name.is_ascii() {
        return None;
    }
    name.chars().find(|c| unicode::is_unseen_in_names(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_in_another_case_is_the_same() {
        for (one, other) in [
            ("CLAUDE", "Claude"),
            ("BOSS", "BOſS"),
            ("STRASSE", "Straße"),
            ("STRAẞE", "straße"),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
            ("JÜRGEN", "jürgen"),
            ("JÜRGEN", "ju\u{308}rgen"),
            ("KELVIN", "\u{212a}elvin"),
            ("ИВАН", "иван"),
            ("email:ann@ACME.example", "EMAIL:ann@acme.EXAMPLE"),
            (
                "human://Ann@BÜRO.example:80/x",
                "human://Ann@büro.example:80/x",
            ),
            ("claude://Session/a", "claude://session/a"),
        ] {
            assert!(same_name(one, other), "{one} {other}");
            assert!(same_name(other, one), "{other} {one}");
            assert!(!looks_like(one, other), "{one} {other}");
            assert_eq!(name_key(one), name_key(other));
            let list: NameList = [one].into_iter().collect();
            assert!(list.has(other));
            assert_eq!(list.look_alike(other), None);
        }
    }

    #[test]
    fn the_looks_of_ascii_names_are_compared_without_their_forms_as_with_them() {
        let names = [
            "SYSTEM", "system", "SYSTERN", "5YSTEM", "S YSTEM", "SYSTEMS", "", " ", "I", "l", "1",
            "CIAUDE", "CLAUDE", "C1aude", "rn", "m", "0", "O",
        ];
        for one in names {
            let looks = NameLooks::of(one);
            for other in names {
                let shares_form = looks.forms.iter().any(|form| forms(other).contains(form));
                let expected = shares_form && !same_name(one, other);
                assert_eq!(looks.are_of(other), expected, "{one:?} {other:?}");
            }
        }
        assert!(NameLooks::of("SYSTEM").are_of("SYSTERN"));
    }

    #[test]
    fn a_name_of_one_list_looks_like_none_of_another() {
        let list = |name| NameList::from_iter([name]);
        let (first, second, none) = (list("CLAUDE"), list("CIAUDE"), NameList::default());
        let find = |lists, name| NameList::look_alike_on::<3>(lists, name);
        assert_eq!(find([&first, &second, &none], "CIAUDE"), None);
        assert_eq!(find([&first, &none, &none], "CIAUDE"), Some("CLAUDE"));
        assert_eq!(find([&none, &second, &first], "C1AUDE"), Some("CIAUDE"));
        assert_eq!(find([&none, &none, &none], "C1AUDE"), None);
    }

    #[test]
    fn names_that_differ_in_more_than_case_are_other_parties() {
        for (one, other) in [
            ("CLAUDE", "CLAUDE "),
            ("CLAUDE", "C1AUDE"),
            ("I", "ı"),
            ("human://acme.example/ann", "human://acme.example/Ann"),
            ("human://Ann@acme.example", "human://ann@acme.example"),
            ("email:Ann@acme.example", "email:ann@acme.example"),
            ("claude://a?X", "claude://a?x"),
            ("CLAUDE", "claude:"),
            ("mcp://a@B/c", "mcp://A@b/c"),
        ] {
            assert!(!same_name(one, other), "{one} {other}");
            assert_ne!(name_key(one), name_key(other));
        }
    }

    #[test]
    fn ascii_names_look_as_the_tables_of_unicode_say() {
        for one in 0..=127_u8 {
            for other in 0..=127_u8 {
                let name: String = [one, other].map(char::from).into_iter().collect();
                let cases = [name.clone(), name.to_lowercase(), name.to_uppercase()];
                let slow = cases.map(|form| seen(&form).collect::<String>());
                assert_eq!(forms(&name), slow, "{name:?}");
            }
        }
    }

    #[test]
    fn look_alikes_are_seen_and_are_nobody_else() {
        for (one, other) in [
            ("CLAUDE", "CLAUDE\u{fe0f}"),
            ("CLAUDE", "CLAUDE\u{3000}"),
            ("CLAUDE", "CLA\u{200b}UDE"),
            ("CLAUDE", "𝐂LAUDE"),
            ("CLAUDE", "𝐂laude"),
            ("CLAUDE", "Cıaude"),
            ("CLAUDE", "CIaude"),
            ("claude", "CIAUDE"),
            ("CLAUDE", "c1aude"),
            ("Claude", "CLАUDE"),
            ("claude", "ϲlaude"),
            ("SYSTEM", "SУSTEM"),
            ("SYSTEM", "ЅYSTEM"),
            ("system", "ѕystem"),
            ("BV", "Вν"),
            ("BOSS", "B0SS"),
            ("MAX", "rnax"),
            ("BROTHER AI", "BROTHER\u{a0}AI"),
            ("human://acme.example/ann", "human://аcme.example/ann"),
        ] {
            assert!(looks_like(one, other), "{one} {other}");
            assert!(looks_like(other, one), "{other} {one}");
            assert!(!same_name(one, other));
            let list: NameList = [one].into_iter().collect();
            assert_eq!(list.look_alike(other), Some(one), "{other}");
        }
        for (one, other) in [
            ("CLAUDE", "CHATGPT"),
            ("ANN", "BOB"),
            ("Иван", "Ivan"),
            ("JÜRGEN", "JURGEN"),
            ("agent-1", "agent-2"),
            ("claude://a/b", "claude://a/c"),
        ] {
            assert!(!looks_like(one, other), "{one} {other}");
        }
    }

    /// A stored key is the key of itself, and of every spelling that folds to it.
    #[test]
    fn every_character_has_one_key() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = c.to_string();
            let key = name_key(&text);
            assert_eq!(name_key(&key), key, "U+{:04X}", u32::from(c));
            if let Some(folded) = Some(fold(&text)).filter(|f| *f != text) {
                assert!(same_name(&text, &folded), "U+{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn deceptive_names_are_told_from_foreign_ones() {
        for name in ["pаypal", "СНАТ", "ＣＬＡＵＤＥ", "BOſS"] {
            assert!(is_deceptive(name), "{name}");
        }
        for name in [
            "Привет",
            "日本語テスト",
            "Jürgen",
            "human://бюро.example",
            "Yıldız",
            "ACME™",
        ] {
            assert!(!is_deceptive(name), "{name}");
        }
    }
}
