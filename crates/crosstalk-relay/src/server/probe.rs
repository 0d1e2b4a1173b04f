//! Asks a relay on the same machine whether it is ready.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How much of an answer is read.
const MAX_ANSWER_BYTES: u64 = 16 << 10;

/// Why a relay is not ready.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It can't be reached, or does not speak as it should.
    #[error("it can't be reached: {0}")]
    Unreachable(#[from] io::Error),
    /// It did not answer in time.
    #[error("no answer within {} seconds", .0.as_secs())]
    Late(Duration),
    /// It says that it is not ready: the first line of its answer.
    #[error("it is not ready: {0}")]
    NotReady(String),
}

/// Asks the relay at an address whether it is ready (`GET /readyz`). With TLS, any certificate will do: nothing secret is
/// sent, and whether others believe the certificate is another question.
///
/// # Errors
/// If it is not ready.
pub async fn probe(address: SocketAddr, is_tls: bool, limit: Duration) -> Result<(), ProbeError> {
    let asked = tokio::time::timeout(limit, ask(address, is_tls)).await;
    let answer = asked.map_err(|_| ProbeError::Late(limit))??;
    let status = answer.lines().next().unwrap_or_default();
    match status.starts_with("HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(ProbeError::NotReady(status.to_owned())),
    }
}

async fn ask(address: SocketAddr, is_tls: bool) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    match is_tls {
        false => exchange(stream, address).await,
        true => {
            let name = ServerName::IpAddress(address.ip().into());
            let connector = TlsConnector::from(Arc::new(any_certificate()?));
            exchange(connector.connect(name, stream).await?, address).await
        }
    }
}

async fn exchange(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    address: SocketAddr,
) -> io::Result<String> {
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Some end a TLS connection without saying so: what came is the answer.
    let read = stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await;
    match read {
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

fn any_certificate() -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let verifier = Arc::new(AnyCertificate(provider));
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

/// Believes every certificate, whose key has signed the handshake.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
