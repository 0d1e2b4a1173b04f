//! `meta: attachments` (MET-012, MET-013).

use super::value::Digest;
use crate::base64;

/// A file beside the message, or embedded in it.
///
/// ```
/// use crosstalk_envelope::meta::{Attachment, Digest};
/// let value = format!("text/plain;name=hello.txt;digest={}", Digest::of(b"hello"));
/// let attachment = Attachment::parse(&value).unwrap();
/// assert_eq!(attachment.name, Some("hello.txt"));
/// assert!(attachment.check(b"hello").is_ok());
/// assert!(attachment.check(b"hullo").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// The media type.
    pub mime: &'a str,
    /// The name of the file.
    pub name: Option<&'a str>,
    /// The digest as it was written, such as `sha256:…`.
    pub digest: Option<&'a str>,
    /// The bytes, where they are embedded as `;data=base64,…`.
    pub data: Option<Vec<u8>>,
    /// Further parameters, in the order of the text.
    pub other: Vec<(&'a str, &'a str)>,
}

/// The fault of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    /// It does not begin with a media type.
    #[error("the attachment does not begin with a media type such as text/plain")]
    Mime,
    /// A parameter is not `name=value`, or appears twice.
    #[error("a parameter of the attachment is not name=value, or appears twice")]
    Parameter,
    /// Neither a digest nor data: nothing says which bytes are meant.
    #[error("the attachment has neither a digest nor data")]
    Unbound,
    /// The embedded data is not canonical base64.
    #[error("the data of the attachment is not base64")]
    Data,
    /// The digest is not `sha256:` and 64 hex digits.
    #[error("the digest is not sha256: and 64 hex digits")]
    Digest,
    /// The bytes are others than those that the digest names.
    #[error("the bytes do not have the digest of the attachment")]
    Mismatch,
}

impl<'a> Attachment<'a> {
    /// Reads `mime/type;name=…;digest=algorithm:hash`, with or without `;data=base64,…`.
    ///
    /// # Errors
    /// An [`AttachmentError`] if a part is missing or malformed.
    pub fn parse(value: &'a str) -> Result<Self, AttachmentError> {
        let mut parts = value.split(';').map(crate::text::trim);
        let mime = parts
            .next()
            .filter(|m| is_mime(m))
            .ok_or(AttachmentError::Mime)?;
        let mut attachment = Self {
            mime,
            name: None,
            digest: None,
            data: None,
            other: Vec::new(),
        };
        for part in parts {
            let (key, value) = part.split_once('=').ok_or(AttachmentError::Parameter)?;
            let repeated = match key {
                "name" => attachment.name.replace(value).is_some(),
                "digest" => attachment.digest.replace(value).is_some(),
                "data" => {
                    let text = value.strip_prefix("base64,").ok_or(AttachmentError::Data)?;
                    let bytes = base64::decode(text).ok_or(AttachmentError::Data)?;
                    attachment.data.replace(bytes).is_some()
                }
                _ => {
                    attachment.other.push((key, value));
                    false
                }
            };
            if repeated || key.is_empty() {
                return Err(AttachmentError::Parameter);
            }
        }
        if attachment.digest.is_none() && attachment.data.is_none() {
            return Err(AttachmentError::Unbound);
        }
        Ok(attachment)
    }

    /// Checks a file's bytes against the digest.
    ///
    /// # Errors
    /// [`AttachmentError::Digest`] if the digest can't be read, [`AttachmentError::Mismatch`] if it is another.
    pub fn check(&self, bytes: &[u8]) -> Result<(), AttachmentError> {
        let digest = self
            .digest
            .and_then(Digest::parse)
            .ok_or(AttachmentError::Digest)?;
        if digest == Digest::of(bytes) {
            Ok(())
        } else {
            Err(AttachmentError::Mismatch)
        }
    }

    /// Whether the digest has the form of its algorithm; only SHA-256 is known.
    pub fn has_sound_digest(&self) -> bool {
        let sha256 = self.digest.filter(|d| d.starts_with("sha256:"));
        sha256.is_none_or(|d| Digest::parse(d).is_some())
    }

    /// Checks the embedded bytes, where there are some and a digest as well.
    ///
    /// # Errors
    /// As [`Attachment::check`].
    pub fn check_embedded(&self) -> Result<(), AttachmentError> {
        match &self.data {
            Some(data) if self.digest.is_some() => self.check(data),
            _ => Ok(()),
        }
    }
}

fn is_mime(text: &str) -> bool {
    let token = |t: &str| {
        !t.is_empty()
            && t.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
    };
    text.split_once('/')
        .is_some_and(|(kind, sub)| token(kind) && token(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_apart() {
        for (value, error) in [
            ("plain;name=a;digest=sha256:00", AttachmentError::Mime),
            ("text/plain;name", AttachmentError::Parameter),
            (
                "text/plain;name=a;name=b;digest=x:y",
                AttachmentError::Parameter,
            ),
            ("text/plain;name=a", AttachmentError::Unbound),
            ("text/plain;data=hello", AttachmentError::Data),
            ("text/plain;data=base64,AAA", AttachmentError::Data),
        ] {
            assert_eq!(Attachment::parse(value), Err(error), "{value}");
        }
        let embedded = Attachment::parse("text/plain;name=h;data=base64,aGVsbG8=").unwrap();
        assert_eq!(embedded.data.as_deref(), Some(&b"hello"[..]));
        let draft =
            Attachment::parse("image/png;name=screenshot.png;digest=sha256:def456...").unwrap();
        assert_eq!(draft.check(b""), Err(AttachmentError::Digest));
    }
}
