//! One connection: TLS where it is configured, deadlines, requests one after the other.

use super::gate::Gate;
use super::permit::ConnectionPermit;
use super::response::HttpError;
use super::router::ServedRoutes;
use super::slow_client::{Deadlines, Phase, TimeoutStream};
use super::{Server, router};
use axum::extract::Request;
use crosstalk_envelope::registry::ErrorCode;
use http::HeaderValue;
use http::header::{HOST, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The largest head that is read at all; a smaller limit is answered in words.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The facts about a connection.
pub(super) struct Connection {
    /// The other side.
    pub(super) from: SocketAddr,
    /// This side.
    here: SocketAddr,
    /// How far it is with its request.
    pub(super) phase: Phase,
    /// The `Host` that was let through before: most requests of a connection have the same one.
    passed: OnceLock<HeaderValue>,
}

impl Connection {
    /// Lets a request through the gate.
    pub(super) fn check(&self, gate: &Gate, request: &Request) -> Result<(), HttpError> {
        let headers = request.headers();
        let is_plain = request.uri().authority().is_none()
            && !headers.contains_key(ORIGIN)
            && !headers.contains_key("sec-fetch-site");
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().filter(|_| hosts.next().is_none());
        if is_plain && host.is_some() && host == self.passed.get() {
            return Ok(());
        }
        gate.check(request.method(), request.uri(), headers, self.here.ip())?;
        if let Some(host) = host.filter(|_| is_plain) {
            // Another request of this connection may have been first.
            let _ = self.passed.set(host.clone());
        }
        Ok(())
    }
}

/// Serves a connection in the background until it ends.
///
/// It is a plain function so that the code of a connection is compiled once, in this crate. The compiler puts the code of an
/// `async fn` into each crate that awaits it.
pub(super) fn spawn(
    server: Arc<Server>,
    routes: ServedRoutes,
    stream: TcpStream,
    from: SocketAddr,
    permit: ConnectionPermit,
) {
    tokio::spawn(async move {
        serve(server, routes, stream, from).await;
        drop(permit);
    });
}

async fn serve(server: Arc<Server>, routes: ServedRoutes, stream: TcpStream, from: SocketAddr) {
    // Responses are short, and clients wait for them.
    let _ = stream.set_nodelay(true);
    let Ok(here) = stream.local_addr() else {
        return;
    };
    let config = server.relay.config();
    let limits = &config.limits;
    let deadlines = Deadlines {
        head: Duration::from_secs(limits.head_seconds.max(1)),
        idle: Duration::from_secs(limits.idle_seconds.max(1)),
        write: Duration::from_secs(limits.body_seconds.max(1)),
    };
    let stream = match &server.tls {
        None => Box::new(stream) as Box<dyn Stream>,
        Some(tls) => {
            let mut first = [0];
            match tokio::time::timeout(deadlines.head, stream.peek(&mut first)).await {
                Ok(Ok(_)) if first == TLS_HANDSHAKE => {}
                Ok(Ok(1)) => return reject_plain_http(stream).await,
                _ => return,
            }
            let shake = TlsAcceptor::from(tls.config()).accept(stream);
            match tokio::time::timeout(deadlines.head, shake).await {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(error)) => {
                    tracing::debug!(from = %from.ip(), reason = %error, "no TLS was agreed on");
                    return;
                }
                Err(_) => return,
            }
        }
    };
    let phase = Phase::default();
    let connection = Arc::new(Connection {
        from,
        here,
        phase: phase.clone(),
        passed: OnceLock::new(),
    });
    let stream = TokioIo::new(TimeoutStream::new(stream, phase.clone(), deadlines));
    let until = Arc::clone(&server);
    let service = service_fn(move |request| {
        connection.phase.busy();
        let (server, routes, connection) =
            (Arc::clone(&server), routes.clone(), Arc::clone(&connection));
        async move {
            let answer = router::respond(&server, &routes, &connection, request).await;
            connection.phase.answered();
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(2 * MAX_HEAD_BYTES)
        .serve_connection(stream, service);
    let mut connected = Pin::new(&mut connection);
    let ended = tokio::select! {
        ended = connected.as_mut() => ended,
        () = until.wait_for_shutdown() => {
            connected.as_mut().graceful_shutdown();
            connected.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(from = %from.ip(), reason = %error, "a connection broke");
        if phase.is_in_head() {
            reject_slow_head(connection.into_parts().io.into_inner().into_inner()).await;
        }
    }
}

/// What the first record of TLS begins with.
const TLS_HANDSHAKE: [u8; 1] = [0x16];
/// How long, and how much, is read of a request that came without TLS: a connection that is closed before that is reset, and
/// the answer is lost.
const DRAIN_TIME: Duration = Duration::from_secs(1);
const DRAIN_BYTES: u64 = 64 * 1024;

/// Tells a client that it should use TLS.
async fn reject_plain_http(mut stream: TcpStream) {
    let (what, help) = (
        "This port speaks TLS, and the request came without it.",
        "write https:// instead of http://.",
    );
    let envelope = HttpError::new(ErrorCode::Format, what, help).envelope();
    let answer = plain("400 Bad Request", "", &envelope);
    let say = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut (&mut stream).take(DRAIN_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(DRAIN_TIME, say).await;
}

/// Answers a client whose request head did not come in time.
async fn reject_slow_head(mut stream: Box<dyn Stream>) {
    let (what, help) = (
        "The head of the request did not come in time.",
        "send it again, over a faster line.",
    );
    let envelope = HttpError::new(ErrorCode::Timeout, what, help).envelope();
    let answer = plain("408 Request Timeout", "", &envelope);
    let say = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // It may be gone, or not listen.
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}

/// Rejects a connection for which there is no permit, without waiting for anything.
pub(super) fn reject_connection(stream: TcpStream) {
    let envelope = HttpError::later("There are too many connections").envelope();
    let answer = plain("503 Service Unavailable", "Retry-After: 5\r\n", &envelope);
    if let Ok(mut stream) = stream.into_std() {
        // No task waits for it: bytes that do not fit into the buffer of a new connection are not sent.
        let _ = io::Write::write(&mut stream, answer.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
}

/// An answer outside of a request.
fn plain(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
