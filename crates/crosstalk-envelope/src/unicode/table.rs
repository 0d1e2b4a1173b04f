//! Tables of Unicode, packed: the crates that have them need several times as many bytes, which a browser would have to load.
//!
//! A test writes the files from those crates when `CROSSTALK_WRITE_TABLES` is set, and else requires that they say the same.

use std::sync::LazyLock;

static CONFUSABLES: LazyLock<CharMap> =
    LazyLock::new(|| CharMap::read(include_bytes!("confusable.bin")));
static DECOMPOSITIONS: LazyLock<CharMap> =
    LazyLock::new(|| CharMap::read(include_bytes!("decomposition.bin")));
static FONTS: LazyLock<CharMap> = LazyLock::new(|| CharMap::read(include_bytes!("font.bin")));
static IGNORABLES: LazyLock<RangeMap> =
    LazyLock::new(|| RangeMap::read(Numbers(include_bytes!("ignorable.bin"))));
static MARKS: LazyLock<RangeMap> =
    LazyLock::new(|| RangeMap::read(Numbers(include_bytes!("mark.bin"))));
static SCRIPTS: LazyLock<ScriptTable> =
    LazyLock::new(|| ScriptTable::read(include_bytes!("script.bin")));

/// The characters that UTS 39 takes this one for, if they are others. The character must be decomposed already.
pub(super) fn prototype(c: char) -> Option<&'static [char]> {
    CONFUSABLES.get(c)
}

/// The canonical decomposition of a character that has one, but for the syllables of Hangul.
pub(super) fn decomposition(c: char) -> Option<&'static [char]> {
    DECOMPOSITIONS.get(c)
}

/// The characters without a font: of full-width and mathematical ones, and of all that stand for ASCII letters and digits.
pub(super) fn plain(c: char) -> Option<&'static [char]> {
    FONTS.get(c)
}

/// Whether a character is not shown by default (Default_Ignorable_Code_Point).
pub(super) fn is_ignorable(c: char) -> bool {
    IGNORABLES.get(c) != 0
}

/// Whether the general category of a character is Mark.
pub(super) fn is_mark(c: char) -> bool {
    MARKS.get(c) != 0
}

/// The numbers of the scripts that a character is written in, with the joint ones of UTS 39; `None` for all scripts.
pub(super) fn scripts(c: char) -> Option<&'static [u32]> {
    let table = &*SCRIPTS;
    let set = (table.ranges.get(c) as usize).checked_sub(1)?;
    Some(table.sets.get(set).map_or(&[], Vec::as_slice))
}

/// Characters, each of which stands for some others.
struct CharMap {
    /// The character, and where its others end.
    keys: Vec<(u32, usize)>,
    others: Vec<char>,
}

impl CharMap {
    /// Each entry is the distance to the one before, the number of others, and each of those as the distance to the one that
    /// was expected: alphabets go on as alphabets do.
    fn read(bytes: &'static [u8]) -> Self {
        let mut numbers = Numbers(bytes);
        let mut map = Self {
            keys: Vec::new(),
            others: Vec::new(),
        };
        let (mut key, mut first) = (0, 0);
        while let Some(distance) = numbers.next() {
            key += distance;
            let mut expected = first + 1;
            for place in 0..numbers.next().unwrap_or(0) {
                let other = expected + numbers.next_signed();
                if place == 0 {
                    first = other;
                }
                expected = other;
                let other = u32::try_from(other).ok().and_then(char::from_u32);
                map.others.extend(other);
            }
            map.keys.push((key, map.others.len()));
        }
        map
    }

    fn get(&self, c: char) -> Option<&[char]> {
        let at = self
            .keys
            .binary_search_by_key(&u32::from(c), |(key, _)| *key);
        let at = at.ok()?;
        let start = at.checked_sub(1).and_then(|before| self.keys.get(before));
        let (_, end) = self.keys.get(at)?;
        self.others.get(start.map_or(0, |(_, end)| *end)..*end)
    }
}

/// Ranges of characters with a number for each.
struct RangeMap(Vec<(u32, u32)>);

impl RangeMap {
    /// Each range is its length and its number.
    fn read(mut numbers: Numbers) -> Self {
        let (mut ranges, mut start) = (Vec::new(), 0);
        while let Some(length) = numbers.next() {
            ranges.push((start, numbers.next().unwrap_or(0)));
            start += length;
        }
        Self(ranges)
    }

    fn get(&self, c: char) -> u32 {
        let behind = self.0.partition_point(|(start, _)| *start <= u32::from(c));
        let range = behind.checked_sub(1).and_then(|at| self.0.get(at));
        range.map_or(0, |(_, number)| *number)
    }
}

/// The sets of scripts, and which set each character has: 0 stands for all scripts.
struct ScriptTable {
    sets: Vec<Vec<u32>>,
    ranges: RangeMap,
}

impl ScriptTable {
    /// The number of sets, each with its size before it, and the ranges.
    fn read(bytes: &'static [u8]) -> Self {
        let mut numbers = Numbers(bytes);
        let sets = (0..numbers.next().unwrap_or(0)).map(|_| {
            let size = numbers.next().unwrap_or(0);
            (0..size).filter_map(|_| numbers.next()).collect()
        });
        Self {
            sets: sets.collect(),
            ranges: RangeMap::read(numbers),
        }
    }
}

