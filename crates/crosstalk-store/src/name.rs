//! The names of key files: a key id as a name that every file system takes.
//!
//! Everything but `a-z 0-9 . _ @ -` is written as `%` and two lower-case hex digits. Upper-case letters are among it:
//! there are file systems on which `Alice` and `alice` are one name. So is the first character of a name that begins
//! with `.` or `-`, or that Windows keeps for devices. A name longer than 200 characters becomes its SHA-256,
//! `sha256~…`. The character `~` is never part of an encoded id: it also parts a replaced key from its id.

use crosstalk_envelope::PublicKey;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

const LONGEST: usize = 200;
/// What Windows reads as a device, whatever follows behind a dot. Upper-case names are encoded anyway.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// The name for the files of a key id, without their ending.
pub(crate) fn of_id(id: &str) -> String {
    let first_stands_out = id.starts_with(['.', '-']) || is_device(id);
    let mut name = String::with_capacity(id.len());
    for (place, byte) in id.bytes().enumerate() {
        let plain = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'@' | b'-');
        if plain && !(place == 0 && first_stands_out) {
            name.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > LONGEST {
        format!("sha256~{}", hex_digest(id))
    } else {
        name
    }
}

/// The name for the files of one key among several of an id: that of the id, `~` and the beginning of the SHA-256 of the
/// key's record.
pub(crate) fn of_key(id: &str, key: &PublicKey) -> String {
    let digest = hex_digest(&key.record());
    let short: String = digest.chars().take(8).collect();
    format!("{}~{short}", of_id(id))
}

fn is_device(id: &str) -> bool {
    let stem = id.split('.').next().unwrap_or(id);
    DEVICES.contains(&stem)
        || NUMBERED_DEVICES.iter().any(|device| {
            let number = stem.strip_prefix(device).map(str::as_bytes);
            matches!(number, Some([b'0'..=b'9']))
        })
}

fn hex_digest(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_names_that_every_file_system_takes() {
        let long = "A".repeat(255);
        for (id, name) in [
            ("alice@example.com", "alice@example.com"),
            ("Alice", "%41lice"),
            ("../../x", "%2e.%2f..%2fx"),
            ("a/b", "a%2fb"),
            ("a\\b", "a%5cb"),
            (".", "%2e"),
            ("..", "%2e."),
            ("-rf", "%2drf"),
            ("%2e", "%252e"),
            ("a~b", "a%7eb"),
            ("con", "%63on"),
            ("nul.key", "%6eul.key"),
            ("com1", "%63om1"),
            ("com10", "com10"),
            ("CON", "%43%4f%4e"),
            ("console", "console"),
            (&long, &format!("sha256~{}", hex_digest(&long))),
        ] {
            assert_eq!(of_id(id), name, "{id}");
        }
        // Ids that differ have names that differ, also where case is not told apart.
        let longer = "B".repeat(255);
        let ids = ["a", "A", "%41", "%2541", "a~", "sha256", &long, &longer];
        let names = ids.map(|id| of_id(id).to_ascii_lowercase());
        for (place, name) in names.iter().enumerate() {
            assert!(!names[..place].contains(name), "{}", ids[place]);
            assert!(name.len() <= LONGEST);
        }
    }
}
