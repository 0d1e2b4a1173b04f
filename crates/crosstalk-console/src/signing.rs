//! Signing with a key that a browser keeps: the browser gets the bytes that the signature covers, and gives the signature back. The
//! private key never leaves the browser, which can't even export it.

use crate::page::PageError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstalk_envelope::meta::Integrity;
use crosstalk_envelope::signing::signed_bytes;
use crosstalk_envelope::{
    Algorithm, Diagnostic, Document, Edit, PublicKey, Reading, Timestamp, authenticate,
};
use crosstalk_protocol::rotation::key_block;

/// A message that waits for its signature.
pub(crate) struct UnsignedMessage {
    /// With everything but the signature.
    text: String,
    key: PublicKey,
    /// The bytes that the signature covers.
    pub(crate) bytes: Vec<u8>,
}

/// The public key that a browser sends: 32 bytes in base64.
pub(crate) fn read_key(text: &str) -> Result<PublicKey, PageError> {
    let bytes = STANDARD.decode(text.trim()).ok();
    let key = bytes.and_then(|bytes| PublicKey::from_bytes(Algorithm::Ed25519, &bytes).ok());
    key.ok_or_else(|| PageError::format("The key can't be read."))
}

fn fault(finding: &Diagnostic) -> PageError {
    PageError::fault(
        400,
        format!("This can't be signed: {}.", finding.message),
        finding.help(),
    )
}

impl UnsignedMessage {
    /// Adds what a signed message says about itself: the key, the measures of the body, the time.
    pub(crate) fn new(envelope: &str, key: PublicKey, at: Timestamp) -> Result<Self, PageError> {
        let document = Document::parse(envelope, Reading::Strict);
        if !document.is_accepted() || !matches!(document.sig(), None | Some("none")) {
            return Err(PageError::format(
                "The message can't be read, or is signed already.",
            ));
        }
        let pkid = key.to_did();
        let mut integrity = Integrity::measure(document.body_lines());
        let second = at.as_millis().div_euclid(1000).saturating_mul(1000);
        integrity.signed_at = Some(Timestamp::from_millis(second));
        let blocks = [
            ("key", key_block(&pkid, &key, None)),
            ("integrity", integrity.fields()),
        ];
        let mut text = envelope.to_owned();
        for (namespace, fields) in blocks {
            let fields: Vec<(&str, &str)> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
            let parsed = Document::parse(&text, Reading::Strict);
            let edit = Edit::new(&parsed).and_then(|edit| edit.add_block(namespace, &fields));
            text = edit.map_err(|f| fault(&f))?.finish();
        }
        let canonical = Document::parse(&text, Reading::Strict).canonical();
        let canonical = canonical.map_err(|f| fault(&f))?;
        Ok(Self {
            bytes: signed_bytes(Algorithm::Ed25519, &pkid, &canonical),
            text,
            key,
        })
    }

    /// The signed envelope, if the signature is one of the key over this message.
    pub(crate) fn sign(&self, signature: &str) -> Result<String, PageError> {
        let wrong = || PageError::format("The signature does not fit the message.");
        let signature = STANDARD.decode(signature.trim()).map_err(|_| wrong())?;
        let sig = format!(
            "{}:pkid={};sig={}",
            Algorithm::Ed25519,
            self.key.to_did(),
            STANDARD.encode(&signature)
        );
        let parsed = Document::parse(&self.text, Reading::Strict);
        let edit = Edit::new(&parsed).and_then(|edit| edit.set_sig(&sig));
        let signed = edit.map_err(|f| fault(&f))?.finish();
        let read = Document::parse(&signed, Reading::Strict);
        let is_whole = authenticate(&read, &self.key).is_ok_and(|a| a.verified().is_some());
        match is_whole {
            true => Ok(signed),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::{Builder, PrivateKey};

    #[test]
    fn a_browser_signs_the_bytes_that_it_gets() {
        let envelope = Builder::new("human://a.example/ann", "BOB")
            .user("ann")
            .thread("T1")
            .message("01J9J3DBC4N7P2Q3R5S7T9V1W2")
            .context("c")
            .intent("REQUEST")
            .meta("routing", "X-Priority", "high")
            .body("One\n\n  two\nmeta: no")
            .build()
            .unwrap();
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let public = read_key(&STANDARD.encode(key.public().to_bytes())).unwrap();
        let at = Timestamp::from_millis(1_790_000_000_123);
        let unsigned = UnsignedMessage::new(&envelope, public, at).unwrap();
        let signature = STANDARD.encode(key.sign(&unsigned.bytes));
        let signed = unsigned.sign(&signature).unwrap();
        let read = Document::parse(&signed, Reading::Strict);
        assert!(read.is_accepted(), "{signed}");
        assert!(
            authenticate(&read, &key.public())
                .unwrap()
                .verified()
                .is_some()
        );
        assert_eq!(read.body_text(), "One\n\n  two\nmeta: no");
        let other = STANDARD.encode(key.sign(b"something else"));
        assert!(unsigned.sign(&other).is_err() && unsigned.sign("x").is_err());
        assert!(UnsignedMessage::new(&signed, key.public(), at).is_err());
        assert!(read_key("AAAA").is_err());
    }
}
