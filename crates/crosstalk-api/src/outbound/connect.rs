//! From addresses to a connection, with TLS.

use super::{Host, OutboundError, Url};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// How long one address may take while there are others.
const EACH: Duration = Duration::from_secs(5);
/// How many addresses of a host are tried.
const ADDRESSES: usize = 8;
/// How large the head of an answer may be.
const HEAD: usize = 64 << 10;

/// The addresses of a host as the system looks them up.
pub(super) async fn system(host: &str, port: u16) -> Result<Vec<IpAddr>, String> {
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => Ok(found.map(|a| a.ip()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

/// The bytes of a connection, with or without TLS.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to one of the addresses, in their order.
pub(super) async fn open(
    url: &Url,
    addresses: &[SocketAddr],
    tls: &TlsSetup,
    until: Instant,
) -> Result<Box<dyn ByteStream>, OutboundError> {
    let unreachable = |reason: String| unreachable(url, reason);
    let mut fault = String::from("it has no address");
    for address in addresses.iter().take(ADDRESSES) {
        let each = until.min(Instant::now() + EACH);
        match tokio::time::timeout_at(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small requests are not to wait for more.
                let _ = stream.set_nodelay(true);
                if !url.is_https() {
                    return Ok(Box::new(stream));
                }
                let name = match url.host() {
                    Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| {
                        OutboundError::Refused(format!("{name} is not valid in a certificate"))
                    })?,
                    Host::Address(address) => ServerName::IpAddress((*address).into()),
                };
                let connector = TlsConnector::from(tls.config()?);
                let stream = tokio::time::timeout_at(until, connector.connect(name, stream)).await;
                let stream = stream
                    .map_err(|_| unreachable("TLS took too long".into()))?
                    .map_err(|e| unreachable(format!("TLS: {e}")))?;
                return Ok(Box::new(stream));
            }
            Ok(Err(error)) => fault = format!("{address}: {error}"),
            Err(_) => fault = format!("{address}: no answer in time"),
        }
    }
    Err(unreachable(fault))
}

pub(super) fn unreachable(url: &Url, reason: String) -> OutboundError {
    OutboundError::Unreachable {
        url: url.origin(),
        reason,
    }
}

/// Speaks HTTP/1.1 on a connection.
pub(super) async fn speak(stream: Box<dyn ByteStream>) -> Result<SendRequest<Full<Bytes>>, String> {
    let mut builder = Builder::new();
    builder.max_buf_size(HEAD);
    let (sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|e| e.to_string())?;
    tokio::spawn(async move {
        // The code that waits for an answer gets the error.
        let _ = connection.await;
    });
    Ok(sender)
}

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