/// Numbers of one byte or more, seven bits in each, the lowest first.
struct Numbers(&'static [u8]);

impl Numbers {
    /// The next number of which the lowest bit is the sign.
    fn next_signed(&mut self) -> i32 {
        let number = self.next().unwrap_or(0);
        (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
    }
}

impl Iterator for Numbers {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 || shift > 28 {
                return Some(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{is_single_script, skeleton};
    use super::*;
    use unicode_normalization::UnicodeNormalization as _;
    use unicode_normalization::char::{decompose_compatible, is_combining_mark};
    use unicode_security::MixedScript as _;
    use unicode_security::mixed_script::AugmentedScriptSet;

    fn characters() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    fn put(bytes: &mut Vec<u8>, mut number: u32) {
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    fn char_map(others: impl Fn(char) -> Option<Vec<char>>) -> Vec<u8> {
        let (mut bytes, mut key, mut first) = (Vec::new(), 0, 0);
        for c in characters() {
            let Some(others) = others(c) else { continue };
            put(&mut bytes, u32::from(c) - key);
            key = u32::from(c);
            put(&mut bytes, others.len() as u32);
            let mut expected = first + 1;
            for (place, other) in others.into_iter().enumerate() {
                let other = u32::from(other) as i32;
                let distance = other - expected;
                put(&mut bytes, ((distance << 1) ^ (distance >> 31)) as u32);
                if place == 0 {
                    first = other;
                }
                expected = other;
            }
        }
        bytes
    }

    fn range_map(number: impl Fn(char) -> u32) -> Vec<u8> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut next = 0;
        for c in characters() {
            let number = number(c);
            let end = u32::from(c) + 1;
            match ranges.last_mut() {
                Some((length, same)) if *same == number => *length += end - next,
                _ => ranges.push((end - next, number)),
            }
            next = end;
        }
        let mut bytes = Vec::new();
        for (length, number) in ranges {
            put(&mut bytes, length);
            put(&mut bytes, number);
        }
        bytes
    }

    fn script_table() -> Vec<u8> {
        let mut names: Vec<&str> = vec!["Hanb", "Jpan", "Kore"];
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut of = std::collections::HashMap::new();
        for c in characters() {
            let set = AugmentedScriptSet::for_char(c);
            let number = if set.is_all() {
                0
            } else {
                let joint = [(set.hanb, 0), (set.jpan, 1), (set.kore, 2)];
                let mut ids: Vec<u32> = joint.iter().filter(|j| j.0).map(|j| j.1).collect();
                for script in set.base.iter() {
                    let name = script.short_name();
                    let at = names.iter().position(|n| *n == name);
                    let at = at.unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    });
                    ids.push(at as u32);
                }
                let at = sets.iter().position(|s| *s == ids);
                1 + at.unwrap_or_else(|| {
                    sets.push(ids);
                    sets.len() - 1
                }) as u32
            };
            of.insert(c, number);
        }
        let mut bytes = Vec::new();
        put(&mut bytes, sets.len() as u32);
        for set in &sets {
            put(&mut bytes, set.len() as u32);
            set.iter().for_each(|id| put(&mut bytes, *id));
        }
        bytes.extend(range_map(|c| of[&c]));
        bytes
    }

    fn skeleton_of(c: char) -> Vec<char> {
        unicode_security::skeleton(c.encode_utf8(&mut [0; 4])).collect()
    }

    fn decomposition_of(c: char) -> Option<Vec<char>> {
        let parts: Vec<char> = std::iter::once(c).nfd().collect();
        let is_hangul = matches!(c, '\u{ac00}'..='\u{d7a3}');
        (parts != [c] && !is_hangul).then_some(parts)
    }

    fn is_ignored(c: char) -> bool {
        skeleton_of(c).is_empty()
    }

    fn without_font(c: char) -> Option<Vec<char>> {
        let mut plain = Vec::new();
        decompose_compatible(c, |part| plain.push(part));
        let has_font = matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}');
        let is_ascii = !c.is_ascii() && plain.iter().all(char::is_ascii_alphanumeric);
        (plain != [c] && (has_font || is_ascii)).then_some(plain)
    }

    #[test]
    fn the_tables_say_what_the_crates_say() {
        let confusables = char_map(|c| {
            let other = skeleton_of(c);
            let is_decomposed = std::iter::once(c).nfd().eq([c]);
            (is_decomposed && other != [c] && !other.is_empty()).then_some(other)
        });
        let tables = [
            ("confusable", confusables),
            ("decomposition", char_map(decomposition_of)),
            ("font", char_map(without_font)),
            ("ignorable", range_map(|c| u32::from(is_ignored(c)))),
            ("mark", range_map(|c| u32::from(is_combining_mark(c)))),
            ("script", script_table()),
        ];
        for (name, bytes) in tables {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/unicode");
            let file = format!("{folder}/{name}.bin");
            if std::env::var_os("CROSSTALK_WRITE_TABLES").is_some() {
                std::fs::write(&file, &bytes).expect("the table is written");
            }
            let same = std::fs::read(&file).expect("the table is there") == bytes;
            assert!(same, "{file} is old: set CROSSTALK_WRITE_TABLES");
        }
    }

    #[test]
    fn every_character_is_read_as_the_crates_read_it() {
        for c in characters() {
            let text = c.to_string();
            assert!(skeleton(&text).eq(skeleton_of(c)), "{c:?}");
            assert_eq!(plain(c).map(<[char]>::to_vec), without_font(c), "{c:?}");
            assert_eq!(is_mark(c), is_combining_mark(c), "{c:?}");
            for other in ["", "a", "а", "あ", "漢", "한", "ㄅ", "ー", "1"] {
                let text = format!("{c}{other}");
                assert_eq!(is_single_script(&text), text.is_single_script(), "{text:?}");
            }
        }
        let text = "pаypal ﷺ 𝐂é\u{301}\u{200d}";
        assert!(skeleton(text).eq(unicode_security::skeleton(text)));
    }
}
