//! The `sig:` line: `none`, or an algorithm, a key id and base64 (ENV-051).

/// The value of a `sig:` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature<'a> {
    /// The message is not signed.
    None,
    /// The message is signed.
    Signed {
        /// The algorithm, such as `ed25519`; an unknown one is kept.
        algorithm: &'a str,
        /// The id of the key, such as `alice@example.com`.
        pkid: &'a str,
        /// The signature in canonical, padded base64.
        base64: &'a str,
    },
}

impl<'a> Signature<'a> {
    /// Reads the value of a `sig:` line; the error says what is wrong with it.
    ///
    /// ```
    /// use crosstalk_envelope::Signature;
    /// assert_eq!(Signature::parse("none"), Ok(Signature::None));
    /// let signed = Signature::parse("ed25519:pkid=alice@example.com;sig=AAAA");
    /// assert!(matches!(signed, Ok(Signature::Signed { pkid: "alice@example.com", .. })));
    /// assert!(Signature::parse("ed25519:pkid=alice@example.com;sig=AbC123DeF456...").is_err());
    /// ```
    pub fn parse(value: &'a str) -> Result<Self, &'static str> {
        if value == "none" {
            return Ok(Self::None);
        }
        let (algorithm, rest) = value
            .split_once(":pkid=")
            .ok_or("the signature is neither `none` nor `algorithm:pkid=…;sig=…`")?;
        let (pkid, base64) = rest
            .split_once(";sig=")
            .ok_or("the signature has no `;sig=` after its key id")?;
        if !is_algorithm(algorithm) {
            return Err("the algorithm of the signature is not a lower-case word");
        }
        if !is_key_id(pkid) {
            return Err("the key id is not 1 to 255 visible ASCII characters without ;[]()<>|");
        }
        if base64.is_empty() || !crate::base64::is_canonical(base64) {
            return Err("the signature is not canonical, padded base64");
        }
        Ok(Self::Signed {
            algorithm,
            pkid,
            base64,
        })
    }

    /// Whether there is a signature.
    pub const fn is_signed(&self) -> bool {
        matches!(self, Self::Signed { .. })
    }
}

fn is_algorithm(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text can be the id of a key.
pub fn is_key_id(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b";[]()<>|".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_written_form_is_read() {
        for value in [
            "",
            "None",
            "ed25519",
            "ed25519:pkid=;sig=AAAA",
            "ed25519:pkid=a;sig=",
            "ed25519:pkid=a;sig=AAA",
            "ed25519:pkid=a;sig=AAAB=",
            "ed25519:pkid=a;sig=AB==",
            "ED25519:pkid=a;sig=AAAA",
            "ed25519:pkid=a b;sig=AAAA",
            "ed25519:pkid=a;sig=AAAA;x=1",
            "ed25519:pkid=a|b;sig=AAAA",
            "ed25519:pkid=a;sig=AA A",
            ":pkid=a;sig=AAAA",
        ] {
            assert!(Signature::parse(value).is_err(), "{value}");
        }
        assert!(Signature::parse("secp256r1:pkid=bob@keys/2025;sig=AA==").is_ok());
        assert!(Signature::parse("new-alg:pkid=did:key:z6Mk;sig=AQ==").is_ok());
    }
}
