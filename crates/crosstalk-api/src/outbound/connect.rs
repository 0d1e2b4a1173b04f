//! From addresses to a connection.

use super::tls::TlsSetup;
use super::{Host, OutboundError, Url};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};
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

/// A connection to one of the addresses, in their order.
pub(super) async fn open(
    url: &Url,
    addresses: &[SocketAddr],
    tls: &TlsSetup,
    until: Instant,
) -> Result<SendRequest<Full<Bytes>>, OutboundError> {
    let unreachable = |reason: String| OutboundError::Unreachable {
        url: url.origin(),
        reason,
    };
    let mut fault = String::from("it has no address");
    for address in addresses.iter().take(ADDRESSES) {
        let each = until.min(Instant::now() + EACH);
        match tokio::time::timeout_at(each, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small requests are not to wait for more.
                let _ = stream.set_nodelay(true);
                if !url.is_https() {
                    return speak(stream).await.map_err(unreachable);
                }
                let name = match url.host() {
                    Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| {
                        OutboundError::Refused(format!("{name} can't stand in a certificate"))
                    })?,
                    Host::Address(address) => ServerName::IpAddress((*address).into()),
                };
                let connector = TlsConnector::from(tls.config()?);
                let stream = tokio::time::timeout_at(until, connector.connect(name, stream)).await;
                let stream = stream
                    .map_err(|_| unreachable("TLS took too long".into()))?
                    .map_err(|e| unreachable(format!("TLS: {e}")))?;
                return speak(stream).await.map_err(unreachable);
            }
            Ok(Err(error)) => fault = format!("{address}: {error}"),
            Err(_) => fault = format!("{address}: no answer in time"),
        }
    }
    Err(unreachable(fault))
}

async fn speak<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
