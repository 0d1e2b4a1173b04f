//! Text messages: the short text for a message with a code for the answer, the answer to it, and the signature of a provider's
//! callback (TXT-001 to TXT-013).
//!
//! ```text
//! compose_text ──> who asks, about what, the beginning of the body, "Answer: 4K-Q7FM2A and your words"
//! read_text    ──> TextAnswer: a code and the new words
//! check_webhook ── the callback is from the provider, and from now
//! ```
//!
//! A code is short enough to be typed. It names a message by its place at the relay and proves, like a reply token, that who
//! answers got the text. Nothing here does I/O.

use crate::token::{ALPHABET, ReplyKey, TokenScope};
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{Timestamp, base64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The first bytes under the MAC of a code, so that it is valid for no other kind.
const LABEL: &[u8] = b"crosstalk text code 1\n";
/// How many characters of the MAC are in a code: 30 bits.
const MAC_CHARS: usize = 6;
/// How many characters the place may have: 60 bits.
const MAX_PLACE_CHARS: usize = 12;
/// The longest text of one message, in characters: three parts of a text message with letters of every alphabet.
pub const MAX_TEXT_CHARS: usize = 201;
/// The most characters of a sender and of a context.
const MAX_NAME_CHARS: usize = 40;
/// The longest answer that is read, in characters. Phones send longer ones as several messages.
const MAX_ANSWER_CHARS: usize = 8000;
/// How far the time of a callback may be away, in milliseconds.
const TOLERANCE_MILLIS: u64 = 5 * 60 * 1000;
/// The most signatures of one callback: a provider that changes its secret sends two.
const MAX_SIGNATURES: usize = 8;

/// A message as a relay sends it to a phone.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingText<'m> {
    /// Its sender.
    pub sender: &'m str,
    /// Its context.
    pub context: &'m str,
    /// Its body.
    pub body: &'m str,
    /// Its purpose.
    pub purpose: crate::CoverPurpose,
    /// How many files it has, which no text message carries.
    pub files: usize,
    /// The code for the answer.
    pub code: &'m str,
}

/// Writes the text for a message: as much of its body as there is room for, and how to answer.
///
/// ```
/// use crosstalk_email::{CoverPurpose, OutgoingText, compose_text};
/// let text = OutgoingText {
///     sender: "claude://code/api", context: "deploy", body: "May I deploy tonight?", purpose: CoverPurpose::Question,
///     files: 0, code: "4K-Q7FM2A",
/// };
/// assert_eq!(compose_text(&text), "claude://code/api (deploy): May I deploy tonight?\nAnswer: 4K-Q7FM2A and your words");
/// ```
pub fn compose_text(text: &OutgoingText<'_>) -> String {
    let start = match text.context.trim() {
        "" => format!("{}: ", shortened(text.sender, MAX_NAME_CHARS)),
        context => format!(
            "{} ({}): ",
            shortened(text.sender, MAX_NAME_CHARS),
            shortened(context, MAX_NAME_CHARS)
        ),
    };
    let mut end = String::new();
    match text.files {
        0 => {}
        1 => end.push_str("\n[1 file not sent]"),
        files => end.push_str(&format!("\n[{files} files not sent]")),
    }
    let body = match text.purpose {
        crate::CoverPurpose::Question => {
            end.push_str(&format!("\nAnswer: {} and your words", text.code));
            text.body
        }
        crate::CoverPurpose::Note => text.body,
        crate::CoverPurpose::Revocation => {
            "A consent was revoked. Please delete the texts that you got under it, and every copy."
        }
    };
    let room = MAX_TEXT_CHARS.saturating_sub(start.chars().count() + end.chars().count());
    format!("{start}{}{end}", shortened(body, room))
}

/// A text on one line, with at most so many characters; what is cut off is marked.
fn shortened(text: &str, most: usize) -> String {
    let text = visible(text);
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.chars().count() > most {
        true => {
            let start: String = line.chars().take(most.saturating_sub(4)).collect();
            format!("{} […]", start.trim_end())
        }
        false => line,
    }
}

/// The code for the answer to a message: its place at the relay, and a proof.
///
/// ```
/// use crosstalk_email::{ReplyKey, TextCode, TokenScope, make_text_code};
/// let key = ReplyKey::new([7; 32]);
/// let scope = TokenScope { message: "M1", thread: "T1", recipient: "tel:+4915112345678" };
/// let code = make_text_code(&key, 138, scope);
/// let typed = TextCode::parse(&code.to_lowercase().replace('-', "")).unwrap();
/// assert_eq!(typed.place(), 138);
/// assert!(typed.is_for(&key, scope));
/// assert!(!typed.is_for(&key, TokenScope { recipient: "tel:+4915187654321", ..scope }));
/// ```
pub fn make_text_code(key: &ReplyKey, place: u64, scope: TokenScope<'_>) -> String {
    let code = TextCode {
        place,
        proof: proof(key, place, scope),
    };
    code.to_text()
}

