//! Base64 of RFC 4648 with padding, canonical only: what decodes, encodes back to the same text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes with padding.
///
/// ```
/// use crosstalk_envelope::base64;
/// assert_eq!(base64::encode(b"ab"), "YWI=");
/// assert_eq!(base64::decode("YWI="), Some(b"ab".to_vec()));
/// assert_eq!(base64::decode("YWJ="), None, "bits behind the end are not zero");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let letter = |digit: u32| ALPHABET.get((digit & 63) as usize).copied().unwrap_or(b'=');
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    let (triples, rest) = bytes.as_chunks::<3>();
    for [a, b, c] in triples {
        let word = (u32::from(*a) << 16) | (u32::from(*b) << 8) | u32::from(*c);
        out.extend([18, 12, 6, 0].map(|shift| letter(word >> shift)));
    }
    match rest {
        [a] => {
            let word = u32::from(*a) << 4;
            out.extend([letter(word >> 6), letter(word), b'=', b'=']);
        }
        [a, b] => {
            let word = ((u32::from(*a) << 8) | u32::from(*b)) << 2;
            out.extend([letter(word >> 12), letter(word >> 6), letter(word), b'=']);
        }
        _ => {}
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Decodes canonical base64; anything else is nothing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let digits = bytes.get(..bytes.len() - padding)?;
    for chunk in digits.chunks(4) {
        let mut word = 0;
        for byte in chunk {
            word = (word << 6) | digit(*byte)?;
        }
        let missing = 4 - chunk.len();
        word <<= 6 * missing;
        let decoded = word.to_be_bytes();
        if missing > 0 && word & ((1 << (8 * missing)) - 1) != 0 {
            return None;
        }
        out.extend(decoded.iter().skip(1).take(3 - missing));
    }
    Some(out)
}

const fn digit(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    } as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_nothing_else_decodes() {
        for len in 0..70_u8 {
            let bytes: Vec<u8> = (0..len).map(|i| i.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        for text in [
            "A", "AA", "AAA", "A===", "====", "AAAA=", "AB==", "AAB=", "AA=A", "AA A", "AA\nA",
            "A-_A",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
