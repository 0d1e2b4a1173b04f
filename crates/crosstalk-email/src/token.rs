//! Reply tokens: the proof that the sender of an answer got the mail (MAI-050 to MAI-052).
//!
//! A gateway puts a token into Reply-To and into the Message-ID of each mail that it writes. A forged From alone answers nothing,
//! because the token is bound to one recipient of one message. The gateway keeps no list of tokens, only a key.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::name::name_key;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// The first bytes under the MAC, so that it is valid for no other kind.
const LABEL: &[u8] = b"crosstalk reply token 1\n";
/// How many bytes the time of expiry has: minutes since 1970.
const TIME_BYTES: usize = 4;
/// How many bytes of the MAC are in a token: 96 bits.
const MAC_BYTES: usize = 12;
/// How many characters a token has.
pub(crate) const TOKEN_CHARS: usize = ((TIME_BYTES + MAC_BYTES) * 8).div_ceil(5);

const MINUTE_MILLIS: i64 = 60_000;

/// Base32 of RFC 4648 in lower case: mail servers may change the case of an address.
pub(crate) const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The key of the tokens of a gateway. A holder of this key can answer every mail.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplyKey([u8; 32]);

impl fmt::Debug for ReplyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyKey(…)")
    }
}

impl ReplyKey {
    /// A key of random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        // HMAC pads a key with zeros to the length of a block.
        let mut block = [0; 64];
        for (byte, of_key) in block.iter_mut().zip(self.0) {
            *byte = of_key;
        }
        Hmac::new(&block.into())
    }

    /// The key as the text of a file: 64 hexadecimal digits and a line end.
    pub fn to_text(&self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{digits}\n")
    }

    /// The key in the text of a file.
    ///
    /// ```
    /// use crosstalk_email::ReplyKey;
    /// let key = ReplyKey::new([7; 32]);
    /// assert_eq!(ReplyKey::parse(&key.to_text()), Some(key));
    /// assert_eq!(ReplyKey::parse("0707"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim();
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        if digits.len() != 64 || !is_hex {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// The message and recipient that a token is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenScope<'s> {
    /// The id of the message that the mail carries.
    pub message: &'s str,
    /// The thread of the message.
    pub thread: &'s str,
    /// The recipient of the message: the address of the delivery, not that of the mail.
    pub recipient: &'s str,
}

impl TokenScope<'_> {
    /// A length before each text, so that no two scopes become the same bytes.
    pub(crate) fn add_to(self, mac: &mut Hmac<Sha256>) {
        for text in [self.message, self.thread, &name_key(self.recipient)] {
            let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
            mac.update(&length.to_be_bytes());
            mac.update(text.as_bytes());
        }
    }
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It has not the form of a token.
    #[error("this is no reply token")]
    Malformed,
    /// It was not made by this gateway for this message, thread and recipient.
    #[error("the reply token is not one for this message and recipient")]
    Mismatch,
    /// It was valid until then.
    #[error("the reply token expired at {0}")]
    Expired(Timestamp),
}

/// The token of a mail. It is the same whenever the mail is written again with the same time of expiry.
///
/// ```
/// use crosstalk_email::{ReplyKey, TokenError, TokenScope, check_token, make_token};
/// use crosstalk_envelope::Timestamp;
/// let key = ReplyKey::new([7; 32]);
/// let scope = TokenScope { message: "M1", thread: "T1", recipient: "email:ann@acme.example" };
/// let token = make_token(&key, scope, Timestamp::from_millis(1_800_000_000_000));
/// let now = Timestamp::from_millis(1_700_000_000_000);
/// assert_eq!(check_token(&key, &token.to_uppercase(), scope, now), Ok(()));
/// let other = TokenScope { recipient: "email:eve@acme.example", ..scope };
/// assert_eq!(check_token(&key, &token, other, now), Err(TokenError::Mismatch));
/// ```
pub fn make_token(key: &ReplyKey, scope: TokenScope<'_>, expires: Timestamp) -> String {
    let minutes = expires.as_millis().div_euclid(MINUTE_MILLIS);
    let time = u32::try_from(minutes.max(0))
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    let mac = mac(key, scope, time).finalize().into_bytes();
    let bytes: Vec<u8> = time.into_iter().chain(mac).collect();
    to_base32(bytes.get(..TIME_BYTES + MAC_BYTES).unwrap_or(&bytes))
}

/// Checks that a token was made by this gateway for exactly this, and has not expired.
///
/// # Errors
/// If it does not count; the error says why.
pub fn check_token(
    key: &ReplyKey,
    token: &str,
    scope: TokenScope<'_>,
    now: Timestamp,
) -> Result<(), TokenError> {
    let bytes = from_base32(token).ok_or(TokenError::Malformed)?;
    let (time, tag) = bytes
        .split_first_chunk::<TIME_BYTES>()
        .filter(|(_, tag)| tag.len() == MAC_BYTES)
        .ok_or(TokenError::Malformed)?;
    // The comparison takes the same time wherever the bytes differ.
    let checked = mac(key, scope, *time).verify_truncated_left(tag);
    checked.map_err(|_| TokenError::Mismatch)?;
    let expires = i64::from(u32::from_be_bytes(*time)).saturating_mul(MINUTE_MILLIS);
    let expires = Timestamp::from_millis(expires);
    match now < expires {
        true => Ok(()),
        false => Err(TokenError::Expired(expires)),
    }
}

