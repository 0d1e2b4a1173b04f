//! Pairing: a short code that a person types into a browser extension, which gets a token for it (HTP-069).
//!
//! A code that waits is a token that expires soon, whose secret nobody can send: it is hashed with a line end in it, which no
//! header has.

use crosstalk_envelope::meta::Digest;

/// How long a code is valid.
pub const PAIRING_SECONDS: i64 = 300;

/// How many random bytes a code has.
pub const PAIRING_CODE_BYTES: usize = 5;

/// The digits: no letter that looks like another digit.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// What the code is hashed with. A line end can't be in the header of a request.
const DOMAIN: &str = "crosstalk pairing\n";

/// The code of some random bytes, as it is shown: `7K3M-Q9XV`.
///
/// ```
/// use crosstalk_protocol::relay::{pairing_code, pairing_digest};
/// let code = pairing_code([0, 1, 2, 3, 255]);
/// assert_eq!(code, "000G-40ZZ");
/// assert_eq!(pairing_digest("ooog 4ozz"), pairing_digest(&code));
/// assert_eq!(pairing_digest("0004"), None);
/// ```
pub fn pairing_code(random: [u8; PAIRING_CODE_BYTES]) -> String {
    let number = random.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
    let digit = |place: u32| {
        let index = usize::try_from(number >> (place * 5) & 31).unwrap_or(0);
        DIGITS.get(index).map_or('0', |b| char::from(*b))
    };
    let digits = |places: std::ops::Range<u32>| places.rev().map(digit).collect::<String>();
    format!("{}-{}", digits(4..8), digits(0..4))
}

/// The hash by which a code is kept; nothing if it can't be one. Case, spaces and hyphens do not count, and letters that look
/// like digits are read as digits.
pub fn pairing_digest(code: &str) -> Option<Digest> {
    let mut plain = String::new();
    for c in code.chars().filter(|c| !" -\t\n\r".contains(*c)) {
        let c = match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        };
        let is_digit = u8::try_from(c).is_ok_and(|b| DIGITS.contains(&b));
        if !is_digit || plain.len() == 8 {
            return None;
        }
        plain.push(c);
    }
    (plain.len() == 8).then(|| Digest::of(format!("{DOMAIN}{plain}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_code_counts() {
        let code = pairing_code([0xff; PAIRING_CODE_BYTES]);
        assert_eq!(code, "ZZZZ-ZZZZ");
        let digest = |n: u8| pairing_digest(&pairing_code([n, 0, 0, 0, 0]));
        assert_ne!(digest(0), digest(128));
        assert_ne!(pairing_digest("00000000"), pairing_digest("00000001"));
    }

    #[test]
    fn other_texts_are_no_codes() {
        for text in [
            "",
            "0000-000",
            "0000-00000",
            "0000-000U",
            "0000_0000",
            "0000-000é",
        ] {
            assert_eq!(pairing_digest(text), None, "{text}");
        }
    }

    #[test]
    fn a_code_is_no_secret_of_a_token() {
        assert_ne!(pairing_digest("00000000"), Some(Digest::of(b"00000000")));
    }
}
