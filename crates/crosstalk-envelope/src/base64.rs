//! Base64 of RFC 4648 with padding, canonical only: what decodes, encodes back to the same text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Encodes with padding.
///
/// ```
/// use crosstalk_envelope::base64;
/// assert_eq!(base64::encode(b"ab"), "YWI=");
/// assert_eq!(base64::decode("YWI="), Some(b"ab".to_vec()));
/// assert_eq!(base64::decode("YWJ="), None, "bits behind the end are not zero");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes canonical base64; anything else is nothing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Whether a text is canonical base64.
pub(crate) fn is_canonical(text: &str) -> bool {
    // A signature fits in here.
    match STANDARD.decode_slice(text, &mut [0; 96]) {
        Err(base64::DecodeSliceError::OutputSliceTooSmall) => decode(text).is_some(),
        decoded => decoded.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_text_decodes() {
        for text in [
            "A", "AA", "AAA", "A===", "====", "AAAA=", "AB==", "AAB=", "AA=A", "AA A", "AA\nA",
            "A-_A",
        ] {
            assert_eq!(decode(text), None, "{text}");
            assert!(!is_canonical(text), "{text}");
            let long = "AAAA".repeat(40) + text;
            assert!(!is_canonical(&long), "{long}");
        }
        assert!(is_canonical("AAAA") && is_canonical(&"AAAA".repeat(40)));
    }
}