fn mac(key: &ReplyKey, scope: TokenScope<'_>, time: [u8; TIME_BYTES]) -> Hmac<Sha256> {
    let mut mac = key.mac();
    mac.update(LABEL);
    mac.update(&time);
    scope.add_to(&mut mac);
    mac
}

fn to_base32(bytes: &[u8]) -> String {
    let (mut held, mut bits, mut out) = (0_u32, 0, String::new());
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push_digit(&mut out, held >> bits);
        }
    }
    if bits > 0 {
        push_digit(&mut out, held << (5 - bits));
    }
    out
}

fn push_digit(out: &mut String, value: u32) {
    let digit = usize::try_from(value & 31)
        .ok()
        .and_then(|v| ALPHABET.get(v));
    out.extend(digit.map(|digit| char::from(*digit)));
}

/// The bytes of a text in base32, in one spelling but for the case of its letters.
fn from_base32(text: &str) -> Option<Vec<u8>> {
    if text.len() != TOKEN_CHARS {
        return None;
    }
    let (mut held, mut bits, mut out) = (0_u32, 0, Vec::new());
    for byte in text.bytes() {
        let digit = byte.to_ascii_lowercase();
        let value = ALPHABET.iter().position(|known| *known == digit)?;
        held = (held << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from((held >> bits) & 255).ok()?);
        }
    }
    let is_canonical = held & ((1 << bits) - 1) == 0;
    is_canonical.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: TokenScope<'_> = TokenScope {
        message: "01K74V6VX0S86Z5JATM52C3M7Z",
        thread: "01K74V6R0074",
        recipient: "human://acme.example/ann",
    };

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * MINUTE_MILLIS)
    }

    #[test]
    fn token_counts_for_its_message_thread_recipient_and_time_alone() {
        let key = ReplyKey::new([1; 32]);
        let token = make_token(&key, SCOPE, at(1000));
        assert_eq!(token.len(), TOKEN_CHARS);
        assert_eq!(check_token(&key, &token, SCOPE, at(999)), Ok(()));
        let same = TokenScope {
            recipient: "HUMAN://ACME.example/ann",
            ..SCOPE
        };
        assert_eq!(check_token(&key, &token, same, at(0)), Ok(()));
        assert_eq!(
            check_token(&key, &token, SCOPE, at(1000)),
            Err(TokenError::Expired(at(1000)))
        );
        for other in [
            TokenScope {
                message: "01K74V6VX0S86Z5JATM52C3M7Y",
                ..SCOPE
            },
            TokenScope {
                thread: "01K74V6R0075",
                ..SCOPE
            },
            TokenScope {
                recipient: "human://acme.example/ANN",
                ..SCOPE
            },
            // The same letters, divided in another way.
            TokenScope {
                message: "01K74V6VX0S86Z5JATM52C3M7Z0",
                thread: "1K74V6R0074",
                ..SCOPE
            },
        ] {
            let checked = check_token(&key, &token, other, at(0));
            assert_eq!(checked, Err(TokenError::Mismatch), "{other:?}");
        }
        let foreign = ReplyKey::new([2; 32]);
        let checked = check_token(&foreign, &token, SCOPE, at(0));
        assert_eq!(checked, Err(TokenError::Mismatch));
    }

    #[test]
    fn every_changed_character_of_a_token_is_noticed() {
        let key = ReplyKey::new([1; 32]);
        let token = make_token(&key, SCOPE, at(1000));
        for place in 0..token.len() {
            for digit in ALPHABET {
                let mut changed = token.clone().into_bytes();
                if changed[place] == *digit {
                    continue;
                }
                changed[place] = *digit;
                let changed = String::from_utf8(changed).unwrap();
                assert!(
                    check_token(&key, &changed, SCOPE, at(0)).is_err(),
                    "{changed}"
                );
            }
        }
        for wrong in [
            "",
            "a",
            &token.replacen(char::is_alphanumeric, "", 1),
            &format!("{token}a"),
            "é",
        ] {
            let checked = check_token(&key, wrong, SCOPE, at(0));
            assert_eq!(checked, Err(TokenError::Malformed), "{wrong}");
        }
    }

    #[test]
    fn times_beyond_the_form_are_the_nearest_ones() {
        let key = ReplyKey::new([1; 32]);
        let never = make_token(&key, SCOPE, Timestamp::from_millis(i64::MAX));
        assert_eq!(check_token(&key, &never, SCOPE, at(1 << 31)), Ok(()));
        let past = make_token(&key, SCOPE, Timestamp::from_millis(-1));
        let checked = check_token(&key, &past, SCOPE, at(0));
        assert_eq!(checked, Err(TokenError::Expired(at(0))));
    }
}
