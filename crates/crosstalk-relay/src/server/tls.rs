//! TLS from files. Certificate and key can be replaced while the server runs.

use crate::config::Tls;
use crate::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_envelope::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Why TLS can't be set up: the file and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// Certificate and key of a server, checked. Clones share them: what one replaces, all have.
#[derive(Clone, Debug)]
pub struct ServerTls {
    current: Arc<RwLock<Identity>>,
}

/// What a server shows to its clients.
#[derive(Clone, Debug)]
struct Identity {
    config: Arc<rustls::ServerConfig>,
    expires_at: Option<Timestamp>,
}

impl ServerTls {
    /// Connections from now on get the certificate and the key of another one.
    pub fn replace_with(&self, other: &Self) {
        let new = other.identity();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// When the certificate expires: the earliest time of its chain.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.identity().expires_at
    }

    /// The current settings.
    pub fn config(&self) -> Arc<rustls::ServerConfig> {
        self.identity().config
    }

    fn identity(&self) -> Identity {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads certificate and key.
///
/// # Errors
/// If a file can't be read, is not PEM, others can read the key, or it does not fit the certificate.
pub fn tls(files: &Tls) -> Result<ServerTls, TlsError> {
    let at = |path: &Path, what: &dyn fmt::Display| TlsError(format!("{}: {what}", path.display()));
    let text = read(&files.certificate, |_| Ok(()))?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| at(&files.certificate, &e))?;
    if chain.is_empty() {
        return Err(at(&files.certificate, &"there is no certificate in it"));
    }
    let text = read(&files.key, |file| check_key_mode(file, &files.key))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|e| at(&files.key, &e))?;
    let expires_at = chain.iter().filter_map(|c| not_after(c)).min();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|e| {
        let (certificate, key) = (files.certificate.display(), files.key.display());
        TlsError(format!("{certificate} and {key}: {e}"))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let identity = Identity {
        config: Arc::new(config),
        expires_at,
    };
    Ok(ServerTls {
        current: Arc::new(RwLock::new(identity)),
    })
}

/// Reads a file that passes a check. The check looks at the file that is open, so that nobody exchanges it in between.
fn read(
    path: &Path,
    check: impl FnOnce(&File) -> Result<(), TlsError>,
) -> Result<Vec<u8>, TlsError> {
    // A relative path says nothing about where it was looked for.
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let at = |e: std::io::Error| TlsError(format!("{}: {e}", place.display()));
    let file = open_regular(path).map_err(at)?;
    check(&file)?;
    read_bounded(&file, MAX_FILE_BYTES).map_err(at)
}

/// Refuses a key that others on the machine can reach.
#[cfg(unix)]
fn check_key_mode(file: &File, path: &Path) -> Result<(), TlsError> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(metadata) = file.metadata() else {
        // The reading that follows says why.
        return Ok(());
    };
    let mode = metadata.mode() & 0o7777;
    let (path, wanted) = (path.display(), allowed_mode(metadata.uid()));
    match mode & 0o777 & !wanted {
        0 => Ok(()),
        _ => Err(TlsError(format!(
            "the key {path} has the mode {mode:04o}: others on this machine can reach it. If nobody has read it, run \
             `chmod {wanted:o} '{path}'`; else replace key and certificate"
        ))),
    }
}

#[cfg(not(unix))]
fn check_key_mode(_: &File, _: &Path) -> Result<(), TlsError> {
    Ok(())
}

/// What the mode of a key may allow. A key that belongs to root may be readable by a group, which root chose for it.
#[cfg(unix)]
const fn allowed_mode(owner: u32) -> u32 {
    match owner {
        0 => 0o640,
        _ => 0o600,
    }
}

/// When a certificate expires (RFC 5280: `tbsCertificate.validity.notAfter`).
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    const VERSION: u8 = 0xa0;
    let (certificate, _) = element_of(SEQUENCE, certificate)?;
    let (to_be_signed, _) = element_of(SEQUENCE, certificate)?;
    let rest = match element_of(VERSION, to_be_signed) {
        Some((_, rest)) => rest,
        None => to_be_signed,
    };
    let (_serial, rest) = element_of(INTEGER, rest)?;
    let (_algorithm, rest) = element_of(SEQUENCE, rest)?;
    let (_issuer, rest) = element_of(SEQUENCE, rest)?;
    let (validity, _) = element_of(SEQUENCE, rest)?;
    let (_, _not_before, rest) = element(validity)?;
    let (tag, time, _) = element(rest)?;
    time_of(tag, std::str::from_utf8(time).ok()?)
}

/// The first element of a DER text, if it has a tag: its content, and what comes after it.
fn element_of(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == tag).then_some((content, rest))
}

/// The first element of a DER text: its tag, its content, and what comes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            let length = digits.iter().fold(0, |sum, d| (sum << 8) | usize::from(*d));
            (length, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// A time of a certificate: UTCTime with two digits for the year, or GeneralizedTime with four.
fn time_of(tag: u8, text: &str) -> Option<Timestamp> {
    let text = match tag {
        // RFC 5280: years from 50 on are of the last century.
        0x17 if text.get(..2)?.parse::<u8>().ok()? >= 50 => format!("19{text}"),
        0x17 => format!("20{text}"),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    (part(14, text.len())? == "Z").then_some(())?;
    Timestamp::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_certificates_are_read() {
        let time = |tag, text| time_of(tag, text).map(|t| t.to_string());
        assert_eq!(
            time(0x17, "270131120000Z").as_deref(),
            Some("2027-01-31T12:00:00Z")
        );
        assert_eq!(
            time(0x17, "500131120000Z").as_deref(),
            Some("1950-01-31T12:00:00Z")
        );
        assert_eq!(
            time(0x18, "20510131120000Z").as_deref(),
            Some("2051-01-31T12:00:00Z")
        );
        for (tag, text) in [
            (0x17, "270131120000"),
            (0x18, "20511331120000Z"),
            (0x04, "270131120000Z"),
            (0x17, ""),
        ] {
            assert_eq!(time(tag, text), None, "{text}");
        }
    }

    #[test]
    fn a_cut_certificate_has_no_time() {
        // A sequence that says it is longer than it is, a length without digits, and nothing at all.
        for der in [
            &[0x30, 0x05, 0x02, 0x01][..],
            &[0x30, 0x80],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[],
        ] {
            assert_eq!(not_after(der), None, "{der:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_of_root_may_have_a_group_and_no_other() {
        assert_eq!(0o640 & !allowed_mode(0), 0);
        assert_ne!(0o644 & !allowed_mode(0), 0);
        assert_ne!(0o660 & !allowed_mode(0), 0);
        assert_ne!(0o640 & !allowed_mode(1000), 0);
    }
}
