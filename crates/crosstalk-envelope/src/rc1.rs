//! The signatures of an earlier draft, "rc1": a detached JWS over the text (SIG-030). Verified on request, never written.

use crate::key::{Algorithm, PublicKey};
use crate::registry::DENIED_KEYS;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The JWS header of this form, byte for byte.
const HEADER: &str = r#"{"alg":"EdDSA","b64":true,"crit":["b64","cty","ver"],"cty":"crosstalk/v1.1","typ":"JOSE","ver":"1.1-rc1"}"#;

/// A message whose rc1 signature fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rc1 {
    payload: String,
    key: PublicKey,
}

impl Rc1 {
    /// The signed text: from the direction line to the end of the body.
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// The key that fits.
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }
}

/// Why there is no rc1 signature that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rc1Error {
    /// There is no envelope with a body in the text.
    #[error("there is no envelope with a body in the text")]
    NoPayload,
    /// There is no detached JWS below it.
    #[error("there is no detached JWS below the body")]
    NoSignature,
    /// The JWS is of another kind.
    #[error("the JWS is not of the rc1 form")]
    Header,
    /// The key is no ed25519 key.
    #[error("an rc1 signature needs an ed25519 key")]
    Key,
    /// The signature does not fit.
    #[error("the rc1 signature does not fit")]
    Signature,
}

/// Verifies an rc1 signature with a key; without one, with the keys of the deny list, which count here only.
///
/// ```
/// use crosstalk_envelope::rc1::{Rc1Error, verify};
/// assert_eq!(verify("no message", None), Err(Rc1Error::NoPayload));
/// ```
pub fn verify(text: &str, key: Option<&PublicKey>) -> Result<Rc1, Rc1Error> {
    let text = text.replace("\r\n", "\n");
    let (payload, rest) = payload_in(&text).ok_or(Rc1Error::NoPayload)?;
    let mut words = rest.split_whitespace();
    let (header, signature) = words.find_map(detached).ok_or(Rc1Error::NoSignature)?;
    if URL_SAFE_NO_PAD.decode(header).as_deref() != Ok(HEADER.as_bytes()) {
        return Err(Rc1Error::Header);
    }
    let signature = URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| Rc1Error::NoSignature)?;
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload.as_bytes()));
    let denied = DENIED_KEYS
        .iter()
        .filter_map(|(record, _)| PublicKey::parse_record(record).ok());
    let keys: Vec<PublicKey> = match key {
        Some(key) if key.algorithm() != Algorithm::Ed25519 => return Err(Rc1Error::Key),
        Some(key) => vec![*key],
        None => denied.collect(),
    };
    let fits = |key: &PublicKey| key.verifies(signed.as_bytes(), &signature);
    let key = keys.into_iter().find(fits).ok_or(Rc1Error::Signature)?;
    Ok(Rc1 { payload, key })
}

/// The text from the direction line to the end of the body, with one LF at its end, and what stands below.
fn payload_in(text: &str) -> Option<(String, &str)> {
    let mut payload: Vec<&str> = Vec::new();
    let (mut in_body, mut end) = (false, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let is_direction = bare.starts_with("[[") && bare.ends_with("]]");
        let goes_on = bare.is_empty() || bare.starts_with([' ', '\t']);
        if in_body && !goes_on {
            break;
        }
        if is_direction || !payload.is_empty() {
            payload.push(bare);
        }
        in_body |= !payload.is_empty() && bare == "body: |";
        end += line.len();
    }
    while payload.last().is_some_and(|l| l.is_empty()) {
        payload.pop();
    }
    in_body.then(|| (payload.join("\n") + "\n", text.get(end..).unwrap_or("")))
}

/// The header and the signature of a detached JWS.
fn detached(word: &str) -> Option<(&str, &str)> {
    let (header, signature) = word.split_once("..")?;
    let is_url = |t: &str| {
        !t.is_empty()
            && t.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    (is_url(header) && is_url(signature)).then_some((header, signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::PrivateKey;

    fn signed(key: &PrivateKey, header: &str) -> String {
        let payload =
            "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: REQUEST\nbody: |\n\tx\n\n  y\n";
        let header = URL_SAFE_NO_PAD.encode(header.as_bytes());
        let signature =
            key.sign(format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload.as_bytes())).as_bytes());
        format!(
            "Payload:\n{payload}\nDetached JWS:\n{header}..{}\n",
            URL_SAFE_NO_PAD.encode(signature)
        )
    }

    #[test]
    fn only_this_form_and_this_key_fit() {
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
        let text = signed(&key, HEADER);
        let public = key.public();
        let found = verify(&text, Some(&public)).unwrap();
        assert!(found.payload().ends_with("body: |\n\tx\n\n  y\n"));
        assert!(verify(&text.replace('\n', "\r\n"), Some(&public)).is_ok());
        assert_eq!(verify(&text, None), Err(Rc1Error::Signature));
        assert_eq!(
            verify(&text.replace("user: u", "user: v"), Some(&public)),
            Err(Rc1Error::Signature)
        );
        for other in [
            HEADER.replace("EdDSA", "none"),
            HEADER.replace("1.1-rc1", "1.1"),
            HEADER.replace(r#""b64","#, ""),
            HEADER.replace("{", r#"{"x":1,"#),
        ] {
            assert_eq!(
                verify(&signed(&key, &other), Some(&public)),
                Err(Rc1Error::Header),
                "{other}"
            );
        }
        let p256 = PrivateKey::from_seed(Algorithm::Secp256r1, &[7; 32]).unwrap();
        assert_eq!(verify(&text, Some(&p256.public())), Err(Rc1Error::Key));
        assert_eq!(
            verify(text.split("Detached").next().unwrap(), None),
            Err(Rc1Error::NoSignature)
        );
    }
}
