//! File names for messages with any id.

use crosstalk_envelope::meta::Digest;
use std::io;

/// The longest part of an id in a name.
const LONGEST: usize = 100;
/// Names that some systems keep for devices.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// The names for a message, to be tried one after the other: by its id, where that is a name; else with a mark of the id;
/// and with a mark of the text, where another message has that name.
pub(super) fn candidates(id: &str, text: &[u8]) -> Vec<String> {
    let mark = |bytes: &[u8]| {
        Digest::of(bytes)
            .to_string()
            .chars()
            .skip(7)
            .take(16)
            .collect::<String>()
    };
    let safe: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .take(LONGEST)
        .collect();
    let safe = safe.trim_matches(['.', '-']);
    let stem = safe.split('.').next().unwrap_or("").to_ascii_lowercase();
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_plain = safe == id && !safe.is_empty() && !DEVICES.contains(&stem);
    let first = match is_plain {
        true => safe.to_owned(),
        false => format!("m-{safe}-{}", mark(id.as_bytes())),
    };
    let second = format!("{first}-{}", mark(text));
    vec![format!("{first}.aict"), format!("{second}.aict")]
}

/// A name that readers skip: it begins with a dot and is not one of a message.
pub(super) fn temporary() -> io::Result<String> {
    let random = getrandom::u64().map_err(|e| io::Error::other(e.to_string()))?;
    Ok(format!(".crosstalk-{random:016x}.tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_gives_a_harmless_name() {
        let long = "x".repeat(5000);
        let ids = [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "/etc/passwd",
            "-rf",
            "--help",
            "a/b",
            "a\\b",
            "a\0b",
            "a\nb",
            "CON",
            "nul.txt",
            "COM1",
            "$(reboot)",
            "`id`",
            "äöü",
            "a b",
            "*",
            "~",
            ".hidden",
            &long,
            "M1",
            "m1",
            "01J9J3D3M6A4M3WQX8G1ZQ0S7K",
            "C:evil",
            "x.aict",
        ];
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            for name in candidates(id, b"text") {
                assert!(name.len() < 200, "{id:?}: {name}");
                assert!(
                    name.ends_with(".aict") && !name.starts_with(['.', '-']),
                    "{id:?}: {name}"
                );
                let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                assert!(
                    name.chars().all(is_fine) && !name.contains(".."),
                    "{id:?}: {name}"
                );
                let stem = name.split('.').next().unwrap().to_ascii_lowercase();
                assert!(
                    !["con", "nul", "com1"].contains(&stem.as_str()),
                    "{id:?}: {name}"
                );
                assert!(seen.insert(name.clone()), "{id:?}: {name} twice");
            }
        }
        assert_eq!(candidates("M1", b"").first().unwrap(), "M1.aict");
    }
}