/// A code that somebody typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextCode {
    place: u64,
    /// In upper case.
    proof: String,
}

impl TextCode {
    /// Reads a code. Case and hyphens do not count.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text
            .bytes()
            .filter(|byte| *byte != b'-')
            .map(|byte| byte.to_ascii_lowercase())
            .collect();
        let at = digits.len().checked_sub(MAC_CHARS)?;
        let (place, proof) = digits.split_at_checked(at)?;
        let is_digits = |bytes: &[u8]| bytes.iter().all(|byte| ALPHABET.contains(byte));
        let has_form = !place.is_empty() && place.len() <= MAX_PLACE_CHARS && is_digits(proof);
        // A place has one spelling.
        if !has_form || (place.len() > 1 && place.first() == ALPHABET.first()) {
            return None;
        }
        let place = place.iter().try_fold(0_u64, |number, byte| {
            let value = ALPHABET.iter().position(|known| known == byte)?;
            number
                .checked_mul(32)?
                .checked_add(u64::try_from(value).ok()?)
        })?;
        let proof = String::from_utf8(proof.to_ascii_uppercase()).ok()?;
        Some(Self { place, proof })
    }

    /// The place of the message at the relay.
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// Whether it was made with this key for exactly this.
    pub fn is_for(&self, key: &ReplyKey, scope: TokenScope<'_>) -> bool {
        let wanted = proof(key, self.place, scope);
        // The time tells nothing about where they differ.
        let pairs = wanted.bytes().zip(self.proof.bytes());
        let difference = pairs.fold(0, |all, (one, other)| all | (one ^ other));
        wanted.len() == self.proof.len() && difference == 0
    }

    fn to_text(&self) -> String {
        let (mut place, mut digits) = (self.place, Vec::new());
        loop {
            let digit = usize::try_from(place % 32)
                .ok()
                .and_then(|at| ALPHABET.get(at));
            digits.extend(digit.map(|digit| char::from(digit.to_ascii_uppercase())));
            place /= 32;
            if place == 0 {
                break;
            }
        }
        let place: String = digits.into_iter().rev().collect();
        format!("{place}-{}", self.proof)
    }
}

fn proof(key: &ReplyKey, place: u64, scope: TokenScope<'_>) -> String {
    let mut mac = key.mac();
    mac.update(LABEL);
    mac.update(&place.to_be_bytes());
    scope.add_to(&mut mac);
    let bytes = mac.finalize().into_bytes();
    let mut bytes = bytes.iter();
    // 256 is a multiple of 32: every digit is equally likely.
    let digits = std::iter::from_fn(|| {
        let byte = bytes.next()?;
        let digit = ALPHABET.get(usize::from(byte % 32))?;
        Some(char::from(digit.to_ascii_uppercase()))
    });
    digits.take(MAC_CHARS).collect()
}

/// An answer by text message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextAnswer {
    /// The codes that it may have: its first and its last word.
    pub codes: Vec<(TextCode, String)>,
}

/// Reads an answer: for each code that it may have, the words beside it.
///
/// ```
/// use crosstalk_email::read_text;
/// let answer = read_text("4k-q7fm2a YES, go on.\n");
/// let (code, words) = &answer.codes[0];
/// assert_eq!((code.place(), words.as_str()), (906, "YES, go on."));
/// assert!(read_text("YES").codes.is_empty());
/// ```
pub fn read_text(text: &str) -> TextAnswer {
    let text: String = text.chars().take(MAX_ANSWER_CHARS).collect();
    let text = visible(text.trim());
    let is_gap = |c: char| c.is_whitespace();
    // What people and phones put around a code.
    let bare = |word: &str| {
        let edges = |c: char| ".,:;#\"'()<>[]„“”".contains(c);
        TextCode::parse(word.trim_matches(edges))
    };
    let first = text.split_once(is_gap);
    let last = text.rsplit_once(is_gap);
    let first = first.and_then(|(word, rest)| Some((bare(word)?, rest.trim().to_owned())));
    let last = last.and_then(|(rest, word)| Some((bare(word)?, rest.trim().to_owned())));
    let mut codes: Vec<(TextCode, String)> = first.into_iter().chain(last).collect();
    codes.retain(|(_, words)| !words.is_empty());
    TextAnswer { codes }
}

