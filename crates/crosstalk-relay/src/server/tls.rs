//! TLS from files.

use crate::config::Tls;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;

/// Why TLS can't be set up: the file and a sentence.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Reads certificate and key.
///
/// # Errors
/// If a file can't be read, is not PEM, or the key does not fit the certificate.
pub fn tls(files: &Tls) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| TlsError(format!("{}: {e}", files.certificate.display())))?;
    if chain.is_empty() {
        let file = files.certificate.display();
        return Err(TlsError(format!("{file}: there is no certificate in it")));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|e| TlsError(format!("{}: {e}", files.key.display())))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|e| {
        let (certificate, key) = (files.certificate.display(), files.key.display());
        TlsError(format!("{certificate} and {key}: {e}"))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
