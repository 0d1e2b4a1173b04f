//! TLS for calls: whom to believe about a certificate.

use super::OutboundError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};

/// The root certificates that are trusted.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Certificates, PEM, besides those of the system.
    pub extra: Vec<u8>,
}

impl Roots {
    /// Those of the system.
    pub fn system() -> Self {
        Self::default()
    }
}

/// The configuration of TLS; it is read when the first connection is made.
pub(super) struct TlsSetup {
    roots: Roots,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl TlsSetup {
    pub(super) fn new(roots: Roots) -> Self {
        Self {
            roots,
            config: OnceLock::new(),
        }
    }

    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, OutboundError> {
        let config = self.config.get_or_init(|| configure(&self.roots));
        config.clone().map_err(OutboundError::Refused)
    }
}

fn configure(roots: &Roots) -> Result<Arc<ClientConfig>, String> {
    let mut store = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(native.certs);
    for certificate in CertificateDer::pem_slice_iter(&roots.extra) {
        let certificate =
            certificate.map_err(|e| format!("a further root certificate can't be read: {e}"))?;
        store
            .add(certificate)
            .map_err(|e| format!("a further root certificate can't be used: {e}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS can't be set up: {e}"))?;
    let mut config = builder.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