/// Why a callback does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The secret is none.
    #[error("the secret is not of the form whsec_ and base64")]
    Secret,
    /// A header is missing or can't be read.
    #[error("the callback has no webhook-id, webhook-timestamp and webhook-signature")]
    Headers,
    /// It is older than five minutes, or from the future.
    #[error("the callback is older than five minutes, or the clock is wrong")]
    Time,
    /// No signature fits.
    #[error("the signature of the callback does not fit its secret")]
    Signature,
}

/// A callback, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookCall<'c> {
    /// `webhook-id`.
    pub id: &'c str,
    /// `webhook-timestamp`: seconds since 1970.
    pub timestamp: &'c str,
    /// `webhook-signature`: signatures with spaces between.
    pub signature: &'c str,
    /// The body.
    pub body: &'c [u8],
}

/// The key in a secret of the Standard Webhooks.
fn webhook_key(secret: &str) -> Result<Vec<u8>, WebhookError> {
    let text = secret.trim().strip_prefix("whsec_");
    let key = text.and_then(base64::decode).filter(|key| key.len() >= 24);
    key.ok_or(WebhookError::Secret)
}

fn webhook_mac(call: &WebhookCall<'_>, key: &[u8]) -> Result<Hmac<Sha256>, WebhookError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| WebhookError::Secret)?;
    mac.update(format!("{}.{}.", call.id, call.timestamp).as_bytes());
    mac.update(call.body);
    Ok(mac)
}

/// Whether a secret can be used.
///
/// # Errors
/// If it has another form.
pub fn check_webhook_secret(secret: &str) -> Result<(), WebhookError> {
    webhook_key(secret).map(drop)
}

/// The signature of a callback, as the Standard Webhooks define it.
///
/// # Errors
/// If the secret has another form.
pub fn sign_webhook(call: &WebhookCall<'_>, secret: &str) -> Result<String, WebhookError> {
    let mac = webhook_mac(call, &webhook_key(secret)?)?;
    let tag = mac.finalize().into_bytes();
    Ok(format!("v1,{}", base64::encode(&tag)))
}

/// Checks that a callback is from who has the secret, and from now.
///
/// ```
/// use crosstalk_email::{WebhookCall, WebhookError, check_webhook, sign_webhook};
/// use crosstalk_envelope::Timestamp;
/// let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// let call = WebhookCall {
///     id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330", body: b"{\"test\": 2432232314}",
///     signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
/// };
/// let now = Timestamp::from_millis(1_614_265_330_000);
/// assert_eq!(sign_webhook(&call, secret).unwrap(), call.signature);
/// assert_eq!(check_webhook(&call, secret, now), Ok(()));
/// let changed = WebhookCall { body: b"{}", ..call };
/// assert_eq!(check_webhook(&changed, secret, now), Err(WebhookError::Signature));
/// let late = Timestamp::from_millis(now.as_millis() + 301_000);
/// assert_eq!(check_webhook(&call, secret, late), Err(WebhookError::Time));
/// ```
///
/// # Errors
/// If it does not count; the error says why.
pub fn check_webhook(
    call: &WebhookCall<'_>,
    secret: &str,
    now: Timestamp,
) -> Result<(), WebhookError> {
    let key = webhook_key(secret)?;
    if call.id.is_empty() || call.signature.is_empty() {
        return Err(WebhookError::Headers);
    }
    let seconds: i64 = call.timestamp.parse().map_err(|_| WebhookError::Headers)?;
    let millis = seconds.checked_mul(1000).ok_or(WebhookError::Headers)?;
    let signatures = call.signature.split(' ').take(MAX_SIGNATURES);
    let mut fits = false;
    for signature in signatures.filter_map(|text| text.strip_prefix("v1,")) {
        let tag = base64::decode(signature).unwrap_or_default();
        // The comparison takes the same time wherever the bytes differ.
        fits |= webhook_mac(call, &key)?.verify_slice(&tag).is_ok();
    }
    if !fits {
        return Err(WebhookError::Signature);
    }
    match now.as_millis().abs_diff(millis) <= TOLERANCE_MILLIS {
        true => Ok(()),
        false => Err(WebhookError::Time),
    }
}

/// A phone number in the form E.164: `+` and 7 to 15 digits.
///
/// ```
/// use crosstalk_email::phone_number;
/// assert_eq!(phone_number("tel:+44-20-7123-4567").as_deref(), Some("+442071234567"));
/// assert_eq!(phone_number("human://+4915112345678/ann").as_deref(), Some("+4915112345678"));
/// assert_eq!(phone_number("+1 (555) 010-9999").as_deref(), Some("+15550109999"));
/// assert_eq!(phone_number("tel:110"), None);
/// ```
pub fn phone_number(address: &str) -> Option<String> {
    let split = crosstalk_envelope::Address::split(address);
    let text = match split.scheme() {
        None => address,
        Some(scheme) if scheme.eq_ignore_ascii_case("tel") => split.path(),
        Some(_) => split.host().filter(|host| host.starts_with('+'))?,
    };
    let rest = text.trim().strip_prefix('+')?;
    let is_separator = |c: char| matches!(c, '-' | '.' | '(' | ')' | ' ');
    let digits: String = rest.chars().filter(|c| !is_separator(*c)).collect();
    let is_number = digits.bytes().all(|b| b.is_ascii_digit())
        && (7..=15).contains(&digits.len())
        && !digits.starts_with('0');
    is_number.then(|| format!("+{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoverPurpose;

    const KEY: ReplyKey = ReplyKey::new([7; 32]);
    const SCOPE: TokenScope<'_> = TokenScope {
        message: "M1",
        thread: "T1",
        recipient: "tel:+4915112345678",
    };

    #[test]
    fn codes_come_back_and_one_changed_character_does_not() {
        for place in [0, 1, 31, 32, 1000, 123_456_789, u64::MAX >> 4] {
            let text = make_text_code(&KEY, place, SCOPE);
            let code = TextCode::parse(&text).unwrap();
            assert_eq!((code.place(), code.is_for(&KEY, SCOPE)), (place, true));
            for at in 0..text.len() {
                for other in ALPHABET {
                    let mut changed = text.clone().into_bytes();
                    let other = other.to_ascii_uppercase();
                    if changed[at] == b'-' || changed[at] == other {
                        continue;
                    }
                    changed[at] = other;
                    let changed = String::from_utf8(changed).unwrap();
                    let counts = TextCode::parse(&changed).is_some_and(|c| c.is_for(&KEY, SCOPE));
                    assert!(!counts, "{changed}");
                }
            }
        }
        for text in [
            "",
            "-",
            "Q7FM2A",
            "AB-Q7FM2A",
            "1-Q7FM2A",
            "ÄB-Q7FM2A",
            "YES",
        ] {
            assert_eq!(TextCode::parse(text), None, "{text}");
        }
    }

    #[test]
    fn code_stands_before_or_behind_the_words() {
        let code = make_text_code(&KEY, 922, SCOPE);
        for (text, words) in [
            (format!("{code} YES"), "YES"),
            (
                format!("\"{}\": yes, after 10 pm ", code.to_lowercase()),
                "yes, after 10 pm",
            ),
            (format!("NO thanks ({code})."), "NO thanks"),
            (
                format!("{code}\n\nline one\nline two"),
                "line one\nline two",
            ),
        ] {
            let answer = read_text(&text);
            let found = answer.codes.iter().find(|(c, _)| c.is_for(&KEY, SCOPE));
            assert_eq!(found.map(|(_, w)| w.as_str()), Some(words), "{text}");
        }
        for text in [code.as_str(), "YES", "", "YES or NO?"] {
            let answer = read_text(text);
            assert!(
                !answer.codes.iter().any(|(c, _)| c.is_for(&KEY, SCOPE)),
                "{text}"
            );
        }
    }

    #[test]
    fn text_is_short_on_few_lines_and_says_what_is_missing() {
        let body = "a very long question ".repeat(100);
        let long = "claude://acme.example/".to_owned() + &"x".repeat(500);
        let text = OutgoingText {
            sender: &long,
            context: "line\r\none\u{202e}two",
            body: &body,
            purpose: CoverPurpose::Question,
            files: 2,
            code: "4K-Q7FM2A",
        };
        let written = compose_text(&text);
        assert!(written.chars().count() <= MAX_TEXT_CHARS, "{written}");
        assert!(
            written.contains("[…]\n[2 files not sent]\nAnswer: 4K-Q7FM2A and your words"),
            "{written}"
        );
        assert!(!written.contains(['\r', '\u{202e}']), "{written}");
        let revoked = compose_text(&OutgoingText {
            purpose: CoverPurpose::Revocation,
            ..text
        });
        assert!(
            revoked.contains("Please delete") && !revoked.contains("Answer:"),
            "{revoked}"
        );
        assert!(!revoked.contains("question"), "{revoked}");
    }
}
